// SPDX-License-Identifier: Apache-2.0
// What the page keeps of the stream beside the evaluations.
//
// Alerts: the newest PAGE_ALERTS_MAX by their own time, so that what is kept does not depend on the
// order of arrival. A new peak, which a rank that grows reports all the time, goes before any other
// alert does. Devices: the largest size that each rank of a job ever told, found through an index.
// Memory: 70 KiB, and 32 bytes a device; O(1) an event, O(PAGE_ALERTS_MAX) an alert that stays.
#include "exporters/report/page/parts.h"

#include "base/hash/hash_index.h"
#include "base/memory.h"
#include "base/sort.h"
#include "base/text/display.h"
#include "config/option.h"
#include "exporters/report/seen.h"
#include "pipeline/model/telemetry_event.h"

#include <assert.h>
#include <stdlib.h>

enum { DEVICES_PER_CHUNK = 64 };

struct device {
    int32_t rank;
    string_id job; // STRING_REFUSED: this row is free
    int64_t total_bytes;
};

enum { NOTES_MAGIC = 0x6e6f7465 };

struct page_notes {
    uint32_t magic;
    string_id types[PAGE_ALERT_KINDS]; // event types that are alerts
    uint64_t alert_total;
    struct table alerts;     // struct page_alert; rows are never freed
    uint32_t least;          // with all rows taken: the one that goes first
    struct table devices;    // struct device
    struct hash_index index; // of `devices`
    uint64_t unread;         // events of logs that no processor of their pipeline takes
    struct buffer scratch;
    struct page_notes_versions versions; // of what is kept
};

static const struct row_type alert_rows = {
    .size = sizeof(struct page_alert),
    .rows_per_chunk = PAGE_ALERTS_MAX,
    .strings = {offsetof(struct page_alert, job), offsetof(struct page_alert, host)},
};
static const struct row_type device_rows = {.size = sizeof(struct device),
                                            .rows_per_chunk = DEVICES_PER_CHUNK,
                                            .strings = {offsetof(struct device, job)}};
static const struct state_row STATE[] = {
    STATE_ROWS(struct page_notes, alerts, "page.alerts", alert_rows),
    STATE_ROWS(struct page_notes, devices, "page.devices", device_rows),
    STATE_STRUCT(struct page_notes, alert_total, "page.alert_total"),
    STATE_STRUCT(struct page_notes, unread, "page.unread"),
};

static const char *const type_names[PAGE_ALERT_KINDS] = {"critical", "error", "warning", "peak"};

const char *page_alert_name(enum page_alert_kind kind) {
    assert((size_t)kind < PAGE_ALERT_KINDS);
    return type_names[kind];
}

struct page_notes *page_notes_new(void) {
    struct page_notes *notes = memory_zero(1, sizeof *notes);
    notes->magic = NOTES_MAGIC;
    notes->versions = (struct page_notes_versions){1, 1};
    for (int i = 0; i < PAGE_ALERT_KINDS; i++)
        notes->types[i] = intern(slice_of(type_names[i]));
    state_rows_init(STATE, OPTION_COUNT(STATE), notes);
    buffer_init(&notes->scratch, PAGE_ALERT_TEXT_MAX);
    return notes;
}

void page_notes_release(struct page_notes *notes) {
    if (notes == NULL)
        return;
    buffer_release(&notes->scratch);
    state_rows_release(STATE, OPTION_COUNT(STATE), notes);
    hash_index_release(&notes->index);
    memory_give(notes);
}

// -- devices ------------------------------------------------------------------------------------

static uint64_t device_hash(string_id job, int32_t rank) {
    return ((uint64_t)job << 32 | (uint32_t)rank) * UINT64_C(0x9e3779b97f4a7c15);
}

static struct device *device_at(const struct page_notes *notes, uint32_t row) {
    return table_row(&notes->devices, row);
}

static struct device *device_find(const struct page_notes *notes, string_id job, int32_t rank) {
    uint32_t probe = 0, row;
    while ((row = hash_index_next(&notes->index, device_hash(job, rank), &probe)) !=
           HASH_INDEX_NONE) {
        struct device *device = device_at(notes, row);
        if (device->job == job && device->rank == rank)
            return device;
    }
    return NULL;
}

