#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""culprit run with an HTTP receiver, fed with curl as its users do.

    run_http.py BINARY

What is posted in whatever shape must lead to the verdicts that analyze finds in the same records.
Nothing here depends on how long something takes: what must happen is waited for, up to a limit.
"""
import glob
import gzip
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
import verdicts  # noqa: E402
from checks import Checks  # noqa: E402
from ports import free_port  # noqa: E402
from process import environment, run  # noqa: E402
from running import PATIENCE_S, wait_for  # noqa: E402

REAL = os.path.join(HERE, "..", "golden", "real")
JOBS = ("leak-rank2", "sigkill-rank1", "healthy")
PIECE = 40


def lines_of(job):
    """All whole lines of a job, the ranks' in turns, as they come when ranks send on their own."""
    ranks = []
    for rank in sorted(glob.glob(os.path.join(REAL, job, "rank*"))):
        lines = []
        for path in sorted(glob.glob(os.path.join(rank, "**", "*.jsonl"), recursive=True)):
            with open(path, "rb") as file:
                lines += [line for line in file.read().splitlines() if line.strip()]
        ranks.append([lines[at:at + PIECE] for at in range(0, len(lines), PIECE)])
    pieces = []
    for turn in range(max(len(rank) for rank in ranks)):
        pieces += [rank[turn] for rank in ranks if turn < len(rank)]
    return pieces


def essence(found):
    keys = ("id", "kind", "severity", "confidence", "action", "entities")
    return sorted(json.dumps([verdict[key] for key in keys]) for verdict in found
                  if verdicts.severity_at_least(verdict, "warning"))


