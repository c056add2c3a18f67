# SPDX-License-Identifier: Apache-2.0
"""The table of bench/run: each promise, its figure, and that beside the peer, the last release and
the limit of the machine. Pure: from the JSON document to Markdown."""
import re

NOTHING = "–"
MARKS = {"figures": "<!-- figures -->", "kinds": "<!-- kinds -->", "logs": "<!-- logs -->"}
FASTER_FROM, SLOWER_FROM = 1.02, 0.98       # what is between is the same


class Row:
    """One promise. `aim` of at_most() or at_least(), with which `measured` is compared."""

    def __init__(self, name, figure, measured=None, aim=None, peer=NOTHING, key=None, limit=None):
        self.name, self.figure, self.measured, self.aim = name, figure, measured, aim
        self.peer, self.key, self.limit = peer, key, limit

    def met(self):
        if self.aim is None:
            return None
        operator, bound = self.aim[:2]
        return self.measured <= bound if operator == "<=" else self.measured >= bound

    def as_aim(self):
        operator, bound = self.aim[:2]
        return {"aim": self.aim[2], "measured": round(self.measured, 3),
                "at_most" if operator == "<=" else "at_least": bound, "met": self.met()}


def at_most(bound, text, show="%g"):
    """`show`: the bound in the table."""
    return "<=", bound, text, show


def at_least(bound, text, show="%g"):
    return ">=", bound, text, show


def millions(rate):
    return "%.2f M events/s" % (rate / 1e6)


def share(part, whole, what):
    """How much of the limit is reached, as text."""
    return "%.0f %% of %s" % (100 * part / whole, what) if whole else NOTHING


# -- rows, by part of the document ----------------------------------------------------------------


def file_rows(report):
    if "programs" not in report:
        return []
    ratios, ours = report["ratios"], report["programs"]["culprit"]
    figure = "%.3f s, %s" % (ours["cpu_s"], millions(ours["events_per_s"]))
    limit = report.get("limits")
    of_read = share(limit["read_s"], ours["cpu_s"], "`read()` alone") if limit else None
    rows = [
        Row("file to summary, one core", figure, ratios["culprit/grep"],
            at_most(0.8, "file to summary, in the time of grep -F", "%g of `grep -F`"),
            "%.2f of `grep -F`'s time" % ratios["culprit/grep"], "file", of_read),
        Row("the same, beside a Python loop", "", ratios["python_loop/culprit"],
            at_least(6.0, "file to summary, times as fast as a Python loop", "%g ×"),
            "%.1f × a loop over %s" % (ratios["python_loop/culprit"],
                                       report.get("python_decoder", "json").split()[0])),
        Row("the same, beside copying", "", ratios["culprit/cat"],
            at_most(2.0, "file to summary, in the time of cat", "%g of `cat`"),
            "%.2f of `cat`'s time" % ratios["culprit/cat"]),
    ]
    if "culprit/stormlog" in ratios:
        rows.append(Row("the same, beside stormlog", "", ratios["culprit/stormlog"],
                        at_least(100.0, "events a second, times stormlog's", "%g ×"),
                        "%.0f × stormlog" % ratios["culprit/stormlog"]))
    cores = report["all_cores"]
    if cores["threads"] > 1:
        rows.append(Row(
            "file to summary, %d cores" % cores["threads"],
            "%.3f s, %.2f × one core" % (cores["wall_s_all"], cores["times"]), cores["times"],
            at_least(1.8, "file to summary on two cores, times one core's speed", "%g ×")
            if cores["threads"] == 2 else None, key="all_cores",
            limit=share(cores["times"], cores["threads"], "%d ×" % cores["threads"])))
    return rows


def records_per_second(row):
    """Of a kind: a dump counts as its entries, which are what compares with a line of a log."""
    return row["events_per_second"] * row.get("entries_per_event", 1)


def slowest_kind_s(kind):
    """Seconds a record of that kind, from the rows of a program: to compare two of them, of which
    the earlier may not say how many entries an event has."""
    return lambda rows: 1 / next(row["events_per_second"] for row in rows if row["kind"] == kind)


