// SPDX-License-Identifier: Apache-2.0
// Which Xids were seen? Rows of about 300 bytes, O(1) a line. Of two lines with one key the lesser
// text is kept, so that the order of telling does not matter.
#include "processors/cluster/xid_log.h"

#include "base/sort.h"
#include "processors/cluster/row_bound.h"

#include <inttypes.h>

struct xid_key {
    string_id node;
    uint64_t address;
    uint64_t time_ns;
    uint32_t code;
    uint32_t source;
} __attribute__((packed));

enum { ROWS_PER_CHUNK = 64, XID_OF_LOST_GPU = 79 };

_Static_assert(offsetof(struct xid_entry, pid) == sizeof(struct row_head) + sizeof(struct xid_key),
               "the key lies in the row as in struct xid_key");

void xid_log_init(struct xid_log *log, const char *name, uint32_t max) {
    *log = (struct xid_log){.max = max};
    keyed_rows_init(&log->rows, name, sizeof(struct xid_entry), sizeof(struct xid_key),
                    ROWS_PER_CHUNK);
}

void xid_log_release(struct xid_log *log) {
    keyed_rows_release(&log->rows);
}

void xid_log_state(struct xid_log *log, struct state_list *list) {
    struct state_entry *entry = state_list_table(list, &log->rows.table);
    state_entry_string(entry, offsetof(struct xid_entry, node));
    state_entry_string(entry, offsetof(struct xid_entry, uuid));
    state_list_struct(list, "xid_horizon", &log->horizon_ns, sizeof log->horizon_ns);
}

void xid_log_restored(struct xid_log *log) {
    keyed_rows_restored(&log->rows);
}

static uint64_t oldest_ns(const struct xid_log *log) {
    const struct xid_entry *entry;
    uint64_t oldest = UINT64_MAX;
    for (uint32_t at = 0; (entry = keyed_rows_next(&log->rows, &at)) != NULL;)
        oldest = entry->time_ns < oldest ? entry->time_ns : oldest;
    return oldest;
}

// The row with this key, `*is_new` when there was none.
static struct xid_entry *entry_of(struct xid_log *log, const struct xid_key *key, bool *is_new,
                                  struct arena *scratch) {
    struct xid_entry *entry = keyed_rows_find(&log->rows, key);
    *is_new = entry == NULL;
    if (entry != NULL)
        return entry;
    uint32_t gone =
        row_bound_make_room(&log->rows, log->max, offsetof(struct xid_entry, time_ns), scratch);
    if (gone > 0) {
        log->evicted += gone;
        log->horizon_ns = oldest_ns(log);
    }
    return keyed_rows_add(&log->rows, key);
}

void xid_log_take(struct xid_log *log, const struct event *event, bool (*wanted)(uint32_t code),
                  struct arena *scratch) {
    const struct kernel_line *line = event->kernel;
    bool lost = line->kind == KERNEL_GPU_LOST;
    uint32_t code = lost ? XID_OF_LOST_GPU : line->code;
    if ((!lost && line->kind != KERNEL_XID) || line->address == PCI_NONE || !wanted(code))
        return;
    struct xid_key key = {.node = event->node,
                          .address = pci_device(line->address),
                          .time_ns = event->time_ns,
                          .code = code,
                          .source = lost ? XID_FROM_LOST : XID_FROM_LINE};
    bool is_new;
    struct xid_entry *entry = entry_of(log, &key, &is_new, scratch);
    struct slice detail = text_cut_at(line->detail, XID_DETAIL_MAX / 4);
    struct slice wider = text_cut_at(line->detail, XID_DETAIL_MAX);
    detail = wider.size <= XID_DETAIL_MAX ? wider : detail;
    if (!is_new && slice_compare(detail, xid_entry_detail(entry)) >= 0)
        return;
    struct slice process = text_cut_at(line->process, XID_PROCESS_MAX / 4);
    wider = text_cut_at(line->process, XID_PROCESS_MAX);
    process = wider.size <= XID_PROCESS_MAX ? wider : process;
    entry->pid = line->pid;
    entry->process_size = (uint16_t)process.size;
    entry->detail_size = (uint16_t)detail.size;
    if (process.size > 0)
        memcpy(entry->process, process.data, process.size);
    if (detail.size > 0)
        memcpy(entry->detail, detail.data, detail.size);
    entry->fatal = xid_is_fatal(line->detail);
    entry->recovery = code == 154 ? (uint8_t)recovery_read(line->detail) : RECOVERY_UNKNOWN;
}

void xid_log_take_gauge(struct xid_log *log, string_id node, string_id uuid, pci_address address,
                        uint32_t code, uint32_t previous, uint64_t time_ns, struct arena *scratch) {
    struct xid_key key = {.node = node,
                          .address = address,
                          .time_ns = time_ns,
                          .code = code,
                          .source = XID_FROM_GAUGE};
    bool is_new;
    struct xid_entry *entry = entry_of(log, &key, &is_new, scratch);
    entry->pid = -1;
    entry->uuid = uuid;
    entry->previous = previous;
}

void xid_log_expire(struct xid_log *log, uint64_t before_ns) {
    struct xid_entry *entry;
    if (before_ns <= log->horizon_ns)
        return;
    for (uint32_t at = 0; (entry = keyed_rows_next(&log->rows, &at)) != NULL;)
        if (entry->time_ns < before_ns)
            keyed_rows_remove(&log->rows, entry);
    log->horizon_ns = before_ns;
}

static int compare_numbers(uint64_t a, uint64_t b) {
    return (a > b) - (a < b);
}

static int compare_entries(const void *left, const void *right) {
    const struct xid_entry *a = *(const struct xid_entry *const *)left;
    const struct xid_entry *b = *(const struct xid_entry *const *)right;
    int order = compare_numbers(a->node, b->node);
    order = order != 0 ? order : compare_numbers(a->time_ns, b->time_ns);
    order = order != 0 ? order : compare_numbers(a->address, b->address);
    order = order != 0 ? order : compare_numbers(a->code, b->code);
    return order != 0 ? order : compare_numbers(a->source, b->source);
}

const struct xid_entry **xid_log_sort(const struct xid_log *log, struct arena *arena,
                                      uint32_t *count) {
    const struct xid_entry *entry,
        **sorted = arena_take(arena, (keyed_rows_count(&log->rows) + 1) * sizeof *sorted);
    *count = 0;
    for (uint32_t at = 0; (entry = keyed_rows_next(&log->rows, &at)) != NULL;)
        sorted[(*count)++] = entry;
    sort_stable(sorted, *count, sizeof *sorted, arena, compare_entries);
    return sorted;
}

struct slice xid_entry_uid(const struct xid_entry *entry, struct arena *arena) {
    if (entry->source == XID_FROM_GAUGE)
        return gpu_field_uid(entry->node, entry->uuid, entry->address, GPU_XID, entry->time_ns,
                             arena);
    return xid_uid(entry->node, entry->address, entry->code, entry->time_ns, arena);
}

struct slice xid_entry_description(const struct xid_entry *entry, struct arena *arena) {
    struct slice process = {entry->process, entry->process_size};
    struct slice detail = xid_entry_detail(entry);
    if (entry->source == XID_FROM_GAUGE)
        detail = slice_of(arena_format(arena,
                                       "the metric of the last Xid went from %" PRIu32
                                       " to %" PRIu32 " since the sample before",
                                       entry->previous, entry->code));
    return xid_description(entry->address, entry->code, process, entry->pid, detail, arena);
}
