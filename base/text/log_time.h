// SPDX-License-Identifier: Apache-2.0
// Times as logs write them, to Unix nanoseconds: log_date.h in one step, where a time that says no
// zone is taken as UTC.
//
// Each reads at the front of `text`, moves it behind the time and gives true; else the text stays
// as it was. Years 1970 to 2261. Any bytes, any thread, no allocation.
#pragma once

#include "base/slice.h"

#include <stdint.h>

// "2026-01-31T09:15:04", then a fraction of any length behind '.' or ',' (digits beyond nanoseconds
// are cut), then "Z", "+01:00", "+0100" or nothing; a blank or '_' may stand for the T.
bool log_time_iso(struct slice *text, uint64_t *ns);
// "Jan 31 09:15:04" or "Jan  3 09:15:04.123456": the latest year in which that is at most a day
// after `observed_ns`. False when that is 0.
bool log_time_syslog(struct slice *text, uint64_t observed_ns, uint64_t *ns);
// "Fri Jan 31 09:15:04 2026".
bool log_time_ctime(struct slice *text, uint64_t *ns);
// "  1234.567890": seconds and their fraction as nanoseconds, blanks before it skipped.
bool log_time_seconds(struct slice *text, uint64_t *ns);
