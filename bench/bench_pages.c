// SPDX-License-Identifier: Apache-2.0
// What does an exporter for people cost an evaluation, which holds its pipeline's lock?
//
//   bench_pages [RANKS [SECONDS [EVERY [EXPORTER]]]]      default: 1000 120 2 html
//
// Two pipelines of `preset: all` in one process take the same records in turn: one has the json
// exporter alone, the other EXPORTER beside it: html, wandb (mode: offline), or summary (json with
// content: summary). Ten samples a rank come between two evaluations, a second of event time apart;
// in each EVERY-th second a GPU falls off its bus, so that a verdict is new and a page is due, and
// what was said before has left. What is measured is a call that evaluates one moment under the
// lock: CPU time of its thread, wall time, and page faults that need no disk. One JSON object:
// mean, p50 and p99 of all evaluations behind the first ten, of those with a new verdict and of the
// rest, in microseconds, and what the exporter adds as a ratio.
#include "base/clock.h"
#include "base/intern.h"
#include "base/log.h"
#include "base/memory.h"
#include "bench/given.h"
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
#include <sys/resource.h>
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

struct side {
    struct arena arena;
    struct plan plan;
    struct service *service;
    struct runner *runner;
    struct feed *feed;
    struct source *ranks, *kernel;
    uint64_t records;
    double *cpu_us, *wall_us, *faults; // [seconds]
};

// What is measured, by its name on the command line.
struct tried {
    const char *name, *type;
    const char *options; // path of a new directory for %s
};

static const struct tried TRIED[] = {
    {"html", "html", "path: %s/page.html"},
    {"wandb", "wandb", "mode: offline, entity: bench, directory: %s/wandb"},
    {"summary", "json", "content: summary, path: %s/summary.json"},
};

static const struct tried *tried;
static char directory[] = "/dev/shm/bench_pages.XXXXXX";

