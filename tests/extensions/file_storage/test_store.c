// SPDX-License-Identifier: Apache-2.0
// What was put is there, in order, whole, and only for one process at a time.
#include "base/clock.h"
#include "extensions/file_storage/store_library.h"
#include "tests/extensions/file_storage/store_fixture.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

static void setup(void) {
    folder_make();
    open_store();
}

static void teardown(void) {
    close_store();
    folder_remove();
    log_flush();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

START_TEST(puts_and_deletes) {
    ck_assert_str_eq(rows_of(STORAGE_STATE, NULL), "");
    put_text(STORAGE_STATE, "b", 1, "one");
    put_text(STORAGE_STATE, "a", 7, "seven");
    put_text(STORAGE_STATE, "a", 2, "");
    put_text(STORAGE_QUEUE, "a", 2, "elsewhere");
    put_text(STORAGE_STATE, "", 0, "nameless");
    put_text(STORAGE_STATE, "a", STORAGE_NUMBER_MAX, "last");
    ck_assert_str_eq(rows_of(STORAGE_STATE, NULL),
                     "/0=nameless;a/2=;a/7=seven;a/140737488355327=last;b/1=one;");
    ck_assert_str_eq(rows_of(STORAGE_STATE, "b"), "b/1=one;");
    ck_assert_str_eq(rows_of(STORAGE_STATE, "none"), "");
    put_text(STORAGE_STATE, "a", 7, "SEVEN");
    ck_assert_uint_eq(storage_last_number(store, STORAGE_STATE, "a"), STORAGE_NUMBER_MAX);
    ck_assert_uint_eq(storage_last_number(store, STORAGE_STATE, "b"), 1);
    ck_assert_uint_eq(storage_last_number(store, STORAGE_STATE, "c"), 0);
    struct storage_batch *batch = storage_batch_new(store);
    storage_delete(batch, STORAGE_STATE, "a", 8, UINT64_MAX);
    storage_delete(batch, STORAGE_STATE, "a", 2, 2);
    storage_delete(batch, STORAGE_STATE, "none", 0, 5);
    storage_delete(batch, STORAGE_STATE, "b", 5, 1);
    storage_put(batch, STORAGE_STATE, "pre/x", 1, SLICE("x"));
    storage_put(batch, STORAGE_STATE, "pre/y", 1, SLICE("y"));
    storage_put(batch, STORAGE_STATE, "per", 1, SLICE("z"));
    storage_delete_names(batch, STORAGE_STATE, "pre");
    storage_put(batch, STORAGE_STATE, "pre/x", 2, SLICE("again"));
    ck_assert_int_eq(storage_wait(store, storage_submit(batch), 30 * SECOND, &error), STATUS_OK);
    const char *expected = "/0=nameless;a/7=SEVEN;b/1=one;per/1=z;pre/x/2=again;";
    ck_assert_str_eq(rows_of(STORAGE_STATE, NULL), expected);
    close_store();
    ck_assert_int_ne(access(path_of("culprit.db-wal"), F_OK), 0);
    open_store();
    ck_assert_str_eq(rows_of(STORAGE_STATE, NULL), expected);
    ck_assert_str_eq(rows_of(STORAGE_QUEUE, NULL), "a/2=elsewhere;");
}
END_TEST

static int64_t count_names(void) {
    const struct store_library *library;
    sqlite3 *connection = NULL;
    int64_t count = -1;
    ck_assert_int_eq(store_library_load(&library, &error), STATUS_OK);
    ck_assert_int_eq(
        library->open_v2(path_of("culprit.db"), &connection, SQLITE_OPEN_READONLY, NULL),
        SQLITE_OK);
    (void)store_query_number(connection, "SELECT count(*) FROM name", &count);
    ck_assert_int_eq(library->close(connection), SQLITE_OK);
    return count;
}

START_TEST(names_without_rows_are_freed_at_the_next_start) {
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    for (int i = 0; i < 5; i++) {
        put_text(STORAGE_STATE, names[i], 0, "first");
        put_text(STORAGE_STATE, names[i], STORAGE_NUMBER_MAX, "last");
    }
    struct storage_batch *batch = storage_batch_new(store);
    storage_delete_names(batch, STORAGE_STATE, "a");
    storage_delete_names(batch, STORAGE_STATE, "d");
    storage_delete(batch, STORAGE_STATE, "b", 1, UINT64_MAX); // the first row stays
    storage_delete(batch, STORAGE_STATE, "c", 0, 0);          // the last one does
    ck_assert_int_eq(storage_wait(store, storage_submit(batch), 30 * SECOND, &error), STATUS_OK);
    close_store();
    ck_assert_int_eq(count_names(), 5);
    open_store();
    put_text(STORAGE_STATE, "f", 1, "new");
    const char *expected =
        "b/0=first;c/140737488355327=last;e/0=first;e/140737488355327=last;f/1=new;";
    ck_assert_str_eq(rows_of(STORAGE_STATE, NULL), expected);
    close_store();
    ck_assert_int_eq(count_names(), 4);
    open_store();
    ck_assert_str_eq(rows_of(STORAGE_STATE, NULL), expected);
}
END_TEST

static bool count_row(void *context, const char *name, uint64_t number, struct slice bytes) {
    (void)name, (void)bytes;
    uint64_t *seen = context;
    ck_assert_uint_ge(number, seen[1]);
    seen[1] = number + 1;
    return ++seen[0] < seen[2];
}

// Blobs of all sizes come back as they were; scans begin and end where they are told.
START_TEST(blobs_of_all_sizes) {
    static const size_t sizes[] = {0,    1,    487,  3000, 4036,  4050,
                                   4061, 4062, 4096, 8200, 70000, 3 << 20};
    char *bytes = malloc(3 << 20);
    for (size_t i = 0; i < 12; i++) {
        struct storage_batch *batch = storage_batch_new(store);
        fill(bytes, sizes[i], i);
        storage_put(batch, STORAGE_JOURNAL, "j", i, (struct slice){bytes, sizes[i]});
        ck_assert_int_eq(storage_wait(store, storage_submit(batch), 30 * SECOND, &error),
                         STATUS_OK);
    }
    close_store();
    open_store();
    for (uint64_t first = 0; first < 12; first++) {
        uint64_t seen[3] = {0, first, UINT64_MAX};
        ck_assert_int_eq(
            storage_scan(store, STORAGE_JOURNAL, "j", first, 10, count_row, seen, &error),
            STATUS_OK);
        ck_assert_uint_eq(seen[0], first > 10 ? 0 : 11 - first);
    }
    uint64_t seen[3] = {0, 0, 3};
    ck_assert_int_eq(storage_scan(store, STORAGE_JOURNAL, NULL, 0, 99, count_row, seen, &error),
                     STATUS_OK);
    ck_assert_uint_eq(seen[0], 3);
    struct storage_statistics figures;
    storage_statistics(store, &figures);
    ck_assert_uint_eq(figures.damaged_blobs, 0);
    ck_assert_uint_gt(figures.size_bytes, 3 << 20);
    free(bytes);
}
END_TEST

// More rows than one look copies, and a visitor that writes and waits.
static bool write_and_wait(void *context, const char *name, uint64_t number, struct slice bytes) {
    (void)name, (void)bytes;
    if (number % 1000 == 0) {
        struct storage_batch *batch = storage_batch_new(store);
        storage_put(batch, STORAGE_QUEUE, "q", number, SLICE("x"));
        storage_delete(batch, STORAGE_JOURNAL, "j", 0, number);
        ck_assert_int_eq(storage_wait(store, storage_submit(batch), 30 * SECOND, &error),
                         STATUS_OK);
    }
    ck_assert_uint_eq(number, *(uint64_t *)context);
    ++*(uint64_t *)context;
    return true;
}

START_TEST(visitors_may_write) {
    struct storage_batch *batch = storage_batch_new(store);
    for (uint64_t i = 0; i < 5000; i++)
        storage_put(batch, STORAGE_JOURNAL, "j", i, SLICE("some bytes"));
    ck_assert_int_eq(storage_wait(store, storage_submit(batch), 30 * SECOND, &error), STATUS_OK);
    uint64_t next = 0;
    ck_assert_int_eq(
        storage_scan(store, STORAGE_JOURNAL, NULL, 0, UINT64_MAX, write_and_wait, &next, &error),
        STATUS_OK);
    ck_assert_uint_eq(next, 5000);
    ck_assert_uint_eq(storage_last_number(store, STORAGE_QUEUE, "q"), 4000);
}
END_TEST

// -- groups -------------------------------------------------------------------------------------

enum { WRITERS = 8, ROUNDS = 50 };

static void *write_rounds(void *context) {
    char name[16];
    snprintf(name, sizeof name, "w%d", (int)(intptr_t)context);
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        struct storage_batch *batch = storage_batch_new(store);
        storage_put(batch, STORAGE_JOURNAL, name, i, SLICE("line"));
        uint64_t ticket = storage_submit(batch);
        struct error problem;
        ck_assert_int_eq(storage_wait(store, ticket, 60 * SECOND, &problem), STATUS_OK);
        ck_assert_uint_ge(storage_durable(store), ticket);
    }
    return NULL;
}

