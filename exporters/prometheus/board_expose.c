// SPDX-License-Identifier: Apache-2.0
// Writes the board as metric families.
//
// Rows are sorted when some came or went since the last time, by text, ranks by number; each family
// is one walk. Verdicts with the same labels (of two generations of a job) are one series: the
// surer confidence, the earlier time. What was folded follows as one series a family: sums of what
// counts, else the worst of them. Cost: some 0.3 µs a series.
#include "exporters/prometheus/board.h"

#include "exporters/prometheus/board_parts.h"

#include "base/memory.h"
#include "base/sort.h"
#include "base/text/number.h"

#include <stdlib.h>

// -- order ---------------------------------------------------------------------------------------

static int compare_text(string_id a, string_id b) {
    return a == b ? 0 : slice_compare(intern_slice(a), intern_slice(b));
}

static int compare_texts(const string_id *a, const string_id *b, uint32_t count) {
    int order = 0;
    for (uint32_t i = 0; i < count && order == 0; i++)
        order = compare_text(a[i], b[i]);
    return order;
}

static int compare_jobs(const void *left, const void *right) {
    return compare_text((*(struct job_row *const *)left)->job,
                        (*(struct job_row *const *)right)->job);
}

static int compare_counters(const void *left, const void *right) {
    const struct counter_key *a = &(*(struct counter_row *const *)left)->key;
    const struct counter_key *b = &(*(struct counter_row *const *)right)->key;
    return COMPARE_KEYS(compare_texts((string_id[]){a->job, a->pattern, a->kind},
                                      (string_id[]){b->job, b->pattern, b->kind}, 3),
                        COMPARE(a->severity, b->severity));
}

// The first SUBJECT_TEXTS name the subject. Verdicts of one subject stand together, and among them
// those with the same labels.
enum { SUBJECT_TEXTS = 4, OPEN_TEXTS = 6 };

static int compare_open_texts(const struct open_row *a, const struct open_row *b, uint32_t count) {
    return compare_texts((string_id[]){a->job, a->pattern, a->rank, a->node, a->kind, a->phase},
                         (string_id[]){b->job, b->pattern, b->rank, b->node, b->kind, b->phase},
                         count);
}

static int compare_rows(const struct open_row *a, const struct open_row *b) {
    return COMPARE_KEYS(compare_open_texts(a, b, OPEN_TEXTS), COMPARE(a->severity, b->severity));
}

static int compare_open(const void *left, const void *right) {
    return compare_rows(*(struct open_row *const *)left, *(struct open_row *const *)right);
}

static int compare_ranks(const void *left, const void *right) {
    const struct rank_key *a = &(*(struct rank_row *const *)left)->key;
    const struct rank_key *b = &(*(struct rank_row *const *)right)->key;
    return COMPARE_KEYS(compare_text(a->job, b->job), COMPARE(a->rank, b->rank));
}

static int compare_patterns(const void *left, const void *right) {
    return compare_text((*(struct pattern_row *const *)left)->pattern,
                        (*(struct pattern_row *const *)right)->pattern);
}

// Makes *sorted an array of all rows.
static void *sort_rows(const struct keyed_rows *rows, void *former,
                       int (*compare)(const void *, const void *)) {
    uint32_t count = keyed_rows_count(rows);
    void **sorted = memory_resize(former, (count + 1) * sizeof *sorted);
    uint32_t at = 0;
    for (uint32_t i = 0; i < count; i++)
        sorted[i] = keyed_rows_next(rows, &at);
    if (count > 1)
        qsort(sorted, count, sizeof *sorted, compare);
    assert(keyed_rows_next(rows, &at) == NULL);
    return sorted;
}

static void sort_board(struct board *board) {
    if (board->sorted)
        return;
    board->sorted_jobs = sort_rows(&board->jobs, board->sorted_jobs, compare_jobs);
    board->sorted_counters = sort_rows(&board->counters, board->sorted_counters, compare_counters);
    board->sorted_open = sort_rows(&board->open, board->sorted_open, compare_open);
    board->sorted_ranks = sort_rows(&board->ranks, board->sorted_ranks, compare_ranks);
    board->sorted_patterns = sort_rows(&board->patterns, board->sorted_patterns, compare_patterns);
    board->sorted = true;
}

// -- writing -------------------------------------------------------------------------------------

// One family at a time; its head is written before its first sample.
struct page {
    const struct board *board;
    struct exposition *exposition;
    uint64_t now_ns;
    const char *name, *help;
    enum exposition_type type;
    bool begun;
    string_id job; // asked for last
    bool job_gone, job_known;
};

static void family(struct page *page, const char *name, enum exposition_type type,
                   const char *help) {
    assert(name[0] != '\0' && help != NULL);
    page->name = name;
    page->help = help;
    page->type = type;
    page->begun = false;
}

