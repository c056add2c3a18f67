#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The chart with real helm, and what it makes against a real Kubernetes API server.

    run_chart_live.py BINARY

helm renders it with many values: each configuration is right and fits its pod, the API server takes
every object under strict validation, and Pod Security lets the pods of gateway and trainers into a
namespace that is `restricted`. helm installs, upgrades and removes it: Secrets stay what they were,
the gateway's account may list and watch what it needs and nothing else, nothing is left behind.
"""
import base64
import copy
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from checks import Checks  # noqa: E402
from api_server import ApiError, ApiServer, unavailable  # noqa: E402
from process import run  # noqa: E402

try:
    import yaml
    import manifests as m
    from run_chart import checked_objects
except ImportError:
    yaml = None

HELM_VERSION = "3.20.2"
PATIENCE_S = 120
LONG_NAME = "a-name-of-a-release-that-is-as-long-as-helm-takes-it"
# Values that are tried: [--set arguments].
CASES = {
    "defaults": [],
    "kafka": ["kafka.enabled=true", "gateway.kubernetes.enabled=false", "gateway.replicas=4",
              "kafka.brokers={kafka-0.kafka:9093,kafka-1.kafka:9093}"],
    "kafka in the clear": ["kafka.enabled=true", "kafka.saslMechanism=none", "kafka.tls=false"],
    "kafka, no gateway": ["kafka.enabled=true", "gateway.enabled=false"],
    "gateway alone": ["node.enabled=false", "sidecar.enabled=false"],
    "no rights": ["gateway.kubernetes.enabled=false", "node.kmsg.enabled=false",
                  "node.sysfs.enabled=false", "node.scrape.endpoints[0]=http://${env:HOST_IP}:9400/metrics"],
    "events": ["gateway.kubernetesEvents.enabled=true"],
    "events of several": ["gateway.kubernetesEvents.enabled=true", "gateway.kubernetes.enabled=false",
                          "kafka.enabled=true", "gateway.replicas=2"],
    "a condition": ["gateway.kubernetesEvents.enabled=true", "gateway.kubernetes.enabled=false",
                    "gateway.kubernetesEvents.nodeCondition=true"],
    "more inputs": ["sidecar.ncclRas.enabled=true", "node.scrape.interval=1s",
                    "node.scrape.endpoints={http://dcgm.gpu.svc:9400/metrics,http://ib.gpu.svc:9100/metrics}"],
    "rights of others": ["rbac.create=false", "serviceAccount.create=false", "serviceAccount.name=theirs"],
    "own secrets": ["ingest.existingSecret=mine", "gateway.tls.existingSecret=mine-tls"],
    "device plugin": ["node.kmsg.deviceResource=devices.example.org/kmsg"],
    "journal": ["node.kmsg.enabled=false", "node.journald.enabled=true", "node.journald.group=101",
                "node.journald.directory=/run/log/journal"],
    "monitored": ["podMonitor.enabled=true", "podMonitor.labels.release=prometheus",
                  "podMonitor.interval=30s", "sidecar.namespaces={train,more}"],
    "closed": ["networkPolicy.ingestFrom[0].namespaceSelector.matchLabels.team=train",
               "networkPolicy.metricsFrom[0].ipBlock.cidr=10.0.0.0/8"],
    "open": ["networkPolicy.enabled=false", "gateway.podDisruptionBudget.enabled=false"],
    "placed": ["gateway.nodeSelector.disk=ssd", "gateway.priorityClassName=system-cluster-critical",
               "gateway.tolerations[0].operator=Exists", "gateway.store.storageClass=fast",
               "gateway.topologySpreadConstraints[0].maxSkew=1",
               "gateway.topologySpreadConstraints[0].topologyKey=kubernetes.io/hostname",
               "gateway.topologySpreadConstraints[0].whenUnsatisfiable=ScheduleAnyway",
               "node.nodeSelector.pool=gpus", "node.tolerations=null",
               "node.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."
               "nodeSelectorTerms[0].matchExpressions[0].key=gpu",
               "node.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."
               "nodeSelectorTerms[0].matchExpressions[0].operator=Exists",
               "node.podLabels.team=infra", "gateway.podAnnotations.note=a", "commonLabels.team=infra",
               "imagePullSecrets={registry}", "image.digest=sha256:" + "0" * 64,
               "serviceAccount.annotations.note=a"],
    "own configuration": ["gateway.config.processors.rank_group.retention=2h",
                          "node.config.service.telemetry.logs.level=debug",
                          "sidecar.config.service.pipelines.memory.evaluate_every=5s"],
    "long name": ["nameOverride=x"],
}
REFUSED = {
    "several gateways without Kafka": (["gateway.replicas=2"], "same gateway"),
    "several gateways that watch": (["kafka.enabled=true", "gateway.replicas=2"], "every event"),
    "a condition of several gateways": (["kafka.enabled=true", "gateway.replicas=2",
                                         "gateway.kubernetes.enabled=false",
                                         "gateway.kubernetesEvents.enabled=true",
                                         "gateway.kubernetesEvents.nodeCondition=true"], "set back"),
    "a condition without Events": (["gateway.kubernetesEvents.nodeCondition=true"], "does nothing"),
    "nowhere to send to": (["gateway.enabled=false"], "nowhere to send to"),
    "nothing to read": (["node.kmsg.enabled=false", "node.sysfs.enabled=false"], "nothing is read"),
    "the kernel's log twice": (["node.journald.enabled=true"], "both read"),
    "a mistyped value": (["gateway.replica=2"], "replica"),
    "a broker without a port": (["kafka.enabled=true", "kafka.brokers={kafka}"], "brokers"),
}
# What the gateway's account may do beyond any other account.
GRANTED = {("", resource, verb) for resource in ("events", "pods", "nodes") for verb in ("list", "watch")}
GRANTED_EVENTS = {("events.k8s.io", "events", "create"), ("events.k8s.io", "events", "patch"),
                  ("", "pods", "get")}
GRANTED_CONDITION = {("", "nodes/status", "patch")}
# Kinds of others, with a field or two of theirs: {plural: (group, version, kind, schema of spec)}.
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
MONITORS = ("podmonitors", "monitoring.coreos.com", "v1", "PodMonitor", {
    "type": "object", "properties": {
        "selector": {"type": "object", "properties": {
            "matchLabels": {"type": "object", "additionalProperties": {"type": "string"}}}},
        "namespaceSelector": {"type": "object", "properties": {
            "matchNames": {"type": "array", "items": {"type": "string"}}}},
        "podMetricsEndpoints": {"type": "array", "items": {"type": "object", "properties": {
            "port": {"type": "string"}, "interval": {"type": "string"}}}}}})
# A trainer of each kind: what its manifest holds around the pod.
TRAINERS = {
    "jobset": ("jobset.x-k8s.io/v1alpha2", "JobSet", lambda pod: {"replicatedJobs": [
        {"name": "node", "template": {"spec": {"template": pod}}}]}),
    "trainingruntime": ("trainer.kubeflow.org/v1alpha1", "ClusterTrainingRuntime", lambda pod: {
        "template": {"spec": {"replicatedJobs": [
            {"name": "node", "template": {"spec": {"template": pod}}}]}}}),
    "pytorchjob-master": ("kubeflow.org/v1", "PyTorchJob", lambda pod: {
        "pytorchReplicaSpecs": {"Master": {"template": pod}}}),
    "pytorchjob-worker": ("kubeflow.org/v1", "PyTorchJob", lambda pod: {
        "pytorchReplicaSpecs": {"Worker": {"template": pod}}}),
}


def helm_program():
    return os.path.join(os.environ.get("CULPRIT_HELM") or os.path.join(
        os.path.expanduser("~"), ".cache", "culprit", "helm-" + HELM_VERSION), "helm")


def set_arguments(sets):
    return [part for one in sets for part in ("--set", one)]


def plain_pod():
    """Of a trainer that keeps to the rules of a restricted namespace."""
    return {"spec": {
        "restartPolicy": "Never",
        "containers": [{"name": "trainer", "image": "trainer:latest", "securityContext": {
            "runAsNonRoot": True, "runAsUser": 1000, "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"}},
            "volumeMounts": [{"name": "telemetry", "mountPath": "/telemetry"}]}],
        "volumes": [{"name": "telemetry", "emptyDir": {}}]}}


def with_claims(one):
    """The template of an object's pods, with a volume for each claim."""
    pod = copy.deepcopy(m.pod_of(one))
    pod["spec"]["volumes"] += [{"name": claim["metadata"]["name"], "emptyDir": {}}
                               for claim in one["spec"].get("volumeClaimTemplates", [])]
    return pod


