#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The kubernetes exporter beside a real API server: what kubectl shows, with the rights that its page
names and no others.

    run_kubernetes_events_real.py BINARY

Needs the servers that tests/kubernetes/build_servers builds; left out but in .ci/run --long.
"""
import datetime
import json
import os
import re
import shutil
import signal
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
import api_server  # noqa: E402
from checks import Checks  # noqa: E402
from process import run  # noqa: E402
from running import Running, wait_for  # noqa: E402
from run_kubernetes_events import NODE, TWO_PODS, configured, rotate  # noqa: E402

try:
    import yaml
except ImportError:
    yaml = None

PAGE = os.path.join(HERE, "..", "..", "exporters", "kubernetes", "README.md")
PODS = {"llama-eval-0": "923bdde3-56fc-4b05-af79-6010f33d4f0f",  # by the recording
        "llama-pt-worker-3": "4ff48c58-7474-4dae-ac55-085a73229701"}
RECORDED_S = 1794992400  # when the pod of first_exit was killed
GROUP = "events.k8s.io/v1"


def rules_of_the_page():
    with open(PAGE, encoding="utf-8") as file:
        return yaml.safe_load(re.search(r"```yaml\n(apiVersion: rbac.*?)```", file.read(), re.S).group(1))["rules"]


def moved(text, by_s):
    then = datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ") + datetime.timedelta(seconds=by_s)
    return then.strftime("%Y-%m-%dT%H:%M:%SZ")


class Suite:
    def __init__(self, binary, folder, api):
        self.binary, self.folder, self.api = binary, folder, api
        self.checks = Checks()

    def live(self, name, **exporter):
        document = configured(self.folder, self.api.url, self.input, live=True, **exporter)
        document["exporters"]["kubernetes"]["kubeconfig"] = self.api.kubeconfig(
            "culprit", tokenFile=os.path.join(self.folder, "token"))
        document["extensions"]["file_storage"]["directory"] = os.path.join(self.folder, name)
        return Running(self.binary, self.folder, document)

    def events(self):
        found = []
        for namespace in ("default", "train", "other"):
            found += [one for one in self.api.list("events", namespace, GROUP)[0]
                      if one.get("reportingController") == "culprit"]
        return found

    def names(self):
        return sorted((one["metadata"]["namespace"], one["metadata"]["name"]) for one in self.events())

    def done(self):
        return sum(one["reason"] == "XidCorrelation" for one in self.events()) == 4

    def condition(self, kind="CulpritNodeProblem"):
        node = self.api.get("nodes", NODE)
        return next((one for one in node["status"].get("conditions", []) if one["type"] == kind), None)

    def rest_of_node(self):
        """The Node without what culprit may write, and what changes with each write."""
        node = self.api.get("nodes", NODE)
        for key in ("resourceVersion", "managedFields"):
            node["metadata"].pop(key, None)
        node["status"]["conditions"] = [one for one in node["status"]["conditions"]
                                        if one["type"] != "CulpritNodeProblem"]
        return node

    def make(self):
        for name in ("train", "other"):
            self.api.create_namespace(name)
        self.api.create("nodes", {"metadata": {"name": NODE}})
        self.api.patch("nodes", NODE, {"status": {"conditions": [
            {"type": "Ready", "status": "True", "reason": "KubeletReady"}]}}, part="/status")
        self.node = self.rest_of_node()
        with open(TWO_PODS, encoding="utf-8") as file:
            text = file.read()
        for name, uid in PODS.items():
            made = self.api.create("pods", {"metadata": {"name": name, "namespace": "train"}, "spec": {
                "nodeName": NODE, "containers": [{"name": "c", "image": "i"}]}}, "train")
            text = text.replace(uid, made["metadata"]["uid"])
        self.input = os.path.join(self.folder, "events.jsonl")
        with open(self.input, "w", encoding="utf-8") as file:
            file.write(text)
        self.api.create_account("culprit")
        rotate(self.folder, self.api.token("culprit"))

    # -- parts ---------------------------------------------------------------------------------------

    def without_rights(self):
        """Then with them, one by one as the messages name them."""
        checks, rules = self.checks, rules_of_the_page()
        with self.live("store", node_condition={"enabled": True}) as running:
            checks.check(wait_for(lambda: "events.events.k8s.io is forbidden" in running.log()),
                         "403: " + running.log()[-800:])
            told = r'apiGroups: \[\\"events.k8s.io\\"\], resources: \[events\], verbs: \[create\]'
            checks.check(re.search(told, running.log()), "the rule: " + running.log()[-800:])
            self.api.grant("culprit", [one for one in rules if one["resources"] != ["nodes/status"]])
            checks.check(wait_for(self.done), "with the rights of Events: " + running.log()[-800:])
            checks.check(wait_for(lambda: "resources: [nodes/status], verbs: [patch]" in running.log()),
                         "the right of the condition is missing: " + running.log()[-800:])
            checks.equal(self.condition(), None, "the condition")
            self.api.grant("culprit", rules)
            checks.check(wait_for(lambda: self.condition() is not None), "the condition is set")
            running.stop(checks, "rights")
        self.what_is_there()
        self.no_more_rights(rules)

    def what_is_there(self):
        checks = self.checks
        with open(Running.verdicts_in(self.folder), encoding="utf-8") as file:
            headlines = {json.loads(line)["headline"] for line in file}
        for one in self.events():
            if not one["reason"].endswith(("Withdrawn", "Resolved")):
                checks.check(any(one["note"].startswith(each) for each in headlines),
                             "the note: " + one["note"])
            checks.equal(one["eventTime"][-4:], one["eventTime"][-4:-1] + "Z", "microseconds")
        condition = self.condition()
        checks.equal((condition["status"], condition["message"].count("gpu-node-07") > 0),
                     ("True", True), "the condition: %s" % condition)
        checks.equal(self.rest_of_node(), self.node, "nothing else of the Node is changed")
        if shutil.which("kubectl") is None:
            checks.skip("kubectl is not installed: describe was not looked at")
            return
        admin = self.api.kubeconfig()
        for kind, name in (("node", NODE), *(("pod", name) for name in PODS)):
            done = run("kubectl", "--kubeconfig", admin, "-n", "train", "describe", kind, name,
                       HOME=self.folder)
            checks.check("XidCorrelation" in done.text() and "Xid 79" in done.text(),
                         "kubectl describe %s: %s" % (kind, done.text()[-1500:] + done.errors()))

    def no_more_rights(self, rules):
        """Each right of the page is needed: what asks for it was seen."""
        seen = {("patch", "nodes/status"), ("create", "events"), ("patch", "events"), ("get", "pods")}
        granted = {(verb, resource) for rule in rules for verb in rule["verbs"]
                   for resource in rule["resources"]}
        self.checks.equal(granted, seen, "rights")
        token = self.api.token("culprit")
        for method, path in (("GET", "/api/v1/nodes/" + NODE), ("DELETE", "/api/v1/namespaces/train/pods/w"),
                             ("GET", "/api/v1/namespaces/train/pods"), ("PATCH", "/api/v1/nodes/" + NODE),
                             ("GET", "/apis/events.k8s.io/v1/namespaces/train/events")):
            kind = "application/merge-patch+json"
            self.checks.equal(self.api.request(method, path, {} if method == "PATCH" else None, kind,
                                               token)[0], 403, method + " " + path)

    def twice(self):
        """A culprit that remembers nothing: each Event is there already; then kill -9, as it goes."""
        before, since = self.names(), self.condition()["lastTransitionTime"]
        with self.live("other-store", node_condition={"enabled": True, "heartbeat_interval": "1s"}) as running:
            beat = self.condition()["lastHeartbeatTime"]
            self.checks.check(wait_for(lambda: self.condition()["lastHeartbeatTime"] > beat), "heartbeat")
            running.process.send_signal(signal.SIGKILL)
            running.process.wait()
        with self.live("other-store", node_condition={"enabled": True, "heartbeat_interval": "1s"}) as running:
            beat = self.condition()["lastHeartbeatTime"]
            self.checks.check(wait_for(lambda: self.condition()["lastHeartbeatTime"] > beat), "heartbeat")
            running.stop(self.checks, "twice")
        self.checks.equal(self.names(), before, "no Event is there twice")
        self.checks.equal(self.condition()["lastTransitionTime"], since, "the condition did not flap")

    def ends(self):
        with self.live("third-store", node_condition={"enabled": True, "resolve_after": "1s"}) as running:
            self.checks.check(wait_for(lambda: self.condition()["status"] == "False"),
                              "the condition is set back: %s" % self.condition())
            running.stop(self.checks, "end")
        self.checks.equal(self.condition()["reason"], "NoFinding", "its reason")

    def exit_in_pod(self, shift_s):
        """A pod that the kernel killed, whose uid no verdict tells -> the Event on it."""
        path = os.path.join(HERE, "..", "golden", "detectors", "first_exit", "host_oom_in_a_pod",
                            "events.jsonl")
        with open(path, encoding="utf-8") as file:
            text = file.read().replace('"train"', '"other"').replace("train/", "other/")
        text = re.sub(r"\b(1794\d{15})\b", lambda at: str(int(at[1]) + shift_s * 10 ** 9), text)
        text = re.sub(r"\b2026-\d\d-\d\dT[0-9:]{8}Z", lambda at: moved(at[0], shift_s), text)
        events, config = os.path.join(self.folder, "exit.jsonl"), os.path.join(self.folder, "uids.yaml")
        with open(events, "w", encoding="utf-8") as file:
            file.write(text)
        document = configured(self.folder, self.api.url, events)
        document["exporters"]["kubernetes"]["kubeconfig"] = self.api.kubeconfig(
            "culprit", tokenFile=os.path.join(self.folder, "token"))
        with open(config, "w", encoding="utf-8") as file:
            json.dump(document, file)
        done = run(self.binary, "run", "--once", "--config", config)
        self.checks.equal(done.code, 0, "once: " + done.errors())
        pods = [one for one in self.events() if one["regarding"]["name"] == "w-0"]
        self.checks.equal(len(pods), 1, "an Event on the pod: %r" % [one["regarding"] for one in pods])
        for one in pods:
            self.api.delete("events", one["metadata"]["name"], "other", GROUP)
        return pods[0]["regarding"] if pods else {}

    def uids(self):
        """Without a uid in the verdict it is asked for; a pod that began later is another one."""
        self.api.create("pods", {"metadata": {"name": "w-0", "namespace": "other"}, "spec": {
            "containers": [{"name": "c", "image": "i"}]}}, "other")
        made = self.api.get("pods", "w-0", "other")["metadata"]
        began = datetime.datetime.fromisoformat(made["creationTimestamp"].replace("Z", "+00:00"))
        day_s = 86400
        to_the_pod_s = int(began.timestamp()) - RECORDED_S
        self.checks.equal(self.exit_in_pod(to_the_pod_s + day_s).get("uid"), made["uid"],
                          "the uid of the pod")
        self.checks.equal(self.exit_in_pod(to_the_pod_s - day_s).get("uid"), None,
                          "the uid of a younger pod")

    def all(self):
        self.make()
        for part in (self.without_rights, self.twice, self.ends, self.uids):
            part()


def main(binary):
    why = api_server.unavailable()
    if why == "" and yaml is None:
        why = "PyYAML is not installed"
    if why:
        checks = Checks()
        checks.skip(why)
        return checks.finish()
    with tempfile.TemporaryDirectory() as folder:
        with api_server.ApiServer(os.path.join(folder, "server")) as api:
            place = os.path.join(folder, "culprit")
            os.makedirs(place)
            suite = Suite(os.path.abspath(binary), place, api)
            suite.all()
            return suite.checks.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
