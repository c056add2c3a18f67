// SPDX-License-Identifier: Apache-2.0
// The files that `forms` names: patterns are resolved, and rows made of what is found.
//
// At most PLAN_FORM_FILES_MAX files, in the order in which they are named; those of one pattern in
// the order of their names' bytes.
#include "config/yaml/document.h"
#include "pipeline/plan/builder.h"
#include "pipeline/plan/plan.h"

#include <assert.h>
#include <glob.h>
#include <unistd.h>

struct form_finding {
    struct plan_builder *builder;
    struct plan_form_file *files;
    uint32_t count;
};

static bool add_file(struct form_finding *finding, const char *path, struct location where) {
    struct plan_builder *builder = finding->builder;
    if (finding->count == PLAN_FORM_FILES_MAX) {
        problem_add_at(builder->binder.problems, where, "forms", "more than %d files",
                       PLAN_FORM_FILES_MAX);
        return false;
    }
    finding->files[finding->count++] = (struct plan_form_file){
        .path = arena_text(&builder->plan->arena, slice_of(path)), .where = where};
    return true;
}

static void match_pattern(struct form_finding *finding, const char *pattern,
                          struct location where) {
    struct plan_builder *builder = finding->builder;
    glob_t found = {0};
    int result = glob(pattern, 0, NULL, &found);
    if (result == GLOB_NOMATCH && !builder->input->no_environment)
        problem_add_at(builder->binder.warnings, where, "forms", "no file matches %s", pattern);
    else if (result != 0 && result != GLOB_NOMATCH)
        problem_add_at(builder->binder.problems, where, "forms", "%s cannot be searched", pattern);
    for (size_t i = 0; i < found.gl_pathc && add_file(finding, found.gl_pathv[i], where); i++)
        continue;
    globfree(&found);
}

// A file that is there is taken as it is called, and one without wildcards has to be there.
static void find_file(struct form_finding *finding, const char *path, const char *written,
                      struct location where) {
    if (access(path, F_OK) == 0)
        add_file(finding, path, where);
    else if (strpbrk(written, "*?[") != NULL)
        match_pattern(finding, path, where);
    else if (!finding->builder->input->no_environment)
        problem_add_at(finding->builder->binder.problems, where, "forms",
                       "%s does not exist, or may not be seen", path);
}

// Paths of the list become those from where culprit runs.
static void find_files(struct form_finding *finding, const struct node *node) {
    struct plan *plan = finding->builder->plan;
    const char **paths = arena_zero(&plan->arena, plan->form_files.count + 1, sizeof *paths);
    for (uint32_t i = 0; i < plan->form_files.count; i++) {
        const struct node *item = node->type == NODE_LIST ? node->entries[i].value : node;
        const char *written = plan->form_files.items[i];
        paths[i] = plan_path_from(&plan->arena, item->where.file, written);
        if (finding->builder->input->form_maker != NULL)
            find_file(finding, paths[i], written, item->where);
    }
    plan->form_files.items = paths;
}

static bool bind_forms(struct plan_builder *builder, const struct node_entry *entry) {
    const struct option *row = &PLAN_ROOT_ROWS.rows[0];
    assert(PLAN_ROOT_ROWS.count == 1);
    return entry->value->type == NODE_NULL ||
           bind_value(&builder->binder, row, entry->value, entry->key_where, row->name,
                      &builder->plan->form_files);
}

void plan_define_forms(struct plan_builder *builder) {
    const struct plan_input *input = builder->input;
    struct plan *plan = builder->plan;
    const struct node_entry *entry = node_entry_find(builder->root, "forms");
    struct form_finding finding = {
        .builder = builder,
        .files = arena_zero(&plan->arena, PLAN_FORM_FILES_MAX, sizeof *finding.files)};
    for (uint32_t i = 0; i < input->form_file_count; i++)
        add_file(&finding, input->form_files[i], (struct location){0});
    if (entry != NULL && bind_forms(builder, entry))
        find_files(&finding, entry->value);
    if (finding.count > 0 && input->form_maker != NULL)
        plan->forms = input->form_maker->make(finding.files, finding.count, input->check_places,
                                              builder->binder.problems);
}
