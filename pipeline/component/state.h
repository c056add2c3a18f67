// SPDX-License-Identifier: Apache-2.0
// What a component remembers, declared so that it survives a crash or a reload.
//
// A component names each table (base/table/table.h), keyed table and single struct in one constant
// row (component_type.state_rows). From these rows its tables are made before `start` and released
// after `stop`; the pipeline writes what changed of them, together with the source positions, in
// one transaction, and fills them again on the next start, before the first batch. What is not
// known before the start is listed by `state`.
//
// Rows are flat: the only things in them that mean something outside are string ids, whose places
// are declared and put right on load. Pointers in rows mean nothing after a load; `restored` sets
// them again, and builds what is derived (indexes, directories, sums). Listed in the same order on
// every start, each name once.
//
// For who loads: STRING_NONE and STRING_REFUSED stay what they are (the latter marks free rows in
// some tables); string ids in freed rows are old ones that are looked up like others. A pipeline's
// processors know one another's rows by number, so it is given all of them or none.
#pragma once

#include "base/table/keyed_rows.h"
#include "base/table/table.h"

#include <stdbool.h>

// Raised when the rows of any component change their meaning but not their size: state that was
// written with another number is left aside and built anew from the inputs.
enum { STATE_LAYOUT = 2 };

enum { STATE_ENTRIES_MAX = 24, STATE_STRINGS_MAX = ROW_STRINGS_MAX };

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

// -- constant rows --------------------------------------------------------------------------------

// A part of an instance that is more than a table: what its own rows name, and calls for the rest
// of it, each NULL when there is nothing to do. `part` is the struct at the row's offset.
struct state_row;
struct state_part {
    const struct state_row *rows; // in `part`
    size_t row_count;
    void (*init)(void *part, const char *name);
    void (*release)(void *part);
    void (*list)(void *part, struct state_list *list);
    void (*restored)(void *part); // after its rows
};

struct state_row {
    const char *name;            // static text, unique in its component
    size_t offset;               // in the instance, of:
    const struct row_type *rows; // a struct keyed_rows when the type has a key, else a struct table
    const struct state_part *part;
    size_t struct_size; // with neither of the two: a flat struct of this size
};

#define STATE_ROWS(owner, field, row_name, row_type_)                                              \
    { .name = (row_name), .offset = offsetof(owner, field), .rows = &(row_type_) }
#define STATE_STRUCT(owner, field, row_name)                                                       \
    {                                                                                              \
        .name = (row_name), .offset = offsetof(owner, field),                                      \
        .struct_size = sizeof(((owner *)NULL)->field)                                              \
    }
#define STATE_ROW_COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))
#define STATE_PART(owner, field, row_name, calls)                                                  \
    { .name = (row_name), .offset = offsetof(owner, field), .part = &(calls) }

// Makes what the rows name in `owner`, whose memory is zeroed.
void state_rows_init(const struct state_row *rows, size_t count, void *owner);
void state_rows_list(const struct state_row *rows, size_t count, void *owner,
                     struct state_list *list);
// After a load: makes the chains of keyed rows anew.
void state_rows_restored(const struct state_row *rows, size_t count, void *owner);
void state_rows_release(const struct state_row *rows, size_t count, void *owner);

// -- listed at the start --------------------------------------------------------------------------

// Return the entry, for state_entry_string. What the table's row_type declares is in it already.
struct state_entry *state_list_table(struct state_list *list, struct table *table);
struct state_entry *state_list_struct(struct state_list *list, const char *name, void *bytes,
                                      size_t size);
// Declares a field of type string_id at `offset`.
void state_entry_string(struct state_entry *entry, size_t offset);
