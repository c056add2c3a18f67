# SPDX-License-Identifier: Apache-2.0
"""Cases of run_faults.py where clients are hostile: slow, oversize, ambiguous, bombs."""
import gzip
import http.client
import json
import os
import re
import resource
import signal
import socket
import ssl
import subprocess
import time
import zlib

from world import ROUNDS, Run, folder, must, wait_for

MIB = 1 << 20


class Listening:
    """A culprit whose HTTP receiver has short timeouts."""

    def __init__(self, context, more=None, **receiver):
        self.context, self.more, self.receiver = context, more, receiver

    def __enter__(self):
        self.place = folder()
        self.run = Run(self.context, self.place.name, self.change)
        self.run.start()
        return self.run

    def change(self, config):
        config["receivers"]["http"].update(self.receiver)
        if self.more is not None:
            self.more(config)

    def __exit__(self, kind, *_):
        if kind is None:
            code = self.run.stop()
            must(code == 0, lambda: "exit code %s: %s" % (code, self.run.log_text()[-1500:]))
        else:
            self.run.kill()
        self.place.cleanup()


def talk(port, data, limit_s=30):
    """All that is answered to these bytes, until the other side ends or is quiet."""
    with socket.create_connection(("127.0.0.1", port), timeout=limit_s) as client:
        try:
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        answer = b""
        try:
            while True:
                piece = client.recv(65536)
                if not piece:
                    break
                answer += piece
        except (ConnectionResetError, socket.timeout):
            pass
        return answer


def statuses(answer):
    return [int(code) for code in re.findall(rb"HTTP/1\.1 (\d{3}) ", answer)]


# -- slow ----------------------------------------------------------------------------------------

