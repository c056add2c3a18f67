// SPDX-License-Identifier: Apache-2.0
// The bytes of a request: gathered, and gzip taken off, never beyond the limits.
//
// Buffers double from 16 KiB, stay with their exchange for the next request while they are small,
// and all of them together stay below max_pending_bytes. Inflating stops at max_request_bytes,
// whatever the ratio. gzip of several members is taken; bytes behind the last one are refused.
#include "base/http/server_parts.h"
#include "base/memory.h"

#include <assert.h>

enum { FIRST_CAPACITY = 16 << 10, KEPT_CAPACITY = 1 << 20, DEFLATE_MIN = 512 };
enum { GZIP_WINDOW = 15 + 16 }; // zlib's number for gzip with the largest window

// -- room ---------------------------------------------------------------------------------------

static bool reserve(struct http_server *server, struct http_bytes *bytes, size_t needed) {
    if (needed <= bytes->capacity)
        return true;
    size_t capacity = bytes->capacity == 0 ? FIRST_CAPACITY : bytes->capacity;
    while (capacity < needed)
        capacity *= 2;
    assert(bytes->size <= bytes->capacity && capacity >= needed);
    size_t more = capacity - bytes->capacity;
    if (atomic_fetch_add(&server->pending_bytes, more) + more > server->options.max_pending_bytes) {
        atomic_fetch_sub(&server->pending_bytes, more);
        return false;
    }
    bytes->data = memory_resize(bytes->data, capacity);
    bytes->capacity = capacity;
    return true;
}

bool body_append(struct http_exchange *exchange, const char *data, size_t size) {
    assert(exchange->magic == EXCHANGE_MAGIC && exchange->sent.size <= exchange->sent.capacity);
    struct http_bytes *sent = &exchange->sent;
    if (size == 0)
        return true;
    if (!reserve(exchange->server, sent, sent->size + size))
        return false;
    memcpy(sent->data + sent->size, data, size);
    sent->size += size;
    return true;
}

static void give(struct http_server *server, struct http_bytes *bytes) {
    uint64_t before = atomic_fetch_sub(&server->pending_bytes, bytes->capacity);
    assert(before >= bytes->capacity);
    memory_give(bytes->data);
    *bytes = (struct http_bytes){.data = NULL};
}

static void trim(struct http_server *server, struct http_bytes *bytes) {
    bytes->size = 0;
    if (bytes->capacity > KEPT_CAPACITY ||
        atomic_load(&server->pending_bytes) > server->options.max_pending_bytes / 4)
        give(server, bytes);
}

void body_trim(struct http_exchange *exchange) {
    trim(exchange->server, &exchange->sent);
    trim(exchange->server, &exchange->decoded);
}

void body_drop(struct http_exchange *exchange) {
    if (exchange->sent.capacity > FIRST_CAPACITY)
        give(exchange->server, &exchange->sent);
    if (exchange->decoded.capacity > FIRST_CAPACITY)
        give(exchange->server, &exchange->decoded);
}

// -- zlib ---------------------------------------------------------------------------------------

static void *zlib_take(void *unused, unsigned count, unsigned size) {
    (void)unused;
    return memory_take((size_t)count * size);
}

static void zlib_give(void *unused, void *block) {
    (void)unused;
    memory_give(block);
}

static z_stream *stream_new(void) {
    z_stream *stream = memory_zero(1, sizeof *stream);
    stream->zalloc = zlib_take;
    stream->zfree = zlib_give;
    return stream;
}

void body_release(struct http_exchange *exchange) {
    assert(exchange->magic == EXCHANGE_MAGIC);
    give(exchange->server, &exchange->sent);
    give(exchange->server, &exchange->decoded);
    if (exchange->inflater != NULL)
        inflateEnd(exchange->inflater);
    memory_give(exchange->inflater);
    exchange->inflater = NULL;
}

static void begin_inflate(struct http_exchange *exchange) {
    if (exchange->inflater == NULL) {
        exchange->inflater = stream_new();
        // Fails for lack of memory only, and memory_take does not return then.
        int result = inflateInit2(exchange->inflater, GZIP_WINDOW);
        assert(result == Z_OK);
        (void)result;
    } else {
        inflateReset(exchange->inflater);
    }
    exchange->inflater->next_in = (unsigned char *)exchange->sent.data;
    exchange->inflater->avail_in = (unsigned)exchange->sent.size;
}

