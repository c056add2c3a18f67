# SPDX-License-Identifier: Apache-2.0
"""What happens: one function a class of incidents, one row in CLASSES.

Each takes a Case, adds facts and effects to it, and says the truth (case.root, case.consequence).
Variants of a class are drawn by the dice of the case, so a class is a mixture.
"""
import fabric as fabric_class
import gpu as gpu_class
import slow as slow_class
import twofold
from case import Case, GIB, MIB
from cluster import MINUTE, SECOND
from exits import exit, stopped  # pylint: disable=redefined-builtin
from hang import Hang, dump_now_and_then, hang_moment

BUS_LOST = "GPU has fallen off the bus."


# -- Memory, hangs --------------------------------------------------------------------------------

def memory(case):
    """One rank's memory grows for good, in the end until the device is full."""
    case.cluster.has_telemetry = True
    rank = leak(case, case.between(0.3, 0.7))
    case.root("memory_first_cause", ["leak"], [["rank", str(rank.number)]])


def leak(case, at, rank=None):
    rank = rank or case.dice.choice(case.cluster.ranks)
    speed = case.dice.uniform(40, 160) * MIB        # a second
    lasts = min(case.dice.uniform(120, 400) * SECOND, case.end - at)
    case.grow_memory(rank, at, lambda since: int(min(since, lasts) / SECOND * speed))
    return rank


def hang(case):
    """A rank does not come to a collective, or calls another one than its peers."""
    hang_told_by(case, "dumps")


def hang_in_logs(case):
    """The same without dumps: the lines of the watchdogs tell of it."""
    hang_told_by(case, "lines")


def hang_told_by(case, told):
    dice, cluster = case.dice, case.cluster
    at = hang_moment(case)
    rank = dice.choice(cluster.ranks)
    variant = dice.choice(["absent", "mesh", "mesh", "cube", "cube", "size", "type"])
    happens = Hang(case, at, variant if variant in ("mesh", "cube") else "flat")
    odd = {"size": ("all_reduce", [[4096, 2048]], [[4096, 2048]]),
           "type": ("broadcast", [[4096, 4096]], [[4096, 4096]])}.get(variant)
    happens.write([rank], odd, told=told)
    kind = {"size": "mismatch_size", "type": "mismatch_type"}.get(variant, "missing_rank")
    case.root("nccl_hang", [kind], [["rank", str(rank.number)]])


def follow_hang(case, at, rank, node):
    """The other ranks wait for one that is stuck or gone since `at`; without one, all for
    all whose network leads through the node."""
    dice = case.dice
    happens = Hang(case, at + int(dice.uniform(0.1, 2.0) * SECOND),
                   dice.choice(["flat", "flat", "mesh", "cube"]))
    if rank is None:
        happens.write([], stalled_on=node)
        case.consequence("nccl_hang", [])
        return
    gone = dice.choice(["stuck", "stuck", "rank", "node"])
    silent = {"stuck": [], "rank": [rank], "node": rank.node.ranks}[gone]
    happens.write([rank] if gone != "node" else rank.node.ranks, silent=silent)
    for dead in silent:
        case.end_rank(dead, at + int(dice.uniform(0, 3) * SECOND))
    case.consequence("nccl_hang", [["rank", str(rank.number)]])


def rank_on(case, gpu):
    return case.cluster.ranks[case.cluster.gpus.index(gpu)]


# -- GPUs -----------------------------------------------------------------------------------------

def fall_off_the_bus(case, at, gpu):
    case.kernel(at - 3_000_000, gpu.node, "NVRM: GPU at PCI:%s: %s" % (gpu.address, gpu.uuid), 6)
    case.xid(at, gpu, 79, BUS_LOST)
    case.kernel(at + 400_000, gpu.node, "NVRM: GPU %s.0: %s" % (gpu.address, BUS_LOST))
    case.kernel(at + 2_000_000, gpu.node, "NVRM: A GPU crash dump has been created. If possible, "
                "please run nvidia-bug-report.sh as root to collect this data.", 4)
    case.xid(at + 700_000_000, gpu, 154, "GPU recovery action changed from 0x0 (None) to 0x2 "
             "(Node Reboot Required)")
    for i in range(case.dice.randrange(1, 4)):
        case.xid(at + int((i + 1) * case.dice.uniform(4, 9) * SECOND), gpu, 79, BUS_LOST)
    case.gpu_gone[gpu] = at


