#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A sink that is dead holds back its own pipeline and no other.

    run_dead_sink.py BINARY

Two pipelines read the same files and the same requests: one judges, the other passes all events on
to a Kafka broker that is not there, through a queue that holds a fraction of them. The verdict must
come out as if the other pipeline were not there; what is in the queue is bounded; and after a kill
both go on.
"""
import json
import os
import re
import sys
import tempfile
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
import run_crash  # noqa: E402
from checks import Checks  # noqa: E402
from running import PATIENCE_S, wait_for  # noqa: E402

QUEUE_BYTES = 64 << 10
BATCH_BYTES = 16 << 10


class Run(run_crash.Run):
    def __init__(self, binary, folder):
        super().__init__(binary, folder)
        self.metrics = run_crash.free_port()
        with open(self.config, encoding="utf-8") as file:
            config = json.load(file)
        config["exporters"]["kafka"] = {
            "brokers": ["127.0.0.1:%d" % run_crash.free_port()], "topic": "nowhere",
            "payload": "events",
            "sending_queue": {"queue_size": "%dKiB" % (QUEUE_BYTES >> 10),
                              "batch": {"max_size": "%dKiB" % (BATCH_BYTES >> 10)}}}
        config["service"]["pipelines"]["forward"] = {
            "receivers": ["file", "http"], "exporters": ["kafka"]}
        config["service"]["shutdown_timeout"] = "15s"
        config["service"]["telemetry"] = {
            "metrics": {"endpoint": "127.0.0.1:%d" % self.metrics}}
        with open(self.config, "w", encoding="utf-8") as file:
            json.dump(config, file)

    def metric(self, pattern):
        with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % self.metrics,
                                    timeout=PATIENCE_S) as answer:
            found = re.search(pattern + r" (\S+)", answer.read().decode())
        return float(found.group(1)) if found else 0

    def consumed(self, pipeline):
        return self.metric(r'culprit_pipeline_consumed_events_total\{pipeline="%s"\}' % pipeline)


def main():
    binary = os.path.abspath(sys.argv[1])
    checks = Checks()
    expected, _ = run_crash.undisturbed(lambda folder: run_crash.Run(binary, folder), checks)
    total = sum(len(lines) for step in run_crash.ROUNDS for lines in step.values())
    with tempfile.TemporaryDirectory() as folder:
        run = Run(binary, folder)
        run.start()
        run.wait_for_start()
        run.write_all()
        checks.check(wait_for(lambda: run.consumed("memory") >= total, run.process),
                     "the pipeline that judges has everything")
        checks.equal(run.consumed("memory"), total, "the pipeline that judges has everything, once")
        queue = r'culprit_exporter_queue_size_bytes\{exporter="kafka"\}'
        wait_for(lambda: run.metric(queue) >= QUEUE_BYTES, run.process)
        checks.check(run.consumed("forward") < total, "the other one is held back")
        queued = run.metric(queue)
        checks.check(QUEUE_BYTES <= queued < QUEUE_BYTES + (4 << 20),
                     "its queue is full and bounded: %r bytes" % queued)
        checks.equal(run.failures, [], "requests")
        run.process.kill()
        run.process.wait()
        run.start()
        checks.equal(run.stop(), 75, "exit code after a restart, the store keeps what waits: "
                     + run.log_text()[-1500:])
        checks.equal(run.bytes_of(run.output).decode(), expected.decode(), "verdicts")
        checks.check("Sanitizer" not in run.log_text(), "the sanitizer complains")
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
