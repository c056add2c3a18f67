// SPDX-License-Identifier: Apache-2.0
// Writes batches to the file and reads rows from it.
//
// One connection with a small page cache and a write-ahead log, used under the store's disk lock.
// The log goes into the file when the writer says so, never in the middle of a commit. Opening
// looks the file over: its header, its tables, the names against their second copy, and, when that
// is quick or the last process did not close it, every page.
#include "extensions/file_storage/store_log.h"

#include "base/file_identity.h"
#include "base/memory.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { CHECK_ALWAYS = 16 << 20, CHECK_UNCLEAN = 128 << 20, BUSY_MS = 1000 };

enum statement { BEGIN, COMMIT, ROLLBACK, PUT, DELETE, NAME_PUT, SCAN, LAST, PAGES, FREE_PAGES };
_Static_assert(FREE_PAGES + 1 == STATEMENT_COUNT, "one text each");

static const char *const TEXTS[STATEMENT_COUNT] = {
    [BEGIN] = "BEGIN IMMEDIATE",
    [COMMIT] = "COMMIT",
    [ROLLBACK] = "ROLLBACK",
    [PUT] = "REPLACE INTO blob(key, crc, bytes) VALUES(?1, ?2, ?3)",
    [DELETE] = "DELETE FROM blob WHERE key BETWEEN ?1 AND ?2",
    [NAME_PUT] = "REPLACE INTO name(id, space, text) VALUES(?1, ?2, ?3)",
    [SCAN] = "SELECT key, crc, bytes FROM blob WHERE key BETWEEN ?1 AND ?2 ORDER BY key",
    [LAST] = "SELECT key FROM blob WHERE key BETWEEN ?1 AND ?2 ORDER BY key DESC LIMIT 1",
    [PAGES] = "PRAGMA page_count",
    [FREE_PAGES] = "PRAGMA freelist_count",
};

// The size of the cache is in KiB when negative. Cells are checked so that a damaged page is told
// and not followed.
static const char SETTINGS[] =
    "PRAGMA page_size=4096; PRAGMA journal_mode=WAL;"
    "PRAGMA synchronous=FULL; PRAGMA cache_size=-384;"
    "PRAGMA mmap_size=0; PRAGMA wal_autocheckpoint=0;"
    "PRAGMA journal_size_limit=4194304; PRAGMA temp_store=MEMORY;"
    "PRAGMA cell_size_check=ON; PRAGMA trusted_schema=OFF";

static const char SCHEMA[] =
    "BEGIN; PRAGMA application_id=1668639856; PRAGMA user_version=1;" STORE_TABLE_NAME
    ";" STORE_INDEX_NAME ";" STORE_TABLE_BLOB ";COMMIT";
_Static_assert(STORE_APPLICATION_ID == 1668639856 && STORE_VERSION == 1, "as the schema says");

// -- failures -----------------------------------------------------------------------------------

static enum disk_result result_of(struct store_database *database, int code) {
    if (code == SQLITE_OK || code == SQLITE_DONE || code == SQLITE_ROW)
        return DISK_OK;
    const struct store_library *library = database->library;
    int system = database->connection == NULL ? 0 : library->system_errno(database->connection);
    int primary = code & 0xff;
    bool io = primary == SQLITE_IOERR || primary == SQLITE_CANTOPEN;
    snprintf(database->reason, sizeof database->reason, "%s%s%s%s", library->errstr(code),
             code == SQLITE_IOERR_FSYNC ? " at fsync" : "", io && system != 0 ? ": " : "",
             io && system != 0 ? strerror(system) : "");
    if (code == SQLITE_IOERR_FSYNC || code == SQLITE_IOERR_DIR_FSYNC)
        database->untrusted = true;
    if (primary == SQLITE_FULL)
        return DISK_FULL;
    bool damaged = primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB ||
                   primary == SQLITE_ERROR || primary == SQLITE_CONSTRAINT ||
                   primary == SQLITE_MISMATCH || primary == SQLITE_TOOBIG ||
                   primary == SQLITE_SCHEMA || code == SQLITE_IOERR_SHORT_READ;
    return damaged ? DISK_DAMAGED : DISK_FAILED;
}

