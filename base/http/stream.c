// SPDX-License-Identifier: Apache-2.0
#include "base/http/stream.h"

#include "base/http/handle.h"
#include "base/http/url.h"
#include "base/memory.h"
#include "base/text/redact.h"

#include <stdint.h>

enum {
    STREAMS_MAGIC = 0x48535431,
    STREAM_MAGIC = 0x48535432,
    CONNECT_MS_MAX = 10000,
    HEADERS_BYTES_MAX = 256 * 1024,
    PIECE_BYTES = 256 * 1024,
    KEEPALIVE_IDLE_S = 30,
    KEEPALIVE_INTERVAL_S = 10,
    CA_KEPT_S = 60, // authorities may be exchanged in their file
};

struct http_streams {
    uint32_t magic;
    const struct curl_library *curl;
    CURLM *multi;
    uint32_t under_way;
};

struct http_stream {
    uint32_t magic;
    struct http_streams *streams;
    CURL *handle;
    struct curl_slist *list;
    char *token;
    char *url;
    bool (*take)(void *context, struct slice bytes);
    void *context;
    struct buffer headers; // as they came
    struct buffer reply;   // of an answer that is not 2xx
    struct http_stream_result result;
    bool stopped, ended;
    char problem[CURL_ERROR_SIZE + 64];
};

static struct http_stream *stream_of(void *context) {
    struct http_stream *stream = context;
    assert(stream != NULL && stream->magic == STREAM_MAGIC);
    return stream;
}

static size_t take_body(char *data, size_t size, size_t count, void *context) {
    struct http_stream *stream = stream_of(context);
    struct slice bytes = {data, size * count};
    long status = 0;
    stream->streams->curl->easy_getinfo(stream->handle, CURLINFO_RESPONSE_CODE, &status);
    if (status >= 200 && status < 300) {
        stream->stopped = !stream->take(stream->context, bytes);
        return stream->stopped ? 0 : bytes.size;
    }
    struct buffer *reply = &stream->reply;
    if (bytes.size > reply->max - reply->size)
        bytes.size = reply->max - reply->size;
    buffer_append(reply, bytes);
    return size * count;
}

static size_t take_header(char *data, size_t size, size_t count, void *context) {
    struct http_stream *stream = stream_of(context);
    // The headers of a proxy, or of an interim answer, come before those that count.
    if (size * count > 5 && memcmp(data, "HTTP/", 5) == 0)
        buffer_reset(&stream->headers);
    buffer_append(&stream->headers, (struct slice){data, size * count});
    return size * count;
}

enum status http_streams_open(struct http_streams **out, struct error *error) {
    const struct curl_library *curl = NULL;
    CURLM *multi = NULL;
    enum status status = http_multi_open(&curl, &multi, error);
    if (status != STATUS_OK)
        return status;
    struct http_streams *streams = memory_zero(1, sizeof *streams);
    *streams = (struct http_streams){.magic = STREAMS_MAGIC, .curl = curl, .multi = multi};
    *out = streams;
    return STATUS_OK;
}

void http_streams_close(struct http_streams *streams) {
    if (streams == NULL)
        return;
    assert(streams->magic == STREAMS_MAGIC && streams->under_way == 0);
    streams->curl->multi_cleanup(streams->multi);
    streams->magic = 0;
    memory_give(streams);
}

