// SPDX-License-Identifier: Apache-2.0
// Hangs as NCCL's RAS and the Inspector tell of them, where ranks stood, and that a hang keeps its
// name when lines and dumps of it come.

#include "cli/component_list.h"
#include "pipeline/model/event.h"
#include "pipeline/model/node_event.h"
#include "pipeline/model/observation.h"
#include "tests/processors/node_lines.h"
#include "tests/support/detector.h"

#include <string.h>

enum { EVENTS_MAX = 512, RANKS = 4 };
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

// -- events --------------------------------------------------------------------------------------

static struct event *add(int32_t rank, enum event_kind kind, double seconds) {
    ck_assert_uint_lt(event_count, EVENTS_MAX);
    struct event *event = &events[event_count++];
    *event =
        (struct event){.time_ns = NOON + (uint64_t)(seconds * 1e9), .rank = rank, .kind = kind};
    return event;
}

// Facts in the order of enum fact_key.
static struct event *observe(enum observation_kind kind, const struct fact *facts, uint32_t count,
                             double seconds) {
    struct observation *said = arena_zero(&arena, 1, sizeof *said);
    struct fact *copy = arena_take(&arena, count * sizeof *copy);
    memcpy(copy, facts, count * sizeof *copy);
    *said = (struct observation){.kind = kind, .facts = copy, .fact_count = count};
    struct event *event = add(RANK_NONE, EVENT_OBSERVATION, seconds);
    event->observation = said;
    return event;
}

// A rank of a communicator in an answer in JSON.
static void answer(const char *communicator, int64_t size, int64_t place, int64_t pid,
                   const char *counts, double seconds) {
    const struct fact facts[] = {{.key = FACT_PID, .number = pid},
                                 {.key = FACT_GROUP_RANK, .number = place},
                                 {.key = FACT_MISSING, .yes = false},
                                 {.key = FACT_COMMUNICATOR, .text = slice_of(communicator)},
                                 {.key = FACT_SIZE, .number = size},
                                 {.key = FACT_COUNTS, .text = slice_of(counts)}};
    observe(OBSERVATION_RAS_RANK, facts, 6, seconds)->node = intern(SLICE("node-a"));
}

static void answer_missing(const char *communicator, int64_t place, bool dead, double seconds) {
    const struct fact facts[] = {{.key = FACT_GROUP_RANK, .number = place},
                                 {.key = FACT_MISSING, .yes = true},
                                 {.key = FACT_CONSIDERED_DEAD, .yes = dead},
                                 {.key = FACT_COMMUNICATOR, .text = slice_of(communicator)},
                                 {.key = FACT_SIZE, .number = RANKS}};
    observe(OBSERVATION_RAS_RANK, facts, 5, seconds);
}

// All ranks of the job; that one has begun one operation less.
static void answer_all(int32_t behind, double seconds) {
    for (int32_t rank = 0; rank < RANKS; rank++)
        answer("0xaa", RANKS, rank, 100 + rank,
               rank == behind ? "{\"Broadcast\":2,\"AllReduce\":9,\"SendRecv\":7}"
                              : "{\"Broadcast\":2,\"AllReduce\":10,\"SendRecv\":3}",
               seconds);
}

// The lines of an answer in text: what most have begun, and one that has begun less.
static void answer_in_text(int32_t place, int64_t count, int64_t most, double seconds) {
    const struct fact others[] = {{.key = FACT_COUNT, .number = most},
                                  {.key = FACT_COMMUNICATOR, .text = SLICE("0xaa")},
                                  {.key = FACT_OP, .text = SLICE("AllReduce")}};
    const struct fact own[] = {{.key = FACT_GROUP_RANK, .number = place},
                               {.key = FACT_COUNT, .number = count},
                               {.key = FACT_COMMUNICATOR, .text = SLICE("0xaa")},
                               {.key = FACT_OP, .text = SLICE("AllReduce")}};
    observe(OBSERVATION_RAS_MISMATCH, others, 3, seconds);
    observe(OBSERVATION_RAS_RANK, own, 4, seconds);
}

