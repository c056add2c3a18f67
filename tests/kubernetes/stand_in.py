# SPDX-License-Identifier: Apache-2.0
"""A strict stand-in for a Kubernetes API server, for what a real one does not do when asked to.

It lists and watches events, pods and nodes as the real one was recorded to (tests/golden,
kubernetes_api), over HTTP/1.1, and answers 400 to any query that it does not know. Faults are put
into a queue for each resource; each is used by the next request that it fits. What is asked is kept.
What it takes: stand_in_writes.py.
"""
import collections
import http.server
import json
import threading
import time
import urllib.parse

from stand_in_writes import Writes

KINDS = {"events": "Event", "pods": "Pod", "nodes": "Node"}
WATCH_KEYS = {"watch", "allowWatchBookmarks", "timeoutSeconds", "resourceVersion",
              "sendInitialEvents", "resourceVersionMatch", "fieldSelector", "labelSelector"}
LIST_KEYS = {"limit", "continue", "resourceVersion", "resourceVersionMatch", "fieldSelector",
             "labelSelector"}
END = {"k8s.io/initial-events-end": "true"}

Request = collections.namedtuple("Request", "resource kind query token status at")


class Fault:
    """`of`: the kind of request it is for (list, page, probe, watch), or None for any."""

    def __init__(self, what, of=None, **more):
        self.what, self.of, self.more = what, of, more


class StandIn:
    def __init__(self, port=0, token="first-token-of-the-tests", streams=True):
        self.changed = threading.Condition()
        self.version = 100
        self.known_from = 0  # watches from before it are 410
        self.objects = {resource: {} for resource in KINDS}
        self.history = {resource: [] for resource in KINDS}
        self.faults = {resource: collections.deque() for resource in (*KINDS, "nodes/status")}
        self.events = {}  # (namespace, name): as they were created, with their series
        self.conditions = {}  # of nodes, by name
        self.condition_writes = []
        self.rights = None  # all
        self.namespaces = None  # any
        self.requests = []
        self.token = token
        self.streams = streams
        self.stopping = False
        self.cuts = 0
        handler = type("Handler", (Handler,), {"world": self})
        self.server = Server(("127.0.0.1", port), handler)
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with self.changed:
            self.stopping = True
            self.changed.notify_all()
        self.server.shutdown()
        self.server.server_close()

    # -- what a test does --------------------------------------------------------------------------

    def put(self, resource, name, namespace="train", **fields):
        """Adds or changes an object."""
        with self.changed:
            self.version += 1
            known = self.objects[resource].get((namespace, name))
            uid = known["metadata"]["uid"] if known else "uid-%s-%s-%d" % (resource, name,
                                                                           self.version)
            item = {"metadata": {"name": name, "namespace": namespace, "uid": uid,
                                 "resourceVersion": str(self.version)}, **fields}
            self.objects[resource][namespace, name] = item
            self.tell(resource, "MODIFIED" if known else "ADDED", item)
            return item

    def remove(self, resource, name, namespace="train", silently=False):
        with self.changed:
            self.version += 1
            item = json.loads(json.dumps(self.objects[resource].pop((namespace, name))))
            item["metadata"]["resourceVersion"] = str(self.version)
            if not silently:
                self.tell(resource, "DELETED", item)

    def tell(self, resource, kind, item):
        self.history[resource].append((self.version, kind, item))
        self.changed.notify_all()

    def fail(self, resource, what, of=None, **more):
        with self.changed:
            self.faults[resource].append(Fault(what, of, **more))

    def forget(self):
        """Versions from before now are 410."""
        with self.changed:
            self.known_from = self.version

    def go_back(self, versions):
        """As after a backup: the versions that were given out last are not known."""
        with self.changed:
            self.version -= versions
            for history in self.history.values():
                history.clear()

    def cut_all(self):
        """Breaks all watches off, in the middle of a line."""
        with self.changed:
            self.cuts += 1
            self.changed.notify_all()

    def asked(self, resource, kind=None, status=None):
        with self.changed:
            return [one for one in self.requests if one.resource == resource
                    and kind in (None, one.kind) and status in (None, one.status)]


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass  # culprit was killed in the middle of a request


