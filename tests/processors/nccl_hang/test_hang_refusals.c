// SPDX-License-Identifier: Apache-2.0
// Dumps that were there and could not be read: what they did is not known, and nobody is blamed
// for it.

#include "cli/component_list.h"
#include "pipeline/model/event.h"
#include "pipeline/model/node_event.h"
#include "tests/support/detector.h"

#include <string.h>

enum { EVENTS_MAX = 64, ENTRIES_MAX = 8, RANKS = 8 };
static const uint64_t NOON = UINT64_C(1795000000) * 1000000000;

static struct detector detector;
static struct arena arena;
static struct event events[EVENTS_MAX];
static uint32_t event_count;

static void setup(void) {
    event_count = 0;
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
    return NOON + (uint64_t)(int64_t)(seconds * 1e9);
}

static struct event *add_event(struct flight_dump *dump, double seconds) {
    ck_assert_uint_lt(event_count, EVENTS_MAX);
    dump->whole = true;
    dump->observed_ns = at(seconds);
    events[event_count] = (struct event){
        .time_ns = at(seconds), .rank = dump->rank, .kind = EVENT_FLIGHT, .flight = dump};
    return &events[event_count++];
}

// Of the whole job of RANKS ranks.
static struct flight_dump *dump_at(int32_t rank, double seconds) {
    struct flight_dump *dump = arena_zero(&arena, 1, sizeof *dump);
    struct flight_group *group = arena_zero(&arena, 1, sizeof *group);
    int32_t *members = arena_take(&arena, RANKS * sizeof *members);
    for (int32_t i = 0; i < RANKS; i++)
        members[i] = i;
    *group = (struct flight_group){SLICE("0"), SLICE("default_pg"), members, RANKS};
    dump->rank = rank;
    dump->entries = arena_zero(&arena, ENTRIES_MAX, sizeof *dump->entries);
    dump->groups = group;
    dump->group_count = 1;
    dump->reports_states = true;
    dump->backend = SLICE("nccl");
    add_event(dump, seconds);
    return dump;
}

static struct flight_entry *add(struct flight_dump *dump, int64_t sequence, enum flight_state state,
                                double created) {
    ck_assert_uint_lt(dump->entry_count, ENTRIES_MAX);
    struct flight_entry *entry =
        (struct flight_entry *)(uintptr_t)&dump->entries[dump->entry_count];
    *entry = (struct flight_entry){.record_id = dump->entry_count++,
                                   .collective_seq_id = sequence,
                                   .group = SLICE("0"),
                                   .desc = SLICE("default_pg"),
                                   .name = SLICE("nccl:all_reduce"),
                                   .created_ns = at(created),
                                   .started_ns = state == FLIGHT_SCHEDULED ? 0 : at(created + 0.1),
                                   .completed_ns = state == FLIGHT_COMPLETED ? at(created + 1) : 0,
                                   .state = state,
                                   .retired = state == FLIGHT_COMPLETED};
    return entry;
}

// A dump as a file that could not be read, written then.
static struct event *refuse(int32_t rank, double seconds) {
    struct flight_dump *dump = arena_zero(&arena, 1, sizeof *dump);
    *dump = (struct flight_dump){.rank = rank,
                                 .is_file = true,
                                 .backend = SLICE(""),
                                 .unreadable = SLICE("at byte 7: it breaks off")};
    struct event *event = add_event(dump, seconds);
    event->timeless = true;
    event->source = intern(SLICE("/data/fr/nccl_trace_rank_6"));
    return event;
}

enum { NOBODY = 99 };

// All wait in 1201 for 100 s but `absent`, who ended 1200, and `refused`, of whom nothing comes.
static void add_hang(int32_t absent, int32_t refused) {
    for (int32_t rank = 0; rank < RANKS; rank++) {
        if (rank == refused)
            continue;
        struct flight_dump *dump = dump_at(rank, 100);
        add(dump, 1200, FLIGHT_COMPLETED, -5);
        if (rank != absent)
            add(dump, 1201, FLIGHT_STARTED, 0);
    }
}

