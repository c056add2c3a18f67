// SPDX-License-Identifier: Apache-2.0
// The op codes of a pickle one by one, as far as PyTorch writes them.
//
// Each function stands at an op code and, when it is one that it takes, goes behind what belongs to
// it; false means that the pickle is cut off, wrong, or written otherwise, and the stream is then
// good for nothing. Nothing is read at or past `end`. A value is put into the memo at once and in
// the next place, or not at all. Memory: 16 bytes for each place of the memo. Any thread.
// Source: CPython, Lib/pickletools.py; PyTorch, torch/csrc/jit/serialization/pickler.cpp.
#pragma once

#include "base/arena.h"
#include "receivers/decode/json/scan.h"

#include <assert.h>

enum pickle_op {
    OP_MARK = '(',
    OP_STOP = '.',
    OP_BINFLOAT = 'G',
    OP_BININT = 'J',
    OP_BININT1 = 'K',
    OP_BININT2 = 'M',
    OP_NONE = 'N',
    OP_BINUNICODE = 'X',
    OP_EMPTY_LIST = ']',
    OP_APPENDS = 'e',
    OP_BINGET = 'h',
    OP_LONG_BINGET = 'j',
    OP_BINPUT = 'q',
    OP_LONG_BINPUT = 'r',
    OP_SETITEMS = 'u',
    OP_EMPTY_DICT = '}',
    OP_PROTO = 0x80,
    OP_TUPLE2 = 0x86,
    OP_NEWTRUE = 0x88,
    OP_NEWFALSE = 0x89,
    OP_LONG1 = 0x8a,
};

enum { PICKLE_FIELD_UNKNOWN = 0xff }; // not looked for yet

struct pickle_memo_item {
    const char *data; // of a text; NULL: another value, which is passed over
    uint32_t size;
    uint8_t field; // as which its text is a key: an index in FLIGHT_FIELDS, or PICKLE_FIELD_UNKNOWN
};

struct pickle_stream {
    const unsigned char *at, *end;
    struct arena *scratch; // the memo's
    struct pickle_memo_item *memo;
    uint32_t memo_count, memo_capacity;
};

static inline size_t pickle_left(const struct pickle_stream *stream) {
    assert(stream->at <= stream->end);
    return (size_t)(stream->end - stream->at);
}

// The next op code; at the end 0, which is none.
static inline unsigned char pickle_peek(const struct pickle_stream *stream) {
    return stream->at < stream->end ? *stream->at : 0;
}

static inline bool pickle_skip_op(struct pickle_stream *stream, unsigned char code) {
    if (pickle_peek(stream) != code)
        return false;
    stream->at++;
    return true;
}

static bool pickle_is_integer(unsigned char code) {
    return code == OP_BININT1 || code == OP_BININT2 || code == OP_BININT || code == OP_LONG1;
}

// Puts the value that came last where it is said; true also when it is not put anywhere.
bool pickle_take_put(struct pickle_stream *stream, struct pickle_memo_item item);
bool pickle_take_put_other(struct pickle_stream *stream); // a value that is no text
// Behind BINGET or LONG_BINGET; NULL: there is no such place.
struct pickle_memo_item *pickle_memo_get(struct pickle_stream *stream, unsigned char code);
// Behind BINUNICODE; what puts it into the memo comes next.
bool pickle_new_text(struct pickle_stream *stream, struct pickle_memo_item *text);
bool pickle_read_text(struct pickle_stream *stream, struct slice *text);
// At an integer of at most 8 bytes.
bool pickle_read_integer(struct pickle_stream *stream, int64_t *value);
// A value that is no container and no fraction, as the JSON form would have it.
bool pickle_read_token(struct pickle_stream *stream, struct token *token);
// Any value, with all that is in it.
bool pickle_skip_value(struct pickle_stream *stream);
// The beginning of the container that `code` makes; its items come next, unless it is `*empty`.
bool pickle_begin_container(struct pickle_stream *stream, unsigned char code, bool *empty);
