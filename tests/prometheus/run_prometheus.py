#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does a Prometheus server read from culprit what culprit found?

    run_prometheus.py BINARY

`culprit run` over a recording of a job whose rank leaked, and over a healthy one whose name would
break a page that does not escape it. Its pages, in both formats, are held
against docs/metrics.md and promtool; a Prometheus server scrapes them, as OpenMetrics, and through
a proxy that asks for the text format; then it is asked over its API for the verdict. At the end
culprit is killed and started again: with a store, what was counted goes on.

Without the programs prometheus and promtool that part is left out with a message; where CI is
"true" it fails instead.
"""
import gzip
import http.client
import http.server
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, os.path.join(HERE, "..", "healthy"))
sys.path.insert(0, HERE)
import generate  # noqa: E402
import test_metrics_page  # noqa: E402
from checks import Checks  # noqa: E402
from ports import free_ports  # noqa: E402
from process import environment  # noqa: E402
from running import PATIENCE_S, wait_for  # noqa: E402

CASE = os.path.join(HERE, "..", "golden", "real", "leak-rank2")
RANK = "2"
# What no one calls a job, but for those who want to put words into our mouth.
EVIL = '"} 1\nevil_total{a="\\\u00fc\u202e\U0001f600'
TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
SAMPLE = re.compile(r'^([a-zA-Z_:][\w:]*)(?:\{(.*?)\})? (\S+)(?: # \{.*\} \S+ \S+)?$')
LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"')


def ask(port, path, **headers):
    """Status, content type and body; None when nobody answers."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        connection.request("GET", path, headers={name.replace("_", "-"): value
                                                 for name, value in headers.items()})
        answer = connection.getresponse()
        body = answer.read()
        if answer.getheader("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        return answer.status, answer.getheader("Content-Type"), body.decode("utf-8")
    except (ConnectionError, http.client.HTTPException):
        return None
    finally:
        connection.close()


class TextProxy(http.server.BaseHTTPRequestHandler):
    """Hands a scrape on, but asks for the text format."""
    upstream = 0

    def do_GET(self):
        status, kind, body = ask(self.upstream, self.path, Accept="text/plain") \
            or (502, "text/plain", "")
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):
        pass


