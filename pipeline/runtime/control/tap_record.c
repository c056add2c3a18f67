// SPDX-License-Identifier: Apache-2.0
// A copy is: struct tap_event, its facts, the record's bytes, the texts of the facts one behind the
// other.
#include "pipeline/runtime/control/tap_record.h"

#include "base/clock.h"
#include "base/text/json_write.h"
#include "pipeline/component/decoder.h"
#include "pipeline/model/node_event.h"

#include <assert.h>

static uint32_t facts_of(const struct event *event, const struct fact **facts) {
    if (event->kind != EVENT_OBSERVATION)
        return 0;
    *facts = event->observation->facts;
    assert(event->observation->fact_count <= FACT_KEY_COUNT);
    return event->observation->fact_count;
}

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

static size_t text_kept(const struct fact *fact) {
    return fact_type(fact->key) == FACT_TEXT ? least(fact->text.size, TAP_TEXT_MAX) : 0;
}

// A record that is no text (a pickle) is not copied.
static size_t raw_kept(const struct event *event) {
    size_t kept = least(event->raw.size, TAP_RAW_MAX);
    return kept > 0 && memchr(event->raw.data, '\0', kept) != NULL ? 0 : kept;
}

size_t tap_event_size(const struct event *event) {
    const struct fact *facts = NULL;
    uint32_t count = facts_of(event, &facts);
    assert(count == 0 || facts != NULL);
    size_t size = sizeof(struct tap_event) + count * sizeof *facts + raw_kept(event);
    for (uint32_t i = 0; i < count; i++)
        size += text_kept(&facts[i]);
    return (size + 7) / 8 * 8;
}

void tap_event_copy(const struct event *event, void *room) {
    const struct fact *facts = NULL;
    uint32_t count = facts_of(event, &facts);
    assert((uintptr_t)room % 8 == 0);
    assert(count == 0 || facts != NULL);
    struct tap_event *copy = room;
    *copy = (struct tap_event){
        .event = *event,
        .class = event_class(event),
        .path = event->carried == NULL ? event->source : event->carried->path,
        .raw_size = event->raw.size > UINT32_MAX ? UINT32_MAX : (uint32_t)event->raw.size,
        .raw_kept = (uint32_t)raw_kept(event),
        .fact_count = count};
    char *at = (char *)(copy + 1);
    if (count > 0)
        memcpy(at, facts, count * sizeof *facts);
    at += count * sizeof *facts;
    if (copy->raw_kept > 0)
        memcpy(at, event->raw.data, copy->raw_kept);
    at += copy->raw_kept;
    for (uint32_t i = 0; i < count; i++) {
        size_t size = text_kept(&facts[i]);
        if (size > 0)
            memcpy(at, facts[i].text.data, size);
        at += size;
    }
}

static void put_name(struct json_writer *json, const char *key, string_id name) {
    if (name != STRING_NONE && name != STRING_REFUSED)
        json_field_slice(json, key, intern_slice(name));
}

// Returns where the next fact's text begins.
static const char *put_fact(struct json_writer *json, const struct fact *fact, const char *text) {
    json_key(json, fact_name(fact->key));
    size_t size = text_kept(fact);
    char address[PCI_TEXT_MAX];
    switch (fact_type(fact->key)) {
    case FACT_NUMBER:
        json_int(json, fact->number);
        break;
    case FACT_TEXT:
        json_slice(json, (struct slice){text, size});
        break;
    case FACT_YES_NO:
        json_bool(json, fact->yes);
        break;
    case FACT_PCI_ADDRESS:
        pci_format_function(fact->address, address);
        json_text(json, address);
        break;
    }
    return text + size;
}

static void put_facts(struct json_writer *json, const struct tap_event *copy, const char *texts) {
    const struct fact *facts = (const struct fact *)(const void *)(copy + 1);
    if (copy->fact_count == 0)
        return;
    json_field_object_open(json, "facts");
    for (uint32_t i = 0; i < copy->fact_count; i++)
        texts = put_fact(json, &facts[i], texts);
    json_object_close(json);
}

void tap_event_encode(const void *room, struct buffer *out) {
    const struct tap_event *copy = room;
    const struct event *event = &copy->event;
    const char *raw = (const char *)(copy + 1) + copy->fact_count * sizeof(struct fact);
    const char *name = event_class_name(copy->class);
    char time[CLOCK_RFC3339_MAX];
    assert(copy->raw_kept <= copy->raw_size);
    struct json_writer json;
    json_begin(&json, out, 0);
    json_object_open(&json);
    json_field_text(&json, "event", name == NULL ? "unknown" : name);
    if (event->time_ns != 0) {
        clock_format_rfc3339(event->time_ns, time);
        json_field_text(&json, "time", time);
    }
    put_name(&json, "job", event->job);
    put_name(&json, "node", event->node);
    if (event->rank != RANK_NONE)
        json_field_int(&json, "rank", event->rank);
    put_name(&json, "source", copy->path);
    json_field_uint(&json, "position", event->position);
    if (event->decoder != NULL)
        json_field_text(&json, "format", event->decoder->name);
    put_facts(&json, copy, raw + copy->raw_kept);
    if (copy->raw_kept > 0)
        json_field_slice(&json, "record", (struct slice){raw, copy->raw_kept});
    if (copy->raw_kept < copy->raw_size)
        json_field_uint(&json, "record_bytes", copy->raw_size);
    json_object_close(&json);
    buffer_append_char(out, '\n');
}
