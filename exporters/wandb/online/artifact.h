// SPDX-License-Identifier: Apache-2.0
// One artifact on its way to the server, step by step: what was done of it is not done again.
#pragma once

#include "exporters/wandb/media.h"
#include "exporters/wandb/online/graphql.h"

enum wandb_artifact_stage { ARTIFACT_CREATE, ARTIFACT_FILES, ARTIFACT_MANIFEST, ARTIFACT_COMMIT };

// What the server calls the run.
struct wandb_run_names {
    const char *entity, *project, *run;
};

struct wandb_artifact { // none under way when `sequence` is 0
    uint64_t sequence;
    enum wandb_artifact_stage stage;
    struct media_list files;
    int copy; // unlinked file with the contents of all files one behind the other; -1: none
    char digest[MEDIA_DIGEST_SIZE];
    char *id, *base_id;
    char **births;        // of each file: which artifact brought it; NULL: this one
    uint32_t next;        // first file that is not uploaded
    uint64_t next_offset; // where it begins in the copy
    json_t *addresses;    // for the files from `addresses_from` on
    uint32_t addresses_from;
    uint32_t tries; // of the step at hand that failed
    bool renewed;   // a new address was asked for the file at hand
};

void wandb_artifact_release(struct wandb_artifact *artifact); // none under way then
// Begins with a TABLE or ARTIFACT record: reads, copies and hashes its files. No network.
enum status wandb_artifact_prepare(struct wandb_artifact *artifact,
                                   const struct wandb_record *record, struct error *error) MUST_USE;
// The next request or two. DONE: look at `*committed`, and go on when it is not. `record` is the
// one it began with; `history_step`: rows before it.
enum wandb_answer wandb_artifact_step(struct wandb_artifact *artifact, struct wandb_client *client,
                                      const struct wandb_run_names *names,
                                      const struct wandb_record *record, uint64_t history_step,
                                      bool *committed, struct error *error);
