// SPDX-License-Identifier: Apache-2.0
// Parses YAML text into a tree.
//
// libfyaml gives events, an explicit stack makes nodes of them: no recursion, and every bound is
// checked as the nodes come. Closed containers move from the stack of entries to the arena, so an
// entry is copied once. Anchors are kept by name; an alias shares the node and counts as its
// weight. Tags are refused: what a text means is the option rows' business.
#include "config/yaml/scan.h"

#include "base/memory.h"

#include <assert.h>
#include <libfyaml.h>
#include <string.h>

struct frame {
    enum node_type type;
    struct location where;
    uint32_t first_entry; // its entries stand in `entries` from here on
    uint32_t depth;       // the deepest entry's
    uint32_t weight;
    const char *key; // MAP: the key whose value comes next, or NULL
    struct location key_where;
    bool key_known; // the key was given before; its value is dropped
    const char *anchor;
};

struct anchor {
    const char *name;
    struct node *node;
};

struct reader {
    struct arena *arena;
    struct problem_list *problems;
    struct document_text document;
    struct location where; // of the event at hand, or of the last one that had a place
    struct frame frames[DOCUMENT_DEPTH_MAX];
    uint32_t depth;
    struct node_entry *entries; // heap; of all open containers
    uint32_t entry_count, entry_capacity;
    struct anchor anchors[DOCUMENT_ALIASES_MAX];
    uint32_t anchor_count, alias_count, document_count;
    uint64_t node_count; // with aliases counted as what they stand for
    struct node *root;
    bool failed;
};

__attribute__((format(printf, 2, 3))) static void reader_fail(struct reader *reader,
                                                              const char *format, ...) {
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    reader->failed = true;
    problem_add_at(reader->problems, reader->where, "", "%s", text);
}

static struct frame *reader_top(struct reader *reader) {
    return reader->depth == 0 ? NULL : &reader->frames[reader->depth - 1];
}

// Holds no zero byte: the scan refused it, and so does token_copy what an escape made.
static const char *token_copy(struct reader *reader, struct fy_token *token) {
    size_t size = 0;
    const char *text = token == NULL ? NULL : fy_token_get_text(token, &size);
    if (text == NULL)
        return "";
    if (memchr(text, '\0', size) != NULL)
        reader_fail(reader, "a zero byte in a text; leave it out");
    return arena_text(reader->arena, (struct slice){text, size});
}

static void anchor_add(struct reader *reader, const char *name, struct node *node) {
    assert(node != NULL);
    if (name == NULL)
        return;
    if (reader->anchor_count == DOCUMENT_ALIASES_MAX) {
        reader_fail(reader, "more than %d anchors; write the values out", DOCUMENT_ALIASES_MAX);
        return;
    }
    reader->anchors[reader->anchor_count++] = (struct anchor){name, node};
}

// The latest anchor of a name counts.
static struct node *anchor_find(const struct reader *reader, const char *name) {
    for (uint32_t i = reader->anchor_count; i > 0; i--)
        if (strcmp(reader->anchors[i - 1].name, name) == 0)
            return reader->anchors[i - 1].node;
    return NULL;
}

static void entry_push(struct reader *reader, struct node_entry entry) {
    assert(entry.value != NULL);
    reader->entries = memory_room(reader->entries, &reader->entry_capacity, reader->entry_count,
                                  sizeof *reader->entries);
    reader->entries[reader->entry_count++] = entry;
}

// Puts a finished node where it belongs: the root, a list's end, or under the key at hand.
static void node_deliver(struct reader *reader, struct node *node) {
    assert(reader->depth <= DOCUMENT_DEPTH_MAX);
    assert(node->depth > 0 && node->weight > 0);
    reader->node_count += node->weight;
    if (reader->node_count > DOCUMENT_NODES_MAX) {
        reader_fail(reader, "more than %d values, with aliases counted as what they stand for",
                    DOCUMENT_NODES_MAX);
        return;
    }
    struct frame *frame = reader_top(reader);
    if (frame == NULL) {
        reader->root = node;
        return;
    }
    if (reader->depth + node->depth > DOCUMENT_DEPTH_MAX) {
        reader_fail(reader, "nested more than %d deep", DOCUMENT_DEPTH_MAX);
        return;
    }
    if (frame->type == NODE_LIST || !frame->key_known) {
        entry_push(reader, (struct node_entry){frame->key, frame->key_where, node});
        frame->depth = node->depth > frame->depth ? node->depth : frame->depth;
        frame->weight += node->weight;
    }
    frame->key = NULL;
}

