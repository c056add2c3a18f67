#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""culprit beside a live dask cluster: what the cluster's own spans answered while it worked.

    run_spans_localcluster.py BINARY [--fetch] [--processes]

Runs a LocalCluster (spans/record_localcluster.py), whose scheduler writes down the events its spans
saw and the answers they gave; culprit must give the same from the events. Needs `distributed`
2026.8.0, and says so where it is not; --fetch gets it from PyPI first.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, os.path.join(HERE, "..", "oracle"))
import dask_server  # noqa: E402
import spans_random  # noqa: E402
from checks import Checks  # noqa: E402
from process import run  # noqa: E402

RECORD = os.path.join(HERE, "spans", "record_localcluster.py")
PATIENCE_S = 300


def read_json(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return json.load(file)


def compare(checks, binary, folder):
    expected = read_json(folder, "expected.json")
    names = [span["name"][-1] for span in expected["spans"]]
    checks.check(names.count("forward") == 4 and names.count("default") >= 2
                 and "evaluate" in names, "spans of the cluster: %r" % names)
    for size in (1024, 5):
        done = run(binary, "analyze", "--quiet", "--output", "spans", "--queries",
                   os.path.join(folder, "queries.json"), "--set", "service.batch_size=%d" % size,
                   os.path.join(folder, "events.jsonl"))
        what = "in batches of %d" % size
        if checks.equal((done.code, done.errors()), (0, ""), what + ": exit code and errors"):
            found = spans_random.differences(json.loads(done.text()), expected)
            checks.equal(found[:5], [], what + ": where culprit answers otherwise")


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--fetch", action="store_true", help="get dask when it is not here")
    parser.add_argument("--processes", action="store_true", help="workers are processes")
    options = parser.parse_args(arguments)
    checks = Checks()
    interpreter = dask_server.python(options.fetch)
    if interpreter is None:
        checks.skip("distributed %s is not here, so no cluster was run (--fetch gets it)"
                    % dask_server.VERSION)
        return checks.finish()
    with tempfile.TemporaryDirectory() as folder:
        command = [interpreter, "-B", RECORD, folder]
        command += ["--processes"] if options.processes else []
        done = subprocess.run(command, cwd=folder, capture_output=True, timeout=PATIENCE_S,
                              check=False)
        if checks.check(done.returncode == 0, "the cluster failed: %s"
                        % done.stderr.decode("utf-8", "replace")[-2000:]):
            compare(checks, options.binary, folder)
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
