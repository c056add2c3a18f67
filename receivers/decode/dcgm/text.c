// SPDX-License-Identifier: Apache-2.0
// Reads one exposition of dcgm-exporter.
//
// Line by line; only lines of metrics that are kept are read to their end. A series belongs to the
// sample of its GPU (UUID, else address, else host and index) and time; samples are found by a hash
// over both, so a text costs O(size). Memory: about 900 bytes a GPU and time, in the arena.
#include "receivers/decode/dcgm/dcgm.h"

#include "base/hash/hash.h"
#include "base/text/cut.h"
#include "base/text/utf8.h"
#include "receivers/decode/json/fault.h"
#include "receivers/decode/json/tagged_keys.h"
#include "receivers/decode/line/series.h"

#include <assert.h>
#include <stddef.h>

enum { SCRAPE_SAMPLES_MAX = 65536, FIRST_CAPACITY = 16 };
// DCGM_EXP_XID_ERRORS_COUNT{xid}, of gpu_fields.h.
enum { SPELLED_AS_LABEL = 3 };

struct text_state {
    uint64_t observed_ns;
};

struct labels {
    struct slice uuid, pci_bus_id, index, model, host, namespace, pod, xid;
    struct slice node;  // a label of that name counts where Hostname is absent
    struct slice named; // the reading's `node_label` counts before them
    // Prometheus gives the exporter's own pod under the plain names, and then these.
    struct slice exported_namespace, exported_pod;
};

static enum decode_category refuse(struct dcgm_reading *reading, struct slice metric,
                                   const char *what) {
    return fault_set(reading->fault, DECODE_WRONG_TYPE, metric, "line %u: %s", reading->line, what);
}

// -- Labels ---------------------------------------------------------------------------------------

static bool is_text(struct slice text) {
    uint32_t code_point;
    for (size_t at = 0, size; at < text.size; at += size)
        if ((size = utf8_decode(text, at, &code_point)) == 0 || code_point < ' ')
            return false;
    return true;
}

static void keep_label(struct labels *labels, struct slice name, struct slice value,
                       struct slice node_label) {
#define PLACE(label, field)                                                                        \
    { {(label), sizeof(label) - 1}, offsetof(struct labels, field) }
    static const struct {
        struct slice name;
        size_t offset;
    } places[] = {
        PLACE("UUID", uuid),
        PLACE("uuid", uuid),
        PLACE("pci_bus_id", pci_bus_id),
        PLACE("gpu", index),
        PLACE("modelName", model),
        PLACE("Hostname", host),
        PLACE("hostname", host),
        PLACE("node", node),
        PLACE("kubernetes_node", node),
        PLACE("namespace", namespace),
        PLACE("pod", pod),
        PLACE("exported_namespace", exported_namespace),
        PLACE("exported_pod", exported_pod),
        PLACE("xid", xid),
    };
#undef PLACE
    // A name that cannot be one is none.
    if (value.size == 0 || value.size > TAGGED_NAME_MAX)
        return;
    if (node_label.size > 0 && slice_equal(name, node_label) && is_text(value))
        labels->named = value;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        if (slice_equal(name, places[i].name)) {
            if (is_text(value))
                *(struct slice *)(void *)((char *)labels + places[i].offset) = value;
            return;
        }
}

// NULL when the labels are right, else why not.
static const char *take_labels(struct slice *line, const struct dcgm_reading *reading,
                               struct labels *kept) {
    struct series_labels labels = {.line = line, .arena = reading->arena};
    struct slice name, value;
    while (series_next_label(&labels, &name, &value))
        keep_label(kept, name, value, reading->node_label);
    return labels.wrong;
}

// -- Samples --------------------------------------------------------------------------------------

static uint64_t hash_key(const struct gpu_sample *sample) {
    uint64_t hash = hash_more(HASH_START, &sample->time_ns, sizeof sample->time_ns);
    if (sample->uuid.data != NULL)
        return hash_more(hash, sample->uuid.data, sample->uuid.size);
    if (sample->address != PCI_NONE)
        hash = hash_more(hash, &sample->address, sizeof sample->address);
    else
        hash = hash_more(hash, &sample->index, sizeof sample->index);
    return hash_more(hash, &sample->node, sizeof sample->node);
}

