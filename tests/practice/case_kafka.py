# SPDX-License-Identifier: Apache-2.0
"""Records of Kafka that hold what programs draw."""
import os
import subprocess

from case_bars import MESSAGE, bar
from process import environment
from world import Live

TOPIC = "logs"


class Broker:
    """tests/fault/kafka_mock.c, where it was built."""

    def __init__(self, program):
        self.process = subprocess.Popen([program, TOPIC], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, env=environment())
        self.address = self.process.stdout.readline().decode().strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def produce(self, *lines):
        text = "".join(line + "\n" for line in ("produce %d" % len(lines),) + lines)
        self.process.stdin.write(text.encode())
        self.process.stdin.flush()
        return self.process.stdout.readline().strip() == b"ok"


def case_bars_in_kafka(suite, folder):
    """What stands between two states of a bar that one record holds is read, of one rank or of
    several, and of a record with a bar of hours."""
    program = os.path.join(os.path.dirname(suite.binary), "tests", "kafka_mock")
    if not os.path.exists(program):
        return
    with Broker(program) as broker:
        several = "".join(bar(1000, rank) + "\r" + MESSAGE % (rank, rank) + "\r"
                          for rank in range(4))
        records = (bar(9000) + "\r" + MESSAGE % (11, 11), bar(2000) + "\r" + MESSAGE % (12, 12) + bar(9),
                   several)
        receivers = {"kafka": {"brokers": [broker.address], "topics": [TOPIC],
                               "max_record_size": "512KiB"}}
        suite.checks.check(broker.produce(*records), "produced")
        with Live(suite.binary, os.path.join(folder, "run"), receivers) as live:
            suite.checks.check(live.wait(lambda: live.accepted() >= 6),
                               lambda: "%d of 6" % live.accepted())
            suite.checks.equal(live.metric("culprit_receiver_refused_records_total"), 0, "refused")
            live.stop(suite.checks, "kafka")
