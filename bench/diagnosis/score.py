# SPDX-License-Identifier: Apache-2.0
"""Runs culprit on cases and holds its verdicts against the truth.

A root is found when a verdict that is marked as one (culprit.root, severity warning or more) has
the pattern and kind of the truth and blames whom it names, and nobody else. Where two things
happened, both must be, by two verdicts that are not related to one another. All other roots of the
case are extra ones. In healthy cases every verdict of severity warning or more is a false one.
"""
import itertools
import json
import math
import os
import shutil
import subprocess
import tempfile

import incidents
import messes

GRAVE = ("warning", "error", "critical")
TIMEOUT_S = 120
CONFIG = """receivers:
  file:
    include: ["%(folder)s/**"]
    start_at: beginning
    timezone: "+02:00"
processors:
  rank_group: {retention: all}
  phase_attribution: {retention: all}
exporters:
  json: {path: "%(out)s"}
service:
  pipelines:
    verdicts: {receivers: [file], preset: all, exporters: [json]}
"""


class Stopped(Exception):
    """culprit ended in a way that is no answer."""


# -- A case on disk -------------------------------------------------------------------------------

def write_case(case, mess, folder):
    lines, documents = messes.write(case, mess)
    texts = {}
    for line in lines:
        texts.setdefault(line.path, []).append(line.text + line.end)
    for path, parts in texts.items():
        save(folder, path, "".join(parts).encode("utf-8"))
    for path, data in documents:
        save(folder, path, data)


def save(folder, path, data):
    whole = os.path.join(folder, path)
    os.makedirs(os.path.dirname(whole), exist_ok=True)
    with open(whole, "wb") as file:
        file.write(data)


def keep_case(case, folder, target):
    """What culprit is given, and the truth beside it."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(folder, os.path.join(target, "input"))
    save(target, "truth.json", (json.dumps(case.truth, indent=1) + "\n").encode("ascii"))


# -- culprit --------------------------------------------------------------------------------------

def diagnose(binary, folder, options, work, jobs=1):
    """The last state of every verdict. Where there are several jobs, each is looked at."""
    each = ["--set", "processors.job_filter.job_id=each"] if jobs > 1 else []
    if "timezone" in options:
        config, out = os.path.join(work, "config.yaml"), os.path.join(work, "verdicts.jsonl")
        with open(config, "w", encoding="utf-8") as file:
            file.write(CONFIG % {"folder": folder, "out": out})
        call(binary, "run", "--once", "--config", config, *each, right=(0,))
        with open(out, encoding="utf-8") as file:
            text = file.read()
    else:
        text = call(binary, "analyze", "--quiet", "--output", "verdicts", *each, folder,
                    right=(0, 65))
    return last_states(text)


def last_states(text):
    """The last line of each verdict."""
    last = {}
    for line in text.split("\n"):
        if line:
            verdict = json.loads(line)
            last[verdict["id"]] = verdict
    return list(last.values())


def call(binary, *arguments, right):
    done = subprocess.run([binary, *arguments], capture_output=True, timeout=TIMEOUT_S, check=False)
    check_end(done.returncode, done.stderr, right)
    return done.stdout.decode("utf-8")


def check_end(code, errors, right):
    if code not in right:
        said = errors.decode("utf-8", "replace")
        at = said.find("ERROR:")        # of a sanitizer, whose report is long
        raise Stopped("exit code %d: %s" % (code, said[at:at + 300] if at >= 0
                                            else said[-300:].strip()))


def call_measured(binary, *arguments):
    """(standard output, seconds of processor time, highest memory in bytes)."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        child = subprocess.Popen([binary, *arguments], stdout=out, stderr=errors)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        for file in (out, errors):
            file.seek(0)
        check_end(child.returncode, errors.read(), (0, 65))
        return out.read().decode("utf-8"), used.ru_utime + used.ru_stime, used.ru_maxrss * 1024


# -- Judging --------------------------------------------------------------------------------------

def plain(kind, name):
    """Names of nodes without their domains, as the truth has them."""
    if kind == "pod":
        return (kind, name)
    node, slash, rest = name.partition("/")
    return (kind, node.split(".")[0].lower() + slash + rest)


def entities(verdict, role=None):
    return {plain(entity["kind"], entity["name"]) for entity in verdict["entities"]
            if role is None or entity["role"] == role}


