// SPDX-License-Identifier: Apache-2.0
// What are the records of this value?
//
// One object (the usual case: telemetry shows it when it is decoded, and what another culprit
// passed on says so), JSON Lines, an array, or an object that holds one; each key is looked at to
// tell them apart. Nothing is copied or kept: the value can be walked through twice.
#include "receivers/kafka/receiver.h"

#include <ctype.h>
#include <stdio.h>

static bool is_blank(struct slice text) {
    for (size_t i = 0; i < text.size; i++)
        if (!isspace((unsigned char)text.data[i]))
            return false;
    return true;
}

void kafka_items_one(struct kafka_items *items, const struct kafka_config *config,
                     struct slice value) {
    items->value = items->rest = value;
    items->record_max = (size_t)config->max_record_size.bytes;
    items->ended = false;
    items->kind = KAFKA_ONE;
}

void kafka_items_begin(struct kafka_items *items, const struct kafka_config *config,
                       struct slice value, bool known) {
    kafka_items_one(items, config, value);
    // What another culprit passed on is one record a message.
    if (known && value.size > 0 && value.data[0] == '{')
        return;
    struct format_guess guess = format_guess(value, true, format_chosen(config->records.format));
    // What is not known is left to the decoder, which says of each record what is missing.
    if (guess.kind != FORMAT_UNKNOWN && format_decoder(guess.kind) == NULL)
        items->kind = KAFKA_NOTHING;
    else if (guess.layout == LAYOUT_WHOLE)
        items->kind = KAFKA_ONE;
    else if (guess.layout == LAYOUT_LINES)
        items->kind = KAFKA_LINES;
    else
        items->kind = KAFKA_DOCUMENT;
    if (items->kind == KAFKA_DOCUMENT)
        splitter_begin(&items->split, guess.layout, items->record_max);
    if (items->kind == KAFKA_NOTHING)
        items->rest = slice_of(format_name(guess.kind));
}

static bool refuse(struct kafka_item *item, struct slice record, enum decode_category category,
                   const char *why) {
    item->record = record;
    item->refusal = category;
    snprintf(item->why, sizeof item->why, "%s", why);
    return true;
}

static bool give(const struct kafka_items *items, struct kafka_item *item, struct slice record) {
    if (record.size > items->record_max)
        return refuse(item, record, DECODE_TOO_LONG, "it is longer than max_record_size");
    item->record = record;
    item->refusal = DECODE_OK;
    item->why[0] = '\0';
    return true;
}

static bool next_line(struct kafka_items *items, struct kafka_item *item) {
    while (items->rest.size > 0) {
        struct slice line = items->rest;
        const char *newline = memchr(line.data, '\n', line.size);
        size_t used = newline == NULL ? line.size : (size_t)(newline + 1 - line.data);
        line.size = newline == NULL ? used : used - 1;
        items->rest.data += used;
        items->rest.size -= used;
        if (line.size > 0 && line.data[line.size - 1] == '\r')
            line.size--;
        if (!is_blank(line))
            return give(items, item, line);
    }
    return false;
}

static bool next_of_document(struct kafka_items *items, struct kafka_item *item) {
    struct slice record = {NULL, 0};
    char why[DECODE_DETAIL_MAX];
    switch (splitter_next(&items->split, items->value, &record)) {
    case SPLIT_RECORD:
        return give(items, item, record);
    case SPLIT_EMPTY:
        return refuse(item, SLICE(""), DECODE_BAD_JSON, "nothing stands where a record should be");
    case SPLIT_TOO_LONG:
        return refuse(item, record, DECODE_TOO_LONG, "it is longer than max_record_size");
    case SPLIT_FAULT:
        items->ended = true;
        snprintf(why, sizeof why, "%s (byte %llu): the rest is not read", items->split.fault,
                 (unsigned long long)items->split.fault_at);
        return refuse(item, SLICE(""), DECODE_BAD_JSON, why);
    case SPLIT_MORE:
        items->ended = true;
        const char *missing = splitter_end(&items->split);
        return missing != NULL && refuse(item, SLICE(""), DECODE_TORN, missing);
    }
    return false;
}

bool kafka_items_next(struct kafka_items *items, struct kafka_item *item) {
    if (items->ended)
        return false;
    if (items->value.size == 0) {
        items->ended = true;
        return refuse(item, items->value, DECODE_BAD_JSON, "the value is empty");
    }
    switch (items->kind) {
    case KAFKA_ONE:
        items->ended = true;
        return give(items, item, items->value);
    case KAFKA_LINES:
        return next_line(items, item);
    case KAFKA_DOCUMENT:
        return next_of_document(items, item);
    case KAFKA_NOTHING:
        items->ended = true;
        item->record = items->value;
        item->refusal = DECODE_BAD_JSON;
        snprintf(item->why, sizeof item->why, "it looks like %.*s, which is not read from Kafka",
                 (int)items->rest.size, items->rest.data);
        return true;
    }
    return false;
}