static void plan_make(struct side *side, bool with) {
    static const struct component_type *types[128];
    struct component_set all = component_list();
    assert(all.count < 127);
    types[0] = &given_type;
    for (uint32_t i = 0; i < all.count; i++)
        types[i + 1] = all.types[i];
    const char *options = arena_format(&side->arena, tried->options, directory);
    const char *declared =
        with ? arena_format(&side->arena, "  %s/tried: {%s}\n", tried->type, options) : "";
    char *text =
        arena_format(&side->arena,
                     "receivers: {given: {}}\n"
                     "processors: {rank_group: {retention: 10m}}\n"
                     "exporters:\n  json: {path: /dev/null, fsync: false}\n%s"
                     "service:\n  pipelines:\n    p: {receivers: [given], preset: all, "
                     "exporters: [json%s%s%s]}\n",
                     declared, with ? ", " : "", with ? tried->type : "", with ? "/tried" : "");
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

static void side_start(struct side *side, bool with, uint32_t seconds) {
    arena_init(&side->arena, 4096);
    plan_make(side, with);
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
    side->faults = memory_zero(seconds, sizeof *side->faults);
    for (uint32_t i = 0; i < service->exporter_count; i++)
        if (sender_start(&service->exporters[i].sender, &error) != STATUS_OK)
            give_up(error.message);
}

static void side_stop(struct side *side) {
    memory_give(side->cpu_us);
    memory_give(side->wall_us);
    memory_give(side->faults);
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
    struct made_job job = {.ranks = ranks, .schema_version = 3};
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

static double thread_faults(void) {
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return (double)usage.ru_minflt;
}

// Nothing is evaluated before the bench asks for it: a receiver that has not caught up holds it.
static void side_evaluate(struct side *side, uint32_t second) {
    struct runner *runner = side->runner;
    double faults = thread_faults();
    double wall_us = (double)clock_monotonic_ns() / 1e3, cpu_us = thread_us();
    lock_take(&runner->lock);
    runner_judge_rest(runner, RUNNER_QUIET);
    lock_release(&runner->lock);
    side->cpu_us[second] = thread_us() - cpu_us;
    side->wall_us[second] = (double)clock_monotonic_ns() / 1e3 - wall_us;
    side->faults[second] = thread_faults() - faults;
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

static uint64_t blocks_sent(const struct side *side) {
    const struct service *service = side->service;
    for (uint32_t i = 0; i < service->exporter_count; i++)
        if (strchr(service->exporters[i].instance.component->id, '/') != NULL)
            return service->exporters[i].sender.queue.delivered_sequence;
    return 0;
}

// -- figures --------------------------------------------------------------------------------------

static int compare_doubles(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

enum group { GROUP_ALL, GROUP_VERDICT, GROUP_REST, GROUP_COUNT };

static const char *const GROUPS[GROUP_COUNT] = {"all", "verdict", "rest"};

// Of the evaluations of a group behind the first ones, ascending.
static double *chosen_of(const double *all, uint32_t seconds, uint32_t every, enum group group,
                         uint32_t *count) {
    double *chosen = memory_take(seconds * sizeof *chosen);
    *count = 0;
    for (uint32_t i = WARM; i < seconds; i++)
        if (group == GROUP_ALL || (i % every == 0) == (group == GROUP_VERDICT))
            chosen[(*count)++] = all[i];
    if (*count > 0)
        qsort(chosen, *count, sizeof *chosen, compare_doubles);
    return chosen;
}

enum { FIGURE_MEAN, FIGURE_P50, FIGURE_P99, FIGURE_COUNT };

static void figures_of(const double *all, uint32_t seconds, uint32_t every, enum group group,
                       double figures[FIGURE_COUNT]) {
    uint32_t count;
    double *chosen = chosen_of(all, seconds, every, group, &count), sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += chosen[i];
    figures[FIGURE_MEAN] = count == 0 ? 0 : sum / count;
    figures[FIGURE_P50] = count == 0 ? 0 : chosen[(uint32_t)(0.5 * (count - 1) + 0.5)];
    figures[FIGURE_P99] = count == 0 ? 0 : chosen[(uint32_t)(0.99 * (count - 1) + 0.5)];
    memory_give(chosen);
}

static void figures_print(const struct side sides[SIDES], const char *name, size_t offset,
                          uint32_t seconds, uint32_t every) {
    static const char *const names[FIGURE_COUNT] = {"mean", "p50", "p99"};
    for (enum group group = 0; group < GROUP_COUNT; group++) {
        double figures[SIDES][FIGURE_COUNT];
        for (int side = 0; side < SIDES; side++)
            figures_of(*(double *const *)((const char *)&sides[side] + offset), seconds, every,
                       group, figures[side]);
        printf(",\n \"%s_%s\":{", name, GROUPS[group]);
        for (int i = 0; i < FIGURE_COUNT; i++) {
            double without = figures[0][i], with = figures[1][i];
            printf("%s\"%s_without\":%.1f,\"%s_with\":%.1f", i == 0 ? "" : ",", names[i], without,
                   names[i], with);
            if (without > 0)
                printf(",\"%s_ratio\":%.3f", names[i], with / without);
        }
        printf("}");
    }
}

static void directory_remove(void) {
    char command[sizeof directory + 16];
    snprintf(command, sizeof command, "rm -rf %s", directory);
    if (system(command) != 0) // NOLINT(cert-env33-c): the name is our own
        fprintf(stderr, "bench_pages: %s is left\n", directory);
}

int main(int argc, char **argv) {
    uint32_t ranks = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1000;
    uint32_t seconds = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 120;
    uint32_t every = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 2;
    const char *name = argc > 4 ? argv[4] : TRIED[0].name;
    for (size_t i = 0; i < sizeof TRIED / sizeof TRIED[0]; i++)
        if (strcmp(TRIED[i].name, name) == 0)
            tried = &TRIED[i];
    if (ranks == 0 || every == 0 || seconds <= WARM + every || seconds > SECONDS_MAX ||
        tried == NULL)
        give_up("usage: bench_pages [RANKS [SECONDS [EVERY [html|wandb|summary]]]]");
    log_configure(LOG_ERROR, LOG_CONSOLE);
    if (mkdtemp(directory) == NULL)
        give_up("no directory can be made in /dev/shm");
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
    printf("{\"exporter\":\"%s\",\"ranks\":%" PRIu32 ",\"evaluations\":%" PRIu32
           ",\"verdict_every\":%" PRIu32 ",\"blocks\":%" PRIu64,
           tried->name, ranks, seconds, every, blocks_sent(&sides[1]));
    figures_print(sides, "cpu_us", offsetof(struct side, cpu_us), seconds, every);
    figures_print(sides, "wall_us", offsetof(struct side, wall_us), seconds, every);
    figures_print(sides, "page_faults", offsetof(struct side, faults), seconds, every);
    printf("}\n");
    for (int side = 0; side < SIDES; side++)
        side_stop(&sides[side]);
    directory_remove();
    intern_release();
    return EXIT_SUCCESS;
}
