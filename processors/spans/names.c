// SPDX-License-Identifier: Apache-2.0
// Which number stands for this text? Chains of a seeded hash over rows that count who names them;
// up to 44 bytes of a text lie in its row of 64, the rest in pieces.
#include "processors/spans/names.h"

#include "base/hash/hash.h"
#include "base/hash/seeded_hash.h"
#include "base/memory.h"

#include <assert.h>
#include <string.h>

enum { HEAD_BYTES = 44, PIECE_BYTES = 60, CHAINS_FIRST = 64 };

struct name_row {
    uint32_t next; // of its chain
    uint32_t hash;
    uint32_t keepers; // 0: this row is free
    uint32_t size;
    uint32_t piece; // the first
    char head[HEAD_BYTES];
};
_Static_assert(sizeof(struct name_row) == 64, "one cache line");

struct piece_row {
    uint32_t next;
    char bytes[PIECE_BYTES];
};

void span_names_init(struct span_names *names) {
    *names = (struct span_names){.seed = hash_seed()};
    table_init(&names->rows, "spans.names", sizeof(struct name_row), 1024);
    table_init(&names->pieces, "spans.name_pieces", sizeof(struct piece_row), 1024);
}

void span_names_release(struct span_names *names) {
    table_release(&names->rows);
    table_release(&names->pieces);
    memory_give(names->chains);
    names->chains = NULL;
    names->chain_count = 0;
}

static struct name_row *row_at(const struct span_names *names, uint32_t name) {
    return table_row(&names->rows, name);
}

static uint32_t *chain_of(const struct span_names *names, uint32_t hash) {
    return &names->chains[hash & (names->chain_count - 1)];
}

static void make_chains(struct span_names *names, uint32_t count) {
    if (count != names->chain_count) {
        memory_give(names->chains);
        names->chains = memory_take(count * sizeof *names->chains);
        names->chain_count = count;
    }
    memset(names->chains, 0xff, count * sizeof *names->chains); // NAME_NONE
    for (uint32_t i = 0; i < names->rows.used; i++) {
        struct name_row *row = row_at(names, i);
        if (row->keepers == 0)
            continue;
        uint32_t *chain = chain_of(names, row->hash);
        row->next = *chain;
        *chain = i;
    }
}

// -- texts --------------------------------------------------------------------------------------

static size_t in_head(size_t size) {
    return size < HEAD_BYTES ? size : HEAD_BYTES;
}

static uint64_t cost(size_t size) {
    size_t rest = size - in_head(size);
    return sizeof(struct name_row) +
           (rest + PIECE_BYTES - 1) / PIECE_BYTES * sizeof(struct piece_row);
}

static void put_text(struct span_names *names, struct name_row *row, struct slice text) {
    size_t at = in_head(text.size);
    row->size = (uint32_t)text.size;
    row->piece = TABLE_NO_ROW;
    if (at > 0)
        memcpy(row->head, text.data, at);
    uint32_t *link = &row->piece;
    while (at < text.size) {
        size_t part = text.size - at < PIECE_BYTES ? text.size - at : PIECE_BYTES;
        *link = table_add(&names->pieces);
        struct piece_row *piece = table_row(&names->pieces, *link);
        memcpy(piece->bytes, text.data + at, part);
        piece->next = TABLE_NO_ROW;
        link = &piece->next;
        at += part;
    }
}

static bool is_text(const struct span_names *names, const struct name_row *row, struct slice text) {
    if (row->size != text.size)
        return false;
    if (text.size > 0 && memcmp(row->head, text.data, in_head(text.size)) != 0)
        return false;
    uint32_t next = row->piece;
    for (size_t at = HEAD_BYTES; at < text.size; at += PIECE_BYTES) {
        const struct piece_row *piece = table_row(&names->pieces, next);
        size_t part = text.size - at < PIECE_BYTES ? text.size - at : PIECE_BYTES;
        if (memcmp(piece->bytes, text.data + at, part) != 0)
            return false;
        next = piece->next;
    }
    return true;
}

static struct slice text_of(const struct span_names *names, const struct name_row *row,
                            struct arena *arena) {
    char *text = arena_take(arena, row->size + 1);
    memcpy(text, row->head, in_head(row->size));
    uint32_t next = row->piece;
    for (size_t at = HEAD_BYTES; at < row->size; at += PIECE_BYTES) {
        const struct piece_row *piece = table_row(&names->pieces, next);
        size_t part = row->size - at < PIECE_BYTES ? row->size - at : PIECE_BYTES;
        memcpy(text + at, piece->bytes, part);
        next = piece->next;
    }
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

static uint32_t find(const struct span_names *names, struct slice text, uint32_t hash) {
    if (names->chain_count == 0)
        return NAME_NONE;
    uint32_t at = *chain_of(names, hash);
    while (at != NAME_NONE) {
        const struct name_row *row = row_at(names, at);
        if (row->hash == hash && is_text(names, row, text))
            return at;
        at = row->next;
    }
    return NAME_NONE;
}

static uint32_t hash_of(const struct span_names *names, struct slice text) {
    return hash_folded(hash_seeded(text, names->seed));
}

uint32_t span_names_find(const struct span_names *names, struct slice text) {
    return find(names, text, hash_of(names, text));
}

uint32_t span_names_take(struct span_names *names, struct slice text) {
    assert(text.size < UINT32_MAX);
    uint32_t hash = hash_of(names, text);
    uint32_t name = find(names, text, hash);
    if (name != NAME_NONE) {
        row_at(names, name)->keepers++;
        return name;
    }
    if (table_live(&names->rows) >= names->chain_count)
        make_chains(names, names->chain_count == 0 ? CHAINS_FIRST : names->chain_count * 2);
    name = table_add(&names->rows);
    struct name_row *row = row_at(names, name);
    row->hash = hash;
    row->keepers = 1;
    put_text(names, row, text);
    names->bytes += cost(text.size);
    uint32_t *chain = chain_of(names, hash);
    row->next = *chain;
    *chain = name;
    return name;
}

void span_names_keep(struct span_names *names, uint32_t name) {
    row_at(names, name)->keepers++;
}

static void give_pieces(struct span_names *names, uint32_t piece) {
    while (piece != TABLE_NO_ROW) {
        uint32_t next = ((const struct piece_row *)table_row(&names->pieces, piece))->next;
        table_free(&names->pieces, piece);
        piece = next;
    }
}

void span_names_give(struct span_names *names, uint32_t name) {
    if (name == NAME_NONE)
        return;
    struct name_row *row = row_at(names, name);
    assert(row->keepers > 0);
    if (--row->keepers > 0)
        return;
    uint32_t *link = chain_of(names, row->hash);
    while (*link != name)
        link = &row_at(names, *link)->next;
    *link = row->next;
    names->bytes -= cost(row->size);
    give_pieces(names, row->piece);
    table_free(&names->rows, name);
}

void span_names_restored(struct span_names *names) {
    struct arena scratch;
    uint32_t count = CHAINS_FIRST;
    arena_init(&scratch, 4096);
    names->bytes = 0;
    for (uint32_t i = 0; i < names->rows.used; i++) {
        struct name_row *row = row_at(names, i);
        if (row->keepers == 0)
            continue;
        row->hash = hash_of(names, text_of(names, row, &scratch)); // the seed is another one
        names->bytes += cost(row->size);
        arena_reset(&scratch);
    }
    arena_release(&scratch);
    while (count < table_live(&names->rows))
        count *= 2;
    make_chains(names, count);
}
