#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The kubernetes exporter beside a strict stand-in for an API server.

    run_kubernetes_events.py BINARY

What is on the server is compared with the verdicts of the json exporter: each root has one Event on
each pod and node that it names, whatever went wrong in between. What must happen is waited for, up to
a limit.
"""
import concurrent.futures
import json
import os
import re
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from checks import Checks  # noqa: E402
from ports import free_port  # noqa: E402
from process import environment, run  # noqa: E402
from running import Running, wait_for  # noqa: E402
from run_kubernetes import kubeconfig  # noqa: E402
from stand_in import StandIn  # noqa: E402

DETECTORS = os.path.join(HERE, "..", "golden", "detectors")
TWO_PODS = os.path.join(DETECTORS, "xid_correlation", "fallen_off_bus_two_pods", "events.jsonl")
INCIDENT = os.path.join(DETECTORS, "incident", "link_error_to_eviction", "events.jsonl")
NODE, PODS = "gpu-node-07", ["llama-eval-0", "llama-pt-worker-3"]
SIDE_BY_SIDE = 4  # they mostly wait
EVENT, PATCH_NODE = ("create", "events", ""), ("patch", "nodes/status", "")


def configured(folder, url, include, live=False, **exporter):
    path = kubeconfig(folder, url, tokenFile=os.path.join(folder, "token"))
    document = {
        "receivers": {"file": {"include": [include]}},
        "exporters": {"json": {"path": Running.verdicts_in(folder)},
                      "kubernetes": {"kubeconfig": path, "instance": "culprit-0",
                                     "retry_on_failure": {"initial_interval": "50ms",
                                                          "max_interval": "200ms"}, **exporter}},
        "service": {"pipelines": {"all": {"receivers": ["file"], "preset": "all",
                                          "exporters": ["json", "kubernetes"]}}}}
    if live:
        document["extensions"] = {"file_storage": {"directory": os.path.join(folder, "store")}}
        document["service"].update(extensions=["file_storage"], checkpoint_interval="100ms")
        document["service"]["pipelines"]["all"].update(idle_timeout="1s", settle="0s",
                                                       caught_up_timeout="100ms")
    return document


def rotate(folder, token):
    """As a kubelet does it: another file takes the place."""
    with open(os.path.join(folder, "token.new"), "w", encoding="ascii") as file:
        file.write(token)
    os.rename(os.path.join(folder, "token.new"), os.path.join(folder, "token"))


class Case:
    def __init__(self, checks, binary, folder, api):
        self.checks, self.binary, self.folder, self.api = checks, binary, folder, api
        rotate(folder, api.token)
        api.conditions[NODE] = [{"type": "Ready", "status": "True"}]

    def live(self, include=TWO_PODS, **exporter):
        return Running(self.binary, self.folder,
                       configured(self.folder, self.api.url, include, live=True, **exporter))

    def once(self, include=TWO_PODS, **exporter):
        path = os.path.join(self.folder, "once.yaml")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(configured(self.folder, self.api.url, include, **exporter), file)
        done = subprocess.run([self.binary, "run", "--once", "--config", path], check=False, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=120,
                              env=environment())
        self.checks.equal(done.returncode, 0, "once: " + done.stderr[-1500:])
        return done

    def lines(self):
        with open(Running.verdicts_in(self.folder), encoding="utf-8") as file:
            return [json.loads(line) for line in file if line.endswith("\n")]

    def verdicts(self):
        return {each["id"]: each for each in self.lines()}

    @staticmethod
    def places(verdicts):
        """(verdict, namespace, name) of all that is to have an Event."""
        found = set()
        for one in verdicts:
            if one["attributes"].get("culprit.root", "true") != "true" or one["severity"] == "info":
                continue
            for entity in one["entities"]:
                if entity["kind"] == "node":
                    found.add((one["id"], "default", entity["name"]))
                elif entity["kind"] == "pod":
                    found.add((one["id"], *entity["name"].split("/")))
        return found

    def written(self, resource="events", status=201):
        return self.api.asked(resource, "create", status)

    def events(self):
        with self.api.changed:
            return list(self.api.events.values())

    def two_pods_are_there(self):
        return sum(one["reason"] == "XidCorrelation" for one in self.events()) == 4

    def all_there(self, what):
        """Each once, and no others but those of verdicts that were a root for a while."""
        there = [(one["metadata"]["annotations"]["culprit/verdict"], one["metadata"]["namespace"],
                  one["regarding"]["name"]) for one in self.events()
                 if not one["reason"].endswith(("Withdrawn", "Resolved"))]
        wanted = self.places(self.verdicts().values())
        self.checks.equal(len(there), len(set(there)), what + ": one twice: %r" % there)
        self.checks.check(wanted, what + ": verdicts")
        self.checks.equal(wanted - set(there), set(), what + ": none is missing")
        self.checks.equal(set(there) - self.places(self.lines()), set(), what + ": no others")
        over = {each["id"] for each in self.verdicts().values() if each["state"] == "resolved"}
        told = {one["metadata"]["annotations"]["culprit/verdict"] for one in self.events()
                if one["reason"].endswith("Resolved")}
        self.checks.equal(told, over & {each[0] for each in there}, what + ": that it is over is told")


def what_is_written(case):
    checks, api = case.checks, case.api
    for name in PODS:
        api.put("pods", name)
    case.once(node_condition={"enabled": True})
    case.all_there("an Event for each root on each object that it names")
    verdicts = case.verdicts()
    for one in case.events():
        verdict = verdicts[one["metadata"]["annotations"]["culprit/verdict"]]
        checks.check(one["note"].startswith(verdict["headline"]), "the note: " + one["note"])
        checks.equal(one["reason"], "XidCorrelation", "the reason")
        checks.equal(one["type"], "Warning" if one["regarding"]["kind"] == "Node" else "Normal",
                     "the type")
        checks.equal(one["regarding"].get("uid"),
                     NODE if one["regarding"]["kind"] == "Node" else
                     verdict["attributes"]["k8s.pod.uid"], "the uid")
    checks.equal({one["type"]: one["status"] for one in api.conditions[NODE]},
                 {"Ready": "True", "CulpritNodeProblem": "True"}, "the condition, beside others")
    # What culprit wrote is no evidence for culprit.
    for number, one in enumerate(case.events()):
        path = os.path.join(case.folder, "own-%d.json" % number)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(one, file)
        done = run(case.binary, "analyze", path)
        checks.check(" 0 problems" in done.text() or "healthy" in done.text().lower()
                     or "nothing" in done.text().lower(),
                     "its own Event is read as evidence: " + done.text()[:400] + done.errors()[:300])


def the_least_rights(case):
    """What the page says of rights, and no more."""
    api = case.api
    api.rights = {EVENT, ("patch", "events", ""), ("get", "pods", "")}
    done = case.once(node_condition={"enabled": True})
    case.all_there("with these rights all Events are written")
    case.checks.check(api.conditions[NODE] == [{"type": "Ready", "status": "True"}],
                      "no condition without its right")
    case.checks.check(re.search(r"C4301.*resources: \[nodes/status\], verbs: \[patch\]", done.stderr),
                      "the rule that is missing is told: " + done.stderr[-800:])
    case.checks.equal(case.api.asked(None), [], "nothing else is asked")
    asked = {(one.resource, one.kind) for one in case.api.requests}
    case.checks.check(asked <= {("events", "create"), ("nodes/status", "patch"), ("pods", "get")},
                      "what is asked: %r" % asked)
    # Each event once more, to a server that has forgotten nothing.
    before = len(case.written())
    case.once()
    case.checks.equal((len(case.written()), len(case.written(status=409))), (before, before),
                      "all are known already")


def one_namespace_is_forbidden(case):
    api = case.api
    api.rights = {("create", "events", "default")}
    done = case.once(look_up_pods=False)
    case.checks.equal({one["metadata"]["namespace"] for one in case.events()}, {"default"},
                      "the other namespace's Events are written")
    case.checks.check("Role of the namespace train" in done.stderr, "the namespace: " + done.stderr)
    case.checks.equal(done.stderr.count("C4301"), 1, "told once")


def faults(case):
    """Each of them, and the Events are there once each."""
    api, checks = case.api, case.checks
    for fault in (503, 500, 401):
        api.fail("events", fault)
    api.fail("events", 429, headers={"Retry-After": "1"})
    api.fail("events", 422, reason="Invalid")
    with case.live(include=INCIDENT) as run_:
        checks.check(wait_for(lambda: len(case.events()) == 1), "one is refused, one is written: %r"
                     % [one.status for one in api.asked("events")] + run_.log()[-800:])
        # An Event is there a moment before its answer counts as given.
        wait_for(lambda: api.asked("events", status=201))
        statuses = [one.status for one in api.asked("events")]
        checks.equal(statuses, [503, 500, 401, 429, 422, 201], "what was answered")
        checks.check("C4303" in run_.log() and "as the test wants it" in run_.log(),
                     "the refusal is told: " + run_.log()[-800:])
        run_.stop(checks, "faults")


def a_token_that_rotates(case):
    api, checks = case.api, case.checks
    with api.changed:
        api.token = "second-token-of-the-tests"
    with case.live() as run_:
        checks.check(wait_for(lambda: api.asked("events", status=401)), "the old token is refused")
        rotate(case.folder, api.token)
        checks.check(wait_for(case.two_pods_are_there), "the new one is taken")
        run_.stop(checks, "token")
        checks.check("token-of-the-tests" not in run_.log(), "the log shows a token")
    case.all_there("after the rotation")


def a_right_that_comes(case):
    api, checks = case.api, case.checks
    api.rights = set()
    with case.live() as run_:
        checks.check(wait_for(lambda: len(api.asked("events", status=403)) > 2), "it is tried again")
        checks.equal(case.events(), [], "nothing is written")
        with api.changed:
            api.rights = {EVENT}
        checks.check(wait_for(case.two_pods_are_there), "nothing was lost")
        checks.check(wait_for(lambda: "C4302" in run_.log()), "that it is there is told")
        checks.equal(run_.log().count("C4301"), 1, "it was told once")
        run_.stop(checks, "right")


def killed(case):
    """Killed while the server has an Event and the answer is lost, before any checkpoint has it."""
    api, checks = case.api, case.checks
    for _ in range(3):
        api.fail("events", "lost")
    for number in range(3):
        with case.live(node_condition={"enabled": True},
                       retry_on_failure={"initial_interval": "1h", "max_interval": "1h"}) as run_:
            checks.check(wait_for(lambda: len(api.asked("events")) > 0
                                  and len(case.events()) > number), "killed: %d" % number)
            run_.process.send_signal(signal.SIGKILL)
            run_.process.wait()
    with case.live(node_condition={"enabled": True}) as run_:
        checks.check(wait_for(lambda: case.two_pods_are_there() and api.condition_writes),
                     "all are there after the kills: %d" % len(case.events()))
        run_.stop(checks, "killed")
    case.all_there("each once")
    checks.check(case.written(status=409), "what came twice was told by its name")
    # A restart says nothing again, and the condition does not flap.
    before, writes = len(api.asked("events")), len(api.condition_writes)
    with case.live(node_condition={"enabled": True, "heartbeat_interval": "1s"}) as run_:
        checks.check(wait_for(lambda: len(api.condition_writes) > writes), "the heartbeat goes on")
        run_.stop(checks, "again")
    checks.equal(len(api.asked("events")), before, "no Event is written again")
    checks.equal({(one["status"], one["lastTransitionTime"]) for _, one in api.condition_writes},
                 {("True", api.condition_writes[0][1]["lastTransitionTime"])}, "it did not flap")


def a_namespace_that_is_gone(case):
    api, checks = case.api, case.checks
    api.namespaces = {"default"}
    done = case.once()
    checks.equal({one["regarding"]["kind"] for one in case.events()}, {"Node"}, "the others")
    checks.check("namespaces \"train\" not found" in done.stderr.replace("\\", ""),
                 "it is told: " + done.stderr[-500:])


def it_ends(case):
    """The condition is set back when nothing new was found for a while; no Event is."""
    api, checks = case.api, case.checks
    with case.live(node_condition={"enabled": True, "resolve_after": "4s"}) as run_:
        checks.check(wait_for(lambda: [one["status"] for _, one in api.condition_writes][-1:]
                              == ["False"]), "it is set to False: %r" % api.condition_writes)
        checks.equal([one["status"] for _, one in api.condition_writes], ["True", "False"], "writes")
        run_.stop(checks, "end")
    case.all_there("no further Event")


def a_server_that_comes_late(checks, binary):
    """Dead at first, then there; and dead for good with inputs that end, until somebody stops it."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        api = StandIn.__new__(StandIn)
        api.url, api.token, api.conditions = "http://127.0.0.1:%d" % port, "late-token", {}
        case = Case(checks, binary, folder, api)
        with case.live() as run_:
            checks.check(wait_for(lambda: "cannot get pod" in run_.log()
                                  or "cannot create an Event" in run_.log()),
                         "that it cannot be reached is told: " + run_.log()[-500:])
            with StandIn(port=port, token="late-token") as api:
                case.api = api
                checks.check(wait_for(case.two_pods_are_there), "then all is written")
                run_.stop(checks, "late")
                case.all_there("late")


