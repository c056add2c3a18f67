// SPDX-License-Identifier: Apache-2.0
// Requests of which a part was delivered or refused: what comes again, what is dropped and counted,
// and what of it is known after a restart.
#include "tests/pipeline/runtime/sender_fixture.h"

static void lines_setup(void) {
    setup();
    type.exporter.lines = true;
    sending.queue.batch.flush_timeout.ns = 3600 * (int64_t)SECOND;
}

static uint64_t refused_records(void) {
    return atomic_load(&sender.refused_records);
}

// -- taken ----------------------------------------------------------------------------------------

START_TEST(what_was_taken_does_not_come_again) {
    answers[0] = (struct answer){.refused = true, .taken = 4};
    make(false, false);
    consume("one\ntwo\nthree\n", true);
    ck_assert_uint_eq(block_queue_at(&sender.queue, 0)->records, 3); // lines, not verdicts
    start();
    ck_assert_int_eq(finish(60 * SECOND), STATUS_OK);
    check_sent("two\nthree\n");
    ck_assert_uint_eq(atomic_load(&sender.sent_records), 3);
    ck_assert_uint_eq(atomic_load(&sender.failed_records), 2);
    ck_assert_uint_eq(atomic_load(&sender.queue.bytes), 0);
}
END_TEST

// A paced sink gets several blocks at once: whole ones of what was taken are gone.
START_TEST(what_was_taken_may_end_behind_a_block) {
    type.exporter.pace = box_pace;
    the_pace.not_before_ns = clock_monotonic_ns() + 3600 * SECOND;
    answers[0] = (struct answer){.refused = true, .taken = (size_t[]){4, 8, 10}[_i]};
    make(false, false);
    consume("one\n", true);
    consume("two\n", true);
    consume("3\n4\n", true);
    start();
    ck_assert_int_eq(finish(60 * SECOND), STATUS_OK);
    check_sent((const char *[]){"two\n3\n4\n", "3\n4\n", "4\n"}[_i]);
    ck_assert_uint_eq(atomic_load(&sender.sent_records), 4);
    ck_assert_uint_eq(sender.queue.delivered_sequence, 3);
}
END_TEST

// Without lines the sender cannot count a part: its records are counted with the rest.
START_TEST(a_part_of_what_is_no_line_is_counted_with_the_rest) {
    type.exporter.lines = false;
    answers[0] = (struct answer){.refused = true, .taken = 3};
    make(false, false);
    consume("onetwo", true);
    start();
    ck_assert_int_eq(finish(60 * SECOND), STATUS_OK);
    check_sent("two");
    ck_assert_uint_eq(atomic_load(&sender.sent_records), 2);
}
END_TEST

START_TEST(a_sink_that_takes_something_works_and_waits_begin_anew) {
    answers[0] = (struct answer){.refused = true};
    answers[1] = (struct answer){.refused = true, .taken = 2, .retry_after_ns = 20 * SECOND};
    make(false, false);
    consume("1\n2\n", true);
    start();
    wait_for_requests(2);
    EVENTUALLY(atomic_load(&sender.sent_records) > 0);
    lock_take(&sender.lock);
    ck_assert_uint_eq(sender.queue.taken_bytes, 2);
    ck_assert_uint_eq(sender.retry.backoff_ns, 1000000); // the first wait, not the second
    lock_release(&sender.lock);
    ck_assert_uint_eq(atomic_load(&sender.queue.bytes), 2);
    sender_halt(&sender);
}
END_TEST

// -- refused --------------------------------------------------------------------------------------

START_TEST(a_refused_record_is_dropped_and_the_rest_comes_at_once) {
    sending.retry.initial_interval.ns = 3600 * (int64_t)SECOND; // not waited for
    answers[0] = (struct answer){.refused = true, .taken = 2, .refuses = 4};
    make(false, false);
    consume("1\nbad\n2\n3\n", true);
    start();
    wait_for_requests(2);
    ck_assert_int_eq(finish(60 * SECOND), STATUS_OK); // it was known long ago, and said
    check_sent("2\n3\n");
    ck_assert_uint_eq(refused_records(), 1);
    ck_assert_uint_eq(atomic_load(&sender.sent_records), 3);
    ck_assert_uint_eq(atomic_load(&sender.dropped_records), 0);
}
END_TEST

