// SPDX-License-Identifier: Apache-2.0
// Which Xids and lines of AMD's driver are one fault of one GPU, and what names it: of the gravest
// the first. A lost GPU is graver than any error, since errors are how a driver notices the loss.
// O(rows · log).
#include "base/sort.h"
#include "pipeline/model/observation.h"
#include "processors/cluster/compare.h"
#include "processors/cluster/group_sort.h"
#include "processors/cluster/tables.h"
#include "processors/gpu_fault/parts.h"

enum { XID_CLEANUP = 45, XID_LINK = 74, XID_LOST = 79, XID_LINKS_FROM = 144, XID_LINKS_TO = 150 };

// Those of NVLink are told of by fabric_link.
static bool is_link(uint32_t code) {
    return code == XID_LINK || (code >= XID_LINKS_FROM && code <= XID_LINKS_TO);
}

bool gpu_fault_wants(uint32_t code) {
    return xid_find(code) != NULL && !is_link(code);
}

static bool is_grave(const struct xid_row *row, struct xid_judgement judgement) {
    bool cause = row->class == XID_CLASS_HARDWARE || row->class == XID_CLASS_AMBIGUOUS;
    // Errors of the memory are told of by hbm_ecc.
    return cause && row->hbm_role != XID_HBM_ANCHOR && judgement.anchor != XID_ANCHOR_NO &&
           judgement.severity >= SEVERITY_ERROR && judgement.action != NULL;
}

const char *fault_item_uid(const struct fault_item *item, struct arena *arena) {
    if (item->uid != NULL)
        return item->uid;
    return item->xid != NULL ? xid_entry_uid(item->xid, arena) : amd_line_uid(item->amd, arena);
}

// What a code says. Most rows say the same as the one before.
struct judged_code {
    uint32_t code;
    bool fatal, is_known;
    enum gpu_fault_kind kind;
    struct xid_judgement judgement;
};

static struct judged_code judge_code(const struct gpu_fault *self, uint32_t code, bool fatal) {
    const struct xid_row *row = xid_find(code);
    struct judged_code judged = {code, fatal, true, FAULT_NONE, xid_judge(code, fatal)};
    if (is_grave(row, judged.judgement))
        judged.kind = code == XID_LOST ? FAULT_LOST : FAULT_ERROR;
    else if (self->config.application &&
             (row->class == XID_CLASS_APPLICATION || code == XID_CLEANUP))
        judged.kind = FAULT_APPLICATION;
    return judged;
}

static struct fault_item item_of_xid(const struct gpu_fault *self, const struct xid_entry *xid,
                                     struct judged_code *judged) {
    bool fatal = xid->fatal != 0;
    if (!judged->is_known || judged->code != xid->code || judged->fatal != fatal)
        *judged = judge_code(self, xid->code, fatal);
    return (struct fault_item){.xid = xid,
                               .address = xid->address,
                               .node = xid->node,
                               .kind = judged->kind,
                               .time_ns = xid->time_ns,
                               .judgement = judged->judgement};
}

static struct fault_item item_of_amd(const struct amd_line *line) {
    struct fault_item item = {
        .amd = line, .node = line->node, .address = line->address, .time_ns = line->time_ns};
    bool broken = line->failed != 0 || line->kind == OBSERVATION_GPU_HARDWARE_ERROR;
    // A reset that succeeded says nothing by itself: somebody may have asked for it.
    bool began = line->kind == OBSERVATION_GPU_RESET && line->over == 0;
    if (broken || began || line->kind == OBSERVATION_GPU_HANG) {
        item.kind = line->failed != 0 ? FAULT_LOST : FAULT_ERROR;
        item.judgement =
            (struct xid_judgement){broken ? SEVERITY_CRITICAL : SEVERITY_ERROR, XID_ANCHOR_YES,
                                   line->failed != 0 ? "drain_node" : "reset_gpu"};
    }
    return item;
}

static int compare_gpus(const struct fault_item *a, const struct fault_item *b) {
    int order = compare_strings(a->node, b->node);
    return order != 0 ? order : COMPARE(a->address, b->address);
}

