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

// Appends the YAML. With `html` (NULL: without) a page is written to that file as well; with
// `queries` (NULL: without) spans are asked what stands in that file. `paths` become
// receivers.file.include as they are (`$` doubled, glob characters untouched); with none there is a
// comment in their place. STATUS_BAD_DATA for a path that is not UTF-8, which YAML cannot hold.
enum status default_config_write(struct buffer *out, enum analyze_output output, const char *html,
                                 const char *queries, struct word_list paths,
                                 struct error *error) MUST_USE;
// One text in YAML double quotes, with `$` doubled. False when it is not UTF-8.
bool yaml_append_quoted(struct buffer *out, struct slice text) MUST_USE;
