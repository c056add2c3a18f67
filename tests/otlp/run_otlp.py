#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The OTLP exporter of a whole culprit: does who receives it understand what it sends?

    run_otlp.py BINARY

Requests in both forms are read with OpenTelemetry's own messages and held against the verdicts;
servers refuse, fail, and take a part. With CULPRIT_LONG=yes also an OpenTelemetry Collector, which
is built once (Go), gets them and writes what it has understood.
"""
import base64
import collections
import glob
import gzip
import http.server
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, os.path.join(HERE, "..", "..", "bench", "peers"))
import cache  # noqa: E402
import fetched  # noqa: E402
from checks import Checks  # noqa: E402
from ports import free_ports  # noqa: E402
from process import environment  # noqa: E402
from running import PATIENCE_S  # noqa: E402

PROTO = ("opentelemetry-proto", "1.38.0")
LEAK = os.path.join(HERE, "..", "golden", "real", "leak-rank2")
INPUT = os.path.join(HERE, "..", "golden", "detectors", "incident", "*", "events.jsonl")
LOST = 74
LEVELS = {"info": (9, "INFO"), "warning": (13, "WARN"), "error": (17, "ERROR"),
          "critical": (21, "FATAL")}

Post = collections.namedtuple("Post", "path headers body time")


class Sink:
    """Answers as `answer(number, path)` says: (status, headers, body)."""

    def __init__(self, answer):
        self.posts = []
        sink = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers["Content-Encoding"] == "gzip":
                    body = gzip.decompress(body)
                number = len(sink.posts)
                sink.posts.append(Post(self.path, dict(self.headers), body, time.monotonic()))
                status, headers, answer_body = answer(number, self.path)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer_body)))
                self.end_headers()
                self.wfile.write(answer_body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def fine(*_):
    return 200, {}, b""


class Run:
    def __init__(self, binary, folder, url, **otlp):
        self.binary, self.folder = binary, folder
        self.lines = os.path.join(folder, "verdicts.jsonl")
        self.config = os.path.join(folder, "culprit.yaml")
        self.document = {
            "receivers": {"file": {"include": [INPUT]}},
            "exporters": {"json": {"path": self.lines},
                          "otlp": {"endpoint": url, **otlp, "retry_on_failure":
                                   {"initial_interval": "100ms", "max_interval": "3s"}}},
            "service": {"pipelines": {"all": {"receivers": ["file"], "preset": "all",
                                              "exporters": ["json", "otlp"]}}}}

    def once(self):
        with open(self.config, "w", encoding="utf-8") as file:
            json.dump(self.document, file)
        done = subprocess.run([self.binary, "run", "--once", "--config", self.config],
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S,
                              env=environment(), check=False)
        return done.returncode, done.stderr.decode()

    def verdicts(self):
        with open(self.lines, encoding="utf-8") as file:
            return [json.loads(line) for line in file]


def value_of(value):
    """An AnyValue as plain Python."""
    if "arrayValue" in value:
        return [value_of(one) for one in value["arrayValue"].get("values", [])]
    if "kvlistValue" in value:
        return attributes_of(value["kvlistValue"].get("values", []))
    if "intValue" in value:
        return int(value["intValue"])
    return value.get("stringValue", value.get("boolValue"))


def attributes_of(items):
    return {item["key"]: value_of(item["value"]) for item in items}


def records_of(request):
    """(resource, log record) of each."""
    return [(attributes_of(resource["resource"]["attributes"]), record)
            for resource in request["resourceLogs"] for scope in resource["scopeLogs"]
            for record in scope["logRecords"]]


def check_record(checks, resource, record, verdict):
    name = verdict["id"]
    attributes = attributes_of(record["attributes"])
    checks.equal((record["severityNumber"], record["severityText"]), LEVELS[verdict["severity"]],
                 name + ": severity")
    checks.equal(record["eventName"], "culprit.verdict", name + ": event name")
    checks.equal(value_of(record["body"]), verdict["headline"], name + ": body")
    checks.equal(record["timeUnixNano"], verdict["end_time_unix_nano"], name + ": time")
    checks.check(int(record["observedTimeUnixNano"]) > 1.7e18, name + ": observed time")
    for key in ("id", "pattern", "kind", "state", "severity", "confidence", "completeness",
                "action", "remediation"):
        checks.equal(attributes["culprit.verdict." + key], verdict[key], name + ": " + key)
    for key, value in verdict.get("attributes", {}).items():
        checks.equal(attributes[key], value, name + ": " + key)
    checks.equal(attributes["culprit.entities"], verdict["entities"], name + ": entities")
    checks.equal([(one["uid"], one["description"], one.get("repeats"))
                  for one in attributes["culprit.evidence"]],
                 [(one["uid"], one["description"], one.get("repeats"))
                  for one in verdict["evidence_trail"]],
                 name + ": evidence")
    for relation in ("caused_by", "causes", "same_incident"):
        checks.equal(attributes.get("culprit." + relation, []),
                     [one["id"] for one in verdict.get("related", [])
                      if one["relation"] == relation], name + ": " + relation)
    nodes = [one["name"] for one in verdict["entities"]
             if one["kind"] == "node" and one["role"] != "victim"]
    checks.equal(resource.get("k8s.node.name"), nodes[0] if nodes else None, name + ": node")
    checks.equal(resource["service.name"], "trainer-watch", name + ": service")


def check_requests(checks, form, logs, metrics, verdicts):
    records = [one for request in logs for one in records_of(request)]
    checks.equal(len(records), len(verdicts), form + ": as many records as verdicts")
    # The file has the order of the report.
    by_id = {attributes_of(record["attributes"])["culprit.verdict.id"]: (resource, record)
             for resource, record in records}
    for verdict in verdicts:
        resource, record = by_id[verdict["id"]]
        check_record(checks, resource, record, verdict)
    points = [point for request in metrics for resource in request["resourceMetrics"]
              for scope in resource["scopeMetrics"] for metric in scope["metrics"]
              for point in metric["sum"]["dataPoints"] if metric["name"] == "culprit.verdicts"]
    counts = collections.Counter((one["pattern"], one["severity"], one.get("job_id"))
                                 for one in verdicts if one["state"] == "open")
    told = {tuple(attributes_of(point["attributes"]).get(key) for key in
                  ("culprit.verdict.pattern", "culprit.verdict.severity", "culprit.job_id")):
            int(point["asInt"]) for point in points}
    checks.equal(told, dict(counts), form + ": the metric")
    checks.check(all(int(point["timeUnixNano"]) > int(point["startTimeUnixNano"]) > 1.7e18
                     for point in points), form + ": times of the metric")


def read(checks, binary, folder):
    try:
        python = fetched.fetch(*PROTO)
    except RuntimeError as error:
        checks.skip("protobuf is not read by OpenTelemetry's messages: %s" % error)
        python = None
    for form, compression in (("json", "gzip"), ("json", "none"), ("protobuf", "gzip"),
                              ("protobuf", "none")):
        if form == "protobuf" and python is None:
            continue
        with Sink(fine) as sink:
            run = Run(binary, folder, sink.url, encoding=form, compression=compression,
                      service_name="trainer-watch")
            code, log = run.once()
            checks.equal(code, 0, form + ": " + log[-1000:])
            checks.equal({post.headers.get("Content-Encoding", "none") for post in sink.posts},
                         {compression}, "compression")
            if form == "json":
                requests = [json.loads(post.body) for post in sink.posts]
            else:
                lines = "".join(json.dumps([post.path, base64.b64encode(post.body).decode()])
                                + "\n" for post in sink.posts)
                done = subprocess.run([python, os.path.join(HERE, "read_requests.py")],
                                      input=lines, capture_output=True, text=True, check=False,
                                      timeout=PATIENCE_S)
                checks.equal(done.returncode, 0, "protobuf: " + done.stderr[-1000:])
                requests = [json.loads(line) for line in done.stdout.splitlines()]
            of = {"/v1/logs": [], "/v1/metrics": []}
            for post, request in zip(sink.posts, requests):
                of[post.path].append(request)
            check_requests(checks, form, of["/v1/logs"], of["/v1/metrics"], run.verdicts())
        os.remove(run.lines)


def over_failures(checks, binary, folder):
    """What OTLP says may be tried again is, in order; nothing is lost, nothing comes twice."""
    script = {0: (503, {"Retry-After": "1"}, b""), 1: (429, {}, b""), 2: (502, {}, b""),
              3: (504, {}, b"")}
    with Sink(lambda number, path: script.get(number, (200, {}, b""))) as sink:
        run = Run(binary, folder, sink.url, encoding="json", metrics_interval="0s")
        code, log = run.once()
        checks.equal(code, 0, "over failures: " + log[-1000:])
        records = [record for post in sink.posts[4:]
                   for _, record in records_of(json.loads(post.body))]
        checks.equal(sorted(value_of(record["body"]) for record in records),
                     sorted(one["headline"] for one in run.verdicts()), "each once")
        waited = sink.posts[1].time - sink.posts[0].time
        checks.check(waited >= 0.95, "Retry-After is kept: %.2f s" % waited)
        checks.check(all(post.path == "/v1/logs" for post in sink.posts), "no metric")
    os.remove(run.lines)


def refused(checks, binary, folder):
    """Other failures are for good: one by one, and only what is refused by itself is lost."""
    for status in (400, 401, 404, 413, 500):
        posts = []

        def answer(number, path):
            if path != "/v1/logs":
                return 200, {}, b""
            posts.append(number)
            return (status if len(posts) in (1, 3) else 200), {}, b""
        with Sink(answer) as sink:
            run = Run(binary, folder, sink.url, encoding="json")
            code, log = run.once()
            checks.equal(code, LOST, "%d: something was not delivered: %s" % (status, log[-1000:]))
            wanted = [one["headline"] for one in run.verdicts()]
            got = [value_of(record["body"]) for number, post in enumerate(sink.posts)
                   if post.path == "/v1/logs" and number not in (posts[0], posts[2])
                   for _, record in records_of(json.loads(post.body))]
            checks.check(len(got) == len(wanted) - 1 == len(set(got) & set(wanted)),
                         "%d: the others arrive, each once: %r" % (status, got))
            checks.check(str(status) in log and "C3006" in log, "%d is logged: %s"
                         % (status, log[-500:]))
        os.remove(run.lines)


def token_replaced(checks, binary, folder):
    """A token that was replaced while verdicts waited: they are sent with the new one."""
    token = os.path.join(folder, "token")

    def answer(number, path):
        if number == 0:
            with open(token + ".new", "w", encoding="ascii") as file:
                file.write("second\n")
            os.rename(token + ".new", token)
            return 401, {}, b""
        return 200, {}, b""
    with open(token, "w", encoding="ascii") as file:
        file.write("first\n")
    with Sink(answer) as sink:
        run = Run(binary, folder, sink.url, encoding="json", metrics_interval="0s",
                  auth={"bearer_token_file": token})
        code, log = run.once()
        checks.equal(code, 0, "a token that was replaced: " + log[-1000:])
        checks.equal([post.headers.get("Authorization") for post in sink.posts[:2]],
                     ["Bearer first", "Bearer second"], "the tokens")
    os.remove(run.lines)


def partial(checks, binary, folder):
    """What is rejected while the rest is taken is logged, and not sent again."""
    answers = {"json": json.dumps({"partialSuccess": {"rejectedLogRecords": "2",
                                                      "errorMessage": "too old"}}).encode(),
               "protobuf": b"\x0a\x0b\x08\x02\x12\x07too old"}
    for form, body in answers.items():
        with Sink(lambda number, path, body=body: (200, {}, body)) as sink:
            run = Run(binary, folder, sink.url, encoding=form, metrics_interval="0s")
            code, log = run.once()
            checks.equal(code, 0, form + ": " + log[-1000:])
            checks.equal(len(sink.posts), 1, form + ": it is not sent again")
            checks.check("C3901" in log and "2 log records were rejected: too old" in log,
                         form + ": it is logged: " + log[-500:])
        os.remove(run.lines)


def garbage(checks, binary, folder):
    """Answers that are none do no harm."""
    for body in (b"\xff" * 300, b"\x0a\xff\xff\xff\xff\x0f", b"{", b'{"partialSuccess":[]}',
                 b"\x0a\x02\x08", b"\x0b\x0c", b"x" * 100000):
        for form in ("json", "protobuf"):
            with Sink(lambda number, path, body=body: (200, {}, body)) as sink:
                run = Run(binary, folder, sink.url, encoding=form)
                code, log = run.once()
                checks.equal(code, 0, "%s, %r: %s" % (form, body[:10], log[-500:]))
            os.remove(run.lines)


def strange_names(checks, binary, folder):
    """A job whose name holds a NUL is sent as it is called."""
    path = os.path.join(folder, "events.jsonl")
    with open(path, "w", encoding="utf-8") as file:
        for name in sorted(glob.glob(os.path.join(LEAK, "rank*", "*.jsonl"))):
            with open(name, encoding="utf-8") as segment:
                file.write(re.sub('"job_id": ?"[^"]*"', r'"job_id":"a\\u0000b"', segment.read()))
    for form in ("json", "protobuf"):
        with Sink(fine) as sink:
            run = Run(binary, folder, sink.url, encoding=form)
            run.document["receivers"]["file"]["include"] = [path]
            code, log = run.once()
            checks.equal(code, 0, form + ": " + log[-1000:])
            wanted = b'a\\u0000b' if form == "json" else b"a\0b"
            checks.check(any(wanted in post.body for post in sink.posts), form + ": the job")
        os.remove(run.lines)


def collector(checks, binary, folder):
    if os.environ.get("CULPRIT_LONG") != "yes":
        checks.skip("no OpenTelemetry Collector gets anything (.ci/run --long)")
        return
    import install

    def fill(place):
        work = os.path.join(place, "work")
        program = install.Collector(work).build(lambda text: None).program
        os.rename(program, os.path.join(place, "collector"))
        subprocess.run(["chmod", "-R", "u+w", work], check=False)
        subprocess.run(["rm", "-rf", work], check=False)
    try:
        program = os.path.join(cache.made_once("collector-0.160.0", fill), "collector")
    except install.Missing as error:
        checks.skip("there is no Collector: %s" % error)
        return
    port, = free_ports(1)
    out = os.path.join(folder, "out.jsonl")
    config = os.path.join(folder, "collector.yaml")
    with open(config, "w", encoding="utf-8") as file:
        json.dump({"receivers": {"otlp": {"protocols": {"http": {"endpoint":
                                                                 "127.0.0.1:%d" % port}}}},
                   "exporters": {"file": {"path": out}},
                   "service": {"telemetry": {"metrics": {"level": "none"}},
                               "pipelines": {signal: {"receivers": ["otlp"],
                                                      "exporters": ["file"]}
                                             for signal in ("logs", "metrics")}}}, file)
    for form in ("json", "protobuf"):
        with open(os.path.join(folder, "collector.log"), "wb") as log:
            process = subprocess.Popen([program, "--config", config], stdin=subprocess.DEVNULL,
                                       stdout=log, stderr=log)
        run = Run(binary, folder, "http://127.0.0.1:%d" % port, encoding=form,
                  service_name="trainer-watch")
        code, text = run.once()  # it is tried again until the Collector listens
        process.terminate()
        process.wait(PATIENCE_S)
        checks.equal(code, 0, "Collector, %s: %s" % (form, text[-1000:]))
        with open(out, encoding="utf-8") as file:
            requests = [json.loads(line) for line in file]
        check_requests(checks, "Collector, " + form,
                       [one for one in requests if "resourceLogs" in one],
                       [one for one in requests if "resourceMetrics" in one], run.verdicts())
        os.remove(out)
        os.remove(run.lines)


def main(binary):
    checks = Checks()
    for case in (read, over_failures, refused, token_replaced, partial, garbage, strange_names, collector):
        with tempfile.TemporaryDirectory() as folder:
            case(checks, binary, folder)
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
