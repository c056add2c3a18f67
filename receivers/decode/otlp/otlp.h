// SPDX-License-Identifier: Apache-2.0
// OTLP log requests: each LogRecord becomes the text of one telemetry record.
//
// Both encodings of an ExportLogsServiceRequest (opentelemetry-proto, collector/logs/v1) are read;
// the rules of the mapping are in README.md. What comes out is JSON for decoder_stormlog
// (receivers/decode/telemetry/telemetry.h), which judges it as it judges a line of a file.
#pragma once

#include "base/arena.h"
#include "base/status.h"

#include <stdint.h>

enum {
    OTLP_RECORDS_MAX = 1 << 18, // log records in one request
    OTLP_RECORD_MAX = 1 << 20,  // bytes of one telemetry record
    OTLP_FIELDS_MAX = 128,      // fields of one telemetry record
    OTLP_DEPTH_MAX = 16,        // arrays and maps that may stand in one another in an AnyValue
    OTLP_NAME_MAX = 255,        // bytes of a host or job name that is taken from the resource
};

// One log record; `index` counts from 0 over the whole request. `record` is a JSON object, in the
// arena or in the request's body, and good as long as both are. When the log record cannot be an
// event `record.data` is NULL and `refusal` says why, as a clause ("its body is a number …").
typedef void otlp_visit(void *context, uint32_t index, struct slice record, const char *refusal);

// Visits every log record of a request in order. The body is read to its end first: when it is not
// right nothing is visited, and STATUS_BAD_DATA says at which byte and why. That is also the answer
// to more than OTLP_RECORDS_MAX log records. The arena grows by at most six times the body and
// 64 MiB. Any thread; a few allocations a request.
enum status otlp_logs_json(struct slice body, struct arena *arena, otlp_visit *visit, void *context,
                           struct error *error) MUST_USE;
enum status otlp_logs_protobuf(struct slice body, struct arena *arena, otlp_visit *visit,
                               void *context, struct error *error) MUST_USE;
