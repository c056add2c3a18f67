// SPDX-License-Identifier: Apache-2.0
// What does a tracking run show as rows, tables and charts?
//
// Keys, columns and their order are those of stormlog 0.4.3's export: a history row for each point
// of the timeline, then one row for each table. A value that is not known is left out of a row,
// null in a table and a gap (NaN) in a chart; a chart of gaps alone is not made.
#include "exporters/wandb/tracking/parts.h"

#include "base/log.h"

#include <math.h>

static const char memory_chart[] = "stormlog_memory_timeline_plot";
static const char utilization_chart[] = "stormlog_memory_utilization_plot";

static const struct tracking_row *point(const struct wandb_tracking *tracking, uint32_t index) {
    return &tracking->rows[tracking->points[index]];
}

// Since the first event that was kept.
static double elapsed_s(const struct wandb_tracking *tracking, const struct tracking_row *row) {
    return row->time_s - tracking->rows[0].time_s;
}

// -- history --------------------------------------------------------------------------------------

static void put_counter(struct buffer *members, const char *key, const struct tracking_row *row,
                        enum tracker_field field) {
    if (row_has(row, field))
        wandb_member_int(members, key, row->counters[field]);
}

void tracking_say_points(struct wandb_tracking *tracking, struct wandb_writer *writer) {
    struct buffer *members = &tracking->members;
    for (uint32_t i = 0; i < tracking->point_count; i++) {
        const struct tracking_row *row = point(tracking, i);
        int64_t used;
        double percent;
        buffer_reset(members);
        wandb_member_number(members, "stormlog_timeline_elapsed_seconds", elapsed_s(tracking, row));
        put_counter(members, "stormlog_timeline_allocated_bytes", row, TRACKER_ALLOCATED);
        put_counter(members, "stormlog_timeline_reserved_bytes", row, TRACKER_RESERVED);
        put_counter(members, "stormlog_timeline_change_bytes", row, TRACKER_CHANGE);
        if (tracking_device_used(row, &used))
            wandb_member_int(members, "stormlog_timeline_device_used_bytes", used);
        if (tracking_utilization(row, &percent))
            wandb_member_number(members, "stormlog_timeline_utilization_percent", percent);
        wandb_say(writer, &(struct wandb_record){
                              .kind = WANDB_ROW,
                              .members = buffer_slice(members),
                          });
    }
}

// -- tables ---------------------------------------------------------------------------------------

static void cell_counter(struct wandb_table *table, const struct tracking_row *row,
                         enum tracker_field field) {
    if (row_has(row, field))
        wandb_cell_int(table, row->counters[field]);
    else
        wandb_cell_null(table);
}

static void cell_rank(struct wandb_table *table, const struct tracking_row *row) {
    if (row_has(row, TRACKER_RANK))
        wandb_cell_int(table, row->rank);
    else
        wandb_cell_null(table);
}

static void cell_text(struct wandb_table *table, const struct tracking_row *row,
                      enum tracker_field field, struct slice text) {
    if (row_has(row, field))
        wandb_cell_text(table, text);
    else
        wandb_cell_null(table);
}

void tracking_say_table(struct wandb_tracking *tracking, const char *key,
                        struct wandb_writer *writer) {
    wandb_table_end(&tracking->table);
    if (!wandb_table_say(&tracking->table, key, writer))
        log_write(LOG_WARN, (struct log_site){"C3312", tracking->site},
                  "the table %s is left out: its texts are larger than 32 MiB", key);
}

void tracking_say_alerts(struct wandb_tracking *tracking, struct wandb_writer *writer) {
    static const char *const columns[] = {
        "timestamp_s",           "event_type",          "context", "memory_allocated_bytes",
        "memory_reserved_bytes", "memory_change_bytes", "job_id",  "rank",
    };
    struct wandb_table *table = &tracking->table;
    uint64_t count = tracking->alert_count;
    if (count == 0)
        return;
    wandb_table_begin(table, columns, sizeof columns / sizeof *columns);
    for (uint64_t i = count > TRACKING_POINTS ? count - TRACKING_POINTS : 0; i < count; i++) {
        const struct tracking_alert *alert = &tracking->alerts[i % TRACKING_POINTS];
        const struct tracking_row *row = &alert->row;
        wandb_cell_number(table, row->time_s);
        wandb_cell_text(table, intern_slice(row->type));
        cell_text(table, row, TRACKER_CONTEXT, (struct slice){alert->context, row->context_size});
        cell_counter(table, row, TRACKER_ALLOCATED);
        cell_counter(table, row, TRACKER_RESERVED);
        cell_counter(table, row, TRACKER_CHANGE);
        cell_text(table, row, TRACKER_JOB, intern_slice(row->job));
        cell_rank(table, row);
    }
    tracking_say_table(tracking, "stormlog_alerts", writer);
}

