# SPDX-License-Identifier: Apache-2.0
"""An HTTP server that does one thing wrong until it is told to be good.

    sink = BadSink("redirect", good); sink.start(); …; sink.heal()

`good(request, body)` gives (status, headers, content) once it is healed; it stands for the real
server, and what it was asked is in `taken`. Until then `fault` answers; what it was asked is in
`refused_requests`. The faults are the functions below.
"""
import http.server
import socket
import ssl
import threading
import time

CHUNK = b"x" * (64 << 10)
TOKEN = "second-token"


class Sink(http.server.ThreadingHTTPServer):
    daemon_threads = True
    context = None  # of TLS

    def finish_request(self, request, client_address):
        if self.context is not None:
            request.settimeout(20)
            request = self.context().wrap_socket(request, server_side=True)
        super().finish_request(request, client_address)

    def handle_error(self, request, client_address):
        pass  # who posts gives up, or is killed


# -- faults: each is given the handler of a request whose body was read ---------------------------

def answer(handler, status, headers=(), content=b""):
    handler.send_response(status)
    for name, value in dict(headers).items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content)


def silent(handler):
    handler.server.bad.healed.wait(20)
    handler.close_connection = True


def closes(handler):
    handler.connection.shutdown(socket.SHUT_RDWR)
    handler.close_connection = True


def garbage(handler):
    handler.wfile.write(b"\x16\x03\x01 this is not HTTP\r\n\r\n")
    closes(handler)


def cut(handler):
    """A success whose body does not come."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{")
    closes(handler)


def endless(handler):
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:  # until the client has had enough
        handler.wfile.write(b"%x\r\n%s\r\n" % (len(CHUNK), CHUNK))
        time.sleep(0.005)


def endless_headers(handler):
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        handler.wfile.write(b"X-More: %s\r\n" % CHUNK[:1000])
        time.sleep(0.0005)


def unavailable(handler):
    answer(handler, 503, {"Retry-After": "1"})


def busy(handler):
    answer(handler, 429, {"Retry-After": "1"})


def broken(handler):
    answer(handler, 500, (), b"internal error")


def redirect(handler):
    answer(handler, 307, {"Location": handler.server.bad.elsewhere + handler.path})


def unauthorized(handler):
    answer(handler, 401)


def missing(handler):
    answer(handler, 404)


def refused(handler):
    """Whoever only asks gets an answer."""
    if handler.command == "GET":
        answer(handler, *handler.server.bad.good(handler, b""))
        return
    answer(handler, 422, (), b"no such field")


class BadSink:
    def __init__(self, port, fault, good, elsewhere="", context=None, token=None):
        self.port, self.fault, self.good, self.elsewhere = port, fault, good, elsewhere
        self.context, self.token = context, token
        self.healed = threading.Event()
        self.taken, self.refused_requests = [], []  # (path, body), (time, path, body)
        self.lock = threading.Lock()
        self.server = None

    @property
    def url(self):
        return "%s://127.0.0.1:%d" % ("https" if self.context else "http", self.port)

    def start(self):
        bad = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def serve(self):
                body = self.rfile.read(int(self.headers["Content-Length"] or 0))
                bad.serve(self, body)

            do_GET = do_POST = do_PUT = do_PATCH = serve

            def log_message(self, *_):
                pass

        self.server = Sink(("127.0.0.1", self.port), Handler)
        self.server.bad, self.server.context = self, self.context
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self):
        self.healed.set()
        if self.server is not None:
            self.server.shutdown()
            self.server.server_close()

    def serve(self, handler, body):
        wrong_token = (self.token is not None
                       and handler.headers["Authorization"] != "Bearer " + self.token)
        if wrong_token or not self.healed.is_set():
            with self.lock:
                self.refused_requests.append((time.monotonic(), handler.path, body))
            (unauthorized if wrong_token else self.fault)(handler)
            return
        with self.lock:
            status, headers, content = self.good(handler, body)
            self.taken.append((handler.path, body))
        answer(handler, status, headers, content)

    def heal(self):
        self.healed.set()
        if self.server is None:
            self.start()

    def attempts(self):
        with self.lock:
            return len(self.refused_requests)


def certificate(folder, name, days, run):
    """(certificate, key) for 127.0.0.1; expired when `days` is negative. `run` runs openssl."""
    key, request, path = ("%s/%s.%s" % (folder, name, end) for end in ("key", "csr", "pem"))
    run("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key,
        "-out", request, "-subj", "/CN=" + name, "-addext", "subjectAltName=IP:127.0.0.1")
    run("x509", "-req", "-in", request, "-signkey", key, "-days", str(days), "-copy_extensions",
        "copy", "-out", path)
    return path, key


def tls(path, key):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path, key)
    return context
