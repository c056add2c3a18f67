// SPDX-License-Identifier: Apache-2.0
// Carries records to a W&B server: GraphQL, file_stream and signed storage URLs on libcurl.
//
// One thread at a time (the exporter's). Nothing blocks longer than one request's timeout; each
// call makes every request at most once, and what failed is made again when the same records come
// again: what was done of them before is remembered and skipped. So waiting and repeating is the
// sender's business. Protocol: docs of the exporter (README.md) name its sources.
#pragma once

#include "exporters/wandb/options.h"
#include "pipeline/component/component.h"

struct wandb_online; // opaque; a few KiB, and for each run its summary and line counts

// Loads libcurl. No network. `site` names the exporter in logs. STATUS_CONFIG without a key that
// can be used (option, WANDB_API_KEY is only read through ${env:…}, netrc).
enum status wandb_online_open(struct wandb_online **online, const struct wandb_config *config,
                              const char *site, struct error *error) MUST_USE;
void wandb_online_close(struct wandb_online *online); // NULL is fine

// Does what the records say, in order; `last`: nothing follows. On failure `outcome` says whether
// trying again can help and when. Records with a sequence that was done are skipped.
enum status wandb_online_send(struct wandb_online *online, struct slice records, bool last,
                              struct send_outcome *outcome, struct error *error) MUST_USE;

// When the next send should be, with or without records (clock_monotonic_ns): not before
// `not_before_ns` (posts stand post_interval apart, rate limits), and at `again_ns` at the latest
// even with nothing to say (heartbeat; UINT64_MAX: never).
struct send_pace wandb_online_pace(const struct wandb_online *online);

// How far it has come, for the checkpoint, and back; what is in it is this file's business.
void wandb_online_delivered(const struct wandb_online *online, struct buffer *out);
enum status wandb_online_resume(struct wandb_online *online, struct slice delivered,
                                struct error *error) MUST_USE;
