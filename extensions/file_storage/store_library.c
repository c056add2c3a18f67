// SPDX-License-Identifier: Apache-2.0
#include "extensions/file_storage/store_library.h"

#include "base/late_library.h"

#include <pthread.h>
#include <stdbool.h>

static struct store_library library;
static bool loaded;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define PLACE(name)                                                                                \
    { "sqlite3_" #name, (void **)(void *)&library.name }

static const struct late_symbol symbols[] = {
    PLACE(config),
    PLACE(initialize),
    PLACE(open_v2),
    PLACE(close),
    PLACE(exec),
    PLACE(prepare_v2),
    PLACE(step),
    PLACE(reset),
    PLACE(finalize),
    PLACE(bind_int64),
    PLACE(bind_text),
    PLACE(bind_blob64),
    PLACE(column_int64),
    PLACE(column_text),
    PLACE(column_blob),
    PLACE(column_bytes),
    PLACE(extended_result_codes),
    PLACE(system_errno),
    PLACE(errstr),
    PLACE(busy_timeout),
    PLACE(get_autocommit),
    PLACE(wal_hook),
    PLACE(wal_checkpoint_v2),
    PLACE(db_config),
};

enum status store_library_load(const struct store_library **out, struct error *error) {
    pthread_mutex_lock(&lock);
    enum status status = STATUS_OK;
    if (!loaded) {
        status = late_library_load("libsqlite3.so.0", "libsqlite3-0", "the store", symbols,
                                   sizeof symbols / sizeof symbols[0], error);
        if (status == STATUS_OK) {
            // Without statistics there is no lock around each allocation. Too late when somebody
            // else has started the library already; then it works as it is.
            (void)library.config(SQLITE_CONFIG_MEMSTATUS, 0);
            if (library.initialize() != SQLITE_OK)
                status = error_set(error, STATUS_OS, "SQLite could not be started.");
        }
        loaded = status == STATUS_OK;
    }
    pthread_mutex_unlock(&lock);
    if (status == STATUS_OK)
        *out = &library;
    return status;
}
