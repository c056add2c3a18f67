// SPDX-License-Identifier: Apache-2.0
// The Kafka exporter: what it encodes, which numbers it gives, and that each record gets to the
// mock cluster once and in order, whatever goes wrong on the way.
#include "cli/component_list.h"
#include "exporters/kafka/exporter.h"
#include "pipeline/component/decoder.h"
#include "pipeline/model/node_event.h"
#include "pipeline/model/observation.h"
#include "pipeline/model/telemetry_event.h"
#include "tests/support/kafka_mock.h"

#include <pthread.h>

static struct kafka_exporter_config config;
static struct kafka_exporter *self;
static struct buffer out;
static struct arena arena;

static const struct decoder_type some_decoder = {.name = "stormlog"};

static void start(void) {
    struct component_context context = {.id = "kafka/test", .site = "exporter/kafka/test"};
    struct error error = {0};
    self = memory_zero(1, sizeof *self);
    enum status status = component_start(&exporter_kafka, self, &config, &context, &error);
    ck_assert_msg(status == STATUS_OK, "%s", error.message);
}

static void stop(void) {
    component_stop(&exporter_kafka, self);
    memory_give(self);
}

static void setup(void) {
    fixture_setup();
    config =
        (struct kafka_exporter_config){.connection = {.brokers = {brokers, 1}, .client_id = "test"},
                                       .topic = "t",
                                       .payload = KAFKA_EVENTS,
                                       .compression = 3,
                                       .linger = {1000000},
                                       .max_message_size = {100000},
                                       .sender = "node",
                                       .sending = {.timeout = {60 * INT64_C(1000000000)}}};
    buffer_init(&out, 1 << 24);
    arena_init(&arena, 4096);
    start();
}

static void teardown(void) {
    stop();
    buffer_release(&out);
    arena_release(&arena);
    fixture_teardown();
}

// -- events -------------------------------------------------------------------------------------

struct sample_of {
    const char *job;
    int32_t rank;
    const char *session; // NULL: none
    uint64_t time_ns;
};

static void encode_sample(const struct sample_of *sample, const struct carried *carried) {
    struct telemetry telemetry = {
        .timestamp_ns = sample->time_ns,
        .type = TELEMETRY_SAMPLE,
        .rank = sample->rank,
        .session = sample->session == NULL ? STRING_NONE : intern(slice_of(sample->session))};
    struct event event = {.time_ns = sample->time_ns,
                          .job = sample->job == NULL ? STRING_NONE : intern(slice_of(sample->job)),
                          .rank = sample->rank,
                          .kind = EVENT_TELEMETRY,
                          .decoder = &some_decoder,
                          .raw = slice_of(arena_format(&arena, "record at %llu",
                                                       (unsigned long long)sample->time_ns)),
                          .carried = carried,
                          .telemetry = &telemetry};
    struct batch batch = {.events = &event, .event_count = 1, .arena = &arena};
    exporter_kafka.exporter.encode(self, &batch, &out);
}

static void encode_event(struct event event) {
    event.decoder = &some_decoder;
    if (event.raw.size == 0)
        event.raw = SLICE("raw");
    struct batch batch = {.events = &event, .event_count = 1, .arena = &arena};
    exporter_kafka.exporter.encode(self, &batch, &out);
}

// Evidence that has no job.
static void encode_evidence(const char *raw) {
    static const struct kernel_line line = {.kind = KERNEL_XID};
    encode_event((struct event){.node = intern(SLICE("n1")),
                                .rank = RANK_NONE,
                                .kind = EVENT_KERNEL,
                                .kernel = &line,
                                .raw = slice_of(raw)});
}

// The last frame that was encoded.
static struct record_frame last_frame(void) {
    struct slice rest = buffer_slice(&out);
    struct record_frame frame = {0};
    while (rest.size > 0)
        ck_assert(record_frame_read(&rest, &frame));
    return frame;
}

static const char *frame_header(const struct record_frame *frame, const char *name) {
    for (uint32_t i = 0; i < frame->header_count; i++)
        if (slice_equal(frame->headers[i].name, slice_of(name)))
            return arena_text(&arena, frame->headers[i].value);
    return "";
}

static void check_carried(const struct sample_of *sample, const char *generation,
                          const char *first_sample) {
    encode_sample(sample, NULL);
    struct record_frame frame = last_frame();
    ck_assert_str_eq(frame_header(&frame, "culprit-generation"), generation);
    ck_assert_str_eq(frame_header(&frame, "culprit-first-sample"), first_sample);
}

