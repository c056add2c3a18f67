// SPDX-License-Identifier: Apache-2.0
// Lists the records of a body, which point into it. One pass, 32 bytes an item.
#include "base/memory.h"
#include "receivers/decode/format.h"
#include "receivers/decode/formats.h"
#include "receivers/http/receiver.h"
#include "receivers/records/body.h"

#include <stdarg.h>
#include <stdio.h>

enum { SHOWN_MAX = 1024 };

bool http_item_add(struct http_work *work, struct http_item item) {
    if (work->count == HTTP_ITEMS_MAX)
        return false;
    work->items = memory_room(work->items, &work->capacity, work->count, sizeof *work->items);
    work->items[work->count++] = item;
    return true;
}

static struct http_item item_of(struct http_work *work, const struct body *body,
                                const struct body_record *record) {
    size_t size = record->bytes.size;
    if (record->refusal != DECODE_OK && size > SHOWN_MAX)
        size = SHOWN_MAX;
    const char *why = record->why;
    if (why == body->text)
        why = arena_text(&work->arena, slice_of(why));
    return (struct http_item){
        .data = record->bytes.data, .size = (uint32_t)size, .refusal = record->refusal, .why = why};
}

void http_cut(const struct http_config *config, struct slice bytes, bool lines,
              struct http_work *work, struct http_fault *fault) {
    assert(work->count == 0 && fault->status == 0);
    struct body body;
    struct body_record record;
    if (text_is_blank(bytes)) {
        http_fault_set(fault, 400, "empty", "The body is empty: send at least one event.");
        return;
    }
    body_begin(&body, bytes, (size_t)config->max_record_size.bytes,
               format_chosen(config->records.format));
    if (body.kind == BODY_FOREIGN) {
        http_fault_set(fault, 400, "unknown_format",
                       "The body looks like %s, which this path does not take.",
                       format_name(body.format));
        return;
    }
    if (lines)
        body_set_lines(&body);
    while (body_next(&body, &record))
        if (!http_item_add(work, item_of(work, &body, &record))) {
            http_fault_set(fault, 413, "too_many_records",
                           "The body has more than %d records: send less in one request.",
                           HTTP_ITEMS_MAX);
            return;
        }
}

void http_fault_set(struct http_fault *fault, int status, const char *code, const char *format,
                    ...) {
    assert(status >= 400 && code != NULL);
    fault->status = status;
    fault->code = code;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fault->message, sizeof fault->message, format, arguments);
    va_end(arguments);
}
