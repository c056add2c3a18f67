# SPDX-License-Identifier: Apache-2.0
"""What was taken once and comes again: copies, retries, files that are read anew."""
import glob
import os
import shutil

from ports import free_port
from process import run
from world import (JOB, Live, analyze, append, post, said, said_of, telemetry, write,
                   write_job)

HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = os.path.join(HERE, "..", "golden", "detectors")


def case_doubled_folder(suite, folder):
    """A folder of telemetry and its backup side by side: the answer is that of the folder alone.
    The summary counts what stormlog counts."""
    once = write_job(os.path.join(folder, "once", "run"))
    twice = write_job(os.path.join(folder, "twice", "run"))
    shutil.copytree(twice, twice + ".backup")
    wanted = said_of(analyze(suite.binary, once).text())
    suite.checks.check(any(one["kind"] == "leak" for one in wanted), "the job has a leak")
    suite.checks.equal(said_of(analyze(suite.binary, os.path.dirname(twice)).text()), wanted,
                       "a folder and its backup")
    lines = [run(suite.binary, "analyze", path).text() for path in (once, os.path.dirname(twice))]
    looked_at = [[line for line in text.splitlines() if "looked at" in line] for text in lines]
    suite.checks.equal(looked_at[1], looked_at[0], "what was looked at is told once")


def case_doubled_lines(suite, folder):
    """Each line twice, as a shipper writes it that did not hear that it was taken: for each kind
    of finding the same verdicts."""
    write_job(os.path.join(folder, "memory"))
    inputs = [sorted(glob.glob(os.path.join(folder, "memory", "*.jsonl")))]
    for detector in sorted(glob.glob(os.path.join(GOLDEN, "*", ""))):
        cases = sorted(glob.glob(os.path.join(detector, "*", "events.jsonl")))
        inputs += [[path] for path in (cases if suite.long else cases[:2])]
    for paths in inputs:
        texts = []
        for times in (1, 2):
            into = os.path.join(folder, str(times))
            shutil.rmtree(into, ignore_errors=True)
            for path in paths:
                with open(path, "rb") as file:
                    lines = file.read().splitlines(keepends=True)
                copy = write(os.path.join(into, os.path.basename(path)),
                             *(line for line in lines for _ in range(times)))
                os.utime(copy, (JOB.ranks + 10**9, 10**9))
            texts.append(said_of(analyze(suite.binary, into).text()))
        suite.checks.equal(texts[1], texts[0], "each line twice of " + paths[0])


def leaks(live):
    last = {one["id"]: said(one) for one in live.found("memory_first_cause")}
    return [one for one in last.values() if one["kind"] == "leak"]


def case_doubled_requests(suite, folder):
    """A sender posts each request twice: the verdict is that of each once, and what came again is
    counted."""
    answers = []
    for times in (1, 2):
        port = free_port()
        receivers = {"http": {"endpoint": "127.0.0.1:%d" % port}}
        with Live(suite.binary, os.path.join(folder, str(times)), receivers) as live:
            lines = [telemetry(rank) for rank in range(JOB.ranks)]
            for begin in range(0, max(map(len, lines)), 20):
                for of_rank in lines:
                    for _ in range(times):
                        post(port, b"".join(of_rank[begin:begin + 20]))
            samples = sum(b'"sample"' in line for of_rank in lines for line in of_rank)
            repeated = live.wait(lambda: times == 1 or live.metric("culprit_repeated_samples_total"))
            live.stop(suite.checks, "requests %d times" % times)
        if times == 2:
            suite.checks.equal(repeated, samples, "samples that came again are counted")
        answers.append(leaks(live))
    suite.checks.check(answers[0], "the leak is found")
    suite.checks.equal(answers[1], answers[0], "each request twice")


def case_replaced_files(suite, folder):
    """Files that are put anew under their names while they grow, as rsync does: what was read
    before counts once."""
    answers = []
    lines = [telemetry(rank) for rank in range(JOB.ranks)]
    for anew in (False, True):
        into = os.path.join(folder, "in%d" % anew)
        receivers = {"file": {"include": [into + "/rank*.jsonl"], "poll_interval": "50ms"}}
        with Live(suite.binary, os.path.join(folder, str(anew)), receivers) as live:
            given = 0
            for begin, end in ((0, 40), (40, 80), (80, max(map(len, lines)))):
                for rank, of_rank in enumerate(lines):
                    path = os.path.join(into, "rank%d.jsonl" % rank)
                    write(path + ".part", *of_rank[:end])
                    if anew or begin == 0:
                        os.replace(path + ".part", path)
                    else:
                        append(path, *of_rank[begin:end])
                    given += len(of_rank[begin:end])
                live.wait(lambda: live.accepted() >= given)
            live.stop(suite.checks, "files anew: %s" % anew)
        answers.append(leaks(live))
    suite.checks.check(answers[0], "the leak is found")
    suite.checks.equal(answers[1], answers[0], "files that are put anew")
