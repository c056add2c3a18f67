// SPDX-License-Identifier: Apache-2.0
// Reads the inputs of `tests`.
//
// An input is bound as a file receiver: the options of the receiver that it stands for, as far as
// both types have them, with those of the input laid over. What ${…} stands for differs from
// machine to machine, so an option that holds it is left out.
#include "pipeline/plan/test_parts.h"
#include "pipeline/plan/tests.h"

#include "base/text/rfc3339.h"
#include "config/problem.h"

#include <assert.h>
#include <string.h>
#include <unistd.h>

struct input_config {
    const char *receiver;
    struct text_list include, exclude;
    const char *text, *name, *written;
};

static const struct option INPUT_ROWS[] = {
    OPTION(struct input_config, receiver, OPTION_TEXT,
           .help = "the receiver of the pipeline that the input stands for: its options hold for "
                   "it, as far as they are among those below; not needed where the pipeline has "
                   "only one"),
    OPTION(struct input_config, include, OPTION_TEXT_LIST,
           .help = "files, directories and patterns to read, relative to the folder of the "
                   "configuration"),
    OPTION(struct input_config, exclude, OPTION_TEXT_LIST,
           .help = "patterns of paths to leave out"),
    OPTION(struct input_config, text, OPTION_TEXT, .help = "the input itself, instead of include"),
    OPTION(struct input_config, name, OPTION_TEXT,
           .help = "the text's path, where it tells what the input is; default: `text-1` and so "
                   "on"),
    OPTION(struct input_config, written, OPTION_TEXT, .default_value = "2000-01-01T00:00:00Z",
           .help = "when the text was written, in RFC 3339, for lines that say no year or only the "
                   "time since boot"),
};

// Options of the file receiver that an input has, too.
static const char *const SHARED[] = {
    "format",    "job_id",     "node",          "timezone",
    "boot_time", "world_size", "max_line_size", "max_document_size",
};
enum { SHARED_COUNT = sizeof SHARED / sizeof SHARED[0] };

static const struct option *row_named(const struct component_type *type, const char *name) {
    for (size_t i = 0; i < type->option_count; i++)
        if (strcmp(type->options[i].name, name) == 0)
            return &type->options[i];
    return NULL;
}

static const struct component_type *file_type(struct component_set set) {
    return component_find(set, COMPONENT_RECEIVER, SLICE("file"));
}

size_t plan_test_input_rows(struct component_set set,
                            struct option rows[PLAN_TEST_INPUT_ROWS_MAX]) {
    _Static_assert(OPTION_COUNT(INPUT_ROWS) + SHARED_COUNT <= PLAN_TEST_INPUT_ROWS_MAX, "room");
    const struct component_type *file = file_type(set);
    memcpy(rows, INPUT_ROWS, sizeof INPUT_ROWS);
    size_t count = OPTION_COUNT(INPUT_ROWS);
    for (size_t i = 0; file != NULL && i < SHARED_COUNT; i++) {
        const struct option *row = row_named(file, SHARED[i]);
        if (row != NULL)
            rows[count++] = *row;
    }
    return count;
}

// The receiver whose place the input takes; NULL: none, or with a problem.
static const struct plan_component *receiver_of(const struct plan_builder *builder,
                                                const struct bind_source *source,
                                                const struct plan_pipeline *pipeline,
                                                const char *id) {
    const struct plan_component *components = builder->plan->components;
    const char *names[PLAN_LIST_MAX];
    assert(pipeline->receiver_count <= PLAN_LIST_MAX);
    if (id == NULL)
        return pipeline->receiver_count == 1 ? &components[pipeline->receivers[0]] : NULL;
    for (uint32_t i = 0; i < pipeline->receiver_count; i++) {
        names[i] = components[pipeline->receivers[i]].id;
        if (strcmp(names[i], id) == 0)
            return &components[pipeline->receivers[i]];
    }
    const char *near = option_nearest(id, names, pipeline->receiver_count);
    const struct node *node = node_child(source->node, "receiver");
    const char *key = arena_format(&builder->plan->arena, "%s.receiver", source->key);
    if (near != NULL)
        problem_add_at(builder->binder.problems, node->where, key,
                       "'%.60s' is no receiver of the pipeline; did you mean '%s'?", id, near);
    else
        problem_add_at(builder->binder.problems, node->where, key,
                       "'%.60s' is no receiver of the pipeline; its first is %s", id,
                       pipeline->receiver_count == 0 ? "missing" : names[0]);
    return NULL;
}

