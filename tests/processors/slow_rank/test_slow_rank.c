// SPDX-License-Identifier: Apache-2.0
// slow_rank: who holds up the others, in which phase, and what is no fault.
#include "cli/component_list.h"
#include "processors/cluster/detector.h"
#include "tests/processors/cluster_fixture.h"

#include <math.h>

enum { EVENTS_MAX = 60000, RANKS_MAX = 8, PHASES_MAX = 4, MS = 1000000 };

static struct event events[EVENTS_MAX];
static struct telemetry records[EVENTS_MAX];
static struct phase_scope scopes[EVENTS_MAX];
static uint32_t count;

// A job whose ranks wait for one another in the phase `wait` of each step.
static struct {
    uint32_t ranks, steps;
    const char *phases[PHASES_MAX]; // ended by NULL
    const char *wait;               // NULL: nobody waits for anybody
    double usual_ms[PHASES_MAX];
    double jitter; // 0.2: up to 20 % more or less
    const char *job, *session;
    double (*factor)(uint32_t step, uint32_t rank, uint32_t phase);
    double (*save_ms)(uint32_t step, uint32_t rank); // of a checkpoint behind the step; 0: none
    bool (*is_told)(uint32_t step, uint32_t rank);   // NULL: all
    bool has_no_step;           // no scope is a step: the phases stand in the epoch
    uint32_t parts;             // times that the phases but the last come in a step; 0: once
    double clock_ms[RANKS_MAX]; // how far a clock is ahead
} job;
static double clock_of[RANKS_MAX]; // ms since the start; goes on from one call of work() to another
static uint64_t dice_state;

static double dice(void) {
    dice_state = dice_state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (double)(dice_state >> 11) / (double)(UINT64_C(1) << 53);
}

static double once(uint32_t step, uint32_t rank, uint32_t phase) {
    (void)step, (void)rank, (void)phase;
    return 1;
}

static void setup(void) {
    fixture_begin(&processor_slow_rank);
    count = 0;
    dice_state = 1;
    memset(clock_of, 0, sizeof clock_of);
    memset(&job, 0, sizeof job);
    job.ranks = 4;
    job.steps = 34;
    job.phases[0] = "data";
    job.phases[1] = "forward";
    job.phases[2] = "backward";
    job.wait = "backward";
    job.usual_ms[0] = 20;
    job.usual_ms[1] = 60;
    job.usual_ms[2] = 100;
    job.jitter = 0.02;
    job.session = "s";
    job.factor = once;
}

static void boundary(uint32_t step, uint32_t rank, double ms, bool enter, const char *label,
                     uint32_t depth) {
    if (job.is_told != NULL && !job.is_told(step, rank))
        return;
    ck_assert_uint_lt(count, EVENTS_MAX);
    char session[32], host[32];
    snprintf(session, sizeof session, "%s-%u", job.session, rank);
    snprintf(host, sizeof host, "node-%u", rank / 2);
    uint64_t time_ns = CLUSTER_START + (uint64_t)((ms + job.clock_ms[rank] + 10000) * MS);
    scopes[count] = (struct phase_scope){.label = intern(slice_of(label)),
                                         .depth = depth,
                                         .scope_id = SLICE("scope"),
                                         .thread_id = 7,
                                         .sequence = count};
    records[count] =
        (struct telemetry){.timestamp_ns = time_ns,
                           .type = enter ? TELEMETRY_PHASE_ENTER : TELEMETRY_PHASE_EXIT,
                           .rank = (int32_t)rank,
                           .world_size = (int32_t)job.ranks,
                           .host = intern(slice_of(host)),
                           .session = intern(slice_of(session)),
                           .job = job.job == NULL ? STRING_NONE : intern(slice_of(job.job)),
                           .scope = &scopes[count]};
    events[count] = (struct event){.time_ns = time_ns,
                                   .job = records[count].job,
                                   .node = records[count].host,
                                   .rank = (int32_t)rank,
                                   .kind = EVENT_TELEMETRY,
                                   .telemetry = &records[count]};
    count++;
}

