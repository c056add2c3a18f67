#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The HTML page, as files and in a real browser.

    run_page.py BINARY

Without a browser: `analyze --html` over the golden cases says the same on standard output as
without it, and writes a well-formed page, the same twice; the exporter in a configuration, with
several jobs, and live over a crash; what is refused; how large a page gets. With Chromium: the page
in light, dark, print, without script and as W&B changes it; nothing leaves it, nothing of the
events acts, nothing is logged.
"""
import glob
import html.parser
import json
import os
import re
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, HERE)
from browser import Browser, find_chromium, png_colors  # noqa: E402
from checks import Checks  # noqa: E402
from process import environment, run  # noqa: E402
from running import PATIENCE_S, stored, wait_for  # noqa: E402

GOLDEN = os.path.join(HERE, "..", "golden")
EVIL = ("<script>alert(1)</script>\"><img src=x onerror=alert(2)><a href=javascript:alert(3)>'"
        "\u202e\u0007&lt;")
START_NS = 1795248412232761088
WANDB_HEAD = ('<base target="_blank"><link rel="stylesheet" type="text/css" '
              'href="https://app.wandb.ai/normalize.css" />')
WIDTHS = (320, 390, 768, 1200, 1600)
VOID = {"meta", "link", "base", "br", "img", "input", "hr"}
OPTIONAL = {"tr", "td", "th", "p", "li"}
CULPRIT_COLOR = {"light": b"\xc2\x26\x1d", "dark": b"\xff\x80\x76"}


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Outline(html.parser.HTMLParser):
    """What is in a page: how often each element, the texts of headings, links and ids."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.counts, self.open, self.faults = {}, [], []
        self.sections, self.contents = [], []
        self.headings, self.ids, self.links, self.words = [], [], [], []
        self.feed(text)
        self.close()
        self.faults += ["<%s> is never closed" % name for name in self.open if
                        name not in OPTIONAL]

    def handle_starttag(self, name, attributes):
        self.counts[name] = self.counts.get(name, 0) + 1
        if name not in VOID:
            self.open.append(name)
        self.note(dict(attributes))
        if re.fullmatch("h[1-6]", name):
            self.headings.append([name, ""])
        if name == "h2" and "nav" in self.counts and "id" in dict(attributes):
            self.sections.append(dict(attributes)["id"])
        if name == "a" and "nav" in self.open:
            self.contents.append(dict(attributes)["href"][1:])

    def handle_startendtag(self, name, attributes):
        self.counts[name] = self.counts.get(name, 0) + 1
        self.note(dict(attributes))

    def note(self, attributes):
        if "id" in attributes:
            self.ids.append(attributes["id"])
        if (attributes.get("href") or "").startswith("#"):
            self.links.append(attributes["href"][1:])
        for name in attributes:
            if name.startswith("on") or name in ("style", "src"):
                self.faults.append("an attribute " + name)

    def handle_endtag(self, name):
        while self.open and self.open[-1] != name and self.open[-1] in OPTIONAL:
            self.open.pop()
        if not self.open or self.open.pop() != name:
            self.faults.append("</%s> closes nothing" % name)

    def handle_data(self, data):
        if self.open and self.open[-1] in ("script", "style"):
            return
        self.words.append(data)
        if self.headings and self.open and self.open[-1] == self.headings[-1][0]:
            self.headings[-1][1] += data


def event(rank, time_ns, used, world, kind="sample", job="llama-70b", host="node-a", **more):
    total = 80 << 30
    return json.dumps(dict({
        "schema_version": 3, "timestamp_ns": time_ns, "event_type": kind,
        "collector": "stormlog.cuda_tracker", "sampling_interval_ms": 1000, "pid": 4000 + rank,
        "host": host, "device_id": rank % 8, "allocator_allocated_bytes": used,
        "allocator_reserved_bytes": used, "allocator_active_bytes": None,
        "allocator_inactive_bytes": None, "allocator_change_bytes": 0, "device_used_bytes": used,
        "device_free_bytes": total - used, "device_total_bytes": total, "context": None,
        "metadata": {}, "session_id": "s%d" % rank, "job_id": job, "rank": rank,
        "local_rank": rank % 8, "world_size": world}, **more)) + "\n"


