// SPDX-License-Identifier: Apache-2.0
// memory_limiter: input is let in below 80 % of the limit, and only there.
#include "base/log.h"
#include "base/memory.h"
#include "cli/component_list.h"

#include <check.h>
#include <stdio.h>

enum { MIB = 1 << 20 };

static void *instance;
static void *config;

// Both options are numbers; the rows say where.
static void *field(const char *name) {
    const struct component_type *type = &processor_memory_limiter;
    for (size_t i = 0; i < type->option_count; i++)
        if (strcmp(type->options[i].name, name) == 0)
            return (char *)config + type->options[i].offset;
    ck_abort_msg("there is no option %s", name);
}

static void start(uint64_t limit, int64_t percentage) {
    const struct component_type *type = &processor_memory_limiter;
    instance = memory_zero(1, type->instance_size);
    config = memory_zero(1, type->config_size);
    ((struct byte_size *)field("limit"))->bytes = limit;
    *(int64_t *)field("limit_percentage") = percentage;
    struct component_context context = {.site = "processor/memory_limiter"};
    struct error error = {0};
    ck_assert_int_eq(component_start(type, instance, config, &context, &error), STATUS_OK);
}

static bool admits(void) {
    return processor_memory_limiter.processor.admits(instance);
}

static void setup(void) {
    log_configure(LOG_ERROR, LOG_CONSOLE);
}

static void teardown(void) {
    memory_give(instance);
    memory_give(config);
}

START_TEST(refuses_from_four_fifths_on_and_takes_again_below) {
    start(10 * MIB, 75);
    ck_assert(admits());
    void *most = memory_take(7 * MIB);
    ck_assert(admits());
    void *more = memory_take(2 * MIB);
    ck_assert(!admits());
    ck_assert(!admits());
    memory_give(more);
    ck_assert(admits());
    memory_give(most);
}
END_TEST

START_TEST(a_share_of_what_there_is) {
    start(0, 1);
    ck_assert(admits());
    // The machine has more than this and, taken a hundred times, less.
    FILE *file = fopen("/proc/meminfo", "r");
    ck_assert_ptr_nonnull(file);
    unsigned long long kib = 0;
    ck_assert_int_eq(fscanf(file, "MemTotal: %llu", &kib), 1);
    fclose(file);
    void *held = memory_take((size_t)kib * 1024 / 100);
    ck_assert(!admits());
    memory_give(held);
}
END_TEST

START_TEST(a_batch_passes_unchanged) {
    start(MIB, 75);
    struct event events[3] = {{0}};
    struct batch batch = {.events = events, .event_count = 3};
    processor_memory_limiter.processor.consume(instance, &batch);
    ck_assert_uint_eq(batch.event_count, 3);
    ck_assert_ptr_null(batch.selected);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("memory_limiter");
    TCase *tests = tcase_create("memory_limiter");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, refuses_from_four_fifths_on_and_takes_again_below);
    tcase_add_test(tests, a_share_of_what_there_is);
    tcase_add_test(tests, a_batch_passes_unchanged);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
