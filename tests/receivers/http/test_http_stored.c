// SPDX-License-Identifier: Apache-2.0
// The HTTP receiver on a fake store: repeats, answers that wait, and what a restart offers again.
#include "tests/receivers/http/http_fixture.h"

// -- the key ------------------------------------------------------------------------------------

START_TEST(repeats_are_told_the_same) {
    start();
    check_key("one", R(1) "\n" R(2) "\n{\"{\"x\n", 202, 2, false);
    check_key("one", R(1) "\n" R(2) "\n{\"{\"x\n", 202, 2, true);
    check_key("two", "{\"x\n", 400, 0, false);
    check_key("two", "{\"x\n", 400, 0, true);
    ck_assert_uint_eq(fake_feed_accepted(feed, NULL), 2);
    // Four are remembered: with a fifth the first is forgotten.
    for (int i = 3; i <= 5; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%d", i);
        check_key(key, R(3), 202, 1, false);
    }
    check_key("two", "{\"x\n", 400, 0, true);
    check_key("one", R(1), 202, 1, false);
    check_key("two", R(1), 202, 1, false);
    stop();
}
END_TEST

START_TEST(keys_must_be_right) {
    start();
    char headers[600];
    snprintf(headers, sizeof headers, LINES "Idempotency-Key: %0256d\r\n", 0);
    check_error(headers, R(1), 400, "bad_idempotency_key");
    check_error(LINES "Idempotency-Key: \xc3\xa4\r\n", R(1), 400, "bad_idempotency_key");
    snprintf(headers, sizeof headers, LINES "Idempotency-Key: %0255d\r\n", 0);
    check_post(headers, R(1), 202, 1, 0);
    stop();
}
END_TEST

// -- ack: stored --------------------------------------------------------------------------------

START_TEST(stored_needs_a_store) {
    config.ack = ACK_STORED;
    memset(&receiver, 0, sizeof receiver);
    ck_assert_int_eq(component_start(&receiver_http, &receiver, &config, &context, &error),
                     STATUS_CONFIG);
    ck_assert_ptr_nonnull(strstr(error.message, "file_storage"));
    component_stop(&receiver_http, &receiver);
}
END_TEST

