# SPDX-License-Identifier: Apache-2.0
"""What all sources write all the time, and the noise in it that is no fault.

Samples of memory and of GPUs take up what an incident changes; a GPU that is gone, and a rank that
has ended, write nothing more.
"""
import random

from case import DEVICE_BYTES, GIB
from cluster import MINUTE, SECOND

NOISE = [
    (6, "IPv6: ADDRCONF(NETDEV_CHANGE): eth0: link becomes ready"),
    (6, "perf: interrupt took too long (2510 > 2500), lowering kernel.perf_event_max_sample_rate "
        "to 79500"),
    (5, 'audit: type=1400 audit(1794992400.123:411): apparmor="STATUS" operation="profile_load" '
        'profile="unconfined" name="docker-default" pid=2211 comm="apparmor_parser"'),
    (6, "EXT4-fs (nvme1n1): mounted filesystem with ordered data mode. Quota mode: none."),
    (6, "cni0: port 3(veth5d1) entered forwarding state"),
    (6, "device veth5d1 entered promiscuous mode"),
    (6, "nvidia-uvm: Loaded the UVM driver, major device number 508."),
    (4, "nvidia-peermem: module license 'Dual BSD/GPL' taints kernel."),
    (6, "mlx5_core 0000:1e:00.0: firmware version: 28.39.3004"),
    (6, "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.90.07  Fri May 31 09:35:42 UTC 2024"),
    (6, "hrtimer: interrupt took 31337 ns"),
]


def add(case):
    dice = random.Random(case.key + "/background")
    if case.cluster.has_rank_map:
        for rank in case.cluster.ranks:
            case.add(case.start + dice.randrange(3 * SECOND), "rank_map", rank.node, rank, False)
    if case.cluster.has_telemetry:
        interval = dice.choice([5, 10, 10, 15]) * SECOND
        base = int(dice.uniform(12, 34) * GIB)
        for rank in case.cluster.ranks:
            add_memory(case, random.Random("%s/memory/%d" % (case.key, rank.number)), rank,
                       interval, base)
    interval = dice.choice([15, 30, 30]) * SECOND
    for node in case.cluster.nodes:
        first = case.start + dice.randrange(interval)
        for gpu in node.gpus:
            add_scrapes(case, random.Random("%s/scrapes/%s" % (case.key, gpu.name)), gpu, first,
                        interval)
    add_kernel_noise(case, dice)
    add_link_noise(case, random.Random(case.key + "/links"))
    if case.cluster.has_kubernetes:
        add_kubernetes(case, dice)


def add_memory(case, dice, rank, interval, base):
    own = int(base * dice.uniform(0.985, 1.015))
    effects = case.memory_effects.get(rank.number, [])
    end = case.rank_end.get(rank.number, case.end)
    time = case.start + dice.randrange(interval)
    before = None
    while time < end:
        used = own + int(base * dice.uniform(-0.004, 0.004))
        for since, more in effects:
            if time >= since:
                used += more(time - since)
        used = min(used, DEVICE_BYTES - dice.randrange(64) * 4096) // 4096 * 4096
        case.add(time, "telemetry", rank.node, (rank, used, used - (before or used), interval),
                 False)
        before = used
        time += interval + int(dice.gauss(0, 0.01) * interval)


# -- GPUs -----------------------------------------------------------------------------------------

def start_fields(case, dice):
    """What a healthy GPU says, and says again; counts are those of its life."""
    fields = {
        "DCGM_FI_DEV_GPU_TEMP": 0, "DCGM_FI_DEV_MEMORY_TEMP": 0, "DCGM_FI_DEV_SM_CLOCK": 0,
        "DCGM_FI_DEV_POWER_USAGE": 0, "DCGM_FI_DEV_GPU_UTIL": 0, "DCGM_FI_DEV_XID_ERRORS": 0,
        "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": dice.choice([0, 0, 0, 2, 41]),
        "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": dice.choice([0, 0, 0, 0, 1]),
        "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS": dice.choice([0, 0, 0, 2]),
        "DCGM_FI_DEV_ROW_REMAP_FAILURE": 0}
    if case.dcgm_fields == "full":
        fields.update({
            "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": 0, "DCGM_FI_DEV_GPU_TEMP_LIMIT": 0,
            "DCGM_FI_DEV_MEM_MAX_OP_TEMP": 95,
            "DCGM_FI_DEV_THERMAL_VIOLATION": dice.choice([0, 0, 5_000_000_000]),
            "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL": dice.choice([0, 0, 0, 3, 17]),
            "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": 0,
            "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL": dice.choice([0, 12, 230]),
            "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL": dice.choice([0, 0, 1]),
            "DCGM_FI_DEV_ROW_REMAP_PENDING": 0,
            "DCGM_FI_DEV_PCIE_LINK_GEN": 5, "DCGM_FI_DEV_PCIE_LINK_WIDTH": 16,
            "DCGM_FI_DEV_PCIE_MAX_LINK_GEN": 5, "DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH": 16})
    return fields


