// SPDX-License-Identifier: Apache-2.0
// Says what of a machine failed: "Kernel panic on gpu-07: Fatal exception". The id hangs on the
// node, the part of it, and the time at which the fault began when it was first found.
#include "base/text/cut.h"
#include "pipeline/model/node_event.h"
#include "processors/cluster/xid_text.h"
#include "processors/node_fault/parts.h"

#include <inttypes.h>

enum { SAID_MAX_SHOWN = 110, DEVICES_MAX = 64 };

static const char *const ENTITIES[] = {
    [SAID_GPU] = "gpu", [SAID_NIC] = "nic", [SAID_PCI] = "pci_device"};

// Those that the burst names, each once; a device that is called by a name and by an address is
// one.
struct devices {
    const struct node_said *items[DEVICES_MAX];
    uint32_t count;
};

static bool is_same(const struct node_said *a, const struct node_said *b) {
    return (a->address != PCI_NONE && a->address == b->address) ||
           (a->device != STRING_NONE && a->device == b->device);
}

static void add_device(struct devices *devices, const struct node_said *said) {
    for (uint32_t i = 0; i < devices->count; i++)
        if (is_same(devices->items[i], said)) {
            if (devices->items[i]->address == PCI_NONE)
                devices->items[i] = said;
            return;
        }
    if (devices->count < DEVICES_MAX)
        devices->items[devices->count++] = said;
}

static void find_devices(const struct node_burst *burst, struct devices *devices) {
    devices->count = 0;
    for (uint32_t i = 0; i < burst->count; i++)
        if (node_said_device(burst->items[i]) != SAID_NO_DEVICE)
            add_device(devices, burst->items[i]);
}

// "GPU 0000:9b:00 of gpu-07", "GPU6 of gpu-07", "4 GPUs of gpu-07"; without one the node.
static const char *part_spoken(const struct node_burst *burst, const struct devices *devices,
                               struct arena *arena) {
    const char *node = node_spoken(burst->anchor->node, arena);
    if (devices->count == 0)
        return node_said_cause(burst->anchor)->part == PART_GPU
                   ? arena_format(arena, "A GPU of %s", node)
                   : node;
    const struct node_said *said = devices->items[0];
    enum said_device kind = node_said_device(said);
    const char *what = kind == SAID_GPU ? "GPU" : kind == SAID_NIC ? "network card" : "device";
    if (devices->count > 1)
        return arena_format(arena, "%" PRIu32 " %ss of %s", devices->count, what, node);
    const char *address = said->address == PCI_NONE ? NULL : pci_text(said->address, false, arena);
    if (said->device == STRING_NONE)
        return arena_format(arena, "%s %s of %s", what, address, node);
    const char *name = arena_text(arena, intern_slice(said->device));
    bool has_word = strncmp(name, what, strlen(what)) == 0;
    return arena_format(arena, "%s%s%s%s%s%s of %s", has_word ? "" : what, has_word ? "" : " ",
                        name, address == NULL ? "" : " (", address == NULL ? "" : address,
                        address == NULL ? "" : ")", node);
}

static void add_entities(const struct node_burst *burst, const struct devices *devices,
                         struct verdict_builder *builder) {
    string_id node = burst->anchor->node;
    uint32_t grade = node_said_cause(burst->anchor)->grade;
    bool one = devices->count == 1;
    // Where no node is named, those are to blame of which the gravest was said.
    for (uint32_t i = 0; i < devices->count; i++) {
        const struct node_said *device = devices->items[i];
        bool blamed = one || (node == STRING_NONE && node_said_cause(device)->grade == grade);
        builder_entity(builder, ENTITIES[node_said_device(device)],
                       blamed ? ROLE_CULPRIT : ROLE_SUSPECT,
                       node_said_entity(device, builder->arena));
    }
    builder_entity(builder, "node", one ? ROLE_SUSPECT : ROLE_CULPRIT, string_or_null(node));
    builder_attribute(builder, "k8s.node.name", intern_slice(node));
    if (one && devices->items[0]->address != PCI_NONE)
        builder_attribute(builder, "pci.address",
                          slice_of(pci_text(devices->items[0]->address, false, builder->arena)));
    if (one && devices->items[0]->device != STRING_NONE)
        builder_attribute(builder, "hw.name", intern_slice(devices->items[0]->device));
}

static void add_said(const struct node_burst *burst, const struct node_said *said,
                     struct verdict_builder *builder) {
    bool same = node_said_cause(said)->grade == node_said_cause(burst->anchor)->grade ||
                said->time_ns <= burst->anchor->time_ns;
    builder_evidence(builder, same ? EVIDENCE_CAUSE : EVIDENCE_CONTEXT, said->time_ns,
                     node_said_uid(said, builder->arena), "%.*s", (int)said->text_size, said->text);
}

static void add_evidence(const struct node_burst *burst, struct verdict_builder *builder) {
    // What names it first, so that a flood does not push it out; the order is made afterwards.
    add_said(burst, burst->anchor, builder);
    for (uint32_t i = 0; i < burst->count; i++) {
        if (burst->items[i] == burst->anchor)
            continue;
        if (builder->verdict.evidence_count == builder->evidence_max)
            builder->verdict.evidence_dropped++;
        else
            add_said(burst, burst->items[i], builder);
    }
}

void node_fault_verdict(const struct node_fault_config *config, const struct told_node *told,
                        const struct node_burst *burst, struct verdict_builder *builder) {
    struct arena *arena = builder->arena;
    const struct node_said *anchor = burst->anchor;
    const struct node_cause *cause = node_said_cause(anchor);
    struct devices devices;
    find_devices(burst, &devices);
    struct slice text = {anchor->text, anchor->text_size};
    const char *part = part_spoken(burst, &devices, arena);
    const char *node = node_spoken(anchor->node, arena);
    bool is_named = anchor->node != STRING_NONE;
    const struct text_field fields[] = {
        {"part", part},
        {"node", node},
        {"device", is_named ? part : "the device"},
        {"place", is_named ? node : "the node"},
        {"said", text_shown(text, SAID_MAX_SHOWN, arena)},
        {NULL, NULL},
    };
    builder_begin(builder, arena, "node_fault", cause->name);
    builder_rate(builder, cause->severity, config->confidence, cause->action);
    builder_texts(builder, cause->headline, cause->advice, fields);
    if (anchor->node == STRING_NONE)
        builder_partial(builder, "nothing says on which node it is");
    if (node_said_time_of(anchor) != TIME_OF_EVENT)
        builder_attribute(builder, "culprit.time_of",
                          slice_of(time_of_name(node_said_time_of(anchor))));
    if (cause->restart != RESTART_UNKNOWN)
        restart_tell(builder, cause->restart);
    add_entities(burst, &devices, builder);
    add_evidence(burst, builder);
    const char *where = on_node(told->node, arena_number(arena, told->part), arena);
    const char *began = arena_format(arena, "%" PRIu64, told->began_ns);
    builder_finish(builder, (struct slice[]){slice_of(where), slice_of(began)}, 2);
}