START_TEST(what_is_refused_at_the_end_is_told) {
    answers[0] = (struct answer){.refused = true, .refuses = _i == 0 ? 4 : 8};
    make(false, false);
    consume("bad\n", false);
    consume("two\n", false);
    start();
    ck_assert_int_eq(finish(60 * SECOND), STATUS_IO);
    ck_assert_str_eq(error.message,
                     _i == 0 ? "exporter/box: it says no; 1 record (4 bytes) was not delivered"
                             : "exporter/box: it says no; 2 records (8 bytes) were not delivered");
    check_sent(_i == 0 ? "two\n" : ""); // with nothing left the closing request comes by itself
    ck_assert_uint_eq(refused_records(), _i == 0 ? 1 : 2);
}
END_TEST

START_TEST(every_record_may_be_refused_by_itself) {
    answers[0] = answers[1] = (struct answer){.refused = true, .refuses = 2};
    answers[2] = (struct answer){.refused = true};
    make(false, false);
    consume("1\n2\n3\n", true);
    start();
    wait_for_requests(4);
    ck_assert_int_eq(finish(60 * SECOND), STATUS_OK);
    check_sent("3\n");
    ck_assert_uint_eq(refused_records(), 2);
}
END_TEST

START_TEST(a_dead_sink_has_taken_what_it_says) {
    type.exporter.lines = _i == 0;
    answers[0] = (struct answer){.refused = true, .taken = 2, .sink_dead = true};
    make(false, false);
    consume("1\n2\n3\n", true);
    start();
    wait_for_failure();
    ck_assert_int_eq(finish(60 * SECOND), STATUS_IO);
    ck_assert_str_eq(error.message,
                     "exporter/box: it says no; 2 records (4 bytes) were not delivered");
    ck_assert_uint_eq(atomic_load(&sender.dropped_records), 2);
}
END_TEST

// The log holds back what comes again within its window, and says how much.
START_TEST(refusals_are_logged_within_the_rule) {
    char path[] = "/tmp/culprit-sender-XXXXXX", text[4096] = "";
    int file = mkstemp(path), kept = dup(STDERR_FILENO);
    ck_assert_int_ge(file, 0);
    dup2(file, STDERR_FILENO);
    log_configure(LOG_ERROR, LOG_CONSOLE);
    for (int i = 0; i < 5; i++)
        answers[i] = (struct answer){.refused = true, .refuses = 2};
    make(false, false);
    consume("1\n2\n3\n4\n5\n", true);
    start();
    wait_for_requests(5);
    (void)finish(60 * SECOND);
    log_flush();
    dup2(kept, STDERR_FILENO);
    ck_assert_int_gt(pread(file, text, sizeof text - 1, 0), 0);
    unlink(path);
    close(file);
    close(kept);
    ck_assert_ptr_nonnull(strstr(text,
                                 "C3006 exporter/box: the sink refused a record, which is "
                                 "dropped: it says no\n"));
    ck_assert_ptr_nonnull(strstr(text, "it says no (4 more in 10 s)\n"));
}
END_TEST

// -- a restart ------------------------------------------------------------------------------------

START_TEST(a_restart_goes_on_within_a_block) {
    make(false, true);
    ck_assert_int_eq(sender_resume(&sender, 9, 6, SLICE(""), &error), STATUS_OK);
    block_queue_restore(&sender.queue, 7, SLICE("1\n2\n3\n"), 3);
    block_queue_restore(&sender.queue, 8, SLICE("4\n"), 1);
    ck_assert(block_queue_restore_taken(&sender.queue, 4, 2));
    ck_assert_uint_eq(atomic_load(&sender.queue.bytes), 4);
    start();
    ck_assert_int_eq(finish(60 * SECOND), STATUS_OK);
    check_sent("3\n|4\n");
    ck_assert_uint_eq(atomic_load(&sender.sent_records), 2);
}
END_TEST

