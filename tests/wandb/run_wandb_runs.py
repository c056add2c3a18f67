#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which runs of W&B a job becomes: one for each start of it, whatever its launcher calls it, and
never one that others began.

    run_wandb_runs.py BINARY
"""
import json
import os
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, os.path.join(HERE, "..", "healthy"))
import generate  # noqa: E402
from checks import Checks  # noqa: E402
from process import environment, run  # noqa: E402
from running import PATIENCE_S  # noqa: E402
from wandb_server import KEY, Mock  # noqa: E402

JOB = "none"     # what torchrun calls a job that was given no name
RANKS = 3
STOP_S = PATIENCE_S


def lines(session, later_s, steps=8, last_s=None):
    """A job's lines by time; each start of it has sessions of its own."""
    job = generate.Job(JOB, 5, RANKS, steps=steps, skew_s=0.0)
    found = []
    for rank in range(RANKS):
        for line in generate.Rank(job, rank).lines():
            event = json.loads(line)
            event["session_id"] = "%s-%d" % (session, rank)
            event["timestamp_ns"] += later_s * 1_000_000_000
            found.append(event)
    found.sort(key=lambda event: event["timestamp_ns"])
    if last_s is not None:
        limit = generate.START_NS + int((later_s + last_s) * 1e9)
        found = [event for event in found if event["timestamp_ns"] < limit]
    return "".join(json.dumps(event) + "\n" for event in found)


class World:
    def __init__(self, binary, checks):
        self.binary, self.checks = binary, checks

    def __enter__(self):
        self.place = tempfile.TemporaryDirectory()
        self.folder = self.place.name
        self.mock = Mock().__enter__()
        return self

    def __exit__(self, *_):
        self.mock.__exit__()
        self.place.cleanup()

    def write(self, name, text, how="w"):
        path = os.path.join(self.folder, name)
        with open(path, how, encoding="utf-8") as file:
            file.write(text)
        return path

    def config(self, path, store=False, verdicts=None, **options):
        exporter = {"base_url": self.mock.url, "api_key": KEY, "project": "proj",
                    "post_interval": "10ms", "row_interval": "1s", "table_interval": "2s",
                    "retry_on_failure": {"initial_interval": "20ms", "max_interval": "100ms"}}
        exporter.update(options)
        service = {"pipelines": {"memory": {
            "receivers": ["file"], "preset": "memory", "exporters": ["wandb"],
            "evaluate_every": "1s", "allowed_lateness": "5s", "settle": "1s",
            "idle_timeout": "1h", "caught_up_timeout": "1h"}}}
        config = {"receivers": {"file": {"include": [path], "poll_interval": "20ms"}},
                  "processors": {"job_filter": {"job_id": "each"}},
                  "exporters": {"wandb": exporter}, "service": service}
        if verdicts:
            config["exporters"]["json"] = {"path": verdicts}
            service["pipelines"]["memory"]["exporters"].append("json")
        if store:
            config["extensions"] = {"file_storage": {
                "directory": os.path.join(self.folder, "store")}}
            service["extensions"] = ["file_storage"]
        return self.write("culprit.json", json.dumps(config))

    def once(self, path, code=0, **options):
        done = run(self.binary, "run", "--once", "--config", self.config(path, **options))
        self.checks.equal(done.code, code, "exit code: " + done.errors()[-1500:])
        return done.errors()

    def live(self, path, until, **options):
        """Runs until the server's runs are so, then stops; what it said."""
        process = subprocess.Popen(
            [self.binary, "run", "--config", self.config(path, **options)],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment())
        seen = self.mock.wait_for(lambda: until(self.mock.decoded()["runs"]))
        process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=STOP_S)[1].decode()
        self.checks.check(seen, "the runs did not become so: " + said[-1500:])
        self.checks.equal(process.returncode, 0, "exit code: " + said[-1500:])
        return said

    def runs(self):
        decoded = self.mock.decoded()
        self.checks.equal(decoded["violations"], [], "rules of the server that were broken")
        return decoded["runs"]


