// SPDX-License-Identifier: Apache-2.0
#include "receivers/decode/nccl_ras/report.h"

#include "base/text/cut.h"
#include "receivers/decode/line/reading.h"
#include "receivers/decode/nccl_ras/nccl_ras.h"

#include <assert.h>

bool ras_report_is(struct slice text) {
    return text_begins(text_trim(text), SLICE("NCCL version "));
}

void ras_report_begin(struct ras_report *report, struct slice text) {
    *report = (struct ras_report){.rest = text};
}

static bool is_heading(struct slice line) {
    struct reading reading = {.arena = NULL};
    return READER_RAS_REPORT.read(NULL, line, &reading) == READ_BEGIN;
}

// The next section, from its heading to the next one. False: there is none.
static bool take_section(struct ras_report *report) {
    struct slice line;
    do {
        if (report->rest.size == 0)
            return false;
        line = text_take_line(&report->rest);
    } while (!is_heading(line));
    const char *begin = line.data;
    struct slice rest = report->rest, behind = rest;
    while (rest.size > 0) {
        line = text_take_line(&behind);
        if (is_heading(line) || text_begins(line, SLICE("Warnings")))
            break;
        rest = behind;
    }
    report->section = (struct slice){begin, (size_t)(rest.data - begin)};
    report->rest = rest;
    report->walk = (struct block_walk){.at = 0};
    return true;
}

enum read_result ras_report_next(struct ras_report *report, struct reading *reading,
                                 struct slice *line) {
    for (;;) {
        while (report->walk.at < report->section.size) {
            size_t at = report->walk.at;
            enum read_result result =
                READER_RAS_REPORT.next(report->section, &report->walk, false, NULL, reading);
            assert(report->walk.at > at && report->walk.at <= report->section.size);
            *line = (struct slice){report->section.data + at, report->walk.at - at};
            *line = text_trim(*line);
            if (result == READ_EVENT || result == READ_REFUSED)
                return result;
        }
        if (!take_section(report)) {
            report->section.size = 0;
            return READ_NOT;
        }
    }
}
