// SPDX-License-Identifier: Apache-2.0
// What NVIDIA's DCGM says of GPUs: as one JSON object a line, and as dcgm-exporter's text.
//
// Both give EVENT_GPU_SAMPLE. Fields are known by DCGM's old names, its new ones and its numbers;
// other fields are passed over, and values that mean "blank" are missing ones.
//
// JSON: {"timestamp_ns": …, "UUID": …, "pci_bus_id": …, "gpu": …, "modelName": …, "fields": {name:
// value}}, fields also beside the other keys. Text (Prometheus 0.0.4 or OpenMetrics 1.0): the whole
// text is one record, with one sample for each GPU and time. A series without a timestamp has the
// time at which the text was read. Where a series comes twice for the same time, as in scrapes that
// were appended to one file without timestamps, its last value counts, so that such a file is worth
// as much as its last scrape.
#pragma once

#include "base/buffer.h"
#include "pipeline/component/decoder.h"
#include "pipeline/model/node_event.h"

extern const struct decoder_type decoder_dcgm_json;
extern const struct decoder_type decoder_dcgm_text;

// The tagged form (`source` "dcgm"). `state` is not used.
enum decode_category dcgm_tagged(void *state, struct slice object, struct arena *arena,
                                 struct event *event, struct decode_fault *fault);

// Exposition text line by line: the samples that its lines make, one for each GPU and time. To be
// zeroed but for what stands first; everything it finds lies in `arena`.
struct dcgm_reading {
    struct arena *arena;
    struct decode_fault *fault; // of a line that is refused
    uint64_t observed_ns;       // time of series that say none; 0: not known
    struct slice node_label;    // counts before the usual ones; empty: there is none
    uint32_t samples_max;       // 0: 65,536
    uint32_t line;              // for messages; the caller's to count

    struct gpu_sample *samples;
    uint32_t count, capacity;
    uint32_t *index; // sample + 1, 0: free; twice the capacity
};
// Whether series of this name are kept, if they are of a GPU.
bool dcgm_reading_keeps(struct slice metric);
// One line that is neither blank nor a comment, without its end. DECODE_NOTHING: not of a GPU, or a
// metric that is not kept.
enum decode_category dcgm_reading_take(struct dcgm_reading *reading, struct slice line);

// Appends the tagged line of a sample, without a line end: what dcgm_tagged reads of it is the
// sample again, with this node.
void dcgm_sample_write(const struct gpu_sample *sample, struct slice node, struct buffer *out);

// The field with this name ("DCGM_FI_DEV_GPU_TEMP") or number ("150"); GPU_FIELD_COUNT: none that
// is kept. `spelling`, which may be NULL: which of the field's spellings it is.
enum gpu_field dcgm_field_find(struct slice name, uint32_t *spelling);
// Puts a value, as a decimal number is written, into the sample. Blank values and those that are
// not finite make the field absent. False when the text is no number.
bool dcgm_field_set(struct gpu_sample *sample, enum gpu_field field, struct slice number);
// Sets address and UUID as far as the texts are right; wrong ones are left out.
void dcgm_identity_set(struct gpu_sample *sample, struct slice uuid, struct slice pci_bus_id,
                       struct slice index);
