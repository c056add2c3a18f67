#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the C decoder with decode_oracle.py on generated and mutated records.

    run.py DRIVER [--count N] [--seed N]

DRIVER is decode_driver. Records are decoded one after the other with the memory of one source and
once more with --fresh; both must agree with the oracle: accepted or refused, category, field, and
every value. The differences that are meant are listed in KNOWN, one function each.
"""
import argparse
import json
import math
import os
import random
import subprocess
import sys

import decode_oracle as oracle

INT64 = (-2**63, 2**63 - 1)
RANK_MAX = 2**31 - 2
DEPTH_MAX = 64
FIELD_MAX = 511


def limits_of(field):
    if field == "timestamp_ns" or field == "timestamp":
        return (0, 2**64 - 1)
    if field in ("rank", "local_rank", "world_size"):
        return (0, RANK_MAX)
    return INT64


def depth_of(text):
    depth = deepest = 0
    inside = escaped = False
    for c in text:
        if inside:
            inside = escaped or c != '"'
            escaped = c == "\\" and not escaped
        elif c == '"':
            inside = True
        elif c in "{[":
            depth += 1
            deepest = max(deepest, depth)
        elif c in "}]":
            depth -= 1
    return deepest


# What the decoder does otherwise on purpose. Each takes the record's bytes, the driver's answer and
# the oracle's, and says whether this difference explains it.
def beyond_integer_limits(data, ours, theirs):
    """An integer beyond int64 (uint64 for times, RANK_MAX for ranks) is refused as out_of_range."""
    if ours.get("refused") != "out_of_range" or "culprit takes" not in ours["detail"]:
        return False
    record = oracle.parse(data)
    low, high = limits_of(ours["field"])
    values = [record.get(ours["field"]), record.get("metadata_" + ours["field"])]
    if type(record.get("metadata")) is dict:
        values.append(record["metadata"].get(ours["field"]))
    for value in values:
        if ours["field"] == "timestamp" and oracle.is_number(value):
            return float(value) * 1e9 >= 2.0 ** 64
        if ours["field"] == "memory_mb" and oracle.is_number(value):
            return not -2.0 ** 63 < float(value) * 2.0 ** 20 < 2.0 ** 63
        if ours["field"] == "device" and type(value) is str:
            return int(value.rpartition(":")[2]) > high
        if type(value) is int and not low <= value <= high:
            return True
    return False


def nested_too_deep(data, ours, theirs):
    """Objects and arrays more than 64 deep are refused as bad_json."""
    return (ours.get("refused") == "bad_json" and "64 deep" in ours["detail"]
            and depth_of(data.decode("utf-8", "replace")) > DEPTH_MAX)


def scope_number_beyond_int64(data, ours, theirs):
    """A phase's thread_id or sequence beyond int64 makes the boundary none."""
    scope = theirs.get("phase_scope")
    if not scope or ours.get("phase_scope", 0) is not None:
        return False
    numbers = (scope["thread_id"], scope["sequence"])
    return (any(not INT64[0] <= n <= INT64[1] for n in numbers)
            and differences(ours, {**theirs, "phase_scope": None}) == [])


def digits_of_other_scripts(data, ours, theirs):
    """A legacy device text ends in digits beyond ASCII: they are not read."""
    device = oracle.parse(data).get("device")
    tail = device.rpartition(":")[2] if type(device) is str else ""
    return tail.isdigit() and not tail.isascii()


KNOWN = [beyond_integer_limits, nested_too_deep, scope_number_beyond_int64, digits_of_other_scripts]


def same_seconds(ours, theirs):
    theirs = None if theirs is not None and math.isnan(theirs) else theirs
    return ours == "null" if theirs is None else ours != "null" and float(ours) == theirs


def same_value(name, ours, theirs):
    if name == "metadata":
        return repr(json.loads(ours)) == repr(theirs)  # repr: NaN equals NaN, 1 is not 1.0
    if name == "tracker" and ours is not None and theirs is not None:
        return ours == {**theirs, "timestamp": ours["timestamp"]} \
            and same_seconds(ours["timestamp"], theirs["timestamp"])
    if name == "field":
        return ours == theirs or (len(theirs.encode("utf-8", "surrogatepass")) > FIELD_MAX
                                  and theirs.startswith(ours)) or "\0" in theirs
    return ours == theirs and type(ours) is type(theirs)


