// SPDX-License-Identifier: Apache-2.0
// Texts that come and go (keys of tasks, ids of spans): one number for each, given back when nobody
// names it any more.
//
// Interned strings (base/intern.h) stay for ever, and a stream names a new task with every line.
// Equal texts have equal numbers. Only rows, so that it can be kept across a crash. One thread;
// allocates only when the tables or the index grow.
#pragma once

#include "base/arena.h"
#include "base/table/row_index.h"
#include "pipeline/component/state.h"

enum { NAME_NONE = TABLE_NO_ROW };

struct span_names {
    struct table rows;
    struct table pieces;    // of texts that do not fit into a row
    struct row_index index; // of the rows
    uint64_t seed;
    uint64_t bytes; // of all texts, with upkeep
};

extern const struct state_part span_names_part;

// The number of this text, which is kept once more; or only looked up (NAME_NONE: not there).
uint32_t span_names_take(struct span_names *names, struct slice text);
uint32_t span_names_find(const struct span_names *names, struct slice text);
// The same with the hash of the text at hand, for texts that are looked up more than once. A hash
// is good for as long as nothing is restored.
uint32_t span_names_hash(const struct span_names *names, struct slice text);
uint32_t span_names_take_hashed(struct span_names *names, struct slice text, uint32_t hash);
uint32_t span_names_find_hashed(const struct span_names *names, struct slice text, uint32_t hash);
// A text with this hash will be looked up soon: what has to be read for that is asked for, first
// where its number stands and, once that came, its row. Returns the number, or that of another text
// with the same hash; NAME_NONE: it is not there.
void span_names_expect(const struct span_names *names, uint32_t hash);
uint32_t span_names_approach(const struct span_names *names, uint32_t hash);
// This one will be given back soon: where its number stands is asked for.
void span_names_leave(const struct span_names *names, uint32_t name);
// Which row the text most likely names; whoever asks makes sure that it does. TABLE_NO_ROW, or any
// number, when nobody said.
void span_names_point(struct span_names *names, uint32_t name, uint32_t row);
uint32_t span_names_hint(const struct span_names *names, uint32_t name);
// Keeps it once more, or once less.
void span_names_keep(struct span_names *names, uint32_t name);
void span_names_give(struct span_names *names, uint32_t name);
// A copy in the arena; data NULL for NAME_NONE.
struct slice span_names_text(const struct span_names *names, uint32_t name, struct arena *arena);
bool span_names_is(const struct span_names *names, uint32_t name, struct slice text);
