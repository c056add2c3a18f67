// SPDX-License-Identifier: Apache-2.0
// A row a process and time. Whose process it is: what the event says, else the rank map, by node
// and PID.
#include "processors/nccl_hang/stack.h"

#include "base/sort.h"
#include "pipeline/model/observation.h"
#include "processors/cluster/compare.h"
#include "processors/cluster/row_text.h"
#include "processors/nccl_hang/judge.h"
#include "processors/nccl_hang/ras.h"

KEYED_ROW_CHECK(struct hang_stack, key);

const struct row_type HANG_STACK_ROWS = {
    .size = sizeof(struct hang_stack),
    .key_size = sizeof(struct hang_stack_key),
    .rows_per_chunk = 16,
    .strings = {offsetof(struct hang_stack, key.job), offsetof(struct hang_stack, key.node)},
};

void hang_stack_take(struct hang_store *store, const struct event *event, struct arena *scratch) {
    struct slice frame = {NULL, 0}, thread = {NULL, 0};
    int64_t pid = 0;
    if (event->kind != EVENT_OBSERVATION || event->observation->kind != OBSERVATION_STACK ||
        !observation_text(event->observation, FACT_FRAME, &frame))
        return;
    // The thread that holds the interpreter's lock is told of too.
    if (observation_text(event->observation, FACT_THREAD, &thread) &&
        !slice_equal(thread, SLICE("MainThread")))
        return;
    observation_number(event->observation, FACT_PID, &pid);
    const struct hang_stack_key key = {event->job, event->node, event->rank, (uint32_t)pid,
                                       event->time_ns};
    struct hang_stack *row = row_bound_take(&store->stacks, &store->stack_bound, &key,
                                            offsetof(struct hang_stack, time_ns), scratch);
    char told[HANG_FRAME_MAX];
    row_text_say(told, sizeof told, frame);
    row->time_ns = event->time_ns;
    if (strcmp(told, row->frame) > 0)
        memcpy(row->frame, told, sizeof told);
}

// -- whose they are ------------------------------------------------------------------------------

struct owned {
    int32_t rank;
    string_id job; // of the process; STRING_NONE: not known
    const struct hang_stack *stack;
};

// Ascending by rank, of each rank the newest first.
static int compare_owned(const void *left, const void *right) {
    const struct owned *a = left, *b = right;
    int order = COMPARE_KEYS(COMPARE((uint64_t)a->rank, (uint64_t)b->rank),
                             COMPARE(b->stack->time_ns, a->stack->time_ns));
    return order != 0 ? order : strcmp(a->stack->frame, b->stack->frame);
}

struct owned_list {
    struct owned *items;
    uint32_t count;
    bool several_jobs;
};

static struct owned_list list_owned(const struct hang_judging *judging) {
    const struct keyed_rows *rows = &judging->store->stacks;
    struct owned_list list = {
        .items =
            arena_take(judging->arena, (keyed_rows_count(rows) + (size_t)1) * sizeof *list.items)};
    const struct hang_processes processes = hang_processes_of(judging);
    const struct hang_stack *stack;
    list.several_jobs = processes.several_jobs;
    for (uint32_t at = 0; (stack = keyed_rows_next(rows, &at)) != NULL;) {
        struct owned owned = {stack->key.rank, stack->key.job, stack};
        const struct hang_process *process = NULL;
        if (owned.rank == RANK_NONE && stack->key.pid != 0)
            process =
                hang_find_process(&processes, stack->key.job, stack->key.node, stack->key.pid);
        if (process != NULL) {
            owned.rank = process->key.rank;
            owned.job = owned.job == STRING_NONE ? process->key.job : owned.job;
        }
        if (owned.rank != RANK_NONE && stack->time_ns <= judging->now_ns)
            list.items[list.count++] = owned;
    }
    sort_stable(list.items, list.count, sizeof *list.items, judging->arena, compare_owned);
    return list;
}

static const struct hang_stack *stack_of(const struct owned_list *list, string_id job, int32_t rank,
                                         uint64_t from_ns, uint64_t until_ns) {
    uint32_t low = 0, high = list->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (list->items[middle].rank < rank)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < list->count && list->items[low].rank == rank; low++) {
        const struct owned *owned = &list->items[low];
        bool no_other = (owned->job == STRING_NONE || job == STRING_NONE) && !list->several_jobs;
        if (owned->stack->time_ns >= from_ns && owned->stack->time_ns <= until_ns &&
            (owned->job == job || no_other))
            return owned->stack;
    }
    return NULL;
}

// Who is blamed comes first, who waits last.
static void see(const struct hang_judging *judging, const struct owned_list *list,
                struct hang_finding *finding) {
    enum { STACKS_SHOWN = 8 };
    static const enum hang_part PARTS[] = {HANG_CULPRIT, HANG_SUSPECT, HANG_UNREAD, HANG_VICTIM,
                                           HANG_BYSTANDER};
    uint64_t until_ns = finding->end_ns + judging->lines_apart_ns;
    uint32_t shown = 0;
    for (size_t i = 0; i < sizeof PARTS / sizeof *PARTS; i++)
        for (uint32_t j = 0; j < finding->seat_count && shown < STACKS_SHOWN; j++) {
            struct hang_seat *seat = &finding->seats[j];
            if (seat->part != PARTS[i])
                continue;
            seat->stack =
                stack_of(list, finding->group->job, seat->rank, finding->start_ns, until_ns);
            shown += seat->stack != NULL;
            if (seat->stack != NULL && seat->stack->time_ns > finding->end_ns)
                finding->end_ns = seat->stack->time_ns;
        }
    finding->outlasts = finding->end_ns >= finding->start_ns + judging->stuck_after_ns;
}

void hang_see_stacks(const struct hang_judging *judging, struct hang_finding *findings,
                     uint32_t count) {
    if (keyed_rows_count(&judging->store->stacks) == 0 || count == 0)
        return;
    struct owned_list list = list_owned(judging);
    for (uint32_t i = 0; i < count; i++)
        see(judging, &list, &findings[i]);
}
