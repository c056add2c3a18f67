#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The scrape receiver of a whole culprit, against exporters that fail in every way and real ones.

    run_scrape.py BINARY

Exporters that are dead, slow, endless, cut off, no exporters at all: each is said once, and the one
that works is asked on time all the while; what it says becomes a verdict. TLS and a bearer token
that is rotated. Prometheus' own metrics, and a node_exporter over a made tree of sysfs and with
dcgm-exporter's text, when these programs are there: otherwise that part is left out with a message.
"""
import gzip
import http.server
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from checks import Checks  # noqa: E402
from ports import free_port  # noqa: E402
from process import environment  # noqa: E402
from running import PATIENCE_S, documents, wait_for  # noqa: E402

# No answer of a slow machine takes so long; of those that fail some take longer.
TIMEOUT = {"interval": "6s", "timeout": "6s"}
BOMB = gzip.compress(b"a 1\n" * 4000000)
TEXT = "text/plain; version=0.0.4; charset=utf-8"
LABELS = ('gpu="%d",UUID="GPU-%d",pci_bus_id="00000000:%02X:00.0",device="nvidia%d",'
          'modelName="NVIDIA H100 80GB HBM3",Hostname="the-pod",DCGM_FI_DRIVER_VERSION="550.54"')
SAMPLE = re.compile(r'^(\w+)\{(.*)\} (\S+)$')
MAX_SIZE = 65536


def gpu_text(xid=0):
    lines = ["# HELP DCGM_FI_DEV_XID_ERRORS The last one.", "# TYPE DCGM_FI_DEV_XID_ERRORS gauge"]
    for gpu in range(2):
        labels = LABELS % (gpu, gpu, 16 + gpu, gpu)
        lines.append("DCGM_FI_DEV_XID_ERRORS{%s} %d" % (labels, xid if gpu == 1 else 0))
        lines.append("DCGM_FI_DEV_GPU_TEMP{%s} 41" % labels)
        lines.append("DCGM_FI_PROF_SM_ACTIVE{%s} 0.5" % labels)
    return "\n".join(lines) + "\n"


class Exporter:
    """Answers each request by `answer(handler)`; over TLS with a certificate."""

    def __init__(self, answer, certificate=None):
        self.requests = []
        exporter = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                exporter.requests.append(dict(self.headers))
                try:
                    answer(self)
                except OSError:
                    self.close_connection = True

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        scheme = "http"
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
            scheme = "https"
        self.origin = "%s://127.0.0.1:%d" % (scheme, self.server.server_address[1])
        self.url = self.origin + "/metrics"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def send(handler, text, status=200, kind=TEXT, **headers):
    body = text if isinstance(text, bytes) else text.encode()
    handler.send_response(status)
    handler.send_header("Content-Type", kind)
    handler.send_header("Content-Length", str(len(body)))
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


def cut_off(handler):
    handler.send_response(200)
    handler.send_header("Content-Type", TEXT)
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    handler.wfile.write(gpu_text().encode())
    handler.close_connection = True


def uncounted(handler, text):
    """Whether it is all of it nobody can tell."""
    handler.send_response(200)
    handler.send_header("Content-Type", TEXT)
    handler.send_header("Connection", "close")
    handler.end_headers()
    handler.wfile.write(text.encode())
    handler.close_connection = True


def never_ends(handler):
    handler.send_response(200)
    handler.send_header("Content-Type", TEXT)
    handler.send_header("Connection", "close")
    handler.end_headers()
    handler.close_connection = True
    while True:
        handler.wfile.write(gpu_text().encode())


# What is wrong with it, and what the message says of it.
FAILING = {
    "not found": (lambda h: send(h, "nothing here", 404), "answers 404"),
    "failing": (lambda h: send(h, "broken", 500), "answers 500"),
    "elsewhere": (lambda h: send(h, "", 302, Location="http://127.0.0.1:1/"),
                  "redirects are not followed"),
    "empty": (lambda h: send(h, ""), "empty"),
    "no content": (lambda h: send(h, "", 204), "status that comes without"),
    "a page": (lambda h: send(h, "<html></html>\n", kind="text/html"), "Content-Type"),
    "a page as text": (lambda h: send(h, "<html>\n</html>\n"), "not metrics"),
    "garbage": (lambda h: send(h, bytes(range(256)) * 8), "not text"),
    "slow": (lambda h: time.sleep(60), "imed out"),
    "cut off": (cut_off, "cut off"),
    "half a line": (lambda h: uncounted(h, gpu_text()[:-1]), "inside a line"),
    "open metrics without an end": (
        lambda h: send(h, gpu_text(), kind="application/openmetrics-text; version=1.0.0"), "# EOF"),
    "endless": (never_ends, "max_scrape_size"),
    "too long": (lambda h: send(h, gpu_text() * 400), "max_scrape_size"),
    "a bomb": (lambda h: send(h, BOMB, Content_Encoding="gzip"),
               "max_scrape_size"),
}


class Culprit:
    def __init__(self, binary, folder, **scrape):
        self.binary, self.folder, self.own = binary, folder, free_port()
        self.verdicts = os.path.join(folder, "verdicts.jsonl")
        self.log = os.path.join(folder, "log")
        self.process = None
        document = {
            "receivers": {"prometheus_scrape": {**TIMEOUT, **scrape}},
            "exporters": {"json": {"path": self.verdicts}},
            "service": {
                "telemetry": {"metrics": {"endpoint": "127.0.0.1:%d" % self.own},
                              "logs": {"encoding": "json"}},
                "pipelines": {"all": {"receivers": ["prometheus_scrape"], "preset": "all",
                                      "exporters": ["json"], "evaluate_every": "500ms",
                                      "allowed_lateness": "100ms", "settle": "100ms"}}}}
        self.config = os.path.join(folder, "culprit.yaml")
        with open(self.config, "w", encoding="utf-8") as file:
            json.dump(document, file)

    def __enter__(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([self.binary, "run", "--config", self.config],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env=environment())
        self.wait(lambda: self.messages("C1001"))
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)

    def wait(self, condition):
        return wait_for(condition, self.process)

    def messages(self, code):
        return [line["msg"] for line in documents(self.log) if line["code"] == code]

    def metric(self, name, **labels):
        """The sum over the series with these labels; 0 when there is none."""
        try:
            with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % self.own,
                                        timeout=PATIENCE_S) as got:
                text = got.read().decode()
        except OSError:
            return 0
        found = (SAMPLE.match(line) for line in text.splitlines() if line.startswith(name + "{"))
        wanted = ['%s="%s"' % pair for pair in labels.items()]
        return sum(float(match[3]) for match in found if all(part in match[2] for part in wanted))

    def polls(self, exporter, outcome):
        return self.metric("culprit_receiver_polls_total", target=exporter.origin, outcome=outcome)


def check_failures(checks, binary, folder):
    """One works, one is dead, and the others fail; the bad ones harm nobody but themselves."""
    xid = [0]
    good = Exporter(lambda h: send(h, gpu_text(xid[0]), Connection="keep-alive"))
    bad = {name: Exporter(answer) for name, (answer, _) in FAILING.items()}
    dead = "http://127.0.0.1:%d" % free_port()
    urls = ["gpu-a07=" + good.url, dead + "/metrics"] + [one.url for one in bad.values()]
    with Culprit(binary, folder, endpoints=urls, max_scrape_size="%dB" % MAX_SIZE,
                 compression="gzip", headers=["X-Key: secret-header"]) as culprit:
        checks.check(culprit.wait(lambda: culprit.polls(good, "answered") >= 3 and all(
            culprit.polls(one, "failed") >= 2 for one in bad.values())),
            lambda: "all are asked: " + open(culprit.log, encoding="utf-8").read()[-3000:])
        said = culprit.messages("C9301")
        for name, (_, words) in FAILING.items():
            origin = bad[name].origin + " "
            found = [line for line in said if line.startswith(origin)]
            checks.check(len(found) == 1 and words in found[0],
                         lambda name=name, found=found: "%s is said once: %r" % (name, found))
            checks.equal(culprit.polls(bad[name], "answered"), 0, name + " gives nothing")
        checks.equal(len([line for line in said if line.startswith(dead + " ")]), 1,
                     "who is not there is said once")
        checks.equal(culprit.metric("culprit_scrape_receiver_series_total", outcome="taken"),
                     culprit.metric("culprit_scrape_receiver_series_total", outcome="taken",
                                    target=good.origin), "only one gives samples")
        checks.equal(culprit.metric("culprit_receiver_target_up", target=good.origin), 1, "up")
        checks.equal(culprit.metric("culprit_receiver_target_up"), 1, "all others are not")
        checks.check(not [line for line in said if good.origin in line], "nothing is said of it")
        checks.check(culprit.metric("culprit_receiver_other_records_total") >= 6, "other")
        xid[0] = 79

        def verdicts():
            return documents(culprit.verdicts)
        found = culprit.wait(lambda: [one for one in verdicts() if one["pattern"] == "gpu_fault"])
        checks.check(found and "gpu-a07" in json.dumps(found[0]["entities"]) and
                     "0000:11:00" in json.dumps(found[0]["entities"]),
                     lambda: "the GPU and its node are named: %r" % verdicts())
        checks.check("the-pod" not in json.dumps(verdicts()), "the node that is given counts")
        log = open(culprit.log, encoding="utf-8").read()
        checks.check("secret-header" not in log and "/metrics" not in log, "no secret, no path")
        checks.equal(culprit.stop(), 0, "stops while calls are under way")
    checks.equal(good.requests[0]["Accept"].split(",")[0], "text/plain;version=0.0.4", "Accept")
    checks.equal(good.requests[0]["Accept-Encoding"], "gzip", "gzip is asked for")
    checks.equal(good.requests[-1]["X-Key"], "secret-header", "headers")
    for one in [good, *bad.values()]:
        one.close()


def make_certificate(folder, name):
    key, certificate = (os.path.join(folder, name + end) for end in (".key", ".crt"))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", certificate,
                    "-subj", "/CN=" + name, "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"],
                   check=True, capture_output=True)
    return certificate, key


def check_tls_and_token(checks, binary, folder):
    if shutil.which("openssl") is None:
        checks.skip("openssl is not installed: TLS is left out")
        return
    pair, other = make_certificate(folder, "exporter"), make_certificate(folder, "other")
    token, known = os.path.join(folder, "token"), ["first-token-abc"]
    with open(token, "w", encoding="ascii") as file:
        file.write(known[0] + "\n")

    def answer(handler):
        right = handler.headers.get("Authorization") == "Bearer " + known[0]
        send(handler, gpu_text()[:-1] if right else "who are you?", 200 if right else 401)
    exporter, stranger = Exporter(answer, pair), Exporter(answer, other)
    with Culprit(binary, folder, endpoints=[exporter.url, stranger.url], node="n1",
                 interval="3s", timeout="3s",
                 tls={"ca_file": pair[0]}, auth={"bearer_token_file": token}) as culprit:
        checks.check(culprit.wait(lambda: culprit.polls(exporter, "answered") >= 2 and
                                  culprit.polls(stranger, "failed") >= 1), "TLS and token")
        checks.equal(len(stranger.requests), 0, "nothing is sent to one that is not trusted")
        checks.check(any("ca_file" in line for line in culprit.messages("C9301")),
                     lambda: "what to set: %r" % culprit.messages("C9301"))
        known[0] = "second-token-def"
        checks.check(culprit.wait(lambda: any("answers 401" in line for line in
                                              culprit.messages("C9301"))), "401 is told")
        checks.check(culprit.polls(exporter, "failed") >= 1, "and counted")
        with open(token + ".new", "w", encoding="ascii") as file:
            file.write(known[0])
        os.rename(token + ".new", token)
        checks.check(culprit.wait(lambda: culprit.messages("C9302")), "the new token is taken")
        log = open(culprit.log, encoding="utf-8").read()
        checks.check("-token-" not in log, "no token in the log")
        checks.equal(culprit.stop(), 0, "stops")
    for one in (exporter, stranger):
        one.close()


def check_refused_configurations(checks, binary, folder):
    cases = [({"endpoints": []}, "name at least one URL"),
             ({"endpoints": ["http://a/m", "n=http://a/m"]}, "have the same URL"),
             ({"endpoints": ["n=ftp://a/m"]}, "must begin with https://"),
             ({"endpoints": ["=http://a/m"]}, "1 to 253 bytes"),
             ({"endpoints": ["http://me:word@a/m"]}, "user name or password"),
             ({"endpoints": ["http://a/m"], "interval": "1s", "timeout": "2s"}, "longer than the")]
    for options, words in cases:
        culprit = Culprit(binary, folder, **options)
        done = subprocess.run([binary, "validate", "--config", culprit.config],
                              capture_output=True, env=environment(), timeout=PATIENCE_S,
                              check=False)
        text = (done.stdout + done.stderr).decode()
        checks.check(done.returncode != 0 and words in text and "word@" not in text,
                     lambda text=text, words=words: "%s: %s" % (words, text))


def start_server(command, url, log):
    """Starts it and waits until it answers."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def answers():
        try:
            return urllib.request.urlopen(url, timeout=PATIENCE_S).read()
        except OSError:
            return None
    if wait_for(answers, process):
        return process
    process.kill()
    process.wait()
    return None


