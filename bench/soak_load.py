# SPDX-License-Identifier: Apache-2.0
"""What bench/soak sends: jobs that come and go, half of their nodes by file and half over HTTP.

Eight ranks a node, each with a sample at its own steady pace on the real clock. A job ends and the
next one begins at the same sample of all ranks; in each, one rank's memory grows. Files roll every
so many lines: renamed, copied and cut, or as the segments of a telemetry sink. What was sent of
each job is counted when it is in the file, or acknowledged.
"""
import http.client
import json
import os
import queue
import shutil
import socket
import threading
import time

RANKS_A_NODE = 8
ROLL_LINES = 10_000
KEPT_S = 90                 # that a file which is over stays, so that a start after a kill finds it
NODES_A_POST = 4
POSTS_WAITING = 4096
PATIENCE_S = 120
GIB = 1 << 30
LEAK_FROM, LEAK_GIB_A_SECOND, LEAK_MOST_GIB = 0.3, 2, 40
SHAPES = 7                  # of a rank's ups and downs
BAD_LINE = b'{"schema_version":3,"rank":\n'


class Plan:
    """Which sample of which rank belongs to which job, and when it is due."""

    def __init__(self, ranks, rate, job_s):
        self.ranks, self.nodes = ranks, ranks // RANKS_A_NODE
        self.step_ns = ranks * 10**9 // rate
        self.job_samples = max(1, int(job_s * 10**9) // self.step_ns)
        self.start_ns = 0

    def begin(self):
        self.start_ns = time.time_ns()

    def due(self):
        """Samples of each rank that are due by now."""
        return (time.time_ns() - self.start_ns) // self.step_ns

    def job_of(self, number):
        return number // self.job_samples

    def leak_rank(self, job):
        return (job * 37 + 5) % self.ranks

    def used(self, rank, number):
        job, within = divmod(number, self.job_samples)
        used = (20 * GIB) + (rank * 7 + number) % SHAPES * (4 << 20)
        since = within - int(LEAK_FROM * self.job_samples)
        if since > 0 and rank == self.leak_rank(job):
            used += int(min(since * self.step_ns / 1e9 * LEAK_GIB_A_SECOND, LEAK_MOST_GIB) * GIB)
        return used


class Writer:
    """Makes the lines of samples; a job's lines differ in time and memory only."""

    def __init__(self, plan):
        self.plan = plan
        self.job = -1
        self.before, self.after = [], []

    def parts(self, rank, used):
        line = json.dumps({
            "schema_version": 3, "session_id": "soak-%d-r%d" % (self.job, rank),
            "timestamp_ns": 1, "event_type": "sample", "collector": "stormlog.cuda_tracker",
            "sampling_interval_ms": self.plan.step_ns // 10**6, "pid": 4000 + rank,
            "host": "node%d" % (rank // RANKS_A_NODE), "job_id": "soak-%d" % self.job,
            "rank": rank, "local_rank": rank % RANKS_A_NODE, "world_size": self.plan.ranks,
            "device_id": rank % RANKS_A_NODE, "allocator_allocated_bytes": used * 9 // 10,
            "allocator_reserved_bytes": used * 19 // 20, "allocator_active_bytes": None,
            "allocator_inactive_bytes": None, "allocator_change_bytes": 0,
            "device_used_bytes": used, "device_free_bytes": 80 * GIB - used,
            "device_total_bytes": 80 * GIB, "context": None, "metadata": {}},
            separators=(",", ":"))
        before, after = line.split('"timestamp_ns":1,')
        return (before + '"timestamp_ns":').encode(), ("," + after + "\n").encode()

    def turn(self, job):
        self.job = job
        self.before, self.after = [], []
        for rank in range(self.plan.ranks):
            shapes = [self.parts(rank, self.plan.used(rank, job * self.plan.job_samples + i))
                      for i in range(SHAPES)]
            self.before.append(shapes[0][0])
            self.after.append([shape[1] for shape in shapes])

    def lines(self, node, first, end):
        """The samples of one node, which are of one job; the first of the job was told (turn)."""
        plan, out = self.plan, []
        begin = self.job * plan.job_samples
        leak = plan.leak_rank(self.job)
        for number in range(first, end):
            at = b"%d" % (plan.start_ns + number * plan.step_ns)
            for rank in range(node * RANKS_A_NODE, (node + 1) * RANKS_A_NODE):
                if rank == leak:
                    before, after = self.parts(rank, plan.used(rank, number))
                    out += (before, at, after)
                else:
                    out += (self.before[rank], at, self.after[rank][(number - begin) % SHAPES])
        return b"".join(out)


class NodeFile:
    """The file of one node, and how it rolls: 0 renamed, 1 copied and cut, 2 segments."""

    def __init__(self, folder, node):
        self.node, self.way = node, node // 2 % 3
        self.folder = os.path.join(folder, "node%d" % node)
        os.makedirs(self.folder)
        self.rolls, self.lines = 0, node * 97 % ROLL_LINES     # not all at once
        self.over = []
        self.file = open(self.path(), "ab")

    def path(self):
        if self.way == 2:
            return os.path.join(self.folder, "segment-%06d.jsonl" % (self.rolls + 1))
        return os.path.join(self.folder, "run.jsonl")

    def roll(self):
        plain = self.path()
        self.rolls += 1
        self.lines = 0
        moved = plain if self.way == 2 else "%s.%d" % (plain, self.rolls)
        if self.way == 1:
            shutil.copyfile(plain, moved)
            os.truncate(plain, 0)
        else:
            self.file.close()
            if self.way == 0:
                os.rename(plain, moved)
            self.file = open(self.path(), "ab")
        self.over.append((time.monotonic(), moved))
        while self.over[0][0] < time.monotonic() - KEPT_S:
            os.unlink(self.over.pop(0)[1])

    def write(self, data):
        if self.lines > ROLL_LINES:
            self.roll()
        self.file.write(data)
        self.file.flush()
        self.lines += data.count(b"\n")


class Poster(threading.Thread):
    """Posts bodies in order, each until it is acknowledged; `ack: stored` and a key for each."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.connection = port, None
        self.waiting = queue.Queue(POSTS_WAITING)
        self.acknowledged = {}      # events, by job
        self.failure = None
        self.retries, self.repeated, self.number = 0, 0, 0
        self.last = None

    def post(self, job, events, refused, body):
        self.waiting.put((job, events, refused, body), timeout=PATIENCE_S)

    def run(self):
        while self.failure is None:
            job, events, refused, body = self.waiting.get()
            try:
                if job is None:
                    self.repeat()
                    continue
                self.number += 1
                key = "soak-%d" % self.number
                answer = self.deliver(key, body)
                if answer["accepted"] != events or answer.get("rejected_count", 0) != refused:
                    raise ValueError("%s: %d events and %d wrong lines: %.300s"
                                     % (key, events, refused, answer))
                self.acknowledged[job] = self.acknowledged.get(job, 0) + events
                self.last = key, body
            except (ValueError, KeyError, TimeoutError) as error:
                self.failure = "a request: %s" % error
            finally:
                self.waiting.task_done()

    def repeat(self):
        """The last one again, as if its answer had been lost."""
        if self.last is not None:
            if not self.deliver(*self.last).get("repeated"):
                raise ValueError("%s was taken twice" % self.last[0])
            self.repeated += 1

    def deliver(self, key, body):
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            try:
                if self.connection is None:
                    self.connection = http.client.HTTPConnection("127.0.0.1", self.port,
                                                                 timeout=PATIENCE_S)
                self.connection.request("POST", "/v1/events", body,
                                        {"Content-Type": "application/x-ndjson",
                                         "Idempotency-Key": key})
                answer = self.connection.getresponse()
                text = answer.read()
                if answer.status == 200:
                    return json.loads(text)
                if answer.status not in (429, 503):
                    raise ValueError("%s: %d %.300s" % (key, answer.status, text))
            except (OSError, http.client.HTTPException):
                self.hang_up()
            self.retries += 1
            time.sleep(0.1)
        raise TimeoutError("%s was not acknowledged in %d s" % (key, PATIENCE_S))

    def hang_up(self):
        if self.connection is not None:
            self.connection.close()
        self.connection = None


class Load:
    def __init__(self, plan, folder, port):
        self.plan, self.folder, self.port = plan, folder, port
        self.writer = Writer(plan)
        self.poster = Poster(port)
        self.done = [0] * plan.nodes    # samples of each of the node's ranks
        self.files = {node: NodeFile(folder, node) for node in range(0, plan.nodes, 2)}
        self.written = {}               # events in files, by job
        self.paused = {}                # node: until when it holds back
        self.bad_file = self.bad_http = False
        self.bad_lines = 0
        self.kernel = open(os.path.join(folder, "kern.log"), "ab")
        self.kernel_events = 0

    def begin(self):
        self.plan.begin()
        self.writer.turn(0)
        self.poster.start()

    def round(self):
        """All that is due; a node that held back gives what it has, too."""
        now, due = time.monotonic(), self.plan.due()
        self.paused = {node: until for node, until in self.paused.items() if until > now}
        while True:
            end = min(due, (self.writer.job + 1) * self.plan.job_samples)
            self.give(end)
            if end == due:
                return
            self.paused = {}            # nobody holds back when a job ends
            self.give(end)
            self.writer.turn(self.writer.job + 1)

    def give(self, end):
        bodies, events = [], 0
        for node in range(self.plan.nodes):
            count = end - self.done[node]
            if count <= 0 or node in self.paused:
                continue
            data = self.writer.lines(node, self.done[node], end)
            self.done[node] = end
            if node in self.files:
                self.write(self.files[node], data, count * RANKS_A_NODE)
                continue
            bodies.append(data)
            events += count * RANKS_A_NODE
            if len(bodies) == NODES_A_POST:
                self.post(bodies, events)
                bodies, events = [], 0
        if bodies:
            self.post(bodies, events)

    def write(self, file, data, events):
        if self.bad_file:
            data, self.bad_file = data + BAD_LINE, False
            self.bad_lines += 1
        file.write(data)
        self.written[self.writer.job] = self.written.get(self.writer.job, 0) + events

    def post(self, bodies, events):
        refused = int(self.bad_http)
        if refused:
            bodies, self.bad_http = bodies + [BAD_LINE], False
            self.bad_lines += 1
        self.poster.post(self.writer.job, events, refused, b"".join(bodies))

    # -- what goes wrong now and then ---------------------------------------------------------------

    def wrong_lines(self):
        self.bad_file = self.bad_http = True

    def same_again(self):
        self.poster.waiting.put((None, 0, 0, b""), timeout=PATIENCE_S)

    def broken_request(self):
        """Half of a body, and gone."""
        with socket.socket() as client:
            client.settimeout(5)
            try:
                client.connect(("127.0.0.1", self.port))
                client.sendall(b"POST /v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                               b"application/x-ndjson\r\nContent-Length: 100000\r\n\r\n"
                               + BAD_LINE * 5)
            except OSError:
                pass                    # while it reloads or starts

    def hold_back(self, seconds):
        for node in (0, 1):
            self.paused[node] = time.monotonic() + seconds

    def kernel_fault(self, number):
        """A GPU that fails on some node, as the kernel says it."""
        node = number * 3 % self.plan.nodes
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) + ".000000+00:00"
        self.kernel.write(b"%s node%d kernel: NVRM: Xid (PCI:0000:%02x:00): 79, pid=%d, "
                          b"GPU has fallen off the bus.\n"
                          % (at.encode(), node, 0x10 + number % 8, 4000 + number))
        self.kernel.flush()
        self.kernel_events += 1

    # -- counts -----------------------------------------------------------------------------------

    def samples(self):
        """That were written or acknowledged, by job."""
        acknowledged = dict(self.poster.acknowledged)
        return {job: self.written.get(job, 0) + acknowledged.get(job, 0)
                for job in set(self.written) | set(acknowledged)}

    def events(self):
        return sum(self.samples().values()) + self.kernel_events

    def rest(self):
        """All that is on its way is acknowledged."""
        until = time.monotonic() + PATIENCE_S
        while self.poster.waiting.unfinished_tasks and self.poster.failure is None:
            if time.monotonic() > until:
                self.poster.failure = "requests wait for %d s" % PATIENCE_S
            time.sleep(0.05)
