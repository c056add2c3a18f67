# SPDX-License-Identifier: Apache-2.0
"""A strict stand-in for a gateway: takes what culprit's http exporter posts, and nothing else."""
import collections
import gzip
import http.server
import socket
import struct
import threading

Record = collections.namedtuple("Record", "sender number headers value")
TYPE = "application/vnd.culprit.events"


def parse(body):
    """The records of a request's body; an AssertionError where it is not as it must be."""
    records, at = [], 0

    def take(limit):
        nonlocal at
        size, = struct.unpack_from("<I", body, at)
        at += 4
        assert at + size <= limit, "a size reaches beyond its frame"
        at += size
        return body[at - size:at]

    while at < len(body):
        size, number = struct.unpack_from("<IQ", body, at)
        end = at + 4 + size
        assert end <= len(body), "a frame is not whole"
        at += 12
        assert struct.unpack_from("<I", body, at)[0] == 0xffffffff, "there is a key"
        at += 4
        count, = struct.unpack_from("<I", body, at)
        at += 4
        headers = {}
        for _ in range(count):
            name = take(end).decode()
            assert name not in headers, "a header comes twice"
            headers[name] = take(end).decode()
        value = take(end)
        assert at == end, "something is behind the value"
        assert headers["culprit-schema"] == "culprit.event.v1"
        assert headers["culprit-sequence"] == str(number) and number > 0
        records.append(Record(headers["culprit-sender"], number, headers, value))
    return records


class FrameSink:
    """`answer(number, records)` gives (status, headers) or None to close the connection; what is
    answered with 2xx is taken, each number of a sender once."""

    def __init__(self, answer=None, port=0):
        self.taken, self.repeats, self.requests, self.wrong = {}, 0, [], []
        self.lock = threading.Lock()
        sink = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                result = sink.receive(self, body, answer)
                if result is None:
                    self.connection.shutdown(socket.SHUT_RDWR)
                    self.close_connection = True
                    return
                self.send_response(result[0])
                for name, value in result[1].items():
                    self.send_header(name, value)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            def handle_error(self, request, client_address):
                pass  # who posts may be killed at any time

        self.server = Server(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def receive(self, handler, body, answer):
        with self.lock:
            number = len(self.requests)
            records = []
            try:
                assert handler.path == "/v1/events", handler.path
                assert handler.headers["Content-Type"] == TYPE, handler.headers["Content-Type"]
                if handler.headers["Content-Encoding"] == "gzip":
                    body = gzip.decompress(body)
                records = parse(body)
                assert records, "no record in it"
            except (AssertionError, struct.error, UnicodeDecodeError, OSError) as error:
                self.wrong.append(repr(error))
                return 500, {}
            self.requests.append((dict(handler.headers), len(records)))
            result = (200, {}) if answer is None else answer(number, records)
            for record in records if result is not None and result[0] // 100 == 2 else []:
                key = record.sender, record.number
                self.repeats += key in self.taken
                if key in self.taken and self.taken[key].value != record.value:
                    self.wrong.append("number %d stands for two records" % record.number)
                self.taken.setdefault(key, record)
            return result

    def values(self):
        with self.lock:
            return sorted(record.value for record in self.taken.values())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
