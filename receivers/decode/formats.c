// SPDX-License-Identifier: Apache-2.0
// Lists the decoders, and decodes streams of records of any kind.
#include "receivers/decode/formats.h"

#include "base/memory.h"
#include "base/text/cut.h"
#include "receivers/decode/dcgm/dcgm.h"
#include "receivers/decode/dcgm/prometheus_api.h"
#include "receivers/decode/flight_recorder/flight_recorder.h"
#include "receivers/decode/kubernetes/kubernetes.h"
#include "receivers/decode/launcher/error_file.h"
#include "receivers/decode/log/log.h"
#include "receivers/decode/nccl_inspector/nccl_inspector.h"
#include "receivers/decode/nccl_ras/nccl_ras.h"
#include "receivers/decode/nvsentinel/nvsentinel.h"
#include "receivers/decode/py_spy/py_spy.h"
#include "receivers/decode/rank_map/rank_map.h"
#include "receivers/decode/spans/spans.h"
#include "receivers/decode/sysfs_aer/sysfs_aer.h"
#include "receivers/decode/tagged/tagged.h"
#include "receivers/decode/telemetry/record.h"
#include "receivers/decode/telemetry/telemetry.h"

#include <assert.h>

static const struct decoder_type *const decoders[] = {
    [FORMAT_STORMLOG] = &decoder_stormlog,
    [FORMAT_PICKLE] = &decoder_flight_pickle,
    [FORMAT_TAGGED_LINES] = &decoder_tagged,
    [FORMAT_SPANS] = &decoder_spans,
    [FORMAT_KUBERNETES] = &decoder_kubernetes,
    [FORMAT_FLIGHT_RECORDER] = &decoder_flight_json,
    [FORMAT_METRICS_TEXT] = &decoder_dcgm_text,
    [FORMAT_KERNEL_LOG] = &decoder_kernel_log,
    [FORMAT_DCGM] = &decoder_dcgm_json,
    [FORMAT_AER_COUNTERS] = &decoder_sysfs_aer,
    [FORMAT_RANK_MAP] = &decoder_rank_map,
    [FORMAT_APP_LOG] = &decoder_app_log,
    [FORMAT_LOG] = &decoder_log,
    [FORMAT_ERROR_FILE] = &decoder_error_file,
    [FORMAT_NCCL_RAS] = &decoder_nccl_ras,
    [FORMAT_NCCL_INSPECTOR] = &decoder_nccl_inspector,
    [FORMAT_PY_SPY] = &decoder_py_spy,
    [FORMAT_NVSENTINEL] = &decoder_nvsentinel,
    [FORMAT_PROMETHEUS] = &decoder_prometheus_api,
};
enum { DECODER_COUNT = sizeof decoders / sizeof decoders[0] };

const struct decoder_type *format_decoder(enum format_kind kind) {
    return (size_t)kind < DECODER_COUNT ? decoders[kind] : NULL;
}

const char *const format_choices[] = {
    "auto",           "stormlog", "tagged",     "flight_recorder", "kubernetes",
    "kernel_log",     "dcgm",     "dcgm_text",  "sysfs_aer",       "rank_map",
    "app_log",        "log",      "spans",      "error_file",      "nccl_ras",
    "nccl_inspector", "py_spy",   "nvsentinel", "prometheus_api",  NULL};

enum format_kind format_chosen(int choice) {
    assert(choice >= 0 && format_choices[choice] != NULL);
    static const enum format_kind kinds[] = {
        FORMAT_UNKNOWN,      FORMAT_STORMLOG,   FORMAT_TAGGED_LINES, FORMAT_FLIGHT_RECORDER,
        FORMAT_KUBERNETES,   FORMAT_KERNEL_LOG, FORMAT_DCGM,         FORMAT_METRICS_TEXT,
        FORMAT_AER_COUNTERS, FORMAT_RANK_MAP,   FORMAT_APP_LOG,      FORMAT_LOG,
        FORMAT_SPANS,        FORMAT_ERROR_FILE, FORMAT_NCCL_RAS,     FORMAT_NCCL_INSPECTOR,
        FORMAT_PY_SPY,       FORMAT_NVSENTINEL, FORMAT_PROMETHEUS};
    return kinds[choice];
}

