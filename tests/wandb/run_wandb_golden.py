#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""culprit run --once with content: tracking exports what stormlog's own export does.

    run_wandb_golden.py BINARY

Each case of golden/ is run against mock_wandb.py as a user would run it, and what the mock
understood must not differ from expected.json in anything. Then what no golden holds: switched-off
parts, a run that goes on, statistics that are computed, a server that breaks off, what stays behind
on the disk.
"""
import json
import os
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from checks import Checks  # noqa: E402
from process import run  # noqa: E402
from wandb_server import KEY, Mock  # noqa: E402
import wandb_golden  # noqa: E402

GOLDEN = os.path.join(HERE, "golden")
CASES = ("small_no_alerts", "pinned_over_250", "artifacts_on", "attribution_bundle")


def load(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return json.load(file)


def write(path, value):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file, ensure_ascii=False)
    return path


def tree_of(folder):
    """Path and bytes of every file."""
    found = {}
    for base, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(base, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = file.read()
    return found


class Suite:
    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder
        self.checks = Checks()

    def place(self, case):
        """A copy of the case's tree, and the exporter's options for it."""
        place = tempfile.mkdtemp(dir=self.folder)
        tree = os.path.join(place, "tree")
        given = os.path.join(GOLDEN, case, "input")
        if os.path.isdir(os.path.join(given, "tree")):
            shutil.copytree(os.path.join(given, "tree"), tree)
        os.makedirs(os.path.join(place, "temporary"))
        config = load(given, "config.json")
        tracking = {"command_name": config["command_name"],
                    "stats_file": os.path.join(given, "stats.json")}
        if config["session_summary"] is not None:
            tracking["session_file"] = write(os.path.join(place, "session.json"),
                                             config["session_summary"])
        for key, option in (("output_path", "output_file"),
                            ("telemetry_sink_dir", "sink_directory"),
                            ("oom_dump_path", "oom_dump"),
                            ("attribution_bundle_dir", "attribution_bundle")):
            if config[key] is not None:
                tracking[option] = os.path.join(tree, config[key])
        options = {key: config[key] for key in
                   ("project", "entity", "run_id", "run_name", "group", "job_type", "log_tables",
                    "log_artifacts", "log_attribution") if config[key] is not None}
        return place, {**options, "content": "tracking", "tracking": tracking}

    def export(self, mock, place, options, events, preset=None):
        """Runs culprit; the configuration is JSON, which is YAML too."""
        pipeline = {"receivers": ["file"], "exporters": ["wandb"]}
        if preset is not None:
            pipeline["preset"] = preset
        config = {
            "receivers": {"file": {"include": [events], "start_at": "beginning"}},
            "exporters": {"wandb": {"base_url": mock.url, "api_key": "${env:WANDB_API_KEY}",
                                    **options}},
            "service": {"pipelines": {"export": pipeline}},
        }
        path = write(os.path.join(place, "config.yaml"), config)
        return run(self.binary, "run", "--once", "--config", path, folder=place, WANDB_API_KEY=KEY,
                   TMPDIR=os.path.join(place, "temporary"))

    def run_of(self, case, change=None, events=None, mock_arguments=(), preset=None):
        """-> (what the mock understood, culprit's result, the place)"""
        place, options = self.place(case)
        if change is not None:
            change(options)
        events = events or os.path.join(GOLDEN, case, "input", "events.jsonl")
        with Mock(*mock_arguments) as mock:
            done = self.export(mock, place, options, events, preset)
            decoded = mock.decoded()
        self.checks.equal(done.code, 0, "%s: exit code (%s)" % (case, done.errors()))
        self.checks.equal(decoded["violations"], [], "%s: rules that were broken" % case)
        return decoded, done, place

    def compare(self, case, decoded, what):
        path = write(os.path.join(tempfile.mkdtemp(dir=self.folder), "decoded.json"), decoded)
        if not self.checks.check(len(decoded["runs"]) == 1,
                                 "%s: %d runs" % (what, len(decoded["runs"]))):
            return
        differences = wandb_golden.compare(os.path.join(GOLDEN, case), load(path))
        self.checks.check(not differences, lambda: "%s: %d differences:\n  %s" % (
            what, len(differences), "\n  ".join(differences[:20])))

    def golden(self, case):
        before = tree_of(os.path.join(GOLDEN, case, "input", "tree"))
        decoded, _, place = self.run_of(case)
        self.compare(case, decoded, case)
        # The page beside the output is all that was added, and nothing stays in the temporary place.
        after = tree_of(os.path.join(place, "tree"))
        page = after.pop("out/stormlog_tracking_dashboard.html", None)
        self.checks.equal(page is not None, "out/track.json" in before, "%s: a page" % case)
        self.checks.equal(after, before, "%s: the tree" % case)
        self.checks.equal(os.listdir(os.path.join(place, "temporary")), [], case + ": left behind")

    def with_processors(self):
        """What the stages say of the events is on the page alone."""
        decoded, _, _ = self.run_of("pinned_over_250", preset="memory")
        self.compare("pinned_over_250", decoded, "with the preset memory")

    def faults(self):
        """A server that breaks off and refuses for a while gets the same run."""
        faults = ("at=storage,kind=drop_after,skip=2", "at=file_stream,kind=drop_after",
                  "at=graphql:createArtifact,kind=500,skip=1", "at=graphql,kind=drop,skip=5")
        arguments = [part for fault in faults for part in ("--fault", fault)]
        decoded, _, _ = self.run_of("artifacts_on", mock_arguments=arguments)
        self.compare("artifacts_on", decoded, "with faults")

    def computed(self):
        def no_stats(options):
            del options["tracking"]["stats_file"]
        decoded, _, _ = self.run_of("pinned_over_250", no_stats)
        summary = decoded["runs"][0]["summary"]
        events = [json.loads(line) for line in
                  open(os.path.join(GOLDEN, "pinned_over_250", "input", "events.jsonl"),
                       encoding="utf-8")]
        changes = [event["memory_change"] for event in events]
        seconds = events[-1]["timestamp"] - events[0]["timestamp"]
        grown = [change for change in changes if change > 0]
        shrunk = [change for change in changes if change < 0]
        for name, wanted in (
                ("peak_memory_bytes", max(event["memory_allocated"] for event in events)),
                ("total_events", 640), ("alert_count", 6),
                ("current_memory_allocated_bytes", events[-1]["memory_allocated"]),
                ("current_memory_reserved_bytes", events[-1]["memory_reserved"]),
                ("memory_utilization_percent",
                 events[-1]["memory_allocated"] / 85899345920 * 100.0),
                ("total_allocations", len(grown)), ("total_deallocations", len(shrunk)),
                ("total_allocation_bytes", sum(grown)),
                ("total_deallocation_bytes", -sum(shrunk)),
                ("tracking_duration_seconds", seconds),
                ("allocations_per_second", len(grown) / seconds),
                ("bytes_allocated_per_second", sum(grown) / seconds),
                ("history_retained_events", 640), ("history_dropped_events", 0),
                ("backend", "cuda")):
            self.checks.equal(summary.get("stormlog_" + name), wanted, "computed " + name)
        self.checks.check("stormlog_collector_health_status" not in summary,
                          "health that nobody told")

    def switched_off(self):
        def no_tables(options):
            options["log_tables"] = False
        decoded, _, place = self.run_of("artifacts_on", no_tables)
        got = decoded["runs"][0]
        self.checks.equal(len(got["history"]), 40, "rows without tables")
        self.checks.equal(sorted(artifact["type"] for artifact in got["artifacts"]),
                          ["stormlog-oom-dump", "stormlog-telemetry-sink", "stormlog-track-output"],
                          "artifacts without tables")
        self.checks.check("stormlog_tracking_dashboard_file" not in got["summary"]
                          and not os.path.exists(os.path.join(
                              place, "tree", "out", "stormlog_tracking_dashboard.html")),
                          "a page that was switched off")
        with Mock() as mock:
            place, options = self.place("small_no_alerts")
            options["mode"] = "disabled"
            done = self.export(mock, place, options,
                               os.path.join(GOLDEN, "small_no_alerts", "input", "events.jsonl"))
            self.checks.equal((done.code, mock.decoded()["runs"]), (0, []), "mode: disabled")

    def empty(self):
        """No event: a run with its summary and no table."""
        path = os.path.join(self.folder, "empty.jsonl")
        open(path, "w", encoding="utf-8").close()
        decoded, _, _ = self.run_of("small_no_alerts", events=path)
        got = decoded["runs"][0]
        self.checks.equal((got["history"], got["artifacts"], got["complete"]), ([], [], True),
                          "without events")
        self.checks.equal(got["summary"]["stormlog_chart_point_count"], 0, "points without events")

    def goes_on(self):
        """The second export under the same id goes on behind the first one's rows."""
        with Mock() as mock:
            for turn in (1, 2):
                place, options = self.place("small_no_alerts")
                options["run_id"] = "given-id"
                done = self.export(
                    mock, place, options,
                    os.path.join(GOLDEN, "small_no_alerts", "input", "events.jsonl"))
                self.checks.equal(done.code, 0, "turn %d (%s)" % (turn, done.errors()))
                decoded = mock.decoded()
                self.checks.equal(decoded["violations"], [], "turn %d" % turn)
                got = decoded["runs"][0]
                self.checks.equal([row["_step"] for row in got["history"]],
                                  list(range(16 * turn)), "steps of turn %d" % turn)
        self.checks.equal((len(decoded["runs"]), got["name"]), (1, "given-id"), "the run")

    def wrong(self):
        """Mistakes are told before anything is sent."""
        for name, text, said in (
                ("stats_file", '{"a": 1,\n "b" 2}', "stats_file.json:2:"),
                ("session_file", '{"session_id": null}', "has no session_id"),
                ("stats_file", None, "cannot be read")):
            with Mock() as mock:
                place, options = self.place("small_no_alerts")
                path = os.path.join(place, name + ".json")
                options["tracking"][name] = path
                if text is not None:
                    with open(path, "w", encoding="utf-8") as file:
                        file.write(text)
                done = self.export(mock, place, options, os.path.join(
                    GOLDEN, "small_no_alerts", "input", "events.jsonl"))
                self.checks.check(done.code not in (0, 70) and said in done.errors(),
                                  "%s %r: %d %s" % (name, text, done.code, done.errors()))
                self.checks.equal(mock.decoded()["runs"], [], "runs with a wrong " + name)


def main():
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(os.path.abspath(sys.argv[1]), folder)
        for case in CASES:
            suite.golden(case)
        suite.with_processors()
        suite.faults()
        suite.computed()
        suite.switched_off()
        suite.empty()
        suite.goes_on()
        suite.wrong()
    sys.exit(suite.checks.finish())


if __name__ == "__main__":
    main()
