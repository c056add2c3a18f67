// SPDX-License-Identifier: Apache-2.0
// What the watchdog of a process group writes when a collective operation does not end in time:
// that it waited, and which operations were enqueued and completed last. They become EVENT_APP_LINE
// (struct app_line).
#pragma once

#include "receivers/decode/app_log/rank_words.h"
#include "receivers/decode/line/reading.h"

enum read_result watchdog_timeout(struct said *said, struct reading *reading);
// "… work: 7, last enqueued NCCL work: 8, last completed NCCL work: 6."
enum read_result watchdog_status(struct said *said, struct reading *reading);
// "last enqueued NCCL work: 8, last completed NCCL work: 6."
enum read_result watchdog_progress(struct said *said, struct reading *reading);
// "failure detected by watchdog at work sequence id: 7 PG status: last enqueued work: 8, …"
enum read_result watchdog_group_status(struct said *said, struct reading *reading);

// The two numbers at the front of "8, last completed NCCL work: 6"; what cannot be one becomes
// APP_NUMBER_UNKNOWN. False: they are not there.
bool watchdog_take_progress(struct slice *text, int64_t *enqueued, int64_t *completed);
