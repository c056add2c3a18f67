// SPDX-License-Identifier: Apache-2.0
// Spans and phases as time series: what is shown, under which names, and that it stays bounded.
#include "tests/exporters/prometheus/board_fixture.h"
#include "tests/exporters/span_fixture.h"

#define T 1700000000.0

static const struct fake_span spans[] = {
    {"train \"a\"", -1, T, T + 10, 2, 0, 0, 0, 0, 0, 0},
    {"step-0", 0, T, T + 5, 2, 8, 4096, 0, 0, 0, 2},
    {"step-1", 0, T + 5, T + 10, 2, 4, 1000, 1, 0, 1, 0},
};
static struct span_tree tree = {spans, 3, 0};

static const struct span_phase phases[] = {
    {.label = SLICE("step / backward"),
     .openings = 10,
     .thread_s = 60,
     .busy_s = 41.5,
     .idle_s = 18.5,
     .ranks = fake_ranks,
     .rank_count = 4},
};

static void setup(void) {
    fixture_begin(2000);
}

static void show(const struct span_report *reports, uint32_t count) {
    struct batch batch = {
        .arena = &arena, .evaluate = true, .spans = {.items = reports, .count = count}};
    board_update(&board, &batch, now);
}

static const char *contains(const char *text, const char *line) {
    const char *found = strstr(text, line);
    ck_assert_msg(found != NULL, "no %s in\n%s", line, text);
    return found;
}

static uint32_t samples_in(const char *text) {
    uint32_t count = 0;
    for (const char *at = text; (at = strstr(at, "\nculprit_span_")) != NULL; at++)
        count++;
    return count;
}

START_TEST(a_stream) {
    struct span_report report = fake_stream(&tree, "tasks.jsonl");
    static const struct span_refused refused[] = {
        {3, -1, SPAN_BAD_JSON}, {4, -1, SPAN_BAD_JSON}, {9, 2, SPAN_UNKNOWN_SPAN}};
    report.refused = refused;
    report.refused_count = 3;
    report.refused_not_listed = 7;
    report.folded = 5;
    show(&report, 1);
    const char *text = page();
    contains(text, "\nculprit_span_thread_seconds{source=\"tasks.jsonl\",span=\"step-#\"} 20\n");
    contains(text,
             "\nculprit_span_thread_seconds{source=\"tasks.jsonl\",span=\"train \\\"a\\\"\"} "
             "20\n");
    contains(text, "\nculprit_span_idle_seconds{source=\"tasks.jsonl\",span=\"step-#\"} 8\n");
    contains(text, "\nculprit_span_bytes{source=\"tasks.jsonl\",span=\"step-#\"} 5096\n");
    contains(text, "\nculprit_span_running{source=\"tasks.jsonl\",span=\"step-#\"} 1\n");
    contains(text, "\nculprit_span_tasks{source=\"tasks.jsonl\",state=\"processing\"} 1\n");
    contains(text, "\nculprit_span_tasks{source=\"tasks.jsonl\",state=\"memory\"} 2\n");
    contains(text, "\nculprit_span_tasks{source=\"tasks.jsonl\",state=\"waiting\"} 0\n");
    contains(text, "\nculprit_span_refused_total{source=\"tasks.jsonl\",code=\"bad-json\"} 2\n");
    contains(text,
             "\nculprit_span_refused_total{source=\"tasks.jsonl\",code=\"unknown-span\"} 1\n");
    contains(text, "\nculprit_span_refused_total{source=\"tasks.jsonl\",code=\"not-listed\"} 7\n");
    contains(text, "\nculprit_span_folded_total{source=\"tasks.jsonl\"} 5\n");
    ck_assert_ptr_null(strstr(text, "overflow"));
    ck_assert_uint_eq(board.span_series_count, samples_in(text));
    ck_assert_uint_eq(board.series_count, board.span_series_count);
    // The same again changes nothing.
    char *first = strdup(text);
    show(&report, 1);
    ck_assert_str_eq(first, page());
    free(first);
}
END_TEST

START_TEST(phases_of_a_job) {
    struct span_tree none = {spans, 0, 0};
    struct span_report report = fake_job(&none, phases, 1, "exp-7");
    show(&report, 1);
    const char *text = page();
#define PHASE "{training_job=\"exp-7\",phase=\"step / backward\""
    contains(text, "\nculprit_span_phase_thread_seconds_total" PHASE "} 60\n");
    contains(text, "\nculprit_span_phase_busy_seconds_total" PHASE "} 41.5\n");
    contains(text, "\nculprit_span_phase_idle_seconds" PHASE "} 18.5\n");
    contains(text, "\nculprit_span_phase_openings_total" PHASE "} 10\n");
    contains(text, "\nculprit_span_phase_ranks_inside" PHASE "} 1\n");
    contains(text, "\nculprit_span_phase_lag_seconds" PHASE ",rank=\"2\"} 4.5\n");
    contains(text, "\nculprit_span_phase_lag_seconds" PHASE ",rank=\"0\"} 0.5\n");
    ck_assert_ptr_null(strstr(text, "rank=\"1\""));
    ck_assert_ptr_null(strstr(text, "culprit_span_tasks"));
}
END_TEST

