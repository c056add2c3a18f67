// SPDX-License-Identifier: Apache-2.0
// Keeps what is told until its time has come, and hands it on in order.
#include "processors/pcie_aer/facts.h"

#include "base/sort.h"
#include "processors/cluster/tables.h"

#include <assert.h>

enum { WAITING_PER_CHUNK = 256, DEVICES_PER_CHUNK = 16, INCIDENTS_PER_CHUNK = 8 };
_Static_assert(sizeof(struct aer_fact) == 80, "as option max_waiting says");

void aer_facts_init(struct aer_facts *facts, const struct aer_rules *rules) {
    *facts = (struct aer_facts){.rules = *rules, .open_head = TABLE_NO_ROW};
    table_init(&facts->waiting, "pcie_aer.waiting", sizeof(struct aer_fact), WAITING_PER_CHUNK);
    keyed_rows_init(&facts->devices, "pcie_aer.devices", sizeof(struct aer_device),
                    sizeof(struct aer_device_key), DEVICES_PER_CHUNK);
    table_init(&facts->incidents, "pcie_aer.incidents", sizeof(struct aer_incident),
               INCIDENTS_PER_CHUNK);
}

void aer_facts_release(struct aer_facts *facts) {
    table_release(&facts->waiting);
    keyed_rows_release(&facts->devices);
    table_release(&facts->incidents);
}

void aer_facts_state(struct aer_facts *facts, struct state_list *list) {
    struct state_entry *waiting = state_list_table(list, &facts->waiting);
    state_entry_string(waiting, offsetof(struct aer_fact, node));
    state_entry_string(waiting, offsetof(struct aer_fact, uuid));
    state_entry_string(waiting, offsetof(struct aer_fact, job));
    struct state_entry *devices = state_list_table(list, &facts->devices.table);
    state_entry_string(devices, offsetof(struct aer_device, key.node));
    state_entry_string(devices, offsetof(struct aer_device, uuid));
    state_entry_string(devices, offsetof(struct aer_device, job));
    state_list_table(list, &facts->incidents);
}

void aer_facts_restored(struct aer_facts *facts) {
    keyed_rows_restored(&facts->devices);
    facts->open_head = TABLE_NO_ROW;
    struct aer_device *device;
    for (uint32_t at = 0; (device = keyed_rows_next(&facts->devices, &at)) != NULL;)
        if (device->report.first_ns != 0)
            aer_report_link(facts, device);
}

static struct aer_fact *fact_at(const struct aer_facts *facts, uint32_t row) {
    return table_row(&facts->waiting, row);
}

// -- What is told ---------------------------------------------------------------------------------

static bool read_line(const struct kernel_line *line, struct aer_fact *fact) {
    fact->line = (uint8_t)line->aer;
    fact->severity = (uint8_t)line->severity;
    fact->flags =
        (uint8_t)((line->multiple ? FACT_MULTIPLE : 0) |
                  (slice_equal(line->driver, SLICE("pcieport")) ? FACT_BY_PORT_DRIVER : 0));
    fact->address = line->address;
    fact->port = line->port;
    fact->line_values.status = line->status;
    fact->line_values.mask = line->mask;
    fact->line_values.vendor = line->vendor;
    if (line->aer == AER_RECOVERED || line->aer == AER_FAILED) {
        fact->kind = FACT_OUTCOME;
        return true;
    }
    if (line->aer == AER_BIT) {
        // The name says which register the bit is of; both may know a name at that place.
        const struct aer_bit *corrected = aer_bit_find_name(AER_CORRECTABLE, line->detail);
        const struct aer_bit *other = aer_bit_find_name(AER_FATAL, line->detail);
        uint32_t bit = UINT32_C(1) << (line->bit & 31);
        if (corrected != NULL && corrected->bit == (uint32_t)line->bit)
            fact->line_values.correctable_bits = bit;
        if (other != NULL && other->bit == (uint32_t)line->bit)
            fact->line_values.uncorrectable_bits = bit;
        if (fact->line_values.correctable_bits == 0 && fact->line_values.uncorrectable_bits == 0)
            return false;
    }
    return line->aer != AER_HEADER && line->aer != AER_SUPPRESSED && line->aer != AER_LINK_RESET;
}

static bool read_kernel(const struct kernel_line *line, struct aer_fact *fact) {
    if (line->kind == KERNEL_AER)
        return read_line(line, fact) && fact->address != PCI_NONE;
    bool is_lost = line->kind == KERNEL_GPU_LOST;
    if (!is_lost && (line->kind != KERNEL_XID || (line->code != 79 && line->code != 167)))
        return false;
    fact->kind = FACT_XID;
    fact->address = line->address;
    fact->line_values.code = is_lost ? 79 : (uint16_t)line->code;
    return line->address != PCI_NONE;
}

