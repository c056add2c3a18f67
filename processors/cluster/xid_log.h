// SPDX-License-Identifier: Apache-2.0
// The Xids that were seen, each once, for as long as a detector may join them with something.
//
// A row is flat and found by node, GPU, code, time and source; told twice it stays one row,
// whatever the order. When the bound is reached the oldest go, a sixteenth at a time. Not
// thread-safe.
#pragma once

#include "base/arena.h"
#include "base/table/table.h"
#include "pipeline/model/event.h"
#include "pipeline/model/node_event.h"
#include "processors/cluster/row_bound.h"
#include "processors/cluster/tables.h"
#include "processors/cluster/xid_text.h"

// One loss of a GPU may be a row of each of the first two, with one uid: who counts them counts
// moments, not rows.
enum xid_source {
    XID_FROM_LINE,
    XID_FROM_LOST,  // a line that means Xid 79 without its number
    XID_FROM_GAUGE, // DCGM_FI_DEV_XID_ERRORS changed; the time is that of the sample
};

enum { XID_PROCESS_MAX = 32, XID_DETAIL_MAX = 176 };

struct xid_entry {
    struct row_head head;
    string_id node;   // the key: up to `source`
    uint64_t address; // pci_device
    uint64_t time_ns;
    uint32_t code;
    uint32_t source;
    int64_t pid;
    uint64_t since_ns; // XID_FROM_GAUGE: of the sample before; it happened after that. Else 0
    string_id uuid;    // XID_FROM_GAUGE: of the GPU; else STRING_NONE
    uint32_t previous; // XID_FROM_GAUGE: the code before
    uint16_t process_size, detail_size;
    uint8_t fatal;    // the line holds the word Fatal
    uint8_t recovery; // Xid 154: enum recovery
    uint8_t spelling; // XID_FROM_GAUGE: of the field in the sample; else 0
    char process[XID_PROCESS_MAX];
    char detail[XID_DETAIL_MAX];
};

extern const struct row_type XID_LOG_ROWS;

// Its table and bound.horizon_ns ("xid_horizon") are the owner's state rows; `bound.max` is the
// owner's to set.
struct xid_log {
    struct keyed_rows rows; // XID_LOG_ROWS
    struct row_bound bound;
};

// Takes a kernel line (KERNEL_XID, KERNEL_GPU_LOST; others are passed over) whose code `wanted`
// takes; NULL: any. O(1).
void xid_log_take(struct xid_log *log, const struct event *event, bool (*wanted)(uint32_t code),
                  struct arena *scratch);
// A change of the gauge from one sample to the next.
struct xid_change {
    uint32_t previous, code;
    uint64_t since_ns, time_ns; // of the two samples
    uint8_t spelling;           // of the field in the second
};
void xid_log_take_gauge(struct xid_log *log, string_id node, string_id uuid, pci_address address,
                        const struct xid_change *change, struct arena *scratch);
// Forgets what is older than this.
void xid_log_expire(struct xid_log *log, uint64_t before_ns);

// All rows, by node (its name), time, address, code, source; in the arena. O(n log n).
const struct xid_entry **xid_log_sort(const struct xid_log *log, struct arena *arena,
                                      uint32_t *count);
static inline struct slice xid_entry_detail(const struct xid_entry *entry) {
    return (struct slice){entry->detail, entry->detail_size};
}
const char *xid_entry_uid(const struct xid_entry *entry, struct arena *arena);
const char *xid_entry_description(const struct xid_entry *entry, struct arena *arena);
