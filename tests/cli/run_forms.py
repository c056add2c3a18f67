#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""culprit forms and culprit forms test: as docs/forms.md says, and what they say of mistakes.

    run_forms.py BINARY
"""
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from checks import Checks  # noqa: E402


class Suite:
    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder
        self.checks = Checks()
        with open(os.path.join(ROOT, "docs", "forms.md"), encoding="utf-8") as file:
            self.page = file.read()

    def run(self, *words, lines=""):
        done = subprocess.run([self.binary, "forms", *words], input=lines, text=True,
                              cwd=self.folder, capture_output=True, check=False)
        return done.returncode, done.stdout, done.stderr

    def block(self, kind):
        return re.search(r"^```%s\n(.*?)^```$" % kind, self.page, re.M | re.S).group(1)

    def put(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def lists(self):
        code, out, err = self.run()
        self.checks.equal((code, err), (0, ""), "it lists")
        self.checks.check(re.search(r"^  ompi_noticed +launcher_failed +report ", out, re.M),
                          "a form with kind and role")
        self.checks.check(re.search(r"^  prrte_tag +prefix ", out, re.M), "a prefix")
        code, out, err = self.run("--names")
        self.checks.equal((code, err), (0, ""), "it lists names")
        for word in ("launcher_failed", "signal", "report", "name"):
            self.checks.check(re.search(r"^  %s\b" % word, out, re.M), word + " is listed")
        self.checks.equal(out.count("writer, time\n"), 1, "names of prefixes are listed")

    def of_the_page(self):
        self.put("site.forms", self.block("forms"))
        code, out, err = self.run("test", "site.forms", lines=self.block("console log"))
        self.checks.equal(code, 0, "the page's rows: " + err)
        self.checks.equal(out, self.block("console answer"), "the page's answer")
        self.checks.equal(err, "2 events\n", "how many")
        self.put("prefix.forms", self.block("forms prefix"))
        code, out, err = self.run("test", "prefix.forms")
        self.checks.equal((code, out, err), (0, "", "0 events\n"), "the page's prefix")
        self.put("envelope.forms", self.block("forms envelope"))
        code, out, err = self.run("test", "envelope.forms")
        self.checks.equal((code, out, err), (0, "", "0 events\n"), "the page's envelope")

    def mistakes(self):
        self.put("bad.forms", "envelope x\n  mesage line\n")
        code, out, err = self.run("test", "bad.forms")
        self.checks.equal((code, out), (65, ""), "an envelope that is wrong")
        self.checks.check(err.startswith("bad.forms:2:3: 'mesage' is no field of an envel"), err)
        self.put("bad.forms", "form x\n  text   worker {rnak} went away\n")
        code, out, err = self.run("test", "bad.forms")
        self.checks.equal((code, out), (65, ""), "a row that is wrong")
        self.checks.check(err.startswith("bad.forms:2:18: 'rnak' is no name of a part"), err)
        self.put("bad.forms", self.block("forms").replace("rank=5", "rank=6"))
        code, out, err = self.run("test", "bad.forms", lines="worker 1 on a is gone: signal 9\n")
        self.checks.equal((code, out), (65, ""), "a sample that gives something else")
        self.checks.check(re.match(r"bad\.forms:\d+:1: site_gone: the sample gives host=gpu-a02 "
                                   r"rank=5 signal=9\n$", err), err)
        code, out, err = self.run("test", "nowhere.forms")
        self.checks.equal((code, out), (66, ""), "a file that is not there")
        self.checks.check("nowhere.forms: No such file" in err, err)
        code, out, err = self.run("test")
        self.checks.equal((code, out), (64, ""), "no file")
        self.checks.check("name the FILE of rows" in err, err)
        self.put("noise.forms", "\x01\x02 {{{ \x7f\nform\n")
        code, out, err = self.run("test", "noise.forms")
        self.checks.equal((code, out), (65, ""), "noise")
        self.checks.check(re.match(r"noise\.forms:1:\d+: ", err), err)
        self.checks.check("\x01" not in err and "\x7f" not in err, "noise is escaped")


def main():
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(os.path.abspath(sys.argv[1]), folder)
        suite.lists()
        suite.of_the_page()
        suite.mistakes()
        return suite.checks.finish()


if __name__ == "__main__":
    sys.exit(main())
