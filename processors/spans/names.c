// SPDX-License-Identifier: Apache-2.0
// Numbers for texts: an index by a seeded hash over rows that count who names them, so that a text
// that is not there is not looked for in any row; up to 44 bytes of a text lie in its row of 64,
// the rest in a table of its own.
#include "processors/spans/names.h"

#include "base/hash/hash.h"
#include "base/hash/seeded_hash.h"
#include "base/table/table_text.h"

#include <assert.h>

enum { HEAD_BYTES = 44 };

struct name_row {
    uint32_t hint; // what it names, as span_names_point() says
    uint32_t hash;
    uint32_t keepers; // 0: this row is free
    uint32_t size;
    uint32_t rest; // of the text, behind `head`
    char head[HEAD_BYTES];
};
_Static_assert(sizeof(struct name_row) == 64, "one cache line");

static const struct row_type NAMES = ROW_TYPE(struct name_row, 1024);
static const struct state_row STATE[] = {
    STATE_ROWS(struct span_names, rows, "spans.names", NAMES),
    STATE_ROWS(struct span_names, pieces, "spans.name_pieces", table_text_rows),
};

static void names_init(void *part, const char *name) {
    (void)name;
    ((struct span_names *)part)->seed = hash_seed();
}

static void names_release(void *part) {
    row_index_release(&((struct span_names *)part)->index);
}

static struct name_row *row_at(const struct span_names *names, uint32_t name) {
    return table_row(&names->rows, name);
}

// -- texts --------------------------------------------------------------------------------------

static size_t in_head(size_t size) {
    return size < HEAD_BYTES ? size : HEAD_BYTES;
}

static struct slice behind_head(struct slice text) {
    size_t head = in_head(text.size);
    return (struct slice){text.data + head, text.size - head};
}

static uint64_t cost(size_t size) {
    enum { PIECE_BYTES = 60 };
    size_t rest = size - in_head(size);
    return sizeof(struct name_row) + (rest + PIECE_BYTES - 1) / PIECE_BYTES * table_text_rows.size;
}

static void put_text(struct span_names *names, struct name_row *row, struct slice text) {
    row->size = (uint32_t)text.size;
    if (text.size > 0)
        memcpy(row->head, text.data, in_head(text.size));
    row->rest =
        text.size <= HEAD_BYTES ? TABLE_NO_ROW : table_text_add(&names->pieces, behind_head(text));
}

