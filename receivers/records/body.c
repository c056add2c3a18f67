// SPDX-License-Identifier: Apache-2.0
#include "receivers/records/body.h"

#include "base/text/cut.h"
#include "receivers/decode/formats.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>

bool text_is_blank(struct slice text) {
    for (size_t i = 0; i < text.size; i++)
        if (!isspace((unsigned char)text.data[i]))
            return false;
    return true;
}

size_t text_filling(struct slice bytes) {
    size_t size = 0;
    while (size < bytes.size && bytes.data[size] == '\0')
        size++;
    return size;
}

size_t text_mark(struct slice bytes) {
    return text_begins(bytes, SLICE("\xef\xbb\xbf")) ? 3 : 0;
}

void body_begin_one(struct body *body, struct slice bytes, size_t record_max) {
    assert(record_max > 0);
    body->kind = BODY_ONE;
    body->bytes = bytes;
    body->record_max = record_max;
    body->ended = false;
}

void body_set_lines(struct body *body) {
    assert(body->kind != BODY_FOREIGN && !body->ended);
    body->kind = BODY_LINES;
    body->rest = body->bytes;
}

void body_begin(struct body *body, struct slice bytes, size_t record_max, enum format_kind forced) {
    bytes = text_from(bytes, text_mark(bytes));
    body_begin_one(body, bytes, record_max);
    struct format_guess guess = format_guess(bytes, true, forced);
    body->format = guess.kind;
    // What is not known is left to the decoder, which says of each record what is missing.
    bool is_known = guess.kind != FORMAT_UNKNOWN && guess.kind != FORMAT_BINARY;
    if (is_known && format_decoder(guess.kind) == NULL) {
        body->kind = BODY_FOREIGN;
    } else if (guess.layout == LAYOUT_LINES) {
        body_set_lines(body);
    } else if (guess.layout != LAYOUT_WHOLE) {
        body->kind = BODY_DOCUMENT;
        splitter_begin(&body->split, guess.layout, record_max);
    }
}

static bool refuse(struct body_record *record, struct slice bytes, enum decode_category category,
                   const char *why) {
    *record = (struct body_record){bytes, category, why};
    return true;
}

static bool give(const struct body *body, struct body_record *record, struct slice bytes) {
    if (bytes.size > body->record_max)
        return refuse(record, bytes, DECODE_TOO_LONG, "it is longer than max_record_size");
    *record = (struct body_record){bytes, DECODE_OK, NULL};
    return true;
}

// The states of a bar that overwrites itself for long are no one record: as many as fit.
static struct slice take_states(struct body *body, struct slice line) {
    if (line.size <= body->record_max)
        return line;
    const char *end = memrchr(line.data, '\r', body->record_max + 1);
    if (end == NULL || end == line.data)
        return line;
    body->rest = (struct slice){end, (size_t)(body->bytes.data + body->bytes.size - end)};
    return (struct slice){line.data, (size_t)(end - line.data)};
}

static bool next_line(struct body *body, struct body_record *record) {
    while (body->rest.size > 0) {
        body->rest = text_from(body->rest, text_filling(body->rest));
        struct slice line = text_take_line(&body->rest);
        if (line.size > 0 && line.data[line.size - 1] == '\r')
            line.size--;
        line = take_states(body, line);
        if ((line.size > 0 && (unsigned char)line.data[0] > ' ') || !text_is_blank(line))
            return give(body, record, line);
    }
    return false;
}

static bool next_of_document(struct body *body, struct body_record *record) {
    struct slice bytes = {NULL, 0};
    switch (splitter_next(&body->split, body->bytes, &bytes)) {
    case SPLIT_RECORD:
        if (bytes.data[0] != '{')
            return refuse(record, bytes, DECODE_NOT_OBJECT, "not a JSON object");
        return give(body, record, bytes);
    case SPLIT_EMPTY:
        return refuse(record, SLICE(""), DECODE_BAD_JSON, "expected a record");
    case SPLIT_TOO_LONG:
        return refuse(record, bytes, DECODE_TOO_LONG, "it is longer than max_record_size");
    case SPLIT_FAULT:
        body->ended = true;
        snprintf(body->text, sizeof body->text, "%s (byte %llu): the rest is not read",
                 body->split.fault, (unsigned long long)body->split.fault_at);
        return refuse(record, SLICE(""), DECODE_BAD_JSON, body->text);
    case SPLIT_MORE:
        break;
    }
    body->ended = true;
    const char *missing = splitter_end(&body->split);
    return missing != NULL && refuse(record, SLICE(""), DECODE_TORN, missing);
}

bool body_next(struct body *body, struct body_record *record) {
    if (body->ended)
        return false;
    if (body->bytes.size > 0 && body->kind == BODY_LINES)
        return next_line(body, record);
    if (body->bytes.size > 0 && body->kind == BODY_DOCUMENT)
        return next_of_document(body, record);
    body->ended = true;
    if (body->bytes.size == 0)
        return refuse(record, body->bytes, DECODE_BAD_JSON, "the value is empty");
    if (body->kind == BODY_ONE)
        return give(body, record, body->bytes);
    snprintf(body->text, sizeof body->text, "it looks like %s, which is not read from a stream",
             format_name(body->format));
    return refuse(record, body->bytes, DECODE_BAD_JSON, body->text);
}
