// SPDX-License-Identifier: Apache-2.0
// The export of one finished tracking run, as stormlog's own export to W&B makes it: the same
// summary, rows, tables, charts, page and artifacts (stormlog 0.4.3, export_tracking_run_to_wandb).
//
// Keeps a row of 80 bytes for each event until the end, at most `max_events`, and their contexts,
// at most 256 MiB. One thread at a time.
#pragma once

#include "exporters/report/page/page.h"
#include "exporters/wandb/options.h"
#include "exporters/wandb/record.h"

struct wandb_tracking; // opaque

// Reads the files that the configuration names; STATUS_IO, STATUS_CONFIG when they cannot be used.
enum status wandb_tracking_open(struct wandb_tracking **tracking, const struct wandb_config *config,
                                const char *site, struct error *error) MUST_USE;
void wandb_tracking_close(struct wandb_tracking *tracking); // NULL is fine
// One event, in order.
void wandb_tracking_note(struct wandb_tracking *tracking, const struct event *event);
// Says the whole run, once: RUN first, FINISH last. `page` is culprit's page over the same events;
// empty: there is none. Files that are artifacts must stay until they were sent, some of them are
// in a directory that wandb_tracking_close removes.
void wandb_tracking_say(struct wandb_tracking *tracking, struct slice page,
                        struct wandb_writer *writer);
