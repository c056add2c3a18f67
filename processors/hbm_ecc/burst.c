// SPDX-License-Identifier: Apache-2.0
// Gathers the Xids and counter steps of a GPU that are one incident.
//
// Xids with no longer gap between them than a burst are one. A step of a counter happened somewhere
// between two samples, so it goes to the burst that this stretch reaches, however far apart samples
// are; steps that reach none are bursts of their own. Those that say nothing alone (a cleanup, a
// row marked for remapping, a page count) go with what they are near. A storm of corrected errors
// goes with what is graver while it stands. O(n log n + storms · bursts of a GPU).
#include "base/sort.h"
#include "pipeline/model/node_event.h"
#include "processors/cluster/compare.h"
#include "processors/cluster/tables.h"
#include "processors/hbm_ecc/parts.h"

#define NO_BURST UINT32_MAX

static enum ecc_kind kind_of_xid(const struct xid_entry *xid) {
    const struct xid_row *row = xid_find(xid->code);
    if (row == NULL)
        return ECC_NONE;
    if (row->hbm_role == XID_HBM_STORM)
        return ECC_STORM;
    if (row->hbm_role != XID_HBM_ANCHOR)
        return ECC_NONE;
    if (xid->code == 94)
        return ECC_CONTAINED;
    if (xid->code == 95 || xid->code == 140)
        return ECC_UNCONTAINED;
    return xid->code == 64 ? ECC_FAILED : ECC_UNCORRECTABLE;
}

static enum ecc_kind kind_of_step(const struct ecc_step *step) {
    static const enum ecc_kind KINDS[ECC_FIELD_COUNT] = {
        [ECC_UNCORRECTED] = ECC_UNCORRECTABLE, [ECC_UNCORRECTED_LIFETIME] = ECC_UNCORRECTABLE,
        [ECC_REMAP_FAILED] = ECC_FAILED,       [ECC_REMAP_PENDING] = ECC_PENDING,
        [ECC_RETIRED_PENDING] = ECC_PENDING,
    };
    assert(step->field < ECC_FIELD_COUNT);
    enum ecc_kind kind = KINDS[step->field];
    return kind == ECC_NONE && step->is_limit != 0 ? ECC_LIMIT : kind;
}

static bool is_corrected(const struct ecc_step *step) {
    return step->field == ECC_CORRECTED || step->field == ECC_CORRECTED_LIFETIME;
}

static int compare_gpus(const struct ecc_item *a, const struct ecc_item *b) {
    return COMPARE_KEYS(COMPARE(a->node, b->node), COMPARE(a->address, b->address),
                        COMPARE(a->uuid, b->uuid));
}

static uint32_t number_of(const struct ecc_item *item) {
    assert((item->xid == NULL) != (item->step == NULL));
    return item->xid != NULL ? item->xid->code : item->step->field;
}

// By GPU, Xids before steps, then time, then code or field.
static int compare_items(const void *left, const void *right) {
    const struct ecc_item *a = left, *b = right;
    int order = compare_gpus(a, b);
    return order != 0
               ? order
               : COMPARE_KEYS(COMPARE(a->xid == NULL, b->xid == NULL),
                              COMPARE(a->time_ns, b->time_ns), COMPARE(number_of(a), number_of(b)));
}

struct item_list {
    struct ecc_item *items;
    uint32_t count;
};

// The address of the step's GPU, PCI_NONE where nobody told it.
static pci_address address_of(const struct hbm_ecc *self, const struct ecc_step *step) {
    return step->address != PCI_NONE ? step->address
                                     : gpu_names_address(&self->names, step->node, step->uuid);
}

