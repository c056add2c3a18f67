#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What W&B shows of a job's verdicts and ranks: alerts, once each however often a verdict changes;
metrics that automations can watch, with their step; one chart of all ranks.

    run_wandb_metrics.py BINARY
"""
import fnmatch
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, os.path.join(HERE, "..", "healthy"))
import generate  # noqa: E402
import wandb_log  # noqa: E402
import wandb_sdk  # noqa: E402
from checks import Checks  # noqa: E402
from process import run  # noqa: E402
from run_wandb_runs import World  # noqa: E402
from wandb_server import KEY  # noqa: E402

JOB = generate.Job("leaky", 99, 6, steps=24, swing=0.2, leak_rank=4, leak_step=5,
                   leak_share=0.12, skew_s=0.0)


def leak():
    found = [line for rank in range(JOB.ranks) for line in generate.Rank(JOB, rank).lines()]
    found.sort(key=lambda line: json.loads(line)["timestamp_ns"])
    return "".join(line + "\n" for line in found)


def complete(runs):
    """The verdict has changed since it was opened."""
    return runs and runs[0]["alerts"] and runs[0]["history"] and \
        runs[0]["history"][-1]["_timestamp"] > generate.START_NS / 1e9 + 40


def check_metrics(checks, one, name):
    """Every row of values has the step metric, which the config names for each of its keys."""
    metrics = one["config"]["_wandb"]["m"]
    steps = [metric["1"] for metric in metrics if metric.get("5") is None]
    checks.equal(steps, ["culprit_elapsed_s"], name + ": step metric")
    place = 1 + [metric.get("1") for metric in metrics].index("culprit_elapsed_s")
    exact = {metric["1"] for metric in metrics if metric.get("5") == place and "1" in metric}
    globs = [metric["2"] for metric in metrics if metric.get("5") == place and "2" in metric]
    before = 0
    for row in one["history"]:
        keys = [key for key, value in row.items() if key[0] != "_" and not isinstance(value, dict)]
        if not keys:
            continue
        checks.check("culprit_elapsed_s" in row and row["culprit_elapsed_s"] >= before,
                     "%s: a row without or before its step: %r" % (name, row))
        before = row.get("culprit_elapsed_s", before)
        for key in keys:
            checks.check(key == "culprit_elapsed_s" or key in exact or
                         any(fnmatch.fnmatchcase(key, glob) for glob in globs),
                         "%s: %s has no step metric" % (name, key))


def live(world, checks):
    path = world.write("leaky.jsonl", leak())
    verdicts = os.path.join(world.folder, "verdicts.jsonl")
    world.live(path, complete, verdicts=verdicts)
    with open(verdicts, encoding="utf-8") as file:
        told = [one for one in map(json.loads, file) if one["severity"] != "info"]
    checks.check(len(told) > 1, "the verdict changed: %d lines" % len(told))
    one = world.runs()[0]
    checks.equal(len(one["alerts"]), 1, "alerts of a verdict that changes: %r" % one["alerts"])
    alert = one["alerts"][0]
    checks.equal((alert["title"], alert["wait_ms"]), (told[0]["headline"], 60000), "the alert")
    checks.equal(alert["severity"], {"warning": "WARN", "error": "ERROR", "critical": "ERROR"}[
        told[0]["severity"]], "severity of the alert")
    for word in ("Who: rank 4", "Job: leaky", "Verdict: " + told[0]["id"]):
        checks.check(word in alert["text"], "the alert says %r: %r" % (word, alert["text"]))
    figures = [row for row in one["history"] if "culprit_severity_level" in row]
    said = [(row["culprit_verdict_count"], row["culprit_severity_level"]) for row in figures]
    level = 1 + ["info", "warning", "error", "critical"].index(told[0]["severity"])
    checks.equal(said[0], (0, 0), "figures before the first verdict")
    checks.check(said[-1][0] >= 1 and level in [entry[1] for entry in said],
                 "figures of verdicts: %r" % said)
    checks.check(all(a != b for a, b in zip(said, said[1:])), "figures that change: %r" % said)
    check_metrics(checks, one, "live")
    # Read again without a store: the server has rows that came after it.
    world.live(path, lambda runs: runs[0]["finishes"] == 1 and not runs[0]["complete"])
    checks.equal(len(world.runs()[0]["alerts"]), 1, "alerts after reading again")


def thresholds(world, checks):
    path = world.write("leaky.jsonl", leak())
    for severity, project in (("none", "n"), ("critical", "c"), ("info", "i")):
        world.once(path, project=project, alert_severity=severity, alert_wait="0s")
    checks.equal([len(one["alerts"]) for one in world.runs()], [0, 0, 1],
                 "alerts with none, critical, info")


def chart_of(one):
    """Lines of the chart of all ranks by their name."""
    value = one["summary"]["culprit_memory_by_rank_table"]
    table = json.loads(one["files"][value["path"]]["text"])
    lines = {}
    for step, rank, used in table["data"]:
        lines.setdefault(rank, []).append((step, used))
    return lines


def charts(world, checks):
    path = world.write("leaky.jsonl", leak())
    world.once(path, project="all")
    world.once(path, project="some", max_ranks=2)
    world.once(path, project="none", log_tables=False)
    every, some, none = world.runs()
    lines = chart_of(every)
    checks.equal(sorted(lines), ["rank %d" % rank for rank in range(JOB.ranks)], "lines")
    checks.check(500 < sum(map(len, lines.values())) <= 4096, "points: %r" % lines.keys())
    for rank, line in lines.items():
        checks.equal([step for step, _ in line], sorted({step for step, _ in line}),
                     rank + ": in order of time")
    checks.check(lines["rank 4"][-1][1] > 1.2 * lines["rank 0"][-1][1], "the leaking rank's line")
    lines = chart_of(some)
    checks.check({"rank 0", "rank 1", "rank 4"} <= set(lines) and "rank 5" not in lines,
                 "with max_ranks: the lowest and whom the verdict blames: %r" % sorted(lines))
    panels = every["config"]["_wandb"]["visualize"]
    checks.equal(list(panels), ["culprit_memory_by_rank"], "charts")
    hidden = {metric["2"]: 2 in metric["6"] for metric in every["config"]["_wandb"]["m"]
              if "2" in metric}
    checks.check(len(hidden) == 4 and all(hidden.values()), "panels of each rank: %r" % hidden)
    checks.equal(none["config"]["_wandb"].get("visualize"), {}, "without tables: charts")
    checks.check(not any(2 in metric["6"] for metric in none["config"]["_wandb"]["m"]),
                 "without tables: panels are shown")


def told_of_the_job(world, checks):
    path = world.write("leaky.jsonl", leak())
    url = "https://wandb.ai/ent/models/runs/abc"
    world.once(path, tags=["mine"], training_run=url)
    one = world.runs()[0]
    wanted = {"culprit_job": "leaky", "culprit_world_size": JOB.ranks, "culprit_host_count": 1,
              "culprit_hosts": ["node0"], "culprit_training_run": url}
    checks.equal({key: one["config"].get(key) for key in wanted}, wanted, "config")
    checks.check(one["config"].get("culprit_version", "").count(".") == 2, "version of culprit")
    severity = one["summary"]["culprit_severity"]
    checks.equal(one["tags"], ["mine", "culprit-" + severity], "tags")
    checks.equal(one["exitcode"], 0, "a job that did not die: exit code")
    done = run(world.binary, "validate", "--config", world.config(path, training_run="nonsense"))
    checks.check(done.code != 0 and "training_run" in done.errors() + done.text(), "no URL")


def a_job_that_died(world, checks):
    """Recorded: a rank raised an exception, which ended the job."""
    recorded = os.path.join(HERE, "..", "golden", "real_exits", "exception-2", "**")
    with open(world.config(recorded), encoding="utf-8") as file:
        config = json.load(file)
    config["service"]["pipelines"]["memory"]["preset"] = "all"
    path = world.write("died.json", json.dumps(config))
    done = run(world.binary, "run", "--once", "--config", path)
    checks.equal(done.code, 0, "exit code: " + done.errors()[-800:])
    one = world.runs()[0]
    checks.equal((one["complete"], one["exitcode"]), (True, 1), "a job that died")
    checks.check("culprit-error" in one["tags"] or "culprit-critical" in one["tags"],
                 "a job that died: tags %r" % one["tags"])


def as_set(metrics):
    """With the name of the step instead of its place: the SDK lists them in any order."""
    names = [None] + [metric.get("1") for metric in metrics]
    return sorted(json.dumps(dict(metric, **{"5": names[metric.get("5", 0)]}), sort_keys=True)
                  for metric in metrics)


def offline(world, checks):
    """What the real SDK makes of the record in the log."""
    path = world.write("leaky.jsonl", leak())
    world.once(path, mode="offline", entity="ent", directory=os.path.join(world.folder, "wandb"))
    (name,) = os.listdir(os.path.join(world.folder, "wandb"))
    folder = os.path.join(world.folder, "wandb", name)
    log = [each for each in os.listdir(folder) if each.endswith(".wandb")][0]
    kinds = [kind for kind, _ in wandb_log.read(os.path.join(folder, log))]
    checks.equal(kinds.count("alert"), 1, "alerts in the log")
    try:
        wandb_sdk.fetch()
    except RuntimeError as error:
        checks.skip(str(error))
        return
    sdk = wandb_sdk.Sdk(tempfile.mkdtemp(dir=world.folder), world.mock.url, KEY)
    code, said = sdk.run("sync", os.path.join("wandb", name), folder=world.folder)
    checks.equal(code, 0, "wandb sync: " + said[-800:])
    (one,) = world.runs()
    checks.check(one["complete"], "synced: complete")
    world.once(path, project="online")
    online = [each for each in world.runs() if each["project"] == "online"][0]
    checks.equal(as_set(one["config"]["_wandb"]["m"]), as_set(online["config"]["_wandb"]["m"]),
                 "synced: definitions of metrics")
    for key in ("culprit_job", "culprit_world_size", "culprit_hosts", "culprit_version"):
        checks.equal(one["config"].get(key), online["config"][key], "synced: " + key)
    checks.equal(one["tags"], online["tags"], "synced: tags")
    checks.equal(one["config"]["_wandb"]["visualize"], online["config"]["_wandb"]["visualize"],
                 "synced: charts")
    check_metrics(checks, one, "synced")
    checks.equal([(alert["severity"], alert["wait_ms"]) for alert in one["alerts"]],
                 [(one["alerts"][0]["severity"], 60000)] if one["alerts"] else [()],
                 "synced: the alert")


def main():
    binary = os.path.abspath(sys.argv[1])
    checks = Checks()
    for part in (live, thresholds, charts, told_of_the_job, a_job_that_died, offline):
        with World(binary, checks) as world:
            part(world, checks)
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
