// SPDX-License-Identifier: Apache-2.0
// The Alertmanager exporter against a small HTTP server: what an alert holds, when it ends, and
// what becomes of it with each kind of answer.
#include "cli/component_list.h"
#include "exporters/alertmanager/alert.h"
#include "tests/support/http_sink.h"
#include "tests/support/temporary.h"

#include <jansson.h>

enum { VERDICTS_MAX = 4 };
static const uint64_t START_NS = UINT64_C(1700000000000000000);

static union {
    char bytes[16384];
    max_align_t aligned;
} instance;
static struct alert_config config;
static struct component_context context = {.id = "alertmanager", .site = "exporter/alertmanager"};
static struct buffer out;
static struct arena arena;
static struct verdict items[VERDICTS_MAX];
static struct batch batch;
static struct http_sink sink;
static struct send_outcome outcome;
static struct error error;
static json_t *posted;

static void start(void) {
    ck_assert_uint_le(exporter_alertmanager.instance_size, sizeof instance);
    memset(&instance, 0, sizeof instance);
    config.client.endpoint = sink.url;
    error = (struct error){0};
    enum status status =
        component_start(&exporter_alertmanager, &instance, &config, &context, &error);
    ck_assert_msg(status == STATUS_OK, "%s", error.message);
}

static void setup(void) {
    config =
        (struct alert_config){.route.match = {.min_severity = SEVERITY_WARNING, .only_roots = true},
                              .resend_interval = {INT64_C(60000000000)},
                              .max_alerts = 8,
                              .sending.timeout = {INT64_C(5000000000)}};
    arena_init(&arena, 4096);
    buffer_init(&out, 1 << 24);
    batch = (struct batch){.arena = &arena, .verdicts = {.items = items}};
    posted = NULL;
}

static void teardown(void) {
    component_stop(&exporter_alertmanager, &instance);
    http_sink_stop(&sink);
    buffer_release(&out);
    arena_release(&arena);
    json_decref(posted);
}

static struct verdict *found(const char *key) {
    static struct entity entities[VERDICTS_MAX][2];
    uint32_t at = batch.verdicts.count++;
    struct verdict *verdict = &items[at];
    entities[at][0] = (struct entity){"rank", slice_of(key), ROLE_CULPRIT};
    entities[at][1] = (struct entity){"node", SLICE("node-1"), ROLE_VICTIM};
    *verdict = (struct verdict){.pattern = "nccl_hang",
                                .kind = "missing_rank",
                                .action = "inspect_rank",
                                .job = intern(SLICE("job \"a\"")),
                                .severity = SEVERITY_ERROR,
                                .confidence = 80,
                                .start_ns = START_NS,
                                .end_ns = START_NS,
                                .headline = slice_of(key),
                                .remediation = SLICE("Look at it."),
                                .entities = entities[at],
                                .entity_count = 2};
    struct slice id = slice_of(key);
    verdict_set_id(verdict, "nccl_hang", &id, 1);
    return verdict;
}

static struct request encoded(void) {
    buffer_reset(&out);
    exporter_alertmanager.exporter.encode(&instance, &batch, &out);
    ck_assert(!out.failed);
    batch.verdicts.count = 0;
    return (struct request){.bytes = buffer_slice(&out), .complete = true};
}

static enum status deliver(struct request request) {
    outcome = (struct send_outcome){0};
    return exporter_alertmanager.exporter.send(&instance, &request, &outcome, &error);
}

// The alerts of the post with this number, from 0.
static json_t *alerts(size_t number) {
    ck_assert(http_sink_wait(&sink, number + 1));
    json_decref(posted);
    posted = json_loads(sink.requests[number].body, 0, NULL);
    ck_assert_msg(json_is_array(posted), "%s", sink.requests[number].body);
    return posted;
}

static const char *text_at(const json_t *array, size_t at, const char *group, const char *key) {
    const json_t *alert = json_array_get(array, at);
    const json_t *value =
        json_object_get(group == NULL ? alert : json_object_get(alert, group), key);
    return value == NULL ? "absent" : json_string_value(value);
}