class Culprit:
    """culprit over the recording, with a store, an exporter, probes and its own metrics."""

    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder
        self.shown, self.health, self.own = free_ports(3)
        self.config = os.path.join(folder, "culprit.yaml")
        self.log = os.path.join(folder, "log")
        self.process = None
        job = generate.Job(EVIL, 7, 2, steps=9)
        for rank in range(job.ranks):
            with open(os.path.join(folder, "rank%d.jsonl" % rank), "w", encoding="utf-8") as file:
                file.writelines(line + "\n" for line in generate.Rank(job, rank).lines())
        timing = {"preset": "memory", "exporters": ["prometheus"], "evaluate_every": "1s",
                  "allowed_lateness": "1s", "settle": "1s", "idle_timeout": "1s"}
        with open(self.config, "w", encoding="utf-8") as file:
            json.dump({
                "receivers": {"file": {"include": [CASE + "/rank*/*.jsonl"],
                                       "start_at": "beginning"},
                              "file/evil": {"include": [folder + "/rank*.jsonl"],
                                            "start_at": "beginning"}},
                "exporters": {"prometheus": {"endpoint": "127.0.0.1:%d" % self.shown}},
                "extensions": {"health_check": {"endpoint": "127.0.0.1:%d" % self.health},
                               "file_storage": {"directory": os.path.join(folder, "store")}},
                "service": {
                    "extensions": ["health_check", "file_storage"],
                    "telemetry": {"metrics": {"endpoint": "127.0.0.1:%d" % self.own}},
                    "pipelines": {"memory": {"receivers": ["file"], **timing},
                                  "evil": {"receivers": ["file/evil"], **timing}},
                },
            }, file)

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [self.binary, "run", "--config", self.config], stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, env=environment())
        return wait_for(lambda: self.code("/readyz") == 200, self.process)

    def code(self, path):
        answer = ask(self.health, path)
        return answer and answer[0]

    def open_verdicts(self):
        return [labels for name, labels, _ in samples(ask(self.shown, "/metrics")[2])
                if name == "culprit_verdict_open"]

    def stop(self, number):
        self.process.send_signal(number)
        try:
            return self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None

    def said(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()


def samples(page):
    """(name, labels, value) of each sample; None in their place for a line that is none."""
    for line in page.split("\n"):
        if line and not line.startswith("#"):
            match = SAMPLE.match(line)
            if match is None:
                yield line, None, None
            else:
                yield match.group(1), dict(LABEL.findall(match.group(2) or "")), match.group(3)


class Suite:
    def __init__(self, binary):
        self.binary = binary
        self.checks = Checks()
        self.page_rows = test_metrics_page.page_rows()

    # -- pages -----------------------------------------------------------------------------------

    def documented(self, what, page):
        """Each sample is of a family that docs/metrics.md has, with labels it names."""
        families = 0
        for name, labels, _ in samples(page):
            if not self.checks.check(labels is not None, "%s: %r is no sample" % (what, name)):
                continue
            family = re.sub("_(bucket|sum|count)$", "", name)
            row = self.page_rows.get(family) or self.page_rows.get(name)
            if not self.checks.check(row is not None, "%s: docs/metrics.md has no %s"
                                     % (what, name)):
                continue
            families += 1
            known = set(re.findall(r"\w+", row[1])) | {"otel_metric_overflow"}
            if row[0] == "histogram":
                known.add("le")
            self.checks.check(set(labels) <= known, "%s: %s has labels %s, docs/metrics.md says %s"
                              % (what, name, sorted(labels), row[1]))
        self.checks.check(families > 5, "%s: only %d samples" % (what, families))

    def in_order(self, what, page):
        names = re.findall(r"^# TYPE (\S+)", page, re.M)
        self.checks.equal(names, sorted(set(names)), what + ": families in order, each once")
        seen = [(name, tuple(sorted(labels.items()))) for name, labels, _ in samples(page)
                if labels is not None]
        self.checks.equal(len(set(seen)), len(seen), what + ": series that are there twice")

    def promtool(self, what, page):
        done = subprocess.run(["promtool", "check", "metrics"], input=page.encode(),
                              capture_output=True, check=False)
        self.checks.check(done.returncode == 0 and not done.stdout and not done.stderr,
                          "%s: promtool: %s" % (what, (done.stdout + done.stderr).decode()))

    def pages(self, culprit, with_promtool):
        for what, port in (("verdict metrics", culprit.shown), ("own metrics", culprit.own)):
            status, kind, text = ask(port, "/metrics")
            self.checks.equal((status, kind), (200, TEXT), what + ", text")
            status, kind, open_text = ask(port, "/metrics", Accept_Encoding="gzip",
                                          Accept="application/openmetrics-text; version=1.0.0")
            self.checks.equal((status, kind), (200, OPENMETRICS), what + ", OpenMetrics")
            self.checks.check(open_text.endswith("\n# EOF\n"), what + ": no end mark")
            self.checks.check("# EOF" not in text, what + ": an end mark in the text format")
            for page in (text, open_text):
                self.documented(what, page)
                self.in_order(what, page)
            if with_promtool:
                self.promtool(what, text)

    def evil_is_a_value(self, culprit):
        """A job's name stays what it is: the value of one label."""
        page = wait_for(lambda: (text := ask(culprit.shown, "/metrics")[2]) and "evil_total" in text
                        and text, culprit.process) or ""
        names = {name for name, _, _ in samples(page)}
        self.checks.check(names and "evil_total" not in names, "a name became a metric")
        shown = {labels.get("training_job") for _, labels, _ in samples(page) if labels}
        self.checks.check(EVIL.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
                          in shown, "the name, escaped, is not among %s" % shown)

    def names_the_leak(self, what, culprit):
        found = wait_for(culprit.open_verdicts, culprit.process)
        if self.checks.check(found, lambda: "%s: no open verdict: %s"
                             % (what, culprit.said()[-2000:])):
            self.checks.equal([(one["kind"], one["rank"]) for one in found], [("leak", RANK)],
                              what + ": the open verdict")
            self.checks.check("job" not in found[0] and "instance" not in found[0],
                              what + ": labels that Prometheus sets itself")

    def health(self, culprit):
        for path in ("/", "/livez", "/readyz", "/startupz", "/status", "/status?verbose"):
            status, kind, body = ask(culprit.health, path)
            self.checks.equal((status, kind), (200, "application/json; charset=utf-8"), path)
            self.checks.check(isinstance(json.loads(body), dict), path + ": no object")
        listed = [one["id"] for one in json.loads(body)["components"]]
        for wanted in ("extension/health_check", "receiver/file", "exporter/prometheus"):
            self.checks.check(wanted in listed, "/status?verbose lacks %s: %s" % (wanted, listed))

    # -- a Prometheus server ---------------------------------------------------------------------

    def query(self, port, query):
        answer = ask(port, "/api/v1/query?" + urllib.parse.urlencode({"query": query}))
        if answer is None or answer[0] != 200:
            return None
        return json.loads(answer[2])["data"]["result"]

    def scraped(self, culprit, folder):
        TextProxy.upstream = culprit.shown
        proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), TextProxy)
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        port = free_ports(1)[0]
        targets = {"openmetrics": culprit.shown, "text": proxy.server_address[1],
                   "own": culprit.own}
        config = os.path.join(folder, "prometheus.yml")
        with open(config, "w", encoding="utf-8") as file:
            json.dump({"global": {"scrape_interval": "5s", "scrape_timeout": "5s"},
                       "scrape_configs": [
                           {"job_name": name,
                            "static_configs": [{"targets": ["127.0.0.1:%d" % target]}]}
                           for name, target in targets.items()]}, file)
        with open(os.path.join(folder, "prometheus.log"), "wb") as log:
            server = subprocess.Popen(
                ["prometheus", "--config.file=" + config, "--log.level=warn",
                 "--storage.tsdb.path=" + os.path.join(folder, "tsdb"),
                 "--enable-feature=exemplar-storage",
                 "--web.listen-address=127.0.0.1:%d" % port],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            self.asked(culprit, server, port, targets)
        finally:
            server.terminate()
            server.wait(PATIENCE_S)
            proxy.shutdown()
            proxy.server_close()

    def asked(self, culprit, server, port, targets):
        def up():
            found = self.query(port, "up == 1") or []
            return {one["metric"]["job"] for one in found} == set(targets)

        def targets_said():
            answer = ask(port, "/api/v1/targets")
            return answer and [one["lastError"] for one in
                               json.loads(answer[2])["data"]["activeTargets"]]
        self.checks.check(wait_for(up, server), lambda: "not all are scraped: %s" % targets_said())
        # Each job at the next scrape at the latest.
        found = wait_for(lambda: len(self.query(port, "culprit_verdict_open") or []) == 2
                         and self.query(port, "culprit_verdict_open"), server) or []
        self.checks.equal(sorted((one["metric"]["job"], one["metric"]["rank"],
                                  one["metric"]["kind"], one["value"][1]) for one in found),
                          [("openmetrics", RANK, "leak", "1"), ("text", RANK, "leak", "1")],
                          "culprit_verdict_open, as the server has it")
        shown = culprit.open_verdicts()[0]
        for one in found:
            kept = {name: value for name, value in one["metric"].items()
                    if name not in ("__name__", "job", "instance")}
            self.checks.equal(kept, shown, "labels on their way")
        for query, count in (("sum by (job) (culprit_verdicts_total) == 1", 2),
                             ("count by (job, training_job) (culprit_rank_last_event_timestamp_seconds) == 4",
                              2),
                             ("culprit_training_job_info{world_size=\"4\"}", 2),
                             ("culprit_verdict_latency_seconds_count == 1", 2),
                             ("culprit_verdict_latency_seconds_bucket{le=\"+Inf\"}", 2),
                             ("culprit_build_info{job=\"own\"}", 1),
                             ("process_start_time_seconds{job=\"own\"} > 1.7e9", 1),
                             ("sum by (job) (culprit_receiver_accepted_events_total) > 0", 1),
                             ("scrape_samples_scraped > 20", 3)):
            # A scrape that took too long has none of its series, until the next one.
            wait_for(lambda: len(self.query(port, query) or []) == count, server)
            self.checks.equal(len(self.query(port, query) or []), count, query)

        def names():
            return [one["metric"]["training_job"] for one in
                    self.query(port, "culprit_training_job_info{world_size=\"2\"}") or []]
        self.checks.equal(wait_for(lambda: len(names()) == 2 and names(), server), [EVIL] * 2,
                          "the evil name on its way")
        answer = ask(port, "/api/v1/query_exemplars?" + urllib.parse.urlencode(
            {"query": "culprit_verdict_latency_seconds_bucket", "start": time.time() - 3600,
             "end": time.time() + 3600}))
        ids = [exemplar["labels"]["verdict_id"] for one in json.loads(answer[2])["data"]
               for exemplar in one["exemplars"]]
        self.checks.check(ids and ids[0].startswith("memory_first_cause:"),
                          "exemplars: %s" % answer[2])

    # -- its life --------------------------------------------------------------------------------

    def counts(self, culprit):
        return sorted((name, tuple(sorted(labels.items())), value)
                      for name, labels, value in samples(ask(culprit.shown, "/metrics")[2])
                      if name in ("culprit_verdicts_total", "culprit_verdict_open",
                                  "culprit_verdict_latency_seconds_count"))

    def commits(self, culprit):
        return sum(int(value) for name, _, value in samples(ask(culprit.own, "/metrics")[2])
                   if name == "culprit_store_commits_total")

    def reload(self, culprit):
        """Everything answers again after it, and shows the same."""
        before = self.counts(culprit)
        culprit.process.send_signal(signal.SIGHUP)
        done = wait_for(lambda: "C1012" in culprit.said(), culprit.process)
        self.checks.check(done, "reload: it is not said: " + culprit.said()[-1000:])
        same = wait_for(lambda: self.counts(culprit) == before, culprit.process)
        self.checks.check(same, lambda: "reload: %s before, %s after"
                          % (before, self.counts(culprit)))
        ready = wait_for(lambda: culprit.code("/readyz") == 200, culprit.process)
        self.checks.check(ready, "reload: /readyz does not become 200")
        self.checks.equal(ask(culprit.own, "/metrics")[0], 200, "reload: own metrics")

    def killed(self, culprit):
        before = self.counts(culprit)
        # Whether it goes on from a checkpoint or reads the file again: it comes to the same.
        self.checks.check(wait_for(lambda: self.commits(culprit) > 0, culprit.process),
                          "killed: there was no checkpoint")
        self.checks.equal(culprit.stop(signal.SIGKILL), -signal.SIGKILL, "killed")
        self.checks.check(culprit.start(), "killed: it does not start again: "
                          + culprit.said()[-1000:])
        same = wait_for(lambda: self.counts(culprit) == before, culprit.process)
        self.checks.check(same, lambda: "killed: %s before, %s after"
                          % (before, self.counts(culprit)))

    def run(self, with_server):
        with tempfile.TemporaryDirectory() as folder:
            culprit = Culprit(self.binary, folder)
            started = culprit.start()
            if not self.checks.check(started, "it is not ready: " + culprit.said()[-2000:]):
                culprit.stop(signal.SIGKILL)
                return
            try:
                self.names_the_leak("at first", culprit)
                self.evil_is_a_value(culprit)
                self.health(culprit)
                self.pages(culprit, with_server)
                if with_server:
                    self.scraped(culprit, folder)
                self.reload(culprit)
                self.killed(culprit)
                code = culprit.stop(signal.SIGTERM)
                self.checks.equal(code, 0, "SIGTERM")
                self.checks.check("Sanitizer" not in culprit.said(),
                                  "the sanitizer complains: " + culprit.said()[-4000:])
            finally:
                if culprit.process.poll() is None:
                    culprit.stop(signal.SIGKILL)


def main(binary):
    suite = Suite(os.path.abspath(binary))
    missing = [name for name in ("prometheus", "promtool") if shutil.which(name) is None]
    if missing:
        print("not installed (Debian: prometheus): %s; the part with a server is left out"
              % ", ".join(missing))
        suite.checks.check(os.environ.get("CI") != "true", "CI needs " + ", ".join(missing))
    suite.run(not missing)
    return suite.checks.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
