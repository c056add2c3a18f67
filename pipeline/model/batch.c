// SPDX-License-Identifier: Apache-2.0
// What stages append to a batch: verdicts and notes, in arrays of its arena.
#include "pipeline/model/batch.h"

#include "base/text/display.h"

#include <assert.h>
#include <stdio.h>

// Arrays in the arena grow by doubling; what they leave behind is gone with the batch.
static uint32_t doubled(uint32_t capacity) {
    return capacity == 0 ? 8 : capacity * 2;
}

void batch_append_verdict(struct batch *batch, const struct verdict *verdict) {
    struct verdict_list *list = &batch->verdicts;
    assert(verdict->id[0] != '\0' && verdict->pattern != NULL);
    if (list->count == list->capacity) {
        list->capacity = doubled(list->capacity);
        list->items = arena_enlarge(batch->arena, list->items, list->count, list->capacity,
                                    sizeof *list->items);
    }
    list->items[list->count++] = *verdict;
}

static void append_note(struct notes *notes, struct arena *arena, struct slice note) {
    assert(notes->count <= notes->capacity && note.size > 0);
    if (notes->count == notes->capacity) {
        notes->capacity = doubled(notes->capacity);
        notes->items =
            arena_enlarge(arena, notes->items, notes->count, notes->capacity, sizeof *notes->items);
    }
    notes->items[notes->count++] = note;
}

void evaluation_note(struct evaluation *evaluation, struct arena *arena, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char *text = arena_format_list(arena, format, arguments);
    va_end(arguments);
    append_note(&evaluation->notes, arena, slice_of(text));
}

void evaluation_note_ranks(struct evaluation *evaluation, struct arena *arena, const char *before,
                           const int32_t *ranks, uint32_t count) {
    enum { DIGITS_MAX = 12 };
    if (count == 0)
        return;
    char *text = arena_take(arena, strlen(before) + (size_t)count * DIGITS_MAX + 1);
    size_t size = (size_t)sprintf(text, "%s", before);
    for (uint32_t i = 0; i < count; i++) {
        assert(ranks[i] >= 0 && (i == 0 || ranks[i - 1] < ranks[i]));
        size += (size_t)sprintf(text + size, "%d%s", ranks[i], i + 1 < count ? ", " : ".");
    }
    append_note(&evaluation->notes, arena, (struct slice){text, size});
}

void batch_drop_unchanged(struct batch *batch) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < batch->verdicts.count; i++)
        if (!batch->verdicts.items[i].unchanged || batch->verdicts.items[i].recalled)
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
    assert(verdict->attribute_count == 0 || verdict->attributes != NULL);
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
