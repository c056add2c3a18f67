// SPDX-License-Identifier: Apache-2.0
// The same events give the same verdicts, in whatever order they come within the allowed lateness,
// in batches of whatever size, over however many receivers.
//
// The lines of a real recording are handed to one to four receivers, each in an order that moves
// every event by less than allowed_lateness, and run through a live service with the real chain.
#include "base/memory.h"
#include "cli/component_list.h"
#include "pipeline/runtime/service.h"
#include "receivers/decode/telemetry/telemetry.h"
#include "tests/support/temporary.h"

#include <check.h>
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { LINES_MAX = 4096, RECEIVERS_MAX = 4, ORDERS = 100 };

static const uint64_t LATENESS_NS = UINT64_C(2000000000);

struct line {
    struct slice text;
    uint64_t time_ns;
    uint64_t due_ns; // when it comes, in event time
    uint32_t receiver;
};

static struct line lines[LINES_MAX];
static uint32_t line_count;
static struct line *ordered[LINES_MAX];

// -- the recording ------------------------------------------------------------------------------

static char *read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    char *text = calloc(1, 8 << 20);
    ck_assert_uint_lt(fread(text, 1, (8 << 20) - 1, file), 8 << 20);
    fclose(file);
    return text;
}

static void add_lines(const char *path) {
    static char *kept[16];
    static int kept_count;
    char *text = kept[kept_count++] = read_file(path);
    for (char *at = text, *end; (end = strchr(at, '\n')) != NULL; at = end + 1) {
        const char *time = strstr(at, "\"timestamp_ns\":");
        ck_assert(line_count < LINES_MAX && time != NULL && time < end);
        lines[line_count++] = (struct line){.text = {at, (size_t)(end - at)},
                                            .time_ns = strtoull(time + 15, NULL, 10)};
    }
}

static void add_folder(const char *path) {
    char inner[1024];
    DIR *folder = opendir(path);
    ck_assert_ptr_nonnull(folder);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
        if (entry->d_name[0] == '.')
            continue;
        if (entry->d_type == DT_DIR)
            add_folder(inner);
        else if (strncmp(entry->d_name, "segment-", 8) == 0)
            add_lines(inner);
    }
    closedir(folder);
}

// -- receivers that hand over what the test gives them ------------------------------------------

struct given_config {
    int64_t index;
};

static uint32_t receiver_count;
static pthread_barrier_t all_began;
static atomic_uint done;

static const struct option given_options[] = {
    {.name = "index",
     .type = OPTION_INT,
     .offset = offsetof(struct given_config, index),
     .default_value = "0",
     .help = "which lines are its own"},
};

struct given {
    const struct given_config *config;
};

static enum status given_start(void *instance, const void *config,
                               const struct component_context *context, struct error *error) {
    (void)context;
    (void)error;
    ((struct given *)instance)->config = config;
    return STATUS_OK;
}

static enum status given_run(void *instance, struct feed *feed, struct error *error) {
    (void)error;
    const struct given *self = instance;
    char path[16];
    snprintf(path, sizeof path, "given-%lld", (long long)self->config->index);
    struct source *source = feed_source(feed, slice_of(path));
    feed_source_format(source, &decoder_stormlog, &(struct decoder_input){.path = {0}});
    uint64_t offered = 0;
    struct decode_fault fault;
    for (uint32_t i = 0; i < line_count; i++) {
        if (ordered[i]->receiver != (uint32_t)self->config->index)
            continue;
        ck_assert_int_eq(feed_offer(feed, source, ordered[i]->text, ++offered, &fault), DECODE_OK);
        if (offered > 1)
            continue;
        // Nobody goes on before everybody is known, as after a start.
        feed_flush(feed);
        pthread_barrier_wait(&all_began);
        feed_caught_up(feed);
    }
    feed_flush(feed);
    atomic_fetch_add(&done, 1);
    while (!feed_stopping(feed))
        (void)usleep(1000);
    return STATUS_OK;
}

static const struct component_type given_type = {
    .name = "given",
    .summary = "hands over lines",
    .kind = COMPONENT_RECEIVER,
    .options = given_options,
    .option_count = 1,
    .config_size = sizeof(struct given_config),
    .instance_size = sizeof(struct given),
    .start = given_start,
    .receiver = {.run = given_run},
};

// -- one run ------------------------------------------------------------------------------------

static char folder[64];

