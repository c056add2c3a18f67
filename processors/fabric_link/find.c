// SPDX-License-Identifier: Apache-2.0
// Puts what was said together: of each card what has no gap longer than `window`, of NVLink of each
// node what has none longer than `burst`. O(rows) where they stand in order of time, O(rows · log)
// at most.
#include "base/sort.h"
#include "pipeline/model/node_event.h"
#include "processors/cluster/compare.h"
#include "processors/cluster/group_sort.h"
#include "processors/fabric_link/parts.h"

const char *link_item_uid(const struct link_item *item, struct arena *arena) {
    return item->uid != NULL ? item->uid : link_said_uid(item->said, arena);
}

static bool is_nvlink(const struct link_item *item) {
    return item->place.address == LINK_OF_NODE;
}

static struct link_place place_of(const struct fabric_link *self, const struct link_said *said) {
    struct link_place place = {said->address, said->node, STRING_NONE};
    if (said->what >= LINK_XID)
        place.address = LINK_OF_NODE;
    else if (said->address == PCI_NONE) {
        const string_id key[] = {said->node, said->device};
        const struct card_name *name = keyed_rows_find(&self->log.names, key);
        place.address = name == NULL ? PCI_NONE : name->address;
        place.device = name == NULL ? said->device : STRING_NONE;
    }
    return place;
}

static struct link_item item_of(const struct fabric_link *self, const struct link_said *said) {
    return (struct link_item){.said = said,
                              .place = place_of(self, said),
                              .time_ns = said->time_ns,
                              .rise = said->what == LINK_COUNTED ? said->to - said->from : 0,
                              .name = said->device,
                              .port = said->port,
                              .what = (uint8_t)said->what,
                              .counter = (uint8_t)said->counter,
                              .sampled = said->sampled != 0};
}

// NVLink of a node is one; of cards each.
static int compare_places(const void *left, const void *right) {
    const struct link_item *a = left, *b = right;
    int order = COMPARE(is_nvlink(a), is_nvlink(b));
    order = order != 0 ? order : compare_strings(a->place.node, b->place.node);
    order = order != 0 ? order : COMPARE(a->place.address, b->place.address);
    return order != 0 ? order : compare_strings(a->place.device, b->place.device);
}

static int compare_moments(const void *left, const void *right) {
    return COMPARE(((const struct link_item *)left)->time_ns,
                   ((const struct link_item *)right)->time_ns);
}

static const struct group_order BY_PLACE = {
    .item_size = sizeof(struct link_item),
    .key_offset = offsetof(struct link_item, place),
    .key_size = sizeof(struct link_place),
    .compare_groups = compare_places,
    .compare = compare_moments,
};

static bool is_one_place(const struct link_place *a, const struct link_place *b) {
    return a->address == b->address && a->node == b->node && a->device == b->device;
}

// Of one place and moment. Two links of a GPU may share a uid: a report names both, one is told.
static int compare_said(const void *left, const void *right) {
    const struct link_item *a = left, *b = right;
    return COMPARE_KEYS(strcmp(a->uid, b->uid), COMPARE(a->said->port, b->said->port),
                        slice_compare((struct slice){a->said->text, a->said->text_size},
                                      (struct slice){b->said->text, b->said->text_size}));
}

// Names are made only of those that time does not order.
static void order_moments(struct link_item *items, uint32_t count, struct arena *arena) {
    for (uint32_t from = 0, to; from < count; from = to) {
        for (to = from + 1; to < count && items[from].time_ns == items[to].time_ns &&
                            is_one_place(&items[from].place, &items[to].place);)
            to++;
        if (to == from + 1)
            continue;
        for (uint32_t i = from; i < to; i++)
            items[i].uid = link_said_uid(items[i].said, arena);
        sort_stable(items + from, to - from, sizeof *items, arena, compare_said);
    }
}

static int compare_faults(const void *left, const void *right) {
    const struct fabric_fault *a = left, *b = right;
    int order = COMPARE(a->first_ns, b->first_ns);
    order = order != 0 ? order : compare_strings(a->node, b->node);
    order = order != 0 ? order : COMPARE(a->address, b->address);
    return order != 0 ? order : compare_strings(a->device, b->device);
}

struct fabric_faults fabric_find(const struct fabric_link *self, uint64_t now_ns,
                                 struct arena *arena) {
    const struct link_said *said;
    uint32_t count = 0, lost = 0, links = 0, all = keyed_rows_count(&self->log.rows);
    const struct link_said **lost_gpus = arena_take(arena, (all + 1) * sizeof *lost_gpus);
    struct link_item *items = arena_take(arena, (all + 1) * sizeof *items);
    struct fabric_faults faults = {NULL, 0};
    uint32_t room = 0;
    struct restart_list states = link_log_restarts(&self->log, arena);
    for (uint32_t at = 0; (said = keyed_rows_next(&self->log.rows, &at)) != NULL;)
        if (said->time_ns <= now_ns && said->what >= LINK_GPU_LOST)
            lost_gpus[lost++] = said;
        else if (said->time_ns <= now_ns && !restart_list_excuses(&states, said)) {
            links += said->what >= LINK_XID;
            items[count++] = item_of(self, said);
        }
    // A lost GPU alone, or what the driver asks for, has nothing to do with links.
    for (uint32_t i = 0; i < lost && links > 0; i++)
        items[count++] = item_of(self, lost_gpus[i]);
    items = group_sort(&BY_PLACE, items, count, arena);
    order_moments(items, count, arena);
    for (uint32_t from = 0, to; from < count; from = to) {
        bool nvlink = is_nvlink(&items[from]);
        uint64_t gap_ns = duration_ns(nvlink ? self->config.burst : self->config.window);
        for (to = from + 1; to < count && is_one_place(&items[from].place, &items[to].place) &&
                            items[to].time_ns - items[to - 1].time_ns <= gap_ns;)
            to++;
        struct fabric_fault fault =
            nvlink ? nvlink_fault(&self->config, items + from, to - from)
                   : port_fault(&self->config, items + from, to - from, now_ns);
        if (fault.kind == FABRIC_NONE)
            continue;
        if (faults.count == room) {
            room = room == 0 ? 64 : room * 2;
            faults.items =
                arena_enlarge(arena, faults.items, faults.count, room, sizeof *faults.items);
        }
        faults.items[faults.count++] = fault;
    }
    sort_stable(faults.items, faults.count, sizeof *faults.items, arena, compare_faults);
    return faults;
}
