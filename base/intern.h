// SPDX-License-Identifier: Apache-2.0
// One small number for each distinct string (host, job, session …), for the life of the process.
//
// Looking a string up takes no lock and allocates nothing; only a string that was never seen does.
// The table is process-wide, so that an id means the same to every receiver and every stage.
// Bytes are generalised UTF-8: a lone surrogate (JSON "\ud800") is kept as its three bytes.
#pragma once

#include "base/arena.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef uint32_t string_id;

enum {
    STRING_NONE = 0,            // no string (null, absent); intern_slice gives the empty slice
    STRING_REFUSED = UINT32_MAX // the bound on distinct strings was reached
};

// Sets the bound on the bytes of all strings together (default 256 MiB), 48 bytes of upkeep added
// for each, so that many short strings count as what they cost. Before any other thread runs.
void intern_set_max_bytes(uint64_t max_bytes);

// The id of `text` (the empty string has an id of its own, not STRING_NONE); STRING_REFUSED when
// the bound would be passed. Any thread.
string_id intern(struct slice text);
// While it is set on the calling thread, `intern` there refuses what is not known yet, as if the
// bound were reached: a thread that decodes ahead hands out no ids, so that they come in the order
// of the input.
void intern_known_only(bool only);

// Names that a thread postponed: texts, in the order in which they were met.
enum { INTERN_LATER_MAX = 256, INTERN_LATER_FIRST = INT32_MAX - INTERN_LATER_MAX };
struct intern_later {
    struct arena *arena; // of the texts
    struct slice names[INTERN_LATER_MAX];
    uint32_t count;
};
// From here on `intern` on the calling thread gives what is not known yet the number
// INTERN_LATER_FIRST + its place in `later`, for the time being, and refuses it when there is no
// place left; intern_slice knows such numbers there. Whoever takes what was made with them interns
// the names in their order and puts their ids in the place of the numbers. NULL: no more.
void intern_postpone(struct intern_later *later);
static inline bool intern_is_later(string_id id) {
    return id >= INTERN_LATER_FIRST && id < INTERN_LATER_FIRST + INTERN_LATER_MAX;
}
// The id if it is known already, else STRING_NONE.
string_id intern_find(struct slice text);
// With many strings each lookup waits for memory twice. Whoever learns of a text before its id is
// needed asks for that memory ahead: intern_expect hashes the text and fetches its slot,
// intern_approach fetches the string that stands there, and intern_expected is `intern` with the
// hash at hand, and makes `text` the interned bytes unless it is refused. Same ids. Any thread.
uint64_t intern_expect(struct slice text);
void intern_approach(uint64_t hash);
string_id intern_expected(struct slice *text, uint64_t hash);
// Valid for the life of the process and ends with a zero byte. Any thread.
struct slice intern_slice(string_id id);

// Ranks come round: behind the name of one stands that of the next, as last time. Each string
// therefore remembers one that came behind it, so that the next name is at hand, and its memory
// fetched, before it is read: no hash, and no wait. It is a guess, to be compared. Any thread.
struct intern_entry {
    _Atomic(const struct intern_entry *) next; // NULL: none came
    uint32_t hash;
    string_id id;
    uint32_t size;
    char bytes[]; // and a zero byte
};

// What came behind `entry` last time, NULL when nothing did; its memory is asked for.
static inline const struct intern_entry *intern_next(const struct intern_entry *entry) {
    const struct intern_entry *next = atomic_load_explicit(&entry->next, memory_order_acquire);
    __builtin_prefetch(next);
    return next;
}
// `text`, the interned bytes of one string, came behind `before`, those of another. Gives what came
// behind `text` last time, like intern_next.
const struct intern_entry *intern_follow(struct slice before, struct slice text);
// Ids handed out so far are 1 to this. Any thread.
string_id intern_count(void);
// Frees everything: for tests and at exit, with no other thread running.
void intern_release(void);
