// SPDX-License-Identifier: Apache-2.0
// Shows trees of spans and phases as time series.
//
// Each evaluation shows all trees, so a tree's samples are made anew each time; what has no room is
// summed into one series a family, which is also made anew. Spans are told by the last part of
// their name with numbers taken out, so that steps are one series. Of a tree with more than
// SPANS_ASKED_MAX spans only the roots are told. Cost: what it takes to ask every span once.
#include "exporters/prometheus/board_parts.h"
#include "exporters/report/span_outline.h"
#include "exporters/report/span_words.h"
#include "pipeline/model/span_event.h"

#include "base/memory.h"
#include "base/sort.h"
#include "base/text/number.h"

#include <stdlib.h>

enum { SPANS_ASKED_MAX = 20000, LAGGARDS_SHOWN = 3, LABELS_MAX = 3 };

enum span_family {
    FAMILY_BUSY,
    FAMILY_BYTES,
    FAMILY_FOLDED,
    FAMILY_IDLE,
    FAMILY_PHASE_BUSY,
    FAMILY_PHASE_IDLE,
    FAMILY_PHASE_LAG,
    FAMILY_PHASE_OPENINGS,
    FAMILY_PHASE_INSIDE,
    FAMILY_PHASE_THREADS,
    FAMILY_REFUSED,
    FAMILY_RUNNING,
    FAMILY_TASKS,
    FAMILY_THREADS,
    FAMILY_COUNT
};
static_assert((int)FAMILY_COUNT == (int)BOARD_SPAN_FAMILIES, "board.h");

enum { SERIES_OF_NAME = 5, SERIES_OF_PHASE = 5 };

struct family {
    const char *name, *help;
    const char *label; // behind that of the stream or job; NULL: none
};

// Sorted by name; one that ends in _total is a counter.
static const struct family FAMILIES[FAMILY_COUNT] = {
    {"culprit_span_busy_seconds", "What the actions of the tasks in spans of this name took.",
     "span"},
    {"culprit_span_bytes",
     "Bytes that the tasks in spans of this name left; falls when finished spans are folded.",
     "span"},
    {"culprit_span_folded_total", "Finished spans that were taken up into their parents' totals.",
     NULL},
    {"culprit_span_idle_seconds",
     "Thread time of spans of this name that no metric of their workers explains.", "span"},
    {"culprit_span_phase_busy_seconds_total", "Time that the ranks of a job were inside a phase.",
     "phase"},
    {"culprit_span_phase_idle_seconds",
     "Thread time of a phase in which ranks waited or were elsewhere.", "phase"},
    {"culprit_span_phase_lag_seconds",
     "How much longer than the median of the ranks this one was in the phase; those that lag most.",
     "phase"},
    {"culprit_span_phase_openings_total", "How often the ranks of a job entered a phase together.",
     "phase"},
    {"culprit_span_phase_ranks_inside", "Ranks that are in the phase now.", "phase"},
    {"culprit_span_phase_thread_seconds_total",
     "Thread time of a phase, from the first rank that enters to the last that leaves.", "phase"},
    {"culprit_span_refused_total", "Lines of a stream of spans, and entries, that were refused.",
     "code"},
    {"culprit_span_running", "Spans of this name that are not done.", "span"},
    {"culprit_span_tasks", "Tasks of all spans of a stream, by state.", "state"},
    {"culprit_span_thread_seconds",
     "Thread time that spans of this name had; falls when finished spans are folded.", "span"},
};

// -- making samples -------------------------------------------------------------------------------

struct maker {
    struct board *board;
    struct span_block *block;
    uint32_t room; // samples that the block may still have
};

static void put_of_rank(struct maker *maker, enum span_family family, string_id text, int32_t rank,
                        double value) {
    assert(family < FAMILY_COUNT);
    struct span_block *block = maker->block;
    if (maker->room == 0) {
        block->folded[family] += value;
        block->has_folded |= 1u << family;
        maker->board->overflow_count++;
        return;
    }
    maker->room--;
    block->samples = memory_room(block->samples, &block->sample_capacity, block->sample_count,
                                 sizeof *block->samples);
    block->samples[block->sample_count++] =
        (struct span_sample){.family = family, .text = text, .rank = rank, .value = value};
}

