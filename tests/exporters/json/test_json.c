// SPDX-License-Identifier: Apache-2.0
// The json exporter as a component: what it encodes when, and what ends up in its file.
#include "exporters/json/json.h"
#include "tests/exporters/sample_evaluation.h"
#include "tests/exporters/scratch.h"

// The options' struct, filled through the rows as the configuration does it.
static char config[256];
static char instance[4096];
static struct sample_evaluation sample;
static struct buffer out;

static void *config_field(const char *group, const char *name) {
    const struct option *rows = exporter_json.options;
    size_t count = exporter_json.option_count, base = 0;
    for (size_t i = 0; i < count; i++) {
        if (group != NULL && strcmp(rows[i].name, group) == 0) {
            base = rows[i].offset;
            count = rows[i].row_count;
            rows = rows[i].rows;
            break;
        }
    }
    for (size_t i = 0; i < count; i++)
        if (strcmp(rows[i].name, name) == 0)
            return config + base + rows[i].offset;
    ck_abort_msg("no option %s", name);
    return NULL;
}

enum content { VERDICTS, SUMMARY, TIMELINE };

static void start(const char *path, enum content content) {
    ck_assert_uint_le(exporter_json.config_size, sizeof config);
    ck_assert_uint_le(exporter_json.instance_size, sizeof instance);
    memset(config, 0, sizeof config);
    memset(instance, 0, sizeof instance);
    *(const char **)config_field(NULL, "path") = path;
    *(int *)config_field(NULL, "content") = (int)content;
    ((struct byte_size *)config_field("rotation", "max_size"))->bytes = 1 << 20;
    *(int64_t *)config_field("rotation", "max_backups") = 2;
    *(bool *)config_field(NULL, "fsync") = true;
    struct component_context context = {.id = "json", .site = "exporter/json"};
    struct error error = {0};
    enum status status = component_start(&exporter_json, instance, config, &context, &error);
    ck_assert_msg(status == STATUS_OK, "%s", error.message);
}

static void setup(void) {
    scratch_make();
    buffer_init(&out, 1 << 24);
    sample_init(&sample, SLICE("job-a"));
    uint32_t index = sample_rank(&sample, 0, SLICE("h"), 1);
    sample_add(&sample, index, 5, 100);
    sample_add(&sample, index, 6, 200);
}

