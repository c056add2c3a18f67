#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_verdicts.py - hold verdicts against the expectation of a fixture.

  check_verdicts.py CASEDIR VERDICTS.jsonl     print each difference; exit 1 if there are any

CASEDIR holds expectation.md with a fenced block `json expect`.  VERDICTS.jsonl is what
`culprit analyze --output verdicts CASEDIR/events.jsonl` prints: one verdict a line.  How a case is
judged is written in golden/detectors/README.md; this program checks its points 2 to 5.
"""
import json
import re
import sys

SAME = ("pattern", "kind", "severity", "completeness", "action")


def expectation(case):
    with open(case + "/expectation.md", encoding="utf-8") as f:
        found = re.search(r"```json expect\n(.*?)```", f.read(), re.S)
    if not found:
        raise SystemExit(case + ": no expectation block")
    return json.loads(found.group(1))


def in_order(wanted, got):
    """The first wanted item that does not occur in got after the ones before it, or None."""
    rest = iter(got)
    for item in wanted:
        if item not in rest:
            return item
    return None


def check_one(i, want, got, say):
    for key in SAME:
        if got.get(key) != want[key]:
            say("verdict %d: %s is %r, expected %r" % (i, key, got.get(key), want[key]))
    low, high = want["confidence"]
    if not isinstance(got.get("confidence"), int) or not low <= got["confidence"] <= high:
        say("verdict %d: confidence %r is outside %d..%d" % (i, got.get("confidence"), low, high))
    have = {(e["kind"], e["name"]): e["role"] for e in got.get("entities", [])}
    named = {(e["kind"], e["name"]): e["role"] for e in want["entities"]}
    for who, role in named.items():
        if have.get(who) != role:
            say("verdict %d: %s %s has role %r, expected %r" % (i, *who, have.get(who), role))
    for who, role in have.items():
        if role == "culprit" and named.get(who) != "culprit":
            say("verdict %d: %s %s must not be named culprit" % (i, *who))
    missing = in_order(want["evidence"], [e["uid"] for e in got.get("evidence_trail", [])])
    if missing:
        say("verdict %d: evidence %s is missing or out of order" % (i, missing))
    for part in ("headline", "remediation"):
        for word in want.get(part, []):
            if word.lower() not in got.get(part, "").lower():
                say("verdict %d: the %s does not mention %r" % (i, part, word))
    for key, value in want.get("attributes", {}).items():
        if got.get("attributes", {}).get(key) != value:
            say("verdict %d: attribute %s is %r, expected %r"
                % (i, key, got.get("attributes", {}).get(key), value))


def differences(case, lines):
    out = []
    expect = expectation(case)
    last = {}                                  # a stream holds a line a change: the last of an id counts
    for line in lines:
        if line.strip():
            verdict = json.loads(line)
            last[verdict.get("id", len(last))] = verdict
    verdicts = [v for v in last.values() if v.get("state") != "resolved"]
    if expect["detector"] != "incident":
        verdicts = [v for v in verdicts if v.get("pattern") == expect["detector"]]
    if len(verdicts) != expect["verdict_count"]:
        out.append("%d verdicts, expected %d" % (len(verdicts), expect["verdict_count"]))
    for i, (want, got) in enumerate(zip(expect["verdicts"], verdicts), 1):
        check_one(i, want, got, out.append)
    return out


def main(argv):
    if len(argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    with open(argv[2], encoding="utf-8") as f:
        out = differences(argv[1], f)
    for line in out:
        print(line)
    print("%d differences" % len(out))
    return 1 if out else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