static uint64_t sum_counters(const struct aer_counter *counters, uint32_t count, uint64_t total) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += counters[i].count;
    return total > 0 || count == 0 ? total : sum;
}

static bool read_counters(const struct aer_counters *from, struct aer_fact *fact) {
    fact->kind = FACT_COUNTERS;
    fact->address = from->address;
    uint64_t *count = fact->counters.count;
    count[COUNT_CORRECTABLE] =
        sum_counters(from->correctable, from->correctable_count, from->correctable_total);
    count[COUNT_NONFATAL] =
        sum_counters(from->nonfatal, from->nonfatal_count, from->nonfatal_total);
    count[COUNT_FATAL] = sum_counters(from->fatal, from->fatal_count, from->fatal_total);
    fact->counters.has = (from->has_correctable ? 1u << COUNT_CORRECTABLE : 0u) |
                         (from->has_nonfatal ? 1u << COUNT_NONFATAL : 0u) |
                         (from->has_fatal ? 1u << COUNT_FATAL : 0u);
    return from->address != PCI_NONE;
}

static bool read_gpu(const struct gpu_sample *sample, struct aer_fact *fact) {
    static const enum gpu_field FIELDS[LINK_VALUES] = {
        [LINK_GENERATION] = GPU_PCIE_LINK_GENERATION,    [LINK_WIDTH] = GPU_PCIE_LINK_WIDTH,
        [LINK_MAX_GENERATION] = GPU_PCIE_MAX_GENERATION, [LINK_MAX_WIDTH] = GPU_PCIE_MAX_WIDTH,
        [LINK_UTILIZATION] = GPU_UTILIZATION_PERCENT,    [LINK_XID] = GPU_XID};
    fact->kind = FACT_GPU;
    fact->address = sample->address;
    fact->time_ns = sample->time_ns;
    fact->node = sample->node;
    for (unsigned i = 0; i < LINK_VALUES; i++) {
        int64_t value = sample->whole[FIELDS[i]];
        if ((sample->present >> FIELDS[i] & 1) == 0 || value < 0 || value > INT16_MAX)
            continue;
        fact->gpu.link[i] = (int16_t)value;
        fact->gpu.has |= (uint16_t)(1u << i);
    }
    if ((sample->present >> GPU_PCIE_REPLAYS & 1) != 0 && sample->whole[GPU_PCIE_REPLAYS] >= 0) {
        fact->gpu.replays = (uint64_t)sample->whole[GPU_PCIE_REPLAYS];
        fact->gpu.has |= GPU_HAS_REPLAYS;
    }
    if ((sample->present >> GPU_PCIE_CORRECTABLE & 1) != 0 &&
        sample->whole[GPU_PCIE_CORRECTABLE] >= 0) {
        fact->gpu.correctable = (uint64_t)sample->whole[GPU_PCIE_CORRECTABLE];
        fact->gpu.has |= GPU_HAS_CORRECTABLE;
    }
    if (sample->uuid.size > 0)
        fact->uuid = intern(sample->uuid);
    if (fact->uuid == STRING_REFUSED)
        fact->uuid = STRING_NONE;
    return sample->address != PCI_NONE && fact->gpu.has != 0;
}

static void keep(struct aer_facts *facts, const struct aer_fact *fact, struct arena *arena);

void aer_facts_add(struct aer_facts *facts, const struct event *event, struct arena *arena) {
    struct aer_fact fact = {.live = 1,
                            .node = event->node,
                            .job = event->job,
                            .time_ns = event->time_ns,
                            .address = PCI_NONE,
                            .port = PCI_NONE};
    if (event->kind == EVENT_KERNEL && read_kernel(event->kernel, &fact))
        keep(facts, &fact, arena);
    if (event->kind == EVENT_AER_COUNTERS && read_counters(event->aer, &fact))
        keep(facts, &fact, arena);
    if (event->kind != EVENT_GPU_SAMPLE)
        return;
    const struct aer_fact plain = fact;
    for (uint32_t i = 0; i < event->gpus->count; i++) {
        fact = plain;
        if (read_gpu(&event->gpus->samples[i], &fact))
            keep(facts, &fact, arena);
    }
}

// -- Devices --------------------------------------------------------------------------------------

