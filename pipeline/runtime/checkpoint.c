// SPDX-License-Identifier: Apache-2.0
// Which pages changed, and do those of another time still fit?
//
// Each entry has a header (number 0: layout, row size, rows, chain of freed rows, fingerprint) and
// its pages (numbers from 1). A page counts as changed when its 64-bit hash did: that costs a read
// of the memory (some GB/s) and saves every component from keeping marks. Ids of strings are put
// right while loading, row by row, in rows that are in use.
#include "pipeline/runtime/checkpoint.h"

#include "base/arena.h"
#include "base/memory.h"

#include <stdio.h>

// -- image --------------------------------------------------------------------------------------

struct blob {
    const char *name;
    uint64_t number;
    struct slice bytes;
    uint32_t next;
};

struct image {
    struct arena arena;
    struct blob *blobs;
    uint32_t count, capacity;
    uint32_t *buckets;
    uint32_t bucket_count;
    bool foreign;
    struct slice *strings; // by the id they had
    string_id *ids;        // and have now; STRING_NONE: not asked for yet
    uint32_t string_capacity;
};

enum { IMAGE_BLOCK = 1 << 20 };

static const uint64_t K0 = UINT64_C(0x9e6c63d0876a9a47);
static const uint64_t K1 = UINT64_C(0xc5a308d313198a2f);

