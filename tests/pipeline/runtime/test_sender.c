// SPDX-License-Identifier: Apache-2.0
// One sender by itself: what leaves together, what is tried again, what is dropped, and what is
// there after a restart.
#include "tests/pipeline/runtime/sender_fixture.h"

// -- leaving --------------------------------------------------------------------------------------

START_TEST(what_is_judged_leaves_by_itself_and_the_rest_is_gathered) {
    sending.queue.batch.flush_timeout.ns = 3600 * (int64_t)SECOND;
    make(false, false);
    consume("a", true);
    consume("b", false);
    consume("c", false);
    consume("", true); // says nothing, and closes nothing
    start();
    ck_assert_int_eq(finish(60 * SECOND), STATUS_OK);
    check_sent("a|bc");
    ck_assert_uint_eq(atomic_load(&sender.sent_records), 6);
    ck_assert_uint_eq(sender.queue.delivered_sequence, 2);
    ck_assert_uint_eq(atomic_load(&sender.queue.bytes), 0);
}
END_TEST

START_TEST(what_is_gathered_leaves_when_it_waited_long_enough) {
    sending.queue.batch.flush_timeout.ns = 30000000;
    make(false, false);
    start();
    consume("a", false);
    wait_for_requests(1);
    consume("b", false);
    wait_for_requests(2);
    pthread_mutex_lock(&sink_lock);
    ck_assert_str_eq(sent, "a|b|");
    pthread_mutex_unlock(&sink_lock);
    ck_assert_int_eq(finish(60 * SECOND), STATUS_OK);
}
END_TEST

static bool box_takes_events(const void *config) {
    (void)config;
    return true;
}

// What passes on events counts those that its pipeline chose.
START_TEST(events_are_the_records_of_what_passes_them_on) {
    static struct event events[3];
    uint64_t selected = 5;
    type.exporter.takes_events = box_takes_events;
    make(false, false);
    struct batch batch = {.events = events, .event_count = 3};
    next_text = "a";
    sender_consume(&sender, &batch);
    batch.selected = &selected;
    sender_consume(&sender, &batch);
    start();
    ck_assert_int_eq(finish(60 * SECOND), STATUS_OK);
    ck_assert_uint_eq(atomic_load(&sender.sent_records), 3 + 2);
}
END_TEST

START_TEST(a_block_of_max_size_leaves_and_full_queues_are_told) {
    sending.queue.batch.flush_timeout.ns = 3600 * (int64_t)SECOND;
    sending.queue.batch.max_size.bytes = 4;
    sending.queue.queue_size.bytes = 6;
    make(false, false);
    consume("abcd", false);
    ck_assert(!sender_is_full(&sender));
    consume("ef", false);
    ck_assert(sender_is_full(&sender));
    start();
    ck_assert_int_eq(finish(60 * SECOND), STATUS_OK);
    check_sent("abcd|ef");
    ck_assert(!sender_is_full(&sender));
}
END_TEST

START_TEST(many_blocks_stay_in_order) {
    make(false, false);
    char want[256] = "";
    for (int i = 0; i < 40; i++) {
        char text[2] = {(char)('A' + i), '\0'};
        consume(text, true);
        strcat(strcat(want, text), i == 39 ? "" : "|");
    }
    start();
    ck_assert_int_eq(finish(60 * SECOND), STATUS_OK);
    check_sent(want);
}
END_TEST

START_TEST(a_paced_sink_gets_all_that_waits_at_once) {
    type.exporter.pace = box_pace;
    the_pace.not_before_ns = clock_monotonic_ns() + 3600 * SECOND;
    make(false, false);
    start();
    consume("a", true);
    consume("b", true);
    consume("c", false);
    ck_assert_int_eq(finish(60 * SECOND), STATUS_OK);
    check_sent("abc");
    ck_assert_uint_eq(sender.queue.delivered_sequence, 3);
}
END_TEST

