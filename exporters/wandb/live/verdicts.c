// SPDX-License-Identifier: Apache-2.0
// Writes the verdicts of a job: summary, table and page.
//
// Each verdict is kept as it stood last, so that the table is whole each time. The summary is said
// when something changed; the table and the page too, but no more often than table_interval.
#include "config/option.h"
#include "exporters/wandb/live/live.h"
#include "exporters/wandb/table.h"
#include "pipeline/model/batch.h"
#include "pipeline/model/evaluation.h"
#include "pipeline/model/verdict.h"

#include "base/sort.h"
#include "base/text/cut.h"
#include "base/text/utf8.h"

#include <stdlib.h>

static const char *const COLUMNS[] = {
    "first_seen_s", "last_seen_s", "state",       "severity", "confidence",        "kind",
    "headline",     "who",         "remediation", "action",   "evidence_complete", "id"};

static const char *const STATES[] = {"open", "updated", "resolved"};

// As much of the text as fits, whole characters only.
static void keep(char *out, size_t size, struct slice text) {
    assert(size > 0);
    size_t used = 0;
    while (used < text.size) {
        uint32_t code_point;
        size_t length = utf8_decode(text, used, &code_point);
        if (length == 0)
            length = 1;
        if (used + length >= size)
            break;
        used += length;
    }
    if (used > 0)
        memcpy(out, text.data, used);
    out[used] = '\0';
}

// The same of a text for people, shortened.
static void keep_shortened(char *out, size_t size, struct slice text) {
    struct slice kept = text_shorten(text, size - 1, TEXT_BYTES, out);
    if (kept.size > 0 && kept.data != out)
        memcpy(out, kept.data, kept.size);
    out[kept.size] = '\0';
}

// "rank 3, node a": whom the verdict names first, culprits or suspects.
static void keep_who(struct live_verdict *row, const struct verdict *verdict) {
    struct buffer who;
    buffer_init(&who, 4096);
    for (uint32_t i = 0; i < verdict->entity_count && !who.failed; i++) {
        const struct entity *entity = &verdict->entities[i];
        if (entity->role != verdict->entities[0].role)
            break;
        if (i > 0)
            buffer_append_text(&who, ", ");
        buffer_append_text(&who, entity->kind);
        buffer_append_char(&who, ' ');
        buffer_append(&who, entity->name);
    }
    keep_shortened(row->who, sizeof row->who, buffer_slice(&who));
    buffer_release(&who);
}

// The key of a verdict's row, flat.
struct verdict_key {
    string_id job;
    char id[VERDICT_ID_SIZE];
};

static void note(struct live *live, struct live_run *run, const struct verdict *verdict) {
    assert(run->verdict_count <= LIVE_VERDICTS_MAX);
    struct verdict_key key = {.job = verdict->job};
    keep(key.id, sizeof key.id, slice_of(verdict->id));
    struct live_verdict *row = keyed_rows_find(&live->verdicts, &key);
    if (row == NULL && run->verdict_count >= LIVE_VERDICTS_MAX) {
        run->verdicts_dropped++;
        return;
    }
    if (row == NULL) {
        row = keyed_rows_add(&live->verdicts, &key);
        row->order = live->counter.verdict_order++;
        run->verdict_count++;
    }
    keep(row->pattern, sizeof row->pattern, slice_of(verdict->pattern));
    keep(row->kind, sizeof row->kind, slice_of(verdict->kind));
    keep(row->action, sizeof row->action, slice_of(verdict->action));
    keep_shortened(row->headline, sizeof row->headline, verdict->headline);
    keep_shortened(row->remediation, sizeof row->remediation, verdict->remediation);
    keep_who(row, verdict);
    row->state = (int32_t)verdict->state;
    row->severity = (int32_t)verdict->severity;
    row->confidence = verdict->confidence;
    row->partial = verdict->partial;
    row->start_ns = verdict->start_ns;
    row->end_ns = verdict->end_ns;
    live_note_alert(live, row, verdict);
    if ((uint32_t)verdict->severity + 1 > run->worst)
        run->worst = (uint32_t)verdict->severity + 1;
    run->changed++;
    run->noted++;
}

static bool ended_before(const struct verdict *verdict, uint64_t start_ns) {
    return verdict->end_ns > 0 && verdict->end_ns < start_ns;
}

void live_note_verdicts(struct live *live, const struct batch *batch) {
    for (uint32_t i = 0; i < batch->verdicts.count; i++) {
        const struct verdict *verdict = &batch->verdicts.items[i];
        struct live_run *run = live_find_run(live, verdict->job);
        // What ended before a later start of the job is the run's before.
        bool is_older = run != NULL && run->start[0] != '\0' && run->generation > 0 &&
                        run->generation != LIVE_GENERATION_NONE &&
                        ended_before(verdict, run->started_ns);
        if (run != NULL && (live->once || !is_older))
            note(live, run, verdict);
    }
}

