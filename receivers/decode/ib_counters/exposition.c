// SPDX-License-Identifier: Apache-2.0
// Gathers the series of each port, and writes them as one tagged line. Ports are found by a hash
// over device, number, node and time: O(1) a line. Memory: about 200 bytes a port, in the arena.
#include "receivers/decode/ib_counters/exposition.h"

#include "base/hash/hash.h"
#include "base/text/cut.h"
#include "base/text/json_write.h"
#include "receivers/decode/json/fault.h"
#include "receivers/decode/json/tagged_keys.h"
#include "receivers/decode/line/series.h"

#include <assert.h>
#include <stdlib.h>

enum { FIRST_CAPACITY = 16, NUMBER_MAX = 64, DEVICE_MAX = 63, STATE_ROW = -1, PHYSICAL_ROW = -2 };

static const struct {
    struct slice metric; // behind the prefix
    const char *file;
} COUNTERS[IB_EXPOSED_COUNTERS] = {
    {{"link_downed_total", 17}, "link_downed"},
    {{"symbol_error_total", 18}, "symbol_error"},
    {{"port_errors_received_total", 26}, "port_rcv_errors"},
    {{"link_error_recovery_total", 25}, "link_error_recovery"},
    {{"local_link_integrity_errors_total", 33}, "local_link_integrity_errors"},
    {{"excessive_buffer_overrun_errors_total", 37}, "excessive_buffer_overrun_errors"},
    {{"port_receive_remote_physical_errors_total", 41}, "port_rcv_remote_physical_errors"},
};
static const char *const STATES[] = {NULL,       "1: DOWN",   "2: INIT",
                                     "3: ARMED", "4: ACTIVE", "5: ACTIVE_DEFER"};
static const char *const PHYSICAL[] = {NULL,
                                       "1: Sleep",
                                       "2: Polling",
                                       "3: Disabled",
                                       "4: PortConfigurationTraining",
                                       "5: LinkUp",
                                       "6: LinkErrorRecovery",
                                       "7: Phy Test"};

// Which one it is, STATE_ROW or PHYSICAL_ROW; IB_EXPOSED_COUNTERS: none that is kept.
static int row_of(struct slice metric) {
    struct slice name = metric;
    if (!text_skip(&name, SLICE("node_infiniband_")))
        return IB_EXPOSED_COUNTERS;
    if (slice_equal(name, SLICE("state_id")))
        return STATE_ROW;
    if (slice_equal(name, SLICE("physical_state_id")))
        return PHYSICAL_ROW;
    int row = 0;
    while (row < IB_EXPOSED_COUNTERS && !slice_equal(name, COUNTERS[row].metric))
        row++;
    return row;
}

// Values are written as floating-point numbers: 2.5e+01.
static bool read_whole(struct slice text, uint64_t *whole) {
    char copy[NUMBER_MAX], *end;
    if (text.size == 0 || text.size >= sizeof copy || memchr(text.data, '\0', text.size) != NULL)
        return false;
    memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    double value = strtod(copy, &end);
    if (*end != '\0' || !(value >= 0 && value < 0x1p63))
        return false;
    *whole = (uint64_t)value;
    return (double)*whole == value;
}

// As the kernel names devices: letters, digits and marks of ASCII.
static bool is_device(struct slice name) {
    for (size_t i = 0; i < name.size; i++)
        if (name.data[i] <= ' ' || name.data[i] > '~' || strchr("\"\\/", name.data[i]) != NULL)
            return false;
    return name.size > 0 && name.size <= DEVICE_MAX;
}

static uint32_t find_slot(const struct ib_reading *reading, const struct ib_port *key) {
    uint32_t mask = reading->capacity * 2 - 1;
    uint64_t hash = hash_more(HASH_START, &key->time_ns, sizeof key->time_ns);
    hash = hash_more(hash, &key->number, sizeof key->number);
    hash = hash_more(hash, key->device.data, key->device.size);
    if (key->node.size > 0)
        hash = hash_more(hash, key->node.data, key->node.size);
    for (uint32_t slot = hash_folded(hash) & mask;; slot = (slot + 1) & mask) {
        if (reading->index[slot] == 0)
            return slot;
        const struct ib_port *port = &reading->ports[reading->index[slot] - 1];
        if (port->time_ns == key->time_ns && port->number == key->number &&
            slice_equal(port->device, key->device) && slice_equal(port->node, key->node))
            return slot;
    }
}

