#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How culprit reaches a W&B server: TLS, proxies, netrc; and what it never does with the key.

    run_wandb_transport.py BINARY

Between culprit and the mock server stand a TLS front with a certificate of its own, a proxy, a
server that sends clients elsewhere, one that never ends its answer, and one whose answers hold
things that nobody would expect there.
"""
import base64
import http.client
import http.server
import json
import os
import random
import shutil
import socket
import socketserver
import ssl
import subprocess
import sys
import tempfile
import threading
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
import bad_sink  # noqa: E402
from checks import Checks  # noqa: E402
from process import environment  # noqa: E402
from wandb_server import Mock  # noqa: E402

KEY = "canary_key_" + "0123456789abcdefghijklmnopqrstuvwxyz_ABC"
EVENTS = os.path.join(HERE, "golden", "small_no_alerts", "input", "events.jsonl")
STRANGE_RUNS = 24
SEED = 1123
BASIC = "Basic " + base64.b64encode(b"api:" + KEY.encode()).decode()


class Quiet(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def note(self):
        self.server.seen.append((self.command, self.path, self.headers.get("Authorization")))

    def answer(self, status, headers, body):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Forward(Quiet):
    """Hands every request to the mock, whatever host it names."""

    def any_method(self):
        body = self.body()
        self.note()
        place = urllib.parse.urlsplit(self.path)
        path = place.path + ("?" + place.query if place.query else "")
        connection = http.client.HTTPConnection("127.0.0.1", self.server.mock_port, timeout=30)
        connection.request(self.command, path, body, {
            name: value for name, value in self.headers.items()
            if name.lower() not in ("host", "proxy-connection", "connection")})
        reply = connection.getresponse()
        data = reply.read()
        self.answer(reply.status, [("Content-Type", "application/json")], data)
        connection.close()

    do_POST = do_PUT = any_method


STRANGE = (None, 1, -1, 1e300, True, "", "x", "9" * 5000, [], {}, [[]], {"id": {}}, "\x00\n\u00e9",
           '{"_wandb":{"value":7},"culprit":{"value":{"incarnation":1}}}', "[\"{\\\"_step\\\":1e99}\"]",
           "file:///etc/passwd")


class Twisted(Forward):
    """Puts something strange into every answer of GraphQL."""

    def answer(self, status, headers, body):
        chance = self.server.chance
        if self.path.endswith("/graphql") and chance.random() < 0.2:
            document = json.loads(body)
            nodes = []
            self.collect(document, nodes)
            parent, key = chance.choice(nodes)
            parent[key] = chance.choice(STRANGE)
            body = json.dumps(document).encode()
        super().answer(status, headers, body)

    def collect(self, value, nodes):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in items:
            nodes.append((value, key))
            if isinstance(inner, (dict, list)):
                self.collect(inner, nodes)


class Elsewhere(Quiet):
    def do_POST(self):
        self.body()
        self.note()
        self.answer(307, [("Location", self.server.elsewhere + self.path)], b"")


class Sink(Quiet):
    def do_POST(self):
        self.body()
        self.note()
        self.answer(200, [], b"{}")


class Endless(Quiet):
    def do_POST(self):
        self.body()
        self.note()
        self.send_response(200)
        self.end_headers()
        try:
            while True:
                self.wfile.write(b" " * 65536)
        except OSError:
            self.close_connection = True


class EndlessHeaders(Quiet):
    def do_POST(self):
        self.body()
        self.note()
        self.wfile.write(b"HTTP/1.1 200 OK\r\n")
        try:
            while True:
                self.wfile.write(b"X-More: %s\r\n" % (b"x" * 1000))
        except OSError:
            self.close_connection = True


class NoHttp(Quiet):
    def do_POST(self):
        self.body()
        self.note()
        self.wfile.write(b"\x16\x03\x01 this is not HTTP\r\n\r\n")
        self.close_connection = True


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True

    def __init__(self, handler, mock_port=0, elsewhere="", context=None):
        super().__init__(("127.0.0.1", 0), handler)
        self.seen, self.mock_port, self.elsewhere = [], mock_port, elsewhere
        self.context = context
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def finish_request(self, request, client_address):
        if self.context:
            request = self.context.wrap_socket(request, server_side=True)
        super().finish_request(request, client_address)

    def handle_error(self, request, client_address):
        pass  # clients that hang up are what is tested

    @property
    def port(self):
        return self.server_address[1]


class Suite:
    def __init__(self, binary, folder, mock):
        self.binary, self.folder, self.mock = binary, folder, mock
        self.checks = Checks()
        self.mock_port = int(mock.url.rsplit(":", 1)[1])

    def export(self, url, more=None, key=True, **variables):
        self.mock.call("POST", "/__reset")
        exporter = dict({"base_url": url, "content": "tracking", "timeout": "20s",
                         "retry_on_failure": {"enabled": False}}, **(more or {}))
        if key:
            exporter["api_key"] = "${env:KEY}"
        path = os.path.join(self.folder, "culprit.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"receivers": {"file": {"include": [EVENTS]}},
                       "exporters": {"wandb": exporter},
                       "service": {"telemetry": {"logs": {"level": "debug"}},
                                   "pipelines": {"memory": {
                                       "receivers": ["file"], "preset": "memory",
                                       "exporters": ["wandb"]}}}}, file)
        done = subprocess.run([self.binary, "run", "--once", "--config", path],
                              env=environment(HOME=self.folder, KEY=KEY, **variables),
                              capture_output=True, timeout=100, check=False)
        said = (done.stdout + done.stderr).decode()
        self.checks.check(KEY not in said and BASIC not in said, "the key stands in what it said")
        return done.returncode, said

    def arrives(self, what, *arguments, **more):
        code, said = self.export(*arguments, **more)
        self.checks.equal(code, 0, what + ": exit code, " + said[-500:])
        decoded = self.mock.decoded()
        self.checks.equal(decoded["violations"], [], what)
        self.checks.equal([run["complete"] for run in decoded["runs"]], [True], what)

    def fails(self, what, wanted, word, *arguments, **more):
        code, said = self.export(*arguments, **more)
        self.checks.equal(code, wanted, what + ": exit code, " + said[-500:])
        self.checks.check(word in said, "%s: no %r in %s" % (what, word, said[-500:]))
        self.checks.equal(self.mock.decoded()["runs"], [], what)


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


def check_tls(suite):
    checks = suite.checks
    if shutil.which("openssl") is None:
        checks.skip("openssl is not installed")
        return
    certificate = os.path.join(suite.folder, "certificate.pem")
    key = os.path.join(suite.folder, "key.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=test",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
                   check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    front = Server(Forward, suite.mock_port, context=context)
    url = "https://127.0.0.1:%d" % front.port
    suite.arrives("ca_file", url, {"ca_file": certificate})
    suite.arrives("CURL_CA_BUNDLE", url, CURL_CA_BUNDLE=certificate)
    front.seen.clear()
    suite.fails("a certificate nobody vouches for", 74, "ca_file", url)
    suite.fails("another host", 74, "localhost", "https://localhost:%d" % front.port,
                {"ca_file": certificate})
    expired = bad_sink.certificate(suite.folder, "expired", -1, openssl)
    late = Server(Forward, suite.mock_port, context=bad_sink.tls(*expired))
    suite.fails("an expired certificate", 74, "expired", "https://127.0.0.1:%d" % late.port,
                {"ca_file": expired[0]})
    checks.equal(front.seen + late.seen, [], "nothing is said to a server that is not known")
    late.shutdown()
    suite.fails("no ca_file", 78, "cannot be read", url, {"ca_file": "/nowhere.pem"})
    front.shutdown()


def check_proxy(suite):
    checks = suite.checks
    proxy = Server(Forward, suite.mock_port)
    address = "http://127.0.0.1:%d" % proxy.port
    for what, more, variables in (("proxy", {"proxy": address}, {}),
                                  ("http_proxy", {}, {"http_proxy": address})):
        proxy.seen.clear()
        suite.arrives(what, "http://wandb.invalid", more, **variables)
        checks.check(len(proxy.seen) > 10, what + ": all goes by it")
        for method, path, key in proxy.seen:
            checks.equal(key, BASIC if "/storage/" not in path else None,
                         "%s: key with %s %s" % (what, method, path))
    proxy.seen.clear()
    suite.arrives("no_proxy", suite.mock.url, http_proxy=address,
                  no_proxy="127.0.0.1")
    checks.equal(proxy.seen, [], "no_proxy")
    proxy.shutdown()


def check_strange_servers(suite):
    checks = suite.checks
    sink = Server(Sink)
    elsewhere = Server(Elsewhere, elsewhere="http://127.0.0.1:%d" % sink.port)
    suite.fails("redirect", 74, "redirects are not followed",
                "http://127.0.0.1:%d" % elsewhere.port)
    checks.equal((len(elsewhere.seen), sink.seen), (1, []), "redirect")
    endless = Server(Endless)
    suite.fails("endless answer", 74, "more than 64 MiB", "http://127.0.0.1:%d" % endless.port)
    checks.equal(len(endless.seen), 1, "endless answer")
    headers, strange = Server(EndlessHeaders), Server(NoHttp)
    suite.fails("endless headers", 74, "truncated or not JSON", "http://127.0.0.1:%d" % headers.port)
    suite.fails("no HTTP", 74, "HTTP/0.9", "http://127.0.0.1:%d" % strange.port)
    checks.equal((len(headers.seen), len(strange.seen)), (1, 1), "endless headers, no HTTP")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        suite.fails("nobody there", 74, "127.0.0.1",
                    "http://127.0.0.1:%d" % closed.getsockname()[1])
    for server in (sink, elsewhere, endless, headers, strange):
        server.shutdown()


def check_strange_answers(suite):
    checks = suite.checks
    twisted = Server(Twisted, suite.mock_port)
    twisted.chance = random.Random(SEED)
    ends = set()
    for number in range(STRANGE_RUNS):
        code, said = suite.export("http://127.0.0.1:%d" % twisted.port, {
            "retry_on_failure": {"initial_interval": "1ms", "max_elapsed_time": "2s"}})
        ends.add(code)
        checks.check(code in (0, 74) and "Sanitizer" not in said,
                     "strange answers %d: %d %s" % (number, code, said[-1500:]))
    checks.equal(ends, {0, 74}, "strange answers: some pass, some do not")
    twisted.shutdown()


def check_netrc(suite):
    url = suite.mock.url
    suite.fails("no key at all", 78, "WANDB_API_KEY", url, key=False)
    path = os.path.join(suite.folder, ".netrc")
    with open(path, "w", encoding="ascii") as file:
        file.write("machine api.wandb.ai login user password %s\n" % ("x" * 40))
    suite.fails("another machine", 78, "netrc", url, key=False)
    with open(path, "a", encoding="ascii") as file:
        file.write("machine 127.0.0.1\n  login user\n  password %s\n" % KEY)
    suite.arrives("netrc", url, key=False)
    other = os.path.join(suite.folder, "other")
    os.rename(path, other)
    suite.arrives("NETRC", url, key=False, NETRC=other)


def main():
    with tempfile.TemporaryDirectory() as folder, Mock("--api-key", KEY) as mock:
        suite = Suite(os.path.abspath(sys.argv[1]), folder, mock)
        check_tls(suite)
        check_proxy(suite)
        check_strange_servers(suite)
        check_strange_answers(suite)
        check_netrc(suite)
    return suite.checks.finish()


if __name__ == "__main__":
    sys.exit(main())
