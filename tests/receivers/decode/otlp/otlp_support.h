// SPDX-License-Identifier: Apache-2.0
// For tests of the OTLP decoder: what a request's visits were, kept to look at.
#pragma once

#include "receivers/decode/otlp/otlp.h"
#include "tests/receivers/decode/decode_support.h"

#include <jansson.h>

enum { SEEN_MAX = 64 };

struct seen {
    struct arena arena;
    struct error error;
    enum status status;
    unsigned count;
    unsigned refused;
    size_t size; // of all records together
    struct slice records[SEEN_MAX];
    const char *refusals[SEEN_MAX];
};

static inline void seen_visit(void *context, uint32_t index, struct slice record,
                              const char *refusal) {
    struct seen *seen = context;
    ck_assert_uint_eq(index, seen->count);
    ck_assert((record.data == NULL) == (refusal != NULL));
    if (seen->count < SEEN_MAX) {
        seen->records[seen->count] = record;
        seen->refusals[seen->count] = refusal;
    }
    seen->count++;
    seen->refused += refusal != NULL;
    seen->size += record.size;
}

typedef enum status otlp_read(struct slice body, struct arena *arena, otlp_visit *visit,
                              void *context, struct error *error);

// The body lies at the end of a page, so that a read past it is seen.
static inline void seen_read(struct seen *seen, struct guarded *guarded, otlp_read *read,
                             struct slice body) {
    arena_reset(&seen->arena);
    seen->count = seen->refused = 0;
    seen->size = 0;
    seen->error = (struct error){0};
    struct slice placed = guarded_put(guarded, body);
    seen->status = read(placed, &seen->arena, seen_visit, seen, &seen->error);
    if (seen->status != STATUS_OK)
        ck_assert_uint_eq(seen->count, 0);
}

static inline json_t *parse_record(struct slice record) {
    json_error_t error;
    json_t *parsed = json_loadb(record.data, record.size, JSON_REJECT_DUPLICATES, &error);
    ck_assert_msg(parsed != NULL, "%s: %.*s", error.text, (int)record.size, record.data);
    return parsed;
}

// The record as JSON, whatever the order of its keys.
static inline void assert_record(struct slice record, const char *expected) {
    ck_assert_ptr_nonnull(record.data);
    json_t *found = parse_record(record);
    json_t *wanted = parse_record(slice_of(expected));
    ck_assert_msg(json_equal(found, wanted), "%.*s instead of %s", (int)record.size, record.data,
                  expected);
    json_decref(found);
    json_decref(wanted);
}
