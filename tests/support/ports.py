# SPDX-License-Identifier: Apache-2.0
"""Ports for listeners that a test stops and starts again.

A port that the system chooses (bind to 0) is free for anybody as soon as the listener is gone: a
server of another test that starts at that moment may get it, and then answers in its place. So
these lie below the range from which the system chooses, and each is locked for as long as the
test process lives.
"""
import fcntl
import os
import random
import socket
import tempfile

FIRST, LAST = 15000, 32000
_held = {}


def _limit():
    """Ports from here on are given out by the system."""
    try:
        with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
            return min(LAST, int(file.read().split()[0]))
    except (OSError, ValueError):
        return LAST


def _lock(port):
    folder = os.path.join(tempfile.gettempdir(), "culprit-ports-%d" % os.getuid())
    os.makedirs(folder, exist_ok=True)
    lock = os.open(os.path.join(folder, str(port)), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return lock
    except OSError:
        os.close(lock)
        return None


def _is_unused(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            return True
        except OSError:
            return False


def free_port():
    """A port of this process's own, until the process ends."""
    limit = _limit()
    while True:
        port = random.SystemRandom().randrange(min(FIRST, limit - 1000), limit)
        if port in _held:
            continue
        lock = _lock(port)
        if lock is None:
            continue
        if _is_unused(port):
            _held[port] = lock
            return port
        os.close(lock)


def free_ports(count):
    return [free_port() for _ in range(count)]