static inline uint64_t fold(uint64_t a, uint64_t b) {
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t hash_bytes(uint64_t seed, const void *bytes, size_t size) {
    const char *at = bytes;
    uint64_t hash = seed ^ (size * K1), a, b;
    for (; size >= 16; size -= 16, at += 16) {
        memcpy(&a, at, 8);
        memcpy(&b, at + 8, 8);
        hash = fold(a ^ K0, b ^ hash);
    }
    unsigned char rest[16] = {0};
    memcpy(rest, at, size);
    memcpy(&a, rest, 8);
    memcpy(&b, rest + 8, 8);
    return fold(fold(a ^ K1, b ^ hash) ^ K0, K1);
}

static uint32_t blob_bucket(const struct image *image, const char *name, uint64_t number) {
    uint64_t hash = hash_bytes(number, name, strlen(name));
    return (uint32_t)(hash >> 32) & (image->bucket_count - 1);
}

struct image *image_new(void) {
    struct image *image = memory_zero(1, sizeof *image);
    arena_init(&image->arena, IMAGE_BLOCK);
    return image;
}

void image_free(struct image *image) {
    if (image == NULL)
        return;
    arena_release(&image->arena);
    memory_give(image->blobs);
    memory_give(image->buckets);
    memory_give(image->strings);
    memory_give(image->ids);
    memory_give(image);
}

static struct blob *find_blob(const struct image *image, const char *name, uint64_t number) {
    if (image->bucket_count == 0)
        return NULL;
    uint32_t at = image->buckets[blob_bucket(image, name, number)];
    for (; at != UINT32_MAX; at = image->blobs[at].next)
        if (image->blobs[at].number == number && strcmp(image->blobs[at].name, name) == 0)
            return &image->blobs[at];
    return NULL;
}

static void grow_image(struct image *image) {
    image->capacity = image->capacity == 0 ? 64 : image->capacity * 2;
    image->blobs = memory_resize(image->blobs, image->capacity * sizeof *image->blobs);
    memory_give(image->buckets);
    image->bucket_count = image->capacity * 2;
    image->buckets = memory_take(image->bucket_count * sizeof(uint32_t));
    memset(image->buckets, 0xff, image->bucket_count * sizeof(uint32_t));
    for (uint32_t i = 0; i < image->count; i++) {
        uint32_t bucket = blob_bucket(image, image->blobs[i].name, image->blobs[i].number);
        image->blobs[i].next = image->buckets[bucket];
        image->buckets[bucket] = i;
    }
}

void image_put(struct image *image, const char *name, uint64_t number, struct slice bytes) {
    struct blob *known = find_blob(image, name, number);
    struct slice copy = arena_copy(&image->arena, bytes);
    if (known != NULL) {
        known->bytes = copy;
        return;
    }
    if (image->count == image->capacity)
        grow_image(image);
    // Blobs of one entry come one after another and share the name.
    const char *last = image->count == 0 ? "" : image->blobs[image->count - 1].name;
    const char *kept = strcmp(last, name) == 0 ? last : arena_text(&image->arena, slice_of(name));
    uint32_t bucket = blob_bucket(image, name, number);
    image->blobs[image->count] = (struct blob){
        .name = kept, .number = number, .bytes = copy, .next = image->buckets[bucket]};
    image->buckets[bucket] = image->count++;
}

bool image_get(const struct image *image, const char *name, uint64_t number, struct slice *bytes) {
    const struct blob *blob = find_blob(image, name, number);
    if (blob != NULL)
        *bytes = blob->bytes;
    return blob != NULL;
}

bool image_next(const struct image *image, uint32_t *at, const char **name, uint64_t *number,
                struct slice *bytes) {
    if (*at >= image->count)
        return false;
    const struct blob *blob = &image->blobs[(*at)++];
    *name = blob->name;
    *number = blob->number;
    *bytes = blob->bytes;
    return true;
}

void image_strings_are_foreign(struct image *image) {
    image->foreign = true;
}

bool image_is_foreign(const struct image *image) {
    return image->foreign;
}

void image_put_string(struct image *image, string_id id, struct slice text) {
    enum { STRING_IDS_MAX = 1 << 26 };
    image->foreign = true;
    if (id >= STRING_IDS_MAX)
        return;
    if (id >= image->string_capacity) {
        uint32_t capacity = image->string_capacity == 0 ? 256 : image->string_capacity;
        while (capacity <= id)
            capacity *= 2;
        image->strings = memory_resize(image->strings, capacity * sizeof *image->strings);
        image->ids = memory_resize(image->ids, capacity * sizeof *image->ids);
        memset(image->strings + image->string_capacity, 0,
               (capacity - image->string_capacity) * sizeof *image->strings);
        memset(image->ids + image->string_capacity, 0,
               (capacity - image->string_capacity) * sizeof *image->ids);
        image->string_capacity = capacity;
    }
    struct slice copy = arena_copy(&image->arena, text);
    image->strings[id] = copy.data == NULL ? SLICE("") : copy;
}

static bool knows_string(const struct image *image, string_id id) {
    return id == STRING_NONE || !image->foreign ||
           (id < image->string_capacity && image->strings[id].data != NULL);
}

static string_id string_now(struct image *image, string_id id) {
    if (id == STRING_NONE || !image->foreign)
        return id;
    if (image->ids[id] == STRING_NONE)
        image->ids[id] = intern(image->strings[id]);
    return image->ids[id] == STRING_REFUSED ? STRING_NONE : image->ids[id];
}

// -- saving -------------------------------------------------------------------------------------

struct entry_header {
    uint32_t layout;
    uint32_t row_size;
    uint32_t used;
    uint32_t free_head;
    uint32_t free_count;
    uint32_t reserved;
    uint64_t fingerprint;
};

void saver_init(struct saver *saver, const char *owner, uint64_t fingerprint) {
    *saver =
        (struct saver){.owner = memory_copy_text(owner, strlen(owner)), .fingerprint = fingerprint};
}

static const char *entry_name(struct saver *saver, uint32_t index) {
    struct saved_entry *saved = &saver->saved[index];
    if (saved->name == NULL) {
        const char *name = saver->list.entries[index].name;
        size_t size = strlen(saver->owner) + strlen(name) + 2;
        saved->name = memory_take(size);
        snprintf(saved->name, size, "%s/%s", saver->owner, name);
    }
    return saved->name;
}

void saver_release(struct saver *saver) {
    for (uint32_t i = 0; i < STATE_ENTRIES_MAX; i++) {
        memory_give(saver->saved[i].name);
        memory_give(saver->saved[i].hashes);
    }
    memory_give(saver->owner);
    *saver = (struct saver){0};
}

void saver_forget(struct saver *saver) {
    for (uint32_t i = 0; i < STATE_ENTRIES_MAX; i++) {
        saver->saved[i].count = 0;
        saver->saved[i].header_hash = 0;
    }
}

static struct entry_header header_of(const struct saver *saver, const struct state_entry *entry) {
    struct entry_header header = {.layout = STATE_LAYOUT,
                                  .row_size = (uint32_t)entry->size,
                                  .used = 1,
                                  .free_head = TABLE_NO_ROW,
                                  .fingerprint = saver->fingerprint};
    if (entry->table != NULL) {
        header.used = entry->table->used;
        header.free_head = entry->table->free_head;
        header.free_count = entry->table->free_count;
    }
    return header;
}

static uint32_t page_count(const struct state_entry *entry) {
    return entry->table == NULL ? 1 : table_page_count(entry->table);
}

static struct slice page_at(const struct state_entry *entry, uint32_t page) {
    if (entry->table == NULL)
        return (struct slice){entry->bytes, entry->size};
    size_t size;
    const char *bytes = table_page(entry->table, page, &size);
    return (struct slice){bytes, size};
}

static void save_page(struct saved_entry *saved, const char *name, uint32_t page,
                      struct slice bytes, const struct blob_sink *sink) {
    uint64_t hash = hash_bytes(K0, bytes.data, bytes.size) | 1;
    if (page < saved->count && saved->hashes[page] == hash)
        return;
    if (page >= saved->capacity) {
        saved->capacity = saved->capacity == 0 ? 4 : saved->capacity * 2;
        saved->hashes = memory_resize(saved->hashes, saved->capacity * sizeof *saved->hashes);
    }
    saved->hashes[page] = hash;
    if (page >= saved->count)
        saved->count = page + 1;
    sink->put(sink->context, name, (uint64_t)page + 1, bytes);
}

static void save_entry(struct saver *saver, uint32_t index, const struct blob_sink *sink) {
    const struct state_entry *entry = &saver->list.entries[index];
    struct saved_entry *saved = &saver->saved[index];
    const char *name = entry_name(saver, index);
    struct entry_header header = header_of(saver, entry);
    uint64_t hash = hash_bytes(K1, &header, sizeof header) | 1;
    if (hash != saved->header_hash) {
        saved->header_hash = hash;
        sink->put(sink->context, name, 0, (struct slice){(const char *)&header, sizeof header});
    }
    uint32_t pages = page_count(entry);
    for (uint32_t page = 0; page < pages; page++)
        save_page(saved, name, page, page_at(entry, page), sink);
    if (saved->count > pages) {
        sink->drop(sink->context, name, (uint64_t)pages + 1, saved->count);
        saved->count = pages;
    }
}

void saver_save(struct saver *saver, const struct blob_sink *sink) {
    for (uint32_t i = 0; i < saver->list.count; i++)
        save_entry(saver, i, sink);
}

// -- loading ------------------------------------------------------------------------------------

static bool get_header(const struct image *image, const char *name, struct entry_header *header) {
    struct slice bytes;
    if (!image_get(image, name, 0, &bytes) || bytes.size != sizeof *header)
        return false;
    memcpy(header, bytes.data, sizeof *header);
    return true;
}

// A table of the header's size, made for measuring and checking.
static void make_table(struct table *table, const struct state_entry *entry,
                       const struct entry_header *header) {
    table_init(table, entry->name, entry->size, entry->table->rows_per_chunk);
    table_load(table, header->used, header->free_head, header->free_count);
}

static bool fill_pages(const struct state_entry *entry, struct table *table,
                       const struct image *image, const char *name) {
    uint32_t pages = table == NULL ? 1 : table_page_count(table);
    for (uint32_t page = 0; page < pages; page++) {
        struct slice bytes;
        size_t size = entry->size;
        void *to = table == NULL ? entry->bytes : table_page(table, page, &size);
        if (!image_get(image, name, (uint64_t)page + 1, &bytes) || bytes.size != size)
            return false;
        memcpy(to, bytes.data, size);
    }
    return true;
}

static bool row_strings_known(const struct state_entry *entry, const struct image *image,
                              const char *row) {
    if (entry->row_has_strings != NULL && !entry->row_has_strings(row))
        return true;
    for (uint32_t i = 0; i < entry->string_count; i++) {
        string_id id;
        memcpy(&id, row + entry->strings[i], sizeof id);
        if (!knows_string(image, id))
            return false;
    }
    return true;
}

static void row_strings_map(const struct state_entry *entry, struct image *image, char *row) {
    if (entry->row_has_strings != NULL && !entry->row_has_strings(row))
        return;
    for (uint32_t i = 0; i < entry->string_count; i++) {
        string_id id;
        memcpy(&id, row + entry->strings[i], sizeof id);
        id = string_now(image, id);
        memcpy(row + entry->strings[i], &id, sizeof id);
    }
}

// Calls for every row in use; false when `check` says so for one.
static bool table_strings(const struct state_entry *entry, const struct table *table,
                          struct image *image, bool map) {
    if (entry->string_count == 0 || table->used == 0)
        return true;
    unsigned char *is_free = memory_zero(table->used, 1);
    table_mark_free(table, is_free);
    bool whole = true;
    for (uint32_t row = 0; row < table->used && whole; row++) {
        if (is_free[row])
            continue;
        if (map)
            row_strings_map(entry, image, table_row(table, row));
        else
            whole = row_strings_known(entry, image, table_row(table, row));
    }
    memory_give(is_free);
    return whole;
}

static bool check_struct(const struct state_entry *entry, const struct image *image,
                         const char *name) {
    struct slice bytes;
    return image_get(image, name, 1, &bytes) && bytes.size == entry->size &&
           row_strings_known(entry, image, bytes.data);
}

static bool check_table(const struct state_entry *entry, const struct image *image,
                        const char *name, const struct entry_header *header) {
    // Bounded by what is there, so that a damaged header costs nothing.
    struct slice last;
    uint32_t per_page = table_rows_per_page(entry->table);
    if (header->used > 0 && !image_get(image, name, (header->used - 1) / per_page + 1, &last))
        return false;
    struct table table;
    make_table(&table, entry, header);
    bool whole = fill_pages(entry, &table, image, name) && table_chain_is_whole(&table) &&
                 table_strings(entry, &table, (struct image *)(uintptr_t)image, false);
    table_release(&table);
    return whole;
}

enum saver_answer saver_check(const struct saver *saver, const struct image *image) {
    uint32_t found = 0;
    for (uint32_t i = 0; i < saver->list.count; i++) {
        const struct state_entry *entry = &saver->list.entries[i];
        const char *name = entry_name((struct saver *)(uintptr_t)saver, i);
        struct entry_header header;
        if (!get_header(image, name, &header))
            continue;
        found++;
        if (header.layout != STATE_LAYOUT || header.row_size != entry->size ||
            header.fingerprint != saver->fingerprint)
            return SAVER_OTHER;
        if (entry->table == NULL ? !check_struct(entry, image, name)
                                 : !check_table(entry, image, name, &header))
            return SAVER_DAMAGED;
    }
    if (found == 0)
        return saver->list.count == 0 ? SAVER_WHOLE : SAVER_NOTHING;
    return found == saver->list.count ? SAVER_WHOLE : SAVER_DAMAGED;
}

void saver_load(struct saver *saver, struct image *image) {
    for (uint32_t i = 0; i < saver->list.count; i++) {
        const struct state_entry *entry = &saver->list.entries[i];
        const char *name = entry_name(saver, i);
        struct entry_header header = {0};
        bool whole = get_header(image, name, &header);
        if (entry->table != NULL)
            table_load(entry->table, header.used, header.free_head, header.free_count);
        whole = whole && fill_pages(entry, entry->table, image, name);
        assert(whole); // saver_check said so
        if (entry->table == NULL)
            row_strings_map(entry, image, entry->bytes);
        else
            table_strings(entry, entry->table, image, true);
    }
}

// -- fingerprints -------------------------------------------------------------------------------

uint64_t fingerprint_add(uint64_t fingerprint, struct slice bytes) {
    return hash_bytes(fingerprint ^ K0, bytes.data, bytes.size);
}

static uint64_t add_text(uint64_t fingerprint, const char *text) {
    return fingerprint_add(fingerprint, text == NULL ? SLICE("") : slice_of(text));
}

static uint64_t add_rows(uint64_t fingerprint, const struct option *rows, size_t count,
                         const char *config) {
    for (size_t i = 0; i < count; i++) {
        const struct option *row = &rows[i];
        const char *field = config + row->offset;
        fingerprint = add_text(fingerprint, row->name);
        switch (row->type) {
        case OPTION_BOOL:
            fingerprint = fingerprint_add(fingerprint, (struct slice){field, sizeof(bool)});
            break;
        case OPTION_CHOICE:
            fingerprint = fingerprint_add(fingerprint, (struct slice){field, sizeof(int)});
            break;
        case OPTION_INT:
        case OPTION_RATIO:
        case OPTION_DURATION:
        case OPTION_SIZE:
            fingerprint = fingerprint_add(fingerprint, (struct slice){field, sizeof(int64_t)});
            break;
        case OPTION_TEXT:
            fingerprint = add_text(fingerprint, *(const char *const *)(const void *)field);
            break;
        case OPTION_SECRET:
            break;
        case OPTION_TEXT_LIST: {
            const struct text_list *list = (const void *)field;
            for (uint32_t j = 0; j < list->count; j++)
                fingerprint = add_text(fingerprint, list->items[j]);
            break;
        }
        case OPTION_GROUP:
            fingerprint = add_rows(fingerprint, row->rows, row->row_count, field);
            break;
        }
    }
    return fingerprint;
}

uint64_t config_fingerprint(const struct component_type *type, const void *config) {
    uint64_t fingerprint = add_text(K1, type->name);
    if (config == NULL)
        return fingerprint;
    return add_rows(fingerprint, type->options, type->option_count, config);
}
