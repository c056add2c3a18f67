// SPDX-License-Identifier: Apache-2.0
// The service over made-up components (service_fixture.h): what is read in which order, judged
// when, delivered and reported.
#include "tests/pipeline/runtime/service_fixture.h"

// -- tests ----------------------------------------------------------------------------------------

START_TEST(test_sources_of_all_receivers_are_read_in_path_order) {
    struct fixture f;
    fixture_init(&f, 2);
    const char *first[] = {"/c:5 6 7", "/a:1 2", NULL};
    const char *second[] = {"/b:3 4", NULL};
    f.configs[0].paths = first;
    f.configs[1].paths = second;
    struct service *service;
    struct error error = {0};
    ck_assert_int_eq(service_start(&service, &f.plan, true, NULL, &error), STATUS_OK);
    ck_assert_int_eq(service_run_once(service, &error), STATUS_OK);
    struct report report;
    service_report(service, &report);
    ck_assert_uint_eq(report.accepted, 7);
    ck_assert_uint_eq(report.source_count, 3);
    ck_assert_uint_eq(report.bytes, 8 + 6 + 6);
    ck_assert_uint_eq(report.verdict_count[SEVERITY_WARNING], 1);
    report_release(&report);
    service_free(service);
    check_text(&seen, "1 2 3 4 5 6 7 end");
    check_text(&delivered, "z");
    ck_assert(got_last);
}
END_TEST

START_TEST(test_refused_records_are_reported_with_their_place) {
    struct fixture f;
    fixture_init(&f, 1);
    const char *paths[] = {"/a:1 x 2 x", NULL};
    f.configs[0].paths = paths;
    struct service *service;
    struct error error = {0};
    ck_assert_int_eq(service_start(&service, &f.plan, true, NULL, &error), STATUS_OK);
    ck_assert_int_eq(service_run_once(service, &error), STATUS_OK);
    struct report report;
    service_report(service, &report);
    ck_assert_uint_eq(report.accepted, 2);
    ck_assert_uint_eq(report.refused, 2);
    ck_assert_uint_eq(report.refused_by[DECODE_BAD_JSON], 2);
    ck_assert_uint_eq(report.refusal_count, 2);
    ck_assert_uint_eq(report.refusals[0].position, 2);
    ck_assert_uint_eq(report.refusals[1].position, 4);
    report_release(&report);
    service_free(service);
}
END_TEST

START_TEST(test_an_endless_receiver_cannot_be_read_once) {
    struct fixture f;
    fixture_init(&f, 1);
    f.components[0].type = &endless_type;
    struct service *service;
    struct error error = {0};
    ck_assert_int_eq(service_start(&service, &f.plan, true, NULL, &error), STATUS_OK);
    ck_assert_int_eq(service_run_once(service, &error), STATUS_CONFIG);
    ck_assert_ptr_nonnull(strstr(error.message, "receiver/script"));
    service_free(service);
}
END_TEST

struct stopper {
    struct service *service;
    unsigned wait_for;
};

static void *stop_when_judged(void *argument) {
    struct stopper *stopper = argument;
    for (int i = 0; i < 10000 && atomic_load(&judgements) < stopper->wait_for; i++)
        clock_sleep_ns(10000000);
    service_ask_stop(stopper->service);
    return NULL;
}

static void run_live(struct fixture *f, unsigned wait_for, struct report *report) {
    struct stopper stopper = {.wait_for = wait_for};
    struct error error = {0};
    ck_assert_int_eq(service_start(&stopper.service, &f->plan, false, NULL, &error), STATUS_OK);
    bool reload;
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, stop_when_judged, &stopper), 0);
    ck_assert_int_eq(service_run(stopper.service, &reload, &error), STATUS_OK);
    pthread_join(thread, NULL);
    if (report != NULL)
        service_report(stopper.service, report);
    service_free(stopper.service);
}