static void record(int64_t place, int64_t sequence, double seconds) {
    const struct fact facts[] = {{.key = FACT_GROUP_RANK, .number = place},
                                 {.key = FACT_COMMUNICATOR, .text = SLICE("0xaa")},
                                 {.key = FACT_SEQ, .number = sequence},
                                 {.key = FACT_SIZE, .number = RANKS}};
    observe(OBSERVATION_INSPECTOR_COLL, facts, 4, seconds);
}

static struct event *stand(int64_t pid, const char *frame, double seconds) {
    const struct fact facts[] = {{.key = FACT_PID, .number = pid},
                                 {.key = FACT_THREAD, .text = SLICE("MainThread")},
                                 {.key = FACT_FRAME, .text = slice_of(frame)}};
    struct event *event = observe(OBSERVATION_STACK, facts, 3, seconds);
    event->node = intern(SLICE("node-a"));
    return event;
}

static void add_places(uint32_t count) {
    for (uint32_t rank = 0; rank < count; rank++) {
        struct rank_place *place = arena_zero(&arena, 1, sizeof *place);
        *place = (struct rank_place){.rank = (int32_t)rank,
                                     .node = intern(SLICE("node-a")),
                                     .address = PCI_NONE,
                                     .pid = 100 + rank};
        add((int32_t)rank, EVENT_RANK_MAP, 0)->place = place;
    }
}

// What the watchdog of a rank says when it gives up.
static void give_up(int32_t rank, int64_t sequence, double seconds) {
    struct app_line *line = arena_zero(&arena, 1, sizeof *line);
    *line = (struct app_line){.kind = APP_PROGRESS,
                              .rank = rank,
                              .group = SLICE("0"),
                              .group_desc = SLICE("default_pg"),
                              .group_rank = rank,
                              .collective_seq_id = sequence,
                              .input_elements = -1,
                              .output_elements = -1,
                              .timeout_ms = 600000,
                              .ran_ms = 600000,
                              .has_progress = true,
                              .last_enqueued = sequence,
                              .last_completed = sequence - 1};
    add(rank, EVENT_APP_LINE, seconds)->line = line;
}

static void dump(int32_t rank, int64_t sequence, double created, double seconds) {
    struct flight_dump *dump = arena_zero(&arena, 1, sizeof *dump);
    struct flight_entry *entry = arena_zero(&arena, 1, sizeof *entry);
    static const int32_t members[] = {0, 1, 2, 3};
    struct flight_group *group = arena_zero(&arena, 1, sizeof *group);
    *group = (struct flight_group){.name = SLICE("0"), .members = members, .member_count = RANKS};
    *entry = (struct flight_entry){.collective_seq_id = sequence,
                                   .group = SLICE("0"),
                                   .desc = SLICE("default_pg"),
                                   .name = SLICE("nccl:all_reduce"),
                                   .created_ns = NOON + (uint64_t)(created * 1e9),
                                   .started_ns = NOON + (uint64_t)(created * 1e9),
                                   .state = FLIGHT_STARTED};
    *dump = (struct flight_dump){.rank = rank,
                                 .whole = true,
                                 .reports_states = true,
                                 .backend = SLICE("nccl"),
                                 .entries = entry,
                                 .entry_count = 1,
                                 .groups = group,
                                 .group_count = 1};
    add(rank, EVENT_FLIGHT, seconds)->flight = dump;
}

// -- verdicts ------------------------------------------------------------------------------------

static void feed(void) {
    detector_feed(&detector, events, event_count);
    event_count = 0;
}

