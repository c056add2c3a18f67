#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""wandb_golden.py - bring a run that mock_wandb.py decoded into a form two clients can share.

  wandb_golden.py normalise DECODED.json OUTDIR   write OUTDIR/expected.json and OUTDIR/files/
  wandb_golden.py compare CASEDIR DECODED.json    print each difference; exit 1 if there are any

DECODED.json is the answer of GET /__decoded and must hold exactly one run.
What is dropped or replaced is listed in golden/wandb/README.md.  Numbers are compared as
numbers (1 equals 1.0), doubles exactly; order matters in history and in lists, not in objects.
"""
import json
import os
import re
import sys

SDK_ONLY = ("config.yaml", "wandb-metadata.json", "requirements.txt", "output.log",
            "wandb-summary.json")
VOLATILE = ("_timestamp", "_runtime", "_wandb")


def media(value):
    """A table-file or html-file value with its hashes and ids blanked."""
    out = dict(value, sha256="$SHA256", size="$SIZE")
    out["path"] = re.sub(r"_[0-9a-f]{20}(\.table\.json|\.html)$", r"_$SHA20\1", value["path"])
    for k in ("artifact_path", "_latest_artifact_path"):
        if k in out:
            out[k] = re.sub(r"//[A-Za-z0-9]+", "//$CLIENT_ID", out[k])
    return out


def row(values):
    out = {}
    for k, v in values.items():
        if k in VOLATILE:
            out[k] = "$VOLATILE"
        else:
            out[k] = media(v) if isinstance(v, dict) and "_type" in v else v
    return out


def parse(text):
    """JSON in which NaN and infinities stand bare, made strict."""
    return json.loads(text, parse_constant=lambda c: {"$float": c})


def normalise(decoded):
    """-> (expected, {file name: text})"""
    if len(decoded["runs"]) != 1:
        raise SystemExit("expected one run, found %d" % len(decoded["runs"]))
    run, texts = decoded["runs"][0], {}
    rid = run["name"]
    config = {k: v for k, v in run["config"].items() if k != "_wandb"}
    exp = {
        "run": {k: run[k] for k in ("project", "display_name", "group", "job_type", "tags",
                                    "notes", "complete", "exitcode", "finishes")},
        "config": config,
        "visualize": run["config"].get("_wandb", {}).get("visualize", {}),
        "summary": row(run["summary"]),
        "history": [row(r) for r in run["history"]],
        "files": {}, "artifacts": [], "violations": decoded["violations"],
    }
    for path, f in run["files"].items():
        if path in SDK_ONLY:
            continue
        name = re.sub(r"_[0-9a-f]{20}(\.table\.json|\.html)$", r"_$SHA20\1", path)
        keep = "files/" + name.replace("_$SHA20", "")
        if name.endswith(".table.json"):
            exp["files"][name] = {"json": keep}
            texts[keep] = json.dumps(parse(f["text"]), ensure_ascii=False) + "\n"
        else:
            exp["files"][name] = {"html": True}
            if not re.match(r"\s*<!doctype html", f["text"], re.I):
                exp["violations"].append(name + " is not an HTML document")
    for a in run["artifacts"]:
        name = a["name"].replace("run-%s-" % rid, "run-$RUN_ID-")
        art = {k: a[k] for k in ("type", "state", "version", "aliases", "history_step",
                                 "description", "metadata")}
        art["name"] = name
        if a["type"] == "run_table":
            art["files"] = {}
            for path, f in a["files"].items():
                keep = "files/artifacts/%s/%s" % (name.replace("$", ""), path)
                art["files"][path] = {"json": keep}
                texts[keep] = json.dumps(parse(f["text"]), ensure_ascii=False) + "\n"
        elif a["type"] != "stormlog-tracking-dashboard":   # the page itself is the client's own
            art["digest"], art["manifest"] = a["digest"], a["manifest"]
        exp["artifacts"].append(art)
    exp["artifacts"].sort(key=lambda a: a["name"])
    return exp, texts


def differences(want, got, where, out):
    if isinstance(want, dict) and isinstance(got, dict):
        for k in sorted(set(want) | set(got)):
            if k not in got:
                out.append("%s.%s is missing" % (where, k))
            elif k not in want:
                out.append("%s.%s is not expected: %.120r" % (where, k, got[k]))
            else:
                differences(want[k], got[k], "%s.%s" % (where, k), out)
    elif isinstance(want, list) and isinstance(got, list):
        if len(want) != len(got):
            out.append("%s has %d items, expected %d" % (where, len(got), len(want)))
        for i, (a, b) in enumerate(zip(want, got)):
            differences(a, b, "%s[%d]" % (where, i), out)
    elif isinstance(want, bool) != isinstance(got, bool) or want != got:
        out.append("%s is %.200r, expected %.200r" % (where, got, want))


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def compare(case, decoded):
    want = load(os.path.join(case, "expected.json"))
    got, texts = normalise(decoded)
    out = []
    differences(want, got, "expected", out)
    for base, _, names in os.walk(os.path.join(case, "files")):
        for n in names:
            path = os.path.join(base, n)
            rel = os.path.relpath(path, case).replace(os.sep, "/")
            if rel not in texts:
                out.append(rel + " is missing")
                continue
            with open(path, encoding="utf-8", newline="") as f:
                text = f.read()
            if rel.endswith(".table.json"):
                differences(json.loads(text), json.loads(texts[rel]), rel, out)
            elif text != texts[rel]:
                out.append(rel + " differs")
    return out


def main(argv):
    if len(argv) == 4 and argv[1] == "normalise":
        exp, texts = normalise(load(argv[2]))
        texts["expected.json"] = json.dumps(exp, indent=1, ensure_ascii=False) + "\n"
        for rel, text in texts.items():
            path = os.path.join(argv[3], rel)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8", newline="") as f:
                f.write(text)
        return 0
    if len(argv) == 4 and argv[1] == "compare":
        out = compare(argv[2], load(argv[3]))
        for line in out[:200]:
            print(line)
        print("%d differences" % len(out))
        return 1 if out else 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv))
