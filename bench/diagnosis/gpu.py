# SPDX-License-Identifier: Apache-2.0
"""A GPU dies, and nobody takes its pod away: the class `gpu`."""
import incidents
from cluster import SECOND
from hang import hang_moment

TEXTS = {119: "Timeout after 6s of waiting for RPC response from GPU0 GSP! Expected function 76 "
              "(GSP_RM_CONTROL) (0x20802002 0x8).",
         62: "3edc(2d44) 00000000 00000000",
         109: "Ch 00000008, errorString CTX SWITCH TIMEOUT, Info 0x3c046"}


def gpu(case):
    """A GPU falls off the bus or stops to answer; in some cases the ranks then wait."""
    dice, broken = case.dice, case.dice.choice(case.cluster.gpus)
    at = hang_moment(case, 0.15, 0.6)
    variant = dice.choice(["lost", "lost", "lines", "errors", "then_lost", "metric"])
    case.begins(at)
    if dice.random() < 0.5:             # what a program did before is no part of it
        case.xid(at - 400 * SECOND, broken, 31, "Ch 00000008, intr 00000000. MMU Fault: ENGINE "
                 "GRAPHICS GPCCLIENT_T1_0 faulted @ 0x7f1c_2a000000.",
                 incidents.rank_on(case, broken).pid)
    kind = die(case, at, broken, variant)
    case.root("gpu_fault", [kind], [["gpu", broken.name]])
    if dice.random() < 0.6:
        incidents.follow_hang(case, at, incidents.rank_on(case, broken), broken.node)


def die(case, at, broken, variant):
    """The kind that is right."""
    if variant == "lost":
        incidents.fall_off_the_bus(case, at, broken)
        return "gpu_lost"
    if variant == "lines":              # without a code
        for i, text in enumerate(("NVRM: The NVIDIA GPU %s.0" % broken.address,
                                  "NVRM: (PCI ID: 10de:2330) installed in this system has",
                                  "NVRM: fallen off the bus and is not responding to commands.")):
            case.kernel(at + i * 1000, broken.node, text)
        case.gpu_gone[broken] = at
        return "gpu_lost"
    code = case.dice.choice(list(TEXTS))
    if variant == "metric":
        case.has_kernel_log = False
    for i in range(case.dice.randrange(1, 4)):
        case.xid(at + i * 7 * SECOND, broken, code, TEXTS[code],
                 incidents.rank_on(case, broken).pid)
    if variant != "then_lost":
        return "gpu_error"
    incidents.fall_off_the_bus(case, at + 40 * SECOND, broken)
    return "gpu_lost"
