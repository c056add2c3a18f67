// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "processors/rank_group/order_statistic.h"

#include <check.h>
#include <stdbool.h>
#include <string.h>

enum { MODEL_MAX = 60000 };

// The same multiset as a sorted array.
static uint64_t model[MODEL_MAX];
static size_t model_count;
static struct order_statistic set;
static uint64_t random_state;

static void setup(void) {
    model_count = 0;
    random_state = 12345;
    set = (struct order_statistic){0};
}

static void teardown(void) {
    order_release(&set);
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static uint64_t random_next(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static size_t model_place(uint64_t value) {
    size_t begin = 0, end = model_count;
    while (begin < end) {
        size_t middle = (begin + end) / 2;
        if (model[middle] < value)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

static void add(uint64_t value) {
    size_t at = model_place(value);
    memmove(model + at + 1, model + at, (model_count++ - at) * sizeof model[0]);
    model[at] = value;
    order_add(&set, value);
}

static void erase_at(size_t at) {
    order_erase(&set, model[at]);
    memmove(model + at, model + at + 1, (--model_count - at) * sizeof model[0]);
}

static void check_place(size_t k) {
    ck_assert_uint_eq(order_select(&set, k), model[k]);
}

static void check_all(void) {
    ck_assert_uint_eq(order_count(&set), model_count);
    for (size_t k = 0; k < model_count; k++)
        check_place(k);
}

static void check_some(void) {
    ck_assert_uint_eq(order_count(&set), model_count);
    if (model_count == 0)
        return;
    check_place(0);
    check_place(model_count - 1);
    check_place(model_count / 2);
    check_place((model_count - 1) / 2);
    check_place(random_next() % model_count);
}

START_TEST(empty_and_one) {
    ck_assert_uint_eq(order_count(&set), 0);
    add(UINT64_MAX);
    check_all();
    erase_at(0);
    ck_assert_uint_eq(order_count(&set), 0);
    add(0);
    add(UINT64_MAX);
    check_all();
}
END_TEST

enum order { ASCENDING, DESCENDING, SAW, EQUAL, TWO_VALUES, FROM_MIDDLE, ORDER_COUNT };

static uint64_t ordered_value(enum order order, uint64_t i) {
    switch (order) {
    case ASCENDING:
        return i;
    case DESCENDING:
        return UINT64_MAX - i;
    case SAW:
        return i % 257;
    case EQUAL:
        return 7;
    case TWO_VALUES:
        return i % 2 == 0 ? 0 : UINT64_MAX;
    default:
        return i % 2 == 0 ? UINT64_MAX / 2 - i : UINT64_MAX / 2 + i;
    }
}

// Around borders of buckets: all places are compared.
START_TEST(orders) {
    static const size_t counts[] = {1,   2,   255, 256, 257,  447,  448,
                                    449, 895, 896, 897, 1792, 1793, 2600};
    size_t next = 0;
    for (uint64_t i = 0; next < sizeof counts / sizeof counts[0]; i++) {
        add(ordered_value((enum order)_i, i));
        if (model_count == counts[next]) {
            check_all();
            next++;
        }
    }
}
END_TEST

// First in, first out: what a retention window does.
START_TEST(erase_in_order) {
    static uint64_t values[20000];
    size_t count = sizeof values / sizeof values[0];
    for (size_t i = 0; i < count; i++) {
        values[i] = ordered_value((enum order)_i, i) / 3;
        add(values[i]);
        if (i >= 700)
            erase_at(model_place(values[i - 700]));
        if (i % 97 == 0)
            check_some();
    }
    check_all();
    while (model_count > 0) {
        erase_at(model_count - 1);
        if (model_count % 37 == 0)
            check_some();
    }
    ck_assert_uint_eq(order_count(&set), 0);
}
END_TEST

// `_i` sets how far values spread: 0 means many equal ones.
START_TEST(random_mixture) {
    static const uint64_t spreads[] = {3, 1000, UINT64_MAX};
    for (int phase = 0; phase < 6; phase++) {
        uint64_t adds_of_8 = phase % 2 == 0 ? 6 : 2;
        for (int step = 0; step < 8000; step++) {
            if (random_next() % 8 < adds_of_8 || model_count == 0)
                add(random_next() % spreads[_i]);
            else
                erase_at(random_next() % model_count);
            if (step % 61 == 0)
                check_some();
        }
        check_some();
    }
}
END_TEST

// Which of the values in ascending order go at once.
static bool goes(int which, size_t at, size_t count) {
    switch (which) {
    case 0:
        return random_next() % 3 == 0;
    case 1:
        return at < count / 3;
    case 2:
        return at >= count - count / 3;
    case 3:
        return at > count / 3 && at < count / 3 * 2;
    default:
        return at % 50 != 0;
    }
}

enum { ERASED_KINDS = 5 };

// As when a chunk of each rank expires. `_i`: which ones, and whether many are equal.
START_TEST(many_erased_at_once) {
    uint64_t spread = _i % 2 == 0 ? UINT64_MAX : 40;
    for (int round = 0; round < 4; round++) {
        while (model_count < 6000)
            add(random_next() % spread);
        for (size_t at = model_count; at-- > 0;)
            if (goes(_i / 2, at, model_count))
                erase_at(at);
        check_some();
        for (int i = 0; i < 500; i++) {
            add(random_next() % spread);
            if (i % 10 == 0)
                check_some();
        }
    }
    check_all();
}
END_TEST

START_TEST(queries_take_out_what_was_erased_little_by_little) {
    enum { COUNT = 9000, ERASED = 3000, QUERIES = 100 };
    for (uint64_t i = 0; i < COUNT; i++)
        add(random_next());
    check_place(0);
    for (size_t i = 0; i < ERASED; i++)
        erase_at(random_next() % model_count);
    ck_assert_uint_eq(set.erased.count, ERASED);
    for (size_t i = 0, waiting = ERASED; i < QUERIES; i++) {
        check_place(model_count / 2);
        ck_assert(set.erased.count < waiting || waiting == 0);
        ck_assert_uint_le(waiting - set.erased.count, ERASED / 16);
        waiting = set.erased.count;
    }
    ck_assert_uint_eq(set.erased.count, 0);
    // Never more of them than values that are left.
    while (model_count > 0) {
        erase_at(random_next() % model_count);
        ck_assert_uint_le(set.erased.count, model_count + ORDER_PENDING_MAX);
    }
}
END_TEST

START_TEST(few_blocks) {
    for (uint64_t i = 0; i <= ORDER_PENDING_MAX; i++)
        add(i);
    uint64_t before = memory_figures().allocations;
    enum { ROUNDS = 400 };
    for (uint64_t i = 0; i < (uint64_t)ROUNDS * ORDER_PENDING_MAX; i++)
        add(random_next());
    ck_assert_uint_le(memory_figures().allocations - before, ROUNDS / 4);
    ck_assert_uint_le(memory_figures().live_bytes, model_count * 24);
    check_some();
}
END_TEST

START_TEST(memory_follows_what_is_left) {
    for (uint64_t i = 0; i < 40000; i++)
        add(random_next());
    while (model_count > 2000)
        erase_at(random_next() % model_count);
    // What waits to be erased goes with queries.
    for (int i = 0; i < 20; i++)
        check_some();
    ck_assert_uint_le(memory_figures().live_bytes, 4096 * 8 * 8);
    check_all();
}
END_TEST

START_TEST(a_sliding_window_allocates_nothing) {
    enum { WINDOW = 3000, WARM = 60000 };
    static uint64_t window[WINDOW];
    uint64_t before = 0;
    for (int i = 0; i < 2 * WARM; i++) {
        if (i == WARM)
            before = memory_figures().allocations;
        if (i >= WINDOW)
            order_erase(&set, window[i % WINDOW]);
        window[i % WINDOW] = random_next() % 100000;
        order_add(&set, window[i % WINDOW]);
    }
    ck_assert_uint_eq(memory_figures().allocations, before);
    ck_assert_uint_eq(order_count(&set), WINDOW);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("order_statistic");
    TCase *cases = tcase_create("order_statistic");
    tcase_set_timeout(cases, 120);
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, empty_and_one);
    tcase_add_loop_test(cases, orders, 0, ORDER_COUNT);
    tcase_add_loop_test(cases, erase_in_order, 0, ORDER_COUNT);
    tcase_add_loop_test(cases, random_mixture, 0, 3);
    tcase_add_loop_test(cases, many_erased_at_once, 0, 2 * ERASED_KINDS);
    tcase_add_test(cases, queries_take_out_what_was_erased_little_by_little);
    tcase_add_test(cases, few_blocks);
    tcase_add_test(cases, memory_follows_what_is_left);
    tcase_add_test(cases, a_sliding_window_allocates_nothing);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
