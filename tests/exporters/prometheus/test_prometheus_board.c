// SPDX-License-Identifier: Apache-2.0
#include "tests/exporters/prometheus/board_fixture.h"
#include "tests/exporters/sample_evaluation.h"

static void setup(void) {
    fixture_begin(2000);
}

static void teardown(void) {
    fixture_end();
}

#define OPEN    "culprit_verdict_open{training_job=\"train-7\",pattern=\"nccl_hang\","
#define COUNTED "culprit_verdicts_total{training_job=\"train-7\",pattern=\"nccl_hang\","

START_TEST(a_verdict_opens_changes_and_ends) {
    struct attribute attributes[] = {{"culprit.phase", SLICE("backward")},
                                     {"host.name", SLICE("gpu-12")}};
    struct verdict verdict = a_verdict("nccl_hang:01", "train-7");
    verdict.attributes = attributes;
    verdict.attribute_count = 2;
    tell(verdict);
    const char *text = page();
    ck_assert_line(text, OPEN
                   "kind=\"missing_rank\",severity=\"critical\",rank=\"3\","
                   "node=\"gpu-12\",phase=\"backward\"} 1");
    ck_assert_line(text,
                   "culprit_verdict_confidence_ratio{training_job=\"train-7\","
                   "pattern=\"nccl_hang\",rank=\"3\",node=\"gpu-12\"} 0.93");
    ck_assert_line(text,
                   "culprit_verdict_first_event_timestamp_seconds{training_job=\"train-7\","
                   "pattern=\"nccl_hang\",rank=\"3\",node=\"gpu-12\"} 1763706000.25");
    ck_assert_line(text, COUNTED "kind=\"missing_rank\",severity=\"critical\"} 1");
    // The last event needed was a second before now.
    ck_assert_line(text,
                   "culprit_verdict_latency_seconds_bucket{pattern=\"nccl_hang\","
                   "le=\"0.5\"} 0");
    ck_assert_line(text,
                   "culprit_verdict_latency_seconds_bucket{pattern=\"nccl_hang\",le=\"1\"} 1");
    ck_assert_line(text, "culprit_verdict_latency_seconds_sum{pattern=\"nccl_hang\"} 1");

    verdict.severity = SEVERITY_WARNING;
    verdict.confidence = 40;
    tell_state(verdict, VERDICT_UPDATED);
    text = page();
    ck_assert_line(text, OPEN
                   "kind=\"missing_rank\",severity=\"warning\",rank=\"3\","
                   "node=\"gpu-12\",phase=\"backward\"} 1");
    ck_assert_uint_eq(samples(text, "culprit_verdict_open"), 1);
    ck_assert_line(text, COUNTED "kind=\"missing_rank\",severity=\"critical\"} 1");
    ck_assert_uint_eq(samples(text, "culprit_verdicts_total"), 1);
    ck_assert_line(text, "culprit_verdict_latency_seconds_count{pattern=\"nccl_hang\"} 1");

    tell_state(verdict, VERDICT_RESOLVED);
    text = page();
    ck_assert_uint_eq(samples(text, "culprit_verdict_open"), 0);
    ck_assert_uint_eq(samples(text, "culprit_verdict_confidence_ratio"), 0);
    ck_assert_uint_eq(samples(text, "culprit_verdict_first_event"), 0);
    ck_assert_line(text, COUNTED "kind=\"missing_rank\",severity=\"critical\"} 1");

    // It comes again: that is one more.
    tell_state(verdict, VERDICT_UPDATED);
    ck_assert_line(page(), COUNTED "kind=\"missing_rank\",severity=\"warning\"} 1");
}
END_TEST

START_TEST(one_that_was_over_at_once_is_not_counted) {
    tell_state(a_verdict("nccl_hang:01", "train-7"), VERDICT_RESOLVED);
    ck_assert_uint_eq(samples(page(), "culprit_verdict"), 0);
}
END_TEST

START_TEST(exemplars_name_the_verdict) {
    tell(a_verdict("nccl_hang:01", "train-7"));
    const char *text = page_in(EXPOSITION_OPENMETRICS);
    ck_assert_line(text,
                   "culprit_verdict_latency_seconds_bucket{pattern=\"nccl_hang\","
                   "le=\"1.0\"} 1 # {verdict_id=\"nccl_hang:01\"} 1 1763706002.25");
    ck_assert_ptr_null(strstr(page(), "nccl_hang:01"));
}
END_TEST

