# SPDX-License-Identifier: Apache-2.0
"""A strict stand-in for Grafana's annotations API, for tests.

It does what Grafana 10 to 12 do (grafana/grafana: pkg/api/annotations.go, pkg/services/annotations,
pkg/services/tag): a tag is cut at its colons and keeps two parts, which have 100 characters each
(Postgres, MySQL); all tags as a JSON array have at most 500 bytes; PATCH of what is not there is
404; a list holds those that have all tags that are asked for, newest end first, 100 unless `limit`
says. It is stricter where a mistake of ours would pass there: unknown fields, times that are no
milliseconds of this century, tags that would be cut, a text whose markup is not ours.
"""
import html.parser
import http.server
import json
import re
import threading
import time
import urllib.parse

PATH = "/api/annotations"
TAGS_MAX, COLUMN_MAX = 500, 100
MARKUP = {"b", "br", "a"}


class Refused(Exception):
    def __init__(self, status, why):
        super().__init__(why)
        self.status, self.why = status, why


class Text(html.parser.HTMLParser):
    """What a browser would show, and the elements in it."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.shown, self.elements, self.links = "", [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append(tag)
        self.links += [value for name, value in attrs if name == "href"]
        if (tag == "a") != (len(attrs) == 1):
            self.elements.append("attributes of " + tag)
        self.shown += "\n" if tag == "br" else ""

    def handle_data(self, data):
        self.shown += data

    def handle_comment(self, data):
        self.elements.append("comment")

    def handle_decl(self, decl):
        self.elements.append("declaration")


def tag_pair(tag):
    parts = tag.split(":")
    return (parts[0].strip(" "), parts[1].strip(" ") if len(parts) > 1 else "")


def checked(body, fields):
    """The fields of a body, or Refused."""
    try:
        given = json.loads(body)
    except ValueError as error:
        raise Refused(400, "bad request data") from error
    if not isinstance(given, dict) or set(given) - fields:
        raise Refused(400, "strict: fields %s" % sorted(given))
    for name in ("time", "timeEnd"):
        value = given.get(name, 10**12)
        if type(value) is not int or not 10**12 <= value < 10**13:
            raise Refused(400, "strict: %s is no time in ms: %r" % (name, value))
    if given.get("timeEnd", 10**13) < given.get("time", 0):
        raise Refused(400, "strict: it ends before it begins")
    if not isinstance(given.get("text"), str) or not given["text"]:
        raise Refused(400, "Failed to save annotation: text field should not be empty")
    text = Text(given["text"])
    if set(text.elements) - MARKUP or any(not re.match("https?://", link) for link in text.links):
        raise Refused(400, "strict: markup %s %s" % (text.elements, text.links))
    if re.search("[\x00-\x09\x0b-\x1f\x7f]", given["text"]):
        raise Refused(400, "strict: control characters in the text")
    tags = given.get("tags")
    if not isinstance(tags, list) or not all(isinstance(tag, str) and tag for tag in tags):
        raise Refused(400, "bad request data")
    size = 2 + sum(len(tag.encode()) + 3 for tag in tags) - 1
    if size > TAGS_MAX:
        raise Refused(400, "tags length (%d) exceeds the maximum allowed (%d)" % (size, TAGS_MAX))
    pairs = [tag_pair(tag) for tag in tags]
    if any(max(len(key), len(value)) > COLUMN_MAX for key, value in pairs):
        raise Refused(500, "value too long for type character varying(100)")
    whole = [key + ":" + value if value else key for key, value in pairs]
    if whole != tags or len(set(tags)) != len(tags):
        raise Refused(400, "strict: Grafana would make %s of %s" % (whole, tags))
    return given


class Grafana:
    """`answer(method, path)`: (status, headers, body) in place of Grafana's own answer, or None.
    Without `serve` it listens nowhere: whoever has a request asks respond()."""

    def __init__(self, token=None, answer=None, serve=True):
        self.token, self.answer = token, answer
        self.annotations = {}   # by number
        self.requests = []      # (method, path with query, status)
        self.refusals = []
        self.next_number = 1
        self.lock = threading.Lock()
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def serve(self):
                body = self.rfile.read(int(self.headers["Content-Length"] or 0))
                status, headers, content = server.respond(self, body)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = serve

            def log_message(self, *_):
                pass

        if not serve:
            return
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def respond(self, request, body):
        with self.lock:
            special = self.answer(request.command, request.path) if self.answer else None
            try:
                status, content = (200, self.handle(request, body)) if special is None else (0, 0)
            except Refused as refused:
                self.refusals.append(refused.why)
                status, content = refused.status, {"message": refused.why}
            if special is not None:
                status, headers, raw = special
            else:
                headers, raw = {"Content-Type": "application/json"}, json.dumps(content).encode()
            self.requests.append((request.command, request.path, status))
            return status, headers, raw

    def handle(self, request, body):
        if self.token is not None and request.headers["Authorization"] != "Bearer " + self.token:
            raise Refused(401, "Invalid API key")
        url = urllib.parse.urlsplit(request.path)
        number = re.fullmatch(re.escape(PATH) + "/([0-9]+)", url.path)
        if request.command == "GET" and url.path == PATH:
            return self.listed(urllib.parse.parse_qs(url.query, strict_parsing=True))
        if request.headers["Content-Type"] != "application/json":
            raise Refused(400, "strict: the content type %r" % request.headers["Content-Type"])
        if request.command == "POST" and url.path == PATH and not url.query:
            return self.create(checked(body, {"time", "timeEnd", "tags", "text"}))
        if request.command == "PATCH" and number:
            return self.change(int(number.group(1)),
                               checked(body, {"time", "timeEnd", "tags", "text"}))
        raise Refused(404, "Not found")

    def listed(self, query):
        if set(query) - {"tags", "limit", "type"} or query.get("type") != ["annotation"]:
            raise Refused(400, "strict: the query %s" % query)
        wanted = {tag_pair(tag) for tag in query.get("tags", [])}
        found = [one for one in self.annotations.values()
                 if all(pair in {tag_pair(tag) for tag in one["tags"]}
                        or (not pair[1] and pair[0] in {tag_pair(tag)[0] for tag in one["tags"]})
                        for pair in wanted)]
        found.sort(key=lambda one: (-one["timeEnd"], -one["time"]))
        return found[:int(query.get("limit", ["100"])[0])]

    def create(self, given):
        now = int(time.time() * 1000)
        start = given.get("time", now)
        one = {"id": self.next_number, "alertId": 0, "dashboardId": 0, "panelId": 0, "userId": 1,
               "newState": "", "prevState": "", "created": now, "updated": now, "time": start,
               "timeEnd": given.get("timeEnd", start), "text": given["text"],
               "tags": given["tags"], "login": "sa-culprit", "data": {}}
        self.annotations[self.next_number] = one
        self.next_number += 1
        return {"message": "Annotation added", "id": one["id"]}

    def change(self, number, given):
        if number not in self.annotations:
            raise Refused(404, "Annotation not found")
        self.annotations[number].update(given)
        return {"message": "Annotation patched"}

    def tagged(self, tag):
        """The annotations with this tag, by number."""
        with self.lock:
            return [dict(one) for one in self.annotations.values() if tag in one["tags"]]

    def asked(self, method):
        with self.lock:
            return [one for one in self.requests if one[0] == method]