static void teardown(void) {
    component_stop(&exporter_json, instance);
    sample_release(&sample);
    buffer_release(&out);
    intern_release();
    scratch_remove();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static struct slice encode(const struct batch *batch) {
    buffer_reset(&out);
    exporter_json.exporter.encode(instance, batch, &out);
    ck_assert(buffer_finish(&out));
    return buffer_slice(&out);
}

static void deliver(const struct batch *batch) {
    struct request request = {.bytes = encode(batch), .complete = true, .last = batch->last};
    struct send_outcome outcome = {0};
    struct error error;
    ck_assert_int_eq(exporter_json.exporter.send(instance, &request, &outcome, &error), STATUS_OK);
}

static size_t occurrences(struct slice text, const char *word) {
    size_t count = 0;
    const char *at = text.data, *end = text.data + text.size;
    while (at < end && (at = memmem(at, (size_t)(end - at), word, strlen(word))) != NULL) {
        count++;
        at++;
    }
    return count;
}

static struct verdict *verdicts(void) {
    static struct verdict items[2];
    for (int i = 0; i < 2; i++) {
        items[i] = (struct verdict){.pattern = "p",
                                    .kind = i == 0 ? "first" : "second",
                                    .headline = SLICE("h"),
                                    .remediation = SLICE("r"),
                                    .action = "monitor"};
        verdict_set_id(&items[i], "p", NULL, 0);
    }
    return items;
}

START_TEST(verdicts_as_they_come) {
    start(scratch_path("v.jsonl"), VERDICTS);
    struct batch batch = {.arena = &sample.arena, .verdicts = {verdicts(), 2, 2}};
    struct slice bytes = encode(&batch); // no evaluation needed
    ck_assert_uint_eq(occurrences(bytes, "\n"), 2);
    ck_assert_uint_eq(occurrences(bytes, "\"kind\":\"first\""), 1);
    ck_assert_uint_eq(occurrences(bytes, "\"kind\":\"second\""), 1);
    deliver(&batch);
    batch.verdicts.count = 1;
    deliver(&batch);
    const char *text = scratch_read("v.jsonl");
    ck_assert_uint_eq(occurrences(slice_of(text), "\n"), 3);
    ck_assert_uint_eq(occurrences(slice_of(text), "\"kind\":\"first\""), 2);
    batch.verdicts.count = 0;
    batch.evaluate = true;
    ck_assert_uint_eq(encode(&batch).size, 0);
}
END_TEST

static bool lines_only(void *context, struct slice bytes) {
    (*(size_t *)context)++;
    ck_assert_int_eq(bytes.data[bytes.size - 1], '\n');
    ck_assert_mem_eq(bytes.data, "{\"schema\"", 9);
    return true;
}

START_TEST(pieces_are_whole_lines) {
    start("-", VERDICTS);
    static struct verdict many[300];
    for (size_t i = 0; i < 300; i++)
        many[i] = verdicts()[i % 2];
    struct batch batch = {.arena = &sample.arena, .verdicts = {many, 300, 300}};
    size_t pieces = 0;
    struct buffer blocks;
    buffer_init_drained(&blocks, 1000, lines_only, &pieces);
    exporter_json.exporter.encode(instance, &batch, &blocks);
    ck_assert(buffer_finish(&blocks));
    ck_assert_uint_gt(pieces, 50);
    buffer_release(&blocks);
}
END_TEST

START_TEST(summary_in_a_file_follows_each_evaluation) {
    start(scratch_path("s.json"), SUMMARY);
    struct batch batch = sample_batch(&sample);
    batch.last = false;
    deliver(&batch);
    buffer_reset(&out);
    summary_encode(&sample.evaluation, &out);
    buffer_append_char(&out, '\0');
    ck_assert_pstr_eq(scratch_read("s.json"), out.data);
    sample_note(&sample, SLICE("changed"));
    batch.last = true;
    deliver(&batch);
    ck_assert_uint_eq(occurrences(slice_of(scratch_read("s.json")), "\"changed\""), 1);
    ck_assert_uint_eq(occurrences(slice_of(scratch_read("s.json")), "\"job_id\""), 1);
    // No evaluation, or none that is new: the file stays.
    batch.evaluation_count = 0;
    ck_assert_uint_eq(encode(&batch).size, 0);
    batch.evaluate = false;
    batch.evaluation_count = 1;
    ck_assert_uint_eq(encode(&batch).size, 0);
}
END_TEST

START_TEST(summary_on_standard_output_comes_once) {
    start("-", SUMMARY);
    struct batch batch = sample_batch(&sample);
    batch.last = false;
    ck_assert_uint_eq(encode(&batch).size, 0);
    batch.last = true;
    struct slice bytes = encode(&batch);
    ck_assert_int_eq(bytes.data[0], '{');
    ck_assert_int_eq(bytes.data[bytes.size - 1], '\n');
    ck_assert_uint_eq(occurrences(bytes, "\"job_id\": \"job-a\""), 1);
}
END_TEST

START_TEST(summaries_of_every_job) {
    start(scratch_path("s.json"), SUMMARY);
    static const struct job_choice choice = {.mode = JOB_EACH, .max_jobs = 2};
    struct evaluation two[2] = {sample.evaluation, sample.evaluation};
    two[0].job = intern(SLICE("zeta"));
    two[1].job = STRING_NONE;
    struct batch batch = sample_batch(&sample);
    batch.last = false;
    batch.job_choice = &choice;
    batch.evaluations = two;
    batch.evaluation_count = 2;
    deliver(&batch);
    const char *text = scratch_read("s.json");
    ck_assert_ptr_nonnull(strstr(text, "{\n  \"job_id\": null"));
    ck_assert_ptr_nonnull(strstr(strstr(text, "null"), "}\n{\n  \"job_id\": \"zeta\""));
    // An evaluation of one job leaves the other's document.
    two[0].world_size = 77;
    batch.evaluation_count = 1;
    deliver(&batch);
    text = scratch_read("s.json");
    ck_assert_uint_eq(occurrences(slice_of(text), "\"job_id\""), 2);
    ck_assert_uint_eq(occurrences(slice_of(text), "\"world_size\": 77"), 1);
    // A third job: the one that changed longest ago goes.
    two[0].job = intern(SLICE("alpha"));
    deliver(&batch);
    text = scratch_read("s.json");
    ck_assert_uint_eq(occurrences(slice_of(text), "\"job_id\""), 2);
    ck_assert_ptr_nonnull(strstr(strstr(text, "\"alpha\""), "\"zeta\""));
    ck_assert_ptr_null(strstr(text, "null,\n  \"world_size\""));
}
END_TEST

START_TEST(timeline_comes_once) {
    start(scratch_path("t.json"), TIMELINE);
    struct batch batch = sample_batch(&sample);
    batch.last = false;
    ck_assert_uint_eq(encode(&batch).size, 0);
    batch.last = true;
    deliver(&batch);
    const char *text = scratch_read("t.json");
    ck_assert_ptr_nonnull(
        strstr(text, "\"points\":[\n[0,5,5,100,0,0,0],\n[0,6,6,200,0,0,0]\n]}\n"));
    struct evaluation two[2] = {sample.evaluation, sample.evaluation};
    two[1].job = intern(SLICE("aaa"));
    two[1].rank_count = 0;
    batch.evaluations = two;
    batch.evaluation_count = 2;
    deliver(&batch); // one document a job, by the job's name
    text = scratch_read("t.json");
    ck_assert_uint_eq(occurrences(slice_of(text), "\"columns\""), 2);
    ck_assert_ptr_nonnull(strstr(text, "\"points\":[]}\n{\"columns\""));
}
END_TEST

START_TEST(empty_input) {
    start("-", SUMMARY);
    struct sample_evaluation empty;
    sample_init(&empty, (struct slice){NULL, 0});
    sample_note(&empty, SLICE("No telemetry events were provided."));
    sample_note(&empty,
                SLICE("No sample telemetry events were available for distributed analysis."));
    struct batch batch = sample_batch(&empty);
    encode(&batch);
    FILE *file = fopen(TESTS_DIR "/golden/first_cause/001-empty-file/expected.json", "rb");
    char expected[1024];
    size_t size = fread(expected, 1, sizeof expected, file);
    fclose(file);
    ck_assert(slice_equal(buffer_slice(&out), (struct slice){expected, size}));
    sample_release(&empty);
}
END_TEST

START_TEST(stop_after_failed_start) {
    memset(instance, 0, sizeof instance);
    memset(config, 0, sizeof config);
    *(const char **)config_field(NULL, "path") = scratch_path("no/such/folder.json");
    struct component_context context = {.id = "json", .site = "exporter/json"};
    struct error error = {0};
    ck_assert_int_eq(component_start(&exporter_json, instance, config, &context, &error),
                     STATUS_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(error.message, "no/such/folder.json"));
}
END_TEST

int main(void) {
    Suite *suite = suite_create("json");
    TCase *cases = tcase_create("json");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, verdicts_as_they_come);
    tcase_add_test(cases, pieces_are_whole_lines);
    tcase_add_test(cases, summary_in_a_file_follows_each_evaluation);
    tcase_add_test(cases, summary_on_standard_output_comes_once);
    tcase_add_test(cases, summaries_of_every_job);
    tcase_add_test(cases, timeline_comes_once);
    tcase_add_test(cases, empty_input);
    tcase_add_test(cases, stop_after_failed_start);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
