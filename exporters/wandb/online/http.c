// SPDX-License-Identifier: Apache-2.0
// What does a server answer to one request?
//
// Both handles are set up once; a request changes address, body and time limit. What is longer gets
// more time. At most 64 MiB of an answer of the server is taken, and the first 4 KiB of
// storage's. No message holds more of an address than scheme and host, since signed addresses are
// keys themselves.
#include "exporters/wandb/online/http.h"

#include "base/clock.h"
#include "base/http/curl_library.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text/redact.h"
#include "exporters/wandb/key.h"

#include <errno.h>
#include <math.h>
#include <nettle/base64.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

enum { REPLY_MAX = 64 << 20, STORAGE_REPLY_MAX = 4096, UPLOAD_BYTES_PER_SECOND = 128 * 1024 };
enum { LOGIN_MAX = 64 << 10 };
static const double WAIT_MAX_S = 3600;

struct wandb_http {
    const struct curl_library *curl;
    const struct wandb_config *config;
    struct secret key;
    CURL *server, *storage;
    struct curl_slist *server_headers;
    struct wandb_reply reply;
    bool keeps_all;                    // of the reply; else what does not fit is dropped
    const struct wandb_upload *upload; // under way
    uint64_t uploaded;                 // bytes of it that were handed over
    char problem[CURL_ERROR_SIZE];     // what libcurl says went wrong
};

// -- what comes back ------------------------------------------------------------------------------

static size_t take_body(char *data, size_t size, size_t count, void *context) {
    struct wandb_http *http = context;
    struct buffer *body = &http->reply.body;
    struct slice bytes = {data, size * count};
    if (!http->keeps_all && bytes.size > body->max - body->size)
        bytes.size = body->max - body->size;
    buffer_append(body, bytes);
    return body->failed ? 0 : size * count;
}

// The value when `line` is that header, else an empty text.
static struct slice header_value(struct slice line, const char *name) {
    size_t length = strlen(name);
    if (line.size <= length || line.data[length] != ':' ||
        strncasecmp(line.data, name, length) != 0)
        return (struct slice){NULL, 0};
    const char *begin = line.data + length + 1, *end = line.data + line.size;
    while (begin < end && (*begin == ' ' || *begin == '\t'))
        begin++;
    while (end > begin && strchr(" \t\r\n", end[-1]) != NULL)
        end--;
    return (struct slice){begin, (size_t)(end - begin)};
}

// Not negative and not absurd; negative: it is no such number.
static double number_of(const char *text) {
    char *end;
    double number = strtod(text, &end);
    return *text == '\0' || *end != '\0' || !(number >= 0) || isinf(number) ? -1 : number;
}

// Seconds, or a date.
static uint64_t wait_of(const struct wandb_http *http, const char *text) {
    double seconds = number_of(text);
    if (seconds < 0) {
        time_t then = http->curl->getdate(text, NULL);
        if (then == -1)
            return 0;
        seconds = difftime(then, (time_t)(clock_unix_ns() / 1000000000));
    }
    if (!(seconds > 0))
        return 0;
    return (uint64_t)((seconds < WAIT_MAX_S ? seconds : WAIT_MAX_S) * 1e9);
}

static void reply_reset(struct wandb_reply *reply) {
    buffer_reset(&reply->body);
    reply->status = 0;
    reply->whole = false;
    reply->retry_after_ns = 0;
    reply->limit_remaining = reply->limit_reset_s = -1;
}

static size_t take_header(char *data, size_t size, size_t count, void *context) {
    struct wandb_http *http = context;
    struct slice line = {data, size * count}, value;
    char text[128];
    // A proxy's answer, or an interim one, stands before the one that counts.
    if (line.size > 5 && memcmp(line.data, "HTTP/", 5) == 0) {
        reply_reset(&http->reply);
        return line.size;
    }
    static const char *const names[] = {"Retry-After", "RateLimit-Remaining", "RateLimit-Reset"};
    for (unsigned i = 0; i < 3; i++) {
        value = header_value(line, names[i]);
        if (value.size == 0 || value.size >= sizeof text)
            continue;
        memcpy(text, value.data, value.size);
        text[value.size] = '\0';
        if (i == 0)
            http->reply.retry_after_ns = wait_of(http, text);
        else
            *(i == 1 ? &http->reply.limit_remaining : &http->reply.limit_reset_s) = number_of(text);
    }
    return line.size;
}

