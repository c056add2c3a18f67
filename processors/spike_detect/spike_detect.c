// SPDX-License-Identifier: Apache-2.0
// Finds where each rank's memory begins to grow: the first window of growth that reaches
// max(min_growth, min_ratio of its highest use), as stormlog's cross-rank analysis has it, and the
// first such window of the job's generation that did not fall back, which is what people mean by a
// leak. Cost: amortised constant a sample (growth_scan.h). Memory: one row of scans a rank.
#include "pipeline/component/component.h"

#include "base/memory.h"
#include "base/sort.h"
#include "base/table/table.h"
#include "base/workers.h"
#include "pipeline/model/series.h"
#include "processors/spike_detect/low_steps.h"

#include <assert.h>

enum { STEPS_A_THRESHOLD = 8 };
// A piece of the work is worth another thread from so many ranks, or new samples, on.
enum { PIECE_WEIGHT = 16384, RANK_WEIGHT = 16 };

struct spike_detect_config {
    struct byte_size min_growth;
    double min_ratio;
};

// Row i of the table belongs to slot i of rank_group.
struct rank_scans {
    bool begun;
    uint32_t revision;
    uint32_t generation;
    uint64_t generation_ns;
    int64_t threshold_bytes;
    struct first_scan first;
    struct first_scan first_of_generation;
    struct kept_scan kept;
    struct low_steps lows;
};

// What was found in a job, kept from one evaluation to the next.
struct job_spikes {
    struct rank_spike *spikes; // at the places of the job's ranks
    uint8_t *found;            // enum spike_found
    uint32_t count, capacity;
    // On the generation's aligned clock: as long as the common end is behind `after_ns` and not
    // behind `until_ns`, the answers of ranks that did not change stand.
    __int128 after_ns, until_ns;
};

// No moment on any clock is before or behind these.
static const __int128 NO_MOMENT_BEFORE = -((__int128)1 << 100);
static const __int128 NO_MOMENT_BEHIND = (__int128)1 << 100;

// Of one evaluation: see struct job_spikes.
struct validity {
    uint32_t evaluation;
    __int128 after_ns, until_ns;
};

// What a piece leaves to be put together by one thread.
struct piece_found {
    struct low_list lows;
    uint32_t *edited; // items whose lows are still to be written
    uint32_t edited_count, edited_capacity;
    struct validity *valid; // by evaluation that it has ranks of
    uint32_t valid_count, valid_capacity;
};

struct spike_detect {
    struct table scans;
    struct table lows;
    struct spike_detect_config config;
    // Not state: after a restart all ranks count as changed.
    struct job_spikes *jobs; // by slot
    uint32_t job_capacity;
    struct piece_found found[PIECES_MAX]; // scratch, by piece
    struct workers *workers;
};

static const struct row_type SCANS = ROW_TYPE(struct rank_scans, 64);
static const struct row_type LOWS = ROW_TYPE(struct low_step, 256);

// Row i of the scans belongs to slot i, and rows hold no pointers.
static const struct state_row STATE[] = {
    STATE_ROWS(struct spike_detect, scans, "spike_detect.scans", SCANS),
    STATE_ROWS(struct spike_detect, lows, "spike_detect.lows", LOWS),
};

static const struct option OPTIONS[] = {
    OPTION(struct spike_detect_config, min_growth, OPTION_SIZE, .default_value = "64MiB", .min = 1,
           .max = 1099511627776.0, .help = "growth below this is never a spike"),
    OPTION(struct spike_detect_config, min_ratio, OPTION_RATIO, .default_value = "0.10", .max = 1,
           .help = "growth below this share of the rank's highest use is no spike"),
};

static enum status spike_detect_start(void *instance, const void *config,
                                      const struct component_context *context,
                                      struct error *error) {
    struct spike_detect *self = instance;
    (void)error;
    self->config = *(const struct spike_detect_config *)config;
    self->workers = context->workers;
    return STATUS_OK;
}

static void job_spikes_release(struct job_spikes *job) {
    memory_give(job->spikes);
    memory_give(job->found);
    *job = (struct job_spikes){0};
}

static void spike_detect_stop(void *instance) {
    struct spike_detect *self = instance;
    for (uint32_t i = 0; i < self->job_capacity; i++)
        job_spikes_release(&self->jobs[i]);
    memory_give(self->jobs);
    for (uint32_t i = 0; i < PIECES_MAX; i++) {
        memory_give(self->found[i].lows.items);
        memory_give(self->found[i].edited);
        memory_give(self->found[i].valid);
    }
    self->jobs = NULL;
    self->job_capacity = 0;
    memset(self->found, 0, sizeof self->found);
}

