// SPDX-License-Identifier: Apache-2.0
// The clocks. Receivers, the runner, exporters that send and logs look at one; no stage does.
#pragma once

#include <stdint.h>

uint64_t clock_unix_ns(void);      // time of day, may jump
uint64_t clock_monotonic_ns(void); // for intervals and timeouts
void clock_sleep_ns(uint64_t duration_ns);
// "2026-01-31T09:15:04.123456789Z" and the terminating zero; any uint64 is fine (year up to 2554).
enum { CLOCK_RFC3339_MAX = 32 };
void clock_format_rfc3339(uint64_t unix_ns, char out[CLOCK_RFC3339_MAX]);
