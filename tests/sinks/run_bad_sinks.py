#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every exporter that posts, against every kind of bad sink.

    run_bad_sinks.py BINARY

ROWS are exporters, FAULTS what a sink does wrong. One culprit has an exporter for each cell, with a
sink of its own. What is tried again must be tried at least twice, must tell why in the log, and
arrive when the sink is good again, nothing missing and nothing counted as lost; what is refused for
good must be counted and logged, and tried no further. Then culprit is killed (SIGKILL) between a
delivery and the checkpoint: what comes twice must be told by its id, as docs/delivery.md says.

Not here is the wandb exporter, which needs a server that keeps runs for each cell: the same faults
are in tests/wandb (run_wandb_faults.py, run_wandb_transport.py, run_wandb_crash.py).
"""
import collections
import concurrent.futures
import glob
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, os.path.join(HERE, "..", "kubernetes"))
import bad_sink  # noqa: E402
import frame_sink  # noqa: E402
from bad_sink import BadSink  # noqa: E402
from checks import Checks  # noqa: E402
from grafana_server import Grafana  # noqa: E402
from ports import free_port  # noqa: E402
import running  # noqa: E402
from running import PATIENCE_S, Running, documents  # noqa: E402
from stand_in_writes import Refused, checked_event  # noqa: E402

INPUT = os.path.join(HERE, "..", "golden", "detectors", "incident", "*", "events.jsonl")
PATIENT = {"timeout": "30s"}
HASTY = {"timeout": "400ms"}
RETRY = {"initial_interval": "20ms", "max_interval": "3s", "multiplier": 3,
         "randomization_factor": 0}
BEGAN, LONGEST_S = time.monotonic(), 600  # for all cells together, when some fail
LEVELS = ["info", "warning", "error", "critical"]



def wait_for(condition):
    return running.wait_for(lambda: condition() or time.monotonic() > BEGAN + LONGEST_S) \
        and condition()


# -- rows ----------------------------------------------------------------------------------------
# `identities` of what a request holds: {identity: what must be the same each time}. `refuses`: the
# faults after which a record is dropped. `reads`: it goes by the body of an answer. `reach`: the
# options by which it finds its sink, instead of `endpoint`, `tls` and `auth`.

Row = collections.namedtuple("Row", "name options good identities wanted refuses reads events reach",
                             defaults=(None,))


def fine(*_):
    return 200, {"Content-Type": "application/json"}, b"{}"


def webhook_identities(_, body):
    verdict = json.loads(body)
    return {(verdict["id"], verdict["state"]): body}


def alerts(_, body):
    return {one["labels"]["verdict"]: json.dumps(one["labels"], sort_keys=True)
            for one in json.loads(body)}


def log_records(_, body):
    found = {}
    for resource in json.loads(body)["resourceLogs"]:
        for record in (one for scope in resource["scopeLogs"] for one in scope["logRecords"]):
            attributes = {one["key"]: one["value"].get("stringValue")
                          for one in record["attributes"]}
            del record["observedTimeUnixNano"]
            found[attributes["culprit.verdict.id"], attributes["culprit.verdict.state"]] = \
                json.dumps(record, sort_keys=True)
    return found


def frames(_, body):
    return {(one.sender, one.number): one.value for one in frame_sink.parse(gzip.decompress(body))}


def annotations(_, body):
    return {json.loads(body)["tags"][1]: None} if body else {}


def kubernetes_events():
    """Names of Events are unique; the API server checks all fields."""
    known = set()

    def good(handler, body):
        if handler.command != "POST":
            return 405, {}, b""
        parts = handler.path.partition("?")[0].split("/")
        try:
            event = checked_event(json.loads(body), parts[parts.index("namespaces") + 1])
        except Refused as refused:
            return refused.code, {}, refused.message.encode()
        name = event["metadata"]["namespace"], event["metadata"]["name"]
        if name in known:
            return 409, {"Content-Type": "application/json"}, json.dumps(
                {"kind": "Status", "reason": "AlreadyExists", "message": "it is there"}).encode()
        known.add(name)
        return 201, {"Content-Type": "application/json"}, body
    return good


def events_on_objects(_, body):
    event = json.loads(body)
    if event.get("reason", "Resolved").endswith(("Withdrawn", "Resolved")):  # or a series
        return {}
    about = event["regarding"]
    return {(event["metadata"]["annotations"]["culprit/verdict"], about.get("namespace", "default"),
             about["name"]): body}


def objects(verdicts):
    """(verdict, namespace, name) of all pods and nodes that roots name."""
    return named(list({each["id"]: each for each in verdicts}.values()), roots(verdicts))


def objects_ever(verdicts):
    """The same of what verdicts said on their way: an Event that was told stays."""
    return named(verdicts, {one["id"] for one in verdicts})


def named(verdicts, shown):
    wanted = set()
    for one in verdicts:
        for entity in one["entities"] if one["id"] in shown else ():
            if entity["kind"] == "node":
                wanted.add((one["id"], "default", entity["name"]))
            elif entity["kind"] == "pod":
                wanted.add((one["id"], *entity["name"].split("/")))
    return wanted


def by_endpoint(cell, token_path, authorities):
    found = {"endpoint": cell.sink.url}
    if authorities is not None:
        found["tls"] = {"ca_file": authorities}
    if token_path is not None:
        found["auth"] = {"bearer_token_file": token_path}
    return found


def by_kubeconfig(cell, token_path, authorities):
    path = os.path.join(cell.world.folder, cell.id.replace("/", "-") + ".kubeconfig")
    cluster = {"server": cell.sink.url}
    if authorities is not None:
        cluster["certificate-authority"] = authorities
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "here",
                   "clusters": [{"name": "c", "cluster": cluster}],
                   "users": [{"name": "u", "user": {"tokenFile": token_path} if token_path else {}}],
                   "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}]}, file)
    return {"kubeconfig": path}


def changes(verdicts):
    return {(one["id"], one["state"]) for one in verdicts}


def ids(verdicts):
    return {one["id"] for one in verdicts}


def roots(verdicts):
    last = {one["id"]: one for one in verdicts}
    return {name for name, one in last.items() if LEVELS.index(one["severity"]) > 0
            and one.get("attributes", {}).get("culprit.root", "true") == "true"}


# By OTLP's specification only 429, 502, 503 and 504 are tried again.
BY_OTLP = {"broken", "redirect", "unauthorized", "missing"}
ROWS = [
    Row("webhook", {}, lambda: fine, webhook_identities, changes, set(), False, False),
    Row("alertmanager", {}, lambda: fine, alerts, roots, set(), False, False),
    Row("otlp", {"encoding": "json", "compression": "none", "metrics_interval": "0s"},
        lambda: fine, log_records, changes, BY_OTLP, False, False),
    Row("grafana", {}, lambda: Grafana(serve=False).respond, annotations, ids, set(), True, False),
    Row("kubernetes", {"look_up_pods": False, "instance": "culprit-0"}, kubernetes_events,
        events_on_objects, objects, set(), False, False, by_kubeconfig),
    Row("http", {}, lambda: fine, frames, None, set(), False, True),
]

# -- columns -------------------------------------------------------------------------------------
# What the log must say of the component, and whether its attempts must be cut off by a timeout.

Fault = collections.namedtuple("Fault", "name serve words hasty wait_s")
TAKEN = {"cut", "endless", "headers"}  # by their status
FAULTS = [
    Fault("dead", None, "onnect", False, 0),
    Fault("silent", bad_sink.silent, "imed out|imeout", True, 0),
    Fault("closes", bad_sink.closes, "mpty reply", False, 0),
    Fault("garbage", bad_sink.garbage, "HTTP/0.9", False, 0),
    Fault("cut", bad_sink.cut, "did not come whole", False, 0),
    Fault("endless", bad_sink.endless, "did not come whole", True, 0),
    Fault("headers", bad_sink.endless_headers, "did not come whole", True, 0),
    Fault("unavailable", bad_sink.unavailable, "503", False, 0.95),
    Fault("busy", bad_sink.busy, "429", False, 0.95),
    Fault("broken", bad_sink.broken, "500: internal error", False, 0),
    Fault("redirect", bad_sink.redirect, "redirects are not followed", False, 0),
    Fault("unauthorized", bad_sink.unauthorized, "401", False, 0),
    Fault("missing", bad_sink.missing, "404", False, 0),
    Fault("expired", bad_sink.broken, "expired", False, 0),  # no request gets through
    Fault("rotated", bad_sink.unauthorized, None, False, 0),  # the file, then the server
    Fault("refused", bad_sink.refused, "422: no such field", False, 0),
]


REFUSALS = ("C3006", "C4303")  # the kubernetes exporter's: of a record it may be one Event
UNANSWERED = Fault("unanswered", bad_sink.silent, None, False, 0)
UNSAVED = Fault("unsaved", bad_sink.closes, None, False, 0)


class Cell:
    """One exporter of the culprit, and its sink."""

    def __init__(self, row, fault, world):
        self.row, self.fault, self.world = row, fault, world
        self.id = "%s/%s" % (row.name, fault.name)
        self.refuses = fault.name == "refused" or fault.name in row.refuses
        self.takes = fault.name in TAKEN and not row.reads
        self.sink = BadSink(free_port(), fault.serve, row.good(), world.elsewhere.url)
        self.options = {"retry_on_failure": RETRY, **(HASTY if fault.hasty else PATIENT),
                        **row.options}
        authorities = self.token_path = None
        if fault.name == "expired":
            self.sink.context = lambda: world.valid if self.sink.healed.is_set() else world.expired
            authorities = world.authorities
        if fault.name == "rotated":
            self.token_path = os.path.join(world.folder, self.id.replace("/", "-") + ".token")
            self.write_token("first-token")
            self.sink.token = bad_sink.TOKEN
            self.sink.healed.set()
        self.options.update((row.reach or by_endpoint)(self, self.token_path, authorities))
        if fault.name != "dead":
            self.sink.start()

    def write_token(self, token):
        with open(self.token_path + ".new", "w", encoding="ascii") as file:
            file.write(token + "\n")
        os.rename(self.token_path + ".new", self.token_path)

    def lines(self, *codes):
        return [line for line in self.world.log_lines()
                if line.get("component") == "exporter/" + self.id and line.get("code") in codes]

    def met(self):
        """Whether the fault did its work."""
        if self.refuses:
            return self.world.discarded(self.id) > 0
        if self.fault.name == "rotated":
            return True
        if self.takes:
            return self.sink.attempts() >= 1
        if self.fault.name in ("dead", "expired"):
            return self.world.metric("send_failed_records", self.id) > 0
        return self.sink.attempts() >= 2

    def identities(self):
        """{identity: every form in which it arrived}."""
        found = collections.defaultdict(list)
        taken = list(self.sink.taken)
        if self.takes:
            taken += [one[1:] for one in list(self.sink.refused_requests)]
        for path, body in taken:
            for identity, form in self.row.identities(path, body).items():
                found[identity].append(form)
        return found

    def expected(self):
        wanted = self.world.wanted(self.row)
        if self.row.events:
            senders = {sender for sender, _ in self.identities()}
            wanted = {(sender, number) for sender in senders for number in wanted}
        return wanted

    def is_right(self):
        arrived, expected = set(self.identities()), self.expected()
        if self.row.wanted is not objects or expected is None:
            return arrived == expected
        return expected <= arrived <= expected | objects_ever(self.world.run.found())

    def check(self, checks):
        said = " ".join(line["msg"] for line in self.lines("C3002", *REFUSALS))
        if self.fault.words is not None and not self.takes:
            checks.check(re.search(self.fault.words, said),
                         lambda: "%s: the log does not say why: %s" % (self.id, said[:600]))
        checks.check("-token" not in said and "tags=" not in said,
                     self.id + ": a secret in " + said)
        if self.refuses:
            self.check_refused(checks)
            return
        # A verdict may just have changed.
        checks.check(wait_for(self.is_right),
                     lambda: "%s: what arrived: %s" % (self.id, set(self.identities())))
        checks.equal(self.world.discarded(self.id), 0, self.id + ": records that were dropped")
        checks.equal(self.lines(*REFUSALS), [], self.id + ": refusals")
        if self.takes and not self.fault.hasty:  # a slow machine may see no status in time
            bodies = [one[2] for one in self.sink.refused_requests]
            checks.equal(len(bodies), len(set(bodies)), self.id + ": what was taken came again")
        if self.fault.wait_s > 0:
            times = [one[0] for one in self.sink.refused_requests]
            checks.check(times[1] - times[0] >= self.fault.wait_s,
                         "%s: Retry-After is kept: %.2f s" % (self.id, times[1] - times[0]))

    def check_refused(self, checks):
        checks.check(wait_for(lambda: self.lines(*REFUSALS)),
                     self.id + ": the refusal is not logged")
        checks.equal(self.sink.taken, [], self.id + ": what was refused came again")
        records = self.world.metric("sent_records", self.id) + self.world.discarded(self.id)
        checks.check(records > 0 and self.sink.attempts() <= 3 * records + 3,
                     "%s: %d attempts for %d records" % (self.id, self.sink.attempts(), records))


class World:
    """A culprit with these cells."""

    def __init__(self, binary, folder, checks, faults, rows=ROWS, store=None):
        self.binary, self.folder, self.checks = binary, folder, checks
        self.input, self.store = os.path.join(folder, "input"), store
        os.makedirs(self.input)
        self.verdicts = set()  # as many ids will there be
        for path in glob.glob(os.path.join(os.path.dirname(INPUT), "verdicts.jsonl")):
            with open(path, encoding="utf-8") as file:
                self.verdicts |= ids(json.loads(line) for line in file)
        self.elsewhere = BadSink(free_port(), bad_sink.missing, fine)
        self.elsewhere.start()
        self.metrics_port = free_port()
        self.valid = self.expired = self.authorities = None
        if shutil.which("openssl") is not None:
            self.make_certificates()
        else:
            checks.skip("openssl is not installed: no certificate expires")
        self.cells = [Cell(row, fault, self) for row in rows for fault in faults
                      if fault.name != "expired" or self.expired is not None]
        self.run = Running(binary, os.path.join(folder, "run"), self.document())

    def make_certificates(self):
        def openssl(*arguments):
            done = subprocess.run(["openssl", *arguments], capture_output=True, check=False)
            assert done.returncode == 0, done.stderr.decode()
        made = {name: bad_sink.certificate(self.folder, name, days, openssl)
                for name, days in (("valid", 30), ("expired", -1))}
        self.valid, self.expired = (bad_sink.tls(*made[name]) for name in ("valid", "expired"))
        self.authorities = os.path.join(self.folder, "authorities.pem")
        with open(self.authorities, "w", encoding="ascii") as file:
            for path, _ in made.values():
                with open(path, encoding="ascii") as part:
                    file.write(part.read())

    def document(self):
        timing = {"idle_timeout": "300ms", "settle": "0s"}
        os.makedirs(os.path.join(self.folder, "run"), exist_ok=True)
        findings = [cell.id for cell in self.cells if not cell.row.events]
        passed_on = [cell.id for cell in self.cells if cell.row.events]
        config = {
            "receivers": {"file": {"include": [self.input + "/*.jsonl"],
                                   "poll_interval": "100ms"}},
            "exporters": {"json": {"path": os.path.join(self.folder, "run", "verdicts.jsonl")},
                          **{cell.id: cell.options for cell in self.cells}},
            "service": {"telemetry": {"metrics": {"endpoint": "127.0.0.1:%d" % self.metrics_port}},
                        "pipelines": {
                            "all": {"receivers": ["file"], "preset": "all", **timing,
                                    "exporters": ["json", *findings]}}}}
        if passed_on:
            config["service"]["pipelines"]["events"] = {"receivers": ["file"], **timing,
                                                        "exporters": passed_on}
        if self.store is not None:
            config["extensions"] = {"file_storage": {
                "directory": os.path.join(self.folder, "store")}}
            config["service"].update(extensions=["file_storage"], checkpoint_interval=self.store)
        return config

    def log_lines(self):
        return documents(self.run.log_path)

    def page(self):
        try:
            with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % self.metrics_port,
                                        timeout=PATIENCE_S) as answer:
                return answer.read().decode()
        except OSError:
            return ""  # not yet

    def metric(self, name, exporter):
        found = re.search(r'culprit_exporter_%s_total\{exporter="%s"\} (\d+)'
                          % (name, re.escape(exporter)), self.page())
        return int(found.group(1)) if found else 0

    def commits(self):
        found = re.search(r'culprit_store_commits_total\{[^}]*\} (\d+)', self.page())
        return int(found.group(1)) if found else 0

    def discarded(self, exporter):
        return sum(int(value) for value in re.findall(
            r'culprit_(?:discarded_events|kubernetes_exporter_refused)_total'
            r'\{[^}]*(?:component|exporter)="%s"[^}]*\} (\d+)'
            % re.escape(exporter), self.page()))

    def feed(self):
        for number, path in enumerate(sorted(glob.glob(INPUT))):
            target = os.path.join(self.input, "%d.jsonl" % number)
            shutil.copy(path, target + ".part")
            os.rename(target + ".part", target)

    def stop(self):
        for cell in self.cells:
            cell.sink.stop()
        self.elsewhere.stop()

    def all_found(self):
        return len(ids(self.run.found())) >= len(self.verdicts)

    def wanted(self, row):
        if row.events:
            good = next(cell for cell in self.cells
                        if cell.row is row and cell.fault.name == "rotated")
            return None if not good.sink.taken else {
                number for _, number in good.identities()}
        return row.wanted(self.run.found()) if self.all_found() else None

    def arrived(self, cell):
        found, wanted = set(cell.identities()), self.wanted(cell.row)
        if cell.row.events:
            found = {number for _, number in found}
        return bool(wanted) and found >= wanted

    def table(self):
        checks = self.checks
        with self.run:
            for cell in self.cells:
                if cell.fault.name == "rotated":
                    cell.write_token(bad_sink.TOKEN)
            self.feed()
            for cell in self.cells:
                checks.check(wait_for(cell.met), lambda cell=cell: "%s: the fault was not met: %s"
                             % (cell.id, cell.lines("C3002")))
            for cell in self.cells:
                if not cell.refuses and not cell.takes:
                    cell.sink.heal()
            for cell in self.cells:
                checks.check(cell.refuses or wait_for(lambda cell=cell: self.arrived(cell)),
                             lambda cell=cell: "%s: not all arrived: %s of %s" % (
                                 cell.id, sorted(cell.identities(), key=str)[:9],
                                 self.wanted(cell.row)))
            for cell in self.cells:
                cell.check(checks)
            self.checks.equal(self.elsewhere.attempts() + len(self.elsewhere.taken), 0,
                              "requests where a redirect leads")
            self.run.process.terminate()
            # What was refused is lost, and the exit code says so when that was just now.
            checks.check(self.run.process.wait(PATIENCE_S) in (0, 74), "it stops")
            checks.check("Sanitizer" not in self.run.log(), "the sanitizer complains")
        self.stop()


# -- SIGKILL between a delivery and the checkpoint -------------------------------------------------


def kill(world):
    world.run.process.kill()
    world.run.process.wait()


def unanswered(world):
    """The sink has taken a request and culprit is killed before it hears so: after the restart the
    same comes again, told by its identity."""
    checks = world.checks
    with world.run:
        world.feed()
        for cell in world.cells:
            checks.check(wait_for(lambda cell=cell: cell.sink.attempts() > 0),
                         cell.id + ": nothing was sent")
        kill(world)
        first = {cell.id: [one[1:] for one in cell.sink.refused_requests] for cell in world.cells}
        for cell in world.cells:
            cell.sink.heal()
        world.run.start()
        for cell in world.cells:
            # What the first request held comes again, in the same form.
            wanted = {}
            for path, body in first[cell.id]:
                wanted.update(cell.row.identities(path, body))

            def again(cell=cell, wanted=wanted):
                found = cell.identities()
                return all(form in found.get(identity, ()) for identity, form in wanted.items())
            checks.check(wanted or cell.row.reads, cell.id + ": the first request held nothing")
            checks.check(wait_for(again), lambda cell=cell, wanted=wanted: (
                "%s: it does not come again as it was: %s, %s"
                % (cell.id, wanted, dict(cell.identities()))))
            if not cell.row.events:
                checks.check(wait_for(lambda cell=cell: world.arrived(cell)),
                             cell.id + ": not all arrived")
        world.run.stop(checks, "unanswered")
    for cell in world.cells:
        if cell.row.events:
            numbers = sorted(number for _, number in cell.identities())
            checks.equal(numbers, list(range(1, len(numbers) + 1)), cell.id + ": numbers")
            checks.equal(len({sender for sender, _ in cell.identities()}), 1, cell.id + ": sender")
    world.stop()


def unsaved(world):
    """All was delivered and no checkpoint says so: it may come twice, and never as something
    else. When the inputs rest there is a checkpoint, so the sinks are away until then."""
    checks = world.checks
    with world.run:
        world.feed()
        checks.check(wait_for(lambda: world.commits() > 1 and world.all_found()),
                     "unsaved: %d checkpoints" % world.commits())
        for cell in world.cells:
            cell.sink.heal()
        for cell in world.cells:
            checks.check(wait_for(lambda cell=cell: world.arrived(cell)),
                         cell.id + ": not all arrived")
        kill(world)
        before = {cell.id: (names_of(cell), len(cell.sink.taken)) for cell in world.cells}
        world.run.start()
        for cell in world.cells:
            names, count = before[cell.id]
            checks.check(wait_for(lambda cell=cell, count=count: len(cell.sink.taken) > count),
                         cell.id + ": nothing came twice, so this shows nothing")
        world.run.stop(checks, "unsaved")
    for cell in world.cells:
        checks.equal(names_of(cell), before[cell.id][0], cell.id + ": ids after the restart")
        if cell.row.name == "grafana":
            made = [body for path, body in cell.sink.taken
                    if path == "/api/annotations" and body]
            checks.equal(len(made), len(names_of(cell)), "annotations that were created")
    world.stop()


def names_of(cell):
    """The verdicts' ids."""
    return {identity[0] if isinstance(identity, tuple) else identity
            for identity in cell.identities()}


def main(binary):
    checks = Checks()
    findings = [row for row in ROWS if not row.events]
    parts = ((lambda folder: World(binary, folder, checks, FAULTS).table()),
             (lambda folder: unanswered(World(binary, folder, checks, [UNANSWERED], store="100ms"))),
             (lambda folder: unsaved(World(binary, folder, checks, [UNSAVED], findings,
                                           store="1h"))))

    def run(part):
        with tempfile.TemporaryDirectory() as folder:
            part(folder)
    with concurrent.futures.ThreadPoolExecutor(len(parts)) as pool:
        for done in [pool.submit(run, part) for part in parts]:
            done.result()
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
