// SPDX-License-Identifier: Apache-2.0
// A body that comes by HTTP and a value that comes from Kafka are cut into the same records, and so
// is a document that comes in pieces; gzip is taken off within its bounds.
//
// The input is one body. It is cut by both receivers, as what it looks like and as JSON Lines, by
// the splitter as a whole and byte by byte, then taken for gzip, and made into gzip and back. Each
// record must lie within the body, and behind the one before.
#include "base/http/server_parts.h"
#include "receivers/http/receiver.h"
#include "receivers/records/body.h"
#include "tests/fuzz/fuzz.h"

enum { RECORD_MAX = 1024, REQUEST_MAX = 64 << 10 };

static const struct http_config http_config = {.max_record_size = {RECORD_MAX}};

static void require_items(const struct http_work *work, struct slice body) {
    const char *reached = body.data;
    for (uint32_t i = 0; i < work->count; i++) {
        const struct http_item *item = &work->items[i];
        require((item->refusal == DECODE_OK) == (item->why == NULL));
        if (item->refusal != DECODE_OK)
            continue;
        require(item->data >= reached && item->size <= RECORD_MAX);
        require(item->size > 0 && item->size <= (size_t)(body.data + body.size - item->data));
        reached = item->data + item->size;
    }
}

// A message's value says the same as the body, but for what is no body at all.
static void require_same(const struct http_work *work, struct slice value) {
    struct body body;
    struct body_record record;
    uint32_t count = 0;
    body_begin(&body, value, RECORD_MAX, FORMAT_UNKNOWN);
    for (; body_next(&body, &record); count++) {
        require(count < work->count);
        const struct http_item *other = &work->items[count];
        require(record.refusal == other->refusal);
        if (record.refusal == DECODE_OK)
            require(record.bytes.data == other->data && record.bytes.size == other->size);
        else
            require(record.why[0] != '\0');
    }
    require(count == work->count && !body_next(&body, &record));
}

// Taken for frames of another culprit, which lie behind one another.
static void cut_frames(struct slice body, struct http_work *work) {
    struct http_fault fault = {0};
    http_cut_frames(body, work, &fault);
    size_t size = 0;
    for (uint32_t i = 0; i < work->count; i++) {
        require(work->items[i].data == body.data + size);
        size += work->items[i].size;
    }
    require(fault.status != 0 || size == body.size);
    work->count = 0;
    work->frames = false;
}

static void cut(struct slice body) {
    struct http_work work = {0};
    arena_init(&work.arena, 4096);
    struct http_fault fault = {0};
    cut_frames(body, &work);
    http_cut(&http_config, body, false, &work, &fault);
    require_items(&work, body);
    if (fault.status == 0)
        require_same(&work, body);
    else
        require(fault.status >= 400 && strlen(fault.code) > 3 && strlen(fault.message) > 10);
    work.count = 0;
    fault = (struct http_fault){0};
    http_cut(&http_config, body, true, &work, &fault);
    require_items(&work, body);
    memory_give(work.items);
    arena_release(&work.arena);
}

// -- in pieces ------------------------------------------------------------------------------------

struct cuts {
    uint64_t hash;
    uint64_t fault_at;
    uint32_t count;
    const char *fault;
};

// Returns false when nothing more comes of this document.
static bool step(struct splitter *split, struct slice window, struct cuts *cuts, bool *more) {
    struct slice record = {NULL, 0};
    enum split_step what = splitter_next(split, window, &record);
    *more = what == SPLIT_MORE;
    if (what == SPLIT_FAULT) {
        cuts->fault = split->fault;
        cuts->fault_at = split->fault_at;
        return false;
    }
    if (what == SPLIT_MORE)
        return true;
    cuts->count++;
    cuts->hash = (cuts->hash ^ (uint64_t)what) * 1099511628211u;
    for (size_t i = 0; what == SPLIT_RECORD && i < record.size; i++)
        cuts->hash = (cuts->hash ^ (unsigned char)record.data[i]) * 1099511628211u;
    return true;
}

static struct cuts split_whole(enum format_layout layout, struct slice body) {
    struct splitter split;
    struct cuts cuts = {0};
    bool more = false;
    splitter_begin(&split, layout, RECORD_MAX);
    while (!more && step(&split, body, &cuts, &more))
        ;
    if (more)
        cuts.fault = splitter_end(&split);
    return cuts;
}

// Each time one byte more, and what is no longer needed dropped.
static struct cuts split_bytes(enum format_layout layout, struct slice body) {
    struct splitter split;
    struct cuts cuts = {0};
    size_t dropped = 0;
    splitter_begin(&split, layout, RECORD_MAX);
    for (size_t end = 0; end <= body.size; end++) {
        struct slice window = {body.data + dropped, end - dropped};
        bool more = false;
        while (!more)
            if (!step(&split, window, &cuts, &more))
                return cuts;
        size_t used = splitter_used(&split);
        require(used <= window.size);
        splitter_drop(&split, used);
        dropped += used;
    }
    cuts.fault = splitter_end(&split);
    return cuts;
}

static void split_both(struct slice body) {
    static const enum format_layout layouts[] = {LAYOUT_ARRAY, LAYOUT_WRAPPER, LAYOUT_OBJECT};
    for (size_t i = 0; i < 3; i++) {
        struct cuts whole = split_whole(layouts[i], body), bytes = split_bytes(layouts[i], body);
        require(whole.count == bytes.count && whole.hash == bytes.hash);
        require(whole.fault == bytes.fault && whole.fault_at == bytes.fault_at);
    }
}

// -- gzip -----------------------------------------------------------------------------------------

static void inflate_sent(struct http_exchange *exchange, struct slice bytes) {
    exchange->refusal.status = 0;
    exchange->sent.size = 0;
    require(body_append(exchange, bytes.data, bytes.size));
    body_inflate(exchange);
}

static void take_gzip_off(struct slice body) {
    struct http_server server = {
        .options = {.max_request_bytes = REQUEST_MAX, .max_pending_bytes = 8 << 20}};
    lock_init(&server.lock);
    struct http_exchange exchange = {.magic = EXCHANGE_MAGIC, .server = &server};
    inflate_sent(&exchange, body);
    int status = exchange.refusal.status;
    require(status == 0 || status == 400 || status == 413);
    require(status != 0 || exchange.request.body.size <= REQUEST_MAX);
    size_t size;
    char *packed = body_deflate(&server, body, &size);
    if (packed != NULL) {
        inflate_sent(&exchange, (struct slice){packed, size});
        require(exchange.refusal.status == (body.size > REQUEST_MAX ? 413 : 0));
        require(exchange.refusal.status != 0 || slice_equal(exchange.request.body, body));
        memory_give(packed);
    }
    body_release(&exchange);
    require(atomic_load(&server.pending_bytes) == 0);
    body_deflater_release(&server);
    lock_destroy(&server.lock);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct slice body = fuzz_block((struct slice){(const char *)data, size});
    cut(body);
    if (size <= 4096)
        split_both(body);
    take_gzip_off(body);
    fuzz_block_give(body);
    return 0;
}
