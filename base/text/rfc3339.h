// SPDX-License-Identifier: Apache-2.0
// Date-times as RFC 3339 writes them: "2026-01-31T09:15:04.123456+02:00".
#pragma once

#include "base/slice.h"

#include <stdint.h>

enum rfc3339_result {
    RFC3339_OK,
    RFC3339_WRONG,   // no such text
    RFC3339_OUTSIDE, // right, but before 1970 or after what fits 64 bits (Go's zero time, year 1)
};

// Unix nanoseconds; digits beyond the ninth are cut off, second 60 is the next minute's 0.
// `has_fraction` (may be NULL): finer than a second was written, even if zeros. Letters in either
// case and a space for the T are fine, as the RFC allows.
enum rfc3339_result rfc3339_parse(struct slice text, uint64_t *unix_ns, bool *has_fraction);

// For formats that write the same parts in another order. Seconds from 1970 to a date in UTC,
// negative before it; false when there is no such date. The year has four digits at most.
bool rfc3339_date(uint64_t year, uint64_t month, uint64_t day, int64_t *seconds);
// Takes "09:15:04" off the front and adds it to `seconds`; false, and nothing done, for none.
bool rfc3339_take_clock(struct slice *text, int64_t *seconds);

// "2026-01-31T09:15:04Z", or with as many digits of a fraction as it takes. Any uint64 is fine.
enum { RFC3339_TEXT_MAX = 32 };
void rfc3339_format(uint64_t unix_ns, char out[RFC3339_TEXT_MAX]);
// Down to the whole second.
void rfc3339_format_second(uint64_t unix_ns, char out[RFC3339_TEXT_MAX]);