static void begin(struct page *page) {
    assert(page->name != NULL);
    if (!page->begun)
        exposition_family(page->exposition, page->name, page->help, page->type);
    page->begun = true;
}

static void sample(struct page *page, const struct exposition_label *labels, uint32_t count,
                   double value) {
    begin(page);
    exposition_sample(page->exposition, labels, count, value);
}

static void sample_folded(struct page *page, double value) {
    struct exposition_label overflow = {"otel_metric_overflow", SLICE("true")};
    sample(page, &overflow, 1, value);
}

// Whether the job is over; rows come by job.
static bool gone(struct page *page, string_id name) {
    if (!page->job_known || page->job != name) {
        const struct job_row *job = keyed_rows_find(&page->board->jobs, &name);
        page->job = name;
        page->job_known = true;
        page->job_gone = job == NULL || board_job_expired(page->board, job, page->now_ns);
    }
    return page->job_gone;
}

static struct exposition_label text_label(const char *name, string_id text) {
    return (struct exposition_label){name, intern_slice(text)};
}

static struct exposition_label number_label(const char *name, int64_t number,
                                            char room[NUMBER_TEXT_MAX]) {
    return (struct exposition_label){name, number_text(number, room)};
}

static double seconds(uint64_t ns) {
    return exposition_quotient(ns, 1000000000);
}

static void expose_jobs(struct page *page) {
    const struct board *board = page->board;
    uint64_t folded = 0;
    family(page, "culprit_training_job_info", EXPOSITION_INFO, "Facts about a job being watched.");
    for (uint32_t i = 0; i < keyed_rows_count(&board->jobs); i++) {
        const struct job_row *job = board->sorted_jobs[i];
        if (!job->evaluated || gone(page, job->job))
            continue;
        folded += !job->admitted;
        if (!job->admitted)
            continue;
        char world_size[NUMBER_TEXT_MAX], generation[NUMBER_TEXT_MAX];
        struct exposition_label labels[] = {
            text_label("training_job", job->job),
            number_label("world_size", job->world_size, world_size),
            number_label("generation", job->generation, generation),
        };
        sample(page, labels, 3, 1);
    }
    if (folded > 0)
        sample_folded(page, (double)folded);
}

static void expose_counters(struct page *page) {
    assert(page->board->sorted);
    const struct board *board = page->board;
    family(page, "culprit_verdicts_total", EXPOSITION_COUNTER,
           "Verdicts that opened, by their severity then.");
    for (uint32_t i = 0; i < keyed_rows_count(&board->counters); i++) {
        const struct counter_row *row = board->sorted_counters[i];
        if (gone(page, row->key.job))
            continue;
        struct exposition_label labels[] = {
            text_label("training_job", row->key.job),
            text_label("pattern", row->key.pattern),
            text_label("kind", row->key.kind),
            {"severity", slice_of(severity_name((enum severity)row->key.severity))},
        };
        begin(page);
        exposition_sample_uint(page->exposition, labels, 4, row->count);
    }
    if (board->folded.verdicts > 0)
        sample_folded(page, (double)board->folded.verdicts);
}

static void expose_open(struct page *page) {
    assert(page->board->sorted);
    const struct board *board = page->board;
    const struct open_row *last = NULL;
    uint64_t folded = 0;
    family(page, "culprit_verdict_open", EXPOSITION_GAUGE,
           "Whether a verdict is open; the series ends when it is resolved.");
    for (uint32_t i = 0; i < keyed_rows_count(&board->open); i++) {
        const struct open_row *row = board->sorted_open[i];
        folded += !row->admitted;
        if (!row->admitted || (last != NULL && compare_rows(last, row) == 0))
            continue;
        last = row;
        struct exposition_label labels[] = {
            text_label("training_job", row->job),
            text_label("pattern", row->pattern),
            text_label("kind", row->kind),
            {"severity", slice_of(severity_name((enum severity)row->severity))},
            text_label("rank", row->rank),
            text_label("node", row->node),
            text_label("phase", row->phase),
        };
        sample(page, labels, 7, 1);
    }
    if (folded > 0)
        sample_folded(page, (double)folded);
}

static double confidence_of(const struct open_row *row) {
    return row->confidence / 100.0;
}

static double start_of(const struct open_row *row) {
    return seconds(row->start_ns);
}