START_TEST(a_paced_sink_is_called_with_nothing_when_it_wants) {
    type.exporter.pace = box_pace;
    the_pace = (struct send_pace){0, clock_monotonic_ns()};
    make(false, false);
    start();
    wait_for_requests(1);
    pthread_mutex_lock(&sink_lock);
    the_pace.again_ns = UINT64_MAX;
    ck_assert_int_eq(sent[0], '|');
    pthread_mutex_unlock(&sink_lock);
    ck_assert_int_eq(finish(60 * SECOND), STATUS_OK);
}
END_TEST

START_TEST(what_waits_for_a_checkpoint_leaves_behind_it) {
    type.exporter.waits_for_checkpoint = box_waits;
    make(false, true);
    start();
    consume("a", true);
    EVENTUALLY(atomic_load(&asked) > 0);
    lock_take(&sender.lock);
    block_queue_at(&sender.queue, 0)->ticket = 5;
    lock_release(&sender.lock);
    sender_durable(&sender, 4);
    clock_sleep_ns(20000000);
    lock_take(&sender.lock);
    ck_assert_uint_eq(sender.queue.count, 1);
    ck_assert_str_eq(sent, "");
    lock_release(&sender.lock);
    sender_durable(&sender, 5);
    wait_for_requests(1);
    ck_assert_int_eq(finish(60 * SECOND), STATUS_OK);
    check_sent("a");
}
END_TEST

static struct route_config box_route_config;
static const struct route_config *box_route(const void *config) {
    (void)config;
    return &box_route_config;
}

// What several pipelines hold back of one another depends on who came first.
START_TEST(what_was_held_back_in_a_race_waits_for_a_checkpoint) {
    type.exporter.route = box_route;
    component = (struct plan_component){.type = &type, .id = "box", .used = true};
    for (int i = 0; i < 4; i++) {
        box_route_config.max_per_minute = i & 1;
        sender = (struct sender){.component = &component,
                                 .site = "exporter/box",
                                 .with_store = true,
                                 .shared = (i & 2) != 0};
        sender_init(&sender);
        ck_assert_int_eq(sender.waits, i == 3);
        if (i < 3)
            sender_release(&sender);
    }
}
END_TEST

// -- failing --------------------------------------------------------------------------------------

START_TEST(a_failed_request_is_tried_again_as_it_was) {
    answers[0].refused = answers[1].refused = true;
    make(false, false);
    start();
    consume("a", true);
    consume("b", true);
    ck_assert_int_eq(finish(60 * SECOND), STATUS_OK);
    check_sent("a|b");
    ck_assert_uint_eq(atomic_load(&sender.failed_records), 4);
    ck_assert_uint_eq(atomic_load(&sender.dropped_records), 0);
}
END_TEST

// Without retries, and when they took too long.
START_TEST(what_is_over_is_dropped_and_the_next_goes_on) {
    answers[0].refused = true;
    if (_i == 0)
        sending.retry.enabled = false;
    else
        sending.retry.max_elapsed_time.ns = 1;
    make(false, false);
    consume("a", true);
    consume("b", true);
    answers[1].refused = _i == 1; // its own time begins anew
    start();
    (void)finish(60 * SECOND);
    ck_assert_ptr_null(strchr(sent, 'a'));
    ck_assert_uint_ge(atomic_load(&sender.dropped_records), 2);
    if (_i == 0)
        check_sent("b");
}
END_TEST

START_TEST(a_sink_may_ask_for_a_longer_wait_within_bounds) {
    answers[0] = (struct answer){.refused = true, .retry_after_ns = (_i == 0 ? 20 : 9999) * SECOND};
    sending.retry.max_interval.ns = 30 * (int64_t)SECOND;
    make(false, false);
    start();
    consume("a", true);
    wait_for_failure();
    lock_take(&sender.lock);
    uint64_t wait = sender.retry.at_ns - sender.retry.failing_since_ns;
    ck_assert_uint_ge(wait, (_i == 0 ? 20 : 30) * SECOND);
    ck_assert_uint_lt(sender.retry.at_ns, clock_monotonic_ns() + (_i == 0 ? 20 : 30) * SECOND + 1);
    lock_release(&sender.lock);
    sender_halt(&sender);
    ck_assert_uint_eq(sender.queue.count, 1); // it is still there
    ck_assert_str_eq(sent, "");
}
END_TEST

