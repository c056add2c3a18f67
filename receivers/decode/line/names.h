// SPDX-License-Identifier: Apache-2.0
// Prefixes that are nothing but names ("gpu-a01: ", "trainer-2 worker "). Any text may begin so:
// they count while nearly all lines of a log do, with names that differ in their numbers.
#pragma once

#include "receivers/decode/forms/forms.h"
#include "receivers/decode/line/peel.h"

enum { NAMES_ROWS_MAX = 8, NAMES_FAMILIES_MAX = 3 };

// What a log had of them so far; zeros at first.
struct names_seen {
    uint32_t lines; // of the last ones
    struct names_row {
        const struct form *form;
        uint32_t had; // of these lines
        // Names that begin with the same letters: gpu-a01, gpu-a02.
        struct names_family {
            uint64_t letters, first; // hashes
            uint32_t lines;
            bool differs; // … of names in it
        } families[NAMES_FAMILIES_MAX];
    } rows[NAMES_ROWS_MAX];
};

// Whether the row's names, which stand in front of what is left of the line, count. Called for each
// such row of each line; what a line says is noted once.
bool names_stand(struct names_seen *seen, struct peel *peel, const struct form_match *match);
// A line that was not looked at before.
void names_pass(struct names_seen *seen, struct peel *peel);
