// SPDX-License-Identifier: Apache-2.0
// How an exporter's deliveries wait, are repeated and time out: the options that all exporters
// share. Names and defaults are those of the OpenTelemetry Collector's exporters, but for a queue
// that is counted in bytes, blocks instead of dropping, and never gives up on its own.
#pragma once

#include "config/option.h"

struct sending_retry {
    bool enabled;
    struct duration initial_interval;
    double multiplier;
    double randomization_factor;
    struct duration max_interval;
    struct duration max_elapsed_time; // 0: never gives up
};

struct sending_batch {
    struct duration flush_timeout;
    struct byte_size max_size;
};

struct sending_queue {
    struct byte_size queue_size;
    struct sending_batch batch;
};

struct sending_config {
    struct duration timeout; // of one delivery
    struct sending_retry retry;
    struct sending_queue queue;
};

extern const struct option sending_queue_rows[2];
extern const struct option sending_retry_rows[6];

// The rows for a `struct sending_config` that is the field `field` of `owner`; the timeout is a
// text such as "5s".
// NOLINTBEGIN(bugprone-macro-parentheses): names of types and members take none
#define SENDING_OPTIONS(owner, field, timeout_default)                                             \
    {.name = "timeout",                                                                            \
     .type = OPTION_DURATION,                                                                      \
     .offset = offsetof(owner, field.timeout),                                                     \
     .default_value = timeout_default,                                                             \
     .min = 0.001,                                                                                 \
     .max = 3600,                                                                                  \
     .help = "how long one delivery may take"},                                                    \
        {.name = "retry_on_failure",                                                               \
         .type = OPTION_GROUP,                                                                     \
         .offset = offsetof(owner, field.retry),                                                   \
         .rows = sending_retry_rows,                                                               \
         .row_count = OPTION_COUNT(sending_retry_rows),                                            \
         .help = "how a delivery that failed is tried again"},                                     \
    {                                                                                              \
        .name = "sending_queue", .type = OPTION_GROUP, .offset = offsetof(owner, field.queue),     \
        .rows = sending_queue_rows, .row_count = OPTION_COUNT(sending_queue_rows),                 \
        .help = "what waits to be delivered; kept in the store when there is one"                  \
    }
// NOLINTEND(bugprone-macro-parentheses)

// What an exporter without these options gets; it tries again sooner, since its sink is near.
extern const struct sending_config sending_defaults;
