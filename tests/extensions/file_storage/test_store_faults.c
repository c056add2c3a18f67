// SPDX-License-Identifier: Apache-2.0
// Killed processes, full disks and syncs that fail: what was said to be durable is there, each
// batch is whole, and writing goes on by itself.
#include "extensions/file_storage/store_library.h"
#include "tests/extensions/file_storage/store_fixture.h"
#include "tests/support/eventually.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

static void setup(void) {
    folder_make();
    log_configure((enum log_level)(LOG_ERROR + 1), LOG_CONSOLE);
    max_size = 64 << 20;
}

static void teardown(void) {
    folder_remove();
    log_flush();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

// -- killed -------------------------------------------------------------------------------------

enum { PARTS = 5 };

// Puts batches of PARTS blobs that belong together and says which are durable, until it is killed.
_Noreturn static void write_for_ever(int pipe_end, uint64_t first) {
    static char bytes[20000];
    open_store();
    for (uint64_t i = first;; i++) {
        struct storage_batch *batch = storage_batch_new(store);
        for (uint64_t part = 0; part < PARTS; part++) {
            size_t size = (i * 977 + part * 4001) % sizeof bytes;
            fill(bytes, size, i);
            storage_put(batch, STORAGE_JOURNAL, "j", i * PARTS + part, (struct slice){bytes, size});
        }
        if (i > 100)
            storage_delete(batch, STORAGE_JOURNAL, "j", 0, (i - 100) * PARTS - 1);
        uint64_t ticket = storage_submit(batch);
        if (i % 3 != 0)
            continue; // so that groups hold several
        if (storage_wait(store, ticket, 60 * SECOND, &error) != STATUS_OK ||
            write(pipe_end, &i, sizeof i) != sizeof i)
            _exit(1);
    }
}

struct seen {
    uint64_t next; // number that must come
    uint64_t count;
};

static bool check_part(void *context, const char *name, uint64_t number, struct slice bytes) {
    (void)name;
    static char expected[20000];
    struct seen *seen = context;
    if (seen->count++ > 0)
        ck_assert_uint_eq(number, seen->next);
    else
        ck_assert_uint_eq(number % PARTS, 0);
    seen->next = number + 1;
    uint64_t i = number / PARTS;
    size_t size = (i * 977 + number % PARTS * 4001) % sizeof expected;
    ck_assert_uint_eq(bytes.size, size);
    fill(expected, size, i);
    ck_assert_int_eq(size == 0 ? 0 : memcmp(bytes.data, expected, size), 0);
    return true;
}

START_TEST(killed_at_any_moment) {
    uint64_t first = 1, reported = 0;
    srand(7);
    for (int round = 0; round < 25; round++) {
        int ends[2];
        ck_assert_int_eq(pipe(ends), 0);
        pid_t child = fork();
        if (child == 0) {
            close(ends[0]);
            write_for_ever(ends[1], first);
        }
        close(ends[1]);
        // After this many reports, and a little.
        for (int reports = rand() % 12 + 1; reports > 0; reports--)
            ck_assert_int_eq(read(ends[0], &reported, sizeof reported), sizeof reported);
        usleep((useconds_t)(rand() % 3000));
        ck_assert_int_eq(kill(child, SIGKILL), 0);
        ck_assert_int_eq(waitpid(child, NULL, 0), child);
        while (read(ends[0], &reported, sizeof reported) == sizeof reported)
            continue;
        close(ends[0]);
        open_store();
        struct seen seen = {0};
        ck_assert_msg(storage_scan(store, STORAGE_JOURNAL, "j", 0, UINT64_MAX, check_part, &seen,
                                   &error) == STATUS_OK,
                      "%s", error.message);
        ck_assert_uint_eq(seen.next % PARTS, 0);
        ck_assert_uint_ge(seen.next / PARTS - 1, reported);
        struct storage_statistics figures;
        storage_statistics(store, &figures);
        ck_assert_uint_eq(figures.damaged_blobs, 0);
        first = seen.next / PARTS;
        close_store();
    }
}
END_TEST

// -- a disk that fails --------------------------------------------------------------------------
// The library's own way to the files, with failures when they are asked for.

static sqlite3_vfs *real;
static sqlite3_vfs broken_vfs;
static atomic_int broken_writes; // SQLITE_FULL, SQLITE_IOERR_WRITE, 0
static atomic_int broken_syncs;  // this many fail
static atomic_int sync_count;

struct broken_file {
    sqlite3_file base;
    sqlite3_file *file; // behind this
};

#define BEHIND(f) (((struct broken_file *)(f))->file)

static int b_close(sqlite3_file *f) {
    return BEHIND(f)->pMethods->xClose(BEHIND(f));
}
static int b_read(sqlite3_file *f, void *into, int size, sqlite3_int64 at) {
    return BEHIND(f)->pMethods->xRead(BEHIND(f), into, size, at);
}
static int b_write(sqlite3_file *f, const void *from, int size, sqlite3_int64 at) {
    int code = atomic_load(&broken_writes);
    return code != 0 ? code : BEHIND(f)->pMethods->xWrite(BEHIND(f), from, size, at);
}
static int b_truncate(sqlite3_file *f, sqlite3_int64 size) {
    return BEHIND(f)->pMethods->xTruncate(BEHIND(f), size);
}
static int b_sync(sqlite3_file *f, int flags) {
    atomic_fetch_add(&sync_count, 1);
    if (atomic_load(&broken_syncs) > 0) {
        atomic_fetch_sub(&broken_syncs, 1);
        return SQLITE_IOERR_FSYNC;
    }
    return BEHIND(f)->pMethods->xSync(BEHIND(f), flags);
}
static int b_size(sqlite3_file *f, sqlite3_int64 *size) {
    return BEHIND(f)->pMethods->xFileSize(BEHIND(f), size);
}
static int b_lock(sqlite3_file *f, int how) {
    return BEHIND(f)->pMethods->xLock(BEHIND(f), how);
}
static int b_unlock(sqlite3_file *f, int how) {
    return BEHIND(f)->pMethods->xUnlock(BEHIND(f), how);
}
static int b_check(sqlite3_file *f, int *out) {
    return BEHIND(f)->pMethods->xCheckReservedLock(BEHIND(f), out);
}
static int b_control(sqlite3_file *f, int what, void *argument) {
    return BEHIND(f)->pMethods->xFileControl(BEHIND(f), what, argument);
}
static int b_sector(sqlite3_file *f) {
    return BEHIND(f)->pMethods->xSectorSize(BEHIND(f));
}
static int b_traits(sqlite3_file *f) {
    return BEHIND(f)->pMethods->xDeviceCharacteristics(BEHIND(f));
}
static int b_shm_map(sqlite3_file *f, int page, int size, int extend, void volatile **at) {
    return BEHIND(f)->pMethods->xShmMap(BEHIND(f), page, size, extend, at);
}
static int b_shm_lock(sqlite3_file *f, int at, int count, int flags) {
    return BEHIND(f)->pMethods->xShmLock(BEHIND(f), at, count, flags);
}
static void b_shm_barrier(sqlite3_file *f) {
    BEHIND(f)->pMethods->xShmBarrier(BEHIND(f));
}
static int b_shm_unmap(sqlite3_file *f, int remove) {
    return BEHIND(f)->pMethods->xShmUnmap(BEHIND(f), remove);
}

static const sqlite3_io_methods broken_methods = {
    2,          b_close,       b_read,      b_write,   b_truncate, b_sync,   b_size,
    b_lock,     b_unlock,      b_check,     b_control, b_sector,   b_traits, b_shm_map,
    b_shm_lock, b_shm_barrier, b_shm_unmap, NULL,      NULL};

static int broken_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *out) {
    (void)vfs;
    struct broken_file *file = (struct broken_file *)f;
    file->file = (sqlite3_file *)(file + 1);
    int code = real->xOpen(real, name, file->file, flags, out);
    file->base.pMethods = file->file->pMethods == NULL ? NULL : &broken_methods;
    return code;
}

