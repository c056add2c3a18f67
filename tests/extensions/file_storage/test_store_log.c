// SPDX-License-Identifier: Apache-2.0
// What was acknowledged and stands only in the log: one bad byte of it loses nothing, what is lost
// is told, and what was never acknowledged is not called lost.
#include "tests/extensions/file_storage/store_fixture.h"

#include <fcntl.h>

// Each in a commit of its own, as 40 requests one after the other.
enum {
    ROWS = 40,
    IN_FILE = 20,
    ROW_SIZE = 700,
    HEADER = 32,
    FRAME = 24 + 4096,
    FILE_MAX = 1 << 20
};

static const char *const FILES[] = {"culprit.db", "culprit.db-wal", "culprit.db-mark"};
enum { DATABASE, LOG, MARK, FILE_COUNT };

static struct image {
    unsigned char bytes[FILE_MAX];
    size_t size;
} images[FILE_COUNT];

static void image_read(int which) {
    int file = open(path_of(FILES[which]), O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(file, 0);
    ssize_t size = read(file, images[which].bytes, FILE_MAX);
    ck_assert_int_ge(size, 0);
    images[which].size = (size_t)size;
    close(file);
}

static void file_write(const char *name, const void *bytes, size_t size) {
    int file = open(path_of(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(write(file, bytes, size), (ssize_t)size);
    close(file);
}

static void row_put(uint64_t number) {
    char bytes[ROW_SIZE];
    struct storage_batch *batch = storage_batch_new(store);
    fill(bytes, sizeof bytes, number);
    storage_put(batch, STORAGE_JOURNAL, "http", number, (struct slice){bytes, sizeof bytes});
    ck_assert_int_eq(storage_wait(store, storage_submit(batch), 60 * SECOND, &error), STATUS_OK);
}

// The files as a kill leaves them.
static void setup(void) {
    folder_make_silent();
    open_store();
    for (uint64_t i = 0; i < IN_FILE; i++)
        row_put(i);
    close_store(); // which moves them
    open_store();
    for (uint64_t i = IN_FILE; i < ROWS; i++)
        row_put(i);
    for (int i = 0; i < FILE_COUNT; i++)
        image_read(i);
    close_store();
    ck_assert_uint_gt(images[LOG].size, HEADER + (ROWS - IN_FILE) * FRAME);
}

static void teardown(void) {
    folder_remove();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static void folder_reset(void) {
    char command[200];
    snprintf(command, sizeof command, "rm -f '%s'/*", folder);
    ck_assert_int_eq(system(command), 0);
    for (int i = 0; i < FILE_COUNT; i++)
        file_write(FILES[i], images[i].bytes, images[i].size);
}

static bool count_row(void *context, const char *name, uint64_t number, struct slice bytes) {
    char expected[ROW_SIZE];
    ck_assert_str_eq(name, "http");
    ck_assert_uint_eq(bytes.size, ROW_SIZE);
    fill(expected, sizeof expected, number);
    ck_assert_int_eq(memcmp(bytes.data, expected, sizeof expected), 0);
    ++*(uint32_t *)context;
    return true;
}

static struct storage_statistics figures;

// Opens it; how many rows are there.
static uint32_t rows_there(void) {
    uint32_t count = 0;
    open_store();
    ck_assert_int_eq(
        storage_scan(store, STORAGE_JOURNAL, NULL, 0, UINT64_MAX, count_row, &count, &error),
        STATUS_OK);
    storage_statistics(store, &figures);
    close_store();
    return count;
}

static char complaints[4096];

static void keep_complaint(void *context, const char *sentence) {
    (void)context;
    size_t size = strlen(complaints);
    snprintf(complaints + size, sizeof complaints - size, "%s\n", sentence);
}

static bool skip_row(void *context, enum storage_space space, const char *name, uint64_t number,
                     struct slice bytes) {
    (void)context, (void)space, (void)name, (void)number, (void)bytes;
    return true;
}

static const char *inspected(void) {
    complaints[0] = '\0';
    ck_assert_int_eq(store_inspect(folder, skip_row, keep_complaint, NULL, &error), STATUS_OK);
    return complaints;
}

START_TEST(a_whole_log_is_not_repaired) {
    folder_reset();
    ck_assert_str_eq(inspected(), "");
    ck_assert_uint_eq(rows_there(), ROWS);
    ck_assert_uint_eq(figures.repairs, 0);
}
END_TEST

// Every kind of place: the log's header, a frame's page number, size, salts, sum, and its page.
START_TEST(one_bad_byte_of_the_log_loses_nothing) {
    size_t frames = (images[LOG].size - HEADER) / FRAME, places[4096], count = 0;
    for (size_t at = 0; at < HEADER; at++)
        places[count++] = at;
    for (size_t frame = 0; frame < frames; frame += 1 + frames / 5)
        for (size_t at = 0; at < FRAME; at += at < 24 ? 1 : 397)
            places[count++] = HEADER + frame * FRAME + at;
    for (size_t at = 0; at < FRAME; at += at < 24 ? 1 : 97) // what was acknowledged last
        places[count++] = HEADER + (frames - 1) * FRAME + at;
    for (size_t i = 0; i < count; i++) {
        images[LOG].bytes[places[i]] ^= 0x5a;
        folder_reset();
        ck_assert_msg(inspected()[0] != '\0', "byte %zu is not told", places[i]);
        ck_assert_msg(rows_there() == ROWS, "byte %zu", places[i]);
        ck_assert_msg(figures.repairs == 1, "byte %zu: %u repairs", places[i],
                      (unsigned)figures.repairs);
        ck_assert_uint_eq(figures.damaged_blobs, 0);
        images[LOG].bytes[places[i]] ^= 0x5a;
        ck_assert_str_eq(inspected(), ""); // what was made of it is whole
    }
}
END_TEST

START_TEST(a_bad_sector_loses_what_stood_in_it) {
    size_t frames = (images[LOG].size - HEADER) / FRAME;
    for (size_t at = 0; at + 512 <= images[LOG].size; at += 512 * (1 + frames / 16)) {
        unsigned char was[512];
        memcpy(was, images[LOG].bytes + at, sizeof was);
        for (size_t i = 0; i < sizeof was; i++)
            images[LOG].bytes[at + i] = (unsigned char)~was[i];
        folder_reset();
        uint32_t there = rows_there();
        ck_assert_msg(figures.repairs == 1, "byte %zu", at);
        ck_assert_msg(there + 6 >= ROWS, "byte %zu: %u rows", at, there); // 5 rows a page
        memcpy(images[LOG].bytes + at, was, sizeof was);
    }
}
END_TEST

// What ends before what was acknowledged is told, wherever it ends, or when it is gone.
START_TEST(a_log_that_is_cut_is_told) {
    for (size_t size = 0; size < images[LOG].size; size += 9973) {
        folder_reset();
        file_write("culprit.db-wal", images[LOG].bytes, size);
        ck_assert_msg(inspected()[0] != '\0', "%zu bytes: not told", size);
        uint32_t there = rows_there();
        ck_assert_uint_lt(there, ROWS);
        ck_assert_uint_ge(there, IN_FILE);
        ck_assert_msg(figures.repairs == 1, "%zu bytes: %u repairs", size,
                      (unsigned)figures.repairs);
    }
    folder_reset();
    unlink(path_of("culprit.db-wal"));
    ck_assert_ptr_nonnull(strstr(inspected(), "its log is lost"));
    ck_assert_uint_eq(rows_there(), IN_FILE);
    ck_assert_uint_eq(figures.repairs, 1);
    ck_assert_str_eq(inspected(), "");
}
END_TEST

// A commit that the power cut short was not acknowledged: the mark does not speak of it.
START_TEST(a_torn_end_is_no_loss) {
    static unsigned char more[3 * FRAME];
    folder_reset();
    open_store();
    row_put(ROWS);
    image_read(LOG);
    close_store();
    for (size_t size = 1; size < sizeof more; size += 777) { // the old mark, another end
        folder_reset();
        for (size_t i = 0; i < size; i++)
            more[i] = images[LOG].bytes[images[LOG].size - FRAME + i % FRAME] ^ (i % 3 == 0);
        int file = open(path_of("culprit.db-wal"), O_WRONLY | O_APPEND | O_CLOEXEC);
        ck_assert_int_eq(write(file, more, size), (ssize_t)size);
        close(file);
        ck_assert_str_eq(inspected(), "");
        ck_assert_uint_ge(rows_there(), ROWS);
        ck_assert_uint_eq(figures.repairs, 0);
    }
}
END_TEST

// Another program moved the log into the file, as sqlite3 does when it opens it.
START_TEST(a_log_that_was_moved_is_no_loss) {
    folder_reset();
    unlink(path_of("culprit.db-mark"));
    ck_assert_uint_eq(rows_there(), ROWS); // moves it, and takes it away
    ck_assert_int_ne(access(path_of("culprit.db-wal"), F_OK), 0);
    file_write("culprit.db-mark", images[MARK].bytes, images[MARK].size);
    ck_assert_str_eq(inspected(), "");
    ck_assert_uint_eq(rows_there(), ROWS);
    ck_assert_uint_eq(figures.repairs, 0);
}
END_TEST

// An end in order leaves no mark; a damaged one claims nothing.
START_TEST(marks_come_and_go) {
    folder_reset();
    ck_assert_uint_eq(rows_there(), ROWS);
    ck_assert_int_ne(access(path_of("culprit.db-mark"), F_OK), 0);
    for (size_t at = 0; at < images[MARK].size; at++) {
        images[MARK].bytes[at] ^= 0x11;
        folder_reset();
        images[MARK].bytes[at] ^= 0x11;
        ck_assert_str_eq(inspected(), "");
        ck_assert_uint_eq(rows_there(), ROWS);
        ck_assert_uint_eq(figures.repairs, 0);
    }
    folder_reset();
    unlink(path_of("culprit.db"));
    unlink(path_of("culprit.db-wal"));
    ck_assert_uint_eq(rows_there(), 0);
    ck_assert_uint_eq(figures.repairs, 1);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("store_log");
    TCase *cases = tcase_create("log");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, a_whole_log_is_not_repaired);
    tcase_add_test(cases, one_bad_byte_of_the_log_loses_nothing);
    tcase_add_test(cases, a_bad_sector_loses_what_stood_in_it);
    tcase_add_test(cases, a_log_that_is_cut_is_told);
    tcase_add_test(cases, a_torn_end_is_no_loss);
    tcase_add_test(cases, a_log_that_was_moved_is_no_loss);
    tcase_add_test(cases, marks_come_and_go);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