// A plain IEEE product, truncated, as the reference computes it.
static int64_t threshold_of(const struct spike_detect *self, int64_t max_used_bytes) {
    double share = (double)max_used_bytes * self->config.min_ratio;
    int64_t ratio_bytes = share >= 0x1p63 ? INT64_MAX : (int64_t)share;
    int64_t least_bytes = (int64_t)self->config.min_growth.bytes;
    return ratio_bytes > least_bytes ? ratio_bytes : least_bytes;
}

// Starts again what no longer stands: after a late sample everything, in a new generation its own.
// Returns whether the lows that stand in the table are void.
static bool begin_scans(struct rank_scans *scans, const struct evaluation *evaluation,
                        const struct rank_view *view) {
    bool void_all = !scans->begun || scans->revision != view->series->revision;
    if (void_all)
        first_scan_begin(&scans->first, series_begin(view->series));
    bool void_own = void_all || scans->generation != evaluation->generation ||
                    scans->generation_ns != view->generation_ns;
    if (void_own) {
        struct series_cursor at = series_begin(view->series);
        if (evaluation->generation > 0)
            at = series_seek(evaluation->store, view->series, view->generation_ns);
        first_scan_begin(&scans->first_of_generation, at);
        kept_scan_begin(&scans->kept, at);
        low_steps_restart(&scans->lows, at);
    }
    if (void_all)
        scans->threshold_bytes = 0;
    scans->begun = true;
    scans->revision = view->series->revision;
    scans->generation = evaluation->generation;
    scans->generation_ns = view->generation_ns;
    return void_own;
}

static int compare_moments(const void *left, const void *right) {
    return COMPARE(*(const __int128 *)left, *(const __int128 *)right);
}

static __int128 end_of(const struct evaluation *evaluation, uint32_t place) {
    return evaluation->ranks[place].last_ns - evaluation->alignment[place].generation_offset_ns;
}

// Where moments are centuries apart.
static __int128 common_end_of_any(const struct evaluation *evaluation, struct arena *arena) {
    __int128 *ends = arena_take(arena, (evaluation->rank_count + 1) * sizeof *ends);
    uint32_t count = 0;
    for (uint32_t i = 0; i < evaluation->rank_count; i++)
        if (evaluation->ranks[i].in_generation)
            ends[count++] = end_of(evaluation, i);
    assert(count > 0);
    sort_stable(ends, count, sizeof *ends, arena, compare_moments);
    return ends[(count - 1) / 2];
}

// Up to when most ranks were heard, on the generation's aligned clock: what one rank did after the
// others fell silent cannot be compared.
static __int128 common_end(const struct evaluation *evaluation, struct arena *arena) {
    int64_t *ends = arena_take(arena, (evaluation->rank_count + 1) * sizeof *ends);
    uint32_t count = 0;
    __int128 first_ns = 0;
    for (uint32_t i = 0; i < evaluation->rank_count; i++) {
        if (!evaluation->ranks[i].in_generation)
            continue;
        __int128 end_ns = end_of(evaluation, i);
        first_ns = count == 0 ? end_ns : first_ns;
        __int128 later_ns = end_ns - first_ns;
        if (later_ns != (int64_t)later_ns)
            return common_end_of_any(evaluation, arena);
        ends[count++] = (int64_t)later_ns;
    }
    return count == 0 ? 0 : first_ns + select_i64(ends, count, (count - 1) / 2);
}

// -- one rank -----------------------------------------------------------------------------------

// A rank that is looked at.
struct item {
    uint32_t evaluation, place;
    struct low_edit edit;
};

struct task {
    struct spike_detect *self;
    const struct evaluation *evaluations;
    const __int128 *end_ns; // by evaluation
    struct item *items;
    uint32_t item_count, pieces;
    uint64_t weight;
};

static void narrow(struct validity *valid, const struct low_answer *answer, __int128 offset_ns) {
    if (answer->after_ns > 0 && answer->after_ns - offset_ns > valid->after_ns)
        valid->after_ns = answer->after_ns - offset_ns;
    if (answer->until_ns < UINT64_MAX && answer->until_ns - offset_ns < valid->until_ns)
        valid->until_ns = answer->until_ns - offset_ns;
}

