// SPDX-License-Identifier: Apache-2.0
// Trees of spans, one a source: what is kept of tasks, groups, spans, threads and metrics.
//
// Semantics are those of dask `distributed` 2026.8.0 (`distributed.spans`, TaskGroup), as
// docs/spans.md says. All of it lies in rows that name one another by number, so that a checkpoint
// can keep it. apply.c lets events take effect, fold.c keeps it within its bounds,
// answer.c answers. One thread. Times are seconds since 1970.
#pragma once

#include "base/table/keyed_rows.h"
#include "pipeline/component/state.h"
#include "pipeline/model/span_event.h"
#include "pipeline/model/span_report.h"
#include "processors/spans/named_rows.h"
#include "processors/spans/names.h"

enum { SPAN_NONE = TABLE_NO_ROW };

// May lie at any multiple of eight, as all in rows does.
typedef __int128 span_wide __attribute__((aligned(8)));

struct span_limits {
    uint32_t spans; // of all trees, that are there at the same time; so the others
    uint32_t tasks; // and so many groups more than spans
    uint32_t trees;
    uint64_t text_bytes;
};

struct span_tree_key {
    string_id source; // of a stream; STRING_NONE: of a job's phases
    string_id job;    // of a job's phases
};

struct span_tree_row {
    struct row_head head;
    struct span_tree_key key;
    string_id job; // that its events name
    uint32_t started;
    uint64_t last_ns; // newest event, to know who was told of least recently
    uint64_t serial;  // of the event being applied
    uint64_t accepted;
    uint64_t refused; // all of them
    double now_s;
    int64_t threads;
    struct row_list points; // the thread history
    uint32_t point_count;
    uint32_t points_left_out;
    struct row_list refusals;
    uint32_t listed;      // refused ones that are listed
    struct row_list made; // spans in order of creation
    struct row_list roots;
    uint32_t newest_default;
    uint32_t span_count;
    uint32_t task_count;
    uint32_t default_number;
    uint64_t groups_made;
    uint64_t folded;        // spans
    uint64_t dropped_tasks; // finished ones whose keys were let go to bound memory
};

// A name: the path of tags from the root. Equal names are the same row.
struct span_path_key {
    uint32_t parent; // or SPAN_NONE
    uint32_t tag;    // name
};
struct span_path_row {
    struct row_head head;
    struct span_path_key key;
    uint32_t depth; // tags
    uint32_t keepers;
};

struct span_key {
    uint32_t tree;
    uint32_t id; // name
};
struct span_row {
    struct row_head head;
    struct span_key key;
    uint32_t path;
    uint32_t parent;
    struct row_list children;
    struct row_link sibling, made;
    struct row_list groups;
    uint32_t folded_group; // sums of groups that are gone; SPAN_NONE
    struct row_list items; // metrics and code, in order of first appearance
    struct row_list texts; // collections
    uint32_t point;        // newest thread history entry at creation
    uint32_t has_metadata;
    uint64_t marked; // serial of the event that last gave it collections
    uint64_t active; // tasks of its tree that are waiting, queued or processing
    uint64_t folded;
    double enqueued_s;
};

struct span_group_row {
    uint32_t next; // in its span
    uint32_t in_use;
    uint32_t tree, name, span;
    uint32_t first_task;
    uint32_t alive; // tasks
    struct row_list actions;
    uint32_t active;
    uint64_t made; // number of its creation in its tree
    double start_s, stop_s;
    span_wide nbytes;
    uint64_t states[TASK_STATE_COUNT];
};

struct span_action_row {
    struct named_row head; // its owner is the group
    span_wide us;
};

struct span_named_key { // of workers, of groups that are alive, of tasks
    uint32_t tree;
    uint32_t name;
};
struct span_task_row {
    struct row_head head;
    struct span_named_key key;
    uint32_t group;
    uint32_t before, next; // in its group
    uint32_t state;
    int64_t nbytes; // -1: none yet
};
struct span_live_group_row {
    struct row_head head;
    struct span_named_key key;
    uint32_t group;
};
struct span_worker_row {
    struct row_head head;
    struct span_named_key key;
    uint32_t reserved;
    int64_t threads;
};