static void make_plan(struct plan *plan, int batch_size) {
    static const struct component_type *types[64];
    struct component_set all = component_list();
    types[0] = &given_type;
    memcpy(types + 1, all.types, all.count * sizeof *types);
    struct buffer text;
    buffer_init(&text, 65536);
    buffer_append_text(&text, "receivers: {");
    for (uint32_t i = 0; i < receiver_count; i++)
        buffer_append_format(&text, "given/%u: {index: %u}, ", i, i);
    buffer_append_format(&text,
                         "}\nexporters: {json: {path: %s/out}}\nservice:\n  batch_size: %d\n",
                         folder, batch_size);
    buffer_append_text(&text, "  pipelines: {p: {receivers: [");
    for (uint32_t i = 0; i < receiver_count; i++)
        buffer_append_format(&text, "given/%u, ", i);
    buffer_append_text(
        &text,
        "], preset: memory, exporters: [json], evaluate_every: 500ms, "
        "allowed_lateness: 2s, settle: 500ms, idle_timeout: 1h, caught_up_timeout: 1h}}\n");
    buffer_append_char(&text, '\0');
    struct arena arena;
    arena_init(&arena, 4096);
    struct problem_list problems, warnings;
    problem_list_init(&problems, &arena);
    problem_list_init(&warnings, &arena);
    struct plan_input input = {.components = {types, all.count + 1}, .text = text.data};
    struct error error = {0};
    enum status status = plan_build(plan, &input, &problems, &warnings, &error);
    ck_assert_msg(status == STATUS_OK, "%s: %s", error.message,
                  problems.count > 0 ? problems.items[0].text : "");
    arena_release(&arena);
    buffer_release(&text);
}

static void *stop_when_done(void *service) {
    while (atomic_load(&done) < receiver_count)
        (void)usleep(1000);
    service_ask_stop(service);
    return NULL;
}

static char *run_once_through(int batch_size) {
    char path[80];
    snprintf(path, sizeof path, "%s/out", folder);
    (void)unlink(path);
    struct plan plan;
    make_plan(&plan, batch_size);
    pthread_barrier_init(&all_began, NULL, receiver_count);
    atomic_store(&done, 0);
    struct service *service;
    struct error error = {0};
    ck_assert_int_eq(service_start(&service, &plan, false, NULL, &error), STATUS_OK);
    pthread_t stopper;
    ck_assert_int_eq(pthread_create(&stopper, NULL, stop_when_done, service), 0);
    bool reload;
    ck_assert_int_eq(service_run(service, &reload, &error), STATUS_OK);
    pthread_join(stopper, NULL);
    service_free(service);
    plan_release(&plan);
    pthread_barrier_destroy(&all_began);
    return read_file(path);
}

static int by_due(const void *left, const void *right) {
    const struct line *a = *(struct line *const *)left;
    const struct line *b = *(struct line *const *)right;
    return (a->due_ns > b->due_ns) - (a->due_ns < b->due_ns);
}

// Each line comes up to `spread` later than it should; the first of every receiver first.
static void shuffle(unsigned *seed, uint64_t spread) {
    for (uint32_t i = 0; i < line_count; i++) {
        struct line *line = ordered[i] = &lines[i];
        line->receiver = (uint32_t)rand_r(seed) % receiver_count;
        uint64_t late = spread == 0 ? 0 : (uint64_t)rand_r(seed) * 997 % spread;
        line->due_ns = line->time_ns + late;
    }
    qsort(ordered, line_count, sizeof ordered[0], by_due);
    for (uint32_t i = 0; i < receiver_count; i++)
        ordered[i]->receiver = i; // so that each has one
}

static char *expected;

static void setup(void) {
    log_configure(LOG_ERROR, LOG_CONSOLE);
    temporary_path(folder, sizeof folder, "order");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    line_count = 0;
    for (int rank = 0; rank < 4; rank++) {
        char path[512];
        snprintf(path, sizeof path, "%s/golden/real/leak-rank2/rank%d", TESTS_DIR, rank);
        add_folder(path);
    }
    ck_assert_uint_gt(line_count, 500);
    unsigned seed = 1;
    receiver_count = 1;
    shuffle(&seed, 0);
    expected = run_once_through(1024);
    ck_assert_ptr_nonnull(strstr(expected, "\"leak\""));
}

START_TEST(test_orders_batches_and_receivers_change_nothing) {
    unsigned seed = 1000 + (unsigned)_i;
    receiver_count = 1 + (uint32_t)rand_r(&seed) % RECEIVERS_MAX;
    static const int sizes[] = {1, 2, 7, 64, 1000, 10000};
    shuffle(&seed, LATENESS_NS - 1);
    char *got = run_once_through(sizes[(unsigned)rand_r(&seed) % 6]);
    ck_assert_str_eq(got, expected);
    free(got);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("order");
    TCase *tests = tcase_create("order");
    tcase_add_unchecked_fixture(tests, setup, NULL);
    tcase_add_loop_test(tests, test_orders_batches_and_receivers_change_nothing, 0, ORDERS);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
