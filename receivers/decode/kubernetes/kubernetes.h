// SPDX-License-Identifier: Apache-2.0
// The decoder of Kubernetes objects: what a watch sends and what `kubectl get -o json` prints.
//
// A record is one JSON object, on one line or over several: a watch event {"type": …, "object": …},
// or an object by itself. Event (v1 and events.k8s.io/v1), Pod and Node make an event of kind
// EVENT_KUBERNETES. What has gone wrong with a Pod or Node follows it as observations (walk.h); a
// Job, JobSet or Kubeflow job makes nothing but those. Other kinds, bookmarks and errors of a watch
// are DECODE_NOTHING. A list (kind
// ends in "List" and it has `items`) is more than one event: it is refused with a word on how to
// cut it.
//
// event->time_ns: of an Event its own time (eventTime, else series.lastObservedTime, else
// lastTimestamp, firstTimestamp, creationTimestamp); of Pod and Node when the line says that they
// were read, else the newest moment that they tell of, else when the input was read. event->node:
// the kubelet that said it, the node that the Pod runs on, the Node itself. Events about anything
// but a Pod are DECODE_NOTHING. No member is needed but `kind` (items of an API server's list have
// none: it is then inferred) and metadata.name (of an Event the object that it is about); unknown
// ones are passed over.
#pragma once

#include "pipeline/component/decoder.h"

extern const struct decoder_type decoder_kubernetes;
enum { KUBERNETES_STATE_SIZE = 1024 };

// The tagged line {"source": "k8s_watch", "observed_time_ns": …, "type": …, "object": …}; the
// members may stand in any order, and without `object` the line itself is the object. A node that
// the line names beside it is that of who read the object, and says nothing of the object.
enum decode_category kubernetes_tagged(void *state, struct slice object, struct arena *arena,
                                       struct event *event, struct decode_fault *fault);
// What the object says beyond its first event, as decoder_type.next.
enum decode_category kubernetes_next(void *state, struct arena *arena, struct event *event,
                                     struct decode_fault *fault);
// What was not asked for is given up: the object may be gone.
void kubernetes_finish(void *state);
