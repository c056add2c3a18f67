# SPDX-License-Identifier: Apache-2.0
"""What the stand-in for an API server takes: Events of events.k8s.io/v1, their series, the status of
a node, and the metadata of one pod; as strictly as the real one does, and with its words.

Rules of Events: kubernetes pkg/apis/core/validation/events.go; recordings: golden/kubernetes_api.
"""
import json
import re

EVENT_KEYS = {"apiVersion", "kind", "metadata", "eventTime", "type", "reason", "action", "note",
              "reportingController", "reportingInstance", "regarding"}
META_KEYS = {"name", "namespace", "annotations"}
CONDITION_KEYS = {"type", "status", "reason", "message", "lastHeartbeatTime", "lastTransitionTime"}
MICROS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
SECONDS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
QUALIFIED = re.compile(r"([a-z0-9.-]+/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


class Refused(Exception):
    def __init__(self, code, reason, message, cause=None, headers=()):
        super().__init__(message)
        self.code, self.reason, self.message = code, reason, message
        self.cause, self.headers = cause, headers


def must(condition, code, reason, message):
    if not condition:
        raise Refused(code, reason, message)


def keys_of(value, known, required, where):
    must(isinstance(value, dict), 400, "BadRequest", "%s is no object" % where)
    must(not set(value) - known, 400, "BadRequest",
         "strict decoding error: unknown field %s of %s" % (sorted(set(value) - known), where))
    must(required <= set(value), 422, "Invalid", "%s lacks %s" % (where, sorted(required - set(value))))


def checked_event(event, namespace):
    """-> the Event as it is kept."""
    keys_of(event, EVENT_KEYS, EVENT_KEYS, "Event")
    meta, about = event["metadata"], event["regarding"]
    keys_of(meta, META_KEYS, {"name", "namespace"}, "metadata")
    keys_of(about, {"apiVersion", "kind", "name", "namespace", "uid"}, {"apiVersion", "kind", "name"},
            "regarding")
    must((event["apiVersion"], event["kind"]) == ("events.k8s.io/v1", "Event"), 400, "BadRequest",
         "another kind")
    must(SUBDOMAIN.fullmatch(meta["name"]) and len(meta["name"]) <= 253, 422, "Invalid",
         "metadata.name: Invalid value: %r" % meta["name"])
    must(meta["namespace"] == namespace, 400, "BadRequest",
         "the namespace of the provided object does not match the namespace sent on the request")
    must(about.get("namespace", "default") == namespace, 422, "Invalid",
         "involvedObject.namespace: Invalid value: does not match event.namespace")
    must(MICROS.fullmatch(event["eventTime"]), 400, "BadRequest", "eventTime cannot be parsed")
    must(event["type"] in ("Normal", "Warning"), 422, "Invalid", "type: Invalid value")
    for key, most in (("reason", 128), ("action", 128), ("reportingInstance", 128)):
        must(0 < len(event[key].encode()) <= most, 422, "Invalid", key + ": Invalid value")
    must(len(event["note"].encode()) <= 1024, 422, "Invalid", "note: can have at most 1024 bytes")
    must(QUALIFIED.fullmatch(event["reportingController"]), 422, "Invalid",
         "reportingController: Invalid value")
    for key in meta.get("annotations", {}):
        must(QUALIFIED.fullmatch(key) and len(key) <= 63, 422, "Invalid", "annotations: %r" % key)
    return event


def patched_event(event, patch):
    keys_of(patch, {"series"}, {"series"}, "patch")  # all else is immutable
    keys_of(patch["series"], {"count", "lastObservedTime"}, {"count", "lastObservedTime"}, "series")
    must(isinstance(patch["series"]["count"], int) and patch["series"]["count"] >= 2, 422, "Invalid",
         "series.count: should be at least 2")
    must(MICROS.fullmatch(patch["series"]["lastObservedTime"]), 400, "BadRequest",
         "lastObservedTime cannot be parsed")
    return dict(event, series=patch["series"])


def patched_node(conditions, patch):
    """Strategic: the conditions of other types stay."""
    keys_of(patch, {"status"}, {"status"}, "patch")
    keys_of(patch["status"], {"conditions"}, {"conditions"}, "status")
    merged = {one["type"]: one for one in conditions}
    for one in patch["status"]["conditions"]:
        keys_of(one, CONDITION_KEYS, CONDITION_KEYS, "condition")
        must(one["status"] in ("True", "False", "Unknown"), 422, "Invalid", "status")
        for key in ("lastHeartbeatTime", "lastTransitionTime"):
            must(SECONDS.fullmatch(one[key]), 400, "BadRequest", key + " cannot be parsed")
        merged[one["type"]] = dict(merged.get(one["type"], {}), **one)
    return list(merged.values())


class Writes:
    """A part of the stand-in's handler. `world.rights`: None, or a set of (verb, resource,
    namespace) that are allowed, the namespace "" for the whole cluster."""

    def body(self):
        return json.loads(self.rfile.read(int(self.headers.get("Content-Length", "0"))))

    def do_POST(self):
        self.answered("create")

    def do_PATCH(self):
        self.answered("patch")

    def answered(self, verb):
        """Reads the body first, so that the connection can go on."""
        path, _, query = self.path.partition("?")
        parts = path.strip("/").split("/")
        body = self.body() if verb != "get" else None
        self.kind, self.query = verb, query
        try:
            if parts[:4] == ["apis", "events.k8s.io", "v1", "namespaces"] and parts[5:6] == ["events"]:
                answer = self.event(verb, parts[4], parts[6:], body)
            elif parts[:3] == ["api", "v1", "nodes"] and parts[4:] == ["status"] and verb == "patch":
                answer = self.node_status(parts[3], body)
            elif parts[:3] == ["api", "v1", "namespaces"] and parts[4:5] == ["pods"] and verb == "get":
                answer = self.pod(parts[3], parts[5])
            else:
                self.resource = None
                raise Refused(404, "NotFound", "the server could not find the requested resource")
        except Refused as refused:
            return self.status(refused.code, refused.message, refused.headers, refused.cause,
                               refused.reason)
        if answer is None:
            self.note(0)
            return self.connection.shutdown(2)  # it was killed before it could answer
        return self.json(201 if verb == "create" else 200, answer)

    def json(self, code, answer):
        self.note(code)
        data = json.dumps(answer, separators=(",", ":")).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def admitted(self, verb, resource, group, namespace, kinds):
        """Who asks, whether the account may, and what the test wants to go wrong. -> whether the
        answer is lost."""
        self.resource = resource
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        must(token == self.world.token, 401, "Unauthorized", "Unauthorized")
        rights = self.world.rights
        must(rights is None or {(verb, resource, namespace), (verb, resource, "")} & rights, 403,
             "Forbidden", 'User "culprit" cannot %s resource "%s" in API group "%s" in the namespace '
             '"%s"' % (verb, resource, group, namespace))
        must(verb == "get" or self.query == "fieldManager=culprit", 400, "BadRequest", self.query)
        must(verb == "get" or self.headers.get("Content-Type") in kinds, 415, "UnsupportedMediaType",
             "the body of the request was in an unknown format")
        fault = self.fault()
        if fault is not None and fault.what == "lost":
            return True
        if fault is not None:
            raise Refused(fault.what, fault.more.get("reason", "InternalError"),
                          fault.more.get("message", "as the test wants it"), fault.more.get("cause"),
                          fault.more.get("headers", ()))
        return False

    def event(self, verb, namespace, name, body):
        world = self.world
        lost = self.admitted(verb, "events", "events.k8s.io", namespace,
                             ("application/json",) if verb == "create" else
                             ("application/merge-patch+json", "application/strategic-merge-patch+json"))
        must(world.namespaces is None or namespace in world.namespaces, 404, "NotFound",
             'namespaces "%s" not found' % namespace)
        with world.changed:
            if verb == "create":
                made = checked_event(body, namespace)
                key = namespace, made["metadata"]["name"]
                must(key not in world.events, 409, "AlreadyExists",
                     'events.events.k8s.io "%s" already exists' % key[1])
            else:
                key = namespace, name[0]
                must(key in world.events, 404, "NotFound", 'events "%s" not found' % name[0])
                made = patched_event(world.events[key], body)
            world.events[key] = made
            world.changed.notify_all()
        return None if lost else made

    def node_status(self, name, body):
        world = self.world
        lost = self.admitted("patch", "nodes/status", "", "",
                             ("application/strategic-merge-patch+json",))
        with world.changed:
            must(name in world.conditions, 404, "NotFound", 'nodes "%s" not found' % name)
            world.conditions[name] = patched_node(world.conditions[name], body)
            world.condition_writes.append((name, body["status"]["conditions"][0]))
            world.changed.notify_all()
        # As the client asked; a whole Node could be large.
        must("as=PartialObjectMetadata" in self.headers.get("Accept", ""), 406, "NotAcceptable",
             "the test wants metadata only")
        return None if lost else {"kind": "PartialObjectMetadata", "metadata": {"name": name}}

    def pod(self, namespace, name):
        world = self.world
        self.admitted("get", "pods", "", namespace, ())
        must("as=PartialObjectMetadata" in self.headers.get("Accept", ""), 406, "NotAcceptable",
             "the test wants metadata only")
        with world.changed:
            item = world.objects["pods"].get((namespace, name))
        must(item is not None, 404, "NotFound", 'pods "%s" not found' % name)
        return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
                "metadata": item["metadata"]}
