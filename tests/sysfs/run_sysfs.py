#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""culprit run with the sysfs receiver, over made-up trees and over this machine's own.

    run_sysfs.py BINARY [CASE…]

A link that is lost gives the verdict; nothing is sent while nothing changes; cards come and go;
after kill -9 nothing is told twice. What must happen is waited for, up to a limit.
"""
import json
import os
import shutil
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from checks import Checks  # noqa: E402
from own_metrics import metric_sum  # noqa: E402
from ports import free_port  # noqa: E402
from running import Running, wait_for  # noqa: E402
from sysfs_tree import SysfsTree  # noqa: E402

CARD, ADDRESS = "mlx5_0", "0000:5c:00.0"
GPU = "0000:9b:00.0"


class Run(Running):
    def __init__(self, binary, folder, root, **options):
        self.port = free_port()
        super().__init__(binary, folder, {
            "extensions": {"file_storage": {"directory": os.path.join(folder, "store")}},
            "receivers": {"sysfs": {"root": root, "node": "gpu-7", "interval": "100ms",
                                    "rescan": "500ms", **options}},
            "processors": {"fabric_link": {"settle": "1s"}, "pcie_aer": {}, "incident": {}},
            "exporters": {"json": {"path": self.verdicts_in(folder)}},
            "service": {"extensions": ["file_storage"],
                        "telemetry": {"metrics": {"endpoint": "127.0.0.1:%d" % self.port}},
                        "pipelines": {"all": {
                "receivers": ["sysfs"], "processors": ["fabric_link", "pcie_aer", "incident"],
                "exporters": ["json"], "evaluate_every": "1s",
                "allowed_lateness": "0s", "settle": "0s", "idle_timeout": "1s"}}}})

    def metric(self, name):
        return metric_sum(self.port, name)

    def accepted(self):
        return self.metric("culprit_receiver_accepted_events_total") or 0

    def rounds(self):
        return self.metric("culprit_receiver_polls_total") or 0


def some_rounds(run):
    seen = run.rounds()
    return wait_for(lambda: run.rounds() > seen + 5)


def a_lost_link(checks, binary, folder):
    """link_downed rises and the state goes: the card is named; over kill -9 the same verdict."""
    tree = SysfsTree(os.path.join(folder, "sys"))
    tree.add_card(CARD, ADDRESS)
    tree.add_pci(GPU)
    with Run(binary, folder, tree.root) as run:
        checks.check(wait_for(lambda: run.rounds() > 5), "it reads: " + run.log())
        seen = run.accepted()
        checks.check(seen > 20, "everything is sent at the start: %s" % seen)
        checks.check(some_rounds(run), "it goes on reading")
        checks.equal(run.accepted(), seen, "nothing is sent while nothing changes")
        tree.count(CARD, "link_downed", 1)
        tree.state(CARD, "1: DOWN", "2: Polling")
        checks.check(wait_for(lambda: run.found("fabric_link")), "a verdict: " + run.log())
        one = (run.found("fabric_link") or [{}])[0]
        checks.equal(one.get("kind"), "link_down", "its kind")
        checks.equal([entity["name"] for entity in one.get("entities", [])
                      if entity["role"] == "culprit"], ["gpu-7/0000:5c:00"], "who it is")
        tree.add_pci(GPU, fatal_DLP=1)
        checks.check(wait_for(lambda: run.found("pcie_aer")), "the other one: " + run.log())
        run.process.kill()
        run.process.wait()
        run.start()
        checks.check(wait_for(lambda: run.rounds() > 5), "it reads again: " + run.log())
        run.stop(checks, "a lost link")
        for pattern in ("fabric_link", "pcie_aer"):
            ids = {verdict["id"] for verdict in run.found(pattern)}
            checks.equal(len(ids), 1, pattern + ": one verdict")


def what_comes_and_goes(checks, binary, folder):
    """An empty tree, then a card; its driver is loaded anew; it goes, and others come."""
    tree = SysfsTree(os.path.join(folder, "sys"))
    cards = "culprit_sysfs_receiver_cards"
    with Run(binary, folder, tree.root, repeat="0s") as run:
        checks.check(wait_for(lambda: "C9501" in run.log()), "nothing is there: " + run.log())
        tree.add_card(CARD, ADDRESS)
        checks.check(wait_for(lambda: run.metric(cards) == 1), "a card: " + run.log())
        checks.check(wait_for(lambda: run.accepted() > 20), "it is sent")
        seen = run.accepted()
        # Another one under its name.
        path = os.path.join(tree.root, "class", "infiniband", CARD)
        os.rename(path, os.path.join(folder, "old"))
        tree.add_card(CARD, ADDRESS)
        checks.check(wait_for(lambda: run.accepted() >= 2 * seen), "a new card is sent whole")
        shutil.rmtree(path)
        tree.add_pci(GPU)
        checks.check(wait_for(lambda: run.metric(cards) == 0), "it is gone")
        checks.check(wait_for(lambda: run.metric("culprit_sysfs_receiver_pci_devices") == 1),
                     "a PCI device")
        run.stop(checks, "what comes and goes")
        checks.check("C9502" not in run.log(), "that is no trouble: " + run.log())


def odd_files(checks, binary, folder):
    """No numbers, huge, empty and unreadable files, names that are none: the rest is read."""
    tree = SysfsTree(os.path.join(folder, "sys"))
    tree.add_card(CARD, ADDRESS)
    tree.count(CARD, "symbol_error", "N/A (no PMA)")
    tree.count(CARD, "port_rcv_errors", "9" * 100)
    tree.count(CARD, "link_error_recovery", "")
    tree.write(tree.port(CARD) + "counters/" + "x" * 200, "1")
    os.makedirs(os.path.join(tree.root, tree.port(CARD), "counters", "a folder"))
    tree.write("class/infiniband/" + CARD + "/ports/x/state", "4: ACTIVE")
    tree.write("class/infiniband/broken", "a file")
    tree.write("bus/pci/devices/" + GPU + "/aer_dev_fatal", "\x00\xff no counters")
    tree.write("bus/pci/devices/0000:00:00.0/aer_dev_fatal", "A 1\n" * 4000)
    with Run(binary, folder, tree.root) as run:
        checks.check(wait_for(lambda: run.rounds() > 5), "it reads: " + run.log())
        tree.count(CARD, "port_rcv_errors", "7")
        seen = run.accepted()
        checks.check(wait_for(lambda: run.accepted() > seen), "a counter that is right again")
        run.stop(checks, "odd files")
        checks.check("C9504" in run.log(), "what cannot be opened is told: " + run.log())


def this_machine(checks, binary, folder):
    """Its own /sys, whatever it has."""
    with Run(binary, folder, "/sys", repeat="1s") as run:
        wait_for(lambda: "C9501" in run.log() or run.accepted() > 0)
        run.stop(checks, "this machine")
        checks.check("C9501" in run.log() or "C9506" in run.log(), "it says what is there")
        checks.check(", 0 records refused" in run.log(), "none is refused: " + run.log())


CASES = (a_lost_link, what_comes_and_goes, odd_files, this_machine)


def run_case(checks, case):
    with tempfile.TemporaryDirectory() as folder:
        try:
            case(checks, sys.argv[1], folder)
        except Exception as error:  # whatever it is, it is told as this case's
            checks.check(False, "%s: %r" % (case.__name__, error))


def main():
    checks = Checks()
    threads = [threading.Thread(target=run_case, args=(checks, case)) for case in CASES
               if not sys.argv[2:] or case.__name__ in sys.argv[2:]]
    for thread in threads:  # they mostly wait
        thread.start()
    for thread in threads:
        thread.join()
    sys.exit(checks.finish())


if __name__ == "__main__":
    main()
