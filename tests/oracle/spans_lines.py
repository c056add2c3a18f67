# SPDX-License-Identifier: Apache-2.0
"""Which lines of a span stream are refused, and with which code: the rules of docs/spans.md, read
a second time and by themselves. What depends on earlier lines is asked of a `view`:

    view.started            a `start` came
    view.workers            names of those that joined and did not leave
    view.group_of(key)      name of the group of a live task, or None
    view.has_span(id)       an id in use
"""
import json
import math

STATES = ("released", "waiting", "no-worker", "queued", "processing", "memory", "erred",
          "forgotten")
INT64 = (-(1 << 63), (1 << 63) - 1)
TIME_MAX = 1e11
CONTEXTS = ("execute", "p2p")


class Refused(Exception):
    def __init__(self, code):
        super().__init__(code)
        self.code = code


class Task:
    __slots__ = ("key", "group", "span", "nbytes")

    def __init__(self, key, group):
        self.key, self.group, self.span, self.nbytes = key, group, None, None


# -- JSON -----------------------------------------------------------------------------------------

def no_constant(text):
    raise ValueError(text)


def whole_number(text):
    value = int(text)
    if not INT64[0] <= value <= INT64[1]:
        raise ValueError(text)
    return value


def real_number(text):
    value = float(text)
    if math.isinf(value):
        raise ValueError(text)
    return value


def check_text(value):
    """No half of a surrogate pair, also where the value is thrown away later."""
    if isinstance(value, str):
        value.encode("utf-8")
    elif isinstance(value, list):
        for item in value:
            check_text(item)


def checked_object(pairs):
    for name, value in pairs:
        check_text(name)
        check_text(value)
    return dict(pairs)


def read_json(line):
    try:
        value = json.loads(line.decode("utf-8"), parse_constant=no_constant,
                           parse_int=whole_number, parse_float=real_number,
                           object_pairs_hook=checked_object)
        if not isinstance(value, dict):
            raise ValueError(line)
    except ValueError as error:  # also what is not UTF-8
        raise Refused("bad-json") from error
    return value


# -- fields ---------------------------------------------------------------------------------------

def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_whole(value):
    return isinstance(value, int) and not isinstance(value, bool)


def is_text(value):
    return isinstance(value, str) and "\0" not in value


def need(condition, code="bad-field"):
    if not condition:
        raise Refused(code)


def name_of(value):
    need(is_text(value) and value)
    return value


def count_of(value):
    need(is_whole(value) and value >= 0)
    return value


def items_of(value):
    need(isinstance(value, list))
    return value


def clock_of(event):
    value = event.get("ts")
    need(is_number(value) and 0 < value <= TIME_MAX)
    return float(value)


def span_of(value):
    """-> (tags, ids) or None"""
    if value is None:
        return None
    need(isinstance(value, dict), "bad-span")
    tags, ids = value.get("name"), value.get("ids")
    need(isinstance(tags, list) and isinstance(ids, list), "bad-span")
    need(len(tags) == len(ids) and tags, "bad-span")
    need(all(is_text(tag) for tag in tags), "bad-span")
    need(all(is_text(id_) and id_ not in ("", "(merged)") for id_ in ids), "bad-span")
    need(len(set(ids)) == len(ids), "bad-span")
    return tuple(tags), tuple(ids)


# -- events: each returns what it applies with ----------------------------------------------------

def read_start(event, _view):
    return count_of(event.get("nthreads", 0))


def read_join(event, view):
    worker, threads = name_of(event.get("worker")), count_of(event.get("nthreads"))
    need(worker not in view.workers, "duplicate-worker")
    return worker, threads


def read_leave(event, view):
    worker = name_of(event.get("worker"))
    need(worker in view.workers, "unknown-worker")
    return worker


def read_threads(event, _view):
    return count_of(event.get("total"))


