#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do the Grafana dashboards and the alert rules ask for what culprit shows?

    run_dashboards.py BINARY

First the files: dashboards are held against what Grafana needs of them and against docs/metrics.md,
rules by `promtool test rules` (alert_cases.py). Then `culprit run` over recordings of all
detectors, with every exporter and the store; a Prometheus server with our rules scrapes it and is
asked every query of every panel, variable and annotation. None may fail, each metric and label it
names must be there, and each must have an answer, but for those of NOTHING_HERE.

Without the programs prometheus and promtool those parts are left out with a message; where CI is
"true" it fails instead.
"""
import glob
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, HERE)
import alert_cases  # noqa: E402
import promql  # noqa: E402
import run_prometheus  # noqa: E402
import test_metrics_page  # noqa: E402
from checks import Checks  # noqa: E402
from process import environment  # noqa: E402
from run_prometheus import ask, free_ports, wait_for  # noqa: E402

GRAFANA = os.path.join(ROOT, "examples", "grafana")
RULES = os.path.join(ROOT, "examples", "prometheus", "rules.yaml")
GOLDEN = os.path.join(HERE, "..", "golden")
LEAK = os.path.join(GOLDEN, "real", "leak-rank2")
SPANS = os.path.join(GOLDEN, "spans", "034-bad-lines", "events.jsonl")
UNUSED = ("%s node-1 kernel: oom_reaper: reaped process 4711 (python3), now anon-rss:0kB, "
          "file-rss:0kB, shmem-rss:0kB\n")
# Families that need brokers that answer.
NOTHING_HERE = {"culprit_kafka_receiver_lag_seconds", "culprit_kafka_receiver_offset_lag"}
# What Prometheus adds to each sample, and its own families.
TARGET = {"job", "instance"}
SYNTHETIC = {"up": set()}
PANELS = {"stat", "table", "timeseries", "state-timeline", "bargauge"}
UNITS = {"none", "short", "s", "bytes", "percentunit", "cps", "reqps", "dateTimeAsIso"}
WIDTH = 24
LEGEND = re.compile(r"{{\s*(\w+)\s*}}")
VARIABLE = re.compile(r"\$(?:{(\w+)}|(\w+))")
VALUES = re.compile(r"label_values\((.*), (\w+)\)$")
BUILT_IN = {"__rate_interval": "10s", "__range": "1m"}


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def family_of(metric):
    return re.sub("_(bucket|sum|count)$", "", metric)


# -- the files -----------------------------------------------------------------------------------


class Dashboard:
    def __init__(self, path):
        self.name = os.path.basename(path)
        self.content = load(path)
        self.panels = [panel for panel in self.content["panels"] if panel["type"] != "row"]
        self.variables = {one["name"]: one for one in self.content["templating"]["list"]}

    def queries(self):
        """(where, expression, legend): of panels, variables and annotations."""
        for panel in self.panels:
            for target in panel["targets"]:
                legend = target["legendFormat"]
                yield ("%s, %s %s" % (self.name, panel["title"], target["refId"]),
                       target["expr"], "" if legend == "__auto" else legend)
        for name, variable in self.variables.items():
            if variable["type"] == "query":
                yield "%s, variable %s" % (self.name, name), variable["query"]["query"], ""
        for one in self.annotations("prometheus"):
            yield ("%s, annotation %s" % (self.name, one["name"]), one["expr"],
                   one["titleFormat"] + one["textFormat"])

    def annotations(self, source):
        return [one for one in self.content["annotations"]["list"]
                if one["datasource"]["type"] == source]

    def filled(self, expression, chosen=".*"):
        """The expression as Grafana sends it, with `chosen` in place of each variable."""
        def value(match):
            name = match.group(1) or match.group(2)
            return BUILT_IN.get(name, chosen)
        return VARIABLE.sub(value, expression)


class Files:
    """What can be said of the files alone."""

    def __init__(self, checks):
        self.checks = checks
        self.page = test_metrics_page.page_rows()
        paths = sorted(glob.glob(os.path.join(GRAFANA, "dashboards", "*.json")))
        self.dashboards = [Dashboard(path) for path in paths]

    def structure(self, board):
        check, content = self.checks.check, board.content
        self.checks.equal(content["uid"] + ".json", board.name, board.name + ": uid")
        check(content["title"] and content["description"], board.name + ": title, description")
        ids = [panel["id"] for panel in content["panels"]]
        self.checks.equal(len(set(ids)), len(ids), board.name + ": ids of panels that differ")
        check(not any(panel.get("panels") for panel in content["panels"]),
              board.name + ": panels inside of a row are not looked at here")
        taken = {}
        for panel in content["panels"]:
            where, place = "%s, %s" % (board.name, panel["title"]), panel["gridPos"]
            check(place["x"] >= 0 and place["w"] > 0 and place["x"] + place["w"] <= WIDTH,
                  where + ": is wider than the page")
            for cell in ((x, y) for x in range(place["x"], place["x"] + place["w"])
                         for y in range(place["y"], place["y"] + place["h"])):
                if cell in taken:
                    check(False, "%s lies on %s" % (where, taken[cell]))
                    break
                taken[cell] = panel["title"]
        titles = [panel["title"] for panel in board.panels]
        self.checks.equal(len(set(titles)), len(titles), board.name + ": titles that differ")
        for panel in board.panels:
            self.panel("%s, %s" % (board.name, panel["title"]), panel)
        text = json.dumps(content)
        uids = set(re.findall(r'"datasource": {"type": "prometheus", "uid": "([^"]*)"}', text))
        self.checks.equal(uids, {"${datasource}"}, board.name + ": uids of data sources")
        self.checks.equal(text.count('"datasource":'),
                          text.count("${datasource}") + text.count("-- Grafana --"),
                          board.name + ": each data source is the variable")
        self.own_annotations(board)
        known = set(board.variables) | set(BUILT_IN) | {"__all"}
        used = {a or b for a, b in VARIABLE.findall(text)}
        check(used <= known, "%s: there is no variable %s" % (board.name, sorted(used - known)))
        check(set(board.variables) <= used, "%s: variables that nobody uses" % board.name)

    def own_annotations(self, board):
        """Those that the exporter grafana creates, by the tag that all of them have."""
        found = board.annotations("grafana")
        self.checks.equal([one["target"]["tags"] for one in found], [["culprit"]],
                          board.name + ": annotations of the exporter")
        for one in found:
            self.checks.equal((one["datasource"], one["target"]["type"], one["target"]["matchAny"]),
                              ({"type": "grafana", "uid": "-- Grafana --"}, "tags", False),
                              board.name + ": " + one["name"])
            self.checks.check(one["enable"] and 0 < one["target"]["limit"] <= 100,
                              board.name + ": " + one["name"] + " shows nothing, or too much")
        every = len(found) + len(board.annotations("prometheus"))
        self.checks.equal(every, len(board.content["annotations"]["list"]),
                          board.name + ": annotations of other sources")

    def panel(self, where, panel):
        check = self.checks.check
        check(panel["type"] in PANELS, "%s: the type %s" % (where, panel["type"]))
        check(len(panel["description"]) > 20 and panel["description"].endswith("."),
              where + ": has no description")
        units = [panel["fieldConfig"]["defaults"].get("unit")]
        units += [one["value"] for rule in panel["fieldConfig"]["overrides"]
                  for one in rule["properties"] if one["id"] == "unit"]
        check(set(units) <= UNITS, "%s: the units %s" % (where, units))
        letters = [target["refId"] for target in panel["targets"]]
        check(letters and len(set(letters)) == len(letters), where + ": refIds")
        for target in panel["targets"]:
            check(target.get("instant", False) != target.get("range", False),
                  "%s %s: either instant or range" % (where, target["refId"]))

    def names(self, where, expression, legend):
        """Each metric is on docs/metrics.md, with the labels that are asked of it."""
        try:
            names = promql.Names(expression)
        except ValueError as error:
            self.checks.check(False, "%s: %s" % (where, error))
            return None
        self.checks.check(names.matched, where + ": names no metric")
        known = set(TARGET)
        for metric, labels in names.matched.items():
            row = self.page.get(metric) or self.page.get(family_of(metric))
            if not self.checks.check(row or metric in SYNTHETIC, "%s: docs/metrics.md has no %s"
                                     % (where, metric)):
                continue
            own = TARGET | (set(re.findall(r"\w+", row[1])) if row else SYNTHETIC[metric])
            if row and row[0] == "histogram" and metric.endswith("_bucket"):
                own.add("le")
            self.checks.check(labels <= own, "%s: %s has no label %s"
                              % (where, metric, sorted(labels - own)))
            known |= own
        asked = names.listed | set(LEGEND.findall(legend))
        self.checks.check(asked <= known, "%s: no metric of it has the label %s"
                          % (where, sorted(asked - known)))
        return names

    def run(self):
        self.checks.check(len(self.dashboards) >= 2, "the dashboards are not found")
        shown = set()
        for board in self.dashboards:
            self.structure(board)
            for where, expression, legend in board.queries():
                match = VALUES.match(expression)
                if match:
                    expression, legend = match.group(1), "{{%s}}" % match.group(2)
                names = self.names(where, board.filled(expression), legend)
                shown |= {family_of(metric) for metric in names.matched} if names else set()
                shown |= set(names.matched) if names else set()
        for metric in sorted(set(self.page) - shown):
            self.checks.check(False, "no dashboard shows " + metric)
        uids = {board.content["uid"] for board in self.dashboards}
        self.checks.equal(len(uids), len(self.dashboards), "uids of dashboards that differ")
        for board in self.dashboards:
            for one in board.content["links"]:
                self.checks.check(one["url"].rsplit("/", 1)[1] in uids,
                                  "%s: the link %s leads nowhere" % (board.name, one["url"]))

    def rules(self, folder):
        """Each alert fires when it should, and does not when it should not."""
        path = os.path.join(folder, "alert_cases.json")
        with open(path, "w", encoding="utf-8") as file:
            file.write(alert_cases.promtool_file(os.path.abspath(RULES)))
        done = subprocess.run(["promtool", "check", "rules", RULES], capture_output=True,
                              check=False)
        self.checks.equal(done.returncode, 0, "promtool check rules: " + done.stderr.decode())
        done = subprocess.run(["promtool", "test", "rules", path], capture_output=True,
                              check=False)
        self.checks.equal(done.returncode, 0, "promtool test rules: "
                          + (done.stdout + done.stderr).decode())
        for alert, cases in alert_cases.CASES.items():
            fired = {bool(fires) for _, _, _, fires in cases}
            self.checks.equal(fired, {True, False}, alert + ": a case that fires, and one not")


# -- a Prometheus server -------------------------------------------------------------------------


class Culprit(run_prometheus.Culprit):
    """culprit over a recording for each detector, and one that has lines that are none."""

    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder
        self.shown, self.health, self.own, self.http, dead = free_ports(5)
        self.config, self.log = os.path.join(folder, "culprit.yaml"), os.path.join(folder, "log")
        self.broken = os.path.join(folder, "broken.jsonl")
        self.process = None
        with open(glob.glob(LEAK + "/rank0/*.jsonl")[0], encoding="utf-8") as file:
            self.line = next(line for line in file if '"sample"' in line)
        seconds = json.loads(self.line)["timestamp_ns"] // 10**9
        self.unused = UNUSED % time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(seconds))
        self.spoil()
        brokers = ["127.0.0.1:%d" % dead]
        kubeconfig = os.path.join(folder, "kubeconfig")
        with open(kubeconfig, "w", encoding="utf-8") as file:
            json.dump({"current-context": "x", "users": [{"name": "x", "user": {"token": "t"}}],
                       "clusters": [{"name": "x", "cluster": {"server": "http://" + brokers[0]}}],
                       "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}]}, file)
        receivers = {"file/leak": {"include": [LEAK + "/rank*/*.jsonl"],
                                   "start_at": "beginning"},
                     "file/broken": {"include": [self.broken], "start_at": "beginning"},
                     "file/spans": {"include": [SPANS], "start_at": "beginning",
                                    "format": "spans"},
                     "http": {"endpoint": "127.0.0.1:%d" % self.http},
                     "kubernetes": {"kubeconfig": kubeconfig},
                     "kafka": {"brokers": brokers, "topics": ["events"], "group_id": "culprit"},
                     # What is asked need not answer.
                     "nccl_ras": {"endpoints": ["127.0.0.1:%d" % dead]},
                     "sysfs": {"root": folder, "node": "node-1"},
                     # Not there: their counters are.
                     "kmsg": {"path": "/nonexistent/kmsg"},
                     "journald": {"directory": "/nonexistent/journal"},
                     # Its own metrics: they answer, and hold nothing that is looked for.
                     "prometheus_scrape": {
                         "endpoints": ["http://127.0.0.1:%d/metrics" % self.own],
                         "interval": "1s", "timeout": "1s"}}
        own = {"preset": "all",
               "exporters": ["prometheus", "json", "kafka", "alertmanager", "kubernetes"],
               "evaluate_every": "1s", "allowed_lateness": "1s", "settle": "1s",
               "idle_timeout": "1s"}
        pipelines = {"memory": {**own, "receivers": ["file/leak", "kafka", "kubernetes"]},
                     "rest": {**own, "receivers": ["file/broken", "http"]},
                     "spans": {**own, "receivers": ["file/spans"]},
                     "node": {**own, "receivers": ["kmsg", "journald"]},
                     "asked": {**own, "receivers": ["nccl_ras", "sysfs"]},
                     "scraped": {**own, "receivers": ["prometheus_scrape"]}}
        for name, events in sorted(self.cases().items()):
            receivers["file/" + name] = {"include": [events], "start_at": "beginning"}
            pipelines[name] = {**own, "receivers": ["file/" + name]}
        with open(self.config, "w", encoding="utf-8") as file:
            json.dump({
                "receivers": receivers,
                "exporters": {"prometheus": {"endpoint": "127.0.0.1:%d" % self.shown},
                              "json": {"path": os.path.join(folder, "verdicts.jsonl")},
                              "alertmanager": {"endpoint": "http://" + brokers[0]},
                              "kubernetes": {"kubeconfig": kubeconfig},
                              "kafka": {"brokers": brokers, "topic": "verdicts",
                                        "timeout": "500ms",
                                        "retry_on_failure": {"initial_interval": "500ms",
                                                             "max_interval": "1s"}}},
                "extensions": {"health_check": {"endpoint": "127.0.0.1:%d" % self.health},
                               "file_storage": {"directory": os.path.join(folder, "store")}},
                "service": {"extensions": ["health_check", "file_storage"],
                            "telemetry": {"metrics": {"endpoint": "127.0.0.1:%d" % self.own}},
                            "pipelines": pipelines}}, file)

    @staticmethod
    def cases():
        """Of each detector the first recording that has a verdict."""
        found = {}
        for path in sorted(glob.glob(os.path.join(GOLDEN, "detectors", "*", "*",
                                                  "verdicts.jsonl"))):
            if os.path.getsize(path) > 0:
                case = os.path.dirname(path)
                found.setdefault(os.path.basename(os.path.dirname(case)),
                                 os.path.join(case, "events.jsonl"))
        return found

    def spoil(self):
        with open(self.broken, "a", encoding="utf-8") as file:
            # An event, one that is cut off, one that no processor takes, and a line of no interest.
            file.write(self.line + self.line[:40] + "\n" + self.unused + "no event\n")

    def post(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.http,
                                                timeout=run_prometheus.PATIENCE_S)
        try:
            connection.request("POST", "/v1/events", self.line,
                               {"Content-Type": "application/x-ndjson"})
            return connection.getresponse().status
        finally:
            connection.close()


class Server:
    """Prometheus, with the rules of the examples; times in it are shortened."""

    def __init__(self, culprit, folder):
        self.port = free_ports(1)[0]
        config = os.path.join(folder, "prometheus.yml")
        targets = {"culprit-verdicts": culprit.shown, "culprit": culprit.own}
        with open(config, "w", encoding="utf-8") as file:
            json.dump({"global": {"scrape_interval": "2s", "scrape_timeout": "2s",
                                  "evaluation_interval": "1s"},
                       "rule_files": [os.path.abspath(RULES)],
                       "scrape_configs": [
                           {"job_name": name,
                            "static_configs": [{"targets": ["127.0.0.1:%d" % port]}]}
                           for name, port in targets.items()]}, file)
        self.log = os.path.join(folder, "prometheus.log")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                ["prometheus", "--config.file=" + config, "--log.level=warn",
                 "--storage.tsdb.path=" + os.path.join(folder, "tsdb"),
                 "--web.listen-address=127.0.0.1:%d" % self.port],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def ready(self):
        return wait_for(lambda: (ask(self.port, "/-/ready") or (0,))[0] == 200, self.process)

    def said(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def api(self, path, **arguments):
        """(data, None), or (None, what is wrong)."""
        query = "?" + urllib.parse.urlencode(arguments, doseq=True) if arguments else ""
        answer = ask(self.port, "/api/v1/" + path + query)
        if answer is None or not answer[1].startswith("application/json"):
            return None, "no answer: %s" % (answer,)
        content = json.loads(answer[2])
        if content["status"] != "success" or content.get("warnings"):
            return None, content.get("error") or str(content.get("warnings"))
        return content["data"], None

    def query(self, expression):
        data, _ = self.api("query", query=expression)
        return data["result"] if data else []

    def stop(self):
        self.process.terminate()
        self.process.wait(run_prometheus.PATIENCE_S)


class Asked:
    """What the server must know."""

    def __init__(self, checks, files, culprit, server):
        self.checks, self.files, self.culprit, self.server = checks, files, culprit, server
        self.labels = {}

    def labels_of(self, metric):
        """The labels that its series have here, all together."""
        if metric not in self.labels:
            data, error = self.server.api("labels", **{"match[]": metric})
            self.checks.check(error is None, "labels of %s: %s" % (metric, error))
            self.labels[metric] = set(data or ())
        return self.labels[metric]

    def ready(self):
        """Every detector's verdict is there, and counters were seen to rise."""
        patterns = set(self.culprit.cases()) - {"incident"} | {"memory_first_cause"}

        def there():
            found = self.server.query("culprit_verdict_open")
            return {one["metric"]["pattern"] for one in found} >= patterns
        self.checks.check(wait_for(there, self.server.process), lambda: "verdicts of %s: %s" % (
            sorted(patterns), self.server.query("culprit_verdict_open")))
        with open(os.path.join(os.path.dirname(SPANS), "expected.json"), encoding="utf-8") as file:
            refused = len(json.load(file)["rejected"])
        spans = ("sum(culprit_span_refused_total) == %d and count(culprit_span_phase_lag_seconds) "
                 "> 0" % refused)
        self.checks.check(wait_for(lambda: self.server.query(spans)), "no answer to " + spans)
        self.checks.check(wait_for(lambda: self.server.query(
            "min(count_over_time(up[1m])) >= 3 and sum(up) == 2")), "both are not scraped thrice")
        self.culprit.spoil()
        self.checks.equal(self.culprit.post(), 202, "an event by HTTP")
        risen = " and ".join("sum(rate(%s[10s])) > 0" % metric for metric in (
            "culprit_receiver_failed_events_total", "culprit_http_server_requests_total"))
        self.checks.check(wait_for(lambda: self.server.query(risen)), "counters do not rise")

    def families(self):
        """All that docs/metrics.md has are there: else the questions below would not say much."""
        data, error = self.server.api("label/__name__/values")
        self.checks.check(error is None, "names of metrics: %s" % error)
        there = {family_of(name) for name in data or ()} | set(data or ())
        absent = {name for name in self.files.page if name not in there}
        self.checks.equal(absent, NOTHING_HERE, "families that are not shown here")

    def asked(self, where, expression, legend, must_answer):
        names = promql.Names(expression)
        if set(names.matched) & NOTHING_HERE:
            must_answer = False
        else:
            for metric, labels in names.matched.items():
                self.checks.check(labels <= self.labels_of(metric), "%s: no series of %s has %s"
                                  % (where, metric, sorted(labels - self.labels_of(metric))))
            there = set().union(*(self.labels_of(metric) for metric in names.matched))
            self.checks.check(names.listed <= there, "%s: no series has %s"
                              % (where, sorted(names.listed - there)))
        # A scrape that took too long has none of its series, until the next one.
        wait_for(lambda: not must_answer or self.server.query(expression), self.server.process)
        data, error = self.server.api("query", query=expression)
        if not self.checks.check(error is None, "%s: %s: %s" % (where, expression, error)):
            return
        found = data["result"]
        if not must_answer:
            return
        self.checks.check(found, "%s: no answer to %s" % (where, expression))
        labels = set().union(*(one["metric"] for one in found))
        asked = set(LEGEND.findall(legend))
        self.checks.check(asked <= labels, "%s: the answer has no label %s"
                          % (where, sorted(asked - labels)))

    def boards(self):
        for board in self.files.dashboards:
            for where, expression, legend in board.queries():
                match = VALUES.match(expression)
                if match:
                    selector, label = board.filled(match.group(1)), match.group(2)
                    data, error = self.server.api("label/%s/values" % label,
                                                  **{"match[]": selector})
                    self.checks.check(error is None and data, "%s: %s" % (where, error))
                    continue
                self.asked(where, board.filled(expression), legend, True)
        self.one_job()

    def one_job(self):
        """With one job chosen its verdict stays, and so do those of nodes, which have no job."""
        board = next(one for one in self.files.dashboards if one.name == "culprit-jobs.json")
        table = next(one for one in board.panels if one["title"] == "Open verdicts")
        for target in table["targets"]:
            jobs = {one["metric"].get("training_job") for one in
                    self.server.query(board.filled(target["expr"], "none"))}
            self.checks.equal(jobs, {"none", None}, "open verdicts of the job none")
        found = self.server.query(board.filled(table["targets"][0]["expr"], "none"))
        leak = [one for one in found if one["metric"]["pattern"] == "memory_first_cause"]
        self.checks.equal([(one["metric"]["rank"], one["metric"]["kind"], one["value"][1])
                           for one in leak], [("2", "leak", "0.85")], "the leak, in the table")

    def rules(self):
        # The newest state: an evaluation that began after all of the above.
        wanted = {"TrainingCulpritFound": "firing", "TrainingCulpritSuspected": "pending",
                  "CulpritRefusesEvents": "pending", "CulpritCannotDeliver": "pending"}

        def states(rules):
            """Of those that are active; one that is pending fires when this takes long."""
            return {name: "pending" if rule["duration"] > 0 else rule["state"]
                    for name, rule in rules.items() if rule["state"] != "inactive"}

        def read():
            data, _ = self.server.api("rules")
            return {rule["name"]: rule for group in (data or {"groups": []})["groups"]
                    for rule in group["rules"]}
        wait_for(lambda: all(rule["health"] == "ok" for rule in read().values())
                 and states(read()) == wanted)
        rules = read()
        self.checks.equal(states(rules), wanted, "alerts that are active")
        self.checks.equal(set(rules), set(alert_cases.CASES), "alerts that have cases")
        for name, rule in rules.items():
            self.checks.equal((rule["health"], rule.get("lastError")), ("ok", None), name)
            text = json.dumps(rule["annotations"])
            legend = " ".join("{{%s}}" % label for label in re.findall(r"\$labels\.(\w+)", text))
            self.files.names(name, rule["query"], legend)
            self.asked(name, rule["query"], "", False)
        found = [alert["labels"] for alert in rules["TrainingCulpritFound"]["alerts"]
                 if alert["labels"]["pattern"] == "memory_first_cause"]
        self.checks.equal([(one["training_job"], one["rank"], one["kind"]) for one in found],
                          [("none", "2", "leak")], "the leak's alert")

    def run(self):
        self.ready()
        self.families()
        self.boards()
        self.rules()


def with_server(checks, files, binary, folder):
    culprit = Culprit(os.path.abspath(binary), folder)
    server = None
    try:
        if not checks.check(culprit.start(), lambda: "it is not ready: " + culprit.said()[-2000:]):
            return
        server = Server(culprit, folder)
        if checks.check(server.ready(), lambda: "no server: " + server.said()[-2000:]):
            Asked(checks, files, culprit, server).run()
    finally:
        if server is not None:
            server.stop()
        # The records for brokers that never answer would hold up an orderly end.
        culprit.stop(signal.SIGKILL)
    checks.check("Sanitizer" not in culprit.said(),
                 "the sanitizer complains: " + culprit.said()[-4000:])


def main(binary):
    checks = Checks()
    files = Files(checks)
    files.run()
    missing = [name for name in ("prometheus", "promtool") if shutil.which(name) is None]
    if missing:
        print("not installed (Debian: prometheus): %s; the parts with it are left out"
              % ", ".join(missing))
        checks.check(os.environ.get("CI") != "true", "CI needs " + ", ".join(missing))
        return checks.finish()
    with tempfile.TemporaryDirectory() as folder:
        files.rules(folder)
        with_server(checks, files, binary, folder)
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
