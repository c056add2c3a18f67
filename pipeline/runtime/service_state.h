// SPDX-License-Identifier: Apache-2.0
// What a running service consists of, shared by the files it is made of.
#pragma once

#include "pipeline/component/decoder.h"
#include "pipeline/component/service_status.h"
#include "pipeline/component/storage.h"
#include "pipeline/model/observation.h"
#include "pipeline/runtime/checkpoint.h"
#include "pipeline/runtime/feed/feed_run.h"
#include "pipeline/runtime/feed/intake.h"
#include "pipeline/runtime/runner.h"

enum { SITE_MAX = 160 };

// How one component does, for the status page.
struct condition {
    struct lock lock;
    enum component_state state;
    char sentence[STATUS_SENTENCE_MAX];
    uint64_t since_unix_ns;
};

struct control;
struct http_server;
struct metric;

// What was carried over into a metric before.
struct carried_count {
    struct metric *metric; // NULL: nothing yet
    uint64_t before;
};

enum { INSTANCE_COUNTS_MAX = 2 + DECODE_CATEGORY_COUNT + EVENT_CLASS_COUNT };

// One component, started.
struct instance {
    const struct plan_component *component;
    const char *pipeline;    // it stands in, or NULL
    struct workers *workers; // of a processor: its pipeline's
    uint32_t copy;           // of a receiver that runs once for each pipeline
    struct component_context context;
    char site[SITE_MAX];
    void *memory;
    bool started;
    struct condition condition;
    struct saver saver;
    struct carried_count counts[INSTANCE_COUNTS_MAX]; // as service_metrics.c numbers them
};

#define RECEIVER_MAGIC UINT32_C(0x52656376)
#define SERVICE_MAGIC  UINT32_C(0x53657276)

struct run_receiver {
    uint32_t magic; // RECEIVER_MAGIC
    struct service *service;
    struct instance instance;
    struct feed *feed;
    bool *taken; // by event_class: whether some pipeline that lists it looks at such events
    string_id id;
    struct runner **runners; // of the pipelines that list it
    uint32_t runner_count;
    uint32_t restored_rows;  // rows that the first runner's table of sources had after the load
    uint32_t restored_index; // feed_restored_source was asked for this one last …
    uint32_t restored_at;    // … and it was found before this row
    uint32_t *rows;          // scratch: rows of the sources of one delivery
    uint32_t row_capacity;
    pthread_t thread;
    bool running;
    atomic_bool ended;
    enum status status;
    struct error error;
};

// What changes when something is encoded, delivered or put off.
struct sender_progress {
    uint64_t next_sequence, delivered_sequence, taken_bytes, asked_until_ns;
};

struct run_exporter {
    struct instance instance;
    struct sender sender;
    struct saver route_saver;     // of what the sink was told (sender_route.h)
    struct sender_progress saved; // as of the last checkpoint
};

struct run_pipeline {
    struct runner runner;
    struct saver saver; // of the runner's own state
    struct carried_count counts[3];
    struct workers *workers; // of the stages; each pipeline is used by one thread at a time
    struct instance *stages;
    uint32_t stage_count; // of those that were begun
    struct run_receiver **receivers;
    uint32_t receiver_count;
};

struct service {
    uint32_t magic; // SERVICE_MAGIC
    const struct plan *plan;
    bool once;
    uint32_t threads; // that decode, and that evaluate: at most so many each
    atomic_bool stopping;
    atomic_bool pausing;
    atomic_bool reload_asked;
    int stop_descriptor; // readable once it is stopping
    int wake_descriptor; // readable when the main loop should look
    atomic_bool dozing;  // the main loop sleeps for long
    struct intake intake;
    struct slice *missing_inputs; // with inputs that end; NULL before the last evaluation
    struct slice *empty_inputs;   // the same
    struct instance *extensions;
    uint32_t extension_count;
    struct run_receiver *receivers;
    uint32_t receiver_count;
    struct run_exporter *exporters;
    uint32_t exporter_count;
    struct run_pipeline *pipelines;
    uint32_t pipeline_count;

    // Checkpoints; main thread only, but for the atomics.
    struct storage *store;
    bool rewrite;            // the store holds blobs of another time: the next one replaces all
    string_id saved_strings; // ids up to this one are in the store
    uint64_t checkpoint_ns;  // monotonic, of the last one that was begun
    uint64_t ticket;         // of the one under way; 0: none
    uint64_t durable;        // the last one that is
    atomic_bool checkpoint_asked;

    // Status.
    struct http_server *metrics_listener; // NULL: nobody is to ask
    struct control *control;              // NULL: there is none
    bool collects;                        // the counts are carried over into the metrics
    struct service_status status;
    struct lock status_lock; // held while somebody looks at the components …
    bool built;              // … which are all there
    uint64_t up_since_unix_ns;
    atomic_bool running;
    atomic_uint_fast64_t turned_ns; // the main loop, monotonic
    struct lock reload_lock;
    bool reload_refused;
    char reload_sentence[STATUS_SENTENCE_MAX];
};

// -- service_run.c --
void service_wake(struct service *service);

// -- service_inlet.c: the other end of the receivers' feeds --
struct feed_outlet receiver_outlet(struct run_receiver *receiver);

// -- service_checkpoint.c --
// Fills everything from the snapshot, if it has it. Once, before receivers start.
enum status service_restore(struct service *service, struct snapshot *snapshot,
                            struct error *error) MUST_USE;
// Reads the store's last checkpoint; NULL snapshot when there is none.
enum status service_read_store(struct service *service, struct snapshot **snapshot,
                               struct error *error) MUST_USE;
// Begins one when something changed. In all three: with `locked` the caller holds all runners'
// locks.
void service_checkpoint(struct service *service, bool locked);
// Takes notice of one that has become durable.
void service_checkpoint_publish(struct service *service, bool locked);
// Begins one and waits until it is durable, but not beyond the deadline.
void service_checkpoint_finish(struct service *service, uint64_t deadline_ns, bool locked);
// Only how far delivery has come and what still waits; true when that is durable.
bool service_checkpoint_senders(struct service *service, uint64_t deadline_ns);
// Everything into memory.
struct snapshot *service_snapshot(struct service *service);
void service_lock_runners(struct service *service);
void service_unlock_runners(struct service *service);

// -- service_condition.c --
void condition_init(struct condition *condition);
// Logs a change. `sentence` may be NULL.
void instance_condition(struct instance *instance, enum component_state state,
                        const char *sentence);
void service_status_init(struct service *service);
// How each does, while the status lock is held and all is built; at most `max`.
uint32_t service_list_components(struct service *service, struct component_status *statuses,
                                 uint32_t max);
// Whether components may be looked at from outside.
void service_set_built(struct service *service, bool built);

// -- service_metrics.c --
enum status service_metrics_start(struct service *service, struct error *error) MUST_USE;
void service_metrics_stop(struct service *service);
