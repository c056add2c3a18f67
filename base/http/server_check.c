// SPDX-License-Identifier: Apache-2.0
// Refuses requests by their headers alone.
//
// In this order: where the body ends, Host, client certificate, token, path, method, content type,
// content encoding, length, and what the owner of the listener says (`admit`).
#include "base/http/server_parts.h"
#include "base/log.h"
#include "base/text/cut.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void exchange_refuse(struct http_exchange *exchange, int status, const char *code,
                     const char *format, ...) {
    assert(status >= 400 && code != NULL);
    exchange->refusal.status = status;
    exchange->refusal.code = code;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(exchange->refusal.message, sizeof exchange->refusal.message, format, arguments);
    va_end(arguments);
}

const char *http_request_header(const struct http_request *request, const char *name) {
    struct http_exchange *exchange = request->exchange;
    assert(exchange->magic == EXCHANGE_MAGIC && exchange->native != NULL);
    return exchange->server->library->lookup_connection_value(exchange->native, MHD_HEADER_KIND,
                                                              name);
}

uint64_t exchange_claimed_length(const struct http_exchange *exchange, bool *chunked) {
    *chunked = http_request_header(&exchange->request, "Transfer-Encoding") != NULL;
    const char *text = http_request_header(&exchange->request, "Content-Length");
    // libmicrohttpd has refused what is no number.
    return *chunked || text == NULL ? 0 : strtoull(text, NULL, 10);
}

// -- where the body ends ------------------------------------------------------------------------

struct framing {
    uint32_t lengths, encodings;
    bool chunked; // and nothing else
    bool strange; // a name that is none
};

static bool is_token(const char *name) {
    static const char letters[] =
        "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
        "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    return name[0] != '\0' && name[strspn(name, letters)] == '\0';
}

static enum MHD_Result look_at_header(void *context, enum MHD_ValueKind kind, const char *name,
                                      const char *value) {
    (void)kind;
    struct framing *framing = context;
    framing->strange = framing->strange || !is_token(name);
    if (strcasecmp(name, "Content-Length") == 0)
        framing->lengths++;
    if (strcasecmp(name, "Transfer-Encoding") == 0) {
        framing->encodings++;
        framing->chunked = value != NULL && strcasecmp(value, "chunked") == 0;
    }
    return MHD_YES;
}

// A proxy in front and we must not differ on where this request ends and the next begins (RFC 9112,
// 5.1, 6.3 and 11.2): what can be read in two ways is refused, and nothing behind it is read.
static void check_framing(struct http_exchange *exchange) {
    struct framing framing = {0};
    (void)exchange->server->library->get_connection_values(exchange->native, MHD_HEADER_KIND,
                                                           look_at_header, &framing);
    bool plain = framing.lengths + framing.encodings <= 1;
    if (plain && (framing.encodings == 0 || framing.chunked) && !framing.strange)
        return;
    if (framing.strange)
        exchange_refuse(exchange, 400, "header_name",
                        "The name of a header has a character that none may have, such as a blank "
                        "in front of its colon.");
    else
        exchange_refuse(exchange, 400, "ambiguous_length",
                        "The request says more than once how long its body is, or in a way that is "
                        "not known: send one Content-Length, or Transfer-Encoding: chunked.");
    exchange->refusal.close = true;
}

// -- who asks -----------------------------------------------------------------------------------

enum { GNUTLS_NO_CERTIFICATE = -49 }; // GNUTLS_E_NO_CERTIFICATE_FOUND

