# SPDX-License-Identifier: Apache-2.0
"""Writes the pickles of this folder with Python's own pickle module: plain values and a Flight
Recorder dump, at protocols 2 to 5. Run it again when they are to hold something else."""
import json
import os
import pickle

HERE = os.path.dirname(os.path.abspath(__file__))
SHARED = ["shared", 1]
VALUES = {
    "none": None,
    "true": True,
    "false": False,
    "small": [0, 255, 256, 65535, 65536, -1, 2**31 - 1, -(2**31)],
    "long": [2**31, -(2**31) - 1, 2**63 - 1, -(2**63)],
    "huge": [2**63, -(2**63) - 1, 2**2100],
    "decimal": [1.5, -0.25, 1e300],
    "text": ["", "plain", "Größe \u20ac \U0001f600", "x" * 300],
    "tuples": [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)],
    "empty": [[], {}, [[]]],
    "shared": [SHARED, SHARED],
    "many": list(range(3000)),
    "dict": {"number %d" % i: i for i in range(2500)},
}


def dump_of_json(path):
    with open(path, encoding="utf-8") as file:
        dump = json.load(file)
    for entry in dump["entries"]:
        for key in ("time_discovered_started_ns", "time_discovered_completed_ns"):
            entry[key] = entry[key] or None
        entry["frames"] = [{"name": "all_reduce", "filename": "train.py", "line": 7}]
    return dump


def main():
    recorded = os.path.join(HERE, "../../../../golden/real_flight_recorder/hooked_missing_rank/json",
                            "comm_lib_trace_rank_0")
    for protocol in range(2, 6):
        for name, value in (("values", VALUES), ("dump", dump_of_json(recorded))):
            with open(os.path.join(HERE, "%s_protocol_%d_rank_0" % (name, protocol)), "wb") as file:
                pickle.dump(value, file, protocol)


if __name__ == "__main__":
    main()