// A start after a crash keeps to what the sink asked for before it, within the same bound.
START_TEST(what_a_sink_asked_for_outlives_a_start) {
    answers[0] = (struct answer){.refused = true, .retry_after_ns = 20 * SECOND};
    make(false, true);
    start();
    consume("a", true);
    wait_for_failure();
    lock_take(&sender.lock);
    uint64_t until = retry_asked_until_unix_ns(&sender.retry), now = clock_unix_ns();
    lock_release(&sender.lock);
    ck_assert_uint_gt(until, now);
    ck_assert_uint_le(until, now + 20 * SECOND);
    ck_assert_uint_eq(atomic_load(&asked), 1); // it is written down at once
    sender_halt(&sender);
    sender_release(&sender);
    make(false, true);
    retry_hold_until(&sender.retry,
                     _i == 0 ? until : until + 9999 * SECOND); // the clock was turned
    block_queue_restore(&sender.queue, 1, SLICE("a"), 1);
    ck_assert_uint_gt(sender.retry.at_ns, clock_monotonic_ns());
    ck_assert_uint_le(sender.retry.at_ns, clock_monotonic_ns() + 30 * SECOND);
    start();
    ck_assert_int_eq(finish(SECOND / 20), STATUS_IO);
    ck_assert_uint_eq(request_count, 1); // that of before
    ck_assert_uint_eq(sender.queue.count, 1);
}
END_TEST

START_TEST(waits_grow_up_to_the_longest) {
    answers[0].refused = answers[1].refused = answers[2].refused = answers[3].refused = true;
    sending.retry.multiplier = 2;
    sending.retry.max_interval.ns = 3000000;
    make(false, false);
    start();
    consume("a", true);
    wait_for_requests(4);
    ck_assert_int_eq(finish(60 * SECOND), STATUS_OK);
    ck_assert_uint_eq(sender.retry.backoff_ns, 0); // forgotten with the success
    check_sent("a");
}
END_TEST

START_TEST(a_dead_sink_gets_nothing_more_and_the_rest_is_counted) {
    answers[0] = (struct answer){.refused = true, .sink_dead = true};
    make(false, false);
    consume("abc", true);
    consume("defg", true);
    start();
    wait_for_failure();
    EVENTUALLY(atomic_load(&sender.dropped_records) >= 4);
    consume("hi", true);
    ck_assert_uint_eq(atomic_load(&sender.dropped_records), 6);
    ck_assert_int_eq(finish(60 * SECOND), STATUS_IO);
    ck_assert_str_eq(error.message, "exporter/box: it says no; 6 records were not delivered");
    ck_assert_uint_eq(request_count, 1);
}
END_TEST

START_TEST(the_end_does_not_wait_beyond_its_deadline) {
    for (int i = 0; i < 8; i++)
        answers[i] = (struct answer){.refused = true, .retry_after_ns = 20 * SECOND};
    make(false, false);
    start();
    consume("abc", true);
    wait_for_failure(); // else there was no time for the first attempt, and that would be told
    ck_assert_int_eq(finish(SECOND / 20), STATUS_IO);
    ck_assert_str_eq(error.message,
                     "exporter/box: it says no; 2 records (3 bytes) were not delivered");
}
END_TEST

// Nothing failed, there was only no time: that is told, too.
START_TEST(what_there_was_no_time_for_is_told) {
    sending.queue.batch.flush_timeout.ns = 3600 * (int64_t)SECOND;
    make(false, false);
    start();
    consume("abc", false);
    ck_assert_int_eq(finish(0), STATUS_IO);
    ck_assert_str_eq(error.message,
                     "exporter/box: there was no time for more; 2 records (3 bytes) "
                     "were not delivered");
    ck_assert_uint_eq(sender.queue.count, 1); // for a store
}
END_TEST

static atomic_bool held;
static enum status box_send_held(void *instance, const struct request *request,
                                 struct send_outcome *outcome, struct error *inner) {
    while (atomic_load(&held))
        clock_sleep_ns(1000000);
    return box_send(instance, request, outcome, inner);
}

