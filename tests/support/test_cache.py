#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Is what tests share fetched once, whole, by however many suites at the same time?

Maven is a program of ours that counts its calls; makers are processes of their own.
"""
import os
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
BENCH = os.path.join(os.path.dirname(TESTS), "bench")
sys.path.insert(0, HERE)
import cache  # noqa: E402
from checks import Checks  # noqa: E402

MAKERS = 6
PATIENCE_S = 60
JARS = ["kafka_2.13-3.9.1.jar", "other.jar"]
MAVEN = """#!/bin/sh
echo call >>"$CALLS"
for argument; do
    case $argument in -DoutputDirectory=*) lib=${argument#*=} ;; esac
done
mkdir -p "${lib:-lib}" && touch "${lib:-lib}/kafka_2.13-3.9.1.jar"
[ ! -e "$CALLS.fail" ] || { echo "no network"; exit 1; }
while [ -e "$CALLS.hold" ]; do sleep 0.01; done
sleep 0.2
touch "${lib:-lib}/other.jar"
"""
MAKER = "import sys; sys.path.insert(0, %r); import kafka_broker; print(kafka_broker.fetch_jars())"


class Place:
    """An empty cache, and a Maven that counts."""

    def __init__(self, folder):
        self.cache = os.path.join(folder, "cache")
        self.calls = os.path.join(folder, "calls")
        programs = os.path.join(folder, "bin")
        os.makedirs(programs)
        with open(os.path.join(programs, "mvn"), "w", encoding="ascii") as file:
            file.write(MAVEN)
        os.chmod(os.path.join(programs, "mvn"), 0o755)
        self.environment = {**os.environ, "XDG_CACHE_HOME": self.cache, "CALLS": self.calls,
                            "PATH": programs + ":" + os.environ["PATH"]}
        self.folder = os.path.join(self.cache, "culprit-tests", "kafka-3.9.1")

    def maker(self):
        return subprocess.Popen([sys.executable, "-B", "-c", MAKER % HERE], env=self.environment,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, start_new_session=True)

    def made(self, count=1):
        """-> (exit codes, what was printed) of so many makers at the same time."""
        makers = [self.maker() for _ in range(count)]
        said = [maker.communicate(timeout=PATIENCE_S) for maker in makers]
        return [maker.returncode for maker in makers], said

    def call_count(self):
        if not os.path.exists(self.calls):
            return 0
        with open(self.calls, encoding="ascii") as file:
            return len(file.readlines())

    def check_whole(self, checks, result, calls):
        codes, said = result
        lib = os.path.join(self.folder, "lib")
        checks.equal(codes, [0] * len(codes), "exit codes of the makers (%r)" % said)
        checks.equal({out.decode().strip() for out, _ in said}, {lib}, "what they were given")
        checks.equal(sorted(os.listdir(lib)) if os.path.isdir(lib) else None, JARS, "the jars")
        checks.equal(self.call_count(), calls, "downloads")
        checks.equal(sorted(os.listdir(os.path.dirname(self.folder))),
                     ["kafka-3.9.1", "kafka-3.9.1.lock"], "what is in the cache")


def many_at_once(checks, place):
    place.check_whole(checks, place.made(MAKERS), 1)
    place.check_whole(checks, place.made(2), 1)


def half_filled(checks, place):
    """As a maker without a lock left it, or a cleaner that was interrupted."""
    os.makedirs(os.path.join(place.folder, "lib"))
    with open(os.path.join(place.folder, "lib", JARS[0]), "w", encoding="ascii"):
        pass
    place.check_whole(checks, place.made(MAKERS), 1)


def killed_maker(checks, place):
    hold = place.calls + ".hold"
    with open(hold, "w", encoding="ascii"):
        pass
    first = place.maker()
    limit = time.monotonic() + PATIENCE_S
    while place.call_count() < 1 and time.monotonic() < limit:
        time.sleep(0.01)
    second = place.maker()
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate()
    os.remove(hold)
    said = second.communicate(timeout=PATIENCE_S)
    place.check_whole(checks, ([second.returncode], [said]), 2)


def failed_maker(checks, place):
    fail = place.calls + ".fail"
    with open(fail, "w", encoding="ascii"):
        pass
    codes, said = place.made()
    checks.check(codes != [0] and b"no network" in said[0][1], "a failure is told: %r" % said)
    checks.check(not os.path.exists(place.folder), "nothing stays of what failed")
    os.remove(fail)
    place.check_whole(checks, place.made(2), 2)


def python_moves(checks, place):
    """A venv works where it was moved to."""
    os.environ["XDG_CACHE_HOME"] = place.cache
    folder = cache.made_once("venv", lambda part: subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", part], check=True))
    prefix = subprocess.run([os.path.join(folder, "bin", "python"), "-c",
                             "import sys; print(sys.prefix)"], capture_output=True, check=True)
    checks.equal(prefix.stdout.decode().strip(), folder, "the prefix of a moved Python")


def no_other_way(checks):
    """Nothing else knows where the cache is."""
    for top in (TESTS, BENCH):
        for folder, _, names in os.walk(top):
            for name in names:
                path = os.path.join(folder, name)
                if name.endswith(".py") and not os.path.samefile(folder, HERE):
                    with open(path, encoding="utf-8") as file:
                        checks.check("XDG_CACHE_HOME" not in file.read(),
                                     path + " has a cache of its own; support/cache.py is for that")


def main():
    checks = Checks()
    for case in (many_at_once, half_filled, killed_maker, failed_maker, python_moves):
        with tempfile.TemporaryDirectory(prefix="culprit-cache-") as folder:
            case(checks, Place(folder))
    no_other_way(checks)
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
