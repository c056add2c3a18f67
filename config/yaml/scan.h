// SPDX-License-Identifier: Apache-2.0
// Looks at the bytes of a document before the YAML parser sees them, and tells lines.
#pragma once

#include "config/yaml/document.h"

struct document_text {
    const char *name; // NULL: from the command line
    struct slice text;
    const uint32_t *line_starts;
    uint32_t line_count;
};

// False, with a problem, when the parser must not see this text: too long, not UTF-8, control
// characters, tabs as indentation. Drops a byte order mark.
bool document_scan(struct document_text *out, struct arena *arena, const char *name,
                   struct slice text, struct problem_list *problems);
// The place of a byte.
struct location document_place(const struct document_text *document, size_t offset);
// The place of a line and column (both from 1) counted in characters.
struct location document_place_of(const struct document_text *document, uint32_t line,
                                  uint32_t character);