static const char *judge(void) {
    detector_feed(&detector, events, event_count);
    event_count = 0;
    detector_finish(&detector);
    ck_assert_uint_eq(detector.verdict_count, 1);
    return detector_lines(&detector);
}

static void assert_has(const char *lines, const char *text) {
    ck_assert_msg(strstr(lines, text) != NULL, "%s is not in\n%s", text, lines);
}

static void assert_lacks(const char *lines, const char *text) {
    ck_assert_msg(strstr(lines, text) == NULL, "%s is in\n%s", text, lines);
}

static void assert_role(const char *lines, int32_t rank, const char *role) {
    char text[128];
    snprintf(text, sizeof text, "{\"kind\":\"rank\",\"name\":\"%d\",\"role\":\"%s\"}", rank, role);
    assert_has(lines, text);
}

static void assert_not_named(const char *lines, int32_t rank) {
    char text[64];
    snprintf(text, sizeof text, "{\"kind\":\"rank\",\"name\":\"%d\"", rank);
    assert_lacks(lines, text);
}

#define WHY "the dump of rank 6 could not be read (fr/nccl_trace_rank_6: at byte 7: it breaks off)"

START_TEST(a_refused_dump_is_neither_missing_nor_blamed) {
    add_hang(NOBODY, 6);
    refuse(6, 101);
    const char *lines = judge();
    assert_has(lines, "\"kind\":\"missing_dump\",\"state\"");
    assert_has(lines,
               "7 ranks wait in all_reduce 1201 of default_pg; the dump of rank 6 could not "
               "be read\"");
    assert_has(lines, "\"completeness\":\"partial\",\"confidence\":40");
    assert_has(lines, WHY);
    assert_has(lines, "\"culprit.not_seen\":\"the dump of rank 6 could not be read\"");
    assert_has(lines, "fr:0:unread:6");
    assert_has(lines, "What rank 6 did is not known: get the dump of rank 6 once more, whole");
    assert_not_named(lines, 6);
    assert_lacks(lines, "\"role\":\"culprit\"");
    assert_lacks(lines, "\"role\":\"suspect\"");
}
END_TEST

// Without any dump a rank is suspected; one beside it whose dump could not be read is not.
START_TEST(only_who_left_no_dump_is_suspected) {
    add_hang(NOBODY, 6);
    refuse(6, 101);
    event_count--;
    events[2] = events[event_count]; // in place of the dump of rank 2
    const char *lines = judge();
    assert_has(lines,
               "6 ranks wait in all_reduce 1201 of default_pg; no dump of rank 2 was read, "
               "and the dump of rank 6 could not be read\"");
    assert_has(lines, "\"confidence\":25"); // a quarter of the ranks is not known
    assert_role(lines, 2, "suspect");
    assert_not_named(lines, 6);
}
END_TEST

START_TEST(who_is_known_to_be_missing_is_blamed) {
    add_hang(3, 6);
    refuse(6, 101);
    const char *lines = judge();
    assert_has(lines, "Rank 3 never called all_reduce 1201 of default_pg; 6 ranks wait for it");
    assert_has(lines, "\"completeness\":\"partial\",\"confidence\":85");
    assert_role(lines, 3, "culprit");
    assert_not_named(lines, 6);
    assert_has(lines, WHY);
}
END_TEST

// Others may be to blame by what their own dumps say: no surer than where nothing is known.
START_TEST(what_depends_on_it_is_not_sure) {
    add_hang(NOBODY, 6);
    refuse(6, 101);
    struct flight_entry *entry = (struct flight_entry *)(uintptr_t)&events[2].flight->entries[1];
    entry->state = FLIGHT_SCHEDULED;
    entry->started_ns = 0;
    const char *lines = judge();
    assert_has(lines, "\"kind\":\"not_started\",\"state\"");
    assert_has(lines, "\"completeness\":\"partial\",\"confidence\":40");
    assert_role(lines, 2, "culprit");
    assert_has(lines, WHY);
}
END_TEST

