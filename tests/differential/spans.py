#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the decoder of span streams with span_oracle.py on golden lines, changed and broken.

    spans.py DRIVER [--count N] [--seed N]

DRIVER is span_driver. Both must agree in the code of a refusal, in what was read before it, and in
every value of what is accepted.
"""
import argparse
import copy
import glob
import json
import os
import random
import subprocess
import sys
from fractions import Fraction

import span_oracle as oracle

HERE = os.path.dirname(os.path.abspath(__file__))
KEYS = ["ev", "ts", "nthreads", "worker", "total", "tasks", "group", "span", "code", "collections",
        "default_id", "key", "to", "nbytes", "actions", "data", "name", "ids", "filename",
        "lineno_frame", "lineno_relative", "whatever"]


class Raw(str):
    """Written as it is, whether JSON or not."""


ODD = [
    None, True, False, 0, 1, -1, 2.0, -0.0, 0.1, 1e-300, 1e11, 1.0000001e11, 100000000000,
    100000000001, -1e11, 2**53 + 1, 2**63 - 1, -2**63, Raw("9223372036854775808"),
    Raw("-9223372036854775809"), Raw("18446744073709551616"), Raw("1e999"), Raw("-1e999"),
    Raw("1e308"), Raw("1.7976931348623159e308"), Raw("1.7976931348623158e308"), Raw("NaN"),
    Raw("Infinity"), Raw("-Infinity"), Raw("1" + "0" * 400 + ".5"), Raw("1" + "0" * 305 + ".5"),
    Raw("0." + "0" * 330 + "1e331"), Raw("123456789012345678.5"), Raw("9007199254740993.0"),
    Raw("0.1234567890123456789"), Raw("1700000001.123456"), Raw("-0"), Raw("01"), Raw("1."),
    "", "a", "(merged)", "execute", "p2p", "seconds", "memory", "waiting", "running", "start", "g",
    "tasks", "x\0y", "\u00e9\U0001f680", "q\"b\\s\n\x01\x7f/", "\ud800", "\udc00\ud800", Raw('"\\ud83d\\ude80"'),
    Raw('"\\uD83D\\u0041"'), Raw('"\\ud83d"'), Raw('"\\u006demory"'), Raw('"\\/\\b\\f\\u001f"'),
    [], {}, [1], ["a"], ["a", "b"], ["a", "a"], [[]], [{}], {"a": 1}, {"a": {"b": [None, 1.5]}},
    {"name": ["a"], "ids": ["a"]}, {"name": ["", "b"], "ids": ["q", "r"]},
    {"name": [], "ids": []}, {"name": ["a"], "ids": ["a", "b"]}, {"ids": ["a"]},
    {"name": ["a"], "ids": ["a"], "more": "\ud800"}, {"key": "k"}, {"key": "k", "group": "h"},
    {"key": "k", "group": None, "span": None}, {"key": "k", "span": {"name": ["z"], "ids": ["z"]}},
    {"key": "k", "nbytes": 5}, {"key": "k", "nbytes": None}, {"code": "c"}, {"code": ""},
    {"code": "c\n", "filename": None, "lineno_frame": None, "lineno_relative": -3},
    {"code": "c", "filename": "f\0"}, ["execute", "a", 1], ["execute", "a", "seconds", 0.5],
    ["p2p", "a", "x", "seconds", 1.5], ["latency", 1], ["execute", "a"], ["execute"], [3, "a", 1],
    ["execute", "a\0", "b", 1], ["compute", 1, 2], ["compute", 1.5, -2.5], ["", 1, 2],
    ["compute", 1], ["compute", 1, 2, 3], ["compute", 1, True], ["compute", 1e12, 0],
]


def golden_lines():
    for path in sorted(glob.glob(os.path.join(HERE, "..", "golden", "spans", "*", "events.jsonl"))):
        with open(path, "rb") as file:
            for line in file.read().split(b"\n"):
                if line.strip():
                    yield os.path.basename(os.path.dirname(path)), line


def write(r, value, style):
    comma, colon = style["separators"]
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, dict):
        pairs = list(value.items())
        if pairs and r.random() < style["repeat"]:
            pairs.insert(r.randrange(len(pairs) + 1), (r.choice(pairs)[0], r.choice(ODD)))
        if style["shuffle"]:
            r.shuffle(pairs)
        return "{" + comma.join(write(r, k, style) + colon + write(r, v, style)
                                for k, v in pairs) + "}"
    if isinstance(value, list):
        return "[" + comma.join(write(r, v, style) for v in value) + "]"
    if isinstance(value, str) and r.random() < style["escape"]:
        return '"' + "".join("\\u%04x" % ord(c) if ord(c) < 0x10000 else json.dumps(c)[1:-1]
                             for c in value) + '"'
    return json.dumps(value, ensure_ascii=style["ascii"])


def places(value, found):
    """Every container in it."""
    if isinstance(value, dict):
        found.append(value)
        for inner in value.values():
            places(inner, found)
    elif isinstance(value, list):
        found.append(value)
        for inner in value:
            places(inner, found)
    return found


def change(r, value):
    place = r.choice(places(value, []))
    odd = copy.deepcopy(r.choice(ODD))
    choice = r.random()
    if isinstance(place, dict):
        if choice < 0.2 and place:
            place.pop(r.choice(list(place)))
        elif choice < 0.45:
            place[r.choice(KEYS)] = odd
        elif place:
            place[r.choice(list(place))] = odd
    elif choice < 0.2 and place:
        place.pop(r.randrange(len(place)))
    elif choice < 0.4:
        place.insert(r.randrange(len(place) + 1), copy.deepcopy(r.choice(place))
                     if place and r.random() < 0.5 else odd)
    elif place:
        place[r.randrange(len(place))] = odd


def break_bytes(r, data):
    data = bytearray(data)
    for _ in range(r.randrange(1, 4)):
        at = r.randrange(len(data) + 1)
        choice = r.randrange(5)
        if choice == 0 and at < len(data):
            data[at] = r.randrange(256)
        elif choice == 1:
            del data[at:at + r.randrange(1, 4)]
        elif choice == 2:
            data[at:at] = r.choice([b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b" ", b"0",
                                    b"-", b".", b"e5", b"null", b"\xff", b"\xed\xa0\x80", b"\x00",
                                    b"\xc3\xa9", b"\\ud83d", b"\\u12", b"\xf4\x90\x80\x80", b"NaN",
                                    b"\xef\xbb\xbf", b"\x0b", b"1e400"])
        elif choice == 3:
            del data[at:]
        elif at < len(data):
            data[at] ^= 1 << r.randrange(8)
    return bytes(data)


def special_lines():
    """What chance would not make."""
    for depth in (61, 62, 63, 64, 65, 200):
        for opening, closing in (("[", "]"), ('{"a":', "}")):
            text = '{"ev":"start","ts":1,"x":%s1%s}' % (opening * depth, closing * depth)
            yield text.encode()
    for length in (16, 17, 100, 1023, 1024, 1025):
        ids = ["i%d" % i for i in range(length)]
        line = {"ev": "tasks", "ts": 1, "group": "g", "tasks": ["k"],
                "span": {"name": [""] * length, "ids": ids}}
        yield json.dumps(line).encode()
        ids[-1] = ids[length // 2]
        yield json.dumps(line).encode()
    for length in (15, 16, 17, 300):
        keys = ["k%d" % (i * 7 % (length - 3)) for i in range(length)]
        yield json.dumps({"ev": "data", "ts": 1, "group": "g", "tasks": keys}).encode()
        yield json.dumps({"ev": "tasks", "ts": 1, "group": "g", "tasks": keys + [1]}).encode()
    for ts in (1e-12, 1e-9, 0.5, 18446744072.9, 18446744073, 1e11, 1700000000.9999999999):
        yield json.dumps({"ev": "leave", "ts": ts, "worker": "w"}).encode()


def generate(seed, count):
    r = random.Random(seed)
    cases = {}
    for case, line in golden_lines():
        if len(line) < 2000:
            cases.setdefault(case, []).append(line)
    cases = list(cases.values())
    yield from special_lines()
    for _ in range(count):
        line = r.choice(r.choice(cases))
        style = {
            "separators": r.choice([(",", ":"), (", ", ": "), (" ,\t", " : ")]),
            "ascii": r.random() < 0.6, "escape": r.choice([0, 0, 0, 0.3]),
            "shuffle": r.random() < 0.2, "repeat": r.choice([0, 0, 0, 0.3]),
        }
        try:
            value = json.loads(line)
        except ValueError:
            value = []
        if r.random() < 0.85 and isinstance(value, dict):
            for _ in range(r.choice([0, 1, 1, 2, 3])):
                change(r, value)
            line = write(r, value, style).encode("utf-8", "surrogatepass")
        if r.random() < 0.2:
            line = break_bytes(r, line)
        if line.strip():
            yield r.choice([b"", b"", b" \t"]) + line + r.choice([b"", b"", b" ", b"\r"])


def ask_driver(driver, records):
    framed = b"".join(b"%d\n%s\n" % (len(data), data) for data in records)
    done = subprocess.run([driver], input=framed, stdout=subprocess.PIPE, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    if len(answers) != len(records):
        sys.exit("the driver answered %d of %d records" % (len(answers), len(records)))
    return answers


def time_is_right(ours, ts):
    if ts >= 18446744073:
        return ours["timeless"] and ours["time_ns"] == 2**64 - 1
    exact = max(1, round(Fraction(ts) * 10**9))
    return not ours["timeless"] and abs(ours["time_ns"] - exact) <= 1


def differences(ours, theirs):
    ours = dict(ours)
    found = []
    if theirs["refused"] == "accepted" and ours["refused"] == "accepted":
        if not time_is_right(ours, theirs["ts"]):
            found.append("time_ns")
        del ours["time_ns"], ours["timeless"]
    elif theirs["refused"] != "accepted":
        if not ours.pop("detail", ""):
            found.append("detail")
        ours["tasks"] = [task[:2] + [-1] + task[3:] for task in ours["tasks"]]
    # repr: 1 is not 1.0, -0.0 is not 0.0.
    return found + sorted(n for n in set(ours) | set(theirs)
                          if repr(ours.get(n, oracle.MISSING)) != repr(theirs.get(n, oracle.MISSING)))


def as_read(value):
    """Doubles come as texts."""
    if "ts" in value:
        value["ts"] = float(value["ts"])
    for action in value.get("actions", []):
        action[1:] = [float(time) for time in action[1:]]
    for metric in value.get("metrics", []):
        if len(metric) == 6 and not metric[4]:
            metric[5] = float(metric[5])
    return value


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("driver")
    parser.add_argument("--count", type=int, default=15000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    sys.setrecursionlimit(10000)
    records = [line for _, line in golden_lines()] + list(generate(options.seed, options.count))
    codes = {}
    failures = 0
    for data, ours in zip(records, ask_driver(options.driver, records)):
        theirs = oracle.judge(data)
        codes[theirs["refused"]] = codes.get(theirs["refused"], 0) + 1
        found = differences(as_read(ours), theirs)
        if found:
            failures += 1
            if failures <= 10:
                print("DIFFERS in %s\n  record %r\n  culprit %r\n  oracle  %r"
                      % (", ".join(found), data, ours, theirs))
    print("%d records: %d differences; by the oracle: %s"
          % (len(records), failures, ", ".join("%s %d" % item for item in sorted(codes.items()))))
    unseen = {"accepted", "bad-json", "bad-event", "bad-field", "bad-span", "bad-state"} - set(codes)
    if unseen:
        print("no record shows: " + ", ".join(sorted(unseen)))
    sys.exit(failures > 0 or len(unseen) > 0)


if __name__ == "__main__":
    main()