def is_right(verdict, root):
    blamed, who = entities(verdict, "culprit"), {tuple(one) for one in root["who"]}
    return verdict["pattern"] == root["pattern"] and verdict["kind"] in root["kinds"] and \
        who <= blamed <= who | {tuple(one) for one in root["also"]} and is_of_job(verdict, root)


def is_of_job(verdict, root):
    """Where there are several jobs: it names no node of another."""
    return "nodes" not in root or all(
        kind in ("rank", "pod") or name.partition("/")[0] in root["nodes"]
        for kind, name in entities(verdict))


def each_by_itself(right):
    """One verdict for each root, no two the same or related; None where that cannot be."""
    for chosen in itertools.product(*right):
        ids = {verdict["id"] for verdict in chosen}
        if len(ids) == len(right) and not any(
                other["id"] in ids for verdict in chosen for other in verdict.get("related", [])):
            return list(chosen)
    return None


def judge(truth, verdicts):
    grave = [verdict for verdict in verdicts if verdict["severity"] in GRAVE]
    roots = [v for v in grave if v.get("attributes", {}).get("culprit.root") == "true"]
    if truth["healthy"]:
        return {"found": None, "extra": len(roots), "false": len(grave),
                "roots": [describe(v) for v in roots]}
    right = [[v for v in roots if is_right(v, root)] for root in truth["roots"]]
    found = each_by_itself(right)
    linked = sum(is_linked(one, grave, right[one["of"]]) for one in truth["consequences"])
    hits = min(sum(map(bool, right)), len({v["id"] for one in right for v in one}))
    return {"found": found is not None, "hits": hits, "extra": len(roots) - hits, "false": 0,
            "linked": linked, "consequences": len(truth["consequences"]),
            "roots": [describe(v) for v in roots]}


def is_linked(consequence, verdicts, right):
    """A verdict of that pattern about those is no root, and related to the right one."""
    ids, who = {v["id"] for v in right}, {tuple(one) for one in consequence["who"]}
    return any(v["pattern"] == consequence["pattern"] and v["id"] not in ids
               and who <= entities(v)
               and v.get("attributes", {}).get("culprit.root") == "false"
               and ids & {other["id"] for other in v.get("related", [])} for v in verdicts)


def sort_out(happened, verdicts):
    """(false, true): verdicts of a healthy job; true ones tell of what did happen, and blame no rank
    for it. `happened` is [(pattern, kind)], or with the only name that may be blamed."""
    sorted_out = ([], [])
    for verdict in verdicts:
        if verdict["severity"] in GRAVE:
            blamed = entities(verdict, "culprit")
            is_true = not any(kind == "rank" for kind, _ in blamed) and any(
                (verdict["pattern"], verdict["kind"]) == (pattern, kind)
                and (not who or who == [name for _, name in blamed])
                for pattern, kind, *who in happened)
            sorted_out[is_true].append(verdict)
    return sorted_out


def describe(verdict):
    return "%s %s %s" % (verdict["pattern"], verdict["kind"],
                         ", ".join("%s %s" % one for one in sorted(entities(verdict, "culprit"))))


# Seconds after the first sign at which the input is cut off.
SLICES_S = (0, 1, 2, 3, 5, 7, 10, 15, 20, 30, 45, 60, 90, 120, 150, 180, 240, 300, 450, 600, 900,
            1200)


def time_to_verdict(binary, kind, number, seed, work):
    """Seconds of event time from the first sign to the end of the shortest slice of the input in
    which the root is found; None where there is none. No wall time is in it."""
    case = incidents.make(kind, number, seed)
    whole = [(each, each.facts) for each in (case, *case.beside)]
    for seconds in SLICES_S:
        cut = case.began + seconds * incidents.SECOND
        for each, facts in whole:
            each.facts = [fact for fact in facts if fact.time <= cut]
        folder = os.path.join(work, "slice")
        write_case(case, "none", folder)
        verdicts = diagnose(binary, folder, (), work, len(whole))
        shutil.rmtree(folder)
        if judge(case.truth, verdicts)["found"]:
            return seconds
    return None


