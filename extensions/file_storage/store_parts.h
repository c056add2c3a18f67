// SPDX-License-Identifier: Apache-2.0
// What the files of the store (store.h) share among themselves.
//
// On disk: name(id, space, text), with an index that is also its second copy, and blob(key, crc,
// bytes), whose key is the name's id above 47 bits of the number, so that blobs lie in the order in
// which they are scanned and a put touches one tree.
#pragma once

#include "base/file_identity.h"
#include "base/thread.h"
#include "extensions/file_storage/store_library.h"
#include "pipeline/component/storage.h"

#include <assert.h>
#include <stdatomic.h>

// The whole schema, as its table has it.
#define STORE_TABLE_NAME                                                                           \
    "CREATE TABLE name(id INTEGER PRIMARY KEY, space INTEGER NOT NULL, text TEXT NOT NULL)"
#define STORE_INDEX_NAME "CREATE UNIQUE INDEX name_key ON name(space, text)"
#define STORE_TABLE_BLOB                                                                           \
    "CREATE TABLE blob(key INTEGER PRIMARY KEY, crc INTEGER NOT NULL, bytes BLOB NOT NULL)"
// How many of them are there.
#define STORE_COUNT_TABLES                                                                         \
    "SELECT count(*) FROM sqlite_schema WHERE sql IN ('" STORE_TABLE_NAME "','" STORE_INDEX_NAME   \
    "','" STORE_TABLE_BLOB "')"

enum {
    STORE_PAGE_SIZE = 4096,
    STORE_APPLICATION_ID = 0x63756c70, // "culp", in the file's header
    STORE_VERSION = 1,
    STORE_TABLE_COUNT = 3, // with the index
    STORE_NAME_IDS = 65535,
    STORE_NUMBER_BITS = 47,
    STORE_REASON_MAX = 160,
};

// -- what stands beside the file: store_files.c --

enum { STORE_PATH_ROOM = 4400 };

// The path with this behind it ("-wal"; "": itself).
void path_beside(char name[STORE_PATH_ROOM], const char *path, const char *suffix);
// The directory it stands in; it has a slash.
void directory_of(const char *path, char directory[STORE_PATH_ROOM]);
// -1 and errno when it cannot be opened; made with mode 0640.
int open_beside(const char *path, const char *suffix, int flags);
uint64_t size_beside(const char *path, const char *suffix); // 0 when there is none
void unlink_beside(const char *path, const char *suffix);

// A file or directory; what cannot be synced stays as it is.
void sync_path(const char *path);
// The names in the directory that a file stands in.
void sync_directory_of(const char *path);

// -- names: store_names.c --
struct store_name {
    char *text; // NULL: the id is free
    uint32_t hash;
    enum storage_space space;
};

struct store_names {
    struct store_name *items; // by id; 0 is none
    uint32_t count;           // ids below this may be in use
    uint32_t capacity;
    uint32_t recent; // found last: puts of one name come in runs
};

uint32_t names_find(struct store_names *names, enum storage_space space,
                    const char *text); // 0: none
uint32_t names_free_id(const struct store_names *names);
void names_set(struct store_names *names, uint32_t id, enum storage_space space, const char *text);
void names_clear(struct store_names *names, uint32_t id);
void names_release(struct store_names *names);

static inline int64_t store_key(uint32_t name, uint64_t number) {
    return (int64_t)((uint64_t)name << STORE_NUMBER_BITS | number);
}
static inline uint64_t store_number(int64_t key) {
    return (uint64_t)key & STORAGE_NUMBER_MAX;
}
// Over space, name, number and bytes.
uint32_t store_crc(enum storage_space space, struct slice name, uint64_t number,
                   struct slice bytes);

// -- batches: store_batch.c --
enum operation_kind { OPERATION_PUT, OPERATION_DELETE, OPERATION_DELETE_NAMES };

// Stands in a batch's buffer, followed by the name with its zero, and the bytes.
struct operation {
    uint32_t kind;
    uint32_t space;
    uint64_t first, last; // PUT: its number is `first`
    uint32_t crc;
    uint32_t name_size;
    uint64_t byte_count;
};

