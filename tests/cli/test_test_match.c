// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/test_match.h"

#include "base/memory.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct arena arena;
static struct test_differences differences;
static struct plan_test test;
static struct test_run found;
static struct plan_test_expectation expected[4];
static struct found_verdict verdicts[4];
static const struct found_entity RANK_3[] = {
    {"rank", "3", ROLE_CULPRIT}, {"node", "n7", ROLE_CULPRIT}, {"rank", "0", ROLE_VICTIM}};
static const struct found_entity RANK_5[] = {{"rank", "5", ROLE_CULPRIT}};
static const struct plan_test_entity IS_3[] = {{"rank", "3"}},
                                     IS_3_AND_4[] = {{"rank", "3"}, {"rank", "4"}};

static struct found_verdict verdict(const char *id, const struct found_entity *entities,
                                    uint32_t count) {
    return (struct found_verdict){.id = id,
                                  .pattern = "nccl_hang",
                                  .kind = "missing_rank",
                                  .headline = "Rank 3 never called all_reduce",
                                  .job = "j",
                                  .severity = SEVERITY_ERROR,
                                  .confidence = 80,
                                  .root = true,
                                  .entities = entities,
                                  .entity_count = count};
}

static void setup(void) {
    arena_init(&arena, 4096);
    differences = (struct test_differences){.arena = &arena};
    memset(expected, 0, sizeof expected);
    for (int i = 0; i < 4; i++)
        expected[i].pattern = "nccl_hang";
    test = (struct plan_test){.name = "t", .expected = expected};
    found = (struct test_run){.verdicts = verdicts};
    verdicts[0] = verdict("nccl_hang:3", RANK_3, 3);
    verdicts[1] = verdict("nccl_hang:5", RANK_5, 1);
}