bool format_is_decoder(struct slice name) {
    for (int i = 0; i < DECODER_COUNT; i++)
        if (decoders[i] != NULL && slice_equal(name, slice_of(decoders[i]->name)))
            return true;
    return slice_equal(name, slice_of(decoder_any.name));
}

bool format_is_of_lines(struct slice name) {
    static const enum format_kind kinds[] = {FORMAT_LOG, FORMAT_KERNEL_LOG, FORMAT_APP_LOG};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (slice_equal(name, slice_of(decoders[kinds[i]]->name)))
            return true;
    return false;
}

const struct decoder_type *format_stream_decoder(int choice) {
    enum format_kind kind = format_chosen(choice);
    return kind == FORMAT_UNKNOWN ? &decoder_any : decoders[kind];
}

// -- any kind -----------------------------------------------------------------------------------

struct any_state {
    struct decoder_input input;
    bool finishing;
    bool cut;              // the next record breaks off
    enum format_kind last; // whose `next` may have more
    struct telemetry_state telemetry;
    // The states of the other decoders, made when the first record of their kind comes: there may
    // be many sources, and most have one kind.
    void *parts[DECODER_COUNT];
    // The record at hand was passed on by another culprit as one of this kind. It stands by itself:
    // its decoder begins with it, in memory that is used again for the next of its kind.
    const struct forwarded *forwarded; // NULL: it was not
    enum format_kind forwarded_kind;
    void *apart[DECODER_COUNT];
};

static void *part_of(struct any_state *state, enum format_kind kind) {
    assert((size_t)kind < DECODER_COUNT && decoders[kind] != NULL);
    const struct decoder_type *decoder = decoders[kind];
    if (kind == FORMAT_STORMLOG)
        return &state->telemetry;
    if (state->forwarded != NULL && kind == state->forwarded_kind)
        return state->apart[kind];
    if (state->parts[kind] == NULL) {
        state->parts[kind] = memory_zero(1, decoder->state_size + 1); // some have none
        if (decoder->begin != NULL)
            decoder->begin(state->parts[kind], &state->input);
    }
    return state->parts[kind];
}

// Whether the decoder of this kind may have something to give.
static bool has_part(const struct any_state *state, enum format_kind kind) {
    bool is_apart = state->forwarded != NULL && kind == state->forwarded_kind;
    return decoders[kind] != NULL && (is_apart || state->parts[kind] != NULL);
}

static void any_begin(void *memory, const struct decoder_input *input) {
    struct any_state *state = memory;
    state->input = *input;
    // What the last bytes tell is asked now: they do not stay.
    if (input->tail.size > 0)
        (void)part_of(state, FORMAT_LOG);
    state->input.tail = (struct slice){NULL, 0};
}

// Telemetry, which is most of what comes, is not looked at twice.
static bool any_decode_plain(void *memory, struct slice record, struct arena *arena,
                             struct event *event) {
    struct any_state *state = memory;
    return decoder_stormlog.decode_plain(&state->telemetry, record, arena, event);
}

// Behind a brace: a word, and the brace is never closed. Programs that print in braces close them,
// or go on in the next line behind a quote or a comma.
static bool is_broken_object(struct slice behind) {
    bool is_letter = (behind.data[0] | 0x20) >= 'a' && (behind.data[0] | 0x20) <= 'z';
    return is_letter && memchr(behind.data, '}', behind.size) == NULL &&
           memchr(behind.data, ',', behind.size) == NULL;
}

// What the record is by its own looks. Only what begins as a JSON object does is one: programs
// print other things in braces, too ("{'loss': 0.3}"). FORMAT_UNKNOWN: an object whose keys say
// nothing; it may be old telemetry, which has hardly a key that it must have.
static enum format_kind kind_of(struct slice record, const struct forms *forms) {
    size_t at = 0;
    while (at < record.size && (unsigned char)record.data[at] <= ' ')
        at++;
    if (at == record.size || record.data[at] != '{')
        return FORMAT_LOG;
    for (at++; at < record.size && (unsigned char)record.data[at] <= ' ';)
        at++;
    // A brace alone is of something printed over several lines.
    if (at == record.size)
        return FORMAT_LOG;
    if (record.data[at] != '"' && record.data[at] != '}')
        return is_broken_object(text_from(record, at)) ? FORMAT_STORMLOG : FORMAT_LOG;
    enum format_kind kind = format_guess_by(record, true, FORMAT_UNKNOWN, forms).kind;
    return format_decoder(kind) == NULL ? FORMAT_UNKNOWN : kind;
}

