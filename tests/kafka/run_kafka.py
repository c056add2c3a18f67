#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""culprit between topics of a real Kafka broker.

    run_kafka.py BINARY

A gateway reads what kcat produced, and what a sidecar passed on, and must find what `culprit
analyze` finds in the files; also when another gateway takes its partitions over after SIGKILL, and
when the broker is away for a while. A fault of a node and the hang of its job must meet in
whichever gateway has the job. Records that are refused must be in the dead-letter topic. Needs
java, mvn and kcat; without them it says so and passes, unless CI is set. What must happen is waited
for, up to a limit.
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, os.path.join(HERE, "..", "healthy"))
import generate  # noqa: E402
import kafka_broker  # noqa: E402
import verdicts  # noqa: E402
from checks import Checks  # noqa: E402
from process import environment, run  # noqa: E402
from running import PATIENCE_S, wait_for  # noqa: E402

INCIDENTS = os.path.join(HERE, "..", "..", "bench", "diagnosis", "run")


def job_lines(name, seed):
    """The lines of each rank of a job with one leaking rank."""
    job = generate.Job(name, seed, 4, steps=9, swing=0.2, leak_rank=2, leak_step=4, leak_share=0.3,
                       leak_at="backward", skew_s=0.5)
    return [list(generate.Rank(job, rank).lines()) for rank in range(job.ranks)]


def interleaved(lines):
    """Round by round, as ranks that run at the same time write them."""
    longest = max(len(own) for own in lines)
    return [own[i] for i in range(longest) for own in lines if i < len(own)]


def murmur2(data):
    """As Kafka's clients hash keys (the hash of Java's DefaultPartitioner), without the sign."""
    mask, mixer = 0xffffffff, 0x5bd1e995
    value = 0x9747b28c ^ len(data)
    whole = len(data) // 4 * 4
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at:at + 4], "little") * mixer & mask
        word = (word ^ word >> 24) * mixer & mask
        value = value * mixer & mask ^ word
    if whole < len(data):
        value = (value ^ int.from_bytes(data[whole:], "little")) * mixer & mask
    value = (value ^ value >> 13) * mixer & mask
    return (value ^ value >> 15) & 0x7fffffff


def essence(found):
    keys = ("id", "kind", "severity", "action", "entities")
    return sorted([[verdict[key] for key in keys] for verdict in found
                   if verdicts.severity_at_least(verdict, "warning")], key=str)


