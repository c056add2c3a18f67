// SPDX-License-Identifier: Apache-2.0
// The JSON document of a tree of spans: members and their order, on one line, whatever is in it;
// and when the json exporter writes it.
#include "base/memory.h"
#include "config/option.h"
#include "exporters/json/json.h"
#include "exporters/json/span_document.h"
#include "tests/exporters/scratch.h"
#include "tests/exporters/span_fixture.h"

#include <jansson.h>

#define T 1700000000.0

static struct buffer out;
static struct arena arena;

static const struct fake_span spans[] = {
    {"train", -1, T, T + 10, 2, 0, 0, 0, 0, 0, 0},
    {"step \"1\"\n", 0, T, T + 2.5, 2, 1.5, 4096, 1, 0, 0, 3},
};
static struct span_tree tree = {spans, 2, 0};

static void setup(void) {
    scratch_make();
    buffer_init(&out, 1 << 22);
    arena_init(&arena, 1 << 16);
}

static void teardown(void) {
    buffer_release(&out);
    arena_release(&arena);
    intern_release();
    scratch_remove();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static const char *document(const struct span_report *report) {
    buffer_reset(&out);
    span_document_encode(report, &out);
    ck_assert(buffer_finish(&out));
    ck_assert_uint_gt(out.size, 0);
    ck_assert_int_eq(out.data[out.size - 1], '\n');
    out.data[out.size - 1] = '\0';
    ck_assert_ptr_null(strchr(out.data, '\n'));
    return out.data;
}

static json_t *parsed(const char *text) {
    json_error_t error;
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, &error);
    ck_assert_msg(json != NULL, "%s at %d: %s", error.text, error.column, text);
    return json;
}

// "a,b,c": the members of an object in order.
static const char *members(const json_t *json) {
    const char *key, *all = "";
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)json, key, value) all =
        arena_format(&arena, "%s%s%s", all, all[0] == '\0' ? "" : ",", key);
    return all;
}

START_TEST(members_are_those_of_the_format) {
    struct span_report report = fake_stream(&tree, "tasks.jsonl");
    static const struct span_refused refused[] = {{3, -1, SPAN_BAD_JSON},
                                                  {9, 2, SPAN_UNKNOWN_SPAN}};
    report.refused = refused;
    report.refused_count = 2;
    json_t *json = parsed(document(&report));
    ck_assert_str_eq(members(json),
                     "format,made_with,accepted,rejected,now,total_nthreads_history,"
                     "spans,queries,source");
    ck_assert_str_eq(
        members(json_array_get(json_object_get(json, "spans"), 0)),
        "id,name,parent,children,annotation,enqueued,start,stop,done,states,all_durations,duration,"
        "nbytes_total,cumulative_worker_metrics,nthreads_intervals,active_cpu_seconds,code,"
        "metadata,groups");
    json_decref(json);
    const char *text = out.data;
    ck_assert_ptr_nonnull(strstr(text,
                                 "\"rejected\":[{\"line\":3,\"code\":\"bad-json\"},"
                                 "{\"line\":9,\"entry\":2,\"code\":\"unknown-span\"}],"
                                 "\"now\":1700000100.0,"
                                 "\"total_nthreads_history\":[[1700000000.0,8]]"));
    ck_assert_ptr_nonnull(strstr(text, "\"made_with\":\"culprit "));
    ck_assert_ptr_nonnull(
        strstr(text,
               "\"name\":[\"train\",\"step \\\"1\\\"\\n\"],\"parent\":\"id-0\","
               "\"children\":[],\"annotation\":{\"name\":[\"train\",\"step \\\"1\\\"\\n\"],"
               "\"ids\":[\"id-0\",\"id-1\"]},\"enqueued\":1700000000.0,"
               "\"start\":1700000000.0,\"stop\":1700000002.5,\"done\":false,"
               "\"states\":{\"released\":0,\"waiting\":0,\"no-worker\":0,\"queued\":0,"
               "\"processing\":1,\"memory\":3,\"erred\":0,\"forgotten\":0},"
               "\"all_durations\":{},\"duration\":0.0,\"nbytes_total\":4096,"
               "\"cumulative_worker_metrics\":[[\"execute\",\"f\",\"cpu\",\"seconds\",1.5],"
               "[\"execute\",\"N/A\",\"idle or other spans\",\"seconds\",3.5]],"
               "\"nthreads_intervals\":[[1700000000.0,1700000002.5,2]],"
               "\"active_cpu_seconds\":5.0,\"code\":[],\"metadata\":null,\"groups\":[]}"));
}
END_TEST

