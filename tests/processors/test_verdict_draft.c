// SPDX-License-Identifier: Apache-2.0
// The order in which the parts of a verdict stand, whatever order they came in.
#include "processors/verdict_draft.h"

#include "base/memory.h"

#include <check.h>
#include <stdlib.h>

static struct arena arena;
static struct verdict_draft draft;

static void setup(void) {
    arena_init(&arena, 4096);
    verdict_draft_begin(&draft, &arena, "pattern", "kind");
}

static void teardown(void) {
    arena_release(&arena);
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

START_TEST(ranks_are_numbers) {
    static const char *const came[] = {"10", "2", "100", "9"};
    static const char *const wanted[] = {"2", "9", "10", "100"};
    for (int i = 0; i < 4; i++)
        verdict_draft_entity(&draft, "rank", ROLE_SUSPECT, came[i]);
    verdict_draft_entity(&draft, "pod", ROLE_VICTIM, "p");
    verdict_draft_entity(&draft, "rank", ROLE_CULPRIT, "11");
    verdict_draft_entity(&draft, "node", ROLE_CULPRIT, "n");
    verdict_draft_finish(&draft);
    const struct entity *entities = draft.verdict.entities;
    ck_assert_uint_eq(draft.verdict.entity_count, 7);
    ck_assert_str_eq(entities[0].name.data, "n");
    ck_assert_str_eq(entities[1].name.data, "11");
    for (int i = 0; i < 4; i++)
        ck_assert_str_eq(entities[2 + i].name.data, wanted[i]);
    ck_assert_str_eq(entities[6].name.data, "p");
}
END_TEST

START_TEST(evidence_by_time_attributes_by_key) {
    verdict_draft_evidence(&draft, EVIDENCE_EFFECT, 30, "b", "later");
    verdict_draft_evidence(&draft, EVIDENCE_CAUSE, 20, "c", "second of its time");
    verdict_draft_evidence(&draft, EVIDENCE_CAUSE, 20, "a", "first");
    verdict_draft_evidence(&draft, EVIDENCE_CONTEXT, 10, "d", "before it");
    verdict_draft_evidence(&draft, EVIDENCE_CAUSE, 99, "a", "a repeat");
    verdict_draft_attribute(&draft, "b.key", "1");
    verdict_draft_attribute(&draft, "a.key", "2");
    verdict_draft_attribute(&draft, "none", "");
    verdict_draft_finish(&draft);
    static const char wanted[] = "dacb";
    ck_assert_uint_eq(draft.verdict.evidence_count, 4);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(draft.verdict.evidence[i].uid.data[0], wanted[i]);
    ck_assert_uint_eq(draft.verdict.start_ns, 20); // context does not count
    ck_assert_uint_eq(draft.verdict.end_ns, 30);
    ck_assert_uint_eq(draft.verdict.attribute_count, 2);
    ck_assert_str_eq(draft.verdict.attributes[0].key, "a.key");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("verdict_draft");
    TCase *cases = tcase_create("verdict_draft");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, ranks_are_numbers);
    tcase_add_test(cases, evidence_by_time_attributes_by_key);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