def missing(checks, program, part):
    words = "%s is not installed: %s is left out" % (program, part)
    if os.environ.get("CI") == "true":
        checks.check(False, words)
    else:
        checks.skip(words)


def check_prometheus(checks, binary, folder):
    """Its own metrics, compressed or not: everything is read, and nothing is looked for."""
    program = shutil.which("prometheus")
    if program is None:
        missing(checks, "prometheus", "scraping it")
        return
    port = free_port()
    url = "http://127.0.0.1:%d/metrics" % port
    config = os.path.join(folder, "prometheus.yml")
    with open(config, "w", encoding="utf-8") as file:
        file.write("global: {scrape_interval: 1h}\n")
    with open(os.path.join(folder, "prometheus.log"), "wb") as log:
        server = start_server([program, "--config.file", config, "--web.listen-address",
                               "127.0.0.1:%d" % port, "--storage.tsdb.path",
                               os.path.join(folder, "data")], url, log)
    if not checks.check(server is not None, "prometheus starts"):
        return
    try:
        for compression in ("none", "gzip"):
            inner = os.path.join(folder, compression)
            os.mkdir(inner)
            with Culprit(binary, inner, endpoints=[url], compression=compression) as culprit:
                target = "http://127.0.0.1:%d" % port
                checks.check(culprit.wait(lambda: culprit.metric(
                    "culprit_receiver_polls_total", target=target, outcome="answered") >= 1),
                    lambda: compression + ": " + repr(culprit.messages("C9301")))
                checks.check(culprit.metric("culprit_scrape_receiver_series_total",
                                            outcome="other") > 200, "its series are counted")
                checks.equal(culprit.metric("culprit_scrape_receiver_series_total",
                                            outcome="refused"), 0, "none is refused")
                checks.equal(len(culprit.messages("C9303")), 1, "that is said once")
                checks.equal(culprit.stop(), 0, "stops")
    finally:
        server.kill()
        server.wait()


