// SPDX-License-Identifier: Apache-2.0
// What is said of an attribution bundle. The rows expected here are those that stormlog 0.4.3 was
// seen to make of the same entries.
#include "tests/exporters/wandb/wandb_tracking_fixture.h"

static void setup(void) {
    json_set_alloc_funcs(memory_take, memory_give);
    tracking_setup();
    config.log_attribution = true;
    ck_assert_int_eq(mkdir(kept_path("bundle"), 0755), 0);
    config.tracking.attribution_bundle = kept_path("bundle/");
}

static void teardown(void) {
    tracking_teardown();
}

static void say_tensors(const char *text) {
    if (text != NULL)
        scratch_write("bundle/cuda_tensor_attribution.json", text);
    if (tracking == NULL)
        tracking_open();
    buffer_reset(&said_bytes);
    said_count = 0;
    say();
}

static const struct {
    const char *entry, *row;
} entries[] = {
    {"{}", "[[\"<unnamed>\",\"\",0,0,\"\",\"\"]]"},
    {"null", "[]"},
    {"7", "[]"},
    {"{\"tensor_count\":1.9}", "[[\"<unnamed>\",\"\",1,0,\"\",\"\"]]"},
    {"{\"tensor_count\":true}", "[[\"<unnamed>\",\"\",1,0,\"\",\"\"]]"},
    {"{\"tensor_count\":\"7\"}", "[[\"<unnamed>\",\"\",7,0,\"\",\"\"]]"},
    {"{\"tensor_count\":-3}", "[[\"<unnamed>\",\"\",-3,0,\"\",\"\"]]"},
    // There the reference gives up; the tensors that are listed are counted.
    {"{\"tensor_count\":\"x\",\"tensors\":[{}]}", "[[\"<unnamed>\",\"\",1,0,\"\",\"\"]]"},
    {"{\"tensor_count\":null,\"tensors\":[{},{}]}", "[[\"<unnamed>\",\"\",2,0,\"\",\"\"]]"},
    {"{\"storage_ptr\":null}", "[[\"<unnamed>\",\"None\",0,0,\"\",\"\"]]"},
    {"{\"storage_ptr\":1.5}", "[[\"<unnamed>\",\"1.5\",0,0,\"\",\"\"]]"},
    {"{\"storage_ptr\":true}", "[[\"<unnamed>\",\"True\",0,0,\"\",\"\"]]"},
    {"{\"storage_ptr\":7}", "[[\"<unnamed>\",\"7\",0,0,\"\",\"\"]]"},
    {"{\"storage_ptr\":[]}", "[[\"<unnamed>\",\"[]\",0,0,\"\",\"\"]]"},
    {"{\"names\":[\"a\",\"\"]}", "[[\"a, \",\"\",0,0,\"\",\"\"]]"},
    {"{\"names\":[null,5]}", "[[\"None, 5\",\"\",0,0,\"\",\"\"]]"},
    {"{\"names\":\"abc\"}", "[[\"<unnamed>\",\"\",0,0,\"\",\"\"]]"},
    {"{\"names\":[\"c\",\"a\",\"b\",\"d\"]}", "[[\"c, a, b\",\"\",0,0,\"\",\"\"]]"},
    {"{\"tensors\":\"x\"}", "[[\"<unnamed>\",\"\",0,0,\"\",\"\"]]"},
    {"{\"tensors\":[1,{}]}", "[[\"<unnamed>\",\"\",2,0,\"\",\"\"]]"},
    {"{\"tensors\":[{\"shape\":[2,3],\"dtype\":\"d\"},{\"shape\":[4]}]}",
     "[[\"<unnamed>\",\"\",2,0,\"[2, 3]\",\"d\"]]"},
    {"{\"tensors\":[{\"shape\":[],\"dtype\":null}]}", "[[\"<unnamed>\",\"\",1,0,\"[]\",\"None\"]]"},
    {"{\"tensors\":[{\"shape\":null,\"dtype\":5}]}", "[[\"<unnamed>\",\"\",1,0,\"None\",\"5\"]]"},
    {"{\"tensors\":[{\"size_bytes\":\"9\"},{\"size_bytes\":1.9},{\"size_bytes\":true},"
     "{\"size_bytes\":-5},{\"size_bytes\":null},{\"size_bytes\":NaN}]}",
     "[[\"<unnamed>\",\"\",6,-4,\"\",\"\"]]"},
    {"{\"tensors\":[{\"size_bytes\":9223372036854775807},{\"size_bytes\":9223372036854775807}]}",
     "[[\"<unnamed>\",\"\",2,18446744073709551616.0,\"\",\"\"]]"},
};

START_TEST(one_storage) {
    char text[512];
    snprintf(text, sizeof text, "{\"attributed_storage_pointers\":[%s]}", entries[_i].entry);
    say_tensors(text);
    const struct wandb_record *record = said_under(WANDB_TABLE, "stormlog_tensor_attribution");
    if (strcmp(entries[_i].row, "[]") == 0) {
        ck_assert_ptr_null(record);
        ck_assert_uint_eq(count_said(WANDB_SUMMARY), 1);
        return;
    }
    json_t *table = json_of(record->file);
    ck_assert_same_json(json_incref(json_object_get(table, "data")),
                        json_of(slice_of(entries[_i].row)), entries[_i].entry);
    json_decref(table);
    ck_assert(slice_equal(nth_said(WANDB_SUMMARY, 1)->members,
                          SLICE("\"stormlog_tensor_attribution_rows\":1")));
}
END_TEST