// Who shows no certificate, or that of somebody else, gets as far as here, since a handshake that
// fails tells a client nothing but that it failed.
static void check_client(struct http_exchange *exchange) {
    struct http_server *server = exchange->server;
    struct http_connection *connection = exchange->connection;
    if (server->tls == NULL)
        return;
    if (!connection->client_checked) {
        const union MHD_ConnectionInfo *info = server->library->get_connection_info(
            exchange->native, MHD_CONNECTION_INFO_GNUTLS_SESSION);
        unsigned wrong = 1;
        int verified =
            info == NULL ? -1 : server->tls->certificate_verify_peers2(info->tls_session, &wrong);
        connection->client_checked = true;
        connection->client_right = verified == 0 && wrong == 0;
        connection->client_shown = verified != GNUTLS_NO_CERTIFICATE;
        if (!connection->client_right)
            log_write(LOG_WARN, (struct log_site){"C2110", server->options.site},
                      connection->client_shown
                          ? "a client was refused: its certificate is not signed by an authority "
                            "of %s, or is not valid now"
                          : "a client was refused: it shows no certificate, and one that an "
                            "authority of %s signed is needed",
                      server->options.tls.client_ca_file);
    }
    if (connection->client_right)
        return;
    exchange_refuse(exchange, 403, "client_certificate",
                    connection->client_shown
                        ? "The client's certificate is not signed by an authority that is trusted "
                          "here, or is not valid now."
                        : "A client certificate is needed, and none was shown: give one that an "
                          "authority that is trusted here has signed.");
}

static void check_token(struct http_exchange *exchange) {
    struct http_server *server = exchange->server;
    const char *given = http_request_header(&exchange->request, "Authorization");
    if (!token_shown(&server->token, given, server->options.basic, server->options.site))
        exchange_refuse(exchange, 401, "unauthorized",
                        given == NULL && server->options.basic
                            ? "A token is needed: give it as the password, with any user, or send "
                              "Authorization: Bearer TOKEN."
                        : given == NULL
                            ? "A bearer token is needed: send Authorization: Bearer TOKEN."
                            : "The token in Authorization is not the right one.");
}

// Whether `host`, with or without a port, names this machine by itself.
static bool is_local_name(const char *host) {
    size_t size = strcspn(host, ":");
    if (host[0] == '[')
        size = strcspn(host, "]") + (strchr(host, ']') != NULL ? 1 : 0);
    const char *port = host + size;
    if (port[0] == ':' && port[1 + strspn(port + 1, "0123456789")] != '\0')
        return false;
    if (port[0] != ':' && port[0] != '\0')
        return false;
    char name[64];
    if (size == 0 || size >= sizeof name)
        return false;
    memcpy(name, host, size);
    name[size] = '\0';
    struct in_addr address;
    if (inet_pton(AF_INET, name, &address) == 1)
        return ntohl(address.s_addr) >> 24 == 127;
    return strcasecmp(name, "localhost") == 0 || strcmp(name, "[::1]") == 0;
}

static void check_name(struct http_exchange *exchange) {
    if (!exchange->server->options.local_names)
        return;
    const char *host = http_request_header(&exchange->request, "Host");
    if (host == NULL || !is_local_name(host))
        exchange_refuse(exchange, 403, "host",
                        "This address answers to localhost, 127.0.0.1 and [::1] only: ask for it "
                        "by one of these names.");
}

// -- what it asks for ---------------------------------------------------------------------------

enum { NAMED_MAX = 80 }; // bytes of what a client wrote, in its answer

// Whether `word` is one of the words in `list`, which are separated by spaces. In any case.
static bool is_listed(const char *list, struct slice word) {
    while (list != NULL && *list != '\0') {
        size_t size = strcspn(list, " ");
        if (size == word.size && strncasecmp(list, word.data, size) == 0)
            return true;
        list += size;
        list += *list == ' ';
    }
    return false;
}

// Names what was asked for, and what is there.
static void refuse_path(struct http_exchange *exchange) {
    const struct http_server_options *options = &exchange->server->options;
    char served[HTTP_MESSAGE_MAX] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < options->path_count && used < sizeof served; i++)
        used += (size_t)snprintf(served + used, sizeof served - used, "%s%s %s", i == 0 ? "" : ", ",
                                 options->paths[i].methods, options->paths[i].path);
    exchange_refuse(exchange, 404, "not_found", "There is nothing at %.*s; what is there: %s.",
                    NAMED_MAX, exchange->request.path, served);
}

