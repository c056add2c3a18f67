// SPDX-License-Identifier: Apache-2.0
// The pipeline of `culprit analyze` without --config, as YAML that a person can save and change.
#pragma once

#include "cli/arguments.h"

// What analyze prints; the order of its --output choices.
enum analyze_output {
    ANALYZE_TEXT,
    ANALYZE_SUMMARY,
    ANALYZE_TIMELINE,
    ANALYZE_VERDICTS,
    ANALYZE_SPANS
};

struct default_config {
    enum analyze_output output;
    const char *html;       // a page is written to this file as well; NULL: none is
    const char *queries;    // spans are asked what stands in this file; NULL: nothing
    struct word_list paths; // receivers.file.include; empty: a comment in their place
    struct word_list forms; // files of rows
};

// Appends the YAML. Paths stand in it as they are (`$` doubled, glob characters untouched).
// STATUS_BAD_DATA for one that is not UTF-8, which YAML cannot hold.
enum status default_config_write(struct buffer *out, const struct default_config *config,
                                 struct error *error) MUST_USE;
// One text in YAML double quotes, with `$` doubled. False when it is not UTF-8.
bool yaml_append_quoted(struct buffer *out, struct slice text) MUST_USE;
