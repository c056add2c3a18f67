// SPDX-License-Identifier: Apache-2.0
// How a service goes on: after a stop, from a store, and after a reload, from memory.
#include "tests/pipeline/runtime/service_told.h"

#include <fcntl.h>

// -- going on -------------------------------------------------------------------------------------

START_TEST(a_start_goes_on_from_the_store) {
    with_store = true;
    begin_live();
    tell("1");
    tell("2");
    EVENTUALLY(atomic_load(&total_seconds) == 3);
    EVENTUALLY(safe_number() == 2); // the checkpoint with it is durable
    end_live();
    check_text(&seen, "1 2 end");
    seen.size = 0;
    intern_release(); // another process gives other ids
    intern(SLICE("something else"));
    begin_live();
    tell("4");
    EVENTUALLY(atomic_load(&total_seconds) == 7);
    ck_assert_uint_eq(atomic_load(&row_count), 3);
    end_live();
    ck_assert_str_eq(total_name, "the first");
    check_text(&seen, "4 end"); // nothing comes again
}
END_TEST

static void take_out(enum storage_space space, const char *names) {
    struct store_options options = {.directory = folder, .max_size = 64 << 20, .site = "test"};
    struct storage *opened;
    ck_assert_int_eq(store_open(&opened, &options, &error), STATUS_OK);
    struct storage_batch *batch = storage_batch_new(opened);
    storage_delete_names(batch, space, names);
    ck_assert_int_eq(storage_wait(opened, storage_submit(batch), 10 * SECOND, &error), STATUS_OK);
    store_close(opened, 10 * SECOND);
}

START_TEST(a_source_that_is_gone_is_not_kept) {
    with_store = true;
    begin_live();
    tell("1");
    EVENTUALLY(safe_number() == 1);
    atomic_store(&told_move, true);
    EVENTUALLY(!atomic_load(&told_move));
    tell("2");
    EVENTUALLY(safe_number() == 2);
    ck_assert_str_eq(restored_paths, "");
    end_live();
    begin_live();
    tell("4");
    EVENTUALLY(atomic_load(&total_seconds) == 7);
    ck_assert_str_eq(restored_paths, "moved ");
    end_live();
}
END_TEST

START_TEST(what_a_dead_sink_left_comes_after_a_start) {
    with_store = true;
    atomic_store(&refusals_left, 1000000);
    f.plan.settings.shutdown_timeout.ns = 2 * (int64_t)SECOND; // and the last checkpoint with it
    begin_live();
    tell("1");
    tell("100");
    EVENTUALLY(atomic_load(&judgements) == 1);
    EVENTUALLY(safe_number() == 2);
    end_with(STATUS_AGAIN); // what waits is in the store
    ck_assert_str_eq(running.error.message,
                     "exporter/letters: the sink is busy; 2 records (2 bytes) were not delivered; "
                     "the store keeps it for the next start");
    ck_assert_uint_eq(delivered.size, 0);
    if (_i == 1)
        take_out(STORAGE_QUEUE, "letters"); // it is logged; the rest goes on
    atomic_store(&refusals_left, 0);
    f.plan.settings.shutdown_timeout.ns = 20 * (int64_t)SECOND;
    begin_live();
    end_live();
    buffer_append_char(&delivered, '\0');
    ck_assert_str_eq(delivered.data, _i == 0 ? "ezz" : "z");
}
END_TEST

static atomic_uint asked_times;
static enum status letters_send_later(void *instance, const struct request *request,
                                      struct send_outcome *outcome, struct error *inner) {
    atomic_fetch_add(&asked_times, 1);
    outcome->retry_after_ns = 20 * SECOND;
    return letters_send(instance, request, outcome, inner);
}

