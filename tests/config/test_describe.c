// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "config/describe.h"

#include <check.h>
#include <jansson.h>
#include <stdlib.h>

static const char *const MODES[] = {"fast", "slow|safe", NULL};

static const struct option INNER[] = {
    {.name = "max_size",
     .type = OPTION_SIZE,
     .default_value = "1MiB",
     .min = 1024,
     .max = 1 << 30,
     .help = "bytes of one file"},
};

static const struct option ROWS[] = {
    {.name = "include", .type = OPTION_TEXT_LIST, .required = true, .help = "what to read"},
    {.name = "exclude", .type = OPTION_TEXT_LIST, .default_value = "[a, b]", .help = "what not"},
    {.name = "fsync", .type = OPTION_BOOL, .default_value = "true", .help = "whether | it waits"},
    {.name = "count",
     .type = OPTION_INT,
     .default_value = "5",
     .min = 1,
     .max = 10,
     .help = "how many"},
    {.name = "ratio", .type = OPTION_RATIO, .default_value = "0.10", .max = 1, .help = "how much"},
    {.name = "wait",
     .type = OPTION_DURATION,
     .default_value = "all",
     .special = "all",
     .min = 1,
     .max = 60,
     .help = "how long"},
    {.name = "mode",
     .type = OPTION_CHOICE,
     .default_value = "fast",
     .choices = MODES,
     .help = "which way"},
    {.name = "key", .type = OPTION_SECRET, .help = "the key"},
    {.name = "rotation", .type = OPTION_GROUP, .rows = INNER, .row_count = 1, .help = "old files"},
};

static struct buffer out;

static void setup(void) {
    buffer_init(&out, 1 << 20);
}