enum span_item_kind { SPAN_ITEM_METRIC, SPAN_ITEM_CODE };
struct span_item_row {
    struct named_row head; // its owner is the span, its kind a span_item_kind
    uint8_t whole, is_known_time;
    double number;
    span_wide integer;
};

struct span_text_row {
    uint32_t next;
    uint32_t name;
};

struct span_point_row {
    uint32_t next;
    uint32_t number; // in its tree, from 0
    double time_s;
    int64_t threads;
};

struct span_refused_row {
    uint32_t next;
    uint32_t refusal;
    uint64_t line;
    int64_t entry;
};

KEYED_ROW_CHECK(struct span_tree_row, key);
KEYED_ROW_CHECK(struct span_path_row, key);
KEYED_ROW_CHECK(struct span_row, key);
KEYED_ROW_CHECK(struct span_task_row, key);
KEYED_ROW_CHECK(struct span_live_group_row, key);
KEYED_ROW_CHECK(struct span_worker_row, key);

enum { AHEAD_KEYS = 64 };

// What is fetched ahead (ahead.c).
struct span_ahead {
    const struct span_event *event; // NULL: none
    uint32_t hash;                  // of the id of the span that its first task belongs to
    uint32_t name;                  // that id
    uint32_t span;                  // which most likely bears it
    uint32_t step;                  // that comes next
    uint32_t between, left;         // events from one step to the next, and until that
    uint32_t hashes[AHEAD_KEYS];    // of its keys
};

struct span_forest {
    struct span_limits limits;
    struct span_names names;
    struct keyed_rows trees, spans, paths, tasks, live_groups, workers;
    struct named_rows items, actions;
    struct table groups, texts, points, refused;
    struct arena scratch; // of one call
    // What the next event most likely names; looked at before it is believed.
    struct span_tree_row *recent; // NULL: none
    uint32_t recent_number;
    uint32_t likely_task; // may be no row, or another one's by now
    // What `active` of this span and of those above it lacks.
    uint32_t unsettled_span;
    int64_t unsettled;
    struct span_ahead ahead;
};

// Makes, releases, lists and restores it; the limits are set by the owner.
extern const struct state_part span_forest_part;

// The tree of this key, made when it is not there: for that the one that was told of least recently
// goes when there are too many. Never NULL; its row does not move.
struct span_tree_row *span_forest_tree(struct span_forest *forest, struct span_tree_key key,
                                       uint64_t time_ns);

// The same, without a call where the tree is that of the event before.
static inline struct span_tree_row *span_forest_recent(struct span_forest *forest,
                                                       struct span_tree_key key, uint64_t time_ns) {
    struct span_tree_row *tree = forest->recent;
    if (tree == NULL || tree->key.source != key.source || tree->key.job != key.job)
        return span_forest_tree(forest, key, time_ns);
    if (time_ns > tree->last_ns)
        tree->last_ns = time_ns;
    return tree;
}

// Lets the event take effect, or lists why it has none. O(tasks + depth).
enum span_refusal span_apply(struct span_forest *forest, struct span_tree_row *tree,
                             const struct span_event *event, uint64_t line);

// What span_apply left for later: a task that becomes active, or no longer is, counts in all spans
// above it. To be called before `active` of a span is read or answered from, before a span goes,
// and behind the last event of a batch.
void span_settle(struct span_forest *forest);

// Asks for the memory that a later event of the same batch, one of tasks, needs first of all: begun
// with that event, which stands `events` behind the one at hand, then step by step between those
// before it. It changes nothing that is kept. Until it is ended the event stays as it is.
void span_ahead_begin(struct span_forest *forest, const struct span_event *event, uint32_t events);
void span_ahead_step(struct span_forest *forest);
void span_ahead_end(struct span_forest *forest);
// The hashes of its keys in their order, AHEAD_KEYS at most, when the event is that one; else NULL.
const uint32_t *span_ahead_hashes(const struct span_forest *forest, const struct span_event *event);

