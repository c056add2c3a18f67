// SPDX-License-Identifier: Apache-2.0
// What a running culprit says to W&B: each start of a job is a run, with rows of its ranks at a
// bounded rate, its verdicts as a table and in the summary, its spans and phases as tables, and the
// page. Streams of spans that name no job are a run of their own.
//
// Everything is told by event time, so the same input says the same records. Memory: a row for each
// run and for each verdict, both bounded; nothing for each rank. Runs under the sender's lock.
#pragma once

#include "base/hash/digest.h"
#include "base/table/keyed_rows.h"
#include "base/table/table.h"
#include "exporters/report/page/page.h"
#include "exporters/wandb/options.h"
#include "exporters/wandb/record.h"
#include "pipeline/model/series.h"
#include "pipeline/model/span_report.h"
#include "pipeline/model/verdict.h"

enum {
    LIVE_VERDICTS_MAX = 256, // of one run; further ones are counted
    LIVE_BUCKETS_MAX = 4096, // rows of one rank in one evaluation
    LIVE_WHO_MAX = 160,      // bytes of the names that a verdict blames
    LIVE_NAME_MAX = 64,      // bytes of a pattern, kind or action
    LIVE_RUN_ID_MAX = 1 + WANDB_RUN_ID_MAX,
};
// A run that began with spans: the first evaluation says of which generation its job is.
#define LIVE_GENERATION_NONE UINT32_MAX

struct live_run {
    struct row_head head;
    string_id job; // the key
    uint32_t begun;
    uint32_t has_given_id; // its id is run_id as it was given; others have job and start behind it
    char start[DIGEST_ID_SIZE]; // names the start of the job; "" until that is known
    uint32_t generation;        // of the job
    uint32_t ended; // it was finished when culprit stopped, and goes on when the job is seen again
    uint64_t row;   // of the next history row
    uint64_t incarnation; // see record.h
    uint64_t started_ns;
    uint64_t said_until_ns;        // samples before this have been looked at
    uint64_t row_time_ns;          // of the last row
    uint64_t shown_ns;             // as_of of the last table
    uint64_t spans_ns;             // time of the last tables of spans
    uint64_t chart_ns;             // of the last table of the chart of all ranks
    uint64_t setup_hash, setup_ns; // of what its config tells of the job, and when that was said
    uint32_t worst, worst_told;    // of all its verdicts: 0 none, else 1 + enum severity
    uint64_t verdicts_dropped;
    uint32_t changed;                // verdicts that no table has shown yet
    uint32_t noted;                  // verdicts since their changes were said
    uint32_t has_chart;              // its config names the chart of all ranks
    uint32_t has_figures;            // a row of them was said:
    uint32_t open_count, told_count; // verdicts
    uint32_t severity_level;         // of the gravest that is open: 0 none, else 1 + enum severity
    uint32_t verdict_count;
};

// A verdict as it stood last. Texts end with a zero byte.
struct live_verdict {
    struct row_head head;
    string_id job; // the key, with the id
    char id[VERDICT_ID_SIZE];
    char pattern[LIVE_NAME_MAX], kind[LIVE_NAME_MAX], action[LIVE_NAME_MAX];
    char headline[VERDICT_HEADLINE_MAX + 1], remediation[VERDICT_REMEDIATION_MAX + 1];
    char who[LIVE_WHO_MAX + 1];
    int32_t state, severity, confidence, partial; // enum verdict_state, enum severity
    int32_t alerted;                              // 1 + severity of its last alert; 0: none
    uint32_t alert_is_due;
    uint64_t start_ns, end_ns;
    uint64_t order; // of its first appearance
};

// Kept with the checkpoint.
struct live_counter {
    uint64_t sequence;
    uint64_t verdict_order;
    uint64_t runs_refused;
    uint64_t given_used; // runs that got run_id as it was given: one
};

struct live {
    const struct wandb_config *config;
    const char *site;
    bool once;
    const struct page_notes *notes;
    struct live_counter counter;
    struct keyed_rows runs;
    struct keyed_rows verdicts;
    struct buffer members;
    struct buffer page;
    struct buffer setup;
};

// Of `runs` and `verdicts`, which the component declares as state with `counter`.
extern const struct row_type live_run_rows, live_verdict_rows;

// Once the tables are made.
void live_init(struct live *live, const struct wandb_config *config, const char *site, bool once,
               const struct page_notes *notes);
void live_release(struct live *live); // all but the tables
void live_encode(struct live *live, const struct batch *batch, struct buffer *out);

