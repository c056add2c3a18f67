// SPDX-License-Identifier: Apache-2.0
// What does an exporter for people cost an evaluation, which holds its pipeline's lock?
//
//   bench_pages [RANKS [SECONDS [EVERY]]]      default: 1000 120 2
//
// Two pipelines of `preset: all` in one process take the same records in turn: one has the json
// exporter alone, the other html beside it. Ten samples a rank come between two evaluations, a
// second of event time apart; in each EVERY-th second a GPU falls off its bus, so that a verdict
// is new and a page is due, and the page before has left. What is measured is a call that evaluates
// one moment under the lock: CPU time of its thread, and wall time. One JSON object: p50 and p99 in
// microseconds of all evaluations behind the first ten, of those alone that a page follows, and
// what html adds as a ratio.
#include "base/clock.h"
#include "base/intern.h"
#include "base/log.h"
#include "base/memory.h"
#include "bench/made_lines.h"
#include "cli/component_list.h"
#include "pipeline/plan/plan.h"
#include "pipeline/runtime/service.h"
#include "pipeline/runtime/service_state.h"
#include "receivers/decode/formats.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { SIDES = 2, STEPS = 10, WARM = 10, SECONDS_MAX = 100000, BLOCK = 1024, LINE_BYTES = 256 };

static const uint64_t SECOND_NS = 1000000000;
static const uint64_t START_NS = UINT64_C(1760000000000000000); // of made_lines

_Noreturn static void give_up(const char *what) {
    fprintf(stderr, "bench_pages: %s\n", what);
    exit(EXIT_FAILURE);
}

// -- two pipelines --------------------------------------------------------------------------------

static enum status given_start(void *instance, const void *config,
                               const struct component_context *context, struct error *error) {
    (void)instance, (void)config, (void)context, (void)error;
    return STATUS_OK;
}

static enum status given_run(void *instance, struct feed *feed, struct error *error) {
    (void)instance, (void)feed, (void)error;
    return STATUS_OK;
}

static const struct component_type given_type = {
    .name = "given",
    .summary = "is handed records by the bench",
    .kind = COMPONENT_RECEIVER,
    .instance_size = 1,
    .start = given_start,
    .receiver = {.run = given_run},
};

struct side {
    struct arena arena;
    struct plan plan;
    struct service *service;
    struct runner *runner;
    struct feed *feed;
    struct source *ranks, *kernel;
    uint64_t records;
    double *cpu_us, *wall_us; // [seconds]
};

static char page_path[64];

static void plan_make(struct side *side, bool html) {
    static const struct component_type *types[128];
    struct component_set all = component_list();
    assert(all.count < 127);
    types[0] = &given_type;
    for (uint32_t i = 0; i < all.count; i++)
        types[i + 1] = all.types[i];
    char *text = arena_format(&side->arena,
                              "receivers: {given: {}}\n"
                              "processors: {rank_group: {retention: 10m}}\n"
                              "exporters:\n  json: {path: /dev/null, fsync: false}\n%s%s%s"
                              "service:\n  pipelines:\n    p: {receivers: [given], preset: all, "
                              "exporters: [json%s]}\n",
                              html ? "  html: {path: " : "", html ? page_path : "",
                              html ? "}\n" : "", html ? ", html" : "");
    struct problem_list problems, warnings;
    problem_list_init(&problems, &side->arena);
    problem_list_init(&warnings, &side->arena);
    struct plan_input input = {.components = {types, all.count + 1}, .text = text};
    struct error error = {0};
    if (plan_build(&side->plan, &input, &problems, &warnings, &error) != STATUS_OK)
        give_up(problems.count > 0 ? problems.items[0].text : error.message);
}

static struct source *source_make(struct side *side, struct slice path) {
    struct source *source = feed_source(side->feed, path);
    feed_source_format(source, format_stream_decoder(0),
                       &(struct decoder_input){.path = path, .observed_ns = START_NS});
    return source;
}

