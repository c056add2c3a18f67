#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ports, files and directories that two components want, and places that are not there.

    run_claims.py BINARY

`validate` tells what a start would refuse or mix, with its place, and `run` the same before it
starts anything. What only shows at the start is told without blaming others for it.
"""
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from checks import Checks  # noqa: E402
from ports import free_port  # noqa: E402
from process import environment, run  # noqa: E402
from running import PATIENCE_S, wait_for, whole_lines  # noqa: E402



class Suite:
    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder
        self.checks = Checks()

    def config(self, exporters, extensions="", telemetry="", endpoint="127.0.0.1:0", name="c.yaml"):
        """Line 1 holds the receiver, line 2 the exporters, 3 the extensions, 4 telemetry."""
        listed = ", ".join(part.split(":")[0] for part in exporters.split("; "))
        used = ", ".join(part.split(":")[0] for part in extensions.split("; ") if part)
        text = ("receivers: {http: {endpoint: \"%s\"}}\nexporters: {%s}\nextensions: {%s}\n"
                "service: {extensions: [%s], telemetry: {%s}, pipelines: {v: {receivers: [http], "
                "preset: all, exporters: [%s]}}}\n"
                % (endpoint, exporters.replace("; ", ", "), extensions.replace("; ", ", "), used,
                   telemetry, listed))
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)
        return name

    def validate(self, code, wanted, *more, **parts):
        """`wanted`: beginnings of the lines on standard error without columns, in order."""
        name = self.config(**parts)
        done = run(self.binary, "validate", "--config", name, *more, folder=self.folder)
        said = re.sub(r"(c\.yaml:\d+):\d+", r"\1", done.errors()).splitlines()
        self.checks.check(done.code == code and len(said) == len(wanted) and all(
            line.startswith(start) for line, start in zip(said, wanted)), lambda:
            "%r %s: %d, expected %d and %s: %s" % (parts, more, done.code, code, wanted,
                                                   done.errors()))
        return done

    def ports(self):
        taken = "c.yaml:1"
        for mine, theirs in (("127.0.0.1:9464", "127.0.0.1:9464"), ("127.0.0.1:9464", "0.0.0.0:9464"),
                             ("0.0.0.0:9464", "127.0.0.1:9464"), ("[::]:9464", "10.0.0.1:9464"),
                             ("localhost:9464", "127.0.0.1:9464"), ("localhost:9464", "[::1]:9464"),
                             ("a.example:9464", "a.example:9464"), ("127.1:9464", "127.0.0.1:9464"),
                             ("0.0.0.0:9464", "a.example:9464"), ("[::1]:9464", "[0::1]:9464")):
            done = self.validate(78, ["c.yaml:2: exporters.prometheus.endpoint: '%s' is the port "
                                      "that receivers.http.endpoint has ('%s', %s)"
                                      % (theirs, mine, taken)],
                                 exporters="prometheus: {endpoint: \"%s\"}" % theirs, endpoint=mine)
            self.checks.equal(done.out, b"", "nothing is promised")
            self.checks.check("c.yaml:2:36: " in done.errors() and "c.yaml:1:30)" in done.errors(),
                              "the columns: " + done.errors())
        for mine, theirs in (("127.0.0.1:9464", "127.0.0.1:9465"), ("127.0.0.1:0", "127.0.0.1:0"),
                             ("127.0.0.1:9464", "127.0.0.2:9464"), ("0.0.0.0:9464", "[::1]:9464"),
                             ("a.example:9464", "b.example:9464"), ("10.0.0.1:9464", "localhost:9464")):
            self.validate(0, [], exporters="prometheus: {endpoint: \"%s\"}" % theirs, endpoint=mine)
        self.validate(78, ["c.yaml:2: exporters.prometheus.endpoint: '127.0.0.1:9464' is the port",
                           "c.yaml:3: extensions.health_check.endpoint: '0.0.0.0:9464' is the",
                           "c.yaml:4: service.telemetry.metrics.endpoint: '[::]:9464' is the"],
                      exporters="prometheus: {endpoint: \"127.0.0.1:9464\"}",
                      extensions="health_check: {endpoint: \"0.0.0.0:9464\"}",
                      telemetry="metrics: {endpoint: \"[::]:9464\"}", endpoint="localhost:9464")
        # What stands at its default is told where its component is.
        self.validate(78, ["c.yaml:2: exporters.prometheus.endpoint: '127.0.0.1:9464' is the port"],
                      exporters="prometheus: {}", endpoint="127.0.0.1:9464")
        link = os.path.join(self.folder, "sockets")
        os.symlink(self.folder, link)
        self.validate(78, ["c.yaml:2: exporters.prometheus.endpoint: 'unix:%s/x' is the socket "
                           "that" % link],
                      exporters="prometheus: {endpoint: \"unix:%s/x\"}" % link,
                      endpoint="unix:%s/x" % self.folder)
        # A value that is wrong is not compared as well.
        self.validate(78, ["c.yaml:2: exporters.prometheus.endpoint: "],
                      exporters="prometheus: {endpoint: [1]}", endpoint="127.0.0.1:9464")

    def files(self):
        os.mkdir(os.path.join(self.folder, "out"))
        os.symlink("out", os.path.join(self.folder, "also"))
        os.symlink("out/a.jsonl", os.path.join(self.folder, "link"))
        start = "c.yaml:2: exporters.json/b.path: "
        for other in ("out/a.jsonl", "./out//a.jsonl", "out/../out/a.jsonl", "also/a.jsonl", "link",
                      os.path.join(self.folder, "out/a.jsonl")):
            for there in (False, True):
                path = os.path.join(self.folder, "out", "a.jsonl")
                if there:
                    open(path, "w", encoding="ascii").close()
                elif os.path.exists(path):
                    os.remove(path)
                self.validate(78, [start + "'%s' is the file that exporters.json/a.path has "
                                   "('out/a.jsonl', c.yaml:2); choose another" % other],
                              exporters="json/a: {path: \"out/a.jsonl\"}; json/b: {path: \"%s\"}"
                              % other)
        self.validate(78, ["c.yaml:2: exporters.html.path: '${env:X:-v}' is the file"],
                      exporters="text: {path: v}; json: {path: w}; html: {path: \"${env:X:-v}\"}")
        self.validate(78, ["c.yaml:2: exporters.json.path: 'q' is the file that "
                           "receivers.http.quarantine has"],
                      "--set", "receivers.http.quarantine=q", exporters="json: {path: q}")
        self.validate(0, [], exporters="json/a: {path: out/a}; json/b: {path: out/b}; "
                      "html: {path: /dev/null}; text: {path: /dev/null}")
        # Away from the machine only spellings are compared.
        self.validate(78, [start + "'./x//y' is the file"], "--no-environment",
                      exporters="json/a: {path: x/y}; json/b: {path: \"./x//y\"}")
        # To mix on standard output may be what somebody wants to look at.
        self.validate(0, ["c.yaml:2: exporters.text.path: exporters.json.path (c.yaml:2) "
                          "writes to standard output, too"], exporters="json: {}; text: {}")
        done = run(self.binary, "run", "--config", self.config(
            exporters="json/a: {path: out/n}; json/b: {path: ./out/n}"), folder=self.folder)
        self.checks.check(done.code == 78 and "is the file that" in done.errors()
                          and not os.path.exists(os.path.join(self.folder, "out", "n")),
                          lambda: "run with one file for two: %d: %s" % (done.code, done.errors()))

    def places(self):
        missing = "c.yaml:2: exporters.json.path: the directory of 'none/v.jsonl' is not there"
        self.validate(78, [missing], exporters="json: {path: none/v.jsonl}")
        self.validate(0, [], "--no-environment", exporters="json: {path: none/v.jsonl}")
        self.validate(78, ["c.yaml:2: exporters.json.path: 'out' is a directory"],
                      exporters="json: {path: out}")
        store = "file_storage: {directory: %s/none/store}" % self.folder
        self.validate(0, [], exporters="json: {path: none/v.jsonl}", extensions=store)
        self.validate(78, [missing], exporters="json: {path: none/v.jsonl}",
                      extensions=store.replace("none/store", "other/store"))
        self.validate(78, ["c.yaml:3: extensions.file_storage.directory: the directory"],
                      exporters="json: {path: out/v}",
                      extensions=store.replace("}", ", create_directory: false}"))
        done = run(self.binary, "run", "--dry-run", "--config",
                   self.config(exporters="json: {path: none/v.jsonl}"), folder=self.folder)
        self.checks.check(done.code == 78 and "not there" in done.errors(), "run --dry-run")
        # At the start it may come to be until the next attempt, so that is no fault of the text.
        done = run(self.binary, "run", "--config", "c.yaml", folder=self.folder)
        self.checks.check(done.code == 73, "run without the directory: %d" % done.code)

    def others(self):
        """Who has the port is said truly."""
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = other.getsockname()[1]
            done = run(self.binary, "run", "--config", self.config(
                exporters="prometheus: {endpoint: \"127.0.0.1:%d\"}" % port), folder=self.folder)
        self.checks.check(done.code == 73 and "another program already listens on port %d" % port
                          in done.errors(), "a foreign port: %s" % done.errors())
        name = socket.gethostname()
        try:
            address = socket.gethostbyname(name)
        except OSError:
            self.checks.skip("this machine does not know its own name")
            return
        port = free_port()
        done = run(self.binary, "run", "--config", self.config(
            exporters="prometheus: {endpoint: \"%s:%d\"}" % (name, port),
            endpoint="%s:%d" % (address, port)), folder=self.folder)
        self.checks.check(done.code == 73 and "this culprit itself listens there already"
                          in done.errors(), "a port of our own: %s" % done.errors())

    def reloads(self):
        """The same port at another address takes the place of the one before."""
        port = free_port()
        log = os.path.join(self.folder, "log")
        name = self.config(exporters="prometheus: {endpoint: \"127.0.0.1:%d\"}" % port)
        with open(log, "wb") as out:
            process = subprocess.Popen([self.binary, "run", "--config", name], cwd=self.folder,
                                       stderr=out, env=environment())
        try:
            self.wait(log, "C2108")
            self.config(exporters="prometheus: {endpoint: \"0.0.0.0:%d\"}" % port)
            process.send_signal(signal.SIGHUP)
            said = self.wait(log, '"C1012"', '"C1013"')
            self.checks.check("C1012" in said, "0.0.0.0 after 127.0.0.1: " + said)
            socket.create_connection(("127.0.0.1", port), PATIENCE_S).close()
        finally:
            process.terminate()
            self.checks.equal(process.wait(PATIENCE_S), 0, "exit code after the reload")

    def wait(self, path, *wanted):
        def said():
            return "\n".join(whole_lines(path))
        there = wait_for(lambda: any(word in said() for word in wanted))
        self.checks.check(there, lambda: "%s: %s" % (wanted, said()))
        return said()


def main(binary):
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(binary, os.path.realpath(folder))
        for part in (suite.ports, suite.files, suite.places, suite.others, suite.reloads):
            part()
        return suite.checks.finish()


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
