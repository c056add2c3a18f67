// SPDX-License-Identifier: Apache-2.0
// What a component is: one constant of struct component_type, in the component's own file.
//
// The option rows feed the parser, the range checks, the help, the README tables and the editors'
// schema. Adding a component touches its .c, its .md, one line in cli/component_list.c, its test.
#pragma once

#include "config/option.h"
#include "pipeline/component/sending.h"
#include "pipeline/component/state.h"
#include "pipeline/model/batch.h"

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
    FACT_SPANS = 1 << 7,     // trees of spans, time by phase (spans)
};

const char *component_kind_name(enum component_kind kind); // "receiver"
const char *stage_fact_name(enum stage_fact fact);         // "samples of each rank"

struct feed;
struct source_list;
struct store;
struct service_status;

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
    // Receivers and exporters: the store of the file_storage extension; NULL: there is none.
    struct store *store;
    // A receiver that reads separately for each pipeline that lists it (`each_pipeline`): how many
    // of it were started before; the first has 0. Only that one counts, quarantines and notes.
    uint32_t copy;
    // Extensions: how culprit is doing (service_status.h).
    const struct service_status *status;
};

struct receiver_calls {
    // Live, each pipeline gets an instance and a feed of its own, so that one that is held up holds
    // up no other. False: one instance feeds all pipelines (a listener has one port).
    bool each_pipeline;
    // Whether, with this configuration, it works only with a store. NULL: never.
    bool (*needs_store)(const void *config);
    // Offers what arrives to the feed until it says stop; on a thread of its own.
    enum status (*run)(void *instance, struct feed *feed, struct error *error);
    // Appends what is promised of its input, in plain words: sentences that each begin with a space
    // (`culprit validate`). `store`: there is one.
    void (*guarantee)(const void *config, const char *id, bool store, struct buffer *out);
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
    // Whether input may be taken at all now (memory_limiter); asked on the receiver's thread before
    // it is read. NULL: always.
    bool (*admits)(void *instance);
};

// Bytes on their way to a sink.
struct request {
    struct slice bytes;
    bool complete; // ends what one encode made; false: more of it follows (long documents)
    bool last;     // the very last request: finish up
    // What waits behind it, in the order in which it will come as requests of its own, unless it is
    // dropped before. An exporter with `ahead_bytes` may begin with it, and answers for `bytes`.
    const struct slice *ahead;
    uint32_t ahead_count;
};

// What a failed delivery says of trying again.
struct send_outcome {
    bool permanent;          // trying again cannot help
    uint64_t retry_after_ns; // the sink asked for this wait (Retry-After); 0: it did not
};

// When a sink sets the pace: the next delivery is not before `not_before_ns`, and at `again_ns` at
// the latest even with nothing to deliver (clock_monotonic_ns; UINT64_MAX: never).
struct send_pace {
    uint64_t not_before_ns;
    uint64_t again_ns;
};

struct exporter_calls {
    // Whether, with this configuration, it passes on events and no findings: then no stage needs to
    // stand before it, and its records are events. NULL: never.
    bool (*takes_events)(const void *config);
    // What the pipeline must give, where that depends on the configuration: enum stage_fact bits.
    // NULL: the type's `needs`.
    uint32_t (*needs)(const void *config);
    // Turns what a batch holds into bytes, without I/O: appends them to `out`. An exporter that is
    // asked for its state (Prometheus) keeps it here and appends nothing.
    void (*encode)(void *instance, const struct batch *batch, struct buffer *out);
    // Delivers them, on the exporter's own thread; may be called again with the same request after
    // a failure. Called with no bytes when `last` and nothing was encoded. NULL: nothing to
    // deliver.
    enum status (*send)(void *instance, const struct request *request, struct send_outcome *outcome,
                        struct error *error);
    // How much of what waits it is shown with each request, so that it need not wait out one answer
    // before it begins with the next. 0: nothing.
    size_t ahead_bytes;
    // Asked on the exporter's thread, between deliveries; at the end nothing is waited for. With it
    // everything that waits leaves in one request, and no request is cut in two. NULL: as soon as
    // there is something, piece by piece.
    struct send_pace (*pace)(const void *instance);
    // How far delivery has come, in the sink's own terms (length of a file): asked after a
    // delivery, kept with the checkpoint, given back on the next start, before anything is sent,
    // so that what was sent after that checkpoint and comes again is not there twice. NULL: none.
    void (*delivered)(void *instance, struct buffer *out);
    enum status (*resume)(void *instance, struct slice delivered, struct error *error);
    // Queue, retry and timeout options: their place in the config. NULL: the defaults.
    const struct sending_config *(*sending)(const void *config);
    // What it encodes depends on the order in which receivers raced, so with a store nothing leaves
    // before the checkpoint that holds it: after a crash the same bytes with the same numbers go
    // out. NULL or false: what comes again after a crash comes in the same bytes anyway.
    bool (*waits_for_checkpoint)(const void *config);
};

struct extension_calls {
    // The store that this extension offers. NULL: none.
    struct store *(*store)(void *instance);
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
    // Processors: 1 << enum event_kind of the events that it looks at; batches without any of them
    // reach it only to be judged. 0: all do.
    uint32_t takes;
    uint32_t needs; // enum stage_fact bits; exporters: what the pipeline must give
    uint32_t gives;
    // Rules between options, no I/O. NULL when there are none.
    void (*validate)(const void *config, struct problem_list *problems);
    enum status (*start)(void *instance, const void *config,
                         const struct component_context *context, struct error *error);
    void (*stop)(void *instance); // safe after a failed start
    // What it remembers (state.h); NULL: nothing. Called once after start. `restored` comes after
    // a load, also when only some entries were found (the others are as start left them).
    void (*state)(void *instance, struct state_list *list);
    void (*restored)(void *instance);
    struct receiver_calls receiver;
    struct processor_calls processor;
    struct exporter_calls exporter;
    struct extension_calls extension;
};

// What this component needs of the stages before it: enum stage_fact bits. `config` NULL: unknown.
uint32_t component_needs(const struct component_type *type, const void *config);

// The components of this build, from cli/component_list.c; sorted by kind, then in chain order.
struct component_set {
    const struct component_type *const *types;
    size_t count;
};

const struct component_type *component_find(struct component_set set, enum component_kind kind,
                                            struct slice name);
