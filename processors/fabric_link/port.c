// SPDX-License-Identifier: Apache-2.0
// What is wrong with the port of a card. A card that does not answer is graver than a link that is
// down, that graver than one that flaps, and that than one with errors; but a link that goes up and
// down flaps, unless it stays down. A short bounce is none: links bounce when a job starts.
// O(items).
#include "processors/fabric_link/parts.h"

#include <assert.h>

// Stretches in which the link was down.
struct downs {
    const struct link_item *longest, *open; // where they begin; `open`: the last has no end
    uint64_t longest_ns;
};

static void take_down(struct downs *downs, const struct link_item *from, uint64_t until_ns) {
    uint64_t length_ns = until_ns - from->time_ns;
    if (downs->longest == NULL || length_ns > downs->longest_ns) {
        downs->longest = from;
        downs->longest_ns = length_ns;
    }
}

static struct downs find_downs(const struct link_item *items, uint32_t count, uint64_t now_ns) {
    struct downs downs = {0};
    for (uint32_t i = 0; i < count; i++) {
        if (items[i].what == LINK_DOWN && downs.open == NULL)
            downs.open = &items[i];
        if (items[i].what != LINK_UP || downs.open == NULL)
            continue;
        take_down(&downs, downs.open, items[i].time_ns);
        downs.open = NULL;
    }
    if (downs.open != NULL)
        take_down(&downs, downs.open, now_ns);
    return downs;
}

// Several sources tell of one flap, so each is counted by itself.
enum flap_source { FLAP_BY_LINE, FLAP_BY_STATE, FLAP_BY_COUNTER, FLAP_SOURCE_COUNT };

static int64_t flaps_of(const struct link_item *item, enum flap_source source) {
    if (source == FLAP_BY_COUNTER)
        return item->counter == PORT_LINK_DOWNED ? item->rise : 0;
    return item->what == LINK_DOWN && item->sampled == (source == FLAP_BY_STATE);
}

static int64_t errors_of(const struct link_item *item, enum flap_source source) {
    (void)source;
    return item->counter != PORT_LINK_DOWNED ? item->rise : 0;
}

struct peak {
    int64_t number;
    const struct link_item *first; // of the stretch with the most
};

// The most within the window. A stretch of time of one source.
static struct peak most_within(const struct fabric_config *config, const struct link_item *items,
                               uint32_t count,
                               int64_t (*weigh)(const struct link_item *, enum flap_source),
                               enum flap_source source) {
    struct peak peak = {0};
    int64_t sum = 0;
    for (uint32_t i = 0, first = 0; i < count; i++) {
        int64_t weight = weigh(&items[i], source);
        if (weight == 0)
            continue;
        sum += weight;
        for (; items[i].time_ns - items[first].time_ns > duration_ns(config->window); first++)
            sum -= weigh(&items[first], source);
        while (weigh(&items[first], source) == 0)
            first++;
        if (sum > peak.number)
            peak = (struct peak){sum, &items[first]};
    }
    return peak;
}

static struct peak most_flaps(const struct fabric_config *config, const struct link_item *items,
                              uint32_t count) {
    struct peak peak = {0};
    for (enum flap_source source = 0; source < FLAP_SOURCE_COUNT; source++) {
        struct peak own = most_within(config, items, count, flaps_of, source);
        if (own.number > peak.number)
            peak = own;
    }
    return peak;
}

static const struct link_item *first_of(const struct link_item *items, uint32_t count,
                                        enum link_what what) {
    for (uint32_t i = 0; i < count; i++)
        if (items[i].what == what)
            return &items[i];
    return NULL;
}

// The first that has a port, else the first.
static const struct link_said *named(const struct link_item *items, uint32_t count) {
    const struct link_item *best = NULL;
    for (uint32_t i = 0; i < count && (best == NULL || best->port < 0); i++)
        if (items[i].name != STRING_NONE && (best == NULL || items[i].port >= 0))
            best = &items[i];
    return best == NULL ? NULL : best->said;
}

static void name_it(struct fabric_fault *fault, enum fabric_kind kind,
                    const struct link_item *anchor, enum severity severity, int64_t number) {
    fault->kind = kind;
    fault->anchor = anchor;
    fault->severity = severity;
    fault->number = number;
}

struct fabric_fault port_fault(const struct fabric_config *config, const struct link_item *items,
                               uint32_t count, uint64_t now_ns) {
    assert(count > 0);
    struct fabric_fault fault = {.node = items->place.node,
                                 .address = items->place.address,
                                 .device = items->place.device,
                                 .items = items,
                                 .count = count,
                                 .action = "check_link",
                                 .last_ns = items[count - 1].time_ns};
    struct downs downs = find_downs(items, count, now_ns);
    struct peak flaps = most_flaps(config, items, count);
    struct peak errors = most_within(config, items, count, errors_of, 0);
    const struct link_item *failed = first_of(items, count, LINK_FAILED);
    const struct link_item *lost = first_of(items, count, LINK_LOST);
    const struct link_item *trouble = first_of(items, count, LINK_TROUBLE);
    bool is_long = downs.longest != NULL && downs.longest_ns >= duration_ns(config->settle);
    bool stays = downs.open != NULL && now_ns - downs.open->time_ns >= duration_ns(config->settle);
    if (failed != NULL) {
        name_it(&fault, FABRIC_DOWN, failed, SEVERITY_CRITICAL, 0);
        fault.failed = true;
        fault.action = "drain_node";
    } else if (flaps.number >= config->flaps && !stays) {
        name_it(&fault, FABRIC_FLAPPING, flaps.first, SEVERITY_ERROR, flaps.number);
    } else if (stays || is_long || lost != NULL) {
        const struct link_item *down = stays ? downs.open : is_long ? downs.longest : lost;
        name_it(&fault, FABRIC_DOWN, down, SEVERITY_ERROR, 0);
        fault.is_up = is_long && !stays;
        fault.down_ns = fault.is_up ? downs.longest_ns : 0;
    } else if (errors.number > config->errors) {
        name_it(&fault, FABRIC_ERRORS, errors.first, SEVERITY_WARNING, errors.number);
    } else if (trouble != NULL) {
        name_it(&fault, FABRIC_ERRORS, trouble, SEVERITY_WARNING, 0);
    }
    if (fault.kind == FABRIC_NONE)
        return fault;
    assert(fault.anchor != NULL); // name_it
    fault.first_ns = fault.anchor->time_ns;
    fault.named = named(items, count);
    return fault;
}