def times(found):
    return [row["_timestamp"] for row in found["history"]
            if any("/rank_" in key for key in row)]


def two_jobs_of_one_name(world, checks):
    """The later one first: rows of the earlier are not taken for rows that are there."""
    for name, later_s in (("b", 1000), ("a", 0)):
        world.once(world.write(name + ".jsonl", lines(name, later_s)))
    runs = world.runs()
    checks.equal(len({one["name"] for one in runs}), 2, "two jobs: ids")
    checks.check(all(one["name"].startswith("culprit-none-") for one in runs), "two jobs: names")
    checks.equal([one["display_name"] for one in runs], [JOB, JOB], "two jobs: display names")
    checks.equal([len(times(one)) for one in runs], [len(times(runs[0]))] * 2, "two jobs: rows")
    checks.check(times(runs[1])[-1] < times(runs[0])[0], "two jobs: rows of each")
    rows = len(runs[1]["history"])
    said = world.once(os.path.join(world.folder, "a.jsonl"))
    runs = world.runs()
    checks.equal((len(runs), len(runs[1]["history"])), (2, rows), "the same again: runs and rows")
    checks.check("C3410" in said, "the same again: it says that the rows are there: " + said)


def a_job_that_starts_again(world, checks):
    """Live, with the same name: rows up to the second start are the first run's."""
    path = world.write("none.jsonl", lines("a", 0) + lines("b", 60))
    world.live(path, lambda runs: len(runs) == 2 and len(runs[1]["history"]) > 3)
    runs = world.runs()
    start = generate.START_NS / 1e9 + 60
    checks.equal([one["complete"] for one in runs], [True, True], "started again: complete")
    checks.check(times(runs[0]) and times(runs[0])[-1] < start, "started again: the first's rows")
    checks.check(times(runs[1]) and times(runs[1])[0] >= start, "started again: the second's rows")
    seconds = len({int(one) for one in times(runs[0])})
    checks.equal(len(times(runs[0])), seconds * RANKS, "started again: the first is whole")
    # Whoever reads it again, without a store, finds the same runs.
    names = [one["name"] for one in runs]
    world.live(path, lambda runs: runs[1]["finishes"] == 1 and not runs[1]["complete"])
    checks.equal([one["name"] for one in world.runs()], names, "read again: runs")


def rows_of(found):
    return [tuple(sorted((key, value) for key, value in row.items()
                         if "/rank_" in key or key == "_timestamp"))
            for row in found["history"] if any("/rank_" in key for key in row)]


