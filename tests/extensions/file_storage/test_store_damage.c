// SPDX-License-Identifier: Apache-2.0
// Stores that were cut, flipped, overwritten: they open, nothing wrong comes out of them, and a bad
// place loses what stands on it and no more.
#include "tests/extensions/file_storage/store_fixture.h"

#include <dirent.h>
#include <sys/wait.h>

// What every store here holds: pages of state on two names, small rows of a journal.
enum { PAGES = 45, LINES = 800, ROWS = 2 * PAGES + LINES, LINES_A_PAGE = 80 };
static const char *const NAMES[] = {"verdicts/rank_group/rows", "verdicts/align/ranks", "http"};

static size_t size_of_row(int name, uint64_t number) {
    return name == 2 ? 20 + number % 40 : number == 7 ? 30000 : 4096;
}

static uint32_t random_state;
static uint32_t any(uint32_t below) {
    random_state = random_state * 1664525 + 1013904223;
    return (uint32_t)(((uint64_t)random_state * below) >> 32);
}

static void rows_put(void) {
    static char bytes[30000];
    struct storage_batch *batch = storage_batch_new(store);
    for (int name = 0; name < 3; name++) {
        for (uint64_t i = 0; i < (name == 2 ? LINES : PAGES); i++) {
            size_t size = size_of_row(name, i);
            fill(bytes, size, i * 4 + (uint64_t)name);
            storage_put(batch, name == 2 ? STORAGE_JOURNAL : STORAGE_STATE, NAMES[name], i,
                        (struct slice){bytes, size});
        }
    }
    // What was deleted must not come back.
    for (uint64_t i = 0; i < 120; i++)
        storage_put(batch, STORAGE_QUEUE, "gone", i, (struct slice){bytes, 3000});
    ck_assert_int_eq(storage_wait(store, storage_submit(batch), 60 * SECOND, &error), STATUS_OK);
    batch = storage_batch_new(store);
    storage_delete_names(batch, STORAGE_QUEUE, "gone");
    ck_assert_int_eq(storage_wait(store, storage_submit(batch), 60 * SECOND, &error), STATUS_OK);
}

// -- files --------------------------------------------------------------------------------------

struct bytes {
    unsigned char *data;
    size_t size;
};

static struct bytes file_read(const char *name) {
    struct bytes bytes = {0};
    FILE *file = fopen(path_of(name), "rb");
    if (file == NULL)
        return bytes;
    struct stat about;
    fstat(fileno(file), &about);
    bytes.size = (size_t)about.st_size;
    bytes.data = malloc(bytes.size + 1);
    ck_assert_uint_eq(fread(bytes.data, 1, bytes.size, file), bytes.size);
    fclose(file);
    return bytes;
}

