# SPDX-License-Identifier: Apache-2.0
"""Random span streams with questions, from a seed, and when two documents of answers are the same.

Names come from small pools, so that ids, groups, keys and workers meet again in every way: ids used
twice, groups that belong to another span, tasks that are forgotten and come back. Lines are good
more often than not; the rest is broken in one place.
"""
import json
import math
import random

KINDS = ("join", "leave", "threads", "tasks", "data", "transition", "metrics")
#                                        join leave threads tasks data transition metrics
MIXES = {"all of it": (3, 2, 1, 8, 2, 14, 4), "workers come and go": (8, 7, 4, 6, 1, 8, 2),
         "submissions": (2, 1, 0, 16, 3, 8, 2), "tasks run": (2, 1, 0, 5, 1, 24, 2),
         "metrics": (2, 1, 0, 6, 0, 8, 12), "a job": (2, 1, 1, 1, 1, 2, 1)}
TO = ("released", "waiting", "no-worker", "queued", "processing", "memory", "erred", "forgotten")
TO_WEIGHTS = (3, 2, 1, 1, 6, 10, 1, 4)
JUNK = (None, True, False, 0, -1, 2.0, 1.5, "", "x", "a\0b", [], {}, [1], ["x"], {"key": "x"}, 1e12,
        -1e300, "memory", "default", "(merged)", [[]], [["compute", 1, 2]], [None])
BROKEN = (b"{", b"[1,2]", b"null", b'{"ev":"threads","ts":1e999,"total":1}', b"\xff\xfe",
          b'{"ev":"threads","ts":NaN,"total":1}', b'{"ev":"threads","ts":1,"total":1} x',
          b'{"ev":"threads","ts":2,"total":9223372036854775808}', b'"start"', b"tru",
          b'{"ev":"threads","ts":2,"total":1,"x":-9223372036854775809}', b'{"ev":1}', b"{}",
          b'{"ev":"threads","ts":2,"total":1,"x":["\\ud800"]}', b'{"ev":"warp","ts":1}',
          b'{"ev":"threads","ts":2,"total":1,"\\udc00\\ud800":1}', b'{"ts":1}', b"{,}",
          b'{"ev":"threads","ts":2,"total":1,}', b'{"ev":"threads","ts":2,"total":01}',
          b'{"ev":"threads","ts":2,"total":1,"x":"\t"}', b'{"ev":"threads","ts":2,"total":+1}',
          b"{'ev':'threads'}", b'{"ev":"threads","ts":2,"total":1,"x":Infinity}')
BLANK = (b"", b" ", b"\t \r")
METRIC_KEYS = (("execute", "fwd", "gpu", "seconds"), ("execute", "fwd", "cpu", "seconds"),
               ("execute", "fwd", "read", "bytes"), ("execute", "load", "read", "count"),
               ("p2p", "background", "disk", "seconds"), ("p2p", "foreground", "net", "bytes"),
               ("execute", "N/A", "idle or other spans", "seconds"), ("execute", "seconds"),
               ("execute",), ("execute", "seconds", "seconds"), ("execute", "é\"\\", "", "seconds"))


