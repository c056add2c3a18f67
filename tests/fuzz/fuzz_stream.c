// SPDX-License-Identifier: Apache-2.0
// Any input read as any format: a file is told by its first bytes, cut, and decoded, and each line
// is decoded by the readers of plain lines as well.
//
// The input is a file. What it looks like must not depend on how much more of it there is, once
// that is decided. Its lines are read as a rank map, as an application's log, and by the decoder
// that tells kinds apart, with and without a time of reading; accepted ones must have a time and
// refused ones a reason.
#include "base/intern.h"
#include "pipeline/model/observation.h"
#include "receivers/decode/formats.h"
#include "receivers/decode/log/log.h"
#include "receivers/decode/rank_map/rank_map.h"
#include "tests/fuzz/fuzz.h"

static const uint64_t NOW = UINT64_C(1794992400000000000);

static void guess(struct slice text) {
    struct format_guess whole = format_guess(text, true, FORMAT_UNKNOWN);
    require(whole.decided && strlen(format_name(whole.kind)) > 3);
    for (size_t size = 1; size < text.size; size = size * 2 + 1) {
        struct format_guess early =
            format_guess((struct slice){text.data, size}, false, FORMAT_UNKNOWN);
        if (early.decided)
            require(early.kind == whole.kind && early.layout == whole.layout);
    }
}

// What a decoder said of a record, or of those that it held.
static void require_answer(const struct decoder_type *decoder, enum decode_category category,
                           const struct event *event, const struct decode_fault *fault,
                           uint64_t observed_ns) {
    require(category >= DECODE_END && category < DECODE_CATEGORY_COUNT);
    if (category == DECODE_OK) {
        require(event->time_ns != 0 && event->telemetry != NULL);
        require(event->kind != EVENT_OBSERVATION || event->observation->kind != OBSERVATION_NONE);
        require(event->job != STRING_REFUSED && event->node != STRING_REFUSED);
        require(event->rank >= RANK_NONE && event->rank <= RANK_MAX);
        require(decoder != &decoder_rank_map || event->kind == EVENT_RANK_MAP);
        // Never the kernel's words.
        require(decoder != &decoder_app_log || event->kind == EVENT_APP_LINE ||
                event->kind == EVENT_OBSERVATION);
    } else if (decode_refused(category)) {
        require(fault->category == category && fault->detail[0] != '\0');
        require(observed_ns == 0 || category != DECODE_MISSING_TIMESTAMP ||
                decoder == &decoder_any);
    }
}

// Events and refusals beyond the record's own, until there are no more.
static void take_others(const struct decoder_type *decoder, void *state, struct arena *arena,
                        uint64_t observed_ns) {
    enum decode_category category = DECODE_END;
    do {
        struct event event = {0};
        struct decode_fault fault = {0};
        if (decoder->next != NULL)
            category = decoder->next(state, arena, &event, &fault);
        require_answer(decoder, category, &event, &fault, observed_ns);
    } while (category != DECODE_END);
}

static void decode(const struct decoder_type *decoder, void *state, struct slice line,
                   uint64_t observed_ns) {
    struct event event = {0};
    struct decode_fault fault = {0};
    struct arena arena;
    arena_init(&arena, 4096);
    // What is taken unseen must be what it would be taken for when it is looked at.
    if (decoder->decode_plain != NULL && decoder->decode_plain(state, line, &arena, &event)) {
        struct format_guess seen = format_guess(line, true, FORMAT_UNKNOWN);
        require(seen.kind == FORMAT_STORMLOG || seen.kind == FORMAT_UNKNOWN);
        require(seen.layout != LAYOUT_WRAPPER && seen.layout != LAYOUT_ARRAY);
    }
    enum decode_category category = decoder->decode(state, line, &arena, &event, &fault);
    require(category != DECODE_END);
    require_answer(decoder, category, &event, &fault, observed_ns);
    take_others(decoder, state, &arena, observed_ns);
    arena_release(&arena);
}

// Nothing more comes.
static void end(const struct decoder_type *decoder, void *state, uint64_t observed_ns) {
    struct arena arena;
    arena_init(&arena, 4096);
    if (decoder->finish != NULL)
        decoder->finish(state);
    take_others(decoder, state, &arena, observed_ns);
    require(decoder->holds == NULL || !decoder->holds(state));
    if (decoder->release != NULL)
        decoder->release(state);
    arena_release(&arena);
    memory_give(state);
}

static void read_lines(const struct decoder_type *decoder, struct slice text,
                       uint64_t observed_ns) {
    void *state = memory_zero(1, decoder->state_size + 1);
    if (decoder->begin != NULL)
        decoder->begin(state, &(struct decoder_input){.path = SLICE("/var/log/rank-3.log"),
                                                      .observed_ns = observed_ns});
    struct fuzz_input input = {text.data, text.size};
    for (struct slice line; fuzz_piece(&input, '\n', &line);) {
        struct slice block = fuzz_block(line);
        decode(decoder, state, block, observed_ns);
        fuzz_block_give(block);
    }
    end(decoder, state, observed_ns);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const struct decoder_type *const decoders[] = {&decoder_rank_map, &decoder_app_log,
                                                          &decoder_any};
    struct slice text = {(const char *)data, size};
    guess(text);
    for (size_t i = 0; i < 3; i++) {
        read_lines(decoders[i], text, NOW);
        read_lines(decoders[i], text, 0);
    }
    // A file that is one record.
    struct format_guess kind = format_guess(text, true, FORMAT_UNKNOWN);
    const struct decoder_type *decoder = format_decoder(kind.kind);
    if (decoder != NULL && kind.layout == LAYOUT_WHOLE) {
        void *state = memory_zero(1, decoder->state_size + 1);
        struct slice block = fuzz_block(text);
        if (decoder->begin != NULL)
            decoder->begin(state, &(struct decoder_input){.path = SLICE("/x/dump_0"),
                                                          .observed_ns = NOW,
                                                          .is_file = true,
                                                          .tail = block});
        decode(decoder, state, block, NOW);
        fuzz_block_give(block);
        end(decoder, state, NOW);
    }
    intern_release();
    return 0;
}
