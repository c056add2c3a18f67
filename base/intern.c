// SPDX-License-Identifier: Apache-2.0
// Numbers for strings: a hash table that readers need no lock for.
//
// Entries live in blocks that never move. A table of entry pointers is probed linearly without a
// lock; inserting takes a mutex. A table half full is replaced by one twice its size, and the old
// one is kept for readers that still look at it: together they are smaller than the newest. From
// number to entry leads a directory of chunks, each twice the size of the one before. Memory: the
// string and some 48 bytes each, bounded by intern_set_max_bytes.
#include "base/intern.h"

#include "base/hash/seeded_hash.h"
#include "base/memory.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

enum {
    INTERN_FIRST_SLOTS = 4096,
    INTERN_FIRST_IDS = 1024, // in the directory's first chunk
    INTERN_DIRECTORY_MAX = 22,
    INTERN_UPKEEP = 48,
    INTERN_BLOCK_SIZE = 64 * 1024,
};

struct intern_table {
    struct intern_table *older;
    uint64_t seed;
    size_t mask; // slots less one, a power of two less one
    _Atomic(struct intern_entry *) slots[];
};

static struct {
    pthread_mutex_t mutex; // held by whoever inserts; guards all but the atomics
    _Atomic(struct intern_table *) table;
    _Atomic(struct intern_entry **) directory[INTERN_DIRECTORY_MAX];
    atomic_uint_fast32_t count; // ids handed out: 1 … count
    struct arena arena;
    uint64_t bytes;
    uint64_t max_bytes;
} interned = {.mutex = PTHREAD_MUTEX_INITIALIZER, .max_bytes = UINT64_C(256) << 20};

void intern_set_max_bytes(uint64_t max_bytes) {
    assert(max_bytes > 0);
    interned.max_bytes = max_bytes;
}

static struct intern_entry *table_find(struct intern_table *table, struct slice text,
                                       uint64_t hash) {
    for (size_t at = hash & table->mask;; at = (at + 1) & table->mask) {
        struct intern_entry *entry = atomic_load_explicit(&table->slots[at], memory_order_acquire);
        if (entry == NULL)
            return NULL;
        if (entry->hash == (uint32_t)hash && entry->size == text.size &&
            (text.size == 0 || memcmp(entry->bytes, text.data, text.size) == 0))
            return entry;
    }
}

static void table_put(struct intern_table *table, struct intern_entry *entry) {
    assert(entry->id != STRING_NONE && entry->id != STRING_REFUSED);
    size_t at = entry->hash & table->mask;
    while (atomic_load_explicit(&table->slots[at], memory_order_relaxed) != NULL)
        at = (at + 1) & table->mask;
    atomic_store_explicit(&table->slots[at], entry, memory_order_release);
}

static inline struct intern_table *table_current(void) {
    return atomic_load_explicit(&interned.table, memory_order_acquire);
}

string_id intern_find(struct slice text) {
    struct intern_table *table = table_current();
    if (table == NULL)
        return STRING_NONE;
    struct intern_entry *entry = table_find(table, text, hash_seeded(text, table->seed));
    return entry == NULL ? STRING_NONE : entry->id;
}

// Without a table the hash means nothing: a string that is not found is looked up again anyway.
uint64_t intern_expect(struct slice text) {
    struct intern_table *table = table_current();
    if (table == NULL)
        return 0;
    uint64_t hash = hash_seeded(text, table->seed);
    __builtin_prefetch(&table->slots[hash & table->mask]);
    return hash;
}

void intern_approach(uint64_t hash) {
    struct intern_table *table = table_current();
    if (table == NULL)
        return;
    __builtin_prefetch(
        atomic_load_explicit(&table->slots[hash & table->mask], memory_order_acquire));
}

// Directory chunk and place in it of an id.
struct intern_place {
    unsigned chunk;
    size_t index;
};

static inline struct intern_place id_place(string_id id) {
    assert(id != STRING_NONE);
    uint64_t shifted = (uint64_t)id - 1 + INTERN_FIRST_IDS;
    unsigned chunk = 63u - (unsigned)__builtin_clzll(shifted) - 10;
    return (struct intern_place){chunk, shifted - ((uint64_t)INTERN_FIRST_IDS << chunk)};
}
_Static_assert(INTERN_FIRST_IDS == 1 << 10, "id_place counts on it");

static void directory_put(struct intern_entry *entry) {
    struct intern_place place = id_place(entry->id);
    assert(place.chunk < INTERN_DIRECTORY_MAX);
    struct intern_entry **chunk = atomic_load(&interned.directory[place.chunk]);
    if (chunk == NULL) {
        chunk = memory_zero((size_t)INTERN_FIRST_IDS << place.chunk, sizeof *chunk);
        chunk[place.index] = entry;
        atomic_store_explicit(&interned.directory[place.chunk], chunk, memory_order_release);
        return;
    }
    assert(chunk[place.index] == NULL && "an id is given once");
    // Nobody has this id yet; who gets it got it after this store.
    chunk[place.index] = entry;
}

