#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does the scoreboard of bench/diagnosis judge rightly, and does its input do what it says?

    test_diagnosis.py

Without culprit: the same seed gives the same bytes, each mess does what it is for, and a verdict
that is wrong in any one thing is no hit.
"""
import copy
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, os.path.join(HERE, "..", "..", "bench", "diagnosis"))
import fr_trace  # noqa: E402
import incidents  # noqa: E402
import messes  # noqa: E402
import scale  # noqa: E402
import score  # noqa: E402
import sources  # noqa: E402
from checks import Checks  # noqa: E402

SEED = 7


def written(kind, number, mess, seed=SEED):
    lines, documents = messes.write(incidents.make(kind, number, seed), mess)
    return [(line.path, line.text + line.end) for line in lines], sorted(documents)


def check_determinism(checks):
    for kind in incidents.CLASSES:
        for mess in ("none", "together"):
            checks.check(written(kind, 1, mess) == written(kind, 1, mess),
                         "%s, %s: the same seed gives the same bytes" % (kind, mess))
        checks.check(written(kind, 1, "none") != written(kind, 1, "none", SEED + 1),
                     kind + ": another seed gives others")


def share_of(part, whole):
    return len(part) / len(whole)


def check_lines(checks):
    plain, documents = written("cascade", 0, "none")
    by_path = {}
    for path, text in plain:
        by_path.setdefault(path, []).append(text)
    one_file, dumps = written("cascade", 0, "one_file")
    checks.equal({path for path, _ in one_file}, {"everything.jsonl"}, "one_file: paths")
    checks.equal([text for _, text in one_file], [text for _, text in plain], "one_file: lines")
    checks.check(dumps == documents and documents, "one_file: dumps stay files")
    checks.check(len(by_path) > 5, "a case has many files")
    lost = share_of(written("cascade", 0, "lost")[0], plain)
    checks.check(0.93 < lost < 0.97, "lost: %.3f of the lines are left" % lost)
    doubled = share_of(written("cascade", 0, "doubled")[0], plain)
    checks.check(1.03 < doubled < 1.07, "doubled: %.3f times the lines" % doubled)
    shuffled = written("cascade", 0, "shuffled")[0]
    checks.check(shuffled != plain and sorted(shuffled) == sorted(plain),
                 "shuffled: the same lines in another order")
    late = shuffled_by(incidents.make("cascade", 0, SEED))
    checks.check(0 < late <= 5 * incidents.SECOND, "shuffled: by %d ns at most" % late)


def shuffled_by(case):
    """How far a line comes behind one that is later."""
    newest = most = 0
    for line in messes.write(case, "shuffled")[0]:
        newest = max(newest, line.time)
        most = max(most, newest - line.time)
    return most


def changed(kind, number, mess):
    """Lines of a mess that are not in the plain case, beside those they stand for."""
    plain, other = written(kind, number, "none")[0], written(kind, number, mess)[0]
    return [(a[1], b[1]) for a, b in zip(plain, other) if a[1] != b[1]], len(plain)


def check_styles(checks):
    for number in range(6):
        pairs, _ = changed("xid_eviction", number, "future")
        checks.equal(len(pairs), 1, "future: lines that differ")
        pairs, total = changed("xid_eviction", number, "fqdn")
        checks.check(0 < len(pairs) < total, "fqdn: %d of %d lines differ" % (len(pairs), total))
        case = incidents.make("xid_eviction", number, SEED)
        domain = "." + case.cluster.domain
        checks.check(all(b.replace(domain, "") == a for a, b in pairs), "fqdn: only the domain")
        pairs, _ = changed("xid_eviction", number, "clocks")
        checks.check(len(pairs) > 20, "clocks: lines differ")
    for mess, end in (("prefixes", "\r\n"), ("folder", "\n"), ("zone", "\n")):
        lines = [text for path, text in written("aer", 3, mess)[0] if "kern" in path
                 or "dmesg" in path]
        checks.check(lines and all(line.endswith(end) for line in lines), mess + ": line ends")
        checks.check(all(line.endswith("\r\n") == (end == "\r\n") for line in lines),
                     mess + ": line ends, the other way")
    checks.equal(zone_shift(), 7200, "zone: seconds")


def zone_shift():
    """How much later the first kernel line says it is."""
    case = incidents.make("aer", 3, SEED)
    fact = next(fact for fact in case.facts if fact.source == "kernel")
    style = sources.Style(case)
    times = []
    for zone_s in (0, messes.ZONE_S):
        style.kernel_form, style.zone_s = "dmesg", zone_s
        text = sources.write_kernel(style, fact)[1]
        hours, minutes, seconds = text.split()[3].split(":")
        times.append(int(hours) * 3600 + int(minutes) * 60 + int(seconds))
    return times[1] - times[0]


def verdict(**changes):
    made = {"id": "hbm_ecc:1", "pattern": "hbm_ecc", "kind": "uncorrectable", "severity": "error",
            "entities": [{"kind": "gpu", "name": "node1.example.org/0000:1b:00", "role": "culprit"},
                         {"kind": "node", "name": "node1.example.org", "role": "suspect"}],
            "attributes": {"culprit.root": "true"}}
    made.update(changes)
    return made


TRUTH = {"healthy": False,
         "consequences": [{"pattern": "nccl_hang", "who": [["rank", "3"]], "of": 0}],
         "roots": [{"pattern": "hbm_ecc", "kinds": ["uncorrectable"],
                    "who": [["gpu", "node1/0000:1b:00"]], "also": []}]}
HANG = {"id": "nccl_hang:1", "pattern": "nccl_hang", "kind": "missing_rank", "severity": "error",
        "entities": [{"kind": "rank", "name": "3", "role": "culprit"}],
        "related": [{"id": "hbm_ecc:1", "relation": "caused_by"}],
        "attributes": {"culprit.root": "false"}}
OTHER_GPU = {"kind": "gpu", "name": "node1/0000:29:00", "role": "culprit"}


def check_judgement(checks):
    rows = [
        ("right", [verdict()], True, 0),
        ("right, with what followed", [verdict(), HANG], True, 0),
        ("no verdict", [], False, 0),
        ("another pattern", [verdict(pattern="pcie_aer")], False, 1),
        ("another kind", [verdict(kind="remap_failed")], False, 1),
        ("another GPU", [verdict(entities=[OTHER_GPU])], False, 1),
        ("one GPU too many", [verdict(entities=verdict()["entities"] + [OTHER_GPU])], False, 1),
        ("nobody blamed", [verdict(entities=verdict()["entities"][1:])], False, 1),
        ("no root", [verdict(attributes={"culprit.root": "false"})], False, 0),
        ("not grave", [verdict(severity="info")], False, 0),
        ("two roots", [verdict(), dict(HANG, attributes={"culprit.root": "true"})], True, 1),
    ]
    for name, verdicts, found, extra in rows:
        row = score.judge(TRUTH, verdicts)
        checks.equal((row["found"], row["extra"]), (found, extra), name)
    checks.equal(score.judge(TRUTH, [verdict(), HANG])["linked"], 1, "what followed is linked")
    for key, value in (("related", []), ("attributes", {"culprit.root": "true"}),
                       ("pattern", "pod_evicted"), ("entities", [OTHER_GPU])):
        loose = dict(copy.deepcopy(HANG), **{key: value})
        checks.equal(score.judge(TRUTH, [verdict(), loose])["linked"], 0, "not linked: " + key)
    whole = {"healthy": True, "roots": [], "consequences": []}
    checks.equal(score.judge(whole, [verdict()])["false"], 1, "a false verdict")
    checks.equal(score.judge(whole, [verdict(severity="info")])["false"], 0, "info is none")


HOT = {"pattern": "thermal_throttle", "kinds": ["hw_thermal"], "who": [["gpu", "b1/0000:9b:00"]],
       "also": []}
IS_HOT = {"id": "thermal_throttle:1", "pattern": "thermal_throttle", "kind": "hw_thermal",
          "severity": "error", "attributes": {"culprit.root": "true"},
          "entities": [{"kind": "gpu", "name": "b1/0000:9b:00", "role": "culprit"}]}


def check_two(checks):
    """Two faults: both must be found, by verdicts of their own that are not related."""
    truth = {"healthy": False, "consequences": [], "roots": TRUTH["roots"] + [HOT]}
    linked = dict(IS_HOT, related=[{"id": "hbm_ecc:1", "relation": "caused_by"}])
    hang = dict(HANG, attributes={"culprit.root": "true"}, related=[])
    same = {"pattern": "nccl_hang", "kinds": ["missing_rank"], "who": [["rank", "3"]], "also": []}
    rows = [
        ("both", truth, [verdict(), IS_HOT], True, 0, 2),
        ("one of two", truth, [verdict()], False, 0, 1),
        ("both, and one explains the other", truth, [verdict(), linked], False, 0, 2),
        ("both, and another", truth, [verdict(), IS_HOT, hang], True, 1, 2),
        ("one verdict for two jobs", {**truth, "roots": [same, same]}, [hang], False, 0, 1),
        ("one for each", {**truth, "roots": [same, same]}, [hang, dict(hang, id="nccl_hang:2")],
         True, 0, 2),
    ]
    for name, known, verdicts, found, extra, hits in rows:
        row = score.judge(known, verdicts)
        checks.equal((row["found"], row["extra"], row["hits"]), (found, extra, hits), name)
    for nodes, found in ((["b1"], True), (["b2"], False)):
        here = {**truth, "roots": [dict(HOT, nodes=nodes)]}
        checks.equal(score.judge(here, [IS_HOT])["found"], found, "a job on %s" % nodes)


def check_two_jobs(checks):
    """Cases of the class `two`: other nodes, other addresses, both roots with their nodes."""
    cases = [incidents.make("two", number, SEED) for number in range(20)]
    apart = [case for case in cases if case.beside]
    checks.check(0 < len(apart) < 20, "%d of 20 cases have two jobs" % len(apart))
    for case in cases:
        roots = case.truth["roots"]
        checks.equal(len(roots), 2, case.name + ": roots")
        if case.beside:
            here, there = case.cluster, case.beside[0].cluster
            for key in ("name", "ip"):
                shared = {getattr(node, key) for node in here.nodes} & \
                    {getattr(node, key) for node in there.nodes}
                checks.equal(shared, set(), "%s: the same %s in both jobs" % (case.name, key))
            checks.check(not set(roots[0]["nodes"]) & set(roots[1]["nodes"]),
                         case.name + ": each root has its own nodes")


def check_stopped(checks):
    """A node that is gone writes nothing more, and each of the three ends comes."""
    kinds = set()
    for number in range(20):
        case = incidents.make("stopped", number, SEED)
        kinds |= set(case.truth["roots"][0]["kinds"])
        for node, when in case.node_gone.items():
            late = [fact.source for fact in case.facts if fact.node is node and fact.time >= when
                    and not fact.source.startswith("kube") and fact.source != "slurm"]
            checks.equal(late, [], case.name + ": said by a node that is gone")
    checks.equal(kinds, {"time_limit", "preempted", "node_lost"}, "kinds of `stopped`")


def files_of(hour):
    with tempfile.TemporaryDirectory() as folder:
        scale.write(hour, folder)
        found = {}
        for place, _, names in os.walk(folder):
            for name in names:
                path = os.path.join(place, name)
                with open(path, encoding="utf-8") as file:
                    found[os.path.relpath(path, folder)] = file.read()
        return found


def check_hours(checks):
    """Hours of a large job, here of a small one."""
    made = {hard: scale.make(hard, 1, SEED, (3, 2), 20) for hard in (False, True)}
    written = {hard: files_of(hour) for hard, hour in made.items()}
    checks.check(files_of(scale.make(True, 1, SEED, (3, 2), 20)) == written[True],
                 "the same seed gives the same hour")
    samples = {hard: sum(text.count("\n") for path, text in files.items() if "telemetry" in path)
               for hard, files in written.items()}
    checks.check(700 < samples[False] <= 6 * 121, "samples of 6 ranks: %d" % samples[False])
    checks.check(samples[True] < samples[False], "silent trackers: %d samples" % samples[True])
    hard = made[True]
    checks.equal((len(made[False].lives), len(hard.lives)), (1, 2), "starts of the job")
    checks.check(hard.lives[0].end < hard.lives[1].start, "one after the other")
    checks.equal({a.pid for a in hard.lives[0].ranks} & {b.pid for b in hard.lives[1].ranks}, set(),
                 "processes of both starts")
    checks.check(any(path.endswith(".1") for path in written[True]), "logs are rotated")
    checks.check(not any(path.endswith(".1") for path in written[False]), "and not in a plain hour")
    text = "".join(written[True].values())
    for what in ("Traceback (most", "PreemptionByScheduler", "NodeStatusUnknown", "oom-kill:",
                 "sweep-", "Received 15 death signal", "): 45, pid="):
        checks.check(what in text,
                     "a hard hour holds " + what)


def check_sorting(checks):
    """What did happen in a healthy hour is no false verdict, unless a rank is blamed for it."""
    told = verdict(pattern="first_exit", kind="preempted", entities=[])
    rank = dict(told, entities=[{"kind": "rank", "name": "3", "role": "culprit"}])
    pod = verdict(pattern="pod_evicted", kind="pod_limit",
                  entities=[{"kind": "pod", "name": "a/b", "role": "culprit"}])
    for name, happened, said, false in (
            ("did happen", [("first_exit", "preempted")], told, 0),
            ("did not", [], told, 1), ("of a rank", [("first_exit", "preempted")], rank, 1),
            ("of that pod", [("pod_evicted", "pod_limit", "a/b")], pod, 0),
            ("of another", [("pod_evicted", "pod_limit", "a/c")], pod, 1),
            ("not grave", [], dict(told, severity="info"), 0)):
        checks.equal(len(score.sort_out(happened, [said])[0]), false, "false verdicts: " + name)


ANALYZER = """Not all ranks joining collective, sequence number: 12
group info: 3:mesh_tp
collective: nccl:all_reduce
missing ranks: {5, 7}
Collective sequence number: 4 has errors
group info: 0:default_pg
missing ranks: None
error msg: Culprit rank 10; Error type: X, details, Culprit rank 2; Error type: Y
Not all ranks joining collective, sequence number: 13
group info: 3:mesh_tp
missing ranks: {1, 2, 3}
"""


def check_analyzer(checks):
    """What PyTorch's analyzer prints: of each group the first report, and dumps that are missing."""
    checks.equal(fr_trace.named(ANALYZER), {2, 5, 7, 10}, "ranks of two groups")
    checks.equal(fr_trace.named("We cannot decide what's wrong with this collective entry because we "
                                "missed FR dumps from ranks ({0, 31}) so we don't"), {0, 31},
                 "dumps that are missing")
    checks.equal(fr_trace.named("No errors found for this collective entry"), set(), "nobody")


