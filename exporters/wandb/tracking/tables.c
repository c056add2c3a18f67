// SPDX-License-Identifier: Apache-2.0
// Writes the rows, tables and charts of a tracking run.
//
// Keys, columns and their order are those of stormlog 0.4.3's export: a history row for each point
// of the timeline, then one row for each table. A value that is not known is left out of a row,
// null in a table and a gap (NaN) in a chart; a chart of gaps alone is not made.
#include "exporters/wandb/tracking/parts.h"

#include "base/log.h"
#include "exporters/wandb/record.h"

#include <math.h>

static const char memory_chart[] = "stormlog_memory_timeline_plot";
static const char utilization_chart[] = "stormlog_memory_utilization_plot";

static const struct tracking_row *point(const struct wandb_tracking *tracking, uint32_t index) {
    assert(index < tracking->point_count && tracking->points[index] < tracking->row_count);
    return &tracking->rows[tracking->points[index]];
}

// Since the first event that was kept.
static double elapsed_s(const struct wandb_tracking *tracking, const struct tracking_row *row) {
    assert(tracking->row_count > 0);
    return row->time_s - tracking->rows[0].time_s;
}

// -- values and history
// --------------------------------------------------------------------------------------

static struct wandb_cell counter(const struct tracking_row *row, enum tracker_field field) {
    assert((int)field < (int)TRACKER_COUNTERS);
    return row_has(row, field) ? cell_int(row->counters[field]) : cell_null;
}

// A tracker that did not ask the device used at least what its allocator holds.
static struct wandb_cell device_used(const struct tracking_row *row) {
    const int64_t *counters = row->counters;
    if (row_has(row, TRACKER_DEVICE_USED))
        return cell_int(counters[TRACKER_DEVICE_USED]);
    bool has_reserved = row_has(row, TRACKER_RESERVED);
    if (row_has(row, TRACKER_ALLOCATED) &&
        (!has_reserved || counters[TRACKER_ALLOCATED] > counters[TRACKER_RESERVED]))
        return cell_int(counters[TRACKER_ALLOCATED]);
    return counter(row, TRACKER_RESERVED);
}

static struct wandb_cell utilization(const struct tracking_row *row) {
    struct wandb_cell used = device_used(row);
    int64_t total = row->counters[TRACKER_DEVICE_TOTAL];
    if (used.type == CELL_NULL || !row_has(row, TRACKER_DEVICE_TOTAL) || total <= 0)
        return cell_null;
    return cell_number((double)(int64_t)used.integer / (double)total * 100.0);
}

static struct wandb_cell text(const struct tracking_row *row, enum tracker_field field,
                              struct slice text) {
    return row_has(row, field) ? cell_slice(text) : cell_null;
}

static struct wandb_cell rank(const struct tracking_row *row) {
    return row_has(row, TRACKER_RANK) ? cell_int(row->rank) : cell_null;
}

void tracking_say_points(struct wandb_tracking *tracking, struct wandb_writer *writer) {
    struct buffer *members = &tracking->members;
    for (uint32_t i = 0; i < tracking->point_count; i++) {
        const struct tracking_row *row = point(tracking, i);
        buffer_reset(members);
        wandb_member(members, "stormlog_timeline_elapsed_seconds",
                     cell_number(elapsed_s(tracking, row)));
        wandb_member(members, "stormlog_timeline_allocated_bytes", counter(row, TRACKER_ALLOCATED));
        wandb_member(members, "stormlog_timeline_reserved_bytes", counter(row, TRACKER_RESERVED));
        wandb_member(members, "stormlog_timeline_change_bytes", counter(row, TRACKER_CHANGE));
        wandb_member(members, "stormlog_timeline_device_used_bytes", device_used(row));
        wandb_member(members, "stormlog_timeline_utilization_percent", utilization(row));
        wandb_say_members(writer, WANDB_ROW, members);
    }
}

// -- tables ---------------------------------------------------------------------------------------

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
    assert(tracking->alert_count <= tracking->figures.events);
    wandb_table_begin(table, columns, sizeof columns / sizeof *columns);
    for (uint64_t i = count > TRACKING_POINTS ? count - TRACKING_POINTS : 0; i < count; i++) {
        const struct tracking_alert *alert = &tracking->alerts[i % TRACKING_POINTS];
        const struct tracking_row *row = &alert->row;
        WANDB_TABLE_ROW(
            table, cell_number(row->time_s), cell_slice(intern_slice(row->type)),
            text(row, TRACKER_CONTEXT, (struct slice){alert->context, row->context_size}),
            counter(row, TRACKER_ALLOCATED), counter(row, TRACKER_RESERVED),
            counter(row, TRACKER_CHANGE), text(row, TRACKER_JOB, intern_slice(row->job)),
            rank(row));
    }
    tracking_say_table(tracking, "stormlog_alerts", writer);
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
    struct wandb_cell value = series == SERIES_ALLOCATED     ? counter(row, TRACKER_ALLOCATED)
                              : series == SERIES_RESERVED    ? counter(row, TRACKER_RESERVED)
                              : series == SERIES_DEVICE_USED ? device_used(row)
                                                             : utilization(row);
    return value.type == CELL_INT      ? (double)value.integer
           : value.type == CELL_NUMBER ? value.number
                                       : NAN;
}

static bool series_exists(const struct wandb_tracking *tracking, enum series series) {
    for (uint32_t i = 0; i < tracking->point_count; i++)
        if (!isnan(series_value(point(tracking, i), series)))
            return true;
    return false;
}

// The series `first` to `last` one after another, those that exist; false when none does.
static bool fill_chart(struct wandb_tracking *tracking, enum series first, enum series last) {
    assert(first <= last && last <= SERIES_UTILIZATION);
    static const char *const columns[] = {"step", "lineKey", "lineVal"};
    struct wandb_table *table = &tracking->table;
    wandb_table_begin(table, columns, 3);
    for (enum series series = first; series <= last; series++) {
        if (!series_exists(tracking, series))
            continue;
        for (uint32_t i = 0; i < tracking->point_count; i++) {
            const struct tracking_row *row = point(tracking, i);
            WANDB_TABLE_ROW(table, cell_number(elapsed_s(tracking, row)),
                            cell_text(series_names[series]),
                            cell_number(series_value(row, series)));
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
    for (uint32_t i = 0; i < tracking->point_count; i++) {
        const struct tracking_row *row = point(tracking, i);
        WANDB_TABLE_ROW(&tracking->table, cell_int(tracking->points[i]),
                        cell_number(elapsed_s(tracking, row)), cell_slice(intern_slice(row->type)),
                        counter(row, TRACKER_ALLOCATED), counter(row, TRACKER_RESERVED),
                        counter(row, TRACKER_CHANGE), device_used(row), utilization(row),
                        text(row, TRACKER_CONTEXT, tracking_context(tracking, row)), rank(row));
    }
    tracking_say_table(tracking, "stormlog_memory_timeline_table", writer);
    if (fill_chart(tracking, SERIES_ALLOCATED, SERIES_DEVICE_USED))
        tracking_say_table(tracking, "stormlog_memory_timeline_plot_table", writer);
    if (fill_chart(tracking, SERIES_UTILIZATION, SERIES_UTILIZATION))
        tracking_say_table(tracking, "stormlog_memory_utilization_plot_table", writer);
}
