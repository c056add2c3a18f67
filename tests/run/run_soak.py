#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does a culprit that runs for long hold what it held at first, and lose nothing?

    run_soak.py BINARY [SECONDS]     (20, or CULPRIT_SOAK_SECONDS; 120 and more is the long form)

Jobs come and go: each lives for some seconds of event time, half of its ranks append to files that
are rotated (renamed, copied and cut, or the segments of a sink), the others post with ack: stored,
and is forgotten after. One more source is silent from the start. Meanwhile both metrics pages
and the probes are asked, and every few seconds culprit is told to reload. After a third of the
time, and at the end, all that was sent must have been taken and gone through the pipeline, exactly;
then descriptors, threads and held memory at the end are compared with those after the first third.
Nothing depends on how long something takes: what must happen is waited for, up to a limit. Then a
steady load is measured (soak_pace.py); its figures are bounds in the long form only, and only for a
build without sanitizers.
"""
import http.client
import json
import os
import re
import signal
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
import soak_pace  # noqa: E402
import verdicts  # noqa: E402
from checks import Checks  # noqa: E402
from ports import free_port  # noqa: E402
from process import environment  # noqa: E402
from running import PATIENCE_S, wait_for  # noqa: E402

SECONDS, LONG_S = 20, 120
RELOAD_EVERY_S = 2.5
LOOK_EVERY_S = 0.2
ROUND_S = 0.03                  # of rest between rounds
SECOND_NS, START_NS = 10**9, 1_760_000_000 * 10**9
GIB = 1 << 30
BY_FILE, BY_HTTP = (0, 1, 2), (3, 4, 5)
SEGMENTS, COPIED = 1, 2         # how the files of these ranks are rotated; that of 0 is renamed
RANKS = len(BY_FILE) + len(BY_HTTP)
LEAK_RANK, LEAK_ROUND = 4, 6
SAMPLES = 10                    # of a rank in a round, which is a second of event time
JOB_ROUNDS = 12                 # that a job lives
ROTATE_ROUNDS = 30
SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")


def lines_of(number, rank):
    """What a rank says in one round; the job's name follows from the round."""
    job, within = divmod(number, JOB_ROUNDS)
    leaked = max(0, within - LEAK_ROUND) if rank == LEAK_RANK else 0
    used = (20 + 4 * leaked) * GIB
    for i in range(SAMPLES):
        yield json.dumps({
            "schema_version": 3, "session_id": "soak-%d-r%d" % (job, rank),
            "timestamp_ns": START_NS + number * SECOND_NS + i * SECOND_NS // SAMPLES + rank * 1000,
            "event_type": "sample", "collector": "stormlog.cuda_tracker",
            "sampling_interval_ms": 1000 // SAMPLES, "pid": 4000 + rank, "host": "node0",
            "job_id": "soak-%d" % job, "rank": rank, "local_rank": rank, "world_size": RANKS,
            "device_id": rank, "allocator_allocated_bytes": used * 9 // 10,
            "allocator_reserved_bytes": used * 19 // 20, "allocator_active_bytes": None,
            "allocator_inactive_bytes": None, "allocator_change_bytes": 0,
            "device_used_bytes": used, "device_free_bytes": 80 * GIB - used,
            "device_total_bytes": 80 * GIB, "context": None, "metadata": {"step": number}})


