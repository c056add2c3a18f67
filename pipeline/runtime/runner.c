// SPDX-License-Identifier: Apache-2.0
// What a pipeline remembers, and how batches go through its stages to its senders.
#include "pipeline/runtime/runner.h"

#include "base/memory.h"
#include "base/table/table.h"
#include "pipeline/component/component.h"
#include "pipeline/component/state.h"
#include "pipeline/model/batch.h"
#include "pipeline/model/observation.h"
#include "pipeline/runtime/now/now.h"
#include "pipeline/runtime/now/times.h"

#include <assert.h>
#include <stdlib.h>

enum { RUNNER_ARENA_BLOCK = 256 * 1024, TALLY_MAX = 65536 };

struct tally_row {
    uint64_t id;
    enum severity severity;
    uint32_t is_over; // resolved
};

void runner_init(struct runner *runner, const struct plan_pipeline *plan, uint32_t batch_size,
                 bool once) {
    assert(plan != NULL);
    assert(batch_size > 0);
    *runner = (struct runner){.magic = RUNNER_MAGIC,
                              .plan = plan,
                              .batch_size = batch_size,
                              .once = once,
                              .holder = TABLE_NO_ROW};
    lock_init(&runner->lock);
    arena_init(&runner->arena, RUNNER_ARENA_BLOCK);
    table_init(&runner->tally, "tally", sizeof(struct tally_row), 64);
    table_init(&runner->sources, "sources", sizeof(struct runner_source), 16);
    watch_init(&runner->watch, &plan->timing, plan->name);
    table_init(&runner->due_saved, "due", sizeof(uint64_t), 64);
    node_names_init(&runner->names);
    zone_evidence_init(&runner->zones);
    overview_init(&runner->overview);
}

void runner_release(struct runner *runner) {
    assert(runner->magic == RUNNER_MAGIC);
    for (uint32_t i = 0; i < runner->title_count; i++)
        memory_give(runner->titles[i].headline);
    memory_give(runner->titles);
    memory_give(runner->stages);
    memory_give(runner->taken);
    memory_give(runner->senders);
    memory_give(runner->due);
    row_index_release(&runner->source_index);
    arena_release(&runner->arena);
    table_release(&runner->tally);
    table_release(&runner->sources);
    watch_release(&runner->watch);
    node_names_release(&runner->names);
    zone_evidence_release(&runner->zones);
    table_release(&runner->due_saved);
    overview_release(&runner->overview);
    lock_destroy(&runner->lock);
    runner->magic = 0;
}

void runner_stages_ready(struct runner *runner) {
    assert(runner->magic == RUNNER_MAGIC);
    assert(runner->taken == NULL);
    runner->taken = memory_zero(EVENT_CLASS_COUNT, sizeof *runner->taken);
    for (uint32_t class = 0; class < EVENT_CLASS_COUNT; class ++)
        for (uint32_t i = 0; i < runner->stage_count && !runner->taken[class]; i++)
            runner->taken[class] = event_class_name(class) != NULL &&
                                   component_takes(runner->stages[i].type, NULL, class);
}

// -- what it remembers --------------------------------------------------------------------------

void runner_state_list(struct runner *runner, struct state_list *list) {
    assert(runner->magic == RUNNER_MAGIC);
    state_list_struct(list, "runner", &runner->state, sizeof runner->state);
    state_list_table(list, &runner->due_saved);
    state_list_table(list, &runner->tally);
    struct state_entry *sources = state_list_table(list, &runner->sources);
    state_entry_string(sources, offsetof(struct runner_source, receiver));
    state_entry_string(sources, offsetof(struct runner_source, path));
    struct state_entry *clocks = state_list_table(list, &runner->watch.clocks);
    state_entry_string(clocks, offsetof(struct source_clock, path));
    node_names_state(&runner->names, list);
}

void runner_prepare_state(struct runner *runner) {
    assert(runner->magic == RUNNER_MAGIC);
    assert(runner->state.due_count <= runner->due_capacity);
    table_load(&runner->due_saved, runner->state.due_count, TABLE_NO_ROW, 0);
    for (uint32_t i = 0; i < runner->state.due_count; i++)
        *(uint64_t *)table_row(&runner->due_saved, i) = runner->due[i];
}

struct runner_source *runner_source_at(const struct runner *runner, uint32_t row) {
    assert(row < runner->sources.used);
    return table_row(&runner->sources, row);
}

