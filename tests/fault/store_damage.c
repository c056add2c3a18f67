// SPDX-License-Identifier: Apache-2.0
// Does a store open whatever one byte of it is, and lose only what stood there?
//
//     store_damage [STEP]      (every STEP-th byte: 1)
//
// A small store is made. Then, for each byte of its file: the byte is turned over, is zero, or the
// file ends there; and the same with its log and its mark, as a killed process leaves them. Each
// time the store must open by itself, hold no row that nobody put, of one bad byte of the file lose
// no more than stood on that page, of one of the log or the mark nothing, and say so when the log
// is damaged. tests/extensions/file_storage/test_store_damage.c does the same to larger stores here
// and there.
#include "base/log.h"
#include "base/memory.h"
#include "extensions/file_storage/store.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)

enum { ROWS = 240, ROW_SIZE = 100, FILE_MAX = 1 << 20, PAGE_ROWS = 40 };

static char folder[64];
static struct error problem;

struct image {
    unsigned char bytes[FILE_MAX];
    size_t size;
};
static struct image file, log_file, mark_file;

_Noreturn static void failed(const char *what, const char *where, size_t at) {
    fprintf(stderr, "FAILED: %s: %s, byte %zu (%s)\n", what, where, at, problem.message);
    exit(1);
}

static void path_of(char path[128], const char *name) {
    snprintf(path, 128, "%s/%s", folder, name);
}

static void image_read(const char *name, struct image *image) {
    char path[128];
    path_of(path, name);
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = descriptor < 0 ? -1 : read(descriptor, image->bytes, sizeof image->bytes);
    if (size < 0)
        failed("it cannot be read", name, 0);
    image->size = (size_t)size;
    close(descriptor);
}

static void image_write(const char *name, const struct image *image, size_t size) {
    char path[128];
    path_of(path, name);
    int descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
    if (descriptor < 0 || write(descriptor, image->bytes, size) != (ssize_t)size)
        failed("it cannot be written", name, 0);
    close(descriptor);
}

static void folder_empty(void) {
    char command[128];
    snprintf(command, sizeof command, "rm -f %s/*", folder);
    if (system(command) != 0)
        failed("it cannot be emptied", folder, 0);
}

// The usual files, without a shell: each state is made some hundred times a second.
static void folder_reset(bool with_log) {
    static const char *const names[] = {"culprit.db", "culprit.db-wal", "culprit.db-shm",
                                        "culprit.db-mark"};
    static unsigned turns;
    char path[128];
    if (turns++ % 64 == 0)
        folder_empty();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        path_of(path, names[i]);
        (void)unlink(path);
    }
    image_write("culprit.db", &file, file.size);
    if (!with_log)
        return;
    image_write("culprit.db-wal", &log_file, log_file.size);
    image_write("culprit.db-mark", &mark_file, mark_file.size);
}

static void row_fill(char row[ROW_SIZE], uint64_t number) {
    for (size_t i = 0; i < ROW_SIZE; i++)
        row[i] = (char)(number * 37 + i * 11);
}

static struct storage *opened(const char *where, size_t at) {
    struct storage *store = NULL;
    struct store_options options = {.directory = folder,
                                    .max_size = 64 << 20,
                                    .commit_interval_ns = 1000,
                                    .site = "extension/file_storage"};
    if (store_open(&store, &options, &problem) != STATUS_OK)
        failed("it does not open", where, at);
    return store;
}

static void put_rows(struct storage *store, uint64_t first, uint64_t count) {
    char row[ROW_SIZE];
    struct storage_batch *batch = storage_batch_new(store);
    for (uint64_t i = first; i < first + count; i++) {
        row_fill(row, i);
        storage_put(batch, i % 2 == 0 ? STORAGE_STATE : STORAGE_JOURNAL, "rows", i,
                    (struct slice){row, ROW_SIZE});
    }
    if (storage_wait(store, storage_submit(batch), 60 * SECOND, &problem) != STATUS_OK)
        failed("it is not written", "making it", 0);
}

static bool count_row(void *context, const char *name, uint64_t number, struct slice bytes) {
    char row[ROW_SIZE];
    row_fill(row, number);
    if (strcmp(name, "rows") != 0 || number >= ROWS || bytes.size != ROW_SIZE ||
        memcmp(bytes.data, row, ROW_SIZE) != 0)
        failed("a row that nobody put", name, number);
    ++*(uint64_t *)context;
    return true;
}

