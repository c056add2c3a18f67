// SPDX-License-Identifier: Apache-2.0
// What of the stream does the page need beside the evaluations?
//
// Alerts: the newest PAGE_ALERTS_MAX by their own time, in a heap with the oldest on top, so that
// what is kept does not depend on the order of arrival. A new peak, which a rank that grows reports
// all the time, goes before any other alert does. Devices: the largest size that each rank of
// a job ever told, found through an open-addressing index that doubles. Memory: 70 KiB, and 24
// bytes a device; O(1) an event, O(log alerts) an alert.
#include "exporters/report/page/parts.h"

#include "base/memory.h"
#include "base/text/display.h"

#include <stdlib.h>

enum { DEVICES_PER_CHUNK = 64, INDEX_MIN = 128 };

struct device {
    int32_t rank;
    string_id job; // STRING_REFUSED: this row is free
    int64_t total_bytes;
};

struct page_notes {
    string_id types[PAGE_ALERT_KINDS]; // event types that are alerts
    uint64_t alert_total;
    struct table alerts;  // struct page_alert: a heap, its root in row 0; rows are never freed
    struct table devices; // struct device
    uint32_t *index;      // 1 + row of `devices`; 0: free
    uint32_t index_size;
    struct buffer scratch;
};

static const char *const type_names[PAGE_ALERT_KINDS] = {"critical", "error", "warning", "peak"};

const char *page_alert_name(enum page_alert_kind kind) {
    return type_names[kind];
}

struct page_notes *page_notes_new(void) {
    struct page_notes *notes = memory_zero(1, sizeof *notes);
    for (int i = 0; i < PAGE_ALERT_KINDS; i++)
        notes->types[i] = intern(slice_of(type_names[i]));
    table_init(&notes->alerts, "page.alerts", sizeof(struct page_alert), PAGE_ALERTS_MAX);
    table_init(&notes->devices, "page.devices", sizeof(struct device), DEVICES_PER_CHUNK);
    buffer_init(&notes->scratch, PAGE_ALERT_TEXT_MAX);
    return notes;
}

void page_notes_release(struct page_notes *notes) {
    if (notes == NULL)
        return;
    buffer_release(&notes->scratch);
    table_release(&notes->alerts);
    table_release(&notes->devices);
    memory_give(notes->index);
    memory_give(notes);
}

// -- devices ------------------------------------------------------------------------------------

static uint32_t device_hash(string_id job, int32_t rank) {
    uint64_t key = (uint64_t)job << 32 | (uint32_t)rank;
    key *= UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(key >> 32);
}

static struct device *device_at(const struct page_notes *notes, uint32_t row) {
    return table_row(&notes->devices, row);
}

static uint32_t device_place(const struct page_notes *notes, string_id job, int32_t rank) {
    uint32_t place = device_hash(job, rank) & (notes->index_size - 1);
    for (; notes->index[place] != 0; place = (place + 1) & (notes->index_size - 1)) {
        const struct device *device = device_at(notes, notes->index[place] - 1);
        if (device->job == job && device->rank == rank)
            break;
    }
    return place;
}

static void devices_index(struct page_notes *notes, uint32_t size) {
    if (size != notes->index_size)
        notes->index = memory_resize(notes->index, size * sizeof *notes->index);
    notes->index_size = size;
    memset(notes->index, 0, size * sizeof *notes->index);
    for (uint32_t row = 0; row < notes->devices.used; row++) {
        const struct device *device = device_at(notes, row);
        if (device->job != STRING_REFUSED)
            notes->index[device_place(notes, device->job, device->rank)] = row + 1;
    }
}

static void device_note(struct page_notes *notes, string_id job, int32_t rank, int64_t bytes) {
    if (table_live(&notes->devices) * 2 >= notes->index_size)
        devices_index(notes, notes->index_size == 0 ? INDEX_MIN : notes->index_size * 2);
    uint32_t place = device_place(notes, job, rank);
    if (notes->index[place] == 0) {
        if (table_live(&notes->devices) >= PAGE_DEVICES_MAX)
            return;
        uint32_t row = table_add(&notes->devices);
        *device_at(notes, row) = (struct device){.rank = rank, .job = job};
        notes->index[place] = row + 1;
    }
    struct device *device = device_at(notes, notes->index[place] - 1);
    if (device->total_bytes < bytes)
        device->total_bytes = bytes;
}

int64_t page_notes_device_bytes(const struct page_notes *notes, string_id job, int32_t rank) {
    if (notes == NULL || notes->index_size == 0)
        return 0;
    uint32_t row = notes->index[device_place(notes, job, rank)];
    if (row == 0)
        row = notes->index[device_place(notes, STRING_NONE, rank)];
    return row == 0 ? 0 : device_at(notes, row - 1)->total_bytes;
}

// -- alerts -------------------------------------------------------------------------------------

int page_alert_compare(const void *left, const void *right) {
    const struct page_alert *a = left, *b = right;
    if (a->time_ns != b->time_ns)
        return a->time_ns < b->time_ns ? -1 : 1;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    int order = slice_compare(intern_slice(a->job), intern_slice(b->job));
    return order != 0 ? order : strcmp(a->text, b->text);
}

