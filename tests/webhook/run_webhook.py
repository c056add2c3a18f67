#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The webhook exporter of a whole culprit, against an HTTP server that refuses and fails.

    run_webhook.py BINARY

The verdicts of a detector's cases are posted once, over failures; refused one by one; and kept over
kill -9 while the server is away. CloudEvents are read by the SDK of the specification's authors.
"""
import collections
import http.server
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
import fetched  # noqa: E402
from checks import Checks  # noqa: E402
from process import environment  # noqa: E402
from running import PATIENCE_S, stored, wait_for, whole_lines  # noqa: E402

INPUT = os.path.join(HERE, "..", "golden", "detectors", "hbm_ecc", "*", "events.jsonl")
SDK = ("cloudevents", "1.12.0")
READ_BY_SDK = """
import json, sys
from cloudevents.http import from_http
for line in sys.stdin:
    headers, body = json.loads(line)
    event = from_http(headers, body.encode())
    print(json.dumps([event["id"], event["type"], event["subject"], event["time"], event.data]))
"""
LOST = 74

Post = collections.namedtuple("Post", "headers body time")


class Sink:
    """Answers as `answer(number, body)` says: (status, headers)."""

    def __init__(self, answer):
        self.posts = []
        sink = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                number = len(sink.posts)
                sink.posts.append(Post(dict(self.headers), body, time.monotonic()))
                status, headers = answer(number, body)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d/hook" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


class Run:
    def __init__(self, binary, folder, url, **webhook):
        self.binary, self.folder = binary, folder
        self.lines = os.path.join(folder, "verdicts.jsonl")
        self.config = os.path.join(folder, "culprit.yaml")
        self.log = os.path.join(folder, "log")
        self.document = {
            "receivers": {"file": {"include": [INPUT]}},
            "exporters": {"json": {"path": self.lines},
                          "webhook": {"endpoint": url, **webhook, "retry_on_failure":
                                      {"initial_interval": "100ms", "max_interval": "3s"}}},
            "service": {"pipelines": {"all": {"receivers": ["file"], "preset": "all",
                                              "exporters": ["json", "webhook"]}}}}

    def write(self):
        with open(self.config, "w", encoding="utf-8") as file:
            json.dump(self.document, file)

    def once(self):
        self.write()
        done = subprocess.run([self.binary, "run", "--once", "--config", self.config],
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S,
                              env=environment(), check=False)
        return done.returncode, done.stderr.decode()

    def start(self):
        with open(self.log, "ab") as log:
            return subprocess.Popen([self.binary, "run", "--config", self.config],
                                    stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                    env=environment())

    def expected(self):
        return whole_lines(self.lines)


def over_failures(checks, binary, folder):
    """The first post fails twice: nothing is lost, nothing comes twice, in order."""
    script = {0: (503, {}), 1: (429, {"Retry-After": "1"})}
    with Sink(lambda number, _: script.get(number, (204, {}))) as sink:
        run = Run(binary, folder, sink.url)
        code, log = run.once()
        checks.equal(code, 0, "over failures: " + log[-1000:])
        wanted = run.expected()
        checks.check(len(wanted) >= 3, "there are verdicts")
        checks.equal([post.body for post in sink.posts[2:]], wanted, "what was posted")
        checks.equal(sink.posts[0].body, wanted[0], "what was posted first")
        waited = sink.posts[2].time - sink.posts[1].time
        checks.check(waited >= 0.95, "Retry-After is kept: %.2f s" % waited)
        checks.check("C3002" in log and "503" in log, "a failure is logged: " + log[-1000:])


def refused(checks, binary, folder):
    """One verdict is refused: it alone is missing, and the log says so."""
    with Sink(lambda number, _: (422, {}) if number == 1 else (200, {})) as sink:
        run = Run(binary, folder, sink.url)
        code, log = run.once()
        checks.equal([post.body for post in sink.posts], run.expected(), "each is posted once")
        checks.check("422" in log and "exporter/webhook" in log, "it is logged: " + log[-1000:])
        checks.equal(code, LOST, "the run says that something was not delivered: " + log[-1000:])


def killed(checks, binary, folder):
    """kill -9 while the server is away: what waited is posted after the restart."""
    down = threading.Event()
    down.set()
    with Sink(lambda *_: (503, {}) if down.is_set() else (200, {})) as sink:
        run = Run(binary, folder, sink.url)
        run.document["extensions"] = {"file_storage": {"directory": os.path.join(folder, "store")}}
        run.document["service"].update(extensions=["file_storage"], checkpoint_interval="200ms")
        run.document["service"]["pipelines"]["all"].update(idle_timeout="1s", settle="0s")
        run.write()
        process = run.start()
        store = os.path.join(folder, "store")
        ready = wait_for(lambda: len(sink.posts) > 2 and run.expected(), process)
        checks.check(ready, "it tries: %d posts" % len(sink.posts))
        checks.check(wait_for(lambda: all(json.loads(line)["id"].encode() in stored(store)
                                          for line in run.expected()), process),
                     "what waits is in the store")
        process.kill()
        process.wait()
        failed = len(sink.posts)
        down.clear()
        wanted = run.expected()
        process = run.start()

        def delivered():
            return {post.body for post in sink.posts[failed:]} >= set(wanted)
        checks.check(wait_for(delivered, process), "all are posted after the restart: %d of %d"
                     % (len(sink.posts) - failed, len(wanted)))
        process.send_signal(signal.SIGTERM)
        checks.equal(process.wait(PATIENCE_S), 0, "the stop")
        bodies = [post.body for post in sink.posts[failed:]]
        checks.equal(len(bodies), len(set(bodies)), "each once")
        with open(run.log, encoding="utf-8") as log:
            checks.check("Sanitizer" not in log.read(), "the sanitizer complains")


def cloud_events(checks, binary, folder):
    try:
        python = fetched.fetch(*SDK)
    except RuntimeError as error:
        checks.skip("CloudEvents are not read by their SDK: %s" % error)
        return
    with Sink(lambda *_: (200, {})) as sink:
        run = Run(binary, folder, sink.url, template="cloudevents")
        code, log = run.once()
        checks.equal(code, 0, "CloudEvents: " + log[-1000:])
        read = subprocess.run([python, "-c", READ_BY_SDK], capture_output=True, check=False,
                              timeout=PATIENCE_S, text=True, input="".join(
                                  json.dumps([post.headers, post.body]) + "\n"
                                  for post in sink.posts))
        events = [json.loads(line) for line in read.stdout.splitlines()]
        wanted = [json.loads(line) for line in run.expected()]
        checks.equal([event[4] for event in events], wanted, "data: " + read.stderr[-500:])
        checks.equal([event[2] for event in events], [each["id"] for each in wanted], "subjects")
        checks.equal(len({event[0] for event in events}), len(wanted), "ids are unique")


def validate(checks, binary, folder):
    for webhook, said in (({"endpoint": "ftp://x/"}, "endpoint"),
                          ({"endpoint": "http://x/", "template": "teams"}, "verdict, cloudevents"),
                          ({"endpoint": "http://x/", "headers": ["no colon"]}, "header"),
                          ({}, "endpoint")):
        run = Run(binary, folder, "", **webhook)
        if "endpoint" not in webhook:
            del run.document["exporters"]["webhook"]["endpoint"]
        run.write()
        done = subprocess.run([binary, "validate", run.config], capture_output=True, text=True,
                              env=environment(), check=False)
        text = done.stdout + done.stderr
        checks.check(done.returncode != 0 and "webhook" in text and said in text,
                     "validate of %r: %s" % (webhook, text[-500:]))


def main(binary):
    checks = Checks()
    for case in (over_failures, refused, killed, cloud_events, validate):
        with tempfile.TemporaryDirectory() as folder:
            case(checks, binary, folder)
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
