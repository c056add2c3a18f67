// SPDX-License-Identifier: Apache-2.0
#include "pipeline/plan/rows.h"

static const char *const LOG_LEVELS[] = {"debug", "info", "warn", "error", NULL};
static const char *const LOG_ENCODINGS[] = {"auto", "console", "json", NULL};
static const char *const PRESETS[] = {"none", "memory", "all", NULL};

static const struct option LOG_ROWS[] = {
    {.name = "level",
     .type = OPTION_CHOICE,
     .offset = offsetof(struct log_config, level),
     .default_value = "info",
     .choices = LOG_LEVELS,
     .help = "the least severe messages of culprit's own that are written"},
    {.name = "encoding",
     .type = OPTION_CHOICE,
     .offset = offsetof(struct log_config, encoding),
     .default_value = "auto",
     .choices = LOG_ENCODINGS,
     .help = "how they are written; auto: console on a terminal, else json"},
};

static const struct option METRICS_ROWS[] = {
    {.name = "endpoint",
     .type = OPTION_TEXT,
     .offset = offsetof(struct metrics_config, endpoint),
     .claim = CLAIM_ENDPOINT,
     .help = "HOST:PORT where Prometheus finds culprit's own metrics under /metrics; the usual one "
             "is 127.0.0.1:8888; without it there is none"},
};

static const struct option TELEMETRY_ROWS[] = {
    {.name = "logs",
     .type = OPTION_GROUP,
     .offset = offsetof(struct telemetry_config, logs),
     .rows = LOG_ROWS,
     .row_count = OPTION_COUNT(LOG_ROWS),
     .help = "messages on standard error"},
    {.name = "metrics",
     .type = OPTION_GROUP,
     .offset = offsetof(struct telemetry_config, metrics),
     .rows = METRICS_ROWS,
     .row_count = OPTION_COUNT(METRICS_ROWS),
     .help = "counters of culprit's own running"},
};

static const struct option SERVICE_ROWS[] = {
    {.name = "extensions",
     .type = OPTION_TEXT_LIST,
     .offset = offsetof(struct service_config, extensions),
     .help = "ids of the extensions that are started"},
    {.name = "telemetry",
     .type = OPTION_GROUP,
     .offset = offsetof(struct service_config, telemetry),
     .rows = TELEMETRY_ROWS,
     .row_count = OPTION_COUNT(TELEMETRY_ROWS),
     .help = "what culprit says of its own running"},
    {.name = "batch_size",
     .type = OPTION_INT,
     .offset = offsetof(struct service_config, batch_size),
     .default_value = "1024",
     .min = 1,
     .max = 65536,
     .help = "events that pass through a pipeline at once, at most; results do not depend on it"},
    {.name = "checkpoint_interval",
     .type = OPTION_DURATION,
     .offset = offsetof(struct service_config, checkpoint_interval),
     .default_value = "5s",
     .min = 0.01,
     .max = 3600,
     .help = "with a store: how often what changed is written; what came after the last time is "
             "read again after a crash"},
    {.name = "shutdown_timeout",
     .type = OPTION_DURATION,
     .offset = offsetof(struct service_config, shutdown_timeout),
     .default_value = "20s",
     .min = 0.1,
     .max = 3600,
     .help = "how long stopping may take: reading to the end, judging, delivering"},
};

static const struct option PIPELINE_ROWS[] = {
    {.name = "receivers",
     .type = OPTION_TEXT_LIST,
     .offset = offsetof(struct pipeline_config, receivers),
     .required = true,
     .help = "ids of the receivers it reads"},
    {.name = "preset",
     .type = OPTION_CHOICE,
     .offset = offsetof(struct pipeline_config, preset),
     .default_value = "none",
     .choices = PRESETS,
     .help = "memory stands for job_filter, rank_group, align, spike_detect, first_cause and "
             "phase_attribution; all for these, spans, the detectors nccl_hang, xid_correlation, "
             "pod_evicted, hbm_ecc, thermal_throttle and pcie_aer, and incident. They stand before "
             "the processors listed"},
    {.name = "processors",
     .type = OPTION_TEXT_LIST,
     .offset = offsetof(struct pipeline_config, processors),
     .help = "ids of the processors, in the order in which they see each batch"},
    {.name = "exporters",
     .type = OPTION_TEXT_LIST,
     .offset = offsetof(struct pipeline_config, exporters),
     .required = true,
     .help = "ids of the exporters it writes to"},
    {.name = "evaluate_every",
     .type = OPTION_DURATION,
     .offset = offsetof(struct pipeline_config, timing.evaluate_every),
     .default_value = "10s",
     .min = 0.01,
     .max = 86400,
     .help = "verdicts are made at each multiple of this event time"},
    {.name = "allowed_lateness",
     .type = OPTION_DURATION,
     .offset = offsetof(struct pipeline_config, timing.allowed_lateness),
     .default_value = "10s",
     .max = 86400,
     .help = "how long an evaluation waits for events that come late"},
    {.name = "settle",
     .type = OPTION_DURATION,
     .offset = offsetof(struct pipeline_config, timing.settle),
     .default_value = "10s",
     .max = 86400,
     .help = "how long a first name must stand before it is said"},
    {.name = "idle_timeout",
     .type = OPTION_DURATION,
     .offset = offsetof(struct pipeline_config, timing.idle_timeout),
     .default_value = "60s",
     .min = 0.1,
     .max = 86400,
     .help = "a source silent for this long no longer holds evaluations back"},
};

// The first ones are those of PRESET_MEMORY.
static const char *const PROCESSORS[] = {
    "job_filter",      "rank_group",        "align",   "spike_detect",
    "first_cause",     "phase_attribution", "spans",   "nccl_hang",
    "xid_correlation", "pod_evicted",       "hbm_ecc", "thermal_throttle",
    "pcie_aer",        "incident",
};
enum { MEMORY_PROCESSORS = 6 };

struct option_rows plan_service_rows(void) {
    return (struct option_rows){SERVICE_ROWS, OPTION_COUNT(SERVICE_ROWS)};
}

struct option_rows plan_pipeline_rows(void) {
    return (struct option_rows){PIPELINE_ROWS, OPTION_COUNT(PIPELINE_ROWS)};
}

struct text_list plan_preset_processors(enum preset preset) {
    static const uint32_t COUNTS[] = {0, MEMORY_PROCESSORS, OPTION_COUNT(PROCESSORS)};
    return (struct text_list){PROCESSORS, COUNTS[preset]};
}

const char *plan_section(enum component_kind kind) {
    static const char *const SECTIONS[] = {"receivers", "processors", "exporters", "extensions"};
    return SECTIONS[kind];
}
