// SPDX-License-Identifier: Apache-2.0
// Finds when GPUs are slowed by heat. Samples are kept until an evaluation reaches them, then taken
// in order of time: so neither the order of lines nor the size of batches makes a difference.
//
// For each GPU the samples of the last `window` are kept with what each adds to the sums; one
// sample costs O(1) amortised. An incident begins when a rule holds for the window and ends when
// none does and a sample of the GPU says that it is not hot. What others say ends nothing. Memory:
// 96 bytes a sample, at most `max_samples`; about 290 a GPU.
#pragma once

#include "pipeline/model/node_event.h"
#include "processors/cluster/detector.h"
#include "processors/cluster/row_bound.h"

struct thermal_config {
    struct duration window, min_time, max_gap, node_spread;
    int64_t min_samples, node_min_gpus, slowdown_margin, max_gpus, max_samples;
    double counter_share; // of the window, lost by the counter
    double clock_share;   // below the median of the others
    double node_share;
    struct text_list slowdown_margins;
    int64_t confidence_hw, confidence_sw, confidence_memory, confidence_counter, confidence_node;
};

enum { THERMAL_MODELS_MAX = 64 };

// Another margin for GPUs whose model's name holds the first `part_size` bytes of `part`.
struct thermal_model {
    const char *part; // of the configuration
    int part_size;
    float margin_c;
};

// What makes a sample a hot one.
enum thermal_path {
    PATH_BITS,     // a thermal bit of the clock reasons
    PATH_HARDWARE, // of them the hardware's
    PATH_MEMORY,   // the memory is at its limit, the core is not
    PATH_MARGIN,   // the margin to slowdown is used up
    PATH_COUNT,
    PATH_COUNTER = PATH_COUNT, // time lost, no sample of its own
};

struct thermal_gpu_key {
    string_id node;
    string_id uuid; // where there is no address; else STRING_NONE
    pci_address device;
} __attribute__((packed, aligned(4))); // it stands right behind the row's head

struct thermal_gpu {
    struct row_head head;
    struct thermal_gpu_key key;
    uint32_t self;         // row
    uint32_t next_on_node; // or TABLE_NO_ROW
    string_id uuid, model, pod, namespace, job;
    int32_t index;
    uint32_t first, last;    // samples of the window; TABLE_NO_ROW: none
    uint32_t incident;       // that is open; TABLE_NO_ROW: none
    uint32_t incident_count; // rows that name this GPU
    uint64_t seen_ns;        // of the newest sample that came
    uint64_t taken_ns;       // of the newest that was taken
    uint32_t has_lost;       // bit i: lost_total[i] and lost_at were set
    uint32_t has_clock;
    int64_t lost_total[3]; // last values of the counters
    uint64_t lost_at_ns[3];
    float clock_mhz;
    uint32_t count[PATH_COUNT]; // sums over the window
    uint64_t held_ns[PATH_COUNT];
    uint64_t lost_ns;
    uint64_t clock_ns;                // when clock_mhz was read
    uint64_t told_ns[PATH_COUNT + 1]; // newest that left the window and could be hot by this path
};

struct thermal_node {
    struct row_head head;
    string_id node;
    uint32_t first_gpu;
    uint32_t gpu_count;
};

struct thermal_sample {
    uint32_t next; // of the window
    uint32_t gpu;
    uint64_t time_ns;
    uint64_t held_ns; // until the next sample
    uint64_t lost_ns; // since the one before, by the counters
    uint64_t reasons;
    int64_t lost_total[3]; // thermal violation, software, hardware slowdown
    float core_c, memory_c, margin_c, slowdown_c, memory_max_c, clock_mhz;
    uint32_t present; // bit i: the i-th of enum thermal_value; then how they were spelled
    uint16_t state;   // 0: freed
    uint16_t paths;   // bits of enum thermal_path
};

enum thermal_value {
    THERMAL_REASONS,
    THERMAL_LOST, // and the two after it
    THERMAL_CORE = THERMAL_LOST + 3,
    THERMAL_MEMORY,
    THERMAL_MARGIN,
    THERMAL_SLOWDOWN,
    THERMAL_MEMORY_MAX,
    THERMAL_CLOCK,
    THERMAL_VALUE_COUNT
};
// In `present`, behind the bits of what is there: two for how each was spelled.
_Static_assert(THERMAL_VALUE_COUNT * 3 <= 32, "three bits each");
static inline uint8_t thermal_spelling(const struct thermal_sample *sample, unsigned value) {
    return (uint8_t)(sample->present >> (THERMAL_VALUE_COUNT + 2 * value) & 3);
}

