// SPDX-License-Identifier: Apache-2.0
// Checks a store and visits what is in it, without changing it.
//
// Reads by a connection of its own that cannot write, whoever has the store open; a store that
// nobody has and that was closed is opened as unchangeable, so that no file appears beside it. A
// complaint is one sentence; what is readable is visited in spite of it.
#include "extensions/file_storage/store.h"
#include "extensions/file_storage/store_log.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COMPLAINTS_MAX = 100 };

struct inspection {
    const struct store_library *library;
    sqlite3 *connection;
    const char *directory;
    const char *path;
    store_visit *visit;
    store_complaint *damaged;
    void *context;
    uint32_t complaints;
};

PRINTF_LIKE(2, 3)
static void complain(struct inspection *inspection, const char *format, ...) {
    assert(inspection->damaged != NULL);
    char sentence[512];
    va_list arguments;
    if (inspection->complaints++ >= COMPLAINTS_MAX)
        return;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    inspection->damaged(inspection->context, sentence);
}

static int64_t ask(struct inspection *inspection, const char *sql) {
    int64_t answer = -1;
    int code = store_query_number(inspection->connection, sql, &answer);
    if (code != SQLITE_ROW)
        complain(inspection, "%s: %s.", inspection->path, inspection->library->errstr(code));
    return answer;
}

static bool page_row(void *context, sqlite3_stmt *statement) {
    struct inspection *inspection = context;
    const char *said = (const char *)inspection->library->column_text(statement, 0);
    if (said != NULL && strcmp(said, "ok") != 0)
        complain(inspection, "%s: %.300s.", inspection->path, said);
    return true;
}

static void pages_check(struct inspection *inspection, const char *sql) {
    int code = store_query(inspection->connection, sql, page_row, inspection);
    if (code != SQLITE_DONE)
        complain(inspection, "%s: %s.", inspection->path, inspection->library->errstr(code));
}

static bool row_visit(void *context, sqlite3_stmt *statement) {
    struct inspection *inspection = context;
    const struct store_library *library = inspection->library;
    int64_t space = library->column_int64(statement, 0);
    const char *name = (const char *)library->column_text(statement, 1);
    int64_t key = library->column_int64(statement, 2);
    uint32_t crc = (uint32_t)library->column_int64(statement, 3);
    struct slice bytes = {library->column_blob(statement, 4),
                          (size_t)library->column_bytes(statement, 4)};
    if (space < 0 || space >= STORAGE_SPACE_COUNT || name == NULL)
        complain(inspection, "%s: a name of an unknown space.", inspection->path);
    else if (store_crc((enum storage_space)space, slice_of(name), store_number(key), bytes) != crc)
        complain(inspection, "%s: blob %llu of %s \"%s\" is damaged.", inspection->path,
                 (unsigned long long)store_number(key),
                 storage_space_name((enum storage_space)space), name);
    else
        return inspection->visit(inspection->context, (enum storage_space)space, name,
                                 store_number(key), bytes);
    return true;
}

static void rows_visit(struct inspection *inspection) {
    static const char sql[] =
        "SELECT name.space, name.text, blob.key, blob.crc, blob.bytes "
        "FROM name INDEXED BY name_key CROSS JOIN blob WHERE name.space >= 0 AND blob.key BETWEEN "
        "name.id << 47 "
        "AND (name.id << 47) + 140737488355327 ORDER BY name.space, name.text, blob.key";
    int code = store_query(inspection->connection, sql, row_visit, inspection);
    if (code != SQLITE_DONE && code != SQLITE_ROW)
        complain(inspection, "%s: reading it ended early: %s.", inspection->path,
                 inspection->library->errstr(code));
}

// -- opening ------------------------------------------------------------------------------------