static bool has_answer(int descriptor) {
    char byte;
    return recv(descriptor, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
}

START_TEST(no_answer_before_it_is_durable) {
    config.ack = ACK_STORED;
    store = fake_store_create();
    start();
    fake_store_hold(store, true);
    int clients[5];
    for (int i = 0; i < 5; i++) {
        clients[i] = client_connect(port());
        // The last two have the same key.
        client_request(clients[i], "POST", "/v1/events",
                       i < 3 ? LINES : LINES "Idempotency-Key: k\r\n", R(1), strlen(R(1)));
    }
    // All have been offered, though there are two threads: waiting holds up none.
    EVENTUALLY(fake_feed_accepted(feed, NULL) >= 4);
    ck_assert_uint_eq(fake_feed_accepted(feed, NULL), 4);
    usleep(200000);
    for (int i = 0; i < 5; i++)
        ck_assert(!has_answer(clients[i]));
    fake_store_hold(store, false);
    int repeated = 0;
    for (int i = 0; i < 5; i++) {
        struct answer answer = client_answer(clients[i], false);
        ck_assert_int_eq(answer.status, 200);
        repeated += strstr(answer.body, "\"repeated\":true") != NULL;
        answer_free(&answer);
        close(clients[i]);
    }
    ck_assert_int_eq(repeated, 1);
    stop();
}
END_TEST

START_TEST(what_no_checkpoint_holds_is_offered_again) {
    config.ack = ACK_STORED;
    store = fake_store_create();
    atomic_store(&feed->unsafe, true);
    start();
    check_post(LINES, R(1) "\n" R(2) "\n", 200, 2, 0);
    check_post(LINES, R(3) "\n{\"nonsense\n", 200, 1, 1);
    check_key("k", R(4), 200, 1, false);
    ck_assert_uint_eq(fake_store_rows(store, STORAGE_JOURNAL), 3);
    ck_assert_uint_eq(fake_store_rows(store, STORAGE_REPEATS), 1);
    stop();
    // A checkpoint holds the first.
    start_again(1);
    ck_assert_uint_eq(fake_feed_accepted(feed, NULL), 2);
    ck_assert_uint_eq(feed->count, 2); // what was refused is not offered again
    ck_assert_str_eq(feed->records[0].text, R(3));
    ck_assert_uint_eq(feed->records[0].position, 3);
    ck_assert_str_eq(feed->records[1].text, R(4));
    ck_assert_uint_eq(feed->records[1].position, 5);
    ck_assert_uint_eq(feed->sources[0]->flushed.number, 3);
    // The key is still known, and numbers go on.
    check_key("k", R(4), 200, 1, true);
    check_post(LINES, R(5), 200, 1, 0);
    ck_assert_uint_eq(feed->sources[0]->flushed.number, 4);
    ck_assert_uint_eq(feed->records[2].position, 6);
    stop();
    // All is in a checkpoint: rows go, within seconds.
    start_again(4);
    ck_assert_uint_eq(fake_feed_accepted(feed, NULL), 0);
    EVENTUALLY(fake_store_rows(store, STORAGE_JOURNAL) == 0);
    check_key("k", R(4), 200, 1, true);
    stop();
}
END_TEST

START_TEST(a_damaged_entry_holds_up_nothing) {
    config.ack = ACK_STORED;
    store = fake_store_create();
    atomic_store(&feed->unsafe, true);
    start();
    for (int i = 0; i < 4; i++)
        check_post(LINES, R(1), 200, 1, 0);
    stop();
    fake_store_damage(store, STORAGE_JOURNAL, 2);
    start_again(0);
    ck_assert_uint_eq(fake_feed_accepted(feed, NULL), 3);
    ck_assert_uint_eq(feed->sources[0]->flushed.number, 4);
    stop();
}
END_TEST

// A row as the version before wrote it: its records stand there as they are.
static void put_row(uint64_t number, char version, char position, char count, const char *record) {
    char row[512] = {version, position, [9] = count};
    size_t size = 13;
    for (char i = 0; i < count; i++) {
        row[size] = (char)strlen(record);
        ck_assert_uint_lt(strlen(record), 128);
        memcpy(row + size + 4, record, strlen(record));
        size += 4 + strlen(record);
    }
    struct storage_batch *batch = storage_batch_new(store);
    storage_put(batch, STORAGE_JOURNAL, "http/test", number, (struct slice){row, size});
    storage_submit(batch);
}

START_TEST(rows_of_other_versions) {
    config.ack = ACK_STORED;
    store = fake_store_create();
    atomic_store(&feed->unsafe, true);
    put_row(1, 1, 1, 2, R(1));
    put_row(2, 5, 3, 1, R(2)); // a later version's: left out
    put_row(3, 3, 4, 1, R(3)); // no block: left out
    put_row(4, 1, 5, 1, R(4));
    start();
    EVENTUALLY(fake_feed_accepted(feed, NULL) >= 3);
    ck_assert_uint_eq(fake_feed_accepted(feed, NULL), 3);
    ck_assert_str_eq(feed->records[0].text, R(1));
    ck_assert_uint_eq(feed->records[1].position, 2);
    ck_assert_str_eq(feed->records[2].text, R(4));
    ck_assert_uint_eq(feed->records[2].position, 5);
    check_post(LINES, R(5), 200, 1, 0);
    ck_assert_uint_eq(feed->sources[0]->flushed.number, 5);
    stop();
}
END_TEST

// A request of many records that are alike takes a fraction of its bytes, and comes back whole.
START_TEST(what_is_alike_is_packed) {
    enum { RECORDS = 200 };
    config.ack = ACK_STORED;
    store = fake_store_create();
    atomic_store(&feed->unsafe, true);
    start();
    size_t size = 0;
    char *body = memory_take(RECORDS * (sizeof R(1) + 1));
    for (int i = 0; i < RECORDS; i++)
        size += (size_t)sprintf(body + size, "%s\n", i % 2 == 0 ? R(1) : R(2));
    check_post(LINES, body, 200, RECORDS, 0);
    ck_assert_uint_lt(fake_store_bytes(store, STORAGE_JOURNAL), size / 10);
    stop();
    start_again(0);
    ck_assert_uint_eq(fake_feed_accepted(feed, NULL), RECORDS);
    for (int i = 0; i < RECORDS; i++)
        ck_assert_str_eq(feed->records[i].text, i % 2 == 0 ? R(1) : R(2));
    stop();
    memory_give(body);
}
END_TEST

START_TEST(a_pipeline_that_was_passed_over_catches_up) {
    config.ack = ACK_STORED;
    store = fake_store_create();
    atomic_store(&feed->unsafe, true);
    start();
    check_post(LINES, R(1), 200, 1, 0);
    atomic_store(&feed->passed_over, true);
    check_post(LINES, R(2) "\n{\"nonsense\n", 200, 1, 1);
    check_post(LINES, R(3), 200, 1, 0);
    ck_assert_uint_eq(fake_feed_accepted(feed, NULL), 1);
    atomic_store(&feed->passed_over, false);
    EVENTUALLY(fake_feed_accepted(feed, NULL) >= 3);
    ck_assert_uint_eq(fake_feed_accepted(feed, NULL), 3);
    ck_assert_uint_eq(feed->sources[0]->flushed.number, 3);
    check_post(LINES, R(4), 200, 1, 0);
    ck_assert_uint_eq(fake_feed_accepted(feed, NULL), 4);
    stop();
}
END_TEST

START_TEST(entries_of_an_earlier_run_are_not_lost_with_ack_accepted) {
    config.ack = ACK_STORED;
    store = fake_store_create();
    atomic_store(&feed->unsafe, true);
    start();
    check_post(LINES, R(1), 200, 1, 0);
    stop();
    config.ack = ACK_ACCEPTED;
    start_again(0);
    ck_assert_uint_eq(fake_feed_accepted(feed, NULL), 1);
    check_post(LINES, R(2), 202, 1, 0);
    ck_assert_uint_eq(feed->sources[0]->flushed.number, 2);
    stop();
}
END_TEST

START_TEST(a_full_store_puts_off) {
    config.ack = ACK_STORED;
    store = fake_store_create();
    start();
    fake_store_of(store)->full = true;
    check_error(LINES, R(1), 503, "busy");
    fake_store_of(store)->full = false;
    check_post(LINES, R(1), 200, 1, 0);
    stop();
}
END_TEST

// Sends a record of a job and says whether it was taken, that is, waits for the disk.
static bool is_taken(int *client, const char *job, int padding) {
    char body[1024], noise[512]; // which nothing makes smaller
    ck_assert_uint_lt((size_t)padding, sizeof noise);
    for (int i = 0; i < padding; i++)
        noise[i] = (char)('a' + rand() % 26);
    snprintf(body, sizeof body,
             "{\"timestamp\":1.5,\"memory_allocated\":1,\"job_id\" : \"%s\",\"more\":\"%.*s\"}\n",
             job, padding, noise);
    uint64_t before = fake_feed_accepted(feed, NULL);
    *client = client_connect(port());
    client_request(*client, "POST", "/v1/events", LINES, body, strlen(body));
    for (int i = 0; i < 10000; i++) {
        if (fake_feed_accepted(feed, NULL) > before)
            return true;
        if (has_answer(*client))
            return false;
        usleep(1000);
    }
    ck_abort_msg("neither taken nor answered");
}

// However much one job sends, there is room for the others.
START_TEST(one_job_leaves_room_for_others) {
    config.ack = ACK_STORED;
    store = fake_store_create();
    fake_store_of(store)->room = 8000;
    start();
    fake_store_hold(store, true);
    int clients[60], count = 0, taken = 0;
    for (; count < 30; count++)
        taken += is_taken(&clients[count], "huge", 400);
    ck_assert_int_ge(taken, 6); // of 8000 bytes half, in pieces of some 500
    ck_assert_int_le(taken, 10);
    for (int i = taken; i < count; i++) {
        struct answer answer = client_answer(clients[i], false);
        ck_assert_int_eq(answer.status, 429);
        ck_assert_str_eq(answer_header(&answer, "Retry-After"), "1");
        ck_assert_ptr_nonnull(strstr(answer.body, "\"too_many_requests\""));
        answer_free(&answer);
        close(clients[i]);
    }
    count = taken;
    for (int i = 0; i < 10; i++) {
        ck_assert(is_taken(&clients[count++], "small", 10));
        ck_assert(is_taken(&clients[count++], "another", 10));
    }
    fake_store_hold(store, false);
    for (int i = 0; i < count; i++) {
        struct answer answer = client_answer(clients[i], false);
        ck_assert_int_eq(answer.status, 200);
        answer_free(&answer);
        close(clients[i]);
    }
    // What is on the disk no longer counts.
    fake_store_hold(store, true);
    ck_assert(is_taken(&clients[0], "huge", 400));
    fake_store_hold(store, false);
    close(clients[0]);
    stop();
}
END_TEST

START_TEST(many_clients_stored) {
    config.ack = ACK_STORED;
    store = fake_store_create();
    start();
    post_from_many();
    stop();
}
END_TEST

int main(void) {
    Suite *suite = suite_create("http_stored");
    TCase *cases = tcase_create("all");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, repeats_are_told_the_same);
    tcase_add_test(cases, keys_must_be_right);
    tcase_add_test(cases, stored_needs_a_store);
    tcase_add_test(cases, no_answer_before_it_is_durable);
    tcase_add_test(cases, what_no_checkpoint_holds_is_offered_again);
    tcase_add_test(cases, a_damaged_entry_holds_up_nothing);
    tcase_add_test(cases, rows_of_other_versions);
    tcase_add_test(cases, what_is_alike_is_packed);
    tcase_add_test(cases, a_pipeline_that_was_passed_over_catches_up);
    tcase_add_test(cases, entries_of_an_earlier_run_are_not_lost_with_ack_accepted);
    tcase_add_test(cases, a_full_store_puts_off);
    tcase_add_test(cases, one_job_leaves_room_for_others);
    tcase_add_test(cases, many_clients_stored);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
