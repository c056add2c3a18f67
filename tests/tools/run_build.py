#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A plain `cmake -S . -B build`, as somebody who reads no page types it, and `cmake --install`.

    run_build.py BINARY

Without a generator, a preset or a build type, and with check hidden from pkg-config: the tests are
left out, which is said, and refused when they were asked for. BINARY's build folder is installed.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from checks import Checks  # noqa: E402
from process import run  # noqa: E402

OURS = ("CMAKE_GENERATOR", "CMAKE_BUILD_TYPE", "PKG_CONFIG_PATH", "PKG_CONFIG_LIBDIR", "CFLAGS",
        "LDFLAGS")


def without_check(folder):
    """A folder with everything that pkg-config knows here, but for check."""
    place = os.path.join(folder, "pkgconfig")
    os.makedirs(place)
    known = subprocess.run(["pkg-config", "--variable", "pc_path", "pkg-config"],
                           capture_output=True, check=True, text=True).stdout.strip().split(":")
    for path in filter(os.path.isdir, known):
        for name in os.listdir(path):
            if name.endswith(".pc") and name != "check.pc":
                if not os.path.lexists(os.path.join(place, name)):
                    os.symlink(os.path.join(path, name), os.path.join(place, name))
    return place


def configure(folder, name, *options, **more):
    """Exit code, what was said in one line, and the cache."""
    place = os.path.join(folder, name)
    clean = {key: value for key, value in os.environ.items() if key not in OURS}
    done = subprocess.run(["cmake", "-S", ROOT, "-B", place, *options], env={**clean, **more},
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    said = re.sub(r"\s+", " ", done.stdout + done.stderr)
    cache = {}
    path = os.path.join(place, "CMakeCache.txt")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            cache = dict(re.findall(r"^(\w+):\w+=(.*)$", file.read(), re.M))
    return done.returncode, said, cache, os.path.exists(os.path.join(place, "tests"))


def plain(checks, folder):
    hidden = without_check(folder)
    code, said, cache, tests = configure(folder, "plain", PKG_CONFIG_LIBDIR=hidden)
    checks.equal((code, tests), (0, False), "without check: " + said[-500:])
    checks.check("The tests are not built: check (Debian: check) is not there" in said,
                 "without check: nothing is said of the tests: " + said[-500:])
    checks.equal(cache.get("CMAKE_BUILD_TYPE"), "Release", "the build type when none is given")
    code, said, _, _ = configure(folder, "asked", "-DCULPRIT_TESTS=ON", PKG_CONFIG_LIBDIR=hidden)
    checks.check(code != 0 and "The tests cannot be built: check (Debian: check)" in said,
                 "tests that were asked for and cannot be: %d, %s" % (code, said[-500:]))
    code, said, _, tests = configure(folder, "off", "-DCULPRIT_TESTS=OFF",
                                     PKG_CONFIG_LIBDIR=hidden)
    checks.check((code, tests) == (0, False) and "The tests are not" not in said,
                 "tests that were left out: %d, %s" % (code, said[-500:]))
    code, said, cache, tests = configure(folder, "whole", "-DCMAKE_BUILD_TYPE=Debug")
    checks.equal((code, tests), (0, True), "with check: " + said[-500:])
    checks.equal(cache.get("CMAKE_BUILD_TYPE"), "Debug", "the build type that was given")


def install(checks, folder, binary):
    place = os.path.join(folder, "installed")
    done = run("cmake", "--install", os.path.dirname(binary), "--prefix", place)
    checks.equal(done.code, 0, "cmake --install: " + done.errors()[-500:])
    done = run(os.path.join(place, "bin", "culprit"), "version")
    checks.check(done.code == 0 and done.text().startswith("culprit "),
                 "what was installed: %d, %s" % (done.code, done.errors()))


def main(binary):
    checks = Checks()
    if shutil.which("pkg-config") is None:
        checks.skip("there is no pkg-config to hide check from")
        return checks.finish()
    with tempfile.TemporaryDirectory() as folder:
        plain(checks, folder)
        install(checks, folder, os.path.abspath(binary))
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
