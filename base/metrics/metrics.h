// SPDX-License-Identifier: Apache-2.0
// Counters and gauges of culprit's own running, by name and labels, for the life of the process: a
// component that is reloaded goes on where it was.
//
// Finding one takes a lock and is done once, at start; adding is one atomic instruction. Names and
// units follow the OpenTelemetry Collector's and Prometheus' rules (docs/metrics.md).
#pragma once

#include "base/metrics/exposition.h"

#include <stdatomic.h>

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_INFO };

// One family; static data, `name` and `help` live for ever. Two of the same name are one family.
struct metric_family {
    const char *name; // "culprit_receiver_accepted_events_total"; counters end in _total
    const char *help; // one sentence with its full stop
    enum metric_type type;
    uint32_t divisor; // what is shown is value / divisor, for nanoseconds and ratios; 0: value
};

struct metric {
    atomic_uint_fast64_t value; // a gauge's is an int64_t
};

enum {
    METRIC_LABELS_MAX = 6,
    METRIC_SERIES_MAX = 20000,
    METRIC_FAMILIES_MAX = 512,
    METRIC_COLLECTORS_MAX = 256,
};

// The series with these labels, made when new. `labels` are pairs of name and value, ended by NULL,
// in any order; values are copied. When METRIC_SERIES_MAX is reached a series that is not exposed
// is returned and culprit_metric_series_left_out_total counts it. Valid until metrics_release. Any
// thread; O(log series of the family), O(series) when it is new.
struct metric *metric_find(const struct metric_family *family, const char *const *labels);
#define METRIC(family, ...) metric_find((family), (const char *const[]){__VA_ARGS__, NULL})
// One without labels.
#define METRIC_PLAIN(family) metric_find((family), (const char *const[]){NULL})

static inline void metric_add(struct metric *metric, uint64_t amount) {
    atomic_fetch_add_explicit(&metric->value, amount, memory_order_relaxed);
}
static inline void metric_set(struct metric *metric, uint64_t value) {
    atomic_store_explicit(&metric->value, value, memory_order_relaxed);
}
static inline uint64_t metric_value(const struct metric *metric) {
    return atomic_load_explicit(&metric->value, memory_order_relaxed);
}
// Gauges that are only known when they are asked for: called before each exposition, on its
// thread, one at a time; it may find, set and remove metrics but not come back here. Removed by the
// same pair; when that returns, no call is under way.
void metrics_on_collect(void (*collect)(void *context), void *context);
void metrics_remove_collect(void (*collect)(void *context), void *context);
// Takes away the series of this family whose label `label` has `value` (a partition that left). Who
// still holds one may go on writing to it; found again, it is back: a gauge at 0, a counter where
// it was.
void metric_remove(const struct metric_family *family, const char *label, const char *value);

// All families by name, their series by labels; process_* and culprit_build_info come with it.
// Begins and ends the exposition is the caller's. Any thread, one at a time.
void metrics_expose(struct exposition *exposition);
// Once, at the start. Texts live for ever.
void metrics_set_build(const char *version, const char *revision);
const char *metrics_build_version(void); // "" before that
void metrics_release(void);              // for tests and at exit, with no other thread running
