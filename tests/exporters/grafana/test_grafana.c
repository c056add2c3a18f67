// SPDX-License-Identifier: Apache-2.0
// The Grafana exporter: what an annotation holds of a hostile verdict, which requests are made for
// it, and which verdicts it remembers.
#include "cli/component_list.h"
#include "exporters/grafana/annotation.h"
#include "tests/support/http_sink.h"

#include <jansson.h>

static union {
    char bytes[16384];
    max_align_t aligned;
} instance;
static struct grafana_config config;
static struct component_context context = {.id = "grafana", .site = "exporter/grafana"};
static struct buffer out;
static struct arena arena;
static struct verdict verdict;
static struct batch batch;
static struct http_sink sink;
static struct send_outcome outcome;
static struct error error;

static void setup(void) {
    config = (struct grafana_config){.sending.timeout = {INT64_C(5000000000)}};
    arena_init(&arena, 4096);
    buffer_init(&out, 1 << 24);
    batch = (struct batch){.arena = &arena, .verdicts = {.items = &verdict, .count = 1}};
    static struct entity entities[2];
    entities[0] = (struct entity){"node", SLICE("node-1"), ROLE_CULPRIT};
    entities[1] = (struct entity){"node", SLICE("node-2"), ROLE_VICTIM};
    verdict = (struct verdict){.pattern = "nccl_hang",
                               .kind = "missing_rank",
                               .action = "inspect_rank",
                               .job = intern(SLICE("a:b")),
                               .severity = SEVERITY_ERROR,
                               .confidence = 80,
                               .start_ns = UINT64_C(1700000000123456789),
                               .end_ns = UINT64_C(1700000001000000000),
                               .headline = SLICE("Rank 3 is missing"),
                               .remediation = SLICE("Look at it."),
                               .entities = entities,
                               .entity_count = 2};
    struct slice key = SLICE("3");
    verdict_set_id(&verdict, "nccl_hang", &key, 1);
}

static void start(const struct sink_answer *script, size_t count) {
    ck_assert_uint_le(exporter_grafana.instance_size, sizeof instance);
    http_sink_start(&sink, script, count);
    memset(&instance, 0, sizeof instance);
    config.client.endpoint = sink.url;
    error = (struct error){0};
    enum status status = component_start(&exporter_grafana, &instance, &config, &context, &error);
    ck_assert_msg(status == STATUS_OK, "%s", error.message);
}

static void teardown(void) {
    component_stop(&exporter_grafana, &instance);
    if (sink.script_count > 0)
        http_sink_stop(&sink);
    sink.script_count = 0;
    buffer_release(&out);
    arena_release(&arena);
}

static enum status deliver(void) {
    buffer_reset(&out);
    exporter_grafana.exporter.encode(&instance, &batch, &out);
    ck_assert(!out.failed);
    struct request request = {.bytes = buffer_slice(&out), .complete = true};
    outcome = (struct send_outcome){0};
    return exporter_grafana.exporter.send(&instance, &request, &outcome, &error);
}

// The annotation that the verdict becomes, as JSON.
static json_t *encoded(void) {
    struct buffer text;
    buffer_init(&text, 1 << 20);
    buffer_reset(&out);
    annotation_encode(&config, &verdict, &arena, &text, &out);
    buffer_release(&text);
    const char *tab = memchr(out.data, '\t', out.size);
    ck_assert_ptr_nonnull(tab);
    ck_assert_ptr_eq(memchr(out.data, '\n', out.size), out.data + out.size - 1);
    json_t *object = json_loadb(tab + 1, (size_t)(out.data + out.size - tab - 2), 0, NULL);
    ck_assert_ptr_nonnull(object);
    return object;
}

static const char *tag(const json_t *object, size_t at) {
    const char *text = json_string_value(json_array_get(json_object_get(object, "tags"), at));
    return text == NULL ? "absent" : text;
}

