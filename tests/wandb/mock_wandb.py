#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mock_wandb.py - a strict stand-in for a W&B server, for tests on 127.0.0.1.

Start:    mock_wandb.py [--port 0] [--api-key KEY] [--entity ent] [--fault SPEC ...]
                        [--features A,B] [--record FILE.jsonl]
          It prints one line, "READY http://127.0.0.1:PORT", then serves until killed.

A client uses these:
  POST /graphql                                    operations in ROOTS below
  POST /files/<entity>/<project>/<run>/file_stream history, summary, console, end of run
  PUT  /storage/...                                signed upload URLs given out by GraphQL
  POST /sdk/otel/v1/...                            swallowed (the Python SDK's own telemetry)
A test uses these (no key needed):
  GET  /__decoded[?content=0]   what the server understood: runs (config, summary, history,
                                events, output, files, artifacts), violations, warnings, counts.
                                Strict JSON: NaN and infinities become {"$float": "NaN"} ...
  GET  /__requests              one small object for each request received, in order
  POST /__fault   body: SPEC    add a fault while running;  DELETE /__fault  drops them all
  POST /__reset                 forget runs, artifacts, faults, violations
  POST /__run     body: {"name", "project", "config", "history", "summary", "complete", ...} as
                  somebody else's client would have left the run
  POST /__tag     body: PROJECT/NAME/TAG    as the user adds a tag to a run
  POST /__delete  body: PROJECT/NAME    as the user deletes a run: its id cannot be used again

Every rule a client breaks is answered with a 4xx whose body says which rule, and is kept
in "violations".  "warnings" are differences from what the official client sends that a
server does not mind.

Fault SPEC: comma-separated key=value
  at=WHERE     graphql | graphql:createArtifact | file_stream | storage | any   (default any)
  kind=KIND    a status number (401, 409, 429, 500, 503 ...) | drop | drop_after | slow |
               stall | truncate | garbage | gqlerror | stopped | dup | echo401
  count=N      how many requests it hits (default 1; 0 = for ever)
  skip=N       how many matching requests pass first (default 0)
  after=SEC    Retry-After header for a status fault (file_stream: a resend before that
               time is a violation)
  secs=SEC     how long slow/stall last (default 2 / 3600)
  drop       connection closed, request NOT processed
  drop_after request processed, connection closed without a reply (a resend must be harmless)
  truncate   processed, half of the reply sent, connection closed
  garbage    processed, HTTP 200 with a body that is not JSON
  gqlerror   not processed, HTTP 200 with {"errors": [...], "data": null}
  stopped    file_stream reply carries "stopped": true
  echo401    not processed, HTTP 401 with the request's Authorization header in its error
  dup        createArtifact answers as if that content were already there (state COMMITTED)
Example: --fault at=file_stream,kind=429,count=2,after=1 --fault at=storage,kind=drop_after
Needs Python 3.9+, standard library only.  It never listens on another address.
"""
import argparse
import base64
import gzip
import hashlib
import json
import math
import re
import secrets
import socket
import sys
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MAX_LINE = (10 << 20) - (100 << 10)    # longest history/summary line a server takes
MAX_BODY = 12 << 20                    # file_stream body: about 10 MiB plus JSON overhead
STREAM_FILES = ("wandb-history.jsonl", "wandb-events.jsonl", "wandb-summary.json", "output.log")
STREAM_KEYS = {"files", "uploaded", "preempting", "complete", "exitcode", "dropped"}


# ------------------------------------------------------------------ GraphQL schema (subset)
ENUMS = {
    "ArtifactManifestType": {"FULL", "INCREMENTAL", "PATCH"},
    "ArtifactStorageLayout": {"V1", "V2"},
    "ArtifactDigestAlgorithm": {"MANIFEST_MD5"},
    "AlertSeverity": {"INFO", "WARN", "ERROR"},
}
SCALARS = {"String", "ID", "Int", "Int64", "Float", "Boolean", "JSONString", "JSON",
           "Duration"}


def _fields(text):
    """'a:String! b:[X!]' -> {'a': 'String!', 'b': '[X!]'}"""
    return dict(item.split(":", 1) for item in text.split())


INPUTS = {name: _fields(text) for name, text in {
    "UpsertBucketInput": "id:String name:String groupName:String modelName:String "
        "entityName:String description:String displayName:String notes:String "
        "config:JSONString commit:String host:String debug:Boolean jobProgram:String "
        "jobRepo:String jobType:String state:String sweep:String tags:[String!] "
        "summaryMetrics:JSONString",
    "CreateRunFilesInput": "entityName:String! projectName:String! runName:String! "
        "files:[String!]!",
    "MarkRunFilesUploadedInput": "entityName:String! projectName:String! runName:String! "
        "files:[String!]!",
    "CreateArtifactInput": "entityName:String! projectName:String! runName:String "
        "artifactTypeName:String! artifactCollectionName:String! "
        "artifactCollectionNames:[String!] digest:String! "
        "digestAlgorithm:ArtifactDigestAlgorithm! description:String metadata:JSONString "
        "labels:JSONString aliases:[ArtifactAliasInput!] clientID:ID! sequenceClientID:ID! "
        "enableDigestDeduplication:Boolean historyStep:Int64 distributedID:String "
        "clientMutationId:String ttlDurationSeconds:Int64 tags:[TagInput!] storageRegion:String",
    "ArtifactAliasInput": "artifactCollectionName:String! alias:String!",
    "TagInput": "tagName:String! tagCategoryName:String attributes:JSONString",
    "CreateArtifactManifestInput": "artifactID:ID! baseArtifactID:ID name:String! "
        "digest:String! entityName:String! projectName:String! runName:String! "
        "type:ArtifactManifestType!",
    "CreateArtifactFilesInput": "artifactFiles:[CreateArtifactFileSpecInput!]! "
        "storageLayout:ArtifactStorageLayout! cloudRegionID:ID clientMutationId:String",
    "CreateArtifactFileSpecInput": "artifactID:ID! artifactManifestID:ID name:String! "
        "md5:String! mimetype:String uploadPartsInput:[UploadPartsInput!]",
    "UploadPartsInput": "partNumber:Int64! hexMD5:String!",
    "CommitArtifactInput": "artifactID:ID!",
    "NotifyScriptableRunAlertInput": "entityName:String! projectName:String! runName:String! "
        "title:String! text:String! severity:AlertSeverity waitDuration:Duration",
    "UseArtifactInput": "entityName:String! projectName:String! runName:String! "
        "artifactID:ID! usedAs:String clientMutationId:String artifactEntityName:String "
        "artifactProjectName:String",
}.items()}

ROOTS = {
    "query": {
        "viewer": ({}, "User"),
        "serverInfo": ({}, "ServerInfo"),
        "project": (_fields("name:String entityName:String"), "Project"),
        "model": (_fields("name:String entityName:String"), "Project"),
        "entity": (_fields("name:String!"), "Entity"),
        "clientIDMapping": (_fields("clientID:ID!"), "ClientIDMapping"),
    },
    "mutation": {
        "upsertBucket": ({"input": "UpsertBucketInput!"}, "UpsertBucketPayload"),
        "createRunFiles": ({"input": "CreateRunFilesInput!"}, "CreateRunFilesPayload"),
        "markRunFilesUploaded": ({"input": "MarkRunFilesUploadedInput!"}, "SuccessPayload"),
        "createArtifact": ({"input": "CreateArtifactInput!"}, "CreateArtifactPayload"),
        "createArtifactManifest": ({"input": "CreateArtifactManifestInput!"},
                                   "CreateArtifactManifestPayload"),
        "createArtifactFiles": ({"input": "CreateArtifactFilesInput!"},
                                "CreateArtifactFilesPayload"),
        "notifyScriptableRunAlert": ({"input": "NotifyScriptableRunAlertInput!"}, "SuccessPayload"),
        "commitArtifact": ({"input": "CommitArtifactInput!"}, "ArtifactPayload"),
        "useArtifact": ({"input": "UseArtifactInput!"}, "ArtifactPayload"),
    },
}

# Output types: field -> type, or (type, {argument: type}).
TYPES = {name: _fields(text) for name, text in {
    "User": "id:ID entity:String username:String name:String email:String flags:JSONString "
        "admin:Boolean teams:EntityConnection",
    "EntityConnection": "edges:[EntityEdge]", "EntityEdge": "node:Entity",
    "Entity": "id:ID name:String organization:Organization",
    "Organization": "id:ID name:String coreWeaveOrganizationId:String",
    "ServerInfo": "cliVersionInfo:JSON latestLocalVersionInfo:LocalVersion "
        "features:[ServerFeature]",
    "LocalVersion": "outOfDate:Boolean latestVersionString:String "
        "versionOnThisInstanceString:String",
    "ServerFeature": "name:String isEnabled:Boolean",
    "Project": "id:ID name:String entityName:String entity:Entity bucket:Run run:Run "
        "artifact:Artifact",
    "Run": "id:ID name:String displayName:String description:String notes:String "
        "config:JSONString summaryMetrics:JSONString sweepName:String state:String "
        "group:String jobType:String tags:[String] stopped:Boolean project:Project "
        "historyLineCount:Int eventsLineCount:Int logLineCount:Int historyTail:JSONString "
        "eventsTail:JSONString wandbConfig:JSONString",
    "UpsertBucketPayload": "bucket:Run inserted:Boolean",
    "CreateRunFilesPayload": "runID:ID uploadHeaders:[String] files:[File]",
    "SuccessPayload": "success:Boolean",
    "File": "id:ID name:String uploadUrl:String uploadHeaders:[String] storagePath:String "
        "uploadMultipartUrls:UploadMultipartUrls artifact:Artifact md5:String",
    "UploadMultipartUrls": "uploadID:String uploadUrlParts:[UploadUrlPart]",
    "UploadUrlPart": "partNumber:Int64 uploadUrl:String",
    "Artifact": "id:ID state:String digest:String versionIndex:Int artifactType:ArtifactType "
        "artifactSequence:ArtifactSequence",
    "ArtifactType": "id:ID name:String",
    "ArtifactSequence": "id:ID name:String latestArtifact:Artifact",
    "CreateArtifactPayload": "artifact:Artifact",
    "ArtifactPayload": "artifact:Artifact",
    "CreateArtifactManifestPayload": "artifactManifest:ArtifactManifest",
    "ArtifactManifest": "id:ID file:File",
    "CreateArtifactFilesPayload": "files:FileConnection",
    "FileConnection": "edges:[FileEdge]", "FileEdge": "node:File",
    "ClientIDMapping": "serverID:ID",
}.items()}
TYPES["Project"]["bucket"] = ("Run", _fields("name:String! missingOk:Boolean"))
TYPES["Project"]["run"] = ("Run", _fields("name:String!"))
TYPES["Project"]["artifact"] = ("Artifact", _fields("name:String!"))
TYPES["Run"]["wandbConfig"] = ("JSONString", _fields("keys:[String!]"))


GONE = 409      # what a server says of the id of a deleted run
DELETED = 404   # and of what is sent to the run; neither breaks a rule


class Refused(Exception):
    """A rule was broken; carries the HTTP status for the answer."""

    def __init__(self, message, status=400):
        super().__init__(message)
        self.status = status


def need(condition, message, status=400):
    if not condition:
        raise Refused(message, status)


# ------------------------------------------------------------------ GraphQL reader
GQL_TOKEN = re.compile(
    r'[\s,\ufeff]+|#[^\n]*|(?P<dots>\.\.\.)|(?P<punct>[!$()\[\]{}:=@|&])|(?P<name>[A-Za-z_]\w*)'
    r'|(?P<num>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(?P<block>"""(?:.|\n)*?""")'
    r'|(?P<str>"(?:\\.|[^"\\\n])*")')


class Gql:
    """Recursive-descent reader of one GraphQL document into plain tuples and dicts."""

    def __init__(self, text):
        self.toks, pos = [], 0
        while pos < len(text):
            m = GQL_TOKEN.match(text, pos)
            need(m, "GraphQL: cannot read the document at %r" % text[pos:pos + 20])
            if m.lastgroup:
                self.toks.append((m.lastgroup, m.group()))
            pos = m.end()
        self.toks.append(("end", ""))
        self.i = 0

    def peek(self, value=None, kind=None):
        k, v = self.toks[self.i]
        return (value is None or v == value) and (kind is None or k == kind)

    def take(self, value=None, kind=None):
        need(self.peek(value, kind), "GraphQL: expected %s near %r" % (
            value or kind, " ".join(t[1] for t in self.toks[self.i:self.i + 6])))
        self.i += 1
        return self.toks[self.i - 1][1]

    def document(self):
        ops, frags = [], {}
        while not self.peek(kind="end"):
            if self.peek("fragment"):
                self.take()
                name = self.take(kind="name")
                self.take("on")
                on = self.take(kind="name")
                self.directives()
                frags[name] = (on, self.selections())
            else:
                kind, name, variables = "query", None, {}
                if not self.peek("{"):
                    kind = self.take(kind="name")
                    need(kind in ("query", "mutation"), "GraphQL: %r is not supported" % kind)
                    if self.peek(kind="name"):
                        name = self.take()
                    if self.peek("("):
                        variables = self.variables()
                    self.directives()
                ops.append((kind, name, variables, self.selections()))
        return ops, frags

    def variables(self):
        self.take("(")
        out = {}
        while not self.peek(")"):
            self.take("$")
            name = self.take(kind="name")
            self.take(":")
            typ = self.type()
            default = None
            if self.peek("="):
                self.take()
                default = (self.value(),)
            out[name] = (typ, default)
        self.take(")")
        return out

    def type(self):
        if self.peek("["):
            self.take()
            t = "[" + self.type() + "]"
            self.take("]")
        else:
            t = self.take(kind="name")
        if self.peek("!"):
            self.take()
            t += "!"
        return t

    def directives(self):
        out = []
        while self.peek("@"):
            self.take()
            out.append((self.take(kind="name"), self.arguments()))
        return out

    def arguments(self):
        out = {}
        if self.peek("("):
            self.take()
            while not self.peek(")"):
                name = self.take(kind="name")
                self.take(":")
                need(name not in out, "GraphQL: argument %s is given twice" % name)
                out[name] = self.value()
            self.take(")")
        return out

    def value(self):
        kind, text = self.toks[self.i]
        self.i += 1
        if text == "$":
            return ("var", self.take(kind="name"))
        if text == "[":
            items = []
            while not self.peek("]"):
                items.append(self.value())
            self.take("]")
            return ("list", items)
        if text == "{":
            items = {}
            while not self.peek("}"):
                name = self.take(kind="name")
                self.take(":")
                items[name] = self.value()
            self.take("}")
            return ("object", items)
        if kind == "str":
            return ("lit", json.loads(text))
        if kind == "block":
            return ("lit", text[3:-3])
        if kind == "num":
            return ("lit", float(text) if re.search("[.eE]", text) else int(text))
        need(kind == "name", "GraphQL: %r is not a value" % text)
        if text in ("true", "false", "null"):
            return ("lit", {"true": True, "false": False, "null": None}[text])
        return ("enum", text)

    def selections(self):
        self.take("{")
        out = []
        while not self.peek("}"):
            if self.peek("..."):
                self.take()
                if self.peek("on") or self.peek("{") or self.peek("@"):
                    on = None
                    if self.peek("on"):
                        self.take()
                        on = self.take(kind="name")
                    dirs = self.directives()
                    out.append(("inline", on, dirs, self.selections()))
                else:
                    name = self.take(kind="name")
                    out.append(("spread", name, self.directives(), None))
            else:
                alias = name = self.take(kind="name")
                if self.peek(":"):
                    self.take()
                    name = self.take(kind="name")
                args = self.arguments()
                dirs = self.directives()
                sub = self.selections() if self.peek("{") else None
                out.append(("field", (alias, name, args), dirs, sub))
        self.take("}")
        need(out, "GraphQL: an empty selection set")
        return out


def fits(declared, wanted, has_default):
    """May a variable of the declared type stand where the wanted type is needed?"""
    if wanted.endswith("!"):
        if not declared.endswith("!"):
            return has_default and fits(declared, wanted[:-1], False)
        return fits(declared[:-1], wanted[:-1], False)
    declared = declared.rstrip("!")
    if wanted.startswith("["):
        return declared.startswith("[") and fits(declared[1:-1], wanted[1:-1], False)
    return declared == wanted


def check_value(value, typ, path):
    """A JSON value against a GraphQL input type; returns it, with enum and list types checked."""
    if value is None:
        need(not typ.endswith("!"), "%s must not be null (type %s)" % (path, typ))
        return None
    typ = typ.rstrip("!") if not typ.startswith("[") else typ[:-1] if typ.endswith("!") else typ
    if typ.startswith("["):
        need(isinstance(value, list), "%s must be a list (type %s)" % (path, typ))
        return [check_value(v, typ[1:-1], "%s[%d]" % (path, i)) for i, v in enumerate(value)]
    if typ in INPUTS:
        need(isinstance(value, dict), "%s must be an object (type %s)" % (path, typ))
        fields = INPUTS[typ]
        for k in value:
            need(k in fields, "%s: field %r is not defined by type %s" % (path, k, typ))
        return {k: check_value(value.get(k), t, path + "." + k) for k, t in fields.items()}
    if typ in ENUMS:
        need(value in ENUMS[typ], "%s: %r is not one of %s" % (path, value, sorted(ENUMS[typ])))
    elif typ in ("String", "ID"):
        need(isinstance(value, str), "%s must be a string" % path)
    elif typ in ("Int", "Int64", "Duration"):
        need(is_int(value), "%s must be an integer" % path)
        lim = 31 if typ == "Int" else 63
        need(-(1 << lim) <= value < (1 << lim), "%s is out of range for %s" % (path, typ))
    elif typ == "Boolean":
        need(isinstance(value, bool), "%s must be true or false" % path)
    elif typ == "JSONString":
        need(isinstance(value, str), "%s must be a string that holds JSON" % path)
        loads(value, path)
    else:
        need(typ in SCALARS, "%s: type %s is not known here" % (path, typ))
    return value


# ------------------------------------------------------------------ small helpers
def loads(text, what):
    """JSON as the server reads it: NaN, Infinity and -Infinity are allowed; twin keys are not."""
    def pairs(items):
        out = {}
        for k, v in items:
            need(k not in out, "%s: key %r appears twice" % (what, k))
            out[k] = v
        return out
    try:
        return json.loads(text, object_pairs_hook=pairs)
    except (ValueError, RecursionError) as e:
        raise Refused("%s is not JSON: %s" % (what, e))


def plain(value):
    """Make a value strict JSON."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"$float": "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"}
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [plain(v) for v in value]
    return value


def is_int(value):
    return isinstance(value, int) and not isinstance(value, bool)


def b64md5(data):
    return base64.b64encode(hashlib.md5(data).digest()).decode()


def manifest_digest(entries):
    """Digest of an artifact: hex MD5 over a header line and the sorted "path:digest" lines."""
    h = hashlib.md5(b"wandb-artifact-manifest-v1\n")
    for path in sorted(entries):
        h.update(("%s:%s\n" % (path, entries[path])).encode())
    return h.hexdigest()


def file_view(data, content):
    out = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest(), "md5": b64md5(data)}
    if content:
        try:
            out["text"] = data.decode("utf-8")
        except UnicodeDecodeError:
            out["base64"] = base64.b64encode(data).decode()
    return out


