// SPDX-License-Identifier: Apache-2.0
// Gathers the rows whose time has come.
#include "processors/cluster/due_rows.h"

#include "base/sort.h"

struct due_rows due_rows_sorted(const struct table *table,
                                bool (*is_due)(const void *row, uint64_t until_ns),
                                uint64_t until_ns, struct arena *arena,
                                int (*compare)(const void *, const void *)) {
    assert(is_due != NULL && compare != NULL);
    struct due_rows due = {arena_take(arena, (table_live(table) + 1) * sizeof *due.items), 0};
    for (uint32_t number = 0; number < table->used; number++) {
        void *row = table_row(table, number);
        if (!is_due(row, until_ns))
            continue;
        assert(due.count < table_live(table));
        due.items[due.count++] = (struct due_row){row, number};
    }
    sort_stable(due.items, due.count, sizeof *due.items, arena, compare);
    return due;
}
