// SPDX-License-Identifier: Apache-2.0
// A bearer token in a file, read again when the file changes: its time of modification, size or
// inode. The caller's lock protects it.
#pragma once

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HTTP_TOKEN_SIZE_MAX = 4095 };

struct token_file {
    const char *path; // lives as long as this
    char text[HTTP_TOKEN_SIZE_MAX + 1];
    uint64_t checked_ns; // clock_monotonic_ns
    int64_t modified_ns; // these three: of the file as it was read
    uint64_t file_size;
    uint64_t inode;
};

enum token_change { TOKEN_SAME, TOKEN_CHANGED, TOKEN_UNREADABLE };

// Reads the file: 1 to 4095 bytes without white space within; line ends and spaces behind the token
// are cut off. STATUS_CONFIG or the like with a sentence that never shows the token.
enum status token_file_open(struct token_file *token, const char *path,
                            struct error *error) MUST_USE;
// Looks at the file, at most once a second unless `now`. After TOKEN_UNREADABLE the text is as
// before, and `error` says why.
enum token_change token_file_refresh(struct token_file *token, bool now, struct error *error);
void token_file_close(struct token_file *token); // wipes the text