def slow_clients(context):
    """Half-sent headers and bodies on all connections but a few; a good client meanwhile."""
    count = context.count(150, 5000)
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(limit[0], min(limit[1], count + 500)),
                                                limit[1]))
    count = min(count, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 200)
    # Longer than a good client takes on a slow machine.
    timeouts = {"headers": "6s", "body": "6s", "write": "6s", "idle": "6s"}
    with Listening(context, timeouts=timeouts, max_connections=count + 100) as run:
        before_kib, before = run.memory_kib(), run.descriptors()
        clients = []
        for number in range(count):
            client = socket.create_connection(("127.0.0.1", run.port), timeout=30)
            if number % 3 == 0:
                client.sendall(b"POST /v1/events HTTP/1.1\r\nHost: x\r\nX-Slow: ")
            elif number % 3 == 1:
                client.sendall(b"POST /v1/events HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n"
                               b"Content-Type: application/json\r\n\r\n{")
            clients.append(client)         # a third says nothing at all
        peak_kib = run.memory_kib()
        times = []
        for number in range(40):
            began = time.monotonic()
            must(run.post_once("0/3", ROUNDS[0][3]) == 200, "a good client is refused")
            times.append(time.monotonic() - began)
            for client in clients[:200]:
                try:
                    client.send(b"a")
                except OSError:
                    pass
        wait_for(lambda: run.descriptors() <= before + 5, lambda: "slow ones are cut: %d, %d before"
                 % (run.descriptors(), before))
        for client in clients:
            client.close()
        each = max(0, peak_kib - before_kib) / count
        must(context.sanitized or each < 32, "%d KiB for each connection" % each)
        must(run.post_once("1/3", ROUNDS[1][3]) == 200, "it serves no more")
    times.sort()
    return "%d slow connections, %.1f KiB each, all cut; a good client's median %.0f ms" % (
        count, each, 1000 * times[len(times) // 2])


# -- sizes and framing ---------------------------------------------------------------------------

def head(*lines, path="/v1/events"):
    return ("POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson\r\n%s\r\n" % (
        path, "".join(line + "\r\n" for line in lines))).encode()


def framing(context):
    """Lengths that lie or contradict, chunks without end, and what hides behind them."""
    event = ROUNDS[0][3][0].encode() + b"\n"
    size = len(event)
    hidden = head("Content-Length: %d" % size) + event
    cases = {
        "length and chunks": (head("Content-Length: %d" % size, "Transfer-Encoding: chunked")
                              + b"0\r\n\r\n", {400}),
        "two lengths": (head("Content-Length: %d" % size, "Content-Length: 5") + event, {400}),
        "negative length": (head("Content-Length: -1") + event, {400, 413}),
        "length with a plus": (head("Content-Length: +5") + event, {400}),
        "length of 30 digits": (head("Content-Length: " + "9" * 30) + event, {400, 413}),
        "a length over the bound": (head("Content-Length: %d" % (20 * MIB + 1)), {413}),
        "length longer than the body": (head("Content-Length: %d" % (size + MIB)) + event, set()),
        "chunk size that is none": (head("Transfer-Encoding: chunked") + b"zz\r\n" + event, {400}),
        "chunk size of 20 digits": (head("Transfer-Encoding: chunked") + b"f" * 20 + b"\r\n", {400,
                                                                                            413}),
        "encoding that is none": (head("Transfer-Encoding: nonsense", "Content-Length: 0"),
                                  {400, 501}),
        "obfuscated chunked": (head("Transfer-Encoding : chunked", "Content-Length: %d" % size)
                               + event, {400}),
        "folded header": (head("X-A: b\r\n Content-Length: 3") + event, {400, 411}),
        "nothing in it": (head("Content-Length: 0"), {400}),
        "headers of 1 MiB": (head("X-Long: " + "a" * MIB), {431, 400}),
        "100,000 headers": (head(*["X-%d: a" % i for i in range(100_000)]), {431, 400}),
        "no HTTP at all": (os.urandom(4096), {400, 414, 431}),
    }
    with Listening(context, ack="accepted",
                   timeouts={"headers": "5s", "body": "5s", "write": "5s", "idle": "5s"}) as run:
        before = run.memory_kib()
        for what, (data, wanted) in cases.items():
            # An empty body is whole: what stands behind it would be a request.
            behind = b"" if what == "nothing in it" else b"\r\n" + hidden
            codes = statuses(talk(run.port, data + behind))
            if what == "no HTTP at all":
                wanted = wanted | {408, 505}
                must(len(codes) <= 1, "%s: %r" % (what, codes))
                codes = codes or [400]
            # Refused, and what stands behind it is never taken for another request.
            must(set(codes) <= (wanted or {400, 408}),
                 "%s: answered with %r, not one of %r" % (what, codes, sorted(wanted)))
        expect = talk(run.port, head("Content-Length: %d" % (30 * MIB), "Expect: 100-continue"))
        must(statuses(expect) == [413], "Expect: %r" % expect[:100])
        endless = endless_chunks(run.port)
        must(endless is None or endless == 413, "endless chunks: %s" % endless)
        must(run.consumed() in (None, 0), "something of it was taken: %s" % run.consumed())
        grown = run.memory_kib() - before
        must(context.sanitized or grown < 64 * 1024, "memory grew by %d KiB" % grown)
        must(run.post_once("0/3", ROUNDS[0][3]) in (200, 202), "it serves no more")
    return "%d requests refused, nothing that stood behind them was read" % (len(cases) + 2)


def endless_chunks(port):
    """The status; None when the connection was cut."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        client.sendall(head("Transfer-Encoding: chunked"))
        chunk = b"10000\r\n" + bytes(65536) + b"\r\n"
        try:
            for _ in range(4096):
                client.sendall(chunk)
        except OSError:
            pass
        else:
            must(False, "256 MiB of chunks were taken")
        try:
            codes = statuses(client.recv(65536))
        except OSError:
            codes = []
        return codes[0] if codes else None


# -- bombs ---------------------------------------------------------------------------------------

def zeros(total):
    """gzip of this many bytes, made of one piece of 1 MiB again and again."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packer.compress(bytes(MIB))
    packer.flush(zlib.Z_FULL_FLUSH)
    piece = packer.compress(bytes(MIB)) + packer.flush(zlib.Z_FULL_FLUSH)
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + piece * (total // MIB) + b"\x03\0" + bytes(8)


def bombs(context):
    event = (ROUNDS[0][3][0] + "\n").encode()
    bomb = zeros(10 << 30 if context.long else 1 << 30)
    spaces = gzip.compress(b" " * (64 * MIB) + event, 9)
    cases = {
        "a bomb": (bomb, {413}),
        "a bomb in a bomb": (gzip.compress(bomb, 9), {400, 413}),
        "64 MiB of blanks": (spaces, {413}),
        "1,000 members of 1 MiB": (gzip.compress(bytes(MIB), 9) * 1000, {413}),
        "cut short": (gzip.compress(event * 100)[:-20], {400}),
        "rubbish behind it": (gzip.compress(event) + b"rubbish" * 100, {400}),
        "a wrong checksum": (gzip.compress(event)[:-8] + bytes(8), {400}),
        "not gzip": (event, {400}),
        "nothing": (b"", {400}),
    }
    with Listening(context, ack="accepted") as run:
        before = run.memory_kib()
        peak = 0
        for what, (data, wanted) in cases.items():
            connection = http.client.HTTPConnection("127.0.0.1", run.port, timeout=60)
            try:
                connection.request("POST", "/v1/events", data, {
                    "Content-Type": "application/x-ndjson", "Content-Encoding": "gzip"})
            except OSError:
                pass                       # refused while it was sent
            try:
                status = connection.getresponse().status
            except (OSError, http.client.HTTPException):
                status = None
            connection.close()
            must(status in wanted or (status is None and len(data) > MIB),
                 "%s: answered with %s" % (what, status))
            peak = max(peak, run.memory_kib("VmHWM") - before)
        # A request may have 20 MiB, as sent and unpacked, in buffers that grow by doubling.
        must(context.sanitized or peak < 128 * 1024, "memory grew by %d KiB" % peak)
        must(run.post_once("0/3", ROUNDS[0][3]) in (200, 202), "it serves no more")
    with folder() as place:
        path = os.path.join(place, "bomb.jsonl.gz")
        with open(path, "wb") as file:
            file.write(bomb)
        done = subprocess.run([context.binary, "analyze", path], capture_output=True, check=False,
                              timeout=600)
        must(done.returncode in (0, 65), "analyze of a bomb: exit code %d" % done.returncode)
        must(b"Sanitizer" not in done.stderr, lambda: done.stderr[-2000:])
    return "%s of zeros in %.1f MiB: 413, memory grew by %.1f MiB" % (
        "10 GiB" if context.long else "1 GiB", len(bomb) / MIB, peak / 1024)


# -- TLS -----------------------------------------------------------------------------------------

def certificate(place, name):
    key, cert = os.path.join(place, "tls.key"), os.path.join(place, "tls.crt")
    done = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                           "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                           "/CN=" + name, "-keyout", key, "-out", cert], capture_output=True,
                          check=False)
    must(done.returncode == 0, lambda: "openssl: %r" % done.stderr[-500:])
    return cert, key


def shown(port, **versions):
    """The certificate that is shown, or None when the handshake is refused."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    client.set_ciphers("ALL:@SECLEVEL=0")
    for name, version in versions.items():
        setattr(client, name, version)
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=20) as plain:
            with client.wrap_socket(plain) as secure:
                return secure.getpeercert(binary_form=True)
    except OSError:
        return None


def transport(context):
    """Plain text, old TLS; a renewed certificate is taken by a reload, a broken one is not."""
    with folder() as keys:
        cert, key = certificate(keys, "first")
        with Listening(context, tls={"cert_file": cert, "key_file": key}) as run:
            first = shown(run.port)
            must(first is not None, "no handshake")
            old = ssl.TLSVersion
            must(shown(run.port, minimum_version=old.TLSv1, maximum_version=old.TLSv1_1) is None,
                 "TLS 1.1 is taken")
            must(200 not in statuses(talk(run.port, head("Content-Length: 0"))),
                 "plain text is answered")
            certificate(keys, "second")
            run.signal(signal.SIGHUP)
            wait_for(lambda: '"C1012"' in run.log_text(), "it reloads", 60)
            wait_for(lambda: shown(run.port) not in (None, first), "the new one is shown", 60)
            second = shown(run.port)
            with open(cert, "w", encoding="ascii") as file:
                file.write("broken\n")
            run.signal(signal.SIGHUP)
            wait_for(lambda: re.search('"C10(03|13)"', run.log_text()), lambda: "it refuses: "
                     + run.log_text()[-1500:], 60)
            wait_for(lambda: shown(run.port) == second, "the old one stays", 60)
            must("PRIVATE KEY" not in run.log_text(), "the key is in the log")
    return "TLS 1.1 and plain text refused; renewed by a reload; a broken one changes nothing"
