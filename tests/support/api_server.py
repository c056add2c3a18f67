# SPDX-License-Identifier: Apache-2.0
"""A real Kubernetes API server for tests: kube-apiserver and etcd, alone, on free ports.

tests/kubernetes/build_servers builds the two programs; it is not called from here. RBAC is on.
There is no controller manager, scheduler or kubelet, so a new namespace gets its ServiceAccount
`default` here, pods are bound and get their status by whoever calls, and a pod with a node is
deleted with a grace period of 0. Used from a suite, or by hand: `api_server.py FOLDER` runs one
until it is interrupted and prints the path of an administrator's kubeconfig.
"""
import base64
import copy
import http.client
import json
import os
import secrets
import shutil
import signal
import ssl
import subprocess
import sys
import time
import urllib.parse

from ports import free_ports

VERSION = "1.35.4"
PATIENCE_S = 120
PROGRAMS = ("kube-apiserver", "etcd")


def programs_folder():
    return os.environ.get("CULPRIT_KUBERNETES") or os.path.join(
        os.path.expanduser("~"), ".cache", "culprit", "kubernetes-" + VERSION)


def unavailable():
    """Why no server is run here. Empty: it can, and such tests are wanted (CULPRIT_LONG)."""
    if not os.environ.get("CULPRIT_LONG"):
        return "beside a Kubernetes API server: left out (.ci/run --long, or CULPRIT_LONG=yes)"
    folder = programs_folder()
    if not all(os.access(os.path.join(folder, name), os.X_OK) for name in PROGRAMS):
        return "no Kubernetes API server in %s (tests/kubernetes/build_servers)" % folder
    if shutil.which("openssl") is None:
        return "not installed: openssl"
    return ""


class ApiError(Exception):
    def __init__(self, status, body):
        super().__init__("%d %s" % (status, body[:300].decode("utf-8", "replace")))
        self.status, self.body = status, body


