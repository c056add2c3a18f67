// SPDX-License-Identifier: Apache-2.0
// Dates and clocks as logs write them, in two steps: what stands there, and which time that is.
//
// A `take` reads at the front of `text`, moves it behind what it took and gives true; else the text
// stays as it was. What it took need not exist (the 30th of February): log_date_unix says so. Any
// bytes, any thread, no allocation, time linear in what is taken.
#pragma once

#include "base/slice.h"
#include "base/text/time_zone.h"

#include <stdint.h>

struct log_date {
    uint32_t year;  // 0: not said
    uint32_t month; // 0: a word stood there that names none in a known language
    uint32_t day;
    uint32_t second; // of the day
    uint32_t fraction_ns;
    int32_t offset_s; // east of UTC, where `has_offset`
    bool has_offset;
};

enum log_date_result {
    LOG_DATE_OK,
    LOG_DATE_NONE,          // there is no such day, or it is outside 1970 to 2262
    LOG_DATE_UNKNOWN_MONTH, // no month is called so
    LOG_DATE_NO_YEAR,       // none was said, and when the log was read is not known
};

// "2026-01-31T09:15:04.123456+01:00": a blank or '_' may stand for the T, a comma for the point;
// the offset may lack its colon, be "Z" or not be there. "2026/01/31 09:15:04" is that of Go's log.
bool log_date_take_iso(struct slice *text, struct log_date *date);
// "Jan 31 09:15:04", "Jan  3 09:15:04.123456", "Dez 31 …", "3月14日 …".
bool log_date_take_syslog(struct slice *text, struct log_date *date);
// "Fri Jan 31 09:15:04 2026"; the name of the day in any language.
bool log_date_take_ctime(struct slice *text, struct log_date *date);
// "Jan31 09:15", as dmesg writes the first line of a minute.
bool log_date_take_minute(struct slice *text, struct log_date *date);
// "Jan 31 2026 09:15:04".
bool log_date_take_month_first(struct slice *text, struct log_date *date);
// "Jan 31 09:15:04 2026": as ctime, without the name of the day.
bool log_date_take_month_year(struct slice *text, struct log_date *date);
// "0131 09:15:04.123456", "810 03:04:11" (glog and PyTorch's C++, the latter without a zero).
bool log_date_take_glog(struct slice *text, struct log_date *date);

// Unix nanoseconds, which fit 63 bits. Without an offset it is a time of `zone` (NULL: UTC),
// without a year of the latest in which that is at most a day after `observed_ns` (0: not known).
enum log_date_result log_date_unix(const struct log_date *date, const struct time_zone *zone,
                                   uint64_t observed_ns, uint64_t *unix_ns);
