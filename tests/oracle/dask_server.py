# SPDX-License-Identifier: Apache-2.0
"""The real dask as a process that answers streams (spans_dask.py --serve)."""
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
import fetched  # noqa: E402

PACKAGE, VERSION = "distributed", "2026.8.0"


def python(fetch=False):
    """A Python with that version of dask; None: there is none, and it is not to be fetched."""
    return fetched.found(PACKAGE, VERSION) or (fetched.fetch(PACKAGE, VERSION) if fetch else None)


class Dask:
    def __init__(self, interpreter):
        self.process = subprocess.Popen(
            [interpreter, "-B", os.path.join(HERE, "spans_dask.py"), "--serve"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()

    def document(self, events, queries):
        asked = json.dumps({"events": events.decode("latin-1"), "queries": queries})
        self.process.stdin.write(asked.encode() + b"\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError("dask failed on a stream")
        return json.loads(answer)