static enum disk_result damaged(struct store_database *database, const char *reason) {
    snprintf(database->reason, sizeof database->reason, "%s", reason);
    return DISK_DAMAGED;
}

// -- statements ---------------------------------------------------------------------------------

static enum disk_result statement_end(struct store_database *database, enum statement which,
                                      int code) {
    enum disk_result result = result_of(database, code);
    (void)database->library->reset(database->statements[which]);
    return result;
}

static enum disk_result run(struct store_database *database, enum statement which) {
    return statement_end(database, which, database->library->step(database->statements[which]));
}

static enum disk_result run_keys(struct store_database *database, enum statement which,
                                 int64_t first, int64_t last) {
    assert(first <= last);
    sqlite3_stmt *statement = database->statements[which];
    (void)database->library->bind_int64(statement, 1, first);
    (void)database->library->bind_int64(statement, 2, last);
    database->witness_key = STORE_NO_WITNESS; // it may be among them
    return run(database, which);
}

static enum disk_result read_number(struct store_database *database, enum statement which,
                                    int64_t *number) {
    int code = database->library->step(database->statements[which]);
    if (code == SQLITE_ROW)
        *number = database->library->column_int64(database->statements[which], 0);
    return statement_end(database, which, code);
}

// One whole number that `sql` answers.
static enum disk_result ask(struct store_database *database, const char *sql, int64_t *answer) {
    return result_of(database, store_query_number(database->connection, sql, answer));
}

static enum disk_result execute(struct store_database *database, const char *sql) {
    return result_of(database,
                     database->library->exec(database->connection, sql, NULL, NULL, NULL));
}

static enum disk_result statements_prepare(struct store_database *database) {
    enum disk_result result = DISK_OK;
    for (int i = 0; i < STATEMENT_COUNT && result == DISK_OK; i++)
        result =
            result_of(database, database->library->prepare_v2(database->connection, TEXTS[i], -1,
                                                              &database->statements[i], NULL));
    return result;
}

// -- opening ------------------------------------------------------------------------------------

static int log_grew(void *context, sqlite3 *connection, const char *name, int frames) {
    struct store_database *database = context;
    (void)connection, (void)name;
    database->wal_frames = frames;
    database->log_grew = true;
    return SQLITE_OK;
}

static enum disk_result used_refresh(struct store_database *database) {
    int64_t pages = 0, free = 0;
    enum disk_result result = read_number(database, PAGES, &pages);
    if (result == DISK_OK)
        result = read_number(database, FREE_PAGES, &free);
    database->used_bytes = (uint64_t)(pages > free ? pages - free : 0) * STORE_PAGE_SIZE;
    return result;
}

struct name_reading {
    struct store_database *database;
    bool compare;
    bool fits; // all so far
    uint32_t count;
};

static bool name_row(void *context, sqlite3_stmt *statement) {
    struct name_reading *reading = context;
    const struct store_library *library = reading->database->library;
    struct store_names *names = &reading->database->names;
    int64_t id = library->column_int64(statement, 0), space = library->column_int64(statement, 1);
    const char *text = (const char *)library->column_text(statement, 2);
    reading->fits = id > 0 && id <= STORE_NAME_IDS && space >= 0 && space < STORAGE_SPACE_COUNT &&
                    text != NULL && strlen(text) <= STORAGE_NAME_MAX;
    if (reading->fits && reading->compare)
        reading->fits = names_find(names, (enum storage_space)space, text) == id;
    else if (reading->fits)
        names_set(names, (uint32_t)id, (enum storage_space)space, text);
    reading->count++;
    return reading->fits;
}

// Reads the names from the table, or compares those of its index with them.
static enum disk_result names_read(struct store_database *database, bool compare) {
    struct name_reading reading = {.database = database, .compare = compare, .fits = true};
    int code = store_query(database->connection,
                           compare ? "SELECT id, space, text FROM name INDEXED BY name_key "
                                     "WHERE space >= 0 ORDER BY space"
                                   : "SELECT id, space, text FROM name NOT INDEXED",
                           name_row, &reading);
    if (!reading.fits)
        return damaged(database, "the table of names is not right");
    enum disk_result result = result_of(database, code);
    uint32_t used = 0;
    for (uint32_t id = 0; id < database->names.count; id++)
        used += database->names.items[id].text != NULL;
    if (result == DISK_OK && reading.count != used)
        return damaged(database, "the table of names and its index differ");
    return result;
}