static void begin_scope_of_step(uint32_t step, const char *label) {
    for (uint32_t rank = 0; rank < job.ranks && !job.has_no_step; rank++)
        boundary(step, rank, clock_of[rank], true, label, 2);
}

static uint32_t phases_of_step(void) {
    uint32_t phases = 0;
    while (phases < PHASES_MAX && job.phases[phases] != NULL)
        phases++;
    return phases;
}

static void one_step(uint32_t step) {
    char label[64], phase_label[96];
    snprintf(label, sizeof label, job.has_no_step ? "epoch 0" : "epoch 0 / step %u", step);
    begin_scope_of_step(step, label);
    uint32_t phases = phases_of_step(), parts = job.parts == 0 ? 1 : job.parts;
    for (uint32_t i = 0; i < parts * (phases - 1) + 1; i++) {
        uint32_t p = i < parts * (phases - 1) ? i % (phases - 1) : phases - 1;
        double end[RANKS_MAX] = {0}, last = 0;
        snprintf(phase_label, sizeof phase_label, "%s / %s", label, job.phases[p]);
        for (uint32_t rank = 0; rank < job.ranks; rank++) {
            double length =
                job.usual_ms[p] * job.factor(step, rank, p) * (1 + job.jitter * (2 * dice() - 1));
            boundary(step, rank, clock_of[rank] + 0.001, true, phase_label, 3);
            end[rank] = clock_of[rank] + 0.001 + length;
            last = fmax(last, end[rank]);
        }
        bool waits = job.wait != NULL && strcmp(job.phases[p], job.wait) == 0;
        for (uint32_t rank = 0; rank < job.ranks; rank++) {
            clock_of[rank] = waits ? last : end[rank];
            boundary(step, rank, clock_of[rank], false, phase_label, 3);
        }
    }
    for (uint32_t rank = 0; rank < job.ranks; rank++) {
        clock_of[rank] += 0.01;
        if (!job.has_no_step)
            boundary(step, rank, clock_of[rank], false, label, 2);
        clock_of[rank] += 0.05;
        double save_ms = job.save_ms == NULL ? 0 : job.save_ms(step, rank);
        if (save_ms <= 0)
            continue;
        boundary(step, rank, clock_of[rank], true, "epoch 0 / checkpoint", 2);
        clock_of[rank] += save_ms;
        boundary(step, rank, clock_of[rank], false, "epoch 0 / checkpoint", 2);
    }
}

static void work(void) {
    for (uint32_t step = 0; step < job.steps; step++)
        one_step(step);
}

static const char *judged(void) {
    detector_start(&detector);
    detector_feed(&detector, events, count);
    detector_finish(&detector);
    const char *lines = detector_lines(&detector);
    if (detector.verdict_count > 0)
        schema_check_lines(SCHEMA, lines);
    return lines;
}

static void nobody(void) {
    ck_assert_str_eq(judged(), "");
}

static void is_one(const char *kind, const char *rank) {
    char words[128];
    const char *lines = judged();
    ck_assert_msg(detector.verdict_count == 1, "%u verdicts: %s", detector.verdict_count, lines);
    snprintf(words, sizeof words, "\"kind\":\"%s\",", kind);
    says(lines, words);
    says(lines, "\"state\":\"open\",\"severity\":\"warning\"");
    snprintf(words, sizeof words, "{\"kind\":\"rank\",\"name\":\"%s\",\"role\":\"culprit\"}", rank);
    says(lines, words);
}

static double slow_forward_of_2(uint32_t step, uint32_t rank, uint32_t phase) {
    (void)step;
    return rank == 2 && phase == 1 ? 1.5 : 1;
}

static double slow_data_of_1(uint32_t step, uint32_t rank, uint32_t phase) {
    (void)step;
    return rank == 1 && phase == 0 ? 4 : 1;
}

static double slow_backward_of_3(uint32_t step, uint32_t rank, uint32_t phase) {
    (void)step;
    return rank == 3 && phase == 2 ? 1.4 : 1;
}

// -- who is slow ----------------------------------------------------------------------------------

