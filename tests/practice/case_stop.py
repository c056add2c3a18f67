# SPDX-License-Identifier: Apache-2.0
"""A stop in the middle of something, and a reader that goes away."""
import glob
import gzip
import os
import signal
import subprocess

from process import environment
from running import wait_for
from world import JOB, Live, append, telemetry, write


def receivers(path):
    return {"file": {"include": [path], "poll_interval": "50ms"}}


def case_stop_while_compressing(suite, folder):
    """SIGTERM comes while a log is being compressed, or a document is being written: with a store
    the next start reads it once it is whole, each line once."""
    lines = telemetry(0)
    packed = gzip.compress(b"".join(lines))
    document = b"[" + b",".join(line.rstrip() for line in lines) + b"]\n"
    for name, data in (("rank0.jsonl.gz", packed), ("rank0.json", document)):
        path = write(os.path.join(folder, "in", name), data[:len(data) // 2])
        with Live(suite.binary, os.path.join(folder, name), receivers(path), store=True) as live:
            live.wait(lambda: live.metric("culprit_pipeline_evaluations_total") is not None)
            live.stop(suite.checks, name + ", half")
            early = live.log().rsplit('"C1004"', 1)[1]
            append(path, data[len(data) // 2:])
            live.start()
            suite.checks.check(live.wait(lambda: live.accepted() >= len(lines)),
                               name + ": the next start reads it whole: " + early)
            live.stop(suite.checks, name + ", whole")
            suite.checks.check(" 0 events accepted" in early,
                               name + ": nothing of the half was taken: " + early)


def dumps():
    """A Flight Recorder dump as JSON and as a pickle."""
    found = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden",
                         "real_flight_recorder", "gloo_missing_rank")
    for kind in ("json", "pickle"):
        path = sorted(glob.glob(os.path.join(found, kind, "*")))[0]
        with open(path, "rb") as file:
            yield "nccl_trace_rank_0." + kind, file.read()


def case_stop_behind_a_dump(suite, folder):
    """SIGTERM comes right behind a dump, which is often the last that a job writes: with a store,
    too, it is read at the stop, and one that is not whole is left to the next start."""
    for name, data in dumps():
        cut = data.rfind(b"}", 0, len(data) // 2) + 1 if name.endswith("json") else len(data) // 2
        for what, size in (("whole", len(data)), ("half", cut)):
            path = write(os.path.join(folder, what, "in", name), data[:size])
            with Live(suite.binary, os.path.join(folder, what, name), receivers(path),
                      store=True) as live:
                live.wait(lambda: live.metric("culprit_pipeline_evaluations_total") is not None)
                live.stop(suite.checks, name + ", " + what)
                said = live.log()
                if what == "half":
                    append(path, data[size:])
                    live.start()
                    suite.checks.check(live.wait(live.accepted), name + ": the next start reads it")
                    live.stop(suite.checks, name + ", then whole")
            taken = " 0 events accepted" not in said.rsplit('"C1004"', 1)[1]
            suite.checks.equal((taken, "it is not whole yet" in said),
                               (what == "whole", what == "half"), name + ", " + what + ": " + said)


def case_compressed_that_grows(suite, folder):
    """A compressed log grows by another member, while it is followed and while nobody looks: what
    is new is read, once."""
    lines = telemetry(0)
    path = write(os.path.join(folder, "in", "rank0.jsonl.gz"), gzip.compress(b"".join(lines[:50])))
    with Live(suite.binary, os.path.join(folder, "run"), receivers(path), store=True) as live:
        suite.checks.check(live.wait(lambda: live.accepted() >= 50), "the first member")
        append(path, gzip.compress(b"".join(lines[50:90])))
        suite.checks.check(live.wait(lambda: live.accepted() >= 90), "the second member")
        live.stop(suite.checks, "members")
        live.start()
        append(path, gzip.compress(b"".join(lines[90:100])))
        suite.checks.check(live.wait(lambda: live.accepted() >= 10), "a member after a restart")
        live.stop(suite.checks, "members, again")
        suite.checks.check(" 10 events accepted" in live.log().rsplit('"C1004"', 1)[1],
                           "only what is new: " + live.log()[-300:])


def case_reader_gone(suite, folder):
    """Who reads standard output goes away: that is said, and the exit code tells of it."""
    live = Live(suite.binary, os.path.join(folder, "run"),
                receivers(os.path.join(folder, "in", "*.jsonl")))
    with open(live.config, encoding="utf-8") as file:
        text = file.read().replace('{"path": "%s"}' % live.verdicts, '{"path": "-"}')
    write(live.config, text.encode())
    with open(live.log_path, "wb") as log:
        process = subprocess.Popen([suite.binary, "run", "--config", live.config], stderr=log,
                                   stdout=subprocess.PIPE, env=environment())
    try:
        process.stdout.close()
        wait_for(lambda: "C1001" in live.log(), process)
        for rank in range(JOB.ranks):
            write(os.path.join(folder, "in", "rank%d.jsonl" % rank), *telemetry(rank))
        wait_for(lambda: live.accepted() >= sum(len(telemetry(r)) for r in range(JOB.ranks)),
                 process)
        process.send_signal(signal.SIGTERM)
        code = process.wait(60)
    finally:
        process.kill()
        process.wait()
    suite.checks.check("C3001" in live.log(), "it is said: " + live.log()[-600:])
    suite.checks.equal(code, 74, "the exit code")
