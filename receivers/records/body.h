// SPDX-License-Identifier: Apache-2.0
// Cuts what came as a whole (the body of a request, the value of a message) into its records.
//
// The same formats and layouts as in a file: one object, JSON Lines, an array, an object that holds
// one. Nothing is copied or kept: records point into the bytes, which can be walked through again.
#pragma once

#include "pipeline/component/decoder.h"
#include "receivers/decode/format.h"
#include "receivers/decode/split.h"

enum body_kind {
    BODY_ONE, // all of it is one record
    BODY_LINES,
    BODY_DOCUMENT,
    BODY_FOREIGN, // `format`, which no decoder reads: one record that is refused
};

struct body {
    enum body_kind kind;
    enum format_kind format;
    struct slice bytes;
    struct slice rest; // LINES
    size_t record_max;
    struct splitter split; // DOCUMENT
    bool ended;
    char text[DECODE_DETAIL_MAX];
};

struct body_record {
    struct slice bytes;
    enum decode_category refusal; // DECODE_OK: it is for the decoder
    const char *why;              // of a refusal, a clause: static, or the body's `text`
};

// How many zeros the bytes begin with: a hole, which is nothing that anybody wrote.
size_t text_filling(struct slice bytes);
// Size of the mark of UTF-8 that they begin with, or 0.
size_t text_mark(struct slice bytes);

// The bytes are one record.
void body_begin_one(struct body *body, struct slice bytes, size_t record_max);
// They are what they look like; `forced` as in format_guess.
void body_begin(struct body *body, struct slice bytes, size_t record_max, enum format_kind forced);
// They are JSON Lines; after body_begin.
void body_set_lines(struct body *body);
// The next record, or what is refused in its place; false at the end.
bool body_next(struct body *body, struct body_record *record);

// Nothing but white space.
bool text_is_blank(struct slice text);