START_TEST(computing) {
    job.factor = slow_forward_of_2;
    job.job = "llama";
    work();
    is_one("slow_compute", "2");
    const char *lines = detector_lines(&detector);
    says(lines, "{\"kind\":\"node\",\"name\":\"node-1\",\"role\":\"suspect\"}");
    says(lines, "\"culprit.slow.phase\":\"forward\"");
    says(lines, "\"uid\":\"step:s-2:2:");
    says(lines, "\"action\":\"inspect_rank\"");
}
END_TEST

START_TEST(input) {
    job.factor = slow_data_of_1;
    work();
    is_one("slow_input", "1");
}
END_TEST

// Where gradients are exchanged in backward, it holds the wait; with a phase for waiting it does
// not.
START_TEST(backward_is_work_beside_a_wait) {
    job.factor = slow_backward_of_3;
    job.phases[3] = job.wait = "all_reduce";
    job.usual_ms[3] = 5;
    work();
    is_one("slow_compute", "3");
}
END_TEST

START_TEST(backward_alone_blames_nobody) {
    job.factor = slow_backward_of_3;
    work();
    nobody();
}
END_TEST

// The two wait as long as each other for what the other does; only one of them works longer.
START_TEST(two_ranks) {
    job.ranks = 2;
    job.factor = slow_data_of_1;
    work();
    is_one("slow_input", "1");
}
END_TEST

static double saves(uint32_t step, uint32_t rank) {
    return step % 5 != 4 ? 0 : rank == 3 ? 170 : 100;
}

// -- without scopes of steps ----------------------------------------------------------------------

START_TEST(phases_that_come_again) {
    job.has_no_step = true;
    job.steps = 40;
    job.factor = slow_forward_of_2;
    work();
    is_one("slow_compute", "2");
}
END_TEST

// What comes again and again only at the beginning begins no step.
START_TEST(a_beginning_and_layers) {
    job.has_no_step = true;
    job.steps = 70;
    job.factor = slow_data_of_1;
    for (uint32_t rank = 0; rank < job.ranks; rank++) {
        boundary(0, rank, clock_of[rank], true, "load model", 1);
        for (uint32_t layer = 0; layer < 20; layer++) {
            boundary(0, rank, clock_of[rank] += 1, true, "load model / layer", 2);
            boundary(0, rank, clock_of[rank] += 1, false, "load model / layer", 2);
        }
        boundary(0, rank, clock_of[rank] += 1, false, "load model", 1);
        boundary(0, rank, clock_of[rank] += 1, true, "epoch 0", 1);
    }
    work();
    is_one("slow_input", "1");
}
END_TEST

// Ranks wait for one another once in four rounds of data, forward and backward.
START_TEST(accumulated_gradients) {
    job.has_no_step = true;
    job.steps = 60;
    job.parts = 4;
    job.phases[3] = job.wait = "optimizer sync";
    job.usual_ms[3] = 5;
    job.factor = slow_forward_of_2;
    work();
    is_one("slow_compute", "2");
}
END_TEST

// From the first scope that is named as a step on, only those count.
START_TEST(scopes_of_steps_go_before) {
    job.has_no_step = true;
    job.steps = 6;
    work();
    job.has_no_step = false;
    job.steps = 36;
    job.factor = slow_forward_of_2;
    work();
    is_one("slow_compute", "2");
}
END_TEST

// What began the steps comes no more.
START_TEST(another_loop) {
    job.has_no_step = true;
    job.steps = 20;
    job.phases[0] = "warm cache";
    work();
    job.phases[0] = "data";
    job.steps = 450;
    job.factor = slow_forward_of_2;
    work();
    is_one("slow_compute", "2");
}
END_TEST

START_TEST(jitter_without_scopes) {
    job.has_no_step = true;
    job.steps = 300;
    job.jitter = 0.1;
    work();
    nobody();
}
END_TEST

START_TEST(checkpoint) {
    job.save_ms = saves;
    work();
    is_one("slow_checkpoint", "3");
}
END_TEST

START_TEST(four_checkpoints_are_too_few) {
    job.steps = 24;
    job.save_ms = saves;
    work();
    nobody();
}
END_TEST

