# SPDX-License-Identifier: Apache-2.0
"""Two faults at once that have nothing to do with one another: the class `two`.

In one job they strike different nodes, and at most one of them stops the job; or each strikes a
job of its own, in the same half hour and the same input. Both are roots, and neither explains the
other.
"""
import exits
import fabric
import gpu as gpu_class
import incidents
from case import Case
from cluster import Cluster, SECOND
from hang import Hang, hang_moment


# -- One job: what each fault does to a GPU and its rank --------------------------------------------

def hot(case, gpu):
    case.dcgm_fields = "full"
    incidents.heat(case, gpu, case.between(0.2, 0.5), 0x48, case.dice.randrange(900, 1400), False)
    case.root("thermal_throttle", ["hw_thermal"], [["gpu", gpu.name]])


def corrected(case, gpu):
    incidents.ecc_fault(case, case.between(0.2, 0.35), gpu, "corrected_storm")
    case.root("hbm_ecc", ["corrected_storm"], [["gpu", gpu.name]])


def link(case, gpu):
    incidents.storm(case, gpu, case.between(0.25, 0.6))
    case.root("pcie_aer", ["correctable_storm"], [["gpu", gpu.name]])


def flaps(case, gpu):
    kind, who, _ = fabric.flapping(case, case.between(0.2, 0.6), gpu)
    case.root("fabric_link", [kind], [who])


def grows(case, gpu):
    case.cluster.has_telemetry = True
    rank = incidents.rank_on(case, gpu)
    incidents.leak(case, case.between(0.3, 0.5), rank)
    case.root("memory_first_cause", ["leak"], [["rank", str(rank.number)]])


def uncontained(case, gpu):
    incidents.ecc_fault(case, case.between(0.2, 0.8), gpu, "uncorrectable_uncontained")
    case.root("hbm_ecc", ["uncorrectable_uncontained"], [["gpu", gpu.name]])


def lost(case, gpu):
    kind = gpu_class.die(case, case.between(0.2, 0.8), gpu, "lost")
    case.root("gpu_fault", [kind], [["gpu", gpu.name]])


def hangs(case, gpu):
    rank = incidents.rank_on(case, gpu)
    Hang(case, hang_moment(case), "flat").write([rank])
    case.root("nccl_hang", ["missing_rank"], [["rank", str(rank.number)]])


def raises(case, gpu):
    rank, at = incidents.rank_on(case, gpu), case.between(0.6, 0.8)
    exits.raises(case, at, rank, case.dice.choice(exits.RAISED))
    exits.end_others(case, at + SECOND // 20, rank)
    for other in case.cluster.ranks:
        case.end_rank(other, at + (0 if other is rank else SECOND))
    case.root("first_exit", ["exception"], [["rank", str(rank.number)]],
              [["node", rank.node.name]])


GO_ON = [hot, corrected, link, flaps, grows]
STOP = [uncontained, lost, hangs, raises]


def in_one_job(case):
    dice = case.dice
    first = dice.choice(GO_ON)
    second = dice.choice([fault for fault in GO_ON if fault is not first] + STOP)
    for fault, node in zip((first, second), dice.sample(case.cluster.nodes, 2)):
        fault(case, dice.choice(node.gpus))


# -- Two jobs ---------------------------------------------------------------------------------------

def second_job(case):
    """A job on other nodes, at the same time; names of nodes and addresses are its own."""
    other = Case(case.kind + "/beside", case.number, case.key, length=case.length)
    other.start, other.end = case.start, case.end
    taken = {node.name for node in case.cluster.nodes}
    for attempt in range(100):
        other.cluster = Cluster("%s/cluster/%d" % (other.key, attempt))
        if not taken & {node.name for node in other.cluster.nodes}:
            break
    for node in other.cluster.nodes + other.cluster.others:
        node.ip = node.ip.replace("10.40.", "10.41.")
    for node in other.cluster.others:
        node.name = node.name.replace("login", "head")
    return other


def in_two_jobs(case):
    other = second_job(case)
    for each in (case, other):
        incidents.CLASSES[each.dice.choice(OF_ONE_JOB)](each)
    case.add_job(other)


OF_ONE_JOB = ["memory", "hang", "hang_in_logs", "ecc", "thermal", "aer", "eviction",
              "xid_eviction", "exit", "gpu", "fabric"]


def two(case):
    """Two faults in one job on different nodes, or one in each of two jobs."""
    (in_one_job if case.dice.random() < 0.5 else in_two_jobs)(case)
