#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One node, known by its address in one source and by its name in the others.

    run_aliases.py BINARY

A kernel log says 10.1.0.7; what an API server says of its nodes or pods (a list, a watch) tells
that this is gpu-node-7, and so the verdict is of that node.
"""
import json
import os
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from checks import Checks  # noqa: E402
from process import run  # noqa: E402

RECORDED = os.path.join(HERE, "..", "golden", "kubernetes_api")
LOST = ("2026-11-22T01:52:%02d.000000+00:00 %s kernel: pcieport 0000:15:00.0: AER: Uncorrectable "
        "(Fatal) error message received from 0000:19:00.0\n"
        "2026-11-22T01:52:%02d.100000+00:00 %s kernel: nvidia 0000:19:00.0: PCIe Bus Error: "
        "severity=Uncorrectable (Fatal), type=Transaction Layer, (Receiver ID)\n")


def nodes_named(binary, checks, what, documents):
    with tempfile.TemporaryDirectory() as folder:
        for name in documents:
            shutil.copy(os.path.join(RECORDED, name), folder)
        with open(os.path.join(folder, "kern.log"), "w", encoding="utf-8") as file:
            file.write(LOST % (31, "10.1.0.7", 31, "10.1.0.7"))
        done = run(binary, "analyze", "--output", "verdicts", folder)
    checks.equal(done.code, 0, what + ": exit code")
    verdicts = [json.loads(line) for line in done.text().splitlines()]
    checks.equal(len(verdicts), 1, what + ": verdicts")
    return {entity["name"].split("/")[0] for verdict in verdicts
            for entity in verdict["entities"] if entity["kind"] in ("node", "gpu", "pci_device")}


def main(binary):
    checks = Checks()
    checks.equal(nodes_named(binary, checks, "alone", []), {"10.1.0.7"}, "nothing says whose it is")
    for name in ("list_nodes.json", "watch_nodes.jsonl", "list_pods.json"):
        checks.equal(nodes_named(binary, checks, name, [name]), {"gpu-node-7"}, name)
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
