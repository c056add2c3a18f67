// SPDX-License-Identifier: Apache-2.0
// Which counters of a GPU's memory rose, when, from what to what?
//
// Samples wait until an evaluation (sample_queue.h) and are then compared with the one before,
// field by field. The first one is what was there before; a fall is a driver that was loaded anew,
// so the lower value is the new beginning. O(log n) a sample; a row a GPU, a row a step, bounded.
#include "processors/cluster/row_bound.h"
#include "processors/hbm_ecc/parts.h"

enum { ROWS_PER_CHUNK = 64 };

const enum gpu_field ECC_FIELDS[ECC_FIELD_COUNT] = {
    [ECC_UNCORRECTED] = GPU_ECC_UNCORRECTED_VOLATILE,
    [ECC_UNCORRECTED_LIFETIME] = GPU_ECC_UNCORRECTED_LIFETIME,
    [ECC_CORRECTED] = GPU_ECC_CORRECTED_VOLATILE,
    [ECC_CORRECTED_LIFETIME] = GPU_ECC_CORRECTED_LIFETIME,
    [ECC_REMAPS] = GPU_REMAP_UNCORRECTABLE,
    [ECC_REMAP_FAILED] = GPU_REMAP_FAILED,
    [ECC_REMAP_PENDING] = GPU_REMAP_PENDING,
    [ECC_RETIRED_CORRECTED] = GPU_RETIRED_CORRECTED,
    [ECC_RETIRED_UNCORRECTED] = GPU_RETIRED_UNCORRECTED,
    [ECC_RETIRED_PENDING] = GPU_RETIRED_PENDING,
    [ECC_BANKS_NONE] = GPU_BANKS_NONE,
    [ECC_SRAM_EXCEEDED] = GPU_SRAM_EXCEEDED,
};

struct gpu_key {
    string_id node;
    uint64_t address;
    string_id uuid;
} __attribute__((packed));

// One GPU as its last sample left it.
struct ecc_gpu {
    struct row_head head;
    string_id node;   // the key: up to `uuid`
    uint64_t address; // PCI_NONE where the UUID is known
    string_id uuid;   // or STRING_NONE
    uint32_t unused;
    uint64_t time_ns;
    uint64_t seen_ns[ECC_FIELD_COUNT]; // 0: never
    int64_t value[ECC_FIELD_COUNT];
};

struct step_key {
    string_id node;
    uint64_t address;
    uint64_t time_ns;
    string_id uuid;
    uint32_t field;
} __attribute__((packed));

_Static_assert(offsetof(struct ecc_step, is_limit) ==
                   sizeof(struct row_head) + sizeof(struct step_key),
               "the key lies in the row as in struct step_key");

_Static_assert(offsetof(struct ecc_gpu, unused) == sizeof(struct row_head) + sizeof(struct gpu_key),
               "the key lies in the row as in struct gpu_key");

void ecc_counters_init(struct ecc_counters *counters, uint32_t max_samples, uint32_t max_gpus,
                       uint32_t max_steps) {
    *counters = (struct ecc_counters){.max_gpus = max_gpus, .max_steps = max_steps};
    sample_queue_init(&counters->samples, "hbm_ecc.samples", ECC_FIELDS, ECC_FIELD_COUNT,
                      max_samples);
    keyed_rows_init(&counters->gpus, "hbm_ecc.gpus", sizeof(struct ecc_gpu), sizeof(struct gpu_key),
                    ROWS_PER_CHUNK);
    keyed_rows_init(&counters->steps, "hbm_ecc.steps", sizeof(struct ecc_step),
                    sizeof(struct step_key), ROWS_PER_CHUNK);
}

void ecc_counters_release(struct ecc_counters *counters) {
    sample_queue_release(&counters->samples);
    keyed_rows_release(&counters->gpus);
    keyed_rows_release(&counters->steps);
}

