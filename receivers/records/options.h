// SPDX-License-Identifier: Apache-2.0
// Options that all receivers of records share: what the records are, whose they are, and where
// refused ones are kept.
#pragma once

#include "pipeline/component/component.h"
#include "receivers/decode/formats.h"
#include "receivers/records/quarantine.h"

struct record_config {
    int format; // place in format_choices; format_chosen tells the kind
    const char *job_id;
    const char *node;
    const char *quarantine;
    struct byte_size quarantine_max_size;
};

// The rows for a `struct record_config` that is the field `field` of `owner`.
// NOLINTBEGIN(bugprone-macro-parentheses): names of types and members take none
#define RECORD_OPTIONS(owner, field)                                                               \
    {.name = "format",                                                                             \
     .type = OPTION_CHOICE,                                                                        \
     .offset = offsetof(owner, field.format),                                                      \
     .default_value = "auto",                                                                      \
     .choices = format_choices,                                                                    \
     .help =                                                                                       \
         "what the records are; `auto` tells it by the first ones of each file, request or "       \
         "message"},                                                                               \
        {.name = "job_id",                                                                         \
         .type = OPTION_TEXT,                                                                      \
         .offset = offsetof(owner, field.job_id),                                                  \
         .help = "job of events that name none, or whose job is the text `none`"},                 \
        {.name = "node",                                                                           \
         .type = OPTION_TEXT,                                                                      \
         .offset = offsetof(owner, field.node),                                                    \
         .help = "node of events that name none, such as lines of dmesg"},                         \
        {.name = "quarantine",                                                                     \
         .type = OPTION_TEXT,                                                                      \
         .offset = offsetof(owner, field.quarantine),                                              \
         .claim = CLAIM_APPENDED,                                                                  \
         .help = "file that refused records are appended to, one JSON object a line"},             \
    {                                                                                              \
        .name = "quarantine_max_size", .type = OPTION_SIZE,                                        \
        .offset = offsetof(owner, field.quarantine_max_size), .default_value = "256MiB",           \
        .min = 4096, .max = 1099511627776.0,                                                       \
        .help = "the quarantine file grows no further; what is refused then is only counted"       \
    }
// NOLINTEND(bugprone-macro-parentheses)

// Adds problems for values that no row can tell.
void record_options_check(const struct record_config *config, struct problem_list *problems);
// What decodes the records of a stream.
static inline const struct decoder_type *
record_options_decoder(const struct record_config *config) {
    return format_stream_decoder(config->format);
}
// What to stamp on events, and the quarantine file, which only the first copy of a receiver writes.
enum status record_options_open(const struct record_config *config,
                                const struct component_context *context, struct feed_stamp *stamp,
                                struct quarantine *quarantine, struct error *error) MUST_USE;
