// SPDX-License-Identifier: Apache-2.0
// Keeps the Xids that were seen. Rows of about 300 bytes, O(1) a line. Of two lines with one key
// the lesser text is kept, so that the order of telling does not matter.
#include "processors/cluster/xid_log.h"

#include "base/sort.h"
#include "base/table/table.h"
#include "processors/cluster/compare.h"
#include "processors/cluster/row_text.h"

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

const struct row_type XID_LOG_ROWS = {
    .size = sizeof(struct xid_entry),
    .key_size = sizeof(struct xid_key),
    .rows_per_chunk = ROWS_PER_CHUNK,
    .strings = {offsetof(struct xid_entry, node), offsetof(struct xid_entry, uuid)},
};

static struct xid_entry *entry_of(struct xid_log *log, const struct xid_key *key, bool *is_new,
                                  struct arena *scratch) {
    return row_bound_get(&log->rows, &log->bound, key, offsetof(struct xid_entry, time_ns), is_new,
                         scratch);
}

static int compare_words(const struct xid_entry *a, const struct xid_entry *b) {
    return COMPARE_KEYS(slice_compare(xid_entry_detail(a), xid_entry_detail(b)),
                        slice_compare((struct slice){a->process, a->process_size},
                                      (struct slice){b->process, b->process_size}),
                        COMPARE(a->pid, b->pid));
}

void xid_log_take(struct xid_log *log, const struct event *event, bool (*wanted)(uint32_t code),
                  struct arena *scratch) {
    assert(event->kind == EVENT_KERNEL && log->bound.max > 0);
    const struct kernel_line *line = event->kernel;
    bool lost = line->kind == KERNEL_GPU_LOST;
    uint32_t code = lost ? XID_OF_LOST_GPU : line->code;
    if ((!lost && line->kind != KERNEL_XID) || line->address == PCI_NONE ||
        (wanted != NULL && !wanted(code)))
        return;
    struct xid_key key = {.node = event->node,
                          .address = pci_device(line->address),
                          .time_ns = event->time_ns,
                          .code = code,
                          .source = lost ? XID_FROM_LOST : XID_FROM_LINE};
    bool is_new;
    struct xid_entry *entry = entry_of(log, &key, &is_new, scratch);
    // Of two with one key the lesser is kept, whichever came first.
    struct xid_entry said = {.pid = line->pid};
    said.process_size = row_text_copy(said.process, sizeof said.process, line->process);
    said.detail_size = row_text_copy(said.detail, sizeof said.detail, line->detail);
    if (!is_new && compare_words(&said, entry) >= 0)
        return;
    entry->pid = said.pid;
    entry->process_size = said.process_size;
    memcpy(entry->process, said.process, said.process_size);
    entry->detail_size = said.detail_size;
    memcpy(entry->detail, said.detail, said.detail_size);
    entry->fatal = xid_is_fatal(code, line->detail);
    entry->recovery = code == 154 ? (uint8_t)recovery_read(line->detail) : RECOVERY_UNKNOWN;
}

void xid_log_take_gauge(struct xid_log *log, string_id node, string_id uuid, pci_address address,
                        const struct xid_change *change, struct arena *scratch) {
    assert(address == pci_device(address) && change->previous != change->code);
    struct xid_key key = {.node = node,
                          .address = address,
                          .time_ns = change->time_ns,
                          .code = change->code,
                          .source = XID_FROM_GAUGE};
    bool is_new;
    struct xid_entry *entry = entry_of(log, &key, &is_new, scratch);
    entry->pid = -1;
    entry->uuid = uuid;
    entry->previous = change->previous;
    entry->since_ns = change->since_ns;
    entry->spelling = change->spelling;
}

void xid_log_expire(struct xid_log *log, uint64_t before_ns) {
    row_bound_expire(&log->rows, &log->bound, offsetof(struct xid_entry, time_ns), before_ns);
}

static int compare_entries(const void *left, const void *right) {
    const struct xid_entry *a = *(const struct xid_entry *const *)left;
    const struct xid_entry *b = *(const struct xid_entry *const *)right;
    int order = compare_strings(a->node, b->node);
    if (order != 0)
        return order;
    return COMPARE_KEYS(COMPARE(a->time_ns, b->time_ns), COMPARE(a->address, b->address),
                        COMPARE(a->code, b->code), COMPARE(a->source, b->source));
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

const char *xid_entry_uid(const struct xid_entry *entry, struct arena *arena) {
    assert(entry->head.live != 0);
    if (entry->source == XID_FROM_GAUGE)
        return gpu_field_uid(entry->node, entry->uuid, entry->address, GPU_XID, entry->time_ns,
                             arena);
    return xid_uid(entry->node, entry->address, entry->code, entry->time_ns, arena);
}

const char *xid_entry_description(const struct xid_entry *entry, struct arena *arena) {
    struct slice process = {entry->process, entry->process_size};
    struct slice detail = xid_entry_detail(entry);
    if (entry->source == XID_FROM_GAUGE)
        detail = slice_of(arena_format(
            arena, "%s went from %" PRIu32 " to %" PRIu32 " since the sample before",
            field_text(GPU_XID, entry->spelling, arena), entry->previous, entry->code));
    return xid_description(entry->address, entry->code, process, entry->pid, detail, arena);
}
