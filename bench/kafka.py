# SPDX-License-Identifier: Apache-2.0
"""How fast does culprit read a topic and write one, beside kcat (bench.py --kafka)?

One real broker with two partitions on the same machine, one event a message. kcat and culprit take turns
within a round; both begin with nothing (their start counts) and end when the last message is there.
kcat is given culprit's settings of batches: idempotent, acknowledged, lz4, 10 ms of linger, and
writes as many bytes of headers. Of culprit and of librdkafka alone it is also said when they were
told their partitions: from there to the last message both do the same, fetching and handling.
"""
import datetime
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "support"))
import kafka_broker  # noqa: E402

PATIENCE_S = 120
LOOK_S = 0.01
TAIL = 2000  # characters of a log
ASSIGNED = "assigned at "  # of kafka_consume
# What culprit's exporter puts beside each record, in about as many bytes.
HEADERS = {"culprit-schema": "culprit.event.v1", "culprit-sender": "bench/kafka/0123456789abcdef",
           "culprit-sequence": "123456", "culprit-format": "stormlog", "culprit-job": "job-1",
           "culprit-generation": "1", "culprit-first-sample": "1760000000000000000"}
SENT = "culprit_exporter_sent_records_total"
# By both, where today's is compared with an earlier state.
COMPARED = ("kcat_reads", "culprit_reads", "kcat_writes", "culprit_writes_live")
# From being assigned to the last message.
STREAM_RATIOS = {"reads from the assignment on/librdkafka": ("culprit_reads", "librdkafka_reads")}
RATIOS = {"reads/librdkafka": ("culprit_reads", "librdkafka_reads"),
          "reads/kcat": ("culprit_reads", "kcat_reads"),
          "reads/kcat in a group": ("culprit_reads", "kcat_reads_in_a_group"),
          "writes/kcat": ("culprit_writes", "kcat_writes"),
          "writes live/kcat": ("culprit_writes_live", "kcat_writes"),
          "writes with store/kcat": ("culprit_writes_with_store", "kcat_writes")}
BATCHES = ("enable.idempotence=true", "acks=all", "compression.codec=lz4", "linger.ms=10")


