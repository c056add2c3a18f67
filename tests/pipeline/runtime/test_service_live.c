// SPDX-License-Identifier: Apache-2.0
// What a service that runs says of its parts and counts of itself.
#include "tests/pipeline/runtime/service_told.h"

// -- what it says of its parts --------------------------------------------------------------------

START_TEST(all_parts_are_named_and_well) {
    begin_live();
    EVENTUALLY(health().started);
    ck_assert(health().live && health().ready && health().last_config_taken);
    ck_assert_str_eq(health().sentence, "");
    ck_assert_uint_gt(health().up_since_unix_ns, 1600000000 * SECOND);
    struct component_status statuses[16];
    ck_assert_uint_eq(watched->components(watched->context, statuses, 16), 4);
    static const char *const ids[] = {"extension/watch", "receiver/told", "processor/sum",
                                      "exporter/letters"};
    for (int i = 0; i < 4; i++) {
        ck_assert_str_eq(statuses[i].id, ids[i]);
        ck_assert_int_eq(statuses[i].state, COMPONENT_OK);
        ck_assert_str_eq(statuses[i].pipeline, i == 1 || i == 2 ? "p" : "");
    }
    ck_assert_uint_eq(watched->components(watched->context, statuses, 2), 2);
    service_dump(service);
    end();
    ck_assert(!health().ready);
    ck_assert_str_eq(health().sentence, "stopping");
    service_free(service);
}
END_TEST

START_TEST(trouble_comes_and_goes) {
    begin_live();
    EVENTUALLY(is_in("receiver/told", COMPONENT_OK));
    uint64_t since = status_of("receiver/told").since_unix_ns;
    tell_trouble("nobody answers");
    EVENTUALLY(is_in("receiver/told", COMPONENT_RECOVERABLE));
    ck_assert_str_eq(status_of("receiver/told").sentence, "nobody answers");
    ck_assert_uint_gt(status_of("receiver/told").since_unix_ns, since);
    tell_trouble("somebody shouts");
    EVENTUALLY(strcmp(status_of("receiver/told").sentence, "somebody shouts") == 0);
    tell_trouble(NULL);
    EVENTUALLY(is_in("receiver/told", COMPONENT_OK));
    ck_assert_str_eq(status_of("receiver/told").sentence, "");
    end_live();
}
END_TEST

START_TEST(a_sink_that_refuses_is_told_with_its_words) {
    atomic_store(&refusals_left, 1000000);
    refuse_for_good = _i == 1;
    begin_live();
    EVENTUALLY(health().started);
    tell("1");
    tell("100");
    EVENTUALLY(is_in("exporter/letters", _i == 0 ? COMPONENT_RECOVERABLE : COMPONENT_PERMANENT));
    ck_assert_str_eq(status_of("exporter/letters").sentence,
                     _i == 0 ? "the sink is busy" : "the sink is gone");
    ck_assert(health().ready); // input is taken all the same
    atomic_store(&refusals_left, 0);
    if (_i == 0)
        end_live();
    else {
        end();
        ck_assert_int_eq(running.status, STATUS_IO);
        service_free(service);
    }
}
END_TEST

START_TEST(a_configuration_that_was_refused_is_said) {
    begin_live();
    EVENTUALLY(health().ready);
    service_note_reload(service, false, "c.yaml:3: no such thing");
    ck_assert(!health().ready && !health().last_config_taken);
    ck_assert_str_eq(health().sentence,
                     "the last configuration was not taken: c.yaml:3: no such thing");
    service_note_reload(service, true, NULL);
    ck_assert(health().ready && health().last_config_taken);
    end_live();
}
END_TEST

START_TEST(a_receiver_that_fails_ends_the_run) {
    begin_live();
    EVENTUALLY(health().started);
    tell("5");
    EVENTUALLY(atomic_load(&total_seconds) == 5);
    atomic_store(&told_failure, true);
    pthread_join(running.thread, NULL);
    ck_assert_int_eq(running.status, STATUS_IO);
    ck_assert_str_eq(running.error.message, "receiver/told: the line is dead");
    service_free(service);
    check_text(&seen, "5 end"); // what came before counts
}
END_TEST

