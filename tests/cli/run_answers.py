#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The answer is the same in every view.

    run_answers.py BINARY

Of runs that failed in many ways, of healthy ones and of logs that nobody knows: the headline of the
report, of the report with all details, of the page, of the JSON of verdicts and of culprit's own
log. Nothing that tells of a failure is called healthy.
"""
import html
import json
import os
import re
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from checks import Checks  # noqa: E402
from process import run  # noqa: E402

GOLDEN = os.path.join(HERE, "..", "golden")
# With the beginning of the answer.
RUNS = [(folder, answer) for answer, folders in {
    "Healthy: ": ["real/healthy"],
    "Not explained: ": [
        "real_exits/hang-2", "field/32-oom-pod-systemd", "field/40-storage-errors", "field/56-gloo-and-store-victims",
        "detectors/unexplained/oom_kill_without_a_rank",
        "detectors/unexplained/node_condition_alone",
        "detectors/unexplained/ranks_that_lost_their_peers",
    ],
    "Kernel panic on ": ["field/38-panic-oops"],
    "A processor of ": ["field/37-lockups-and-hung-tasks"],
    "Nothing was found": ["detectors/unexplained/negative_all_went_well", "real_exits/healthy-2",
                          "real_exits/healthy-4"],
    "": [
        "real/leak-rank2", "real/sigkill-rank1", "real/torn-line-rank3", "real_exits/abort-2",
        "real_exits/cuda_oom-4", "real_exits/exception-6", "real_exits/host_oom-2",
        "real_exits/node_lost-4", "real_exits/preempted-4", "real_exits/restart_fail-4",
        "real_exits/segfault-4", "real_exits/sigkill-4", "real_hangs/stopped",
        "detectors/gpu_fault", "detectors/fabric_link", "detectors/nccl_hang",
        "detectors/thermal_throttle", "detectors/hbm_ecc", "detectors/pcie_aer",
        "detectors/pod_evicted", "detectors/incident", "detectors/slow_rank",
    ],
}.items() for folder in folders]


def inputs_of(folder):
    """Events of the first case of a detector; else what there is but for answers."""
    path = os.path.join(GOLDEN, folder)
    if not os.path.exists(os.path.join(path, "events.jsonl")) and folder.startswith("detectors/"):
        path = os.path.join(path, sorted(os.listdir(path))[0])
    events = os.path.join(path, "events.jsonl")
    if os.path.exists(events):
        return [events]
    if folder.startswith("field/"):
        return [os.path.join(path, name) for name in sorted(os.listdir(path))
                if name.startswith("input")]
    return [path]


class Suite:
    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder
        self.checks = Checks()
        self.code = 0  # that is expected

    def analyze(self, *arguments):
        done = run(self.binary, "analyze", *arguments)
        self.checks.check(done.code == self.code, lambda: "%s: %d: %s" % (arguments, done.code,
                                                                  done.errors()))
        return done.out.decode("utf-8")

    def report(self, inputs, *more):
        """Its first line, and of several incidents that of the first."""
        text = self.analyze("-q", "--set", "exporters.text.width=400", *more, *inputs)
        lines = text.splitlines()
        if re.match(r"\d+ incidents: ", lines[0]):
            lines = lines[lines.index("Incident 1 of %s" % lines[0].split()[0]) + 1:]
        return re.sub(r" \(resolved\)$", "", lines[0])

    def page(self, inputs):
        path = os.path.join(self.folder, "page.html")
        self.analyze("-q", "--html", path, *inputs)
        with open(path, encoding="utf-8") as file:
            found = re.search(r'class="headline">([^<]*)<', file.read())
        return html.unescape(found.group(1)) if found else ""

    def log(self, inputs):
        """The messages in culprit's own log."""
        config = os.path.join(self.folder, "log.yaml")
        with open(config, "w", encoding="utf-8") as file:
            json.dump({
                "receivers": {"file": {"include": inputs, "start_at": "beginning"}},
                "processors": {"rank_group": {"retention": "all"},
                               "phase_attribution": {"retention": "all"}},
                "exporters": {"log": {}},
                "service": {"pipelines": {"p": {"receivers": ["file"], "preset": "all",
                                                "exporters": ["log"]}}}}, file)
        done = run(self.binary, "run", "--once", "--config", config)
        return [json.loads(line)["msg"] for line in done.errors().splitlines() if line[:1] == "{"]

    def one(self, folder, inputs, answer, code=0):
        self.code = code
        verdicts = [json.loads(line) for line in
                    self.analyze("-q", "--output", "verdicts", *inputs).splitlines()]
        headline = self.report(inputs)
        self.checks.check(headline.startswith(answer), "%s: %s" % (folder, headline))
        self.checks.equal(self.report(inputs, "--verbose"), headline, folder + ", --verbose")
        self.checks.equal(self.page(inputs), headline, folder + ", page")
        found = [one for one in verdicts if one["state"] != "resolved"]
        if found:
            self.checks.check(headline in [one["headline"] for one in verdicts],
                              lambda: "%s: no verdict says %s" % (folder, headline))
            self.checks.check(any(headline in message for message in self.log(inputs)),
                              folder + ": not in the log")
        else:
            self.checks.check(headline.startswith(("Healthy: ", "Nothing was found")),
                              "%s: %s" % (folder, headline))

    def empty(self):
        """That nothing stands in an input is said, and of which."""
        names = {name: os.path.join(self.folder, name)
                 for name in ("none.log", "blank.log", "mark.log", "list.json", "word.log")}
        for name, text in {"none.log": b"", "blank.log": b"\n \n\r\n",
                           "mark.log": b"\xef\xbb\xbf\n", "list.json": b"[]\n",
                           "word.log": b"hello\n"}.items():
            with open(names[name], "wb") as file:
                file.write(text)
        nothing = "Nothing was found, and nothing is known: "
        for name in ("none.log", "blank.log", "mark.log", "list.json"):
            self.one(name, [names[name]], nothing + names[name] + " is empty.")
        self.one("several", [names["none.log"], names["blank.log"]],
                 nothing + names["blank.log"] + " and " + names["none.log"] + " are empty.")
        self.one("one of two", [names["none.log"], names["word.log"]],
                 nothing + "none of what was read is of a kind")
        names["torn.jsonl"] = os.path.join(self.folder, "torn.jsonl")
        with open(names["torn.jsonl"], "w", encoding="utf-8") as file:
            file.write('{"schema_version": 3, "rank": 0}\n')
        self.one("refused", [names["torn.jsonl"]], nothing + "1 record was refused", 65)


def main():
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(os.path.abspath(sys.argv[1]), folder)
        for run_folder, answer in RUNS:
            suite.one(run_folder, inputs_of(run_folder), answer)
        suite.empty()
        return suite.checks.finish()


if __name__ == "__main__":
    sys.exit(main())
