// SPDX-License-Identifier: Apache-2.0
// The changes that analyze and replay make to a plan: one pipeline, other inputs, other outputs.
#pragma once

#include "cli/default_config.h"
#include "cli/plan_load.h"
#include "pipeline/component/component.h"

// The embedded pipeline of analyze with the exporter for `output`, one for a page in the file
// `html` unless that is NULL, and the questions of the file `queries` unless that is NULL. 0, or an
// exit code with the problems said. `given`: overrides and files of rows, no configuration.
int plan_load_default(struct plan *plan, enum analyze_output output, const char *html,
                      const char *queries, const struct plan_request *given,
                      struct invocation *invocation);

// The pipeline `pipeline` (NULL: the first one) of the user's configuration, with its receivers and
// exporters replaced by those of the first pipeline of `ends`, whose memory must outlive `plan`.
// 0, or an exit code with everything said: the configuration is wrong, there is no such pipeline,
// or an exporter needs what the pipeline does not give.
int plan_load_between(struct plan *plan, const struct plan *ends,
                      const struct plan_request *request, const char *pipeline,
                      struct invocation *invocation);

// Sets an option, a text, a list of texts or a flag (to true), of the components of this kind and
// type (NULL: any) that are in use: nothing in the words is expanded or parsed. They must outlive
// the plan. False: there is no such component. The option must exist.
bool plan_set(struct plan *plan, enum component_kind kind, const char *type, const char *option,
              struct word_list words);
bool plan_set_text(struct plan *plan, enum component_kind kind, const char *type,
                   const char *option, const char *text);

// Marks what the pipelines list, and nothing else, as used.
void plan_mark_used(struct plan *plan);