class Run:
    """A folder, a config, and culprit over it."""

    def __init__(self, binary, folder):
        self.folder = folder
        self.input = os.path.join(folder, "in")
        self.output = os.path.join(folder, "verdicts.jsonl")
        self.log = os.path.join(folder, "log")
        self.http, self.shown, self.health, self.own = (free_port() for _ in range(4))
        os.makedirs(self.input)
        config = os.path.join(folder, "culprit.yaml")
        with open(config, "w", encoding="utf-8") as file:
            json.dump(self.config(), file)
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([binary, "run", "--config", config],
                                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                            stderr=log, env=environment())

    def config(self):
        def here(port):
            return {"endpoint": "127.0.0.1:%d" % port}
        return {
            # A file may be renamed while a reload has nobody watching: its new name is read, too.
            "receivers": {"file": {"include": [self.input + "/*.jsonl*", self.input + "/sink"],
                                   "start_at": "beginning", "poll_interval": "50ms"},
                          "http": {**here(self.http), "ack": "stored",
                                   "max_idempotency_keys": 64}},
            "processors": {"job_filter": {"job_id": "each", "idle_jobs_expire": "5s"},
                           "rank_group": {"retention": "10s"}, "align": {}, "spike_detect": {},
                           "first_cause": {}, "phase_attribution": {}},
            "exporters": {"json": {"path": self.output,
                                   "rotation": {"max_size": "64KiB", "max_backups": 2}},
                          "prometheus": {**here(self.shown), "metric_expiration": "1s"}},
            "extensions": {"file_storage": {"directory": os.path.join(self.folder, "store")},
                           "health_check": here(self.health)},
            "service": {
                "extensions": ["file_storage", "health_check"],
                "checkpoint_interval": "200ms",
                "telemetry": {"metrics": here(self.own)},
                "pipelines": {"memory": {
                    "receivers": ["file", "http"],
                    "processors": ["job_filter", "rank_group", "align", "spike_detect",
                                   "first_cause", "phase_attribution"],
                    "exporters": ["json", "prometheus"],
                    "evaluate_every": "1s", "allowed_lateness": "2s", "settle": "0s",
                    "idle_timeout": "3s"}}},
        }

    def said(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def wait_for(self, condition):
        return wait_for(condition, self.process)

    def ask(self, port, path):
        """Status and text; a connection of its own, as a probe does it."""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode("utf-8")
        except (OSError, http.client.HTTPException):
            return None, ""
        finally:
            connection.close()

    def metrics(self):
        """Sums over the labels, by name."""
        sums = {}
        for line in self.ask(self.own, "/metrics")[1].split("\n"):
            match = SAMPLE.match(line)
            if match:
                sums[match.group(1)] = sums.get(match.group(1), 0) + float(match.group(3))
        return sums

    def descriptors(self):
        return len(os.listdir("/proc/%d/fd" % self.process.pid))

    def threads(self):
        return len(os.listdir("/proc/%d/task" % self.process.pid))

    def rss(self):
        with open("/proc/%d/statm" % self.process.pid, encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Load:
    """The jobs: what is sent, by file and over HTTP, round by round."""

    def __init__(self, run):
        self.run = run
        self.number = 0
        self.written, self.posted = 0, 0
        self.rotated = []
        self.segment = 1
        self.connections = {rank: None for rank in BY_HTTP}
        self.failures = []
        os.makedirs(os.path.join(run.input, "sink"))
        with open(os.path.join(run.input, "silent.jsonl"), "w", encoding="utf-8") as file:
            file.write(next(lines_of(0, 0)).replace("soak-0", "soak-silent") + "\n")
        self.written += 1

    def path(self, rank):
        if rank == SEGMENTS:
            return os.path.join(self.run.input, "sink", "segment-%06d.jsonl" % self.segment)
        return os.path.join(self.run.input, "rank%d.jsonl" % rank)

    def rotate(self, rank):
        moved = "%s.%d" % (self.path(rank), self.number)
        if rank == SEGMENTS:
            moved = self.path(rank)
            self.segment += 1
        elif rank == COPIED:
            shutil.copyfile(self.path(rank), moved)
            os.truncate(self.path(rank), 0)
        else:
            os.rename(self.path(rank), moved)
        self.rotated.append(moved)

    def append(self, rank):
        if self.number % ROTATE_ROUNDS == rank and os.path.exists(self.path(rank)):
            self.rotate(rank)
        lines = list(lines_of(self.number, rank))
        with open(self.path(rank), "ab") as file:
            file.write(("\n".join(lines) + "\n").encode())
        self.written += len(lines)

    def post(self, rank):
        """Tried until it is acknowledged; the connection is kept for as long as it holds."""
        lines = list(lines_of(self.number, rank))
        headers = {"Content-Type": "application/x-ndjson",
                   "Idempotency-Key": "%d/%d" % (self.number, rank)}
        limit = time.monotonic() + PATIENCE_S
        while time.monotonic() < limit:
            try:
                if self.connections[rank] is None:
                    self.connections[rank] = http.client.HTTPConnection(
                        "127.0.0.1", self.run.http, timeout=PATIENCE_S)
                self.connections[rank].request("POST", "/v1/events", "\n".join(lines).encode(),
                                               headers)
                answer = self.connections[rank].getresponse()
                text = answer.read()
                if answer.status == 200:
                    return
                if answer.status not in (429, 503):
                    self.failures.append("%d %s" % (answer.status, text[:300]))
                    return
            except (OSError, http.client.HTTPException):
                self.hang_up(rank)
            time.sleep(0.01)
        self.failures.append("no acknowledgement of %s" % headers["Idempotency-Key"])

    def hang_up(self, rank):
        if self.connections[rank] is not None:
            self.connections[rank].close()
        self.connections[rank] = None

    def round(self):
        for rank in BY_FILE:
            self.append(rank)
        posts = [threading.Thread(target=self.post, args=(rank,)) for rank in BY_HTTP]
        for post in posts:
            post.start()
        for post in posts:
            post.join()
        self.posted += len(BY_HTTP) * SAMPLES
        if self.number % ROTATE_ROUNDS == ROTATE_ROUNDS - 1:
            for rank in BY_HTTP:
                self.hang_up(rank)
        self.number += 1

    def rest(self):
        """Closes what would differ from one rest to the next."""
        for rank in BY_HTTP:
            self.hang_up(rank)

    def remove_rotated(self):
        for path in self.rotated:
            os.unlink(path)
        self.rotated = []


class Suite:
    def __init__(self, binary, seconds):
        self.binary, self.seconds = binary, seconds
        self.checks = Checks()
        self.reloads = 0
        self.looks = 0
        self.shown = False
        self.peak_rss = 0

    def look(self, run):
        """What an operator's machines ask all the time."""
        for port, path in ((run.own, "/metrics"), (run.shown, "/metrics"), (run.health, "/livez"),
                           (run.health, "/status")):
            status, text = run.ask(port, path)
            # While it reloads it may say that it is not ready, or be asked between two listeners.
            self.checks.check(status in (200, 503, None), "%s: %s %.200s" % (path, status, text))
            if port == run.shown and status == 200:
                # Once there was something to show, a reload must not take it away.
                self.checks.check(text != "" or not self.shown, "the page of ranks is empty again")
                self.shown = self.shown or text != ""
            self.looks += status == 200
        self.peak_rss = max(self.peak_rss, run.rss())

    def drive(self, run, load, seconds):
        """Load, looks and reloads, until the time is over and a job has just ended."""
        until = time.monotonic() + seconds
        reload_at, look_at = time.monotonic() + RELOAD_EVERY_S, 0
        while time.monotonic() < until or load.number % JOB_ROUNDS != 0:
            if run.process.poll() is not None or load.failures:
                return
            load.round()
            now = time.monotonic()
            if now >= look_at:
                look_at = now + LOOK_EVERY_S
                self.look(run)
            if now >= reload_at and self.has_reloaded(run):
                reload_at = now + RELOAD_EVERY_S
                self.reloads += 1
                run.process.send_signal(signal.SIGHUP)
            time.sleep(ROUND_S)

    def has_reloaded(self, run):
        """As often as it was told to: signals that come while it reloads are one reload."""
        return run.said().count('"C1012"') >= self.reloads

    def rest(self, what, run, load):
        """Stops the load, waits until all is taken; conservation. Gives the figures at rest."""
        load.rest()
        self.checks.equal(load.failures, [], what + ": requests")
        sent = load.written + load.posted
        accepted = "culprit_receiver_accepted_events_total"
        consumed = "culprit_pipeline_consumed_events_total"
        self.checks.check(run.wait_for(lambda: self.has_reloaded(run)),
                          what + ": a reload does not end: " + run.said()[-2000:])
        # What is accepted is consumed a moment later.
        taken = run.wait_for(lambda: all(
            run.metrics().get(name, 0) >= sent for name in (accepted, consumed)))
        found = run.metrics()
        self.checks.check(taken, "%s: not all was taken, but %s of %d (%d by file): %s" % (
            what, found.get(accepted), sent, load.written, run.said()[-2000:]))
        self.checks.equal(found.get(accepted), sent, what + ": events accepted, against sent")
        self.checks.equal(found.get(consumed), sent,
                          what + ": events consumed, against sent")
        self.checks.equal(found.get("culprit_receiver_failed_events_total", 0), 0,
                          what + ": events that failed")
        self.checks.equal(found.get("culprit_discarded_events_total", 0), 0,
                          what + ": events that were discarded")
        self.checks.equal(found.get("culprit_config_last_reload_successful"), 1,
                          what + ": the last reload")
        load.remove_rotated()
        return found.get("culprit_memory_held_bytes", 0)

    def watch(self, run, load):
        third = self.seconds / 3
        self.checks.check(run.wait_for(lambda: run.ask(run.health, "/readyz")[0] == 200),
                          lambda: "it does not get ready: " + run.said()[-2000:])
        self.drive(run, load, third)
        self.rest("after the first third", run, load)
        live = len(BY_FILE) + 1         # and the silent one
        settled = run.wait_for(lambda: self.open_inputs(run) == live)
        self.checks.check(settled, "the rotated files stay open: %d" % self.open_inputs(run))
        before = {"descriptors": run.descriptors(), "threads": run.threads(), "rss": run.rss(),
                  "held": run.metrics().get("culprit_memory_held_bytes", 0)}
        self.drive(run, load, self.seconds - third)
        self.rest("at the end", run, load)
        self.checks.check(run.wait_for(lambda: run.descriptors() <= before["descriptors"]),
                          lambda: "descriptors grew from %d to %d"
                          % (before["descriptors"], run.descriptors()))
        self.checks.check(run.wait_for(lambda: run.threads() <= before["threads"]),
                          lambda: "threads grew from %d to %d" % (before["threads"], run.threads()))
        most = before["held"] * 1.1 + (1 << 20)
        self.checks.check(
            run.wait_for(lambda: 0 < run.metrics().get("culprit_memory_held_bytes", 0) <= most),
            lambda: "held memory grew from %d to %s"
            % (before["held"], run.metrics().get("culprit_memory_held_bytes")))
        print("%d rounds, %d jobs, %d events, %d reloads, %d looks; from the first third to the "
              "end: held %.0f to %.0f KiB, RSS %d to %d KiB (most %d), descriptors %d to %d, "
              "threads %d to %d" % (
                  load.number, load.number // JOB_ROUNDS, load.written + load.posted, self.reloads,
                  self.looks, before["held"] / 1024,
                  run.metrics().get("culprit_memory_held_bytes", 0) / 1024, before["rss"] // 1024,
                  run.rss() // 1024, self.peak_rss // 1024, before["descriptors"],
                  run.descriptors(), before["threads"], run.threads()))

    def open_inputs(self, run):
        folder = "/proc/%d/fd/" % run.process.pid
        count = 0
        for name in os.listdir(folder) if os.path.isdir(folder) else ():
            try:
                count += os.readlink(folder + name).startswith(os.path.realpath(run.input) + "/")
            except FileNotFoundError:       # closed meanwhile
                pass
        return count

    def stop(self, run):
        if run.process.poll() is None:
            run.process.send_signal(signal.SIGTERM)
        try:
            code = run.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            run.process.kill()
            code = run.process.wait()
        self.checks.equal(code, 0, "exit code (%s)" % run.said()[-2000:])
        self.checks.check("Sanitizer" not in run.said(), "the sanitizer complains")
        wrong = [line for line in run.said().splitlines()
                 if '"level":"error"' in line or '"level":"warn"' in line]
        self.checks.equal(wrong[:5], [], "errors and warnings in the log")

    def read_verdicts(self, run):
        lines = []
        for name in sorted(os.listdir(run.folder)):
            if name.startswith("verdicts.jsonl"):
                with open(os.path.join(run.folder, name), encoding="utf-8") as file:
                    lines += file.read().splitlines()
        leaks = [v for v in map(json.loads, lines) if v["kind"] == "leak"]
        self.checks.check(len(leaks) > 0, "no leak was found among %d verdict lines" % len(lines))
        for leak in leaks:
            self.checks.equal(verdicts.named(leak, "culprit"), [LEAK_RANK], "who leaks")

    def run(self):
        with tempfile.TemporaryDirectory() as folder:
            run = Run(self.binary, folder)
            load = Load(run)
            try:
                self.watch(run, load)
            finally:
                self.stop(run)
            self.read_verdicts(run)
        with open(self.binary, "rb") as file:
            sanitized = b"__asan_init" in (code := file.read()) or b"__tsan_init" in code
        with tempfile.TemporaryDirectory() as folder:
            soak_pace.run(self.binary, folder, max(self.seconds / 5, 6), self.checks,
                          self.seconds >= LONG_S and not sanitized)


def main(binary, seconds):
    suite = Suite(binary, seconds)
    suite.run()
    return suite.checks.finish()


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1]),
                  float(sys.argv[2] if len(sys.argv) > 2
                        else os.environ.get("CULPRIT_SOAK_SECONDS", SECONDS))))