struct page_reading {
    struct store_database *database;
    bool fits;
};

static bool page_row(void *context, sqlite3_stmt *statement) {
    struct page_reading *reading = context;
    const char *said = (const char *)reading->database->library->column_text(statement, 0);
    reading->fits = said == NULL || strcmp(said, "ok") == 0;
    if (!reading->fits)
        (void)damaged(reading->database, said);
    return false;
}

static enum disk_result pages_check(struct store_database *database) {
    struct page_reading reading = {database, true};
    int code = store_query(database->connection, "PRAGMA quick_check(1)", page_row, &reading);
    return reading.fits ? result_of(database, code) : DISK_DAMAGED;
}

static enum disk_result schema_make(struct store_database *database, bool is_new) {
    int64_t tables = 0;
    enum disk_result result = DISK_OK;
    if (!is_new)
        result = ask(database, "SELECT count(*) FROM sqlite_schema", &tables);
    return result == DISK_OK && tables == 0 ? execute(database, SCHEMA) : result;
}

// What a new file is given; DISK_DAMAGED when this is a file of somebody else. A file that is
// `bare` is new too if it holds nothing: the power may have failed after its first page.
static enum disk_result schema_ensure(struct store_database *database, bool is_new, bool bare) {
    int64_t application = 0, version = 0, right = 0;
    enum disk_result result = DISK_OK;
    if (is_new || bare)
        result = schema_make(database, is_new);
    if (result == DISK_OK)
        result = ask(database, "PRAGMA application_id", &application);
    if (result == DISK_OK)
        result = ask(database, "PRAGMA user_version", &version);
    if (result == DISK_OK && application != STORE_APPLICATION_ID)
        return damaged(database, "it is a database of another program");
    if (result == DISK_OK && version != STORE_VERSION)
        return damaged(database, "it was written by another version of culprit");
    // A bad byte in there can make all rows look as if they were not there.
    if (result == DISK_OK)
        result = ask(database, STORE_COUNT_TABLES, &right);
    if (result == DISK_OK && right != STORE_TABLE_COUNT)
        return damaged(database, "its tables are not described as those of a store");
    return result;
}

struct unused_names {
    const struct store_library *library;
    uint32_t *ids;
    uint32_t count, capacity;
};

static bool unused_row(void *context, sqlite3_stmt *statement) {
    struct unused_names *unused = context;
    unused->ids = memory_room(unused->ids, &unused->capacity, unused->count, sizeof *unused->ids);
    unused->ids[unused->count++] = (uint32_t)unused->library->column_int64(statement, 0);
    return true;
}

// Names under which nothing is kept any more free their ids.
static enum disk_result names_thin(struct store_database *database) {
    char sql[192];
    struct unused_names unused = {.library = database->library};
    snprintf(sql, sizeof sql,
             "SELECT id FROM name NOT INDEXED WHERE NOT EXISTS (SELECT 1 FROM blob WHERE key "
             "BETWEEN id << %d AND (id << %d) + %lld)",
             STORE_NUMBER_BITS, STORE_NUMBER_BITS, (long long)STORAGE_NUMBER_MAX);
    enum disk_result result =
        result_of(database, store_query(database->connection, sql, unused_row, &unused));
    for (uint32_t i = 0; i < unused.count && result == DISK_OK; i++) {
        snprintf(sql, sizeof sql, "DELETE FROM name WHERE id = %u", unused.ids[i]);
        result = execute(database, sql);
        names_clear(&database->names, unused.ids[i]);
    }
    memory_give(unused.ids);
    return result;
}

// Whether the row that was acknowledged last is there, when its log is not.
static enum disk_result witness_check(struct store_database *database) {
    const struct store_mark *mark = &database->mark;
    struct store_row row;
    bool found = false;
    if (!database->needs_witness)
        return DISK_OK;
    enum disk_result result = database_seek(database, mark->witness_key, mark->witness_key);
    if (result == DISK_OK)
        result = database_next(database, &row, &found);
    bool is_there = result == DISK_OK && found && row.crc == mark->witness_crc;
    database_seek_end(database);
    if (result == DISK_OK && !is_there)
        return damaged(database, "what was acknowledged last is not in it: its log is lost");
    return result;
}

