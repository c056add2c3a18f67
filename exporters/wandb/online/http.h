// SPDX-License-Identifier: Apache-2.0
// One HTTP request at a time, on two libcurl handles: one for the W&B server, which has the key,
// and one for signed storage URLs, which never sees it.
//
// TLS certificates are checked, redirects are not followed, nothing but http and https is spoken.
// Proxies are those of the environment (HTTPS_PROXY, NO_PROXY …) unless one is configured; trusted
// certificates those of `ca_file`, $CURL_CA_BUNDLE, $SSL_CERT_FILE or the system. One thread.
#pragma once

#include "base/buffer.h"
#include "exporters/wandb/wandb.h"

struct wandb_http; // opaque

// What came back. Valid until the next request.
struct wandb_reply {
    long status; // HTTP status
    bool whole;  // false: the connection broke, or time was up, within the body
    struct buffer body;
    uint64_t retry_after_ns; // 0: it did not say
    double limit_remaining;  // RateLimit-Remaining, RateLimit-Reset; below 0: it did not say
    double limit_reset_s;
};

// Bytes on their way to a storage URL: from memory, or from a place in a file.
struct wandb_upload {
    const char *url;            // exactly as the server gave it
    const char *const *headers; // "Name: value"
    size_t header_count;
    struct slice bytes; // of memory, when `file` is negative
    int file;
    uint64_t offset, size; // in `file`
};

enum status wandb_http_open(struct wandb_http **http, const struct wandb_config *config,
                            const char *site, struct error *error) MUST_USE;
void wandb_http_close(struct wandb_http *http); // NULL is fine

// STATUS_OK when any status came back: look at `reply`. STATUS_IO when none did.
enum status wandb_http_post(struct wandb_http *http, const char *path, struct slice body,
                            struct error *error) MUST_USE;
enum status wandb_http_put(struct wandb_http *http, const struct wandb_upload *upload,
                           struct error *error) MUST_USE;
const struct wandb_reply *wandb_http_reply(const struct wandb_http *http);
// Takes what the key, or the proxy's user and password, look like in a request out of a text that
// came back. In place, in a buffer of `capacity` bytes.
void wandb_http_redact(const struct wandb_http *http, char *text, size_t capacity);
// Percent-encoded for a part of a path.
void wandb_http_escape(const struct wandb_http *http, struct buffer *out, const char *text);
