// SPDX-License-Identifier: Apache-2.0
// A live pipeline on a clock of the input's own: what is said when, without waiting for it.
//
//   live_clock [OPTION=VALUE...] < SCHEDULE        options of a pipeline, else the defaults
//
// A line of the schedule is ARRIVAL_NS, source and record, separated by tabs, in the order of
// arrival; an empty record only lets time pass. Records of one source with one arrival are one
// read, which ends where nothing more is there. The feed, the decoders, the runner and the
// processors of `preset: all` are those of a service; what its main thread does is done here, at
// the moments for which it would wake. Each verdict of the json exporter is printed behind the time
// at which it was given out, a tab, and the time that was evaluated. No clock is read that matters.
#include "base/buffer.h"
#include "base/intern.h"
#include "base/log.h"
#include "base/memory.h"
#include "bench/given.h"
#include "cli/component_list.h"
#include "exporters/json/json.h"
#include "pipeline/plan/plan.h"
#include "pipeline/runtime/service.h"
#include "pipeline/runtime/service_state.h"
#include "receivers/decode/formats.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { CONFIG_MAX = 4096, SOURCES_MAX = 4096 };

static uint64_t now_ns;                                       // the clock
static const uint64_t FINISH_AFTER_NS = UINT64_C(2000000000); // as of receivers/file by default

_Noreturn static void give_up(const char *what) {
    fprintf(stderr, "live_clock: %s\n", what);
    exit(EXIT_FAILURE);
}

// -- components that stand for the outside
// ----------------------------------------------------------

static void print_lines(void *instance, const struct batch *batch, struct buffer *out) {
    (void)out;
    struct buffer lines;
    buffer_init(&lines, 1 << 28);
    exporter_json.exporter.encode(instance, batch, &lines);
    struct slice rest = buffer_slice(&lines);
    for (const char *end; rest.size > 0 && (end = memchr(rest.data, '\n', rest.size)) != NULL;) {
        size_t size = (size_t)(end + 1 - rest.data);
        printf("%" PRIu64 "\t%" PRIu64 "\t%.*s", now_ns, batch->as_of_ns, (int)size, rest.data);
        rest = (struct slice){rest.data + size, rest.size - size};
    }
    buffer_release(&lines);
}

static struct component_type printed_type; // exporter_json, but for where it puts its lines

static void make_plan(struct plan *plan, struct arena *arena, int count, char **settings) {
    static const struct component_type *types[128];
    struct component_set all = component_list();
    assert(all.count < 127);
    types[0] = &given_type;
    for (uint32_t i = 0; i < all.count; i++)
        types[i + 1] = all.types[i] == &exporter_json ? &printed_type : all.types[i];
    printed_type = exporter_json;
    printed_type.exporter.encode = print_lines;
    printed_type.exporter.send = NULL;
    static char text[CONFIG_MAX];
    int used = snprintf(text, sizeof text,
                        "receivers: {given: {}}\nexporters: {json: {path: /dev/null}}\n"
                        "service:\n  pipelines:\n    p:\n      receivers: [given]\n"
                        "      preset: all\n      exporters: [json]\n");
    for (int i = 0; i < count; i++) {
        char *value = strchr(settings[i], '=');
        if (value == NULL)
            give_up("options are NAME=VALUE");
        used += snprintf(text + used, sizeof text - (size_t)used, "      %.*s: %s\n",
                         (int)(value - settings[i]), settings[i], value + 1);
    }
    struct problem_list problems, warnings;
    problem_list_init(&problems, arena);
    problem_list_init(&warnings, arena);
    struct plan_input input = {.components = {types, all.count + 1}, .text = text};
    struct error error = {0};
    if (plan_build(plan, &input, &problems, &warnings, &error) != STATUS_OK)
        give_up(problems.count > 0 ? problems.items[0].text : error.message);
}

// -- the main thread
// --------------------------------------------------------------------------------

static struct runner *runner;

static void look(void) {
    enum runner_rest rest = runner_advance(runner, now_ns);
    runner->state.rest_unix_ns = now_ns;
    runner_judge_rest(runner, rest);
}

// -- the receiver
// -----------------------------------------------------------------------------------

struct stream {
    struct source *source;
    uint64_t finish_ns; // when its held records are finished; 0: it holds none
    uint64_t records;
};

static struct feed_outlet service_outlet;
static struct stream streams[SOURCES_MAX];
static uint32_t stream_count;

static void deliver(void *context, const struct delivery *delivery) {
    struct delivery own = *delivery;
    own.begun_ns = now_ns;
    service_outlet.deliver(context, &own);
}

