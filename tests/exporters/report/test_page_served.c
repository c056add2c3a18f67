// SPDX-License-Identifier: Apache-2.0
// What a page that is served has beside the report, and what it keeps from one page to the next.
#include "exporters/report/page/parts.h"
#include "pipeline/model/observation.h"
#include "tests/exporters/report/page_fixture.h"

static struct page_live *live;
static struct page_news news;
static bool is_unread; // the markup is not looked at: reading it takes long

static void setup(void) {
    page_setup();
    live = page_live_new();
    news = (struct page_news){0};
    input.live = live;
}

static void teardown(void) {
    page_live_release(live);
    page_teardown();
}

// What a batch brings, at once.
static void tell(const struct batch *told) {
    page_news_note(&news, told);
    struct page_news copy = news;
    page_live_take(live, &copy);
    page_news_told(&news, &copy);
}

// A page of an evaluation of this job alone, up to `seconds` behind START; NULL: of none.
static const char *page_of(const char *job, uint64_t seconds) {
    buffer_reset(&page_out);
    batch = sample_batch(&sample);
    batch.last = false;
    batch.as_of_ns = batch.newest_ns = START + seconds * 1000 * MS;
    sample.evaluation.as_of_ns = batch.as_of_ns;
    if (job == NULL)
        batch.evaluation_count = 0;
    else
        sample.evaluation.job = intern(slice_of(job));
    tell(&batch);
    page_encode(&input, &page_out);
    buffer_append_char(&page_out, '\0');
    ck_assert(!page_out.failed);
    if (!is_unread)
        markup_check(page_out.data);
    return page_out.data;
}

START_TEST(a_page_of_nothing_says_what_it_waits_for) {
    struct batch none = {.arena = &sample.arena};
    batch = none;
    page_encode(&input, &page_out);
    buffer_append_char(&page_out, '\0');
    const char *page = page_out.data;
    markup_check(page);
    CONTAINS(page, "<h1>Waiting for records</h1>");
    CONTAINS(page, "Waiting for the first records.");
    CONTAINS(page, "<summary>memory of ranks (no telemetry)</summary>");
    CONTAINS(page, "connect-src 'self'");
    LACKS(page, "No samples were read");
}
END_TEST

START_TEST(one_for_itself_has_none_of_it) {
    ranks_make(4, 20, -1, -1, SLICE("a"));
    input.live = NULL;
    const char *page = page_made();
    LACKS(page, "connect-src");
    LACKS(page, "id=\"live\"");
    LACKS(page, "id=\"now\"");
    LACKS(page, "id=\"absent\"");
    LACKS(page, "EventSource");
}
END_TEST

START_TEST(a_job_stays_while_others_are_evaluated) {
    ranks_make(4, 20, -1, -1, SLICE("a"));
    const char *page = page_of("first", 2);
    CONTAINS(page, "<h1>Memory of job first</h1>");
    CONTAINS(page, "<section class=\"job\" data-key=\"first\" aria-labelledby=\"job0\">");
    ck_assert_uint_eq(count_of(page, "<svg class=\"plot"), 1);
    page = page_of("second", 3);
    CONTAINS(page, "<h1>Memory of 2 jobs</h1>");
    CONTAINS(page, "data-key=\"first\" aria-labelledby=\"job0\"");
    CONTAINS(page, "data-key=\"second\" aria-labelledby=\"job1\"");
    ck_assert_uint_eq(count_of(page, "<svg class=\"plot"), 2);
    // Its place in the page's ids is its own, whichever is evaluated.
    page = page_of("first", 4);
    CONTAINS(page, "data-key=\"first\" aria-labelledby=\"job0\"");
    CONTAINS(page, "data-key=\"second\" aria-labelledby=\"job1\"");
    page = page_of(NULL, 5);
    ck_assert_uint_eq(count_of(page, "<section class=\"job\""), 2);
    LACKS(page, "no samples for");
    page = page_of(NULL, 60);
    ck_assert_uint_eq(count_of(page, "<strong>no samples for "), 2);
}
END_TEST

START_TEST(what_is_forgotten_goes) {
    ranks_make(4, 20, -1, -1, SLICE("a"));
    page_of("first", 2);
    page_of("second", 3);
    struct forgotten_job gone = {.job = intern(SLICE("first"))};
    struct forgotten forgotten = {.jobs = &gone, .job_count = 1};
    struct batch stream = {.arena = &sample.arena, .forgotten = &forgotten};
    tell(&stream);
    const char *page = page_of("second", 4);
    LACKS(page, "first</");
    CONTAINS(page, "<h1>Memory of job second</h1>");
    forgotten.everything = true;
    tell(&stream);
    page = page_of(NULL, 5);
    LACKS(page, "<section class=\"job\"");
}
END_TEST

