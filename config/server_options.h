// SPDX-License-Identifier: Apache-2.0
// Options that all listeners share: where, with which certificate, for whom, and the bounds.
#pragma once

#include "config/option.h"

struct tls_server_config {
    const char *cert_file;
    const char *key_file;
    const char *client_ca_file;
};

struct auth_server_config {
    struct secret bearer_token;
    const char *bearer_token_file;
};

extern const struct option tls_server_rows[3];
extern const struct option auth_server_rows[2];

// Rows for fields `tls` and `auth` of these types in the struct `config`.
#define SERVER_SECURITY_OPTIONS(config)                                                            \
    OPTION(config, tls, OPTION_GROUP, .rows = tls_server_rows,                                     \
           .row_count = OPTION_COUNT(tls_server_rows),                                             \
           .help = "serve HTTPS; without it plain HTTP"),                                          \
        OPTION(config, auth, OPTION_GROUP, .rows = auth_server_rows,                               \
               .row_count = OPTION_COUNT(auth_server_rows), .help = "what clients must show")

// Adds a problem under `key` when `endpoint` is none ("HOST:PORT", "[V6]:PORT", "unix:/PATH").
void endpoint_check(const char *endpoint, const char *key, struct problem_list *problems);
// Adds problems for half a TLS pair, or two kinds of token.
void server_security_check(const struct tls_server_config *tls,
                           const struct auth_server_config *auth, struct problem_list *problems);
// Whether only this machine can reach it.
bool endpoint_is_local(const char *endpoint);
