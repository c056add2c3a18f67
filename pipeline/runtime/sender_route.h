// SPDX-License-Identifier: Apache-2.0
// What of a batch one exporter is given (pipeline/component/route.h), and what it was told so far.
//
// An exporter sees a verdict first as `open`, then its changes, then that it is resolved, whatever
// was held back between. Of a verdict that it was told it hears that it matches no longer, and that
// it is over, whatever the bounds say; of one that it was not told it does not hear the end. What
// an update held back said is not kept: the verdict itself is asked for once more when its time
// comes (sender_route_recall).
//
// Time is that of events: the newest moment at which a pipeline that feeds the exporter was
// evaluated. Memory: at most ROUTE_ROWS_MAX rows of 96 bytes, part of the checkpoint. Everything
// under the sender's lock, but for the counts.
#pragma once

#include "pipeline/component/route.h"
#include "pipeline/component/state.h"
#include "pipeline/model/batch.h"

#include <stdatomic.h>

enum {
    ROUTE_ROWS_MAX = 16384, // verdicts that are kept in mind; who changed longest ago is forgotten
    ROUTE_LISTED_MAX = 64,  // verdicts that a notice names
    ROUTE_PATTERNS_MAX = 24,
    ROUTE_MAGIC = 0x526f7574,
};

enum route_reason { ROUTE_MATCH, ROUTE_UPDATE, ROUTE_RATE, ROUTE_REASONS };
extern const char *const ROUTE_REASON_NAMES[ROUTE_REASONS]; // the options: "match"

// A verdict that the notice names.
struct route_listed {
    char id[VERDICT_ID_SIZE];
    uint8_t severity;
    uint8_t state;
    uint64_t time_ns;
};

struct route_pattern {
    char name[VERDICT_PATTERN_MAX + 1];
    uint64_t count;
};

// What is told of a flood: since the first message that was held back by max_per_minute.
struct route_notice {
    uint64_t open; // a flag
    uint64_t first_ns, last_ns;
    uint64_t total;   // messages
    uint64_t untold;  // … since the notice was put out last
    uint64_t gravest; // enum severity of what was held back
    uint64_t most;    // max_per_minute then
    uint64_t listed_count;
    struct route_listed listed[ROUTE_LISTED_MAX];
    struct route_pattern patterns[ROUTE_PATTERNS_MAX]; // of those that do not fit here only the
                                                       // total tells
};

struct route_now {
    uint64_t now_ns;
    uint64_t minute_ns;      // when this minute began; 0: with the next message
    uint64_t taken[2];       // messages in it; [1]: critical ones
    uint64_t held_in_minute; // messages that it held back
    uint64_t pattern_count;  // patterns with a message in it …
    char patterns[ROUTE_PATTERNS_MAX][VERDICT_PATTERN_MAX + 1];
    uint64_t waiting;      // rows with something to tell
    struct row_list order; // of the rows, who changed last at the end
    struct route_notice notice;
};

// What a minute that ended means for the notice.
enum notice_due { NOTICE_STANDS, NOTICE_CHANGED, NOTICE_OVER };

struct sender_route {
    uint32_t magic;                    // ROUTE_MAGIC
    const struct route_config *config; // NULL: everything passes
    const char *id;                    // of the exporter
    const char *site;
    bool remembers; // the options need to know what was told
    struct keyed_rows rows;
    struct route_now now;
    enum notice_due due; // while a batch goes through
    atomic_uint_fast64_t held_back[ROUTE_REASONS];
    atomic_uint_fast64_t forgotten; // told verdicts that had no row any more
};

void sender_route_init(struct sender_route *route, const struct route_config *config,
                       const char *id, const char *site);
void sender_route_release(struct sender_route *route);
// Its state, for a checkpoint; nothing when it remembers nothing.
void sender_route_state(struct sender_route *route, struct state_list *list);
void sender_route_restored(struct sender_route *route);

// Marks those unchanged verdicts of the batch (verdict.recalled) that the exporter is still to be
// told of and now may be.
void sender_route_recall(struct sender_route *route, struct batch *batch);
// The batch as the exporter sees it. Its list of verdicts is in the batch's arena.
struct batch sender_route_batch(struct sender_route *route, const struct batch *batch);
