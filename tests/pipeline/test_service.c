// SPDX-License-Identifier: Apache-2.0
// The service with made-up components: a receiver that tells events by a script, a stage that
// writes down when it is asked to judge, an exporter that can refuse.
#include "base/clock.h"
#include "base/memory.h"
#include "pipeline/feed_run.h"
#include "pipeline/service.h"
#include "pipeline/telemetry_event.h"

#include <check.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

static const uint64_t SECOND = 1000000000;

// -- a format: "<seconds>"
// ------------------------------------------------------------------------------

static enum decode_category decode_seconds(void *state, struct slice record, struct arena *arena,
                                           struct event *event, struct decode_fault *fault) {
    (void)state;
    char text[32];
    if (record.size >= sizeof text || record.size == 0 || record.data[0] == 'x') {
        *fault = (struct decode_fault){.category = DECODE_BAD_JSON};
        return DECODE_BAD_JSON;
    }
    memcpy(text, record.data, record.size);
    text[record.size] = '\0';
    struct telemetry *telemetry = arena_zero(arena, 1, sizeof *telemetry);
    telemetry->timestamp_ns = strtoull(text, NULL, 10) * SECOND;
    *event = (struct event){.time_ns = telemetry->timestamp_ns, .telemetry = telemetry};
    return DECODE_OK;
}

static const struct decoder_type seconds = {
    .name = "seconds", .state_size = 8, .decode = decode_seconds};

// -- the receiver
// ---------------------------------------------------------------------------------------

struct script_config {
    const char *const *paths; // NULL-terminated; the records of a path are its letters' digits
    const char *live;         // records of one source, space-separated; then waits to be stopped
    bool endless;
};

struct script {
    const struct script_config *config;
};

static enum status script_start(void *instance, const void *config,
                                const struct component_context *context, struct error *error) {
    (void)context;
    (void)error;
    ((struct script *)instance)->config = config;
    return STATUS_OK;
}

static enum status script_list(void *instance, struct source_list *sources, struct error *error) {
    (void)error;
    const struct script *self = instance;
    for (int i = 0; self->config->paths[i] != NULL; i++)
        source_list_add(sources, slice_of(self->config->paths[i]));
    return STATUS_OK;
}

static void offer_words(struct feed *feed, struct source *source, const char *words) {
    uint64_t position = 0;
    struct decode_fault fault;
    while (*words != '\0') {
        size_t size = strcspn(words, " ");
        (void)feed_offer(feed, source, (struct slice){words, size}, ++position, &fault);
        words += size + (words[size] == ' ');
    }
}

// A path "/b:3 4 x" holds the records after the colon.
static enum status script_read(void *instance, struct feed *feed, struct slice path,
                               struct error *error) {
    (void)instance;
    (void)error;
    struct source *source = feed_source(feed, path);
    feed_source_format(source, &seconds, &(struct decoder_input){.path = {0}});
    char copy[128];
    memcpy(copy, path.data, path.size);
    copy[path.size] = '\0';
    offer_words(feed, source, strchr(copy, ':') + 1);
    feed_source_figures(source)->bytes = path.size;
    return STATUS_OK;
}

static enum status script_run(void *instance, struct feed *feed, struct error *error) {
    (void)error;
    const struct script *self = instance;
    struct source *source = feed_source(feed, SLICE("live"));
    feed_source_format(source, &seconds, &(struct decoder_input){.path = {0}});
    feed_caught_up(feed);
    offer_words(feed, source, self->config->live);
    feed_flush(feed);
    struct pollfd stop = {.fd = feed_stop_descriptor(feed), .events = POLLIN};
    while (!feed_stopping(feed))
        poll(&stop, 1, -1);
    return STATUS_OK;
}

static const struct component_type script_type = {
    .name = "script",
    .kind = COMPONENT_RECEIVER,
    .instance_size = sizeof(struct script),
    .start = script_start,
    .receiver = {.run = script_run, .list = script_list, .read = script_read},
};
static const struct component_type endless_type = {
    .name = "endless",
    .kind = COMPONENT_RECEIVER,
    .instance_size = sizeof(struct script),
    .start = script_start,
    .receiver = {.run = script_run},
};

// -- the stage: writes down what it sees
// ------------------------------------------------------------------

static struct buffer seen;
static atomic_uint judgements;

static void diary_consume(void *instance, struct batch *batch) {
    (void)instance;
    for (uint32_t i = 0; i < batch->event_count; i++)
        buffer_append_format(&seen, "%llu ",
                             (unsigned long long)(batch->events[i].time_ns / SECOND));
    if (!batch->evaluate)
        return;
    if (batch->last)
        buffer_append_text(&seen, "end");
    else
        buffer_append_format(&seen, "@%llu ", (unsigned long long)(batch->as_of_ns / SECOND));
    struct verdict verdict = {.pattern = "diary", .kind = "k", .severity = SEVERITY_WARNING};
    memcpy(verdict.id, "diary:0123456789abcdef", 23);
    batch_append_verdict(batch, &verdict);
    atomic_fetch_add(&judgements, 1);
}

