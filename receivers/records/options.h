// SPDX-License-Identifier: Apache-2.0
// Options that all receivers of records share: what the records are, whose they are, and where
// refused ones are kept.
#pragma once

#include "pipeline/component/component.h"
#include "pipeline/component/feed.h"
#include "receivers/decode/formats.h"

struct record_config {
    int format; // place in format_choices; format_chosen tells the kind
    const char *job_id;
    const char *node;
    const char *timezone;  // "auto": not said
    const char *boot_time; // NULL: not said
    int64_t world_size;    // 0: not said
    const char *quarantine;
    struct byte_size quarantine_max_size;
};

enum { RECORD_NODE_MAX = 253 }; // bytes of the name of a node, as in Kubernetes

// The rows for a `struct record_config` that is the field `group` of `owner`; receivers that make
// their records themselves have only some of them.
// NOLINTBEGIN(bugprone-macro-parentheses): names of types and members take none
#define RECORD_JOB_OPTION(owner, group)                                                            \
    OPTION_IN(owner, group, job_id, OPTION_TEXT,                                                   \
              .help = "job of events that name none, or whose job is the text `none`")
// `otherwise`: a clause that says what the node is without the option.
#define RECORD_NODE_OPTION(owner, group, otherwise)                                                \
    OPTION_IN(owner, group, node, OPTION_TEXT,                                                     \
              .help = "node that the records are of; otherwise " otherwise)
// Of receivers that read what is of the machine they run on.
#define RECORD_OWN_NODE_OPTION(owner, group)                                                       \
    RECORD_NODE_OPTION(owner, group,                                                               \
                       "the machine's host name, which in a container is that of the pod: "        \
                       "`${env:NODE_NAME}`")
#define QUARANTINE_OPTIONS(owner, group)                                                           \
    OPTION_IN(owner, group, quarantine, OPTION_TEXT, .claim = CLAIM_APPENDED,                      \
              .help = "file that refused records are appended to, one JSON object a line"),        \
        OPTION_IN(owner, group, quarantine_max_size, OPTION_SIZE, .default_value = "256MiB",       \
                  .min = 4096, .max = 1099511627776.0,                                             \
                  .help =                                                                          \
                      "the quarantine file grows no further; what is refused then is only "        \
                      "counted")
#define RECORD_OPTIONS(owner, group)                                                               \
    OPTION_IN(owner, group, format, OPTION_CHOICE, .default_value = "auto",                        \
              .choices = format_choices,                                                           \
              .help = "what the records are; `auto` tells it of each by itself"),                  \
        RECORD_JOB_OPTION(owner, group),                                                           \
        OPTION_IN(owner, group, node, OPTION_TEXT,                                                 \
                  .help = "node of events that name none, such as lines of dmesg"),                \
        OPTION_IN(owner, group, timezone, OPTION_TEXT, .default_value = "auto",                    \
                  .help =                                                                          \
                      "zone of times that name none, such as those of dmesg -T: `UTC`, an "        \
                      "offset like `+02:00`, or a name like `Europe/Berlin`; `auto`: UTC, but "    \
                      "for kernel logs of inputs that end what the other inputs prove"),           \
        OPTION_IN(                                                                                 \
            owner, group, boot_time, OPTION_TEXT,                                                  \
            .help =                                                                                \
                "when the node booted, in RFC 3339, for lines that say only the time since "       \
                "then; otherwise it is worked out from the age of a file and its last line"),      \
        OPTION_IN(owner, group, world_size, OPTION_INT, .default_value = "0", .min = 0,            \
                  .max = 16777216,                                                                 \
                  .help =                                                                          \
                      "how many ranks the job has, to tell labels of `srun -l` from other "        \
                      "numbers; 0: not known"),                                                    \
        QUARANTINE_OPTIONS(owner, group)
// NOLINTEND(bugprone-macro-parentheses)

// The host name of this machine; empty when it has none.
void record_host_name(char name[RECORD_NODE_MAX + 1]);
// What RECORD_OWN_NODE_OPTION promises: the node that is given, else the host name. STATUS_OS when
// there is neither.
enum status record_own_node(const struct record_config *config, char node[RECORD_NODE_MAX + 1],
                            struct error *error) MUST_USE;

// Adds problems for values that no row can tell.
void record_options_check(const struct record_config *config, struct problem_list *problems);
// What decodes the records of a stream.
static inline const struct decoder_type *
record_options_decoder(const struct record_config *config) {
    return format_stream_decoder(config->format);
}
// What the options say of an input. `input->zone` is NULL when they name none; else it is
// time_zone_close's to free. False, with a problem at the key in `problems`, unless that is NULL: a
// value is wrong.
bool record_options_input(const struct record_config *config, struct decoder_input *input,
                          struct problem_list *problems);
// Gives the decoder to a source that has none yet; `known` is what is known of all inputs.
void record_options_format(struct source *source, const struct decoder_type *decoder,
                           const struct decoder_input *known);
