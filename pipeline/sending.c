// SPDX-License-Identifier: Apache-2.0
#include "pipeline/sending.h"

static const struct option BATCH_ROWS[] = {
    {.name = "flush_timeout",
     .type = OPTION_DURATION,
     .offset = offsetof(struct sending_batch, flush_timeout),
     .default_value = "200ms",
     .max = 3600,
     .help = "how long events wait for others to leave with them; verdicts do not wait"},
    {.name = "max_size",
     .type = OPTION_SIZE,
     .offset = offsetof(struct sending_batch, max_size),
     .default_value = "1MiB",
     .min = 1,
     .max = 64 << 20,
     .help = "what waits leaves as soon as it is this large"},
};

const struct option sending_queue_rows[] = {
    {.name = "queue_size",
     .type = OPTION_SIZE,
     .offset = offsetof(struct sending_queue, queue_size),
     .default_value = "128MiB",
     .min = 1024,
     .max = 1e13,
     .help = "bytes that may wait; when they do, the pipelines that feed it wait, and no other"},
    {.name = "batch",
     .type = OPTION_GROUP,
     .offset = offsetof(struct sending_queue, batch),
     .rows = BATCH_ROWS,
     .row_count = OPTION_COUNT(BATCH_ROWS),
     .help = "how what waits is put together"},
};
const size_t sending_queue_row_count = OPTION_COUNT(sending_queue_rows);
_Static_assert(OPTION_COUNT(sending_queue_rows) == 2, "SENDING_OPTIONS says how many there are");

const struct option sending_retry_rows[] = {
    {.name = "enabled",
     .type = OPTION_BOOL,
     .offset = offsetof(struct sending_retry, enabled),
     .default_value = "true",
     .help = "false: what could not be delivered at once is dropped, and counted"},
    {.name = "initial_interval",
     .type = OPTION_DURATION,
     .offset = offsetof(struct sending_retry, initial_interval),
     .default_value = "5s",
     .min = 0.001,
     .max = 3600,
     .help = "wait before the first repetition"},
    {.name = "multiplier",
     .type = OPTION_RATIO,
     .offset = offsetof(struct sending_retry, multiplier),
     .default_value = "1.5",
     .min = 1,
     .max = 100,
     .help = "each further wait is this much longer"},
    {.name = "randomization_factor",
     .type = OPTION_RATIO,
     .offset = offsetof(struct sending_retry, randomization_factor),
     .default_value = "0.5",
     .max = 1,
     .help = "each wait is made longer or shorter by up to this share, at random"},
    {.name = "max_interval",
     .type = OPTION_DURATION,
     .offset = offsetof(struct sending_retry, max_interval),
     .default_value = "30s",
     .min = 0.001,
     .max = 86400,
     .help = "no wait is longer, whatever the sink asks for"},
    {.name = "max_elapsed_time",
     .type = OPTION_DURATION,
     .offset = offsetof(struct sending_retry, max_elapsed_time),
     .default_value = "0s",
     .max = 31536000,
     .help = "what could not be delivered for this long is dropped, and counted; 0s: never"},
};
const size_t sending_retry_row_count = OPTION_COUNT(sending_retry_rows);
_Static_assert(OPTION_COUNT(sending_retry_rows) == 6, "SENDING_OPTIONS says how many there are");

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
