// SPDX-License-Identifier: Apache-2.0
// Reads the phase that a record enters or leaves.
//
// One walk collects the eight values that matter, then each is judged; a value that breaks a rule
// makes the boundary none, as in stormlog's replay (0.4.3). Memory: the scope, and the label when
// its path has more than one part. Thread ids and sequences beyond int64 make it none as well.
#include "receivers/decode/telemetry/phase.h"

#include "receivers/decode/json/fault.h"
#include "receivers/decode/json/shape.h"
#include "receivers/decode/json/text.h"

enum scope_key {
    SCOPE_ACTION,
    SCOPE_NAME,
    SCOPE_PATH,
    SCOPE_ID,
    SCOPE_PARENT,
    SCOPE_THREAD_ID,
    SCOPE_SEQUENCE,
    SCOPE_THREAD_NAME,
    SCOPE_KEY_COUNT
};

static const struct slice scope_keys[SCOPE_KEY_COUNT] = {
    [SCOPE_ACTION] = {"action", 6},
    [SCOPE_NAME] = {"name", 4},
    [SCOPE_PATH] = {"path", 4},
    [SCOPE_ID] = {"scope_id", 8},
    [SCOPE_PARENT] = {"parent_scope_id", 15},
    [SCOPE_THREAD_ID] = {"thread_id", 9},
    [SCOPE_SEQUENCE] = {"sequence", 8},
    [SCOPE_THREAD_NAME] = {"thread_name", 11},
};

static void read_values(const struct token *object, struct token values[SCOPE_KEY_COUNT]) {
    struct json_pairs pairs = json_pairs_of(token_slice(object));
    struct token key, value;
    while (json_pairs_next(&pairs, &key, &value))
        for (size_t i = 0; i < SCOPE_KEY_COUNT; i++)
            if (key.size >= scope_keys[i].size && token_equals(&key, scope_keys[i]))
                values[i] = value;
}

// JSON true and false count as 1 and 0.
static bool read_number(const struct token *value, int64_t *number, bool *is_bool) {
    *is_bool = value->kind == TOKEN_TRUE || value->kind == TOKEN_FALSE;
    *number = *is_bool ? value->kind == TOKEN_TRUE : value->integer;
    return *is_bool || value->kind == TOKEN_INTEGER;
}

// The non-empty texts of the path joined by " / ", and how many they are. The path as written is
// never shorter: quotes and a comma between two texts are as many bytes as the separator.
static struct slice join_path(const struct token *path, uint32_t *depth, struct arena *arena) {
    char *label = arena_take(arena, path->size);
    size_t size = 0;
    *depth = 0;
    struct json_items items = json_items_of(path);
    struct token part;
    while (json_items_next(&items, &part)) {
        if (part.kind != TOKEN_STRING || part.size == 0)
            continue;
        struct slice text = token_decode(&part, arena);
        if (*depth > 0) {
            memcpy(label + size, " / ", 3);
            size += 3;
        }
        memcpy(label + size, text.data, text.size);
        size += text.size;
        ++*depth;
    }
    return (struct slice){label, size};
}

static bool is_boundary(const struct token values[SCOPE_KEY_COUNT], bool enter) {
    const struct token *parent = &values[SCOPE_PARENT];
    bool texts =
        values[SCOPE_ACTION].kind == TOKEN_STRING && values[SCOPE_NAME].kind == TOKEN_STRING &&
        values[SCOPE_ID].kind == TOKEN_STRING && values[SCOPE_THREAD_NAME].kind == TOKEN_STRING &&
        (parent->kind == TOKEN_NONE || parent->kind == TOKEN_NULL || parent->kind == TOKEN_STRING);
    return texts && values[SCOPE_PATH].kind == TOKEN_ARRAY &&
           token_equals(&values[SCOPE_ACTION], enter ? SLICE("enter") : SLICE("exit")) &&
           !token_is_blank(&values[SCOPE_NAME]);
}

enum decode_category phase_scope_read(const struct token *object, bool enter, struct arena *arena,
                                      const struct phase_scope **scope,
                                      struct decode_fault *fault) {
    *scope = NULL;
    if (object->kind != TOKEN_OBJECT)
        return DECODE_OK;
    struct token values[SCOPE_KEY_COUNT] = {{.kind = TOKEN_NONE}};
    read_values(object, values);
    struct phase_scope read = {.label = STRING_NONE};
    if (!is_boundary(values, enter) ||
        !read_number(&values[SCOPE_THREAD_ID], &read.thread_id, &read.thread_id_is_bool) ||
        !read_number(&values[SCOPE_SEQUENCE], &read.sequence, &read.sequence_is_bool))
        return DECODE_OK;
    struct slice label = join_path(&values[SCOPE_PATH], &read.depth, arena);
    if (read.depth == 0)
        return DECODE_OK;
    struct slice thread_name = token_decode(&values[SCOPE_THREAD_NAME], arena);
    enum decode_category category =
        fault_intern(fault, SLICE("metadata.phase_scope.path"), label, &read.label);
    if (category == DECODE_OK)
        category = fault_intern(fault, SLICE("metadata.phase_scope.thread_name"), thread_name,
                                &read.thread_name);
    if (category != DECODE_OK)
        return category;
    read.scope_id = token_decode(&values[SCOPE_ID], arena);
    struct phase_scope *kept = arena_take(arena, sizeof *kept);
    *kept = read;
    *scope = kept;
    return DECODE_OK;
}