static void put(struct maker *maker, enum span_family family, string_id text, double value) {
    put_of_rank(maker, family, text, RANK_NONE, value);
}

// -- the tree of a stream -------------------------------------------------------------------------

// Spans of one name, or one of them until they are joined.
struct name_row {
    struct slice stem;
    uint32_t span;
    uint32_t order;
    uint32_t first, count; // of its spans, once joined
    uint64_t running;
    double thread_s, idle_s, busy_s, nbytes; // sums
};

static int stem_compare(const void *left, const void *right) {
    const struct name_row *a = left, *b = right;
    return COMPARE_KEYS(slice_compare(a->stem, b->stem), COMPARE(a->order, b->order));
}

static int time_compare(const void *left, const void *right) {
    const struct name_row *a = left, *b = right;
    return COMPARE_KEYS(COMPARE(b->thread_s, a->thread_s), slice_compare(a->stem, b->stem));
}

static struct name_row *rows_gather(const struct span_report *report, struct arena *work,
                                    uint32_t *count) {
    struct arena scratch;
    struct name_row *rows = NULL;
    uint32_t capacity = 0, at = 0, span;
    bool roots = report->span_count > SPANS_ASKED_MAX;
    arena_init(&scratch, 1 << 16);
    *count = 0;
    while (roots ? report->ask->next_root(report->tree, &at, &span)
                 : report->ask->next(report->tree, &at, &span)) {
        struct span_answer answer;
        arena_reset(&scratch);
        report->ask->answer(report->tree, span, report->now_s, &scratch, &answer);
        rows = memory_room(rows, &capacity, *count, sizeof *rows);
        struct slice name =
            answer.name_count > 0 ? answer.name[answer.name_count - 1] : (struct slice){"", 0};
        rows[*count] = (struct name_row){
            .stem = span_stem(work, name.size > 0 ? name : SLICE("(no name)")),
            .span = span,
            .order = *count,
            .running = !answer.done,
            .thread_s = answer.active_cpu_s,
            .idle_s = answer.idle_s,
            .busy_s = answer.duration_s,
            .nbytes = (double)answer.nbytes_total,
        };
        ++*count;
    }
    arena_release(&scratch);
    return rows;
}

// Rows of one stem become one; spans[first..first + count) are its spans.
static uint32_t rows_join(struct name_row *rows, uint32_t count, uint32_t *spans) {
    assert(count == 0 || (rows != NULL && spans != NULL));
    uint32_t kept = 0;
    if (count > 1)
        qsort(rows, count, sizeof *rows, stem_compare);
    for (uint32_t i = 0; i < count; i++) {
        spans[i] = rows[i].span;
        struct name_row *into = kept > 0 ? &rows[kept - 1] : NULL;
        if (into == NULL || !slice_equal(into->stem, rows[i].stem)) {
            rows[kept] = rows[i];
            rows[kept].first = i;
            rows[kept].count = 1;
            kept++;
            continue;
        }
        into->count++;
        into->running += rows[i].running;
        into->thread_s += rows[i].thread_s;
        into->idle_s += rows[i].idle_s;
        into->busy_s += rows[i].busy_s;
        into->nbytes += rows[i].nbytes;
    }
    return kept;
}

static void put_name(struct maker *maker, const struct name_row *row, string_id name) {
    put(maker, FAMILY_BUSY, name, row->busy_s);
    put(maker, FAMILY_BYTES, name, row->nbytes);
    put(maker, FAMILY_IDLE, name, row->idle_s);
    put(maker, FAMILY_RUNNING, name, (double)row->running);
    put(maker, FAMILY_THREADS, name, row->thread_s);
}