static uint64_t repairs;

static uint64_t rows_there(const char *where, size_t at) {
    struct storage *store = opened(where, at);
    uint64_t count = 0;
    for (int space = 0; space < STORAGE_SPACE_COUNT; space++)
        if (storage_scan(store, (enum storage_space)space, NULL, 0, UINT64_MAX, count_row, &count,
                         &problem) != STATUS_OK)
            failed("it cannot be scanned", where, at);
    struct storage_statistics found;
    storage_statistics(store, &found);
    repairs = found.repairs;
    store_close(store, 10 * SECOND);
    return count;
}

static void make(void) {
    struct storage *store = opened("making it", 0);
    put_rows(store, 0, ROWS / 2);
    store_close(store, 10 * SECOND);
    image_read("culprit.db", &file);
    store = opened("making it", 0);
    put_rows(store, ROWS / 2, ROWS / 2);
    image_read("culprit.db-wal", &log_file);
    image_read("culprit.db-mark", &mark_file);
    store_close(store, 10 * SECOND);
}

static struct { uint64_t states; } figures;

static void judge(const char *where, size_t at, uint64_t least) {
    uint64_t count = rows_there(where, at);
    if (count < least || count > ROWS)
        failed("too many rows are lost", where, at);
    figures.states++;
}

static void damage_file(size_t step) {
    for (size_t at = 0; at < file.size; at += step) {
        unsigned char was = file.bytes[at];
        for (int how = 0; how < 2; how++) {
            file.bytes[at] = how == 0 ? (unsigned char)~was : 0;
            folder_reset(false);
            file.bytes[at] = was;
            judge(how == 0 ? "the file, turned over" : "the file, zero", at, ROWS / 2 - PAGE_ROWS);
        }
        folder_reset(false);
        image_write("culprit.db", &file, at);
        judge("the file, cut", at, 0);
    }
}

// What stands in the file stays, whatever is in the log; of one bad byte all stays.
static void damage_log(size_t step) {
    for (size_t at = 0; at < log_file.size; at += step) {
        unsigned char was = log_file.bytes[at];
        for (int how = 0; how < 2; how++) {
            log_file.bytes[at] = how == 0 ? (unsigned char)~was : 0;
            bool changed = log_file.bytes[at] != was;
            folder_reset(true);
            log_file.bytes[at] = was;
            judge("the log", at, ROWS);
            if (changed != (repairs == 1))
                failed("damage is not told, or none is", "the log", at);
        }
        folder_reset(true);
        image_write("culprit.db-wal", &log_file, at);
        judge("the log, cut", at, ROWS / 2);
        if (repairs != 1)
            failed("damage is not told", "the log, cut", at);
    }
}

static void damage_mark(size_t step) {
    for (size_t at = 0; at < mark_file.size; at += step) {
        mark_file.bytes[at] = (unsigned char)~mark_file.bytes[at];
        folder_reset(true);
        mark_file.bytes[at] = (unsigned char)~mark_file.bytes[at];
        judge("the mark", at, ROWS);
        folder_reset(true);
        image_write("culprit.db-mark", &mark_file, at);
        judge("the mark, cut", at, ROWS);
        if (repairs != 0)
            failed("damage is told and there is none", "the mark", at);
    }
}

int main(int count, char **arguments) {
    size_t step = count > 1 ? strtoull(arguments[1], NULL, 10) : 1;
    if (step == 0)
        return 64;
    log_configure((enum log_level)(LOG_ERROR + 1), LOG_CONSOLE);
    snprintf(folder, sizeof folder, "%s/culprit-damage-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (mkdtemp(folder) == NULL)
        return 70;
    make();
    folder_reset(true);
    if (rows_there("whole", 0) != ROWS)
        failed("rows are missing", "whole", 0);
    damage_file(step);
    damage_log(step);
    damage_mark(step);
    folder_empty();
    rmdir(folder);
    printf("%llu damaged stores of %zu and %zu bytes, all opened\n",
           (unsigned long long)figures.states, file.size, log_file.size);
    return 0;
}
