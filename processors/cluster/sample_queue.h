// SPDX-License-Identifier: Apache-2.0
// Samples of GPUs that wait until all that came before them is there (due_rows.h).
//
// Flat rows of a node, a GPU, a time and some fields, read in order at an evaluation. When the
// queue is full, all that is in it is read early. Not thread-safe.
#pragma once

#include "base/arena.h"
#include "base/table/table.h"
#include "pipeline/model/event.h"
#include "pipeline/model/node_event.h"

enum { SAMPLE_FIELDS_MAX = 16, QUEUED_PER_CHUNK = 256 };

struct queued_sample {
    uint32_t chain; // the table's own
    uint32_t live;
    string_id node;
    string_id uuid;   // STRING_NONE: not said
    uint64_t address; // pci_device, or PCI_NONE
    uint64_t time_ns;
    uint32_t present; // bit i: field i of the queue is there
    uint32_t number;  // of its row
    uint32_t spelled; // bits 2 i and 2 i + 1: how field i was spelled, where it is there
    uint32_t unused;
    int64_t value[]; // one a field
};

struct sample_queue {
    struct table rows; // of type SAMPLE_ROWS
    const enum gpu_field *fields;
    uint32_t field_count, max;
    void (*read)(void *owner, const struct queued_sample *sample, struct arena *scratch);
    void *owner;
};

// The type of the rows of a queue of `count` fields.
#define SAMPLE_ROWS(count)                                                                         \
    {                                                                                              \
        .size = sizeof(struct queued_sample) + (count) * sizeof(int64_t),                          \
        .rows_per_chunk = QUEUED_PER_CHUNK,                                                        \
        .strings = {offsetof(struct queued_sample, node), offsetof(struct queued_sample, uuid)},   \
    }

static inline bool sample_has(const struct queued_sample *sample, uint32_t field) {
    return (sample->present >> field & 1) != 0;
}

// How a field that is there was spelled (gpu_field_spelling).
static inline uint8_t sample_spelling(const struct queued_sample *sample, uint32_t field) {
    return (uint8_t)(sample->spelled >> 2 * field & 3);
}

// Takes the samples of an EVENT_GPU_SAMPLE that name a node and a GPU and hold one of the fields as
// a whole number of 0 or more.
void sample_queue_take(struct sample_queue *queue, const struct event *event,
                       struct arena *scratch);
// Hands the samples up to and with `until_ns` to `read`, by node, time, GPU (its numbers) and
// values.
void sample_queue_read(struct sample_queue *queue, uint64_t until_ns, struct arena *scratch);

// A GPU as samples name it; the key of rows, right behind their head.
struct gpu_key {
    string_id node;
    uint64_t address; // PCI_NONE where the UUID is known
    string_id uuid;   // or STRING_NONE
} __attribute__((packed));
struct gpu_key gpu_key_of(string_id node, string_id uuid, pci_address address);
