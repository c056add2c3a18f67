// SPDX-License-Identifier: Apache-2.0
// What a component is: one constant of struct component_type, in the component's own file.
//
// The option rows feed the parser, the range checks, the help, the README tables and the editors'
// schema. Adding a component touches its .c, its .md, one line in cli/component_list.c, its test.
#pragma once

#include "config/option.h"
#include "pipeline/batch.h"

enum component_kind {
    COMPONENT_RECEIVER,
    COMPONENT_PROCESSOR,
    COMPONENT_EXPORTER,
    COMPONENT_EXTENSION
};
enum stability { STABILITY_ALPHA, STABILITY_BETA, STABILITY_STABLE };

// What stages add to a batch and later stages build on. A pipeline whose stage needs what none
// before it gives is refused when it is built.
enum stage_fact {
    FACT_JOBS = 1 << 0,      // which jobs are looked at      (job_filter)
    FACT_SERIES = 1 << 1,    // samples of each rank          (rank_group)
    FACT_ALIGNMENT = 1 << 2, // one offset a rank             (align)
    FACT_SPIKES = 1 << 3,    // at most one spike a rank      (spike_detect)
    FACT_SUSPECTS = 1 << 4,  // who started it                (first_cause)
    FACT_PHASES = 1 << 5,    // what the suspects were doing  (phase_attribution)
    FACT_VERDICTS = 1 << 6,  // findings                      (phase_attribution, detectors)
};

const char *component_kind_name(enum component_kind kind); // "receiver"
const char *stage_fact_name(enum stage_fact fact);         // "samples of each rank"

struct feed;
struct source_list;

// Event-time rules of one pipeline (service.pipelines.NAME).
struct pipeline_timing {
    struct duration evaluate_every;   // default 10s
    struct duration allowed_lateness; // default 10s
    struct duration settle;           // default 10s: how long a first name stands before it is said
    struct duration idle_timeout;     // default 60s: silent sources stop holding the watermark back
};

// What a component may use of its surroundings. Lives as long as the instance.
struct component_context {
    const char *id;       // "file/ranks"
    const char *site;     // "receiver/file/ranks", for logs
    const char *pipeline; // processors: the pipeline they stand in (one instance each); else NULL
    const struct pipeline_timing *timing; // processors: that pipeline's; else NULL
    bool once;                            // finite inputs, evaluated at their end
};

struct receiver_calls {
    // Offers what arrives to the feed until it says stop; on a thread of its own.
    enum status (*run)(void *instance, struct feed *feed, struct error *error);
    // For inputs that end (analyze, run --once); NULL for receivers whose input has no end.
    // `list` names all sources that are there now, in any order; `read` reads one to its end. The
    // pipeline reads the sources of all receivers in the order of their paths' bytes.
    enum status (*list)(void *instance, struct source_list *sources, struct error *error);
    enum status (*read)(void *instance, struct feed *feed, struct slice path, struct error *error);
};

struct processor_calls {
    // Looks at one batch and adds to it. No I/O, no clock, no failure: bad input was refused
    // before.
    void (*consume)(void *instance, struct batch *batch);
};

// Bytes on their way to a sink.
struct request {
    struct slice bytes;
    bool complete; // ends what one encode made; false: more of it follows (long documents)
    bool last;     // the very last request: finish up
};

struct exporter_calls {
    // Turns what a batch holds into bytes, without I/O: appends them to `out`.
    void (*encode)(void *instance, const struct batch *batch, struct buffer *out);
    // Delivers them; may be called again with the same request after a failure. Sets *permanent
    // when trying again cannot help. Called with no bytes when `last` and nothing was encoded.
    enum status (*send)(void *instance, const struct request *request, bool *permanent,
                        struct error *error);
};

struct component_type {
    const char *name;    // lower_snake_case, as in YAML
    const char *summary; // one sentence
    enum component_kind kind;
    enum stability stability;
    const struct option *options; // NULL when it has none
    size_t option_count;
    size_t config_size;   // of the struct that the option rows fill
    size_t instance_size; // zeroed before start
    uint32_t needs;       // enum stage_fact bits; exporters: what the pipeline must give
    uint32_t gives;
    // Rules between options, no I/O. NULL when there are none.
    void (*validate)(const void *config, struct problem_list *problems);
    enum status (*start)(void *instance, const void *config,
                         const struct component_context *context, struct error *error);
    void (*stop)(void *instance); // safe after a failed start
    struct receiver_calls receiver;
    struct processor_calls processor;
    struct exporter_calls exporter;
};

// The components of this build, from cli/component_list.c; sorted by kind, then in chain order.
struct component_set {
    const struct component_type *const *types;
    size_t count;
};

const struct component_type *component_find(struct component_set set, enum component_kind kind,
                                            struct slice name);