// Which of two goes first when there is no room: a peak, then the older.
static int want_compare(const struct page_alert *a, const struct page_alert *b) {
    bool a_peak = a->kind == ALERT_PEAK, b_peak = b->kind == ALERT_PEAK;
    return a_peak != b_peak ? (a_peak ? -1 : 1) : page_alert_compare(a, b);
}

static void heap_swap(struct page_alert *a, struct page_alert *b) {
    struct page_alert kept = *a;
    *a = *b;
    *b = kept;
}

static struct page_alert *alert_at(const struct page_notes *notes, uint32_t row) {
    return table_row(&notes->alerts, row);
}

static void heap_rise(const struct page_notes *notes, uint32_t at) {
    for (uint32_t above; at > 0; at = above) {
        above = (at - 1) / 2;
        if (want_compare(alert_at(notes, at), alert_at(notes, above)) >= 0)
            return;
        heap_swap(alert_at(notes, at), alert_at(notes, above));
    }
}

static void heap_sink(const struct page_notes *notes, uint32_t at) {
    for (uint32_t count = notes->alerts.used, least = at;; at = least) {
        uint32_t left = at * 2 + 1;
        for (uint32_t child = left; child < count && child < left + 2; child++)
            if (want_compare(alert_at(notes, child), alert_at(notes, least)) < 0)
                least = child;
        if (least == at)
            return;
        heap_swap(alert_at(notes, at), alert_at(notes, least));
    }
}

static void alert_note(struct page_notes *notes, const struct event *event,
                       enum page_alert_kind kind) {
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
    if (notes->alerts.used < PAGE_ALERTS_MAX) {
        uint32_t row = table_add(&notes->alerts);
        *alert_at(notes, row) = alert;
        heap_rise(notes, row);
    } else if (want_compare(&alert, alert_at(notes, 0)) > 0) {
        *alert_at(notes, 0) = alert;
        heap_sink(notes, 0);
    }
}

uint32_t page_notes_alert_count(const struct page_notes *notes) {
    return notes == NULL ? 0 : notes->alerts.used;
}

uint64_t page_notes_alert_total(const struct page_notes *notes) {
    return notes == NULL ? 0 : notes->alert_total;
}

const struct page_alert *page_notes_alerts(const struct page_notes *notes, struct arena *arena) {
    uint32_t count = notes->alerts.used;
    struct page_alert *sorted = arena_take(arena, count * sizeof *sorted);
    for (uint32_t row = 0; row < count; row++)
        sorted[row] = *alert_at(notes, row);
    if (count > 1)
        qsort(sorted, count, sizeof *sorted, page_alert_compare);
    return sorted;
}

// -- kept across a crash
// ----------------------------------------------------------------------------

void page_notes_state(struct page_notes *notes, struct state_list *list) {
    struct state_entry *alerts = state_list_table(list, &notes->alerts);
    state_entry_string(alerts, offsetof(struct page_alert, job));
    state_entry_string(alerts, offsetof(struct page_alert, host));
    struct state_entry *devices = state_list_table(list, &notes->devices);
    state_entry_string(devices, offsetof(struct device, job));
    state_list_struct(list, "page.alert_total", &notes->alert_total, sizeof notes->alert_total);
}

void page_notes_restored(struct page_notes *notes) {
    uint32_t size = INDEX_MIN;
    while (size <= table_live(&notes->devices) * 2)
        size *= 2;
    devices_index(notes, size);
    // Whatever was loaded is a heap again, and its texts end.
    for (uint32_t row = 0; row < notes->alerts.used; row++) {
        struct page_alert *alert = alert_at(notes, row);
        alert->text[sizeof alert->text - 1] = '\0';
        if (alert->kind < 0 || alert->kind >= PAGE_ALERT_KINDS)
            alert->kind = ALERT_WARNING;
        heap_rise(notes, row);
    }
}

// -- the stream ---------------------------------------------------------------------------------

static bool is_forgotten(const struct forgotten *forgotten, string_id job) {
    uint32_t low = 0, high = forgotten->job_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (forgotten->jobs[middle].job < job)
            low = middle + 1;
        else
            high = middle;
    }
    return low < forgotten->job_count && forgotten->jobs[low].job == job;
}

static void devices_forget(struct page_notes *notes, const struct forgotten *forgotten) {
    if (notes->index_size == 0)
        return;
    for (uint32_t row = 0; row < notes->devices.used; row++) {
        struct device *device = device_at(notes, row);
        if (device->job == STRING_REFUSED ||
            (!forgotten->everything && !is_forgotten(forgotten, device->job)))
            continue;
        device->job = STRING_REFUSED;
        table_free(&notes->devices, row);
    }
    devices_index(notes, notes->index_size);
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
    for (uint32_t i = 0; i < batch->event_count; i++)
        if (batch->events[i].kind == EVENT_TELEMETRY && batch_selects(batch, i))
            event_note(notes, &batch->events[i]);
    if (batch->forgotten != NULL)
        devices_forget(notes, batch->forgotten);
}
