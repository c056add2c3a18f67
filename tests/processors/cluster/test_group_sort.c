// SPDX-License-Identifier: Apache-2.0
// group_sort gives what one sort by group and time gives, equal items as they came.
#include "processors/cluster/group_sort.h"

#include "base/memory.h"
#include "base/sort.h"

#include <check.h>
#include <stddef.h>

struct item {
    uint32_t arrival;
    uint32_t group, other; // the key
    uint32_t time;
};

static int compare_groups(const void *left, const void *right) {
    const struct item *a = left, *b = right;
    // Descending: the order is the caller's, not that of the bytes.
    return COMPARE_KEYS(COMPARE(b->group, a->group), COMPARE(a->other, b->other));
}

static int compare_times(const void *left, const void *right) {
    return COMPARE(((const struct item *)left)->time, ((const struct item *)right)->time);
}

static int compare_all(const void *left, const void *right) {
    return COMPARE_KEYS(compare_groups(left, right), compare_times(left, right));
}

static const struct group_order ORDER = {
    .item_size = sizeof(struct item),
    .key_offset = offsetof(struct item, group),
    .key_size = 2 * sizeof(uint32_t),
    .compare_groups = compare_groups,
    .compare = compare_times,
};

static uint32_t next(uint32_t *state) {
    *state = *state * 1664525 + 1013904223;
    return *state >> 16;
}

// `disorder` 0: ascending by time.
static void check(uint32_t count, uint32_t groups, uint32_t disorder) {
    struct arena arena;
    uint32_t state = count + groups;
    arena_init(&arena, 4096);
    struct item *items = arena_take(&arena, (count + 1) * sizeof *items);
    struct item *expected = arena_take(&arena, (count + 1) * sizeof *expected);
    for (uint32_t i = 0; i < count; i++)
        expected[i] = items[i] =
            (struct item){i, next(&state) % groups, next(&state) % 2,
                          i / 4 + (disorder == 0 ? 0 : next(&state) % disorder)};
    sort_stable(expected, count, sizeof *expected, &arena, compare_all);
    const struct item *sorted = group_sort(&ORDER, items, count, &arena);
    for (uint32_t i = 0; i < count; i++)
        ck_assert_uint_eq(sorted[i].arrival, expected[i].arrival);
    arena_release(&arena);
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

START_TEST(as_one_sort_would) {
    check(0, 1, 0);
    check(1, 1, 0);
    check(1000, 1, 0);
    check(1000, 7, 0);
    check(1000, 7, 500);
    // More groups than the table has room for at first, several times over.
    check(5000, 3000, 20);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("group_sort");
    TCase *cases = tcase_create("group_sort");
    tcase_add_test(cases, as_one_sort_would);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
