// SPDX-License-Identifier: Apache-2.0
// Keeps what is told until its time has come, and hands it on in order.
#include "processors/pcie_aer/facts.h"

#include "base/sort.h"
#include "base/text/cut.h"
#include "pipeline/model/observation.h"
#include "processors/cluster/compare.h"
#include "processors/cluster/due_rows.h"
#include "processors/cluster/tables.h"

_Static_assert(sizeof(struct aer_fact) == 80, "as option max_waiting says");
KEYED_ROW_CHECK(struct aer_device, key);

const struct row_type AER_FACT_ROWS = {
    .size = sizeof(struct aer_fact),
    .rows_per_chunk = 256,
    .strings = {offsetof(struct aer_fact, node), offsetof(struct aer_fact, uuid),
                offsetof(struct aer_fact, job)},
};
const struct row_type AER_DEVICE_ROWS = {
    .size = sizeof(struct aer_device),
    .key_size = sizeof(struct aer_device_key),
    .rows_per_chunk = 16,
    .strings = {offsetof(struct aer_device, key.node), offsetof(struct aer_device, uuid),
                offsetof(struct aer_device, job)},
};
const struct row_type AER_INCIDENT_ROWS = {.size = sizeof(struct aer_incident),
                                           .rows_per_chunk = 8};

void aer_facts_start(struct aer_facts *facts, const struct aer_config *config) {
    facts->config = config;
    facts->open_head = TABLE_NO_ROW;
}

void aer_facts_restored(struct aer_facts *facts) {
    facts->open_head = TABLE_NO_ROW;
    struct aer_device *device;
    for (uint32_t at = 0; (device = keyed_rows_next(&facts->devices, &at)) != NULL;)
        if (device->report.first_ns != 0)
            aer_report_link(facts, device);
}

// -- What is told ---------------------------------------------------------------------------------

static bool begins(struct slice text, struct slice start) {
    return text.size >= start.size && memcmp(text.data, start.data, start.size) == 0;
}

// What the driver in front of the address says: "nvidia", "nvidia-nvswitch" is none; "mlx5_core".
static int flags_of(struct slice driver) {
    if (slice_equal(driver, SLICE("pcieport")))
        return FACT_BY_PORT_DRIVER;
    if (slice_equal(driver, SLICE("nvidia")) || slice_equal(driver, SLICE("nvgpu")))
        return FACT_OF_GPU;
    return begins(driver, SLICE("mlx4_")) || begins(driver, SLICE("mlx5_")) ? FACT_OF_NIC : 0;
}

static bool read_line(const struct kernel_line *line, struct aer_fact *fact) {
    fact->line = (uint8_t)line->aer;
    fact->severity = (uint8_t)line->severity;
    fact->flags = (uint8_t)((line->multiple ? FACT_MULTIPLE : 0) | flags_of(line->driver));
    fact->address = line->address;
    fact->port = line->port;
    fact->line_values.status = line->status;
    fact->line_values.mask = line->mask;
    fact->line_values.vendor = line->vendor;
    if (line->aer == AER_RECOVERED || line->aer == AER_FAILED) {
        fact->kind = AER_FACT_OUTCOME;
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
    fact->kind = AER_FACT_XID;
    fact->address = line->address;
    fact->line_values.code = is_lost ? 79 : (uint16_t)line->code;
    return line->address != PCI_NONE;
}

// The total that sysfs tells, else the sum of what it tells of each error.
static uint64_t sum_counters(const struct aer_counter *counters, uint32_t count, uint64_t total) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += counters[i].count;
    return total > 0 ? total : sum;
}

