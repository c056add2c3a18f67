// SPDX-License-Identifier: Apache-2.0
// Builds a plan from a configuration.
//
// Read, merge, expand, bind, fit: each step works on what the step before left and adds its
// problems, so that a person sees all of them at once. Only a text that is no YAML ends it early.
// Cost: linear in the text, but for the look-up of keys and ids, which is bounded by the limits of
// config/yaml/document.h and 1,024 ids a section.
#include "pipeline/plan/builder.h"

#include "base/memory.h"
#include "config/problem.h"
#include "config/yaml/document.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PLAN_ARENA_BLOCK = 32 << 10 };

// Reads one byte more than a configuration may have, so that the parser can say that it is too
// long.
static enum status file_read(const char *path, char *bytes, size_t *size, struct error *error) {
    assert(path != NULL);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return error_set_os(error, STATUS_IO, errno, "configuration %s cannot be opened", path);
    ssize_t got = 1;
    *size = 0;
    while (got > 0 && *size <= DOCUMENT_SIZE_MAX) {
        got = read(file, bytes + *size, DOCUMENT_SIZE_MAX + 1 - *size);
        *size += got > 0 ? (size_t)got : 0;
    }
    enum status status = STATUS_OK;
    if (got < 0)
        status = error_set_os(error, STATUS_IO, errno, "configuration %s cannot be read", path);
    close(file);
    return status;
}

// Lays one document over what is there; *good turns false when it cannot be read as YAML.
static void document_add(struct plan_builder *builder, const char *name, struct slice text,
                         struct node **root, bool *good) {
    assert(name != NULL);
    struct arena *arena = &builder->plan->arena;
    struct node *document = document_parse(arena, name, text, builder->binder.problems);
    *good = *good && document != NULL;
    *root = document_merge(arena, *root, document);
}

static enum status files_read(struct plan_builder *builder, struct node **root, bool *good,
                              struct error *error) {
    const struct plan_input *input = builder->input;
    char *bytes = memory_take(DOCUMENT_SIZE_MAX + 1);
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < input->file_count && status == STATUS_OK; i++) {
        size_t size = 0;
        status = file_read(input->files[i], bytes, &size, error);
        if (status == STATUS_OK)
            document_add(builder, input->files[i], (struct slice){bytes, size}, root, good);
    }
    memory_give(bytes);
    return status;
}

static void references_expand(struct plan_builder *builder, struct node *root) {
    assert(root != NULL);
    static const char *const ENDS[] = {"receivers", "exporters", "extensions", NULL};
    static const char *const LITERAL[] = {"tests", NULL};
    const struct plan_input *input = builder->input;
    document_expand(root, &builder->plan->arena, input->ends_unused ? ENDS : NULL, LITERAL,
                    input->no_environment, builder->binder.problems);
}

enum status plan_read(struct plan_builder *builder, struct node **root, struct error *error) {
    assert(builder->plan != NULL);
    const struct plan_input *input = builder->input;
    struct arena *arena = &builder->plan->arena;
    bool good = true;
    *root = NULL;
    if (input->text == NULL && input->file_count == 0)
        return error_set(error, STATUS_USAGE, "no configuration is given; name one with --config");
    if (input->text != NULL) {
        document_add(builder, input->text_name == NULL ? "(text)" : input->text_name,
                     slice_of(input->text), root, &good);
    } else {
        enum status status = files_read(builder, root, &good, error);
        if (status != STATUS_OK)
            return status;
    }
    for (uint32_t i = 0; i < input->set_count && good; i++)
        *root = document_set(arena, *root, input->sets[i], i + 1, builder->binder.problems);
    if (!good)
        *root = NULL;
    else
        references_expand(builder, *root);
    return STATUS_OK;
}

static void sections_check(struct plan_builder *builder) {
    assert(builder->root != NULL);
    enum { NAME_COUNT = PLAN_SECTION_COUNT + 3 };
    const char *names[NAME_COUNT];
    for (int kind = 0; kind < PLAN_SECTION_COUNT; kind++)
        names[kind] = plan_section((enum component_kind)kind);
    names[PLAN_SECTION_COUNT] = "service";
    names[PLAN_SECTION_COUNT + 1] = "tests";
    names[PLAN_SECTION_COUNT + 2] = "forms";
    struct bind_source source = {.node = builder->root, .key = "", .where = builder->root->where};
    bind_check_keys(&builder->binder, names, NAME_COUNT, &source);
}

// It may be kept for later, so that is no mistake: it is not started.
static void unused_warn(struct plan_builder *builder) {
    for (uint32_t i = 0; i < builder->plan->component_count && !builder->names_unknown; i++) {
        const struct plan_component *component = &builder->plan->components[i];
        enum component_kind kind = component->type->kind;
        if (component->used)
            continue;
        const char *key =
            arena_format(&builder->plan->arena, "%s.%s", plan_section(kind), component->id);
        problem_add_at(builder->binder.warnings, component->where, key,
                       kind == COMPONENT_EXTENSION
                           ? "is not started, as service.extensions does not list it; add it there "
                             "or remove it"
                           : "is not started, as no pipeline uses it; add it to one or remove it");
    }
}

static bool has_store(const struct plan *plan) {
    for (uint32_t i = 0; i < plan->component_count; i++)
        if (plan->components[i].used && plan->components[i].type->extension.store != NULL)
            return true;
    return false;
}

static void stores_check(struct plan_builder *builder) {
    for (uint32_t i = 0; i < builder->plan->component_count && !builder->names_unknown; i++) {
        const struct plan_component *component = &builder->plan->components[i];
        const struct receiver_calls *calls = &component->type->receiver;
        if (!component->used || component->config == NULL || calls->needs_store == NULL ||
            !calls->needs_store(component->config) || has_store(builder->plan))
            continue;
        const char *key = arena_format(&builder->plan->arena, "%s.%s",
                                       plan_section(component->type->kind), component->id);
        problem_add_at(builder->binder.problems, component->where, key,
                       "what it acknowledges is to be stored, and there is no store; add a "
                       "file_storage extension and list it under service.extensions");
    }
}

static enum status problems_status(const struct problem_list *problems, struct error *error) {
    if (problems->count == 0)
        return STATUS_OK;
    return error_set(error, STATUS_CONFIG, "the configuration has %u problem%s", problems->count,
                     problems->count == 1 ? "" : "s");
}

enum status plan_build(struct plan *plan, const struct plan_input *input,
                       struct problem_list *problems, struct problem_list *warnings,
                       struct error *error) {
    assert(problems != NULL && warnings != NULL);
    *plan = (struct plan){.components_known = input->components, .form_maker = input->form_maker};
    arena_init(&plan->arena, PLAN_ARENA_BLOCK);
    struct plan_builder builder = {
        .plan = plan,
        .input = input,
        .binder = {.arena = &plan->arena, .problems = problems, .warnings = warnings}};
    struct node *root;
    enum status status = plan_read(&builder, &root, error);
    if (status == STATUS_OK && root != NULL) {
        builder.root = plan->root = root;
        sections_check(&builder);
        plan_define_components(&builder);
        plan_define_service(&builder);
        unused_warn(&builder);
        stores_check(&builder);
        plan_define_tests(&builder);
        plan_define_forms(&builder);
        if (!input->ends_unused)
            plan_check_claims(&builder);
    }
    if (status == STATUS_OK)
        status = problems_status(problems, error);
    if (status != STATUS_OK)
        plan_release(plan);
    return status;
}

void plan_release(struct plan *plan) {
    if (plan->forms != NULL)
        plan->form_maker->release(plan->forms);
    arena_release(&plan->arena);
    *plan = (struct plan){0};
}