static double input_of_all(uint32_t step, uint32_t rank, uint32_t phase) {
    (void)rank;
    return step >= 20 && phase == 0 ? 5 : 1;
}

START_TEST(stall_of_all_blames_nobody) {
    job.factor = input_of_all;
    work();
    const char *lines = judged();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "\"kind\":\"common_stall\",\"state\":\"open\",\"severity\":\"warning\"");
    says(lines, "All ranks are slow in data alike");
    says_not(lines, "\"role\":\"culprit\"");
    says_not(lines, "\"role\":\"suspect\"");
}
END_TEST

// What the fastest spends in backward is what the slowest works there.
static double later_slow_backward_of_3(uint32_t step, uint32_t rank, uint32_t phase) {
    return step < 16 ? 1 : rank == 3 && phase > 0 ? 1.8 : 1;
}

START_TEST(backward_that_holds_the_wait_is_no_stall) {
    job.steps = 50;
    job.factor = later_slow_backward_of_3;
    work();
    is_one("slow_compute", "3");
}
END_TEST

static double forward_of_all(uint32_t step, uint32_t rank, uint32_t phase) {
    (void)rank;
    return step >= 20 && phase == 1 ? 3 : 1;
}

START_TEST(stall_in_one_part_of_computing) {
    job.factor = forward_of_all;
    job.phases[3] = job.wait = "all_reduce";
    job.usual_ms[3] = 5;
    work();
    const char *lines = judged();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "\"kind\":\"common_stall\",\"state\":\"open\",\"severity\":\"info\"");
}
END_TEST

static double both_of_node_1(uint32_t step, uint32_t rank, uint32_t phase) {
    (void)step;
    return rank / 2 == 1 && phase == 1 ? 1.5 : 1;
}

START_TEST(two_that_are_slow_alike) {
    job.ranks = 8;
    job.factor = both_of_node_1;
    work();
    const char *lines = judged();
    ck_assert_uint_eq(detector.verdict_count, 2);
    says(lines, "{\"kind\":\"rank\",\"name\":\"2\",\"role\":\"culprit\"}");
    says(lines, "{\"kind\":\"rank\",\"name\":\"3\",\"role\":\"culprit\"}");
}
END_TEST

START_TEST(clocks_that_differ) {
    job.factor = slow_forward_of_2;
    job.clock_ms[0] = 700;
    job.clock_ms[2] = -350;
    work();
    is_one("slow_compute", "2");
}
END_TEST

static bool late_and_silent(uint32_t step, uint32_t rank) {
    return !(rank == 0 && step < 9) && !(rank == 3 && step > 5);
}

START_TEST(ranks_that_join_late_or_fall_silent) {
    job.steps = 46;
    job.factor = slow_forward_of_2;
    job.is_told = late_and_silent;
    work();
    is_one("slow_compute", "2");
}
END_TEST

START_TEST(two_jobs_at_once) {
    job.factor = slow_forward_of_2;
    job.job = "a";
    job.session = "a";
    work();
    memset(clock_of, 0, sizeof clock_of);
    job.factor = slow_data_of_1;
    job.job = "b";
    job.session = "b";
    work();
    const char *lines = judged();
    ck_assert_uint_eq(detector.verdict_count, 2);
    says(lines, "\"kind\":\"slow_compute\"");
    says(lines, "\"kind\":\"slow_input\"");
}
END_TEST

// -- what is no fault -----------------------------------------------------------------------------

START_TEST(jitter) {
    job.ranks = _i == 0 ? 2 : 8;
    job.steps = _i == 0 ? 3500 : 850;
    job.jitter = 0.2;
    job.phases[0] = "forward";
    job.phases[1] = job.wait = "all_reduce";
    job.phases[2] = NULL;
    work();
    nobody();
}
END_TEST

// The window alone would name somebody: the guard is needed.
START_TEST(jitter_in_one_window) {
    job.ranks = 2;
    job.steps = 3500;
    job.jitter = 0.2;
    job.phases[0] = "forward";
    job.phases[1] = job.wait = "all_reduce";
    job.phases[2] = NULL;
    work();
    detector_set(&detector, "windows", "1");
    judged();
    ck_assert_uint_gt(detector.verdict_count, 0);
}
END_TEST