static bool key_expected(struct reader *reader) {
    const struct frame *frame = reader_top(reader);
    return frame != NULL && frame->type == NODE_MAP && frame->key == NULL;
}

// The key path of the value at hand, for messages.
static const char *path_here(const struct reader *reader) {
    const char *path = "";
    for (uint32_t i = 0; i < reader->depth; i++) {
        const struct frame *frame = &reader->frames[i];
        uint32_t end =
            i + 1 < reader->depth ? reader->frames[i + 1].first_entry : reader->entry_count;
        if (frame->type == NODE_LIST)
            path = arena_format(reader->arena, "%s[%u]", path, end - frame->first_entry);
        else
            path = arena_format(reader->arena, "%s%s%s", path, *path == '\0' ? "" : ".",
                                frame->key == NULL ? "" : frame->key);
    }
    return path;
}

// Bounds a map's keys, and sees whether this one was there before.
static void key_take(struct reader *reader, const char *key) {
    assert(reader->depth > 0);
    struct frame *frame = reader_top(reader);
    uint32_t count = reader->entry_count - frame->first_entry;
    if (*key == '\0' || strlen(key) > DOCUMENT_KEY_LENGTH_MAX) {
        reader_fail(reader, "a key has 1 to %d bytes", DOCUMENT_KEY_LENGTH_MAX);
        return;
    }
    if (count == DOCUMENT_KEYS_MAX) {
        reader_fail(reader, "more than %d keys in one map", DOCUMENT_KEYS_MAX);
        return;
    }
    frame->key = key;
    frame->key_where = reader->where;
    frame->key_known = false;
    for (uint32_t i = frame->first_entry; i < reader->entry_count && !frame->key_known; i++) {
        const struct node_entry *entry = &reader->entries[i];
        frame->key_known = strcmp(entry->key, key) == 0;
        if (frame->key_known && !problem_list_full(reader->problems))
            problem_add_at(reader->problems, reader->where, path_here(reader),
                           "given twice; it stands in line %u already", entry->key_where.line);
    }
}

static bool text_is_null(const char *text) {
    return *text == '\0' || strcmp(text, "~") == 0 || strcmp(text, "null") == 0 ||
           strcmp(text, "Null") == 0 || strcmp(text, "NULL") == 0;
}

static void scalar_read(struct reader *reader, struct fy_event *event) {
    struct fy_token *value = event->scalar.value;
    bool plain = value == NULL || fy_token_scalar_style(value) == FYSS_PLAIN;
    const char *text = token_copy(reader, value);
    if (key_expected(reader)) {
        if (event->scalar.anchor != NULL)
            reader_fail(reader, "an anchor on a key; put it on a value");
        key_take(reader, text);
        return;
    }
    struct node *node = arena_zero(reader->arena, 1, sizeof *node);
    *node = (struct node){.type = plain && text_is_null(text) ? NODE_NULL : NODE_TEXT,
                          .where = reader->where,
                          .depth = 1,
                          .weight = 1,
                          .text = text,
                          .written = text,
                          .quoted = !plain};
    if (event->scalar.anchor != NULL)
        anchor_add(reader, token_copy(reader, event->scalar.anchor), node);
    node_deliver(reader, node);
}

static void container_open(struct reader *reader, enum node_type type, struct fy_token *anchor) {
    if (key_expected(reader)) {
        reader_fail(reader, "a key must be a text, not a %s", node_type_name(type));
        return;
    }
    if (reader->depth == DOCUMENT_DEPTH_MAX) {
        reader_fail(reader, "nested more than %d deep", DOCUMENT_DEPTH_MAX);
        return;
    }
    struct frame *frame = &reader->frames[reader->depth];
    *frame = (struct frame){.type = type,
                            .where = reader->where,
                            .first_entry = reader->entry_count,
                            .weight = 1,
                            .anchor = anchor == NULL ? NULL : token_copy(reader, anchor)};
    reader->depth++;
}