static void teardown(void) {
    buffer_release(&out);
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

#define PRINTED(expected)                                                                          \
    ck_assert_msg(slice_equal(buffer_slice(&out), slice_of(expected)), "it prints\n%.*s",          \
                  (int)out.size, out.data)

START_TEST(columns) {
    describe_options_text(ROWS, OPTION_COUNT(ROWS), &out);
    PRINTED(
        "name               type           default   range                      what it does\n"
        "include            list of texts  required                             what to read\n"
        "exclude            list of texts  [a, b]                               what not\n"
        "fsync              true or false  true                                 whether | it "
        "waits\n"
        "count              whole number   5         between 1 and 10           how many\n"
        "ratio              number         0.10      between 0 and 1            how much\n"
        "wait               duration       all       between 1s and 1m, or all  how long\n"
        "mode               choice         fast      fast or slow|safe          which way\n"
        "key                secret                                              the key\n"
        "rotation.max_size  size           1MiB      between 1KiB and 1GiB      bytes of one "
        "file\n");
}
END_TEST

START_TEST(markdown) {
    describe_options_markdown(ROWS, OPTION_COUNT(ROWS), &out);
    PRINTED(
        "| Option | Type | Default | Range | What it does |\n"
        "|---|---|---|---|---|\n"
        "| `include` | list of texts | required |  | what to read |\n"
        "| `exclude` | list of texts | `[a, b]` |  | what not |\n"
        "| `fsync` | true or false | `true` |  | whether \\| it waits |\n"
        "| `count` | whole number | `5` | between 1 and 10 | how many |\n"
        "| `ratio` | number | `0.10` | between 0 and 1 | how much |\n"
        "| `wait` | duration | `all` | between 1s and 1m, or all | how long |\n"
        "| `mode` | choice | `fast` | fast or slow\\|safe | which way |\n"
        "| `key` | secret |  |  | the key |\n"
        "| `rotation.max_size` | size | `1MiB` | between 1KiB and 1GiB | bytes of one file |\n");
}
END_TEST

START_TEST(nothing_to_say) {
    describe_options_text(NULL, 0, &out);
    describe_options_markdown(NULL, 0, &out);
    ck_assert_uint_eq(out.size, 0);
}
END_TEST

static json_t *schema(void) {
    struct json_writer json;
    json_begin(&json, &out, 2);
    describe_options_schema(&json, "about it", ROWS, OPTION_COUNT(ROWS));
    json_error_t error;
    json_t *root = json_loadb(out.data, out.size, JSON_REJECT_DUPLICATES, &error);
    ck_assert_msg(root != NULL, "line %d: %s", error.line, error.text);
    return root;
}

// The JSON of one property, compact, keys as they came.
static void property_is(json_t *root, const char *name, const char *expected) {
    json_t *property = json_object_get(json_object_get(root, "properties"), name);
    ck_assert_msg(property != NULL, "%s is missing", name);
    char *text = json_dumps(property, JSON_COMPACT);
    ck_assert_str_eq(text, expected);
    free(text);
}

START_TEST(schema_of_options) {
    json_t *root = schema();
    ck_assert_str_eq(json_string_value(json_object_get(root, "description")), "about it");
    ck_assert(json_is_false(json_object_get(root, "additionalProperties")));
    ck_assert_uint_eq(json_array_size(json_object_get(root, "required")), 1);
    ck_assert_uint_eq(json_object_size(json_object_get(root, "properties")), OPTION_COUNT(ROWS));
    property_is(root, "include",
                "{\"description\":\"what to read\",\"anyOf\":[{\"type\":\"array\",\"items\":"
                "{\"$ref\":\"#/$defs/text\"}},{\"$ref\":\"#/$defs/text\"}]}");
    property_is(root, "exclude",
                "{\"description\":\"what not\",\"default\":[\"a\",\"b\"],\"anyOf\":[{\"type\":"
                "\"array\",\"items\":{\"$ref\":\"#/$defs/text\"}},{\"$ref\":\"#/$defs/text\"}]}");
    property_is(root, "fsync",
                "{\"description\":\"whether | it waits\",\"default\":true,\"anyOf\":[{\"type\":"
                "\"boolean\"},{\"$ref\":\"#/$defs/reference\"}]}");
    property_is(
        root, "count",
        "{\"description\":\"how "
        "many\",\"default\":5,\"anyOf\":[{\"type\":\"integer\",\"minimum\":1,\"maximum\":10},"
        "{\"$ref\":\"#/$defs/reference\"}]}");
    property_is(root, "wait",
                "{\"description\":\"how long (between 1s and 1m, or all)\",\"default\":\"all\","
                "\"anyOf\":[{\"$ref\":\"#/$defs/duration\"},{\"const\":\"all\"},{\"$ref\":"
                "\"#/$defs/reference\"}]}");
    property_is(root, "mode",
                "{\"description\":\"which way\",\"default\":\"fast\",\"anyOf\":[{\"enum\":["
                "\"fast\",\"slow|safe\"]},{\"$ref\":\"#/$defs/reference\"}]}");
    property_is(root, "key", "{\"description\":\"the key\",\"$ref\":\"#/$defs/text\"}");
    property_is(root, "rotation",
                "{\"description\":\"old files\",\"type\":\"object\",\"additionalProperties\":false,"
                "\"properties\":{\"max_size\":{\"description\":\"bytes of one file (between 1KiB "
                "and 1GiB)\",\"default\":\"1MiB\",\"anyOf\":[{\"$ref\":\"#/$defs/size\"},{\"$ref\":"
                "\"#/$defs/reference\"}]}}}");
    json_decref(root);
}
END_TEST

START_TEST(schema_definitions) {
    struct json_writer json;
    json_begin(&json, &out, 0);
    describe_schema_definitions(&json);
    json_t *root = json_loadb(out.data, out.size, JSON_REJECT_DUPLICATES, NULL);
    ck_assert_ptr_nonnull(root);
    static const char *const NAMES[] = {"reference", "duration", "size", "text"};
    ck_assert_uint_eq(json_object_size(root), 4);
    for (size_t i = 0; i < 4; i++)
        ck_assert_ptr_nonnull(json_object_get(root, NAMES[i]));
    json_decref(root);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("describe");
    TCase *cases = tcase_create("describe");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, columns);
    tcase_add_test(cases, markdown);
    tcase_add_test(cases, nothing_to_say);
    tcase_add_test(cases, schema_of_options);
    tcase_add_test(cases, schema_definitions);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