static void grow(struct ib_reading *reading) {
    uint32_t capacity = reading->capacity == 0 ? FIRST_CAPACITY : reading->capacity * 2;
    assert(reading->count < capacity);
    struct ib_port *ports = arena_take(reading->arena, capacity * sizeof *ports);
    if (reading->count > 0)
        memcpy(ports, reading->ports, reading->count * sizeof *ports);
    reading->ports = ports;
    reading->capacity = capacity;
    reading->index = arena_zero(reading->arena, (size_t)capacity * 2, sizeof *reading->index);
    for (uint32_t i = 0; i < reading->count; i++)
        reading->index[find_slot(reading, &ports[i])] = i + 1;
}

// Made when new; NULL: there are too many.
static struct ib_port *find_port(struct ib_reading *reading, const struct ib_port *key) {
    if (reading->count == reading->capacity)
        grow(reading);
    uint32_t slot = find_slot(reading, key);
    if (reading->index[slot] == 0) {
        if (reading->count == IB_EXPOSED_PORTS_MAX)
            return NULL;
        reading->ports[reading->count] = *key;
        reading->index[slot] = ++reading->count;
    }
    return &reading->ports[reading->index[slot] - 1];
}

static enum decode_category set_value(struct ib_reading *reading, struct ib_port *port, int row,
                                      struct slice metric, uint64_t value) {
    if (row >= 0) {
        port->counters[row] = value;
        port->present |= 1u << row;
        return DECODE_OK;
    }
    bool is_state = row == STATE_ROW;
    uint64_t count = is_state ? sizeof STATES / sizeof *STATES : sizeof PHYSICAL / sizeof *PHYSICAL;
    if (value >= count)
        return fault_set(reading->fault, DECODE_OUT_OF_RANGE, metric, "a state has 0 to %u",
                         (unsigned)count - 1);
    *(is_state ? &port->state : &port->physical) = (int32_t)value;
    return DECODE_OK;
}

bool ib_reading_keeps(struct slice metric) {
    return row_of(metric) != IB_EXPOSED_COUNTERS;
}

enum decode_category ib_reading_take(struct ib_reading *reading, struct slice line) {
    assert(reading->arena != NULL && reading->fault != NULL);
    struct slice metric = series_take_name(&line), name, text, number = {NULL, 0};
    int row = row_of(metric);
    if (row == IB_EXPOSED_COUNTERS)
        return DECODE_NOTHING;
    struct ib_port key = {.time_ns = reading->observed_ns, .state = -1, .physical = -1};
    struct series_labels labels = {.line = &line, .arena = reading->arena};
    struct slice node_label = reading->node_label.size > 0 ? reading->node_label : SLICE("node");
    while (series_next_label(&labels, &name, &text)) {
        if (slice_equal(name, SLICE("device")))
            key.device = text;
        else if (slice_equal(name, SLICE("port")))
            number = text;
        if (slice_equal(name, node_label) && text.size <= TAGGED_NAME_MAX)
            key.node = text;
    }
    uint64_t value = 0, port_number = 0;
    if (labels.wrong != NULL)
        return fault_set(reading->fault, DECODE_WRONG_TYPE, metric, "%s", labels.wrong);
    if (!is_device(key.device) || !text_number(number, 3, &port_number))
        return fault_set(reading->fault, DECODE_MISSING_FIELD, metric,
                         "the labels device and port must name a card (at most %d bytes) and the "
                         "number of its port",
                         DEVICE_MAX);
    if (!series_take_value(&line, &text, &key.time_ns))
        return fault_set(reading->fault, DECODE_WRONG_TYPE, metric,
                         "a timestamp that is not a time after 1970");
    if (!read_whole(text, &value))
        return fault_set(reading->fault, DECODE_WRONG_TYPE, metric,
                         "a value that is not a whole number");
    key.number = (uint32_t)port_number;
    struct ib_port *port = find_port(reading, &key);
    if (port == NULL)
        return fault_set(reading->fault, DECODE_LIMIT, metric, "more than %d ports",
                         IB_EXPOSED_PORTS_MAX);
    return set_value(reading, port, row, metric, value);
}

void ib_port_write(const struct ib_port *port, struct slice node, struct buffer *out) {
    struct json_writer json;
    json_begin(&json, out, 0);
    json_object_open(&json);
    json_field_text(&json, "source", "ib_counters");
    json_field_uint(&json, "timestamp_ns", port->time_ns);
    json_field_slice(&json, "k8s.node.name", node);
    json_field_slice(&json, "device", port->device);
    json_field_uint(&json, "port", port->number);
    if (port->state > 0)
        json_field_text(&json, "state", STATES[port->state]);
    if (port->physical > 0)
        json_field_text(&json, "phys_state", PHYSICAL[port->physical]);
    json_field_object_open(&json, "counters");
    for (int row = 0; row < IB_EXPOSED_COUNTERS; row++)
        if ((port->present >> row & 1) != 0)
            json_field_uint(&json, COUNTERS[row].file, port->counters[row]);
    json_object_close(&json);
    json_object_close(&json);
}