class Stream:
    """Bytes of a stream and its questions; `seed` and `lines` say all about it."""

    def __init__(self, seed, lines):
        self.random = random.Random(seed)
        pick = self.random.choice
        mix = pick(sorted(MIXES))
        self.mix = MIXES[mix]
        self.script = self.job() if mix == "a job" else iter(())
        self.tags = ["a", "b", "default", "", "step é", "(merged)", "z\n\"\\/"][:pick((2, 3, 5, 7))]
        self.ids = ["s%d" % n for n in range(pick((3, 6, 14)))] + pick(([], ["default-1"]))
        self.groups = ["g%d" % n for n in range(pick((2, 5, 12)))]
        self.keys = ["k%d" % n for n in range(pick((3, 10, 30)))]
        self.workers = ["w%d" % n for n in range(pick((2, 5)))]
        self.bad = pick((0.0, 0.05, 0.3))
        self.backwards = pick((0.0, 0.03, 0.3))
        self.fine = pick((True, False))  # any double, or eighths of a second
        self.clock = 1700000000.0
        self.annotations = []
        self.group_of = {}
        self.events = b"".join(self.lines(lines))
        self.queries = self.questions(lines)

    # -- values

    def chance(self, share):
        return self.random.random() < share

    def seconds(self, most):
        if self.fine:
            return self.random.uniform(0, most)
        return self.random.randrange(int(most * 8) + 1) / 8

    def tick(self):
        if self.chance(self.backwards):
            self.clock -= self.seconds(20)
        elif self.chance(0.7):
            self.clock += self.seconds(4)
        return self.clock

    def some(self, pool, least, most):
        return [self.random.choice(pool) for _ in range(self.random.randint(least, most))]

    def span(self):
        pick = self.random.choice
        if self.annotations and self.chance(0.7):
            tags, ids = pick(self.annotations)
            cut = self.random.randint(1, len(ids))
            tags, ids = tags[:cut], ids[:cut]
        else:
            tags, ids = [], []
        free = [id_ for id_ in self.ids if id_ not in ids]
        for _ in range(self.random.randint(0 if ids else 1, 2)):
            if free:
                ids = ids + [free.pop(self.random.randrange(len(free)))]
                tags = tags + [pick(self.tags)]
        if not ids:
            return None
        self.annotations.append((tags, ids))
        if self.chance(0.15):
            tags = [pick(self.tags) for _ in tags]
        return {"name": tags, "ids": ids}

    def task(self, data):
        key = self.random.choice(self.keys)
        group = self.group_of.get(key)
        if group is None or self.chance(0.03):
            group = self.random.choice(self.groups)
        self.group_of.setdefault(key, group)
        task = {"key": key, "group": group}
        if data and self.chance(0.7):
            task["nbytes"] = self.bytes()
        if not data and self.chance(0.3):
            task["span"] = self.span() if self.chance(0.7) else None
        return task

    def bytes(self):
        return self.random.choice((0, 1, 7, 4096, 10**6 + 1, 1 << 40, 1 << 53))

    # -- events

    def event_join(self):
        return {"worker": self.random.choice(self.workers),
                "nthreads": self.random.choice((0, 1, 1, 2, 4, 8, 1000))}

    def event_leave(self):
        return {"worker": self.random.choice(self.workers)}

    def event_threads(self):
        return {"total": self.random.choice((0, 1, 3, 64))}

    def event_tasks(self):
        event = {"tasks": [self.task(False) for _ in range(self.random.choice((0, 1, 1, 2, 3, 6)))]}
        if self.chance(0.7):
            event["span"] = self.span()
        if event["tasks"] and self.chance(0.4):  # the short way to write one
            event["group"] = event["tasks"][0]["group"]
            for number, task in enumerate(event["tasks"]):
                if task["group"] == event["group"]:
                    del task["group"]
                    if len(task) == 1 and self.chance(0.8):
                        event["tasks"][number] = task["key"]
        if self.chance(0.2):
            event["code"] = [self.frame() for _ in range(self.random.randint(0, 2))]
        if self.chance(0.2):
            event["collections"] = self.some(({"type": "Array", "shape": [2, 3]}, {},
                                              {"n": None, "é": [True, 1.5, {"x": []}]}), 0, 2)
        if self.chance(0.15):
            event["default_id"] = self.random.choice(self.ids + ["d1", "d2", "default-2"])
        return event

    def frame(self):
        frame = {"code": self.random.choice(("loss()", "model(x)\n\t# \"é\""))}
        for name in ("lineno_frame", "lineno_relative"):
            if self.chance(0.6):
                frame[name] = self.random.choice((0, 7, -1, None))
        if self.chance(0.6):
            frame["filename"] = self.random.choice(("train.py", "", None))
        return frame

    def event_data(self):
        return {"tasks": [self.task(True) for _ in range(self.random.randint(0, 3))]}

    def event_transition(self):
        key = self.random.choice(sorted(self.group_of) or self.keys)
        event = {"key": key, "to": self.random.choices(TO, TO_WEIGHTS)[0]}
        if event["to"] == "memory":
            if self.chance(0.8):
                event["nbytes"] = self.bytes()
            if self.chance(0.9):
                event["actions"] = [self.action() for _ in range(self.random.choice((0, 1, 1, 3)))]
        if event["to"] == "forgotten":
            self.group_of.pop(key, None)
        return event

    def action(self):
        name = self.random.choice(("compute", "compute", "compute", "transfer", "disk-read", "é"))
        if self.chance(0.15):  # half a microsecond more or less is to be rounded to even
            start, half = self.random.choice((0, 0.0, 1, -3)), self.random.randrange(12) * 5e-7
            return [name, start, start + half]
        start = self.clock + self.random.choice((0, -2, -30, 40, 0.125))
        return [name, start, start + self.random.choice((0, 1e-6, -1e-6, -3, self.seconds(5)))]

    def event_metrics(self):
        return {"worker": self.random.choice(self.workers),
                "data": [self.metric() for _ in range(self.random.randint(0, 5))]}

    def metric(self):
        if self.chance(0.1):
            return self.random.choice((["latency", 0.5], ["gather-dep", "x", "seconds", 1], [], "x",
                                       ["execute"], ["execute", 1.0], ["p2p", "s0", None],
                                       ["execute", "s0", "x", True], ["execute", 5, "x", 1], [1, 2],
                                       ["execute", "s0", 7, "seconds", 1], ["get-data", None]))
        used = [ids[-1] for _, ids in self.annotations] + ["default-1"]
        id_ = self.random.choice(used if self.chance(0.9) else self.ids)
        key = self.random.choice(METRIC_KEYS)
        value = self.random.choice((0, 1, 5, -2, 1 << 40, 0.1, 0.25, 1e-9, -0.75, 3.0, 12345.678))
        return [key[0], id_, *key[1:], value]

    def job(self):
        """Events of a training job as they should be: steps with pauses between, phases in them."""
        ranks = ["r%d" % n for n in range(self.random.choice((1, 2, 3)))]
        for rank in ranks:
            yield "join", {"worker": rank, "nthreads": 1}
        for step in range(1000):
            for phase in ("fwd", "bwd"):
                ids = ["run", "run/s%d" % step, "run/s%d/%s" % (step, phase)]
                names = ["train", "step-%d" % step, phase]
                keys = ["%s/%s" % (ids[-1], rank) for rank in ranks]
                self.annotations.append((names, ids))
                yield "tasks", {"group": ids[-1], "tasks": keys,
                                "span": {"name": names, "ids": ids}}
                for key in keys:
                    yield "transition", {"key": key, "to": "processing"}
                for key in keys:
                    begin = self.clock
                    actions = [["compute", begin, begin + self.seconds(1)]]
                    if self.chance(0.5):
                        actions.append(["transfer", begin, begin + self.seconds(1)])
                    self.clock = max(self.clock, actions[0][2])
                    yield "transition", {"key": key, "to": "memory", "nbytes": self.bytes(),
                                         "actions": actions}
                yield "metrics", {"worker": ranks[0], "data": [
                    ["execute", ids[-1], phase, "gpu", "seconds", self.seconds(1)]]}
                if self.chance(0.5):
                    for key in keys:
                        yield "transition", {"key": key, "to": "forgotten"}
            self.clock += self.seconds(4)

    # -- lines

    def breakage(self, event):
        """One place of it is something else, or gone."""
        place = event
        while True:
            within = sorted(place) if isinstance(place, dict) else list(range(len(place)))
            spot = self.random.choice(within)
            inner = place[spot]
            if not (isinstance(inner, (dict, list)) and inner and self.chance(0.7)):
                break
            place = inner
        if self.chance(0.25):
            del place[spot]
        else:
            place[spot] = json.loads(json.dumps(self.random.choice(JUNK)))
        return event

    def text(self, event):
        names = list(event)
        if self.chance(0.2):
            self.random.shuffle(names)
        pairs = [(name, event[name]) for name in names]
        if self.chance(0.05):  # the last one counts
            pairs.insert(0, (self.random.choice(names), self.random.choice((5, "x", None, [1.5]))))
        if self.chance(0.05):
            pairs.append(("more", {"ignored": [1, {"ev": "start"}]}))
        ascii_only, space = self.chance(0.5), self.random.choice(("", " ", "\t "))
        text = ",".join(
            json.dumps(name) + space + ":" + space + json.dumps(value, ensure_ascii=ascii_only)
            for name, value in pairs)
        return (space + "{" + text + space + "}" + space).encode("utf-8")

    def event(self):
        scripted = next(self.script, None) if self.chance(0.9) else None
        if scripted:
            return scripted
        kind = self.random.choices(KINDS, self.mix)[0]
        return kind, getattr(self, "event_" + kind)()

    def line(self, kind, members):
        event = {"ev": kind, "ts": self.tick(), **members}
        # What is broken must not be remembered by others, so the copy is broken.
        if self.chance(self.bad):
            event = self.breakage(json.loads(json.dumps(event)))
        return self.text(event)

    def lines(self, count):
        if self.chance(0.1):
            yield self.line("join", self.event_join()) + b"\n"
        threads = {} if self.chance(0.3) else {"nthreads": self.random.choice((0, 2, 16))}
        yield self.text({"ev": "start", "ts": self.tick(), **threads}) + b"\n"
        for number in range(count - 1):
            torn = number == count - 2 and self.chance(0.1)  # no newline after it, but whole
            if self.chance(self.bad / 3) and not torn:
                line = self.random.choice(BROKEN + BLANK)
            elif self.chance(self.bad / 8):
                line = self.line("start", {"nthreads": self.random.choice((0, 2, None))})
            else:
                line = self.line(*self.event())
            ending = self.random.choice((b"\n", b"\n", b"\r\n"))
            yield line if torn else line + ending

    # -- questions

    def question(self, lines):
        pick = self.random.choice
        op = pick(("span", "span", "spans", "roots", "task", "task", "find_by_name", "find_by_tags",
                   "find_by_tags", "merge", "merge", "merge_by_tags", "merge_by_tags", "merge_all"))
        used = [id_ for _, ids in self.annotations for id_ in ids] + ["default-1", "default-2"]
        query = {"op": op}
        if op == "span":
            query["id"] = pick(used if self.chance(0.8) else self.ids)
        elif op == "task":
            query["key"] = pick(self.keys)
        elif op == "find_by_name":
            names = [list(tags) for tags, _ in self.annotations] + [["default"], []]
            query["name"] = pick(names)
        elif op in ("find_by_tags", "merge_by_tags"):
            tags = [tag for tags, _ in self.annotations for tag in tags] + self.tags
            query["tags"] = self.some(tags, self.chance(0.9), 3)
        elif op == "merge":
            query["ids"] = self.some(used, self.chance(0.9), pick((1, 2, 4)))
        if self.chance(0.4):
            query["after"] = self.random.randint(0, lines)
        if self.chance(0.3):
            query["now"] = self.clock + pick((0, 10.5, -25, 1000))
        return query

    def questions(self, lines):
        count = self.events.count(b"\n")
        queries = {"queries": [self.question(min(count, lines)) for _ in range(8)]}
        if self.chance(0.3):
            queries = {"now": self.clock + self.random.choice((5, -25, 1000)), **queries}
        return queries


