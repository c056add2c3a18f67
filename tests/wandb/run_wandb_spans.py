#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Spans and phases as tables of W&B runs: they say what the document of spans says.

    run_wandb_spans.py BINARY
"""
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from checks import Checks  # noqa: E402
from process import run  # noqa: E402
from wandb_server import KEY, Mock  # noqa: E402

JOB = os.path.join(HERE, "..", "golden", "real", "sigkill-rank1")
STREAM = os.path.join(HERE, "..", "golden", "spans", "038-training-8-ranks", "events.jsonl")


def exported(binary, checks, include, folder):
    """-> the documents of spans by source or job, the runs of W&B by their name without the start."""
    documents = os.path.join(folder, "spans.json")
    config = os.path.join(folder, "culprit.yaml")
    with Mock() as mock:
        with open(config, "w", encoding="utf-8") as file:
            json.dump({
                "receivers": {"file": {"include": include}},
                "exporters": {
                    "json": {"content": "spans", "path": documents},
                    "wandb": {"base_url": mock.url, "api_key": KEY, "project": "spans",
                              "post_interval": "10ms"}},
                "service": {"pipelines": {"p": {"receivers": ["file"], "preset": "all",
                                                "exporters": ["json", "wandb"]}}}}, file)
        done = run(binary, "run", "--once", "--config", config)
        checks.equal(done.code, 0, "exit code: " + done.errors()[-1500:])
        decoded = mock.decoded()
    checks.equal(decoded["violations"], [], "rules of the server that were broken")
    with open(documents, encoding="utf-8") as file:
        found = [json.loads(line) for line in file]
    return found, {one["name"].rpartition("-")[0]: one for one in decoded["runs"]}


def table(checks, one, key):
    """The rows of the table that the summary of a run names, as objects."""
    path = one["summary"].get(key, {}).get("path")
    content = one["files"].get(path)
    checks.check(content is not None, "%s: is uploaded: %r" % (key, path))
    if content is None:
        return []
    document = json.loads(content["text"])
    return [dict(zip(document["columns"], row)) for row in document["data"]]


def phases(binary, checks, folder):
    documents, runs = exported(binary, checks, [JOB + "/**"], folder)
    document = [one for one in documents if one.get("phases")][0]
    rows = table(checks, runs["culprit-none"], "culprit_phases")
    checks.check("culprit_spans" not in runs["culprit-none"]["summary"],
                 "a job without a stream has no table of its spans")
    checks.equal(sorted(row["phase"] for row in rows),
                 sorted(one["phase"] for one in document["phases"]), "phases")
    for row in rows:
        one = [p for p in document["phases"] if p["phase"] == row["phase"]][0]
        name = "phase " + row["phase"]
        checks.equal(row["openings"], one["openings"], name + ": openings")
        for column, key in (("thread_s", "thread_seconds"), ("busy_s", "busy_seconds"),
                            ("idle_s", "idle_seconds")):
            checks.equal(row[column], one[key], "%s: %s" % (name, column))
        inside = sum(rank["inside"] for rank in one["ranks"])
        checks.equal(row["ranks_inside"], inside, name + ": ranks inside")
        if row["lagging_rank"] is not None:
            worst = max(one["ranks"], key=lambda rank: rank["lag_seconds"])
            checks.equal((row["lagging_rank"], row["lag_s"], row["slowest_in"]),
                         (worst["rank"], worst["lag_seconds"], worst["slowest"]), name + ": lags")
    checks.equal([row["lagging_rank"] for row in rows
                  if row["phase"] == "epoch / step / backward"], [1], "who lags in backward")


def stream(binary, checks, folder):
    documents, runs = exported(binary, checks, [STREAM], folder)
    checks.equal(list(runs), ["culprit"], "runs")
    rows = table(checks, next(iter(runs.values())), "culprit_spans")
    spans = documents[0]["spans"]
    tops = [row for row in rows if row["depth"] == 0]
    roots = [span for span in spans if span["parent"] is None]
    checks.equal(sorted((row["name"], row["state"] == "done", row["thread_s"], row["bytes"],
                         row["open_s"]) for row in tops),
                 sorted((span["name"][-1], span["done"], span["active_cpu_seconds"],
                         span["nbytes_total"], span["stop"] - span["enqueued"])
                        for span in roots), "roots")
    checks.check(len(rows) > len(tops), "spans below the roots have rows as well")
    checks.check(any(row["spans"] > 1 for row in rows), "spans alike are one row")


def main():
    binary = os.path.abspath(sys.argv[1])
    checks = Checks()
    for part in (phases, stream):
        with tempfile.TemporaryDirectory() as folder:
            part(binary, checks, folder)
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
