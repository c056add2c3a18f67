# SPDX-License-Identifier: Apache-2.0
"""What the cases of run_faults.py share: a culprit that can be made to suffer, and what they say.

The job of tests/run/run_crash.py is given out in rounds by file and HTTP. `disturbed` gives the
first rounds to a culprit with a fault, ends it, and lets one without faults have the rest: then the
last word on every verdict must be that of a run that nobody disturbed, each line of the file must
be whole, and whatever was acknowledged must have counted once.
"""
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, os.path.join(HERE, "..", "run"))
import run_crash  # noqa: E402
from process import environment  # noqa: E402
from running import PATIENCE_S  # noqa: E402

STARTS_S = 3
READY_S = 15  # of one that is not disturbed
ROUNDS = run_crash.ROUNDS
OUT_OF_MEMORY = 71


class Failed(Exception):
    """Something that must hold did not; its text says what was seen."""


class Left(Exception):
    """This machine cannot show the case; its text says why."""


def must(condition, what):
    if not condition:
        raise Failed(what() if callable(what) else what)


def wait_for(condition, what, limit_s=PATIENCE_S):
    end = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > end:
            raise Failed("not within %d s: %s" % (limit_s, what() if callable(what) else what))
        time.sleep(0.01)


class Context:
    """What a run of the table has: the binary, what is built beside it, how long it may take."""

    def __init__(self, binary, long, factor):
        self.binary, self.long, self.factor = binary, long, factor
        self.built = os.path.join(os.path.dirname(binary), "tests")
        with open(binary, "rb") as file:
            self.sanitized = b"__asan_init" in file.read()
        self.lock = threading.RLock()
        self.golden = None
        self.children = {}          # what the case of a thread has started

    def count(self, short, long):
        """A number for this form: the long one's is multiplied by --times."""
        return max(short, int(long * self.factor)) if self.long else short

    def tool(self, name):
        path = os.path.join(self.built, name)
        must(os.path.exists(path), "%s is not built" % path)
        return path

    def started(self, process):
        with self.lock:
            self.children.setdefault(threading.get_ident(), []).append(process)

    def end_children(self):
        """What a case that failed has left running."""
        with self.lock:
            children = self.children.pop(threading.get_ident(), [])
        for process in children:
            if process.poll() is None:
                process.kill()
                process.wait()

    def faults(self, rules="", binary=None, **more):
        """The environment for fault_preload.c. `more`: below, armed, report, clock."""
        variables = {"CULPRIT_FAULT": rules}
        variables.update({"CULPRIT_FAULT_" + key.upper(): value for key, value in more.items()})
        if binary is None:
            variables["LD_PRELOAD"] = self.tool("libfault_preload.so")
        if self.sanitized:
            variables["ASAN_OPTIONS"] = ":".join(filter(None, [
                os.environ.get("ASAN_OPTIONS"), "verify_asan_link_order=0"]))
        return variables

    def undisturbed(self):
        """The last word on each verdict of the job, and the bytes of its file."""
        with self.lock:
            if self.golden is None:
                with folder() as place:
                    run = Run(self, place)
                    run.start()
                    for number in range(len(ROUNDS)):
                        run.give(number)
                    run.give_again()
                    must(run.stop() == 0, lambda: "undisturbed: " + run.log_text()[-2000:])
                    self.golden = last_words(run.bytes_of(run.output))
                    must(len(self.golden) >= 1, "undisturbed: no verdict")
                    self.summary = json.loads(run.bytes_of(run.summary))
            return self.golden


def folder(below=None):
    return tempfile.TemporaryDirectory(prefix="culprit-fault-", dir=below,
                                       ignore_cleanup_errors=True)


def last_words(data):
    """The last line of each verdict id; all lines must be whole."""
    must(data == b"" or data.endswith(b"\n"), "the last line of the verdicts is torn")
    words = {}
    for line in data.splitlines():
        try:
            verdict = json.loads(line)
        except ValueError:
            raise Failed("a line of the verdicts is no JSON: %.200r" % line) from None
        words[verdict["id"]] = verdict
    return words


def names_in(data):
    """The ids of verdicts in a file whose last line may be torn."""
    return set(re.findall(r'"id":"([^"]+)"', data.decode("utf-8", "replace")))


def essence(words):
    """What must not depend on when culprit was stopped meanwhile."""
    keys = ("id", "kind", "severity", "confidence", "entities", "status")
    return {name: [verdict.get(key) for key in keys] for name, verdict in words.items()}


