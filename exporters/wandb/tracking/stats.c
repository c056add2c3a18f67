// SPDX-License-Identifier: Apache-2.0
// Writes the summary of a tracking run.
//
// The tracker's statistics, as stormlog 0.4.3 names them in the summary, the fields of the session,
// and what ends as text (backend, health, status). Without a file of statistics they are computed
// from the events:
//   peak_memory                    the most that was allocated
//   total_events                   events read; history_retained_events of them are kept,
//                                  history_dropped_events are beyond max_events
//   alert_count                    warnings and critical alerts
//   current_memory_allocated, current_memory_reserved
//                                  of the last event that has them
//   memory_utilization_percent     allocated now, of the device's size
//   total_allocations, total_allocation_bytes
//                                  events with a change above zero, and the sum of these
//   total_deallocations, total_deallocation_bytes
//                                  the same below zero
//   tracking_duration_seconds      from the first event to the last
//   allocations_per_second, bytes_allocated_per_second
//                                  over that time; without one they are left out
//   backend                        from the collector: cuda, rocm, mps, cpu, or left out
// The sink's figures (rollover_count and so on) and the collector's health are only in a file.
#include "exporters/wandb/tracking/parts.h"

#include "exporters/wandb/files.h"

#include <math.h>

enum { SESSION_TEXT_MAX = 65536 };

// -- computed -------------------------------------------------------------------------------------

static void count_change(struct tracking_figures *figures, int64_t change) {
    if (change > 0) {
        figures->allocations++;
        figures->allocated_bytes += (uint64_t)change;
    } else if (change < 0) {
        figures->deallocations++;
        figures->deallocated_bytes += (unsigned __int128)(-(__int128)change);
    }
}

void tracking_count(struct tracking_figures *figures, const struct tracking_row *row,
                    const struct telemetry *telemetry) {
    const int64_t *counters = row->counters;
    if (figures->events++ == 0)
        figures->first_s = figures->last_s = row->time_s;
    figures->last_s = fmax(figures->last_s, row->time_s);
    figures->first_s = fmin(figures->first_s, row->time_s);
    assert(figures->first_s <= figures->last_s);
    figures->alerts += row->alert == TRACKING_WARNING || row->alert == TRACKING_CRITICAL;
    figures->collector = telemetry->collector;
    if (row_has(row, TRACKER_ALLOCATED)) {
        bool is_first = (figures->present >> TRACKER_ALLOCATED & 1) == 0;
        figures->current_allocated = counters[TRACKER_ALLOCATED];
        if (is_first || counters[TRACKER_ALLOCATED] > figures->peak)
            figures->peak = counters[TRACKER_ALLOCATED];
    }
    if (row_has(row, TRACKER_RESERVED))
        figures->current_reserved = counters[TRACKER_RESERVED];
    if (row_has(row, TRACKER_DEVICE_TOTAL))
        figures->device_total = counters[TRACKER_DEVICE_TOTAL];
    if (row_has(row, TRACKER_CHANGE))
        count_change(figures, counters[TRACKER_CHANGE]);
    figures->present |= row->present;
}

// Beyond uint64 as a number.
static struct wandb_cell total(unsigned __int128 value) {
    return value <= UINT64_MAX ? cell_int((__int128)value) : cell_number((double)value);
}

static struct wandb_cell when(bool known, struct wandb_cell value) {
    return known ? value : cell_null;
}

