#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The control socket of a live culprit: who may open it, what it answers, what a tap shows, and
that no reader of a tap holds the pipeline up.

    run_control.py BINARY
"""
import json
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from checks import Checks  # noqa: E402
from control import PATIENCE_S, Tap, connect, exchange, get, read_all  # noqa: E402
from process import environment  # noqa: E402
from running import documents, wait_for  # noqa: E402

NOBODY = 65534
FLOOD = 30000
WATCH_TRIES = 20
REFUSED = 75  # exit code of a tap that was one too many
START_NS = 1795248000 * 10 ** 9


def sample(index, rank, job="train"):
    """A line of telemetry, one a millisecond."""
    return json.dumps({
        "schema_version": 2, "timestamp_ns": START_NS + index * 10 ** 6, "event_type": "sample",
        "collector": "c", "sampling_interval_ms": 1, "pid": 100 + rank, "host": "node-%d" % rank,
        "device_id": 0, "allocator_allocated_bytes": 1 << 20,
        "allocator_reserved_bytes": 1 << 21, "allocator_active_bytes": None,
        "allocator_inactive_bytes": None, "allocator_change_bytes": 0,
        "device_used_bytes": 1 << 22, "device_free_bytes": None, "device_total_bytes": None,
        "context": None, "metadata": {}, "job_id": job, "rank": rank, "local_rank": rank,
        "world_size": 4}, separators=(",", ":"))


class Culprit:
    def __init__(self, binary, folder, control=None, user=None, **more):
        self.binary, self.folder, self.user, self.more = binary, folder, user, more
        self.log_path, self.input = os.path.join(folder, "log"), os.path.join(folder, "in.jsonl")
        self.config = os.path.join(folder, "c.yaml")
        self.process = None
        self.put(control, 512)
        open(self.input, "ab").close()

    def put(self, control, batch):
        service = {"batch_size": batch, "pipelines": {"memory": {
            "receivers": ["file"], "preset": "memory", "exporters": ["json"],
            "allowed_lateness": "0s", "caught_up_timeout": "100ms", "settle": "0s"}}}
        if control is not None:
            service["control"] = control
        with open(self.config, "w", encoding="utf-8") as file:
            json.dump({"receivers": {"file": {"include": [self.input], "start_at": "beginning",
                                              "poll_interval": "50ms"}},
                       "exporters": {"json": {"path": os.path.join(self.folder, "verdicts.jsonl")}},
                       "service": service}, file)

    def become(self):
        if self.user is not None:
            os.setgroups([])
            os.setgid(self.user)
            os.setuid(self.user)

    def start(self):
        self.process = self.spawn("run", "--config", self.config, output=self.log_path)
        return self

    def spawn(self, *arguments, output=None):
        out = open(output, "ab") if output else subprocess.PIPE
        return subprocess.Popen([self.binary, *arguments], stdin=subprocess.DEVNULL, stdout=out,
                                stderr=out, env=environment(**self.more), preexec_fn=self.become)

    def ask(self, *arguments):
        """A command of the same user, to its end."""
        process = self.spawn(*arguments)
        out, err = process.communicate(timeout=PATIENCE_S)
        return process.returncode, out.decode(), err.decode()

    def lines(self, code):
        return [line for line in documents(self.log_path) if line["code"] == code]

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def socket(self):
        """Where it listens, once it says so."""
        found = wait_for(lambda: self.lines("C1021"), self.process)
        if not found:
            raise RuntimeError("culprit did not start: " + self.log())
        return found[0]["msg"].split(" at ")[1]

    def write(self, lines):
        with open(self.input, "a", encoding="utf-8") as file:
            file.write("".join(line + "\n" for line in lines))

    def consumed(self, path, count):
        """Waits until so many events have gone through."""
        return wait_for(lambda: get(path, "/status")[1]["pipelines"][0]["events"] >= count)

    def stop(self, checks, name):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(PATIENCE_S)
        checks.equal(code, 0, name + ": it stops: " + self.log()[-1500:])
        checks.check("ERROR: " not in self.log() and "runtime error" not in self.log(),
                     name + ": no sanitizer complains: " + self.log()[-3000:])

    def kill(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def place(checks, binary, folder):
    """The usual place; what is told of a pipeline; requests that are wrong; the end."""
    culprit = Culprit(binary, folder, XDG_RUNTIME_DIR=folder).start()
    try:
        path = culprit.socket()
        checks.equal(path, "%s/culprit/control/%d.sock" % (folder, culprit.process.pid), "its path")
        checks.equal(stat.S_IMODE(os.stat(path).st_mode), 0o600, "mode of the socket")
        checks.equal(stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode), 0o700, "of its directory")
        culprit.write([sample(i, i % 3, "a\u001b[31m\"b") for i in range(3000)])
        checks.check(culprit.consumed(path, 3000), "the events go through")
        code, told = wait_for(lambda: all_judged(get(path, "/status"), 3000)) or get(path, "/status")
        checks.equal(code, 200, "/status")
        checks.equal(told["pid"], culprit.process.pid, "its process")
        checks.equal(told["ready"], True, "it is ready")
        pipeline = told["pipelines"][0]
        checks.equal([pipeline["name"], pipeline["receivers"], pipeline["exporters"]],
                     ["memory", ["file"], ["json"]], "the pipeline")
        checks.check(pipeline["lag_s"] > 0 and pipeline["newest_event_age_s"] > 0
                     and pipeline["newest_event"].startswith("2026-11-21T08:00:02.999"),
                     "how far it is: %r" % pipeline)
        job = pipeline["jobs"][0]
        checks.equal([job["job"], job["ranks"], job["world_size"], job["missing_ranks"]],
                     ["a\u001b[31m\"b", 3, 4, [3]], "the job")
        checks.equal(told["receivers"][0]["events"], 3000, "the receiver")
        checks.equal([told["exporters"][0]["id"], told["exporters"][0]["queue_bytes"]], ["json", 0],
                     "the exporter")
        checks.check(all(stage["events"] == 3000 for stage in pipeline["stages"]), "the stages")
        wrong(checks, path)
        crowd(checks, path)
        no_descriptors(checks, culprit, path)
        culprit.stop(checks, "place")
        checks.check(not os.path.exists(path), "the socket is gone with it")
        checks.equal(culprit.ask("top", "--socket", path)[0], 66, "nobody is there")
    finally:
        culprit.kill()


def all_judged(answer, count):
    """/status, once every part of it knows of so many events; each is counted for itself."""
    told = answer[1]
    jobs = told["pipelines"][0]["jobs"]
    counts = [told["receivers"][0]["events"]]
    counts += [stage["events"] for stage in told["pipelines"][0]["stages"]]
    quiet = told["exporters"][0]["queue_bytes"] == 0
    return answer if jobs and quiet and all(one >= count for one in counts) else None


def wrong(checks, path):
    for request, code in ((b"GET /nothing HTTP/1.1\r\n\r\n", b"404"),
                          (b"POST /status HTTP/1.1\r\n\r\n", b"405"),
                          (b"GET /status\r\n\r\n", b"400"),
                          (b"GET /status SPDY/9\r\n\r\n", b"400"),
                          (b"\r\n\r\n", b"400"),
                          (b"GET /tap HTTP/1.1\r\n\r\n", b"400"),
                          (b"GET /tap?pipeline=no HTTP/1.1\r\n\r\n", b"404"),
                          (b"GET /tap?pipeline=memory&stage=no HTTP/1.1\r\n\r\n", b"404"),
                          (b"GET /tap?pipeline=%00 HTTP/1.1\r\n\r\n", b"400"),
                          (b"GET /status\0 HTTP/1.1\r\n\r\n", b"400"),
                          (b"GET /" + b"a" * 9000, b"400")):
        answer = exchange(path, request)
        checks.check(answer.startswith(b"HTTP/1.1 " + code) and
                     "error" in json.loads(answer.partition(b"\r\n\r\n")[2]),
                     "%r is answered by %r" % (request[:40], answer[:200]))
    with connect(path) as peer:  # byte by byte, and headers of any kind
        for byte in b"GET /status?x=1 HTTP/1.1\r\nA: b\r\n\r\n":
            peer.sendall(bytes([byte]))
        checks.check(read_all(peer).startswith(b"HTTP/1.1 200"), "a slow request")
    with connect(path) as peer:
        peer.sendall(b"GET /sta")  # and goes
    checks.equal(get(path, "/status")[0], 200, "after all that")


def crowd(checks, path):
    """More connections than it takes: the others wait, and get their answer."""
    peers = [connect(path) for _ in range(20)]
    for peer in peers[16:]:
        peer.sendall(b"GET /status HTTP/1.1\r\n\r\n")
    for peer in peers[:16]:
        peer.close()
    for peer in peers[16:]:
        checks.check(read_all(peer).startswith(b"HTTP/1.1 200"), "it waited and was answered")
        peer.close()


def no_descriptors(checks, culprit, path):
    """Nobody can be let in: it does not turn in circles, and answers as soon as it can."""
    pid = culprit.process.pid
    used = max(int(name) for name in os.listdir("/proc/%d/fd" % pid)) + 1
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE, (used, 1024))
    with connect(path) as peer:
        peer.sendall(b"GET /status HTTP/1.1\r\n\r\n")
        begun = cpu_s(pid)
        time.sleep(1)
        checks.check(cpu_s(pid) - begun < 0.5, "it rests: %.2f s of CPU time" % (cpu_s(pid) - begun))
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (min(before[0], 1024), 1024))
        checks.check(read_all(peer).startswith(b"HTTP/1.1 200"), "it answers once there is room")


def cpu_s(pid):
    with open("/proc/%d/stat" % pid, encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def stalled(checks, binary, folder):
    """A reader that never reads, at full speed: the pipeline goes on, and all is accounted for."""
    path = os.path.join(folder, "own", "c.sock")
    culprit = Culprit(binary, folder, {"socket": path}).start()
    taps = []
    try:
        checks.equal(culprit.socket(), path, "the path that was given")
        taps = [Tap(path, "pipeline=memory&rate=10000").begun() for _ in range(4)]
        checks.equal(get(path, "/tap?pipeline=memory")[0], 503, "a fifth one finds no room")
        culprit.write([sample(i, i % 4) for i in range(FLOOD)])
        checks.check(culprit.consumed(path, FLOOD), "all events go through while nobody reads")
        told = get(path, "/status")[1]
        checks.equal(told["pipelines"][0]["events"], FLOOD, "none is lost")
        checks.check(wait_for(lambda: get(path, "/status")[1]["exporters"][0]["queue_bytes"] == 0),
                     "and their verdicts leave")
        taps[3].close()  # one that goes makes room
        checks.check(wait_for(lambda: room(path)), "a reader that goes makes room")
        first = [taps[0].line() for _ in range(10)]
        checks.equal([line["position"] for line in first], list(range(1, 11)), "in their order")
        checks.equal(first[1], {
            "event": "telemetry", "time": "2026-11-21T08:00:00.001000000Z", "job": "train",
            "node": "node-1", "rank": 1, "source": culprit.input, "position": 2,
            "format": first[1]["format"], "record": sample(1, 1)}, "a line")
        records, left_out = 10, 0
        while records + left_out < FLOOD:  # it reads now, and nothing more comes
            line = taps[0].line()
            records += "event" in line
            left_out += line.get("left_out", 0)
        checks.equal(records + left_out, FLOOD, "every event was shown or counted")
        checks.check(left_out > 0 and records >= 200, "%d of %d" % (records, FLOOD))
        culprit.stop(checks, "with readers that rest")
        checks.equal(taps[0].lines(), [{"end": "stopped"}], "it says that it stops")
    finally:
        for tap in taps:
            tap.close()
        culprit.kill()


def room(path):
    tap = Tap(path, "pipeline=memory").begun()
    tap.close()
    return tap.head.startswith(b"HTTP/1.1 200")


class Reader(threading.Thread):
    """Takes the lines of a tap as they come."""

    def __init__(self, tap):
        super().__init__(daemon=True)
        self.tap, self.lines = tap, []
        self.start()

    def run(self):
        self.lines = self.tap.lines()


def accounted(checks, binary, folder):
    """With a reader that reads: shown and left out are all there were."""
    path = os.path.join(folder, "c.sock")
    culprit = Culprit(binary, folder, {"socket": path}).start()
    try:
        culprit.socket()
        tap = Tap(path, "pipeline=memory&rate=50").begun()
        third = Tap(path, "pipeline=memory&every=3&rate=10000&rank=1&limit=20").begun()
        behind = Tap(path, "pipeline=memory&stage=rank_group&rate=10000&kind=telemetry").begun()
        culprit.write([sample(i, i % 4) for i in range(2000)])
        culprit.consumed(path, 2000)
        ranks = third.lines()
        checks.equal(ranks[-1], {"end": "limit"}, "it ends by itself")
        checks.equal([line["position"] for line in ranks[:-1]],
                     [2 + 12 * i for i in range(20)], "each third event of rank 1")
        readers = [Reader(tap), Reader(behind)]
        culprit.stop(checks, "accounted")
        for reader, name, most in zip(readers, ("entry", "behind a stage"), (1999, 2000)):
            reader.join(PATIENCE_S)
            lines = reader.lines
            checks.equal(lines[-1], {"end": "stopped"}, name + ": it says that it stops")
            shown = sum("event" in line for line in lines)
            left_out = sum(line.get("left_out", 0) for line in lines)
            checks.equal(shown + left_out, 2000, name + ": shown and left out")
            checks.check(50 <= shown <= most, "%s: %d shown" % (name, shown))
    finally:
        culprit.kill()


def commands(checks, binary, folder):
    """culprit tap as a person runs it; a reload; culprit killed."""
    path = os.path.join(folder, "c.sock")
    control = {"socket": path}
    culprit = Culprit(binary, folder, control, CULPRIT_SOCKET=path).start()
    try:
        culprit.socket()
        tap = watching(culprit, path, "tap", "memory", "--limit", "6")
        culprit.write([sample(i, 0) for i in range(3)])
        got = [json.loads(tap.stdout.readline()) for _ in range(3)]
        checks.equal([line["position"] for line in got], [1, 2, 3], "lines as they come")
        culprit.put(control, 256)
        culprit.process.send_signal(signal.SIGHUP)
        wait_for(lambda: culprit.lines("C1012"))
        # The command comes back by itself; what flowed past meanwhile is not shown.
        position = 3
        while tap.poll() is None and position < 2000:
            culprit.write([sample(position, 0)])
            position += 1
            time.sleep(0.05)
        out, err = tap.communicate(timeout=PATIENCE_S)
        more = [json.loads(line) for line in out.splitlines()]
        checks.equal([tap.returncode, err], [0, b""], "it goes on behind a reload, to its limit")
        checks.equal(len([line for line in more if "event" in line]), 3, "and shows the rest")
        ended(checks, culprit, path)
    finally:
        culprit.kill()


def watching(culprit, path, *arguments):
    """The command, once it watches: a fifth reader is one too many then. When those that ask for
    that were faster, it is refused itself and begins again."""
    def is_full():
        taps = [Tap(path, "pipeline=memory").begun() for _ in range(4)]
        for tap in taps:
            tap.close()
        return any(b"503" in tap.head[:20] for tap in taps)
    for _ in range(WATCH_TRIES):
        tap = culprit.spawn(*arguments)
        if not wait_for(lambda: tap.poll() is not None or is_full()):
            break
        time.sleep(0.1)
        if tap.poll() is None:
            return tap
        out, err = tap.communicate(timeout=PATIENCE_S)
        if tap.returncode != REFUSED:
            raise AssertionError("%s: %d %r %r" % (arguments, tap.returncode, out, err))
    raise AssertionError("%s does not watch" % (arguments,))


def ended(checks, culprit, path):
    tap = watching(culprit, path, "tap", "memory")
    tap.send_signal(signal.SIGINT)
    checks.equal(tap.wait(PATIENCE_S), 0, "SIGINT ends it")
    tap = watching(culprit, path, "tap", "memory:out")
    tap.stdout.close()  # head has seen enough
    checks.equal(tap.wait(PATIENCE_S), 0, "nobody reads any more")
    for arguments, code, says in (
            (["tap"], 64, "no PIPELINE is named"),
            (["tap", "no"], 66, "there are: memory"),
            (["tap", "memory:no"], 66, "rank_group"),
            (["tap", "memory", "--kind", "no"], 64, "no kind of event"),
            (["tap", "memory", "--limit", "0"], 64, "--limit"),
            (["tap", "memory", "--limit", "-3"], 64, "must be a number"),
            (["tap", "memory", "--rate", "many"], 64, '--rate is "many"'),
            (["tap", "memory:"], 64, "no stage is named"),
            (["tap", "memory", "--rate", "x"], 64, "rate is"),
            (["tap", "memory", "--socket", "/nowhere/x.sock"], 66, "no culprit listens"),
            (["top", "--interval", "1ms"], 64, "--interval")):
        got, out, err = culprit.ask(*arguments)
        checks.check(got == code and says in err and out == "",
                     "%s: %d %r" % (" ".join(arguments), got, err))
    tap = watching(culprit, path, "tap", "memory")
    culprit.process.kill()
    culprit.process.wait()
    _, err = tap.communicate(timeout=PATIENCE_S)
    checks.equal(tap.returncode, 74, "culprit was killed: " + err.decode())
    checks.check(b"has gone away" in err, "and that is said: %r" % err)


def stale(checks, binary, folder):
    """What kill -9 leaves is replaced; what a living process has is not."""
    path = os.path.join(folder, "c.sock")
    culprit = Culprit(binary, folder, {"socket": path}).start()
    second_folder = os.path.join(folder, "second")
    os.mkdir(second_folder)
    second = Culprit(binary, second_folder, {"socket": path})
    try:
        culprit.socket()
        second.start()
        checks.equal(second.process.wait(PATIENCE_S), 73, "a second one at the same path")
        checks.check("another process listens there" in second.log(), "says why: " + second.log())
        checks.equal(get(path, "/status")[1]["pid"], culprit.process.pid, "the first goes on")
        culprit.kill()
        checks.check(os.path.exists(path), "what kill -9 leaves")
        second.start()
        second.socket()
        checks.equal(get(path, "/status")[1]["pid"], second.process.pid, "it is replaced")
        second.put({"enabled": False}, 512)
        second.process.send_signal(signal.SIGHUP)
        checks.check(wait_for(lambda: second.lines("C1012"), second.process), "it is reloaded")
        checks.check(not os.path.exists(path), "a reload may take it away")
        second.stop(checks, "stale")
    finally:
        culprit.kill()
        second.kill()


def strangers(checks, binary, _):
    """Another user, even when somebody opened the file for all; what root may; several at once."""
    if os.geteuid() != 0:
        checks.skip("only root can be another user")
        return
    # Not below the folder, which others may not be able to reach.
    theirs = tempfile.mkdtemp(prefix="culprit.", dir="/tmp")
    os.chown(theirs, NOBODY, NOBODY)
    culprits = []
    try:
        for name in ("a", "b"):
            own = os.path.join(theirs, name)
            os.mkdir(own)
            culprits.append(Culprit(binary, own, user=NOBODY, XDG_RUNTIME_DIR=theirs))
            for base, _, files in os.walk(own):
                for each in [base] + [os.path.join(base, file) for file in files]:
                    os.chown(each, NOBODY, NOBODY)
        culprits[0].start()
        first = culprits[0].socket()
        checks.equal(os.stat(first).st_uid, NOBODY, "it is the user's")
        code, out, err = culprits[0].ask("top", "--json")
        checks.equal([code, err], [0, ""], "the only one is found")
        checks.equal(json.loads(out)["pid"], culprits[0].process.pid, "it is that one")
        checks.equal(get(first, "/status")[0], 200, "root may look")
        culprits[1].start()
        second = culprits[1].socket()
        code, _, err = culprits[0].ask("top", "--once")
        checks.check(code == 64 and first in err and second in err, "of two one is chosen: " + err)
        code, out, err = culprits[0].ask("top", "--once", "--interval", "100ms", "--socket", second)
        checks.check(code == 0 and "pid %d" % culprits[1].process.pid in out, "by its path: " + err)
        culprits[1].stop(checks, "the second")
        with tempfile.TemporaryDirectory(prefix="culprit.", dir="/tmp") as folder:
            os.chmod(folder, 0o755)
            refused(checks, binary, folder)
        culprits[0].stop(checks, "the first")
    finally:
        for culprit in culprits:
            culprit.kill()
        shutil.rmtree(theirs, ignore_errors=True)


def refused(checks, binary, folder):
    """A culprit of root, whose socket is open for all by mistake."""
    path = os.path.join(folder, "c.sock")
    culprit = Culprit(binary, folder, {"socket": path}).start()
    try:
        culprit.socket()
        stranger = Culprit(binary, tempfile.mkdtemp(dir=folder), user=NOBODY)
        code, _, err = stranger.ask("top", "--json", "--socket", path)
        checks.check(code == 77 and "root" in err, "the mode of the file: %d %s" % (code, err))
        os.chmod(path, 0o666)
        for _ in range(2):
            code, out, err = stranger.ask("top", "--json", "--socket", path)
            checks.check(code == 77 and out == "", "the kernel says who comes: %d %s" % (code, err))
        # Whoever is refused may know it before the line is written.
        checks.check(wait_for(lambda: culprit.lines("C1023"), culprit.process), "it is logged")
        checks.equal(len(culprit.lines("C1023")), 1, "it is logged, once")
        checks.check("user %d " % NOBODY in culprit.lines("C1023")[0]["msg"], "with the user")
        culprit.stop(checks, "refused")
    finally:
        culprit.kill()


def main(binary):
    checks = Checks()
    for case in (place, stalled, accounted, commands, stale, strangers):
        with tempfile.TemporaryDirectory() as folder:
            begun = time.monotonic()
            case(checks, binary, os.path.realpath(folder))
            print("%s: %.1f s" % (case.__name__, time.monotonic() - begun))
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