// Judged at multiples of 10 s, each before the first event that is 5 s past it; not where nothing
// happened. Where a batch or a read ends makes no difference.
START_TEST(test_live_judges_at_multiples_as_the_watermark_passes) {
    struct fixture f;
    fixture_init(&f, 1);
    static const uint32_t BATCHES[] = {1, 2, 5, 1024};
    f.plan.settings.batch_size = BATCHES[_i];
    f.configs[0].live = "1 9 10 11 14 15 16 30 34 35 1000 1100";
    run_live(&f, 4, NULL);
    check_text(&seen, "1 9 10 11 14 @10 15 16 @20 30 34 @30 35 @40 1000 @1000 1100 end");
}
END_TEST

// Clocks that are years apart leave many moments to judge: of too many the earliest are left to
// those after them, and what is older still is judged with them.
START_TEST(test_moments_that_wait_are_bounded) {
    enum { MOMENTS = 70000, WAITING_MAX = 65536 };
    struct fixture f;
    struct buffer words;
    buffer_init(&words, 4 << 20);
    for (unsigned i = 1; i <= MOMENTS; i++)
        buffer_append_format(&words, "%u ", i * 10);
    buffer_append_text(&words, "5 99999999");
    buffer_append_char(&words, '\0');
    fixture_init(&f, 1);
    f.plan.settings.batch_size = 1024;
    f.pipeline.timing.allowed_lateness.ns = 10000000 * (int64_t)SECOND;
    f.configs[0].live = words.data;
    run_live(&f, WAITING_MAX, NULL);
    // The newest moment is not passed: it is part of the end.
    ck_assert_uint_eq(atomic_load(&judgements), WAITING_MAX + 1);
    buffer_release(&words);
}
END_TEST

START_TEST(test_silent_input_is_judged_to_its_end_and_given_time_to_settle) {
    struct fixture f;
    fixture_init(&f, 1);
    f.pipeline.timing.idle_timeout.ns = (int64_t)SECOND / 5;
    f.configs[0].live = "1 2 11";
    run_live(&f, 3, NULL);
    buffer_append_char(&seen, '\0');
    ck_assert_ptr_nonnull(strstr(seen.data, "@10 @20 @40 end"));
}
END_TEST

START_TEST(test_a_busy_sink_loses_nothing) {
    struct fixture f;
    fixture_init(&f, 1);
    f.configs[0].live = "1 20 40 60 80 100";
    atomic_store(&refusals_left, 2);
    run_live(&f, 4, NULL);
    // One letter a judgement, whatever was refused in between.
    buffer_append_char(&delivered, '\0');
    ck_assert_uint_eq(strlen(delivered.data), atomic_load(&judgements));
    ck_assert(got_last);
}
END_TEST

START_TEST(test_a_dead_sink_is_an_error_that_names_it) {
    struct fixture f;
    fixture_init(&f, 1);
    const char *paths[] = {"/a:1", NULL};
    f.configs[0].paths = paths;
    refuse_for_good = true;
    struct service *service;
    struct error error = {0};
    ck_assert_int_eq(service_start(&service, &f.plan, true, NULL, &error), STATUS_OK);
    ck_assert_int_eq(service_run_once(service, &error), STATUS_IO);
    ck_assert_ptr_nonnull(strstr(error.message, "exporter/letters: the sink is gone"));
    service_free(service);
}
END_TEST

START_TEST(test_stop_before_start_ends_at_once) {
    struct fixture f;
    fixture_init(&f, 1);
    f.configs[0].live = "1";
    struct service *service;
    struct error error = {0};
    ck_assert_int_eq(service_start(&service, &f.plan, false, NULL, &error), STATUS_OK);
    service_ask_stop(service);
    bool reload;
    ck_assert_int_eq(service_run(service, &reload, &error), STATUS_OK);
    service_free(service);
    buffer_append_char(&seen, '\0');
    ck_assert_ptr_nonnull(strstr(seen.data, "end"));
}
END_TEST

// -- the feed by itself ---------------------------------------------------------------------------

static void count_events(void *context, const struct delivery *delivery) {
    *(uint32_t *)context += delivery->count;
}

static void restore_nothing(void *context, struct source *source) {
    (void)context;
    (void)source;
}

static struct feed *lone_feed(struct intake *intake, uint32_t *count, const atomic_bool *stopping) {
    intake_init(intake);
    struct feed_settings settings = {
        .site = "receiver/test",
        .batch_size = 4,
        .stop_descriptor = 0,
        .stopping = stopping,
        .intake = intake,
        .outlet = {.context = count, .deliver = count_events, .restore = restore_nothing}};
    return feed_create(&settings);
}

