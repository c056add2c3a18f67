#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ends of real PyTorch jobs, judged by what truth.json of each says.

    run_real_exits.py BINARY [--table] [CASE…]

Each case is analysed as a user would: the folder as it was collected, with all that is in it but
truth.json; then once more without what the kernel said. Where a rank, a node or an agent ended by itself, exactly one open verdict is a root, and it
names who did it, of the right kind; a victim is never a culprit. --table prints what culprit and
torchrun's own summaries named.
"""
import collections
import glob
import json
import os
import re
import shutil
import sys
import tempfile

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "real_exits")
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))
from checks import Checks  # noqa: E402
from process import run  # noqa: E402

SEVERE = ("error", "critical")
ROOT_CAUSE = re.compile(r"Root Cause \(first observed failure\):.*?pid: (\d+)\)", re.S)


def truth_of(case):
    with open(os.path.join(HERE, case, "truth.json"), encoding="utf-8") as file:
        return json.load(file)


def copy(case, folder, name=None, kernel=True):
    """The input of a case in a new folder; times of files say nothing about the job."""
    left_out = ["truth.json"] + ([] if kernel else ["kernel.log", "kmsg.raw"])
    return shutil.copytree(os.path.join(HERE, case), os.path.join(folder, name or case),
                           ignore=shutil.ignore_patterns(*left_out), copy_function=shutil.copyfile)


def analyze(binary, folder):
    done = run(binary, "analyze", "-q", "-o", "verdicts", folder)
    return None if done.code != 0 else [json.loads(line) for line in done.text().splitlines()]


def named(verdict, kind, *roles):
    return [e["name"] for e in verdict["entities"] if e["kind"] == kind and e["role"] in roles]


def blamed(verdict):
    """Ranks and nodes that the verdict lays it to; suspects where it has no culprit."""
    culprits = named(verdict, "rank", "culprit"), named(verdict, "node", "culprit")
    if any(culprits):
        return culprits
    ranks = named(verdict, "rank", "suspect")
    return ranks, [] if ranks else named(verdict, "node", "suspect")


def is_root(verdict):
    return verdict["attributes"].get("culprit.root") == "true"


def ranks_of_host(truth, host):
    return {str(end["rank"]) for end in truth["ends"] if end["host"] == host}


def is_node_of_all(truth, nodes):
    """Whether all ranks of the node raised the same, and no others did."""
    own = [truth["own_end"]] + truth["other_own_ends"] if truth["own_end"] else []
    hosts, ranks = {end["host"] for end in own}, {str(end.get("rank")) for end in own}
    return len(own) > 1 and hosts == set(nodes) and ranks == ranks_of_host(truth, nodes[0]) and \
        len({(end.get("exception"), end.get("message")) for end in own}) == 1


def names_right(truth, verdict):
    accept = truth["accept"]
    ranks, nodes = blamed(verdict)
    if nodes and not ranks and is_node_of_all(truth, nodes):
        return set(named(verdict, "rank", "suspect")) == ranks_of_host(truth, nodes[0])
    right = {str(rank) for rank in accept.get("ranks", ())}
    if accept.get("whole_host"):
        return nodes == accept["hosts"] if nodes else set(ranks) == right
    return bool(ranks) and set(ranks) <= right


def allowed_culprits(truth):
    """Everybody whom it is not wrong to call a culprit of any start of the job."""
    own = [truth["own_end"]] + truth["other_own_ends"] if truth["own_end"] else []
    for earlier in truth["earlier_rounds"]:
        own += [earlier.get("own_end") or {}] + earlier.get("other_own_ends", [])
    ranks = {str(end["rank"]) for end in own if end and end.get("rank") is not None}
    return ranks | {str(rank) for rank in truth["accept"].get("ranks", ())}


def says_why(truth, verdict):
    end = truth["own_end"]
    said = verdict["attributes"].get("exception.type", "") + " " + verdict["headline"] + " " + \
        verdict["attributes"].get("exception.message", "")
    if not end.get("exception") or verdict["kind"] not in ("exception", "cuda_oom", "cuda_error"):
        return True
    start = " ".join(end["message"].splitlines()[0].split())[:60]
    return end["exception"] in said and start in " ".join(said.split())


def judge(checks, what, truth, verdicts, kinds):
    accept = truth["accept"]
    if not checks.check(verdicts is not None, what + ": analyze failed"):
        return False
    before = checks.failed
    for verdict in verdicts:
        wrong = set(named(verdict, "rank", "culprit")) - allowed_culprits(truth)
        checks.check(not wrong, "%s: names the victim %s: %s" % (what, wrong, verdict["headline"]))
    severe = [v for v in verdicts if v["severity"] in SEVERE]
    if accept.get("nobody") or truth["healthy"]:
        checks.check(not severe, "%s: %r" % (what, [v["headline"] for v in severe]))
        return checks.failed == before
    if not accept.get("first_exit"):
        return checks.failed == before
    standing = [v for v in verdicts if v["state"] != "resolved"]
    roots = [v for v in standing if is_root(v)]
    if truth["recovered"] and not standing:  # the first end, which the job got over
        roots = sorted(verdicts, key=lambda v: int(v["start_time_unix_nano"]))[:1]
    if checks.check(len(roots) == 1, "%s: %d roots: %r" %
                    (what, len(roots), [v["headline"] for v in roots])):
        root = roots[0]
        checks.check(root["kind"] in kinds, "%s: kind %s" % (what, root["kind"]))
        checks.check(names_right(truth, root), "%s: blames %r" % (what, blamed(root)))
        checks.check(says_why(truth, root), "%s: does not say why: %s" % (what, root["headline"]))
    return checks.failed == before


def summaries(case, truth):
    """What the summary of each agent names: own, victim or nothing."""
    own = [truth["own_end"]] + truth["other_own_ends"] if truth["own_end"] else []
    pids = {end.get("pid") for end in own if end}
    for node in sorted(glob.glob(os.path.join(HERE, case, "node-*"))):
        text = ""
        for name in ("agent.stdout", "agent.stderr"):
            path = os.path.join(node, name)
            if os.path.exists(path):
                with open(path, encoding="utf-8", errors="replace") as file:
                    text += file.read()
        found = ROOT_CAUSE.findall(text)
        yield "nothing" if not found else "own" if int(found[-1]) in pids else "victim"


def one_ranks_end(truth):
    return bool(truth["own_end"] and truth["own_end"].get("rank") is not None)


def main():
    wanted = [name for name in sys.argv[2:] if not name.startswith("--")]
    checks = Checks()
    agents, right, cases = collections.Counter(), 0, 0
    names = wanted or sorted(os.path.basename(os.path.dirname(path))
                             for path in glob.glob(os.path.join(HERE, "*", "truth.json")))
    checks.check(len(names) > 0, "there are no cases")
    for case in names:
        truth = truth_of(case)
        accept = truth["accept"]
        kinds = accept.get("kinds", [])
        with tempfile.TemporaryDirectory() as folder:
            verdicts = analyze(sys.argv[1], copy(case, folder))
            is_right = judge(checks, case, truth, verdicts, kinds)
        with tempfile.TemporaryDirectory() as folder:
            judge(checks, case + " without the kernel's log", truth,
                  analyze(sys.argv[1], copy(case, folder, kernel=False)),
                  kinds + accept.get("kinds_without_kernel_log", []))
        cases += 1
        right += is_right
        if one_ranks_end(truth):
            agents.update(summaries(case, truth))
        if "--table" in sys.argv:
            print("%-18s %-5s culprit: %-60s torchrun: %s" % (
                case, "right" if is_right else "WRONG",
                "; ".join("%s %s %s" % ((v["kind"], v["state"]) + (",".join(sum(blamed(v), [])),))
                          for v in verdicts or ()),
                ", ".join(summaries(case, truth))))
    if "--table" in sys.argv:
        print("culprit: %d of %d jobs right; %d summaries of torchrun where one rank ended first: "
              "%s" % (right, cases, sum(agents.values()),
                      ", ".join("%d %s" % (agents[k], k) for k in ("own", "victim", "nothing"))))
    if not wanted:  # as README.md says
        checks.equal(dict(agents), {"own": 31, "victim": 22, "nothing": 15}, "torchrun's summaries")
    sys.exit(checks.finish())


if __name__ == "__main__":
    main()