START_TEST(a_delivery_that_does_not_end_is_told_and_not_waited_for) {
    type.exporter.send = box_send_held;
    atomic_store(&held, true);
    make(false, false);
    start();
    consume("abc", true);
    EVENTUALLY(atomic_load(&sender.in_flight) > 0);
    ck_assert_int_eq(finish(SECOND / 50), STATUS_IO);
    ck_assert_str_eq(error.message,
                     "exporter/box: a delivery did not end in time; 2 records (3 "
                     "bytes) were not delivered");
    ck_assert(sender.stuck);
    atomic_store(&held, false);
    sender_halt(&sender);
}
END_TEST

START_TEST(what_is_dropped_at_the_end_is_told) {
    sending.queue.batch.flush_timeout.ns = 3600 * (int64_t)SECOND;
    sending.retry.enabled = false;
    answers[0].refused = true;
    make(false, false);
    start();
    consume("abc", false);
    ck_assert_int_eq(finish(60 * SECOND), STATUS_IO);
    ck_assert_ptr_nonnull(strstr(error.message, "2 records (3 bytes) were not delivered"));
}
END_TEST

START_TEST(what_is_too_large_is_dropped_alone) {
    make(false, false);
    consume("a", false);
    encode_fails = true;
    consume("half of it", false);
    encode_fails = false;
    consume("b", true);
    start();
    ck_assert_int_eq(finish(60 * SECOND), STATUS_OK);
    check_sent("a|b");
    ck_assert_uint_eq(atomic_load(&sender.dropped_records), 2);
}
END_TEST

// -- inputs that end: when a piece fails ----------------------------------------------------------

// The wait is the configured one, or the sink's; a short one of our own would come first.
START_TEST(a_piece_waits_as_long_as_it_is_told_to) {
    uint64_t wait_ns = SECOND * 4 / 10;
    for (int i = 0; i < 2; i++)
        answers[i] = (struct answer){.refused = true, .retry_after_ns = _i == 0 ? 0 : wait_ns};
    sending.retry.initial_interval.ns = _i == 0 ? (int64_t)wait_ns : 1000000;
    sending.retry.multiplier = 1;
    make(true, false);
    consume("abc", true);
    ck_assert_uint_eq(request_count, 3);
    ck_assert_uint_eq(early_requests, 0);
    ck_assert_str_eq(sent, "abc|");
}
END_TEST

// Without retries, and when they took too long: the rest of the document is counted, not sent.
START_TEST(a_piece_that_is_over_is_dropped_with_its_document) {
    static char text[1000];
    memset(text, 'x', sizeof text - 1);
    encode_times = 1000; // 999,000 bytes
    for (int i = 0; i < 8; i++)
        answers[i].refused = true;
    if (_i == 0)
        sending.retry.enabled = false;
    else
        sending.retry.max_elapsed_time.ns = 1;
    make(true, false);
    consume(text, true);
    ck_assert_uint_le(request_count, _i == 0 ? 1 : 2);
    ck_assert_str_eq(sent, "");
    ck_assert_uint_eq(atomic_load(&sender.dropped_records), 2);
    ck_assert_int_eq(finish(60 * SECOND), STATUS_IO);
    ck_assert_str_eq(error.message,
                     "exporter/box: it says no; 2 records (999000 bytes) were not delivered");
    ck_assert_uint_le(request_count, 2); // no end is put to what is torn
}
END_TEST

// Without a bound among the options there is one over inputs that end: no wait goes beyond it but
// one that the sink asks for.
START_TEST(a_sink_that_is_never_there_is_given_up) {
    bool asks = _i % 2 == 1, is_paced = _i >= 2;
    for (int i = 0; i < 8; i++)
        answers[i] = (struct answer){.refused = true, .retry_after_ns = asks ? SECOND * 3 / 10 : 0};
    type.exporter.pace = is_paced ? box_pace : NULL;
    sending.retry.initial_interval.ns = (asks ? 1 : 3600000) * 1000000LL;
    sending.retry.max_interval.ns = 3600 * (int64_t)SECOND;
    sender_patience_ns = SECOND / 10;
    make(true, false);
    consume("abc", true);
    ck_assert_int_eq(finish(60 * SECOND), STATUS_IO);
    ck_assert_uint_eq(request_count, 2);
    ck_assert_uint_eq(early_requests, 0);
    ck_assert_str_eq(error.message,
                     "exporter/box: it says no; 2 records (3 bytes) were not delivered");
}
END_TEST