static void full_answer(const struct span_tree *asked, uint32_t span, double now_s,
                        struct arena *room, struct span_answer *answer) {
    static const struct slice code[] = {SLICE("[{\"code\":\"f()\",\n\"filename\":\"a.py\"}]")};
    static const struct span_duration durations[] = {{SLICE("compute"), 0.1}, {SLICE("disk"), 3}};
    static const struct span_metric_sum metrics[] = {
        {SLICE("[\"execute\",\"a\",\"bytes\"]"), {.whole = true, .integer = 5239854}},
        {SLICE("[\"p2p\"]"), {.number = -0.25}},
    };
    static const struct span_group_answer groups[] = {{
        .name = SLICE("g"),
        .start_s = T,
        .stop_s = T + 1,
        .states = {[TASK_MEMORY] = 2},
        .durations = durations,
        .duration_count = 2,
        .duration_s = 3.1,
        .nbytes = (__int128)INT64_MAX * 4,
    }};
    fake_answer(asked, span, now_s, room, answer);
    answer->annotated = false;
    answer->code = code;
    answer->code_count = 1;
    answer->has_metadata = true;
    answer->collections = SLICE("{\"type\":\"Array\"},\n{\"n\":null}");
    answer->durations = durations;
    answer->duration_count = 2;
    answer->metrics = metrics;
    answer->metric_count = 2;
    answer->groups = groups;
    answer->group_count = 1;
}

START_TEST(everything_a_span_can_hold) {
    struct span_asker asker = fake_asker;
    asker.answer = full_answer;
    struct span_report report = fake_stream(&tree, "tasks.jsonl");
    report.ask = &asker;
    const char *text = document(&report);
    json_decref(parsed(text));
    ck_assert_ptr_nonnull(strstr(text, "\"annotation\":null"));
    ck_assert_ptr_nonnull(strstr(text, "\"all_durations\":{\"compute\":0.1,\"disk\":3.0}"));
    ck_assert_ptr_nonnull(
        strstr(text,
               "\"code\":[[{\"code\":\"f()\", \"filename\":\"a.py\"}]],"
               "\"metadata\":{\"collections\":[{\"type\":\"Array\"}, {\"n\":null}]},"));
    ck_assert_ptr_nonnull(strstr(text, "[[\"execute\",\"a\",\"bytes\",5239854],[\"p2p\",-0.25]]"));
    ck_assert_ptr_nonnull(
        strstr(text,
               "\"groups\":[{\"name\":\"g\",\"start\":1700000000.0,\"stop\":1700000001.0,"
               "\"done\":false,\"states\":{\"memory\":2},\"all_durations\":{\"compute\":0.1,"
               "\"disk\":3.0},\"duration\":3.1,\"nbytes_total\":36893488147419103228}]"));
}
END_TEST

START_TEST(answers_repeat_their_questions) {
    static const struct slice ids[] = {SLICE("a"), SLICE("a")};
    struct span_answer merged;
    const uint32_t both[] = {0, 1};
    fake_merge(&tree, both, 2, 0, &arena, &merged);
    const struct span_query_answer answers[] = {
        {.query = SLICE("{\"op\": \"roots\"}"), .kind = SPAN_RESULT_IDS, .ids = ids, .id_count = 2},
        {.query = SLICE("{\"op\":\"span\",\n\"id\":\"x\"}"),
         .kind = SPAN_RESULT_ERROR,
         .error = SLICE("unknown-span")},
        {.query = SLICE("{\"op\":\"task\"}"),
         .kind = SPAN_RESULT_TASK,
         .task = {SLICE("g"), {NULL, 0}, TASK_NO_WORKER, -1}},
        {.query = SLICE("{\"op\":\"merge_all\"}"),
         .kind = SPAN_RESULT_SPAN,
         .spans = &merged,
         .span_count = 1},
        {.query = SLICE("{\"op\":\"spans\"}"), .kind = SPAN_RESULT_SPANS},
    };
    struct span_report report = fake_stream(&tree, "tasks.jsonl");
    report.queries = answers;
    report.query_count = OPTION_COUNT(answers);
    const char *text = document(&report);
    json_decref(parsed(text));
    ck_assert_ptr_nonnull(
        strstr(text,
               "\"queries\":[{\"op\": \"roots\",\"result\":[\"a\",\"a\"]},"
               "{\"op\":\"span\", \"id\":\"x\",\"error\":\"unknown-span\"},"
               "{\"op\":\"task\",\"result\":{\"group\":\"g\",\"span\":null,"
               "\"state\":\"no-worker\",\"nbytes\":-1}},"
               "{\"op\":\"merge_all\",\"result\":{\"id\":\"(merged)\","
               "\"name\":[\"(merged)\"],\"parent\":null,\"children\":[\"id-0\",\"id-1\"],"
               "\"annotation\":null,"));
    ck_assert_ptr_nonnull(strstr(text, "{\"op\":\"spans\",\"result\":[]}]"));
}
END_TEST

