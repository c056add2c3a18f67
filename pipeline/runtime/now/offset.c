// SPDX-License-Identifier: Apache-2.0
#include "pipeline/runtime/now/offset.h"

#include "base/sort.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

enum { QUARTERS_MAX = 14 * 4 }; // zones go from -12:00 to +14:00

static const int64_t SECOND_NS = 1000000000;
static const int64_t QUARTER_S = 15 * 60, SLACK_S = 2 * 60;

struct stand {
    uint32_t row;
    uint64_t first_ns, last_ns;
};

struct stands {
    struct stand *items;
    uint64_t *sorted;
    uint32_t count;
};

static struct source_clock *clock_at(struct table *clocks, uint32_t row) {
    return table_row(clocks, row);
}

static void add_stand(struct stands *stands, const struct source_clock *clock, uint32_t row) {
    const struct source_times *times = &clock->times;
    if (times->count == 0)
        return;
    uint32_t sure = source_times_sure(times);
    stands->items[stands->count++] =
        (struct stand){.row = row,
                       .first_ns = times->runs[0].low,
                       .last_ns = times->runs[sure < times->count ? sure : times->count - 1].high};
}

static struct stands stands_new(const struct table *clocks, struct arena *scratch) {
    return (struct stands){
        .items = arena_take(scratch, (clocks->used + 1) * sizeof(struct stand)),
        .sorted = arena_take(scratch, (clocks->used + 1) * sizeof(uint64_t)),
    };
}

// How many quarters of an hour lie between two times; 0 when it is no whole number of them, or too
// many for a zone.
static int32_t quarters_between(uint64_t time_ns, uint64_t from_ns) {
    int64_t apart_s = ((int64_t)time_ns - (int64_t)from_ns) / SECOND_NS;
    int64_t half = apart_s < 0 ? -QUARTER_S / 2 : QUARTER_S / 2;
    int64_t quarters = (apart_s + half) / QUARTER_S;
    if (llabs(apart_s - quarters * QUARTER_S) > SLACK_S || llabs(quarters) > QUARTERS_MAX)
        return 0;
    return (int32_t)quarters;
}

static uint64_t middle_of(struct stands *stands, bool first, struct arena *scratch) {
    for (uint32_t i = 0; i < stands->count; i++)
        stands->sorted[i] = first ? stands->items[i].first_ns : stands->items[i].last_ns;
    sort_stable(stands->sorted, stands->count, sizeof *stands->sorted, scratch, compare_by_u64);
    return stands->sorted[(stands->count - 1) / 2];
}

// Of two sources the one with fewer events is the one that is off: a log beside what is sampled.
static bool keep_lesser(struct table *clocks, struct stands *stands, uint64_t *first_ns,
                        uint64_t *last_ns) {
    assert(stands->count == 2);
    const struct stand *a = &stands->items[0], *b = &stands->items[1];
    uint32_t a_events = clock_at(clocks, a->row)->offset.events;
    uint32_t b_events = clock_at(clocks, b->row)->offset.events;
    const struct stand *other = a_events > b_events ? a : b;
    *first_ns = other->first_ns;
    *last_ns = other->last_ns;
    return a_events != b_events;
}

// What the others' times are; false: it cannot be said.
static bool reference(struct table *clocks, struct stands *stands, uint64_t *first_ns,
                      uint64_t *last_ns, struct arena *scratch) {
    if (stands->count < 2)
        return false;
    if (stands->count == 2)
        return keep_lesser(clocks, stands, first_ns, last_ns);
    *first_ns = middle_of(stands, true, scratch);
    *last_ns = middle_of(stands, false, scratch);
    return true;
}

static void say(struct source_clock *clock, int32_t quarters, uint32_t events_min,
                offset_tell *tell, void *context) {
    assert(quarters != 0);
    if (clock->offset.said != 0 || clock->offset.events < events_min)
        return;
    clock->offset.said = 1;
    tell(context, clock, quarters);
}