def differences(ours, theirs):
    names = set(ours) | set(theirs)
    names.discard("detail")
    return sorted(n for n in names if n not in ours or n not in theirs
                  or not same_value(n, ours[n], theirs[n]))


# ---- records -----------------------------------------------------------------------------------

CAPABILITIES = {name: "cuda" for name in oracle.CAPABILITY_TEXTS}
CAPABILITIES.update({name: True for name in oracle.CAPABILITY_FLAGS})

ODD_VALUES = [
    None, True, False, 0, -0.0, 1, -1, -2, 5.0, 4e3, 1e400, -1e400, math.nan, 2**31 - 2, 2**31 - 1,
    2**31, 2**53 + 1, 2**63 - 1, 2**63, -2**63, -2**63 - 1, 2**64 - 1, 2**64, 10**25, -10**25, "",
    " ", "\u2003\u00a0", "\x1c\x85", "x", "node \u00e9", "\ud800", "\ud83d\ude00", "a\"b\\c\n",
    "\u017fample", "SAMPLE", "phase_enter", "phase_exit", [], {}, [1, [2, {"a": []}]], {"k": "v"},
    "1", "0", 3, 2, 4, 1.5, 0.1, 1760000000.123456, "\x00", "cuda:1", "cpu", "/GPU:0", "/gpu", ":7",
    "mps ", " ROCM\t", "cuda:99999999999999999999", "cuda:\u0663",
]
LEGACY_KEYS = [
    "timestamp", "timestamp_ns", "memory_allocated", "memory_reserved", "memory_change",
    "memory_mb", "device", "device_id", "total_memory", "device_total", "total_bytes",
    "device_used", "device_used_bytes", "device_free_bytes", "device_total_bytes", "type",
    "event_type", "message", "context", "backend", "collector", "metadata", "pid", "host",
    "session_id", "rank", "local_rank", "world_size", "job_id", "sampling_interval_ms",
    "allocator_active_bytes", "allocator_allocated_bytes", "whatever", "metadata_pid",
    "metadata_host", "metadata_rank", "metadata_world_size", "metadata_total_memory",
    "metadata_backend", "metadata_session_id", "metadata_job_id", "metadata_phase_scope",
    "metadata_memory_capabilities", "metadata_sampling_source", "metadata_",
]
METADATA_KEYS = [
    "memory_capabilities", "phase_scope", "session_id", "sampling_source", "backend", "step",
    "pid", "host", "rank", "local_rank", "world_size", "job_id", "total_memory", "device_total",
    "total_bytes",
]


def phase_scope(r):
    scope = {
        "action": r.choice(["enter", "exit"]), "name": "forward", "depth": 2,
        "path": r.choice([["epoch", "forward"], ["a"], ["", "b", 3, "\u00e9"], [], [" "]]),
        "scope_id": "s:%d" % r.randrange(9), "parent_scope_id": None, "sequence": r.randrange(99),
        "thread_id": 140484628843392, "thread_name": "MainThread", "attributes": {"epoch": 0},
    }
    if r.random() < 0.4:
        scope[r.choice(list(scope))] = r.choice(ODD_VALUES)
    return scope


def base_record(r):
    version = r.choice([2, 3, 3, 4, 4])
    world = r.choice([1, 2, 64])
    record = {
        "schema_version": version, "session_id": "sess-%d" % r.randrange(3),
        "timestamp_ns": 1760000000000000000 + r.randrange(10**12),
        "event_type": r.choice(["sample", "start", "peak", "phase_enter", "phase_exit"]),
        "collector": "stormlog.cuda_tracker", "sampling_interval_ms": 100,
        "pid": 4000 + r.randrange(4), "host": "node%d" % r.randrange(3), "job_id": "job-a",
        "rank": r.randrange(world), "local_rank": 0, "world_size": world, "device_id": 0,
        "allocator_allocated_bytes": r.randrange(10**11),
        "allocator_reserved_bytes": r.randrange(10**11),
        "allocator_active_bytes": r.choice([None, r.randrange(10**9)]),
        "allocator_inactive_bytes": None,
        "allocator_change_bytes": r.randrange(-10**9, 10**9),
        "device_used_bytes": r.randrange(10**10), "device_free_bytes": r.randrange(10**10),
        "device_total_bytes": r.choice([None, 85899345920]),
        "context": r.choice([None, "ok", "Phase entered: epoch", "caf\u00e9 \"x\"\n", ""]),
        "metadata": {"memory_capabilities": dict(CAPABILITIES)} if r.random() < 0.5 else {},
    }
    if version == 2:
        del record["session_id"]
    if record["event_type"].startswith("phase"):
        record["metadata"]["phase_scope"] = phase_scope(r)
    return record


