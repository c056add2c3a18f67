// SPDX-License-Identifier: Apache-2.0
// Keeps what the driver of AMD says of GPUs that hang, are reset or report hardware errors.
#include "processors/gpu_fault/parts.h"

#include "pipeline/model/node_event.h"
#include "pipeline/model/observation.h"
#include "processors/cluster/row_bound.h"
#include "processors/cluster/row_text.h"
#include "processors/cluster/xid_text.h"

#include <inttypes.h>

struct amd_key {
    string_id node;
    uint64_t address;
    uint64_t time_ns;
    uint32_t kind;
} __attribute__((packed));

_Static_assert(offsetof(struct amd_line, failed) ==
                   sizeof(struct row_head) + sizeof(struct amd_key),
               "the key lies in the row as in struct amd_key");

const struct row_type AMD_LINE_ROWS = {
    .size = sizeof(struct amd_line),
    .key_size = sizeof(struct amd_key),
    .rows_per_chunk = 64,
    .strings = {offsetof(struct amd_line, node)},
};

static bool is_wanted(enum observation_kind kind) {
    return kind == OBSERVATION_GPU_HANG || kind == OBSERVATION_GPU_RESET ||
           kind == OBSERVATION_GPU_HARDWARE_ERROR;
}

// Of several lines of one moment what is worst is kept, so that their order does not matter.
static void merge(struct amd_line *line, const struct observation *said) {
    struct slice state = {NULL, 0}, code = {NULL, 0};
    int64_t errors = 0;
    observation_text(said, FACT_STATE, &state);
    observation_text(said, FACT_CODE, &code);
    observation_number(said, FACT_COUNT, &errors);
    bool ended = slice_equal(state, SLICE("end"));
    bool failed = slice_equal(state, SLICE("failed")) ||
                  (ended && code.size > 0 && !slice_equal(code, SLICE("0")));
    line->failed |= failed;
    line->over |= ended && !failed;
    line->errors = errors > line->errors ? errors : line->errors;
    char text[AMD_CODE_MAX];
    row_text_say(text, sizeof text, code);
    if (line->count == 0 || strcmp(text, line->code) > 0)
        memcpy(line->code, text, sizeof text);
    line->count++;
}

void amd_log_take(struct amd_log *log, const struct event *event, struct arena *scratch) {
    const struct observation *said = event->observation;
    assert(event->kind == EVENT_OBSERVATION && log->bound.max > 0);
    const struct fact *gpu = is_wanted(said->kind) ? observation_fact(said, FACT_GPU) : NULL;
    if (gpu == NULL)
        return;
    struct amd_key key = {event->node, pci_device(gpu->address), event->time_ns,
                          (uint32_t)said->kind};
    merge(
        row_bound_take(&log->rows, &log->bound, &key, offsetof(struct amd_line, time_ns), scratch),
        said);
}

const char *amd_line_uid(const struct amd_line *line, struct arena *arena) {
    return arena_format(arena, "amdgpu:%s:%s:%s:%" PRIu64, node_in_uid(line->node, arena),
                        pci_text(line->address, false, arena),
                        observation_name((enum observation_kind)line->kind), line->time_ns);
}