static uint32_t row_number(const struct keyed_rows *rows, const struct row_head *row) {
    uint32_t number = rows->chains[row->hash & (rows->chain_count - 1)];
    while (table_row(&rows->table, number) != row)
        number = ((struct row_head *)table_row(&rows->table, number))->next;
    return number;
}

static int compare_seen(const void *a, const void *b) {
    const struct aer_device *first = *(struct aer_device *const *)a;
    const struct aer_device *second = *(struct aer_device *const *)b;
    return (first->seen_ns > second->seen_ns) - (first->seen_ns < second->seen_ns);
}

// When there are too many devices, a sixteenth of them goes: those heard of least recently that are
// in no incident. Where these are too few, there may be up to twice as many; false when there is
// no room for one more.
static bool make_room(struct aer_facts *facts, struct arena *arena) {
    uint32_t max = facts->rules.max_devices;
    uint32_t count = keyed_rows_count(&facts->devices), at = 0, idle = 0;
    if (count < max || (count < facts->looked_at && count < 2 * max))
        return true;
    if (count >= 2 * max && count < facts->looked_at)
        return false;
    struct aer_device **devices = arena_take(arena, count * sizeof *devices), *device;
    while ((device = keyed_rows_next(&facts->devices, &at)) != NULL)
        if (device->incident_count == 0 && device->report.first_ns == 0)
            devices[idle++] = device;
    sort_stable(devices, idle, sizeof *devices, arena, compare_seen);
    uint32_t share = count - max + max / 16 + 1;
    for (uint32_t i = 0; i < idle && i < share; i++, facts->evicted++)
        keyed_rows_remove(&facts->devices, devices[i]);
    // Not again for each device more: that would be a walk through all of them each time.
    count = keyed_rows_count(&facts->devices);
    facts->looked_at = count < max ? 0 : count + max / 16 + 1;
    return count < 2 * max;
}

static struct aer_device *find_device(struct aer_facts *facts, const struct aer_fact *fact,
                                      struct arena *arena) {
    struct aer_device_key key = {fact->node, fact->address};
    struct aer_device *device = keyed_rows_find(&facts->devices, &key);
    if (device == NULL) {
        if (!make_room(facts, arena)) {
            facts->evicted++;
            return NULL;
        }
        device = keyed_rows_add(&facts->devices, &key);
        device->self = row_number(&facts->devices, &device->head);
        device->port = PCI_NONE;
        for (unsigned i = 0; i < INCIDENT_KINDS; i++)
            device->open[i] = TABLE_NO_ROW;
        for (unsigned i = 0; i < LINK_VALUES; i++)
            device->link[i] = -1;
    }
    device->seen_ns = fact->time_ns;
    device->job = fact->job != STRING_NONE ? fact->job : device->job;
    return device;
}

// -- Incidents ------------------------------------------------------------------------------------

struct aer_incident *aer_incident_of(const struct aer_facts *facts, const struct aer_device *device,
                                     enum aer_incident_kind kind) {
    return device->open[kind] == TABLE_NO_ROW ? NULL : aer_incident_at(facts, device->open[kind]);
}

struct aer_incident *aer_incident_open(struct aer_facts *facts, struct aer_device *device,
                                       enum aer_incident_kind kind) {
    assert(device->open[kind] == TABLE_NO_ROW);
    uint32_t row = table_add(&facts->incidents);
    struct aer_incident *incident = aer_incident_at(facts, row);
    incident->live = 1;
    incident->device = device->self;
    incident->kind = (uint8_t)kind;
    incident->port = PCI_NONE;
    device->open[kind] = row;
    device->incident_count++;
    return incident;
}

void aer_incident_end(struct aer_facts *facts, struct aer_device *device,
                      enum aer_incident_kind kind) {
    if (device->open[kind] == TABLE_NO_ROW)
        return;
    aer_incident_at(facts, device->open[kind])->ended = true;
    device->open[kind] = TABLE_NO_ROW;
}

void aer_incident_forget(struct aer_facts *facts, uint32_t row) {
    struct aer_incident *incident = aer_incident_at(facts, row);
    aer_device_at(facts, incident->device)->incident_count--;
    incident->live = 0;
    table_free(&facts->incidents, row);
}

