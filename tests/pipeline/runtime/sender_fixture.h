// SPDX-License-Identifier: Apache-2.0
// One sender with an exporter that notes what it is sent and answers as the test says.
#pragma once

#include "pipeline/runtime/sender.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "pipeline/model/batch.h"
#include "tests/support/eventually.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const uint64_t SECOND = 1000000000;

// -- the exporter ---------------------------------------------------------------------------------

struct answer {
    bool refused;
    enum status status; // of a refusal; STATUS_OK: STATUS_IO
    bool sink_dead;
    size_t taken, refuses; // bytes of the request
    uint64_t retry_after_ns;
};

static struct component_type type;
static pthread_mutex_t sink_lock = PTHREAD_MUTEX_INITIALIZER; // of what the thread writes
static struct answer answers[8];                              // of the first requests
static atomic_bool sink_refuses;                              // every request, whatever they say
static uint32_t request_count;
static char sent[4096]; // requests, a bar between them; '.' behind the last one
static uint64_t sent_bytes;
static uint32_t early_requests; // before the wait was over
static const char *next_text;
static unsigned encode_times;
static bool encode_fails;
static struct send_pace the_pace;
static char resumed[64];
static bool resume_fails;

static void box_encode(void *instance, const struct batch *batch, struct buffer *out) {
    (void)instance;
    (void)batch;
    for (unsigned i = 0; i < encode_times; i++)
        buffer_append_text(out, next_text);
    out->failed = out->failed || encode_fails;
}

static struct sender sender;

static enum status box_send(void *instance, const struct request *request,
                            struct send_outcome *outcome, struct error *error) {
    (void)instance;
    pthread_mutex_lock(&sink_lock);
    struct answer answer = request_count < 8 ? answers[request_count] : (struct answer){0};
    answer.refused = answer.refused || atomic_load(&sink_refuses);
    request_count++;
    early_requests += clock_monotonic_ns() < sender.retry.at_ns;
    sent_bytes += answer.refused ? 0 : request->bytes.size;
    if (!answer.refused && strlen(sent) + request->bytes.size + 4 < sizeof sent) {
        strncat(sent, request->bytes.data == NULL ? "" : request->bytes.data, request->bytes.size);
        strcat(sent, request->last ? "." : "|");
    }
    pthread_mutex_unlock(&sink_lock);
    *outcome = (struct send_outcome){.taken = answer.taken,
                                     .refused = answer.refuses,
                                     .sink_dead = answer.sink_dead,
                                     .retry_after_ns = answer.retry_after_ns};
    if (!answer.refused)
        return STATUS_OK;
    return error_set(error, answer.status == STATUS_OK ? STATUS_IO : answer.status, "it says no");
}

static inline void box_delivered(void *instance, struct buffer *out) {
    (void)instance;
    buffer_append_text(out, "so far");
}

static inline enum status box_resume(void *instance, struct slice delivered, struct error *error) {
    (void)instance;
    snprintf(resumed, sizeof resumed, "%.*s", (int)delivered.size, delivered.data);
    return resume_fails ? error_set(error, STATUS_BAD_DATA, "no such place") : STATUS_OK;
}

static inline struct send_pace box_pace(const void *instance) {
    (void)instance;
    pthread_mutex_lock(&sink_lock);
    struct send_pace pace = the_pace;
    pthread_mutex_unlock(&sink_lock);
    return pace;
}

static struct sending_config sending;
static const struct sending_config *box_sending(const void *config) {
    (void)config;
    return &sending;
}

static inline bool box_waits(const void *config) {
    (void)config;
    return true;
}

// -- the sender -----------------------------------------------------------------------------------

static struct plan_component component;
static atomic_bool stopping;
static atomic_uint asked;
static struct error error;

static void ask_checkpoint(void *context) {
    (void)context;
    atomic_fetch_add(&asked, 1);
}

static uint64_t sender_patience_ns;

static inline void make(bool once, bool with_store) {
    component = (struct plan_component){.type = &type, .id = "box", .used = true};
    sender = (struct sender){.component = &component,
                             .site = "exporter/box",
                             .once = once,
                             .patience_ns = sender_patience_ns,
                             .with_store = with_store,
                             .stopping = &stopping,
                             .wake_checkpoint = ask_checkpoint};
    sender_init(&sender);
}

static inline void start(void) {
    ck_assert_int_eq(sender_start(&sender, &error), STATUS_OK);
}

static void setup(void) {
    type = (struct component_type){
        .name = "box",
        .kind = COMPONENT_EXPORTER,
        .exporter = {.encode = box_encode, .send = box_send, .sending = box_sending}};
    sending = sending_defaults;
    sending.retry.initial_interval.ns = 1000000;
    sending.retry.randomization_factor = 0;
    memset(answers, 0, sizeof answers);
    atomic_store(&sink_refuses, false);
    request_count = early_requests = 0;
    sent_bytes = 0;
    sender_patience_ns = 0;
    encode_times = 1;
    sent[0] = resumed[0] = '\0';
    encode_fails = resume_fails = false;
    the_pace = (struct send_pace){0, UINT64_MAX};
    atomic_store(&stopping, false);
    atomic_store(&asked, 0);
    log_configure((enum log_level)(LOG_ERROR + 1), LOG_CONSOLE);
}

static void teardown(void) {
    sender_release(&sender);
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

// A batch with two verdicts, judged or not.
static void consume(const char *text, bool evaluate) {
    struct batch batch = {.evaluate = evaluate, .verdicts = {.count = 2}};
    next_text = text;
    sender_consume(&sender, &batch);
}

static inline enum status finish(uint64_t patience_ns) {
    error = (struct error){0};
    return sender_finish(&sender, clock_monotonic_ns() + patience_ns, &error);
}

static inline bool has_requests(uint32_t count) {
    pthread_mutex_lock(&sink_lock);
    bool there = request_count >= count;
    pthread_mutex_unlock(&sink_lock);
    return there;
}

static inline void wait_for_requests(uint32_t count) {
    EVENTUALLY(has_requests(count));
}

// The request was answered, too.
static inline void wait_for_failure(void) {
    EVENTUALLY(atomic_load(&sender.failed_records) > 0);
}

// The requests, without the end of the last one: that is behind the last bytes or, when those had
// left before, comes by itself.
static inline void check_sent(const char *want) {
    size_t size = strlen(sent);
    ck_assert_uint_gt(size, 0);
    ck_assert_int_eq(sent[size - 1], '.');
    while (size > 0 && (sent[size - 1] == '.' || sent[size - 1] == '|'))
        sent[--size] = '\0';
    ck_assert_str_eq(sent, want);
}