class Fault:
    def __init__(self, spec):
        opts = dict(at="any", kind="500", count="1", skip="0", after="", secs="")
        for part in spec.strip().split(","):
            k, eq, v = part.strip().partition("=")
            if not eq or k not in opts:
                raise ValueError("bad fault %r" % spec)
            opts[k] = v
        self.at, self.kind, self.after = opts["at"], opts["kind"], opts["after"]
        if not (self.kind.isdigit() or self.kind in (
                "drop", "drop_after", "slow", "stall", "truncate", "garbage", "gqlerror",
                "stopped", "dup", "echo401")):
            raise ValueError("bad fault kind %r" % self.kind)
        self.count, self.skip = int(opts["count"]), int(opts["skip"])
        self.forever = self.count == 0
        self.secs = float(opts["secs"] or (3600 if self.kind == "stall" else 2))

    def hit(self, places):
        if self.at not in places or not (self.forever or self.count > 0):
            return False
        if self.skip > 0:
            self.skip -= 1
            return False
        self.count -= 1
        return True


# ------------------------------------------------------------------ state
class Run:
    def __init__(self, entity, project, name, number):
        self.entity, self.project, self.name = entity, project, name
        self.id = base64.b64encode(b"Run:v1:%s:%s:%s" % (
            name.encode(), project.encode(), entity.encode())).decode()
        self.number = number
        self.meta, self.config = {}, {}
        self.history, self.events, self.output = [], [], []
        self.summary_text = None
        self.files, self.offered, self.uploaded = {}, {}, []
        self.complete, self.exitcode, self.finishes = False, None, 0
        self.resends, self.heartbeats, self.stream_posts, self.upserts = 0, 0, 0, 0
        self.last_body = None
        self.post_times = []
        self.alerts = []

    def summary(self):
        return loads(self.summary_text, "summary") if self.summary_text else {}

    def resume(self):
        self.complete, self.exitcode, self.last_body = False, None, None


