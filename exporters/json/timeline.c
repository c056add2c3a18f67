// SPDX-License-Identifier: Apache-2.0
// The samples of all ranks in one order.
//
// The ranks' series are in time order already; a heap with one entry a rank merges them by (aligned
// time, rank). Nothing is copied but the row at hand: O(log ranks) a sample.
#include "exporters/json/json.h"
#include "pipeline/model/series.h"

#include <assert.h>

struct timeline_source {
    __int128 aligned_ns; // of the row at hand
    const struct sample *row;
    struct series_cursor cursor;
    uint32_t index; // into the [rank_count] arrays, ascending ranks
};

static bool source_before(const struct timeline_source *a, const struct timeline_source *b) {
    return a->aligned_ns != b->aligned_ns ? a->aligned_ns < b->aligned_ns : a->index < b->index;
}

static void heap_sink(struct timeline_source *heap, uint32_t count, uint32_t at) {
    assert(at < count);
    struct timeline_source moving = heap[at];
    for (uint32_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && source_before(&heap[child + 1], &heap[child]))
            child++;
        if (!source_before(&heap[child], &moving))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moving;
}

static bool source_advance(const struct evaluation *evaluation, struct timeline_source *source) {
    assert(source->index < evaluation->rank_count);
    source->row = series_next(evaluation->store, evaluation->ranks[source->index].series,
                              &source->cursor, evaluation->as_of_ns);
    if (source->row == NULL)
        return false;
    source->aligned_ns =
        (__int128)source->row->time_ns - evaluation->alignment[source->index].offset_ns;
    return true;
}

static uint32_t heap_fill(const struct evaluation *evaluation, struct timeline_source *heap) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < evaluation->rank_count; i++) {
        struct timeline_source *source = &heap[count];
        *source = (struct timeline_source){
            .cursor = series_begin(evaluation->ranks[i].series),
            .index = i,
        };
        if (source_advance(evaluation, source))
            count++;
    }
    for (uint32_t at = count / 2; at > 0; at--)
        heap_sink(heap, count, at - 1);
    return count;
}

static void counter_encode(struct buffer *out, int64_t value, bool is_null) {
    buffer_append_char(out, ',');
    if (is_null)
        buffer_append(out, SLICE("null"));
    else
        buffer_append_int(out, value);
}

static void point_encode(struct buffer *out, int32_t rank, const struct timeline_source *source) {
    const struct sample *row = source->row;
    buffer_append_char(out, '[');
    buffer_append_int(out, rank);
    buffer_append_char(out, ',');
    buffer_append_uint(out, row->time_ns);
    buffer_append_char(out, ',');
    buffer_append_int128(out, source->aligned_ns);
    counter_encode(out, row->used_bytes, false);
    counter_encode(out, row->reserved_bytes, (row->flags & SAMPLE_RESERVED_NULL) != 0);
    counter_encode(out, row->allocated_bytes, (row->flags & SAMPLE_ALLOCATED_NULL) != 0);
    counter_encode(out, row->change_bytes, (row->flags & SAMPLE_CHANGE_NULL) != 0);
    buffer_append_char(out, ']');
}

void timeline_encode(const struct evaluation *evaluation, struct arena *arena, struct buffer *out) {
    struct timeline_source *heap = arena_take(arena, evaluation->rank_count * sizeof *heap);
    uint32_t count = heap_fill(evaluation, heap);
    buffer_append(out, SLICE("{\"columns\":[\"rank\",\"timestamp_ns\",\"aligned_timestamp_ns\","
                             "\"device_used_bytes\",\"allocator_reserved_bytes\","
                             "\"allocator_allocated_bytes\",\"allocator_change_bytes\"],"
                             "\"points\":["));
    const char *between = "\n";
    bool any = count > 0;
    while (count > 0) {
        buffer_append_text(out, between);
        between = ",\n";
        point_encode(out, evaluation->ranks[heap[0].index].series->rank, &heap[0]);
        if (!source_advance(evaluation, &heap[0]))
            heap[0] = heap[--count];
        if (count > 0)
            heap_sink(heap, count, 0);
    }
    buffer_append(out, any ? SLICE("\n]}\n") : SLICE("]}\n"));
}
