// SPDX-License-Identifier: Apache-2.0
#include "receivers/kubernetes/meta.h"

#include "receivers/decode/json/scan.h"
#include "receivers/decode/json/text.h"

#include <assert.h>

enum {
    SLOT_TYPE,
    SLOT_OBJECT,
    SLOT_UID,
    SLOT_VERSION,
    SLOT_NAMESPACE,
    SLOT_NAME,
    SLOT_INITIAL_END,
    SLOT_MORE,
    SLOT_CODE,
    SLOT_MESSAGE,
    SLOT_ITEMS,
    SLOT_COUNT
};

#define ROW(key, slot)                                                                             \
    { {(key), sizeof(key) - 1}, (slot), NULL }
#define INNER(key, slot, shape)                                                                    \
    { {(key), sizeof(key) - 1}, (slot), &(shape) }

static const struct json_shape_row annotation_rows[] = {
    ROW("k8s.io/initial-events-end", SLOT_INITIAL_END),
};
static const struct json_shape annotations = JSON_SHAPE(annotation_rows);

static const struct json_shape_row metadata_rows[] = {
    ROW("name", SLOT_NAME),     ROW("namespace", SLOT_NAMESPACE),
    ROW("uid", SLOT_UID),       ROW("resourceVersion", SLOT_VERSION),
    ROW("continue", SLOT_MORE), INNER("annotations", JSON_NO_SLOT, annotations),
};
static const struct json_shape metadata = JSON_SHAPE(metadata_rows);

static const struct json_shape_row object_rows[] = {
    INNER("metadata", JSON_NO_SLOT, metadata),
    ROW("code", SLOT_CODE),
    ROW("message", SLOT_MESSAGE),
    ROW("items", SLOT_ITEMS),
};
static const struct json_shape object = JSON_SHAPE(object_rows);

static const struct json_shape_row line_rows[] = {
    ROW("type", SLOT_TYPE),
    INNER("object", SLOT_OBJECT, object),
};
static const struct json_shape line_shape = JSON_SHAPE(line_rows);

static struct slice text_of(const struct token *token) {
    if (token->kind != TOKEN_STRING || token->escaped != 0)
        return (struct slice){NULL, 0};
    return token_slice(token);
}

static void read_meta(const struct token *slots, struct object_meta *meta) {
    *meta = (struct object_meta){.uid = text_of(&slots[SLOT_UID]),
                                 .version = text_of(&slots[SLOT_VERSION]),
                                 .namespace = text_of(&slots[SLOT_NAMESPACE]),
                                 .name = text_of(&slots[SLOT_NAME])};
}

static bool type_of(const struct token *token, enum watch_event_type *type) {
    static const char *const names[] = {"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"};
    for (unsigned i = 0; token->kind == TOKEN_STRING && i < WATCH_EVENT_TYPE_COUNT; i++)
        if (token_equals(token, slice_of(names[i]))) {
            *type = (enum watch_event_type)i;
            return true;
        }
    return false;
}

bool watch_event_read(struct slice line, struct watch_event *event) {
    struct token slots[SLOT_COUNT] = {0};
    struct json_fault fault;
    *event = (struct watch_event){.type = WATCH_EVENT_ERROR};
    if (!json_shape_read_all(&line_shape, line, slots, &fault) ||
        slots[SLOT_OBJECT].kind != TOKEN_OBJECT || !type_of(&slots[SLOT_TYPE], &event->type))
        return false;
    read_meta(slots, &event->meta);
    event->initial_end = slice_equal(text_of(&slots[SLOT_INITIAL_END]), SLICE("true"));
    if (slots[SLOT_CODE].kind == TOKEN_INTEGER)
        event->code = slots[SLOT_CODE].integer;
    if (slots[SLOT_MESSAGE].kind == TOKEN_STRING)
        event->message = token_slice(&slots[SLOT_MESSAGE]);
    return true;
}

bool list_page_read(struct slice body, struct list_page *page) {
    struct token slots[SLOT_COUNT] = {0};
    struct json_fault fault;
    if (!json_shape_read_all(&object, body, slots, &fault) ||
        (slots[SLOT_ITEMS].kind != TOKEN_ARRAY && slots[SLOT_ITEMS].kind != TOKEN_NULL) ||
        text_of(&slots[SLOT_VERSION]).size == 0)
        return false;
    *page = (struct list_page){.version = text_of(&slots[SLOT_VERSION]),
                               .more = text_of(&slots[SLOT_MORE]),
                               .items = slots[SLOT_ITEMS]};
    return true;
}

bool object_meta_read(struct slice text, struct object_meta *meta) {
    struct token slots[SLOT_COUNT] = {0};
    struct json_fault fault;
    assert(meta != NULL);
    if (!json_shape_read_all(&object, text, slots, &fault))
        return false;
    read_meta(slots, meta);
    return true;
}
