#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whose log is it? A kernel log without host names, in a folder that may be called like a node;
and whose dump of a Flight Recorder.

    run_folders.py BINARY

Over inputs that end, the log is of the nearest folder in its path that other evidence names,
whatever the order of the files is; of none where nothing names one, and where its lines say
whose it is that counts.
"""
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from checks import Checks  # noqa: E402
from process import run  # noqa: E402

ADDRESS = "0000:4e:00"
FATAL = """\
pcieport 0000:4d:01.0: AER: Uncorrectable (Fatal) error message received from 0000:4e:00.0
nvidia 0000:4e:00.0: PCIe Bus Error: severity=Uncorrectable (Fatal), type=Data Link Layer, (Receiver ID)
nvidia 0000:4e:00.0:   device [10de:2330] error status/mask=00000010/00000000
nvidia 0000:4e:00.0:    [ 4] DLP                    (First)
nvidia 0000:4e:00.0: AER: can't recover (no error_detected callback)
pcieport 0000:4d:01.0: AER: device recovery failed
"""
DMESG = "".join("[Wed Nov 18 08:31:53 2026] %s\n" % line for line in FATAL.splitlines())
QUIET = "[Wed Nov 18 08:31:50 2026] EXT4-fs (nvme1n1): mounted filesystem\n"


def syslog(host):
    return "".join("2026-11-18T08:31:53.000000+00:00 %s kernel: %s\n" % (host, line)
                   for line in FATAL.splitlines())


def sample(host):
    """Of a rank's telemetry."""
    return json.dumps({
        "schema_version": 3, "session_id": "s", "timestamp_ns": 1794990713 * 10**9,
        "event_type": "sample", "collector": "stormlog.cuda_tracker",
        "sampling_interval_ms": 5000, "pid": 1, "host": host, "job_id": "j", "rank": 0,
        "local_rank": 0, "world_size": 1, "device_id": 0, "allocator_allocated_bytes": 1,
        "allocator_reserved_bytes": 2, "allocator_active_bytes": None,
        "allocator_inactive_bytes": None, "allocator_change_bytes": 0, "device_used_bytes": 2,
        "device_free_bytes": 2, "device_total_bytes": 4, "context": None, "metadata": {}}) + "\n"


def place(node):
    """A line of a rank map."""
    return json.dumps({"observed_time_ns": 1794990600 * 10**9, "rank": 0, "local_rank": 0,
                       "k8s.node.name": node, "gpu": "0", "pci_bus_id": "00000000:4E:00.0",
                       "process.pid": 1}) + "\n"


# What it shows; the files by path; the node of the GPU that is named, "" for none.
ROWS = [
    ("a rank map names it", {"gpu1/dmesg.log": DMESG, "rank_map.jsonl": place("gpu1")}, "gpu1"),
    ("… and is read first", {"gpu1/dmesg.log": DMESG, "a.jsonl": place("gpu1")}, "gpu1"),
    ("telemetry names it", {"gpu1/dmesg.log": DMESG, "t.jsonl": sample("gpu1")}, "gpu1"),
    ("a log names it", {"gpu1/dmesg.log": DMESG, "other/kern.log": syslog("gpu1")}, "gpu1"),
    ("nobody names it", {"gpu1/dmesg.log": DMESG, "t.jsonl": sample("gpu2")}, ""),
    ("a folder between", {"gpu1/logs/k/dmesg.log": DMESG, "t.jsonl": sample("gpu1")}, "gpu1"),
    ("the nearest", {"gpu2/gpu1/dmesg.log": DMESG,
                     "t.jsonl": sample("gpu1") + sample("gpu2")}, "gpu1"),
    ("its domain", {"gpu1.a.example.com/dmesg.log": DMESG, "t.jsonl": sample("gpu1")}, "gpu1"),
    ("upper case", {"GPU1/dmesg.log": DMESG, "t.jsonl": sample("gpu1")}, "gpu1"),
    ("the name of the file is no folder", {"x/gpu1": DMESG, "t.jsonl": sample("gpu1")}, ""),
    ("a part of a name is none", {"gpu1-old/dmesg.log": DMESG, "t.jsonl": sample("gpu1")}, ""),
    ("its lines say otherwise", {"gpu1/kern.log": syslog("gpu2"), "t.jsonl": sample("gpu1")},
     "gpu2"),
    ("CR LF", {"gpu1/dmesg.log": DMESG.replace("\n", "\r\n"), "t.jsonl": sample("gpu1")}, "gpu1"),
    ("two wait", {"gpu0/dmesg.log": QUIET, "gpu1/dmesg.log": DMESG, "gpu2/dmesg.log": QUIET,
                  "t.jsonl": sample("gpu0") + sample("gpu1") + sample("gpu2")}, "gpu1"),
]


