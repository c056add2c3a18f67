// SPDX-License-Identifier: Apache-2.0
// Collective operations as dumps and entries report them: how far each rank is in each process
// group, and what it still waits for.
//
// A dump lists thousands of operations, most of them ended; what is kept of those is one row a
// group and rank (a member): how far it is, which of the last 256 sequence numbers ended, and the
// last one that ended. Operations under way are rows of their own, in a chain a member. States only
// move forward and rows do not depend on the order of dumps, so the same dumps give the same rows
// whatever came first. Ranks whose job was started again (a lower sequence number that was made
// later) begin anew. When a bound is reached, the group that was heard of least recently goes.
// All rows are flat. Cost: one dump once, some 20 ns an entry; no allocation but for new rows.
#pragma once

#include "base/arena.h"
#include "base/table/keyed_rows.h"
#include "base/table/table.h"
#include "pipeline/model/event.h"
#include "pipeline/model/node_event.h"
#include "processors/cluster/row_bound.h"

enum {
    HANG_WINDOW = 256, // sequence numbers below the last one that ended whose end is remembered
    HANG_WORDS = HANG_WINDOW / 64,
    HANG_SILENT_KEPT = 8,  // operations kept of a member whose recorder tells no ends
    HANG_CHUNK_RANKS = 61, // ranks in a row of a member set
};

// Single records tell of an operation as it changes: until one tells its end it is under way.
static const uint64_t HANG_SEEN_ALWAYS = UINT64_MAX;

enum hang_direction { HANG_COLLECTIVE, HANG_SEND, HANG_RECV, HANG_BATCH };

// An operation under way.
struct hang_open {
    uint32_t next;   // of the same member
    string_id name;  // "all_reduce", without the backend
    string_id sizes; // of its inputs, for people; STRING_NONE: not said or long
    string_id dtypes;
    int32_t own, peer; // of a send or recv, numbers within the group; -1: not said
    uint8_t direction; // enum hang_direction
    uint8_t state;     // enum flight_state
    bool retired;
    bool tells_states; // a scheduled one that is retired timed out
    bool from_file;
    bool several; // several operations share the number (coalesced): they are not compared
    bool silent;  // whether it ended is not known
    int64_t sequence;
    uint64_t created_ns;
    uint64_t started_ns;
    uint64_t seen_ns; // of the newest dump that shows it; HANG_SEEN_ALWAYS: records tell of it
    int64_t timeout_ms;
    uint64_t sizes_hash, dtypes_hash; // 0: not said
};

// How far a member is, of collectives or of sends and receives.
struct hang_progress {
    int64_t newest; // -1: nothing
    uint64_t newest_created_ns;
    int64_t done;                   // the last that ended; -1: none
    uint64_t done_bits[HANG_WORDS]; // bit i: done - i ended
};

enum hang_listed { HANG_LISTED_UNKNOWN, HANG_LISTED, HANG_UNLISTED };

struct hang_member {
    struct row_head head;
    uint32_t group; // row of the group
    int32_t rank;
    uint32_t self; // its own number
    uint32_t next; // of the same group
    uint32_t first_open;
    uint32_t open_count;
    uint32_t set;       // row of its member set; TABLE_NO_ROW: not known
    string_id node;     // where it ran when it was heard of last; STRING_NONE: not said
    uint8_t listed;     // enum hang_listed: whether its last dump's pg_config names the group
    bool known;         // a recorder that tells ends spoke of it
    uint64_t config_ns; // of the dump that `set` and `listed` are from
    uint64_t node_ns;   // of the event that `node` is from
    struct hang_progress collective, p2p;
    string_id last_name; // of collective.done, or of the newest where no end is told
    int64_t last;        // its number; -1: none
    uint64_t last_created_ns, last_completed_ns;
};

struct hang_group {
    struct row_head head;
    string_id job, backend, name, desc;
    uint32_t self; // its own number
    uint32_t first_member;
    uint32_t member_count;
    uint64_t heard_ns;
};

// One recorder of one process.
struct hang_source_key {
    string_id job, backend;
    int32_t rank;
};

struct hang_source {
    struct row_head head;
    struct hang_source_key key;
    bool whole; // a dump was seen
    bool tells_states;
    string_id node;   // where the last dump was written; STRING_NONE: not said
    uint64_t node_ns; // of that dump
    bool streams;     // single records come of it too
    bool dated;       // the last dump says when it was written; false: the newest thing in it
    uint64_t heard_ns;
    uint64_t dump_ns;     // of the last dump
    int64_t first_record; // of it; above 0: older entries were lost
    uint64_t oldest_ns;   // when its first entry was created
};