static bool is_one_gpu(const struct fault_item *a, const struct fault_item *b) {
    return a->node == b->node && a->address == b->address;
}

static int compare_groups(const void *left, const void *right) {
    return compare_gpus(left, right);
}

static int compare_moments(const void *left, const void *right) {
    return COMPARE(((const struct fault_item *)left)->time_ns,
                   ((const struct fault_item *)right)->time_ns);
}

static const struct group_order BY_GPU = {
    .item_size = sizeof(struct fault_item),
    .key_offset = offsetof(struct fault_item, address),
    .key_size = sizeof(uint64_t) + sizeof(string_id),
    .compare_groups = compare_groups,
    .compare = compare_moments,
};
_Static_assert(offsetof(struct fault_item, node) ==
                   offsetof(struct fault_item, address) + sizeof(uint64_t),
               "the name of the GPU has no gap");

// Of one GPU and moment. The words of a lost GPU and its Xid share a uid.
static int compare_said(const void *left, const void *right) {
    const struct fault_item *a = left, *b = right;
    bool both = a->xid != NULL && b->xid != NULL;
    return COMPARE_KEYS(strcmp(a->uid, b->uid), both ? COMPARE(a->xid->source, b->xid->source) : 0);
}

// Names are made only of those that time does not order.
static void order_moments(struct fault_item *items, uint32_t count, struct arena *arena) {
    for (uint32_t from = 0, to; from < count; from = to) {
        for (to = from + 1; to < count && items[from].time_ns == items[to].time_ns &&
                            is_one_gpu(&items[from], &items[to]);)
            to++;
        if (to == from + 1)
            continue;
        for (uint32_t i = from; i < to; i++)
            items[i].uid = fault_item_uid(&items[i], arena);
        sort_stable(items + from, to - from, sizeof *items, arena, compare_said);
    }
}

// A ring that hung is put right by its own reset within this.
#define RING_RESET_NS (60 * UINT64_C(1000000000))

static bool is_hang(const struct fault_item *item) {
    return item->amd != NULL && item->amd->kind == OBSERVATION_GPU_HANG;
}

// What hung and is over: the program on that ring has lost its work, the GPU is well. What comes
// between the two, a reset of the whole GPU or an error, says otherwise.
static void forgive_hangs(struct fault_item *items, uint32_t count) {
    const struct fault_item *end = NULL; // of the hangs before it
    for (uint32_t i = count; i-- > 0;) {
        if (!is_hang(&items[i]))
            end = NULL;
        else if (items[i].amd->over != 0)
            end = &items[i];
        if (end != NULL && is_one_gpu(&items[i], end) &&
            end->time_ns - items[i].time_ns <= RING_RESET_NS)
            items[i].kind = FAULT_NONE;
    }
}

// A reset ends within this, live: until then nobody knows.
#define RESET_NS (2 * 60 * UINT64_C(1000000000))

static bool is_begin(const struct fault_item *item) {
    return item->amd != NULL && item->amd->kind == OBSERVATION_GPU_RESET && item->amd->over == 0 &&
           item->amd->failed == 0;
}

// A reset of which the end is told, or may still be.
static void forgive_resets(struct fault_item *items, uint32_t count, uint64_t open_ns) {
    const struct fault_item *end = NULL; // of the resets before it
    for (uint32_t i = count; i-- > 0;) {
        if (items[i].amd != NULL && items[i].amd->kind == OBSERVATION_GPU_RESET &&
            !is_begin(&items[i]))
            end = &items[i];
        else if (is_begin(&items[i]) &&
                 (items[i].time_ns >= open_ns || (end != NULL && is_one_gpu(&items[i], end))))
            items[i].kind = FAULT_NONE;
    }
}

struct item_list {
    struct fault_item *items; // by node, GPU, time
    uint32_t count;
};

