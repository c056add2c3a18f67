// SPDX-License-Identifier: Apache-2.0
// Begins, feeds and finishes the run of each start of a job.
//
// It begins with the job's first evaluation and is finished when the job starts anew (the next
// generation of its ranks), is forgotten or nothing follows. One look-up an evaluation.
#include "exporters/wandb/live/live.h"

#include "base/hash/digest.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/table/table.h"
#include "exporters/wandb/files.h"
#include "pipeline/model/verdict.h"

#include <assert.h>
#include <stdio.h>
#include <sys/random.h>

enum { MEMBERS_MAX = 8 << 20, PAGE_MAX = 64 << 20, CHUNK_ROWS = 16 };

KEYED_ROW_CHECK(struct live_run, job);
KEYED_ROW_CHECK(struct live_verdict, job);

const struct row_type live_run_rows = {.size = sizeof(struct live_run),
                                       .key_size = sizeof(string_id),
                                       .rows_per_chunk = CHUNK_ROWS,
                                       .strings = {offsetof(struct live_run, job)}};
const struct row_type live_verdict_rows = {.size = sizeof(struct live_verdict),
                                           .key_size = sizeof(string_id) + VERDICT_ID_SIZE,
                                           .rows_per_chunk = CHUNK_ROWS,
                                           .strings = {offsetof(struct live_verdict, job)}};

void live_init(struct live *live, const struct wandb_config *config, const char *site, bool once,
               const struct page_notes *notes) {
    assert(live->runs.table.row_size == sizeof(struct live_run));
    live->config = config;
    live->site = site;
    live->once = once;
    live->notes = notes;
    buffer_init(&live->members, MEMBERS_MAX);
    buffer_init(&live->page, PAGE_MAX);
    buffer_init(&live->setup, MEMBERS_MAX);
}

void live_release(struct live *live) {
    buffer_release(&live->members);
    buffer_release(&live->page);
    buffer_release(&live->setup);
}

// -- names --------------------------------------------------------------------------------------

// Characters that an id cannot have become dashes; then, or when it is cut, a digest of the name
// tells it from others that look the same.
static void append_plain(char *id, size_t size, struct slice job) {
    size_t used = strlen(id), at = used;
    bool changed = false;
    for (size_t i = 0; i < job.size && at + 1 < size; i++) {
        changed = changed || !wandb_is_name_character(job.data[i]);
        id[at++] = wandb_is_name_character(job.data[i]) ? job.data[i] : '-';
    }
    assert(at < size);
    id[at] = '\0';
    if (!changed && at - used == job.size)
        return;
    char digest[DIGEST_ID_SIZE];
    digest_id(&job, 1, digest);
    if (at > size - DIGEST_ID_SIZE - 1)
        at = size - DIGEST_ID_SIZE - 1;
    snprintf(id + at, size - at, "-%s", digest);
}

void live_run_id(const struct live *live, const struct live_run *run, char id[LIVE_RUN_ID_MAX]) {
    const char *given = live->config->run_id;
    snprintf(id, LIVE_RUN_ID_MAX, "%s", given != NULL ? given : "culprit");
    assert(run->start[0] != '\0');
    if (run->has_given_id)
        return;
    if (run->job != STRING_NONE) {
        snprintf(id + strlen(id), LIVE_RUN_ID_MAX - strlen(id), "-");
        append_plain(id, LIVE_RUN_ID_MAX - DIGEST_ID_SIZE, intern_slice(run->job));
    }
    snprintf(id + strlen(id), LIVE_RUN_ID_MAX - strlen(id), "-%s", run->start);
}

// -- runs ---------------------------------------------------------------------------------------

struct live_run *live_find_run(struct live *live, string_id job) {
    struct live_run *run = keyed_rows_find(&live->runs, &job);
    if (run != NULL)
        return run;
    if (keyed_rows_count(&live->runs) >= (uint64_t)live->config->max_runs) {
        if (live->counter.runs_refused++ == 0)
            log_write(LOG_WARN, (struct log_site){"C3301", live->site},
                      "more than %lld jobs at the same time (max_runs); further jobs get no run",
                      (long long)live->config->max_runs);
        return NULL;
    }
    run = keyed_rows_add(&live->runs, &job);
    run->has_given_id = live->config->run_id != NULL && live->counter.given_used == 0;
    live->counter.given_used += run->has_given_id;
    assert(keyed_rows_count(&live->runs) <= (uint64_t)live->config->max_runs);
    return run;
}

static uint64_t random_number(void) {
    uint64_t number = 0;
    while (number == 0)
        if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
            number = 0;
    return number;
}

static void begin_run(struct live *live, struct live_run *run, struct slice setup,
                      struct wandb_writer *writer) {
    assert(writer->row == &run->row && run->start[0] != '\0');
    if (run->begun)
        return;
    run->begun = 1;
    run->ended = 0;
    if (run->incarnation == 0 && !live->once)
        run->incarnation = random_number();
    live_say_run(live, run, setup, writer);
}

