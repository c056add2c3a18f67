// SPDX-License-Identifier: Apache-2.0
// The walk through a template, for a file that says how blocks of bytes are looked at:
//
//   WALK          name of the function
//   WALK_BLOCK    bytes of a block, a power of two up to 32
//   walk_same     whether `size` bytes at `at` and `text` are the same; `at` has `left` bytes, of
//                 which at least `size`, and `text` RUN_TEXT_ROOM more than `size`
//   walk_special  which bytes of a block a scan of a string has to look at: a quote, a backslash, a
//                 control character, the start of a character beyond ASCII; bit i for byte i
//   walk_others   which bytes of a block are no digits
//   walk_digits   like json_read_digits
//
// Where the next value begins would depend on each digit before it. Lengths are therefore guessed
// to be those of the record before: the processor goes on from there and is told of a mistake by a
// branch (steer). Each file of a level includes this once.
#pragma once

#include "receivers/decode/json/block.h"
#include "receivers/decode/json/text.h"
#include "receivers/decode/telemetry/walk.h"

#include <assert.h>

#define walk_likely(condition) __builtin_expect((condition), 1)

// Behind `count` bytes, which were `*width` last time.
static inline const char *steer(const char *at, unsigned count, uint16_t *width) {
    size_t guess = *width;
    if (walk_likely(count == guess)) {
        __asm__("" : "+r"(guess)); // else the compiler would add `count`, which is as much
        return at + guess;
    }
    *width = (uint16_t)count;
    return at + count;
}

// Where a block that has `at` in it may be read without leaving the record, and how many of its
// bytes come before `at`.
static inline const char *block_around(const struct replay *replay, const char *at,
                                       unsigned *before) {
    ptrdiff_t left = replay->end - at;
    *before = 0;
    if (walk_likely(left >= WALK_BLOCK))
        return at;
    *before = (unsigned)(WALK_BLOCK - left);
    return replay->end - WALK_BLOCK;
}

// Bits of the bytes from `at` on; those behind the record are set.
static inline uint64_t special_from(const struct replay *replay, const char *at) {
    unsigned before;
    const char *block = block_around(replay, at, &before);
    return ((uint64_t)walk_special(block) | UINT64_MAX << WALK_BLOCK) >> before;
}

static inline uint64_t others_from(const struct replay *replay, const char *at) {
    unsigned before;
    const char *block = block_around(replay, at, &before);
    return ((uint64_t)walk_others(block) | UINT64_MAX << WALK_BLOCK) >> before;
}

static inline bool run_matches(const char *at, const char *end, const char *text, size_t size) {
    size_t left = (size_t)(end - at);
    return left >= size && walk_same(at, text, size, left);
}

// -- values -------------------------------------------------------------------------------------

static const char *read_null(const struct replay *replay, const struct value_rule *rule,
                             const char *at) {
    struct telemetry *telemetry = replay->telemetry;
    bool nullable = rule->nullable == 1 || rule->nullable == telemetry->schema_version;
    if (!nullable || memcmp(at, "null", 4) != 0)
        return NULL;
    telemetry->null_counters |= rule->counter;
    memset((char *)telemetry + rule->offset, 0, sizeof(int64_t));
    return at + 4;
}

static inline const char *put_number(const struct replay *replay, const struct value_rule *rule,
                                     int64_t value, const char *behind) {
    bool is_rank = rule->class == CLASS_RANK;
    if (value < rule->min || (is_rank && value > RANK_MAX))
        return NULL;
    int32_t rank = (int32_t)value;
    if (is_rank)
        memcpy((char *)replay->telemetry + rule->offset, &rank, sizeof rank);
    else
        memcpy((char *)replay->telemetry + rule->offset, &value, sizeof value);
    return behind;
}

// With a sign, or null.
__attribute__((noinline)) static const char *
read_other_number(const struct replay *replay, struct template_run *run, const char *at) {
    const struct value_rule *rule = &telemetry_value_rules[run->field];
    if (*at == 'n')
        return rule->class == CLASS_RANK ? NULL : read_null(replay, rule, at);
    uint64_t magnitude;
    unsigned count = *at == '-' ? walk_digits(at + 1, &magnitude) : 0;
    if (count == 0 || magnitude > INT64_MAX)
        return NULL;
    return put_number(replay, rule, -(int64_t)magnitude, steer(at + 1, count, &run->width));
}