static struct feed *make_feed(struct service *service) {
    struct run_receiver *receiver = &service->receivers[0];
    service_outlet = receiver_outlet(receiver);
    struct feed_outlet outlet = service_outlet;
    outlet.deliver = deliver;
    return feed_create(&(struct feed_settings){
        .site = receiver->instance.site,
        .batch_size = (uint32_t)service->plan->settings.batch_size,
        .runner_count = 1,
        .max_jump_ns = runner_max_jump(runner),
        .stop_descriptor = service->stop_descriptor,
        .stopping = &service->stopping,
        .pausing = &service->pausing,
        .taken = receiver->taken,
        .intake = &service->intake,
        .outlet = outlet,
    });
}

// As for a file that is found at this arrival: lines without a time have that of what they are in.
static struct stream *find_stream(struct feed *feed, struct slice path, uint64_t arrival_ns) {
    struct source *source = feed_source(feed, path);
    for (uint32_t i = 0; i < stream_count; i++)
        if (streams[i].source == source)
            return &streams[i];
    if (stream_count == SOURCES_MAX)
        give_up("too many sources");
    feed_source_format(source, format_stream_decoder(0),
                       &(struct decoder_input){.path = path, .observed_ns = arrival_ns});
    streams[stream_count] = (struct stream){.source = source};
    return &streams[stream_count++];
}

static void end_read(struct feed *feed, struct stream *stream) {
    feed_source_caught_up(feed, stream->source);
    feed_flush(feed);
    stream->finish_ns = feed_source_holds(stream->source) ? now_ns + FINISH_AFTER_NS : 0;
}

// When there is something to do before more comes.
static uint64_t next_look(void) {
    lock_take(&runner->lock);
    uint64_t next = runner_next_look(runner);
    lock_release(&runner->lock);
    for (uint32_t i = 0; i < stream_count; i++)
        if (streams[i].finish_ns != 0 && streams[i].finish_ns < next)
            next = streams[i].finish_ns;
    return next;
}

static void live_until(struct feed *feed, uint64_t until_ns) {
    for (uint64_t next; (next = next_look()) <= until_ns;) {
        now_ns = next > now_ns ? next : now_ns;
        for (uint32_t i = 0; i < stream_count; i++) {
            struct stream *stream = &streams[i];
            if (stream->finish_ns == 0 || stream->finish_ns > now_ns)
                continue;
            feed_source_finish(feed, stream->source);
            end_read(feed, stream);
        }
        lock_take(&runner->lock);
        look();
        lock_release(&runner->lock);
    }
    now_ns = until_ns > now_ns ? until_ns : now_ns;
}

static void offer(struct feed *feed, struct stream *stream, struct slice record) {
    struct decode_fault fault;
    struct source_position position = {.number = ++stream->records};
    feed_source_reached(stream->source, &position);
    (void)feed_offer(feed, stream->source, record, stream->records, &fault);
}

int main(int argc, char **argv) {
    log_configure(LOG_ERROR, LOG_CONSOLE);
    struct arena arena;
    arena_init(&arena, 4096);
    struct plan plan;
    make_plan(&plan, &arena, argc - 1, argv + 1);
    struct service *service = NULL;
    struct error error = {0};
    if (service_start(&service, &plan, false, NULL, &error) != STATUS_OK)
        give_up(error.message);
    runner = &service->pipelines[0].runner;
    struct feed *feed = make_feed(service);
    struct stream *stream = NULL;
    char *line = NULL;
    size_t room = 0;
    for (ssize_t size; (size = getline(&line, &room, stdin)) > 0;) {
        size -= line[size - 1] == '\n';
        char *path, *tab = NULL;
        uint64_t arrival_ns = strtoull(line, &path, 10);
        if (*path != '\t' || (tab = strchr(path + 1, '\t')) == NULL)
            give_up("a line is ARRIVAL_NS, source and record, separated by tabs");
        struct slice record = {tab + 1, (size_t)(line + size - tab - 1)};
        struct stream *next =
            find_stream(feed, (struct slice){path + 1, (size_t)(tab - path - 1)}, arrival_ns);
        if (stream != NULL && (next != stream || arrival_ns > now_ns))
            end_read(feed, stream);
        live_until(feed, arrival_ns);
        stream = record.size == 0 ? NULL : next;
        if (stream == NULL)
            continue;
        offer(feed, stream, record);
        feed_flush(feed); // the line is about to be read over
    }
    if (stream != NULL)
        end_read(feed, stream);
    for (uint32_t i = 0; i < stream_count; i++)
        feed_source_finish(feed, streams[i].source);
    feed_flush(feed);
    lock_take(&runner->lock);
    runner_finish(runner);
    lock_release(&runner->lock);
    free(line);
    feed_free(feed);
    service_free(service);
    plan_release(&plan);
    arena_release(&arena);
    intern_release();
    return EXIT_SUCCESS;
}
