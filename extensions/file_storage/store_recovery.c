// SPDX-License-Identifier: Apache-2.0
// Reads what can still be read of a damaged store.
//
// The file is read page by page, by its format (sqlite.org/fileformat2.html), without the library:
// a bad page then loses what is on it, wherever in the tree it stands, and page 1 is hardly needed.
// Whole transactions of the log come before the file's own pages. Rows count when their checksum,
// which covers their key, is right. First the leaves that the tree still leads to are read; then,
// when the list of free pages is whole, those that are neither in the tree nor free: their parent
// is what was damaged. Without that list they may hold rows that were deleted, and are left alone.
// Memory: a byte and four a page, and the largest row.
#include "extensions/file_storage/store_parts.h"

#include "base/memory.h"
#include "extensions/file_storage/store_log.h"

#include <assert.h>

enum {
    ROOT_NAME = 2,
    ROOT_NAME_KEY = 3,
    ROOT_BLOB = 4,
    TABLE_INTERIOR = 5,
    INDEX_LEAF = 10,
    TABLE_LEAF = 13,
    USABLE = STORE_PAGE_SIZE,
    LOCAL_MIN = (USABLE - 12) * 32 / 255 - 23,
    TABLE_LOCAL_MAX = USABLE - 35,
    INDEX_LOCAL_MAX = (USABLE - 12) * 64 / 255 - 23,
    PAYLOAD_MAX = STORAGE_BLOB_MAX + 64,
    CANDIDATES_MAX = 4 * STORE_NAME_IDS,
};

enum page_mark { MARK_NONE, MARK_FREE, MARK_TREE };

struct candidate {
    uint32_t id;
    enum storage_space space;
    char *text;
};

struct recovery {
    struct store_log log;
    unsigned char *marks; // by page number
    uint32_t page_count;  // the highest page number
    bool free_known;
    struct candidate *candidates;
    uint32_t candidate_count, candidate_capacity;
    char *payload;
    size_t payload_capacity;
    struct recovery_totals *totals;
    recovery_visit *visit;
    void *context;
    bool stopped;
};

static uint32_t big_endian(const unsigned char *at, int size) {
    uint32_t value = 0;
    for (int i = 0; i < size; i++)
        value = value << 8 | at[i];
    return value;
}

// A number of 1 to 9 bytes; false at the end of what is there.
static bool varint(const unsigned char *data, size_t size, size_t *at, uint64_t *value) {
    *value = 0;
    for (int i = 0; i < 9; i++) {
        if (*at >= size)
            return false;
        unsigned char byte = data[(*at)++];
        if (i == 8) {
            *value = *value << 8 | byte;
            return true;
        }
        *value = *value << 7 | (byte & 0x7f);
        if ((byte & 0x80) == 0)
            return true;
    }
    return true;
}

// -- which pages --------------------------------------------------------------------------------

static void free_pages_mark(struct recovery *recovery) {
    unsigned char page[STORE_PAGE_SIZE];
    if (!log_page(&recovery->log, 1, page) || memcmp(page, "SQLite format 3", 16) != 0)
        return;
    uint32_t trunk = big_endian(page + 32, 4), expected = big_endian(page + 36, 4), seen = 0;
    while (trunk != 0 && seen < expected) {
        if (trunk > recovery->page_count || recovery->marks[trunk] == MARK_FREE ||
            !log_page(&recovery->log, trunk, page))
            return;
        recovery->marks[trunk] = MARK_FREE;
        seen++;
        uint32_t count = big_endian(page + 4, 4);
        if (count > STORE_PAGE_SIZE / 4 - 2)
            return;
        for (uint32_t i = 0; i < count; i++) {
            uint32_t leaf = big_endian(page + 8 + 4 * i, 4);
            if (leaf == 0 || leaf > recovery->page_count)
                return;
            recovery->marks[leaf] = MARK_FREE;
            seen++;
        }
        trunk = big_endian(page, 4);
    }
    recovery->free_known = trunk == 0 && seen == expected;
}

// Marks the pages under `root` by a list of those that were found and not yet read.
static void tree_mark(struct recovery *recovery, uint32_t root, uint32_t *list) {
    assert(root >= ROOT_NAME && root <= ROOT_BLOB);
    unsigned char page[STORE_PAGE_SIZE];
    uint32_t count = 0;
    if (root <= recovery->page_count && recovery->marks[root] != MARK_TREE) {
        recovery->marks[root] = MARK_TREE;
        list[count++] = root;
    }
    while (count > 0) {
        uint32_t number = list[--count];
        if (!log_page(&recovery->log, number, page) ||
            (page[0] != TABLE_LEAF && page[0] != INDEX_LEAF && page[0] != TABLE_INTERIOR &&
             page[0] != 2)) {
            recovery->totals->bad_pages++;
            continue;
        }
        if (page[0] != TABLE_INTERIOR)
            continue;
        uint32_t cells = big_endian(page + 3, 2);
        for (uint32_t i = 0; i <= cells && 12 + 2 * i + 2 <= STORE_PAGE_SIZE; i++) {
            uint32_t cell = i == cells ? 8 : big_endian(page + 12 + 2 * i, 2);
            uint32_t child = cell + 4 <= STORE_PAGE_SIZE ? big_endian(page + cell, 4) : 0;
            if (child < 2 || child > recovery->page_count || recovery->marks[child] == MARK_TREE)
                continue;
            recovery->marks[child] = MARK_TREE;
            list[count++] = child;
        }
    }
}

