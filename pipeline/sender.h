// SPDX-License-Identifier: Apache-2.0
// Between a pipeline and one exporter: encodes, delivers, and keeps what a sink does not take yet.
//
// Verdicts wait in memory, up to queue_bytes, while the sink fails; a full queue blocks the
// pipelines that feed it (and no other), until the sink takes some or the service is asked to stop.
// With inputs that end, long documents leave piece by piece, so that they never stand in memory
// whole.
#pragma once

#include "pipeline/plan.h"

#include <pthread.h>
#include <stdatomic.h>

enum { SENDER_QUEUE_BYTES = 128 << 20, SENDER_PIECE_BYTES = 256 << 10 };

struct sender {
    const struct plan_component *component;
    void *instance;
    const char *site; // "exporter/json"
    bool once;
    pthread_mutex_t lock;
    struct buffer queue;  // encoded, not yet taken by the sink
    uint64_t retry_at_ns; // monotonic; 0: at once
    uint64_t backoff_ns;
    bool dead; // failed for good: what comes is dropped and counted
    uint64_t dropped_bytes;
    enum status failure; // first failure that was final
    struct error error;
    const atomic_bool *stopping;
};

void sender_init(struct sender *sender, const struct plan_component *component, void *instance,
                 const char *site, bool once, const atomic_bool *stopping);
void sender_release(struct sender *sender);
// Encodes the batch and delivers what is due. Any thread, one at a time by its own lock.
void sender_consume(struct sender *sender, const struct batch *batch);
// Tries again what the sink did not take. Cheap when there is nothing.
void sender_tick(struct sender *sender);
// The last request; tries for up to `budget_ns`. What could not be delivered is an error.
enum status sender_finish(struct sender *sender, uint64_t budget_ns, struct error *error) MUST_USE;
