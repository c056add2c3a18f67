// SPDX-License-Identifier: Apache-2.0
// The Kafka receiver against librdkafka's mock cluster: what is read, what counts once, what is
// committed, and what it does while something does not work.
#include "tests/receivers/kafka/kafka_fixture.h"

#include "base/metrics/exposition.h"

static struct running one;

static void setup(void) {
    fixture_setup();
    running_init(&one);
}

START_TEST(reads_and_commits) {
    produce_many(0, 0, 30);
    produce_many(1, 0, 20);
    running_start(&one);
    EVENTUALLY(accepted(&one) == 50);
    EVENTUALLY(committed(0) == 30 && committed(1) == 20);
    ck_assert_uint_eq(fake_feed_accepted(one.feed, "kafka://t/0"), 30);
    ck_assert_uint_eq(fake_feed_accepted(one.feed, "kafka://t/1"), 20);
    EVENTUALLY(atomic_load(&one.feed->caught_up));
    running_stop(&one);
}
END_TEST

START_TEST(commits_only_what_is_safe) {
    atomic_store(&one.feed->unsafe, true);
    produce_many(0, 0, 10);
    running_start(&one);
    EVENTUALLY(accepted(&one) == 10);
    sleep(2); // two looks at what may be committed
    ck_assert_int_lt(committed(0), 0);
    atomic_store(&one.feed->unsafe, false);
    EVENTUALLY(committed(0) == 10);
    running_stop(&one);
}
END_TEST

START_TEST(what_became_safe_is_committed_at_the_stop) {
    atomic_store(&one.feed->unsafe, true);
    produce_many(0, 0, 10);
    running_start(&one);
    EVENTUALLY(accepted(&one) == 10);
    ck_assert_int_lt(committed(0), 0);
    fake_feed_stop(one.feed);
    pthread_join(one.thread, NULL);
    atomic_store(&one.feed->unsafe, false); // the checkpoint after the last batch
    component_stop(&receiver_kafka, one.receiver);
    ck_assert_int_eq(committed(0), 10);
    memory_give(one.receiver);
    fake_feed_free(one.feed);
}
END_TEST

START_TEST(goes_on_behind_the_checkpoint) {
    produce_many(0, 0, 10);
    struct source *source = feed_source(one.feed, SLICE("kafka://t/0"));
    source->restored.number = source->reached.number = 7;
    running_start(&one);
    EVENTUALLY(accepted(&one) == 3);
    ck_assert_uint_eq(one.feed->records[0].position, 8);
    running_stop(&one);
}
END_TEST

START_TEST(goes_on_at_the_committed_offset) {
    produce_many(0, 0, 10);
    running_start(&one);
    EVENTUALLY(committed(0) == 10);
    running_stop(&one);
    produce_many(0, 10, 15);
    running_init(&one);
    running_start(&one);
    EVENTUALLY(accepted(&one) == 5);
    running_stop(&one);
}
END_TEST

START_TEST(latest_begins_at_the_end) {
    produce_many(0, 0, 10);
    one.config.initial_offset = KAFKA_START_LATEST;
    running_start(&one);
    EVENTUALLY(atomic_load(&one.feed->caught_up));
    // Where it began is kept, so that what comes while it is away is not missed.
    EVENTUALLY(committed(0) == 10);
    produce_many(0, 10, 13);
    EVENTUALLY(accepted(&one) == 3);
    running_stop(&one);
}
END_TEST

// The mock cluster knows no times: all of a partition was written since.
static struct kafka_library timed;

