// SPDX-License-Identifier: Apache-2.0
// What a component is: one constant of struct component_type, in the component's own file.
//
// The option rows feed the parser, the range checks, the help, the README tables and the editors'
// schema. Adding a component touches its folder, one line in cli/components.def, its test.
#pragma once

#include "config/option.h"
#include "pipeline/component/route.h"
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
struct forms;
struct source_list;
struct storage;
struct service_status;
struct component_set;
struct late_library;
struct workers;

// What `preset:` of a pipeline puts into it: who started the growth of memory; every finding.
enum preset { PRESET_NONE, PRESET_MEMORY, PRESET_ALL };
extern const char *const PRESET_NAMES[]; // as in YAML, ended by NULL

// A pattern of verdicts that a processor gives, and the patterns that may be its consequence (the
// processor `incident` joins by that).
struct verdict_pattern {
    const char *name;            // verdict.pattern: "nccl_hang"
    const char *const *explains; // names of patterns, ended by NULL; NULL: none. Its own name: one
                                 // such verdict may explain another that blames the same rank.
    const char *kind;            // only verdicts of this kind explain anything; NULL: all
    const char *const *explains_rank; // likewise, where that blames a rank that they blame; not
                                      // what only can be at one place with them
    uint32_t rank_before_s; // … and began at most so long before: others wait for a rank already
                            // that is about to end
};

// What the ids of evidence begin with, and the kind of event that they name (`--explain`).
struct evidence_prefix {
    const char *prefix; // "xid:"
    uint32_t event;     // enum event_kind
};

// Event-time rules of one pipeline (service.pipelines.NAME).
struct pipeline_timing {
    struct duration evaluate_every;   // default 1s
    struct duration allowed_lateness; // default 2s
    struct duration settle;           // default 30s: how long a first name stands before it is said
    struct duration idle_timeout;     // default 60s: silent sources stop holding the watermark back
    // Those that were read to their end do so after this, or allowed_lateness when that is longer.
    struct duration caught_up_timeout; // default 2s
    struct duration max_jump; // default 10m: a lone event further ahead is left aside; 0: none
};