class Live:
    """culprit with an HTTP receiver, and curl to it."""

    def __init__(self, binary, folder, receiver=None, unix=None):
        self.binary, self.folder, self.unix = binary, folder, unix
        self.output = os.path.join(folder, "verdicts.jsonl")
        self.log = os.path.join(folder, "log")
        self.config = os.path.join(folder, "culprit.yaml")
        self.port = 0 if unix else free_port()
        self.address = "http://localhost" if unix else "http://127.0.0.1:%d" % self.port
        settings = {"endpoint": "unix:" + unix if unix else "127.0.0.1:%d" % self.port}
        settings.update(receiver or {})
        with open(self.config, "w", encoding="utf-8") as file:
            json.dump({
                "receivers": {"http": settings},
                "exporters": {"json": {"path": self.output}},
                "service": {"pipelines": {"memory": {
                    "receivers": ["http"], "preset": "memory", "exporters": ["json"],
                    "evaluate_every": "1s", "allowed_lateness": "1h", "settle": "1s",
                    "idle_timeout": "1h", "caught_up_timeout": "1h"}}},
            }, file)

    def start(self):
        self.log_file = open(self.log, "ab")
        self.process = subprocess.Popen([self.binary, "run", "--config", self.config],
                                        stdin=subprocess.DEVNULL, stderr=self.log_file,
                                        env=environment())
        return wait_for(lambda: self.curl("/v1/events", "-H", "Content-Type: application/json",
                                          data=b"[]")[0] == 202, self.process)

    def curl(self, path, *arguments, data=None, address=None):
        """The status, and the body as JSON or bytes."""
        command = ["curl", "-sS", "-w", "\n%{http_code}"]
        if self.unix:
            command += ["--unix-socket", self.unix]
        if data is not None:
            command += ["--data-binary", "@-"]
        done = subprocess.run(command + list(arguments) + [(address or self.address) + path],
                              input=data or b"", capture_output=True, timeout=PATIENCE_S,
                              check=False, env=environment())
        body, _, status = done.stdout.rpartition(b"\n")
        try:
            return int(status or 0), json.loads(body)
        except ValueError:
            return int(status or 0), body

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            code = "none"
        self.log_file.close()
        return code

    def log_text(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def verdicts(self):
        with open(self.output, "rb") as file:
            return verdicts.read_lines(file.read().decode())


def as_lines(piece):
    return ["-H", "Content-Type: application/x-ndjson"], b"\n".join(piece) + b"\n"


def as_array(piece):
    return ["-H", "Content-Type: application/json"], b"[" + b",\n".join(piece) + b"]"


def as_wrapper(piece):
    return ["-H", "Content-Type: application/json"], b'{"events": [' + b",".join(piece) + b"]}"


def as_gzip(piece):
    return (["-H", "Content-Type: application/x-ndjson", "-H", "Content-Encoding: gzip"],
            gzip.compress(b"\n".join(piece)))


SHAPES = (as_lines, as_array, as_wrapper, as_gzip)


class Suite:
    def __init__(self, binary):
        self.binary = binary
        self.checks = Checks()

    def ended(self, what, live):
        code = live.stop()
        self.checks.check(code == 0, lambda: "%s: exit code %s: %s"
                          % (what, code, live.log_text()[-2000:]))
        self.checks.check("Sanitizer" not in live.log_text(), what + ": the sanitizer complains")

    def job(self, name, unix):
        what = name + (" over a unix socket" if unix else "")
        with tempfile.TemporaryDirectory() as folder:
            live = Live(self.binary, folder, unix=os.path.join(folder, "http.sock") if unix else None)
            if not self.checks.check(live.start(), lambda: what + ": did not start: "
                                     + live.log_text()[-2000:]):
                live.stop()
                return
            for number, piece in enumerate(lines_of(name)):
                arguments, data = SHAPES[number % len(SHAPES)](piece)
                status, answer = live.curl("/v1/events", *arguments, data=data)
                self.checks.equal((status, answer.get("accepted"), answer.get("rejected_count")),
                                  (202, len(piece), 0), "%s: piece %d" % (what, number))
            self.ended(what, live)
            if unix:
                self.checks.check(not os.path.exists(live.unix), what + ": the socket is left")
            once = os.path.join(folder, "once")
            os.mkdir(once)
            with open(os.path.join(once, "all.jsonl"), "wb") as file:
                for piece in lines_of(name):
                    file.write(b"\n".join(piece) + b"\n")
            found = run(self.binary, "analyze", "--output", "verdicts", once)
            self.checks.equal(essence(live.verdicts()), essence(verdicts.read_lines(found.text())),
                              what + ": verdicts, against analyze")

    def answers(self):
        """What curl is told."""
        with tempfile.TemporaryDirectory() as folder:
            token = os.path.join(folder, "token")
            quarantine = os.path.join(folder, "refused.jsonl")
            with open(token, "w", encoding="ascii") as file:
                file.write("open sesame".replace(" ", "-") + "\n")
            live = Live(self.binary, folder, {
                "auth": {"bearer_token_file": token}, "quarantine": quarantine,
                "max_request_size": "64KiB", "max_record_size": "32KiB"})
            bearer = ("-H", "Authorization: Bearer open-sesame")
            plain = live.curl
            live.curl = lambda path, *rest, **more: plain(path, *bearer, *rest, **more)
            self.checks.check(live.start(), lambda: "answers: " + live.log_text()[-2000:])
            as_json = ("-H", "Content-Type: application/json")
            good = b"\n".join(lines_of("healthy")[0][:3])
            for what, wanted, got in (
                    ("no token", 401, plain("/v1/events", *as_json, data=good)),
                    ("path", 404, live.curl("/v1/nothing", *as_json, data=good)),
                    ("method", 405, live.curl("/v1/events")),
                    ("type", 415, live.curl("/v1/events", "-H", "Content-Type: text/csv",
                                            data=good)),
                    ("encoding", 415, live.curl("/v1/events", *as_json, "-H",
                                                "Content-Encoding: br", data=good)),
                    ("large", 413, live.curl("/v1/events", *as_json, data=b" " * 70000)),
                    ("bomb", 413, live.curl("/v1/events", *as_json, "-H", "Content-Encoding: gzip",
                                            data=gzip.compress(b" " * (50 << 20)))),
                    ("no gzip", 400, live.curl("/v1/events", *as_json, "-H",
                                               "Content-Encoding: gzip", data=good)),
                    ("nonsense", 400, live.curl("/v1/events", *as_json, data=b'{"nonsense')),
                    ("good", 202, live.curl("/v1/events", *as_json, data=good)),
                    ("chunked", 202, live.curl("/v1/events", *as_json, "-H",
                                               "Transfer-Encoding: chunked", data=good)),
                    ("OTLP", 200, live.curl("/v1/logs", *as_json, data=b"{}")),
                    ("OTLP nonsense", 400, live.curl("/v1/logs", *as_json, data=b"nonsense"))):
                self.checks.equal(got[0], wanted, "%s, %r" % (what, got[1]))
            key = ("-H", "Idempotency-Key: one")
            for repeated in (None, True):
                status, answer = live.curl("/v1/events", *as_json, *key, data=good)
                self.checks.equal((status, answer["accepted"], answer.get("repeated")),
                                  (202, 3, repeated), "a repeat")
            self.ended("answers", live)
            with open(quarantine, encoding="utf-8") as file:
                records = [json.loads(line)["record"] for line in file]
            self.checks.equal(records, ['{"nonsense'], "quarantine")
            self.checks.check("open-sesame" not in live.log_text(), "the token is in the log")

    def refused_starts(self):
        with tempfile.TemporaryDirectory() as folder, socket.socket() as taken:
            live = Live(self.binary, folder, {"ack": "stored"})
            result = run(self.binary, "run", "--config", live.config)
            self.checks.check(result.code != 0 and "file_storage" in result.errors(),
                              lambda: "ack: stored without a store: %d %s"
                              % (result.code, result.errors()))
            taken.bind(("127.0.0.1", 0))
            taken.listen(1)
            port = taken.getsockname()[1]
            live = Live(self.binary, folder, {"endpoint": "127.0.0.1:%d" % port})
            result = run(self.binary, "run", "--config", live.config)
            self.checks.equal(result.code, 73, "exit code with a taken port")
            self.checks.check("endpoint" in result.errors() and str(port) in result.errors(),
                              "a taken port: " + result.errors())
            result = run(self.binary, "run", "--once", "--config", live.config)
            self.checks.check(result.code not in (0, 70), "--once: %d" % result.code)

    def run(self):
        for name in JOBS:
            self.job(name, False)
        self.job(JOBS[0], True)
        self.answers()
        self.refused_starts()
        return self.checks.finish()


if __name__ == "__main__":
    sys.exit(Suite(sys.argv[1]).run())