static void teardown(void) {
    arena_release(&arena);
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

// "kind text|verdict" a line.
static const char *compared(uint32_t expected_count, uint32_t verdict_count) {
    const char *text = "";
    differences = (struct test_differences){.arena = &arena};
    test.expected_count = expected_count;
    found.verdict_count = verdict_count;
    test_compare(&differences, &test, &found);
    for (uint32_t i = 0; i < differences.count; i++) {
        const struct test_difference *one = &differences.items[i];
        text = arena_format(&arena, "%s%s %s|%.11s\n", text, difference_name(one->kind), one->text,
                            one->verdict == NULL ? "" : one->verdict);
    }
    ck_assert_uint_eq(differences.count, differences.total);
    return text;
}

START_TEST(what_is_not_given_may_be_anything) {
    ck_assert_str_eq(compared(0, 0), "");
    ck_assert_str_eq(compared(1, 1), "");
    ck_assert_str_eq(compared(2, 2), "");
    ck_assert_str_eq(compared(1, 0), "missing nccl_hang|\n");
    ck_assert_str_eq(compared(0, 1),
                     "unexpected nccl_hang, kind missing_rank, severity error, culprit rank 3, "
                     "node n7, job j|nccl_hang:3\n");
}
END_TEST

START_TEST(each_field_is_compared) {
    struct plan_test_expectation *one = &expected[0];
    one->severity = SEVERITY_ERROR + 1;
    one->state = VERDICT_OPEN + 1;
    one->kind = "missing_rank";
    one->job = "j";
    one->headline = "all_reduce";
    one->confidence = 80;
    one->root = one->root_given = true;
    ck_assert_str_eq(compared(1, 1), "");
    one->severity = SEVERITY_INFO + 1;
    one->state = VERDICT_RESOLVED + 1;
    one->kind = "desync";
    one->job = "k";
    one->headline = "broadcast";
    one->confidence = 81;
    one->root = false;
    ck_assert_str_eq(compared(1, 1),
                     "differs severity error, expected info; state open, expected resolved; kind "
                     "missing_rank, expected desync; job j, expected k; root true, expected false; "
                     "confidence 80, expected at least 81; headline does not contain "
                     "\"broadcast\"|nccl_hang:3\n");
}
END_TEST

// Of each kind that is named these and no others; kinds that are not named may be there.
START_TEST(entities_are_compared_by_kind) {
    struct plan_test_entities *culprit = &expected[0].entities[ROLE_CULPRIT];
    *culprit = (struct plan_test_entities){true, IS_3, 1};
    ck_assert_str_eq(compared(1, 1), "");
    *culprit = (struct plan_test_entities){true, IS_3_AND_4, 2};
    ck_assert_str_eq(compared(1, 1),
                     "differs culprit rank 3, node n7, expected rank 3, rank 4|nccl_hang:3\n");
    static const struct found_entity MORE[] = {{"rank", "3", ROLE_CULPRIT},
                                               {"rank", "4", ROLE_CULPRIT}};
    verdicts[0] = verdict("nccl_hang:3", MORE, 2);
    ck_assert_str_eq(compared(1, 1), "");
    *culprit = (struct plan_test_entities){true, IS_3, 1};
    ck_assert_str_eq(compared(1, 1),
                     "differs culprit rank 3, rank 4, expected rank 3|nccl_hang:3\n");
    *culprit = (struct plan_test_entities){true, NULL, 0};
    ck_assert_str_eq(compared(1, 1),
                     "differs culprit rank 3, rank 4, expected nobody|nccl_hang:3\n");
    *culprit = (struct plan_test_entities){0};
    expected[0].entities[ROLE_SUSPECT] = (struct plan_test_entities){true, NULL, 0};
    ck_assert_str_eq(compared(1, 1), "");
    expected[0].entities[ROLE_VICTIM] = (struct plan_test_entities){true, IS_3, 1};
    ck_assert_str_eq(compared(1, 1), "differs victim nobody, expected rank 3|nccl_hang:3\n");
}
END_TEST

// An expectation that any verdict fits must not take the one that only another can use.
START_TEST(as_many_as_possible_have_one) {
    expected[1].entities[ROLE_CULPRIT] = (struct plan_test_entities){true, IS_3, 1};
    ck_assert_str_eq(compared(2, 2), "");
    verdicts[2] = verdicts[1];
    verdicts[2].id = "nccl_hang:6";
    expected[1].entities[ROLE_CULPRIT] = (struct plan_test_entities){0};
    expected[2].entities[ROLE_CULPRIT] = (struct plan_test_entities){true, IS_3, 1};
    ck_assert_str_eq(compared(3, 3), "");
    // Two that want the same: one of them is told with what is nearest.
    expected[1] = expected[2];
    expected[1].severity = SEVERITY_ERROR + 1;
    ck_assert_str_eq(compared(3, 3), "differs culprit rank 5, expected rank 3|nccl_hang:6\n");
}
END_TEST

START_TEST(the_nearest_of_the_pattern_is_shown) {
    expected[0].severity = SEVERITY_INFO + 1;
    expected[0].entities[ROLE_CULPRIT] = (struct plan_test_entities){true, IS_3, 1};
    verdicts[2] = verdicts[0];
    verdicts[0] = verdicts[1];
    verdicts[1] = verdicts[2];
    test.others = OTHERS_ANY;
    ck_assert_str_eq(compared(1, 2), "differs severity error, expected info|nccl_hang:3\n");
    expected[0].pattern = "first_exit";
    ck_assert_str_eq(compared(1, 2), "missing first_exit, severity info, culprit rank 3|\n");
}
END_TEST

START_TEST(others_may_be_there) {
    verdicts[1].root = false;
    test.others = OTHERS_CONSEQUENCES;
    ck_assert_str_eq(compared(1, 2), "");
    verdicts[1].root = true;
    ck_assert_uint_gt(strlen(compared(1, 2)), 0);
    test.others = OTHERS_ANY;
    ck_assert_str_eq(compared(1, 2), "");
}
END_TEST

START_TEST(inputs_are_compared) {
    const char *notes[] = {"x.log: not read"}, *refusals[] = {"x.jsonl:3: bad_json"};
    found.notes = notes;
    found.note_count = 1;
    ck_assert_str_eq(compared(0, 0), ""); // a note alone is no failure
    found.unread = true;
    ck_assert_str_eq(compared(0, 0), "input x.log: not read|\n");
    found.note_count = 0;
    ck_assert_str_eq(compared(0, 0), "input an input is missing, or was not read|\n");
    found.unread = false;
    found.refused = 1;
    found.refusals = refusals;
    found.refusal_count = 1;
    ck_assert_str_eq(compared(0, 0),
                     "refused 1 record was refused, expected 0|\nrefused x.jsonl:3: bad_json|\n");
    test.refused = 1;
    ck_assert_str_eq(compared(0, 0), "");
    found.refused = 0;
    found.refusal_count = 0;
    ck_assert_str_eq(compared(0, 0), "refused 0 records were refused, expected 1|\n");
}
END_TEST

START_TEST(what_is_kept_is_bounded) {
    for (uint32_t i = 0; i < TEST_DIFFERENCES_MAX + 7; i++)
        test_differs(&differences, DIFFERENCE_MISSING, (struct location){0}, NULL, "x");
    ck_assert_uint_eq(differences.count, TEST_DIFFERENCES_MAX);
    ck_assert_uint_eq(differences.total, TEST_DIFFERENCES_MAX + 7);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("test_match");
    TCase *cases = tcase_create("test_match");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, what_is_not_given_may_be_anything);
    tcase_add_test(cases, each_field_is_compared);
    tcase_add_test(cases, entities_are_compared_by_kind);
    tcase_add_test(cases, as_many_as_possible_have_one);
    tcase_add_test(cases, the_nearest_of_the_pattern_is_shown);
    tcase_add_test(cases, others_may_be_there);
    tcase_add_test(cases, inputs_are_compared);
    tcase_add_test(cases, what_is_kept_is_bounded);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