static const struct component_type diary_type = {
    .name = "diary",
    .kind = COMPONENT_PROCESSOR,
    .instance_size = 1,
    .processor = {.consume = diary_consume},
};

// -- the exporter: one letter a judgement
// -----------------------------------------------------------------

static struct buffer delivered;
static atomic_int refusals_left;
static bool refuse_for_good;
static bool got_last;

static void letters_encode(void *instance, const struct batch *batch, struct buffer *out) {
    (void)instance;
    if (batch->evaluate)
        buffer_append_char(out, batch->last ? 'z' : 'e');
}

static enum status letters_send(void *instance, const struct request *request,
                                struct send_outcome *outcome, struct error *error) {
    (void)instance;
    if (refuse_for_good) {
        outcome->permanent = true;
        return error_set(error, STATUS_IO, "the sink is gone");
    }
    if (atomic_fetch_sub(&refusals_left, 1) > 0)
        return error_set(error, STATUS_IO, "the sink is busy");
    buffer_append(&delivered, request->bytes);
    got_last |= request->last;
    return STATUS_OK;
}

static const struct component_type letters_type = {
    .name = "letters",
    .kind = COMPONENT_EXPORTER,
    .instance_size = 1,
    .exporter = {.encode = letters_encode, .send = letters_send},
};

// -- a plan by hand
// -----------------------------------------------------------------------------------------

struct fixture {
    struct script_config configs[2];
    struct plan_component components[4];
    uint32_t receivers[2];
    uint32_t processors[1];
    uint32_t exporters[1];
    struct plan_pipeline pipeline;
    struct plan plan;
};

static void fixture_init(struct fixture *f, uint32_t receiver_count) {
    *f = (struct fixture){.receivers = {0, 1}, .processors = {2}, .exporters = {3}};
    for (uint32_t i = 0; i < 2; i++)
        f->components[i] = (struct plan_component){.type = &script_type,
                                                   .id = i == 0 ? "script" : "script/2",
                                                   .config = &f->configs[i],
                                                   .used = i < receiver_count};
    f->components[2] = (struct plan_component){.type = &diary_type, .id = "diary", .used = true};
    f->components[3] =
        (struct plan_component){.type = &letters_type, .id = "letters", .used = true};
    f->pipeline = (struct plan_pipeline){.name = "p",
                                         .receivers = f->receivers,
                                         .receiver_count = receiver_count,
                                         .processors = f->processors,
                                         .processor_count = 1,
                                         .exporters = f->exporters,
                                         .exporter_count = 1,
                                         .timing = {.evaluate_every = {10 * (int64_t)SECOND},
                                                    .allowed_lateness = {5 * (int64_t)SECOND},
                                                    .settle = {10 * (int64_t)SECOND},
                                                    .idle_timeout = {3600 * (int64_t)SECOND}}};
    f->plan = (struct plan){.components = f->components,
                            .component_count = 4,
                            .pipelines = &f->pipeline,
                            .pipeline_count = 1,
                            .batch_size = 2,
                            .checkpoint_interval = {5 * (int64_t)SECOND},
                            .shutdown_timeout = {20 * (int64_t)SECOND}};
}

static void setup(void) {
    buffer_init(&seen, 1 << 16);
    buffer_init(&delivered, 1 << 16);
    atomic_store(&judgements, 0);
    atomic_store(&refusals_left, 0);
    refuse_for_good = got_last = false;
    log_configure(LOG_ERROR, LOG_CONSOLE);
}

static void teardown(void) {
    buffer_release(&seen);
    buffer_release(&delivered);
    intern_release();
}

static void check_text(struct buffer *buffer, const char *want) {
    buffer_append_char(buffer, '\0');
    ck_assert_str_eq(buffer->data, want);
}

// -- tests
// ----------------------------------------------------------------------------------------------------

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
    for (int i = 0; i < 1000 && atomic_load(&judgements) < stopper->wait_for; i++)
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

// Judged at multiples of 10 s, each once the newest event is 5 s past it; not where nothing
// happened.
START_TEST(test_live_judges_at_multiples_as_the_watermark_passes) {
    struct fixture f;
    fixture_init(&f, 1);
    f.plan.batch_size = _i == 0 ? 1 : 2;
    f.configs[0].live = "1 9 10 11 14 15 16 30 34 35 1000 1100";
    run_live(&f, 4, NULL);
    if (_i == 0)
        check_text(&seen, "1 9 10 11 14 15 @10 16 30 @20 34 35 @30 1000 @40 1100 @1000 end");
    else
        check_text(&seen, "1 9 10 11 14 15 @10 16 30 @20 34 35 @30 1000 1100 @40 @1000 end");
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

// -- the feed by itself
// ------------------------------------------------------------------------------------------

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
    tcase_add_loop_test(tests, test_live_judges_at_multiples_as_the_watermark_passes, 0, 2);
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
