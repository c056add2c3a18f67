#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""culprit run with a store and the W&B exporter in mode: offline, killed again and again.

    run_wandb_offline_crash.py BINARY [KILLS]      (30 kills)

Events arrive as in run/run_crash.py. After the last restart there is one run directory whose log is
whole: its rows and its summary are those of a run that was not disturbed. Directories that a crash
made superfluous are named replaced-*.
"""
import json
import os
import random
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, os.path.join(HERE, "..", "run"))
from checks import Checks  # noqa: E402
import run_crash  # noqa: E402
import wandb_log  # noqa: E402

# What differs from one run to the next. The sizes of devices, from which utilization comes, are not
# part of a checkpoint.
MOVING = ("_runtime", "_wandb", "culprit_report", "culprit_verdicts",
          "culprit_memory_by_rank_table")


def lasting(values):
    return {key: value for key, value in values.items()
            if key not in MOVING}


class Run(run_crash.Run):
    def __init__(self, binary, folder):
        super().__init__(binary, folder)
        self.directory = os.path.join(folder, "wandb")
        with open(self.config, encoding="utf-8") as file:
            config = json.load(file)
        config["exporters"]["wandb"] = {"mode": "offline", "entity": "ent",
                                        "directory": self.directory, "post_interval": "10ms",
                                        "row_interval": "1s", "table_interval": "1s"}
        config["service"]["pipelines"]["memory"]["exporters"].append("wandb")
        with open(self.config, "w", encoding="utf-8") as file:
            json.dump(config, file)

    def run_directories(self):
        return sorted(name for name in os.listdir(self.directory)
                      if name.startswith("offline-run-"))

    def records(self):
        (name,) = self.run_directories()
        folder = os.path.join(self.directory, name)
        (log,) = [each for each in os.listdir(folder) if each.endswith(".wandb")]
        return folder, wandb_log.read(os.path.join(folder, log))


def log_is_whole(run, checks, what):
    """-> the rows, and the summary as it is at the end"""
    others = [name for name in os.listdir(run.directory)
              if not name.startswith(("offline-run-", "replaced-offline-run-"))]
    checks.equal((len(run.run_directories()), others), (1, []), what + ": run directories")
    folder, records = run.records()
    kinds = [kind for kind, _ in records]
    checks.equal(kinds[:2], ["header", "run"], what + ": how the log begins")
    checks.equal((kinds.count("header"), kinds.count("run")), (1, 1), what + ": beginnings")
    rows = [wandb_log.items(message) for kind, message in records if kind == "history"]
    checks.check(len(rows) > 10, "%s: %d rows" % (what, len(rows)))
    checks.equal([row["_step"] for row in rows], list(range(len(rows))), what + ": steps")
    paths = [message for kind, message in records if kind == "files"]
    for message in paths:
        path = wandb_log.fields(wandb_log.fields(message)[0][1])[0][1].decode()
        checks.check(os.path.isfile(os.path.join(folder, "files", path)), what + ": no " + path)
    summary = {}
    for kind, message in records:
        if kind == "summary":
            summary.update(wandb_log.items(message))
    return [lasting(row) for row in rows], lasting(summary)


def exported(binary, kills, checks, what, early=False):
    """`early`: killed before anything was read, when the store holds a first checkpoint."""
    with tempfile.TemporaryDirectory() as folder:
        run = Run(binary, folder)
        run.start()
        if early:
            run.wait_for_start()
            time.sleep(0.2)
            run.process.kill()
            run.process.wait()
            run.start()
        if kills:
            run.kill_at_random(kills, random.Random(run_crash.SEED))
        else:
            run.write_all()
        checks.equal(run.stop(), 0, what + ": exit code: " + run.log_text()[-1500:])
        checks.equal(run.failures, [], what + ": requests that were not acknowledged")
        log = run.log_text()
        checks.check("Sanitizer" not in log, lambda: what + ": the sanitizer complains: "
                     + log[log.find("Sanitizer") - 200:][:3000])
        return log_is_whole(run, checks, what)


def main():
    binary = os.path.abspath(sys.argv[1])
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else 30
    checks = Checks()
    rows, summary = exported(binary, 0, checks, "undisturbed")
    checks.check("culprit_verdict_id" in summary, "undisturbed: no verdict: %s" % summary)
    early_rows, _ = exported(binary, 0, checks, "killed before the first event", early=True)
    checks.equal(early_rows, rows, "killed before the first event: rows")
    killed_rows, killed_summary = exported(binary, kills, checks, "killed")
    for got, wanted in zip(killed_rows, rows):
        if not checks.equal(got, wanted, "killed: a row"):
            break
    checks.equal(len(killed_rows), len(rows), "killed: rows")
    checks.equal(killed_summary, summary, "killed: the summary")
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
