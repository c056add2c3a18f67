# SPDX-License-Identifier: Apache-2.0
"""mock_wandb.py as a server for the length of a `with` block."""
import json
import os
import subprocess
import sys
import urllib.request

import running
from running import PATIENCE_S

HERE = os.path.dirname(os.path.abspath(__file__))
KEY = "0123456789abcdef0123456789abcdef01234567"


class Mock:
    def __init__(self, *arguments):
        self.arguments = arguments

    def __enter__(self):
        self.process = subprocess.Popen(
            [sys.executable, "-B", os.path.join(HERE, "..", "wandb", "mock_wandb.py"),
             "--api-key", KEY, *self.arguments],
            stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        ready = self.process.stdout.readline().decode().split()
        if len(ready) != 2 or ready[0] != "READY":
            raise SystemExit("the mock did not start: %r" % ready)
        self.url = ready[1]
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def call(self, method, path, body=""):
        request = urllib.request.Request(self.url + path, body.encode(), method=method)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=PATIENCE_S) as answer:
            return json.load(answer)

    def decoded(self):
        """What the server understood."""
        return self.call("GET", "/__decoded")

    def heartbeats(self):
        return sum(request["what"] == "file_stream" and request["bytes"] == 2
                   for request in self.call("GET", "/__requests"))

    def wait_for(self, condition):
        return bool(running.wait_for(condition))