START_TEST(what_cannot_have_been_taken_is_sent_whole) {
    make(false, true);
    ck_assert_int_eq(sender_resume(&sender, 9, 6, SLICE(""), &error), STATUS_OK);
    ck_assert(!block_queue_restore_taken(&sender.queue, 2, 1)); // there is no block
    block_queue_restore(&sender.queue, _i == 0 ? 8 : 7, SLICE("1\n2\n3\n"), 3);
    if (_i == 0)
        ck_assert(!block_queue_restore_taken(&sender.queue, 2, 1)); // it was of the block before
    ck_assert(!block_queue_restore_taken(&sender.queue, 6, 1));
    ck_assert(!block_queue_restore_taken(&sender.queue, 2, 4));
    ck_assert(block_queue_restore_taken(&sender.queue, 0, 0));
    start();
    ck_assert_int_eq(finish(60 * SECOND), STATUS_OK);
    check_sent("1\n2\n3\n");
}
END_TEST

// -- inputs that end ------------------------------------------------------------------------------

// A record is never cut in pieces, and one that is refused leaves the others be.
START_TEST(lines_leave_whole_where_inputs_end) {
    static char text[1001];
    memset(text, 'x', sizeof text - 1);
    text[999] = '\n';
    encode_times = 1000;
    answers[0] = (struct answer){.refused = true, .taken = 400000, .refuses = 1000};
    make(true, false);
    consume(text, true);
    ck_assert_uint_eq(request_count, 2);
    ck_assert_uint_eq(sent_bytes, 1000000 - 401000);
    ck_assert_uint_eq(refused_records(), 1);
    ck_assert_int_eq(finish(60 * SECOND), STATUS_IO);
    ck_assert_str_eq(error.message,
                     "exporter/box: it says no; 1 record (1000 bytes) was not delivered");
}
END_TEST

START_TEST(a_document_goes_on_where_it_was_taken) {
    type.exporter.lines = false;
    answers[0] = (struct answer){.refused = true, .taken = 2};
    make(true, false);
    consume("abcdef", true);
    ck_assert_int_eq(finish(60 * SECOND), STATUS_OK);
    check_sent("cdef");
}
END_TEST

START_TEST(a_document_that_is_refused_in_part_is_of_no_use) {
    type.exporter.lines = false;
    answers[0] = (struct answer){.refused = true, .taken = 2, .refuses = 2};
    make(true, false);
    consume("abcdef", true);
    ck_assert_int_eq(finish(60 * SECOND), STATUS_IO);
    ck_assert_uint_eq(request_count, 1);
    ck_assert_str_eq(error.message,
                     "exporter/box: it says no; 2 records (4 bytes) were not delivered");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("sender partial");
    TCase *tests = tcase_create("partial");
    tcase_add_checked_fixture(tests, lines_setup, teardown);
    tcase_add_test(tests, what_was_taken_does_not_come_again);
    tcase_add_loop_test(tests, what_was_taken_may_end_behind_a_block, 0, 3);
    tcase_add_test(tests, a_part_of_what_is_no_line_is_counted_with_the_rest);
    tcase_add_test(tests, a_sink_that_takes_something_works_and_waits_begin_anew);
    tcase_add_test(tests, a_refused_record_is_dropped_and_the_rest_comes_at_once);
    tcase_add_loop_test(tests, what_is_refused_at_the_end_is_told, 0, 2);
    tcase_add_test(tests, every_record_may_be_refused_by_itself);
    tcase_add_loop_test(tests, a_dead_sink_has_taken_what_it_says, 0, 1);
    tcase_add_test(tests, refusals_are_logged_within_the_rule);
    tcase_add_test(tests, a_restart_goes_on_within_a_block);
    tcase_add_loop_test(tests, what_cannot_have_been_taken_is_sent_whole, 0, 2);
    tcase_add_test(tests, lines_leave_whole_where_inputs_end);
    tcase_add_test(tests, a_document_goes_on_where_it_was_taken);
    tcase_add_test(tests, a_document_that_is_refused_in_part_is_of_no_use);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
