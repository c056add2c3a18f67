// SPDX-License-Identifier: Apache-2.0
// What does the server say to a request, and is there use in saying it again?
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

const char *wandb_json_text(const json_t *data, ...) {
    va_list keys;
    va_start(keys, data);
    for (const char *key; (key = va_arg(keys, const char *)) != NULL;)
        data = json_object_get(data, key);
    va_end(keys);
    return json_string_value(data);
}

// -- judging --------------------------------------------------------------------------------------

static bool status_refuses(long status) {
    static const short statuses[] = {400, 401, 403, 404, 409, 410, 413, 422, 501};
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++)
        if (status == statuses[i])
            return true;
    return status >= 300 && status < 400;
}

static const char *hint_of(long status) {
    switch (status) {
    case 401:
    case 403:
        return "; the API key must be valid and may write to the project (api_key, entity)";
    case 404:
        return "; entity and project must exist for this key (entity, project, base_url)";
    case 413:
        return "; the server takes no request of this size";
    case 409:
        return "; another client may be writing to the run, or it has ended";
    default:
        return status >= 300 && status < 400 ? "; redirects are not followed, give base_url as "
                                               "the place it leads to"
                                             : "";
    }
}

enum { WORDS_MAX = 256, WORDS_READ_MAX = 2048 };

// What the server itself says, cut; "" when it is nothing that can be read. Some repeat the request
// with its headers: the key does not get into a log that way.
static void server_words(const struct wandb_client *client, char words[WORDS_MAX]) {
    const struct wandb_reply *reply = wandb_http_reply(client->http);
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
        wandb_http_redact(client->http, read, sizeof read);
        snprintf(words, WORDS_MAX, ": %.250s", read);
    }
    for (char *c = words; *c != '\0'; c++)
        if ((unsigned char)*c < ' ')
            *c = ' ';
    json_decref(body);
}

enum wandb_answer wandb_client_judge(struct wandb_client *client, const char *what,
                                     enum status status, struct error *error) {
    if (status != STATUS_OK) {
        struct error inner = *error;
        error_set(error, status, "%s: %.900s", what, inner.message);
        return status == STATUS_CONFIG ? WANDB_REFUSED : WANDB_LATER;
    }
    const struct wandb_reply *reply = wandb_http_reply(client->http);
    if (reply->status >= 200 && reply->status < 300)
        return WANDB_DONE;
    char words[WORDS_MAX];
    server_words(client, words);
    error_set(error, STATUS_IO, "%s: the server answers %ld%s%s", what, reply->status, words,
              hint_of(reply->status));
    if (status_refuses(reply->status))
        return WANDB_REFUSED;
    if (reply->retry_after_ns > 0)
        client->wait_until_ns = clock_monotonic_ns() + reply->retry_after_ns;
    return WANDB_LATER;
}

// -- queries --------------------------------------------------------------------------------------

void wandb_query_begin(struct wandb_query *query, const char *name, const char *document) {
    *query = (struct wandb_query){.name = name};
    buffer_init(&query->body, QUERY_MAX);
    json_begin(&query->json, &query->body, 0);
    json_object_open(&query->json);
    json_key(&query->json, "query");
    json_text(&query->json, document);
    json_key(&query->json, "variables");
    json_object_open(&query->json);
}

void wandb_query_text(struct wandb_query *query, const char *key, const char *text) {
    json_key(&query->json, key);
    if (text == NULL || text[0] == '\0')
        json_put_null(&query->json);
    else
        json_text(&query->json, text);
}

// Takes the answer apart. GraphQL's own errors come with status 200.
static enum wandb_answer data_of(struct wandb_client *client, const struct wandb_query *query,
                                 json_t **data, struct error *error) {
    const struct wandb_reply *reply = wandb_http_reply(client->http);
    char words[WORDS_MAX];
    json_t *body = NULL;
    if (reply->whole && reply->body.size > 0)
        body = json_loadb(reply->body.data, reply->body.size, JSON_ALLOW_NUL, NULL);
    if (!json_is_object(body)) {
        json_decref(body);
        error_set(error, STATUS_IO,
                  "%s: the answer is cut off or not JSON (does base_url lead to "
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

enum wandb_answer wandb_query_send(struct wandb_client *client, struct wandb_query *query,
                                   json_t **data, struct error *error) {
    enum wandb_answer answer = WANDB_REFUSED;
    *data = NULL;
    json_object_close(&query->json);
    json_object_close(&query->json);
    if (query->body.failed) {
        error_set(error, STATUS_LIMIT, "%s: the request has more than %d MiB", query->name,
                  QUERY_MAX >> 20);
    } else {
        enum status status =
            wandb_http_post(client->http, "/graphql", buffer_slice(&query->body), error);
        answer = wandb_client_judge(client, query->name, status, error);
        if (answer == WANDB_REFUSED && query->conflict_passes &&
            wandb_http_reply(client->http)->status == 409)
            answer = WANDB_LATER;
        if (answer == WANDB_DONE)
            answer = data_of(client, query, data, error);
    }
    buffer_release(&query->body);
    return answer;
}

// -- uploads --------------------------------------------------------------------------------------

static bool storage_refuses(long status) {
    return (status >= 300 && status < 500 && status != 408 && status != 429) || status == 501;
}

enum wandb_answer wandb_upload_send(struct wandb_client *client, const char *what, const char *url,
                                    const json_t *headers, const struct wandb_upload *from,
                                    struct error *error) {
    struct wandb_upload upload = *from;
    const char *lines[HEADERS_MAX];
    size_t count = json_array_size(headers);
    if (count > HEADERS_MAX) {
        error_set(error, STATUS_BAD_DATA, "%s: the server gives %zu headers, at most %d are taken",
                  what, count, HEADERS_MAX);
        return WANDB_REFUSED;
    }
    upload.header_count = 0;
    for (size_t i = 0; i < count; i++) {
        const char *line = json_string_value(json_array_get(headers, i));
        // A line end in it would make two headers of one.
        if (line != NULL && strchr(line, ':') != NULL && strpbrk(line, "\r\n") == NULL)
            lines[upload.header_count++] = line;
    }
    upload.url = url;
    upload.headers = lines;
    enum status status = wandb_http_put(client->http, &upload, error);
    enum wandb_answer answer = wandb_client_judge(client, what, status, error);
    if (answer == WANDB_DONE || status != STATUS_OK)
        return answer;
    long code = wandb_http_reply(client->http)->status;
    error_set(error, STATUS_IO, "%s: storage answers %ld", what, code);
    return storage_refuses(code) ? WANDB_REFUSED : WANDB_LATER;
}
