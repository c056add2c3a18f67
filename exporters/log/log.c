// SPDX-License-Identifier: Apache-2.0
// Writes verdicts into culprit's own log, one line each, so that whoever reads the log of a pod
// sees what was found. encode makes one line of fields a verdict; send hands them to the logger.
// What comes again after a crash is logged again.
#include "base/log.h"
#include "base/memory.h"
#include "base/text/display.h"
#include "pipeline/component/component.h"

#include <assert.h>
#include <string.h>

struct log_config {
    struct route_config route;
};

struct log_exporter {
    const char *site;
};

// The fields of a line: one for the level, then those of the log record, the message last.
enum { FIELD_ID, FIELD_PATTERN, FIELD_STATE, FIELD_SEVERITY, FIELD_JOB, FIELD_MESSAGE, FIELDS };
enum { SEPARATOR = '\x1f' }; // display_append never lets one through

static const char *const KEYS[FIELD_MESSAGE] = {"verdict_id", "pattern", "state", "severity",
                                                "job_id"};
static const enum log_level LEVELS[] = {LOG_INFO, LOG_WARN, LOG_ERROR, LOG_ERROR};

static const struct option OPTIONS[] = {
    ROUTE_OPTIONS(struct log_config, route),
};

static enum status log_start(void *instance, const void *config,
                             const struct component_context *context, struct error *error) {
    struct log_exporter *self = instance;
    (void)config, (void)error;
    self->site = context->site;
    return STATUS_OK;
}

static void append_field(struct buffer *out, struct slice text) {
    display_append(out, text, 0);
    buffer_append_char(out, SEPARATOR);
}

static void log_encode(void *instance, const struct batch *batch, struct buffer *out) {
    (void)instance;
    for (uint32_t i = 0; i < batch->verdicts.count; i++) {
        const struct verdict *verdict = &batch->verdicts.items[i];
        bool over = verdict->state == VERDICT_RESOLVED;
        buffer_append_char(out, (char)('0' + (over ? LOG_INFO : LEVELS[verdict->severity])));
        append_field(out, slice_of(verdict->id));
        append_field(out, slice_of(verdict->pattern));
        append_field(out, slice_of(verdict_state_name(verdict->state)));
        append_field(out, slice_of(severity_name(verdict->severity)));
        append_field(out, verdict->job == STRING_NONE ? SLICE("") : intern_slice(verdict->job));
        buffer_append_text(out, over ? "resolved: " : "");
        display_append(out, verdict->headline, 0);
        buffer_append_format(out, " (%s, confidence %d %%)\n", verdict->id, verdict->confidence);
    }
}

// `line` without its newline; it is cut into its fields in place.
static void write_line(const struct log_exporter *self, char *line) {
    struct log_field fields[FIELD_MESSAGE];
    size_t count = 0;
    enum log_level level = (enum log_level)(*line++ - '0');
    for (int i = 0; i < FIELD_MESSAGE; i++) {
        char *value = strsep(&line, (const char[]){SEPARATOR, '\0'});
        assert(line != NULL);
        if (*value != '\0')
            fields[count++] = (struct log_field){KEYS[i], value};
    }
    log_record(level, (struct log_site){"C3701", self->site}, line, fields, count);
}

static enum status log_send(void *instance, const struct request *request,
                            struct send_outcome *outcome, struct error *error) {
    (void)outcome, (void)error;
    struct slice rest = request->bytes;
    while (rest.size > 0) {
        const char *newline = memchr(rest.data, '\n', rest.size);
        assert(newline != NULL); // encode appends whole lines
        size_t size = (size_t)(newline - rest.data);
        char *line = memory_copy_text(rest.data, size);
        write_line(instance, line);
        memory_give(line);
        rest = (struct slice){newline + 1, rest.size - size - 1};
    }
    return STATUS_OK;
}

static const struct route_config *log_route(const void *config) {
    return &((const struct log_config *)config)->route;
}

static const struct component_alias aliases[] = {
    {"debug", "it writes verdicts to the log of culprit"},
    {"logging", "it writes verdicts to the log of culprit"},
};

const struct component_type exporter_log = {
    .name = "log",
    .summary = "Writes verdicts as lines of culprit's own log, for kubectl logs.",
    .aliases = aliases,
    .alias_count = sizeof aliases / sizeof aliases[0],
    .kind = COMPONENT_EXPORTER,
    .stability = STABILITY_BETA,
    .options = OPTIONS,
    .option_count = OPTION_COUNT(OPTIONS),
    .config_size = sizeof(struct log_config),
    .instance_size = sizeof(struct log_exporter),
    .needs = FACT_VERDICTS,
    .start = log_start,
    .exporter = {.encode = log_encode, .send = log_send, .route = log_route},
};
