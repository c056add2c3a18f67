// SPDX-License-Identifier: Apache-2.0
// What controllers of queues say of the jobs that they stop: Kueue, Volcano, the Job controller.
#pragma once

#include "pipeline/component/decoder.h"
#include "pipeline/model/node_event.h"

// An Event about anything but a Pod. DECODE_OK: `event` is that a job was stopped (job_stopped),
// and why; of a Node what a row of forms says it means. DECODE_NOTHING: it says nothing of that.
// O(message). `forms` NULL: those that are built in.
enum decode_category kubernetes_read_stop(const struct kubernetes_object *object,
                                          const struct forms *forms, struct arena *arena,
                                          struct event *event, struct decode_fault *fault);