START_TEST(events_as_they_came) {
    encode_sample(&(struct sample_of){"job", 3, "s", 100}, NULL);
    struct record_frame frame = last_frame();
    ck_assert(slice_equal(frame.key, SLICE("job")));
    ck_assert(slice_equal(frame.value, SLICE("record at 100")));
    ck_assert_str_eq(frame_header(&frame, "culprit-schema"), "culprit.event.v1");
    ck_assert_str_eq(frame_header(&frame, "culprit-format"), "stormlog");
    ck_assert_str_eq(frame_header(&frame, "culprit-job"), "job");
    ck_assert_str_eq(frame_header(&frame, "culprit-sequence"), "1");
    ck_assert_mem_eq(frame_header(&frame, "culprit-sender"), "node/", 5);
    // Without a job there is no key; what was carried goes on as it is.
    encode_sample(&(struct sample_of){NULL, 3, "s", 200},
                  &(struct carried){.first_sample_ns = 50, .generation = 7});
    frame = last_frame();
    ck_assert_ptr_null(frame.key.data);
    ck_assert_str_eq(frame_header(&frame, "culprit-job"), "");
    ck_assert_str_eq(frame_header(&frame, "culprit-sequence"), "2");
    ck_assert_str_eq(frame_header(&frame, "culprit-generation"), "7");
    ck_assert_str_eq(frame_header(&frame, "culprit-first-sample"), "50");
}
END_TEST

static bool is_for_all(void) {
    struct record_frame frame = last_frame();
    return frame.key.data == NULL &&
           slice_equal(frame.headers[frame.header_count - 1].name, SLICE(RECORD_COPIES));
}

START_TEST(evidence_without_a_job_is_for_all) {
    string_id node = intern(SLICE("n1")), job = intern(SLICE("job"));
    encode_evidence("xid");
    ck_assert(is_for_all());
    struct event kernel = {.rank = RANK_NONE, .kind = EVENT_KERNEL, .job = job};
    encode_event(kernel);
    ck_assert(slice_equal(last_frame().key, SLICE("job")));
    static const struct observation link = {.kind = OBSERVATION_IB_STATE};
    static const struct observation counter = {.kind = OBSERVATION_IB_COUNTER};
    struct event event = {.node = node, .rank = RANK_NONE, .kind = EVENT_OBSERVATION};
    event.observation = &link;
    encode_event(event);
    ck_assert(is_for_all());
    // What there is too much of goes by the node.
    event.observation = &counter;
    encode_event(event);
    ck_assert(slice_equal(last_frame().key, SLICE("n1")));
    event.node = STRING_NONE;
    encode_event(event);
    ck_assert_ptr_null(last_frame().key.data);
    ck_assert(!is_for_all());
    encode_event((struct event){.node = node, .rank = RANK_NONE, .kind = EVENT_GPU_SAMPLE});
    ck_assert(slice_equal(last_frame().key, SLICE("n1")));
    static const struct flight_dump entry = {.whole = false}, dump = {.whole = true};
    encode_event((struct event){.node = node, .kind = EVENT_FLIGHT, .flight = &entry});
    ck_assert(slice_equal(last_frame().key, SLICE("n1")));
    encode_event((struct event){.node = node, .kind = EVENT_FLIGHT, .flight = &dump});
    ck_assert(is_for_all());
    config.key = KAFKA_KEY_NONE;
    encode_evidence("xid");
    ck_assert(!is_for_all());
    ck_assert_ptr_null(last_frame().key.data);
}
END_TEST

static void see(const char *node, const char *job, uint64_t hour) {
    static const struct rank_place place = {.rank = 0};
    encode_event((struct event){.node = intern(slice_of(node)),
                                .job = intern(slice_of(job)),
                                .time_ns = hour * 3600 * UINT64_C(1000000000),
                                .kind = EVENT_RANK_MAP,
                                .place = &place});
}

// The keys of the records that a sample of the node makes, "a,b".
static const char *keys_of_sample(const char *node) {
    static char keys[256];
    size_t begin = out.size, used = 0;
    uint64_t sequence = self->sender.counter.sequence;
    encode_event((struct event){
        .node = intern(slice_of(node)), .rank = RANK_NONE, .kind = EVENT_GPU_SAMPLE});
    struct slice rest = {out.data + begin, out.size - begin};
    struct record_frame frame;
    keys[0] = '\0';
    while (rest.size > 0) {
        ck_assert(record_frame_read(&rest, &frame));
        ck_assert_uint_eq(frame.sequence, ++sequence);
        ck_assert_str_eq(frame_header(&frame, "culprit-job"), "");
        used += (size_t)snprintf(keys + used, sizeof keys - used, "%s%.*s", used == 0 ? "" : ",",
                                 (int)frame.key.size, frame.key.data);
    }
    return keys;
}

