#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From a fault of a node to the rank that it stopped, as the chart installs culprit.

    run_end_to_end.py BINARY [--keep DIRECTORY]

A real Kubernetes API server knows one node and the pods of two jobs of four gloo ranks each. Beside
it run, with the configurations that real helm makes of the chart, a gateway with the chart's account,
a culprit of the node (its kernel log, /sys and GPU metrics are stand-ins), and a sidecar for each pod.
In turn a GPU is lost under a rank that then hangs, the kernel kills a rank for want of memory while
node and gateway are killed as well, and a link goes down. Each must be named at the gateway with its
rank, pod, node and GPU, from what was known 10 s after the fault.

What is compared with 10 s is event time; how long it took by the clock is printed.
"""
import base64
import http.server
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from datetime import datetime, timezone

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from api_server import ApiServer, unavailable  # noqa: E402
from checks import Checks  # noqa: E402
from kmsg_device import KmsgDevice  # noqa: E402
from ports import free_ports  # noqa: E402
from process import environment  # noqa: E402
from sysfs_tree import SysfsTree  # noqa: E402
import trainers  # noqa: E402
import verdicts  # noqa: E402

try:
    import yaml
    import manifests as m
    from run_chart_live import helm_program
except ImportError:
    yaml = None

PATIENCE_S = 120
LIMIT_NS = 10 * trainers.SECOND
NODE = "gpu-node-0"
NAMESPACE = "train"
JOB_LABEL = "batch.kubernetes.io/job-name"
PCI = ["0000:%s:00.0" % bus for bus in ("07", "0a", "47", "4e")]
UUID = ["GPU-%08d-1111-2222-3333-444444444444" % gpu for gpu in range(4)]
OUT_OF_MEMORY = [
    "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=cri-containerd-%(container)s.scope,"
    "mems_allowed=0-1,oom_memcg=%(cgroup)s,task_memcg=%(cgroup)s,task=python,pid=740110,uid=0",
    "Memory cgroup out of memory: Killed process 740110 (python) total-vm:4142848kB, anon-rss:1195096kB, "
    "file-rss:258568kB, shmem-rss:0kB, UID:0 pgtables:3812kB oom_score_adj:0"]
CARD, CARD_ADDRESS = "mlx5_0", "0000:0c:00.0"


class Metrics:
    """What dcgm-exporter says of the node's four GPUs."""

    def __init__(self):
        self.xids = [0] * 4
        metrics = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                text = metrics.text().encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d/metrics" % self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def text(self):
        rows = []
        for name, values in (("DCGM_FI_DEV_GPU_TEMP", [41, 42, 43, 44]),
                             ("DCGM_FI_DEV_XID_ERRORS", self.xids)):
            rows.append("# TYPE %s gauge" % name)
            for gpu, value in enumerate(values):
                rows.append('%s{gpu="%d",UUID="%s",pci_bus_id="0000%s",device="nvidia%d",'
                            'modelName="NVIDIA H100 80GB HBM3",Hostname="%s"} %d' % (
                                name, gpu, UUID[gpu], PCI[gpu].upper(), gpu, NODE, value))
        return "\n".join(rows) + "\n"


class Culprit:
    """One `culprit run` with configurations of the chart."""

    def __init__(self, binary, folder, configs, **more):
        self.binary, self.folder = binary, folder
        self.environment = environment(**more)
        self.log = os.path.join(folder, "log")
        self.args = []
        os.makedirs(folder, exist_ok=True)
        for name, text in configs.items():
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
            self.args += ["--config", os.path.join(folder, name)]
        self.process = None

    def start(self):
        """Returns when it runs."""
        before = self.count("C1001")
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([self.binary, "run", *self.args], stdin=subprocess.DEVNULL,
                                            stdout=subprocess.DEVNULL, stderr=log, env=self.environment)
        limit = time.monotonic() + PATIENCE_S
        while self.count("C1001") == before:
            if self.process.poll() is not None or time.monotonic() > limit:
                raise RuntimeError("%s did not start; see %s" % (self.folder, self.log))
            time.sleep(0.02)
        return self

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        code, self.process = self.process.wait(PATIENCE_S), None
        return code

    def lines(self):
        try:
            with open(self.log, encoding="utf-8", errors="replace") as file:
                return [json.loads(line) for line in file if line.startswith("{") and line.endswith("}\n")]
        except FileNotFoundError:
            return []

    def count(self, code):
        return sum(line.get("code") == code for line in self.lines())