def count(name, step=1):
    return lambda fields, _: fields.update({name: fields[name] + step}) if name in fields else None


def ecc_fault(case, at, gpu, kind):
    """Memory of a GPU fails: lines of the log, and counters with the next scrape."""
    dice, pid = case.dice, rank_on(case, gpu).pid
    later = int(dice.uniform(20, 200) * 1_000_000)
    if kind == "uncorrectable_uncontained":
        for i in range(dice.randrange(2, 4)):
            case.xid(at + i * later, gpu, 95, "Uncontained: LTC TAG (0x2,0x%x). RST: Yes, D-RST: "
                     "No" % i, pid)
        case.xid(at + 4 * later, gpu, 154, "GPU recovery action changed from 0x0 (None) to 0x1 "
                 "(GPU Reset Required)")
    elif kind == "uncorrectable_contained":
        for i in range(dice.randrange(2, 4)):
            case.xid(at + i * later, gpu, 94, "Contained: SM (0x1,0x%x). RST: No, D-RST: No" % i,
                     pid)
        case.xid(at + 4 * later, gpu, 63, "Row Remapper: New row (0x%012x) marked for remapping, "
                 "reset gpu to activate." % dice.getrandbits(40))
        case.xid(at + 5 * later, gpu, 45, "Ch 00000008", pid)
        case.change_gpu(gpu, at, count("DCGM_FI_DEV_ROW_REMAP_PENDING"))
    elif kind == "remap_failed":
        case.xid(at, gpu, 48, "An uncorrectable double bit error (DBE) has been detected on GPU in "
                 "the framebuffer at physical address 0x%x partition 4, subpartition 0."
                 % dice.getrandbits(36))
        for i in range(2):
            case.xid(at + (i + 1) * later, gpu, 64, "Row Remapper: Failed to record the row for "
                     "remapping, all spare rows of the bank are used.")
        case.change_gpu(gpu, at, count("DCGM_FI_DEV_ROW_REMAP_FAILURE"))
    elif kind == "uncorrectable":
        if dice.random() < 0.6:
            for i in range(2):
                case.xid(at + i * later, gpu, 48, "An uncorrectable double bit error (DBE) has "
                         "been detected on GPU in the framebuffer at physical address 0x%x "
                         "partition %d, subpartition 0." % (dice.getrandbits(36), i))
            case.xid(at + 3 * later, gpu, 45, "Ch 00000010", pid)
        else:
            case.dcgm_fields = "full"
    else:
        case.dcgm_fields = "full"
        each = dice.randrange(20, 90)
        case.change_gpu(gpu, at, lambda fields, time: count(
            "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", int((time - at) / MINUTE * each))(fields, time))
        return
    case.change_gpu(gpu, at, count("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"))
    case.change_gpu(gpu, at, count("DCGM_FI_DEV_ECC_DBE_AGG_TOTAL"))


def ecc(case):
    """The memory of a GPU fails."""
    kind = case.dice.choice(["uncorrectable_uncontained", "uncorrectable_contained",
                             "remap_failed", "uncorrectable", "corrected_storm"])
    gpu = case.dice.choice(case.cluster.gpus)
    at = case.between(0.2, 0.35 if kind == "corrected_storm" else 0.8)
    ecc_fault(case, at, gpu, kind)
    case.root("hbm_ecc", [seen_without_log(case, kind, 0.15)], [["gpu", gpu.name]])


def seen_without_log(case, kind, share):
    """In this share of cases nobody may read the kernel log; then only counters tell."""
    if case.dice.random() >= share:
        return kind
    case.has_kernel_log, case.dcgm_fields = False, "full"
    return "uncorrectable" if kind.startswith("uncorrectable") else kind


