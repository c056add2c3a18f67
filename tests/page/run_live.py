#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page that the html exporter serves, asked for by hand and in a real browser.

    run_live.py BINARY

Without a browser: what is answered and what is refused, what a listener is told and when, tokens,
an end with listeners connected. With Chromium: the page follows the stream and keeps what the
reader opened, focused, selected and scrolled to; culprit goes and comes again; without script; at
several widths, light and dark; with 10,000 ranks.
"""
import base64
import gzip
import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, HERE)
from browser import Browser, find_chromium  # noqa: E402
from checks import Checks  # noqa: E402
from ports import free_port  # noqa: E402
from process import environment, run  # noqa: E402
from running import PATIENCE_S, wait_for  # noqa: E402
from run_page import EVIL, START_NS, event  # noqa: E402

TOKEN = "s3cret-t0ken"


class Served:
    """A culprit that serves its page and reads what is appended to a file."""

    def __init__(self, binary, folder, port=None, preset="memory", **options):
        self.binary, self.folder = binary, tempfile.mkdtemp(dir=folder)
        self.port = port or free_port()
        self.events = os.path.join(self.folder, "events.jsonl")
        self.log = os.path.join(self.folder, "log")
        self.config = os.path.join(self.folder, "config.yaml")
        self.process = None
        self.told = ""
        with open(self.events, "w", encoding="utf-8"):
            pass
        html = dict({"endpoint": "127.0.0.1:%d" % self.port, "refresh": "100ms"}, **options)
        with open(self.config, "w", encoding="utf-8") as file:
            json.dump({
                "receivers": {"file": {"include": [self.events], "start_at": "beginning",
                                       "poll_interval": "50ms"}},
                "processors": {"job_filter": {"job_id": "each"}},
                "exporters": {"html": html},
                "service": {"pipelines": {"memory": {
                    "receivers": ["file"], "preset": preset, "exporters": ["html"],
                    "evaluate_every": "1s", "allowed_lateness": "1s", "settle": "1s",
                    "idle_timeout": "1s", "caught_up_timeout": "200ms"}},
                    # So that what holds a stop up is seen: it does not end then.
                    "shutdown_timeout": "1h"}}, file)

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([self.binary, "run", "--config", self.config],
                                            stdout=subprocess.DEVNULL, stderr=log,
                                            env=environment())
        wait_for(lambda: "C3211" in self.said(), self.process)
        return self

    def said(self):
        with open(self.log, encoding="utf-8") as file:
            return file.read()

    def stop(self):
        """The exit code; that of SIGKILL when it does not end."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        return self.process and self.process.returncode

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    def append(self, text):
        with open(self.events, "a", encoding="utf-8") as file:
            file.write(text)

    def ask(self, method="GET", path="/", headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        connection.request(method, path, headers=headers or {})
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        headers = {}
        for name, value in answer.getheaders():
            headers[name] = headers[name] + ", " + value if name in headers else value
        return answer.status, headers, body

    def text(self):
        return self.ask()[2].decode()

    def until(self, wanted):
        return wait_for(lambda: wanted in self.text(), self.process)

    @property
    def url(self):
        return "http://127.0.0.1:%d/" % self.port


class Listener:
    """A client of /events."""

    def __init__(self, served, headers=None):
        self.connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=PATIENCE_S)
        self.connection.request("GET", "/events", headers=headers or {})
        self.answer = self.connection.getresponse()

    def close(self):
        self.answer.close()
        self.connection.close()

    def message(self):
        """The fields of the next message, comments and `retry` passed over."""
        fields = {}
        while True:
            line = self.answer.readline().decode().rstrip("\n")
            if not line and "data" in fields:
                return fields
            if ": " in line and not line.startswith(":"):
                name, value = line.split(": ", 1)
                fields[name] = value


def steps(first, last, ranks, leaking=1, from_step=20, job="llama-70b", host="node-a"):
    """Samples, one a second, of steps [first, last); rank `leaking` grows from `from_step` on."""
    lines = []
    for step in range(first, last):
        for rank in range(ranks):
            grown = max(0, step - from_step) * (300 << 20) if rank == leaking else 0
            lines.append(event(rank, START_NS + step * 10**9 + rank * 10**3,
                               (30 << 30) + (rank % 5 << 28) + grown, ranks, job=job, host=host))
            if rank == leaking and step == from_step + 20:
                lines.append(event(rank, START_NS + step * 10**9 + rank * 10**3 + 1,
                                   (30 << 30) + grown, ranks, "warning", job=job, host=host,
                                   context="80 % in use"))
    return "".join(lines)


