// SPDX-License-Identifier: Apache-2.0
// Which artifacts of a segment are still to be brought, and which are given up?
//
// One after another. One that is refused, or fails WANDB_TRIES_MAX times, is said and left out; the
// run goes on without it.
#include "exporters/wandb/online/parts.h"

static enum wandb_answer bring(struct wandb_online *online, struct wandb_run *run,
                               const struct wandb_record *record, uint64_t history_step,
                               struct error *error) {
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
    struct wandb_place_in_run place = run->place;
    struct slice at = segment->records;
    struct wandb_record record;
    while (wandb_segment_next(run, segment, &at, run->stream_done, &record)) {
        uint64_t step = wandb_step_at(run, &place, &record);
        bool known = wandb_record_is_row(&record) && wandb_row_is_known(run, &record);
        wandb_place_pass(run, &record, &place);
        if ((record.kind != WANDB_TABLE && record.kind != WANDB_ARTIFACT) || known ||
            record.sequence <= run->artifacts_done)
            continue;
        enum wandb_answer answer = bring(online, run, &record, step, error);
        if (answer == WANDB_LATER)
            return answer;
        if (answer == WANDB_REFUSED)
            wandb_run_leave_out(online, run, &record, error);
        wandb_artifact_release(&online->artifact);
        run->artifacts_done = record.sequence;
    }
    return WANDB_DONE;
}
