// SPDX-License-Identifier: Apache-2.0
// The HTTP receiver on the real store: the journal outlives a restart.
#define HTTP_REAL_STORE
#include "extensions/file_storage/store.h"
#include "tests/receivers/http/http_fixture.h"

// -- the real store -------------------------------------------------------------------------------

static void open_store(void) {
    struct store_options options = {.directory = folder,
                                    .create_directory = true,
                                    .max_size = 1 << 28,
                                    .commit_interval_ns = 2000000,
                                    .site = "extension/file_storage"};
    enum status status = store_open(&store, &options, &error);
    ck_assert_msg(status == STATUS_OK, "%s", error.message);
}

static void close_store(void) {
    store_close(store, 10000000000);
    store = NULL;
}

START_TEST(a_restart_goes_on_behind_the_checkpoint) {
    config.ack = ACK_STORED;
    atomic_store(&feed->unsafe, true);
    open_store();
    start();
    check_post(LINES, R(1) "\n" R(2) "\n", 200, 2, 0);
    check_post(LINES, R(3) "\n{\"nonsense\n", 200, 1, 1);
    check_key("k", R(4), 200, 1, false);
    stop();
    close_store();
    open_store();
    start_again(1);
    ck_assert_uint_eq(feed->count, 2);
    ck_assert_str_eq(feed->records[0].text, R(3));
    ck_assert_uint_eq(feed->records[1].position, 5);
    check_key("k", R(4), 200, 1, true);
    check_post(LINES, R(5), 200, 1, 0);
    ck_assert_uint_eq(feed->sources[0]->flushed.number, 4);
    stop();
    close_store();
    // All is in a checkpoint: the rows go.
    open_store();
    start_again(4);
    ck_assert_uint_eq(feed->count, 0);
    EVENTUALLY(storage_last_number(store, STORAGE_JOURNAL, "http/test") == 0);
    check_key("k", R(4), 200, 1, true);
    stop();
    close_store();
}
END_TEST

START_TEST(many_clients_share_commits) {
    config.ack = ACK_STORED;
    open_store();
    start();
    post_from_many();
    struct storage_statistics figures;
    storage_statistics(store, &figures);
    ck_assert_uint_ge(figures.batches, 400);
    ck_assert_uint_lt(figures.commits, figures.batches);
    stop();
    close_store();
}
END_TEST

int main(void) {
    Suite *suite = suite_create("http_store");
    TCase *cases = tcase_create("all");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, a_restart_goes_on_behind_the_checkpoint);
    tcase_add_test(cases, many_clients_share_commits);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