def make_sysfs(folder):
    port = os.path.join(folder, "class", "infiniband", "mlx5_0", "ports", "1")
    os.makedirs(os.path.join(port, "counters"))
    files = {"../../board_id": "MT_1", "../../fw_ver": "20.1", "../../hca_type": "MT4129",
             "state": "4: ACTIVE", "phys_state": "5: LinkUp", "rate": "400 Gb/sec (4X NDR)",
             "link_layer": "InfiniBand", "counters/link_downed": "2",
             "counters/link_error_recovery": "0", "counters/port_rcv_errors": "7",
             "counters/port_rcv_data": "4631917"}
    for name, value in files.items():
        with open(os.path.join(port, name), "w", encoding="ascii") as file:
            file.write(value + "\n")


def check_node_exporter(checks, binary, folder):
    """Its collector of InfiniBand, and dcgm-exporter's text through its textfile collector."""
    program = os.environ.get("CULPRIT_NODE_EXPORTER") or shutil.which("prometheus-node-exporter")
    if program is None:
        missing(checks, "prometheus-node-exporter", "scraping it")
        return
    sysfs, texts = os.path.join(folder, "sys"), os.path.join(folder, "texts")
    make_sysfs(sysfs)
    os.mkdir(texts)
    with open(os.path.join(texts, "dcgm.prom"), "w", encoding="ascii") as file:
        file.write(gpu_text())
    port = free_port()
    url = "http://127.0.0.1:%d/metrics" % port
    with open(os.path.join(folder, "node_exporter.log"), "wb") as log:
        server = start_server([program, "--web.listen-address", "127.0.0.1:%d" % port,
                               "--collector.disable-defaults", "--collector.infiniband",
                               "--collector.textfile", "--collector.cpu", "--path.sysfs", sysfs,
                               "--collector.textfile.directory", texts], url, log)
    if not checks.check(server is not None, "node_exporter starts"):
        return
    try:
        with Culprit(binary, folder, endpoints=[url]) as culprit:
            checks.check(culprit.wait(lambda: culprit.metric(
                "culprit_scrape_receiver_series_total", outcome="taken") > 0),
                lambda: repr(culprit.messages("C9301")))
            answers = culprit.metric("culprit_receiver_polls_total", outcome="answered")
            taken = culprit.metric("culprit_scrape_receiver_series_total", outcome="taken")
            # Four of GPUs; two states and three counters of the port.
            checks.check(taken % 9 == 0, lambda: "%g series in %g answers" % (taken, answers))
            checks.check(culprit.wait(lambda: culprit.metric(
                "culprit_receiver_accepted_events_total") >= 6), "events of both kinds")
            checks.equal(culprit.metric("culprit_scrape_receiver_series_total",
                                        outcome="refused"), 0, "none is refused")
            checks.equal(culprit.stop(), 0, "stops")
    finally:
        server.kill()
        server.wait()


def main():
    binary = os.path.abspath(sys.argv[1])
    checks = Checks()
    for check in (check_failures, check_tls_and_token, check_refused_configurations,
                  check_prometheus, check_node_exporter):
        with tempfile.TemporaryDirectory() as folder:
            check(checks, binary, folder)
    sys.exit(checks.finish())


if __name__ == "__main__":
    main()
