// SPDX-License-Identifier: Apache-2.0
// Refuses values that JSON allows but that cannot be kept.
//
// Most tokens are told by their kind alone; only strings with escapes and decimals are looked at.
// Digits that fit a double's 53 bits, divided by a power of ten that does too, are rounded once and
// so exact (Clinger 1990); all other numbers are left to strtod, which reads no further than the
// byte after the number, and no locale is ever set.
#include "receivers/decode/json/strict.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// A decimal of fewer bytes and no exponent cannot be beyond a double, which has up to 309 digits.
enum { SHORT_DECIMAL = 300 };

static unsigned unit_of(const char *digits) {
    unsigned unit = 0;
    for (unsigned i = 0; i < 4; i++) {
        unsigned char c = (unsigned char)digits[i];
        unit = unit << 4 | (c <= '9' ? c - 0x30u : (c | 0x20u) - 0x57u);
    }
    return unit;
}

static bool is_low_escape(const char *at, const char *end) {
    return end - at >= 6 && at[0] == '\\' && at[1] == 'u' && (unit_of(at + 2) & 0xfc00) == 0xdc00;
}

// Where half a pair stands, or NULL.
static const char *half_pair(const struct token *token) {
    const char *at = token->text, *end = at + token->size;
    while ((at = memchr(at, '\\', (size_t)(end - at))) != NULL) {
        if (at[1] != 'u') {
            at += 2;
            continue;
        }
        unsigned unit = unit_of(at + 2);
        if ((unit & 0xfc00) == 0xdc00)
            return at;
        if ((unit & 0xfc00) != 0xd800) {
            at += 6;
            continue;
        }
        if (!is_low_escape(at + 6, end))
            return at;
        at += 12;
    }
    return NULL;
}

static bool is_beyond_double(const struct token *token, const char *end) {
    bool exponent = token->size >= SHORT_DECIMAL;
    for (size_t i = 0; i < token->size && !exponent; i++)
        exponent = (token->text[i] | 0x20) == 'e';
    if (!exponent)
        return false;
    // What ends with a number is no object: something else is wrong with it.
    return token->text + token->size < end && isinf(json_number_double(token));
}

static bool refuse(struct json_fault *fault, const char *at, const char *why) {
    json_fail(fault, at, why);
    return false;
}

bool json_token_is_strict_long(const struct token *token, const char *end,
                               struct json_fault *fault) {
    if (token->kind == TOKEN_STRING) {
        const char *half = half_pair(token);
        return half == NULL || refuse(fault, half, "half a surrogate pair");
    }
    if (token->kind != TOKEN_DECIMAL)
        return refuse(fault, token->text, "an integer beyond 64 bits with a sign");
    // No number ends with a letter.
    if ((unsigned char)(token->text[token->size - 1] - '0') > 9)
        return refuse(fault, token->text, "NaN or Infinity, which JSON does not have");
    return !is_beyond_double(token, end) || refuse(fault, token->text, "a number beyond a double");
}

// Digits as they stand, without the point; how many stand behind it.
struct decimal {
    uint64_t digits;
    unsigned count;
    unsigned behind;
};

enum { DIGITS_MAX = 18, EXACT_POWER = 22 };

// False when there is an exponent, or too many digits.
static bool read_plain(const char *at, const char *end, struct decimal *out) {
    bool point = false;
    *out = (struct decimal){0};
    for (; at < end; at++) {
        if (*at == '.') {
            point = true;
            continue;
        }
        unsigned digit = (unsigned char)(*at - '0');
        out->digits = out->digits * 10 + digit;
        out->count += out->digits > 0;
        out->behind += point;
        if (digit > 9 || out->count > DIGITS_MAX || out->behind > EXACT_POWER)
            return false;
    }
    return true;
}

// Both operands are exact, so that one division rounds as it should: into 64 bits, and from there
// into 53, which is wrong only where the first result lies right between two doubles; or, without
// such a format, at once.
bool json_decimal_double(uint64_t digits, unsigned behind, double *out) {
    static const double powers[EXACT_POWER + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                   1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                   1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (behind > EXACT_POWER)
        return false;
#if FLT_EVAL_METHOD == 0
    if (digits <= UINT64_C(1) << 53) {
        *out = (double)digits / powers[behind];
        return true;
    }
#if LDBL_MANT_DIG == 64
    long double quotient = (long double)digits / (long double)powers[behind];
    uint64_t significand;
    memcpy(&significand, &quotient, sizeof significand);
    *out = (double)quotient;
    return (significand & 0x7ff) != 0x400;
#endif
#endif
    return false;
}

double json_number_double(const struct token *token) {
    assert(token->kind == TOKEN_INTEGER || token->kind == TOKEN_UNSIGNED ||
           token->kind == TOKEN_HUGE || token->kind == TOKEN_DECIMAL);
    struct decimal decimal;
    bool negative = token->text[0] == '-';
    if (token->kind == TOKEN_INTEGER)
        return (double)token->integer;
    double value;
    if (!read_plain(token->text + negative, token->text + token->size, &decimal) ||
        !json_decimal_double(decimal.digits, decimal.behind, &value))
        return strtod(token->text, NULL);
    return negative ? -value : value;
}
