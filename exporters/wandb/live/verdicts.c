// SPDX-License-Identifier: Apache-2.0
// How are the findings of a job told: summary, table and page?
//
// Each verdict is kept as it stood last, so that the table is whole each time. The summary is said
// when something changed; the table and the page too, but no more often than table_interval.
#include "exporters/wandb/live/live.h"
#include "exporters/wandb/table.h"

#include "base/text/utf8.h"

#include <stdlib.h>

static const char *const COLUMNS[] = {
    "first_seen_s", "last_seen_s", "state",       "severity", "confidence",        "kind",
    "headline",     "who",         "remediation", "action",   "evidence_complete", "id"};

static const char *const STATES[] = {"open", "updated", "resolved"};

// As much of the text as fits, whole characters only.
static void keep(char *out, size_t size, struct slice text) {
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
    keep(row->who, sizeof row->who, buffer_slice(&who));
    buffer_release(&who);
}

// The key of a verdict's row, flat.
struct verdict_key {
    string_id job;
    char id[VERDICT_ID_SIZE];
};

static void note(struct live *live, struct live_run *run, const struct verdict *verdict) {
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
    keep(row->headline, sizeof row->headline, verdict->headline);
    keep(row->remediation, sizeof row->remediation, verdict->remediation);
    keep_who(row, verdict);
    row->state = (int32_t)verdict->state;
    row->severity = (int32_t)verdict->severity;
    row->confidence = verdict->confidence;
    row->partial = verdict->partial;
    row->start_ns = verdict->start_ns;
    row->end_ns = verdict->end_ns;
    run->changed++;
}

void live_note_verdicts(struct live *live, const struct batch *batch) {
    for (uint32_t i = 0; i < batch->verdicts.count; i++) {
        const struct verdict *verdict = &batch->verdicts.items[i];
        struct live_run *run = live_find_run(live, verdict->job);
        if (run != NULL)
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

// -- saying -------------------------------------------------------------------------------------

static int compare_rows(const void *left, const void *right) {
    const struct live_verdict *a = *(const struct live_verdict *const *)left;
    const struct live_verdict *b = *(const struct live_verdict *const *)right;
    return (a->order > b->order) - (a->order < b->order);
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
    if (*count > 1)
        qsort(rows, *count, sizeof *rows, compare_rows);
    return rows;
}

static void say_table(struct live_verdict *const *rows, uint32_t count,
                      struct wandb_writer *writer) {
    struct wandb_table table = {0};
    wandb_table_begin(&table, COLUMNS, OPTION_COUNT(COLUMNS));
    for (uint32_t i = 0; i < count; i++) {
        const struct live_verdict *row = rows[i];
        wandb_cell_number(&table, (double)row->start_ns / 1e9);
        wandb_cell_number(&table, (double)row->end_ns / 1e9);
        wandb_cell_text(&table, slice_of(STATES[row->state]));
        wandb_cell_text(&table, slice_of(severity_name((enum severity)row->severity)));
        wandb_cell_int(&table, row->confidence);
        wandb_cell_text(&table, slice_of(row->kind));
        wandb_cell_text(&table, slice_of(row->headline));
        wandb_cell_text(&table, slice_of(row->who));
        wandb_cell_text(&table, slice_of(row->remediation));
        wandb_cell_text(&table, slice_of(row->action));
        wandb_cell_bool(&table, !row->partial);
        wandb_cell_text(&table, slice_of(row->id));
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

static void say_summary(struct live *live, const struct live_run *run,
                        const struct evaluation *evaluation, struct live_verdict *const *rows,
                        uint32_t count, struct wandb_writer *writer) {
    struct buffer *members = &live->members;
    buffer_reset(members);
    uint32_t open = 0;
    for (uint32_t i = 0; i < count; i++)
        open += rows[i]->state != VERDICT_RESOLVED;
    wandb_member_int(members, "culprit_verdict_count", (int64_t)(count + run->verdicts_dropped));
    wandb_member_int(members, "culprit_open_verdict_count", open);
    const struct live_verdict *worst = gravest(rows, count);
    struct slice none = {"", 0};
    wandb_member_text(members, "culprit_headline", worst ? slice_of(worst->headline) : none);
    wandb_member_text(members, "culprit_severity",
                      slice_of(worst ? severity_name((enum severity)worst->severity) : "none"));
    wandb_member_text(members, "culprit_who", worst ? slice_of(worst->who) : none);
    wandb_member_text(members, "culprit_kind", worst ? slice_of(worst->kind) : none);
    wandb_member_text(members, "culprit_verdict_id", worst ? slice_of(worst->id) : none);
    wandb_member_int(members, "culprit_confidence", worst ? worst->confidence : 0);
    if (run->job != STRING_NONE)
        wandb_member_text(members, "culprit_job_id", intern_slice(run->job));
    if (evaluation != NULL) {
        wandb_member_int(members, "culprit_rank_count", evaluation->rank_count);
        wandb_member_int(members, "culprit_event_count", (int64_t)evaluation->event_count);
    }
    struct wandb_record record = {.kind = WANDB_SUMMARY, .members = buffer_slice(members)};
    wandb_say(writer, &record);
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

void live_say_findings(struct live *live, struct live_run *run, const struct batch *batch,
                       const struct evaluation *evaluation, bool at_once,
                       struct wandb_writer *writer) {
    bool old_enough = run->shown_ns == 0 ||
                      writer->time_ns >= run->shown_ns + (uint64_t)live->config->table_interval.ns;
    bool first = run->shown_ns == 0 && evaluation != NULL;
    if (!first && !(run->changed > 0 && (at_once || old_enough)) && !(at_once && evaluation))
        return;
    uint32_t count;
    struct live_verdict **rows = list_rows(live, run->job, batch->arena, &count);
    say_summary(live, run, evaluation, rows, count, writer);
    if (live->config->log_tables && count > 0 && run->changed > 0)
        say_table(rows, count, writer);
    if (live->config->log_tables && evaluation != NULL && (run->changed > 0 || at_once))
        say_page(live, batch, evaluation, rows, count, writer);
    run->changed = 0;
    run->shown_ns = writer->time_ns == 0 ? 1 : writer->time_ns;
}
