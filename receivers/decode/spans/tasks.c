// SPDX-License-Identifier: Apache-2.0
// Reads the events `tasks` and `data`: the tasks that they make known, their groups and spans.
//
// One walk over the list in order, since the order of what is refused is that of the line. Cost is
// that of the line's length, but for the search of repeated keys, which sorts.
#include "receivers/decode/json/scan.h"
#include "receivers/decode/spans/read.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

enum { TASK_KEY, TASK_GROUP, TASK_SPAN, TASK_NBYTES, TASK_SLOT_COUNT };
static const struct json_shape_row task_rows[] = {
    {{"key", 3}, TASK_KEY, NULL},
    {{"group", 5}, TASK_GROUP, NULL},
    {{"span", 4}, TASK_SPAN, NULL},
    {{"nbytes", 6}, TASK_NBYTES, NULL},
};
static const struct json_shape task_shape = JSON_SHAPE(task_rows);

enum { SPAN_NAME, SPAN_IDS, SPAN_PART_COUNT };
static const struct json_shape_row span_rows[] = {
    {{"name", 4}, SPAN_NAME, NULL},
    {{"ids", 3}, SPAN_IDS, NULL},
};
static const struct json_shape span_shape = JSON_SHAPE(span_rows);

enum { FRAME_CODE, FRAME_FILENAME, FRAME_LINENO_FRAME, FRAME_LINENO_RELATIVE, FRAME_PART_COUNT };
static const struct json_shape_row frame_rows[] = {
    {{"code", 4}, FRAME_CODE, NULL},
    {{"filename", 8}, FRAME_FILENAME, NULL},
    {{"lineno_frame", 12}, FRAME_LINENO_FRAME, NULL},
    {{"lineno_relative", 15}, FRAME_LINENO_RELATIVE, NULL},
};
static const struct json_shape frame_shape = JSON_SHAPE(frame_rows);

// The members of an object token; what is not there is TOKEN_NONE.
static void read_members(const struct json_shape *shape, const struct token *object,
                         struct token *slots) {
    assert(object->kind == TOKEN_OBJECT);
    struct json_fault fault;
    memset(slots, 0, shape->count * sizeof *slots);
    json_shape_read(shape, object->text, object->text + object->size, 0, slots, &fault);
}

// -- spans --------------------------------------------------------------------------------------

static bool is_merged(struct slice id) {
    return slice_equal(id, SLICE("(merged)"));
}

// One of the two lists of an annotation.
static bool read_path(struct span_line *line, const char *field, const struct token *array,
                      bool ids, const struct slice **out, uint32_t *out_count) {
    struct slice *texts = NULL;
    uint32_t count = 0, capacity = 0;
    struct token item;
    if (array->kind != TOKEN_ARRAY)
        return span_refuse_value(line, SPAN_BAD_SPAN, field, array, "an array of texts");
    struct json_items items = json_items_of(array);
    while (json_items_next(&items, &item)) {
        if (count == SPAN_DEPTH_MAX)
            return span_refuse(line, SPAN_BAD_SPAN, DECODE_OUT_OF_RANGE, field,
                               "more than %d spans in one another", SPAN_DEPTH_MAX);
        texts = span_grow(line->arena, texts, count, &capacity, sizeof *texts, array);
        if (!span_read_text(line, SPAN_BAD_SPAN, field, &item, !ids, &texts[count]))
            return false;
        if (ids && is_merged(texts[count]))
            return span_refuse(line, SPAN_BAD_SPAN, DECODE_OUT_OF_RANGE, field,
                               "found \"(merged)\", which no span can be called");
        count++;
    }
    *out = texts;
    *out_count = count;
    return true;
}

static struct slice text_at(const void *texts, uint32_t index) {
    return ((const struct slice *)texts)[index];
}

static bool ids_differ(struct span_line *line, const struct span_annotation *annotation) {
    uint32_t *firsts = arena_take(line->arena, annotation->count * sizeof *firsts);
    span_find_firsts(text_at, annotation->ids, annotation->count, firsts, line->arena);
    for (uint32_t i = 0; i < annotation->count; i++)
        if (firsts[i] != i)
            return span_refuse(line, SPAN_BAD_SPAN, DECODE_IDENTITY_CONFLICT, "span.ids",
                               "ids %" PRIu32 " and %" PRIu32 " are the same", firsts[i] + 1,
                               i + 1);
    return true;
}

// null or not there: NULL.
static bool read_span(struct span_line *line, const struct token *token,
                      const struct span_annotation **out) {
    struct token parts[SPAN_PART_COUNT];
    uint32_t names = 0;
    *out = NULL;
    if (!span_token_is_there(token))
        return true;
    if (token->kind != TOKEN_OBJECT)
        return span_refuse_value(line, SPAN_BAD_SPAN, "span", token,
                                 "an object with `name` and `ids`, or null");
    read_members(&span_shape, token, parts);
    struct span_annotation *annotation = arena_zero(line->arena, 1, sizeof *annotation);
    if (!read_path(line, "span.name", &parts[SPAN_NAME], false, &annotation->tags, &names) ||
        !read_path(line, "span.ids", &parts[SPAN_IDS], true, &annotation->ids, &annotation->count))
        return false;
    if (names != annotation->count || names == 0)
        return span_refuse(line, SPAN_BAD_SPAN, DECODE_OUT_OF_RANGE, "span",
                           "found %" PRIu32 " names and %" PRIu32
                           " ids, expected as many of both, at least one",
                           names, annotation->count);
    *out = annotation;
    return ids_differ(line, annotation);
}

