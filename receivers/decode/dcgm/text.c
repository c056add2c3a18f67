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

#include <assert.h>
#include <math.h>
#include <stdlib.h>

enum { SCRAPE_SAMPLES_MAX = 65536, FIRST_CAPACITY = 16, TIMESTAMP_MAX = 32 };

struct text_state {
    uint64_t observed_ns;
};

struct labels {
    struct slice uuid, pci_bus_id, index, model, host, namespace, pod, xid;
    struct slice node; // a label of that name counts where Hostname is absent
    // Prometheus gives the exporter's own pod under the plain names, and then these.
    struct slice exported_namespace, exported_pod;
};

struct reading {
    struct slice text;
    uint32_t line;
    struct arena *arena;
    struct decode_fault *fault;
    uint64_t observed_ns;

    struct gpu_sample *samples;
    uint32_t count, capacity;
    uint32_t *index; // sample + 1, 0: free; twice the capacity
};

static enum decode_category refuse(struct reading *reading, struct slice metric, const char *what) {
    return fault_set(reading->fault, DECODE_WRONG_TYPE, metric, "line %u: %s", reading->line, what);
}

// -- Tokens of a line -----------------------------------------------------------------------------

static bool is_name_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == ':' || c == '.';
}

static struct slice take_name(struct slice *line) {
    size_t size = 0;
    while (size < line->size && is_name_char(line->data[size]))
        size++;
    return text_take(line, size);
}

static struct slice take_word(struct slice *line) {
    return text_take(line, text_until_any(*line, " \t").size);
}

// The value of a label, behind its first quote: escapes are \\, \" and \n.
static bool take_quoted(struct slice *line, struct arena *arena, struct slice *value) {
    size_t size = 0;
    bool escaped = false;
    for (; size < line->size && line->data[size] != '"'; size++)
        if (line->data[size] == '\\') {
            escaped = true;
            size++;
        }
    if (size >= line->size)
        return false;
    struct slice raw = text_take(line, size);
    text_skip_char(line, '"');
    *value = raw;
    if (!escaped)
        return true;
    char *copy = arena_take(arena, raw.size);
    size_t length = 0;
    for (size_t i = 0; i < raw.size; i++) {
        char c = raw.data[i];
        if (c == '\\' && i + 1 < raw.size) {
            c = raw.data[++i];
            if (c == 'n')
                c = '\n';
        }
        copy[length++] = c;
    }
    *value = (struct slice){copy, length};
    return true;
}

// -- Labels ---------------------------------------------------------------------------------------

static bool is_text(struct slice text) {
    uint32_t code_point;
    for (size_t at = 0, size; at < text.size; at += size)
        if ((size = utf8_decode(text, at, &code_point)) == 0 || code_point < ' ')
            return false;
    return true;
}

static void keep_label(struct labels *labels, struct slice name, struct slice value) {
    const struct {
        const char *name;
        struct slice *place;
    } places[] = {
        {"UUID", &labels->uuid},
        {"uuid", &labels->uuid},
        {"pci_bus_id", &labels->pci_bus_id},
        {"gpu", &labels->index},
        {"modelName", &labels->model},
        {"Hostname", &labels->host},
        {"hostname", &labels->host},
        {"node", &labels->node},
        {"kubernetes_node", &labels->node},
        {"namespace", &labels->namespace},
        {"pod", &labels->pod},
        {"exported_namespace", &labels->exported_namespace},
        {"exported_pod", &labels->exported_pod},
        {"xid", &labels->xid},
    };
    if (value.size == 0)
        return;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        if (slice_equal(name, slice_of(places[i].name))) {
            // A name that cannot be one is none.
            if (value.size <= TAGGED_NAME_MAX && is_text(value))
                *places[i].place = value;
            return;
        }
}

// "{name="value",…}", also with a comma behind the last, or nothing. NULL when right, else why not.
static const char *take_labels(struct slice *line, struct arena *arena, struct labels *labels) {
    text_skip_blanks(line);
    if (!text_skip_char(line, '{'))
        return NULL;
    for (;;) {
        text_skip_blanks(line);
        if (text_skip_char(line, '}'))
            return NULL;
        struct slice name = take_name(line), value;
        text_skip_blanks(line);
        if (name.size == 0 || !text_skip_char(line, '='))
            return "a label without a name or without \"=\"";
        text_skip_blanks(line);
        if (!text_skip_char(line, '"') || !take_quoted(line, arena, &value))
            return "a label whose value has no closing quote";
        keep_label(labels, name, value);
        text_skip_blanks(line);
        if (!text_skip_char(line, ',') && (line->size == 0 || line->data[0] != '}'))
            return "labels that are not closed by \"}\"";
    }
}

