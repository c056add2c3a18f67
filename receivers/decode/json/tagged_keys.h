// SPDX-License-Identifier: Apache-2.0
// The keys that every tagged line has, whatever its source: when, which node, pod, job, rank.
//
// One pass over the members of the object: the common ones are kept here, all others are handed to
// the caller one by one, in the order in which they stand.
//
//     struct tagged_keys keys;
//     struct slice key;
//     struct token value;
//     tagged_keys_begin(&keys, object, arena);
//     while (tagged_keys_next(&keys, &key, &value))
//         ...                              // `key` is decoded; the last of a repeated key counts
//     category = tagged_keys_end(&keys, event, fault);
//
// Absent and null are the same, and so is an empty text. No allocation but arena memory for escaped
// texts; any thread.
#pragma once

#include "pipeline/component/decoder.h"
#include "receivers/decode/json/scan.h"

// Longer names of nodes, pods and namespaces are refused (Kubernetes has no longer ones).
enum { TAGGED_NAME_MAX = 253 };

struct tagged_keys {
    uint64_t time_ns;     // timestamp_ns, else observed_time_ns; Unix; 0: absent
    uint64_t observed_ns; // observed_time_ns; 0: absent
    string_id node;       // k8s.node.name, else host.name; set by tagged_keys_end, as `job` is
    string_id job;        // job_id, else k8s.job.name
    struct slice pod, namespace; // k8s.pod.name, k8s.namespace.name; data NULL: absent
    int32_t rank;                // or RANK_NONE

    // The walk's own:
    struct slice object;
    struct arena *arena;
    struct json_members members;
    const char *at;
    struct json_fault json;
    enum decode_category category; // of the first value that is wrong, with what it is
    struct slice field;
    struct token wrong;
    const char *expected;
    struct slice texts[6]; // as keys.c numbers them
    uint64_t timestamp_ns;
};

void tagged_keys_begin(struct tagged_keys *keys, struct slice object, struct arena *arena);
// The next member that is not a common one; false at the end and where the text is wrong.
bool tagged_keys_next(struct tagged_keys *keys, struct slice *key, struct token *value);
// After the last member. Sets time_ns, node, job and rank of the event; a name that was never seen
// is taken up only here, so that a line that is refused adds none. A line without a time is
// refused. When the caller refuses the line for a reason of its own, it does not call this.
enum decode_category tagged_keys_end(struct tagged_keys *keys, struct event *event,
                                     struct decode_fault *fault);
// In place of tagged_keys_end, of a line that is refused: sets time_ns, node, job, pod and
// namespace as far as they were read. A name that was never seen stays unknown.
void tagged_keys_known(struct tagged_keys *keys);
