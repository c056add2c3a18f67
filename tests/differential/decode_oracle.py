# SPDX-License-Identifier: Apache-2.0
"""What a stormlog telemetry record means, worked out a second time.

Written from the description of the format (telemetry schema v2 to v4 and legacy records, as loaded
by stormlog 0.4.3), on top of Python's own json module, and sharing nothing with the C decoder. It
has no limits of size: integers are unbounded here. `judge` returns either
{"refused": category, "field": text} or the decoded values under the names that decode_driver prints.
"""
import json
import math
import sys

sys.set_int_max_str_digits(0)

SCHEMA = [
    "schema_version", "session_id", "timestamp_ns", "event_type", "collector",
    "sampling_interval_ms", "pid", "host", "device_id", "allocator_allocated_bytes",
    "allocator_reserved_bytes", "allocator_active_bytes", "allocator_inactive_bytes",
    "allocator_change_bytes", "device_used_bytes", "device_free_bytes", "device_total_bytes",
    "context", "metadata",
]
IDENTITY = ["job_id", "rank", "local_rank", "world_size"]
CAPABILITY_TEXTS = ["backend", "telemetry_collector", "sampling_source"]
FLAG_OF_COUNTER = [
    ("allocator_allocated_bytes", "supports_allocator_allocated"),
    ("allocator_reserved_bytes", "supports_allocator_reserved"),
    ("allocator_active_bytes", "supports_allocator_active"),
    ("allocator_inactive_bytes", "supports_allocator_inactive"),
    ("device_used_bytes", "supports_device_used"),
    ("device_free_bytes", "supports_device_free"),
    ("device_total_bytes", "supports_device_total"),
    ("allocator_change_bytes", "supports_allocator_allocated"),
]
CAPABILITY_FLAGS = [flag for _, flag in FLAG_OF_COUNTER[:7]] + [
    "supports_native_allocator_history", "supports_fragmentation_analysis",
    "supports_allocator_attribution", "supports_bounded_profiling",
]
COUNTERS = [
    "allocator_allocated_bytes", "allocator_reserved_bytes", "allocator_active_bytes",
    "allocator_inactive_bytes", "allocator_change_bytes", "device_used_bytes",
    "device_free_bytes", "device_total_bytes",
]
ALWAYS_NULLABLE = {"allocator_active_bytes", "allocator_inactive_bytes", "device_free_bytes",
                   "device_total_bytes"}
ABSENT = object()


class Refused(Exception):
    def __init__(self, category, field=""):
        super().__init__(category, field)
        self.category = category
        self.field = field


def integer(value, field):
    if type(value) is not int:
        raise Refused("wrong_type", field)
    return value


def at_least(value, low, field):
    if value is not None and value < low:
        raise Refused("out_of_range", field)
    return value


def words(value, field):
    """A text that is not blank."""
    if value is None:
        raise Refused("empty_string", field)
    if type(value) is not str:
        raise Refused("wrong_type", field)
    if value.strip() == "":
        raise Refused("empty_string", field)
    return value


def identity(job, rank, local_rank, world):
    rank = 0 if rank is None else rank
    local_rank = rank if local_rank is None else local_rank
    world = 1 if world is None else world
    if job is not None:
        words(job, "job_id")
    at_least(integer(rank, "rank"), 0, "rank")
    at_least(integer(local_rank, "local_rank"), 0, "local_rank")
    at_least(integer(world, "world_size"), 1, "world_size")
    for name, value in (("rank", rank), ("local_rank", local_rank)):
        if value >= world:
            raise Refused("identity_conflict", name)
    return {"job_id": job, "rank": rank, "local_rank": local_rank, "world_size": world}


def session_of(record, metadata):
    session = record.get("session_id")
    if session is None:
        session = metadata.get("session_id")
    return session if type(session) is str and session.strip() else None


