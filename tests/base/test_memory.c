// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "base/memory_pages.h"

#include <check.h>
#include <pthread.h>
#include <string.h>

START_TEST(counted) {
    struct memory_figures before = memory_figures();
    char *a = memory_take(100);
    char *b = memory_zero(10, 10);
    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(b[i], 0);
    struct memory_figures held = memory_figures();
    ck_assert_uint_eq(held.allocations, before.allocations + 2);
    ck_assert_uint_ge(held.live_bytes, before.live_bytes + 200);
    ck_assert_uint_ge(held.peak_bytes, held.live_bytes);
    memory_give(a);
    memory_give(b);
    memory_give(NULL);
    ck_assert_uint_eq(memory_figures().live_bytes, before.live_bytes);
}
END_TEST

START_TEST(resize_keeps_bytes) {
    char *text = memory_resize(NULL, 6);
    memcpy(text, "hello", 6);
    text = memory_resize(text, 100000);
    ck_assert_str_eq(text, "hello");
    text = memory_resize(text, 3);
    ck_assert_mem_eq(text, "hel", 3);
    memory_give(text);
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}
END_TEST

START_TEST(nothing_is_something) {
    void *none = memory_take(0), *zero = memory_zero(0, 8);
    ck_assert_ptr_nonnull(none);
    ck_assert_ptr_nonnull(zero);
    none = memory_resize(none, 0);
    ck_assert_ptr_nonnull(none);
    memory_give(none);
    memory_give(zero);
}
END_TEST

START_TEST(pages_are_aligned_and_zero) {
    uint64_t before = memory_figures().live_bytes;
    char *pages[4];
    for (int i = 0; i < 4; i++) {
        size_t size = (size_t)(i + 1) * MEMORY_HUGE_PAGE;
        pages[i] = memory_take_pages(size);
        ck_assert_uint_eq((uintptr_t)pages[i] % MEMORY_HUGE_PAGE, 0);
        ck_assert(pages[i][0] == 0 && pages[i][size - 1] == 0);
        memset(pages[i], i + 1, size);
    }
    ck_assert_uint_eq(memory_figures().live_bytes, before + 10 * MEMORY_HUGE_PAGE);
    for (int i = 0; i < 4; i++) {
        size_t size = (size_t)(i + 1) * MEMORY_HUGE_PAGE;
        ck_assert(pages[i][0] == i + 1 && pages[i][size - 1] == i + 1);
        memory_give_pages(pages[i], size);
    }
    ck_assert_uint_eq(memory_figures().live_bytes, before);
}
END_TEST

START_TEST(texts) {
    char *text = memory_copy_text("abcdef", 3);
    ck_assert_str_eq(text, "abc");
    memory_give(text);
    text = memory_copy_text(NULL, 0);
    ck_assert_str_eq(text, "");
    memory_give(text);
}
END_TEST

START_TEST(peak_starts_anew) {
    memory_give(memory_take(1 << 20));
    ck_assert_uint_ge(memory_figures().peak_bytes, 1 << 20);
    memory_reset_peak();
    ck_assert_uint_eq(memory_figures().peak_bytes, memory_figures().live_bytes);
    memory_give(memory_take(5000));
    ck_assert_uint_ge(memory_figures().peak_bytes, 5000);
    ck_assert_uint_lt(memory_figures().peak_bytes, 1 << 20);
}
END_TEST

static void *take_and_give(void *unused) {
    for (size_t i = 0; i < 20000; i++)
        memory_give(memory_resize(memory_take(i % 100), i % 200));
    return unused;
}

START_TEST(threads_count_together) {
    pthread_t threads[4];
    struct memory_figures before = memory_figures();
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, take_and_give, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(memory_figures().live_bytes, before.live_bytes);
    ck_assert_uint_eq(memory_figures().allocations, before.allocations + 4 * 20000 * 2);
}
END_TEST

// More than any address space holds: the process ends with the documented code.
START_TEST(exhausted) {
    memory_take(SIZE_MAX / 4);
}
END_TEST

START_TEST(room_grows_by_doubling_and_keeps_a_ring_in_order) {
    uint32_t capacity = 0, first = 0, count = 0, *ring = NULL, next = 0, oldest = 0;
    for (int round = 0; round < 500; round++) {
        ring = memory_ring_room(ring, &capacity, first, count, sizeof *ring);
        ring[(first + count++) % capacity] = next++;
        if (round % 3 == 0) {
            ck_assert_uint_eq(ring[first], oldest++);
            first = (first + 1) % capacity;
            count--;
        }
    }
    for (uint32_t i = 0; i < count; i++)
        ck_assert_uint_eq(ring[(first + i) % capacity], oldest + i);
    ck_assert_uint_eq(capacity, 512);
    memory_give(ring);
    char *items = NULL;
    capacity = 0;
    items = memory_room(items, &capacity, 0, 1);
    ck_assert_ptr_eq(memory_room(items, &capacity, 15, 1), items);
    memory_give(items);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("memory");
    TCase *cases = tcase_create("memory");
    tcase_add_test(cases, counted);
    tcase_add_test(cases, resize_keeps_bytes);
    tcase_add_test(cases, nothing_is_something);
    tcase_add_test(cases, pages_are_aligned_and_zero);
    tcase_add_test(cases, texts);
    tcase_add_test(cases, room_grows_by_doubling_and_keeps_a_ring_in_order);
    tcase_add_test(cases, peak_starts_anew);
    tcase_add_test(cases, threads_count_together);
#ifndef __SANITIZE_ADDRESS__ // which ends the process itself at such a size
    tcase_add_exit_test(cases, exhausted, 71);
#else
    (void)exhausted;
#endif
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
