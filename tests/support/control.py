# SPDX-License-Identifier: Apache-2.0
"""Talks to a culprit through its control socket, byte by byte."""
import json
import socket

from running import PATIENCE_S


def connect(path):
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    peer.settimeout(PATIENCE_S)
    peer.connect(path)
    return peer


def read_all(peer):
    parts = []
    while True:
        try:
            part = peer.recv(1 << 16)
        except ConnectionResetError:
            break
        if not part:
            break
        parts.append(part)
    return b"".join(parts)


def exchange(path, request):
    """What comes back for these bytes, until the other end closes."""
    with connect(path) as peer:
        try:
            peer.sendall(request)
        except (BrokenPipeError, ConnectionResetError):
            pass
        return read_all(peer)


def get(path, target):
    """The code and the document of GET `target`."""
    answer = exchange(path, b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % target.encode())
    head, _, body = answer.partition(b"\r\n\r\n")
    fields = head.split(b"\r\n")
    length = [int(line.split(b":")[1]) for line in fields if line.lower().startswith(b"content-length")]
    if length and length[0] != len(body):
        raise RuntimeError("Content-Length %d, %d bytes" % (length[0], len(body)))
    return int(fields[0].split()[1]) if fields[0] else 0, json.loads(body) if body else None


class Tap:
    """A stream of /tap. Nothing is read before somebody asks for it."""

    def __init__(self, path, query):
        self.peer = connect(path)
        self.peer.sendall(b"GET /tap?%s HTTP/1.1\r\n\r\n" % query.encode())
        self.rest = b""
        self.head = None

    def begun(self):
        """Waits for the head: from now on everything is seen."""
        while b"\r\n\r\n" not in self.rest:
            part = self.peer.recv(4096)
            if not part:
                break
            self.rest += part
        self.head, _, self.rest = self.rest.partition(b"\r\n\r\n")
        return self

    def line(self):
        while b"\n" not in self.rest:
            part = self.peer.recv(1 << 16)
            if not part:
                return None
            self.rest += part
        line, _, self.rest = self.rest.partition(b"\n")
        return json.loads(line)

    def lines(self):
        """Up to the end."""
        found = []
        while True:
            line = self.line()
            if line is None:
                return found
            found.append(line)

    def close(self):
        self.peer.close()