static void container_close(struct reader *reader) {
    assert(reader->depth > 0);
    const struct frame *frame = &reader->frames[--reader->depth];
    uint32_t count = reader->entry_count - frame->first_entry;
    struct node *node = arena_zero(reader->arena, 1, sizeof *node);
    *node = (struct node){.type = frame->type,
                          .where = frame->where,
                          .depth = frame->depth + 1,
                          .weight = frame->weight,
                          .entries = arena_take(reader->arena, count * sizeof *node->entries),
                          .count = count};
    if (count > 0)
        memcpy(node->entries, &reader->entries[frame->first_entry], count * sizeof *node->entries);
    reader->entry_count = frame->first_entry;
    reader->node_count -= node->weight - 1; // its parts were counted one by one
    anchor_add(reader, frame->anchor, node);
    node_deliver(reader, node);
}

// Whether the alias stands inside the map or list that the anchor names.
static bool anchor_is_open(const struct reader *reader, const char *name) {
    for (uint32_t i = 0; i < reader->depth; i++)
        if (reader->frames[i].anchor != NULL && strcmp(reader->frames[i].anchor, name) == 0)
            return true;
    return false;
}

static void alias_read(struct reader *reader, struct fy_event *event) {
    const char *name = token_copy(reader, event->alias.anchor);
    struct node *node = anchor_find(reader, name);
    if (key_expected(reader))
        reader_fail(reader, "an alias as a key; write the key out");
    else if (++reader->alias_count > DOCUMENT_ALIASES_MAX)
        reader_fail(reader, "more than %d aliases; write the values out", DOCUMENT_ALIASES_MAX);
    else if (node == NULL && anchor_is_open(reader, name))
        reader_fail(
            reader,
            "alias '*%.64s' refers to itself: it stands inside what &%.64s names; write the "
            "value out",
            name, name);
    else if (node == NULL)
        reader_fail(reader, "alias '*%.64s' has no anchor before it; quote the text if it is none",
                    name);
    else
        node_deliver(reader, node);
}

static void tag_refuse(struct reader *reader, struct fy_token *tag) {
    if (tag != NULL)
        reader_fail(reader, "a tag; write the value without it");
}

// A quoted text's mark is behind its quote, an alias's behind its star.
static void where_update(struct reader *reader, struct fy_event *event) {
    const struct fy_mark *mark = fy_event_start_mark(event);
    if (mark == NULL || event->type == FYET_DOCUMENT_START)
        return;
    size_t offset = mark->input_pos;
    offset -= offset > 0 && event->type == FYET_ALIAS;
    if (event->type == FYET_SCALAR && event->scalar.value != NULL) {
        enum fy_scalar_style style = fy_token_scalar_style(event->scalar.value);
        offset -= offset > 0 && (style == FYSS_SINGLE_QUOTED || style == FYSS_DOUBLE_QUOTED);
    }
    reader->where = document_place(&reader->document, offset);
}

static void document_start(struct reader *reader, struct fy_event *event) {
    if (++reader->document_count == 1)
        return;
    const struct fy_mark *mark = fy_event_start_mark(event);
    if (mark != NULL)
        reader->where = document_place(&reader->document, mark->input_pos);
    reader_fail(reader, "a second YAML document; use one document a file");
}

static void event_read(struct reader *reader, struct fy_event *event) {
    where_update(reader, event);
    switch (event->type) {
    case FYET_DOCUMENT_START:
        document_start(reader, event);
        break;
    case FYET_MAPPING_START:
        tag_refuse(reader, event->mapping_start.tag);
        container_open(reader, NODE_MAP, event->mapping_start.anchor);
        break;
    case FYET_SEQUENCE_START:
        tag_refuse(reader, event->sequence_start.tag);
        container_open(reader, NODE_LIST, event->sequence_start.anchor);
        break;
    case FYET_MAPPING_END:
    case FYET_SEQUENCE_END:
        container_close(reader);
        break;
    case FYET_SCALAR:
        tag_refuse(reader, event->scalar.tag);
        scalar_read(reader, event);
        break;
    case FYET_ALIAS:
        alias_read(reader, event);
        break;
    default:
        break;
    }
}

