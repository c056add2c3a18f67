// SPDX-License-Identifier: Apache-2.0
// Makes records of what changed: tagged lines ib_counters and sysfs_aer, each of one port or
// device. What changed is told as it was at the reading before, too, where that was not told: else
// nobody could say how long ago it was otherwise. For a minute after a change, what was told is
// told again every 5 s: detectors that wait whether it lasts see time go on. Now and then all is
// told. The record's memory is kept.
#include "base/text/json_write.h"
#include "pipeline/component/feed.h"
#include "receivers/sysfs/receiver.h"

#include <stdio.h>

static bool same_text(const char *a, size_t a_size, const char *b, size_t b_size) {
    return a_size == b_size && memcmp(a, b, a_size) == 0;
}

static bool is_whole_due(const struct sysfs_receiver *receiver, const struct read_times *times,
                         uint64_t now_ns) {
    uint64_t repeat_ns = (uint64_t)receiver->config->repeat.ns;
    if (times->whole_ns == 0 || now_ns < times->whole_ns) // also when the clock was set back
        return true;
    return repeat_ns > 0 && now_ns - times->whole_ns >= repeat_ns;
}

static const uint64_t AGAIN_NS = 5ull * 1000 * 1000 * 1000;
static const uint64_t AGAIN_FOR_NS = 60ull * 1000 * 1000 * 1000;

static bool is_again_due(const struct read_times *times, uint64_t now_ns) {
    return times->changed_ns != 0 && now_ns >= times->told_ns &&
           now_ns - times->told_ns >= AGAIN_NS && now_ns - times->changed_ns <= AGAIN_FOR_NS;
}

static void begin(struct sysfs_receiver *receiver, struct json_writer *json, const char *source,
                  uint64_t time_ns) {
    buffer_reset(&receiver->record);
    json_begin(json, &receiver->record, 0);
    json_object_open(json);
    json_field_text(json, "source", source);
    json_field_uint(json, "timestamp_ns", time_ns);
    json_field_text(json, "k8s.node.name", receiver->node);
}

static void offer(struct sysfs_receiver *receiver, struct json_writer *json) {
    json_object_close(json);
    assert(!receiver->record.failed);
    receiver->position.number++;
    feed_source_reached(receiver->source, &receiver->position);
    (void)record_sink_offer(&receiver->sink, receiver->source, buffer_slice(&receiver->record),
                            receiver->position.number);
    feed_flush(receiver->sink.feed); // before the record's memory is used again
}

// -- ports ----------------------------------------------------------------------------------------

enum which { CHANGED, STATES, ALL };

static bool is_changed(const struct sysfs_value *value) {
    return value->fresh.size > 0 &&
           !same_text(value->fresh.bytes, value->fresh.size, value->kept.bytes, value->kept.size);
}

// Which parts of a record have something to tell. The four texts of a port go together: a rate
// alone would be no record.
struct change {
    bool state, counters, hw_counters;
    bool had_one; // something that changed was there before
};

static struct change find_change(const struct sysfs_value *values, uint32_t count) {
    struct change change = {0};
    for (uint32_t i = 0; i < count; i++) {
        if (!is_changed(&values[i]))
            continue;
        change.counters = change.counters || values[i].kind == VALUE_COUNTER;
        change.hw_counters = change.hw_counters || values[i].kind == VALUE_HW_COUNTER;
        change.state = change.state || values[i].kind < VALUE_COUNTER;
        change.had_one = change.had_one || values[i].kept.size > 0;
    }
    return change;
}

static void write_counters(struct json_writer *json, const char *key, enum value_kind kind,
                           const struct sysfs_value *values, uint32_t count, enum which which,
                           bool before) {
    json_field_object_open(json, key);
    for (uint32_t i = 0; i < count; i++) {
        const struct value_text *text = before ? &values[i].kept : &values[i].fresh;
        if (values[i].kind == kind && text->size > 0 && (which == ALL || is_changed(&values[i])))
            json_field_slice(json, values[i].name, (struct slice){text->bytes, text->size});
    }
    json_object_close(json);
}

