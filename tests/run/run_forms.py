#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rows of a site's own (docs/forms.md), named by `forms:` in the configuration.

    run_forms.py BINARY

Lines are read by them from every receiver and inside every envelope, once and live. A file that is
wrong or missing stops a start with file, line and column, and changes nothing at a reload; what is
read after a good reload is read by the new rows.
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from checks import Checks  # noqa: E402
from own_metrics import metric_sum  # noqa: E402
from ports import free_ports  # noqa: E402
from process import environment  # noqa: E402
from running import PATIENCE_S, Running, wait_for  # noqa: E402

ACCEPTED = "culprit_receiver_accepted_events_total"
RELOADED = "culprit_config_last_reload_successful"
ROWS = """form site_%(word)s
  text   worker {rank} on {host} %(word)s: status {exit_code}
  kind   launcher_failed
  role   report
  sample worker 2 on gpu-a01 %(word)s: status 1
  gives  host=gpu-a01 rank=2 exit_code=1
"""


def line(word, rank=2):
    return "2026-11-20T10:00:00Z worker %d on gpu-a01 %s: status 1" % (rank, word)


def tagged(text):
    return json.dumps({"source": "launcher_log", "timestamp_ns": 1795168800000000000,
                       "message": text})


def carried(text):
    """The line behind what carries logs, as a file each."""
    return {
        "plain.log": text,
        "docker.log": json.dumps({"log": text + "\n", "stream": "stderr",
                                  "time": "2026-11-20T10:00:00.1Z"}),
        "cri.log": "2026-11-20T10:00:00.1Z stderr F " + text,
        "journal.json": json.dumps({"MESSAGE": text, "__REALTIME_TIMESTAMP": "1795168800000000",
                                    "_HOSTNAME": "gpu-a01"}),
        "tagged.jsonl": tagged(text),
    }


