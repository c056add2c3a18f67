// SPDX-License-Identifier: Apache-2.0
// Reads the times of log lines. Constant memory, time linear in the time's own size.
#include "base/text/log_time.h"

#include "base/text/cut.h"
#include "base/text/log_date.h"

#include <assert.h>

static bool take_time(bool (*take)(struct slice *, struct log_date *), struct slice *text,
                      uint64_t observed_ns, uint64_t *ns) {
    assert(ns != NULL);
    struct slice rest = *text;
    struct log_date date;
    if (!take(&rest, &date) || log_date_unix(&date, NULL, observed_ns, ns) != LOG_DATE_OK)
        return false;
    *text = rest;
    return true;
}

bool log_time_iso(struct slice *text, uint64_t *ns) {
    return take_time(log_date_take_iso, text, 0, ns);
}

bool log_time_syslog(struct slice *text, uint64_t observed_ns, uint64_t *ns) {
    return take_time(log_date_take_syslog, text, observed_ns, ns);
}

bool log_time_ctime(struct slice *text, uint64_t *ns) {
    return take_time(log_date_take_ctime, text, 0, ns);
}

bool log_time_seconds(struct slice *text, uint64_t *ns) {
    assert(ns != NULL);
    static const uint64_t SECOND_NS = 1000000000;
    struct slice rest = *text;
    uint64_t seconds, unit = SECOND_NS / 10;
    while (text_skip_char(&rest, ' ')) {
    }
    if (!text_take_number(&rest, 1, 9, &seconds) || !text_skip_char(&rest, '.'))
        return false;
    *ns = seconds * SECOND_NS;
    for (; rest.size > 0 && text_is_digit(rest.data[0]); unit /= 10)
        *ns += unit * (uint64_t)(text_take(&rest, 1).data[0] - '0');
    *text = rest;
    return true;
}
