// SPDX-License-Identifier: Apache-2.0
// Facts out of JSON values: what is absent, or is of another type, is not said.
#pragma once

#include "receivers/decode/json/scan.h"
#include "receivers/decode/json/text.h"
#include "receivers/decode/line/reading.h"

// A whole number that is not negative, also written as a text of digits.
bool token_number(const struct token *token, int64_t *number);
// Data NULL: absent, empty, or no text. Lies in the token or the arena.
struct slice token_text(const struct token *token, struct arena *arena);

static inline void reading_token_number(struct reading *reading, enum fact_key key,
                                        const struct token *token) {
    int64_t number;
    if (token_number(token, &number))
        reading_number(reading, key, number);
}

static inline void reading_token_text(struct reading *reading, enum fact_key key,
                                      const struct token *token) {
    struct slice text = token_text(token, reading->arena);
    if (text.data != NULL)
        reading_text(reading, key, text);
}

static inline void reading_token_yes_no(struct reading *reading, enum fact_key key,
                                        const struct token *token) {
    if (token->kind == TOKEN_TRUE || token->kind == TOKEN_FALSE)
        reading_yes_no(reading, key, token->kind == TOKEN_TRUE);
}

// Why a text that is no JSON is refused: DECODE_TRUNCATED when it only breaks off, else
// DECODE_BAD_JSON.
enum decode_category refuse_json(struct decode_fault *fault, struct slice record,
                                 const struct json_fault *json);