START_TEST(what_it_holds) {
    config.link = "https://x/?a&b={id}{";
    config.tags = (struct text_list){(const char *const[]){"cluster:eu"}, 1};
    json_t *object = encoded();
    ck_assert_int_eq(json_integer_value(json_object_get(object, "time")), 1700000000123);
    ck_assert_int_eq(json_integer_value(json_object_get(object, "timeEnd")), 1700000001000);
    const char *const wanted[] = {"culprit", verdict.id,    "severity:error", "pattern:nccl_hang",
                                  "job:a_b", "node:node-1", "cluster:eu",     "absent"};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        ck_assert_str_eq(tag(object, i), wanted[i]);
    char text[256];
    snprintf(text, sizeof text,
             "<b>Rank 3 is missing</b><br>Look at it.<br>error, open, confidence 80 %%<br>"
             "<a href=\"https://x/?a&amp;b=%s{\">more</a>",
             verdict.id);
    ck_assert_str_eq(json_string_value(json_object_get(object, "text")), text);
    json_decref(object);
}
END_TEST

START_TEST(hostile_texts) {
    static char name[4096];
    memset(name, ':', sizeof name);
    memcpy(name, "  <b>\"\n\x1b[2J\xff", 13);
    verdict.job = intern((struct slice){name, sizeof name});
    verdict.entities[0].name = SLICE("  ");
    verdict.headline = SLICE("<script>alert('1')</script> & \"\x01\n");
    verdict.remediation = (struct slice){name, sizeof name};
    json_t *object = encoded();
    size_t size = 2;
    for (size_t i = 0; i < json_array_size(json_object_get(object, "tags")); i++) {
        const char *text = tag(object, i), *colon = strchr(text, ':');
        size += annotation_tag_cost(strlen(text));
        ck_assert(colon == NULL || strchr(colon + 1, ':') == NULL);
        ck_assert_uint_le(strlen(text), 5 + TAG_VALUE_MAX + 8);
        ck_assert(strchr(text, '\n') == NULL);
    }
    ck_assert_uint_le(size + TAGS_OF_USER_MAX, TAGS_MAX);
    ck_assert_uint_eq(json_array_size(json_object_get(object, "tags")), 5); // no node of no name
    const char *text = json_string_value(json_object_get(object, "text"));
    ck_assert_msg(strstr(text, "<script") == NULL && strstr(text, "&lt;script&gt;") != NULL, "%s",
                  text);
    ck_assert_uint_lt(strlen(text), 16384);
    json_decref(object);
}
END_TEST

START_TEST(without_a_time) {
    verdict.start_ns = verdict.end_ns = 0;
    json_t *object = encoded();
    ck_assert_ptr_null(json_object_get(object, "time"));
    ck_assert_ptr_null(json_object_get(object, "timeEnd"));
    json_decref(object);
}
END_TEST

START_TEST(a_point) {
    verdict.end_ns = verdict.start_ns + 1;
    json_t *object = encoded();
    ck_assert_int_eq(json_integer_value(json_object_get(object, "timeEnd")), 1700000000123);
    json_decref(object);
}
END_TEST

