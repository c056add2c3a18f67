#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Node evidence and telemetry of a job meet in a gateway, over HTTP.

    run_forward.py BINARY

Two senders, one with telemetry and Flight Recorder dumps of a job, one with kernel logs, GPU
samples and Kubernetes' objects of its nodes, post to one gateway, which must find what `analyze`
finds in all files: one incident, its root a GPU that was lost, the hang its consequence. Then the
same while senders and gateway are killed, where every record must come out of the gateway once.
What the exporter does with each kind of bad answer is a table.
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
import verdicts  # noqa: E402
from checks import Checks  # noqa: E402
from frame_sink import FrameSink  # noqa: E402
from ports import free_port  # noqa: E402
from process import environment, run  # noqa: E402
from running import PATIENCE_S, wait_for  # noqa: E402

INCIDENTS = os.path.join(HERE, "..", "..", "bench", "diagnosis", "run")
FAST = {"retry_on_failure": {"initial_interval": "50ms", "max_interval": "200ms"}}


def essence(found):
    """What people are told; the last state of each verdict."""
    return sorted(([v["id"], v["pattern"], v["kind"], v["entities"], v["headline"],
                    v["attributes"].get("culprit.root"), sorted(map(str, v["related"]))]
                   for v in found), key=str)


class Culprit:
    def __init__(self, suite, name, document):
        self.binary, self.folder = suite.binary, os.path.join(suite.folder, name)
        os.makedirs(self.folder, exist_ok=True)
        self.config, self.log = self.path("culprit.yaml"), self.path("log")
        document.setdefault("extensions", {})["file_storage"] = {"directory": self.path("store")}
        document["service"].update(extensions=["file_storage"], checkpoint_interval="200ms")
        with open(self.config, "w", encoding="utf-8") as file:
            json.dump(document, file)
        self.process, self.begins = None, 0

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self):
        with open(self.log, "ab") as log:
            self.begins = log.tell()
            self.process = subprocess.Popen([self.binary, "run", "--config", self.config],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env=environment())
        return self

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        wait_for(lambda: b'"C1001"' in self.said(), self.process)
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)

    def said(self):
        with open(self.log, "rb") as file:
            file.seek(self.begins)
            return file.read()

    def found(self):
        if not os.path.exists(self.path("verdicts.jsonl")):
            return []
        with open(self.path("verdicts.jsonl"), encoding="utf-8") as file:
            text = file.read()
        return verdicts.read_lines(text[:text.rfind("\n") + 1])