void ecc_counters_state(struct ecc_counters *counters, struct state_list *list) {
    sample_queue_state(&counters->samples, list);
    struct state_entry *entry = state_list_table(list, &counters->gpus.table);
    state_entry_string(entry, offsetof(struct ecc_gpu, node));
    state_entry_string(entry, offsetof(struct ecc_gpu, uuid));
    entry = state_list_table(list, &counters->steps.table);
    state_entry_string(entry, offsetof(struct ecc_step, node));
    state_entry_string(entry, offsetof(struct ecc_step, uuid));
    state_list_struct(list, "steps_horizon", &counters->horizon_ns, sizeof counters->horizon_ns);
}

void ecc_counters_restored(struct ecc_counters *counters) {
    keyed_rows_restored(&counters->gpus);
    keyed_rows_restored(&counters->steps);
}

static struct gpu_key key_of(string_id node, string_id uuid, pci_address address) {
    return (struct gpu_key){node, uuid != STRING_NONE ? PCI_NONE : address, uuid};
}

static struct ecc_gpu *gpu_of(struct ecc_counters *counters, const struct queued_sample *sample,
                              struct arena *scratch) {
    struct gpu_key key = key_of(sample->node, sample->uuid, sample->address);
    struct ecc_gpu *gpu = keyed_rows_find(&counters->gpus, &key);
    if (gpu != NULL)
        return gpu;
    counters->evicted += row_bound_make_room(&counters->gpus, counters->max_gpus,
                                             offsetof(struct ecc_gpu, time_ns), scratch);
    return keyed_rows_add(&counters->gpus, &key);
}

static uint64_t oldest_step_ns(const struct ecc_counters *counters) {
    const struct ecc_step *step;
    uint64_t oldest = UINT64_MAX;
    for (uint32_t at = 0; (step = keyed_rows_next(&counters->steps, &at)) != NULL;)
        oldest = step->time_ns < oldest ? step->time_ns : oldest;
    return oldest;
}

static void add_step(struct ecc_counters *counters, const struct ecc_step *step,
                     struct arena *scratch) {
    struct step_key key = {step->node, step->address, step->time_ns, step->uuid, step->field};
    uint32_t gone = row_bound_make_room(&counters->steps, counters->max_steps,
                                        offsetof(struct ecc_step, time_ns), scratch);
    if (gone > 0) {
        counters->evicted += gone;
        counters->horizon_ns = oldest_step_ns(counters);
    }
    struct ecc_step *row = keyed_rows_find(&counters->steps, &key);
    if (row == NULL)
        row = keyed_rows_add(&counters->steps, &key);
    struct row_head head = row->head;
    *row = *step;
    row->head = head;
}

static bool passes(int64_t from, int64_t to, int64_t limit) {
    return from < limit && to >= limit;
}

static int64_t value_or_none(const struct queued_sample *sample, const struct ecc_gpu *gpu,
                             enum ecc_field field) {
    return (sample->present >> field & 1) != 0 ? sample->value[field] : gpu->value[field];
}

static bool is_limit(const struct ecc_rules *rules, const struct queued_sample *sample,
                     const struct ecc_gpu *gpu, enum ecc_field field) {
    int64_t from = gpu->value[field], to = sample->value[field];
    switch (field) {
    case ECC_REMAPS:
        return passes(from, to, rules->remaps_max);
    case ECC_RETIRED_UNCORRECTED:
    case ECC_RETIRED_CORRECTED: {
        int64_t before = gpu->value[ECC_RETIRED_UNCORRECTED] + gpu->value[ECC_RETIRED_CORRECTED];
        int64_t now = value_or_none(sample, gpu, ECC_RETIRED_UNCORRECTED) +
                      value_or_none(sample, gpu, ECC_RETIRED_CORRECTED);
        return (field == ECC_RETIRED_UNCORRECTED &&
                passes(from, to, rules->retired_uncorrected_max)) ||
               passes(before, now, rules->retired_max);
    }
    case ECC_BANKS_NONE:
    case ECC_SRAM_EXCEEDED:
        return true;
    default:
        return false;
    }
}

