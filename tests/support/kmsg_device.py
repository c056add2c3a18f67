# SPDX-License-Identifier: Apache-2.0
"""A stand-in for /dev/kmsg: a SOCK_SEQPACKET socket on which each connection is given the records
from the oldest that is still kept, one a packet, and then the new ones.

    device = KmsgDevice("/tmp/x/kmsg", keep=1000)
    device.write("NVRM: Xid (PCI:0000:07:00): 79, ...")
    device.close()

Like the kernel it keeps a bounded number of records, counts them from 0, and writes bytes that are
not printable ASCII, and the backslash, as \\xNN.
"""
import os
import socket
import threading
import time


def escape(text):
    return b"".join(bytes([byte]) if 32 <= byte < 127 and byte != 92 else b"\\x%02x" % byte
                    for byte in text.encode("utf-8", "surrogateescape"))


class KmsgDevice:
    def __init__(self, path, keep=100000):
        self.path, self.keep = path, keep
        self.records = []  # (sequence, bytes)
        self.next = 0
        self.changed = threading.Condition()
        self.closed = False
        self.connections = []
        self.listener = None
        self.listen()

    def listen(self):
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(self.path)
        self.listener.listen(8)
        threading.Thread(target=self.accept, args=(self.listener,), daemon=True).start()

    def accept(self, listener):
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with self.changed:
                self.connections.append(connection)
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        at = 0
        try:
            while True:
                with self.changed:
                    while not self.closed and self.next <= at:
                        self.changed.wait(1)
                    if self.closed or connection not in self.connections:
                        return
                    records = [record for record in self.records if record[0] >= at]
                for sequence, record in records:
                    connection.sendall(record)
                    at = sequence + 1
        except OSError:
            pass
        finally:
            connection.close()

    def write(self, text, usec=None, priority=3, more=b""):
        """One record, now; returns its sequence number and its microseconds."""
        with self.changed:
            if usec is None:
                usec = time.monotonic_ns() // 1000
            record = b"%d,%d,%d,-;%s\n%s" % (priority, self.next, usec, escape(text), more)
            self.records.append((self.next, record))
            del self.records[:-self.keep]
            self.next += 1
            self.changed.notify_all()
            return self.next - 1, usec

    def hang_up(self):
        """Ends the connections there are."""
        with self.changed:
            connections, self.connections = self.connections, []
        for connection in connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        """As if the device was taken away."""
        with self.changed:
            self.closed = True
            self.changed.notify_all()
        self.hang_up()
        self.listener.close()
        os.unlink(self.path)

    def open(self):
        """It is there again, with what it had kept."""
        self.closed = False
        self.listen()