START_TEST(inputs_of_another_day_have_no_latency) {
    board.live = false;
    tell(a_verdict("nccl_hang:01", "train-7"));
    ck_assert_uint_eq(samples(page(), "culprit_verdict_latency"), 0);
    ck_assert_uint_eq(samples(page(), "culprit_verdicts_total"), 1);
}
END_TEST

START_TEST(only_who_is_blamed_is_named) {
    struct attribute attributes[] = {{"culprit.phase", SLICE("backward")},
                                     {"host.name", SLICE("gpu-12")}};
    struct entity suspects[] = {{"rank", SLICE("1"), ROLE_SUSPECT},
                                {"rank", SLICE("2"), ROLE_SUSPECT}};
    struct entity mixed[] = {{"node", SLICE("node-a"), ROLE_CULPRIT},
                             {"rank", SLICE("4"), ROLE_CULPRIT},
                             {"rank", SLICE("5"), ROLE_VICTIM}};
    struct entity victims[] = {{"rank", SLICE("5"), ROLE_VICTIM}};
    static const struct {
        uint32_t which, count;
        const char *wanted;
    } cases[] = {
        {0, 2, "\"critical\"} 1"},
        {0, 1, "\"critical\",rank=\"1\",node=\"gpu-12\",phase=\"backward\"} 1"},
        {1, 3, "\"critical\",rank=\"4\",node=\"node-a\",phase=\"backward\"} 1"},
        {2, 1, "\"critical\",node=\"gpu-12\",phase=\"backward\"} 1"},
        {2, 0, "\"critical\",node=\"gpu-12\",phase=\"backward\"} 1"},
    };
    struct entity *lists[] = {suspects, mixed, victims};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct verdict verdict = a_verdict("nccl_hang:01", "train-7");
        verdict.entities = lists[cases[i].which];
        verdict.entity_count = cases[i].count;
        verdict.attributes = attributes;
        verdict.attribute_count = 2;
        tell(verdict);
        char line[512];
        snprintf(line, sizeof line, OPEN "kind=\"missing_rank\",severity=%s", cases[i].wanted);
        ck_assert_line(page(), line);
    }
}
END_TEST

START_TEST(same_labels_are_one_series) {
    struct verdict first = a_verdict("nccl_hang:01", "train-7");
    struct verdict second = a_verdict("nccl_hang:02", "train-7");
    struct verdict third = a_verdict("nccl_hang:03", "train-7");
    first.confidence = 50;
    second.start_ns -= 5 * SECOND;
    third.kind = "slow_rank";
    third.confidence = 95;
    tell(first);
    tell(second);
    tell(third);
    const char *text = page();
    ck_assert_uint_eq(samples(text, "culprit_verdict_open"), 2);
    ck_assert_line(text,
                   "culprit_verdict_confidence_ratio{training_job=\"train-7\","
                   "pattern=\"nccl_hang\",rank=\"3\"} 0.95");
    ck_assert_line(text,
                   "culprit_verdict_first_event_timestamp_seconds{training_job=\"train-7\","
                   "pattern=\"nccl_hang\",rank=\"3\"} 1763705995.25");
    tell_state(first, VERDICT_RESOLVED);
    tell_state(third, VERDICT_RESOLVED);
    text = page();
    ck_assert_uint_eq(samples(text, "culprit_verdict_open"), 1);
    ck_assert_line(text,
                   "culprit_verdict_confidence_ratio{training_job=\"train-7\","
                   "pattern=\"nccl_hang\",rank=\"3\"} 0.93");
}
END_TEST

START_TEST(ranks_and_job) {
    evaluate("train-7", 11, START_NS);
    const char *text = page();
    ck_assert_line(text,
                   "culprit_training_job_info{training_job=\"train-7\",world_size=\"8\","
                   "generation=\"2\"} 1");
    ck_assert_line(text,
                   "culprit_rank_last_event_timestamp_seconds{training_job=\"train-7\","
                   "rank=\"10\"} 1763706010.25");
    ck_assert_line(text, "culprit_rank_samples_total{training_job=\"train-7\",rank=\"2\"} 12");
    ck_assert_line(text,
                   "culprit_rank_memory_growth_bytes{training_job=\"train-7\",rank=\"2\"} "
                   "2000");
    ck_assert_uint_eq(samples(text, "culprit_rank_last"), 11);
    // By number, not by text.
    ck_assert(strstr(text, "rank=\"10\"") > strstr(text, "rank=\"9\""));
    // Nothing was held of the samples themselves.
    ck_assert_uint_eq(samples(text, "culprit_rank_device_memory"), 0);
    text = page_in(EXPOSITION_OPENMETRICS);
    ck_assert_line(text, "# TYPE culprit_training_job info");
    ck_assert_line(text, "# TYPE culprit_rank_samples counter");
}
END_TEST