static struct item_list list_items(const struct hbm_ecc *self, uint64_t now_ns,
                                   struct arena *arena) {
    const struct xid_entry *xid;
    const struct ecc_step *step;
    const struct keyed_rows *xids = &self->xids.rows, *steps = &self->counters.steps;
    size_t room = (size_t)keyed_rows_count(xids) + keyed_rows_count(steps) + 1;
    struct item_list list = {arena_zero(arena, room, sizeof *list.items), 0};
    for (uint32_t at = 0; (xid = keyed_rows_next(xids, &at)) != NULL;)
        if (xid->time_ns <= now_ns)
            list.items[list.count++] = (struct ecc_item){.xid = xid,
                                                         .node = xid->node,
                                                         .address = xid->address,
                                                         .time_ns = xid->time_ns,
                                                         .since_ns = xid->time_ns,
                                                         .kind = kind_of_xid(xid)};
    for (uint32_t at = 0; (step = keyed_rows_next(steps, &at)) != NULL;) {
        if (step->time_ns > now_ns)
            continue;
        pci_address address = address_of(self, step);
        list.items[list.count++] =
            (struct ecc_item){.step = step,
                              .node = step->node,
                              .uuid = address == PCI_NONE ? step->uuid : STRING_NONE,
                              .address = address,
                              .time_ns = step->time_ns,
                              .since_ns = step->since_ns,
                              .kind = kind_of_step(step)};
    }
    sort_stable(list.items, list.count, sizeof *list.items, arena, compare_items);
    return list;
}

static const struct ecc_item *first_corrected(struct item_list gpu, uint32_t from) {
    while (gpu.items[from].step == NULL || !is_corrected(gpu.items[from].step))
        from++;
    return &gpu.items[from];
}

// The corrected errors within the window, as the items go by.
struct storm_sum {
    uint32_t oldest;
    int64_t sum;
    struct ecc_item *standing; // the item with which a storm began that is not over; NULL: none
};

// Forgets those before `items[to]` that are out of the window at `now_ns`. A storm is over as soon
// as there are no more than the limit.
static void slide(const struct ecc_config *config, struct item_list gpu, uint32_t to,
                  uint64_t now_ns, struct storm_sum *storm) {
    uint64_t window_ns = duration_ns(config->storm_window);
    for (; storm->oldest < to; storm->oldest++) {
        const struct ecc_item *old = &gpu.items[storm->oldest];
        if (old->step == NULL || !is_corrected(old->step))
            continue;
        if (now_ns - old->time_ns < window_ns)
            break;
        storm->sum -= old->step->to - old->step->from;
        if (storm->standing == NULL || storm->sum > config->storm_errors)
            continue;
        storm->standing->storm_until_ns = old->time_ns + window_ns;
        storm->standing = NULL;
    }
}

// Marks the step with which more corrected errors are within the window than the limit, once until
// they are no longer.
static void find_storms(const struct ecc_config *config, struct item_list gpu) {
    struct storm_sum storm = {0};
    for (uint32_t i = 0; i < gpu.count; i++) {
        struct ecc_item *item = &gpu.items[i];
        if (item->xid != NULL && item->kind == ECC_STORM)
            item->storm_until_ns = item->time_ns + duration_ns(config->storm_window);
        if (item->step == NULL || !is_corrected(item->step))
            continue;
        storm.sum += item->step->to - item->step->from;
        slide(config, gpu, i, item->time_ns, &storm);
        if (storm.sum > config->storm_errors && storm.standing == NULL) {
            item->kind = ECC_STORM;
            item->storm = storm.sum;
            item->storm_first = first_corrected(gpu, storm.oldest);
            storm.standing = item;
        }
    }
    slide(config, gpu, gpu.count, UINT64_MAX, &storm);
}

// A burst in the making.
struct span {
    uint64_t first_ns, last_ns;
};

struct span_list {
    struct span *items; // those of Xids, then those of steps; each ascending and apart
    uint32_t xid_count;
    uint32_t count;
};

static uint64_t distance(const struct span *span, const struct ecc_item *item) {
    assert(span->first_ns <= span->last_ns);
    if (item->since_ns > span->last_ns)
        return item->since_ns - span->last_ns;
    return item->time_ns < span->first_ns ? span->first_ns - item->time_ns : 0;
}

// Of the spans from `from` to `to` the nearest to the item that is no further than *within, of
// equally near ones the first; NO_BURST: none. *within becomes its distance.
static uint32_t nearest(const struct span_list *spans, uint32_t from, uint32_t to,
                        const struct ecc_item *item, uint64_t *within) {
    assert(from <= to && to <= spans->count);
    uint32_t low = from, high = to, best = NO_BURST;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (spans->items[middle].last_ns < item->since_ns)
            low = middle + 1;
        else
            high = middle;
    }
    // The last that ended before the item, and the first that did not.
    for (uint32_t i = low > from ? low - 1 : low; i <= low && i < to; i++) {
        uint64_t apart = distance(&spans->items[i], item);
        if (apart < *within || (apart == *within && best == NO_BURST)) {
            best = i;
            *within = apart;
        }
    }
    return best;
}