struct hang_rank_key {
    string_id job;
    int32_t rank;
};

// Where a rank runs.
struct hang_rank {
    struct row_head head;
    struct hang_rank_key key;
    string_id node; // or STRING_NONE
    uint64_t place_ns;
    uint64_t heard_ns;
    uint64_t read_ns;    // when the newest dump was written that could be read; 0: none was
    string_id read_node; // where; STRING_NONE: not said
};

struct hang_set {
    struct row_head head;
    uint32_t count;
    uint64_t hash;
    uint32_t self;
    uint32_t first_chunk;
    uint32_t references; // by members
};

struct hang_chunk {
    uint32_t next;
    uint32_t count;
    int32_t ranks[HANG_CHUNK_RANKS];
};

struct hang_store {
    struct keyed_rows groups, members, sources, ranks, sets;
    struct table opens, chunks;
    struct keyed_rows lines, timeouts; // lines.h
    struct keyed_rows ras, processes;  // ras.h
    struct keyed_rows stacks;          // stack.h
    struct keyed_rows refusals;        // refusal.h
    struct row_bound line_bound, timeout_bound, ras_bound, process_bound, stack_bound;
    struct row_bound refusal_bound;
    uint64_t stuck_after_ns;
    uint32_t max_groups, max_ranks, max_entries, max_pending;
    uint64_t evicted; // since the start
};

// Its tables are the owner's state rows, its bounds the owner's to set.
extern const struct row_type HANG_GROUP_ROWS, HANG_MEMBER_ROWS, HANG_SOURCE_ROWS, HANG_RANK_ROWS,
    HANG_SET_ROWS, HANG_OPEN_ROWS, HANG_CHUNK_ROWS;

// EVENT_FLIGHT and EVENT_RANK_MAP; of others only where the rank runs.
void hang_store_take(struct hang_store *store, const struct event *event, struct arena *scratch);
// What was not heard of since `before_ns` goes.
void hang_store_expire(struct hang_store *store, uint64_t before_ns);

static inline struct hang_group *hang_group_at(const struct hang_store *store, uint32_t row) {
    return table_row(&store->groups.table, row);
}
static inline struct hang_member *hang_member_at(const struct hang_store *store, uint32_t row) {
    return table_row(&store->members.table, row);
}
static inline struct hang_open *hang_open_at(const struct hang_store *store, uint32_t row) {
    return table_row(&store->opens, row);
}
static inline struct hang_set *hang_set_at(const struct hang_store *store, uint32_t row) {
    return table_row(&store->sets.table, row);
}

// Its recorder for this backend (or one of a dump that held no entries), or NULL.
const struct hang_source *hang_find_source(const struct hang_store *store,
                                           const struct hang_group *group, int32_t rank);
const struct hang_rank *hang_find_rank(const struct hang_store *store, string_id job, int32_t rank);
// Whether ranks of several jobs are told of. O(ranks).
bool hang_has_several_jobs(const struct hang_store *store);
// The ranks of a set, ascending, in `arena`.
const int32_t *hang_set_ranks(const struct hang_store *store, const struct hang_set *set,
                              struct arena *arena);
bool hang_set_holds(const struct hang_store *store, const struct hang_set *set, int32_t rank);
bool hang_is_done(const struct hang_progress *progress, int64_t sequence);

// -- Parts ----------------------------------------------------------------------------------------

// rows.c: groups, members, sets.
// Find or add; NULL when a bound is reached (counted).
struct hang_group *hang_take_group(struct hang_store *store, string_id job, string_id backend,
                                   string_id name, string_id desc);
struct hang_member *hang_take_member(struct hang_store *store, struct hang_group *group,
                                     int32_t rank);
// The set of these ranks gets one more reference; the one before loses it.
void hang_member_set(struct hang_store *store, struct hang_member *member, const int32_t *ranks,
                     uint32_t count);
void hang_member_clear_set(struct hang_store *store, struct hang_member *member);
// Makes room where a bound is reached: groups that were heard of least recently go.
void hang_make_room(struct hang_store *store, struct arena *scratch);

// open.c: operations under way.
void hang_open_remove(struct hang_store *store, struct hang_member *member, bool p2p,
                      int64_t sequence);
void hang_open_clear(struct hang_store *store, struct hang_member *member);
// Adds it, or moves the one with the same key forward.
void hang_open_take(struct hang_store *store, struct hang_member *member,
                    const struct hang_open *open);
// Goes: what ended, by its number or because it is far below the last that did.
void hang_open_prune(struct hang_store *store, struct hang_member *member);
