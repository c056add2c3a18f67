# SPDX-License-Identifier: Apache-2.0
"""Events by HTTP: the same lines in turn to culprit and to the Collector.

The server is pinned to one core and the generator (http_load) to another. Bodies hold 100 events;
from one use to the next their timestamps move on.
"""
import json
import os
import socket
import subprocess
import time

import measure

LINES, RANKS = 100, 64
BODIES_MIN = 16
STEP_NS = 100_000_000  # of culprit_generate
CONNECTIONS = (1, 8)
CULPRIT, COLLECTOR = "culprit", "Collector"
DOES = {
    CULPRIT: "http receiver, preset `all` (as above), json exporter: verdicts to a file",
    COLLECTOR: "otlp receiver, filter processor (a text body is searched, not parsed), nop "
               "exporter; own telemetry off, `GOGC=400`",
}
PATIENCE_S = 20


# -- bodies ---------------------------------------------------------------------------------------


def any_value(value):
    """A JSON value as OTLP's AnyValue."""
    if value is None:
        return {}
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, str):
        return {"stringValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [any_value(one) for one in value]}}
    return {"kvlistValue": {"values": [{"key": key, "value": any_value(one)}
                                       for key, one in value.items()]}}


def logs(lines, structured):
    """An OTLP request; the body of a log record is the line itself, or a map of its fields."""
    records = []
    for line in lines:
        record = json.loads(line)
        body = any_value(record) if structured else {"stringValue": line}
        records.append({"timeUnixNano": str(record["timestamp_ns"]), "body": body})
    return json.dumps({"resourceLogs": [{"resource": {}, "scopeLogs": [
        {"scope": {}, "logRecords": records}]}]}, separators=(",", ":"), ensure_ascii=False)


FORMATS = {
    "JSON lines": ("/v1/events", "application/x-ndjson", lambda lines: "\n".join(lines) + "\n"),
    "OTLP, fields": ("/v1/logs", "application/json", lambda lines: logs(lines, True)),
    "OTLP, text": ("/v1/logs", "application/json", lambda lines: logs(lines, False)),
}


def split(lines, connections):
    """Lines of each connection, which has every connections-th rank, in order."""
    own = [[] for _ in range(connections)]
    for number, line in enumerate(lines):
        own[number % RANKS % connections].append(line)
    return own


def lines_needed(connections):
    """As many lines as make whole steps and whole bodies for each connection."""
    own = RANKS // connections
    steps = 1
    while steps * own % LINES or steps * own // LINES * connections < BODIES_MIN:
        steps += 1
    return steps * RANKS, steps


def write_bodies(path, lines, connections, make):
    """In the form that http_load reads; the number of bodies."""
    count = 0
    with open(path, "wb") as file:
        for own in split(lines, connections):
            for first in range(0, len(own), LINES):
                body = make(own[first:first + LINES]).encode()
                file.write(b"%d\n" % len(body) + body)
                count += 1
    return count


# -- servers --------------------------------------------------------------------------------------


def culprit_config(port, out):
    return {"receivers": {"http": {"endpoint": "127.0.0.1:%d" % port}},
            "processors": {"job_filter": {"job_id": "job-1"}},
            "exporters": {"json": {"path": out}},
            "service": {"pipelines": {"all": {"receivers": ["http"], "preset": "all",
                                              "exporters": ["json"]}}}}


def collector_config(port, structured):
    kept = ('body["job_id"] != "job-1"' if structured
            else 'not IsMatch(body, "\\"job_id\\":\\"job-1\\"")')
    return {"receivers": {"otlp": {"protocols": {"http": {"endpoint": "127.0.0.1:%d" % port}}}},
            "processors": {"filter": {"error_mode": "propagate", "logs": {"log_record": [kept]}}},
            "exporters": {"nop": None},
            "service": {"telemetry": {"metrics": {"level": "none"}, "logs": {"level": "error"}},
                        "pipelines": {"logs": {"receivers": ["otlp"], "processors": ["filter"],
                                               "exporters": ["nop"]}}}}


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Ingest:
    def __init__(self, peers, build, folder, cores, say):
        self.peers, self.build, self.folder, self.say = peers, build, folder, say
        self.server_core, self.load_core = cores
        self.log = os.path.join(folder, "log")
        self.failed = {}  # program -> why it is not compared

    def path(self, name):
        return os.path.join(self.folder, name)

    def command(self, name, form, port):
        config = self.path("config.yaml")
        if name == CULPRIT:
            content = culprit_config(port, self.path("verdicts"))
            command = [self.peers["culprit"].program, "run", "--config", config]
        else:
            content = collector_config(port, form == "OTLP, fields")
            command = [self.peers["collector"].program, "--config", config]
        with open(config, "w", encoding="utf-8") as file:
            json.dump(content, file)
        return command

    def wait(self, process, port):
        limit = time.monotonic() + PATIENCE_S
        while time.monotonic() < limit and process.poll() is None:
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.02)
        raise measure.Failed("no server: " + measure.tail(self.log))

    def once(self, name, form, connections, bodies, steps, events):
        path, kind, _ = FORMATS[form]
        port = free_port()
        process = measure.start(self.command(name, form, port), self.server_core, self.log,
                                GOGC="400")
        try:
            self.wait(process, port)
            command = [os.path.join(self.build, "bench", "http_load"), "--port", port,
                       "--connections", connections, "--ranks", RANKS, "--lines", LINES,
                       "--events", events, "--warm-up", events // 5, "--pid", process.pid,
                       "--path", path, "--type", kind, "--bodies", bodies, "--steps", steps]
            done = subprocess.run(measure.pinned([str(word) for word in command], self.load_core),
                                  capture_output=True, check=False)
            if done.returncode != 0:
                raise measure.Failed("%s, %s: %s" % (name, form, done.stderr.decode()[-600:]))
            row = parse_load(done.stdout)
            row["peak_rss_bytes"] = measure.peak_of(process.pid)
            return row
        finally:
            process.kill()
            process.wait()

    def measure(self, events, rounds):
        """(name, form, connections) -> a row a round; fewer events for the slower server."""
        targets = [(CULPRIT, form) for form in FORMATS]
        if "collector" in self.peers:
            targets += [(COLLECTOR, form) for form in FORMATS if form != "JSON lines"]
        found = {}
        for connections in CONNECTIONS:
            count, steps = lines_needed(connections)
            made = subprocess.run([os.path.join(self.build, "bench", "culprit_generate"),
                                   "--events", str(count), "--ranks", str(RANKS)],
                                  stdout=subprocess.PIPE, check=True)
            lines = made.stdout.decode().splitlines()
            paths = {}
            for number, (form, (_, _, make)) in enumerate(FORMATS.items()):
                paths[form] = self.path("bodies%d" % number)
                write_bodies(paths[form], lines, connections, make)
            for turn in range(rounds):
                for name, form in targets:
                    if name in self.failed:
                        continue
                    self.say("round %d of %d, %d connections, %s: %s"
                             % (turn + 1, rounds, connections, form, name))
                    try:
                        row = self.once(name, form, connections, paths[form], steps,
                                        events if name == CULPRIT else events // 8)
                    except measure.Failed as error:
                        if name == CULPRIT:
                            raise
                        self.failed[name] = str(error)
                        self.say("left out: %s: %s" % (name, error))
                        continue
                    found.setdefault((name, form, connections), []).append(row)
        return [{"program": name, "form": form, "connections": connections, "rounds": rows}
                for (name, form, connections), rows in found.items() if name not in self.failed]


def parse_load(text):
    """What http_load printed, as a row."""
    said = json.loads(text)
    return {"events_per_s": said["events_per_s"],
            "cpu_s_per_million": said["culprit_cpu_s_per_million"],
            "bytes_per_event": said["bytes_per_event"], "put_off": said["put_off"]}
