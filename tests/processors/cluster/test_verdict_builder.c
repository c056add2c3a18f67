// SPDX-License-Identifier: Apache-2.0
// The order in which the parts of a verdict stand, whatever order they came in.
#include "processors/cluster/verdict_builder.h"

#include "base/memory.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

static struct arena arena;
static struct verdict_builder builder;

static void setup(void) {
    arena_init(&arena, 4096);
    builder_begin(&builder, &arena, "pattern", "kind");
}

static void finish(void) {
    static const struct text_field none[] = {{NULL, NULL}};
    builder_texts(&builder, "headline", "remediation", none);
    builder_finish(&builder, (struct slice[]){SLICE("key")}, 1);
}

static void teardown(void) {
    arena_release(&arena);
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

START_TEST(ranks_are_numbers) {
    static const char *const came[] = {"10", "2", "100", "9"};
    static const char *const wanted[] = {"2", "9", "10", "100"};
    for (int i = 0; i < 4; i++)
        builder_entity(&builder, "rank", ROLE_SUSPECT, came[i]);
    builder_entity(&builder, "pod", ROLE_VICTIM, "p");
    builder_entity(&builder, "rank", ROLE_CULPRIT, "11");
    builder_entity(&builder, "node", ROLE_CULPRIT, "n");
    finish();
    const struct entity *entities = builder.verdict.entities;
    ck_assert_uint_eq(builder.verdict.entity_count, 7);
    ck_assert_str_eq(entities[0].name.data, "n");
    ck_assert_str_eq(entities[1].name.data, "11");
    for (int i = 0; i < 4; i++)
        ck_assert_str_eq(entities[2 + i].name.data, wanted[i]);
    ck_assert_str_eq(entities[6].name.data, "p");
}
END_TEST

START_TEST(evidence_by_time_attributes_by_key) {
    builder_evidence(&builder, EVIDENCE_EFFECT, 30, "b", "later");
    builder_evidence(&builder, EVIDENCE_CAUSE, 20, "c", "second of its time");
    builder_evidence(&builder, EVIDENCE_CAUSE, 20, "a", "first");
    builder_evidence(&builder, EVIDENCE_CONTEXT, 10, "d", "before it");
    builder_evidence(&builder, EVIDENCE_CAUSE, 99, "a", "a repeat");
    builder_attribute(&builder, "b.key", SLICE("1"));
    builder_attribute_format(&builder, "a.key", "%d", 2);
    builder_attribute(&builder, "none", SLICE(""));
    finish();
    static const char wanted[] = "dacb";
    ck_assert_uint_eq(builder.verdict.evidence_count, 4);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(builder.verdict.evidence[i].uid.data[0], wanted[i]);
    ck_assert_uint_eq(builder.verdict.start_ns, 20); // context does not count
    ck_assert_uint_eq(builder.verdict.end_ns, 30);
    ck_assert_uint_eq(builder.verdict.attribute_count, 2);
    ck_assert_str_eq(builder.verdict.attributes[0].key, "a.key");
}
END_TEST

START_TEST(evidence_of_one_moment_begins_with_causes) {
    builder_evidence(&builder, EVIDENCE_CAUSE, 0, "no time", "e");
    builder_evidence(&builder, EVIDENCE_CONTEXT, 20, "a", "e");
    builder_evidence(&builder, EVIDENCE_EFFECT, 20, "b", "e");
    builder_evidence(&builder, EVIDENCE_CAUSE, 20, "c", "e");
    builder_evidence(&builder, EVIDENCE_EFFECT, 10, "d", "e");
    finish();
    static const char wanted[] = "dcban";
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(builder.verdict.evidence[i].uid.data[0], wanted[i]);
}
END_TEST

START_TEST(of_context_alone_the_times_are_its_own) {
    builder_evidence(&builder, EVIDENCE_CONTEXT, 30, "b", "e");
    builder_evidence(&builder, EVIDENCE_CONTEXT, 20, "a", "e");
    finish();
    ck_assert_uint_eq(builder.verdict.start_ns, 20);
    ck_assert_uint_eq(builder.verdict.end_ns, 30);
    builder.verdict.evidence_count = 0;
    verdict_set_times(&builder.verdict);
    ck_assert_uint_eq(builder.verdict.start_ns, 0);
}
END_TEST

START_TEST(evidence_may_repeat_another) {
    builder_evidence(&builder, EVIDENCE_CAUSE, 20, "a", "e");
    builder_evidence(&builder, EVIDENCE_CAUSE, 30, "b", "e");
    builder_evidence_repeats(&builder, "b");
    builder_evidence_repeats(&builder, "c"); // it was dropped
    finish();
    ck_assert_uint_eq(builder.verdict.evidence_count, 2);
    ck_assert(!builder.verdict.evidence[0].repeats);
    ck_assert(builder.verdict.evidence[1].repeats);
}
END_TEST

START_TEST(evidence_may_stay_in_order) {
    builder.evidence_in_order = true;
    builder_evidence(&builder, EVIDENCE_EFFECT, 30, "b", "later");
    builder_evidence(&builder, EVIDENCE_CAUSE, 0, "c", "number %d", 7);
    finish();
    ck_assert_str_eq(builder.verdict.evidence[0].uid.data, "b");
    ck_assert_str_eq(builder.verdict.evidence[1].description.data, "number 7");
    ck_assert(!builder.verdict.evidence[1].has_time);
}
END_TEST

START_TEST(what_is_beyond_the_bounds_is_counted) {
    static char names[100][16];
    for (int i = 0; i < 100; i++) {
        snprintf(names[i], sizeof names[i], "%d", i);
        builder_entity(&builder, "rank", ROLE_VICTIM, names[i]);
        builder_evidence(&builder, EVIDENCE_CAUSE, (uint64_t)i + 1, names[i], "e");
        if (i < VERDICT_ATTRIBUTES_MAX)
            builder_attribute(&builder, names[i], SLICE("v"));
    }
    finish();
    ck_assert_uint_eq(builder.verdict.entity_count, 64);
    ck_assert_uint_eq(builder.verdict.entities_dropped, 36);
    ck_assert_uint_eq(builder.verdict.evidence_count, 32);
    ck_assert_uint_eq(builder.verdict.evidence_dropped, 68);
    ck_assert_uint_eq(builder.verdict.attribute_count, VERDICT_ATTRIBUTES_MAX);
    ck_assert_uint_eq(builder.verdict.end_ns, 32);
}
END_TEST

START_TEST(templates_are_filled) {
    const struct text_field fields[] = {
        {"gpu", "GPU 3"}, {"who", "rank 5"}, {"none", ""}, {NULL, NULL}};
    ck_assert_str_eq(text_fill(&arena, "{Who} and {gpu}{none}: {who}.", fields),
                     "Rank 5 and GPU 3: rank 5.");
    ck_assert_str_eq(text_fill(&arena, "{None}", fields), "");
    ck_assert_str_eq(text_fill(&arena, "plain", fields), "plain");
}
END_TEST

START_TEST(names_keep_their_spelling) {
    static const char *const NAMES[] = {"gpu7",       "node-a", "n012",
                                        "all_reduce", "rank-3", "the-node.example.com"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        const struct text_field fields[] = {{"who", NAMES[i]}, {NULL, NULL}};
        ck_assert_str_eq(text_fill(&arena, "{Who}", fields), NAMES[i]);
    }
    static const char *const OURS[][2] = {{"rank 3 on gpu7", "Rank 3 on gpu7"},
                                          {"node node-a", "Node node-a"},
                                          {"a process", "A process"},
                                          {"an unnamed node", "An unnamed node"},
                                          {"the job", "The job"},
                                          {"network card mlx5_0", "Network card mlx5_0"},
                                          {"port 1 of mlx5_0", "Port 1 of mlx5_0"}};
    for (size_t i = 0; i < sizeof OURS / sizeof *OURS; i++) {
        const struct text_field fields[] = {{"who", OURS[i][0]}, {NULL, NULL}};
        ck_assert_str_eq(text_fill(&arena, "{Who}", fields), OURS[i][1]);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("verdict_builder");
    TCase *cases = tcase_create("verdict_builder");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, names_keep_their_spelling);
    tcase_add_test(cases, ranks_are_numbers);
    tcase_add_test(cases, evidence_by_time_attributes_by_key);
    tcase_add_test(cases, evidence_of_one_moment_begins_with_causes);
    tcase_add_test(cases, evidence_may_repeat_another);
    tcase_add_test(cases, of_context_alone_the_times_are_its_own);
    tcase_add_test(cases, evidence_may_stay_in_order);
    tcase_add_test(cases, what_is_beyond_the_bounds_is_counted);
    tcase_add_test(cases, templates_are_filled);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
