// SPDX-License-Identifier: Apache-2.0
// What a search found: files, notes, and the order that they are read in.
//
// Sorted by the bytes of the paths; of several names of one file the first stays. The memory is
// kept from search to search, but for what sorting out doubles needs (9 bytes a file).
#include "receivers/file/find/find.h"

#include "base/memory.h"
#include "base/sort.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>

void found_list_init(struct found_list *list) {
    *list = (struct found_list){0};
    arena_init(&list->arena, 64 << 10);
    arena_init(&list->scratch, 64 << 10);
}

void found_list_release(struct found_list *list) {
    arena_release(&list->arena);
    arena_release(&list->scratch);
    memory_give(list->files);
    memory_give(list->directories);
    probes_release(&list->probes);
    list->files = NULL;
    list->directories = NULL;
}

void found_note_add(struct found_list *list, bool missing, struct slice path, const char *format,
                    ...) {
    uint32_t max = missing ? 2 * FIND_NOTES_MAX : FIND_NOTES_MAX;
    assert(max <= sizeof list->notes / sizeof list->notes[0]);
    if (list->note_count >= max)
        return;
    va_list arguments;
    va_start(arguments, format);
    struct slice text = slice_of(arena_format_list(&list->arena, format, arguments));
    va_end(arguments);
    list->notes[list->note_count++] =
        (struct found_note){arena_copy(&list->arena, path), text, missing};
}

static int compare_identities(const void *a, const void *b) {
    const struct found_file *x = *(const struct found_file *const *)a;
    const struct found_file *y = *(const struct found_file *const *)b;
    return COMPARE_KEYS(COMPARE(x->identity.device, y->identity.device),
                        COMPARE(x->identity.inode, y->identity.inode), COMPARE(x, y));
}

// Files are sorted by path; of several names of one file the first stays.
static void remove_doubles(struct found_list *list) {
    assert(list->count > 0);
    struct found_file **order = memory_take(list->count * sizeof(struct found_file *));
    for (uint32_t i = 0; i < list->count; i++)
        order[i] = &list->files[i];
    qsort(order, list->count, sizeof(struct found_file *), compare_identities);
    bool *twice = memory_zero(list->count, sizeof *twice);
    const struct found_file *kept = list->count > 0 ? order[0] : NULL;
    for (uint32_t i = 1; i < list->count; i++) {
        if (!file_identity_equal(order[i]->identity, kept->identity)) {
            kept = order[i];
            continue;
        }
        twice[order[i] - list->files] = true;
        if (!slice_equal(order[i]->path, kept->path))
            found_note_add(list, false, order[i]->path, "is the same file as %s and read once",
                           kept->path.data);
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < list->count; i++)
        if (!twice[i])
            list->files[count++] = list->files[i];
    list->count = count;
    memory_give(twice);
    memory_give(order);
}

void found_list_order(struct found_list *list) {
    if (list->count < 2)
        return;
    qsort(list->files, list->count, sizeof *list->files, compare_by_slice);
    remove_doubles(list);
}