class Suite:
    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder
        self.checks = Checks()

    def served(self, **options):
        return Served(self.binary, self.folder, **options)

    # -- by hand ----------------------------------------------------------------------------------

    def answers(self):
        check = self.checks
        with self.served() as served:
            status, headers, body = served.ask()
            page = body.decode()
            check.equal(status, 200, "the first page")
            for wanted in ("Waiting for the first records", "Nothing was read yet",
                           "hangs (no Flight Recorder dumps)", "memory of ranks (no telemetry)",
                           "connect-src &#39;self&#39;".replace("&#39;", "'")):
                check.check(wanted in page, "the first page: " + wanted)
            for name, value in (("Content-Type", "text/html; charset=utf-8"),
                                ("X-Content-Type-Options", "nosniff"),
                                ("Referrer-Policy", "no-referrer"),
                                ("Content-Security-Policy", "frame-ancestors 'none'"),
                                ("Cross-Origin-Resource-Policy", "same-origin"),
                                ("Cache-Control", "private, no-cache")):
                check.equal(headers.get(name), value, name)
            check.check("Access-Control-Allow-Origin" not in headers, "no CORS")
            tag = headers["ETag"]
            check.equal(served.ask(headers={"If-None-Match": tag})[0::2], (304, b""), "the same")
            packed = served.ask(headers={"Accept-Encoding": "gzip"})
            check.equal(packed[1].get("Content-Encoding"), "gzip", "gzip")
            check.equal(gzip.decompress(packed[2]), body, "gzip: the same page")
            check.equal(served.ask("HEAD")[0::2], (200, b""), "HEAD")
            for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
                check.equal(served.ask(method)[0], 405, method)
            check.equal(served.ask(path="/other")[0], 404, "another path")
            for host, wanted in (("localhost:%d" % served.port, 200), ("localhost:8080", 200),
                                 ("[::1]:80", 200), ("rebound.example.org", 403),
                                 ("127.0.0.1.example.org:80", 403)):
                check.equal(served.ask(headers={"Host": host})[0], wanted, "Host " + host)
            self.follows(served, tag)
        check.equal(served.process.returncode, 0, "stops: " + served.said()[-500:])

    def follows(self, served, tag):
        check = self.checks
        listener = Listener(served)
        check.equal(listener.answer.getheader("Content-Type"), "text/event-stream", "events")
        first = listener.message()
        check.equal((first["event"], '"%s"' % first["data"], first["id"]),
                    ("page", tag, first["data"]), "the page that there is")
        known = Listener(served, {"Last-Event-ID": first["id"]})
        served.append(steps(0, 30, 4))
        told = listener.message()
        check.check(told["data"] != first["data"], "a newer page")
        check.check(known.message()["data"] != first["data"], "who knows it waits for the next")
        check.check(served.until("evaluated up to"), "the page of the stream")
        served.append(steps(30, 60, 4))
        check.check(served.until("Rank 1 leaked"), "a verdict")
        # All that was read gets there, though nothing comes behind it.
        check.check(served.until("newest sample of <time datetime=\"2026-11-21T08:07:51.232Z\">"),
                    "the last sample")
        page = served.text()
        for wanted in ("Memory of job llama-70b", "newest sample of", "4 ranks",
                       "<li data-key=\"llama-70b\" class=\"state ", "80 % in use"):
            check.check(wanted in page, "the page: " + wanted)
        check.check("memory of ranks (no telemetry)" not in page, "what came is not missing")
        # A job that pauses stays, also while others go on.
        served.append(steps(60, 62, 3, leaking=9, job="other"))
        check.check(served.until("Memory of 2 jobs"), "two jobs")
        served.append(steps(62, 120, 3, leaking=9, job="other"))
        check.check(served.until("no samples for"), "a silent job is told")
        page = served.text()
        check.equal(page.count('<section class="job"'), 2, "both have a section")
        check.check("Rank 1 leaked" in page, "with its verdict")
        # An end with listeners connected.
        check.equal(served.stop(), 0, "stops with listeners")
        check.equal(known.answer.read()[-1:] in (b"", b"\n"), True, "the stream ends")
        listener.close()
        known.close()

    def guarded(self):
        check = self.checks
        with self.served(auth={"bearer_token": TOKEN}) as served:
            check.equal(served.ask()[0], 401, "no token")
            check.equal(served.ask(path="/events")[0], 401, "no token, events")
            status, headers, _ = served.ask(headers={"Authorization": "Bearer wrong"})
            check.equal(status, 401, "a wrong token")
            check.check("Basic realm" in headers["WWW-Authenticate"], "a browser asks for it")
            pair = base64.b64encode(("me:" + TOKEN).encode()).decode()
            for given in ("Bearer " + TOKEN, "Basic " + pair):
                check.equal(served.ask(headers={"Authorization": given})[0], 200,
                            given.split()[0])
            # With a token any name may lead here.
            check.equal(served.ask(headers={"Authorization": "Basic " + pair,
                                            "Host": "gpu.example.org"})[0], 200, "any Host")
        check.check(TOKEN not in served.said() and pair not in served.said(), "never logged")
        for options, wanted in (
                ({"endpoint": "0.0.0.0:9465"}, "others reach 0.0.0.0:9465"),
                ({"endpoint": "here"}, '"here" cannot be used'),
                ({"endpoint": None}, "a path or an endpoint is needed"),
                ({"refresh": "1ms"}, "refresh")):
            wrong = self.served(**options)
            if options.get("endpoint", "") is None:
                with open(wrong.config, encoding="utf-8") as file:
                    config = json.load(file)
                del config["exporters"]["html"]["endpoint"]
                with open(wrong.config, "w", encoding="utf-8") as file:
                    json.dump(config, file)
            done = run(self.binary, "validate", "--config", wrong.config)
            check.check(done.code != 0 and wanted in done.errors(),
                        "%r: %s" % (options, done.errors()[-400:]))

    def written_too(self):
        page = os.path.join(self.folder, "both.html")
        with self.served(path=page) as served:
            served.append(steps(0, 60, 4))
            self.checks.check(served.until("Rank 1 leaked"), "served")
        with open(page, encoding="utf-8") as file:
            text = file.read()
        self.checks.check("Rank 1 leaked" in text, "written, too")
        self.checks.check('id="live"' not in text and "connect-src" not in text,
                          "what is written asks nobody")

    def shows_the_last(self):
        """What came while no page was due is shown when one is, though nothing comes behind it."""
        with self.served(refresh="2s") as served:
            for until in (10, 14):
                served.append(steps(until - 4, until, 4, from_step=99))
                self.checks.check(served.until(
                    "newest sample of <time datetime=\"2026-11-21T08:07:0%d.232Z\">"
                    % (until - 9)), "the last sample before silence")
        path = os.path.join(self.folder, "page.sock")
        with self.served(endpoint="unix:" + path) as served:
            self.checks.check("the page is at unix:" + path in served.said(), "a Unix socket")

    # -- in a browser -----------------------------------------------------------------------------

    def awaits(self, page, expression, what):
        done = page.run(
            "new Promise(done => {const end = Date.now() + %d; (function look() {let got = false; "
            "try { got = !!(%s) } catch (e) {} if (got || Date.now() > end) return done(got); "
            "setTimeout(look, 20)})()})" % (PATIENCE_S // 2 * 1000, expression))
        return self.checks.check(done, what)

    def key(self, page, key, code, text=None):
        for kind in ("keyDown", "keyUp"):
            more = {"text": text} if text and kind == "keyDown" else {}
            page.call("Input.dispatchKeyEvent", type=kind, key=key, code=key,
                      windowsVirtualKeyCode=code, **more)

    def is_quiet(self, page, what, url):
        self.checks.equal([event for event in page.complaints()], [], what + ": console and log")
        self.checks.equal([asked for asked in page.requests() if not asked.startswith(url) and
                           not asked.startswith("data:,")], [], what + ": nothing from elsewhere")

    def keeps(self, browser):
        """What the reader does stays when the page changes."""
        with self.served() as served:
            served.append(steps(0, 60, 40))
            served.until("Rank 1 leaked")
            page = browser.open(served.url, height=500)
            self.awaits(page, "document.getElementById('live').className === 'live here'",
                        "connected")
            self.awaits(page, "document.getElementById('live-age').textContent.startsWith("
                        "'Last change')", "the age of the news")
            # Opens the evidence by keyboard, scrolls there, and marks nodes to know them again.
            page.run("document.querySelector('.trail summary').focus()")
            self.key(page, "Enter", 13, "\r")
            page.run("document.querySelector('table.ranks').scrollIntoView();"
                     "window.kept = [document.querySelector('.trail'), "
                     "document.querySelector('svg.plot'), document.activeElement]; "
                     "window.line = document.getElementById('j0r1p').getAttribute('d'); "
                     "window.at = document.querySelector('table.ranks')"
                     ".getBoundingClientRect().top")
            before = page.run("document.querySelector('.now time').textContent")
            served.append(steps(60, 63, 40))
            self.awaits(page, "document.querySelector('.now time').textContent !== %s"
                        % json.dumps(before), "the page follows")
            self.checks.equal(page.run(
                "[document.querySelector('.trail') === kept[0], kept[0].open, "
                "document.querySelector('svg.plot') === kept[1], "
                "document.activeElement === kept[2], "
                "document.getElementById('j0r1p').getAttribute('d') !== line, "
                "Math.abs(document.querySelector('table.ranks').getBoundingClientRect().top - at)"
                " < 3]"), [True] * 6, "opened, focused, scrolled: kept, and the chart moved")
            # The readout under the pointer knows the chart as it is now.
            page.run("document.querySelector('figure').scrollIntoView()")
            box = page.run("(() => {const b = document.querySelector('.plot')"
                           ".getBoundingClientRect(); return [b.x, b.y, b.width, b.height]})()")
            page.call("Input.dispatchMouseEvent", type="mouseMoved", x=box[0] + box[2] * 0.8,
                      y=box[1] + box[3] * 0.3)
            self.awaits(page, "/^rank \\d+/.test(document.querySelector('.readout .near')"
                        ".textContent)", "the readout")
            self.folds(served, page)
            self.holds(served, page)
            self.is_quiet(page, "keeps", served.url)
            page.close()

    def folds(self, served, page):
        """A folded table is brought up to date when it is opened."""
        fold = "document.querySelector('table.ranks').closest('section').querySelector('.fold')"
        page.run("window.fold = %s; window.old = fold.querySelector('tbody').textContent" % fold)
        before = page.run("document.querySelector('.now time').textContent")
        served.append(steps(63, 66, 40))
        self.awaits(page, "document.querySelector('.now time').textContent !== %s"
                    % json.dumps(before), "the page follows again")
        self.checks.equal(page.run("fold.querySelector('tbody').textContent === old"), True,
                          "what is folded waits")
        page.run("fold.open = true")
        self.awaits(page, "fold.querySelector('tbody').textContent !== old", "and comes")
        self.checks.equal(page.run("fold.querySelectorAll('tbody tr').length"), 40, "whole")

    def holds(self, served, page):
        """Selected text and a pause hold the page; by keyboard."""
        page.run("getSelection().selectAllChildren(document.querySelector('.headline'))")
        chosen = page.run("getSelection().toString()")
        served.append(steps(66, 69, 40))
        self.awaits(page, "document.getElementById('live-state').textContent.startsWith("
                    "'Updates wait')", "held while text is selected")
        self.checks.equal(page.run("getSelection().toString()"), chosen, "the selection stays")
        before = page.run("document.querySelector('.now time').textContent")
        page.run("getSelection().removeAllRanges()")
        self.awaits(page, "document.querySelector('.now time').textContent !== %s"
                    % json.dumps(before), "goes on")
        page.run("document.getElementById('live-pause').focus()")
        self.key(page, " ", 32, " ")
        self.awaits(page, "document.getElementById('live-pause').getAttribute('aria-pressed') "
                    "=== 'true'", "paused by keyboard")
        before = page.run("document.querySelector('.now time').textContent")
        served.append(steps(69, 72, 40))
        served.until("newest sample of")
        page.run("new Promise(done => setTimeout(done, 500))")
        self.checks.equal(page.run("document.querySelector('.now time').textContent"), before,
                          "paused")
        self.key(page, " ", 32, " ")
        self.awaits(page, "document.querySelector('.now time').textContent !== %s"
                    % json.dumps(before), "and continued")

    def comes_again(self, browser):
        """culprit goes and comes again; a page nobody sees listens to nothing."""
        served = self.served()
        with served:
            served.append(steps(0, 60, 4))
            served.until("Rank 1 leaked")
            page = browser.open(served.url)
            self.awaits(page, "document.getElementById('live').className === 'live here'",
                        "connected before")
        self.awaits(page, "document.getElementById('live').className === 'live gone'", "gone")
        shown = page.run("document.getElementById('live').dataset.time")
        self.checks.equal(page.run("document.getElementById('live-state').textContent"),
                          "culprit is gone. This is the state of %s." % shown, "and says so")
        self.checks.check("Rank 1 leaked" in page.run("document.body.textContent"),
                          "what was known stays")
        with served:
            self.awaits(page, "document.getElementById('live').className === 'live here'",
                        "connected again")
            served.append(steps(60, 70, 4))
            self.awaits(page, "document.getElementById('live').dataset.time > %s"
                        % json.dumps(shown), "with newer data")
        page.close()

    def without_script(self, browser):
        with self.served() as served:
            page = browser.open(served.url, script=False)
            self.checks.check("Reload the page" in page.run(
                "document.getElementById('live').textContent"), "no script: says what to do")
            served.append(steps(0, 60, 4))
            served.until("Rank 1 leaked")
            page.call("Page.reload")
            # Without script no promise is waited for.
            def there():
                try:
                    return page.run("document.body.textContent.includes('Rank 1 leaked')")
                except RuntimeError:  # between two pages
                    return False
            self.checks.check(wait_for(there, served.process), "no script: reloaded")
            self.checks.equal(page.run("document.querySelectorAll('button').length"), 0,
                              "no script: no button that does nothing")
            page.close()

    def fits(self, browser):
        with self.served() as served:
            page = browser.open(served.url, width=390)
            self.awaits(page, "document.getElementById('live').className === 'live here'",
                        "connected while nothing is there")
            served.append(steps(0, 60, 24, job="job " + EVIL, host="node " + EVIL))
            self.awaits(page, "document.querySelectorAll('.plot').length > 0", "the charts come")
            self.checks.equal(page.run("document.querySelectorAll('img,iframe,form').length"), 0,
                              "evil: no elements")
            self.checks.check("<script>alert(1)</script>" in page.run(
                "document.querySelector('h1').textContent"), "evil: told as text")
            page.close()
            for width, dark in ((320, False), (390, True), (768, False), (1440, True)):
                said = "live, %d px" % width
                page = browser.open(served.url, width=width, dark=dark)
                self.awaits(page, "document.getElementById('live').className === 'live here'",
                            said + ": connected")
                page.run("document.querySelectorAll('details').forEach(d => d.open = true);"
                         "new Promise(done => setTimeout(done, 50))")
                self.checks.equal(page.run(
                    "document.documentElement.scrollWidth <= "
                    "document.documentElement.clientWidth"), True, said + ": nothing hangs over")
                self.checks.equal(page.run(
                    "[...document.querySelectorAll('.live *, .now *, .absent *')].filter(e => "
                    "e.getClientRects().length > 0 && e.getBoundingClientRect().right > "
                    "innerWidth + 1).length"), 0, said + ": nothing is cut")
                self.checks.equal(page.run(
                    "getComputedStyle(document.querySelector('.live')).position"), "sticky",
                    said + ": the state is always seen")
                self.is_quiet(page, said, served.url)
                page.close()

    def large(self, browser):
        with self.served(refresh="1s") as served:
            served.append(steps(0, 4, 10000, leaking=17, from_step=2))
            served.until("10000 ranks")
            page = browser.open(served.url)
            self.awaits(page, "document.getElementById('live').className === 'live here'",
                        "10,000 ranks: connected")
            before = page.run("document.querySelector('.now time').textContent")
            served.append(steps(4, 6, 10000, leaking=17, from_step=2))
            self.awaits(page, "document.querySelector('.now time').textContent !== %s"
                        % json.dumps(before), "10,000 ranks: follows")
            self.checks.equal(page.run(
                "document.querySelectorAll('table.ranks tbody tr').length"), 10000,
                "10,000 ranks: a row each")
            self.is_quiet(page, "10,000 ranks", served.url)
            page.close()

    def in_browser(self):
        if find_chromium() is None:
            self.checks.skip("chromium is not installed: the page was not looked at in a browser")
            return
        with Browser(self.folder) as browser:
            self.keeps(browser)
            self.comes_again(browser)
            self.without_script(browser)
            self.fits(browser)
            self.large(browser)


def main():
    with tempfile.TemporaryDirectory(prefix="culprit-live-") as folder:
        suite = Suite(os.path.abspath(sys.argv[1]), folder)
        suite.answers()
        suite.guarded()
        suite.written_too()
        suite.shows_the_last()
        suite.in_browser()
        return suite.checks.finish()


if __name__ == "__main__":
    sys.exit(main())
