// SPDX-License-Identifier: Apache-2.0
// Opens the clients of a W&B connection and posts JSON to its server. At most 64 MiB of a reply of
// the server are taken, and the first 4 KiB of storage's.
#include "exporters/wandb/online/http.h"

#include "base/http/url.h"
#include "base/log.h"
#include "config/option.h"
#include "exporters/wandb/key.h"

enum { REPLY_MAX = 64 << 20, STORAGE_REPLY_MAX = 4096, URL_MAX = 64 * 1024 };

enum status wandb_http_open(struct wandb_http *http, const struct wandb_config *config,
                            const char *site, struct error *error) {
    *http = (struct wandb_http){.config = config};
    if (http_url_problem(config->base_url) != NULL)
        return error_set(error, STATUS_CONFIG, "base_url cannot be used: %s",
                         http_url_problem(config->base_url));
    if (http_url_is_exposed(config->base_url))
        log_write(LOG_WARN, (struct log_site){"C3403", site},
                  "the API key goes to %s unencrypted; use https:// where the server has it",
                  config->base_url);
    enum status status = wandb_key_find(&http->key, config->api_key, config->base_url, error);
    struct http_client_options options = {.proxy = config->proxy,
                                          .tls = {.ca_file = config->ca_file},
                                          .timeout_ns = (uint64_t)config->sending.timeout.ns,
                                          .reply_max = STORAGE_REPLY_MAX};
    if (status == STATUS_OK)
        status = http_client_open(&http->storage, &options, error);
    options.user = "api";
    options.password = secret_reveal(http->key);
    options.reply_max = REPLY_MAX;
    options.refuses_long_replies = true;
    if (status == STATUS_OK)
        status = http_client_open(&http->server, &options, error);
    if (status != STATUS_OK)
        wandb_http_close(http);
    return status;
}

void wandb_http_close(struct wandb_http *http) {
    http_client_close(http->server);
    http_client_close(http->storage);
    wandb_key_release(&http->key);
    *http = (struct wandb_http){0};
}

enum http_class wandb_http_post(struct wandb_http *http, const char *path, struct slice body,
                                struct error *error) {
    assert(path[0] == '/' && http->server != NULL);
    static const char *const headers[] = {"Content-Type: application/json"};
    struct buffer url;
    buffer_init(&url, URL_MAX);
    buffer_append_text(&url, http->config->base_url);
    buffer_append_text(&url, path);
    buffer_append_char(&url, '\0');
    struct http_call call = {
        .method = "POST", .url = url.data, .headers = headers, .header_count = 1, .body = body};
    enum http_class class = HTTP_DEAD;
    http->reply = http_client_reply(http->server);
    if (url.failed)
        error_set(error, STATUS_CONFIG, "the address of the run is too long");
    else
        class = http_client_send(http->server, &call, error);
    buffer_release(&url);
    return class;
}