START_TEST(samples_go_to_the_jobs_of_their_node) {
    ck_assert_str_eq(keys_of_sample("n1"), "n1");
    see("n1", "a", 100);
    see("n2", "z", 100);
    ck_assert_str_eq(keys_of_sample("n1"), "a");
    ck_assert_str_eq(keys_of_sample("n2"), "z");
    ck_assert_str_eq(keys_of_sample("n3"), "n3");
    // Two jobs share it, or it goes over to the other one.
    see("n1", "b", 101);
    ck_assert_str_eq(keys_of_sample("n1"), "a,b");
    see("n1", "b", 102);
    ck_assert_str_eq(keys_of_sample("n1"), "b");
    ck_assert_str_eq(keys_of_sample("n2"), "z"); // nothing newer is known of it
    see("n1", "a", 102);
    ck_assert_str_eq(keys_of_sample("n1"), "a,b");
    see("n1", "a", 50); // late
    ck_assert_str_eq(keys_of_sample("n1"), "a,b");
    see("n1", "c", 0); // a map that says no time
    ck_assert_str_eq(keys_of_sample("n1"), "a,b,c");
    // Evidence goes to all the same: a third job may be starting there.
    encode_evidence("xid");
    ck_assert(is_for_all());
}
END_TEST

START_TEST(jobs_of_a_node_are_bounded) {
    for (char job[] = "a"; job[0] <= 'z'; job[0]++)
        see("n1", job, 100);
    ck_assert_uint_eq(table_live(&self->nodes.pairs), KAFKA_NODE_JOBS_MAX);
    char node[16];
    for (int i = 0; i < KAFKA_PAIRS_MAX; i++) {
        snprintf(node, sizeof node, "m%d", i);
        see(node, "job", 100);
        buffer_reset(&out);
    }
    ck_assert_uint_eq(table_live(&self->nodes.pairs), KAFKA_PAIRS_MAX);
    see("late", "job", 100);
    ck_assert_str_eq(keys_of_sample("late"), "late");
    see("later", "job", 102); // the others were not seen for an hour
    ck_assert_str_eq(keys_of_sample("later"), "job");
    ck_assert_str_eq(keys_of_sample("m7"), "m7");
    ck_assert_uint_eq(table_live(&self->nodes.pairs), 1);
}
END_TEST

START_TEST(jobs_of_nodes_are_known_after_a_load) {
    see("n1", "b", 100);
    see("n1", "a", 100);
    see("n2", "z", 100);
    component_restored(&exporter_kafka, self); // the rows as they are, the rest made anew
    ck_assert_str_eq(keys_of_sample("n1"), "b,a");
    ck_assert_str_eq(keys_of_sample("n2"), "z");
    struct state_list list = {0};
    component_list_state(&exporter_kafka, self, &list);
    ck_assert_str_eq(list.entries[list.count - 1].name, "kafka.nodes");
    // Rows that make no sense are left aside.
    for (int i = 0; i < KAFKA_NODE_JOBS_MAX; i++) {
        struct kafka_pair *pair = table_row(&self->nodes.pairs, table_add(&self->nodes.pairs));
        *pair = (struct kafka_pair){.node = intern(SLICE("n1")), .job = intern(SLICE("c"))};
    }
    component_restored(&exporter_kafka, self);
    ck_assert_str_eq(keys_of_sample("n1"), "n1");
    see("n1", "d", 100);
    ck_assert_str_eq(keys_of_sample("n1"), "d");
}
END_TEST

// One record, several events: the job of any counts, and so does what is rare.
START_TEST(a_record_goes_where_any_of_its_events_has_to) {
    static const struct observation counter = {.kind = OBSERVATION_IB_COUNTER};
    static const struct observation link = {.kind = OBSERVATION_IB_STATE};
    struct slice raw = SLICE("one record");
    struct event events[] = {
        {.kind = EVENT_OBSERVATION, .observation = &counter, .raw = raw, .decoder = &some_decoder},
        {.kind = EVENT_OBSERVATION, .observation = &link, .raw = raw, .decoder = &some_decoder}};
    struct batch batch = {.events = events, .event_count = 2, .arena = &arena};
    exporter_kafka.exporter.encode(self, &batch, &out);
    ck_assert(is_for_all());
    ck_assert_uint_eq(last_frame().sequence, 1);
    events[1].job = intern(SLICE("job"));
    exporter_kafka.exporter.encode(self, &batch, &out);
    ck_assert(slice_equal(last_frame().key, SLICE("job")));
    ck_assert_uint_eq(last_frame().sequence, 2);
    // The next record, with the same text, is another one.
    events[1].raw = SLICE("another one");
    exporter_kafka.exporter.encode(self, &batch, &out);
    ck_assert_uint_eq(last_frame().sequence, 4);
}
END_TEST