class Culprit:
    """`culprit run` with a config of its own, in a folder of its own."""

    def __init__(self, suite, name, config):
        self.binary = suite.binary
        self.folder = os.path.join(suite.folder, name)
        self.config = os.path.join(self.folder, "culprit.yaml")
        self.output = os.path.join(self.folder, "verdicts.jsonl")
        self.log = os.path.join(self.folder, "log")
        os.makedirs(self.folder)
        with open(self.config, "w", encoding="utf-8") as file:
            json.dump(config(self.folder, self.output), file)
        self.process = None

    def start(self):
        self.log_file = open(self.log, "ab")
        self.begins = self.log_file.tell()
        self.process = subprocess.Popen([self.binary, "run", "--config", self.config],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=self.log_file, env=environment())
        return self

    def runs(self):
        """Whether it has said so since it was started."""
        with open(self.log, "rb") as file:
            file.seek(self.begins)
            return b'"C1001"' in file.read() or self.process.poll() is not None

    def stop(self, number=signal.SIGTERM):
        # One that has only just been started does not catch the signal yet.
        if number == signal.SIGTERM:
            wait_for(self.runs)
        self.process.send_signal(number)
        try:
            code = self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            code = "none after %d s" % PATIENCE_S
        self.process = None
        self.log_file.close()
        return code

    def found(self):
        """The last state of each verdict; a last line that is being written is not read."""
        if not os.path.exists(self.output):
            return []
        with open(self.output, encoding="utf-8") as file:
            text = file.read()
        return verdicts.read_lines(text[:text.rfind("\n") + 1])

    def said(self, *words):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return any(all(word in line for word in words) for line in file)

    def partitions(self):
        """Those that it has, as its own metrics tell."""
        with open(self.config, encoding="utf-8") as file:
            address = json.load(file)["service"]["telemetry"]["metrics"]["endpoint"]
        try:
            with urllib.request.urlopen("http://%s/metrics" % address,
                                        timeout=PATIENCE_S) as answer:
                text = answer.read().decode()
        except OSError:
            return set()
        return set(re.findall(r'^culprit_kafka_receiver_offset_lag\{.*partition="(\d+)"', text,
                              re.M))

    def last_words(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()[-3000:]


TIMING = {"evaluate_every": "1s", "allowed_lateness": "1s", "settle": "1s", "idle_timeout": "4s"}


class Suite:
    def __init__(self, binary, folder, broker):
        self.binary, self.folder, self.broker = binary, folder, broker
        self.checks = Checks()

    # -- kcat ------------------------------------------------------------------------------------

    def produce(self, topic, lines, key):
        done = subprocess.run(["kcat", "-P", "-b", self.broker.address, "-t", topic, "-k", key,
                               "-X", "topic.partitioner=murmur2_random"],
                              input="".join(line + "\n" for line in lines).encode(),
                              capture_output=True, timeout=60, check=False)
        self.checks.equal(done.returncode, 0, "kcat produces to %s" % topic)

    def consume(self, topic):
        """All that is there now: (key, headers, value) each."""
        done = subprocess.run(["kcat", "-C", "-b", self.broker.address, "-t", topic, "-e", "-q",
                               "-J", "-X", "isolation.level=read_committed"],
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=60,
                              check=False)
        records = []
        for line in done.stdout.decode("utf-8", "replace").split("\n"):
            if line:
                record = json.loads(line)
                flat = record.get("headers", [])
                records.append((record["key"], dict(zip(flat[::2], flat[1::2])),
                                record["payload"]))
        return records

    def wait_for(self, what, condition, *processes):
        def ended():
            return [one for one in processes
                    if one.process is not None and one.process.poll() is not None]
        holds = wait_for(lambda: condition() or ended()) and not ended()
        return self.checks.check(holds, lambda: "%s: not within %d s, or culprit ended%s" % (
            what, PATIENCE_S, "".join("\n" + one.last_words() for one in processes)))

    # -- configs ---------------------------------------------------------------------------------

    def gateway(self, topic, group, store=False, **options):
        def config(folder, output):
            made = {
                "receivers": {"kafka": dict({
                    "brokers": [self.broker.address], "topics": [topic], "group_id": group,
                    "session_timeout": "2s", "heartbeat_interval": "300ms",
                    "librdkafka": ["reconnect.backoff.max.ms=500"]}, **options)},
                "processors": {"job_filter": {"job_id": "each"}},
                "exporters": {
                    "json": {"path": output},
                    "kafka": {"brokers": [self.broker.address], "topic": topic + ".verdicts"}},
                "service": {
                    "checkpoint_interval": "200ms",
                    "telemetry": {"metrics": {
                        "endpoint": "127.0.0.1:%d" % kafka_broker.free_port()}},
                    "pipelines": {"memory": dict({
                        "receivers": ["kafka"], "exporters": ["json", "kafka"],
                        "processors": ["job_filter", "rank_group", "align", "spike_detect",
                                       "first_cause", "phase_attribution"]}, **TIMING)}}}
            for name in ("rank_group", "align", "spike_detect", "first_cause",
                         "phase_attribution"):
                made["processors"][name] = {}
            if store:
                made["extensions"] = {"file_storage": {"directory": folder + "/store"}}
                made["service"]["extensions"] = ["file_storage"]
            return made
        return config

    def sidecar(self, topic, pattern, store=False):
        def config(folder, _):
            made = {
                "receivers": {"file": {"include": [pattern], "start_at": "beginning"}},
                "processors": {"job_filter": {"job_id": "each"}},
                "exporters": {"kafka": {
                    "brokers": [self.broker.address], "topic": topic, "payload": "events",
                    "sender": "node-1", "timeout": "2s",
                    "retry_on_failure": {"initial_interval": "100ms", "max_interval": "500ms"},
                    "librdkafka": ["reconnect.backoff.max.ms=500"]}},
                "service": {
                    "checkpoint_interval": "200ms",
                    "pipelines": {"forward": {"receivers": ["file"], "exporters": ["kafka"],
                                              "processors": ["job_filter"]}}}}
            if store:
                made["extensions"] = {"file_storage": {"directory": folder + "/store"}}
                made["service"]["extensions"] = ["file_storage"]
            return made
        return config

    def write_job(self, name, lines):
        folder = os.path.join(self.folder, name)
        os.makedirs(folder, exist_ok=True)
        for rank, own in enumerate(lines):
            with open(os.path.join(folder, "rank%d.jsonl" % rank), "w", encoding="utf-8") as file:
                file.write("".join(line + "\n" for line in own))
        return folder

    def analyzed(self, name, lines):
        done = run(self.binary, "analyze", "--output", "verdicts", self.write_job(name, lines))
        self.checks.equal(done.code, 0, "analyze of " + name)
        return essence(verdicts.read_lines(done.text()))

    # -- the cases -------------------------------------------------------------------------------

    def gateway_finds_what_analyze_finds(self):
        """Two jobs from kcat, several records of one in one message, and the verdicts topic."""
        wanted = []
        for name, seed in (("job-a", 77), ("job-b", 78)):
            lines = job_lines(name, seed)
            wanted += self.analyzed(name, lines)
            self.produce("events", interleaved(lines), name)
        wanted.sort(key=str)
        self.checks.check(len(wanted) >= 2, "both jobs have a verdict: %r" % wanted)
        gateway = Culprit(self, "gateway-1", self.gateway("events", "one")).start()
        self.wait_for("the gateway finds both jobs' verdicts",
                      lambda: essence(gateway.found()) == wanted, gateway)
        self.checks.equal(gateway.stop(), 0, "exit code of the gateway")
        self.checks.equal(essence(gateway.found()), wanted, "what the gateway found")
        sent = self.consume("events.verdicts")
        self.checks.equal(
            essence(verdicts.read_lines("\n".join(value for _, _, value in sent))), wanted,
            "what is in the verdicts topic")
        for key, headers, value in sent:
            verdict = json.loads(value)
            self.checks.check(key.endswith("/" + verdict["id"]), "the key %s" % key)
            self.checks.equal(headers.get("culprit-verdict-id"), verdict["id"], "header of the id")
            self.checks.equal(headers.get("culprit-schema"), "culprit.verdict.v1", "header")

    def sidecar_feeds_gateway(self):
        lines = job_lines("job-c", 79)
        wanted = self.analyzed("job-c", lines)
        total = sum(map(len, lines))
        pattern = os.path.join(self.folder, "job-c", "*.jsonl")
        sidecar = Culprit(self, "sidecar-2", self.sidecar("passed", pattern)).start()
        gateway = Culprit(self, "gateway-2", self.gateway("passed", "two")).start()
        self.wait_for("the gateway finds what the sidecar saw",
                      lambda: essence(gateway.found()) == wanted, gateway, sidecar)
        self.checks.equal(sidecar.stop(), 0, "exit code of the sidecar")
        self.checks.equal(gateway.stop(), 0, "exit code of the gateway")
        records = self.consume("passed")
        self.checks.equal(sorted(value for _, _, value in records),
                          sorted(line for own in lines for line in own), "records as they came")
        numbers = [int(headers["culprit-sequence"]) for _, headers, _ in records]
        self.checks.equal(sorted(numbers), list(range(1, total + 1)), "numbers of the records")
        self.checks.equal({key for key, _, _ in records}, {"job-c"}, "keys")
        for _, headers, value in records:
            event = json.loads(value)
            if event.get("event_type") != "sample":
                continue
            self.checks.check(headers["culprit-format"] == "stormlog"
                              and headers["culprit-job"] == "job-c"
                              and headers["culprit-generation"] == "1"
                              and int(headers["culprit-first-sample"]) <= event["timestamp_ns"],
                              "headers of a record: %r" % headers)

    def another_gateway_takes_over(self):
        lines = job_lines("job-d", 80)
        wanted = self.analyzed("job-d", lines)
        all_lines = interleaved(lines)
        half = len(all_lines) // 2
        first = Culprit(self, "gateway-3a", self.gateway("taken", "three")).start()
        self.wait_for("one gateway has both partitions",
                      lambda: first.partitions() == {"0", "1"}, first)
        second = Culprit(self, "gateway-3b", self.gateway("taken", "three")).start()
        self.wait_for("two gateways share the partitions", lambda: sorted(
            [*first.partitions(), *second.partitions()]) == ["0", "1"] and second.partitions(),
            first, second)
        self.produce("taken", all_lines[:half], "job-d")
        self.wait_for("what was read is committed", lambda: half in [
            offset for offset, _ in self.broker.committed("three", "taken").values()],
            first, second)
        number, = [number for number, (offset, _) in
                   self.broker.committed("three", "taken").items() if offset == half]
        self.checks.check(self.broker.committed("three", "taken")[number][1].startswith(
            "culprit1 ts=1"), "the commit tells the time of its record")
        # The one that has the job's partition is killed.
        has_it = str(number) in second.partitions()
        holder, other = (second, first) if has_it else (first, second)
        self.checks.equal(holder.stop(signal.SIGKILL), -signal.SIGKILL, "killed")
        self.produce("taken", all_lines[half:], "job-d")
        self.wait_for("the other gateway finds it",
                      lambda: essence(other.found()) == wanted, other)
        self.checks.equal(other.stop(), 0, "exit code of the other gateway")
        self.checks.equal(essence(other.found()), wanted, "what the other gateway found")

    def broker_goes_and_comes(self):
        lines = job_lines("job-e", 81)
        wanted = self.analyzed("job-e", lines)
        folder = os.path.join(self.folder, "job-e")
        total = sum(map(len, lines))
        sidecar = Culprit(self, "sidecar-4",
                          self.sidecar("interrupted", os.path.join(folder, "live-*.jsonl")))
        gateway = Culprit(self, "gateway-4", self.gateway("interrupted", "four"))
        sidecar.start()
        gateway.start()
        self.append(folder, lines, 0, 0.3)
        self.wait_for("some records have arrived", lambda: len(self.consume("interrupted")) > 0,
                      sidecar, gateway)
        self.broker.stop()
        self.append(folder, lines, 0.3, 0.7)
        self.wait_for("the gateway says that no broker is there",
                      lambda: gateway.said("brokers cannot be used"), sidecar, gateway)
        self.broker.start()
        self.append(folder, lines, 0.7, 1)
        self.wait_for("the verdict is there", lambda: essence(gateway.found()) == wanted,
                      sidecar, gateway)
        self.checks.equal(sidecar.stop(), 0, "exit code of the sidecar")
        self.checks.equal(gateway.stop(), 0, "exit code of the gateway")
        numbers = [int(headers["culprit-sequence"])
                   for _, headers, _ in self.consume("interrupted")]
        self.checks.equal(sorted(set(numbers)), list(range(1, total + 1)), "all records arrived")
        self.checks.equal(len(numbers), total, "each once")

    def append(self, folder, lines, begin, end):
        for rank, own in enumerate(lines):
            with open(os.path.join(folder, "live-%d.jsonl" % rank), "a", encoding="utf-8") as file:
                file.write("".join(line + "\n"
                                   for line in own[int(len(own) * begin):int(len(own) * end)]))

    def poison_goes_to_the_dead_letters(self):
        lines = job_lines("job-f", 82)
        wanted = self.analyzed("job-f", lines)
        bad = ['{"timestamp_ns": "no"}', '{"no JSON at all', '{"schema_version": 99}']
        mixed = interleaved(lines)
        mixed[10:10] = bad[:2]
        mixed.append(bad[2])
        self.produce("poisoned", mixed, "job-f")
        gateway = Culprit(self, "gateway-5", self.gateway(
            "poisoned", "five", dead_letter={"topic": "poisoned.dlq"})).start()
        self.wait_for("the verdict is found between refused records",
                      lambda: essence(gateway.found()) == wanted, gateway)
        self.wait_for("the refused records are dead letters",
                      lambda: len(self.consume("poisoned.dlq")) >= 3, gateway)
        self.checks.equal(gateway.stop(), 0, "exit code of the gateway")
        letters = self.consume("poisoned.dlq")
        self.checks.equal(sorted(value for _, _, value in letters), sorted(bad), "values")
        for key, headers, value in letters:
            self.checks.equal(key, "job-f", "key")
            self.checks.equal(headers["__connect.errors.topic"], "poisoned", "topic")
            self.checks.check(headers["__connect.errors.partition"] in ("0", "1"), "partition")
            self.checks.check(headers["__connect.errors.offset"].isdigit(), "offset")
            self.checks.check(headers["__connect.errors.exception.message"] != "",
                              "reason for %s" % value)

    def takes_up_where_it_was(self):
        """With a store on both sides, killed in between: each record counts once."""
        lines = job_lines("job-g", 83)
        wanted = self.analyzed("job-g", lines)
        folder = os.path.join(self.folder, "job-g")
        total = sum(map(len, lines))
        sidecar = Culprit(self, "sidecar-6", self.sidecar(
            "stored", os.path.join(folder, "live-*.jsonl"), store=True)).start()
        gateway = Culprit(self, "gateway-6", self.gateway("stored", "six", store=True)).start()
        for step in range(4):
            self.append(folder, lines, step / 4, (step + 1) / 4)
            self.wait_for("records of step %d arrive" % step,
                          lambda: len(self.consume("stored")) >= total * step // 4 + 1,
                          sidecar, gateway)
            sidecar.stop(signal.SIGKILL)
            gateway.stop(signal.SIGKILL)
            sidecar.start()
            gateway.start()
        self.wait_for("the verdict is there", lambda: essence(gateway.found()) == wanted,
                      sidecar, gateway)
        self.checks.equal(sidecar.stop(), 0, "exit code of the sidecar")
        self.checks.equal(gateway.stop(), 0, "exit code of the gateway")
        numbers = {}
        for _, headers, value in self.consume("stored"):
            mark = headers["culprit-sender"], headers["culprit-sequence"]
            self.checks.equal(numbers.setdefault(mark, value), value,
                              "a number stands for one record")
        self.checks.equal(sorted(numbers.values()), sorted(line for own in lines for line in own),
                          "every record once, repeats aside")

    def ends(self, topic):
        """How many records the topic has had."""
        done = subprocess.run(["kcat", "-Q", "-b", self.broker.address, "-t", topic + ":0:-1",
                               "-t", topic + ":1:-1"], stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=60, check=False)
        return sum(int(number) for number in re.findall(rb"offset (\d+)", done.stdout))

    def killed_with_blocks_under_way(self):
        """Many small blocks wait, and several are under way whenever it is killed: nothing is
        lost, what comes again has the numbers that it had, and all is in order."""
        total = 12000
        sample = json.loads(job_lines("job-h", 84)[0][0])
        lines = [json.dumps({**sample, "timestamp_ns": sample["timestamp_ns"] + i})
                 for i in range(total)]
        pattern = os.path.join(self.write_job("job-h", [lines]), "*.jsonl")
        config = self.sidecar("killed", pattern, store=True)

        def small_blocks(folder, output):
            made = config(folder, output)
            made["exporters"]["kafka"]["sending_queue"] = {"batch": {"max_size": "8KiB"}}
            return made
        sidecar = Culprit(self, "sidecar-7", small_blocks)
        for step in range(5):
            before = self.ends("killed")
            sidecar.start()
            self.wait_for("records of step %d arrive" % step,
                          lambda: self.ends("killed") > before, sidecar)
            sidecar.stop(signal.SIGKILL)
        sidecar.start()
        self.wait_for("all arrive", lambda: len({
            headers["culprit-sequence"] for _, headers, _ in self.consume("killed")}) == total,
            sidecar)
        self.checks.equal(sidecar.stop(), 0, "exit code of the sidecar")
        records = self.consume("killed")
        self.checks.equal(len({headers["culprit-sender"] for _, headers, _ in records}), 1,
                          "the numbers are of one sender")
        highest, kept = 0, []
        for _, headers, value in records:  # as the receiver tells repeats
            number = int(headers["culprit-sequence"])
            if number > highest:
                highest = number
                kept.append(value)
            else:
                self.checks.equal(value, kept[number - 1], "a number stands for one record")
        self.checks.check(kept == lines, "every record once and in order, repeats aside: %d of %d"
                          % (len(kept), total))
        print("killed_with_blocks_under_way: %d repeats" % (len(records) - len(kept)))

    # -- evidence of nodes ------------------------------------------------------------------------

    def make_incident(self):
        """A GPU that is lost, and the hang of its job."""
        kept = os.path.join(self.folder, "made")
        done = subprocess.run(
            [sys.executable, "-B", INCIDENTS, self.binary, "--classes", "gpu", "--cases", "1",
             "--keep", kept, "--jobs", "1"], capture_output=True, timeout=60, check=False,
            env=environment())
        self.checks.equal(done.returncode, 0, "an incident is made: " + done.stderr.decode())
        return os.path.join(kept, "none", "gpu-000", "input")

    def copy_incident(self, incident, number, job):
        """The same with other names for the job, its pods, nodes and GPUs."""
        target = os.path.join(self.folder, job)
        with open(os.path.join(incident, "rank_map.jsonl"), "rb") as file:
            pod = json.loads(file.readline())["k8s.pod.name"]
        own = pod.rsplit("-worker-", 1)[0].encode()
        digit = b"%d" % number
        for folder, _, names in os.walk(incident):
            for name in names:
                path = os.path.join(folder, name)
                with open(path, "rb") as file:
                    data = file.read()
                if "dumps" not in folder:   # a dump may be pickled: nothing in it is of one job
                    data = data.replace(own, job.encode())
                    data = data.replace(b"nid0", b"nid" + digit)
                    data = re.sub(rb"GPU-[0-9a-f]", b"GPU-" + digit, data)
                    data = re.sub(rb'"uid":"[0-9a-f]', b'"uid":"' + digit, data)
                    data = data.replace(b"10.40.", b"10.4%d." % number)
                place = os.path.join(target, os.path.relpath(path, incident))
                os.makedirs(os.path.dirname(place), exist_ok=True)
                with open(place, "wb") as file:
                    file.write(data)
        return target

    def passes_on(self, name, topic, receivers):
        return Culprit(self, name, lambda folder, _: {
            "receivers": receivers,
            "exporters": {"kafka": {"brokers": [self.broker.address], "topic": topic,
                                    "payload": "events", "sender": name, "timeout": "5s"}},
            "service": {"pipelines": {"forward": {"receivers": list(receivers),
                                                  "exporters": ["kafka"]}}}})

    def judges(self, name, topic):
        def config(folder, output):
            # A static member keeps its partitions when it stops: nobody takes them over meanwhile.
            made = self.gateway(topic, topic, group_instance_id=name, session_timeout="30s")(
                folder, output)
            made["exporters"].pop("kafka")
            made["processors"] = {"job_filter": {"job_id": "each"}}
            # What the nodes say comes long before the rest: all is judged at the end.
            made["service"]["pipelines"] = {"jobs": dict(TIMING, **{
                "receivers": ["kafka"], "preset": "all", "exporters": ["json"],
                "allowed_lateness": "2h", "idle_timeout": "1h"})}
            return made
        return Culprit(self, name, config)

    def fault_and_hang_meet(self):
        """Four jobs in four partitions that two gateways share. What their nodes say has no job and
        comes first, before any rank map; each gateway must find the lost GPU of its jobs, and the
        hang as what follows from it, as analyze does."""
        topic = "meets"
        self.broker.create_topic_of(topic, 4)
        incident = self.make_incident()
        jobs = [next(name for name in ("job-%d-%d" % (number, i) for i in range(1000))
                     if murmur2(name.encode()) % 4 == number) for number in range(4)]
        folders = [self.copy_incident(incident, number, job) for number, job in enumerate(jobs)]
        node = ["*/kern*", "*/journal*", "*/dcgm*", "kubernetes/*"]
        of_job = ["*/telemetry/*", "*/dumps/*", "rank_map.jsonl"]
        nodes = self.passes_on("nodes", topic, {"file": {"include": [
            os.path.join(folder, pattern) for folder in folders for pattern in node]}})
        trainers = self.passes_on("trainers", topic, {
            "file/%d" % number: {"job_id": job, "include": [
                os.path.join(folders[number], pattern) for pattern in of_job]}
            for number, job in enumerate(jobs)})
        gateways = [self.judges("meets-%d" % i, topic).start() for i in range(2)]
        self.wait_for("two gateways share the partitions", lambda: sorted(
            len(one.partitions()) for one in gateways) == [2, 2], *gateways)
        has = [one.partitions() for one in gateways]
        for sender in (nodes, trainers):
            sender.start()
            self.wait_for(sender.config + " runs", sender.runs, *gateways)
            self.checks.equal(sender.stop(), 0, "exit code of " + sender.config)
            ends = self.ends_of(topic, 4)
            self.wait_for("what was sent has been read", lambda ends=ends: {
                number: offset for number, (offset, _) in
                self.broker.committed(topic, topic, 4).items()} == ends, *gateways)
        self.checks.check(all(ends.get(number, 0) > 0 for number in range(4)),
                          "each partition has records: %r" % ends)
        for one in gateways:
            code = one.stop()
            self.checks.equal(code, 0, "exit code of a gateway" + (
                "" if code == 0 else "\n" + one.last_words()))
        self.check_copies(topic)
        for number, folder in enumerate(folders):
            done = run(self.binary, "analyze", "--output", "verdicts", folder)
            wanted = self.fault_and_hangs(verdicts.read_lines(done.text()), number)
            self.checks.check(wanted is not None and len(wanted[3]) > 1,
                              "analyze finds the root of the hang of %s: %r"
                              % (jobs[number], wanted))
            for own, one in zip(has, gateways):
                found = self.fault_and_hangs(one.found(), number)
                if str(number) not in own:  # knows of the GPU, and of no job there
                    wanted_here = [*wanted[:2], [one for one in wanted[2]
                                                 if one["role"] != "victim"], []]
                else:
                    wanted_here = wanted
                self.checks.equal(found, wanted_here, "the gateway with partitions %s about %s"
                                  % (own, jobs[number]))

    @staticmethod
    def fault_and_hangs(found, number):
        """The root on a node of that incident, and the hangs that it causes. None: no root."""
        def told(one):
            return [one["headline"], one["entities"]]
        by_id = {one["id"]: one for one in found}
        for fault in found:
            if fault["pattern"] == "gpu_fault" and fault["attributes"]["culprit.root"] and any(
                    one["kind"] == "node" and one["name"].startswith("nid%d" % number)
                    for one in fault["entities"]):
                hangs = [told(by_id[one["id"]]) for one in fault.get("related", [])
                         if one["relation"] == "causes"]
                return [fault["id"], *told(fault), sorted(hangs, key=str)]
        return None

    def check_copies(self, topic):
        """What has no job is in each partition with one number, or there is too much of it."""
        places = {}
        done = subprocess.run(["kcat", "-C", "-b", self.broker.address, "-t", topic, "-e", "-q",
                               "-J"], stdin=subprocess.DEVNULL, capture_output=True, timeout=60,
                              check=False)
        for line in done.stdout.decode("utf-8", "replace").splitlines():
            record = json.loads(line)
            headers = dict(zip(record["headers"][::2], record["headers"][1::2]))
            mark = headers["culprit-sender"], headers["culprit-sequence"]
            own = places.setdefault(mark, (headers, record["key"], []))
            own[2].append(record["partition"])
        copied, wrong = 0, []
        for headers, key, partitions in places.values():
            if "culprit-job" in headers:
                right = key == headers["culprit-job"] and len(partitions) == 1
            elif headers["culprit-format"] == "dcgm_json":
                right = key == headers["culprit-node"] and len(partitions) == 1
            else:
                copied += 1
                right = (headers.get("culprit-copies") == "4" and key is None
                         and sorted(partitions) == [0, 1, 2, 3])
            if not right:
                wrong.append((headers, key, partitions))
        self.checks.equal(wrong[:3], [], "where records of jobs, samples and evidence are")
        self.checks.check(copied > 8, "%d records were for all" % copied)

    def ends_of(self, topic, partitions):
        """{partition: how many records it has had}, of those with any."""
        asked = [word for number in range(partitions)
                 for word in ("-t", "%s:%d:-1" % (topic, number))]
        done = subprocess.run(["kcat", "-Q", "-b", self.broker.address, *asked],
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=60,
                              check=False)
        found = re.findall(rb"\[(\d+)\] offset (\d+)", done.stdout)
        return {int(number): int(offset) for number, offset in found if int(offset) > 0}

    def all(self):
        for topic in ("events", "events.verdicts", "passed", "passed.verdicts", "taken",
                      "taken.verdicts", "interrupted", "interrupted.verdicts", "poisoned",
                      "poisoned.verdicts", "poisoned.dlq", "stored", "stored.verdicts",
                      "killed"):
            self.broker.create_topic(topic)
        for case in (self.gateway_finds_what_analyze_finds, self.sidecar_feeds_gateway,
                     self.poison_goes_to_the_dead_letters, self.another_gateway_takes_over,
                     self.takes_up_where_it_was, self.killed_with_blocks_under_way,
                     self.fault_and_hang_meet, self.broker_goes_and_comes):
            if len(sys.argv) > 2 and case.__name__ not in sys.argv[2:]:
                continue
            begun = time.monotonic()
            case()
            print("%s: %.1f s" % (case.__name__, time.monotonic() - begun), flush=True)


def main(binary):
    reason = kafka_broker.unavailable()
    if reason:
        checks = Checks()
        checks.check(not os.environ.get("CI"), "Kafka must be tested in CI: " + reason)
        checks.skip("no Kafka broker can be run: " + reason)
        return checks.finish()
    with tempfile.TemporaryDirectory(prefix="culprit-kafka-") as folder:
        broker = kafka_broker.Broker(os.path.join(folder, "broker"))
        try:
            broker.start()
            suite = Suite(binary, folder, broker)
            suite.all()
        finally:
            broker.stop(kill=True)
    return suite.checks.finish()


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
