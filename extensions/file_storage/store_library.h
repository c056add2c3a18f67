// SPDX-License-Identifier: Apache-2.0
// SQLite, loaded when the first store is opened.
#pragma once

#include "base/late_library.h"
#include "base/status.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

// Every function of SQLite that culprit calls, without its prefix `sqlite3_`.
#define STORE_FUNCTIONS(X)                                                                         \
    X(config)                                                                                      \
    X(initialize)                                                                                  \
    X(open_v2)                                                                                     \
    X(close)                                                                                       \
    X(exec)                                                                                        \
    X(prepare_v2)                                                                                  \
    X(step)                                                                                        \
    X(reset)                                                                                       \
    X(finalize)                                                                                    \
    X(bind_int64)                                                                                  \
    X(bind_text)                                                                                   \
    X(bind_blob64)                                                                                 \
    X(column_int64)                                                                                \
    X(column_text)                                                                                 \
    X(column_blob)                                                                                 \
    X(column_bytes)                                                                                \
    X(extended_result_codes)                                                                       \
    X(system_errno)                                                                                \
    X(errstr)                                                                                      \
    X(busy_timeout)                                                                                \
    X(get_autocommit)                                                                              \
    X(wal_hook)                                                                                    \
    X(wal_checkpoint_v2)                                                                           \
    X(db_config)

struct store_library {
#define STORE_MEMBER(name) __typeof__ (&sqlite3_##name)(name);
    STORE_FUNCTIONS(STORE_MEMBER)
#undef STORE_MEMBER
};

extern struct late_library store_late_library; // for component_type

// Lives as long as the process. Any thread.
enum status store_library_load(const struct store_library **library, struct error *error) MUST_USE;

// Runs `sql` and calls `row` for each of its rows until it returns false. Returns the library's
// code: SQLITE_DONE, SQLITE_ROW when `row` ended it, or what went wrong.
typedef bool store_row_visit(void *context, sqlite3_stmt *statement);
int store_query(sqlite3 *connection, const char *sql, store_row_visit *row, void *context);
// The first column of the first row, left as it is when there is none. Returns as store_query.
int store_query_number(sqlite3 *connection, const char *sql, int64_t *answer);