def check_capabilities(metadata, counters):
    """`counters` by name, None for null."""
    where = "metadata.memory_capabilities"
    if "memory_capabilities" not in metadata:
        source = metadata.get("sampling_source")
        if type(source) is str and not source.strip():
            raise Refused("empty_string", where + ".sampling_source")
        flags = {flag: counters[name] is not None for name, flag in FLAG_OF_COUNTER[:7]}
    else:
        flags = metadata["memory_capabilities"]
        if type(flags) is not dict:
            raise Refused("wrong_type", where)
        known = CAPABILITY_TEXTS + CAPABILITY_FLAGS
        missing = [name for name in known if name not in flags]
        if missing:
            raise Refused("missing_field", ", ".join(missing))
        extra = sorted(name for name in flags if name not in known)
        if extra:
            raise Refused("unknown_field", ", ".join(extra))
        for name in CAPABILITY_TEXTS:
            words(flags[name], where + "." + name)
        for name in CAPABILITY_FLAGS:
            if type(flags[name]) is not bool:
                raise Refused("wrong_type", where + "." + name)
    for name, flag in FLAG_OF_COUNTER:
        if counters[name] is not None and not flags[flag]:
            raise Refused("capability_conflict", name)


def check_counter_values(counters):
    for name in COUNTERS[:4]:
        at_least(counters[name], 0, name)


def check_device_values(counters):
    used, free, total = (counters[name] for name in COUNTERS[5:])
    at_least(used, 0, "device_used_bytes")
    at_least(free, 0, "device_free_bytes")
    at_least(total, 0, "device_total_bytes")
    for name, value in (("device_used_bytes", used), ("device_free_bytes", free)):
        if total is not None and value is not None and value > total:
            raise Refused("exceeds_total", name)


def boundary(event_type, metadata):
    if event_type not in ("phase_enter", "phase_exit"):
        return None
    scope = metadata.get("phase_scope")
    if type(scope) is not dict:
        return None
    for name in ("action", "name", "scope_id", "thread_name"):
        if type(scope.get(name)) is not str:
            return None
    if scope["action"] != event_type[len("phase_"):] or not scope["name"].strip():
        return None
    if not (scope.get("parent_scope_id") is None or type(scope["parent_scope_id"]) is str):
        return None
    if type(scope.get("path")) is not list:
        return None
    parts = [part for part in scope["path"] if type(part) is str and part != ""]
    numbers = [scope.get("thread_id"), scope.get("sequence")]
    if not parts or any(type(number) not in (int, bool) for number in numbers):
        return None
    return {
        "label": " / ".join(parts), "depth": len(parts), "scope_id": scope["scope_id"],
        "thread_id": int(numbers[0]), "sequence": int(numbers[1]),
        "bools": (type(numbers[0]) is bool) + 2 * (type(numbers[1]) is bool),
        "thread_name": scope["thread_name"],
    }


def kind_of(event_type):
    if event_type.casefold() == "sample":
        return 1
    return {"phase_enter": 2, "phase_exit": 3}.get(event_type, 0)


