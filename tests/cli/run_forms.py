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


# Of docs/forms.md: the first and the third are told by its rows, the others by what is built in.
EXCEPTIONS = """site.LeaseLostError: the scheduler took 4 nodes
site.LeaseLostError: nobody knows why
RuntimeError: the ring neighbour is silent
RuntimeError: the socket has gone
"""

# A launcher of somebody who had docs/forms.md and nothing else.
FLEET = """family fleet Our launcher, fleet

prefix fleet_worker
  text   {time} fleet[{host}/{rank}]:{blank}
  sample 2026/11/20 10:00:09.000 fleet[gpu-a01/1]: step 10 loss 2.31
  gives  time=1795168809000 host=gpu-a01 rank=1 message=step 10 loss 2.31

prefix fleet_itself
  text   {time} fleet:{blank}
  sample 2026/11/20 10:04:33.000 fleet: worker 2 is here
  gives  time=1795169073000 message=worker 2 is here

form fleet_finished
  text   worker {rank} ({host}) finished: rc={exit_code}{? after {_:decimal}s}
  kind   launcher_failed
  role   report
  sample 2026/11/20 10:04:33.000 fleet: worker 2 (gpu-a02) finished: rc=1 after 271.4s
  gives  host=gpu-a02 rank=2 exit_code=1

form fleet_lost
  text   lost contact with worker {peer_rank} at {peer:address} (reset)
  kind   peer_closed
  role   lost_peer
  sample 2026/11/20 10:04:32.000 fleet[gpu-a01/1]: lost contact with worker 2 at 10.1.2.9:4420 (reset)
  gives  host=gpu-a01 rank=1 peer=10.1.2.9:4420 peer_rank=2
"""
FLEET_LOG = """2026/11/20 10:00:00.120 fleet[gpu-a01/0]: starting 4 workers of run r-77
2026/11/20 10:00:09.000 fleet[gpu-a01/1]: step 10 loss 2.31
2026/11/20 10:04:31.500 fleet[gpu-a02/2]: Traceback (most recent call last):
2026/11/20 10:04:31.500 fleet[gpu-a02/2]:   File "train.py", line 9, in <module>
2026/11/20 10:04:31.500 fleet[gpu-a02/2]: ValueError: bad batch
2026/11/20 10:04:32.000 fleet[gpu-a01/1]: lost contact with worker 2 at 10.1.2.9:4420 (reset)
2026/11/20 10:04:32.100 fleet[gpu-a01/0]: lost contact with worker 2 at 10.1.2.9:4420 (reset)
2026/11/20 10:04:33.000 fleet: worker 2 (gpu-a02) finished: rc=1 after 271.4s
2026/11/20 10:04:33.200 fleet: worker 1 (gpu-a01) finished: rc=-9 after 271.6s
"""


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
        code, out, err = self.run("--markdown")
        self.checks.equal((code, err), (0, ""), "it lists tables")
        rows = [line for line in out.splitlines() if line.startswith("| `")]
        self.checks.check(len(rows) > 100 and all(re.match(
            r"\| `\w+` \| \w+ \| ``? ?([^|]|(?<=\\)\|)+ ?``? \|$", row) for row in rows), "rows")

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
        self.put("meaning.forms", self.block("forms meaning"))
        code, out, err = self.run("test", "meaning.forms", lines=EXCEPTIONS)
        self.checks.equal(code, 0, "the page's meanings: " + err)
        victims = [re.findall(r"victim=\w+", line) for line in out.splitlines()]
        self.checks.equal(victims, [["victim=yes"], ["victim=no"], ["victim=yes"], []],
                          "whose end it is: " + out)

    def of_a_stranger(self):
        self.put("fleet.forms", FLEET)
        self.put("fleet.log", FLEET_LOG)
        code, out, err = self.run("test", "fleet.forms", lines=FLEET_LOG)
        self.checks.equal(code, 0, "the stranger's rows: " + err)
        self.checks.equal(sorted(line.split("\t")[1:3] for line in out.splitlines()),
                          [["-", "exception"], ["fleet_finished", "launcher_failed"],
                           ["fleet_finished", "launcher_failed"], ["fleet_lost", "peer_closed"],
                           ["fleet_lost", "peer_closed"]], "what they read")
        done = subprocess.run([self.binary, "analyze", "--forms", "fleet.forms", "fleet.log"],
                              text=True, cwd=self.folder, capture_output=True, check=False)
        self.checks.check(done.stdout.startswith(
            "Rank 2 on gpu-a02 ended first: it raised ValueError: bad batch\n"), done.stdout)

    def literals(self):
        """By what lines are found: texts that many lines of an ordinary log hold are bad ones."""
        self.put("common.forms", self.block("forms"))
        lines = "who is gone: a\nok\nworker 7 is gone: it is gone: b\nTraceback (most\n"
        code, out, err = self.run("test", "--literals", "common.forms", lines=lines)
        self.checks.equal((code, err), (0, ""), "literals")
        counts = [line.split("\t") for line in out.splitlines()]
        self.checks.equal(sorted(counts, key=lambda row: -int(row[0])), counts, "the most first")
        self.checks.check(["1", '"Traceb"', "-"] in counts, "one of a reader in C: " + out)
        rows = [row for row in counts if "site_gone" in row[2].split()]
        self.checks.equal([row[0] for row in rows], ["2"], "lines, not places: " + out)
        self.checks.check(all(re.match(r'^"[^"]{6,}"$', row[1]) for row in counts), out)

    def rare_literals(self):
        """No row is found by a word that ordinary logs are full of."""
        words = "Rank rank [rank INFO info NVIDIA Worker worker kernel process python system"
        code, out, err = self.run("test", "--literals", os.devnull,
                                  lines="".join(f" {word} \n" for word in words.split()))
        self.checks.equal((code, out, err), (0, "", ""), "common words")

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
        suite.of_a_stranger()
        suite.literals()
        suite.rare_literals()
        suite.mistakes()
        return suite.checks.finish()


if __name__ == "__main__":
    sys.exit(main())
