#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What dask itself says of a span stream: every event is done to the real classes of the package
`distributed`, and every question is put to them.

    spans_dask.py EVENTS.jsonl [QUERIES.json]     prints the document
    spans_dask.py --serve                         a JSON object a line in, a document a line out

Needs `distributed` 2026.8.0 (support/fetched.py makes a Python that has it). A line of --serve is
{"events": the stream as Latin-1, "queries": ...}. Which lines are refused is judged in
spans_lines.py. Where the format departs from dask it is bridged here, and only here:
  - the clock of the package is the stream's, and default spans are counted instead of random;
  - a tree without groups stops when it was enqueued, and one without thread points has no
    intervals (dask raises);
  - a span's groups are kept in the order they came, so that sums of them have one.
"""
import json
import sys
from types import SimpleNamespace

import distributed
import distributed.spans as spans
import spans_lines
from distributed.client import SourceCode
from distributed.scheduler import TaskGroup, TaskPrefix, TaskState

VERSION = "2026.8.0"
sys.setrecursionlimit(100000)  # dask walks its tree by recursion


class Groups(dict):
    """A set in order of arrival."""

    def add(self, group):
        self[group] = None


class Span(spans.Span):
    __slots__ = ()

    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.groups = Groups()

    @property
    def stop(self):
        if next(self.traverse_groups(), None) is None:
            return self.enqueued
        return super().stop

    @property
    def nthreads_intervals(self):
        if next(self._nthreads_timeseries(), None) is None:
            return []
        return super().nthreads_intervals


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


class Ids:
    """In the place of the module uuid: the id that the next default span is to have."""

    def __init__(self, taken):
        self.taken, self.wanted, self.counter = taken, None, 0

    def uuid4(self):
        if self.wanted is not None:
            return self.wanted
        while True:
            self.counter += 1
            if "default-%d" % self.counter not in self.taken:
                return "default-%d" % self.counter


spans.Span = Span  # whichever way the package makes one


class Scheduler:
    """As much of dask's scheduler as its spans see, fed by a stream."""

    def __init__(self):
        self.history = []
        self.started = False
        self.total = 0
        self.workers = {}
        self.tasks = {}
        self.groups = {}
        self.created = {}  # group -> its number, from 0
        self.prefix = TaskPrefix("stream")
        self.extension = spans.SpansSchedulerExtension(
            SimpleNamespace(total_nthreads_history=self.history))
        self.handlers = {
            "start": self.start, "join": self.join, "leave": self.leave, "threads": self.set_total,
            "tasks": self.submit, "data": self.place, "transition": self.transition,
            "metrics": self.beat}
        self.clock = spans.time = Clock()
        self.ids = spans.uuid = Ids(self.extension.spans)

    def group_of(self, key):
        task = self.tasks.get(key)
        return task and task.group.name

    def has_span(self, id_):
        return id_ in self.extension.spans

    def apply(self, kind, clock, what):
        self.clock.now = clock
        self.handlers[kind](what)

    def set_total(self, total):
        self.total = max(total, 0)
        self.history.append((self.clock.now, self.total))

    def start(self, threads):
        self.started = True
        self.set_total(threads)

    def join(self, joined):
        worker, threads = joined
        self.workers[worker] = threads
        self.set_total(self.total + threads)

    def leave(self, worker):
        self.set_total(self.total - self.workers.pop(worker))

    def new_task(self, key, group_name, state):
        group = self.groups.get(group_name)
        if group is None:
            group = self.groups[group_name] = TaskGroup(group_name, self.prefix)
            self.created[group] = len(self.created)
        task = self.tasks[key] = TaskState(key, None, state, group, validate=False)
        return task

    def submit(self, submission):
        named, stack, collections, self.ids.wanted = submission
        tasks = []
        for wanted in named:
            task = self.tasks.get(wanted.key)
            if task is None:
                task = self.new_task(wanted.key, wanted.group, "released")
                if wanted.span is not None:
                    task.annotations = {"span": dict(zip(("name", "ids"), wanted.span))}
            tasks.append(task)
        self.extension.observe_tasks(
            tasks, code=tuple(SourceCode(*frame) for frame in stack),
            span_metadata={} if collections is None else {"collections": collections})

    def place(self, named):
        for wanted in named:
            task = self.tasks.get(wanted.key)
            if task is None:
                task = self.new_task(wanted.key, wanted.group, "memory")
            elif task.state != "memory":
                task.state = "memory"
            if wanted.nbytes is not None:
                task.set_nbytes(wanted.nbytes)

    def transition(self, change):
        key, to, actions, nbytes = change
        task = self.tasks[key]
        if task.state == to:
            return
        for action, start, stop in actions:
            task.group.add_duration(action, start, stop)
        if nbytes is not None:
            task.set_nbytes(nbytes)
        task.state = to
        if to == "forgotten":
            del self.tasks[key]
            group = task.group
            if all(count == 0 or state == "forgotten" for state, count in group.states.items()):
                self.prefix.remove_group(group)
                del self.groups[group.name]

    def beat(self, entries):
        told = dict(entries[0])
        if len(told) == len(entries[0]):
            self.extension.heartbeat(None, told)
            return
        for key, value in entries[0]:  # the same key twice, which a heartbeat of dask cannot say
            self.extension.heartbeat(None, {key: value})


# -- answers --------------------------------------------------------------------------------------

