#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A running culprit exports to W&B, is killed again and again, stopped and started: the history of
the run stays contiguous, with no row twice and none lost, and in the end it is complete.

    run_wandb_live.py BINARY [KILLS]      (40 kills)
"""
import collections
import json
import os
import random
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, os.path.join(HERE, "..", "run"))
import run_crash  # noqa: E402
from checks import Checks  # noqa: E402
from wandb_server import KEY, Mock  # noqa: E402

KILLS = 40
SEED = 815


class Run(run_crash.Run):
    """Posts are as close together as they may be, so that kills meet them."""

    def __init__(self, binary, folder, mock):
        super().__init__(binary, folder)
        self.mock = mock
        with open(self.config, encoding="utf-8") as file:
            config = json.load(file)
        config["exporters"]["wandb"] = {
            "base_url": mock.url, "api_key": KEY, "project": "live",
            "post_interval": "10ms", "heartbeat_interval": "50ms",
            "row_interval": "1s", "table_interval": "2s",
            "retry_on_failure": {"initial_interval": "20ms", "max_interval": "100ms"}}
        config["service"]["pipelines"]["memory"]["exporters"].append("wandb")
        with open(self.config, "w", encoding="utf-8") as file:
            json.dump(config, file)


def rank_rows(run):
    """What each row of a rank says, without what the export adds."""
    return [(row["_timestamp"], tuple(sorted(
                (key, value) for key, value in row.items() if "/rank_" in key)))
            for row in run["history"] if any("/rank_" in key for key in row)]


def check_history(checks, run, name):
    checks.equal([row["_step"] for row in run["history"]], list(range(len(run["history"]))),
                 name + ": steps")
    twice = [row for row, count in collections.Counter(rank_rows(run)).items() if count > 1]
    checks.equal(twice, [], name + ": rows that are there twice")


def only_run(checks, mock, name):
    decoded = mock.decoded()
    checks.equal(decoded["violations"], [], name + ": rules of the server that were broken")
    checks.equal([run["name"].rpartition("-")[0] for run in decoded["runs"]],
                 ["culprit-" + run_crash.JOB.name], name + ": runs")
    return decoded["runs"][0]


def undisturbed(binary, checks):
    with tempfile.TemporaryDirectory() as folder, Mock() as mock:
        run = Run(binary, folder, mock)
        run.start()
        run.write_all()
        checks.equal(run.stop(), 0, "undisturbed: exit code: " + run.log_text()[-1500:])
        return only_run(checks, mock, "undisturbed")


def check_ending(checks, run, expected, name):
    checks.check(run["complete"], name + ": the run is complete")
    checks.equal(run["exitcode"], 0, name + ": exit code of the run")
    check_history(checks, run, name)
    got, wanted = set(rank_rows(run)), set(rank_rows(expected))
    checks.equal(sorted(got - wanted), [], name + ": rows that should not be there")
    checks.equal(sorted(wanted - got), [], name + ": rows that are missing")
    checks.equal(run["name"], expected["name"], name + ": id of the run")
    for key in ("culprit_headline", "culprit_verdict_id", "culprit_severity", "culprit_who",
                "culprit_verdict_count", "culprit_job_id"):
        checks.equal(run["summary"].get(key), expected["summary"].get(key), name + ": " + key)
    for kind in ("culprit_verdicts", "culprit_report"):
        path = run["summary"].get(kind, {}).get("path")
        checks.check(path in run["files"], "%s: %s is uploaded: %r" % (name, kind, path))


def killed(binary, kills, expected, checks):
    with tempfile.TemporaryDirectory() as folder, Mock() as mock:
        run = Run(binary, folder, mock)
        run.start()
        run.kill_at_random(kills, random.Random(SEED))
        checks.equal(run.stop(), 0, "killed: exit code: " + run.log_text()[-1500:])
        checks.equal(run.failures, [], "killed: requests that were not acknowledged")
        checks.check("Sanitizer" not in run.log_text(), "killed: the sanitizer complains")
        checks.check(KEY not in run.log_text(), "killed: the key is in the log")
        check_ending(checks, only_run(checks, mock, "killed"), expected, "killed")


def stopped(binary, expected, checks):
    """Stopped in an orderly way half way through, so that the run is complete twice."""
    with tempfile.TemporaryDirectory() as folder, Mock() as mock:
        run = Run(binary, folder, mock)
        run.start()
        half = len(run_crash.ROUNDS) // 2
        for number in range(half):
            run.write(number)
        checks.equal(run.stop(), 0, "stopped: exit code: " + run.log_text()[-1500:])
        check_history(checks, only_run(checks, mock, "stopped half way"), "stopped half way")
        run.start()
        for number in range(half, len(run_crash.ROUNDS)):
            run.write(number)
        checks.equal(run.stop(), 0, "stopped: exit code of the second: " + run.log_text()[-1500:])
        done = only_run(checks, mock, "stopped")
        checks.equal(done["finishes"], 2, "stopped: how often it was complete")
        check_history(checks, done, "stopped")
        # What was said early, at the first end, is said with what was known then.
        missing = set(rank_rows(expected)) - set(rank_rows(done))
        checks.check(len(missing) <= run_crash.JOB.ranks,
                     "stopped: rows that are missing: %r" % sorted(missing)[:5])


def silent(binary, checks):
    """Without anything to say the run is kept alive."""
    with tempfile.TemporaryDirectory() as folder, Mock() as mock:
        run = Run(binary, folder, mock)
        run.start()
        run.write_all()
        checks.check(mock.wait_for(lambda: mock.heartbeats() >= 3), "there are heartbeats")
        checks.check(not only_run(checks, mock, "silent")["complete"], "silent: it goes on")
        checks.equal(run.stop(), 0, "silent: exit code")
        checks.check(only_run(checks, mock, "silent")["complete"], "silent: complete at the end")


def main():
    binary = os.path.abspath(sys.argv[1])
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else KILLS
    checks = Checks()
    expected = undisturbed(binary, checks)
    check_ending(checks, expected, expected, "undisturbed")
    killed(binary, kills, expected, checks)
    stopped(binary, expected, checks)
    silent(binary, checks)
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