// The lifetime counter says the same as the one since the driver's start, where that is there.
static bool is_doubled(const struct queued_sample *sample, const struct ecc_gpu *gpu,
                       enum ecc_field field) {
    enum ecc_field other = field == ECC_UNCORRECTED_LIFETIME ? ECC_UNCORRECTED : ECC_CORRECTED;
    return (field == ECC_UNCORRECTED_LIFETIME || field == ECC_CORRECTED_LIFETIME) &&
           (gpu->seen_ns[other] != 0 || (sample->present >> other & 1) != 0);
}

static void read_sample(struct ecc_counters *counters, const struct ecc_rules *rules,
                        const struct queued_sample *sample, struct arena *scratch) {
    struct ecc_gpu *gpu = gpu_of(counters, sample, scratch);
    if (gpu->time_ns != 0 && sample->time_ns <= gpu->time_ns)
        return;
    for (enum ecc_field field = 0; field < ECC_FIELD_COUNT; field++) {
        if ((sample->present >> field & 1) == 0 || gpu->seen_ns[field] == 0 ||
            sample->value[field] <= gpu->value[field] || is_doubled(sample, gpu, field))
            continue;
        struct ecc_step step = {.node = sample->node,
                                .uuid = sample->uuid,
                                .address = sample->address,
                                .time_ns = sample->time_ns,
                                .field = field,
                                .is_limit = is_limit(rules, sample, gpu, field),
                                .since_ns = gpu->seen_ns[field],
                                .from = gpu->value[field],
                                .to = sample->value[field]};
        add_step(counters, &step, scratch);
    }
    for (enum ecc_field field = 0; field < ECC_FIELD_COUNT; field++) {
        if ((sample->present >> field & 1) == 0)
            continue;
        gpu->seen_ns[field] = sample->time_ns;
        gpu->value[field] = sample->value[field];
    }
    gpu->time_ns = sample->time_ns;
}

void ecc_counters_read(struct ecc_counters *counters, const struct ecc_rules *rules,
                       uint64_t until_ns, struct arena *scratch) {
    uint32_t count;
    const struct queued_sample **due =
        sample_queue_due(&counters->samples, until_ns, scratch, &count);
    for (uint32_t i = 0; i < count; i++)
        read_sample(counters, rules, due[i], scratch);
    sample_queue_drop(&counters->samples, due, count);
}

void ecc_counters_take(struct ecc_counters *counters, const struct ecc_rules *rules,
                       const struct event *event, struct arena *scratch) {
    uint32_t at = 0;
    while (!sample_queue_take(&counters->samples, event, &at))
        ecc_counters_read(counters, rules, UINT64_MAX, scratch);
}

void ecc_counters_expire(struct ecc_counters *counters, uint64_t before_ns) {
    struct ecc_step *step;
    if (before_ns <= counters->horizon_ns)
        return;
    for (uint32_t at = 0; (step = keyed_rows_next(&counters->steps, &at)) != NULL;)
        if (step->time_ns < before_ns)
            keyed_rows_remove(&counters->steps, step);
    counters->horizon_ns = before_ns;
}

bool ecc_counters_value(const struct ecc_counters *counters, string_id node, string_id uuid,
                        pci_address address, enum ecc_field field, int64_t *value) {
    struct gpu_key key = key_of(node, uuid, address);
    const struct ecc_gpu *gpu = keyed_rows_find(&counters->gpus, &key);
    if (gpu == NULL && uuid != STRING_NONE) {
        key = key_of(node, STRING_NONE, address);
        gpu = keyed_rows_find(&counters->gpus, &key);
    }
    if (gpu == NULL || gpu->seen_ns[field] == 0)
        return false;
    *value = gpu->value[field];
    return true;
}
