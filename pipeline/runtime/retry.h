// SPDX-License-Identifier: Apache-2.0
// When a delivery that failed is tried again, and when it is given up. Waits grow by the configured
// factor and are spread at random, so that many senders do not come back at once; a sink may ask
// for longer ones, within a bound. Not thread-safe.
#pragma once

#include "pipeline/component/sending.h"

struct retry {
    const struct sending_retry *config;
    uint64_t give_up_ns;       // how long deliveries may fail one after another; 0: for ever
    uint64_t at_ns;            // monotonic; 0: at once
    uint64_t asked_until_ns;   // the sink asked for nothing before this moment (monotonic), or 0
    uint64_t backoff_ns;       // the last wait, before it was spread
    uint64_t failing_since_ns; // 0: it works
    uint64_t random;
};

// `patience_ns`: how long deliveries may fail one after another without a `max_elapsed_time`; 0:
// for ever.
void retry_init(struct retry *retry, const struct sending_retry *config, uint64_t patience_ns);
// A delivery failed, and the sink asked for `asked_ns`, or 0. False when it is to be given up; else
// `at_ns` says when it is tried again: for the last time when it would be given up, or when the
// sink asked for later.
bool retry_failed(struct retry *retry, uint64_t asked_ns) MUST_USE;
// The sink answers.
void retry_reset(struct retry *retry);
// The wall clock's moment before which the sink asked for nothing, for a checkpoint; 0 when it did
// not.
uint64_t retry_asked_until_unix_ns(const struct retry *retry);
// The same after a start: nothing leaves before it, nor longer than max_interval from now.
void retry_hold_until(struct retry *retry, uint64_t unix_ns);
