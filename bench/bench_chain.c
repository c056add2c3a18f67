// SPDX-License-Identifier: Apache-2.0
#include "bench/bench_chain.h"

#include "base/intern.h"
#include "base/memory.h"
#include "base/workers.h"
#include "cli/component_list.h"
#include "pipeline/model/node_event.h"
#include "receivers/decode/formats.h"
#include "receivers/decode/spans/spans.h"
#include "receivers/decode/telemetry/telemetry.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

enum {
    EVENT_ARENA_BLOCK = 1 << 20,
    BATCH_ARENA_BLOCK = 1 << 18,
    CONFIG_MAX = 1024,
    ROWS_MAX = 4 * BENCH_BATCH, // lines, and events, of one block
    PROVIDED_BYTES = 256 << 20,
    PAGE_BYTES = 4096,
};

static const struct {
    const struct decoder_type *decoder;
    size_t line_max;
} kinds[] = {
    [BENCH_MEMORY] = {&decoder_stormlog, MADE_LINE_MAX},
    [BENCH_SPANS] = {&decoder_spans, MADE_SPAN_LINE_MAX},
    [BENCH_SLOW] = {&decoder_stormlog, MADE_PHASE_LINE_MAX},
    [BENCH_KINDS] = {&decoder_any, MADE_KIND_MAX},
    [BENCH_JOBS] = {&decoder_stormlog, MADE_LINE_MAX},
};

uint32_t bench_threads = 1;

