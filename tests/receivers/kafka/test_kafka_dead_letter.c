// SPDX-License-Identifier: Apache-2.0
// Where refused messages go, and that nothing is done before they are there.
#include "tests/receivers/kafka/kafka_fixture.h"

#include "config/problem.h"
#include "tests/support/temporary.h"

static struct running one;

static void setup(void) {
    fixture_setup();
    running_init(&one);
    one.config.dead_letter.topic = "dead";
}

// The next message of "dead"; NULL when there is none within `timeout_ms`.
static rd_kafka_t *reader;

static rd_kafka_message_t *next_letter(int timeout_ms) {
    if (reader == NULL)
        reader = make_reader("dead", 0);
    return kafka->consumer_poll(reader, timeout_ms);
}

static void close_reader(void) {
    kafka->destroy_flags(reader, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    reader = NULL;
}

START_TEST(letters_say_where_from_and_why) {
    produce("t", 1, record_text(1), NULL);
    produce("t", 1, "{\"timestamp\":true}", (const char *const[]){"own", "header", NULL});
    produce("t", 1, record_text(2), NULL);
    running_start(&one);
    EVENTUALLY(committed(1) == 3);
    ck_assert_uint_eq(accepted(&one), 2);
    ck_assert_uint_eq(metric_value(one.receiver->counters.dead_letters), 1);
    rd_kafka_message_t *letter = next_letter(PATIENCE_MS);
    ck_assert_ptr_nonnull(letter);
    ck_assert_int_eq(letter->err, RD_KAFKA_RESP_ERR_NO_ERROR);
    ck_assert_uint_eq(letter->len, strlen("{\"timestamp\":true}"));
    ck_assert_mem_eq(letter->payload, "{\"timestamp\":true}", letter->len);
    ck_assert_uint_eq(letter->key_len, 3);
    ck_assert_mem_eq(letter->key, "key", 3);
    ck_assert_str_eq(header_of(letter, "own"), "header");
    ck_assert_str_eq(header_of(letter, "__connect.errors.topic"), "t");
    ck_assert_str_eq(header_of(letter, "__connect.errors.partition"), "1");
    ck_assert_str_eq(header_of(letter, "__connect.errors.offset"), "1");
    ck_assert_str_eq(header_of(letter, "__connect.errors.stage"), "VALUE_CONVERTER");
    ck_assert_ptr_nonnull(strstr(header_of(letter, "__connect.errors.exception.message"),
                                 header_of(letter, "__connect.errors.exception.class.name")));
    kafka->message_destroy(letter);
    close_reader();
    running_stop(&one);
}
END_TEST

START_TEST(a_message_of_several_goes_once_and_whole) {
    const char *value =
        "[{\"timestamp\":1.5,\"memory_allocated\":1},{},{\"timestamp\":2.5,"
        "\"memory_allocated\":2},3]";
    produce("t", 0, value, NULL);
    running_start(&one);
    EVENTUALLY(committed(0) == 1);
    ck_assert_uint_eq(accepted(&one), 2);
    ck_assert_uint_eq(metric_value(one.receiver->counters.dead_letters), 1);
    rd_kafka_message_t *letter = next_letter(PATIENCE_MS);
    ck_assert_ptr_nonnull(letter);
    ck_assert_uint_eq(letter->len, strlen(value));
    kafka->message_destroy(letter);
    ck_assert_ptr_null(next_letter(500));
    close_reader();
    running_stop(&one);
}
END_TEST

// What is held within a message is part of it.
START_TEST(held_records_belong_to_their_message) {
    char path[64];
    temporary_path(path, sizeof path, "kafka");
    int descriptor = mkstemp(path);
    ck_assert_int_ge(descriptor, 0);
    one.config.records.quarantine = path;
    produce("t", 0,
            "[rank3]: Traceback (most recent call last):\n"
            "[rank3]:   File \"/a/train.py\", line 3, in <module>\n"
            "[rank3]: RuntimeError: CUDA error: an illegal memory access was encountered\n",
            NULL);
    const char *broken =
        "6,1,1000000,-;hello\n3,2,2000000,-;Out of memory: Killed process 12 (py\n";
    produce("t", 0, broken, NULL);
    running_start(&one);
    EVENTUALLY(committed(0) == 2);
    ck_assert_uint_eq(metric_value(one.receiver->counters.dead_letters), 1);
    rd_kafka_message_t *letter = next_letter(PATIENCE_MS);
    ck_assert_ptr_nonnull(letter);
    ck_assert_uint_eq(letter->len, strlen(broken));
    ck_assert_str_eq(header_of(letter, "__connect.errors.offset"), "1");
    kafka->message_destroy(letter);
    close_reader();
    running_stop(&one);
    // Once, and whole.
    char text[2048] = "";
    ck_assert_int_gt(read(descriptor, text, sizeof text - 1), 0);
    ck_assert_ptr_nonnull(strstr(text, "\"position\":2,\"category\":\"truncated\""));
    ck_assert_ptr_nonnull(strstr(text, "\"record\":\"6,1,1000000,-;hello"));
    ck_assert_str_eq(strchr(text, (int)'\n'), "\n");
    close(descriptor);
    unlink(path);
}
END_TEST

START_TEST(nothing_is_done_before_the_letter_is_there) {
    mock.mock_topic_set_error(cluster, "dead", RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
    produce("t", 0, record_text(1), NULL);
    produce("t", 0, "{\"bad", NULL);
    produce("t", 0, record_text(2), NULL);
    running_start(&one);
    EVENTUALLY(trouble_says(&one, "cannot be put into dead"));
    struct source *source = fake_feed_find(one.feed, "t/0");
    ck_assert_uint_le(source->reached.number, 1);
    ck_assert_int_le(committed(0), 1);
    mock.mock_topic_set_error(cluster, "dead", RD_KAFKA_RESP_ERR_NO_ERROR);
    EVENTUALLY(committed(0) == 3);
    EVENTUALLY(trouble_says(&one, NULL));
    ck_assert_uint_eq(accepted(&one), 2);
    running_stop(&one);
}
END_TEST

START_TEST(stops_while_a_letter_waits) {
    mock.mock_topic_set_error(cluster, "dead", RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
    produce("t", 0, record_text(1), NULL);
    produce("t", 0, "{\"bad", NULL);
    running_start(&one);
    EVENTUALLY(trouble_says(&one, "cannot be put into dead"));
    fake_feed_stop(one.feed);
    pthread_join(one.thread, NULL);
    ck_assert_uint_eq(fake_feed_find(one.feed, "t/0")->reached.number, 1);
    component_stop(&receiver_kafka, one.receiver);
    ck_assert_int_eq(committed(0), 1); // the bad one comes again
    memory_give(one.receiver);
    fake_feed_free(one.feed);
}
END_TEST

START_TEST(the_quarantine_has_it_too) {
    char path[64];
    temporary_path(path, sizeof path, "kafka");
    int descriptor = mkstemp(path);
    ck_assert_int_ge(descriptor, 0);
    one.config.records.quarantine = path;
    produce("t", 0, "{\"timestamp\":true}", NULL);
    running_start(&one);
    EVENTUALLY(committed(0) == 1);
    running_stop(&one);
    char text[1024] = "";
    ck_assert_int_gt(read(descriptor, text, sizeof text - 1), 0);
    ck_assert_ptr_nonnull(strstr(text, "\"path\":\"kafka://t/0\",\"position\":1,"));
    ck_assert_ptr_nonnull(strstr(text, "\"record\":\"{\\\"timestamp\\\":true}\"}"));
    close(descriptor);
    unlink(path);
}
END_TEST

// -- options that do not fit --------------------------------------------------------------------

static bool is_refused(const struct kafka_config *config, const char *key, const char *text) {
    struct arena arena;
    struct problem_list problems;
    arena_init(&arena, 4096);
    problem_list_init(&problems, &arena);
    receiver_kafka.validate(config, &problems);
    bool found = false;
    for (uint32_t i = 0; i < problems.count; i++)
        found = found || (strcmp(problems.items[i].key, key) == 0 &&
                          strstr(problems.items[i].text, text) != NULL);
    arena_release(&arena);
    return found;
}

static bool setting_is_refused(const char *setting, const char *text) {
    struct kafka_config config = one.config;
    const char *const settings[] = {setting};
    config.connection.librdkafka = (struct text_list){settings, 1};
    return is_refused(&config, "librdkafka", text);
}

START_TEST(options_that_do_not_fit) {
    struct kafka_config config = one.config;
    ck_assert(!is_refused(&config, "topics", ""));
    const char *const bad[] = {"a b", "^(", "dead"};
    config.topics = (struct text_list){bad, 3};
    ck_assert(is_refused(&config, "topics", "\"a b\" is not a valid topic"));
    ck_assert(is_refused(&config, "topics", "\"^(\" is not a valid regular expression"));
    ck_assert(is_refused(&config, "dead_letter.topic", "is also read"));
    config.heartbeat_interval.ns = config.session_timeout.ns;
    ck_assert(is_refused(&config, "heartbeat_interval", "more than half"));
    config.connection.sasl.username = "me";
    ck_assert(is_refused(&config, "sasl.mechanism", "no mechanism"));
    config.connection.sasl.mechanism = KAFKA_PLAIN;
    ck_assert(is_refused(&config, "sasl.password", "is missing"));
    config.connection.tls.cert_file = "x";
    ck_assert(is_refused(&config, "tls.key_file", "go together"));
    ck_assert(setting_is_refused("enable.auto.commit=true", "culprit sets it itself"));
    ck_assert(setting_is_refused("group.id=x", "the option group_id sets it"));
    ck_assert(setting_is_refused("ssl.key.password=x", "cannot be set here"));
    ck_assert(setting_is_refused("nothing", "is not of the form key=value"));
    ck_assert(!setting_is_refused("socket.keepalive.enable=true", ""));
    component_stop(&receiver_kafka, one.receiver); // which was not started
    memory_give(one.receiver);
    fake_feed_free(one.feed);
}
END_TEST

START_TEST(a_setting_that_is_not_known_ends_the_start) {
    static const char *const settings[] = {"no.such.thing=1"};
    one.config.connection.librdkafka = (struct text_list){settings, 1};
    struct error error = {0};
    ck_assert_int_eq(
        component_start(&receiver_kafka, one.receiver, &one.config, &one.context, &error),
        STATUS_CONFIG);
    ck_assert_ptr_nonnull(strstr(error.message, "no.such.thing"));
    component_stop(&receiver_kafka, one.receiver);
    memory_give(one.receiver);
    fake_feed_free(one.feed);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("kafka dead letters");
    TCase *tests = tcase_create("dead letters");
    tcase_add_checked_fixture(tests, setup, fixture_teardown);
    tcase_add_test(tests, letters_say_where_from_and_why);
    tcase_add_test(tests, a_message_of_several_goes_once_and_whole);
    tcase_add_test(tests, held_records_belong_to_their_message);
    tcase_add_test(tests, nothing_is_done_before_the_letter_is_there);
    tcase_add_test(tests, stops_while_a_letter_waits);
    tcase_add_test(tests, the_quarantine_has_it_too);
    tcase_add_test(tests, options_that_do_not_fit);
    tcase_add_test(tests, a_setting_that_is_not_known_ends_the_start);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