def add_scrapes(case, dice, gpu, first, interval):
    old = start_fields(case, dice)
    rank = case.cluster.ranks[case.cluster.gpus.index(gpu)]
    busy_until = case.rank_end.get(rank.number, case.end)
    effects = case.gpu_effects.get(gpu, [])
    warmth = dice.randrange(56, 68)
    blip = dice.choice([None] * 30 + [case.between(0.1, 0.9)])      # one hot sample is no heat
    time = first
    while time < min(case.end, case.gpu_gone.get(gpu, case.end)):
        fields = dict(old)
        busy = time < busy_until
        fields["DCGM_FI_DEV_GPU_TEMP"] = (warmth if busy else 38) + dice.randrange(4)
        fields["DCGM_FI_DEV_MEMORY_TEMP"] = fields["DCGM_FI_DEV_GPU_TEMP"] + 11
        fields["DCGM_FI_DEV_SM_CLOCK"] = dice.choice([1965, 1965, 1980, 1950]) if busy else 345
        fields["DCGM_FI_DEV_POWER_USAGE"] = dice.randrange(560, 690) if busy else 71
        fields["DCGM_FI_DEV_GPU_UTIL"] = dice.randrange(85, 101) if busy else 0
        if case.dcgm_fields == "full":
            fields["DCGM_FI_DEV_CLOCKS_EVENT_REASONS"] = dice.choice([0, 4, 4]) if busy else 1
            fields["DCGM_FI_DEV_PCIE_LINK_GEN"] = 5 if busy else 1
        for since, change in effects:
            if time >= since:
                change(fields, time)
        if blip is not None and blip < time < blip + interval and case.dcgm_fields == "full":
            fields["DCGM_FI_DEV_CLOCKS_EVENT_REASONS"] |= 0x20
        if case.dcgm_fields == "full":
            fields["DCGM_FI_DEV_GPU_TEMP_LIMIT"] = 87 - fields["DCGM_FI_DEV_GPU_TEMP"]
        else:
            fields = {name: value for name, value in fields.items() if name in old}
        case.add(time, "dcgm", gpu.node, (gpu, fields), False)
        time += interval


# -- Kernel log -----------------------------------------------------------------------------------

def add_kernel_noise(case, dice):
    for node in case.cluster.nodes + case.cluster.others:
        for _ in range(dice.randrange(4, 14)):
            level, text = dice.choice(NOISE)
            case.kernel(case.between(0, 1), node, text, level, False)
    if dice.random() < 0.5:
        rare_aer(case, dice)
    if dice.random() < 0.5:
        app_xid(case, dice)


def rare_aer(case, dice):
    """One or two corrected errors of a link: any link has them."""
    gpu = dice.choice(case.cluster.gpus)
    for _ in range(dice.randrange(1, 3)):
        at, head = case.between(0, 1), "nvidia %s.0: " % gpu.address
        for i, line in enumerate((
                "pcieport %s: AER: Corrected error message received from %s.0" % (gpu.port,
                                                                                 gpu.address),
                head + "PCIe Bus Error: severity=Correctable, type=Data Link Layer, (Receiver ID)",
                head + "  device [10de:2330] error status/mask=00000040/0000a000",
                head + "   [ 6] BadTLP")):
            case.kernel(at + i * 300_000, gpu.node, line, 4, False)


