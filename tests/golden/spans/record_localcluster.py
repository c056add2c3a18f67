#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs work on a real dask LocalCluster and writes down what its scheduler's spans saw and said.

    record_localcluster.py FOLDER [--processes]

FOLDER gets events.jsonl (a span stream, docs/spans.md), queries.json and expected.json: what the
cluster's own spans answered, in the middle of the work and at its end. Needs `distributed`
2026.8.0 (tests/support/fetched.py makes a Python that has it). Workers are threads of this process,
or with --processes processes of their own.

Everything is dask's own but the clock of its spans: that stands still while one submission is
taken in and while questions are answered, since the format has one time for each.
"""
import argparse
import json
import logging
import os
import sys
import time

import dask
import distributed.spans
from distributed import Client, LocalCluster, SchedulerPlugin
from distributed.utils import sync

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "oracle"))
import spans_dask  # noqa: E402


class Recorder(SchedulerPlugin):
    """Stands in a scheduler and writes the events of a span stream."""

    name = "span-recorder"

    def __init__(self, scheduler):
        self.scheduler = scheduler
        self.extension = scheduler.extensions["spans"]
        self.events, self.questions, self.answers = [], [], []
        self.created = {}  # group -> its number: what a document's order of groups goes by
        self.named = {}  # worker's address -> name
        self.frozen = None
        distributed.spans.time = self.now
        history = scheduler.total_nthreads_history
        self.write("start", history[0][0], nthreads=history[0][1])
        for moment, threads in history[1:]:
            self.write("threads", moment, total=threads)
        self.wrap("observe_tasks", self.observe)
        self.wrap("heartbeat", self.beat)
        self.update_data = scheduler.update_data
        for handlers in (scheduler.handlers, scheduler.stream_handlers):
            for name, handler in handlers.items():
                if handler == self.update_data:
                    handlers[name] = self.place
        scheduler.update_data = self.place
        scheduler.add_plugin(self)

    def now(self):
        return time.time() if self.frozen is None else self.frozen

    def write(self, kind, moment, **members):
        self.events.append({"ev": kind, "ts": moment, **members})

    def wrap(self, method, seen):
        real = getattr(self.extension, method)
        setattr(self.extension, method, lambda *given, **named: seen(real, *given, **named))

    def remember(self, group):
        self.created.setdefault(group, len(self.created))

    # -- what happens in the scheduler

    def add_worker(self, scheduler, worker):
        state = scheduler.workers[worker]
        self.named[worker] = str(state.name)
        self.write("join", scheduler.total_nthreads_history[-1][0], worker=self.named[worker],
                   nthreads=state.nthreads)

    def remove_worker(self, scheduler, worker, **_):
        self.write("leave", scheduler.total_nthreads_history[-1][0],
                   worker=self.named.pop(worker))

    def transition(self, key, start, finish, *_, **told):
        members = {}
        if (start, finish) == ("processing", "memory"):
            members["nbytes"] = told["nbytes"]
            members["actions"] = [[action["action"], action["start"], action["stop"]]
                                  for action in told["startstops"]]
        self.write("transition", time.time(), key=str(key), to=finish, **members)

    def observe(self, real, tasks, code, span_metadata):
        tasks = list(tasks)
        known, named, listed = set(self.extension.spans), set(), []
        for task in tasks:
            self.remember(task.group)
            entry = {"key": str(task.key), "group": task.group.name}
            span = (task.annotations or {}).get("span")
            if span:
                named |= set(span["ids"])
                entry["span"] = {"name": list(span["name"]), "ids": list(span["ids"])}
            listed.append(entry)
        self.frozen = time.time()
        answer = real(tasks, code=code, span_metadata=span_metadata)
        members = {"tasks": listed}
        if code:
            members["code"] = [frame._asdict() for frame in code]
        if span_metadata:
            members["collections"] = json.loads(json.dumps(span_metadata["collections"],
                                                           default=str))
        for opened in set(self.extension.spans) - known - named:
            members["default_id"] = opened
        self.write("tasks", self.frozen, **members)
        self.frozen = None
        return answer

    def beat(self, real, worker, data):
        if data:
            self.write("metrics", time.time(), worker=str(worker.name),
                       data=[[*map(str, key), value] for key, value in data.items()])
        return real(worker, data)

    def place(self, *, who_has, nbytes, client=None):
        """Data that a client hands in."""
        moment, before = time.time(), len(self.events)
        self.update_data(who_has=who_has, nbytes=nbytes, client=client)
        placed = []
        for key in who_has:
            group = self.scheduler.tasks[key].group
            self.remember(group)
            placed.append({"key": str(key), "group": group.name, "nbytes": nbytes[key]})
        # Before the transitions that it led to, if any.
        self.events.insert(before, {"ev": "data", "ts": moment, "tasks": placed})

    # -- questions

    async def ask(self, *queries):
        """Puts questions to the spans as they are now."""
        self.frozen = self.events[-1]["ts"]
        view = LiveView(self)
        for query in queries:
            asked = {**query, "after": len(self.events), "now": self.frozen}
            self.questions.append(asked)
            self.answers.append(json.loads(json.dumps(spans_dask.answer(view, asked))))
        self.frozen = None

    async def document(self):
        self.frozen = self.events[-1]["ts"]
        document = {
            "format": 1, "made_with": "distributed " + distributed.__version__,
            "accepted": len(self.events), "rejected": [], "now": self.frozen,
            "total_nthreads_history": [list(p) for p in self.scheduler.total_nthreads_history],
            "spans": [spans_dask.span_dump(self, span) for span in self.extension.spans.values()],
            "queries": self.answers}
        self.extension = None  # nothing more is to be recorded
        self.scheduler.remove_plugin(self.name)
        return json.loads(json.dumps(document)), self.events[:]


class LiveView:
    """The scheduler as spans_dask.answer() looks at it; its clock is the recorder's."""

    def __init__(self, recorder):
        self.recorder = recorder
        self.extension, self.created = recorder.extension, recorder.created
        self.clock = self

    @property
    def tasks(self):
        return {str(key): task for key, task in self.recorder.scheduler.tasks.items()}

    @property
    def now(self):
        return self.recorder.frozen

    @now.setter
    def now(self, value):
        self.recorder.frozen = value


