#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""culprit top on a terminal: what stands on the screen, at any size, and that the terminal is put
back however it ends.

    run_top.py BINARY
"""
import fcntl
import json
import os
import re
import select
import signal
import struct
import sys
import tempfile
import termios
import time
import unicodedata

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, HERE)
from checks import Checks  # noqa: E402
from control import get  # noqa: E402
from process import environment  # noqa: E402
from run_control import PATIENCE_S, Culprit, sample  # noqa: E402
from running import wait_for  # noqa: E402

ENTER, LEAVE = b"\x1b[?1049h\x1b[?25l\x1b[2J", b"\x1b[0m\x1b[?25h\x1b[?1049l"
KNOWN = re.compile(rb"\x1b\[(?:\?1049[hl]|\?25[hl]|2J|H|K|[0-9]*m)")
COLOUR = re.compile(rb"\x1b\[[1-9][0-9]*m")
EVIL = "a\u001b[2J\u009b\u202e\"\U0001f642b"


class Terminal:
    """culprit top with a terminal of its own; `before` is how that was set."""

    def __init__(self, binary, *arguments, rows=24, columns=80, **more):
        self.master, slave = os.openpty()
        self.slave = slave
        self.resize(rows, columns)
        self.before = termios.tcgetattr(slave)
        self.seen = b""
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.master)
            self.become(slave)
            os.execve(binary, [binary, "top", *arguments],
                      environment(**{"TERM": "xterm-256color", **more}))

    @staticmethod
    def become(slave):
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
        for descriptor in range(3):
            os.dup2(slave, descriptor)
        os.close(slave)

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.rows, self.columns = rows, columns

    def read(self, seconds=0.05):
        if select.select([self.master], [], [], seconds)[0]:
            try:
                self.seen += os.read(self.master, 1 << 16)
            except OSError:
                pass
        return self.seen

    def frames(self):
        """The whole screens that were drawn, each as its rows."""
        parts = self.seen.split(b"\x1b[H")[1:]
        return [re.split(rb"\r+\n", part) for part in parts]

    def screen(self):
        """The last one that is whole, as text without sequences."""
        whole = [rows for rows in self.frames() if len(rows) == self.rows]
        return [KNOWN.sub(b"", row).decode("utf-8") for row in whole[-1]] if whole else []

    def until(self, condition):
        """Reads until the screen is so."""
        def holds():
            self.read()
            screen = self.screen()
            return bool(screen) and condition("\n".join(screen))
        return wait_for(holds)

    def fits(self, text):
        screen = text.split("\n")
        return len(screen) == self.rows and all(columns_of(row) <= self.columns for row in screen)

    def press(self, keys):
        self.seen = b""
        os.write(self.master, keys)

    def exit(self):
        """How it ended, once it has; the terminal's settings are read by then."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            self.read()
            pid, how = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                while select.select([self.master], [], [], 0)[0] and self.read(0):
                    break
                return how
        os.kill(self.pid, signal.SIGKILL)
        return os.waitpid(self.pid, 0)[1] | 1 << 20

    def close(self):
        for descriptor in (self.master, self.slave):
            os.close(descriptor)


def columns_of(text):
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF"
               else 1 for c in text)


def put_back(checks, terminal, name):
    checks.equal(termios.tcgetattr(terminal.slave), terminal.before, name + ": the settings")
    checks.check(terminal.seen.rstrip().endswith(LEAVE) or LEAVE in terminal.seen[-400:],
                 "%s: the screen is left: %r" % (name, terminal.seen[-80:]))


def looks(checks, binary, path):
    """80 × 24: all there is, and nothing that could move the cursor but what is ours."""
    terminal = Terminal(binary, "--socket", path, "--interval", "100ms")
    checks.check(terminal.until(lambda text: "no incident is open" in text and "JOB" in text),
                 "the first screen: %r" % terminal.screen())
    checks.check(terminal.seen.startswith(ENTER), "it enters: %r" % terminal.seen[:40])
    rest = KNOWN.sub(b"", terminal.seen)
    checks.check(not re.search(rb"[\x00-\x09\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80\xae", rest),
                 "nothing but its own sequences: %r" % rest)
    text = "\n".join(terminal.screen())
    for part in ("culprit 0.", "memory ", "PIPELINE", "LAG", "\\x1b[2J", "RECEIVER", "EXPORTER",
                 "json", "q quit"):
        checks.check(part in text, "%r is on the screen: %s" % (part, text))
    checks.check(COLOUR.search(terminal.seen) is not None, "with colours")
    for rows, columns in ((24, 40), (5, 20), (2, 7), (1, 1), (60, 200)):
        terminal.seen = b""
        terminal.resize(rows, columns)
        # What was drawn before that may come first. Once one fits, the next one does.
        checks.check(terminal.until(terminal.fits),
                     "%d × %d: it fits: %r" % (columns, rows, terminal.screen()))
        terminal.seen = b""
        checks.check(terminal.until(lambda text: True), "%d × %d" % (columns, rows))
        checks.check(terminal.fits("\n".join(terminal.screen())),
                     "%d × %d: the next one fits: %r" % (columns, rows, terminal.screen()))
    terminal.resize(24, 80)
    for key, shown, hidden in ((b"p", "STAGE", "JOB"), (b"j", "MISSING RANKS", "PIPELINE"),
                               (b"i", "no incident is open", "RECEIVER"), (b"a", "EXPORTER", "STAGE")):
        terminal.press(key)
        checks.check(terminal.until(lambda text: shown in text and hidden not in text),
                     "key %r: %r" % (key, terminal.screen()))
    terminal.resize(6, 80)
    for keys, shown, top in ((b"\x1b[B\x1b[B", "arrows", False), (b"\x1b[A\x1b[A\x1b[A", "below", True),
                             (b"   \x1b[6~\x1b[6~\x1b[6~\x1b[6~", "above", False),
                             (b"\x1b[5~" * 9, "below", True), (b"\x1bxyz\x1b[99;99~", "below", True)):
        terminal.press(keys)
        checks.check(terminal.until(lambda text: shown in text and ("pid" in text) == top),
                     "keys %r: %r" % (keys, terminal.screen()))
    terminal.press(b"q")
    checks.equal(terminal.exit(), 0, "q ends it")
    put_back(checks, terminal, "q")
    terminal.close()


