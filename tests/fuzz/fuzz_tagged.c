// SPDX-License-Identifier: Apache-2.0
// Lines of any source are answered, and mean the same when they come again.
//
// The input is lines of one stream, so one state is kept through all of them; each line lies in a
// block of its own, so that a read past its end is seen. A line is decoded twice in a row; only
// sources that remember lines (logs, entries of a recorder) may answer otherwise than before, and
// none may answer without a reason.
#include "base/memory.h"
#include "pipeline/model/node_event.h"
#include "receivers/decode/tagged/tagged.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds) {
    if (!holds)
        abort();
}

static bool may_remember(enum event_kind kind) {
    return kind == EVENT_KERNEL || kind == EVENT_FLIGHT || kind == EVENT_APP_LINE ||
           kind == EVENT_OBSERVATION;
}

static void require_answer(enum decode_category category, const struct event *event,
                           const struct decode_fault *fault) {
    if (category == DECODE_OK) {
        require(event->kind > EVENT_TELEMETRY && event->kind <= EVENT_OBSERVATION);
        require(event->time_ns != 0 && event->telemetry != NULL);
        require(event->rank >= RANK_NONE && event->rank <= RANK_MAX);
        require(event->node != STRING_REFUSED && event->job != STRING_REFUSED);
    } else if (decode_refused(category)) {
        require(fault->category == category && fault->detail[0] != '\0');
    }
}

// What a line gave beyond one event, and what was held.
static void take_others(void *state, struct arena *arena) {
    enum decode_category category;
    do {
        struct event event = {0};
        struct decode_fault fault = {0};
        category = decoder_tagged.next(state, arena, &event, &fault);
        require_answer(category, &event, &fault);
    } while (category != DECODE_END);
}

static enum decode_category decode(void *state, struct slice record, struct arena *arena,
                                   struct event *event) {
    struct decode_fault fault = {0};
    memset(event, 0, sizeof *event);
    enum decode_category category = decoder_tagged.decode(state, record, arena, event, &fault);
    require_answer(category, event, &fault);
    if (!decode_refused(category))
        take_others(state, arena);
    return category;
}

static void decode_twice(void *state, struct slice record, struct arena *arena) {
    struct event first, again;
    enum decode_category category = decode(state, record, arena, &first);
    enum decode_category repeated = decode(state, record, arena, &again);
    if (category == DECODE_OK && !may_remember(first.kind)) {
        require(repeated == DECODE_OK && first.kind == again.kind);
        require(first.time_ns == again.time_ns && first.node == again.node);
        require(first.rank == again.rank && first.job == again.job);
    }
    arena_reset(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    void *state = memory_zero(1, decoder_tagged.state_size);
    struct arena arena;
    arena_init(&arena, 4096);
    decoder_tagged.begin(state, &(struct decoder_input){.path = SLICE("lines")});
    while (size > 0) {
        const uint8_t *newline = memchr(data, '\n', size);
        size_t length = newline == NULL ? size : (size_t)(newline - data);
        char *record = memory_take(length);
        memcpy(record, data, length);
        decode_twice(state, (struct slice){record, length}, &arena);
        memory_give(record);
        length += newline != NULL;
        data += length;
        size -= length;
    }
    decoder_tagged.finish(state);
    take_others(state, &arena);
    require(!decoder_tagged.holds(state));
    decoder_tagged.release(state);
    arena_release(&arena);
    memory_give(state);
    intern_release();
    return 0;
}