static void file_write(const char *name, const unsigned char *data, size_t size) {
    FILE *file = fopen(path_of(name), "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(data, 1, size, file), size);
    fclose(file);
}

static struct bytes database, journal; // of a whole store

static void folder_empty(void) {
    char command[200];
    snprintf(command, sizeof command, "rm -f '%s'/*", folder);
    ck_assert_int_eq(system(command), 0);
}

static void write_both(void) {
    folder_empty();
    file_write("culprit.db", database.data, database.size);
    if (journal.size > 0)
        file_write("culprit.db-wal", journal.data, journal.size);
}

static int damaged_files(void) {
    int count = 0;
    DIR *list = opendir(folder);
    for (struct dirent *entry; (entry = readdir(list)) != NULL;)
        count += strstr(entry->d_name, "culprit.db.damaged-") == entry->d_name &&
                 entry->d_name[strlen(entry->d_name) - 1] == 'Z';
    closedir(list);
    return count;
}

// -- what comes out -----------------------------------------------------------------------------

static bool check_row(void *context, const char *name, uint64_t number, struct slice bytes) {
    static char expected[30000];
    int which = 0;
    while (which < 3 && strcmp(name, NAMES[which]) != 0)
        which++;
    ck_assert_int_lt(which, 3);
    ck_assert_uint_lt(number, which == 2 ? LINES : PAGES);
    size_t size = size_of_row(which, number);
    ck_assert_uint_eq(bytes.size, size);
    fill(expected, size, number * 4 + (uint64_t)which);
    ck_assert_int_eq(memcmp(expected, bytes.data, size), 0);
    ++*(uint32_t *)context;
    return true;
}

static uint32_t rows_read(void) {
    uint32_t count = 0;
    for (int space = 0; space < STORAGE_SPACE_COUNT; space++)
        ck_assert_msg(storage_scan(store, (enum storage_space)space, NULL, 0, UINT64_MAX, check_row,
                                   &count, &error) == STATUS_OK,
                      "%s", error.message);
    return count;
}

// Opens, reads, writes, and opens again; how many rows were there.
static uint32_t opens(void) {
    open_store();
    uint32_t count = rows_read();
    put_text(STORAGE_META, "m", 1, "written");
    struct storage_batch *batch = storage_batch_new(store);
    storage_delete_names(batch, STORAGE_META, "");
    ck_assert_int_eq(storage_wait(store, storage_submit(batch), 60 * SECOND, &error), STATUS_OK);
    close_store();
    open_store();
    uint32_t again = rows_read();
    close_store();
    ck_assert_uint_eq(count, again);
    return count;
}

static void setup_any(bool killed) {
    folder_make_silent();
    open_store();
    rows_put();
    if (killed) { // what stands in the log then is all there is of the second half
        struct storage_batch *batch = storage_batch_new(store);
        storage_put(batch, STORAGE_QUEUE, "q", 1, SLICE("x"));
        storage_delete_names(batch, STORAGE_QUEUE, "");
        ck_assert_int_eq(storage_wait(store, storage_submit(batch), 60 * SECOND, &error),
                         STATUS_OK);
        journal = file_read("culprit.db-wal");
        ck_assert_uint_gt(journal.size, 0);
    } else {
        close_store();
    }
    database = file_read("culprit.db");
    if (killed)
        close_store();
}

static void setup_closed(void) {
    setup_any(false);
}
static void setup_killed(void) {
    setup_any(true);
}

static void teardown(void) {
    free(database.data);
    free(journal.data);
    database = journal = (struct bytes){0};
    folder_remove();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

START_TEST(whole_stores_stay) {
    write_both();
    ck_assert_uint_eq(opens(), ROWS);
    ck_assert_int_eq(damaged_files(), 0);
}
END_TEST

// Each byte of the header, then bytes anywhere: one page is hit, or the pages of one blob.
START_TEST(flipped_bytes) {
    random_state = 1;
    uint32_t worst = ROWS;
    for (uint32_t i = 0; i < 300; i++) {
        write_both();
        size_t at = i < 116 ? i : any((uint32_t)database.size);
        unsigned char was = database.data[at];
        database.data[at] ^= (unsigned char)(1 + any(255));
        file_write("culprit.db", database.data, database.size);
        uint32_t count = opens();
        ck_assert_msg(count + LINES_A_PAGE >= ROWS, "byte %zu: %u of %u rows", at, count, ROWS);
        worst = count < worst ? count : worst;
        database.data[at] = was;
    }
    ck_assert_uint_lt(worst, ROWS);
}
END_TEST

// Every page in turn: the roots, the leaves, the free ones.
START_TEST(overwritten_pages) {
    static unsigned char was[4096];
    random_state = 2;
    for (size_t page = 0; page < database.size / 4096; page += page < 8 ? 1 : 1 + any(3)) {
        write_both();
        memcpy(was, database.data + page * 4096, 4096);
        for (size_t i = 0; i < 4096; i++)
            database.data[page * 4096 + i] = page % 2 == 0 ? 0 : (unsigned char)any(256);
        file_write("culprit.db", database.data, database.size);
        uint32_t count = opens();
        // Without page 1 nobody knows which pages are free, but the tree is there.
        ck_assert_msg(count + LINES_A_PAGE >= ROWS, "page %zu: %u of %u rows", page + 1, count,
                      ROWS);
        memcpy(database.data + page * 4096, was, 4096);
    }
}
END_TEST

START_TEST(cut_files) {
    random_state = 3;
    for (uint32_t i = 0; i < 80; i++) {
        write_both();
        size_t size = i < 20 ? i * 30 : any((uint32_t)database.size);
        file_write("culprit.db", database.data, size);
        uint32_t count = opens();
        ck_assert_uint_le(count, ROWS);
        // About as much as is there: free pages stand at the end.
        if (journal.size == 0 && size > 60000)
            ck_assert_uint_gt(count, 4);
    }
}
END_TEST

START_TEST(garbage) {
    static unsigned char noise[50000];
    random_state = 4;
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (unsigned char)any(256);
    static const size_t sizes[] = {1, 15, 16, 99, 100, 512, 4095, 4096, 4097, 50000};
    for (size_t i = 0; i < 10; i++) {
        folder_empty();
        file_write("culprit.db", noise, sizes[i]);
        ck_assert_uint_eq(opens(), 0);
        ck_assert_int_eq(damaged_files(), 1);
    }
    folder_empty();
    file_write("culprit.db", noise, 0);
    ck_assert_uint_eq(opens(), 0);
    folder_empty();
    file_write("culprit.db-wal", noise, sizeof noise);
    ck_assert_uint_eq(opens(), 0);
}
END_TEST

// The log as it is after a kill: a bad place ends it, what was moved into the file before is there.
START_TEST(damaged_logs) {
    random_state = 5;
    for (uint32_t i = 0; i < 90; i++) {
        write_both();
        size_t size = journal.size, at = any((uint32_t)journal.size);
        unsigned char was = journal.data[at];
        if (i % 3 == 0)
            size = at;
        else
            journal.data[at] ^= (unsigned char)(1 + any(255));
        file_write("culprit.db-wal", journal.data, size);
        uint32_t count = 0;
        open_store();
        for (int space = 0; space < STORAGE_SPACE_COUNT; space++)
            if (space != STORAGE_QUEUE)
                ck_assert_int_eq(storage_scan(store, (enum storage_space)space, NULL, 0, UINT64_MAX,
                                              check_row, &count, &error),
                                 STATUS_OK);
        put_text(STORAGE_META, "m", 1, "written");
        close_store();
        ck_assert_uint_le(count, ROWS);
        journal.data[at] = was;
    }
}
END_TEST

// Both at once: all that is known is that it opens and says nothing wrong.
START_TEST(file_and_log_damaged) {
    random_state = 6;
    for (uint32_t i = 0; i < 40; i++) {
        write_both();
        unsigned char *copy = malloc(database.size);
        memcpy(copy, database.data, database.size);
        for (int k = 0; k < 30; k++)
            copy[any((uint32_t)database.size)] = (unsigned char)any(256);
        file_write("culprit.db", copy, database.size);
        file_write("culprit.db-wal", journal.data, any((uint32_t)journal.size));
        free(copy);
        open_store();
        uint32_t count = 0;
        ck_assert_int_eq(
            storage_scan(store, STORAGE_STATE, NULL, 0, UINT64_MAX, check_row, &count, &error),
            STATUS_OK);
        put_text(STORAGE_META, "m", 1, "written");
        close_store();
    }
}
END_TEST

START_TEST(files_of_others) {
    folder_empty();
    write_both();
    database.data[60 + 3] = 9; // user_version: a later culprit's
    file_write("culprit.db", database.data, database.size);
    ck_assert_uint_eq(opens(), ROWS);
    ck_assert_int_eq(damaged_files(), 1);
    database.data[60 + 3] = 1;
    database.data[68] ^= 1; // application_id
    write_both();
    ck_assert_uint_eq(opens(), ROWS);
    ck_assert_int_eq(damaged_files(), 1);
    database.data[68] ^= 1;
}
END_TEST

// One byte of what the first page says of the tables, and all rows look as if they were not there.
START_TEST(descriptions_of_tables) {
    static const char text[] = "key INTEGER PRIMARY";
    unsigned char *at = memmem(database.data, 4096, text, sizeof text - 1);
    ck_assert_ptr_nonnull(at);
    at[11] = 0xdf; // its type is INTEGER no more, and the key not the row's number
    write_both();
    ck_assert_uint_eq(opens(), ROWS);
    ck_assert_int_eq(damaged_files(), 1);
    at[11] = ' ';
}
END_TEST

// The power fails while the file is made: what the library would take back from its first page must
// not be taken back from the file that is made instead.
START_TEST(a_journal_of_the_first_page) {
    static unsigned char hot[512] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
    hot[22] = 0x02; // sectors of 512 bytes
    hot[26] = 0x10; // pages of 4096; and none was there before
    folder_empty();
    database.data[0] ^= 1;
    file_write("culprit.db", database.data, database.size);
    file_write("culprit.db-journal", hot, sizeof hot);
    ck_assert_uint_eq(opens(), ROWS);
    ck_assert_int_eq(damaged_files(), 1);
    database.data[0] ^= 1;
    // The first page alone is there: a store that was never used.
    static unsigned char page[4096] = "SQLite format 3\0\x10\x00\x02\x02\x00\x40\x20\x20";
    static const unsigned char rest[] = {0x0d, 0, 0, 0, 0, 0x10, 0, 0};
    page[27] = page[31] = page[95] = 1;
    memcpy(page + 100, rest, sizeof rest);
    folder_empty();
    file_write("culprit.db", page, sizeof page);
    ck_assert_uint_eq(opens(), 0);
    ck_assert_int_eq(damaged_files(), 0);
}
END_TEST

// A crash between the steps of a repair: the next start ends it.
START_TEST(interrupted_repair) {
    write_both();
    file_write("culprit.db.new", database.data, 5000);
    ck_assert_uint_eq(opens(), ROWS);
    ck_assert_int_ne(access(path_of("culprit.db.new"), F_OK), 0);
    for (int step = 0; step < 3; step++) {
        folder_empty();
        file_write("culprit.db.rebuilt", database.data, database.size);
        if (step < 2)
            file_write("culprit.db", database.data, 3 * 4096);
        if (step < 1)
            file_write("culprit.db-wal", database.data, 3 * 4096);
        ck_assert_uint_eq(opens(), ROWS);
        ck_assert_int_eq(damaged_files(), step < 2 ? 1 : 0);
        ck_assert_int_ne(access(path_of("culprit.db.rebuilt"), F_OK), 0);
    }
}
END_TEST

START_TEST(few_damaged_files_are_kept) {
    for (int i = 0; i < 5; i++) {
        write_both();
        folder_empty();
        for (int k = 0; k < 4; k++) {
            file_write("culprit.db", database.data, database.size / 2);
            ck_assert_uint_gt(opens(), 0);
        }
        ck_assert_int_eq(damaged_files(), 2);
    }
}
END_TEST

// Found while the store is in use: the scan goes on, the writer goes on.
START_TEST(damage_under_way) {
    for (int round = 0; round < 2; round++) {
        write_both();
        open_store();
        unsigned char zeros[4096] = {0};
        FILE *file = fopen(path_of("culprit.db"), "r+b");
        for (long page = 3; page < 40; page += 5) {
            fseek(file, page * 4096, SEEK_SET);
            fwrite(zeros, 1, sizeof zeros, file);
        }
        fclose(file);
        if (round == 0) {
            uint32_t count = rows_read();
            ck_assert_uint_gt(count, LINES / 4);
            ck_assert_uint_lt(count, ROWS);
        }
        for (uint64_t i = 0; i < PAGES; i++) {
            struct storage_batch *batch = storage_batch_new(store);
            size_t size = size_of_row(0, i);
            static char page[30000];
            fill(page, size, i * 4);
            storage_put(batch, STORAGE_STATE, NAMES[0], i, (struct slice){page, size});
            ck_assert_msg(storage_wait(store, storage_submit(batch), 60 * SECOND, &error) ==
                              STATUS_OK,
                          "%s", error.message);
        }
        ck_assert_uint_gt(rows_read(), PAGES);
        close_store();
        ck_assert_uint_gt(opens(), PAGES);
    }
}
END_TEST

static void count_complaint(void *context, const char *sentence) {
    ck_assert_ptr_nonnull(strstr(sentence, "culprit.db: "));
    ++*(uint32_t *)context;
}

static bool skip_row(void *context, enum storage_space space, const char *name, uint64_t number,
                     struct slice bytes) {
    (void)context, (void)space, (void)name, (void)number, (void)bytes;
    return true;
}

// Bytes of a blob, of a tree page, of the header: an inspection tells, and changes nothing.
START_TEST(inspection_complains) {
    write_both();
    uint32_t complaints = 0;
    ck_assert_int_eq(store_inspect(folder, skip_row, count_complaint, &complaints, &error),
                     STATUS_OK);
    ck_assert_uint_eq(complaints, 0);
    static const size_t places[] = {0, 40 * 4096 + 2000, 3 * 4096, 60 + 3, 68};
    for (size_t i = 0; i < 5; i++) {
        database.data[places[i]] ^= 0x55;
        write_both();
        complaints = 0;
        ck_assert_int_eq(store_inspect(folder, skip_row, count_complaint, &complaints, &error),
                         STATUS_OK);
        ck_assert_msg(complaints > 0, "place %zu", places[i]);
        struct bytes after = file_read("culprit.db");
        ck_assert_int_eq(memcmp(after.data, database.data, database.size), 0);
        free(after.data);
        database.data[places[i]] ^= 0x55;
    }
}
END_TEST

static TCase *cases_of(const char *name, void (*setup)(void)) {
    TCase *cases = tcase_create(name);
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, whole_stores_stay);
    return cases;
}

int main(void) {
    Suite *suite = suite_create("store_damage");
    TCase *closed = cases_of("closed", setup_closed), *killed = cases_of("killed", setup_killed);
    tcase_add_test(closed, flipped_bytes);
    tcase_add_test(closed, overwritten_pages);
    tcase_add_test(closed, cut_files);
    tcase_add_test(closed, garbage);
    tcase_add_test(closed, files_of_others);
    tcase_add_test(closed, descriptions_of_tables);
    tcase_add_test(closed, a_journal_of_the_first_page);
    tcase_add_test(closed, interrupted_repair);
    tcase_add_test(closed, few_damaged_files_are_kept);
    tcase_add_test(closed, damage_under_way);
    tcase_add_test(closed, inspection_complains);
    tcase_add_test(killed, damaged_logs);
    tcase_add_test(killed, file_and_log_damaged);
    suite_add_tcase(suite, closed);
    suite_add_tcase(suite, killed);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
