// SPDX-License-Identifier: Apache-2.0
// Reads one scrape of one GPU, written as a JSON object.
//
// One pass over its members. A field with a text that is no number, or null, is a missing one: that
// is how exporters write "N/A".
#include "receivers/decode/dcgm/dcgm.h"

#include "receivers/decode/json/fault.h"
#include "receivers/decode/json/scan.h"
#include "receivers/decode/json/shape.h"
#include "receivers/decode/json/tagged_keys.h"
#include "receivers/decode/json/text.h"

struct gpu_keys {
    struct slice uuid, pci_bus_id, index, model, host, pod, namespace;
    uint32_t fields; // that were there, known or not
    // The first value that is wrong.
    struct slice wrong_field;
    struct token wrong;
    const char *expected;
};

static void refuse(struct gpu_keys *keys, struct slice field, const struct token *value,
                   const char *expected) {
    if (keys->expected != NULL)
        return;
    keys->wrong_field = field;
    keys->wrong = *value;
    keys->expected = expected;
}

static void take_field(struct gpu_keys *keys, struct gpu_sample *sample, struct slice name,
                       const struct token *value) {
    keys->fields++;
    uint32_t spelling;
    enum gpu_field field = dcgm_field_find(name, &spelling);
    if (field == GPU_FIELD_COUNT)
        return;
    if (value->kind == TOKEN_ARRAY || value->kind == TOKEN_OBJECT)
        refuse(keys, slice_of(gpu_field_name(field)), value, "a number");
    else if (!dcgm_field_set(sample, field, token_slice(value)))
        sample->present &= ~(UINT64_C(1) << field);
    else
        gpu_sample_spell(sample, field, spelling);
}

// The object `fields`, which was scanned before.
static void take_fields(struct gpu_keys *keys, struct gpu_sample *sample, const struct token *value,
                        struct arena *arena) {
    struct json_pairs pairs = json_pairs_of(token_slice(value));
    for (struct token name, field; json_pairs_next(&pairs, &name, &field);)
        take_field(keys, sample, token_decode(&name, arena), &field);
}

static struct slice *text_key(struct gpu_keys *keys, struct slice key) {
    const struct {
        const char *name;
        struct slice *place;
    } places[] = {{"UUID", &keys->uuid},           {"uuid", &keys->uuid},
                  {"gpu_uuid", &keys->uuid},       {"pci_bus_id", &keys->pci_bus_id},
                  {"gpu", &keys->index},           {"modelName", &keys->model},
                  {"Hostname", &keys->host},       {"hostname", &keys->host},
                  {"namespace", &keys->namespace}, {"pod", &keys->pod}};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        if (slice_equal(key, slice_of(places[i].name)))
            return places[i].place;
    return NULL;
}

static void take_member(struct gpu_keys *keys, struct gpu_sample *sample, struct slice key,
                        const struct token *value, struct arena *arena) {
    if (key.size > 5 && memcmp(key.data, "DCGM_", 5) == 0) {
        take_field(keys, sample, key, value);
        return;
    }
    if (slice_equal(key, SLICE("fields"))) {
        if (value->kind == TOKEN_OBJECT)
            take_fields(keys, sample, value, arena);
        else if (value->kind != TOKEN_NULL)
            refuse(keys, key, value, "an object of DCGM field names and values");
        return;
    }
    struct slice *place = text_key(keys, key);
    if (place == NULL || value->kind == TOKEN_NULL)
        return;
    if (value->kind == TOKEN_STRING)
        *place = token_decode(value, arena);
    else if (place == &keys->index && value->kind == TOKEN_INTEGER)
        *place = token_slice(value);
    else
        refuse(keys, key, value, "a text");
    if (place->size > TAGGED_NAME_MAX)
        refuse(keys, key, value, "at most 253 bytes");
}

static enum decode_category finish(const struct tagged_keys *common, const struct gpu_keys *keys,
                                   struct gpu_sample *sample, struct event *event,
                                   struct decode_fault *fault) {
    dcgm_identity_set(sample, keys->uuid, keys->pci_bus_id, keys->index);
    if (keys->pci_bus_id.size > 0 && sample->address == PCI_NONE)
        return fault_set(fault, DECODE_OUT_OF_RANGE, SLICE("pci_bus_id"),
                         "\"%.*s\" is not a PCI address such as 00000000:9B:00.0",
                         (int)(keys->pci_bus_id.size < 40 ? keys->pci_bus_id.size : 40),
                         keys->pci_bus_id.data);
    if (sample->uuid.data == NULL && sample->address == PCI_NONE && sample->index < 0)
        return fault_set(fault, DECODE_MISSING_FIELD, SLICE("UUID, gpu, pci_bus_id"),
                         "no GPU is named; one of these keys must be there");
    if (event->node == STRING_NONE && keys->host.size > 0 &&
        fault_intern(fault, SLICE("Hostname"), keys->host, &event->node) != DECODE_OK)
        return DECODE_LIMIT;
    sample->time_ns = event->time_ns;
    sample->node = event->node;
    sample->model = keys->model;
    sample->pod = keys->pod.data != NULL ? keys->pod : common->pod;
    sample->namespace = keys->namespace.data != NULL ? keys->namespace : common->namespace;
    event->kind = EVENT_GPU_SAMPLE;
    return sample->present == 0 ? DECODE_NOTHING : DECODE_OK;
}

enum decode_category dcgm_tagged(void *state, struct slice object, struct arena *arena,
                                 struct event *event, struct decode_fault *fault) {
    (void)state;
    struct gpu_sample *sample = arena_zero(arena, 1, sizeof *sample);
    struct gpu_scrape *scrape = arena_take(arena, sizeof *scrape);
    *scrape = (struct gpu_scrape){sample, 1};
    sample->address = PCI_NONE;
    sample->index = -1;
    struct gpu_keys keys = {0};
    struct tagged_keys common;
    struct slice key;
    struct token value;
    tagged_keys_begin(&common, object, arena);
    while (tagged_keys_next(&common, &key, &value))
        take_member(&keys, sample, key, &value, arena);
    enum decode_category category = tagged_keys_end(&common, event, fault);
    if (category != DECODE_OK)
        return category;
    if (keys.expected != NULL)
        return fault_type(fault, keys.wrong_field, &keys.wrong, keys.expected);
    if (keys.fields == 0)
        return fault_set(fault, DECODE_MISSING_FIELD, SLICE("fields"),
                         "no DCGM field is there; one looks like \"DCGM_FI_DEV_GPU_TEMP\": 61");
    event->gpus = scrape;
    return finish(&common, &keys, sample, event, fault);
}

const struct decoder_type decoder_dcgm_json = {.name = "dcgm_json", .decode = dcgm_tagged};