START_TEST(waiters_share_commits) {
    pthread_t threads[WRITERS];
    for (intptr_t i = 0; i < WRITERS; i++)
        pthread_create(&threads[i], NULL, write_rounds, (void *)i);
    for (int i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    struct storage_statistics figures;
    storage_statistics(store, &figures);
    ck_assert_uint_eq(figures.batches, WRITERS * ROUNDS);
    ck_assert_uint_lt(figures.commits, WRITERS * ROUNDS);
    ck_assert_uint_eq(figures.pending_bytes, 0);
    ck_assert_uint_eq(storage_durable(store), WRITERS * ROUNDS);
    for (intptr_t i = 0; i < WRITERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "w%d", (int)i);
        ck_assert_uint_eq(storage_last_number(store, STORAGE_JOURNAL, name), ROUNDS);
    }
}
END_TEST

static atomic_int calls;

static void called(void *context) {
    ck_assert_ptr_eq(context, &calls);
    atomic_fetch_add(&calls, 1);
}

// Nobody waits: the interval alone ends the group. A close waits for what was submitted.
START_TEST(close_writes_what_waits) {
    close_store();
    interval_ns = 3600 * SECOND;
    open_store();
    atomic_store(&calls, 0);
    storage_on_commit(store, called, &calls);
    for (uint64_t i = 0; i < 100; i++) {
        struct storage_batch *batch = storage_batch_new(store);
        storage_put(batch, STORAGE_JOURNAL, "j", i, SLICE("x"));
        (void)storage_submit(batch);
    }
    ck_assert_uint_eq(storage_durable(store), 0);
    close_store();
    ck_assert_int_eq(atomic_load(&calls), 1);
    interval_ns = 1000000;
    open_store();
    ck_assert_uint_eq(storage_last_number(store, STORAGE_JOURNAL, "j"), 99);
}
END_TEST