// A table for twice the strings, published; the one before stays for those who still read it.
static struct intern_table *table_grow(struct intern_table *old) {
    size_t slots = old == NULL ? INTERN_FIRST_SLOTS : (old->mask + 1) * 2;
    assert((slots & (slots - 1)) == 0);
    struct intern_table *table = memory_zero(1, sizeof *table + slots * sizeof table->slots[0]);
    table->older = old;
    table->mask = slots - 1;
    table->seed = old == NULL ? hash_seed() : old->seed;
    for (size_t i = 0; old != NULL && i <= old->mask; i++) {
        struct intern_entry *entry = atomic_load_explicit(&old->slots[i], memory_order_relaxed);
        if (entry != NULL)
            table_put(table, entry);
    }
    atomic_store_explicit(&interned.table, table, memory_order_release);
    return table;
}

// With the mutex held.
static string_id insert_locked(struct slice text) {
    struct intern_table *table = atomic_load(&interned.table);
    if (table == NULL) {
        table = table_grow(NULL);
        arena_init(&interned.arena, INTERN_BLOCK_SIZE);
    }
    uint64_t hash = hash_seeded(text, table->seed);
    struct intern_entry *entry = table_find(table, text, hash);
    if (entry != NULL)
        return entry->id;
    uint64_t count = atomic_load(&interned.count);
    if (text.size >= UINT32_MAX || count + 1 >= INTERN_LATER_FIRST ||
        interned.bytes + text.size + INTERN_UPKEEP > interned.max_bytes)
        return STRING_REFUSED;
    assert(count < table->mask + 1 && "the table is never full");
    interned.bytes += text.size + INTERN_UPKEEP;
    entry = arena_take(&interned.arena, offsetof(struct intern_entry, bytes) + text.size + 1);
    *entry = (struct intern_entry){
        .hash = (uint32_t)hash, .id = (string_id)(count + 1), .size = (uint32_t)text.size};
    if (text.size > 0)
        memcpy(entry->bytes, text.data, text.size);
    entry->bytes[text.size] = '\0';
    directory_put(entry);
    atomic_store(&interned.count, (uint_fast32_t)(count + 1));
    if (count + 1 > (table->mask + 1) / 2)
        table = table_grow(table);
    table_put(table, entry);
    return entry->id;
}

static _Thread_local bool known_only;
static _Thread_local struct intern_later *postponed;

void intern_known_only(bool only) {
    known_only = only;
}

void intern_postpone(struct intern_later *later) {
    assert(later == NULL || (later->arena != NULL && later->count <= INTERN_LATER_MAX));
    postponed = later;
}

static string_id postpone(struct slice text) {
    uint32_t i = 0;
    while (i < postponed->count && !slice_equal(postponed->names[i], text))
        i++;
    if (i == INTERN_LATER_MAX)
        return STRING_REFUSED;
    if (i == postponed->count)
        postponed->names[postponed->count++] = arena_copy(postponed->arena, text);
    return INTERN_LATER_FIRST + i;
}

static string_id insert(struct slice text) {
    if (postponed != NULL)
        return postpone(text);
    if (known_only)
        return STRING_REFUSED;
    pthread_mutex_lock(&interned.mutex);
    string_id id = insert_locked(text);
    pthread_mutex_unlock(&interned.mutex);
    return id;
}

string_id intern(struct slice text) {
    assert(text.data != NULL || text.size == 0);
    string_id id = intern_find(text);
    return id != STRING_NONE ? id : insert(text);
}

struct slice intern_slice(string_id id) {
    if (id == STRING_NONE)
        return SLICE("");
    if (intern_is_later(id)) {
        assert(postponed != NULL && id - INTERN_LATER_FIRST < postponed->count);
        return postponed->names[id - INTERN_LATER_FIRST];
    }
    assert(id <= atomic_load_explicit(&interned.count, memory_order_relaxed));
    struct intern_place place = id_place(id);
    struct intern_entry **chunk =
        atomic_load_explicit(&interned.directory[place.chunk], memory_order_acquire);
    const struct intern_entry *entry = chunk[place.index];
    assert(entry->id == id);
    return (struct slice){entry->bytes, entry->size};
}

static struct intern_entry *entry_of(struct slice text) {
    return (struct intern_entry *)(uintptr_t)(text.data - offsetof(struct intern_entry, bytes));
}

const struct intern_entry *intern_follow(struct slice before, struct slice text) {
    struct intern_entry *from = entry_of(before), *to = entry_of(text);
    assert(from->size == before.size && to->size == text.size);
    // Written only when it is news: other threads read the same line.
    if (atomic_load_explicit(&from->next, memory_order_relaxed) != to)
        atomic_store_explicit(&from->next, to, memory_order_release);
    return intern_next(to);
}

string_id intern_expected(struct slice *text, uint64_t hash) {
    assert(text->data != NULL || text->size == 0);
    struct intern_table *table = table_current();
    struct intern_entry *entry = table == NULL ? NULL : table_find(table, *text, hash);
    if (entry != NULL) {
        *text = (struct slice){entry->bytes, entry->size};
        return entry->id;
    }
    string_id id = insert(*text);
    if (id != STRING_REFUSED)
        *text = intern_slice(id);
    return id;
}

string_id intern_count(void) {
    return (string_id)atomic_load(&interned.count);
}

void intern_release(void) {
    struct intern_table *table = atomic_exchange(&interned.table, NULL);
    while (table != NULL) {
        struct intern_table *older = table->older;
        memory_give(table);
        table = older;
    }
    for (size_t i = 0; i < INTERN_DIRECTORY_MAX; i++)
        memory_give(atomic_exchange(&interned.directory[i], NULL));
    arena_release(&interned.arena);
    atomic_store(&interned.count, 0);
    interned.bytes = 0;
}