def names(verdict, kind, role="culprit"):
    return [one["name"] for one in verdict["entities"] if one["kind"] == kind and one["role"] == role]


def all_names(verdict, kind):
    return sorted({one["name"] for one in verdict["entities"] if one["kind"] == kind})


def is_root(verdict):
    return verdict.get("attributes", {}).get("culprit.root") == "true"


class Pod:
    """Two ranks of a job; `gpus`: which GPU each rank of the job has."""

    def __init__(self, job, index, gpus):
        self.job, self.name = job, "%s-%d" % (job, index)
        self.ranks = {rank: gpus[rank] for rank in (2 * index, 2 * index + 1)}
        self.container = ("%x" % (index + 10) * 64)[:64]
        self.uid = ""

    def manifest(self):
        return {"metadata": {"name": self.name, "labels": {JOB_LABEL: self.job},
                             "annotations": {"batch.kubernetes.io/job-completion-index": self.name[-1]}},
                "spec": {"nodeName": NODE, "restartPolicy": "Never", "containers": [
                    {"name": "trainer", "image": "trainer:latest",
                     "resources": {"limits": {"nvidia.com/gpu": "2", "memory": "64Gi"}}}]}}

    def cgroup(self):
        return ("/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod%s.slice/"
                "cri-containerd-%s.scope" % (self.uid.replace("-", "_"), self.container))