static void side_start(struct side *side, bool html, uint32_t seconds) {
    arena_init(&side->arena, 4096);
    plan_make(side, html);
    struct error error = {0};
    if (service_start(&side->service, &side->plan, false, NULL, &error) != STATUS_OK)
        give_up(error.message);
    struct service *service = side->service;
    struct run_receiver *receiver = &service->receivers[0];
    side->runner = &service->pipelines[0].runner;
    side->feed = feed_create(&(struct feed_settings){
        .site = receiver->instance.site,
        .batch_size = (uint32_t)service->plan->settings.batch_size,
        .runner_count = 1,
        .max_jump_ns = runner_max_jump(side->runner),
        .stop_descriptor = service->stop_descriptor,
        .stopping = &service->stopping,
        .pausing = &service->pausing,
        .taken = receiver->taken,
        .intake = &service->intake,
        .outlet = receiver_outlet(receiver),
    });
    side->ranks = source_make(side, SLICE("ranks.jsonl"));
    side->kernel = source_make(side, SLICE("kern.log"));
    side->cpu_us = memory_zero(seconds, sizeof *side->cpu_us);
    side->wall_us = memory_zero(seconds, sizeof *side->wall_us);
    for (uint32_t i = 0; i < service->exporter_count; i++)
        if (sender_start(&service->exporters[i].sender, &error) != STATUS_OK)
            give_up(error.message);
}

static void side_stop(struct side *side) {
    memory_give(side->cpu_us);
    memory_give(side->wall_us);
    feed_free(side->feed);
    service_free(side->service);
    plan_release(&side->plan);
    arena_release(&side->arena);
}

// -- input ----------------------------------------------------------------------------------------

static void offer(struct side *side, struct source *source, struct slice record) {
    struct decode_fault fault;
    struct source_position position = {.number = ++side->records};
    feed_source_reached(source, &position);
    if (feed_offer(side->feed, source, record, side->records, &fault) != DECODE_OK)
        give_up("a record was refused");
}

// The lines [from, to) of one job, which stand until they are flushed.
static void lines_offer(struct side sides[SIDES], uint32_t ranks, uint64_t from, uint64_t to) {
    static char lines[BLOCK][MADE_LINE_MAX];
    assert(to - from <= BLOCK);
    struct made_job job = {ranks, 3};
    for (uint64_t i = from; i < to; i++) {
        char *line = lines[i - from];
        size_t size = made_line(&job, i, line) - 1;
        char *name = strstr(line, "\"job-2\"");
        if (name != NULL)
            name[5] = '1';
        for (int side = 0; side < SIDES; side++)
            offer(&sides[side], sides[side].ranks, (struct slice){line, size});
    }
    for (int side = 0; side < SIDES; side++)
        feed_flush(sides[side].feed);
}

static void second_offer(struct side sides[SIDES], uint32_t ranks, uint32_t second, bool falls) {
    uint64_t count = (uint64_t)ranks * STEPS, end = (second + 1) * count;
    for (uint64_t at = second * count, next; at < end; at = next) {
        next = end - at < BLOCK ? end : at + BLOCK;
        lines_offer(sides, ranks, at, next);
    }
    if (!falls)
        return;
    static char line[LINE_BYTES];
    int size = snprintf(line, sizeof line,
                        "{\"source\": \"kmsg\", \"timestamp_ns\": %" PRIu64
                        ", \"host.name\": \"node-%04u\", \"message\": \"NVRM: Xid "
                        "(PCI:0000:3b:00): 79, pid=501, GPU has fallen off the bus.\"}",
                        START_NS + second * SECOND_NS + SECOND_NS / 2, second);
    for (int side = 0; side < SIDES; side++) {
        offer(&sides[side], sides[side].kernel, (struct slice){line, (size_t)size});
        feed_flush(sides[side].feed);
    }
}

// -- evaluations ----------------------------------------------------------------------------------

static double thread_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

// Nothing is evaluated before the bench asks for it: a receiver that has not caught up holds it.
static void side_evaluate(struct side *side, uint32_t second) {
    struct runner *runner = side->runner;
    double wall_us = (double)clock_monotonic_ns() / 1e3, cpu_us = thread_us();
    lock_take(&runner->lock);
    runner_judge_rest(runner, RUNNER_QUIET);
    lock_release(&runner->lock);
    side->cpu_us[second] = thread_us() - cpu_us;
    side->wall_us[second] = (double)clock_monotonic_ns() / 1e3 - wall_us;
}

