// SPDX-License-Identifier: Apache-2.0
// Sends HTTP requests with libcurl and says what their replies mean for trying again.
//
// The handle is set up once; a call sets method, URL, headers, body and time limit. A connection
// that was kept and turns out to be dead is opened anew by libcurl, which reads the body again from
// its beginning.
#include "base/http/client.h"

#include "base/http/handle.h"
#include "base/http/token_file.h"
#include "base/http/url.h"
#include "base/memory.h"
#include "base/text/cut.h"
#include "base/text/redact.h"

#include <errno.h>
#include <nettle/base64.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

enum {
    CLIENT_MAGIC = 0x48434c31,
    UPLOAD_BYTES_PER_SECOND = 128 * 1024,
    CONNECT_MS_MAX = 10000,
    HEADERS_BYTES_MAX = 256 * 1024,
    LOGIN_MAX = 64 * 1024,
    EXCERPT_MAX = 200, // of a body, in a message
};

struct http_client {
    uint32_t magic;
    const struct curl_library *curl;
    struct http_client_options options;
    CURL *handle;
    struct token_file token;
    const struct http_call *call; // under way
    struct slice origin;          // of its URL
    struct curl_slist *sent_headers;
    struct http_client_room room; // for its reply
    uint64_t sent;                // bytes of its body that were handed over
    struct http_reply reply;
    struct buffer headers; // of the reply, as they came
    char problem[CURL_ERROR_SIZE];
};

enum http_class http_class_of(long status) {
    static const struct {
        short status;
        enum http_class class;
    } known[] = {
        {401, HTTP_DEAD},  {403, HTTP_DEAD},  {404, HTTP_DEAD}, {405, HTTP_DEAD},
        {407, HTTP_DEAD},  {408, HTTP_RETRY}, {410, HTTP_DEAD}, {425, HTTP_RETRY},
        {429, HTTP_RETRY}, {501, HTTP_DEAD},  {505, HTTP_DEAD},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].status == status)
            return known[i].class;
    return status < 200   ? HTTP_RETRY
           : status < 300 ? HTTP_OK
           : status < 400 ? HTTP_DEAD
           : status < 500 ? HTTP_REFUSED
                          : HTTP_RETRY;
}

// -- what libcurl calls ---------------------------------------------------------------------------

static struct http_client *client_of(void *context) {
    struct http_client *client = context;
    assert(client != NULL && client->magic == CLIENT_MAGIC);
    return client;
}

static size_t take_body(char *data, size_t size, size_t count, void *context) {
    struct http_client *client = client_of(context);
    struct buffer *body = &client->reply.body;
    struct slice bytes = {data, size * count};
    if (!client->options.refuses_long_replies && bytes.size > body->max - body->size)
        bytes.size = body->max - body->size;
    if (client->room.for_more != NULL && !client->room.for_more(client->room.context, bytes.size))
        body->failed = true;
    buffer_append(body, bytes);
    return body->failed ? 0 : size * count;
}

static size_t take_header(char *data, size_t size, size_t count, void *context) {
    struct http_client *client = client_of(context);
    // The headers of a proxy, or of an interim answer, come before those that count.
    if (size * count > 5 && memcmp(data, "HTTP/", 5) == 0)
        buffer_reset(&client->headers);
    buffer_append(&client->headers, (struct slice){data, size * count});
    return size * count;
}

static uint64_t body_size(const struct http_call *call) {
    return call->file_size > 0 ? call->file_size : call->body.size;
}

static size_t give_body(char *data, size_t size, size_t count, void *context) {
    struct http_client *client = client_of(context);
    const struct http_call *call = client->call;
    assert(client->sent <= body_size(call));
    uint64_t left = body_size(call) - client->sent;
    size_t room = size * count < left ? size * count : (size_t)left;
    ssize_t got = (ssize_t)room;
    if (room > 0 && call->file_size > 0)
        do
            got = pread(call->file, data, room, (off_t)(call->file_offset + client->sent));
        while (got < 0 && errno == EINTR);
    else if (room > 0)
        memcpy(data, call->body.data + client->sent, room);
    if (got < 0 || (got == 0 && room > 0))
        return CURL_READFUNC_ABORT;
    client->sent += (uint64_t)got;
    return (size_t)got;
}

static int seek_body(void *context, curl_off_t offset, int origin) {
    struct http_client *client = client_of(context);
    if (origin != SEEK_SET || offset < 0 || (uint64_t)offset > body_size(client->call))
        return CURL_SEEKFUNC_CANTSEEK;
    client->sent = (uint64_t)offset;
    return CURL_SEEKFUNC_OK;
}

// -- setting up -----------------------------------------------------------------------------------

