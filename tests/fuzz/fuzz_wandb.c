// SPDX-License-Identifier: Apache-2.0
// Whatever a W&B server answers, and whatever was kept of an earlier run, delivery ends with done,
// later or refused, and the kept words are understood again.
//
// The input is lines: the first is what the store kept ("" for nothing), each other one answer,
// STATUS and its body. The network is played by this file; records of every kind are sent until the
// answers are used up. Requests must be JSON, and no address but a given one is uploaded to.
#include "base/http/client.h"
#include "base/log.h"
#include "base/memory.h"
#include "exporters/wandb/online/online.h"
#include "exporters/wandb/record.h"
#include "tests/fuzz/fuzz.h"

#include <jansson.h>
#include <stdio.h>

static const uint64_t START = UINT64_C(1700000000000000000);

// -- the network ----------------------------------------------------------------------------------

struct http_client {
    struct http_reply reply;
    bool is_server; // not storage
    char limit[8];  // the value of both rate limit headers; "": none
};

static struct fuzz_input answers;

enum status http_client_open(struct http_client **client, const struct http_client_options *options,
                             struct error *error) {
    (void)error;
    *client = memory_zero(1, sizeof **client);
    (*client)->is_server = options->password != NULL;
    buffer_init(&(*client)->reply.body, 1 << 20);
    return STATUS_OK;
}

void http_client_close(struct http_client *client) {
    if (client != NULL)
        buffer_release(&client->reply.body);
    memory_give(client);
}

// "200 BODY", "503r5 BODY" (asked to wait 1 ns), "200! BODY" (cut off), "0": no answer at all.
static enum http_class answer(struct http_client *client, struct error *error) {
    struct slice line;
    struct http_reply *reply = &client->reply;
    buffer_reset(&reply->body);
    *reply = (struct http_reply){.whole = true, .body = reply->body};
    client->limit[0] = '\0';
    if (!fuzz_piece(&answers, '\n', &line)) {
        error_set(error, STATUS_IO, "nobody is there");
        return HTTP_RETRY;
    }
    size_t at = 0;
    for (; at < line.size && line.data[at] != ' '; at++) {
        char c = line.data[at];
        if (c >= '0' && c <= '9' && reply->status < 1000)
            reply->status = reply->status * 10 + (c - '0');
        else if (c == 'r')
            reply->retry_after_ns = 1;
        else if (c == 'l')
            snprintf(client->limit, sizeof client->limit, "%zu", at % 3);
        else if (c == '!')
            reply->whole = false;
    }
    at += at < line.size;
    buffer_append(&reply->body, (struct slice){line.data + at, line.size - at});
    if (reply->status < 100)
        reply->status = 0;
    if (http_class_of(reply->status) == HTTP_OK)
        return HTTP_OK;
    error_set(error, STATUS_IO, "the server answers, or the connection broke");
    return HTTP_RETRY;
}

enum http_class http_client_send(struct http_client *client, const struct http_call *call,
                                 struct error *error) {
    require(call->url != NULL);
    if (client->is_server) {
        require(strncmp(call->url, "https://server/", 15) == 0);
        json_t *said = json_loadb(call->body.data, call->body.size, 0, NULL);
        require(json_is_object(said));
        json_decref(said);
    }
    return answer(client, error);
}

enum http_class http_class_of(long status) {
    return status >= 200 && status < 300 ? HTTP_OK : HTTP_RETRY;
}

const struct http_reply *http_client_reply(const struct http_client *client) {
    return &client->reply;
}

struct slice http_client_header(const struct http_client *client, const char *name) {
    return strncmp(name, "RateLimit-", 10) == 0 ? slice_of(client->limit) : SLICE("");
}

void http_client_redact(const struct http_client *client, char *text, size_t capacity) {
    (void)client;
    require(strlen(text) < capacity);
}

void http_client_escape(const struct http_client *client, struct buffer *out, const char *text) {
    (void)client;
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
        left = outcome.sink_dead || status == STATUS_OK ? 0 : 1;
    }
}

int LLVMFuzzerInitialize(int *argument_count, char ***arguments) {
    (void)argument_count;
    (void)arguments;
    log_configure(LOG_ERROR, LOG_CONSOLE);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const struct wandb_config config = {
        .base_url = "https://server",
        .api_key = {"0123456789012345678901234567890123456789"},
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
    answers = input;
    require(wandb_online_open(&online, &config, "exporter/wandb", &error) == STATUS_OK);
    if (any && wandb_online_resume(online, kept, &error) != STATUS_OK)
        require(strlen(error.message) > 10);
    send_all(online, buffer_slice(&saying.records));
    require_resumes(online, &config);
    buffer_release(&saying.records);
    return 0;
}
