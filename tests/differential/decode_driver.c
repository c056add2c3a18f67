// SPDX-License-Identifier: Apache-2.0
// What does the stormlog decoder make of each record on standard input?
//
// Input: for each record its size in decimal, a newline, its bytes, a newline. Output: one line of
// JSON a record, either {"refused":CATEGORY,"field":TEXT,"detail":TEXT} or the decoded values under
// the names of stormlog's fields. With --fresh each record is decoded without what the one before
// taught. Run by run.py, which compares with decode_oracle.py.
#include "base/memory.h"
#include "base/text/json_write.h"
#include "pipeline/model/telemetry_event.h"
#include "receivers/decode/telemetry/telemetry.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { OUTPUT_MAX = 64 << 20, RECORD_MAX = 16 << 20 };

static void put_string(struct json_writer *json, const char *key, string_id id) {
    json_key(json, key);
    if (id == STRING_NONE)
        json_put_null(json);
    else
        json_slice(json, intern_slice(id));
}

static void put_int(struct json_writer *json, const char *key, int64_t value) {
    json_key(json, key);
    json_int(json, value);
}

static void put_counter(struct json_writer *json, const char *key, const struct telemetry *from,
                        uint32_t counter, int64_t value) {
    json_key(json, key);
    if ((from->null_counters & counter) != 0)
        json_put_null(json);
    else
        json_int(json, value);
}

static void put_scope(struct json_writer *json, const struct phase_scope *scope) {
    json_key(json, "phase_scope");
    if (scope == NULL) {
        json_put_null(json);
        return;
    }
    json_object_open(json);
    put_string(json, "label", scope->label);
    put_int(json, "depth", scope->depth);
    json_key(json, "scope_id");
    json_slice(json, scope->scope_id);
    put_int(json, "thread_id", scope->thread_id);
    put_int(json, "sequence", scope->sequence);
    json_key(json, "bools");
    json_int(json, (int64_t)scope->thread_id_is_bool + 2 * (int64_t)scope->sequence_is_bool);
    put_string(json, "thread_name", scope->thread_name);
    json_object_close(json);
}

static void put_counters(struct json_writer *json, const struct telemetry *from) {
    put_counter(json, "allocator_allocated_bytes", from, COUNTER_ALLOCATED, from->allocated_bytes);
    put_counter(json, "allocator_reserved_bytes", from, COUNTER_RESERVED, from->reserved_bytes);
    put_counter(json, "allocator_active_bytes", from, COUNTER_ACTIVE, from->active_bytes);
    put_counter(json, "allocator_inactive_bytes", from, COUNTER_INACTIVE, from->inactive_bytes);
    put_counter(json, "allocator_change_bytes", from, COUNTER_CHANGE, from->change_bytes);
    put_counter(json, "device_used_bytes", from, COUNTER_DEVICE_USED, from->device_used_bytes);
    put_counter(json, "device_free_bytes", from, COUNTER_DEVICE_FREE, from->device_free_bytes);
    put_counter(json, "device_total_bytes", from, COUNTER_DEVICE_TOTAL, from->device_total_bytes);
}

static void put_tracker(struct json_writer *json, const struct tracker_record *tracker) {
    static const char *const names[] = {
        [TRACKER_ALLOCATED] = "allocated",
        [TRACKER_RESERVED] = "reserved",
        [TRACKER_CHANGE] = "change",
        [TRACKER_DEVICE_USED] = "device_used",
        [TRACKER_DEVICE_TOTAL] = "device_total",
        [TRACKER_RANK] = "rank",
        [TRACKER_JOB] = "job",
        [TRACKER_CONTEXT] = "context",
    };
    char seconds[64] = "null";
    json_key(json, "tracker");
    if (tracker == NULL) {
        json_put_null(json);
        return;
    }
    if (!isnan(tracker->timestamp_s))
        snprintf(seconds, sizeof seconds, "%.17g", tracker->timestamp_s);
    json_object_open(json);
    json_key(json, "timestamp");
    json_text(json, seconds);
    for (uint32_t i = 0; i < sizeof names / sizeof *names; i++) {
        bool present = (tracker->present >> i & 1) != 0;
        json_key(json, names[i]);
        if (present && i < TRACKER_COUNTERS)
            json_int(json, tracker->counters[i]);
        else if (i < TRACKER_COUNTERS)
            json_put_null(json);
        else
            json_bool(json, present);
    }
    json_object_close(json);
}

static void put_telemetry(struct json_writer *json, const struct event *event) {
    const struct telemetry *from = event->telemetry;
    put_int(json, "schema_version", from->schema_version);
    json_key(json, "timestamp_ns");
    json_uint(json, event->time_ns);
    put_int(json, "type", from->type);
    put_string(json, "session_id", from->session);
    put_string(json, "event_type", from->event_type);
    put_string(json, "collector", from->collector);
    put_string(json, "host", event->node);
    put_string(json, "job_id", event->job);
    put_int(json, "rank", event->rank);
    put_int(json, "local_rank", from->local_rank);
    put_int(json, "world_size", from->world_size);
    put_int(json, "pid", from->pid);
    put_int(json, "device_id", from->device_id);
    put_int(json, "sampling_interval_ms", from->sampling_interval_ms);
    put_counters(json, from);
    json_key(json, "context");
    if (from->context.data == NULL)
        json_put_null(json);
    else
        json_slice(json, from->context);
    json_key(json, "metadata");
    json_slice(json, from->metadata);
    put_scope(json, from->scope);
    put_tracker(json, from->tracker);
}

static void put_result(struct buffer *out, enum decode_category category, const struct event *event,
                       const struct decode_fault *fault) {
    struct json_writer json;
    json_begin(&json, out, 0);
    json_object_open(&json);
    if (category == DECODE_OK) {
        put_telemetry(&json, event);
    } else {
        json_key(&json, "refused");
        json_text(&json, decode_category_name(category));
        json_key(&json, "field");
        json_text(&json, fault->field);
        json_key(&json, "detail");
        json_text(&json, fault->detail);
    }
    json_object_close(&json);
    buffer_append_char(out, '\n');
}

int main(int argc, char **argv) {
    bool fresh = argc > 1 && strcmp(argv[1], "--fresh") == 0;
    void *state = memory_zero(1, decoder_stormlog.state_size);
    struct arena arena;
    struct buffer out;
    arena_init(&arena, 64 << 10);
    buffer_init(&out, OUTPUT_MAX);
    size_t size;
    while (scanf("%zu", &size) == 1 && getchar() == '\n' && size <= RECORD_MAX) {
        // A block of its own, so that reading past the record's end does not go unseen.
        char *record = memory_take(size);
        if (size > 0 && fread(record, 1, size, stdin) != size)
            return EXIT_FAILURE;
        struct event event = {0};
        struct decode_fault fault;
        if (fresh)
            memset(state, 0, decoder_stormlog.state_size);
        enum decode_category category =
            decoder_stormlog.decode(state, (struct slice){record, size}, &arena, &event, &fault);
        put_result(&out, category, &event, &fault);
        if (fwrite(out.data, 1, out.size, stdout) != out.size)
            return EXIT_FAILURE;
        buffer_reset(&out);
        arena_reset(&arena);
        memory_give(record);
    }
    buffer_release(&out);
    arena_release(&arena);
    memory_give(state);
    intern_release();
    return EXIT_SUCCESS;
}