void live_note_verdicts_before(struct live *live, struct live_run *run, const struct batch *batch,
                               uint64_t start_ns) {
    assert(run->head.live && start_ns > 0);
    for (uint32_t i = 0; i < batch->verdicts.count; i++) {
        const struct verdict *verdict = &batch->verdicts.items[i];
        if (verdict->job == run->job && ended_before(verdict, start_ns))
            note(live, run, verdict);
    }
}

void live_forget_verdicts(struct live *live, string_id job) {
    struct live_verdict *row;
    uint32_t at = 0;
    while ((row = keyed_rows_next(&live->verdicts, &at)) != NULL)
        if (row->job == job)
            keyed_rows_remove(&live->verdicts, row);
}

bool live_has_died(struct live *live, const struct live_run *run) {
    struct live_verdict *row;
    uint32_t at = 0;
    while ((row = keyed_rows_next(&live->verdicts, &at)) != NULL)
        if (row->job == run->job && row->severity >= (int32_t)SEVERITY_ERROR &&
            strcmp(row->pattern, "first_exit") == 0)
            return true;
    return false;
}

// -- saying -------------------------------------------------------------------------------------

static int compare_rows(const void *left, const void *right) {
    const struct live_verdict *a = *(const struct live_verdict *const *)left;
    const struct live_verdict *b = *(const struct live_verdict *const *)right;
    return COMPARE(a->order, b->order);
}

// The verdicts of one job, in the order in which they appeared.
static struct live_verdict **list_rows(struct live *live, string_id job, struct arena *arena,
                                       uint32_t *count) {
    struct live_verdict **rows = arena_take(arena, LIVE_VERDICTS_MAX * sizeof *rows);
    struct live_verdict *row;
    uint32_t at = 0;
    *count = 0;
    while ((row = keyed_rows_next(&live->verdicts, &at)) != NULL)
        if (row->job == job)
            rows[(*count)++] = row;
    assert(*count <= LIVE_VERDICTS_MAX);
    if (*count > 1)
        qsort(rows, *count, sizeof *rows, compare_rows);
    return rows;
}

static void say_table(struct live_verdict *const *rows, uint32_t count,
                      struct wandb_writer *writer) {
    assert(count <= LIVE_VERDICTS_MAX);
    struct wandb_table table = {0};
    wandb_table_begin(&table, COLUMNS, OPTION_COUNT(COLUMNS));
    for (uint32_t i = 0; i < count; i++) {
        const struct live_verdict *row = rows[i];
        WANDB_TABLE_ROW(&table, cell_number((double)row->start_ns / 1e9),
                        cell_number((double)row->end_ns / 1e9), cell_text(STATES[row->state]),
                        cell_text(severity_name((enum severity)row->severity)),
                        cell_int(row->confidence), cell_text(row->kind), cell_text(row->headline),
                        cell_text(row->who), cell_text(row->remediation), cell_text(row->action),
                        cell_bool(!row->partial), cell_text(row->id));
    }
    wandb_table_end(&table);
    (void)wandb_table_say(&table, "culprit_verdicts", writer);
    wandb_table_release(&table);
}

// The gravest that stands; of equally grave ones the first.
static const struct live_verdict *gravest(struct live_verdict *const *rows, uint32_t count) {
    const struct live_verdict *found = NULL;
    for (uint32_t i = 0; i < count; i++)
        if (rows[i]->state != VERDICT_RESOLVED &&
            (found == NULL || rows[i]->severity > found->severity))
            found = rows[i];
    return found;
}

// Automations of W&B watch metrics: how many verdicts there are, and how severe they are, are rows.
static void say_figures(struct live *live, struct live_run *run, struct live_verdict *const *rows,
                        uint32_t count, struct wandb_writer *writer) {
    uint32_t open = 0, told = count + (uint32_t)run->verdicts_dropped;
    const struct live_verdict *worst = gravest(rows, count);
    uint32_t level = worst == NULL ? 0 : (uint32_t)worst->severity + 1;
    for (uint32_t i = 0; i < count; i++)
        open += rows[i]->state != VERDICT_RESOLVED;
    if (run->has_figures && run->open_count == open && run->told_count == told &&
        run->severity_level == level)
        return;
    run->has_figures = true;
    run->open_count = open;
    run->told_count = told;
    run->severity_level = level;
    struct buffer *members = &live->members;
    uint64_t time_ns = writer->time_ns;
    if (writer->table_time_ns > 0 && time_ns > writer->table_time_ns)
        time_ns = writer->table_time_ns;
    buffer_reset(members);
    live_put_elapsed(members, run, time_ns);
    wandb_member(members, "culprit_verdict_count", cell_int(told));
    wandb_member(members, "culprit_open_verdict_count", cell_int(open));
    wandb_member(members, "culprit_severity_level", cell_int(level));
    wandb_say(writer, &(struct wandb_record){
                          .kind = WANDB_ROW, .time_ns = time_ns, .members = buffer_slice(members)});
}

void live_say_changes(struct live *live, struct live_run *run, struct arena *arena,
                      struct wandb_writer *writer) {
    uint32_t count;
    if (run->noted == 0 && run->has_figures)
        return;
    struct live_verdict **rows = list_rows(live, run->job, arena, &count);
    say_figures(live, run, rows, count, writer);
    for (uint32_t i = 0; i < count; i++)
        live_say_alert(live, run, rows[i], writer);
    run->noted = 0;
}

