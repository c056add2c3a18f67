// SPDX-License-Identifier: Apache-2.0
// What the tests of the HTTP receiver share: the receiver on a fake feed, and a fake store unless
// HTTP_REAL_STORE is set. Included once by each test program.
#pragma once

#include "cli/component_list.h"
#include "tests/receivers/fake_feed.c"
#ifndef HTTP_REAL_STORE
#include "tests/receivers/fake_store.c"
#endif

#include "tests/base/http/http_client.h"

#include "base/clock.h"
#include "base/memory.h"
#include "receivers/http/receiver.h"
#include "tests/support/eventually.h"
#include "tests/support/temporary.h"

#include <jansson.h>
#include <pthread.h>

#define R(n) "{\"timestamp\":" #n ".5,\"memory_allocated\":" #n "}"

#define JSON  "Content-Type: application/json\r\n"
#define LINES "Content-Type: application/x-ndjson\r\n"

static struct http_config config;
static struct component_context context;
static struct http_receiver receiver;
static struct feed *feed;
static struct storage *store;
static struct error error;
static pthread_t thread;
static uint64_t live_before;
static char folder[128];

static inline void defaults(void) {
    config = (struct http_config){
        .endpoint = "127.0.0.1:0",
        .max_request_size = {1 << 20},
        .max_record_size = {4096},
        .max_pending_size = {8 << 20},
        .max_connections = 64,
        .threads = 2,
        .timeouts = {{10000000000}, {10000000000}, {10000000000}, {60000000000}},
        .max_idempotency_keys = 4,
        .records.quarantine_max_size = {1 << 20},
    };
    context = (struct component_context){.id = "http/test", .site = "receiver/http/test"};
}

static inline void setup(void) {
    temporary_path(folder, sizeof folder, "http");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)intern(SLICE("a job"));
    live_before = memory_figures().live_bytes;
    defaults();
    feed = fake_feed_create();
    store = NULL;
}

static inline void *run(void *unused) {
    (void)unused;
    enum status status = receiver_http.receiver.run(&receiver, feed, &error);
    ck_assert_msg(status == STATUS_OK, "%s", error.message);
    return NULL;
}

static inline uint16_t port(void) {
    return http_server_port(receiver.server);
}

static inline void start(void) {
    context.store = store;
    memset(&receiver, 0, sizeof receiver);
    enum status status = component_start(&receiver_http, &receiver, &config, &context, &error);
    ck_assert_msg(status == STATUS_OK, "%s", error.message);
    ck_assert_int_eq(pthread_create(&thread, NULL, run, NULL), 0);
    EVENTUALLY(atomic_load(&receiver.feed) != NULL && !atomic_load(&receiver.restoring));
}

static inline void stop(void) {
    fake_feed_stop(feed);
    pthread_join(thread, NULL);
    component_stop(&receiver_http, &receiver);
    http_server_drop_kept();
}

// A second start on what the first left; `restored` is the entry that the checkpoint holds.
static inline void start_again(uint64_t restored) {
    fake_feed_free(feed);
    feed = fake_feed_create();
    struct source *source = feed_source(feed, SLICE("http/test"));
    source->restored.number = restored;
    source->reached = source->flushed = source->restored;
    start();
}

static inline void teardown(void) {
    fake_feed_free(feed);
#ifndef HTTP_REAL_STORE
    if (store != NULL)
        fake_store_free(store);
#else
    ck_assert_ptr_null(store);
#endif
    char command[256];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
    metrics_release();
    ck_assert_uint_le(memory_figures().live_bytes, live_before + 4096); // interned names stay
}

static inline json_t *json_of(const struct answer *answer) {
    json_t *json = json_loadb(answer->body, answer->size, 0, NULL);
    ck_assert_msg(json != NULL, "%s", answer->body);
    return json;
}

static inline int number_of(const struct answer *answer, const char *key) {
    json_t *json = json_of(answer);
    int number = (int)json_integer_value(json_object_get(json, key));
    json_decref(json);
    return number;
}

static inline struct answer post(const char *path, const char *headers, const char *body) {
    return client_ask(port(), "POST", path, headers, body, strlen(body));
}

static inline void check_post(const char *headers, const char *body, int status, int accepted,
                              int rejected) {
    struct answer answer = post("/v1/events", headers, body);
    ck_assert_msg(answer.status == status, "%d for %s: %s", answer.status, body, answer.body);
    ck_assert_int_eq(number_of(&answer, "accepted"), accepted);
    ck_assert_int_eq(number_of(&answer, "rejected_count"), rejected);
    answer_free(&answer);
}

static inline void check_error(const char *headers, const char *body, int status,
                               const char *code) {
    struct answer answer = post("/v1/events", headers, body);
    ck_assert_msg(answer.status == status, "%d for %s: %s", answer.status, body, answer.body);
    json_t *json = json_of(&answer);
    const char *got = json_string_value(json_object_get(json_object_get(json, "error"), "code"));
    ck_assert_str_eq(got, code);
    json_decref(json);
    answer_free(&answer);
}

static inline void check_key(const char *key, const char *body, int status, int accepted,
                             bool repeated) {
    char headers[600];
    snprintf(headers, sizeof headers, LINES "Idempotency-Key: %s\r\n", key);
    struct answer answer = post("/v1/events", headers, body);
    ck_assert_msg(answer.status == status, "%d: %s", answer.status, answer.body);
    json_t *json = json_of(&answer);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "accepted")), accepted);
    ck_assert_int_eq(json_is_true(json_object_get(json, "repeated")), repeated);
    json_decref(json);
    answer_free(&answer);
}

static inline void *post_many(void *unused) {
    (void)unused;
    int descriptor = client_connect(port());
    for (int i = 0; i < 50; i++) {
        static const char body[] = R(1) "\n" R(2) "\n" R(3) "\n";
        client_request(descriptor, "POST", "/v1/events", LINES, body, sizeof body - 1);
        struct answer answer = client_answer(descriptor, false);
        ck_assert_int_eq(answer.status, config.ack == ACK_STORED ? 200 : 202);
        answer_free(&answer);
    }
    close(descriptor);
    return NULL;
}

static inline void post_from_many(void) {
    pthread_t threads[8];
    for (int i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, post_many, NULL);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(fake_feed_accepted(feed, NULL), 1200);
    ck_assert_uint_eq(feed->sources[0]->flushed.number, 400);
}