// The sink asked for twenty seconds of silence: neither a start nor a reload breaks it.
START_TEST(what_a_sink_asked_for_is_kept_to_after_a_start) {
    struct component_type type = letters_type;
    type.exporter.send = letters_send_later;
    f.components[3].type = &type;
    f.plan.settings.checkpoint_interval.ns = 3600 * (int64_t)SECOND; // a refusal asks for one
    f.plan.settings.shutdown_timeout.ns = (int64_t)SECOND;
    with_store = true;
    atomic_store(&refusals_left, 1);
    atomic_store(&asked_times, 0);
    begin_live();
    tell("1");
    tell("100");
    EVENTUALLY(atomic_load(&asked_times) == 1);
    EVENTUALLY(safe_number() == 2);
    end_with(STATUS_AGAIN);
    begin_live();
    tell("200");
    EVENTUALLY(atomic_load(&judgements) > 1);
    end_with(STATUS_AGAIN);
    ck_assert_uint_eq(atomic_load(&asked_times), 1);
    ck_assert_uint_eq(delivered.size, 0);
}
END_TEST

static inline void lines_encode(void *instance, const struct batch *batch, struct buffer *out) {
    (void)instance;
    if (batch->evaluate)
        buffer_append_text(out, batch->last ? "z\n" : "one\ntwo\n");
}

// Takes the first line and is busy with the others, while there are refusals left.
static atomic_bool took_line;
static enum status lines_send(void *instance, const struct request *request,
                              struct send_outcome *outcome, struct error *inner) {
    if (atomic_load(&refusals_left) <= 0)
        return letters_send(instance, request, outcome, inner);
    if (!atomic_load(&took_line)) {
        outcome->taken = 4;
        buffer_append(&delivered, (struct slice){request->bytes.data, 4});
        atomic_store(&took_line, true);
    }
    return error_set(inner, STATUS_IO, "the sink is busy");
}

static void begin_with_half_a_block(struct component_type *type) {
    *type = letters_type;
    type->exporter.encode = lines_encode;
    type->exporter.send = lines_send;
    type->exporter.lines = true;
    f.components[3].type = type;
    f.plan.settings.shutdown_timeout.ns = 2 * (int64_t)SECOND; // and the last checkpoint with it
    atomic_store(&took_line, false);
    atomic_store(&refusals_left, 1000000);
    begin_live();
    tell("1");
    tell("100");
    EVENTUALLY(atomic_load(&took_line));
}

START_TEST(what_was_taken_of_a_block_does_not_come_after_a_start) {
    struct component_type type;
    with_store = true;
    begin_with_half_a_block(&type);
    EVENTUALLY(safe_number() == 2);
    end_with(STATUS_AGAIN);
    atomic_store(&refusals_left, 0);
    f.plan.settings.shutdown_timeout.ns = 20 * (int64_t)SECOND;
    begin_live();
    end_live();
    check_text(&delivered, "one\ntwo\nz\nz\n");
}
END_TEST

START_TEST(what_was_taken_of_a_block_does_not_come_after_a_reload) {
    struct component_type type;
    struct snapshot *snapshot;
    begin_with_half_a_block(&type);
    service_ask_reload(service);
    pthread_join(running.thread, NULL);
    ck_assert_int_eq(service_pause(service, &snapshot, &error), STATUS_OK);
    service_free(service);
    atomic_store(&refusals_left, 0);
    f.plan.settings.shutdown_timeout.ns = 20 * (int64_t)SECOND;
    begin_from(snapshot);
    snapshot_free(snapshot);
    end_live();
    check_text(&delivered, "one\ntwo\nz\n");
}
END_TEST

// Another exporter is there under another name: what waited for the old one is dropped.
START_TEST(what_waits_for_nobody_is_dropped) {
    with_store = true;
    atomic_store(&refusals_left, 1000000);
    f.plan.settings.shutdown_timeout.ns = 2 * (int64_t)SECOND; // and the last checkpoint with it
    begin_live();
    tell("1");
    tell("100");
    EVENTUALLY(atomic_load(&judgements) == 1);
    EVENTUALLY(safe_number() == 2);
    end_with(STATUS_AGAIN);
    atomic_store(&refusals_left, 0);
    f.components[3].id = "letters/2";
    f.plan.settings.shutdown_timeout.ns = 20 * (int64_t)SECOND;
    begin_live();
    EVENTUALLY(health().ready); // the store can be written
    end_live();
    check_text(&delivered, "z");
}
END_TEST

