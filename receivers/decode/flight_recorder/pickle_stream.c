// SPDX-License-Identifier: Apache-2.0
// Reads the op codes of a pickle one by one, as far as PyTorch writes them.
//
// Containers that are passed over are bounded in depth; nothing is recursive.
#include "receivers/decode/flight_recorder/pickle_stream.h"

#include "base/text/utf8.h"

enum { SKIP_DEPTH = 8 };

// Little-endian; the bytes are there.
static uint64_t number(struct pickle_stream *stream, unsigned size) {
    uint64_t value = 0;
    assert(size > 0 && size <= sizeof value && size <= pickle_left(stream));
    if (pickle_left(stream) >= sizeof value) { // at once, since the size is not known beforehand
        memcpy(&value, stream->at, sizeof value);
        value = value << (64 - 8 * size) >> (64 - 8 * size);
    } else {
        memcpy(&value, stream->at, size);
    }
    stream->at += size;
    return value;
}

// -- memo ----------------------------------------------------------------------------------------

bool pickle_take_put(struct pickle_stream *stream, struct pickle_memo_item item) {
    unsigned char code = pickle_peek(stream);
    unsigned size = code == OP_BINPUT ? 1 : 4;
    if (code != OP_BINPUT && code != OP_LONG_BINPUT)
        return true;
    if (pickle_left(stream) < 1 + size)
        return false;
    stream->at++;
    if (number(stream, size) != stream->memo_count)
        return false;
    if (stream->memo_count == stream->memo_capacity) {
        uint32_t capacity = stream->memo_capacity == 0 ? 256 : stream->memo_capacity * 2;
        stream->memo = arena_enlarge(stream->scratch, stream->memo, stream->memo_count, capacity,
                                     sizeof *stream->memo);
        stream->memo_capacity = capacity;
    }
    stream->memo[stream->memo_count++] = item;
    return true;
}

bool pickle_take_put_other(struct pickle_stream *stream) {
    return pickle_take_put(stream, (struct pickle_memo_item){.data = NULL});
}

struct pickle_memo_item *pickle_memo_get(struct pickle_stream *stream, unsigned char code) {
    unsigned size = code == OP_BINGET ? 1 : 4;
    if (pickle_left(stream) < size)
        return NULL;
    uint64_t index = number(stream, size);
    return index < stream->memo_count ? &stream->memo[index] : NULL;
}

// -- scalars -------------------------------------------------------------------------------------

bool pickle_new_text(struct pickle_stream *stream, struct pickle_memo_item *text) {
    if (pickle_left(stream) < 4)
        return false;
    uint64_t size = number(stream, 4);
    if (size > pickle_left(stream))
        return false;
    *text =
        (struct pickle_memo_item){(const char *)stream->at, (uint32_t)size, PICKLE_FIELD_UNKNOWN};
    stream->at += size;
    return utf8_is_valid((struct slice){text->data, text->size});
}

bool pickle_read_text(struct pickle_stream *stream, struct slice *text) {
    unsigned char code = pickle_peek(stream);
    struct pickle_memo_item item, *known = &item;
    if (code == OP_BINGET || code == OP_LONG_BINGET) {
        stream->at++;
        known = pickle_memo_get(stream, code);
        if (known == NULL || known->data == NULL)
            return false;
    } else if (!pickle_skip_op(stream, OP_BINUNICODE) || !pickle_new_text(stream, &item) ||
               !pickle_take_put(stream, item)) {
        return false;
    }
    *text = (struct slice){known->data, known->size};
    return true;
}

// Two's complement in up to 8 bytes.
bool pickle_read_integer(struct pickle_stream *stream, int64_t *value) {
    unsigned char code = pickle_peek(stream);
    unsigned size = code == OP_BININT1 ? 1 : code == OP_BININT2 ? 2 : 4;
    assert(pickle_is_integer(code));
    stream->at++;
    if (code == OP_LONG1) {
        size = pickle_peek(stream);
        if (size == 0 || size > sizeof *value)
            return false;
        stream->at++;
    }
    if (pickle_left(stream) < size)
        return false;
    uint64_t bits = number(stream, size);
    unsigned above = 64 - 8 * size;
    *value =
        code == OP_BININT || code == OP_LONG1 ? (int64_t)(bits << above) >> above : (int64_t)bits;
    return true;
}

bool pickle_read_token(struct pickle_stream *stream, struct token *token) {
    unsigned char code = pickle_peek(stream);
    *token = (struct token){.kind = TOKEN_STRING};
    if (pickle_is_integer(code)) {
        token->kind = TOKEN_INTEGER;
        return pickle_read_integer(stream, &token->integer);
    }
    struct slice text;
    if (code != OP_NONE && code != OP_NEWTRUE && code != OP_NEWFALSE) {
        bool is_text = pickle_read_text(stream, &text);
        if (is_text) {
            token->text = text.data;
            token->size = text.size;
        }
        return is_text;
    }
    stream->at++;
    token->kind = code == OP_NONE ? TOKEN_NULL : code == OP_NEWTRUE ? TOKEN_TRUE : TOKEN_FALSE;
    return true;
}

// -- what is passed over -------------------------------------------------------------------------

// Past a value that holds no others; false also where it is none.
static bool skip_scalar(struct pickle_stream *stream, unsigned char code) {
    struct pickle_memo_item text;
    size_t size = 0;
    stream->at++;
    switch (code) {
    case OP_NONE:
    case OP_NEWTRUE:
    case OP_NEWFALSE:
        return true;
    case OP_BINGET:
    case OP_LONG_BINGET:
        return pickle_memo_get(stream, code) != NULL;
    case OP_BINUNICODE:
        return pickle_new_text(stream, &text) && pickle_take_put(stream, text);
    case OP_BININT1:
        size = 1;
        break;
    case OP_BININT2:
        size = 2;
        break;
    case OP_BININT:
        size = 4;
        break;
    case OP_BINFLOAT:
        size = 8;
        break;
    case OP_LONG1:
        size = 1 + (size_t)pickle_peek(stream);
        break;
    default:
        return false;
    }
    if (size > pickle_left(stream))
        return false;
    stream->at += size;
    return true;
}

bool pickle_skip_value(struct pickle_stream *stream) {
    unsigned char open[SKIP_DEPTH]; // what ends each
    bool odd[SKIP_DEPTH];           // how many values it has, for dicts
    unsigned depth = 0;
    do {
        unsigned char code = pickle_peek(stream);
        if (depth > 0 && code == open[depth - 1]) {
            if (code == OP_SETITEMS && odd[depth - 1])
                return false;
            depth--;
            stream->at++;
            if (!pickle_take_put_other(stream))
                return false;
        } else if (code == OP_EMPTY_LIST || code == OP_EMPTY_DICT) {
            stream->at++;
            if (!pickle_take_put_other(stream))
                return false;
            if (pickle_skip_op(stream, OP_MARK)) {
                if (depth == SKIP_DEPTH)
                    return false;
                open[depth] = code == OP_EMPTY_LIST ? OP_APPENDS : OP_SETITEMS;
                odd[depth++] = false;
                continue;
            }
        } else if (!skip_scalar(stream, code)) {
            return false;
        }
        if (depth > 0)
            odd[depth - 1] = !odd[depth - 1];
    } while (depth > 0);
    return true;
}

bool pickle_begin_container(struct pickle_stream *stream, unsigned char code, bool *empty) {
    if (!pickle_skip_op(stream, code) || !pickle_take_put_other(stream))
        return false;
    *empty = !pickle_skip_op(stream, OP_MARK);
    return true;
}
