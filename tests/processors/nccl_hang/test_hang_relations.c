// SPDX-License-Identifier: Apache-2.0
// Which hang waits for which: chains of groups, circles, ranks that two findings name, and what
// must not be joined.

#include "cli/component_list.h"
#include "pipeline/model/event.h"
#include "pipeline/model/node_event.h"
#include "tests/support/detector.h"

#include <string.h>

enum { EVENTS_MAX = 64, ENTRIES_MAX = 8 };
static const uint64_t NOON = UINT64_C(1795000000) * 1000000000;

static struct detector detector;
static struct arena arena;
static struct event events[EVENTS_MAX];
static uint32_t event_count;
static const char *job, *node; // of the dumps that are made; NULL: none

static void setup(void) {
    event_count = 0;
    job = "j";
    node = NULL;
    arena_init(&arena, 1 << 14);
    detector = detector_open(&processor_nccl_hang);
    detector_start(&detector);
}

static void teardown(void) {
    detector_close(&detector);
    arena_release(&arena);
    metrics_release();
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static uint64_t at(double seconds) {
    return NOON + (uint64_t)(seconds * 1e9);
}

static string_id name_or_none(const char *text) {
    return text == NULL ? STRING_NONE : intern(slice_of(text));
}

static struct flight_dump *dump_at(int32_t rank, double seconds) {
    ck_assert_uint_lt(event_count, EVENTS_MAX);
    struct flight_dump *dump = arena_zero(&arena, 1, sizeof *dump);
    dump->entries = arena_zero(&arena, ENTRIES_MAX, sizeof *dump->entries);
    dump->groups = arena_zero(&arena, 8, sizeof *dump->groups);
    dump->rank = rank;
    dump->whole = true;
    dump->reports_states = true;
    dump->backend = SLICE("nccl");
    events[event_count++] = (struct event){.time_ns = at(seconds),
                                           .rank = rank,
                                           .job = name_or_none(job),
                                           .node = name_or_none(node),
                                           .kind = EVENT_FLIGHT,
                                           .flight = dump};
    return dump;
}

static struct flight_dump *dump_of(int32_t rank) {
    return dump_at(rank, 400);
}

static void add(struct flight_dump *dump, const char *group, int64_t sequence,
                enum flight_state state, double created) {
    ck_assert_uint_lt(dump->entry_count, ENTRIES_MAX);
    struct flight_entry *entry =
        (struct flight_entry *)(uintptr_t)&dump->entries[dump->entry_count];
    *entry =
        (struct flight_entry){.record_id = dump->entry_count++,
                              .collective_seq_id = sequence,
                              .group = slice_of(group),
                              .desc = slice_of(group),
                              .name = SLICE("nccl:all_reduce"),
                              .created_ns = at(created),
                              .started_ns = state == FLIGHT_SCHEDULED ? 0 : at(created + 0.1),
                              .completed_ns = state == FLIGHT_COMPLETED ? at(created + 0.2) : 0,
                              .state = state,
                              .retired = state == FLIGHT_COMPLETED};
}

static void add_p2p(struct flight_dump *dump, const char *group, const char *name, double created) {
    add(dump, group, 1, FLIGHT_STARTED, created);
    struct flight_entry *entry =
        (struct flight_entry *)(uintptr_t)&dump->entries[dump->entry_count - 1];
    entry->is_p2p = true;
    entry->p2p_seq_id = 1;
    entry->name = slice_of(name);
}

// The rank's dump says that these two or more ranks are the members of the group.
static void members(struct flight_dump *dump, const char *group, const int32_t *ranks,
                    uint32_t count) {
    struct flight_group *row = (struct flight_group *)(uintptr_t)&dump->groups[dump->group_count++];
    int32_t *copy = arena_take(&arena, count * sizeof *ranks);
    memcpy(copy, ranks, count * sizeof *ranks);
    *row = (struct flight_group){slice_of(group), slice_of(group), copy, count};
}
#define MEMBERS(dump, group, ...)                                                                  \
    members(dump, group, (const int32_t[]){__VA_ARGS__},                                           \
            sizeof(const int32_t[]){__VA_ARGS__} / sizeof(int32_t))

static void judge(void) {
    detector_feed(&detector, events, event_count);
    event_count = 0;
    detector_judge(&detector, UINT64_MAX, true);
    detector_lines(&detector);
}

// The verdict whose headline holds this text.
static struct slice verdict_with(const char *text) {
    const char *line = detector_lines(&detector);
    while (*line != '\0') {
        size_t size = strcspn(line, "\n");
        const char *found = strstr(line, text);
        if (found != NULL && found < line + size)
            return (struct slice){line, size};
        line += size + 1;
    }
    ck_abort_msg("no verdict has %s:\n%s", text, detector_lines(&detector));
    return (struct slice){NULL, 0};
}

// How the verdict with this headline says that it stands to the other: "caused_by",
// "same_incident"; "": not at all.
static const char *relation(const char *of, const char *to) {
    char id[64], *start;
    struct slice line = verdict_with(of), other = verdict_with(to);
    ck_assert_int_eq(sscanf(strstr(other.data, "\"id\":\""), "\"id\":\"%63[^\"]", id), 1);
    char *copy = memcpy(arena_zero(&arena, 1, line.size + 1), line.data, line.size);
    char *related = strstr(copy, "\"related\":");
    if (related == NULL || (start = strstr(related, id)) == NULL)
        return "";
    start += strlen(id) + strlen("\",\"relation\":\"");
    start[strcspn(start, "\"")] = '\0';
    return start;
}

static void assert_verdicts(uint32_t count) {
    ck_assert_msg(detector.verdict_count == count, "%u verdicts:\n%s", detector.verdict_count,
                  detector_lines(&detector));
}

// Rank 3 never comes to `b`, where 2 waits; 1 waits for 2 in `c`, 0 for 1 in `d`.
static void add_chain(void) {
    for (int32_t rank = 0; rank < 4; rank++) {
        struct flight_dump *dump = dump_of(rank);
        if (rank >= 2)
            MEMBERS(dump, "b", 2, 3);
        if (rank == 1 || rank == 2)
            MEMBERS(dump, "c", 1, 2);
        if (rank <= 1)
            MEMBERS(dump, "d", 0, 1);
        if (rank >= 2)
            add(dump, "b", 4, FLIGHT_COMPLETED, 0);
        if (rank == 1 || rank == 2)
            add(dump, "c", 4, FLIGHT_COMPLETED, 0);
        if (rank <= 1)
            add(dump, "d", 4, FLIGHT_COMPLETED, 0);
        if (rank < 3) // who waits last waited first: times do not decide
            add(dump, rank == 2 ? "b" : rank == 1 ? "c" : "d", 5, FLIGHT_STARTED, 10 + rank);
    }
}

START_TEST(a_chain_of_groups) {
    add_chain();
    judge();
    assert_verdicts(3);
    ck_assert_str_eq(relation("of d for rank 1", "of c for rank 2"), "caused_by");
    ck_assert_str_eq(relation("of c for rank 2", "Rank 3 never called"), "caused_by");
    ck_assert_str_eq(relation("Rank 3 never called", "of c for rank 2"), "");
    ck_assert_str_eq(relation("of d for rank 1", "Rank 3 never called"), "");
}
END_TEST

// Two jobs, or two jobs without a name on different nodes, with the same numbers of ranks.
START_TEST(two_hangs_at_once_stay_two) {
    for (int i = 0; i < 2; i++) {
        job = _i == 1 ? NULL : i == 0 ? "one" : "two";
        node = _i == 0 ? NULL : i == 0 ? "node-a" : "node-b";
        for (int32_t rank = 0; rank < 2; rank++) {
            struct flight_dump *dump = dump_of(rank);
            const char *group = i == 0 ? "x" : "y";
            MEMBERS(dump, group, 0, 1);
            add(dump, group, 4, FLIGHT_COMPLETED, 0);
            if (rank == i) // rank 1 is missing in x, rank 0 in y
                add(dump, group, 5, FLIGHT_STARTED, 10);
        }
    }
    judge();
    assert_verdicts(2);
    ck_assert_str_eq(relation("Rank 1 never called", "Rank 0 never called"), "");
    ck_assert_str_eq(relation("Rank 0 never called", "Rank 1 never called"), "");
}
END_TEST

// Both name rank 1: on one node, of one job or of none, that is one incident; the one that waited
// first explains the other.
START_TEST(findings_that_name_the_same_rank) {
    job = _i == 0 ? "j" : NULL;
    node = _i == 2 ? "node-a" : NULL;
    for (int32_t rank = 0; rank < 3; rank++) {
        struct flight_dump *dump = dump_of(rank);
        if (rank < 2)
            MEMBERS(dump, "x", 0, 1);
        if (rank > 0)
            MEMBERS(dump, "y", 1, 2);
        if (rank < 2)
            add(dump, "x", 4, FLIGHT_COMPLETED, 0);
        if (rank > 0)
            add(dump, "y", 4, FLIGHT_COMPLETED, 0);
        if (rank != 1)
            add(dump, rank == 0 ? "x" : "y", 5, FLIGHT_STARTED, 10 + rank);
    }
    judge();
    assert_verdicts(2);
    ck_assert_str_eq(relation("5 of y; 1 rank waits", "5 of x; 1 rank waits"), "caused_by");
    ck_assert_str_eq(relation("5 of x; 1 rank waits", "5 of y; 1 rank waits"), "");
}
END_TEST

// Where a finding has a culprit of its own, who waits elsewhere makes it one incident and no more.
START_TEST(a_culprit_of_its_own) {
    for (int32_t rank = 0; rank < 5; rank++) {
        struct flight_dump *dump = dump_of(rank);
        if (rank < 3)
            MEMBERS(dump, "x", 0, 1, 2);
        if (rank >= 2)
            MEMBERS(dump, "y", 2, 3, 4);
        if (rank < 3)
            add(dump, "x", 4, FLIGHT_COMPLETED, 0);
        if (rank >= 2)
            add(dump, "y", 4, FLIGHT_COMPLETED, 0);
        if (rank == 0) // for 1, who is nowhere, and for 2, who waits for 4 in y
            add(dump, "x", 5, FLIGHT_STARTED, 10);
        if (rank == 2 || rank == 3)
            add(dump, "y", 5, FLIGHT_STARTED, 9);
    }
    judge();
    assert_verdicts(2);
    ck_assert_str_eq(relation("Rank 1 never called", "Rank 4 never called"), "same_incident");
    ck_assert_str_eq(relation("Rank 4 never called", "Rank 1 never called"), "");
}
END_TEST

// Ranks 0 and 1 call x and y in different orders: one of the two explains the other, and only one.
START_TEST(a_circle_has_one_root) {
    for (int32_t rank = 0; rank < 2; rank++) {
        struct flight_dump *dump = dump_of(rank);
        MEMBERS(dump, "x", 0, 1);
        MEMBERS(dump, "y", 0, 1);
        add(dump, "x", 4, FLIGHT_COMPLETED, 0);
        add(dump, "y", 4, FLIGHT_COMPLETED, 0);
        add(dump, rank == 0 ? "x" : "y", 5, FLIGHT_STARTED, 10 + rank);
    }
    judge();
    assert_verdicts(2);
    ck_assert_str_eq(relation("of x for rank 1", "of y for rank 0"), "same_incident");
    ck_assert_str_eq(relation("of y for rank 0", "of x for rank 1"), "caused_by");
}
END_TEST

// On a circle a missing rank that is to blame goes before one of which no dump was found, whichever
// waited first.
START_TEST(on_a_circle_the_gravest_is_the_root) {
    for (int32_t rank = 0; rank < 3; rank++) {
        struct flight_dump *dump = dump_of(rank);
        MEMBERS(dump, "x", 0, 1, 9);
        if (rank == 2)
            dump->group_count = 0;
        MEMBERS(dump, "y", 0, 1, 2);
        if (rank < 2)
            add(dump, "x", 4, FLIGHT_COMPLETED, 0);
        add(dump, "y", 4, FLIGHT_COMPLETED, 0);
        if (rank < 2)
            add(dump, rank == 0 ? "x" : "y", 5, FLIGHT_STARTED, 10 + rank);
    }
    judge();
    assert_verdicts(2);
    // x: waits for 1, who waits in y, and for 9, of whom nothing is known. y: waits for 0, who
    // waits in x, and for 2, who is nowhere.
    ck_assert_str_eq(relation("no dump of rank 9", "Rank 2 never called"), "caused_by");
    ck_assert_str_eq(relation("Rank 2 never called", "no dump of rank 9"), "same_incident");
}
END_TEST

// Groups of one name that were split off: rank 2 waits in the other one of it.
START_TEST(two_groups_of_one_name) {
    for (int32_t rank = 0; rank < 4; rank++) {
        struct flight_dump *dump = dump_of(rank);
        if (rank < 2)
            MEMBERS(dump, "s", 0, 1);
        else
            MEMBERS(dump, "s", 2, 3);
        MEMBERS(dump, "w", 0, 1, 2, 3);
        add(dump, "s", 4, FLIGHT_COMPLETED, 0);
        add(dump, "w", 4, FLIGHT_COMPLETED, 0);
        if (rank == 0 || rank == 2) // for 1 and for 3
            add(dump, "s", 5, FLIGHT_STARTED, 10 + rank);
    }
    judge();
    assert_verdicts(2);
    ck_assert_str_eq(relation("Rank 1 never called", "Rank 3 never called"), "");
    ck_assert_str_eq(relation("Rank 3 never called", "Rank 1 never called"), "");
}
END_TEST

// Rank 0 waits in a collective for 1, who waits to receive from 2, who waits to receive from 3.
START_TEST(sends_and_receives_lead_to_the_end_of_their_chain) {
    for (int32_t rank = 0; rank < 4; rank++) {
        struct flight_dump *dump = dump_of(rank);
        if (rank < 2)
            MEMBERS(dump, "x", 0, 1);
        MEMBERS(dump, "p", 0, 1, 2, 3);
        if (rank < 2)
            add(dump, "x", 4, FLIGHT_COMPLETED, 0);
        add(dump, "p", 4, FLIGHT_COMPLETED, 0);
        if (rank == 0)
            add(dump, "x", 5, FLIGHT_STARTED, 10);
        if (rank == 1)
            add_p2p(dump, "p", "nccl:recv 1<-2", 11);
        if (rank == 2)
            add_p2p(dump, "p", "nccl:recv 2<-3", 12);
    }
    judge();
    assert_verdicts(2);
    ck_assert_str_eq(relation("of x for rank 1", "Rank 3 never came to the other side"),
                     "caused_by");
}
END_TEST

// Rank 1 waited in y before its process was started again; now it is nowhere, and to blame.
START_TEST(the_newest_dump_of_a_rank_counts) {
    struct flight_dump *dump = dump_at(1, 100);
    MEMBERS(dump, "y", 1, 2);
    add(dump, "y", 5, FLIGHT_STARTED, 10);
    for (int32_t rank = 0; rank < 2; rank++) {
        dump = dump_of(rank);
        MEMBERS(dump, "x", 0, 1);
        add(dump, "x", 4, FLIGHT_COMPLETED, 200);
        if (rank == 0)
            add(dump, "x", 5, FLIGHT_STARTED, 210);
    }
    judge();
    assert_verdicts(1);
    verdict_with("Rank 1 never called all_reduce 5 of x");
}
END_TEST

// Ranks 1 and 3 left no dump: when both ran on one node that is one reason, else it may be two.
START_TEST(silent_ranks_of_one_node) {
    static struct rank_place places[2];
    for (int32_t rank = 0; rank < 3; rank += 2) {
        struct flight_dump *dump = dump_of(rank);
        const char *group = rank == 0 ? "x" : "y";
        if (rank == 0)
            MEMBERS(dump, group, 0, 1);
        else
            MEMBERS(dump, group, 2, 3);
        add(dump, group, 5, FLIGHT_STARTED, 10 + rank);
    }
    for (int i = 0; i < 2; i++) {
        places[i] = (struct rank_place){.rank = 1 + 2 * i,
                                        .node = intern(_i == 0 || i == 0 ? SLICE("a") : SLICE("b")),
                                        .address = PCI_NONE};
        events[event_count++] = (struct event){.time_ns = at(0),
                                               .rank = places[i].rank,
                                               .job = name_or_none(job),
                                               .kind = EVENT_RANK_MAP,
                                               .place = &places[i]};
    }
    judge();
    assert_verdicts(2);
    ck_assert_str_eq(relation("no dump of rank 3", "no dump of rank 1"),
                     _i == 0 ? "caused_by" : "");
    ck_assert_str_eq(relation("no dump of rank 1", "no dump of rank 3"), "");
}
END_TEST

// The same bytes whatever came first.
START_TEST(order_of_arrival_means_nothing) {
    char *first = NULL;
    for (int round = 0; round < 2; round++) {
        add_chain();
        if (round == 1)
            for (uint32_t i = 0; i < event_count / 2; i++) {
                struct event event = events[i];
                events[i] = events[event_count - 1 - i];
                events[event_count - 1 - i] = event;
            }
        judge();
        const char *lines = detector_lines(&detector);
        if (round == 0)
            first = memory_copy_text(lines, strlen(lines));
        ck_assert_str_eq(lines, first);
        detector_close(&detector);
        detector = detector_open(&processor_nccl_hang);
        detector_start(&detector);
    }
    memory_give(first);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("hang_relations");
    TCase *tcase = tcase_create("relations");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_chain_of_groups);
    tcase_add_loop_test(tcase, two_hangs_at_once_stay_two, 0, 2);
    tcase_add_loop_test(tcase, findings_that_name_the_same_rank, 0, 3);
    tcase_add_test(tcase, a_culprit_of_its_own);
    tcase_add_test(tcase, a_circle_has_one_root);
    tcase_add_test(tcase, on_a_circle_the_gravest_is_the_root);
    tcase_add_test(tcase, two_groups_of_one_name);
    tcase_add_test(tcase, sends_and_receives_lead_to_the_end_of_their_chain);
    tcase_add_test(tcase, the_newest_dump_of_a_rank_counts);
    tcase_add_loop_test(tcase, silent_ranks_of_one_node, 0, 2);
    tcase_add_test(tcase, order_of_arrival_means_nothing);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
