# SPDX-License-Identifier: Apache-2.0
"""Tables, in Markdown, of what was measured.

Ratios are taken round by round, of programs that ran one after the other, and given as median
(lowest to highest).
"""
import statistics

MIB = 1 << 20


def number(value):
    """Three digits that say something, without an exponent."""
    if value == 0:
        return "0"
    if value >= 100:
        return "{:,.0f}".format(value)
    if value >= 10:
        return "%.1f" % value
    if value >= 1:
        return "%.2f" % value
    return "%.3f" % value


def spread(values, unit=""):
    """Median (lowest to highest)."""
    text = number(statistics.median(values)) + unit
    if len(values) > 1:
        text += " (%s to %s)" % (number(min(values)), number(max(values)))
    return text


def column(rows, key):
    return [row[key] for row in rows]


def ratios(rows, base, key):
    """Round by round; where there are fewer rounds of one, those that both have."""
    return [mine[key] / theirs[key] for mine, theirs in zip(rows, base) if theirs[key] > 0]


def one_cell(text):
    return text.replace("\n", " ").replace("|", "/")


def table(head, rows):
    lines = ["| %s |" % " | ".join(cells) for cells in [head] + rows]
    return "\n".join([lines[0], "|" + "---|" * len(head)] + lines[1:]) + "\n"


def mebibytes(rows):
    return number(max(column(rows, "peak_rss_bytes")) / MIB)


def job_table(job, events):
    base = job["culprit"]
    rows = []
    for name, own in job.items():
        cpu_s = statistics.median(column(own, "cpu_s"))
        rows.append([name, spread(column(own, "cpu_s")), number(events / cpu_s / 1000),
                     spread(ratios(own, base, "cpu_s")), spread(ratios(own, base, "wall_s")),
                     mebibytes(own), number(max(column(own, "written_bytes")) / MIB)])
    return table(["program", "CPU s", "thousand events a CPU second", "CPU time, times culprit's",
                  "wall time, times culprit's", "peak RSS MiB", "written MiB"], rows)


def analysis_table(found):
    base, events = found["rounds"]["culprit"], found["input"]["events"]
    rows = []
    for name, own in found["rounds"].items():
        cpu_s = statistics.median(column(own, "cpu_s"))
        rows.append([name, spread(column(own, "cpu_s")), number(events / cpu_s / 1000),
                     spread(ratios(own, base, "cpu_s")), spread(ratios(own, base, "wall_s")),
                     mebibytes(own)])
    return table(["program", "CPU s", "thousand events a CPU second", "CPU time, times culprit's",
                  "wall time, times culprit's", "peak RSS MiB"], rows)


def ingest_table(found):
    base = {(one["form"], one["connections"]): one["rounds"] for one in found
            if one["program"] == "culprit"}
    rows = []
    for one in found:
        own, theirs = one["rounds"], base[one["form"], one["connections"]]
        rows.append([one["program"], one["form"], str(one["connections"]),
                     number(statistics.median(column(own, "events_per_s")) / 1000),
                     spread(column(own, "cpu_s_per_million")),
                     spread(ratios(own, theirs, "cpu_s_per_million")), mebibytes(own),
                     number(own[0]["bytes_per_event"])])
    return table(["program", "body", "connections", "thousand events a second",
                  "CPU s a million events", "CPU time, times culprit's", "peak RSS MiB",
                  "bytes an event"], rows)


def peers_table(result):
    rows = [[name, one["version"], one["how"]] for name, one in result["peers"].items()]
    rows += [[name, "-", "left out: " + one_cell(reason)]
             for name, reason in result["left_out"].items()]
    return table(["program", "version", "how it came here"], rows)


def machine_line(result):
    machine = result["machine"]
    return ("%s, %d cores, %s. %d rounds; load average %s before and %s after.\n"
            % (machine["cpu"], machine["cores"], machine["system"], result["rounds"],
               result["load_before"], result["load_after"]))


def does_table(does):
    return table(["program", "what it does here"], [[name, text] for name, text in does.items()])


def input_line(found, more=""):
    return "%s events, %s MiB%s.\n" % (number(found["events"]), number(found["bytes"] / MIB), more)


def tables(result):
    """name -> table, of what was measured."""
    found = {"machine": machine_line(result), "peers": peers_table(result)}
    files = result.get("files")
    if files:
        events, kept = files["input"]["events"], files["input"]["kept"]
        found["does"] = does_table(result["does"]["files"])
        found["written"] = "\n".join([
            input_line(files["input"], ", %s of them kept" % number(kept)),
            job_table(files["written"], events)])
        found["discarded"] = job_table(files["discarded"], events)
    if result.get("analysis"):
        found["analysis"] = "\n".join([input_line(result["analysis"]["input"]),
                                       analysis_table(result["analysis"])])
    if result.get("ingest"):
        found["ingest"] = "\n".join([does_table(result["does"]["ingest"]),
                                     ingest_table(result["ingest"])])
    return found


TITLES = {
    "machine": "Machine",
    "peers": "Programs",
    "does": "What each does with a file",
    "written": "File: kept events written (by culprit: verdicts)",
    "discarded": "File: kept events not written",
    "analysis": "File: cross-rank analysis",
    "ingest": "HTTP",
}


def page(result):
    return "\n".join("### %s\n\n%s" % (TITLES[name], text)
                     for name, text in tables(result).items())