static bool read_counters(const struct aer_counters *from, struct aer_fact *fact) {
    uint64_t *count = fact->counters.count;
    fact->kind = AER_FACT_COUNTERS;
    fact->address = from->address;
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

// The whole number of a field; false when there is none of 0 or more.
static bool read_whole(const struct gpu_sample *sample, enum gpu_field field, uint64_t *value) {
    bool has = (sample->present >> field & 1) != 0 && sample->whole[field] >= 0;
    *value = has ? (uint64_t)sample->whole[field] : 0;
    return has;
}

static bool read_gpu(const struct gpu_sample *sample, struct aer_fact *fact) {
    static const enum gpu_field FIELDS[LINK_VALUES + 2] = {
        [LINK_GENERATION] = GPU_PCIE_LINK_GENERATION,
        [LINK_WIDTH] = GPU_PCIE_LINK_WIDTH,
        [LINK_MAX_GENERATION] = GPU_PCIE_MAX_GENERATION,
        [LINK_MAX_WIDTH] = GPU_PCIE_MAX_WIDTH,
        [LINK_UTILIZATION] = GPU_UTILIZATION_PERCENT,
        [LINK_XID] = GPU_XID,
        [LINK_VALUES] = GPU_PCIE_REPLAYS,
        [LINK_VALUES + 1] = GPU_PCIE_CORRECTABLE};
    uint64_t value;
    fact->kind = AER_FACT_GPU;
    fact->address = sample->address;
    fact->time_ns = sample->time_ns;
    fact->node = sample->node;
    for (unsigned i = 0; i < LINK_VALUES; i++) {
        if (!read_whole(sample, FIELDS[i], &value) || value > INT16_MAX)
            continue;
        fact->gpu.link[i] = (int16_t)value;
        fact->gpu.has |= (uint16_t)(1u << i);
    }
    if (read_whole(sample, GPU_PCIE_REPLAYS, &fact->gpu.replays))
        fact->gpu.has |= GPU_HAS_REPLAYS;
    if (read_whole(sample, GPU_PCIE_CORRECTABLE, &fact->gpu.correctable))
        fact->gpu.has |= GPU_HAS_CORRECTABLE;
    for (unsigned i = 0; i < LINK_VALUES + 2; i++)
        if ((fact->gpu.has >> i & 1) != 0)
            fact->gpu.spelled |= (uint16_t)(gpu_sample_spelling(sample, FIELDS[i]) << 2 * i);
    if (sample->uuid.size > 0)
        fact->uuid = intern(sample->uuid);
    if (fact->uuid == STRING_REFUSED)
        fact->uuid = STRING_NONE;
    return sample->address != PCI_NONE && fact->gpu.has != 0;
}

// The rank map says what is a GPU where nothing else does. One without times says it from the
// beginning, whenever its file was written, and not which of several jobs used it last.
static bool read_place(const struct event *event, struct aer_fact *fact) {
    fact->kind = AER_FACT_GPU;
    if (event->timeless) {
        fact->time_ns = 1;
        fact->job = STRING_NONE;
    }
    fact->address = event->place->address;
    if (event->place->node != STRING_NONE)
        fact->node = event->place->node;
    return fact->address != PCI_NONE && fact->node != STRING_NONE;
}

// "0x10de"
static bool read_vendor(struct slice text, uint16_t *vendor) {
    static const char DIGITS[] = "0123456789abcdef";
    uint32_t number = 0;
    if (!text_skip(&text, SLICE("0x")) || text.size == 0 || text.size > 4)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        const char *digit = memchr(DIGITS, text.data[i], sizeof DIGITS - 1);
        if (digit == NULL)
            return false;
        number = number << 4 | (uint32_t)(digit - DIGITS);
    }
    *vendor = (uint16_t)number;
    return number != 0 && number != UINT16_MAX; // neither is one's
}

