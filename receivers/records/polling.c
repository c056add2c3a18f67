// SPDX-License-Identifier: Apache-2.0
// Rounds at an interval, and the state of each target: logged when it changes.
#include "receivers/records/polling.h"

#include "base/clock.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>

static const uint64_t WAIT_MAX_NS = 500ull * 1000 * 1000;
static const uint64_t MS_NS = 1000ull * 1000;

static const struct metric_family polls = {
    .name = "culprit_receiver_polls_total",
    .help = "Times that a receiver asked a target, by whether it answered.",
    .type = METRIC_COUNTER};

static const struct metric_family target_up = {
    .name = "culprit_receiver_target_up",
    .help = "Whether a target that a receiver asks answered when it was asked last.",
    .type = METRIC_GAUGE};

// Until the time has come or the feed is stopping.
static void wait_until(const struct feed *feed, uint64_t until_ns) {
    for (;;) {
        uint64_t now = clock_monotonic_ns();
        if (now >= until_ns || feed_stopping(feed))
            return;
        uint64_t wait_ns = until_ns - now;
        struct pollfd stop = {.fd = feed_stop_descriptor(feed), .events = POLLIN};
        int wait_ms = wait_ns > 1000 * WAIT_MAX_NS ? 500 * 1000 : (int)(wait_ns / MS_NS) + 1;
        if (poll(&stop, 1, wait_ms) < 0)
            assert(errno == EINTR || errno == EAGAIN || errno == ENOMEM);
    }
}

static void set_next(struct polling *polling, uint64_t now_ns) {
    polling->next_ns += polling->interval_ns;
    if (polling->next_ns <= now_ns)
        polling->next_ns = now_ns + polling->interval_ns;
}

bool polling_wait(struct polling *polling, struct feed *feed) {
    assert(polling->interval_ns > 0);
    wait_until(feed, polling->next_ns);
    while (!feed_stopping(feed) && feed_blocked(feed))
        (void)feed_wait(feed, WAIT_MAX_NS);
    if (feed_stopping(feed))
        return false;
    set_next(polling, clock_monotonic_ns());
    return true;
}

bool polling_due(struct polling *polling, uint64_t now_ns) {
    assert(polling->interval_ns > 0);
    if (now_ns < polling->next_ns)
        return false;
    set_next(polling, now_ns);
    return true;
}

void polled_begin(struct polled *polled, const char *receiver_id, const char *name,
                  struct log_site failed, struct log_site answered) {
    assert(receiver_id != NULL && name != NULL);
    *polled = (struct polled){
        .name = name,
        .failed = failed,
        .answered = answered,
        .answers = METRIC(&polls, "receiver", receiver_id, "target", name, "outcome", "answered"),
        .failures = METRIC(&polls, "receiver", receiver_id, "target", name, "outcome", "failed"),
        .up = METRIC(&target_up, "receiver", receiver_id, "target", name),
    };
    metric_set(polled->up, 0);
}

void polled_failed(struct polled *polled, const char *reason) {
    assert(polled->name != NULL && reason != NULL);
    metric_add(polled->failures, 1);
    metric_set(polled->up, 0);
    if (polled->failed_in_a_row++ == 0)
        log_write(LOG_WARN, polled->failed, "%s does not answer as it should: %s", polled->name,
                  reason);
}

void polled_absent(struct polled *polled) {
    assert(polled->name != NULL);
    metric_set(polled->up, 0);
}

void polled_answered(struct polled *polled) {
    assert(polled->name != NULL);
    metric_add(polled->answers, 1);
    metric_set(polled->up, 1);
    if (polled->failed_in_a_row > 0)
        log_write(LOG_INFO, polled->answered, "%s answers again", polled->name);
    polled->failed_in_a_row = 0;
}