// Whole milliseconds in Prometheus' own format, seconds with a fraction in OpenMetrics; a number
// below 10^11 is in seconds (as milliseconds it would be in 1973).
static bool read_timestamp(struct slice word, uint64_t *time_ns) {
    char copy[TIMESTAMP_MAX];
    if (word.size >= sizeof copy || memchr(word.data, '\0', word.size) != NULL)
        return false;
    memcpy(copy, word.data, word.size);
    copy[word.size] = '\0';
    char *end;
    double value = strtod(copy, &end);
    if (*end != '\0' || !(value > 0) || value >= 1e16)
        return false;
    bool is_whole = strspn(copy, "0123456789") == word.size;
    if (value >= 1e11) {
        *time_ns =
            is_whole ? strtoull(copy, NULL, 10) * UINT64_C(1000000) : (uint64_t)(value * 1e6);
        return *time_ns != 0 && value < 1.8e13;
    }
    // The fraction by its digits: a double would lose the last ones.
    uint64_t seconds = strtoull(copy, &end, 10), fraction = 0, unit = 100000000;
    if (*end == '.')
        for (end++; *end >= '0' && *end <= '9' && unit > 0; end++, unit /= 10)
            fraction += (uint64_t)(*end - '0') * unit;
    *time_ns = *end == '\0' || (*end >= '0' && *end <= '9')
                   ? seconds * UINT64_C(1000000000) + fraction
                   : (uint64_t)(value * 1e9);
    return value < 1.8e10 && *time_ns != 0;
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

static uint32_t find_slot(const struct reading *reading, const struct gpu_sample *key) {
    assert(reading->count <= reading->capacity);
    uint32_t mask = reading->capacity * 2 - 1;
    uint32_t slot = hash_folded(hash_key(key)) & mask;
    while (reading->index[slot] != 0 && !same_key(&reading->samples[reading->index[slot] - 1], key))
        slot = (slot + 1) & mask;
    return slot;
}

static void grow(struct reading *reading) {
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

// The sample of these labels and time, made when new; NULL: no room.
static struct gpu_sample *find_sample(struct reading *reading, const struct labels *labels,
                                      uint64_t time_ns) {
    struct gpu_sample key = {.time_ns = time_ns, .address = PCI_NONE, .index = -1};
    struct slice host = labels->host.size > 0 ? labels->host : labels->node;
    key.node = host.size > 0 ? intern(host) : STRING_NONE;
    if (key.node == STRING_REFUSED)
        return NULL;
    dcgm_identity_set(&key, labels->uuid, labels->pci_bus_id, labels->index);
    key.model = labels->model;
    if (reading->count == reading->capacity)
        grow(reading);
    uint32_t slot = find_slot(reading, &key);
    if (reading->index[slot] == 0) {
        if (reading->count == SCRAPE_SAMPLES_MAX)
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
    (void)dcgm_field_set(sample, GPU_XID, labels->xid);
}

static enum decode_category take_series(struct reading *reading, struct slice line) {
    struct slice metric = take_name(&line);
    bool is_count = slice_equal(metric, SLICE("DCGM_EXP_XID_ERRORS_COUNT"));
    enum gpu_field field = dcgm_field_find(metric);
    if (field == GPU_FIELD_COUNT && !is_count)
        return DECODE_OK;
    struct labels labels = {0};
    const char *wrong = take_labels(&line, reading->arena, &labels);
    if (wrong != NULL)
        return refuse(reading, metric, wrong);
    text_skip_blanks(&line);
    struct slice value = take_word(&line);
    text_skip_blanks(&line);
    uint64_t time_ns = reading->observed_ns;
    if (line.size > 0 && line.data[0] != '#' && !read_timestamp(take_word(&line), &time_ns))
        return refuse(reading, metric, "a timestamp that is not a time after 1970");
    struct gpu_sample scratch = {0};
    if (!dcgm_field_set(&scratch, is_count ? GPU_XID : field, value))
        return refuse(reading, metric, "a value that is not a number");
    if (labels.uuid.size == 0 && labels.pci_bus_id.size == 0 && labels.index.size == 0)
        return DECODE_OK; // of a switch or a CPU
    if (time_ns == 0)
        return fault_set(reading->fault, DECODE_MISSING_TIMESTAMP, metric,
                         "line %u has no timestamp, and when the text was read is not known",
                         reading->line);
    struct gpu_sample *sample = find_sample(reading, &labels, time_ns);
    if (sample == NULL)
        return fault_set(reading->fault, DECODE_LIMIT, metric,
                         "line %u: more than %d GPUs, or the bound on distinct names is reached",
                         reading->line, SCRAPE_SAMPLES_MAX);
    if (is_count)
        take_xid_count(sample, &labels, value);
    else
        dcgm_field_set(sample, field, value);
    return DECODE_OK;
}

static enum decode_category take_lines(struct reading *reading) {
    struct slice text = reading->text;
    while (text.size > 0) {
        struct slice line = text_take_line(&text);
        bool ended = line.data + line.size < reading->text.data + reading->text.size;
        reading->line++;
        line = text_trim(line);
        if (line.size == 0 || line.data[0] == '#')
            continue;
        enum decode_category category = take_series(reading, line);
        // A last line that is cut off was being written when it was read.
        if (category == DECODE_WRONG_TYPE && !ended && reading->count > 0)
            return DECODE_OK;
        if (category != DECODE_OK)
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
    struct reading reading = {
        .text = record, .arena = arena, .fault = fault, .observed_ns = self->observed_ns};
    enum decode_category category = take_lines(&reading);
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
