// SPDX-License-Identifier: Apache-2.0
// A service that runs: what it says of its parts and counts of itself, and how it goes on after a
// stop, from a store, and after a reload, from memory.
#include "base/http_server.h"
#include "base/metrics.h"
#include "pipeline/checkpoint.h"
#include "pipeline/service_status.h"
#include "pipeline/store.h"
#include "service_fixture.h"
#include "tests/base/http_client.h"

static char folder[64];
static struct fixture f;
static struct service *service;
static struct error error;

// -- an extension: who asks how it is going, and the store ----------------------------------------

static const struct service_status *watched;
static bool with_store;
static struct store *store;

static enum status watch_start(void *instance, const void *config,
                               const struct component_context *context, struct error *failure) {
    (void)instance;
    (void)config;
    watched = context->status;
    store = NULL;
    if (!with_store)
        return STATUS_OK;
    struct store_options options = {.directory = folder,
                                    .create_directory = true,
                                    .max_size = 64 << 20,
                                    .commit_interval_ns = 1000000,
                                    .site = context->site};
    return store_open(&store, &options, failure);
}

static void watch_stop(void *instance) {
    (void)instance;
    store_close(store, 10 * SECOND);
    store = NULL;
}

static struct store *watch_store(void *instance) {
    (void)instance;
    return store;
}

static const struct component_type watch_type = {
    .name = "watch",
    .kind = COMPONENT_EXTENSION,
    .instance_size = 1,
    .start = watch_start,
    .stop = watch_stop,
    .extension = {.store = watch_store},
};

// -- a receiver that can be told what to do while it runs -----------------------------------------

enum { WORDS_MAX = 64 };
static pthread_mutex_t told_lock = PTHREAD_MUTEX_INITIALIZER;
static const char *told_words[WORDS_MAX]; // one source's records, for good
static uint32_t told_count;
static const char *told_trouble;
static atomic_bool told_failure;
static atomic_uint was_blocked;
static atomic_bool told_move; // the source is gone, and another one is there
static struct source_position safe_position;
static char restored_paths[64]; // a space behind each

static void tell(const char *word) {
    pthread_mutex_lock(&told_lock);
    ck_assert_uint_lt(told_count, WORDS_MAX);
    told_words[told_count++] = word;
    pthread_mutex_unlock(&told_lock);
}

static void tell_trouble(const char *sentence) {
    pthread_mutex_lock(&told_lock);
    told_trouble = sentence;
    pthread_mutex_unlock(&told_lock);
}

static void offer_told(struct feed *feed, struct source *source, uint64_t *done) {
    struct decode_fault fault;
    pthread_mutex_lock(&told_lock);
    for (; *done < told_count; ++*done) {
        struct source_position position = {.number = *done + 1};
        feed_source_reached(source, &position);
        (void)feed_offer(feed, source, slice_of(told_words[*done]), *done + 1, &fault);
    }
    feed_flush(feed);
    feed_trouble(feed, told_trouble);
    safe_position = feed_source_safe(feed, source);
    pthread_mutex_unlock(&told_lock);
}

static struct source *told_source(struct feed *feed) {
    struct source *source, *first = NULL;
    restored_paths[0] = '\0';
    for (uint32_t i = 0; (source = feed_restored_source(feed, i)) != NULL; i++) {
        struct slice path = feed_source_path(source);
        size_t used = strlen(restored_paths);
        snprintf(restored_paths + used, sizeof restored_paths - used, "%.*s ", (int)path.size,
                 path.data);
        first = first == NULL ? source : first;
    }
    return first == NULL ? feed_source(feed, SLICE("told")) : first;
}

