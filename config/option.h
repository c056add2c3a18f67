// SPDX-License-Identifier: Apache-2.0
// Option rows: one row names a field, its type, unit, default, range and help, once.
//
// The rows of a component fill its config struct, check ranges, print help and tables, and make the
// JSON schema. Nothing is parsed by hand, and no unit can be read wrongly: durations and sizes are
// types of their own in the config struct.
#pragma once

#include "config/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct duration {
    int64_t ns; // DURATION_SPECIAL: the option's special word ("all", "never") was given
};
#define DURATION_SPECIAL INT64_MAX

struct byte_size {
    uint64_t bytes;
};

// Never printed: no function formats it. `secret_reveal` is the one way to the text.
struct secret {
    const char *hidden; // NULL when not given
};
static inline const char *secret_reveal(struct secret secret) {
    return secret.hidden;
}

struct text_list {
    const char *const *items;
    uint32_t count;
};

enum option_type {
    OPTION_BOOL,      // bool
    OPTION_INT,       // int64_t, within [min, max]
    OPTION_RATIO,     // double, within [min, max]
    OPTION_DURATION,  // struct duration: "300ms", "1h30m"; or the special word
    OPTION_SIZE,      // struct byte_size: "64MiB"
    OPTION_TEXT,      // const char *; NULL when not given and no default
    OPTION_CHOICE,    // int: index into `choices`
    OPTION_SECRET,    // struct secret
    OPTION_TEXT_LIST, // struct text_list; a single text is a list of one
    OPTION_GROUP,     // a nested struct: `rows` with offsets relative to this row's offset
};

// What a text names that only one component of a configuration may have.
enum option_claim {
    CLAIM_NOTHING,
    CLAIM_ENDPOINT,  // HOST:PORT, [V6]:PORT or unix:/PATH that is listened on
    CLAIM_FILE,      // a file that is written; "-": standard output
    CLAIM_APPENDED,  // a file that whole lines are appended to: several may, but no CLAIM_FILE
    CLAIM_DIRECTORY, // a directory, made with those above it unless `create_directory` says not to
};

struct option {
    const char *name; // the key in YAML
    enum option_type type;
    size_t offset; // of the field in the config struct
    const char
        *default_value;  // as it would be written in YAML; NULL: none (zero, NULL, empty list)
    double min, max;     // INT and RATIO as they are, DURATION in seconds, SIZE in bytes;
                         // both 0: no range
    const char *special; // DURATION: a word with a meaning of its own, or NULL
    const char *const *choices; // CHOICE: NULL-terminated
    const struct option *rows;  // GROUP
    size_t row_count;           // GROUP
    bool required;
    bool address;            // TEXT, TEXT_LIST: user and password in it are never printed
    bool hidden;             // TEXT, TEXT_LIST: may hold secrets, so it is never printed
    enum option_claim claim; // TEXT
    const char *help;        // one sentence or clause, no trailing full stop
};

// A row whose key is the name of its field: OPTION(struct config, burst, OPTION_DURATION, .help =
// …).
#define OPTION(owner, field, kind, ...)                                                            \
    { .name = #field, .type = (kind), .offset = offsetof(owner, field), __VA_ARGS__ }
// The same for a field of the struct `group` within `owner`, whose rows stand beside the owner's
// own.
#define OPTION_IN(owner, group, field, kind, ...)                                                  \
    { .name = #field, .type = (kind), .offset = offsetof(owner, group.field), __VA_ARGS__ }

#define OPTION_COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

// Parses a duration or size as it is written in YAML ("1h30m", "300ms"; "64MiB", "10kB" is refused
// with a hint). False with a sentence in `why` (at least 160 bytes) when it is none.
bool option_parse_duration(const char *text, struct duration *out, char *why);
bool option_parse_size(const char *text, struct byte_size *out, char *why);
// As they would be written in YAML, exactly: "1h30m", "64MiB". Not for DURATION_SPECIAL.
enum { OPTION_VALUE_MAX = 64 };
void option_format_duration(struct duration duration, char out[OPTION_VALUE_MAX]);
void option_format_size(struct byte_size size, char out[OPTION_VALUE_MAX]);

// "whole number", "list of texts": what people call a type.
const char *option_type_name(enum option_type type);
// "between 10ms and 1h", "at least 1KiB", "a, b or c": what values the row takes; "" when any.
enum { OPTION_RANGE_MAX = 512 };
void option_range(const struct option *row, char out[OPTION_RANGE_MAX]);
// The nearest of `names` to `given` for "did you mean", or NULL when none is near.
const char *option_nearest(const char *given, const char *const *names, size_t count);
