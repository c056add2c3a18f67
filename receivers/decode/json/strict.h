// SPDX-License-Identifier: Apache-2.0
// JSON whose every value can be kept as it is meant: for formats that take nothing else.
//
// Beyond what json_scan refuses: NaN and Infinity, numbers beyond a double, integers beyond int64,
// and half surrogate pairs, wherever in the text they stand. No allocation, any thread.
#pragma once

#include "receivers/decode/json/scan.h"

bool json_token_is_strict_long(const struct token *token, const char *end,
                               struct json_fault *fault);
// Any scalar or key that json_scan accepted. `end` is that of the text; false with `fault` filled.
static inline bool json_token_is_strict(const struct token *token, const char *end,
                                        struct json_fault *fault) {
    bool plain = token->kind == TOKEN_STRING ? !token->escaped : token->kind <= TOKEN_INTEGER;
    return plain || json_token_is_strict_long(token, end, fault);
}

// json_skip_container that refuses these too.
const char *json_skip_strict_container(const char *at, const char *end, unsigned depth,
                                       struct json_fault *fault);

// json_scan_value that refuses these too.
static inline const char *json_scan_strict_value(const char *at, const char *end, unsigned depth,
                                                 struct token *token, struct json_fault *fault) {
    unsigned char first = json_peek(at, end);
    if (first != '{' && first != '[') {
        at = json_scan_scalar(at, end, token, fault);
        return at == NULL || json_token_is_strict(token, end, fault) ? at : NULL;
    }
    const char *after = json_skip_strict_container(at, end, depth + 1, fault);
    if (after == NULL)
        return NULL;
    token->text = at;
    token->size = (size_t)(after - at);
    token->kind = first == '{' ? TOKEN_OBJECT : TOKEN_ARRAY;
    return after;
}

// The nearest double of a number that is strict and does not stand at the end of its text (as none
// does inside an object): what Python's float() gives, whatever the number of digits. Infinite
// beyond a double.
double json_number_double(const struct token *token);
// The double nearest to `digits` (at most 18) with so many of them behind the point. False: it
// takes more than a division to know.
bool json_decimal_double(uint64_t digits, unsigned behind, double *out);
