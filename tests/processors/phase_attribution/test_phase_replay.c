// SPDX-License-Identifier: Apache-2.0
#include "processors/phase_attribution/store.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

static struct phase_store store;
static const struct state_row STORE = {.name = "store", .part = &phase_store_part};
static struct arena arena;
static struct origin process;

static void setup(void) {
    memset(&store, 0, sizeof store);
    state_rows_init(&STORE, 1, &store);
    arena_init(&arena, 65536);
    process = (struct origin){.session = intern(SLICE("session")), .host = intern(SLICE("host"))};
}

static void teardown(void) {
    state_rows_release(&STORE, 1, &store);
    arena_release(&arena);
    intern_release();
}

static void boundary(bool enter, uint64_t time_ns, const char *label, uint32_t depth,
                     const char *scope_id, int64_t thread_id, int64_t sequence) {
    struct phase_scope scope = {.label = intern(slice_of(label)),
                                .depth = depth,
                                .scope_id = slice_of(scope_id),
                                .thread_id = thread_id,
                                .sequence = sequence,
                                .thread_name = intern(SLICE("Main"))};
    struct telemetry telemetry = {.timestamp_ns = time_ns,
                                  .type = enter ? TELEMETRY_PHASE_ENTER : TELEMETRY_PHASE_EXIT,
                                  .rank = 0,
                                  .session = process.session,
                                  .host = process.host,
                                  .scope = &scope};
    phase_store_add(&store, &telemetry);
}

static struct phase_attribution at(uint64_t time_ns) {
    return phase_store_resolve(&store, &process, 0, time_ns, false, &arena);
}

static void check_unique(uint64_t time_ns, const char *path, const char *scope_id) {
    struct phase_attribution answer = at(time_ns);
    ck_assert_int_eq(answer.resolution, PHASE_UNIQUE);
    ck_assert(slice_equal(answer.path, slice_of(path)));
    ck_assert(slice_equal(answer.scope_id, slice_of(scope_id)));
}

START_TEST(test_deepest_open_scope_with_both_ends_included) {
    boundary(true, 10, "epoch", 1, "e", 1, 1);
    boundary(true, 20, "epoch / step", 2, "s", 1, 2);
    boundary(false, 30, "epoch / step", 2, "s", 1, 2);
    ck_assert_int_eq(at(9).resolution, PHASE_NONE);
    check_unique(10, "epoch", "e");
    check_unique(20, "epoch / step", "s");
    check_unique(30, "epoch / step", "s");
    check_unique(31, "epoch", "e");
    check_unique(UINT64_MAX, "epoch", "e");
}
END_TEST

START_TEST(test_exit_of_another_scope_is_ignored) {
    boundary(true, 10, "a", 1, "a", 1, 1);
    boundary(true, 20, "a / b", 2, "b", 1, 2);
    boundary(false, 25, "a", 1, "a", 1, 3);
    check_unique(40, "a / b", "b");
}
END_TEST

START_TEST(test_two_threads_are_ambiguous_and_the_latest_is_likely) {
    boundary(true, 10, "load", 1, "x", 1, 7);
    boundary(true, 10, "step", 1, "y", 2, 3);
    struct phase_attribution answer = at(15);
    ck_assert_int_eq(answer.resolution, PHASE_AMBIGUOUS);
    ck_assert_uint_eq(answer.path_count, 2);
    ck_assert(slice_equal(answer.paths[0], SLICE("load")));
    ck_assert(slice_equal(answer.paths[1], SLICE("step")));
    ck_assert(slice_equal(answer.summary, SLICE("load")));
}
END_TEST

START_TEST(test_two_threads_in_the_same_phase_have_no_summary) {
    boundary(true, 10, "step", 1, "x", 1, 1);
    boundary(true, 10, "step", 1, "y", 2, 2);
    struct phase_attribution answer = at(15);
    ck_assert_int_eq(answer.resolution, PHASE_AMBIGUOUS);
    ck_assert_uint_eq(answer.path_count, 1);
    ck_assert_ptr_null(answer.summary.data);
}
END_TEST

START_TEST(test_siblings_that_meet_at_the_moment_are_ambiguous) {
    boundary(true, 10, "a", 1, "a", 1, 1);
    boundary(false, 20, "a", 1, "a", 1, 1);
    boundary(true, 20, "b", 1, "b", 1, 2);
    struct phase_attribution answer = at(20);
    ck_assert_int_eq(answer.resolution, PHASE_AMBIGUOUS);
    ck_assert(slice_equal(answer.summary, SLICE("b")));
}
END_TEST

START_TEST(test_order_of_arrival_does_not_matter) {
    boundary(false, 30, "s", 1, "s", 1, 2);
    boundary(true, 10, "s", 1, "s", 1, 1);
    check_unique(20, "s", "s");
    ck_assert_int_eq(at(31).resolution, PHASE_NONE);
}
END_TEST

START_TEST(test_other_processes_do_not_answer) {
    boundary(true, 10, "s", 1, "s", 1, 1);
    struct origin other = process;
    other.session = intern(SLICE("other"));
    ck_assert_int_eq(phase_store_resolve(&store, &other, 0, 20, false, &arena).resolution,
                     PHASE_NONE);
    ck_assert_int_eq(phase_store_resolve(&store, &process, 1, 20, false, &arena).resolution,
                     PHASE_NONE);
}
END_TEST