// -- what goes out --------------------------------------------------------------------------------

static size_t give_bytes(char *data, size_t size, size_t count, void *context) {
    struct wandb_http *http = context;
    const struct wandb_upload *upload = http->upload;
    uint64_t whole = upload->file < 0 ? upload->bytes.size : upload->size;
    uint64_t left = whole - http->uploaded;
    size_t room = size * count < left ? size * count : (size_t)left;
    if (upload->file < 0) {
        if (room > 0)
            memcpy(data, upload->bytes.data + http->uploaded, room);
        http->uploaded += room;
        return room;
    }
    ssize_t got;
    do
        got = room == 0 ? 0
                        : pread(upload->file, data, room, (off_t)(upload->offset + http->uploaded));
    while (got < 0 && errno == EINTR);
    if (got < 0 || (got == 0 && room > 0))
        return CURL_READFUNC_ABORT;
    http->uploaded += (uint64_t)got;
    return (size_t)got;
}

// When a kept connection turns out to be dead, libcurl begins anew.
static int seek_bytes(void *context, curl_off_t offset, int origin) {
    struct wandb_http *http = context;
    if (origin != SEEK_SET || offset < 0)
        return CURL_SEEKFUNC_CANTSEEK;
    http->uploaded = (uint64_t)offset;
    return CURL_SEEKFUNC_OK;
}

// -- setting up -----------------------------------------------------------------------------------

static const char *environment_ca(void) {
    static const char *const names[] = {"CURL_CA_BUNDLE", "SSL_CERT_FILE"};
    for (unsigned i = 0; i < 2; i++) {
        const char *path = getenv(names[i]);
        if (path != NULL && path[0] != '\0')
            return path;
    }
    return NULL;
}

static CURL *handle_new(struct wandb_http *http) {
    const struct curl_library *curl = http->curl;
    CURL *handle = curl->easy_init();
    if (handle == NULL)
        return NULL;
    const char *ca = http->config->ca_file != NULL ? http->config->ca_file : environment_ca();
    curl->easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    curl->easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
    curl->easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 0L);
    curl->easy_setopt(handle, CURLOPT_SSL_VERIFYPEER, 1L);
    curl->easy_setopt(handle, CURLOPT_SSL_VERIFYHOST, 2L);
    curl->easy_setopt(handle, CURLOPT_USERAGENT, "culprit");
    curl->easy_setopt(handle, CURLOPT_ERRORBUFFER, http->problem);
    curl->easy_setopt(handle, CURLOPT_WRITEFUNCTION, take_body);
    curl->easy_setopt(handle, CURLOPT_WRITEDATA, http);
    curl->easy_setopt(handle, CURLOPT_HEADERFUNCTION, take_header);
    curl->easy_setopt(handle, CURLOPT_HEADERDATA, http);
    if (ca != NULL)
        curl->easy_setopt(handle, CURLOPT_CAINFO, ca);
    if (http->config->proxy != NULL)
        curl->easy_setopt(handle, CURLOPT_PROXY, http->config->proxy);
    return handle;
}

