// SPDX-License-Identifier: Apache-2.0
// SQLite, loaded when the first store is opened.
#pragma once

#include "base/status.h"

#include <sqlite3.h>

struct store_library {
    __typeof__(&sqlite3_config) config;
    __typeof__(&sqlite3_initialize) initialize;
    __typeof__(&sqlite3_open_v2) open_v2;
    __typeof__(&sqlite3_close) close;
    __typeof__(&sqlite3_exec) exec;
    __typeof__(&sqlite3_prepare_v2) prepare_v2;
    __typeof__(&sqlite3_step) step;
    __typeof__(&sqlite3_reset) reset;
    __typeof__(&sqlite3_finalize) finalize;
    __typeof__(&sqlite3_bind_int64) bind_int64;
    __typeof__(&sqlite3_bind_text) bind_text;
    __typeof__(&sqlite3_bind_blob64) bind_blob64;
    __typeof__(&sqlite3_column_int64) column_int64;
    __typeof__(&sqlite3_column_text) column_text;
    __typeof__(&sqlite3_column_blob) column_blob;
    __typeof__(&sqlite3_column_bytes) column_bytes;
    __typeof__(&sqlite3_extended_result_codes) extended_result_codes;
    __typeof__(&sqlite3_system_errno) system_errno;
    __typeof__(&sqlite3_errstr) errstr;
    __typeof__(&sqlite3_busy_timeout) busy_timeout;
    __typeof__(&sqlite3_get_autocommit) get_autocommit;
    __typeof__(&sqlite3_wal_hook) wal_hook;
    __typeof__(&sqlite3_wal_checkpoint_v2) wal_checkpoint_v2;
    __typeof__(&sqlite3_db_config) db_config;
};

// Lives as long as the process. Any thread.
enum status store_library_load(const struct store_library **library, struct error *error) MUST_USE;