static enum decode_category decode_as(struct any_state *state, enum format_kind kind, bool cut,
                                      struct slice record, struct arena *arena, struct event *event,
                                      struct decode_fault *fault) {
    const struct decoder_type *decoder = decoders[kind];
    assert(decoder != NULL);
    state->last = kind;
    uint64_t position = event->position;
    if (cut && decoder->cut != NULL)
        decoder->cut(part_of(state, kind));
    enum decode_category category =
        decoder->decode(part_of(state, kind), record, arena, event, fault);
    event->decoder = decoder;
    if (decoder->next == NULL) {
        event->position = position;
        event->lines = 1;
        event->raw = record;
    }
    return category;
}

static bool any_tell_refused(void *memory, struct slice start, struct slice why,
                             struct arena *arena, struct event *event) {
    struct any_state *state = memory;
    enum format_kind kind =
        state->forwarded != NULL ? state->forwarded_kind : format_of_path(state->input.path);
    if (kind == FORMAT_UNKNOWN)
        kind = kind_of(start, state->input.forms);
    const struct decoder_type *decoder = decoders[kind];
    if (decoder == NULL || decoder->tell_refused == NULL ||
        !decoder->tell_refused(part_of(state, kind), start, why, arena, event))
        return false;
    event->decoder = decoder;
    return true;
}

static bool is_indented(struct slice record) {
    return record.size > 0 && (record.data[0] == ' ' || record.data[0] == '\t');
}

static enum decode_category any_decode(void *memory, struct slice record, struct arena *arena,
                                       struct event *event, struct decode_fault *fault) {
    struct any_state *state = memory;
    state->last = FORMAT_STORMLOG;
    bool cut = state->cut;
    state->cut = false;
    if (state->forwarded != NULL)
        return decode_as(state, state->forwarded_kind, cut, record, arena, event, fault);
    enum format_kind kind = format_of_path(state->input.path);
    if (kind == FORMAT_UNKNOWN)
        kind = kind_of(record, state->input.forms);
    bool is_unknown = kind == FORMAT_UNKNOWN;
    if (is_unknown)
        kind = FORMAT_STORMLOG;
    enum decode_category category = decode_as(state, kind, cut, record, arena, event, fault);
    // A line of a source, as a traceback shows it: `{"labels": x}["labels"]`.
    if (is_unknown && category == DECODE_BAD_JSON && is_indented(record))
        return decode_as(state, FORMAT_LOG, cut, record, arena, event, fault);
    // Programs write objects of their own into their logs.
    if (is_unknown && category == DECODE_MISSING_TIMESTAMP && state->input.is_file)
        return DECODE_NOTHING;
    return category;
}

static enum decode_category part_next(struct any_state *state, enum format_kind kind,
                                      struct arena *arena, struct event *event,
                                      struct decode_fault *fault) {
    const struct decoder_type *decoder = decoders[kind];
    if (decoder == NULL || decoder->next == NULL || !has_part(state, kind))
        return DECODE_END;
    event->decoder = decoder;
    return decoder->next(part_of(state, kind), arena, event, fault);
}

static enum decode_category any_next(void *memory, struct arena *arena, struct event *event,
                                     struct decode_fault *fault) {
    struct any_state *state = memory;
    if (!state->finishing)
        return part_next(state, state->last, arena, event, fault);
    for (int i = 0; i < DECODER_COUNT; i++) {
        enum decode_category category = part_next(state, (enum format_kind)i, arena, event, fault);
        if (category != DECODE_END)
            return category;
    }
    state->finishing = false;
    return DECODE_END;
}

// Only lines of logs are searched; objects among them may be of any kind.
static void any_pass_over(void *memory, struct slice text, const struct found_lines *found,
                          struct line_run runs[LINE_RUNS]) {
    enum { OTHERS = 256 };
    struct any_state *state = memory;
    memset(runs, 0, LINE_RUNS * sizeof *runs);
    if (state->last != FORMAT_LOG || state->forwarded != NULL)
        runs[0].offered = OTHERS;
    else
        log_pass_over(part_of(state, FORMAT_LOG), text, true, found, runs);
}

