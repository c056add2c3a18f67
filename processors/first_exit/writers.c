// SPDX-License-Identifier: Apache-2.0
// Which rank wrote a log of which not all lines say so: tracebacks and what C++ writes name nobody.
//
// Where each process of a job has a log of its own, all lines of such a log are its. That is so
// where there are several logs, each of them names one rank at most, in its lines or by its number
// (worker-3.log), and the ranks are those from 0 on. A log in which a launcher speaks is of
// several.
#include "base/sort.h"
#include "base/text/cut.h"
#include "processors/cluster/compare.h"
#include "processors/cluster/progress_log.h"
#include "processors/first_exit/ends.h"

#define SEVERAL INT32_MAX

struct log_writer {
    string_id source;
    int32_t rank; // RANK_NONE: nothing is said; SEVERAL
};

struct exit_writers {
    struct log_writer *logs; // by source; without those of which it is not known
    uint32_t count;
};

// -- what a log says ------------------------------------------------------------------------------

static bool is_path(string_id source) {
    return source != STRING_NONE && source != STRING_REFUSED;
}

// Of whom launchers, schedulers and coordinators tell is not who wrote the log.
static bool is_of_several(const struct exit_note *note) {
    switch (note_kind(note)) {
    case OBSERVATION_LAUNCHER_FAILED:
    case OBSERVATION_LAUNCHER_SIGNAL:
    case OBSERVATION_LAUNCHER_SUMMARY:
    case OBSERVATION_LAUNCHER_TOLD_TO_STOP:
    case OBSERVATION_SLURM_CANCELLED:
    case OBSERVATION_SLURM_OOM:
    case OBSERVATION_SLURM_TASK_EXIT:
    case OBSERVATION_SLURM_NODE_FAILURE:
    case OBSERVATION_SLURM_STATE:
        return true;
    default:
        return note->unit != STRING_NONE || note->task >= 0 || note->local_rank >= 0;
    }
}

static struct log_writer said_by_note(const struct exit_note *note) {
    int32_t rank = note_kind(note) == OBSERVATION_PEER_LOST ? RANK_NONE : note->rank;
    return (struct log_writer){note->key.source, is_of_several(note) ? SEVERAL : rank};
}

static struct log_writer said_by_count(const struct progress_row *row) {
    bool is_several = row->rank < 0 && (row->task >= 0 || row->local_rank >= 0);
    return (struct log_writer){row->key.source, is_several ? SEVERAL : row->rank};
}

// "worker-3.log": the number of a process in the name of its log.
static int32_t number_in_name(string_id source) {
    static const struct slice words[] = {
        {"worker", 6}, {"process", 7}, {"proc", 4}, {"task", 4}, {"trainer", 7}};
    struct slice name = intern_slice(source), rest;
    const char *slash = name.size == 0 ? NULL : memrchr(name.data, '/', name.size);
    uint64_t number;
    if (slash != NULL)
        name = text_from(name, (size_t)(slash - name.data) + 1);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        rest = name;
        if (!text_skip(&rest, words[i]))
            continue;
        if (!text_skip_char(&rest, '-') && !text_skip_char(&rest, '_'))
            text_skip_char(&rest, '.');
        if (text_take_number(&rest, 1, 6, &number) && (rest.size == 0 || rest.data[0] == '.'))
            return (int32_t)number;
    }
    return RANK_NONE;
}

// -- all logs -------------------------------------------------------------------------------------

static int compare_sources(const void *left, const void *right) {
    const struct log_writer *a = left, *b = right;
    return COMPARE(a->source, b->source);
}

static int compare_ranks(const void *left, const void *right) {
    const struct log_writer *a = left, *b = right;
    return COMPARE(a->rank, b->rank);
}

// One for each log, of what is sorted by logs.
static uint32_t join_said(struct log_writer *logs, uint32_t count) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct log_writer *last = kept == 0 ? NULL : &logs[kept - 1];
        if (last == NULL || last->source != logs[i].source)
            logs[kept++] = logs[i];
        else if (last->rank == RANK_NONE)
            last->rank = logs[i].rank;
        else if (logs[i].rank != RANK_NONE && logs[i].rank != last->rank)
            last->rank = SEVERAL;
    }
    return kept;
}

// Keeps the logs of one rank; a number that a name has counts where no line says another.
static uint32_t keep_known(struct log_writer *logs, uint32_t count) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (logs[i].rank == RANK_NONE)
            logs[i].rank = number_in_name(logs[i].source);
        if (logs[i].rank != RANK_NONE && logs[i].rank != SEVERAL)
            logs[kept++] = logs[i];
    }
    return kept;
}

// Each rank from 0 on has one log.
static bool are_all_ranks(struct log_writer *logs, uint32_t count, struct arena *arena) {
    sort_stable(logs, count, sizeof *logs, arena, compare_ranks);
    for (uint32_t i = 0; i < count; i++)
        if (logs[i].rank != (int32_t)i)
            return false;
    return count > 1;
}

const struct exit_writers *exits_see_writers(const struct exit_list *list, struct arena *arena) {
    struct exit_writers *writers = arena_zero(arena, 1, sizeof *writers);
    const struct progress_row *row;
    uint32_t count = 0, rows = 0;
    for (uint32_t at = 0; progress_next_writer(list->progress, &at) != NULL;)
        rows++;
    struct log_writer *logs =
        arena_take(arena, (list->note_count + rows + (size_t)1) * sizeof *logs);
    for (uint32_t i = 0; i < list->note_count; i++)
        if (is_path(list->notes[i]->key.source))
            logs[count++] = said_by_note(list->notes[i]);
    for (uint32_t at = 0; (row = progress_next_writer(list->progress, &at)) != NULL;)
        if (is_path(row->key.source))
            logs[count++] = said_by_count(row);
    sort_stable(logs, count, sizeof *logs, arena, compare_sources);
    count = keep_known(logs, join_said(logs, count));
    if (!are_all_ranks(logs, count, arena))
        return writers;
    sort_stable(logs, count, sizeof *logs, arena, compare_sources);
    *writers = (struct exit_writers){logs, count};
    return writers;
}

int32_t exit_writer_of(const struct exit_writers *writers, string_id source) {
    uint32_t low = 0, high = writers->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (writers->logs[middle].source < source)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < writers->count && writers->logs[low].source == source;
    return found ? writers->logs[low].rank : RANK_NONE;
}
