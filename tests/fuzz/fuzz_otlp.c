// SPDX-License-Identifier: Apache-2.0
// Whatever an OTLP client sends is answered, and what comes out of it is a record.
//
// The input is one body: JSON when it begins like it, else protobuf. It lies in a block of its own,
// so that a read past its end is seen. Each record must be one whole JSON object within its bound,
// which the telemetry decoder then judges; a malformed body must have been visited not at all; and
// a second reading must say the same.
#include "base/intern.h"
#include "base/memory.h"
#include "receivers/decode/json/scan.h"
#include "receivers/decode/otlp/otlp.h"
#include "receivers/decode/telemetry/telemetry.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct reading {
    void *state;
    struct arena *arena;
    uint32_t count;
    uint32_t refused;
    uint64_t digest;
};

static void require(bool holds) {
    if (!holds)
        abort();
}

static void require_object(struct slice record) {
    struct token token;
    struct json_fault fault;
    const char *end = record.data + record.size;
    const char *at = json_scan_value(record.data, end, 0, &token, &fault);
    require(at != NULL && token.kind == TOKEN_OBJECT && json_skip_space(at, end) == end);
}

static void visit(void *context, uint32_t index, struct slice record, const char *refusal) {
    struct reading *reading = context;
    require(index == reading->count++);
    require((record.data == NULL) == (refusal != NULL));
    reading->refused += refusal != NULL;
    if (refusal != NULL) {
        require(strlen(refusal) > 10);
        return;
    }
    require(record.size <= OTLP_RECORD_MAX);
    require_object(record);
    for (size_t i = 0; i < record.size; i++)
        reading->digest = (reading->digest ^ (unsigned char)record.data[i]) * 1099511628211u;
    struct event event;
    struct decode_fault fault;
    decoder_stormlog.decode(reading->state, record, reading->arena, &event, &fault);
}

static enum status read_body(struct slice body, struct reading *reading) {
    struct error error = {0};
    bool json = body.size > 0 && (body.data[0] == '{' || body.data[0] == ' ');
    enum status status = json ? otlp_logs_json(body, reading->arena, visit, reading, &error)
                              : otlp_logs_protobuf(body, reading->arena, visit, reading, &error);
    require(status == STATUS_OK || status == STATUS_BAD_DATA);
    require(status == STATUS_OK || (reading->count == 0 && strlen(error.message) > 20));
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    void *state = memory_zero(1, decoder_stormlog.state_size);
    char *body = memory_take(size);
    if (size > 0)
        memcpy(body, data, size);
    struct arena arena;
    arena_init(&arena, 4096);
    struct reading first = {.state = state, .arena = &arena}, again = first;
    enum status status = read_body((struct slice){body, size}, &first);
    require(read_body((struct slice){body, size}, &again) == status);
    require(first.count == again.count && first.refused == again.refused);
    require(first.digest == again.digest);
    arena_release(&arena);
    memory_give(body);
    memory_give(state);
    intern_release();
    return 0;
}
