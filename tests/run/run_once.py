#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`culprit run --once` beside a sink that takes nothing: it ends, says why, and the exit code tells.

    run_once.py BINARY

The waits between two attempts are an hour, so what ends at all is ended by shutdown_timeout.
"""
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
import bad_sink  # noqa: E402
from checks import Checks  # noqa: E402
from ports import free_port  # noqa: E402
from process import environment  # noqa: E402
from running import PATIENCE_S, wait_for  # noqa: E402

INPUT = os.path.join(HERE, "..", "golden", "detectors", "incident", "link_error_to_eviction",
                     "events.jsonl")
LOST = 74
# The first attempt must have failed before the time for all of it is over.
SHUTDOWN = "8s"


class Case:
    def __init__(self, binary, folder, fault, wait="1h", timeout=SHUTDOWN, patience="60s", **options):
        self.folder = folder
        self.sink = bad_sink.BadSink(free_port(), fault, lambda *_: (200, {}, b"{}"))
        if fault is not None:
            self.sink.start()
        document = {
            "receivers": {"file": {"include": [INPUT]}},
            "exporters": {
                "json": {"path": os.path.join(folder, "verdicts.jsonl")},
                "webhook": {"endpoint": self.sink.url, "timeout": patience,
                            "retry_on_failure": {"initial_interval": wait, "max_interval": "1h",
                                                 **options}}},
            "service": {"shutdown_timeout": timeout, "pipelines": {"all": {
                "receivers": ["file"], "preset": "all", "exporters": ["webhook", "json"]}}}}
        path = os.path.join(folder, "culprit.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(document, file)
        self.process = subprocess.Popen([binary, "run", "--once", "--config", path],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, env=environment())

    def end(self):
        """(exit code, what it said); None when it did not end."""
        try:
            said = self.process.communicate(timeout=PATIENCE_S)[0].decode()
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            return None, "it did not end"
        finally:
            self.sink.stop()
        return self.process.returncode, said

    def verdicts(self):
        with open(os.path.join(self.folder, "verdicts.jsonl"), encoding="utf-8") as file:
            return [json.loads(line) for line in file]


def gives_up(checks, binary, name, fault, word, **more):
    with tempfile.TemporaryDirectory() as folder:
        case = Case(binary, folder, fault, **more)
        code, said = case.end()
        checks.equal(code, LOST, name + ": exit code: " + said[-1500:])
        told = re.findall(r"^culprit run: exporter/webhook: (.*); (\d+) records? \(\d+ bytes\) were? "
                          "not delivered$", said.replace(" was not", " were not"), re.MULTILINE)
        checks.check(len(told) == 1 and re.search(word, told[0][0]),
                     "%s: the last line does not say what was lost and why: %s" % (name, said[-800:]))
        found = case.verdicts()
        checks.check(found and told and int(told[0][1]) == len(found),
                     "%s: of %d verdicts, all of which the other exporter has: %r"
                     % (name, len(found), told))
        checks.check("Sanitizer" not in said, name + ": the sanitizer complains: " + said[-1500:])


def comes_back(checks, binary):
    """A sink that is there again within that time loses nothing."""
    with tempfile.TemporaryDirectory() as folder:
        case = Case(binary, folder, bad_sink.missing, wait="50ms", timeout="60s")
        checks.check(wait_for(lambda: case.sink.attempts() > 1), "comes back: it tries again")
        case.sink.heal()
        code, said = case.end()
        checks.equal(code, 0, "comes back: exit code: " + said[-1500:])
        checks.equal(len(case.sink.taken), len(case.verdicts()), "comes back: all is there")


def main():
    binary = os.path.abspath(sys.argv[1])
    checks = Checks()
    cases = [
        lambda: gives_up(checks, binary, "404", bad_sink.missing, "answers 404"),
        lambda: gives_up(checks, binary, "a closed port", None, "[Cc]onnect"),
        lambda: gives_up(checks, binary, "silent", bad_sink.silent, "[Tt]imed? ?out",
                         patience="500ms"),
        lambda: gives_up(checks, binary, "Retry-After", bad_sink.unavailable, "answers 503"),
        # An option of the exporter goes before.
        lambda: gives_up(checks, binary, "max_elapsed_time", bad_sink.missing, "answers 404",
                         timeout="1h", max_elapsed_time="1s"),
        lambda: comes_back(checks, binary)]
    with concurrent.futures.ThreadPoolExecutor(len(cases)) as pool:  # they mostly wait
        for done in [pool.submit(case) for case in cases]:
            done.result()
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
