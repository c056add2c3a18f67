// SPDX-License-Identifier: Apache-2.0
// A service that runs on a thread, made of components that can be told what to do meanwhile: a
// receiver that is given words, a stage that remembers, an extension that asks how it is going and
// may be the store.
#pragma once

#include "base/http/server.h"
#include "base/metrics/metrics.h"
#include "extensions/file_storage/store.h"
#include "pipeline/component/service_status.h"
#include "pipeline/runtime/checkpoint.h"
#include "tests/base/http/http_client.h"
#include "tests/pipeline/runtime/service_fixture.h"
#include "tests/support/eventually.h"
#include "tests/support/temporary.h"

#include <sys/resource.h>

static char folder[64];
static struct fixture f;
static struct service *service;
static struct error error;

// -- an extension: who asks how it is going, and the store ----------------------------------------

static const struct service_status *watched;
static bool with_store;
static struct storage *store;

static inline enum status watch_start(void *instance, const void *config,
                                      const struct component_context *context,
                                      struct error *failure) {
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

static inline void watch_stop(void *instance) {
    (void)instance;
    store_close(store, 10 * SECOND);
    store = NULL;
}

static inline struct storage *watch_store(void *instance) {
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
static atomic_bool told_deaf; // does not stop when it is asked to
static atomic_uint was_blocked;
static atomic_bool told_move; // the source is gone, and another one is there
static bool told_keeps_place;
static struct source *told_place;
static uint64_t safe_so_far;    // number of what need not come again
static char restored_paths[64]; // a space behind each

static inline void tell(const char *word) {
    pthread_mutex_lock(&told_lock);
    ck_assert_uint_lt(told_count, WORDS_MAX);
    told_words[told_count++] = word;
    pthread_mutex_unlock(&told_lock);
}

static inline void tell_trouble(const char *sentence) {
    pthread_mutex_lock(&told_lock);
    told_trouble = sentence;
    pthread_mutex_unlock(&told_lock);
}

static inline uint64_t safe_number(void) {
    pthread_mutex_lock(&told_lock);
    uint64_t number = safe_so_far;
    pthread_mutex_unlock(&told_lock);
    return number;
}

// The position is kept with a place when there is one, as receivers of files do.
static inline void offer_told(struct feed *feed, struct source *source, uint64_t *done) {
    struct decode_fault fault;
    pthread_mutex_lock(&told_lock);
    for (; *done < told_count; ++*done) {
        struct source_position position = {.number = *done + 1};
        feed_source_reached(told_place == NULL ? source : told_place, &position);
        (void)feed_offer(feed, source, slice_of(told_words[*done]), *done + 1, &fault);
    }
    feed_flush(feed);
    feed_trouble(feed, told_trouble);
    safe_so_far = feed_source_safe(feed, source).number;
    pthread_mutex_unlock(&told_lock);
}

static inline struct source *told_source(struct feed *feed) {
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

static inline enum status told_run(void *instance, struct feed *feed, struct error *failure) {
    (void)instance;
    struct source *source = told_source(feed);
    feed_source_format(source, &seconds, &(struct decoder_input){.path = {0}});
    uint64_t done = feed_source_restored(source).number;
    told_place = told_keeps_place ? feed_place(feed, SLICE("\x1ftold")) : NULL;
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
        feed_steps(feed, true);
        feed_caught_up(feed);
        if (atomic_load(&told_failure))
            return error_set(failure, STATUS_IO, "the line is dead");
        poll(&stop, 1, 2);
    } while (!feed_stopping(feed) || atomic_load(&told_deaf));
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
static atomic_uint_fast64_t total_seconds, row_count;
static char total_name[32];

static inline enum status sum_start(void *instance, const void *config,
                                    const struct component_context *context,
                                    struct error *failure) {
    struct sum *self = instance;
    (void)context;
    (void)failure;
    self->weight = ((const struct sum_config *)config)->weight;
    table_init(&self->rows, "rows", 16, 64);
    return STATUS_OK;
}

static inline void sum_stop(void *instance) {
    table_release(&((struct sum *)instance)->rows);
}

static inline void sum_state(void *instance, struct state_list *list) {
    struct sum *self = instance;
    state_list_table(list, &self->rows);
    state_entry_string(state_list_struct(list, "total", &self->total, sizeof self->total),
                       sizeof(uint64_t));
}

static inline void sum_consume(void *instance, struct batch *batch) {
    struct sum *self = instance;
    for (uint32_t i = 0; i < batch->event_count; i++) {
        self->total.seconds += batch->events[i].time_ns / SECOND * (uint64_t)self->weight;
        (void)table_add(&self->rows);
    }
    if (self->total.name == STRING_NONE)
        self->total.name = intern(SLICE("the first"));
    struct slice name = intern_slice(self->total.name);
    snprintf(total_name, sizeof total_name, "%.*s", (int)name.size, name.data);
    atomic_store(&row_count, self->rows.used);
    atomic_store(&total_seconds, self->total.seconds);
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

static inline const struct sending_config *small_sending(const void *config) {
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
    long waits; // how often its thread gave up the processor by itself
};

static struct running running;

static inline void *run_service(void *argument) {
    (void)argument;
    running.status = service_run(service, &running.reload, &running.error);
    struct rusage usage;
    ck_assert_int_eq(getrusage(RUSAGE_THREAD, &usage), 0);
    running.waits = usage.ru_nvcsw;
    return NULL;
}

static inline void begin_from(struct snapshot *snapshot) {
    enum status status = service_start(&service, &f.plan, false, snapshot, &error);
    ck_assert_msg(status == STATUS_OK, "%s", error.message);
    running = (struct running){.reload = false};
    ck_assert_int_eq(pthread_create(&running.thread, NULL, run_service, NULL), 0);
}

static inline void end(void) {
    service_ask_stop(service);
    pthread_join(running.thread, NULL);
}

static inline void begin_live(void) {
    begin_from(NULL);
}

static inline void end_with(enum status status) {
    end();
    ck_assert_msg(running.status == status, "%d: %s", running.status, running.error.message);
    service_free(service);
}

static inline void end_live(void) {
    end_with(STATUS_OK);
}

static inline struct service_health health(void) {
    struct service_health answer;
    watched->health(watched->context, &answer);
    return answer;
}

static inline struct component_status status_of(const char *id) {
    struct component_status statuses[16];
    uint32_t count = watched->components(watched->context, statuses, 16);
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(statuses[i].id, id) == 0)
            return statuses[i];
    ck_abort_msg("no component %s", id);
}

static inline bool is_in(const char *id, enum component_state state) {
    return status_of(id).state == state;
}

static inline void live_setup(void) {
    setup();
    temporary_path(folder, sizeof folder, "test");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    fixture_init(&f, 1);
    f.components[0].type = &told_type;
    f.components[0].id = "told";
    f.components[2].type = &sum_type;
    f.components[2].id = "sum";
    f.components[2].config = &sum_defaults;
    f.components[4] = (struct plan_component){.type = &watch_type, .id = "watch", .used = true};
    f.plan.component_count = 5;
    f.plan.settings.checkpoint_interval.ns = 20000000;
    with_store = false;
    told_count = 0;
    told_keeps_place = false;
    safe_so_far = 0;
    atomic_store(&total_seconds, 0);
    told_trouble = NULL;
    atomic_store(&told_failure, false);
    atomic_store(&was_blocked, 0);
    log_configure((enum log_level)(LOG_ERROR + 1), LOG_CONSOLE);
}

static inline void live_teardown(void) {
    char command[100];
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    ck_assert_int_eq(system(command), 0);
    metrics_release();
    teardown();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

// -- its metrics ----------------------------------------------------------------------------------

static char socket_path[100], endpoint[120];

static inline void metrics_at(void) {
    snprintf(socket_path, sizeof socket_path, "%s/socket", folder);
    snprintf(endpoint, sizeof endpoint, "unix:%s", socket_path);
    f.plan.settings.telemetry.metrics.endpoint = endpoint;
}

static inline void must_count(const struct answer *answer, const char *line) {
    char whole[256];
    snprintf(whole, sizeof whole, "\n%s\n", line);
    ck_assert_msg(strstr(answer->body, whole) != NULL, "no %s in\n%s", line, answer->body);
}

static inline struct answer ask_metrics(void) {
    int descriptor = client_connect_unix(socket_path);
    client_request(descriptor, "GET", "/metrics", "", NULL, 0);
    struct answer answer = client_answer(descriptor, false);
    close(descriptor);
    ck_assert_int_eq(answer.status, 200);
    return answer;
}