static bool waits(const void *config) {
    (void)config;
    return true;
}

// What must not come in other bytes after a crash leaves behind a checkpoint, which is asked for.
START_TEST(a_checkpoint_is_made_for_what_waits_for_it) {
    struct component_type type = letters_type;
    type.exporter.waits_for_checkpoint = waits;
    f.components[3].type = &type;
    f.plan.settings.checkpoint_interval.ns = 3600 * (int64_t)SECOND;
    with_store = true;
    begin_live();
    tell("1");
    tell("100");
    EVENTUALLY(atomic_load(&refusals_left) < 0); // it counts what is sent
    end_live();
    check_text(&delivered, "ez");
}
END_TEST

START_TEST(what_is_damaged_begins_anew_with_its_inputs) {
    static const char *const names[] = {"p/sum/rows", "p/sum/total", "p//"};
    with_store = true;
    begin_live();
    tell("1");
    tell("2");
    EVENTUALLY(safe_number() == 2);
    end_live();
    take_out(_i == 3 ? STORAGE_STRINGS : STORAGE_STATE, _i == 3 ? "" : names[_i]);
    seen.size = 0;
    atomic_store(&total_seconds, 0);
    intern_release();
    begin_live();
    EVENTUALLY(atomic_load(&total_seconds) == 3);
    ck_assert_uint_eq(atomic_load(&row_count), 2);
    end_live();
    ck_assert_str_eq(total_name, "the first");
    check_text(&seen, "1 2 end");
}
END_TEST

static struct route_config letters_route;
static const struct route_config *letters_routed(const void *config) {
    (void)config;
    return &letters_route;
}

static void states_encode(void *instance, const struct batch *batch, struct buffer *out) {
    (void)instance;
    for (uint32_t i = 0; i < batch->verdicts.count; i++)
        buffer_append_char(out, *verdict_state_name(batch->verdicts.items[i].state));
}

static void begin_noted(char *log, size_t size) {
    char path[100];
    snprintf(path, sizeof path, "%s/log", folder);
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600), kept = dup(STDERR_FILENO);
    ck_assert_int_ge(file, 0);
    dup2(file, STDERR_FILENO);
    log_configure(LOG_WARN, LOG_CONSOLE);
    begin_live();
    log_flush();
    log_configure((enum log_level)(LOG_ERROR + 1), LOG_CONSOLE);
    dup2(kept, STDERR_FILENO);
    ssize_t got = pread(file, log, size - 1, 0);
    ck_assert_int_ge(got, 0);
    log[got] = '\0';
    close(file);
    close(kept);
}

// What the sink was told is known after a start; when that is damaged, it is told again.
START_TEST(what_a_sink_was_told_is_kept_or_told_again) {
    static const char *const names[] = {"", "route:letters/route.rows", "route:letters/route.now"};
    struct component_type type = letters_type;
    char log[1000];
    type.exporter.encode = states_encode;
    type.exporter.route = letters_routed;
    letters_route = (struct route_config){.update_interval.ns = 3600 * (int64_t)SECOND};
    f.components[3].type = &type;
    with_store = true;
    begin_live();
    tell("1");
    tell("100");
    EVENTUALLY(atomic_load(&judgements) == 1);
    EVENTUALLY(safe_number() == 2);
    end_live();
    check_text(&delivered, "ou"); // the end brings what waits, and is not kept
    delivered.size = 0;
    if (_i > 0)
        take_out(STORAGE_STATE, names[_i]);
    atomic_store(&judgements, 0);
    begin_noted(log, sizeof log);
    ck_assert_msg((strstr(log, "C5006 exporter/letters") != NULL) == (_i > 0), "%s", log);
    tell("350");
    EVENTUALLY(atomic_load(&judgements) > 0);
    end_live();
    check_text(&delivered, _i == 0 ? "u" : "ou");
}
END_TEST