// Where firmware looks after errors, the kernel's lines do not say who made the device; firmware's
// own report does ("vendor_id: 0x10de").
static bool read_firmware(const struct observation *seen, struct aer_fact *fact) {
    const struct fact *device = observation_fact(seen, FACT_PCI);
    struct slice vendor;
    if (seen->kind != OBSERVATION_MACHINE_CHECK || device == NULL ||
        !observation_text(seen, FACT_VENDOR, &vendor) ||
        !read_vendor(vendor, &fact->line_values.vendor))
        return false;
    fact->kind = AER_FACT_VENDOR;
    fact->address = device->address;
    return true;
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
    if (event->kind == EVENT_RANK_MAP && read_place(event, &fact))
        keep(facts, &fact, arena);
    if (event->kind == EVENT_OBSERVATION && read_firmware(event->observation, &fact))
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

static bool is_idle(void *owner, const void *row) {
    const struct aer_device *device = row;
    (void)owner;
    return device->incident_count == 0 && device->report.first_ns == 0;
}

static void forget_device(void *owner, void *row) {
    assert(((struct aer_device *)row)->incident_count == 0);
    struct aer_facts *facts = owner;
    keyed_rows_remove(&facts->devices, row);
    facts->evicted++;
}

static struct aer_device *find_device(struct aer_facts *facts, const struct aer_fact *fact,
                                      struct arena *arena) {
    struct aer_device_key key = {fact->node, fact->address};
    struct aer_device *device = keyed_rows_find(&facts->devices, &key);
    const struct idle_rows devices = {.rows = &facts->devices,
                                      .max = (uint32_t)facts->config->max_devices,
                                      .time_offset = offsetof(struct aer_device, seen_ns),
                                      .looked_at = &facts->looked_at,
                                      .is_idle = is_idle,
                                      .forget = forget_device,
                                      .owner = facts};
    if (device == NULL) {
        if (!idle_rows_make_room(&devices, arena)) {
            facts->evicted++;
            return NULL;
        }
        device = keyed_rows_add(&facts->devices, &key);
        device->self = keyed_rows_number(&facts->devices, device);
        device->port = PCI_NONE;
        for (unsigned i = 0; i < INCIDENT_KINDS; i++)
            device->open[i] = TABLE_NO_ROW;
        for (unsigned i = 0; i < LINK_VALUES; i++)
            device->link[i] = -1;
    }
    device->seen_ns = fact->time_ns > device->seen_ns ? fact->time_ns : device->seen_ns;
    device->job = fact->job != STRING_NONE ? fact->job : device->job;
    return device;
}

// -- Incidents ------------------------------------------------------------------------------------

struct aer_incident *aer_incident_of(const struct aer_facts *facts, const struct aer_device *device,
                                     enum aer_incident_kind kind) {
    assert(kind < INCIDENT_KINDS);
    return device->open[kind] == TABLE_NO_ROW ? NULL : aer_incident_at(facts, device->open[kind]);
}

const struct aer_incident *aer_incident_lead(const struct aer_facts *facts,
                                             const struct aer_device *device) {
    static const enum aer_incident_kind GRAVEST_FIRST[] = {INCIDENT_UNCORRECTABLE,
                                                           INCIDENT_DEGRADED, INCIDENT_STORM};
    for (size_t i = 0; i < sizeof GRAVEST_FIRST / sizeof *GRAVEST_FIRST; i++)
        if (device->open[GRAVEST_FIRST[i]] != TABLE_NO_ROW)
            return aer_incident_at(facts, device->open[GRAVEST_FIRST[i]]);
    return NULL;
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
    assert(aer_incident_at(facts, row)->ended);
    struct aer_incident *incident = aer_incident_at(facts, row);
    aer_device_at(facts, incident->device)->incident_count--;
    incident->live = 0;
    table_free(&facts->incidents, row);
}

// Live, what nobody has told of for long does not stand for ever. Inputs that end leave it as it
// was when its own source fell silent: that others went on says nothing of it.
static void end_silent(struct aer_facts *facts, uint64_t now_ns) {
    for (uint32_t row = 0; row < facts->incidents.used; row++) {
        const struct aer_incident *incident = aer_incident_at(facts, row);
        if (incident->live == 0 || incident->ended)
            continue;
        uint64_t bound = duration_ns(facts->config->silence), since = incident->last_ns;
        if (incident->kind == INCIDENT_UNCORRECTABLE) {
            bound = duration_ns(facts->config->hold);
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

static bool is_due(const void *row, uint64_t until_ns) {
    const struct aer_fact *fact = row;
    return fact->live != 0 && fact->time_ns <= until_ns;
}

static int compare_facts(const void *left, const void *right) {
    const struct aer_fact *a = ((const struct due_row *)left)->row;
    const struct aer_fact *b = ((const struct due_row *)right)->row;
    // Devices do not depend on one another; what is told of one is ordered by what it says.
    int order = COMPARE_KEYS(COMPARE(a->time_ns, b->time_ns), COMPARE(a->kind, b->kind),
                             COMPARE(a->node, b->node), COMPARE(a->address, b->address),
                             COMPARE(a->line, b->line));
    size_t from = offsetof(struct aer_fact, address);
    if (order == 0)
        order = memcmp((const char *)a + from, (const char *)b + from, sizeof *a - from);
    if (order == 0)
        order = COMPARE(a->flags, b->flags);
    if (order == 0)
        order = compare_strings(a->uuid, b->uuid);
    return order != 0 ? order : compare_strings(a->job, b->job);
}

static void take(struct aer_facts *facts, const struct aer_fact *fact, struct arena *arena) {
    assert(fact->live != 0 && fact->time_ns != 0);
    aer_reports_close(facts, fact->time_ns);
    if (fact->kind == AER_FACT_OUTCOME) {
        aer_outcome_take(facts, fact);
        return;
    }
    struct aer_device *device = find_device(facts, fact, arena);
    if (device == NULL)
        return;
    switch ((enum aer_fact_kind)fact->kind) {
    case AER_FACT_LINE:
        aer_report_take(facts, device, fact);
        break;
    case AER_FACT_COUNTERS:
        aer_counters_take(facts, device, fact);
        break;
    case AER_FACT_GPU:
        device->is_gpu = true;
        if (fact->uuid != STRING_NONE)
            device->uuid = fact->uuid;
        aer_gpu_take(facts, device, fact);
        break;
    case AER_FACT_XID:
        device->is_gpu = true;
        aer_xid_take(facts, device, fact->time_ns, fact->line_values.code, NULL);
        break;
    case AER_FACT_VENDOR:
        device->vendor = fact->line_values.vendor;
        break;
    case AER_FACT_OUTCOME:
        break;
    }
}

static struct due_rows list_waiting(const struct aer_facts *facts, uint64_t until_ns,
                                    struct arena *arena) {
    return due_rows_sorted(&facts->waiting, is_due, until_ns, arena, compare_facts);
}

static void take_until(struct aer_facts *facts, uint64_t until_ns, struct arena *arena) {
    struct due_rows due = list_waiting(facts, until_ns, arena);
    for (uint32_t i = 0; i < due.count; i++) {
        take(facts, due.items[i].row, arena);
        ((struct aer_fact *)due.items[i].row)->live = 0;
        table_free(&facts->waiting, due.items[i].number);
    }
}

static void keep(struct aer_facts *facts, const struct aer_fact *fact, struct arena *arena) {
    assert(fact->live != 0);
    if (fact->time_ns == 0)
        return;
    if (table_live(&facts->waiting) >= facts->config->max_waiting) {
        struct due_rows due = list_waiting(facts, UINT64_MAX, arena);
        take_until(facts, ((struct aer_fact *)due.items[due.count / 2].row)->time_ns, arena);
    }
    *(struct aer_fact *)table_row(&facts->waiting, table_add(&facts->waiting)) = *fact;
}

void aer_facts_advance(struct aer_facts *facts, uint64_t now_ns, bool last, struct arena *arena) {
    take_until(facts, now_ns, arena);
    aer_reports_close(facts, last ? UINT64_MAX : now_ns);
    if (facts->live)
        end_silent(facts, now_ns);
}