// False: out of memory.
static bool server_handle_new(struct wandb_http *http) {
    static const char *const lines[] = {"Content-Type: application/json", "Expect:"};
    const struct curl_library *curl = http->curl;
    for (unsigned i = 0; i < 2; i++) {
        struct curl_slist *longer = curl->slist_append(http->server_headers, lines[i]);
        if (longer == NULL)
            return false;
        http->server_headers = longer;
    }
    http->server = handle_new(http);
    if (http->server == NULL)
        return false;
    curl->easy_setopt(http->server, CURLOPT_HTTPHEADER, http->server_headers);
    curl->easy_setopt(http->server, CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
    curl->easy_setopt(http->server, CURLOPT_USERNAME, "api");
    return curl->easy_setopt(http->server, CURLOPT_PASSWORD, secret_reveal(http->key)) == CURLE_OK;
}

static bool storage_handle_new(struct wandb_http *http) {
    const struct curl_library *curl = http->curl;
    http->storage = handle_new(http);
    if (http->storage == NULL)
        return false;
    curl->easy_setopt(http->storage, CURLOPT_UPLOAD, 1L);
    curl->easy_setopt(http->storage, CURLOPT_READFUNCTION, give_bytes);
    curl->easy_setopt(http->storage, CURLOPT_READDATA, http);
    curl->easy_setopt(http->storage, CURLOPT_SEEKFUNCTION, seek_bytes);
    curl->easy_setopt(http->storage, CURLOPT_SEEKDATA, http);
    return true;
}

static enum status config_check(const struct wandb_config *config, const char *site,
                                struct error *error) {
    const char *url = config->base_url;
    bool plain = strncmp(url, "http://", 7) == 0;
    if (strchr(url, '@') != NULL)
        return error_set(error, STATUS_CONFIG,
                         "base_url holds a user name or password; give the key as api_key");
    if (!plain && strncmp(url, "https://", 8) != 0)
        return error_set(error, STATUS_CONFIG,
                         "base_url is \"%.200s\"; it begins with https:// or http://", url);
    if (config->ca_file != NULL && access(config->ca_file, R_OK) != 0)
        return error_set(error, STATUS_CONFIG, "ca_file %.300s cannot be read: %s", config->ca_file,
                         strerror(errno));
    const char *host = url + (plain ? 7 : 8);
    if (plain && strncmp(host, "127.", 4) != 0 && strncmp(host, "localhost", 9) != 0 &&
        strncmp(host, "[::1]", 5) != 0)
        log_write(LOG_WARN, (struct log_site){"C3403", site},
                  "the API key goes to %s unencrypted; use https:// where the server has it", url);
    return STATUS_OK;
}

enum status wandb_http_open(struct wandb_http **out, const struct wandb_config *config,
                            const char *site, struct error *error) {
    const struct curl_library *curl;
    enum status status = config_check(config, site, error);
    if (status == STATUS_OK)
        status = curl_library_load(&curl, error);
    if (status != STATUS_OK)
        return status;
    struct wandb_http *http = memory_zero(1, sizeof *http);
    http->curl = curl;
    http->config = config;
    buffer_init(&http->reply.body, REPLY_MAX);
    status = wandb_key_find(&http->key, config->api_key, config->base_url, error);
    if (status == STATUS_OK && !(server_handle_new(http) && storage_handle_new(http)))
        status = error_set(error, STATUS_OS, "libcurl is out of memory");
    if (status == STATUS_OK)
        *out = http;
    else
        wandb_http_close(http);
    return status;
}

void wandb_http_close(struct wandb_http *http) {
    if (http == NULL)
        return;
    if (http->server != NULL)
        http->curl->easy_cleanup(http->server);
    if (http->storage != NULL)
        http->curl->easy_cleanup(http->storage);
    http->curl->slist_free_all(http->server_headers);
    wandb_key_release(&http->key);
    buffer_release(&http->reply.body);
    memory_give(http);
}

// -- requests -------------------------------------------------------------------------------------

// Scheme and host of an address.
static struct slice place_of(const char *url) {
    const char *host = strstr(url, "://");
    host = host == NULL ? url : host + 3;
    const char *end = host + strcspn(host, "/?#");
    const char *user = memrchr(host, '@', (size_t)(end - host));
    if (user != NULL)
        url = user + 1;
    return (struct slice){url, (size_t)(end - url)};
}

static enum status perform(struct wandb_http *http, CURL *handle, const char *url, uint64_t bytes,
                           struct error *error) {
    const struct curl_library *curl = http->curl;
    uint64_t timeout_ms = (uint64_t)http->config->sending.timeout.ns / 1000000 +
                          bytes * 1000 / UPLOAD_BYTES_PER_SECOND;
    long limit = timeout_ms < 1 ? 1 : timeout_ms > INT32_MAX ? INT32_MAX : (long)timeout_ms;
    reply_reset(&http->reply);
    http->problem[0] = '\0';
    if (curl->easy_setopt(handle, CURLOPT_URL, url) != CURLE_OK)
        return error_set(error, STATUS_IO, "libcurl is out of memory");
    curl->easy_setopt(handle, CURLOPT_TIMEOUT_MS, limit);
    curl->easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, limit < 10000 ? limit : 10000L);
    CURLcode code = curl->easy_perform(handle);
    long status = 0;
    curl->easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
    http->reply.status = status;
    http->reply.whole = code == CURLE_OK;
    struct slice place = place_of(url);
    if (http->reply.body.failed)
        return error_set(error, STATUS_IO, "%.*s: the answer has more than %d MiB", (int)place.size,
                         place.data, REPLY_MAX >> 20);
    // What the server said counts, also when the rest of it got lost on the way.
    if (code == CURLE_OK || status >= 200)
        return STATUS_OK;
    const char *hint = code == CURLE_PEER_FAILED_VERIFICATION
                           ? " (a server with a certificate of its own authority needs ca_file)"
                           : "";
    return error_set(error, STATUS_IO, "%.*s: %s%s", (int)place.size, place.data,
                     http->problem[0] != '\0' ? http->problem : curl->easy_strerror(code), hint);
}