// After a while batches of the same size take no memory.
START_TEST(batches_are_used_again) {
    static char bytes[4096];
    uint64_t before = 0;
    for (uint64_t i = 0; i < 60; i++) {
        if (i == 20)
            before = memory_figures().allocations;
        struct storage_batch *batch = storage_batch_new(store);
        storage_put(batch, STORAGE_STATE, "s", i % 4, (struct slice){bytes, sizeof bytes});
        ck_assert_int_eq(storage_wait(store, storage_submit(batch), 30 * SECOND, &error),
                         STATUS_OK);
    }
    ck_assert_uint_eq(memory_figures().allocations, before);
}
END_TEST

// -- one process at a time ----------------------------------------------------------------------

START_TEST(second_opener_is_told_whose_it_is) {
    struct storage *other = NULL;
    ck_assert_int_eq(try_open(&other), STATUS_CANNOT_CREATE);
    char pid[64];
    snprintf(pid, sizeof pid, "in use by process %d;", (int)getpid());
    ck_assert_ptr_nonnull(strstr(error.message, pid));
    ck_assert_ptr_nonnull(strstr(error.message, folder));
    ck_assert_ptr_null(other);
}
END_TEST

START_TEST(places_that_cannot_be_used) {
    close_store();
    char kept[64];
    snprintf(kept, sizeof kept, "%.60s", folder);
    snprintf(folder, sizeof folder, "%s/a/b//c", kept);
    open_store();
    close_store();
    struct stat about;
    ck_assert_int_eq(stat(folder, &about), 0);
    ck_assert_uint_eq(about.st_mode & 07777, 0750);
    ck_assert_int_eq(stat(path_of("culprit.db"), &about), 0);
    ck_assert_uint_eq(about.st_mode & 07777, 0640);
    snprintf(folder, sizeof folder, "%s/culprit.lock", kept);
    ck_assert_int_eq(try_open(&store), STATUS_CANNOT_CREATE);
    ck_assert_ptr_nonnull(strstr(error.message, "culprit.lock is not a directory"));
    snprintf(folder, sizeof folder, "%s/none", kept);
    struct store_options options = {
        .directory = folder, .max_size = max_size, .site = "extension/file_storage"};
    ck_assert_int_eq(store_open(&store, &options, &error), STATUS_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(error.message, "/none"));
    strcpy(folder, kept);
    pid_t child = fork();
    if (child == 0) { // permissions do not hold for root
        int failed = chmod(folder, 0555) != 0 || (getuid() == 0 && setuid(65534) != 0);
        failed |= try_open(&store) != STATUS_DENIED || strstr(error.message, folder) == NULL;
        _exit(failed);
    }
    int ended;
    ck_assert_int_eq(waitpid(child, &ended, 0), child);
    ck_assert_int_eq(ended, 0);
    ck_assert_int_eq(chmod(folder, 0755), 0);
    open_store();
}
END_TEST

