// SPDX-License-Identifier: Apache-2.0
// Time zones by name, without the process's own: from local date and clock to Unix time.
//
// A zone is read once and constant from then on: any thread, no allocation after time_zone_open.
// Facts of the file format from RFC 9636 (TZif).
#pragma once

#include "base/slice.h"

#include <stdint.h>

#define TIME_ZONE_FOLDER "/usr/share/zoneinfo"

struct time_zone;

// "UTC", "Z", "+02:00", "-0530", or a name of the IANA database, such as "Europe/Berlin", which is
// looked up in TIME_ZONE_FOLDER. NULL: there is no such zone, or its file cannot be read.
struct time_zone *time_zone_open(struct slice name);
void time_zone_close(struct time_zone *zone); // NULL is fine

// Seconds east of UTC at a Unix time. A zone that is NULL is UTC.
int32_t time_zone_offset(const struct time_zone *zone, int64_t unix_s);
// From what a clock on the wall showed, as if it were UTC. Where clocks were put back it showed the
// same twice: the first is meant. Where they were put forward it never showed this: the offset from
// before the change is used, so that the result lies as far behind the change as was written.
int64_t time_zone_unix(const struct time_zone *zone, int64_t local_s);