// What is paced waits for one request, and that is dropped by the same rule.
START_TEST(a_paced_request_that_is_over_is_dropped) {
    type.exporter.pace = box_pace;
    for (int i = 0; i < 8; i++)
        answers[i].refused = true;
    sending.retry.enabled = false;
    make(true, false);
    consume("abc", true);
    ck_assert_int_eq(finish(60 * SECOND), STATUS_IO);
    ck_assert_uint_eq(request_count, 1);
    ck_assert_uint_eq(atomic_load(&sender.dropped_records), 2);
    ck_assert_str_eq(error.message,
                     "exporter/box: it says no; 2 records (3 bytes) were not "
                     "delivered");
}
END_TEST

// -- going on -------------------------------------------------------------------------------------

START_TEST(blocks_of_before_leave_first) {
    type.exporter.delivered = box_delivered;
    type.exporter.resume = box_resume;
    make(false, true);
    ck_assert_int_eq(sender_resume(&sender, 9, 6, SLICE("what was said"), &error), STATUS_OK);
    ck_assert_str_eq(resumed, "what was said");
    block_queue_restore(&sender.queue, 7, SLICE("seven"), 3);
    block_queue_restore(&sender.queue, 8, SLICE("eight"), 4);
    ck_assert_uint_eq(atomic_load(&sender.queue.bytes), 10);
    sender_note_place(&sender); // known already
    ck_assert(slice_equal(buffer_slice(&sender.delivered), SLICE("what was said")));
    consume("new", true);
    ck_assert_uint_eq(block_queue_at(&sender.queue, 2)->sequence, 9);
    start();
    ck_assert_int_eq(finish(60 * SECOND), STATUS_OK);
    check_sent("seven|eight|new");
    ck_assert_uint_eq(sender.queue.delivered_sequence, 9);
    ck_assert_uint_eq(atomic_load(&sender.sent_records), 9);
    ck_assert(slice_equal(buffer_slice(&sender.delivered), SLICE("so far")));
}
END_TEST

START_TEST(a_place_that_is_gone_is_an_error_that_names_the_exporter) {
    type.exporter.resume = box_resume;
    resume_fails = true;
    make(false, true);
    ck_assert_int_eq(sender_resume(&sender, 2, 1, SLICE("x"), &error), STATUS_BAD_DATA);
    ck_assert_str_eq(error.message, "exporter/box: no such place");
}
END_TEST

START_TEST(the_first_place_is_asked_for) {
    type.exporter.delivered = box_delivered;
    make(false, true);
    sender_note_place(&sender);
    ck_assert(slice_equal(buffer_slice(&sender.delivered), SLICE("so far")));
}
END_TEST

// -- inputs that end ------------------------------------------------------------------------------

START_TEST(a_long_document_leaves_in_pieces) {
    static char text[1000];
    memset(text, 'x', sizeof text - 1);
    encode_times = 1000; // 999,000 bytes
    make(true, false);
    consume(text, true);
    ck_assert_uint_eq(sent_bytes, 999000);
    ck_assert_uint_eq(request_count, 999000 / SENDER_PIECE_BYTES + 1);
    ck_assert_int_eq(finish(60 * SECOND), STATUS_OK);
    ck_assert_uint_eq(request_count, 999000 / SENDER_PIECE_BYTES + 2); // the last one, with nothing
    ck_assert_uint_eq(sender.queue.count, 0);
}
END_TEST

START_TEST(a_piece_is_tried_until_the_run_is_stopped) {
    for (int i = 0; i < 8; i++)
        answers[i].refused = true;
    answers[2].refused = _i == 0 ? false : true;
    make(true, false);
    atomic_store(&stopping, _i == 1);
    consume("abc", true);
    if (_i == 0) {
        ck_assert_str_eq(sent, "abc|");
        ck_assert_uint_eq(request_count, 3);
    } else {
        ck_assert_uint_eq(request_count, 1);
        ck_assert(sender.dead);
        ck_assert_int_eq(finish(0), STATUS_IO);
        ck_assert_ptr_nonnull(strstr(error.message, "it says no"));
    }
}
END_TEST

