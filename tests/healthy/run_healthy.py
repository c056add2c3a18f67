#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Is nobody blamed in a healthy job, and the right rank in a leaky one?

    run_healthy.py BINARY [--verbose]

Made-up jobs of generate.py. The summary may name a rank in a healthy job, as stormlog does; the
verdict must not.
"""
import concurrent.futures
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, HERE)
import generate  # noqa: E402
import verdicts  # noqa: E402
from checks import Checks  # noqa: E402
from process import run  # noqa: E402


def judge_healthy(checks, job, found):
    grave = [v["headline"] for v in found if verdicts.severity_at_least(v, "warning")]
    checks.equal(grave, [], job.name + ": verdicts above info")
    blamed = [verdicts.named(v, "culprit") for v in found if verdicts.named(v, "culprit")]
    checks.equal(blamed, [], job.name + ": ranks named culprit")


def judge_leaky(checks, job, found):
    grave = [v for v in found if verdicts.severity_at_least(v, "warning")]
    checks.equal([v["kind"] for v in grave], ["leak"], job.name + ": kinds of verdicts")
    checks.equal([verdicts.named(v, "culprit") for v in grave], [[job.leak_rank]],
                 job.name + ": ranks named culprit")


def try_job(binary, checks, job, verbose):
    with tempfile.TemporaryDirectory() as folder:
        generate.write_job(job, folder)
        done = run(binary, "analyze", "--output", "verdicts", "--fail-on", "warning", folder)
    wanted = 0 if job.healthy() else 2
    checks.check(done.code == wanted, "%s: exit code %d, not %d: %s"
                 % (job.name, done.code, wanted, done.errors()[-1000:]))
    if done.code not in (0, 2):
        return
    found = verdicts.read_lines(done.text())
    if verbose:
        for verdict in found:
            print(job.name, verdict["severity"], verdict["kind"], verdict["headline"])
    for verdict in found:
        checks.equal(verdicts.faults(verdict), [], job.name + ": verdict " + verdict["id"])
    (judge_healthy if job.healthy() else judge_leaky)(checks, job, found)


def main(binary, verbose):
    checks = Checks()
    jobs = list(generate.healthy_jobs()) + list(generate.leaky_jobs())
    checks.equal(len({job.seed for job in jobs}), len(jobs), "seeds that differ")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda job: try_job(binary, checks, job, verbose), jobs))
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1]), "--verbose" in sys.argv[2:]))
