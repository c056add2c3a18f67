// SPDX-License-Identifier: Apache-2.0
#include "pipeline/runtime/retry.h"

#include "base/clock.h"

#include <assert.h>

void retry_init(struct retry *retry, const struct sending_retry *config, uint64_t patience_ns) {
    assert(config != NULL);
    uint64_t most = (uint64_t)config->max_elapsed_time.ns;
    *retry = (struct retry){.config = config,
                            .give_up_ns = most > 0 ? most : patience_ns,
                            .random = clock_monotonic_ns() | 1};
}

// Between 1 - factor and 1 + factor (xorshift, Marsaglia 2003).
static double spread(struct retry *retry) {
    retry->random ^= retry->random << 13;
    retry->random ^= retry->random >> 7;
    retry->random ^= retry->random << 17;
    double unit = (double)(retry->random >> 11) / (double)(UINT64_C(1) << 53);
    return 1 + retry->config->randomization_factor * (2 * unit - 1);
}

static uint64_t bounded(const struct retry *retry, uint64_t wait_ns) {
    uint64_t most = (uint64_t)retry->config->max_interval.ns;
    return wait_ns < most ? wait_ns : most;
}

// Not longer than `left_ns`, when the sink did not ask for it.
static uint64_t next_wait(struct retry *retry, uint64_t asked_ns, uint64_t left_ns) {
    assert(retry->config->multiplier >= 1);
    double wait = retry->backoff_ns == 0 ? (double)retry->config->initial_interval.ns
                                         : (double)retry->backoff_ns * retry->config->multiplier;
    if (wait > (double)retry->config->max_interval.ns)
        wait = (double)retry->config->max_interval.ns;
    retry->backoff_ns = (uint64_t)wait;
    uint64_t spread_ns = (uint64_t)(wait * spread(retry));
    spread_ns = spread_ns < left_ns ? spread_ns : left_ns;
    return spread_ns > asked_ns ? spread_ns : asked_ns;
}

bool retry_failed(struct retry *retry, uint64_t asked_ns) {
    assert(retry->config != NULL);
    uint64_t now = clock_monotonic_ns(), most = retry->give_up_ns;
    if (retry->failing_since_ns == 0)
        retry->failing_since_ns = now;
    assert(now >= retry->failing_since_ns);
    uint64_t elapsed = now - retry->failing_since_ns;
    if (!retry->config->enabled || (most > 0 && elapsed >= most)) {
        retry->failing_since_ns = retry->backoff_ns = retry->at_ns = 0;
        return false;
    }
    asked_ns = bounded(retry, asked_ns);
    if (asked_ns > 0)
        retry->asked_until_ns = now + asked_ns;
    retry->at_ns = now + next_wait(retry, asked_ns, most > 0 ? most - elapsed : UINT64_MAX);
    return true;
}

void retry_reset(struct retry *retry) {
    assert(retry->config != NULL);
    retry->failing_since_ns = retry->backoff_ns = retry->at_ns = retry->asked_until_ns = 0;
}

uint64_t retry_asked_until_unix_ns(const struct retry *retry) {
    assert(retry->config != NULL);
    uint64_t now = clock_monotonic_ns();
    return retry->asked_until_ns > now ? clock_unix_ns() + (retry->asked_until_ns - now) : 0;
}

void retry_hold_until(struct retry *retry, uint64_t unix_ns) {
    assert(retry->config != NULL);
    uint64_t now = clock_unix_ns();
    if (unix_ns > now)
        retry->at_ns = retry->asked_until_ns = clock_monotonic_ns() + bounded(retry, unix_ns - now);
}
