// SPDX-License-Identifier: Apache-2.0
// Whatever happened to a store's file and log, what is read back of them is what was written.
//
// A store with rows of many sizes in several spaces is made once, and its file and log taken as a
// crash would leave them. The input is changes to both: bytes, cuts, pages that stand elsewhere.
// What is recovered must be rows that were put; one input of eight is also opened as a store, which
// must work, and give the same.
#include "base/intern.h"
#include "base/log.h"
#include "extensions/file_storage/store.h"
#include "extensions/file_storage/store_parts.h"
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)

enum { ROWS = 24, NAMES = 3 };

static const char *const names[NAMES] = {"p/rows", "p/rows/more", "exporter"};
static const enum storage_space spaces[NAMES] = {STORAGE_STATE, STORAGE_STATE, STORAGE_QUEUE};

static char folder[64];
static struct slice database, journal;

static size_t size_of_row(int which, uint64_t number) {
    static const size_t sizes[] = {0, 7, 100, 300, 1000, 4096, 40, 12000};
    return sizes[(number + (uint64_t)which * 3) % 8];
}

static void row_fill(char *bytes, size_t size, int which, uint64_t number) {
    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)(i * 31 + number * 7 + (size_t)which);
}

// -- the store that is damaged --------------------------------------------------------------------

static struct storage *open_store(void) {
    struct store_options options = {.directory = folder,
                                    .create_directory = true,
                                    .max_size = 1 << 30,
                                    .site = "extension/file_storage"};
    struct storage *store;
    struct error error = {0};
    require(store_open(&store, &options, &error) == STATUS_OK);
    return store;
}

static void commit(struct storage *store, struct storage_batch *batch) {
    struct error error;
    require(storage_wait(store, storage_submit(batch), 60 * SECOND, &error) == STATUS_OK);
}

static void rows_put(struct storage *store, uint64_t first, uint64_t end) {
    static char bytes[32768];
    struct storage_batch *batch = storage_batch_new(store);
    for (uint64_t number = first; number < end; number++) {
        for (int which = 0; which < NAMES; which++) {
            size_t size = size_of_row(which, number);
            row_fill(bytes, size, which, number);
            storage_put(batch, spaces[which], names[which], number, (struct slice){bytes, size});
        }
    }
    commit(store, batch);
}

static void path_of(char path[128], const char *name) {
    snprintf(path, 128, "%s/%s", folder, name);
}

static struct slice file_read(const char *name) {
    char path[128];
    struct stat status;
    path_of(path, name);
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return (struct slice){NULL, 0};
    require(fstat(fileno(file), &status) == 0);
    char *bytes = memory_take((size_t)status.st_size);
    require(fread(bytes, 1, (size_t)status.st_size, file) == (size_t)status.st_size);
    fclose(file);
    return (struct slice){bytes, (size_t)status.st_size};
}

static void file_write(const char *name, struct slice bytes) {
    char path[128];
    path_of(path, name);
    FILE *file = fopen(path, "wb");
    require(file != NULL && fwrite(bytes.data, 1, bytes.size, file) == bytes.size);
    fclose(file);
}

static void folder_empty(void) {
    DIR *list = opendir(folder);
    for (struct dirent *entry; list != NULL && (entry = readdir(list)) != NULL;)
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(list), entry->d_name, 0);
    if (list != NULL)
        closedir(list);
}

static void folder_remove(void) {
    folder_empty();
    rmdir(folder);
}

