// SPDX-License-Identifier: Apache-2.0
// Path patterns: `*` and `?` within one name, `**` over any number of directories, `[a-z]`, `[!x]`,
// `{a,b}`, and a backslash that takes the next character as it is.
//
// A wildcard never matches the dot that begins a hidden name, nor a slash. Bytes, not characters:
// `?` is one byte.
#pragma once

#include "base/arena.h"

#include <stdint.h>

enum {
    GLOB_ALTERNATIVES_MAX = 256, // patterns that one {…} pattern may stand for
    GLOB_PATTERN_MAX = 4096,
    GLOB_PARTS_MAX = 64, // names and wildcards between the slashes of one pattern
};

// One pattern without braces, cut at its slashes.
struct glob {
    struct slice *parts;
    uint32_t count;
    bool absolute;
};

struct glob_list {
    struct glob *items;
    uint32_t count;
};

// True when the text holds a character that means something in a pattern.
bool glob_has_wildcard(struct slice text);
// Resolves braces and cuts at slashes. NULL when it went well (`list` lies in `arena`), else a
// clause that says what is wrong with the pattern.
const char *glob_parse(struct slice pattern, struct arena *arena, struct glob_list *list);
// One name against one part.
bool glob_match_name(struct slice part, struct slice name);
// True for the part `**`.
bool glob_is_deep(struct slice part);
// A whole path. A pattern of one part is compared with each name of the path, so that `*.bak` or
// `old` leaves out what it names in any directory.
bool glob_match_path(const struct glob *glob, struct slice path);
