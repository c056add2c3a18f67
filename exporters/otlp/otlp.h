// SPDX-License-Identifier: Apache-2.0
// What the files of the OTLP exporter share.
//
// A verdict travels from encode to send as one line: a ResourceLogs as JSON, without the moment at
// which it is sent. send joins lines into one ExportLogsServiceRequest, as JSON or as protobuf.
// Source: opentelemetry-proto 1.x (logs/v1, metrics/v1, common/v1),
// opentelemetry.io/docs/specs/otlp.
#pragma once

#include "base/buffer.h"
#include "pipeline/model/verdict.h"

#include <jansson.h>

enum {
    OTLP_BODY_MAX = 64 << 20, // bytes of one request, before compression
    OTLP_SERIES_MAX = 1000,   // of counted verdicts
};

// Appends the line of a verdict. `service`: the attribute service.name.
void otlp_encode_verdict(const struct verdict *verdict, const char *service, struct buffer *out);
// The text value of an attribute of its log record; NULL when there is none. `line` is as parsed.
const char *verdict_record_attribute(const json_t *line, const char *key);
// Notes when it was seen, which a line does not say.
void verdict_record_observe(json_t *line, uint64_t unix_ns);

// -- counted verdicts -----------------------------------------------------------------------------

struct otlp_count {
    char *pattern, *severity, *job; // job: NULL for none
    uint64_t count;
};

struct otlp_counts {
    struct otlp_count *items;
    uint32_t count, capacity;
    uint64_t begun_ns; // Unix: since when it is counted
    bool changed;      // since they were told last
};

void otlp_counts_begin(struct otlp_counts *counts, uint64_t unix_ns);
void otlp_counts_release(struct otlp_counts *counts);
// Counts the verdict of a line when it is new. Behind OTLP_SERIES_MAX series nothing is counted.
void otlp_counts_add(struct otlp_counts *counts, const json_t *line);
// An ExportMetricsServiceRequest with the sum culprit.verdicts, as JSON; the caller's.
json_t *otlp_counts_document(const struct otlp_counts *counts, const char *service,
                             uint64_t unix_ns);

// -- protobuf (protobuf.c) ------------------------------------------------------------------------

// Appends the message that the JSON form of a request stands for.
void otlp_protobuf_logs(const json_t *request, struct buffer *out);
void otlp_protobuf_metrics(const json_t *request, struct buffer *out);

// What an answer says of records that were not taken (partial_success). `protobuf`: the form of the
// answer. False: it says nothing of the kind, or is no such answer. `message` is cut to its size.
bool otlp_partial_success(struct slice answer, bool protobuf, uint64_t *rejected, char *message,
                          size_t size);