static bool same_key(const struct gpu_sample *a, const struct gpu_sample *b) {
    if (a->time_ns != b->time_ns || (a->uuid.data == NULL) != (b->uuid.data == NULL))
        return false;
    if (a->uuid.data != NULL)
        return slice_equal(a->uuid, b->uuid);
    return a->address == b->address && a->node == b->node &&
           (a->address != PCI_NONE || a->index == b->index);
}

static uint32_t find_slot(const struct dcgm_reading *reading, const struct gpu_sample *key) {
    assert(reading->count <= reading->capacity);
    uint32_t mask = reading->capacity * 2 - 1;
    uint32_t slot = hash_folded(hash_key(key)) & mask;
    while (reading->index[slot] != 0 && !same_key(&reading->samples[reading->index[slot] - 1], key))
        slot = (slot + 1) & mask;
    return slot;
}

static void grow(struct dcgm_reading *reading) {
    uint32_t capacity = reading->capacity == 0 ? FIRST_CAPACITY : reading->capacity * 2;
    struct gpu_sample *samples = arena_take(reading->arena, capacity * sizeof *samples);
    if (reading->count > 0)
        memcpy(samples, reading->samples, reading->count * sizeof *samples);
    reading->samples = samples;
    reading->capacity = capacity;
    reading->index = arena_zero(reading->arena, (size_t)capacity * 2, sizeof *reading->index);
    for (uint32_t i = 0; i < reading->count; i++)
        reading->index[find_slot(reading, &samples[i])] = i + 1;
}

static uint32_t samples_max(const struct dcgm_reading *reading) {
    return reading->samples_max > 0 ? reading->samples_max : SCRAPE_SAMPLES_MAX;
}

// The sample of these labels and time, made when new; NULL: no room.
static struct gpu_sample *find_sample(struct dcgm_reading *reading, const struct labels *labels,
                                      uint64_t time_ns) {
    struct gpu_sample key = {.time_ns = time_ns, .address = PCI_NONE, .index = -1};
    struct slice host = labels->named.size > 0  ? labels->named
                        : labels->host.size > 0 ? labels->host
                                                : labels->node;
    key.node = host.size > 0 ? intern(host) : STRING_NONE;
    if (key.node == STRING_REFUSED)
        return NULL;
    dcgm_identity_set(&key, labels->uuid, labels->pci_bus_id, labels->index);
    key.model = labels->model;
    if (reading->count == reading->capacity)
        grow(reading);
    uint32_t slot = find_slot(reading, &key);
    if (reading->index[slot] == 0) {
        if (reading->count == samples_max(reading))
            return NULL;
        reading->samples[reading->count] = key;
        reading->index[slot] = ++reading->count;
    }
    struct gpu_sample *sample = &reading->samples[reading->index[slot] - 1];
    if (sample->address == PCI_NONE)
        sample->address = key.address;
    bool exported = labels->exported_pod.size > 0;
    struct slice pod = exported ? labels->exported_pod : labels->pod;
    struct slice namespace = exported ? labels->exported_namespace : labels->namespace;
    if (pod.size > 0)
        sample->pod = pod;
    if (namespace.size > 0)
        sample->namespace = namespace;
    return sample;
}

// -- Lines ----------------------------------------------------------------------------------------

// The exporter's own count of each Xid in a window: what the last one was, where DCGM's field for
// that is not exported. The first code with a count counts.
static void take_xid_count(struct gpu_sample *sample, const struct labels *labels,
                           struct slice value) {
    struct gpu_sample count = {0};
    uint64_t xid = UINT64_C(1) << GPU_XID;
    if (!dcgm_field_set(&count, GPU_XID, value) || (count.present & xid) == 0 ||
        count.value[GPU_XID] <= 0 || (sample->present & xid) != 0)
        return;
    if (dcgm_field_set(sample, GPU_XID, labels->xid))
        gpu_sample_spell(sample, GPU_XID, SPELLED_AS_LABEL);
}

static bool is_xid_count(struct slice metric) {
    return slice_equal(metric, SLICE("DCGM_EXP_XID_ERRORS_COUNT"));
}

bool dcgm_reading_keeps(struct slice metric) {
    return dcgm_field_find(metric, NULL) != GPU_FIELD_COUNT || is_xid_count(metric);
}