static void device_note(struct page_notes *notes, string_id job, int32_t rank, int64_t bytes) {
    struct device *device = device_find(notes, job, rank);
    if (device == NULL) {
        if (table_live(&notes->devices) >= PAGE_DEVICES_MAX)
            return;
        uint32_t row = table_add(&notes->devices);
        device = device_at(notes, row);
        *device = (struct device){.rank = rank, .job = job};
        hash_index_add(&notes->index, device_hash(job, rank), row);
    }
    if (device->total_bytes >= bytes)
        return;
    device->total_bytes = bytes;
    notes->versions.devices++;
}

int64_t page_notes_device_bytes(const struct page_notes *notes, string_id job, int32_t rank) {
    if (notes == NULL)
        return 0;
    const struct device *device = device_find(notes, job, rank);
    if (device == NULL)
        device = device_find(notes, STRING_NONE, rank);
    return device == NULL ? 0 : device->total_bytes;
}

// -- alerts -------------------------------------------------------------------------------------

static int alert_compare(const void *left, const void *right) {
    const struct page_alert *a = left, *b = right;
    return COMPARE_KEYS(
        COMPARE(a->time_ns, b->time_ns), COMPARE(a->rank, b->rank), COMPARE(a->kind, b->kind),
        slice_compare(intern_slice(a->job), intern_slice(b->job)), strcmp(a->text, b->text));
}

// Whether `a` goes before `b` when there is no room: a peak, then the older.
static bool is_wanted_less(const struct page_alert *a, const struct page_alert *b) {
    if ((a->kind == ALERT_PEAK) != (b->kind == ALERT_PEAK))
        return a->kind == ALERT_PEAK;
    return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : alert_compare(a, b) < 0;
}

static struct page_alert *alert_at(const struct page_notes *notes, uint32_t row) {
    return table_row(&notes->alerts, row);
}

// To be called when all rows are taken and one changed.
static void least_find(struct page_notes *notes) {
    assert(notes->alerts.used == PAGE_ALERTS_MAX);
    notes->least = 0;
    for (uint32_t row = 1; row < PAGE_ALERTS_MAX; row++)
        if (is_wanted_less(alert_at(notes, row), alert_at(notes, notes->least)))
            notes->least = row;
}

static void alert_note(struct page_notes *notes, const struct event *event,
                       enum page_alert_kind kind) {
    assert(notes->alerts.used <= PAGE_ALERTS_MAX);
    struct page_alert alert = {
        .time_ns = event->time_ns,
        .job = event->job,
        .host = event->node,
        .rank = event->rank,
        .kind = (int32_t)kind,
    };
    struct slice context = event->telemetry->context;
    if (context.data != NULL) {
        buffer_reset(&notes->scratch);
        display_append(&notes->scratch, context, PAGE_ALERT_TEXT_MAX - 1);
        memcpy(alert.text, notes->scratch.data, notes->scratch.size);
    }
    notes->alert_total++;
    bool full = notes->alerts.used == PAGE_ALERTS_MAX;
    if (full && !is_wanted_less(alert_at(notes, notes->least), &alert))
        return;
    *alert_at(notes, full ? notes->least : table_add(&notes->alerts)) = alert;
    notes->versions.alerts++;
    if (notes->alerts.used == PAGE_ALERTS_MAX)
        least_find(notes);
}

uint32_t page_notes_alert_count(const struct page_notes *notes) {
    return notes == NULL ? 0 : notes->alerts.used;
}

uint64_t page_notes_alert_total(const struct page_notes *notes) {
    return notes == NULL ? 0 : notes->alert_total;
}

const struct page_alert *page_notes_alerts(const struct page_notes *notes, struct arena *arena) {
    assert(notes->magic == NOTES_MAGIC);
    uint32_t count = notes->alerts.used;
    struct page_alert *sorted = arena_take(arena, count * sizeof *sorted);
    for (uint32_t row = 0; row < count; row++)
        sorted[row] = *alert_at(notes, row);
    if (count > 1)
        qsort(sorted, count, sizeof *sorted, alert_compare);
    return sorted;
}

uint64_t page_notes_unread(const struct page_notes *notes) {
    return notes == NULL ? 0 : notes->unread;
}

// -- kept across a crash --------------------------------------------------------------------------

void page_notes_state(struct page_notes *notes, struct state_list *list) {
    state_rows_list(STATE, OPTION_COUNT(STATE), notes, list);
}

