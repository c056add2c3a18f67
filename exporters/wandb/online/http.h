// SPDX-License-Identifier: Apache-2.0
// The two HTTP clients of a W&B connection: one for the server, which shows the API key, and one
// for signed storage URLs, which never sees it. One thread.
#pragma once

#include "base/http/client.h"
#include "config/option.h"
#include "exporters/wandb/options.h"

struct wandb_http {
    const struct wandb_config *config;
    struct secret key;
    struct http_client *server, *storage;
    const struct http_reply *reply; // of the last request, of either
};

// Everything is opened or nothing. `site` is for logs.
enum status wandb_http_open(struct wandb_http *http, const struct wandb_config *config,
                            const char *site, struct error *error) MUST_USE;
void wandb_http_close(struct wandb_http *http); // also after a failed open

// JSON to a path of the server. As http_client_send; look at http->reply.
enum http_class wandb_http_post(struct wandb_http *http, const char *path, struct slice body,
                                struct error *error);