static double alone(uint32_t step, uint32_t rank) {
    return rank == 0 && step % 4 == 3 ? 500 : 0;
}

START_TEST(rank_0_saves_alone) {
    job.save_ms = alone;
    work();
    nobody();
}
END_TEST

static double all_computing(uint32_t step, uint32_t rank, uint32_t phase) {
    (void)rank;
    return step >= 18 && phase > 0 ? 2 : 1;
}

START_TEST(more_to_compute) {
    job.factor = all_computing;
    work();
    nobody();
}
END_TEST

static double short_spell(uint32_t step, uint32_t rank, uint32_t phase) {
    return step >= 10 && step < 24 ? slow_forward_of_2(step, rank, phase) : 1;
}

START_TEST(short_spells) {
    job.factor = short_spell;
    work();
    nobody();
}
END_TEST

static double warming(uint32_t step, uint32_t rank, uint32_t phase) {
    return step < 2 && phase == 1 ? 50 * (1 + rank) : 1;
}

START_TEST(first_steps) {
    job.factor = warming;
    work();
    nobody();
}
END_TEST

START_TEST(steps_that_do_not_count) {
    job.factor = slow_forward_of_2;
    work();
    detector_set(&detector, "warm_up", "10");
    nobody();
}
END_TEST

// Ranks that do not wait for one another hold up nobody, however slow one is.
START_TEST(work_that_is_not_synchronised) {
    job.wait = NULL;
    job.factor = slow_forward_of_2;
    work();
    nobody();
}
END_TEST

START_TEST(one_rank_has_no_others) {
    job.ranks = 1;
    job.factor = slow_forward_of_2;
    work();
    nobody();
}
END_TEST

START_TEST(steps_without_phases) {
    job.phases[0] = NULL;
    work();
    nobody();
}
END_TEST

static bool no_ends(uint32_t step, uint32_t rank) {
    (void)step;
    return rank != 2;
}

START_TEST(a_rank_that_never_reports) {
    job.factor = slow_forward_of_2;
    job.is_told = no_ends;
    work();
    nobody();
}
END_TEST

// -- over time ------------------------------------------------------------------------------------

static double until_40(uint32_t step, uint32_t rank, uint32_t phase) {
    return step < 40 ? slow_forward_of_2(step, rank, phase) : 1;
}

START_TEST(a_rank_that_keeps_up_again) {
    job.steps = 60;
    job.factor = until_40;
    work();
    const char *lines = judged();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "\"state\":\"resolved\"");
    says(lines, "Rank 2 keeps up with the others again");
}
END_TEST

// A restarted process is another one; what was found of the old one stays as it was.
START_TEST(a_restart) {
    job.factor = slow_forward_of_2;
    work();
    job.session = "again";
    job.factor = once;
    work();
    is_one("slow_compute", "2");
    says(detector_lines(&detector), "step:s-2:2:");
}
END_TEST

// Whatever the moments of evaluations, and over a restart of culprit with the state loaded.
START_TEST(evaluations_and_a_load_change_nothing) {
    job.factor = slow_forward_of_2;
    work();
    const char *said = judged();
    char *whole = memory_copy_text(said, strlen(said));
    detector_close(&detector);
    detector = detector_open(&processor_slow_rank);
    detector_start(&detector);
    uint32_t part = count / 40 + 1, told = 0;
    for (uint32_t at = 0, round = 0; at < count; at += part, round++) {
        detector_feed(&detector, events + at, count - at < part ? count - at : part);
        detector_judge(&detector, events[at].time_ns - UINT64_C(500) * MS, false);
        if (round % 7 != 3)
            continue;
        struct detector next = detector_open(&processor_slow_rank);
        detector_start(&next);
        detector_move_state(&detector, &next);
        told += detector.verdict_count;
        detector_close(&detector);
        detector = next;
    }
    ck_assert_uint_eq(told + detector.verdict_count, 1);
    detector_lines_reset(&detector);
    detector_finish(&detector);
    const char *lines = detector_lines(&detector);
    // The state of the verdict aside, which was open before.
    ck_assert_str_eq(strstr(lines, "\"severity\""), strstr(whole, "\"severity\""));
    memory_give(whole);
}
END_TEST

