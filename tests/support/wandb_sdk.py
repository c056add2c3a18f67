# SPDX-License-Identifier: Apache-2.0
"""The real wandb SDK for tests: fetched once by pip into a cache outside the repository."""
import fcntl
import os
import shutil
import subprocess
import sys

VERSION = "0.31.0"
PATIENCE_S = 300


def cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "culprit-tests", "wandb-" + VERSION)


def fetch():
    """The Python that has it; raises RuntimeError with pip's last words."""
    folder = cache_folder()
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
                         "--retries", "1", "wandb==" + VERSION]):
            try:
                done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True,
                                      timeout=PATIENCE_S, check=False)
            except subprocess.TimeoutExpired as error:
                raise RuntimeError("wandb %s could not be fetched in time" % VERSION) from error
            if done.returncode != 0:
                said = (done.stderr or done.stdout).decode("utf-8", "replace").strip()
                raise RuntimeError("wandb %s could not be fetched: %s" % (VERSION, said[-300:]))
        with open(whole, "w", encoding="ascii"):
            pass
    return python


class Sdk:
    """Runs `wandb ...` against one server, with its settings and caches in `folder`."""

    def __init__(self, folder, url, key):
        self.python = fetch()
        self.environment = {
            "PATH": os.environ["PATH"], "HOME": folder, "WANDB_BASE_URL": url,
            "WANDB_API_KEY": key, "WANDB_ERROR_REPORTING": "false",
            **{"WANDB_%s_DIR" % name: os.path.join(folder, "sdk-" + name.lower())
               for name in ("CONFIG", "CACHE", "DATA")}}

    def start(self, *arguments, folder):
        return subprocess.Popen([self.python, "-m", "wandb", *arguments], cwd=folder,
                                env=self.environment, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def run(self, *arguments, folder):
        """-> (exit code, what it printed)"""
        process = self.start(*arguments, folder=folder)
        return finish(process)


def finish(process):
    try:
        out, _ = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        process.kill()
        out, _ = process.communicate()
    return process.returncode, out.decode("utf-8", "replace")