class Artifact:
    def __init__(self, number, spec, base):
        self.id = base64.b64encode(b"Artifact:%d" % number).decode()
        self.spec, self.base, self.state = spec, base, "PENDING"
        self.clients = {spec["clientID"]: spec["sequenceClientID"]}   # more when deduplicated
        self.index = 0
        self.files, self.wanted, self.requested = {}, {}, []
        self.manifest_id = base64.b64encode(b"ArtifactManifest:%d" % number).decode()
        self.manifest_md5, self.manifest, self.manifest_raw = None, None, None


class Server:
    def __init__(self, opts):
        self.opts = opts
        self.lock = threading.RLock()
        self.reset()
        self.faults = [Fault(s) for s in opts.fault]

    def reset(self):
        self.runs, self.artifacts, self.urls, self.deleted = {}, [], {}, set()
        self.violations, self.warnings, self.requests, self.faults = [], [], [], []
        self.counts, self.not_before = {}, {}
        self.base = ""

    # ---- bookkeeping
    def violation(self, n, where, message):
        self.violations.append({"request": n, "where": where, "message": message})

    def warn(self, message):
        if message not in self.warnings:
            self.warnings.append(message)

    def pick_fault(self, places):
        with self.lock:
            for f in self.faults:
                if f.hit(places):
                    return f
        return None

    def url_for(self, kind, owner, name, headers):
        token = secrets.token_hex(8)
        quoted = urllib.parse.quote(name)
        self.urls[token] = (kind, owner, name, headers)
        return "%s/storage/%s/%s?X-Sig=%s&part=a%%2Fb" % (self.base, kind, quoted, token)

    def find_run(self, entity, project, name, what):
        run = self.runs.get((entity, project, name))
        need((entity, project, name) not in self.deleted, "%s: run %s not found" % (what, name),
             DELETED)
        need(run, "%s: run %s/%s/%s was never created by upsertBucket" % (
            what, entity, project, name), 404)
        return run

    def find_artifact(self, aid, what):
        for a in self.artifacts:
            if a.id == aid:
                return a
        raise Refused("%s: no artifact has id %r" % (what, aid), 404)

    # ---- GraphQL
    def graphql(self, body, fault):
        req = loads(body.decode("utf-8", "replace"), "GraphQL request body")
        need(isinstance(req, dict) and isinstance(req.get("query"), str),
             'GraphQL request body must be {"query": "...", "variables": {...}}')
        for k in req:
            need(k in ("query", "variables", "operationName", "extensions"),
                 "GraphQL request body has an unknown key %r" % k)
        given = req.get("variables") or {}
        need(isinstance(given, dict), "GraphQL variables must be an object")
        ops, frags = Gql(req["query"]).document()
        name = req.get("operationName") or None
        ops = [o for o in ops if name is None or o[1] == name]
        need(len(ops) == 1, "operationName %r does not select one operation" % name)
        kind, _, declared, selections = ops[0]
        for v in given:
            need(v in declared, "variable $%s is given but not declared" % v)
        values = {}
        for v, (typ, default) in declared.items():
            inner = typ.strip("[]!")
            need(inner in SCALARS or inner in ENUMS or inner in INPUTS,
                 "variable $%s has unknown type %s" % (v, typ))
            if v in given:
                values[v] = check_value(given[v], typ, "$" + v)
            else:
                need(default is not None or not typ.endswith("!"),
                     "variable $%s of type %s is required" % (v, typ))
                if default is not None:
                    values[v] = self.constant(default[0])
        ctx = (declared, values, frags, set())
        calls = []
        for alias, field, args, sub in self.flatten(selections, ctx, None):
            need(field in ROOTS[kind], "Cannot run %s field %r: not known to this server" % (kind, field))
            argtypes, typ = ROOTS[kind][field]
            bound = self.bind(args, argtypes, ctx, field)
            self.shape(None, typ, sub, ctx, field, dry=True)   # all is checked before any change
            calls.append((alias, field, bound.get("input", bound), typ, sub))
        unused = set(declared) - ctx[3]
        need(not unused, "variable $%s is never used" % ", $".join(sorted(unused)))
        data = {}
        for alias, field, bound, typ, sub in calls:
            data[alias] = self.shape(getattr(self, "do_" + field)(bound, fault), typ, sub, ctx, field)
        return {"data": data}

    def constant(self, v):
        if v[0] == "list":
            return [self.constant(x) for x in v[1]]
        if v[0] == "object":
            return {k: self.constant(x) for k, x in v[1].items()}
        return v[1]

    def bind(self, args, argtypes, ctx, where):
        for a in args:
            need(a in argtypes, "Unknown argument %r on field %r" % (a, where))
        return {a: check_value(self.resolve(args[a], t, ctx, where + "." + a) if a in args else None,
                               t, where + "." + a) for a, t in argtypes.items()}

    def resolve(self, v, typ, ctx, path):
        declared, values, _, used = ctx
        if v[0] == "var":
            need(v[1] in declared, "%s uses undeclared variable $%s" % (path, v[1]))
            used.add(v[1])
            t, default = declared[v[1]]
            need(fits(t, typ, default is not None),
                 "Variable $%s of type %s is used where %s is expected (%s)" % (v[1], t, typ, path))
            return values.get(v[1])
        inner = typ[:-1] if typ.endswith("!") else typ
        if v[0] == "list":
            need(inner.startswith("["), "%s is a list but %s is expected" % (path, typ))
            return [self.resolve(x, inner[1:-1], ctx, path) for x in v[1]]
        if v[0] == "object":
            fields = INPUTS.get(inner)
            need(fields, "%s is an object but %s is expected" % (path, typ))
            for k in v[1]:
                need(k in fields, "%s: field %r is not defined by type %s" % (path, k, inner))
            return {k: self.resolve(x, fields[k], ctx, path + "." + k) for k, x in v[1].items()}
        need((v[0] == "enum") == (inner in ENUMS) or v[1] is None,
             "%s: %r is not a literal of type %s" % (path, v[1], typ))
        return v[1]

    def flatten(self, selections, ctx, typ):
        """Fields of a selection set, with fragments opened and @include/@skip applied."""
        _, _, frags, _ = ctx
        for kind, what, dirs, sub in selections:
            keep = True
            for d, args in dirs:
                need(d in ("include", "skip") and set(args) == {"if"}, "directive @%s is wrong" % d)
                flag = self.resolve(args["if"], "Boolean!", ctx, "@" + d)
                keep = keep and (flag if d == "include" else not flag)
            if kind == "field":
                yield what[0], what[1], what[2], (sub if keep else False)
            elif kind == "spread":
                need(what in frags, "fragment %s is not defined" % what)
                need(typ is None or frags[what][0] == typ, "fragment %s is on another type" % what)
                yield from self.flatten(frags[what][1], ctx, typ)
            else:
                need(what is None or typ is None or what == typ, "inline fragment on another type")
                yield from self.flatten(sub, ctx, typ)

    def shape(self, value, typ, sub, ctx, path, dry=False):
        """Give back only what was asked for, checking every field name on the way."""
        base = typ.strip("[]!")
        if base not in TYPES:
            need(not sub, "Field %r of type %s has no subfields" % (path, typ))
            return value
        if sub is False:
            return None
        need(sub, "Field %r of type %s needs a selection of subfields" % (path, typ))
        if isinstance(value, list):
            return [self.shape(v, base, sub, ctx, path) for v in value]
        out = {}
        for alias, field, args, inner in self.flatten(sub, ctx, base):
            if field == "__typename":
                out[alias] = base
                continue
            need(field in TYPES[base], "Cannot query field %r on type %r" % (field, base))
            ftype, argtypes = TYPES[base][field], {}
            if isinstance(ftype, tuple):
                ftype, argtypes = ftype
            bound = self.bind(args, argtypes, ctx, path + "." + field)
            if inner is False:
                continue
            got = None
            if value is not None:
                got = value.get(field)
                if callable(got):
                    got = got(bound)
            if dry or got is not None:
                got = self.shape(got, ftype, inner, ctx, path + "." + field, dry)
            elif ftype.strip("[]!") in TYPES:
                need(inner, "Field %r needs a selection of subfields" % field)
            out[alias] = got
        return None if value is None else out

    # ---- queries
    def do_viewer(self, _args, _fault):
        ent = {"id": "RW50aXR5OjE=", "name": self.opts.entity}
        return {"id": "VXNlcjox", "entity": self.opts.entity, "username": "tester",
                "name": "tester", "email": "tester@example.invalid", "flags": "{}",
                "admin": False, "teams": {"edges": [{"node": ent}]}}

    def do_serverInfo(self, _args, _fault):
        return {"cliVersionInfo": {"min_cli_version": "0.10.0", "max_cli_version": "99.0.0"},
                "latestLocalVersionInfo": {"outOfDate": False, "latestVersionString": "0",
                                           "versionOnThisInstanceString": "0"},
                "features": [{"name": f, "isEnabled": True} for f in self.opts.features]}

    def do_entity(self, args, _fault):
        return {"id": "RW50aXR5OjE=", "name": args["name"], "organization": None}

    def do_clientIDMapping(self, args, _fault):
        for a in self.artifacts:
            if args["clientID"] in a.clients:
                return {"serverID": a.id}
        return None

    def project_view(self, entity, project):
        return {"id": "UHJvamVjdDox", "name": project, "entityName": entity,
                "entity": {"id": "RW50aXR5OjE=", "name": entity},
                "bucket": lambda a: self.run_view(self.runs.get((entity, project, a["name"]))),
                "run": lambda a: self.run_view(self.runs.get((entity, project, a["name"]))),
                "artifact": lambda a: self.artifact_by_name(entity, project, a["name"])}

    def do_project(self, args, _fault):
        return self.project_view(args["entityName"] or self.opts.entity, args["name"])

    do_model = do_project

    def artifact_by_name(self, entity, project, name):
        coll = name.partition(":")[0]
        for a in reversed(self.artifacts):
            s = a.spec
            if (s["entityName"], s["projectName"], s["artifactCollectionName"]) == (
                    entity, project, coll) and a.state == "COMMITTED":
                return self.artifact_view(a)
        return None

    def run_view(self, run):
        if run is None:
            return None
        wb = run.config.get("_wandb", {}).get("value", {})
        return {"id": run.id, "name": run.name, "displayName": run.meta.get("displayName"),
                "description": run.meta.get("description"), "notes": run.meta.get("notes"),
                "config": json.dumps(run.config), "summaryMetrics": run.summary_text or "{}",
                "sweepName": None, "state": "finished" if run.complete else "running",
                "group": run.meta.get("groupName"), "jobType": run.meta.get("jobType"),
                "tags": run.meta.get("tags") or [], "stopped": False,
                "project": self.project_view(run.entity, run.project),
                "historyLineCount": len(run.history), "eventsLineCount": len(run.events),
                "logLineCount": len(run.output),
                "historyTail": json.dumps([json.dumps(r) for r in run.history[-1:]]),
                "eventsTail": json.dumps([json.dumps(r) for r in run.events[-1:]]),
                "wandbConfig": lambda a: json.dumps(
                    {k: wb[k] for k in (a["keys"] or wb) if k in wb})}

    # ---- runs of others
    def put_run(self, given):
        entity = self.opts.entity
        run = Run(entity, given["project"], given["name"], len(self.runs) + 1)
        run.meta = given.get("meta", {})
        run.config = given.get("config", {})
        run.history = given.get("history", [])
        run.summary_text = json.dumps(given.get("summary", {}))
        run.complete = given.get("complete", False)
        self.runs[(entity, run.project, run.name)] = run

    # ---- mutations about runs
    def do_upsertBucket(self, v, _fault):
        need(v["name"], "upsertBucket: name (the run id) is missing")
        need(re.fullmatch(r"[^/\\#?%:\s]{1,128}", v["name"]), "upsertBucket: bad run id %r" % v["name"])
        project = v["modelName"] or "uncategorized"
        need(not re.search(r"[/\\#?%:\r\n]", project) and len(project) <= 128,
             "upsertBucket: bad project name %r" % project)
        entity = v["entityName"] or self.opts.entity
        need(entity == self.opts.entity, "upsertBucket: entity %r not found" % entity, 404)
        if v["config"] is not None:
            cfg = loads(v["config"], "config")
            need(isinstance(cfg, dict), "config must hold an object")
            for k, item in cfg.items():
                need(isinstance(item, dict) and "value" in item and set(item) <= {"value", "desc"},
                     'config.%s must be {"value": ...}' % k)
            wb = cfg.get("_wandb", {}).get("value")
            if not isinstance(wb, dict) or "t" not in wb:
                self.warn("config has no _wandb.value.t: the official client will not resume this run")
            self.check_charts(wb)
        if v["summaryMetrics"] is not None:
            need(isinstance(loads(v["summaryMetrics"], "summaryMetrics"), dict),
                 "summaryMetrics must hold an object")
        key = (entity, project, v["name"])
        need(key not in self.deleted, "run %s/%s/%s was previously created and deleted; try a new "
             "run name" % key, GONE)
        run = self.runs.get(key)
        inserted = run is None
        if inserted:
            need(v["id"] is None, "upsertBucket: id is given for a run that is not there", 404)
            run = self.runs[key] = Run(entity, project, v["name"], len(self.runs) + 1)
        else:
            need(v["id"] in (None, run.id), "upsertBucket: id is not that of run %s" % run.name)
            if run.complete:
                run.resume()
        run.upserts += 1
        run.meta.update({k: x for k, x in v.items()
                         if x is not None and k not in ("config", "summaryMetrics", "id")})
        if v["config"] is not None:
            run.config = loads(v["config"], "config")
        if v["summaryMetrics"] is not None:
            run.summary_text = v["summaryMetrics"]
        return {"bucket": self.run_view(run), "inserted": inserted}

    def check_charts(self, wb):
        charts = (wb or {}).get("visualize")
        if charts is None:
            return
        need(isinstance(charts, dict), "_wandb.visualize must be an object keyed by chart")
        for key, c in charts.items():
            where = "_wandb.visualize[%r]" % key
            need(isinstance(c, dict) and c.get("panel_type") == "Vega2",
                 where + '.panel_type must be "Vega2"')
            p = c.get("panel_config")
            need(isinstance(p, dict) and isinstance(p.get("panelDefId"), str),
                 where + ".panel_config.panelDefId is missing")
            for part in ("fieldSettings", "stringSettings", "userQuery"):
                need(isinstance(p.get(part), dict), "%s.panel_config.%s is missing" % (where, part))
            need(chart_table_key(c), where + ": userQuery names no summaryTable tableKey")

    def do_createRunFiles(self, v, _fault):
        run = self.find_run(v["entityName"], v["projectName"], v["runName"], "createRunFiles")
        need(v["files"], "createRunFiles: no files are named")
        need(len(set(v["files"])) == len(v["files"]), "createRunFiles: a file is named twice")
        out = []
        for name in v["files"]:
            need(name and not name.startswith("/") and "\\" not in name
                 and not any(p in ("", ".", "..") for p in name.split("/")),
                 "createRunFiles: bad file name %r" % name)
            headers = ["X-Mock-Run:" + run.name]
            run.offered[name] = True
            out.append({"id": name, "name": name, "uploadUrl": self.url_for("run", run, name, headers)})
        return {"runID": run.id, "uploadHeaders": ["X-Mock-Run:" + run.name], "files": out}

    def do_notifyScriptableRunAlert(self, v, _fault):
        """The wait is in milliseconds, as wandb 0.31.0 counts it; within it a title is dropped."""
        run = self.find_run(v["entityName"], v["projectName"], v["runName"],
                            "notifyScriptableRunAlert")
        need(v["title"] and v["text"], "notifyScriptableRunAlert: title and text are needed")
        wait = v["waitDuration"] or 0
        need(wait >= 0, "notifyScriptableRunAlert: waitDuration is negative")
        now = time.monotonic()
        before = [a for a in run.alerts if a["title"] == v["title"] and not a["dropped"]]
        run.alerts.append({"title": v["title"], "text": v["text"], "wait_ms": wait,
                           "severity": v["severity"] or "INFO", "at": now,
                           "dropped": any(now - a["at"] < wait / 1000 for a in before)})
        return {"success": True}

    def do_markRunFilesUploaded(self, v, _fault):
        run = self.find_run(v["entityName"], v["projectName"], v["runName"], "markRunFilesUploaded")
        for name in v["files"]:
            need(name in run.files, "markRunFilesUploaded: %r has not been uploaded" % name)
        return {"success": True}

    # ---- mutations about artifacts
    def artifact_view(self, a):
        s = a.spec
        same = [x for x in self.artifacts if x.state == "COMMITTED"
                and x.spec["artifactCollectionName"] == s["artifactCollectionName"]]
        latest = {"id": same[-1].id, "state": "COMMITTED"} if same else None
        return {"id": a.id, "state": a.state, "digest": s["digest"], "versionIndex": a.index,
                "artifactType": {"id": "QVQ6MQ==", "name": s["artifactTypeName"]},
                "artifactSequence": {"id": "QVM6MQ==", "name": s["artifactCollectionName"],
                                     "latestArtifact": latest}}

    def do_createArtifact(self, v, fault):
        what = "createArtifact"
        if v["runName"]:
            run = self.find_run(v["entityName"], v["projectName"], v["runName"], what)
            need(not run.complete, "createArtifact: the run is already complete")
        name = v["artifactCollectionName"]
        need(name and len(name) <= 128 and "/" not in name, "createArtifact: bad name %r" % name)
        need(re.fullmatch(r"[^/:]{1,128}", v["artifactTypeName"]), "createArtifact: bad type name")
        need(re.fullmatch(r"[0-9a-f]{32}", v["digest"]), "createArtifact: digest must be 32 hex digits")
        for k in ("clientID", "sequenceClientID"):
            need(re.fullmatch(r"[A-Za-z0-9]{16,128}", v[k]), "createArtifact: bad %s" % k)
        for a in v["aliases"] or []:
            need(not re.search("[/:]", a["alias"]), "createArtifact: bad alias %r" % a["alias"])
            need(a["artifactCollectionName"] == name, "createArtifact: alias of another collection")
        for a in self.artifacts:
            same = (a.spec["projectName"], a.spec["artifactCollectionName"]) == (v["projectName"], name)
            if same:
                need(a.spec["artifactTypeName"] == v["artifactTypeName"],
                     "createArtifact: %s already has type %s" % (name, a.spec["artifactTypeName"]), 409)
            if a.spec["clientID"] == v["clientID"]:
                need(a.spec == v, "createArtifact: clientID is used for two different artifacts")
                return {"artifact": self.artifact_view(a)}        # a resend
            if same and v["enableDigestDeduplication"] and a.state == "COMMITTED" \
                    and a.spec["digest"] == v["digest"]:
                a.clients[v["clientID"]] = v["sequenceClientID"]
                return {"artifact": self.artifact_view(a)}
        before = [a for a in self.artifacts if a.spec["artifactCollectionName"] == name]
        art = Artifact(len(self.artifacts) + 1, v, before[-1].id if before else None)
        art.index = len(before)
        if fault and fault.kind == "dup":
            art.state = "COMMITTED"
        self.artifacts.append(art)
        return {"artifact": self.artifact_view(art)}

    def do_createArtifactManifest(self, v, _fault):
        what = "createArtifactManifest"
        art = self.find_artifact(v["artifactID"], what)
        need(art.state == "PENDING", "%s: the artifact is already committed" % what)
        self.find_run(v["entityName"], v["projectName"], v["runName"], what)
        need(v["name"] == "wandb_manifest.json" and v["type"] == "FULL",
             "%s: only a FULL wandb_manifest.json is taken here" % what)
        need(v["digest"] == "" or is_b64md5(v["digest"]), "%s: digest must be base64 MD5" % what)
        url, headers = None, ["Content-Type:application/json"]
        if v["digest"]:
            art.manifest_md5 = v["digest"]
            url = self.url_for("manifest", art, "wandb_manifest.json", headers)
        return {"artifactManifest": {"id": art.manifest_id, "file": {
            "id": "RmlsZTox", "name": v["name"], "uploadUrl": url, "uploadHeaders": headers}}}

    def do_createArtifactFiles(self, v, _fault):
        what = "createArtifactFiles"
        need(v["artifactFiles"], "%s: no files are named" % what)
        edges = []
        for f in v["artifactFiles"]:
            art = self.find_artifact(f["artifactID"], what)
            need(art.state == "PENDING", "%s: the artifact is already committed" % what)
            need(f["artifactManifestID"] in (None, art.manifest_id), "%s: wrong artifactManifestID" % what)
            need(is_b64md5(f["md5"]), "%s: md5 of %r must be base64 MD5" % (what, f["name"]))
            need(f["name"] and not f["name"].startswith("/")
                 and not any(p in ("", ".", "..") for p in f["name"].split("/")),
                 "%s: bad file name %r" % (what, f["name"]))
            need(not f["uploadPartsInput"], "%s: multipart upload is not supported here" % what)
            headers = ["Content-MD5:" + f["md5"], "Content-Type:application/octet-stream"]
            art.wanted[f["name"]] = f["md5"]
            edges.append({"node": {
                "id": "RmlsZTox", "name": f["name"], "md5": f["md5"],
                "storagePath": "mock/" + f["md5"], "uploadMultipartUrls": None,
                "uploadUrl": self.url_for("artifact", art, f["name"], headers),
                "uploadHeaders": headers, "artifact": {"id": art.id, "state": art.state}}})
        return {"files": {"edges": edges}}

    def do_commitArtifact(self, v, _fault):
        art = self.find_artifact(v["artifactID"], "commitArtifact")
        if art.state == "COMMITTED":
            return {"artifact": self.artifact_view(art)}
        name = art.spec["artifactCollectionName"]
        need(art.manifest is not None, "commitArtifact %s: no manifest has been uploaded" % name)
        contents = art.manifest["contents"]
        for path, entry in contents.items():
            if entry.get("ref"):
                continue
            need(path in art.files, "commitArtifact %s: %r is in the manifest, not uploaded" % (name, path))
            need(entry["digest"] == b64md5(art.files[path]),
                 "commitArtifact %s: digest of %r does not match the bytes" % (name, path))
            need(entry["size"] == len(art.files[path]),
                 "commitArtifact %s: size of %r does not match the bytes" % (name, path))
        for path in art.files:
            need(path in contents, "commitArtifact %s: %r was uploaded but is not in the manifest" % (name, path))
        need(manifest_digest({p: e["digest"] for p, e in contents.items()}) == art.spec["digest"],
             "commitArtifact %s: the digest given to createArtifact is not that of the manifest" % name)
        art.state = "COMMITTED"
        return {"artifact": self.artifact_view(art)}

    def do_useArtifact(self, v, _fault):
        return {"artifact": self.artifact_view(self.find_artifact(v["artifactID"], "useArtifact"))}

    # ---- storage
    def storage(self, path, query, headers, body):
        token = query.get("X-Sig", [""])[0]
        need(token in self.urls and query.get("part") == ["a/b"],
             "storage: the signature is wrong; use the upload URL exactly as it was given", 403)
        kind, owner, name, wanted = self.urls[token]
        need(urllib.parse.unquote(path) == "/storage/%s/%s" % (kind, name),
             "storage: the path does not belong to this signature", 403)
        need("Authorization" not in headers,
             "storage: a signed URL must not carry the Authorization header")
        for line in wanted:
            k, _, val = line.partition(":")
            need(headers.get(k) == val, "storage: upload header %s must be sent as given (%r)" % (k, val), 403)
        md5 = headers.get("Content-MD5")
        need(md5 is None or md5 == b64md5(body), "storage: Content-MD5 does not match the bytes")
        if kind == "run":
            need(not owner.complete, "storage: the run is already complete")
            owner.files[name] = body
        elif kind == "artifact":
            need(b64md5(body) == owner.wanted[name], "storage: %r does not match its declared md5" % name)
            owner.files[name] = body
        else:
            need(b64md5(body) == owner.manifest_md5, "storage: the manifest does not match its declared digest")
            m = loads(body.decode("utf-8", "replace"), "manifest")
            need(m.get("version") == 1, "manifest: version must be 1")
            need(m.get("storagePolicy") == "wandb-storage-policy-v1", "manifest: bad storagePolicy")
            need((m.get("storagePolicyConfig") or {}).get("storageLayout") == "V2",
                 "manifest: storagePolicyConfig.storageLayout must be V2")
            need(isinstance(m.get("contents"), dict), "manifest: contents must be an object")
            for p, e in m["contents"].items():
                need(isinstance(e, dict) and isinstance(e.get("digest"), str)
                     and isinstance(e.get("size"), int), "manifest: entry %r needs digest and size" % p)
                need(isinstance(e.get("birthArtifactID"), str) or e.get("ref"),
                     "manifest: entry %r needs birthArtifactID" % p)
            owner.manifest, owner.manifest_raw = m, body
        return hashlib.md5(body).hexdigest()

    # ---- file_stream
    def file_stream(self, run, body, fault):
        msg = loads(body.decode("utf-8", "replace"), "file_stream body")
        need(isinstance(msg, dict), "file_stream body must be an object")
        run.stream_posts += 1
        run.post_times.append(time.monotonic())
        if run.complete and body == run.last_body:
            run.resends += 1
            return self.stream_reply(run, fault)
        need(not run.complete, "file_stream: nothing may follow complete", 409)
        for k in msg:
            need(k in STREAM_KEYS, "file_stream: unknown key %r" % k)
        if not msg:
            run.heartbeats += 1
        files = msg.get("files", {})
        need(isinstance(files, dict), "file_stream: files must be an object")
        parsed = {}
        for name, chunk in files.items():
            need(name in STREAM_FILES, "file_stream: unknown file %r" % name)
            need(isinstance(chunk, dict) and set(chunk) == {"offset", "content"},
                 "file_stream: %s must have offset and content" % name)
            off, lines = chunk["offset"], chunk["content"]
            need(is_int(off) and off >= 0, "file_stream: %s offset must be an integer" % name)
            need(isinstance(lines, list) and lines and all(isinstance(x, str) for x in lines),
                 "file_stream: %s content must be a list of strings, not empty" % name)
            for line in lines:
                need(len(line.encode()) <= MAX_LINE, "file_stream: a line of %s is too long" % name)
                need("\n" not in line, "file_stream: a line of %s holds a newline" % name)
            parsed[name] = (off, lines)
        uploaded = msg.get("uploaded", [])
        need(isinstance(uploaded, list) and all(isinstance(x, str) for x in uploaded),
             "file_stream: uploaded must be a list of strings")
        for name in uploaded:
            need(name in run.files, "file_stream: uploaded names %r, which was not PUT" % name)
        for k in ("preempting", "complete"):
            need(isinstance(msg.get(k, False), bool), "file_stream: %s must be true or false" % k)
        complete = msg.get("complete", False)
        if complete:
            code = msg.get("exitcode")
            need(is_int(code) and -(1 << 31) <= code < (1 << 31),
                 "file_stream: complete needs a 32-bit integer exitcode")
        else:
            need("exitcode" not in msg, "file_stream: exitcode without complete")
        history = self.append(run.history, parsed.get("wandb-history.jsonl"), "history", run)
        events = self.append(run.events, parsed.get("wandb-events.jsonl"), "events", run)
        self.check_history(history)
        summary = run.summary_text
        if "wandb-summary.json" in parsed:
            off, lines = parsed["wandb-summary.json"]
            need(off == 0 and len(lines) == 1, "file_stream: the summary is one line at offset 0")
            need(isinstance(loads(lines[0], "summary"), dict), "summary must be an object")
            summary = lines[0]
        if complete:
            self.check_end(run, history, loads(summary or "{}", "summary"))
        run.history, run.events, run.summary_text = history, events, summary
        if "output.log" in parsed:
            off, lines = parsed["output.log"]
            need(off <= len(run.output), "file_stream: output.log offset %d leaves a gap" % off)
            run.output[off:off + len(lines)] = lines
        run.uploaded += [x for x in uploaded if x not in run.uploaded]
        if complete:
            run.complete, run.exitcode = True, msg["exitcode"]
            run.finishes += 1
        run.last_body = body
        return self.stream_reply(run, fault)

    def stream_reply(self, run, fault):
        out = {"exitcode": None, "limits": {}}
        if fault and fault.kind == "stopped":
            out["stopped"] = True
        return out

    def append(self, have, chunk, what, run):
        if chunk is None:
            return have
        off, lines = chunk
        rows = [loads(x, what + " line") for x in lines]
        for r in rows:
            need(isinstance(r, dict), "file_stream: a %s line must be an object" % what)
        need(off <= len(have), "file_stream: %s offset %d leaves a gap, %d lines are here" % (
            what, off, len(have)))
        over = min(len(have) - off, len(rows))
        if over:
            need(plain(have[off:off + over]) == plain(rows[:over]),
                 "file_stream: %s lines at offset %d were already sent with other content" % (what, off))
            run.resends += 1
        return have + rows[over:]

    def check_history(self, rows):
        last = -1
        for i, r in enumerate(rows):
            step = r.get("_step")
            need(is_int(step), "history line %d has no integer _step" % i)
            need(step > last, "history line %d: _step %d does not grow" % (i, step))
            last = step
            for k in ("_timestamp", "_runtime"):
                need(isinstance(r.get(k), (int, float)) and not isinstance(r.get(k), bool),
                     "history line %d has no number %s" % (i, k))
            need(1e9 < r["_timestamp"] < 1e10, "history line %d: _timestamp must be Unix seconds" % i)
            for k in r:
                need(k, "history line %d has an empty key" % i)

    def check_end(self, run, history, summary):
        for a in self.artifacts:
            if a.spec["runName"] == run.name and a.spec["projectName"] == run.project:
                if a.state != "COMMITTED":
                    self.warn("the run ended while artifact %s was not committed" % (
                        a.spec["artifactCollectionName"]))
        keys = set()
        for row in history:
            for k, v in row.items():
                if isinstance(v, dict) and "_type" in v:
                    self.check_media(run, k, v, row["_step"])
                    keys.add(k)
        for k, v in summary.items():
            if isinstance(v, dict) and "_type" in v:
                self.check_media(run, k, v, None)
                keys.add(k)
        wb = run.config.get("_wandb", {}).get("value") or {}
        for key, c in (wb.get("visualize") or {}).items():
            need(chart_table_key(c) in keys, "complete: chart %r reads table %r, which was never logged" % (
                key, chart_table_key(c)))
        for k in ("_step", "_timestamp", "_runtime"):
            if history and k not in summary:
                self.warn("summary has no " + k)
        if not isinstance((summary.get("_wandb") or {}).get("runtime"), int):
            self.warn("summary has no integer _wandb.runtime")

    def check_media(self, run, key, v, step):
        t = v["_type"]
        where = "value %r (%s)" % (key, t)
        need(t in ("table-file", "html-file"), where + ": this _type is not known here")
        for k in ("path", "sha256"):
            need(isinstance(v.get(k), str), "%s: %s is missing" % (where, k))
        need(isinstance(v.get("size"), int), where + ": size is missing")
        folder, ext = ("table", ".table.json") if t == "table-file" else ("html", ".html")
        m = re.fullmatch(r"media/%s/(.+)_(\d+)_([0-9a-f]{20})%s" % (folder, re.escape(ext)), v["path"], re.S)
        need(m and m.group(1) == key and m.group(3) == v["sha256"][:20],
             "%s: path must be media/%s/<key>_<step>_<first 20 of sha256>%s" % (where, folder, ext))
        need(step is None or int(m.group(2)) == step, where + ": the step in path is not the row's _step")
        need(v["path"] in run.files, "%s: %s was not uploaded" % (where, v["path"]))
        data = run.files[v["path"]]
        need(v["path"] in run.offered, where + ": never asked for by createRunFiles")
        need(hashlib.sha256(data).hexdigest() == v["sha256"], where + ": sha256 does not match the bytes")
        need(len(data) == v["size"], where + ": size does not match the bytes")
        if t != "table-file":
            return
        tab = loads(data.decode("utf-8", "replace"), where + " file")
        check_table(tab, v, where)
        for k in ("artifact_path", "_latest_artifact_path"):
            need(isinstance(v.get(k), str), "%s: %s is missing" % (where, k))
        if v.get("log_mode") != "IMMUTABLE":
            self.warn("table values without log_mode IMMUTABLE")
        m1 = re.fullmatch(r"wandb-client-artifact://([A-Za-z0-9]+)/(.+)", v["artifact_path"])
        m2 = re.fullmatch(r"wandb-client-artifact://([A-Za-z0-9]+):latest/(.+)", v["_latest_artifact_path"])
        need(m1 and m2 and m1.group(2) == m2.group(2), where + ": artifact paths are malformed")
        for a in self.artifacts:
            if m1.group(1) in a.clients:
                need(a.clients[m1.group(1)] == m2.group(1),
                     where + ": _latest_artifact_path does not carry the sequenceClientID")
                need(m1.group(2) in a.files or a.manifest is None,
                     where + ": the table's artifact has no file " + m1.group(2))
                if m1.group(2) in a.files:
                    full = loads(a.files[m1.group(2)].decode("utf-8", "replace"), where + " artifact file")
                    need(full.get("_type") == "table", where + ': artifact file needs "_type": "table"')
                    check_table(full, v, where + " artifact file")
                    need(isinstance(full.get("column_types"), dict), where + ": artifact file needs column_types")
                return
        raise Refused(where + ": artifact_path names an artifact that was never created")

    # ---- what the server understood
    def decoded(self, content):
        runs = []
        for run in self.runs.values():
            arts = []
            for a in self.artifacts:
                s = a.spec
                if s["runName"] != run.name or s["projectName"] != run.project:
                    continue
                arts.append({
                    "name": s["artifactCollectionName"], "type": s["artifactTypeName"],
                    "state": a.state, "version": a.index, "digest": s["digest"],
                    "aliases": [x["alias"] for x in s["aliases"] or []],
                    "history_step": s["historyStep"], "description": s["description"],
                    "metadata": loads(s["metadata"], "metadata") if s["metadata"] else None,
                    "client_id": s["clientID"], "sequence_client_id": s["sequenceClientID"],
                    "manifest": {p: {k: e[k] for k in ("digest", "size", "ref", "extra") if k in e}
                                 for p, e in sorted((a.manifest or {"contents": {}})["contents"].items())},
                    "manifest_extra_keys": sorted({k for e in (a.manifest or {"contents": {}})["contents"].values()
                                                   for k in e} - {"digest", "size", "birthArtifactID"}),
                    "files": {p: file_view(d, content) for p, d in sorted(a.files.items())}})
            runs.append({
                "entity": run.entity, "project": run.project, "name": run.name,
                "display_name": run.meta.get("displayName"), "group": run.meta.get("groupName"),
                "job_type": run.meta.get("jobType"), "tags": run.meta.get("tags"),
                "notes": run.meta.get("notes"), "host": run.meta.get("host"),
                "config": {k: v["value"] for k, v in run.config.items()},
                "summary": run.summary(), "history": run.history, "events": run.events,
                "alerts": [{k: x for k, x in a.items() if k != "at"} for a in run.alerts],
                "output": run.output, "complete": run.complete, "exitcode": run.exitcode,
                "finishes": run.finishes, "uploaded": sorted(run.uploaded),
                "stats": {"upserts": run.upserts, "stream_posts": run.stream_posts,
                          "heartbeats": run.heartbeats, "resends": run.resends,
                          "post_gaps_s": [round(b - a, 3) for a, b in
                                          zip(run.post_times, run.post_times[1:])]},
                "files": {p: file_view(d, content) for p, d in sorted(run.files.items())},
                "artifacts": sorted(arts, key=lambda a: (a["name"], a["version"]))})
        return plain({"runs": runs, "violations": self.violations, "warnings": self.warnings,
                      "requests": self.counts})