static enum disk_result look_over(struct store_database *database, uint64_t size, bool unclean) {
    enum disk_result result =
        size <= (unclean ? CHECK_UNCLEAN : CHECK_ALWAYS) ? pages_check(database) : DISK_OK;
    if (result == DISK_OK)
        result = statements_prepare(database);
    if (result == DISK_OK)
        result = names_read(database, false);
    if (result == DISK_OK)
        result = names_read(database, true);
    if (result == DISK_OK)
        result = witness_check(database);
    // On a full disk it can wait.
    if (result == DISK_OK && names_thin(database) == DISK_DAMAGED)
        result = DISK_DAMAGED;
    if (result == DISK_OK)
        result = used_refresh(database);
    return result;
}

// The library takes some damage of the first bytes for a file of another kind, or one that may only
// be read. Where a file system has no shared memory the file keeps its older format (1 for 2).
static bool header_is_ours(const char *path) {
    static const unsigned char begin[] = "SQLite format 3\0\x10\x00\x02\x02\x00\x40\x20\x20";
    static const unsigned char older[] = "SQLite format 3\0\x10\x00\x01\x01\x00\x40\x20\x20";
    unsigned char header[sizeof begin - 1];
    FILE *file = fopen(path, "rbe");
    bool ours =
        file == NULL ||
        (fread(header, 1, sizeof header, file) == sizeof header &&
         (memcmp(header, begin, sizeof header) == 0 || memcmp(header, older, sizeof header) == 0));
    if (file != NULL)
        fclose(file);
    return ours;
}

// Whether what was acknowledged is in the file and its log, as far as can be told without the
// library, which takes the first frame that is not right for the log's end.
static enum disk_result log_check(struct store_database *database, uint64_t size) {
    struct log_report report;
    struct error error;
    struct store_mark mark = {0};
    bool has_mark = database->keeps_mark && mark_read(database->path, &mark);
    if (size == 0 && has_mark)
        return damaged(database, "the file is empty, though rows were acknowledged in it");
    if (log_examine(database->path, &report, &error) != STATUS_OK) {
        snprintf(database->reason, sizeof database->reason, "%.150s", error.message);
        return DISK_FAILED;
    }
    database->needs_witness = has_mark && !report.is_there && mark.moved < mark.frames &&
                              mark.witness_key != STORE_NO_WITNESS;
    database->mark = mark;
    return report.is_damaged ? damaged(database, report.sentence) : DISK_OK;
}

enum disk_result database_open(struct store_database *database, const char *path) {
    assert(database->connection == NULL);
    assert(database->library != NULL);
    const struct store_library *library = database->library;
    uint64_t size = size_beside(path, ""), log_size = size_beside(path, "-wal");
    database->path = path;
    database->mark_file = database->mark_log = -1;
    database->witness_key = STORE_NO_WITNESS;
    // The library would throw the log of an empty file away.
    if (size == 0 && log_size > 0)
        return damaged(database, "the file is empty, its log is not");
    if (size > 0 && !header_is_ours(path))
        return damaged(database, "it does not begin as a store does");
    enum disk_result result = log_check(database, size);
    if (result != DISK_OK)
        return result;
    if (size == 0) { // the library would let everybody read it; its log gets the same mode
        int file = open_beside(path, "", O_RDWR | O_CREAT);
        if (file >= 0) // else the library says what is wrong
            close(file);
    }
    int code = library->open_v2(path, &database->connection,
                                SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX |
                                    SQLITE_OPEN_PRIVATECACHE,
                                NULL);
    result = result_of(database, code);
    if (result == DISK_OK) {
        (void)library->extended_result_codes(database->connection, 1);
        (void)library->db_config(database->connection, SQLITE_DBCONFIG_LOOKASIDE, NULL, 128, 64);
        (void)library->busy_timeout(database->connection, BUSY_MS);
        result = execute(database, SETTINGS);
        // After the settings: turning the library's own checkpoints off takes its hook away.
        (void)library->wal_hook(database->connection, log_grew, database);
    }
    if (result == DISK_OK)
        result = schema_ensure(database, size == 0, size <= STORE_PAGE_SIZE && log_size == 0);
    if (result == DISK_OK)
        result = look_over(database, size + log_size, log_size > 0);
    if (result == DISK_OK)
        mark_begin(database);
    if (result == DISK_OK && database->untrusted) {
        result = database_checkpoint(database, true);
        database->untrusted = result != DISK_OK;
    }
    struct stat about;
    if (result == DISK_OK && stat(path, &about) == 0)
        database->identity = file_identity_of(&about);
    if (result != DISK_OK)
        database_close(database, true);
    return result;
}

