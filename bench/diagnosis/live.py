# SPDX-License-Identifier: Apache-2.0
"""What a pipeline that runs says of a case, and when, in event time.

The lines of a case reach culprit as their collectors would bring them (WAYS). `live_clock`
(bench/live_clock.c) puts them through the feed, the decoders, the runner and the processors of a
service on a clock that follows the arrivals, so no wall time is in any figure: here event time and
the clock are the same.
"""
import json
import os
import random
import subprocess
import tempfile

import messes
import score
from cluster import SECOND

PROGRAM = os.path.join("bench", "live_clock")
REST_S = 120    # how long the clock goes on behind the last line
# How lines get from where they are written to culprit: up to so many seconds on their way, and in
# batches that leave each so many seconds (0: line by line), as those of OpenTelemetry's SDKs.
# "posts": the same, and all of them to one listener, which is one source.
WAYS = {"files": (0.05, 0), "sdk": (0.2, 1), "batches": (0.5, 5), "posts": (0.5, 5)}


def program(binary):
    return os.path.join(os.path.dirname(binary), PROGRAM)


def lines_of(case):
    """The lines of the case without any mess; dumps as lines, as what passes them on writes them."""
    for each in (case, *case.beside):
        for fact in each.facts:
            if fact.source == "dump":
                fact.source = "dump_line"
    lines, _ = messes.write(case, "none")
    return lines


def schedule(key, lines, way):
    """[(arrival, path, text)] in order of arrival; lines of a path keep their order."""
    delay_s, batch_s = WAYS[way]
    dice = random.Random("%s/%s" % (key, way))
    leave, last, arrivals = {}, {}, []
    for line in lines:
        at = line.time + int(dice.uniform(0, delay_s) * SECOND)
        if batch_s:
            period = batch_s * SECOND
            at += (leave.setdefault(line.path, dice.randrange(period)) - at) % period
        at = last[line.path] = max(at, last.get(line.path, 0))
        arrivals.append((at, "posts" if way == "posts" else line.path, line.text))
    return sorted(arrivals, key=lambda arrival: arrival[0])


def run(binary, arrivals, options=()):
    """[(when it was said, what was evaluated, verdict)] in the order in which they were said."""
    end = arrivals[-1][0] + REST_S * SECOND
    text = "".join("%d\t%s\t%s\n" % (at, path, record) for at, path, part in arrivals
                   for record in part.split("\n")) + "%d\t%s\t\n" % (end, arrivals[-1][1])
    done = subprocess.run([program(binary), *options], input=text.encode("utf-8"),
                          capture_output=True, timeout=score.TIMEOUT_S, check=False)
    score.check_end(done.returncode, done.stderr, (0,))
    said = []
    for line in done.stdout.decode("utf-8").split("\n"):
        if line:
            at, evaluated, verdict = line.split("\t", 2)
            said.append((int(at), int(evaluated), json.loads(verdict)))
    return said


def at_once(binary, arrivals):
    """The last states of the verdicts when the same lines are analysed at once."""
    with tempfile.TemporaryDirectory() as work:
        for _, path, text in arrivals:
            path = os.path.join(work, path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "a", encoding="utf-8") as file:
                file.write(text + "\n")
        return score.diagnose(binary, work, (), work)


def is_root(verdict):
    return verdict["severity"] in score.GRAVE and verdict["state"] != "resolved" and \
        verdict.get("attributes", {}).get("culprit.root") == "true"


def sum_up(case, said):
    """How soon the root was named for good, in seconds from the first sign and from the last line
    that tells of the incident; and what was called a root on the way and is none in the end."""
    last_line = max((fact.time for fact in case.facts if fact.telling), default=None)
    states, named, named_as = {}, None, {}
    for at, _, verdict in said:
        states[verdict["id"]] = verdict
        if is_root(verdict):
            named_as[score.describe(verdict)] = verdict["id"]
        found = score.judge(case.truth, [state for state in states.values()
                                         if state["state"] != "resolved"])["found"]
        named = (at if named is None else named) if found else None
    standing = {score.describe(state) for state in states.values() if is_root(state)}
    return {"live": named is not None, "taken_back": sorted(set(named_as) - standing),
            "live_first_s": None if named is None else (named - case.began) / SECOND,
            "live_last_s": None if named is None or last_line is None
            else (named - last_line) / SECOND}


def measure(binary, case, way, options=()):
    return sum_up(case, run(binary, schedule(case.key, lines_of(case), way), options))
