#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The kubernetes receiver beside a real API server: 1,000 pods, 10,000 events, and all that goes
wrong with a server, a token and culprit itself.

    run_kubernetes_real.py BINARY

culprit passes every event on to a mock Kafka broker, from where it is read again: what came is the
server's set, each version once, whoever was killed meanwhile. Needs the servers that
tests/kubernetes/build_servers builds, and kcat; left out but in .ci/run --long.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
import api_server  # noqa: E402
from checks import Checks  # noqa: E402
from process import environment  # noqa: E402
from run_kubernetes import Culprit, event  # noqa: E402

PATIENCE_S = 240
PODS, EVENTS = 1000, 10000
TOPIC = "events"
RULES = [{"apiGroups": [""], "resources": ["events", "pods", "nodes"], "verbs": ["list", "watch"]}]


class Broker:
    """tests/fault/kafka_mock.c"""

    def __init__(self, binary):
        program = os.path.join(os.path.dirname(binary), "tests", "kafka_mock")
        self.process = subprocess.Popen([program, TOPIC], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, env=environment())
        self.address = self.process.stdout.readline().decode().strip()

    def stop(self):
        self.process.kill()
        self.process.wait()

    def records(self):
        """What is there now, without what a sender sent again: the objects of watch events."""
        done = subprocess.run(["kcat", "-C", "-b", self.address, "-t", TOPIC, "-e", "-q", "-J"],
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=120,
                              check=True)
        found = {}
        for line in done.stdout.splitlines():
            record = json.loads(line)
            headers = dict(zip(record["headers"][::2], record["headers"][1::2]))
            found[headers["culprit-sender"], int(headers["culprit-sequence"])] = record["payload"]
        return [json.loads(payload) for payload in found.values()]


class Live(Culprit):
    def __init__(self, binary, folder, api, token, broker):
        super().__init__(binary, folder, api.url, token, watch_timeout="20s",
                         max_object_size="8MiB")
        with open(self.config, encoding="utf-8") as file:
            config = json.load(file)
        config["receivers"]["kubernetes"]["kubeconfig"] = api.kubeconfig(
            "culprit", tokenFile=self.token_file)
        config["exporters"] = {"kafka": {"brokers": [broker.address], "topic": TOPIC,
                                         "payload": "events"}}
        config["service"]["pipelines"] = {"main": {"receivers": ["kubernetes"],
                                                   "exporters": ["kafka"]}}
        with open(self.config, "w", encoding="utf-8") as file:
            json.dump(config, file)


def name_of(record):
    meta = record["object"]["metadata"]
    return meta["uid"], meta["resourceVersion"]


