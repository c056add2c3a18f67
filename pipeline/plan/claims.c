// SPDX-License-Identifier: Apache-2.0
// Checks that no two components want the same port, file or directory, and that files can be
// made.
//
// Option rows say which texts are claims (enum option_claim). They are gathered from everything
// that runs and compared in pairs, so that what would fail at the start, or mix two outputs in one
// file, is told with its place. Ports are compared without asking for names. Cost: a stat a path,
// and the square of the claims, which are a few for each component.
#include "base/http/endpoint.h"
#include "base/path_identity.h"
#include "config/problem.h"
#include "config/yaml/document.h"
#include "pipeline/plan/builder.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

struct claim {
    enum option_claim what;
    const char *key;   // "exporters.json.path"
    const char *value; // never shown
    const char *shown; // as it was written
    struct location where;
    const char *identity; // of a path; NULL: many may have it
    struct endpoint endpoint;
    bool is_made; // a directory that is made when it is not there
    bool is_standard_output;
};

struct claim_list {
    struct claim *items;
    uint32_t count, capacity;
};

static struct claim *claim_add(struct plan_builder *builder, struct claim_list *list) {
    if (list->count == list->capacity) {
        list->capacity = list->capacity == 0 ? 16 : list->capacity * 2;
        list->items = arena_enlarge(&builder->plan->arena, list->items, list->count, list->capacity,
                                    sizeof *list->items);
    }
    return &list->items[list->count++];
}

// file_storage: whether the rows beside a directory's say that it is not made.
static bool directory_made(const struct option *rows, size_t count, const char *config) {
    for (size_t i = 0; i < count; i++)
        if (rows[i].type == OPTION_BOOL && strcmp(rows[i].name, "create_directory") == 0)
            return *(const bool *)(config + rows[i].offset);
    return true;
}

// False when the value says nothing that could be compared.
static bool claim_fill(struct plan_builder *builder, struct claim *claim) {
    assert(claim->value != NULL);
    assert(claim->what != CLAIM_NOTHING);
    struct arena *arena = &builder->plan->arena;
    bool look = !builder->input->no_environment;
    claim->is_standard_output = claim->what == CLAIM_FILE && strcmp(claim->value, "-") == 0;
    if (claim->is_standard_output)
        return true;
    if (*claim->value == '\0')
        return false;
    if (claim->what != CLAIM_ENDPOINT) {
        claim->identity = path_identity(arena, claim->value, look);
        return claim->identity != NULL;
    }
    if (endpoint_parse(claim->value, &claim->endpoint) != NULL)
        return false;
    if (claim->endpoint.is_unix)
        claim->identity = path_identity(arena, claim->endpoint.host, look);
    return true;
}

static void claims_gather(struct plan_builder *builder, struct claim_list *list,
                          const struct option *rows, size_t count, const char *config,
                          const char *key) {
    assert(config != NULL || count == 0);
    for (size_t i = 0; i < count; i++) {
        const struct option *row = &rows[i];
        const char *row_key = arena_format(&builder->plan->arena, "%s.%s", key, row->name);
        if (row->type == OPTION_GROUP)
            claims_gather(builder, list, row->rows, row->row_count, config + row->offset, row_key);
        if (row->claim == CLAIM_NOTHING)
            continue;
        const char *value = *(const char *const *)(const void *)(config + row->offset);
        const struct node *node = document_find(builder->root, row_key);
        if (value == NULL || (node != NULL && node->unknown) ||
            problem_list_names(builder->binder.problems, row_key))
            continue;
        struct claim claim = {.what = row->claim,
                              .key = row_key,
                              .value = value,
                              .shown = node == NULL ? value : node->written,
                              .where = document_locate(builder->root, row_key),
                              .is_made = row->claim == CLAIM_DIRECTORY &&
                                         directory_made(rows, count, config)};
        if (claim_fill(builder, &claim))
            *claim_add(builder, list) = claim;
    }
}

static bool is_file(const struct claim *claim) {
    return claim->what == CLAIM_FILE || claim->what == CLAIM_APPENDED;
}

static bool claims_clash(const struct claim *a, const struct claim *b) {
    assert(a != b);
    if (a->is_standard_output || b->is_standard_output)
        return a->is_standard_output && b->is_standard_output;
    if (a->what == CLAIM_ENDPOINT && b->what == CLAIM_ENDPOINT && !a->endpoint.is_unix)
        return endpoint_overlaps(&a->endpoint, &b->endpoint);
    bool same_kind = a->what == b->what || (is_file(a) && is_file(b));
    return same_kind && a->identity != NULL && b->identity != NULL &&
           !(a->what == CLAIM_APPENDED && b->what == CLAIM_APPENDED) &&
           strcmp(a->identity, b->identity) == 0;
}

static const char *place_text(struct plan_builder *builder, struct location where) {
    if (where.file == NULL)
        return "--set";
    return arena_format(&builder->plan->arena, "%s:%u:%u", where.file, where.line, where.column);
}