// -- cells --------------------------------------------------------------------------------------

struct cell {
    int64_t key; // table cells
    const unsigned char *payload;
    size_t size;
};

static bool payload_gather(struct recovery *recovery, const unsigned char *local, size_t local_size,
                           uint32_t overflow, size_t size) {
    assert(local_size <= size);
    if (recovery->payload_capacity < size) {
        recovery->payload = memory_resize(recovery->payload, size);
        recovery->payload_capacity = size;
    }
    memcpy(recovery->payload, local, local_size);
    unsigned char page[STORE_PAGE_SIZE];
    for (size_t have = local_size; have < size;) {
        if (overflow < 2 || overflow > recovery->page_count ||
            !log_page(&recovery->log, overflow, page))
            return false;
        size_t part = size - have < USABLE - 4 ? size - have : USABLE - 4;
        memcpy(recovery->payload + have, page + 4, part);
        have += part;
        overflow = big_endian(page, 4);
    }
    return true;
}

static bool cell_read(struct recovery *recovery, const unsigned char *page, uint32_t index,
                      struct cell *cell) {
    assert(page[0] == TABLE_LEAF || page[0] == INDEX_LEAF);
    bool table = page[0] == TABLE_LEAF;
    size_t at = big_endian(page + 8 + 2 * index, 2);
    uint64_t size, key = 0;
    if (at < 8 || !varint(page, USABLE, &at, &size) || size > PAYLOAD_MAX ||
        (table && !varint(page, USABLE, &at, &key)))
        return false;
    cell->key = (int64_t)key;
    cell->size = (size_t)size;
    cell->payload = page + at;
    size_t local_max = table ? TABLE_LOCAL_MAX : INDEX_LOCAL_MAX;
    if (size <= local_max)
        return at + size <= USABLE;
    size_t local = LOCAL_MIN + (size_t)(size - LOCAL_MIN) % (USABLE - 4);
    if (local > local_max)
        local = LOCAL_MIN;
    // A chain longer than the file is no chain.
    if (at + local + 4 > USABLE || size / (USABLE - 4) > recovery->page_count)
        return false;
    cell->payload = NULL;
    bool whole =
        payload_gather(recovery, page + at, local, big_endian(page + at + local, 4), (size_t)size);
    cell->payload = (const unsigned char *)recovery->payload;
    return whole;
}

struct column {
    bool is_integer, is_text, is_blob;
    int64_t integer;
    struct slice bytes;
};

static bool column_read(const struct cell *cell, uint64_t type, size_t *at, struct column *column) {
    assert(*at <= cell->size);
    static const unsigned char sizes[] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0};
    uint64_t size = type >= 12 ? (type - 12) / 2 : sizes[type];
    if (size > cell->size - *at)
        return false;
    const unsigned char *data = cell->payload + *at;
    *column = (struct column){.is_integer = type >= 1 && type <= 9 && type != 7,
                              .is_blob = type >= 12 && type % 2 == 0,
                              .is_text = type >= 13 && type % 2 == 1,
                              .bytes = {(const char *)data, (size_t)size}};
    if (type == 9)
        column->integer = 1;
    else if (column->is_integer && size > 0) {
        uint64_t value = (data[0] & 0x80) != 0 ? UINT64_MAX : 0;
        for (size_t i = 0; i < size; i++)
            value = value << 8 | data[i];
        column->integer = (int64_t)value;
    }
    *at += (size_t)size;
    return true;
}

// A record of exactly three columns, as all of ours are.
static bool record_read(const struct cell *cell, struct column columns[3]) {
    uint64_t header, type;
    size_t at = 0;
    if (!varint(cell->payload, cell->size, &at, &header) || header > cell->size)
        return false;
    size_t body = (size_t)header;
    for (int i = 0; i < 3; i++)
        if (at >= header || !varint(cell->payload, (size_t)header, &at, &type) ||
            !column_read(cell, type, &body, &columns[i]))
            return false;
    return at == header && body == cell->size;
}

// -- names --------------------------------------------------------------------------------------

