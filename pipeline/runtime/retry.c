// SPDX-License-Identifier: Apache-2.0
// What becomes of a request that failed?
//
// One rule for all that is delivered, live and over inputs that end: it is tried again after a
// wait, dropped, or the sink is dead. Waits grow by the configured factor and are spread at random,
// so that many senders do not come back at once; a sink may ask for longer ones, within a bound.
#include "pipeline/sender_parts.h"

#include "base/clock.h"
#include "base/log.h"

void sender_abandon(struct sender *sender, enum status status, const struct error *error) {
    sender->dead = true;
    sender->failure = status;
    sender->error = *error;
    while (sender->block_count > 0) {
        sender->lost_bytes += sender_block_at(sender, 0)->bytes.size;
        sender->lost_records += sender_block_at(sender, 0)->records;
        atomic_fetch_add(&sender->dropped_records, sender_block_at(sender, 0)->records);
        sender_drop_first_block(sender);
    }
}

void sender_give_up(struct sender *sender, enum status status, const struct error *error) {
    sender_abandon(sender, status, error);
    if (status != STATUS_STOPPED)
        log_write(LOG_ERROR, (struct log_site){"C3001", sender->site}, "cannot deliver: %s",
                  error->message);
}

// Between 1 - factor and 1 + factor (xorshift, Marsaglia 2003).
static double spread(struct sender *sender) {
    sender->random ^= sender->random << 13;
    sender->random ^= sender->random >> 7;
    sender->random ^= sender->random << 17;
    double unit = (double)(sender->random >> 11) / (double)(UINT64_C(1) << 53);
    return 1 + sender->config->retry.randomization_factor * (2 * unit - 1);
}

static uint64_t bounded(const struct sender *sender, uint64_t wait_ns) {
    uint64_t most = (uint64_t)sender->config->retry.max_interval.ns;
    return wait_ns < most ? wait_ns : most;
}

// It must be known after a crash, so it is written down at once.
static void note_asked(struct sender *sender, uint64_t wait_ns) {
    if (wait_ns == 0)
        return;
    sender->asked_until_ns = clock_monotonic_ns() + wait_ns;
    if (sender->with_store)
        sender->wake_checkpoint(sender->wake_context);
}

uint64_t sender_asked_until_unix_ns(const struct sender *sender) {
    uint64_t now = clock_monotonic_ns();
    return sender->asked_until_ns > now ? clock_unix_ns() + (sender->asked_until_ns - now) : 0;
}

void sender_hold_until(struct sender *sender, uint64_t unix_ns) {
    uint64_t now = clock_unix_ns();
    if (unix_ns <= now)
        return;
    sender->asked_until_ns = clock_monotonic_ns() + bounded(sender, unix_ns - now);
    sender->retry_at_ns = sender->asked_until_ns;
}

static uint64_t next_wait(struct sender *sender, const struct send_outcome *outcome) {
    const struct sending_retry *retry = &sender->config->retry;
    double wait = (double)retry->initial_interval.ns;
    if (sender->backoff_ns != 0)
        wait = (double)sender->backoff_ns * retry->multiplier;
    if (wait > (double)retry->max_interval.ns)
        wait = (double)retry->max_interval.ns;
    sender->backoff_ns = (uint64_t)wait;
    uint64_t asked = bounded(sender, outcome->retry_after_ns);
    note_asked(sender, asked);
    uint64_t spread_ns = (uint64_t)(wait * spread(sender));
    return spread_ns > asked ? spread_ns : asked;
}

// Whether what failed is dropped instead of tried again.
static bool is_over(const struct sender *sender) {
    const struct sending_retry *retry = &sender->config->retry;
    uint64_t elapsed = clock_monotonic_ns() - sender->failing_since_ns;
    return !retry->enabled ||
           (retry->max_elapsed_time.ns > 0 && elapsed >= (uint64_t)retry->max_elapsed_time.ns);
}

enum after_failure sender_note_failure(struct sender *sender, enum status status,
                                       const struct error *error,
                                       const struct send_outcome *outcome, uint64_t records) {
    sender->error = *error;
    sender->failure = status;
    if (outcome->permanent) {
        sender_give_up(sender, status, error);
        return SINK_IS_DEAD;
    }
    if (sender->failing_since_ns == 0)
        sender->failing_since_ns = clock_monotonic_ns();
    if (is_over(sender)) {
        log_write(LOG_ERROR, (struct log_site){"C3004", sender->site},
                  "what could not be delivered is dropped (%llu records): %s",
                  (unsigned long long)records, error->message);
        sender->failing_since_ns = sender->backoff_ns = sender->retry_at_ns = 0;
        return DROP_IT;
    }
    sender->retry_at_ns = clock_monotonic_ns() + next_wait(sender, outcome);
    log_write(LOG_WARN, (struct log_site){"C3002", sender->site},
              "cannot deliver now, will try again: %s", error->message);
    return TRY_AGAIN;
}

void sender_note_success(struct sender *sender) {
    if (sender->failing_since_ns != 0)
        log_write(LOG_INFO, (struct log_site){"C3003", sender->site}, "delivers again");
    sender->failing_since_ns = sender->backoff_ns = sender->retry_at_ns = 0;
    sender->asked_until_ns = 0;
    sender->error.message[0] = '\0';
    sender->failure = STATUS_OK;
}