void runner_restored(struct runner *runner, uint64_t monotonic_ns, bool same_clock) {
    assert(runner->magic == RUNNER_MAGIC);
    uint32_t count = runner->due_saved.used;
    runner->state.due_count = runner->due_capacity = count;
    row_index_clear(&runner->source_index);
    node_names_restored(&runner->names);
    runner->due = memory_resize(runner->due, count * sizeof *runner->due);
    for (uint32_t i = 0; i < count; i++)
        runner->due[i] = *(const uint64_t *)table_row(&runner->due_saved, i);
    for (uint32_t i = 0; i < runner->sources.used; i++) {
        struct runner_source *source = runner_source_at(runner, i);
        if (!same_clock) {
            source->last_seen_ns = monotonic_ns;
            source->at_end = 0;
        }
        if (source->in_use)
            row_index_put(&runner->source_index, row_hash(source->receiver, source->path), i);
        source->pending = source->safe = source->position;
    }
}

static uint32_t make_clock(struct runner *runner, uint32_t row, string_id path) {
    *watch_clock(&runner->watch, row) = (struct source_clock){.path = path};
    return row;
}

uint32_t runner_source_row(struct runner *runner, string_id receiver, struct slice path) {
    assert(runner->magic == RUNNER_MAGIC);
    assert(lock_is_held(&runner->lock));
    string_id name = intern(path);
    if (runner->once)
        return make_clock(runner, table_add(&runner->watch.clocks), name);
    uint32_t hash = row_hash(receiver, name), row;
    for (uint32_t at = 0;
         (row = row_index_next(&runner->source_index, hash, &at)) != TABLE_NO_ROW;) {
        const struct runner_source *source = runner_source_at(runner, row);
        if (source->path == name && source->receiver == receiver)
            return row;
    }
    row = table_add(&runner->sources);
    *runner_source_at(runner, row) =
        (struct runner_source){.receiver = receiver, .path = name, .in_use = 1, .left = 1};
    row_index_put(&runner->source_index, hash, row);
    while (runner->watch.clocks.used <= row)
        table_add(&runner->watch.clocks);
    return make_clock(runner, row, name);
}

void runner_source_leave(struct runner *runner, uint32_t row, bool forget) {
    assert(runner->magic == RUNNER_MAGIC);
    assert(lock_is_held(&runner->lock));
    struct runner_source *source = runner_source_at(runner, row);
    runner->changed = runner->changed || forget || !source->left;
    source->left = 1;
    if (!forget)
        return;
    row_index_remove(&runner->source_index, row_hash(source->receiver, source->path), row);
    source->in_use = 0;
    make_clock(runner, row, STRING_NONE);
    table_free(&runner->sources, row);
}

// -- batches ------------------------------------------------------------------------------------

static uint64_t tally_id(const struct verdict *verdict) {
    // The id ends in 16 hex digits of a hash.
    const char *colon = strrchr(verdict->id, ':');
    return colon == NULL ? 0 : strtoull(colon + 1, NULL, 16);
}

static void count_verdict(struct runner *runner, const struct verdict *verdict) {
    assert(verdict->severity <= SEVERITY_CRITICAL);
    uint64_t id = tally_id(verdict);
    for (uint32_t i = 0; i < runner->tally.used; i++) {
        struct tally_row *row = table_row(&runner->tally, i);
        if (row->id == id) {
            row->severity = verdict->severity;
            row->is_over = verdict->state == VERDICT_RESOLVED;
            return;
        }
    }
    if (runner->tally.used == TALLY_MAX)
        return;
    struct tally_row *row = table_row(&runner->tally, table_add(&runner->tally));
    *row = (struct tally_row){id, verdict->severity, verdict->state == VERDICT_RESOLVED};
}

void runner_tally(const struct runner *runner, uint64_t counts[SEVERITY_CRITICAL + 1]) {
    assert(runner->magic == RUNNER_MAGIC);
    for (uint32_t i = 0; i < runner->tally.used; i++)
        counts[((const struct tally_row *)table_row(&runner->tally, i))->severity]++;
}

void runner_tally_open(const struct runner *runner, uint64_t counts[SEVERITY_CRITICAL + 1]) {
    assert(runner->magic == RUNNER_MAGIC);
    for (uint32_t i = 0; i < runner->tally.used; i++) {
        const struct tally_row *row = table_row(&runner->tally, i);
        counts[row->severity] += row->is_over == 0;
    }
}

