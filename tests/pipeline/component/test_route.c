// SPDX-License-Identifier: Apache-2.0
// What passes by each option of `match`, and what is no pattern.
#include "pipeline/component/route.h"

#include "config/problem.h"

#include <check.h>
#include <stdlib.h>

static struct route_config config;
static struct verdict verdict;
static struct attribute root = {"culprit.root", {"false", 5}};

static void setup(void) {
    config = (struct route_config){0};
    verdict = (struct verdict){.pattern = "nccl_hang", .severity = SEVERITY_ERROR};
}

static bool passes(void) {
    return route_matches(&config, &verdict);
}

START_TEST(everything_passes_when_nothing_is_given) {
    ck_assert(route_is_default(&config));
    ck_assert(passes());
    verdict.severity = SEVERITY_INFO;
    ck_assert(passes());
}
END_TEST

START_TEST(patterns_are_names_or_beginnings_of_names) {
    static const char *const items[] = {"hbm_ecc", "nccl*"};
    config.match.patterns = (struct text_list){items, 1};
    ck_assert(!route_is_default(&config));
    ck_assert(!passes());
    config.match.patterns.count = 2;
    ck_assert(passes());
    verdict.pattern = "nccl";
    ck_assert(passes());
    verdict.pattern = "ncc";
    ck_assert(!passes());
    verdict.pattern = "hbm_ecc_more";
    ck_assert(!passes());
    verdict.pattern = "hbm_ecc";
    ck_assert(passes());
}
END_TEST

START_TEST(severity_is_at_least) {
    for (int least = SEVERITY_INFO; least <= SEVERITY_CRITICAL; least++)
        for (int severity = SEVERITY_INFO; severity <= SEVERITY_CRITICAL; severity++) {
            config.match.min_severity = least;
            verdict.severity = (enum severity)severity;
            ck_assert_int_eq(passes(), severity >= least);
        }
}
END_TEST

// One about no job is about none of these.
START_TEST(jobs_are_names_or_beginnings_of_names) {
    static const char *const items[] = {"llama-*", "eval"};
    config.match.jobs = (struct text_list){items, 2};
    ck_assert(!passes());
    verdict.job = intern(SLICE("llama-7b"));
    ck_assert(passes());
    verdict.job = intern(SLICE("eval"));
    ck_assert(passes());
    verdict.job = intern(SLICE("eval-2"));
    ck_assert(!passes());
    verdict.job = intern(SLICE("a llama-7b"));
    ck_assert(!passes());
}
END_TEST

// Without the processor incident each verdict stands by itself.
START_TEST(roots_are_roots_of_their_incidents) {
    config.match.only_roots = true;
    ck_assert(passes());
    verdict.attributes = &root;
    verdict.attribute_count = 1;
    ck_assert(!passes());
    root.value = SLICE("true");
    ck_assert(passes());
}
END_TEST

START_TEST(all_of_match_has_to_hold) {
    static const char *const items[] = {"nccl_hang"};
    config.match.patterns = (struct text_list){items, 1};
    config.match.min_severity = SEVERITY_CRITICAL;
    ck_assert(!passes());
    verdict.severity = SEVERITY_CRITICAL;
    ck_assert(passes());
}
END_TEST

START_TEST(an_unknown_pattern_is_a_problem_with_the_nearest_one) {
    static const char *const names[] = {"nccl_hang", "hbm_ecc"};
    static const char *const items[] = {"nccl_hang", "hbm*", "ncll_hang", "pcie*", "memory"};
    struct arena arena;
    struct problem_list problems;
    struct buffer text;
    arena_init(&arena, 4096);
    buffer_init(&text, 4096);
    problem_list_init(&problems, &arena);
    config.match.patterns = (struct text_list){items, 5};
    route_check(&config, names, 2, &problems);
    ck_assert_uint_eq(problems.count, 3);
    ck_assert_str_eq(problems.items[0].key, "match.patterns[2]");
    ck_assert_str_eq(problems.items[0].text,
                     "'ncll_hang' is not a pattern; did you mean 'nccl_hang'?");
    ck_assert_str_eq(problems.items[1].key, "match.patterns[3]");
    ck_assert_str_eq(problems.items[2].text,
                     "'memory' is not a pattern; `culprit components` "
                     "lists those of each processor");
    buffer_release(&text);
    arena_release(&arena);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("route");
    TCase *tests = tcase_create("match");
    tcase_add_checked_fixture(tests, setup, NULL);
    tcase_add_test(tests, everything_passes_when_nothing_is_given);
    tcase_add_test(tests, patterns_are_names_or_beginnings_of_names);
    tcase_add_test(tests, severity_is_at_least);
    tcase_add_test(tests, jobs_are_names_or_beginnings_of_names);
    tcase_add_test(tests, roots_are_roots_of_their_incidents);
    tcase_add_test(tests, all_of_match_has_to_hold);
    tcase_add_test(tests, an_unknown_pattern_is_a_problem_with_the_nearest_one);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