def dump(waits):
    """Of a Flight Recorder, in a group of ranks 0 and 1: number 4 ended, number 5 may be under way."""
    at = 1794990713 * 10**9
    entries = [{"record_id": n, "pg_id": 0, "process_group": ["0", "default_pg"],
                "collective_seq_id": n, "p2p_seq_id": 0, "op_id": n, "is_p2p": False,
                "profiling_name": "nccl:all_reduce", "time_created_ns": at + n * 10**9,
                "input_sizes": [[8]], "output_sizes": [[8]], "input_dtypes": ["Float"],
                "output_dtypes": ["Float"], "timeout_ms": 600000, "retired": n == 4,
                "time_discovered_started_ns": at + n * 10**9,
                "time_discovered_completed_ns": at + n * 10**9 + 1000 if n == 4 else None,
                "state": "completed" if n == 4 else "started"} for n in ((4, 5) if waits else (4,))]
    return json.dumps({"version": "2.10", "entries": entries, "pg_config": {
        "0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}}}) + "\n"


def watchdog(node, rank, number, waits):
    """Two lines of another job's log, which says neither job; `number` was called last."""
    message = ("[rank%d]:[E1118 08:40:00.000000000 ProcessGroupNCCL.cpp:%d] [PG ID 0 PG GUID "
               "0(default_pg) Rank %d]  %s")
    said = ("failure detected by watchdog at work sequence id: %d PG status: last enqueued work: "
            "%d, last completed work: %d" % (number, number, number - 1) if waits else
            "Received a dump signal due to a collective timeout from  rank 0 and we will try our "
            "best to dump the debug info. Last enqueued NCCL work: %d, last completed NCCL work: "
            "%d." % (number, number))
    return json.dumps({"source": "app_log", "timestamp_ns": 1794990714 * 10**9, "rank": rank,
                       "k8s.node.name": node,
                       "message": message % (rank, 2395 if waits else 1750, rank, said)}) + "\n"


class Suite:
    def __init__(self, binary):
        self.binary = binary
        self.checks = Checks()

    def row(self, what, files, node):
        with tempfile.TemporaryDirectory() as folder:
            for path, text in files.items():
                whole = os.path.join(folder, path)
                os.makedirs(os.path.dirname(whole), exist_ok=True)
                with open(whole, "w", encoding="utf-8", newline="") as file:
                    file.write(text)
            paths = [os.path.join(folder, path) for path in files]
            done = run(self.binary, "analyze", "--quiet", "--output", "verdicts", *paths)
            stats = run(self.binary, "analyze", "--quiet", "--output", "verdicts", "--stats",
                        os.path.join(folder, "stats"), *paths)
            self.checks.equal(done.code, stats.code, what + ": exit code")
            with open(os.path.join(folder, "stats"), encoding="utf-8") as file:
                sources = json.load(file)["sources"]
        verdicts = [json.loads(line) for line in done.text().splitlines()]
        named = [entity["name"] for verdict in verdicts if verdict["pattern"] == "pcie_aer"
                 for entity in verdict["entities"] if entity["role"] == "culprit"]
        self.checks.equal([name.lower() for name in named],
                          [node + "/" + ADDRESS if node else ADDRESS], what)
        self.checks.equal({source["path"][len(folder) + 1:]: source["lines"]
                           for source in sources},
                          {path: text.count("\n") for path, text in files.items()},
                          what + ": each line is read once")

    def hangs(self, what, files, wanted):
        """`wanted`: of each hang who is blamed, by its number."""
        with tempfile.TemporaryDirectory() as folder:
            for path, text in files.items():
                whole = os.path.join(folder, path)
                os.makedirs(os.path.dirname(whole), exist_ok=True)
                with open(whole, "w", encoding="utf-8") as file:
                    file.write(text)
            done = run(self.binary, "analyze", "--quiet", "--output", "verdicts", folder)
        found = {}
        for verdict in (json.loads(line) for line in done.text().splitlines()):
            if verdict["pattern"] == "nccl_hang":
                number = verdict["headline"].split(" of default_pg")[0].split()[-1]
                found[number] = sorted(entity["kind"] + " " + entity["name"]
                                       for entity in verdict["entities"]
                                       if entity["role"] != "victim")
        self.checks.equal(found, wanted, what)

    def dumps(self):
        dumps = {"gpu1/dumps/trace_rank_0": dump(True), "gpu2/dumps/trace_rank_1": dump(False)}
        named = {"t.jsonl": sample("gpu1") + sample("gpu2")}
        self.hangs("a dump in a folder that nobody names", dumps, {"5": ["rank 1"]})
        self.hangs("a dump in the folder of a node", {**dumps, **named},
                   {"5": ["node gpu2", "rank 1"]})
        # The same ranks and the same group on other nodes: the dumps tell nothing of them.
        other = {"gpu3/ranks.jsonl": watchdog("gpu3", 0, 5, True),
                 "gpu4/ranks.jsonl": watchdog("gpu4", 1, 3, False)}
        self.hangs("lines of another job", other, {"5": ["node gpu4", "rank 1"]})
        other = {"gpu3/ranks.jsonl": watchdog("gpu3", 0, 9, True),
                 "gpu4/ranks.jsonl": watchdog("gpu4", 1, 8, False)}
        done = {"gpu1/dumps/trace_rank_0": dump(False), "gpu2/dumps/trace_rank_1": dump(False)}
        self.hangs("lines of another job, whose ranks dumped nothing", {**done, **named, **other},
                   {"9": ["node gpu4", "rank 1"]})

    def run(self):
        for row in ROWS:
            self.row(*row)
        self.dumps()
        return self.checks.finish()


if __name__ == "__main__":
    sys.exit(Suite(os.path.abspath(sys.argv[1])).run())