// Ten thousand names and a hundred trees: no more series than there is room for.
START_TEST(series_are_bounded) {
    enum { NAMES = 2000, TREES = 100 };
    static struct fake_span many[NAMES];
    static char names[NAMES][8];
    double most = 0;
    for (int i = 0; i < NAMES; i++) {
        for (int digit = 0, left = i; digit < 3; digit++, left /= 26)
            names[i][digit] = (char)('a' + left % 26);
        many[i] = (struct fake_span){
            .name = names[i], .parent = -1, .begin_s = T, .end_s = T + 1 + i, .threads = 1};
        most += 1 + i;
    }
    struct span_tree wide = {many, NAMES, 0};
    struct span_report report = fake_stream(&wide, "wide");
    show(&report, 1);
    const char *text = page();
    ck_assert_uint_le(board.span_series_count, 500);
    ck_assert_uint_gt(board.span_series_count, 480);
    ck_assert_uint_le(samples_in(text), 500 + BOARD_SPAN_FAMILIES);
    // What has most thread time has a series, and the sum of all is what it was.
    contains(text, names[NAMES - 1]);
    double sum = 0, value;
    for (const char *at = text; (at = strstr(at, "\nculprit_span_thread_seconds{")) != NULL; at++) {
        ck_assert_int_eq(sscanf(strstr(at, "} ") + 2, "%lf", &value), 1);
        sum += value;
    }
    ck_assert_double_eq_tol(sum, most, 1e-6 * most);
    contains(text, "\nculprit_span_thread_seconds{otel_metric_overflow=\"true\"} ");
    ck_assert_uint_gt(board.overflow_count, 5 * (NAMES - 100));

    static struct span_report reports[TREES];
    static char sources[TREES][32];
    for (int i = 0; i < TREES; i++) {
        snprintf(sources[i], sizeof sources[i], "tree-%02d", i);
        reports[i] = fake_stream(&tree, sources[i]);
    }
    for (int again = 0; again < 3; again++) {
        show(reports, TREES);
        ck_assert_uint_le(samples_in(page()), 500 + BOARD_SPAN_FAMILIES);
        ck_assert_uint_le(board.span_series_count, 500);
    }
    // A verdict finds room all the same.
    tell(a_verdict("nccl_hang:0123456789abcdef", "exp-7"));
    contains(page(), "\nculprit_verdict_open{training_job=\"exp-7\"");
}
END_TEST

// Ranks and spans share three quarters, whoever comes first.
START_TEST(ranks_and_spans_share) {
    fixture_end();
    fixture_begin(200);
    evaluate("exp-7", 1000, START_NS);
    uint32_t ranks = board.rank_series_count;
    ck_assert_uint_eq(ranks, 150);
    struct span_report report = fake_stream(&tree, "tasks.jsonl");
    show(&report, 1);
    ck_assert_uint_eq(board.span_series_count, 0);
    contains(page(), "\nculprit_span_thread_seconds{otel_metric_overflow=\"true\"} 40\n");
    fixture_end();
    fixture_begin(200);
    show(&report, 1);
    uint32_t taken = board.span_series_count;
    ck_assert_uint_gt(taken, 10);
    evaluate("exp-7", 1000, START_NS);
    ck_assert_uint_le(board.rank_series_count + taken, 150);
    (void)page();
}
END_TEST

START_TEST(it_ends_with_its_job) {
    struct span_tree none = {spans, 0, 0};
    struct span_report reports[] = {fake_stream(&tree, "tasks.jsonl"),
                                    fake_job(&none, phases, 1, "exp-7")};
    evaluate("exp-7", 1, START_NS);
    show(reports, 2);
    now.monotonic_ns += 299 * SECOND;
    contains(page(), "culprit_span_phase_openings_total");
    now.monotonic_ns += 2 * SECOND;
    ck_assert_ptr_null(strstr(page(), "culprit_span_"));
    show(reports, 1);
    contains(page(), "culprit_span_tasks");
    ck_assert_ptr_null(strstr(page(), "culprit_span_phase"));

    evaluate("exp-7", 1, START_NS);
    show(reports, 2);
    contains(page(), "culprit_span_phase_openings_total");
    const struct forgotten_job job = {.job = intern(SLICE("exp-7"))};
    const struct forgotten forgotten = {.jobs = &job, .job_count = 1};
    struct batch batch = {.arena = &arena, .evaluate = true, .forgotten = &forgotten};
    board_update(&board, &batch, now);
    ck_assert_ptr_null(strstr(page(), "culprit_span_phase"));
    contains(page(), "culprit_span_tasks");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("prometheus_spans");
    TCase *cases = tcase_create("prometheus_spans");
    tcase_add_checked_fixture(cases, setup, fixture_end);
    tcase_add_test(cases, a_stream);
    tcase_add_test(cases, phases_of_a_job);
    tcase_add_test(cases, series_are_bounded);
    tcase_add_test(cases, ranks_and_spans_share);
    tcase_add_test(cases, it_ends_with_its_job);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
