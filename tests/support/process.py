# SPDX-License-Identifier: Apache-2.0
"""Running culprit in tests as a user would, with nothing of the tester's own environment."""
import os
import subprocess

TIMEOUT_S = 120


def environment(**more):
    kept = {key: value for key, value in os.environ.items()
            if key in ("PATH", "HOME", "TMPDIR", "LANG")
            or key.startswith(("ASAN_", "UBSAN_", "TSAN_", "LSAN_"))}
    if os.environ.get("CULPRIT_PRELOAD"):  # what a sanitizer needs to see all threads
        kept["LD_PRELOAD"] = os.environ["CULPRIT_PRELOAD"]
    kept.update(more)
    return kept


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def text(self):
        return self.out.decode("utf-8", "replace")

    def errors(self):
        return self.err.decode("utf-8", "replace")


def run(binary, *arguments, data=b"", folder=None, **more):
    done = subprocess.run([binary, *arguments], input=data, cwd=folder, capture_output=True,
                          timeout=TIMEOUT_S, env=environment(**more), check=False)
    return Result(done.returncode, done.stdout, done.stderr)
