# SPDX-License-Identifier: Apache-2.0
"""Cases of run_faults.py about configurations, signals, memory limits and secrets."""
import contextlib
import http.client
import json
import os
import random
import re
import signal
import subprocess
import threading
import time
import urllib.request

import run_crash
from process import environment
from running import PATIENCE_S, documents
from world import ROUNDS, Left, Run, folder, must, wait_for

LIMIT_S = PATIENCE_S


# -- configurations ------------------------------------------------------------------------------

def validate(context, text, **more):
    with folder() as place:
        path = os.path.join(place, "culprit.yaml")
        with open(path, "wb") as file:
            file.write(text)
        done = subprocess.run([context.binary, "validate", "--config", path], cwd=place,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_S,
                              env=environment(**more), check=False)
        said = (done.stdout + done.stderr).decode("utf-8", "replace")
        must("Sanitizer" not in said and "runtime error" not in said, lambda: said[-3000:])
        must(0 <= done.returncode < 128, "validate ended with %d" % done.returncode)
        return done.returncode, said


def bombs():
    levels = "\n".join("l%d: &l%d [%s]" % (i, i, ",".join(["*l%d" % (i - 1)] * 9))
                       for i in range(1, 12))
    maps = "\n".join("m%d: &m%d {%s}" % (i, i, ", ".join("k%d: *m%d" % (k, i - 1)
                                                        for k in range(9))) for i in range(1, 10))
    return {
        "aliases": b"l0: &l0 [x]\n" + levels.encode(),
        "maps of aliases": b"m0: &m0 {a: b}\n" + maps.encode(),
        "an alias of itself": b"a: &a [*a]\n",
        "merge keys": b"a: &a {<<: *a}\n",
        "depth": b"[" * 100_000,
        "depth of maps": b"{a: " * 100_000,
        "depth by indent": b"".join(b" " * i + b"a:\n" for i in range(2000)),
        "tabs": b"receivers:\n\tfile:\n",
        "a key twice": b"receivers: {}\nreceivers: {}\n",
        "NUL": b"receivers: \0\n",
        "invalid UTF-8": b"receivers: \xff\xfe\n",
        "a long line": b"receivers: " + b"x" * (4 << 20) + b"\n",
        "many keys": b"".join(b"k%d: 1\n" % i for i in range(100_000)),
        "environment in a circle": b"receivers: ${env:A}\n",
        "environment that is large": b"receivers: {file: {include: [\"%s\"]}}\n"
                                     % (b"${env:B}" * 1000),
        "two documents": b"a: 1\n---\nb: 2\n",
        "a tag": b"a: !!python/object:os.system x\n",
        "nothing": b"",
    }


def configurations(context):
    """Bombs, then mutations: validate and run --once must agree on each."""
    surroundings = {"A": "${env:A}${env:A}", "B": "b" * 100_000}
    for what, text in bombs().items():
        code, said = validate(context, text, **surroundings)
        must(code != 0, "%s: taken" % what)
        must(re.search(r":\d+:\d+: |culprit\.yaml: |culprit\.yaml\b", said),
             lambda: "%s: it does not say where: %s" % (what, said[:500]))
    good = (b"receivers:\n  file: {include: [\"in/*.jsonl\"], start_at: beginning}\n"
            b"exporters:\n  json: {path: out.jsonl}\nservice:\n  pipelines:\n    all:\n"
            b"      receivers: [file]\n      preset: memory\n      exporters: [json]\n"
            b"      evaluate_every: 1s\n")
    code, said = validate(context, good)
    must(code == 0, lambda: "the good one: " + said)
    dice, both = random.Random(21), [0, 0]
    for _ in range(context.count(8, 400)):
        text = bytearray(good)
        for _ in range(dice.randrange(1, 3)):
            at = dice.randrange(len(text))
            if dice.randrange(2):
                text[at] = dice.choice(b"{}[]:,-#&*\"' \n\tabz019")
            else:
                del text[at:at + dice.randrange(1, 6)]
        agree(context, bytes(text), both)
    return "%d bombs refused with their place; of %d mutations %d were taken, by both" % (
        len(bombs()), sum(both), both[0])


def agree(context, text, both):
    code, said = validate(context, text)
    with folder() as place:
        os.mkdir(os.path.join(place, "in"))
        with open(os.path.join(place, "culprit.yaml"), "wb") as file:
            file.write(text)
        done = subprocess.run([context.binary, "run", "--once", "--config", "culprit.yaml"],
                              cwd=place, stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=LIMIT_S, env=environment(), check=False)
    # 78: the configuration is wrong. What it finds afterwards, such as no input, is another matter.
    # 73: an output has no place; validate, which looks for that too, counts it among the mistakes.
    taken = done.returncode not in (78, 64) + ((73,) if code == 78 else ())
    must(taken == (code == 0), lambda: "validate says %d, run says %d: %r; %s; %s"
         % (code, done.returncode, text, said[-500:], done.stderr[-500:]))
    both[0 if taken else 1] += 1


