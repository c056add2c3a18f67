# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own analyzer of Flight Recorder dumps (torch.distributed.flight_recorder), as a peer.

It is Python without anything of torch around it, so its folder of the wheel is enough; `install`
takes it out of the wheel with the fewest bytes. Where torch is installed, that one is used.
"""
import glob
import os
import re
import subprocess
import sys
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "peers"))
from install import Missing, Peer, said  # noqa: E402

VERSION = "2.15.0"
WHEEL_PLATFORM = "macosx_14_0_arm64"        # 139 MB; those for Linux hold CUDA
MODULE = "torch.distributed.flight_recorder.fr_trace"
TABULATE = "tabulate==0.9.0"                # it prints tables of coalesced operations with it
HOW = "bench/diagnosis/compare --install gets it from PyPI (139 MB)"
TIMEOUT_S = 120

# What it says of ranks: of a group, below a line that names it; and of dumps that are not there.
GROUP = re.compile(r"^group info: (.*)$")
OF_GROUP = [re.compile(r"^missing ranks: \{([0-9, ]+)\}"), re.compile(r"Culprit rank (\d+);")]
NO_DUMP = re.compile(r"we missed FR dumps from ranks \(\{([0-9, ]+)\}\)")


def find(work):
    """The peer that is there; raises Missing."""
    folder = os.path.join(work, "torch-" + VERSION)
    if os.path.isdir(os.path.join(folder, "torch", "distributed", "flight_recorder")):
        return Peer(folder, VERSION, "its folder of the wheel torch==%s" % VERSION)
    try:
        version = said(sys.executable, "-c", "import torch.distributed.flight_recorder, torch; "
                       "print(torch.__version__)")
    except Missing:
        raise Missing("torch is not installed, nor its analyzer; " + HOW) from None
    return Peer(None, version, "the torch that is installed")


def install(work):
    folder = os.path.join(work, "torch-" + VERSION)
    wheels = os.path.join(work, "wheels")
    said(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
         "--no-deps", "--only-binary", ":all:", "--platform", WHEEL_PLATFORM, "--python-version",
         "3.11", "--dest", wheels, "torch==" + VERSION)
    said(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
         "--target", folder, TABULATE)
    for wheel in glob.glob(os.path.join(wheels, "torch-%s-*.whl" % VERSION)):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder, [name for name in archive.namelist()
                                        if name.startswith("torch/distributed/flight_recorder/")])
        os.remove(wheel)
    return find(work)


def ask(peer, dumps, prefix):
    """The ranks that it names, or None where it ends without an answer."""
    environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
    if peer.program:
        environment["PYTHONPATH"] = peer.program
    done = subprocess.run([sys.executable, "-m", MODULE, "--allow-incomplete-ranks", "--prefix",
                           prefix, dumps], capture_output=True, text=True, timeout=TIMEOUT_S,
                          env=environment, check=False)
    return named(done.stdout + done.stderr) if done.returncode == 0 else None


def named(text):
    """Ranks that did not join, that differ, or whose dumps are missing. Of each group the first
    report counts: what it prints of later operations follows from that."""
    reports, group, ranks = {}, None, set()
    for line in text.split("\n"):
        begins = GROUP.match(line)
        if begins:
            group = begins.group(1)
            report = set()
            reports.setdefault(group, report)
        elif group is not None:
            for words in OF_GROUP:
                for found in words.findall(line):
                    report |= numbers(found)
        for found in NO_DUMP.findall(line):
            ranks |= numbers(found)
    return ranks.union(*reports.values())


def numbers(text):
    return {int(number) for number in text.split(",")}