// A section that tells of a verdict as it was must not stand beside the verdict as it is.
START_TEST(a_verdict_that_changed_takes_the_section_along) {
    ranks_make(4, 20, -1, -1, SLICE("a"));
    page_of("first", 2);
    struct verdict verdict = {.id = "node_fault:00000000000000ab",
                              .pattern = "node_fault",
                              .kind = "xid",
                              .job = intern(SLICE("first")),
                              .severity = SEVERITY_ERROR,
                              .headline = SLICE("node n fell off"),
                              .start_ns = START,
                              .end_ns = START};
    input.verdicts = &verdict;
    input.verdict_count = 1;
    struct batch stream = {
        .arena = &sample.arena, .evaluate = true, .verdicts = {.items = &verdict, .count = 1}};
    tell(&stream);
    const char *page = page_of("second", 3);
    LACKS(page, "<section class=\"job\" data-key=\"first\"");
    CONTAINS(page, "<li data-key=\"first\" class=\"state error\">");
    ck_assert_uint_ge(count_of(page, "node n fell off"), 1);
    page = page_of("first", 4);
    CONTAINS(page, "<li data-key=\"first\" class=\"state error\">");
    CONTAINS(page, "<li data-key=\"second\" class=\"state good\">");
    // The gravest first.
    ck_assert(strstr(page, "<li data-key=\"first\"") < strstr(page, "<li data-key=\"second\""));
}
END_TEST

START_TEST(jobs_are_bounded) {
    ranks_make(2, 3, -1, -1, SLICE("a"));
    const char *page = NULL;
    for (int i = 0; i < PAGE_LIVE_JOBS_MAX + 10; i++) {
        char name[16];
        snprintf(name, sizeof name, "job-%d", i);
        is_unread = i % 32 != 31;
        page = page_of(name, 2);
    }
    ck_assert_uint_eq(count_of(page, "<li data-key=\"job-"), PAGE_LIVE_JOBS_MAX);
    is_unread = false;
    LACKS(page, "data-key=\"job-9\"");
    CONTAINS(page, "data-key=\"job-10\"");
}
END_TEST

START_TEST(names_of_jobs_are_text) {
    ranks_make(2, 3, -1, -1, SLICE("a"));
    const char *page = page_of("<img src=x onerror=alert(1)>\"'", 2);
    LACKS(page, "<img");
    CONTAINS(page, "data-key=\"&lt;img src=x onerror=alert(1)&gt;&quot;&#39;\"");
}
END_TEST

START_TEST(what_came_is_not_missing) {
    static struct telemetry record;
    struct event event = {.kind = EVENT_TELEMETRY, .time_ns = START, .telemetry = &record};
    struct batch stream = {.arena = &sample.arena, .events = &event, .event_count = 1};
    tell(&stream);
    const char *page = page_of(NULL, 2);
    LACKS(page, "memory of ranks (no telemetry)");
    CONTAINS(page, "hangs (no Flight Recorder dumps)");
}
END_TEST

// A change behind the copy that a page is made of is news of the next one, also of the same job.
START_TEST(only_what_was_told_is_taken_out) {
    struct verdict verdict = {.job = intern(SLICE("first"))};
    struct batch stream = {.arena = &sample.arena, .verdicts = {.items = &verdict, .count = 1}};
    page_news_note(&news, &stream);
    struct page_news told = news;
    page_news_note(&news, &stream);
    page_news_told(&news, &told);
    ck_assert_uint_eq(news.changed.count, 1);
    ck_assert_uint_eq(news.changed.jobs[0], verdict.job);
    for (int i = 0; i < PAGE_NEWS_JOBS_MAX; i++)
        page_news_note(&news, &stream);
    ck_assert_uint_eq(news.changed.more, 1);
    told = news;
    page_news_note(&news, &stream);
    page_news_told(&news, &told);
    ck_assert_uint_eq(news.changed.more, 1);
    told = news;
    page_news_told(&news, &told);
    ck_assert_uint_eq(news.changed.count + news.changed.more, 0);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("page_served");
    TCase *cases = tcase_create("all");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, a_page_of_nothing_says_what_it_waits_for);
    tcase_add_test(cases, one_for_itself_has_none_of_it);
    tcase_add_test(cases, a_job_stays_while_others_are_evaluated);
    tcase_add_test(cases, what_is_forgotten_goes);
    tcase_add_test(cases, a_verdict_that_changed_takes_the_section_along);
    tcase_add_test(cases, only_what_was_told_is_taken_out);
    tcase_add_test(cases, jobs_are_bounded);
    tcase_add_test(cases, names_of_jobs_are_text);
    tcase_add_test(cases, what_came_is_not_missing);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
