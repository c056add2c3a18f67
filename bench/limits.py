# SPDX-License-Identifier: Apache-2.0
"""What the machine can do at most, measured in the same run (bench.py)."""
import json
import socket
import statistics
import subprocess
import time

PATIENCE_S = 10
EMPTY = "true"              # a program that does nothing
STARTS = 20


def memory(bench):
    """Seconds of one core for the input's bytes: read() alone, and from memory."""
    found = bench.said(bench.program("bench/bench_limits"), bench.input)
    return {name: found[name] for name in ("bytes", "read_s", "memory_s")}


def empty_program_ms():
    """From before exec until a program that does nothing is over."""
    times = []
    for _ in range(STARTS):
        begun = time.perf_counter()
        subprocess.run([EMPTY], check=True)
        times.append(time.perf_counter() - begun)
    return round(statistics.median(times) * 1000, 3)


def http_events_per_s(bench, options, say):
    """The generator against a server that throws away what it takes; the better of one connection
    and eight."""
    say("http_load against a server that discards")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    server = subprocess.Popen([bench.program("bench/http_discard"), "--port", str(port)])
    try:
        until = time.monotonic() + PATIENCE_S
        while not connects(port):
            if server.poll() is not None or time.monotonic() > until:
                raise SystemExit("bench: http_discard does not listen")
            time.sleep(0.01)
        return max(load(bench, port, connections, options.live_events)["events_per_s"]
                   for connections in (1, 8))
    finally:
        server.kill()
        server.wait()


def load(bench, port, connections, events):
    done = subprocess.run([bench.program("bench/http_load"), "--port", str(port), "--connections",
                           str(connections), "--ranks", "64", "--events", str(events),
                           "--warm-up", "100000"], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def connects(port):
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def live(bench, options, say):
    return {"http_events_per_s": http_events_per_s(bench, options, say),
            "exec_ms": empty_program_ms()}
