// SPDX-License-Identifier: Apache-2.0
// What a component remembers, declared so that it can be kept across a crash or a reload.
//
// A component lists its tables (base/table/table.h) and single structs once, after it has started;
// the pipeline writes what changed of them, together with the source positions, in one transaction,
// and fills them again on the next start, before the first batch. Rows are flat: the only things in
// them that mean something outside are string ids, whose places are declared and put right on
// load. Pointers in rows mean nothing after a load; `restored` sets them again, and builds what is
// derived (indexes, directories, sums). Listed in the same order on every start, each name once.
//
// For who loads: STRING_NONE and STRING_REFUSED stay what they are (the latter marks free rows in
// some tables); string ids in freed rows are old ones that are looked up like others. A pipeline's
// processors know one another's rows by number, so it is given all of them or none.
#pragma once

#include "base/table/table.h"

#include <stdbool.h>

// Raised when the rows of any component change their meaning but not their size: state that was
// written with another number is left aside and built anew from the inputs.
enum { STATE_LAYOUT = 1 };

enum { STATE_ENTRIES_MAX = 24, STATE_STRINGS_MAX = 12 };

struct state_entry {
    const char *name;    // static text, unique in its component
    struct table *table; // or NULL: a single struct …
    void *bytes;         // … here
    size_t size;         // of that struct, or of a row
    uint32_t string_count;
    uint16_t strings[STATE_STRINGS_MAX]; // offsets of string_id fields in the struct or row;
                                         // never 0 in a row: there stands the chain of free rows
    // Fields that are string ids only in rows for which this says so (NULL: in all rows).
    bool (*row_has_strings)(const void *row);
};

struct state_list {
    struct state_entry entries[STATE_ENTRIES_MAX];
    uint32_t count;
};

// Return the entry, for state_entry_string.
struct state_entry *state_list_table(struct state_list *list, struct table *table);
struct state_entry *state_list_struct(struct state_list *list, const char *name, void *bytes,
                                      size_t size);
// Declares a field of type string_id at `offset`.
void state_entry_string(struct state_entry *entry, size_t offset);