static uint32_t count_selected(const struct batch *batch) {
    if (batch->selected == NULL)
        return batch->event_count;
    uint32_t selected = 0;
    for (uint32_t i = 0; i < (batch->event_count + 63) / 64; i++)
        selected += (uint32_t)__builtin_popcountll(batch->selected[i]);
    return selected;
}

static void keep_titles(struct runner *runner, const struct batch *batch) {
    runner->titles = memory_zero(batch->verdicts.count, sizeof *runner->titles);
    for (; runner->title_count < batch->verdicts.count; runner->title_count++) {
        const struct verdict *verdict = &batch->verdicts.items[runner->title_count];
        struct verdict_title *title = &runner->titles[runner->title_count];
        memcpy(title->id, verdict->id, sizeof title->id);
        title->headline = memory_copy_text(verdict->headline.data, verdict->headline.size);
    }
}

// The batch goes through the stages.
static void pass_stages(struct runner *runner, struct batch *batch) {
    uint32_t selected = batch->event_count;
    for (uint32_t i = 0; i < runner->stage_count; i++) {
        struct runner_stage *stage = &runner->stages[i];
        const uint64_t *before = batch->selected;
        uint32_t verdicts_before = batch->verdicts.count;
        atomic_fetch_add_explicit(&stage->incoming, selected, memory_order_relaxed);
        uint32_t takes = stage->type->takes;
        if (takes == 0 || batch->evaluate || (takes & batch->kinds) != 0)
            stage->type->processor.consume(stage->instance, batch);
        if (runner->taps.count > 0)
            tap_set_note(&runner->taps, (int32_t)i, batch, verdicts_before);
        if (batch->selected == before)
            continue;
        uint32_t left = count_selected(batch);
        atomic_fetch_add_explicit(&stage->filtered, selected - left, memory_order_relaxed);
        selected = left;
    }
}

static void note_overview(struct runner *runner, const struct batch *batch) {
    uint64_t open[SEVERITY_CRITICAL + 1] = {0};
    bool counts = batch->verdicts.count > 0 || !runner->overview.counted;
    if (counts)
        runner_tally_open(runner, open);
    overview_note(&runner->overview, batch, counts ? open : NULL);
    runner->overview.counted = true;
}

void runner_note_progress(struct runner *runner) {
    struct overview *overview = &runner->overview;
    const struct runner_source *holder =
        runner->holder < runner->sources.used ? runner_source_at(runner, runner->holder) : NULL;
    atomic_store_explicit(&overview->newest_ns, runner->state.newest_ns, memory_order_relaxed);
    atomic_store_explicit(&overview->due_count, runner->state.due_count, memory_order_relaxed);
    atomic_store_explicit(&overview->holder, holder == NULL ? STRING_NONE : holder->path,
                          memory_order_relaxed);
    atomic_store_explicit(&overview->source_count, table_live(&runner->sources),
                          memory_order_relaxed);
}

void runner_pass(struct runner *runner, struct batch *batch) {
    assert(lock_is_held(&runner->lock));
    assert(batch->arena == NULL);
    arena_reset(&runner->arena);
    batch->arena = &runner->arena;
    batch->ordered = runner->once;
    batch->newest_ns = runner->state.now_ns;
    batch->names = &runner->names;
    batch->taken = runner->taken;
    if (runner->taps.count > 0)
        tap_set_note(&runner->taps, TAP_ENTRY, batch, 0);
    if (runner->once) // folders are compared with all that was named (feed_knows_node)
        node_names_learn_hosts(&runner->names, batch);
    node_names_apply(&runner->names, batch);
    if (runner->once && (batch->kinds & (1u << EVENT_GPU_SAMPLE | 1u << EVENT_AER_COUNTERS)) != 0)
        zone_evidence_note(&runner->zones, batch);
    atomic_fetch_add_explicit(&runner->consumed, batch->event_count, memory_order_relaxed);
    pass_stages(runner, batch);
    if (!runner->once)
        overview_learn(&runner->overview, batch);
    for (uint32_t i = 0; i < runner->sender_count; i++)
        sender_recall(runner->senders[i], batch);
    batch_drop_unchanged(batch);
    node_names_show(&runner->names, batch);
    for (uint32_t i = 0; i < batch->verdicts.count; i++) {
        verdict_shorten(&batch->verdicts.items[i], batch->arena);
        batch_mark_incomplete(batch, &batch->verdicts.items[i]);
        if (!batch->verdicts.items[i].unchanged)
            count_verdict(runner, &batch->verdicts.items[i]);
    }
    if (runner->taps.count > 0)
        tap_set_note(&runner->taps, TAP_OUT, batch, 0);
    if (!runner->once && batch->evaluate)
        note_overview(runner, batch);
    if (runner->once && batch->last)
        keep_titles(runner, batch);
    for (uint32_t i = 0; i < runner->sender_count; i++)
        sender_consume(runner->senders[i], batch);
}

