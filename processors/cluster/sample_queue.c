// SPDX-License-Identifier: Apache-2.0
// Keeps samples until they are due. The table fills and empties: nothing is allocated once it is as
// large as the samples of one evaluation.
#include "processors/cluster/sample_queue.h"

#include "processors/cluster/compare.h"
#include "processors/cluster/due_rows.h"

static uint32_t fields_present(const struct sample_queue *queue, const struct gpu_sample *sample) {
    uint32_t present = 0;
    for (uint32_t i = 0; i < queue->field_count; i++)
        if ((sample->present >> queue->fields[i] & 1) != 0 && sample->whole[queue->fields[i]] >= 0)
            present |= 1u << i;
    return present;
}

static void add(struct sample_queue *queue, const struct event *event,
                const struct gpu_sample *sample, uint32_t present) {
    assert(present != 0 && table_live(&queue->rows) < queue->max);
    uint32_t number = table_add(&queue->rows);
    struct queued_sample *row = table_row(&queue->rows, number);
    string_id uuid = sample->uuid.size == 0 ? STRING_NONE : intern(sample->uuid);
    row->live = 1;
    row->number = number;
    row->node = sample->node != STRING_NONE ? sample->node : event->node;
    row->uuid = uuid == STRING_REFUSED ? STRING_NONE : uuid;
    row->address = pci_device(sample->address);
    row->time_ns = sample->time_ns != 0 ? sample->time_ns : event->time_ns;
    row->present = present;
    row->spelled = row->unused = 0;
    for (uint32_t i = 0; i < queue->field_count; i++) {
        row->value[i] = sample_has(row, i) ? sample->whole[queue->fields[i]] : 0;
        if (sample_has(row, i))
            row->spelled |= gpu_sample_spelling(sample, queue->fields[i]) << 2 * i;
    }
}

void sample_queue_take(struct sample_queue *queue, const struct event *event,
                       struct arena *scratch) {
    assert(queue->field_count <= SAMPLE_FIELDS_MAX && queue->max > 0);
    assert(queue->rows.row_size ==
           sizeof(struct queued_sample) + queue->field_count * sizeof(int64_t));
    for (uint32_t i = 0; i < event->gpus->count; i++) {
        const struct gpu_sample *sample = &event->gpus->samples[i];
        uint32_t present = fields_present(queue, sample);
        bool has_node = sample->node != STRING_NONE || event->node != STRING_NONE;
        if (present == 0 || !has_node || (sample->uuid.size == 0 && sample->address == PCI_NONE))
            continue;
        if (table_live(&queue->rows) >= queue->max)
            sample_queue_read(queue, UINT64_MAX, scratch);
        add(queue, event, sample, present);
    }
}

static bool is_due(const void *row, uint64_t until_ns) {
    const struct queued_sample *sample = row;
    return sample->live != 0 && sample->time_ns <= until_ns;
}

static int compare_samples(const void *left, const void *right) {
    const struct queued_sample *a = ((const struct due_row *)left)->row;
    const struct queued_sample *b = ((const struct due_row *)right)->row;
    // Time before the GPU: one that is known by its UUID need not tell its address each time.
    int order = COMPARE_KEYS(COMPARE(a->node, b->node), COMPARE(a->time_ns, b->time_ns),
                             COMPARE(a->address, b->address), COMPARE(a->uuid, b->uuid),
                             COMPARE(a->present, b->present));
    for (uint32_t bits = a->present, i = 0; order == 0 && bits != 0; i++, bits >>= 1)
        if ((bits & 1) != 0)
            order = COMPARE((uint64_t)a->value[i], (uint64_t)b->value[i]);
    return order != 0 ? order : COMPARE(a->spelled, b->spelled);
}

void sample_queue_read(struct sample_queue *queue, uint64_t until_ns, struct arena *scratch) {
    assert(queue->read != NULL && queue->owner != NULL);
    struct due_rows due = due_rows_sorted(&queue->rows, is_due, until_ns, scratch, compare_samples);
    for (uint32_t i = 0; i < due.count; i++)
        queue->read(queue->owner, due.items[i].row, scratch);
    for (uint32_t i = 0; i < due.count; i++) {
        ((struct queued_sample *)due.items[i].row)->live = 0;
        table_free(&queue->rows, due.items[i].number);
    }
}

struct gpu_key gpu_key_of(string_id node, string_id uuid, pci_address address) {
    return (struct gpu_key){node, uuid != STRING_NONE ? PCI_NONE : address, uuid};
}
