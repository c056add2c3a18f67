// SPDX-License-Identifier: Apache-2.0
// Each piece of a task is done once, whoever does it; threads are there once there is a task for
// them, and none before.
#include "base/workers.h"

#include "base/clock.h"

#include <check.h>
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { PIECES = 1000 };

struct work {
    uint32_t done[PIECES]; // each written by the piece alone
    uint64_t sums[WORKERS_MAX];
    atomic_bool busy[WORKERS_MAX];
    uint32_t input[PIECES];
    uint32_t workers;
};

static void add_up(void *context, uint32_t piece, uint32_t worker) {
    struct work *work = context;
    ck_assert_uint_lt(worker, work->workers);
    ck_assert(!atomic_exchange(&work->busy[worker], true));
    work->done[piece]++;
    work->sums[worker] += work->input[piece];
    ck_assert(atomic_exchange(&work->busy[worker], false));
}

static uint32_t threads_of_process(void) {
    uint32_t count = 0;
    DIR *folder = opendir("/proc/self/task");
    ck_assert_ptr_nonnull(folder);
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

static const uint32_t COUNTS[] = {1, 2, 7, WORKERS_MAX};

START_TEST(each_piece_is_done_once) {
    struct workers *workers = workers_new(COUNTS[_i]);
    ck_assert_uint_eq(workers_count(workers), COUNTS[_i]);
    struct work work = {.workers = COUNTS[_i]};
    for (uint32_t round = 0; round < 200; round++) {
        uint32_t pieces = round * 37 % (PIECES + 1);
        uint64_t expected = 0, sum = 0;
        memset(work.done, 0, sizeof work.done);
        memset(work.sums, 0, sizeof work.sums);
        for (uint32_t i = 0; i < pieces; i++)
            expected += work.input[i] = round + i;
        workers_run(workers, pieces, add_up, &work);
        for (uint32_t i = 0; i < PIECES; i++)
            ck_assert_uint_eq(work.done[i], i < pieces);
        for (uint32_t i = 0; i < WORKERS_MAX; i++)
            sum += work.sums[i];
        ck_assert_uint_eq(sum, expected);
    }
    workers_free(workers);
}
END_TEST

START_TEST(threads_start_with_the_first_task_of_several_pieces) {
    // With the first thread of a process, a sanitizer may start one of its own.
    struct workers *others = workers_new(2);
    struct work work = {.workers = 2};
    workers_run(others, 2, add_up, &work);
    struct workers *workers = workers_new(3);
    work = (struct work){.workers = 3};
    uint32_t before = threads_of_process();
    workers_run(workers, 0, add_up, &work);
    workers_run(workers, 1, add_up, &work);
    ck_assert_uint_eq(threads_of_process(), before);
    workers_run(workers, 2, add_up, &work);
    ck_assert_uint_eq(threads_of_process(), before + 2);
    workers_run(workers, PIECES, add_up, &work);
    ck_assert_uint_eq(threads_of_process(), before + 2);
    ck_assert_uint_eq(work.done[0], 3);
    workers_free(workers);
    workers_free(others);
}
END_TEST

START_TEST(one_thread_needs_no_other) {
    uint32_t before = threads_of_process();
    struct work work = {.workers = 1};
    struct workers *workers = workers_new(1);
    workers_run(workers, PIECES, add_up, &work);
    workers_run(NULL, PIECES, add_up, &work);
    ck_assert_uint_eq(workers_count(NULL), 1);
    ck_assert_uint_eq(threads_of_process(), before);
    ck_assert_uint_eq(work.done[PIECES - 1], 2);
    workers_free(workers);
    workers_free(NULL);
}
END_TEST

static pthread_barrier_t both;

static void meet(void *context, uint32_t piece, uint32_t worker) {
    (void)worker;
    ((bool *)context)[piece] = true;
    pthread_barrier_wait(&both);
}

// Two pieces that wait for one another end only when they are under way at once.
START_TEST(pieces_run_beside_one_another) {
    struct workers *workers = workers_new(2);
    bool met[2] = {false, false};
    pthread_barrier_init(&both, NULL, 2);
    for (int i = 0; i < 100; i++)
        workers_run(workers, 2, meet, met);
    ck_assert(met[0] && met[1]);
    pthread_barrier_destroy(&both);
    workers_free(workers);
}
END_TEST

START_TEST(pieces_are_large_enough_and_not_too_many) {
    struct workers *one = workers_new(1), *two = workers_new(2), *most = workers_new(WORKERS_MAX);
    ck_assert_uint_eq(workers_pieces(NULL, 1000, 10, 100), 1);
    ck_assert_uint_eq(workers_pieces(one, 1000, 10, 100), 1);
    ck_assert_uint_eq(workers_pieces(two, 0, 10, 100), 1);
    ck_assert_uint_eq(workers_pieces(two, 39, 10, 100), 3);
    ck_assert_uint_eq(workers_pieces(two, 1000, 10, 100), 2 * PIECES_PER_WORKER);
    ck_assert_uint_eq(workers_pieces(two, 1000, 10, 3), 3);
    ck_assert_uint_eq(workers_pieces(two, 1000, 10, 0), 1);
    ck_assert_uint_eq(workers_pieces(most, UINT64_MAX, 1, UINT32_MAX), PIECES_MAX);
    workers_free(one);
    workers_free(two);
    workers_free(most);
}
END_TEST

START_TEST(pieces_cover_all_items) {
    ck_assert_uint_eq(piece_begin(10, 3, 0), 0);
    ck_assert_uint_eq(piece_begin(10, 3, 1), 3);
    ck_assert_uint_eq(piece_begin(10, 3, 2), 6);
    ck_assert_uint_eq(piece_begin(10, 3, 3), 10);
    ck_assert_uint_eq(piece_begin(UINT32_MAX, WORKERS_MAX, WORKERS_MAX), UINT32_MAX);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("workers");
    TCase *tests = tcase_create("workers");
    tcase_add_loop_test(tests, each_piece_is_done_once, 0, sizeof COUNTS / sizeof COUNTS[0]);
    tcase_add_test(tests, threads_start_with_the_first_task_of_several_pieces);
    tcase_add_test(tests, one_thread_needs_no_other);
    tcase_add_test(tests, pieces_run_beside_one_another);
    tcase_add_test(tests, pieces_are_large_enough_and_not_too_many);
    tcase_add_test(tests, pieces_cover_all_items);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