static rd_kafka_resp_err_t find_all(rd_kafka_t *consumer, rd_kafka_topic_partition_list_t *times,
                                    int timeout_ms) {
    ck_assert_int_eq(times->cnt, 1);
    ck_assert_int_le(times->elems[0].offset, (int64_t)(clock_unix_ns() / 1000000));
    if (times->elems[0].offset < 0)
        return kafka->offsets_for_times(consumer, times, timeout_ms);
    times->elems[0].offset = 0;
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static void start_with_times(struct running *running) {
    struct error error = {0};
    running->config.initial_offset = KAFKA_START_LATEST;
    ck_assert_int_eq(component_start(&receiver_kafka, running->receiver, &running->config,
                                     &running->context, &error),
                     STATUS_OK);
    timed = *kafka;
    timed.offsets_for_times = find_all;
    running->receiver->library = &timed;
    ck_assert_int_eq(pthread_create(&running->thread, NULL, running_thread, running), 0);
}

// What is in a partition that comes later was written since: it is read from its beginning.
START_TEST(latest_reads_all_of_a_partition_that_comes_later) {
    struct running other;
    produce_many(0, 0, 2);
    start_with_times(&one);
    EVENTUALLY(atomic_load(&one.feed->caught_up));
    produce_many(0, 2, 5);
    EVENTUALLY(accepted(&one) == 3);
    ck_assert_int_eq((int)mock.mock_topic_create(cluster, "new", 1, 1), 0);
    for (int i = 0; i < 5; i++)
        produce("new", 0, record_text(i), NULL);
    rd_kafka_topic_partition_list_t *list = kafka->topic_partition_list_new(2);
    kafka->topic_partition_list_add(list, "t", RD_KAFKA_PARTITION_UA);
    kafka->topic_partition_list_add(list, "new", RD_KAFKA_PARTITION_UA);
    ck_assert_int_eq((int)kafka->subscribe(one.receiver->consumer, list), 0);
    kafka->topic_partition_list_destroy(list);
    EVENTUALLY(fake_feed_accepted(one.feed, "new/0") == 5);
    ck_assert_uint_eq(one.feed->count, 8);
    running_stop(&one);
    // After a restart, too: what the checkpoint knows of the topic says since when.
    running_init(&other);
    other.config.group_id = "other";
    struct source *known = feed_source(other.feed, SLICE("kafka://t/0"));
    known->restored.number = known->reached.number = 5;
    known->restored.detail[KAFKA_DETAIL_TIME] = 1; // long before what is in the other partition
    produce_many(1, 0, 4);
    start_with_times(&other);
    EVENTUALLY(fake_feed_accepted(other.feed, "t/1") == 4);
    running_stop(&other);
}
END_TEST

static void produce_of(const char *sender, const char *sequence) {
    const char *const headers[] = {
        "culprit-sender", sender,           "culprit-sequence", sequence, "culprit-format",
        "stormlog",       "culprit-schema", "culprit.event.v1", NULL};
    produce("t", 0, record_text(atoi(sequence)), headers);
}

START_TEST(repeats_are_dropped) {
    static const char *const numbers[] = {"1", "2", "2", "3", "1", "7", "4"};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        produce_of("node/a", numbers[i]);
    produce_of("node/b", "2");
    running_start(&one);
    EVENTUALLY(committed(0) == 8);
    ck_assert_uint_eq(fake_feed_accepted(one.feed, "kafka://t/0/node/a"), 4);
    ck_assert_uint_eq(fake_feed_accepted(one.feed, "kafka://t/0/node/b"), 1);
    ck_assert_uint_eq(accepted(&one), 5);
    ck_assert_uint_eq(metric_value(one.receiver->counters.repeated), 3);
    ck_assert_uint_eq(fake_feed_find(one.feed, "node/a")->reached.number, 7);
    running_stop(&one);
}
END_TEST

static void produce_copy(int32_t partition, const char *sequence, const char *copies) {
    const char *const headers[] = {"culprit-sender",
                                   "node/a",
                                   "culprit-sequence",
                                   sequence,
                                   "culprit-format",
                                   "stormlog",
                                   "culprit-schema",
                                   "culprit.event.v1",
                                   "culprit-copies",
                                   copies,
                                   NULL};
    produce("t", partition, record_text(atoi(sequence)), headers);
}

// Both partitions hold each of them; who reads both takes each once.
START_TEST(a_record_of_all_partitions_is_taken_once) {
    static const char *const numbers[] = {"2", "3", "5", "9"};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        produce_copy(0, numbers[i], "2");
        produce_copy(1, numbers[i], "2");
    }
    produce_copy(0, "9", "2"); // and once more after a crash
    running_start(&one);
    EVENTUALLY(committed(0) == 5 && committed(1) == 4);
    ck_assert_uint_eq(accepted(&one), 4);
    ck_assert_uint_eq(metric_value(one.receiver->counters.repeated), 5);
    // What one partition alone holds is no copy, also where the other has passed its number.
    produce_copy(0, "20", "2");
    EVENTUALLY(accepted(&one) == 5);
    produce_copy(1, "12", "0");
    EVENTUALLY(accepted(&one) == 6);
    running_stop(&one);
}
END_TEST

