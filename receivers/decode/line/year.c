// SPDX-License-Identifier: Apache-2.0
#include "receivers/decode/line/year.h"

#include "base/text/cut.h"
#include "base/text/log_date.h"

static const uint64_t DAY_NS = 86400 * UINT64_C(1000000000);
enum { YEAR_DIGITS = 4, HALF_YEAR_DAYS = 182 };

static bool is_after(uint64_t time_ns, uint64_t observed_ns) {
    return observed_ns != 0 && time_ns > observed_ns && time_ns - observed_ns > DAY_NS;
}

// The date whose year ends at `at`; 0: there is none.
static uint64_t date_around(struct slice text, size_t at) {
    if (at < YEAR_DIGITS || (at > YEAR_DIGITS && text_is_digit(text.data[at - YEAR_DIGITS - 1])))
        return 0;
    struct slice rest = text_from(text, at - YEAR_DIGITS);
    struct log_date date;
    uint64_t time_ns;
    bool right =
        log_date_take_iso(&rest, &date) && log_date_unix(&date, NULL, 0, &time_ns) == LOG_DATE_OK;
    return right ? time_ns : 0;
}

uint64_t year_newest(struct slice text, uint64_t observed_ns) {
    uint64_t newest_ns = 0;
    for (size_t at = 0; at < text.size; at++) {
        const char *dash = memchr(text.data + at, '-', text.size - at);
        if (dash == NULL)
            break;
        at = (size_t)(dash - text.data);
        uint64_t time_ns = date_around(text, at);
        if (time_ns > newest_ns && !is_after(time_ns, observed_ns))
            newest_ns = time_ns;
    }
    return newest_ns;
}

uint64_t year_limit(uint64_t near_ns, uint64_t observed_ns) {
    if (near_ns == 0)
        return observed_ns;
    uint64_t limit_ns = near_ns + HALF_YEAR_DAYS * DAY_NS;
    // What was written after the input says something wrong of the input.
    bool knows = observed_ns != 0 && !is_after(near_ns, observed_ns);
    return knows && observed_ns < limit_ns ? observed_ns : limit_ns;
}
