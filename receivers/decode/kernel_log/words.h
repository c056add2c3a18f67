// SPDX-License-Identifier: Apache-2.0
// Finds readers of messages by a word in them.
//
// The kernel has no one form for its messages: each is told by a phrase, mostly at its front, often
// behind the name of a driver. All phrases are looked for in one pass, at beginnings of words;
// where one stands, its reader is given what stands before and behind it.
#pragma once

#include "base/text/cut.h"
#include "receivers/decode/line/reader.h"
#include "receivers/decode/line/reading.h"

// The kernel's messages have at most 2048 bytes; what is longer is read so far.
enum { WORDS_MESSAGE_MAX = 4096 };

typedef enum read_result word_read(struct slice before, struct slice behind,
                                   const struct frame *frame, struct reading *reading);

struct word_row {
    struct slice word;
    word_read *read;
};
#define WORD(text, function)                                                                       \
    { {(text), sizeof(text) - 1}, (function) }

// Rows are in the order of the letters that their words begin with; `letters`: 128 of them, true
// where a word begins with it.
struct word_table {
    const struct word_row *rows;
    size_t count;
    const bool *letters;
};

// READ_NOT: no word is there, or their readers want none of it. A reading of a line that is cut has
// the fact `truncated`.
enum read_result words_read(const struct word_table *table, struct slice message,
                            const struct frame *frame, struct reading *reading);

// At most WORDS_MESSAGE_MAX bytes of it.
struct slice words_front(struct slice message);
// What stands before and behind the last `wanted` in the text; false when it is not there.
bool words_find_last(struct slice text, struct slice wanted, struct slice *before,
                     struct slice *behind);
// What stands before and behind the first one.
bool words_find(struct slice text, struct slice wanted, struct slice *before, struct slice *behind);
bool words_ends(struct slice text, struct slice end);
// Sets FACT_PROCESS and FACT_PID.
void words_set_process(struct slice name, int64_t pid, struct reading *reading);
