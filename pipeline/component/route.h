// SPDX-License-Identifier: Apache-2.0
// Which verdicts an exporter is given: the options that exporters share for which a verdict is a
// message, and the rules that need nothing but the verdict.
//
// The sender filters before `encode`, so an exporter names its struct route_config
// (exporter_calls.route) and does nothing else. Those that pass on what passed before, so that the
// sink hears of its end: pipeline/runtime/sender.h.
#pragma once

#include "config/option.h"
#include "config/problem.h"
#include "pipeline/model/verdict.h"

struct route_match {
    struct text_list patterns; // names, or beginnings of names with '*' behind; none: all
    int min_severity;          // enum severity
    struct text_list jobs;     // likewise
    bool only_roots;
};

struct route_config {
    struct route_match match;
    struct duration update_interval; // 0: each update is told at once
    int64_t max_per_minute;          // messages; 0: no bound
};

// The pattern of the verdict by which an exporter is told what max_per_minute held back from it.
// It passes every `match`, and names no entity.
#define ROUTE_NOTICE_PATTERN "held_back"

extern const struct option route_match_rows[4];
extern const struct option route_root_rows[4];

// The rows for a `struct route_config` that is the field `field` of `owner`. By default everything
// passes.
// NOLINTBEGIN(bugprone-macro-parentheses): names of types and members take none
#define ROUTE_OPTIONS(owner, field)                                                                \
    ROUTE_MATCH_OPTION(owner, field, route_match_rows), ROUTE_BOUND_OPTIONS(owner, field)
// By default one verdict an incident, its root, from a warning on: for sinks that wake somebody.
#define ROUTE_OPTIONS_ROOTS(owner, field)                                                          \
    ROUTE_MATCH_OPTION(owner, field, route_root_rows), ROUTE_BOUND_OPTIONS(owner, field)
// `match` alone, for a sink that is given a state and repeats it by itself.
#define ROUTE_MATCH_OPTION(owner, field, match_rows)                                               \
    {                                                                                              \
        .name = "match", .type = OPTION_GROUP, .offset = offsetof(owner, field.match),             \
        .rows = match_rows, .row_count = OPTION_COUNT(match_rows),                                 \
        .help = "which verdicts this exporter is given"                                            \
    }
#define ROUTE_BOUND_OPTIONS(owner, field)                                                          \
    {.name = "update_interval",                                                                    \
     .type = OPTION_DURATION,                                                                      \
     .offset = offsetof(owner, field.update_interval),                                             \
     .default_value = "0s",                                                                        \
     .max = 86400,                                                                                 \
     .help =                                                                                       \
         "shortest time between two messages about a verdict whose severity and place in its "     \
         "incident stay; the latest state follows when it is over"},                               \
    {                                                                                              \
        .name = "max_per_minute", .type = OPTION_INT,                                              \
        .offset = offsetof(owner, field.max_per_minute), .default_value = "0", .max = 100000,      \
        .help =                                                                                    \
            "messages beyond this are held back, and how many is told; critical ones have "        \
            "as many again for themselves; 0: no bound"                                            \
    }
// NOLINTEND(bugprone-macro-parentheses)

// Whether everything passes.
bool route_is_default(const struct route_config *config);
// Whether the verdict, as it is now, passes `match`. No lock, no memory.
bool route_matches(const struct route_config *config, const struct verdict *verdict);
// Adds a problem for each item of `match.patterns` that is no pattern of this build (`names`), with
// the one that was probably meant.
void route_check(const struct route_config *config, const char *const *names, size_t count,
                 struct problem_list *problems);
