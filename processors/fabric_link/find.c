// SPDX-License-Identifier: Apache-2.0
// Puts what was said together: of each card what has no gap longer than `window`, of NVLink of each
// node what has none longer than `burst`. O(rows · log).
#include "base/sort.h"
#include "pipeline/model/node_event.h"
#include "processors/cluster/compare.h"
#include "processors/fabric_link/parts.h"

static bool is_nvlink(const struct link_said *said) {
    return said->what >= LINK_XID;
}

const char *link_item_uid(const struct link_item *item, struct arena *arena) {
    return item->uid != NULL ? item->uid : link_said_uid(item->said, arena);
}

static struct link_item item_of(const struct fabric_link *self, const struct link_said *said) {
    struct link_item item = {.said = said,
                             .node = said->node,
                             .address = said->address,
                             .device = STRING_NONE,
                             .time_ns = said->time_ns};
    if (said->address == PCI_NONE) {
        const string_id key[] = {said->node, said->device};
        const struct card_name *name = keyed_rows_find(&self->log.names, key);
        item.address = name == NULL ? PCI_NONE : name->address;
        item.device = name == NULL ? said->device : STRING_NONE;
    }
    return item;
}

// NVLink of a node is one; of cards each.
static int compare_places(const struct link_item *a, const struct link_item *b) {
    int order = COMPARE(is_nvlink(a->said), is_nvlink(b->said));
    order = order != 0 ? order : compare_strings(a->node, b->node);
    if (order != 0 || is_nvlink(a->said))
        return order;
    order = COMPARE(a->address, b->address);
    return order != 0 ? order : compare_strings(a->device, b->device);
}

static int compare_items(const void *left, const void *right) {
    const struct link_item *a = left, *b = right;
    int order = compare_places(a, b);
    return order != 0 ? order : COMPARE(a->time_ns, b->time_ns);
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
        for (to = from + 1; to < count && compare_items(&items[from], &items[to]) == 0;)
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
    uint32_t count = 0, all = keyed_rows_count(&self->log.rows);
    struct link_item *items = arena_take(arena, (all + 1) * sizeof *items);
    struct fabric_faults faults = {arena_take(arena, (all + 1) * sizeof *faults.items), 0};
    for (uint32_t at = 0; (said = keyed_rows_next(&self->log.rows, &at)) != NULL;)
        if (said->time_ns <= now_ns)
            items[count++] = item_of(self, said);
    sort_stable(items, count, sizeof *items, arena, compare_items);
    order_moments(items, count, arena);
    for (uint32_t from = 0, to; from < count; from = to) {
        bool nvlink = is_nvlink(items[from].said);
        uint64_t gap_ns = duration_ns(nvlink ? self->config.burst : self->config.window);
        for (to = from + 1; to < count && compare_places(&items[from], &items[to]) == 0 &&
                            items[to].time_ns - items[to - 1].time_ns <= gap_ns;)
            to++;
        struct fabric_fault fault =
            nvlink ? nvlink_fault(&self->config, items + from, to - from)
                   : port_fault(&self->config, items + from, to - from, now_ns);
        if (fault.kind != FABRIC_NONE)
            faults.items[faults.count++] = fault;
    }
    sort_stable(faults.items, faults.count, sizeof *faults.items, arena, compare_faults);
    return faults;
}
