# SPDX-License-Identifier: Apache-2.0
"""The package on a machine with systemd (machine.py): installed, at work in its sandbox, reloaded,
killed, upgraded, removed, purged."""
import json
import os
import re
import shutil
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
JOB = os.path.join(ROOT, "tests", "golden", "real", "sigkill-rank1")
PATIENCE_S = 60
# $0: a folder with a job's telemetry. Prints the status of the answer.
POST = 'cat "$0"/rank*/*.jsonl | curl -sS -o /dev/null -w "%{http_code}" --data-binary @- ' \
       '-H "Content-Type: application/x-ndjson" http://127.0.0.1:4318/v1/events'
CONFFILES = ["/etc/culprit/culprit.yaml", "/etc/default/culprit"]
# Outside these nothing may have changed after a purge.
KEPT_BY_OTHERS = re.compile(r"/(run|tmp|dev|proc|sys|root|var/(lib/(dpkg|apt|private|systemd)|log"
                            r"|tmp|cache))(/|$)|/etc/\.pwd\.lock$|/usr$|/etc$|/var$|/var/lib$")
MANUAL_CACHE = "/var/cache/man/"  # man-db tidies it up by itself


def wait_for(what, seconds=PATIENCE_S):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if what():
            return True
        time.sleep(0.05)
    return False


