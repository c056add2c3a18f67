// SPDX-License-Identifier: Apache-2.0
// A record that another culprit passed on: what its headers say (record_frame.h), and its parts.
#pragma once

#include "receivers/records/body.h"

struct passed_on {
    struct slice sender; // size 0: not said, or not usable
    uint64_t sequence;   // its number there; 0: not said
    uint32_t copies;     // partitions of the topic, from 0 on, that hold it; 0: only this one
    bool known;          // its format is named, and there is a decoder of that name
    const char *fault;   // NULL: none; else why it is to be refused, a clause
    struct forwarded forwarded;
};

void passed_on_begin(struct passed_on *passed_on);
// One header, in any order; others than culprit's are passed over. Numbers and names that cannot be
// used count as not said.
void passed_on_header(struct passed_on *passed_on, struct slice name, struct slice value);
// What is to be given to feed_source_passed_on; NULL when nothing was said.
const struct forwarded *passed_on_said(const struct passed_on *passed_on);
// Cuts the record into what its decoder is given. `chosen`: as in body_begin; where the receiver
// names a format itself, that counts.
void passed_on_body(const struct passed_on *passed_on, struct slice value, size_t record_max,
                    enum format_kind chosen, struct body *body);