static double cpu_s(void) {
    struct timespec now;
    clock_gettime(bench_threads > 1 ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

_Noreturn static void give_up(const char *what) {
    fprintf(stderr, "bench: %s\n", what);
    exit(EXIT_FAILURE);
}

static void write_config(enum bench_kind kind, const char *setting, char text[CONFIG_MAX]) {
    if (kind == BENCH_SPANS)
        snprintf(text, CONFIG_MAX,
                 "receivers: {file: {include: [unused]}}\n"
                 "processors: {spans: {%s}}\n"
                 "exporters: {json: {content: spans}}\n"
                 "service: {pipelines: {measured: "
                 "{receivers: [file], processors: [spans], exporters: [json]}}}\n",
                 setting);
    else if (kind == BENCH_SLOW)
        snprintf(text, CONFIG_MAX,
                 "receivers: {file: {include: [unused]}}\n"
                 "processors: {slow_rank: {%s}}\n"
                 "exporters: {json: {}}\n"
                 "service: {pipelines: {measured: "
                 "{receivers: [file], processors: [slow_rank], exporters: [json]}}}\n",
                 setting);
    else if (kind == BENCH_KINDS)
        snprintf(text, CONFIG_MAX,
                 "receivers: {file: {include: [unused]}}\n"
                 "exporters: {json: {}}\n"
                 "service: {pipelines: {measured: "
                 "{receivers: [file], preset: all, exporters: [json]}}}\n");
    else
        snprintf(text, CONFIG_MAX,
                 "receivers: {file: {include: [unused]}}\n"
                 "processors:\n"
                 "%s"
                 "  rank_group: {retention: %s}\n"
                 "  phase_attribution: {retention: %s}\n"
                 "exporters: {json: {}}\n"
                 "service: {pipelines: {measured: "
                 "{receivers: [file], preset: memory, exporters: [json]}}}\n",
                 kind == BENCH_JOBS ? "  job_filter: {job_id: each, max_jobs: 100000}\n" : "",
                 setting, setting);
}

static void build_plan(struct bench_chain *chain, const char *setting) {
    char text[CONFIG_MAX];
    write_config(chain->kind, setting, text);
    struct arena arena;
    arena_init(&arena, 4096);
    struct problem_list problems, warnings;
    problem_list_init(&problems, &arena);
    problem_list_init(&warnings, &arena);
    struct plan_input input = {.components = component_list(), .text = text, .text_name = "bench"};
    struct error error = {0};
    if (plan_build(&chain->plan, &input, &problems, &warnings, &error) != STATUS_OK)
        give_up(problems.count > 0 ? problems.items[0].text : error.message);
    arena_release(&arena);
}

static void start_stages(struct bench_chain *chain) {
    const struct plan_pipeline *pipeline = &chain->plan.pipelines[0];
    if (pipeline->processor_count > BENCH_STAGES_MAX)
        give_up("the preset has more stages than there is room for");
    for (uint32_t i = 0; i < pipeline->processor_count; i++) {
        const struct plan_component *component = &chain->plan.components[pipeline->processors[i]];
        struct component_context context = {.id = component->id,
                                            .site = component->id,
                                            .pipeline = pipeline->name,
                                            .timing = &pipeline->timing,
                                            .workers = chain->workers,
                                            .once = chain->once};
        struct error error = {0};
        chain->types[i] = component->type;
        chain->instances[i] = memory_zero(1, component->type->instance_size);
        if (component_start(component->type, chain->instances[i], component->config, &context,
                            &error) != STATUS_OK)
            give_up(error.message);
        chain->stage_count++;
    }
}

void bench_provide_memory(void) {
    char *memory =
        mmap(NULL, PROVIDED_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        give_up("out of memory");
    madvise(memory, PROVIDED_BYTES, MADV_HUGEPAGE);
    for (size_t at = 0; at < PROVIDED_BYTES; at += PAGE_BYTES)
        memory[at] = 1;
    munmap(memory, PROVIDED_BYTES);
}

void bench_chain_start(struct bench_chain *chain, enum bench_kind kind, bool once,
                       const char *setting) {
    *chain = (struct bench_chain){.kind = kind, .once = once};
    // Not counted as culprit's: they stand for the file that would be read.
    chain->text = malloc((size_t)BENCH_BATCH * kinds[kind].line_max);
    chain->lines = malloc(ROWS_MAX * sizeof *chain->lines);
    if (chain->text == NULL || chain->lines == NULL)
        give_up("out of memory");
    build_plan(chain, setting);
    chain->workers = workers_new(bench_threads);
    start_stages(chain);
    chain->decoder_state = memory_zero(1, kinds[kind].decoder->state_size);
    chain->events = memory_zero(ROWS_MAX, sizeof *chain->events);
    if (kinds[kind].decoder->begin != NULL)
        kinds[kind].decoder->begin(chain->decoder_state,
                                   &(struct decoder_input){.path = SLICE("bench"),
                                                           .observed_ns = made_kind_time_ns(0, 0)});
    arena_init(&chain->event_arena, EVENT_ARENA_BLOCK);
    arena_init(&chain->batch_arena, BATCH_ARENA_BLOCK);
}

void bench_chain_stop(struct bench_chain *chain) {
    for (uint32_t i = 0; i < chain->stage_count; i++) {
        component_stop(chain->types[i], chain->instances[i]);
        memory_give(chain->instances[i]);
    }
    if (kinds[chain->kind].decoder->release != NULL)
        kinds[chain->kind].decoder->release(chain->decoder_state);
    memory_give(chain->decoder_state);
    memory_give(chain->events);
    workers_free(chain->workers);
    arena_release(&chain->event_arena);
    arena_release(&chain->batch_arena);
    plan_release(&chain->plan);
    free(chain->text);
    free(chain->lines);
}

// A document is one line, as a body is one record.
static void make_kinds(struct bench_chain *chain, const struct bench_job *job, uint64_t first,
                       uint32_t count) {
    assert(count <= BENCH_KIND_BATCH);
    char *at = chain->text;
    chain->line_count = 0;
    for (uint32_t i = 0; i < count; i++)
        for (char *end = at + made_kind_write(job->made, first + i, job->step_ns, at); at < end;) {
            char *stop = job->made->is_document ? end - 1 : memchr(at, '\n', (size_t)(end - at));
            assert(chain->line_count < ROWS_MAX);
            chain->lines[chain->line_count++] = (struct slice){at, (size_t)(stop - at)};
            at = stop + 1;
        }
    chain->byte_total += (uint64_t)(at - chain->text);
}

void bench_chain_make(struct bench_chain *chain, const struct bench_job *job, uint64_t first,
                      uint32_t count) {
    assert(count <= BENCH_BATCH);
    if (job->kind == BENCH_KINDS) {
        make_kinds(chain, job, first, count);
        return;
    }
    char *at = chain->text;
    for (uint32_t i = 0; i < count; i++) {
        size_t size = job->kind == BENCH_SPANS  ? made_span_line(&job->spans, first + i, at)
                      : job->kind == BENCH_SLOW ? made_phase_line(&job->phases, first + i, at)
                                                : made_line(&job->memory, first + i, at);
        chain->lines[i] = (struct slice){at, size - 1};
        at += size;
    }
    chain->line_count = count;
}

static void part(const struct bench_chain *chain, enum bench_part which, bool begins) {
    if (chain->part != NULL)
        chain->part(which, begins);
}

static int64_t held_bytes(const struct bench_chain *chain) {
    return chain->counts_bytes ? (int64_t)memory_figures().live_bytes : 0;
}

static void pass_stages(struct bench_chain *chain, struct batch *batch, double *seconds) {
    arena_reset(&chain->batch_arena);
    batch->arena = &chain->batch_arena;
    batch->ordered = chain->once;
    batch->newest_ns = chain->newest_ns;
    part(chain, BENCH_STAGES_PART, true);
    double before = cpu_s();
    for (uint32_t i = 0; i < chain->stage_count; i++) {
        uint32_t takes = chain->types[i]->takes;
        chain->stage_bytes[i] -= held_bytes(chain);
        if (takes == 0 || batch->evaluate || (takes & batch->kinds) != 0)
            chain->types[i]->processor.consume(chain->instances[i], batch);
        double after = cpu_s();
        seconds[i] += after - before;
        before = after;
        chain->stage_bytes[i] += held_bytes(chain);
    }
    part(chain, BENCH_STAGES_PART, false);
}

// Counts it when it is one.
static void take_event(struct bench_chain *chain, enum decode_category category) {
    chain->event_count += category == DECODE_OK;
    chain->refused += decode_refused(category);
    assert(chain->event_count < ROWS_MAX);
}

// Records of which each may be several events or a part of one.
static void decode_any(struct bench_chain *chain, struct slice record) {
    struct decode_fault fault;
    struct event *event = &chain->events[chain->event_count];
    *event = (struct event){.position = 1, .lines = 1, .raw = record};
    take_event(chain, decoder_any.decode(chain->decoder_state, record, &chain->event_arena, event,
                                         &fault));
    for (;;) {
        event = &chain->events[chain->event_count];
        *event = (struct event){.position = 1, .lines = 1, .raw = record};
        enum decode_category category =
            decoder_any.next(chain->decoder_state, &chain->event_arena, event, &fault);
        if (category == DECODE_END)
            return;
        take_event(chain, category);
    }
}

static void decode_lines(struct bench_chain *chain) {
    const struct decoder_type *decoder = kinds[chain->kind].decoder;
    struct decode_fault fault;
    chain->event_count = 0;
    for (uint32_t i = 0; i < chain->line_count; i++) {
        if (chain->kind == BENCH_KINDS)
            decode_any(chain, chain->lines[i]);
        else if (decoder->decode(chain->decoder_state, chain->lines[i], &chain->event_arena,
                                 &chain->events[chain->event_count++], &fault) != DECODE_OK)
            give_up(fault.detail);
    }
}

uint64_t bench_chain_pass(struct bench_chain *chain) {
    chain->decode_bytes -= held_bytes(chain);
    part(chain, BENCH_DECODE_PART, true);
    double before = cpu_s();
    arena_reset(&chain->event_arena);
    decode_lines(chain);
    chain->decode_s += cpu_s() - before;
    part(chain, BENCH_DECODE_PART, false);
    chain->decode_bytes += held_bytes(chain);
    bench_chain_pass_events(chain);
    return chain->event_count == 0 ? 0 : chain->events[chain->event_count - 1].time_ns;
}

void bench_chain_pass_events(struct bench_chain *chain) {
    chain->event_total += chain->event_count;
    struct batch batch = {.events = chain->events, .event_count = chain->event_count};
    for (uint32_t i = 0; i < chain->event_count; i++) {
        batch.kinds |= 1u << chain->events[i].kind;
        chain->record_total +=
            chain->events[i].kind == EVENT_FLIGHT && chain->events[i].flight->whole
                ? chain->events[i].flight->entry_count
                : 1;
        if (chain->events[i].time_ns > chain->newest_ns)
            chain->newest_ns = chain->events[i].time_ns;
    }
    pass_stages(chain, &batch, chain->consume_s);
}

static void ask_spans(struct bench_chain *chain, const struct batch *batch) {
    double before = cpu_s();
    chain->spans = 0;
    for (uint32_t i = 0; i < batch->spans.count; i++) {
        const struct span_report *report = &batch->spans.items[i];
        uint32_t *roots = arena_take(batch->arena, (report->span_count + 1) * sizeof *roots);
        uint32_t count = 0;
        for (uint32_t at = 0; report->ask->next_root(report->tree, &at, &roots[count]);)
            count++;
        struct span_answer answer;
        if (count > 0)
            report->ask->merge(report->tree, roots, count, report->now_s, batch->arena, &answer);
        chain->spans += report->span_count;
    }
    chain->asked_s += cpu_s() - before;
}

void bench_chain_evaluate(struct bench_chain *chain, uint64_t as_of_ns, bool last) {
    struct batch batch = {
        .evaluate = true, .as_of_ns = as_of_ns, .newest_ns = chain->newest_ns, .last = last};
    pass_stages(chain, &batch, chain->evaluate_s);
    chain->evaluations++;
    ask_spans(chain, &batch);
    chain->kept = 0;
    for (uint32_t i = 0; i < batch.evaluation_count; i++)
        for (uint32_t k = 0; k < batch.evaluations[i].rank_count; k++)
            chain->kept += batch.evaluations[i].ranks[k].sample_count;
}