static uint64_t load_word(const char *bytes) {
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

static uint32_t load_half(const char *bytes) {
    uint32_t half;
    memcpy(&half, bytes, sizeof half);
    return half;
}

// As memcmp() == 0, without a call: names are short. The last step overlaps the one before.
static inline bool same_bytes(const char *a, const char *b, size_t size) {
    if (size < sizeof(uint32_t)) {
        size_t i = 0;
        while (i < size && a[i] == b[i])
            i++;
        return i == size;
    }
    if (size < sizeof(uint64_t)) {
        size_t last = size - sizeof(uint32_t);
        return load_half(a) == load_half(b) && load_half(a + last) == load_half(b + last);
    }
    size_t last = size - sizeof(uint64_t);
    for (size_t i = 0; i < last; i += sizeof(uint64_t))
        if (load_word(a + i) != load_word(b + i))
            return false;
    return load_word(a + last) == load_word(b + last);
}

static inline bool is_text(const struct span_names *names, const struct name_row *row,
                           struct slice text) {
    if (row->size != text.size)
        return false;
    if (!same_bytes(row->head, text.data, in_head(text.size)))
        return false;
    return text.size <= HEAD_BYTES ||
           table_text_equal(&names->pieces, row->rest, behind_head(text));
}

static struct slice text_of(const struct span_names *names, const struct name_row *row,
                            struct arena *arena) {
    char *text = arena_take(arena, row->size + 1);
    size_t head = in_head(row->size);
    memcpy(text, row->head, head);
    table_text_copy(&names->pieces, row->rest, text + head, row->size - head);
    text[row->size] = '\0';
    return (struct slice){text, row->size};
}

struct slice span_names_text(const struct span_names *names, uint32_t name, struct arena *arena) {
    if (name == NAME_NONE)
        return (struct slice){NULL, 0};
    return text_of(names, row_at(names, name), arena);
}

bool span_names_is(const struct span_names *names, uint32_t name, struct slice text) {
    return name != NAME_NONE && is_text(names, row_at(names, name), text);
}

// -- numbers ------------------------------------------------------------------------------------

uint32_t span_names_find_hashed(const struct span_names *names, struct slice text, uint32_t hash) {
    uint32_t at = 0, name;
    while ((name = row_index_next(&names->index, hash, &at)) != NAME_NONE &&
           !is_text(names, row_at(names, name), text))
        ;
    return name;
}

uint32_t span_names_hash(const struct span_names *names, struct slice text) {
    return hash_folded(hash_seeded(text, names->seed));
}

void span_names_expect(const struct span_names *names, uint32_t hash) {
    const struct row_slot *slot = row_index_slot(&names->index, hash);
    if (slot != NULL)
        __builtin_prefetch(slot);
}

void span_names_leave(const struct span_names *names, uint32_t name) {
    span_names_expect(names, row_at(names, name)->hash);
}

uint32_t span_names_approach(const struct span_names *names, uint32_t hash) {
    uint32_t at = 0, name = row_index_next(&names->index, hash, &at);
    if (name != NAME_NONE)
        __builtin_prefetch(row_at(names, name));
    return name;
}

void span_names_point(struct span_names *names, uint32_t name, uint32_t row) {
    row_at(names, name)->hint = row;
}

uint32_t span_names_hint(const struct span_names *names, uint32_t name) {
    return row_at(names, name)->hint;
}

uint32_t span_names_find(const struct span_names *names, struct slice text) {
    return span_names_find_hashed(names, text, span_names_hash(names, text));
}

uint32_t span_names_take(struct span_names *names, struct slice text) {
    return span_names_take_hashed(names, text, span_names_hash(names, text));
}

uint32_t span_names_take_hashed(struct span_names *names, struct slice text, uint32_t hash) {
    assert(text.size < UINT32_MAX);
    uint32_t name = span_names_find_hashed(names, text, hash);
    if (name != NAME_NONE) {
        row_at(names, name)->keepers++;
        return name;
    }
    name = table_add(&names->rows);
    struct name_row *row = row_at(names, name);
    row->hash = hash;
    row->keepers = 1;
    put_text(names, row, text);
    names->bytes += cost(text.size);
    row->hint = TABLE_NO_ROW;
    row_index_put(&names->index, hash, name);
    return name;
}

void span_names_keep(struct span_names *names, uint32_t name) {
    assert(row_at(names, name)->keepers > 0);
    row_at(names, name)->keepers++;
}

void span_names_give(struct span_names *names, uint32_t name) {
    if (name == NAME_NONE)
        return;
    struct name_row *row = row_at(names, name);
    assert(row->keepers > 0);
    if (--row->keepers > 0)
        return;
    row_index_remove(&names->index, row->hash, name);
    assert(names->bytes >= cost(row->size));
    names->bytes -= cost(row->size);
    table_text_free(&names->pieces, row->rest);
    table_free(&names->rows, name);
}

static void names_restored(void *part) {
    struct span_names *names = part;
    struct arena scratch;
    arena_init(&scratch, 4096);
    row_index_clear(&names->index);
    names->bytes = 0;
    for (uint32_t i = 0; i < names->rows.used; i++) {
        struct name_row *row = row_at(names, i);
        if (row->keepers == 0)
            continue;
        row->hash =
            span_names_hash(names, text_of(names, row, &scratch)); // the seed is another one
        names->bytes += cost(row->size);
        row_index_put(&names->index, row->hash, i);
        arena_reset(&scratch);
    }
    arena_release(&scratch);
}

const struct state_part span_names_part = {.rows = STATE,
                                           .row_count = STATE_ROW_COUNT(STATE),
                                           .init = names_init,
                                           .release = names_release,
                                           .restored = names_restored};