static bool set_up(struct http_stream *stream, const struct http_stream_options *options) {
    const struct curl_library *curl = stream->streams->curl;
    CURL *handle = stream->handle;
    uint64_t limit_ms = options->timeout_ns / 1000000;
    long limit = limit_ms < 1 ? 1 : limit_ms > INT32_MAX ? INT32_MAX : (long)limit_ms;
    const struct {
        CURLoption option;
        long value;
    } numbers[] = {
        {CURLOPT_TIMEOUT_MS, limit},
        {CURLOPT_CONNECTTIMEOUT_MS, limit < CONNECT_MS_MAX ? limit : CONNECT_MS_MAX},
        {CURLOPT_BUFFERSIZE, PIECE_BYTES},
        {CURLOPT_TCP_KEEPALIVE, 1},
        {CURLOPT_TCP_KEEPIDLE, KEEPALIVE_IDLE_S},
        {CURLOPT_TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (curl->easy_setopt(handle, numbers[i].option, numbers[i].value) != CURLE_OK)
            return false;
#if LIBCURL_VERSION_NUM >= 0x075700
    curl->easy_setopt(handle, CURLOPT_CA_CACHE_TIMEOUT, (long)CA_KEPT_S);
#endif
    curl->easy_setopt(handle, CURLOPT_WRITEDATA, stream);
    curl->easy_setopt(handle, CURLOPT_HEADERDATA, stream);
    curl->easy_setopt(handle, CURLOPT_PRIVATE, stream);
    curl->easy_setopt(handle, CURLOPT_ERRORBUFFER, stream->problem);
    curl->easy_setopt(handle, CURLOPT_WRITEFUNCTION, take_body);
    curl->easy_setopt(handle, CURLOPT_HEADERFUNCTION, take_header);
    if (options->bearer_token != NULL &&
        (curl->easy_setopt(handle, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER) != CURLE_OK ||
         curl->easy_setopt(handle, CURLOPT_XOAUTH2_BEARER, options->bearer_token) != CURLE_OK))
        return false;
    return http_handle_set_up(curl, handle, options->tls, NULL) &&
           http_headers_append(curl, &stream->list, options->headers, options->header_count) &&
           curl->easy_setopt(handle, CURLOPT_HTTPHEADER, stream->list) == CURLE_OK &&
           curl->easy_setopt(handle, CURLOPT_URL, options->url) == CURLE_OK;
}

enum status http_stream_begin(struct http_streams *streams, struct http_stream **out,
                              const struct http_stream_options *options, struct error *error) {
    assert(streams->magic == STREAMS_MAGIC);
    assert(options->take != NULL && options->timeout_ns > 0 && options->reply_max > 0);
    const char *wrong = http_url_problem(options->url);
    if (wrong != NULL)
        return error_set(error, STATUS_CONFIG, "the URL cannot be requested: %s", wrong);
    enum status status = http_tls_check(options->tls, error);
    if (status != STATUS_OK)
        return status;
    struct http_stream *stream = memory_zero(1, sizeof *stream);
    stream->magic = STREAM_MAGIC;
    stream->streams = streams;
    stream->take = options->take;
    stream->context = options->context;
    stream->url = memory_copy_text(options->url, strlen(options->url));
    if (options->bearer_token != NULL)
        stream->token = memory_copy_text(options->bearer_token, strlen(options->bearer_token));
    buffer_init(&stream->headers, HEADERS_BYTES_MAX);
    buffer_init(&stream->reply, options->reply_max);
    stream->handle = streams->curl->easy_init();
    if (stream->handle == NULL || !set_up(stream, options) ||
        streams->curl->multi_add_handle(streams->multi, stream->handle) != CURLM_OK) {
        stream->ended = true;
        streams->under_way++;
        http_stream_free(stream);
        return error_set(error, STATUS_OS, "libcurl cannot be set up");
    }
    streams->under_way++;
    *out = stream;
    return STATUS_OK;
}

void http_stream_free(struct http_stream *stream) {
    if (stream == NULL)
        return;
    assert(stream->magic == STREAM_MAGIC && stream->streams->under_way > 0);
    const struct curl_library *curl = stream->streams->curl;
    if (stream->handle != NULL) {
        curl->multi_remove_handle(stream->streams->multi, stream->handle);
        curl->easy_cleanup(stream->handle);
    }
    curl->slist_free_all(stream->list);
    stream->streams->under_way--;
    buffer_release(&stream->headers);
    buffer_release(&stream->reply);
    if (stream->token != NULL)
        explicit_bzero(stream->token, strlen(stream->token));
    memory_give(stream->token);
    memory_give(stream->url);
    stream->magic = 0;
    memory_give(stream);
}

void http_streams_wait(struct http_streams *streams, int descriptor, uint64_t timeout_ns) {
    assert(streams->magic == STREAMS_MAGIC);
    int running;
    http_multi_wait(streams->curl, streams->multi, descriptor, timeout_ns);
    streams->curl->multi_perform(streams->multi, &running);
}

static void finish(struct http_stream *stream, CURLcode code) {
    const struct curl_library *curl = stream->streams->curl;
    struct http_stream_result *result = &stream->result;
    assert(!stream->ended);
    stream->ended = true;
    curl->easy_getinfo(stream->handle, CURLINFO_RESPONSE_CODE, &result->status);
    result->whole = code == CURLE_OK;
    result->stopped = stream->stopped;
    result->reply = buffer_slice(&stream->reply);
    result->retry_after_ns = http_retry_after_ns(curl, buffer_slice(&stream->headers));
    result->problem = stream->problem;
    if (code == CURLE_OK) {
        stream->problem[0] = '\0';
        return;
    }
    if (stream->problem[0] == '\0')
        strncpy(stream->problem, curl->easy_strerror(code), sizeof stream->problem - 1);
    const char *hint = http_code_hint(code);
    strncat(stream->problem, hint, sizeof stream->problem - strlen(stream->problem) - 1);
    redact_secret(stream->problem, sizeof stream->problem, stream->token);
}

struct http_stream *http_streams_ended(struct http_streams *streams) {
    assert(streams->magic == STREAMS_MAGIC);
    int left;
    const CURLMsg *message;
    while ((message = streams->curl->multi_info_read(streams->multi, &left)) != NULL) {
        char *private = NULL;
        if (message->msg != CURLMSG_DONE)
            continue;
        streams->curl->easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &private);
        struct http_stream *stream = stream_of(private);
        finish(stream, message->data.result);
        return stream;
    }
    return NULL;
}

void *http_stream_context(const struct http_stream *stream) {
    assert(stream->magic == STREAM_MAGIC);
    return stream->context;
}

long http_stream_status(const struct http_stream *stream) {
    assert(stream->magic == STREAM_MAGIC);
    long status = 0;
    stream->streams->curl->easy_getinfo(stream->handle, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

struct http_stream_result http_stream_result(const struct http_stream *stream) {
    assert(stream->magic == STREAM_MAGIC && stream->ended);
    return stream->result;
}