// A partition speaks only for the numbers that were read of it.
START_TEST(copies_from_before_a_partition_came_are_taken) {
    produce_copy(0, "50", "2");
    produce_copy(0, "60", "2");
    running_start(&one);
    EVENTUALLY(accepted(&one) == 2);
    produce_copy(1, "40", "2"); // before what was read of the other one
    produce_copy(1, "50", "2");
    produce_copy(1, "60", "2");
    produce_copy(1, "70", "2"); // behind it
    EVENTUALLY(committed(1) == 4);
    ck_assert_uint_eq(accepted(&one), 4);
    produce_copy(0, "70", "2");
    EVENTUALLY(committed(0) == 3);
    ck_assert_uint_eq(accepted(&one), 4);
    const struct source *sender = fake_feed_find(one.feed, "kafka://t/1/node/a");
    ck_assert_uint_eq(sender->reached.detail[KAFKA_DETAIL_BEGIN], 40);
    ck_assert_uint_eq(sender->reached.number, 70);
    running_stop(&one);
}
END_TEST

START_TEST(copies_are_told_across_a_restart) {
    struct source *source = feed_source(one.feed, SLICE("kafka://t/0/node/a"));
    source->restored.number = source->reached.number = 60;
    source->restored.detail[KAFKA_DETAIL_BEGIN] = 50;
    produce_copy(1, "49", "2");
    produce_copy(1, "55", "2");
    produce_copy(1, "61", "2");
    running_start(&one);
    EVENTUALLY(committed(1) == 3);
    ck_assert_uint_eq(accepted(&one), 2);
    running_stop(&one);
}
END_TEST

START_TEST(repeats_are_told_across_a_restart) {
    struct source *source = feed_source(one.feed, SLICE("kafka://t/0/node/a"));
    source->restored.number = source->reached.number = 5;
    produce_of("node/a", "5");
    produce_of("node/a", "6");
    running_start(&one);
    EVENTUALLY(committed(0) == 2);
    ck_assert_uint_eq(accepted(&one), 1);
    running_stop(&one);
}
END_TEST

START_TEST(senders_are_bounded) {
    one.config.max_senders = 2;
    produce_of("a", "1");
    produce_of("b", "1");
    produce_of("c", "1");
    produce_of("c", "1");
    running_start(&one);
    EVENTUALLY(accepted(&one) == 4);
    EVENTUALLY(fake_feed_noted(one.feed, "more than 2 senders", "max_senders"));
    ck_assert_uint_eq(fake_feed_accepted(one.feed, "kafka://t/0"), 2);
    running_stop(&one);
}
END_TEST

START_TEST(values_of_all_layouts) {
    produce("t", 0, NULL, NULL);
    produce("t", 0,
            "[{\"timestamp\":1.5,\"memory_allocated\":1},{\"timestamp\":2.5,"
            "\"memory_allocated\":2}]",
            NULL);
    produce("t", 0,
            "{\"timestamp\":1.5,\"memory_allocated\":1}\n\n{\"timestamp\":2.5,"
            "\"memory_allocated\":2}\r\n",
            NULL);
    produce("t", 0, "{\"events\":[{\"timestamp\":1.5,\"memory_allocated\":1}]}", NULL);
    produce("t", 0, "[]", NULL);
    produce("t", 0, record_text(9), NULL);
    running_start(&one);
    EVENTUALLY(committed(0) == 6);
    ck_assert_uint_eq(accepted(&one), 6);
    ck_assert_uint_eq(metric_value(one.receiver->counters.empty), 1);
    ck_assert_uint_eq(one.feed->count, 6);
    running_stop(&one);
}
END_TEST

