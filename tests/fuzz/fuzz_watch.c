// SPDX-License-Identifier: Apache-2.0
// What an API server sends: the body of a watch says the same whether it comes at once or in
// pieces, and texts that are picked out of lines and pages lie within them.
//
// The first bytes say how long a line may be and how long the pieces are; the rest is the body.
#include "receivers/kubernetes/lines.h"
#include "receivers/kubernetes/meta.h"
#include "tests/fuzz/fuzz.h"

enum { BYTES_MAX = 4096, PIECE_LEAST = 256 };

struct seen {
    uint64_t hash;
    uint32_t lines;
    size_t line_max;
    struct slice unsettled; // the last line that was given
};

static void require_within(struct slice part, struct slice whole) {
    require(part.size == 0 ||
            (part.data >= whole.data && part.data + part.size <= whole.data + whole.size));
}

static void require_meta(const struct object_meta *meta, struct slice text) {
    require_within(meta->uid, text);
    require_within(meta->version, text);
    require_within(meta->namespace, text);
    require_within(meta->name, text);
}

static bool take(void *context, struct slice line) {
    struct seen *seen = context;
    struct watch_event event;
    require(line.size > 0 && line.size <= seen->line_max);
    seen->lines++;
    for (size_t i = 0; i < line.size; i++)
        seen->hash = (seen->hash ^ (unsigned char)line.data[i]) * UINT64_C(1099511628211);
    seen->hash = (seen->hash ^ '\n') * UINT64_C(1099511628211);
    seen->unsettled = line;
    if (!watch_event_read(line, &event))
        return true;
    require(event.type < WATCH_EVENT_TYPE_COUNT);
    require_meta(&event.meta, line);
    require_within(event.message, line);
    return true;
}

// The line is still what it was.
static void settle(void *context) {
    struct seen *seen = context;
    volatile char last = '\0';
    if (seen->unsettled.size > 0)
        last = seen->unsettled.data[seen->unsettled.size - 1];
    (void)last;
    seen->unsettled = (struct slice){NULL, 0};
}

static struct seen read_in(struct slice body, size_t piece, size_t line_max, uint64_t *too_long) {
    struct watch_lines lines;
    struct seen seen = {.line_max = line_max};
    watch_lines_init(&lines, line_max);
    for (size_t at = 0; at < body.size; at += piece) {
        size_t size = body.size - at < piece ? body.size - at : piece;
        struct slice block = fuzz_block((struct slice){body.data + at, size});
        require(watch_lines_take(&lines, block, take, settle, &seen));
        require(seen.unsettled.size == 0);
        fuzz_block_give(block);
    }
    *too_long = lines.too_long;
    watch_lines_release(&lines);
    return seen;
}

static void read_page(struct slice body) {
    struct list_page page;
    struct token item;
    struct object_meta meta;
    if (!list_page_read(body, &page))
        return;
    require_within(page.version, body);
    require_within(page.more, body);
    if (page.items.kind != TOKEN_ARRAY)
        return;
    struct json_items items = json_items_of(&page.items);
    while (json_items_next(&items, &item))
        if (item.kind == TOKEN_OBJECT && object_meta_read(token_slice(&item), &meta))
            require_meta(&meta, token_slice(&item));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct fuzz_input input = {(const char *)data, size};
    size_t line_max = 16 + 16 * (size_t)fuzz_byte(&input), piece = 1 + (size_t)fuzz_byte(&input);
    struct slice body = fuzz_block((struct slice){input.at, input.left});
    uint64_t too_long, too_long_before;
    // Byte by byte only what is short: each piece is a block of its own.
    if (size > BYTES_MAX)
        piece += PIECE_LEAST;
    struct seen whole = read_in(body, body.size + 1, line_max, &too_long_before);
    struct seen pieces = read_in(body, piece, line_max, &too_long);
    require(whole.lines == pieces.lines && whole.hash == pieces.hash);
    require(too_long == too_long_before);
    read_page(body);
    fuzz_block_give(body);
    return 0;
}
