// SPDX-License-Identifier: Apache-2.0
#include "pipeline/component/sending.h"

static const struct option BATCH_ROWS[] = {
    OPTION(struct sending_batch, flush_timeout, OPTION_DURATION, .default_value = "200ms",
           .max = 3600,
           .help = "how long events wait for others to leave with them; verdicts do not wait"),
    OPTION(struct sending_batch, max_size, OPTION_SIZE, .default_value = "1MiB", .min = 1,
           .max = 64 << 20, .help = "what waits leaves as soon as it is this large"),
};

const struct option sending_queue_rows[2] = {
    OPTION(struct sending_queue, queue_size, OPTION_SIZE, .default_value = "128MiB", .min = 1024,
           .max = 1e13,
           .help =
               "bytes that may wait; when they do, the pipelines that feed it wait, and no other"),
    OPTION(struct sending_queue, batch, OPTION_GROUP, .rows = BATCH_ROWS,
           .row_count = OPTION_COUNT(BATCH_ROWS), .help = "how what waits is put together"),
};

const struct option sending_retry_rows[6] = {
    OPTION(struct sending_retry, enabled, OPTION_BOOL, .default_value = "true",
           .help = "false: what could not be delivered at once is dropped, and counted"),
    OPTION(struct sending_retry, initial_interval, OPTION_DURATION, .default_value = "5s",
           .min = 0.001, .max = 3600, .help = "wait before the first repetition"),
    OPTION(struct sending_retry, multiplier, OPTION_RATIO, .default_value = "1.5", .min = 1,
           .max = 100, .help = "each further wait is this much longer"),
    OPTION(struct sending_retry, randomization_factor, OPTION_RATIO, .default_value = "0.5",
           .max = 1, .help = "each wait is made longer or shorter by up to this share, at random"),
    OPTION(struct sending_retry, max_interval, OPTION_DURATION, .default_value = "30s",
           .min = 0.001, .max = 86400, .help = "no wait is longer, whatever the sink asks for"),
    OPTION(struct sending_retry, max_elapsed_time, OPTION_DURATION, .default_value = "0s",
           .max = 31536000,
           .help =
               "what could not be delivered for this long is dropped, and counted; 0s: never, or "
               "over inputs that end after service.shutdown_timeout"),
};

#define SECONDS INT64_C(1000000000)

const struct sending_config sending_defaults = {
    .timeout = {5 * SECONDS},
    .retry = {.enabled = true,
              .initial_interval = {SECONDS / 4},
              .multiplier = 1.5,
              .randomization_factor = 0.5,
              .max_interval = {30 * SECONDS},
              .max_elapsed_time = {0}},
    .queue = {.queue_size = {128 << 20},
              .batch = {.flush_timeout = {SECONDS / 5}, .max_size = {1 << 20}}},
};