enum status wandb_http_post(struct wandb_http *http, const char *path, struct slice body,
                            struct error *error) {
    struct buffer url;
    buffer_init(&url, 64 * 1024);
    buffer_append_text(&url, http->config->base_url);
    buffer_append_text(&url, path);
    buffer_append_char(&url, '\0');
    enum status status = STATUS_OK;
    if (url.failed)
        status = error_set(error, STATUS_CONFIG, "the address of the run is too long");
    http->keeps_all = true;
    http->reply.body.max = REPLY_MAX;
    http->curl->easy_setopt(http->server, CURLOPT_POST, 1L);
    http->curl->easy_setopt(http->server, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.size);
    http->curl->easy_setopt(http->server, CURLOPT_POSTFIELDS, body.data);
    if (status == STATUS_OK)
        status = perform(http, http->server, url.data, body.size, error);
    buffer_release(&url);
    return status;
}

enum status wandb_http_put(struct wandb_http *http, const struct wandb_upload *upload,
                           struct error *error) {
    const struct curl_library *curl = http->curl;
    uint64_t size = upload->file < 0 ? upload->bytes.size : upload->size;
    struct curl_slist *headers = curl->slist_append(NULL, "Expect:");
    for (size_t i = 0; headers != NULL && i < upload->header_count; i++) {
        struct curl_slist *longer = curl->slist_append(headers, upload->headers[i]);
        if (longer == NULL)
            curl->slist_free_all(headers);
        headers = longer;
    }
    if (headers == NULL)
        return error_set(error, STATUS_IO, "libcurl is out of memory");
    http->upload = upload;
    http->uploaded = 0;
    http->keeps_all = false;
    if (http->reply.body.capacity <= STORAGE_REPLY_MAX)
        http->reply.body.max = STORAGE_REPLY_MAX;
    curl->easy_setopt(http->storage, CURLOPT_HTTPHEADER, headers);
    curl->easy_setopt(http->storage, CURLOPT_INFILESIZE_LARGE, (curl_off_t)size);
    enum status status = perform(http, http->storage, upload->url, size, error);
    curl->easy_setopt(http->storage, CURLOPT_HTTPHEADER, NULL);
    curl->slist_free_all(headers);
    http->upload = NULL;
    return status;
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

void wandb_http_redact(const struct wandb_http *http, char *text, size_t capacity) {
    redact_secret(text, capacity, secret_reveal(http->key));
    redact_login(text, capacity, "api", secret_reveal(http->key));
    size_t at = 0;
    struct slice user = {NULL, 0};
    if (http->config->proxy == NULL ||
        !redact_find(slice_of(http->config->proxy), true, &at, &user))
        return;
    char *login = memory_copy_text(user.data, user.size);
    const char *colon = strchr(login, ':');
    redact_secret(text, capacity, colon == NULL ? login : colon + 1);
    redact_login(text, capacity, login, NULL);
    memory_give(login);
}

const struct wandb_reply *wandb_http_reply(const struct wandb_http *http) {
    return &http->reply;
}

void wandb_http_escape(const struct wandb_http *http, struct buffer *out, const char *text) {
    char *escaped = http->curl->easy_escape(http->server, text, (int)strlen(text));
    if (escaped == NULL) {
        out->failed = true;
        return;
    }
    buffer_append_text(out, escaped);
    http->curl->free(escaped);
}