# -- what a stream shows --------------------------------------------------------------------------

def features(document, queries):
    """What occurs in a document of answers, to see that streams reach everything."""
    found = {"refused " + refusal["code"] for refusal in document["rejected"]}
    if "now" in queries:
        found.add("a now of the document")
    found |= {"an entry refused" for refusal in document["rejected"] if "entry" in refusal}
    for query in document["queries"]:
        found.add(query["op"] + (": " + query["error"] if "error" in query else " answered"))
        found |= {"%s with %s" % (query["op"], name) for name in ("after", "now") if name in query}
    times = [time for time, _ in document["total_nthreads_history"]]
    if times != sorted(times):
        found.add("the clock went backwards")
    spans = list(document["spans"])
    spans += [query["result"] for query in document["queries"]
              if "result" in query and query["op"].startswith("merge")]
    groups = [group["name"] for span in document["spans"] for group in span["groups"]]
    if len(set(groups)) < len(groups):
        found.add("a group's name used again")
    for span in spans:
        merged = "merged, " if span["id"] == "(merged)" else ""
        found |= features_of_span(span, merged)
    return found


def features_of_span(span, kind):
    intervals = span["nthreads_intervals"]
    idle = [entry[-1] for entry in span["cumulative_worker_metrics"] if "N/A" in entry]
    gaps = any(a[1] != b[0] for a, b in zip(intervals, intervals[1:]))
    told = {
        "done": span["done"], "not done": not span["done"], "no intervals": not intervals,
        "three intervals": len(intervals) > 2, "a gap": gaps,
        "zero threads": any(threads == 0 for _, _, threads in intervals),
        "idle": idle[0] > 0, "no idle": idle[0] == 0, "bytes": span["nbytes_total"] > 0,
        "code": len(span["code"]) > 1, "collections": bool(span["metadata"]),
        "a child": bool(span["children"]), "three deep": len(span["name"]) > 2,
        "default": span["name"] == ["default"], "no groups": not span["groups"],
        "three groups": len(span["groups"]) > 2, "start": span["start"] > 0,
        "stop is enqueued": span["stop"] == span["enqueued"],
        "id of another branch": span["annotation"] is not None
                                and len(span["annotation"]["ids"]) != len(span["name"]),
        "three actions": len(span["all_durations"]) > 2,
        "idle not last": "N/A" not in span["cumulative_worker_metrics"][-1],
    }
    found = {kind + name for name, holds in told.items() if holds}
    return found | {kind + state for state, count in span["states"].items() if count}


