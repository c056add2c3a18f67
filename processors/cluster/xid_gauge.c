// SPDX-License-Identifier: Apache-2.0
// One row a GPU: the code of its last sample. O(1) a sample, O(log) to put it in order.
#include "processors/cluster/xid_gauge.h"

// The metric of the last Xid of one GPU, up to the last evaluation.
struct gauge {
    struct row_head head;
    string_id node;   // the key: struct gpu_key
    uint64_t address; // PCI_NONE where the UUID is known
    string_id uuid;   // or STRING_NONE
    uint32_t unused;
    uint64_t time_ns;
    int64_t value;
};
_Static_assert(offsetof(struct gauge, unused) == sizeof(struct row_head) + sizeof(struct gpu_key),
               "the key lies in the row as in struct gpu_key");

enum { FIELD_XID, FIELD_COUNT };
static const enum gpu_field FIELDS[FIELD_COUNT] = {[FIELD_XID] = GPU_XID};

const struct row_type XID_GAUGE_SAMPLE_ROWS = SAMPLE_ROWS(FIELD_COUNT);
const struct row_type XID_GAUGE_ROWS = {
    .size = sizeof(struct gauge),
    .key_size = sizeof(struct gpu_key),
    .rows_per_chunk = 64,
    .strings = {offsetof(struct gauge, node), offsetof(struct gauge, uuid)},
};

// The first sample is what was there before; after it a new code is an Xid, the same one is not.
static void take_gauge(void *owner, const struct queued_sample *sample, struct arena *arena) {
    struct xid_gauges *self = owner;
    struct gpu_key key = gpu_key_of(sample->node, sample->uuid, sample->address);
    struct gauge *gauge =
        row_bound_take(&self->rows, &self->bound, &key, offsetof(struct gauge, time_ns), arena);
    int64_t value = sample->value[FIELD_XID];
    if (gauge->time_ns != 0 && sample->time_ns <= gauge->time_ns)
        return;
    pci_address address = sample->address;
    if (address == PCI_NONE)
        address = gpu_names_address(self->names, sample->node, sample->uuid);
    bool changed = gauge->time_ns != 0 && value != gauge->value && value > 0 && value < UINT32_MAX;
    if (changed && address != PCI_NONE && self->wanted((uint32_t)value))
        xid_log_take_gauge(self->log, sample->node, sample->uuid, address,
                           &(struct xid_change){.previous = (uint32_t)gauge->value,
                                                .code = (uint32_t)value,
                                                .since_ns = gauge->time_ns,
                                                .time_ns = sample->time_ns,
                                                .spelling = sample_spelling(sample, FIELD_XID)},
                           arena);
    gauge->time_ns = sample->time_ns;
    gauge->value = value;
}

void xid_gauges_start(struct xid_gauges *gauges, struct xid_log *log, const struct gpu_names *names,
                      bool (*wanted)(uint32_t code), uint32_t max_gpus, uint32_t max_samples) {
    gauges->log = log;
    gauges->names = names;
    gauges->wanted = wanted;
    gauges->bound.max = max_gpus;
    gauges->samples.fields = FIELDS;
    gauges->samples.field_count = FIELD_COUNT;
    gauges->samples.max = max_samples;
    gauges->samples.read = take_gauge;
    gauges->samples.owner = gauges;
}
