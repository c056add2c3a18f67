// SPDX-License-Identifier: Apache-2.0
#include "config/server_options.h"

#include "base/http/endpoint.h"

#include <string.h>

const struct option tls_server_rows[3] = {
    OPTION(struct tls_server_config, cert_file, OPTION_TEXT,
           .help = "PEM file with the server's certificate and those between it and the root"),
    OPTION(struct tls_server_config, key_file, OPTION_TEXT,
           .help = "PEM file with its private key"),
    OPTION(
        struct tls_server_config, client_ca_file, OPTION_TEXT,
        .help =
            "PEM file with authorities; clients must show a certificate that one of them signed"),
};

const struct option auth_server_rows[2] = {
    OPTION(
        struct auth_server_config, bearer_token, OPTION_SECRET,
        .help =
            "clients must send `Authorization: Bearer` and this text; write `${file:/path}` rather "
            "than the text itself"),
    OPTION(struct auth_server_config, bearer_token_file, OPTION_TEXT,
           .help = "the same, in a file that is read again when it changes"),
};

void endpoint_check(const char *endpoint, const char *key, struct problem_list *problems) {
    struct endpoint parsed;
    const char *wrong = endpoint == NULL ? "it is empty" : endpoint_parse(endpoint, &parsed);
    if (endpoint != NULL && endpoint[0] != '\0' && endpoint[strspn(endpoint, "0123456789")] == '\0')
        problem_add(problems, key,
                    "%s is a port without a host; write \"127.0.0.1:%s\" for this machine only, or "
                    "\"0.0.0.0:%s\" for all its addresses",
                    endpoint, endpoint, endpoint);
    else if (wrong != NULL)
        problem_add(problems, key, "\"%s\" cannot be used: %s", endpoint == NULL ? "" : endpoint,
                    wrong);
}

static void check_path(const char *path, const char *key, struct problem_list *problems) {
    if (path != NULL && path[0] == '\0')
        problem_add(problems, key, "the text is empty; leave the key out or name a file");
}

void server_security_check(const struct tls_server_config *tls,
                           const struct auth_server_config *auth, struct problem_list *problems) {
    if (tls->cert_file != NULL && tls->key_file == NULL)
        problem_add(problems, "tls.cert_file", "a certificate needs its private key: set key_file");
    if (tls->key_file != NULL && tls->cert_file == NULL)
        problem_add(problems, "tls.key_file", "a private key needs its certificate: set cert_file");
    if (tls->client_ca_file != NULL && tls->cert_file == NULL && tls->key_file == NULL)
        problem_add(problems, "tls.client_ca_file",
                    "clients show certificates over TLS only: set cert_file and key_file too");
    check_path(tls->cert_file, "tls.cert_file", problems);
    check_path(tls->key_file, "tls.key_file", problems);
    check_path(tls->client_ca_file, "tls.client_ca_file", problems);
    check_path(auth->bearer_token_file, "auth.bearer_token_file", problems);
    const char *token = secret_reveal(auth->bearer_token);
    if (token != NULL && auth->bearer_token_file != NULL)
        problem_add(problems, "auth.bearer_token_file",
                    "there is a bearer_token too; keep one of the two");
    if (token != NULL && token[0] == '\0')
        problem_add(problems, "auth.bearer_token",
                    "the token is empty; leave the key out or give it a text");
    if (token != NULL && strpbrk(token, " \t\r\n") != NULL)
        problem_add(problems, "auth.bearer_token",
                    "the token holds white space, which no client can send");
    if ((token != NULL && strlen(token) >= 4096))
        problem_add(problems, "auth.bearer_token", "the token is longer than 4095 bytes");
}

bool endpoint_is_local(const char *endpoint) {
    struct endpoint parsed;
    return endpoint_parse(endpoint, &parsed) == NULL && endpoint_is_loopback(&parsed);
}