// Together they had less thread time than by themselves, where they overlapped.
static void row_merge(const struct span_report *report, const uint32_t *spans,
                      struct name_row *row) {
    assert(row->count > 0);
    if (row->count < 2)
        return;
    struct arena scratch;
    struct span_answer answer;
    arena_init(&scratch, 1 << 16);
    report->ask->merge(report->tree, spans + row->first, row->count, report->now_s, &scratch,
                       &answer);
    row->thread_s = answer.active_cpu_s;
    row->idle_s = answer.idle_s;
    row->busy_s = answer.duration_s;
    row->nbytes = (double)answer.nbytes_total;
    arena_release(&scratch);
}

static void names_put(struct maker *maker, const struct span_report *report) {
    struct arena work;
    arena_init(&work, 1 << 16);
    uint32_t count;
    struct name_row *rows = rows_gather(report, &work, &count);
    uint32_t *spans = memory_take((count + 1) * sizeof *spans);
    count = rows_join(rows, count, spans);
    if (count > 1)
        qsort(rows, count, sizeof *rows, time_compare);
    for (uint32_t i = 0; i < count; i++) {
        if (maker->room < SERIES_OF_NAME)
            maker->room = 0; // whole rows only
        else
            row_merge(report, spans, &rows[i]);
        put_name(maker, &rows[i], maker->room == 0 ? STRING_NONE : board_label(rows[i].stem));
    }
    memory_give(spans);
    memory_give(rows);
    arena_release(&work);
}

static void tasks_put(struct maker *maker, const struct span_report *report) {
    uint64_t states[TASK_STATE_COUNT] = {0};
    struct arena scratch;
    uint32_t at = 0, root;
    arena_init(&scratch, 1 << 16);
    while (report->ask->next_root(report->tree, &at, &root)) {
        struct span_answer answer;
        arena_reset(&scratch);
        report->ask->answer(report->tree, root, report->now_s, &scratch, &answer);
        for (int i = 0; i < TASK_STATE_COUNT; i++)
            states[i] += answer.states[i];
    }
    arena_release(&scratch);
    for (int i = 0; i < TASK_STATE_COUNT; i++)
        put(maker, FAMILY_TASKS, board_label(slice_of(task_state_name((enum task_state)i))),
            (double)states[i]);
}

static void refusals_put(struct maker *maker, const struct span_report *report) {
    uint64_t counts[SPAN_REFUSAL_COUNT + 1] = {[SPAN_REFUSAL_COUNT] = report->refused_not_listed};
    for (uint32_t i = 0; i < report->refused_count; i++)
        counts[report->refused[i].refusal]++;
    for (int i = 0; i <= SPAN_REFUSAL_COUNT; i++) {
        const char *name =
            i < SPAN_REFUSAL_COUNT ? span_refusal_name((enum span_refusal)i) : "not-listed";
        if (counts[i] > 0)
            put(maker, FAMILY_REFUSED, board_label(slice_of(name)), (double)counts[i]);
    }
}

static void stream_put(struct maker *maker, const struct span_report *report) {
    put(maker, FAMILY_FOLDED, STRING_NONE, (double)report->folded);
    tasks_put(maker, report);
    refusals_put(maker, report);
    names_put(maker, report);
}

// -- the phases of a job --------------------------------------------------------------------------

static void phase_put(struct maker *maker, const struct span_phase *phase) {
    uint32_t laggards = span_laggards(phase, LAGGARDS_SHOWN), inside = 0;
    for (uint32_t i = 0; i < phase->rank_count; i++)
        inside += phase->ranks[i].inside;
    if (maker->room < SERIES_OF_PHASE + laggards)
        maker->room = 0;
    string_id label = maker->room == 0 ? STRING_NONE : board_label(phase->label);
    put(maker, FAMILY_PHASE_BUSY, label, phase->busy_s);
    put(maker, FAMILY_PHASE_IDLE, label, phase->idle_s);
    put(maker, FAMILY_PHASE_OPENINGS, label, (double)phase->openings);
    put(maker, FAMILY_PHASE_INSIDE, label, inside);
    put(maker, FAMILY_PHASE_THREADS, label, phase->thread_s);
    for (uint32_t i = 0; i < laggards; i++)
        put_of_rank(maker, FAMILY_PHASE_LAG, label, phase->ranks[i].rank, phase->ranks[i].lag_s);
}