START_TEST(tags_of_the_user) {
    ck_assert_ptr_null(annotation_tag_problem("a"));
    ck_assert_ptr_null(annotation_tag_problem("a:b c"));
    const char *const wrong[] = {"", ":a", "a:", "a:b:c", " a", "a ", "a\n"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_msg(annotation_tag_problem(wrong[i]) != NULL, "\"%s\" is taken", wrong[i]);
    char text[2 * TAG_VALUE_MAX + 3];
    memset(text, 'x', sizeof text);
    text[TAG_VALUE_MAX] = ':';
    text[2 * TAG_VALUE_MAX + 1] = '\0';
    ck_assert_ptr_null(annotation_tag_problem(text));
    text[2 * TAG_VALUE_MAX + 1] = 'x';
    text[2 * TAG_VALUE_MAX + 2] = '\0';
    ck_assert_ptr_nonnull(annotation_tag_problem(text));
}
END_TEST

START_TEST(requests) {
    static const struct sink_answer SCRIPT[] = {{.status = 200, .body = "[]"},
                                                {.status = 200, .body = "{\"id\":7}"},
                                                {.status = 200, .body = "[{\"id\":9},{\"id\":7}]"},
                                                {.status = 200, .body = "{}"},
                                                {.status = 200, .body = "[]"}};
    start(SCRIPT, 5);
    ck_assert_int_eq(deliver(), STATUS_OK);
    ck_assert_str_eq(sink.requests[0].method, "GET");
    char path[256];
    snprintf(path, sizeof path, "/api/annotations?type=annotation&limit=2&tags=nccl_hang%%3A%s",
             strchr(verdict.id, ':') + 1);
    ck_assert_str_eq(sink.requests[0].path, path);
    ck_assert_str_eq(sink.requests[1].method, "POST");
    ck_assert_str_eq(sink.requests[1].path, "/api/annotations");
    ck_assert_str_eq(sink_header(&sink.requests[1], "Content-Type"), "application/json");
    // Two of them: the older one is changed.
    ck_assert_int_eq(deliver(), STATUS_OK);
    ck_assert_str_eq(sink.requests[3].method, "PATCH");
    ck_assert_str_eq(sink.requests[3].path, "/api/annotations/7");
    // It is gone: not created again, and not asked for again.
    ck_assert_int_eq(deliver(), STATUS_OK);
    ck_assert_int_eq(deliver(), STATUS_OK);
    ck_assert_uint_eq(sink.count, 5);
}
END_TEST

START_TEST(answers_that_are_none) {
    static const char *const BODIES[] = {
        "", "{}", "null", "[1]", "[{\"id\":0}]", "[{\"id\":\"1\"}]", "[{\"id\":1}", "<html>"};
    static struct sink_answer script[8];
    for (size_t i = 0; i < 8; i++)
        script[i] = (struct sink_answer){.status = 200, .body = BODIES[i]};
    start(script, 8);
    for (size_t i = 0; i < 8; i++) {
        ck_assert_msg(deliver() == STATUS_IO, "%s is a list", BODIES[i]);
        ck_assert_uint_eq(outcome.taken + outcome.refused, 0);
        ck_assert_ptr_nonnull(strstr(error.message, "is this Grafana?"));
    }
}
END_TEST

// A refusal of the question is no refusal of the annotation.
START_TEST(refusals) {
    static const struct sink_answer SCRIPT[] = {{.status = 400},
                                                {.status = 200, .body = "[]"},
                                                {.status = 400, .body = "too long"},
                                                {.status = 503, .headers = "Retry-After: 3\r\n"}};
    start(SCRIPT, 4);
    ck_assert_int_eq(deliver(), STATUS_IO);
    ck_assert_uint_eq(outcome.refused, 0);
    ck_assert_int_eq(deliver(), STATUS_IO);
    ck_assert_uint_eq(outcome.refused, out.size);
    ck_assert_ptr_nonnull(strstr(error.message, "too long"));
    ck_assert_int_eq(deliver(), STATUS_IO);
    ck_assert_uint_eq(outcome.refused, 0);
    ck_assert_uint_eq(outcome.retry_after_ns, UINT64_C(3000000000));
}
END_TEST

START_TEST(known_ones) {
    struct known_list known = {.count = 0}, again = {.count = 0};
    char id[VERDICT_ID_SIZE];
    for (unsigned i = 0; i < KNOWN_MAX + 5; i++) {
        snprintf(id, sizeof id, "a:%u", i);
        known_add(&known, slice_of(id));
        known_add(&known, slice_of(id));
    }
    ck_assert_uint_eq(known.count, KNOWN_MAX);
    ck_assert_uint_eq(known_find(&known, SLICE("a:4")), KNOWN_MAX);
    known.deleted[known_find(&known, SLICE("a:7"))] = true;
    buffer_reset(&out);
    known_keep(&known, &out);
    ck_assert_int_eq(memcmp(out.data, "a:5\na:6\n-a:7\n", 13), 0);
    known_restore(&again, buffer_slice(&out));
    ck_assert_uint_eq(again.count, KNOWN_MAX);
    ck_assert(again.deleted[known_find(&again, SLICE("a:7"))]);
    ck_assert(!again.deleted[known_find(&again, SLICE("a:8"))]);
    known_release(&again);
    static char broken[200];
    memset(broken, 'x', sizeof broken);
    memcpy(broken, "-\n\na:1\n", 7);
    known_restore(&again, (struct slice){broken, sizeof broken});
    ck_assert_uint_eq(again.count, 1);
    known_release(&again);
    known_release(&known);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("grafana");
    TCase *cases = tcase_create("grafana");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, what_it_holds);
    tcase_add_test(cases, hostile_texts);
    tcase_add_test(cases, without_a_time);
    tcase_add_test(cases, a_point);
    tcase_add_test(cases, tags_of_the_user);
    tcase_add_test(cases, requests);
    tcase_add_test(cases, answers_that_are_none);
    tcase_add_test(cases, refusals);
    tcase_add_test(cases, known_ones);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
