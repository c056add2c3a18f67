// SPDX-License-Identifier: Apache-2.0
// What the counters and states of ports did from one sample to the next. The first sample is what
// was there before: a port that was never active is one that nobody uses. A counter that falls was
// reset. O(1) a sample, O(log) to put it in order.
#include "base/sort.h"
#include "pipeline/model/node_event.h"
#include "pipeline/model/observation.h"
#include "processors/cluster/compare.h"
#include "processors/cluster/due_rows.h"
#include "processors/fabric_link/parts.h"

// As InfiniBand's PortCounters have them: of 4, 8 and 16 bits, which stick at their maximum.
const struct port_counter_row PORT_COUNTERS[PORT_COUNTER_COUNT] = {
    [PORT_STATE] = {"state", INT64_MAX},
    [PORT_LINK_DOWNED] = {"link_downed", 255},
    [PORT_SYMBOL_ERRORS] = {"symbol_error", 65535},
    [PORT_RECEIVE_ERRORS] = {"port_rcv_errors", 65535},
    [PORT_RECOVERIES] = {"link_error_recovery", 255},
    [PORT_INTEGRITY_ERRORS] = {"local_link_integrity_errors", 15},
    [PORT_OVERRUNS] = {"excessive_buffer_overrun_errors", 15},
    [PORT_REMOTE_ERRORS] = {"port_rcv_remote_physical_errors", 65535},
};

struct port_sample {
    uint32_t chain; // the table's own
    uint32_t live;
    string_id node, device;
    uint64_t address; // or PCI_NONE
    uint64_t time_ns;
    int64_t value;
    int32_t port;
    uint32_t counter;
    uint32_t number; // of its row
};

// The last sample of one counter of one port.
struct port_row {
    struct row_head head;
    string_id node, device; // the key: up to `counter`
    int32_t port;
    uint32_t counter;
    uint64_t time_ns;
    int64_t value;
};
enum {
    PORT_KEY_SIZE = offsetof(struct port_row, counter) + sizeof(uint32_t) - sizeof(struct row_head)
};

const struct row_type PORT_SAMPLE_ROWS = {
    .size = sizeof(struct port_sample),
    .rows_per_chunk = 256,
    .strings = {offsetof(struct port_sample, node), offsetof(struct port_sample, device)},
};
const struct row_type PORT_ROWS = {
    .size = sizeof(struct port_row),
    .key_size = PORT_KEY_SIZE,
    .rows_per_chunk = 256,
    .strings = {offsetof(struct port_row, node), offsetof(struct port_row, device)},
};

static enum port_counter find_counter(struct slice name) {
    enum port_counter counter = PORT_LINK_DOWNED;
    while (counter < PORT_COUNTER_COUNT &&
           !slice_equal(name, slice_of(PORT_COUNTERS[counter].name)))
        counter++;
    return counter;
}

// PORT_COUNTER_COUNT: it tells of none. Without a state the physical one decides.
static enum port_counter read_sample(const struct observation *seen, int64_t *value) {
    struct slice text;
    if (seen->kind == OBSERVATION_IB_COUNTER) {
        bool whole = observation_text(seen, FACT_COUNTER, &text) &&
                     observation_number(seen, FACT_VALUE, value);
        return whole ? find_counter(text) : PORT_COUNTER_COUNT;
    }
    if (seen->kind != OBSERVATION_IB_STATE)
        return PORT_COUNTER_COUNT;
    if (observation_text(seen, FACT_STATE, &text))
        *value = slice_equal(text, SLICE("ACTIVE"));
    else if (observation_text(seen, FACT_STATUS, &text))
        *value = slice_equal(text, SLICE("LinkUp"));
    else
        return PORT_COUNTER_COUNT;
    return PORT_STATE;
}

void port_counters_take(struct port_counters *counters, struct link_log *log,
                        const struct event *event, struct arena *scratch) {
    const struct observation *seen = event->observation;
    struct slice device;
    int64_t value = 0, port = -1;
    enum port_counter counter = read_sample(seen, &value);
    if (counter == PORT_COUNTER_COUNT || !observation_text(seen, FACT_DEVICE, &device))
        return;
    string_id name = intern(device);
    if (name == STRING_REFUSED || name == STRING_NONE)
        return;
    const struct fact *nic = observation_fact(seen, FACT_NIC);
    pci_address address = nic == NULL ? PCI_NONE : nic->address;
    observation_number(seen, FACT_PORT, &port);
    link_log_name(log, event->node, name, address, event->time_ns, scratch);
    if (table_live(&counters->waiting) >= counters->waiting_max)
        port_counters_read(counters, log, UINT64_MAX, scratch);
    uint32_t number = table_add(&counters->waiting);
    struct port_sample *row = table_row(&counters->waiting, number);
    row->live = 1;
    row->number = number;
    row->node = event->node;
    row->device = name;
    row->address = address;
    row->time_ns = event->time_ns;
    row->value = value;
    row->port = port >= 0 && port < INT32_MAX ? (int32_t)port : -1;
    row->counter = counter;
}

static bool is_due(const void *row, uint64_t until_ns) {
    const struct port_sample *sample = row;
    return sample->live != 0 && sample->time_ns <= until_ns;
}

static int compare_samples(const void *left, const void *right) {
    const struct port_sample *a = ((const struct due_row *)left)->row;
    const struct port_sample *b = ((const struct due_row *)right)->row;
    return COMPARE_KEYS(COMPARE(a->time_ns, b->time_ns), COMPARE(a->node, b->node),
                        COMPARE(a->device, b->device), COMPARE(a->port, b->port),
                        COMPARE(a->counter, b->counter), COMPARE(a->value, b->value));
}

static void tell(struct link_log *log, const struct port_sample *sample,
                 const struct port_row *before, struct arena *scratch) {
    bool state = sample->counter == PORT_STATE;
    if (sample->value == before->value || (!state && sample->value < before->value))
        return;
    struct link_said like = {.node = sample->node,
                             .address = sample->address,
                             .time_ns = sample->time_ns,
                             .device = sample->device,
                             .what = !state               ? LINK_COUNTED
                                     : sample->value != 0 ? LINK_UP
                                                          : LINK_DOWN,
                             .port = sample->port,
                             .counter = sample->counter};
    struct link_said *said = link_log_add(log, &like, scratch);
    said->sampled = 1;
    said->since_ns = before->time_ns;
    said->from = before->value;
    said->to = sample->value;
}

static void read_one(struct port_counters *counters, struct link_log *log,
                     const struct port_sample *sample, struct arena *scratch) {
    struct port_row key = {.node = sample->node,
                           .device = sample->device,
                           .port = sample->port,
                           .counter = sample->counter};
    struct port_row *row =
        row_bound_take(&counters->ports, &counters->bound, (const char *)&key + sizeof key.head,
                       offsetof(struct port_row, time_ns), scratch);
    if (row->time_ns != 0 && sample->time_ns <= row->time_ns)
        return;
    if (row->time_ns != 0)
        tell(log, sample, row, scratch);
    row->time_ns = sample->time_ns;
    row->value = sample->value;
}

void port_counters_read(struct port_counters *counters, struct link_log *log, uint64_t until_ns,
                        struct arena *scratch) {
    struct due_rows due =
        due_rows_sorted(&counters->waiting, is_due, until_ns, scratch, compare_samples);
    for (uint32_t i = 0; i < due.count; i++)
        read_one(counters, log, due.items[i].row, scratch);
    for (uint32_t i = 0; i < due.count; i++) {
        ((struct port_sample *)due.items[i].row)->live = 0;
        table_free(&counters->waiting, due.items[i].number);
    }
}
