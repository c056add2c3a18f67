// SPDX-License-Identifier: Apache-2.0
// Which samples are next, in order of time? A table that fills and empties: nothing is allocated
// once it is as large as the samples of one evaluation.
#include "processors/cluster/sample_queue.h"

#include "base/sort.h"

enum { ROWS_PER_CHUNK = 256 };

void sample_queue_init(struct sample_queue *queue, const char *name, const enum gpu_field *fields,
                       uint32_t field_count, uint32_t max) {
    assert(field_count <= SAMPLE_FIELDS_MAX);
    *queue = (struct sample_queue){.fields = fields, .field_count = field_count, .max = max};
    table_init(&queue->rows, name, sizeof(struct queued_sample) + field_count * sizeof(int64_t),
               ROWS_PER_CHUNK);
}

void sample_queue_release(struct sample_queue *queue) {
    table_release(&queue->rows);
}

void sample_queue_state(struct sample_queue *queue, struct state_list *list) {
    struct state_entry *entry = state_list_table(list, &queue->rows);
    state_entry_string(entry, offsetof(struct queued_sample, node));
    state_entry_string(entry, offsetof(struct queued_sample, uuid));
}

static struct queued_sample *row_at(const struct sample_queue *queue, uint32_t row) {
    return table_row(&queue->rows, row);
}

static uint32_t fields_present(const struct sample_queue *queue, const struct gpu_sample *sample) {
    uint32_t present = 0;
    for (uint32_t i = 0; i < queue->field_count; i++)
        if ((sample->present >> queue->fields[i] & 1) != 0 && sample->whole[queue->fields[i]] >= 0)
            present |= 1u << i;
    return present;
}

static void add(struct sample_queue *queue, const struct event *event,
                const struct gpu_sample *sample, uint32_t present) {
    uint32_t number = table_add(&queue->rows);
    struct queued_sample *row = row_at(queue, number);
    string_id uuid = sample->uuid.size == 0 ? STRING_NONE : intern(sample->uuid);
    row->live = 1;
    row->number = number;
    row->node = sample->node != STRING_NONE ? sample->node : event->node;
    row->uuid = uuid == STRING_REFUSED ? STRING_NONE : uuid;
    row->address = pci_device(sample->address);
    row->time_ns = sample->time_ns != 0 ? sample->time_ns : event->time_ns;
    row->present = present;
    for (uint32_t i = 0; i < queue->field_count; i++)
        row->value[i] = (present >> i & 1) != 0 ? sample->whole[queue->fields[i]] : 0;
}

bool sample_queue_take(struct sample_queue *queue, const struct event *event, uint32_t *at) {
    for (; *at < event->gpus->count; ++*at) {
        const struct gpu_sample *sample = &event->gpus->samples[*at];
        uint32_t present = fields_present(queue, sample);
        bool has_node = sample->node != STRING_NONE || event->node != STRING_NONE;
        if (present == 0 || !has_node || (sample->uuid.size == 0 && sample->address == PCI_NONE))
            continue;
        if (table_live(&queue->rows) >= queue->max)
            return false;
        add(queue, event, sample, present);
    }
    return true;
}

static int compare_numbers(uint64_t a, uint64_t b) {
    return (a > b) - (a < b);
}

static int compare_samples(const void *left, const void *right) {
    const struct queued_sample *a = *(const struct queued_sample *const *)left;
    const struct queued_sample *b = *(const struct queued_sample *const *)right;
    int order = compare_numbers(a->node, b->node);
    // Time before the GPU: one that is known by its UUID need not tell its address each time.
    order = order != 0 ? order : compare_numbers(a->time_ns, b->time_ns);
    order = order != 0 ? order : compare_numbers(a->address, b->address);
    order = order != 0 ? order : compare_numbers(a->uuid, b->uuid);
    order = order != 0 ? order : compare_numbers(a->present, b->present);
    for (uint32_t left_bits = a->present, i = 0; order == 0 && left_bits != 0; i++, left_bits >>= 1)
        if ((left_bits & 1) != 0)
            order = compare_numbers((uint64_t)a->value[i], (uint64_t)b->value[i]);
    return order;
}

const struct queued_sample **sample_queue_due(const struct sample_queue *queue, uint64_t until_ns,
                                              struct arena *arena, uint32_t *count) {
    const struct queued_sample **due =
        arena_take(arena, (table_live(&queue->rows) + 1) * sizeof *due);
    *count = 0;
    for (uint32_t row = 0; row < queue->rows.used; row++)
        if (row_at(queue, row)->live != 0 && row_at(queue, row)->time_ns <= until_ns)
            due[(*count)++] = row_at(queue, row);
    sort_stable(due, *count, sizeof *due, arena, compare_samples);
    return due;
}

void sample_queue_drop(struct sample_queue *queue, const struct queued_sample **samples,
                       uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        uint32_t number = samples[i]->number;
        row_at(queue, number)->live = 0;
        table_free(&queue->rows, number);
    }
}