static struct item_list list_items(const struct gpu_fault *self, uint64_t now_ns,
                                   struct arena *arena) {
    const struct xid_entry *xid;
    const struct amd_line *line;
    uint32_t most = keyed_rows_count(&self->xids.rows) + keyed_rows_count(&self->amd.rows);
    struct item_list list = {arena_take(arena, (most + 1) * sizeof *list.items), 0};
    struct judged_code judged = {0};
    for (uint32_t at = 0; (xid = keyed_rows_next(&self->xids.rows, &at)) != NULL;)
        if (xid->time_ns <= now_ns)
            list.items[list.count++] = item_of_xid(self, xid, &judged);
    for (uint32_t at = 0; (line = keyed_rows_next(&self->amd.rows, &at)) != NULL;)
        if (line->time_ns <= now_ns)
            list.items[list.count++] = item_of_amd(line);
    list.items = group_sort(&BY_GPU, list.items, list.count, arena);
    order_moments(list.items, list.count, arena);
    forgive_hangs(list.items, list.count);
    forgive_resets(list.items, list.count,
                   self->base.live ? now_ns - (now_ns < RESET_NS ? now_ns : RESET_NS) : UINT64_MAX);
    return list;
}

static unsigned grade_of(const struct fault_item *item) {
    // What only the metric tells of comes last: a line says when it was.
    unsigned line = item->xid == NULL || item->xid->source != XID_FROM_GAUGE;
    return (((unsigned)item->kind * 4 + (unsigned)item->judgement.anchor) * 4 +
            (unsigned)item->judgement.severity) *
               2 +
           line;
}

static void add_item(struct fault_burst *burst, const struct fault_item *item) {
    burst->count++;
    if (item->kind == FAULT_NONE)
        return;
    if (burst->anchor == NULL)
        burst->first_ns = item->time_ns;
    if (burst->anchor == NULL || grade_of(item) > grade_of(burst->anchor))
        burst->anchor = item;
    burst->last_ns = item->time_ns;
}

// How many items of this GPU from here on lead to nothing: no fault comes soon enough.
static uint32_t skip_context(const struct gpu_fault_config *config, const struct fault_item *items,
                             uint32_t count) {
    uint32_t fault = 0, first = 0;
    while (fault < count && items[fault].kind == FAULT_NONE)
        fault++;
    if (fault == count)
        return count;
    while (items[fault].time_ns - items[first].time_ns > duration_ns(config->burst))
        first++;
    return first;
}

// The first burst of one GPU, which lies before the items that are left, and what is said shortly
// before and after it. Returns how many items were looked at; `burst->count` 0: there is none.
static uint32_t take_burst(const struct gpu_fault_config *config, const struct fault_item *items,
                           uint32_t count, struct fault_burst *burst) {
    uint32_t first = skip_context(config, items, count), at = first;
    *burst = (struct fault_burst){.items = items + first};
    while (at < count && (burst->anchor == NULL ||
                          items[at].time_ns - burst->last_ns <= duration_ns(config->burst)))
        add_item(burst, &items[at++]);
    return at;
}

static int compare_bursts(const void *left, const void *right) {
    const struct fault_burst *a = left, *b = right;
    int order = COMPARE(a->first_ns, b->first_ns);
    return order != 0 ? order : compare_gpus(a->anchor, b->anchor);
}

struct fault_bursts gpu_fault_find(const struct gpu_fault *self, uint64_t now_ns,
                                   struct arena *arena) {
    struct item_list list = list_items(self, now_ns, arena);
    struct fault_bursts bursts = {arena_take(arena, (list.count + 1) * sizeof *bursts.items), 0};
    struct fault_burst burst;
    for (uint32_t at = 0, end = 0; at < list.count;) {
        for (end = end > at ? end : at + 1;
             end < list.count && is_one_gpu(&list.items[at], &list.items[end]);)
            end++;
        at += take_burst(&self->config, list.items + at, end - at, &burst);
        if (burst.count > 0)
            bursts.items[bursts.count++] = burst;
    }
    sort_stable(bursts.items, bursts.count, sizeof *bursts.items, arena, compare_bursts);
    return bursts;
}
