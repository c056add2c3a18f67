#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two jobs with equal ranks and pids, each with a receiver of its own: none gets the other's end.

    run_two_jobs.py BINARY

The rank maps say neither node nor time. The answer is the same whatever the age of their files.
"""
import itertools
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from checks import Checks  # noqa: E402
from process import run  # noqa: E402
from verdicts import read_lines  # noqa: E402

JOBS = ("gpt", "llama")
ENDED_S = 1795773600  # 2026-11-27T10:00:00Z
AGES_S = (ENDED_S - 86400, ENDED_S - 1, ENDED_S + 86400)
LOG = """\
E1127 10:00:00.123000 4000 torch/distributed/elastic/multiprocessing/api.py:874] failed \
(exitcode: 1) local_rank: 1 (pid: 4712) of binary: /usr/bin/python
[rank1]: Traceback (most recent call last):
[rank1]:   File "/train/train.py", line 10, in <module>
[rank1]:     raise ValueError("bad token id")
[rank1]: ValueError: bad token id
"""


def write(path, text, time_s):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.utime(path, (time_s, time_s))


def write_job(folder, job, map_s):
    ranks = "".join(json.dumps({"rank": rank, "local_rank": rank, "process.pid": 4711 + rank}) +
                    "\n" for rank in range(2))
    write(os.path.join(folder, job, "rank_map.jsonl"), ranks, map_s)


def configuration(folder):
    receivers = {"file/" + job: {"include": [os.path.join(folder, job, "*")], "job_id": job}
                 for job in JOBS}
    return {"receivers": receivers, "exporters": {"json": {}}, "service": {"pipelines": {"all": {
        "receivers": sorted(receivers), "preset": "all", "exporters": ["json"]}}}}


def judge(binary, folder):
    path = os.path.join(folder, "c.yaml")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(configuration(folder), file)
    return run(binary, "run", "--once", "--config", path)


def check_ends(binary, checks):
    answers = set()
    for ages in itertools.product(AGES_S, AGES_S):
        with tempfile.TemporaryDirectory() as folder:
            for job, age in zip(JOBS, ages):
                write_job(folder, job, age)
            write(os.path.join(folder, "llama", "run.log"), LOG, ENDED_S + 60)
            done = judge(binary, folder)
            found = read_lines(done.text())
            answers.add(done.text())
        checks.equal([(one["pattern"], one.get("job_id")) for one in found],
                     [("first_exit", "llama")], "ages %s" % (ages,))
        checks.equal(found and found[0]["entities"],
                     [{"kind": "rank", "name": "1", "role": "culprit"}], "who")
    checks.equal(len(answers), 1, "the ages of the maps change nothing")


def main():
    checks = Checks()
    check_ends(sys.argv[1], checks)
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
