// SPDX-License-Identifier: Apache-2.0
// The end of a C++ program by an exception that nobody caught, as its run-time library writes it.
//
//     terminate called after throwing an instance of 'c10::DistBackendError'
//       what():  [Rank 1] Watchdog caught collective operation timeout: …
#pragma once

#include "receivers/decode/app_log/rank_words.h"
#include "receivers/decode/line/reading.h"

// Looks at the front of the message only.
enum read_result terminate_read(const struct frame *frame, struct slice message,
                                struct reading *reading);
