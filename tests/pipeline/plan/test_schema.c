// SPDX-License-Identifier: Apache-2.0
#include "pipeline/plan/schema.h"

#include "tests/pipeline/plan/plan_fixture.h"

#include <jansson.h>

static json_t *schema(void) {
    struct buffer out;
    buffer_init(&out, 1 << 20);
    schema_write(BUILD, &out);
    ck_assert(!out.failed);
    ck_assert_int_eq(out.data[out.size - 1], '\n');
    json_error_t fault;
    json_t *root = json_loadb(out.data, out.size, JSON_REJECT_DUPLICATES, &fault);
    ck_assert_msg(root != NULL, "line %d: %s", fault.line, fault.text);
    buffer_release(&out);
    return root;
}

static json_t *property(json_t *object, const char *name) {
    json_t *found = json_object_get(json_object_get(object, "properties"), name);
    ck_assert_msg(found != NULL, "no property %s", name);
    return found;
}

static void rows_mentioned(json_t *object, const struct option *rows, size_t count) {
    ck_assert_uint_eq(json_object_size(json_object_get(object, "properties")), count);
    for (size_t i = 0; i < count; i++) {
        json_t *row = property(object, rows[i].name);
        ck_assert_ptr_nonnull(
            strstr(json_string_value(json_object_get(row, "description")), rows[i].help));
        if (rows[i].type == OPTION_GROUP)
            rows_mentioned(row, rows[i].rows, rows[i].row_count);
    }
}

START_TEST(every_row_of_every_component) {
    static const char *const SECTIONS[] = {"receivers", "processors", "exporters", "extensions"};
    json_t *root = schema();
    for (size_t i = 0; i < BUILD.count; i++) {
        const struct component_type *type = BUILD.types[i];
        json_t *patterns =
            json_object_get(property(root, SECTIONS[type->kind]), "patternProperties");
        const char *pattern = arena_format(&arena, "^%s(/[A-Za-z0-9_.-]+)?$", type->name);
        json_t *found = json_object_get(patterns, pattern);
        ck_assert_msg(found != NULL, "no %s", pattern);
        json_t *forms = json_object_get(found, "anyOf");
        bool may_be_empty = type != &TAIL;
        ck_assert_uint_eq(json_array_size(forms), may_be_empty ? 2 : 1);
        rows_mentioned(json_array_get(forms, may_be_empty), type->options, type->option_count);
    }
    json_decref(root);
}
END_TEST

START_TEST(service_and_pipelines) {
    json_t *root = schema();
    ck_assert_str_eq(json_string_value(json_object_get(root, "$schema")),
                     "https://json-schema.org/draft/2020-12/schema");
    ck_assert_uint_eq(json_object_size(json_object_get(root, "properties")), 7);
    ck_assert_ptr_nonnull(property(root, "forms"));
    json_t *service = property(root, "service");
    property(service, "batch_size");
    property(property(property(service, "telemetry"), "logs"), "level");
    json_t *pipelines = property(service, "pipelines");
    json_t *pipeline = json_object_get(pipelines, "additionalProperties");
    static const char *const KEYS[] = {
        "receivers",        "preset", "processors",   "exporters",         "evaluate_every",
        "allowed_lateness", "settle", "idle_timeout", "caught_up_timeout", "max_jump"};
    for (size_t i = 0; i < sizeof KEYS / sizeof KEYS[0]; i++)
        property(pipeline, KEYS[i]);
    ck_assert_uint_eq(json_array_size(json_object_get(pipeline, "required")), 2);
    json_decref(root);
}
END_TEST

// Every "$ref" leads to a definition.
static void references_hold(json_t *value, json_t *definitions) {
    const char *key;
    json_t *item;
    size_t index;
    if (json_is_object(value)) {
        json_object_foreach(value, key, item) {
            if (strcmp(key, "$ref") == 0) {
                const char *name = json_string_value(item) + strlen("#/$defs/");
                ck_assert_msg(json_object_get(definitions, name) != NULL, "no %s", name);
            }
            references_hold(item, definitions);
        }
    }
    json_array_foreach(value, index, item) references_hold(item, definitions);
}

START_TEST(references) {
    json_t *root = schema();
    references_hold(root, json_object_get(root, "$defs"));
    json_decref(root);
}
END_TEST

static void add_tests(TCase *cases) {
    tcase_add_test(cases, every_row_of_every_component);
    tcase_add_test(cases, service_and_pipelines);
    tcase_add_test(cases, references);
}

int main(void) {
    return run_plan_suite("schema", add_tests);
}