# -- when two documents are the same --------------------------------------------------------------

NEARLY = ("duration", "active_cpu_seconds")


def near(got, wanted, absolute=0.0):
    return math.isclose(got, wanted, rel_tol=1e-9, abs_tol=absolute)


def metric_differs(got, wanted, cpu_seconds):
    if got[:-1] != wanted[:-1]:
        return True
    idle = "idle or other spans" in wanted
    return not near(got[-1], wanted[-1], 1e-9 * max(1.0, cpu_seconds) if idle else 0.0)


def span_differences(got, wanted, where):
    if set(got) != set(wanted):
        return ["%s: members %s" % (where, sorted(set(got) ^ set(wanted)))]
    found = []
    for name, value in wanted.items():
        mine = got[name]
        if name in NEARLY:
            same = near(mine, value)
        elif name == "all_durations":
            same = mine.keys() == value.keys() and all(near(mine[k], value[k]) for k in value)
        elif name == "cumulative_worker_metrics":
            same = len(mine) == len(value) and not any(
                metric_differs(*both, wanted["active_cpu_seconds"]) for both in zip(mine, value))
        elif name == "groups" and len(mine) == len(value):
            for number, both in enumerate(zip(mine, value)):
                found += span_differences(*both, "%s, group %d" % (where, number))
            continue
        else:
            same = mine == value and isinstance(mine, bool) == isinstance(value, bool)
        if not same:
            found.append("%s: %s is %.300r, not %.300r" % (where, name, mine, value))
    return found