// What follows the digits is not looked at: the next run begins with it, and has followed a number
// before.
static inline const char *read_number(const struct replay *replay, struct template_run *run,
                                      const char *at, const char *end) {
    uint64_t magnitude;
    if (end - at < JSON_NUMBER_ROOM)
        return NULL;
    unsigned count = walk_digits(at, &magnitude);
    if (count == 0)
        return read_other_number(replay, run, at);
    if (magnitude > INT64_MAX)
        return NULL;
    if (walk_likely(run->offset != RUN_NO_OFFSET)) {
        memcpy((char *)replay->telemetry + run->offset, &magnitude, sizeof magnitude);
        return steer(at, count, &run->width);
    }
    return put_number(replay, &telemetry_value_rules[run->field], (int64_t)magnitude,
                      steer(at, count, &run->width));
}

// A string whose first character is at `at`: behind its quote.
static inline const char *read_string(const struct replay *replay, const char *at,
                                      struct token *token, uint16_t *width) {
    struct json_fault ignored;
    unsigned plain = (unsigned)__builtin_ctzll(special_from(replay, at));
    if (plain >= WALK_BLOCK || plain >= replay->end - at || at[plain] != '"')
        return json_scan_string(at, replay->end, token, &ignored);
    token->text = at;
    token->size = plain;
    token->kind = TOKEN_STRING;
    token->escaped = 0;
    return steer(at, plain, width) + 1;
}

static inline uint64_t word_differences(const char *a, const char *b) {
    uint64_t left, right;
    memcpy(&left, a, sizeof left);
    memcpy(&right, b, sizeof right);
    return left ^ right;
}

// Names are mostly of 8 to 16 characters: two words that overlap.
static inline bool same_text(const char *a, const char *b, size_t size) {
    if (size < sizeof(uint64_t) || size > 2 * sizeof(uint64_t))
        return memcmp(a, b, size) == 0;
    size_t last = size - sizeof(uint64_t);
    return (word_differences(a, b) | word_differences(a + last, b + last)) == 0;
}

// The same text as the last one of its kind. One with escapes never is: interned text has none.
static inline bool is_known(const struct token *token, const struct known_name *known) {
    return known->id != STRING_NONE && token->size == known->text.size && !token->escaped &&
           same_text(token->text, known->text.data, token->size);
}

// The one that came behind the last one of its kind before: with many ranks each has a session of
// its own, and they come round. It was not blank then.
static inline bool is_next(const struct token *token, const struct intern_entry *next) {
    return next != NULL && token->size == next->size && !token->escaped &&
           same_text(token->text, next->bytes, token->size);
}

// The last one of its kind again, the one behind it, or a text that gets its number at the end.
// Then its memory is asked for, so that it is there by that time.
static inline const char *read_name(struct replay *replay, const struct value_rule *rule,
                                    const char *at, uint16_t *width) {
    struct known_name *known = &replay->state->names[rule->name];
    const struct intern_entry **next = &replay->state->next_names[rule->name];
    struct token *token = &replay->names[rule->name];
    if (json_peek(at, replay->end) != '"')
        return NULL;
    at = read_string(replay, at + 1, token, width);
    if (at == NULL)
        return NULL;
    bool is_last = is_known(token, known);
    if (!is_last && is_next(token, *next)) {
        *known = (struct known_name){{(*next)->bytes, (*next)->size}, (*next)->id};
        *next = intern_next(*next);
        is_last = true;
    }
    if (is_last) {
        memcpy((char *)replay->telemetry + rule->offset, &known->id, sizeof known->id);
        replay->known |= 1u << rule->name;
        return at;
    }
    if (token_is_blank(token))
        return NULL;
    if (!token->escaped) {
        replay->hashes[rule->name] = intern_expect(token_slice(token));
        replay->expected |= 1u << rule->name;
    }
    return at;
}

static const char *read_context(const struct replay *replay, const char *at) {
    struct json_fault ignored;
    struct token token;
    at = json_scan_scalar(at, replay->end, &token, &ignored);
    if (at == NULL || (token.kind != TOKEN_STRING && token.kind != TOKEN_NULL))
        return NULL;
    replay->telemetry->context = (struct slice){NULL, 0};
    if (token.kind == TOKEN_STRING)
        replay->telemetry->context = token_decode(&token, replay->arena);
    return at;
}

// -- metadata -----------------------------------------------------------------------------------

