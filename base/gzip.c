// SPDX-License-Identifier: Apache-2.0
#include "base/gzip.h"

#include "base/memory.h"

#include <assert.h>
#include <zlib.h>

enum { GZIP_WINDOW = 15 + 16, MEMORY_LEVEL = 8 };

struct gzip {
    z_stream stream;
    char *out;
    size_t capacity;
};

static voidpf take_memory(voidpf context, uInt items, uInt size) {
    (void)context;
    return memory_zero(items, size);
}

static void give_memory(voidpf context, voidpf memory) {
    (void)context;
    memory_give(memory);
}

struct gzip *gzip_make(void) {
    struct gzip *gzip = memory_zero(1, sizeof *gzip);
    gzip->stream.zalloc = take_memory;
    gzip->stream.zfree = give_memory;
    int result = deflateInit2(&gzip->stream, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW, MEMORY_LEVEL,
                              Z_DEFAULT_STRATEGY);
    assert(result == Z_OK);
    (void)result;
    return gzip;
}

void gzip_free(struct gzip *gzip) {
    if (gzip == NULL)
        return;
    deflateEnd(&gzip->stream);
    memory_give(gzip->out);
    memory_give(gzip);
}

struct slice gzip_compress(struct gzip *gzip, struct slice body) {
    assert(body.size <= UINT32_MAX);
    z_stream *stream = &gzip->stream;
    int result = deflateReset(stream);
    assert(result == Z_OK);
    size_t needed = deflateBound(stream, (unsigned long)body.size);
    if (needed > gzip->capacity) {
        gzip->out = memory_resize(gzip->out, needed);
        gzip->capacity = needed;
    }
    stream->next_in = (unsigned char *)(uintptr_t)body.data;
    stream->avail_in = (unsigned)body.size;
    stream->next_out = (unsigned char *)gzip->out;
    stream->avail_out = (unsigned)gzip->capacity;
    result = deflate(stream, Z_FINISH);
    assert(result == Z_STREAM_END); // there is room for the worst case
    (void)result;
    return (struct slice){gzip->out, gzip->capacity - stream->avail_out};
}