START_TEST(files_that_say_nothing) {
    static const char *const texts[] = {
        NULL,
        "",
        "[]",
        "7",
        "{bad",
        "{}",
        "{\"attributed_storage_pointers\":null}",
        "{\"attributed_storage_pointers\":{\"a\":1}}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        say_tensors(texts[i]);
        ck_assert_uint_eq(said_count, 3);
    }
}
END_TEST

// Largest first, those of one size in the order they came in; the table has 200 of them.
START_TEST(many_storages) {
    char *text = memory_take(1 << 16);
    size_t size = (size_t)sprintf(text, "{\"attributed_storage_pointers\":[");
    for (int i = 0; i < 300; i++)
        size +=
            (size_t)sprintf(text + size, "%s{\"storage_ptr\":%d,\"tensors\":[{\"size_bytes\":%d}]}",
                            i > 0 ? "," : "", i, i % 7);
    sprintf(text + size, "]}");
    say_tensors(text);
    memory_give(text);
    const struct wandb_record *record = said_under(WANDB_TABLE, "stormlog_tensor_attribution");
    json_t *table = json_of(record->file);
    const json_t *data = json_object_get(table, "data");
    ck_assert_uint_eq(record->rows, 200);
    ck_assert_str_eq(json_string_value(json_array_get(json_array_get(data, 0), 1)), "6");
    ck_assert_str_eq(json_string_value(json_array_get(json_array_get(data, 1), 1)), "13");
    // 42 of size 6, 43 each of 5, 4 and 3, and then the 29th of size 2.
    ck_assert_str_eq(json_string_value(json_array_get(json_array_get(data, 199), 1)), "198");
    json_decref(table);
    ck_assert(slice_equal(nth_said(WANDB_SUMMARY, 1)->members,
                          SLICE("\"stormlog_tensor_attribution_rows\":300")));
}
END_TEST

START_TEST(the_page) {
    scratch_write("bundle/cuda_allocator_state_history_annotated.html", "x");
    scratch_write("bundle/cuda_native_debug_metadata.json", "{\"history_recorded\": false}");
    say_tensors("{\"attributed_storage_pointers\":[{\"names\":[\"<script>&\\\"\"]}]}");
    const struct wandb_record *page = said_under(WANDB_HTML, "stormlog_attribution_html");
    char *text = memory_copy_text(page->file.data, page->file.size);
    ck_assert_int_eq(strncmp(text, "<!doctype html>", 15), 0);
    ck_assert_ptr_nonnull(strstr(text, "&lt;script&gt;&amp;&quot;"));
    ck_assert_ptr_null(strstr(text, "<script"));
    ck_assert_ptr_nonnull(strstr(text, "default-src 'none'"));
    ck_assert_ptr_nonnull(strstr(text, "was not recorded"));
    memory_give(text);
    ck_assert(slice_equal(nth_said(WANDB_SUMMARY, 1)->members,
                          SLICE("\"stormlog_attribution_html_file\":"
                                "\"cuda_allocator_state_history_annotated.html\","
                                "\"stormlog_tensor_attribution_rows\":1,"
                                "\"stormlog_attribution_history_recorded\":false")));
    // No files: they were not asked for.
    ck_assert_uint_eq(count_said(WANDB_ARTIFACT), 0);
}
END_TEST

START_TEST(the_files) {
    config.log_artifacts = true;
    scratch_write("bundle/cuda_allocator_state_history.html", "x");
    scratch_write("bundle/other.txt", "x");
    say_tensors("{}");
    ck_assert_uint_eq(count_said(WANDB_ARTIFACT), 2);
    const struct wandb_record *files = nth_said(WANDB_ARTIFACT, 1);
    ck_assert(slice_equal(files->key, SLICE("stormlog-attribution-session")));
    char wanted[512];
    int size = snprintf(wanted, sizeof wanted,
                        "%s/bundle//cuda_allocator_state_history.html%c"
                        "%s/bundle//cuda_tensor_attribution.json",
                        scratch_folder, '\0', scratch_folder);
    ck_assert(slice_equal(files->file, (struct slice){wanted, (size_t)size}));
}
END_TEST

START_TEST(the_dump_stands_in_for_a_bundle) {
    config.log_artifacts = true;
    config.tracking.attribution_bundle = NULL;
    config.tracking.oom_dump = kept_path("bundle");
    say_tensors("{}");
    ck_assert(slice_equal(nth_said(WANDB_ARTIFACT, 0)->type, SLICE("stormlog-oom-dump")));
    ck_assert(slice_equal(nth_said(WANDB_ARTIFACT, 1)->type, SLICE("stormlog-attribution")));
    // The same directory is one artifact.
    config.tracking.attribution_bundle = kept_path("bundle/.");
    say_tensors("{}");
    ck_assert_uint_eq(count_said(WANDB_ARTIFACT), 2);
}
END_TEST

START_TEST(not_asked_for) {
    config.log_attribution = false;
    say_tensors("{\"attributed_storage_pointers\":[{}]}");
    ck_assert_uint_eq(said_count, 3);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("wandb_attribution");
    TCase *tcase = tcase_create("bundles");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, one_storage, 0, (int)(sizeof entries / sizeof *entries));
    tcase_add_test(tcase, files_that_say_nothing);
    tcase_add_test(tcase, many_storages);
    tcase_add_test(tcase, the_page);
    tcase_add_test(tcase, the_files);
    tcase_add_test(tcase, the_dump_stands_in_for_a_bundle);
    tcase_add_test(tcase, not_asked_for);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