START_TEST(other_options_begin_anew_behind_what_was_read) {
    struct sum_config config = {.weight = 1};
    f.components[2].config = &config;
    with_store = true;
    begin_live();
    tell("1");
    tell("2");
    EVENTUALLY(safe_number() == 2);
    end_live();
    config.weight = 10;
    begin_live();
    tell("4");
    EVENTUALLY(atomic_load(&total_seconds) == 40);
    ck_assert_uint_eq(atomic_load(&row_count), 1);
    end_live();
    check_text(&seen, "1 2 end4 end");
}
END_TEST

// As the page on delivery says: what a stage keeps does not depend on when it is evaluated.
START_TEST(other_times_of_a_pipeline_go_on) {
    struct pipeline_timing *timing = &f.pipeline.timing;
    with_store = true;
    // Both in one batch, before the receiver has caught up.
    tell("1");
    tell("100");
    begin_live();
    EVENTUALLY(atomic_load(&judgements) == 1);
    EVENTUALLY(safe_number() == 2);
    end_live();
    timing->evaluate_every.ns *= 10;
    timing->settle.ns += (int64_t)SECOND;
    timing->idle_timeout.ns += (int64_t)SECOND;
    timing->max_jump.ns = 3600 * (int64_t)SECOND;
    tell("350"); // there before the receiver has caught up: nothing is judged without it
    begin_live();
    EVENTUALLY(atomic_load(&total_seconds) == 451);
    ck_assert_uint_eq(atomic_load(&row_count), 3);
    end_live();
    check_text(&seen, "1 100 @10 end350 @100 end");
}
END_TEST

START_TEST(a_reload_goes_on_from_memory) {
    struct snapshot *snapshot;
    metrics_at();
    atomic_store(&refusals_left, 1000000);
    // Both in one batch, before the receiver has caught up.
    tell("1");
    tell("100");
    begin_live();
    EVENTUALLY(atomic_load(&total_seconds) == 101 && atomic_load(&judgements) == 1);
    service_ask_reload(service);
    pthread_join(running.thread, NULL);
    ck_assert(running.reload);
    ck_assert_int_eq(service_pause(service, &snapshot, &error), STATUS_OK);
    service_free(service);
    atomic_store(&refusals_left, 0);
    begin_from(snapshot);
    snapshot_free(snapshot);
    tell("7");
    EVENTUALLY(atomic_load(&total_seconds) == 108);
    struct answer answer = ask_metrics(); // counters go on
    must_count(&answer,
               "culprit_receiver_accepted_events_total{receiver=\"told\","
               "transport=\"told\"} 3");
    answer_free(&answer);
    end_live();
    check_text(&seen, "1 100 @10 7 @20 end"); // 7 was too late for the moment at 10 s
    buffer_append_char(&delivered, '\0');
    ck_assert_str_eq(delivered.data, "eez"); // what waited and what came
}
END_TEST

int main(void) {
    Suite *suite = suite_create("service_goes_on");
    TCase *tests = tcase_create("service_goes_on");
    tcase_add_checked_fixture(tests, live_setup, live_teardown);
    tcase_add_test(tests, a_start_goes_on_from_the_store);
    tcase_add_test(tests, a_source_that_is_gone_is_not_kept);
    tcase_add_loop_test(tests, what_a_dead_sink_left_comes_after_a_start, 0, 2);
    tcase_add_test(tests, what_a_sink_asked_for_is_kept_to_after_a_start);
    tcase_add_test(tests, what_was_taken_of_a_block_does_not_come_after_a_start);
    tcase_add_test(tests, what_was_taken_of_a_block_does_not_come_after_a_reload);
    tcase_add_test(tests, what_waits_for_nobody_is_dropped);
    tcase_add_test(tests, a_checkpoint_is_made_for_what_waits_for_it);
    tcase_add_loop_test(tests, what_is_damaged_begins_anew_with_its_inputs, 0, 4);
    tcase_add_loop_test(tests, what_a_sink_was_told_is_kept_or_told_again, 0, 3);
    tcase_add_test(tests, other_options_begin_anew_behind_what_was_read);
    tcase_add_test(tests, other_times_of_a_pipeline_go_on);
    tcase_add_test(tests, a_reload_goes_on_from_memory);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