static bool store_is_held(const char *directory) {
    int file = open_beside(directory, "/culprit.lock", O_RDONLY);
    if (file < 0)
        return false;
    bool held = flock(file, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    close(file);
    return held;
}

// A path as it stands in a URI.
static void uri_of(const char *path, const char *tail, char *uri, size_t room) {
    size_t size = (size_t)snprintf(uri, room, "file:");
    for (const unsigned char *at = (const unsigned char *)path; *at != '\0' && size + 4 < room;
         at++)
        size += (size_t)snprintf(uri + size, room - size,
                                 *at == '?' || *at == '#' || *at == '%' ? "%%%02x" : "%c", *at);
    snprintf(uri + size, room - size, "%s", tail);
}

// What is no damage: the log's index may not be made or read, or a writer does not let go.
static enum status connection_try(struct inspection *inspection, struct error *error) {
    const struct store_library *library = inspection->library;
    int code = library->exec(inspection->connection, "PRAGMA schema_version", NULL, NULL, NULL);
    int primary = code & 0xff;
    if (primary == SQLITE_CANTOPEN || primary == SQLITE_PERM || primary == SQLITE_BUSY ||
        primary == SQLITE_READONLY)
        return error_set(error, STATUS_IO, "%s cannot be read now: %s.", inspection->path,
                         library->errstr(code));
    return STATUS_OK;
}

// -- what was acknowledged ----------------------------------------------------------------------

// Up to the frame that is not right the library reads the log and says nothing. While the writer
// works the log may be begun anew under the eyes of who reads it; then the mark is another one.
static struct store_mark log_look(struct inspection *inspection, struct log_report *report) {
    enum { ATTEMPTS = 5 };
    struct store_mark mark, after;
    struct error error = {0};
    *report = (struct log_report){0};
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        (void)mark_read(inspection->path, &mark);
        if (log_examine(inspection->path, report, &error) != STATUS_OK) {
            complain(inspection, "%s", error.message);
            return mark;
        }
        (void)mark_read(inspection->path, &after);
        if (!report->is_damaged ||
            (memcmp(mark.salts, after.salts, sizeof mark.salts) == 0 && mark.moved == after.moved))
            break;
        report->is_damaged = false;
    }
    if (report->is_damaged)
        complain(inspection,
                 "%s: %s; the next start of culprit carries over what can be read, and says what "
                 "is lost.",
                 inspection->path, report->sentence);
    return mark;
}

// The row that was acknowledged last, when its log is not there.
static void witness_look(struct inspection *inspection, const struct store_mark *mark,
                         const struct log_report *report) {
    char sql[128];
    if (report->is_there || mark->moved == mark->frames || mark->witness_key == STORE_NO_WITNESS ||
        store_is_held(inspection->directory))
        return;
    snprintf(sql, sizeof sql, "SELECT count(*) FROM blob WHERE key = %lld AND crc = %lu",
             (long long)mark->witness_key, (unsigned long)mark->witness_crc);
    if (ask(inspection, sql) == 0)
        complain(inspection, "%s: what was acknowledged last is not in it: its log is lost.",
                 inspection->path);
}

static void connection_look(struct inspection *inspection) {
    assert(inspection->connection != NULL);
    struct log_report report;
    struct store_mark mark = log_look(inspection, &report);
    int64_t application = ask(inspection, "PRAGMA application_id");
    if (application == -1)
        return;
    int64_t version = ask(inspection, "PRAGMA user_version");
    if (application != STORE_APPLICATION_ID)
        complain(inspection, "%s: it is a database of another program.", inspection->path);
    else if (version != STORE_VERSION)
        complain(inspection, "%s: it has version %lld of the format, this culprit knows %d.",
                 inspection->path, (long long)version, STORE_VERSION);
    else if (ask(inspection, STORE_COUNT_TABLES) != STORE_TABLE_COUNT)
        complain(inspection, "%s: its tables are not described as those of a store.",
                 inspection->path);
    else {
        witness_look(inspection, &mark, &report);
        pages_check(inspection, "PRAGMA quick_check(20)");
        pages_check(inspection, "PRAGMA integrity_check(name)"); // with its index
        rows_visit(inspection);
    }
}

enum status store_inspect(const char *directory, store_visit *visit, store_complaint *damaged,
                          void *context, struct error *error) {
    assert(directory != NULL && visit != NULL && damaged != NULL);
    char path[STORE_PATH_ROOM], log[STORE_PATH_ROOM], uri[STORE_PATH_ROOM * 3 + 32];
    struct stat about;
    struct inspection inspection = {.directory = directory,
                                    .path = path,
                                    .visit = visit,
                                    .damaged = damaged,
                                    .context = context};
    snprintf(path, sizeof path, "%.4096s/culprit.db", directory);
    if (stat(path, &about) != 0)
        return error_set_os(error, STATUS_IO, errno, "there is no store in %s", directory);
    if (access(path, R_OK) != 0)
        return error_set_os(error, STATUS_IO, errno, "cannot read %s", path);
    enum status status = store_library_load(&inspection.library, error);
    if (status != STATUS_OK)
        return status;
    path_beside(log, path, "-wal");
    bool closed = stat(log, &about) != 0 && !store_is_held(directory);
    uri_of(path, closed ? "?immutable=1" : "?mode=ro", uri, sizeof uri);
    int code = inspection.library->open_v2(
        uri, &inspection.connection, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX,
        NULL);
    (void)inspection.library->busy_timeout(inspection.connection, 5000);
    if (code == SQLITE_OK)
        status = connection_try(&inspection, error);
    if (code != SQLITE_OK)
        complain(&inspection, "%s: %s.", path, inspection.library->errstr(code));
    else if (status == STATUS_OK)
        connection_look(&inspection);
    (void)inspection.library->close(inspection.connection);
    if (inspection.complaints > COMPLAINTS_MAX) {
        uint32_t rest = inspection.complaints - COMPLAINTS_MAX;
        inspection.complaints = 0;
        complain(&inspection, "%s: %u more like these.", path, rest);
    }
    return status;
}