static void timeline_row(struct wandb_tracking *tracking, uint32_t index) {
    struct wandb_table *table = &tracking->table;
    const struct tracking_row *row = point(tracking, index);
    int64_t used;
    double percent;
    wandb_cell_int(table, (int64_t)tracking->points[index]);
    wandb_cell_number(table, elapsed_s(tracking, row));
    wandb_cell_text(table, intern_slice(row->type));
    cell_counter(table, row, TRACKER_ALLOCATED);
    cell_counter(table, row, TRACKER_RESERVED);
    cell_counter(table, row, TRACKER_CHANGE);
    if (tracking_device_used(row, &used))
        wandb_cell_int(table, used);
    else
        wandb_cell_null(table);
    if (tracking_utilization(row, &percent))
        wandb_cell_number(table, percent);
    else
        wandb_cell_null(table);
    cell_text(table, row, TRACKER_CONTEXT, tracking_context(tracking, row));
    cell_rank(table, row);
}

// -- charts ---------------------------------------------------------------------------------------

enum series { SERIES_ALLOCATED, SERIES_RESERVED, SERIES_DEVICE_USED, SERIES_UTILIZATION };

static const char *const series_names[] = {
    [SERIES_ALLOCATED] = "allocated_bytes",
    [SERIES_RESERVED] = "reserved_bytes",
    [SERIES_DEVICE_USED] = "device_used_bytes",
    [SERIES_UTILIZATION] = "utilization_percent",
};

// NaN: a gap.
static double series_value(const struct tracking_row *row, enum series series) {
    int64_t bytes = 0;
    double percent = 0;
    bool known = false;
    switch (series) {
    case SERIES_ALLOCATED:
        known = row_has(row, TRACKER_ALLOCATED);
        bytes = row->counters[TRACKER_ALLOCATED];
        break;
    case SERIES_RESERVED:
        known = row_has(row, TRACKER_RESERVED);
        bytes = row->counters[TRACKER_RESERVED];
        break;
    case SERIES_DEVICE_USED:
        known = tracking_device_used(row, &bytes);
        break;
    case SERIES_UTILIZATION:
        return tracking_utilization(row, &percent) ? percent : NAN;
    }
    return known ? (double)bytes : NAN;
}

static bool series_exists(const struct wandb_tracking *tracking, enum series series) {
    for (uint32_t i = 0; i < tracking->point_count; i++)
        if (!isnan(series_value(point(tracking, i), series)))
            return true;
    return false;
}

// The series `first` to `last` one after another, those that exist; false when none does.
static bool fill_chart(struct wandb_tracking *tracking, enum series first, enum series last) {
    static const char *const columns[] = {"step", "lineKey", "lineVal"};
    struct wandb_table *table = &tracking->table;
    wandb_table_begin(table, columns, 3);
    for (enum series series = first; series <= last; series++) {
        if (!series_exists(tracking, series))
            continue;
        for (uint32_t i = 0; i < tracking->point_count; i++) {
            const struct tracking_row *row = point(tracking, i);
            wandb_cell_number(table, elapsed_s(tracking, row));
            wandb_cell_text(table, slice_of(series_names[series]));
            wandb_cell_number(table, series_value(row, series));
        }
    }
    return table->row_count > 0;
}

void tracking_charts(struct wandb_tracking *tracking, struct buffer *visualize) {
    if (series_exists(tracking, SERIES_ALLOCATED) || series_exists(tracking, SERIES_RESERVED) ||
        series_exists(tracking, SERIES_DEVICE_USED))
        wandb_chart_member(visualize, memory_chart, "Stormlog Memory Timeline", "Elapsed Seconds");
    if (series_exists(tracking, SERIES_UTILIZATION))
        wandb_chart_member(visualize, utilization_chart, "Stormlog Memory Utilization",
                           "Elapsed Seconds");
}

void tracking_say_timeline(struct wandb_tracking *tracking, struct wandb_writer *writer) {
    static const char *const columns[] = {
        "sample_index",
        "elapsed_seconds",
        "event_type",
        "memory_allocated_bytes",
        "memory_reserved_bytes",
        "memory_change_bytes",
        "device_used_bytes",
        "utilization_percent",
        "context",
        "rank",
    };
    wandb_table_begin(&tracking->table, columns, sizeof columns / sizeof *columns);
    for (uint32_t i = 0; i < tracking->point_count; i++)
        timeline_row(tracking, i);
    tracking_say_table(tracking, "stormlog_memory_timeline_table", writer);
    if (fill_chart(tracking, SERIES_ALLOCATED, SERIES_DEVICE_USED))
        tracking_say_table(tracking, "stormlog_memory_timeline_plot_table", writer);
    if (fill_chart(tracking, SERIES_UTILIZATION, SERIES_UTILIZATION))
        tracking_say_table(tracking, "stormlog_memory_utilization_plot_table", writer);
}