// -- tasks --------------------------------------------------------------------------------------

// What the tasks of an event have in common.
struct defaults {
    bool data;
    struct slice group; // data NULL: each has its own
    const struct span_annotation *annotation;
};

// The group of a task: its own, else that of the event.
static bool read_group(struct span_line *line, const struct defaults *defaults,
                       const struct token *token, struct slice *out) {
    if (span_token_is_there(token))
        return span_read_text(line, SPAN_BAD_FIELD, "group", token, false, out);
    *out = defaults->group;
    return out->data != NULL || span_refuse(line, SPAN_BAD_FIELD, DECODE_MISSING_FIELD, "group",
                                            "neither the task nor the event has one");
}

// Appends it once its group is right. A bare key has neither.
static bool read_task(struct span_line *line, const struct defaults *defaults,
                      const struct token *item, uint32_t *capacity) {
    struct span_event *event = line->event;
    struct token parts[TASK_SLOT_COUNT] = {{0}};
    if (item->kind == TOKEN_OBJECT)
        read_members(&task_shape, item, parts);
    else if (item->kind == TOKEN_STRING)
        parts[TASK_KEY] = *item;
    else
        return span_refuse_value(line, SPAN_BAD_FIELD, "", item, "a key, or an object with `key`");
    event->tasks = span_grow(line->arena, event->tasks, event->task_count, capacity,
                             sizeof *event->tasks, &line->slots[SLOT_TASKS]);
    struct span_task *task = &event->tasks[event->task_count];
    *task = (struct span_task){.annotation = defaults->annotation, .nbytes = -1};
    if (!span_read_text(line, SPAN_BAD_FIELD, "key", &parts[TASK_KEY], false, &task->key) ||
        !read_group(line, defaults, &parts[TASK_GROUP], &task->group))
        return false;
    event->task_count++;
    if (defaults->data)
        return parts[TASK_NBYTES].kind == TOKEN_NONE ||
               span_read_count(line, "nbytes", &parts[TASK_NBYTES], &task->nbytes);
    return parts[TASK_SPAN].kind == TOKEN_NONE ||
           read_span(line, &parts[TASK_SPAN], &task->annotation);
}

static bool read_list(struct span_line *line, const struct defaults *defaults) {
    struct json_items items = json_items_of(&line->slots[SLOT_TASKS]);
    struct token item;
    uint32_t capacity = 0;
    line->list = "tasks";
    for (line->index = 0; json_items_next(&items, &item); line->index++)
        if (!read_task(line, defaults, &item, &capacity))
            return false;
    line->list = NULL;
    return true;
}

static struct slice key_at(const void *tasks, uint32_t index) {
    return ((const struct span_task *)tasks)[index].key;
}

void span_find_first_tasks(struct span_event *event, struct arena *arena) {
    uint32_t *firsts = arena_take(arena, event->task_count * sizeof *firsts);
    span_find_firsts(key_at, event->tasks, event->task_count, firsts, arena);
    for (uint32_t i = 0; i < event->task_count; i++)
        event->tasks[i].first = firsts[i];
}

// -- code ---------------------------------------------------------------------------------------

// Names, quotes and commas of one frame, and two numbers.
enum { FRAME_ROOM = 120 };

static bool read_line_number(struct span_line *line, const char *field, const struct token *token,
                             int64_t *out) {
    *out = 0;
    if (!span_token_is_there(token))
        return true;
    if (token->kind != TOKEN_INTEGER)
        return span_refuse_value(line, SPAN_BAD_FIELD, field, token, "an integer");
    *out = token->integer;
    return true;
}

static size_t put(char *out, const char *text) {
    size_t size = strlen(text);
    memcpy(out, text, size);
    return size;
}