class Run(run_crash.Run):
    """A culprit beside the job: rounds by file and HTTP, a store, verdicts as JSON Lines."""

    def __init__(self, context, place, change=None):
        super().__init__(context.binary, place)
        self.context = context
        self.put_off_until = 0
        self.missing = []           # requests without an acknowledgement: (key, lines)
        self.acknowledged = set()
        self.metrics = run_crash.free_port()
        with open(self.config, encoding="utf-8") as file:
            config = json.load(file)
        config["service"]["telemetry"] = {
            "metrics": {"endpoint": "127.0.0.1:%d" % self.metrics}}
        config["service"]["shutdown_timeout"] = "10s"
        retry = {"initial_interval": "100ms", "max_interval": "300ms"}
        for exporter in config["exporters"].values():
            exporter["retry_on_failure"] = retry
        if change is not None:
            change(config)
        self.write_config(config)

    def write_config(self, config):
        self.settings = config
        with open(self.config + ".new", "w", encoding="utf-8") as file:
            json.dump(config, file)
        os.replace(self.config + ".new", self.config)

    def start(self, wait=True, binary=None, before=None, **variables):
        self.said = self.log_text().count('"C1001"')
        self.listened = self.log_text().count('"C2108"')
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [binary or self.binary, "run", "--config", self.config],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log,
                env=environment(**variables), preexec_fn=before)
        self.context.started(self.process)
        self.put_off_until = time.monotonic() + STARTS_S
        if wait:
            wait_for(lambda: self.running() and self.listening(),
                     lambda: "it runs and listens: " + self.log_text()[-2000:])
            self.put_off_until = time.monotonic() + READY_S

    def running(self):
        """True once it has started; a Failed when it has ended instead."""
        if self.process.poll() is not None:
            raise Failed("it ended with %s: %s" % (self.process.returncode,
                                                   self.log_text()[-2000:]))
        return self.log_text().count('"C1001"') > self.said

    def listening(self):
        return self.log_text().count('"C2108"') > self.listened

    def ended(self):
        return self.process.poll() is not None

    def post_once(self, key, lines, timeout_s=30):
        """The status, or None when there was no answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout_s)
        try:
            connection.request("POST", "/v1/events", ("\n".join(lines) + "\n").encode(),
                               {"Content-Type": "application/x-ndjson", "Idempotency-Key": key})
            answer = connection.getresponse()
            answer.read()
            return answer.status
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    def give_files(self, number):
        for rank in self.by_file:
            lines = ROUNDS[number].get(rank, [])
            path = os.path.join(self.input, "rank%d.jsonl" % rank)
            with open(path, "ab", buffering=0) as file:
                for line in lines:
                    file.write(line.encode() + b"\n")

    def offer(self, key, lines, timeout_s=30):
        if self.ended():
            status = None
        else:
            status = self.post_once(key, lines, timeout_s)
            # It listens before it has read what it kept, and puts requests off until then.
            while status == 503 and time.monotonic() < self.put_off_until:
                time.sleep(0.02)
                status = self.post_once(key, lines, timeout_s)
        must(status in (None, 200, 408, 429, 500, 503), "%s was answered with %s" % (key, status))
        if status == 200:
            self.acknowledged.add(key)
        else:
            self.missing.append((key, lines))
        return status

    def give(self, number, timeout_s=30):
        """A round; requests are tried once, in order."""
        self.give_files(number)
        for rank in self.by_http:
            if rank in ROUNDS[number]:
                self.offer("%d/%d" % (number, rank), ROUNDS[number][rank], timeout_s)

    def give_again(self):
        """What was not acknowledged, as its senders would: until it is."""
        waiting, self.missing = self.missing, []
        end = time.monotonic() + PATIENCE_S
        for key, lines in waiting:
            while self.post_once(key, lines) != 200:
                must(not self.ended(), lambda: "it ended: " + self.log_text()[-2000:])
                must(time.monotonic() < end, lambda: "no acknowledgement of %s: %s"
                     % (key, self.log_text()[-2000:]))
                time.sleep(0.02)
            self.acknowledged.add(key)

    def signal(self, number):
        if not self.ended():
            self.process.send_signal(number)

    def end(self, limit_s=PATIENCE_S):
        """SIGTERM; the exit code, which is not None: after the limit it is killed."""
        self.signal(signal.SIGTERM)
        try:
            return self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            self.kill()
            return "none after %d s" % limit_s

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        code = self.end()
        self.unharmed()
        return code

    def unharmed(self):
        text = self.log_text()
        at = max(text.find("Sanitizer"), text.find("runtime error"))
        must(at < 0, lambda: "a sanitizer complains: " + text[max(0, at - 300):][:3000])
        must("Assertion" not in text, lambda: "an assertion: "
             + text[text.find("Assertion") - 300:][:1000])

    def metric(self, pattern):
        """A figure of culprit's own metrics; None when nobody answers or it is not there."""
        try:
            with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % self.metrics,
                                        timeout=30) as answer:
                found = re.search("^" + pattern + r" (\S+)", answer.read().decode(), re.M)
        except OSError:
            return None
        return float(found.group(1)) if found else None

    def degraded(self):
        return self.metric(r"culprit_store_degraded(?:\{[^}]*\})?")

    def consumed(self):
        return self.metric(r'culprit_pipeline_consumed_events_total\{pipeline="[^"]*"\}')

    def memory_kib(self, key="VmRSS"):
        with open("/proc/%d/status" % self.process.pid, encoding="ascii") as file:
            return int(re.search(key + r":\s+(\d+)", file.read()).group(1))

    def descriptors(self):
        return len(os.listdir("/proc/%d/fd" % self.process.pid))

    def finish(self, first):
        """Without faults: all that is missing, the rounds from `first` on; then the last words."""
        before = names_in(self.bytes_of(self.output))
        self.start()
        self.finish_running(first, before)

    def finish_running(self, first, before=frozenset()):
        """The same without a start; `before`: the verdicts that a stop has brought out already."""
        self.give_again()
        for number in range(first, len(ROUNDS)):
            self.give(number)
        self.give_again()
        code = self.stop()
        must(code == 0, lambda: "exit code %s: %s" % (code, self.log_text()[-2000:]))
        same = essence(last_words(self.bytes_of(self.output)))
        golden = essence(self.context.undisturbed())
        # A stop judges what was there until then, and says so: that word stays.
        same = {name: said for name, said in same.items() if name in golden or name not in before}
        if "json/summary" in self.settings["exporters"]:
            summary = json.loads(self.bytes_of(self.summary))
            must(summary == self.context.summary, lambda: "the summary is another: %r, not %r; %s"
                 % (summary, self.context.summary, self.log_text()[-3000:]))
        must(same == golden, lambda: "the verdicts are others: %r, not %r; %s"
             % (same, golden, self.log_text()[-3000:]))


