# SPDX-License-Identifier: Apache-2.0
"""What happens in a hard hour and is no fault: one function each, listed in DECOYS.

Each takes an Hour (scale.py) and changes what its sources come to know. A hard hour holds all of
them, so that what one leaves behind meets the others.
"""
import scale
from case import GIB, MIB
from cluster import MINUTE, SECOND
from exits import API, launcher, sent_signal


def some(hour, of, count):
    return hour.dice.sample(of, min(count, len(of)))


def window(hour, first=0.02, last=0.95, length=60 * SECOND):
    begin = hour.between(first, last)
    return begin, begin + length


# -- The job itself -------------------------------------------------------------------------------

def restart(hour):
    """The scheduler preempts the job's pods; the ranks write a checkpoint and end, and the job is
    started again two minutes later with other processes."""
    dice, cluster = hour.dice, hour.cluster
    at = hour.between(0.45, 0.7)
    again = at + int(dice.uniform(100, 200) * SECOND)
    first = hour.lives[0]
    first.end = at + 20 * SECOND
    hour.pauses.append(scale.Pause("checkpoint", at, first.end))
    hour.lives.append(scale.Life(1, again, hour.end, cluster.ranks))
    hour.true_verdicts.append(("first_exit", "preempted"))
    for node in cluster.nodes:
        pod = hour.pod_of(node)
        new = (pod[0], pod[1], pod[2][:-4] + "ffff", pod[3])
        told = at + dice.randrange(SECOND)
        hour.kube_event(told, pod[:3], "Preempted", "Preempted by pod 7d7d7d7d-0000-4000-8000-"
                        "7d7d7d7d7d7d on node " + node.name, "default-scheduler", telling=False)
        hour.kube_pod(told + SECOND, node, pod, "Running", {
            "target": ("PreemptionByScheduler", told, "default-scheduler: preempting to "
                       "accommodate a higher priority pod")}, "MODIFIED", False)
        launcher(hour, told + SECOND, node, "W1118 00:00:00.000000 880 %s:1010] Received 15 death "
                 "signal, shutting down workers" % API)
        for rank in node.ranks:
            sent_signal(hour, told + SECOND + 20_000_000, rank)
            if dice.random() < 0.05:
                hour.xid(first.end + dice.randrange(SECOND), rank.gpu, 45, "Ch 00000008", rank.pid)
        hour.kube_pod(first.end + 4 * SECOND, node, pod, "Succeeded", verb="DELETED",
                      telling=False)
        hour.kube_pod(again - 50 * SECOND, node, new, "Pending", verb="ADDED", telling=False)
        hour.kube_pod(again - 10 * SECOND, node, new, "Running", verb="MODIFIED", telling=False)
    for gpu in some(hour, cluster.gpus, 12):        # links bounce while nothing runs
        bounce(hour, first.end + dice.randrange(10, 60) * SECOND, gpu)


def pauses(hour):
    """Evaluations and checkpoints; a dump is asked for while all wait for rank 0 to write."""
    dice, asked = hour.dice, False
    at = hour.start + int(dice.uniform(200, 400) * SECOND)
    while at < hour.end - 2 * MINUTE:
        kind = dice.choice(["evaluation", "checkpoint", "checkpoint"])
        until = at + int(dice.uniform(60, 110) if kind == "evaluation"
                         else dice.uniform(46, 55)) * SECOND
        life = hour.life_at(at)
        if life is not None and until < life.end - 30 * SECOND and at > life.start + MINUTE:
            hour.pauses.append(scale.Pause(kind, at, until))
            if kind == "checkpoint" and not asked:
                scale.dump_on_demand(hour, at + 42 * SECOND, 40.0, absent=(0,))
                asked = True
        at = until + int(dice.uniform(300, 600) * SECOND)
    scale.dump_on_demand(hour, hour.start + 130 * SECOND)


