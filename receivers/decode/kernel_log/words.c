// SPDX-License-Identifier: Apache-2.0
// A beginning of a word is compared with the rows only when its letter begins one of them, so that
// a message of no interest costs one look at each byte. O(message × log(rows)), and as many readers
// as words are found; the length is bounded.
#include "receivers/decode/kernel_log/words.h"

#include "pipeline/model/event.h"

#include <assert.h>

enum { LETTERS = 128 };

static bool in_word(char c) {
    return text_is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool begins_row(const struct word_table *table, char c) {
    unsigned char letter = (unsigned char)c;
    return letter < LETTERS && table->letters[letter];
}

// The first row that begins with the letter.
static size_t find_letter(const struct word_table *table, char letter) {
    size_t low = 0, high = table->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (*table->rows[middle].word.data < letter)
            low = middle + 1;
        else
            high = middle;
    }
    assert(low < table->count && *table->rows[low].word.data == letter);
    return low;
}

static enum read_result ask_rows(const struct word_table *table, struct slice message, size_t at,
                                 const struct frame *frame, struct reading *reading) {
    struct slice text = text_from(message, at), before = {message.data, at};
    for (size_t i = find_letter(table, *text.data);
         i < table->count && *table->rows[i].word.data == *text.data; i++) {
        const struct word_row *row = &table->rows[i];
        if (!text_begins(text, row->word))
            continue;
        enum read_result result =
            row->read(before, text_from(text, row->word.size), frame, reading);
        assert(result != READ_BEGIN);
        if (result != READ_NOT)
            return result;
    }
    return READ_NOT;
}

struct slice words_front(struct slice message) {
    return message.size > WORDS_MESSAGE_MAX ? (struct slice){message.data, WORDS_MESSAGE_MAX}
                                            : message;
}

enum read_result words_read(const struct word_table *table, struct slice message,
                            const struct frame *frame, struct reading *reading) {
    message = words_front(message);
    for (size_t at = 0; at < message.size; at++) {
        if (!begins_row(table, message.data[at]) || (at > 0 && in_word(message.data[at - 1])))
            continue;
        enum read_result result = ask_rows(table, message, at, frame, reading);
        if (result == READ_EVENT && frame->truncated && reading->kind == EVENT_OBSERVATION)
            reading_yes_no(reading, FACT_TRUNCATED, true);
        if (result != READ_NOT)
            return result;
    }
    return READ_NOT;
}

bool words_find(struct slice text, struct slice wanted, struct slice *before,
                struct slice *behind) {
    struct slice rest;
    if (!text_find(text, wanted, &rest))
        return false;
    *before = (struct slice){text.data, text.size - rest.size - wanted.size};
    *behind = rest;
    return true;
}

bool words_find_last(struct slice text, struct slice wanted, struct slice *before,
                     struct slice *behind) {
    for (size_t at = text.size; at-- > 0;) {
        struct slice rest = text_from(text, at);
        if (*rest.data != *wanted.data || !text_begins(rest, wanted))
            continue;
        *before = (struct slice){text.data, at};
        *behind = text_from(rest, wanted.size);
        return true;
    }
    return false;
}

bool words_ends(struct slice text, struct slice end) {
    return text.size >= end.size && text_begins(text_from(text, text.size - end.size), end);
}

void words_set_process(struct slice name, int64_t pid, struct reading *reading) {
    reading_text(reading, FACT_PROCESS, name);
    reading_number(reading, FACT_PID, pid);
}