class Suite:
    def __init__(self, binary, folder):
        self.binary, self.folder, self.checks = binary, folder, Checks()

    # -- configurations --------------------------------------------------------------------------

    def sender(self, name, include, url, **options):
        return Culprit(self, name, {
            "receivers": {"file": {"include": include}},
            "exporters": {"http": {"endpoint": url, "sender": name, "timeout": "5s",
                                   "sending_queue": {"batch": {"max_size": "64KiB"}},
                                   **FAST, **options}},
            "service": {"pipelines": {"forward": {"receivers": ["file"], "exporters": ["http"]}}}})

    def gateway(self, name, port, relay):
        timing = {"evaluate_every": "1s", "allowed_lateness": "1s", "settle": "1s",
                  "idle_timeout": "3s"}
        return Culprit(self, name, {
            "receivers": {"http": {"endpoint": "127.0.0.1:%d" % port, "ack": "stored"}},
            "exporters": {
                "json": {"path": os.path.join(self.folder, name, "verdicts.jsonl")},
                "http": {"endpoint": relay, "sender": name, "timeout": "5s", **FAST}},
            "service": {"pipelines": {
                "all": dict({"receivers": ["http"], "preset": "all", "exporters": ["json"]},
                            **timing),
                "relay": {"receivers": ["http"], "exporters": ["http"]}}}})

    # -- the cases -------------------------------------------------------------------------------

    def make_incident(self):
        kept = os.path.join(self.folder, "made")
        done = subprocess.run([sys.executable, "-B", INCIDENTS, self.binary, "--classes", "gpu",
                               "--cases", "1", "--keep", kept, "--jobs", "1"],
                              capture_output=True, timeout=PATIENCE_S, check=False,
                              env=environment())
        self.input = os.path.join(kept, "none", "gpu-000", "input")
        self.checks.check(done.returncode == 0 and os.path.isdir(self.input),
                          "an incident is made: " + done.stderr.decode()[-500:])
        analyzed = run(self.binary, "analyze", "--output", "verdicts", self.input)
        self.wanted = essence(verdicts.read_lines(analyzed.text()))
        self.checks.check({each[1] for each in self.wanted} >= {"gpu_fault", "nccl_hang"},
                          "the incident has a lost GPU and a hang: %r" % self.wanted)

    def senders(self, url, mark=""):
        job = ["*/telemetry/*", "*/dumps/*", "rank_map.jsonl"]
        node = ["*/kern*", "*/journal*", "*/dcgm*", "kubernetes/*"]
        return [self.sender(name + mark, [os.path.join(self.input, one) for one in include], url)
                for name, include in (("job", job), ("node", node))]

    def arrives_as_it_was(self):
        """What the senders post, without a gateway; the rest is compared with it."""
        with FrameSink() as sink:
            sizes = []
            for sender in self.senders(sink.url, "-sink"):
                sender.start()
                wait_for(lambda sender=sender: b'"C1001"' in sender.said())
                self.checks.equal(sender.stop(), 0, "exit code of a sender")
                sizes.append(len(sink.values()))
            self.posted = sink.values()
            self.checks.equal(sink.wrong, [], "what was wrong with the requests")
            self.checks.check(0 < sizes[0] < sizes[1], "both senders have posted: %r" % sizes)
            records = list(sink.taken.values())
        lines = set()
        for folder, _, names in os.walk(self.input):
            for name in names:
                with open(os.path.join(folder, name), "rb") as file:
                    data = file.read()
                lines |= {data, *data.split(b"\n")}
        self.checks.check(all(value in lines for value in self.posted), "each as it came")
        formats = {record.headers["culprit-format"] for record in records}
        self.checks.check(len(formats) >= 4, "several formats: %r" % formats)
        for record in records:
            if record.headers["culprit-format"] == "stormlog":
                continue
            self.checks.check("culprit-path" in record.headers, "path in %r" % record.headers)

    def ends_well(self, senders, gateway, relay):
        """All has arrived and come out of the gateway once, and it says what analyze says."""
        for one in senders:  # what they have seen is delivered at the stop
            self.checks.equal(one.stop(), 0, "exit code of a sender")
        self.checks.check(wait_for(lambda: len(relay.taken) >= len(self.posted)),
                          "%d of %d arrive" % (len(relay.taken), len(self.posted)))
        self.checks.equal(gateway.stop(), 0, "exit code of the gateway")
        self.checks.equal(essence(gateway.found()), self.wanted, "what the gateway finds")
        self.checks.check(relay.values() == self.posted, "nothing lost, nothing twice: %d of %d"
                          % (len(relay.values()), len(self.posted)))
        self.checks.equal(relay.wrong, [], "what was wrong with the requests")

    def meets_in_the_gateway(self):
        with FrameSink() as relay:
            port = free_port()
            gateway = self.gateway("gateway", port, relay.url).start()
            self.ends_well([one.start() for one in self.senders("http://127.0.0.1:%d" % port)],
                           gateway, relay)

    def killed(self):
        """Senders and gateway are killed in turn while records are under way."""
        with FrameSink() as relay:
            port = free_port()
            gateway = self.gateway("gateway-k", port, relay.url).start()
            senders = [one.start() for one in self.senders("http://127.0.0.1:%d" % port, "-k")]
            everybody = [gateway, *senders]
            for step in range(9):
                before = len(relay.taken)
                # Dumps come only at the end, so there may be nothing more.
                wait_for(lambda before=before: len(relay.taken) > before, patience_s=0.5)
                everybody[step % 3].kill()
                everybody[step % 3].start()
            self.ends_well(senders, gateway, relay)

    def bad_answers(self):
        """Each kind of answer, and what becomes of 40 records, of which the 7th is special."""
        lines = ['{"timestamp_ns": %d, "UUID": "GPU-1", "fields": {"DCGM_FI_DEV_GPU_TEMP": %d}}\n'
                 % (1700000000000000000 + i, 30 + i) for i in range(40)]
        path = os.path.join(self.folder, "samples.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(lines)
        ok = (200, {})

        def with_the_7th(status):
            return lambda _, records: (status, {}) if any(
                record.number == 7 for record in records) else ok
        table = [
            ("503, then taken", lambda number, _: (503, {}) if number < 3 else ok, 40),
            ("429 with Retry-After", lambda number, _: (429, {"Retry-After": "1"})
             if number == 0 else ok, 40),
            ("closed connections", lambda number, _: None if number < 3 else ok, 40),
            ("401, then taken", lambda number, _: (401, {}) if number < 3 else ok, 40),
            ("404, then taken", lambda number, _: (404, {}) if number < 3 else ok, 40),
            ("415, then taken", lambda number, _: (415, {}) if number < 3 else ok, 40),
            ("302, then taken", lambda number, _: (302, {"Location": "/"})
             if number < 3 else ok, 40),
            ("413 for more than 5", lambda _, records: (413, {}) if len(records) > 5 else ok, 40),
            ("413 for one", with_the_7th(413), 39),
            ("400 for one", with_the_7th(400), 39),
            ("422 for one", with_the_7th(422), 39),
        ]
        for i, (what, answer, arrive) in enumerate(table):
            with FrameSink(answer) as sink:
                sender = self.sender("bad-%d" % i, [path], sink.url,
                                     compression="gzip" if i % 2 else "none").start()
                came = wait_for(lambda: len(sink.taken) == arrive)
                self.checks.check(came, "%s: %d of %d arrive" % (what, len(sink.taken), arrive))
                self.checks.equal(sender.stop(), 0, what + ": exit code")
                self.checks.equal(sink.wrong, [], what)
                self.checks.equal(len(sink.taken), arrive, what)
                self.checks.equal(sink.repeats, 0, what + ": none comes twice")
                self.checks.equal(b'"C3006"' in sender.said(), arrive < 40, what + ": C3006")

    def all(self):
        for case in (self.bad_answers, self.make_incident, self.arrives_as_it_was,
                     self.meets_in_the_gateway, self.killed):
            begun = time.monotonic()
            case()
            print("%s: %.1f s" % (case.__name__, time.monotonic() - begun), flush=True)


def main(binary):
    with tempfile.TemporaryDirectory(prefix="culprit-forward-") as folder:
        suite = Suite(binary, folder)
        suite.all()
    return suite.checks.finish()


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