START_TEST(who_came_out_alone_is_not_sure) {
    for (int32_t rank = 0; rank < RANKS; rank++)
        if (rank != 6)
            add(dump_at(rank, 200), 1201, rank == 2 ? FLIGHT_STARTED : FLIGHT_COMPLETED, 0);
    refuse(6, 201);
    const char *lines = judge();
    assert_has(lines, "\"kind\":\"not_completed\",\"state\"");
    assert_has(lines, "\"completeness\":\"partial\",\"confidence\":40");
    assert_role(lines, 2, "culprit");
}
END_TEST

// A majority that the unknown ones could turn is none to be sure of; one that they cannot is.
START_TEST(a_majority_that_holds_whatever_they_did) {
    for (int round = 0; round < 2; round++) {
        if (round == 1) {
            teardown();
            setup();
        }
        for (int32_t rank = 0; rank < RANKS; rank++) {
            if (rank >= 3 && (round == 1 || rank == 6)) {
                refuse(rank, 101);
                continue;
            }
            struct flight_entry *entry = add(dump_at(rank, 100), 1201, FLIGHT_STARTED, 0);
            if (rank == 2)
                entry->name = SLICE("nccl:broadcast");
        }
        const char *lines = judge();
        assert_has(lines, "\"kind\":\"mismatch_type\",\"state\"");
        assert_role(lines, 2, "culprit");
        // Five of eight are not known: 40, less 15 for each of two quarters.
        assert_has(lines, round == 0 ? "\"completeness\":\"partial\",\"confidence\":85"
                                     : "\"completeness\":\"partial\",\"confidence\":10");
    }
}
END_TEST

START_TEST(a_send_waits_for_one_whose_dump_could_not_be_read) {
    struct flight_entry *entry = add(dump_at(2, 100), 5, FLIGHT_STARTED, 0);
    entry->is_p2p = true;
    entry->p2p_seq_id = 1;
    entry->name = SLICE("nccl:send 2->6");
    refuse(6, 101);
    const char *lines = judge();
    assert_has(lines, "\"kind\":\"missing_peer\",\"state\"");
    assert_has(lines,
               "1 rank waits in default_pg (operation 1); the dump of rank 6 could not be "
               "read\"");
    assert_has(lines, "\"completeness\":\"partial\"");
    assert_not_named(lines, 6);
    assert_has(lines, WHY);
}
END_TEST

// -- which dump counts ----------------------------------------------------------------------------

// Of two of a rank the one that was written later, whichever is read first.
START_TEST(a_later_dump_that_can_be_read_counts) {
    add_hang(6, NOBODY);
    refuse(6, _i < 2 ? 99 : 101);
    struct event last = events[event_count - 1];
    if (_i % 2 == 1) {
        events[event_count - 1] = events[0];
        events[0] = last;
    }
    const char *lines = judge();
    if (_i < 2) {
        assert_has(lines, "Rank 6 never called");
        assert_lacks(lines, "could not be read");
        assert_has(lines, "\"completeness\":\"full\",\"confidence\":85");
    } else {
        assert_has(lines, "the dump of rank 6 could not be read");
        assert_not_named(lines, 6);
    }
}
END_TEST

// What a dump shows stands, also where a later one could not be read.
START_TEST(what_was_seen_was_seen) {
    add_hang(3, NOBODY);
    refuse(6, 101);
    const char *lines = judge();
    assert_has(lines, "Rank 3 never called all_reduce 1201 of default_pg; 7 ranks wait for it");
    assert_has(lines, "\"completeness\":\"full\",\"confidence\":85");
    assert_role(lines, 6, "victim");
}
END_TEST

