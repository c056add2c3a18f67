// SPDX-License-Identifier: Apache-2.0
// Declared state out into blobs and back, in this process and as if from another.
#include "base/memory.h"
#include "pipeline/runtime/checkpoint.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

struct row {
    uint32_t chain;
    string_id name;
    uint64_t value;
    const char *pointer; // means nothing after a load
};

struct scalars {
    uint64_t count;
    string_id last;
};

struct component {
    struct table rows;
    struct scalars scalars;
};

static void component_init(struct component *self, struct saver *saver, uint64_t fingerprint) {
    *self = (struct component){0};
    table_init(&self->rows, "rows", sizeof(struct row), 256);
    saver_init(saver, "p/test", fingerprint);
    state_entry_string(state_list_table(&saver->list, &self->rows), offsetof(struct row, name));
    state_entry_string(
        state_list_struct(&saver->list, "scalars", &self->scalars, sizeof self->scalars),
        offsetof(struct scalars, last));
}

static void component_release(struct component *self, struct saver *saver) {
    table_release(&self->rows);
    saver_release(saver);
}

static struct row *row_at(struct component *self, uint32_t row) {
    return table_row(&self->rows, row);
}

static void fill(struct component *self, uint32_t count) {
    char text[32];
    for (uint32_t i = 0; i < count; i++) {
        uint32_t row = table_add(&self->rows);
        snprintf(text, sizeof text, "name-%u", row);
        *row_at(self, row) =
            (struct row){.name = intern(slice_of(text)), .value = row * 7, .pointer = text};
    }
    self->scalars = (struct scalars){count, intern(SLICE("last"))};
}

static uint32_t puts_seen, drops_seen;

static void to_snapshot(void *context, enum storage_space space, const char *name, uint64_t number,
                        struct slice bytes) {
    puts_seen++;
    snapshot_put(context, space, name, number, bytes);
}

static void count_drop(void *context, enum storage_space space, const char *name, uint64_t first,
                       uint64_t last) {
    (void)context;
    (void)name;
    (void)space;
    ck_assert_uint_le(first, last);
    drops_seen++;
}

static void save(struct saver *saver, struct snapshot *snapshot) {
    struct blob_sink sink = {snapshot, to_snapshot, count_drop};
    puts_seen = drops_seen = 0;
    saver_save(saver, &sink);
}

static void check_same(struct component *self, uint32_t count) {
    char text[32];
    ck_assert_uint_eq(self->rows.used, count);
    for (uint32_t i = 0; i < count; i++) {
        snprintf(text, sizeof text, "name-%u", i);
        ck_assert_uint_eq(row_at(self, i)->value, i * 7);
        ck_assert(slice_equal(intern_slice(row_at(self, i)->name), slice_of(text)));
    }
    ck_assert_uint_eq(self->scalars.count, count);
    ck_assert(slice_equal(intern_slice(self->scalars.last), SLICE("last")));
}

static struct component from, to;
static struct saver from_saver, to_saver;
static struct snapshot *snapshot;

static void setup(void) {
    snapshot = snapshot_new();
    component_init(&from, &from_saver, 5);
    component_init(&to, &to_saver, 5);
}

static void teardown(void) {
    component_release(&from, &from_saver);
    component_release(&to, &to_saver);
    snapshot_free(snapshot);
    intern_release();
}

START_TEST(test_what_was_saved_is_there_again) {
    static const uint32_t counts[] = {0, 1, 5000};
    uint32_t count = counts[_i];
    fill(&from, count);
    save(&from_saver, snapshot);
    ck_assert_int_eq(saver_check(&to_saver, snapshot), SAVER_WHOLE);
    saver_load(&to_saver, snapshot);
    check_same(&to, count);
    // Both go on alike.
    ck_assert_uint_eq(table_add(&to.rows), table_add(&from.rows));
}
END_TEST

START_TEST(test_only_pages_that_changed_are_given_out) {
    fill(&from, 2000);
    save(&from_saver, snapshot);
    ck_assert_uint_gt(puts_seen, 10);
    save(&from_saver, snapshot);
    ck_assert_uint_eq(puts_seen, 0);
    row_at(&from, 1500)->value++;
    save(&from_saver, snapshot);
    ck_assert_uint_eq(puts_seen, 1);
    saver_load(&to_saver, snapshot);
    ck_assert_uint_eq(row_at(&to, 1500)->value, 1500 * 7 + 1);
    saver_forget(&from_saver);
    save(&from_saver, snapshot);
    ck_assert_uint_gt(puts_seen, 10);
}
END_TEST

START_TEST(test_freed_rows_stay_free_and_are_not_mapped) {
    fill(&from, 100);
    table_free(&from.rows, 10);
    table_free(&from.rows, 20);
    save(&from_saver, snapshot);
    for (string_id id = 1; id <= intern_count(); id++)
        snapshot_put(snapshot, STORAGE_STRINGS, "", id, intern_slice(id));
    ck_assert_int_eq(saver_check(&to_saver, snapshot), SAVER_WHOLE);
    saver_load(&to_saver, snapshot);
    ck_assert_uint_eq(table_add(&to.rows), 20);
    ck_assert_uint_eq(table_add(&to.rows), 10);
    ck_assert_uint_eq(table_add(&to.rows), 100);
}
END_TEST