static void candidate_add(struct recovery *recovery, int64_t id, int64_t space, struct slice text) {
    if (id < 1 || id > STORE_NAME_IDS || space < 0 || space >= STORAGE_SPACE_COUNT ||
        text.size > STORAGE_NAME_MAX || memchr(text.data, '\0', text.size) != NULL ||
        recovery->candidate_count == CANDIDATES_MAX)
        return;
    for (uint32_t i = 0; i < recovery->candidate_count; i++) {
        const struct candidate *known = &recovery->candidates[i];
        if (known->id == id && known->space == (enum storage_space)space &&
            slice_equal(slice_of(known->text), text))
            return;
    }
    recovery->candidates = memory_room(recovery->candidates, &recovery->candidate_capacity,
                                       recovery->candidate_count, sizeof *recovery->candidates);
    recovery->candidates[recovery->candidate_count++] = (struct candidate){
        (uint32_t)id, (enum storage_space)space, memory_copy_text(text.data, text.size)};
}

static void name_cell(struct recovery *recovery, const unsigned char *page, uint32_t index) {
    struct cell cell;
    struct column c[3];
    if (!cell_read(recovery, page, index, &cell) || !record_read(&cell, c))
        return;
    if (page[0] == TABLE_LEAF && c[1].is_integer && c[2].is_text)
        candidate_add(recovery, cell.key, c[1].integer, c[2].bytes);
    if (page[0] == INDEX_LEAF && c[0].is_integer && c[1].is_text && c[2].is_integer)
        candidate_add(recovery, c[2].integer, c[0].integer, c[1].bytes);
}

// -- rows ---------------------------------------------------------------------------------------

static void row_lost(struct recovery *recovery, uint32_t id) {
    for (uint32_t i = 0; i < recovery->candidate_count; i++) {
        if (recovery->candidates[i].id == id) {
            recovery->totals->lost[recovery->candidates[i].space]++;
            return;
        }
    }
    recovery->totals->lost_elsewhere++;
}

static void row_cell(struct recovery *recovery, const unsigned char *page, uint32_t index) {
    assert(page[0] == TABLE_LEAF);
    struct cell cell = {0};
    struct column c[3];
    bool whole = cell_read(recovery, page, index, &cell);
    uint32_t id = (uint32_t)((uint64_t)cell.key >> STORE_NUMBER_BITS);
    bool is_record = whole && record_read(&cell, c);
    if (is_record && c[2].is_text)
        return; // a name
    if (!is_record || !c[1].is_integer || !c[2].is_blob) {
        row_lost(recovery, id);
        return;
    }
    uint64_t number = store_number(cell.key);
    for (uint32_t i = 0; i < recovery->candidate_count; i++) {
        const struct candidate *name = &recovery->candidates[i];
        if (name->id != id || store_crc(name->space, slice_of(name->text), number, c[2].bytes) !=
                                  (uint32_t)c[1].integer)
            continue;
        recovery->totals->kept[name->space]++;
        recovery->stopped |= !recovery->visit(recovery->context, name->space, name->text, number,
                                              (uint32_t)c[1].integer, c[2].bytes);
        return;
    }
    row_lost(recovery, id);
}

// All cells of the pages with this mark.
static void pages_walk(struct recovery *recovery, enum page_mark mark,
                       void (*each)(struct recovery *, const unsigned char *, uint32_t)) {
    unsigned char page[STORE_PAGE_SIZE];
    for (uint32_t number = 2; number <= recovery->page_count && !recovery->stopped; number++) {
        if (recovery->marks[number] != mark || !log_page(&recovery->log, number, page))
            continue;
        if (page[0] != TABLE_LEAF && (page[0] != INDEX_LEAF || each != name_cell))
            continue;
        uint32_t cells = big_endian(page + 3, 2);
        for (uint32_t i = 0; i < cells && 8 + 2 * i + 2 <= STORE_PAGE_SIZE; i++)
            if (!recovery->stopped)
                each(recovery, page, i);
    }
}

enum status recovery_rows(const char *path, recovery_visit *visit, void *context,
                          struct recovery_totals *totals, struct error *error) {
    struct recovery recovery = {.totals = totals, .visit = visit, .context = context};
    *totals = (struct recovery_totals){0};
    enum status status = log_open(&recovery.log, path, error);
    if (status != STATUS_OK)
        return status;
    recovery.page_count = recovery.log.page_count;
    totals->bad_pages = recovery.log.report.lost_frames;
    recovery.marks = memory_zero((size_t)recovery.page_count + 1, 1);
    uint32_t *list = memory_take(((size_t)recovery.page_count + 1) * sizeof *list);
    free_pages_mark(&recovery);
    for (uint32_t root = ROOT_NAME; root <= ROOT_BLOB; root++)
        tree_mark(&recovery, root, list);
    memory_give(list);
    pages_walk(&recovery, MARK_TREE, name_cell);
    if (recovery.free_known)
        pages_walk(&recovery, MARK_NONE, name_cell);
    pages_walk(&recovery, MARK_TREE, row_cell);
    if (recovery.free_known)
        pages_walk(&recovery, MARK_NONE, row_cell);
    for (uint32_t i = 0; i < recovery.candidate_count; i++)
        memory_give(recovery.candidates[i].text);
    memory_give(recovery.candidates);
    memory_give(recovery.payload);
    memory_give(recovery.marks);
    log_close(&recovery.log);
    return STATUS_OK;
}
