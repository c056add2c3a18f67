// SPDX-License-Identifier: Apache-2.0
// What the files of the Alertmanager exporter share: a verdict as an alert, and the alerts that are
// repeated until they are over.
//
// On its way from encode to send an alert is one line of five parts with tabs between them: id,
// "firing" or "resolved", start (Unix, ns), labels and annotations, both as a JSON object. Alerts
// that are kept over a restart have a sixth: when they changed last (Unix, ns).
#pragma once

#include "base/buffer.h"
#include "config/client_options.h"
#include "pipeline/component/component.h"

enum { ALERT_LINE_MAX = 64 << 10 };

struct alert_config {
    struct http_client_config client;
    struct route_config route; // `match` alone: alerts are repeated and gathered by Alertmanager
    struct text_list labels;
    const char *link;
    struct duration resend_interval;
    struct duration resolve_after; // 0: never
    int64_t max_alerts;
    struct sending_config sending;
};

// -- from a verdict to a line (encode.c) ----------------------------------------------------------

// Why an item of `labels` is none, or NULL: "NAME=VALUE" with a name that Prometheus allows and
// that the exporter does not set itself.
const char *alert_label_problem(const char *label);
// Appends the line. A verdict that does not match is written as resolved: it was an alert before.
// `text` is empty, for parts of it, and is left so.
void alert_encode(const struct alert_config *config, const struct verdict *verdict,
                  struct buffer *text, struct buffer *out);

// -- alerts that are repeated (table.c) -----------------------------------------------------------

struct alert {
    char id[VERDICT_ID_SIZE];
    char *labels, *annotations; // JSON objects, ended by a zero
    char *former_labels;        // an alert of Alertmanager's that ends with this one's next post
    uint64_t start_ns;          // Unix
    uint64_t changed_ns;        // Unix: when culprit last said something new of it
    uint64_t resolved_ns;       // Unix; 0: it is firing
    uint64_t posted_ns;         // monotonic; 0: it is to be posted
    bool told;                  // Alertmanager has it, with these labels or the former ones
};

struct alert_table {
    struct alert *items; // in the order in which they came
    uint32_t count, max;
    uint64_t resend_ns;
    uint64_t resolve_after_ns; // 0: never
    uint64_t left_out;         // firing ones that were forgotten, since there were too many
};

void alert_table_begin(struct alert_table *table, const struct alert_config *config);
void alert_table_release(struct alert_table *table);
// Takes a line (without its newline) and gives its alert, which is to be posted; NULL when there is
// nothing to post, or it is no such line. The pointer dies with the next change of the table.
struct alert *alert_table_take(struct alert_table *table, struct slice line, uint64_t unix_ns);
// Resolves what has not changed for so long, and forgets what has been resolved for long enough.
void alert_table_age(struct alert_table *table, uint64_t unix_ns);
void alert_table_forget(struct alert_table *table, const struct alert *alert);
// When the next alert is to be posted again (monotonic); UINT64_MAX: none.
uint64_t alert_table_due(const struct alert_table *table);
// Appends it as Alertmanager's API v2 takes it, an object or two with a comma between them.
// `link`: as in the configuration, or NULL.
void alert_append(const struct alert_table *table, const struct alert *alert, const char *link,
                  uint64_t unix_ns, struct buffer *out);
void alert_was_posted(struct alert *alert, uint64_t monotonic_ns);
// All of them as lines, as far as the buffer goes; and back.
void alert_table_keep(const struct alert_table *table, struct buffer *out);
void alert_table_restore(struct alert_table *table, struct slice kept);