static void put_backend(const struct tracking_figures *figures, struct buffer *members) {
    static const struct {
        struct slice collector, backend;
    } known[] = {
        {{"stormlog.cuda_tracker", 21}, {"cuda", 4}},
        {{"stormlog.rocm_tracker", 21}, {"rocm", 4}},
        {{"stormlog.mps_tracker", 20}, {"mps", 3}},
        {{"stormlog.cpu_tracker", 20}, {"cpu", 3}},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (slice_equal(intern_slice(figures->collector), known[i].collector))
            wandb_member(members, "stormlog_backend", cell_slice(known[i].backend));
}

// -- what the summary names -----------------------------------------------------------------------

struct named {
    const char *key; // in the file
    const char *shown;
};

// Those that are computed without a file come first (put_figures).
static const struct named metrics[] = {
    {"peak_memory", "stormlog_peak_memory_bytes"},
    {"total_events", "stormlog_total_events"},
    {"alert_count", "stormlog_alert_count"},
    {"current_memory_allocated", "stormlog_current_memory_allocated_bytes"},
    {"current_memory_reserved", "stormlog_current_memory_reserved_bytes"},
    {"memory_utilization_percent", "stormlog_memory_utilization_percent"},
    {"total_allocations", "stormlog_total_allocations"},
    {"total_deallocations", "stormlog_total_deallocations"},
    {"total_allocation_bytes", "stormlog_total_allocation_bytes"},
    {"total_deallocation_bytes", "stormlog_total_deallocation_bytes"},
    {"tracking_duration_seconds", "stormlog_tracking_duration_seconds"},
    {"allocations_per_second", "stormlog_allocations_per_second"},
    {"bytes_allocated_per_second", "stormlog_bytes_allocated_per_second"},
    {"history_retained_events", "stormlog_history_retained_events"},
    {"history_dropped_events", "stormlog_history_dropped_events"},
    {"rollover_count", "stormlog_sink_rollover_count"},
    {"pruned_segment_count", "stormlog_sink_pruned_segment_count"},
    {"pruned_bytes", "stormlog_sink_pruned_bytes"},
    {"final_retained_files", "stormlog_sink_retained_files"},
    {"final_retained_bytes", "stormlog_sink_retained_bytes"},
};

// The figures that `metrics` names, in its order; what is not known is left out.
static void put_figures(const struct wandb_tracking *tracking, struct buffer *members) {
    const struct tracking_figures *figures = &tracking->figures;
    double duration_s = figures->last_s - figures->first_s;
    assert(figures->events >= tracking->row_count);
    bool allocated = (figures->present >> TRACKER_ALLOCATED & 1) != 0;
    bool reserved = (figures->present >> TRACKER_RESERVED & 1) != 0;
    bool changes = (figures->present >> TRACKER_CHANGE & 1) != 0;
    bool rates = changes && duration_s > 0;
    const struct wandb_cell values[] = {
        when(allocated, cell_int(figures->peak)),
        total(figures->events),
        total(figures->alerts),
        when(allocated, cell_int(figures->current_allocated)),
        when(reserved, cell_int(figures->current_reserved)),
        when(allocated && figures->device_total > 0,
             cell_number((double)figures->current_allocated / (double)figures->device_total *
                         100.0)),
        when(changes, total(figures->allocations)),
        when(changes, total(figures->deallocations)),
        when(changes, total(figures->allocated_bytes)),
        when(changes, total(figures->deallocated_bytes)),
        when(figures->events > 0, cell_number(duration_s)),
        when(rates, cell_number((double)figures->allocations / duration_s)),
        when(rates, cell_number((double)figures->allocated_bytes / duration_s)),
        total(tracking->row_count),
        total(figures->events - tracking->row_count),
    };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        wandb_member(members, metrics[i].shown, values[i]);
    put_backend(figures, members);
}

static const struct named session_fields[] = {
    {"status", "stormlog_session_status"}, // first: see put_words
    {"session_id", "stormlog_session_id"}, {"source", "stormlog_session_source"},
    {"job_id", "stormlog_job_id"},         {"rank", "stormlog_rank"},
    {"local_rank", "stormlog_local_rank"}, {"world_size", "stormlog_world_size"},
};

// What the statistics say in words; their status of the session overrules the session's own.
static const struct named words[] = {
    {"backend", "stormlog_backend"},
    {"collector_health_status", "stormlog_collector_health_status"},
    {"collector_last_error", "stormlog_collector_last_error"},
    {"session_status", "stormlog_session_status"},
};

static void put_values(const struct tracking_file *file, const struct named *list, size_t count,
                       bool numbers, struct buffer *members) {
    struct buffer value;
    buffer_init(&value, TRACKING_MEMBERS_MAX);
    for (size_t i = 0; i < count; i++) {
        buffer_reset(&value);
        bool is_there = numbers ? tracking_file_number(file, list[i].key, &value)
                                : tracking_file_value(file, list[i].key, &value);
        if (!is_there || value.failed)
            continue;
        wandb_member_key(members, list[i].shown);
        buffer_append(members, buffer_slice(&value));
    }
    buffer_release(&value);
}

static void put_words(const struct wandb_tracking *tracking, struct buffer *members) {
    const json_t *status = json_object_get(tracking->stats.object, "session_status");
    bool has_status = status != NULL && !json_is_null(status);
    size_t skipped = has_status ? 1 : 0, count = sizeof session_fields / sizeof *session_fields;
    if (tracking->session.object != NULL)
        put_values(&tracking->session, session_fields + skipped, count - skipped, false, members);
    if (tracking->stats.object != NULL)
        put_values(&tracking->stats, words, sizeof words / sizeof *words, false, members);
}

void tracking_summary(struct wandb_tracking *tracking, struct buffer *members) {
    if (tracking->stats.object != NULL)
        put_values(&tracking->stats, metrics, sizeof metrics / sizeof *metrics, true, members);
    else
        put_figures(tracking, members);
    wandb_member(members, "stormlog_chart_point_count", cell_int(tracking->point_count));
    put_words(tracking, members);
    if (tracking_is_file(tracking->options->output_file))
        wandb_member(members, "stormlog_output_file",
                     cell_slice(wandb_base_name(tracking->options->output_file)));
}

// -- the session ----------------------------------------------------------------------------------

enum status tracking_check_session(const struct tracking_file *session, const char *path,
                                   struct error *error) {
    static const struct {
        const char *key;
        bool is_text, is_needed;
    } fields[] = {
        {"session_id", true, true},   {"status", true, false}, {"source", true, false},
        {"job_id", true, false},      {"rank", false, false},  {"local_rank", false, false},
        {"world_size", false, false},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const json_t *value = json_object_get(session->object, fields[i].key);
        if (value == NULL || json_is_null(value)) {
            if (!fields[i].is_needed)
                continue;
            return error_set(error, STATUS_CONFIG,
                             "the session file %s has no %s: a text is needed", path,
                             fields[i].key);
        }
        if (json_string_length(value) > SESSION_TEXT_MAX)
            return error_set(error, STATUS_CONFIG,
                             "the session file %s: %s has %zu bytes, no more than %d are right",
                             path, fields[i].key, json_string_length(value), SESSION_TEXT_MAX);
        if (fields[i].is_text ? json_is_string(value) : json_is_integer(value))
            continue;
        return error_set(error, STATUS_CONFIG, "the session file %s: %s must be %s%s", path,
                         fields[i].key, fields[i].is_text ? "a text" : "an integer",
                         fields[i].is_needed ? "" : " or null");
    }
    return STATUS_OK;
}