class Timed:
    """Wall and CPU seconds of a process, from before its start."""

    def __init__(self, command, log, stdin=subprocess.DEVNULL):
        self.command, self.log = command, log
        self.begun, self.begun_unix = time.monotonic(), time.time()
        with open(log, "wb") as sink:
            self.process = subprocess.Popen(command, stdin=stdin, stdout=subprocess.DEVNULL,
                                            stderr=sink)

    def fail(self, why):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            raise SystemExit("%s %s: %s" % (self.command[0], why, file.read()[-TAIL:]))

    def assigned_s(self):
        """When it was told its partitions, since its start; None: its log does not say it."""
        with open(self.log, encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith(ASSIGNED):
                    return float(line[len(ASSIGNED):]) - self.begun_unix
                if '"code":"C7005"' in line:
                    said = json.loads(line)["ts"]  # nanoseconds, of which Python takes six digits
                    at = datetime.datetime.strptime(said[:26], "%Y-%m-%dT%H:%M:%S.%f")
                    at = at.replace(tzinfo=datetime.timezone.utc)
                    return at.timestamp() - self.begun_unix
        return None

    def cpu_s(self):
        return time.clock_gettime((~self.process.pid << 3) | 2)  # its CPU clock

    def end(self):
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        if self.process.returncode != 0:
            self.fail("ended with %d" % self.process.returncode)
        return usage.ru_utime + usage.ru_stime


class Bench:
    def __init__(self, bench, broker, folder, events):
        self.bench, self.broker, self.folder, self.events = bench, broker, folder, events
        self.input = os.path.join(folder, "events.jsonl")
        bench.make_input(events, self.input)
        self.topics = 0

    def topic(self):
        self.topics += 1
        name = "bench-%d" % self.topics
        self.broker.create_topic(name)
        return name

    # -- kcat ------------------------------------------------------------------------------------

    def to_its_end(self, *command):
        timed = Timed(command, os.path.join(self.folder, "peer.log"))
        cpu_s = timed.end()
        wall_s = time.monotonic() - timed.begun
        return {"wall_s": wall_s, "cpu_s": cpu_s, "assigned_s": timed.assigned_s()}

    def librdkafka_reads(self, topic):
        return self.to_its_end(self.bench.program("bench/kafka_consume"), self.broker.address,
                               topic, str(self.events))

    def kcat(self, *arguments):
        return self.to_its_end("kcat", "-b", self.broker.address, *arguments)

    def kcat_writes(self, topic, headers=True):
        settings = [part for setting in BATCHES for part in ("-X", setting)]
        beside = [part for header in HEADERS.items() for part in ("-H", "%s=%s" % header)]
        return self.kcat("-P", "-t", topic, "-l", *settings,
                         *(beside if headers else []), self.input)

    def kcat_reads(self, topic):
        return self.kcat("-C", "-t", topic, "-o", "beginning", "-e", "-q")

    def kcat_reads_in_a_group(self, topic):
        return self.kcat("-G", "kcat-%d" % time.monotonic_ns(), "-X", "auto.offset.reset=earliest",
                         "-e", "-q", topic)

    # -- culprit ---------------------------------------------------------------------------------

    def culprit(self, receivers, exporters, pipeline, counter=None, store=False):
        """To its end, or until the counter of its metrics stands at the number of events."""
        port = kafka_broker.free_port()
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            config = {"receivers": receivers, "exporters": exporters,
                      "service": {"telemetry": {"metrics": {"endpoint": "127.0.0.1:%d" % port}},
                                  "pipelines": {"bench": dict(
                                      receivers=list(receivers), exporters=list(exporters),
                                      **pipeline)}}}
            if store:
                config["extensions"] = {"file_storage": {
                    "directory": os.path.join(folder, "store"), "max_size": "4GiB"}}
                config["service"]["extensions"] = ["file_storage"]
            path = os.path.join(folder, "culprit.yaml")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(config, file)
            timed = Timed([self.bench.program("culprit"), "run",
                           *([] if counter else ["--once"]), "--config", path],
                          os.path.join(folder, "log"))
            try:
                if counter is None:
                    cpu_s = timed.end()
                    return {"wall_s": time.monotonic() - timed.begun, "cpu_s": cpu_s}
                return self.until_counted(timed, port, counter)
            finally:
                if timed.process.returncode is None:
                    timed.process.kill()
                    timed.process.wait()

    def until_counted(self, timed, port, counter):
        before = 0
        while True:
            time.sleep(LOOK_S)
            cpu_s = timed.cpu_s()
            busy = cpu_s - before > LOOK_S / 10
            before = cpu_s
            if timed.process.poll() is not None:
                timed.fail("ended")
            if time.monotonic() - timed.begun > PATIENCE_S:
                timed.fail("took too long")
            if busy:
                continue  # asking takes the time of what is measured
            wall_s = time.monotonic() - timed.begun - LOOK_S
            if self.count(port, counter) >= self.events:
                break
            before = timed.cpu_s()
        timed.process.send_signal(signal.SIGTERM)
        timed.end()
        return {"wall_s": wall_s, "cpu_s": cpu_s, "assigned_s": timed.assigned_s()}

    @staticmethod
    def count(port, counter):
        try:
            with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % port, timeout=5) as answer:
                text = answer.read().decode()
        except OSError:
            return 0
        return sum(int(float(value)) for value in
                   re.findall(r"^%s\{[^}]*\} (\S+)" % counter, text, re.M))

    def culprit_reads(self, topic):
        return self.culprit(
            {"kafka": {"brokers": [self.broker.address], "topics": [topic],
                       "group_id": "culprit-%d" % time.monotonic_ns()}},
            {"json": {"path": os.path.join(self.folder, "verdicts.jsonl")}},
            {"preset": "memory"}, "culprit_receiver_accepted_events_total")

    def culprit_writes(self, topic, counter=None, store=False):
        return self.culprit(
            {"file": {"include": [self.input], "start_at": "beginning"}},
            {"kafka": {"brokers": [self.broker.address], "topic": topic, "payload": "events",
                       "key": "none", "sender": "bench"}},
            {}, counter, store)

    def culprit_writes_live(self, topic):
        return self.culprit_writes(topic, SENT)

    def culprit_writes_with_store(self, topic):
        return self.culprit_writes(topic, SENT, store=True)


