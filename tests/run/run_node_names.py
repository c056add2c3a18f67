#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One node, several names; and clocks of tomorrow, live, over a restart.

    run_node_names.py BINARY

The fixtures of the detectors: one source names nodes with their domain, or in upper case. The
verdicts are the same, but for the spelling that is shown. Nodes of two domains with one first
label stay two. Then live with a store: half of the sources before a stop and half behind it, with
one source's nodes spelled otherwise and one line of tomorrow, end with the same verdicts as
without.
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "support"))
import run_clocks  # noqa: E402
from checks import Checks  # noqa: E402
from process import environment, run  # noqa: E402
from running import PATIENCE_S, documents, wait_for, whole_lines  # noqa: E402

DOMAIN = ".cluster.example.com"
FIELDS = re.compile(r'"(?:k8s\.node\.name|host\.name|nodeName|host|reportingInstance)":"([^"]+)"')
FORMS = {"domain": lambda node: node + DOMAIN, "upper": str.upper}
LIVE = "incident/link_error_to_eviction"


def spelled(lines, nodes, form):
    pattern = re.compile(r"(?<![\w.-])(%s)(?![\w-])" % "|".join(map(re.escape, sorted(nodes))))
    return [pattern.sub(lambda match: FORMS[form](match.group()), line) for line in lines]


def found(text):
    return sorted((verdict["id"], verdict["kind"], verdict["state"], str(verdict.get("related")),
                   verdict.get("attributes", {}).get("culprit.root"))
                  for verdict in map(json.loads, text.splitlines()))


def plain(text, nodes):
    """With each node's name as the fixture has it."""
    for node in nodes:
        text = text.replace(node + DOMAIN, node).replace(node.upper(), node)
    return text


def xid_and_eviction(xid_node, pod_node):
    return "\n".join(json.dumps(line) for line in (
        {"source": "kmsg", "timestamp_ns": 1794992400 * 10**9, "k8s.node.name": xid_node,
         "message": "NVRM: Xid (PCI:0000:9b:00): 79, pid=1, GPU has fallen off the bus."},
        {"source": "k8s_watch", "timestamp_ns": 1794992430 * 10**9, "object": {
            "kind": "Event", "apiVersion": "v1", "reason": "Evicted", "type": "Warning",
            "metadata": {"name": "e", "namespace": "train", "uid": "u-1",
                         "creationTimestamp": "2026-11-18T09:00:30Z"},
            "involvedObject": {"kind": "Pod", "name": "w-0", "namespace": "train", "uid": "p-1"},
            "message": "Evicted by the node",
            "source": {"component": "kubelet", "host": pod_node},
            "lastTimestamp": "2026-11-18T09:00:30Z"}})) + "\n"


