// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "base/memory_pages.h"
#include "base/table/row_index.h"

#include <check.h>

static bool holds(const struct row_index *index, uint32_t hash, uint32_t wanted) {
    uint32_t at = 0, row;
    while ((row = row_index_next(index, hash, &at)) != TABLE_NO_ROW)
        if (row == wanted)
            return true;
    return false;
}

// Hashes that meet: `row / 3`, spread over few slots.
static uint32_t hash_of(uint32_t row, uint32_t spread) {
    return row / 3 * spread;
}

START_TEST(rows_are_found_until_they_are_removed) {
    static const uint32_t SPREADS[] = {1, 7, 64, 0x10000001};
    uint32_t spread = SPREADS[_i];
    struct row_index index = {0};
    ck_assert(!holds(&index, 0, 0));
    for (uint32_t row = 0; row < 600; row++)
        row_index_put(&index, hash_of(row, spread), row);
    for (uint32_t step = 0, row = 0; step < 600; step++, row = (row + 7) % 600) {
        ck_assert(holds(&index, hash_of(row, spread), row));
        row_index_remove(&index, hash_of(row, spread), row);
        ck_assert(!holds(&index, hash_of(row, spread), row));
        uint32_t later = (row + 7) % 600;
        ck_assert(step == 599 || holds(&index, hash_of(later, spread), later));
    }
    ck_assert_uint_eq(index.count, 0);
    row_index_put(&index, 5, 1);
    row_index_clear(&index);
    ck_assert(!holds(&index, 5, 1));
    row_index_release(&index);
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}
END_TEST

// The memory of many is another one than that of few.
START_TEST(many_rows) {
    enum { MANY = 2 * MEMORY_HUGE_PAGE / (int)sizeof(struct row_slot) };
    struct row_index index = {0};
    for (uint32_t row = 0; row < MANY; row++)
        row_index_put(&index, row * 0x9e3779b1u, row);
    ck_assert_uint_eq((uintptr_t)index.slots % MEMORY_HUGE_PAGE, 0);
    for (uint32_t row = 0; row < MANY; row += 2)
        row_index_remove(&index, row * 0x9e3779b1u, row);
    for (uint32_t row = 0; row < MANY; row++)
        if (holds(&index, row * 0x9e3779b1u, row) != (row % 2 == 1))
            ck_abort_msg("row %u", row);
    row_index_release(&index);
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("row_index");
    TCase *cases = tcase_create("row_index");
    tcase_add_loop_test(cases, rows_are_found_until_they_are_removed, 0, 4);
    tcase_add_test(cases, many_rows);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
