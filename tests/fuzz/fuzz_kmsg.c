// SPDX-License-Identifier: Apache-2.0
// Whatever a read of /dev/kmsg gives is told: a record, or none; and whatever stands where a cursor
// of the journal is expected.
//
// Records are the input's parts between NULs. The line that is made of one is a tagged line that
// its decoder takes: never broken JSON, never without its time. A cursor that is read is written
// and read again as the same.
#include "base/memory.h"
#include "receivers/decode/tagged/line.h"
#include "receivers/decode/tagged/tagged.h"
#include "receivers/journald/cursor.h"
#include "receivers/kmsg/record.h"
#include "receivers/kmsg/wall_clock.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds) {
    if (!holds)
        abort();
}

static void decode(void *state, struct slice line, struct arena *arena) {
    struct event event = {.position = 1, .lines = 1, .rank = RANK_NONE};
    struct decode_fault fault = {0};
    enum decode_category category = decoder_tagged.decode(state, line, arena, &event, &fault);
    require(category != DECODE_BAD_JSON && category != DECODE_NOT_OBJECT &&
            category != DECODE_MISSING_FIELD && category != DECODE_WRONG_TYPE);
    while (category != DECODE_END)
        category = decoder_tagged.next(state, arena, &event, &fault);
    arena_reset(arena);
}

static void read_record(struct slice bytes, void *state, struct arena *arena) {
    static struct wall_clock wall;
    struct kmsg_record record;
    struct buffer line;
    if (!kmsg_record_parse(bytes, &record))
        return;
    require(record.level < 8 && record.sequence < UINT64_MAX);
    require(record.text.data >= bytes.data &&
            record.text.data + record.text.size <= bytes.data + bytes.size);
    char *text = memory_take(record.text.size + 1);
    size_t size = kmsg_unescape(record.text, text);
    require(size <= record.text.size);
    wall.count = 0;
    wall_clock_begin(&wall, UINT64_C(1790000000000000000), 5);
    wall_clock_fresh(&wall, record.sequence, record.usec, UINT64_C(1790000000000000000));
    buffer_init(&line, 6 * size + 4096);
    tagged_line_append(
        &(struct tagged_line){.kernel = true,
                              .rank = RANK_NONE,
                              .time_ns = wall_clock_time(&wall, record.sequence, record.usec),
                              .node = SLICE("n"),
                              .message = {text, size}},
        &line);
    require(!line.failed);
    decode(state, buffer_slice(&line), arena);
    buffer_release(&line);
    memory_give(text);
}

static void read_cursor(struct slice bytes) {
    struct journal_cursor cursor, again;
    char text[JOURNAL_CURSOR_TEXT_MAX];
    if (!journal_cursor_parse(bytes, &cursor))
        return;
    journal_cursor_format(&cursor, text);
    require(journal_cursor_parse(slice_of(text), &again));
    require(memcmp(&cursor, &again, sizeof cursor) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    void *state = memory_zero(1, decoder_tagged.state_size);
    struct arena arena;
    arena_init(&arena, 4096);
    decoder_tagged.begin(state, &(struct decoder_input){.path = SLICE("kmsg")});
    while (size > 0) {
        const uint8_t *end = memchr(data, '\0', size);
        size_t length = end == NULL ? size : (size_t)(end - data);
        char *copy = memory_take(length + 1); // a block of its own: reads past its end are seen
        memcpy(copy, data, length);
        read_record((struct slice){copy, length}, state, &arena);
        read_cursor((struct slice){copy, length});
        memory_give(copy);
        length += end != NULL;
        data += length;
        size -= length;
    }
    decoder_tagged.release(state);
    arena_release(&arena);
    memory_give(state);
    intern_release();
    return 0;
}