static bool write_frame(struct span_line *line, const struct token *item, char *out, size_t *size) {
    static const struct token empty = {.text = "", .kind = TOKEN_STRING};
    struct token parts[FRAME_PART_COUNT];
    struct slice text;
    int64_t frame, relative;
    if (item->kind != TOKEN_OBJECT)
        return span_refuse_value(line, SPAN_BAD_FIELD, "", item, "an object with `code`");
    read_members(&frame_shape, item, parts);
    if (!span_token_is_there(&parts[FRAME_FILENAME]))
        parts[FRAME_FILENAME] = empty;
    if (!span_read_text(line, SPAN_BAD_FIELD, "code", &parts[FRAME_CODE], true, &text) ||
        !span_read_text(line, SPAN_BAD_FIELD, "filename", &parts[FRAME_FILENAME], true, &text) ||
        !read_line_number(line, "lineno_frame", &parts[FRAME_LINENO_FRAME], &frame) ||
        !read_line_number(line, "lineno_relative", &parts[FRAME_LINENO_RELATIVE], &relative))
        return false;
    size_t at = *size;
    at += put(out + at, "{\"code\":");
    at += span_write_text(out + at, &parts[FRAME_CODE], line->arena);
    at += put(out + at, ",\"filename\":");
    at += span_write_text(out + at, &parts[FRAME_FILENAME], line->arena);
    at +=
        (size_t)sprintf(out + at, ",\"lineno_frame\":%" PRId64 ",\"lineno_relative\":%" PRId64 "}",
                        frame, relative);
    *size = at;
    return true;
}

static bool read_code(struct span_line *line) {
    const struct token *array = &line->slots[SLOT_CODE];
    struct token item;
    if (!span_token_is_there(array))
        return true;
    if (array->kind != TOKEN_ARRAY)
        return span_refuse_value(line, SPAN_BAD_FIELD, "code", array, "an array of objects");
    uint32_t count = span_count_items(array);
    if (count == 0)
        return true;
    char *out = arena_take(line->arena, array->size + 2 + (size_t)count * FRAME_ROOM);
    size_t size = 0;
    struct json_items items = json_items_of(array);
    line->list = "code";
    for (line->index = 0; json_items_next(&items, &item); line->index++) {
        out[size++] = line->index == 0 ? '[' : ',';
        if (!write_frame(line, &item, out, &size))
            return false;
    }
    line->list = NULL;
    out[size++] = ']';
    line->event->code = (struct slice){out, size};
    return true;
}

// -- the rest -----------------------------------------------------------------------------------

static bool read_collections(struct span_line *line) {
    const struct token *array = &line->slots[SLOT_COLLECTIONS];
    struct token item;
    if (!span_token_is_there(array))
        return true;
    if (array->kind != TOKEN_ARRAY)
        return span_refuse_value(line, SPAN_BAD_FIELD, "collections", array, "an array of objects");
    struct json_items items = json_items_of(array);
    line->list = "collections";
    for (line->index = 0; json_items_next(&items, &item); line->index++)
        if (item.kind != TOKEN_OBJECT)
            return span_refuse_value(line, SPAN_BAD_FIELD, "", &item, "an object");
    line->list = NULL;
    const char *end = array->text + array->size - 1;
    const char *at = json_skip_space(array->text + 1, end);
    while (end > at && (unsigned char)end[-1] <= ' ')
        end--;
    line->event->collections = (struct slice){at, (size_t)(end - at)};
    return true;
}

static bool names_id(const struct span_annotation *annotation, struct slice id) {
    for (uint32_t i = 0; annotation != NULL && i < annotation->count; i++)
        if (slice_equal(annotation->ids[i], id))
            return true;
    return false;
}

static bool read_default_id(struct span_line *line, const struct span_annotation *annotation) {
    struct span_event *event = line->event;
    const struct token *token = &line->slots[SLOT_DEFAULT_ID];
    struct slice id;
    if (!span_token_is_there(token))
        return true;
    if (!span_read_text(line, SPAN_BAD_SPAN, "default_id", token, false, &id))
        return false;
    if (is_merged(id))
        return span_refuse(line, SPAN_BAD_SPAN, DECODE_OUT_OF_RANGE, "default_id",
                           "found \"(merged)\", which no span can be called");
    bool named = names_id(annotation, id);
    for (uint32_t i = 0; i < event->task_count && !named; i++)
        named =
            event->tasks[i].annotation != annotation && names_id(event->tasks[i].annotation, id);
    if (named)
        return span_refuse(line, SPAN_BAD_SPAN, DECODE_IDENTITY_CONFLICT, "default_id",
                           "a span of the same event has this id");
    event->default_id = id;
    return true;
}

static bool read_all(struct span_line *line, bool data) {
    struct defaults defaults = {.data = data};
    const struct token *group = &line->slots[SLOT_GROUP];
    if (line->slots[SLOT_TASKS].kind != TOKEN_ARRAY)
        return span_refuse_value(line, SPAN_BAD_FIELD, "tasks", &line->slots[SLOT_TASKS],
                                 "an array of tasks");
    if (!data && !read_span(line, &line->slots[SLOT_SPAN], &defaults.annotation))
        return false;
    if (span_token_is_there(group) &&
        !span_read_text(line, SPAN_BAD_FIELD, "group", group, false, &defaults.group))
        return false;
    if (!read_list(line, &defaults) || data)
        return line->event->refused == SPAN_ACCEPTED;
    return read_code(line) && read_collections(line) && read_default_id(line, defaults.annotation);
}

bool span_read_tasks(struct span_line *line, bool data) {
    bool right = read_all(line, data);
    span_find_first_tasks(line->event, line->arena);
    return right;
}