// The ids of another process: here they are moved by 1,000.
START_TEST(test_strings_of_another_process_get_their_ids_here) {
    fill(&from, 300);
    uint32_t names = intern_count();
    for (uint32_t i = 0; i < 300; i++)
        row_at(&from, i)->name += 1000;
    from.scalars.last += 1000;
    save(&from_saver, snapshot);
    for (string_id id = 1; id <= names; id++)
        snapshot_put(snapshot, STORAGE_STRINGS, "", id + 1000, intern_slice(id));
    ck_assert_int_eq(saver_check(&to_saver, snapshot), SAVER_WHOLE);
    saver_load(&to_saver, snapshot);
    check_same(&to, 300);
}
END_TEST

START_TEST(test_what_is_damaged_is_not_loaded) {
    fill(&from, 2000);
    table_free(&from.rows, 3);
    save(&from_saver, snapshot);
    ck_assert_int_eq(saver_check(&to_saver, snapshot), SAVER_WHOLE);
    struct slice page;
    ck_assert(snapshot_get(snapshot, STORAGE_STATE, "p/test/rows", 4, &page));
    snapshot_put(snapshot, STORAGE_STATE, "p/test/rows", 4,
                 (struct slice){page.data, page.size - 8});
    ck_assert_int_eq(saver_check(&to_saver, snapshot), SAVER_DAMAGED);
    snapshot_put(snapshot, STORAGE_STATE, "p/test/rows", 4, page);
    ck_assert_int_eq(saver_check(&to_saver, snapshot), SAVER_WHOLE);
    // A name that the strings do not have.
    snapshot_put(snapshot, STORAGE_STRINGS, "", 1, SLICE("only one"));
    ck_assert_int_eq(saver_check(&to_saver, snapshot), SAVER_DAMAGED);
}
END_TEST

START_TEST(test_other_options_and_empty_snapshots_are_told) {
    ck_assert_int_eq(saver_check(&to_saver, snapshot), SAVER_NOTHING);
    fill(&from, 10);
    from_saver.fingerprint = 6;
    save(&from_saver, snapshot);
    ck_assert_int_eq(saver_check(&to_saver, snapshot), SAVER_OTHER);
}
END_TEST

START_TEST(test_a_table_that_shrank_drops_its_pages) {
    fill(&from, 2000);
    save(&from_saver, snapshot);
    table_load(&from.rows, 10, TABLE_NO_ROW, 0);
    save(&from_saver, snapshot);
    ck_assert_uint_eq(drops_seen, 1);
    ck_assert_int_eq(saver_check(&to_saver, snapshot), SAVER_WHOLE);
}
END_TEST

START_TEST(test_fingerprints_follow_options_but_not_secrets) {
    struct config {
        int64_t number;
        const char *text;
        struct secret secret;
        struct text_list list;
    };
    static const struct option rows[] = {
        {.name = "number", .type = OPTION_INT, .offset = offsetof(struct config, number)},
        {.name = "text", .type = OPTION_TEXT, .offset = offsetof(struct config, text)},
        {.name = "secret", .type = OPTION_SECRET, .offset = offsetof(struct config, secret)},
        {.name = "list", .type = OPTION_TEXT_LIST, .offset = offsetof(struct config, list)},
    };
    struct component_type type = {.name = "t", .options = rows, .option_count = 4};
    const char *const items[] = {"a", "b"};
    struct config config = {1, "x", {"hidden"}, {items, 2}};
    uint64_t before = config_fingerprint(&type, &config);
    config.secret.hidden = "other";
    char same[] = "x";
    config.text = same;
    ck_assert_uint_eq(config_fingerprint(&type, &config), before);
    config.text = "y";
    ck_assert_uint_ne(config_fingerprint(&type, &config), before);
    config.text = "x";
    config.list.count = 1;
    ck_assert_uint_ne(config_fingerprint(&type, &config), before);
    config.list.count = 2;
    config.number = 2;
    ck_assert_uint_ne(config_fingerprint(&type, &config), before);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("checkpoint");
    TCase *tests = tcase_create("checkpoint");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, test_what_was_saved_is_there_again, 0, 3);
    tcase_add_test(tests, test_only_pages_that_changed_are_given_out);
    tcase_add_test(tests, test_freed_rows_stay_free_and_are_not_mapped);
    tcase_add_test(tests, test_strings_of_another_process_get_their_ids_here);
    tcase_add_test(tests, test_what_is_damaged_is_not_loaded);
    tcase_add_test(tests, test_other_options_and_empty_snapshots_are_told);
    tcase_add_test(tests, test_a_table_that_shrank_drops_its_pages);
    tcase_add_test(tests, test_fingerprints_follow_options_but_not_secrets);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
