// SPDX-License-Identifier: Apache-2.0
// What the options that all receivers of records share say of their inputs.
#include "receivers/records/options.h"

#include "base/memory.h"
#include "base/text/time_zone.h"
#include "config/problem.h"

#include <check.h>
#include <stdlib.h>

static const struct {
    const char *zone, *boot;
    const char *problem; // the key; NULL: none
    int32_t offset_s;    // in July 2026
    uint64_t boot_ns;
} ROWS[] = {
    {"UTC", NULL, NULL, 0, 0},
    {NULL, NULL, NULL, 0, 0},
    {"Europe/Berlin", "2026-03-02T06:00:00Z", NULL, 7200, UINT64_C(1772431200000000000)},
    {"-03:30", "2026-03-02T06:00:00.5+01:00", NULL, -12600, UINT64_C(1772427600500000000)},
    {"Europe/Berlim", NULL, "timezone", 0, 0},
    {"../../../etc/passwd", NULL, "timezone", 0, 0},
    {"", NULL, "timezone", 0, 0},
    {"UTC", "yesterday", "boot_time", 0, 0},
    {"UTC", "1970-01-01T00:00:00Z", "boot_time", 0, 0},
    {"UTC", "9999-01-01T00:00:00Z", "boot_time", 0, 0},
};

START_TEST(zones_and_boots) {
    struct record_config config = {
        .timezone = ROWS[_i].zone, .boot_time = ROWS[_i].boot, .node = "n7", .world_size = 16};
    struct decoder_input input;
    struct arena arena;
    struct problem_list problems;
    arena_init(&arena, 4096);
    problem_list_init(&problems, &arena);
    record_options_check(&config, &problems);
    ck_assert_uint_eq(problems.count, ROWS[_i].problem == NULL ? 0 : 1);
    if (ROWS[_i].problem != NULL)
        ck_assert(problem_list_names(&problems, ROWS[_i].problem));
    ck_assert_int_eq(record_options_input(&config, &input, NULL), ROWS[_i].problem == NULL);
    if (ROWS[_i].problem == NULL) {
        ck_assert_int_eq(time_zone_offset(input.zone, 1782900000), ROWS[_i].offset_s);
        ck_assert_uint_eq(input.boot_ns, ROWS[_i].boot_ns);
        ck_assert(slice_equal(input.node, SLICE("n7")));
        ck_assert_uint_eq(input.world_size, 16);
    }
    time_zone_close((struct time_zone *)(uintptr_t)input.zone);
    arena_release(&arena);
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}
END_TEST

// A node has a name that a record has room for; without one the machine's own is taken.
START_TEST(nodes) {
    char longest[RECORD_NODE_MAX + 1], too_long[RECORD_NODE_MAX + 2], node[RECORD_NODE_MAX + 1];
    const char *const names[] = {longest, too_long, ""};
    struct error error;
    struct arena arena;
    struct problem_list problems;
    memset(longest, 'n', sizeof longest - 1);
    memset(too_long, 'n', sizeof too_long - 1);
    longest[sizeof longest - 1] = too_long[sizeof too_long - 1] = '\0';
    arena_init(&arena, 4096);
    for (unsigned i = 0; i < 3; i++) {
        struct record_config config = {.node = names[i]};
        problem_list_init(&problems, &arena);
        record_options_check(&config, &problems);
        ck_assert_uint_eq(problems.count, i > 0);
        ck_assert(i == 0 || problem_list_names(&problems, "node"));
    }
    ck_assert_int_eq(record_own_node(&(struct record_config){.node = longest}, node, &error),
                     STATUS_OK);
    ck_assert_str_eq(node, longest);
    record_host_name(too_long);
    enum status status = record_own_node(&(struct record_config){.node = NULL}, node, &error);
    ck_assert_int_eq(status, too_long[0] == '\0' ? STATUS_OS : STATUS_OK);
    ck_assert_str_eq(node, too_long);
    arena_release(&arena);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("record_options");
    TCase *cases = tcase_create("record_options");
    tcase_add_loop_test(cases, zones_and_boots, 0, sizeof ROWS / sizeof *ROWS);
    tcase_add_test(cases, nodes);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
