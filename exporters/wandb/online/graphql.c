// SPDX-License-Identifier: Apache-2.0
// Sends GraphQL requests and uploads, and decides which failures are retryable.
//
// Source of the rules: what wandb 0.31.0 tries again. Connections that fail, timeouts, answers that
// cannot be read and most statuses may pass later; statuses that blame the request, and GraphQL's
// own errors, stay as they are.
#include "exporters/wandb/online/graphql.h"

#include "base/clock.h"
#include "base/memory.h"

#include <stdarg.h>

enum { HEADERS_MAX = 32, QUERY_MAX = 64 << 20 };

const json_t *wandb_json_at(const json_t *data, ...) {
    va_list keys;
    va_start(keys, data);
    for (const char *key; (key = va_arg(keys, const char *)) != NULL;)
        data = json_object_get(data, key);
    va_end(keys);
    return data;
}

// -- judging --------------------------------------------------------------------------------------

// Statuses that stay as they are, and what to do about them. All 3xx do, too.
static const struct refusal {
    short status;
    const char *hint;
} refusals[] = {
    {400, ""},
    {401, "; check that the API key is valid and may write to the project (api_key, entity)"},
    {403, "; check that the API key is valid and may write to the project (api_key, entity)"},
    {404, "; check that entity and project exist for this key (entity, project, base_url)"},
    {409, "; another client may be writing to the run, or it has ended"},
    {410, ""},
    {413, "; the request is too large for the server"},
    {422, ""},
    {501, ""},
};

static const struct refusal *refusal_of(long status) {
    static const struct refusal redirect = {
        300, "; redirects are not followed; set base_url to their target"};
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++)
        if (status == refusals[i].status)
            return &refusals[i];
    return status >= 300 && status < 400 ? &redirect : NULL;
}

enum { WORDS_MAX = 256, WORDS_READ_MAX = 2048 };

// What the server itself says, cut; "" when it is nothing that can be read. Some repeat the request
// with its headers: the key does not get into a log that way.
static void server_words(const struct wandb_client *client, char words[WORDS_MAX]) {
    const struct http_reply *reply = client->http.reply;
    char read[WORDS_READ_MAX];
    words[0] = '\0';
    json_t *body =
        json_loadb(reply->body.data == NULL ? "" : reply->body.data, reply->body.size, 0, NULL);
    const char *text =
        wandb_json_text(json_array_get(json_object_get(body, "errors"), 0), "message", NULL);
    if (text == NULL)
        text = wandb_json_text(body, "error", NULL);
    if (text != NULL) {
        snprintf(read, sizeof read, "%s", text);
        http_client_redact(client->http.server, read, sizeof read);
        snprintf(words, WORDS_MAX, ": %.250s", read);
    }
    for (char *c = words; *c != '\0'; c++)
        if ((unsigned char)*c < ' ')
            *c = ' ';
    json_decref(body);
}

enum wandb_answer wandb_client_judge(struct wandb_client *client, const char *what,
                                     enum http_class class, struct error *error) {
    const struct http_reply *reply = client->http.reply;
    assert(what != NULL && client->http.reply != NULL);
    if (class == HTTP_OK)
        return WANDB_DONE;
    if (reply->status == 0 || error->status == STATUS_CONFIG) {
        struct error inner = *error;
        error_set(error, inner.status, "%s: %.900s", what, inner.message);
        return inner.status == STATUS_CONFIG ? WANDB_REFUSED : WANDB_LATER;
    }
    char words[WORDS_MAX];
    const struct refusal *refusal = refusal_of(reply->status);
    server_words(client, words);
    error_set(error, STATUS_IO, "%s: the server answers %ld%s%s", what, reply->status, words,
              refusal == NULL ? "" : refusal->hint);
    if (refusal != NULL)
        return WANDB_REFUSED;
    if (reply->retry_after_ns > 0)
        client->wait_until_ns = clock_monotonic_ns() + reply->retry_after_ns;
    return WANDB_LATER;
}

// -- queries --------------------------------------------------------------------------------------

void wandb_query_begin(struct wandb_query *query, const char *name, const char *document) {
    assert(strncmp(document, "query(", 6) == 0 || strncmp(document, "mutation(", 9) == 0);
    *query = (struct wandb_query){.name = name};
    buffer_init(&query->body, QUERY_MAX);
    json_begin(&query->json, &query->body, 0);
    json_object_open(&query->json);
    json_field_text(&query->json, "query", document);
    json_field_object_open(&query->json, "variables");
    query->has_input = strstr(document, "($input:") != NULL;
    if (query->has_input) {
        json_field_object_open(&query->json, "input");
    }
}

