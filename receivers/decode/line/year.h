// SPDX-License-Identifier: Apache-2.0
// The year of dates that say none: that of dates with a year near them, before the age of the
// input.
#pragma once

#include "base/slice.h"

#include <stdint.h>

// The newest date with a year that stands anywhere in the text, as a machine writes it
// ("2026-01-31T09:15:04", with a blank or '_' in place of the T): Unix, as if in UTC. Later than a
// day after `observed_ns` (0: not known) none counts. 0: there is none. O(text).
uint64_t year_newest(struct slice text, uint64_t observed_ns);
// Up to when a date without a year may lie, for log_date_unix: half a year after `near_ns`, a date
// with a year, and not after the input was read or written. 0, both: not known.
uint64_t year_limit(uint64_t near_ns, uint64_t observed_ns);