#define TELEMETRY(time)                                                                            \
    "{\"schema_version\":3,\"session_id\":\"s\",\"timestamp_ns\":" time                            \
    ","                                                                                            \
    "\"event_type\":\"sample\",\"collector\":\"stormlog.cuda_tracker\","                           \
    "\"sampling_interval_ms\":100,\"pid\":1,\"host\":\"n\",\"job_id\":\"j\",\"rank\":0,"           \
    "\"local_rank\":0,\"world_size\":1,\"device_id\":0,\"allocator_allocated_bytes\":1,"           \
    "\"allocator_reserved_bytes\":2,\"allocator_active_bytes\":null,"                              \
    "\"allocator_inactive_bytes\":null,\"allocator_change_bytes\":0,\"device_used_bytes\":3,"      \
    "\"device_free_bytes\":4,\"device_total_bytes\":8,\"context\":null,\"metadata\":{}}"
#define XID(first)                                                                                 \
    "{" first                                                                                      \
    "\"source\":\"kmsg\",\"timestamp_ns\":5,\"k8s.node.name\":\"n\","                              \
    "\"message\":\"NVRM: Xid (PCI:0000:45:00): 79, pid=1\"}"

// Messages, and the kinds of the events in each: 't', 'k' or 's'.
static const struct {
    const char *value, *kinds;
} mixed[] = {
    {TELEMETRY("11"), "t"},
    {XID(""), "k"},
    {TELEMETRY("12") "\n", "t"},
    {TELEMETRY("13") "\n" TELEMETRY("14"), "tt"},
    {"{\"ev\":\"start\",\"ts\":7}", "s"},
    {XID("\"schema_version\":3,"), "k"},
    {"[" TELEMETRY("15") "," XID("") "]", "tk"},
    {"{\"schema_version\":3,\"events\":[]}", "-"},
    {"{\"events\":[" TELEMETRY("16") "]}", "t"},
    {TELEMETRY("17"), "t"},
    {TELEMETRY("18") " " XID(""), "-"},
    {"{\"timestamp\":1.5,\"memory_allocated\":1}", "t"},
};
enum { MIXED_COUNT = sizeof mixed / sizeof mixed[0] };

static char kind_letter(const struct fake_record *record) {
    if (record->category != DECODE_OK)
        return '-';
    return record->kind == EVENT_TELEMETRY ? 't' : record->kind == EVENT_KERNEL ? 'k' : 's';
}

// What one message gives must not depend on what came before it in its partition.
START_TEST(kinds_may_change_from_message_to_message) {
    char wanted[256] = "", found[256];
    uint32_t count = 0;
    for (int turn = 0; turn < 3 * MIXED_COUNT; turn++) {
        int i = turn * 5 % MIXED_COUNT; // in another order, three times
        produce("t", 0, mixed[i].value, NULL);
        strcat(wanted, mixed[i].kinds);
    }
    one.config.max_record_size.bytes = 4096;
    running_start(&one);
    EVENTUALLY(committed(0) == 3 * MIXED_COUNT);
    for (; count < one.feed->count && count < sizeof found - 1; count++)
        found[count] = kind_letter(&one.feed->records[count]);
    found[count] = '\0';
    ck_assert_str_eq(found, wanted);
    for (uint32_t i = 0; i < count; i++) {
        const char *text = one.feed->records[i].text;
        ck_assert(text[0] == '\0' || (text[0] == '{' && text[strlen(text) - 1] == '}'));
    }
    ck_assert_uint_eq(one.feed->foreseen_count, 3 * 3); // single ones, of schema 3
    running_stop(&one);
}
END_TEST

START_TEST(refused_records_stop_nothing) {
    static char large[3000];
    memset(large, ' ', sizeof large - 1);
    large[0] = '{';
    produce("t", 0, large, NULL);
    produce("t", 0, "", NULL);
    produce("t", 0, "{\"timestamp\":true}", NULL);
    produce("t", 0, "[{\"timestamp\":1.5,\"memory_allocated\":1},{\"timestamp\":", NULL);
    produce("t", 0, record_text(1), (const char *const[]){"culprit-format", "future", NULL});
    produce("t", 0, record_text(1), (const char *const[]){"culprit-schema", "x", NULL});
    produce("t", 0, record_text(2), NULL);
    running_start(&one);
    EVENTUALLY(committed(0) == 7);
    ck_assert_uint_eq(accepted(&one), 2);
    ck_assert_uint_eq(one.feed->count, 8);
    ck_assert_uint_eq(fake_feed_refused(one.feed, DECODE_TOO_LONG), 1);
    ck_assert_uint_eq(fake_feed_refused(one.feed, DECODE_UNSUPPORTED_VERSION), 2);
    running_stop(&one);
}
END_TEST