// False when the lows are still to be written.
static bool detect_creep(const struct task *task, struct item *item, struct rank_scans *scans,
                         const struct growth_source *source, struct piece_found *found,
                         struct rank_spike *out) {
    const struct table *table = &task->self->lows;
    low_steps_read(&scans->lows, table, source, scans->threshold_bytes / STEPS_A_THRESHOLD,
                   &item->edit, &found->lows);
    const struct evaluation *evaluation = &task->evaluations[item->evaluation];
    __int128 offset_ns = evaluation->alignment[item->place].generation_offset_ns;
    __int128 end_ns = task->end_ns[item->evaluation] + offset_ns;
    uint64_t end = end_ns < 0 ? 0 : end_ns > UINT64_MAX ? UINT64_MAX : (uint64_t)end_ns;
    struct low_answer answer;
    out->creep =
        low_steps_creep(&item->edit, &found->lows, table, end, scans->threshold_bytes, &answer);
    out->low_growth_bytes = answer.growth_bytes;
    narrow(&found->valid[found->valid_count - 1], &answer, offset_ns);
    return low_steps_replace(&scans->lows, table, &item->edit, &found->lows);
}

// False when its lows are still to be written.
static bool detect_rank(const struct task *task, struct item *item, struct piece_found *found,
                        struct rank_spike *out) {
    struct spike_detect *self = task->self;
    const struct evaluation *evaluation = &task->evaluations[item->evaluation];
    const struct rank_view *view = &evaluation->ranks[item->place];
    struct rank_scans *scans = table_row(&self->scans, view->slot);
    bool restarted = begin_scans(scans, evaluation, view);
    int64_t threshold = threshold_of(self, view->max_used_bytes);
    if (threshold < scans->threshold_bytes)
        threshold = scans->threshold_bytes;
    assert(threshold > 0);
    scans->threshold_bytes = threshold;
    struct growth_source source = {evaluation->store, view->series, evaluation->as_of_ns, false};
    // The verdict's answers are those of the summary as far as both read the same.
    bool alike = evaluation->generation == 0 && !view->series->has_repeats;
    bool together = alike && !scans->first.found && kept_scan_is_at(&scans->kept, &scans->first);
    first_scan_advance(&scans->first, &source, threshold);
    item->edit = (struct low_edit){.kept = restarted ? TABLE_NO_ROW : scans->lows.newest};
    out->threshold_bytes = threshold;
    out->first = first_scan_spike(&scans->first);
    out->first_of_generation = out->kept = out->creep = (struct spike){0};
    out->low_growth_bytes = 0;
    if (!view->in_generation)
        return item->edit.kept == scans->lows.newest;
    source.distinct = true;
    if (alike) {
        out->first_of_generation = out->first;
        if (together)
            kept_scan_follow(&scans->kept, &scans->first);
    } else {
        first_scan_advance(&scans->first_of_generation, &source, threshold);
        out->first_of_generation = first_scan_spike(&scans->first_of_generation);
    }
    kept_scan_advance(&scans->kept, &source, threshold);
    if (kept_scan_excess(&scans->kept) >= threshold / 2)
        out->kept = kept_scan_spike(&scans->kept);
    return detect_creep(task, item, scans, &source, found, out);
}

static void detect(const struct task *task, uint32_t number, struct piece_found *found) {
    struct item *item = &task->items[number];
    const struct evaluation *evaluation = &task->evaluations[item->evaluation];
    struct job_spikes *job = &task->self->jobs[evaluation->job_slot];
    struct rank_spike *out = &job->spikes[item->place];
    if (found->valid_count == 0 ||
        found->valid[found->valid_count - 1].evaluation != item->evaluation) {
        found->valid = memory_room(found->valid, &found->valid_capacity, found->valid_count,
                                   sizeof *found->valid);
        found->valid[found->valid_count++] =
            (struct validity){item->evaluation, NO_MOMENT_BEFORE, NO_MOMENT_BEHIND};
    }
    if (!detect_rank(task, item, found, out)) {
        found->edited = memory_room(found->edited, &found->edited_capacity, found->edited_count,
                                    sizeof *found->edited);
        found->edited[found->edited_count++] = number;
    }
    job->found[item->place] =
        (uint8_t)((out->first.found ? FOUND_FIRST : 0) |
                  (out->first_of_generation.found ? FOUND_FIRST_OF_GENERATION : 0) |
                  (out->kept.found ? FOUND_KEPT : 0) | (out->creep.found ? FOUND_CREEP : 0));
}