static const char *claim_name(const struct claim *claim) {
    if (claim->what == CLAIM_ENDPOINT)
        return claim->endpoint.is_unix ? "socket" : "port";
    return is_file(claim) ? "file" : "directory";
}

static void clash_say(struct plan_builder *builder, const struct claim *claim,
                      const struct claim *before) {
    struct problem_list *problems = builder->binder.problems;
    const char *place = place_text(builder, before->where);
    if (claim->is_standard_output)
        problem_add_at(builder->binder.warnings, claim->where, claim->key,
                       "%s (%s) writes to standard output, too, and what both write is mixed; "
                       "name a file for one of them",
                       before->key, place);
    else
        problem_add_at(problems, claim->where, claim->key,
                       "'%.200s' is the %s that %s has ('%.200s', %s); choose another",
                       claim->shown, claim_name(claim), before->key, before->shown, place);
}

static void clashes_check(struct plan_builder *builder, const struct claim_list *list) {
    for (uint32_t i = 1; i < list->count; i++)
        for (uint32_t j = 0; j < i; j++)
            if (claims_clash(&list->items[i], &list->items[j])) {
                clash_say(builder, &list->items[i], &list->items[j]);
                break; // three on one port are two problems
            }
}

// -- places -------------------------------------------------------------------------------------

// A store makes its directory, and those above it, before any exporter opens its file.
static bool directory_will_be(struct plan_builder *builder, const struct claim_list *list,
                              const char *directory) {
    assert(directory != NULL);
    struct arena *arena = &builder->plan->arena;
    const char *wanted = path_identity(arena, directory, true);
    for (uint32_t i = 0; i < list->count; i++) {
        if (!list->items[i].is_made)
            continue;
        char *made = arena_text(arena, slice_of(list->items[i].value));
        for (char *slash = made + strlen(made); slash != NULL && slash != made;
             slash = strrchr(made, '/')) {
            *slash = '\0';
            const char *identity = path_identity(arena, made, true);
            if (identity != NULL && wanted != NULL && strcmp(identity, wanted) == 0)
                return true;
        }
    }
    return false;
}

static void file_place_check(struct plan_builder *builder, const struct claim_list *list,
                             const struct claim *claim) {
    assert(is_file(claim));
    struct problem_list *problems = builder->binder.problems;
    const char *slash = strrchr(claim->value, '/');
    struct stat about;
    if (stat(claim->value, &about) == 0) {
        if (S_ISDIR(about.st_mode))
            problem_add_at(problems, claim->where, claim->key,
                           "'%.300s' is a directory; write the path of a file", claim->shown);
        return;
    }
    if (slash == NULL || slash == claim->value)
        return;
    size_t size = (size_t)(slash - claim->value);
    const char *directory = arena_text(&builder->plan->arena, (struct slice){claim->value, size});
    bool missing = stat(directory, &about) != 0 && (errno == ENOENT || errno == ENOTDIR);
    if (missing && !directory_will_be(builder, list, directory))
        problem_add_at(problems, claim->where, claim->key,
                       "the directory of '%.300s' is not there; make it, or write to another",
                       claim->shown);
}

static void directory_place_check(struct plan_builder *builder, const struct claim *claim) {
    assert(claim->what == CLAIM_DIRECTORY);
    struct stat about;
    bool there = stat(claim->value, &about) == 0;
    if (there && !S_ISDIR(about.st_mode))
        problem_add_at(builder->binder.problems, claim->where, claim->key,
                       "'%.300s' is not a directory", claim->shown);
    else if (!there && errno == ENOENT && !claim->is_made)
        problem_add_at(builder->binder.problems, claim->where, claim->key,
                       "the directory '%.300s' is not there; make it, or write "
                       "create_directory: true",
                       claim->shown);
}

static void places_check(struct plan_builder *builder, const struct claim_list *list) {
    for (uint32_t i = 0; i < list->count; i++) {
        const struct claim *claim = &list->items[i];
        if (is_file(claim) && !claim->is_standard_output)
            file_place_check(builder, list, claim);
        else if (claim->what == CLAIM_DIRECTORY)
            directory_place_check(builder, claim);
    }
}

void plan_check_claims(struct plan_builder *builder) {
    assert(builder->root != NULL);
    const struct plan *plan = builder->plan;
    struct claim_list list = {0};
    for (uint32_t i = 0; i < plan->component_count; i++) {
        const struct plan_component *component = &plan->components[i];
        if (component->used)
            claims_gather(builder, &list, component->type->options, component->type->option_count,
                          component->config,
                          arena_format(&builder->plan->arena, "%s.%s",
                                       plan_section(component->type->kind), component->id));
    }
    claims_gather(builder, &list, PLAN_SERVICE_ROWS.rows, PLAN_SERVICE_ROWS.count,
                  (const char *)&plan->settings, "service");
    clashes_check(builder, &list);
    if (builder->input->check_places && !builder->input->no_environment)
        places_check(builder, &list);
}
