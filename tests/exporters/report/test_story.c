// SPDX-License-Identifier: Apache-2.0
// The order of stories and of their steps, whom they took along, and what the launcher said.
#include "exporters/report/story.h"

#include "base/memory.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

enum { MANY = 6 };

static struct arena arena;
static struct verdict verdicts[MANY];
static struct attribute roots[MANY];
static struct related related[MANY][MANY];

static void setup(void) {
    arena_init(&arena, 1 << 16);
    memset(verdicts, 0, sizeof verdicts);
    for (int i = 0; i < MANY; i++) {
        snprintf(verdicts[i].id, sizeof verdicts[i].id, "pattern:%d", i);
        roots[i] = (struct attribute){"culprit.root", SLICE("false")};
        verdicts[i].attributes = &roots[i];
        verdicts[i].attribute_count = 1;
        verdicts[i].related = related[i];
        verdicts[i].severity = SEVERITY_ERROR;
        verdicts[i].start_ns = 1000 + (uint64_t)i * 10;
    }
}

static void teardown(void) {
    arena_release(&arena);
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static void root_make(int at) {
    roots[at].value = SLICE("true");
}

static void relate(int from, int to, enum relation relation) {
    struct related *next = &related[from][verdicts[from].related_count++];
    memcpy(next->id, verdicts[to].id, sizeof next->id);
    next->relation = relation;
}

static void cause(int from, int to) {
    relate(from, to, RELATION_CAUSES);
    relate(to, from, RELATION_CAUSED_BY);
}

// "0 1 2 | 3": the steps of each story, by their numbers.
static const char *order(uint32_t count) {
    static char text[128];
    size_t size = 0;
    struct story_list list = stories_make(verdicts, count, &arena);
    text[0] = '\0';
    for (uint32_t i = 0; i < list.count; i++)
        for (uint32_t j = 0; j < list.items[i].count; j++)
            size += (size_t)snprintf(text + size, sizeof text - size, "%s%td",
                                     j > 0   ? " "
                                     : i > 0 ? " | "
                                             : "",
                                     list.items[i].steps[j] - verdicts);
    return text;
}

START_TEST(the_root_comes_first_and_then_times_grow) {
    root_make(2);
    cause(2, 0); // which began before it, by clocks that differ
    cause(2, 4);
    cause(2, 3);
    cause(4, 3); // as does this one before its second cause
    root_make(1);
    ck_assert_str_eq(order(5), "1 | 2 0 3 4");
    ck_assert_str_eq(order(0), "");
    struct story_list list = stories_make(verdicts, 5, &arena);
    ck_assert_uint_eq(story_cause_of(&list.items[1], 2), 0);
    ck_assert_uint_eq(story_cause_of(&list.items[1], 3), 0);
}
END_TEST

START_TEST(of_one_moment_causes_come_first) {
    root_make(0);
    for (int i = 1; i < 4; i++) {
        verdicts[i].start_ns = 2000;
        cause(0, i);
    }
    cause(3, 2);
    cause(2, 1);
    ck_assert_str_eq(order(4), "0 3 2 1");
    struct story_list list = stories_make(verdicts, 4, &arena);
    ck_assert_uint_eq(story_cause_of(&list.items[0], 2), 1);
    // A circle begins with its earliest.
    cause(1, 3);
    ck_assert_str_eq(order(4), "0 1 3 2");
}
END_TEST

START_TEST(nobody_is_left_out) {
    root_make(0);
    relate(1, 0, RELATION_SAME_INCIDENT);              // its root has no room to name it
    relate(2, 5, RELATION_CAUSED_BY);                  // its cause is not there
    roots[3] = (struct attribute){"other", SLICE("")}; // nobody joined it with anything
    ck_assert_str_eq(order(4), "0 1 | 2 | 3");
}
END_TEST

START_TEST(what_is_over_and_what_is_a_note_come_last) {
    for (int i = 0; i < 4; i++)
        root_make(i);
    verdicts[0].state = VERDICT_RESOLVED;
    verdicts[1].severity = SEVERITY_INFO;
    ck_assert_str_eq(order(4), "2 | 3 | 1 | 0");
}
END_TEST

// Of a hang of many ranks, those who wait stand first; what is known of the absent one is told all
// the same.
START_TEST(evidence_of_each_role_is_told) {
    struct evidence evidence[16];
    for (int i = 0; i < 16; i++)
        evidence[i] = (struct evidence){.role = EVIDENCE_EFFECT};
    evidence[9].role = EVIDENCE_CAUSE;
    evidence[13].role = evidence[14].role = evidence[15].role = EVIDENCE_CONTEXT;
    verdicts[0].evidence = evidence;
    verdicts[0].evidence_count = 16;
    const bool *chosen = story_evidence_chosen(&verdicts[0], 8, &arena);
    static const char wanted[] = "1111100001000110";
    for (int i = 0; i < 16; i++)
        ck_assert_msg(chosen[i] == (wanted[i] == '1'), "piece %d", i);
}
END_TEST

START_TEST(all_evidence_is_told_where_there_is_room) {
    struct evidence evidence[8];
    for (int i = 0; i < 8; i++)
        evidence[i] = (struct evidence){.role = i < 7 ? EVIDENCE_CONTEXT : EVIDENCE_CAUSE};
    verdicts[0].evidence = evidence;
    verdicts[0].evidence_count = 8;
    const bool *chosen = story_evidence_chosen(&verdicts[0], 8, &arena);
    for (int i = 0; i < 8; i++)
        ck_assert(chosen[i]);
}
END_TEST

START_TEST(what_repeats_another_piece_is_not_told) {
    struct evidence evidence[16];
    for (int i = 0; i < 16; i++)
        evidence[i] = (struct evidence){.role = EVIDENCE_CAUSE, .repeats = i % 2 == 1};
    verdicts[0].evidence = evidence;
    verdicts[0].evidence_count = 16;
    verdicts[0].evidence_dropped = 5;
    const bool *chosen = story_evidence_chosen(&verdicts[0], 12, &arena);
    for (int i = 0; i < 16; i++)
        ck_assert_msg(chosen[i] == (i % 2 == 0), "piece %d", i);
    ck_assert_uint_eq(story_evidence_count(&verdicts[0]), 13);
}
END_TEST

START_TEST(ranks_are_counted_once_and_without_the_culprit) {
    struct entity of_root[] = {{"rank", SLICE("3"), ROLE_CULPRIT},
                               {"rank", SLICE("9"), ROLE_VICTIM}};
    struct entity of_other[] = {{"rank", SLICE("3"), ROLE_VICTIM},
                                {"rank", SLICE("12"), ROLE_SUSPECT},
                                {"rank", SLICE("1234567890123"), ROLE_VICTIM},
                                {"rank", SLICE("x"), ROLE_VICTIM},
                                {"node", SLICE("7"), ROLE_VICTIM}};
    struct evidence evidence[] = {{.description = SLICE("rank 9 waits"), .role = EVIDENCE_EFFECT},
                                  {.description = SLICE("rank 10 waits"), .role = EVIDENCE_EFFECT},
                                  {.description = SLICE("rank 11 waits"), .role = EVIDENCE_CONTEXT},
                                  {.description = SLICE("ranks wait"), .role = EVIDENCE_EFFECT},
                                  {.description = SLICE("rank "), .role = EVIDENCE_EFFECT}};
    const struct verdict *steps[] = {&verdicts[0], &verdicts[1]};
    struct story story = {steps, 2};
    verdicts[0].entities = of_root, verdicts[0].entity_count = 2;
    verdicts[1].entities = of_other, verdicts[1].entity_count = 5;
    verdicts[1].evidence = evidence, verdicts[1].evidence_count = 5;
    uint32_t count;
    bool more;
    const int32_t *ranks = story_ranks(&story, &arena, &count, &more);
    ck_assert_uint_eq(count, 3);
    ck_assert(ranks[0] == 9 && ranks[1] == 10 && ranks[2] == 12 && !more);
    verdicts[1].entities_dropped = 1;
    story_ranks(&story, &arena, &count, &more);
    ck_assert(more);
    ranks = story_victims(&verdicts[1], &arena, &count);
    ck_assert_uint_eq(count, 3);
    ck_assert(ranks[0] == 3 && ranks[1] == 9 && ranks[2] == 10);
}
END_TEST

START_TEST(the_launcher_is_heard_where_it_names_another) {
    struct entity entities[] = {{"rank", SLICE("1"), ROLE_CULPRIT},
                                {"rank", SLICE("3"), ROLE_VICTIM}};
    verdicts[0].entities = entities, verdicts[0].entity_count = 2;
    ck_assert_uint_eq(story_launcher_named(&verdicts[0], &arena).size, 0);
    static const struct {
        const char *said, *named;
        bool victim;
    } cases[] = {{"1", "", false},
                 {"rank 1 (local 1)", "", false},
                 {"3", "rank 3", true},
                 {"rank 3, exit code 1", "rank 3, exit code 1", true},
                 {"rank 11", "rank 11", false},
                 {"a node", "a node", false},
                 {"", "", false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        roots[0] = (struct attribute){"launcher.root_cause", slice_of(cases[i].said)};
        struct slice named = story_launcher_named(&verdicts[0], &arena);
        ck_assert_msg(slice_equal(named, slice_of(cases[i].named)), "%s", cases[i].said);
        ck_assert(story_launcher_named_victim(&verdicts[0]) == cases[i].victim);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("story");
    TCase *cases = tcase_create("story");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, the_root_comes_first_and_then_times_grow);
    tcase_add_test(cases, of_one_moment_causes_come_first);
    tcase_add_test(cases, nobody_is_left_out);
    tcase_add_test(cases, what_is_over_and_what_is_a_note_come_last);
    tcase_add_test(cases, evidence_of_each_role_is_told);
    tcase_add_test(cases, all_evidence_is_told_where_there_is_room);
    tcase_add_test(cases, what_repeats_another_piece_is_not_told);
    tcase_add_test(cases, ranks_are_counted_once_and_without_the_culprit);
    tcase_add_test(cases, the_launcher_is_heard_where_it_names_another);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
