// SPDX-License-Identifier: Apache-2.0
// Hangs that only the lines of watchdogs tell of: who waits, who is behind, who never came.

#include "cli/component_list.h"
#include "pipeline/model/event.h"
#include "pipeline/model/node_event.h"
#include "pipeline/model/observation.h"
#include "tests/processors/node_lines.h"
#include "tests/support/detector.h"

#include <string.h>

enum { EVENTS_MAX = 128 };
static const uint64_t NOON = UINT64_C(1795000000) * 1000000000;

static struct detector detector;
static struct arena arena;
static struct event events[EVENTS_MAX];
static uint32_t event_count;

static void setup(void) {
    event_count = 0;
    arena_init(&arena, 1 << 14);
    detector = detector_open(&processor_nccl_hang);
}

static void teardown(void) {
    detector_close(&detector);
    arena_release(&arena);
    metrics_release();
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static struct event *add(int32_t rank, enum event_kind kind, double seconds) {
    ck_assert_uint_lt(event_count, EVENTS_MAX);
    struct event *event = &events[event_count++];
    *event =
        (struct event){.time_ns = NOON + (uint64_t)(seconds * 1e9), .rank = rank, .kind = kind};
    return event;
}

static struct app_line *add_line(int32_t rank, enum app_line_kind kind, int64_t sequence,
                                 double seconds) {
    struct app_line *line = arena_zero(&arena, 1, sizeof *line);
    *line = (struct app_line){.kind = kind,
                              .rank = rank,
                              .group_rank = -1,
                              .collective_seq_id = sequence,
                              .input_elements = -1,
                              .output_elements = -1,
                              .timeout_ms = -1,
                              .ran_ms = -1,
                              .last_enqueued = -1,
                              .last_completed = -1};
    add(rank, EVENT_APP_LINE, seconds)->line = line;
    return line;
}

// "Watchdog caught collective operation timeout", which names no group.
static struct app_line *add_timeout(int32_t rank, int64_t sequence, double seconds) {
    struct app_line *line = add_line(rank, APP_TIMEOUT, sequence, seconds);
    line->operation = SLICE("ALLREDUCE");
    line->input_elements = 4096;
    line->timeout_ms = 600000;
    line->ran_ms = 600040;
    return line;
}

// "Timeout at NCCL work: …", "failure detected by watchdog at work sequence id: …".
static struct app_line *add_status(int32_t rank, const char *group, int32_t group_rank,
                                   int64_t sequence, double seconds) {
    struct app_line *line = add_line(rank, APP_PROGRESS, sequence, seconds);
    line->group = slice_of(group);
    line->group_desc = slice_of(group);
    line->group_rank = group_rank;
    line->has_progress = true;
    line->last_enqueued = sequence + 2;
    line->last_completed = sequence - 1;
    return line;
}

static void add_wait(int32_t rank, const char *group, int32_t group_rank, int64_t sequence,
                     double seconds) {
    add_timeout(rank, sequence, seconds);
    add_status(rank, group, group_rank, sequence, seconds + 0.001);
}

// "Received a dump signal … Last enqueued NCCL work: …, last completed NCCL work: …"
static void add_signal(int32_t rank, const char *group, int32_t group_rank, int64_t last,
                       double seconds) {
    struct fact *facts = arena_zero(&arena, 5, sizeof *facts);
    facts[0] = (struct fact){.key = FACT_GROUP_RANK, .number = group_rank};
    facts[1] = (struct fact){.key = FACT_GROUP, .text = slice_of(group)};
    facts[2] = (struct fact){.key = FACT_GROUP_DESC, .text = slice_of(group)};
    facts[3] = (struct fact){.key = FACT_LAST_ENQUEUED, .number = last};
    facts[4] = (struct fact){.key = FACT_LAST_COMPLETED, .number = last};
    struct observation *said = arena_zero(&arena, 1, sizeof *said);
    *said =
        (struct observation){.kind = OBSERVATION_WATCHDOG_DUMP, .facts = facts, .fact_count = 5};
    add(rank, EVENT_OBSERVATION, seconds)->observation = said;
}

static struct event *add_place(int32_t rank, const char *node) {
    struct rank_place *place = arena_zero(&arena, 1, sizeof *place);
    *place = (struct rank_place){
        .rank = rank, .node = intern(slice_of(node)), .address = PCI_NONE, .pid = -1};
    struct event *event = add(rank, EVENT_RANK_MAP, 0);
    event->place = place;
    return event;
}

static void add_dump(int32_t rank, const char *group, int64_t sequence, double created,
                     double seconds) {
    struct flight_dump *dump = arena_zero(&arena, 1, sizeof *dump);
    struct flight_entry *entry = arena_zero(&arena, 1, sizeof *entry);
    *entry = (struct flight_entry){.collective_seq_id = sequence,
                                   .group = slice_of(group),
                                   .desc = slice_of(group),
                                   .name = SLICE("nccl:all_reduce"),
                                   .created_ns = NOON + (uint64_t)(created * 1e9),
                                   .started_ns = NOON + (uint64_t)(created * 1e9),
                                   .state = FLIGHT_STARTED};
    *dump = (struct flight_dump){.rank = rank,
                                 .whole = true,
                                 .reports_states = true,
                                 .backend = SLICE("nccl"),
                                 .entries = entry,
                                 .entry_count = 1};
    add(rank, EVENT_FLIGHT, seconds)->flight = dump;
}

static const char *judge(void) {
    detector_start(&detector);
    detector_feed(&detector, events, event_count);
    detector_judge(&detector, UINT64_MAX, true);
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

static void assert_count(uint32_t count) {
    ck_assert_msg(detector.verdict_count == count, "%u verdicts instead of %u:\n%s",
                  detector.verdict_count, count, detector_lines(&detector));
}

START_TEST(the_one_that_called_less_is_behind) {
    for (int32_t rank = 0; rank < 4; rank++)
        if (rank != 2)
            add_wait(rank, "default_pg", rank, 1201, 700 + rank);
    add_signal(2, "default_pg", 2, 1200, 705);
    add_signal(1, "default_pg", 1, 1203, 705); // it waits, whatever came after
    add_place(2, "node-c");
    const char *lines = judge();
    assert_count(1);
    assert_has(lines, "\"kind\":\"missing_rank\",\"state\":\"open\"");
    assert_has(lines, "\"completeness\":\"partial\",\"confidence\":93");
    assert_role(lines, 2, "culprit");
    assert_has(lines, "{\"kind\":\"node\",\"name\":\"node-c\",\"role\":\"suspect\"}");
    assert_has(lines,
               "Rank 2 never called ALLREDUCE 1201 of default_pg; 3 ranks wait for it, for "
               "10 min 5 s when last seen");
    assert_has(lines, "\"uid\":\"watchdog:default_pg:1201:0\"");
    assert_has(lines, "\"uid\":\"watchdog:default_pg:1200:2\"");
    assert_lacks(lines, "\"fr:");
}
END_TEST

START_TEST(who_never_came_into_the_log_is_a_suspect) {
    for (int32_t rank = 0; rank < 4; rank++) {
        add_place(rank, "node-a");
        if (rank != 3)
            add_wait(rank, "default_pg", rank, 7, 700);
    }
    const char *lines = judge();
    assert_count(1);
    assert_has(lines, "\"kind\":\"missing_dump\",\"state\":\"open\"");
    assert_has(lines, "\"completeness\":\"partial\"");
    assert_role(lines, 3, "suspect");
    assert_has(lines, "no line of the logs is from rank 3");
    assert_lacks(lines, "\"role\":\"culprit\"");
}
END_TEST

static void judge_at(double seconds) {
    detector_judge(&detector, NOON + (uint64_t)(seconds * 1e9), false);
}

// Live, what is missing may still be on its way: it is told when it was missing for six seconds of
// event time; what comes in between is told at once. `_i`: whether it comes.
START_TEST(live_who_is_missing_is_waited_for) {
    detector_start_as(&detector, false);
    for (int32_t rank = 0; rank < 4; rank++) {
        add_place(rank, "node-a");
        if (rank != 3)
            add_wait(rank, "default_pg", rank, 7, 700);
    }
    add_place(3, "node-a")->time_ns = NOON + 800 * UINT64_C(1000000000); // time goes on
    detector_feed(&detector, events, event_count);
    judge_at(701);
    judge_at(706.9);
    assert_count(0);
    event_count = 0;
    if (_i == 1) {
        add_signal(3, "default_pg", 3, 6, 700.5);
        detector_feed(&detector, events, event_count);
        judge_at(706.95);
        assert_count(1);
    }
    judge_at(707.1);
    assert_count(1);
    assert_has(detector_lines(&detector), _i == 1 ? "\"kind\":\"missing_rank\",\"state\":\"open\""
                                                  : "\"kind\":\"missing_dump\",\"state\":\"open\"");
}
END_TEST

// Live, a rank that waited at the moment that is judged may have been heard of since.
START_TEST(live_later_lines_take_nothing_back) {
    detector_start_as(&detector, false);
    for (int32_t rank = 0; rank < 4; rank++)
        if (rank != 2)
            add_wait(rank, "default_pg", rank, 1201, 700);
    add_signal(2, "default_pg", 2, 1200, 700.5);
    detector_feed(&detector, events, event_count);
    judge_at(701);
    assert_count(1);
    event_count = 0;
    for (int32_t rank = 0; rank < 4; rank++)
        if (rank != 2)
            add_signal(rank, "default_pg", rank, 1203, 705);
    detector_feed(&detector, events, event_count);
    judge_at(703);
    assert_count(1);
    assert_lacks(detector_lines(&detector), "\"resolved\"");
}
END_TEST

// Nobody says that rank 9 is in the group, but its place between ranks 8, 10 and 11.
START_TEST(ranks_by_their_places_in_the_group) {
    for (int32_t place = 0; place < 4; place++)
        if (place != 1)
            add_wait(8 + place, "tp", place, 7, 700);
    for (int32_t place = 0; place < 3; place++) // these are on no line
        add_wait(place * place, "odd", place, 8, 700);
    const char *lines = judge();
    assert_count(2);
    assert_role(lines, 9, "suspect");
    assert_has(lines, "All 3 ranks are in ALLREDUCE 8 of odd");
}
END_TEST

START_TEST(all_came_and_none_came_out) {
    for (int32_t rank = 0; rank < 2; rank++) {
        add_place(rank, rank == 0 ? "node-a" : "node-b");
        add_wait(rank, "default_pg", rank, 7, 700);
    }
    const char *lines = judge();
    assert_count(1);
    assert_has(lines, "\"kind\":\"all_started\"");
    assert_has(lines, "{\"kind\":\"node\",\"name\":\"node-b\",\"role\":\"victim\"}");
}
END_TEST

// Rank 1 is behind in default_pg since it waits in tp for 2, which is nowhere.
START_TEST(who_waits_elsewhere_is_a_victim) {
    add_wait(0, "default_pg", 0, 50, 700);
    add_signal(1, "default_pg", 1, 49, 702);
    add_wait(1, "tp", 0, 9, 701);
    add_signal(2, "tp", 1, 8, 702);
    const char *lines = judge();
    assert_count(2);
    assert_role(lines, 1, "victim");
    assert_role(lines, 2, "culprit");
    assert_has(lines, "for rank 1, held up elsewhere");
    assert_has(lines, "\"relation\":\"caused_by\"");
    assert_lacks(lines, "{\"kind\":\"rank\",\"name\":\"1\",\"role\":\"culprit\"}");
}
END_TEST

START_TEST(different_operations_and_sizes) {
    for (int32_t rank = 0; rank < 3; rank++) {
        struct app_line *line = add_timeout(rank, 7, 700);
        if (rank == _i && rank == 1)
            line->operation = SLICE("BROADCAST");
        else if (rank == _i)
            line->input_elements = 512;
        add_status(rank, "default_pg", rank, 7, 700);
    }
    const char *lines = judge();
    assert_count(1);
    assert_has(lines, _i == 1 ? "\"kind\":\"mismatch_type\"" : "\"kind\":\"mismatch_size\"");
    assert_role(lines, _i, "culprit");
}
END_TEST

// What the watchdogs wrote before the job was started again is another hang.
START_TEST(lines_of_before_a_restart) {
    add_wait(0, "default_pg", 0, 900, 100);
    add_signal(1, "default_pg", 1, 899, 101);
    for (int32_t rank = 0; rank < 2; rank++)
        add_wait(rank, "default_pg", rank, 40, 2000);
    add_wait(2, "default_pg", 2, 39, 100); // it is silent since
    const char *lines = judge();
    assert_count(1);
    assert_has(lines, "40 of default_pg");
    assert_lacks(lines, "\"role\":\"culprit\"");
}
END_TEST

START_TEST(numbers_that_are_not_known_name_nobody) {
    add_wait(0, "default_pg", 0, 7, 700);
    struct app_line *line = add_status(1, "default_pg", 1, -1, 700);
    line->last_enqueued = line->last_completed = APP_NUMBER_UNKNOWN;
    assert_lacks(judge(), "\"role\":\"culprit\"");
    assert_count(1);
}
END_TEST

// Of ranks that left dumps these count, and what dumps tell of a group goes before its lines.
START_TEST(dumps_win) {
    add_wait(0, "default_pg", 0, 7, 700);
    add_signal(1, "default_pg", 1, 6, 701);
    add_dump(0, "default_pg", 7, 100, 701);
    const char *lines = judge();
    assert_count(1);
    assert_has(lines, "\"fr:default_pg:7:0\"");
    assert_lacks(lines, "watchdog:");
}
END_TEST

static void make_hang(int64_t sequence, double seconds) {
    for (int32_t rank = 0; rank < 4; rank++)
        if (rank != 2)
            add_wait(rank, "default_pg", rank, sequence, seconds + rank);
    add_signal(2, "default_pg", 2, sequence - 1, seconds);
}

START_TEST(order_of_arrival_means_nothing) {
    char *first = NULL;
    make_hang(7, 700);
    for (uint32_t round = 0; round < 5; round++) {
        if (round > 0) {
            detector_close(&detector);
            detector = detector_open(&processor_nccl_hang);
        }
        judge();
        const char *lines = detector_lines(&detector);
        if (first == NULL)
            first = memory_copy_text(lines, strlen(lines));
        ck_assert_str_eq(lines, first);
        for (uint32_t i = 0; i < event_count; i++) {
            struct event event = events[i];
            uint32_t other = (i * 5 + round) % event_count;
            events[i] = events[other];
            events[other] = event;
        }
    }
    memory_give(first);
}
END_TEST

START_TEST(takes_no_memory_when_warm) {
    detector_start(&detector);
    uint64_t taken = 0;
    for (int round = 0; round < 6; round++) {
        arena_reset(&arena);
        event_count = 0;
        make_hang(7, 700 + round);
        uint64_t before = memory_figures().allocations;
        detector_feed(&detector, events, event_count);
        detector_judge(&detector, UINT64_MAX, false);
        taken = memory_figures().allocations - before;
        buffer_reset(&detector.lines);
    }
    ck_assert_uint_eq(taken, 0);
}
END_TEST

START_TEST(state_goes_on) {
    detector_start(&detector);
    make_hang(7, 700);
    detector_feed(&detector, events, event_count);
    detector_judge(&detector, UINT64_MAX, false);
    assert_count(1);
    struct detector next = detector_open(&processor_nccl_hang);
    detector_start(&next);
    detector_move_state(&detector, &next);
    detector_judge(&next, UINT64_MAX, false);
    ck_assert_uint_eq(next.verdict_count, 0); // nothing new
    event_count = 0;
    add_wait(2, "default_pg", 2, 7, 705); // it came late
    detector_feed(&next, events, event_count);
    detector_judge(&next, UINT64_MAX, false);
    assert_has(detector_lines(&next), "\"kind\":\"all_started\",\"state\":\"updated\"");
    detector_close(&next);
}
END_TEST

START_TEST(bounds_keep_what_was_heard_last) {
    detector_set(&detector, "max_ranks", "16");
    for (int32_t rank = 0; rank < 40; rank++)
        add_wait(rank, "default_pg", -1, 7, 600 + rank);
    const char *lines = judge();
    assert_count(1);
    assert_has(lines, "watchdog:default_pg:7:39");
    assert_lacks(lines, "watchdog:default_pg:7:20\"");
    static const struct metric_family EVICTED = {
        .name = "culprit_detector_evicted_total", .help = "h", .type = METRIC_COUNTER};
    ck_assert_uint_ge(metric_value(METRIC(&EVICTED, "detector", "nccl_hang")), 24);
}
END_TEST

// Of a rank whose line about the group is not there its timeout says that it waited.
START_TEST(a_rank_that_gave_up_on_the_number_is_not_missing) {
    add_wait(0, "1", 0, 1580, 700);
    add_wait(3, "1", 3, 1580, 700);
    add_timeout(2, _i == 0 ? 1580 : 1581, 700);
    const char *lines = judge();
    assert_count(1);
    assert_role(lines, 1, "suspect");
    if (_i == 0)
        assert_lacks(lines, "{\"kind\":\"rank\",\"name\":\"2\",\"role\":\"suspect\"}");
    else
        assert_role(lines, 2, "suspect");
}
END_TEST

static void take_times_off(uint32_t from, enum time_of time_of) {
    for (uint32_t i = from; i < event_count; i++) {
        events[i].timeless = true;
        events[i].time_of = time_of;
    }
}

// PyTorch before 2.3 wrote no time: the file may have been copied days after what others wrote.
START_TEST(lines_without_a_time_are_known_at_once) {
    for (int32_t rank = 1; rank < 4; rank++)
        add_wait(rank, "0", rank, 19, 90000);
    take_times_off(0, _i == 0 ? TIME_OF_FILE : TIME_OF_RECEIPT);
    detector_start(&detector);
    detector_feed(&detector, events, event_count);
    detector_judge(&detector, NOON, true);
    const char *lines = detector_lines(&detector);
    assert_count(1);
    assert_role(lines, 0, "suspect");
    assert_has(lines, "3 ranks wait in ALLREDUCE 19 of 0");
    assert_has(lines, _i == 0 ? "\"culprit.time_of\":\"file\"" : "\"culprit.time_of\":");
}
END_TEST

// Those that have a time say when it was, and lines without one are of then.
START_TEST(a_line_with_a_time_gives_it_to_those_without) {
    uint32_t first = _i == 0 ? 0 : event_count + 4;
    for (int32_t rank = 1; rank < 4; rank++)
        add_wait(rank, "0", rank, 19, rank == 1 ? 90000 : 700);
    take_times_off(0, TIME_OF_FILE);
    for (uint32_t i = 2; i < event_count; i++)
        events[i].timeless = false;
    detector_start(&detector);
    detector_feed(&detector, events + first, event_count - first);
    detector_feed(&detector, events, first);
    detector_judge(&detector, NOON + UINT64_C(1000000000000), true);
    const char *lines = detector_lines(&detector);
    assert_count(1);
    assert_role(lines, 0, "suspect");
    assert_has(lines, "3 ranks wait in ALLREDUCE 19 of 0");
    assert_lacks(lines, "culprit.time_of");
    assert_has(lines, "\"start_time_unix_nano\":\"1795000099961000000\"");
}
END_TEST

START_TEST(a_line_with_a_time_counts_more_than_one_without) {
    for (int32_t rank = 1; rank < 4; rank++)
        add_wait(rank, "0", rank, 19, 700);
    uint32_t dated = event_count;
    add_wait(1, "0", 1, 7, 90000);
    take_times_off(dated, TIME_OF_FILE);
    detector_start(&detector);
    detector_feed(&detector, events + (_i == 0 ? 0 : dated), _i == 0 ? event_count : 2);
    if (_i == 1)
        detector_feed(&detector, events, dated);
    detector_judge(&detector, NOON + UINT64_C(1000000000000), true);
    assert_has(detector_lines(&detector), "3 ranks wait in ALLREDUCE 19 of 0");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("hang_lines");
    TCase *tcase = tcase_create("lines");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, the_one_that_called_less_is_behind);
    tcase_add_test(tcase, who_never_came_into_the_log_is_a_suspect);
    tcase_add_loop_test(tcase, live_who_is_missing_is_waited_for, 0, 2);
    tcase_add_test(tcase, live_later_lines_take_nothing_back);
    tcase_add_test(tcase, ranks_by_their_places_in_the_group);
    tcase_add_test(tcase, all_came_and_none_came_out);
    tcase_add_test(tcase, who_waits_elsewhere_is_a_victim);
    tcase_add_loop_test(tcase, different_operations_and_sizes, 0, 3);
    tcase_add_test(tcase, lines_of_before_a_restart);
    tcase_add_test(tcase, numbers_that_are_not_known_name_nobody);
    tcase_add_test(tcase, dumps_win);
    tcase_add_loop_test(tcase, lines_without_a_time_are_known_at_once, 0, 2);
    tcase_add_loop_test(tcase, a_line_with_a_time_gives_it_to_those_without, 0, 2);
    tcase_add_loop_test(tcase, a_line_with_a_time_counts_more_than_one_without, 0, 2);
    tcase_add_loop_test(tcase, a_rank_that_gave_up_on_the_number_is_not_missing, 0, 2);
    tcase_add_test(tcase, order_of_arrival_means_nothing);
    tcase_add_test(tcase, takes_no_memory_when_warm);
    tcase_add_test(tcase, state_goes_on);
    tcase_add_test(tcase, bounds_keep_what_was_heard_last);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
