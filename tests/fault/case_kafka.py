# SPDX-License-Identifier: Apache-2.0
"""Cases of run_faults.py with a Kafka broker that goes, comes, and answers with errors."""
import json
import os
import signal
import subprocess
import threading

from world import (ROUNDS, Failed, Run, disturbed, folder, hit, must, wait_for)

TOPIC = "t"
FETCH, OFFSET_COMMIT, FIND_COORDINATOR, JOIN_GROUP, HEARTBEAT, SYNC_GROUP = 1, 8, 10, 11, 12, 14


class Broker:
    """tests/fault/kafka_mock.c"""

    def __init__(self, context):
        self.lock = threading.Lock()
        self.process = subprocess.Popen([context.tool("kafka_mock"), TOPIC],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.address = self.process.stdout.readline().decode().strip()
        self.produced = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def tell(self, text):
        with self.lock:
            self.process.stdin.write(text.encode() + b"\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline().decode().strip()
        must(answer, "the mock broker ended at %.40r" % text)
        return answer

    def produce(self, lines):
        if lines:
            self.tell("\n".join(["produce %d" % len(lines), *lines]))
            self.produced += len(lines)

    def committed(self):
        return int(self.tell("committed " + TOPIC))


class KafkaRun(Run):
    """Two ranks by file, two by HTTP, two by Kafka."""

    by_file, by_http, by_kafka = (0, 1), (2, 3), (4, 5)

    def __init__(self, context, place, broker):
        self.broker = broker
        super().__init__(context, place)
        # What is there at the start is read before anything is judged.
        self.give_kafka(0)

    def receivers(self):
        return {**super().receivers(),
                "kafka": {"brokers": [self.broker.address], "topics": [TOPIC], "group_id": TOPIC,
                          "group_instance_id": "one", "session_timeout": "6s"}}

    def give_kafka(self, number):
        self.broker.produce([line for rank in self.by_kafka
                             for line in ROUNDS[number].get(rank, [])])

    def give(self, number, timeout_s=30):
        if number > 0:
            self.give_kafka(number)
        super().give(number, timeout_s)

    def stop(self):
        """Kafka is not read to its end by a stop."""
        wait_for(lambda: self.ended() or self.broker.committed() >= self.broker.produced,
                 lambda: "all is committed: %d of %d; %s" % (
                     self.broker.committed(), self.broker.produced, self.log_text()[-1500:]))
        return super().stop()


def brokers(context):
    """The broker goes and comes, answers with errors, and culprit is killed meanwhile."""
    kills = 0
    with Broker(context) as broker, folder() as place:
        run = KafkaRun(context, place, broker)
        run.start()
        turns = context.count(1, 5)
        for number in range(1 + 5 * turns):
            what = number % 5
            if what == 1:
                broker.tell("down")
            elif what == 2:
                broker.tell("up")
                for api in (FETCH, OFFSET_COMMIT, FIND_COORDINATOR):
                    broker.tell("fail %d 5" % api)
            elif what == 3:
                for api in (JOIN_GROUP, SYNC_GROUP, HEARTBEAT):
                    broker.tell("fail %d 3" % api)
                run.kill()
                kills += 1
                run.start()
            if number < len(ROUNDS):
                if what != 1:
                    run.give(number)
                else:
                    # The others go on while the broker is away; nothing can be produced then.
                    Run.give(run, number)
                    must(not run.missing, "requests wait for a broker that is away")
                    broker.tell("up")
                    run.give_kafka(number)
                    broker.tell("down")
        run.kill()
        run.finish(1 + 5 * turns)
        produced = broker.produced
    return "%d messages, %d times away, %d kills: each once" % (produced, turns, kills + 1)


def calls(context):
    """The n-th call fails while a batch comes by Kafka; then it comes by itself, or after a start.

    Not threads, nor memory of librdkafka: without them it ends the process by itself.
    """
    rules = ["malloc:%d:ENOMEM:0", "recv:%d:ECONNRESET", "send:%d:ECONNRESET"]
    if context.long:
        rules += ["socket:%d:EMFILE:2"]
    hits = runs = 0
    for rule in rules:
        binary = context.tool("culprit_without_memory") if "malloc" in rule else None
        for number in ((2, 9, 17, 60, 300, 500) if context.long else (7,)):
            with Broker(context) as broker, folder() as place:
                run, report = KafkaRun(context, place, broker), os.path.join(place, "report")
                try:
                    disturbed(context, run, 3, binary, **context.faults(rule % number, binary,
                                                                        report=report))
                    hits += hit(report) > 0
                    runs += 1
                    run.finish(3)
                except Failed as failed:
                    raise Failed("%s: %s" % (rule % number, failed)) from None
    must(hits > 0, "no call was reached")
    return "%d of %d runs with a call that failed" % (hits, runs)


def poison(context):
    """Messages that nobody can read stand between those of a job."""
    event = ROUNDS[1][4][0]
    bad = ["{", "null", "[" * 5000, "x" * 900_000, event[:-1], '{"schema_version":3}',
           "\x01\x02\x03", "\xff\xfe", event.replace('"rank":4', '"rank":-4'),
           event.replace('"pid":', '"pid":1e999,"p":')]
    tombstones = 3
    rounds = min(context.count(4, 20), len(ROUNDS))
    refused = 0
    with Broker(context) as broker, folder() as place:
        run = KafkaRun(context, place, broker)
        config = run.settings
        quarantine = os.path.join(place, "refused.jsonl")
        config["receivers"]["kafka"]["quarantine"] = quarantine
        run.write_config(config)
        run.start()
        run.give(0)
        for number in range(1, rounds):
            broker.tell("headers %d" % (90_000 if number == 2 else 0))
            # The mock keeps 5 MiB: one large message is enough.
            now = [line for line in bad if number == 1 or len(line) < 100_000]
            broker.produce(now + [""] * tombstones)
            # What does not even look like a record is a line of no interest, and counted as such.
            refused += sum(line.startswith('{"') for line in now)
            run.give(number)
        run.finish_running(rounds)
        with open(quarantine, encoding="utf-8") as file:
            found = [json.loads(line) for line in file]
        must(len(found) == refused, lambda: "quarantined: %d of %d; %r" % (
            len(found), refused, [str(item)[:100] for item in found[:20]]))
        for item in found:
            must(TOPIC in str(item.get("source", item)), lambda: "no place in %.300r" % item)
    return "%d messages refused, each once and with its place; %d tombstones; lag 0" % (
        refused, tombstones * (rounds - 1))


def with_signals(context):
    """A reload and a stop while the broker is away."""
    with Broker(context) as broker, folder() as place:
        run = KafkaRun(context, place, broker)
        run.start()
        run.give(0)
        run.give(1)
        broker.tell("down")
        run.signal(signal.SIGHUP)
        wait_for(lambda: '"C1012"' in run.log_text(), "the reload is answered")
        code = run.end()
        must(code == 0, lambda: "exit code %s: %s" % (code, run.log_text()[-1500:]))
        run.unharmed()
        broker.tell("up")
        run.finish(2)
    return "reloaded and stopped without a broker"
