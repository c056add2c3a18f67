// SPDX-License-Identifier: Apache-2.0
// What the launcher of a log says of whom it started: on which node they run, whether that is the
// only one, and which rank each of its local ranks is. Its summary names them; lines of the
// processes often say a local rank alone, and those of starts before the last not even a rank.
#include "base/hash/hash.h"
#include "processors/first_exit/join.h"

enum { NODE_OF_LOG = -1, ONE_NODE = -2 }; // in place of a local rank

// Two that differ: nothing is known.
#define SEVERAL INT64_MIN

struct log_row {
    bool used;
    string_id source, node; // STRING_NONE: of whichever node
    int32_t task, local_rank;
    int64_t value;
};

struct exit_logs {
    struct log_row *rows;
    uint32_t mask;
};

static struct log_row *row_at(const struct exit_logs *logs, const struct exit_note *note,
                              string_id node, int32_t local_rank) {
    const int64_t key[] = {note->key.source, note->task, node, local_rank};
    uint32_t slot = hash_folded(hash_more(HASH_START, key, sizeof key)) & logs->mask;
    while (logs->rows[slot].used &&
           (logs->rows[slot].source != note->key.source || logs->rows[slot].task != note->task ||
            logs->rows[slot].node != node || logs->rows[slot].local_rank != local_rank))
        slot = (slot + 1) & logs->mask;
    return &logs->rows[slot];
}

static void learn(const struct exit_logs *logs, const struct exit_note *note, string_id node,
                  int32_t local_rank, int64_t value) {
    struct log_row *row = row_at(logs, note, node, local_rank);
    if (!row->used)
        *row = (struct log_row){true, note->key.source, node, note->task, local_rank, value};
    else if (row->value != value)
        row->value = SEVERAL;
}

static bool has_log(const struct exit_note *note) {
    return note->key.source != STRING_NONE && note->key.source != STRING_REFUSED;
}

// Of launchers alone, of which there are few lines: each tells of a node and of a rank at most, and
// of that on its node; and of how many nodes there are.
static uint32_t count_rows(const struct exit_list *list) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < list->note_count; i++)
        count += 3 * (uint32_t)kind_is_launchers(note_kind(list->notes[i])) +
                 (note_kind(list->notes[i]) == OBSERVATION_JOB_LAYOUT);
    return count;
}

const struct exit_logs *exits_see_logs(const struct exit_list *list, struct arena *arena) {
    struct exit_logs *logs = arena_take(arena, sizeof *logs);
    uint32_t size = 8, count = count_rows(list);
    while (size < 2 * count)
        size *= 2;
    *logs = (struct exit_logs){arena_zero(arena, size, sizeof *logs->rows), size - 1};
    for (uint32_t i = 0; i < list->note_count; i++) {
        const struct exit_note *note = list->notes[i];
        if (note_kind(note) == OBSERVATION_JOB_LAYOUT && has_log(note))
            learn(logs, note, STRING_NONE, ONE_NODE, note_is(note, NOTE_ONE_NODE));
        if (!kind_is_launchers(note_kind(note)) || !has_log(note))
            continue;
        if (note->node != STRING_NONE)
            learn(logs, note, STRING_NONE, NODE_OF_LOG, note->node);
        if (note->local_rank < 0 || note->rank < 0)
            continue;
        learn(logs, note, STRING_NONE, note->local_rank, note->rank);
        if (note->node != STRING_NONE)
            learn(logs, note, note->node, note->local_rank, note->rank);
    }
    return logs;
}

static int64_t known(const struct exit_logs *logs, const struct exit_note *note, string_id node,
                     int32_t local_rank) {
    const struct log_row *row = row_at(logs, note, node, local_rank);
    if (!row->used) // of no node that was named
        row = row_at(logs, note, STRING_NONE, local_rank);
    return has_log(note) && row->used ? row->value : SEVERAL;
}

string_id exit_log_node(const struct exit_logs *logs, const struct exit_note *note) {
    int64_t node = known(logs, note, STRING_NONE, NODE_OF_LOG);
    return node == SEVERAL ? STRING_NONE : (string_id)node;
}

int32_t exit_log_rank(const struct exit_logs *logs, const struct exit_note *note) {
    if (note->local_rank < 0)
        return RANK_NONE;
    int64_t rank = known(logs, note, note->node, note->local_rank);
    if (rank == SEVERAL && known(logs, note, STRING_NONE, ONE_NODE) == true)
        rank = note->local_rank;
    return rank == SEVERAL ? RANK_NONE : (int32_t)rank;
}