// What the format does not know stands behind it, and only when it says something.
START_TEST(what_culprit_adds) {
    static const struct span_phase phases[] = {{.label = SLICE("train / forward"),
                                                .openings = 10,
                                                .thread_s = 40,
                                                .busy_s = 30.5,
                                                .idle_s = 9.5,
                                                .ranks = fake_ranks,
                                                .rank_count = 1}};
    struct span_report report = fake_job(&tree, phases, 1, "exp-7");
    report.folded = 7;
    report.refused_not_listed = 2;
    report.accepted = 0;
    report.now_s = 0;
    report.notes[0] = SLICE("a note");
    report.note_count = 1;
    json_t *json = parsed(document(&report));
    ck_assert_str_eq(members(json),
                     "format,made_with,accepted,rejected,now,total_nthreads_history,"
                     "spans,queries,job,phases,rejected_not_listed,folded,notes");
    ck_assert(json_is_null(json_object_get(json, "now")));
    json_decref(json);
    ck_assert_ptr_nonnull(strstr(out.data,
                                 "\"job\":\"exp-7\",\"phases\":[{\"phase\":\"train / forward\","
                                 "\"openings\":10,\"thread_seconds\":40.0,\"busy_seconds\":30.5,"
                                 "\"idle_seconds\":9.5,\"ranks\":[{\"rank\":2,\"openings\":10,"
                                 "\"busy_seconds\":14.0,\"lag_seconds\":4.5,\"slowest\":9,"
                                 "\"inside\":false}]}]"));
}
END_TEST

// -- the exporter ---------------------------------------------------------------------------------

static char config[512], instance[8192];

static void *config_field(const char *name) {
    for (size_t i = 0; i < exporter_json.option_count; i++)
        if (strcmp(exporter_json.options[i].name, name) == 0)
            return config + exporter_json.options[i].offset;
    ck_abort_msg("no option %s", name);
    return NULL;
}

static void start(const char *path, int64_t interval_ns) {
    memset(config, 0, sizeof config);
    memset(instance, 0, sizeof instance);
    ck_assert_uint_le(exporter_json.instance_size, sizeof instance);
    *(const char **)config_field("path") = path;
    const struct option *content = NULL;
    for (size_t i = 0; i < exporter_json.option_count; i++)
        if (strcmp(exporter_json.options[i].name, "content") == 0)
            content = &exporter_json.options[i];
    for (int i = 0; content != NULL && content->choices[i] != NULL; i++)
        if (strcmp(content->choices[i], "spans") == 0)
            *(int *)config_field("content") = i;
    ((struct duration *)config_field("interval"))->ns = interval_ns;
    struct component_context context = {.id = "json", .site = "exporter/json"};
    struct error error = {0};
    ck_assert_int_eq(component_start(&exporter_json, instance, config, &context, &error),
                     STATUS_OK);
    ck_assert_uint_eq(component_needs(&exporter_json, config), FACT_SPANS);
}

static size_t encoded(uint64_t as_of_ns, bool last) {
    struct span_report report = fake_stream(&tree, "tasks.jsonl");
    struct batch batch = {.arena = &arena,
                          .evaluate = true,
                          .as_of_ns = as_of_ns,
                          .last = last,
                          .spans = {&report, 1}};
    buffer_reset(&out);
    exporter_json.exporter.encode(instance, &batch, &out);
    return out.size;
}

START_TEST(documents_come_on_an_interval_and_at_the_end) {
    const uint64_t second = UINT64_C(1000000000), day = UINT64_C(1700000040) * second;
    start(NULL, (int64_t)(60 * second));
    ck_assert_uint_gt(encoded(day, false), 0);
    for (uint64_t later = 10; later < 60; later += 10)
        ck_assert_uint_eq(encoded(day + later * second, false), 0);
    ck_assert_uint_gt(encoded(day + 60 * second, false), 0);
    ck_assert_uint_eq(encoded(day + 70 * second, false), 0);
    ck_assert_uint_gt(encoded(UINT64_MAX, true), 0);
    component_stop(&exporter_json, instance);
}
END_TEST

START_TEST(without_an_interval_only_the_end_is_told) {
    start(NULL, DURATION_SPECIAL);
    ck_assert_uint_eq(encoded(UINT64_C(1700000040000000000), false), 0);
    ck_assert_uint_gt(encoded(UINT64_MAX, true), 0);
    component_stop(&exporter_json, instance);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("span_document");
    TCase *cases = tcase_create("span_document");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, members_are_those_of_the_format);
    tcase_add_test(cases, everything_a_span_can_hold);
    tcase_add_test(cases, answers_repeat_their_questions);
    tcase_add_test(cases, what_culprit_adds);
    tcase_add_test(cases, documents_come_on_an_interval_and_at_the_end);
    tcase_add_test(cases, without_an_interval_only_the_end_is_told);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