static void check_path(struct http_exchange *exchange) {
    const char *url = exchange->request.path;
    const struct http_server_options *options = &exchange->server->options;
    const struct http_path *rest = NULL;
    for (uint32_t i = 0; i < options->path_count && exchange->path == NULL; i++) {
        if (options->paths[i].path[0] == '\0')
            rest = &options->paths[i];
        else if (strcmp(options->paths[i].path, url) == 0)
            exchange->path = &options->paths[i];
    }
    if (exchange->path == NULL)
        exchange->path = rest;
    if (exchange->path == NULL)
        refuse_path(exchange);
}

static void check_method(struct http_exchange *exchange) {
    const char *method = exchange->request.method;
    assert(exchange->path != NULL);
    const char *methods = exchange->path->methods;
    bool is_head = strcmp(method, "HEAD") == 0;
    if (!is_listed(methods, slice_of(method)) && !(is_head && is_listed(methods, SLICE("GET"))))
        exchange_refuse(exchange, 405, "method_not_allowed",
                        "This path takes %s, not the method that was used.", methods);
}

// "application/json; charset=utf-8" without what follows the semicolon and the spaces around.
static struct slice media_type(const char *text) {
    return text_trim(text_until(slice_of(text), ';'));
}

static void check_content(struct http_exchange *exchange) {
    const char *type = http_request_header(&exchange->request, "Content-Type");
    const char *taken = exchange->path->content_types;
    if (taken != NULL && (type == NULL || !is_listed(taken, media_type(type)))) {
        if (type == NULL)
            exchange_refuse(exchange, 415, "unsupported_media_type",
                            "The request has no Content-Type; this path takes %s.", taken);
        else
            exchange_refuse(exchange, 415, "unsupported_media_type",
                            "The request's Content-Type is \"%.*s\"; this path takes %s.",
                            NAMED_MAX, type, taken);
        return;
    }
    const char *encoding = http_request_header(&exchange->request, "Content-Encoding");
    if (encoding == NULL || encoding[0] == '\0')
        return;
    struct slice name = media_type(encoding);
    exchange->gzip = is_listed("gzip x-gzip", name);
    if (!exchange->gzip && !is_listed("identity", name))
        exchange_refuse(exchange, 415, "unsupported_encoding",
                        "The request's Content-Encoding is \"%.*s\"; gzip and identity are "
                        "taken.",
                        NAMED_MAX, encoding);
}

static void check_length(struct http_exchange *exchange) {
    const struct http_server_options *options = &exchange->server->options;
    bool chunked;
    uint64_t length = exchange_claimed_length(exchange, &chunked);
    if (length > options->max_request_bytes) {
        exchange_refuse(exchange, 413, "too_large",
                        "The body has %llu bytes, %llu are allowed: send less in one request.",
                        (unsigned long long)length, (unsigned long long)options->max_request_bytes);
        exchange->refusal.close = true;
        return;
    }
    uint32_t retry_after_s = 0;
    int status =
        options->admit == NULL ? 0 : options->admit(options->admit_context, length, &retry_after_s);
    if (status == 0)
        return;
    exchange_refuse(exchange, status, status == 429 ? "too_many_requests" : "busy",
                    status == 429 ? "This client sends more than its share: try again later."
                                  : "Nothing can be taken right now: try again later.");
    exchange->response.retry_after_s = retry_after_s;
}

void exchange_check(struct http_exchange *exchange) {
    static void (*const before[])(struct http_exchange *) = {check_framing, check_name,
                                                             check_client, check_token};
    static void (*const after[])(struct http_exchange *) = {check_method, check_content,
                                                            check_length};
    struct http_refusal *refusal = &exchange->refusal;
    assert(refusal->status == 0 && exchange->path == NULL);
    for (int i = 0; i < 4 && refusal->status == 0; i++)
        before[i](exchange);
    // The path is known also when something is refused, so that the answer can be of its kind.
    struct http_refusal first = *refusal;
    check_path(exchange);
    if (first.status != 0)
        *refusal = first;
    for (int i = 0; i < 3 && refusal->status == 0; i++)
        after[i](exchange);
}