def is_b64md5(text):
    try:
        return len(base64.b64decode(text, validate=True)) == 16
    except ValueError:
        return False


def chart_table_key(chart):
    """The table key inside a chart's userQuery."""
    try:
        for q in chart["panel_config"]["userQuery"]["queryFields"]:
            for f in q["fields"]:
                if f["name"] == "summaryTable":
                    return [a["value"] for a in f["args"] if a["name"] == "tableKey"][0]
    except (KeyError, TypeError, IndexError):
        pass
    return None


def check_table(tab, value, where):
    need(isinstance(tab, dict) and isinstance(tab.get("columns"), list)
         and isinstance(tab.get("data"), list), where + ": a table needs columns and data")
    need(len(tab["columns"]) == value.get("ncols"), where + ": ncols does not match the table")
    need(len(tab["data"]) == value.get("nrows"), where + ": nrows does not match the table")
    for i, row in enumerate(tab["data"]):
        need(isinstance(row, list) and len(row) == len(tab["columns"]),
             "%s: table row %d has another length" % (where, i))


# ------------------------------------------------------------------ HTTP
class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "mock_wandb"
    timeout = 120

    def log_message(self, *args):
        pass

    def reply(self, status, body, headers=(), cut=False):
        data = body if isinstance(body, bytes) else json.dumps(body, allow_nan=False).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for k, v in headers:
            self.send_header(k, v)
        self.end_headers()
        self.wfile.write(data[:len(data) // 2] if cut else data)
        if cut:
            self.hang_up()

    def hang_up(self):
        self.wfile.flush()
        self.close_connection = True
        try:
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def read_body(self):
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            data = b""
            while True:
                size = self.rfile.readline().split(b";")[0]
                n = int(size, 16) if size.strip() else -1
                part = self.rfile.read(n) if n > 0 else b""
                if n < 0 or len(part) < n or not self.rfile.readline():
                    return None, True
                if not n:
                    return data, True
                data += part
        length = int(self.headers.get("Content-Length") or 0)
        data = self.rfile.read(length)
        return (data if len(data) == length else None), False

    def handle_any(self):
        srv = self.server.mock
        body, chunked = self.read_body()
        if body is None:  # who was sending is gone: that is no request
            self.close_connection = True
            return None
        url = urllib.parse.urlsplit(self.path)
        if url.path.startswith("/__"):
            return self.control(srv, url, body)
        place, what = self.place(url.path, body)
        with srv.lock:
            srv.counts[what] = srv.counts.get(what, 0) + 1
            n = len(srv.requests) + 1
            entry = {"n": n, "t": round(time.time(), 3), "method": self.command, "path": url.path,
                     "what": what, "bytes": len(body), "agent": self.headers.get("User-Agent")}
            srv.requests.append(entry)
            if time.monotonic() < srv.not_before.pop(what, 0) - 0.05:
                srv.violation(n, what, "sent again before the time that Retry-After gave")
        fault = srv.pick_fault({"any", place, what})
        if fault:
            entry["fault"] = fault.kind
        if srv.opts.record:
            self.record(srv, entry, body)
        kind = fault.kind if fault else None
        if kind == "drop":
            return self.hang_up()
        if kind in ("slow", "stall"):
            time.sleep(fault.secs)
            if kind == "stall":
                return self.hang_up()
        if kind and kind.isdigit():
            hdr = [("Retry-After", fault.after)] if fault.after else []
            if fault.after and place == "file_stream":
                srv.not_before[what] = time.monotonic() + float(fault.after)
            entry["status"] = int(kind)
            return self.reply(int(kind), {"errors": [{"message": "injected fault %s" % kind}],
                                          "error": "injected fault %s" % kind}, hdr)
        if kind == "echo401":
            said = "not you: Authorization: %s" % self.headers.get("Authorization")
            return self.reply(401, {"errors": [{"message": said}], "error": said})
        if kind == "gqlerror":
            return self.reply(200, {"errors": [{"message": "injected error", "path": ["x"]}], "data": None})
        status, answer, headers = self.process(srv, n, place, what, url, body, chunked, fault)
        entry["status"] = status
        if kind == "drop_after":
            return self.hang_up()
        if kind == "garbage":
            return self.reply(200, b"<html>gateway</html>")
        self.reply(status, answer, headers, cut=kind == "truncate")

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do_PATCH = handle_any

    def place(self, path, body):
        if path == "/graphql":
            try:
                ops, _ = Gql(json.loads(body)["query"]).document()
                root = ops[0][3][0][1][1]
            except (Refused, ValueError, KeyError, TypeError, IndexError):
                root = "?"
            return "graphql", "graphql:%s" % root
        if path.startswith("/storage/"):
            return "storage", "storage"
        if path.endswith("/file_stream"):
            return "file_stream", "file_stream"
        return "other", "other:" + path

    def process(self, srv, n, place, what, url, body, chunked, fault):
        try:
            with srv.lock:
                if not srv.base:
                    srv.base = "http://127.0.0.1:%d" % self.server.server_address[1]
                return self.route(srv, place, url, body, chunked, fault)
        except Refused as e:
            message, status = str(e), e.status
        if "was previously created and deleted" not in message and not (
                status == DELETED and re.search(r": run \S+ not found$", message)):
            with srv.lock:
                srv.violation(n, what, message)
        if place == "graphql":
            return status, {"errors": [{"message": message}], "data": None}, ()
        return status, {"error": message}, ()

    def route(self, srv, place, url, body, chunked, fault):
        if url.path.startswith("/sdk/otel/v1/") and self.command == "POST":
            return 200, {}, ()
        if place == "storage":
            need(self.command == "PUT", "storage takes PUT only", 405)
            need(not chunked and self.headers.get("Content-Length") is not None,
                 "storage: Content-Length is required; chunked bodies are refused", 411)
            etag = srv.storage(url.path, urllib.parse.parse_qs(url.query), self.headers, body)
            return 200, b"", (("ETag", '"%s"' % etag),)
        need(place != "other", "nothing is served at %s" % url.path, 404)
        need(self.command == "POST", "%s takes POST only" % url.path, 405)
        want = "Basic " + base64.b64encode(b"api:" + srv.opts.api_key.encode()).decode()
        need(self.headers.get("Authorization") is not None, "the Authorization header is missing", 401)
        need(self.headers["Authorization"] == want,
             'Authorization must be "Basic " and base64 of "api:<key>", with the right key', 401)
        need(self.headers.get("Content-Type", "").split(";")[0] == "application/json",
             "Content-Type must be application/json", 415)
        need(self.headers.get("User-Agent"), "the User-Agent header is missing")
        coding = self.headers.get("Content-Encoding")
        if coding:
            need(coding == "gzip" and place == "file_stream" and "FILESTREAM_GZIP" in srv.opts.features,
                 "Content-Encoding %s is not allowed here" % coding, 415)
            body = gzip.decompress(body)
        if place == "graphql":
            return 200, srv.graphql(body, fault), ()
        need(len(body) <= MAX_BODY, "file_stream: the body is too large", 413)
        parts = url.path.split("/")
        need(len(parts) == 6 and parts[1] == "files", "bad file_stream path", 404)
        run = srv.find_run(*(urllib.parse.unquote(p) for p in parts[2:5]), "file_stream")
        return 200, srv.file_stream(run, body, fault), ()

    def control(self, srv, url, body):
        with srv.lock:
            if url.path == "/__decoded":
                content = urllib.parse.parse_qs(url.query).get("content") != ["0"]
                return self.reply(200, srv.decoded(content))
            if url.path == "/__requests":
                return self.reply(200, srv.requests)
            if url.path == "/__reset" and self.command == "POST":
                srv.reset()
                return self.reply(200, {})
            if url.path == "/__run" and self.command == "POST":
                srv.put_run(json.loads(body))
                return self.reply(200, {})
            if url.path == "/__tag" and self.command == "POST":
                project, name, tag = body.decode().split("/")
                meta = srv.runs[(srv.opts.entity, project, name)].meta
                meta["tags"] = (meta.get("tags") or []) + [tag]
                return self.reply(200, {})
            if url.path == "/__delete" and self.command == "POST":
                project, _, name = body.decode().partition("/")
                key = (srv.opts.entity, project, name)
                srv.deleted.add(key)
                del srv.runs[key]
                return self.reply(200, {})
            if url.path == "/__fault" and self.command in ("POST", "DELETE"):
                if self.command == "DELETE":
                    srv.faults = []
                    return self.reply(200, {})
                try:
                    srv.faults.append(Fault(body.decode()))
                except ValueError as e:
                    return self.reply(400, {"error": str(e)})
                return self.reply(200, {})
        self.reply(404, {"error": "no such control"})

    def record(self, srv, entry, body):
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        rec = dict(entry, url=self.path,
                   headers={k: v for k, v in self.headers.items() if k != "Authorization"})
        try:
            rec["body"] = body.decode("utf-8")
        except UnicodeDecodeError:
            rec["body_base64"] = base64.b64encode(body).decode()
        with srv.lock, open(srv.opts.record, "a", encoding="utf-8") as f:
            f.write(json.dumps(rec) + "\n")


class HttpServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)


def main():
    p = argparse.ArgumentParser(description="Strict W&B test server; see the head of this file.")
    p.add_argument("--port", type=int, default=0)
    p.add_argument("--api-key", default="0123456789abcdef0123456789abcdef01234567")
    p.add_argument("--entity", default="ent")
    p.add_argument("--features", default="", type=lambda s: [x for x in s.split(",") if x])
    p.add_argument("--fault", action="append", default=[], metavar="SPEC")
    p.add_argument("--record", metavar="FILE")
    opts = p.parse_args()
    http = HttpServer(("127.0.0.1", opts.port), Handler)
    http.mock = Server(opts)
    http.mock.base = "http://127.0.0.1:%d" % http.server_address[1]
    print("READY " + http.mock.base, flush=True)
    try:
        http.serve_forever()
    except KeyboardInterrupt:
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