static void say_summary(struct live *live, const struct live_run *run,
                        const struct evaluation *evaluation, struct live_verdict *const *rows,
                        uint32_t count, struct wandb_writer *writer) {
    struct buffer *members = &live->members;
    buffer_reset(members);
    uint32_t open = 0;
    for (uint32_t i = 0; i < count; i++)
        open += rows[i]->state != VERDICT_RESOLVED;
    const struct live_verdict *worst = gravest(rows, count);
    const struct {
        const char *key;
        struct wandb_cell value;
    } values[] = {
        {"culprit_verdict_count", cell_int(count + run->verdicts_dropped)},
        {"culprit_open_verdict_count", cell_int(open)},
        {"culprit_headline", cell_text(worst ? worst->headline : "")},
        {"culprit_severity",
         cell_text(worst ? severity_name((enum severity)worst->severity) : "none")},
        {"culprit_who", cell_text(worst ? worst->who : "")},
        {"culprit_kind", cell_text(worst ? worst->kind : "")},
        {"culprit_verdict_id", cell_text(worst ? worst->id : "")},
        {"culprit_confidence", cell_int(worst ? worst->confidence : 0)},
        {"culprit_job_id",
         run->job == STRING_NONE ? cell_null : cell_slice(intern_slice(run->job))},
        {"culprit_rank_count", evaluation ? cell_int(evaluation->rank_count) : cell_null},
        {"culprit_event_count", evaluation ? cell_int(evaluation->event_count) : cell_null},
    };
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        wandb_member(members, values[i].key, values[i].value);
    wandb_say_members(writer, WANDB_SUMMARY, members);
}

// A verdict of this batch has its evidence with it; of earlier ones only their words are left.
static struct verdict page_verdict(const struct batch *batch, const struct live_verdict *row) {
    for (uint32_t i = 0; i < batch->verdicts.count; i++)
        if (batch->verdicts.items[i].job == row->job &&
            strcmp(batch->verdicts.items[i].id, row->id) == 0)
            return batch->verdicts.items[i];
    struct verdict verdict = {
        .pattern = row->pattern,
        .kind = row->kind,
        .job = row->job,
        .state = (enum verdict_state)row->state,
        .severity = (enum severity)row->severity,
        .partial = row->partial != 0,
        .confidence = row->confidence,
        .headline = slice_of(row->headline),
        .remediation = slice_of(row->remediation),
        .action = row->action,
        .start_ns = row->start_ns,
        .end_ns = row->end_ns,
    };
    memcpy(verdict.id, row->id, sizeof verdict.id);
    return verdict;
}

static void say_page(struct live *live, const struct batch *batch,
                     const struct evaluation *evaluation, struct live_verdict *const *rows,
                     uint32_t count, struct wandb_writer *writer) {
    enum { PAGE_POINTS = 400, PAGE_RANKS = 64 };
    struct verdict *verdicts = arena_take(batch->arena, (count + 1) * sizeof *verdicts);
    for (uint32_t i = 0; i < count; i++)
        verdicts[i] = page_verdict(batch, rows[i]);
    struct evaluation one = *evaluation;
    struct batch own = *batch; // this job alone
    own.evaluations = &one;
    own.evaluation_count = 1;
    own.spans = live_spans_of(batch, evaluation->job);
    struct page_input input = {.batch = &own,
                               .verdicts = verdicts,
                               .verdict_count = count,
                               .notes = live->notes,
                               .max_points = PAGE_POINTS,
                               .max_ranks = PAGE_RANKS};
    buffer_reset(&live->page);
    page_encode(&input, &live->page);
    if (live->page.failed)
        return;
    struct wandb_record record = {
        .kind = WANDB_HTML, .key = SLICE("culprit_report"), .file = buffer_slice(&live->page)};
    wandb_say(writer, &record);
}

bool live_say_findings(struct live *live, struct live_run *run, const struct batch *batch,
                       const struct evaluation *evaluation, bool at_once,
                       struct wandb_writer *writer) {
    bool old_enough = run->shown_ns == 0 ||
                      writer->time_ns >= run->shown_ns + (uint64_t)live->config->table_interval.ns;
    bool first = run->shown_ns == 0 && evaluation != NULL;
    if (!first && !(run->changed > 0 && (at_once || old_enough)) && !(at_once && evaluation))
        return false;
    uint32_t count;
    struct live_verdict **rows = list_rows(live, run->job, batch->arena, &count);
    say_summary(live, run, evaluation, rows, count, writer);
    if (live->config->log_tables && count > 0 && run->changed > 0)
        say_table(rows, count, writer);
    if (live->config->log_tables && evaluation != NULL && (run->changed > 0 || at_once))
        say_page(live, batch, evaluation, rows, count, writer);
    run->changed = 0;
    assert(run->verdict_count >= count);
    run->shown_ns = writer->time_ns == 0 ? 1 : writer->time_ns;
    return true;
}