// The process ends then, as after a crash: status 71.
START_TEST(a_receiver_that_does_not_stop_is_not_waited_for) {
    ck_assert_int_eq(rmdir(folder), 0);
    f.plan.settings.shutdown_timeout.ns = 50000000;
    atomic_store(&told_deaf, true);
    begin_live();
    EVENTUALLY(health().started);
    end();
}
END_TEST

static enum status letters_send_for_ever(void *instance, const struct request *request,
                                         struct send_outcome *outcome, struct error *inner) {
    for (;;)
        clock_sleep_ns(SECOND);
    return letters_send(instance, request, outcome, inner);
}

// A delivery that hangs, too: what was not delivered is lost then, status 74.
START_TEST(a_delivery_that_does_not_end_is_not_waited_for) {
    struct component_type type = letters_type;
    type.exporter.send = letters_send_for_ever;
    ck_assert_int_eq(rmdir(folder), 0);
    f.components[3].type = &type;
    // Long enough for all else to stop: else it would be status 71.
    f.plan.settings.shutdown_timeout.ns = 5 * (int64_t)SECOND;
    begin_live();
    EVENTUALLY(health().started);
    tell("1");
    tell("100");
    EVENTUALLY(atomic_load(&judgements) == 1);
    end();
}
END_TEST

START_TEST(a_part_that_does_not_start_is_named) {
    with_store = true;
    strcat(folder, "/file");
    FILE *file = fopen(folder, "w");
    ck_assert_ptr_nonnull(file);
    fclose(file);
    ck_assert_int_ne(service_start(&service, &f.plan, false, NULL, &error), STATUS_OK);
    ck_assert_ptr_null(service);
    ck_assert_ptr_nonnull(strstr(error.message, "extension/watch: "));
    *strrchr(folder, '/') = '\0';
}
END_TEST

START_TEST(a_full_queue_holds_the_receiver_up) {
    static struct sending_config sending;
    sending = sending_defaults;
    sending.queue.queue_size.bytes = 2; // letters
    f.components[3].config = &sending;
    f.components[3].type = &small_letters_type;
    atomic_store(&refusals_left, 1000000);
    begin_live();
    static const char *const words[] = {"1", "20", "40", "60", "80", "100"};
    for (int i = 0; i < 6; i++)
        tell(words[i]);
    EVENTUALLY(atomic_load(&was_blocked) > 2);
    tell("200");
    atomic_store(&refusals_left, 0);
    EVENTUALLY(atomic_load(&total_seconds) == 501);
    end_live();
    buffer_append_char(&delivered, '\0');
    ck_assert_uint_eq(strlen(delivered.data), atomic_load(&judgements));
}
END_TEST

// A receiver that keeps its positions in places hands over again and again: nothing of that is the
// main thread's business.
START_TEST(input_does_not_wake_the_main_thread) {
    told_keeps_place = true;
    begin_live();
    for (unsigned i = 0; i < WORDS_MAX; i++) {
        tell("1");
        EVENTUALLY(atomic_load(&total_seconds) == i + 1);
    }
    end_live();
    ck_assert_int_lt(running.waits, WORDS_MAX / 2);
}
END_TEST

// -- what it counts -------------------------------------------------------------------------------