void database_close(struct store_database *database, bool keep_log) {
    const struct store_library *library = database->library;
    // The library takes the log away when it has moved it; the mark must not ask for it then.
    if (database->connection != NULL && !keep_log && database->mark_file >= 0) {
        char reason[STORE_REASON_MAX];
        memcpy(reason, database->reason, sizeof reason);
        (void)database_checkpoint(database, false);
        memcpy(database->reason, reason, sizeof reason);
    }
    for (int i = 0; i < STATEMENT_COUNT; i++) {
        (void)library->finalize(database->statements[i]);
        database->statements[i] = NULL;
    }
    if (database->connection != NULL && keep_log)
        (void)library->db_config(database->connection, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    if (library != NULL)
        (void)library->close(database->connection);
    if (database->connection != NULL)
        mark_end(database, size_beside(database->path, "-wal") == 0);
    database->connection = NULL;
    database->wal_frames = 0;
    names_release(&database->names);
}

// -- writing ------------------------------------------------------------------------------------

enum disk_result database_begin(struct store_database *database) {
    assert(database->connection != NULL);
    database->names_added = false;
    database->witness_key = STORE_NO_WITNESS;
    return run(database, BEGIN);
}

void database_rollback(struct store_database *database) {
    if (database->connection == NULL)
        return;
    char reason[STORE_REASON_MAX];
    memcpy(reason, database->reason, sizeof reason);
    if (database->library->get_autocommit(database->connection) == 0)
        (void)run(database, ROLLBACK);
    if (database->names_added) {
        names_release(&database->names);
        (void)names_read(database, false);
    }
    database->names_added = false;
    memcpy(database->reason, reason, sizeof reason);
}

static enum disk_result name_id(struct store_database *database, enum storage_space space,
                                const char *text, uint32_t *id) {
    *id = names_find(&database->names, space, text);
    if (*id != 0)
        return DISK_OK;
    *id = names_free_id(&database->names);
    sqlite3_stmt *statement = database->statements[NAME_PUT];
    (void)database->library->bind_int64(statement, 1, *id);
    (void)database->library->bind_int64(statement, 2, space);
    (void)database->library->bind_text(statement, 3, text, -1, SQLITE_STATIC);
    enum disk_result result = run(database, NAME_PUT);
    if (result != DISK_OK)
        return result;
    database->names_added = true;
    names_set(&database->names, *id, space, text);
    // Nothing of an older owner of this id may come back under the new name.
    return run_keys(database, DELETE, store_key(*id, 0), store_key(*id, STORAGE_NUMBER_MAX));
}

enum disk_result database_put(struct store_database *database, enum storage_space space,
                              const char *name, uint64_t number, uint32_t crc, struct slice bytes) {
    assert(database->connection != NULL);
    assert(name != NULL);
    assert(number <= STORAGE_NUMBER_MAX);
    uint32_t id;
    enum disk_result result = name_id(database, space, name, &id);
    if (result != DISK_OK)
        return result;
    sqlite3_stmt *statement = database->statements[PUT];
    (void)database->library->bind_int64(statement, 1, store_key(id, number));
    (void)database->library->bind_int64(statement, 2, crc);
    (void)database->library->bind_blob64(statement, 3, bytes.size == 0 ? "" : bytes.data,
                                         bytes.size, SQLITE_STATIC);
    database->witness_key = store_key(id, number);
    database->witness_crc = crc;
    return run(database, PUT);
}

static enum disk_result delete_names(struct store_database *database, enum storage_space space,
                                     const char *prefix) {
    struct store_names *names = &database->names;
    enum disk_result result = DISK_OK;
    for (uint32_t id = 1; id < names->count && result == DISK_OK; id++)
        if (names->items[id].text != NULL && names->items[id].space == space &&
            strncmp(names->items[id].text, prefix, strlen(prefix)) == 0)
            result =
                run_keys(database, DELETE, store_key(id, 0), store_key(id, STORAGE_NUMBER_MAX));
    return result;
}

enum disk_result database_apply(struct store_database *database, const struct store_batch *batch) {
    size_t at = 0;
    const struct operation *operation;
    const char *name;
    struct slice bytes;
    enum disk_result result = DISK_OK;
    while (result == DISK_OK && (operation = batch_next(batch, &at, &name, &bytes)) != NULL) {
        enum storage_space space = (enum storage_space)operation->space;
        uint32_t id = 0;
        if (operation->kind == OPERATION_PUT)
            result = database_put(database, space, name, operation->first, operation->crc, bytes);
        else if (operation->kind == OPERATION_DELETE_NAMES)
            result = delete_names(database, space, name);
        else if ((id = names_find(&database->names, space, name)) != 0)
            result = run_keys(database, DELETE, store_key(id, operation->first),
                              store_key(id, operation->last));
    }
    return result;
}

enum disk_result database_commit(struct store_database *database, uint64_t max_size) {
    assert(database->connection != NULL);
    uint64_t before = database->used_bytes;
    enum disk_result result = used_refresh(database);
    if (result == DISK_OK && database->used_bytes > max_size && database->used_bytes > before) {
        snprintf(database->reason, sizeof database->reason,
                 "max_size is reached: %llu bytes would be used of %llu",
                 (unsigned long long)database->used_bytes, (unsigned long long)max_size);
        result = DISK_LIMIT;
    }
    database->log_grew = false;
    if (result == DISK_OK)
        result = run(database, COMMIT);
    if (result != DISK_OK)
        database->used_bytes = before;
    else if (database->log_grew)
        mark_synced(database, (uint32_t)database->wal_frames);
    return result;
}

enum disk_result database_checkpoint(struct store_database *database, bool whole) {
    assert(database->connection != NULL);
    int frames = 0, moved = 0;
    const struct store_library *library = database->library;
    enum disk_result result =
        result_of(database, library->wal_checkpoint_v2(database->connection, NULL,
                                                       SQLITE_CHECKPOINT_PASSIVE, &frames, &moved));
    if (result == DISK_OK && moved >= frames) {
        mark_moved(database, frames > 0 ? (uint32_t)frames : 0);
        database->wal_frames = 0;
    } else {
        mark_settle(database);
    }
    if (result == DISK_OK && whole)
        result =
            result_of(database, library->wal_checkpoint_v2(database->connection, NULL,
                                                           SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL));
    return result;
}

// -- reading ------------------------------------------------------------------------------------

enum disk_result database_seek(struct store_database *database, int64_t first, int64_t last) {
    assert(database->connection != NULL);
    assert(first <= last);
    sqlite3_stmt *statement = database->statements[SCAN];
    (void)database->library->reset(statement);
    (void)database->library->bind_int64(statement, 1, first);
    return result_of(database, database->library->bind_int64(statement, 2, last));
}

enum disk_result database_next(struct store_database *database, struct store_row *row,
                               bool *found) {
    const struct store_library *library = database->library;
    sqlite3_stmt *statement = database->statements[SCAN];
    int code = library->step(statement);
    *found = code == SQLITE_ROW;
    if (*found) {
        row->key = library->column_int64(statement, 0);
        row->crc = (uint32_t)library->column_int64(statement, 1);
        row->bytes.data = library->column_blob(statement, 2);
        row->bytes.size = (size_t)library->column_bytes(statement, 2);
    }
    return result_of(database, code);
}

void database_seek_end(struct store_database *database) {
    (void)database->library->reset(database->statements[SCAN]);
}

enum disk_result database_last(struct store_database *database, int64_t first, int64_t last,
                               int64_t *key) {
    sqlite3_stmt *statement = database->statements[LAST];
    (void)database->library->bind_int64(statement, 1, first);
    (void)database->library->bind_int64(statement, 2, last);
    *key = -1;
    return read_number(database, LAST, key);
}