void page_notes_restored(struct page_notes *notes) {
    hash_index_clear(&notes->index);
    for (uint32_t row = 0; row < notes->devices.used; row++) {
        const struct device *device = device_at(notes, row);
        if (device->job != STRING_REFUSED)
            hash_index_add(&notes->index, device_hash(device->job, device->rank), row);
    }
    // Whatever was loaded, its texts end.
    for (uint32_t row = 0; row < notes->alerts.used; row++) {
        struct page_alert *alert = alert_at(notes, row);
        alert->text[sizeof alert->text - 1] = '\0';
        if (alert->kind < 0 || alert->kind >= PAGE_ALERT_KINDS)
            alert->kind = ALERT_WARNING;
    }
    if (notes->alerts.used == PAGE_ALERTS_MAX)
        least_find(notes);
    notes->versions.alerts++;
    notes->versions.devices++;
}

// -- for another thread ---------------------------------------------------------------------------

static struct slice rows_copy(const struct table *table, struct arena *arena) {
    size_t size = (size_t)table->used * table->row_size;
    char *rows = arena_take(arena, size);
    for (uint32_t page = 0, at = 0; page < table_page_count(table); page++) {
        size_t bytes;
        const void *from = table_page(table, page, &bytes);
        memcpy(rows + at, from, bytes);
        at += (uint32_t)bytes;
    }
    return (struct slice){rows, size};
}

void page_notes_copy(const struct page_notes *notes, const struct page_notes_versions *known,
                     struct arena *arena, struct page_notes_copy *copy) {
    assert(notes->magic == NOTES_MAGIC);
    *copy = (struct page_notes_copy){
        .versions = notes->versions, .alert_total = notes->alert_total, .unread = notes->unread};
    if (known->alerts != notes->versions.alerts)
        copy->alerts = rows_copy(&notes->alerts, arena);
    if (known->devices != notes->versions.devices)
        copy->devices = rows_copy(&notes->devices, arena);
}

static void rows_show(struct table *table, struct slice rows) {
    assert(rows.size % table->row_size == 0);
    uint32_t count = (uint32_t)(rows.size / table->row_size);
    table_load(table, count, TABLE_NO_ROW, 0);
    for (uint32_t row = 0; row < count; row++)
        memcpy(table_row(table, row), rows.data + (size_t)row * table->row_size, table->row_size);
}

void page_notes_show(struct page_notes *shown, const struct page_notes_copy *copy) {
    assert(shown->magic == NOTES_MAGIC);
    shown->alert_total = copy->alert_total;
    shown->unread = copy->unread;
    if (copy->alerts.data != NULL)
        rows_show(&shown->alerts, copy->alerts);
    if (copy->devices.data != NULL)
        rows_show(&shown->devices, copy->devices);
    if (copy->alerts.data != NULL || copy->devices.data != NULL)
        page_notes_restored(shown);
}

// -- the stream ---------------------------------------------------------------------------------

static bool is_forgotten(const struct forgotten *forgotten, string_id job) {
    return forgotten->everything ||
           (forgotten->job_count > 0 && bsearch(&job, forgotten->jobs, forgotten->job_count,
                                                sizeof *forgotten->jobs, compare_by_u32) != NULL);
}

static void devices_forget(struct page_notes *notes, const struct forgotten *forgotten) {
    for (uint32_t row = 0; row < notes->devices.used; row++) {
        struct device *device = device_at(notes, row);
        if (device->job == STRING_REFUSED || !is_forgotten(forgotten, device->job))
            continue;
        hash_index_remove(&notes->index, device_hash(device->job, device->rank), row);
        device->job = STRING_REFUSED;
        table_free(&notes->devices, row);
        notes->versions.devices++;
    }
}

static void event_note(struct page_notes *notes, const struct event *event) {
    const struct telemetry *telemetry = event->telemetry;
    if (event->rank != RANK_NONE && telemetry->device_total_bytes > 0 &&
        (telemetry->null_counters & COUNTER_DEVICE_TOTAL) == 0)
        device_note(notes, event->job, event->rank, telemetry->device_total_bytes);
    if (telemetry->type != TELEMETRY_OTHER)
        return;
    for (int i = 0; i < PAGE_ALERT_KINDS; i++)
        if (telemetry->event_type == notes->types[i])
            alert_note(notes, event, (enum page_alert_kind)i);
}

void page_notes_add(struct page_notes *notes, const struct batch *batch) {
    assert(notes->magic == NOTES_MAGIC);
    for (uint32_t i = 0; i < batch->event_count; i++)
        if (batch->events[i].kind == EVENT_TELEMETRY && batch_selects(batch, i))
            event_note(notes, &batch->events[i]);
        else if (seen_is_unread(batch, &batch->events[i]))
            notes->unread++;
    if (batch->forgotten != NULL)
        devices_forget(notes, batch->forgotten);
}
