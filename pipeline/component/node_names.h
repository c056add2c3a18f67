// SPDX-License-Identifier: Apache-2.0
// One table of the names of nodes for all stages of a pipeline: a kernel log says node7, Kubernetes
// node7.example.com, a scrape NODE7, and they mean one node.
//
// Each name has a key, which stands in for it in events before the stages see them. The key is the
// first label in lower case; of nodes that share the label and differ in their domains only the
// first one, the others keep their whole names. An address is a key of its own unless a Node object
// says whose it is. Joins, evidence ids and verdict ids go by keys; what people read is the
// spelling that Kubernetes uses, else that of the rank map, else the shortest (node_names_show).
// A name costs one look into an array from the second time on; events of telemetry cost nothing.
// Copies are made only of what changes. Its rows survive a restart. Not thread-safe.
#pragma once

#include "base/table/row_index.h"
#include "pipeline/component/state.h"
#include "pipeline/model/batch.h"

enum { NODE_NAMES_MAX = 65536 }; // then they are learned anew

struct node_names {
    struct table names;     // each spelling and its key
    struct table nodes;     // each key
    struct row_index index; // of the nodes, by label and by key
    string_id *keys;        // by the spelling's id; STRING_NONE: not seen yet
    uint32_t key_count;
};

void node_names_init(struct node_names *names);
void node_names_release(struct node_names *names);
void node_names_state(struct node_names *names, struct state_list *list);
void node_names_restored(struct node_names *names);

// The key of a name, which is learned when it is new.
string_id node_names_key(struct node_names *names, string_id name);
// The same without learning.
string_id node_names_find(const struct node_names *names, string_id name);
// `other` is an address or name of the node `name`. What was told under `other` before stays there.
void node_names_alias(struct node_names *names, string_id other, string_id name);

// Whether anything has named such a node.
bool node_names_knows(const struct node_names *names, struct slice name);
// Learns the hosts of telemetry and spans, too. A comparison an event.
void node_names_learn_hosts(struct node_names *names, const struct batch *batch);

// Puts keys in place of names in the batch's events.
void node_names_apply(struct node_names *names, struct batch *batch);
// Puts the spellings that people know into the batch's verdicts, behind the last stage: in
// entities, headline, remediation and the attribute k8s.node.name. Ids and evidence stay.
void node_names_show(const struct node_names *names, struct batch *batch);