// Behind a number of the usual form, NULL when it is another or none.
static inline const char *pass_number(const struct replay *replay, const char *at,
                                      uint16_t *width) {
    const char *digits = at + (*at == '-');
    uint64_t others = others_from(replay, digits);
    unsigned count = (unsigned)__builtin_ctzll(others);
    if (count == 0 || count >= WALK_BLOCK || digits + count >= replay->end ||
        (*digits == '0' && count > 1))
        return NULL;
    if (digits[count] == '.') {
        unsigned point = count;
        count = (unsigned)__builtin_ctzll(others & (others - 1));
        if (count == point + 1 || count >= WALK_BLOCK || digits + count >= replay->end)
            return NULL;
    }
    return (digits[count] | 0x20) == 'e' ? NULL : steer(digits, count, width);
}

// Behind a value that nobody reads.
static inline const char *pass_value(const struct replay *replay, const char *at, uint16_t *width) {
    struct json_fault ignored;
    struct token token;
    unsigned char first = json_peek(at, replay->end);
    if (first == '"')
        return read_string(replay, at + 1, &token, width);
    if ((unsigned)(first - '0') <= 9 || first == '-') {
        const char *behind = pass_number(replay, at, width);
        if (walk_likely(behind != NULL))
            return behind;
    }
    return json_scan_value(at, replay->end, 2, &token, &ignored);
}

// Reads metadata that have the members of those before them; NULL when they have not.
static inline const char *walk_metadata(struct replay *replay, const char *at) {
    struct telemetry_state *state = replay->state;
    struct metadata_plan *plan = &state->plan;
    struct json_fault ignored;
    const char *start = at;
    state->metadata.seen = 0;
    for (unsigned i = 0; i < plan->run_count; i++) {
        struct template_run *run = &plan->runs[i];
        if (!run_matches(at, replay->end, plan->text + run->start, run->size))
            return NULL;
        at += run->size;
        if (run->field == METADATA_PLAN_END) {
            state->metadata.text = (struct slice){start, (size_t)(at - start)};
            plan->delay = 0;
            return at;
        }
        at = run->field == 0
                 ? pass_value(replay, at, &run->width)
                 : metadata_read_value(at, replay->end, run->field, &state->capabilities,
                                       &state->metadata, &ignored);
        if (at == NULL)
            return NULL;
    }
    return NULL;
}

// The strings themselves, once their slots have had time to come.
static inline void approach_names(const struct replay *replay) {
    for (uint32_t names = replay->expected; names != 0; names &= names - 1)
        intern_approach(replay->hashes[__builtin_ctz(names)]);
}

static const char *read_metadata(struct replay *replay, const char *at) {
    struct telemetry_state *state = replay->state;
    if (json_peek(at, replay->end) != '{')
        return NULL;
    approach_names(replay);
    const char *behind = walk_metadata(replay, at);
    if (behind == NULL)
        behind = metadata_scan_anew(&state->plan, at, replay->end, &state->capabilities,
                                    &state->metadata);
    replay->telemetry->metadata = state->metadata.text;
    replay->metadata_read = true;
    if (state->template.session_from_metadata && (state->metadata.seen & METADATA_SESSION) != 0)
        return NULL;
    return behind;
}

// -- the record ---------------------------------------------------------------------------------

static const char *read_other(struct replay *replay, struct template_run *run, const char *at) {
    const struct value_rule *rule = &telemetry_value_rules[run->field];
    switch ((enum value_class)rule->class) {
    case CLASS_NAME:
        return read_name(replay, rule, at, &run->width);
    case CLASS_CONTEXT:
        return read_context(replay, at);
    case CLASS_METADATA:
        return read_metadata(replay, at);
    default:
        return NULL;
    }
}

bool WALK(struct replay *replay) {
    struct telemetry_template *template = &replay->state->template;
    const char *at = replay->begin, *end = replay->end;
    assert(end - at >= WALK_RECORD_MIN);
    *replay->telemetry = template->values;
    for (unsigned i = 0;; i++) {
        struct template_run *run = &template->runs[i];
        if (!run_matches(at, end, template->text + run->start, run->size))
            return false;
        replay->run_starts[i] = at;
        at += run->size;
        if (walk_likely(run->is_number))
            at = read_number(replay, run, at, end);
        else if (run->field == FIELD_UNKNOWN)
            return at == end;
        else
            at = read_other(replay, run, at);
        if (at == NULL)
            return false;
    }
}