def group_dump(group):
    return {"name": group.name, "start": group.start, "stop": group.stop, "done": group.done,
            "states": {state: count for state, count in group.states.items() if count},
            "all_durations": dict(group.all_durations), "duration": group.duration,
            "nbytes_total": group.nbytes_total}


def span_dump(scheduler, span):
    merged = span.id == "(merged)"
    counts = span.states
    return {
        "id": span.id, "name": list(span.name), "parent": span.parent and span.parent.id,
        "children": [child.id for child in span.children],
        "annotation": None if merged else span.annotation and {
            name: list(value) for name, value in span.annotation.items()},
        "enqueued": span.enqueued, "start": span.start, "stop": span.stop, "done": span.done,
        "states": {state: counts.get(state, 0) for state in spans_lines.STATES},
        "all_durations": span.all_durations, "duration": span.duration,
        "nbytes_total": span.nbytes_total,
        "cumulative_worker_metrics": [[*key, value] for key, value
                                      in span.cumulative_worker_metrics.items()],
        "nthreads_intervals": [list(interval) for interval in span.nthreads_intervals],
        "active_cpu_seconds": span.active_cpu_seconds,
        "code": [[frame._asdict() for frame in stack] for stack in span.code],
        "metadata": span.metadata,
        "groups": [group_dump(group)
                   for group in sorted(span.groups, key=scheduler.created.__getitem__)]}


class Unanswered(Exception):
    pass


def ids_of(found):
    return [span.id for span in found]


def merged_dump(scheduler, items):
    items = list(items)
    if not items:
        raise Unanswered("nothing-to-merge")
    return span_dump(scheduler, Span.merge(*items))


def known_span(scheduler, id_):
    if id_ not in scheduler.extension.spans:
        raise Unanswered("unknown-span")
    return scheduler.extension.spans[id_]


def task_dump(scheduler, key):
    task = scheduler.tasks.get(key)
    if task is None:
        raise Unanswered("unknown-task")
    return {"group": task.group.name, "span": task.group.span_id, "state": task.state,
            "nbytes": task.nbytes}


OPERATIONS = {
    "span": lambda s, q: span_dump(s, known_span(s, q["id"])),
    "spans": lambda s, q: [span_dump(s, span) for span in s.extension.spans.values()],
    "roots": lambda s, q: ids_of(s.extension.root_spans),
    "task": lambda s, q: task_dump(s, q["key"]),
    "find_by_name": lambda s, q: ids_of(s.extension.spans_search_by_name.get(tuple(q["name"]), ())),
    "find_by_tags": lambda s, q: ids_of(s.extension.find_by_tags(*q["tags"])),
    "merge": lambda s, q: merged_dump(s, [known_span(s, id_) for id_ in q["ids"]]),
    "merge_by_tags": lambda s, q: merged_dump(s, s.extension.find_by_tags(*q["tags"])),
    "merge_all": lambda s, q: merged_dump(s, s.extension.root_spans),
}


def answer(scheduler, query):
    """The query with its answer, at its own clock, else at the stream's, which stays what it was."""
    stream_clock = scheduler.clock.now
    scheduler.clock.now = query.get("now", stream_clock)
    try:
        return {**query, "result": OPERATIONS[query["op"]](scheduler, query)}
    except Unanswered as error:
        return {**query, "error": str(error)}
    finally:
        scheduler.clock.now = stream_clock


def document(data, questions):
    scheduler = Scheduler()
    queries = questions["queries"]
    answers = [None] * len(queries)
    accepted, rejected = 0, []

    def answer_due(line):
        for number, query in enumerate(queries):
            if answers[number] is None and (line is None or query.get("after") == line):
                # Frozen as text, since what is shown may change with later lines.
                answers[number] = json.loads(json.dumps(answer(scheduler, query)))

    answer_due(0)
    for number, line in spans_lines.lines_of(data):
        if line is not None:
            try:
                event = spans_lines.read_line(line, scheduler)
            except spans_lines.Refused as refusal:
                rejected.append({"line": number, "code": refusal.code})
            else:
                scheduler.apply(*event)
                accepted += 1
                if event[0] == "metrics":
                    rejected += [{"line": number, "entry": entry, "code": code}
                                 for entry, code in event[2][1]]
        answer_due(number)
    answer_due(None)
    # The clock of the document is that of the spans at the end, and of no query.
    scheduler.clock.now = questions.get("now", scheduler.clock.now)
    return {"format": 1, "made_with": "distributed " + distributed.__version__,
            "accepted": accepted, "rejected": rejected, "now": scheduler.clock.now,
            "total_nthreads_history": [list(point) for point in scheduler.history],
            "spans": [span_dump(scheduler, span) for span in scheduler.extension.spans.values()],
            "queries": answers}


def main(arguments):
    if distributed.__version__ != VERSION:
        sys.exit("distributed %s is here, and %s is what this speaks for"
                 % (distributed.__version__, VERSION))
    if arguments == ["--serve"]:
        for line in sys.stdin:
            asked = json.loads(line)
            print(json.dumps(document(asked["events"].encode("latin-1"), asked["queries"])),
                  flush=True)
        return
    if len(arguments) not in (1, 2):
        sys.exit(__doc__)
    with open(arguments[0], "rb") as file:
        data = file.read()
    questions = {"queries": []}
    if len(arguments) == 2:
        with open(arguments[1], encoding="utf-8") as file:
            questions = json.load(file)
    json.dump(document(data, questions), sys.stdout, ensure_ascii=False)
    print()


if __name__ == "__main__":
    main(sys.argv[1:])