def story(path, ranks, steps, leaking=1, evil=""):
    """Rank `leaking` grows from a third of the way on, the next one from two thirds."""
    named = {"job": "llama-70b" + evil, "host": "node-a" + evil}
    with open(path, "w", encoding="utf-8") as file:
        for rank in range(ranks):
            base = (30 << 30) + (rank % 5 << 28)
            for step in range(steps):
                time_ns = START_NS + step * 10**9 + rank * 10**6
                late = step - steps // 3 if rank == leaking else \
                    step - 2 * steps // 3 if rank == leaking + 1 else 0
                used = base + max(0, late) * ((20 << 30) // steps)
                if rank == leaking and step == 2:
                    name = "backward" + evil
                    scope = {"action": "enter", "name": name, "path": ["step", name], "depth": 2,
                             "scope_id": "s:1", "parent_scope_id": None, "thread_id": 1,
                             "thread_name": "MainThread", "sequence": 1}
                    file.write(event(rank, time_ns, used, ranks, "phase_enter",
                                     metadata={"phase_scope": scope}, **named))
                file.write(event(rank, time_ns, used, ranks, **named))
                if rank == leaking and step in (steps // 2, steps - 2):
                    kind = "warning" if step == steps // 2 else "critical"
                    file.write(event(rank, time_ns + 1, used, ranks, kind,
                                     context="80 % in use" + evil, **named))


class Suite:
    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder
        self.checks = Checks()

    def path(self, name):
        return os.path.join(self.folder, name)

    def analyze(self, what, paths, *options, name="page.html"):
        page = self.path(name)
        done = run(self.binary, "analyze", "--quiet", "--verbose", "--html", page, *options, *paths)
        self.checks.check(done.code == 0, "%s: exit code %d: %s"
                          % (what, done.code, done.errors()[-2000:]))
        return done, page

    def outline(self, what, text):
        outline = Outline(text)
        self.checks.equal(outline.faults, [], what + ": markup")
        self.checks.equal(len(outline.ids), len(set(outline.ids)), what + ": ids are unique")
        self.checks.equal([link for link in outline.links if link not in outline.ids], [],
                          what + ": links lead somewhere")
        self.checks.equal([name for name, _ in outline.headings].count("h1"), 1, what + ": h1")
        levels = [int(name[1]) for name, _ in outline.headings]
        self.checks.check(all(b <= a + 1 for a, b in zip(levels, levels[1:])),
                          what + ": no level of headings is left out: %r" % levels)
        self.checks.equal(outline.counts.get("script"), 1, what + ": scripts")
        sections = [name for name in outline.ids if name in outline.sections]
        self.checks.equal([name for name in sections if name not in outline.contents], [],
                          what + ": the contents lead to each section")
        self.checks.check(re.search(r"culprit \d+\.\d+\.\d+", "".join(outline.words)),
                          what + ": version")
        self.checks.check("http-equiv=\"Content-Security-Policy\"" in text, what + ": policy")
        return outline

    # -- files ------------------------------------------------------------------------------------

    def golden(self):
        cases = sorted(glob.glob(os.path.join(GOLDEN, "first_cause", "0*")))
        cases += [case for case in sorted(glob.glob(os.path.join(GOLDEN, "real", "*")))
                  if os.path.isdir(case)]
        self.checks.check(len(cases) > 80, "%d golden cases" % len(cases))
        for case in cases:
            what = os.path.basename(case)
            paths = glob.glob(os.path.join(case, "events.jsonl")) or [case]
            plain = run(self.binary, "analyze", "--quiet", "--verbose", *paths)
            done, page = self.analyze(what, paths)
            self.checks.equal(done.out, plain.out, what + ": standard output")
            text = text_of(page)
            outline = self.outline(what, text)
            # The same story in the same words.
            first = plain.text().split("\n\n")[0].replace("\n", " ").strip()
            self.checks.equal(outline.headings[1][1], first, what + ": the headline")

    def twice(self):
        case = os.path.join(GOLDEN, "real", "leak-rank2")
        _, first = self.analyze("first time", [case], name="first.html")
        _, second = self.analyze("second time", [case], name="second.html")
        self.checks.equal(text_of(first), text_of(second), "the same page twice")
        self.checks.equal(sorted(os.listdir(self.folder)).count("first.html.tmp"), 0,
                          "nothing is left beside it")

    def configured(self):
        events, page = self.path("story.jsonl"), self.path("configured.html")
        story(events, 4, 60)
        config = self.path("config.yaml")
        with open(config, "w", encoding="utf-8") as file:
            json.dump({"receivers": {"file": {"include": [events], "start_at": "beginning"}},
                       "exporters": {"html": {"path": page, "title": "Night <run>",
                                              "max_points": 10, "max_ranks": 2}},
                       "service": {"pipelines": {"memory": {
                           "receivers": ["file"], "preset": "memory", "exporters": ["html"]}}}},
                      file)
        done = run(self.binary, "run", "--once", "--config", config)
        self.checks.equal(done.code, 0, "run --once: " + done.errors()[-1000:])
        outline = self.outline("configured", text_of(page))
        self.checks.equal(outline.headings[0][1], "Night <run>", "title")
        self.checks.check("least and most of 2 further ranks" in "".join(outline.words), "band")
        done, other = self.analyze("with --config", [events], "--config", config,
                                   name="replaced.html")
        self.checks.check(done.out.startswith(b"Rank 1 leaked"), "--config: standard output")
        self.checks.equal(self.outline("--config", text_of(other)).headings[0][1],
                          "Memory of job llama-70b", "--config: its exporters are replaced")

    def refused(self):
        events = self.path("story.jsonl")
        done = run(self.binary, "analyze", "--html", "-", events)
        self.checks.equal(done.code, 64, "--html -")
        self.checks.check("--html needs the path of a file" in done.errors(), "--html -: says why")
        done = run(self.binary, "analyze", "--html", self.folder, events)
        self.checks.equal((done.code, done.out), (73, b""), "--html FOLDER")
        done = run(self.binary, "analyze", "--html", self.path("no/such/page.html"), events)
        self.checks.equal(done.code, 73, "--html in no folder: " + done.errors())
        done = run(self.binary, "analyze", "--html", "a $b.html", "--print-config", events)
        self.checks.check('path: "a $$b.html"' in done.text(), "--print-config: " + done.text())
        self.checks.check("exporters: [text, html]" in done.text(), "--print-config: exporters")

    def large(self):
        events = self.path("large.jsonl")
        story(events, 3000, 8, leaking=17)
        _, page = self.analyze("3000 ranks", [events])
        text = text_of(page)
        outline = self.outline("3000 ranks", text)
        self.checks.check(len(text) < 1 << 20, "3000 ranks: %d bytes" % len(text))
        self.checks.check("least and most of" in "".join(outline.words), "3000 ranks: a band")
        self.checks.check(text.count("<th scope=row>") == 3000, "3000 ranks: a row each")

    def jobs(self):
        events = self.path("jobs.jsonl")
        with open(events, "w", encoding="utf-8") as out:
            for number, job in enumerate(("calm", "grave <b>")):
                story(self.path("one.jsonl"), 3, 60, leaking=number if number else 9)
                for line in text_of(self.path("one.jsonl")).splitlines():
                    record = json.loads(line)
                    record["job_id"] = job
                    record["session_id"] += job
                    out.write(json.dumps(record) + "\n")
        _, page = self.analyze("several jobs", [events], "--set",
                               "processors.job_filter.job_id=each")
        outline = self.outline("several jobs", text_of(page))
        self.checks.equal([text for name, text in outline.headings if name in ("h1", "h2")],
                          ["Memory of 2 jobs", "Job grave <b>", "Job calm"], "the gravest first")
        self.checks.equal(outline.counts.get("nav"), 1, "several jobs: a list of them")

    def merged(self):
        """Two incidents in one folder; what they say of hosts and pods tries to act."""
        folder = self.path("merged")
        if os.path.isdir(folder):
            return folder
        os.mkdir(folder)
        for case in ("incident/link_error_to_eviction", "hbm_ecc/contained_error_remap_pending"):
            text = text_of(os.path.join(GOLDEN, "detectors", case, "events.jsonl"))
            text = text.replace("llama-pt-worker-1", "llama-<img src=x onerror=alert(4)>")
            with open(os.path.join(folder, case.split("/")[0] + ".jsonl"), "w",
                      encoding="utf-8") as out:
                out.write(text)
        return folder

    def incidents(self):
        """Text, page and JSON tell the same stories in the same order, the root of each first and
        then by time; the page draws each."""
        done, file = self.analyze("two incidents", [self.merged()], name="incidents.html")
        text = " ".join(done.text().split())
        lines = run(self.binary, "analyze", "--quiet", "--output", "verdicts", self.merged()).text()
        verdicts = [json.loads(line) for line in lines.splitlines()]
        page = text_of(file)
        outline = self.outline("two incidents", page)
        words = " ".join("".join(outline.words).split())
        roots = [verdict for verdict in verdicts if
                 verdict["attributes"]["culprit.root"] == "true"]
        self.checks.equal(len(roots), 2, "two incidents: roots")
        self.checks.check(len(verdicts) > len(roots), "two incidents: consequences")
        self.checks.check(text.startswith("2 incidents: the first began first 1 ") and "2 incidents" in words,
                          "two incidents: a list of them")
        # In the list, then each in full: the root, then what followed.
        order = roots + verdicts
        for said, where in (("text", text), ("page", words)):
            at = [where.find(verdict["headline"]) for verdict in roots]
            for verdict in verdicts:
                at.append(where.find(verdict["headline"], at[-1] + 1))
            self.checks.check(-1 not in at and at == sorted(at), "two incidents, %s: %r of %r"
                              % (said, at, [verdict["id"] for verdict in order]))
        for root, steps in self.stories(verdicts):
            times = [int(step["start_time_unix_nano"]) for step in steps]
            self.checks.equal(times, sorted(times), root["id"] + ": times grow")
        self.checks.equal(page.count('<svg class="lanes"'), 2, "two incidents: lanes")
        self.checks.equal(len(re.findall('<g class="step[^"]*" role', page)), len(verdicts),
                          "two incidents: steps")
        self.checks.check("<img" not in page and "&lt;img src=x" in page, "two incidents: escaped")

    @staticmethod
    def stories(verdicts):
        """Each root with the lines behind it, up to the next root."""
        told = []
        for verdict in verdicts:
            if verdict["attributes"]["culprit.root"] == "true":
                told.append((verdict, []))
            else:
                told[-1][1].append(verdict)
        return told

    def started(self, config):
        """One that a signal asks to stop; its log is `live.log`."""
        with open(self.path("live.log"), "wb") as log:
            process = subprocess.Popen([self.binary, "run", "--config", config],
                                       stdout=subprocess.DEVNULL, stderr=log, env=environment())
        wait_for(lambda: '"C1001"' in text_of(self.path("live.log")), process)
        return process

    def live(self):
        events, page = self.path("live.jsonl"), self.path("live.html")
        story(self.path("by_rank.jsonl"), 4, 60)
        with open(events, "w", encoding="utf-8") as out:
            out.writelines(sorted(text_of(self.path("by_rank.jsonl")).splitlines(True),
                                  key=lambda line: json.loads(line)["timestamp_ns"]))
        config = self.path("live.yaml")
        with open(config, "w", encoding="utf-8") as file:
            json.dump({"receivers": {"file": {"include": [events], "start_at": "beginning"}},
                       "exporters": {"html": {"path": page}},
                       "extensions": {"file_storage": {"directory": self.path("store")}},
                       "service": {"extensions": ["file_storage"],
                                   "checkpoint_interval": "100ms", "pipelines": {"memory": {
                                       "receivers": ["file"], "preset": "memory",
                                       "exporters": ["html"], "evaluate_every": "1s",
                                       "allowed_lateness": "1s", "settle": "1s",
                                       "idle_timeout": "1s"}}}}, file)
        process = self.started(config)
        told = wait_for(lambda: os.path.exists(page) and "Rank 1 leaked" in text_of(page), process)
        if not self.checks.check(told, "live: a page when a verdict is there"):
            process.kill()
            process.wait()
            print(text_of(self.path("live.log"))[-2000:])
            return
        store = self.path("store")
        self.checks.check(wait_for(lambda: b"Rank 1 leaked" in stored(store), process),
                          "live: the verdict is in a checkpoint")
        process.kill()
        process.wait()
        os.unlink(page)
        # Nothing new comes; what was known is told at the end.
        process = self.started(config)
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_S)
        said = text_of(self.path("live.log"))
        self.checks.equal(process.returncode, 0, "live: stops: " + said[-1000:])
        outline = self.outline("live", text_of(page))
        words = "".join(outline.words)
        for told in ("Rank 1 leaked", "Evidence: ", "Utilisation of each device",
                     "80 % in use"):
            self.checks.check(told in words, "live, after a crash: " + told)

    # -- in a browser -----------------------------------------------------------------------------

    def is_quiet(self, what, page, url):
        self.checks.equal(page.complaints(), [], what + ": console and log")
        self.checks.equal([asked for asked in page.requests()
                           if asked != url and not asked.startswith("data:,")], [],
                          what + ": nothing else is loaded")
        self.checks.equal([event["method"] for event in page.events
                           if event["method"] == "Page.javascriptDialogOpening"], [],
                          what + ": no dialog")

    def is_painted(self, what, page, scheme):
        colors = png_colors(page.screenshot())
        total = sum(colors.values())
        self.checks.check(len(colors) > 50, "%s: %d colours" % (what, len(colors)))
        self.checks.check(colors.get(CULPRIT_COLOR[scheme], 0) > 100,
                          "%s: the culprit's colour on %d points"
                          % (what, colors.get(CULPRIT_COLOR[scheme], 0)))
        ground = max(colors, key=colors.get)
        self.checks.check(colors[ground] < total * 0.97, what + ": more than its ground")
        self.checks.equal(sum(ground) > 384, scheme == "light", what + ": ground %r" % ground)

    def shown(self, browser, what, file, ranks):
        url = "file://" + file
        for scheme in ("light", "dark"):
            said = "%s, %s" % (what, scheme)
            page = browser.open(url, dark=scheme == "dark")
            self.checks.equal(page.run("document.querySelectorAll('table.ranks tbody tr').length"),
                              ranks, said + ": rows of ranks")
            self.checks.equal(page.run("document.querySelectorAll('.plot').length"),
                              page.run("document.querySelectorAll('figure').length"),
                              said + ": pictures")
            self.is_painted(said, page, scheme)
            self.is_quiet(said, page, url)
            page.close()
        page = browser.open(url, width=360)
        pdf = page.pdf()
        self.checks.check(pdf.startswith(b"%PDF") and len(pdf) > 10000,
                          "%s, print: %d bytes" % (what, len(pdf)))
        self.is_quiet(what + ", print", page, url)
        page.close()

    def fits(self, browser, what, file):
        """Nothing hangs over at any width; what is wider than its box scrolls in it, and a hint
        and a shadow say so, and where nothing is hidden none does."""
        url = "file://" + file
        for script in (True, False):
            for width in WIDTHS:
                said = "%s, %d px%s" % (what, width, "" if script else ", no script")
                page = browser.open(url, width=width, script=script)
                page.run("document.querySelectorAll('details').forEach(d => d.open = true)")
                if script:  # the event of an opened element comes a moment later
                    page.run("new Promise(done => setTimeout(done, 50))")
                self.checks.equal(page.run(
                    "document.documentElement.scrollWidth <= document.documentElement.clientWidth"),
                    True, said + ": nothing hangs over")
                # Whatever reaches beyond the window does so inside a box that scrolls.
                self.checks.equal(page.run(
                    "[...document.body.querySelectorAll('*')].filter(e => !e.closest('.scroll') && "
                    "!e.closest('.skip') && e.getClientRects().length > 0 && "
                    "e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML"
                    ".slice(0, 80))"), [], said + ": nothing is cut")
                boxes = page.run(
                    "[...document.querySelectorAll('.scroll')].map(s => [s.scrollWidth > "
                    "s.clientWidth, s.parentElement.querySelector('.hint').offsetParent !== null,"
                    " s.tabIndex, getComputedStyle(s).overflowX, "
                    "getComputedStyle(s).backgroundImage.split('gradient').length])")
                for over, hinted, stop, overflow, layers in boxes:
                    self.checks.equal((stop, overflow, layers), (0, "auto", 5), said + ": a box")
                    if script:
                        self.checks.equal(hinted, over, said + ": a hint where there is more")
                    elif over and width <= 740:
                        self.checks.equal(hinted, True, said + ": a hint")
                # Charts do not scroll: the end of each curve and its name are in view.
                self.checks.equal(page.run(
                    "[...document.querySelectorAll('.plot .lines, .plot .name, .plot .tick text')]"
                    ".filter(e => {const b = e.getBoundingClientRect(); return b.width > 0 && "
                    "(b.left < 0 || b.right > innerWidth)}).map(e => e.outerHTML.slice(0, 80))"),
                    [], said + ": charts are in view")
                self.checks.equal(page.run(
                    "[...document.querySelectorAll('.plot')].flatMap(svg => {const ticks = "
                    "[...svg.querySelectorAll('.tick text')].map(e => e.getBoundingClientRect())"
                    ".filter(b => b.width > 0); return ticks.filter((b, i) => i > 0 && b.left < "
                    "ticks[i - 1].right)}).length"), 0, said + ": ticks do not overlap")
                page.close()

    def inert(self, browser, file):
        url = "file://" + file
        page = browser.open(url)
        self.checks.equal(page.run("[...document.querySelectorAll('img,iframe,object,form')]"
                                   ".length + document.scripts.length"), 1, "evil: elements")
        self.checks.equal(page.run("[...document.links].filter(link => !link.getAttribute('href')"
                                   ".startsWith('#')).length"), 0, "evil: links")
        wanted = "<script>alert(1)</script>\"><img src=x"
        for what in ("h1", ".facts", "table.ranks", "table.alerts", "svg title"):
            self.checks.equal(page.run(
                "[...document.querySelectorAll(%s)].some(e => e.textContent.includes(%s))"
                % (json.dumps(what), json.dumps(wanted))), True, "evil: told in " + what)
        self.checks.equal(page.run("document.body.textContent.includes('\\u202e')"), False,
                          "evil: no bidirectional control")
        self.is_quiet("evil", page, url)
        # What came from elsewhere could not run either.
        self.checks.equal(page.run(
            "(() => {const s = document.createElement('script'); s.textContent = 'window.ran = 1';"
            "document.body.append(s); return window.ran === undefined})()"), True,
            "the policy stops scripts")
        self.checks.equal(page.run(
            "fetch('data:text/plain,x').then(() => 'sent', () => 'stopped')"), "stopped",
            "the policy stops requests")
        page.close()

    def handled(self, browser, file):
        url = "file://" + file
        page = browser.open(url)
        page.run("document.querySelector('figure').scrollIntoView()")
        box = page.run("(() => {const box = document.querySelector('.plot')"
                       ".getBoundingClientRect(); return [box.x, box.y, box.width, box.height]})()")
        page.call("Input.dispatchMouseEvent", type="mouseMoved", x=box[0] + box[2] * 0.6,
                  y=box[1] + box[3] * 0.3)
        # The time, then each line with its value in the axis's unit; the nearest is bold.
        rows = page.run("new Promise(done => setTimeout(() => done([...document.querySelectorAll("
                        "'.readout p')].map(p => [p.children[0].textContent, "
                        "p.children[1].textContent, p.className])), 100))")
        self.checks.check(re.fullmatch(r"[\d.]+ s", rows[0][0]), "readout: %r" % rows)
        self.checks.equal(sorted(name for name, *_ in rows[1:]),
                          ["rank %d" % rank for rank in range(8)], "readout: all ranks")
        values = [float(re.fullmatch(r"([\d.]+)\u00a0GiB", value)[1]) for _, value, _ in rows[1:]]
        self.checks.equal(values, sorted(values, reverse=True), "readout: from above to below")
        self.checks.equal(len([1 for *_, look in rows if "near" in look]), 1,
                          "readout: the nearest")
        page.run("document.querySelector('table.grew a').click()")
        self.checks.equal(page.run("document.querySelectorAll('g.l:target').length"), 1,
                          "a rank is picked")
        # The keyboard: the first stop leads to the findings, a summary opens its details.
        page.run("document.querySelector('summary').focus()")
        for kind in ("keyDown", "keyUp"):
            page.call("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter",
                      windowsVirtualKeyCode=13, text="\r")
        self.checks.equal(page.run("document.querySelector('details').open"), True,
                          "Enter opens the evidence")
        self.is_quiet("handled", page, url)
        page.close()
        page = browser.open(url, script=False)
        self.checks.equal(page.run("document.querySelectorAll('.cursor').length"), 0, "no script")
        self.is_painted("without script", page, "light")
        self.is_quiet("without script", page, url)
        page.close()

    def lanes(self, browser, file):
        """The lanes are whole and legible: texts keep their size and stay on the card, marks have
        names, and nothing of it needs the script."""
        for width, scheme in ((390, "light"), (390, "dark"), (1200, "light")):
            said = "lanes, %d px, %s" % (width, scheme)
            page = browser.open("file://" + file, width=width, dark=scheme == "dark", script=False)
            self.checks.equal(page.run("document.querySelectorAll('svg.lanes').length"), 2,
                              said + ": pictures")
            self.checks.equal(page.run(
                "[...document.querySelectorAll('.lanes *')].filter(e => {const card = "
                "e.closest('.card').getBoundingClientRect(), box = e.getBoundingClientRect(); "
                "return box.width > 0 && (box.left < card.left || box.right > card.right + 1)})"
                ".map(e => e.outerHTML.slice(0, 120))"), [], said + ": on the card")
            sizes = page.run("[...document.querySelectorAll('.lanes text')].map(e => "
                             "[parseFloat(getComputedStyle(e).fontSize), "
                             "e.getScreenCTM().a])")
            self.checks.check(len(sizes) > 10 and all(size >= 12 and scale == 1
                                                      for size, scale in sizes),
                              said + ": texts keep their size")
            self.checks.check(page.run(
                "[...document.querySelectorAll('.lanes [role=img]')].every(e => "
                "e.querySelector('title').textContent.length > 20)"), said + ": names of marks")
            self.checks.equal(page.run(
                "(() => {const texts = [...document.querySelectorAll('.lanes')].map(svg => "
                "[...svg.querySelectorAll('.when')].map(e => e.getBoundingClientRect())); return "
                "texts.flatMap(boxes => boxes.filter((a, i) => boxes.some((b, j) => j > i && "
                "a.left < b.right && b.left < a.right && a.top < b.bottom - 2 && "
                "b.top < a.bottom - 2))).length})()"), 0, said + ": times do not overlap")
            self.is_quiet(said, page, "file://" + file)
            page.close()

    def in_wandb(self, browser, file):
        changed = self.path("wandb.html")
        with open(changed, "w", encoding="utf-8") as out:
            out.write(text_of(file).replace("<head>", "<head>" + WANDB_HEAD, 1))
        page = browser.open("file://" + changed, block=["*app.wandb.ai*"])
        self.checks.equal(page.run("[...document.links].every(link => link.target === '_self')"),
                          True, "W&B: links stay on the page")
        self.checks.check(page.run("getComputedStyle(document.querySelector('.card'))"
                                   ".borderLeftWidth") == "6px", "W&B: own style")
        self.is_painted("W&B", page, "light")
        page.close()

    def in_browser(self):
        if find_chromium() is None:
            self.checks.skip("chromium is not installed: the page was not looked at in a browser")
            return
        with Browser(self.folder) as browser:
            for ranks, name in ((8, "eight.html"), (240, "many.html")):
                story(self.path("shown.jsonl"), ranks, 60)
                _, file = self.analyze("%d ranks" % ranks, [self.path("shown.jsonl")], name=name)
                self.shown(browser, "%d ranks" % ranks, file, ranks)
                self.fits(browser, "%d ranks" % ranks, file)
            _, real = self.analyze("real", [os.path.join(GOLDEN, "real", "sigkill-rank1")],
                                   name="real.html")
            self.shown(browser, "real", real, 4)
            self.fits(browser, "real", real)
            for what, case in (("verdicts", "detectors/incident/link_error_to_eviction"),
                               ("healthy", "real/healthy")):
                place = os.path.join(GOLDEN, case)
                if os.path.exists(os.path.join(place, "events.jsonl")):
                    place = os.path.join(place, "events.jsonl")
                _, file = self.analyze(what, [place], name=what + ".html")
                self.fits(browser, what, file)
            _, two = self.analyze("incidents", [self.merged()], name="incidents.html")
            self.fits(browser, "verdicts", two)
            self.lanes(browser, two)
            story(self.path("evil.jsonl"), 4, 60, evil=EVIL)
            _, evil = self.analyze("evil", [self.path("evil.jsonl")], name="evil.html")
            self.shown(browser, "evil", evil, 4)
            self.inert(browser, evil)
            self.handled(browser, self.path("eight.html"))
            self.in_wandb(browser, self.path("eight.html"))


def main():
    with tempfile.TemporaryDirectory(prefix="culprit-page-") as folder:
        suite = Suite(os.path.abspath(sys.argv[1]), folder)
        suite.golden()
        suite.twice()
        suite.configured()
        suite.jobs()
        suite.incidents()
        suite.live()
        suite.refused()
        suite.large()
        suite.in_browser()
        return suite.checks.finish()


if __name__ == "__main__":
    sys.exit(main())
