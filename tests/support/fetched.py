# SPDX-License-Identifier: Apache-2.0
"""A Python that has one package from PyPI, for tests that hold culprit against the real thing. It is
made once, by pip, in a cache outside the repository."""
import fcntl
import os
import shutil
import subprocess
import sys

PATIENCE_S = 300


def folder_of(package, version):
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "culprit-tests", "%s-%s" % (package, version))


def found(package, version):
    """The Python that has it already: this one, or that of the cache; else None."""
    here = subprocess.run([sys.executable, "-c", "from importlib.metadata import version; "
                           "print(version(%r))" % package], capture_output=True, check=False)
    if here.stdout.decode().strip() == version:
        return sys.executable
    folder = folder_of(package, version)
    if os.path.exists(os.path.join(folder, "complete")):
        return os.path.join(folder, "bin", "python")
    return None


def fetch(package, version):
    """The Python that has it; raises RuntimeError with pip's last words."""
    folder = folder_of(package, version)
    python = os.path.join(folder, "bin", "python")
    whole = os.path.join(folder, "complete")
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    with open(folder + ".lock", "w", encoding="ascii") as lock:  # suites may run side by side
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.exists(whole):
            return python
        shutil.rmtree(folder, ignore_errors=True)
        for command in ([sys.executable, "-m", "venv", folder],
                        [python, "-m", "pip", "install", "-q", "--disable-pip-version-check",
                         "--retries", "1", "%s==%s" % (package, version)]):
            try:
                done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True,
                                      timeout=PATIENCE_S, check=False)
            except subprocess.TimeoutExpired as error:
                raise RuntimeError("%s %s could not be fetched in time"
                                   % (package, version)) from error
            if done.returncode != 0:
                said = (done.stderr or done.stdout).decode("utf-8", "replace").strip()
                raise RuntimeError("%s %s could not be fetched: %s"
                                   % (package, version, said[-300:]))
        with open(whole, "w", encoding="ascii"):
            pass
    return python