START_TEST(what_it_holds) {
    config.labels = (struct text_list){(const char *const[]){"cluster=eu=1"}, 1};
    config.link = "http://culprit/#{id}";
    http_sink_start(&sink, NULL, 0);
    start();
    struct verdict *verdict = found("3");
    struct evidence evidence[6] = {{.description = SLICE("a")},
                                   {.description = SLICE("again a"), .repeats = true},
                                   {.description = SLICE("b")},
                                   {.description = SLICE("c")},
                                   {.description = SLICE("again c"), .repeats = true},
                                   {.description = SLICE("d")}};
    verdict->evidence = evidence, verdict->evidence_count = 6;
    ck_assert_int_eq(deliver(encoded()), STATUS_OK);
    ck_assert_str_eq(sink.requests[0].path, "/api/v2/alerts");
    json_t *array = alerts(0);
    ck_assert_uint_eq(json_array_size(array), 1);
    static const char *const LABELS[][2] = {{"alertname", "TrainingIncident"},
                                            {"cluster", "eu=1"},
                                            {"kind", "missing_rank"},
                                            {"node", "absent"}, // only a victim
                                            {"pattern", "nccl_hang"},
                                            {"rank", "3"},
                                            {"severity", "error"},
                                            {"training_job", "job \"a\""}};
    for (size_t i = 0; i < sizeof LABELS / sizeof LABELS[0]; i++)
        ck_assert_str_eq(text_at(array, 0, "labels", LABELS[i][0]), LABELS[i][1]);
    ck_assert_str_eq(text_at(array, 0, "labels", "verdict"), verdict->id);
    ck_assert_str_eq(text_at(array, 0, "annotations", "description"), "Look at it.");
    ck_assert_str_eq(text_at(array, 0, "annotations", "who"), "rank 3");
    ck_assert_str_eq(text_at(array, 0, "annotations", "evidence"), "a\nb\nc\nand 1 more");
    ck_assert_str_eq(text_at(array, 0, NULL, "startsAt"), "2023-11-14T22:13:20Z");
    ck_assert_ptr_nonnull(strstr(text_at(array, 0, NULL, "generatorURL"), verdict->id));
    // Fires for four intervals, and is due again after one.
    ck_assert_str_gt(text_at(array, 0, NULL, "endsAt"), "2026");
    struct send_pace pace = exporter_alertmanager.exporter.pace(&instance);
    ck_assert_uint_ne(pace.again_ns, UINT64_MAX);
}
END_TEST

START_TEST(what_is_none) {
    http_sink_start(&sink, NULL, 0);
    start();
    struct attribute attribute = {"culprit.root", SLICE("false")};
    struct verdict *consequence = found("1");
    consequence->attributes = &attribute;
    consequence->attribute_count = 1;
    found("2")->severity = SEVERITY_INFO;
    found("3")->state = VERDICT_RESOLVED;
    ck_assert_int_eq(deliver(encoded()), STATUS_OK);
    ck_assert_uint_eq(sink.count, 0);
    ck_assert_uint_eq(exporter_alertmanager.exporter.pace(&instance).again_ns, UINT64_MAX);
}
END_TEST

