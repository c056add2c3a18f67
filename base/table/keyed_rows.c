// SPDX-License-Identifier: Apache-2.0
// Finds rows by their keys.
//
// Separate chaining through the rows' heads, chains doubled when there are as many rows: a
// hash of at most 60 bytes and about one comparison. 4 bytes a row besides the row.
#include "base/table/keyed_rows.h"

#include "base/hash/hash.h"
#include "base/memory.h"

#include <assert.h>
#include <string.h>

enum { CHAINS_FIRST = 16 };

void keyed_rows_start(struct keyed_rows *rows, const char *name, const struct row_type *type) {
    assert(type->key_size > 0 && type->size >= sizeof(struct row_head) + type->key_size);
    *rows = (struct keyed_rows){.key_size = type->key_size};
    table_start(&rows->table, name, type);
}

void keyed_rows_release(struct keyed_rows *rows) {
    table_release(&rows->table);
    memory_give(rows->chains);
    rows->chains = NULL;
    rows->chain_count = 0;
}

static const void *key_of(const void *row) {
    return (const char *)row + sizeof(struct row_head);
}

static uint32_t hash_key(const void *key, size_t size) {
    return hash_folded(hash_words(key, size));
}

static struct row_head *head_at(const struct keyed_rows *rows, uint32_t row) {
    return table_row(&rows->table, row);
}

static uint32_t *chain_of(const struct keyed_rows *rows, uint32_t hash) {
    assert(rows->chain_count > 0);
    return &rows->chains[hash & (rows->chain_count - 1)];
}

static void make_chains(struct keyed_rows *rows, uint32_t count) {
    assert(count >= CHAINS_FIRST && (count & (count - 1)) == 0);
    if (count != rows->chain_count) {
        memory_give(rows->chains);
        rows->chains = memory_take(count * sizeof *rows->chains);
        rows->chain_count = count;
    }
    memset(rows->chains, 0xff, count * sizeof *rows->chains); // TABLE_NO_ROW
    for (uint32_t row = 0; row < rows->table.used; row++) {
        struct row_head *head = head_at(rows, row);
        if (head->live == 0)
            continue;
        uint32_t *chain = chain_of(rows, head->hash);
        head->next = *chain;
        *chain = row;
    }
}

// Most keys are two numbers, which are compared without a call.
static inline bool keys_equal(const void *a, const void *b, size_t size) {
    uint64_t left, right;
    if (size != sizeof left)
        return memcmp(a, b, size) == 0;
    memcpy(&left, a, sizeof left);
    memcpy(&right, b, sizeof right);
    return left == right;
}

uint32_t keyed_rows_find_number(const struct keyed_rows *rows, const void *key) {
    assert(rows->key_size > 0 && key != NULL);
    if (rows->chain_count == 0)
        return TABLE_NO_ROW;
    uint32_t hash = hash_key(key, rows->key_size), row = *chain_of(rows, hash);
    while (row != TABLE_NO_ROW) {
        const struct row_head *head = head_at(rows, row);
        if (head->hash == hash && keys_equal(key_of(head), key, rows->key_size))
            return row;
        row = head->next;
    }
    return TABLE_NO_ROW;
}

void *keyed_rows_find(const struct keyed_rows *rows, const void *key) {
    uint32_t row = keyed_rows_find_number(rows, key);
    return row == TABLE_NO_ROW ? NULL : head_at(rows, row);
}

void keyed_rows_expect(const struct keyed_rows *rows, const void *key) {
    assert(rows->key_size > 0 && key != NULL);
    if (rows->chain_count > 0)
        __builtin_prefetch(chain_of(rows, hash_key(key, rows->key_size)));
}

void *keyed_rows_add(struct keyed_rows *rows, const void *key) {
    assert(rows->key_size > 0 && key != NULL);
    if (keyed_rows_count(rows) >= rows->chain_count)
        make_chains(rows, rows->chain_count == 0 ? CHAINS_FIRST : rows->chain_count * 2);
    uint32_t row = table_add(&rows->table);
    struct row_head *head = head_at(rows, row);
    head->hash = hash_key(key, rows->key_size);
    head->live = 1;
    memcpy((char *)head + sizeof *head, key, rows->key_size);
    uint32_t *chain = chain_of(rows, head->hash);
    head->next = *chain;
    *chain = row;
    return head;
}

void *keyed_rows_get(struct keyed_rows *rows, const void *key, bool *is_new) {
    void *row = keyed_rows_find(rows, key);
    *is_new = row == NULL;
    return row != NULL ? row : keyed_rows_add(rows, key);
}

uint32_t keyed_rows_number(const struct keyed_rows *rows, const void *row) {
    assert(row != NULL && ((const struct row_head *)row)->live != 0);
    uint32_t number = *chain_of(rows, ((const struct row_head *)row)->hash);
    while (head_at(rows, number) != row)
        number = head_at(rows, number)->next;
    return number;
}

void keyed_rows_remove(struct keyed_rows *rows, void *row) {
    struct row_head *head = row;
    assert(row != NULL && head->live != 0);
    uint32_t *link = chain_of(rows, head->hash);
    while (head_at(rows, *link) != head)
        link = &head_at(rows, *link)->next;
    uint32_t number = *link;
    *link = head->next;
    head->live = 0;
    table_free(&rows->table, number);
}

void *keyed_rows_next(const struct keyed_rows *rows, uint32_t *at) {
    while (*at < rows->table.used) {
        struct row_head *head = head_at(rows, (*at)++);
        if (head->live != 0)
            return head;
    }
    return NULL;
}

void *keyed_rows_previous(const struct keyed_rows *rows, uint32_t *at) {
    *at = *at < rows->table.used ? *at : rows->table.used;
    while (*at > 0) {
        struct row_head *head = head_at(rows, --*at);
        if (head->live != 0)
            return head;
    }
    return NULL;
}

void keyed_rows_restored(struct keyed_rows *rows) {
    uint32_t count = CHAINS_FIRST;
    // Keys may hold string ids, which have new numbers.
    for (uint32_t row = 0; row < rows->table.used; row++) {
        struct row_head *head = head_at(rows, row);
        head->hash = hash_key(key_of(head), rows->key_size);
    }
    while (count < keyed_rows_count(rows))
        count *= 2;
    make_chains(rows, count);
}