static bool any_holds(const void *memory) {
    struct any_state *state = (struct any_state *)(uintptr_t)memory;
    for (int i = 0; i < DECODER_COUNT; i++)
        if (has_part(state, (enum format_kind)i) && decoders[i]->holds != NULL &&
            decoders[i]->holds(part_of(state, (enum format_kind)i)))
            return true;
    return false;
}

static void any_finish(void *memory) {
    struct any_state *state = memory;
    state->finishing = true;
    for (int i = 0; i < DECODER_COUNT; i++)
        if (has_part(state, (enum format_kind)i) && decoders[i]->finish != NULL)
            decoders[i]->finish(part_of(state, (enum format_kind)i));
}

static void any_cut(void *memory) {
    ((struct any_state *)memory)->cut = true;
}

static void any_written(void *memory, uint64_t written_ns) {
    struct any_state *state = memory;
    if (written_ns > state->input.observed_ns)
        state->input.observed_ns = written_ns;
    for (int i = 0; i < DECODER_COUNT; i++)
        if (has_part(state, (enum format_kind)i) && decoders[i]->written != NULL)
            decoders[i]->written(part_of(state, (enum format_kind)i), written_ns);
}

static void end_apart(struct any_state *state) {
    const struct decoder_type *decoder = decoders[state->forwarded_kind];
    if (state->forwarded != NULL && decoder->release != NULL)
        decoder->release(state->apart[state->forwarded_kind]);
    state->forwarded = NULL;
}

static enum format_kind kind_named(struct slice name) {
    for (int i = 0; i < DECODER_COUNT; i++)
        if (decoders[i] != NULL && slice_equal(name, slice_of(decoders[i]->name)))
            return (enum format_kind)i;
    return FORMAT_UNKNOWN;
}

// Telemetry says all by itself, and spans are told in the order of their stream.
static void any_pass_on(void *memory, const struct forwarded *forwarded) {
    struct any_state *state = memory;
    end_apart(state);
    enum format_kind kind = forwarded == NULL ? FORMAT_UNKNOWN : kind_named(forwarded->format);
    if (kind == FORMAT_UNKNOWN || kind == FORMAT_STORMLOG || kind == FORMAT_SPANS)
        return;
    const struct decoder_type *decoder = decoders[kind];
    if (state->apart[kind] == NULL)
        state->apart[kind] = memory_take(decoder->state_size + 1);
    memset(state->apart[kind], 0, decoder->state_size + 1);
    state->forwarded = forwarded;
    state->forwarded_kind = kind;
    uint64_t observed_ns =
        forwarded->observed_ns != 0 ? forwarded->observed_ns : forwarded->time_ns;
    struct decoder_input input = {.zone = state->input.zone,
                                  .node = intern_slice(forwarded->node),
                                  .world_size = state->input.world_size,
                                  .path = intern_slice(forwarded->carried.path),
                                  .observed_ns = observed_ns,
                                  .is_file = forwarded->is_file,
                                  .forms = state->input.forms,
                                  .forwarded = forwarded};
    if (decoder->begin != NULL)
        decoder->begin(state->apart[kind], &input);
}

static void any_release(void *memory) {
    struct any_state *state = memory;
    end_apart(state);
    for (int i = 0; i < DECODER_COUNT; i++) {
        memory_give(state->apart[i]);
        state->apart[i] = NULL;
        if (state->parts[i] != NULL && decoders[i] != NULL && decoders[i]->release != NULL)
            decoders[i]->release(state->parts[i]);
        memory_give(state->parts[i]);
        state->parts[i] = NULL;
    }
}

const struct decoder_type decoder_any = {
    .name = "any",
    .state_size = sizeof(struct any_state),
    .begin = any_begin,
    .decode = any_decode,
    .tell_refused = any_tell_refused,
    .next = any_next,
    .pass_over = any_pass_over,
    .holds = any_holds,
    .finish = any_finish,
    .cut = any_cut,
    .written = any_written,
    .pass_on = any_pass_on,
    .release = any_release,
    .decode_plain = any_decode_plain,
    .plain = &decoder_stormlog,
};
