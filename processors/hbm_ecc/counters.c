// SPDX-License-Identifier: Apache-2.0
// Notes which counters of a GPU's memory rose, when, from what to what.
//
// Samples wait until an evaluation (processors/cluster/sample_queue.h) and are then compared with
// the one before, field by field. The first one is what was there before; a fall is a driver that
// was loaded anew, so the lower value is the new beginning. O(log n) a sample; a row a GPU, a row a
// step, bounded.
#include "pipeline/model/node_event.h"
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

// One GPU as its last sample left it.
struct ecc_gpu {
    struct row_head head;
    string_id node;   // the key: struct gpu_key
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

const struct row_type ECC_SAMPLE_ROWS = SAMPLE_ROWS(ECC_FIELD_COUNT);
const struct row_type ECC_GPU_ROWS = {
    .size = sizeof(struct ecc_gpu),
    .key_size = sizeof(struct gpu_key),
    .rows_per_chunk = ROWS_PER_CHUNK,
    .strings = {offsetof(struct ecc_gpu, node), offsetof(struct ecc_gpu, uuid)},
};
const struct row_type ECC_STEP_ROWS = {
    .size = sizeof(struct ecc_step),
    .key_size = sizeof(struct step_key),
    .rows_per_chunk = ROWS_PER_CHUNK,
    .strings = {offsetof(struct ecc_step, node), offsetof(struct ecc_step, uuid)},
};

static void add_step(struct ecc_counters *counters, const struct ecc_step *step,
                     struct arena *scratch) {
    struct step_key key = {step->node, step->address, step->time_ns, step->uuid, step->field};
    struct ecc_step *row = row_bound_take(&counters->steps, &counters->step_bound, &key,
                                          offsetof(struct ecc_step, time_ns), scratch);
    struct row_head head = row->head;
    *row = *step;
    row->head = head;
}

static bool passes(int64_t from, int64_t to, int64_t limit) {
    return from < limit && to >= limit;
}

static int64_t value_or_before(const struct queued_sample *sample, const struct ecc_gpu *gpu,
                               enum ecc_field field) {
    return sample_has(sample, field) ? sample->value[field] : gpu->value[field];
}

// The page counts of both kinds pass their limit together.
static bool passes_retired(const struct ecc_config *config, const struct queued_sample *sample,
                           const struct ecc_gpu *gpu) {
    return passes(gpu->value[ECC_RETIRED_UNCORRECTED] + gpu->value[ECC_RETIRED_CORRECTED],
                  value_or_before(sample, gpu, ECC_RETIRED_UNCORRECTED) +
                      value_or_before(sample, gpu, ECC_RETIRED_CORRECTED),
                  config->retired_max);
}

static bool is_limit(const struct ecc_config *config, const struct queued_sample *sample,
                     const struct ecc_gpu *gpu, enum ecc_field field) {
    assert(field < ECC_FIELD_COUNT);
    int64_t from = gpu->value[field], to = sample->value[field];
    switch (field) {
    case ECC_REMAPS:
        return passes(from, to, config->remaps_max);
    case ECC_RETIRED_UNCORRECTED:
        return passes(from, to, config->retired_uncorrected_max) ||
               passes_retired(config, sample, gpu);
    case ECC_RETIRED_CORRECTED:
        return passes_retired(config, sample, gpu);
    default:
        return field == ECC_BANKS_NONE || field == ECC_SRAM_EXCEEDED;
    }
}

// The lifetime counter says the same as the one since the driver's start, where that is there.
static bool is_doubled(const struct queued_sample *sample, const struct ecc_gpu *gpu,
                       enum ecc_field field) {
    enum ecc_field other = field == ECC_UNCORRECTED_LIFETIME ? ECC_UNCORRECTED : ECC_CORRECTED;
    return (field == ECC_UNCORRECTED_LIFETIME || field == ECC_CORRECTED_LIFETIME) &&
           (gpu->seen_ns[other] != 0 || sample_has(sample, other));
}

static void read_sample(void *owner, const struct queued_sample *sample, struct arena *scratch) {
    struct ecc_counters *counters = owner;
    struct gpu_key key = gpu_key_of(sample->node, sample->uuid, sample->address);
    struct ecc_gpu *gpu = row_bound_take(&counters->gpus, &counters->gpu_bound, &key,
                                         offsetof(struct ecc_gpu, time_ns), scratch);
    if (gpu->time_ns != 0 && sample->time_ns <= gpu->time_ns)
        return;
    for (enum ecc_field field = 0; field < ECC_FIELD_COUNT; field++) {
        if (!sample_has(sample, field) || gpu->seen_ns[field] == 0 ||
            sample->value[field] <= gpu->value[field] || is_doubled(sample, gpu, field))
            continue;
        struct ecc_step step = {.node = sample->node,
                                .uuid = sample->uuid,
                                .address = sample->address,
                                .time_ns = sample->time_ns,
                                .field = field,
                                .is_limit = is_limit(counters->config, sample, gpu, field),
                                .spelling = sample_spelling(sample, field),
                                .since_ns = gpu->seen_ns[field],
                                .from = gpu->value[field],
                                .to = sample->value[field]};
        add_step(counters, &step, scratch);
    }
    for (enum ecc_field field = 0; field < ECC_FIELD_COUNT; field++) {
        if (!sample_has(sample, field))
            continue;
        gpu->seen_ns[field] = sample->time_ns;
        gpu->value[field] = sample->value[field];
    }
    gpu->time_ns = sample->time_ns;
}

void ecc_counters_start(struct ecc_counters *counters, const struct ecc_config *config) {
    counters->config = config;
    counters->gpu_bound.max = (uint32_t)config->max_gpus;
    counters->step_bound.max = (uint32_t)config->max_steps;
    counters->samples.fields = ECC_FIELDS;
    counters->samples.field_count = ECC_FIELD_COUNT;
    counters->samples.max = (uint32_t)config->max_samples;
    counters->samples.read = read_sample;
    counters->samples.owner = counters;
}

void ecc_counters_expire(struct ecc_counters *counters, uint64_t before_ns) {
    row_bound_expire(&counters->steps, &counters->step_bound, offsetof(struct ecc_step, time_ns),
                     before_ns);
}

static const struct ecc_gpu *find_gpu(const struct ecc_counters *counters, string_id node,
                                      string_id uuid, pci_address address) {
    struct gpu_key key = gpu_key_of(node, uuid, address);
    const struct ecc_gpu *gpu = keyed_rows_find(&counters->gpus, &key);
    if (gpu != NULL || uuid == STRING_NONE)
        return gpu;
    key = gpu_key_of(node, STRING_NONE, address);
    return keyed_rows_find(&counters->gpus, &key);
}

bool ecc_counters_value(const struct ecc_counters *counters, string_id node, string_id uuid,
                        pci_address address, enum ecc_field field, int64_t *value) {
    assert(field < ECC_FIELD_COUNT);
    const struct ecc_gpu *gpu = find_gpu(counters, node, uuid, address);
    if (gpu == NULL || gpu->seen_ns[field] == 0)
        return false;
    *value = gpu->value[field];
    return true;
}

uint64_t ecc_corrected_told(const struct ecc_counters *counters, string_id node, string_id uuid,
                            pci_address address) {
    const struct ecc_gpu *gpu = find_gpu(counters, node, uuid, address);
    if (gpu == NULL)
        return 0;
    uint64_t now = gpu->seen_ns[ECC_CORRECTED];
    uint64_t ever = gpu->seen_ns[ECC_CORRECTED_LIFETIME];
    return now > ever ? now : ever;
}
