// SPDX-License-Identifier: Apache-2.0
// Keeps what the timeline shows of each event, and chooses the events that it shows.
//
// A row of 80 bytes an event, and its context. Up to 250 rows are shown as they are. Of more, the
// alerts and the last row are shown, and of the others each n-th, as many as there is room for;
// when there are more alerts than room, the last ones. Source: stormlog 0.4.3,
// sample_timeline_rows. Memory: `max_events` rows, and contexts up to a bound; alerts, of which the
// table shows the last, are kept apart, so that they are complete beyond `max_events`.
#include "exporters/wandb/tracking/parts.h"

#include "base/log.h"
#include "base/memory.h"
#include "pipeline/model/event.h"

#include <math.h>

void tracking_rows_init(struct wandb_tracking *tracking) {
    tracking->alert_types[TRACKING_WARNING] = intern(SLICE("warning"));
    tracking->alert_types[TRACKING_CRITICAL] = intern(SLICE("critical"));
    tracking->alert_types[TRACKING_ERROR] = intern(SLICE("error"));
    tracking->alert_types[TRACKING_PEAK] = intern(SLICE("peak"));
    buffer_init(&tracking->contexts, TRACKING_CONTEXTS_MAX);
}

static enum tracking_alert_type alert_type(const struct wandb_tracking *tracking, string_id type) {
    for (int i = TRACKING_WARNING; i <= TRACKING_PEAK; i++)
        if (tracking->alert_types[i] == type)
            return (enum tracking_alert_type)i;
    return TRACKING_NONE;
}

// A record of schema 2 to 4 says everything under one name; its nulls are in null_counters.
static void take_counters(struct tracking_row *row, const struct telemetry *telemetry) {
    static const uint32_t nulls[TRACKER_COUNTERS] = {
        [TRACKER_ALLOCATED] = COUNTER_ALLOCATED,
        [TRACKER_RESERVED] = COUNTER_RESERVED,
        [TRACKER_CHANGE] = COUNTER_CHANGE,
        [TRACKER_DEVICE_USED] = COUNTER_DEVICE_USED,
        [TRACKER_DEVICE_TOTAL] = COUNTER_DEVICE_TOTAL,
    };
    const int64_t values[TRACKER_COUNTERS] = {
        [TRACKER_ALLOCATED] = telemetry->allocated_bytes,
        [TRACKER_RESERVED] = telemetry->reserved_bytes,
        [TRACKER_CHANGE] = telemetry->change_bytes,
        [TRACKER_DEVICE_USED] = telemetry->device_used_bytes,
        [TRACKER_DEVICE_TOTAL] = telemetry->device_total_bytes,
    };
    memcpy(row->counters, values, sizeof values);
    for (uint32_t i = 0; i < TRACKER_COUNTERS; i++)
        if ((telemetry->null_counters & nulls[i]) == 0)
            row->present |= 1u << i;
    row->present |= 1u << TRACKER_RANK;
    if (telemetry->job != STRING_NONE)
        row->present |= 1u << TRACKER_JOB;
    if (telemetry->context.data != NULL)
        row->present |= 1u << TRACKER_CONTEXT;
}

static void take_tracker(struct tracking_row *row, const struct tracker_record *tracker) {
    memcpy(row->counters, tracker->counters, sizeof row->counters);
    row->present = tracker->present;
}

static struct tracking_row row_of(const struct wandb_tracking *tracking,
                                  const struct telemetry *telemetry) {
    struct tracking_row row = {
        .type = telemetry->event_type,
        .job = telemetry->job,
        .rank = telemetry->rank,
        .alert = alert_type(tracking, telemetry->event_type),
    };
    // Two roundings, as in Python: to a double, then of the quotient.
    row.time_s = (double)telemetry->timestamp_ns / 1e9;
    if (telemetry->tracker == NULL) {
        take_counters(&row, telemetry);
        return row;
    }
    take_tracker(&row, telemetry->tracker);
    if (!isnan(telemetry->tracker->timestamp_s))
        row.time_s = telemetry->tracker->timestamp_s;
    return row;
}

static void keep_alert(struct wandb_tracking *tracking, struct tracking_row row,
                       struct slice context) {
    struct tracking_alert *alert = &tracking->alerts[tracking->alert_count++ % TRACKING_POINTS];
    assert(row.alert != TRACKING_NONE);
    memory_give(alert->context);
    row.context_size = (uint32_t)context.size;
    *alert = (struct tracking_alert){.row = row};
    if (row_has(&row, TRACKER_CONTEXT))
        alert->context = memory_copy_text(context.data, context.size);
}