def late_joiners(hour):
    """Two nodes pull their image for minutes while the others have begun."""
    for node in some(hour, hour.cluster.nodes, 2):
        came = hour.start + int(hour.dice.uniform(90, 300) * SECOND)
        pod = hour.pod_of(node)
        hour.kube_event(hour.start + 5 * SECOND, pod[:3], "Pulling", "Pulling image \"registry."
                        "example.com/trainer:41\"", node=node, grave=False, telling=False)
        hour.kube_pod(came, node, pod, "Running", verb="MODIFIED", telling=False)
        for rank in node.ranks:
            hour.joins[rank.number] = came + hour.dice.randrange(SECOND)


def memory(hour):
    """All ranks grow alike; some take more for good once, or for a moment now and then."""
    dice, cluster = hour.dice, hour.cluster
    begin, more = hour.between(0.1, 0.3), int(dice.uniform(2, 5) * GIB)
    for rank in cluster.ranks:
        strength = dice.uniform(0.97, 1.03)
        hour.grow_memory(rank, begin, lambda since, strength=strength: int(
            more * strength * min(since / (900 * SECOND), 1)))
    for rank in some(hour, cluster.ranks, 20):
        hour.grow_memory(rank, hour.between(0.1, 0.9), lambda since: 300 * MIB)
    for rank in some(hour, cluster.ranks, 60):
        for _ in range(4):
            hour.grow_memory(rank, hour.between(0.05, 0.95), lambda since: 3 * GIB
                             if since < 15 * SECOND else 0)
    for rank in cluster.ranks[-len(cluster.ranks) // 8:]:       # the last stage holds the logits
        hour.grow_memory(rank, hour.start, lambda since: 6 * GIB)


# -- GPUs and links -------------------------------------------------------------------------------

def corrected_ecc(hour):
    """Corrected errors below the limit, and rows that were remapped for them."""
    for gpu in some(hour, hour.cluster.gpus, 12):
        total = hour.dice.choice([1, 2, 5, 20, 60])
        moments = sorted(hour.between(0.02, 0.98) for _ in range(total))
        hour.change_gpu(gpu, moments[0], lambda fields, time, moments=moments: fields.update(
            DCGM_FI_DEV_ECC_SBE_VOL_TOTAL=fields["DCGM_FI_DEV_ECC_SBE_VOL_TOTAL"] + sum(
                when <= time for when in moments)))
    for gpu in some(hour, hour.cluster.gpus, 3):
        hour.change_gpu(gpu, hour.between(0.1, 0.9), lambda fields, _: fields.update(
            DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS=fields["DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS"]
            + 1))


APPLICATION = {
    13: "Graphics Exception: ESR 0x50df30=0x107000e 0x50df34=0x20 0x50df28=0xf81eb60",
    31: "Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 faulted @ "
        "0x7f1c_2a000000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ",
    43: "Ch 00000010", 45: "Ch 00000010"}


def application_xids(hour):
    """Somebody tries a program of his own on GPUs of the job, and it fails."""
    for gpu in some(hour, hour.cluster.gpus, 20):
        code = hour.dice.choice(list(APPLICATION))
        hour.xid(hour.between(0.02, 0.98), gpu, code, APPLICATION[code],
                 hour.dice.randrange(1000, 30_000), "debug.py")


def within(first, last, **values):
    return lambda fields, time: fields.update(values) if first <= time < last else None


def slow_clocks(hour):
    """Power caps, clocks that somebody set, and a hot sample now and then."""
    dice = hour.dice
    for gpu in some(hour, hour.cluster.gpus, 120):
        first, last = window(hour, length=int(dice.uniform(5, 25) * MINUTE))
        hour.change_gpu(gpu, first, within(
            first, last, DCGM_FI_DEV_CLOCKS_EVENT_REASONS=dice.choice([4, 4, 2, 0x10, 0x100]),
            DCGM_FI_DEV_SM_CLOCK=dice.randrange(1300, 1800), DCGM_FI_DEV_POWER_USAGE=700))
    for gpu in some(hour, hour.cluster.gpus, 30):       # warm, and below the limit
        first, last = window(hour, length=10 * MINUTE)
        hour.change_gpu(gpu, first, within(first, last, DCGM_FI_DEV_GPU_TEMP=82,
                                           DCGM_FI_DEV_MEMORY_TEMP=92))
    for gpu in some(hour, hour.cluster.gpus, 30):
        for share in (0.2, 0.5, 0.8):
            first, last = window(hour, share, share + 0.05, scale.SCRAPE_NS)
            hour.change_gpu(gpu, first, within(first, last, DCGM_FI_DEV_CLOCKS_EVENT_REASONS=0x20))


def bounce(hour, at, gpu):
    for later, state in ((0, "down"), (hour.dice.randrange(1, 8), "up")):
        hour.kernel(at + later * SECOND, gpu.node, "mlx5_core %s.0 ens%df0np0: Link %s"
                    % (gpu.nic, gpu.index, state), 6, False)


def links(hour):
    """Links of other machines go down and up; ports count an error now and then."""
    dice = hour.dice
    for node in hour.cluster.others:
        at = hour.between(0.1, 0.9)
        for later, state in ((0, "down"), (6, "up")):
            hour.kernel(at + later * SECOND, node, "mlx5_core 0000:1e:00.0 ens1f0np0: Link "
                        + state, 6, False)
    for gpu in some(hour, hour.cluster.gpus, 40):
        name = dice.choice(["symbol_error", "port_rcv_errors", "local_link_integrity_errors"])
        hour.port_errors[gpu, name] = [hour.between(0, 1) for _ in range(dice.randrange(1, 9))]


# -- Nodes ----------------------------------------------------------------------------------------

def other_programs(hour):
    """Processes that are none of the job's end badly on its nodes."""
    dice = hour.dice
    for node in some(hour, hour.cluster.nodes, 6):
        pid = dice.randrange(1000, 30_000)
        hour.kernel(hour.between(0.02, 0.95), node, "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask="
                    "(null),cpuset=cri-containerd-5e1.scope,mems_allowed=0-1,oom_memcg=/kubepods."
                    "slice/kubepods-burstable.slice/kubepods-burstable-pod5e1d0e1d_1111_4000_8000_"
                    "5e1d5e1d5e1d.slice,task_memcg=/kubepods.slice/kubepods-burstable.slice/"
                    "kubepods-burstable-pod5e1d0e1d_1111_4000_8000_5e1d5e1d5e1d.slice,"
                    "task=node_exporter,pid=%d,uid=65534" % pid, 6, False)
    for node in some(hour, hour.cluster.nodes, 6):
        hour.kernel(hour.between(0.02, 0.95), node, "fluent-bit[%d]: segfault at 18 ip "
                    "00007f3112c4a9c0 sp 00007ffd51a2b3c0 error 4 in libluajit.so[7f3110000000"
                    "+4a000]" % dice.randrange(1000, 30_000), 6, False)


def other_jobs(hour):
    """Pods of others are evicted, preempted or drained."""
    dice = hour.dice
    for node in hour.cluster.others + some(hour, hour.cluster.nodes, 2):
        uid = "%08x-2222-4000-8000-%012x" % (dice.getrandbits(32), dice.getrandbits(48))
        pod = ("research", "sweep-%x" % dice.getrandbits(20), uid, 0)
        at = hour.between(0.05, 0.9)
        text = "Pod ephemeral local storage usage exceeds the total limit of containers 20Gi. "
        hour.kube_pod(at - MINUTE, node, pod, telling=False)
        hour.kube_event(at, pod[:3], "Evicted", text, node=node, telling=False)
        hour.kube_pod(at + 2 * SECOND, node, pod, "Failed", {
            "reason": "Evicted", "message": text,
            "target": ("TerminationByKubelet", at, text)}, "MODIFIED", False)
        hour.true_verdicts.append(("pod_evicted", "pod_limit", "%s/%s" % pod[:2]))


def kubelets(hour):
    """A kubelet is late, and its node not ready for less than a minute."""
    for node in some(hour, hour.cluster.nodes, 3):
        at = hour.between(0.05, 0.9)
        hour.add(at, "kube_node", node, {"true": {}, "false": {}, "verb": "MODIFIED",
                                         "silent_since": at - 40 * SECOND}, False)
        hour.kube_event(at, ("", node.name, node.name), "NodeNotReady",
                        "Node %s status is now: NodeNotReady" % node.name, "node-controller", node,
                        "Node", grave=False, telling=False)
        hour.kube_node(at + hour.dice.randrange(8, 30) * SECOND, node, telling=False)


# -- Collectors -----------------------------------------------------------------------------------

def clock_steps(hour):
    """The clocks of some nodes are set right, forward or back."""
    for node in some(hour, hour.cluster.nodes, 6):
        hour.clock_steps[node] = (hour.between(0.1, 0.9),
                                  int(hour.dice.choice([-1, 1]) * hour.dice.uniform(0.5, 4)
                                      * SECOND))


def gaps(hour):
    """Exporters and trackers are silent for minutes, a few for good."""
    dice, cluster = hour.dice, hour.cluster
    for node in some(hour, cluster.nodes, 8):
        hour.gaps["dcgm", node] = [window(hour, length=int(dice.uniform(2, 15) * MINUTE))]
    for rank in some(hour, cluster.ranks, 20):
        hour.gaps["telemetry", rank.number] = [window(hour, length=int(dice.uniform(1, 8)
                                                                       * MINUTE))]
    for rank in some(hour, cluster.ranks, 3):
        hour.gaps["telemetry", rank.number] = [(hour.between(0.3, 0.9), hour.end)]


def rotation(hour):
    """The logs of a third of the nodes are rotated in the middle of the hour."""
    for node in some(hour, hour.cluster.nodes, len(hour.cluster.nodes) // 3):
        hour.rotations[node] = hour.between(0.3, 0.7)


REMARKS = [
    "WARNING torch.distributed: [rank%(rank)d] retrying connection to the store, attempt 2 of 30",
    "INFO nccl: node NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0",
    "WARNING trainer: loss spike at step 4410: 2.91, batch skipped",
    "WARNING trainer: grad_norm is inf, scale is halved to 32768",
    "INFO data: worker 3 restarted after timeout of 30 s, 0 samples lost",
    "WARNING data: FileNotFoundError: shard-0118.tar is not there, using a copy",
    "ERROR wandb: Network error (ConnectionError), entering retry loop.",
    "WARNING checkpoint: write of shard %(rank)d failed with ENOSPC on the local disk, writing to "
    "the remote one",
    "UserWarning: The given NumPy array is not writable",
]


def remarks(hour):
    """Programs complain and go on."""
    for rank in some(hour, hour.cluster.ranks, 200):
        hour.remarks.append((hour.between(0.08, 0.4), rank.number,
                             hour.dice.choice(REMARKS) % {"rank": rank.number}))


CAUGHT = """ERROR upload: it failed, next try in 60 s
Traceback (most recent call last):
  File "/app/upload.py", line 61, in push
    self.session.post(url, data)
ConnectionResetError: [Errno 104] Connection reset by peer"""


def caught(hour):
    """A few ranks log an exception that they caught, with its traceback."""
    for rank in some(hour, hour.cluster.ranks, 3):
        hour.remarks.append((hour.between(0.08, 0.4), rank.number, CAUGHT))


DECOYS = (restart, pauses, late_joiners, memory, corrected_ecc, application_xids, slow_clocks,
          links, other_programs, other_jobs, kubelets, clock_steps, gaps, rotation, remarks, caught)