START_TEST(waits_while_pipelines_are_blocked) {
    running_start(&one);
    produce_many(0, 0, 5);
    EVENTUALLY(accepted(&one) == 5);
    atomic_store(&one.feed->blocked, true);
    EVENTUALLY(atomic_load(&one.receiver->paused));
    produce_many(0, 5, 105);
    ck_assert_uint_le(accepted(&one), 6); // one may have been under way
    atomic_store(&one.feed->blocked, false);
    EVENTUALLY(accepted(&one) == 105);
    EVENTUALLY(committed(0) == 105);
    ck_assert_uint_eq(one.feed->count, 105);
    running_stop(&one);
}
END_TEST

// -- fetching ahead -------------------------------------------------------------------------------

enum { LARGE_SIZE = 1000, LARGE_COUNT = 8000 };

static struct {
    struct kafka_library library;
    atomic_uint taken, waited;
} counted;

// Counts the looks in vain between the first message and the last.
static ssize_t count_taken(rd_kafka_queue_t *queue, int timeout_ms, rd_kafka_message_t **messages,
                           size_t size) {
    ssize_t count = kafka->consume_batch_queue(queue, timeout_ms, messages, size);
    if (count > 0)
        atomic_fetch_add(&counted.taken, (unsigned)count);
    else if (timeout_ms > 0 && atomic_load(&counted.taken) > 0 &&
             atomic_load(&counted.taken) < LARGE_COUNT)
        atomic_fetch_add(&counted.waited, 1);
    return count;
}

static void produce_large(void) {
    char text[LARGE_SIZE];
    memset(text, ' ', sizeof text);
    for (int i = 0; i < LARGE_COUNT; i++) {
        memcpy(text, record_text(i), strlen(record_text(i)));
        rd_kafka_resp_err_t failure =
            kafka->producev(producer, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_PARTITION(i % 2),
                            RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                            RD_KAFKA_V_VALUE(text, sizeof text), RD_KAFKA_V_END);
        ck_assert_int_eq((int)failure, (int)RD_KAFKA_RESP_ERR_NO_ERROR);
    }
    ck_assert_int_eq(mock.flush(producer, PATIENCE_MS), RD_KAFKA_RESP_ERR_NO_ERROR);
}

// The queue is full seven times over. Where librdkafka sleeps on it each time, a hundred looks of
// 100 ms are in vain; the few that are allowed are a busy machine's.
START_TEST(fetching_goes_on_when_there_is_room) {
    struct error error = {0};
    produce_large();
    ck_assert_int_eq(
        component_start(&receiver_kafka, one.receiver, &one.config, &one.context, &error),
        STATUS_OK);
    counted.library = *kafka;
    counted.library.consume_batch_queue = count_taken;
    one.receiver->library = &counted.library;
    ck_assert_int_eq(pthread_create(&one.thread, NULL, running_thread, &one), 0);
    EVENTUALLY(accepted(&one) == LARGE_COUNT);
    ck_assert_uint_le(atomic_load(&counted.waited), 14);
    running_stop(&one);
}
END_TEST

START_TEST(brokers_that_go_and_come) {
    running_start(&one);
    produce_many(0, 0, 5);
    EVENTUALLY(accepted(&one) == 5);
    ck_assert_int_eq(mock.mock_broker_set_down(cluster, 1), RD_KAFKA_RESP_ERR_NO_ERROR);
    EVENTUALLY(trouble_says(&one, "brokers cannot be used"));
    ck_assert_int_eq(mock.mock_broker_set_up(cluster, 1), RD_KAFKA_RESP_ERR_NO_ERROR);
    EVENTUALLY(trouble_says(&one, NULL));
    produce_many(0, 5, 10);
    EVENTUALLY(accepted(&one) == 10);
    running_stop(&one);
}
END_TEST