// What a component may use of its surroundings. Lives as long as the instance.
struct component_context {
    const char *id;       // "file/ranks"
    const char *site;     // "receiver/file/ranks", for logs
    const char *pipeline; // processors: the pipeline they stand in (one instance each); else NULL
    // The components of this build: what they say of themselves holds for the others.
    const struct component_set *components;
    const struct pipeline_timing *timing; // processors: that pipeline's; else NULL
    bool once;                            // finite inputs, evaluated at their end
    uint32_t threads;                     // receivers: how many may decode; 1: only the caller's
    // Processors: for what is large, within `consume`; all of a pipeline share them. NULL: nobody.
    struct workers *workers;
    // Receivers and exporters: the store of the file_storage extension; NULL: there is none.
    struct storage *store;
    // Receivers: rows of what logs say (decoder_input.forms); NULL: those that are built in.
    const struct forms *forms;
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
    // pipeline reads the sources of all receivers in the order of their paths' bytes. STATUS_AGAIN:
    // nothing was read, since what it is depends on other sources; it is asked once more for these,
    // in the same order, when all others have been read.
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

// Bytes on their way to a sink. What one `encode` appended is never cut in two unless `complete` is
// false; an exporter of `lines` always gets whole lines. `bytes` belongs to the sender and stands
// until `send` returns.
struct request {
    struct slice bytes;
    bool complete; // ends what one encode made; false: more of it follows (long documents)
    bool last;     // the very last request: finish up
    // What waits behind it, in the order in which it will come as requests of its own, unless it is
    // dropped before. An exporter with `ahead_bytes` may begin with it, and answers for `bytes`.
    const struct slice *ahead;
    uint32_t ahead_count;
};

// What became of a request for which `send` did not return STATUS_OK; zeroed before the call. The
// bytes fall into three parts, in this order: `taken`, `refused`, and the rest, which comes again
// as the beginning of the next request. Both sizes end where an append ended (with `lines`: a
// line), so an exporter keeps no account of its own of what a failed request had delivered.
struct send_outcome {
    size_t taken; // delivered: never comes again
    // The sink will never take these: they are dropped, counted and logged with the error's
    // message, and the rest comes at once. 0: nothing was refused, the rest comes after the wait of
    // a retry.
    size_t refused;
    bool sink_dead; // no request will ever be delivered: the exporter ends, what waits is dropped
    uint64_t retry_after_ns; // the sink asked for this wait (Retry-After); 0: it did not
};

// When a sink sets the pace: the next delivery is not before `not_before_ns`, and at `again_ns` at
// the latest even with nothing to deliver (clock_monotonic_ns; UINT64_MAX: never).
struct send_pace {
    uint64_t not_before_ns;
    uint64_t again_ns;
};

// For documents that take long to make and stand for all that came before them (a page): live,
// `encode` copies what the newest one shows, cheaply, since its pipeline is held meanwhile, and
// appends nothing; the exporter's own thread makes bytes of it. What was copied and not taken up
// yet gives way to what is newer. `due`, `begin` and `end` are called under the lock under which
// `encode` is; `run` is not, and may be under way while `encode` is called.
struct render_calls {
    // When there is something to do (clock_monotonic_ns; 0: at once, UINT64_MAX: nothing). What
    // waits for the sink is delivered first. At a halt it is not waited for. NULL: `encode` does
    // all.
    uint64_t (*due)(const void *instance);
    // Takes up what is newest; with `all` before it is due, too.
    void (*begin)(void *instance, bool all);
    void (*run)(void *instance, struct buffer *out); // appends the bytes, if there are any
    // Whether they are to be delivered; false: something newer was encoded whole.
    bool (*end)(void *instance);
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
    struct render_calls render;
    // Delivers them, on the exporter's own thread (with inputs that end: on the pipeline's), one
    // request at a time. It may block for the `timeout` of its sending options, and no longer: a
    // stop waits for it. STATUS_OK: all of it was delivered. Any other status says why not in
    // `error` (a clause without the exporter's name and without secrets), and `outcome` how far it
    // came. What was not taken comes again: after the wait of a retry, after a restart when there
    // is a store, and what was sent since the last checkpoint once more after a crash. Called with
    // no bytes when `last` and nothing waits. NULL: nothing to deliver.
    enum status (*send)(void *instance, const struct request *request, struct send_outcome *outcome,
                        struct error *error);
    // What it encodes are records of one line each, with a newline behind every one. Then records
    // are counted by lines, and requests begin and end between two of them, with inputs that end
    // too. False: what is encoded is of one piece for the sender.
    bool lines;
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
    // Which verdicts it is given: their place in the config. `encode` sees no others. NULL: all.
    const struct route_config *(*route)(const void *config);
    // What it encodes depends on the order in which receivers raced, so with a store nothing leaves
    // before the checkpoint that holds it: after a crash the same bytes with the same numbers go
    // out. NULL or false: what comes again after a crash comes in the same bytes anyway.
    bool (*waits_for_checkpoint)(const void *config);
};

struct extension_calls {
    // The store that this extension offers. NULL: none.
    struct storage *(*store)(void *instance);
};

// What others call a component with this purpose: a hint for who writes that.
struct component_alias {
    const char *name; // "filelog"
    const char *does; // "it follows files": a clause
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
    // The shared library that start, or a receiver's run, loads whatever the configuration says: it
    // is loaded while the components before it start. NULL: none.
    struct late_library *library;
    // Processors: 1 << enum event_kind of the events that it looks at; batches without any of them
    // reach it only to be judged. 0: all do.
    uint32_t takes;
    // Which kinds of those it looks at, enum observation_kind, ended by OBSERVATION_NONE. NULL:
    // all.
    const uint8_t *observations;
    uint32_t needs; // enum stage_fact bits; exporters: what the pipeline must give
    uint32_t gives;
    uint32_t presets; // processors: 1 << enum preset of those that hold it
    const struct verdict_pattern *patterns;
    size_t pattern_count;
    const struct evidence_prefix *evidence;
    size_t evidence_count;
    const struct component_alias *aliases;
    size_t alias_count;
    // Rules between options, no I/O. NULL when there are none.
    void (*validate)(const void *config, struct problem_list *problems);
    enum status (*start)(void *instance, const void *config,
                         const struct component_context *context, struct error *error);
    void (*stop)(void *instance); // safe after a failed start
    // What it remembers (state.h): tables are made before start and released after stop.
    const struct state_row *state_rows;
    size_t state_row_count;
    // What else it remembers, once known; NULL: nothing. Called once after start. `restored` comes
    // after a load, also when only some entries were found (the others are as start left them).
    void (*state)(void *instance, struct state_list *list);
    void (*restored)(void *instance);
    struct receiver_calls receiver;
    struct processor_calls processor;
    struct exporter_calls exporter;
    struct extension_calls extension;
};

// The calls of a type with all that belongs to them. A component is started, listed, restored and
// stopped by these alone. `instance` is zeroed memory of the type's instance_size.
enum status component_start(const struct component_type *type, void *instance, const void *config,
                            const struct component_context *context, struct error *error) MUST_USE;
void component_list_state(const struct component_type *type, void *instance,
                          struct state_list *list);
void component_restored(const struct component_type *type, void *instance);
// Also after a failed start.
void component_stop(const struct component_type *type, void *instance);

// Whether it looks at events of this class (observation.h): processors, and exporters that are
// given events.
bool component_takes(const struct component_type *type, const void *config, uint32_t class);

// What this component needs of the stages before it: enum stage_fact bits. `config` NULL: unknown.
uint32_t component_needs(const struct component_type *type, const void *config);

// The components of this build, from cli/components.def; sorted by kind, then in chain order.
struct component_set {
    const struct component_type *const *types;
    size_t count;
};

const struct component_type *component_find(struct component_set set, enum component_kind kind,
                                            struct slice name);