class Installed:
    def __init__(self, checks, machine, deb):
        self.checks, self.machine = checks, machine
        shutil.copy(deb, machine.path("/tmp/culprit.deb"))

    def run(self, *command, wanted=0, data=None):
        done = self.machine.run(*command, data=data)
        self.checks.check(done.returncode == wanted, lambda: "%s: exit code %d, not %d: %s" % (
            " ".join(command), done.returncode, wanted, (done.stdout + done.stderr)[-600:]))
        return done.stdout.strip()

    def value(self, name):
        return self.machine.run("systemctl", "show", "-P", name, "culprit").stdout.strip()

    def journal(self):
        return self.machine.run("journalctl", "--no-pager", "-q", "-o", "cat", "-u",
                                "culprit").stdout

    def becomes(self, name, wanted, what):
        fine = wait_for(lambda: self.value(name) == wanted)
        self.checks.check(fine, lambda: "%s: %s is %s, not %s: %s" % (
            what, name, self.value(name), wanted, self.journal()[-600:]))

    def everything(self):
        before = self.machine.written()
        self.run("dpkg", "-i", "/tmp/culprit.deb")
        self.started()
        self.sandboxed()
        self.reads_files()
        self.works()
        self.reloaded()
        self.killed()
        self.refused()
        self.upgraded()
        self.removed()
        self.purged(before)

    def started(self):
        self.becomes("ActiveState", "active", "after the installation")
        self.checks.equal(self.run("systemctl", "is-enabled", "culprit"), "enabled", "is-enabled")
        verified = self.machine.run("systemd-analyze", "verify",
                                    "/lib/systemd/system/culprit.service")
        self.checks.equal((verified.returncode, verified.stdout + verified.stderr), (0, ""),
                          "systemd-analyze verify")
        self.checks.check("/man1/culprit.1" in self.run("man", "-w", "culprit"), "man -w culprit")
        self.checks.check("/man5/" in self.run("man", "-w", "culprit.yaml"), "man -w culprit.yaml")
        ready = self.run("curl", "-sS", "http://127.0.0.1:13133/readyz")
        self.checks.check('"status":"ok"' in ready, "readyz says " + ready)
        self.checks.check("C1001" in self.journal(), "the log is not in the journal")

    def sandboxed(self):
        """The rules of the unit are in force on the process that runs."""
        process = self.value("MainPID")
        status = dict(line.split(":\t", 1) for line in
                      self.run("cat", "/proc/%s/status" % process).splitlines() if ":\t" in line)
        equal = self.checks.equal
        equal(status["NoNewPrivs"], "1", "NoNewPrivs")
        equal(status["Seccomp"], "2", "Seccomp")
        for kind in ("CapEff", "CapPrm", "CapBnd", "CapAmb"):
            equal(int(status[kind], 16), 0, kind)
        user = int(status["Uid"].split()[0])
        self.checks.check(61184 <= user <= 65519, "it runs as user %d" % user)
        listens = {line.split()[1] for line in self.run("cat", "/proc/net/tcp").splitlines()[1:]
                   if line.split()[3] == "0A"}
        equal(sorted(listens), ["0100007F:%04X" % port for port in (4318, 8888, 9464, 13133)],
              "where it listens")
        six = self.run("cat", "/proc/net/tcp6").splitlines()[1:]
        equal([line for line in six if line.split()[3] == "0A"], [], "where it listens, IPv6")
        kept = self.run("stat", "-L", "-c", "%a %u", "/var/lib/culprit")
        equal(kept, "750 %d" % user, "mode and owner of /var/lib/culprit")

    def write(self, path, text):
        os.makedirs(os.path.dirname(self.machine.path(path)), exist_ok=True)
        with open(self.machine.path(path), "w", encoding="utf-8") as file:
            file.write(text)

    def stopped(self):
        """Stops it -> the verdicts that it wrote."""
        self.run("systemctl", "stop", "culprit")
        self.checks.equal(self.value("Result"), "success", "the result of stopping")
        return [json.loads(line) for line in
                self.run("cat", "/var/lib/culprit/verdicts.jsonl").splitlines()]

    def reads_files(self):
        """Files of others, in a folder that /etc/default/culprit names and a group may read."""
        defaults = self.run("cat", "/etc/default/culprit") + "\n"
        self.write("/etc/default/culprit", defaults + "TELEMETRY_DIR=/srv/telemetry\n")
        shutil.copytree(JOB, self.machine.path("/srv/telemetry"))
        self.run("chgrp", "-R", "adm", "/srv/telemetry")
        self.run("chmod", "-R", "u=rwX,g=rX,o=", "/srv/telemetry")
        self.run("systemctl", "restart", "culprit")
        self.checks.equal(self.stopped(), [], "verdicts about files that it may not read")
        place = "/etc/systemd/system/culprit.service.d"
        self.write(place + "/group.conf", "[Service]\nSupplementaryGroups=adm\n")
        self.run("systemctl", "daemon-reload")
        self.run("systemctl", "start", "culprit")
        verdicts = self.stopped()
        self.checks.check([each for each in verdicts if each.get("kind") == "leak"],
                          lambda: "files of its group: no leak among %r" % verdicts)
        self.write("/etc/default/culprit", defaults)
        self.run("sh", "-c", "rm -r /srv/telemetry %s /var/lib/culprit/*" % place)
        self.run("systemctl", "daemon-reload")
        self.run("systemctl", "start", "culprit")

    def works(self):
        """A real job, posted; then its verdict at the stop, and the store whole."""
        shutil.copytree(JOB, self.machine.path("/tmp/job"))
        self.checks.equal(self.run("sh", "-c", POST, "/tmp/job"), "200", "posting events")
        verdicts = self.stopped()
        leaks = [verdict for verdict in verdicts if verdict.get("kind") == "leak"]
        self.checks.check(leaks, lambda: "no leak among %r" % verdicts)
        self.checks.equal(self.run("stat", "-L", "-c", "%a", "/var/lib/culprit/verdicts.jsonl"),
                          "640", "mode of the verdicts")
        self.run("culprit", "store", "check", "/var/lib/culprit/store")
        self.run("systemctl", "start", "culprit")
        self.becomes("ActiveState", "active", "after another start")

    def reloaded(self):
        process = self.value("MainPID")
        self.run("systemctl", "reload", "culprit")
        self.checks.check(wait_for(lambda: "C1012" in self.journal()),
                          lambda: "no reload: " + self.journal()[-600:])
        with open(self.machine.path("/etc/culprit/culprit.yaml"), "a", encoding="utf-8") as file:
            file.write("nonsense: true\n")
        self.run("systemctl", "reload", "culprit", wanted=1)
        self.checks.check("nonsense" in self.journal(), "the reload does not say why it failed")
        self.checks.equal((self.value("ActiveState"), self.value("MainPID")), ("active", process),
                          "after a reload that was refused")

    def killed(self):
        """The configuration has a mistake now: a start fails, says so, and is not repeated."""
        self.run("systemctl", "restart", "culprit", wanted=1)
        self.checks.equal((self.value("ExecMainStatus"), self.value("ActiveState"),
                           self.value("NRestarts")), ("78", "failed", "0"), "with a mistake")
        path = self.machine.path("/etc/culprit/culprit.yaml")
        with open(path, encoding="utf-8") as file:
            text = file.read().replace("nonsense: true\n", "# mine\n")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        self.run("systemctl", "reset-failed", "culprit")
        self.run("systemctl", "start", "culprit")
        self.run("systemctl", "kill", "-s", "KILL", "culprit")
        self.becomes("NRestarts", "1", "after kill -9")
        self.becomes("ActiveState", "active", "after kill -9")

    def refused(self):
        """The sandbox holds: files of others are read, and nothing but its own is written."""
        process = self.value("MainPID")
        enter = ["nsenter", "--target", process, "--mount", "--root", "--wd=/"]
        for path in ("/usr/share/x", "/etc/x", "/var/log/x", "/root/x", "/home/x"):
            done = self.machine.run(*enter, "touch", path)
            self.checks.check(done.returncode != 0 and not os.path.exists(self.machine.path(path)),
                              path + " can be written")
        self.run(*enter, "test", "-r", "/tmp")
        self.checks.check(self.machine.run(*enter, "ls", "/tmp").stdout == "", "/tmp is shared")

    def upgraded(self):
        process = self.value("MainPID")
        self.run("dpkg", "-i", "/tmp/culprit.deb")
        self.becomes("ActiveState", "active", "after an upgrade")
        self.checks.check(self.value("MainPID") != process, "an upgrade does not restart it")
        with open(self.machine.path("/etc/culprit/culprit.yaml"), encoding="utf-8") as file:
            self.checks.check(file.read().endswith("# mine\n"),
                              "an upgrade loses the user's changes")
        self.run("systemctl", "disable", "--now", "culprit")
        self.run("dpkg", "-i", "/tmp/culprit.deb")
        self.checks.equal((self.value("ActiveState"), self.value("UnitFileState")),
                          ("inactive", "disabled"), "an upgrade of what was disabled")
        self.run("systemctl", "enable", "--now", "culprit")

    def removed(self):
        self.run("dpkg", "-r", "culprit")
        self.becomes("ActiveState", "inactive", "after the removal")
        for path in CONFFILES + ["/var/lib/culprit/verdicts.jsonl", "/var/lib/culprit/store"]:
            self.run("test", "-e", path)
        self.run("test", "-e", "/usr/bin/culprit", wanted=1)

    def purged(self, before):
        self.run("dpkg", "-P", "culprit")
        self.run("systemctl", "daemon-reload")
        left = [path for path in sorted(self.machine.written() - before)
                if not path.startswith(MANUAL_CACHE)
                and ("culprit" in path or not KEPT_BY_OTHERS.match(path))]
        # A folder or file that was there before is not something left behind: only what it holds.
        left = [path for path in left if not os.path.isdir(path) or "culprit" in path]
        self.checks.equal(left, [], "what a purge leaves behind")
        self.checks.equal(self.machine.run("dpkg-query", "-W", "culprit").returncode, 1,
                          "dpkg knows it still")
        self.checks.equal(self.value("LoadState"), "not-found", "the unit after the purge")