enum thermal_end {
    THERMAL_STANDS,
    THERMAL_COOL,   // a sample said so
    THERMAL_UNKNOWN // live: no sample has told of it for a whole window
};

struct thermal_incident {
    uint32_t chain; // of freed rows
    uint32_t live;  // 0: freed
    uint32_t gpu;
    uint32_t leader;      // incident of the group that this one is in; TABLE_NO_ROW: none
    uint8_t ended;        // enum thermal_end
    uint8_t reported;     // put out as a verdict of its own
    uint8_t has_reasons;  // a sample said what slows the clock
    uint8_t start_path;   // enum thermal_path
    uint64_t start_ns;    // first hot sample
    uint64_t since_ns;    // the one before that could be hot by start_path; 0: none
    uint64_t last_ns;     // last hot sample
    uint64_t reasons;     // of the first sample with a thermal bit
    uint64_t all_reasons; // of all hot samples
    uint64_t reasons_ns;  // when; 0: none
    uint64_t first_ns[PATH_COUNT], last_path_ns[PATH_COUNT];
    uint32_t count[PATH_COUNT];
    uint32_t samples;                     // in all since start
    uint32_t lost_field;                  // which counter: enum gpu_field
    uint64_t lost_ns;                     // in all since lost_first_ns
    uint64_t lost_first_ns, lost_last_ns; // samples at which it had grown; 0: none
    uint64_t lost_from_ns;                // the sample before the first of them
    uint64_t clock_ns; // last time that the clock was below the others'; 0: never
    float clock_mhz, others_mhz;
    float core_max_c, memory_max_c, memory_limit_c, margin_min_c;
    // How the field of each path was spelled in the first and the last of its samples, and that of
    // the clock at clock_ns.
    uint8_t first_spelled[PATH_COUNT + 1], last_spelled[PATH_COUNT + 1], clock_spelled;
};

extern const struct row_type THERMAL_GPU_ROWS, THERMAL_NODE_ROWS, THERMAL_SAMPLE_ROWS,
    THERMAL_INCIDENT_ROWS;

// Its tables are the owner's state rows.
struct thermal_window {
    const struct thermal_config *config;
    bool live; // the input has no end: who fell silent is given up
    struct thermal_model models[THERMAL_MODELS_MAX];
    uint32_t model_count;
    struct keyed_rows gpus;  // THERMAL_GPU_ROWS
    struct keyed_rows nodes; // THERMAL_NODE_ROWS
    struct table samples;    // THERMAL_SAMPLE_ROWS
    struct table incidents;  // THERMAL_INCIDENT_ROWS
    uint32_t waiting;        // samples that were not taken yet
    uint64_t evicted, late;  // since the start
    uint32_t looked_at;      // of idle_rows
};

// After a load.
void thermal_window_restored(struct thermal_window *window);

// Keeps what a sample says of heat. `job`: of the event. O(1), but that samples are taken early
// when half of `max_samples` wait; the arena is scratch. Late is what comes when a sample of the
// same GPU and time, or a later one, was taken.
void thermal_window_add(struct thermal_window *window, const struct gpu_sample *sample,
                        string_id job, struct arena *arena);
// Takes all samples up to `now_ns` in order of time; then, live, incidents of which no sample tells
// any more are given up.
void thermal_window_advance(struct thermal_window *window, uint64_t now_ns, struct arena *arena);

static inline struct thermal_gpu *thermal_gpu_at(const struct thermal_window *window,
                                                 uint32_t row) {
    return table_row(&window->gpus.table, row);
}
static inline struct thermal_incident *thermal_incident_at(const struct thermal_window *window,
                                                           uint32_t row) {
    return table_row(&window->incidents, row);
}
static inline struct thermal_sample *thermal_sample_at(const struct thermal_window *window,
                                                       uint32_t row) {
    return table_row(&window->samples, row);
}
enum { SAMPLE_FREED, SAMPLE_WAITS, SAMPLE_IN_WINDOW };
void thermal_sample_free(struct thermal_window *window, uint32_t row);
// The GPU of a sample, made when new, with the names that it has by now; NULL when it has no name.
struct thermal_gpu *thermal_gpu_find(struct thermal_window *window, const struct gpu_sample *sample,
                                     string_id job, struct arena *arena);
// Forgets an incident that has ended and was put out.
void thermal_incident_forget(struct thermal_window *window, uint32_t row);
// GPUs of a node that were seen.
uint32_t thermal_node_gpus(const struct thermal_window *window, string_id node);
_Static_assert(sizeof(struct thermal_sample) == 96, "as option max_samples says");
