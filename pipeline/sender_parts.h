// SPDX-License-Identifier: Apache-2.0
// What the parts of sender.h share among themselves. All under the sender's lock.
#pragma once

#include "pipeline/runtime/sender.h"

// -- sender.c --
void sender_drop_first_block(struct sender *sender);

// -- sender_retry.c --
enum after_failure { TRY_AGAIN, DROP_IT, SINK_IS_DEAD };

// Of a request of so many records. With TRY_AGAIN `retry_at_ns` says when.
enum after_failure sender_note_failure(struct sender *sender, enum status status,
                                       const struct error *error,
                                       const struct send_outcome *outcome, uint64_t records);
void sender_note_success(struct sender *sender);
// Nothing more is delivered: what waits and what comes is dropped and counted.
void sender_abandon(struct sender *sender, enum status status, const struct error *error);
// The same, and says so.
void sender_give_up(struct sender *sender, enum status status, const struct error *error);
