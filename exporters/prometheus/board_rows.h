// SPDX-License-Identifier: Apache-2.0
// What the board holds: rows of jobs, verdicts, ranks and patterns, and the trees of spans.
//
// Strings are ids of texts as they are shown (exposition_label_value), so that two rows never
// become the same series.
#pragma once

#include "base/metrics/exposition.h"
#include "base/table/keyed_rows.h"
#include "pipeline/model/batch.h"

enum {
    BOARD_JOBS_MAX = 4096,
    BOARD_OPEN_MAX = 16384,
    BOARD_BUCKETS = 12,
    BOARD_ID_SIZE = 60, // a verdict's id, filled up with zeros
    // Series that a row of each kind takes.
    BOARD_OPEN_SERIES = 3,
    BOARD_PATTERN_SERIES = BOARD_BUCKETS + 3,
    BOARD_SPAN_BLOCKS_MAX = 64, // trees of spans that are told of
    BOARD_SPAN_FAMILIES = 14,
};
// What is shown of a rank, as it stands in rows, and which of it only some ranks have.
enum rank_figure {
    RANK_LAST_NS,
    RANK_SAMPLES,
    RANK_USED_BYTES,
    RANK_PEAK_BYTES,
    RANK_GROWTH_BYTES,
    BOARD_RANK_SERIES
};
enum rank_group { RANK_MEMORY, RANK_GROWTH, RANK_GROUPS, RANK_ALWAYS = RANK_GROUPS };
extern const double board_bounds[BOARD_BUCKETS]; // of the latency histogram, seconds

// Of ranks that have no series of their own, at their job's last evaluation.
struct rank_fold {
    uint64_t count;
    int64_t figures[BOARD_RANK_SERIES];
    uint32_t has[RANK_GROUPS];
};

struct job_row {
    struct row_head head;
    string_id job; // key
    uint32_t admitted;
    uint32_t open; // verdicts
    uint32_t evaluated;
    uint32_t generation;
    uint64_t touched_ns; // monotonic
    int64_t world_size;
    struct rank_fold fold;
};

struct counter_key {
    string_id job, pattern, kind;
    uint32_t severity;
};
struct counter_row {
    struct row_head head;
    struct counter_key key;
    uint64_t count;
};

struct open_row {
    struct row_head head;
    char id[BOARD_ID_SIZE]; // key
    string_id job, pattern, kind, rank, node, phase;
    uint32_t severity;
    int32_t confidence;
    uint32_t admitted; // 0: folded
    uint32_t counted;  // by its job
    uint64_t start_ns;
};

struct rank_key {
    string_id job;
    int32_t rank;
};
struct rank_row {
    struct row_head head;
    struct rank_key key;
    uint32_t has[RANK_GROUPS];
    int64_t figures[BOARD_RANK_SERIES];
};
// Rows are kept on disk as they are.
_Static_assert(sizeof(struct rank_row) == 72 && offsetof(struct rank_row, figures) == 32, "kept");
_Static_assert(sizeof(struct rank_fold) == 56 && sizeof(struct job_row) == 104, "kept");

struct latency_exemplar {
    char id[BOARD_ID_SIZE]; // "": none
    double value_s;
    double time_s;
};
struct latency {
    uint64_t counts[BOARD_BUCKETS + 1];
    double sum_s;
    struct latency_exemplar exemplars[BOARD_BUCKETS + 1];
};
struct pattern_row {
    struct row_head head;
    string_id pattern; // key
    struct latency latency;
};

// One sample of a tree of spans, made anew at each evaluation (board_spans.c).
struct span_sample {
    uint32_t family;
    string_id text; // what its second label says
    int32_t rank;
    double value;
};

// What is told of one tree; not kept across a restart, since the next evaluation tells all.
struct span_block {
    string_id source, job; // key
    bool telemetry;
    uint64_t touched_ns;
    struct span_sample *samples;
    uint32_t sample_count, sample_capacity;
    uint32_t has_folded; // 1 << family
    double folded[BOARD_SPAN_FAMILIES];
};

// What found no room.
struct board_folded {
    uint64_t verdicts;
    struct latency latency;
};

struct board {
    // Made and kept by board_state_rows.
    struct keyed_rows jobs, counters, open, ranks, patterns;
    struct board_folded folded;
    uint32_t max_series;
    uint64_t expiration_ns; // UINT64_MAX: never
    bool live;              // latency means something: the input is not of another day
    uint32_t series_count;
    uint32_t rank_series_count;
    uint32_t span_series_count;
    struct span_block span_blocks[BOARD_SPAN_BLOCKS_MAX];
    uint32_t span_block_count;
    uint64_t overflow_count; // samples folded since the start of this instance
    // For whoever writes it out: the rows in order, made anew when rows came or went.
    bool sorted;
    struct counter_row **sorted_counters;
    struct open_row **sorted_open;
    struct rank_row **sorted_ranks;
    struct pattern_row **sorted_patterns;
    struct job_row **sorted_jobs;
};

struct board_moment {
    uint64_t monotonic_ns;
    uint64_t unix_ns;
};
