// SPDX-License-Identifier: Apache-2.0
// Made-up records of the kinds that logs, launchers, counters and the cluster's API give: any
// record of an endless stream, by its number.
//
// 64 ranks on 8 nodes take turns. Numbers of collectives, counters and times rise; the names are
// always the same few, as in a job that runs.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MADE_KIND_MAX = 8192, MADE_RANKS = 64 };

struct made_kind {
    const char *name;
    const char *text; // what is filled in begins with @
    bool is_document; // one record of several lines; else each line is a record
};

extern const struct made_kind MADE_KINDS[];
extern const uint32_t MADE_KIND_COUNT;

// Records come `step_ns` apart.
uint64_t made_kind_time_ns(uint64_t number, uint64_t step_ns);
// Writes the record or the lines, each with its newline, at most MADE_KIND_MAX bytes. Gives the
// size. The same number gives the same bytes.
size_t made_kind_write(const struct made_kind *kind, uint64_t number, uint64_t step_ns, char *out);
