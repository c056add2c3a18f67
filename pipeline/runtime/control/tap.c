// SPDX-License-Identifier: Apache-2.0
// The ring has one writer (under the pipeline's lock) and one reader. Both count bytes upwards for
// ever; a record lies in one piece, so what is left at the end of the memory may be passed over.
#include "pipeline/runtime/control/tap.h"

#include "base/clock.h"
#include "base/memory.h"
#include "pipeline/runtime/control/tap_record.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>

#define TAP_MAGIC UINT32_C(0x54617020)
static const uint64_t SECOND_NS = UINT64_C(1000000000);

enum record_kind { RECORD_SKIP, RECORD_EVENT, RECORD_VERDICT };

// In front of each record; `size` with this head, a multiple of 8.
struct record_head {
    uint32_t size;
    uint32_t kind;
};

struct tap {
    uint32_t magic; // TAP_MAGIC
    struct tap_choice choice;
    char rank[16]; // as entities name it
    // The writer's.
    uint64_t matched;   // for `every`
    uint64_t second_ns; // when the second began whose records are counted …
    uint32_t taken;     // … that were written in it
    struct buffer text; // a verdict
    // Both sides'.
    atomic_uint_fast64_t left_out;
    atomic_uint_fast64_t written, read; // bytes of the ring
    char *ring;
};

struct tap *tap_create(const struct tap_choice *choice) {
    assert(choice->every >= 1);
    assert(choice->rate >= 1 && choice->rate <= TAP_RATE_MAX);
    struct tap *tap = memory_zero(1, sizeof *tap);
    tap->magic = TAP_MAGIC;
    tap->choice = *choice;
    tap->ring = memory_take(TAP_RING_BYTES);
    snprintf(tap->rank, sizeof tap->rank, "%d", (int)choice->rank);
    buffer_init(&tap->text, TAP_VERDICT_MAX);
    return tap;
}

void tap_free(struct tap *tap) {
    if (tap == NULL)
        return;
    assert(tap->magic == TAP_MAGIC);
    tap->magic = 0;
    buffer_release(&tap->text);
    memory_give(tap->ring);
    memory_give(tap);
}

// -- the writer -----------------------------------------------------------------------------------

static void leave_out(struct tap *tap, uint64_t count) {
    atomic_fetch_add_explicit(&tap->left_out, count, memory_order_relaxed);
}

// Room for a record of `size` bytes behind its head, which is made; NULL: the reader is behind.
static void *ring_room(struct tap *tap, size_t size, enum record_kind kind) {
    uint64_t written = atomic_load_explicit(&tap->written, memory_order_relaxed);
    uint64_t read = atomic_load_explicit(&tap->read, memory_order_acquire);
    size_t need = sizeof(struct record_head) + (size + 7) / 8 * 8;
    size_t at = written % TAP_RING_BYTES, end = TAP_RING_BYTES - at;
    size_t skipped = need > end ? end : 0;
    assert(written - read <= TAP_RING_BYTES && at % 8 == 0);
    if (need > TAP_RING_BYTES || written + skipped + need - read > TAP_RING_BYTES)
        return NULL;
    if (skipped > 0) {
        *(struct record_head *)(void *)(tap->ring + at) =
            (struct record_head){(uint32_t)skipped, RECORD_SKIP};
        atomic_store_explicit(&tap->written, written + skipped, memory_order_release);
        at = 0;
    }
    struct record_head *head = (struct record_head *)(void *)(tap->ring + at);
    *head = (struct record_head){(uint32_t)need, kind};
    return head + 1;
}

// The record that ring_room gave is whole.
static void ring_commit(struct tap *tap) {
    uint64_t written = atomic_load_explicit(&tap->written, memory_order_relaxed);
    const struct record_head *head =
        (const struct record_head *)(const void *)(tap->ring + written % TAP_RING_BYTES);
    assert(head->kind != RECORD_SKIP && head->size % 8 == 0);
    atomic_store_explicit(&tap->written, written + head->size, memory_order_release);
    tap->taken++;
}

static bool wants_event(const struct tap *tap, const struct event *event) {
    const struct tap_choice *choice = &tap->choice;
    return choice->events[event_class(event)] &&
           (choice->job == STRING_NONE || choice->job == event->job) &&
           (choice->rank == RANK_NONE || choice->rank == event->rank);
}

static bool names_rank(const struct tap *tap, const struct verdict *verdict) {
    for (uint32_t i = 0; i < verdict->entity_count; i++)
        if (strcmp(verdict->entities[i].kind, "rank") == 0 &&
            slice_equal(verdict->entities[i].name, slice_of(tap->rank)))
            return true;
    return false;
}

// One that is as it was put out last is behind the last stage only for a sink.
static bool wants_verdict(const struct tap *tap, const struct verdict *verdict) {
    const struct tap_choice *choice = &tap->choice;
    return !(verdict->unchanged && choice->point == TAP_OUT) &&
           (choice->job == STRING_NONE || choice->job == verdict->job) &&
           (choice->rank == RANK_NONE || names_rank(tap, verdict));
}