// The span that goes on until `last_ns`: the last one, when it is of this kind and near enough.
static void join_or_begin(const struct ecc_config *config, struct span_list *spans, uint32_t from,
                          struct ecc_item *item) {
    assert(from <= spans->count);
    struct span *last = spans->count > from ? &spans->items[spans->count - 1] : NULL;
    if (last == NULL || item->time_ns - last->last_ns > duration_ns(config->burst))
        spans->items[spans->count++] = (struct span){item->time_ns, item->time_ns};
    else
        last->last_ns = item->time_ns;
    item->burst = spans->count - 1;
}

// Which burst each item of one GPU is in.
static struct span_list assign(const struct ecc_config *config, struct item_list gpu,
                               struct arena *arena) {
    struct span_list spans = {arena_take(arena, (gpu.count + 1) * sizeof *spans.items), 0, 0};
    for (uint32_t i = 0; i < gpu.count; i++) {
        gpu.items[i].burst = NO_BURST;
        if (gpu.items[i].xid != NULL && gpu.items[i].kind != ECC_NONE)
            join_or_begin(config, &spans, 0, &gpu.items[i]);
    }
    spans.xid_count = spans.count;
    for (uint32_t i = 0; i < gpu.count; i++) {
        struct ecc_item *item = &gpu.items[i];
        uint64_t within_ns = duration_ns(config->burst);
        if (item->step == NULL || item->kind == ECC_NONE)
            continue;
        item->burst = nearest(&spans, 0, spans.xid_count, item, &within_ns);
        if (item->burst == NO_BURST)
            join_or_begin(config, &spans, spans.xid_count, item);
    }
    for (uint32_t i = 0; i < gpu.count; i++) {
        struct ecc_item *item = &gpu.items[i];
        uint64_t within_ns = duration_ns(config->burst);
        if (item->kind != ECC_NONE || (item->step != NULL && is_corrected(item->step)))
            continue;
        item->burst = nearest(&spans, 0, spans.xid_count, item, &within_ns);
        uint32_t other = nearest(&spans, spans.xid_count, spans.count, item, &within_ns);
        if (item->burst == NO_BURST ||
            (other != NO_BURST && distance(&spans.items[item->burst], item) > within_ns))
            item->burst = other;
    }
    return spans;
}

static void add_item(struct ecc_burst *burst, const struct ecc_item *item) {
    assert(burst->items != NULL);
    burst->items[burst->count++] = item;
    burst->kind = item->kind > burst->kind ? item->kind : burst->kind;
    burst->last_ns = item->time_ns > burst->last_ns ? item->time_ns : burst->last_ns;
    if (item->kind != ECC_NONE && (burst->anchor == NULL || item->time_ns < burst->anchor->time_ns))
        burst->anchor = item;
}

// Deals the items of one GPU out to their bursts.
static void fill(struct ecc_burst *bursts, uint32_t count, struct item_list gpu,
                 struct arena *arena) {
    uint32_t *sizes = arena_zero(arena, count + 1, sizeof *sizes);
    for (uint32_t i = 0; i < gpu.count; i++)
        if (gpu.items[i].burst != NO_BURST)
            sizes[gpu.items[i].burst]++;
    for (uint32_t i = 0; i < count; i++)
        bursts[i] = (struct ecc_burst){
            .items = arena_take(arena, (sizes[i] + 1) * sizeof *bursts[i].items)};
    for (uint32_t i = 0; i < gpu.count; i++)
        if (gpu.items[i].burst != NO_BURST)
            add_item(&bursts[gpu.items[i].burst], &gpu.items[i]);
}

// -- a storm beside something graver --------------------------------------------------------------

static uint64_t storm_from(const struct ecc_burst *storm) {
    const struct ecc_item *first = storm->anchor->storm_first;
    return first != NULL ? first->time_ns : storm->anchor->time_ns;
}

static uint64_t storm_until(const struct ecc_burst *storm) {
    uint64_t until_ns = storm->last_ns;
    for (uint32_t i = 0; i < storm->count; i++)
        if (storm->items[i]->storm_until_ns > until_ns)
            until_ns = storm->items[i]->storm_until_ns;
    return until_ns;
}