// One with other labels is another alert to Alertmanager; a consequence is none any more.
START_TEST(what_changes) {
    http_sink_start(&sink, NULL, 0);
    start();
    found("1");
    ck_assert_int_eq(deliver(encoded()), STATUS_OK);
    found("1")->severity = SEVERITY_CRITICAL;
    ck_assert_int_eq(deliver(encoded()), STATUS_OK);
    json_t *array = alerts(1);
    ck_assert_uint_eq(json_array_size(array), 2);
    ck_assert_str_eq(text_at(array, 0, "labels", "severity"), "error");
    ck_assert_str_eq(text_at(array, 1, "labels", "severity"), "critical");
    ck_assert_str_lt(text_at(array, 0, NULL, "endsAt"), text_at(array, 1, NULL, "endsAt"));
    char firing_until[64];
    snprintf(firing_until, sizeof firing_until, "%s", text_at(array, 1, NULL, "endsAt"));
    struct attribute attribute = {"culprit.root", SLICE("false")};
    struct verdict *consequence = found("1");
    consequence->attributes = &attribute;
    consequence->attribute_count = 1;
    consequence->entity_count = 0; // its labels as a consequence do not matter
    ck_assert_int_eq(deliver(encoded()), STATUS_OK);
    array = alerts(2);
    ck_assert_uint_eq(json_array_size(array), 1);
    ck_assert_str_eq(text_at(array, 0, "labels", "rank"), "1");
    ck_assert_str_eq(text_at(array, 0, "labels", "severity"), "critical");
    ck_assert_str_lt(text_at(array, 0, NULL, "endsAt"), firing_until);
}
END_TEST

// Of two that are posted together and refused, only the one that is refused by itself is lost.
START_TEST(refused) {
    static const struct sink_answer answers[] = {{.status = 400, .body = "{\"code\":601}"},
                                                 {.status = 200},
                                                 {.status = 400},
                                                 {.status = 200}};
    http_sink_start(&sink, answers, 4);
    start();
    found("1");
    found("2");
    found("3");
    struct request request = encoded();
    ck_assert_int_eq(deliver(request), STATUS_IO);
    const char *second = memchr(request.bytes.data, '\n', request.bytes.size);
    ck_assert_uint_eq(outcome.taken, (size_t)(second + 1 - request.bytes.data));
    const char *third = strchr(second + 1, '\n');
    ck_assert_uint_eq(outcome.refused, (size_t)(third - second));
    ck_assert_ptr_nonnull(strstr(error.message, "400"));
    request.bytes.data = third + 1;
    request.bytes.size -= outcome.taken + outcome.refused;
    ck_assert_int_eq(deliver(request), STATUS_OK);
    ck_assert_str_eq(text_at(alerts(3), 0, "labels", "rank"), "3");
    ck_assert_uint_eq(json_array_size(posted), 1);
}
END_TEST

// Others may be put right while alerts wait: nothing is dropped.
START_TEST(failures) {
    static const int STATUSES[] = {401, 404, 429, 500, 503, 0};
    static struct sink_answer answers[7];
    for (int i = 0; i < 6; i++)
        answers[i] = (struct sink_answer){.status = STATUSES[i]};
    answers[2].headers = "Retry-After: 2\r\n";
    answers[6].status = 200;
    http_sink_start(&sink, answers, 7);
    start();
    found("1");
    struct request request = encoded();
    for (int i = 0; i < 6; i++) {
        ck_assert_int_eq(deliver(request), STATUS_IO);
        ck_assert_uint_eq(outcome.taken + outcome.refused, 0);
        ck_assert(!outcome.sink_dead);
        ck_assert_uint_eq(outcome.retry_after_ns, i == 2 ? UINT64_C(2000000000) : 0);
    }
    ck_assert_int_eq(deliver(request), STATUS_OK);
}
END_TEST

// What fires goes on after a restart, is resolved by its verdict, and is known with its labels.
START_TEST(over_a_restart) {
    http_sink_start(&sink, NULL, 0);
    start();
    found("1");
    found("2");
    ck_assert_int_eq(deliver(encoded()), STATUS_OK);
    struct buffer kept;
    buffer_init(&kept, 1 << 20);
    exporter_alertmanager.exporter.delivered(&instance, &kept);
    component_stop(&exporter_alertmanager, &instance);
    start();
    ck_assert_int_eq(exporter_alertmanager.exporter.resume(&instance, buffer_slice(&kept), &error),
                     STATUS_OK);
    buffer_release(&kept);
    ck_assert_uint_eq(exporter_alertmanager.exporter.pace(&instance).again_ns, 0);
    found("2")->severity = SEVERITY_WARNING;
    ck_assert_int_eq(deliver(encoded()), STATUS_OK);
    json_t *array = alerts(1); // all that is to be posted: also what fires on
    ck_assert_uint_eq(json_array_size(array), 3);
    ck_assert_str_eq(text_at(array, 0, "labels", "rank"), "1");
    ck_assert_str_eq(text_at(array, 1, "labels", "severity"), "error");
    ck_assert_str_eq(text_at(array, 2, "labels", "severity"), "warning");
}
END_TEST