def versioned(record):
    version = integer(record["schema_version"], "schema_version")
    if version not in (2, 3, 4):
        raise Refused("unsupported_version", str(version))
    metadata = record.get("metadata", {})
    if type(metadata) is not dict:
        raise Refused("wrong_type", "metadata")
    who = identity(*(record.get(name) for name in IDENTITY))
    if "metadata" not in record:
        raise Refused("missing_field", "metadata")
    missing = [name for name in SCHEMA if name != "session_id" and name not in record]
    if missing:
        raise Refused("missing_field", ", ".join(missing))
    allowed = set(SCHEMA + IDENTITY) - ({"session_id"} if version == 2 else set())
    extra = sorted(name for name in record if name not in allowed)
    if extra:
        raise Refused("unknown_field", ", ".join(extra))
    at_least(integer(record["timestamp_ns"], "timestamp_ns"), 0, "timestamp_ns")
    words(record["event_type"], "event_type")
    words(record["collector"], "collector")
    interval = integer(record["sampling_interval_ms"], "sampling_interval_ms")
    at_least(interval, 0, "sampling_interval_ms")
    at_least(integer(record["pid"], "pid"), -1, "pid")
    words(record["host"], "host")
    for name in IDENTITY[1:]:
        if name in record:
            integer(record[name], name)
    integer(record["device_id"], "device_id")
    counters = {}
    for names, check in ((COUNTERS[:5], check_counter_values), (COUNTERS[5:], check_device_values)):
        for name in names:
            nullable = version == 4 or name in ALWAYS_NULLABLE
            value = record[name]
            counters[name] = None if value is None and nullable else integer(value, name)
        check(counters)
    if record["context"] is not None and type(record["context"]) is not str:
        raise Refused("wrong_type", "context")
    check_capabilities(metadata, counters)
    same = ("timestamp_ns", "event_type", "collector", "sampling_interval_ms", "pid", "host",
            "device_id", "context")
    return {
        **{name: record[name] for name in same}, **who, **counters, "schema_version": version,
        "session_id": session_of(record, metadata), "metadata": metadata,
        "phase_scope": boundary(record["event_type"], metadata), "tracker": None,
    }


def is_number(value):
    return type(value) in (int, float)


def truncated(value, factor, field):
    try:
        return int(float(value) * factor)
    except (OverflowError, ValueError):
        raise Refused("out_of_range", field) from None


def legacy_device(record):
    if "device_id" in record:
        return integer(record["device_id"], "device_id")
    text = record.get("device")
    if type(text) is str:
        if "cpu" in text.lower():
            return -1
        head, colon, tail = text.rpartition(":")
        if colon and tail.isdigit():
            try:
                return int(tail)
            except ValueError:
                raise Refused("wrong_type", "device") from None
        if text.lower().startswith("/gpu"):
            return 0
    return 0 if "memory_mb" in record else -1


def first_integer(record, names, default):
    for name in names:
        if name in record:
            return integer(record[name], name)
    return default


def legacy_counters(record, metadata):
    counters = {}
    if "allocator_allocated_bytes" in record or "memory_allocated" in record:
        allocated = first_integer(record, ["allocator_allocated_bytes", "memory_allocated"], 0)
    elif is_number(record.get("memory_mb")):
        allocated = truncated(record["memory_mb"], 2.0 ** 20, "memory_mb")
    else:
        allocated = first_integer(record, ["device_used_bytes"], 0)
    counters["allocator_allocated_bytes"] = allocated
    counters["allocator_reserved_bytes"] = first_integer(
        record, ["allocator_reserved_bytes", "memory_reserved"], allocated)
    counters["allocator_change_bytes"] = first_integer(
        record, ["allocator_change_bytes", "memory_change"], 0)
    for name in ("allocator_active_bytes", "allocator_inactive_bytes"):
        value = record.get(name)
        counters[name] = None if value is None else integer(value, name)
    used = first_integer(record, ["device_used_bytes"], allocated)
    total, total_name = ABSENT, "device_total_bytes"
    older = ["total_memory", "device_total", "total_bytes"]
    places = [(record, total_name)] + [(record, n) for n in older] + [(metadata, n) for n in older]
    for values, name in places:
        if total is ABSENT and name in values:
            total, total_name = values[name], name
    total = None if total is ABSENT or total is None else integer(total, total_name)
    if "device_free_bytes" in record:
        free = record["device_free_bytes"]
        free = None if free is None else integer(free, "device_free_bytes")
    else:
        free = None if total is None else max(total - used, 0)
    counters.update(device_used_bytes=used, device_total_bytes=total, device_free_bytes=free)
    return counters