void live_say_run(struct live *live, struct live_run *run, struct slice setup,
                  struct wandb_writer *writer) {
    static const struct slice tags[] = {SLICE(""), SLICE("culprit-info"), SLICE("culprit-warning"),
                                        SLICE("culprit-error"), SLICE("culprit-critical")};
    assert(run->begun && run->start[0] != '\0');
    buffer_reset(&live->members);
    if (run->has_chart)
        live_put_chart(&live->members);
    const struct wandb_config *config = live->config;
    struct slice job = intern_slice(run->job);
    struct wandb_record record = {
        .kind = WANDB_RUN,
        .time_ns = run->started_ns,
        .incarnation = run->incarnation,
        .skips_known = true,
        .key = slice_of(run->start),
        .members = buffer_slice(&live->members),
        .file = setup,
        .type = tags[run->worst],
        .display_name = config->run_name != NULL ? slice_of(config->run_name) : job,
        .group = config->group != NULL ? slice_of(config->group) : job,
        .job_type = slice_of(config->job_type != NULL ? config->job_type : "culprit"),
    };
    wandb_say(writer, &record);
    run->worst_told = run->worst;
}

// What is known of a run that goes on after a restart stays.
static void finish_run(struct live *live, struct live_run *run, bool goes_on,
                       struct wandb_writer *writer) {
    assert(run->head.live);
    struct wandb_record record = {.kind = WANDB_FINISH, .exit_code = live_has_died(live, run)};
    wandb_say(writer, &record);
    run->begun = 0;
    run->ended = 1;
    if (goes_on)
        return;
    live_forget_verdicts(live, run->job);
    keyed_rows_remove(&live->runs, run);
}

// -- batches ------------------------------------------------------------------------------------

struct teller {
    struct wandb_writer writer;
    char id[LIVE_RUN_ID_MAX]; // what `writer` names the run by
};

static struct wandb_writer *teller_init(struct teller *teller, struct live *live,
                                        struct live_run *run, uint64_t time_ns,
                                        struct buffer *out) {
    assert(run->head.live);
    live_run_id(live, run, teller->id);
    teller->writer = (struct wandb_writer){.out = out,
                                           .sequence = &live->counter.sequence,
                                           .row = &run->row,
                                           .run = slice_of(teller->id),
                                           .time_ns = time_ns,
                                           .row_time_ns = &run->row_time_ns,
                                           .table_time_ns = run->said_until_ns};
    return &teller->writer;
}

// The time up to which an evaluation has seen its job.
static uint64_t seen_ns(const struct evaluation *evaluation) {
    uint64_t latest = 0;
    for (uint32_t i = 0; i < evaluation->rank_count; i++)
        if (evaluation->ranks[i].last_ns > latest)
            latest = evaluation->ranks[i].last_ns;
    return latest < evaluation->as_of_ns ? latest : evaluation->as_of_ns;
}

// Begins the run, or says it again when its config or its tag changed.
static void tell_setup(struct live *live, struct live_run *run, const struct batch *batch,
                       const struct evaluation *evaluation, struct wandb_writer *writer) {
    buffer_reset(&live->setup);
    live_put_setup(live, run, evaluation, batch->arena, &live->setup);
    struct slice setup = buffer_slice(&live->setup);
    bool is_news = live_setup_is_news(live, run, setup, writer->time_ns);
    if (!run->begun)
        begin_run(live, run, setup, writer);
    else if (is_news || run->worst != run->worst_told)
        live_say_run(live, run, setup, writer);
}

static void tell_evaluation(struct live *live, const struct batch *batch,
                            const struct evaluation *evaluation, struct buffer *out) {
    if (evaluation->rank_count == 0)
        return;
    struct live_run *run = live_find_run(live, evaluation->job);
    if (run == NULL)
        return;
    (void)live_name_start(live, run, batch, evaluation);
    if (run->generation == LIVE_GENERATION_NONE)
        run->generation = evaluation->generation;
    struct teller teller;
    struct wandb_writer *writer = teller_init(&teller, live, run, seen_ns(evaluation), out);
    tell_setup(live, run, batch, evaluation, writer);
    live_say_rows(live, run, evaluation, UINT64_MAX, batch->arena, writer);
    writer->table_time_ns = run->said_until_ns > 0 ? run->said_until_ns : run->started_ns;
    live_say_changes(live, run, batch->arena, writer);
    bool said = live_say_findings(live, run, batch, evaluation, batch->last, writer);
    live_say_chart(live, run, evaluation, said, batch->arena, writer);
}

