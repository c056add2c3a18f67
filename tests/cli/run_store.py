#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""culprit store check and culprit store dump, on stores made here as the format says.

    run_store.py BINARY
"""
import os
import sqlite3
import struct
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from checks import Checks  # noqa: E402
from process import run  # noqa: E402

SPACES = ["meta", "state", "strings", "queue", "journal", "repeats"]
WHOLE, DAMAGED, MISUSED, MISSING = 0, 1, 64, 66


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def make_store(folder, rows):
    """`rows`: (space, name, number, bytes). Written by the documented layout, not by culprit."""
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "culprit.db")
    database = sqlite3.connect(path)
    database.executescript(
        "PRAGMA page_size=4096; PRAGMA journal_mode=WAL; PRAGMA application_id=0x63756c70;"
        "PRAGMA user_version=1;"
        "CREATE TABLE name(id INTEGER PRIMARY KEY, space INTEGER NOT NULL, text TEXT NOT NULL);"
        "CREATE UNIQUE INDEX name_key ON name(space, text);"
        "CREATE TABLE blob(key INTEGER PRIMARY KEY, crc INTEGER NOT NULL, bytes BLOB NOT NULL);")
    ids = {}
    for space, name, number, data in rows:
        key = (SPACES.index(space), name)
        if key not in ids:
            ids[key] = len(ids) + 1
            database.execute("INSERT INTO name VALUES(?, ?, ?)", (ids[key], *key))
        crc = crc32c(struct.pack("<QB", number, key[0]) + name.encode() + data)
        database.execute("INSERT INTO blob VALUES(?, ?, ?)", (ids[key] << 47 | number, crc, data))
    database.commit()
    database.close()
    return path


class Suite:
    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder
        self.checks = Checks()
        self.store = os.path.join(folder, "store")
        self.path = make_store(self.store, [
            ("state", "verdicts/rank_group/rows", 0, b"\x00\x01page"),
            ("state", "verdicts/rank_group/rows", 7, b"p" * 4096),
            ("state", "a\x1b[31mb", 1, b""),
            ("queue", "json", 3, b"line\n"),
            ("meta", "", 0, b"layout")])

    def culprit(self, code, *arguments, out=(), err=()):
        done = run(self.binary, "store", *arguments)
        what = "culprit store " + " ".join(arguments)
        self.checks.equal(done.code, code, "%s: exit code (%s)" % (what, done.errors()[-400:]))
        for text in out:
            self.checks.check(text in done.text(), "%s: %r is not in %.800r"
                              % (what, text, done.text()))
        for text in err:
            self.checks.check(text in done.errors(), "%s: %r is not in %.800r"
                              % (what, text, done.errors()))
        self.checks.check("Sanitizer" not in done.errors() and "runtime error" not in done.errors(),
                          what + ": the sanitizer complains")
        return done

    def check(self):
        self.culprit(WHOLE, "check", self.store, out=["5 blobs", "; whole"])
        self.checks.equal(sorted(os.listdir(self.store)), ["culprit.db"], "files after a check")

    def dump(self):
        done = self.culprit(WHOLE, "dump", self.store)
        self.checks.equal([line.split("\t") for line in done.text().splitlines()], [
            ["meta", "", "0", "6"],
            ["state", "a\\x1b[31mb", "1", "0"],
            ["state", "verdicts/rank_group/rows", "0", "6"],
            ["state", "verdicts/rank_group/rows", "7", "4096"],
            ["queue", "json", "3", "5"]], "a dump")
        self.checks.check(b"\x1b" not in done.out, "a control character of a name is printed raw")
        self.checks.equal(self.culprit(WHOLE, "dump", self.store, "--space", "queue").text(),
                          "queue\tjson\t3\t5\n", "a dump of one space")
        self.checks.equal(
            self.culprit(WHOLE, "dump", self.store, "--space", "state", "--name",
                         "verdicts/rank_group/rows", "--bytes").text().splitlines()[0],
            "state\tverdicts/rank_group/rows\t0\t6\t000170616765", "a dump with bytes")
        self.checks.equal(self.culprit(WHOLE, "dump", self.store, "--name", "none").text(), "",
                          "a dump of nothing")

    def misused(self):
        self.culprit(MISUSED, "check", err=["DIRECTORY"])
        self.culprit(MISUSED, "dump", err=["DIRECTORY"])
        self.culprit(MISUSED, "dump", self.store, "--space", "quue", err=["quue", "queue"])
        self.culprit(MISUSED, "check", self.store, "more", err=["more"])
        self.culprit(MISSING, "check", self.folder, err=[self.folder])
        self.culprit(MISSING, "dump", os.path.join(self.folder, "none"), err=["none"])
        self.culprit(0, "check", "--help", out=["66"])
        self.culprit(0, "dump", "--help", out=["--space", "--name", "--bytes"])

    def damaged(self):
        with open(self.path, "rb") as file:
            whole = file.read()

        def with_bytes(at, data, *err, out=()):
            with open(self.path, "wb") as file:
                file.write(whole[:at] + data + whole[at + len(data):])
            self.culprit(DAMAGED, "check", self.store, out=["; damaged"], err=err)
            return self.culprit(DAMAGED, "dump", self.store, out=out, err=err[:1])

        at = whole.index(b"line\n")
        with_bytes(at, b"LINE\n", 'blob 3 of queue "json" is damaged', out=["state\t"])
        with_bytes(0, b"nothing of the kind", "culprit.db")
        with_bytes(60, b"\0\0\0\2", "version 2")
        with_bytes(68, b"\0\0\0\0", "another program")
        with_bytes(3 * 4096, b"\0" * 4096, "culprit.db")
        with open(self.path, "wb") as file:
            file.write(whole)
        self.culprit(WHOLE, "check", self.store)

    def in_use(self):
        """A writer that has it open, with what is only in its log."""
        database = sqlite3.connect(self.path)
        database.execute("PRAGMA wal_autocheckpoint=0")
        database.execute("DELETE FROM blob WHERE bytes = x''")
        database.commit()
        self.culprit(WHOLE, "check", self.store, out=["4 blobs"])
        database.execute("BEGIN IMMEDIATE")
        self.culprit(WHOLE, "check", self.store, out=["4 blobs"])
        database.close()


def main(binary):
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(binary, folder)
        for part in (suite.check, suite.dump, suite.misused, suite.damaged, suite.in_use):
            part()
    return suite.checks.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
