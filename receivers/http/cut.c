// SPDX-License-Identifier: Apache-2.0
// What are the records of this body?
//
// The same formats and layouts as in a file: JSON Lines, an array, an object that holds one, one
// object. Nothing is copied; items point into the body. One pass, 32 bytes an item.
#include "base/memory.h"
#include "receivers/decode/format.h"
#include "receivers/decode/split.h"
#include "receivers/http/receiver.h"

#include <ctype.h>
#include <stdio.h>

enum { FIRST_ITEMS = 256, SHOWN_MAX = 1024 };

bool http_item_add(struct http_work *work, struct http_item item) {
    if (work->count == HTTP_ITEMS_MAX)
        return false;
    if (work->count == work->capacity) {
        work->capacity = work->capacity == 0 ? FIRST_ITEMS : work->capacity * 2;
        work->items = memory_resize(work->items, work->capacity * sizeof *work->items);
    }
    work->items[work->count++] = item;
    return true;
}

static bool add_refused(struct http_work *work, struct slice record, enum decode_category category,
                        const char *why) {
    if (record.size > SHOWN_MAX)
        record.size = SHOWN_MAX;
    return http_item_add(work,
                         (struct http_item){record.data, (uint32_t)record.size, category, why});
}

static bool add_record(const struct http_config *config, struct http_work *work,
                       struct slice record) {
    if (record.size > config->max_record_size.bytes)
        return add_refused(work, record, DECODE_TOO_LONG, "it is longer than max_record_size");
    return http_item_add(work,
                         (struct http_item){record.data, (uint32_t)record.size, DECODE_OK, NULL});
}

static bool is_blank(struct slice text) {
    for (size_t i = 0; i < text.size; i++) {
        if (!isspace((unsigned char)text.data[i]))
            return false;
    }
    return true;
}

static bool cut_lines(const struct http_config *config, struct slice body, struct http_work *work) {
    const char *at = body.data;
    const char *end = body.data + body.size;
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        struct slice line = {at, (size_t)((newline == NULL ? end : newline) - at)};
        at = newline == NULL ? end : newline + 1;
        if (line.size > 0 && line.data[line.size - 1] == '\r')
            line.size--;
        if ((line.size == 0 || (unsigned char)line.data[0] <= ' ') && is_blank(line))
            continue;
        if (!add_record(config, work, line))
            return false;
    }
    return true;
}

static bool cut_document(const struct http_config *config, struct slice body,
                         enum format_layout layout, struct http_work *work) {
    struct splitter split;
    if (layout == LAYOUT_WHOLE)
        return add_record(config, work, body);
    splitter_begin(&split, layout, (size_t)config->max_record_size.bytes);
    for (;;) {
        struct slice record = {NULL, 0};
        bool fits = true;
        switch (splitter_next(&split, body, &record)) {
        case SPLIT_RECORD:
            fits = add_record(config, work, record);
            break;
        case SPLIT_EMPTY:
            fits = add_refused(work, SLICE(""), DECODE_BAD_JSON,
                               "nothing stands where a record should be");
            break;
        case SPLIT_TOO_LONG:
            fits = add_refused(work, record, DECODE_TOO_LONG, "it is longer than max_record_size");
            break;
        case SPLIT_FAULT:
            return add_refused(work, SLICE(""), DECODE_BAD_JSON,
                               arena_format(&work->arena, "%s (byte %llu): the rest is not read",
                                            split.fault, (unsigned long long)split.fault_at));
        case SPLIT_MORE: {
            const char *missing = splitter_end(&split);
            return missing == NULL || add_refused(work, SLICE(""), DECODE_TORN, missing);
        }
        }
        if (!fits)
            return false;
    }
}

static void set_fault(struct http_fault *fault, const char *code, const char *message) {
    fault->status = 400;
    fault->code = code;
    snprintf(fault->message, sizeof fault->message, "%s", message);
}

void http_cut(const struct http_config *config, struct slice body, bool lines,
              struct http_work *work, struct http_fault *fault) {
    if (is_blank(body)) {
        set_fault(fault, "empty", "The body is empty: send at least one event.");
        return;
    }
    struct format_guess guess = format_guess(body, true, format_chosen(config->records.format));
    // What is not known is left to the decoder, which says of each record what is missing.
    if (guess.kind != FORMAT_UNKNOWN && format_decoder(guess.kind) == NULL) {
        fault->status = 400;
        fault->code = "unknown_format";
        snprintf(fault->message, sizeof fault->message,
                 "The body looks like %s, which this path does not take.", format_name(guess.kind));
        return;
    }
    enum format_layout layout = lines ? LAYOUT_LINES : guess.layout;
    bool fits = layout == LAYOUT_LINES ? cut_lines(config, body, work)
                                       : cut_document(config, body, layout, work);
    if (!fits) {
        fault->status = 413;
        fault->code = "too_many_records";
        snprintf(fault->message, sizeof fault->message,
                 "The body has more than %d records: send less in one request.", HTTP_ITEMS_MAX);
    }
}
