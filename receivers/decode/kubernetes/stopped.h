// SPDX-License-Identifier: Apache-2.0
// What controllers of queues say of the jobs that they stop: Kueue, Volcano, the Job controller.
#pragma once

#include "pipeline/component/decoder.h"
#include "pipeline/model/node_event.h"

// An Event about anything but a Pod or a Node. DECODE_OK: `event` is that a job was stopped
// (job_stopped), and why. DECODE_NOTHING: it says nothing of that. O(message).
enum decode_category kubernetes_read_stop(const struct kubernetes_object *object,
                                          struct arena *arena, struct event *event,
                                          struct decode_fault *fault);