def legacy_record(r):
    record = {"timestamp": r.choice([1, 1.5, 1760000000.25, 1e-10, 1795248785.98807987])}
    for key in r.sample(LEGACY_KEYS, r.randrange(1, 8)):
        record[key] = r.choice([7, 20, "cpu", "x", r.choice(ODD_VALUES), {"rank": 1}, 3])
    if r.random() < 0.3:
        record["metadata"] = {k: r.choice([1, 5, "m", r.choice(ODD_VALUES)])
                              for k in r.sample(METADATA_KEYS, r.randrange(5))}
    if r.random() < 0.1:
        record["metadata_phase_scope"] = phase_scope(r)
        record["type"] = r.choice(["phase_enter", "phase_exit"])
    return record


def odd_metadata(r, metadata):
    metadata = dict(metadata)
    choice = r.random()
    if choice < 0.5 and type(metadata.get("memory_capabilities")) is dict:
        block = dict(metadata["memory_capabilities"])
        key = r.choice(list(block) + ["extra", "another"])
        if r.random() < 0.5 and key in block:
            del block[key]
        else:
            block[key] = r.choice(ODD_VALUES + [False, False])
        metadata["memory_capabilities"] = block
    else:
        metadata[r.choice(METADATA_KEYS)] = r.choice(ODD_VALUES)
    return metadata


def change_record(r, record):
    """One change to a dict that is a record."""
    record = dict(record)
    choice = r.random()
    if choice < 0.15:
        record.pop(r.choice(list(record)))
    elif choice < 0.2:
        record[r.choice(["extra", "zeta", "alpha", "\u00e9", "Rank", "", "\ud800"])] = 1
    elif choice < 0.4 and type(record.get("metadata")) is dict:
        record["metadata"] = odd_metadata(r, record["metadata"])
    elif record:
        record[r.choice(list(record))] = r.choice(ODD_VALUES)
    return record


def write_text(r, value, style):
    if type(value) is not str or style["escape"] < r.random():
        return json.dumps(value, ensure_ascii=style["ascii"], separators=style["separators"])
    return '"' + "".join("\\u%04x" % ord(c) if ord(c) < 0x10000 else json.dumps(c)[1:-1]
                         for c in value) + '"'


def write_record(r, record, style):
    comma, colon = style["separators"]
    pairs = list(record.items())
    if style["shuffle"]:
        r.shuffle(pairs)
    if pairs and r.random() < style["repeat"]:
        key, _ = r.choice(pairs)
        pairs.insert(r.randrange(len(pairs) + 1), (key, r.choice(ODD_VALUES)))
    text = comma.join(write_text(r, k, style) + colon + write_text(r, v, style) for k, v in pairs)
    text = style["lead"] + "{" + text + "}" + style["tail"]
    return text.replace(" -0.0", " -0").encode("utf-8", "surrogatepass")


def mutate_bytes(r, data):
    data = bytearray(data)
    for _ in range(r.randrange(1, 4)):
        at = r.randrange(len(data) + 1)
        choice = r.randrange(6)
        if choice == 0 and at < len(data):
            data[at] = r.randrange(256)
        elif choice == 1:
            del data[at:at + r.randrange(1, 4)]
        elif choice == 2:
            data[at:at] = r.choice([b'"', b"\\", b"{", b"}", b"[", b",", b":", b" ", b"\n", b"0",
                                    b"-", b".", b"e5", b"null", b"\xff", b"\xed\xa0\x80", b"\x00",
                                    b"\xc3\xa9", b"\\ud83d", b"\\u12", b"\xf4\x90\x80\x80", b"NaN"])
        elif choice == 3 and len(data) > 1:
            source = r.randrange(len(data))
            data[at:at] = data[source:source + r.randrange(1, 20)]
        elif choice == 4:
            del data[at:]
        elif at < len(data):
            data[at] ^= 1 << r.randrange(8)
    return bytes(data)


def deep_record(r, depth):
    opening = [r.choice(["[", '{"a":']) for _ in range(depth)]
    closing = ["]" if o == "[" else "}" for o in reversed(opening)]
    text = json.dumps({**base_record(r), "metadata": 0})
    return text.replace('"metadata": 0', '"metadata": {"x": %s1%s}'
                        % ("".join(opening), "".join(closing))).encode()


