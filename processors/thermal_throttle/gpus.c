// SPDX-License-Identifier: Apache-2.0
// Finds the GPU that a sample is of, and the others on its node. When there are too many, those
// that were heard of least recently go.
#include "processors/thermal_throttle/window.h"

enum { ROWS_PER_CHUNK = 32 };
KEYED_ROW_CHECK(struct thermal_gpu, key);
KEYED_ROW_CHECK(struct thermal_node, node);

const struct row_type THERMAL_GPU_ROWS = {
    .size = sizeof(struct thermal_gpu),
    .key_size = sizeof(struct thermal_gpu_key),
    .rows_per_chunk = ROWS_PER_CHUNK,
    .strings = {offsetof(struct thermal_gpu, key.node), offsetof(struct thermal_gpu, key.uuid),
                offsetof(struct thermal_gpu, uuid), offsetof(struct thermal_gpu, model),
                offsetof(struct thermal_gpu, pod), offsetof(struct thermal_gpu, namespace),
                offsetof(struct thermal_gpu, job)},
};
const struct row_type THERMAL_NODE_ROWS = {
    .size = sizeof(struct thermal_node),
    .key_size = sizeof(string_id),
    .rows_per_chunk = ROWS_PER_CHUNK,
    .strings = {offsetof(struct thermal_node, node)},
};

void thermal_sample_free(struct thermal_window *window, uint32_t row) {
    assert(thermal_sample_at(window, row)->state != SAMPLE_FREED);
    thermal_sample_at(window, row)->state = SAMPLE_FREED;
    table_free(&window->samples, row);
}

// While room is made: the window, and which GPUs have a sample that waits.
struct room {
    struct thermal_window *window;
    struct arena *arena;
    bool *waits; // NULL: not looked at yet
};

static void find_waits(struct room *room) {
    const struct thermal_window *window = room->window;
    room->waits = arena_zero(room->arena, window->gpus.table.used + 1, sizeof *room->waits);
    for (uint32_t row = 0; row < window->samples.used; row++)
        if (thermal_sample_at(window, row)->state == SAMPLE_WAITS)
            room->waits[thermal_sample_at(window, row)->gpu] = true;
}

static bool is_idle(void *owner, const void *row) {
    struct room *room = owner;
    const struct thermal_gpu *gpu = row;
    if (room->waits == NULL)
        find_waits(room);
    return gpu->incident_count == 0 && !room->waits[gpu->self];
}

static void forget_gpu(void *owner, void *row) {
    assert(((struct thermal_gpu *)row)->incident_count == 0);
    struct thermal_window *window = ((struct room *)owner)->window;
    struct thermal_gpu *gpu = row;
    struct thermal_node *node = keyed_rows_find(&window->nodes, &gpu->key.node);
    assert(node != NULL && node->gpu_count > 0);
    uint32_t *link = &node->first_gpu;
    while (*link != gpu->self)
        link = &thermal_gpu_at(window, *link)->next_on_node;
    *link = gpu->next_on_node;
    if (--node->gpu_count == 0)
        keyed_rows_remove(&window->nodes, node);
    while (gpu->first != TABLE_NO_ROW) {
        uint32_t sample = gpu->first;
        gpu->first = thermal_sample_at(window, sample)->next;
        thermal_sample_free(window, sample);
    }
    keyed_rows_remove(&window->gpus, gpu);
    window->evicted++;
}

// Those that are in no incident and have no sample that waits may go.
static bool make_room(struct thermal_window *window, struct arena *arena) {
    struct room room = {window, arena, NULL};
    const struct idle_rows gpus = {.rows = &window->gpus,
                                   .max = (uint32_t)window->config->max_gpus,
                                   .time_offset = offsetof(struct thermal_gpu, seen_ns),
                                   .looked_at = &window->looked_at,
                                   .is_idle = is_idle,
                                   .forget = forget_gpu,
                                   .owner = &room};
    return idle_rows_make_room(&gpus, arena);
}

static struct thermal_gpu *add_gpu(struct thermal_window *window,
                                   const struct thermal_gpu_key *key) {
    assert(keyed_rows_find(&window->gpus, key) == NULL);
    struct thermal_gpu *gpu = keyed_rows_add(&window->gpus, key);
    gpu->self = keyed_rows_number(&window->gpus, gpu);
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
