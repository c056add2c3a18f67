#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Grafana exporter of a whole culprit, against a strict stand-in for Grafana's API.

    run_grafana.py BINARY

Each verdict is one annotation, whatever fails on the way: answers that are lost, a token that is
replaced, SIGKILL with a store and without one. What somebody deleted stays deleted.
"""
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
import grafana_server  # noqa: E402
from checks import Checks  # noqa: E402
from grafana_server import Grafana  # noqa: E402
from process import environment  # noqa: E402
from running import PATIENCE_S, Running, wait_for  # noqa: E402

GOLDEN = os.path.join(HERE, "..", "golden")
INPUT = os.path.join(GOLDEN, "detectors", "incident", "*", "events.jsonl")
MORE = os.path.join(GOLDEN, "detectors", "hbm_ecc", "*", "events.jsonl")
TOKEN = "glsa_first"


def document(folder, url, live=False, store=False, **grafana):
    config = {
        "receivers": {"file": {"include": [INPUT]}},
        "exporters": {"json": {"path": os.path.join(folder, "verdicts.jsonl")},
                      "grafana": {"endpoint": url, **grafana, "retry_on_failure":
                                  {"initial_interval": "50ms", "max_interval": "200ms"}}},
        "service": {"pipelines": {"all": {"receivers": ["file"], "preset": "all",
                                          "exporters": ["json", "grafana"]}}}}
    if live:
        config["service"]["pipelines"]["all"].update(idle_timeout="300ms", settle="0s")
    if store:
        config["extensions"] = {"file_storage": {"directory": os.path.join(folder, "store")}}
        config["service"].update(extensions=["file_storage"], checkpoint_interval="100ms")
    return config


def once(binary, folder, config):
    path = os.path.join(folder, "c.yaml")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)
    done = subprocess.run([binary, "run", "--once", "--config", path], stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=PATIENCE_S, env=environment(), check=False,
                          text=True)
    return done.returncode, done.stderr


def verdicts_of(folder):
    """The last state of each."""
    with open(os.path.join(folder, "verdicts.jsonl"), encoding="utf-8") as file:
        return {one["id"]: one for one in map(json.loads, file)}


def milliseconds(text):
    return int(text) // 10**6


def only_node(verdict):
    for role in ("culprit", "suspect"):
        nodes = [one["name"] for one in verdict["entities"]
                 if one["kind"] == "node" and one["role"] == role]
        if nodes:
            return nodes[0] if len(nodes) == 1 else None
    return None


def held(checks, annotation, verdict, more=()):
    name = verdict["id"]
    start, end = (milliseconds(verdict[key + "_time_unix_nano"]) for key in ("start", "end"))
    checks.equal((annotation["time"], annotation["timeEnd"]), (start, max(start, end)),
                 name + ": times")
    tags = ["culprit", name, "severity:" + verdict["severity"], "pattern:" + verdict["pattern"]]
    if verdict.get("job_id"):
        tags.append("job:" + verdict["job_id"].replace(":", "_"))
    if only_node(verdict):
        tags.append("node:" + only_node(verdict))
    checks.equal(annotation["tags"], tags + list(more), name + ": tags")
    text = grafana_server.Text(annotation["text"])
    checks.check(text.shown.startswith(verdict["headline"] + "\n" + verdict["remediation"] + "\n"),
                 name + ": text: " + text.shown)
    checks.check("%s, %s, confidence %d %%" % (verdict["severity"], verdict["state"],
                                               verdict["confidence"]) in text.shown,
                 name + ": the last line: " + text.shown)
    return text


def one_a_verdict(checks, binary, folder):
    """All verdicts, as annotations that hold what they say; the second run changes them."""
    with Grafana(TOKEN) as grafana:
        config = document(folder, grafana.url + "/", auth={"bearer_token": TOKEN},
                          tags=["cluster:eu-1"], link="https://culprit.example/?a=1&b=%22#{id}")
        code, log = once(binary, folder, config)
        checks.equal((code, grafana.refusals), (0, []), "once: " + log[-1000:])
        verdicts = verdicts_of(folder)
        checks.check(len(verdicts) > 3, "there are verdicts")
        checks.equal(len(grafana.annotations), len(verdicts), "annotations")
        for name, verdict in verdicts.items():
            found = grafana.tagged(name)
            if checks.equal(len(found), 1, name + ": annotations with its tag"):
                text = held(checks, found[0], verdict, ["cluster:eu-1"])
                checks.equal(text.links, ["https://culprit.example/?a=1&b=%22#" + name], "link")
        created = len(grafana.asked("POST"))
        checks.equal(once(binary, folder, config)[0], 0, "once more")
        checks.equal(len(grafana.asked("POST")), created, "nothing is created a second time")
        checks.equal(len(grafana.asked("PATCH")) >= len(verdicts), True, "but changed")
        checks.equal(len(grafana.annotations), len(verdicts), "annotations of both runs")
        checks.check(TOKEN not in log, "the token is in the log")


def matched(checks, binary, folder):
    with Grafana() as grafana:
        code, log = once(binary, folder, document(
            folder, grafana.url, match={"only_roots": True, "min_severity": "error"}))
        checks.equal(code, 0, "match: " + log[-1000:])
        wanted = [one["id"] for one in verdicts_of(folder).values()
                  if one["severity"] in ("error", "critical")
                  and one.get("attributes", {}).get("culprit.root", "true") == "true"]
        checks.check(0 < len(wanted) < len(verdicts_of(folder)), "some are left out")
        checks.equal(sorted(one["tags"][1] for one in grafana.annotations.values()),
                     sorted(wanted), "the roots from errors on")


def lost_answers(checks, binary, folder):
    """Grafana creates an annotation and its answer is lost: it is found, not created again."""
    with Grafana() as grafana:
        lost = []
        respond = grafana.respond

        def losing(request, body):
            answer = respond(request, body)
            if request.command != "GET" and request.path not in lost:
                lost.append(request.path)
                return 502, {}, b"<html>bad gateway</html>"
            return answer
        grafana.respond = losing
        code, log = once(binary, folder, document(folder, grafana.url))
        checks.equal((code, grafana.refusals), (0, []), "lost answers: " + log[-1000:])
        checks.check(lost, "answers were lost")
        names = [one["tags"][1] for one in grafana.annotations.values()]
        checks.equal(sorted(names), sorted(verdicts_of(folder)), "one annotation each")


def refused_one(checks, binary, folder):
    """What Grafana refuses is dropped and counted, and nothing with it."""
    with Grafana() as grafana:
        calls = []

        def answer(method, _):
            if method == "POST":
                calls.append(method)
            return (400, {}, b'{"message":"no"}') if method == "POST" and len(calls) == 2 else None
        grafana.answer = answer
        code, log = once(binary, folder, document(folder, grafana.url))
        checks.equal(code, 74, "a refusal is told at the end: " + log[-1000:])
        checks.equal(log.count("C3006"), 1, "and logged")
        checks.equal(len(grafana.annotations), len(verdicts_of(folder)) - 1, "the others are there")


def not_grafana(checks, binary, folder):
    """A login page answers 200: nothing counts as delivered."""
    with Grafana(answer=lambda *_: (200, {"Content-Type": "text/html"}, b"<html>Sign in")) as page:
        config = document(folder, page.url)
        config["exporters"]["grafana"]["retry_on_failure"]["max_elapsed_time"] = "300ms"
        code, log = once(binary, folder, config)
        checks.equal(code, 74, "a login page: " + log[-500:])
        checks.check("is this Grafana?" in log, "the reason: " + log[-1000:])
        checks.equal(page.asked("POST"), [], "nothing is created")


class Live(Running):
    def __init__(self, binary, folder, url, **more):
        super().__init__(binary, folder, document(folder, url, live=True, **more))

    def there(self, grafana):
        names = {one["id"] for one in self.found()}
        return bool(names) and all(grafana.tagged(name) for name in names)


def killed(checks, binary, folder):
    """SIGKILL while answers are lost, with a store and without: nothing is there twice."""
    for store in (True, False):
        name = "with a store" if store else "without a store"
        with Grafana() as grafana:
            down = [True]
            grafana.answer = lambda method, _: (
                (503, {}, b"") if down[0] and method == "POST" and len(grafana.annotations) >= 2
                else None)
            run = Live(binary, os.path.join(folder, name), grafana.url, store=store)
            run.start()
            checks.check(wait_for(lambda: len(grafana.asked("POST")) >= 4), name + ": it tries")
            run.process.kill()
            run.process.wait()
            down[0] = False
            with run:
                checks.check(wait_for(lambda: run.there(grafana)), name + ": all are there")
                run.stop(checks, name)
            names = [one["tags"][1] for one in grafana.annotations.values()]
            checks.equal(sorted(names), sorted(set(names)), name + ": each once")
            checks.equal(grafana.refusals, [], name + ": refusals")


def deleted(checks, binary, folder):
    """Somebody deletes an annotation: changes of its verdict do not bring it back."""
    with Grafana() as grafana:
        run = Live(binary, folder, grafana.url, store=True)
        with run:
            checks.check(wait_for(lambda: run.there(grafana)), "all are there")
            run.stop(checks, "before")
        number, gone = next((number, one["tags"][1])
                            for number, one in grafana.annotations.items())
        del grafana.annotations[number]
        # New input changes other verdicts and, read again, says the old ones once more.
        run.start()
        run.stop(checks, "between")
        config = document(folder, grafana.url, live=True, store=True)
        config["service"]["pipelines"] = {"anew": config["service"]["pipelines"]["all"]}
        with open(run.config, "w", encoding="utf-8") as file:
            json.dump(config, file)
        with run:
            checks.check(wait_for(lambda: "C3501" in run.log()), "it is told: " + run.log()[-500:])
            run.stop(checks, "after")
        checks.check(gone in run.log(), "with its id")
        checks.equal(grafana.tagged(gone), [], "it stays deleted")
        checks.equal(run.log().count("C3501"), 1, "told once")


def rotated(checks, binary, folder):
    """401 until the token's file holds the new token."""
    with Grafana("glsa_second") as grafana:
        path = os.path.join(folder, "token")
        with open(path, "w", encoding="ascii") as file:
            file.write(TOKEN)
        run = Live(binary, folder, grafana.url, auth={"bearer_token_file": path})
        with run:
            checks.check(wait_for(lambda: "401" in run.log()), "the failure is logged")
            with open(path + ".new", "w", encoding="ascii") as file:
                file.write("glsa_second\n")
            os.rename(path + ".new", path)
            checks.check(wait_for(lambda: run.there(grafana)), "the new token is used")
            run.stop(checks, "rotated")
        checks.check("glsa_" not in run.log(), "a token is in the log")


