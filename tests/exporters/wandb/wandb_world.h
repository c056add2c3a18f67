// SPDX-License-Identifier: Apache-2.0
// An exporter that carries records to a mock server, for one test.
#pragma once

#include "exporters/wandb/online/online.h"

#include "base/clock.h"
#include "exporters/wandb/record.h"
#include "tests/exporters/wandb/wandb_mock.h"

#include <stdarg.h>

static const uint64_t START = UINT64_C(1700000000000000000), SECOND = 1000000000;

// One exporter, its records, and the server.
struct world {
    struct wandb_mock mock;
    struct wandb_config config;
    struct wandb_online *online;
    struct buffer records;
    uint64_t sequence, row;
    struct send_outcome outcome;
    struct error error;
};

static inline void online_open(struct world *world) {
    struct error error = {0};
    enum status status =
        wandb_online_open(&world->online, &world->config, "exporter/wandb", &error);
    ck_assert_msg(status == STATUS_OK, "%s", error.message);
}

static inline void world_open(struct world *world) {
    *world = (struct world){0};
    wandb_mock_start(&world->mock);
    world->config = (struct wandb_config){
        .base_url = world->mock.url,
        .api_key = {WANDB_MOCK_KEY},
        .project = "proj",
        .post_interval = {15 * (int64_t)SECOND},
        .heartbeat_interval = {30 * (int64_t)SECOND},
        .max_runs = 4,
        .sending = {.timeout = {20 * (int64_t)SECOND}},
    };
    buffer_init(&world->records, 64 << 20);
    online_open(world);
}

static inline void world_close(struct world *world) {
    wandb_online_close(world->online);
    buffer_release(&world->records);
    wandb_mock_stop(&world->mock);
}

static inline void say(struct world *world, const char *run, uint64_t seconds,
                       struct wandb_record record) {
    struct wandb_writer writer = {.out = &world->records,
                                  .sequence = &world->sequence,
                                  .row = &world->row,
                                  .run = slice_of(run),
                                  .time_ns = START + seconds * SECOND};
    wandb_say(&writer, &record);
}

static inline void say_run(struct world *world, const char *run, uint64_t incarnation, bool skips) {
    say(world, run, 0,
        (struct wandb_record){.kind = WANDB_RUN,
                              .display_name = SLICE("the run"),
                              .group = SLICE("jobs"),
                              .incarnation = incarnation,
                              .skips_known = skips});
}

static inline void say_row(struct world *world, const char *run, uint64_t seconds,
                           const char *members) {
    say(world, run, seconds,
        (struct wandb_record){.kind = WANDB_ROW, .members = slice_of(members)});
}

static inline void say_table(struct world *world, const char *run, uint64_t seconds,
                             const char *key) {
    say(world, run, seconds,
        (struct wandb_record){
            .kind = WANDB_TABLE,
            .key = slice_of(key),
            .file = SLICE("{\"columns\":[\"a\"],\"data\":[[1]]}"),
            .artifact_file = SLICE("{\"_type\":\"table\",\"column_types\":{},\"columns\":[\"a\"],"
                                   "\"data\":[[1]],\"ncols\":1,\"nrows\":1}"),
            .columns = 1,
            .rows = 1});
}

static inline void say_page(struct world *world, const char *run, uint64_t seconds) {
    say(world, run, seconds,
        (struct wandb_record){.kind = WANDB_HTML,
                              .key = SLICE("page"),
                              .file = SLICE("<!doctype html><html><head></head></html>\n")});
}

static inline void say_finish(struct world *world, const char *run, uint64_t seconds) {
    say(world, run, seconds, (struct wandb_record){.kind = WANDB_FINISH, .exit_code = 3});
}

static inline enum status send_once(struct world *world) {
    world->error = (struct error){0};
    return wandb_online_send(world->online, buffer_slice(&world->records), false, &world->outcome,
                             &world->error);
}

// Until it is through; how many calls it took.
static inline unsigned send_all(struct world *world) {
    unsigned calls = 1;
    for (; send_once(world) != STATUS_OK; calls++) {
        ck_assert_msg(!world->outcome.sink_dead, "%s", world->error.message);
        ck_assert_uint_lt(calls, 100);
        clock_sleep_ns(world->outcome.retry_after_ns);
    }
    buffer_reset(&world->records);
    return calls;
}

// As after a crash: a new process that knows what the old one told the checkpoint.
static inline void restart(struct world *world) {
    struct buffer kept;
    buffer_init(&kept, 65536);
    wandb_online_delivered(world->online, &kept);
    wandb_online_close(world->online);
    online_open(world);
    struct error error = {0};
    ck_assert_int_eq(wandb_online_resume(world->online, buffer_slice(&kept), &error), STATUS_OK);
    buffer_release(&kept);
}

static inline void forget(struct world *world) {
    wandb_online_close(world->online);
    online_open(world);
}

// Numbers and texts at paths such as "runs.0.history.2._step".
static inline const json_t *at(const json_t *value, const char *format, ...) {
    char path[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(path, sizeof path, format, arguments);
    va_end(arguments);
    char *rest = path;
    for (const char *key; value != NULL && (key = strsep(&rest, ".")) != NULL;)
        value = json_is_array(value) ? json_array_get(value, (size_t)atoi(key))
                                     : json_object_get(value, key);
    return value;
}

static inline double number_at(const json_t *value, const char *path) {
    const json_t *found = at(value, "%s", path);
    ck_assert_msg(json_is_number(found), "no number at %s", path);
    return json_number_value(found);
}

static inline const char *text_at(const json_t *value, const char *path) {
    const json_t *found = at(value, "%s", path);
    ck_assert_msg(json_is_string(found), "no text at %s", path);
    return json_string_value(found);
}

static inline size_t size_at(const json_t *value, const char *path) {
    return json_array_size(at(value, "%s", path));
}