// Whether this one of those that match is to be taken; one that is beyond the rate is counted.
static bool is_chosen(struct tap *tap) {
    if (tap->choice.every > 1 && tap->matched++ % tap->choice.every != 0)
        return false;
    if (tap->taken < tap->choice.rate)
        return true;
    leave_out(tap, 1);
    return false;
}

static void take_event(struct tap *tap, const struct event *event) {
    void *room = ring_room(tap, tap_event_size(event), RECORD_EVENT);
    if (room == NULL) {
        leave_out(tap, 1);
        return;
    }
    tap_event_copy(event, room);
    ring_commit(tap);
}

// The text is made here: a verdict has more parts than a copy is worth, and few come.
static void take_verdict(struct tap *tap, const struct verdict *verdict) {
    buffer_reset(&tap->text);
    buffer_append_text(&tap->text, "{\"verdict\":");
    verdict_encode(verdict, &tap->text);
    if (!tap->text.failed && tap->text.size > 0)
        tap->text.size--; // its newline
    buffer_append_text(&tap->text, verdict->unchanged ? ",\"unchanged\":true}\n" : "}\n");
    void *room =
        tap->text.failed ? NULL : ring_room(tap, sizeof(uint64_t) + tap->text.size, RECORD_VERDICT);
    if (room == NULL) {
        leave_out(tap, 1);
        return;
    }
    uint64_t size = tap->text.size;
    memcpy(room, &size, sizeof size);
    memcpy((char *)room + sizeof size, tap->text.data, tap->text.size);
    ring_commit(tap);
}

static void note_events(struct tap *tap, const struct batch *batch) {
    for (uint32_t i = 0; i < batch->event_count; i++)
        if (batch_selects(batch, i) && wants_event(tap, &batch->events[i]) && is_chosen(tap))
            take_event(tap, &batch->events[i]);
}

static void note_batch(struct tap *tap, const struct batch *batch, uint32_t first_verdict) {
    assert(tap->magic == TAP_MAGIC);
    uint64_t now = clock_monotonic_ns();
    if (tap->second_ns == 0 || now - tap->second_ns >= SECOND_NS) {
        tap->second_ns = now;
        tap->taken = 0;
    }
    if (batch->event_count > 0)
        note_events(tap, batch);
    for (uint32_t i = first_verdict; i < batch->verdicts.count && tap->choice.verdicts; i++)
        if (wants_verdict(tap, &batch->verdicts.items[i]) && is_chosen(tap))
            take_verdict(tap, &batch->verdicts.items[i]);
}

void tap_set_note(const struct tap_set *set, int32_t point, const struct batch *batch,
                  uint32_t first_verdict) {
    assert(set->count <= TAPS_MAX);
    if (batch->event_count == 0 && batch->verdicts.count <= first_verdict)
        return;
    for (uint32_t i = 0; i < set->count; i++)
        if (set->items[i]->choice.point == point)
            note_batch(set->items[i], batch, first_verdict);
}

bool tap_set_add(struct tap_set *set, struct tap *tap) {
    assert(tap->magic == TAP_MAGIC);
    if (set->count == TAPS_MAX)
        return false;
    set->items[set->count++] = tap;
    return true;
}

void tap_set_remove(struct tap_set *set, struct tap *tap) {
    assert(set->count <= TAPS_MAX);
    for (uint32_t i = 0; i < set->count; i++)
        if (set->items[i] == tap) {
            set->items[i] = set->items[--set->count];
            return;
        }
}

// -- the reader -----------------------------------------------------------------------------------

bool tap_next(struct tap *tap, struct buffer *out) {
    assert(tap->magic == TAP_MAGIC);
    uint64_t read = atomic_load_explicit(&tap->read, memory_order_relaxed);
    while (read < atomic_load_explicit(&tap->written, memory_order_acquire)) {
        const struct record_head *head =
            (const struct record_head *)(const void *)(tap->ring + read % TAP_RING_BYTES);
        enum record_kind kind = (enum record_kind)head->kind;
        uint64_t size;
        if (kind == RECORD_EVENT) {
            tap_event_encode(head + 1, out);
        } else if (kind == RECORD_VERDICT) {
            memcpy(&size, head + 1, sizeof size);
            buffer_append(out, (struct slice){(const char *)(head + 1) + sizeof size, size});
        }
        read += head->size;
        atomic_store_explicit(&tap->read, read, memory_order_release);
        if (kind != RECORD_SKIP)
            return true;
    }
    return false;
}

uint64_t tap_left_out(const struct tap *tap) {
    assert(tap->magic == TAP_MAGIC);
    return atomic_load_explicit(&tap->left_out, memory_order_relaxed);
}
