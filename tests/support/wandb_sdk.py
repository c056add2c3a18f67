# SPDX-License-Identifier: Apache-2.0
"""The real wandb SDK for tests: fetched once by pip into a cache outside the repository."""
import os
import subprocess

import fetched

VERSION = "0.31.0"


def fetch():
    """The Python that has it; raises RuntimeError with pip's last words."""
    return fetched.fetch("wandb", VERSION)


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