def legacy_collector(record, metadata, device):
    collector = record.get("collector")
    if type(collector) is str and collector.strip():
        return collector
    backend = record.get("backend", metadata.get("backend"))
    if type(backend) is str and backend.strip().lower() in ("mps", "rocm", "cuda", "cpu"):
        return "stormlog." + backend.strip().lower() + "_tracker"
    if "memory_mb" in record:
        return "stormlog.tensorflow.memory_tracker"
    if "memory_allocated" in record:
        return "stormlog.cpu_tracker" if device == -1 else "stormlog.cuda_tracker"
    return "legacy.unknown"


def tracker(record):
    """What the keys of the old trackers say by themselves; an integer beyond int64 is none."""
    seconds = record.get("timestamp")
    try:
        seconds = float(seconds) if is_number(seconds) else None
    except OverflowError:
        seconds = math.copysign(math.inf, seconds)
    found = {"timestamp": seconds, "rank": type(record.get("rank")) is int,
             "job": type(record.get("job_id")) is str,
             "context": type(record.get("context")) is str}
    for name, keys in (("allocated", ("memory_allocated", "allocator_allocated_bytes")),
                       ("reserved", ("memory_reserved", "allocator_reserved_bytes")),
                       ("change", ("memory_change", "allocator_change_bytes")),
                       ("device_used", ("device_used", "device_used_bytes")),
                       ("device_total", ("device_total", "device_total_bytes"))):
        values = [record.get(key) for key in keys]
        usable = [v for v in values if type(v) is int and -2 ** 63 <= v < 2 ** 63]
        found[name] = usable[0] if usable else None
    return found


def legacy(record):
    raw = record.get("metadata")
    if raw is not None and type(raw) is not dict:
        raise Refused("wrong_type", "metadata")
    metadata = dict(raw or {})
    prefix = "metadata_"
    metadata.update({k[len(prefix):]: v for k, v in record.items() if k.startswith(prefix)})
    if "timestamp_ns" in record:
        time_ns = integer(record["timestamp_ns"], "timestamp_ns")
    elif is_number(record.get("timestamp")):
        time_ns = truncated(record["timestamp"], 1e9, "timestamp")
    else:
        raise Refused("missing_timestamp", "timestamp")
    device = legacy_device(record)
    counters = legacy_counters(record, metadata)
    event_type = words(record.get("event_type", record.get("type", "sample")), "event_type")
    interval = integer(record.get("sampling_interval_ms", 0), "sampling_interval_ms")
    pid = integer(record.get("pid", metadata.get("pid", -1)), "pid")
    host = words(record.get("host", metadata.get("host", "unknown")), "host")
    collector = legacy_collector(record, metadata, device)
    who = identity(*(metadata.get(name) if record.get(name) is None else record[name]
                     for name in IDENTITY))
    context = record.get("context", record.get("message"))
    if context is not None and type(context) is not str:
        raise Refused("wrong_type", "context")
    at_least(time_ns, 0, "timestamp_ns")
    at_least(interval, 0, "sampling_interval_ms")
    at_least(pid, -1, "pid")
    check_counter_values(counters)
    check_device_values(counters)
    check_capabilities(metadata, counters)
    return {
        **who, **counters, "schema_version": 1, "timestamp_ns": time_ns, "device_id": device,
        "event_type": event_type, "collector": collector, "sampling_interval_ms": interval,
        "pid": pid, "host": host, "context": context, "metadata": raw or {},
        "session_id": session_of(record, metadata), "phase_scope": boundary(event_type, metadata),
        "tracker": tracker(record),
    }


def parse(data):
    """The JSON value, or Refused."""
    try:
        return json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):
        raise Refused("bad_json") from None


def judge(data):
    try:
        record = parse(data)
        if type(record) is not dict:
            raise Refused("not_object")
        result = versioned(record) if "schema_version" in record else legacy(record)
        result["type"] = kind_of(result["event_type"])
        return result
    except Refused as refused:
        return {"refused": refused.category, "field": refused.field}
