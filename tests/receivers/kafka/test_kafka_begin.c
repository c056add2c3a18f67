// SPDX-License-Identifier: Apache-2.0
// Where a partition without a committed offset begins: at the number that the brokers tell for its
// beginning, or, where they tell none, at what librdkafka finds.
#include "tests/receivers/kafka/kafka_fixture.h"

static struct running one;

// The consumer's library with a broker whose records begin at BEGIN, and what is asked of it.
enum { BEGIN = 4 };
static struct {
    struct kafka_library library;
    rd_kafka_resp_err_t failure; // of the whole request
    rd_kafka_resp_err_t own;     // of partition 1
    int64_t offsets[2];          // that librdkafka was given
} begun;

static void setup(void) {
    fixture_setup();
    running_init(&one);
    begun.failure = begun.own = RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t tell_beginnings(rd_kafka_t *consumer,
                                           rd_kafka_topic_partition_list_t *times, int timeout_ms) {
    rd_kafka_resp_err_t failure = kafka->offsets_for_times(consumer, times, timeout_ms);
    ck_assert_int_eq((int)failure, (int)RD_KAFKA_RESP_ERR_NO_ERROR);
    for (int i = 0; i < times->cnt; i++) {
        rd_kafka_topic_partition_t *item = &times->elems[i];
        ck_assert_int_eq(item->offset, 0);
        item->offset += BEGIN;
        item->err = item->partition == 1 ? begun.own : item->err;
    }
    return begun.failure;
}

static rd_kafka_error_t *note_offsets(rd_kafka_t *consumer,
                                      const rd_kafka_topic_partition_list_t *partitions) {
    for (int i = 0; i < partitions->cnt; i++)
        begun.offsets[partitions->elems[i].partition] = partitions->elems[i].offset;
    return kafka->incremental_assign(consumer, partitions);
}

static void start_with_beginnings(void) {
    struct error error = {0};
    produce_many(0, 0, 10);
    produce_many(1, 0, 10);
    ck_assert_int_eq(
        component_start(&receiver_kafka, one.receiver, &one.config, &one.context, &error),
        STATUS_OK);
    begun.library = *kafka;
    begun.library.offsets_for_times = tell_beginnings;
    begun.library.incremental_assign = note_offsets;
    one.receiver->library = &begun.library;
    ck_assert_int_eq(pthread_create(&one.thread, NULL, running_thread, &one), 0);
}

START_TEST(begins_at_the_number_of_the_beginning) {
    start_with_beginnings();
    EVENTUALLY(accepted(&one) == 2 * (10 - BEGIN));
    ck_assert_int_eq(begun.offsets[0], BEGIN);
    ck_assert_int_eq(begun.offsets[1], BEGIN);
    ck_assert_uint_eq(one.feed->records[0].position, BEGIN + 1);
    running_stop(&one);
}
END_TEST

// Then librdkafka is to find it.
START_TEST(begins_at_the_beginning_when_its_number_is_not_told) {
    begun.own = RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION;
    start_with_beginnings();
    EVENTUALLY(accepted(&one) == 10 - BEGIN + 10);
    ck_assert_int_eq(begun.offsets[0], BEGIN);
    ck_assert_int_eq(begun.offsets[1], RD_KAFKA_OFFSET_BEGINNING);
    running_stop(&one);
}
END_TEST

START_TEST(begins_at_the_beginning_when_no_number_is_told) {
    begun.failure = RD_KAFKA_RESP_ERR__TIMED_OUT;
    start_with_beginnings();
    EVENTUALLY(accepted(&one) == 20);
    ck_assert_int_eq(begun.offsets[0], RD_KAFKA_OFFSET_BEGINNING);
    ck_assert_int_eq(begun.offsets[1], RD_KAFKA_OFFSET_BEGINNING);
    running_stop(&one);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("kafka beginnings");
    TCase *tests = tcase_create("beginnings");
    tcase_add_checked_fixture(tests, setup, fixture_teardown);
    tcase_add_test(tests, begins_at_the_number_of_the_beginning);
    tcase_add_test(tests, begins_at_the_beginning_when_its_number_is_not_told);
    tcase_add_test(tests, begins_at_the_beginning_when_no_number_is_told);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