START_TEST(generations_and_first_samples) {
    check_carried(&(struct sample_of){"job", 0, "a", 100}, "1", "100");
    check_carried(&(struct sample_of){"job", 0, "a", 200}, "1", "100");
    check_carried(&(struct sample_of){"job", 1, "x", 300}, "1", "300");
    // A later session begins a generation; a late sample of the one before is of the one before.
    check_carried(&(struct sample_of){"job", 0, "b", 400}, "2", "400");
    check_carried(&(struct sample_of){"job", 0, "a", 250}, "1", "100");
    check_carried(&(struct sample_of){"job", 0, "b", 390}, "2", "390");
    // One that began before the newest cannot be placed.
    check_carried(&(struct sample_of){"job", 0, "c", 50}, "", "");
    check_carried(&(struct sample_of){"other", 0, NULL, 500}, "1", "500");
    check_carried(&(struct sample_of){"other", 0, NULL, 450}, "1", "450");
}
END_TEST

START_TEST(numbers_go_on_after_a_load) {
    encode_sample(&(struct sample_of){"job", 0, "a", 100}, NULL);
    encode_sample(&(struct sample_of){"job", 0, "a", 200}, NULL);
    struct forward_counter counter = self->sender.counter;
    struct record_frame before = last_frame();
    const char *sender = frame_header(&before, "culprit-sender");
    stop();
    start();
    // As the pipeline does it: the struct is filled, then `restored`.
    struct state_list list = {0};
    component_list_state(&exporter_kafka, self, &list);
    ck_assert_str_eq(list.entries[0].name, "kafka.counter");
    memcpy(list.entries[0].bytes, &counter, sizeof counter);
    component_restored(&exporter_kafka, self);
    encode_sample(&(struct sample_of){"job", 0, "a", 300}, NULL);
    struct record_frame frame = last_frame();
    ck_assert_uint_eq(frame.sequence, 3);
    ck_assert_str_eq(frame_header(&frame, "culprit-sender"), sender);
    // Without it the counting is another one.
    stop();
    start();
    encode_sample(&(struct sample_of){"job", 0, "a", 400}, NULL);
    frame = last_frame();
    ck_assert_uint_eq(frame.sequence, 1);
    ck_assert_str_ne(frame_header(&frame, "culprit-sender"), sender);
}
END_TEST

START_TEST(verdicts_have_job_and_id_as_key) {
    config.payload = KAFKA_VERDICTS;
    struct verdict verdict = {.pattern = "p",
                              .kind = "k",
                              .job = intern(SLICE("job")),
                              .headline = SLICE("h"),
                              .remediation = SLICE("r"),
                              .action = "monitor"};
    verdict_set_id(&verdict, "p", NULL, 0);
    struct batch batch = {.arena = &arena, .verdicts = {&verdict, 1, 1}};
    exporter_kafka.exporter.encode(self, &batch, &out);
    struct record_frame frame = last_frame();
    char key[128];
    snprintf(key, sizeof key, "job/%s", verdict.id);
    ck_assert(slice_equal(frame.key, slice_of(key)));
    ck_assert_str_eq(frame_header(&frame, "culprit-verdict-id"), verdict.id);
    ck_assert_str_eq(frame_header(&frame, "culprit-schema"), "culprit.verdict.v1");
    ck_assert_int_eq(frame.value.data[0], '{');
    ck_assert_int_eq(frame.value.data[frame.value.size - 1], '}');
    config.key = KAFKA_KEY_NONE;
    exporter_kafka.exporter.encode(self, &batch, &out);
    ck_assert_ptr_null(last_frame().key.data);
}
END_TEST

START_TEST(damaged_frames_are_told) {
    encode_sample(&(struct sample_of){"job", 0, "a", 100}, NULL);
    struct record_frame frame;
    for (size_t size = 0; size < out.size; size++) {
        struct slice cut = {out.data, size};
        ck_assert(!record_frame_read(&cut, &frame));
    }
    for (size_t i = 4; i + 4 < out.size; i++) {
        char kept = out.data[i];
        out.data[i] = (char)0x7f;
        struct slice rest = buffer_slice(&out);
        (void)record_frame_read(&rest, &frame); // reads nothing outside
        out.data[i] = kept;
    }
}
END_TEST

// -- sending ------------------------------------------------------------------------------------

static void encode_many(uint64_t from, uint64_t to) {
    for (uint64_t i = from; i < to; i++)
        encode_sample(&(struct sample_of){"job", 0, "a", i}, NULL);
}

static enum status send_out(struct error *error) {
    struct request request = {.bytes = buffer_slice(&out), .complete = true};
    struct send_outcome outcome = {0};
    enum status status = exporter_kafka.exporter.send(self, &request, &outcome, error);
    ck_assert(!outcome.sink_dead);
    return status;
}