static void phases_put(struct maker *maker, const struct span_report *report, struct arena *arena) {
    const struct span_phase **phases;
    uint32_t most = maker->room / SERIES_OF_PHASE;
    uint32_t count = span_phases_choose(report, most, arena, &phases);
    for (uint32_t i = 0; i < count; i++)
        phase_put(maker, phases[i]);
    maker->room = 0;
    for (uint32_t i = count; i < report->phase_count; i++)
        phase_put(maker, phases[i]); // behind the chosen ones stand the others
}

// -- blocks ---------------------------------------------------------------------------------------

static void block_clear(struct board *board, struct span_block *block) {
    assert(block->sample_count <= board->span_series_count);
    board_give_series(board, block->sample_count);
    board->span_series_count -= block->sample_count;
    block->sample_count = 0;
    block->has_folded = 0;
    memset(block->folded, 0, sizeof block->folded);
}

// The block of a report, made when new if `adds`; NULL: there is none.
static struct span_block *block_find(struct board *board, const struct span_report *report,
                                     bool adds) {
    string_id source = report->source.data == NULL ? STRING_NONE : board_label(report->source);
    string_id job = report->from_telemetry ? board_label_id(report->job) : STRING_NONE;
    for (uint32_t i = 0; i < board->span_block_count; i++) {
        struct span_block *block = &board->span_blocks[i];
        if (block->source == source && block->job == job)
            return block;
    }
    if (!adds || board->span_block_count == BOARD_SPAN_BLOCKS_MAX)
        return NULL;
    struct span_block *block = &board->span_blocks[board->span_block_count++];
    *block = (struct span_block){.source = source, .job = job};
    return block;
}

static bool is_over(const struct board *board, const struct span_block *block,
                    uint64_t monotonic_ns) {
    return monotonic_ns >= block->touched_ns &&
           monotonic_ns - block->touched_ns >= board->expiration_ns;
}

void board_spans_expire(struct board *board, uint64_t monotonic_ns) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < board->span_block_count; i++) {
        struct span_block *block = &board->span_blocks[i];
        if (is_over(board, block, monotonic_ns)) {
            block_clear(board, block);
            memory_give(block->samples);
            continue;
        }
        board->span_blocks[kept++] = *block;
    }
    board->span_block_count = kept;
}

void board_spans_forget(struct board *board, string_id job) {
    for (uint32_t i = 0; i < board->span_block_count; i++)
        if (board->span_blocks[i].telemetry && board->span_blocks[i].job == job)
            block_clear(board, &board->span_blocks[i]);
}

void board_spans_release(struct board *board) {
    for (uint32_t i = 0; i < board->span_block_count; i++)
        memory_give(board->span_blocks[i].samples);
    board->span_block_count = 0;
}

// A quarter of all at most, of what ranks leave of their three.
static uint32_t spans_room(const struct board *board) {
    uint32_t quarter = board->max_series / 4;
    uint32_t most = board->max_series - quarter;
    uint32_t others = board->series_count - board->span_series_count;
    uint32_t room = most > board->rank_series_count ? most - board->rank_series_count : 0;
    if (board->max_series - others < room)
        room = board->max_series - others;
    return room < quarter ? room : quarter;
}

static void report_put(struct board *board, const struct span_report *report, uint32_t share,
                       struct arena *arena, uint64_t monotonic_ns) {
    struct span_block *block = block_find(board, report, true);
    if (block == NULL) {
        board->overflow_count++;
        return;
    }
    block_clear(board, block);
    block->telemetry = report->from_telemetry;
    block->touched_ns = monotonic_ns;
    uint32_t left = spans_room(board) - board->span_series_count;
    struct maker maker = {.board = board, .block = block, .room = left < share ? left : share};
    if (report->from_telemetry)
        phases_put(&maker, report, arena);
    else
        stream_put(&maker, report);
    bool taken = board_take_series(board, block->sample_count);
    assert(taken);
    (void)taken;
    board->span_series_count += block->sample_count;
    assert(board->span_series_count <= board->series_count);
}

