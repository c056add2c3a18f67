// SPDX-License-Identifier: Apache-2.0
#include "pipeline/model/batch.h"

#include "base/text/display.h"

// Arrays in the arena grow by doubling; what they leave behind is gone with the batch.
static uint32_t grown(uint32_t capacity) {
    return capacity == 0 ? 8 : capacity * 2;
}

void batch_append_verdict(struct batch *batch, const struct verdict *verdict) {
    struct verdict_list *list = &batch->verdicts;
    if (list->count == list->capacity) {
        uint32_t capacity = grown(list->capacity);
        struct verdict *items = arena_take(batch->arena, capacity * sizeof *items);
        if (list->count > 0)
            memcpy(items, list->items, list->count * sizeof *items);
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count++] = *verdict;
}

void notes_append(struct notes *notes, struct arena *arena, struct slice note) {
    if (notes->count == notes->capacity) {
        uint32_t capacity = grown(notes->capacity);
        struct slice *items = arena_take(arena, capacity * sizeof *items);
        if (notes->count > 0)
            memcpy(items, notes->items, notes->count * sizeof *items);
        notes->items = items;
        notes->capacity = capacity;
    }
    notes->items[notes->count++] = note;
}

void batch_drop_unchanged(struct batch *batch) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < batch->verdicts.count; i++)
        if (!batch->verdicts.items[i].unchanged)
            batch->verdicts.items[kept++] = batch->verdicts.items[i];
    batch->verdicts.count = kept;
}

// The paths as one text that may be shown; what is too long for it is counted.
static struct slice missing_text(const struct batch *batch) {
    enum { PATH_SHOWN_MAX = 200, TEXT_MAX = 900 };
    struct buffer text;
    buffer_init(&text, 4 * TEXT_MAX);
    for (uint32_t i = 0; i < batch->missing_count; i++) {
        if (text.size > TEXT_MAX - PATH_SHOWN_MAX) {
            buffer_append_format(&text, " and %u more", batch->missing_count - i);
            break;
        }
        buffer_append_text(&text, i == 0 ? "" : ", ");
        display_append(&text, batch->missing_inputs[i], PATH_SHOWN_MAX);
    }
    struct slice copy = arena_copy(batch->arena, buffer_slice(&text));
    buffer_release(&text);
    return copy;
}

void batch_mark_incomplete(struct batch *batch, struct verdict *verdict) {
    static const char key[] = "culprit.missing_inputs";
    if (batch->missing_count == 0 || verdict->attribute_count >= VERDICT_ATTRIBUTES_MAX)
        return;
    uint32_t count = verdict->attribute_count, at = 0;
    struct attribute *all = arena_zero(batch->arena, count + 1, sizeof *all);
    while (at < count && strcmp(verdict->attributes[at].key, key) < 0)
        at++;
    if (at > 0)
        memcpy(all, verdict->attributes, at * sizeof *all);
    all[at] = (struct attribute){key, missing_text(batch)};
    if (at < count)
        memcpy(all + at + 1, verdict->attributes + at, (count - at) * sizeof *all);
    verdict->attributes = all;
    verdict->attribute_count++;
}