def app_xid(case, dice):
    """A program of somebody else faults, before the job takes the GPU or on another machine."""
    node = dice.choice(case.cluster.others)
    code, text = dice.choice([
        (31, "Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 faulted @ "
             "0x7f1c_2a000000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ"),
        (13, "Graphics Exception: ESR 0x50df30=0x107000e 0x50df34=0x20 0x50df28=0xf81eb60"),
        (43, "Ch 00000010"), (45, "Ch 00000010")])
    case.kernel(case.between(0, 1), node, "NVRM: Xid (PCI:0000:1b:00): %d, pid=%d, name=python, %s"
                % (code, dice.randrange(1000, 90_000), text), 3, False)


def add_link_noise(case, dice):
    """Links bounce when a job starts, and recover from an error now and then."""
    if dice.random() < 0.4:
        gpu, at = dice.choice(case.cluster.gpus), case.start + dice.randrange(1, 20) * SECOND
        for later, state in ((0, "down"), (dice.randrange(1, 8), "up")):
            case.kernel(at + later * SECOND, gpu.node, "mlx5_core %s.0 ens%df0np0: Link %s"
                        % (gpu.nic, gpu.index, state), 6, False)
    if dice.random() < 0.3:
        gpu = dice.choice(case.cluster.gpus)
        case.kernel(case.between(0, 1), gpu.node, "NVRM: Xid (PCI:%s): 145, pid='<unknown>', "
                    "name=<unknown>, RLW_RXPIPE Nonfatal XC0 i0 Link %02d (0x004505c6 0x00000000 "
                    "0x00000000 0x00000000 0x00000000 0x00000000)"
                    % (gpu.address, dice.randrange(18)), 3, False)
    if dice.random() < 0.2:
        node = dice.choice(case.cluster.nodes)
        case.kernel(case.between(0, 1), node, "nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 12028, "
                    "Non-fatal, Link 21 egress non-posted PRIV error", 4, False)


# -- Kubernetes -----------------------------------------------------------------------------------

def add_kubernetes(case, dice):
    for node in case.cluster.nodes:
        pod = case.pod_of(node)
        case.kube_node(case.start, node, telling=False, verb="ADDED")
        case.kube_pod(case.start + 1000, node, pod, telling=False)
        time = case.start + dice.randrange(1, 5 * 60) * SECOND
        pressure = next((fact for fact in case.facts
                         if fact.source == "kube_node" and fact.data["true"]
                         and fact.node is node), None)
        while time < case.end:
            if pressure is None or time < pressure.time:
                case.kube_node(time, node, telling=False)
            time += 5 * MINUTE
        if pressure is not None:        # kubelet keeps a pressure for five minutes
            over = pressure.time + 6 * MINUTE
            if over < case.end:
                case.kube_node(over, node, false={name: over for name in pressure.data["true"]},
                               telling=False)
        if node in case.pod_end:
            case.kube_pod(case.pod_end[node], node, pod, "Succeeded", verb="MODIFIED",
                          telling=False)
    for _ in range(dice.randrange(2, 8)):
        add_other_pod(case, dice)


def add_other_pod(case, dice):
    """Pods that are no business of the job: they finish, are replaced, wait for an image."""
    node = dice.choice(case.cluster.nodes + case.cluster.others)
    uid = "%08x-1111-4000-8000-%012x" % (dice.getrandbits(32), dice.getrandbits(48))
    name = dice.choice(["metrics-%x", "notebook-%x", "backup-%x", "eval-%x"]) % \
        dice.getrandbits(20)
    pod, at = ("tools", name, uid, 0), case.between(0.02, 0.9)
    case.kube_pod(at, node, pod, telling=False)
    reason, message, grave, phase = dice.choice([
        ("Killing", "Stopping container main", False, "Succeeded"),
        ("BackOff", "Back-off pulling image \"registry.example.com/tools:7\"", True, "Pending"),
        ("Pulled", "Container image \"registry.example.com/tools:6\" already present on machine",
         False, "Running"),
        ("Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503", True,
         "Running"),
        ("Preempted", "Preempted by pod 0e0e0e0e-0000-4000-8000-0e0e0e0e0e0e on node x", False,
         "Failed")])
    component = "default-scheduler" if reason == "Preempted" else "kubelet"
    case.kube_event(at + 2 * SECOND, pod[:3], reason, message, component,
                    None if reason == "Preempted" else node, grave=grave, telling=False)
    case.kube_pod(at + 5 * SECOND, node, pod, phase, verb="MODIFIED", telling=False)