class Suite:
    def __init__(self, binary, folder, api):
        self.binary, self.folder, self.api = binary, folder, api
        self.checks = Checks()
        self.written = {}  # uid: version of every event that was written
        self.lock = threading.Lock()

    def until(self, holds, what):
        limit = time.monotonic() + PATIENCE_S
        while time.monotonic() < limit:
            if holds():
                return self.checks.check(True, what)
            time.sleep(0.2)
        return self.checks.check(False, lambda: what + ": " + self.culprit.last_words())

    # -- what is written -----------------------------------------------------------------------------

    def write_events(self, first, count, pod_uids):
        """On a connection of its own."""
        api = self.api.client()
        for number in range(first, first + count):
            name = "pod-%d" % (number % PODS)
            body = dict(event(pod=name, number=number),
                        metadata={"name": "event-%d" % number, "namespace": "train"})
            body["involvedObject"]["uid"] = pod_uids[name]
            made = api.create("events", body, "train")
            with self.lock:
                self.written[made["metadata"]["uid"]] = made["metadata"]["resourceVersion"]

    def write_pods(self):
        uids = {}
        for number in range(PODS):
            name = "pod-%d" % number
            made = self.api.create("pods", {
                "metadata": {"name": name, "namespace": "train"},
                "spec": {"nodeName": "node-%d" % (number % 8),
                         "containers": [{"name": "c", "image": "i"}]}}, "train")
            uids[name] = made["metadata"]["uid"]
        return uids

    # -- what came -----------------------------------------------------------------------------------

    def came(self, kind):
        return [record for record in self.broker.records() if record["object"]["kind"] == kind]

    def all_came(self, what):
        wanted = set(self.written.items())
        self.until(lambda: wanted <= {name_of(one) for one in self.came("Event")},
                   "%s: all %d events came" % (what, len(wanted)))
        names = [name_of(one) for one in self.came("Event")]
        self.checks.equal(len(names), len(set(names)), what + ": none came twice")
        self.checks.equal(set(names) - wanted, set(), what + ": nothing else came")
        pods = [name_of(one) for one in self.came("Pod") if one["type"] != "DELETED"]
        self.checks.equal(len(pods), len(set(pods)), what + ": no version of a pod came twice")

    # -- the run -------------------------------------------------------------------------------------

    def run(self):
        api = self.api
        api.create_namespace("train")
        api.create_account("culprit")
        api.grant("culprit", RULES)
        self.broker = Broker(self.binary)
        place = os.path.join(self.folder, "culprit")
        os.makedirs(place)
        self.culprit = Live(self.binary, place, api, api.token("culprit"), self.broker)
        try:
            uids = self.write_pods()
            part = EVENTS // 5
            self.write_events(0, part, uids)
            with self.culprit:
                self.all_came("listed")
                self.under_way(part, part, uids, self.kill_culprit, "culprit killed")
                self.under_way(2 * part, part, uids, self.new_token, "token rotated")
                self.under_way(3 * part, part, uids, self.throttled, "429")
                self.restarts(uids, 4 * part, part)
                self.forbidden(uids)
                self.checks.equal(self.culprit.stop(), 0, "exit code")
            held = {one["metadata"]["uid"]: one["metadata"]["resourceVersion"]
                    for one in api.list("events", "train")[0]}
            self.checks.equal(self.written, held, "what was written is what the server has")
            self.checks.equal(len(self.written), EVENTS + 2, "events")
            pods = {one["metadata"]["uid"] for one in api.list("pods", "train")[0]}
            there = {name_of(one)[0] for one in self.came("Pod") if one["type"] != "DELETED"}
            gone = {one["object"]["metadata"]["uid"] for one in self.came("Pod")
                    if one["type"] == "DELETED"}
            self.checks.equal(there - gone, pods, "pods that are there, by what came")
        finally:
            self.broker.stop()

    def under_way(self, first, count, uids, disturb, what):
        """Events are written while something happens."""
        writer = threading.Thread(target=self.write_events, args=(first, count, uids))
        writer.start()
        disturb()
        writer.join()
        self.all_came(what)

    def kill_culprit(self):
        for _ in range(3):
            time.sleep(0.7)
            self.culprit.stop(signal.SIGKILL)
            self.culprit.start()

    def new_token(self):
        self.api.create_account("other")
        self.api.grant("other", RULES)
        old = self.api.get("serviceaccounts", "culprit", "default")
        self.culprit.rotate(self.api.token("other"))
        self.api.delete("serviceaccounts", old["metadata"]["name"], "default")

    def throttled(self):
        self.api.throttle("other")
        token = self.api.token("other")
        for _ in range(3):
            holder = threading.Thread(target=self.api.client().hold_request, args=(token,))
            holder.start()
            self.culprit.stop(signal.SIGKILL)  # so that it asks now
            self.culprit.start()
            holder.join()
        self.until(lambda: self.culprit.said("answers 429"), "429 is told")
        self.api.end_throttle()

    def restarts(self, uids, first, count):
        """SIGKILL of the server, 410 for all (compacted, caches empty), and pods that went."""
        self.write_events(first, count // 2, uids)
        self.all_came("before the server is killed")
        self.api.stop(kill=True, etcd=False)
        self.api.start()
        self.write_events(first + count // 2, count - count // 2, uids)
        self.all_came("server killed")
        for number in range(5):
            self.api.delete("pods", "pod-%d" % number, "train")
        self.until(lambda: sum(one["type"] == "DELETED" for one in self.came("Pod")) == 5,
                   "deletions come")
        self.culprit.stop(signal.SIGKILL)
        self.write_events(EVENTS, 1, uids)
        self.api.compact()
        self.api.stop(kill=True, etcd=False)
        self.api.start()
        self.api.compact()
        self.culprit.start()
        self.all_came("410")
        self.until(lambda: self.culprit.of("gaps", resource="events") == 1, "a gap is counted")

    def forbidden(self, uids):
        rbac = "rbac.authorization.k8s.io/v1"
        self.api.delete("clusterrolebindings", "other", group=rbac)
        self.culprit.stop(signal.SIGKILL)
        self.culprit.start()
        self.until(lambda: self.culprit.said("403", "resources: [events], verbs: [list, watch]"),
                   "a right that was taken away is told")
        self.api.grant("other", RULES)
        self.write_events(EVENTS + 1, 1, uids)
        self.all_came("rights given back")


def main(binary):
    why = api_server.unavailable()
    if why == "" and shutil.which("kcat") is None:
        why = "not installed: kcat (tools/install_dependencies test)"
    if why:
        checks = Checks()
        checks.skip(why)
        return checks.finish()
    with tempfile.TemporaryDirectory() as folder:
        with api_server.ApiServer(os.path.join(folder, "server")) as api:
            suite = Suite(os.path.abspath(binary), folder, api)
            suite.run()
            return suite.checks.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
