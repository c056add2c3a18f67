// SPDX-License-Identifier: Apache-2.0
// Uploads the artifacts of a segment.
//
// One after another. One that is refused, or fails WANDB_TRIES_MAX times, is said and left out; the
// run goes on without it.
#include "exporters/wandb/online/parts.h"
#include "exporters/wandb/record.h"

static enum wandb_answer bring(struct wandb_online *online, struct wandb_run *run,
                               const struct wandb_record *record, uint64_t history_step,
                               struct error *error) {
    assert(run->begun && run->name != NULL);
    const struct wandb_run_names names = {run->entity, run->project, run->name};
    struct wandb_artifact *artifact = &online->artifact;
    if (artifact->sequence != record->sequence &&
        wandb_artifact_prepare(artifact, record, error) != STATUS_OK)
        return WANDB_REFUSED;
    for (bool committed = false; !committed;) {
        enum wandb_answer answer = wandb_artifact_step(artifact, &online->client, &names, record,
                                                       history_step, &committed, error);
        if (answer != WANDB_DONE)
            return answer;
        wandb_keep_alive(online);
    }
    return WANDB_DONE;
}

enum wandb_answer wandb_run_artifacts(struct wandb_online *online, struct wandb_run *run,
                                      const struct wandb_segment *segment, struct error *error) {
    struct wandb_cursor cursor = wandb_cursor_begin(run, segment);
    const struct wandb_record *record = &cursor.record;
    while (wandb_cursor_next(run, segment, &cursor)) {
        if ((record->kind != WANDB_TABLE && record->kind != WANDB_ARTIFACT) || cursor.is_known ||
            record->sequence <= run->artifacts_done)
            continue;
        enum wandb_answer answer = bring(online, run, record, cursor.step, error);
        if (answer == WANDB_LATER)
            return answer;
        if (answer == WANDB_REFUSED)
            wandb_run_leave_out(online, run, record, error);
        wandb_artifact_release(&online->artifact);
        run->artifacts_done = record->sequence;
    }
    return WANDB_DONE;
}