START_TEST(starts_without_brokers) {
    ck_assert_int_eq(mock.mock_broker_set_down(cluster, 1), RD_KAFKA_RESP_ERR_NO_ERROR);
    running_start(&one);
    EVENTUALLY(trouble_says(&one, "brokers cannot be used"));
    ck_assert_int_eq(mock.mock_broker_set_up(cluster, 1), RD_KAFKA_RESP_ERR_NO_ERROR);
    produce_many(0, 0, 3);
    EVENTUALLY(accepted(&one) == 3);
    EVENTUALLY(trouble_says(&one, NULL));
    running_stop(&one);
}
END_TEST

static struct {
    struct kafka_library library;
    void (*note_error)(rd_kafka_t *, int, const char *, void *);
} miscounting;

static void note_all_but_the_last(rd_kafka_t *consumer, int code, const char *reason,
                                  void *opaque) {
    if (code != RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN)
        miscounting.note_error(consumer, code, reason, opaque);
}

static void set_error_cb(rd_kafka_conf_t *conf,
                         void (*note_error)(rd_kafka_t *, int, const char *, void *)) {
    miscounting.note_error = note_error;
    kafka->conf_set_error_cb(conf, note_all_but_the_last);
}

// librdkafka tells of each broker that goes, but not that it was the last.
START_TEST(brokers_that_go_untold) {
    struct error error = {0};
    ck_assert_int_eq(
        component_start(&receiver_kafka, one.receiver, &one.config, &one.context, &error),
        STATUS_OK);
    kafka_consumer_close(one.receiver, 0);
    miscounting.library = *kafka;
    miscounting.library.conf_set_error_cb = set_error_cb;
    one.receiver->library = one.receiver->client.library = &miscounting.library;
    ck_assert_int_eq(kafka_consumer_open(one.receiver, &error), STATUS_OK);
    ck_assert_int_eq(pthread_create(&one.thread, NULL, running_thread, &one), 0);
    one.runs = true;
    produce_many(0, 0, 5);
    EVENTUALLY(accepted(&one) == 5);
    ck_assert_int_eq(mock.mock_broker_set_down(cluster, 1), RD_KAFKA_RESP_ERR_NO_ERROR);
    // The broker goes as one of the topic and as the group's coordinator, in any order.
    EVENTUALLY(trouble_says(&one, ": Connect to ipv4#127.0.0.1:"));
    ck_assert_int_eq(mock.mock_broker_set_up(cluster, 1), RD_KAFKA_RESP_ERR_NO_ERROR);
    EVENTUALLY(trouble_says(&one, NULL));
    running_stop(&one);
}
END_TEST

START_TEST(failed_commits_are_tried_again) {
    enum { OFFSET_COMMIT = 8 };
    const rd_kafka_resp_err_t failures[] = {RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS,
                                            RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED,
                                            RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED};
    mock.mock_push_request_errors_array(cluster, OFFSET_COMMIT, 3, failures);
    produce_many(0, 0, 4);
    running_start(&one);
    EVENTUALLY(committed(0) == 4);
    running_stop(&one);
}
END_TEST

START_TEST(fetch_errors_lose_nothing) {
    enum { FETCH = 1 };
    const rd_kafka_resp_err_t failures[] = {RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
                                            RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE,
                                            RD_KAFKA_RESP_ERR_UNKNOWN};
    mock.mock_push_request_errors_array(cluster, FETCH, 3, failures);
    produce_many(0, 0, 20);
    running_start(&one);
    EVENTUALLY(accepted(&one) == 20);
    ck_assert_uint_eq(one.feed->count, 20);
    running_stop(&one);
}
END_TEST

START_TEST(a_topic_made_anew_is_read_from_its_beginning) {
    produce_many(0, 0, 6);
    struct source *source = feed_source(one.feed, SLICE("kafka://t/0"));
    source->restored.number = source->reached.number = 1000;
    running_start(&one);
    EVENTUALLY(accepted(&one) == 6);
    ck_assert(fake_feed_noted(one.feed, "kafka://t/0", "ends at offset 6 but was read up to 1000"));
    EVENTUALLY(committed(0) == 6);
    running_stop(&one);
}
END_TEST

// Where it began, and what the checkpoint of a receiver that read `count` records says then.
static struct source_position read_first(int count) {
    produce_many(0, 0, count);
    running_start(&one);
    EVENTUALLY(accepted(&one) == (uint32_t)count);
    EVENTUALLY(committed(0) == count);
    struct source_position position = flushed_of(&one, "t/0");
    ck_assert_uint_eq(position.number, (uint64_t)count);
    running_stop(&one);
    running_init(&one);
    return position;
}