struct store_batch {
    struct storage_batch base; // first
    struct store_batch *next;
    char *data;
    size_t size, capacity;
    uint64_t ticket;
    uint64_t submitted_ns;
    bool is_checkpoint;
};

// The operation at `*at`, which moves on; NULL at the end.
const struct operation *batch_next(const struct store_batch *batch, size_t *at, const char **name,
                                   struct slice *bytes);
void batch_free(struct store_batch *batch);

// -- how far the log was synced: store_mark.c --
#define STORE_MARK_SUFFIX "-mark"
#define STORE_NO_WITNESS  INT64_C(-1)

struct store_mark {
    unsigned char salts[8]; // of the log it speaks of
    uint32_t frames;        // of that log that were synced …
    uint32_t moved;         // … and, of those, how many are in the file, synced too
    int64_t witness_key;    // the row that was put last, STORE_NO_WITNESS when it was deleted since
    uint32_t witness_crc;
    uint32_t unused;
};

enum {
    STORE_LOG_HEADER = 32,
    STORE_FRAME_HEADER = 24, // the page's number and the file's size, salts, a sum
    STORE_FRAME = STORE_FRAME_HEADER + STORE_PAGE_SIZE,
};

// False and a mark that claims nothing when there is none, or none that is whole.
bool mark_read(const char *path, struct store_mark *mark);
// Of what a frame holds beside its salts and its own sum.
uint32_t mark_frame_sum(const unsigned char *frame);
// Those of the log's frames that the mark speaks of; 0 where none is known.
void mark_sums_read(const char *path, uint32_t *sums, uint32_t count);
struct store_database;
void mark_begin(struct store_database *database);
void mark_end(struct store_database *database, bool log_is_gone);
// The log is synced up to this frame.
void mark_synced(struct store_database *database, uint32_t frames);
// All frames of the log are in the file, and the file is synced.
void mark_moved(struct store_database *database, uint32_t frames);
// Makes it durable: before the log goes.
void mark_settle(struct store_database *database);

// -- the file: store_database.c --
enum disk_result {
    DISK_OK,
    DISK_FULL,    // no space on the disk
    DISK_LIMIT,   // max_size
    DISK_FAILED,  // anything else that may pass
    DISK_DAMAGED, // what is there is not what was written
};

enum { STATEMENT_COUNT = 10 };

struct store_database {
    const struct store_library *library;
    sqlite3 *connection; // NULL: closed
    sqlite3_stmt *statements[STATEMENT_COUNT];
    struct store_names names;
    const char *path;              // lives as long as it is open
    struct file_identity identity; // of the file that is open
    int wal_frames;                // in the log since it was begun anew
    bool log_grew;                 // by the transaction that was committed last
    bool keeps_mark;               // set before it is opened
    int mark_file, mark_log;       // -1: none
    bool salts_known;              // those of the mark are those of the log
    bool needs_witness;            // there is a mark and not its log: that row must be in the file
    struct store_mark mark;
    int64_t witness_key; // of the transaction that runs
    uint32_t witness_crc;
    uint64_t used_bytes; // pages that hold something
    bool untrusted;      // a sync failed: the log must be written out before it is added to
    bool names_added;    // by the transaction that runs
    char reason[STORE_REASON_MAX]; // of the last failure
};

// Opens or makes the file and looks it over; leaves it closed on failure.
enum disk_result database_open(struct store_database *database, const char *path);
// Leaves the log as it is when `keep_log`; else it goes into the file and away.
void database_close(struct store_database *database, bool keep_log);
enum disk_result database_begin(struct store_database *database);
enum disk_result database_apply(struct store_database *database, const struct store_batch *batch);
enum disk_result database_put(struct store_database *database, enum storage_space space,
                              const char *name, uint64_t number, uint32_t crc, struct slice bytes);
// Rolls back when it would hold more than `max_size` and more than before.
enum disk_result database_commit(struct store_database *database, uint64_t max_size);
void database_rollback(struct store_database *database);
// Moves the log into the file; `whole`: and makes it empty.
enum disk_result database_checkpoint(struct store_database *database, bool whole);

