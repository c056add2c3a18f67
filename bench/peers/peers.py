#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast is culprit beside what people would use instead?

    bench/peers/run [--quick] [--events N] [--rounds N] [--only NAME,…] [--json FILE]
    bench/peers/run --tables FILE

Sets up the programs (build/peers; kept for the next time), makes one file of N events in memory
(/dev/shm), and lets culprit, a Python loop over json and over orjson, jq, and the OpenTelemetry
Collector read it in turn, round after round: each keeps one job's events and writes them as JSON
lines, then the same without writing. stormlog's cross-rank analysis runs on a shorter file beside
culprit's. Then the same events come by HTTP to culprit and to the Collector. What each program
left is counted. What cannot be set up is left out, and the reason said.

Prints tables in Markdown. --json keeps all figures; --tables prints the tables of such a file.
"""
import argparse
import datetime
import json
import os
import platform
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
import files  # noqa: E402
import ingest  # noqa: E402
import install  # noqa: E402
import measure  # noqa: E402
import report  # noqa: E402

PEERS = ("culprit", "python", "orjson", "stormlog", "jq", "collector")
QUICK = {"events": 30000, "rounds": 2, "analysis_events": 2000, "http_events": 40000}
USUAL = {"events": 500000, "rounds": 5, "analysis_events": 50000, "http_events": 800000}


def say(text):
    print(text, file=sys.stderr, flush=True)


def cpu_name():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def system_name():
    try:
        name = platform.freedesktop_os_release()["PRETTY_NAME"]
    except OSError:
        name = platform.system()
    return "%s, kernel %s" % (name, ".".join(platform.release().split(".")[:2]))


def options_of(arguments):
    parser = argparse.ArgumentParser(prog="bench/peers/run", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true",
                        help="little of everything: to see that it works, not how fast it is")
    parser.add_argument("--events", type=int, help="of the file (500000)")
    parser.add_argument("--rounds", type=int, help="5")
    parser.add_argument("--analysis-events", type=int, help="of stormlog's file (50000)")
    parser.add_argument("--http-events", type=int,
                        help="of a run over HTTP; an eighth of them for the Collector (800000)")
    parser.add_argument("--only", default=",".join(PEERS), metavar="NAME,…",
                        help="these beside culprit: " + ", ".join(PEERS[1:]))
    parser.add_argument("--no-files", action="store_true", help="HTTP only")
    parser.add_argument("--no-http", action="store_true", help="files only")
    parser.add_argument("--folder", default="/dev/shm", help="where the files are made")
    parser.add_argument("--work", default=os.path.join(ROOT, "build", "peers"),
                        help="where the programs are set up (build/peers)")
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "bench"),
                        help="where culprit is built (build/bench)")
    parser.add_argument("--json", metavar="FILE", help="keep all figures there")
    parser.add_argument("--tables", metavar="FILE",
                        help="measure nothing, print the tables of this file")
    options = parser.parse_args(arguments)
    for name, value in (QUICK if options.quick else USUAL).items():
        if getattr(options, name) is None:
            setattr(options, name, value)
        if getattr(options, name) < 1:
            parser.error("--%s is %d; it must be at least 1"
                         % (name.replace("_", "-"), getattr(options, name)))
    unknown = set(options.only.split(",")) - set(PEERS)
    if unknown:
        parser.error("--only: there is no %s; %s are" % (", ".join(sorted(unknown)),
                                                         ", ".join(PEERS)))
    return options


def run(options, folder):
    wanted = [name for name in PEERS if name == "culprit" or name in options.only.split(",")]
    peers, left_out = install.install(options.work, os.path.join(options.build, "culprit"), wanted,
                                      say)
    if "culprit" not in peers:
        raise SystemExit("culprit itself: " + left_out["culprit"])
    cores = sorted(os.sched_getaffinity(0))
    result = {
        "machine": {"cpu": cpu_name(), "cores": len(cores), "system": system_name()},
        "begun": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "load_before": round(os.getloadavg()[0], 1),
        "rounds": options.rounds,
        "peers": {name: {"version": one.version, "how": one.how} for name, one in peers.items()},
        "left_out": left_out}
    result["does"] = {
        "files": {name: text for name, text in files.DOES.items() if files.NEEDS[name] in peers},
        "ingest": {name: text for name, text in ingest.DOES.items() if name.lower() in peers}}
    if not options.no_files:
        part = files.Files(peers, os.path.join(options.build, "bench", "culprit_generate"), folder,
                           cores[-1], say)
        result["files"] = part.measure(options.events, options.rounds)
        result["analysis"] = part.analysis(options.analysis_events, options.rounds)
        left_out.update(part.failed)
    if not options.no_http:
        part = ingest.Ingest(peers, options.build, folder, (cores[0], cores[-1]), say)
        result["ingest"] = part.measure(options.http_events, options.rounds)
        left_out.update(part.failed)
    result["load_after"] = round(os.getloadavg()[0], 1)
    return result


def main(arguments):
    options = options_of(arguments)
    if options.tables:
        with open(options.tables, encoding="utf-8") as file:
            print(report.page(json.load(file)), end="")
        return 0
    folder = tempfile.mkdtemp(prefix="culprit-peers-", dir=options.folder)
    try:
        result = run(options, folder)
    except measure.Failed as error:
        say("bench/peers: %s" % error)
        return 1
    finally:
        shutil.rmtree(folder)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            file.write(json.dumps(result, indent=1) + "\n")
    print(report.page(result), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
