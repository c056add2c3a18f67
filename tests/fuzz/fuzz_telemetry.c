// SPDX-License-Identifier: Apache-2.0
// A record means the same whatever came before it.
//
// The input is records, one a line, that one source could have written. Each is decoded with that
// source's memory, again with the same memory, and with none; all three must agree on the category,
// the fault and every value. Each lies in a block of its own, so that a read past its end is seen.
#include "base/memory.h"
#include "pipeline/model/telemetry_event.h"
#include "receivers/decode/telemetry/telemetry.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct answer {
    enum decode_category category;
    struct event event;
    struct decode_fault fault;
};

static void require(bool holds) {
    if (!holds)
        abort();
}

static void require_same_text(struct slice a, struct slice b) {
    require(slice_equal(a, b) && (a.data == NULL) == (b.data == NULL));
}

static void require_same_scope(const struct phase_scope *a, const struct phase_scope *b) {
    require((a == NULL) == (b == NULL));
    if (a == NULL)
        return;
    require(a->label == b->label && a->depth == b->depth && a->thread_id == b->thread_id);
    require(a->sequence == b->sequence && a->thread_id_is_bool == b->thread_id_is_bool);
    require(a->sequence_is_bool == b->sequence_is_bool && a->thread_name == b->thread_name);
    require_same_text(a->scope_id, b->scope_id);
}

static void require_same_tracker(const struct tracker_record *a, const struct tracker_record *b) {
    require((a == NULL) == (b == NULL));
    if (a == NULL)
        return;
    require(isnan(a->timestamp_s) == isnan(b->timestamp_s) && a->present == b->present);
    require(isnan(a->timestamp_s) || memcmp(&a->timestamp_s, &b->timestamp_s, sizeof(double)) == 0);
    require(memcmp(a->counters, b->counters, sizeof a->counters) == 0);
}

static void require_same_values(const struct telemetry *a, const struct telemetry *b) {
    require(a->timestamp_ns == b->timestamp_ns && a->type == b->type);
    require(a->null_counters == b->null_counters && a->schema_version == b->schema_version);
    require(a->rank == b->rank && a->local_rank == b->local_rank);
    require(a->world_size == b->world_size && a->event_type == b->event_type);
    require(a->collector == b->collector && a->host == b->host && a->job == b->job);
    require(a->session == b->session && a->pid == b->pid && a->device_id == b->device_id);
    require(a->sampling_interval_ms == b->sampling_interval_ms);
    require(a->allocated_bytes == b->allocated_bytes && a->reserved_bytes == b->reserved_bytes);
    require(a->active_bytes == b->active_bytes && a->inactive_bytes == b->inactive_bytes);
    require(a->change_bytes == b->change_bytes && a->device_used_bytes == b->device_used_bytes);
    require(a->device_free_bytes == b->device_free_bytes);
    require(a->device_total_bytes == b->device_total_bytes);
    require_same_text(a->context, b->context);
    require_same_text(a->metadata, b->metadata);
    require_same_scope(a->scope, b->scope);
    require_same_tracker(a->tracker, b->tracker);
}

// What every accepted record promises to those who read it.
static void require_sound(const struct event *event) {
    const struct telemetry *telemetry = event->telemetry;
    require(event->kind == EVENT_TELEMETRY && event->time_ns == telemetry->timestamp_ns);
    require(event->job == telemetry->job && event->node == telemetry->host);
    require(event->rank == telemetry->rank && telemetry->rank >= 0);
    require(telemetry->rank < telemetry->world_size && telemetry->world_size <= RANK_MAX);
    require(telemetry->local_rank >= 0 && telemetry->local_rank < telemetry->world_size);
    require(telemetry->pid >= -1 && telemetry->sampling_interval_ms >= 0);
    require(telemetry->device_used_bytes >= 0 && telemetry->allocated_bytes >= 0);
    require((telemetry->null_counters & COUNTER_DEVICE_TOTAL) != 0 ||
            telemetry->device_used_bytes <= telemetry->device_total_bytes);
    require(telemetry->metadata.size >= 2 && telemetry->metadata.data[0] == '{');
    require(telemetry->host != STRING_NONE && telemetry->event_type != STRING_NONE);
}

static void require_same(const struct answer *a, const struct answer *b) {
    require(a->category == b->category);
    if (a->category == DECODE_OK) {
        require_sound(&a->event);
        require_same_values(a->event.telemetry, b->event.telemetry);
        return;
    }
    require(a->fault.category == a->category && strcmp(a->fault.field, b->fault.field) == 0);
    require(strcmp(a->fault.detail, b->fault.detail) == 0 && a->fault.offset == b->fault.offset);
}

static struct answer decode(void *state, struct slice record, struct arena *arena) {
    struct answer answer = {.category = DECODE_OK};
    answer.category = decoder_stormlog.decode(state, record, arena, &answer.event, &answer.fault);
    return answer;
}

static void decode_thrice(void *state, void *empty, struct slice record, struct arena *arena) {
    struct answer first = decode(state, record, arena);
    struct answer again = decode(state, record, arena);
    memset(empty, 0, decoder_stormlog.state_size);
    struct answer fresh = decode(empty, record, arena);
    require_same(&first, &again);
    require_same(&first, &fresh);
    arena_reset(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    void *state = memory_zero(1, decoder_stormlog.state_size);
    void *empty = memory_zero(1, decoder_stormlog.state_size);
    struct arena arena;
    arena_init(&arena, 4096);
    while (size > 0) {
        const uint8_t *newline = memchr(data, '\n', size);
        size_t length = newline == NULL ? size : (size_t)(newline - data);
        char *record = memory_take(length);
        memcpy(record, data, length);
        decode_thrice(state, empty, (struct slice){record, length}, &arena);
        memory_give(record);
        length += newline != NULL;
        data += length;
        size -= length;
    }
    arena_release(&arena);
    memory_give(state);
    memory_give(empty);
    intern_release();
    return 0;
}
