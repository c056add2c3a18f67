# SPDX-License-Identifier: Apache-2.0
"""A second reading of docs/spans.md: what one line of a span stream says, by itself.

judge(data) gives what span_driver prints. Standard library only, and written from the format's
rules, not from the decoder.
"""
import json
import math

KINDS = ["start", "join", "leave", "threads", "tasks", "data", "transition", "metrics"]
STATES = ["released", "waiting", "no-worker", "queued", "processing", "memory", "erred",
          "forgotten"]
DEPTH_MAX = 64
SPAN_DEPTH_MAX = 1024
MISSING = object()


class Refused(Exception):
    """The line has no effect, for the reason that is the first argument."""


def depth_of(text):
    depth = deepest = 0
    inside = escaped = False
    for c in text:
        if inside:
            inside = escaped or c != '"'
            escaped = c == "\\" and not escaped
        elif c == '"':
            inside = True
        elif c in "{[":
            depth += 1
            deepest = max(deepest, depth)
        elif c in "}]":
            depth -= 1
    return deepest


def need(holds, code):
    if not holds:
        raise Refused(code)


def has_half_pair(value):
    if isinstance(value, str):
        return any("\ud800" <= c <= "\udfff" for c in value)
    return isinstance(value, list) and any(has_half_pair(item) for item in value)


def check_pairs(pairs):
    for key, value in pairs:
        need(not has_half_pair(key) and not has_half_pair(value), "bad-json")
    return dict(pairs)


def check_integer(digits):
    need(len(digits) < 30, "bad-json")
    value = int(digits)
    need(-2**63 <= value < 2**63, "bad-json")
    return value


def check_float(digits):
    value = float(digits)
    need(not math.isinf(value), "bad-json")
    return value


def refuse_constant(_):
    raise Refused("bad-json")


def parse(data):
    try:
        text = data.decode("utf-8")
        need(depth_of(text) <= DEPTH_MAX, "bad-json")
        value = json.loads(text, parse_constant=refuse_constant, parse_int=check_integer,
                           parse_float=check_float, object_pairs_hook=check_pairs)
    except (ValueError, RecursionError):
        raise Refused("bad-json") from None
    need(isinstance(value, dict), "bad-json")
    return value


def is_number(value):
    return type(value) in (int, float)


def is_text(value):
    return isinstance(value, str) and "\0" not in value


def text(value, code="bad-field"):
    need(is_text(value) and value != "", code)
    return value


def count(value):
    need(type(value) is int and value >= 0, "bad-field")
    return value


def given(line, name):
    """The field, None when it is not there: where null means the same."""
    return line.get(name)


def read_span(value):
    if value is None:
        return None
    need(isinstance(value, dict), "bad-span")
    tags, ids = value.get("name"), value.get("ids")
    need(isinstance(tags, list) and isinstance(ids, list), "bad-span")
    need(1 <= len(tags) == len(ids) <= SPAN_DEPTH_MAX, "bad-span")
    need(all(is_text(tag) for tag in tags), "bad-span")
    need(all(is_text(i) and i not in ("", "(merged)") for i in ids), "bad-span")
    need(len(set(ids)) == len(ids), "bad-span")
    return [tags, ids]


def read_task(item, group, span, data, out, named):
    own = {"key": item} if isinstance(item, str) else item
    need(isinstance(own, dict), "bad-field")
    key = text(own.get("key"))
    if own.get("group") is not None:
        group = text(own["group"])
    need(group is not None, "bad-field")
    first = next((t[3] for t in out if t[0] == key), len(out))
    task = [key, group, -1, first]
    out.append(task)
    if data:
        if "nbytes" in own:
            task[2] = count(own["nbytes"])
        return
    if "span" in own:
        span = read_span(own["span"])
    if span is not None:
        task.extend(span)
        named.update(span[1])


def read_code(value):
    if value is None:
        return None
    need(isinstance(value, list), "bad-field")
    frames = []
    for item in value:
        need(isinstance(item, dict), "bad-field")
        frame = {"code": item.get("code"),
                 "filename": "" if item.get("filename") is None else item["filename"]}
        need(is_text(frame["code"]) and is_text(frame["filename"]), "bad-field")
        for name in ("lineno_frame", "lineno_relative"):
            frame[name] = 0 if item.get(name) is None else item[name]
            need(type(frame[name]) is int, "bad-field")
        frames.append(frame)
    return json.dumps(frames, ensure_ascii=False, separators=(",", ":")) if frames else None