// All records of the job are in one partition, in order, each once, with these numbers.
static void check_arrived(const uint64_t *sequences, uint32_t count) {
    rd_kafka_t *readers[] = {make_reader("t", 0), make_reader("t", 1)};
    uint32_t found = 0;
    int32_t partition = 0;
    // The other one when this one is quiet, until all are there and then nothing more comes.
    uint64_t until_ns = clock_monotonic_ns() + EVENTUALLY_S * UINT64_C(1000000000);
    for (int turn = 0, quiet = 0; quiet < 2;) {
        rd_kafka_message_t *message =
            kafka->consumer_poll(readers[turn % 2], found == count ? 1500 : 50);
        if (message == NULL) {
            turn++;
            quiet += found == count || clock_monotonic_ns() > until_ns;
            continue;
        }
        ck_assert_int_eq((int)message->err, (int)RD_KAFKA_RESP_ERR_NO_ERROR);
        ck_assert_uint_lt(found, count);
        partition = found == 0 ? message->partition : partition;
        ck_assert_int_eq(message->partition, partition);
        ck_assert_uint_eq(strtoull(header_of(message, "culprit-sequence"), NULL, 10),
                          sequences[found]);
        found++;
        kafka->message_destroy(message);
    }
    ck_assert_uint_eq(found, count);
    kafka->destroy_flags(readers[0], RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    kafka->destroy_flags(readers[1], RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
}

static void check_arrived_up_to(uint32_t last) {
    uint64_t sequences[512];
    for (uint32_t i = 0; i < last; i++)
        sequences[i] = i + 1;
    check_arrived(sequences, last);
}

START_TEST(records_arrive_in_order) {
    struct error error = {0};
    encode_many(0, 300);
    ck_assert_msg(send_out(&error) == STATUS_OK, "%s", error.message);
    ck_assert_int_eq(send_out(&error), STATUS_OK); // all of them are there already
    buffer_reset(&out);
    encode_many(300, 310);
    ck_assert_int_eq(send_out(&error), STATUS_OK);
    check_arrived_up_to(310);
}
END_TEST

START_TEST(a_broker_that_is_down_loses_and_repeats_nothing) {
    struct error error = {0};
    config.sending.timeout.ns = 500 * INT64_C(1000000);
    encode_many(0, 10);
    EVENTUALLY(send_out(&error) == STATUS_OK);
    ck_assert_int_eq((int)mock.mock_broker_set_down(cluster, 1), 0);
    buffer_reset(&out);
    encode_many(10, 60);
    ck_assert_int_eq(send_out(&error), STATUS_IO);
    ck_assert_ptr_nonnull(strstr(error.message, "did not acknowledge 50 of 50 records for t"));
    encode_many(60, 80); // the request has grown
    ck_assert_int_eq(send_out(&error), STATUS_IO);
    ck_assert_int_eq((int)mock.mock_broker_set_up(cluster, 1), 0);
    EVENTUALLY(send_out(&error) == STATUS_OK);
    check_arrived_up_to(80);
}
END_TEST

START_TEST(answers_that_are_errors) {
    enum { PRODUCE = 0 };
    struct error error = {0};
    const rd_kafka_resp_err_t passing[] = {RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
                                           RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
                                           RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS};
    mock.mock_push_request_errors_array(cluster, PRODUCE, 3, passing);
    encode_many(0, 50);
    EVENTUALLY(send_out(&error) == STATUS_OK);
    // Rights that are missing now: told, and tried again, without a gap or a repeat.
    const rd_kafka_resp_err_t denied[] = {RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED};
    mock.mock_push_request_errors_array(cluster, PRODUCE, 1, denied);
    buffer_reset(&out);
    encode_many(50, 100);
    ck_assert_int_eq(send_out(&error), STATUS_DENIED);
    ck_assert_ptr_nonnull(strstr(error.message, "uthorization"));
    EVENTUALLY(send_out(&error) == STATUS_OK);
    check_arrived_up_to(100);
}
END_TEST

START_TEST(a_record_that_is_too_large_is_left_out) {
    struct error error = {0};
    encode_many(0, 3);
    char *large = memory_take(200000);
    memset(large, 'x', 199999);
    large[199999] = '\0';
    struct telemetry telemetry = {.type = TELEMETRY_OTHER};
    struct event event = {
        .kind = EVENT_TELEMETRY, .decoder = &some_decoder, .telemetry = &telemetry};
    event.job = intern(SLICE("job"));
    event.raw = slice_of(large);
    struct batch batch = {.events = &event, .event_count = 1, .arena = &arena};
    exporter_kafka.exporter.encode(self, &batch, &out);
    encode_many(4, 6);
    ck_assert_msg(send_out(&error) == STATUS_OK, "%s", error.message);
    ck_assert_uint_eq(metric_value(self->undeliverable), 1);
    memory_give(large);
    check_arrived((const uint64_t[]){1, 2, 3, 5, 6}, 5);
}
END_TEST

START_TEST(a_record_that_brokers_refuse_is_found_and_left_out) {
    enum { PRODUCE = 0 };
    struct error error = {0};
    // The first answer is for all of them together; then one by one, of which the first is refused.
    const rd_kafka_resp_err_t refused[] = {RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE,
                                           RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE};
    config.linger.ns = 200 * INT64_C(1000000);
    stop();
    start();
    mock.mock_push_request_errors_array(cluster, PRODUCE, 2, refused);
    encode_many(0, 5);
    EVENTUALLY(send_out(&error) == STATUS_OK);
    ck_assert_uint_eq(metric_value(self->undeliverable), 1);
    check_arrived((const uint64_t[]){2, 3, 4, 5}, 4);
}
END_TEST

// What one partition holds, in order.
static uint32_t read_partition(int32_t partition, uint64_t *sequences, uint32_t max) {
    rd_kafka_t *reader = make_reader("t", partition);
    rd_kafka_message_t *message;
    uint32_t count = 0;
    while ((message = kafka->consumer_poll(reader, count == 0 ? 15000 : 3000)) != NULL) {
        ck_assert_int_eq((int)message->err, (int)RD_KAFKA_RESP_ERR_NO_ERROR);
        ck_assert_uint_lt(count, max);
        bool copy = slice_equal((struct slice){message->payload, message->len}, SLICE("xid"));
        ck_assert_str_eq(header_of(message, "culprit-copies"), copy ? "2" : "");
        sequences[count++] = strtoull(header_of(message, "culprit-sequence"), NULL, 10);
        kafka->message_destroy(message);
    }
    kafka->destroy_flags(reader, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    return count;
}

// In each partition the numbers rise, but for what comes again; evidence (every fifth record) is in
// both, each other record in one. `repeats`: some may have come again.
static void check_copies(uint32_t last, bool repeats) {
    static unsigned char seen[2][512];
    uint64_t sequences[1024];
    memset(seen, 0, sizeof seen);
    for (int32_t partition = 0; partition < 2; partition++) {
        uint64_t highest = 0;
        uint32_t count = read_partition(partition, sequences, 1024);
        for (uint32_t i = 0; i < count; i++) {
            ck_assert(sequences[i] > 0 && sequences[i] <= last);
            ck_assert(repeats || sequences[i] > highest);
            // As a receiver takes them: none behind a later one for the first time.
            ck_assert(sequences[i] > highest || seen[partition][sequences[i]]);
            highest = sequences[i] > highest ? sequences[i] : highest;
            seen[partition][sequences[i]] = 1;
        }
    }
    for (uint32_t i = 1; i <= last; i++)
        ck_assert_int_eq(seen[0][i] + seen[1][i], i % 5 == 0 ? 2 : 1);
}

static void encode_mixed(uint64_t from, uint64_t to) {
    for (uint64_t i = from; i < to; i++)
        if (i % 5 == 0)
            encode_evidence("xid");
        else
            encode_sample(&(struct sample_of){"job", 0, "a", i}, NULL);
}

START_TEST(evidence_is_in_every_partition) {
    struct error error = {0};
    encode_mixed(1, 101);
    ck_assert_msg(send_out(&error) == STATUS_OK, "%s", error.message);
    ck_assert_int_eq(send_out(&error), STATUS_OK);
    ck_assert_uint_eq(self->delivery.under_way, 0);
    check_copies(100, false);
}
END_TEST

START_TEST(evidence_survives_failures) {
    enum { PRODUCE = 0 };
    struct error error = {0};
    const rd_kafka_resp_err_t denied[] = {RD_KAFKA_RESP_ERR_NO_ERROR,
                                          RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED};
    config.linger.ns = 100 * INT64_C(1000000);
    config.sending.timeout.ns = 5000 * INT64_C(1000000); // for the answer that is an error
    stop();
    start();
    // One of two partitions takes its messages, the other one does not.
    mock.mock_push_request_errors_array(cluster, PRODUCE, 2, denied);
    encode_mixed(1, 51);
    ck_assert_int_eq(send_out(&error), STATUS_DENIED);
    EVENTUALLY(send_out(&error) == STATUS_OK);
    // No broker: also the number of partitions is not to be had.
    ck_assert_int_eq((int)mock.mock_broker_set_down(cluster, 1), 0);
    self->partition_count = 0;
    buffer_reset(&out);
    encode_mixed(51, 101);
    ck_assert_int_eq(send_out(&error), STATUS_IO);
    ck_assert_ptr_nonnull(strstr(error.message, "of 50 records"));
    ck_assert_int_eq((int)mock.mock_broker_set_up(cluster, 1), 0);
    EVENTUALLY(send_out(&error) == STATUS_OK);
    ck_assert_uint_eq(self->delivery.under_way, 0);
    check_copies(100, true);
}
END_TEST

// The queue of librdkafka is full between the copies of a record: the others follow later.
START_TEST(evidence_waits_for_room) {
    static const char *const settings[] = {"queue.buffering.max.messages=3"};
    struct error error = {0};
    config.connection.librdkafka = (struct text_list){settings, 1};
    stop();
    start();
    encode_mixed(1, 51);
    EVENTUALLY(send_out(&error) == STATUS_OK);
    check_copies(50, false);
}
END_TEST

START_TEST(a_fatal_error_makes_a_new_producer) {
    struct error error = {0};
    encode_many(0, 5);
    ck_assert_int_eq(send_out(&error), STATUS_OK);
    mock.test_fatal_error(self->producer, RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, "test");
    buffer_reset(&out);
    encode_many(5, 10);
    EVENTUALLY(send_out(&error) == STATUS_OK);
    check_arrived_up_to(10);
}
END_TEST

// -- what waits behind a request ------------------------------------------------------------------

enum { BLOCKS = 4, OF_BLOCK = 10 };
static struct slice blocks[BLOCKS]; // slices of `out`

static void encode_blocks(void) {
    for (uint64_t i = 0; i < BLOCKS; i++) {
        size_t begin = out.size;
        encode_many(i * OF_BLOCK, (i + 1) * OF_BLOCK);
        blocks[i].size = out.size - begin;
    }
    size_t at = 0;
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i].data = out.data + at;
        at += blocks[i].size;
    }
}

// As the sender does it: a block, and those behind it.
static enum status send_block(uint32_t index, struct error *error) {
    struct request request = {.bytes = blocks[index],
                              .complete = true,
                              .ahead = blocks + index + 1,
                              .ahead_count = BLOCKS - 1 - index};
    struct send_outcome outcome = {0};
    return exporter_kafka.exporter.send(self, &request, &outcome, error);
}

static uint32_t under_way_or_delivered(uint32_t block) {
    const struct kafka_block *known =
        &self->delivery.blocks[(self->delivery.first + block) % KAFKA_BLOCKS_MAX];
    return known->count - known->waiting;
}

START_TEST(no_answer_is_waited_out_before_the_next_leaves) {
    struct error error = {0};
    encode_blocks();
    ck_assert_int_eq(send_block(0, &error), STATUS_OK);
    ck_assert_uint_eq(self->delivery.block_count, BLOCKS);
    for (uint32_t i = 0; i < BLOCKS; i++)
        ck_assert_uint_eq(under_way_or_delivered(i), OF_BLOCK);
    for (uint32_t i = 1; i < BLOCKS; i++)
        ck_assert_int_eq(send_block(i, &error), STATUS_OK);
    ck_assert_uint_eq(self->delivery.under_way, 0);
    check_arrived_up_to(BLOCKS * OF_BLOCK);
}
END_TEST

START_TEST(blocks_under_way_survive_a_broker_that_goes) {
    struct error error = {0};
    config.sending.timeout.ns = 500 * INT64_C(1000000);
    encode_blocks();
    EVENTUALLY(send_block(0, &error) == STATUS_OK);
    ck_assert_int_eq((int)mock.mock_broker_set_down(cluster, 1), 0);
    for (int i = 0; i < 2; i++)
        (void)send_block(1, &error); // may have arrived
    ck_assert_int_eq((int)mock.mock_broker_set_up(cluster, 1), 0);
    for (uint32_t i = 1; i < BLOCKS; i++)
        EVENTUALLY(send_block(i, &error) == STATUS_OK);
    check_arrived_up_to(BLOCKS * OF_BLOCK);
}
END_TEST

// The producer is made anew, and what it had under way comes again behind what failed.
START_TEST(a_failure_keeps_the_order_of_blocks) {
    enum { PRODUCE = 0 };
    struct error error = {0};
    const rd_kafka_resp_err_t denied[] = {RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED};
    encode_blocks();
    mock.mock_push_request_errors_array(cluster, PRODUCE, 1, denied);
    ck_assert_int_eq(send_block(0, &error), STATUS_DENIED);
    ck_assert_ptr_nonnull(strstr(error.message, "10 of 10 records for t were not delivered"));
    for (uint32_t i = 0; i < BLOCKS; i++)
        EVENTUALLY(send_block(i, &error) == STATUS_OK);
    check_arrived_up_to(BLOCKS * OF_BLOCK);
}
END_TEST

// Only in the block that it is in; the others go together.
START_TEST(a_refused_record_is_found_in_its_block) {
    enum { PRODUCE = 0 };
    struct error error = {0};
    const rd_kafka_resp_err_t refused[] = {RD_KAFKA_RESP_ERR_NO_ERROR,
                                           RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE,
                                           RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE};
    config.linger.ns = 300 * INT64_C(1000000);
    stop();
    start();
    encode_blocks();
    // The first block by itself; then the others in one request, which is refused, and alone the
    // first record of them.
    mock.mock_push_request_errors_array(cluster, PRODUCE, 3, refused);
    struct request request = {.bytes = blocks[0], .complete = true};
    struct send_outcome outcome = {0};
    ck_assert_int_eq(exporter_kafka.exporter.send(self, &request, &outcome, &error), STATUS_OK);
    for (uint32_t i = 1; i < BLOCKS; i++)
        EVENTUALLY(send_block(i, &error) == STATUS_OK);
    ck_assert_uint_eq(metric_value(self->undeliverable), 1);
    uint64_t arrived[BLOCKS * OF_BLOCK];
    uint32_t count = 0;
    for (uint32_t i = 1; i <= BLOCKS * OF_BLOCK; i++)
        if (i != OF_BLOCK + 1)
            arrived[count++] = i;
    check_arrived(arrived, count);
}
END_TEST

START_TEST(a_block_that_was_given_up_holds_nothing_back) {
    struct error error = {0};
    encode_blocks();
    ck_assert_int_eq(send_block(0, &error), STATUS_OK);
    // The sender dropped two, and goes on behind them.
    ck_assert_int_eq(send_block(3, &error), STATUS_OK);
    ck_assert_uint_eq(self->delivery.block_count, 1);
    check_arrived_up_to(BLOCKS * OF_BLOCK);
}
END_TEST

START_TEST(a_damaged_block_is_told) {
    struct error error = {0};
    encode_many(0, 1);
    struct slice whole = buffer_slice(&out);
    struct request request = {.bytes = {whole.data, whole.size - 1}, .complete = true};
    struct send_outcome outcome = {0};
    ck_assert_int_eq(exporter_kafka.exporter.send(self, &request, &outcome, &error), STATUS_BUG);
    memset(out.data + 12, 0x7f, 4); // the length of the key
    request.bytes = whole;
    ck_assert_int_eq(exporter_kafka.exporter.send(self, &request, &outcome, &error), STATUS_BUG);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("kafka exporter");
    TCase *encoding = tcase_create("encoding");
    tcase_add_checked_fixture(encoding, setup, teardown);
    tcase_add_test(encoding, events_as_they_came);
    tcase_add_test(encoding, evidence_without_a_job_is_for_all);
    tcase_add_test(encoding, samples_go_to_the_jobs_of_their_node);
    tcase_add_test(encoding, jobs_of_a_node_are_bounded);
    tcase_add_test(encoding, jobs_of_nodes_are_known_after_a_load);
    tcase_add_test(encoding, a_record_goes_where_any_of_its_events_has_to);
    tcase_add_test(encoding, generations_and_first_samples);
    tcase_add_test(encoding, numbers_go_on_after_a_load);
    tcase_add_test(encoding, verdicts_have_job_and_id_as_key);
    tcase_add_test(encoding, damaged_frames_are_told);
    suite_add_tcase(suite, encoding);
    TCase *sending = tcase_create("sending");
    tcase_add_checked_fixture(sending, setup, teardown);
    tcase_add_test(sending, records_arrive_in_order);
    tcase_add_test(sending, a_broker_that_is_down_loses_and_repeats_nothing);
    tcase_add_test(sending, answers_that_are_errors);
    tcase_add_test(sending, a_record_that_is_too_large_is_left_out);
    tcase_add_test(sending, a_record_that_brokers_refuse_is_found_and_left_out);
    tcase_add_test(sending, evidence_is_in_every_partition);
    tcase_add_test(sending, evidence_survives_failures);
    tcase_add_test(sending, evidence_waits_for_room);
    tcase_add_test(sending, a_fatal_error_makes_a_new_producer);
    suite_add_tcase(suite, sending);
    TCase *ahead = tcase_create("ahead");
    tcase_add_checked_fixture(ahead, setup, teardown);
    tcase_add_test(ahead, no_answer_is_waited_out_before_the_next_leaves);
    tcase_add_test(ahead, blocks_under_way_survive_a_broker_that_goes);
    tcase_add_test(ahead, a_failure_keeps_the_order_of_blocks);
    tcase_add_test(ahead, a_refused_record_is_found_in_its_block);
    tcase_add_test(ahead, a_block_that_was_given_up_holds_nothing_back);
    tcase_add_test(ahead, a_damaged_block_is_told);
    suite_add_tcase(suite, ahead);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