static void refuse_inflated(struct http_exchange *exchange) {
    assert(exchange->decoded.size > exchange->server->options.max_request_bytes);
    exchange_refuse(exchange, 413, "too_large",
                    "The body is larger than %llu bytes after decompression: send less in one "
                    "request.",
                    (unsigned long long)exchange->server->options.max_request_bytes);
    exchange->refusal.close = true;
}

// Makes room for more output: false when there may be none, which is refused.
static bool grow(struct http_exchange *exchange) {
    struct http_bytes *out = &exchange->decoded;
    uint64_t max = exchange->server->options.max_request_bytes;
    if (out->size > max) {
        refuse_inflated(exchange);
        return false;
    }
    if (out->size < out->capacity)
        return true;
    size_t wanted = out->capacity == 0 ? 4 * exchange->sent.size : 2 * out->capacity;
    // One byte more than is allowed, to tell when it is too much.
    if (wanted > max + 1)
        wanted = (size_t)max + 1;
    if (reserve(exchange->server, out, wanted))
        return true;
    exchange_refuse(exchange, 503, "busy", "Too many requests are being read: try again later.");
    return false;
}

void body_inflate(struct http_exchange *exchange) {
    if (exchange->sent.size == 0) {
        exchange_refuse(exchange, 400, "bad_gzip",
                        "The body cannot be read as gzip: it ends too early.");
        return;
    }
    assert(exchange->refusal.status == 0);
    begin_inflate(exchange);
    z_stream *stream = exchange->inflater;
    struct http_bytes *out = &exchange->decoded;
    out->size = 0;
    int result = Z_OK;
    while (result == Z_OK && grow(exchange)) {
        stream->next_out = (unsigned char *)out->data + out->size;
        stream->avail_out = (unsigned)(out->capacity - out->size);
        result = inflate(stream, Z_NO_FLUSH);
        out->size = (size_t)((char *)stream->next_out - out->data);
        if (result == Z_STREAM_END && stream->avail_in > 0)
            result = inflateReset(stream);
        else if (result == Z_BUF_ERROR && stream->avail_out == 0)
            result = Z_OK;
    }
    if (exchange->refusal.status != 0)
        return;
    if (result != Z_STREAM_END)
        exchange_refuse(exchange, 400, "bad_gzip", "The body cannot be read as gzip: %s.",
                        result == Z_BUF_ERROR ? "it ends too early"
                        : stream->msg != NULL ? stream->msg
                                              : "it is damaged");
    else if (out->size > exchange->server->options.max_request_bytes)
        refuse_inflated(exchange);
    exchange->request.body = (struct slice){out->data, out->size};
}

char *body_deflate(struct http_server *server, struct slice body, size_t *size) {
    if (body.size < DEFLATE_MIN || body.size > UINT32_MAX)
        return NULL;
    lock_take(&server->lock);
    if (server->deflater == NULL) {
        server->deflater = stream_new();
        int result = deflateInit2(server->deflater, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW, 8,
                                  Z_DEFAULT_STRATEGY);
        assert(result == Z_OK);
        (void)result;
    } else {
        deflateReset(server->deflater);
    }
    z_stream *stream = server->deflater;
    size_t capacity = deflateBound(stream, (unsigned long)body.size);
    char *out = memory_take(capacity);
    stream->next_in = (unsigned char *)body.data;
    stream->avail_in = (unsigned)body.size;
    stream->next_out = (unsigned char *)out;
    stream->avail_out = (unsigned)capacity;
    int result = deflate(stream, Z_FINISH);
    assert(stream->avail_out <= capacity);
    *size = capacity - stream->avail_out;
    lock_release(&server->lock);
    if (result == Z_STREAM_END)
        return out;
    memory_give(out);
    return NULL;
}

void body_deflater_release(struct http_server *server) {
    if (server->deflater != NULL)
        deflateEnd(server->deflater);
    memory_give(server->deflater);
    server->deflater = NULL;
}
