// SPDX-License-Identifier: Apache-2.0
#include "pipeline/plan/rows.h"

#include <assert.h>

static const char *const LOG_LEVELS[] = {"debug", "info", "warn", "error", NULL};
static const char *const LOG_ENCODINGS[] = {"auto", "console", "json", NULL};

static const struct option LOG_ROWS[] = {
    OPTION(struct log_config, level, OPTION_CHOICE, .default_value = "info", .choices = LOG_LEVELS,
           .help = "the least severe messages of culprit's own that are written"),
    OPTION(struct log_config, encoding, OPTION_CHOICE, .default_value = "auto",
           .choices = LOG_ENCODINGS,
           .help = "how they are written; auto: console on a terminal, else json"),
};

static const struct option METRICS_ROWS[] = {
    OPTION(
        struct metrics_config, endpoint, OPTION_TEXT, .claim = CLAIM_ENDPOINT,
        .help =
            "HOST:PORT where Prometheus finds culprit's own metrics under /metrics; the usual one "
            "is 127.0.0.1:8888; without it there is none"),
};

static const struct option TELEMETRY_ROWS[] = {
    OPTION(struct telemetry_config, logs, OPTION_GROUP, .rows = LOG_ROWS,
           .row_count = OPTION_COUNT(LOG_ROWS), .help = "messages on standard error"),
    OPTION(struct telemetry_config, metrics, OPTION_GROUP, .rows = METRICS_ROWS,
           .row_count = OPTION_COUNT(METRICS_ROWS), .help = "counters of culprit's own running"),
};

static const struct option CONTROL_ROWS[] = {
    OPTION(struct control_config, enabled, OPTION_BOOL, .default_value = "true",
           .help = "whether there is one; without it culprit top and culprit tap cannot be used"),
    OPTION(struct control_config, socket, OPTION_TEXT,
           .help = "path of the Unix socket; without it PID.sock in the first of these that can be "
                   "used, where culprit top looks for it: $XDG_RUNTIME_DIR/culprit/control, "
                   "/run/culprit/control, /tmp/culprit-UID/control, /var/lib/culprit/control"),
};

static const struct option SERVICE_ROWS[] = {
    OPTION(struct service_settings, extensions, OPTION_TEXT_LIST,
           .help = "ids of the extensions that are started"),
    OPTION(struct service_settings, telemetry, OPTION_GROUP, .rows = TELEMETRY_ROWS,
           .row_count = OPTION_COUNT(TELEMETRY_ROWS),
           .help = "what culprit says of its own running"),
    OPTION(struct service_settings, control, OPTION_GROUP, .rows = CONTROL_ROWS,
           .row_count = OPTION_COUNT(CONTROL_ROWS),
           .help =
               "a socket for culprit top and culprit tap, which only the same user and root may "
               "open"),
    OPTION(struct service_settings, batch_size, OPTION_INT, .default_value = "1024", .min = 1,
           .max = 65536,
           .help =
               "events that pass through a pipeline at once, at most; results do not depend on it"),
    OPTION(struct service_settings, threads, OPTION_INT, .default_value = "0", .max = 64,
           .help =
               "threads that read and decode files, when there is much to read, and threads that "
               "work at a large evaluation, at most; 0: as many as the process may use cores; "
               "results do not "
               "depend on it"),
    OPTION(struct service_settings, checkpoint_interval, OPTION_DURATION, .default_value = "5s",
           .min = 0.01, .max = 3600,
           .help =
               "with a store: how often what changed is written; what came after the last time is "
               "read again after a crash"),
    OPTION(struct service_settings, shutdown_timeout, OPTION_DURATION, .default_value = "20s",
           .min = 0.1, .max = 3600,
           .help = "how long stopping may take: reading to the end, judging, delivering; over "
                   "inputs that end: how long deliveries of an exporter may fail one after another "
                   "before it is given up"),
};

static const struct option ROOT_ROWS[] = {
    {.name = "forms",
     .type = OPTION_TEXT_LIST,
     .offset = offsetof(struct plan, form_files),
     .help = "files of rows for lines of logs (docs/forms.md), or patterns of them; relative "
             "ones begin at the folder of the configuration"},
};

#define TIMING(field, ...)                                                                         \
    {                                                                                              \
        .name = #field, .type = OPTION_DURATION,                                                   \
        .offset = offsetof(struct pipeline_config, timing.field), .max = 86400, __VA_ARGS__        \
    }
static const struct option PIPELINE_ROWS[] = {
    OPTION(struct pipeline_config, receivers, OPTION_TEXT_LIST, .required = true,
           .help = "ids of the receivers it reads"),
    OPTION(struct pipeline_config, preset, OPTION_CHOICE, .default_value = "none",
           .choices = PRESET_NAMES,
           .help = "processors of a preset, before those listed: memory finds who started the "
                   "growth of memory, all finds everything; culprit components says which are in "
                   "it"),
    OPTION(struct pipeline_config, processors, OPTION_TEXT_LIST,
           .help = "ids of the processors, in the order in which they see each batch"),
    OPTION(struct pipeline_config, exporters, OPTION_TEXT_LIST, .required = true,
           .help = "ids of the exporters it writes to"),
    TIMING(evaluate_every, .default_value = "1s", .min = 0.01,
           .help = "verdicts are made at each multiple of this event time"),
    TIMING(allowed_lateness, .default_value = "2s",
           .help = "how long an evaluation waits for events that come late"),
    TIMING(settle, .default_value = "30s",
           .help = "how long a first finding must persist before it is reported"),
    TIMING(idle_timeout, .default_value = "60s", .min = 0.1,
           .help = "a source silent for this long no longer holds evaluations back"),
    TIMING(caught_up_timeout, .default_value = "2s",
           .help = "the same for a source that was read to its end; at least allowed_lateness"),
    TIMING(max_jump, .default_value = "10m",
           .help = "an event that is alone further ahead of all others than this does not move the "
                   "time on; 0 believes every time"),
};

const struct option_rows PLAN_SERVICE_ROWS = {SERVICE_ROWS, OPTION_COUNT(SERVICE_ROWS)};
const struct option_rows PLAN_ROOT_ROWS = {ROOT_ROWS, OPTION_COUNT(ROOT_ROWS)};
const struct option_rows PLAN_PIPELINE_ROWS = {PIPELINE_ROWS, OPTION_COUNT(PIPELINE_ROWS)};

const char *plan_section(enum component_kind kind) {
    assert(kind <= COMPONENT_EXTENSION);
    static const char *const SECTIONS[] = {"receivers", "processors", "exporters", "extensions"};
    return SECTIONS[kind];
}