def read_tasks(event, view, data=False):
    items = items_of(event.get("tasks"))
    default_span = None if data else span_of(event.get("span"))
    default_group = event.get("group")
    if default_group is not None:
        name_of(default_group)
    tasks, groups = [], {}
    for item in items:
        if isinstance(item, str):
            item = {"key": item}
        need(isinstance(item, dict))
        key = name_of(item.get("key"))
        group = item.get("group")
        group = name_of(default_group if group is None else group)
        known = view.group_of(key)
        known = groups.setdefault(key, group if known is None else known)
        need(known == group, "group-mismatch")
        task = Task(key, group)
        if data:
            if "nbytes" in item:
                task.nbytes = count_of(item["nbytes"])
        else:
            task.span = span_of(item["span"]) if "span" in item else default_span
        tasks.append(task)
    return tasks, default_span


def frame_of(value):
    need(isinstance(value, dict) and is_text(value.get("code")))
    filename = value.get("filename")
    need(filename is None or is_text(filename))
    numbers = [value.get(name) for name in ("lineno_frame", "lineno_relative")]
    need(all(number is None or is_whole(number) for number in numbers))
    return (value["code"], numbers[0] or 0, numbers[1] or 0, filename or "")


def read_submission(event, view):
    tasks, default_span = read_tasks(event, view)
    code = event.get("code")
    stack = tuple(frame_of(frame) for frame in items_of([] if code is None else code))
    collections = event.get("collections")
    if collections is not None:
        need(all(isinstance(item, dict) for item in items_of(collections)))
    default_id = event.get("default_id")
    if default_id is not None:
        need(is_text(default_id) and default_id not in ("", "(merged)"), "bad-span")
        named = {id_ for span in [default_span, *(task.span for task in tasks)] if span
                 for id_ in span[1]}
        need(default_id not in named and not view.has_span(default_id), "bad-span")
    return tasks, stack, collections, default_id


def action_of(value):
    need(isinstance(value, list) and len(value) == 3)
    name_of(value[0])
    for time in value[1:]:
        need(is_number(time) and abs(time) <= TIME_MAX)
    return value[0], float(value[1]), float(value[2])


def read_transition(event, view):
    key, to = name_of(event.get("key")), event.get("to")
    need(is_text(to))
    need(to in STATES, "bad-state")
    actions, nbytes = event.get("actions"), event.get("nbytes")
    if actions is not None:
        need(to == "memory")
        actions = [action_of(item) for item in items_of(actions)]
    if nbytes is not None:
        need(to == "memory")
        count_of(nbytes)
    need(view.group_of(key) is not None, "unknown-task")
    return key, to, actions or (), nbytes


def read_metric(entry, view):
    """-> (key with the span id, value), or None: not for spans"""
    need(isinstance(entry, list) and len(entry) >= 2 and isinstance(entry[0], str), "bad-entry")
    if entry[0] not in CONTEXTS:
        return None
    need(len(entry) >= 3 and is_number(entry[-1]), "bad-entry")
    need(all(is_text(part) for part in entry[:-1]), "bad-entry")
    need(view.has_span(entry[1]), "unknown-span")
    return tuple(entry[:-1]), entry[-1]


def read_metrics(event, view):
    good, refused = [], []
    for number, entry in enumerate(items_of(event.get("data"))):
        try:
            metric = read_metric(entry, view)
        except Refused as refusal:
            refused.append((number, refusal.code))
        else:
            if metric is not None:
                good.append(metric)
    return good, refused


def read_data(event, view):
    return read_tasks(event, view, data=True)[0]


READERS = {"start": read_start, "join": read_join, "leave": read_leave, "threads": read_threads,
           "tasks": read_submission, "data": read_data, "transition": read_transition,
           "metrics": read_metrics}


def read_line(line, view):
    """-> (kind, clock, what it applies with); raises Refused."""
    event = read_json(line)
    kind = event.get("ev")
    need(isinstance(kind, str) and kind in READERS, "bad-event")
    clock = clock_of(event)
    if kind != "start":
        need(view.started, "not-started")
    elif view.started:
        raise Refused("already-started")
    return kind, clock, READERS[kind](event, view)


def lines_of(data):
    """The lines of a stream with their numbers; those of white space are counted, not given."""
    for number, line in enumerate(data.split(b"\n"), 1):
        yield number, line if line.strip() else None
