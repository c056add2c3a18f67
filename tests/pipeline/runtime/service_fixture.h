// SPDX-License-Identifier: Apache-2.0
// A service of made-up components: a receiver that tells events by a script, a stage that writes
// down when it is asked to judge, an exporter that can refuse.
#pragma once

#include "base/clock.h"
#include "base/memory.h"
#include "pipeline/model/telemetry_event.h"
#include "pipeline/runtime/feed/feed_run.h"
#include "pipeline/runtime/service.h"

#include <check.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

static const uint64_t SECOND = 1000000000;

// -- a format: "<seconds>" ------------------------------------------------------------------------

static inline enum decode_category decode_seconds(void *state, struct slice record,
                                                  struct arena *arena, struct event *event,
                                                  struct decode_fault *fault) {
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

// -- the receiver ---------------------------------------------------------------------------------

struct script_config {
    const char *const *paths; // NULL-terminated; the records of a path are its letters' digits
    const char *live;         // records of one source, space-separated; then waits to be stopped
    bool endless;
};

struct script {
    const struct script_config *config;
};

static inline enum status script_start(void *instance, const void *config,
                                       const struct component_context *context,
                                       struct error *error) {
    (void)context;
    (void)error;
    ((struct script *)instance)->config = config;
    return STATUS_OK;
}

static inline enum status script_list(void *instance, struct source_list *sources,
                                      struct error *error) {
    (void)error;
    const struct script *self = instance;
    for (int i = 0; self->config->paths[i] != NULL; i++)
        source_list_add(sources, slice_of(self->config->paths[i]));
    return STATUS_OK;
}

static inline void offer_words(struct feed *feed, struct source *source, const char *words) {
    uint64_t position = 0;
    struct decode_fault fault;
    while (*words != '\0') {
        size_t size = strcspn(words, " ");
        (void)feed_offer(feed, source, (struct slice){words, size}, ++position, &fault);
        words += size + (words[size] == ' ');
    }
}

// A path "/b:3 4 x" holds the records after the colon.
static inline enum status script_read(void *instance, struct feed *feed, struct slice path,
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

static inline enum status script_run(void *instance, struct feed *feed, struct error *error) {
    (void)error;
    const struct script *self = instance;
    struct source *source = feed_source(feed, SLICE("live"));
    feed_source_format(source, &seconds, &(struct decoder_input){.path = {0}});
    feed_steps(feed, true);
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

// -- the stage: writes down what it sees ----------------------------------------------------------

static struct buffer seen;
static atomic_uint judgements;

static inline void diary_consume(void *instance, struct batch *batch) {
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

// -- the exporter: one letter a judgement ---------------------------------------------------------

static struct buffer delivered;
static atomic_int refusals_left;
static bool refuse_for_good;
static bool got_last;

static inline void letters_encode(void *instance, const struct batch *batch, struct buffer *out) {
    (void)instance;
    if (batch->evaluate)
        buffer_append_char(out, batch->last ? 'z' : 'e');
}

static inline enum status letters_send(void *instance, const struct request *request,
                                       struct send_outcome *outcome, struct error *error) {
    (void)instance;
    if (refuse_for_good) {
        outcome->sink_dead = true;
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

// -- a plan by hand -------------------------------------------------------------------------------

struct fixture {
    struct script_config configs[2];
    struct plan_component components[5]; // the last one is the test's own
    uint32_t receivers[2];
    uint32_t processors[1];
    uint32_t exporters[1];
    struct plan_pipeline pipeline;
    struct plan plan;
};

static inline void fixture_init(struct fixture *f, uint32_t receiver_count) {
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
                            .settings = {.batch_size = 2,
                                         .checkpoint_interval = {5 * (int64_t)SECOND},
                                         .shutdown_timeout = {20 * (int64_t)SECOND}}};
}

static inline void setup(void) {
    buffer_init(&seen, 1 << 16);
    buffer_init(&delivered, 1 << 16);
    atomic_store(&judgements, 0);
    atomic_store(&refusals_left, 0);
    refuse_for_good = got_last = false;
    log_configure(LOG_ERROR, LOG_CONSOLE);
}

static inline void teardown(void) {
    buffer_release(&seen);
    buffer_release(&delivered);
    intern_release();
}

static inline void check_text(struct buffer *buffer, const char *want) {
    buffer_append_char(buffer, '\0');
    ck_assert_str_eq(buffer->data, want);
}