class Suite:
    def __init__(self, binary):
        self.binary = binary
        self.checks = Checks()

    def analyze(self, what, lines):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "in.jsonl")
            with open(path, "w", encoding="utf-8") as file:
                file.write("".join(line + "\n" for line in lines))
            done = run(self.binary, "analyze", "--quiet", "--output", "verdicts", path)
        self.checks.equal((done.code, done.errors()), (0, ""), what + ": exit code, errors")
        return done.text()

    def of_fixture(self, name, lines, sources):
        nodes = set(FIELDS.findall("\n".join(lines)))
        if not nodes:  # named in the words of lines only
            return
        wanted = self.analyze(name, lines)
        for source in sources:
            other = set(sources[source])
            for form in FORMS:
                what = "%s, %s, %s" % (name, source, form)
                got = self.analyze(what, [spelled([line], nodes, form)[0] if line in other
                                          else line for line in lines])
                self.checks.equal(found(got), found(wanted), what)
                self.checks.equal(plain(got, nodes).count("\n"), wanted.count("\n"), what)
                for line in plain(got, nodes).splitlines():
                    verdict = json.loads(line)
                    self.checks.check('"%s"' % verdict["headline"] in wanted,
                                      what + ": headline " + verdict["headline"])

    def of_domains(self):
        for xid_node, pod_node, joined in (
                ("gpu1.a.example.com", "gpu1.a.example.com", True),
                ("GPU1", "gpu1.a.example.com", True),
                ("gpu1.a.example.com", "gpu1.b.example.com", False),
                ("10.0.0.1", "10.0.0.1", True),
                ("10.0.0.1", "10.0.0.2", False)):
            lines = xid_and_eviction(xid_node, pod_node).splitlines()
            for order in (lines, lines[::-1]):
                what = "Xid on %s, pod on %s" % (xid_node, pod_node)
                patterns = [json.loads(line)["pattern"]
                            for line in self.analyze(what, order).splitlines()]
                self.checks.equal("xid_correlation" in patterns, joined, what)
                text = self.analyze(what, order)
                self.checks.check(pod_node in text, what + ": shown as Kubernetes calls it")

    # -- live -------------------------------------------------------------------------------------

    def session(self, folder):
        """From a start until all that is there has been judged."""
        log = os.path.join(folder, "log")

        def begun():
            return sum("C1001" in line for line in whole_lines(log))
        before = begun()
        with open(log, "ab") as out:
            process = subprocess.Popen(
                [self.binary, "run", "--config", os.path.join(folder, "culprit.yaml")],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=out,
                env=environment())
        wait_for(lambda: begun() > before, process)
        process.send_signal(signal.SIGTERM)
        self.checks.equal(process.wait(timeout=PATIENCE_S), 0, "live: exit code")

    def live(self, folder, halves):
        os.makedirs(os.path.join(folder, "in"))
        out = os.path.join(folder, "verdicts.jsonl")
        with open(os.path.join(folder, "culprit.yaml"), "w", encoding="utf-8") as file:
            json.dump({
                "receivers": {"file": {"include": [folder + "/in/*.jsonl"],
                                       "poll_interval": "50ms"}},
                "exporters": {"json": {"path": out}},
                "extensions": {"file_storage": {"directory": os.path.join(folder, "store")}},
                "service": {"extensions": ["file_storage"],
                            "shutdown_timeout": "%ds" % PATIENCE_S,
                            "telemetry": {"logs": {"encoding": "json"}},
                            "pipelines": {"p": {
                                "receivers": ["file"], "preset": "all", "exporters": ["json"],
                                "idle_timeout": "1h", "caught_up_timeout": "1h"}}}}, file)
        for half in halves:
            for name, lines in half.items():
                with open(os.path.join(folder, "in", name + ".jsonl"), "a",
                          encoding="utf-8") as file:
                    file.write("".join(line + "\n" for line in lines))
            self.session(folder)
        last = {}
        for verdict in documents(out):
            last[verdict["id"]] = (verdict["kind"], verdict["state"],
                                   verdict.get("attributes", {}).get("culprit.root"))
        with open(os.path.join(folder, "log"), encoding="utf-8") as file:
            return last, file.read()

    def of_live(self):
        (lines, sources), = [(lines, sources) for name, lines, sources in run_clocks.fixtures()
                             if name == LIVE]
        nodes = set(FIELDS.findall("\n".join(lines)))
        first = {name: part for name, part in sources.items() if name in ("rank_map", "kmsg")}
        second = {name: part for name, part in sources.items() if name not in first}
        messy = dict(first, kmsg=spelled(first["kmsg"], nodes, "domain"))
        messy["kmsg"] = run_clocks.with_one_ahead(messy["kmsg"], messy["kmsg"][0])
        with tempfile.TemporaryDirectory() as folder:
            wanted, _ = self.live(os.path.join(folder, "clean"), (first, second))
            got, log = self.live(os.path.join(folder, "messy"), (messy, second))
        self.checks.check(len(wanted) >= 3, "live: %r" % wanted)
        self.checks.equal(got, wanted, "live, over a restart")
        self.checks.equal(log.count(run_clocks.ALONE), 1, "live: the line is told of once")

    def run(self):
        for name, lines, sources in run_clocks.fixtures():
            self.of_fixture(name, lines, sources)
        self.of_domains()
        self.of_live()
        return self.checks.finish()


if __name__ == "__main__":
    sys.exit(Suite(os.path.abspath(sys.argv[1])).run())