// Makes room: sums of finished spans go to their parents, those of groups without tasks to their
// span, tasks that ended lose their keys; the oldest first. False: nothing more can go.
bool span_fold_spans(struct span_forest *forest, uint32_t wanted);
bool span_tasks_fit(const struct span_forest *forest, uint32_t wanted);
bool span_fold_tasks(struct span_forest *forest, uint32_t wanted);
// The same within one tree, for so many spans; how many went.
uint32_t span_fold_tree(struct span_forest *forest, struct span_tree_row *tree, uint32_t wanted);
// The tasks of its own groups lose their keys; what is known of them stays in its sums.
void span_forget_tasks(struct span_forest *forest, uint32_t span);
void span_forest_drop_tree(struct span_forest *forest, struct span_tree_row *tree);

// -- for the parts ------------------------------------------------------------------------------

TABLE_ACCESS(span_tree_at, struct span_forest, trees.table, struct span_tree_row)
TABLE_ACCESS(span_at, struct span_forest, spans.table, struct span_row)
TABLE_ACCESS(span_path_at, struct span_forest, paths.table, struct span_path_row)
TABLE_ACCESS(span_group_at, struct span_forest, groups, struct span_group_row)
TABLE_ACCESS(span_task_at, struct span_forest, tasks.table, struct span_task_row)
TABLE_ACCESS(span_action_at, struct span_forest, actions.table, struct span_action_row)
TABLE_ACCESS(span_item_at, struct span_forest, items.table, struct span_item_row)
TABLE_ACCESS(span_text_at, struct span_forest, texts, struct span_text_row)
TABLE_ACCESS(span_point_at, struct span_forest, points, struct span_point_row)
TABLE_ACCESS(span_refused_at, struct span_forest, refused, struct span_refused_row)

// Where a span with this parent (SPAN_NONE: a root) is listed.
static inline struct row_list *span_siblings(const struct span_forest *forest,
                                             struct span_tree_row *tree, uint32_t parent) {
    return parent == SPAN_NONE ? &tree->roots : &span_at(forest, parent)->children;
}

// By which other rows name it.
uint32_t span_tree_number(const struct span_forest *forest, const struct span_tree_row *tree);

uint32_t span_path_take(struct span_forest *forest, uint32_t parent, struct slice tag);
void span_path_give(struct span_forest *forest, uint32_t path);

// The row whose key is these two numbers: `scope` and that of the text. NULL: there is none.
void *span_find_row(const struct span_forest *forest, const struct keyed_rows *rows, uint32_t scope,
                    struct slice text);
uint32_t span_find(const struct span_forest *forest, const struct span_tree_row *tree,
                   struct slice id); // SPAN_NONE: there is none
// The task whose key has this number, SPAN_NONE when there is none; `name` may be NAME_NONE.
uint32_t span_task_named(const struct span_forest *forest, uint32_t tree, uint32_t name);
struct span_task_row *span_find_task(const struct span_forest *forest,
                                     const struct span_tree_row *tree, struct slice key);

uint32_t span_group_new(struct span_forest *forest, uint32_t tree, uint32_t name);
void span_group_free(struct span_forest *forest, uint32_t group); // without tasks
// Adds to an action of the group.
void span_group_act(struct span_forest *forest, uint32_t group, uint32_t name, __int128 us);
// The task's key is free again; its group's counts stay as they are.
void span_task_forget(struct span_forest *forest, struct span_task_row *task);
// The item that it was added to, or that was made of it.
struct span_item_row *span_item_add(struct span_forest *forest, uint32_t span,
                                    enum span_item_kind kind, uint32_t name,
                                    const struct span_number *value, bool is_known_time);
void span_item_sum(struct span_item_row *item, const struct span_number *value);
void span_number_add(struct span_number *sum, const struct span_number *value);
