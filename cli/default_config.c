// SPDX-License-Identifier: Apache-2.0
// Which pipeline does analyze run when nobody wrote one?
#include "cli/default_config.h"

#include "base/text/display.h"
#include "base/text/utf8.h"

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
    "  # Judges over all input. Beside a job that runs for days give times, such as 30m.\n"
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
    "      # memory: job_filter, rank_group, align, spike_detect, first_cause, phase_attribution;\n"
    "      # spans, which says where thread time went;\n"
    "      # nodes: nccl_hang, xid_correlation, pod_evicted, hbm_ecc, thermal_throttle, pcie_aer;\n"
    "      # and incident, which joins what they find\n"
    "      preset: all\n";

static const char *const exporter_ids[] = {"text", "json", "json", "json", "json"};
static const char *const exporter_options[] = {
    "  text: {}\n",
    "  json:\n    content: summary\n",
    "  json:\n    content: timeline\n",
    "  json:\n    content: verdicts\n",
    "  json:\n    content: spans\n",
};

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

static enum status refuse_path(const char *path, struct error *error) {
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

enum status default_config_write(struct buffer *out, enum analyze_output output, const char *html,
                                 const char *queries, struct word_list paths, struct error *error) {
    buffer_append_text(out, head);
    if (paths.count == 0)
        buffer_append_text(out, placeholder);
    else
        buffer_append_text(out, "    include:\n");
    for (uint32_t i = 0; i < paths.count; i++) {
        buffer_append_text(out, "      - ");
        if (!yaml_append_quoted(out, slice_of(paths.items[i])))
            return refuse_path(paths.items[i], error);
        buffer_append_char(out, '\n');
    }
    buffer_append_text(out, middle);
    if (queries != NULL) {
        buffer_append_text(out, "  spans:\n    queries: ");
        if (!yaml_append_quoted(out, slice_of(queries)))
            return refuse_path(queries, error);
        buffer_append_char(out, '\n');
    }
    buffer_append_text(out, exporters);
    buffer_append_text(out, exporter_options[output]);
    if (html != NULL) {
        buffer_append_text(out, "  html:\n    path: ");
        if (!yaml_append_quoted(out, slice_of(html)))
            return refuse_path(html, error);
        buffer_append_char(out, '\n');
    }
    buffer_append_text(out, tail);
    buffer_append_format(out, "      exporters: [%s%s]\n", exporter_ids[output],
                         html == NULL ? "" : ", html");
    return STATUS_OK;
}