START_TEST(memory_of_a_rank) {
    static struct sample_evaluation sample;
    sample_init(&sample, SLICE("train-7"));
    for (int32_t rank = 0; rank < 2; rank++) {
        uint32_t index = sample_rank(&sample, rank, SLICE("node0"), 1);
        for (uint64_t i = 0; i < 50; i++)
            sample_add(&sample, index, START_NS + i * SECOND, 1000 * (rank + 1) + (int64_t)(i % 7));
        sample.views[index].max_used_bytes = 5000;
    }
    struct batch batch = sample_batch(&sample);
    board_update(&board, &batch, now);
    const char *text = page();
    ck_assert_line(text,
                   "culprit_rank_device_memory_used_bytes{training_job=\"train-7\","
                   "rank=\"1\"} 2000");
    ck_assert_line(text,
                   "culprit_rank_device_memory_peak_bytes{training_job=\"train-7\","
                   "rank=\"1\"} 5000");
    ck_assert_line(text,
                   "culprit_rank_last_event_timestamp_seconds{training_job=\"train-7\","
                   "rank=\"0\"} 1763706049.25");
    // Without spike_detect nothing is known of growth.
    sample.evaluation.spikes = NULL;
    batch = sample_batch(&sample);
    board_update(&board, &batch, now);
    ck_assert_uint_eq(samples(page(), "culprit_rank_memory_growth_bytes"), 0);
    sample_release(&sample);
}
END_TEST

START_TEST(texts_from_outside_cannot_break_the_page) {
    char longer[2][400];
    for (int i = 0; i < 2; i++) {
        memset(longer[i], 'x', sizeof longer[i]);
        longer[i][399] = '\0';
        longer[i][398] = (char)('a' + i);
        evaluate(longer[i], 2, START_NS);
        tell(a_verdict(i == 0 ? "nccl_hang:0a" : "nccl_hang:0b", longer[i]));
    }
    evaluate("\"} 1\nevil{a=\"", 2, START_NS);
    evaluate("a\xff", 2, START_NS);
    evaluate("a\xfe", 2, START_NS);
    evaluate("", 2, START_NS);
    struct evaluation nameless = {.job = STRING_NONE};
    struct batch batch = {
        .arena = &arena, .evaluate = true, .evaluations = &nameless, .evaluation_count = 1};
    board_update(&board, &batch, now);
    const char *text = page(); // checks that no series is there twice
    ck_assert_ptr_null(strstr(text, "\nevil"));
    ck_assert_line(text,
                   "culprit_rank_samples_total{training_job=\"\\\"} 1\\nevil{a=\\\"\","
                   "rank=\"0\"} 10");
    ck_assert_line(text,
                   "culprit_rank_samples_total{training_job=\"a\xef\xbf\xbd\",rank=\"1\"} 11");
    ck_assert_line(text, "culprit_rank_samples_total{rank=\"1\"} 11");
    ck_assert_uint_eq(samples(text, "culprit_rank_samples_total{training_job=\"xxx"), 2);
}
END_TEST