// More than max_alerts: the oldest is not repeated.
START_TEST(too_many) {
    config.max_alerts = 2;
    http_sink_start(&sink, NULL, 0);
    start();
    found("1");
    found("2");
    found("3");
    ck_assert_int_eq(deliver(encoded()), STATUS_OK);
    ck_assert_uint_eq(json_array_size(alerts(0)), 2);
    ck_assert_str_eq(text_at(alerts(1), 0, "labels", "rank"), "3");
    struct buffer kept;
    buffer_init(&kept, 1 << 20);
    exporter_alertmanager.exporter.delivered(&instance, &kept);
    buffer_append_char(&kept, '\0');
    ck_assert_ptr_null(strstr(kept.data, "\"rank\":\"1\""));
    ck_assert_ptr_nonnull(strstr(kept.data, "\"rank\":\"2\""));
    buffer_release(&kept);
}
END_TEST

START_TEST(age) {
    static char labels[] = "{\"a\":\"b\"}";
    struct alert_table table;
    config.resolve_after.ns = 100;
    alert_table_begin(&table, &config);
    char line[200];
    snprintf(line, sizeof line, "nccl_hang:1\tfiring\t5\t%s\t%s", labels, labels);
    struct alert *alert = alert_table_take(&table, slice_of(line), 1000);
    ck_assert_ptr_nonnull(alert);
    alert_was_posted(alert, 1);
    alert_table_age(&table, 1099);
    ck_assert_uint_eq(alert->resolved_ns, 0);
    alert_table_age(&table, 1100);
    ck_assert_uint_eq(alert->resolved_ns, 1100);
    alert_table_age(&table, 1100 + UINT64_C(300000000000));
    ck_assert_uint_eq(table.count, 1);
    alert_table_age(&table, 1101 + UINT64_C(300000000000));
    ck_assert_uint_eq(table.count, 0);
    static const char *const WRONG[] = {"",
                                        "\t",
                                        "a\tfiring\t5\t{}",
                                        "a\tfiring\tx\t{}\t{}",
                                        "a\tfiring\t5\t{}\t{}\tx",
                                        "\tfiring\t5\t{}\t{}"};
    for (size_t i = 0; i < sizeof WRONG / sizeof WRONG[0]; i++) {
        ck_assert_ptr_null(alert_table_take(&table, slice_of(WRONG[i]), 1));
        alert_table_restore(&table, slice_of(WRONG[i]));
    }
    ck_assert_uint_eq(table.count, 0);
    alert_table_release(&table);
    http_sink_start(&sink, NULL, 0); // for the teardown
    start();
}
END_TEST

START_TEST(labels) {
    static const char *const WRONG[] = {"",      "a",     "=b",     "a=",        "1a=b",
                                        "a-b=c", "a b=c", "rank=3", "severity=x"};
    for (size_t i = 0; i < sizeof WRONG / sizeof WRONG[0]; i++)
        ck_assert_msg(alert_label_problem(WRONG[i]) != NULL, "%s", WRONG[i]);
    ck_assert_ptr_null(alert_label_problem("_a1=b c=d"));
    http_sink_start(&sink, NULL, 0);
    start();
}
END_TEST

int main(void) {
    Suite *suite = suite_create("alertmanager");
    TCase *tests = tcase_create("all");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, what_it_holds);
    tcase_add_test(tests, what_is_none);
    tcase_add_test(tests, what_changes);
    tcase_add_test(tests, refused);
    tcase_add_test(tests, failures);
    tcase_add_test(tests, over_a_restart);
    tcase_add_test(tests, too_many);
    tcase_add_test(tests, age);
    tcase_add_test(tests, labels);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