# -- the work -------------------------------------------------------------------------------------

def load(number):
    return list(range(number * 500))


def forward(batch):
    return sum(value * value for value in batch)


def broken(_):
    raise RuntimeError("broken on purpose")


def slow(seconds):
    time.sleep(seconds)
    return seconds


def train_step(client, name):
    """Groups are named by the step, so that each phase's belong to its own span."""
    with distributed.spans.span("load"):
        batches = client.map(load, range(1, 5),
                             key=[("load-" + name, part) for part in range(4)])
    with distributed.spans.span("forward"):
        losses = client.map(forward, batches,
                            key=[("forward-" + name, part) for part in range(4)])
    client.gather(losses)


def train(client, ask):
    with distributed.spans.span("train"):
        for epoch in range(2):
            with distributed.spans.span("epoch-%d" % epoch):
                for step in range(2):
                    with distributed.spans.span("step-%d" % step):
                        train_step(client, "%d.%d" % (epoch, step))
            ask({"op": "merge_by_tags", "tags": ["forward"]}, {"op": "spans"})


def work(client, cluster, ask):
    with dask.config.set({"distributed.diagnostics.computations.nframes": 2}):
        train(client, ask)
        placed = client.scatter({"placed-%d" % n: n for n in range(3)})
        client.submit(forward, [1, 2, 3], pure=False).result()  # outside of any span
        time.sleep(0.2)
        client.gather(client.map(slow, [0.01] * 5, pure=False))  # and again, in another
        ask({"op": "merge_by_tags", "tags": ["default"]}, {"op": "task", "key": "placed-1"})
        cluster.scale(3)
        client.wait_for_workers(3)
        with distributed.spans.span("evaluate"):
            failed = client.submit(broken, 1, pure=False)
            failed.exception()
            total = dask.delayed(sum)([dask.delayed(slow)(0.02) for _ in range(8)])
            client.gather(client.compute(total))
            client.gather(client.map(forward, [[value] for value in placed.values()], pure=False))
        del failed, placed
        time.sleep(1.2)  # workers tell their metrics twice a second
        left = next(iter(cluster.scheduler.workers))
        client.retire_workers([left])
    hung = client.submit(slow, 3, pure=False)
    time.sleep(0.3)
    ask({"op": "merge_all"}, {"op": "roots"}, {"op": "merge_by_tags", "tags": ["default", "load"]},
        {"op": "find_by_tags", "tags": ["train", "forward", "evaluate"]},
        {"op": "find_by_name", "name": ["train", "epoch-1"]}, {"op": "task", "key": hung.key},
        {"op": "merge_by_tags", "tags": ["epoch-1", "evaluate"]})
    return hung


def record(folder, processes):
    logging.disable(logging.CRITICAL)  # one task fails on purpose, one is cancelled
    settings = {"distributed.worker.metrics.interval": "500ms"}
    with dask.config.set(settings), LocalCluster(
            n_workers=0, threads_per_worker=1, processes=processes, dashboard_address=None,
            host="127.0.0.1", protocol="tcp") as cluster:
        async def start():
            return Recorder(cluster.scheduler)

        recorder = sync(cluster.loop, start)
        with Client(cluster) as client:
            cluster.scale(2)
            client.wait_for_workers(2)
            hung = work(client, cluster, lambda *queries: sync(cluster.loop, recorder.ask,
                                                               *queries))
            document, events = sync(cluster.loop, recorder.document)
            hung.cancel()
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "events.jsonl"), "w", encoding="utf-8") as file:
        for event in events:
            file.write(json.dumps(event, ensure_ascii=False, separators=(",", ":")) + "\n")
    for name, content in (("queries", {"queries": recorder.questions}), ("expected", document)):
        with open(os.path.join(folder, name + ".json"), "w", encoding="utf-8") as file:
            json.dump(content, file, ensure_ascii=False, indent=1)
            file.write("\n")
    print("%d events, %d spans, %d questions" % (len(events), len(document["spans"]),
                                                 len(document["queries"])))


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--processes", action="store_true")
    options = parser.parse_args(arguments)
    if distributed.__version__ != spans_dask.VERSION:
        sys.exit("distributed %s is here, and %s is what is to be recorded"
                 % (distributed.__version__, spans_dask.VERSION))
    record(options.folder, options.processes)


if __name__ == "__main__":
    main(sys.argv[1:])