// Whether both mean the same by this option.
static bool rows_equal(const struct option *one, const struct option *other) {
    return one != NULL && other != NULL && one->type == other->type &&
           one->choices == other->choices;
}

static void inherit(const struct plan_builder *builder, const struct component_type *file,
                    const struct plan_component *receiver, struct node *map) {
    assert(map->type == NODE_MAP);
    if (receiver == NULL || receiver->node == NULL)
        return;
    for (size_t i = 0; i < SHARED_COUNT; i++) {
        const struct node_entry *entry = node_entry_find(receiver->node, SHARED[i]);
        const struct option *row = row_named(receiver->type, SHARED[i]);
        if (entry != NULL && node_child(map, SHARED[i]) == NULL && !entry->value->expanded &&
            rows_equal(row_named(file, SHARED[i]), row) &&
            !problem_list_names(
                builder->binder.problems,
                arena_format(&builder->plan->arena, "receivers.%s.%s", receiver->id, SHARED[i])))
            map->entries[map->count++] = *entry;
    }
}

// With a backslash before what means something in a pattern.
static const char *folder_escaped(struct arena *arena, struct slice folder) {
    char *out = arena_take(arena, 2 * folder.size + 1);
    size_t used = 0;
    for (size_t i = 0; i < folder.size; i++) {
        if (strchr("*?[]{}\\", folder.data[i]) != NULL)
            out[used++] = '\\';
        out[used++] = folder.data[i];
    }
    out[used] = '\0';
    return out;
}

const char *plan_path_from(struct arena *arena, const char *file, const char *path) {
    assert(path != NULL);
    const char *slash = file == NULL ? NULL : strrchr(file, '/');
    if (*path == '/' || slash == NULL)
        return path;
    struct slice folder = {file, (size_t)(slash + 1 - file)};
    const char *joined = arena_format(arena, "%.*s%s", (int)folder.size, folder.data, path);
    if (access(joined, F_OK) == 0)
        return joined;
    return arena_format(arena, "%s%s", folder_escaped(arena, folder), path);
}

// In place: the list is the component's.
static void paths_resolve(const struct plan_builder *builder, const struct node *node,
                          const char *key, struct text_list *list) {
    const char **items = arena_zero(&builder->plan->arena, list->count, sizeof *items);
    for (uint32_t i = 0; i < list->count; i++) {
        const struct node *item =
            node->type == NODE_LIST && i < node->count ? node->entries[i].value : node;
        if (strcmp(list->items[i], "-") == 0)
            problem_add_at(builder->binder.problems, item->where,
                           arena_format(&builder->plan->arena, "%s.include", key),
                           "a test cannot read standard input; name a file, or write the text "
                           "under text");
        items[i] = plan_path_from(&builder->plan->arena, item->where.file, list->items[i]);
    }
    *list = (struct text_list){items, list->count};
}

static bool name_good(const char *name) {
    assert(name != NULL);
    size_t size = strlen(name);
    if (size == 0 || size > PLAN_TEST_NAME_MAX || *name == '/' || name[size - 1] == '/' ||
        strstr(name, "//") != NULL || strpbrk(name, "*?[]{}\\") != NULL)
        return false;
    for (const char *part = name; part != NULL; part = strchr(part, '/')) {
        part += *part == '/';
        if (part[0] == '.' && strchr("/.", part[1]) != NULL) // "." and ".."; '\0' is found, too
            return false;
    }
    return true;
}

