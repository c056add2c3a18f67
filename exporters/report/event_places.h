// SPDX-License-Identifier: Apache-2.0
// Where in the input each event stood, so that a piece of evidence can be shown as it was written.
//
// 32 bytes an event, at most EVENT_PLACES_MAX; for a person who asks, not for pipelines that run
// for days.
#pragma once

#include "pipeline/component/component.h"

enum { EVENT_PLACES_MAX = 1 << 24 };

struct event_place {
    uint64_t time_ns;
    uint64_t position; // line or item
    string_id source;  // path
    string_id node;
    int32_t rank;
    uint16_t kind;  // enum event_kind
    uint16_t class; // event_class
    bool unread;    // a dump that could not be read
};

struct event_places {
    struct component_set components; // tell what their evidence names
    struct event_place *items;
    uint32_t count;
    uint32_t capacity;
    uint64_t left_out;
    bool sorted;
};

void event_places_release(struct event_places *places);
void event_places_note(struct event_places *places, const struct batch *batch);
// The event that this evidence is about, as far as its kind, time, rank and node tell; NULL: none.
const struct event_place *event_places_find(struct event_places *places,
                                            const struct evidence *evidence);
// The line at that place; a longer one than `max` bytes is cut behind a comma outside quotes, at a
// space, or at least between two characters, and then ends in " ...". Empty when the input has no
// lines, is compressed, or is gone.
struct slice event_place_line(const struct event_place *place, struct arena *arena, size_t max);
