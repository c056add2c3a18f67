// SPDX-License-Identifier: Apache-2.0
// A folder of its own for each test that writes files, and what stands in it.
#pragma once

#include "tests/support/temporary.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char scratch_folder[64];
static char scratch_bytes[1 << 20];

static inline void scratch_make(void) {
    temporary_path(scratch_folder, sizeof scratch_folder, "test");
    ck_assert_ptr_nonnull(mkdtemp(scratch_folder));
}

static inline void scratch_remove(void) {
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", scratch_folder);
    ck_assert_int_eq(system(command), 0);
}

static inline const char *scratch_path(const char *name) {
    static char paths[4][160];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", scratch_folder, name);
    return path;
}

static inline void scratch_write(const char *name, const char *text) {
    FILE *file = fopen(scratch_path(name), "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    fclose(file);
}

// NULL when there is no such file.
static inline const char *scratch_read(const char *name) {
    FILE *file = fopen(scratch_path(name), "rb");
    if (file == NULL)
        return NULL;
    size_t size = fread(scratch_bytes, 1, sizeof scratch_bytes - 1, file);
    scratch_bytes[size] = '\0';
    fclose(file);
    return scratch_bytes;
}
