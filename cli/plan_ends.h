// SPDX-License-Identifier: Apache-2.0
// The changes that analyze and replay make to a plan: one pipeline, other inputs, other outputs.
#pragma once

#include "cli/default_config.h"
#include "cli/plan_load.h"

// The embedded pipeline of analyze with the exporter for `output`, one for a page in the file
// `html` unless that is NULL, and the questions of the file `queries` unless that is NULL. 0, or an
// exit code with the problems said.
int plan_load_default(struct plan *plan, enum analyze_output output, const char *html,
                      const char *queries, struct word_list sets, struct invocation *invocation);

// The pipeline `pipeline` (NULL: the first one) of the user's configuration, with its receivers and
// exporters replaced by those of the first pipeline of `ends`, whose memory must outlive `plan`.
// 0, or an exit code with everything said: the configuration is wrong, there is no such pipeline,
// or an exporter needs what the pipeline does not give.
int plan_load_between(struct plan *plan, const struct plan *ends,
                      const struct plan_request *request, const char *pipeline,
                      struct invocation *invocation);

// Sets an option of every component of this kind that is in use, as a value: nothing in it is
// expanded or parsed. The words must outlive the plan. The option must exist and have that type.
void plan_set_list(struct plan *plan, enum component_kind kind, const char *option,
                   struct word_list words);
void plan_set_text(struct plan *plan, enum component_kind kind, const char *option,
                   const char *text);
// Sets an option of the components of this kind and type that are in use, as a value: it may hold
// any byte. False: there is none.
bool plan_set_type_text(struct plan *plan, enum component_kind kind, const char *type,
                        const char *option, const char *value);
