# SPDX-License-Identifier: Apache-2.0
"""A link of the fabric fails: the class `fabric`."""
import incidents
from cluster import MINUTE, SECOND
from hang import hang_moment

INTERVAL = 30 * SECOND
COUNTERS = {"link_downed": 1, "symbol_error": 3, "port_rcv_errors": 0, "link_error_recovery": 0,
            "local_link_integrity_errors": 0}
BEFORE_START = 20 * SECOND


def fabric(case):
    """A port goes down, flaps or errs, or NVLink or a switch of it fails."""
    dice, broken = case.dice, case.dice.choice(case.cluster.gpus)
    at = hang_moment(case, 0.2, 0.5)
    variant = dice.choice(["port", "carrier", "card", "flapping", "errors", "nvlink", "switch"])
    case.begins(at)
    kind, who, also = VARIANTS[variant](case, at, broken)
    bounce(case)
    case.root("fabric_link", [kind], [who], also)
    if kind in ("link_down", "nvlink_error", "nvswitch_error") and dice.random() < 0.5:
        incidents.follow_hang(case, at + SECOND, None, broken.node)


def bounce(case):
    """A link of another node goes down for a moment when the job starts: no fault."""
    node = case.dice.choice(case.cluster.others)
    line(case, case.start + BEFORE_START, node, "0000:1e:00", 0, "Link down")
    line(case, case.start + BEFORE_START + 3 * SECOND, node, "0000:1e:00", 0, "Link up")


def line(case, at, node, address, index, text):
    case.kernel(at, node, "mlx5_core %s.0 ens%df0np0: %s" % (address, index, text), 6)


def card(gpu):
    return ["nic", gpu.node.name + "/" + gpu.nic]


def sample(case, gpu, change):
    """Samples of all cards of the node; `change(time)` is what differs at this one."""
    time = case.start + case.dice.randrange(INTERVAL)
    while time < case.end:
        for each in gpu.node.gpus:
            values = {"state": "4: ACTIVE", "phys_state": "5: LinkUp", "counters": dict(COUNTERS)}
            for key, value in (change(time) if each is gpu else {}).items():
                if key in values:
                    values[key] = value
                else:
                    values["counters"][key] = value
            case.add(time, "ib", gpu.node, (each, values))
        time += INTERVAL


def port(case, at, gpu):
    """An InfiniBand port goes down: only its state and counters say so."""
    sample(case, gpu, lambda time: {} if time < at else {
        "state": "1: DOWN", "phys_state": "2: Polling", "link_downed": 2})
    return "link_down", card(gpu), []


def carrier(case, at, gpu):
    """The kernel log says it; in some cases the link comes back after a minute."""
    line(case, at, gpu.node, gpu.nic, gpu.index, "Link down")
    if case.dice.random() < 0.4:
        line(case, at + MINUTE, gpu.node, gpu.nic, gpu.index, "Link up")
    return "link_down", card(gpu), []


def failing_card(case, at, gpu):
    """The card itself does not answer any more."""
    head = "mlx5_core %s.0: " % gpu.nic
    case.kernel(at, gpu.node, head + "poll_health:840:(pid 0): device's health compromised - "
                "reached miss count")
    case.kernel(at + SECOND, gpu.node, head + "print_health_info:430:(pid 0): Health issue "
                "observed, unrecoverable hardware error, severity(3) ERROR:")
    return "link_down", card(gpu), []


def flapping(case, at, gpu):
    for i in range(case.dice.randrange(3, 6)):
        down = at + i * 25 * SECOND
        line(case, down, gpu.node, gpu.nic, gpu.index, "Link down")
        line(case, down + 4 * SECOND, gpu.node, gpu.nic, gpu.index, "Link up")
    return "link_flapping", card(gpu), []


def errors(case, at, gpu):
    each = case.dice.randrange(60, 20_000)
    sample(case, gpu, lambda time: {"symbol_error": min(
        65535, 3 + max(0, int((time - at) / MINUTE * each)))})
    return "link_errors", card(gpu), []


def nvlink(case, at, gpu):
    link = case.dice.randrange(18)
    if case.dice.random() < 0.5:
        case.xid(at, gpu, 74, "NVLink: fatal error detected on link %d(0x10000, 0x0, 0x0, 0x0, "
                 "0x0, 0x0, 0x0)" % link)
    else:
        case.xid(at, gpu, 149, "NETIR_LINK_EVT Fatal   XC0 i0 Link %02d (0x004505c6 0x00000000 "
                 "0x00000000 0x00000000 0x00000000 0x00000000)" % link)
    return "nvlink_error", ["gpu", gpu.name], []


def switch(case, at, gpu):
    case.kernel(at, gpu.node, "nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 20034, Fatal, Link 21 "
                "LTSSM Fault Up")
    case.kernel(at + 1_000_000, gpu.node, "nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 20034, "
                "Severity 1 Engine instance 21 Sub-engine instance 00")
    for i, each in enumerate(gpu.node.gpus[:2]):
        case.xid(at + (i + 1) * 200_000_000, each, 74, "NVLink: fatal error detected on link 9"
                 "(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)")
    return "nvswitch_error", ["pci_device", gpu.node.name + "/0000:05:00"], []


VARIANTS = {"port": port, "carrier": carrier, "card": failing_card, "flapping": flapping,
            "errors": errors, "nvlink": nvlink, "switch": switch}
