// SPDX-License-Identifier: Apache-2.0
#include "pipeline/component/decoder.h"

#include <assert.h>

const char *decode_category_name(enum decode_category category) {
    static const char *const names[DECODE_CATEGORY_COUNT] = {
        [DECODE_OK] = "ok",
        [DECODE_BAD_JSON] = "bad_json",
        [DECODE_NOT_OBJECT] = "not_object",
        [DECODE_WRONG_TYPE] = "wrong_type",
        [DECODE_UNSUPPORTED_VERSION] = "unsupported_version",
        [DECODE_MISSING_FIELD] = "missing_field",
        [DECODE_UNKNOWN_FIELD] = "unknown_field",
        [DECODE_EMPTY_STRING] = "empty_string",
        [DECODE_OUT_OF_RANGE] = "out_of_range",
        [DECODE_EXCEEDS_TOTAL] = "exceeds_total",
        [DECODE_IDENTITY_CONFLICT] = "identity_conflict",
        [DECODE_CAPABILITY_CONFLICT] = "capability_conflict",
        [DECODE_MISSING_TIMESTAMP] = "missing_timestamp",
        [DECODE_TOO_LONG] = "too_long",
        [DECODE_TORN] = "torn",
        [DECODE_LIMIT] = "limit",
        [DECODE_BAD_PICKLE] = "bad_pickle",
        [DECODE_UNKNOWN_SOURCE] = "unknown_source",
        [DECODE_UNKNOWN_MONTH] = "unknown_month",
        [DECODE_BAD_TIMESTAMP] = "bad_timestamp",
        [DECODE_TRUNCATED] = "truncated",
        [DECODE_WRAPPED] = "wrapped",
        [DECODE_ENCODING] = "encoding",
        [DECODE_MISSING_VALUE] = "missing_value",
        [DECODE_UNKNOWN_ENVELOPE] = "unknown_envelope",
    };
    assert((unsigned)category < DECODE_CATEGORY_COUNT);
    return names[category];
}

void decoder_drop_held(const struct decoder_type *decoder, void *state, struct arena *arena) {
    struct event event;
    struct decode_fault fault;
    if (decoder->next == NULL)
        return;
    if (decoder->finish != NULL)
        decoder->finish(state);
    while (decoder->next(state, arena, &event, &fault) != DECODE_END)
        continue;
}