def read_tasks(line, data, answer):
    named = set()
    span = None
    need(isinstance(line.get("tasks"), list), "bad-field")
    if not data:
        span = read_span(given(line, "span"))
        named.update([] if span is None else span[1])
    group = given(line, "group")
    if group is not None:
        text(group)
    for item in line["tasks"]:
        read_task(item, group, span, data, answer["tasks"], named)
    if data:
        return {}
    values = {"code": read_code(given(line, "code"))}
    collections = given(line, "collections")
    if collections is not None:
        need(isinstance(collections, list), "bad-field")
        need(all(isinstance(item, dict) for item in collections), "bad-field")
    values["collections"] = collections
    default = given(line, "default_id")
    if default is not None:
        need(text(default, "bad-span") != "(merged)" and default not in named, "bad-span")
    values["default_id"] = default
    return values


def read_action(action):
    need(isinstance(action, list) and len(action) == 3, "bad-field")
    name, start, stop = action
    text(name)
    for time in (start, stop):
        need(is_number(time) and abs(time) <= 1e11, "bad-field")
    return [name, float(start), float(stop)]


def read_transition(line):
    key = text(line.get("key"))
    to = line.get("to")
    need(is_text(to), "bad-field")
    need(to in STATES, "bad-state")
    actions, nbytes = given(line, "actions"), given(line, "nbytes")
    if actions is not None:
        need(to == "memory" and isinstance(actions, list), "bad-field")
        actions = [read_action(action) for action in actions]
    if nbytes is not None:
        need(to == "memory", "bad-field")
        count(nbytes)
    return {"key": key, "to": to, "nbytes": -1 if nbytes is None else nbytes,
            "actions": actions or []}


def read_metrics(line):
    need(isinstance(line.get("data"), list), "bad-field")
    metrics = []
    for index, entry in enumerate(line["data"]):
        if not isinstance(entry, list) or len(entry) < 2 or not isinstance(entry[0], str):
            metrics.append([index, "bad-entry"])
            continue
        if entry[0] not in ("execute", "p2p"):
            continue
        if len(entry) < 3 or not is_number(entry[-1]) or not all(map(is_text, entry[1:-1])):
            metrics.append([index, "bad-entry"])
            continue
        key = [entry[0]] + entry[2:-1]
        known = entry[0] == "execute" and len(key) > 1 and key[-1] == "seconds"
        metrics.append([index, entry[1], json.dumps(key, ensure_ascii=False, separators=(",", ":")),
                        known, type(entry[-1]) is int, entry[-1]])
    return {"metrics": metrics}


def read_kind(kind, line, answer):
    if kind == "start":
        return {"threads": count(line.get("nthreads", 0))}
    if kind == "join":
        return {"worker": text(line.get("worker")), "threads": count(line.get("nthreads"))}
    if kind == "leave":
        return {"worker": text(line.get("worker"))}
    if kind == "threads":
        return {"threads": count(line.get("total"))}
    if kind in ("tasks", "data"):
        return read_tasks(line, kind == "data", answer)
    return read_transition(line) if kind == "transition" else read_metrics(line)


def read_line(data, answer):
    line = parse(data)
    kind = line.get("ev")
    need(isinstance(kind, str) and kind in KINDS, "bad-event")
    answer["kind"] = KINDS.index(kind)
    ts = line.get("ts")
    need(is_number(ts) and 0 < ts <= 1e11, "bad-field")
    answer["early"] = False
    answer.update({"ts": float(ts), "worker": None, "threads": 0, "default_id": None, "code": None,
                   "collections": None})
    answer.update(read_kind(kind, line, answer))


def judge(data):
    answer = {"refused": "accepted", "kind": len(KINDS), "tasks": [], "early": True}
    try:
        read_line(data, answer)
    except Refused as refused:
        tasks = [task[:4] for task in answer["tasks"]]
        for task in tasks:
            task[2] = -1
        return {"refused": refused.args[0], "kind": answer["kind"], "tasks": tasks,
                "early": answer["early"], "told": True}
    del answer["early"]
    return answer