enum decode_category dcgm_reading_take(struct dcgm_reading *reading, struct slice line) {
    assert(reading->arena != NULL && reading->fault != NULL);
    struct slice metric = series_take_name(&line);
    bool is_count = is_xid_count(metric);
    uint32_t spelling = 0;
    enum gpu_field field = dcgm_field_find(metric, &spelling);
    if (field == GPU_FIELD_COUNT && !is_count)
        return DECODE_NOTHING;
    struct labels labels = {0};
    struct slice value;
    uint64_t time_ns = reading->observed_ns;
    const char *wrong = take_labels(&line, reading, &labels);
    if (wrong != NULL)
        return refuse(reading, metric, wrong);
    if (!series_take_value(&line, &value, &time_ns))
        return refuse(reading, metric, "a timestamp that is not a time after 1970");
    struct gpu_sample scratch = {.address = PCI_NONE, .index = -1};
    if (!dcgm_field_set(&scratch, is_count ? GPU_XID : field, value))
        return refuse(reading, metric, "a value that is not a number");
    dcgm_identity_set(&scratch, labels.uuid, labels.pci_bus_id, labels.index);
    if (scratch.uuid.size == 0 && scratch.address == PCI_NONE && scratch.index < 0)
        return DECODE_NOTHING; // of a switch or a CPU
    if (time_ns == 0)
        return fault_set(reading->fault, DECODE_MISSING_TIMESTAMP, metric,
                         "line %u has no timestamp, and when the text was read is not known",
                         reading->line);
    struct gpu_sample *sample = find_sample(reading, &labels, time_ns);
    if (sample == NULL)
        return fault_set(reading->fault, DECODE_LIMIT, metric,
                         "line %u: more than %u GPUs, or the bound on distinct names is reached",
                         reading->line, samples_max(reading));
    if (is_count) {
        take_xid_count(sample, &labels, value);
    } else {
        dcgm_field_set(sample, field, value);
        gpu_sample_spell(sample, field, spelling);
    }
    return DECODE_OK;
}

static enum decode_category take_lines(struct dcgm_reading *reading, struct slice whole) {
    struct slice text = whole;
    while (text.size > 0) {
        struct slice line = text_take_line(&text);
        bool ended = line.data + line.size < whole.data + whole.size;
        reading->line++;
        line = text_trim(line);
        if (line.size == 0 || line.data[0] == '#')
            continue;
        enum decode_category category = dcgm_reading_take(reading, line);
        // A last line that is cut off was being written when it was read.
        if (category == DECODE_WRONG_TYPE && !ended && reading->count > 0)
            return DECODE_OK;
        if (decode_refused(category))
            return category;
    }
    return DECODE_OK;
}

static void text_begin(void *state, const struct decoder_input *input) {
    ((struct text_state *)state)->observed_ns = input->observed_ns;
}

static enum decode_category text_decode(void *state, struct slice record, struct arena *arena,
                                        struct event *event, struct decode_fault *fault) {
    const struct text_state *self = state;
    struct dcgm_reading reading = {
        .arena = arena, .fault = fault, .observed_ns = self->observed_ns};
    enum decode_category category = take_lines(&reading, record);
    if (category != DECODE_OK)
        return category;
    event->time_ns = self->observed_ns;
    event->kind = EVENT_GPU_SAMPLE;
    event->job = STRING_NONE;
    event->rank = RANK_NONE;
    struct gpu_scrape *scrape = arena_take(arena, sizeof *scrape);
    *scrape = (struct gpu_scrape){reading.samples, reading.count};
    event->gpus = scrape;
    if (reading.count == 0)
        return DECODE_NOTHING;
    event->node = reading.samples[0].node;
    event->time_ns = reading.samples[0].time_ns;
    for (uint32_t i = 1; i < reading.count; i++)
        if (reading.samples[i].time_ns > event->time_ns)
            event->time_ns = reading.samples[i].time_ns;
    return DECODE_OK;
}

const struct decoder_type decoder_dcgm_text = {.name = "dcgm_text",
                                               .state_size = sizeof(struct text_state),
                                               .begin = text_begin,
                                               .decode = text_decode};