void wandb_query_slice(struct wandb_query *query, const char *key, struct slice text) {
    assert(query->name != NULL && (text.size == 0 || text.data != NULL));
    json_key(&query->json, key);
    if (text.size == 0)
        json_put_null(&query->json);
    else
        json_slice(&query->json, text);
}

void wandb_query_text(struct wandb_query *query, const char *key, const char *text) {
    wandb_query_slice(query, key, text == NULL ? SLICE("") : slice_of(text));
}

// Takes the answer apart. GraphQL's own errors come with status 200.
static enum wandb_answer data_of(struct wandb_client *client, const struct wandb_query *query,
                                 json_t **data, struct error *error) {
    assert(*data == NULL);
    const struct http_reply *reply = client->http.reply;
    char words[WORDS_MAX];
    json_t *body = NULL;
    if (reply->whole && reply->body.size > 0)
        body = json_loadb(reply->body.data, reply->body.size, JSON_ALLOW_NUL, NULL);
    if (!json_is_object(body)) {
        json_decref(body);
        error_set(error, STATUS_IO,
                  "%s: the answer is truncated or not JSON (is base_url "
                  "a W&B server?)",
                  query->name);
        return WANDB_LATER;
    }
    if (json_array_size(json_object_get(body, "errors")) > 0) {
        server_words(client, words);
        error_set(error, STATUS_IO, "%s: the server refuses%s", query->name, words);
        json_decref(body);
        return WANDB_REFUSED;
    }
    *data = json_incref(json_object_get(body, "data"));
    json_decref(body);
    return WANDB_DONE;
}

// W&B's words for the id of a deleted run, with status 409 (400 of old servers), as users of its
// client report them. Without them a conflict passes.
static enum wandb_answer conflict_of(const struct wandb_client *client, enum wandb_answer answer) {
    static const char words[] = "previously created and deleted";
    const struct http_reply *reply = client->http.reply;
    if (answer != WANDB_REFUSED)
        return answer;
    if (reply->body.size > 0 &&
        memmem(reply->body.data, reply->body.size, words, sizeof words - 1) != NULL)
        return WANDB_GONE;
    return reply->status == 409 ? WANDB_LATER : answer;
}

enum wandb_answer wandb_query_send(struct wandb_client *client, struct wandb_query *query,
                                   json_t **data, struct error *error) {
    assert(query->name != NULL && data != NULL);
    enum wandb_answer answer = WANDB_REFUSED;
    *data = NULL;
    if (query->has_input)
        json_object_close(&query->json);
    json_object_close(&query->json);
    json_object_close(&query->json);
    if (query->body.failed) {
        error_set(error, STATUS_LIMIT, "%s: the request has more than %d MiB", query->name,
                  QUERY_MAX >> 20);
    } else {
        enum http_class class =
            wandb_http_post(&client->http, "/graphql", buffer_slice(&query->body), error);
        answer = wandb_client_judge(client, query->name, class, error);
        if (answer == WANDB_DONE)
            answer = data_of(client, query, data, error);
        if (query->conflict_passes)
            answer = conflict_of(client, answer);
    }
    buffer_release(&query->body);
    return answer;
}

// -- uploads --------------------------------------------------------------------------------------

static bool storage_refuses(long status) {
    return (status >= 300 && status < 500 && status != 408 && status != 429) || status == 501;
}

enum wandb_answer wandb_upload_send(struct wandb_client *client, const char *what, const char *url,
                                    const json_t *headers, const struct http_call *from,
                                    struct error *error) {
    assert(url != NULL && (from->file_size == 0 || from->body.size == 0));
    struct http_call call = *from;
    const char *lines[HEADERS_MAX];
    size_t count = json_array_size(headers);
    if (count > HEADERS_MAX) {
        error_set(error, STATUS_BAD_DATA, "%s: the server gives %zu headers, at most %d are taken",
                  what, count, HEADERS_MAX);
        return WANDB_REFUSED;
    }
    for (size_t i = 0; i < count; i++) {
        const char *line = json_string_value(json_array_get(headers, i));
        if (line != NULL)
            lines[call.header_count++] = line;
    }
    call.method = "PUT";
    call.url = url;
    call.headers = lines;
    enum http_class class = http_client_send(client->http.storage, &call, error);
    client->http.reply = http_client_reply(client->http.storage);
    enum wandb_answer answer = wandb_client_judge(client, what, class, error);
    long code = client->http.reply->status;
    if (answer == WANDB_DONE || code == 0)
        return answer;
    error_set(error, STATUS_IO, "%s: storage answers %ld", what, code);
    return storage_refuses(code) ? WANDB_REFUSED : WANDB_LATER;
}
