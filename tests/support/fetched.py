# SPDX-License-Identifier: Apache-2.0
"""A Python that has one package from PyPI, for tests that hold culprit against the real thing. It is
made once, by pip, in the cache of the tests."""
import os
import subprocess
import sys

import cache

PATIENCE_S = 300


def python_of(folder):
    return os.path.join(folder, "bin", "python")


def found(package, version):
    """The Python that has it already: this one, or that of the cache; else None."""
    here = subprocess.run([sys.executable, "-c", "from importlib.metadata import version; "
                           "print(version(%r))" % package], capture_output=True, check=False)
    if here.stdout.decode().strip() == version:
        return sys.executable
    folder = cache.found("%s-%s" % (package, version))
    return folder and python_of(folder)


def fetch(package, version):
    """The Python that has it; raises RuntimeError with pip's last words. Modules are run with -m:
    the scripts in its folder name the place where it was made."""
    def fill(folder):
        # Nothing of a venv but its scripts says where it is.
        for command in ([sys.executable, "-m", "venv", folder],
                        [python_of(folder), "-m", "pip", "install", "-q",
                         "--disable-pip-version-check", "--retries", "1",
                         "%s==%s" % (package, version)]):
            run(command, "%s %s" % (package, version))
    return python_of(cache.made_once("%s-%s" % (package, version), fill))


def run(command, what):
    """Raises RuntimeError with its last words when it fails."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=PATIENCE_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise RuntimeError("%s could not be fetched in time" % what) from error
    if done.returncode != 0:
        said = (done.stderr or done.stdout).decode("utf-8", "replace").strip()
        raise RuntimeError("%s could not be fetched: %s" % (what, said[-300:]))
