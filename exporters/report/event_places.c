// SPDX-License-Identifier: Apache-2.0
// Finds the event that a piece of evidence names.
//
// Its uid begins with the kind of thing (fr:, xid:, dcgm: …) and names rank or node; its time is
// the event's. Events are sorted once by kind and time, then each piece is one search.
#include "exporters/report/event_places.h"

#include "base/memory.h"
#include "base/sort.h"
#include "base/text/cut.h"
#include "base/text/utf8.h"
#include "pipeline/model/observation.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

void event_places_release(struct event_places *places) {
    memory_give(places->items);
    *places = (struct event_places){.components = places->components};
}

void event_places_note(struct event_places *places, const struct batch *batch) {
    assert(places->count <= places->capacity && places->count <= EVENT_PLACES_MAX);
    for (uint32_t i = 0; i < batch->event_count; i++) {
        const struct event *event = &batch->events[i];
        if (places->count == EVENT_PLACES_MAX) {
            places->left_out++;
            continue;
        }
        places->items =
            memory_room(places->items, &places->capacity, places->count, sizeof *places->items);
        places->items[places->count++] = (struct event_place){
            .time_ns = event->time_ns,
            .position = event->position,
            .source = event->source,
            .node = event->node,
            .rank = event->rank,
            .kind = (uint16_t)event->kind,
            .class = (uint16_t)event_class(event),
            .unread = event->kind == EVENT_FLIGHT && event->flight->unreadable.data != NULL};
        places->sorted = false;
    }
}

static int compare_places(const void *left, const void *right) {
    const struct event_place *a = left;
    const struct event_place *b = right;
    return COMPARE_KEYS(COMPARE(a->kind, b->kind), COMPARE(a->time_ns, b->time_ns),
                        COMPARE(a->position, b->position), COMPARE(a->source, b->source));
}

// By the prefix that a component says its evidence has; without one it is telemetry.
static enum event_kind kind_of(struct component_set set, struct slice uid) {
    for (size_t i = 0; i < set.count; i++)
        for (size_t k = 0; k < set.types[i]->evidence_count; k++)
            if (text_begins(uid, slice_of(set.types[i]->evidence[k].prefix)))
                return (enum event_kind)set.types[i]->evidence[k].event;
    return EVENT_TELEMETRY;
}

// The number behind the last colon; RANK_NONE: none.
static int32_t last_number(struct slice uid) {
    const char *colon = memrchr(uid.data, ':', uid.size);
    uint64_t number;
    if (colon == NULL || !text_number(text_from(uid, (size_t)(colon + 1 - uid.data)), 9, &number))
        return RANK_NONE;
    return (int32_t)number;
}

static uint32_t first_of(const struct event_places *places, enum event_kind kind,
                         uint64_t time_ns) {
    assert(places->sorted);
    uint32_t low = 0, high = places->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct event_place *place = &places->items[middle];
        if (place->kind < kind || (place->kind == kind && place->time_ns < time_ns))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// Dumps are told by who wrote them: their entries have times of their own. What is told of those
// that could not be read names them so.
static const struct event_place *find_dump(const struct event_places *places, struct slice uid) {
    const int32_t rank = last_number(uid);
    const bool unread = memmem(uid.data, uid.size, ":unread:", 8) != NULL;
    const struct event_place *found = NULL;
    for (uint32_t i = first_of(places, EVENT_FLIGHT, 0);
         i < places->count && places->items[i].kind == EVENT_FLIGHT; i++)
        if (places->items[i].rank == rank && places->items[i].unread == unread)
            found = &places->items[i];
    return found;
}

// How well the event goes with the uid, which may name its node and what it is.
static int fit(const struct event_place *place, struct slice uid) {
    struct slice node = intern_slice(place->node);
    const char *class = event_class_name(place->class);
    bool same_node = node.size > 0 && memmem(uid.data, uid.size, node.data, node.size) != NULL;
    bool same_class = class != NULL && memmem(uid.data, uid.size, class, strlen(class)) != NULL;
    return 2 * same_class + same_node;
}

const struct event_place *event_places_find(struct event_places *places,
                                            const struct evidence *evidence) {
    enum event_kind kind = kind_of(places->components, evidence->uid);
    if (!places->sorted && places->count > 1)
        qsort(places->items, places->count, sizeof *places->items, compare_places);
    places->sorted = true;
    if (kind == EVENT_FLIGHT)
        return find_dump(places, evidence->uid);
    if (!evidence->has_time)
        return NULL;
    enum { BEST = 3 };
    const struct event_place *found = NULL;
    int best = -1;
    for (uint32_t i = first_of(places, kind, evidence->time_ns); i < places->count && best < BEST;
         i++) {
        const struct event_place *place = &places->items[i];
        if (place->kind != kind || place->time_ns != evidence->time_ns)
            break;
        int here = fit(place, evidence->uid);
        if (here > best) {
            best = here;
            found = place;
        }
    }
    return found;
}

// Where a line that is longer than `max` bytes ends best.
static size_t sensible_end(struct slice line, size_t max) {
    bool quoted = false, escaped = false;
    size_t comma = 0, space = 0, character = 0;
    for (size_t at = 0; at < max;) {
        uint32_t code_point = 0;
        size_t length = utf8_decode(line, at, &code_point);
        length = length == 0 ? 1 : length;
        if (at + length > max)
            break;
        if (escaped)
            escaped = false;
        else if (code_point == '\\' && quoted)
            escaped = true;
        else if (code_point == '"')
            quoted = !quoted;
        else if (code_point == ',' && !quoted)
            comma = at + 1;
        else if (code_point == ' ' && !quoted)
            space = at;
        at += length;
        character = at;
    }
    return comma > max / 2 ? comma : space > max / 2 ? space : character;
}

static struct slice line_cut(struct slice line, struct arena *arena, size_t max) {
    if (line.size <= max)
        return arena_copy(arena, line);
    return slice_of(arena_format(arena, "%.*s ...", (int)sensible_end(line, max), line.data));
}

struct slice event_place_line(const struct event_place *place, struct arena *arena, size_t max) {
    assert(arena != NULL && max > 0);
    struct slice path = intern_slice(place->source);
    char *line = NULL;
    size_t capacity = 0;
    struct slice found = {"", 0};
    FILE *file = path.size == 0 ? NULL : fopen(path.data, "re");
    if (file == NULL)
        return found;
    for (uint64_t number = 1; number <= place->position; number++) {
        ssize_t size = getline(&line, &capacity, file);
        if (size < 0 || (number == 1 && size >= 2 && memcmp(line, "\x1f\x8b", 2) == 0))
            break;
        while (size > 0 && (line[size - 1] == '\n' || line[size - 1] == '\r'))
            size--;
        if (number == place->position)
            found = line_cut((struct slice){line, (size_t)size}, arena, max);
    }
    free(line);
    fclose(file);
    return found;
}
