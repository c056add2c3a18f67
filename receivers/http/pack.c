// SPDX-License-Identifier: Apache-2.0
// One pass, greedy: where eight bytes stood before, the longest run that is the same from there on
// is a reference. Runs without any are looked at in growing steps, so that what cannot be packed
// costs little.
#include "receivers/http/pack.h"

#include <assert.h>
#include <endian.h>

enum {
    LENGTH_MIN = 4, // of a reference, in the format
    REACH_MAX = 65535,
    LITERALS_LAST = 5,    // the format wants a block to end with as many literals …
    REFERENCE_BEFORE = 12 // … and no reference to begin so near to the end
};

static uint64_t eight_at(const char *at) {
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return le64toh(value);
}

static uint32_t place_of(uint64_t eight) {
    return (uint32_t)(eight * UINT64_C(0x9e3779b97f4a7c15) >> (64 - PACK_PLACES_BITS));
}

// How many bytes are the same at both, up to `end`.
static size_t common(const char *a, const char *b, const char *end) {
    const char *begin = b;
    while (end - b >= 8) {
        uint64_t differs = eight_at(a) ^ eight_at(b);
        if (differs != 0)
            return (size_t)(b - begin) + (size_t)__builtin_ctzll(differs) / 8;
        a += 8;
        b += 8;
    }
    while (b < end && *a == *b) {
        a++;
        b++;
    }
    return (size_t)(b - begin);
}

// What of a length does not fit into the four bits of the token.
static char *put_rest(char *out, size_t length) {
    if (length < 15)
        return out;
    for (length -= 15; length >= 255; length -= 255)
        *out++ = (char)255;
    *out++ = (char)length;
    return out;
}

static char *put_literals(char *out, struct slice literals, size_t reference) {
    size_t high = literals.size < 15 ? literals.size : 15, low = reference < 15 ? reference : 15;
    *out++ = (char)(high << 4 | low);
    out = put_rest(out, literals.size);
    if (literals.size > 0)
        memcpy(out, literals.data, literals.size);
    return out + literals.size;
}

static char *put_reference(char *out, size_t back, size_t reference) {
    assert(back > 0 && back <= REACH_MAX);
    *out++ = (char)(back & 0xff);
    *out++ = (char)(back >> 8);
    return put_rest(out, reference);
}

size_t http_pack(struct slice bytes, struct pack_places *places, char *out) {
    assert(bytes.size <= PACK_MAX);
    const char *const begin = bytes.data, *const end = begin + bytes.size;
    const char *at = begin, *told = begin; // up to there it is in the block
    char *const first = out;
    memset(places, 0xff, sizeof *places);
    while (end - at > REFERENCE_BEFORE) {
        uint64_t eight = eight_at(at);
        uint32_t *place = &places->at[place_of(eight)];
        const char *before = begin + *place;
        bool found = *place != UINT32_MAX && at - before <= REACH_MAX && eight_at(before) == eight;
        *place = (uint32_t)(at - begin);
        if (!found) {
            at += 1 + ((at - told) >> 6);
            continue;
        }
        while (at > told && before > begin && at[-1] == before[-1]) {
            at--;
            before--;
        }
        size_t length = common(before, at, end - LITERALS_LAST);
        assert(length >= 8 && before < at);
        out = put_literals(out, (struct slice){told, (size_t)(at - told)}, length - LENGTH_MIN);
        out = put_reference(out, (size_t)(at - before), length - LENGTH_MIN);
        at += length;
        told = at;
    }
    out = put_literals(out, (struct slice){told, (size_t)(end - told)}, 0);
    assert((size_t)(out - first) <= pack_room(bytes.size));
    return (size_t)(out - first);
}

// -- reading ------------------------------------------------------------------------------------

struct block {
    const unsigned char *at, *end;
};

// The length whose four bits these are; false when the block ends in it, or it is beyond all.
static bool take_length(struct block *block, size_t *length) {
    if (*length < 15)
        return true;
    unsigned char more;
    do {
        if (block->at == block->end || *length > PACK_MAX)
            return false;
        more = *block->at++;
        *length += more;
    } while (more == 255);
    return true;
}

static void copy_reference(char *to, size_t back, size_t length) {
    const char *from = to - back;
    if (back >= length) {
        memcpy(to, from, length);
        return;
    }
    for (size_t i = 0; i < length; i++) // it repeats itself
        to[i] = from[i];
}

bool http_unpack(struct slice bytes, char *out, size_t size) {
    assert(size <= PACK_MAX);
    struct block block = {(const unsigned char *)bytes.data,
                          (const unsigned char *)bytes.data + bytes.size};
    size_t done = 0;
    while (block.at < block.end) {
        unsigned char token = *block.at++;
        size_t literals = token >> 4, reference = token & 15;
        if (!take_length(&block, &literals) || literals > (size_t)(block.end - block.at) ||
            literals > size - done)
            return false;
        memcpy(out + done, block.at, literals);
        done += literals;
        block.at += literals;
        if (block.at == block.end)
            return done == size && reference == 0;
        if (block.end - block.at < 2)
            return false;
        size_t back = block.at[0] | (size_t)block.at[1] << 8;
        block.at += 2;
        if (!take_length(&block, &reference))
            return false;
        reference += LENGTH_MIN;
        if (back == 0 || back > done || reference > size - done)
            return false;
        copy_reference(out + done, back, reference);
        done += reference;
    }
    return false;
}
