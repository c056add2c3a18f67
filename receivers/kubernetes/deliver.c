// SPDX-License-Identifier: Apache-2.0
// From watch events and pages of lists to records of the feed.
//
// A record is a watch event as the server wrote it; an item of a page becomes one of type ADDED. A
// version of an object that was handed over before is left out. A list that follows a gap also
// tells what is gone: a deletion that names the Pod or Node, and nothing for an Event, which the
// server forgets after an hour.
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "receivers/decode/json/scan.h"
#include "receivers/decode/kubernetes/kubernetes.h"
#include "receivers/kubernetes/receiver.h"

#include <stdio.h>

static struct log_site site_of(const struct watch *watch, const char *code) {
    return (struct log_site){code, watch->receiver->context->site};
}

// -- positions ----------------------------------------------------------------------------------

// What was handled so far counts as done with what is offered next.
static void reach(struct watch *watch) {
    struct source_position position = {.number = ++watch->number};
    _Static_assert(sizeof position.detail == VERSION_MAX, "a version fits");
    memcpy(position.detail, watch->version, strlen(watch->version));
    feed_source_reached(watch->source, &position);
}

static void set_version(struct watch *watch, struct slice version) {
    if (version.size == 0)
        return;
    size_t size = version.size > VERSION_MAX ? 0 : version.size; // too long: it is listed anew
    memcpy(watch->version, version.data, size);
    watch->version[size] = '\0';
}

// -- records ------------------------------------------------------------------------------------

static void offer(struct watch *watch, struct slice record) {
    struct decode_fault fault;
    reach(watch);
    feed_source_figures(watch->source)->bytes += record.size;
    (void)feed_offer(watch->receiver->feed, watch->source, record, watch->number, &fault);
}

static void say_full(struct watch *watch) {
    if (watch->objects.unknown == 0 || watch->full_said)
        return;
    watch->full_said = true;
    log_write(LOG_WARN, site_of(watch, "C9003"),
              "%s: more than %lld objects are there; those beyond may be read twice after a new "
              "list (max_objects)",
              kubernetes_resource_names[watch->resource],
              (long long)watch->receiver->config->max_objects);
}

// An object that is there, as a record of its own.
static void take_object(struct watch *watch, enum watch_event_type type,
                        const struct object_meta *meta, struct slice record) {
    metric_add(watch->counters.objects[type], 1);
    if (meta->uid.size == 0) {
        offer(watch, record);
        return;
    }
    if (watch->listing)
        known_objects_in_list(&watch->objects, meta);
    if (known_objects_look(&watch->objects, meta) == KNOWN_SAME) {
        metric_add(watch->counters.repeated, 1);
        reach(watch);
        return;
    }
    known_objects_set(&watch->objects, meta);
    say_full(watch);
    offer(watch, record);
}

static void take_deletion(struct watch *watch, const struct object_meta *meta,
                          struct slice record) {
    metric_add(watch->counters.objects[WATCH_EVENT_DELETED], 1);
    if (meta->uid.size > 0)
        (void)known_objects_remove(&watch->objects, meta->uid);
    // That the server forgets an Event is no news.
    if (watch->resource == RESOURCE_EVENTS)
        reach(watch);
    else
        offer(watch, record);
}

// -- lists --------------------------------------------------------------------------------------

void watch_begin_list(struct watch *watch) {
    watch->listing = true;
    known_objects_begin_list(&watch->objects);
    metric_add(watch->counters.lists, 1);
}

static const char *kind_of(enum kubernetes_resource resource) {
    static const char *const kinds[] = {"Event", "Pod", "Node"};
    assert(resource < RESOURCE_COUNT);
    return kinds[resource];
}

// When it went is not known: by now. `identity`: "NAMESPACE\nNAME\nUID", as they stand in JSON.
static void offer_missing(struct watch *watch, const char *identity) {
    struct arena *scratch = &watch->receiver->scratch;
    size_t room = strlen(identity) + 256;
    char *record = arena_take(scratch, room);
    const char *name = strchr(identity, '\n') + 1, *uid = strchr(name, '\n') + 1;
    int size =
        snprintf(record, room,
                 "{\"observed_time_ns\":%llu,\"type\":\"DELETED\",\"object\":{\"kind\":\"%s\","
                 "\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"%.*s\","
                 "\"namespace\":\"%.*s\",\"uid\":\"%s\"}}}",
                 (unsigned long long)clock_unix_ns(), kind_of(watch->resource),
                 (int)(uid - name - 1), name, (int)(name - identity - 1), identity, uid);
    assert(size > 0 && (size_t)size < room);
    metric_add(watch->counters.objects[WATCH_EVENT_DELETED], 1);
    offer(watch, (struct slice){record, (size_t)size});
}

static void end_list(struct watch *watch, struct slice version) {
    char *identity;
    assert(watch->listing);
    watch->listing = false;
    watch->needs_list = watch->needs_probe = false;
    set_version(watch, version);
    for (uint32_t at = 0; known_objects_next_missing(&watch->objects, &at, &identity);) {
        if (identity != NULL && watch->resource != RESOURCE_EVENTS)
            offer_missing(watch, identity);
        memory_give(identity);
    }
    reach(watch);
    feed_flush(watch->receiver->feed);
    arena_reset(&watch->receiver->scratch);
    log_write(watch->listed ? LOG_DEBUG : LOG_INFO, site_of(watch, "C9001"),
              "%s%s%s: listed, %u objects", kubernetes_resource_names[watch->resource],
              watch->namespace == NULL ? "" : " in ",
              watch->namespace == NULL ? "" : watch->namespace, watch->objects.live);
    watch->listed = true;
    watch->behind = false;
}

