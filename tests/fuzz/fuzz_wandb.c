// SPDX-License-Identifier: Apache-2.0
// Whatever a W&B server answers, and whatever was kept of an earlier run, delivery ends with done,
// later or refused, and the kept words are understood again.
//
// The input is lines: the first is what the store kept ("" for nothing), each other one answer,
// STATUS and its body. The network is played by this file; records of every kind are sent until the
// answers are used up. Requests must be JSON, and no address but a given one is uploaded to.
#include "base/log.h"
#include "exporters/wandb/online/http.h"
#include "exporters/wandb/online/online.h"
#include "exporters/wandb/record.h"
#include "tests/fuzz/fuzz.h"

#include <jansson.h>
#include <stdio.h>

static const uint64_t START = UINT64_C(1700000000000000000);

// -- the network ----------------------------------------------------------------------------------

struct wandb_http {
    struct fuzz_input answers;
    struct wandb_reply reply;
    unsigned requests;
};

static struct fuzz_input next_answers;

enum status wandb_http_open(struct wandb_http **http, const struct wandb_config *config,
                            const char *site, struct error *error) {
    (void)config;
    (void)site;
    (void)error;
    *http = memory_zero(1, sizeof **http);
    (*http)->answers = next_answers;
    buffer_init(&(*http)->reply.body, 1 << 20);
    return STATUS_OK;
}

void wandb_http_close(struct wandb_http *http) {
    next_answers = http->answers;
    buffer_release(&http->reply.body);
    memory_give(http);
}

// "200 BODY", "503r5 BODY" (asked to wait 5 ns), "200! BODY" (cut off), "0": no answer at all.
static enum status answer(struct wandb_http *http, struct error *error) {
    struct slice line;
    struct wandb_reply *reply = &http->reply;
    buffer_reset(&reply->body);
    reply->status = 0;
    reply->whole = true;
    reply->retry_after_ns = 0;
    reply->limit_remaining = reply->limit_reset_s = -1;
    http->requests++;
    if (!fuzz_piece(&http->answers, '\n', &line))
        return error_set(error, STATUS_IO, "nobody is there");
    size_t at = 0;
    for (; at < line.size && line.data[at] != ' '; at++) {
        char c = line.data[at];
        if (c >= '0' && c <= '9' && reply->status < 1000)
            reply->status = reply->status * 10 + (c - '0');
        else if (c == 'r')
            reply->retry_after_ns = 1;
        else if (c == 'l')
            reply->limit_remaining = reply->limit_reset_s = (double)(at % 3);
        else if (c == '!')
            reply->whole = false;
    }
    at += at < line.size;
    buffer_append(&reply->body, (struct slice){line.data + at, line.size - at});
    if (reply->status < 100)
        return error_set(error, STATUS_IO, "the connection broke");
    return STATUS_OK;
}

enum status wandb_http_post(struct wandb_http *http, const char *path, struct slice body,
                            struct error *error) {
    require(path[0] == '/');
    json_t *said = json_loadb(body.data, body.size, 0, NULL);
    require(json_is_object(said));
    json_decref(said);
    return answer(http, error);
}

enum status wandb_http_put(struct wandb_http *http, const struct wandb_upload *upload,
                           struct error *error) {
    require(upload->url != NULL);
    for (size_t i = 0; i < upload->header_count; i++)
        require(strpbrk(upload->headers[i], "\r\n") == NULL);
    return answer(http, error);
}

const struct wandb_reply *wandb_http_reply(const struct wandb_http *http) {
    return &http->reply;
}

void wandb_http_redact(const struct wandb_http *http, char *text, size_t capacity) {
    (void)http;
    require(strlen(text) < capacity);
}

void wandb_http_escape(const struct wandb_http *http, struct buffer *out, const char *text) {
    (void)http;
    for (; *text != '\0'; text++)
        buffer_append_format(out, "%%%02X", (unsigned)(unsigned char)*text);
}

// -- what is sent ---------------------------------------------------------------------------------

struct saying {
    struct buffer records;
    uint64_t sequence, row;
};

static void say(struct saying *saying, const char *run, struct wandb_record record) {
    struct wandb_writer writer = {.out = &saying->records,
                                  .sequence = &saying->sequence,
                                  .row = &saying->row,
                                  .run = slice_of(run),
                                  .time_ns = START + saying->sequence * 1000000000};
    wandb_say(&writer, &record);
}