// Spans come with the run of their job, which begins with them when nothing was sampled.
static void tell_spans(struct live *live, const struct batch *batch, string_id job,
                       struct buffer *out) {
    struct live_run *run = live_find_run(live, job);
    if (run == NULL || !live_name_start(live, run, batch, NULL))
        return;
    struct teller teller;
    struct wandb_writer *writer =
        teller_init(&teller, live, run, live_spans_until(batch, job), out);
    begin_run(live, run, (struct slice){"", 0}, writer);
    live_say_spans(live, run, batch, writer);
}

static void tell_all_spans(struct live *live, const struct batch *batch, struct buffer *out) {
    const struct span_report_list *spans = &batch->spans;
    for (uint32_t i = 0; i < spans->count; i++) {
        string_id job = spans->items[i].job;
        bool told = false;
        for (uint32_t j = 0; j < i && !told; j++)
            told = spans->items[j].job == job;
        if (!told && live_spans_until(batch, job) > 0)
            tell_spans(live, batch, job, out);
    }
}

// A run whose job has no evaluation any more, or that has had its last one.
static void end_run(struct live *live, struct live_run *run, const struct batch *batch,
                    bool goes_on, struct buffer *out) {
    uint64_t until = run->said_until_ns > run->spans_ns ? run->said_until_ns : run->spans_ns;
    struct teller teller;
    bool is_quiet = run->ended && run->changed == 0; // nothing came since it ended
    if (is_quiet && goes_on)
        return;
    if (is_quiet || !live_name_start(live, run, batch, NULL)) {
        live_forget_verdicts(live, run->job);
        keyed_rows_remove(&live->runs, run);
        return;
    }
    if (until < run->started_ns)
        until = run->started_ns;
    struct wandb_writer *writer = teller_init(&teller, live, run, until, out);
    begin_run(live, run, (struct slice){"", 0}, writer);
    if (run->worst != run->worst_told)
        live_say_run(live, run, (struct slice){"", 0}, writer);
    live_say_changes(live, run, batch->arena, writer);
    (void)live_say_findings(live, run, batch, NULL, true, writer);
    finish_run(live, run, goes_on, writer);
}

static void end_all(struct live *live, const struct batch *batch, struct buffer *out) {
    struct live_run *run;
    uint32_t at = 0;
    while ((run = keyed_rows_next(&live->runs, &at)) != NULL)
        end_run(live, run, batch, batch->last && !live->once, out);
}

// Before the evaluations of the batch: what they show is not forgotten.
static void end_forgotten(struct live *live, const struct batch *batch, struct buffer *out) {
    const struct forgotten *forgotten = batch->forgotten;
    for (uint32_t i = 0; forgotten != NULL && i < forgotten->job_count; i++) {
        struct live_run *run = keyed_rows_find(&live->runs, &forgotten->jobs[i].job);
        if (run != NULL)
            end_run(live, run, batch, false, out);
    }
    if (forgotten != NULL && forgotten->everything)
        end_all(live, batch, out);
}

// The job has started anew: what is left of its run is said, and another one takes its place.
static void end_start(struct live *live, struct live_run *run, const struct batch *batch,
                      const struct evaluation *evaluation, struct buffer *out) {
    uint64_t start_ns = live_generation_ns(evaluation);
    uint64_t last_ns = start_ns > run->started_ns ? start_ns - 1 : run->started_ns;
    struct teller teller;
    struct wandb_writer *writer = teller_init(&teller, live, run, last_ns, out);
    live_note_verdicts_before(live, run, batch, start_ns);
    begin_run(live, run, (struct slice){"", 0},
              writer); // it may have ended with the process before
    live_say_rows(live, run, evaluation, start_ns, batch->arena, writer);
    writer->table_time_ns = run->said_until_ns;
    live_say_changes(live, run, batch->arena, writer);
    (void)live_say_findings(live, run, batch, NULL, true, writer);
    finish_run(live, run, false, writer);
    run = live_find_run(live, evaluation->job);
    assert(run != NULL);
    (void)live_name_start(live, run, batch, evaluation);
}

static void end_starts(struct live *live, const struct batch *batch, struct buffer *out) {
    for (uint32_t i = 0; !live->once && i < batch->evaluation_count; i++) {
        const struct evaluation *evaluation = &batch->evaluations[i];
        struct live_run *run = keyed_rows_find(&live->runs, &evaluation->job);
        if (run != NULL && (run->begun || run->ended) && run->generation != LIVE_GENERATION_NONE &&
            evaluation->rank_count > 0 && evaluation->generation > run->generation)
            end_start(live, run, batch, evaluation, out);
    }
}

void live_encode(struct live *live, const struct batch *batch, struct buffer *out) {
    end_starts(live, batch, out);
    live_note_verdicts(live, batch);
    end_forgotten(live, batch, out);
    for (uint32_t i = 0; i < batch->evaluation_count; i++)
        tell_evaluation(live, batch, &batch->evaluations[i], out);
    if (live->config->log_tables)
        tell_all_spans(live, batch, out);
    if (batch->last)
        end_all(live, batch, out);
}
