// SPDX-License-Identifier: Apache-2.0
// Whatever an endpoint answers, a scrape is taken whole or not at all, each series counts once, and
// what comes out are tagged lines that their decoder takes.
//
// The first byte chooses the format and who says the node; the rest is the answer, in a block of
// its own.
#include "receivers/decode/tagged/tagged.h"
#include "receivers/prometheus_scrape/split.h"
#include "tests/fuzz/fuzz.h"

static const uint64_t NOW = UINT64_C(1794992400000000000);

static uint64_t refused;

static void on_refused(void *context, struct slice line, uint64_t number,
                       const struct decode_fault *fault) {
    (void)context;
    require(line.size > 0 && number > 0 && fault->detail[0] != '\0');
    require(decode_refused(fault->category));
    refused++;
}

// Series by a second count, line by line.
static uint64_t count_series(struct slice text) {
    struct fuzz_input input = {text.data, text.size};
    uint64_t count = 0;
    for (struct slice line; fuzz_piece(&input, '\n', &line);) {
        size_t at = 0;
        while (at < line.size && memchr(" \t\r", line.data[at], 3) != NULL)
            at++;
        count += at < line.size && line.data[at] != '#';
    }
    return count;
}

static void decode_lines(void *state, struct slice lines, struct arena *arena) {
    struct fuzz_input input = {lines.data, lines.size};
    for (struct slice line; fuzz_piece(&input, '\n', &line);) {
        struct event event = {0};
        struct decode_fault fault = {0};
        enum decode_category category = decoder_tagged.decode(state, line, arena, &event, &fault);
        require(!decode_refused(category) || category == DECODE_LIMIT);
        while (!decode_refused(category) && category != DECODE_END) {
            require(category == DECODE_NOTHING ||
                    (event.time_ns != 0 && event.node != STRING_NONE));
            category = decoder_tagged.next(state, arena, &event, &fault);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct fuzz_input input = {(const char *)data, size};
    uint8_t choice = fuzz_byte(&input);
    struct slice text = fuzz_block((struct slice){input.at, input.left});
    struct scrape_text scrape = {.text = text, .time_ns = NOW, .otherwise = SLICE("host")};
    struct scrape_split split;
    struct arena arena;
    if ((choice & 2) != 0)
        scrape.node = SLICE("node-a");
    if ((choice & 4) != 0)
        scrape.node_label = SLICE("instance");
    scrape_split_init(&split);
    arena_init(&arena, 1 << 16);
    split.refused = on_refused;
    refused = 0;
    void *state = memory_zero(1, decoder_tagged.state_size);
    const char *wrong = scrape_split_text(&split, &scrape, (choice & 1) != 0);
    const struct scrape_counts *counts = &split.counts;
    require(wrong == NULL || (counts->taken + counts->other + counts->refused == 0));
    require(counts->refused == refused);
    require(wrong != NULL || counts->taken + counts->other + counts->refused == count_series(text));
    while (wrong == NULL && scrape_split_next(&split))
        decode_lines(state, buffer_slice(&split.lines), &arena);
    decoder_tagged.release(state);
    memory_give(state);
    arena_release(&arena);
    scrape_split_release(&split);
    memory_give((void *)(uintptr_t)text.data);
    intern_release();
    return 0;
}