START_TEST(test_records_without_session_share_only_their_instant) {
    process.session = STRING_NONE;
    boundary(true, 10, "s", 1, "s", 1, 1);
    check_unique(10, "s", "s");
    ck_assert_int_eq(at(11).resolution, PHASE_NONE);
}
END_TEST

START_TEST(test_long_scope_ids_come_back_whole) {
    char id[500];
    memset(id, 'x', sizeof id);
    for (size_t size = 0; size < sizeof id; size += 59) {
        id[size] = '\0';
        boundary(true, 10 + size, "s", (uint32_t)size + 1, id, 1, (int64_t)size);
        check_unique(10 + size, "s", id);
        id[size] = 'x';
    }
}
END_TEST

START_TEST(test_expiry_keeps_what_can_still_be_asked) {
    boundary(true, 1, "run", 1, "run", 1, 0);
    for (uint64_t i = 1; i <= 3000; i++) {
        char id[16];
        snprintf(id, sizeof id, "s%llu", (unsigned long long)i);
        boundary(true, i * 10, "run / step", 2, id, 1, (int64_t)i);
        boundary(false, i * 10 + 5, "run / step", 2, id, 1, (int64_t)i);
    }
    uint32_t before = table_live(&store.boundaries);
    ck_assert_uint_eq(before, 6001);
    phase_store_expire(&store, 20000, &arena);
    ck_assert_uint_lt(table_live(&store.boundaries), before / 2);
    check_unique(20000, "run / step", "s2000");
    check_unique(20008, "run", "run");
    check_unique(30003, "run / step", "s3000");
    ck_assert_int_eq(at(0).resolution, PHASE_NONE);
    // Freed rows are used again.
    uint32_t used = store.boundaries.used;
    for (uint64_t i = 0; i < 1000; i++)
        boundary(true, 40000 + i, "x", 3, "x", 2, (int64_t)i);
    ck_assert_uint_eq(store.boundaries.used, used);
}
END_TEST

START_TEST(test_many_threads_are_answered) {
    for (int64_t thread = 0; thread < 20000; thread++)
        boundary(true, 10, "s", 1, "x", thread, thread);
    struct phase_attribution answer = at(11);
    ck_assert_int_eq(answer.resolution, PHASE_AMBIGUOUS);
    ck_assert_uint_eq(answer.path_count, 1);
}
END_TEST

static struct phase_attribution once_at(uint64_t time_ns) {
    return phase_store_resolve(&store, &process, 0, time_ns, true, &arena);
}

// A file and its copy: stormlog counts each boundary twice, so that an exit is left over.
START_TEST(test_boundaries_that_come_again_count_once) {
    for (int times = 0; times < 2; times++) {
        boundary(true, 10, "step", 1, "s", 1, 1);
        boundary(true, 20, "step / data", 2, "d", 1, 2);
        boundary(false, 30, "step / data", 2, "d", 1, 2);
        boundary(true, 40, "step / backward", 2, "b", 1, 3);
        boundary(false, 40, "step / backward", 2, "b", 1, 3);
        boundary(false, 90, "step", 1, "s", 1, 1);
    }
    struct phase_attribution answer = once_at(35);
    ck_assert_int_eq(answer.resolution, PHASE_UNIQUE);
    ck_assert(slice_equal(answer.path, SLICE("step")));
    ck_assert(slice_equal(once_at(40).path, SLICE("step / backward")));
    ck_assert_int_eq(once_at(91).resolution, PHASE_NONE);
}
END_TEST

START_TEST(test_expiry_keeps_each_boundary_once) {
    for (uint64_t i = 0; i < 2000; i++)
        boundary(true, 10, "epoch", 1, "e", 1, 1);
    phase_store_expire(&store, 5, &arena);
    ck_assert_uint_eq(table_live(&store.boundaries), 1);
    ck_assert(slice_equal(once_at(50).path, SLICE("epoch")));
}
END_TEST

int main(void) {
    Suite *suite = suite_create("phase_replay");
    TCase *tests = tcase_create("phases");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, test_deepest_open_scope_with_both_ends_included);
    tcase_add_test(tests, test_exit_of_another_scope_is_ignored);
    tcase_add_test(tests, test_two_threads_are_ambiguous_and_the_latest_is_likely);
    tcase_add_test(tests, test_two_threads_in_the_same_phase_have_no_summary);
    tcase_add_test(tests, test_siblings_that_meet_at_the_moment_are_ambiguous);
    tcase_add_test(tests, test_order_of_arrival_does_not_matter);
    tcase_add_test(tests, test_other_processes_do_not_answer);
    tcase_add_test(tests, test_records_without_session_share_only_their_instant);
    tcase_add_test(tests, test_long_scope_ids_come_back_whole);
    tcase_add_test(tests, test_expiry_keeps_what_can_still_be_asked);
    tcase_add_test(tests, test_many_threads_are_answered);
    tcase_add_test(tests, test_boundaries_that_come_again_count_once);
    tcase_add_test(tests, test_expiry_keeps_each_boundary_once);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
