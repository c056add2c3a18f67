// SPDX-License-Identifier: Apache-2.0
#include "extensions/file_storage/store_library.h"

#include <assert.h>

static struct store_library library;

static const struct late_symbol symbols[] = {
#define STORE_PLACE(name) {"sqlite3_" #name, (void **)(void *)&library.name},
    STORE_FUNCTIONS(STORE_PLACE)
#undef STORE_PLACE
};

static enum status set_up(struct error *error) {
    // Without statistics there is no lock around each allocation. Too late when somebody else has
    // started the library already; then it works as it is.
    (void)library.config(SQLITE_CONFIG_MEMSTATUS, 0);
    if (library.initialize() == SQLITE_OK)
        return STATUS_OK;
    return error_set(error, STATUS_OS, "SQLite could not be started.");
}

struct late_library store_late_library = {"libsqlite3.so.0",
                                          "libsqlite3-0",
                                          "the store",
                                          symbols,
                                          .symbol_count = sizeof symbols / sizeof symbols[0],
                                          .set_up = set_up};

enum status store_library_load(const struct store_library **out, struct error *error) {
    enum status status = late_library_load(&store_late_library, error);
    if (status == STATUS_OK)
        *out = &library;
    return status;
}

int store_query(sqlite3 *connection, const char *sql, store_row_visit *row, void *context) {
    sqlite3_stmt *statement = NULL;
    assert(store_late_library.loaded);
    int code = library.prepare_v2(connection, sql, -1, &statement, NULL);
    if (code == SQLITE_OK)
        while ((code = library.step(statement)) == SQLITE_ROW && row(context, statement))
            continue;
    (void)library.finalize(statement);
    return code;
}

static bool take_number(void *answer, sqlite3_stmt *statement) {
    *(int64_t *)answer = library.column_int64(statement, 0);
    return false;
}

int store_query_number(sqlite3 *connection, const char *sql, int64_t *answer) {
    return store_query(connection, sql, take_number, answer);
}
