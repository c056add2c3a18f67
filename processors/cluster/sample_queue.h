// SPDX-License-Identifier: Apache-2.0
// Samples of GPUs that wait until all that came before them is there.
//
// What a counter did shows only in order of time, and samples come in any order. So they wait here,
// flat rows of a node, a GPU, a time and some fields, until an evaluation takes those up to its
// moment, sorted. Not thread-safe.
#pragma once

#include "base/arena.h"
#include "base/table/table.h"
#include "pipeline/component/state.h"
#include "pipeline/model/event.h"
#include "pipeline/model/node_event.h"

enum { SAMPLE_FIELDS_MAX = 16 };

struct queued_sample {
    uint32_t chain; // the table's own
    uint32_t live;
    string_id node;
    string_id uuid;   // STRING_NONE: not said
    uint64_t address; // pci_device, or PCI_NONE
    uint64_t time_ns;
    uint32_t present; // bit i: field i of the queue is there
    uint32_t number;  // of its row
    int64_t value[];  // one a field
};

struct sample_queue {
    struct table rows;
    const enum gpu_field *fields; // static
    uint32_t field_count;
    uint32_t max;
};

// `name` is static text, unique in the component.
void sample_queue_init(struct sample_queue *queue, const char *name, const enum gpu_field *fields,
                       uint32_t field_count, uint32_t max);
void sample_queue_release(struct sample_queue *queue);
void sample_queue_state(struct sample_queue *queue, struct state_list *list);

// Takes the samples of an EVENT_GPU_SAMPLE that name a node and a GPU and hold one of the fields as
// a whole number of 0 or more. False when the queue is full: nothing was taken of sample *at and
// those behind it; take what is there out, then call again with the same *at (0 at first).
bool sample_queue_take(struct sample_queue *queue, const struct event *event, uint32_t *at);
// The samples up to and with `until_ns`, by node, time, GPU (its numbers) and values; in the arena.
const struct queued_sample **sample_queue_due(const struct sample_queue *queue, uint64_t until_ns,
                                              struct arena *arena, uint32_t *count);
// Takes those out.
void sample_queue_drop(struct sample_queue *queue, const struct queued_sample **samples,
                       uint32_t count);