def killed_without_a_store(world, checks):
    """Inputs are read again from their beginning: each row is there once."""
    path = world.write("none.jsonl", "")
    text = lines("a", 0, steps=16)
    world.once(world.write("whole.jsonl", text), project="whole")
    process = None
    parts = 5
    at = 0
    for part in range(3, parts + 1):
        end = text.rfind("\n", 0, len(text) * part // parts) + 1
        world.write("none.jsonl", text[at:end], "a")
        at = end
        process = subprocess.Popen([world.binary, "run", "--config", world.config(path)],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   env=environment())
        # All but what may still be late, and the last two stretches.
        due = json.loads(text[:end].rstrip().rpartition("\n")[2])["timestamp_ns"] / 1e9 - 7.5

        def until(due=due):
            found = [one for one in world.mock.decoded()["runs"] if one["project"] == "proj"]
            return found and times(found[0]) and times(found[0])[-1] >= due
        checks.check(world.mock.wait_for(until), "killed: rows came in part %d" % part)
        if part < parts:
            process.kill()
            process.wait()
    process.send_signal(signal.SIGTERM)
    checks.equal(process.wait(STOP_S), 0, "killed: exit code")
    whole, got = sorted(world.runs(), key=lambda one: one["project"] == "proj")
    checks.equal(got["name"], whole["name"], "killed: one run")
    checks.equal(rows_of(got), rows_of(whole), "killed: rows")
    stamps = [row["_timestamp"] for row in got["history"]]
    checks.equal(stamps, sorted(set(stamps)), "killed: rows in order of time")


def a_restart_between(world, checks):
    """It was stopped with a store, and the job started again meanwhile."""
    path = world.write("none.jsonl", lines("a", 0))
    world.live(path, lambda runs: runs and len(runs[0]["history"]) > 3, store=True)
    rows = len(world.runs()[0]["history"])
    world.write("none.jsonl", lines("b", 60), "a")
    world.live(path, lambda runs: len(runs) == 2 and len(runs[1]["history"]) > 3, store=True)
    runs = world.runs()
    checks.check(len(runs[0]["history"]) >= rows, "a restart between: rows of the first")
    checks.equal(len(set(times(runs[0]))), len(times(runs[0])), "a restart between: none twice")
    checks.check(times(runs[1])[0] >= generate.START_NS / 1e9 + 60,
                 "a restart between: rows of the second")
    checks.equal([one["complete"] for one in runs], [True, True], "a restart between: complete")


def runs_of_others(world, checks):
    path = world.write("a.jsonl", lines("a", 0))
    world.mock.call("POST", "/__run", json.dumps({
        "name": "train", "project": "proj", "complete": True, "meta": {"displayName": "mine"},
        "config": {"_wandb": {"value": {"t": {}}}, "lr": {"value": 1}},
        "history": [{"_step": 7, "_timestamp": 1.7e9, "_runtime": 1.0, "loss": 2}]}))
    said = world.once(path, code=74, run_id="train")
    checks.check("C3409" in said and "not begun by culprit" in said, "refused: " + said[-800:])
    one = world.runs()[0]
    checks.equal((len(one["history"]), one["display_name"], one["finishes"]), (1, "mine", 0),
                 "refused: the run is as it was")
    world.once(path, run_id="train", join_run=True)
    one = world.runs()[0]
    checks.equal((one["display_name"], one["finishes"], one["config"]["lr"]), ("mine", 0, 1),
                 "joined: the run keeps its name, its config and is not finished")
    checks.check(len(times(one)) > RANKS and one["history"][1]["_step"] == 8,
                 "joined: rows are behind its own")
    done = run(world.binary, "validate", "--config", world.config(path, join_run=True))
    checks.check(done.code != 0 and "run_id" in done.errors() + done.text(),
                 "join_run without run_id: " + done.errors())


def a_deleted_run(world, checks):
    """Deleted while its job runs, with another job beside it."""
    path = world.write("a.jsonl", lines("a", 0, last_s=8))
    other = lines("o", 0).replace('"none"', '"other"')
    world.write("other.jsonl", other)
    done = []

    def until(runs):
        found = [one["name"] for one in runs
                 if one["name"].startswith("culprit-none") and one["history"]]
        if not done and found:
            world.mock.call("POST", "/__delete", "proj/" + found[0])
            done.append(found[0])
            rest = lines("a", 0)[len(lines("a", 0, last_s=8)):]
            world.write("a.jsonl", rest, "a")
        return done and any(one["name"] == done[0] + "-2" for one in runs)

    said = world.live(os.path.join(world.folder, "*.jsonl"), until)
    runs = world.runs()
    checks.equal(sorted(one["name"].startswith("culprit-other") for one in runs), [False, True],
                 "deleted: runs: %r" % [one["name"] for one in runs])
    checks.equal([one["complete"] for one in runs], [True, True], "deleted: complete")
    checks.check("C3411" in said, "deleted: it says so: " + said[-800:])
    whole = [one for one in runs if "other" in one["name"]][0]
    checks.equal(len(times(whole)), len({int(one) for one in times(whole)}) * RANKS,
                 "deleted: the other one is whole")


def main():
    binary = os.path.abspath(sys.argv[1])
    checks = Checks()
    for part in (two_jobs_of_one_name, a_job_that_starts_again, killed_without_a_store,
                 a_restart_between,
                 runs_of_others, a_deleted_run):
        with World(binary, checks) as world:
            part(world, checks)
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
