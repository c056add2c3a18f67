// SPDX-License-Identifier: Apache-2.0
// What the parts of plan_build share while a plan is made. For pipeline/plan*.c only.
#pragma once

#include "config/bind.h"
#include "config/bind_value.h"
#include "config/problem.h"
#include "pipeline/plan/rows.h"

// An id under receivers, processors, exporters or extensions.
struct definition {
    enum component_kind kind;
    const char *id;
    uint32_t component; // row of plan->components; PLAN_NO_COMPONENT when its type is unknown
};

enum { PLAN_NO_COMPONENT = UINT32_MAX, PLAN_LIST_MAX = 256 };

struct plan_builder {
    struct plan *plan;
    const struct plan_input *input;
    const struct node *root;
    struct binder binder;
    struct definition *definitions;
    uint32_t definition_count;
    uint32_t component_room; // rows of plan->components and of definitions
    bool names_unknown;      // a list cannot be read, so who is used cannot be told
};

// Reads, merges and expands what the input names. NULL with STATUS_OK when problems were added.
enum status plan_read(struct plan_builder *builder, struct node **root,
                      struct error *error) MUST_USE;

// Binds every component under the four sections.
void plan_define_components(struct plan_builder *builder);
const struct definition *plan_definition(const struct plan_builder *builder,
                                         enum component_kind kind, const char *id);
// Adds a processor that a preset at `where` holds and nobody defined, with default options.
uint32_t plan_add_default(struct plan_builder *builder, const struct component_type *type,
                          struct location where);

// Binds `service`, its pipelines, and checks that they fit together.
void plan_define_service(struct plan_builder *builder);

// Binds `forms` and makes rows of the files.
void plan_define_forms(struct plan_builder *builder);
// The path from where culprit runs, of one that is relative to the folder of `file` (NULL: of
// none). A pattern: what means something in one is escaped in the folder, unless there is such a
// file.
const char *plan_path_from(struct arena *arena, const char *file, const char *path);

// Binds `tests`.
void plan_define_tests(struct plan_builder *builder);
// Asks the type's own rules about a component that was bound, whose options stand under `key`.
void plan_validate_component(struct plan_builder *builder, const struct component_type *type,
                             const void *config, const char *key);
// Asks whether what stands under `key`.endpoint can be listened on; NULL is fine.
void plan_check_endpoint(struct plan_builder *builder, const char *endpoint, const char *key);

// Ids that a list under `key` names, as rows of plan->components; false when one is not defined.
bool plan_resolve(struct plan_builder *builder, enum component_kind kind, const struct node *list,
                  const char *key, uint32_t *rows, uint32_t *count);
// Adds a problem for each port, file or directory that two components want, and with
// input->check_places for each file that cannot be made since its directory is not there.
void plan_check_claims(struct plan_builder *builder);
// Adds a problem for each stage that needs what nothing before it gives.
void plan_check_needs(struct plan_builder *builder, const struct plan_pipeline *pipeline,
                      const char *key);
