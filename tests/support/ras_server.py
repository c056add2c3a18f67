# SPDX-License-Identifier: Apache-2.0
"""A stand-in for NCCL's RAS that is as strict as the real one, and wrong on demand.

It reads commands line by line, any case: CLIENT PROTOCOL, TIMEOUT, SET FORMAT (from 2.28.7 on),
STATUS, VERBOSE STATUS, MONITOR (from 2.29 on); all else is an unknown command. After the answer to
STATUS it closes. What a client sends is kept, and what is not of the protocol is an offence.
Source: NCCL, src/ras/client_support.cc.
"""
import json
import socket
import socketserver
import threading
import time

TEXT = """NCCL version 2.27.3 compiled with CUDA 12.9
CUDA runtime version 12090, driver version 12090

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      2          8            1         16       16

Communicators... (0.05s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         2         8        16        16   RUNNING  INCOMPLETE

Errors
======

INCOMPLETE
  Missing communicator data from 1 job process
  Process 90012 on node 10.20.0.8 managing GPU 4

#0-0 (51c0ffee00112233) INCOMPLETE
  Missing communicator data from 1 rank
  Rank 12 -- GPU 4 managed by process 90012 on node 10.20.0.8

Warnings
========

#0-0 (51c0ffee00112233) MISMATCH
  Communicator ranks have different AllReduce operation counts
  14 ranks have launched up to operation 6650
  Rank 13 has launched up to operation 6649 -- GPU 5 managed by process 90013 on node 10.20.0.8

"""


def rank(number, **more):
    host, place = ("10.20.0.7", number) if number < 2 else ("10.20.0.8", number - 2)
    return {"rank": number, "host": host, "pid": 81200 + number, "cuda_dev": place,
            "nvml_dev": place, **more}


def document(counts, dead=()):
    """What RAS says of a communicator whose ranks have begun so many AllReduces."""
    status = {"init_state": 0, "async_error": 0, "finalize_called": False, "destroy_flag": False,
              "abort_flag": False}
    ranks = [rank(number, status=status, collective_counts={"AllReduce": count})
             for number, count in enumerate(counts) if number not in dead]
    missing = [rank(number, status={"unresponsive": True, "considered_dead": True})
               for number in dead]
    return json.dumps({
        "nccl_version": "2.29.2", "cuda_runtime_version": 13000, "cuda_driver_version": 13000,
        # An hour that no zone explains: a record has its time from who asked.
        "timestamp": "2001-01-01 01:01:01", "communicators_count": 1,
        "communicators": [{"hash": "0x51c0ffee00112233", "secondary_hash": "0x1:0x2",
                           "size": len(counts), "ranks_count": len(ranks),
                           "missing_ranks_count": len(missing), "ranks": ranks,
                           "missing_ranks": missing}],
        "ras": {"collection_time_sec": 0.05, "timeouts_count": 0}}, indent=2) + "\n"


def event(name, group="LIFECYCLE", pid=90013):
    return json.dumps({"timestamp": "2001-01-01 01:01:01", "group": group, "event": name,
                       "peer": {"host": "10.20.0.8", "pid": pid, "cuda_devs": [5],
                                "nvml_devs": [5]}, "details": ""}, indent=2) + "\n"


class RasServer:
    """`version`: of NCCL. `answer`: what STATUS gives, a text or a call that is given the number
    of the question and the connection, which it may write to itself (None: it did)."""

    def __init__(self, answer, version=(2, 29), port=0, hello="SERVER PROTOCOL 2\n"):
        self.answer, self.version, self.hello = answer, version, hello
        self.commands, self.offences, self.watchers = [], [], []
        self.questions = 0
        self.open = set()
        server = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                server.open.add(self.request)
                try:
                    server.serve(self.request)
                except OSError:
                    pass
                finally:
                    server.open.discard(self.request)

        class Listener(socketserver.ThreadingTCPServer):
            allow_reuse_address = True
            daemon_threads = True
            block_on_close = False

        self.listener = Listener(("127.0.0.1", port), Handler)
        self.endpoint = "127.0.0.1:%d" % self.listener.server_address[1]
        threading.Thread(target=self.listener.serve_forever, args=(0.05,), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self.listener.shutdown()
        self.listener.server_close()
        for connection in list(self.open):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def tell(self, text):
        """To all who follow."""
        for connection in list(self.watchers):
            try:
                connection.sendall(text.encode())
            except OSError:
                self.watchers.remove(connection)

    def serve(self, connection):
        stream = connection.makefile("rb")
        greeted, is_json = False, False
        while True:
            line = stream.readline(1024).decode("latin-1")
            if not line:
                return
            command = line.rstrip("\r\n")
            self.commands.append(command)
            words = command.upper().split()
            greeting = words[:2] == ["CLIENT", "PROTOCOL"]
            if not line.endswith("\n") or greeting == greeted:
                self.offences.append(command)
            greeted = True
            if greeting and len(words) == 3 and words[2].isdigit():
                if self.hello is None:
                    time.sleep(3600)
                connection.sendall(self.hello.encode("latin-1"))
            elif words[:1] == ["TIMEOUT"] and len(words) == 2 and words[1].isdigit():
                connection.sendall(b"OK\n")
            elif words == ["SET", "FORMAT", "JSON"] and self.version >= (2, 28):
                is_json = True
                connection.sendall(b"OK\n")
            elif words in (["STATUS"], ["VERBOSE", "STATUS"]):
                self.questions += 1
                self.reply(connection, is_json)
                return
            elif words[:1] == ["MONITOR"] and self.version >= (2, 29):
                if words not in (["MONITOR"], ["MONITOR", "ALL"]):
                    self.offences.append(command)
                connection.sendall(b"OK\n")
                self.watchers.append(connection)
            else:
                if words[:2] != ["SET", "FORMAT"] and words[:1] != ["MONITOR"]:
                    self.offences.append(command)
                connection.sendall(("ERROR: Unknown command %s\n" % command).encode("latin-1"))

    def reply(self, connection, is_json):
        answer = self.answer
        if callable(answer):
            answer = answer(self.questions, connection)
        if answer is None:
            return
        if is_json == answer.startswith("NCCL"):
            self.offences.append("a client that is answered in another form")
        connection.sendall(answer.encode())