static void say_all(struct saying *saying) {
    buffer_init(&saying->records, 1 << 20);
    say(saying, "a",
        (struct wandb_record){
            .kind = WANDB_RUN, .display_name = SLICE("the run"), .incarnation = 7});
    say(saying, "a",
        (struct wandb_record){.kind = WANDB_ROW, .members = SLICE("\"loss\":1.5,\"bad\":NaN")});
    say(saying, "a",
        (struct wandb_record){
            .kind = WANDB_TABLE,
            .key = SLICE("table"),
            .file = SLICE("{\"columns\":[\"a\"],\"data\":[[1]]}"),
            .artifact_file = SLICE("{\"_type\":\"table\",\"column_types\":{},\"columns\":[\"a\"],"
                                   "\"data\":[[1]],\"ncols\":1,\"nrows\":1}"),
            .columns = 1,
            .rows = 1});
    say(saying, "a",
        (struct wandb_record){
            .kind = WANDB_HTML, .key = SLICE("page"), .file = SLICE("<html></html>\n")});
    say(saying, "b", (struct wandb_record){.kind = WANDB_ROW, .members = SLICE("\"x\":1")});
    say(saying, "a",
        (struct wandb_record){.kind = WANDB_ARTIFACT,
                              .key = SLICE("events"),
                              .type = SLICE("telemetry"),
                              .file = SLICE(TESTS_DIR "/CMakeLists.txt")});
    say(saying, "a", (struct wandb_record){.kind = WANDB_SUMMARY, .members = SLICE("\"peak\":3")});
    say(saying, "a", (struct wandb_record){.kind = WANDB_FINISH, .exit_code = 3});
}

static void require_resumes(struct wandb_online *online, const struct wandb_config *config) {
    struct wandb_online *again;
    struct error error = {0};
    struct buffer kept, kept_again;
    buffer_init(&kept, 1 << 20);
    buffer_init(&kept_again, 1 << 20);
    wandb_online_delivered(online, &kept);
    wandb_online_close(online);
    require(wandb_online_open(&again, config, "exporter/wandb", &error) == STATUS_OK);
    require(wandb_online_resume(again, buffer_slice(&kept), &error) == STATUS_OK);
    wandb_online_delivered(again, &kept_again);
    require(slice_equal(buffer_slice(&kept), buffer_slice(&kept_again)));
    wandb_online_close(again);
    buffer_release(&kept);
    buffer_release(&kept_again);
}

// Rounds until there are no more answers, and one more.
static void send_all(struct wandb_online *online, struct slice records) {
    for (unsigned round = 0, left = 1; round < 64 && left > 0; round++) {
        struct send_outcome outcome;
        struct error error = {0};
        enum status status = wandb_online_send(online, records, round % 2 == 0, &outcome, &error);
        require(status == STATUS_OK || strlen(error.message) > 10);
        (void)wandb_online_pace(online);
        left = outcome.permanent || status == STATUS_OK ? 0 : 1;
    }
}

int LLVMFuzzerInitialize(int *argument_count, char ***arguments) {
    (void)argument_count;
    (void)arguments;
    log_configure(LOG_ERROR, LOG_CONSOLE);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const struct wandb_config config = {.base_url = "http://server",
                                               .project = "proj",
                                               .log_tables = true,
                                               .log_artifacts = true,
                                               .max_runs = 1,
                                               .sending = {.timeout = {1000000000}}};
    struct fuzz_input input = {(const char *)data, size};
    struct slice kept = {NULL, 0};
    struct saying saying = {.sequence = 0};
    struct wandb_online *online;
    struct error error = {0};
    bool any = fuzz_piece(&input, '\n', &kept) && kept.size > 0;
    say_all(&saying);
    next_answers = input;
    require(wandb_online_open(&online, &config, "exporter/wandb", &error) == STATUS_OK);
    if (any && wandb_online_resume(online, kept, &error) != STATUS_OK)
        require(strlen(error.message) > 10);
    send_all(online, buffer_slice(&saying.records));
    require_resumes(online, &config);
    buffer_release(&saying.records);
    return 0;
}