static void input_check(const struct plan_builder *builder, const struct bind_source *source,
                        const struct input_config *config, struct plan_test_input *out) {
    struct problem_list *problems = builder->binder.problems;
    const struct node *name = node_child(source->node, "name");
    struct arena *arena = &builder->plan->arena;
    bool files = node_child(source->node, "include") != NULL;
    if (files == (node_child(source->node, "text") != NULL))
        problem_add_at(problems, source->where, source->key,
                       files ? "has both include and text; write one of them"
                             : "has no input; name files under include, or write it under text");
    if (files && name != NULL)
        problem_add_at(problems, name->where, arena_format(arena, "%s.name", source->key),
                       "is for text; files have their own names");
    else if (name != NULL && config->name != NULL && !name_good(config->name))
        problem_add_at(problems, name->where, arena_format(arena, "%s.name", source->key),
                       "is not the relative path of a file of at most %d bytes, without '..' and "
                       "characters of patterns",
                       PLAN_TEST_NAME_MAX);
    if (config->written != NULL &&
        (rfc3339_parse(slice_of(config->written), &out->written_ns, &(bool){false}) != RFC3339_OK ||
         out->written_ns < 1000000000))
        problem_add_at(problems, node_child(source->node, "written")->where,
                       arena_format(arena, "%s.written", source->key),
                       "'%.60s' is not a time since 1970 such as 2026-01-31T12:00:00Z",
                       config->written);
}

// A text, for `include` of an inline text.
static struct node *text_node(struct arena *arena, const char *text, struct location where) {
    struct node *node = arena_zero(arena, 1, sizeof *node);
    *node = (struct node){.type = NODE_TEXT,
                          .where = where,
                          .depth = 1,
                          .weight = 1,
                          .text = text,
                          .written = text,
                          .quoted = true};
    return node;
}

// Binds the input as a file receiver.
static void component_define(struct plan_builder *builder, const struct bind_source *source,
                             const struct plan_component *receiver, const struct input_config *own,
                             struct plan_test_input *out) {
    const struct component_type *type = file_type(builder->input->components);
    assert(type != NULL && out->name != NULL);
    struct option rows[SHARED_COUNT];
    struct arena *arena = &builder->plan->arena;
    size_t count = 0;
    for (size_t i = 0; i < SHARED_COUNT; i++)
        if (row_named(type, SHARED[i]) != NULL)
            rows[count++] = *row_named(type, SHARED[i]);
    struct node *map = plan_map_copy(builder, source->node, rows, count, SHARED_COUNT + 2);
    inherit(builder, type, receiver, map);
    const struct node_entry *given = node_entry_find(source->node, "include");
    struct node *include =
        given == NULL ? text_node(arena, out->name, source->where) : given->value;
    map->entries[map->count++] = (struct node_entry){"include", source->where, include};
    struct bind_source all = *source;
    all.node = map;
    void *config = arena_zero(arena, 1, type->config_size);
    if (!bind_options(&builder->binder, type->options, type->option_count, &all, config))
        return;
    struct text_list *included = (void *)((char *)config + row_named(type, "include")->offset);
    struct text_list *excluded = (void *)((char *)config + row_named(type, "exclude")->offset);
    if (out->text == NULL)
        paths_resolve(builder, include, source->key, included);
    *excluded = own->exclude;
    plan_validate_component(builder, type, config, source->key);
    out->component = (struct plan_component){
        .type = type, .config = config, .where = source->where, .used = true};
}

void plan_define_test_input(struct plan_builder *builder, const struct plan_pipeline *pipeline,
                            const struct node *item, const char *key, uint32_t number,
                            struct plan_test_input *out) {
    struct option rows[PLAN_TEST_INPUT_ROWS_MAX];
    const char *names[PLAN_TEST_INPUT_ROWS_MAX];
    size_t row_count = plan_test_input_rows(builder->input->components, rows);
    struct bind_source source;
    struct input_config config = {0};
    if (!plan_item_open(builder, item, key, names, plan_names_add(names, 0, rows, row_count),
                        &source))
        return;
    struct bind_source own = source;
    own.node = plan_map_copy(builder, item, INPUT_ROWS, OPTION_COUNT(INPUT_ROWS), 0);
    if (!bind_options(&builder->binder, INPUT_ROWS, OPTION_COUNT(INPUT_ROWS), &own, &config))
        return;
    uint32_t before = builder->binder.problems->count;
    input_check(builder, &source, &config, out);
    out->text = config.text;
    out->name = config.name != NULL ? config.name
                                    : arena_format(&builder->plan->arena, "text-%u", number + 1);
    const struct plan_component *receiver =
        pipeline == NULL ? NULL : receiver_of(builder, &source, pipeline, config.receiver);
    if (builder->binder.problems->count > before || file_type(builder->input->components) == NULL)
        return;
    component_define(builder, &source, receiver, &config, out);
    out->component.id = arena_format(&builder->plan->arena, "file/input-%u", number + 1);
}
