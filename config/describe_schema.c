// SPDX-License-Identifier: Apache-2.0
// Writes option rows as a JSON schema for editors.
//
// JSON Schema draft 2020-12. Every value may also be a text with ${…}, so types that are not texts
// are an alternative of the two. Ranges of durations and sizes cannot be said in a schema; they
// stand in the description. Groups nest, so the recursion follows our tables.
#include "config/describe.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void reference_write(struct json_writer *json, const char *name) {
    char reference[64];
    snprintf(reference, sizeof reference, "#/$defs/%s", name);
    json_object_open(json);
    json_field_text(json, "$ref", reference);
    json_object_close(json);
}

static void constant_write(struct json_writer *json, const char *text) {
    json_object_open(json);
    json_field_text(json, "const", text);
    json_object_close(json);
}

// A bound as JSON: doubles that are whole go out as integers.
static void bound_write(struct json_writer *json, const char *key, double bound) {
    char text[64];
    snprintf(text, sizeof text, "%.15g", bound);
    json_key(json, key);
    json_raw(json, slice_of(text));
}

static void number_write(struct json_writer *json, const struct option *row, const char *type) {
    json_object_open(json);
    json_field_text(json, "type", type);
    if (row->min != 0 || row->max != 0) {
        if (row->min > -9.2e18)
            bound_write(json, "minimum", row->min);
        if (row->max < 9.2e18)
            bound_write(json, "maximum", row->max);
    }
    json_object_close(json);
}

static void choices_write(struct json_writer *json, const struct option *row) {
    assert(row->choices != NULL);
    json_object_open(json);
    json_field_array_open(json, "enum");
    for (size_t i = 0; row->choices[i] != NULL; i++)
        json_text(json, row->choices[i]);
    json_array_close(json);
    json_object_close(json);
}

static void texts_write(struct json_writer *json) {
    json_object_open(json);
    json_field_text(json, "type", "array");
    json_key(json, "items");
    reference_write(json, "text");
    json_object_close(json);
}

// The alternatives of a value that is not any text.
static void alternatives_write(struct json_writer *json, const struct option *row) {
    switch (row->type) {
    case OPTION_BOOL:
        json_object_open(json);
        json_field_text(json, "type", "boolean");
        json_object_close(json);
        break;
    case OPTION_INT:
        number_write(json, row, "integer");
        break;
    case OPTION_RATIO:
        number_write(json, row, "number");
        break;
    case OPTION_DURATION:
        reference_write(json, "duration");
        if (row->special != NULL)
            constant_write(json, row->special);
        break;
    case OPTION_SIZE:
        reference_write(json, "size");
        break;
    case OPTION_CHOICE:
        choices_write(json, row);
        break;
    case OPTION_TEXT_LIST:
        texts_write(json);
        reference_write(json, "text");
        return;
    case OPTION_TEXT:
    case OPTION_SECRET:
    case OPTION_GROUP:
        break;
    }
    reference_write(json, "reference");
}

static void description_write(struct json_writer *json, const struct option *row) {
    char range[OPTION_RANGE_MAX], text[OPTION_RANGE_MAX + 600];
    option_range(row, range);
    bool said = row->type != OPTION_DURATION && row->type != OPTION_SIZE;
    if (said || range[0] == '\0')
        snprintf(text, sizeof text, "%.500s", row->help == NULL ? "" : row->help);
    else
        snprintf(text, sizeof text, "%.500s (%s)", row->help == NULL ? "" : row->help, range);
    if (text[0] != '\0')
        json_field_text(json, "description", text);
}

static void default_list_write(struct json_writer *json, const char *text) {
    json_array_open(json);
    for (const char *at = text + strspn(text, "[], \""); *at != '\0'; at += strspn(at, "[], \"")) {
        size_t length = strcspn(at, "[],\"");
        json_slice(json, (struct slice){at, length});
        at += length;
    }
    json_array_close(json);
}

static void default_write(struct json_writer *json, const struct option *row) {
    if (row->default_value == NULL)
        return;
    if (row->type == OPTION_RATIO) {
        bound_write(json, "default", strtod(row->default_value, NULL));
        return;
    }
    json_key(json, "default");
    if (row->type == OPTION_BOOL || row->type == OPTION_INT)
        json_raw(json, slice_of(row->default_value));
    else if (row->type == OPTION_TEXT_LIST)
        default_list_write(json, row->default_value);
    else
        json_text(json, row->default_value);
}

void describe_option_schema(struct json_writer *json, const struct option *row) {
    assert(row->name != NULL);
    json_key(json, row->name);
    if (row->type == OPTION_GROUP) {
        describe_options_schema(json, row->help, row->rows, row->row_count);
        return;
    }
    json_object_open(json);
    description_write(json, row);
    default_write(json, row);
    if (row->type == OPTION_TEXT || row->type == OPTION_SECRET) {
        json_field_text(json, "$ref", "#/$defs/text");
    } else {
        json_field_array_open(json, "anyOf");
        alternatives_write(json, row);
        json_array_close(json);
    }
    json_object_close(json);
}

static void required_write(struct json_writer *json, const struct option *rows, size_t count) {
    size_t required = 0;
    for (size_t i = 0; i < count; i++)
        required += rows[i].required;
    if (required == 0)
        return;
    json_field_array_open(json, "required");
    for (size_t i = 0; i < count; i++)
        if (rows[i].required)
            json_text(json, rows[i].name);
    json_array_close(json);
}

void describe_options_schema_open(struct json_writer *json, const char *description,
                                  const struct option *rows, size_t count) {
    assert(rows != NULL || count == 0);
    if (description != NULL && *description != '\0')
        json_field_text(json, "description", description);
    json_field_text(json, "type", "object");
    json_field_bool(json, "additionalProperties", false);
    required_write(json, rows, count);
    json_field_object_open(json, "properties");
    for (size_t i = 0; i < count; i++)
        describe_option_schema(json, &rows[i]);
}

void describe_options_schema(struct json_writer *json, const char *description,
                             const struct option *rows, size_t count) {
    json_object_open(json);
    describe_options_schema_open(json, description, rows, count);
    json_object_close(json);
    json_object_close(json);
}

static void pattern_definition(struct json_writer *json, const char *name, const char *description,
                               const char *pattern) {
    json_field_object_open(json, name);
    json_field_text(json, "description", description);
    json_field_text(json, "type", "string");
    json_field_text(json, "pattern", pattern);
    json_object_close(json);
}

void describe_schema_definitions(struct json_writer *json) {
    json_object_open(json);
    pattern_definition(json, "reference", "a value from the environment or a file",
                       "\\$\\{(env|file):[^}]+\\}");
    pattern_definition(json, "duration", "numbers with units: 300ms, 5s, 1h30m",
                       "^(([0-9]+(\\.[0-9]*)?|\\.[0-9]+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h))+$");
    pattern_definition(json, "size", "a number with a binary unit: 512B, 64KiB, 20MiB",
                       "^([0-9]+(\\.[0-9]*)?|\\.[0-9]+)(B|KiB|MiB|GiB|TiB)$");
    json_field_object_open(json, "text");
    json_field_text(json, "description",
                    "any text; numbers and true or false are taken as written");
    json_field_array_open(json, "type");
    json_text(json, "string");
    json_text(json, "number");
    json_text(json, "boolean");
    json_array_close(json);
    json_object_close(json);
    json_object_close(json);
}
