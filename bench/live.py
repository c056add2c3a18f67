# SPDX-License-Identifier: Apache-2.0
"""The live pipeline: events a second over HTTP, how soon a verdict is out, and what rest costs.

Used by bench.py with --live. Nothing is pinned: culprit and what drives it share the machine's
cores, so CPU time is given beside rates. Files are on a real disk.
"""
import ctypes
import json
import os
import re
import select
import shutil
import signal
import socket
import statistics
import subprocess
import tempfile
import time

from memory import provide_memory
from progress import say

PATIENCE_S = 60
LEAK_RANK = 3
BASE, DEVICE = 1 << 20, 1 << 62
START_S = 1_760_000_000


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def milliseconds(seconds):
    return round(seconds * 1000, 3)


class Culprit:
    """culprit run over a config in a folder of its own, from start to stop."""

    def __init__(self, binary, folder, config):
        self.folder = folder
        path = os.path.join(folder, "culprit.yaml")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(config, file)
        self.log = os.path.join(folder, "log")
        with open(self.log, "wb") as log:
            self.begun = time.perf_counter()
            self.process = subprocess.Popen([binary, "run", "--config", path], stderr=log,
                                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        if code != 0:
            raise SystemExit("culprit ended with %d: %s" % (code, self.said()[-2000:]))

    def kill(self):
        self.process.kill()
        self.process.wait()

    def said(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def wait_for(self, condition):
        limit = time.monotonic() + PATIENCE_S
        while not condition():
            if self.process.poll() is not None or time.monotonic() > limit:
                raise SystemExit("culprit did not get ready: %s" % self.said()[-2000:])
            time.sleep(0.005)

    def ready(self, port=None):
        """It runs, and takes connections on the port."""
        self.wait_for(lambda: '"C1001"' in self.said())
        if port is not None:
            self.wait_for(lambda: connects(port))
            self.wait_for(lambda: '"C2108"' in self.said())

    def cpu_s(self):
        return time.clock_gettime((~self.process.pid << 3) | 2)     # its CPU clock

    def wait_quiet(self):
        """Until it has done nothing for some milliseconds."""
        limit = time.monotonic() + PATIENCE_S
        before = self.cpu_s()
        while time.monotonic() < limit:
            time.sleep(0.01)
            now = self.cpu_s()
            if now - before < 0.0001:
                return
            before = now


def connects(port):
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def service(receivers, extensions=(), **timing):
    return {"extensions": list(extensions),
            "pipelines": {"memory": {"receivers": receivers, "preset": "memory",
                                     "exporters": ["json"], **timing}}}


# -- rates ------------------------------------------------------------------------------------


class Rates:
    def __init__(self, live):
        self.live = live

    def run(self, connections, ranks, events, ack):
        say("http, %d connections, %d ranks, ack %s" % (connections, ranks, ack))
        with self.live.folder() as folder:
            port = free_port()
            config = {"receivers": {"http": {"endpoint": "127.0.0.1:%d" % port, "ack": ack}},
                      "exporters": {"json": {"path": os.path.join(folder, "verdicts.jsonl")}},
                      "service": service(["http"])}
            if ack == "stored":
                config["extensions"] = {"file_storage": {
                    "directory": os.path.join(folder, "store"), "max_size": "4GiB"}}
                config["service"]["extensions"] = ["file_storage"]
            with Culprit(self.live.binary, folder, config) as culprit:
                culprit.ready(port)
                done = subprocess.run(
                    [self.live.generator, "--port", str(port), "--connections", str(connections),
                     "--ranks", str(ranks), "--events", str(events), "--warm-up", "200000",
                     "--pid", str(culprit.process.pid)], stdout=subprocess.PIPE, check=True)
        return {"ack": ack, **json.loads(done.stdout)}

    def best(self, *arguments):
        """The best of three rounds: what else the machine does can only slow it down."""
        return max((self.run(*arguments) for _ in range(3)), key=lambda row: row["events_per_s"])


# -- a backlog --------------------------------------------------------------------------------


class Backlog:
    """A file that is there when culprit starts, and is followed: until all of it went through."""

    def __init__(self, live):
        self.live = live

    def run(self, rounds=5):
        say("a backlog, %d rounds with each number of threads" % rounds)
        with self.live.folder() as folder:
            self.write(folder)
            counts = sorted({1, os.cpu_count()})
            found = {count: [] for count in counts}
            for _ in range(rounds):
                for count in counts:
                    found[count].append(self.seconds(folder, count))
        least, most = (statistics.median(found[count]) for count in (counts[0], counts[-1]))
        return {"events": self.live.events, "threads": counts[-1], "rounds": rounds,
                "events_per_s": round(self.live.events / most),
                "times_one_thread": round(least / most, 3)}

    def rate(self):
        """Events a second with as many threads as it takes by itself."""
        with self.live.folder() as folder:
            self.write(folder)
            return self.live.events / min(self.seconds(folder) for _ in range(3))

    def write(self, folder):
        os.mkdir(os.path.join(folder, "in"))
        with open(os.path.join(folder, "in", "a.jsonl"), "wb") as file:
            subprocess.run([self.live.maker, "--events", str(self.live.events)], stdout=file,
                           stderr=subprocess.DEVNULL, check=True)

    def seconds(self, folder, threads=None):
        """From before exec until it has ended: a stop processes what there is."""
        output = os.path.join(folder, "verdicts.jsonl")
        config = {"receivers": {"file": {"include": [os.path.join(folder, "in", "*.jsonl")]}},
                  "exporters": {"json": {"path": output}}, "service": service(["file"])}
        if threads is not None:
            config["service"]["threads"] = threads
        with Culprit(self.live.binary, folder, config) as culprit:
            culprit.ready()
        seconds = time.perf_counter() - culprit.begun
        if "%d events accepted" % self.live.events not in culprit.said():
            raise SystemExit("not all was read: %s" % culprit.said()[-2000:])
        os.unlink(output)
        return seconds


# -- verdict latency ----------------------------------------------------------------------------


class Job:
    """Each rank has one sample a second; one rank's leak grows by a step each time: a line each.

    Four steps double it, and a figure has 63 bits: after STEPS seconds it must begin anew.
    """

    QUIET, STEPS = 4, 140

    def __init__(self, ranks):
        self.ranks = ranks
        lines = [self.line(rank, "@@@@@@@@@@", 100_000_000 + rank * 10_000, BASE)
                 for rank in range(ranks) if rank != LEAK_RANK]
        self.template = "".join(lines).encode()

    def line(self, rank, second, nano, used):
        return ('{"schema_version":3,"session_id":"latency-r%d","timestamp_ns":%s%09d,'
                '"event_type":"sample","collector":"stormlog.cuda_tracker",'
                '"sampling_interval_ms":1000,"pid":%d,"host":"node%d","job_id":"latency",'
                '"rank":%d,"local_rank":%d,"world_size":%d,"device_id":%d,'
                '"allocator_allocated_bytes":%d,"allocator_reserved_bytes":%d,'
                '"allocator_active_bytes":null,"allocator_inactive_bytes":null,'
                '"allocator_change_bytes":0,"device_used_bytes":%d,"device_free_bytes":%d,'
                '"device_total_bytes":%d,"context":null,"metadata":{}}\n'
                % (rank, second, nano, 4000 + rank, rank // 8, rank, rank % 8, self.ranks, rank % 8,
                   used // 10 * 9, used // 20 * 19, used, DEVICE - used, DEVICE))

    def second(self, number):
        """The samples of one second, but the one that comes after it."""
        second = str(START_S + number)
        step = number - self.QUIET
        used = BASE if step < 0 else BASE + (4 + step % 4) * (1 << 20 + step // 4)
        return (self.template.replace(b"@@@@@@@@@@", second.encode()) +
                self.line(LEAK_RANK, second, 200_000_000, used).encode())

    def trigger(self, number):
        """The first sample behind the end of a second."""
        return self.line(0, str(START_S + number + 1), 50_000_000, BASE).encode()


class Appender:
    def __init__(self, path):
        self.descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def write(self, data):
        while data:
            data = data[os.write(self.descriptor, data):]

    def finish(self):
        """Nothing answers."""


class Poster:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def write(self, data):
        head = ("POST /v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson"
                "\r\nContent-Length: %d\r\n\r\n" % len(data)).encode()
        self.socket.sendall(head + data)

    def finish(self):
        answer = b""
        while b"rejected_count" not in answer:
            more = self.socket.recv(65536)
            if not more:
                raise SystemExit("the connection was closed: %r" % answer)
            answer += more
        if b'"rejected_count":0' not in answer:
            raise SystemExit("events were refused: %r" % answer[:2000])


class Growth:
    """Sleeps until a file has grown: to look at it without a pause would take one of culprit's
    cores, on which a part of the evaluation runs."""

    IN_MODIFY = 2

    def __init__(self, path):
        libc = ctypes.CDLL(None, use_errno=True)
        self.path = path
        self.descriptor = libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        if (self.descriptor < 0 or
                libc.inotify_add_watch(self.descriptor, os.fsencode(path), self.IN_MODIFY) < 0):
            raise OSError(ctypes.get_errno(), "cannot watch %s" % path)
        self.poll = select.poll()
        self.poll.register(self.descriptor, select.POLLIN)

    def close(self):
        os.close(self.descriptor)

    def wait(self, size, limit):
        """When it was larger than `size`, by the clock; None when it was not before `limit`."""
        while os.stat(self.path).st_size == size:
            left = limit - time.perf_counter()
            if left <= 0:
                return None
            if self.poll.poll(left * 1000):
                os.read(self.descriptor, 4096)
        return time.perf_counter()


class Latency:
    """From the moment an event that makes an evaluation due can be read to the verdict's line."""

    LINE_WITHIN_S = 0.5

    def __init__(self, live):
        self.live = live

    def run(self, way, ranks, fsync, evaluations, retention="10m"):
        say("verdict latency, by %s, %d ranks, fsync %s, retention %s"
            % (way, ranks, fsync, retention))
        job, found, judged = Job(ranks), [], 0
        while len(found) < evaluations:
            more, seconds = self.round(way, job, fsync, retention)
            found += more
            judged += seconds
        times, cpu = zip(*found)
        return {"way": way, "ranks": ranks, "fsync": fsync, "retention": retention,
                "evaluations": judged,
                "lines": len(times), "p50_ms": milliseconds(percentile(times, 0.5)),
                "p99_ms": milliseconds(percentile(times, 0.99)),
                "max_ms": milliseconds(max(times)),
                "culprit_cpu_p50_ms": milliseconds(percentile(cpu, 0.5)),
                "culprit_cpu_p99_ms": milliseconds(percentile(cpu, 0.99))}

    def round(self, way, job, fsync, retention):
        with self.live.folder() as folder:
            source = os.path.join(folder, "events.jsonl")
            output = os.path.join(folder, "verdicts.jsonl")
            port = free_port()
            receivers = {"file": {"include": [source], "start_at": "beginning"}}
            if way == "http":
                receivers = {"http": {"endpoint": "127.0.0.1:%d" % port}}
            config = {"receivers": receivers,
                      "processors": {"rank_group": {"retention": retention}},
                      "exporters": {"json": {"path": output, "fsync": fsync}},
                      "service": service([way], evaluate_every="1s", allowed_lateness="0s",
                                         settle="0s", idle_timeout="1h", caught_up_timeout="1h")}
            writer = Appender(source) if way == "file" else None
            with Culprit(self.live.binary, folder, config) as culprit:
                culprit.ready(port if way == "http" else None)
                return self.measure(culprit, job, writer or Poster(port), output)

    def measure(self, culprit, job, writer, output):
        """For each line: how long it took, and culprit's CPU time until then."""
        found, growth = [], Growth(output)
        for second in range(job.QUIET + job.STEPS):
            writer.write(job.second(second))
            writer.finish()
            culprit.wait_quiet()
            before = os.path.getsize(output)
            data = job.trigger(second)
            cpu_s, begun = culprit.cpu_s(), time.perf_counter()
            writer.write(data)
            patience_s = self.LINE_WITHIN_S if second > job.QUIET else 0.05
            there = growth.wait(before, begun + patience_s)
            cpu_s = culprit.cpu_s() - cpu_s
            writer.finish()
            if there is not None:
                found.append((there - begun, cpu_s))
        growth.close()
        if not found:
            raise SystemExit("no evaluation gave a line")
        return found, second + 1


# -- rest and start -----------------------------------------------------------------------------


def proc_lines(path):
    with open(path, encoding="ascii", errors="replace") as file:
        return file.read().splitlines()


def thread_figures(pid):
    """By thread: its name and how often it went to sleep of its own will."""
    found = {}
    for task in os.listdir("/proc/%d/task" % pid):
        lines = dict(line.split(":", 1) for line in proc_lines("/proc/%d/task/%s/status"
                                                               % (pid, task)) if ":" in line)
        found[task] = (lines["Name"].strip(), int(lines["voluntary_ctxt_switches"]))
    return found


def memory_figures(pid):
    fields = {}
    for line in proc_lines("/proc/%d/smaps_rollup" % pid)[1:]:
        name, value = line.split(":", 1)
        fields[name] = int(value.split()[0]) * 1024
    return {"rss_bytes": fields["Rss"], "anonymous_bytes": fields["Anonymous"],
            "private_dirty_bytes": fields["Private_Dirty"]}


class Rest:
    SECONDS = 20
    LARGE_EVENTS = 9_000_000    # some 130 bytes each in the journal

    def __init__(self, live):
        self.live = live

    def config(self, folder, whole, port):
        config = {"receivers": {"file": {"include": [os.path.join(folder, "in", "*.jsonl")]}},
                  "exporters": {"json": {"path": os.path.join(folder, "verdicts.jsonl")}},
                  "service": service(["file"])}
        if whole:
            config["receivers"]["http"] = {"endpoint": "127.0.0.1:%d" % port, "ack": "stored"}
            config["exporters"]["prometheus"] = {"endpoint": "127.0.0.1:%d" % free_port()}
            config["extensions"] = {
                "file_storage": {"directory": os.path.join(folder, "store")},
                "health_check": {"endpoint": "127.0.0.1:%d" % free_port()}}
            config["service"]["extensions"] = ["file_storage", "health_check"]
            pipeline = config["service"]["pipelines"]["memory"]
            pipeline["receivers"].append("http")
            pipeline["exporters"].append("prometheus")
        return config

    def run(self, whole):
        say("at rest for %d s, %s" % (self.SECONDS, "sidecar" if whole else "minimal"))
        with self.live.folder() as folder:
            os.mkdir(os.path.join(folder, "in"))
            port = free_port()
            with Culprit(self.live.binary, folder, self.config(folder, whole, port)) as culprit:
                culprit.ready(port if whole else None)
                time.sleep(2)
                pid = culprit.process.pid
                before, cpu_s, begun = thread_figures(pid), culprit.cpu_s(), time.monotonic()
                time.sleep(self.SECONDS)
                after, cpu_s = thread_figures(pid), culprit.cpu_s() - cpu_s
                seconds = time.monotonic() - begun
                memory = memory_figures(pid)
        woken = {}
        for task, (name, count) in after.items():
            more = count - before.get(task, (name, 0))[1]
            if more > 0:
                woken["%s/%d" % (name, int(task) - pid)] = round(more / seconds, 2)
        return {"config": "sidecar" if whole else "minimal", "threads": len(after), **memory,
                "cpu_percent": round(cpu_s / seconds * 100, 4),
                "wake_ups_per_s": round(sum(woken.values()), 2), "wake_ups_by_thread": woken}

    def start(self, rounds=20):
        """From before exec to the first connection that is taken: with a new store, and again."""
        say("start to listening, %d rounds" % rounds)
        new, again = [], []
        for _ in range(rounds):
            with self.live.folder() as folder:
                os.mkdir(os.path.join(folder, "in"))
                new.append(self.start_once(folder))
                again.append(self.start_once(folder))
        return {"config": "sidecar", "rounds": rounds,
                "median_ms": milliseconds(statistics.median(again)),
                "max_ms": milliseconds(max(again)),
                "new_store_median_ms": milliseconds(statistics.median(new))}

    def start_once(self, folder):
        port = free_port()
        with Culprit(self.live.binary, folder, self.config(folder, True, port)) as culprit:
            return self.wait_for_port(culprit, port)

    def wait_for_port(self, culprit, port):
        """Sleeps between two looks, since the start may use both cores."""
        while not connects(port):
            if culprit.process.poll() is not None:
                raise SystemExit("culprit ended: %s" % culprit.said())
            time.sleep(0.0001)
        return time.perf_counter() - culprit.begun

    def start_large(self, rounds=5):
        """The same after a kill -9, with all that was acknowledged in the journal and not in a
        checkpoint; and until the first request is taken, which is when all of it was read again."""
        say("start to listening with a large store, %d rounds" % rounds)
        with self.live.folder() as folder:
            size = self.fill_store(folder)
            found = [self.start_filled(folder) for _ in range(rounds)]
        listening, taken = zip(*found)
        return {"store_bytes": size, "events": self.LARGE_EVENTS, "rounds": rounds,
                "median_ms": milliseconds(statistics.median(listening)),
                "max_ms": milliseconds(max(listening)),
                "first_taken_median_ms": milliseconds(statistics.median(taken)),
                "first_taken_max_ms": milliseconds(max(taken))}

    def fill_store(self, folder):
        culprit, port = self.start_stored(folder)
        try:
            culprit.ready(port)
            subprocess.run([self.live.generator, "--port", str(port), "--connections", "8",
                            "--ranks", "64", "--events", str(self.LARGE_EVENTS),
                            "--warm-up", "0"], stdout=subprocess.DEVNULL, check=True)
        finally:
            culprit.kill()
        return sum(entry.stat().st_size for entry in os.scandir(os.path.join(folder, "store")))

    def start_filled(self, folder):
        """Seconds until it listens, and until a request is taken."""
        culprit, port = self.start_stored(folder)
        try:
            listening = self.wait_for_port(culprit, port)
            taken = self.wait_until_taken(culprit, port)
            said = re.search(r"(\d+) journal entries that no checkpoint held", culprit.said())
        finally:
            culprit.kill()
        # An entry is a request, of 300 events at most.
        if said is None or int(said[1]) < self.LARGE_EVENTS // 300:
            raise SystemExit("the journal was not read again: %s" % culprit.said()[-2000:])
        return listening, taken

    def start_stored(self, folder):
        port = free_port()
        config = {"receivers": {"http": {"endpoint": "127.0.0.1:%d" % port, "ack": "stored"}},
                  "exporters": {"json": {"path": os.path.join(folder, "verdicts.jsonl")}},
                  "extensions": {"file_storage": {"directory": os.path.join(folder, "store"),
                                                  "max_size": "8GiB"}},
                  "service": {**service(["http"], ["file_storage"]), "checkpoint_interval": "1h"}}
        return Culprit(self.live.binary, folder, config), port

    def wait_until_taken(self, culprit, port):
        line = Job(1).line(0, str(START_S), 0, BASE).encode()
        head = ("POST /v1/events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                "Content-Type: application/x-ndjson\r\nContent-Length: %d\r\n\r\n" % len(line))
        while time.perf_counter() - culprit.begun < PATIENCE_S:
            with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as client:
                client.sendall(head.encode() + line)
                if client.recv(65536).startswith(b"HTTP/1.1 200"):
                    return time.perf_counter() - culprit.begun
            time.sleep(0.01)
        raise SystemExit("no request was taken")


# -- all of it ----------------------------------------------------------------------------------


class Folder:
    """That a run of culprit has for itself, and memory for it."""

    def __init__(self, parent):
        provide_memory()
        self.path = tempfile.mkdtemp(prefix="live-", dir=parent)

    def __enter__(self):
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path)


class Live:
    def __init__(self, build, options):
        self.binary = os.path.join(build, "culprit")
        self.generator = os.path.join(build, "bench", "http_load")
        self.maker = os.path.join(build, "bench", "culprit_generate")
        self.parent = build if options.live_folder is None else options.live_folder
        self.events, self.evaluations = options.live_events, options.live_evaluations

    def folder(self):
        return Folder(self.parent)

    def measure(self):
        rates, latency, rest = Rates(self), Latency(self), Rest(self)
        report = {
            "settings": {
                "http": "/v1/events, JSON Lines, 300 lines a request, one request at a time on "
                        "each keep-alive connection; preset memory and the json exporter; "
                        "evaluate_every and allowed_lateness as they are by default; best of 3",
                "verdict_latency": "evaluate_every 1s, allowed_lateness 0s, settle 0s; from "
                                   "before the write of one sample until the line is in the file; "
                                   "fsync follows the line's write; with retention 30s a "
                                   "chunk of each rank expires in one evaluation of 21",
                "backlog": "a file of telemetry that is there at the start, read from memory; "
                           "from before exec to the end of a stop that comes at once; medians",
                "cores": os.cpu_count(), "folder": self.parent},
            "http": [rates.best(connections, 64, events, ack)
                     for ack, events in (("accepted", self.events), ("stored", self.events // 2))
                     for connections in (1, 8)],
            "growth_with_ranks": [rates.best(1, ranks, 2 * self.events, "accepted")
                                  for ranks in (8, 10000)],
            "backlog": Backlog(self).run(),
            "verdict_latency": [latency.run(way, ranks, fsync, self.evaluations)
                                for way in ("file", "http") for ranks in (8, 10000)
                                for fsync in (True, False)] +
                               [latency.run("file", 10000, False, self.evaluations, "30s")],
            "rest": [rest.run(True), rest.run(False)],
            "start": rest.start(),
            "start_large": rest.start_large(),
        }
        report["aims"] = aims(report)
        return report


def aim(what, figure, limit):
    return {"aim": what, "measured": figure, "at_most": limit, "met": figure <= limit}


def aims(report):
    """Those that bench/table.py has no row for."""
    sidecar, large = report["rest"][0], report["start_large"]
    return [
        aim("sidecar at rest, anonymous MiB", round(sidecar["anonymous_bytes"] / 2**20, 2), 3),
        aim("sidecar at rest, RSS MiB", round(sidecar["rss_bytes"] / 2**20, 2), 12),
        aim("sidecar at rest, CPU %", sidecar["cpu_percent"], 0.02),
        aim("sidecar at rest, wake-ups a second", sidecar["wake_ups_per_s"], 2),
        aim("start to listening, store of %.2f GiB, median ms" % (large["store_bytes"] / 2**30),
            large["median_ms"], 100),
    ]
