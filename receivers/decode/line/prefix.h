// SPDX-License-Identifier: Apache-2.0
// Prefixes that stand in rows (receivers/decode/forms): who writes a line, where, and when.
#pragma once

#include "receivers/decode/forms/forms.h"
#include "receivers/decode/line/names.h"
#include "receivers/decode/line/peel.h"

enum { PREFIX_AGAIN_MAX = 16 };

// Which prefixes that other text may look like a log had so far; zeros at first.
struct prefixes_seen {
    struct {
        const struct form *form;
        uint64_t first; // hash of its values in the first line that had it
        uint32_t lines;
        bool differs; // … in another one they were others
    } rows[PREFIX_AGAIN_MAX];
    struct names_seen names;
};

// Takes one prefix off the text; false when there is none in front. O(size of the prefix) for each
// row that begins with the byte that the text begins with.
bool prefix_peel(struct peel *peel, struct prefixes_seen *seen);
