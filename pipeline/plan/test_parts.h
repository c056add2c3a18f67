// SPDX-License-Identifier: Apache-2.0
// What tests.c and test_inputs.c share while `tests` is read.
#pragma once

#include "config/yaml/document.h"
#include "pipeline/plan/builder.h"

struct plan_test_input; // pipeline/plan/tests.h

// A map with room for `more` entries beside those of `from` whose keys the rows have.
struct node *plan_map_copy(const struct plan_builder *builder, const struct node *from,
                           const struct option *rows, size_t count, uint32_t more);
// An item of a list as a map whose keys are among the names; false with a problem.
bool plan_item_open(const struct plan_builder *builder, const struct node *item, const char *key,
                    const char *const *names, size_t count, struct bind_source *source);
// Appends the names of the rows; returns how many there are then.
size_t plan_names_add(const char **names, size_t used, const struct option *rows, size_t count);
// Binds one input of a test of this pipeline (NULL: not known), the number-th from 0.
void plan_define_test_input(struct plan_builder *builder, const struct plan_pipeline *pipeline,
                            const struct node *item, const char *key, uint32_t number,
                            struct plan_test_input *out);