// -- bounds ---------------------------------------------------------------------------------------

START_TEST(bounds) {
    for (uint32_t i = 0; i < 40; i++) {
        char name[32];
        snprintf(name, sizeof name, "job-%u", i);
        job.job = job.session = name;
        job.steps = 6;
        memset(clock_of, 0, sizeof clock_of);
        work();
    }
    detector_set(&detector, "max_jobs", "3");
    detector_set(&detector, "max_processes", "16");
    detector_set(&detector, "max_waiting", "64");
    nobody();
    const struct metric *evicted = ((struct detector_base *)detector.instance)->evicted;
    ck_assert_uint_gt(metric_value(evicted), 30);
}
END_TEST

START_TEST(another_name_of_steps) {
    job.factor = slow_forward_of_2;
    work();
    detector_set(&detector, "step_phase", "turn");
    nobody();
}
END_TEST

START_TEST(more_steps_than_are_remembered) {
    struct problem_list problems;
    problem_list_init(&problems, &detector.arena);
    detector_set(&detector, "windows", "6");
    processor_slow_rank.validate(detector.config, &problems);
    ck_assert_uint_eq(problems.count, 0);
    detector_set(&detector, "windows", "7");
    processor_slow_rank.validate(detector.config, &problems);
    ck_assert_uint_eq(problems.count, 1);
    ck_assert_str_eq(problems.items[0].text,
                     "with window 10 they are 70 steps; at most 64 are remembered");
    detector_set(&detector, "windows", "3");
    detector_start(&detector);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("slow_rank");
    TCase *cases = tcase_create("slow_rank");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, computing);
    tcase_add_test(cases, input);
    tcase_add_test(cases, backward_is_work_beside_a_wait);
    tcase_add_test(cases, backward_alone_blames_nobody);
    tcase_add_test(cases, two_ranks);
    tcase_add_test(cases, phases_that_come_again);
    tcase_add_test(cases, a_beginning_and_layers);
    tcase_add_test(cases, accumulated_gradients);
    tcase_add_test(cases, scopes_of_steps_go_before);
    tcase_add_test(cases, another_loop);
    tcase_add_test(cases, jitter_without_scopes);
    tcase_add_test(cases, checkpoint);
    tcase_add_test(cases, four_checkpoints_are_too_few);
    tcase_add_test(cases, stall_of_all_blames_nobody);
    tcase_add_test(cases, stall_in_one_part_of_computing);
    tcase_add_test(cases, backward_that_holds_the_wait_is_no_stall);
    tcase_add_test(cases, two_that_are_slow_alike);
    tcase_add_test(cases, clocks_that_differ);
    tcase_add_test(cases, ranks_that_join_late_or_fall_silent);
    tcase_add_test(cases, two_jobs_at_once);
    tcase_add_loop_test(cases, jitter, 0, 2);
    tcase_add_test(cases, jitter_in_one_window);
    tcase_add_test(cases, rank_0_saves_alone);
    tcase_add_test(cases, more_to_compute);
    tcase_add_test(cases, short_spells);
    tcase_add_test(cases, first_steps);
    tcase_add_test(cases, steps_that_do_not_count);
    tcase_add_test(cases, work_that_is_not_synchronised);
    tcase_add_test(cases, one_rank_has_no_others);
    tcase_add_test(cases, steps_without_phases);
    tcase_add_test(cases, a_rank_that_never_reports);
    tcase_add_test(cases, a_rank_that_keeps_up_again);
    tcase_add_test(cases, a_restart);
    tcase_add_test(cases, evaluations_and_a_load_change_nothing);
    tcase_add_test(cases, bounds);
    tcase_add_test(cases, another_name_of_steps);
    tcase_add_test(cases, more_steps_than_are_remembered);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
