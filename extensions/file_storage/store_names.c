// SPDX-License-Identifier: Apache-2.0
// The small numbers that stand for names in the store's keys.
//
// Names are components, tables and exporters: some hundred. They are looked through in order, by
// hash first, and the one found last is tried before all.
#include "extensions/file_storage/store_parts.h"

#include "base/hash/crc32c.h"
#include "base/memory.h"

#include <assert.h>

static uint32_t name_hash(enum storage_space space, const char *text) {
    return crc32c((uint32_t)space, slice_of(text));
}

static bool name_is(const struct store_name *name, uint32_t hash, enum storage_space space,
                    const char *text) {
    return name->text != NULL && name->hash == hash && name->space == space &&
           strcmp(name->text, text) == 0;
}

uint32_t names_find(struct store_names *names, enum storage_space space, const char *text) {
    assert(text != NULL);
    uint32_t hash = name_hash(space, text);
    if (names->recent < names->count && name_is(&names->items[names->recent], hash, space, text))
        return names->recent;
    for (uint32_t id = 1; id < names->count; id++)
        if (name_is(&names->items[id], hash, space, text))
            return names->recent = id;
    return 0;
}

uint32_t names_free_id(const struct store_names *names) {
    for (uint32_t id = 1; id < names->count; id++)
        if (names->items[id].text == NULL)
            return id;
    uint32_t id = names->count == 0 ? 1 : names->count;
    assert(id <= STORE_NAME_IDS && "names come from the configuration");
    return id;
}

void names_set(struct store_names *names, uint32_t id, enum storage_space space, const char *text) {
    assert(id > 0 && id <= STORE_NAME_IDS);
    if (id >= names->capacity) {
        uint32_t capacity = id < 32 ? 32 : id * 2;
        names->items = memory_resize(names->items, capacity * sizeof *names->items);
        memset(names->items + names->capacity, 0,
               (capacity - names->capacity) * sizeof *names->items);
        names->capacity = capacity;
    }
    names_clear(names, id);
    names->items[id] = (struct store_name){.text = memory_copy_text(text, strlen(text)),
                                           .hash = name_hash(space, text),
                                           .space = space};
    if (id >= names->count)
        names->count = id + 1;
}

void names_clear(struct store_names *names, uint32_t id) {
    assert(id > 0);
    if (id >= names->count)
        return;
    memory_give(names->items[id].text);
    names->items[id].text = NULL;
}

void names_release(struct store_names *names) {
    for (uint32_t id = 0; id < names->count; id++)
        memory_give(names->items[id].text);
    memory_give(names->items);
    *names = (struct store_names){0};
}
