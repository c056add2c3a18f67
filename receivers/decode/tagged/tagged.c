// SPDX-License-Identifier: Apache-2.0
// Which decoder is this line for? One pass over the object's own members for `source`, then the
// decoder of that source reads the line. Each has memory of its own behind the others'.
#include "receivers/decode/tagged/tagged.h"

#include "receivers/decode/app_log.h"
#include "receivers/decode/dcgm/dcgm.h"
#include "receivers/decode/flight_recorder/flight_recorder.h"
#include "receivers/decode/json/fault.h"
#include "receivers/decode/json/shape.h"
#include "receivers/decode/kernel.h"
#include "receivers/decode/kubernetes/kubernetes.h"
#include "receivers/decode/rank_map/rank_map.h"
#include "receivers/decode/sysfs_aer/sysfs_aer.h"

#include <stddef.h>

#define ROOM(size) ((size) / 8 + 1)

struct tagged_state {
    uint64_t flight[ROOM(FLIGHT_STATE_SIZE)];
    uint64_t kernel[ROOM(KERNEL_STATE_SIZE)];
    uint64_t kubernetes[ROOM(KUBERNETES_STATE_SIZE)];
    uint64_t dcgm[ROOM(DCGM_STATE_SIZE)];
    uint64_t aer[ROOM(SYSFS_AER_STATE_SIZE)];
    uint64_t ranks[ROOM(RANK_MAP_STATE_SIZE)];
    uint64_t app[ROOM(APP_LOG_STATE_SIZE)];
};

typedef enum decode_category tagged_decode(void *state, struct slice object, struct arena *arena,
                                           struct event *event, struct decode_fault *fault);

// In the order in which they are listed in messages.
static const struct {
    struct slice source;
    size_t state;
    tagged_decode *decode;
} SOURCES[] = {
    {{"app_log", 7}, offsetof(struct tagged_state, app), app_log_tagged},
    {{"dcgm", 4}, offsetof(struct tagged_state, dcgm), dcgm_tagged},
    {{"fr_dump", 7}, offsetof(struct tagged_state, flight), flight_tagged},
    {{"fr_entry", 8}, offsetof(struct tagged_state, flight), flight_tagged},
    {{"k8s_watch", 9}, offsetof(struct tagged_state, kubernetes), kubernetes_tagged},
    {{"kmsg", 4}, offsetof(struct tagged_state, kernel), kernel_tagged},
    {{"rank_map", 8}, offsetof(struct tagged_state, ranks), rank_map_tagged},
    {{"sysfs_aer", 9}, offsetof(struct tagged_state, aer), sysfs_aer_tagged},
};

static const struct json_shape_row ROWS[] = {{{"source", 6}, 0, NULL}};
static const struct json_shape SHAPE = JSON_SHAPE(ROWS);
static const char KNOWN[] =
    "one of app_log, dcgm, fr_dump, fr_entry, k8s_watch, kmsg, rank_map, sysfs_aer";

static enum decode_category refuse_source(const struct token *source, struct decode_fault *fault) {
    enum { QUOTED_MAX = 40 };
    if (source->kind == TOKEN_NONE)
        return fault_set(fault, DECODE_MISSING_FIELD, SLICE("source"), "not there; it says %s",
                         KNOWN);
    if (source->kind != TOKEN_STRING)
        return fault_type(fault, SLICE("source"), source, KNOWN);
    size_t size = source->size;
    bool cut = size > QUOTED_MAX;
    for (size = cut ? QUOTED_MAX : size; cut && size > 0; size--)
        if (((unsigned char)source->text[size] & 0xc0) != 0x80)
            break;
    return fault_set(fault, DECODE_UNKNOWN_FIELD, SLICE("source"), "\"%.*s\"%s is not %s",
                     (int)size, source->text, cut ? "..." : "", KNOWN);
}

static enum decode_category decode(void *memory, struct slice record, struct arena *arena,
                                   struct event *event, struct decode_fault *fault) {
    struct token source = {.kind = TOKEN_NONE};
    struct json_fault json;
    if (!json_shape_read_all(&SHAPE, record, &source, &json)) {
        if (json.why != NULL)
            return fault_json(fault, record, &json);
        return fault_set(fault, DECODE_NOT_OBJECT, SLICE(""),
                         "not a JSON object; a tagged line is one, with a key \"source\"");
    }
    for (size_t i = 0; source.kind == TOKEN_STRING && i < sizeof SOURCES / sizeof *SOURCES; i++)
        if (token_equals(&source, SOURCES[i].source))
            return SOURCES[i].decode((char *)memory + SOURCES[i].state, record, arena, event,
                                     fault);
    return refuse_source(&source, fault);
}

const struct decoder_type decoder_tagged = {
    .name = "tagged",
    .state_size = sizeof(struct tagged_state),
    .decode = decode,
};
