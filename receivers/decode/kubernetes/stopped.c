// SPDX-License-Identifier: Apache-2.0
// By the reason of the Event, or where that is no more than "Stopped" by its message. Sources:
// kubernetes-sigs/kueue pkg/controller/core and pkg/scheduler/preemption, volcano-sh/volcano
// pkg/controllers, kubernetes pkg/controller/job.
#include "receivers/decode/kubernetes/stopped.h"

#include "base/text/cut.h"
#include "pipeline/model/observation.h"
#include "receivers/decode/kubernetes/by_rows.h"
#include "receivers/decode/line/frame.h"
#include "receivers/decode/line/reading.h"

static const struct {
    const char *reason, *message; // how the message begins; NULL: in any way
    const char *cause;
} STOPS[] = {
    {"EvictedDueToPreempted", NULL, "preempted"},
    {"Preempted", NULL, "preempted"},
    {"Stopped", "Preempted ", "preempted"},
    {"Evict", NULL, "preempted"},
    {"EvictedDueToDeactivated", NULL, "cancelled"},
    {"Stopped", "The workload is deactivated", "cancelled"},
    {"DeadlineExceeded", NULL, "time_limit"},
};

static const char *cause_of(const struct kubernetes_object *object) {
    for (size_t i = 0; i < sizeof STOPS / sizeof *STOPS; i++)
        if (slice_equal(object->reason, slice_of(STOPS[i].reason)) &&
            (STOPS[i].message == NULL || text_begins(object->message, slice_of(STOPS[i].message))))
            return STOPS[i].cause;
    return NULL;
}

// "train/llama"
static struct slice job_of(const struct kubernetes_object *object, struct arena *arena) {
    struct slice namespace = object->object_namespace, name = object->object_name;
    if (namespace.size == 0)
        return name;
    char *both = arena_take(arena, namespace.size + 1 + name.size);
    memcpy(both, namespace.data, namespace.size);
    both[namespace.size] = '/';
    memcpy(both + namespace.size + 1, name.data, name.size);
    return (struct slice){both, namespace.size + 1 + name.size};
}

// What an Event says of a machine, where a row knows it.
static enum decode_category read_node(const struct kubernetes_object *object,
                                      const struct forms *forms, struct arena *arena,
                                      struct event *event, struct decode_fault *fault) {
    struct reading reading = {.arena = arena};
    struct decoder_input input = {.observed_ns = object->observed_ns};
    struct slice line;
    struct frame frame;
    if (!kubernetes_read_event(forms, object, &reading, &line))
        return DECODE_NOTHING;
    reading.time_ns = object->event_ns;
    frame_clear(&frame, line, event->position);
    frame.host = object->object_name;
    return reading_finish(&reading, &frame, &input, line, event, fault);
}

enum decode_category kubernetes_read_stop(const struct kubernetes_object *object,
                                          const struct forms *forms, struct arena *arena,
                                          struct event *event, struct decode_fault *fault) {
    if (slice_equal(object->object_kind, SLICE("Node")))
        return read_node(object, forms, arena, event, fault);
    const char *cause = cause_of(object);
    if (cause == NULL || slice_equal(object->object_kind, SLICE("Pod")))
        return DECODE_NOTHING;
    struct reading reading = {.arena = arena};
    struct frame frame;
    struct decoder_input input = {.observed_ns = object->observed_ns};
    reading_clear(&reading);
    reading_begin(&reading, OBSERVATION_JOB_STOPPED);
    reading.time_ns = object->event_ns;
    reading_text(&reading, FACT_JOB, job_of(object, arena));
    reading_text(&reading, FACT_REASON, object->reason);
    reading_text(&reading, FACT_CAUSE, slice_of(cause));
    reading_text(&reading, FACT_ROLE, SLICE("outside"));
    struct slice text = object->message.size > 0 ? object->message : object->reason;
    frame_clear(&frame, text, event->position);
    return reading_finish(&reading, &frame, &input, text, event, fault);
}
