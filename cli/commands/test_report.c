// SPDX-License-Identifier: Apache-2.0
// Prints what became of tests. Texts of inputs are made safe for terminals, and for XML.
#include "cli/commands/test_report.h"

#include "base/text/display.h"
#include "base/text/json_write.h"
#include "cli/figures.h"
#include "config/problem.h"

#include <assert.h>

enum { NAME_WIDTH = 11, TEXT_SHOWN_MAX = 2000 };

static void place_append(struct buffer *out, struct location where) {
    if (where.file != NULL)
        display_append(out, slice_of(where.file), TEXT_SHOWN_MAX);
    else
        buffer_append_text(out, "--set");
    buffer_append_format(out, ":%u", where.line);
}

static void difference_print(const struct test_difference *difference, struct buffer *out) {
    buffer_append_format(out, "    %-*s", NAME_WIDTH, difference_name(difference->kind));
    display_append(out, slice_of(difference->text), TEXT_SHOWN_MAX);
    if (difference->where.line > 0) {
        buffer_append_text(out, " (");
        place_append(out, difference->where);
        buffer_append_char(out, ')');
    }
    buffer_append_char(out, '\n');
    if (difference->verdict == NULL)
        return;
    buffer_append_format(out, "    %-*s", NAME_WIDTH, "");
    display_append(out, slice_of(difference->verdict), TEXT_SHOWN_MAX);
    buffer_append_char(out, '\n');
}

void test_result_print(const struct test_result *result, struct buffer *out) {
    const struct test_differences *differences = &result->differences;
    assert(result->test->name != NULL);
    buffer_append_text(out, test_passed(result) ? "ok      " : "FAILED  ");
    display_append(out, slice_of(result->test->name), TEXT_SHOWN_MAX);
    buffer_append_text(out, " (");
    if (test_passed(result)) {
        figures_append_count(out, result->event_count, "event");
        buffer_append_text(out, ", ");
        figures_append_count(out, result->verdict_count, "verdict");
    } else {
        place_append(out, result->test->where);
    }
    buffer_append_text(out, ")\n");
    for (uint32_t i = 0; i < differences->count; i++)
        difference_print(&differences->items[i], out);
    if (differences->total > differences->count)
        buffer_append_format(out, "    … and %u more\n", differences->total - differences->count);
}

static uint32_t count_failed(const struct test_result *results, uint32_t count) {
    uint32_t failed = 0;
    for (uint32_t i = 0; i < count; i++)
        failed += !test_passed(&results[i]);
    return failed;
}

static void where_json(struct json_writer *json, struct location where) {
    if (where.file == NULL)
        json_field_null(json, "file");
    else
        json_field_text(json, "file", where.file);
    json_field_uint(json, "line", where.line);
}

static void result_json(struct json_writer *json, const struct test_result *result) {
    assert(result->differences.count <= result->differences.total);
    json_object_open(json);
    json_field_text(json, "name", result->test->name);
    json_field_text(json, "pipeline", result->pipeline);
    where_json(json, result->test->where);
    json_field_bool(json, "passed", test_passed(result));
    json_field_uint(json, "events", result->event_count);
    json_field_uint(json, "verdicts", result->verdict_count);
    json_field_uint(json, "differences_dropped",
                    result->differences.total - result->differences.count);
    json_field_array_open(json, "differences");
    for (uint32_t i = 0; i < result->differences.count; i++) {
        const struct test_difference *difference = &result->differences.items[i];
        json_object_open(json);
        json_field_text(json, "kind", difference_name(difference->kind));
        json_field_text(json, "text", difference->text);
        if (difference->verdict != NULL)
            json_field_text(json, "verdict", difference->verdict);
        if (difference->where.line > 0)
            where_json(json, difference->where);
        json_object_close(json);
    }
    json_array_close(json);
    json_object_close(json);
}

static void results_json(const struct test_result *results, uint32_t count, struct buffer *out) {
    struct json_writer json;
    json_begin(&json, out, 2);
    json_object_open(&json);
    json_field_uint(&json, "count", count);
    json_field_uint(&json, "failed", count_failed(results, count));
    json_field_array_open(&json, "tests");
    for (uint32_t i = 0; i < count; i++)
        result_json(&json, &results[i]);
    json_array_close(&json);
    json_object_close(&json);
    buffer_append_char(out, '\n');
}

// Made safe first, so that no character is left that XML cannot hold.
static void xml_append(struct buffer *out, const char *text) {
    struct buffer safe;
    buffer_init(&safe, 8 * TEXT_SHOWN_MAX);
    display_append(&safe, slice_of(text), TEXT_SHOWN_MAX);
    for (size_t i = 0; i < safe.size; i++) {
        char c = safe.data[i];
        const char *entity = c == '&'   ? "&amp;"
                             : c == '<' ? "&lt;"
                             : c == '>' ? "&gt;"
                             : c == '"' ? "&quot;"
                                        : NULL;
        if (entity != NULL)
            buffer_append_text(out, entity);
        else
            buffer_append_char(out, c);
    }
    buffer_release(&safe);
}

static void result_junit(const struct test_result *result, struct buffer *out) {
    assert(result->test->name != NULL);
    buffer_append_text(out, "    <testcase classname=\"");
    xml_append(out, result->pipeline);
    buffer_append_text(out, "\" name=\"");
    xml_append(out, result->test->name);
    if (test_passed(result)) {
        buffer_append_text(out, "\"/>\n");
        return;
    }
    const struct test_differences *differences = &result->differences;
    buffer_append_text(out, "\">\n      <failure message=\"");
    figures_append_count(out, differences->total, "difference");
    buffer_append_text(out, "\">");
    for (uint32_t i = 0; i < differences->count; i++) {
        const struct test_difference *difference = &differences->items[i];
        buffer_append_format(out, "%s: ", difference_name(difference->kind));
        xml_append(out, difference->text);
        if (difference->verdict != NULL) {
            buffer_append_text(out, " (");
            xml_append(out, difference->verdict);
            buffer_append_char(out, ')');
        }
        buffer_append_char(out, '\n');
    }
    buffer_append_text(out, "</failure>\n    </testcase>\n");
}

static void results_junit(const struct test_result *results, uint32_t count, struct buffer *out) {
    uint32_t failed = count_failed(results, count);
    buffer_append_format(out,
                         "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                         "<testsuites tests=\"%u\" failures=\"%u\">\n"
                         "  <testsuite name=\"culprit\" tests=\"%u\" failures=\"%u\">\n",
                         count, failed, count, failed);
    for (uint32_t i = 0; i < count; i++)
        result_junit(&results[i], out);
    buffer_append_text(out, "  </testsuite>\n</testsuites>\n");
}

void test_results_print(const struct test_result *results, uint32_t count, enum test_format format,
                        struct buffer *out) {
    assert(count == 0 || results != NULL);
    switch (format) {
    case TEST_TEXT:
        figures_append_count(out, count, "test");
        buffer_append_format(out, ", %u failed\n", count_failed(results, count));
        break;
    case TEST_JSON:
        results_json(results, count, out);
        break;
    case TEST_JUNIT:
        results_junit(results, count, out);
        break;
    }
}
