// SPDX-License-Identifier: Apache-2.0
// Cuts one JSON document into its records, while it is being read.
//
// Knows an array of records, an object that holds such an array under `events`, `telemetry_events`
// or (Kubernetes) `items`, and records one after another with white space between them. Only the
// structure is looked at (quotes, brackets, commas): a record that is wrong inside is handed on as
// it is, for the decoder to refuse, and the next one is found all the same.
#pragma once

#include "base/slice.h"

#include <stdint.h>

enum format_layout {
    LAYOUT_LINES,   // one record a line
    LAYOUT_ARRAY,   // one JSON array of records
    LAYOUT_WRAPPER, // an object that holds the array under `events`, `telemetry_events` or `items`
    LAYOUT_OBJECT,  // one record over several lines, or several such one after another
    LAYOUT_WHOLE,   // all of it is one record
};

enum split_step {
    SPLIT_RECORD,   // `record` is set
    SPLIT_EMPTY,    // a record was expected and there is none: counts as an item
    SPLIT_TOO_LONG, // a record grew beyond the bound: said once, counts as an item, is skipped
    SPLIT_MORE,     // needs more bytes
    SPLIT_FAULT,    // no such document from `fault_at` on: `fault` says why. Final.
};

enum { SPLIT_KEY_MAX = 32, SPLIT_SUMMARY_MAX = 4096 };

struct splitter {
    enum format_layout layout; // not LAYOUT_LINES
    size_t record_max;
    uint64_t item;        // number of the record that was cut last, 1-based
    const char *fault;    // static text, a clause
    uint64_t fault_at;    // offset in the document
    uint64_t base;        // offset of the window's first byte in the document
    struct slice summary; // raw JSON of `session_summary`, once it was passed; within summary_text
    char summary_text[SPLIT_SUMMARY_MAX];

    // The walk's own:
    int state;
    size_t at;     // next byte in the window
    size_t record; // where the record at hand begins in the window
    uint64_t depth;
    bool in_string;
    bool escaped;
    bool scalar;
    bool skipping; // too long: was said
    bool in_array;
    size_t summary_size;
    size_t key_size;
    char key[SPLIT_KEY_MAX];
};

void splitter_begin(struct splitter *split, enum format_layout layout, size_t record_max);
// Goes on in `window`, which holds the bytes that were kept and then new ones. `record` points into
// the window.
enum split_step splitter_next(struct splitter *split, struct slice window, struct slice *record);
// How many bytes at the front of the window are no longer needed, after SPLIT_MORE.
size_t splitter_used(const struct splitter *split);
// The caller has dropped the first `size` bytes of the window.
void splitter_drop(struct splitter *split, size_t size);
// At the end of the input: NULL when the document is whole, else a clause that says what is
// missing. An empty document is whole.
const char *splitter_end(const struct splitter *split);
