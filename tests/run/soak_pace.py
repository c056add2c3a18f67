# SPDX-License-Identifier: Apache-2.0
"""A steady 20,000 events a second by file, as the soak's second part: what it costs, and how soon a
leak is named.

Most ranks write the segments of telemetry sinks, which roll every 10,000 events; some have their
files renamed away, some copied and cut; one source says one line and is silent. Two figures are
printed: the share of a core that culprit takes, and the time from the moment at which the leak has
reached its threshold to the line that names it.
"""
import json
import os
import shutil
import time

import run_rolling
import verdicts

EVENTS_A_SECOND, RANKS = 20_000, 20
RENAMED, COPIED = (16, 17), (18, 19)    # the others write segments
LEAK_RANK, LEAK_GIB_A_SECOND = 1, 1.5
ROLL_LINES = 10_000
WRITE_EVERY_S = 0.05
EVALUATE_S, LATENESS_S, SETTLE_S, IDLE_S = 1, 2, 1, 2
LATENCY_MAX_S = LATENESS_S + SETTLE_S + 2
CPU_MAX = 0.05
GIB = 1 << 30


def line_of(rank, time_ns, used):
    return json.dumps({
        "schema_version": 3, "session_id": "pace-r%d" % rank, "timestamp_ns": time_ns,
        "event_type": "sample", "collector": "stormlog.cuda_tracker",
        "sampling_interval_ms": 1000 * RANKS // EVENTS_A_SECOND, "pid": 4000 + rank,
        "host": "node0", "job_id": "pace", "rank": rank, "local_rank": rank, "world_size": RANKS,
        "device_id": rank, "allocator_allocated_bytes": used * 9 // 10,
        "allocator_reserved_bytes": used * 19 // 20, "allocator_active_bytes": None,
        "allocator_inactive_bytes": None, "allocator_change_bytes": 0, "device_used_bytes": used,
        "device_free_bytes": 80 * GIB - used, "device_total_bytes": 80 * GIB, "context": None,
        "metadata": {}}) + "\n"


class Writer:
    """One rank's file, by the rotation that it has."""

    def __init__(self, folder, rank):
        self.rank, self.lines, self.rolls = rank, 0, 0
        self.folder = os.path.join(folder, "rank%d" % rank)
        os.makedirs(self.folder)
        self.before, self.after = line_of(rank, 1 << 60, 20 * GIB).split(str(1 << 60))
        self.file = None
        self.roll()

    def roll(self):
        self.rolls += 1
        self.lines = 0
        plain = os.path.join(self.folder, "run.jsonl")
        if self.file is not None:
            self.file.close()
            if self.rank in RENAMED:
                os.rename(plain, "%s.%d" % (plain, self.rolls))
            elif self.rank in COPIED:
                shutil.copyfile(plain, "%s.%d" % (plain, self.rolls))
                os.truncate(plain, 0)
        if self.rank not in RENAMED + COPIED:
            plain = os.path.join(self.folder, "segment-%06d.jsonl" % self.rolls)
        self.file = open(plain, "a", encoding="ascii")

    def write(self, text, count):
        if self.lines + count > ROLL_LINES:
            self.roll()
        self.file.write(text)
        self.file.flush()
        self.lines += count


