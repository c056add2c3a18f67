// SPDX-License-Identifier: Apache-2.0
// Scans a record: the value of each key.
//
// The general way, for a record that is not like the one before it (template.h). For each
// field the one that followed it last time is remembered, and its key is compared in one go. When
// that guess is wrong the key is read byte by byte and becomes the next guess; order, spacing and
// escapes are free. Every value is checked to be JSON, known or not. One pass, no memory.
#include "receivers/decode/telemetry/record.h"

#include "receivers/decode/json/block.h"
#include "receivers/decode/json/fault.h"
#include "receivers/decode/json/shape.h"
#include "receivers/decode/json/text.h"

// Room for any key, a space, and the first byte of a value.
enum { EXPECTED_ROOM = 40 };

// A key that was not the expected one: behind its colon.
static const char *read_key(const char *at, const char *end, unsigned *field,
                            struct json_fault *fault) {
    struct token key;
    if (json_peek(at, end) != '"')
        return json_fail(fault, at, "no key in quotes where one must be");
    at = json_scan_string(at + 1, end, &key, fault);
    if (at == NULL)
        return NULL;
    *field = telemetry_field_find(&key);
    at = json_skip_space(at, end);
    if (json_peek(at, end) != ':')
        return json_fail(fault, at, "no colon after a key");
    return at + 1;
}

static inline const char *scan_value(struct telemetry_state *state, unsigned field, const char *at,
                                     const char *end, struct json_fault *fault) {
    struct token *token = &state->tokens[field];
    if (field != FIELD_METADATA || json_peek(at, end) != '{')
        return json_scan_value(at, end, 1, token, fault);
    token->kind = TOKEN_OBJECT;
    return metadata_scan(at, end, &state->capabilities, &state->metadata, fault);
}

// Members with the expected keys and at most one space between the tokens, from the quote of a key
// on. Stops in front of a key that is another or near the record's end, or behind a value that no
// comma follows; *behind says which.
static const char *scan_expected(struct telemetry_state *state, unsigned *field, bool *behind,
                                 const char *at, const char *end, struct json_fault *fault) {
    const size_t colon_gap = state->colon_gap, comma_gap = state->comma_gap;
    uint32_t seen = 0;
    unsigned last = *field;
    *behind = false;
    while (end - at >= EXPECTED_ROOM) {
        unsigned expected = state->next_field[last];
        const struct json_key *key = &telemetry_field_keys[expected];
        if (!json_block_matches(at, key->text, key->mask))
            break;
        const char *value = at + key->size + colon_gap;
        if ((at[key->size] == ' ') != (colon_gap != 0) || (unsigned char)*value <= ' ')
            break;
        at = value;
        last = expected;
        seen |= FIELD_BIT(expected);
        at = scan_value(state, expected, at, end, fault);
        if (at == NULL)
            return NULL;
        if (end - at < 2 || *at != ',' || (at[1] == ' ') != (comma_gap != 0)) {
            *behind = true;
            break;
        }
        at += 1 + comma_gap;
    }
    state->seen |= seen;
    *field = last;
    return at;
}

static const char *scan_any(struct telemetry_state *state, unsigned *field, const char *at,
                            const char *end, struct json_fault *fault) {
    unsigned before = *field;
    const char *key = json_skip_space(at, end);
    if (before != FIELD_START)
        state->comma_gap = key > at && *at == ' ';
    at = read_key(key, end, field, fault);
    if (at == NULL)
        return NULL;
    state->colon_gap = json_peek(at, end) == ' ';
    if (*field != FIELD_UNKNOWN)
        state->next_field[before] = (uint8_t)*field;
    state->seen |= FIELD_BIT(*field);
    return scan_value(state, *field, json_skip_space(at, end), end, fault);
}

// From the brace that opens the record to behind the one that closes it.
static const char *scan_members(struct telemetry_state *state, const char *at, const char *end,
                                struct json_fault *fault) {
    unsigned field = FIELD_START;
    bool behind;
    at = json_skip_space(at + 1, end);
    if (json_peek(at, end) == '}')
        return at + 1;
    for (;;) {
        at = scan_expected(state, &field, &behind, at, end, fault);
        if (at != NULL && !behind)
            at = scan_any(state, &field, at, end, fault);
        if (at == NULL)
            return NULL;
        at = json_skip_space(at, end);
        unsigned char c = json_peek(at, end);
        if (c == '}')
            return at + 1;
        if (c != ',')
            return json_fail(fault, at, "no comma or closing brace after a value");
        at++;
    }
}

enum decode_category telemetry_record_scan(struct telemetry_state *state, struct slice record,
                                           struct decode_fault *fault) {
    const char *at = record.data, *end = at + record.size;
    struct json_fault json;
    state->seen = 0;
    at = json_skip_space(at, end);
    bool object = json_peek(at, end) == '{';
    if (object)
        at = scan_members(state, at, end, &json);
    else
        at = json_scan_value(at, end, 0, &state->tokens[FIELD_UNKNOWN], &json);
    if (at == NULL)
        return fault_json(fault, record, &json);
    at = json_skip_space(at, end);
    if (at < end) {
        json = (struct json_fault){at, "something follows after the value"};
        return fault_json(fault, record, &json);
    }
    if (!object)
        return fault_set(fault, DECODE_NOT_OBJECT, SLICE(""),
                         "the record is JSON but not an object in braces");
    return DECODE_OK;
}

enum decode_category telemetry_record_unknown(struct slice record, uint32_t known,
                                              struct arena *arena, struct decode_fault *fault) {
    struct fault_names names = {.count = 0};
    struct json_pairs pairs = json_pairs_of(record);
    for (struct token key, value; json_pairs_next(&pairs, &key, &value);) {
        unsigned field = telemetry_field_find(&key);
        if (field == FIELD_UNKNOWN || (known & FIELD_BIT(field)) == 0)
            fault_names_add(&names, token_decode(&key, arena));
    }
    return fault_names_join(&names, fault, DECODE_UNKNOWN_FIELD,
                            "keys that this schema version does not know");
}