def validate(checks, binary, folder):
    for more, said in (({"endpoint": "ftp://x/"}, "endpoint"),
                       ({"tags": ["a:b:c"]}, "second colon"),
                       ({"tags": [" a"]}, "blank"),
                       ({"tags": ["x" * 97]}, "longer"),
                       ({"tags": ["%d:%s" % (i, "x" * 40) for i in range(4)]}, "at most 128"),
                       ({"link": "javascript:alert(1)"}, "link"),
                       ({"match": {"patterns": ["nccl_hangs"]}}, "nccl_hang")):
        path = os.path.join(folder, "c.yaml")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(document(folder, "http://127.0.0.1:3000"), file)
        with open(path, encoding="utf-8") as file:
            config = json.load(file)
        config["exporters"]["grafana"].update(more)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(config, file)
        done = subprocess.run([binary, "validate", path], capture_output=True, text=True,
                              env=environment(), check=False)
        text = done.stdout + done.stderr
        checks.check(done.returncode != 0 and "grafana" in text and said in text,
                     "validate of %r: %s" % (more, text[-500:]))


def main(binary):
    checks = Checks()
    cases = (validate, one_a_verdict, matched, lost_answers, refused_one, not_grafana, killed,
             deleted, rotated)

    def run(case):
        with tempfile.TemporaryDirectory() as folder:
            case(checks, binary, folder)
    with concurrent.futures.ThreadPoolExecutor(len(cases)) as pool:
        for done in [pool.submit(run, case) for case in cases]:
            done.result()
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