def list_differences(got, wanted, where):
    found = [] if len(got) == len(wanted) else [
        "%s: %d spans, not %d" % (where, len(got), len(wanted))]
    for mine, theirs in zip(got, wanted):
        found += span_differences(mine, theirs, "%s, span %r" % (where, theirs["id"]))
    return found


def query_differences(got, wanted, where):
    asked = {name: value for name, value in wanted.items() if name not in ("result", "error")}
    repeated = {name: value for name, value in got.items() if name not in ("result", "error")}
    if asked != repeated:
        return ["%s: the question is %r, not %r" % (where, repeated, asked)]
    where += " " + json.dumps(asked)
    result, mine = wanted.get("result"), got.get("result")
    if type(mine) is type(result) and got.get("error") == wanted.get("error"):
        if isinstance(result, dict) and "enqueued" in result:
            return span_differences(mine, result, where)
        if wanted["op"] == "spans":
            return list_differences(mine, result, where)
        if mine == result:
            return []
    return ["%s: answered %.300r, not %.300r" % (where, got, wanted)]


def differences(got, wanted):
    """Where a document is another than wanted; empty: the same. It may have more members of its own,
    which say where it comes from."""
    found = []
    for name in sorted(set(wanted) - {"spans", "queries", "made_with"}):
        if name not in got or got[name] != wanted[name]:
            found.append("%s: %.300r, not %.300r" % (name, got.get(name), wanted[name]))
    found += list_differences(got["spans"], wanted["spans"], "spans")
    if len(got["queries"]) != len(wanted["queries"]):
        found.append("%d answers, not %d" % (len(got["queries"]), len(wanted["queries"])))
    for number, both in enumerate(zip(got["queries"], wanted["queries"])):
        found += query_differences(*both, "question %d" % number)
    return found
