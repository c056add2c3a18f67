#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The kubernetes receiver beside a strict stand-in for an API server.

    run_kubernetes.py BINARY

What each fault leaves behind is counted: every version of an object is handed over once, whatever
happened in between. What must happen is waited for, up to a limit.
"""
import concurrent.futures
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from checks import Checks  # noqa: E402
from ports import free_port  # noqa: E402
from process import environment, run  # noqa: E402
from running import PATIENCE_S, wait_for  # noqa: E402
from stand_in import StandIn  # noqa: E402

QUIET_S = 3  # without a commit: all is stored
SIDE_BY_SIDE = 7  # they mostly wait


def event(reason="Killing", pod="pod-0", number=0):
    return {"involvedObject": {"kind": "Pod", "namespace": "train", "name": pod, "uid": "u-" + pod},
            "reason": reason, "message": "number %d" % number, "type": "Warning",
            "source": {"component": "kubelet", "host": "node-0"}, "count": 1,
            "firstTimestamp": "2026-01-31T09:15:04Z", "lastTimestamp": "2026-01-31T09:15:04Z"}


def pod(node="node-0"):
    return {"spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]},
            "status": {"phase": "Running", "startTime": "2026-01-31T09:15:00Z"}}


def node():
    return {"spec": {}, "status": {"nodeInfo": {"kubeletVersion": "v1.35.4"}, "conditions": [
        {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-31T09:00:00Z"}]}}


def kubeconfig(folder, url, **user):
    path = os.path.join(folder, "kubeconfig")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "here",
                   "clusters": [{"name": "c", "cluster": {"server": url}}],
                   "users": [{"name": "u", "user": user}],
                   "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}]}, file)
    return path


class Culprit:
    """`culprit run` with one kubernetes receiver that watches for a second or two at a time."""

    def __init__(self, binary, folder, url, token, **options):
        self.binary, self.folder = binary, folder
        self.token_file = os.path.join(folder, "token")
        self.rotate(token)
        self.port = free_port()
        self.log = os.path.join(folder, "log")
        self.config = os.path.join(folder, "culprit.yaml")
        options = {"kubeconfig": kubeconfig(folder, url, tokenFile="token"), "watch_timeout": "1s",
                   "max_object_size": "64KiB", **options}
        with open(self.config, "w", encoding="utf-8") as file:
            json.dump({
                "receivers": {"kubernetes": options},
                "exporters": {"json": {"path": os.path.join(folder, "verdicts.jsonl")}},
                "extensions": {"file_storage": {"directory": os.path.join(folder, "store")}},
                "service": {"extensions": ["file_storage"], "checkpoint_interval": "50ms",
                            "telemetry": {"metrics": {"endpoint": "127.0.0.1:%d" % self.port}},
                            "pipelines": {"main": {"receivers": ["kubernetes"], "preset": "all",
                                                   "exporters": ["json"]}}}}, file)
        self.process = None

    def rotate(self, token):
        """As a kubelet does it: another file takes the place."""
        with open(self.token_file + ".new", "w", encoding="ascii") as file:
            file.write(token)
        os.rename(self.token_file + ".new", self.token_file)

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [self.binary, "run", "--config", self.config], stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=log, env=environment())
        self.until(lambda: self.said("C1001") or self.process.poll() is not None)
        return self

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        code = self.process.wait(PATIENCE_S)
        self.process = None
        return code

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def said(self, *words):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return any(all(word in line for word in words) for line in file)

    def metrics(self):
        try:
            with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % self.port,
                                        timeout=PATIENCE_S) as answer:
                return answer.read().decode()
        except OSError:
            return ""

    def count(self, name, **labels):
        """The sum over all series of a counter that have these labels."""
        total = 0
        for line in self.metrics().splitlines():
            if re.match(r"culprit_%s\{" % name, line) and all(
                    '%s="%s"' % pair in line for pair in labels.items()):
                total += int(float(line.rsplit(" ", 1)[1]))
        return total

    def of(self, name, **labels):
        return self.count("kubernetes_receiver_%s_total" % name, **labels)

    def accepted(self):
        return self.count("receiver_accepted_events_total")

    @staticmethod
    def until(holds):
        return bool(wait_for(holds))

    def last_words(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()[-1500:]


class Suite:
    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder
        self.checks = Checks()

    def place(self, name):
        path = os.path.join(self.folder, name)
        os.makedirs(path)
        return path

    def holds(self, culprit, condition, what):
        self.checks.check(culprit.until(condition),
                          lambda: "%s; accepted %d, log: %s" % (what, culprit.accepted(),
                                                                culprit.last_words()))

    def reaches(self, culprit, accepted, what):
        self.holds(culprit, lambda: culprit.accepted() >= accepted, what)
        self.checks.equal(culprit.accepted(), accepted, what)

    # -- cases: each a server and a culprit of its own, since waits grow with each failure ---------

    def changes(self):
        with StandIn() as api:
            for number in range(5):
                api.put("events", "e%d" % number, **event(number=number))
            for number in range(3):
                api.put("pods", "pod-%d" % number, **pod())
            api.put("nodes", "node-0", "", **node())
            with Culprit(self.binary, self.place("changes"), api.url, api.token) as culprit:
                self.reaches(culprit, 9, "the state is handed over")
                api.put("events", "e5", **event(number=5))
                api.put("pods", "pod-0", **dict(pod(), note="changed"))
                api.remove("pods", "pod-1")
                self.reaches(culprit, 12, "changes are handed over")
                api.remove("events", "e5")
                self.holds(culprit, lambda: culprit.of("objects", type="deleted") == 2,
                           "the deletion of an event is seen")
                self.checks.equal(culprit.accepted(), 12, "that an event ends is no event")
                asked = len(api.asked("pods", "watch"))
                self.holds(culprit, lambda: len(api.asked("pods", "watch")) >= asked + 2,
                           "watches that end are begun again")
                self.checks.equal(culprit.of("failed_requests"), 0, "nothing of that is a failure")
                self.checks.equal(culprit.stop(), 0, "exit code")
            self.checks.equal([one for one in api.requests if one.status != 200], [],
                              "no request is wrong")

    def token(self):
        with StandIn() as api:
            api.put("events", "first", **event())
            with Culprit(self.binary, self.place("token"), api.url, api.token) as culprit:
                self.reaches(culprit, 1, "the state is handed over")
                old = api.token
                culprit.rotate("second-token-of-the-tests")
                api.token = "second-token-of-the-tests"
                api.put("events", "second", **event())
                self.reaches(culprit, 2, "a new token in the file is used")
                api.token = "third-token-of-the-tests"
                self.holds(culprit, lambda: culprit.said("C1006", "401, the server does not accept"),
                           "a token that is not accepted is told")
                culprit.rotate(api.token)
                api.put("events", "third", **event())
                self.reaches(culprit, 3, "it goes on with the third token")
                self.holds(culprit, lambda: culprit.said("C1007"), "and says so")
                self.checks.check(not culprit.said(old) and not culprit.said(api.token),
                                  "no token is in the log")

    def status(self, status, words):
        with StandIn() as api:
            with Culprit(self.binary, self.place(str(status)), api.url, api.token,
                         resources="events") as culprit:
                api.put("events", "before", **event())
                self.reaches(culprit, 1, "before %d" % status)
                api.fail("events", status, headers={"Retry-After": "1"} if status == 429 else {})
                self.holds(culprit, lambda: culprit.said("C1006", words), "%d is told" % status)
                api.put("events", "after", **event())
                self.reaches(culprit, 2, "it goes on after %d" % status)
                self.holds(culprit, lambda: culprit.said("C1007"), "%d is over" % status)
                self.checks.equal(culprit.of("failed_requests", status=str(min(status, 500))), 1,
                                  "%d is counted" % status)
                self.checks.equal(culprit.of("gaps"), 0, "%d is no gap" % status)

    def stream(self):
        with StandIn() as api:
            with Culprit(self.binary, self.place("stream"), api.url, api.token) as culprit:
                api.put("pods", "pod-0", **pod())
                self.reaches(culprit, 1, "before the cut")
                api.cut_all()
                api.put("pods", "pod-1", **pod())
                self.reaches(culprit, 2, "it goes on after a cut, without the half line")
                self.checks.check(culprit.of("failed_requests", status="connection") >= 1,
                                  "a cut is counted")
                api.fail("nodes", "garbage", "watch")
                self.holds(culprit, lambda: culprit.of("failed_requests", status="content") == 1,
                           "garbage is counted")
                api.fail("events", "huge", "watch", size=100000)
                self.holds(culprit, lambda: culprit.of("too_long_objects") == 1,
                           "a huge line is counted")
                api.put("nodes", "node-0", "", **node())
                api.put("events", "last", **event())
                self.reaches(culprit, 4, "it goes on after garbage and a huge line")

    def gap(self):
        with StandIn() as api:
            for number in range(2):
                api.put("pods", "pod-%d" % number, **pod())
            api.put("events", "first", **event())
            with Culprit(self.binary, self.place("gap"), api.url, api.token) as culprit:
                self.reaches(culprit, 3, "before the gap")
                api.remove("pods", "pod-1", silently=True)
                api.fail("pods", "gone", "watch")
                self.holds(culprit, lambda: culprit.of("gaps", resource="pods") == 1,
                           "the gap is counted")
                self.reaches(culprit, 4, "what was missed is a deletion, the rest not told again")
                api.fail("events", "empty", "watch")
                api.fail("events", "empty", "watch")
                self.holds(culprit, lambda: culprit.of("gaps", resource="events") == 1,
                           "two empty ends at once are a version that is forgotten")
                api.put("events", "last", **event())
                self.reaches(culprit, 5, "events are not told again")

    def gaps_that_last(self):
        """A server that forgets each version is not made to list everything all the time."""
        times = 5
        with StandIn() as api:
            api.put("pods", "pod-0", **pod())
            for _ in range(times):
                api.fail("pods", "gone", "watch")
                api.fail("pods", "gone", "list")
            with Culprit(self.binary, self.place("gaps"), api.url, api.token) as culprit:
                self.reaches(culprit, 1, "in the end")
                lists = [one.at for one in api.asked("pods", "list")]
                least = sum(0.8 * 2 ** i for i in range(times - 2))
                self.checks.check(len(lists) >= times and lists[-1] - lists[0] >= least,
                                  lambda: "lists wait longer each time: %r" % lists)

    def backup(self):
        with StandIn() as api:
            for number in range(3):
                api.put("pods", "pod-%d" % number, **pod())
            with Culprit(self.binary, self.place("backup"), api.url, api.token,
                         resources="pods") as culprit:
                self.reaches(culprit, 3, "before the backup")
                api.go_back(50)
                self.holds(culprit, lambda: culprit.of("gaps") == 1,
                           "a version from the future is met")
                self.holds(culprit, lambda: culprit.of("repeated_objects") == 3, "listed again")
                self.checks.equal(culprit.accepted(), 3, "nothing was told twice")

    def killed(self):
        """SIGKILL, changes, SIGKILL again, a gap meanwhile."""
        with StandIn() as api:
            for number in range(40):
                api.put("events", "e%d" % number, **event(number=number))
            api.put("pods", "pod-0", **pod())
            place = self.place("killed")
            culprit = Culprit(self.binary, place, api.url, api.token)
            with culprit:
                self.reaches(culprit, 41, "the state is handed over")
                self.stored(culprit)
                culprit.stop(signal.SIGKILL)
                lists = len(api.asked("events", "list"))
                api.put("events", "meanwhile", **event())
                culprit.start()
                self.reaches(culprit, 1, "only what came meanwhile is handed over")
                self.checks.equal(len(api.asked("events", "list")), lists, "no second list")
                self.stored(culprit)
                culprit.stop(signal.SIGKILL)
                api.put("events", "lost", **event())
                api.put("events", "e3", **event(number=333))
                api.forget()
                culprit.start()
                self.reaches(culprit, 2, "after a gap only what is new is handed over")
                self.holds(culprit, lambda: culprit.of("gaps", resource="events") == 1, "gap")
                self.holds(culprit, lambda: culprit.of("repeated_objects", resource="events") == 40,
                           "the others were known")

    def stored(self, culprit):
        """Until a checkpoint holds what was handed over."""
        seen = [0, 0]  # how many commits, and since when

        def quiet():
            commits, now = culprit.count("store_commits_total"), time.monotonic()
            if commits != seen[0]:
                seen[:] = commits, now
            return seen[0] > 0 and now - seen[1] > QUIET_S
        self.holds(culprit, quiet, "a checkpoint")

    def pages(self):
        """A server without streamed lists, own node only, one namespace."""
        with StandIn(streams=False) as api:
            for number in range(7):
                api.put("events", "e%d" % number, **event(number=number))
                api.put("pods", "pod-%d" % number, **pod("node-%d" % (number % 2)))
            api.put("pods", "pod-9", "other", **pod("node-1"))
            api.put("nodes", "node-0", "", **node())
            api.put("nodes", "node-1", "", **node())
            with Culprit(self.binary, self.place("pages"), api.url, api.token, node="node-1",
                         namespaces=["train"], page_size=2) as culprit:
                self.reaches(culprit, 11, "seven events, three pods, one node")
                self.checks.equal(len(api.asked("events", "page", 200)), 4, "pages of events")
                self.checks.equal({one.query.get("fieldSelector") for one in api.asked("pods")},
                                  {"spec.nodeName=node-1"}, "pods of the node")
                api.put("events", "live", **event())
                self.reaches(culprit, 12, "then it watches")
                self.checks.equal(culprit.stop(), 0, "exit code")

    def once(self):
        with StandIn() as api:
            for number in range(5):
                api.put("events", "e%d" % number, **event(number=number))
            for _ in range(9):
                api.fail("nodes", 403)
            place = self.place("once")
            culprit = Culprit(self.binary, place, api.url, api.token, page_size=2)
            done = run(self.binary, "run", "--once", "--config", culprit.config)
            self.checks.check("5 events accepted" in done.errors(), done.errors)
            self.checks.check("resources: [nodes], verbs: [list, watch]} in a ClusterRole"
                              in done.errors(), done.errors)

    def access(self):
        """Kubeconfigs that cannot be used, in words."""
        place = self.place("access")
        for user, words in (({"exec": {"command": "login"}}, "runs another program to log in"),
                            ({"username": "u"}, "`username`, which is not supported"),
                            ({"tokenFile": "absent"}, "absent cannot be read"),
                            ({"client-certificate-data": "%%%"}, "is not base64")):
            culprit = Culprit(self.binary, place, "http://127.0.0.1:9", "t")
            kubeconfig(place, "http://127.0.0.1:9", **user)
            done = run(self.binary, "run", "--config", culprit.config)
            self.checks.check(words in done.errors() and done.code != 0, done.errors)
        culprit = Culprit(self.binary, place, "http://10.0.0.1:9", "t")
        done = run(self.binary, "run", "--config", culprit.config)
        self.checks.check("everybody could read the token" in done.errors(), done.errors)


def main(binary):
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(os.path.abspath(binary), folder)
        statuses = ((403, "resources: [events], verbs: [list, watch]} in a ClusterRole"),
                    (404, "the server answers 404: as the test wants it"),
                    (429, "the server answers 429: as the test wants it"),
                    (503, "the server answers 503: as the test wants it"))
        cases = [lambda case=case: suite.status(*case) for case in statuses]
        cases += [suite.killed, suite.changes, suite.token, suite.stream, suite.gap, suite.gaps_that_last,
                  suite.backup, suite.pages, suite.once, suite.access]
        with concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            for done in [pool.submit(case) for case in cases]:
                done.result()
        return suite.checks.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
