// SPDX-License-Identifier: Apache-2.0
#include "cli/figures.h"

#include <inttypes.h>

void figures_append_bytes(struct buffer *out, uint64_t bytes) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    size_t unit = 0;
    // 1023.95 would be printed as 1024.0 of the smaller unit.
    while (value >= (unit == 0 ? 1024 : 1023.95) && unit + 1 < sizeof(units) / sizeof(units[0])) {
        value /= 1024;
        unit++;
    }
    buffer_append_format(out, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
}

void figures_append_count(struct buffer *out, uint64_t count, const char *noun) {
    buffer_append_format(out, "%" PRIu64 " %s%s", count, noun, count == 1 ? "" : "s");
}

void figures_append_duration(struct buffer *out, struct duration duration, const char *special) {
    static const struct {
        int64_t ns;
        const char *unit;
    } units[] = {{INT64_C(3600000000000), "h"},
                 {INT64_C(60000000000), "m"},
                 {1000000000, "s"},
                 {1000000, "ms"},
                 {1000, "us"},
                 {1, "ns"}};
    if (duration.ns == DURATION_SPECIAL && special != NULL) {
        buffer_append_text(out, special);
        return;
    }
    if (duration.ns <= 0) {
        buffer_append_text(out, "0s");
        return;
    }
    int64_t left_ns = duration.ns;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (left_ns < units[i].ns)
            continue;
        buffer_append_int(out, left_ns / units[i].ns);
        buffer_append_text(out, units[i].unit);
        left_ns %= units[i].ns;
    }
}
