// SPDX-License-Identifier: Apache-2.0
// One delivery after the other: what may leave now, and what becomes of it. For sender.c;
// everything under the sender's lock.
#pragma once

#include "base/thread.h"
#include "pipeline/plan/plan.h"
#include "pipeline/runtime/block_queue.h"
#include "pipeline/runtime/retry.h"
#include "pipeline/runtime/sender_route.h"

enum { SENDER_AHEAD_MAX = 64, SENDER_DELIVERED_MAX = 1 << 20 }; // blocks; bytes

#define SENDER_MAGIC UINT32_C(0x53656e64)

struct sender {
    uint32_t magic; // SENDER_MAGIC, once sender_init was called
    // The caller's own: set before sender_init, the others are zero then.
    const struct plan_component *component;
    void *instance;
    const char *site; // "exporter/json"
    bool once;
    uint64_t patience_ns; // deliveries may fail for so long, if the options set no bound; 0: ever
    bool with_store;
    bool shared; // several pipelines feed it
    const atomic_bool *stopping;
    void (*wake_checkpoint)(void *context); // a block waits for one
    void *wake_context;

    const struct exporter_calls *calls; // of its type
    const struct sending_config *config;
    bool waits;       // nothing leaves before the checkpoint that holds it
    struct lock lock; // guards what follows
    pthread_cond_t wake;
    pthread_t thread;
    bool running;
    pthread_cond_t ended_wake; // the thread has ended
    bool ended;
    bool stuck; // its last delivery did not end in time: it cannot be released
    bool quitting;
    bool finishing;     // nothing more comes: closes what is open and ends when all is delivered
    uint64_t finish_ns; // … or at this moment
    bool last_sent;
    uint32_t begun; // blocks behind the delivered ones that the exporter was shown
    struct sender_route route;
    struct block_queue queue;
    struct buffer delivered; // what the exporter said after its last delivery
    uint64_t persisted_from; // lowest sequence that the store may hold
    uint64_t durable_ticket; // checkpoints up to this one are durable
    struct retry retry;
    bool dead;                         // failed for good: what comes is dropped and counted
    uint64_t lost_records, lost_bytes; // dropped since it is dead, or at the end
    bool lost_uncounted;               // of some of them the bytes are not known
    enum status failure;               // the last one
    struct error error;

    uint64_t rendered_records; // of batches whose bytes are still to be rendered
    bool rendering;            // the lock is given up meanwhile
    bool render_failed;        // what was rendered last was too long, and that was logged

    atomic_uint_fast64_t in_flight;
    atomic_uint_fast64_t sent_records, failed_records, dropped_records, refused_records;
};

// When the first block may leave (monotonic): 0 at once, UINT64_MAX not before something happens.
uint64_t delivery_due(struct sender *sender, uint64_t now);
// One delivery of what may leave. The lock is given up while the exporter sends.
void delivery_do(struct sender *sender);

// What is to be done with what was not taken.
enum after_failure {
    TRY_AGAIN,    // at retry.at_ns
    GO_ON,        // the refused part is dropped, and the rest goes on at once
    DROP_IT,      // all that was not taken
    SINK_IS_DEAD, // nothing more is delivered
};
// Notes that a request failed of which so many records were not taken.
enum after_failure delivery_failed(struct sender *sender, enum status status,
                                   const struct send_outcome *outcome, const struct error *error,
                                   uint64_t records);
void delivery_succeeded(struct sender *sender);
// Nothing more is delivered: what waits and what comes is dropped and counted.
void delivery_abandon(struct sender *sender, enum status status, const struct error *error);
// The same, and says so.
void delivery_give_up(struct sender *sender, enum status status, const struct error *error);
