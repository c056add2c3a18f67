// SPDX-License-Identifier: Apache-2.0
// Writes alerts of verdicts, for W&B to send to people.
//
// One for each root of an incident that is at least as severe as `alert_severity`, and another one
// only when it becomes more severe: a verdict that changes otherwise is no news. They stand among
// the rows in time, so that a server that has later rows was told, when inputs are read again.
#include "exporters/wandb/live/live.h"
#include "pipeline/model/verdict.h"

#include <stdio.h>

void live_note_alert(const struct live *live, struct live_verdict *row,
                     const struct verdict *verdict) {
    int32_t level = (int32_t)verdict->severity + 1; // as WANDB_ALERT_… count
    assert(row->alerted >= 0);
    row->alert_is_due = live->config->alert_severity != WANDB_ALERT_NONE &&
                        level >= live->config->alert_severity && level > row->alerted &&
                        verdict->state != VERDICT_RESOLVED && verdict_is_root(verdict);
}

static struct slice level_of(enum severity severity) {
    static const struct slice levels[] = {SLICE("INFO"), SLICE("WARN"), SLICE("ERROR"),
                                          SLICE("ERROR")};
    assert(severity <= SEVERITY_CRITICAL);
    return levels[severity];
}

static void line(struct buffer *text, const char *name, const char *value) {
    if (value[0] == '\0')
        return;
    buffer_append_text(text, name);
    buffer_append_text(text, value);
    buffer_append_char(text, '\n');
}

void live_say_alert(struct live *live, struct live_run *run, struct live_verdict *row,
                    struct wandb_writer *writer) {
    if (!row->alert_is_due)
        return;
    struct buffer *text = &live->members;
    buffer_reset(text);
    line(text, "", row->headline);
    line(text, "Who: ", row->who);
    line(text, "Severity: ", severity_name((enum severity)row->severity));
    line(text, "What to do: ", row->remediation);
    if (run->job != STRING_NONE) {
        buffer_append_text(text, "Job: ");
        buffer_append(text, intern_slice(run->job));
        buffer_append_char(text, '\n');
    }
    line(text, "Verdict: ", row->id);
    struct wandb_record record = {.kind = WANDB_ALERT,
                                  .key = slice_of(row->headline),
                                  .type = level_of((enum severity)row->severity),
                                  .file = buffer_slice(text)};
    wandb_say(writer, &record);
    row->alerted = row->severity + 1;
    row->alert_is_due = false;
}
