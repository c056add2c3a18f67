// SPDX-License-Identifier: Apache-2.0
// Sends the alerts of a segment.
//
// One mutation each, as wandb 0.31.0 sends them. One that is refused, or fails WANDB_TRIES_MAX
// times, is said and left out; the run goes on without it. The server drops an alert with a title
// that it had within `wait`.
#include "exporters/wandb/online/parts.h"
#include "exporters/wandb/record.h"

#include "base/log.h"

enum { NS_PER_MS = 1000000 };

static enum wandb_answer alert_send(struct wandb_online *online, const struct wandb_run *run,
                                    const struct wandb_record *record, struct error *error) {
    assert(record->kind == WANDB_ALERT && run->begun);
    static const char document[] =
        "mutation($entityName:String!,$projectName:String!,$runName:String!,$title:String!,"
        "$text:String!,$severity:AlertSeverity,$waitDuration:Duration){notifyScriptableRunAlert("
        "input:{entityName:$entityName,projectName:$projectName,runName:$runName,title:$title,"
        "text:$text,severity:$severity,waitDuration:$waitDuration}){success}}";
    struct wandb_query query;
    json_t *data;
    wandb_query_begin(&query, "notifyScriptableRunAlert", document);
    wandb_query_text(&query, "entityName", run->entity);
    wandb_query_text(&query, "projectName", run->project);
    wandb_query_text(&query, "runName", run->name);
    wandb_query_slice(&query, "title", record->key);
    wandb_query_slice(&query, "text", record->file);
    wandb_query_slice(&query, "severity", record->type);
    json_field_int(&query.json, "waitDuration", online->config->alert_wait.ns / NS_PER_MS);
    enum wandb_answer answer = wandb_query_send(&online->client, &query, &data, error);
    const json_t *success = wandb_json_at(data, "notifyScriptableRunAlert", "success", NULL);
    if (answer == WANDB_DONE && !json_is_true(success)) {
        error_set(error, STATUS_IO, "notifyScriptableRunAlert: the server did not send it");
        answer = WANDB_REFUSED;
    }
    json_decref(data);
    return answer;
}

enum wandb_answer wandb_run_alerts(struct wandb_online *online, struct wandb_run *run,
                                   const struct wandb_segment *segment, struct error *error) {
    struct wandb_cursor cursor = wandb_cursor_begin(run, segment);
    const struct wandb_record *record = &cursor.record;
    while (wandb_cursor_next(run, segment, &cursor)) {
        if (record->kind != WANDB_ALERT || cursor.is_known || record->sequence <= run->alerts_done)
            continue;
        enum wandb_answer answer = alert_send(online, run, record, error);
        if (answer == WANDB_LATER && ++run->alert_tries < WANDB_TRIES_MAX)
            return answer;
        if (answer != WANDB_DONE)
            log_write(LOG_ERROR, (struct log_site){"C3412", online->site},
                      "the alert \"%.*s\" of run %s is left out: %s", (int)record->key.size,
                      record->key.data, run->id, error->message);
        run->alerts_done = record->sequence;
        run->alert_tries = 0;
    }
    return WANDB_DONE;
}
