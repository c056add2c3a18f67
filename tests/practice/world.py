# SPDX-License-Identifier: Apache-2.0
"""A job to be told of, a culprit that runs, and what it counts of itself."""
import json
import os
import time
import urllib.error
import urllib.request

import generate
from own_metrics import metric_sum
from ports import free_port
from process import run
from running import PATIENCE_S, Running, wait_for

JOB = generate.Job("practice", 31, 3, steps=12, swing=0.2, leak_rank=1, leak_step=4,
                   leak_share=0.3, leak_at="backward", skew_s=0.3)


def telemetry(rank):
    """The lines of one rank of a job whose rank 1 leaks in its backward pass."""
    return [line.encode() + b"\n" for line in generate.Rank(JOB, rank).lines()]


def write(path, *parts):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        for part in parts:
            file.write(part)
    return path


def append(path, *parts):
    with open(path, "ab") as file:
        for part in parts:
            file.write(part)


def write_job(folder):
    for rank in range(JOB.ranks):
        write(os.path.join(folder, "rank%d.jsonl" % rank), *telemetry(rank))
    return folder


def said(verdict):
    """What a reader goes by, without the times at which it was seen."""
    return {key: verdict.get(key)
            for key in ("id", "kind", "severity", "confidence", "headline", "entities")}


def said_of(text):
    return sorted((said(json.loads(line)) for line in text.splitlines() if line.startswith("{")),
                  key=json.dumps)


def analyze(binary, *arguments, output="verdicts"):
    return run(binary, "analyze", "--output", output, *arguments)


class Live(Running):
    """`receivers`: as in the configuration. With a store when `store` is set."""

    def __init__(self, binary, folder, receivers, store=False, preset="all", **pipeline):
        self.own = free_port()
        document = {
            "receivers": receivers,
            "exporters": {"json": {"path": self.verdicts_in(folder)}},
            "service": {
                "telemetry": {"metrics": {"endpoint": "127.0.0.1:%d" % self.own}},
                "pipelines": {"all": {"receivers": list(receivers), "preset": preset,
                                      "exporters": ["json"], "evaluate_every": "1s",
                                      "settle": "1s", "allowed_lateness": "1s",
                                      "idle_timeout": "1h", "caught_up_timeout": "1s",
                                      **pipeline}}}}
        if store:
            document["extensions"] = {
                "file_storage": {"directory": os.path.join(folder, "store")}}
            document["service"]["extensions"] = ["file_storage"]
            document["service"]["checkpoint_interval"] = "100ms"
        super().__init__(binary, folder, document)

    def metric(self, name):
        return metric_sum(self.own, name) or 0

    def accepted(self):
        return self.metric("culprit_receiver_accepted_events_total")

    def wait(self, condition):
        return wait_for(condition, self.process)


def post(port, body, content_type="application/x-ndjson"):
    """Lines to a receiver; again while it does not listen yet or has no room, as senders do."""
    request = urllib.request.Request("http://127.0.0.1:%d/v1/events" % port, body,
                                     {"Content-Type": content_type}, method="POST")
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                return answer.read()
        except urllib.error.URLError as error:  # an answer other than 503 is none of these
            if getattr(error, "code", 503) != 503 or time.monotonic() > until:
                raise
        time.sleep(0.05)