static void pass_events(struct runner *runner, const struct delivery *delivery, uint32_t from,
                        uint32_t until) {
    assert(from <= until && until <= delivery->count);
    for (uint32_t at = from; at < until; at += runner->batch_size) {
        uint32_t left = until - at;
        struct batch batch = {.kinds = delivery->kinds,
                              .events = delivery->events + at,
                              .event_count = left < runner->batch_size ? left : runner->batch_size};
        runner_pass(runner, &batch);
    }
}

// What the delivery says of its sources.
static void note_sources(struct runner *runner, const struct delivery *delivery,
                         const uint32_t *rows) {
    for (uint32_t i = 0; i < delivery->touched_count; i++) {
        const struct source *source = delivery->touched[i];
        uint64_t newest = source_times_newest(&source->times);
        if (newest > runner->state.newest_ns)
            runner->state.newest_ns = newest;
        struct source_clock *clock = watch_clock(&runner->watch, rows[i]);
        source_times_merge(&clock->times, &source->times, runner_max_jump(runner));
        uint64_t events = source->figures.accepted;
        clock->offset.events = events < UINT32_MAX ? (uint32_t)events : UINT32_MAX;
        if (runner->once)
            continue;
        struct runner_source *row = runner_source_at(runner, rows[i]);
        row->position = *source_delivered(source);
        row->at_end = source->caught_up;
        // Records that are read once more, since others were held, were told before.
        if (source->reached.number > row->told)
            row->told = source->reached.number;
        if (newest == 0)
            continue;
        row->last_seen_ns = delivery->begun_ns;
        row->left = 0;
        if (newest > row->newest_ns)
            row->newest_ns = newest;
    }
    runner->changed = true;
}

void runner_consume(struct runner *runner, const struct delivery *delivery, const uint32_t *rows) {
    assert(runner->magic == RUNNER_MAGIC);
    assert(lock_is_held(&runner->lock));
    uint32_t first = delivery->count;
    if (!runner->once) {
        first = runner_note_moments(runner, delivery->events, delivery->count, delivery->turned);
        pass_events(runner, delivery, 0, first);
    }
    note_sources(runner, delivery, rows);
    if (delivery->count == 0)
        return;
    runner->state.idle_judged = runner->quiet_judged = false;
    runner->state.rest_due = RUNNER_ACTIVE;
    if (runner->once) {
        pass_events(runner, delivery, 0, delivery->count);
    } else if (first < delivery->count) {
        (void)runner_advance(runner, delivery->begun_ns);
        (void)runner_note_moments(runner, delivery->events + first, delivery->count - first, false);
        pass_events(runner, delivery, first, delivery->count);
    }
    runner_note_progress(runner);
}

bool runner_is_full(const struct runner *runner) {
    assert(runner->magic == RUNNER_MAGIC);
    for (uint32_t i = 0; i < runner->sender_count; i++)
        if (sender_is_full(runner->senders[i]))
            return true;
    return false;
}

bool runner_admits(const struct runner *runner) {
    assert(runner->magic == RUNNER_MAGIC);
    for (uint32_t i = 0; i < runner->stage_count; i++) {
        const struct runner_stage *stage = &runner->stages[i];
        if (stage->type->processor.admits != NULL &&
            !stage->type->processor.admits(stage->instance))
            return false;
    }
    return true;
}

uint64_t runner_latest_ns(const struct runner *runner) {
    assert(runner->magic == RUNNER_MAGIC && runner->once);
    assert(lock_is_held(&runner->lock));
    return zone_latest_ns(&runner->watch.clocks);
}

bool runner_may_settle_zone(struct runner *runner) {
    assert(runner->magic == RUNNER_MAGIC && runner->once);
    assert(lock_is_held(&runner->lock));
    return zone_may_settle(&runner->zones, &runner->watch.clocks);
}

int32_t runner_settle_zone(struct runner *runner, struct slice path,
                           const struct local_times *times) {
    assert(runner->magic == RUNNER_MAGIC && runner->once);
    assert(lock_is_held(&runner->lock));
    return watch_settle_zone(&runner->watch, &runner->zones, &runner->names, path, times);
}
