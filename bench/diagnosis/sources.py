# SPDX-License-Identifier: Apache-2.0
"""How each source writes its facts: the files that a collector finds.

A Style says what is usual here: which names nodes have in which source, what their clocks and
zones are, and how the kernel log is framed. `write` turns the facts of a case into lines (path,
time, text) and whole documents (path, bytes).

Formats: PyTorch's Flight Recorder (JSON and pickle), rsyslog and the journal, samples of DCGM and
of AER's counters as JSON lines, `kubectl get --watch -o json --output-watch-events`, stormlog
schema 3.
"""
import json
import pickle
import random
import time as clock

from case import DEVICE_BYTES

NAMED_SOURCES = ["kernel", "dcgm", "telemetry", "kubernetes", "rank_map"]
KUBE_SOURCES = {"kube_event": "events", "kube_node": "nodes", "kube_pod": "pods"}
BITS = ["RxErr", "BadTLP", "BadDLLP", "Rollover", "Timeout", "NonFatalErr", "CorrIntErr",
        "HeaderOF"]


class Line:
    __slots__ = ("time", "path", "text", "end")

    def __init__(self, time, path, text, end="\n"):
        self.time, self.path, self.text, self.end = time, path, text, end


class Style:
    def __init__(self, case):
        dice = random.Random(case.key + "/style")
        self.case = case
        self.long_names = None          # the source that writes FQDNs
        self.clock_ns = {}              # node: how much its clock is ahead
        self.zone_s = 0                 # local time of the kernel log, east of UTC
        self.kernel_form = dice.choice(["syslog", "journal"])
        self.with_uptime = dice.random() < 0.5
        self.pickled = dice.random() < 0.5
        self.tagged = dice.random() < 0.5       # samples of DCGM say so
        self.kernel_line_end = "\n"

    def name(self, source, node):
        return node.name + "." + self.case.cluster.domain if source == self.long_names \
            else node.name

    def stamp(self, fact):
        """What the clock of this fact's node says."""
        return fact.time + fact.shift_ns + self.clock_ns.get(fact.node, 0)


def to_json(value):
    return json.dumps(value, separators=(",", ":"))


