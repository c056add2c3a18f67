#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""culprit run with the nccl_ras receiver, against a strict stand-in for NCCL's RAS.

    run_nccl_ras.py BINARY [CASE…]

What RAS answers must lead to the verdict; a job that comes and goes is no trouble; servers that
answer wrongly, endlessly, slowly, by half or not at all are told of once, and cost nothing else; a
killed culprit asks again. Nothing here depends on how long something takes: what must happen is
waited for, up to a limit.
"""
import json
import os
import socket
import struct
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
import ras_server  # noqa: E402
from checks import Checks  # noqa: E402
from ports import free_port  # noqa: E402
from ras_server import RasServer, document, event  # noqa: E402
from running import Running, wait_for  # noqa: E402

TIMEOUT_S = 10  # no answer of a slow machine takes so long
BEHIND = document([7, 7, 7, 6])
DEAD = document([7, 7, 7, 0], dead=[3])


class Run(Running):
    def __init__(self, binary, folder, endpoints, store=False, rank_map=False, **options):
        os.makedirs(folder, exist_ok=True)
        self.quarantine = os.path.join(folder, "quarantine.jsonl")
        # Who runs where: the text says neither how many ranks there are nor which they are.
        ranks = os.path.join(folder, "ranks.jsonl")
        with open(ranks, "w", encoding="utf-8") as file:
            for number in range(16):
                file.write(json.dumps({"source": "rank_map", "timestamp_ns": time.time_ns(),
                                       "job_id": "job-1", "rank": number, "process.pid":
                                       90000 + number, "k8s.node.name":
                                       "10.20.0.%d" % (7 + number // 8)}) + "\n")
        document_ = {
            "receivers": {"nccl_ras": {"endpoints": endpoints, "interval": "1s", "timeout": "%ds" % TIMEOUT_S,
                                       "pause": "1s", "job_id": "job-1",
                                       "quarantine": self.quarantine, **options}},
            "processors": {"nccl_hang": {"stuck_after": "1s"}, "incident": {}},
            "exporters": {"json": {"path": self.verdicts_in(folder)}},
            "service": {"pipelines": {"all": {
                "receivers": ["nccl_ras"] + ["file"] * rank_map, "processors": ["nccl_hang", "incident"],
                "exporters": ["json"], "evaluate_every": "1s", "allowed_lateness": "0s",
                "settle": "0s", "idle_timeout": "1s"}}}}
        if rank_map:
            document_["receivers"]["file"] = {"include": [ranks], "start_at": "beginning"}
        if store:
            document_["extensions"] = {"file_storage": {"directory": os.path.join(folder, "s")}}
            document_["service"]["extensions"] = ["file_storage"]
        super().__init__(binary, folder, document_)

    def refused(self):
        try:
            with open(self.quarantine, encoding="utf-8") as file:
                return [json.loads(line) for line in file if line.endswith("\n")]
        except FileNotFoundError:
            return []


def blamed(verdict):
    return [entity["name"] for entity in verdict["entities"]
            if entity["role"] in ("culprit", "suspect") and entity["kind"] == "rank"]


def who_is_behind(checks, binary, folder):
    """A rank that stays behind is found by two answers; over a job that comes and goes."""
    port = free_port()
    with Run(binary, folder, ["127.0.0.1:%d" % port]) as run:
        checks.check(wait_for(lambda: "C9401" in run.log()), "nobody answers: " + run.log())
        with RasServer(BEHIND, port=port) as server:
            checks.check(wait_for(run.found), "a verdict: " + run.log())
            checks.equal([(one["kind"], blamed(one)) for one in run.found()[:1]],
                         [("missing_rank", ["3"])], "who is behind")
            checks.equal(server.offences, [], "nothing outside of the protocol is said")
            checks.check("TIMEOUT %d" % TIMEOUT_S in server.commands, "RAS's timeout is set")
        checks.check(wait_for(lambda: run.log().count("C9401") > 1), "the job ended: " + run.log())
        run.stop(checks, "a job that comes and goes")
        log = run.log()
        checks.equal((log.count("C9401"), log.count("C9402")), (2, 1), "each is said once: " + log)
        checks.check('"level":"warn"' not in log, "it is no trouble: " + log)


def a_dead_rank(checks, binary, folder):
    """One that RAS calls dead; and one that is behind in the text of an older NCCL."""
    for name, answer, version, wanted in (("json", DEAD, (2, 29), ("missing_dump", ["3"])),
                                          ("text", ras_server.TEXT, (2, 27),
                                           ("missing_rank", ["13", "12"]))):
        with RasServer(answer, version) as server, \
                Run(binary, os.path.join(folder, name), [server.endpoint],
                    rank_map=name == "text") as run:
            checks.check(wait_for(run.found), name + ": a verdict: " + run.log())
            checks.equal([(one["kind"], blamed(one)) for one in run.found()[:1]], [wanted],
                         name + ": who it is")
            checks.equal(server.offences, [], name + ": nothing outside of the protocol is said")
            run.stop(checks, name)
            checks.equal(run.log().count("C9405"), int(name == "text"), name + ": " + run.log())


def silence(checks, binary, folder):
    """What RAS tells by itself leads to a question, long before the next round."""
    with RasServer(lambda number, _: document([7] * 4) if number < 2 else DEAD) as server, \
            Run(binary, folder, [server.endpoint], interval="1h") as run:
        checks.check(wait_for(lambda: server.watchers), "it follows: " + run.log())
        checks.equal(server.questions, 1, "it has asked once")
        halves = event("PEER_UNRESPONSIVE", "TRACE")
        server.tell(event("PEER_CONNECTED", "TRACE") + halves[:40])
        server.tell(halves[40:])
        checks.check(wait_for(lambda: server.questions >= 2), "it asks: " + run.log())
        server.tell(event("PEER_DEAD"))
        checks.check(wait_for(lambda: server.questions >= 3), "it asks again: " + run.log())
        checks.check(wait_for(run.found), "a verdict: " + run.log())
        server.tell("no JSON\n")
        checks.check(wait_for(lambda: "C9407" in run.log()), "what is told is no JSON: " + run.log())
        run.stop(checks, "silence")
        checks.check("C9406" in run.log(), "it is said: " + run.log())


def the_next_one(checks, binary, folder):
    """Of several processes of a job one is asked; when it dies, the next one."""
    with RasServer(document([7] * 4)) as second:
        with RasServer(document([7] * 4)) as first, \
                Run(binary, folder, [first.endpoint, second.endpoint], interval="1h") as run:
            checks.check(wait_for(lambda: first.watchers), "the first is followed: " + run.log())
            checks.equal(second.questions, 0, "the second is not asked")
            first.stop()
            checks.check(wait_for(lambda: second.questions), "then it is: " + run.log())
            checks.check(wait_for(lambda: second.watchers), "and followed")
            run.stop(checks, "the next one")
    with RasServer(BEHIND) as one, RasServer(BEHIND) as other, \
            Run(binary, os.path.join(folder, "all"), [one.endpoint, other.endpoint],
                ask="all") as run:
        checks.check(wait_for(lambda: one.questions > 1 and other.questions > 1),
                     "both are asked: " + run.log())
        run.stop(checks, "all")


def endless(_, connection):
    block = b"{" + b"\"a\": 1," * 4096
    while True:
        connection.sendall(block)


def slow(_, connection):
    for byte in BEHIND.encode():
        connection.sendall(bytes([byte]))
        time.sleep(0.3)


def reset(_, connection):
    connection.sendall(BEHIND[:500].encode())
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


WRONG = (
    ("half", {"answer": BEHIND[:700]}, "breaks off after 700 bytes"),
    ("half text", {"answer": ras_server.TEXT[:700], "version": (2, 27)}, "breaks off"),
    ("nothing", {"answer": ""}, "breaks off after 0 bytes"),
    ("endless", {"answer": endless}, "sends more than 65536 bytes"),
    ("reset", {"answer": reset}, "broke off"),
    ("another server", {"answer": "", "hello": "HTTP/1.1 400 Bad Request\r\n"}, "HTTP/1.1 400"),
    ("garbage", {"answer": "", "hello": "\x00\xff\x1b[31m\n"}, "not the protocol"),
    ("a long line", {"answer": "", "hello": "x" * 5000}, "more than 1024 bytes"),
)

# Of these an answer had begun.
IN_ANSWER = {"half", "half text", "endless", "reset"}


def one_wrong(checks, binary, folder, case):
    """It is told of once, and costs the one beside it nothing."""
    name, how, reason = case
    with RasServer(**how) as server, RasServer(BEHIND) as right, \
            Run(binary, os.path.join(folder, name), [server.endpoint, right.endpoint], ask="all",
                follow=False, max_reply_size="64KiB") as run:
        checks.check(wait_for(lambda: "C9403" in run.log()), name + " is told of: " + run.log())
        rounds = right.questions
        checks.check(wait_for(lambda: right.questions > rounds + 1), name + ": it goes on")
        run.stop(checks, name)
        lines = [line for line in run.log().splitlines() if "C9403" in line]
        checks.equal(len(lines), 1, name + " is told of once: " + run.log())
        checks.check(lines and reason in lines[0], name + " says why: " + str(lines))
        kept = run.refused()
        checks.equal(bool(kept), name in IN_ANSWER, name + ": what is kept of it")
        checks.check(not kept or kept[0]["category"] == "torn", name + ": why it is kept")


def wrong(checks, binary, folder):
    threads = [threading.Thread(target=one_wrong, args=(checks, binary, folder, case))
               for case in WRONG]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def hung(checks, binary, folder):
    """Servers that say nothing, or a byte now and then: a stop does not wait for them."""
    with RasServer("", hello=None) as silent, RasServer(slow) as slowly, \
            Run(binary, folder, [silent.endpoint, slowly.endpoint], ask="all",
                timeout="10m") as run:
        checks.check(wait_for(lambda: silent.commands and slowly.questions), "both are asked")
        run.stop(checks, "a stop does not wait")
    with RasServer("", hello=None) as silent, \
            Run(binary, folder + "-2", [silent.endpoint], timeout="1s") as run:
        checks.check(wait_for(lambda: "C9403" in run.log()), "its time is over: " + run.log())
        silent.hello, silent.answer = "SERVER PROTOCOL 2\n", BEHIND
        checks.check(wait_for(lambda: "C9404" in run.log()), "it answers again: " + run.log())
        run.stop(checks, "again")


def killed(checks, binary, folder):
    """kill -9: what was found is known after the start, and it goes on asking."""
    with RasServer(BEHIND) as server, \
            Run(binary, folder, [server.endpoint], store=True) as run:
        checks.check(wait_for(run.found), "a verdict: " + run.log())
        ids = {verdict["id"] for verdict in run.found()}
        run.process.kill()
        run.process.wait()
        asked = server.questions
        checks.check(run.start(), "it starts again: " + run.log())
        checks.check(wait_for(lambda: server.questions > asked + 2), "it asks: " + run.log())
        run.stop(checks, "killed")
        checks.equal({verdict["id"] for verdict in run.found()}, ids, "the same verdicts")
        checks.equal(server.offences, [], "nothing outside of the protocol is said")


CASES = (who_is_behind, a_dead_rank, silence, the_next_one, wrong, hung, killed)


def run_case(checks, case):
    with tempfile.TemporaryDirectory() as folder:
        try:
            case(checks, sys.argv[1], os.path.join(folder, "run"))
        except Exception as error:  # whatever it is, it is told as this case's
            checks.check(False, "%s: %r" % (case.__name__, error))


def main():
    checks = Checks()
    threads = [threading.Thread(target=run_case, args=(checks, case)) for case in CASES
               if not sys.argv[2:] or case.__name__ in sys.argv[2:]]
    for thread in threads:  # they mostly wait
        thread.start()
    for thread in threads:
        thread.join()
    sys.exit(checks.finish())


if __name__ == "__main__":
    main()
