// SPDX-License-Identifier: Apache-2.0
// Made-up telemetry for the bench: any line of an endless job, by its number.
//
// Step by step, rank by rank; each rank's clock is off by its own amount and each sample comes a
// little early or late. Nine of ten records name job-1. Every 4,096 steps one rank's memory jumps
// for four steps. One record in 256 holds escapes.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { MADE_LINE_MAX = 2048 };

struct made_job {
    uint32_t ranks;
    int schema_version; // 3 or 4; a v4 record carries its capabilities and is twice as long
    uint32_t jobs; // that share the ranks evenly, each with ranks from 0; 0: two jobs, as above
};

// Writes the line with its newline, and a zero byte that does not count; at most MADE_LINE_MAX - 1
// bytes. Gives its size. The same number gives the same bytes.
size_t made_line(const struct made_job *job, uint64_t number, char *out);
