// SPDX-License-Identifier: Apache-2.0
// The service's side of a feed: making it, and what it hands over.
#pragma once

#include "pipeline/component/feed.h"
#include "pipeline/runtime/feed/intake.h"
#include "pipeline/runtime/now/times.h"

#define SOURCE_MAGIC UINT32_C(0x536f7572)

struct source {
    uint32_t magic; // SOURCE_MAGIC
    struct feed *feed;
    struct slice path;
    string_id id; // of its path
    const struct decoder_type *decoder;
    void *decoder_state;
    struct source_figures figures;
    struct source_position restored;
    struct source_position reached; // by what was offered; delivered with the next flush
    struct source_position before;  // … before what was offered last
    // While a source whose positions it has holds records, it stands here.
    struct source_position held_at;
    struct source *holder;    // that source; NULL: none
    struct source *positions; // of a source that holds records: who has its positions
    bool holds;
    uint64_t told;             // records up to this number were told before a restart
    uint64_t highest;          // number reached so far; a journal's older entries come again
    uint64_t batch;            // number of the feed's batch that it was touched in last
    struct source_times times; // of its events in this batch
    // Times from here on, for so long, turn no moment (struct feed_outlet).
    uint64_t steady_ns, steady_for_ns;
    const struct forwarded *forwarded; // of the record at hand; NULL: it was not passed on
    bool journal;
    bool left;
    bool caught_up; // nothing came since it was read to its end
    uint32_t place; // in the feed's list
    // Its row in each runner's table of sources, in the order of the feed's runners;
    // TABLE_NO_ROW: none yet.
    uint32_t *rows;
};

// Up to where everything has gone through with what is delivered now.
static inline const struct source_position *source_delivered(const struct source *source) {
    return source->holder != NULL ? &source->held_at : &source->reached;
}

// What one flush hands over: events, and the sources whose position or time they move.
struct delivery {
    const struct event *events;
    uint32_t count;
    uint32_t kinds; // 1 << enum event_kind of those among them
    struct source *const *touched;
    uint32_t touched_count;
    uint64_t begun_ns; // monotonic, when its first event came
    bool turned;       // its last record may bring a moment: evaluated before that (feed_steps)
};

// The other end of a feed. Called on the feed's thread, but for `safe`.
struct feed_outlet {
    void *context;
    void (*deliver)(void *context, const struct delivery *delivery);
    // A source that was just made: where it stood, from the state that was loaded.
    void (*restore)(void *context, struct source *source);
    // The path of the index-th source that was loaded for this receiver; false at the end.
    bool (*restored_path)(void *context, uint32_t index, struct slice *path);
    void (*leave)(void *context, struct source *source, bool forget);
    struct source_position (*safe)(void *context, const struct source *source);
    bool (*blocked)(void *context);
    uint64_t (*lag)(void *context, const struct source *source);
    bool (*knows_node)(void *context, struct slice name);
    // The first time after this one by which a moment of a pipeline can be passed. A record that
    // reaches it ends its batch. NULL: there are no moments.
    uint64_t (*turn)(void *context, uint64_t time_ns);
    int32_t (*settle_zone)(void *context, struct slice path, const struct local_times *times);
    bool (*may_settle_zone)(void *context);
    uint64_t (*latest_ns)(void *context); // feed_latest_ns
    void (*trouble)(void *context, const char *sentence);
    void (*caught_up)(void *context);
};

struct feed_settings {
    const char *site; // "receiver/file/ranks"
    uint32_t batch_size;
    uint32_t runner_count;
    uint64_t max_jump_ns; // the smallest of its pipelines
    int stop_descriptor;
    const atomic_bool *stopping;
    const atomic_bool *pausing;
    const bool *taken; // by event_class: whether a pipeline of it takes such events; NULL: all
    bool silent;       // a further copy: what it refuses and notes was told by the first
    const struct forms *forms; // of all its sources (decoder_input.forms)
    struct intake *intake;
    struct feed_outlet outlet;
};

struct feed *feed_create(const struct feed_settings *settings);
void feed_free(struct feed *feed); // NULL is fine

// Once the receiver has stopped: how many to ask for, and each; false: it is nothing to report.
uint32_t feed_source_count(const struct feed *feed);
bool feed_source_report(const struct feed *feed, uint32_t index, struct report_source *out);
bool feed_has_journal(const struct feed *feed);
// Events accepted and records refused so far. Any thread.
uint64_t feed_accepted(const struct feed *feed);
uint64_t feed_refused(const struct feed *feed, enum decode_category category);
// Records of no interest; events of this event_class that no pipeline takes. Any thread.
uint64_t feed_other(const struct feed *feed);
uint64_t feed_unused(const struct feed *feed, uint32_t class);
