// SPDX-License-Identifier: Apache-2.0
// Xids, GPUs and their counters in words: names of evidence, descriptions, entities. Shared by the
// detectors that speak of them. Texts lie in the arena; a node that is not known is "".
#pragma once

#include "base/arena.h"
#include "pipeline/model/node_event.h"
#include "pipeline/model/verdict.h"

// "xid:NODE:0000:9b:00:79:NANOSECONDS".
struct slice xid_uid(string_id node, pci_address address, uint32_t code, uint64_t time_ns,
                     struct arena *arena);
// "Xid 79 on 0000:9b:00: the driver cannot reach the GPU over PCIe; python3 (pid 48211): DETAIL".
// Process, detail: data NULL or size 0 when not known, pid -1.
struct slice xid_description(pci_address address, uint32_t code, struct slice process, int64_t pid,
                             struct slice detail, struct arena *arena);
// What the table says of a code, up to its first semicolon or bracket; "" for an unknown one.
struct slice xid_meaning(uint32_t code);

// "dcgm:NODE:GPU-UUID:DCGM_FI_DEV_XID_ERRORS:NANOSECONDS"; without a UUID the PCI address.
struct slice gpu_field_uid(string_id node, string_id uuid, pci_address address,
                           enum gpu_field field, uint64_t time_ns, struct arena *arena);
// The entity: "NODE/0000:9b:00"; without an address "NODE/GPU-UUID", without a node the rest.
struct slice gpu_entity_name(string_id node, string_id uuid, pci_address address,
                             struct arena *arena);
// What people call it: "GPU 0000:9b:00 of gpu-node-07".
struct slice gpu_spoken_name(string_id node, string_id uuid, pci_address address,
                             struct arena *arena);

// Which recovery Xid 154 asks for now: "… changed from 0x0 (None) to 0x2 (Node Reboot Required)".
enum recovery { RECOVERY_UNKNOWN, RECOVERY_NONE, RECOVERY_RESET, RECOVERY_REBOOT };
enum recovery recovery_read(struct slice detail);
const char *
recovery_action(enum recovery recovery); // of the schema's list; NULL: none is asked for
// The graver of two actions of the schema's list; NULL is none.
const char *action_graver(const char *a, const char *b);
// Whether the detail of an NVLink Xid holds the word Fatal.
bool xid_is_fatal(struct slice detail);
// At most `max` characters, whole ones.
struct slice text_cut_at(struct slice text, size_t max);