def row(runs, events):
    wall_s = statistics.median(run["wall_s"] for run in runs)
    made = {"wall_s": round(wall_s, 3), "events_per_s": round(events / wall_s),
            "cpu_s": round(statistics.median(run["cpu_s"] for run in runs), 3),
            "rounds": len(runs)}
    if all(run.get("assigned_s") is not None for run in runs):
        stream_s = statistics.median(run["wall_s"] - run["assigned_s"] for run in runs)
        made["assigned_s"] = round(statistics.median(run["assigned_s"] for run in runs), 3)
        made["events_per_s_from_there"] = round(events / stream_s)
    return made


def ratio(runs, ours, theirs):
    """How many times as fast, round by round."""
    return round(statistics.median(their["wall_s"] / our["wall_s"]
                                   for our, their in zip(runs[ours], runs[theirs])), 3)


def stream_ratio(runs, ours, theirs):
    """The same from being assigned on; None where a run does not say when it was."""
    pairs = list(zip(runs[ours], runs[theirs]))
    if any(run["assigned_s"] is None for pair in pairs for run in pair):
        return None
    return round(statistics.median((their["wall_s"] - their["assigned_s"]) /
                                   (our["wall_s"] - our["assigned_s"]) for our, their in pairs), 3)


def measured(bench, broker, folder, options, say, only):
    made = Bench(bench, broker, folder, options.kafka_events)
    say("kafka: filling a topic")
    filled = made.topic()
    made.kcat_writes(filled, headers=False)  # with them they were repeats
    made.kcat_reads(filled)                  # nobody is the first
    made.kcat_reads_in_a_group(filled)       # nor has to wait for the broker's table of groups
    works = {"librdkafka_reads": filled, "kcat_reads": filled, "culprit_reads": filled,
             "kcat_reads_in_a_group": filled,
             "kcat_writes": None, "culprit_writes": None, "culprit_writes_live": None,
             "culprit_writes_with_store": None}
    works = {name: topic for name, topic in works.items() if only is None or name in only}
    runs = {name: [] for name in works}
    for turn in range(options.rounds):
        for name, topic in works.items():
            say("kafka, round %d: %s" % (turn + 1, name))
            runs[name].append(getattr(made, name)(topic or made.topic()))
    ratios = {name: ratio(runs, *pair) for name, pair in RATIOS.items()
              if all(one in runs for one in pair)}
    for name, pair in STREAM_RATIOS.items():
        share = stream_ratio(runs, *pair) if all(one in runs for one in pair) else None
        if share is not None:
            ratios[name] = share
    return {"events": made.events, "bytes": os.path.getsize(made.input), "partitions": 2,
            "programs": {name: row(own, made.events) for name, own in runs.items()},
            "ratios": ratios}


def measure(bench, options, say, only=None):
    """`only`: names of what is run; None: all."""
    reason = kafka_broker.unavailable()
    if reason:
        return {"skipped": reason}
    with tempfile.TemporaryDirectory(prefix="culprit-bench-kafka-", dir=bench.folder) as folder:
        broker = kafka_broker.Broker(os.path.join(folder, "broker"))
        try:
            broker.start()
            return measured(bench, broker, folder, options, say, only)
        finally:
            broker.stop(kill=True)