static const char *judge(void) {
    detector_start(&detector);
    feed();
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

START_TEST(the_one_with_the_lower_count_is_behind) {
    answer_all(2, 60);
    answer_all(2, 130);
    const char *lines = judge();
    assert_count(1);
    assert_has(lines, "\"kind\":\"missing_rank\",\"state\":\"open\"");
    assert_has(lines, "\"completeness\":\"partial\",\"confidence\":85");
    assert_has(lines,
               "Rank 2 never called collective 12 of default_pg; 3 ranks wait for it, for "
               "1 min 10 s when last seen");
    assert_role(lines, 2, "culprit");
    assert_role(lines, 0, "victim");
    assert_has(lines, "\"uid\":\"ras:0:12:0\"");
    assert_has(lines, "\"uid\":\"ras:0:11:2\"");
}
END_TEST

// One answer, two that are too near, counts that move, equal counts, an answer of tomorrow.
START_TEST(what_proves_nothing) {
    answer_all(2, 60);
    if (_i == 1)
        answer_all(2, 119);
    for (int32_t rank = 0; _i == 2 && rank < RANKS; rank++)
        answer("0xaa", RANKS, rank, -1, rank == 2 ? "{\"AllReduce\":800}" : "{\"AllReduce\":801}",
               200);
    if (_i == 3) {
        event_count = 0;
        answer_all(-1, 60);
        answer_all(-1, 200);
    }
    detector_start(&detector);
    if (_i == 4)
        answer_all(2, 86400);
    feed();
    detector_judge(&detector, NOON + UINT64_C(300) * 1000000000, false);
    assert_count(0);
}
END_TEST

START_TEST(an_operation_that_ended_does_not_hang) {
    answer_all(2, 60);
    answer_all(2, 130);
    detector_start(&detector);
    feed();
    detector_judge(&detector, UINT64_MAX, false);
    assert_count(1);
    detector_lines_reset(&detector);
    record(0, 12, 140);
    feed();
    detector_judge(&detector, UINT64_MAX, false);
    assert_count(1);
    assert_has(detector_lines(&detector), "\"state\":\"resolved\"");
}
END_TEST

START_TEST(who_does_not_answer_is_a_suspect) {
    bool dead = _i == 0; // else the others must have stood still
    for (int round = 0; round < (dead ? 1 : 2); round++) {
        for (int32_t rank = 0; rank < RANKS - 1; rank++)
            answer("0xaa", RANKS, rank, -1, "{\"AllReduce\":10}", 60 + 70 * round);
        answer_missing("0xaa", 3, dead, 60 + 70 * round);
    }
    const char *lines = judge();
    assert_count(1);
    assert_has(lines, "\"kind\":\"missing_dump\"");
    assert_has(lines, "rank 3 did not answer NCCL RAS");
    assert_role(lines, 3, "suspect");
    assert_lacks(lines, "\"role\":\"culprit\"");
}
END_TEST

START_TEST(an_answer_in_text_with_a_rank_map) {
    add_places(RANKS);
    answer_in_text(1, 9, 10, 60);
    answer_in_text(1, 9, 10, 130);
    const char *lines = judge();
    assert_count(1);
    assert_has(lines, "Rank 1 never called AllReduce 10 of default_pg; 3 ranks wait");
}
END_TEST

// Without a rank map nobody can say whose communicators of two nodes are.
START_TEST(parts_of_the_job_need_a_rank_map) {
    if (_i == 1)
        add_places(RANKS);
    for (int round = 0; round < 2; round++)
        for (int32_t rank = 0; rank < RANKS; rank++)
            answer(rank < 2 ? "0xaa" : "0xbb", 2, rank % 2, 100 + rank,
                   rank == 3 ? "{\"AllReduce\":9}" : "{\"AllReduce\":10}", 60 + 70 * round);
    const char *lines = judge();
    assert_count(_i == 1 ? 1 : 0);
    if (_i == 0)
        return;
    assert_has(lines, "Rank 3 never called collective 10 of group 0xbb");
    assert_role(lines, 2, "victim");
}
END_TEST

START_TEST(where_they_stood) {
    add_places(RANKS);
    answer_all(2, 60);
    answer_all(2, 130);
    stand(102, "read (data.py:88)", 135);
    stand(102, "too early (data.py:1)", 30);
    stand(777, "nobody's (other.py:1)", 135);
    stand(100, "wait (dist.py:5)", 136);
    const char *lines = judge();
    assert_count(1);
    assert_has(lines, "rank 2 stood in read (data.py:88)");
    assert_has(lines, "rank 0 stood in wait (dist.py:5)");
    assert_has(lines, "\"culprit.frame\":\"read (data.py:88)\"");
    assert_lacks(lines, "too early");
    assert_lacks(lines, "nobody's");
}
END_TEST

static void of_job(uint32_t from, const char *job) {
    for (uint32_t i = from; i < event_count; i++)
        events[i].job = intern(slice_of(job));
}

// Two jobs with the same pids, on one node or on two: a stack that says no job is of the rank on
// its node, and of nobody where both are there.
START_TEST(a_stack_is_not_of_another_job) {
    const char *nodes[] = {"node-a", _i == 0 ? "node-a" : "node-b"};
    for (int job = 0; job < 2; job++) {
        uint32_t from = event_count;
        add_places(RANKS);
        for (uint32_t i = from; i < event_count; i++)
            ((struct rank_place *)(uintptr_t)events[i].place)->node = intern(slice_of(nodes[job]));
        of_job(from, job == 0 ? "gpt" : "llama");
    }
    uint32_t from = event_count;
    answer_all(2, 60);
    answer_all(2, 130);
    of_job(from, "gpt");
    struct event *stack = stand(102, "load (data.py:88)", 135);
    if (_i == 1)
        stack->node = intern(SLICE("node-b"));
    if (_i == 2)
        stack->node = intern(SLICE("node-a"));
    const char *lines = judge();
    assert_count(1);
    if (_i == 2)
        assert_has(lines, "rank 2 stood in load");
    else
        assert_lacks(lines, "stood in load");
}
END_TEST

// A line of a rank map without a time gives way to one with a time, however new its file is.
START_TEST(the_age_of_a_rank_map_counts_for_nothing) {
    for (int map = 0; map < 2; map++) {
        uint32_t from = event_count;
        bool undated = map == _i % 2;
        add_places(RANKS);
        for (uint32_t i = from; i < event_count; i++) {
            events[i].timeless = undated;
            events[i].time_ns = undated ? NOON + (_i < 2 ? 1 : 60000000000) : NOON + 1000000000;
            ((struct rank_place *)(uintptr_t)events[i].place)->pid += undated ? 1000 : 0;
        }
    }
    answer_all(2, 60);
    answer_all(2, 130);
    stand(102, "load (data.py:88)", 135);
    stand(1102, "an older start (data.py:8)", 136);
    const char *lines = judge();
    assert_count(1);
    assert_has(lines, "rank 2 stood in load");
    assert_lacks(lines, "an older start");
}
END_TEST

START_TEST(a_stack_alone_is_no_hang) {
    add_places(RANKS);
    stand(102, "all_reduce (dist.py:88)", 135);
    record(0, 12, 140);
    judge();
    assert_count(0);
}
END_TEST

static const char *id_of(const char *lines) {
    static char id[64];
    const char *at = strstr(lines, "\"id\":\"nccl_hang:");
    ck_assert_ptr_nonnull(at);
    snprintf(id, sizeof id, "%.32s", at);
    return id;
}

static void judge_step(const char *first, const char *wanted) {
    detector_lines_reset(&detector);
    feed();
    detector_judge(&detector, UINT64_MAX, false);
    assert_count(1);
    const char *lines = detector_lines(&detector);
    assert_has(lines, wanted);
    assert_has(lines, "\"state\":\"updated\"");
    if (first != NULL)
        assert_has(lines, first);
}

// RAS tells of it, then the watchdogs give up, then come dumps: one verdict that is updated, and
// under the same name as where all is read at once.
START_TEST(one_hang_keeps_its_name) {
    char first[64];
    bool with_ras = _i == 0;
    detector_start(&detector);
    add_places(RANKS);
    if (with_ras) {
        answer_all(2, 60);
        answer_all(2, 130);
    } else {
        give_up(0, 1201, 610);
    }
    feed();
    detector_judge(&detector, UINT64_MAX, false);
    assert_count(1);
    snprintf(first, sizeof first, "%s", id_of(detector_lines(&detector)));
    for (int32_t rank = 0; rank < RANKS; rank++)
        if (rank != 2)
            give_up(rank, 1201, 610 + rank);
    judge_step(first, "\"uid\":\"watchdog:0:1201:3\"");
    for (int32_t rank = 0; rank < RANKS; rank++)
        if (rank != 2)
            dump(rank, 1201, 12, 620);
    judge_step(first, "\"uid\":\"fr:0:1201:3\"");

    struct detector once = detector_open(&processor_nccl_hang);
    detector_start(&once);
    add_places(RANKS);
    if (with_ras) {
        answer_all(2, 60);
        answer_all(2, 130);
    }
    for (int32_t rank = 0; rank < RANKS; rank++)
        if (rank != 2) {
            give_up(rank, 1201, 610 + rank);
            dump(rank, 1201, 12, 620);
        }
    detector_feed(&once, events, event_count);
    detector_finish(&once);
    ck_assert_uint_eq(once.verdict_count, 1);
    assert_has(detector_lines(&once), first);
    detector_close(&once);
}
END_TEST

START_TEST(state_goes_on) {
    detector_start(&detector);
    answer_all(2, 60);
    feed();
    detector_judge(&detector, UINT64_MAX, false);
    assert_count(0);
    struct detector next = detector_open(&processor_nccl_hang);
    detector_start(&next);
    detector_move_state(&detector, &next);
    answer_all(2, 130);
    detector_feed(&next, events, event_count);
    detector_judge(&next, UINT64_MAX, false);
    ck_assert_uint_eq(next.verdict_count, 1);
    detector_close(&next);
}
END_TEST

// Two bounds: so many rows are kept, and so many who wait are named.
START_TEST(bounds) {
    enum { MANY = 200 };
    if (_i == 1)
        detector_set(&detector, "max_ranks", "16");
    detector_start(&detector);
    for (int round = 0; round < 2; round++) {
        for (int32_t rank = 0; rank < MANY; rank++)
            answer("0xaa", MANY, rank, -1, rank == 7 ? "{\"AllReduce\":9}" : "{\"AllReduce\":10}",
                   60 + 70 * round);
        feed();
    }
    detector_judge(&detector, UINT64_MAX, true);
    assert_count(_i == 1 ? 0 : 1);
    uint32_t named = 0;
    for (const char *at = detector_lines(&detector);
         (at = strstr(at, "\"role\":\"victim\"")) != NULL; at++)
        named++;
    ck_assert_uint_eq(named, _i == 1 ? 0 : 64);
}
END_TEST

START_TEST(nothing_is_allocated_once_warm) {
    uint64_t taken = 1;
    detector_start(&detector);
    for (int round = 0; round < 12; round++) {
        answer_all(2, 60 + 70 * round);
        stand(102, "read (data.py:88)", 61);
        uint64_t before = memory_figures().allocations;
        feed();
        detector_judge(&detector, UINT64_MAX, false);
        taken = memory_figures().allocations - before;
        buffer_reset(&detector.lines);
    }
    ck_assert_uint_eq(taken, 0);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("hang_ras");
    TCase *tests = tcase_create("ras");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, the_one_with_the_lower_count_is_behind);
    tcase_add_loop_test(tests, what_proves_nothing, 0, 5);
    tcase_add_test(tests, an_operation_that_ended_does_not_hang);
    tcase_add_loop_test(tests, who_does_not_answer_is_a_suspect, 0, 2);
    tcase_add_test(tests, an_answer_in_text_with_a_rank_map);
    tcase_add_loop_test(tests, parts_of_the_job_need_a_rank_map, 0, 2);
    tcase_add_test(tests, where_they_stood);
    tcase_add_loop_test(tests, a_stack_is_not_of_another_job, 0, 3);
    tcase_add_loop_test(tests, the_age_of_a_rank_map_counts_for_nothing, 0, 4);
    tcase_add_test(tests, a_stack_alone_is_no_hang);
    tcase_add_loop_test(tests, one_hang_keeps_its_name, 0, 2);
    tcase_add_test(tests, state_goes_on);
    tcase_add_loop_test(tests, bounds, 0, 2);
    tcase_add_test(tests, nothing_is_allocated_once_warm);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
