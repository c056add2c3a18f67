// SPDX-License-Identifier: Apache-2.0
// One look at one job, up to one moment of event time: each stage adds its part and changes nobody
// else's. All of it stands until the next evaluation at most: it lies in the batch's arena, or with
// the stage that made it, which changes only what changed; the series are rank_group's.
//
// Arrays named [rank_count] run over the ranks that were seen, ascending.
#pragma once

#include "pipeline/model/series.h"

// -- rank_group ---------------------------------------------------------------------------------
struct rank_view {
    const struct rank_series *series;
    uint32_t slot;           // number of this (job, rank) until its job is forgotten (batch.h)
    uint64_t sample_count;   // rows up to as_of_ns
    uint32_t repeated_count; // of those, rows that repeat one: the verdict counts without them
    uint64_t first_arrival;  // order of first appearance: smaller came first
    uint64_t first_ns;       // time of the first sample, remembered when its row has expired
    uint64_t last_ns;        // time of the last sample up to as_of_ns
    int64_t max_used_bytes;  // the most ever used up to as_of_ns
    bool in_generation;      // has samples of the job's generation
    uint64_t generation_ns;  // the first of them
};

// -- align --------------------------------------------------------------------------------------
struct rank_alignment {
    __int128 offset_ns; // aligned time = time - offset; the summary's, on the first sample of all
    __int128 generation_offset_ns; // the verdict's, on the first sample of the job's generation
};

// -- spike_detect -------------------------------------------------------------------------------
struct spike {
    bool found;
    uint64_t time_ns;     // sample at which the growth reached the threshold
    uint64_t window_ns;   // sample before the first growing one
    int64_t base_bytes;   // use at window_ns
    int64_t growth_bytes; // peak_delta_bytes: growth up to and including that sample
    uint64_t samples;     // growing samples in the window up to it
    uint32_t origin;      // who wrote that sample
};

// `creep`: a slow rise under swings, seen in the lows between them, which no single window shows.
struct rank_spike {
    int64_t threshold_bytes;
    struct spike first;               // stormlog's: the first window to reach it, over all samples
    struct spike first_of_generation; // the same over the job's generation
    struct spike kept;  // the first window of the generation that reached it and did not fall back
    struct spike creep; // of the generation; `samples` counts the lows since it began
    int64_t low_growth_bytes; // rise of the lows over the generation, whether it is a creep or not
};

// Which of a rank's spikes were found: so that all ranks can be looked over without them.
enum spike_found {
    FOUND_FIRST = 1 << 0,
    FOUND_FIRST_OF_GENERATION = 1 << 1,
    FOUND_KEPT = 1 << 2,
    FOUND_CREEP = 1 << 3,
};

// -- first_cause --------------------------------------------------------------------------------
enum confidence { CONFIDENCE_LOW, CONFIDENCE_MEDIUM, CONFIDENCE_HIGH };

struct suspect {
    uint32_t index; // into the [rank_count] arrays
    struct spike spike;
    __int128 aligned_ns;
    __int128 lead_ns; // over the cluster's onset
    enum confidence confidence;
};

struct suspect_list {
    struct suspect *items; // by (aligned time, larger growth, rank)
    uint32_t count;
    uint32_t candidate_count; // ranks with a spike
    bool has_onset;
    __int128 onset_ns; // aligned time of the second candidate
    bool sparse;       // a rank is missing or has fewer than two samples
};

enum cause_kind { CAUSE_LEAK, CAUSE_COMMON_GROWTH, CAUSE_SWING };

// What the verdict says, which must be right for people (the summary keeps parity with stormlog).
struct cause {
    enum cause_kind kind;
    struct suspect_list
        suspects;         // of the generation: spikes that were kept; for CAUSE_SWING, fell back
    int64_t growth_bytes; // of the first suspect, window start to its last sample
    int64_t median_other_growth_bytes;
    double excess_ratio; // growth over that median; infinite when the others did not grow
    bool sole_earliest;
    bool creeping; // seen in the lows between swings; the spike's `samples` counts lows
    bool settled;  // stood for `settle` already, or this is the last evaluation
    uint32_t generation;
};

// -- phase_attribution --------------------------------------------------------------------------
enum phase_resolution { PHASE_NONE, PHASE_UNIQUE, PHASE_AMBIGUOUS };

struct phase_attribution {
    enum phase_resolution resolution;
    struct slice *paths; // distinct labels, sorted by code point
    uint32_t path_count;
    struct slice path;     // unique
    struct slice scope_id; // unique
    int64_t thread_id;     // unique
    bool thread_id_is_bool;
    struct slice thread_name; // unique
    struct slice summary;     // ambiguous with two or more paths: the likely one; else data NULL
};

struct notes {
    struct slice *items;
    uint32_t count;
    uint32_t capacity;
};

struct evaluation {
    uint64_t as_of_ns; // samples up to here, inclusive
    bool last;         // nothing comes after

    // rank_group
    const struct series_store *store;
    string_id job;     // STRING_NONE
    uint32_t job_slot; // its number until it is forgotten
    uint32_t rank_count;
    const struct rank_view *ranks; // [rank_count]
    // Since the job's evaluation before, these of `ranks` changed: rows, or what the view says. The
    // others are the same, at the same places. `all_changed`: any may have changed, and be others.
    bool all_changed;
    const uint32_t *changed; // [changed_count], each once, in any order
    uint32_t changed_count;
    uint64_t event_count;        // telemetry events of any type up to now
    int64_t claimed_world_size;  // most frequent claim above 1, else 1
    uint32_t generation;         // of the job
    __int128 median_interval_ns; // of the samples; 0 when unknown
    struct notes notes;          // appended by rank_group, align, first_cause, in this order

    // align
    const struct rank_alignment *alignment; // [rank_count]
    int64_t world_size;
    const int32_t *missing_ranks; // ascending
    uint32_t missing_count;

    // spike_detect: [rank_count]
    const struct rank_spike *spikes;
    const uint8_t *found; // enum spike_found

    // first_cause
    const struct suspect_list *suspects; // the summary's
    const struct cause *cause;           // the verdict's; NULL when there is nothing to judge

    // phase_attribution
    const struct phase_attribution *suspect_phases; // one for each of `suspects`
    const struct phase_attribution *cause_phases;   // one for each of `cause->suspects`
};
