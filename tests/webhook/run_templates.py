#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The templates among the examples, for Slack, PagerDuty and Teams, and what is wrong in others.

    run_templates.py BINARY

A whole culprit posts verdicts whose names and messages are as hostile as a training job can make
them; each body is held against the vendor's rules (chat_rules.py) and against the verdict. Secrets
are in no log and no store. A wrong template is refused with its line and column.
"""
import concurrent.futures
import glob
import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.path.insert(0, os.path.join(HERE, "..", "support"))
import chat_rules  # noqa: E402
from checks import Checks  # noqa: E402
from process import environment  # noqa: E402
from running import PATIENCE_S, Running, wait_for  # noqa: E402

TEMPLATES = os.path.join(ROOT, "examples", "templates")
CASE = os.path.join(ROOT, "tests", "golden", "detectors", "first_exit",
                    "exception_takes_the_others", "events.jsonl")
INCIDENT = os.path.join(ROOT, "tests", "golden", "detectors", "incident", "*", "events.jsonl")
MESSAGE = "IndexError: index out of range in self"
HOSTILE = ["<!channel> *bold* <https://evil.example|click> &lt; @here [x](https://evil.example)",
           "\"quotes\" \\ back\\\\slash \u0000\u0001\u001b[31m \u202e\u2028 {{routing_key}} }} {{",
           "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 \ufeff\ud83d\ude00 " + "长" * 3000,
           "\x01page\x01 <script>alert(1)</script>"]
KEY = "R0ut1ngKey0123456789abcdefABCDEF"
RULES = {"slack": chat_rules.slack, "pagerduty": chat_rules.pagerduty, "teams": chat_rules.teams}


class Sink:
    """Answers each post with what `answer` says: (status, body)."""

    def __init__(self, answer=lambda number: (202, b"")):
        self.bodies = []
        sink = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                status, content = answer(len(sink.bodies))
                sink.bodies.append(body)
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.handle_error = lambda *_: None  # a client that is killed
        self.url = "http://127.0.0.1:%d/" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def document(folder, include, url, **webhook):
    return {
        "receivers": {"file": {"include": include}},
        "exporters": {"json": {"path": os.path.join(folder, "verdicts.jsonl")},
                      "webhook": {"endpoint": url, **webhook, "retry_on_failure":
                                  {"initial_interval": "50ms", "max_interval": "200ms"}}},
        "service": {"pipelines": {"all": {"receivers": ["file"], "preset": "all",
                                          "exporters": ["json", "webhook"]}}}}


def once(binary, folder, config, *arguments):
    path = os.path.join(folder, "c.yaml")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)
    done = subprocess.run([binary, *(arguments or ("run", "--once", "--config")), path],
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S,
                          env=environment(PAGERDUTY_KEY=KEY), check=False)
    return done.returncode, (done.stdout + done.stderr).decode("utf-8", "replace")


def template_of(name):
    found = {"template_file": os.path.join(TEMPLATES, name + ".json")}
    if name == "pagerduty":
        found["template_values"] = ["routing_key=${env:PAGERDUTY_KEY}",
                                    "page=https://culprit.example.com/"]
    return found


def hostile_input(folder, number, text):
    """A job whose first exception says this, on a node of such a name."""
    with open(CASE, encoding="utf-8") as file:
        lines = file.read()
    path = os.path.join(folder, "hostile-%d.jsonl" % number)
    inner = json.dumps(text)[1:-1]
    lines = lines.replace(MESSAGE, "IndexError: " + inner)
    lines = lines.replace('"node-b"', json.dumps("n%d " % number + text[:80]))
    with open(path, "w", encoding="utf-8") as file:
        file.write(lines)
    return path


def told(name, body):
    """(id, headline, state or action) as the message says."""
    message = json.loads(body)
    if name == "slack":
        blocks = message["blocks"]
        return (blocks[2]["elements"][0]["text"].split(" ")[0], blocks[0]["text"]["text"],
                blocks[1]["fields"][0]["text"])
    if name == "pagerduty":
        return (message["dedup_key"], message["payload"]["summary"], message["event_action"])
    body = message["attachments"][0]["content"]["body"]
    return (body[4]["inlines"][0]["text"], body[0]["inlines"][0]["text"],
            body[1]["inlines"][0]["text"])


def held(checks, name, bodies, verdicts):
    """Each message follows the rules and says what its verdict says."""
    checks.equal(len(bodies), len(verdicts), name + ": one message a verdict")
    by_id = {(one["id"], one["state"] == "resolved"): one for one in verdicts}
    for body in bodies:
        checks.equal(RULES[name](body), [], "%s: %s" % (name, body[:400]))
        identity, headline, state = told(name, body)
        checks.check("R0ut1" not in headline, name + ": a key in a headline")
        verdict = by_id.pop((identity, "resolve" in state), None)
        if not checks.check(verdict is not None, name + ": whose is %s?" % identity):
            continue
        checks.equal(headline[:9], verdict["headline"][:9], name + ": the headline")
        checks.check(name == "pagerduty" or state.endswith(verdict["state"]),
                     name + ": the state " + state)
        checks.check(name != "pagerduty" or json.loads(body)["routing_key"] == KEY,
                     "the routing key")


def shipped(checks, binary, folder, name):
    inputs = [[hostile_input(folder, number, text)] for number, text in enumerate(HOSTILE)]
    for include, word in zip(inputs + [[INCIDENT]],
                             ("channel", "quotes", "长", "script", "")):
        with Sink() as sink:
            code, log = once(binary, folder,
                             document(folder, include, sink.url, **template_of(name)))
            checks.equal(code, 0, name + ": " + log[-1500:])
            path = os.path.join(folder, "verdicts.jsonl")
            with open(path, encoding="utf-8") as file:
                verdicts = [json.loads(line) for line in file]
            os.remove(path)
            checks.check(verdicts and any(word in one["headline"] for one in verdicts),
                         "the hostile text is in a verdict: %s" % verdicts)
            held(checks, name, sink.bodies, verdicts)
            checks.check(KEY not in log, name + ": the key is in the log")


def stored(folder):
    content = b""
    for path in glob.glob(os.path.join(folder, "store", "*")):
        with open(path, "rb") as file:
            content += file.read()
    return content


def secret_is_kept(checks, binary, folder):
    """A key is in no store, no log and no configuration that is shown; a refusal repeats it."""
    answer = {"down": True}

    def answered(_):
        if answer["down"]:
            return 503, b""
        return 400, json.dumps({"errors": ["routing_key %s is not known" % KEY]}).encode()
    with Sink(answered) as sink:
        config = document(folder, [INCIDENT], sink.url, **template_of("pagerduty"))
        config["extensions"] = {"file_storage": {"directory": os.path.join(folder, "store")}}
        config["service"].update(extensions=["file_storage"], checkpoint_interval="100ms")
        config["service"]["pipelines"]["all"].update(idle_timeout="300ms", settle="0s")
        config["exporters"]["webhook"]["template_values"][0] = "routing_key=" + KEY
        run = Running(binary, folder, config)
        with run:
            checks.check(wait_for(lambda: sink.bodies and b"dedup_key" in stored(folder)),
                         "it tries, and what waits is in the store")
            run.process.kill()
            run.process.wait()
        checks.check(KEY.encode() not in stored(folder), "the key is in the store")
        answer["down"] = False
        with run:
            checks.check(wait_for(lambda: "C3006" in run.log()), "it is refused")
        checks.check("is not known" in run.log(), "what the server says: " + run.log()[-600:])
        checks.check(KEY not in run.log(), "the key is in the log: " + run.log()[-600:])
        done = once(binary, folder, config, "validate", "--config")
        checks.check(done[0] == 0 and KEY not in done[1], "validate: " + done[1][-500:])


def names_are_gone(checks, binary, folder):
    """What waited in the store for a value that has another name now is dropped and counted."""
    state = {"down": True}
    with Sink(lambda _: (503, b"") if state["down"] else (202, b"")) as sink:
        config = document(folder, [INCIDENT], sink.url, **template_of("pagerduty"))
        config["exporters"]["webhook"]["template_values"][0] = "routing_key=" + KEY
        config["extensions"] = {"file_storage": {"directory": os.path.join(folder, "store")}}
        config["service"].update(extensions=["file_storage"], checkpoint_interval="100ms")
        config["service"]["pipelines"]["all"].update(idle_timeout="300ms", settle="0s")
        run = Running(binary, folder, config)
        with run:
            checks.check(wait_for(lambda: sink.bodies and b"dedup_key" in stored(folder)),
                         "it tries, and what waits is in the store")
            run.process.kill()
            run.process.wait()
        state["down"] = False
        own = os.path.join(folder, "own.json")
        with open(own, "w", encoding="utf-8") as file:
            file.write('{"id": "{{id}}"}')
        config["exporters"]["webhook"].update(template_file=own)
        del config["exporters"]["webhook"]["template_values"]
        with open(run.config, "w", encoding="utf-8") as file:
            json.dump(config, file)
        with run:
            checks.check(wait_for(lambda: "C3006" in run.log()), "dropped: " + run.log()[-800:])
            run.stop(checks, "other names")
        checks.check("template_values" in run.log(), "the reason")


WRONG = (  # template, values, what validate says
    ('{"a": "{{headlin}}"}', [], ":1:8: ", "headlin"),
    ('{"a": "b",\n  "c": "x{{state|open=a}}"}', [], ":2:10: ", "updated"),
    ('{"a": "{{state|opened=a|*=b}}"}', [], ":1:8: ", "never"),
    ('{"a": "{{id|=a|=b}}"}', [], ":1:8: ", "already"),
    ('{"a": "{{id|*=a|x=b}}"}', [], ":1:8: ", "already"),
    ('{"a": "{{id"}', [], ":1:8: ", "does not end"),
    ('{"a": "{{id\\"}}"}', [], ":1:8: ", "does not end"),
    ('{"a": "{{id|upper}}"}', [], ":1:8: ", "behind a bar"),
    ('{"a": "{{id|cut 3}}"}', [], ":1:8: ", "from 4"),
    ('{"a": "{{id|cut 9|cut 9}}"}', [], ":1:8: ", "once"),
    ('{"a": {{id}}}', [], ":1:8: ", "not JSON"),
    ('{"a": 1,\n "b": 2,}', [], ":2:9: ", "not JSON"),
    ('{"a": 1, "a": 2}', [], ":1:", "duplicate"),
    ('', [], ":1:1: ", "not JSON"),
    ('{"a": "{{key|slack}}"}', ["key=1"], ":1:8: ", "as it is"),
    ('{"a": "{{key}}"}', ["key=1", "other=2"], "template_file", "other"),
    ('{"a": 1}', ["id=1"], "template_values", "of this name"),
    ('{"a": 1}', ["Key=1"], "template_values", "lower case"),
    ('{"a": 1}', ["secret-without-a-name"], "template_values", "NAME=VALUE"),
    ('{"a": "' + "{{id}}" * 300 + '"}', [], ":1:", "255"),
    ('{"a": "' + "x" * 70000 + '"}', [], "template_file", "64 KiB"))


def wrong(checks, binary, folder):
    path = os.path.join(folder, "own.json")
    for text, values, place, said in WRONG:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        config = document(folder, [INCIDENT], "http://127.0.0.1:1/", template_file=path)
        if values:
            config["exporters"]["webhook"]["template_values"] = values
        for arguments in (("validate", "--config"), ("run", "--once", "--config")):
            code, log = once(binary, folder, config, *arguments)
            checks.check(code == 78 and said in log and place in log
                         and ("own.json" + place in log or not place.startswith(":"))
                         and "secret-without" not in log,
                         "%s of %.60s: %d %s" % (arguments[0], text, code, log[-600:]))
    for more, said in (({"template_file": path + ".none"}, "cannot read"),
                       ({"template_file": path, "template": "slack"}, "either"),
                       ({"template_values": ["a=b"]}, "template_file, which is not given")):
        code, log = once(binary, folder, document(folder, [INCIDENT], "http://127.0.0.1:1/", **more),
                         "validate", "--config")
        checks.check(code == 78 and said in log, "validate of %s: %s" % (more, log[-500:]))


def main(binary):
    checks = Checks()
    cases = [(shipped, name) for name in RULES]
    checks.equal(sorted(os.path.basename(path) for path in glob.glob(TEMPLATES + "/*.json")),
                 sorted(name + ".json" for name in RULES), "templates among the examples")
    cases += [(secret_is_kept,), (names_are_gone,), (wrong,)]

    def run(case, *more):
        with tempfile.TemporaryDirectory() as folder:
            case(checks, binary, folder, *more)
    with concurrent.futures.ThreadPoolExecutor(len(cases)) as pool:
        for done in [pool.submit(run, *case) for case in cases]:
            done.result()
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