static enum status options_check(const struct http_client_options *options, struct error *error) {
    const char *problem = options->url == NULL ? NULL : http_url_problem(options->url);
    if (problem != NULL)
        return error_set(error, STATUS_CONFIG, "the URL cannot be requested: %s", problem);
    return http_tls_check(&options->tls, error);
}

// False when libcurl has no memory for a text or does not know an option.
static bool handle_set_up(struct http_client *client) {
    const struct http_client_options *options = &client->options;
    const struct curl_library *curl = client->curl;
    bool bearer = options->bearer_token != NULL || options->bearer_token_file != NULL;
    bool fine = http_handle_set_up(curl, client->handle, &options->tls, options->proxy);
    if (options->user != NULL)
        fine &= curl->easy_setopt(client->handle, CURLOPT_USERNAME, options->user) == CURLE_OK;
    if (options->password != NULL)
        fine &= curl->easy_setopt(client->handle, CURLOPT_PASSWORD, options->password) == CURLE_OK;
    fine &= curl->easy_setopt(client->handle, CURLOPT_HTTPAUTH,
                              (long)(bearer ? CURLAUTH_BEARER : CURLAUTH_BASIC)) == CURLE_OK;
    static const CURLoption contexts[] = {CURLOPT_WRITEDATA, CURLOPT_HEADERDATA, CURLOPT_READDATA,
                                          CURLOPT_SEEKDATA};
    for (size_t i = 0; i < sizeof contexts / sizeof contexts[0]; i++)
        curl->easy_setopt(client->handle, contexts[i], client);
    curl->easy_setopt(client->handle, CURLOPT_ERRORBUFFER, client->problem);
    curl->easy_setopt(client->handle, CURLOPT_WRITEFUNCTION, take_body);
    curl->easy_setopt(client->handle, CURLOPT_HEADERFUNCTION, take_header);
    curl->easy_setopt(client->handle, CURLOPT_READFUNCTION, give_body);
    curl->easy_setopt(client->handle, CURLOPT_SEEKFUNCTION, seek_body);
    if (options->receive_size > 0)
        curl->easy_setopt(client->handle, CURLOPT_BUFFERSIZE, (long)options->receive_size);
    if (options->accept_gzip)
        fine &= curl->easy_setopt(client->handle, CURLOPT_ACCEPT_ENCODING, "gzip") == CURLE_OK;
    return fine;
}

enum status http_client_open(struct http_client **out, const struct http_client_options *options,
                             struct error *error) {
    assert(options->timeout_ns > 0 && options->reply_max > 0);
    assert(options->bearer_token == NULL || options->bearer_token_file == NULL);
    const struct curl_library *curl = NULL;
    enum status status = options_check(options, error);
    if (status == STATUS_OK)
        status = curl_library_load(&curl, error);
    if (status != STATUS_OK)
        return status;
    struct http_client *client = memory_zero(1, sizeof *client);
    client->magic = CLIENT_MAGIC;
    client->curl = curl;
    client->options = *options;
    buffer_init(&client->reply.body, options->reply_max);
    buffer_init(&client->headers, HEADERS_BYTES_MAX);
    if (options->bearer_token_file != NULL)
        status = token_file_open(&client->token, options->bearer_token_file, error);
    client->handle = curl->easy_init();
    if (status == STATUS_OK && (client->handle == NULL || !handle_set_up(client)))
        status = error_set(error, STATUS_OS, "libcurl cannot be set up");
    if (status == STATUS_OK)
        *out = client;
    else
        http_client_close(client);
    return status;
}

void http_client_close(struct http_client *client) {
    if (client == NULL)
        return;
    assert(client->magic == CLIENT_MAGIC && client->call == NULL);
    if (client->handle != NULL)
        client->curl->easy_cleanup(client->handle);
    token_file_close(&client->token);
    buffer_release(&client->reply.body);
    buffer_release(&client->headers);
    client->magic = 0;
    memory_give(client);
}

// -- one call -------------------------------------------------------------------------------------

