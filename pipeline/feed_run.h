// SPDX-License-Identifier: Apache-2.0
// The service's side of a feed: making it, and reading how far its sources have come.
#pragma once

#include "pipeline/feed.h"
#include "pipeline/intake.h"

struct feed_settings {
    const char *site; // "receiver/file/ranks"
    uint32_t batch_size;
    int stop_descriptor;
    const atomic_bool *stopping;
    struct intake *intake;
    // Hands over a batch's events; called on the feed's thread, returns when they are consumed.
    void (*deliver)(void *context, const struct event *events, uint32_t count);
    void *deliver_context;
};

struct feed *feed_create(const struct feed_settings *settings);
void feed_free(struct feed *feed); // NULL is fine

// How far the sources of a feed have come, at one moment of the monotonic clock.
struct feed_progress_view {
    bool any;              // a source has given an event
    bool any_active;       // … and one of them within the idle timeout
    uint64_t lowest_ns;    // newest event of the source that is furthest behind, among active ones
    uint64_t newest_ns;    // newest event of all
    uint64_t last_seen_ns; // when the last event came in, monotonic
};
// Any thread.
void feed_view(struct feed *feed, uint64_t monotonic_ns, uint64_t idle_timeout_ns,
               struct feed_progress_view *view);

// Once the receiver has stopped.
uint32_t feed_source_count(const struct feed *feed);
void feed_source_report(const struct feed *feed, uint32_t index, struct report_source *out);
