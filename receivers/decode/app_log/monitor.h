// SPDX-License-Identifier: Apache-2.0
// What a process group's threads write besides the timeout: that a dump is asked for, where the
// failed operation was called, that the watchdog itself stands still, how they end the process.
#pragma once

#include "receivers/decode/app_log/rank_words.h"
#include "receivers/decode/line/reading.h"

enum read_result monitor_dump(struct said *said, struct reading *reading);
// "Received a dump signal due to a collective timeout from  rank 5 …"
enum read_result monitor_dump_from(struct said *said, struct reading *reading);
enum read_result monitor_stack(struct said *said, struct reading *reading);
enum read_result monitor_stuck(struct said *said, struct reading *reading);
enum read_result monitor_gil(struct said *said, struct reading *reading);
// "Rank 3]  remote error detected from rank: 5"
enum read_result monitor_remote(struct said *said, struct reading *reading);
enum read_result monitor_end(struct said *said, struct reading *reading);
// "… watchdog thread terminated with exception: "
enum read_result monitor_terminated(struct said *said, struct reading *reading);
// "Terminating the process after attempting to dump debug info, due to "
enum read_result monitor_terminating(struct said *said, struct reading *reading);