static void disk_install(void) {
    const struct store_library *library;
    ck_assert_int_eq(store_library_load(&library, &error), STATUS_OK);
    void *handle = dlopen("libsqlite3.so.0", RTLD_NOW);
    __typeof__(&sqlite3_vfs_find) find;
    __typeof__(&sqlite3_vfs_register) enter;
    *(void **)&find = dlsym(handle, "sqlite3_vfs_find");
    *(void **)&enter = dlsym(handle, "sqlite3_vfs_register");
    real = find(NULL);
    broken_vfs = *real;
    broken_vfs.zName = "broken";
    broken_vfs.szOsFile += (int)sizeof(struct broken_file);
    broken_vfs.xOpen = broken_open;
    ck_assert_int_eq(enter(&broken_vfs, 1), SQLITE_OK);
}

static uint64_t submit_text(uint64_t number, const char *text) {
    struct storage_batch *batch = storage_batch_new(store);
    storage_put(batch, STORAGE_STATE, "s", number, slice_of(text));
    return storage_submit(batch);
}

static atomic_int calls;
static void called(void *context) {
    (void)context;
    atomic_fetch_add(&calls, 1);
}

static void await_degraded(const char *reason) {
    struct storage_statistics figures = {0};
    EVENTUALLY((storage_statistics(store, &figures), figures.degraded));
    ck_assert_msg(strstr(figures.reason, reason) != NULL, "\"%s\"", figures.reason);
    ck_assert_uint_gt(figures.failures, 0);
}