class Handler(Writes, http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    world = None

    def log_message(self, *_):
        pass

    def do_GET(self):
        world = self.world
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True,
                                            strict_parsing=bool(url.query)))
        parts = url.path.strip("/").split("/")
        self.namespace = None
        if len(parts) == 6:
            return self.answered("get")
        if parts[:3] == ["api", "v1", "namespaces"] and len(parts) == 5:
            self.namespace = parts[3]
            del parts[2:4]
        if parts[:2] != ["api", "v1"] or len(parts) != 3 or parts[2] not in KINDS:
            return self.status(404, "the server could not find the requested resource")
        self.resource, self.query = parts[2], query
        self.kind = ("list" if "sendInitialEvents" in query else "watch" if "watch" in query
                     else "page" if "resourceVersion" not in query else "probe")
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        known = WATCH_KEYS if "watch" in query else LIST_KEYS
        if set(query) - known:
            return self.status(400, "unknown: %s" % sorted(set(query) - known))
        if token != world.token:
            return self.status(401, "Unauthorized")
        fault = self.fault()
        if fault is not None and isinstance(fault.what, int):
            return self.status(fault.what, fault.more.get("message", "as the test wants it"),
                               fault.more.get("headers", {}), fault.more.get("reason"))
        if "watch" in query:
            return self.watch(fault)
        return self.page()

    def fault(self):
        with self.world.changed:
            queue = self.world.faults[self.resource]
            for fault in queue:
                if fault.of in (None, self.kind):
                    queue.remove(fault)
                    return fault
        return None

    def note(self, status):
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        with self.world.changed:
            self.world.requests.append(Request(getattr(self, "resource", None),
                                               getattr(self, "kind", None),
                                               getattr(self, "query", None), token, status,
                                               time.monotonic()))

    def status(self, code, message, headers=(), cause=None, reason=None):
        self.note(code)
        details = {"causes": [{"reason": cause}]} if cause else {}
        body = json.dumps({"kind": "Status", "apiVersion": "v1", "metadata": {},
                           "status": "Failure", "message": message, "details": details,
                           **({"reason": reason} if reason else {}),
                           "code": code}, separators=(",", ":")).encode()
        self.send_response(code)
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def selected(self):
        """As the API server selects, the two fields that culprit asks for; the lock is held."""
        wanted = dict(part.split("=", 1) for part in
                      self.query.get("fieldSelector", "").split(",") if part)
        for (namespace, name), item in sorted(self.world.objects[self.resource].items()):
            node = item.get("spec", {}).get("nodeName")
            if (self.namespace in (None, namespace)
                    and wanted.get("metadata.name", name) == name
                    and wanted.get("spec.nodeName", node) == node):
                yield item

    # -- lists -------------------------------------------------------------------------------------

    def page(self):
        world = self.world
        if "resourceVersion" in self.query and "resourceVersionMatch" not in self.query:
            return self.status(400, "resourceVersionMatch is missing")
        limit = int(self.query.get("limit", "500"))
        begin = int(self.query.get("continue") or 0)
        with world.changed:
            if int(self.query.get("resourceVersion", "0")) > world.version:
                late = True
            else:
                late = False
                items = list(self.selected())
                meta = {"resourceVersion": str(world.version)}
                if begin + limit < len(items):
                    meta["continue"] = str(begin + limit)
        if late:
            return self.status(504, "Too large resource version", {"Retry-After": "1"},
                               "ResourceVersionTooLarge")
        self.note(200)
        body = json.dumps({"kind": KINDS[self.resource] + "List", "apiVersion": "v1",
                           "metadata": meta, "items": items[begin:begin + limit]},
                          separators=(",", ":")).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        return self.wfile.write(body)

    # -- watches -----------------------------------------------------------------------------------

    def chunk(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def line(self, kind, item):
        body = dict(item, kind=KINDS[self.resource], apiVersion="v1")
        self.chunk(json.dumps({"type": kind, "object": body},
                              separators=(",", ":")).encode() + b"\n")

    def watch(self, fault):
        world = self.world
        if "sendInitialEvents" in self.query and not world.streams:
            return self.status(422, "sendInitialEvents is forbidden")
        if ("sendInitialEvents" in self.query) != ("resourceVersionMatch" in self.query):
            return self.status(422, "resourceVersionMatch goes with sendInitialEvents")
        self.note(200)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            if fault is None or self.play(fault):
                self.follow()
            self.chunk(b"")
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        return None

    def play(self, fault):
        """Whether the watch goes on after it."""
        if fault.what == "gone":
            self.chunk(b'{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},'
                       b'"status":"Failure","message":"too old resource version: 1 (2)",'
                       b'"reason":"Expired","code":410}}\n')
        elif fault.what == "garbage":
            self.chunk(b"<html>it works</html>\n")
        elif fault.what == "huge":
            self.chunk(b'{"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"')
            self.chunk(b"a" * fault.more["size"])
            self.chunk(b'"}}}\n')
            return True
        return False  # "empty", too

    def follow(self):
        world = self.world
        until = time.monotonic() + int(self.query["timeoutSeconds"])
        with world.changed:
            at, cuts = world.version, world.cuts
            state = list(self.selected()) if "sendInitialEvents" in self.query else None
            if state is None:
                at = int(self.query["resourceVersion"])
                if at < world.known_from:
                    state = "gone"
        if state == "gone":
            self.play(Fault("gone"))
            return
        if state is not None:
            for item in state:
                self.line("ADDED", item)
            self.line("BOOKMARK", {"metadata": {"resourceVersion": str(at), "annotations": END}})
        while True:
            with world.changed:
                news = [one for one in world.history[self.resource] if one[0] > at]
                left = until - time.monotonic()
                if not news and left > 0 and not world.stopping and cuts == world.cuts:
                    world.changed.wait(min(left, 0.5))
                    continue
            for version, kind, item in news:
                self.line(kind, item)
                at = version
            if cuts != world.cuts:
                self.chunk(b'{"type":"ADDED","object":{"kind":"Pod","metadata":{"na')
                self.close_connection = True
                self.connection.shutdown(2)
                return
            if left <= 0 or world.stopping:
                return
