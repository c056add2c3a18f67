#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Streams of spans as a user analyzes them, against the answers of the real system.

    run_spans.py BINARY [--write]

Every case of spans/ is answered by `analyze --output spans`, whole and in small batches, and compared
with its expected.json: texts, ids, orders, counts and times as they are; sums of durations, thread
time and metrics within a billionth, since the real system adds groups in no defined order; idle
time, a difference of large numbers, within a billionth of the thread time. Then what is wrong with
questions, several sources, and the report for people (spans_text/, written anew by --write).
"""
import json
import math
import os
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from checks import Checks  # noqa: E402
from process import run  # noqa: E402

CASES = os.path.join(HERE, "spans")
TEXTS = os.path.join(HERE, "spans_text")
CASE_COUNT = 41
TEXT_CASES = ("015-not-done-now", "038-training-8-ranks")
SUMS = ("duration", "active_cpu_seconds")
IDLE = "idle or other spans"
OWN = {"source", "job", "notes", "folded", "phases", "rejected_not_listed"}
SPAN_MEMBERS = [
    "id", "name", "parent", "children", "annotation", "enqueued", "start", "stop", "done",
    "states", "all_durations", "duration", "nbytes_total", "cumulative_worker_metrics",
    "nthreads_intervals", "active_cpu_seconds", "code", "metadata", "groups"]
STREAM = (
    '{"ev":"start","ts":1.0,"nthreads":2}\n'
    '{"ev":"tasks","ts":2.0,"tasks":["a"],"group":"g","span":{"name":["%s"],"ids":["i"]}}\n'
    '{"ev":"transition","ts":3.0,"key":"a","to":"processing"}\n')


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


# -- what counts as the same -----------------------------------------------------------------------

def near(wanted, got, absolute=0.0):
    return math.isclose(wanted, got, rel_tol=1e-9, abs_tol=absolute)


def same_metrics(wanted, got, thread_seconds):
    if len(wanted) != len(got):
        return False
    slack = 1e-9 * max(1, thread_seconds)
    return all(mine[:-1] == theirs[:-1]
               and near(mine[-1], theirs[-1], slack if IDLE in mine else 0.0)
               for mine, theirs in zip(wanted, got))


def same_member(name, wanted, got, span):
    if name in SUMS:
        return near(wanted, got)
    if name == "all_durations":
        return wanted.keys() == got.keys() and all(near(wanted[key], got[key]) for key in wanted)
    if name == "cumulative_worker_metrics":
        return same_metrics(wanted, got, span["active_cpu_seconds"])
    return wanted == got and (wanted is True) == (got is True)


def span_differences(wanted, got, where):
    if set(wanted) != set(got):
        return ["%s: members %s" % (where, sorted(set(wanted) ^ set(got)))]
    found = []
    for name in wanted:
        if name == "groups":
            found += list_differences(wanted[name], got[name], where + ", groups")
        elif not same_member(name, wanted[name], got[name], wanted):
            found.append("%s, %s: got %.150r, expected %.150r"
                         % (where, name, got[name], wanted[name]))
    return found


def list_differences(wanted, got, where):
    if len(wanted) != len(got):
        return ["%s: %d, expected %d" % (where, len(got), len(wanted))]
    return [difference for number, (mine, theirs) in enumerate(zip(wanted, got))
            for difference in span_differences(mine, theirs, "%s %d" % (where, number))]


def answer_differences(wanted, got, where):
    """Of one question; it is repeated, and has a result or an error."""
    if wanted.get("error") != got.get("error") or ("result" in wanted) != ("result" in got):
        return ["%s: got %.150r, expected %.150r" % (where, got, wanted)]
    asked = [{key: value for key, value in answer.items() if key not in ("result", "error")}
             for answer in (wanted, got)]
    found = [] if asked[0] == asked[1] else ["%s: the question is %r" % (where, asked[1])]
    mine, theirs = wanted.get("result"), got.get("result")
    if isinstance(mine, dict) and "enqueued" in mine:
        return found + span_differences(mine, theirs, where)
    if isinstance(mine, list) and mine and isinstance(mine[0], dict):
        return found + list_differences(mine, theirs, where)
    return found + ([] if mine == theirs else
                    ["%s: got %.150r, expected %.150r" % (where, theirs, mine)])


def differences(wanted, got):
    found = ["%s: got %.150r, expected %.150r" % (name, got.get(name), wanted[name])
             for name in wanted
             if name not in ("spans", "queries", "made_with") and wanted[name] != got.get(name)]
    found += list_differences(wanted["spans"], got["spans"], "span")
    if len(wanted["queries"]) != len(got["queries"]):
        return found + ["%d answers, expected %d" % (len(got["queries"]), len(wanted["queries"]))]
    for number, (mine, theirs) in enumerate(zip(wanted["queries"], got["queries"])):
        found += answer_differences(mine, theirs, "question %d (%s)" % (number, mine["op"]))
    return found


# -- the suite -------------------------------------------------------------------------------------

class Suite:
    def __init__(self, binary, folder, writing):
        self.binary, self.folder, self.writing = binary, folder, writing
        self.checks = Checks()

    def path(self, name):
        return os.path.join(self.folder, name)

    def spans(self, what, *arguments):
        """The documents that are printed, one a line."""
        done = run(self.binary, "analyze", "--quiet", "--output", "spans", *arguments)
        self.checks.equal((done.code, done.errors()), (0, ""), what + ": exit code and errors")
        try:
            return [json.loads(line) for line in done.text().splitlines()]
        except ValueError as error:
            self.checks.check(False, "%s: no JSON: %s" % (what, error))
            return []

    def case(self, name):
        place = os.path.join(CASES, name)
        wanted = json.loads(read(os.path.join(place, "expected.json")))
        ask = ("--queries", os.path.join(place, "queries.json"))
        events = os.path.join(place, "events.jsonl")
        for how, options in (("whole", ()), ("line by line", ("--set", "service.batch_size=1")),
                             ("by seven", ("--set", "service.batch_size=7"))):
            what = "%s, %s" % (name, how)
            documents = self.spans(what, *options, *ask, events)
            if self.checks.equal(len(documents), 1, what + ": documents"):
                self.checks.equal(differences(wanted, documents[0]), [], what)
                self.shape(what, wanted, documents[0], events)

    def shape(self, what, wanted, got, events):
        """Members stand in their order, and there are no others."""
        self.checks.equal([name for name in got if name not in OWN], list(wanted),
                          what + ": members")
        self.checks.equal([list(span) == SPAN_MEMBERS for span in got["spans"]].count(False), 0,
                          what + ": members of spans")
        self.checks.check(got["made_with"].startswith("culprit "), what + ": made_with")
        self.checks.equal(got["source"], events, what + ": source")
        whole = [time for time, _ in got["total_nthreads_history"]]
        self.checks.check(all(isinstance(time, float) for time in whole), what + ": times")

    def text(self, name):
        done = run(self.binary, "analyze", "--quiet", os.path.join(name, "events.jsonl"),
                   folder=CASES, LC_ALL="C.UTF-8")
        self.checks.equal((done.code, done.errors()), (0, ""), name + ", text")
        golden = os.path.join(TEXTS, name + ".txt")
        if self.writing:
            os.makedirs(TEXTS, exist_ok=True)
            write(golden, done.text())
        self.checks.equal(done.text(), read(golden), name + ", text")

    # -- questions that are wrong -----------------------------------------------------------------

    def refused(self, text, code, *said):
        path = write(self.path("questions.json"), text)
        done = run(self.binary, "analyze", "--output", "spans", "--queries", path,
                   os.path.join(CASES, "001-single-task", "events.jsonl"))
        self.checks.equal((done.code, done.out), (code, b""), "refused: " + text)
        for part in (path, *said):
            self.checks.check(part in done.errors(),
                              "%s: no %r in %r" % (text, part, done.errors()))

    def wrong_questions(self):
        for text, said in (
                ('{"queries": [{"op": "roots"},\n', (":2:", "not JSON")),
                ("", ("not JSON",)),
                ("[]", ("expected an object with a list under \"queries\"",)),
                ("{}", ("\"queries\"",)),
                ('{"queries": 3}', ("\"queries\"",)),
                ('{"queries": [], "quiries": []}', ("unknown key \"quiries\"",)),
                ('{"queries": [], "now": "noon"}', ("now must be a time",)),
                ('{"queries": [{"op": "roots"}, 7]}', ("queries[1]", "is not an object")),
                ('{"queries": [{}]}', ("queries[0]", "op is unknown; the operations are span, spans")),
                ('{"queries": [{"op": "spam\\u001b"}]}',
                 ("queries[0]", "op \"spam\\x1b\" is unknown; the operations are span, spans")),
                ('{"queries": [{"op": "span"}]}', ("queries[0]", "needs \"id\", a text")),
                ('{"queries": [{"op": "span", "id": 3}]}', ("needs \"id\", a text",)),
                ('{"queries": [{"op": "merge", "ids": "a"}]}', ("needs \"ids\", a list",)),
                ('{"queries": [{"op": "find_by_tags", "tags": [1]}]}', ("needs \"tags\"",)),
                ('{"queries": [{"op": "roots", "after": -1}]}', ("after must be a number",)),
                ('{"queries": [{"op": "roots", "after": 1.5}]}', ("after must be a number",)),
                ('{"queries": [{"op": "roots", "now": 0}]}', ("now must be a time",))):
            self.refused(text, 65, *said)

    def misused(self):
        events = os.path.join(CASES, "001-single-task", "events.jsonl")
        queries = os.path.join(CASES, "001-single-task", "queries.json")
        none = self.path("none.json")
        for code, said, *options in (
                (66, none + " cannot be read", "--output", "spans", "--queries", none),
                (65, "is not a regular file", "--output", "spans", "--queries", self.folder),
                (64, "needs --output spans", "--queries", queries),
                (64, "needs --output spans", "--output", "verdicts", "--queries", queries),
                (64, "--queries needs the path", "--output", "spans", "--queries", "")):
            done = run(self.binary, "analyze", *options, events)
            self.checks.equal((done.code, done.out), (code, b""), repr(options))
            self.checks.check(said in done.errors(), "%r: %s" % (options, done.errors()))

    # -- how it is run ------------------------------------------------------------------------------

    def several_sources(self):
        for name in ("b", "a"):
            write(self.path(name + ".jsonl"), STREAM % name)
        write(self.path("q.json"), '{"queries": [{"op": "find_by_tags", "tags": ["a"]}]}')
        documents = self.spans("two sources", "--queries", self.path("q.json"),
                               self.path("b.jsonl"), self.path("a.jsonl"))
        self.checks.equal(
            [(os.path.basename(one["source"]), one["spans"][0]["name"], one["spans"][0]["done"],
              one["queries"][0]["result"]) for one in documents],
            [("a.jsonl", ["a"], False, ["i"]), ("b.jsonl", ["b"], False, [])],
            "two sources: a document each, by path")
        done = run(self.binary, "analyze", "--quiet", self.path("a.jsonl"), self.path("b.jsonl"))
        self.checks.equal(done.text().count("Thread time in "), 2, "two sources: two trees")
        self.checks.check("running for 1.00 s: 1 processing" in done.text(),
                          "what runs is said: " + done.text())

    def asked_clock(self):
        """The clock of the questions is that of the spans at the end, and of no question."""
        def ends(questions, *sources):
            write(self.path("clock.json"), json.dumps(questions))
            return [(one["now"], [span["stop"] for span in one["spans"]],
                     [answer["result"]["stop"] for answer in one["queries"]])
                    for one in self.spans("a clock", "--queries", self.path("clock.json"), *sources)]

        write(self.path("none.jsonl"), '{"ev":"threads","ts":1.0,"total":1}\n')
        a, b, none = (self.path(name + ".jsonl") for name in ("a", "b", "none"))
        self.checks.equal(ends({"now": 9, "queries": []}, a), [(9.0, [9.0], [])], "no question")
        self.checks.equal(
            ends({"now": 9, "queries": [{"op": "merge_all"}, {"op": "merge_all", "now": 5},
                                        {"op": "merge_all", "after": 2}]}, a, b),
            [(9.0, [9.0], [3.0, 5.0, 2.0])] * 2, "a clock for two streams")
        self.checks.equal(ends({"now": 9, "queries": []}, none), [(9.0, [], [])], "no line accepted")
        self.checks.equal(ends({"queries": []}, none), [(None, [], [])], "no line, no clock")

    def configured(self):
        """Through a configuration of one's own, into a file; and one that lacks the stage."""
        out = self.path("spans.json")
        config = {"receivers": {"file": {"include": [self.path("a.jsonl")]}},
                  "exporters": {"json": {"path": out, "content": "spans", "interval": "10s"}},
                  "service": {"pipelines": {"p": {"receivers": ["file"], "preset": "all",
                                                  "exporters": ["json"]}}}}
        path = write(self.path("config.yaml"), json.dumps(config))
        done = run(self.binary, "run", "--once", "--config", path)
        self.checks.equal(done.code, 0, "run --once: " + done.errors()[-500:])
        self.checks.equal(json.loads(read(out))["spans"][0]["id"], "i", "run --once: its file")
        documents = self.spans("--config", "--config", path, "--queries", self.path("q.json"),
                               self.path("b.jsonl"))
        self.checks.equal([len(one["queries"]) for one in documents], [1], "--config, --queries")
        config["service"]["pipelines"]["p"]["preset"] = "memory"
        write(path, json.dumps(config))
        done = run(self.binary, "run", "--once", "--config", path)
        self.checks.equal(done.code, 78, "without the stage")
        self.checks.check("spans" in done.errors(), "without the stage: " + done.errors())

    def run(self):
        names = sorted(entry.name for entry in os.scandir(CASES) if entry.is_dir())
        self.checks.equal(len(names), CASE_COUNT, "cases")
        for name in names:
            self.case(name)
        for name in TEXT_CASES:
            self.text(name)
        self.wrong_questions()
        self.misused()
        self.several_sources()
        self.asked_clock()
        self.configured()


def main(binary, *options):
    folder = tempfile.mkdtemp(prefix="culprit-spans-")
    try:
        suite = Suite(os.path.abspath(binary), folder, "--write" in options)
        suite.run()
        return suite.checks.finish()
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