static struct rank_scans *scans_of(const struct task *task, const struct item *item) {
    return table_row(&task->self->scans,
                     task->evaluations[item->evaluation].ranks[item->place].slot);
}

// Asks the processor to fetch what a rank in which nothing was found needs, in two steps: then its
// newest low.
static void prefetch_rank(const struct task *task, const struct item *item) {
    const struct evaluation *evaluation = &task->evaluations[item->evaluation];
    const char *scans = (const char *)scans_of(task, item);
    series_prefetch(evaluation->store, evaluation->ranks[item->place].series);
    for (size_t i = 0; i < offsetof(struct rank_scans, first_of_generation); i += 64)
        __builtin_prefetch(scans + i, 1);
    for (size_t i = offsetof(struct rank_scans, kept);
         i <= offsetof(struct rank_scans, kept.crossing) + 63; i += 64)
        __builtin_prefetch(scans + i, 1);
    __builtin_prefetch(scans + offsetof(struct rank_scans, lows), 1);
}

static void prefetch_low(const struct task *task, const struct item *item) {
    const struct evaluation *evaluation = &task->evaluations[item->evaluation];
    series_prefetch_before(evaluation->store, evaluation->ranks[item->place].series);
    uint32_t newest = scans_of(task, item)->lows.newest;
    if (newest != TABLE_NO_ROW)
        __builtin_prefetch(table_row(&task->self->lows, newest));
}

static void detect_piece(void *context, uint32_t piece, uint32_t worker) {
    const struct task *task = context;
    (void)worker;
    struct piece_found *found = &task->self->found[piece];
    uint32_t end = piece_begin(task->item_count, task->pieces, piece + 1);
    found->lows.count = found->edited_count = found->valid_count = 0;
    for (uint32_t i = piece_begin(task->item_count, task->pieces, piece); i < end; i++) {
        if (i + 2 * SERIES_AHEAD < end)
            prefetch_rank(task, &task->items[i + 2 * SERIES_AHEAD]);
        if (i + SERIES_AHEAD < end)
            prefetch_low(task, &task->items[i + SERIES_AHEAD]);
        detect(task, i, found);
    }
}

// -- an evaluation ------------------------------------------------------------------------------

static struct job_spikes *job_spikes_of(struct spike_detect *self,
                                        const struct evaluation *evaluation) {
    uint32_t slot = evaluation->job_slot;
    while (slot >= self->job_capacity) {
        uint32_t before = self->job_capacity;
        self->jobs = memory_room(self->jobs, &self->job_capacity, before, sizeof *self->jobs);
        memset(self->jobs + before, 0, (self->job_capacity - before) * sizeof *self->jobs);
    }
    struct job_spikes *job = &self->jobs[slot];
    if (evaluation->rank_count > job->capacity) {
        job->capacity = evaluation->rank_count;
        job->spikes = memory_resize(job->spikes, job->capacity * sizeof *job->spikes);
        job->found = memory_resize(job->found, job->capacity * sizeof *job->found);
    }
    return job;
}

static void add_item(struct spike_detect *self, struct task *task, uint32_t evaluation,
                     uint32_t place) {
    uint32_t slot = task->evaluations[evaluation].ranks[place].slot;
    while (self->scans.used <= slot) {
        struct rank_scans *added = table_row(&self->scans, table_add(&self->scans));
        added->lows.newest = TABLE_NO_ROW;
    }
    task->items[task->item_count++] = (struct item){.evaluation = evaluation, .place = place};
}

// Which ranks of the evaluation are to be looked at.
static void add_items(struct spike_detect *self, struct task *task, uint32_t number,
                      __int128 end_ns) {
    const struct evaluation *evaluation = &task->evaluations[number];
    struct job_spikes *job = job_spikes_of(self, evaluation);
    bool all = evaluation->all_changed || job->count != evaluation->rank_count ||
               end_ns <= job->after_ns || end_ns > job->until_ns;
    job->count = evaluation->rank_count;
    if (all) {
        job->after_ns = NO_MOMENT_BEFORE;
        job->until_ns = NO_MOMENT_BEHIND;
    }
    uint32_t count = all ? evaluation->rank_count : evaluation->changed_count;
    for (uint32_t i = 0; i < count; i++)
        add_item(self, task, number, all ? i : evaluation->changed[i]);
    task->weight += (uint64_t)count * RANK_WEIGHT;
    for (uint32_t i = 0; evaluation->last && i < count; i++)
        task->weight += evaluation->ranks[all ? i : evaluation->changed[i]].sample_count;
}