int LLVMFuzzerInitialize(int *argument_count, char ***arguments) {
    (void)argument_count;
    (void)arguments;
    log_configure(LOG_ERROR, LOG_CONSOLE);
    snprintf(folder, sizeof folder, "%s/culprit-fuzz-%ld",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", (long)getpid());
    atexit(folder_remove);
    struct storage *store = open_store();
    rows_put(store, 0, ROWS / 2);
    struct storage_batch *batch = storage_batch_new(store);
    storage_delete(batch, STORAGE_STATE, names[0], 3, 9); // pages that are free
    commit(store, batch);
    store_close(store, 10 * SECOND);
    store = open_store();
    rows_put(store, ROWS / 2, ROWS);
    database = file_read("culprit.db");
    journal = file_read("culprit.db-wal");
    store_close(store, 10 * SECOND);
    require(database.size > 4096 && journal.size > 4096);
    return 0;
}

// -- what is read ---------------------------------------------------------------------------------

static bool require_row(void *context, const char *name, uint64_t number, struct slice bytes) {
    static char expected[32768];
    int which = 0;
    while (which < NAMES && strcmp(name, names[which]) != 0)
        which++;
    require(which < NAMES && number < ROWS && bytes.size == size_of_row(which, number));
    row_fill(expected, bytes.size, which, number);
    require(bytes.size == 0 || memcmp(expected, bytes.data, bytes.size) == 0);
    ++*(uint64_t *)context;
    return true;
}

static bool require_recovered(void *context, enum storage_space space, const char *name,
                              uint64_t number, uint32_t crc, struct slice bytes) {
    require(store_crc(space, slice_of(name), number, bytes) == crc);
    return require_row(context, name, number, bytes);
}

static uint64_t recover(bool whole) {
    char path[128];
    struct recovery_totals totals;
    struct error error;
    uint64_t rows = 0, kept = 0;
    path_of(path, "culprit.db");
    if (recovery_rows(path, require_recovered, &rows, &totals, &error) != STATUS_OK)
        return 0;
    for (int space = 0; space < STORAGE_SPACE_COUNT; space++)
        kept += totals.kept[space];
    require(kept == rows);
    if (whole)
        require(rows == ROWS * NAMES - 7 && totals.lost_elsewhere == 0);
    return rows;
}

static void complain(void *context, const char *sentence) {
    (void)context;
    require(strlen(sentence) > 10);
}

static bool require_inspected(void *context, enum storage_space space, const char *name,
                              uint64_t number, struct slice bytes) {
    require(space < STORAGE_SPACE_COUNT);
    return require_row(context, name, number, bytes);
}

// What `culprit store check` and `dump` show.
static void inspect(bool whole) {
    struct error error = {0};
    uint64_t rows = 0;
    enum status status = store_inspect(folder, require_inspected, complain, &rows, &error);
    require(status == STATUS_OK || strlen(error.message) > 10);
    if (whole)
        require(status == STATUS_OK && rows == ROWS * NAMES - 7);
}

static void open_and_read(void) {
    struct storage *store = open_store();
    struct error error;
    uint64_t rows = 0;
    for (int space = 0; space < STORAGE_SPACE_COUNT; space++)
        require(storage_scan(store, (enum storage_space)space, NULL, 0, UINT64_MAX, require_row,
                             &rows, &error) == STATUS_OK);
    require(rows <= ROWS * NAMES);
    // It takes new ones.
    rows_put(store, 0, 2);
    store_close(store, 10 * SECOND);
}

// -- damage ---------------------------------------------------------------------------------------

enum change { CHANGE_BYTES, CHANGE_CUT, CHANGE_PAGE, CHANGE_ZERO, CHANGE_COUNT };

static void change(struct fuzz_input *input, char *bytes, size_t *size) {
    uint8_t what = fuzz_byte(input);
    size_t at = fuzz_number(input, 3), count = 1 + fuzz_byte(input) % 16;
    if (*size == 0)
        return;
    at %= *size;
    if (count > *size - at)
        count = *size - at;
    switch ((enum change)(what / 2 % CHANGE_COUNT)) {
    case CHANGE_BYTES:
        for (size_t i = 0; i < count; i++)
            bytes[at + i] = (char)fuzz_byte(input);
        break;
    case CHANGE_CUT:
        if (what >= 0xc0)
            *size = at;
        break;
    case CHANGE_PAGE: {
        size_t pages = *size / STORE_PAGE_SIZE;
        if (pages > 0)
            memmove(bytes + at % pages * STORE_PAGE_SIZE,
                    bytes + count * 7 % pages * STORE_PAGE_SIZE, STORE_PAGE_SIZE);
        break;
    }
    case CHANGE_ZERO:
        memset(bytes + at, 0, count * 256 < *size - at ? count * 256 : *size - at);
        break;
    case CHANGE_COUNT:
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct fuzz_input input = {(const char *)data, size};
    struct slice file = fuzz_block(database), log = fuzz_block(journal);
    bool opens = fuzz_byte(&input) % 8 == 7, whole = input.left == 0;
    while (input.left > 0) {
        bool is_log = (uint8_t)*input.at % 2 == 1;
        struct slice *one = is_log ? &log : &file;
        change(&input, (char *)(uintptr_t)one->data, &one->size);
    }
    folder_empty();
    file_write("culprit.db", file);
    if (log.size > 0)
        file_write("culprit.db-wal", log);
    (void)recover(whole);
    if (opens) {
        inspect(whole);
        open_and_read();
    }
    fuzz_block_give(file);
    fuzz_block_give(log);
    return 0;
}
