// SPDX-License-Identifier: Apache-2.0
// Nodes, GPUs, their counters and Xids in words: names of evidence, descriptions, entities. Shared
// by the detectors that speak of them. Texts lie in the arena or live for ever.
#pragma once

#include "base/arena.h"
#include "pipeline/model/node_event.h"
#include "processors/cluster/verdict_builder.h"

// "gpu-node-03", shortened where it is longer than a headline bears; "an unnamed node" for
// STRING_NONE.
const char *node_spoken(string_id node, struct arena *arena);
// The node's part of a uid; "" for STRING_NONE.
const char *node_in_uid(string_id node, struct arena *arena);
// "gpu-node-03/0000:45:00"; `what` itself where the node is not known.
const char *on_node(string_id node, const char *what, struct arena *arena);
const char *string_or_null(string_id id); // NULL for STRING_NONE
// "0000:9b:00", with its function "0000:9b:00.0".
const char *pci_text(pci_address address, bool with_function, struct arena *arena);
const char *duration_text(__int128 duration_ns, struct arena *arena); // "4 min 10 s"

// "xid:NODE:0000:9b:00:79:NANOSECONDS".
const char *xid_uid(string_id node, pci_address address, uint32_t code, uint64_t time_ns,
                    struct arena *arena);
// "Xid 79 on 0000:9b:00: the driver cannot reach the GPU over PCIe; python3 (pid 48211): DETAIL".
// Process, detail: data NULL or size 0 when not known, pid -1.
const char *xid_description(pci_address address, uint32_t code, struct slice process, int64_t pid,
                            struct slice detail, struct arena *arena);
// What the table says of a code, up to its first semicolon or bracket; "" for an unknown one.
struct slice xid_meaning(uint32_t code);

// A field as the input spelled it (gpu_field_spelling): "DCGM_FI_DEV_XID_ERROR", "DCGM field 230".
const char *field_text(enum gpu_field field, uint32_t spelling, struct arena *arena);
// "dcgm:NODE:GPU-UUID:DCGM_FI_DEV_XID_ERRORS:NANOSECONDS"; without a UUID the PCI address.
const char *gpu_field_uid(string_id node, string_id uuid, pci_address address, enum gpu_field field,
                          uint64_t time_ns, struct arena *arena);
const char *dcgm_uid(string_id node, const char *gpu, enum gpu_field field, uint64_t time_ns,
                     struct arena *arena);
// The entity: "NODE/0000:9b:00"; without an address "NODE/GPU-UUID", without a node the rest.
const char *gpu_entity_name(string_id node, string_id uuid, pci_address address,
                            struct arena *arena);
// What people call it: "GPU 0000:9b:00 of gpu-node-07".
const char *gpu_spoken_name(string_id node, string_id uuid, pci_address address,
                            struct arena *arena);
// The GPU as a culprit, its node, and the attributes that say which they are.
void builder_gpu(struct verdict_builder *builder, string_id node, string_id uuid,
                 pci_address address, enum entity_role node_role);

// Which recovery Xid 154 asks for now: "… changed from 0x0 (None) to 0x2 (Node Reboot Required)".
enum recovery { RECOVERY_UNKNOWN, RECOVERY_NONE, RECOVERY_RESET, RECOVERY_REBOOT };
enum recovery recovery_read(struct slice detail);
const char *
recovery_action(enum recovery recovery); // of the schema's list; NULL: none is asked for
// The graver of two actions of the schema's list; NULL is none.
const char *action_graver(const char *a, const char *b);
// Whether an Xid of NVLink 5 ends work on its GPU (nvlink5_judge); of others, whether the detail
// holds the word Fatal.
bool xid_is_fatal(uint32_t code, struct slice detail);
// At most `max` characters of it, as text_shorten leaves them.
const char *text_shown(struct slice text, size_t max, struct arena *arena);