static bool is_idle(struct service *service) {
    bool idle = true;
    for (uint32_t i = 0; i < service->exporter_count; i++) {
        struct sender *sender = &service->exporters[i].sender;
        lock_take(&sender->lock);
        const struct render_calls *render = &sender->calls->render;
        idle = idle && sender->queue.count == 0 && !sender->rendering &&
               (render->due == NULL || render->due(sender->instance) == UINT64_MAX);
        lock_release(&sender->lock);
    }
    return idle;
}

static void wait_idle(struct side sides[SIDES]) {
    for (int side = 0; side < SIDES; side++)
        while (!is_idle(sides[side].service))
            clock_sleep_ns(SECOND_NS / 1000);
}

static uint64_t pages_sent(const struct side *side) {
    const struct service *service = side->service;
    for (uint32_t i = 0; i < service->exporter_count; i++)
        if (strcmp(service->exporters[i].instance.component->type->name, "html") == 0)
            return service->exporters[i].sender.queue.delivered_sequence;
    return 0;
}

// -- figures --------------------------------------------------------------------------------------

static int compare_doubles(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

// Of the evaluations behind the first ones: all, or those with a verdict.
static double percentile(const double *all, uint32_t seconds, uint32_t every, double share) {
    double *chosen = memory_take(seconds * sizeof *chosen);
    uint32_t count = 0;
    for (uint32_t i = WARM; i < seconds; i++)
        if (i % every == 0)
            chosen[count++] = all[i];
    qsort(chosen, count, sizeof *chosen, compare_doubles);
    double value = chosen[(uint32_t)(share * (count - 1) + 0.5)];
    memory_give(chosen);
    return value;
}

static void print_figures(const struct side sides[SIDES], const char *name, size_t offset,
                          uint32_t seconds, uint32_t every) {
    static const struct {
        const char *name;
        double share;
    } shares[] = {{"p50", 0.5}, {"p99", 0.99}};
    printf(",\n \"%s\":{", name);
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        double us[SIDES];
        for (int side = 0; side < SIDES; side++)
            us[side] = percentile(*(double *const *)((const char *)&sides[side] + offset), seconds,
                                  every, shares[i].share);
        printf("%s\"%s_without\":%.1f,\"%s_with\":%.1f,\"%s_ratio\":%.3f", i == 0 ? "" : ",",
               shares[i].name, us[0], shares[i].name, us[1], shares[i].name, us[1] / us[0]);
    }
    printf("}");
}

int main(int argc, char **argv) {
    uint32_t ranks = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1000;
    uint32_t seconds = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 120;
    uint32_t every = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 2;
    if (ranks == 0 || every == 0 || seconds <= WARM + every || seconds > SECONDS_MAX)
        give_up("usage: bench_pages [RANKS [SECONDS [EVERY]]]");
    log_configure(LOG_ERROR, LOG_CONSOLE);
    snprintf(page_path, sizeof page_path, "/dev/shm/bench_pages.%d.html", (int)getpid());
    struct side sides[SIDES] = {0};
    for (int side = 0; side < SIDES; side++) {
        side_start(&sides[side], side == 1, seconds);
        sides[side].runner->holds = 1;
        sides[side].runner->hold_until_ns = UINT64_MAX;
    }
    for (uint32_t second = 0; second < seconds; second++) {
        second_offer(sides, ranks, second, second % every == 0);
        wait_idle(sides);
        for (int i = 0; i < SIDES; i++)
            side_evaluate(&sides[second / every % 2 == 0 ? i : SIDES - 1 - i], second);
    }
    wait_idle(sides);
    printf("{\"ranks\":%" PRIu32 ",\"evaluations\":%" PRIu32 ",\"verdict_every\":%" PRIu32
           ",\"pages\":%" PRIu64,
           ranks, seconds, every, pages_sent(&sides[1]));
    print_figures(sides, "cpu_us_all", offsetof(struct side, cpu_us), seconds, 1);
    print_figures(sides, "cpu_us_page", offsetof(struct side, cpu_us), seconds, every);
    print_figures(sides, "wall_us_all", offsetof(struct side, wall_us), seconds, 1);
    print_figures(sides, "wall_us_page", offsetof(struct side, wall_us), seconds, every);
    printf("}\n");
    for (int side = 0; side < SIDES; side++)
        side_stop(&sides[side]);
    unlink(page_path);
    intern_release();
    return EXIT_SUCCESS;
}