static void restore(const struct source_position *position) {
    struct source *source = feed_source(one.feed, SLICE("kafka://t/0"));
    source->restored = source->reached = *position;
}

START_TEST(the_record_that_was_read_last_proves_that_it_is_the_topic) {
    struct source_position position = read_first(6);
    restore(&position);
    produce_many(0, 6, 9);
    running_start(&one);
    EVENTUALLY(accepted(&one) == 3);
    ck_assert_uint_eq(one.feed->count, 3);
    ck_assert_uint_eq(one.feed->records[0].position, 7);
    ck_assert_uint_eq(one.feed->note_count, 0);
    EVENTUALLY(committed(0) == 9);
    running_stop(&one);
}
END_TEST

// It has more records than were read of the one before, so that no offset is missing.
START_TEST(a_topic_made_anew_with_more_records_is_read_from_its_beginning) {
    struct source_position position = read_first(6);
    position.detail[KAFKA_DETAIL_MARK]++;
    restore(&position);
    produce_many(0, 6, 9);
    running_start(&one);
    EVENTUALLY(accepted(&one) == 9);
    ck_assert_uint_eq(one.feed->records[0].position, 1);
    ck_assert(fake_feed_noted(one.feed, "kafka://t/0", "record at offset 5, which was read last"));
    EVENTUALLY(committed(0) == 9);
    running_stop(&one);
}
END_TEST

// It has one record less: there is nothing where the last one was.
START_TEST(a_topic_made_anew_with_one_record_less_is_read_from_its_beginning) {
    struct source_position position = read_first(6);
    position.number++;
    position.detail[KAFKA_DETAIL_LAST]++;
    restore(&position);
    running_start(&one);
    EVENTUALLY(accepted(&one) == 6);
    ck_assert(fake_feed_noted(one.feed, "kafka://t/0", "ends at offset 6 but was read up to 7"));
    running_stop(&one);
}
END_TEST

// A cluster whose partition 0 ends with what is no record, as the mark of a transaction is.
enum { MARKS = 2 };
static struct kafka_library transactions;

static ssize_t end_behind_marks(rd_kafka_queue_t *queue, int timeout_ms,
                                rd_kafka_message_t **messages, size_t size) {
    ssize_t count = kafka->consume_batch_queue(queue, timeout_ms, messages, size);
    for (ssize_t i = 0; i < count; i++)
        if (messages[i]->err == RD_KAFKA_RESP_ERR__PARTITION_EOF && messages[i]->partition == 0)
            messages[i]->offset += MARKS;
    return count;
}

static rd_kafka_resp_err_t count_marks(rd_kafka_t *consumer, const char *topic, int32_t partition,
                                       int64_t *low, int64_t *high) {
    rd_kafka_resp_err_t failure =
        kafka->get_watermark_offsets(consumer, topic, partition, low, high);
    if (partition == 0 && *high >= 0)
        *high += MARKS;
    return failure;
}

// Whether the lag of partition 0 is shown as nothing.
static bool is_even(void) {
    struct buffer page;
    struct exposition exposition;
    buffer_init(&page, 1 << 20);
    exposition_begin(&exposition, &page, EXPOSITION_TEXT);
    metrics_expose(&exposition);
    exposition_end(&exposition);
    buffer_append_char(&page, '\0');
    bool even = strstr(page.data,
                       "culprit_kafka_receiver_offset_lag{partition=\"0\",receiver="
                       "\"kafka\",topic=\"t\"} 0\n") != NULL;
    buffer_release(&page);
    return even;
}

START_TEST(marks_of_transactions_are_no_lag) {
    struct error error = {0};
    ck_assert_int_eq(
        component_start(&receiver_kafka, one.receiver, &one.config, &one.context, &error),
        STATUS_OK);
    transactions = *kafka;
    transactions.consume_batch_queue = end_behind_marks;
    transactions.get_watermark_offsets = count_marks;
    one.receiver->library = &transactions;
    produce_many(0, 0, 5);
    produce_many(1, 0, 1);
    ck_assert_int_eq(pthread_create(&one.thread, NULL, running_thread, &one), 0);
    EVENTUALLY(accepted(&one) == 6);
    EVENTUALLY(atomic_load(&one.feed->caught_up));
    EVENTUALLY(committed(0) == 5 + MARKS);
    ck_assert_uint_eq(flushed_of(&one, "t/0").detail[KAFKA_DETAIL_LAST], 4);
    EVENTUALLY(is_even());
    running_stop(&one);
}
END_TEST