class ApiServer:
    """Started by start(), again after stop(); its objects stay until the folder is removed."""

    def __init__(self, folder, arguments=()):
        self.folder = os.path.abspath(folder)
        os.makedirs(self.folder, exist_ok=True)
        self.port, self.etcd_port, self.peer_port = free_ports(3)
        self.url = "https://127.0.0.1:%d" % self.port
        self.arguments = list(arguments)  # more of kube-apiserver's
        self.server = self.etcd = None
        self.admin_token = secrets.token_hex(16)
        self.ca = self.path("ca.crt")
        self.write("tokens.csv", '%s,admin,1,"system:masters"\n' % self.admin_token)
        self.make_certificates()
        self.trust = ssl.create_default_context(cafile=self.ca)
        self.connection = None

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    # -- certificates ----------------------------------------------------------------------------

    def openssl(self, *arguments):
        done = subprocess.run(["openssl", *arguments], cwd=self.folder, stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=PATIENCE_S, check=False)
        if done.returncode != 0:
            raise RuntimeError("openssl %s: %s" % (arguments[0], done.stderr[-300:]))

    def make_certificates(self):
        self.openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out",
                     "ca.crt", "-days", "2", "-subj", "/CN=tests-ca")
        self.make_certificate("server", "/CN=kube-apiserver", "serverAuth",
                              "DNS:localhost,DNS:kubernetes.default.svc,IP:127.0.0.1")
        self.openssl("genrsa", "-out", "sa.key", "2048")
        self.openssl("rsa", "-in", "sa.key", "-pubout", "-out", "sa.pub")

    def make_certificate(self, name, subject, usage, names=""):
        """NAME.crt and NAME.key, signed by the CA; a client's /CN=USER/O=GROUP is its user."""
        extensions = "extendedKeyUsage=%s\n" % usage
        if names:
            extensions += "subjectAltName=%s\n" % names
        self.write(name + ".ext", extensions)
        self.openssl("req", "-new", "-newkey", "rsa:2048", "-nodes", "-keyout", name + ".key",
                     "-out", name + ".csr", "-subj", subject)
        self.openssl("x509", "-req", "-in", name + ".csr", "-CA", "ca.crt", "-CAkey", "ca.key",
                     "-CAcreateserial", "-out", name + ".crt", "-days", "2", "-extfile",
                     name + ".ext")
        return self.path(name + ".crt"), self.path(name + ".key")

    # -- processes -------------------------------------------------------------------------------

    def spawn(self, name, *arguments):
        with open(self.path(name + ".log"), "ab") as log:
            return subprocess.Popen([os.path.join(programs_folder(), name), *arguments],
                                    cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log,
                                    stderr=log)

    def start_etcd(self):
        url, peer = ("http://127.0.0.1:%d" % port for port in (self.etcd_port, self.peer_port))
        self.etcd = self.spawn(
            "etcd", "--name", "t", "--data-dir", self.path("etcd"), "--listen-client-urls", url,
            "--advertise-client-urls", url, "--listen-peer-urls", peer,
            "--initial-advertise-peer-urls", peer, "--initial-cluster", "t=" + peer,
            "--unsafe-no-fsync", "--log-level", "warn",
            "--watch-progress-notify-interval=5s")  # as kubeadm has it
        self.until(lambda: self.etcd_answers(), self.etcd, "etcd")

    def start_server(self):
        self.server = self.spawn(
            "kube-apiserver", "--etcd-servers=http://127.0.0.1:%d" % self.etcd_port,
            "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
            "--secure-port=%d" % self.port, "--cert-dir=" + self.path("certificates"),
            "--tls-cert-file=server.crt", "--tls-private-key-file=server.key",
            "--client-ca-file=ca.crt", "--service-account-issuer=https://kubernetes.default.svc",
            "--service-account-key-file=sa.pub", "--service-account-signing-key-file=sa.key",
            "--service-cluster-ip-range=10.0.0.0/24", "--token-auth-file=tokens.csv",
            "--authorization-mode=RBAC", "--endpoint-reconciler-type=none", *self.arguments)
        self.until(self.ready, self.server, "kube-apiserver")

    def start(self):
        """Returns when it answers; starts etcd too when it does not run."""
        if self.etcd is None:
            self.start_etcd()
        self.start_server()
        return self

    def until(self, holds, process, name):
        limit = time.monotonic() + PATIENCE_S
        while not holds():
            if process.poll() is not None or time.monotonic() > limit:
                raise RuntimeError("%s did not start; see %s" % (name, self.path(name + ".log")))
            time.sleep(0.05)

    def ready(self):
        """Whether requests are answered, and the rules of RBAC and priorities are loaded."""
        try:
            self.call("GET", "/readyz")
            self.call("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/cluster-admin")
            self.call("GET", "/api/v1/namespaces/default")
            return True
        except (OSError, http.client.HTTPException, ApiError):
            return False

    def stop(self, kill=False, etcd=True):
        """The server, and with `etcd` that as well. SIGTERM ends running watches only after up to
        a minute; a test that need not see that kills."""
        self.end(self.server, kill)
        self.server = None
        if etcd:
            self.end(self.etcd, kill)
            self.etcd = None

    @staticmethod
    def end(process, kill):
        if process is None:
            return
        process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop(kill=True)

    # -- requests --------------------------------------------------------------------------------

    def request(self, method, path, body=None, kind="application/json", token=None):
        """(status, headers, body), as an administrator unless a token is given."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Authorization": "Bearer " + (token or self.admin_token), "Content-Type": kind}
        for last in (False, True):
            if self.connection is None:
                self.connection = http.client.HTTPSConnection(
                    "127.0.0.1", self.port, timeout=PATIENCE_S, context=self.trust)
            try:
                self.connection.request(method, path, body=data, headers=headers)
                answer = self.connection.getresponse()
                return answer.status, dict(answer.getheaders()), answer.read()
            except (OSError, http.client.HTTPException):
                self.connection.close()  # the server may have closed a connection that was idle
                self.connection = None
                if last or self.server is None or method == "POST":
                    raise
        raise AssertionError

    def client(self):
        """The same server for another thread: with a connection of its own."""
        other = copy.copy(self)
        other.connection = None
        return other

    def call(self, method, path, body=None, kind="application/json", token=None):
        """The answer's JSON (or text); raises ApiError for a status from 400 on."""
        status, _, data = self.request(method, path, body, kind, token)
        if status >= 400:
            raise ApiError(status, data)
        try:
            return json.loads(data)
        except ValueError:
            return data.decode("utf-8", "replace")

    @staticmethod
    def path_of(resource, namespace=None, name=None, group=None):
        """`group`: "rbac.authorization.k8s.io/v1"; None: core/v1."""
        path = "/apis/" + group if group else "/api/v1"
        if namespace:
            path += "/namespaces/" + namespace
        return path + "/" + resource + ("/" + name if name else "")

    def create(self, resource, body, namespace=None, group=None):
        return self.call("POST", self.path_of(resource, namespace, None, group), body)

    def ensure(self, resource, body, namespace=None, group=None):
        """Creates it unless it is there."""
        try:
            return self.create(resource, body, namespace, group)
        except ApiError as error:
            if error.status != 409:
                raise
            return None

    def get(self, resource, name, namespace=None, group=None):
        return self.call("GET", self.path_of(resource, namespace, name, group))

    def patch(self, resource, name, body, namespace=None, group=None, part="",
              kind="application/strategic-merge-patch+json"):
        """`part`: "/status"."""
        path = self.path_of(resource, namespace, name, group) + part
        return self.call("PATCH", path, body, kind)

    def delete(self, resource, name, namespace=None, group=None, grace_s=0):
        path = self.path_of(resource, namespace, name, group)
        return self.call("DELETE", path, {"kind": "DeleteOptions", "apiVersion": "v1",
                                          "gracePeriodSeconds": grace_s})

    def list(self, resource, namespace=None, group=None, **query):
        """(items, resourceVersion), all pages."""
        items, path = [], self.path_of(resource, namespace, None, group)
        query = dict(query, limit=500)
        while True:
            page = self.call("GET", path + "?" + urllib.parse.urlencode(query))
            items += page["items"]
            query["continue"] = page["metadata"].get("continue")
            if not query["continue"]:
                return items, page["metadata"]["resourceVersion"]

    def apply(self, manifest):
        """Server-side apply of one object with apiVersion, kind and metadata, strictly validated."""
        group = manifest["apiVersion"]
        listed = self.call("GET", "/api/v1" if group == "v1" else "/apis/" + group)["resources"]
        found = [one for one in listed
                 if one["kind"] == manifest["kind"] and "/" not in one["name"]][0]
        meta = manifest["metadata"]
        namespace = meta.get("namespace", "default") if found["namespaced"] else None
        path = self.path_of(found["name"], namespace, meta["name"],
                            None if group == "v1" else group)
        return self.call("PATCH", path + "?fieldManager=tests&fieldValidation=Strict&force=true",
                         manifest, "application/apply-patch+yaml")

    # -- what a cluster's controllers would do -----------------------------------------------------

    def create_namespace(self, name):
        self.ensure("namespaces", {"metadata": {"name": name}})
        self.create_account("default", name)

    def create_account(self, name, namespace="default"):
        self.ensure("serviceaccounts", {"metadata": {"name": name}}, namespace)

    def token(self, account, namespace="default", seconds=3600):
        """A token of a ServiceAccount; 600 seconds is the least."""
        path = self.path_of("serviceaccounts", namespace, account) + "/token"
        answer = self.call("POST", path, {"apiVersion": "authentication.k8s.io/v1",
                                          "kind": "TokenRequest",
                                          "spec": {"expirationSeconds": seconds}})
        return answer["status"]["token"]

    def grant(self, account, rules, namespace="default", name=None, within=None):
        """Binds rules to an account; `within` a namespace, else in the whole cluster."""
        rbac = "rbac.authorization.k8s.io/v1"
        name = name or account
        kind, resource = ("Role", "roles") if within else ("ClusterRole", "clusterroles")
        binding = ("rolebindings" if within else "clusterrolebindings")
        self.ensure(resource, {"metadata": {"name": name}, "rules": rules}, within, rbac)
        self.patch(resource, name, {"rules": rules}, within, rbac, kind="application/merge-patch+json")
        self.ensure(binding, {
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}]},
            within, rbac)

    # -- clients -----------------------------------------------------------------------------------

    def kubeconfig(self, name="admin", token=None, **user):
        """The path of a kubeconfig for a token (default: the administrator's), or with the fields
        of a user entry (tokenFile=…, **{"client-certificate": …})."""
        config = {
            "apiVersion": "v1", "kind": "Config", "current-context": "tests",
            "clusters": [{"name": "tests", "cluster": {
                "server": self.url, "certificate-authority-data": self.ca_data()}}],
            "users": [{"name": name, "user": user or {"token": token or self.admin_token}}],
            "contexts": [{"name": "tests", "context": {
                "cluster": "tests", "user": name, "namespace": "default"}}]}
        return self.write("kubeconfig-%s" % name, json.dumps(config, indent=1) + "\n")

    def ca_data(self):
        with open(self.ca, "rb") as file:
            return base64.b64encode(file.read()).decode()

    # -- faults on demand --------------------------------------------------------------------------

    def etcd_call(self, path, body):
        client = http.client.HTTPConnection("127.0.0.1", self.etcd_port, timeout=PATIENCE_S)
        try:
            client.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            answer = client.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            client.close()

    def etcd_answers(self):
        try:
            return self.etcd_call("/v3/kv/range", {"key": "AA=="})[0] == 200
        except (OSError, ValueError, http.client.HTTPException):
            return False

    def compact(self):
        """Forgets the past: a watch of events from an older version ends with 410. Pods and nodes
        meet it when the server was started again since."""
        revision = self.etcd_call("/v3/kv/range", {"key": "AA=="})[1]["header"]["revision"]
        status, answer = self.etcd_call("/v3/kv/compaction",
                                        {"revision": revision, "physical": True})
        if status != 200 and "compacted" not in str(answer):
            raise RuntimeError("etcd was not compacted: %s" % answer)
        return revision

    def throttle(self, account, namespace="default"):
        """429 for an account's requests, while another of its requests is being answered
        (hold_request): with no seats at all one is still let in."""
        group = "flowcontrol.apiserver.k8s.io/v1"
        self.ensure("prioritylevelconfigurations", {
            "metadata": {"name": "tests-none"},
            "spec": {"type": "Limited", "limited": {
                "nominalConcurrencyShares": 0, "lendablePercent": 0, "borrowingLimitPercent": 0,
                "limitResponse": {"type": "Reject"}}}}, group=group)
        self.ensure("flowschemas", {
            "metadata": {"name": "tests-none"},
            "spec": {"priorityLevelConfiguration": {"name": "tests-none"},
                     "matchingPrecedence": 2, "distinguisherMethod": {"type": "ByUser"},
                     "rules": [{"subjects": [{"kind": "ServiceAccount", "serviceAccount": {
                         "name": account, "namespace": namespace}}],
                         "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"],
                                            "resources": ["*"], "namespaces": ["*"],
                                            "clusterScope": True}]}]}}, group=group)

    def hold_request(self, token):
        """A list that takes the only seat for 3 s; call it on a thread of its own."""
        client = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=30,
                                             context=self.trust)
        try:
            client.request("GET", "/api/v1/pods?limit=1&resourceVersion=999999999&"
                           "resourceVersionMatch=NotOlderThan",
                           headers={"Authorization": "Bearer " + token})
            answer = client.getresponse()
            answer.read()
            return answer.status
        finally:
            client.close()

    def end_throttle(self):
        group = "flowcontrol.apiserver.k8s.io/v1"
        self.call("DELETE", self.path_of("flowschemas", None, "tests-none", group))
        self.call("DELETE", self.path_of("prioritylevelconfigurations", None, "tests-none", group))


def main(folder):
    with ApiServer(folder) as server:
        print(server.kubeconfig(), flush=True)
        try:
            server.server.wait()
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main(sys.argv[1])
