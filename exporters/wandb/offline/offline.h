// SPDX-License-Identifier: Apache-2.0
// Writes records as run directories that `wandb sync` uploads:
// DIRECTORY/offline-run-YYYYMMDD_HHMMSS-ID/run-ID.wandb with files/ beside it.
//
// The time in the name is that of the RUN record (UTC), so that the same records make the same
// directory. Everything an artifact is made of is copied into it (artifacts/), with absolute paths
// in the log, so that what it came from may change and the directory may not be moved. Steps begin
// at 0 in each directory. One thread at a time; several processes may share DIRECTORY as long as
// they write different runs.
//
// A run that was finished and begins again, or whose log was taken away, goes on in a new
// directory of a later time; `wandb sync` appends its rows to those of the first. When a directory
// of that name is there and no checkpoint knows it, a finished export (content: tracking) takes the
// next free second, since it is another export; else the inputs are being read again from their
// start: the old directory is renamed to replaced-NAME.N, which `wandb sync` passes over, so that
// nothing is lost and nothing is sent twice.
#pragma once

#include "exporters/wandb/options.h"

struct wandb_offline; // opaque

// Creates the directory when it is not there.
enum status wandb_offline_open(struct wandb_offline **offline, const struct wandb_config *config,
                               const char *site, struct error *error) MUST_USE;
void wandb_offline_close(struct wandb_offline *offline); // NULL is fine

// Appends; what a failed call wrote is cut off again, so that the same records can come again
// (only damaged records are a permanent failure). What it returned OK for is on the disk (fsync).
// Records with a sequence that was done are skipped. An artifact whose files cannot be read is
// left out with a warning. Where `wandb sync` had marked a log as uploaded, more of it takes the
// mark away. `last` without a FINISH before leaves the run open: `wandb sync` then ends it with
// exit code 1.
enum status wandb_offline_send(struct wandb_offline *offline, struct slice records, bool last,
                               struct send_outcome *outcome, struct error *error) MUST_USE;

// Each run's file and its length, so that after a crash it is cut back to where the checkpoint was
// and goes on there.
void wandb_offline_delivered(const struct wandb_offline *offline, struct buffer *out);
enum status wandb_offline_resume(struct wandb_offline *offline, struct slice delivered,
                                 struct error *error) MUST_USE;