static bool call_set_up(struct http_client *client, const struct http_call *call, const char *url,
                        struct curl_slist **headers) {
    static const char *const always[] = {"Expect:"};
    const struct curl_library *curl = client->curl;
    const struct http_client_options *options = &client->options;
    uint64_t size = body_size(call);
    assert(*headers == NULL && call == client->call);
    uint64_t limit_ms = options->timeout_ns / 1000000 + size * 1000 / UPLOAD_BYTES_PER_SECOND;
    long limit = limit_ms < 1 ? 1 : limit_ms > INT32_MAX ? INT32_MAX : (long)limit_ms;
    bool has_body = size > 0 || strcmp(call->method, "GET") != 0;
    const char *token =
        options->bearer_token_file != NULL ? client->token.text : options->bearer_token;
    if (!http_headers_append(curl, headers, always, 1) ||
        !http_headers_append(curl, headers, options->headers, options->header_count) ||
        !http_headers_append(curl, headers, call->headers, call->header_count))
        return false;
    curl->easy_setopt(client->handle, has_body ? CURLOPT_UPLOAD : CURLOPT_HTTPGET, 1L);
    curl->easy_setopt(client->handle, CURLOPT_INFILESIZE_LARGE, (curl_off_t)size);
    curl->easy_setopt(client->handle, CURLOPT_HTTPHEADER, *headers);
    curl->easy_setopt(client->handle, CURLOPT_TIMEOUT_MS, limit);
    curl->easy_setopt(client->handle, CURLOPT_CONNECTTIMEOUT_MS,
                      limit < CONNECT_MS_MAX ? limit : (long)CONNECT_MS_MAX);
    return (token == NULL ||
            curl->easy_setopt(client->handle, CURLOPT_XOAUTH2_BEARER, token) == CURLE_OK) &&
           curl->easy_setopt(client->handle, CURLOPT_CUSTOMREQUEST, call->method) == CURLE_OK &&
           curl->easy_setopt(client->handle, CURLOPT_URL, url) == CURLE_OK;
}

// STATUS_OK when there is a reply, whatever its status.
static enum status reply_of(struct http_client *client, CURLcode code, struct slice origin,
                            struct error *error) {
    struct http_reply *reply = &client->reply;
    client->curl->easy_getinfo(client->handle, CURLINFO_RESPONSE_CODE, &reply->status);
    reply->whole = code == CURLE_OK;
    if (reply->body.failed)
        return error_set(error, STATUS_IO, "%.*s: the answer has more than %zu MiB",
                         (int)origin.size, origin.data, client->options.reply_max >> 20);
    // What the server said counts, also when the rest of it got lost on the way.
    if (code == CURLE_OK || reply->status >= 200)
        return STATUS_OK;
    http_client_redact(client, client->problem, sizeof client->problem);
    return error_set(error, STATUS_IO, "%.*s: %s%s", (int)origin.size, origin.data,
                     client->problem[0] != '\0' ? client->problem
                                                : client->curl->easy_strerror(code),
                     http_code_hint(code));
}