static void await_recovered(uint64_t ticket) {
    ck_assert_msg(storage_wait(store, ticket, 60 * SECOND, &error) == STATUS_OK, "%s",
                  error.message);
    struct storage_statistics figures = {.degraded = true};
    EVENTUALLY((storage_statistics(store, &figures), !figures.degraded));
    ck_assert_str_eq(figures.reason, "");
    ck_assert_uint_eq(figures.pending_bytes, 0);
}

// Nothing is durable while it fails, all of it in order afterwards, without a restart.
START_TEST(writes_that_fail) {
    static const int codes[] = {SQLITE_FULL, SQLITE_IOERR_WRITE, SQLITE_READONLY};
    static const char *const reasons[] = {"full", "disk I/O error", "readonly"};
    disk_install();
    for (int i = 0; i < 3; i++) {
        open_store();
        storage_on_commit(store, called, NULL);
        put_text(STORAGE_STATE, "s", 1, "before");
        atomic_store(&calls, 0);
        atomic_store(&broken_writes, codes[i]);
        uint64_t ticket = submit_text(1, "first");
        ck_assert_int_eq(storage_wait(store, ticket, SECOND / 5, &error), STATUS_IO);
        await_degraded(reasons[i]);
        ck_assert_int_eq(storage_wait(store, ticket, SECOND / 100, &error), STATUS_IO);
        ck_assert_ptr_nonnull(strstr(error.message, reasons[i]));
        ck_assert_int_ge(atomic_load(&calls), 1);
        submit_text(2, "second");
        uint64_t last = submit_text(1, "third");
        ck_assert_uint_lt(storage_durable(store), ticket);
        // What is there can be read meanwhile, by name or all.
        const char *there = i == 0 ? "s/1=before;" : "s/1=before;s/2=second;";
        ck_assert_str_eq(rows_of(STORAGE_STATE, "s"), there);
        ck_assert_str_eq(rows_of(STORAGE_STATE, NULL), there);
        ck_assert_uint_eq(storage_last_number(store, STORAGE_STATE, "s"), i == 0 ? 1 : 2);
        atomic_store(&broken_writes, 0);
        await_recovered(last);
        ck_assert_str_eq(rows_of(STORAGE_STATE, "s"), "s/1=third;s/2=second;");
        close_store();
        open_store();
        ck_assert_str_eq(rows_of(STORAGE_STATE, "s"), "s/1=third;s/2=second;");
        close_store();
    }
}
END_TEST

