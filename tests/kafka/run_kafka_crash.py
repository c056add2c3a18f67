#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""culprit killed again and again while events arrive by file, HTTP and Kafka.

    run_kafka_crash.py BINARY [KILLS]

The crash test of tests/run/run_crash.py with two ranks by each way, and a real broker. Every third
run lives long enough to get its partition.
"""
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, os.path.join(HERE, "..", "run"))
import kafka_broker  # noqa: E402
import run_crash  # noqa: E402
from checks import Checks  # noqa: E402
from running import PATIENCE_S  # noqa: E402


class Run(run_crash.Run):
    by_file, by_http, by_kafka = (0, 1), (2, 3), (4, 5)
    made = 0

    def __init__(self, binary, folder, broker):
        Run.made += 1
        self.broker = broker
        self.topic = "crash-%d" % Run.made
        self.produced = 0
        broker.create_topic(self.topic)
        super().__init__(binary, folder)
        # What is there at the start is read before anything is judged.
        self.write(0)

    def receivers(self):
        return {**super().receivers(),
                "kafka": {"brokers": [self.broker.address], "topics": [self.topic],
                          "group_id": self.topic, "group_instance_id": "one",
                          "session_timeout": "6s"}}

    def write(self, number):
        if number == 0 and self.produced > 0:
            return
        lines = [line for rank in self.by_kafka
                 for line in run_crash.ROUNDS[number].get(rank, [])]
        if lines:
            done = subprocess.run(["kcat", "-P", "-b", self.broker.address, "-t", self.topic,
                                   "-k", run_crash.JOB.name, "-X", "acks=all"],
                                  input=("\n".join(lines) + "\n").encode(), capture_output=True,
                                  timeout=PATIENCE_S, check=False)
            self.produced += len(lines)
            if done.returncode != 0:
                self.failures.append("kcat: %s" % done.stderr.decode()[-300:])
        if number == 0:
            by_http, self.by_http = self.by_http, ()
            super().write(0)
            self.by_http = by_http
            return
        if number == 1:
            # Requests need a listener, so those of the first round come with the second.
            for rank in self.by_http:
                self.post("0/%d" % rank, run_crash.ROUNDS[0][rank])
        super().write(number)

    def pause(self, chance):
        if chance.random() < 0.3:
            return chance.uniform(0.5, 2)
        return super().pause(chance)

    def wait_for_all(self):
        limit = time.monotonic() + PATIENCE_S
        while time.monotonic() < limit:
            offsets = self.broker.committed(self.topic, self.topic)
            if sum(offset for offset, _ in offsets.values() if offset > 0) >= self.produced:
                return
            time.sleep(0.1)
        self.failures.append("not all records were committed: %r of %d"
                             % (self.broker.committed(self.topic, self.topic), self.produced))


def main():
    binary = os.path.abspath(sys.argv[1])
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else 40
    checks = Checks()
    reason = kafka_broker.unavailable()
    if reason:
        checks.check(not os.environ.get("CI"), "Kafka must be tested in CI: " + reason)
        checks.skip("no Kafka broker can be run: " + reason)
        return checks.finish()
    with tempfile.TemporaryDirectory(prefix="culprit-kafka-crash-") as folder:
        broker = kafka_broker.Broker(os.path.join(folder, "broker"))
        try:
            broker.start()
            run_crash.killed(lambda inner: Run(binary, inner, broker), kills, checks)
        finally:
            broker.stop(kill=True)
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