// -- looking from outside -----------------------------------------------------------------------

static void not_expected(void *context, const char *sentence) {
    (void)context;
    ck_abort_msg("%s", sentence);
}

static bool append_unaligned(void *context, enum storage_space space, const char *name,
                             uint64_t number, struct slice bytes) {
    char *text = context;
    snprintf(text + strlen(text), 4096 - strlen(text), "%s %s/%llu=%.*s;",
             storage_space_name(space), name, (unsigned long long)number, (int)bytes.size,
             bytes.data);
    return true;
}

START_TEST(inspection_sees_what_is_durable) {
    put_text(STORAGE_STATE, "b", 1, "one");
    put_text(STORAGE_STATE, "a", 2, "two");
    put_text(STORAGE_META, "m", 0, "meta");
    for (int closed = 0; closed < 2; closed++) {
        char text[4096] = "";
        ck_assert_int_eq(store_inspect(folder, append_unaligned, not_expected, text, &error),
                         STATUS_OK);
        ck_assert_str_eq(text, "meta m/0=meta;state a/2=two;state b/1=one;");
        if (!closed)
            close_store();
    }
    ck_assert_int_ne(access(path_of("culprit.db-wal"), F_OK), 0);
    ck_assert_int_ne(access(path_of("culprit.db-shm"), F_OK), 0);
    ck_assert_int_eq(store_inspect("/nowhere", append_unaligned, not_expected, NULL, &error),
                     STATUS_NOT_FOUND);
    open_store();
}
END_TEST

int main(void) {
    Suite *suite = suite_create("store");
    TCase *cases = tcase_create("store");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, puts_and_deletes);
    tcase_add_test(cases, names_without_rows_are_freed_at_the_next_start);
    tcase_add_test(cases, blobs_of_all_sizes);
    tcase_add_test(cases, visitors_may_write);
    tcase_add_test(cases, waiters_share_commits);
    tcase_add_test(cases, close_writes_what_waits);
    tcase_add_test(cases, batches_are_used_again);
    tcase_add_test(cases, second_opener_is_told_whose_it_is);
    tcase_add_test(cases, places_that_cannot_be_used);
    tcase_add_test(cases, inspection_sees_what_is_durable);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
