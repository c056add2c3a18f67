// SPDX-License-Identifier: Apache-2.0
// Rows and rules of the options that HTTP clients share.
#include "config/client_options.h"

#include "base/http/tls.h"
#include "base/http/token_file.h"
#include "base/http/url.h"

#include <string.h>

const struct option tls_client_rows[4] = {
    OPTION(struct http_client_tls, ca_file, OPTION_TEXT,
           .help = "PEM file with authorities to trust, instead of the system's"),
    OPTION(struct http_client_tls, cert_file, OPTION_TEXT,
           .help = "PEM file with the certificate to show the server"),
    OPTION(struct http_client_tls, key_file, OPTION_TEXT, .help = "PEM file with its private key"),
    OPTION(struct http_client_tls, insecure_skip_verify, OPTION_BOOL, .default_value = "false",
           .help = "accept any certificate of the server; for tests only"),
};

const struct option auth_client_rows[2] = {
    OPTION(struct auth_client_config, bearer_token, OPTION_SECRET,
           .help = "send `Authorization: Bearer` and this text; best as `${env:NAME}` or "
                   "`${file:/path}`"),
    OPTION(struct auth_client_config, bearer_token_file, OPTION_TEXT,
           .help = "the same, from a file that is read again when it changes"),
};

static void check_header(const char *line, struct problem_list *problems) {
    size_t name = strcspn(line, ": \t\r\n");
    if (name == 0 || line[name] != ':' || strpbrk(line, "\r\n") != NULL)
        problem_add(problems, "headers",
                    "the header that begins with \"%.*s\" is not `Name: value` on one line",
                    (int)(name < 40 ? name : 40), line);
}

void http_client_check(const struct http_client_config *config, struct problem_list *problems) {
    const char *wrong = config->endpoint == NULL ? NULL : http_url_problem(config->endpoint);
    if (wrong != NULL)
        problem_add(problems, "endpoint", "the URL cannot be used: %s", wrong);
    for (uint32_t i = 0; i < config->headers.count; i++)
        check_header(config->headers.items[i], problems);
    if (config->tls.cert_file != NULL && config->tls.key_file == NULL)
        problem_add(problems, "tls.cert_file", "a certificate needs its private key: set key_file");
    if (config->tls.key_file != NULL && config->tls.cert_file == NULL)
        problem_add(problems, "tls.key_file", "a private key needs its certificate: set cert_file");
    const char *token = secret_reveal(config->auth.bearer_token);
    if (token == NULL)
        return;
    if (config->auth.bearer_token_file != NULL)
        problem_add(problems, "auth.bearer_token_file",
                    "there is a bearer_token too; keep one of the two");
    if (token[0] == '\0' || strpbrk(token, " \t\r\n") != NULL ||
        strlen(token) > HTTP_TOKEN_SIZE_MAX)
        problem_add(problems, "auth.bearer_token",
                    "a token has 1 to %d bytes and no white space in it", HTTP_TOKEN_SIZE_MAX);
}

struct http_client_options http_client_options_of(const struct http_client_config *config,
                                                  struct duration timeout, size_t reply_max) {
    return (struct http_client_options){
        .url = config->endpoint,
        .proxy = config->proxy_url,
        .tls = config->tls,
        .headers = config->headers.items,
        .header_count = config->headers.count,
        .bearer_token = secret_reveal(config->auth.bearer_token),
        .bearer_token_file = config->auth.bearer_token_file,
        .timeout_ns = (uint64_t)timeout.ns,
        .reply_max = reply_max,
    };
}
