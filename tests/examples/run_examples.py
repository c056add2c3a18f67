#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The files of examples/: each does what its page says.

    run_examples.py BINARY

Every configuration passes `culprit validate`, the Kubernetes files hold those configurations word
for word and are sound, promtool takes the Prometheus files and every metric they name exists, and
the scripts for torchrun and Slurm answer as described on recorded jobs. Each Markdown page names
only files that are there.
"""
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
EXAMPLES = os.path.join(ROOT, "examples")
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from checks import Checks  # noqa: E402
from process import environment, run  # noqa: E402

BROKEN = os.path.join(ROOT, "tests", "golden", "real", "sigkill-rank1")
HEALTHY = os.path.join(ROOT, "tests", "golden", "real", "healthy")
PATIENCE_S = 60
VARIABLES = {"JOB_ID": "llama-70b", "POD_NAME": "culprit-gateway-0", "KAFKA_BROKERS": "kafka:9093",
             "KAFKA_USER": "culprit", "WANDB_API_KEY": "0" * 40,
             "PAGER_URL": "https://pager.example/", "CHAT_URL": "https://chat.example/"}
# What the examples use and a build may be without: a configuration with one of these cannot be
# validated by it.
OPTIONAL = {"receiver kafka", "exporter kafka"}


def text_of(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def write(path, text, executable=False):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    if executable:
        os.chmod(path, 0o755)


class Suite:
    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder
        self.checks = Checks()
        self.secrets = os.path.join(folder, "secrets")
        for name in ("kafka/password", "kafka/ca.crt", "ingest/token", "tls/tls.crt",
                     "tls/tls.key"):
            path = os.path.join(self.secrets, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            write(path, "not-a-secret\n")

    # -- configurations -------------------------------------------------------------------------

    def local(self, name, text):
        """A copy of a configuration whose secrets lie in our folder."""
        path = os.path.join(self.folder, name)
        write(path, text.replace("/secrets/", self.secrets + "/"))
        return path

    def validate(self, what, *paths):
        arguments = [part for path in paths for part in ("--config", path)]
        done = run(self.binary, "validate", *arguments, folder=self.folder, **VARIABLES)
        absent = {" ".join(found) for found in
                  re.findall(r"there is no (\w+) '(\w+)'", done.errors())}
        if absent and absent <= OPTIONAL:
            print("%s is not validated: this build has no %s" % (what, ", ".join(sorted(absent))))
            return
        self.checks.check(done.code == 0, lambda: "%s: validate ended with %d: %s"
                          % (what, done.code, done.errors() + done.text()))
        # Away from the machine it will run on.
        done = run(self.binary, "validate", "--no-environment", *arguments, folder=self.folder)
        self.checks.check(done.code == 0, lambda: "%s: validate --no-environment ended with %d: %s"
                          % (what, done.code, done.errors()))

    def configurations(self):
        found = sorted(glob.glob(os.path.join(EXAMPLES, "*.yaml")))
        self.checks.check(len(found) >= 3, "only %d configurations were found" % len(found))
        for path in found:
            name = os.path.basename(path)
            self.validate(name, self.local(name, text_of(path)))
            self.checks.check(name in text_of(EXAMPLES, "README.md"),
                              "examples/README.md does not name %s" % name)

    # -- Prometheus -----------------------------------------------------------------------------

    def prometheus(self):
        folder = os.path.join(EXAMPLES, "prometheus")
        if shutil.which("promtool") is None:
            print("promtool is not installed: the Prometheus files are not checked by it")
        else:
            for what, file in (("rules", "rules.yaml"), ("config", "prometheus.yaml")):
                done = run("promtool", "check", what, file, folder=folder)
                self.checks.check(done.code == 0 and b"SUCCESS" in done.out,
                                  lambda: "promtool check %s: %s" % (what, done.errors()))
        sources = "".join(text_of(path) for part in
                          ("base", "pipeline", "receivers", "exporters", "extensions", "cli")
                          for path in glob.glob(os.path.join(ROOT, part, "**", "*.[ch]"),
                                                recursive=True))
        named = set(re.findall(r"\bculprit_[a-z_]+\b", text_of(folder, "rules.yaml")))
        self.checks.check(len(named) >= 4, "rules.yaml names only %r" % named)
        for metric in sorted(named):
            self.checks.check('"%s"' % metric in sources, "there is no metric %s" % metric)

    # -- torchrun -------------------------------------------------------------------------------

    def torchrun(self, job, body, *arguments, **more):
        """Runs the wrapper with a torchrun of ours, a shell script, and a copy of a job."""
        place = tempfile.mkdtemp(dir=self.folder)
        fake = os.path.join(place, "torchrun")
        write(fake, "#!/bin/sh\n" + body, executable=True)
        telemetry = os.path.join(place, "telemetry")
        if job is not None:
            shutil.copytree(job, telemetry)
        done = run(os.path.join(EXAMPLES, "torchrun", "torchrun-culprit"), *arguments,
                   data=b"input of the trainer\n", folder=place, TORCHRUN=fake,
                   CULPRIT=self.binary, CULPRIT_TELEMETRY=telemetry, **more)
        return done, place

    def torchrun_script(self):
        check, equal = self.checks.check, self.checks.equal
        done, place = self.torchrun(BROKEN, 'cat; for a in "$@"; do echo "[$a]"; done\n'
                                    'echo "$CULPRIT_TELEMETRY" >seen\nexit 7\n',
                                    "--nproc-per-node", "8", "train.py", "two words")
        equal(done.code, 7, "torchrun's exit code")
        equal(done.text(), "input of the trainer\n[--nproc-per-node]\n[8]\n[train.py]\n[two words]\n",
              "what torchrun was given")
        equal(text_of(place, "seen").strip(), os.path.join(place, "telemetry"), "CULPRIT_TELEMETRY")
        check("Rank 1 leaked" in done.errors(), "no verdict: " + done.errors())
        check("culprit found something" in done.errors(), "no last word: " + done.errors())
        done, _ = self.torchrun(HEALTHY, "exit 0\n")
        equal(done.code, 0, "the exit code of a healthy job")
        check("found nothing that failed" in done.errors(), "of a healthy job: " + done.errors())
        done, _ = self.torchrun(BROKEN, 'echo "usage: torchrun ($*)"\n', "--help")
        check(done.code == 0 and re.search(r"Exit codes:.*those of torchrun.*64  .*A finding is.*"
                                           r"usage: torchrun \(--help\)", done.text(), re.S),
              "its help: %r" % done.text())
        equal(done.errors(), "", "what is analysed for help")
        check(all(len(line) <= 80 for line in done.text().splitlines()), "its help is too wide")
        done, place = self.torchrun(None, "mkdir -p $CULPRIT_TELEMETRY; head -c 999 /bin/sh "
                                          ">$CULPRIT_TELEMETRY/rank0.jsonl; exit 4\n")
        equal(done.code, 4, "the exit code of a job that left what nobody understands")
        check("could be understood" in done.errors(), "of rubbish: " + done.errors())
        done, _ = self.torchrun(None, "exit 3\n")
        equal(done.code, 3, "the exit code of a job without telemetry")
        check("no telemetry was found" in done.errors(), "without telemetry: " + done.errors())
        done, _ = self.torchrun(BROKEN, "exit 3\n", NODE_RANK="1")
        check(done.code == 3 and "Rank" not in done.errors(), "the second node answers too")
        done, _ = self.torchrun(BROKEN, "kill -9 $$\n")
        equal(done.code, 137, "the exit code of a torchrun that was killed")
        check("Rank 1 leaked" in done.errors(), "no verdict after a kill: " + done.errors())
        self.torchrun_signal()
        script = os.path.join(EXAMPLES, "torchrun", "torchrun-culprit")
        done = run(script, "train.py")
        check(done.code == 64 and "CULPRIT_TELEMETRY" in done.errors(), "without its variable: %r"
              % done.errors())

    def torchrun_signal(self):
        """SIGTERM reaches torchrun, whose exit code counts after it has cleaned up."""
        place = tempfile.mkdtemp(dir=self.folder)
        fake, telemetry = os.path.join(place, "torchrun"), os.path.join(place, "telemetry")
        write(fake, "#!/bin/sh\ntrap 'echo asked >asked; exit 9' TERM\ntouch started\n"
              "while :; do sleep 0.1; done\n", executable=True)
        shutil.copytree(BROKEN, telemetry)
        script = subprocess.Popen([os.path.join(EXAMPLES, "torchrun", "torchrun-culprit")],
                                  cwd=place, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                  env=environment(TORCHRUN=fake, CULPRIT=self.binary,
                                                  CULPRIT_TELEMETRY=telemetry))
        end = time.monotonic() + PATIENCE_S
        while not os.path.exists(os.path.join(place, "started")) and time.monotonic() < end:
            time.sleep(0.02)
        script.send_signal(signal.SIGTERM)
        errors = script.communicate(timeout=PATIENCE_S)[1].decode("utf-8", "replace")
        self.checks.equal(script.returncode, 9, "the exit code after SIGTERM")
        self.checks.check(os.path.exists(os.path.join(place, "asked")), "torchrun was not asked")
        self.checks.check("Rank 1 leaked" in errors, "no verdict after SIGTERM: " + errors)

    # -- Slurm ----------------------------------------------------------------------------------

    def epilog(self, place, **more):
        more.setdefault("SLURM_JOB_ID", "4711")
        return run(os.path.join(EXAMPLES, "slurm", "culprit-epilog"), folder=place,
                   CULPRIT_EPILOG_CONF=os.path.join(place, "epilog.conf"), **more)

    def slurm(self):
        check, equal = self.checks.check, self.checks.equal
        place = tempfile.mkdtemp(dir=self.folder)
        telemetry, reports = os.path.join(place, "telemetry"), os.path.join(place, "reports")
        log = os.path.join(place, "log")
        write(os.path.join(place, "epilog.conf"),
              "CULPRIT=%s\nCULPRIT_TELEMETRY_ROOT=%s\nCULPRIT_REPORT_ROOT=%s\n"
              "CULPRIT_EPILOG_LOG=%s\n" % (self.binary, telemetry, reports, log))
        shutil.copytree(BROKEN, os.path.join(telemetry, "4711"))
        shutil.copytree(HEALTHY, os.path.join(telemetry, "4712"))
        os.makedirs(os.path.join(telemetry, "4713"))
        report = os.path.join(reports, "4711.0")

        done = self.epilog(place)
        equal((done.code, done.out, done.err), (0, b"", b""), "the epilog of a broken job")
        check(text_of(report, "report.txt").startswith("Rank 1 leaked"), "no report")
        found = [json.loads(line) for line in text_of(report, "verdicts.jsonl").splitlines()]
        check(any(verdict["kind"] == "leak" for verdict in found), "the verdicts: %r" % found)
        check("job=4711 " in text_of(log) and "FOUND: Rank 1 leaked" in text_of(log)
              and "followed - see " in text_of(log),
              lambda: "the log: " + text_of(log))
        # Another node: the report is there.
        before = os.stat(os.path.join(report, "report.txt")).st_mtime_ns
        equal(self.epilog(place).code, 0, "the epilog of the second node")
        equal(os.stat(os.path.join(report, "report.txt")).st_mtime_ns, before, "the first report")
        # The job ran again after a requeue.
        self.epilog(place, SLURM_RESTART_COUNT="1")
        check(os.path.exists(os.path.join(reports, "4711.1", "report.txt")), "no second report")

        equal(self.epilog(place, SLURM_JOB_ID="4712").code, 0, "the epilog of a healthy job")
        check("nothing at or above warning" in text_of(log), lambda: "the log: " + text_of(log))
        check(not os.path.exists(os.path.join(reports, "4712.0", "verdicts.jsonl")),
              "verdicts of a healthy job")
        equal(self.epilog(place, SLURM_JOB_ID="4713").code, 0, "the epilog without files")
        check("no telemetry in" in text_of(log), lambda: "the log: " + text_of(log))
        lines = text_of(log)
        equal(self.epilog(place, SLURM_JOB_ID="4714").code, 0, "the epilog without a directory")
        equal(text_of(log), lines, "the log of a job without telemetry")
        self.slurm_never_fails(place, reports, log)

    def slurm_never_fails(self, place, reports, log):
        check, equal = self.checks.check, self.checks.equal
        for job in ("", "../4711", "x"):
            done = self.epilog(place, SLURM_JOB_ID=job)
            equal(done.code, 0, "the epilog of job %r" % job)
        check("is not a number" in text_of(log), "nothing is said of a wrong job id")
        settings = os.path.join(place, "epilog.conf")
        whole = text_of(settings)
        for change, said in (("CULPRIT=/nowhere/culprit\n", "culprit ended with 127"),
                             ("CULPRIT=false\n", "culprit ended with 1"),
                             ("CULPRIT_REPORT_ROOT=/proc/culprit\n", "cannot make /proc"),
                             ("CULPRIT_EPILOG_LOG=/proc/none\nCULPRIT=false\n", None)):
            shutil.rmtree(reports, ignore_errors=True)
            write(settings, whole + change)
            done = self.epilog(place)
            equal(done.code, 0, "the epilog with " + change.strip())
            if said is None:
                check("culprit ended with 1" in done.errors(), "without a log: " + done.errors())
            else:
                check(said in text_of(log), lambda: "%s: the log: %s" % (said, text_of(log)))
        slow = os.path.join(place, "slow")
        write(slow, "#!/bin/sh\nexec sleep 600\n", executable=True)
        write(settings, whole + "CULPRIT=%s\nCULPRIT_TIMEOUT_S=1\n" % slow)
        equal(self.epilog(place, SLURM_RESTART_COUNT="2").code, 0, "the epilog that is too slow")
        check("took longer than 1 s" in text_of(log), lambda: "the log: " + text_of(log))

    # -- all ------------------------------------------------------------------------------------

    def scripts(self):
        found = [os.path.join(EXAMPLES, "slurm", "culprit-epilog"),
                 os.path.join(EXAMPLES, "torchrun", "torchrun-culprit")]
        for path in found:
            self.checks.check(os.access(path, os.X_OK), path + " is not executable")
            self.checks.check("set -eu" in text_of(path), path + " does not set -eu")
        if shutil.which("shellcheck") is None:
            print("shellcheck is not installed: the scripts are not checked by it")
            return
        done = run("shellcheck", *found)
        self.checks.check(done.code == 0, lambda: done.text())

    def pages(self):
        for page in glob.glob(os.path.join(EXAMPLES, "**", "*.md"), recursive=True):
            for link in re.findall(r"\]\(([^)#]+)\)", text_of(page)):
                if "://" not in link:
                    there = os.path.exists(os.path.join(os.path.dirname(page), link))
                    self.checks.check(there, "%s links to %s, which is not there" % (page, link))


def main():
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(os.path.abspath(sys.argv[1]), folder)
        suite.configurations()
        suite.prometheus()
        suite.torchrun_script()
        suite.slurm()
        suite.scripts()
        suite.pages()
    sys.exit(suite.checks.finish())


if __name__ == "__main__":
    main()
