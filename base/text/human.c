// SPDX-License-Identifier: Apache-2.0
#include "base/text/human.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

void human_bytes(int64_t bytes, char out[HUMAN_MAX]) {
    assert(out != NULL);
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    unsigned unit = 0;
    // What would be printed as 1024 of a unit is 1.00 of the next.
    while (fabs(value) >= (unit == 0 ? 1024 : 1023.5) && unit < 6) {
        value /= 1024;
        unit++;
    }
    int decimals = fabs(value) < 9.995 ? 2 : fabs(value) < 999.95 ? 1 : 0;
    if (unit == 0)
        snprintf(out, HUMAN_MAX, "%" PRId64 " B", bytes);
    else
        snprintf(out, HUMAN_MAX, "%.*f %s", decimals, value, units[unit]);
}

void human_duration(__int128 duration_ns, char out[HUMAN_MAX]) {
    assert(out != NULL);
    const char *sign = duration_ns < 0 ? "-" : "";
    double seconds = (double)(duration_ns < 0 ? -duration_ns : duration_ns) / 1e9;
    if (duration_ns == 0)
        snprintf(out, HUMAN_MAX, "0 s");
    else if (seconds < 1e-3)
        snprintf(out, HUMAN_MAX, "%s%.0f us", sign, seconds * 1e6);
    else if (seconds < 0.9995)
        snprintf(out, HUMAN_MAX, "%s%.0f ms", sign, seconds * 1e3);
    else if (seconds < 59.995)
        snprintf(out, HUMAN_MAX, "%s%.*f s", sign, seconds < 9.995 ? 2 : 1, seconds);
    else if (seconds < 3599.5) {
        uint64_t whole = (uint64_t)(seconds + 0.5);
        snprintf(out, HUMAN_MAX, "%s%" PRIu64 " min %" PRIu64 " s", sign, whole / 60, whole % 60);
    } else if (seconds < 1e9) {
        uint64_t minutes = (uint64_t)(seconds / 60 + 0.5);
        snprintf(out, HUMAN_MAX, "%s%" PRIu64 " h %" PRIu64 " min", sign, minutes / 60,
                 minutes % 60);
    } else {
        snprintf(out, HUMAN_MAX, "%s%.3g s", sign, seconds);
    }
}
