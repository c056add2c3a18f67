# SPDX-License-Identifier: Apache-2.0
"""What tests fetch, kept outside the repository for all suites and all later runs.

Each thing is a folder that is there whole or not at all: it is filled under another name and then
renamed, under a lock, so that suites that run side by side fetch it once. What a maker that was
killed has left is removed by the next one.
"""
import fcntl
import glob
import os
import shutil
import tempfile

WHOLE = "complete"  # a file in a folder that was filled to its end


def place_of(name):
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "culprit-tests", name)


def found(name):
    """The folder, or None when nobody has made it."""
    folder = place_of(name)
    return folder if os.path.exists(os.path.join(folder, WHOLE)) else None


def made_once(name, fill):
    """The folder; `fill(folder)` is called when it is not there, by one process at a time, and what
    it raises is passed on. The folder is moved when it is filled."""
    folder = place_of(name)
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    with open(folder + ".lock", "w", encoding="ascii") as lock:  # let go when the process ends
        fcntl.flock(lock, fcntl.LOCK_EX)
        if found(name) is None:
            fill_and_move(folder, fill)
    return folder


def fill_and_move(folder, fill):
    for left in [folder, *glob.glob(glob.escape(folder) + ".part-*")]:
        shutil.rmtree(left, ignore_errors=True)
    part = tempfile.mkdtemp(prefix=os.path.basename(folder) + ".part-",
                            dir=os.path.dirname(folder))
    try:
        fill(part)
        with open(os.path.join(part, WHOLE), "w", encoding="ascii"):
            pass
        os.rename(part, folder)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
