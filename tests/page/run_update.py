#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A served page that was updated again and again is the page that a reload brings.

    run_update.py BINARY

Jobs of few and of many ranks, with and without findings, are posted in several parts to pages that
are open: one that has been since before the first record, in which the reader closed what was open,
and one in which the reader opened all that was folded. After each part every element of both, with
its attributes and texts, is compared with those of a page that was loaded at that moment. Needs
Chromium.
"""
import os
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, HERE)
from browser import Browser, find_chromium  # noqa: E402
from checks import Checks  # noqa: E402
from run_live import Served, steps  # noqa: E402
from run_page import START_NS, event  # noqa: E402

PATIENCE_S = 60
QUIET_S = 1.5  # longer than a page takes to follow what was read
DETECTORS = os.path.join(HERE, "..", "golden", "detectors")

# One line for each element and text below <body>. Left out: the line of the connection, ages and
# the readout, which the script writes; what is open, which is the reader's; which boxes hold more
# than they show.
LINES = """(() => {
  const lines = [];
  function walk(node, depth) {
    if (node.nodeType === 3) {
      if (node.nodeValue.trim()) lines.push(depth + ' ' + JSON.stringify(node.nodeValue.trim()));
      return;
    }
    if (node.nodeType !== 1 || node.id === 'live' || node.nodeName === 'SCRIPT' ||
        node.classList.contains('cursor')) return;
    const attributes = [...node.attributes].filter(a => !(a.name === 'open' &&
      node.nodeName === 'DETAILS')).map(a => a.name === 'class' ?
      [a.name, a.value.replace(/ ?\\b(over|on)\\b/, '')] : [a.name, a.value]);
    lines.push(depth + ' ' + node.nodeName + ' ' + JSON.stringify(attributes.sort()));
    if (!node.hasAttribute('data-age')) node.childNodes.forEach(below => walk(below, depth + 1));
  }
  document.body.normalize();
  walk(document.body, 0);
  return [document.title].concat(lines);
})()"""
OPEN_ALL = """(() => {
  window.shut = [...document.querySelectorAll('details:not([open])')];
  shut.forEach(node => { node.open = true; });
  return new Promise(done => setTimeout(done, 100));
})()"""

# How many of those that the reader closed before are open; then all are closed.
CLOSED_AGAIN = """(() => {
  const wrong = (window.mine || []).filter(node => node.isConnected && node.open).length;
  window.mine = [...document.querySelectorAll('details')];
  mine.forEach(node => { node.open = false; });
  return wrong;
})()"""


def peaks(ranks, count, first=0):
    """New peaks of all ranks, which are no finding, and what follows them."""
    lines = []
    for at in range(first, first + count):
        for rank in range(ranks):
            lines.append(event(rank, START_NS + at * 10**9 + rank * 10**3 + 1,
                               (30 << 30) + (at << 20), ranks, "peak"))
            lines.append(event(rank, START_NS + at * 10**9 + rank * 10**3 + 2,
                               (30 << 30) + (at << 20), ranks))
    return "".join(lines)


def golden(case, parts):
    with open(os.path.join(DETECTORS, case, "events.jsonl"), encoding="utf-8") as file:
        lines = file.readlines()
    size = (len(lines) + parts - 1) // parts
    return ["".join(lines[at:at + size]) for at in range(0, len(lines), size)]


def parted(ranks, ends, **more):
    return [steps(first, last, ranks, **more) for first, last in zip((0,) + ends, ends)]


CALM = {"from_step": 10**6}
JOBS = (
    ("4 ranks, new peaks", "memory", [peaks(4, 27), peaks(4, 5, 27), peaks(4, 5, 32)]),
    ("4 ranks, a leak", "memory", parted(4, (10, 50, 60))),
    ("1 rank, then 20, then 40", "memory",
     [steps(0, 20, 1, **CALM), steps(20, 40, 20, **CALM), steps(40, 80, 40, from_step=42)]),
    ("two jobs, one of them silent", "memory",
     [steps(0, 60, 4), steps(60, 70, 40, job="other", **CALM), steps(70, 110, 40, job="other")]),
    ("300 ranks", "memory", parted(300, (4, 6, 8), **CALM)),
    ("1,500 ranks, a leak", "memory", parted(1500, (10, 20, 24), leaking=17, from_step=4)),
    ("a hang", "all", golden("nccl_hang/missing_rank", 3)),
    ("an incident in steps", "all", golden("incident/link_error_to_eviction", 4)),
)


class Suite:
    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder
        self.checks = Checks()

    @staticmethod
    def settled(served):
        """Waits until no newer page comes; its tag."""
        end, tag, since = time.monotonic() + PATIENCE_S, None, time.monotonic()
        while time.monotonic() < end:
            now = served.ask("HEAD")[1]["ETag"]
            if now != tag:
                tag, since = now, time.monotonic()
            elif time.monotonic() - since > QUIET_S:
                break
            time.sleep(0.05)
        return tag

    @staticmethod
    def lines(page):
        """All of a page, what is folded as it is when it is opened."""
        page.run(OPEN_ALL)
        lines = page.run(LINES)
        page.run("shut.forEach(node => { node.open = false; })")
        return lines

    def is_same(self, browser, served, what, page, told):
        """The page follows a moment later than the server has a newer one; and where a newer one
        came behind the reload, that one counts."""
        end = time.monotonic() + PATIENCE_S
        lines, (wanted, tag) = self.lines(page), told
        while lines != wanted and time.monotonic() < end:
            time.sleep(0.5)
            if served.ask("HEAD")[1]["ETag"] != tag:
                fresh, wanted, tag = self.reload(browser, served, what)
                fresh.close()
            lines = self.lines(page)
        at = 0
        while at < min(len(lines), len(wanted)) and lines[at] == wanted[at]:
            at += 1
        self.checks.check(lines == wanted, "%s: %d lines, a reload has %d; from line %d on\n%s\n"
                          "of a reload:\n%s" % (what, len(lines), len(wanted), at,
                                                "\n".join(lines[at - 3:at + 3])[:2000],
                                                "\n".join(wanted[at - 3:at + 3])[:2000]))

    def reload(self, browser, served, said):
        """The page anew, and its lines; once more where a newer one came meanwhile."""
        end = time.monotonic() + PATIENCE_S
        while True:
            tag = self.settled(served)
            fresh = browser.open(served.url, window=True)
            wanted = self.lines(fresh)
            now = served.ask("HEAD")[1]["ETag"]
            if now == tag or time.monotonic() > end:
                self.checks.equal(now, tag, said + ": settled")
                return fresh, wanted, tag
            fresh.close()

    def follows(self, browser, what, preset, parts):
        with Served(self.binary, self.folder, preset=preset) as served:
            early, opened = browser.open(served.url, window=True), None
            for number, part in enumerate(parts):
                served.append(part)
                said = "%s, part %d" % (what, number + 1)
                fresh, wanted, tag = self.reload(browser, served, said)
                self.is_same(browser, served, said + ", folded", early, (wanted, tag))
                if opened:
                    self.is_same(browser, served, said + ", opened", opened, (wanted, tag))
                    fresh.close()
                else:
                    opened = fresh
                    opened.run(OPEN_ALL)
                self.checks.equal(early.run(CLOSED_AGAIN), 0, said + ": what was closed stays so")
            for page in (early, opened):
                self.checks.equal(page.complaints(), [], what + ": console and log")
                page.close()


def main():
    with tempfile.TemporaryDirectory(prefix="culprit-update-") as folder:
        suite = Suite(os.path.abspath(sys.argv[1]), folder)
        if find_chromium() is None:
            suite.checks.skip("chromium is not installed: no page was updated")
            return suite.checks.finish()
        with Browser(folder) as browser:
            for what, preset, parts in JOBS:
                suite.follows(browser, what, preset, parts)
        return suite.checks.finish()


if __name__ == "__main__":
    sys.exit(main())
