#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What sinks are told of a flood, by examples/routing.yaml in a whole culprit.

    run_route.py BINARY

A thousand GPUs fail within a second, ten of them for good, while more and more ranks report that a
collective hangs. A pager and a chat are stand-ins on HTTP; the file has everything. The same once
more with kill -9 in the middle of it, and what a configuration with a wrong pattern says.
"""
import json
import os
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "support"))
import schema  # noqa: E402
from checks import Checks  # noqa: E402
from process import environment  # noqa: E402
from run_webhook import Sink  # noqa: E402
from running import PATIENCE_S, documents, stored, wait_for  # noqa: E402

EXAMPLE = os.path.join(HERE, "..", "..", "examples", "routing.yaml")
SCHEMA = os.path.join(HERE, "..", "..", "docs", "verdict.schema.json")
BEGIN_S = 1794992400
FAILED, FOR_GOOD, RANKS = 990, 10, 24
BOUND, INTERVAL_S = 20, 30
# The chat of the example hears of GPUs, too, and of a hang twice a minute.
CHAT = {"match": {"patterns": ["nccl_hang", "gpu_fault", "hbm_ecc"]}, "template": "verdict",
        "update_interval": "%ds" % INTERVAL_S, "max_per_minute": BOUND}
QUICK = {"retry_on_failure": {"initial_interval": "100ms", "max_interval": "100ms"}}


def line(second, node, message, **more):
    """`second` as a text, so that a line is always the same bytes."""
    source = "app_log" if "rank" in more else "kmsg"
    return json.dumps({"source": source, "k8s.node.name": node, "message": message, **more,
                       "timestamp_ns": int(BEGIN_S * 1000 + second * 1000) * 1000000}) + "\n"


def xid(second, node, code, text):
    return line(second, node, "NVRM: Xid (PCI:0000:45:00): %d, pid=7, %s" % (code, text))


def time_passes(first, last, step=5):
    """Something that is an event and no finding."""
    return [xid(second, "node-x", 31, "name=python3, Ch 00000008, MMU Fault")
            for second in range(first, last, step)]


def flood():
    lines = time_passes(0, 10)
    for number in range(FAILED + FOR_GOOD):
        node, second = "node-%04d" % number, 10 + number / 2000
        if number % (FAILED // FOR_GOOD + 1) == 0:
            lines.append(xid(second, node, 79, "GPU has fallen off the bus."))
        else:
            lines.append(xid(second, node, 94, "Contained ECC error."))
    return lines + time_passes(12, 20)


WAITS = ("[Rank {0}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1201, "
         "OpType=ALLREDUCE, NumelIn=8388608, NumelOut=8388608, Timeout(ms)=600000) ran for 600033 "
         "milliseconds before timing out.",
         "[PG 0 (default_pg) Rank {0}] Exception (either an error or timeout) detected by watchdog "
         "at work: 1201, last enqueued NCCL work: 1203, last completed NCCL work: 1200.")


def hang():
    """A rank a second says that it waits; the last one never does."""
    lines = []
    for rank in range(RANKS + 1):
        lines.append(json.dumps({"source": "rank_map", "rank": rank, "observed_time_ns":
                                 (BEGIN_S + 20) * 1000000000,
                                 "k8s.node.name": "node-h%d" % (rank // 8)}) + "\n")
    for rank in range(RANKS):
        second = 20 + rank
        lines += time_passes(second, second + 1)
        lines += [line(second, "node-h%d" % (rank // 8), text.format(rank), rank=rank)
                  for text in WAITS]
    return lines + time_passes(20 + RANKS, 220, 10)


class Run:
    def __init__(self, binary, folder, pager, chat, metrics=None):
        self.binary, self.folder = binary, folder
        self.telemetry = os.path.join(folder, "telemetry")
        os.makedirs(self.telemetry)
        os.makedirs(os.path.join(folder, "culprit"))
        self.log = os.path.join(folder, "log")
        more = {"exporters": {"webhook/chat": {**CHAT, **QUICK}, "webhook/pager": QUICK}}
        more["service"] = {"checkpoint_interval": "100ms", "shutdown_timeout": "2m"}
        if metrics is not None:
            more["service"]["telemetry"] = {"metrics": {"endpoint": metrics}}
        self.more = os.path.join(folder, "more.yaml")
        with open(self.more, "w", encoding="utf-8") as file:
            json.dump(more, file)
        self.variables = {"PAGER_URL": pager, "CHAT_URL": chat, "TELEMETRY_DIR": self.telemetry,
                          "CULPRIT_DIR": os.path.join(folder, "culprit")}

    def append(self, lines):
        with open(os.path.join(self.telemetry, "events.jsonl"), "a", encoding="utf-8") as file:
            file.write("".join(lines))

    def start(self):
        with open(self.log, "ab") as log:
            return subprocess.Popen([self.binary, "run", "--config", EXAMPLE, "--config", self.more],
                                    stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                    env=environment(**self.variables))

    def said(self):
        with open(self.log, encoding="utf-8") as file:
            return file.read()

    def verdicts(self):
        return documents(os.path.join(self.folder, "culprit", "verdicts.jsonl"))


def bodies(sink):
    """What was posted, without repeats of the same bytes."""
    return list(dict.fromkeys(post.body for post in sink.posts))


def is_over(sink):
    return any('"pattern":"held_back"' in post.body and '"state":"resolved"' in post.body
               for post in sink.posts)


def of_pattern(told, pattern):
    return [one for one in told if one["pattern"] == pattern]


def stop(checks, run, process, what):
    process.send_signal(signal.SIGTERM)
    checks.equal(process.wait(PATIENCE_S), 0, what + ": " + run.said()[-2000:])


def check_flood(checks, run, pager, chat):
    everything = run.verdicts()
    critical = {one["id"] for one in everything if one["severity"] == "critical"}
    gpus = {one["id"] for one in everything if one["pattern"] in ("gpu_fault", "hbm_ecc")}
    checks.equal(len(gpus), FAILED + FOR_GOOD, "verdicts on GPUs in the file")
    paged = [json.loads(body) for body in bodies(pager)]
    checks.equal({one["id"] for one in paged}, critical, "what was paged")
    checks.equal([one["state"] for one in of_pattern(paged, "gpu_fault")], ["open"] * FOR_GOOD,
                 "each is paged once")
    told = [json.loads(body) for body in bodies(chat)]
    errors = [one for one in told if one["id"] in gpus - critical]
    checks.equal(len(of_pattern(told, "gpu_fault")), FOR_GOOD, "critical ones in the chat")
    checks.equal(len(errors), BOUND, "others in the chat")
    with open(SCHEMA, encoding="utf-8") as file:
        wanted = json.load(file)
    checks.equal([fault for one in told for fault in schema.faults(one, wanted)], [],
                 "all is as the schema says")
    notices = of_pattern(told, "held_back")
    states = [one["state"] for one in notices]
    checks.equal([states[0], states[-1]], ["open", "resolved"], "notices")
    for one in notices:
        count = int(one["attributes"]["culprit.held_back"])
        checks.check("hbm_ecc %d" % (FAILED - BOUND) in one["headline"], one["headline"])
        checks.check({item["uid"] for item in one["evidence_trail"]} <= gpus - critical
                     - {each["id"] for each in errors}, "the notice names those that were held back")
        checks.equal(len(one["evidence_trail"]) + one["evidence_dropped"], count,
                     "named and counted")
    checks.equal(int(notices[0]["attributes"]["culprit.held_back"]), FAILED - BOUND, "how many")
    return everything, told


def check_hang(checks, everything, told):
    wanted, heard = of_pattern(everything, "nccl_hang"), of_pattern(told, "nccl_hang")
    checks.check(len(wanted) >= RANKS / 2, "the hang changed %d times" % len(wanted))
    checks.check(2 <= len(heard) <= 3 + RANKS // INTERVAL_S, "the chat was told %d times of %d"
                 % (len(heard), len(wanted)))
    checks.equal(heard[0]["state"], "open", "the hang begins")
    checks.check(all(one["state"] == "updated" for one in heard[1:]), "and changes")
    checks.equal(heard[-1]["entities"], wanted[-1]["entities"], "the chat knows the latest")


def whole(checks, binary, folder):
    """Without an interruption. The posts to the chat."""
    with Sink(lambda *_: (200, {})) as pager, Sink(lambda *_: (200, {})) as chat:
        run = Run(binary, folder, pager.url, chat.url)
        run.append(flood())
        process = run.start()
        wait_for(lambda: len(chat.posts) >= FOR_GOOD + BOUND + 1)
        run.append(hang())
        checks.check(wait_for(lambda: is_over(chat)), "the flood is over: " + run.said()[-2000:])
        stop(checks, run, process, "whole")
        everything, told = check_flood(checks, run, pager, chat)
        check_hang(checks, everything, told)
        said = run.said()
        checks.equal([said.count(code) for code in ("C3007", "C3008")], [1, 1], "it is logged once")
        return bodies(pager), bodies(chat)


def killed(checks, binary, folder, wanted):
    """The chat is away when culprit is killed: what waited, and what was held back, is there. So it
    is when culprit is told to reload."""
    down = [False]
    with Sink(lambda *_: (200, {})) as pager, \
            Sink(lambda number, _: (503, {}) if down[0] and number >= 5 else (200, {})) as chat:
        down[0] = True
        run = Run(binary, folder, pager.url, chat.url)
        run.append(flood())
        process = run.start()
        store = os.path.join(folder, "culprit", "store")
        wait_for(lambda: len(chat.posts) >= 7, process)
        waits = [json.loads(post.body)["id"].encode() for post in chat.posts[5:7]]
        checks.check(wait_for(run.verdicts, process), "verdicts are written before it is killed")
        checks.check(wait_for(lambda: all(one in stored(store) for one in waits), process),
                     "what waits is in the store")
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE_S)
        refused = chat.posts[5:]
        del chat.posts[5:]
        checks.check(len(refused) >= 1, "the chat was away")
        down[0] = False
        process = run.start()
        wait_for(lambda: len(bodies(chat)) >= FOR_GOOD + BOUND + 1)
        process.send_signal(signal.SIGHUP)
        run.append(hang())
        checks.check(wait_for(lambda: is_over(chat)), "the flood is over: " + run.said()[-2000:])
        checks.check(wait_for(lambda: "C1012" in run.said(), process), "it was reloaded")
        stop(checks, run, process, "killed")
        check_flood(checks, run, pager, chat)
        checks.equal(bodies(pager), wanted[0], "the same pages")
        checks.equal(bodies(chat), wanted[1], "the same messages")


def wrong(checks, binary, folder):
    """A pattern that nobody reports, with its line and column."""
    path = os.path.join(folder, "wrong.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write("receivers:\n  file: {include: [/tmp]}\nexporters:\n  webhook:\n"
                   "    endpoint: http://127.0.0.1:1/\n    match:\n"
                   "      patterns: [nccl_hang, ncll_hang]\n      min_severity: eror\n"
                   "  kafka: {brokers: [a], topic: t, payload: events, max_per_minute: 3}\n"
                   "  json: {content: summary, match: {jobs: [a]}}\n"
                   "service:\n  pipelines:\n    a: {receivers: [file], preset: all, "
                   "exporters: [webhook, kafka, json]}\n")
    found = []
    for _ in range(2):
        done = subprocess.run([binary, "validate", path], stdin=subprocess.DEVNULL,
                              capture_output=True, env=environment(), check=False)
        checks.equal(done.returncode, 78, "it is refused")
        found += done.stderr.decode().splitlines()
        with open(path, encoding="utf-8") as file:
            text = file.read().replace("eror", "error")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    for wanted in (path + ":8:21: exporters.webhook.match.min_severity: 'eror'",
                   path + ":7:29: exporters.webhook.match.patterns[1]: 'ncll_hang' is not a "
                   "pattern; did you mean 'nccl_hang'?",
                   "exporters.kafka.payload: events are not chosen by match",
                   path + ":10:28: exporters.json.match: only verdicts and last_verdict"):
        checks.check(any(wanted in each for each in found), "%s in %s" % (wanted, found))


def main(binary):
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder:
        parts = [os.path.join(folder, name) for name in ("whole", "killed", "wrong")]
        for part in parts:
            os.mkdir(part)
        wrong(checks, binary, parts[2])
        killed(checks, binary, parts[1], whole(checks, binary, parts[0]))
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