// Parts of it. --------------------------------------------------------------------------------

// The run of a job, made when there is room; NULL: there is none.
struct live_run *live_find_run(struct live *live, string_id job);
// The id under which W&B knows the run, once its start is known.
void live_run_id(const struct live *live, const struct live_run *run, char id[LIVE_RUN_ID_MAX]);
// starts.c: gives the run the name of the job's start that the evaluation, the spans or else the
// verdicts of the batch show, and when that was. False when nothing does.
bool live_name_start(struct live *live, struct live_run *run, const struct batch *batch,
                     const struct evaluation *evaluation);
// When the generation of the evaluation began.
uint64_t live_generation_ns(const struct evaluation *evaluation);
// rows.c: rows of the samples that came since the last evaluation, or up to `until_ns`, exclusive,
// which is that of the next start of the job; UINT64_MAX: none is known.
void live_say_rows(struct live *live, struct live_run *run, const struct evaluation *evaluation,
                   uint64_t until_ns, struct arena *arena, struct wandb_writer *writer);
// verdicts.c: those of a batch, each with the run of its job that it belongs to.
void live_note_verdicts(struct live *live, const struct batch *batch);
// Those of this run's job that ended before the job's next start.
void live_note_verdicts_before(struct live *live, struct live_run *run, const struct batch *batch,
                               uint64_t start_ns);
// The summary, the table and the page, when something changed and the last ones are old enough:
// whether they were said. `evaluation` NULL: the job is being forgotten.
bool live_say_findings(struct live *live, struct live_run *run, const struct batch *batch,
                       const struct evaluation *evaluation, bool at_once,
                       struct wandb_writer *writer);
void live_forget_verdicts(struct live *live, string_id job);
// alerts.c: whether the verdict, as it stands now, is to alert; and the alert that is due.
void live_note_alert(const struct live *live, struct live_verdict *row,
                     const struct verdict *verdict);
void live_say_alert(struct live *live, struct live_run *run, struct live_verdict *row,
                    struct wandb_writer *writer);
// verdicts.c: what has changed of the run's verdicts: a row of their figures, and their alerts in
// the order in which they appeared.
void live_say_changes(struct live *live, struct live_run *run, struct arena *arena,
                      struct wandb_writer *writer);
// live.c: RUN, with its config and charts as they are now.
// `setup`: members of the config; empty: they stay as they are.
void live_say_run(struct live *live, struct live_run *run, struct slice setup,
                  struct wandb_writer *writer);
// setup.c: what the config tells of the job, as members; and whether it is to be said (then it
// counts as said).
void live_put_setup(const struct live *live, const struct live_run *run,
                    const struct evaluation *evaluation, struct arena *arena, struct buffer *out);
bool live_setup_is_news(const struct live *live, struct live_run *run, struct slice setup,
                        uint64_t now_ns);
// verdicts.c: whether a verdict says that processes of the job died.
bool live_has_died(struct live *live, const struct live_run *run);
// chart.c: the chart of all ranks for the config, and its table when that is due.
void live_put_chart(struct buffer *visualize);
void live_say_chart(struct live *live, struct live_run *run, const struct evaluation *evaluation,
                    bool with_findings, struct arena *arena, struct wandb_writer *writer);
// rows.c: samples that stand for the others of their stretch.
struct live_chosen {
    uint64_t stretch;
    int32_t rank;
    const struct sample *sample;
};
struct live_choice {
    struct live_chosen *items;
    size_t count, capacity;
    struct arena *arena;
};
// Of the ranks that get rows, over the samples of the run that are held, up to `until_ns`: at most
// `room` altogether, by rank and then by time; none when there are more than half as many ranks.
void live_choose_held(const struct live *live, const struct live_run *run,
                      const struct evaluation *evaluation, uint64_t until_ns, uint32_t room,
                      struct live_choice *choice);
// rows.c: the value that W&B draws rows over.
void live_put_elapsed(struct buffer *members, const struct live_run *run, uint64_t time_ns);
// spans.c: the tables of a job's spans and phases, when the last ones are old enough.
void live_say_spans(struct live *live, struct live_run *run, const struct batch *batch,
                    struct wandb_writer *writer);
// The time up to which the spans of a job are told; 0: it has none.
uint64_t live_spans_until(const struct batch *batch, string_id job);
// When the first of them began.
uint64_t live_spans_begin(const struct batch *batch, string_id job);
// Those of this job alone, in the batch's arena.
struct span_report_list live_spans_of(const struct batch *batch, string_id job);