static enum status told_run(void *instance, struct feed *feed, struct error *failure) {
    (void)instance;
    struct source *source = told_source(feed);
    feed_source_format(source, &seconds, &(struct decoder_input){.path = {0}});
    uint64_t done = feed_source_restored(source).number;
    struct pollfd stop = {.fd = feed_stop_descriptor(feed), .events = POLLIN};
    do {
        if (atomic_exchange(&told_move, false)) {
            feed_source_forget(feed, source);
            source = feed_source(feed, SLICE("moved"));
            feed_source_format(source, &seconds, &(struct decoder_input){.path = {0}});
        }
        if (feed_wait(feed, 1000000))
            offer_told(feed, source, &done);
        else
            atomic_fetch_add(&was_blocked, 1);
        feed_caught_up(feed);
        if (atomic_load(&told_failure))
            return error_set(failure, STATUS_IO, "the line is dead");
        poll(&stop, 1, 2);
    } while (!feed_stopping(feed));
    return STATUS_OK;
}

static const struct component_type told_type = {
    .name = "told",
    .kind = COMPONENT_RECEIVER,
    .instance_size = 1,
    .receiver = {.run = told_run},
};

// -- a stage that remembers -----------------------------------------------------------------------

struct sum_config {
    int64_t weight;
};

static const struct option SUM_OPTIONS[] = {
    {.name = "weight", .type = OPTION_INT, .default_value = "1", .help = "of a second"},
};

struct sum {
    int64_t weight;
    struct table rows; // one an event
    struct {
        uint64_t seconds;
        string_id name;
    } total;
};

static const struct sum_config sum_defaults = {.weight = 1};
static uint64_t total_seconds, row_count;
static char total_name[32];

static enum status sum_start(void *instance, const void *config,
                             const struct component_context *context, struct error *failure) {
    struct sum *self = instance;
    (void)context;
    (void)failure;
    self->weight = ((const struct sum_config *)config)->weight;
    table_init(&self->rows, "rows", 16, 64);
    return STATUS_OK;
}

static void sum_stop(void *instance) {
    table_release(&((struct sum *)instance)->rows);
}

static void sum_state(void *instance, struct state_list *list) {
    struct sum *self = instance;
    state_list_table(list, &self->rows);
    state_entry_string(state_list_struct(list, "total", &self->total, sizeof self->total),
                       sizeof(uint64_t));
}

static void sum_consume(void *instance, struct batch *batch) {
    struct sum *self = instance;
    for (uint32_t i = 0; i < batch->event_count; i++) {
        self->total.seconds += batch->events[i].time_ns / SECOND * (uint64_t)self->weight;
        (void)table_add(&self->rows);
    }
    if (self->total.name == STRING_NONE)
        self->total.name = intern(SLICE("the first"));
    total_seconds = self->total.seconds;
    row_count = self->rows.used;
    struct slice name = intern_slice(self->total.name);
    snprintf(total_name, sizeof total_name, "%.*s", (int)name.size, name.data);
    diary_consume(NULL, batch);
}

static const struct component_type sum_type = {
    .name = "sum",
    .kind = COMPONENT_PROCESSOR,
    .options = SUM_OPTIONS,
    .option_count = 1,
    .config_size = sizeof(struct sum_config),
    .instance_size = sizeof(struct sum),
    .start = sum_start,
    .stop = sum_stop,
    .state = sum_state,
    .processor = {.consume = sum_consume},
};

// -- an exporter with a small queue --------------------------------------------------------------

static const struct sending_config *small_sending(const void *config) {
    return config;
}

static const struct component_type small_letters_type = {
    .name = "letters",
    .kind = COMPONENT_EXPORTER,
    .instance_size = 1,
    .exporter = {.encode = letters_encode, .send = letters_send, .sending = small_sending},
};

// -- running it -----------------------------------------------------------------------------------

struct running {
    pthread_t thread;
    bool reload;
    enum status status;
    struct error error;
};

static struct running running;

static void *run_service(void *argument) {
    (void)argument;
    running.status = service_run(service, &running.reload, &running.error);
    return NULL;
}

static void begin_from(struct image *image) {
    enum status status = service_start(&service, &f.plan, false, image, &error);
    ck_assert_msg(status == STATUS_OK, "%s", error.message);
    running = (struct running){.reload = false};
    ck_assert_int_eq(pthread_create(&running.thread, NULL, run_service, NULL), 0);
}

