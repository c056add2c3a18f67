// SPDX-License-Identifier: Apache-2.0
// Made-up boundaries of phases for the bench: any line of an endless job, by its number.
//
// Eight boundaries a step and rank, in order of time, then by rank. All ranks leave `backward` at
// one time; from the 40th step on one of them takes longer over `forward`.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { MADE_PHASE_LINE_MAX = 1024 };

struct made_phases {
    uint32_t ranks;
};

// Writes the line with its newline, and a zero byte that does not count; at most
// MADE_PHASE_LINE_MAX - 1 bytes. Gives its size. The same number gives the same bytes.
size_t made_phase_line(const struct made_phases *job, uint64_t number, char *out);