def run_case(binary, kind, number, seed, mess, keep=None, timed=False):
    """One row of the results."""
    case = incidents.make(kind, number, seed)
    row = {"class": kind, "case": number, "mess": mess,
           "minutes": case.length // incidents.MINUTE}
    work = tempfile.mkdtemp(prefix="diagnosis-", dir="/dev/shm" if os.path.isdir("/dev/shm")
                            else None)
    try:
        folder = os.path.join(work, "input")
        write_case(case, mess, folder)
        try:
            row.update(judge(case.truth, diagnose(
                binary, folder, messes.options(mess), work, 1 + len(case.beside))))
            if timed and row["found"] and len(case.truth["roots"]) == 1:
                row["after_s"] = time_to_verdict(binary, kind, number, seed, work)
        except (Stopped, subprocess.TimeoutExpired, ValueError) as error:
            row.update({"failure": str(error).replace(work, ""), "extra": 0, "false": 0,
                        "found": None if case.truth["healthy"] else False, "roots": []})
        row["truth"] = case.truth
        if keep:
            keep_case(case, folder, os.path.join(keep, mess, case.name))
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return row


# -- Figures --------------------------------------------------------------------------------------

def wilson(hits, tries):
    """The 95 % interval of a share, as two shares."""
    if tries == 0:
        return (0.0, 1.0)
    z, share = 1.959964, hits / tries
    middle = share + z * z / (2 * tries)
    spread = z * math.sqrt(share * (1 - share) / tries + z * z / (4 * tries * tries))
    scale = 1 + z * z / tries
    return ((middle - spread) / scale, (middle + spread) / scale)


def paired(pairs):
    """Difference of two shares over the same cases, and half of its 95 % interval.

    The interval is that of Agresti and Min, which adds half a case to each of the four outcomes:
    it stays honest where hardly any case differs.
    """
    tries = len(pairs)
    lost = sum(before and not after for before, after in pairs)
    won = sum(after and not before for before, after in pairs)
    more, less, of = won + 0.5, lost + 0.5, tries + 2
    spread = math.sqrt(more + less - (more - less) ** 2 / of) / of
    return ((won - lost) / tries, 1.959964 * spread)


def share(hits, tries):
    low, high = wilson(hits, tries)
    return {"hits": hits, "of": tries, "percent": round(100 * hits / tries, 1) if tries else None,
            "low": round(100 * low, 1), "high": round(100 * high, 1)}


def within(seconds):
    """In what time half and 95 % of the verdicts came."""
    ordered = sorted(seconds)
    if not ordered:
        return None
    return {"of": len(ordered), "half": ordered[(len(ordered) - 1) // 2],
            "most": ordered[math.ceil(0.95 * len(ordered)) - 1]}


def sum_up(rows):
    """Of rows of one class or one mess."""
    broken = [row for row in rows if not row["truth"]["healthy"]]
    whole = [row for row in rows if row["truth"]["healthy"]]
    return {"cases": len(rows),
            "found": share(sum(row["found"] for row in broken), len(broken)),
            "precision": share(sum(row.get("hits", 0) for row in broken),
                               sum(row.get("hits", 0) + row["extra"] for row in broken)),
            "only": share(sum(row["found"] and not row["extra"] for row in broken), len(broken)),
            "extra_roots": round(sum(row["extra"] for row in broken) / len(broken), 2)
            if broken else None,
            "linked": share(sum(row.get("linked", 0) for row in broken),
                            sum(row.get("consequences", 0) for row in broken)),
            "after_s": within([row["after_s"] for row in broken
                               if row.get("after_s") is not None]),
            "live_s": {key: within([row["live_%s_s" % key] for row in broken
                                    if row.get("live_%s_s" % key) is not None])
                       for key in ("first", "last")},
            "live_cases": sum("live" in row for row in broken),
            "live_named": sum(row.get("live", False) for row in broken),
            "taken_back": sum(bool(row.get("taken_back")) for row in rows),
            "healthy_hours": round(sum(row["minutes"] for row in whole) / 60, 1),
            "healthy_cases": len(whole), "false_verdicts": sum(row["false"] for row in whole),
            "failures": sum("failure" in row for row in rows)}


def by_class(rows):
    return {kind: sum_up([row for row in rows if row["class"] == kind])
            for kind in dict.fromkeys(row["class"] for row in rows)}


def by_mess(rows):
    clean = {(row["class"], row["case"]): row["found"] for row in rows if row["mess"] == "none"}
    figures = {}
    for mess in dict.fromkeys(row["mess"] for row in rows):
        of_mess = [row for row in rows if row["mess"] == mess]
        figures[mess] = sum_up(of_mess)
        pairs = [(clean[row["class"], row["case"]], row["found"]) for row in of_mess
                 if row["found"] is not None and clean.get((row["class"], row["case"])) is not None]
        if pairs and mess != "none":
            difference, half = paired(pairs)
            figures[mess]["difference_points"] = round(100 * difference, 1)
            figures[mess]["difference_half"] = round(100 * half, 1)
    return figures