START_TEST(test_a_feed_flushes_when_full_and_when_told) {
    static struct intake intake;
    static atomic_bool stopping;
    uint32_t count = 0;
    struct feed *feed = lone_feed(&intake, &count, &stopping);
    struct source *source = feed_source(feed, SLICE("/a"));
    feed_source_format(source, &seconds, &(struct decoder_input){.path = {0}});
    struct decode_fault fault;
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(feed_offer(feed, source, SLICE("1"), 1, &fault), DECODE_OK);
    ck_assert_uint_eq(count, 4);
    ck_assert_int_eq(feed_offer(feed, source, SLICE("1"), 1, &fault), DECODE_OK);
    ck_assert_uint_eq(count, 4);
    feed_flush(feed);
    ck_assert_uint_eq(count, 5);
    ck_assert_ptr_eq(feed_source(feed, SLICE("/a")), source);
    feed_free(feed);
    intake_release(&intake);
}
END_TEST

START_TEST(test_a_warm_feed_allocates_nothing) {
    static struct intake intake;
    static atomic_bool stopping;
    uint32_t count = 0;
    struct feed *feed = lone_feed(&intake, &count, &stopping);
    struct source *source = feed_source(feed, SLICE("/a"));
    feed_source_format(source, &seconds, &(struct decoder_input){.path = {0}});
    struct decode_fault fault;
    for (int i = 0; i < 8; i++)
        (void)feed_offer(feed, source, SLICE("1"), 1, &fault);
    uint64_t before = memory_figures().allocations;
    for (int i = 0; i < 1000; i++)
        (void)feed_offer(feed, source, SLICE("1"), 1, &fault);
    ck_assert_uint_eq(memory_figures().allocations, before);
    feed_free(feed);
    intake_release(&intake);
}
END_TEST

START_TEST(test_refusals_and_notes_are_bounded) {
    static struct intake intake;
    static atomic_bool stopping;
    uint32_t count = 0;
    struct feed *feed = lone_feed(&intake, &count, &stopping);
    struct source *source = feed_source(feed, SLICE("/a"));
    feed_source_format(source, &seconds, &(struct decoder_input){.path = {0}});
    struct decode_fault fault;
    for (int i = 0; i < 1000; i++) {
        (void)feed_offer(feed, source, SLICE("x"), 1, &fault);
        feed_note(feed, SLICE("/b"), "note %d", i);
    }
    struct report report = {0};
    intake_report(&intake, &report);
    ck_assert_uint_eq(report.refused, 1000);
    ck_assert_uint_eq(report.refusal_count, REPORT_REFUSALS_MAX);
    ck_assert_uint_eq(report.note_count, REPORT_NOTES_MAX);
    ck_assert_uint_eq(report.notes_dropped, 1000 - REPORT_NOTES_MAX);
    ck_assert_str_eq(report.notes[0], "/b: note 0");
    report_release(&report);
    feed_free(feed);
    intake_release(&intake);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("service");
    TCase *tests = tcase_create("service");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, test_sources_of_all_receivers_are_read_in_path_order);
    tcase_add_test(tests, test_refused_records_are_reported_with_their_place);
    tcase_add_test(tests, test_an_endless_receiver_cannot_be_read_once);
    tcase_add_loop_test(tests, test_live_judges_at_multiples_as_the_watermark_passes, 0, 4);
    tcase_add_test(tests, test_moments_that_wait_are_bounded);
    tcase_add_test(tests, test_silent_input_is_judged_to_its_end_and_given_time_to_settle);
    tcase_add_test(tests, test_a_busy_sink_loses_nothing);
    tcase_add_test(tests, test_a_dead_sink_is_an_error_that_names_it);
    tcase_add_test(tests, test_stop_before_start_ends_at_once);
    tcase_add_test(tests, test_a_feed_flushes_when_full_and_when_told);
    tcase_add_test(tests, test_a_warm_feed_allocates_nothing);
    tcase_add_test(tests, test_refusals_and_notes_are_bounded);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