void board_spans(struct board *board, const struct batch *batch, uint64_t monotonic_ns) {
    uint32_t count = batch->spans.count;
    if (count == 0)
        return;
    // What these had is given back first, so that all have the same share.
    for (uint32_t i = 0; i < count; i++) {
        struct span_block *block = block_find(board, &batch->spans.items[i], false);
        if (block != NULL)
            block_clear(board, block);
    }
    uint32_t room = spans_room(board);
    uint32_t left = room > board->span_series_count ? room - board->span_series_count : 0;
    uint32_t share = left / (count < BOARD_SPAN_BLOCKS_MAX ? count : BOARD_SPAN_BLOCKS_MAX);
    for (uint32_t i = 0; i < count; i++)
        report_put(board, &batch->spans.items[i], share, batch->arena, monotonic_ns);
}

// -- writing --------------------------------------------------------------------------------------

static void family_begin(struct exposition *exposition, const struct family *family, bool *begun) {
    size_t size = strlen(family->name);
    bool is_total = size > 6 && strcmp(family->name + size - 6, "_total") == 0;
    if (!*begun)
        exposition_family(exposition, family->name, family->help,
                          is_total ? EXPOSITION_COUNTER : EXPOSITION_GAUGE);
    *begun = true;
}

static void sample_write(struct exposition *exposition, const struct family *family,
                         const struct span_block *block, const struct span_sample *sample) {
    char room[NUMBER_TEXT_MAX];
    uint32_t count = 1;
    struct exposition_label labels[LABELS_MAX] = {
        block->telemetry ? (struct exposition_label){"training_job", intern_slice(block->job)}
                         : (struct exposition_label){"source", intern_slice(block->source)}};
    if (family->label != NULL)
        labels[count++] = (struct exposition_label){family->label, intern_slice(sample->text)};
    if (sample->family == FAMILY_PHASE_LAG)
        labels[count++] = (struct exposition_label){"rank", number_text(sample->rank, room)};
    exposition_sample(exposition, labels, count, sample->value);
}

static void family_write(const struct board *board, struct exposition *exposition,
                         enum span_family number, uint64_t monotonic_ns) {
    const struct family *family = &FAMILIES[number];
    bool begun = false, folded = false;
    double sum = 0;
    for (uint32_t i = 0; i < board->span_block_count; i++) {
        const struct span_block *block = &board->span_blocks[i];
        if (is_over(board, block, monotonic_ns))
            continue;
        folded = folded || (block->has_folded & 1u << number) != 0;
        sum += block->folded[number];
        for (uint32_t j = 0; j < block->sample_count; j++) {
            if (block->samples[j].family != number)
                continue;
            family_begin(exposition, family, &begun);
            sample_write(exposition, family, block, &block->samples[j]);
        }
    }
    if (!folded)
        return;
    family_begin(exposition, family, &begun);
    struct exposition_label overflow = {"otel_metric_overflow", SLICE("true")};
    exposition_sample(exposition, &overflow, 1, sum);
}

static int block_compare(const void *left, const void *right) {
    const struct span_block *a = left, *b = right;
    return COMPARE_KEYS(slice_compare(intern_slice(a->source), intern_slice(b->source)),
                        slice_compare(intern_slice(a->job), intern_slice(b->job)));
}

void board_spans_expose(struct board *board, struct exposition *exposition, uint64_t monotonic_ns) {
    if (board->span_block_count > 1)
        qsort(board->span_blocks, board->span_block_count, sizeof *board->span_blocks,
              block_compare);
    for (int i = 0; i < FAMILY_COUNT; i++)
        family_write(board, exposition, (enum span_family)i, monotonic_ns);
}