// One figure of each subject: the largest of its verdicts', or the smallest.
static void expose_subjects(struct page *page, double (*figure_of)(const struct open_row *),
                            bool largest) {
    const struct board *board = page->board;
    uint32_t count = keyed_rows_count(&board->open);
    bool any_folded = false;
    double folded = 0;
    for (uint32_t i = 0; i < count;) {
        const struct open_row *subject = board->sorted_open[i];
        bool any = false;
        double best = 0;
        for (; i < count && compare_open_texts(subject, board->sorted_open[i], SUBJECT_TEXTS) == 0;
             i++) {
            const struct open_row *row = board->sorted_open[i];
            double figure = figure_of(row);
            double *into = row->admitted ? &best : &folded;
            bool *has = row->admitted ? &any : &any_folded;
            if (!*has || (figure > *into) == largest)
                *into = figure;
            *has = true;
        }
        struct exposition_label labels[] = {
            text_label("training_job", subject->job),
            text_label("pattern", subject->pattern),
            text_label("rank", subject->rank),
            text_label("node", subject->node),
        };
        if (any)
            sample(page, labels, 4, best);
    }
    if (any_folded)
        sample_folded(page, folded);
}

static void expose_latency(struct page *page, const struct exposition_label *label,
                           const struct latency *latency) {
    assert(latency != NULL);
    struct exemplar exemplars[BOARD_BUCKETS + 1];
    for (uint32_t i = 0; i <= BOARD_BUCKETS; i++) {
        const struct latency_exemplar *from = &latency->exemplars[i];
        exemplars[i] = (struct exemplar){slice_of(from->id), from->value_s, from->time_s};
    }
    begin(page);
    exposition_histogram(page->exposition, label, 1, board_bounds, BOARD_BUCKETS, latency->counts,
                         latency->sum_s, exemplars);
}

static void expose_latencies(struct page *page) {
    const struct board *board = page->board;
    family(page, "culprit_verdict_latency_seconds", EXPOSITION_HISTOGRAM,
           "From the last event needed to the verdict being shown here.");
    for (uint32_t i = 0; i < keyed_rows_count(&board->patterns); i++) {
        struct exposition_label label = text_label("pattern", board->sorted_patterns[i]->pattern);
        expose_latency(page, &label, &board->sorted_patterns[i]->latency);
    }
    uint64_t folded = 0;
    for (uint32_t i = 0; i <= BOARD_BUCKETS; i++)
        folded += board->folded.latency.counts[i];
    struct exposition_label overflow = {"otel_metric_overflow", SLICE("true")};
    if (folded > 0)
        expose_latency(page, &overflow, &board->folded.latency);
}

// -- ranks ---------------------------------------------------------------------------------------

static double figure_shown(const struct rank_family *of, int64_t figure) {
    return of->figure == RANK_LAST_NS ? seconds((uint64_t)figure) : (double)figure;
}

static void expose_rank_family(struct page *page, const struct rank_family *of) {
    const struct board *board = page->board;
    int64_t folded = 0;
    bool any_folded = false;
    family(page, of->name, of->type, of->help);
    for (uint32_t i = 0; i < keyed_rows_count(&board->ranks); i++) {
        const struct rank_row *row = board->sorted_ranks[i];
        if (gone(page, row->key.job) || (of->group != RANK_ALWAYS && !row->has[of->group]))
            continue;
        char rank[NUMBER_TEXT_MAX];
        struct exposition_label labels[] = {
            text_label("training_job", row->key.job),
            number_label("rank", row->key.rank, rank),
        };
        sample(page, labels, 2, figure_shown(of, row->figures[of->figure]));
    }
    for (uint32_t i = 0; i < keyed_rows_count(&board->jobs); i++) {
        const struct job_row *job = board->sorted_jobs[i];
        const struct rank_fold *fold = &job->fold;
        if (fold->count == 0 || gone(page, job->job) ||
            (of->group != RANK_ALWAYS && !fold->has[of->group]))
            continue;
        folded = rank_fold_value(of->rule, !any_folded, folded, fold->figures[of->figure]);
        any_folded = true;
    }
    if (any_folded)
        sample_folded(page, figure_shown(of, folded));
}

void board_expose(struct board *board, struct exposition *exposition, uint64_t monotonic_ns) {
    assert(board->series_count <= board->max_series);
    struct page page = {.board = board, .exposition = exposition, .now_ns = monotonic_ns};
    sort_board(board);
    for (uint32_t i = 0; i < BOARD_RANK_SERIES; i++)
        expose_rank_family(&page, &rank_families[i]);
    board_spans_expose(board, exposition, monotonic_ns);
    expose_jobs(&page);
    family(&page, "culprit_verdict_confidence_ratio", EXPOSITION_GAUGE,
           "Confidence of an open verdict, 0 to 1.");
    expose_subjects(&page, confidence_of, true);
    family(&page, "culprit_verdict_first_event_timestamp_seconds", EXPOSITION_GAUGE,
           "Time of the earliest event in the evidence of an open verdict.");
    expose_subjects(&page, start_of, false);
    expose_latencies(&page);
    expose_open(&page);
    expose_counters(&page);
}