# -- signals -------------------------------------------------------------------------------------

def signals(context):
    """SIGHUP without end while configurations change under it; then the last one must hold."""
    count = context.count(120, 10_000)
    with folder() as place:
        run = Run(context, place)
        good = run.settings
        bad = json.loads(json.dumps(good))
        bad["service"]["pipelines"]["memory"]["evaluate_evry"] = "1s"
        last = json.loads(json.dumps(good))
        moved = run_crash.free_port()
        last["service"]["telemetry"]["metrics"]["endpoint"] = "127.0.0.1:%d" % moved
        run.start()
        stop = threading.Event()

        def storm():
            for number in range(count):
                if stop.is_set():
                    return
                if number % 5 == 0:
                    run.write_config([good, bad, good][number // 5 % 3])
                run.signal(signal.SIGHUP)
                run.signal(signal.SIGPIPE)
                run.signal(signal.SIGCHLD)
                time.sleep(0.002)
        thread = threading.Thread(target=storm)
        thread.start()
        try:
            for number in range(4):
                run.give(number)
                run.give_again()
        finally:
            if run.ended():
                stop.set()
            thread.join()
        must(not run.ended(), lambda: "it ended: " + run.log_text()[-1500:])
        # A slow machine may have met the bad one never: behind the storm it does.
        refused = said_times(run, "C1003")
        run.write_config(bad)
        run.signal(signal.SIGHUP)
        wait_for(lambda: said_times(run, "C1003") > refused, "the bad one is refused")
        run.write_config(last)
        run.metrics = moved
        run.signal(signal.SIGHUP)
        wait_for(lambda: run.consumed() is not None, "the last one is taken")
        run.signal(signal.SIGSTOP)
        time.sleep(0.5)
        run.signal(signal.SIGCONT)
        run.signal(signal.SIGHUP)
        code = run.end()             # while it reloads
        must(code == 0, lambda: "exit code %s: %s" % (code, run.log_text()[-2000:]))
        reloads, refused = said_times(run, "C1012"), said_times(run, "C1003")
        must(reloads > 0 and refused > 0, "%d reloads, %d refused" % (reloads, refused))
        run.unharmed()
        run.finish(4)
    return "%d signals, %d reloads, %d refused, no event lost" % (count * 3, reloads, refused)


def said_times(run, code):
    """How often the log says this, with what it left out."""
    lines = [line for line in documents(run.log) if line["code"] == code]
    return sum(line.get("suppressed", 1) for line in lines)


# -- memory --------------------------------------------------------------------------------------

@contextlib.contextmanager
def memory_group(mebibytes):
    """The folder of a control group with this limit; None where none can be made."""
    name = "culprit-fault-%d" % os.getpid()
    first = "/sys/fs/cgroup/memory/" + name
    second = "/sys/fs/cgroup/" + name
    for path, limit in ((first, "memory.limit_in_bytes"), (second, "memory.max")):
        try:
            os.mkdir(path)
            with open(os.path.join(path, limit), "w", encoding="ascii") as file:
                file.write(str(mebibytes << 20))
        except OSError:
            with contextlib.suppress(OSError):
                os.rmdir(path)
            continue
        try:
            yield path
        finally:
            for _ in range(100):
                try:
                    os.rmdir(path)
                    break
                except OSError:
                    time.sleep(0.05)
        return
    yield None


def little_memory(context):
    """64 MiB for the process, a sink that is dead, and more events than fit."""
    limit = 256 if context.sanitized else 64       # what a sanitizer needs comes on top
    seconds = context.count(5, 60)

    def change(config):
        config["exporters"]["kafka"] = {
            "brokers": ["127.0.0.1:%d" % run_crash.free_port()], "topic": "nowhere",
            "payload": "events", "sending_queue": {"queue_size": "16MiB"}}
        # The limiter must find the group: of the machine's memory this would be too much.
        config["processors"] = {"memory_limiter": {"limit_percentage": 3200 // limit}}
        config["service"]["pipelines"]["forward"] = {
            "receivers": ["http"], "processors": ["memory_limiter"], "exporters": ["kafka"]}
        config["receivers"]["http"]["ack"] = "accepted"
        config["receivers"]["http"].update({"max_request_size": "2MiB", "max_pending_size": "4MiB"})
        config["service"]["shutdown_timeout"] = "2s"
    with folder() as place, memory_group(limit) as group:
        if group is None:
            raise Left("no control group can be made here")
        run = Run(context, place, change)

        def enter():
            with open(os.path.join(group, "cgroup.procs"), "w", encoding="ascii") as file:
                file.write(str(os.getpid()))
        few = {"ASAN_OPTIONS": "quarantine_size_mb=1"} if context.sanitized else {}
        run.start(before=enter, **few)
        answers = {}
        lines = [line for part in ROUNDS for rank in sorted(part) for line in part[rank]][:500]
        end = time.monotonic() + seconds
        longest = end + PATIENCE_S
        # As long as it takes to fill the memory, on a slow machine.
        while time.monotonic() < end or (503 not in answers and time.monotonic() < longest):
            status = run.post_once("m/%d" % sum(answers.values()), lines)
            answers[status] = answers.get(status, 0) + 1
            must(not run.ended(), lambda: "it was killed: %s; %s" % (run.process.returncode,
                                                                  run.log_text()[-1000:]))
        peak = run.memory_kib("VmHWM")
        must(answers.get(503, 0) > 0 and answers.get(202, 0) > 0, "answers: %r" % answers)
        must(set(answers) <= {202, 503}, "answers: %r" % answers)
        run.end()
        run.unharmed()
    return "%d MiB: %d requests of 500 events taken, %d put off, %d MiB at most" % (
        limit, answers[202], answers[503], peak >> 10)


# -- secrets -------------------------------------------------------------------------------------

CANARY = "canary4711"


def secrets(context):
    """Every secret option holds a word that must be nowhere outside the configuration."""
    words = {name: CANARY + name * 8 for name in ("bearer", "kafka", "wandb")}

    def change(config):
        nowhere = "127.0.0.1:%d" % run_crash.free_port()
        config["receivers"]["http"]["auth"] = {"bearer_token": "${env:BEARER}"}
        config["exporters"]["kafka"] = {
            "brokers": [nowhere], "topic": "nowhere",
            "sasl": {"mechanism": "PLAIN", "username": "user", "password": "${env:KAFKA}"}}
        config["exporters"]["wandb"] = {"api_key": "${env:WANDB}", "entity": "e", "project": "p",
                                        "base_url": "http://" + nowhere}
        config["service"]["pipelines"]["memory"]["exporters"] += ["kafka", "wandb"]
        config["service"]["telemetry"]["logs"] = {"level": "debug"}
        config["service"]["shutdown_timeout"] = "1s"
        config["extensions"]["health_check"] = {
            "endpoint": "127.0.0.1:%d" % run_crash.free_port()}
        config["service"]["extensions"].append("health_check")
    variables = {name.upper(): word for name, word in words.items()}
    with folder() as place:
        run = Run(context, place, change)
        said = {}
        for command in ("validate", "config"):
            arguments = [command] if command == "validate" else ["config", "print"]
            done = subprocess.run([run.binary, *arguments, "--config", run.config],
                                  stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_S,
                                  env=environment(**variables), check=False)
            said[command] = done.stdout + done.stderr
        run.start(**variables)
        for token in ("wrong", words["bearer"][:-1], words["bearer"]):
            said["answer to " + token[:5]] = posted(run, token)
        run.signal(signal.SIGUSR2)
        run.signal(signal.SIGHUP)
        wait_for(lambda: '"C1012"' in run.log_text(), "it reloads")
        health = run.settings["extensions"]["health_check"]["endpoint"]
        for name, url in (("metrics", "127.0.0.1:%d/metrics" % run.metrics),
                          ("status", health + "/status?verbose")):
            said[name] = page(url)
        with open("/proc/%d/cmdline" % run.process.pid, "rb") as file:
            said["cmdline"] = file.read()
        time.sleep(0.5)
        run.kill()
        files = 0
        for parent, _, names in os.walk(place):
            for name in names:
                with open(os.path.join(parent, name), "rb") as file:
                    said[name] = said.get(name, b"") + file.read()
                    files += 1
        must(said["validate"] and said["metrics"] and said["status"], "nothing was said")
        for name, data in said.items():
            at = data.find(CANARY.encode())
            must(at < 0, lambda: "a secret is in %s: %r" % (name, data[max(0, at - 200):at + 80]))
    return "%d secrets, looked for in %d files and answers: in none" % (len(words), len(said))


def posted(run, token):
    connection = http.client.HTTPConnection("127.0.0.1", run.port, timeout=30)
    try:
        connection.request("POST", "/v1/events", (ROUNDS[0][3][0] + "\n").encode(),
                           {"Content-Type": "application/x-ndjson",
                            "Authorization": "Bearer " + token})
        answer = connection.getresponse()
        return str(answer.status).encode() + answer.read()
    finally:
        connection.close()


def page(url):
    try:
        with urllib.request.urlopen("http://" + url, timeout=30) as answer:
            return answer.read()
    except urllib.error.HTTPError as answer:
        return answer.read()
