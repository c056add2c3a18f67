// SPDX-License-Identifier: Apache-2.0
// Linear probing over slots that keep the hash, so that growing does not look at the rows. What is
// removed leaves no mark: slots behind it move up.
#include "base/table/row_index.h"

#include "base/memory.h"
#include "base/memory_pages.h"

#include <assert.h>
#include <string.h>

enum { SLOTS_FIRST = 64 };

// Slots are looked at anywhere. Many of them lie in huge pages, or the processor would not know
// where most of their pages are.
static bool in_huge_pages(size_t bytes) {
    return bytes >= MEMORY_HUGE_PAGE;
}

static struct row_slot *take_slots(uint32_t size) {
    size_t bytes = size * sizeof(struct row_slot);
    assert(!in_huge_pages(bytes) || bytes % MEMORY_HUGE_PAGE == 0);
    return in_huge_pages(bytes) ? memory_take_pages(bytes) : memory_take(bytes);
}

static void give_slots(struct row_slot *slots, uint32_t size) {
    size_t bytes = size * sizeof *slots;
    if (in_huge_pages(bytes))
        memory_give_pages(slots, bytes);
    else
        memory_give(slots);
}

void row_index_release(struct row_index *index) {
    give_slots(index->slots, index->size);
    *index = (struct row_index){0};
}

void row_index_clear(struct row_index *index) {
    if (index->size > 0)
        memset(index->slots, 0xff, index->size * sizeof *index->slots); // TABLE_NO_ROW
    index->count = 0;
}

static void grow(struct row_index *index) {
    struct row_index larger = {.size = index->size == 0 ? SLOTS_FIRST : index->size * 2};
    larger.slots = take_slots(larger.size);
    row_index_clear(&larger);
    for (uint32_t i = 0; i < index->size; i++)
        if (index->slots[i].row != TABLE_NO_ROW)
            row_index_put(&larger, index->slots[i].hash, index->slots[i].row);
    row_index_release(index);
    *index = larger;
}

void row_index_put(struct row_index *index, uint32_t hash, uint32_t row) {
    assert(row != TABLE_NO_ROW && index->size <= UINT32_MAX / 2);
    if (((uint64_t)index->count + 1) * 2 > index->size)
        grow(index);
    uint32_t at = hash & (index->size - 1);
    while (index->slots[at].row != TABLE_NO_ROW)
        at = (at + 1) & (index->size - 1);
    index->slots[at] = (struct row_slot){hash, row};
    index->count++;
}

void row_index_remove(struct row_index *index, uint32_t hash, uint32_t row) {
    assert(index->count > 0);
    uint32_t mask = index->size - 1, hole = hash & mask;
    while (index->slots[hole].row != row) {
        assert(index->slots[hole].row != TABLE_NO_ROW && "it was put with this hash");
        hole = (hole + 1) & mask;
    }
    // Whoever stands behind the hole and could stand in it moves there.
    for (uint32_t at = (hole + 1) & mask; index->slots[at].row != TABLE_NO_ROW;
         at = (at + 1) & mask) {
        uint32_t home = index->slots[at].hash & mask;
        if (((at - home) & mask) < ((at - hole) & mask))
            continue;
        index->slots[hole] = index->slots[at];
        hole = at;
    }
    index->slots[hole].row = TABLE_NO_ROW;
    index->count--;
}