class Suite:
    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder
        self.checks = Checks()
        os.makedirs(os.path.join(folder, "etc", "forms.d"))
        self.rows = self.path("etc", "forms.d", "site.forms")

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def put(self, path, text):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def culprit(self, *words):
        done = subprocess.run([self.binary, *words], stdin=subprocess.DEVNULL, text=True,
                              cwd=self.folder, env=environment(), capture_output=True, check=False)
        return done.returncode, done.stdout, done.stderr

    def config(self, name, forms):
        return self.put(self.path("etc", name), json.dumps({
            "forms": forms,
            "receivers": {"file": {"include": [self.path("in.log")], "start_at": "beginning"}},
            "exporters": {"json": {"path": self.path("out.jsonl")}},
            "service": {"pipelines": {"p": {"receivers": ["file"], "preset": "all",
                                            "exporters": ["json"]}}}}, indent=1))

    # -- once ----------------------------------------------------------------------------------

    def events(self, path, *words):
        code, _, err = self.culprit("analyze", "--quiet", "--stats", "stats.json", *words, path)
        self.checks.check(code in (0, 65), "analyze %s: %d %s" % (path, code, err))
        with open(self.path("stats.json"), encoding="utf-8") as file:
            text = file.read()
        return text.count('"launcher_failed": 1')

    def analyzes(self):
        self.put(self.rows, ROWS % {"word": "gone"})
        config = self.config("a.yaml", ["forms.d/*.forms"])
        for name, text in carried(line("gone")).items():
            path = self.put(self.path(name), text + "\n")
            self.checks.equal(self.events(path), 0, name + ": no such row is built in")
            for words in (("--forms", self.rows), ("--config", config),
                          ("--config", config, "--set", "forms=etc/forms.d/site.forms")):
                self.checks.check(self.events(path, *words) > 0, name + " by " + str(words))
        self.checks.equal(self.events(self.path("plain.log"), "--config", config, "--set",
                                      "forms=[]"), 0, "an override takes them away")
        code, out, _ = self.culprit("analyze", "--print-config", "--forms", self.rows)
        self.checks.check(code == 0 and "forms:\n  - \"%s\"\n" % self.rows in out, out[-300:])
        code, out, err = self.culprit("config", "print", "--config", config)
        self.checks.check(code == 0 and out.count("forms: [\"%s\"]" % self.path(
            "etc", "forms.d", "*.forms")) == 1, out + err)

    # -- what is wrong -------------------------------------------------------------------------

    def refused(self, forms, place, words, samples=False):
        """validate says it; so does a start, unless it is a matter of samples."""
        config = self.config("w.yaml", forms)
        for command in (("validate", config), ("run", "--once", "--config", config)):
            code, _, err = self.culprit(*command)
            if samples and command[0] == "run":
                self.checks.equal(code, 0, "samples stop no start: " + err)
                continue
            self.checks.equal(code, 78, command[0] + ": " + err)
            self.checks.check(any(said.startswith(place) and words in said
                                  for said in err.splitlines()), "%s %s: %s" % (place, words, err))

    def mistakes(self):
        config, other = self.path("etc", "w.yaml"), self.path("etc", "forms.d", "other.forms")
        self.put(self.path("in.log"), line("gone") + "\n")
        self.refused(["nowhere.forms"], config + ":3:", "nowhere.forms does not exist")
        self.refused(["forms.d"], config + ":3:", "forms.d cannot be read: Is a directory")
        self.refused([3], config + ":3:", "text")
        self.put(self.rows, "form x\n  text   worker {rnak} went away\n")
        self.put(other, "form y\n  colour red\n")
        self.refused(["forms.d/*.forms"], self.rows + ":2:18: ", "'rnak' is no name of a part")
        self.refused(["forms.d/*.forms"], other + ":2:3: ", "'colour' is no field")
        self.put(self.rows, ROWS % {"word": "gone"})
        self.put(other, ROWS % {"word": "gone"})
        self.refused(["forms.d/*"], self.rows + ":1:6: ", "there is a form site_gone already, at "
                     + other + ":1")
        os.remove(other)
        self.put(self.rows, (ROWS % {"word": "gone"}).replace("rank=2", "rank=3"))
        self.refused(["forms.d/*"], self.rows + ":5:1: ", "the sample gives", samples=True)
        self.put(self.rows, "#" * (4 << 20) + "\n")
        self.refused(["forms.d/*"], self.rows + ":1:1: ", "the file is larger than")
        for i in range(300):
            self.put(self.path("etc", "forms.d", "%d.forms" % i), "")
        self.refused(["forms.d/*"], config + ":3:", "more than 256 files")
        for i in range(300):
            os.remove(self.path("etc", "forms.d", "%d.forms" % i))
        self.put(self.rows, "")
        code, out, err = self.culprit("validate", self.config("w.yaml", ["forms.d/*.f"]))
        self.checks.check(code == 0 and "no file matches" in err, out + err)
        code, out, err = self.culprit("validate", "--no-environment",
                                      self.config("w.yaml", ["/nowhere/site.forms"]))
        self.checks.equal((code, err), (0, ""), "away from the machine")

    # -- live ----------------------------------------------------------------------------------

    def document(self, folder, metrics, endpoint):
        return {"forms": ["site.forms"],
                "receivers": {"file": {"include": [os.path.join(folder, "*.log")],
                                       "start_at": "beginning"},
                              "http": {"endpoint": "127.0.0.1:%d" % endpoint}},
                "exporters": {"json": {"path": os.path.join(folder, "out.jsonl")}},
                "service": {"telemetry": {"metrics": {"endpoint": "127.0.0.1:%d" % metrics}},
                            "pipelines": {"p": {"receivers": ["file", "http"], "preset": "all",
                                                "exporters": ["json"]}}}}

    def reload(self, run, metrics, good):
        """The log says a thing once in ten seconds, the metric each time that it changes."""
        run.process.send_signal(signal.SIGHUP)
        self.checks.check(wait_for(lambda: metric_sum(metrics, RELOADED) == good, run.process),
                          "a reload is %s: %s" % (good, run.log()[-800:]))

    def reloads(self):
        folder = self.path("live")
        os.makedirs(folder)
        rows, log = os.path.join(folder, "site.forms"), os.path.join(folder, "a.log")
        metrics, endpoint = free_ports(2)
        self.put(rows, ROWS % {"word": "gone"})
        self.put(log, "")
        with Running(self.binary, folder, self.document(folder, metrics, endpoint)) as run:
            def comes(words, more, what):
                """Of these lines so many events come, of the last one in any case."""
                before = metric_sum(metrics, ACCEPTED) or 0
                with open(log, "a", encoding="utf-8") as file:
                    for each in words:
                        comes.rank += 1
                        file.write(line(each, comes.rank) + "\n")
                wait_for(lambda: (metric_sum(metrics, ACCEPTED) or 0) >= before + more,
                         run.process)
                self.checks.equal((metric_sum(metrics, ACCEPTED) or 0) - before, more, what)
            comes.rank = 0
            comes(["lost", "gone"], 1, "rows of the start")
            self.put(rows, "form x\n  text   worker {rnak} went away\n")
            self.reload(run, metrics, False)
            self.checks.check(rows + ":2:18: forms: 'rnak' is no name of a part" in run.log(),
                              "its place is told: " + run.log()[-800:])
            comes(["lost", "gone"], 1, "the old rows stay in use")
            self.put(rows, ROWS % {"word": "lost"})
            self.reload(run, metrics, True)
            comes(["gone", "lost"], 1, "the new rows are used")
            os.remove(rows)
            self.reload(run, metrics, False)
            comes(["gone", "lost"], 1, "without the file")
            self.put(rows, ROWS % {"word": "gone"})
            self.reload(run, metrics, True)
            comes(["lost", "gone"], 1, "with it again")
            self.posts(endpoint, metrics)
            self.passes_on(endpoint, metrics)
            run.stop(self.checks, "reloads")

    def posts(self, endpoint, metrics):
        before = metric_sum(metrics, ACCEPTED)
        request = urllib.request.Request("http://127.0.0.1:%d/v1/events" % endpoint,
                                         tagged(line("gone", 77)).encode(),
                                         {"Content-Type": "application/x-ndjson"})
        urllib.request.urlopen(request, timeout=PATIENCE_S).close()
        self.checks.equal(metric_sum(metrics, ACCEPTED) - before, 1, "over HTTP")

    def passes_on(self, endpoint, metrics):
        """A record that another culprit read by its rows is read by ours."""
        other = self.path("other.log")
        self.put(other, line("gone", 78) + "\n")
        self.put(self.rows, ROWS % {"word": "gone"})
        config = self.put(self.path("etc", "pass.yaml"), json.dumps({
            "forms": ["forms.d/site.forms"],
            "receivers": {"file": {"include": [other], "start_at": "beginning"}},
            "exporters": {"http": {"endpoint": "http://127.0.0.1:%d" % endpoint}},
            "service": {"pipelines": {"p": {"receivers": ["file"], "exporters": ["http"]}}}}))
        before = metric_sum(metrics, ACCEPTED)
        code, _, err = self.culprit("run", "--once", "--config", config)
        self.checks.equal(code, 0, "passed on: " + err)
        self.checks.equal(metric_sum(metrics, ACCEPTED) - before, 1, "what was passed on")


def main():
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(os.path.abspath(sys.argv[1]), folder)
        suite.analyzes()
        suite.mistakes()
        suite.reloads()
        return suite.checks.finish()


if __name__ == "__main__":
    sys.exit(main())