def new_style(r):
    return {
        "separators": r.choice([(",", ":"), (", ", ": "), (" ,\t", " : "), (",\n  ", ": ")]),
        "ascii": r.random() < 0.7, "escape": r.choice([0, 0, 0, 0.3]), "shuffle": r.random() < 0.15,
        "repeat": r.choice([0, 0, 0, 0.3]), "lead": r.choice(["", "", " ", "\n\t"]),
        "tail": r.choice(["", "", " ", "\r"]),
    }


def generate(seed, count):
    """Records in stretches that one source could have written, with odd ones between them."""
    r = random.Random(seed)
    for depth in (61, 62, 63, 64, 65, 200):
        yield deep_record(r, depth)
    for device in ("cuda:\u0663", "cuda:\u00b2", "cuda:3", "a:b:12", "gpu:", "/GPU", "x:1:cPu"):
        yield json.dumps({"timestamp": 1, "device": device}).encode()
    for used in (2**63 - 1, 2**63, -1, 1.5, True, "x"):
        yield json.dumps({"timestamp": 1, "device_used": used}).encode()
    for number in (2**63 - 1, 2**63, -2**63, -2**63 - 1):
        for key in ("thread_id", "sequence"):
            record = {**base_record(r), "event_type": "phase_enter"}
            scope = {"action": "enter", "name": "n", "path": ["p"], "scope_id": "",
                     "thread_name": "", "thread_id": True, "sequence": False, key: number}
            yield json.dumps({**record, "metadata": {"phase_scope": scope}}).encode()
    made = 0
    while made < count:
        style = new_style(r)
        stretch = base_record(r) if r.random() < 0.75 else legacy_record(r)
        for _ in range(r.randrange(1, 40)):
            record = dict(stretch)
            if "schema_version" in record:
                fresh = base_record(r)
                for key in ("timestamp_ns", "device_used_bytes", "allocator_change_bytes", "pid"):
                    if key in record:
                        record[key] = fresh[key]
            if r.random() < 0.35:
                record = change_record(r, record)
            if r.random() < 0.1:
                record = change_record(r, record)
            data = write_record(r, record, style)
            if r.random() < 0.15:
                data = mutate_bytes(r, data)
            made += 1
            yield data


def golden_records():
    here = os.path.dirname(os.path.abspath(__file__))
    folder = os.path.join(here, "..", "golden", "telemetry_invalid")
    for name in sorted(os.listdir(folder)):
        if name.endswith(".json"):
            with open(os.path.join(folder, name), "rb") as file:
                yield file.read()


def ask_driver(driver, arguments, records):
    framed = b"".join(b"%d\n%s\n" % (len(data), data) for data in records)
    done = subprocess.run([driver, *arguments], input=framed, stdout=subprocess.PIPE, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    if len(answers) != len(records):
        sys.exit("the driver answered %d of %d records" % (len(answers), len(records)))
    return answers


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("driver")
    parser.add_argument("--count", type=int, default=6000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    sys.setrecursionlimit(10000)
    records = list(golden_records()) + list(generate(options.seed, options.count))
    judged = [oracle.judge(data) for data in records]
    known = {difference.__name__: 0 for difference in KNOWN}
    failures = 0
    for arguments in ([], ["--fresh"]):
        for data, ours, theirs in zip(records, ask_driver(options.driver, arguments, records), judged):
            found = differences(ours, theirs)
            if not found:
                continue
            reason = next((k for k in KNOWN if k(data, ours, theirs)), None)
            if reason is not None:
                known[reason.__name__] += 1
                continue
            failures += 1
            if failures <= 10:
                print("DIFFERS in %s\n  record %r\n  culprit %r\n  oracle  %r"
                      % (", ".join(found), data, ours, theirs))
    accepted = sum("refused" not in answer for answer in judged)
    print("%d records (%d accepted by the oracle), each decoded twice: %d differences; meant: %s"
          % (len(records), accepted, failures,
             ", ".join("%s %d" % item for item in known.items())))
    unused = [name for name, count in known.items() if count == 0]
    if unused:
        print("no record shows these differences any more: " + ", ".join(unused))
    sys.exit(failures > 0 or len(unused) > 0)


if __name__ == "__main__":
    main()