// What nobody has told of for long is over.
static void end_silent(struct aer_facts *facts, uint64_t now_ns) {
    for (uint32_t row = 0; row < facts->incidents.used; row++) {
        const struct aer_incident *incident = aer_incident_at(facts, row);
        if (incident->live == 0 || incident->ended)
            continue;
        uint64_t bound = facts->rules.silence_ns, since = incident->last_ns;
        if (incident->kind == INCIDENT_UNCORRECTABLE) {
            bound = facts->rules.hold_ns;
            since = incident->xid_ns > since ? incident->xid_ns : since;
        } else if (incident->kind == INCIDENT_STORM && incident->source != SOURCE_LOG) {
            const struct aer_device *device = aer_device_at(facts, incident->device);
            since = device->trackers[incident->source].last_ns;
        }
        if (now_ns > since && now_ns - since > bound)
            aer_incident_end(facts, aer_device_at(facts, incident->device),
                             (enum aer_incident_kind)incident->kind);
    }
}

// -- In order of time -----------------------------------------------------------------------------

struct listed {
    const struct aer_fact *fact;
    uint32_t row;
};

static int compare_listed(const void *a, const void *b) {
    const struct aer_fact *first = ((const struct listed *)a)->fact;
    const struct aer_fact *second = ((const struct listed *)b)->fact;
    if (first->time_ns != second->time_ns)
        return first->time_ns < second->time_ns ? -1 : 1;
    if (first->kind != second->kind)
        return first->kind < second->kind ? -1 : 1;
    // Devices do not depend on one another; what is told of one is ordered by what it says.
    if (first->node != second->node)
        return first->node < second->node ? -1 : 1;
    if (first->address != second->address)
        return first->address < second->address ? -1 : 1;
    if (first->line != second->line)
        return first->line < second->line ? -1 : 1;
    size_t from = offsetof(struct aer_fact, address);
    int order =
        memcmp((const char *)first + from, (const char *)second + from, sizeof *first - from);
    if (order == 0)
        order = (first->flags > second->flags) - (first->flags < second->flags);
    if (order == 0)
        order = slice_compare(intern_slice(first->uuid), intern_slice(second->uuid));
    return order != 0 ? order : slice_compare(intern_slice(first->job), intern_slice(second->job));
}

static struct listed *list_waiting(const struct aer_facts *facts, uint64_t until_ns,
                                   struct arena *arena, uint32_t *count) {
    struct listed *list = arena_take(arena, (facts->waiting.used + 1) * sizeof *list);
    *count = 0;
    for (uint32_t row = 0; row < facts->waiting.used; row++)
        if (fact_at(facts, row)->live != 0 && fact_at(facts, row)->time_ns <= until_ns)
            list[(*count)++] = (struct listed){fact_at(facts, row), row};
    sort_stable(list, *count, sizeof *list, arena, compare_listed);
    return list;
}

static void take(struct aer_facts *facts, const struct aer_fact *fact, struct arena *arena) {
    aer_reports_close(facts, fact->time_ns);
    if (fact->kind == FACT_OUTCOME) {
        aer_outcome_take(facts, fact);
        return;
    }
    struct aer_device *device = find_device(facts, fact, arena);
    if (device == NULL)
        return;
    switch ((enum aer_fact_kind)fact->kind) {
    case FACT_LINE:
        aer_report_take(facts, device, fact);
        break;
    case FACT_COUNTERS:
        aer_counters_take(facts, device, fact);
        break;
    case FACT_GPU:
        device->is_gpu = true;
        if (fact->uuid != STRING_NONE)
            device->uuid = fact->uuid;
        aer_gpu_take(facts, device, fact);
        break;
    case FACT_XID:
        device->is_gpu = true;
        aer_xid_take(facts, device, fact->time_ns, fact->line_values.code, false);
        break;
    case FACT_OUTCOME:
        break;
    }
}

static void take_until(struct aer_facts *facts, uint64_t until_ns, struct arena *arena) {
    uint32_t count;
    struct listed *list = list_waiting(facts, until_ns, arena, &count);
    for (uint32_t i = 0; i < count; i++) {
        take(facts, list[i].fact, arena);
        fact_at(facts, list[i].row)->live = 0;
        table_free(&facts->waiting, list[i].row);
    }
}

static void keep(struct aer_facts *facts, const struct aer_fact *fact, struct arena *arena) {
    if (fact->time_ns == 0)
        return;
    if (table_live(&facts->waiting) >= facts->rules.max_waiting) {
        uint32_t count;
        struct listed *list = list_waiting(facts, UINT64_MAX, arena, &count);
        take_until(facts, list[count / 2].fact->time_ns, arena);
    }
    uint32_t row = table_add(&facts->waiting);
    *fact_at(facts, row) = *fact;
}

void aer_facts_advance(struct aer_facts *facts, uint64_t now_ns, bool last, struct arena *arena) {
    take_until(facts, now_ns, arena);
    aer_reports_close(facts, last ? UINT64_MAX : now_ns);
    end_silent(facts, now_ns);
}
