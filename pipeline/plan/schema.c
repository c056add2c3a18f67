// SPDX-License-Identifier: Apache-2.0
// Writes the JSON schema of a configuration of these components.
//
// Ids are told apart by patterns, "type" or "type/name"; what is below comes from the option rows.
#include "pipeline/plan/schema.h"

#include "base/text/json_write.h"
#include "config/describe.h"
#include "pipeline/plan/rows.h"
#include "pipeline/plan/tests.h"

#include <assert.h>
#include <stdio.h>

enum { SCHEMA_INDENT = 2 };

static void null_or(struct json_writer *json) {
    json_field_array_open(json, "type");
    json_text(json, "object");
    json_text(json, "null");
    json_array_close(json);
}

static bool type_needs_options(const struct component_type *type) {
    for (size_t i = 0; i < type->option_count; i++)
        if (type->options[i].required)
            return true;
    return false;
}

// `type:` with nothing behind it is fine unless an option is required.
static void component_schema(struct json_writer *json, const struct component_type *type) {
    assert(type->summary != NULL);
    json_object_open(json);
    json_field_text(json, "description", type->summary);
    json_field_array_open(json, "anyOf");
    if (!type_needs_options(type)) {
        json_object_open(json);
        json_field_text(json, "type", "null");
        json_object_close(json);
    }
    describe_options_schema(json, type->summary, type->options, type->option_count);
    json_array_close(json);
    json_object_close(json);
}

static void section_schema(struct json_writer *json, struct component_set components,
                           enum component_kind kind) {
    assert(kind <= COMPONENT_EXTENSION);
    char text[128];
    json_field_object_open(json, plan_section(kind));
    snprintf(text, sizeof text, "%ss by id: TYPE or TYPE/NAME", component_kind_name(kind));
    json_field_text(json, "description", text);
    null_or(json);
    json_field_bool(json, "additionalProperties", false);
    json_field_object_open(json, "patternProperties");
    for (size_t i = 0; i < components.count; i++) {
        const struct component_type *type = components.types[i];
        if (type->kind != kind)
            continue;
        snprintf(text, sizeof text, "^%.80s(/[A-Za-z0-9_.-]+)?$", type->name);
        json_key(json, text);
        component_schema(json, type);
    }
    json_object_close(json);
    json_object_close(json);
}

static void pipelines_schema(struct json_writer *json) {
    json_field_object_open(json, "pipelines");
    json_field_text(json, "description", "pipelines by name");
    json_field_text(json, "type", "object");
    json_field_int(json, "minProperties", 1);
    json_key(json, "additionalProperties");
    describe_options_schema(json, "receivers, processors, exporters and when it evaluates",
                            PLAN_PIPELINE_ROWS.rows, PLAN_PIPELINE_ROWS.count);
    json_object_close(json);
}

static void service_schema(struct json_writer *json) {
    json_field_object_open(json, "service");
    describe_options_schema_open(json, "what runs", PLAN_SERVICE_ROWS.rows,
                                 PLAN_SERVICE_ROWS.count);
    pipelines_schema(json);
    json_object_close(json);
    json_object_close(json);
}

// A list under `key` of maps with these rows.
static void list_schema(struct json_writer *json, const char *key, const char *description,
                        uint32_t max, const struct option *rows, size_t count) {
    json_field_object_open(json, key);
    json_field_text(json, "description", description);
    json_field_text(json, "type", "array");
    json_field_uint(json, "maxItems", max);
    json_key(json, "items");
    describe_options_schema(json, description, rows, count);
    json_object_close(json);
}

static void tests_schema(struct json_writer *json, struct component_set components) {
    struct option rows[PLAN_TEST_INPUT_ROWS_MAX];
    size_t count = plan_test_input_rows(components, rows);
    json_field_object_open(json, "tests");
    json_field_text(json, "description", "inputs, and the verdicts that culprit test expects");
    json_field_array_open(json, "type");
    json_text(json, "array");
    json_text(json, "null");
    json_array_close(json);
    json_field_uint(json, "maxItems", PLAN_TESTS_MAX);
    json_field_object_open(json, "items");
    describe_options_schema_open(json, "one test", PLAN_TEST_ROWS.rows, PLAN_TEST_ROWS.count);
    list_schema(json, "inputs", "what is read", PLAN_TEST_INPUTS_MAX, rows, count);
    list_schema(json, "expect", "the verdicts that must be found; [] for none",
                PLAN_TEST_EXPECTED_MAX, PLAN_EXPECT_ROWS.rows, PLAN_EXPECT_ROWS.count);
    json_object_close(json);
    json_field_array_open(json, "allOf"); // beside what the rows require
    json_object_open(json);
    json_field_array_open(json, "required");
    json_text(json, "inputs");
    json_text(json, "expect");
    json_array_close(json);
    json_object_close(json);
    json_array_close(json);
    json_object_close(json);
    json_object_close(json);
}

void schema_write(struct component_set components, struct buffer *out) {
    struct json_writer json;
    json_begin(&json, out, SCHEMA_INDENT);
    json_object_open(&json);
    json_field_text(&json, "$schema", "https://json-schema.org/draft/2020-12/schema");
    json_field_text(&json, "title", "culprit configuration");
    json_field_text(&json, "type", "object");
    json_field_bool(&json, "additionalProperties", false);
    json_field_array_open(&json, "required");
    json_text(&json, "service");
    json_array_close(&json);
    json_field_object_open(&json, "properties");
    for (int kind = 0; kind < PLAN_SECTION_COUNT; kind++)
        section_schema(&json, components, (enum component_kind)kind);
    for (size_t i = 0; i < PLAN_ROOT_ROWS.count; i++)
        describe_option_schema(&json, &PLAN_ROOT_ROWS.rows[i]);
    service_schema(&json);
    tests_schema(&json, components);
    json_object_close(&json);
    json_key(&json, "$defs");
    describe_schema_definitions(&json);
    json_object_close(&json);
    buffer_append_char(out, '\n');
}
