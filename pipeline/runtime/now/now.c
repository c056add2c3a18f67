// SPDX-License-Identifier: Apache-2.0
#include "pipeline/runtime/now/now.h"

#include "base/sort.h"

#include <assert.h>

// A single time ahead of all that is sure.
struct lone {
    uint64_t time_ns;
    uint32_t clock;
    uint32_t run;
};

struct lone_list {
    struct lone *items;
    uint32_t count, capacity;
};

struct agreement { // of the sources on where the input ends
    bool known, holds;
    uint64_t end_ns;
};

static struct source_clock *clock_at(struct table *clocks, uint32_t row) {
    return table_row(clocks, row);
}

static bool within(uint64_t time_ns, uint64_t of_ns, uint64_t jump) {
    return time_ns <= of_ns || time_ns - of_ns <= jump;
}

static uint64_t sure_newest(const struct source_times *times) {
    uint32_t sure = source_times_sure(times);
    return sure == times->count ? 0 : times->runs[sure].high;
}

static uint64_t newest_sure(struct table *clocks) {
    uint64_t newest = 0;
    for (uint32_t i = 0; i < clocks->used; i++) {
        uint64_t own = sure_newest(&clock_at(clocks, i)->times);
        newest = own > newest ? own : newest;
    }
    return newest;
}

static void list_lone(struct lone_list *list, const struct source_times *times, uint32_t clock,
                      uint64_t after_ns, struct arena *scratch) {
    for (uint32_t i = times->count; i-- > 0 && times->runs[i].high > after_ns;) {
        if (list->count == list->capacity) {
            list->capacity = list->capacity == 0 ? 64 : list->capacity * 2;
            list->items = arena_enlarge(scratch, list->items, list->count, list->capacity,
                                        sizeof *list->items);
        }
        list->items[list->count++] = (struct lone){times->runs[i].high, clock, i};
    }
}

// Do most of at least three sources end at the same time, more or less?
static struct agreement agreement_of(struct table *clocks, uint64_t jump, struct arena *scratch) {
    uint64_t *ends = arena_take(scratch, (clocks->used + 1) * sizeof *ends);
    uint32_t count = 0, near = 0;
    for (uint32_t i = 0; i < clocks->used; i++) {
        uint64_t end = source_times_newest(&clock_at(clocks, i)->times);
        if (end != 0)
            ends[count++] = end;
    }
    if (count < 3)
        return (struct agreement){.known = true};
    sort_stable(ends, count, sizeof *ends, scratch, compare_by_u64);
    uint64_t middle = ends[(count - 1) / 2];
    for (uint32_t i = 0; i < count; i++)
        near += within(ends[i], middle, jump) && within(middle, ends[i], jump);
    return (struct agreement){.known = true, .holds = near * 2 > count, .end_ns = middle};
}

// Nothing supports it, and nothing more will: is it the end of its source, or wrong?
static bool is_believed(struct table *clocks, const struct now_rule *rule, const struct lone *lone,
                        struct agreement *agreement, struct arena *scratch) {
    assert(rule->end != NOW_GOES_ON);
    const struct time_run *run = &clock_at(clocks, lone->clock)->times.runs[lone->run];
    if (rule->unix_ns != 0) {
        if (!within(lone->time_ns, rule->unix_ns, rule->max_jump_ns))
            return false;
        if (within(rule->unix_ns, lone->time_ns, rule->fresh_ns))
            return true;
    }
    if (run->behind != 0 || rule->end != NOW_ENDS)
        return false;
    if (!agreement->known)
        *agreement = agreement_of(clocks, rule->max_jump_ns, scratch);
    return !agreement->holds || within(lone->time_ns, agreement->end_ns, rule->max_jump_ns);
}

// Inputs that end do not leave aside what a kernel log ends with: nothing comes that could get
// there, and a fault is one whatever its time. A log that went on at an earlier time says itself
// that the time is wrong.
static bool is_judged_all_the_same(struct table *clocks, const struct now_rule *rule,
                                   const struct lone *lone) {
    const struct time_run *run = &clock_at(clocks, lone->clock)->times.runs[lone->run];
    return rule->end == NOW_ENDS && rule->unix_ns == 0 && run->tells != 0 && run->behind == 0;
}

static void tell_of(struct table *clocks, const struct now_rule *rule, const struct lone *lone,
                    enum run_told what) {
    struct source_clock *clock = clock_at(clocks, lone->clock);
    struct time_run *run = &clock->times.runs[lone->run];
    if (run->told != RUN_NOT_TOLD || (run->behind == 0 && rule->end != NOW_ENDS))
        return;
    run->told = (uint16_t)what;
    clock->told++;
    if (rule->tell != NULL)
        rule->tell(rule->context, clock, run);
}

// Lone times of several sources that are near one another are no longer alone: the number of them
// from the first on, each at most max_jump after the one before.
static uint32_t company(const struct lone_list *list, uint32_t first, uint64_t jump) {
    uint32_t end = first + 1;
    while (end < list->count &&
           within(list->items[end].time_ns, list->items[end - 1].time_ns, jump))
        end++;
    return end - first;
}

uint64_t now_of(struct table *clocks, const struct now_rule *rule, struct arena *scratch) {
    uint64_t now = newest_sure(clocks);
    struct lone_list list = {0};
    for (uint32_t i = 0; i < clocks->used; i++)
        list_lone(&list, &clock_at(clocks, i)->times, i, now, scratch);
    if (list.count == 0)
        return now;
    sort_stable(list.items, list.count, sizeof *list.items, scratch, compare_by_u64);
    struct agreement agreement = {0};
    for (uint32_t i = 0, count; i < list.count; i += count) {
        count = company(&list, i, rule->max_jump_ns);
        const struct lone *first = &list.items[i];
        bool near = now != 0 && within(first->time_ns, now, rule->max_jump_ns);
        bool counts =
            near || count > 1 ||
            (rule->end != NOW_GOES_ON && is_believed(clocks, rule, first, &agreement, scratch));
        bool judged = !counts && is_judged_all_the_same(clocks, rule, first);
        if (counts || judged)
            now = list.items[i + count - 1].time_ns;
        if (!counts)
            tell_of(clocks, rule, first,
                    judged                                        ? RUN_JUDGED
                    : rule->end == NOW_ENDS && rule->unix_ns == 0 ? RUN_NOT_JUDGED
                                                                  : RUN_LEFT_ASIDE);
    }
    return now;
}
