// SPDX-License-Identifier: Apache-2.0
#include "receivers/decode/line/tokens.h"

#include "base/text/cut.h"
#include "pipeline/component/decoder.h"
#include "receivers/decode/json/fault.h"
#include "receivers/decode/json/keys.h"

enum { DIGITS_MAX = 18 };

bool token_number(const struct token *token, int64_t *number) {
    uint64_t written;
    if (token->kind == TOKEN_INTEGER && token->integer >= 0) {
        *number = token->integer;
        return true;
    }
    if (token->kind != TOKEN_STRING || !text_number(token_slice(token), DIGITS_MAX, &written))
        return false;
    *number = (int64_t)written;
    return true;
}

struct slice token_text(const struct token *token, struct arena *arena) {
    if (token->kind != TOKEN_STRING || token->size == 0)
        return (struct slice){NULL, 0};
    return token_decode(token, arena);
}

static bool breaks_off(struct slice record) {
    struct json_keys keys;
    enum json_keys_step step = JSON_KEYS_MEMBER;
    json_keys_begin(&keys, record, 0);
    while (step == JSON_KEYS_MEMBER)
        step = json_keys_next(&keys);
    return step == JSON_KEYS_CUT;
}

enum decode_category refuse_json(struct decode_fault *fault, struct slice record,
                                 const struct json_fault *json) {
    if (json->why == NULL)
        return fault_set(fault, DECODE_NOT_OBJECT, SLICE(""), "not a JSON object");
    fault_json(fault, record, json);
    if (breaks_off(record))
        fault->category = DECODE_TRUNCATED;
    return fault->category;
}
