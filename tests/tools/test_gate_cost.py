#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tools/gate_cost makes of figures. That it sees a slowdown and a leak in a program, it shows
itself, each time it runs."""
import importlib.machinery
import importlib.util
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from checks import Checks  # noqa: E402

sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("gate_cost", os.path.join(ROOT, "tools", "gate_cost"))
gate = importlib.util.module_from_spec(importlib.util.spec_from_loader("gate_cost", loader))
loader.exec_module(gate)

HERE_NOW = {"compiler": "cc 12", "architecture": "x86_64", "vectors": "avx2"}


def figures(decode=1000.0, held=64.0, **more):
    return {"made_with": HERE_NOW, "instructions": {"xid": {"decode": decode, "stages": 10.0}},
            "bytes": {"xid": {"gpu_fault": held, "live": 0.0, **more}}}


def main():
    checks = Checks()

    def over(baseline, got, here=None):
        return gate.compare(baseline, got, here or HERE_NOW)

    checks.equal(over(figures(), figures()), ([], []), "the same figures")
    checks.equal(over(figures(), figures(decode=1029.9))[0], [], "2.99 % more")
    checks.equal(over(figures(), figures(decode=1030.1)),
                 (["xid, decode: 1030.1 instructions an event, at most 1030.0 (1000.0 in bench/cost.json, "
                   "+3.0 %)"], []),
                 "3.01 % more")
    checks.equal(len(over(figures(), figures(decode=900.0))[1]), 1, "10 % less is told, and passes")
    checks.equal(over(figures(), figures(held=70.8))[0], [], "10 % and a little more bytes")
    checks.equal(over(figures(), figures(held=71.0))[0],
                 ["xid, gpu_fault: 71.0 bytes an event, at most 70.9 (64.0 in bench/cost.json, +10.9 %)"],
                 "11 % more bytes")
    checks.equal(over(figures(), figures(live=0.4))[0], [], "less than half a byte")
    checks.equal(over(figures(), figures(live=8.0))[0],
                 ["xid, live: 8.0 bytes an event, at most 0.5 (0.0 in bench/cost.json)"], "a leak where nothing was held")
    checks.equal(over(figures(), figures(nccl_hang=24.0))[0],
                 ["xid, nccl_hang: 24.0 bytes an event, at most 0.5 (0 in bench/cost.json)"],
                 "a component that held nothing")
    more = figures()
    more["bytes"]["new"] = {"live": 0.0}
    checks.equal(over(figures(), more)[0], ["new: is not in bench/cost.json"], "a new stream")
    checks.equal(over(more, figures())[0], ["new: is no longer measured"], "a stream that is gone")
    other = dict(HERE_NOW, compiler="cc 13")
    wrong, said = over(figures(), figures(decode=1300.0, held=128.0), other)
    checks.equal([line.split(":")[0] for line in wrong], ["xid, gpu_fault"],
                 "with another compiler bytes are compared, and streams with one another")
    checks.check("compared with one another only" in said[-1], "with another compiler: %r" % said)
    more = figures()
    for name in ("a", "b", "c"):
        more["instructions"][name] = {"decode": 500.0}
        more["bytes"][name] = {"live": 0.0}
    all_dearer = {**more, "instructions": {name: {part: 1.8 * value for part, value in parts.items()}
                                           for name, parts in more["instructions"].items()}}
    checks.equal(over(more, all_dearer, other)[0], [], "all take more with another compiler")
    all_dearer["instructions"]["b"] = {"decode": 1400.0}
    checks.equal(over(more, all_dearer, other)[0],
                 ["b, decode: 1400.0 instructions an event, at most 1350.0 (2.80 times 500.0 in "
                  "bench/cost.json, and the median of all streams is 1.80 times)"],
                 "one takes much more than the others with another compiler")

    text = ("desc: Trigger: Client Request: xid decode 512\n\nevents: Ir\nsummary: 7\n1 2\n\n"
            "totals: 1024\npart: 2\ndesc: Trigger: Client Request: xid stages 512\nfn=(1)\n"
            "totals: 2048\ndesc: Trigger: Program termination\ntotals: 0\n")
    checks.equal(gate.PARTS.findall(text), [("xid", "decode", "512", "1024"),
                                            ("xid", "stages", "512", "2048")], "callgrind's file")

    with open(os.path.join(ROOT, gate.BASELINE), encoding="utf-8") as file:
        kept = json.load(file)
    checks.equal(gate.compare(kept, kept, kept["made_with"]), ([], []), "the kept baseline")
    checks.equal(sorted(kept["instructions"]), sorted([*kept["bytes"], "files"]),
                 "streams of the baseline")
    files = kept["instructions"].pop("files")
    checks.check(list(files) == ["whole"] and files["whole"] > 100, "files: %r" % files)
    slow = {**kept, "instructions": {**kept["instructions"], "files": {"whole": 2 * files["whole"]}}}
    checks.equal(len(gate.compare({**kept, "instructions": {**kept["instructions"], "files": files}},
                                  slow, kept["made_with"])[0]), 1, "files that take twice as much")
    for name, parts in kept["instructions"].items():
        checks.check(parts.get("decode", 0) > 100 and parts.get("stages", 0) > 0,
                     "%s: %r" % (name, parts))
    sys.exit(checks.finish())


if __name__ == "__main__":
    main()