// Rows of [first, last] by key. `row` is good until the next call.
struct store_row {
    int64_t key;
    uint32_t crc;
    struct slice bytes;
};
enum disk_result database_seek(struct store_database *database, int64_t first, int64_t last);
enum disk_result database_next(struct store_database *database, struct store_row *row, bool *found);
void database_seek_end(struct store_database *database);
// The highest key of [first, last], -1 when there is none.
enum disk_result database_last(struct store_database *database, int64_t first, int64_t last,
                               int64_t *key);

// -- damage: store_recovery.c, store_rebuild.c --
struct recovery_totals {
    uint64_t kept[STORAGE_SPACE_COUNT];
    uint64_t lost[STORAGE_SPACE_COUNT]; // by the space their name says
    uint64_t lost_elsewhere;            // whose name is not known
    uint64_t bad_pages;                 // that should hold rows and do not, or are missing
};
// Visits every row whose checksum is right, without SQLite; false from `visit` ends it.
typedef bool recovery_visit(void *context, enum storage_space space, const char *name,
                            uint64_t number, uint32_t crc, struct slice bytes);
enum status recovery_rows(const char *path, recovery_visit *visit, void *context,
                          struct recovery_totals *totals, struct error *error) MUST_USE;

struct store;
// Puts what can be read of the store's file into a new one that takes its name; the store's
// database is open afterwards, or closed with a reason.
enum disk_result store_rebuild(struct store *store, const char *why);
// Before the first open: ends what a crash interrupted in store_rebuild.
void store_rebuild_resume(const struct store *store);

// -- the whole: store.c, store_writer.c --
enum { STORE_CALLBACKS_MAX = 8, IDLE_BATCHES = 8 };

struct store_callback {
    void (*committed)(void *context);
    void *context;
};

struct store {
    struct storage base; // first
    char *path;          // DIRECTORY/culprit.db
    char *site;
    uint64_t max_size;
    uint64_t pending_max;
    uint64_t interval_ns;
    int lock_file;
    struct store_callback callbacks[STORE_CALLBACKS_MAX];
    uint32_t callback_count;
    pthread_t thread;

    // Whoever uses the file holds this; taken before `lock` when both are.
    struct lock disk_lock;
    struct store_database database;

    uint64_t
        log_due_ns; // when the log goes into the file; 0: it is empty. The writer's thread only

    struct lock lock;
    pthread_cond_t work, done;
    struct store_batch *first, *last; // submitted, in order
    struct store_batch *idle;         // to be used again
    uint32_t idle_count;
    uint32_t queued_count;
    uint32_t group_count; // of the group before
    uint32_t waiters;
    uint64_t last_submit_ns;
    uint64_t submitted; // the highest ticket given out
    bool stopping;
    uint64_t stop_ns;     // when to give up
    uint64_t close_by_ns; // … at the latest; 0: as store_close says
    bool degraded;
    char reason[STORE_REASON_MAX];

    atomic_uint_fast64_t durable, pending_bytes, used_bytes;
    atomic_uint_fast64_t input_bytes; // of the pending ones: not of checkpoints
    atomic_uint_fast64_t commits, batches, failures, damaged_blobs, repairs;
};

static inline struct store *store_of(const struct storage *storage) {
    assert(storage->magic == STORAGE_MAGIC);
    return (struct store *)(uintptr_t)storage;
}

// The calls of a storage, by the files they stand in. store_batch.c:
struct storage_batch *store_batch_new(struct storage *storage);
void store_put(struct storage_batch *batch, enum storage_space space, const char *name,
               uint64_t number, struct slice bytes);
void store_delete(struct storage_batch *batch, enum storage_space space, const char *name,
                  uint64_t first, uint64_t last);
void store_delete_names(struct storage_batch *batch, enum storage_space space, const char *prefix);
uint64_t store_submit(struct storage_batch *batch, bool is_checkpoint);
// Puts a batch away that was written.
void store_batch_drop(struct store *store, struct store_batch *batch);
// store_scan.c:
enum status store_scan(struct storage *storage, enum storage_space space, const char *name,
                       uint64_t first, uint64_t last, storage_visit *visit, void *context,
                       struct error *error);
uint64_t store_last_number(struct storage *storage, enum storage_space space, const char *name);

void *store_writer(void *store);
void store_count_damaged(struct store *store, const char *name, uint64_t number);