def apart(context, place):
    """A run whose log is not below its folder, so that it is written whatever fails there."""
    os.mkdir(os.path.join(place, "run"))
    run = Run(context, os.path.join(place, "run"))
    run.log = os.path.join(place, "log")
    return run


def hit(report):
    try:
        with open(report, encoding="ascii") as file:
            return sum(line.startswith("hit ") for line in file)
    except FileNotFoundError:
        return 0


def disturbed(context, run, rounds=6, binary=None, **variables):
    """Start, one batch by each receiver, reload, more, stop, with faults; the exit code."""
    run.start(wait=False, binary=binary, **variables)
    try:
        end = time.monotonic() + PATIENCE_S
        while not run.ended() and not (run.running() and run.listening()):
            must(time.monotonic() < end, lambda: "it neither listens nor ends: "
                 + run.log_text()[-1500:])
            time.sleep(0.01)
    except Failed:
        if not run.ended():
            raise
    for number in range(rounds):
        if number == rounds // 2:
            run.signal(signal.SIGHUP)
            wait_for(lambda: run.ended() or re.search('"C10(12|03|13)"', run.log_text()),
                     lambda: "the reload is not answered: " + run.log_text()[-1500:])
        run.give(number)
    code = run.end()
    run.unharmed()
    return code


def program(arguments, limit_s=3600, **more):
    """Runs what is built for tests; its last line. A Failed with what it said when it fails."""
    done = subprocess.run(arguments, stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=limit_s, env=environment(**more), check=False)
    text = (done.stdout + done.stderr).decode("utf-8", "replace")
    must(done.returncode == 0, lambda: "%s ended with %d: %s"
         % (os.path.basename(arguments[0]), done.returncode, text[-3000:]))
    lines = done.stdout.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else ""


def remove(place):
    shutil.rmtree(place, ignore_errors=True)
