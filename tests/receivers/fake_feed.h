// SPDX-License-Identifier: Apache-2.0
// A feed for tests of receivers: keeps what was offered, noted and refused, and checks that bytes
// stay where they are until they are flushed. Decodes with the decoder that the receiver sets.
#pragma once

#include "pipeline/component/feed.h"
#include "pipeline/model/node_event.h"

#include <pthread.h>
#include <stdatomic.h>

enum { FAKE_SOURCES_MAX = 2048 };

struct fake_record {
    char *path;
    char *text;
    uint64_t position;
    enum decode_category category;
    enum event_kind kind; // of an accepted one
    const char *at;       // where it stood, until the flush
    size_t size;
    bool passed; // by a pipeline that was held up: it is to come again
};

struct source {
    char *path;
    const struct decoder_type *decoder;
    void *state;
    struct source_figures figures;
    struct source_position restored; // set by a test before the receiver runs
    struct source_position reached;  // of the record offered last
    struct source_position flushed;  // as of the last flush: counts as safe
    bool forgotten;
    atomic_bool left; // feed_source_leave was called last; nothing of it may wait then
    // feed_source_caught_up was called since the last record, and it held none.
    atomic_bool at_end;
    bool journal;    // of entries; one pipeline takes them, each after the other
    uint64_t newest; // of the numbers that were reached
    struct feed *feed;
    struct source *holder; // holds records at this position; NULL: none
    atomic_uint finished;  // how often feed_source_finish found something
};

struct feed {
    pthread_mutex_t lock;
    struct fake_record *records; // accepted and refused, in order
    uint32_t count;
    uint32_t flushed; // records before this one have been handed over
    char **notes;     // "path: text"
    uint32_t note_count;
    struct source *sources[FAKE_SOURCES_MAX];
    uint32_t source_count;
    struct arena arena;
    struct event event;        // the last one that was decoded
    const char *foreseen;      // the record that it was made of before it was offered
    void *parsed;              // what was parsed of a record before it was offered; NULL: nothing
    const char *parsed_record; // … of this one
    uint32_t foreseen_count;
    string_id stamped;
    uint64_t done_bytes;
    uint64_t total_bytes;
    uint32_t flush_count;
    uint32_t refusals_told; // feed_tell_refused made an event …
    struct event refusal;   // … the last one, with the dump that it tells of
    struct flight_dump unread;
    uint64_t dump_written_ns[2]; // of the last dump that was accepted; … that was refused
    char why[256];               // why it could not be read
    bool may_settle_zone;        // set by a test
    uint32_t zones_settled;      // how often it was asked for one
    atomic_bool blocked;
    atomic_bool caught_up;
    atomic_bool pausing;
    uint64_t lag;            // what feed_lag says, without a journal
    atomic_bool passed_over; // with one: the pipeline takes nothing
    atomic_bool unsafe;      // no checkpoint: nothing counts as safe but what was restored
    char trouble[256];
    atomic_bool stopping;
    int stop_pipe[2];
    struct source *told; // whose position was told last
    void (*refused)(void *context, const struct source *source, struct slice record,
                    uint64_t position, const struct decode_fault *fault);
    void *refused_context;
};

struct feed *fake_feed_create(void);
void fake_feed_free(struct feed *feed);
void fake_feed_stop(struct feed *feed);
// How many records were accepted, of all paths (NULL) or of one that ends in `path_end`.
uint32_t fake_feed_accepted(struct feed *feed, const char *path_end);
uint32_t fake_feed_refused(struct feed *feed, enum decode_category category);
// True when a note holds both texts.
bool fake_feed_noted(struct feed *feed, const char *one, const char *other);
struct source *fake_feed_find(struct feed *feed, const char *path_end);