static void end(void) {
    service_ask_stop(service);
    pthread_join(running.thread, NULL);
}

static void begin_live(void) {
    begin_from(NULL);
}

static void end_live(void) {
    end();
    ck_assert_msg(running.status == STATUS_OK, "%s", running.error.message);
    service_free(service);
}

#define AWAIT(condition)                                                                           \
    do {                                                                                           \
        for (int tries_ = 0; tries_ < 5000 && !(condition); tries_++)                              \
            clock_sleep_ns(2000000);                                                               \
        ck_assert_msg(condition, "never came: %s", #condition);                                    \
    } while (0)

static struct service_health health(void) {
    struct service_health answer;
    watched->health(watched->context, &answer);
    return answer;
}

static struct component_status status_of(const char *id) {
    struct component_status statuses[16];
    uint32_t count = watched->components(watched->context, statuses, 16);
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(statuses[i].id, id) == 0)
            return statuses[i];
    ck_abort_msg("no component %s", id);
}

static bool is_in(const char *id, enum component_state state) {
    return status_of(id).state == state;
}

static void live_setup(void) {
    setup();
    strcpy(folder, "/tmp/culprit-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    fixture_init(&f, 1);
    f.components[0].type = &told_type;
    f.components[0].id = "told";
    f.components[2].type = &sum_type;
    f.components[2].id = "sum";
    f.components[2].config = &sum_defaults;
    f.components[4] = (struct plan_component){.type = &watch_type, .id = "watch", .used = true};
    f.plan.component_count = 5;
    f.plan.checkpoint_interval.ns = 20000000;
    with_store = false;
    told_count = 0;
    told_trouble = NULL;
    atomic_store(&told_failure, false);
    atomic_store(&was_blocked, 0);
    log_configure((enum log_level)(LOG_ERROR + 1), LOG_CONSOLE);
}

static void live_teardown(void) {
    char command[100];
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    ck_assert_int_eq(system(command), 0);
    metrics_release();
    teardown();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

// -- what it says of its parts --------------------------------------------------------------------

START_TEST(all_parts_are_named_and_well) {
    begin_live();
    AWAIT(health().started);
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
    AWAIT(is_in("receiver/told", COMPONENT_OK));
    uint64_t since = status_of("receiver/told").since_unix_ns;
    tell_trouble("nobody answers");
    AWAIT(is_in("receiver/told", COMPONENT_RECOVERABLE));
    ck_assert_str_eq(status_of("receiver/told").sentence, "nobody answers");
    ck_assert_uint_gt(status_of("receiver/told").since_unix_ns, since);
    tell_trouble("somebody shouts");
    AWAIT(strcmp(status_of("receiver/told").sentence, "somebody shouts") == 0);
    tell_trouble(NULL);
    AWAIT(is_in("receiver/told", COMPONENT_OK));
    ck_assert_str_eq(status_of("receiver/told").sentence, "");
    end_live();
}
END_TEST

START_TEST(a_sink_that_refuses_is_told_with_its_words) {
    atomic_store(&refusals_left, 1000000);
    refuse_for_good = _i == 1;
    begin_live();
    tell("1");
    tell("100");
    AWAIT(is_in("exporter/letters", _i == 0 ? COMPONENT_RECOVERABLE : COMPONENT_PERMANENT));
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
    AWAIT(health().ready);
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
    AWAIT(health().started);
    tell("5");
    atomic_store(&told_failure, true);
    pthread_join(running.thread, NULL);
    ck_assert_int_eq(running.status, STATUS_IO);
    ck_assert_str_eq(running.error.message, "receiver/told: the line is dead");
    service_free(service);
    check_text(&seen, "5 end"); // what came before counts
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
    AWAIT(atomic_load(&was_blocked) > 2);
    tell("200");
    atomic_store(&refusals_left, 0);
    AWAIT(total_seconds == 501);
    end_live();
    buffer_append_char(&delivered, '\0');
    ck_assert_uint_eq(strlen(delivered.data), atomic_load(&judgements));
}
END_TEST

// -- what it counts -------------------------------------------------------------------------------

static char socket_path[100], endpoint[120];

static void metrics_at(void) {
    snprintf(socket_path, sizeof socket_path, "%s/socket", folder);
    snprintf(endpoint, sizeof endpoint, "unix:%s", socket_path);
    f.plan.metrics_endpoint = endpoint;
}

static void must_count(const struct answer *answer, const char *line) {
    char whole[256];
    snprintf(whole, sizeof whole, "\n%s\n", line);
    ck_assert_msg(strstr(answer->body, whole) != NULL, "no %s in\n%s", line, answer->body);
}

static struct answer ask_metrics(void) {
    int descriptor = client_connect_unix(socket_path);
    client_request(descriptor, "GET", "/metrics", "", NULL, 0);
    struct answer answer = client_answer(descriptor, false);
    close(descriptor);
    ck_assert_int_eq(answer.status, 200);
    return answer;
}

START_TEST(it_counts_what_came_and_went) {
    metrics_at();
    begin_live();
    tell("1");
    tell("x");
    tell("2");
    tell("100");
    AWAIT(total_seconds == 103);
    AWAIT(atomic_load(&judgements) == 1);
    struct answer answer = ask_metrics();
    static const char *const lines[] = {
        "culprit_receiver_accepted_events_total{receiver=\"told\",transport=\"told\"} 3",
        "culprit_receiver_failed_events_total{reason=\"bad_json\",receiver=\"told\","
        "transport=\"told\"} 1",
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

START_TEST(an_endpoint_that_is_taken_ends_the_start) {
    f.plan.metrics_endpoint = "unix:/nowhere/at/all";
    ck_assert_int_ne(service_start(&service, &f.plan, false, NULL, &error), STATUS_OK);
    ck_assert_ptr_nonnull(strstr(error.message, "service.telemetry.metrics.endpoint: "));
    ck_assert_ptr_null(service);
}
END_TEST

// -- going on -------------------------------------------------------------------------------------

START_TEST(a_start_goes_on_from_the_store) {
    with_store = true;
    begin_live();
    tell("1");
    tell("2");
    AWAIT(total_seconds == 3);
    AWAIT(safe_position.number == 2); // the checkpoint with it is durable
    end_live();
    check_text(&seen, "1 2 end");
    seen.size = 0;
    intern_release(); // another process gives other ids
    intern(SLICE("something else"));
    begin_live();
    tell("4");
    AWAIT(total_seconds == 7);
    ck_assert_uint_eq(row_count, 3);
    ck_assert_str_eq(total_name, "the first");
    end_live();
    check_text(&seen, "4 end"); // nothing comes again
}
END_TEST

static void take_out(enum store_space space, const char *names) {
    struct store_options options = {.directory = folder, .max_size = 64 << 20, .site = "test"};
    struct store *opened;
    ck_assert_int_eq(store_open(&opened, &options, &error), STATUS_OK);
    struct store_batch *batch = store_batch_new(opened);
    store_delete_names(batch, space, names);
    ck_assert_int_eq(store_wait(opened, store_submit(batch), 10 * SECOND, &error), STATUS_OK);
    store_close(opened, 10 * SECOND);
}

START_TEST(a_source_that_is_gone_is_not_kept) {
    with_store = true;
    begin_live();
    tell("1");
    AWAIT(safe_position.number == 1);
    atomic_store(&told_move, true);
    AWAIT(!atomic_load(&told_move));
    tell("2");
    AWAIT(safe_position.number == 2);
    ck_assert_str_eq(restored_paths, "");
    end_live();
    begin_live();
    tell("4");
    AWAIT(total_seconds == 7);
    ck_assert_str_eq(restored_paths, "moved ");
    end_live();
}
END_TEST

START_TEST(what_a_dead_sink_left_comes_after_a_start) {
    with_store = true;
    atomic_store(&refusals_left, 1000000);
    f.plan.shutdown_timeout.ns = 50000000;
    begin_live();
    tell("1");
    tell("100");
    AWAIT(atomic_load(&judgements) == 1);
    AWAIT(safe_position.number == 2);
    end_live(); // what waits is in the store: that is no failure
    ck_assert_uint_eq(delivered.size, 0);
    if (_i == 1)
        take_out(STORE_QUEUE, "letters"); // it is logged; the rest goes on
    atomic_store(&refusals_left, 0);
    f.plan.shutdown_timeout.ns = 20 * (int64_t)SECOND;
    begin_live();
    end_live();
    buffer_append_char(&delivered, '\0');
    ck_assert_str_eq(delivered.data, _i == 0 ? "ezz" : "z");
}
END_TEST

START_TEST(what_is_damaged_begins_anew_with_its_inputs) {
    static const char *const names[] = {"p/sum/rows", "p/sum/total", "p//"};
    with_store = true;
    begin_live();
    tell("1");
    tell("2");
    AWAIT(safe_position.number == 2);
    end_live();
    take_out(_i == 3 ? STORE_STRINGS : STORE_STATE, _i == 3 ? "" : names[_i]);
    seen.size = 0;
    total_seconds = 0;
    intern_release();
    begin_live();
    AWAIT(total_seconds == 3);
    ck_assert_uint_eq(row_count, 2);
    ck_assert_str_eq(total_name, "the first");
    end_live();
    check_text(&seen, "1 2 end");
}
END_TEST

START_TEST(other_options_begin_anew_behind_what_was_read) {
    struct sum_config config = {.weight = 1};
    f.components[2].config = &config;
    with_store = true;
    begin_live();
    tell("1");
    tell("2");
    AWAIT(safe_position.number == 2);
    end_live();
    config.weight = 10;
    begin_live();
    tell("4");
    AWAIT(total_seconds == 40);
    ck_assert_uint_eq(row_count, 1);
    end_live();
    check_text(&seen, "1 2 end4 end");
}
END_TEST

START_TEST(a_reload_goes_on_from_memory) {
    struct image *image;
    metrics_at();
    atomic_store(&refusals_left, 1000000);
    begin_live();
    tell("1");
    tell("100");
    AWAIT(total_seconds == 101 && atomic_load(&judgements) == 1);
    service_ask_reload(service);
    pthread_join(running.thread, NULL);
    ck_assert(running.reload);
    ck_assert_int_eq(service_pause(service, &image, &error), STATUS_OK);
    service_free(service);
    atomic_store(&refusals_left, 0);
    begin_from(image);
    image_free(image);
    tell("7");
    AWAIT(total_seconds == 108);
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
    Suite *suite = suite_create("service_live");
    TCase *tests = tcase_create("service_live");
    tcase_add_checked_fixture(tests, live_setup, live_teardown);
    tcase_add_test(tests, all_parts_are_named_and_well);
    tcase_add_test(tests, trouble_comes_and_goes);
    tcase_add_loop_test(tests, a_sink_that_refuses_is_told_with_its_words, 0, 2);
    tcase_add_test(tests, a_configuration_that_was_refused_is_said);
    tcase_add_test(tests, a_receiver_that_fails_ends_the_run);
    tcase_add_test(tests, a_part_that_does_not_start_is_named);
    tcase_add_test(tests, a_full_queue_holds_the_receiver_up);
    tcase_add_test(tests, it_counts_what_came_and_went);
    tcase_add_test(tests, an_endpoint_that_is_taken_ends_the_start);
    tcase_add_test(tests, a_start_goes_on_from_the_store);
    tcase_add_test(tests, a_source_that_is_gone_is_not_kept);
    tcase_add_loop_test(tests, what_a_dead_sink_left_comes_after_a_start, 0, 2);
    tcase_add_loop_test(tests, what_is_damaged_begins_anew_with_its_inputs, 0, 4);
    tcase_add_test(tests, other_options_begin_anew_behind_what_was_read);
    tcase_add_test(tests, a_reload_goes_on_from_memory);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
