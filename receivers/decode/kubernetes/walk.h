// SPDX-License-Identifier: Apache-2.0
// What a Pod, a Node or a job object says has gone wrong: one observation after the other.
//
// Pod: each container's end that was not a good one (container_terminated: state and lastState of
// containerStatuses and initContainerStatuses), status.reason when the kubelet did not take it
// (pod_rejected) or gave it up (pod_disruption), the condition DisruptionTarget (pod_disruption).
// Node: each condition that a row of forms knows, as it says; else each that is bad, and those of
// which it is not known what they mean (node_condition, without `bad`). Job, JobSet and Kubeflow's:
// Failed, FailureTarget, Restarting, Suspended (job_condition). What is well gives nothing.
//
// An end is told once: `restarts` is the number of the run that ended, so that (uid of the pod,
// container, restarts) is the same in state now and in lastState later. What is known of an end
// that an exit code does not say stays open: 137 may be anybody's SIGKILL, and of
// ContainerStatusUnknown, which the control plane writes for a lost node, it is no signal at all.
#pragma once

#include "pipeline/component/decoder.h"
#include "receivers/decode/json/scan.h"
#include "receivers/decode/kubernetes/shape.h"

enum kubernetes_walk_kind { WALK_POD, WALK_NODE, WALK_JOB, WALK_KIND_COUNT };

enum { WALK_ARRAYS = 3 };

// Tokens point into the record, which must stay until the walk is over.
struct kubernetes_walk {
    const struct forms *forms; // by which conditions are told; NULL: those that are built in
    enum kubernetes_walk_kind kind;
    bool open;         // there may be more
    bool status_told;  // status.reason was looked at
    uint64_t state_ns; // when the object was as it is, for what says no time; 0: not known
    struct token name, namespace, uid, node_name, restarts, status_reason, status_message;
    struct token arrays[WALK_ARRAYS]; // what is gone through
    uint32_t array;                   // the one at hand
    bool in_array;
    struct json_items items; // of it
    // The container at hand whose lastState is still to be told.
    bool has_earlier;
    struct token status[STATUS_SLOT_COUNT];
};

// "Job", "PyTorchJob" …: an object whose conditions are walked and that is nothing else.
bool kubernetes_is_job(struct slice kind);
// `slots` are those of the object (kubernetes_object_shape).
void kubernetes_walk_begin(struct kubernetes_walk *walk, enum kubernetes_walk_kind kind,
                           const struct token *slots, uint64_t state_ns, const struct forms *forms);
// DECODE_OK: `event` is filled, but for its position and lines. DECODE_END: no more. Or why it is
// refused. Linear in the record over all calls.
enum decode_category kubernetes_walk_next(struct kubernetes_walk *walk, struct arena *arena,
                                          struct event *event, struct decode_fault *fault);