// A line with a time of its own from before the wait says nothing of it; nor does it excuse.
START_TEST(an_old_line_does_not_matter) {
    add_hang(NOBODY, 6);
    struct event *event = refuse(6, _i == 0 ? -50 : 50);
    event->timeless = false;
    const char *lines = judge();
    if (_i == 0) {
        assert_role(lines, 6, "suspect");
        assert_lacks(lines, "could not be read");
    } else {
        assert_not_named(lines, 6);
        assert_has(lines, WHY);
    }
}
END_TEST

// Records that stream tell what the rank does, whatever became of its dump.
START_TEST(records_that_stream_tell_more) {
    add_hang(NOBODY, 6);
    struct flight_dump *dump = dump_at(6, 90);
    add(dump, 1200, FLIGHT_COMPLETED, -5);
    dump->whole = false;
    refuse(6, 101);
    const char *lines = judge();
    assert_has(lines, "Rank 6 never called");
    assert_role(lines, 6, "culprit");
}
END_TEST

// Jobs without names are told apart by where their ranks run.
START_TEST(of_another_job_on_another_node) {
    add_hang(6, NOBODY);
    for (uint32_t i = 0; i < event_count; i++)
        events[i].node = intern(SLICE("a1"));
    refuse(6, 101)->node = intern(_i == 0 ? SLICE("b1") : SLICE("a1"));
    const char *lines = judge();
    assert_has(lines, _i == 0 ? "Rank 6 never called" : "the dump of rank 6 could not be read");
}
END_TEST

// -- state ----------------------------------------------------------------------------------------

START_TEST(it_is_known_after_a_restart) {
    refuse(6, 101);
    detector_feed(&detector, events, event_count);
    event_count = 0;
    struct detector next = detector_open(&processor_nccl_hang);
    detector_start(&next);
    struct state_list from = {0}, to = {0};
    component_list_state(&processor_nccl_hang, detector.instance, &from);
    component_list_state(&processor_nccl_hang, next.instance, &to);
    ck_assert_uint_eq(from.count, to.count);
    for (uint32_t i = 0; i < from.count; i++) {
        const struct table *table = from.entries[i].table;
        if (table == NULL) {
            memcpy(to.entries[i].bytes, from.entries[i].bytes, from.entries[i].size);
            continue;
        }
        table_load(to.entries[i].table, table->used, table->free_head, table->free_count);
        for (uint32_t page = 0; page < table_page_count(table); page++) {
            size_t size;
            const void *bytes = table_page(table, page, &size);
            memcpy(table_page(to.entries[i].table, page, &size), bytes, size);
        }
    }
    component_restored(&processor_nccl_hang, next.instance);
    detector_close(&detector);
    detector = next;
    add_hang(NOBODY, 6);
    const char *lines = judge();
    assert_has(lines, WHY);
    assert_not_named(lines, 6);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("hang_refusals");
    TCase *tcase = tcase_create("hang_refusals");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_refused_dump_is_neither_missing_nor_blamed);
    tcase_add_test(tcase, only_who_left_no_dump_is_suspected);
    tcase_add_test(tcase, who_is_known_to_be_missing_is_blamed);
    tcase_add_test(tcase, what_depends_on_it_is_not_sure);
    tcase_add_test(tcase, who_came_out_alone_is_not_sure);
    tcase_add_test(tcase, a_majority_that_holds_whatever_they_did);
    tcase_add_test(tcase, a_send_waits_for_one_whose_dump_could_not_be_read);
    tcase_add_loop_test(tcase, a_later_dump_that_can_be_read_counts, 0, 4);
    tcase_add_test(tcase, what_was_seen_was_seen);
    tcase_add_loop_test(tcase, an_old_line_does_not_matter, 0, 2);
    tcase_add_test(tcase, records_that_stream_tell_more);
    tcase_add_loop_test(tcase, of_another_job_on_another_node, 0, 2);
    tcase_add_test(tcase, it_is_known_after_a_restart);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