def rfc3339(ns, digits=0, suffix="Z"):
    text = clock.strftime("%Y-%m-%dT%H:%M:%S", clock.gmtime(ns // 1_000_000_000))
    if digits:
        text += ".%0*d" % (digits, ns % 1_000_000_000 // 10 ** (9 - digits))
    return text + suffix


# -- Kernel log -----------------------------------------------------------------------------------

def uptime(case, node, ns):
    since = ns - case.start + node.boot_seconds * 1_000_000_000
    return since // 1000


def in_syslog(style, fact, ns, level, text):
    del level
    return "%s %s kernel: %s%s" % (rfc3339(ns, 6, "+00:00"), style.name("kernel", fact.node),
                                   boot_time(style, fact, ns), text)


def boot_time(style, fact, ns):
    if not style.with_uptime:
        return ""
    micros = uptime(style.case, fact.node, ns)
    return "[%5d.%06d] " % (micros // 1_000_000, micros % 1_000_000)


def in_journal(style, fact, ns, level, text):
    micros = uptime(style.case, fact.node, ns)
    return to_json({
        "__CURSOR": "s=5c1;i=%x" % (micros // 1000), "__REALTIME_TIMESTAMP": str(ns // 1000),
        "__MONOTONIC_TIMESTAMP": str(micros), "_BOOT_ID": "%032x" % fact.node.boot_seconds,
        "_TRANSPORT": "kernel", "SYSLOG_FACILITY": "0", "SYSLOG_IDENTIFIER": "kernel",
        "PRIORITY": str(level), "_HOSTNAME": style.name("kernel", fact.node), "MESSAGE": text})


def in_dmesg(style, fact, ns, level, text):
    """dmesg -T: local time without a zone, whole seconds, no name of the machine."""
    del fact, level
    return "[%s] %s" % (clock.strftime("%a %b %e %H:%M:%S %Y", clock.gmtime(
        ns // 1_000_000_000 + style.zone_s)), text)


def in_named_dmesg(style, fact, ns, level, text):
    """The same as a collector passes it on, with the name."""
    return in_dmesg(style, fact, ns, level, "%s kernel: %s" % (style.name("kernel", fact.node),
                                                               text))


def in_container_log(style, fact, ns, level, text):
    """A log agent's container that prints the node's log, as the runtime (CRI) keeps it."""
    return "%s stdout F %s" % (rfc3339(ns + 3_000_000, 9), in_syslog(style, fact, ns, level, text))


def in_rfc5424(style, fact, ns, level, text):
    return "<%d>1 %s %s kernel - - - %s%s" % (
        level, rfc3339(ns, 6), style.name("kernel", fact.node), boot_time(style, fact, ns), text)


def in_short_iso(style, fact, ns, level, text):
    """journalctl -o short-iso."""
    del level
    return "%s %s kernel: %s" % (rfc3339(ns, 0, "+0000"), style.name("kernel", fact.node), text)


def in_container_rfc5424(style, fact, ns, level, text):
    return "%s stderr F %s" % (rfc3339(ns + 3_000_000, 9), in_rfc5424(style, fact, ns, level, text))


KERNEL_FORMS = {"syslog": ("kern.log", in_syslog), "journal": ("kernel-journal.jsonl", in_journal),
                "dmesg": ("dmesg.log", in_dmesg), "named_dmesg": ("dmesg.log", in_named_dmesg),
                "container": ("kern.log", in_container_log), "rfc5424": ("kern.log", in_rfc5424),
                "short_iso": ("kern.log", in_short_iso),
                "container_rfc5424": ("kern.log", in_container_rfc5424)}
FRAMED = ["container", "rfc5424", "short_iso", "container_rfc5424"]


def write_kernel(style, fact):
    name, form = KERNEL_FORMS[style.kernel_form]
    level, text = fact.data
    return fact.node.name + "/" + name, form(style, fact, style.stamp(fact), level, text)


# -- GPUs, counters, ranks ------------------------------------------------------------------------

def write_dcgm(style, fact):
    gpu, fields = fact.data
    cluster = style.case.cluster
    labels = {"source": "dcgm"} if style.tagged else {}
    labels.update({
        "timestamp_ns": style.stamp(fact), "Hostname": style.name("dcgm", fact.node),
        "gpu": str(gpu.index), "UUID": gpu.uuid, "pci_bus_id": "0000" + gpu.address.upper() + ".0",
        "device": "nvidia%d" % gpu.index, "modelName": cluster.model})
    if cluster.has_kubernetes:
        labels.update(namespace=cluster.namespace, pod=gpu.node.pod, container="trainer")
    labels["fields"] = fields
    return fact.node.name + "/dcgm.jsonl", to_json(labels)


def write_aer(style, fact):
    address, errors = fact.data
    shares = dict.fromkeys(BITS, 0)
    shares["RxErr"], shares["BadTLP"] = errors * 3 // 4, errors - errors * 3 // 4
    text = "".join("%s %d\n" % pair for pair in shares.items())
    return fact.node.name + "/aer.jsonl", to_json({
        "source": "sysfs_aer", "timestamp_ns": style.stamp(fact),
        "k8s.node.name": style.name("kernel", fact.node), "pci_bus_id": address + ".0",
        "aer_dev_correctable": text + "TOTAL_ERR_COR %d\n" % errors,
        "aer_dev_nonfatal": "TOTAL_ERR_NONFATAL 0\n", "aer_dev_fatal": "TOTAL_ERR_FATAL 0\n"})


def write_ib(style, fact):
    gpu, values = fact.data
    return fact.node.name + "/ib_counters.jsonl", to_json({
        "source": "ib_counters", "timestamp_ns": style.stamp(fact),
        "k8s.node.name": style.name("kernel", fact.node), "device": "mlx5_%d" % gpu.index,
        "port": 1, "pci_bus_id": gpu.nic + ".0", "state": values["state"],
        "phys_state": values["phys_state"], "link_layer": "InfiniBand",
        "counters": {key: str(value) for key, value in values["counters"].items()}})


def write_rank_map(style, fact):
    rank, cluster = fact.data, style.case.cluster
    place = {"observed_time_ns": style.stamp(fact), "rank": rank.number, "local_rank": rank.local,
             "k8s.node.name": style.name("rank_map", fact.node), "gpu": str(rank.gpu.index),
             "UUID": rank.gpu.uuid, "pci_bus_id": "0000" + rank.gpu.address.upper() + ".0",
             "process.pid": rank.pid}
    if style.case.names_job:
        place = dict({"source": "rank_map", "job_id": cluster.job}, **place)
    if cluster.has_kubernetes:
        place.update({"k8s.namespace.name": cluster.namespace, "k8s.pod.name": fact.node.pod})
    return "rank_map.jsonl", to_json(place)


TELEMETRY = (
    '{"schema_version":3,"session_id":"%s-r%d","timestamp_ns":%d,"event_type":"sample",'
    '"collector":"stormlog.cuda_tracker","sampling_interval_ms":%d,"pid":%d,"host":"%s",'
    '"job_id":"%s","rank":%d,"local_rank":%d,"world_size":%d,"device_id":%d,'
    '"allocator_allocated_bytes":%d,"allocator_reserved_bytes":%d,"allocator_active_bytes":null,'
    '"allocator_inactive_bytes":null,"allocator_change_bytes":%d,"device_used_bytes":%d,'
    '"device_free_bytes":%d,"device_total_bytes":%d,"context":null,"metadata":{}}')


def write_telemetry(style, fact):
    rank, used, change, interval = fact.data
    job = style.case.cluster.job
    text = TELEMETRY % (
        job, rank.number, style.stamp(fact), interval // 1_000_000, rank.pid,
        style.name("telemetry", fact.node), job, rank.number, rank.local,
        len(style.case.cluster.ranks), rank.local, used * 9 // 10, used * 19 // 20,
        change * 9 // 10, used, DEVICE_BYTES - used, DEVICE_BYTES)
    return "%s/telemetry/rank-%03d.jsonl" % (fact.node.name, rank.number), text


PHASE = (
    '{"timestamp_ns":%d,"event_type":"phase_%s","device_used_bytes":1024,"host":"%s",'
    '"session_id":"%s-r%d","job_id":"%s","rank":%d,"local_rank":%d,"world_size":%d,"metadata":'
    '{"phase_scope":{"action":"%s","name":"%s","path":%s,"scope_id":"%s","sequence":%d,'
    '"thread_id":1,"thread_name":"MainThread"}}}')


def write_phase(style, fact):
    """A boundary of a phase, in the older form of telemetry."""
    rank, action, path, sequence = fact.data
    job = style.case.cluster.job
    text = PHASE % (
        style.stamp(fact), action, style.name("telemetry", fact.node), job, rank.number, job,
        rank.number, rank.local, len(style.case.cluster.ranks), action, path[-1], to_json(path),
        "/".join(path), sequence)
    return "%s/telemetry/rank-%03d.jsonl" % (fact.node.name, rank.number), text


def write_rank_log(style, fact):
    """A line of PyTorch in the log of a rank, as a collector forwards it."""
    rank, source_line, text = fact.data
    ns = style.stamp(fact)
    return "%s/ranks.jsonl" % fact.node.name, to_json({
        "source": "app_log", "timestamp_ns": ns, "k8s.node.name": style.name("kernel", fact.node),
        "rank": rank.number, "message": "[rank%d]:[E%s.%09d ProcessGroupNCCL.cpp:%d] %s" % (
            rank.number, clock.strftime("%m%d %H:%M:%S", clock.gmtime(ns // 1_000_000_000)),
            ns % 1_000_000_000, source_line, text)})


# -- Flight Recorder ------------------------------------------------------------------------------

NOT_YET = ("time_discovered_started_ns", "time_discovered_completed_ns")


def dump_as_written(style, fact, pickled):
    """A missing time is 0 in JSON and None in a pickle."""
    rank, dump = fact.data
    ahead = style.clock_ns.get(fact.node, 0)
    entries = []
    for entry in dump["entries"]:
        written = dict(entry, time_created_ns=entry["time_created_ns"] + ahead)
        for key in NOT_YET:
            if entry[key] is not None:
                written[key] = entry[key] + ahead
            elif not pickled:
                written[key] = 0
        entries.append(written)
    status = dump["pg_status"]
    if not pickled:
        status = {name: {key: str(value) for key, value in values.items()}
                  for name, values in status.items()}
    return rank, dict(dump, pg_status=status, entries=entries)


def write_dump(style, fact):
    """(path, bytes)."""
    rank, whole = dump_as_written(style, fact, style.pickled)
    data = pickle.dumps(whole, 2) if style.pickled else to_json(whole).encode("ascii")
    return "%s/dumps/comm_lib_trace_rank_%d" % (fact.node.name, rank.number), data


def write_dump_line(style, fact):
    """A dump that somebody takes now and then, and passes on as a line."""
    rank, whole = dump_as_written(style, fact, False)
    return fact.node.name + "/dumps.jsonl", to_json({
        "source": "fr_dump", "observed_time_ns": style.stamp(fact),
        "k8s.node.name": style.name("kernel", fact.node), "rank": rank.number, "dump": whole})


# -- Kubernetes -----------------------------------------------------------------------------------

def write_kube_event(style, fact):
    data, at = fact.data, rfc3339(style.stamp(fact))
    namespace, name, uid = data["about"]
    if data["kind"] == "Node":
        name = style.name("kubernetes", fact.node)
        uid = name
    source = {"component": data["component"]}
    instance = ""
    if data["component"] == "kubelet" and fact.node is not None:
        instance = source["host"] = style.name("kubernetes", fact.node)
    metadata = {"name": "%s.%s" % (name, data["uid"][:8]), "namespace": namespace or "default",
                "uid": data["uid"], "creationTimestamp": at}
    if data["annotations"]:
        metadata["annotations"] = data["annotations"]
    about = {"kind": data["kind"], "namespace": namespace, "name": name, "uid": uid,
             "apiVersion": "v1"}
    if data["reason"] == "TaintManagerEviction":
        del about["uid"]        # the controller does not write it
    return {"type": "ADDED", "object": {
        "apiVersion": "v1", "kind": "Event", "metadata": metadata, "involvedObject": about,
        "reason": data["reason"], "message": data["message"], "source": source,
        "firstTimestamp": at, "lastTimestamp": at, "count": 1, "type": data["type"],
        "eventTime": None, "reportingComponent": data["component"],
        "reportingInstance": instance}}


CONDITIONS = [("MemoryPressure", "KubeletHasSufficientMemory", "KubeletHasInsufficientMemory"),
              ("DiskPressure", "KubeletHasNoDiskPressure", "KubeletHasDiskPressure"),
              ("PIDPressure", "KubeletHasSufficientPID", "KubeletHasInsufficientPID")]


def write_kube_node(style, fact):
    name, now, data = style.name("kubernetes", fact.node), style.stamp(fact), fact.data
    ahead = now - fact.time
    long_ago = rfc3339(style.case.start - 86_400_000_000_000)
    silent_since = data.get("silent_since")     # the kubelet does not report
    conditions = [{"type": "Ready", "status": "True", "lastHeartbeatTime": rfc3339(now),
                   "lastTransitionTime": long_ago, "reason": "KubeletReady",
                   "message": "kubelet is posting ready status"}]
    if silent_since is not None:
        conditions[0].update(status="Unknown", lastHeartbeatTime=rfc3339(silent_since),
                             lastTransitionTime=rfc3339(now), reason="NodeStatusUnknown",
                             message="Kubelet stopped posting node status.")
    for kind, good, bad in CONDITIONS:
        is_true = kind in data["true"]
        since = data["true"].get(kind, data["false"].get(kind))
        conditions.append({
            "type": kind, "status": "True" if is_true else "False",
            "lastHeartbeatTime": rfc3339(now),
            "lastTransitionTime": long_ago if since is None else rfc3339(since + ahead),
            "reason": bad if is_true else good,
            "message": "kubelet has %s" % (bad if is_true else good)[10:]})
    return {"type": data["verb"], "object": {
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "uid": "%s-uid" % fact.node.name,
                     "resourceVersion": str(now // 1_000_000_000 % 10_000_000),
                     "labels": {"kubernetes.io/hostname": name}},
        "status": {"addresses": [{"type": "InternalIP", "address": fact.node.ip},
                                 {"type": "Hostname", "address": name}],
                   "conditions": conditions}}}


def write_kube_pod(style, fact):
    data, now = fact.data, style.stamp(fact)
    namespace, name, uid, gpus = data["pod"]
    status = {"phase": data["phase"], "hostIP": fact.node.ip,
              "startTime": rfc3339(style.case.start - 120_000_000_000)}
    for key in ("reason", "message"):
        if key in data["status"]:
            status[key] = data["status"][key]
    if "target" in data["status"]:
        reason, at, message = data["status"]["target"]
        if reason == "TerminationByKubelet":    # by the node's clock; others by the controller's
            at += now - fact.time
        status["conditions"] = [{
            "type": "DisruptionTarget", "status": "True", "reason": reason, "message": message,
            "lastTransitionTime": rfc3339(at)}]
    limits = {"limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {}
    return {"type": data["verb"], "object": {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "uid": uid,
                     "resourceVersion": str(now // 1_000_000_000 % 10_000_000)},
        "spec": {"nodeName": style.name("kubernetes", fact.node),
                 "containers": [{"name": "trainer", "resources": limits}]},
        "status": status}}


def write_kube(style, fact):
    form = {"kube_event": write_kube_event, "kube_node": write_kube_node,
            "kube_pod": write_kube_pod}[fact.source]
    return "kubernetes/%s.jsonl" % KUBE_SOURCES[fact.source], to_json(form(style, fact))


# -- Ends of ranks --------------------------------------------------------------------------------

def write_launcher(style, fact):
    return fact.node.name + "/launcher.jsonl", to_json({
        "source": "launcher_log", "timestamp_ns": style.stamp(fact),
        "host.name": style.name("launcher", fact.node), "message": fact.data})


def write_slurm(style, fact):
    """The job's output, as sbatch leaves it: only the end of a job has a time there."""
    del style
    return "slurm-4242.out", fact.data


def write_error_file(style, fact):
    rank, message = fact.data
    stack = "Traceback (most recent call last):\n  File \"train.py\", line 12, in main\n" + message
    return fact.node.name + "/errors.jsonl", to_json({
        "source": "error_file", "observed_time_ns": style.stamp(fact) + 500_000_000,
        "host.name": style.name("error_file", fact.node),
        "path": "/logs/run_1/attempt_0/%d/error.json" % rank.local,
        "document": {"message": {"message": message, "extraInfo": {
            "py_callstack": stack, "timestamp": str(style.stamp(fact) // 1_000_000_000)}}}})


WRITERS = {"kernel": write_kernel, "dcgm": write_dcgm, "aer": write_aer,
           "rank_map": write_rank_map, "telemetry": write_telemetry, "phase": write_phase,
           "rank_log": write_rank_log, "launcher": write_launcher, "slurm": write_slurm,
           "error_file": write_error_file,
           "dump_line": write_dump_line, "ib": write_ib,
           "kube_event": write_kube, "kube_node": write_kube, "kube_pod": write_kube}


def write(case, style):
    """(lines in order of time, documents as (path, bytes))."""
    lines, documents = [], []
    for fact in case.facts:
        if fact.source == "dump":
            documents.append(write_dump(style, fact))
            continue
        path, text = WRITERS[fact.source](style, fact)
        end = style.kernel_line_end if fact.source == "kernel" else "\n"
        lines.append(Line(fact.time, path, text, end))
    return lines, documents
