# SPDX-License-Identifier: Apache-2.0
"""Reads a .wandb log: the records in it, as much of their protobuf as tests look at.

Everything that is not as it should be raises ValueError: head, checksums, chunks that do not fit
together, records that are not numbered from 1.
"""
import json
import struct
import zlib

BLOCK, HEAD = 32768, 7
WHOLE, FIRST, MIDDLE, LAST = 1, 2, 3, 4
KINDS = {2: "history", 3: "summary", 5: "config", 6: "files", 8: "artifact", 10: "alert", 12: "metric",
         17: "run", 18: "exit",
         21: "header"}


def payloads(data):
    if data[:HEAD] != b":W&B\xe1\xbe\0":
        raise ValueError("not a .wandb file: %r" % data[:HEAD])
    at, open_payload = HEAD, None
    while at < len(data):
        left = BLOCK - at % BLOCK
        if left < HEAD:
            if any(data[at:at + left]):
                raise ValueError("the end of a block is not zero at %d" % at)
            at += left
            continue
        crc, size, kind = struct.unpack_from("<IHB", data, at)
        chunk = data[at + HEAD:at + HEAD + size]
        if size > left - HEAD or len(chunk) < size:
            raise ValueError("a chunk is cut at %d" % at)
        if zlib.crc32(bytes([kind]) + chunk) != crc:
            raise ValueError("a checksum is wrong at %d" % at)
        if (kind in (WHOLE, FIRST)) != (open_payload is None):
            raise ValueError("a chunk of kind %d at %d is out of place" % (kind, at))
        open_payload = (open_payload or b"") + chunk
        if kind in (WHOLE, LAST):
            yield open_payload
            open_payload = None
        at += HEAD + size
    if open_payload is not None:
        raise ValueError("the last record has no end")


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def fields(data):
    """[(number, int or bytes)] of a message that has no others."""
    found, at = [], 0
    while at < len(data):
        tag, at = varint(data, at)
        value, at = varint(data, at)
        if tag & 7 == 2:
            value, at = data[at:at + value], at + value
            if at > len(data):
                raise ValueError("a field goes over the end of its message")
        elif tag & 7 != 0:
            raise ValueError("a field of wire type %d" % (tag & 7))
        found.append((tag >> 3, value))
    return found


def items(message):
    """Keys and values of a history, summary or config record."""
    values = {}
    for number, item in fields(message):
        if number != 1:
            continue
        parts = fields(item)
        key = "/".join(value.decode() for field, value in parts if field in (1, 2))
        values[key] = json.loads(dict(parts)[16])
    return values


def read(path):
    """[(kind, message)]"""
    with open(path, "rb") as file:
        data = file.read()
    records = []
    for payload in payloads(data):
        (one, number), (kind, message) = fields(payload)
        if one != 1 or number != len(records) + 1:
            raise ValueError("record %d is numbered %r" % (len(records) + 1, number))
        records.append((KINDS[kind], message))
    return records