def validate(checks, binary):
    with tempfile.TemporaryDirectory() as folder:
        for more, said in (({"namespace": "a/b"}, "not a valid name of a namespace"),
                           ({"instance": ""}, "instance"),
                           ({"context": "x", "kubeconfig": None}, "one of a kubeconfig"),
                           ({"max_objects": 0}, "max_objects"),
                           ({"node_condition": {"type": "Ready"}}, "Kubernetes' own"),
                           ({"node_condition": {"type": "has space"}}, "not a type of a condition"),
                           ({"match": {"patterns": ["xid_corelation"]}}, "did you mean")):
            document = configured(folder, "http://127.0.0.1:1", TWO_PODS, **more)
            if more.get("kubeconfig", "") is None:
                del document["exporters"]["kubernetes"]["kubeconfig"]
            path = os.path.join(folder, "c.yaml")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(document, file)
            done = run(binary, "validate", path)
            text = done.text() + done.errors()
            checks.check(done.code != 0 and said in text, "validate %r: %s" % (more, text[-500:]))


CASES = [what_is_written, the_least_rights, one_namespace_is_forbidden, faults, a_token_that_rotates,
         a_right_that_comes, killed, a_namespace_that_is_gone, it_ends]


def one_case(checks, binary, case):
    with StandIn() as api, tempfile.TemporaryDirectory() as folder:
        case(Case(checks, binary, folder, api))


def main(binary):
    checks = Checks()
    with concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        running = [pool.submit(one_case, checks, binary, case) for case in CASES]
        running += [pool.submit(case, checks, binary) for case in (a_server_that_comes_late, validate)]
        for one in running:
            one.result()
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