// A commit whose sync failed is written again, and synced again, before it counts.
START_TEST(syncs_that_fail) {
    disk_install();
    for (int failing = 1; failing < 5; failing++) {
        open_store();
        put_text(STORAGE_STATE, "s", 1, "before");
        atomic_store(&broken_syncs, failing);
        uint64_t ticket = submit_text(1, "after");
        await_degraded("fsync");
        await_recovered(ticket);
        ck_assert_int_eq(atomic_load(&broken_syncs), 0);
        int before = atomic_load(&sync_count);
        put_text(STORAGE_STATE, "s", 2, "more");
        ck_assert_int_gt(atomic_load(&sync_count), before);
        ck_assert_str_eq(rows_of(STORAGE_STATE, "s"), "s/1=after;s/2=more;");
        close_store();
    }
}
END_TEST

START_TEST(close_gives_up_in_time) {
    disk_install();
    open_store();
    put_text(STORAGE_STATE, "s", 1, "before");
    atomic_store(&broken_writes, SQLITE_FULL);
    submit_text(1, "lost");
    await_degraded("full");
    store_close(store, SECOND / 10);
    atomic_store(&broken_writes, 0);
    open_store();
    ck_assert_str_eq(rows_of(STORAGE_STATE, "s"), "s/1=before;");
    close_store();
}
END_TEST

// What waits is bounded by store_full, at which receivers stop.
START_TEST(waiting_bytes_make_it_full) {
    disk_install();
    max_size = 16 << 20;
    static char bytes[1 << 20];
    open_store();
    put_text(STORAGE_STATE, "s", 1, "before");
    atomic_store(&broken_writes, SQLITE_FULL);
    int count = 0;
    uint64_t ticket = 0;
    for (; count < 100 && !storage_full(store); count++) {
        struct storage_batch *batch = storage_batch_new(store);
        storage_put(batch, STORAGE_STATE, "s", 2, (struct slice){bytes, sizeof bytes});
        ticket = storage_submit(batch);
    }
    ck_assert_int_eq(count, 4);
    atomic_store(&broken_writes, 0);
    await_recovered(ticket);
    ck_assert(!storage_full(store));
    close_store();
}
END_TEST

// A checkpoint of a job with many ranks may be larger than what may wait.
START_TEST(a_checkpoint_does_not_make_it_full) {
    disk_install();
    max_size = 16 << 20;
    static char bytes[5 << 20];
    open_store();
    put_text(STORAGE_STATE, "s", 1, "before");
    atomic_store(&broken_writes, SQLITE_FULL);
    struct storage_batch *batch = storage_batch_new(store);
    storage_put(batch, STORAGE_STATE, "s", 2, (struct slice){bytes, sizeof bytes});
    (void)storage_submit_checkpoint(batch);
    await_degraded("full");
    ck_assert(!storage_full(store));
    // Input beside it counts as ever.
    batch = storage_batch_new(store);
    storage_put(batch, STORAGE_JOURNAL, "j", 1, (struct slice){bytes, 4 << 20});
    uint64_t ticket = storage_submit(batch);
    ck_assert(storage_full(store));
    atomic_store(&broken_writes, 0);
    await_recovered(ticket);
    ck_assert(!storage_full(store));
    close_store();
}
END_TEST

// -- bounds -------------------------------------------------------------------------------------

static uint64_t put_megabytes(uint64_t first, uint64_t count) {
    static char bytes[1 << 20];
    uint64_t ticket = 0;
    for (uint64_t i = first; i < first + count; i++) {
        struct storage_batch *batch = storage_batch_new(store);
        storage_put(batch, STORAGE_QUEUE, "q", i, (struct slice){bytes, sizeof bytes});
        ticket = storage_submit(batch);
    }
    return ticket;
}