static enum http_class judge(struct http_client *client, struct slice origin, struct error *error) {
    const struct http_reply *reply = &client->reply;
    enum http_class class = http_class_of(reply->status);
    if (class == HTTP_OK)
        return class;
    struct error token_error = {.message = ""};
    bool read_again = reply->status == 401 && client->options.bearer_token_file != NULL &&
                      token_file_refresh(&client->token, true, &token_error) == TOKEN_CHANGED;
    char excerpt[EXCERPT_MAX * 4];
    snprintf(excerpt, sizeof excerpt, "%.*s",
             (int)(reply->body.size < sizeof excerpt ? reply->body.size : sizeof excerpt - 1),
             reply->body.size == 0 ? "" : reply->body.data);
    http_client_redact(client, excerpt, sizeof excerpt);
    for (char *c = excerpt; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = ' ';
    error_set(error, STATUS_IO, "%.*s answers %ld%s%.*s%s%s", (int)origin.size, origin.data,
              reply->status, excerpt[0] == '\0' ? "" : ": ", EXCERPT_MAX, excerpt,
              reply->status / 100 == 3 ? "; redirects are not followed" : "",
              read_again ? "; the token file has changed, its new token will be sent" : "");
    return read_again ? HTTP_RETRY : class;
}

bool http_client_begin(struct http_client *client, const struct http_call *call,
                       struct http_client_room room, enum http_class *class, struct error *error) {
    assert(client->magic == CLIENT_MAGIC && client->call == NULL && client->sent_headers == NULL);
    assert(call->method != NULL && strcmp(call->method, "HEAD") != 0);
    assert(call->url != NULL || client->options.url != NULL);
    const char *url = call->url != NULL ? call->url : client->options.url;
    const char *wrong = http_url_problem(url);
    struct http_reply *reply = &client->reply;
    struct error ignored;
    buffer_reset(&reply->body);
    buffer_reset(&client->headers);
    *reply = (struct http_reply){.body = reply->body};
    client->problem[0] = '\0';
    if (wrong != NULL) {
        error_set(error, STATUS_CONFIG, "the URL cannot be requested: %s", wrong);
        *class = HTTP_DEAD;
        return false;
    }
    if (client->options.bearer_token_file != NULL)
        token_file_refresh(&client->token, false, &ignored);
    client->call = call;
    client->room = room;
    client->origin = http_url_origin(url);
    client->sent = 0;
    if (call_set_up(client, call, url, &client->sent_headers))
        return true;
    http_client_let_go(client);
    error_set(error, STATUS_IO, "libcurl is out of memory");
    *class = HTTP_RETRY;
    return false;
}

void *http_client_handle(const struct http_client *client) {
    assert(client->magic == CLIENT_MAGIC && client->call != NULL);
    return client->handle;
}

void http_client_let_go(struct http_client *client) {
    assert(client->magic == CLIENT_MAGIC && client->call != NULL);
    client->curl->easy_setopt(client->handle, CURLOPT_HTTPHEADER, NULL);
    client->curl->slist_free_all(client->sent_headers);
    client->sent_headers = NULL;
    client->call = NULL;
}

enum http_class http_client_end(struct http_client *client, int code, struct error *error) {
    struct http_reply *reply = &client->reply;
    enum status status = reply_of(client, (CURLcode)code, client->origin, error);
    http_client_let_go(client);
    if (status != STATUS_OK) {
        reply->status = 0;
        return HTTP_RETRY;
    }
    reply->retry_after_ns = http_retry_after_ns(client->curl, buffer_slice(&client->headers));
    return judge(client, client->origin, error);
}

enum http_class http_client_send(struct http_client *client, const struct http_call *call,
                                 struct error *error) {
    enum http_class class = HTTP_RETRY;
    if (!http_client_begin(client, call, (struct http_client_room){NULL, NULL}, &class, error))
        return class;
    CURLcode code = client->curl->easy_perform(client->handle);
    return http_client_end(client, (int)code, error);
}

// -- what came back -------------------------------------------------------------------------------

const struct http_reply *http_client_reply(const struct http_client *client) {
    assert(client->magic == CLIENT_MAGIC);
    return &client->reply;
}

void http_client_swap_body(struct http_client *client, struct buffer *other) {
    assert(client->magic == CLIENT_MAGIC && client->call == NULL);
    assert(other->max == client->reply.body.max);
    struct buffer body = client->reply.body;
    buffer_reset(other);
    client->reply.body = *other;
    *other = body;
}

struct slice http_client_header(const struct http_client *client, const char *name) {
    assert(client->magic == CLIENT_MAGIC && name[0] != '\0');
    return http_header_find(buffer_slice(&client->headers), name);
}

// As it is, and as it stands in an Authorization header.
static void redact_login(char *text, size_t capacity, const char *user, const char *password) {
    struct buffer login;
    buffer_init(&login, LOGIN_MAX);
    buffer_append_format(&login, "%s%s%s", user, password == NULL ? "" : ":",
                         password == NULL ? "" : password);
    size_t size = login.size;
    char *encoded = memory_zero(1, BASE64_ENCODE_RAW_LENGTH(size) + 1);
    base64_encode_raw(encoded, size, (const uint8_t *)login.data);
    redact_secret(text, capacity, encoded);
    memory_give(encoded);
    buffer_release(&login);
}

// Texts of a few bytes stand in any sentence by chance.
static void redact_long(char *text, size_t capacity, const char *secret) {
    enum { LONG_ENOUGH = 8 };
    if (strlen(secret) >= LONG_ENOUGH)
        redact_secret(text, capacity, secret);
}

static void redact_proxy(char *text, size_t capacity, const char *proxy) {
    size_t at = 0;
    struct slice user = {NULL, 0};
    if (proxy == NULL || !redact_find(slice_of(proxy), true, &at, &user))
        return;
    char *login = memory_copy_text(user.data, user.size);
    const char *colon = strchr(login, ':');
    redact_secret(text, capacity, colon == NULL ? login : colon + 1);
    redact_login(text, capacity, login, NULL);
    memory_give(login);
}

void http_client_redact(const struct http_client *client, char *text, size_t capacity) {
    assert(client->magic == CLIENT_MAGIC);
    const struct http_client_options *options = &client->options;
    redact_secret(text, capacity, options->password);
    redact_secret(text, capacity, options->bearer_token);
    if (options->bearer_token_file != NULL)
        redact_secret(text, capacity, client->token.text);
    if (options->password != NULL)
        redact_login(text, capacity, options->user == NULL ? "" : options->user, options->password);
    for (size_t i = 0; i < options->header_count; i++) {
        const char *value = strchr(options->headers[i], ':');
        if (value != NULL)
            redact_long(text, capacity, value + 1 + strspn(value + 1, " \t"));
    }
    if (options->url != NULL) {
        struct slice origin = http_url_origin(options->url);
        redact_long(text, capacity, origin.data + origin.size);
    }
    redact_proxy(text, capacity, options->proxy);
}

void http_client_escape(const struct http_client *client, struct buffer *out, const char *text) {
    assert(client->magic == CLIENT_MAGIC);
    char *escaped = client->curl->easy_escape(client->handle, text, (int)strlen(text));
    if (escaped == NULL) {
        out->failed = true;
        return;
    }
    buffer_append_text(out, escaped);
    client->curl->free(escaped);
}
