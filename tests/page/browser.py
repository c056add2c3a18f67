# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, spoken to over a pipe (DevTools protocol, --remote-debugging-pipe).

    with Browser(folder) as browser:
        page = browser.open("file:///…", dark=True)
        page.run("document.title")
        page.screenshot()

Everything that a page asks of the network, logs or throws is kept in page.events.
"""
import base64
import json
import os
import select
import shutil
import struct
import subprocess
import sys
import time
import zlib

ANSWER_TIMEOUT_S = 60
NAMES = ("chromium", "chromium-browser", "google-chrome")


def find_chromium():
    for name in NAMES:
        path = shutil.which(name)
        if path:
            return path
    return None


# The browser reads commands from descriptor 3 and answers on 4. (A shell's redirection takes
# descriptors of one digit only.)
PIPES = """import os, sys
pipes = [os.dup(os.dup(os.dup(at))) for at in (%d, %d)]
for at, pipe in zip((3, 4), pipes):
    os.dup2(pipe, at)
os.execvp(sys.argv[1], sys.argv[1:])"""


class Browser:
    def __init__(self, folder):
        self.profile = os.path.join(folder, "chromium-profile")
        self.process = None
        self.next_id = 0
        self.received = b""
        self.events = {}

    def __enter__(self):
        out_read, self.out = os.pipe()
        self.into, in_write = os.pipe()
        command = [sys.executable, "-c", PIPES % (out_read, in_write), find_chromium(), "--headless=new", "--no-sandbox", "--disable-gpu",
                   "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
                   "--disable-background-networking", "--disable-component-update",
                   "--disable-sync", "--disable-extensions", "--force-color-profile=srgb",
                   "--user-data-dir=" + self.profile, "--remote-debugging-pipe", "about:blank"]
        self.process = subprocess.Popen(
            command, pass_fds=(out_read, in_write), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env=dict(os.environ, HOME=self.profile))
        os.close(out_read)
        os.close(in_write)
        return self

    def __exit__(self, *_):
        try:
            self.call("Browser.close")
        except (OSError, RuntimeError, TimeoutError):
            pass
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.out)
        os.close(self.into)

    def receive(self, deadline):
        while b"\0" not in self.received:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.into], [], [], left)[0]:
                raise TimeoutError("the browser does not answer")
            block = os.read(self.into, 1 << 20)
            if not block:
                raise RuntimeError("the browser has ended")
            self.received += block
        message, self.received = self.received.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, session=None, **parameters):
        self.next_id += 1
        message = {"id": self.next_id, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.out, data):]
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        while True:
            answer = self.receive(deadline)
            if answer.get("id") == self.next_id:
                if "error" in answer:
                    raise RuntimeError("%s: %s" % (method, answer["error"]))
                return answer["result"]
            if "method" in answer:
                self.events.setdefault(answer.get("sessionId"), []).append(answer)

    def wait(self, session, method):
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        while not any(event["method"] == method for event in self.events.get(session, [])):
            answer = self.receive(deadline)
            if "method" in answer:
                self.events.setdefault(answer.get("sessionId"), []).append(answer)

    def open(self, url, width=1200, height=900, dark=False, script=True, block=(), window=False):
        """In a window of its own a page stays in view while others are opened."""
        target = self.call("Target.createTarget", url="about:blank",
                           newWindow=window)["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, target, session)
        for domain in ("Page", "Runtime", "Network", "Log"):
            page.call(domain + ".enable")
        page.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)
        page.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        page.call("Emulation.setScriptExecutionDisabled", value=not script)
        page.call("Network.setBlockedURLs", urls=list(block))
        self.events[session] = []
        page.call("Page.navigate", url=url)
        self.wait(session, "Page.loadEventFired")
        return page


class Page:
    def __init__(self, browser, target, session):
        self.browser, self.target, self.session = browser, target, session

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def run(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:500])
        return answer["result"].get("value")

    def screenshot(self, whole=False):
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        return base64.b64decode(answer["data"])

    def pdf(self):
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])

    @property
    def events(self):
        return self.browser.events.get(self.session, [])

    def complaints(self):
        """What the console, the log or an exception said."""
        return [event for event in self.events if event["method"] in (
            "Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")]

    def requests(self):
        return [event["params"]["request"]["url"] for event in self.events
                if event["method"] == "Network.requestWillBeSent"]

    def close(self):
        self.browser.call("Target.closeTarget", targetId=self.target)


def png_rows(data):
    """Width, height and the rows of an 8-bit RGB or RGBA picture, as bytes."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n", "no PNG"
    at, packed, size = 8, b"", None
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, color = struct.unpack(">IIBB", body[:10])
            assert depth == 8 and color in (2, 6), "depth %d, colour type %d" % (depth, color)
            size = 3 if color == 2 else 4
        elif kind == b"IDAT":
            packed += body
        at += length + 12
    raw, rows = zlib.decompress(packed), []
    before = bytearray(width * size)
    for y in range(height):
        start = y * (width * size + 1)
        row = unfilter(raw[start], bytearray(raw[start + 1:start + 1 + width * size]), before, size)
        rows.append(bytes(row))
        before = row
    return width, height, size, rows


def unfilter(kind, row, before, size):
    if kind == 2:
        return bytearray((a + b) & 255 for a, b in zip(row, before))
    for i in range(len(row) if kind else 0):
        left = row[i - size] if i >= size else 0
        if kind == 1:
            row[i] = (row[i] + left) & 255
        elif kind == 3:
            row[i] = (row[i] + (left + before[i]) // 2) & 255
        elif kind == 4:
            corner = before[i - size] if i >= size else 0
            guess = left + before[i] - corner
            by = [(abs(guess - left), 0, left), (abs(guess - before[i]), 1, before[i]),
                  (abs(guess - corner), 2, corner)]
            row[i] = (row[i] + min(by)[2]) & 255
    return row


def png_colors(data):
    """How often each colour occurs."""
    _, _, size, rows = png_rows(data)
    counts = {}
    for row in rows:
        for at in range(0, len(row), size):
            color = row[at:at + 3]
            counts[color] = counts.get(color, 0) + 1
    return counts
