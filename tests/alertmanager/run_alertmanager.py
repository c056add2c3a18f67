#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does an Alertmanager show what culprit found, one alert an incident?

    run_alertmanager.py BINARY

A Prometheus Alertmanager gets the alerts of an incident of several verdicts, over its API v2. A
live culprit repeats them, goes on after kill -9 with its store, and resolves them.

Without the program prometheus-alertmanager this is left out with a message; where CI is "true" it
fails instead.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from checks import Checks  # noqa: E402
from ports import free_ports  # noqa: E402
from process import environment  # noqa: E402
from running import PATIENCE_S, documents, stored, wait_for  # noqa: E402

PROGRAM = "prometheus-alertmanager"
INPUT = os.path.join(HERE, "..", "golden", "detectors", "incident", "cuda_error_of_a_lost_gpu",
                     "events.jsonl")
CONFIG = {"route": {"receiver": "none"}, "receivers": [{"name": "none"}]}


class Alertmanager:
    def __init__(self, folder):
        port, = free_ports(1)
        config = os.path.join(folder, "alertmanager.yml")
        with open(config, "w", encoding="utf-8") as file:
            json.dump(CONFIG, file)
        self.url = "http://127.0.0.1:%d" % port
        self.log = open(os.path.join(folder, "alertmanager.log"), "wb")
        self.process = subprocess.Popen(
            [PROGRAM, "--config.file", config, "--storage.path", os.path.join(folder, "am"),
             "--web.listen-address", "127.0.0.1:%d" % port, "--cluster.listen-address="],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

    def __enter__(self):
        wait_for(lambda: self.alerts() is not None)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.log.close()

    def alerts(self):
        """Those that fire, by the id of their verdict."""
        try:
            with urllib.request.urlopen(self.url + "/api/v2/alerts", timeout=PATIENCE_S) as answer:
                return {each["labels"]["verdict"]: each for each in json.load(answer)}
        except OSError:
            return None


class Run:
    def __init__(self, binary, folder, url, **alertmanager):
        self.binary = binary
        self.lines = os.path.join(folder, "verdicts.jsonl")
        self.config = os.path.join(folder, "culprit.yaml")
        self.log = os.path.join(folder, "log")
        self.document = {
            "receivers": {"file": {"include": [INPUT]}},
            "exporters": {"json": {"path": self.lines},
                          "alertmanager": {"endpoint": url, **alertmanager}},
            "service": {"pipelines": {"all": {"receivers": ["file"], "preset": "all",
                                              "exporters": ["json", "alertmanager"]}}}}

    def write(self):
        with open(self.config, "w", encoding="utf-8") as file:
            json.dump(self.document, file)

    def once(self):
        self.write()
        return subprocess.run([self.binary, "run", "--once", "--config", self.config],
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S,
                              env=environment(), check=False, text=True)

    def start(self):
        self.write()
        with open(self.log, "ab") as log:
            return subprocess.Popen([self.binary, "run", "--config", self.config],
                                    stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                    env=environment())

    def verdicts(self):
        """The last line of each."""
        return {each["id"]: each for each in documents(self.lines)}

    def roots(self):
        return {name: each for name, each in self.verdicts().items()
                if each.get("attributes", {}).get("culprit.root", "true") == "true"
                and each["severity"] != "info"}


def one_alert_an_incident(checks, binary, folder):
    with Alertmanager(folder) as manager:
        run = Run(binary, folder, manager.url, labels=["cluster=eu-1"],
                  link="https://culprit.example/#{id}")
        done = run.once()
        checks.equal(done.returncode, 0, "once: " + done.stderr[-1000:])
        roots, alerts = run.roots(), manager.alerts()
        checks.check(len(run.verdicts()) > len(roots) == 1, "an incident of several verdicts")
        checks.equal(sorted(alerts), sorted(roots), "the alerts are the roots")
        for name, alert in alerts.items():
            verdict = roots[name]
            checks.equal(alert["annotations"]["summary"], verdict["headline"], "the summary")
            checks.equal(alert["annotations"]["description"], verdict["remediation"], "what to do")
            labels = alert["labels"]
            checks.equal([labels["pattern"], labels["severity"], labels["cluster"]],
                         [verdict["pattern"], verdict["severity"], "eu-1"], "labels")
            for kind in ("node", "gpu", "rank"):
                blamed = [each["name"] for each in verdict["entities"]
                          if each["kind"] == kind and each["role"] != "victim"]
                if len(blamed) == 1:
                    checks.equal(labels.get(kind), blamed[0], "the label " + kind)
            checks.equal(alert["generatorURL"], "https://culprit.example/#" + name, "the link")
        every = Run(binary, folder, manager.url, match={"only_roots": False, "min_severity": "info"})
        checks.equal(every.once().returncode, 0, "every verdict")
        checks.equal(sorted(manager.alerts()), sorted(every.verdicts()), "an alert a verdict")


def live(checks, binary, folder):
    with Alertmanager(folder) as manager:
        run = Run(binary, folder, manager.url, resend_interval="1s", resolve_after="1h")
        run.document["extensions"] = {"file_storage": {"directory": os.path.join(folder, "store")}}
        run.document["service"].update(extensions=["file_storage"], checkpoint_interval="200ms")
        run.document["service"]["pipelines"]["all"].update(idle_timeout="1s", settle="0s")
        process = run.start()

        def ends():
            return {name: each["endsAt"] for name, each in (manager.alerts() or {}).items()}
        checks.check(wait_for(lambda: run.roots() and set(ends()) == set(run.roots())),
                     "it fires: %r" % ends())
        first = ends()
        checks.check(wait_for(lambda: all(ends().get(name, "") > end
                                          for name, end in first.items())), "it is repeated")
        store = os.path.join(folder, "store")
        checks.check(wait_for(lambda: all(name.encode() in stored(store) for name in first), process),
                     "they are in the store")
        process.kill()
        process.wait()
        killed = ends()
        process = run.start()
        checks.check(wait_for(lambda: ends() and all(ends().get(name, "") > end
                                                     for name, end in killed.items())),
                     "it is repeated after kill -9, without any new event")
        # An alert that is not repeated for some seconds is no more.
        checks.check(wait_for(lambda: set(ends()) == set(run.roots()), process), "the same alerts")
        process.send_signal(signal.SIGTERM)
        checks.equal(process.wait(PATIENCE_S), 0, "the stop")
        run.document["exporters"]["alertmanager"]["resolve_after"] = "1s"
        process = run.start()
        checks.check(wait_for(lambda: not manager.alerts()), "it is resolved")
        process.send_signal(signal.SIGTERM)
        checks.equal(process.wait(PATIENCE_S), 0, "the last stop")
        with open(run.log, encoding="utf-8") as log:
            checks.check("Sanitizer" not in log.read(), "the sanitizer complains")


def validate(checks, binary, folder):
    for more, said in (({"endpoint": "ftp://x/"}, "endpoint"),
                       ({"labels": ["rank=3"]}, "sets this label itself"),
                       ({"labels": ["no value"]}, "NAME=VALUE"),
                       ({"match": {"min_severity": "fatal"}}, "info, warning, error"),
                       ({"resend_interval": "0s"}, "resend_interval")):
        run = Run(binary, folder, "http://127.0.0.1:9093", **more)
        run.write()
        done = subprocess.run([binary, "validate", run.config], capture_output=True, text=True,
                              env=environment(), check=False)
        text = done.stdout + done.stderr
        checks.check(done.returncode != 0 and "alertmanager" in text and said in text,
                     "validate of %r: %s" % (more, text[-500:]))


def main(binary):
    checks = Checks()
    cases = [validate]
    if shutil.which(PROGRAM) is None and os.environ.get("CI") != "true":
        checks.skip("there is no program %s: nothing is sent to a real one" % PROGRAM)
    else:
        cases += [one_alert_an_incident, live]
    for case in cases:
        with tempfile.TemporaryDirectory() as folder:
            case(checks, binary, folder)
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
