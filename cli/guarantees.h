// SPDX-License-Identifier: Apache-2.0
// What a pipeline does and what a person can rely on, in plain words.
#pragma once

#include "pipeline/plan/plan.h"

// "file → job_filter → … → json; evaluates every 10s, waits 10s for late events"
void pipeline_describe(struct buffer *out, const struct plan *plan,
                       const struct plan_pipeline *pipeline);
// The kinds of events that it looks at: "telemetry, xid, aer".
void pipeline_kinds(struct buffer *out, const struct plan *plan,
                    const struct plan_pipeline *pipeline, const char *between);
// What all pipelines guarantee, each sentence once, with `between` before it.
void plan_guarantees(struct buffer *out, const struct plan *plan, const char *between);
// Of one pipeline, without line ends: what is kept where, and what a crash costs.
void pipeline_guarantees(struct buffer *out, const struct plan *plan,
                         const struct plan_pipeline *pipeline);
