// SPDX-License-Identifier: Apache-2.0
// A library is loaded and set up once, whoever asks, and one that is missing is told each time.
#include "base/late_library.h"

#include "base/memory.h"

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 8 };

static unsigned long (*z_crc32)(unsigned long, const unsigned char *, unsigned);
static void *nowhere;
static atomic_int set_ups;

static enum status set_up(struct error *error) {
    (void)error;
    atomic_fetch_add(&set_ups, 1);
    return STATUS_OK;
}

static const struct late_symbol symbols[] = {{"crc32", (void **)(void *)&z_crc32}};
static const struct late_symbol unknown[] = {{"culprit_has_no_such", &nowhere}};
static struct late_library present = {"libz.so.1", "zlib1g",          "tests",
                                      symbols,     .symbol_count = 1, .set_up = set_up};
static struct late_library lacking = {"libz.so.1", "zlib1g", "tests", unknown, .symbol_count = 1};
static struct late_library missing = {"libculprit-none.so.0", "libculprit-none0", "tests", symbols,
                                      .symbol_count = 1};

static void *load(void *unused) {
    ck_assert_int_eq(late_library_load(&present, NULL), STATUS_OK);
    ck_assert_uint_eq(z_crc32(0, (const unsigned char *)"a", 1), 0xe8b7be43);
    return unused;
}

static void load_on_threads(void) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, load, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(atomic_load(&set_ups), 1);
}

START_TEST(is_loaded_once) {
    load_on_threads();
    load_on_threads();
}
END_TEST

START_TEST(is_loaded_ahead) {
    struct late_library *const libraries[] = {&missing, &present, &lacking};
    struct late_ahead *ahead = late_ahead_begin(libraries, 3);
    ck_assert_ptr_nonnull(ahead);
    late_ahead_end(ahead);
    ck_assert(present.loaded && !missing.loaded && !lacking.loaded);
    load_on_threads();
    late_ahead_end(NULL);
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}
END_TEST

START_TEST(who_needs_it_meanwhile_waits) {
    struct late_library *const libraries[] = {&present};
    struct late_ahead *ahead = late_ahead_begin(libraries, 1);
    load_on_threads();
    late_ahead_end(ahead);
}
END_TEST

static void check_failure(struct late_library *library, const char *what) {
    struct late_library *const libraries[] = {library};
    late_ahead_end(late_ahead_begin(libraries, 1));
    for (int i = 0; i < 2; i++) {
        struct error error = {0};
        ck_assert_int_eq(late_library_load(library, &error), STATUS_NOT_FOUND);
        ck_assert_msg(strstr(error.message, what) != NULL, "%s", error.message);
        ck_assert_msg(strstr(error.message, library->package) != NULL, "%s", error.message);
    }
}

START_TEST(what_is_missing_is_told) {
    check_failure(&missing, "libculprit-none.so.0 is needed for tests and cannot be loaded");
    check_failure(&lacking, "libz.so.1 has no function culprit_has_no_such");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("late_library");
    TCase *cases = tcase_create("late_library");
    tcase_add_test(cases, is_loaded_once);
    tcase_add_test(cases, is_loaded_ahead);
    tcase_add_test(cases, who_needs_it_meanwhile_waits);
    tcase_add_test(cases, what_is_missing_is_told);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
