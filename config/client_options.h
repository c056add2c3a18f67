// SPDX-License-Identifier: Apache-2.0
// Options of components that send HTTP requests: where to, with which headers, as whom, and whom to
// trust. Names follow the OpenTelemetry Collector's confighttp and configtls.
#pragma once

#include "base/http/client.h"
#include "base/http/tls.h"
#include "config/option.h"

struct auth_client_config {
    struct secret bearer_token;
    const char *bearer_token_file;
};

struct http_client_config {
    const char *endpoint; // its path may be a secret
    struct text_list headers;
    const char *proxy_url;
    struct http_client_tls tls;
    struct auth_client_config auth;
};

extern const struct option tls_client_rows[4];
extern const struct option auth_client_rows[2];

// The rows for a `struct http_client_config` that is the field `field` of `owner`.
// NOLINTBEGIN(bugprone-macro-parentheses): names of types and members take none
#define HTTP_CLIENT_OPTIONS(owner, field)                                                          \
    OPTION_IN(owner, field, endpoint, OPTION_TEXT, .hidden = true, .required = true,               \
              .help =                                                                              \
                  "URL to send to, http:// or https://; no message shows what follows its "        \
                  "host"),                                                                         \
        OPTION_IN(owner, field, headers, OPTION_TEXT_LIST, .hidden = true,                         \
                  .help = "headers of each request, `Name: value`"),                               \
        OPTION_IN(owner, field, proxy_url, OPTION_TEXT, .address = true,                           \
                  .help = "proxy, instead of that of the environment (https_proxy, no_proxy)"),    \
        OPTION_IN(owner, field, tls, OPTION_GROUP, .rows = tls_client_rows,                        \
                  .row_count = OPTION_COUNT(tls_client_rows),                                      \
                  .help = "whom to trust, and what to show"),                                      \
        OPTION_IN(owner, field, auth, OPTION_GROUP, .rows = auth_client_rows,                      \
                  .row_count = OPTION_COUNT(auth_client_rows), .help = "what to show the server")
// NOLINTEND(bugprone-macro-parentheses)

// Adds problems for a URL that cannot be requested, half a TLS pair, two kinds of token, and lines
// that are no header. The rows' keys stand at the component's top level.
void http_client_check(const struct http_client_config *config, struct problem_list *problems);
// The client's options. `timeout` is that of the component's sending_config; a reply is kept up to
// `reply_max` bytes. Texts are those of `config`.
struct http_client_options http_client_options_of(const struct http_client_config *config,
                                                  struct duration timeout, size_t reply_max);
