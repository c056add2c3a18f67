#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What stormlog's cross-rank analysis answers, written a second time and in another language.

    first_cause.py [--timeline] PATH...

Each PATH is a file with one telemetry record a line, or a folder whose segment-*.jsonl files are
read in the order of their paths' bytes. All records are one input, in that order. Prints the
summary, or with --timeline the merged timeline, byte for byte as the package does.

The tests hold culprit against this program where no recorded answer exists. It favours being easy
to check over speed, and it expects records that the package would accept: a record that is none is
left out, and nothing is said about it.
"""
import json
import os
import sys
import uuid
from collections import Counter, defaultdict

MIB = 1 << 20
COLUMNS = ["rank", "timestamp_ns", "aligned_timestamp_ns", "device_used_bytes",
           "allocator_reserved_bytes", "allocator_allocated_bytes", "allocator_change_bytes"]
BLANK = " \t\n\x0b\x0c\r\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    chr(c) for c in range(0x2000, 0x200b))


class Event:
    """One record in the common form, whatever schema it came in."""

    def __init__(self, time, kind, session, rank, world_size, job, host, pid, interval_ms,
                 used, reserved, allocated, change, metadata):
        self.time, self.kind, self.session = time, kind, session
        self.rank, self.world_size, self.job = rank, world_size, job
        self.host, self.pid, self.interval_ms = host, pid, interval_ms
        self.used, self.reserved = used, reserved
        self.allocated, self.change = allocated, change
        self.metadata = metadata

    def is_sample(self):
        return self.kind.casefold() == "sample"


# -- reading ------------------------------------------------------------------------------------

def is_text(value):
    return isinstance(value, str) and value.strip(BLANK) != ""


def session_of(record, metadata):
    for place in (record, metadata):
        if is_text(place.get("session_id")):
            return place["session_id"]
    moment = record.get("timestamp_ns", record.get("timestamp"))
    parts = (str(moment), str(record.get("host", "unknown")), str(record.get("pid", -1)))
    return "legacy-" + str(uuid.uuid5(uuid.NAMESPACE_URL, "::".join(parts)))


def first_given(record, *keys):
    for key in keys:
        if record.get(key) is not None:
            return record[key]
    return None


def event_of_legacy(record):
    metadata = dict(record.get("metadata") or {})
    for key, value in record.items():
        if key.startswith("metadata_"):
            metadata[key[len("metadata_"):]] = value

    def identity(key, default):
        value = first_given(record, key)
        value = first_given(metadata, key) if value is None else value
        return default if value is None else value

    time = record.get("timestamp_ns")
    if time is None:
        time = int(float(record["timestamp"]) * 1e9)
    allocated = first_given(record, "allocator_allocated_bytes", "memory_allocated")
    if allocated is None and record.get("memory_mb") is not None:
        allocated = int(record["memory_mb"] * MIB)
    if allocated is None:
        allocated = first_given(record, "device_used_bytes") or 0
    reserved = first_given(record, "allocator_reserved_bytes", "memory_reserved")
    change = first_given(record, "allocator_change_bytes", "memory_change")
    used = first_given(record, "device_used_bytes")
    host = first_given(record, "host")
    host = first_given(metadata, "host") if host is None else host
    pid = first_given(record, "pid")
    pid = first_given(metadata, "pid") if pid is None else pid
    return Event(
        time=time, kind=record.get("event_type", record.get("type", "sample")),
        session=session_of(record, metadata), rank=identity("rank", 0),
        world_size=identity("world_size", 1), job=identity("job_id", None),
        host="unknown" if host is None else host, pid=-1 if pid is None else pid,
        interval_ms=record.get("sampling_interval_ms", 0),
        used=allocated if used is None else used,
        reserved=allocated if reserved is None else reserved, allocated=allocated,
        change=0 if change is None else change, metadata=metadata)


def event_of(record):
    if "schema_version" not in record:
        return event_of_legacy(record)
    return Event(
        time=record["timestamp_ns"], kind=record["event_type"],
        session=session_of(record, record["metadata"]), rank=record.get("rank", 0),
        world_size=record.get("world_size", 1), job=record.get("job_id"), host=record["host"],
        pid=record["pid"], interval_ms=record["sampling_interval_ms"],
        used=record["device_used_bytes"], reserved=record["allocator_reserved_bytes"],
        allocated=record["allocator_allocated_bytes"], change=record["allocator_change_bytes"],
        metadata=record["metadata"])


def events_of_bytes(data):
    events = []
    for line in data.split(b"\n"):
        if line.strip(b" \t\r") == b"":
            continue
        try:
            events.append(event_of(json.loads(line.decode("utf-8"))))
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
    return events


def files_of(paths):
    files = []
    for path in paths:
        if not os.path.isdir(path):
            files.append(path)
            continue
        for folder, _, names in os.walk(path):
            files += [os.path.join(folder, n) for n in names
                      if n.startswith("segment-") and n.endswith(".jsonl")]
    return sorted(files, key=os.fsencode)


def events_of_files(paths):
    events = []
    for path in files_of(paths):
        with open(path, "rb") as file:
            events += events_of_bytes(file.read())
    return events


# -- phases -------------------------------------------------------------------------------------

class Span:
    def __init__(self, start, end, path, sequence, scope_id, thread_id, thread_name):
        self.start, self.end = start, end
        self.depth, self.label = len(path), " / ".join(path)
        self.sequence, self.scope_id = sequence, scope_id
        self.thread_id, self.thread_name = thread_id, thread_name

    def order(self):
        return (self.sequence, self.scope_id)


def boundary_of(event):
    """The scope of a phase boundary, or None when the replay passes over it."""
    actions = {"phase_enter": "enter", "phase_exit": "exit"}
    scope = event.metadata.get("phase_scope")
    if event.kind not in actions or not isinstance(scope, dict):
        return None
    path = scope.get("path")
    if scope.get("action") != actions[event.kind] or not is_text(scope.get("name")):
        return None
    if not isinstance(path, list):
        return None
    path = [part for part in path if isinstance(part, str) and part != ""]
    parent = scope.get("parent_scope_id")
    fits = (path and isinstance(scope.get("scope_id"), str)
            and (parent is None or isinstance(parent, str))
            and isinstance(scope.get("thread_id"), int) and isinstance(scope.get("sequence"), int)
            and isinstance(scope.get("thread_name"), str))
    return dict(scope, path=path) if fits else None


def spans_of(events):
    """Spans of each (session, rank), by start and end."""
    boundaries = []
    newest = {}
    for event in events:
        key = (event.session, event.rank)
        newest[key] = max(newest.get(key, event.time), event.time)
        scope = boundary_of(event)
        if scope is not None:
            boundaries.append((event, scope))
    boundaries.sort(key=lambda b: (b[0].session, b[0].rank, b[0].time, b[1]["sequence"],
                                   b[1]["scope_id"]))
    spans = defaultdict(list)
    open_scopes = {}
    for event, scope in boundaries:
        key = (event.session, event.rank)
        stack_key = key + (scope["thread_id"],)
        stack = open_scopes.setdefault(stack_key, [])
        if scope["action"] == "enter":
            stack.append((event, scope))
        elif stack and stack[-1][1]["scope_id"] == scope["scope_id"]:
            entered, opened = stack.pop()
            spans[key].append(Span(entered.time, event.time, opened["path"], opened["sequence"],
                                   opened["scope_id"], opened["thread_id"], scope["thread_name"]))
            if not stack:
                del open_scopes[stack_key]
    for (session, rank, _), stack in open_scopes.items():
        for entered, opened in stack:
            spans[session, rank].append(Span(
                entered.time, newest[session, rank], opened["path"], opened["sequence"],
                opened["scope_id"], opened["thread_id"], opened["thread_name"]))
    for found in spans.values():
        found.sort(key=lambda span: (span.start, span.end))
    return spans


def most_recent(spans):
    best = spans[0]
    for span in spans[1:]:
        if span.order() > best.order():
            best = span
    return best


def phase_at(spans, time):
    active = [span for span in spans if span.start <= time <= span.end]
    if not active:
        return None
    threads = {}
    for span in active:
        threads.setdefault(span.thread_id, []).append(span)
    matches, unsure = [], set()
    for own in threads.values():
        depth = max(span.depth for span in own)
        deepest = [span for span in own if span.depth == depth]
        labels = {span.label for span in deepest}
        if len(labels) > 1:
            unsure |= labels
        else:
            matches.append(most_recent(deepest))
    if len(matches) == 1 and not unsure:
        match = matches[0]
        return {"phase_resolution": "unique", "phase_paths": [match.label],
                "phase_source": "heuristic", "phase_path": match.label,
                "scope_id": match.scope_id, "thread_id": match.thread_id,
                "thread_name": match.thread_name}
    labels = sorted(unsure | {span.label for span in matches})
    answer = {"phase_resolution": "ambiguous", "phase_paths": labels}
    if len(labels) > 1:
        answer["phase_summary"] = {"phase_path": most_recent(active).label, "source": "heuristic"}
    return answer


# -- analysis -----------------------------------------------------------------------------------

def most_frequent(values):
    """Ties go to the value that was seen first; None without values."""
    counts = Counter(values)
    return max(counts, key=counts.get) if counts else None


def listed(ranks):
    return ", ".join(str(rank) for rank in ranks)


class Analysis:
    def __init__(self, events):
        self.events = events
        self.notes = []
        self.ranks = {}
        self.offsets = {}
        self.job, self.world_size, self.missing = None, 0, []
        self.suspects, self.onset = [], None
        if not events:
            self.note("No telemetry events were provided.")
        self.select()
        if self.ranks:
            self.place()
            self.align()
            self.judge()

    def note(self, text):
        if text not in self.notes:
            self.notes.append(text)

    def select(self):
        kept = [event for event in self.events if event.is_sample()]
        if len(kept) < len(self.events):
            self.note("Ignored non-sample events during cross-rank analysis.")
        with_memory = [event for event in kept if event.used is not None]
        if len(with_memory) < len(kept):
            self.note("Ignored samples without device-used memory during cross-rank analysis.")
        if not with_memory:
            self.note("No sample telemetry events were available for distributed analysis.")
        jobs = [event.job for event in with_memory if event.job is not None]
        self.job = most_frequent(jobs)
        if len(set(jobs)) > 1:
            self.note("Multiple job_id values were observed; filtering to the most common value.")
            with_memory = [event for event in with_memory if event.job == self.job]
        for event in with_memory:
            self.ranks.setdefault(event.rank, []).append(event)
        self.selected = with_memory
        for samples in self.ranks.values():
            samples.sort(key=lambda event: (event.time, event.pid, event.host))

    def place(self):
        claim = most_frequent(e.world_size for e in self.selected if e.world_size > 1) or 1
        self.world_size = max(claim, max(self.ranks) + 1)
        self.missing = [rank for rank in range(self.world_size) if rank not in self.ranks]
        if self.missing:
            self.note("Missing rank data for ranks: %s." % listed(self.missing))

    def align(self):
        anchor = self.ranks[0 if 0 in self.ranks else min(self.ranks)][0].time
        self.median = self.median_interval()
        for rank in sorted(self.ranks):
            offset = self.ranks[rank][0].time - anchor
            self.offsets[rank] = offset
            if self.median > 0 and abs(offset) > 5 * self.median:
                self.note("Rank %d starts %d ns from the anchor; first-sample alignment may be "
                          "approximate." % (rank, offset))

    def median_interval(self):
        gaps = []
        for samples in self.ranks.values():
            times = [event.time for event in samples]
            gaps += [b - a for a, b in zip(times, times[1:]) if b > a]
        gaps = gaps or [e.interval_ms * 10**6 for e in self.selected if e.interval_ms > 0]
        if not gaps:
            return 0
        gaps.sort()
        middle = len(gaps) // 2
        if len(gaps) % 2 == 1:
            return gaps[middle]
        return int((gaps[middle - 1] + gaps[middle]) / 2)

    def candidate(self, rank):
        samples = self.ranks[rank]
        threshold = max(64 * MIB, int(max(event.used for event in samples) * 0.10))
        grown = steps = 0
        for before, after in zip(samples, samples[1:]):
            difference = after.used - before.used
            if difference <= 0:
                grown = steps = 0
                continue
            grown, steps = grown + difference, steps + 1
            if grown >= threshold:
                return (after.time - self.offsets[rank], -grown, rank, after, steps)
        return None

    def judge(self):
        short = [rank for rank in sorted(self.ranks) if len(self.ranks[rank]) < 2]
        if len(self.ranks) < 2:
            self.note("At least two ranks are required for cross-rank first-cause analysis.")
            return
        if short:
            self.note("Some ranks have fewer than two samples and cannot contribute to spike "
                      "detection: %s." % listed(short))
        found = sorted((c for c in map(self.candidate, self.ranks) if c is not None),
                       key=lambda c: c[:3])
        if not found:
            self.note("No qualifying cross-rank spikes were detected.")
            return
        if len(found) == 1:
            self.note("Only one rank produced a qualifying spike; confidence is limited.")
            chosen = found
        else:
            self.onset = found[1][0]
            chosen = [c for c in found if c[0] <= self.onset]
        spans = spans_of(self.events)
        earliest = [c for c in found if c[0] == found[0][0]]
        for aligned, negated, rank, sample, steps in chosen:
            lead = 0 if self.onset is None else self.onset - aligned
            if len(found) == 1 or self.missing or short or aligned != found[0][0]:
                confidence = "low"
            elif len(earliest) == 1 and (self.median <= 0 or lead >= self.median):
                confidence = "high"
            else:
                confidence = "medium"
            self.suspects.append({
                "rank": rank, "first_spike_timestamp_ns": sample.time,
                "aligned_first_spike_timestamp_ns": aligned, "peak_delta_bytes": -negated,
                "spike_window_samples": steps, "lead_over_cluster_onset_ns": lead,
                "confidence": confidence,
                "evidence": {"device_used_delta_bytes": -negated,
                             "supporting_ranks_at_or_before_onset": len(chosen)},
                "phase_attribution": phase_at(spans.get((sample.session, rank), []), sample.time)})

    def summary(self):
        return {
            "job_id": self.job, "world_size": self.world_size,
            "participating_ranks": sorted(self.ranks), "missing_ranks": self.missing,
            "rank_sample_counts": {str(rank): len(own) for rank, own in self.ranks.items()},
            "alignment_offsets_ns": {str(rank): offset for rank, offset in self.offsets.items()},
            "cluster_onset_timestamp_ns": self.onset,
            "first_cause_suspects": self.suspects, "notes": self.notes}

    def points(self):
        points = []
        for rank in sorted(self.ranks):
            for event in self.ranks[rank]:
                points.append([rank, event.time, event.time - self.offsets[rank], event.used,
                               event.reserved, event.allocated, event.change])
        points.sort(key=lambda point: (point[2], point[0], point[1]))
        return points


def summary_text(events):
    return json.dumps(Analysis(events).summary(), indent=2) + "\n"


def timeline_text(events):
    rows = [json.dumps(point, separators=(",", ":")) for point in Analysis(events).points()]
    body = "[\n" + ",\n".join(rows) + "\n]" if rows else "[]"
    return '{"columns":%s,"points":%s}\n' % (json.dumps(COLUMNS, separators=(",", ":")), body)


def main(arguments):
    timeline = arguments[:1] == ["--timeline"]
    paths = arguments[1:] if timeline else arguments
    if not paths:
        print(__doc__, file=sys.stderr)
        return 64
    events = events_of_files(paths)
    sys.stdout.write(timeline_text(events) if timeline else summary_text(events))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