START_TEST(a_reader_that_went_away_is_owed_nothing) {
    answers[0] = (struct answer){.refused = true, .status = STATUS_STOPPED, .sink_dead = true};
    make(true, false);
    consume("abc", true);
    consume("def", true);
    ck_assert_uint_eq(request_count, 1);
    ck_assert_int_eq(finish(60 * SECOND), STATUS_OK);
}
END_TEST

START_TEST(a_paced_sink_gets_one_request_at_the_end_of_inputs) {
    type.exporter.pace = box_pace;
    answers[0].refused = answers[1].refused = true;
    make(true, false);
    consume("a", true);
    consume("b", true);
    ck_assert_uint_eq(request_count, 0);
    ck_assert_int_eq(finish(0), STATUS_OK); // what it holds is tried beyond the deadline …
    check_sent("ab");
    sender_release(&sender);
    request_count = 0;
    make(true, false);
    consume("c", true);
    atomic_store(&stopping, true); // … until somebody asks to stop
    ck_assert_int_eq(finish(0), STATUS_IO);
    ck_assert_ptr_nonnull(strstr(error.message, "2 records (1 byte) were not delivered"));
}
END_TEST

int main(void) {
    Suite *suite = suite_create("sender");
    TCase *tests = tcase_create("sender");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, what_is_judged_leaves_by_itself_and_the_rest_is_gathered);
    tcase_add_test(tests, what_is_gathered_leaves_when_it_waited_long_enough);
    tcase_add_test(tests, events_are_the_records_of_what_passes_them_on);
    tcase_add_test(tests, a_block_of_max_size_leaves_and_full_queues_are_told);
    tcase_add_test(tests, many_blocks_stay_in_order);
    tcase_add_test(tests, a_paced_sink_gets_all_that_waits_at_once);
    tcase_add_test(tests, a_paced_sink_is_called_with_nothing_when_it_wants);
    tcase_add_test(tests, what_waits_for_a_checkpoint_leaves_behind_it);
    tcase_add_test(tests, what_was_held_back_in_a_race_waits_for_a_checkpoint);
    tcase_add_test(tests, a_failed_request_is_tried_again_as_it_was);
    tcase_add_loop_test(tests, what_is_over_is_dropped_and_the_next_goes_on, 0, 2);
    tcase_add_loop_test(tests, a_sink_may_ask_for_a_longer_wait_within_bounds, 0, 2);
    tcase_add_loop_test(tests, what_a_sink_asked_for_outlives_a_start, 0, 2);
    tcase_add_test(tests, waits_grow_up_to_the_longest);
    tcase_add_test(tests, a_dead_sink_gets_nothing_more_and_the_rest_is_counted);
    tcase_add_test(tests, the_end_does_not_wait_beyond_its_deadline);
    tcase_add_test(tests, what_there_was_no_time_for_is_told);
    tcase_add_test(tests, a_delivery_that_does_not_end_is_told_and_not_waited_for);
    tcase_add_test(tests, what_is_dropped_at_the_end_is_told);
    tcase_add_test(tests, what_is_too_large_is_dropped_alone);
    tcase_add_test(tests, blocks_of_before_leave_first);
    tcase_add_test(tests, a_place_that_is_gone_is_an_error_that_names_the_exporter);
    tcase_add_test(tests, the_first_place_is_asked_for);
    tcase_add_test(tests, a_long_document_leaves_in_pieces);
    tcase_add_loop_test(tests, a_piece_is_tried_until_the_run_is_stopped, 0, 2);
    tcase_add_loop_test(tests, a_piece_waits_as_long_as_it_is_told_to, 0, 2);
    tcase_add_loop_test(tests, a_piece_that_is_over_is_dropped_with_its_document, 0, 2);
    tcase_add_loop_test(tests, a_sink_that_is_never_there_is_given_up, 0, 4);
    tcase_add_test(tests, a_paced_request_that_is_over_is_dropped);
    tcase_add_test(tests, a_reader_that_went_away_is_owed_nothing);
    tcase_add_test(tests, a_paced_sink_gets_one_request_at_the_end_of_inputs);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
