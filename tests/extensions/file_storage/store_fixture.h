// SPDX-License-Identifier: Apache-2.0
// A store in a folder of its own, and short ways to fill and read it.
#pragma once

#include "base/log.h"
#include "base/memory.h"
#include "extensions/file_storage/store.h"
#include "tests/support/temporary.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)

static char folder[128];
static struct storage *store;
static struct error error;
static uint64_t max_size = 64 << 20, interval_ns = 1000000;

static inline const char *path_of(const char *name) {
    static char paths[4][256];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static inline enum status try_open(struct storage **into) {
    struct store_options options = {.directory = folder,
                                    .create_directory = true,
                                    .max_size = max_size,
                                    .commit_interval_ns = interval_ns,
                                    .site = "extension/file_storage"};
    return store_open(into, &options, &error);
}

static inline void open_store(void) {
    error.message[0] = '\0';
    ck_assert_msg(try_open(&store) == STATUS_OK, "%s", error.message);
}

static inline void close_store(void) {
    store_close(store, 10 * SECOND);
    store = NULL;
}

static inline void folder_make(void) {
    temporary_path(folder, sizeof folder, "store");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    log_configure(LOG_ERROR, LOG_CONSOLE);
}

// For many cases that would each say what was lost.
static inline void folder_make_silent(void) {
    folder_make();
    log_configure((enum log_level)(LOG_ERROR + 1), LOG_CONSOLE);
}

static inline void folder_remove(void) {
    char command[200];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
}

// Bytes that only this blob has.
static inline void fill(char *bytes, size_t size, uint64_t seed) {
    uint64_t state = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    for (size_t i = 0; i < size; i++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
        bytes[i] = (char)(state >> 56);
    }
}

static inline void put_text(enum storage_space space, const char *name, uint64_t number,
                            const char *text) {
    struct storage_batch *batch = storage_batch_new(store);
    storage_put(batch, space, name, number, slice_of(text));
    uint64_t ticket = storage_submit(batch);
    ck_assert_msg(storage_wait(store, ticket, 30 * SECOND, &error) == STATUS_OK, "%s",
                  error.message);
}

static inline bool append_row(void *context, const char *name, uint64_t number,
                              struct slice bytes) {
    char *text = context;
    size_t size = strlen(text);
    ck_assert_uint_eq((uintptr_t)bytes.data % 16, 0);
    snprintf(text + size, 4096 - size, "%s/%llu=%.*s;", name, (unsigned long long)number,
             (int)(bytes.size < 32 ? bytes.size : 32), bytes.data);
    return true;
}

// "name/number=bytes;" of all, or of one name.
static inline const char *rows_of(enum storage_space space, const char *name) {
    static char text[4096];
    text[0] = '\0';
    ck_assert_msg(storage_scan(store, space, name, 0, UINT64_MAX, append_row, text, &error) ==
                      STATUS_OK,
                  "%s", error.message);
    return text;
}