class Pace(run_rolling.Followed):
    """culprit over the ranks' folders, on their clock, which is the real one."""

    def __init__(self, binary, folder, seconds):
        super().__init__(binary, folder)
        path = os.path.join(folder, "culprit.yaml")
        with open(path, encoding="utf-8") as file:
            config = json.load(file)
        config["receivers"]["file"] = {"include": [self.input]}
        config["processors"] = {"rank_group": {"retention": "60s"}}
        config["service"]["checkpoint_interval"] = "5s"
        config["service"]["pipelines"]["memory"].update({
            "evaluate_every": "%ds" % EVALUATE_S, "allowed_lateness": "%ds" % LATENESS_S,
            "settle": "%ds" % SETTLE_S, "idle_timeout": "%ds" % IDLE_S})
        with open(path, "w", encoding="utf-8") as file:
            json.dump(config, file)
        self.seconds = seconds
        self.sent = 0
        self.latency_s = self.leak = None

    def usage(self):
        """Seconds of processor time, and how often the main thread has gone to sleep."""
        task = "/proc/%d/" % self.process.pid
        with open(task + "stat", encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        with open(task + "status", encoding="ascii") as file:
            waits = [line.split()[1] for line in file if line.startswith("voluntary")]
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), int(waits[0])

    def say(self, writer, since, until):
        """The samples number `since` to `until` of this rank."""
        times = [self.start_ns + i * RANKS * 10**9 // EVENTS_A_SECOND for i in range(since, until)]
        if writer.rank == LEAK_RANK and times[-1] > self.leak_ns:
            text = "".join(line_of(writer.rank, at, int(
                (20 + max(0, at - self.leak_ns) / 1e9 * LEAK_GIB_A_SECOND) * GIB)) for at in times)
        else:
            text = "".join(writer.before + str(at) + writer.after for at in times)
        writer.write(text, len(times))
        self.sent += len(times)

    def look(self):
        for line in self.lines_out() if self.leak is None else ():
            if '"kind":"leak"' in line:
                self.leak = json.loads(line)
                reached_ns = int(self.leak["evidence_trail"][1]["time_unix_nano"])
                self.latency_s = time.time() - reached_ns / 1e9

    def drive(self):
        """Writes at its pace; measures from the first third on. Gives the two figures' parts."""
        silent = os.path.join(self.input, "silent.jsonl")
        self.start_ns = time.time_ns()
        with open(silent, "w", encoding="ascii") as file:
            file.write(line_of(0, self.start_ns, 20 * GIB))
        self.sent += 1
        self.leak_ns = self.start_ns + int(self.seconds / 2 * 1e9)
        writers = [Writer(self.input, rank) for rank in range(RANKS)]
        done, begun = 0, None
        while (now_s := (time.time_ns() - self.start_ns) / 1e9) < self.seconds:
            if begun is None and now_s > self.seconds / 3:
                begun = (time.monotonic(), self.sent, *self.usage())
            until = int(now_s * EVENTS_A_SECOND / RANKS)
            for writer in writers if until > done else ():
                self.say(writer, done, until)
            done = until
            self.look()
            time.sleep(WRITE_EVERY_S)
        took = time.monotonic() - begun[0]
        cpu, waits = self.usage()
        for writer in writers:
            writer.file.close()
        return {"events": (self.sent - begun[1]) / took, "cpu": (cpu - begun[2]) / took,
                "waits": (waits - begun[3]) / took}


def run(binary, folder, seconds, checks, bounded):
    """`bounded`: the two figures are held to their bounds; else they are printed only."""
    pace = Pace(binary, folder, seconds)
    try:
        checks.check(pace.start(), lambda: "pace: start: " + pace.log_text()[-1500:])
        figures = pace.drive()
        checks.check(pace.wait_for(lambda: pace.accepted() >= pace.sent),
                     lambda: "pace: not all was taken: %s of %d" % (pace.accepted(), pace.sent))
        checks.equal(pace.accepted(), pace.sent, "pace: events accepted, against sent")
        checks.check(pace.wait_for(lambda: pace.look() or pace.leak is not None),
                     "pace: the leak is not named while it runs")
    finally:
        code = pace.stop()
    checks.equal(code, 0, "pace: exit code: " + pace.log_text()[-1500:])
    if pace.leak is not None:
        checks.equal(verdicts.named(pace.leak, "culprit"), [LEAK_RANK], "pace: who leaks")
    print("pace: %.0f events a second for %.0f s at %.1f %% of a core, %.1f sleeps of the main "
          "thread a second; the leak was named %.1f s after it had grown enough"
          % (figures["events"], seconds, figures["cpu"] * 100, figures["waits"],
             pace.latency_s or -1))
    if bounded:
        checks.check(figures["cpu"] < CPU_MAX, "pace: more than %.0f %% of a core: %.1f %%"
                     % (CPU_MAX * 100, figures["cpu"] * 100))
        checks.check(pace.latency_s is not None and pace.latency_s < LATENCY_MAX_S,
                     "pace: named after %s s, not within %d s" % (pace.latency_s, LATENCY_MAX_S))