// With `before`: as it was at the reading before.
static void tell_port(struct sysfs_receiver *receiver, const struct sysfs_card *card,
                      const struct sysfs_port *port, enum which which, bool before) {
    const struct sysfs_value *values = card->values + port->first;
    struct change change = find_change(values, port->count);
    struct json_writer json;
    begin(receiver, &json, "ib_counters", before ? port->times.before_ns : card->read_ns);
    json_field_text(&json, "device", card->name);
    if (port->number > 0)
        json_field_uint(&json, "port", port->number);
    if (card->address[0] != '\0')
        json_field_text(&json, "pci_bus_id", card->address);
    for (uint32_t i = 0; i < port->count && (which != CHANGED || change.state); i++) {
        const struct value_text *text = before ? &values[i].kept : &values[i].fresh;
        if (values[i].kind < VALUE_COUNTER && text->size > 0)
            json_field_slice(&json, values[i].name, (struct slice){text->bytes, text->size});
    }
    if (which == ALL || change.counters)
        write_counters(&json, "counters", VALUE_COUNTER, values, port->count, which, before);
    if (which == ALL || change.hw_counters)
        write_counters(&json, "hw_counters", VALUE_HW_COUNTER, values, port->count, which, before);
    offer(receiver, &json);
}

// What is to be told of a reading: all, what changed, the states once more. False: nothing.
static bool choose(const struct sysfs_receiver *receiver, const struct sysfs_port *port,
                   const struct sysfs_value *values, bool changed, uint64_t now_ns,
                   enum which *which) {
    *which = is_whole_due(receiver, &port->times, now_ns) ? ALL : changed ? CHANGED : STATES;
    bool has_state = port->count > 0 && values->kind == VALUE_STATE && values->kept.size > 0;
    return *which != STATES || (has_state && is_again_due(&port->times, now_ns));
}

static void tell_reading(struct sysfs_receiver *receiver, const struct sysfs_card *card,
                         struct sysfs_port *port) {
    const struct sysfs_value *values = card->values + port->first;
    struct read_times *times = &port->times;
    struct change change = find_change(values, port->count);
    bool changed = change.state || change.counters || change.hw_counters;
    enum which which;
    if (change.had_one && times->before_ns > times->told_ns)
        tell_port(receiver, card, port, CHANGED, true);
    if (choose(receiver, port, values, changed, card->read_ns, &which)) {
        tell_port(receiver, card, port, which, false);
        times->told_ns = card->read_ns;
        if (which == ALL)
            times->whole_ns = card->read_ns;
    }
    if (changed && times->before_ns > 0)
        times->changed_ns = card->read_ns;
    times->before_ns = card->read_ns;
}

void sysfs_tell_card(struct sysfs_receiver *receiver, struct sysfs_card *card) {
    for (uint32_t i = 0; i < card->port_count; i++)
        tell_reading(receiver, card, &card->ports[i]);
    for (uint32_t i = 0; i < card->value_count; i++)
        if (card->values[i].fresh.size > 0)
            card->values[i].kept = card->values[i].fresh;
}

// -- PCI devices ----------------------------------------------------------------------------------

static bool is_text_changed(const struct sysfs_pci *device, int file) {
    const struct aer_text *fresh = &device->fresh[file], *kept = &device->kept[file];
    return fresh->size > 0 && !same_text(fresh->bytes, fresh->size, kept->bytes, kept->size);
}

static void tell_device(struct sysfs_receiver *receiver, const struct sysfs_pci *device,
                        uint64_t time_ns, bool before) {
    struct json_writer json;
    begin(receiver, &json, "sysfs_aer", time_ns);
    json_field_text(&json, "pci_bus_id", device->address);
    for (int i = 0; i < SYSFS_AER_FILES; i++) {
        const struct aer_text *text = before ? &device->kept[i] : &device->fresh[i];
        if (text->size > 0)
            json_field_slice(&json, SYSFS_AER_NAMES[i], (struct slice){text->bytes, text->size});
    }
    offer(receiver, &json);
}

void sysfs_tell_pci(struct sysfs_receiver *receiver, struct sysfs_pci *device, uint64_t now_ns) {
    bool changed = false;
    bool whole = is_whole_due(receiver, &device->times, now_ns);
    for (int i = 0; i < SYSFS_AER_FILES; i++)
        changed = changed || is_text_changed(device, i);
    if (changed && device->times.before_ns > device->times.told_ns)
        tell_device(receiver, device, device->times.before_ns, true);
    if (changed || whole || is_again_due(&device->times, now_ns)) {
        tell_device(receiver, device, now_ns, false);
        device->times.told_ns = now_ns;
    }
    if (whole)
        device->times.whole_ns = now_ns;
    if (changed && device->times.before_ns > 0)
        device->times.changed_ns = now_ns;
    device->times.before_ns = now_ns;
    for (int i = 0; changed && i < SYSFS_AER_FILES; i++)
        if (device->fresh[i].size > 0)
            device->kept[i] = device->fresh[i];
}
