// SPDX-License-Identifier: Apache-2.0
// GraphQL requests to a W&B server, and what an answer of any kind says of trying again.
#pragma once

#include "base/text/json_write.h"
#include "exporters/wandb/online/http.h"

#include <jansson.h>

enum wandb_answer {
    WANDB_DONE,
    WANDB_LATER,   // may pass later
    WANDB_REFUSED, // the same request will always fail
    WANDB_GONE,    // of upsertBucket: the run was deleted, and its id cannot be used again
};

struct wandb_client {
    struct wandb_http http;
    uint64_t wait_until_ns; // the server asked for no request before (clock_monotonic_ns)
};

// How long a request that failed and may pass later is tried again, when something can be left out.
enum { WANDB_TRIES_MAX = 20 };

// What came of a request named `what`: DONE for 2xx, else a sentence in `error`, which holds that
// of http_client_send.
enum wandb_answer wandb_client_judge(struct wandb_client *client, const char *what,
                                     enum http_class class, struct error *error);

struct wandb_query {
    const char *name;     // of the operation, for messages
    bool conflict_passes; // 409 is tried again, unless it says that the run was deleted
    bool has_input;
    struct json_writer json;
    struct buffer body;
};

// Then the variables are written to `query->json`, key and value; those of a document with $input
// into that one.
void wandb_query_begin(struct wandb_query *query, const char *name, const char *document);
// Sends and releases it. DONE: `*data` is the answer's data, the caller's.
enum wandb_answer wandb_query_send(struct wandb_client *client, struct wandb_query *query,
                                   json_t **data, struct error *error);
// Empty texts become null.
void wandb_query_text(struct wandb_query *query, const char *key, const char *text);
void wandb_query_slice(struct wandb_query *query, const char *key, struct slice text);

// The body of `from` to an address that the server gave; `headers` is a list of "Name:value".
enum wandb_answer wandb_upload_send(struct wandb_client *client, const char *what, const char *url,
                                    const json_t *headers, const struct http_call *from,
                                    struct error *error);

// What stands at a path of keys ("a", "b", NULL), and its text; NULL when there is none. Lives as
// long as `data`.
const json_t *wandb_json_at(const json_t *data, ...) __attribute__((sentinel));
#define wandb_json_text(...) json_string_value(wandb_json_at(__VA_ARGS__))