// -- watches ------------------------------------------------------------------------------------

static void take_error(struct watch *watch, const struct watch_event *event) {
    watch->error_code = event->code == 0 ? 500 : event->code;
    snprintf(watch->error_text, sizeof watch->error_text, "%.*s",
             (int)(event->message.size < 200 ? event->message.size : 200),
             event->message.data == NULL ? "" : event->message.data);
}

static bool take_line(void *context, struct slice line) {
    struct watch *watch = context;
    struct watch_event event;
    if (!watch_event_read(line, &event)) {
        watch->garbage = true;
        return false;
    }
    watch->line_count++;
    switch (event.type) {
    case WATCH_EVENT_ERROR:
        take_error(watch, &event);
        return false;
    case WATCH_EVENT_BOOKMARK:
        metric_add(watch->counters.objects[event.type], 1);
        if (watch->listing && event.initial_end) {
            end_list(watch, event.meta.version);
        } else if (!watch->listing) {
            set_version(watch, event.meta.version);
            reach(watch);
        }
        return true;
    default:
        break;
    }
    // While the state comes, its version is that of the bookmark behind it.
    if (!watch->listing)
        set_version(watch, event.meta.version);
    if (event.type == WATCH_EVENT_DELETED)
        take_deletion(watch, &event.meta, line);
    else
        take_object(watch, event.type, &event.meta, line);
    return true;
}

static void settle(void *context) {
    struct watch *watch = context;
    feed_flush(watch->receiver->feed);
}

bool watch_take(void *context, struct slice bytes) {
    struct watch *watch = context;
    assert(watch->phase != PHASE_IDLE);
    watch->heard_ns = clock_monotonic_ns();
    if (watch->phase == PHASE_PROBE)
        return true;
    if (watch->phase == PHASE_PAGE) {
        buffer_append(&watch->page, bytes);
        return !watch->page.failed;
    }
    uint64_t too_long = watch->lines.too_long;
    bool goes_on = watch_lines_take(&watch->lines, bytes, take_line, settle, watch);
    if (watch->lines.too_long > too_long) {
        metric_add(watch->counters.too_long, watch->lines.too_long - too_long);
        log_write(LOG_WARN, site_of(watch, "C9004"),
                  "%s: an object is longer than %llu bytes and is left out (max_object_size)",
                  kubernetes_resource_names[watch->resource],
                  (unsigned long long)watch->receiver->config->max_object_size.bytes);
    }
    return goes_on;
}

// -- pages --------------------------------------------------------------------------------------

// As a watch would have written it. Items do not say what they are.
static struct slice record_of(struct watch *watch, const struct token *item) {
    struct arena *scratch = &watch->receiver->scratch;
    const char *members = json_skip_space(item->text + 1, item->text + item->size);
    bool empty = *members == '}';
    size_t rest = item->size - (size_t)(members - item->text), room = rest + 128;
    char *record = arena_take(scratch, room);
    int head = snprintf(record, room,
                        "{\"type\":\"ADDED\",\"object\":{\"kind\":\"%s\",\"apiVersion\":\"v1\"%s",
                        kind_of(watch->resource), empty ? "" : ",");
    assert(head > 0 && (size_t)head + rest + 1 < room);
    memcpy(record + head, members, rest);
    record[(size_t)head + rest] = '}';
    return (struct slice){record, (size_t)head + rest + 1};
}

static bool take_items(struct watch *watch, const struct token *array) {
    enum { RECORDS_BYTES = 4 << 20 };
    struct kubernetes_receiver *receiver = watch->receiver;
    struct json_items items = json_items_of(array);
    struct token item;
    struct object_meta meta;
    size_t bytes = 0;
    while (json_items_next(&items, &item)) {
        if (item.kind != TOKEN_OBJECT || !object_meta_read(token_slice(&item), &meta))
            return false;
        struct slice record = record_of(watch, &item);
        take_object(watch, WATCH_EVENT_ADDED, &meta, record);
        bytes += record.size;
        if (bytes < RECORDS_BYTES)
            continue;
        bytes = 0;
        feed_flush(receiver->feed);
        arena_reset(&receiver->scratch);
    }
    return true;
}

bool watch_take_page(struct watch *watch, bool *last) {
    struct list_page page;
    assert(watch->phase == PHASE_PAGE);
    if (!list_page_read(buffer_slice(&watch->page), &page) ||
        page.more.size >= sizeof watch->more || page.version.size > VERSION_MAX ||
        (page.items.kind == TOKEN_ARRAY && !take_items(watch, &page.items)))
        return false;
    *last = page.more.size == 0;
    if (watch->more[0] == '\0')
        snprintf(watch->listed_version, sizeof watch->listed_version, "%.*s",
                 (int)page.version.size, page.version.data);
    snprintf(watch->more, sizeof watch->more, "%.*s", (int)page.more.size,
             page.more.data == NULL ? "" : page.more.data);
    if (*last)
        end_list(watch, slice_of(watch->listed_version));
    feed_flush(watch->receiver->feed);
    arena_reset(&watch->receiver->scratch);
    return true;
}
