// SPDX-License-Identifier: Apache-2.0
// Writes a sample of a GPU as a tagged line. Numbers come back as they were: whole ones digit by
// digit, others as the shortest text of the same double. Fields keep their spelling.
#include "base/text/json_write.h"
#include "receivers/decode/dcgm/dcgm.h"

#include <assert.h>

static void write_identity(struct json_writer *json, const struct gpu_sample *sample) {
    char address[PCI_TEXT_MAX];
    if (sample->uuid.size > 0)
        json_field_slice(json, "UUID", sample->uuid);
    if (sample->address != PCI_NONE) {
        pci_format_function(sample->address, address);
        json_field_text(json, "pci_bus_id", address);
    }
    if (sample->index >= 0)
        json_field_int(json, "gpu", sample->index);
    if (sample->model.size > 0)
        json_field_slice(json, "modelName", sample->model);
    if (sample->namespace.size > 0)
        json_field_slice(json, "namespace", sample->namespace);
    if (sample->pod.size > 0)
        json_field_slice(json, "pod", sample->pod);
}

static void write_field(struct json_writer *json, const struct gpu_sample *sample,
                        enum gpu_field field) {
    char name[GPU_SPELLING_MAX];
    gpu_field_spelling(field, gpu_sample_spelling(sample, field), name);
    double value = sample->value[field];
    int64_t whole = sample->whole[field];
    if ((double)whole == value)
        json_field_int(json, name, whole);
    else
        json_field_double(json, name, value);
}

void dcgm_sample_write(const struct gpu_sample *sample, struct slice node, struct buffer *out) {
    struct json_writer json;
    assert(sample->time_ns != 0);
    json_begin(&json, out, 0);
    json_object_open(&json);
    json_field_text(&json, "source", "dcgm");
    json_field_uint(&json, "timestamp_ns", sample->time_ns);
    json_field_slice(&json, "k8s.node.name", node);
    write_identity(&json, sample);
    json_field_object_open(&json, "fields");
    for (enum gpu_field field = 0; field < GPU_FIELD_COUNT; field++)
        if ((sample->present >> field & 1) != 0)
            write_field(&json, sample, field);
    json_object_close(&json);
    json_object_close(&json);
}