def thermal(case):
    """A GPU, or the cooling of a node, is too hot for minutes."""
    dice = case.dice
    variant = dice.choice(["hw", "hw", "sw", "memory", "node"])
    node = dice.choice([n for n in case.cluster.nodes if len(n.gpus) >= 4] or case.cluster.nodes)
    gpu = dice.choice(node.gpus)
    if variant == "node" and len(node.gpus) < 4:
        variant = "hw"
    hot = [gpu]
    if variant == "node":
        hot = dice.sample(node.gpus, dice.randrange(max(3, len(node.gpus) // 2 + 1),
                                                    len(node.gpus) + 1))
    at = case.between(0.2, 0.6)
    case.dcgm_fields = "full"
    reasons = {"hw": 0x48, "sw": 0x20, "memory": 0x20, "node": 0x48}[variant]
    clock = dice.randrange(900, 1400)
    for each in hot:
        heat(case, each, at + int(dice.uniform(0, 60) * SECOND), reasons, clock,
             variant == "memory")
    kind = {"hw": "hw_thermal", "sw": "sw_thermal", "memory": "memory_thermal",
            "node": "node_cooling"}[variant]
    who = [["node", node.name]] if variant == "node" else [["gpu", gpu.name]]
    case.root("thermal_throttle", [kind], who, [["gpu", each.name] for each in hot])


def heat(case, gpu, at, reasons, clock, in_memory):
    jitter = case.dice.randrange(1, 5)

    def change(fields, time):
        lost = (time - at) * 4 // 10
        fields["DCGM_FI_DEV_CLOCKS_EVENT_REASONS"] = reasons
        fields["DCGM_FI_DEV_SM_CLOCK"] = clock + time // SECOND % jitter * 15
        fields["DCGM_FI_DEV_THERMAL_VIOLATION"] += lost
        if in_memory:
            fields["DCGM_FI_DEV_MEMORY_TEMP"] = 97 + jitter
        else:
            fields["DCGM_FI_DEV_GPU_TEMP"] = 86 + jitter
            fields["DCGM_FI_DEV_MEMORY_TEMP"] = min(88 + jitter, 94)
    case.change_gpu(gpu, at, change)


# -- PCI Express ----------------------------------------------------------------------------------

def report_aer(case, at, node, device, port, severity, layer, bit, status, driver, vendor):
    """A report as the kernel writes it: the port, the device, the bits that are set."""
    grave = severity != "Corrected"
    level = 3 if grave else 4
    port_word = severity.replace("Uncorrected", "Uncorrectable").replace("Corrected",
                                                                         "Correctable")
    head = "%s %s.0: " % (driver, device)
    lines = ["pcieport %s: AER: %s error message received from %s.0" % (port, port_word, device),
             head + "PCIe Bus Error: severity=%s, type=%s, (Receiver ID)" % (port_word if grave
                                                                             else "Correctable",
                                                                             layer),
             head + "  device [%s] error status/mask=%08x/%08x" % (vendor, 1 << status,
                                                                   0 if grave else 0xa000),
             head + "   [%2d] %-22s (First)" % (status, bit)]
    for i, line in enumerate(lines):
        case.kernel(at + i * 300_000, node, line, level, grave)


def fatal_aer(case, at, gpu):
    """The link of a GPU fails for good; the driver loses the GPU."""
    if case.dice.random() < 0.15:       # the device can no longer be asked what it was
        case.kernel(at, gpu.node, "pcieport %s: AER: Uncorrectable (Fatal) error message received "
                    "from %s.0 (no details found)" % (gpu.port, gpu.address))
        fall_off_the_bus(case, at + int(case.dice.uniform(0.2, 4) * SECOND), gpu)
        return
    bit, status, layer = case.dice.choice([("DLP", 4, "Data Link Layer"),
                                           ("MalfTLP", 18, "Transaction Layer"),
                                           ("SDES", 5, "Data Link Layer")])
    report_aer(case, at, gpu.node, gpu.address, gpu.port, "Uncorrectable (Fatal)", layer, bit,
               status, "nvidia", "10de:2330")
    case.kernel(at + 40_000_000, gpu.node, "nvidia %s.0: AER: can't recover (no error_detected "
                "callback)" % gpu.address)
    case.kernel(at + 900_000_000, gpu.node, "pcieport %s: AER: device recovery failed" % gpu.port)
    if case.dice.random() < 0.8:
        fall_off_the_bus(case, at + int(case.dice.uniform(0.9, 4) * SECOND), gpu)


def aer(case):
    """The link of a GPU or a network adapter fails or errs too often."""
    dice = case.dice
    variant = dice.choice(["fatal", "nonfatal", "storm", "storm", "degraded"])
    gpu = dice.choice(case.cluster.gpus)
    at = case.between(0.25, 0.6)
    case.begins(at)
    name, kind = ["gpu", gpu.name], "uncorrectable_" + variant
    if variant == "fatal":
        fatal_aer(case, at, gpu)
    elif variant == "nonfatal":
        nic = dice.random() < 0.5
        device = gpu.nic if nic else gpu.address
        port = gpu.port if not nic else "%s%02x:01.0" % (device[:5], int(device[5:7], 16) - 1)
        if nic:
            name = ["nic", gpu.node.name + "/" + device + ".0"]
        driver, vendor = ("mlx5_core", "15b3:1021") if nic else ("nvidia", "10de:2330")
        for i in range(dice.randrange(1, 3)):
            report_aer(case, at + i * 20 * SECOND, gpu.node, device, port,
                       "Uncorrectable (Non-Fatal)", "Transaction Layer", "CmpltTO", 14, driver,
                       vendor)
            case.kernel(at + i * 20 * SECOND + 200_000_000, gpu.node,
                        "pcieport %s: AER: device recovery successful" % port, 6)
    elif variant == "storm":
        kind = "correctable_storm"
        storm(case, gpu, at)
    else:
        kind = "link_degraded"
        case.dcgm_fields = "full"
        width = dice.choice([4, 8])
        case.change_gpu(gpu, at, lambda fields, _: fields.update(DCGM_FI_DEV_PCIE_LINK_WIDTH=width))
    case.root("pcie_aer", [kind], [name])


def storm(case, gpu, at):
    """Hundreds of corrected errors a minute: in the counters all, in the log a few."""
    dice, each = case.dice, case.dice.randrange(80, 500)
    by = dice.choice(["sysfs", "dcgm", "both"])
    if by != "sysfs":
        case.dcgm_fields = "full"
        case.change_gpu(gpu, at, lambda fields, time: count(
            "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", int((time - at) / MINUTE * each))(fields, time))
    if by != "dcgm":
        time = case.start + dice.randrange(30 * SECOND)
        while time < case.end:
            errors = max(0, int((time - at) / MINUTE * each))
            case.add(time, "aer", gpu.node, (gpu.address, errors))
            time += 30 * SECOND
    time = at
    while time < case.end:
        report_aer(case, time, gpu.node, gpu.address, gpu.port, "Corrected", "Physical Layer",
                   "RxErr", 0, "nvidia", "10de:2330")
        time += int(dice.uniform(10, 40) * SECOND)


# -- Kubernetes -----------------------------------------------------------------------------------

def evict(case, at, node, message, starved=None):
    """The kubelet evicts the job's pod of a node; its ranks end."""
    pod = case.pod_of(node)
    notes = {"starved_resource": starved, "offending_containers": "trainer"} if starved else None
    case.kube_event(at, pod[:3], "Evicted", message, node=node, annotations=notes)
    case.kube_event(at + 30_000_000, pod[:3], "Killing", "Stopping container trainer", node=node,
                    grave=False)
    case.kube_pod(at + 1500 * 1_000_000, node, pod, "Failed", {
        "reason": "Evicted", "message": message, "target": ("TerminationByKubelet", at, message)},
        "MODIFIED")
    for rank in node.ranks:
        case.end_rank(rank, at + int(case.dice.uniform(0.5, 3) * SECOND))


def eviction(case):
    """A node is short of something, or a pod passes its own limit: the pod is evicted."""
    dice, cluster = case.dice, case.cluster
    cluster.has_kubernetes = True
    node = dice.choice(cluster.nodes)
    at = hang_moment(case, 0.2, 0.6)
    case.begins(at)
    variant = dice.choice(["memory", "memory", "disk", "own"])
    if variant == "own":
        evict(case, at, node, dice.choice([
            "Pod ephemeral local storage usage exceeds the total limit of containers 200Gi. ",
            "Container trainer exceeded its local ephemeral storage limit \"200Gi\". ",
            "Usage of EmptyDir volume \"cache\" exceeds the limit \"100Gi\". "]))
        case.root("pod_evicted", ["pod_limit"],
                  [["pod", "%s/%s" % (cluster.namespace, node.pod)]])
    else:
        condition, message, starved = {
            "memory": ("MemoryPressure", "The node was low on resource: memory. Threshold "
                       "quantity: 100Mi, available: 64816Ki. Container trainer was using 212Gi, "
                       "request is 200Gi, has larger consumption of memory. ", "memory"),
            "disk": ("DiskPressure", "The node was low on resource: ephemeral-storage. Threshold "
                     "quantity: 96Gi, available: 91Gi. Container trainer was using 410Gi, request "
                     "is 0, has larger consumption of ephemeral-storage. ", "ephemeral-storage"),
        }[variant]
        if dice.random() < 0.8:
            since = at - int(dice.uniform(2, 60) * SECOND)
            case.kube_node(since + 200_000_000, node, {condition: since})
            case.kube_event(since, ("", node.name, node.name), "EvictionThresholdMet",
                            "Attempting to reclaim " + starved, node=node, kind="Node")
        evict(case, at, node, message, starved)
        case.root("pod_evicted", ["node_pressure"], [["node", node.name]])
    if dice.random() < 0.4:
        wait_for_pod(case, at, node)


def wait_for_pod(case, at, node):
    happens = Hang(case, at + int(case.dice.uniform(0.5, 2.5) * SECOND), "flat")
    happens.write(node.ranks, silent=node.ranks)
    case.consequence("nccl_hang", [["rank", str(node.ranks[0].number)]])


def taint(case, at, node):
    """The node is tainted, and its pod deleted after a while."""
    pod = case.pod_of(node)
    case.cluster.has_kubernetes = True
    case.kube_event(at, pod[:3], "TaintManagerEviction", "Marking for deletion Pod %s/%s"
                    % pod[:2], "taint-eviction-controller", grave=False)
    case.kube_pod(at + 900_000_000, node, pod, "Running", {
        "target": ("DeletionByTaintManager", at, "Taint manager: deleting due to NoExecute taint")},
        "MODIFIED")
    case.kube_pod(at + 32 * SECOND, node, pod, "Failed", {
        "target": ("DeletionByTaintManager", at, "Taint manager: deleting due to NoExecute taint")},
        "DELETED")


def fail_gpu(case, at, gpu):
    """A fault of the GPU that the driver tells of by Xids only. The code of it."""
    code = case.dice.choice([79, 79, 119, 62])
    if code == 79:
        fall_off_the_bus(case, at, gpu)
    else:
        text = {119: "Timeout after 6s of waiting for RPC response from GPU0 GSP! Expected "
                "function 76 (GSP_RM_CONTROL) (0x20802002 0x8).",
                62: "3edc(2d44) 00000000 00000000"}[code]
        for i in range(case.dice.randrange(2, 5)):
            case.xid(at + i * 7 * SECOND, gpu, code, text,
                     rank_on(case, gpu).pid if code == 119 else None)
    return code


def xid_eviction(case):
    """A GPU fails, and minutes later Kubernetes takes the pods off its node."""
    dice, gpu = case.dice, case.dice.choice(case.cluster.gpus)
    at = case.between(0.15, 0.4)
    gone = at + int(dice.uniform(20, min(360, (case.end - at) / SECOND - 60)) * SECOND)
    if fail_gpu(case, at, gpu) != 79 and gone > at + MINUTE and dice.random() < 0.4:
        case.has_kernel_log = False     # DCGM tells the code as well
    taint(case, gone, gpu.node)
    case.begins(gone)
    for rank in gpu.node.ranks:
        case.end_rank(rank, gone)
    case.root("xid_correlation", ["xid_then_eviction"], [["gpu", gpu.name]],
              [["node", gpu.node.name]])


# -- Several symptoms -----------------------------------------------------------------------------

def cascade(case):
    """One fault with a hang behind it, and mostly an eviction behind that."""
    dice, gpu = case.dice, case.dice.choice(case.cluster.gpus)
    at = hang_moment(case, 0.1, 0.4)
    cause = dice.choice(["link", "network adapter", "memory of the GPU", "xid", "leak"])
    rank, evicted = rank_on(case, gpu), dice.random() < 0.5
    if cause == "link":
        fatal_aer(case, at, gpu)
        case.root("pcie_aer", ["uncorrectable_fatal"], [["gpu", gpu.name]])
    elif cause == "network adapter":
        rank, evicted = None, False
        port = "%s%02x:01.0" % (gpu.nic[:5], int(gpu.nic[5:7], 16) - 1)
        report_aer(case, at, gpu.node, gpu.nic, port, "Uncorrectable (Fatal)", "Data Link Layer",
                   "SDES", 5, "mlx5_core", "15b3:1021")
        case.kernel(at + 900_000_000, gpu.node, "pcieport %s: AER: device recovery failed" % port)
        case.root("pcie_aer", ["uncorrectable_fatal"],
                  [["nic", "%s/%s.0" % (gpu.node.name, gpu.nic)]])
    elif cause == "memory of the GPU":
        kind = "uncorrectable_uncontained"
        ecc_fault(case, at, gpu, kind)
        case.root("hbm_ecc", [seen_without_log(case, kind, 0.2)], [["gpu", gpu.name]])
    elif cause == "xid":
        fail_gpu(case, at, gpu)
        evicted = True
        case.root("xid_correlation", ["xid_then_eviction"], [["gpu", gpu.name]],
                  [["node", gpu.node.name]])
    else:
        case.cluster.has_telemetry = True
        at = case.between(0.25, 0.4)
        rank, evicted = leak(case, at), False
        at += int(min(dice.uniform(150, 300) * SECOND, (case.end - at) // 2))
        case.root("memory_first_cause", ["leak"], [["rank", str(rank.number)]])
    follow_hang(case, at, rank, gpu.node)
    if evicted:
        gone = at + int(dice.uniform(30, min(330, (case.end - at) / SECOND - 60)) * SECOND)
        taint(case, gone, gpu.node)
        if cause != "xid":
            case.consequence("xid_correlation", [["gpu", gpu.name]])


def healthy(case):
    """Nothing broke. background.py adds what a careless reader would take for a fault."""
    dice = case.dice
    if dice.random() < 0.4:         # all ranks grow alike, and stay
        at, more = case.between(0.3, 0.6), int(dice.uniform(3, 8) * GIB)
        for rank in case.cluster.ranks:
            strength = dice.uniform(0.97, 1.03)
            case.grow_memory(rank, at, lambda since, strength=strength: int(
                more * strength * min(since / (40 * SECOND), 1)))
    if dice.random() < 0.4:
        dump_now_and_then(case)
    if dice.random() < 0.3:         # the job ends well before the sources do
        at = case.between(0.8, 0.95)
        for rank in case.cluster.ranks:
            case.end_rank(rank, at + dice.randrange(SECOND))
        for node in case.cluster.nodes:
            case.pod_end[node] = at + 3 * SECOND
    if dice.random() < 0.4:
        slow_class.healthy_steps(case)


CLASSES = {row.__name__: row for row in (
    memory, hang, hang_in_logs, ecc, thermal, aer, eviction, xid_eviction, cascade, exit, stopped,
    gpu_class.gpu, fabric_class.fabric, slow_class.slow, twofold.two, healthy)}


def make(kind, number, seed):
    case = Case(kind, number, seed)
    CLASSES[kind](case)
    case.close()
    return case
