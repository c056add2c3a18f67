#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""culprit is killed between an alert and the checkpoint that would know of it, and begins without a
server: what docs/delivery.md says of the wandb exporter.

    run_wandb_crash.py BINARY
"""
import os
import re
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from checks import Checks  # noqa: E402
from ports import free_port  # noqa: E402
from process import environment  # noqa: E402
from run_wandb_metrics import JOB, leak  # noqa: E402
from running import wait_for  # noqa: E402
from run_wandb_runs import STOP_S, World, times  # noqa: E402
from wandb_server import Mock  # noqa: E402

NEVER = {"initial_interval": "1h", "max_interval": "1h"}


def log_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def start(world, path, log, **options):
    before = log_of(log).count("C1001")
    with open(log, "ab") as said:
        process = subprocess.Popen([world.binary, "run", "--config", world.config(path, **options)],
                                   stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                                   env=environment())
    if not wait_for(lambda: log_of(log).count("C1001") > before):
        raise RuntimeError("culprit did not start: " + log_of(log))
    return process


def stop(process, log, checks, name):
    process.send_signal(signal.SIGTERM)
    checks.equal(process.wait(STOP_S), 0, name + ": exit code: " + log_of(log)[-1500:])
    checks.check("Sanitizer" not in log_of(log), name + ": the sanitizer complains")


def an_alert_comes_twice(world, checks):
    """The server has it and its answer is cut off; then SIGKILL."""
    path, log = world.write("leaky.jsonl", leak()), world.write("log", "")

    def alerts():
        return [one for found in world.mock.decoded()["runs"] for one in found["alerts"]]
    world.mock.call("POST", "/__fault", "at=graphql:notifyScriptableRunAlert,kind=truncate")
    options = {"store": True, "alert_wait": "1h", "retry_on_failure": NEVER}
    process = start(world, path, log, **options)
    checks.check(world.mock.wait_for(alerts), "no alert came: " + log_of(log)[-1500:])
    process.kill()
    process.wait()
    process = start(world, path, log, **options)
    checks.check(world.mock.wait_for(lambda: len(alerts()) > 1),
                 "the alert does not come again: " + log_of(log)[-1500:])
    stop(process, log, checks, "twice")
    first, second = alerts()
    checks.equal({key: value for key, value in second.items() if key != "dropped"},
                 {key: value for key, value in first.items() if key != "dropped"},
                 "the same alert")
    checks.check(re.search(r"^Verdict: [a-z_]+:[0-9a-f]{16}$", first["text"], re.MULTILINE),
                 "its id: " + first["text"])
    checks.equal([first["dropped"], second["dropped"]], [False, True], "W&B shows it once")
    one, = world.runs()
    checks.check(one["complete"], "twice: complete")
    seconds = {int(at) for at in times(one)}
    checks.equal(len(times(one)), len(seconds) * JOB.ranks, "twice: no row is there twice")


def a_server_that_comes_late(world, checks):
    path, log, port = world.write("leaky.jsonl", leak()), world.write("log", ""), free_port()
    away = "http://127.0.0.1:%d" % port
    process = start(world, path, log, base_url=away)
    checks.check(world.mock.wait_for(lambda: log_of(log).count("C3002") > 0),
                 "that it is away is told: " + log_of(log)[-1500:])
    with Mock("--port", str(port)) as late:
        checks.check(late.wait_for(lambda: any(one["alerts"] for one in late.decoded()["runs"])),
                     "then all comes: " + log_of(log)[-1500:])
        stop(process, log, checks, "late")
        decoded = late.decoded()
        checks.equal(decoded["violations"], [], "late: rules of the server that were broken")
        one, = decoded["runs"]
        checks.check(one["complete"] and len(one["alerts"]) == 1, "late: the run")
        seconds = {int(at) for at in times(one)}
        checks.equal(len(times(one)), len(seconds) * JOB.ranks, "late: each row once")


def main():
    binary = os.path.abspath(sys.argv[1])
    checks = Checks()
    for part in (an_alert_comes_twice, a_server_that_comes_late):
        with World(binary, checks) as world:
            part(world, checks)
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