// Whether all of the source lies so far ahead that it may be of another zone.
static bool is_ahead(const struct stand *stand, uint64_t first_ns, uint64_t last_ns) {
    const uint64_t least_ns = (uint64_t)(QUARTER_S - SLACK_S) * (uint64_t)SECOND_NS;
    return stand->first_ns > first_ns + least_ns && stand->last_ns > last_ns + least_ns;
}

// The sources ahead, taken as one: a log of few lines hardly begins and ends with the others, but
// those of several nodes together do. 0: they are not steadily ahead.
static int32_t quarters_of_all(const struct stands *stands, uint64_t first_ns, uint64_t last_ns) {
    enum { SOURCES_MIN = 2 };
    uint32_t count = 0;
    struct stand all = {.first_ns = UINT64_MAX};
    for (uint32_t i = 0; i < stands->count; i++) {
        const struct stand *stand = &stands->items[i];
        if (!is_ahead(stand, first_ns, last_ns))
            continue;
        count++;
        all.first_ns = stand->first_ns < all.first_ns ? stand->first_ns : all.first_ns;
        all.last_ns = stand->last_ns > all.last_ns ? stand->last_ns : all.last_ns;
    }
    if (count < SOURCES_MIN)
        return 0;
    int32_t quarters = quarters_between(all.last_ns, last_ns);
    return quarters == quarters_between(all.first_ns, first_ns) ? quarters : 0;
}

void offsets_at_end(struct table *clocks, offset_tell *tell, void *context, struct arena *scratch) {
    struct stands stands = stands_new(clocks, scratch);
    uint64_t first_ns, last_ns;
    for (uint32_t i = 0; i < clocks->used; i++)
        add_stand(&stands, clock_at(clocks, i), i);
    if (!reference(clocks, &stands, &first_ns, &last_ns, scratch))
        return;
    int32_t of_all = quarters_of_all(&stands, first_ns, last_ns);
    for (uint32_t i = 0; i < stands.count; i++) {
        const struct stand *stand = &stands.items[i];
        int32_t quarters = quarters_between(stand->last_ns, last_ns);
        if (of_all != 0 && is_ahead(stand, first_ns, last_ns))
            say(clock_at(clocks, stand->row), of_all, 1, tell, context);
        else if (quarters != 0 && quarters == quarters_between(stand->first_ns, first_ns))
            say(clock_at(clocks, stand->row), quarters, OFFSET_EVENTS_MIN, tell, context);
    }
}

void offsets_look(struct table *clocks, bool (*counts)(void *counting, uint32_t row),
                  void *counting, offset_tell *tell, void *context, struct arena *scratch) {
    struct stands stands = stands_new(clocks, scratch);
    uint64_t first_ns, last_ns;
    for (uint32_t i = 0; i < clocks->used; i++)
        if (counts(counting, i))
            add_stand(&stands, clock_at(clocks, i), i);
    if (!reference(clocks, &stands, &first_ns, &last_ns, scratch))
        return;
    for (uint32_t i = 0; i < stands.count; i++) {
        struct source_clock *clock = clock_at(clocks, stands.items[i].row);
        struct source_offset *offset = &clock->offset;
        if (stands.items[i].last_ns == offset->seen_ns)
            continue;
        offset->seen_ns = stands.items[i].last_ns;
        int32_t quarters = quarters_between(offset->seen_ns, last_ns);
        offset->count = quarters == 0 ? 0 : quarters == offset->quarters ? offset->count + 1 : 1;
        offset->quarters = quarters;
        if (offset->count >= OFFSET_EVENTS_MIN)
            say(clock, quarters, OFFSET_EVENTS_MIN, tell, context);
    }
}

void offset_format(int32_t quarters, char out[OFFSET_TEXT_MAX]) {
    assert(abs(quarters) <= QUARTERS_MAX);
    unsigned minutes = (unsigned)abs(quarters) * 15;
    snprintf(out, OFFSET_TEXT_MAX, "%c%02u:%02u", quarters < 0 ? '-' : '+', minutes / 60 % 100,
             minutes % 60);
}