// At max_size it is full, not failed; a delete behind what has no room lets both in.
START_TEST(max_size_holds) {
    max_size = 16 << 20;
    open_store();
    ck_assert_int_eq(storage_wait(store, put_megabytes(0, 10), 60 * SECOND, &error), STATUS_OK);
    ck_assert(!storage_full(store));
    ck_assert_int_eq(storage_wait(store, put_megabytes(10, 5), 60 * SECOND, &error), STATUS_OK);
    ck_assert(storage_full(store));
    uint64_t ticket = put_megabytes(15, 3);
    await_degraded("max_size");
    ck_assert_uint_lt(storage_durable(store), ticket);
    struct storage_batch *batch = storage_batch_new(store);
    storage_delete(batch, STORAGE_QUEUE, "q", 0, 9);
    await_recovered(storage_submit(batch));
    ck_assert(!storage_full(store));
    ck_assert_uint_eq(storage_last_number(store, STORAGE_QUEUE, "q"), 17);
    // Freed pages are used again: the file stays as it is.
    close_store();
    struct stat before, after;
    stat(path_of("culprit.db"), &before);
    open_store();
    for (uint64_t i = 0; i < 20; i++) {
        uint64_t at = 18 + i * 4;
        put_megabytes(at, 4);
        batch = storage_batch_new(store);
        storage_delete(batch, STORAGE_QUEUE, "q", 0, at + 3);
        ck_assert_int_eq(storage_wait(store, storage_submit(batch), 60 * SECOND, &error),
                         STATUS_OK);
        struct storage_statistics figures;
        storage_statistics(store, &figures);
        ck_assert_uint_lt(figures.size_bytes, 2 * max_size + (4 << 20));
    }
    close_store();
    stat(path_of("culprit.db"), &after);
    ck_assert_int_le(after.st_size, before.st_size + (8 << 20));
}
END_TEST

// A real disk without space; root alone may make one.
START_TEST(full_disk) {
    if (mount("tmpfs", folder, "tmpfs", 0, "size=2m") != 0) {
        printf("full_disk: left out, a file system cannot be mounted here\n");
        return;
    }
    open_store();
    put_text(STORAGE_STATE, "s", 1, "before");
    uint64_t ticket = put_megabytes(0, 3);
    await_degraded("full");
    ck_assert_uint_lt(storage_durable(store), ticket);
    ck_assert_int_eq(mount("tmpfs", folder, "tmpfs", MS_REMOUNT, "size=64m"), 0);
    await_recovered(ticket);
    ck_assert_uint_eq(storage_last_number(store, STORAGE_QUEUE, "q"), 2);
    ck_assert_str_eq(rows_of(STORAGE_STATE, "s"), "s/1=before;");
    close_store();
    open_store();
    ck_assert_uint_eq(storage_last_number(store, STORAGE_QUEUE, "q"), 2);
    close_store();
    ck_assert_int_eq(umount(folder), 0);
}
END_TEST

// Files may not grow: what a quota looks like.
START_TEST(files_that_may_not_grow) {
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit was, limit;
    getrlimit(RLIMIT_FSIZE, &was);
    open_store();
    put_text(STORAGE_STATE, "s", 1, "before");
    limit = was;
    limit.rlim_cur = 300000;
    setrlimit(RLIMIT_FSIZE, &limit);
    uint64_t ticket = put_megabytes(0, 2);
    await_degraded("I/O");
    setrlimit(RLIMIT_FSIZE, &was);
    await_recovered(ticket);
    ck_assert_uint_eq(storage_last_number(store, STORAGE_QUEUE, "q"), 1);
    close_store();
}
END_TEST

int main(void) {
    Suite *suite = suite_create("store_faults");
    TCase *cases = tcase_create("store_faults");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, killed_at_any_moment);
    tcase_add_test(cases, writes_that_fail);
    tcase_add_test(cases, syncs_that_fail);
    tcase_add_test(cases, close_gives_up_in_time);
    tcase_add_test(cases, waiting_bytes_make_it_full);
    tcase_add_test(cases, a_checkpoint_does_not_make_it_full);
    tcase_add_test(cases, max_size_holds);
    tcase_add_test(cases, full_disk);
    tcase_add_test(cases, files_that_may_not_grow);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
