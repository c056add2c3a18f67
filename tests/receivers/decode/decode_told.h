// SPDX-License-Identifier: Apache-2.0
// For tests of decoders that give several events a record: all that one record told, as text.
#pragma once

#include "base/buffer.h"
#include "pipeline/model/observation.h"
#include "tests/receivers/decode/decode_record.h"

#include <inttypes.h>

static inline void told_fact(struct buffer *out, const struct fact *fact) {
    char address[PCI_TEXT_MAX];
    buffer_append_format(out, " %s=", fact_name(fact->key));
    switch (fact_type(fact->key)) {
    case FACT_NUMBER:
        buffer_append_int(out, fact->number);
        break;
    case FACT_TEXT:
        buffer_append(out, fact->text);
        break;
    case FACT_YES_NO:
        buffer_append_text(out, fact->yes ? "yes" : "no");
        break;
    case FACT_PCI_ADDRESS:
        pci_format_device(fact->address, address);
        buffer_append_text(out, address);
        break;
    }
}

// "oom_kill 1700000000000000000 @host pid=7"; a time that is only that of the input in brackets.
static inline void told_event(struct buffer *out, const struct event *event) {
    buffer_append_format(out, event->timeless ? "%s [%" PRIu64 "]" : "%s %" PRIu64,
                         event_class_name(event_class(event)), event->time_ns);
    if (event->node != STRING_NONE) {
        buffer_append_text(out, " @");
        buffer_append(out, intern_slice(event->node));
    }
    if (event->kind == EVENT_OBSERVATION)
        for (uint32_t i = 0; i < event->observation->fact_count; i++)
            told_fact(out, &event->observation->facts[i]);
    buffer_append_char(out, '\n');
}

// One line an event; lives in `out`, which is emptied first. Only the first event counts its line.
static inline const char *told(struct decoded *decoded, const char *record, struct buffer *out) {
    buffer_reset(out);
    uint32_t count = 0;
    enum decode_category category = decoded_run(decoded, slice_of(record));
    while (category != DECODE_END) {
        ck_assert_msg(!decode_refused(category), "%s", decoded->fault.detail);
        if (category == DECODE_OK) {
            told_event(out, &decoded->event);
            ck_assert(count++ == 0 || decoded->event.lines == 0);
        }
        decoded->event = (struct event){.lines = 1};
        if (decoded->type->next == NULL)
            break;
        category =
            decoded->type->next(decoded->state, &decoded->arena, &decoded->event, &decoded->fault);
    }
    buffer_append_char(out, '\0');
    return out->data;
}
