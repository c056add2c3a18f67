// SPDX-License-Identifier: Apache-2.0
// The names that the span format gives to refusals and states.
#include "pipeline/model/span_event.h"

#include <assert.h>

const char *span_refusal_name(enum span_refusal refusal) {
    static const char *const names[SPAN_REFUSAL_COUNT] = {
        [SPAN_ACCEPTED] = "accepted",
        [SPAN_BAD_JSON] = "bad-json",
        [SPAN_BAD_EVENT] = "bad-event",
        [SPAN_BAD_FIELD] = "bad-field",
        [SPAN_NOT_STARTED] = "not-started",
        [SPAN_ALREADY_STARTED] = "already-started",
        [SPAN_DUPLICATE_WORKER] = "duplicate-worker",
        [SPAN_UNKNOWN_WORKER] = "unknown-worker",
        [SPAN_BAD_SPAN] = "bad-span",
        [SPAN_GROUP_MISMATCH] = "group-mismatch",
        [SPAN_BAD_STATE] = "bad-state",
        [SPAN_UNKNOWN_TASK] = "unknown-task",
        [SPAN_BAD_ENTRY] = "bad-entry",
        [SPAN_UNKNOWN_SPAN] = "unknown-span",
        [SPAN_LIMIT] = "limit",
    };
    assert(refusal < SPAN_REFUSAL_COUNT);
    return names[refusal];
}

const char *task_state_name(enum task_state state) {
    static const char *const names[TASK_STATE_COUNT] = {
        "released", "waiting", "no-worker", "queued", "processing", "memory", "erred", "forgotten"};
    assert(state < TASK_STATE_COUNT);
    return names[state];
}