START_TEST(a_job_ends_by_the_clock) {
    evaluate("train-7", 2, START_NS);
    tell(a_verdict("nccl_hang:01", "train-8"));
    evaluate("train-8", 2, START_NS);
    now.monotonic_ns += 300 * SECOND - 1;
    ck_assert_uint_eq(samples(page(), "culprit_rank_samples_total"), 4);
    now.monotonic_ns += 1;
    // Nobody told the board, and nobody need scrape: what is over is not shown.
    const char *text = page();
    ck_assert_uint_eq(samples(text, "culprit_rank_samples_total"), 2);
    ck_assert_uint_eq(samples(text, "culprit_training_job_info"), 1);
    // The verdict stands, however silent its job is.
    ck_assert_line(text,
                   "culprit_verdict_open{training_job=\"train-8\",pattern=\"nccl_hang\","
                   "kind=\"missing_rank\",severity=\"critical\",rank=\"3\"} 1");
    uint32_t before = board.series_count;
    evaluate("train-9", 1, START_NS); // the next batch gives the memory back
    ck_assert_uint_eq(board.series_count,
                      before - 2 * BOARD_RANK_SERIES - 1 + BOARD_RANK_SERIES + 1);
    tell_state(a_verdict("nccl_hang:01", "train-8"), VERDICT_RESOLVED);
    ck_assert_uint_eq(samples(page(), "culprit_verdicts_total"), 1);
    now.monotonic_ns += 300 * SECOND;
    text = page();
    ck_assert_uint_eq(samples(text, "culprit_verdicts_total"), 0);
    ck_assert_uint_eq(samples(text, "culprit_rank"), 0);
    ck_assert_uint_eq(samples(text, "culprit_verdict_latency_seconds_count"), 1);
    evaluate("train-9", 0, START_NS);
    ck_assert_uint_eq(board.series_count, BOARD_PATTERN_SERIES);
    ck_assert_uint_eq(board.rank_series_count, 0);
}
END_TEST

START_TEST(a_forgotten_job_is_gone_but_for_its_counts) {
    evaluate("train-7", 3, START_NS);
    evaluate("train-8", 3, START_NS);
    tell(a_verdict("nccl_hang:01", "train-7"));
    forget("train-7");
    const char *text = page();
    ck_assert_ptr_null(strstr(text, "culprit_rank_samples_total{training_job=\"train-7\""));
    ck_assert_uint_eq(samples(text, "culprit_rank_samples_total{training_job=\"train-8\""), 3);
    ck_assert_uint_eq(samples(text, "culprit_verdict_open"), 0);
    ck_assert_uint_eq(samples(text, "culprit_training_job_info"), 1);
    ck_assert_line(text, COUNTED "kind=\"missing_rank\",severity=\"critical\"} 1");
    struct forgotten everything = {.everything = true};
    struct batch batch = {.arena = &arena, .evaluate = true, .forgotten = &everything};
    board_update(&board, &batch, now);
    ck_assert_uint_eq(samples(page(), "culprit_rank"), 0);
}
END_TEST

START_TEST(never_expires) {
    board.expiration_ns = UINT64_MAX;
    evaluate("train-7", 1, START_NS);
    now.monotonic_ns = UINT64_MAX - 1;
    ck_assert_uint_eq(samples(page(), "culprit_rank_samples_total"), 1);
}
END_TEST

START_TEST(a_batch_like_the_last_takes_no_memory) {
    evaluate("train-7", 300, START_NS);
    tell(a_verdict("nccl_hang:01", "train-7"));
    page();
    uint64_t before = memory_figures().allocations;
    for (uint64_t i = 1; i < 50; i++) {
        evaluate("train-7", 300, START_NS + i);
        tell_state(a_verdict("nccl_hang:01", "train-7"), VERDICT_UPDATED);
        board_expose(&board, &(struct exposition){.out = &(struct buffer){.failed = true}},
                     now.monotonic_ns);
    }
    ck_assert_uint_eq(memory_figures().allocations, before);
}
END_TEST

int main(void) {
    TCase *all = tcase_create("all");
    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_test(all, a_verdict_opens_changes_and_ends);
    tcase_add_test(all, one_that_was_over_at_once_is_not_counted);
    tcase_add_test(all, exemplars_name_the_verdict);
    tcase_add_test(all, inputs_of_another_day_have_no_latency);
    tcase_add_test(all, only_who_is_blamed_is_named);
    tcase_add_test(all, same_labels_are_one_series);
    tcase_add_test(all, ranks_and_job);
    tcase_add_test(all, memory_of_a_rank);
    tcase_add_test(all, texts_from_outside_cannot_break_the_page);
    tcase_add_test(all, a_job_ends_by_the_clock);
    tcase_add_test(all, a_forgotten_job_is_gone_but_for_its_counts);
    tcase_add_test(all, never_expires);
    tcase_add_test(all, a_batch_like_the_last_takes_no_memory);
    Suite *suite = suite_create("prometheus_board");
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