def stage_rows(report):
    if "stages" not in report:
        return []
    rows, limit = report["stages"], report.get("limits")
    decode = next((row for row in rows if row["ranks"] == 64), rows[0])["decode_ns_per_event"]
    touched = None
    if limit:
        touch_ns = limit["memory_s"] / limit["bytes"] * report["input"]["bytes_per_event"] * 1e9
        touched = share(touch_ns, decode, "memory's bandwidth")
    growth = report["growth"]
    found = [
        Row("decoder", "%.0f ns an event" % decode, report["decode"]["ratio"],
            at_least(30.0, "decoding, times as fast as jansson", "%g × jansson"),
            "%.0f × jansson" % report["decode"]["ratio"], "decoder", touched),
        Row("cost of an event at %s ranks" % "{:,}".format(rows[-1]["ranks"]),
            "%.2f × that at %d" % (growth, rows[0]["ranks"]), growth,
            at_most(1.2, "cost of an event at the most ranks, against the fewest", "%g ×"),
            key="growth"),
    ]
    live = [row for row in report["allocations"] if row["pipeline"] == "live"]
    kept = [row for row in report["allocations"] if row["pipeline"] == "all"]
    most = max(row["allocations_per_event"] for row in live)
    found.append(Row("allocations an event, live", "%g" % most, most,
                     at_most(0.0, "allocations an event in a live pipeline, warmed up")))
    of_allowed = max(row["peak_bytes"] / row["peak_bytes_allowed"] for row in kept)
    found.append(Row("heap of a kept sample", "%.0f bytes" % max(
        row["peak_bytes_per_kept_sample"] for row in kept), of_allowed,
        at_most(1.0, "peak heap, of what 64 B a kept sample and 8 MiB allow",
                "%g of 64 bytes each and 8 MiB"),
        limit=share(48, max(row["peak_bytes_per_kept_sample"] for row in kept),
                    "48 bytes, a row")))
    slowest = min(report["kinds"], key=records_per_second)
    rate = records_per_second(slowest)
    found.append(Row("slowest kind of record (%s)" % slowest["kind"],
                     "%d k events/s" % (rate // 1000), rate,
                     at_least(1e5, "events a second of the slowest kind, from bytes to detectors",
                              "%g M events/s"),
                     key="slowest_kind"))
    return found


def span_rows(report):
    rows = report.get("spans", {}).get("rows", [])
    if not rows:
        return []
    dearest = max(rows, key=lambda row: row["ns_per_event"])
    most = max(rows, key=lambda row: row["spans"])
    peers = [row["dask/culprit"] for row in rows if "dask/culprit" in row]
    merged = most.get("merge_all_dask/culprit")
    return [
        Row("a line of spans, decoded and applied", "%.0f ns" % dearest["ns_per_event"],
            dearest["ns_per_event"], at_most(150.0, "a line of spans at most, ns", "%g ns"),
            "%.1f × dask" % min(peers) if peers else NOTHING, "span_line"),
        Row("`merge_all` of %s spans" % "{:,}".format(most["spans"]),
            "%.2f ms" % (most["merge_all_us"] / 1000), merged,
            at_least(100.0, "merge_all of the most spans, times as fast as dask", "%g × dask")
            if merged is not None else None,
            "%.0f × dask" % merged if merged is not None else NOTHING, "merge_all"),
    ]


def flight_rows(report):
    flight = report.get("flight")
    if not flight:
        return []
    return [Row("%s Flight Recorder dumps of %s entries" % tuple(
        "{:,}".format(flight[key]) for key in ("dumps", "entries")), "%.2f s" % flight["seconds"],
        flight["seconds"], at_most(3.0, "Flight Recorder dumps, s", "%g s"), key="flight")]


def live_rows(report):
    live = report.get("live")
    if not live:
        return []
    discard = (report.get("limits") or {}).get("http_events_per_s")
    found = []
    for row in live["http"]:
        # The generator takes its share of the same cores: what one core of the server takes is
        # told by its CPU time.
        bound = 1.2e6 if row["ack"] == "accepted" else 4e5
        a_core = 1e6 / row["culprit_cpu_s_per_million"]
        found.append(Row(
            "HTTP, `ack: %s`, %d connection%s" % (row["ack"], row["connections"],
                                                  "" if row["connections"] == 1 else "s"),
            "%s, %.2f M a core's second" % (millions(row["events_per_s"]), a_core / 1e6), a_core,
            at_least(bound, "HTTP, ack %s, %d connections, events a second of one core's time"
                     % (row["ack"], row["connections"]), "%g M a core's second"),
            key="http_%s_%d" % (row["ack"], row["connections"]),
            limit=share(row["events_per_s"], discard, "a server that discards")))
    backlog = live.get("backlog")
    if backlog:
        found.append(Row("following a file, %s events that were there, %d threads"
                         % ("{:,}".format(backlog["events"]), backlog["threads"]),
                         "%s, %.2f × one thread's" % (millions(backlog["events_per_s"]),
                                                      backlog["times_one_thread"]), key="backlog"))
    many = [row for row in live["verdict_latency"] if row["ranks"] >= 10000]
    if many:
        worst = max(row["p99_ms"] for row in many)
        found.append(Row("verdict behind its last event, p99, %s ranks"
                         % "{:,}".format(many[0]["ranks"]), "%.1f ms" % worst, worst,
                         at_most(5.0, "verdict latency p99 of the most ranks, ms", "%g ms"),
                         key="latency"))
    start, empty = live["start"]["median_ms"], (report.get("limits") or {}).get("exec_ms")
    found.append(Row("start to listening, store and HTTP", "%.1f ms" % start, start,
                     at_most(8.0, "start to listening, median ms", "%g ms"), key="start",
                     limit=share(empty, start, "an empty program") if empty else None))
    return found


def stream_rows(ratios):
    share_of = ratios.get("reads from the assignment on/librdkafka")
    if share_of is None:
        return []
    return [Row("the same, from the assignment to the last message", "", share_of, None,
                "%.2f of librdkafka's rate" % share_of)]


def kafka_rows(report):
    ratios = report.get("kafka", {}).get("ratios")
    if not ratios:
        return []
    programs = report["kafka"]["programs"]
    rate = programs["culprit_reads"]["events_per_s"]
    live = programs["culprit_writes_live"]["events_per_s"]
    return [
        Row("Kafka, reading a topic", millions(rate), rate,
            at_least(1e6, "reading a topic, events a second", "%g M events/s"), key="kafka_reads",
            limit=share(ratios["reads/librdkafka"], 1, "librdkafka")),
        # kcat writes what it reads; kafka_consume only counts.
        Row("the same, beside librdkafka alone", "", ratios["reads/librdkafka"],
            at_least(0.9, "reading a topic, of librdkafka's rate", "%g of librdkafka"),
            "%.2f of librdkafka's rate" % ratios["reads/librdkafka"]),
        *stream_rows(ratios),
        Row("Kafka, forwarding live", millions(live), ratios["writes live/kcat"],
            at_least(0.7, "forwarding to a topic, of kcat's rate", "%g of kcat"),
            "%.2f of kcat's rate" % ratios["writes live/kcat"], "kafka_forwards"),
    ]


def rows(report):
    return (file_rows(report) + stage_rows(report) + span_rows(report) + flight_rows(report) +
            live_rows(report) + kafka_rows(report))


def aims(report):
    """Those of the rows, as they stand in the document."""
    return [row.as_aim() for row in rows(report) if row.aim is not None]


# -- Markdown -------------------------------------------------------------------------------------


def times(faster):
    """How much faster than before, as text."""
    if faster is None:
        return NOTHING
    if SLOWER_FROM < faster < FASTER_FROM:
        return "the same (%.2f ×)" % faster
    return "%.2f × as fast" % faster


def bound_text(row):
    if row.aim is None:
        return NOTHING
    operator, bound, _, show = row.aim
    value = show % (bound if bound < 1e5 else bound / 1e6)
    return "%s %s: %s" % ("≤" if operator == "<=" else "≥", value,
                          "met" if row.met() else "**not met**")


def short(value):
    return "%.2f M" % (value / 1e6) if value >= 1e5 else "%.3g" % value


def release_name(against):
    if not against or not against.get("name"):
        return "the last release"
    name = "`%s`" % against["name"]
    return name if against.get("commit") in (None, against["name"]) else "%s (%s)" % (
        name, against["commit"])


def markdown(report):
    against = report.get("against") or {}
    faster = against.get("faster", {})
    lines = ["| | measured | beside the peer | beside %s | of the limit | aim |"
             % release_name(against), "|---" * 6 + "|"]
    for row in rows(report):
        lines.append("| %s |" % " | ".join(
            (row.name, row.figure or NOTHING, row.peer, times(faster.get(row.key)),
             row.limit or NOTHING, bound_text(row))))
    text = "\n".join(lines) + "\n"
    others = further(report)
    if others:
        text += "\n| further aims | measured | aim |\n|---|---|---|\n" + "".join(
            "| %s | %s | %s %s: %s |\n" % (
                one["aim"], short(one["measured"]), "≥" if "at_least" in one else "≤",
                short(one.get("at_least", one.get("at_most"))),
                "met" if one["met"] else "**not met**") for one in others)
    machine = report["machine"]
    text += "\nOne run: %d cores of a %s, %s." % (machine["cores"], machine["cpu"],
                                                  machine["system"])
    if "input" in report:
        text += " %s events of %d bytes." % ("{:,}".format(report["input"]["events"]),
                                             report["input"]["bytes_per_event"])
    if against.get("skipped"):
        text += " Not beside an earlier release: %s." % against["skipped"]
    if against.get("left_out"):
        text += " Left out of the comparison: %s." % "; ".join(against["left_out"])
    return text + "\n"


def further(report):
    """Aims that no row has: those that a part of the measuring sets itself."""
    own = {one["aim"] for one in aims(report)}
    every = (report.get("aims", []) + report.get("live", {}).get("aims", []) +
             report.get("logs", {}).get("aims", []))
    return list({one["aim"]: one for one in every if one["aim"] not in own}.values())


def kinds_markdown(report):
    lines = ["| kind | thousand events a second | bytes an event | MB/s | ns in the decoder "
             "| ns in the detectors | ms an evaluation | thousand a second, one every 10 ms |",
             "|---" * 8 + "|"]
    for row in report["kinds"]:
        entries = row.get("entries_per_event", 1)
        lines.append("| %s%s | %d | %d | %d | %d | %d | %.1f | %d |" % (
            row["kind"], ", whole, %d entries each" % entries if entries > 1 else "",
            row["events_per_second"] // 1000, row["bytes_per_event"],
            row["megabytes_per_second"], row["decode_ns_per_event"],
            row["detectors_ns_per_event"], row["evaluation_ms"],
            row["at_100_a_second"]["events_per_second"] // 1000))
    return "\n".join(lines) + "\n"


def logs_markdown(report):
    logs = report["logs"]
    lines = ["| log | lines | MB | s | MB/s | beside `grep -cE` | beside ripgrep |",
             "|---" * 7 + "|"]
    for row in logs["rows"]:
        beside = ["%.2f of its time" % row["culprit/" + peer] if "culprit/" + peer in row
                  else logs["ripgrep"] for peer in ("grep", "ripgrep")]
        lines.append("| %s | %s | %.0f | %.2f | %d | %s | %s |" % (
            row["log"], "{:,}".format(row["lines"]), row["bytes"] / 1e6, row["cpu_s"],
            row["mb_per_s"], *beside))
    text = "\n".join(lines) + "\n"
    if logs["all_cores"]:
        text += "\nThe training log on %d threads: %s.\n" % (
            logs["all_cores"][0]["threads"], ", ".join(
                "%.2f × one thread's rate %s" % (
                    row["times"], "as one file" if row["files"] == 1
                    else "in %d files" % row["files"]) for row in logs["all_cores"]))
    return text


def page(text, report):
    """The page with the tables of this run between its marks; a part that was not measured keeps
    what stands there."""
    parts = {"figures": markdown(report)} if rows(report) else {}
    if "kinds" in report:
        parts["kinds"] = kinds_markdown(report)
    if "logs" in report:
        parts["logs"] = logs_markdown(report)
    for name, part in parts.items():
        begin, end = MARKS[name], MARKS[name].replace("<!-- ", "<!-- /")
        pattern = re.compile(re.escape(begin) + r"\n.*?" + re.escape(end), re.S)
        if len(pattern.findall(text)) != 1:
            raise ValueError("the page needs %s and %s, once" % (begin, end))
        text = pattern.sub(lambda _, part=part: "%s\n%s%s" % (begin, part, end), text)
    return text