// The line at hand holds a reference: unquoted ones end at the brace in [] and {}.
static bool line_refers(const struct reader *reader) {
    const struct document_text *document = &reader->document;
    if (reader->where.line == 0 || reader->where.line > document->line_count)
        return false;
    size_t start = document->line_starts[reader->where.line - 1];
    struct slice rest = {document->text.data + start, document->text.size - start};
    const char *end = memchr(rest.data, '\n', rest.size);
    return memmem(rest.data, end == NULL ? rest.size : (size_t)(end - rest.data), "${", 2) != NULL;
}

// The parser's own words for what it could not read; they quote at most a character.
static void syntax_problem(struct reader *reader, struct fy_diag *diag) {
    void *iterator = NULL;
    const struct fy_diag_error *fault = fy_diag_errors_iterate(diag, &iterator);
    const char *text = fault == NULL || fault->msg == NULL ? "it cannot be read" : fault->msg;
    if (fault != NULL && fault->line > 0 && fault->column > 0)
        reader->where =
            document_place_of(&reader->document, (uint32_t)fault->line, (uint32_t)fault->column);
    const char *hint = line_refers(reader) ? "; inside [] and {} write \"${...}\" in quotes" : "";
    reader_fail(reader, "not YAML: %s%s", text, hint);
}

static void events_read(struct reader *reader, struct fy_parser *parser, struct fy_diag *diag) {
    while (!reader->failed) {
        struct fy_event *event = fy_parser_parse(parser);
        if (event == NULL)
            break;
        event_read(reader, event);
        fy_parser_event_free(parser, event);
    }
    if (!reader->failed && fy_parser_get_stream_error(parser))
        syntax_problem(reader, diag);
}

static void parser_run(struct reader *reader) {
    struct fy_diag_cfg diag_config;
    fy_diag_cfg_default(&diag_config);
    diag_config.fp = NULL;
    diag_config.colorize = false;
    struct fy_diag *diag = fy_diag_create(&diag_config);
    if (diag == NULL)
        memory_exhausted(sizeof diag_config);
    fy_diag_set_collect_errors(diag, true);
    struct fy_parse_cfg config = {.flags = FYPCF_QUIET | FYPCF_COLLECT_DIAG | FYPCF_JSON_NONE |
                                           FYPCF_DEFAULT_VERSION_1_2,
                                  .diag = diag};
    struct fy_parser *parser = fy_parser_create(&config);
    if (parser == NULL)
        memory_exhausted(sizeof config);
    struct slice text = reader->document.text;
    if (fy_parser_set_string(parser, text.data, text.size) == 0)
        events_read(reader, parser, diag);
    else
        reader_fail(reader, "the YAML parser cannot take it");
    fy_parser_destroy(parser);
    fy_diag_destroy(diag);
}

// A file holds a map, or nothing at all; a --set value holds anything.
static struct node *root_check(struct reader *reader) {
    bool from_file = reader->document.name != NULL;
    struct node *root = reader->root;
    if (root == NULL || (root->type == NODE_NULL && from_file)) {
        root = arena_zero(reader->arena, 1, sizeof *root);
        *root = (struct node){.type = from_file ? NODE_MAP : NODE_NULL,
                              .where = document_place(&reader->document, 0),
                              .depth = 1,
                              .weight = 1};
    }
    if (!from_file || root->type == NODE_MAP)
        return root;
    reader->where = root->where;
    reader_fail(reader,
                "a configuration is a map of receivers, processors, exporters and service, "
                "not a %s",
                node_type_name(root->type));
    return NULL;
}

struct node *document_parse(struct arena *arena, const char *name, struct slice text,
                            struct problem_list *problems) {
    assert(arena != NULL && problems != NULL);
    struct reader *reader = memory_zero(1, sizeof *reader);
    reader->arena = arena;
    reader->problems = problems;
    const char *kept_name = name == NULL ? NULL : arena_text(arena, slice_of(name));
    struct node *root = NULL;
    if (document_scan(&reader->document, arena, kept_name, text, problems)) {
        reader->where = document_place(&reader->document, 0);
        if (text.size > 0)
            parser_run(reader);
        if (!reader->failed)
            root = root_check(reader);
    }
    memory_give(reader->entries);
    memory_give(reader);
    return root;
}