// What happened while the storm stood, of several the first; NULL: nothing.
static struct ecc_burst *graver_within(struct ecc_burst *bursts, uint32_t count,
                                       const struct ecc_burst *storm) {
    uint64_t from_ns = storm_from(storm), until_ns = storm_until(storm);
    struct ecc_burst *first = NULL;
    for (uint32_t i = 0; i < count; i++) {
        struct ecc_burst *burst = &bursts[i];
        if (burst->kind > ECC_STORM && burst->last_ns >= from_ns &&
            burst->anchor->since_ns <= until_ns &&
            (first == NULL || burst->anchor->time_ns < first->anchor->time_ns))
            first = burst;
    }
    return first;
}

// Items lie in one array, in the order that a burst has.
static void take_items(struct ecc_burst *burst, const struct ecc_burst *storm,
                       struct arena *arena) {
    const struct ecc_item **items =
        arena_take(arena, (burst->count + storm->count) * sizeof *items);
    uint32_t own = 0, other = 0, count = burst->count + storm->count;
    for (uint32_t i = 0; i < count; i++)
        items[i] =
            other == storm->count || (own < burst->count && burst->items[own] < storm->items[other])
                ? burst->items[own++]
                : storm->items[other++];
    struct ecc_burst both = {.items = items, .has_storm = true};
    for (uint32_t i = 0; i < count; i++)
        add_item(&both, items[i]);
    *burst = both;
}

// Corrected errors and what is graver are one trouble of one memory: the graver names it. Returns
// how many bursts are left.
static uint32_t join_storms(struct ecc_burst *bursts, uint32_t count, struct arena *arena) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct ecc_burst *graver =
            bursts[i].kind == ECC_STORM ? graver_within(bursts, count, &bursts[i]) : NULL;
        if (graver == NULL)
            continue;
        take_items(graver, &bursts[i], arena);
        bursts[i].kind = ECC_NONE;
    }
    for (uint32_t i = 0; i < count; i++)
        if (bursts[i].kind != ECC_NONE)
            bursts[kept++] = bursts[i];
    return kept;
}

static int compare_bursts(const void *left, const void *right) {
    const struct ecc_item *a = ((const struct ecc_burst *)left)->anchor;
    const struct ecc_item *b = ((const struct ecc_burst *)right)->anchor;
    int order = COMPARE(a->time_ns, b->time_ns);
    order = order != 0 ? order : compare_strings(a->node, b->node);
    order = order != 0 ? order : COMPARE(a->address, b->address);
    return order != 0 ? order : compare_strings(a->uuid, b->uuid);
}

struct ecc_bursts ecc_find_bursts(const struct hbm_ecc *self, uint64_t now_ns,
                                  struct arena *arena) {
    struct item_list all = list_items(self, now_ns, arena);
    struct ecc_bursts bursts = {arena_take(arena, (all.count + 1) * sizeof *bursts.items), 0};
    for (uint32_t from = 0, to; from < all.count; from = to) {
        for (to = from + 1; to < all.count && compare_gpus(&all.items[from], &all.items[to]) == 0;)
            to++;
        struct item_list gpu = {all.items + from, to - from};
        find_storms(&self->config, gpu);
        struct span_list spans = assign(&self->config, gpu, arena);
        fill(bursts.items + bursts.count, spans.count, gpu, arena);
        bursts.count += join_storms(bursts.items + bursts.count, spans.count, arena);
    }
    sort_stable(bursts.items, bursts.count, sizeof *bursts.items, arena, compare_bursts);
    return bursts;
}

int64_t ecc_corrected_errors(const struct hbm_ecc *self, const struct ecc_incident *incident,
                             uint64_t now_ns) {
    const struct ecc_step *step;
    int64_t sum = 0;
    for (uint32_t at = 0; (step = keyed_rows_next(&self->counters.steps, &at)) != NULL;) {
        if (!is_corrected(step) || step->node != incident->node || step->time_ns > now_ns ||
            now_ns - step->time_ns >= duration_ns(self->config.storm_window))
            continue;
        pci_address address = address_of(self, step);
        if (address == incident->address && (address != PCI_NONE || step->uuid == incident->uuid))
            sum += step->to - step->from;
    }
    return sum;
}