def ends(checks, binary, path):
    for number, wanted in ((signal.SIGINT, 0), (signal.SIGTERM, 0), (signal.SIGHUP, 0),
                           (signal.SIGABRT, int(signal.SIGABRT))):
        terminal = Terminal(binary, "--socket", path)
        terminal.until(lambda text: "PIPELINE" in text)
        checks.check(termios.tcgetattr(terminal.slave) != terminal.before, "it sets the terminal")
        os.kill(terminal.pid, number)
        checks.equal(terminal.exit() & 0x7f | 0, wanted, "signal %d ends it" % number)
        put_back(checks, terminal, "signal %d" % number)
        terminal.close()
    terminal = Terminal(binary, "--socket", path)
    terminal.until(lambda text: "PIPELINE" in text)
    os.write(terminal.master, b"\x03")  # as a person does
    checks.equal(terminal.exit(), 0, "Ctrl-C ends it")
    put_back(checks, terminal, "Ctrl-C")
    terminal.close()


def suspended(checks, binary, path):
    terminal = Terminal(binary, "--socket", path, "--interval", "100ms")
    terminal.until(lambda text: "PIPELINE" in text)
    os.kill(terminal.pid, signal.SIGTSTP)
    _, how = os.waitpid(terminal.pid, os.WUNTRACED)
    terminal.read()
    checks.check(os.WIFSTOPPED(how), "Ctrl-Z stops it")
    put_back(checks, terminal, "Ctrl-Z")
    terminal.seen = b""
    os.kill(terminal.pid, signal.SIGCONT)
    checks.check(terminal.until(lambda text: "PIPELINE" in text), "fg shows it again")
    checks.check(terminal.seen.startswith(ENTER), "on the other screen")
    terminal.press(b"q")
    checks.equal(terminal.exit(), 0, "and it ends")
    terminal.close()


def plain(checks, binary, path):
    """No colours, no full screen, no terminal."""
    terminal = Terminal(binary, "--socket", path, NO_COLOR="1")
    terminal.until(lambda text: "PIPELINE" in text)
    checks.check(COLOUR.search(terminal.seen) is None, "NO_COLOR: %r" % terminal.seen[:300])
    terminal.press(b"q")
    checks.equal(terminal.exit(), 0, "NO_COLOR: it ends")
    terminal.close()
    for kind in ("dumb", ""):
        terminal = Terminal(binary, "--socket", path, "--interval", "100ms", TERM=kind)
        checks.equal(terminal.exit(), 0, "TERM=%s: a table" % kind)
        checks.check(b"PIPELINE" in terminal.seen and b"\x1b" not in terminal.seen,
                     "TERM=%s: %r" % (kind, terminal.seen))
        terminal.close()


def gone(checks, binary, culprit, path):
    """Culprit is stopped, killed, and another one takes its place."""
    terminal = Terminal(binary, "--socket", path, "--interval", "100ms")
    terminal.until(lambda text: "PIPELINE" in text)
    first = culprit.process.pid
    culprit.process.send_signal(signal.SIGSTOP)
    checks.check(terminal.until(lambda text: "does not answer" in text and "PIPELINE" in text),
                 "it does not answer: %r" % terminal.screen())
    culprit.process.send_signal(signal.SIGCONT)
    terminal.seen = b""
    checks.check(terminal.until(lambda text: "q quit" in text), "it answers again")
    culprit.kill()
    checks.check(terminal.until(lambda text: "no culprit listens" in text and "waiting" in text),
                 "it was killed: %r" % terminal.screen())
    culprit.start()
    checks.check(terminal.until(lambda text: "pid %d " % culprit.process.pid in text
                                and "q quit" in text), "the next one: %r" % terminal.screen())
    checks.check(culprit.process.pid != first, "is another process")
    culprit.stop(checks, "gone")
    terminal.seen = b""
    terminal.until(lambda text: "waiting" in text)
    terminal.press(b"q")
    checks.equal(terminal.exit(), 0, "q ends it while it waits")
    put_back(checks, terminal, "waiting")
    terminal.close()


def main(binary):
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder:
        folder = os.path.realpath(folder)
        path = os.path.join(folder, "c.sock")
        culprit = Culprit(binary, folder, {"socket": path}, CULPRIT_SOCKET=path).start()
        try:
            culprit.socket()
            culprit.write([sample(i, i % 3, EVIL) for i in range(300)])
            wait_for(lambda: get(path, "/status")[1]["pipelines"][0]["jobs"])
            code, out, err = culprit.ask("top", "--once", "--interval", "100ms")
            checks.equal([code, err], [0, ""], "one table")
            checks.check("\x1b" not in out and "\\x1b[2J\\u009b\\u202e" in out and "no incident" in out,
                         "made safe: " + out)
            code, out, err = culprit.ask("top", "--json")
            checks.equal(json.loads(out)["pipelines"][0]["jobs"][0]["job"], EVIL, "as JSON: " + err)
            looks(checks, binary, path)
            ends(checks, binary, path)
            suspended(checks, binary, path)
            plain(checks, binary, path)
            gone(checks, binary, culprit, path)
        finally:
            culprit.kill()
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
