// SPDX-License-Identifier: Apache-2.0
// The pipeline that analyze runs without --config.
#include "cli/default_config.h"

#include "base/text/display.h"
#include "base/text/utf8.h"

#include <assert.h>

static const char head[] =
    "# The pipeline of culprit analyze. Save it, change it, then use it:\n"
    "#   culprit analyze --config FILE PATH…    its processors, over PATH\n"
    "#   culprit run --config FILE              follows the files and goes on until stopped\n"
    "receivers:\n"
    "  file:\n";

static const char placeholder[] =
    "    # Files, directories and globs: the telemetry of all ranks of a job.\n"
    "    include: [\"/telemetry/**\"]\n";

static const char middle[] =
    "    start_at: beginning\n"
    "\n"
    "processors:\n"
    "  # Evaluates all input. Beside a job that runs for days, give times such as 30m.\n"
    "  rank_group:\n"
    "    retention: all\n"
    "  phase_attribution:\n"
    "    retention: all\n";

static const char exporters[] = "\nexporters:\n";

static const char tail[] =
    "\n"
    "service:\n"
    "  pipelines:\n"
    "    verdicts:\n"
    "      receivers: [file]\n"
    "      # all processors; memory: those that find who started the growth of memory\n"
    "      # (culprit components lists them)\n"
    "      preset: all\n";

// What json writes for each output but text.
static const char *const contents[] = {NULL, "summary", "timeline", "verdicts", "spans"};

static bool needs_escape(uint32_t code_point) {
    return code_point < 0x20 || (code_point >= 0x7f && code_point <= 0xa0) ||
           code_point == 0x2028 || code_point == 0x2029 || code_point == 0xfeff ||
           code_point == 0xfffe || code_point == 0xffff;
}

bool yaml_append_quoted(struct buffer *out, struct slice text) {
    buffer_append_char(out, '"');
    for (size_t at = 0; at < text.size;) {
        uint32_t code_point = 0;
        size_t length = utf8_decode(text, at, &code_point);
        if (length == 0 || (code_point >= 0xd800 && code_point <= 0xdfff))
            return false;
        if (code_point == '"' || code_point == '\\')
            buffer_append_char(out, '\\');
        if (code_point == '$')
            buffer_append_char(out, '$');
        if (needs_escape(code_point))
            buffer_append_format(out, "\\u%04x", code_point);
        else
            buffer_append(out, (struct slice){text.data + at, length});
        at += length;
    }
    buffer_append_char(out, '"');
    return true;
}

// A line of `before` and the path.
static enum status append_path(struct buffer *out, const char *before, const char *path,
                               struct error *error) {
    buffer_append_text(out, before);
    if (yaml_append_quoted(out, slice_of(path))) {
        buffer_append_char(out, '\n');
        return STATUS_OK;
    }
    struct buffer shown;
    buffer_init(&shown, ERROR_MESSAGE_MAX);
    display_append(&shown, slice_of(path), ERROR_MESSAGE_MAX / 2);
    error_set(error, STATUS_BAD_DATA,
              "the path %.*s is not UTF-8, which YAML needs; analyze can read it, but a config "
              "cannot name it",
              (int)shown.size, shown.data);
    buffer_release(&shown);
    return STATUS_BAD_DATA;
}

// Each with `before` in front.
static enum status append_paths(struct buffer *out, const char *before, struct word_list paths,
                                struct error *error) {
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < paths.count && status == STATUS_OK; i++)
        status = append_path(out, before, paths.items[i], error);
    return status;
}

enum status default_config_write(struct buffer *out, const struct default_config *config,
                                 struct error *error) {
    bool is_text = config->output == ANALYZE_TEXT;
    assert(config->output <= ANALYZE_SPANS);
    _Static_assert(sizeof contents / sizeof contents[0] == ANALYZE_SPANS + 1, "a content each");
    buffer_append_text(out, head);
    buffer_append_text(out, config->paths.count == 0 ? placeholder : "    include:\n");
    enum status status = append_paths(out, "      - ", config->paths, error);
    buffer_append_text(out, middle);
    if (config->queries != NULL && status == STATUS_OK)
        status = append_path(out, "  spans:\n    queries: ", config->queries, error);
    buffer_append_text(out, exporters);
    if (is_text)
        buffer_append_text(out, "  text: {}\n");
    else
        buffer_append_format(out, "  json:\n    content: %s\n", contents[config->output]);
    if (config->html != NULL && status == STATUS_OK)
        status = append_path(out, "  html:\n    path: ", config->html, error);
    buffer_append_text(out, tail);
    buffer_append_format(out, "      exporters: [%s%s]\n", is_text ? "text" : "json",
                         config->html == NULL ? "" : ", html");
    if (config->forms.count > 0)
        buffer_append_text(out, "\n# Rows for lines of logs.\nforms:\n");
    return status == STATUS_OK ? append_paths(out, "  - ", config->forms, error) : status;
}