def check_sizes(checks):
    """What is split among a group is as many times larger on one side."""
    for kind, number in (("hang", 0), ("hang", 3)):
        for fact in incidents.make(kind, number, SEED).facts:
            if fact.source == "dump":
                dump = fact.data[1]
                for entry in dump["entries"]:
                    members = len(dump["pg_config"][entry["process_group"][0]]["ranks"].split(","))
                    large, small = entry["input_sizes"], entry["output_sizes"]
                    if "all_gather" in entry["profiling_name"]:
                        large, small = small, large
                    split = members if "_tensor_" in entry["profiling_name"] else 1
                    if large[0][0] != small[0][0] * split:
                        checks.check(False, "sizes of %s" % entry)
                        return
    checks.check(True, "sizes")


def check_first_signs(checks):
    """From when each fault can be known; nothing tells of a hang before its timeout."""
    for kind in incidents.CLASSES:
        case = incidents.make(kind, 2, SEED)
        if not case.truth["healthy"]:
            checks.check(case.start < case.began < case.end, kind + ": its first sign")
    case = incidents.make("hang", 2, SEED)
    dumps = [fact.time for fact in case.facts if fact.source == "dump"]
    checks.equal(case.began, min(dumps), "the first sign of a hang")


def check_within(checks):
    checks.equal(score.within([]), None, "no times")
    checks.equal(score.within([5]), {"of": 1, "half": 5, "most": 5}, "one time")
    checks.equal(score.within(list(range(1, 101))), {"of": 100, "half": 50, "most": 95},
                 "half and 95 % of them")


def check_figures(checks):
    # Wilson's intervals as textbooks have them.
    for hits, tries, low, high in ((0, 10, 0.0, 0.2775), (5, 10, 0.2366, 0.7634),
                                   (10, 10, 0.7225, 1.0), (95, 100, 0.8882, 0.9785)):
        got = score.wilson(hits, tries)
        checks.check(abs(got[0] - low) < 1e-3 and abs(got[1] - high) < 1e-3,
                     "wilson(%d, %d): %s" % (hits, tries, got))
    difference, half = score.paired([(True, True)] * 80 + [(True, False)] * 20)
    checks.check(abs(difference + 0.2) < 1e-9 and 0.05 < half < 0.12, "a loss of 20 points")
    checks.check(score.paired([(True, True)] * 30)[1] > 0, "no difference is not certainty")


def main():
    checks = Checks()
    check_determinism(checks)
    check_lines(checks)
    check_styles(checks)
    check_judgement(checks)
    check_two(checks)
    check_two_jobs(checks)
    check_stopped(checks)
    check_hours(checks)
    check_sorting(checks)
    check_analyzer(checks)
    check_sizes(checks)
    check_first_signs(checks)
    check_within(checks)
    check_figures(checks)
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
