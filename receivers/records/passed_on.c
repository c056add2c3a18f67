// SPDX-License-Identifier: Apache-2.0
#include "receivers/records/passed_on.h"

#include "base/text/cut.h"
#include "pipeline/component/record_frame.h"
#include "receivers/decode/formats.h"

#include <assert.h>

void passed_on_begin(struct passed_on *passed_on) {
    *passed_on = (struct passed_on){.forwarded = {.rank = RANK_NONE}};
}

static void set_name(struct passed_on *passed_on, string_id *name, struct slice value) {
    *name = intern(value);
    if (*name != STRING_REFUSED)
        return;
    *name = STRING_NONE;
    passed_on->fault = "no more distinct names are taken";
}

static void set_number(struct slice value, uint64_t max, uint64_t *number) {
    uint64_t read;
    if (text_number(value, 20, &read) && read <= max)
        *number = read;
}

static void set_format(struct passed_on *passed_on, struct slice value) {
    passed_on->known = format_is_decoder(value);
    passed_on->forwarded.format = value;
    if (!passed_on->known)
        passed_on->fault = "its format (header " RECORD_FORMAT ") is not known here";
}

void passed_on_header(struct passed_on *passed_on, struct slice name, struct slice value) {
    struct forwarded *forwarded = &passed_on->forwarded;
    uint64_t number = 0;
    if (slice_equal(name, SLICE(RECORD_SENDER))) {
        if (value.size > 0 && value.size <= RECORD_SENDER_MAX)
            passed_on->sender = value;
    } else if (slice_equal(name, SLICE(RECORD_SEQUENCE))) {
        set_number(value, UINT64_MAX, &passed_on->sequence);
    } else if (slice_equal(name, SLICE(RECORD_COPIES))) {
        set_number(value, UINT32_MAX, &number);
        passed_on->copies = (uint32_t)number;
    } else if (slice_equal(name, SLICE(RECORD_FORMAT))) {
        set_format(passed_on, value);
    } else if (slice_equal(name, SLICE(RECORD_SCHEMA))) {
        if (!slice_equal(value, SLICE(RECORD_EVENT_SCHEMA)))
            passed_on->fault = "its header " RECORD_SCHEMA " is not " RECORD_EVENT_SCHEMA;
    } else if (slice_equal(name, SLICE(RECORD_JOB))) {
        set_name(passed_on, &forwarded->job, value);
    } else if (slice_equal(name, SLICE(RECORD_NODE))) {
        set_name(passed_on, &forwarded->node, value);
    } else if (slice_equal(name, SLICE(RECORD_PATH))) {
        set_name(passed_on, &forwarded->carried.path, value);
    } else if (slice_equal(name, SLICE(RECORD_RANK))) {
        number = UINT64_MAX;
        set_number(value, RANK_MAX, &number);
        forwarded->rank = number == UINT64_MAX ? RANK_NONE : (int32_t)number;
    } else if (slice_equal(name, SLICE(RECORD_TIME))) {
        set_number(value, INT64_MAX, &forwarded->time_ns);
    } else if (slice_equal(name, SLICE(RECORD_OBSERVED))) {
        set_number(value, INT64_MAX, &forwarded->observed_ns);
    } else if (slice_equal(name, SLICE(RECORD_FILE))) {
        forwarded->is_file = slice_equal(value, SLICE("1"));
    } else if (slice_equal(name, SLICE(RECORD_GENERATION))) {
        set_number(value, UINT32_MAX, &number);
        forwarded->carried.generation = (uint32_t)number;
    } else if (slice_equal(name, SLICE(RECORD_FIRST_SAMPLE))) {
        set_number(value, UINT64_MAX, &forwarded->carried.first_sample_ns);
    }
}

const struct forwarded *passed_on_said(const struct passed_on *passed_on) {
    const struct forwarded *said = &passed_on->forwarded;
    const struct carried *carried = &said->carried;
    bool any = passed_on->known || said->job != STRING_NONE || said->node != STRING_NONE ||
               said->time_ns != 0 || carried->generation != 0 || carried->first_sample_ns != 0;
    return any ? said : NULL;
}

void passed_on_body(const struct passed_on *passed_on, struct slice value, size_t record_max,
                    enum format_kind chosen, struct body *body) {
    assert(record_max > 0);
    if (!passed_on->known || chosen != FORMAT_UNKNOWN || value.size == 0) {
        body_begin(body, value, record_max, chosen);
        return;
    }
    body_begin_one(body, value, record_max);
    if (format_is_of_lines(passed_on->forwarded.format))
        body_set_lines(body);
}
