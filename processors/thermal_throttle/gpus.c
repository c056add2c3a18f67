// SPDX-License-Identifier: Apache-2.0
// Which GPU is a sample of, and which others are on its node? When there are too many, those that
// were heard of least recently go.
#include "processors/thermal_throttle/window.h"

#include "base/sort.h"

void thermal_sample_free(struct thermal_window *window, uint32_t row) {
    thermal_sample_at(window, row)->state = SAMPLE_FREED;
    table_free(&window->samples, row);
}

static uint32_t row_number(const struct keyed_rows *rows, const struct row_head *row) {
    uint32_t number = rows->chains[row->hash & (rows->chain_count - 1)];
    while (table_row(&rows->table, number) != row)
        number = ((struct row_head *)table_row(&rows->table, number))->next;
    return number;
}

static void forget_gpu(struct thermal_window *window, struct thermal_gpu *gpu) {
    struct thermal_node *node = keyed_rows_find(&window->nodes, &gpu->key.node);
    uint32_t *link = &node->first_gpu;
    while (*link != gpu->self)
        link = &thermal_gpu_at(window, *link)->next_on_node;
    *link = gpu->next_on_node;
    if (--node->gpu_count == 0)
        keyed_rows_remove(&window->nodes, node);
    while (gpu->first != TABLE_NO_ROW) {
        uint32_t row = gpu->first;
        gpu->first = thermal_sample_at(window, row)->next;
        thermal_sample_free(window, row);
    }
    keyed_rows_remove(&window->gpus, gpu);
    window->evicted++;
}

static int compare_seen(const void *a, const void *b) {
    const struct thermal_gpu *first = *(struct thermal_gpu *const *)a;
    const struct thermal_gpu *second = *(struct thermal_gpu *const *)b;
    return (first->seen_ns > second->seen_ns) - (first->seen_ns < second->seen_ns);
}

// When there are too many GPUs, a sixteenth of them goes: those heard of least recently that are in
// no incident and have no sample that waits. Where these are too few, there may be up to twice as
// many; false when there is no room for one more.
static bool make_room(struct thermal_window *window, struct arena *arena) {
    uint32_t max = window->rules.max_gpus;
    uint32_t count = keyed_rows_count(&window->gpus), at = 0, idle = 0;
    if (count < max || (count < window->looked_at && count < 2 * max))
        return true;
    if (count >= 2 * max && count < window->looked_at)
        return false;
    bool *waits = arena_zero(arena, window->gpus.table.used + 1, sizeof *waits);
    for (uint32_t row = 0; row < window->samples.used; row++)
        if (thermal_sample_at(window, row)->state == SAMPLE_WAITS)
            waits[thermal_sample_at(window, row)->gpu] = true;
    struct thermal_gpu **gpus = arena_take(arena, count * sizeof *gpus), *gpu;
    while ((gpu = keyed_rows_next(&window->gpus, &at)) != NULL)
        if (gpu->incident_count == 0 && !waits[gpu->self])
            gpus[idle++] = gpu;
    sort_stable(gpus, idle, sizeof *gpus, arena, compare_seen);
    uint32_t share = count - max + max / 16 + 1;
    for (uint32_t i = 0; i < idle && i < share; i++)
        forget_gpu(window, gpus[i]);
    // Not again for each GPU more: that would be a walk through all of them each time.
    count = keyed_rows_count(&window->gpus);
    window->looked_at = count < max ? 0 : count + max / 16 + 1;
    return count < 2 * max;
}

static struct thermal_gpu *add_gpu(struct thermal_window *window,
                                   const struct thermal_gpu_key *key) {
    struct thermal_gpu *gpu = keyed_rows_add(&window->gpus, key);
    gpu->self = row_number(&window->gpus, &gpu->head);
    gpu->first = gpu->last = gpu->incident = TABLE_NO_ROW;
    gpu->index = -1;
    struct thermal_node *node = keyed_rows_find(&window->nodes, &key->node);
    if (node == NULL) {
        node = keyed_rows_add(&window->nodes, &key->node);
        node->first_gpu = TABLE_NO_ROW;
    }
    gpu->next_on_node = node->first_gpu;
    node->first_gpu = gpu->self;
    node->gpu_count++;
    return gpu;
}

uint32_t thermal_node_gpus(const struct thermal_window *window, string_id node) {
    const struct thermal_node *row = keyed_rows_find(&window->nodes, &node);
    return row == NULL ? 0 : row->gpu_count;
}

static string_id take_name(struct slice text) {
    string_id id = text.size == 0 ? STRING_NONE : intern(text);
    return id == STRING_REFUSED ? STRING_NONE : id;
}

// A newer name stands; of two others the greater one, whichever came first.
static void set_name(string_id *place, string_id name, bool newer) {
    if (newer ||
        (name != STRING_NONE &&
         (*place == STRING_NONE || slice_compare(intern_slice(name), intern_slice(*place)) > 0)))
        *place = name;
}

// A GPU without an address and UUID is known by its number on the node.
static bool read_key(const struct gpu_sample *sample, struct thermal_gpu_key *key) {
    *key = (struct thermal_gpu_key){.node = sample->node, .device = pci_device(sample->address)};
    if (sample->address != PCI_NONE)
        return true;
    key->uuid = take_name(sample->uuid);
    if (key->uuid == STRING_NONE)
        key->device = PCI_NONE - 1 - (uint64_t)(uint32_t)sample->index;
    return key->uuid != STRING_NONE || sample->index >= 0;
}

struct thermal_gpu *thermal_gpu_find(struct thermal_window *window, const struct gpu_sample *sample,
                                     string_id job, struct arena *arena) {
    struct thermal_gpu_key key;
    if (!read_key(sample, &key))
        return NULL;
    struct thermal_gpu *gpu = keyed_rows_find(&window->gpus, &key);
    if (gpu == NULL) {
        if (!make_room(window, arena)) {
            window->evicted++;
            return NULL;
        }
        gpu = add_gpu(window, &key);
    }
    // What a GPU is does not change, and not every sample says it.
    set_name(&gpu->uuid, take_name(sample->uuid), false);
    set_name(&gpu->model, take_name(sample->model), false);
    if (sample->index > gpu->index)
        gpu->index = sample->index;
    if (sample->time_ns < gpu->seen_ns)
        return gpu;
    bool newer = sample->time_ns > gpu->seen_ns;
    gpu->seen_ns = sample->time_ns;
    set_name(&gpu->pod, take_name(sample->pod), newer);
    set_name(&gpu->namespace, take_name(sample->namespace), newer);
    set_name(&gpu->job, job, newer);
    return gpu;
}
