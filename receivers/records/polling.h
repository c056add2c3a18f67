// SPDX-License-Identifier: Apache-2.0
// What receivers share that ask others at an interval: when to ask again, and who does not answer.
//
// Used by the receiver's own thread.
#pragma once

#include "base/log.h"
#include "base/metrics/metrics.h"
#include "pipeline/component/feed.h"

// Rounds begin an interval apart. One that took longer than the interval delays the next, and what
// was missed is left out: nobody is asked twice in a row to catch up.
struct polling {
    uint64_t interval_ns;
    uint64_t next_ns; // clock_monotonic_ns; 0: at once
};

// Waits until the next round is due and the pipelines take records; false once the feed is
// stopping. The first round is at once.
bool polling_wait(struct polling *polling, struct feed *feed);

// The same for one that cannot wait here since others are asked meanwhile: whether its round is due
// at `now_ns`; the next one is then set.
bool polling_due(struct polling *polling, uint64_t now_ns);

// One that is asked.
struct polled {
    const char *name;         // for messages: no secret in it; lives as long as this
    struct log_site failed;   // C-code of "does not answer"
    struct log_site answered; // C-code of "answers again"
    struct metric *answers;
    struct metric *failures;
    struct metric *up;
    uint64_t failed_in_a_row;
};

// Finds the counters culprit_receiver_polls_total{receiver, target, outcome} and the gauge
// culprit_receiver_target_up{receiver, target}, which is 0 until the first answer.
void polled_begin(struct polled *polled, const char *receiver_id, const char *name,
                  struct log_site failed, struct log_site answered);
// It did not answer, or not with what was asked for: counted; logged when it had answered before,
// or at first, with `reason` (a clause without secrets).
void polled_failed(struct polled *polled, const char *reason);
// It is not there, which is no trouble: it does not count as asked, and is not up.
void polled_absent(struct polled *polled);
// It did: counted; logged when it had not.
void polled_answered(struct polled *polled);
