#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A gateway tells of a fault although those who told of other things say nothing more.

    run_prompt.py BINARY

A culprit of a node posts a line of the kernel to a gateway that also watches an API server. With an
idle_timeout of an hour a verdict comes only when each sender, and each watch that was begun by a
streamed list, is known to have nothing more to say.
"""
import json
import os
import subprocess
import sys
import tempfile
from datetime import datetime, timezone

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, os.path.join(HERE, "..", "kubernetes"))
from checks import Checks  # noqa: E402
from ports import free_port  # noqa: E402
from process import environment  # noqa: E402
from run_kubernetes import kubeconfig, node, pod  # noqa: E402
from running import PATIENCE_S, wait_for  # noqa: E402
from stand_in import StandIn  # noqa: E402

LOST = "%s+00:00 node-0 kernel: NVRM: Xid (PCI:0000:07:00): 79, GPU has fallen off the bus.\n"


def start(binary, folder, document):
    """`culprit run`, which has begun when this returns."""
    config, log = os.path.join(folder, "culprit.yaml"), os.path.join(folder, "log")
    document["service"]["telemetry"] = {"logs": {"encoding": "json"}}
    with open(config, "w", encoding="utf-8") as file:
        json.dump(document, file)
    with open(log, "wb") as out:
        process = subprocess.Popen([binary, "run", "--config", config], stdin=subprocess.DEVNULL,
                                   stdout=out, stderr=out, env=environment())
    wait_for(lambda: b"C1001" in content(log), process)
    return process


def content(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""


def gateway(folder, port, api):
    with open(os.path.join(folder, "token"), "w", encoding="ascii") as file:
        file.write(api.token)
    return {"receivers": {"http": {"endpoint": "127.0.0.1:%d" % port},
                          "kubernetes": {"kubeconfig": kubeconfig(folder, api.url, tokenFile="token")}},
            "exporters": {"json": {"path": os.path.join(folder, "verdicts.jsonl")}},
            "service": {"pipelines": {"jobs": {
                "receivers": ["http", "kubernetes"], "preset": "all", "exporters": ["json"],
                "idle_timeout": "1h"}}}}


def sender(folder, port):
    return {"receivers": {"file": {"include": [os.path.join(folder, "*.kern.log")]}},
            "exporters": {"http": {"endpoint": "http://127.0.0.1:%d" % port}},
            "service": {"pipelines": {"forward": {"receivers": ["file"], "exporters": ["http"]}}}}


def main(binary):
    checks, port, processes = Checks(), free_port(), []
    with tempfile.TemporaryDirectory() as folder, StandIn() as api:
        places = [os.path.join(folder, name) for name in ("gateway", "node")]
        for place in places:
            os.makedirs(place)
        api.put("nodes", "node-0", "", **node())
        api.put("pods", "pod-0", **pod())
        try:
            processes.append(start(binary, places[0], gateway(places[0], port, api)))
            processes.append(start(binary, places[1], sender(places[1], port)))
            now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")
            with open(os.path.join(places[1], "a.kern.log"), "w", encoding="utf-8") as file:
                file.write(LOST % now)
            verdicts = os.path.join(places[0], "verdicts.jsonl")
            checks.check(wait_for(lambda: b'"gpu_fault"' in content(verdicts)), lambda: "no verdict: %s" % [
                content(os.path.join(place, "log"))[-1000:] for place in places])
        finally:
            for process in processes:
                process.terminate()
            codes = [process.wait(PATIENCE_S) for process in processes]
        checks.equal(codes, [0, 0], "exit codes")
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
