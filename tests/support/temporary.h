// SPDX-License-Identifier: Apache-2.0
// Where a test puts its files.
#pragma once

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

// A template for mkdtemp or mkstemp, in TMPDIR or /tmp.
static inline void temporary_path(char *path, size_t size, const char *name) {
    const char *place = getenv("TMPDIR");
    if (place == NULL || place[0] == '\0')
        place = "/tmp";
    int length = snprintf(path, size, "%s/culprit-%s-XXXXXX", place, name);
    ck_assert_msg(length > 0 && (size_t)length < size, "TMPDIR is too long for a test: %s", place);
}
