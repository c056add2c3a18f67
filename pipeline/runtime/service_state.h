// SPDX-License-Identifier: Apache-2.0
// What a running service consists of, shared by the files it is made of.
#pragma once

#include "pipeline/component/service_status.h"
#include "pipeline/runtime/checkpoint.h"
#include "pipeline/runtime/feed_run.h"
#include "pipeline/runtime/runner.h"
#include "pipeline/store.h"

enum { SITE_MAX = 160 };

// How one component does, for the status page.
struct condition {
    pthread_mutex_t lock;
    enum component_state state;
    char sentence[STATUS_SENTENCE_MAX];
    uint64_t since_unix_ns;
};

// One component, started.
struct instance {
    const struct plan_component *component;
    const char *pipeline; // it stands in, or NULL
    struct component_context context;
    char site[SITE_MAX];
    void *memory;
    bool started;
    struct condition condition;
    struct saver saver;
};

struct run_receiver {
    struct service *service;
    struct instance instance;
    struct feed *feed;
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

struct run_exporter {
    struct instance instance;
    struct sender sender;
    uint64_t saved_next; // as of the last checkpoint
    uint64_t saved_delivered;
    uint64_t saved_asked;
};

struct run_pipeline {
    struct runner runner;
    struct saver saver; // of the runner's own state
    struct instance *stages;
    uint32_t stage_count; // of those that were begun
    struct run_receiver **receivers;
    uint32_t receiver_count;
};

struct service {
    const struct plan *plan;
    bool once;
    atomic_bool stopping;
    atomic_bool pausing;
    atomic_bool reload_asked;
    int stop_descriptor; // readable once it is stopping
    int wake_descriptor; // readable when the main loop should look
    atomic_bool dozing;  // the main loop sleeps for long
    struct intake intake;
    struct slice *missing_inputs; // with inputs that end; NULL before the last evaluation
    struct instance *extensions;
    uint32_t extension_count;
    struct run_receiver *receivers;
    uint32_t receiver_count;
    struct run_exporter *exporters;
    uint32_t exporter_count;
    struct run_pipeline *pipelines;
    uint32_t pipeline_count;

    // Checkpoints; main thread only, but for the atomics.
    struct store *store;
    bool rewrite;            // the store holds blobs of another time: the next one replaces all
    string_id saved_strings; // ids up to this one are in the store
    uint64_t checkpoint_ns;  // monotonic, of the last one that was begun
    uint64_t ticket;         // of the one under way; 0: none
    uint64_t durable;        // the last one that is
    atomic_bool checkpoint_asked;

    // Status.
    struct service_metrics *metrics; // NULL: no endpoint
    struct service_status status;
    pthread_mutex_t status_lock; // held while somebody looks at the components …
    bool built;                  // … which are all there
    uint64_t up_since_unix_ns;
    atomic_bool running;
    atomic_uint_fast64_t turned_ns; // the main loop, monotonic
    pthread_mutex_t reload_lock;
    bool reload_refused;
    char reload_sentence[STATUS_SENTENCE_MAX];
};

// -- service_run.c --
void service_wake(struct service *service);

// -- service_inlet.c: the other end of the receivers' feeds --
struct feed_outlet receiver_outlet(struct run_receiver *receiver);

// -- service_checkpoint.c --
// Fills everything from the image, if it has it. Once, before receivers start.
enum status service_restore(struct service *service, struct image *image,
                            struct error *error) MUST_USE;
// Reads the store's last checkpoint; NULL image when there is none.
enum status service_read_store(struct service *service, struct image **image,
                               struct error *error) MUST_USE;
// Begins one when something changed. With `locked` the caller holds all runners' locks.
void service_checkpoint(struct service *service, bool locked);
// Takes notice of one that has become durable.
void service_checkpoint_publish(struct service *service);
// Begins one and waits until it is durable, but not beyond the deadline. `now`: the caller holds
// all runners' locks.
void service_checkpoint_finish(struct service *service, uint64_t deadline_ns);
void service_checkpoint_now(struct service *service, uint64_t deadline_ns);
// Only how far delivery has come and what still waits; true when that is durable.
bool service_checkpoint_senders(struct service *service, uint64_t deadline_ns);
// Everything into memory.
struct image *service_image(struct service *service);
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