START_TEST(a_fatal_error_makes_a_new_consumer) {
    running_start(&one);
    produce_many(0, 0, 5);
    EVENTUALLY(committed(0) == 5);
    mock.test_fatal_error(one.receiver->consumer, RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID, "test");
    EVENTUALLY(trouble_says(&one, "the consumer has ended"));
    produce_many(0, 5, 10);
    EVENTUALLY(accepted(&one) == 10);
    EVENTUALLY(trouble_says(&one, NULL));
    ck_assert_uint_eq(one.feed->count, 10);
    running_stop(&one);
}
END_TEST

START_TEST(a_second_pipeline_reads_on_its_own) {
    struct running other;
    running_init(&other);
    other.context.copy = 1;
    produce_many(0, 0, 10);
    running_start(&one);
    running_start(&other);
    EVENTUALLY(accepted(&one) == 10 && accepted(&other) == 10);
    ck_assert_str_eq(other.receiver->group, "group.1");
    running_stop(&other);
    running_stop(&one);
}
END_TEST

static TCase *add_case(Suite *suite, const char *name) {
    TCase *tests = tcase_create(name);
    tcase_add_checked_fixture(tests, setup, fixture_teardown);
    suite_add_tcase(suite, tests);
    return tests;
}

int main(void) {
    Suite *suite = suite_create("kafka");
    TCase *reading = add_case(suite, "reading");
    tcase_add_test(reading, reads_and_commits);
    tcase_add_test(reading, commits_only_what_is_safe);
    tcase_add_test(reading, what_became_safe_is_committed_at_the_stop);
    tcase_add_test(reading, goes_on_behind_the_checkpoint);
    tcase_add_test(reading, goes_on_at_the_committed_offset);
    tcase_add_test(reading, latest_begins_at_the_end);
    tcase_add_test(reading, latest_reads_all_of_a_partition_that_comes_later);
    TCase *records = add_case(suite, "records");
    tcase_add_test(records, repeats_are_dropped);
    tcase_add_test(records, repeats_are_told_across_a_restart);
    tcase_add_test(records, a_record_of_all_partitions_is_taken_once);
    tcase_add_test(records, copies_from_before_a_partition_came_are_taken);
    tcase_add_test(records, copies_are_told_across_a_restart);
    tcase_add_test(records, senders_are_bounded);
    tcase_add_test(records, values_of_all_layouts);
    tcase_add_test(records, kinds_may_change_from_message_to_message);
    tcase_add_test(records, refused_records_stop_nothing);
    TCase *ahead = add_case(suite, "ahead");
    tcase_add_test(ahead, fetching_goes_on_when_there_is_room);
    TCase *faults = add_case(suite, "faults");
    tcase_add_test(faults, waits_while_pipelines_are_blocked);
    tcase_add_test(faults, brokers_that_go_and_come);
    tcase_add_test(faults, brokers_that_go_untold);
    tcase_add_test(faults, starts_without_brokers);
    tcase_add_test(faults, failed_commits_are_tried_again);
    tcase_add_test(faults, fetch_errors_lose_nothing);
    tcase_add_test(faults, a_fatal_error_makes_a_new_consumer);
    TCase *range = add_case(suite, "range");
    tcase_add_test(range, a_topic_made_anew_is_read_from_its_beginning);
    tcase_add_test(range, the_record_that_was_read_last_proves_that_it_is_the_topic);
    tcase_add_test(range, a_topic_made_anew_with_more_records_is_read_from_its_beginning);
    tcase_add_test(range, a_topic_made_anew_with_one_record_less_is_read_from_its_beginning);
    tcase_add_test(range, marks_of_transactions_are_no_lag);
    TCase *group = add_case(suite, "group");
    tcase_add_test(group, a_second_pipeline_reads_on_its_own);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
