// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"
#include "base/memory.h"
#include "base/metrics/metrics.h"
#include "cli/component_list.h"
#include "pipeline/component/storage.h"
#include "tests/support/temporary.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

static char folder[64], directory[80];
static struct error error;

// The fields that the rows fill, in their order.
struct given {
    const char *directory;
    bool create_directory;
    struct byte_size max_size;
    struct duration fsync_interval;
};

static const struct component_context context = {.id = "file_storage/a",
                                                 .site = "extension/file_storage/a"};

static void setup(void) {
    temporary_path(folder, sizeof folder, "storage");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(directory, sizeof directory, "%s/new", folder);
    log_configure(LOG_ERROR, LOG_CONSOLE);
}

static void teardown(void) {
    char command[100];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
    metrics_release();
    log_flush();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static const struct option *row(const char *name) {
    for (size_t i = 0; i < extension_file_storage.option_count; i++)
        if (strcmp(extension_file_storage.options[i].name, name) == 0)
            return &extension_file_storage.options[i];
    ck_abort_msg("no option %s", name);
}

START_TEST(options) {
    ck_assert_uint_eq(sizeof(struct given), extension_file_storage.config_size);
    ck_assert_uint_eq(extension_file_storage.option_count, 4);
    ck_assert_str_eq(row("directory")->default_value, "/var/lib/culprit");
    ck_assert_str_eq(row("create_directory")->default_value, "true");
    ck_assert_str_eq(row("max_size")->default_value, "1GiB");
    ck_assert_str_eq(row("fsync_interval")->default_value, "5ms");
    ck_assert_uint_eq(row("fsync_interval")->offset, offsetof(struct given, fsync_interval));
    ck_assert_int_eq(extension_file_storage.kind, COMPONENT_EXTENSION);
}
END_TEST

static const char *exposed(void) {
    static char text[200000];
    struct buffer out;
    struct exposition exposition;
    buffer_init(&out, sizeof text - 1);
    exposition_begin(&exposition, &out, EXPOSITION_TEXT);
    metrics_expose(&exposition);
    ck_assert(!out.failed);
    memcpy(text, out.data, out.size);
    text[out.size] = '\0';
    buffer_release(&out);
    return text;
}

static void check_metric(const char *line) {
    const char *text = exposed();
    ck_assert_msg(strstr(text, line) != NULL, "%s is not in %s", line, text);
}

static bool count_row(void *seen, const char *name, uint64_t number, struct slice bytes) {
    (void)name, (void)number, (void)bytes;
    ++*(int *)seen;
    return true;
}

// Twice, as at a restart: what was stored is there, and the counters go on.
START_TEST(stores_and_counts) {
    struct given given = {directory, true, {64 << 20}, {1000000}};
    for (int run = 1; run <= 2; run++) {
        void *instance = memory_zero(1, extension_file_storage.instance_size);
        ck_assert_msg(component_start(&extension_file_storage, instance, &given, &context,
                                      &error) == STATUS_OK,
                      "%s", error.message);
        struct storage *store = extension_file_storage.extension.store(instance);
        ck_assert_ptr_nonnull(store);
        struct storage_batch *batch = storage_batch_new(store);
        storage_put(batch, STORAGE_STATE, "s", (uint64_t)run, SLICE("x"));
        ck_assert_int_eq(storage_wait(store, storage_submit(batch), UINT64_C(30000000000), &error),
                         STATUS_OK);
        int seen = 0;
        ck_assert_int_eq(storage_scan(store, STORAGE_STATE, "s", 0, 9, count_row, &seen, &error),
                         STATUS_OK);
        ck_assert_int_eq(seen, run);
        char line[100];
        snprintf(line, sizeof line,
                 "culprit_store_commits_total{extension=\"file_storage/a\"} %d\n", run);
        check_metric(line);
        check_metric(line); // asked twice, counted once
        check_metric("culprit_store_max_size_bytes{extension=\"file_storage/a\"} 67108864\n");
        check_metric("culprit_store_degraded{extension=\"file_storage/a\"} 0\n");
        check_metric("culprit_store_full{extension=\"file_storage/a\"} 0\n");
        check_metric("culprit_store_pending_bytes{extension=\"file_storage/a\"} 0\n");
        check_metric("culprit_store_damaged_blobs_total{extension=\"file_storage/a\"} 0\n");
        check_metric("culprit_store_repairs_total{extension=\"file_storage/a\"} 0\n");
        component_stop(&extension_file_storage, instance);
        memory_give(instance);
        check_metric(line); // also after the end, without asking the store
    }
}
END_TEST

START_TEST(failed_starts) {
    struct given given = {directory, false, {64 << 20}, {1000000}};
    void *instance = memory_zero(1, extension_file_storage.instance_size);
    ck_assert_int_eq(component_start(&extension_file_storage, instance, &given, &context, &error),
                     STATUS_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(error.message, directory));
    component_stop(&extension_file_storage, instance);
    ck_assert_ptr_null(extension_file_storage.extension.store(instance));
    memory_give(instance);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("file_storage");
    TCase *cases = tcase_create("file_storage");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, options);
    tcase_add_test(cases, stores_and_counts);
    tcase_add_test(cases, failed_starts);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
