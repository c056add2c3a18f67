// SPDX-License-Identifier: Apache-2.0
// How far the programs' clock is ahead is the most that was seen: less is a line that was held up
// on its way. Another zone is believed when a few lines in a row say it.
#include "receivers/decode/line/two_clocks.h"

#include "receivers/decode/line/transport.h"

enum { OTHER_LINES = 3 };
static const int64_t SECOND_NS = 1000000000;
static const int64_t QUARTER_NS = 15 * 60 * INT64_C(1000000000); // zones differ by multiples
static const int64_t SHORTLY_NS = 2 * 60 * INT64_C(1000000000);

static int64_t distance(int64_t a, int64_t b) {
    return a < b ? b - a : a - b;
}

static void note_difference(struct two_clocks *clock, int64_t ahead_ns) {
    if (!clock->known) {
        clock->known = true;
        clock->ahead_ns = ahead_ns;
        return;
    }
    if (distance(ahead_ns, clock->ahead_ns) < QUARTER_NS) {
        clock->others = 0;
        if (ahead_ns > clock->ahead_ns)
            clock->ahead_ns = ahead_ns;
        return;
    }
    bool same = clock->others > 0 && distance(ahead_ns, clock->other_ns) < QUARTER_NS;
    clock->other_ns = same && clock->other_ns > ahead_ns ? clock->other_ns : ahead_ns;
    clock->others = same ? clock->others + 1 : 1;
    if (clock->others < OTHER_LINES)
        return;
    clock->ahead_ns = clock->other_ns;
    clock->others = 0;
}

void two_clocks_note(struct two_clocks *clock, struct frame *frame) {
    uint64_t own_ns;
    if (!frame->carried)
        return;
    // Of a date without a year the carrier knows it.
    if (frame->origin != ORIGIN_KERNEL &&
        transport_read_program_time(frame->message, frame->zone, frame->time_ns, &own_ns))
        note_difference(clock, (int64_t)own_ns - (int64_t)frame->time_ns);
    frame->has_ahead = clock->known;
    frame->ahead_ns = clock->ahead_ns;
}

// How late the carrier is: what is missing of whole quarters of an hour. It may write whole
// seconds.
static int64_t delay_of(int64_t ahead_ns) {
    int64_t past_ns = ahead_ns % QUARTER_NS;
    return past_ns > SECOND_NS ? QUARTER_NS - past_ns : -past_ns;
}

// Where the source says nothing of the difference: whole quarters are a zone, what is left of them
// is how long ago it was.
static int64_t before_by_itself(int64_t before_ns, bool is_local) {
    if (is_local)
        before_ns = (before_ns % QUARTER_NS + QUARTER_NS) % QUARTER_NS;
    return before_ns <= SHORTLY_NS ? before_ns : 0;
}

uint64_t two_clocks_time(const struct frame *frame, uint64_t told_ns, unsigned told_as) {
    bool is_local = (told_as & TOLD_LOCAL) != 0;
    if (!frame->carried || (!frame->has_ahead && (told_as & TOLD_NOW) == 0))
        return told_ns;
    int64_t carrier_ns = (int64_t)frame->time_ns;
    int64_t before_ns = carrier_ns - (int64_t)told_ns;
    if (!frame->has_ahead)
        before_ns = before_by_itself(before_ns, is_local);
    else if (__builtin_add_overflow(
                 before_ns, is_local ? frame->ahead_ns : -delay_of(frame->ahead_ns), &before_ns))
        before_ns = 0;
    // Nobody tells of what comes about later.
    return (uint64_t)(before_ns > 0 && before_ns < carrier_ns ? carrier_ns - before_ns
                                                              : carrier_ns);
}