class Suite:
    def __init__(self, binary, folder, server):
        self.binary, self.folder, self.server = binary, folder, server
        self.checks = Checks()
        self.metrics = Metrics()
        self.sysfs = SysfsTree(os.path.join(folder, "sys"))
        self.sysfs.add_card(CARD, CARD_ADDRESS)
        self.kmsg_path = os.path.join(folder, "kmsg")
        self.kmsg = KmsgDevice(self.kmsg_path)
        self.running = []
        self.objects = []
        self.gateway = self.node = None
        self.verdict_path = os.path.join(folder, "gateway", "verdicts.jsonl")
        self.kernel_log = os.path.join(folder, "kept", "kernel.log")
        os.makedirs(os.path.dirname(self.kernel_log))

    # -- what helm makes --------------------------------------------------------------------------

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def values(self):
        """Ports and paths of this test; all else is the chart's."""
        self.port, gateway_metrics, gateway_health, node_metrics, node_health = free_ports(5)

        def local(port):
            return {"endpoint": "127.0.0.1:%d" % port}
        sender = {"http/gateway": {"endpoint": "https://localhost:%d" % self.port,
                                   "auth": {"bearer_token_file": self.path("secrets", "token")},
                                   "tls": {"ca_file": self.path("secrets", "ca.crt")}}}
        return {
            "gateway": {"extraHosts": ["localhost"], "config": {
                "receivers": {
                    "http": {"endpoint": "127.0.0.1:%d" % self.port,
                             "tls": {"cert_file": self.path("secrets", "tls.crt"),
                                     "key_file": self.path("secrets", "tls.key")},
                             "auth": {"bearer_token_file": self.path("secrets", "token")}},
                    "kubernetes": {"service_account_directory": self.path("account")}},
                "exporters": {"json": {"path": self.verdict_path}, "prometheus": local(gateway_metrics)},
                "service": {"pipelines": {"jobs": {"idle_timeout": "1h"}}},  # nothing waits for silence
                "extensions": {"health_check": local(gateway_health),
                               "file_storage": {"directory": self.path("gateway", "store")}}}},
            "node": {"scrape": {"endpoints": [self.metrics.url]}, "config": {
                "receivers": {"kmsg": {"path": self.kmsg_path}, "sysfs": {"root": self.sysfs.root}},
                "exporters": sender,
                "extensions": {"health_check": local(node_health),
                               "file_storage": {"directory": self.path("node", "store")}},
                "service": {"telemetry": {"metrics": local(node_metrics)}}}},
            "sidecar": {"namespaces": [NAMESPACE], "config": {
                "receivers": {"http": {"endpoint": "127.0.0.1:${env:HTTP_PORT}"}},
                "exporters": {**sender, "prometheus": {"endpoint": "127.0.0.1:${env:METRICS_PORT}"}},
                "extensions": {"health_check": {"endpoint": "127.0.0.1:${env:HEALTH_PORT}"}}}}}

    def render(self):
        with open(self.path("values.json"), "w", encoding="utf-8") as file:
            json.dump(self.values(), file)
        done = subprocess.run([helm_program(), "template", "culprit", m.CHART, "-n", "culprit", "-f",
                               self.path("values.json")], capture_output=True, text=True,
                              env=environment(HOME=self.folder), timeout=PATIENCE_S, check=False)
        if done.returncode != 0:
            raise RuntimeError("helm template: " + done.stderr)
        self.objects = m.objects_of(done.stdout)
        os.makedirs(self.path("secrets"))
        for one in m.kinds(self.objects, "Secret"):
            for name, data in one.get("data", {}).items():
                with open(self.path("secrets", name), "wb") as file:
                    file.write(base64.b64decode(data))

    def configs(self, part):
        found = [one for one in m.kinds(self.objects, "ConfigMap")
                 if one["metadata"]["name"] == "culprit-" + part][0]["data"]
        return {name: found[name] for name in (part + ".yaml", "values.yaml")}

    # -- the cluster ------------------------------------------------------------------------------

    def cluster(self):
        for name in ("culprit", NAMESPACE):
            self.server.create_namespace(name)
        for kind in ("ServiceAccount", "ClusterRole", "ClusterRoleBinding"):
            for one in m.kinds(self.objects, kind):
                self.server.apply(one)
        self.server.create("nodes", {"metadata": {"name": NODE, "labels": {"kubernetes.io/hostname": NODE}}})
        self.server.patch("nodes", NODE, {"status": {"conditions": [
            {"type": "Ready", "status": "True", "reason": "KubeletReady",
             "lastHeartbeatTime": now_text(), "lastTransitionTime": now_text()}]}}, part="/status")
        os.makedirs(self.path("account"))
        shutil.copy(self.server.ca, self.path("account", "ca.crt"))
        with open(self.path("account", "token"), "w", encoding="ascii") as file:
            file.write(self.server.token("culprit-gateway", "culprit"))

    def create_pods(self, job, gpus):
        pods = [Pod(job, index, gpus) for index in range(2)]
        for pod in pods:
            pod.uid = self.server.create("pods", pod.manifest(), NAMESPACE)["metadata"]["uid"]
            self.server.patch("pods", pod.name, {"status": {
                "phase": "Running", "hostIP": "10.0.0.7", "startTime": now_text(), "containerStatuses": [
                    {"name": "trainer", "ready": True, "restartCount": 0, "image": "trainer:latest",
                     "imageID": "", "containerID": "containerd://" + pod.container,
                     "state": {"running": {"startedAt": now_text()}}}]}}, NAMESPACE, part="/status")
        return pods

    # -- culprit ----------------------------------------------------------------------------------

    def run(self, folder, part, **more):
        culprit = Culprit(self.binary, self.path(folder), self.configs(part), NODE_NAME=NODE, **more)
        self.running.append(culprit)
        return culprit.start()

    def install(self):
        self.gateway = self.run("gateway", "gateway", POD_NAME="culprit-gateway-0",
                                KUBERNETES_SERVICE_HOST="127.0.0.1",
                                KUBERNETES_SERVICE_PORT=str(self.server.port))
        self.node = self.run("node", "node", HOST_IP="127.0.0.1")

    def sidecars(self, pods):
        """One beside each pod, as its kubelet would start them."""
        for pod in pods:
            folder = self.telemetry(pod)
            os.makedirs(folder)
            with open(os.path.join(folder, "0-placement.jsonl"), "w", encoding="utf-8") as file:
                for rank, gpu in pod.ranks.items():  # what the page of the chart asks of a trainer
                    file.write(json.dumps({"rank": rank, "k8s.node.name": NODE, "k8s.pod.name": pod.name,
                                           "k8s.namespace.name": NAMESPACE,
                                           "UUID": UUID[gpu]}) + "\n")
            ports = dict(zip(("HTTP_PORT", "METRICS_PORT", "HEALTH_PORT"), map(str, free_ports(3))))
            place = self.path("sidecar-" + pod.name)
            self.run(place, "sidecar", JOB_ID=pod.job, TELEMETRY_DIR=folder, CULPRIT_DIR=place,
                     TERMINATION_LOG=os.path.join(place, "termination-log"), **ports)

    def telemetry(self, pod):
        return self.path("kept", pod.job, pod.name)

    def trainer(self, recorded, real, pods):
        python, folder = trainers.torch_python(), os.path.dirname(self.telemetry(pods[0]))
        pod_names = [pod.name for pod in pods]
        if python:
            return trainers.Real(python, real, folder, pod_names)
        return trainers.Recorded(recorded, folder, pod_names)

    # -- faults -----------------------------------------------------------------------------------

    def kernel_says(self, *texts):
        """-> the time of the first"""
        first_ns = time.time_ns()
        for text in texts:
            stamp = trainers.formatted(time.time_ns(), "%Y-%m-%dT%H:%M:%S.%f", 6)
            self.kmsg.write(text)
            with open(self.kernel_log, "a", encoding="utf-8") as file:
                file.write("%s+00:00 %s kernel: %s\n" % (stamp, NODE, text))
        return first_ns

    def verdict_lines(self):
        try:
            with open(self.verdict_path, encoding="utf-8") as file:
                return [json.loads(line) for line in file if line.endswith("\n")]
        except FileNotFoundError:
            return []

    def last(self):
        return {one["id"]: one for one in self.verdict_lines()}

    def wait_for(self, what, holds, fault_ns, patience_s=PATIENCE_S):
        """-> the first line of the gateway that holds; how long it took is printed, in event time checked."""
        limit = time.monotonic() + patience_s
        while True:
            found = next((one for one in self.verdict_lines() if holds(one)), None)
            if found or time.monotonic() > limit:
                break
            time.sleep(0.05)
        if not self.checks.check(found is not None, lambda: "%s: not at the gateway: %s" % (
                what, json.dumps([self.told(one) for one in self.last().values()]))):
            return None
        said = [line for line in self.gateway.lines() if line.get("verdict_id") == found["id"]]
        clock = (parse_ns(said[0]["ts"]) - fault_ns) / 1e9 if said else float("nan")
        seen_ns = int(found["end_time_unix_nano"]) - fault_ns
        print("%-28s %5.1f s after the fault by the clock; its evidence ends %.1f s after it" % (
            what, clock, seen_ns / 1e9), flush=True)
        self.checks.check(seen_ns <= LIMIT_NS, "%s: rests on what came %.1f s after" % (what, seen_ns / 1e9))
        self.checks.equal(verdicts.faults(found), [], what)
        return found

    @staticmethod
    def told(one):
        return [one["pattern"], one["kind"], one.get("job_id"), one["state"], one["headline"],
                ["%s %s %s" % (e["role"], e["kind"], e["name"]) for e in one["entities"]],
                one.get("related"), one.get("attributes", {}).get("culprit.root")]

    def until(self, what, holds, patience_s=PATIENCE_S):
        """Waits for a state of what the gateway has said."""
        limit = time.monotonic() + patience_s
        while not holds():
            if time.monotonic() > limit:
                return self.checks.check(False, "%s: %s" % (what, json.dumps(
                    [self.told(one) for one in self.last().values()], indent=1)))
            time.sleep(0.05)
        return self.checks.check(True, "")

    def stop_sidecars(self):
        for one in list(self.running):
            if one not in (self.gateway, self.node):
                self.checks.equal(one.stop(), 0, one.folder + " stops")
                self.running.remove(one)

    def lost_gpu(self):
        """The GPU of a rank falls off the bus, and the others wait for the rank."""
        pods = self.create_pods("train-hang", (0, 1, 2, 3))
        self.sidecars(pods)
        trainer = self.trainer("sleeping", "sleeping", pods)
        trainer.start()
        trainer.wait_for_fault()
        rank = trainer.rank
        pod = pods[rank // 2]
        fault_ns = self.kernel_says("NVRM: Xid (PCI:%s): 79, pid='<unknown>', name=<unknown>, GPU has fallen "
                                    "off the bus." % PCI[rank][:10])
        self.metrics.xids[rank] = 79
        fault = self.wait_for("lost GPU", lambda one: one["pattern"] == "gpu_fault", fault_ns)
        if fault:
            self.checks.equal((fault.get("job_id"), names(fault, "gpu"), all_names(fault, "node"),
                               all_names(fault, "rank"), all_names(fault, "pod")),
                              (pod.job, ["%s/%s" % (NODE, PCI[rank][:10])], [NODE], [str(rank)],
                               ["%s/%s" % (NAMESPACE, pod.name)]), "what the lost GPU's verdict names")
        hang = self.wait_for("hang", lambda one: one["pattern"] == "nccl_hang" and str(rank) in names(one, "rank"),
                             fault_ns)
        trainer.end()
        if fault and hang:
            self.until("the hang is not the lost GPU's consequence", lambda: (
                fault["id"], "caused_by") in related(self.last()[hang["id"]]))
            self.until("the lost GPU is not the root", lambda: is_root(self.last()[fault["id"]]))
            self.until("the lost GPU is not the only root", lambda: [
                one["id"] for one in self.open_of(pod.job) if is_root(one)] == [fault["id"]])
        self.stop_sidecars()

    def killed(self):
        """The kernel kills a rank for want of memory, while culprit is killed on node and gateway."""
        pods = self.create_pods("train-oom", (1, 3, 0, 3))  # not on the one that was lost
        self.sidecars(pods)
        trainer = self.trainer("host_oom", "sigkill", pods)
        trainer.start()
        trainer.wait_for_fault()
        rank = trainer.rank
        pod = pods[rank // 2]
        fault_ns = self.kernel_says(*[text % {"cgroup": pod.cgroup(), "container": pod.container}
                                      for text in OUT_OF_MEMORY])
        for one in (self.node, self.gateway):
            one.stop(signal.SIGKILL)
            one.start()
        found = self.wait_for("kill for want of memory", lambda one: one["pattern"] == "first_exit" and one["kind"]
                              == "host_oom" and str(rank) in names(one, "rank"), fault_ns)
        if found:
            self.checks.equal((found.get("job_id"), all_names(found, "node"), pod.name in " ".join(
                all_names(found, "pod"))), (pod.job, [NODE], True), "what the killed rank's verdict names")
        trainer.end()
        self.stop_sidecars()

    def link_down(self):
        fault_ns = time.time_ns()
        self.sysfs.count(CARD, "link_downed", 1)
        self.sysfs.state(CARD, "1: DOWN", "2: Polling")
        found = self.wait_for("link that is down", lambda one: one["pattern"] == "fabric_link", fault_ns)
        if found:
            self.checks.equal((names(found, "nic"), all_names(found, "node")), (["%s/%s" % (NODE, CARD_ADDRESS[:10])], [NODE]),
                              "link: %s" % self.told(found))

    def open_of(self, job):
        return [one for one in self.last().values() if one["state"] != "resolved" and one.get("job_id") == job]

    # -- all --------------------------------------------------------------------------------------

    def same_as_kept(self):
        """What the gateway said last, over two kills, is what `run --once` says of what was written."""
        self.checks.equal(self.gateway.stop(), 0, "the gateway stops")
        self.running.remove(self.gateway)
        pods = [dict(one, apiVersion="v1", kind="Pod") for one in self.server.list("pods", NAMESPACE)[0]]
        with open(self.path("kept", "pods.json"), "w", encoding="utf-8") as file:
            json.dump({"apiVersion": "v1", "kind": "PodList", "items": pods}, file)
        for job, patterns in (("train-hang", ("gpu_fault", "nccl_hang")),
                              ("train-oom", ("nccl_hang", "first_exit"))):
            culprit = Culprit(self.binary, self.path("again-" + job), {"again.yaml": json.dumps(self.again(job))})
            done = subprocess.run([self.binary, "run", "--once", *culprit.args], stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, env=environment(), check=False)
            if not self.checks.equal(done.returncode, 0, "run --once: " + done.stderr):
                continue
            with open(self.path("again-" + job, "verdicts.jsonl"), encoding="utf-8") as file:
                again = [json.loads(line) for line in file]
            for pattern in patterns:
                live = [one for one in self.open_of(job) if one["pattern"] == pattern]
                self.checks.equal([blamed(one) for one in live], [blamed(one) for one in again
                                  if one["pattern"] == pattern and one.get("job_id") == job],
                                  "%s: last words of %s" % (job, pattern))

    def again(self, job):
        """All that was kept of one job, as files."""
        return {
            "receivers": {
                "file/ranks": {"include": [self.path("kept", job, "**")], "node": NODE, "job_id": job},
                "file/node": {"include": [self.kernel_log, self.path("kept", "pods.json"),
                                          self.path("kept", "gpus.prom")], "node": NODE}},
            "processors": {"job_filter": {"job_id": "each"}},
            "exporters": {"json": {"path": self.path("again-" + job, "verdicts.jsonl")}},
            "service": {"pipelines": {"jobs": {"receivers": ["file/ranks", "file/node"], "preset": "all",
                                               "exporters": ["json"]}}}}

    def all(self):
        self.render()
        self.cluster()
        self.install()
        with open(self.path("kept", "gpus.prom"), "w", encoding="utf-8") as file:
            file.write(self.metrics.text())
        self.lost_gpu()
        self.killed()
        self.link_down()
        self.same_as_kept()

    def close(self):
        for one in self.running:
            if one.process is not None:
                one.process.kill()
                one.process.wait()


def related(verdict):
    return [(one["id"], one["relation"]) for one in verdict.get("related", [])]


def blamed(verdict):
    return verdict["kind"], [(one["role"], one["kind"], one["name"]) for one in verdict["entities"]
                             if one["role"] != "victim"]


def now_text():
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_ns(text):
    whole, _, rest = text.rstrip("Z").partition(".")
    moment = datetime.strptime(whole, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=timezone.utc)
    return int(moment.timestamp()) * trainers.SECOND + int((rest + "000000000")[:9])


def main():
    reason = unavailable()
    if not reason and yaml is None:
        reason = "not installed: python3-yaml"
    if not reason and not os.access(helm_program(), os.X_OK):
        reason = "no helm in %s (tests/kubernetes/build_helm)" % os.path.dirname(helm_program())
    if reason:
        checks = Checks()
        checks.skip(reason)
        return checks.finish()
    folder = sys.argv[3] if sys.argv[2:3] == ["--keep"] else tempfile.mkdtemp(prefix="culprit-e2e-")
    try:
        with ApiServer(os.path.join(folder, "server")) as server:
            suite = Suite(os.path.abspath(sys.argv[1]), os.path.abspath(folder), server)
            try:
                suite.all()
            finally:
                suite.close()
    finally:
        if sys.argv[2:3] != ["--keep"]:
            shutil.rmtree(folder, ignore_errors=True)
    return suite.checks.finish()


if __name__ == "__main__":
    sys.exit(main())