// A context that is the same as that of the row before is kept once.
static void keep_context(struct wandb_tracking *tracking, struct tracking_row *row,
                         struct slice context) {
    if (!row_has(row, TRACKER_CONTEXT))
        return;
    const struct tracking_row *before =
        tracking->row_count > 0 ? &tracking->rows[tracking->row_count - 1] : NULL;
    row->context_size = (uint32_t)context.size;
    if (before != NULL && row_has(before, TRACKER_CONTEXT) &&
        slice_equal(tracking_context(tracking, before), context)) {
        row->context_at = before->context_at;
    } else if (context.size > TRACKING_CONTEXTS_MAX - tracking->contexts.size) {
        row->present &= ~(1u << TRACKER_CONTEXT);
        row->context_size = 0;
        tracking->contexts_left_out++;
    } else {
        row->context_at = tracking->contexts.size;
        buffer_append(&tracking->contexts, context);
    }
}

static bool is_full(struct wandb_tracking *tracking) {
    uint64_t max = (uint64_t)tracking->options->max_events;
    if (tracking->row_count < max)
        return false;
    if (!tracking->full_noted)
        log_write(LOG_WARN, (struct log_site){"C3311", tracking->site},
                  "more than %lu events (max_events): further ones are counted, and their alerts "
                  "are shown, but the timeline leaves them out",
                  (unsigned long)max);
    tracking->full_noted = true;
    return true;
}

void tracking_keep(struct wandb_tracking *tracking, const struct event *event) {
    assert(event->kind == EVENT_TELEMETRY);
    const struct telemetry *telemetry = event->telemetry;
    struct tracking_row row = row_of(tracking, telemetry);
    tracking_count(&tracking->figures, &row, telemetry);
    if (row.alert != TRACKING_NONE)
        keep_alert(tracking, row, telemetry->context);
    if (is_full(tracking))
        return;
    tracking->rows = memory_room(tracking->rows, &tracking->row_capacity, tracking->row_count,
                                 sizeof *tracking->rows);
    keep_context(tracking, &row, telemetry->context);
    tracking->rows[tracking->row_count++] = row;
    assert(tracking->contexts.size <= TRACKING_CONTEXTS_MAX);
}

struct slice tracking_context(const struct wandb_tracking *tracking,
                              const struct tracking_row *row) {
    assert(row->context_at + row->context_size <= tracking->contexts.size);
    return (struct slice){tracking->contexts.data + row->context_at, row->context_size};
}

// -- which are shown ------------------------------------------------------------------------------

static bool is_pinned(const struct wandb_tracking *tracking, uint64_t index) {
    assert(index < tracking->row_count);
    return tracking->rows[index].alert != TRACKING_NONE || index + 1 == tracking->row_count;
}

// `skip` pinned rows are passed over, then each is taken, and of the others each `stride`-th until
// `room` are; stride 0: none.
static void take_points(struct wandb_tracking *tracking, uint64_t skip, uint64_t stride,
                        uint64_t room) {
    uint64_t others = 0;
    for (uint64_t i = 0; i < tracking->row_count; i++) {
        bool taken = false;
        if (is_pinned(tracking, i)) {
            taken = skip == 0;
            skip -= skip > 0;
        } else if (stride > 0 && room > 0 && others++ % stride == 0) {
            taken = true;
            room--;
        }
        if (taken)
            tracking->points[tracking->point_count++] = i;
    }
    assert(tracking->point_count <= TRACKING_POINTS);
}

void tracking_choose_points(struct wandb_tracking *tracking) {
    uint64_t pinned = 0, count = tracking->row_count;
    tracking->point_count = 0;
    if (count <= TRACKING_POINTS) {
        take_points(tracking, 0, 1, count);
        return;
    }
    for (uint64_t i = 0; i < count; i++)
        pinned += is_pinned(tracking, i);
    if (pinned >= TRACKING_POINTS) {
        take_points(tracking, pinned - TRACKING_POINTS, 0, 0);
        return;
    }
    uint64_t room = TRACKING_POINTS - pinned, others = count - pinned;
    take_points(tracking, 0, (others + room - 1) / room, room);
}

void tracking_rows_release(struct wandb_tracking *tracking) {
    for (uint32_t i = 0; i < TRACKING_POINTS; i++)
        memory_give(tracking->alerts[i].context);
    memory_give(tracking->rows);
    buffer_release(&tracking->contexts);
}