// Puts together what the pieces found, in the order of the items.
static void take_results(struct spike_detect *self, const struct task *task) {
    for (uint32_t piece = 0; piece < task->pieces; piece++) {
        const struct piece_found *found = &self->found[piece];
        for (uint32_t i = 0; i < found->valid_count; i++) {
            const struct validity *valid = &found->valid[i];
            struct job_spikes *job = &self->jobs[task->evaluations[valid->evaluation].job_slot];
            if (valid->after_ns > job->after_ns)
                job->after_ns = valid->after_ns;
            if (valid->until_ns < job->until_ns)
                job->until_ns = valid->until_ns;
        }
        for (uint32_t i = 0; i < found->edited_count; i++) {
            const struct item *item = &task->items[found->edited[i]];
            low_steps_write(&scans_of(task, item)->lows, &self->lows, &item->edit, &found->lows);
        }
    }
}

static void forget(struct spike_detect *self, const struct forgotten *forgotten) {
    if (forgotten->everything) {
        table_release(&self->scans);
        table_release(&self->lows);
    }
    for (uint32_t i = 0; i < forgotten->slot_count; i++) {
        if (forgotten->slots[i] >= self->scans.used)
            continue;
        struct rank_scans *scans = table_row(&self->scans, forgotten->slots[i]);
        low_steps_drop(&scans->lows, &self->lows);
        *scans = (struct rank_scans){.lows = scans->lows};
    }
    for (uint32_t i = 0; i < forgotten->job_count; i++) {
        uint32_t slot = forgotten->jobs[i].slot;
        if (slot >= self->job_capacity)
            continue;
        job_spikes_release(&self->jobs[slot]);
    }
}

static void evaluate(struct spike_detect *self, struct batch *batch) {
    uint32_t count = batch->evaluation_count, ranks = 0;
    for (uint32_t i = 0; i < count; i++)
        ranks += batch->evaluations[i].rank_count;
    __int128 *end_ns = arena_take(batch->arena, (count + 1) * sizeof *end_ns);
    struct task task = {.self = self, .evaluations = batch->evaluations, .end_ns = end_ns};
    task.items = arena_take(batch->arena, (ranks + 1) * sizeof *task.items);
    for (uint32_t i = 0; i < count; i++) {
        assert(batch->evaluations[i].alignment != NULL || batch->evaluations[i].rank_count == 0);
        end_ns[i] = common_end(&batch->evaluations[i], batch->arena);
        add_items(self, &task, i, end_ns[i]);
    }
    task.pieces = workers_pieces(self->workers, task.weight, PIECE_WEIGHT, task.item_count);
    workers_run(self->workers, task.pieces, detect_piece, &task);
    take_results(self, &task);
    for (uint32_t i = 0; i < count; i++) {
        batch->evaluations[i].spikes = self->jobs[batch->evaluations[i].job_slot].spikes;
        batch->evaluations[i].found = self->jobs[batch->evaluations[i].job_slot].found;
    }
}

static void spike_detect_consume(void *instance, struct batch *batch) {
    struct spike_detect *self = instance;
    if (batch->forgotten != NULL)
        forget(self, batch->forgotten);
    if (batch->evaluation_count > 0)
        evaluate(self, batch);
}

const struct component_type processor_spike_detect = {
    .name = "spike_detect",
    .summary = "Finds where each rank's memory begins to grow.",
    .kind = COMPONENT_PROCESSOR,
    .stability = STABILITY_BETA,
    .presets = 1u << PRESET_MEMORY | 1u << PRESET_ALL,
    .options = OPTIONS,
    .option_count = OPTION_COUNT(OPTIONS),
    .config_size = sizeof(struct spike_detect_config),
    .instance_size = sizeof(struct spike_detect),
    .needs = FACT_SERIES | FACT_ALIGNMENT,
    .gives = FACT_SPIKES,
    .start = spike_detect_start,
    .stop = spike_detect_stop,
    .state_rows = STATE,
    .state_row_count = STATE_ROW_COUNT(STATE),
    .processor = {.consume = spike_detect_consume},
};
