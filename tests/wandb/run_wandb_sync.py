#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What mode: offline writes, the real `wandb sync` uploads, and the server then knows the same.

    run_wandb_sync.py BINARY

Each case of golden/ is exported into a directory, without any key or server; the files that it came
from are removed; then `wandb sync` (fetched from PyPI once, see support/wandb_sdk.py) uploads it
to mock_wandb.py. What differs from an online run through the SDK's doing, and is made equal here:

  history_step of artifacts   null: the records of a log have no field for it
"""
import os
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from process import run  # noqa: E402
from run_wandb_golden import CASES, GOLDEN, KEY, Mock, Suite, load, tree_of, write  # noqa: E402
import wandb_sdk  # noqa: E402
from running import wait_for  # noqa: E402

SMALL = "small_no_alerts"


def events_of(case):
    return os.path.join(GOLDEN, case, "input", "events.jsonl")


class SyncSuite(Suite):
    def offline(self, case, place=None, events=None, directory="wandb", **options):
        """Exports a case into place/wandb; -> (place, its run directories)"""
        new_place, given = self.place(case)
        place = place or new_place
        given.setdefault("entity", "ent")
        given.update(options, mode="offline", directory=directory)
        config = {
            "receivers": {"file": {"include": [events or events_of(case)],
                                   "start_at": "beginning"}},
            "exporters": {"wandb": given},
            "service": {"pipelines": {"export": {"receivers": ["file"], "exporters": ["wandb"]}}},
        }
        path = write(os.path.join(new_place, "config.yaml"), config)
        done = run(self.binary, "run", "--once", "--config", path, folder=place,
                   TMPDIR=os.path.join(new_place, "temporary"))
        self.checks.equal(done.code, 0, "%s: exit code (%s)" % (case, done.errors()))
        shutil.rmtree(os.path.join(new_place, "tree"), ignore_errors=True)
        return place, self.directories(place)

    def directories(self, place):
        return sorted(os.listdir(os.path.join(place, "wandb")))

    def sdk(self, mock):
        return wandb_sdk.Sdk(tempfile.mkdtemp(dir=self.folder), mock.url, KEY)

    def sync(self, mock, place, *arguments):
        code, said = self.sdk(mock).run("sync", *arguments, folder=place)
        self.checks.equal(code, 0, "wandb sync: exit code (%s)" % said)
        return said

    def understood(self, mock, what):
        decoded = mock.decoded()
        self.checks.equal(decoded["violations"], [], what + ": rules that were broken")
        return decoded

    def compare_synced(self, case, decoded, what):
        steps = {artifact["name"]: artifact["history_step"]
                 for artifact in load(GOLDEN, case, "expected.json")["artifacts"]}
        for got in decoded["runs"]:
            for artifact in got["artifacts"]:
                self.checks.equal(artifact["history_step"], None, what + ": a step of an artifact")
                name = artifact["name"].replace("run-%s-" % got["name"], "run-$RUN_ID-")
                artifact["history_step"] = steps.get(name)
        self.compare(case, decoded, what)

    def goldens(self):
        for case in CASES:
            with Mock() as mock:
                place, directories = self.offline(case)
                self.checks.equal(len(directories), 1, case + ": directories")
                # Without a path: whatever in ./wandb was not uploaded yet.
                said = self.sync(mock, place, "--yes")
                self.checks.check("ERROR" not in said, lambda: "%s: %s" % (case, said))
                self.compare_synced(case, self.understood(mock, case), case)

    def no_key(self):
        """A key is not needed, and when one is there it does not get into the directory."""
        place, directories = self.offline(SMALL, api_key=KEY, base_url="http://127.0.0.1:9")
        found = tree_of(os.path.join(place, "wandb"))
        self.checks.check(len(found) > 4, "files of a run: %s" % sorted(found))
        self.checks.equal([name for name, text in found.items() if KEY.encode() in text], [],
                          "files with the key")
        self.checks.equal(len(directories), 1, "directories with a key")

    def cut(self):
        """A log that ends within a record, as one does that is being written."""
        place, (name,) = self.offline(SMALL)
        path = self.log_of(place, name)
        with open(path, "r+b") as file:
            file.truncate(os.path.getsize(path) - 3)
        with Mock() as mock:
            self.sync(mock, place, os.path.join("wandb", name))
            decoded = self.understood(mock, "a cut log")
        got = decoded["runs"][0]
        rows = len(load(GOLDEN, SMALL, "expected.json")["history"])
        self.checks.equal([row["_step"] for row in got["history"]], list(range(rows)),
                          "rows of a cut log")
        self.checks.equal((got["complete"], got["exitcode"]), (True, 1),
                          "a log without an end is one of a failed run")

    def log_of(self, place, name):
        folder = os.path.join(place, "wandb", name)
        return os.path.join(folder, [each for each in os.listdir(folder)
                                     if each.endswith(".wandb")][0])

    def live(self):
        """`wandb beta sync --live` follows a log that grows piece by piece."""
        place, (name,) = self.offline(SMALL)
        path = self.log_of(place, name)
        with open(path, "rb") as file:
            whole = file.read()
        cuts = [len(whole) // 3, len(whole) * 2 // 3, len(whole)]
        with open(path, "wb") as file:
            file.write(whole[:cuts[0]])
        with Mock() as mock:
            process = self.sdk(mock).start("beta", "sync", "--live", os.path.join("wandb", name),
                                           folder=place)

            def begun():
                runs = mock.decoded()["runs"]
                return runs and runs[0]["history"]
            wait_for(begun, process)
            self.checks.check(process.poll() is None, "it ended before the log did")
            for begin, end in zip(cuts, cuts[1:]):
                with open(path, "ab") as file:
                    file.write(whole[begin:end])
            code, said = wandb_sdk.finish(process)
            self.checks.equal(code, 0, "wandb beta sync --live: exit code (%s)" % said)
            self.compare_synced(SMALL, self.understood(mock, "live"), "live")

    def again(self):
        """A second export under the same id goes on behind the first one's rows."""
        place, _ = self.offline(SMALL, run_id="given-id", log_tables=False)
        _, names = self.offline(SMALL, place, run_id="given-id", log_tables=False)
        self.checks.equal(len(names), 2, "directories of two exports: %s" % names)
        with Mock() as mock:
            self.sync(mock, place, "--yes")
            decoded = self.understood(mock, "two exports")
        rows = 12
        self.checks.equal([(got["name"], [row["_step"] for row in got["history"]])
                           for got in decoded["runs"]],
                          [("given-id", list(range(2 * rows)))], "the rows of both exports")


def main():
    with tempfile.TemporaryDirectory() as folder:
        suite = SyncSuite(os.path.abspath(sys.argv[1]), folder)
        suite.no_key()
        try:
            wandb_sdk.fetch()
        except RuntimeError as error:
            suite.checks.skip(str(error))
            sys.exit(suite.checks.finish())
        suite.goldens()
        suite.cut()
        suite.live()
        suite.again()
    sys.exit(suite.checks.finish())


if __name__ == "__main__":
    main()
