// SPDX-License-Identifier: Apache-2.0
// Inside the export of a tracking run: what its files hand one another.
#pragma once

#include "exporters/wandb/options.h"
#include "exporters/wandb/table.h"
#include "pipeline/model/telemetry_event.h"

#include <jansson.h>

enum {
    TRACKING_POINTS = 250,             // of the timeline, and rows of the table of alerts
    TRACKING_FILE_MAX = 64 << 20,      // of a file of statistics, a session, an attribution
    TRACKING_CONTEXTS_MAX = 256 << 20, // of all contexts of kept rows
    TRACKING_MEMBERS_MAX = 4 << 20,
};

enum tracking_alert_type {
    TRACKING_NONE,
    TRACKING_WARNING,
    TRACKING_CRITICAL,
    TRACKING_ERROR,
    TRACKING_PEAK
};

// What the timeline may show of one event; `present` has the bits of enum tracker_field.
struct tracking_row {
    double time_s;
    int64_t counters[TRACKER_COUNTERS];
    uint64_t context_at; // in tracking.contexts, or in the alert's own copy
    uint32_t context_size;
    uint32_t present;
    string_id type;
    string_id job;
    int32_t rank;
    enum tracking_alert_type alert;
};

struct tracking_alert {
    struct tracking_row row;
    char *context; // a copy; NULL: none
};

// A file of one JSON object. jansson reads neither NaN and infinities nor integers beyond int64,
// which Python writes; in `object` such a number is 0, in `text` it stands as it was written.
struct tracking_file {
    json_t *object; // NULL: no file
    char *text;
};

// What is counted over all events, for a run without a file of statistics.
struct tracking_figures {
    uint64_t events, alerts, allocations, deallocations;
    unsigned __int128 allocated_bytes, deallocated_bytes;
    int64_t peak, current_allocated, current_reserved, device_total;
    uint32_t present; // of the latest and greatest: 1 << enum tracker_field
    double first_s, last_s;
    string_id collector; // of the latest
};

struct wandb_tracking {
    const struct wandb_config *config;
    const struct wandb_tracking_config *options;
    const char *site;
    string_id alert_types[TRACKING_PEAK + 1];
    struct tracking_row *rows;
    uint32_t row_count, row_capacity;
    struct buffer contexts;
    uint64_t contexts_left_out;
    struct tracking_alert alerts[TRACKING_POINTS]; // a ring
    uint64_t alert_count;
    bool full_noted;
    struct tracking_figures figures;
    struct tracking_file stats, session;
    // Filled when it is said:
    uint64_t points[TRACKING_POINTS]; // indexes of rows, ascending
    uint32_t point_count;
    struct wandb_table table;
    struct buffer members;
    char *temporary; // directory of our own, or NULL
    char *dashboard; // path of the page's file, or NULL
};

// -- rows.c ------------------------------------------------------------------------------

void tracking_rows_init(struct wandb_tracking *tracking);
void tracking_keep(struct wandb_tracking *tracking, const struct event *event);
// Which rows the timeline shows: fills points.
void tracking_choose_points(struct wandb_tracking *tracking);
void tracking_rows_release(struct wandb_tracking *tracking);
struct slice tracking_context(const struct wandb_tracking *tracking,
                              const struct tracking_row *row);
static inline bool row_has(const struct tracking_row *row, uint32_t field) {
    return (row->present >> field & 1) != 0;
}
// -- tables.c ----------------------------------------------------------------------------

// The charts' members for config, of the points that were chosen.
void tracking_charts(struct wandb_tracking *tracking, struct buffer *visualize);
void tracking_say_points(struct wandb_tracking *tracking, struct wandb_writer *writer);
void tracking_say_alerts(struct wandb_tracking *tracking, struct wandb_writer *writer);
void tracking_say_timeline(struct wandb_tracking *tracking, struct wandb_writer *writer);
// Says the table under `key`, or why not.
void tracking_say_table(struct wandb_tracking *tracking, const char *key,
                        struct wandb_writer *writer);

// -- file.c ------------------------------------------------------------------------------

// `what` for errors: "the file of statistics".
enum status tracking_file_read(struct tracking_file *file, const char *path, const char *what,
                               struct error *error) MUST_USE;
void tracking_file_release(struct tracking_file *file);
// The member as a number's or boolean's own JSON text; false when it is something else, or NaN.
bool tracking_file_number(const struct tracking_file *file, const char *key, struct buffer *json);
// The member as any JSON; false when it is absent, null or NaN.
bool tracking_file_value(const struct tracking_file *file, const char *key, struct buffer *json);
bool tracking_append_json(struct buffer *out, const json_t *value, size_t flags);
// The member as a text; data NULL when it is none.
struct slice tracking_file_text(const struct tracking_file *file, const char *key);

// -- stats.c -----------------------------------------------------------------------------

void tracking_count(struct tracking_figures *figures, const struct tracking_row *row,
                    const struct telemetry *telemetry);
enum status tracking_check_session(const struct tracking_file *session, const char *path,
                                   struct error *error) MUST_USE;
// Members of the summary: metrics, the session's fields, those of the statistics.
void tracking_summary(struct wandb_tracking *tracking, struct buffer *members);

// -- artifacts.c -------------------------------------------------------------------------

bool tracking_is_file(const char *path); // NULL: false
bool tracking_is_directory(const char *path);
void tracking_say_dashboard(struct wandb_tracking *tracking, struct slice page,
                            struct wandb_writer *writer);
void tracking_say_artifacts(struct wandb_tracking *tracking, struct wandb_writer *writer);
// `paths`: one, or several with a zero byte between them.
void tracking_say_artifact(struct wandb_tracking *tracking, const char *type, struct slice paths,
                           struct wandb_writer *writer);
// The path without slashes behind it, from the root: a sink may look at it from elsewhere.
void tracking_append_path(struct buffer *out, const char *path);
// Writes a file whole under `directory`, or a temporary one when that is NULL. Gives its path,
// which the caller owns; NULL when it could not, which was logged.
char *tracking_write_file(struct wandb_tracking *tracking, const char *directory, const char *name,
                          struct slice bytes);
void tracking_artifacts_release(struct wandb_tracking *tracking);

// -- attribution.c -----------------------------------------------------------------------

// What a bundle of attributions says: the files as one artifact, the page, the table, the summary.
void tracking_say_attribution(struct wandb_tracking *tracking, const char *directory,
                              struct wandb_writer *writer);
