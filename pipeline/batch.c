// SPDX-License-Identifier: Apache-2.0
#include "pipeline/batch.h"

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