class Suite:
    def __init__(self, binary, folder, server):
        self.binary, self.folder, self.server = binary, folder, server
        self.checks = Checks()
        self.pods = 0

    def helm(self, *arguments):
        environment = {"PATH": os.environ["PATH"], "HOME": self.folder,
                       "KUBECONFIG": self.server.path("kubeconfig-admin")}
        return subprocess.run([helm_program(), *arguments], capture_output=True, text=True,
                              env=environment, timeout=PATIENCE_S, check=False)

    def kubectl(self, *arguments):
        return run("kubectl", "--kubeconfig", self.server.path("kubeconfig-admin"), *arguments,
                   HOME=self.folder)

    # -- rendered ---------------------------------------------------------------------------------

    def chart(self):
        done = self.helm("lint", "--strict", m.CHART)
        self.checks.equal(done.returncode, 0, "helm lint: " + done.stdout + done.stderr)
        done = subprocess.run([sys.executable, "-B", os.path.join(m.PACKAGING, "render_kustomize"),
                               helm_program(), "--check"], capture_output=True, text=True, check=False)
        self.checks.equal((done.returncode, done.stdout), (0, ""), "render_kustomize --check")
        for what, (sets, said) in REFUSED.items():
            done = self.helm("template", "culprit", m.CHART, *set_arguments(sets))
            self.checks.check(done.returncode != 0 and said in done.stderr, "%s: %d: %s"
                              % (what, done.returncode, done.stderr))

    def rendered(self):
        for what, sets in CASES.items():
            name = LONG_NAME if what == "long name" else "culprit"
            done = self.helm("template", name, m.CHART, "-n", "culprit", *set_arguments(sets))
            if not self.checks.equal(done.returncode, 0, "%s: %s" % (what, done.stderr)):
                continue
            objects = m.objects_of(done.stdout)
            checked_objects(self.checks, self.binary, self.folder, what, objects)
            self.applied(what, objects)
            for one in objects:
                if m.pod_of(one):
                    self.pod(what + ": " + one["kind"], with_claims(one))
            if what == "own configuration":
                text = "\n".join(text for one in m.kinds(objects, "ConfigMap") for text in one["data"].values())
                for wanted in ("retention: 2h", "level: debug", "evaluate_every: 5s"):
                    self.checks.check(wanted in text, "config: %s is nowhere" % wanted)
            self.delete(objects)

    def applied(self, what, objects):
        for one in sorted(objects, key=lambda one: one["kind"] != "Namespace"):
            try:
                self.server.apply(one)
                self.checks.check(True, "")
            except (ApiError, IndexError) as error:
                self.checks.check(False, "%s: %s %s: %s" % (what, one["kind"], one["metadata"]["name"], error))

    def delete(self, objects):
        for one in objects:
            if one["kind"] == "Namespace":
                continue
            group = one["apiVersion"]
            listed = self.server.call("GET", "/api/v1" if group == "v1" else "/apis/" + group)["resources"]
            found = [each for each in listed if each["kind"] == one["kind"] and "/" not in each["name"]][0]
            try:
                self.server.delete(found["name"], one["metadata"]["name"],
                                   one["metadata"].get("namespace"), None if group == "v1" else group)
            except ApiError as error:
                self.checks.equal(error.status, 404, "deleting %s" % one["kind"])

    def pod(self, what, template):
        """The API server takes such a pod, where pods may do no more than it has to."""
        privileged = any("hostPath" in one for one in template["spec"]["volumes"]) or any(
            one["securityContext"].get("runAsUser") == 0 for one in template["spec"]["containers"])
        namespaces = ["culprit"] if privileged else ["culprit", "restricted"]
        for each in ["culprit", "restricted"]:
            self.pods += 1
            pod = {"apiVersion": "v1", "kind": "Pod", "spec": dict(template["spec"], priorityClassName=""),
                   "metadata": dict(template.get("metadata") or {}, name="p%d" % self.pods)}
            pod["spec"].pop("serviceAccountName", None)
            path = "/api/v1/namespaces/%s/pods?fieldValidation=Strict&dryRun=All" % each
            try:
                self.server.call("POST", path, pod)
                taken = True
            except ApiError as error:
                taken, said = False, str(error)
            self.checks.check(taken == (each in namespaces), lambda: "%s: a pod in the namespace %s: %s"
                              % (what, each, "taken" if taken else said))

    # -- kustomize --------------------------------------------------------------------------------

    def kustomized(self):
        if shutil.which("kubectl") is None:
            self.checks.skip("kubectl is not installed: kustomize was not run")
            return
        for folder in (os.path.join(m.TREE, "http"), os.path.join(m.TREE, "kafka"),
                       os.path.join(m.EXAMPLES, "job-http"), os.path.join(m.EXAMPLES, "job-kafka")):
            done = self.kubectl("kustomize", folder)
            self.checks.equal(done.code, 0, "kubectl kustomize: " + done.errors())
            objects = m.objects_of(done.text())
            self.applied(folder[-12:], objects)
            self.delete(objects)
        for kind, (version, name, spec) in TRAINERS.items():
            self.trainer(kind, {"apiVersion": version, "kind": name, "metadata": {"name": "train"},
                                "spec": spec(plain_pod())})

    def trainer(self, kind, manifest):
        """Culprit comes into a pod of another kind by a component of kustomize."""
        place = os.path.join(self.folder, kind)
        os.makedirs(place)
        component = os.path.relpath(os.path.join(m.TREE, "sidecar", kind), os.path.realpath(place))
        for name, content in (("train.yaml", manifest), ("kustomization.yaml", {
                "resources": ["train.yaml"], "components": [component]})):
            with open(os.path.join(place, name), "w", encoding="utf-8") as file:
                json.dump(content, file)
        done = self.kubectl("kustomize", place)
        if not self.checks.equal(done.code, 0, "%s: kubectl kustomize: %s" % (kind, done.errors())):
            return
        pod = m.objects_of(done.text())[0]
        for part in m.render_kustomize().KINDS[kind][1].strip("/").split("/"):
            pod = pod[int(part) if isinstance(pod, list) else part]
        self.checks.equal(m.culprit_of(pod["spec"])["restartPolicy"], "Always", kind + ": the sidecar")
        self.pod(kind, pod)

    def dependency(self):
        """The chart of a trainer that takes the sidecar from this one."""
        place = os.path.join(self.folder, "trainer")
        os.makedirs(os.path.join(place, "templates"))
        shutil.copytree(m.CHART, os.path.join(place, "charts", "culprit"))
        for name, text in (("Chart.yaml", "apiVersion: v2\nname: trainer\nversion: 1.0.0\n"),
                           ("values.yaml", "culprit:\n  node: {enabled: false}\n"
                            "  sidecar: {telemetryPath: /data, jobLabel: team/job}\n"),
                           ("templates/job.yaml", m.text_of(HERE, "trainer_job.yaml"))):
            with open(os.path.join(place, name), "w", encoding="utf-8") as file:
                file.write(text)
        done = self.helm("template", "run7", place, "-n", "culprit")
        if not self.checks.equal(done.returncode, 0, "a trainer's chart: " + done.stderr):
            return
        objects = m.objects_of(done.stdout)
        checked_objects(self.checks, self.binary, self.folder, "a trainer's chart", objects)
        job = m.kinds(objects, "Job")[0]
        self.applied("a trainer's chart", objects)
        self.pod("a trainer's chart", m.pod_of(job))
        self.checks.check("metadata.labels['team/job']" in json.dumps(job), "the label of the job's name")
        self.delete(objects)

    # -- installed --------------------------------------------------------------------------------

    def secrets(self, *namespaces):
        return {(each, one["metadata"]["name"]): one["data"] for each in namespaces
                for one in self.server.list("secrets", each)[0] if one.get("type") != "helm.sh/release.v1"}

    def installed(self):
        for name in ("train", "more"):
            self.server.create_namespace(name)
        sets = set_arguments(["sidecar.namespaces={train}"])
        done = self.helm("install", "culprit", m.CHART, "-n", "fresh", "--create-namespace", *sets)
        if not self.checks.equal(done.returncode, 0, "helm install: " + done.stderr):
            return
        self.checks.check("kubectl -n fresh" in done.stdout, "its notes: " + done.stdout)
        first = self.secrets("fresh", "train")
        self.checks.equal(sorted(first), [("fresh", "culprit-gateway-tls"), ("fresh", "culprit-ingest"),
                                          ("train", "culprit-sidecar")], "Secrets")
        sidecar, tls = first["train", "culprit-sidecar"], first["fresh", "culprit-gateway-tls"]
        self.checks.equal((sidecar["token"], sidecar["ca.crt"]),
                          (first["fresh", "culprit-ingest"]["token"], tls["ca.crt"]),
                          "what a sidecar shows and trusts")
        self.checks.check(len(base64.b64decode(sidecar["token"])) >= 32, "the token is short")
        self.certificate(tls)
        self.rights("fresh")
        for more, wanted in (("gateway.kubernetes.enabled=false", GRANTED_EVENTS),
                             ("gateway.kubernetesEvents.nodeCondition=true",
                              GRANTED | GRANTED_EVENTS | GRANTED_CONDITION)):
            done = self.helm("upgrade", "culprit", m.CHART, "-n", "fresh", *sets, "--set",
                             "gateway.kubernetesEvents.enabled=true", "--set", more)
            self.checks.equal(done.returncode, 0, "helm upgrade: " + done.stderr)
            self.granted("fresh", wanted, "rights with " + more)
        done = self.helm("upgrade", "culprit", m.CHART, "-n", "fresh", "--set", "sidecar.namespaces={train,more}",
                         "--set", "gateway.store.size=10Gi", "--set", "gateway.resources.limits.memory=4Gi")
        self.checks.equal(done.returncode, 0, "helm upgrade: " + done.stderr)
        after = self.secrets("fresh", "train", "more")
        self.checks.equal(after.pop(("more", "culprit-sidecar"), None), sidecar, "the Secret of a new namespace")
        self.checks.equal(after, first, "Secrets after an upgrade")
        done = self.helm("install", "culprit", m.CHART, "-n", "second", "--create-namespace")
        self.checks.equal(done.returncode, 0, "a second release of that name: " + done.stderr)
        for namespace in ("fresh", "second"):
            done = self.helm("uninstall", "culprit", "-n", namespace)
            self.checks.equal(done.returncode, 0, "helm uninstall: " + done.stderr)
        left = [(each, kind, one["metadata"]["name"]) for each in ("fresh", "second", "train", "more")
                for kind, group in (("secrets", None), ("configmaps", None), ("services", None),
                                    ("statefulsets", "apps/v1"), ("daemonsets", "apps/v1"))
                for one in self.server.list(kind, each, group)[0]]
        left += [one["metadata"]["name"] for kind in ("clusterroles", "clusterrolebindings")
                 for one in self.server.list(kind, None, "rbac.authorization.k8s.io/v1")[0]
                 if "culprit" in one["metadata"]["name"]]
        self.checks.equal(left, [], "what is left after helm uninstall")

    def certificate(self, tls):
        place = os.path.join(self.folder, "tls")
        os.makedirs(place)
        for name, data in tls.items():
            with open(os.path.join(place, name), "wb") as file:
                file.write(base64.b64decode(data))
        for host, wanted in (("culprit-gateway", 0), ("culprit-gateway.fresh.svc", 0),
                             ("culprit-gateway-0.culprit-gateway.fresh.svc", 0), ("example.org", 2)):
            done = subprocess.run(["openssl", "verify", "-CAfile", "ca.crt", "-verify_hostname", host, "tls.crt"],
                                  cwd=place, capture_output=True, text=True, check=False)
            self.checks.equal(done.returncode, wanted, "the certificate for %s: %s" % (host, done.stderr))

    def granted(self, namespace, wanted, what):
        """What the gateway's account may do that no other account may is what it needs."""
        allowed = {name: self.allowed(self.server.token(name, namespace))
                   for name in ("culprit-gateway", "nobody")}
        self.checks.equal(allowed["culprit-gateway"] - allowed["nobody"], wanted, what)

    def rights(self, namespace):
        self.server.create_account("nobody", namespace)
        self.granted(namespace, GRANTED, "rights of the gateway's account")
        token = self.server.token("culprit-gateway", namespace)
        for resource in ("events", "pods", "nodes"):
            listed = json.loads(self.server.request("GET", "/api/v1/%s?limit=1" % resource, token=token)[2])
            self.checks.check("items" in listed, "listing %s: %s" % (resource, listed))
            path = "/api/v1/%s?watch=true&timeoutSeconds=1&resourceVersion=%s" % (
                resource, listed["metadata"]["resourceVersion"])
            self.checks.equal(self.server.request("GET", path, token=token)[0], 200, "watching " + resource)
        for method, path in (("GET", "/api/v1/secrets"), ("GET", "/api/v1/namespaces/fresh/pods/x"),
                             ("DELETE", "/api/v1/namespaces/fresh/pods/x"), ("GET", "/api/v1/configmaps")):
            self.checks.equal(self.server.request(method, path, token=token)[0], 403, method + " " + path)

    def allowed(self, token):
        found = set()
        groups = ["v1"] + [one["preferredVersion"]["groupVersion"]
                           for one in self.server.call("GET", "/apis")["groups"]]
        for group in groups:
            listed = self.server.call("GET", "/api/v1" if group == "v1" else "/apis/" + group)["resources"]
            for resource in listed:
                name, _, part = resource["name"].partition("/")
                for verb in resource["verbs"] + ["*"]:
                    asked = {"verb": verb, "resource": name, "subresource": part,
                             "group": "" if group == "v1" else group.split("/")[0]}
                    answer = self.server.call(
                        "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                        {"spec": {"resourceAttributes": asked}}, token=token)
                    if answer["status"]["allowed"]:
                        found.add((asked["group"], resource["name"], verb))
        return found

    # -- all --------------------------------------------------------------------------------------

    def prepare(self):
        self.server.kubeconfig()
        plural, group, version, kind, spec = MONITORS
        self.server.create("customresourcedefinitions", {
            "metadata": {"name": plural + "." + group},
            "spec": {"group": group, "scope": "Namespaced",
                     "names": {"plural": plural, "kind": kind, "singular": kind.lower()},
                     "versions": [{"name": version, "served": True, "storage": True, "schema": {
                         "openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}}]}},
            group="apiextensions.k8s.io/v1")
        self.server.until(lambda: group in str(self.server.call("GET", "/apis")), self.server.server, "the CRD")
        for name, level in (("culprit", "privileged"), ("train", "baseline"), ("more", "baseline"),
                            ("restricted", "restricted")):
            self.server.create_namespace(name)
            self.server.patch("namespaces", name, {"metadata": {"labels": {
                "pod-security.kubernetes.io/enforce": level}}})

    def all(self):
        self.prepare()
        for part in (self.chart, self.rendered, self.kustomized, self.dependency, self.installed):
            part()


def main(binary):
    why = unavailable()
    if not why and not os.access(helm_program(), os.X_OK):
        why = "no helm at %s (tests/kubernetes/build_helm)" % helm_program()
    if not why and yaml is None:
        why = "PyYAML is not installed"
    if why:
        checks = Checks()
        checks.skip("the chart with helm: " + why)
        return checks.finish()
    with tempfile.TemporaryDirectory() as folder, ApiServer(
            os.path.join(folder, "server"), ["--allow-privileged=true"]) as server:
        suite = Suite(os.path.abspath(binary), folder, server)
        suite.all()
        return suite.checks.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
