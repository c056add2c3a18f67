// SPDX-License-Identifier: Apache-2.0
// Who reads this?
#include "receivers/decode/formats.h"

#include "receivers/decode/app_log.h"
#include "receivers/decode/dcgm/dcgm.h"
#include "receivers/decode/flight_recorder/flight_recorder.h"
#include "receivers/decode/kernel.h"
#include "receivers/decode/kubernetes/kubernetes.h"
#include "receivers/decode/rank_map/rank_map.h"
#include "receivers/decode/spans/spans.h"
#include "receivers/decode/sysfs_aer/sysfs_aer.h"
#include "receivers/decode/tagged/tagged.h"
#include "receivers/decode/telemetry/record.h"
#include "receivers/decode/telemetry/telemetry.h"

#include <assert.h>
#include <stdalign.h>

static const struct decoder_type *const decoders[] = {
    [FORMAT_STORMLOG] = &decoder_stormlog,      [FORMAT_PICKLE] = &decoder_flight_pickle,
    [FORMAT_TAGGED_LINES] = &decoder_tagged,    [FORMAT_SPANS] = &decoder_spans,
    [FORMAT_KUBERNETES] = &decoder_kubernetes,  [FORMAT_FLIGHT_RECORDER] = &decoder_flight_json,
    [FORMAT_METRICS_TEXT] = &decoder_dcgm_text, [FORMAT_KERNEL_LOG] = &decoder_kernel_log,
    [FORMAT_DCGM] = &decoder_dcgm_json,         [FORMAT_AER_COUNTERS] = &decoder_sysfs_aer,
    [FORMAT_RANK_MAP] = &decoder_rank_map,      [FORMAT_APP_LOG] = &decoder_app_log,
};
enum { DECODER_COUNT = sizeof decoders / sizeof decoders[0] };

const struct decoder_type *format_decoder(enum format_kind kind) {
    return (size_t)kind < DECODER_COUNT ? decoders[kind] : NULL;
}

const char *const format_choices[] = {
    "auto",      "stormlog",  "tagged",   "flight_recorder", "kubernetes", "kernel_log", "dcgm",
    "dcgm_text", "sysfs_aer", "rank_map", "app_log",         "spans",      NULL};

enum format_kind format_chosen(int choice) {
    static const enum format_kind kinds[] = {
        FORMAT_UNKNOWN,      FORMAT_STORMLOG,   FORMAT_TAGGED_LINES, FORMAT_FLIGHT_RECORDER,
        FORMAT_KUBERNETES,   FORMAT_KERNEL_LOG, FORMAT_DCGM,         FORMAT_METRICS_TEXT,
        FORMAT_AER_COUNTERS, FORMAT_RANK_MAP,   FORMAT_APP_LOG,      FORMAT_SPANS};
    return kinds[choice];
}

bool format_is_decoder(struct slice name) {
    for (int i = 0; i < DECODER_COUNT; i++)
        if (decoders[i] != NULL && slice_equal(name, slice_of(decoders[i]->name)))
            return true;
    return slice_equal(name, slice_of(decoder_any.name));
}

const struct decoder_type *format_stream_decoder(int choice) {
    enum format_kind kind = format_chosen(choice);
    return kind == FORMAT_UNKNOWN ? &decoder_any : decoders[kind];
}

// -- any kind -----------------------------------------------------------------------------------

enum { PARTS_SIZE = 8192 };

struct any_state {
    struct decoder_input input;
    bool begun[DECODER_COUNT];
    struct telemetry_state telemetry;
    // The states of the other decoders, one behind the other: there may be many sources.
    _Alignas(max_align_t) char parts[PARTS_SIZE];
};

// Where the state of a kind begins; of DECODER_COUNT: where the last one ends.
static size_t part_offset(size_t kind) {
    size_t offset = 0;
    for (size_t i = 0; i < kind; i++)
        if (decoders[i] != NULL && i != FORMAT_STORMLOG)
            offset +=
                (decoders[i]->state_size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    return offset;
}

static void any_begin(void *memory, const struct decoder_input *input) {
    assert(part_offset(DECODER_COUNT) <= PARTS_SIZE);
    ((struct any_state *)memory)->input = *input;
}

static void *part_of(struct any_state *state, enum format_kind kind) {
    const struct decoder_type *decoder = decoders[kind];
    if (kind == FORMAT_STORMLOG)
        return &state->telemetry;
    void *part = state->parts + part_offset((size_t)kind);
    if (!state->begun[kind] && decoder->begin != NULL)
        decoder->begin(part, &state->input);
    state->begun[kind] = true;
    return part;
}

// Telemetry, which is most of what comes, is not looked at twice.
static bool any_decode_plain(void *memory, struct slice record, struct arena *arena,
                             struct event *event) {
    struct any_state *state = memory;
    return decoder_stormlog.decode_plain(&state->telemetry, record, arena, event);
}

// Old telemetry has hardly a key that it must have, so that all else is looked at first.
static enum decode_category any_decode(void *memory, struct slice record, struct arena *arena,
                                       struct event *event, struct decode_fault *fault) {
    struct any_state *state = memory;
    if (any_decode_plain(memory, record, arena, event)) {
        fault->category = DECODE_OK;
        return DECODE_OK;
    }
    enum format_kind kind = format_guess(record, true, FORMAT_UNKNOWN).kind;
    if (format_decoder(kind) == NULL)
        kind = FORMAT_STORMLOG;
    const struct decoder_type *decoder = decoders[kind];
    assert(decoder != NULL);
    return decoder->decode(part_of(state, kind), record, arena, event, fault);
}

const struct decoder_type decoder_any = {
    .name = "any",
    .state_size = sizeof(struct any_state),
    .begin = any_begin,
    .decode = any_decode,
    .decode_plain = any_decode_plain,
};