START_TEST(it_counts_what_came_and_went) {
    metrics_at();
    begin_live();
    tell("1");
    tell("x");
    tell("2");
    tell("100");
    EVENTUALLY(atomic_load(&total_seconds) == 103);
    EVENTUALLY(atomic_load(&judgements) == 1);
    struct answer answer = ask_metrics();
    static const char *const lines[] = {
        "culprit_receiver_accepted_events_total{receiver=\"told\",transport=\"told\"} 3",
        ("culprit_receiver_failed_events_total{reason=\"bad_json\",receiver=\"told\","
         "transport=\"told\"} 1"),
        "culprit_receiver_blocked{receiver=\"told\"} 0",
        "culprit_pipeline_consumed_events_total{pipeline=\"p\"} 3",
        "culprit_pipeline_evaluations_total{pipeline=\"p\"} 1",
        "culprit_processor_incoming_events_total{pipeline=\"p\",processor=\"sum\"} 3",
        "culprit_processor_outgoing_events_total{pipeline=\"p\",processor=\"sum\"} 3",
        "culprit_exporter_queue_capacity_bytes{exporter=\"letters\"} 134217728",
        "culprit_config_last_reload_successful 1",
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        must_count(&answer, lines[i]);
    answer_free(&answer);
    service_note_reload(service, false, "no");
    answer = ask_metrics();
    must_count(&answer, "culprit_config_last_reload_successful 0");
    answer_free(&answer);
    end_live();
}
END_TEST

// A stage that chooses: events of odd seconds are left out; and nothing is taken while it says so.
static atomic_bool admitting;

static void choose_consume(void *instance, struct batch *batch) {
    (void)instance;
    batch->selected = arena_zero(batch->arena, batch->event_count / 64 + 1, sizeof(uint64_t));
    for (uint32_t i = 0; i < batch->event_count; i++)
        if (batch->events[i].time_ns / SECOND % 2 == 0)
            batch->selected[i / 64] |= UINT64_C(1) << i % 64;
}

static bool choose_admits(void *instance) {
    (void)instance;
    return atomic_load(&admitting);
}

static const struct component_type choose_type = {
    .name = "choose",
    .kind = COMPONENT_PROCESSOR,
    .instance_size = 1,
    .gives = FACT_JOBS,
    .processor = {.consume = choose_consume, .admits = choose_admits},
};

START_TEST(what_a_stage_leaves_out_is_counted) {
    uint32_t stages[] = {1, 2};
    f.components[1] = (struct plan_component){.type = &choose_type, .id = "choose", .used = true};
    f.pipeline.processors = stages;
    f.pipeline.processor_count = 2;
    atomic_store(&admitting, false);
    metrics_at();
    begin_live();
    tell("1");
    tell("2");
    tell("4");
    EVENTUALLY(atomic_load(&was_blocked) > 2);
    struct answer answer = ask_metrics();
    must_count(&answer, "culprit_receiver_blocked{receiver=\"told\"} 1");
    must_count(&answer, "culprit_pipeline_consumed_events_total{pipeline=\"p\"} 0");
    answer_free(&answer);
    atomic_store(&admitting, true);
    EVENTUALLY(atomic_load(&row_count) == 3);
    answer = ask_metrics();
    static const char *const lines[] = {
        "culprit_processor_incoming_events_total{pipeline=\"p\",processor=\"choose\"} 3",
        "culprit_processor_outgoing_events_total{pipeline=\"p\",processor=\"choose\"} 2",
        "culprit_processor_incoming_events_total{pipeline=\"p\",processor=\"sum\"} 2",
        ("culprit_discarded_events_total{component=\"choose\",intentional=\"true\","
         "pipeline=\"p\",reason=\"other_job\"} 1"),
        "culprit_receiver_blocked{receiver=\"told\"} 0",
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        must_count(&answer, lines[i]);
    answer_free(&answer);
    end_live();
}
END_TEST

START_TEST(an_endpoint_that_is_taken_ends_the_start) {
    f.plan.settings.telemetry.metrics.endpoint = "unix:/nowhere/at/all";
    ck_assert_int_ne(service_start(&service, &f.plan, false, NULL, &error), STATUS_OK);
    ck_assert_ptr_nonnull(strstr(error.message, "service.telemetry.metrics.endpoint: "));
    ck_assert_ptr_null(service);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("service_live");
    TCase *tests = tcase_create("service_live");
    tcase_add_checked_fixture(tests, live_setup, live_teardown);
    tcase_add_test(tests, all_parts_are_named_and_well);
    tcase_add_test(tests, trouble_comes_and_goes);
    tcase_add_loop_test(tests, a_sink_that_refuses_is_told_with_its_words, 0, 2);
    tcase_add_test(tests, a_configuration_that_was_refused_is_said);
    tcase_add_test(tests, a_receiver_that_fails_ends_the_run);
    tcase_add_exit_test(tests, a_receiver_that_does_not_stop_is_not_waited_for, 71);
    tcase_add_exit_test(tests, a_delivery_that_does_not_end_is_not_waited_for, 74);
    tcase_add_test(tests, a_part_that_does_not_start_is_named);
    tcase_add_test(tests, a_full_queue_holds_the_receiver_up);
    tcase_add_test(tests, input_does_not_wake_the_main_thread);
    tcase_add_test(tests, it_counts_what_came_and_went);
    tcase_add_test(tests, what_a_stage_leaves_out_is_counted);
    tcase_add_test(tests, an_endpoint_that_is_taken_ends_the_start);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
