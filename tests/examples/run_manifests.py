#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What examples/ says of Kubernetes and Prometheus, tried as far as it goes without a cluster.

    run_manifests.py BINARY

kubectl takes the commands of README.md (where it is installed: against an API server of ours); the
gateway's HTTP receiver speaks TLS with a certificate made as the page says, and nothing else; a
scrape of the one port that a pod's annotations name has all series that the alert rules ask for. The
manifests themselves are tested in tests/kubernetes.
"""
import http.server
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
EXAMPLES = os.path.join(ROOT, "examples")
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, os.path.join(HERE, "..", "prometheus"))
import promql  # noqa: E402
from checks import Checks  # noqa: E402
from process import environment, run  # noqa: E402
from run_prometheus import ask, free_ports, wait_for  # noqa: E402

try:
    import yaml
except ImportError:
    yaml = None

LEAK = os.path.join(ROOT, "tests", "golden", "real", "leak-rank2")
PATIENCE_S = 60
PATCH = os.path.join(ROOT, "packaging", "kubernetes", "kustomize", "sidecar", "job", "pod.yaml")
GATEWAY = os.path.join(ROOT, "packaging", "kubernetes", "chart", "files", "gateway.yaml")
# Of rules: what only some configurations have, and what Prometheus makes itself.
KAFKA = {"culprit_kafka_receiver_lag_seconds"}
MADE_BY_PROMETHEUS = {"up"}


def text_of(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def write(path, text, executable=False):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    if executable:
        os.chmod(path, 0o755)
    return path


def events_of(rank):
    """A file of events, as that rank of the job that leaked wrote it."""
    folder = os.path.join(LEAK, rank)
    return os.path.join(folder, next(name for name in sorted(os.listdir(folder))
                                     if name.endswith(".jsonl")))


def shell_blocks(page):
    return "\n".join(re.findall(r"^```sh\n(.*?)^```", text_of(page), re.M | re.S))


class ApiServer(http.server.BaseHTTPRequestHandler):
    """Knows three kinds; of each there is one object, which changes once, and the watch ends."""
    KINDS = {"events": "Event", "pods": "Pod", "nodes": "Node"}

    def log_message(self, *_):
        pass

    def json(self, *lines):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write("".join(json.dumps(line) + "\n" for line in lines).encode())

    def do_GET(self):
        path, _, query = self.path.partition("?")
        name = path.rsplit("/", 1)[1]
        if path == "/api":
            self.json({"kind": "APIVersions", "versions": ["v1"]})
        elif path == "/apis":
            self.json({"kind": "APIGroupList", "apiVersion": "v1", "groups": []})
        elif path == "/api/v1":
            self.json({"kind": "APIResourceList", "groupVersion": "v1", "resources": [
                {"name": name, "singularName": name[:-1], "namespaced": name != "nodes",
                 "kind": kind, "verbs": ["get", "list", "watch"]}
                for name, kind in self.KINDS.items()]})
        elif name in self.KINDS:
            one = {"apiVersion": "v1", "kind": self.KINDS[name],
                   "metadata": {"name": "a", "namespace": "train", "resourceVersion": "5"}}
            if "watch=" in query:
                self.json({"type": "MODIFIED", "object": one})
            else:
                self.json({"kind": one["kind"] + "List", "apiVersion": "v1", "items": [one],
                           "metadata": {"resourceVersion": "5"}})
        else:
            self.send_error(404)


class Suite:
    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder
        self.checks = Checks()

    # -- kubectl ----------------------------------------------------------------------------------

    def kubectl(self):
        page = os.path.join(EXAMPLES, "README.md")
        watches = re.findall(r"kubectl (get .*?--watch.*?)(?:;|>|\n)", shell_blocks(page))
        kinds = re.findall(r"^watch_kind (\w+) >> (\S+) &$", shell_blocks(page), re.M)
        self.checks.equal([kind for kind, _ in kinds], ["events", "pods", "nodes"],
                          "what README.md watches")
        for _, file in kinds:
            self.checks.check(re.fullmatch(r"kubernetes.*\.jsonl", file),
                              "nodes.yaml does not read " + file)
        self.checks.equal(len(watches), 1, "the watch of README.md")
        if shutil.which("kubectl") is None:
            self.checks.skip("kubectl is not installed, so it was not asked what it takes")
            return
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), ApiServer)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for kind, _ in kinds:
            arguments = shlex.split(watches[0].replace('"$1"', kind))
            done = run("kubectl", "--server=http://127.0.0.1:%d" % server.server_port, *arguments,
                       folder=self.folder, HOME=self.folder)
            self.checks.equal(done.code, 0, "kubectl %s: %s" % (arguments, done.errors()))
            self.checks.equal([json.loads(line)["type"] for line in done.text().splitlines()],
                              ["ADDED", "MODIFIED"], "kubectl %s: a watch event a line" % arguments)
        server.shutdown()

    # -- TLS --------------------------------------------------------------------------------------

    def gateway_tls(self):
        """With a certificate as the page makes it, and asked as the page asks."""
        page = shell_blocks(os.path.join(EXAMPLES, "kubernetes", "README.md"))
        page = page.replace("\\\n", " ")
        make = " && ".join(line for line in page.splitlines()
                           if line.startswith(("openssl req ", "cp tls.crt ")))
        post = next(line for line in page.splitlines() if line.startswith("curl "))
        place = tempfile.mkdtemp(dir=self.folder)
        write(os.path.join(place, "token"), "not-a-secret")
        shutil.copy(events_of("rank2"), os.path.join(place, "segment-000001.jsonl"))
        done = run("/bin/sh", "-c", make, folder=place)
        self.checks.equal(done.code, 0, "the certificate: " + done.errors()[-500:])
        port = free_ports(1)[0]
        receiver = yaml.safe_load(text_of(GATEWAY))["receivers"]["http"]
        self.checks.check("auth" in receiver and "tls" in receiver, "gateway.yaml: %s" % receiver)
        receiver["endpoint"] = "127.0.0.1:%d" % port
        config = json.dumps({
            "receivers": {"http": receiver}, "exporters": {"json": {"path": place + "/found"}},
            "extensions": {"file_storage": {"directory": place + "/store"}},
            "service": {"extensions": ["file_storage"], "pipelines": {"memory": {
                "receivers": ["http"], "preset": "memory", "exporters": ["json"]}}}})
        config = config.replace("/secrets/ingest/", place + "/").replace("/secrets/tls/", place + "/")
        process = self.culprit(place, "run", "--config", write(place + "/c.json", config))
        try:
            self.posts(post, place, port, process)
        finally:
            process.send_signal(signal.SIGTERM)
            self.checks.equal(process.wait(PATIENCE_S), 0, "the gateway's exit code")

    def posts(self, post, place, port, process):
        def told(command, *more):
            arguments = " -sS --max-time 20 -o answer -w '%%{http_code}' --connect-to ::127.0.0.1:%d" % port
            done = run("/bin/sh", "-c", command + arguments + " " + " ".join(more), folder=place)
            return done.code, done.text()
        ready = wait_for(lambda: told(post)[1] == "200", process)
        self.checks.check(ready, "events with the token are not taken: " + text_of(place, "log")[-2000:])
        self.checks.equal(told(post.replace("$(cat token)", "another"))[1], "401", "another token")
        code, answer = told(post.replace("https:", "http:"))
        self.checks.check(code != 0 and answer == "000", "plain HTTP gets an answer: %s" % answer)

    def culprit(self, place, *arguments, **more):
        with open(os.path.join(place, "log"), "wb") as log:
            return subprocess.Popen([self.binary, *arguments], cwd=place, stderr=log,
                                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                    env=environment(**more))

    # -- what Prometheus scrapes --------------------------------------------------------------------

    def rules(self):
        """Names of the metrics that the alert rules ask for."""
        text = text_of(EXAMPLES, "prometheus", "rules.yaml")
        return {name for group in yaml.safe_load(text)["groups"] for rule in group["rules"]
                for name in promql.Names(rule["expr"]).matched} - MADE_BY_PROMETHEUS

    def annotated(self):
        """Where a Prometheus that follows the annotations of a sidecar's pod asks: port and path."""
        notes = yaml.safe_load(text_of(PATCH))["spec"]["template"]["metadata"]["annotations"]
        self.checks.equal(notes["prometheus.io/scrape"], "true", "prometheus.io/scrape")
        return int(notes["prometheus.io/port"]), notes["prometheus.io/path"]

    def scrape(self):
        port, path = self.annotated()
        for name in ("sidecar.yaml", "gateway.yaml"):
            shown = yaml.safe_load(text_of(EXAMPLES, name))["exporters"]["prometheus"]
            host, _, given = shown["endpoint"].rpartition(":")
            self.checks.equal((host, int(given), shown.get("self_metrics")),
                              ("0.0.0.0", port, True), name + ": what is at the annotated port")
        place = tempfile.mkdtemp(dir=self.folder)
        telemetry = os.path.join(place, "telemetry")
        shutil.copytree(LEAK, telemetry)
        with open(os.path.join(telemetry, "broken.jsonl"), "w", encoding="ascii") as file:
            file.write(text_of(events_of("rank2")).splitlines()[0] + "\n{\"rank\":\n")
        ours, health, events = free_ports(3)
        process = self.culprit(
            place, "run", "--config", os.path.join(EXAMPLES, "sidecar.yaml"),
            "--set", "exporters.prometheus.endpoint=127.0.0.1:%d" % ours,
            "--set", "extensions.health_check.endpoint=127.0.0.1:%d" % health,
            "--set", "receivers.http.endpoint=127.0.0.1:%d" % events,
            "--set", "service.pipelines.memory.idle_timeout=1s",
            "--set", "service.pipelines.memory.settle=0s",
            TELEMETRY_DIR=telemetry, CULPRIT_DIR=place, TERMINATION_LOG=place + "/end")
        wanted = self.rules() - KAFKA

        def missing():
            page = (ask(ours, path) or (0, "", ""))[2]
            return {name for name in wanted if not re.search(r"^%s[{ ]" % name, page, re.M)}
        try:
            self.checks.check(len(wanted) > 10, "rules.yaml asks for %s" % sorted(wanted))
            wait_for(lambda: not missing(), process)
            self.checks.equal(missing(), set(), "what the rules ask for and the annotated port does "
                              "not show; " + text_of(place, "log")[-1000:])
        finally:
            process.send_signal(signal.SIGTERM)
            self.checks.equal(process.wait(PATIENCE_S), 0, "the sidecar's exit code")

    def prometheus(self):
        """The part of prometheus.yaml that is left out by default can be taken in. (Debian's promtool
        knows no kubernetes_sd_configs, so what lies under that key is not checked by it.)"""
        if shutil.which("promtool") is None:
            self.checks.skip("promtool is not installed: prometheus.yaml is not checked whole")
            return
        folder = os.path.join(EXAMPLES, "prometheus")
        place = tempfile.mkdtemp(dir=self.folder)
        shutil.copy(os.path.join(folder, "rules.yaml"), place)
        whole = re.sub(r"^  # (- job_name|  )", r"  \1", text_of(folder, "prometheus.yaml"), flags=re.M)
        jobs = {job["job_name"]: job for job in yaml.safe_load(whole)["scrape_configs"]}
        self.checks.equal(jobs["culprit-sidecars"].get("kubernetes_sd_configs"), [{"role": "pod"}],
                          "prometheus.yaml: where sidecars are found")
        whole = whole.replace("    kubernetes_sd_configs:\n      - role: pod\n", "")
        done = run("promtool", "check", "config", write(place + "/p.yaml", whole), folder=place)
        self.checks.equal(done.code, 0, "prometheus.yaml whole: " + done.text() + done.errors())

    def all(self):
        self.kubectl()
        if yaml is None:
            self.checks.skip("PyYAML is not installed: the manifests were not read")
            return
        self.gateway_tls()
        self.scrape()
        self.prometheus()


def main(binary):
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(os.path.abspath(binary), folder)
        suite.all()
        return suite.checks.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
