// SPDX-License-Identifier: Apache-2.0
// Spans on the HTML page: what is told, that names do nothing, its bounds; and pages without
// memory.
#include "exporters/report/page/capture.h"
#include "tests/exporters/sample_evaluation.h"
#include "tests/exporters/span_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#define T 1700000000.0

static struct sample_evaluation sample;
static struct page_input input;
static struct batch batch;
static struct buffer out;

static void setup(void) {
    buffer_init(&out, 64 << 20);
    sample_init(&sample, (struct slice){NULL, 0});
    input = (struct page_input){.batch = &batch, .max_points = 600, .max_ranks = 64};
}

static void teardown(void) {
    buffer_release(&out);
    sample_release(&sample);
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static const char *page_of(const struct span_report *reports, uint32_t count) {
    buffer_reset(&out);
    batch = sample_batch(&sample);
    batch.spans = (struct span_report_list){reports, count};
    page_encode(&input, &out);
    buffer_append_char(&out, '\0');
    ck_assert(!out.failed);
    const char *file = getenv("SHOW_PAGE");
    FILE *copy = file == NULL ? NULL : fopen(file, "w");
    if (copy != NULL) {
        fputs(out.data, copy);
        fclose(copy);
    }
    return out.data;
}

static const char *contains(const char *text, const char *part) {
    const char *found = strstr(text, part);
    ck_assert_msg(found != NULL, "no \"%s\"", part);
    return found;
}

static void lacks(const char *text, const char *part) {
    ck_assert_msg(strstr(text, part) == NULL, "\"%s\" is there", part);
}

static uint32_t count_of(const char *text, const char *part) {
    uint32_t count = 0;
    for (; (text = strstr(text, part)) != NULL; text++)
        count++;
    return count;
}

static const struct fake_span spans[] = {
    {"train<b>", -1, T, T + 10, 2, 12, 4096, 1, 0, 0, 0},
    {"\" onload=\"x", 0, T, T + 5, 2, 0, 0, 0, 0, 0, 2},
    {"\xe2\x80\xae\x1b'", 0, T + 5, T + 10, 2, 0, 0, 1, 0, 2, 0},
};
static struct span_tree tree = {spans, 3, 0};

static const struct span_phase phases[] = {
    {.label = SLICE("epoch / <i>step</i>"),
     .openings = 10,
     .thread_s = 60,
     .busy_s = 41.5,
     .idle_s = 18.5,
     .ranks = fake_ranks,
     .rank_count = 4},
    {.label = SLICE("eval"), .openings = 1, .thread_s = 3, .busy_s = 3},
};

START_TEST(a_stream_alone) {
    struct span_report report = fake_stream(&tree, "tasks<1>.jsonl");
    const char *page = page_of(&report, 1);
    contains(page, "<h1>Thread time</h1>");
    contains(page, "Thread time in tasks&lt;1&gt;.jsonl</h2>");
    contains(page, "<th scope=\"row\" class=\"d0\">train&lt;b&gt;");
    contains(page, "<th scope=\"row\" class=\"d1\">&quot; onload=&quot;x");
    contains(page, "\\u202e\\x1b&#39;");
    contains(page, "running for 5.00 s: 1 processing, 2 erred");
    contains(page,
             "<rect class=\"busy\" width=\"60.00\" height=\"8\"/>"
             "<rect class=\"idle\" x=\"60.00\" width=\"40.00\" height=\"8\"/>");
    lacks(page, "Nothing was found");
    lacks(page, "Memory of");
    lacks(page, "<b>");
    lacks(page, "style=\"");
}
END_TEST

START_TEST(phases_of_a_job_stand_with_it) {
    sample_release(&sample);
    sample_init(&sample, SLICE("llama"));
    uint32_t index = sample_rank(&sample, 0, SLICE("h"), 1);
    sample_add(&sample, index, UINT64_C(1795248412232761088), 100);
    struct span_report report = fake_job(&tree, phases, 2, "llama");
    const char *page = page_of(&report, 1);
    contains(page, "<h1>Memory of job llama</h1>");
    const char *section = contains(page, ">Thread time</h2>");
    contains(section, "epoch / &lt;i&gt;step&lt;/i&gt;");
    contains(section, "rank 2 by 4.50 s <span class=\"quiet\">slowest in 9 of 10</span>");
    contains(section, "<span class=\"tag\">still inside</span> rank 1");
    contains(section,
             "<rect class=\"busy\" width=\"69.17\" height=\"8\"/>"
             "<rect class=\"idle\" x=\"69.17\" width=\"30.83\" height=\"8\"/>");
    lacks(page, "Thread time in");
    ck_assert_uint_eq(count_of(page, "table class=\"spans\""), 1);
}
END_TEST

// A page in two steps asks no tree when it is rendered, and says the same.
START_TEST(a_copy_tells_the_same) {
    sample_release(&sample);
    sample_init(&sample, SLICE("llama"));
    uint32_t index = sample_rank(&sample, 0, SLICE("h"), 1);
    sample_add(&sample, index, UINT64_C(1795248412232761088), 100);
    sample.evaluation.last = false;
    struct span_report reports[] = {fake_job(&tree, phases, 2, "llama"),
                                    fake_stream(&tree, "tasks<1>.jsonl")};
    struct page_notes *notes = page_notes_new();
    input.notes = notes;
    char *wanted = strdup(page_of(reports, 2));
    struct page_follower *follower = page_follower_new();
    struct page_mirror *mirror = page_mirror_new();
    struct page_log log = {0};
    struct page_capture capture;
    struct kept_verdicts none = {0};
    page_capture_init(&capture);
    batch.last = false;
    ck_assert(page_follow(follower, &batch, &log));
    page_capture_take(&capture, follower, &batch, &none, notes, &(struct page_notes_versions){0});
    memset(reports, 0x5a, sizeof reports);
    uint32_t asked = tree.asked;
    page_mirror_fold(mirror, &log);
    buffer_reset(&out);
    struct page_input shown_input;
    page_capture_open(&capture, mirror, notes, &input, &shown_input);
    page_encode(&shown_input, &out);
    page_capture_close(&capture);
    buffer_append_char(&out, '\0');
    ck_assert_str_eq(out.data, wanted);
    ck_assert_uint_eq(tree.asked, asked);
    free(wanted);
    page_capture_release(&capture);
    page_log_release(&log);
    page_mirror_release(mirror);
    page_follower_release(follower);
    page_notes_release(notes);
}
END_TEST

// 9 ms do not look like 2.85 s: bars of one column have one scale.
START_TEST(bars_of_lag_have_one_scale) {
    static const struct span_phase_rank slow[] = {{.rank = 2, .openings = 5, .lag_s = 2.85}};
    static const struct span_phase_rank quick[] = {{.rank = 1, .openings = 5, .lag_s = 0.009},
                                                   {.rank = 0, .openings = 5, .lag_s = 0.0045}};
    static const struct span_phase lagging[] = {
        {.label = SLICE("slow"), .openings = 5, .thread_s = 9, .ranks = slow, .rank_count = 1},
        {.label = SLICE("quick"), .openings = 5, .thread_s = 8, .ranks = quick, .rank_count = 2},
    };
    struct span_report report = fake_job(&tree, lagging, 2, "llama");
    const char *page = page_of(&report, 1);
    const char *first = contains(page, "rank 2 by 2.85 s");
    contains(first, "<rect class=\"lags\" width=\"100.00\" height=\"8\"/>");
    ck_assert_uint_eq(count_of(page, "<rect class=\"lags\" width=\"100.00\""), 1);
    contains(contains(page, "rank 1 by 9 ms"), "<rect class=\"lags\" width=\"0.32\"");
    contains(contains(page, "rank 0 by 4 ms"), "<rect class=\"lags\" width=\"0.16\"");
    contains(page, "All bars of a column have one scale");
}
END_TEST

START_TEST(rows_are_bounded) {
    enum { ROOTS = 2000, REPORTS = 80 };
    static struct fake_span roots[ROOTS];
    static char names[ROOTS][8];
    for (int i = 0; i < ROOTS; i++) {
        for (int digit = 0, left = i; digit < 3; digit++, left /= 26)
            names[i][digit] = (char)('a' + left % 26);
        roots[i] = (struct fake_span){
            .name = names[i], .parent = -1, .begin_s = T, .end_s = T + 1, .threads = 1};
    }
    struct span_tree wide = {roots, ROOTS, 0};
    struct span_report report = fake_stream(&wide, "wide");
    const char *page = page_of(&report, 1);
    ck_assert_uint_eq(count_of(page, "<tr><th scope=\"row\""), 31);
    contains(page, "and 1970 more spans");

    static struct span_report many[REPORTS];
    static struct span_phase labels[500];
    for (int i = 0; i < 500; i++)
        labels[i] = (struct span_phase){.label = SLICE("p"), .openings = 1, .thread_s = i};
    for (int i = 0; i < REPORTS; i++)
        many[i] = i % 2 == 0 ? fake_stream(&tree, "s") : fake_job(&tree, labels, 500, "other");
    page = page_of(many, REPORTS);
    ck_assert_uint_le(count_of(page, "<tr><th scope=\"row\""), 2100);
    contains(page, "and 30 more trees of spans");
    contains(page, "and 400 more phases with less thread time");
    ck_assert_uint_lt(strlen(page), 2 << 20);
}
END_TEST

static struct verdict hang_of(const char *job) {
    struct verdict verdict = {.pattern = "nccl_hang",
                              .kind = "missing_rank",
                              .action = "inspect_rank",
                              .job = job == NULL ? STRING_NONE : intern(slice_of(job)),
                              .severity = SEVERITY_ERROR,
                              .headline = SLICE("Rank 3 hangs"),
                              .remediation = SLICE("Look at it.")};
    struct slice key = slice_of(job == NULL ? "none" : job);
    verdict_set_id(&verdict, verdict.pattern, &key, 1);
    return verdict;
}

// Dumps and logs alone: nobody asked for memory.
START_TEST(verdicts_without_samples) {
    struct verdict verdicts[] = {hang_of(NULL), hang_of("llama")};
    input.verdicts = verdicts;
    input.verdict_count = 2;
    struct span_report report = fake_stream(&tree, "tasks.jsonl");
    for (uint32_t reports = 0; reports < 2; reports++) {
        const char *page = page_of(&report, reports);
        contains(page, "<h1>What broke</h1>");
        ck_assert_uint_eq(count_of(strstr(page, "<main"), "class=\"headline\">Rank 3 hangs<"), 2);
        ck_assert_uint_eq(count_of(page, "<dt>job</dt><dd>llama</dd>"), 1);
        lacks(page, "Nothing was found");
        lacks(page, "nothing read");
        lacks(page, "Other jobs");
        ck_assert_uint_eq(count_of(strstr(page, "<main"), "Thread time in tasks.jsonl"), reports);
    }
}
END_TEST

// With nothing at all the page still says so.
START_TEST(nothing_at_all) {
    const char *page = page_of(NULL, 0);
    contains(page, "<h1>What was looked at</h1>");
    contains(page, "Nothing was found, and nothing is known: ");
}
END_TEST

START_TEST(a_nameless_job_has_no_other_jobs) {
    uint32_t index = sample_rank(&sample, 0, SLICE("h"), 1);
    sample_add(&sample, index, UINT64_C(1795248412232761088), 100);
    struct verdict verdict = hang_of("llama");
    input.verdicts = &verdict;
    input.verdict_count = 1;
    const char *page = page_of(NULL, 0);
    contains(page, "<h1>What broke</h1>");
    contains(page, "class=\"headline\">Rank 3 hangs");
    lacks(page, "Also found");
    lacks(page, "Other jobs");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("page_spans");
    TCase *cases = tcase_create("page_spans");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, a_stream_alone);
    tcase_add_test(cases, phases_of_a_job_stand_with_it);
    tcase_add_test(cases, a_copy_tells_the_same);
    tcase_add_test(cases, bars_of_lag_have_one_scale);
    tcase_add_test(cases, rows_are_bounded);
    tcase_add_test(cases, verdicts_without_samples);
    tcase_add_test(cases, nothing_at_all);
    tcase_add_test(cases, a_nameless_job_has_no_other_jobs);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
