// SPDX-License-Identifier: Apache-2.0
// A verdict line against docs/verdict.schema.json: the words of JSON Schema that it uses.
#pragma once

#include <check.h>
#include <jansson.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>

static inline bool schema_matches(const char *pattern, const char *text) {
    regex_t regex;
    ck_assert_msg(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB) == 0, "pattern %s", pattern);
    bool found = regexec(&regex, text, 0, NULL, 0) == 0;
    regfree(&regex);
    return found;
}

static inline size_t schema_length(const char *text) {
    size_t count = 0;
    for (; *text != '\0'; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80;
    return count;
}

static inline bool schema_has_type(const json_t *value, const char *type) {
    return (strcmp(type, "object") == 0 && json_is_object(value)) ||
           (strcmp(type, "array") == 0 && json_is_array(value)) ||
           (strcmp(type, "string") == 0 && json_is_string(value)) ||
           (strcmp(type, "integer") == 0 && json_is_integer(value));
}

static inline void schema_check_scalar(const json_t *schema, const json_t *value,
                                       const char *where) {
    json_t *rule = json_object_get(schema, "type");
    if (rule != NULL)
        ck_assert_msg(schema_has_type(value, json_string_value(rule)), "%s is no %s", where,
                      json_string_value(rule));
    rule = json_object_get(schema, "const");
    ck_assert_msg(rule == NULL || json_equal(rule, value), "%s is not the constant", where);
    rule = json_object_get(schema, "enum");
    bool found = rule == NULL;
    for (size_t i = 0; i < json_array_size(rule); i++)
        found = found || json_equal(json_array_get(rule, i), value);
    ck_assert_msg(found, "%s is not in the list", where);
    if (json_is_string(value)) {
        const char *text = json_string_value(value);
        json_int_t length = (json_int_t)schema_length(text);
        rule = json_object_get(schema, "minLength");
        ck_assert_msg(rule == NULL || length >= json_integer_value(rule), "%s is short", where);
        rule = json_object_get(schema, "maxLength");
        ck_assert_msg(rule == NULL || length <= json_integer_value(rule), "%s is long", where);
        rule = json_object_get(schema, "pattern");
        ck_assert_msg(rule == NULL || schema_matches(json_string_value(rule), text),
                      "%s is %s, not like the pattern", where, text);
    }
    if (json_is_integer(value)) {
        rule = json_object_get(schema, "minimum");
        ck_assert_msg(rule == NULL || json_integer_value(value) >= json_integer_value(rule),
                      "%s is low", where);
        rule = json_object_get(schema, "maximum");
        ck_assert_msg(rule == NULL || json_integer_value(value) <= json_integer_value(rule),
                      "%s is high", where);
    }
}

// Recursion goes as deep as the schema does.
static inline void schema_check(const json_t *root, const json_t *schema, const json_t *value,
                                const char *where) {
    const char *reference = json_string_value(json_object_get(schema, "$ref"));
    if (reference != NULL)
        schema = json_object_get(json_object_get(root, "$defs"), strrchr(reference, '/') + 1);
    ck_assert_msg(schema != NULL, "%s has no rule", where);
    schema_check_scalar(schema, value, where);
    size_t at;
    json_t *item, *rule = json_object_get(schema, "required");
    json_array_foreach(rule, at, item)
        ck_assert_msg(json_object_get(value, json_string_value(item)) != NULL, "%s has no %s",
                      where, json_string_value(item));
    rule = json_object_get(schema, "maxItems");
    ck_assert_msg(rule == NULL || (json_int_t)json_array_size(value) <= json_integer_value(rule),
                  "%s has too many items", where);
    rule = json_object_get(schema, "minItems");
    ck_assert_msg(rule == NULL || (json_int_t)json_array_size(value) >= json_integer_value(rule),
                  "%s has too few items", where);
    json_array_foreach(value, at, item)
        schema_check(root, json_object_get(schema, "items"), item, where);
    json_t *names = json_object_get(schema, "propertyNames");
    json_t *others = json_object_get(schema, "additionalProperties");
    const char *key;
    json_object_foreach((json_t *)value, key, item) {
        rule = json_object_get(json_object_get(schema, "properties"), key);
        ck_assert_msg(rule != NULL || !json_is_false(others), "%s must not have %s", where, key);
        json_t *name = json_string(key);
        if (names != NULL)
            schema_check_scalar(names, name, key);
        json_decref(name);
        if (rule != NULL || json_is_object(others))
            schema_check(root, rule != NULL ? rule : others, item, key);
    }
}

// Fields stand in the order of the schema's properties.
static inline void schema_check_order(const json_t *root, const char *line) {
    const char *key, *at = line;
    json_t *rule;
    json_object_foreach(json_object_get(root, "properties"), key, rule) {
        char quoted[64];
        snprintf(quoted, sizeof quoted, "\"%s\":", key);
        const char *found = strstr(line, quoted);
        if (found == NULL)
            continue;
        ck_assert_msg(found >= at, "%s stands too far in front", key);
        at = found;
    }
}

// All lines; `path` is the schema's. At least one line.
static inline void schema_check_lines(const char *path, const char *lines) {
    json_error_t error;
    json_t *root = json_load_file(path, 0, &error);
    ck_assert_msg(root != NULL, "%s: %s", path, error.text);
    ck_assert_msg(*lines != '\0', "no line to check");
    while (*lines != '\0') {
        size_t size = strcspn(lines, "\n");
        char *line = strndup(lines, size);
        json_t *verdict = json_loads(line, 0, &error);
        ck_assert_msg(verdict != NULL, "%s in %s", error.text, line);
        schema_check(root, root, verdict, "the verdict");
        schema_check_order(root, line);
        json_decref(verdict);
        free(line);
        lines += size + 1;
    }
    json_decref(root);
}
