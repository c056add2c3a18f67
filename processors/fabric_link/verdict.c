// SPDX-License-Identifier: Apache-2.0
// Says which link failed and how: "Port 1 of mlx5_3 (0000:5c:00) of node N is down". The id hangs
// on the card, or for NVLink on the node, and the time at which the fault began when it was first
// found.
#include "pipeline/model/node_event.h"
#include "processors/cluster/xid_text.h"
#include "processors/fabric_link/parts.h"

#include <inttypes.h>

static const char PATTERN[] = "fabric_link";
enum { CONFIDENCE_OF_ENDED = 5, NAME_MAX_SHOWN = 40, SAID_MAX_SHOWN = 120 };

static const char *const KINDS[] = {[FABRIC_ERRORS] = "link_errors",
                                    [FABRIC_FLAPPING] = "link_flapping",
                                    [FABRIC_DOWN] = "link_down",
                                    [FABRIC_NVLINK] = "nvlink_error",
                                    [FABRIC_SWITCH] = "nvswitch_error"};

// -- names ----------------------------------------------------------------------------------------

// "mlx5_3 (0000:5c:00)"
static const char *card_name(const struct fabric_fault *fault, struct arena *arena) {
    const struct link_said *said = fault->named;
    const char *address = fault->address == PCI_NONE ? NULL : card_text(fault->address, arena);
    if (said == NULL)
        return address;
    const char *name = text_shown(intern_slice(said->device), NAME_MAX_SHOWN, arena);
    return address == NULL ? name : arena_format(arena, "%s (%s)", name, address);
}

// "port 1 of mlx5_3 (0000:5c:00) of node-7"
static const char *card_spoken(const struct fabric_fault *fault, struct arena *arena) {
    const struct link_said *said = fault->named;
    bool port = said != NULL && said->port >= 0;
    return arena_format(arena, "%s%s of %s",
                        port ? arena_format(arena, "port %" PRId32 " of ", said->port)
                             : "network card ",
                        card_name(fault, arena), node_spoken(fault->node, arena));
}

static const char *card_entity(const struct fabric_fault *fault, struct arena *arena) {
    return on_node(fault->node,
                   fault->address == PCI_NONE ? arena_text(arena, intern_slice(fault->device))
                                              : card_text(fault->address, arena),
                   arena);
}

static bool is_nvlink(const struct fabric_fault *fault) {
    return fault->kind >= FABRIC_NVLINK;
}

// -- evidence -------------------------------------------------------------------------------------

static const char *describe(const struct link_item *item, struct arena *arena) {
    const struct link_said *said = item->said;
    struct slice text = {said->text, said->text_size};
    const char *port = said->port < 0 ? "" : arena_format(arena, " port %" PRId32, said->port);
    if (said->what == LINK_XID || said->what >= LINK_GPU_LOST)
        return xid_description(said->address, said->code, (struct slice){NULL, 0}, -1, text, arena);
    if (said->what == LINK_SXID)
        return arena_format(arena, "SXid %" PRIu32 " of NVSwitch %s: %s", said->code,
                            pci_text(said->address, false, arena), arena_text(arena, text));
    if (said->sampled == 0)
        return arena_text(arena, text);
    const char *name = arena_text(arena, intern_slice(said->device));
    const struct port_counter_row *counter = &PORT_COUNTERS[said->counter];
    if (said->counter == PORT_STATE)
        return arena_format(arena, "%s%s is %s since the sample before", name, port,
                            said->to != 0 ? "active" : "not active any more");
    return arena_format(arena,
                        "%s%s: %s rose from %" PRId64 " to %" PRId64
                        " since the sample "
                        "before%s",
                        name, port, counter->name, said->from, said->to,
                        said->to >= counter->max ? ", and stands at its maximum: what came after "
                                                   "it is not counted"
                                                 : "");
}

// A sample tells of what happened at some time after the one before.
static uint64_t begin_of(const struct link_item *item) {
    return item->said->sampled != 0 ? item->said->since_ns : item->time_ns;
}

static enum evidence_role role_of(const struct fabric_fault *fault, const struct link_item *item) {
    const struct link_said *said = item->said;
    if (said->what == LINK_UP || said->what >= LINK_GPU_LOST)
        return EVIDENCE_CONTEXT;
    if (said->what == LINK_REMOTE)
        return item->time_ns >= begin_of(fault->anchor) ? EVIDENCE_EFFECT : EVIDENCE_CONTEXT;
    if (is_nvlink(fault) && said->fatal < fault->anchor->said->fatal)
        return EVIDENCE_CONTEXT;
    if (said->what == LINK_COUNTED && fault->kind == FABRIC_DOWN)
        return EVIDENCE_CONTEXT;
    return item->time_ns < fault->anchor->time_ns && fault->kind == FABRIC_DOWN ? EVIDENCE_CONTEXT
                                                                                : EVIDENCE_CAUSE;
}

// Behind which moment it began, where what was first is told by a sample.
static void set_after(struct verdict *verdict, const struct fabric_fault *fault) {
    uint32_t first = 0;
    while (first < fault->count && role_of(fault, &fault->items[first]) != EVIDENCE_CAUSE)
        first++;
    if (first < fault->count && fault->items[first].said->sampled != 0)
        verdict->after_ns = fault->items[first].said->since_ns;
}

static void add_evidence(struct verdict_builder *builder, const struct fabric_fault *fault) {
    // What names it first, so that a flood does not push it out; the order is made afterwards.
    struct arena *arena = builder->arena;
    builder_evidence(builder, EVIDENCE_CAUSE, fault->anchor->time_ns,
                     link_item_uid(fault->anchor, arena), "%s", describe(fault->anchor, arena));
    for (uint32_t i = 0; i < fault->count; i++) {
        const struct link_item *item = &fault->items[i];
        if (item == fault->anchor)
            continue;
        if (builder->verdict.evidence_count == builder->evidence_max)
            builder->verdict.evidence_dropped++;
        else
            builder_evidence(builder, role_of(fault, item), item->time_ns,
                             link_item_uid(item, arena), "%s", describe(item, arena));
    }
}

// -- whom -----------------------------------------------------------------------------------------

// GPUs whose links failed with it are suspects, since a link has two ends; a GPU that was lost is
// whom they lost.
static void add_gpus(struct verdict_builder *builder, const struct fabric_fault *fault) {
    enum { GPUS_MAX = 64 };
    const struct link_said *told[GPUS_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < fault->count && count < GPUS_MAX; i++) {
        const struct link_said *said = fault->items[i].said;
        bool is_suspect = said->what == LINK_XID && said->fatal != LINK_GOES_ON &&
                          said->address != fault->anchor->said->address;
        if (!is_suspect && said->what != LINK_GPU_LOST)
            continue;
        bool is_told = false;
        for (uint32_t j = 0; j < count && !is_told; j++)
            is_told = told[j]->address == said->address && told[j]->what == said->what;
        if (is_told)
            continue;
        told[count++] = said;
        builder_entity(builder, "gpu",
                       is_suspect && fault->kind != FABRIC_SWITCH && said->fatal != LINK_BY_PEER
                           ? ROLE_SUSPECT
                           : ROLE_VICTIM,
                       gpu_entity_name(fault->node, STRING_NONE, said->address, builder->arena));
    }
}

static void add_entities(struct verdict_builder *builder, const struct fabric_fault *fault) {
    struct arena *arena = builder->arena;
    const struct link_said *anchor = fault->anchor->said;
    const struct link_said *card = is_nvlink(fault) ? NULL : fault->named;
    if (fault->kind == FABRIC_NVLINK)
        builder_entity(builder, "gpu", anchor->fatal == LINK_BY_PEER ? ROLE_VICTIM : ROLE_CULPRIT,
                       gpu_entity_name(fault->node, STRING_NONE, anchor->address, arena));
    else if (fault->kind == FABRIC_SWITCH)
        builder_entity(builder, "pci_device", ROLE_CULPRIT,
                       on_node(fault->node, pci_text(anchor->address, false, arena), arena));
    else
        builder_entity(builder, "nic", ROLE_CULPRIT, card_entity(fault, arena));
    builder_entity(builder, "node", ROLE_SUSPECT, string_or_null(fault->node));
    if (is_nvlink(fault))
        add_gpus(builder, fault);
    builder_attribute(builder, "k8s.node.name", intern_slice(fault->node));
    pci_address address = is_nvlink(fault) ? anchor->address : fault->address;
    if (address != PCI_NONE)
        builder_attribute(builder, "pci.address", slice_of(card_text(address, arena)));
    if (card != NULL)
        builder_attribute(builder, "hw.name", intern_slice(card->device));
    if (card != NULL && card->port >= 0)
        builder_attribute_format(builder, "culprit.link.port", "%" PRId32, card->port);
    if (is_nvlink(fault) && anchor->port >= 0)
        builder_attribute_format(builder, "culprit.link.port", "%" PRId32, anchor->port);
    if (fault->kind == FABRIC_NVLINK)
        builder_attribute_format(builder, "nvidia.xid.code", "%" PRIu32, anchor->code);
    if (fault->kind == FABRIC_SWITCH)
        builder_attribute_format(builder, "nvidia.sxid.code", "%" PRIu32, anchor->code);
}

// -- texts ----------------------------------------------------------------------------------------

static const char *nvlink_headline(const struct fabric_fault *fault) {
    if (fault->number > 0)
        return "{gpu}: {number} NVLink errors that were recovered from";
    switch (fault->anchor->said->fatal) {
    case LINK_BY_SOFTWARE:
        return "{gpu}: NVLink was taken down by software or by somebody (Xid {code}){link}";
    case LINK_BY_PEER:
        return "{gpu} lost NVLink{link}: the other end of the link failed (Xid {code})";
    case LINK_ENDS_PROCESS:
        return "{gpu}: an NVLink error ended what ran on it (Xid {code}){link}";
    default:
        return "{gpu}: NVLink failed with Xid {code}{link}";
    }
}

static const char *headline_of(const struct fabric_fault *fault, struct arena *arena) {
    if (fault->kind == FABRIC_SWITCH)
        return fault->number > 0 ? "{switch} of {node}: {number} NVLink errors it recovered from"
                                 : "{switch} of {node} failed: SXid {code}{link}";
    if (fault->kind == FABRIC_NVLINK)
        return nvlink_headline(fault);
    if (fault->kind == FABRIC_FLAPPING)
        return "{Card} went down {number} times within {window}";
    if (fault->kind == FABRIC_ERRORS)
        return fault->number > 0 ? "{Card} had {number} errors within {window}"
                                 : "{Card} has trouble: {said}";
    if (fault->failed)
        return "{Card} failed: it does not answer the driver";
    if (fault->anchor->said->what == LINK_LOST)
        return "{Card} went down while a program used it";
    return fault->is_up
               ? arena_format(arena, "{Card} was down for %s", duration_text(fault->down_ns, arena))
               : "{Card} is down";
}

static const char *nvlink_advice(const struct fabric_fault *fault) {
    if (fault->number > 0)
        return "Watch {node}; have its NVLink checked if errors go on.";
    switch (fault->anchor->said->fatal) {
    case LINK_BY_SOFTWARE:
        return "Find out who reset or stopped GPUs, switches, fabric manager or IMEX at that time; "
               "the cable is not to blame.";
    case LINK_BY_PEER:
        return "Look at the switch port or the GPU at the other end of the link; reset {gpu} "
               "before anyone uses it again.";
    case LINK_ENDS_PROCESS:
        return "Look at the NVLink fabric of {node} (nvidia-smi nvlink -s, fabric manager), then "
               "restart the job; reset the GPU if the error comes back.";
    default:
        return "Drain {node}, reset its GPUs, and have the NVLink of this GPU and of those beside "
               "it checked if the error comes back.";
    }
}

static const char *advice_of(const struct fabric_fault *fault) {
    if (fault->kind == FABRIC_SWITCH)
        return fault->number > 0
                   ? "Watch {node}; have its NVLink checked if errors go on."
                   : "Drain {node}, reset all of its GPUs and switches, and have {switch} checked "
                     "if the error comes back.";
    if (fault->kind == FABRIC_NVLINK)
        return nvlink_advice(fault);
    if (fault->failed)
        return "Cordon and drain {node} and reboot it; if {name} fails again, have it replaced.";
    if (fault->kind == FABRIC_DOWN && !fault->is_up)
        return "Drain {node} and check cable, module and switch port of {name}.";
    return "Move the job off {node} and check cable, module and switch port of {name}.";
}

static int64_t confidence_of(const struct fabric_config *config, const struct fabric_fault *fault) {
    if (is_nvlink(fault))
        return config->confidence_nvlink;
    if (fault->kind == FABRIC_FLAPPING)
        return config->confidence_flapping;
    return fault->kind == FABRIC_DOWN ? config->confidence_down : config->confidence_errors;
}

static void accuse(const struct fabric_config *config, const struct fabric_fault *fault,
                   struct verdict_builder *builder) {
    struct arena *arena = builder->arena;
    const struct link_said *anchor = fault->anchor->said;
    bool nvlink = is_nvlink(fault);
    const struct text_field fields[] = {
        {"card", nvlink ? "" : card_spoken(fault, arena)},
        {"name", nvlink ? "" : card_name(fault, arena)},
        {"node", node_spoken(fault->node, arena)},
        {"gpu", nvlink ? gpu_spoken_name(fault->node, STRING_NONE, anchor->address, arena) : ""},
        {"switch",
         nvlink ? arena_format(arena, "NVSwitch %s", pci_text(anchor->address, false, arena)) : ""},
        {"code", arena_format(arena, "%" PRIu32, anchor->code)},
        {"link",
         nvlink && anchor->port >= 0 ? arena_format(arena, " on link %" PRId32, anchor->port) : ""},
        {"number", arena_format(arena, "%" PRId64, fault->number)},
        {"window", duration_text((__int128)duration_ns(config->window), arena)},
        {"said", nvlink ? ""
                        : text_shown((struct slice){anchor->text, anchor->text_size},
                                     SAID_MAX_SHOWN, arena)},
        {NULL, NULL},
    };
    enum recovery recovery = nvlink ? nvlink_recovery(fault) : RECOVERY_UNKNOWN;
    const char *asked =
        recovery == RECOVERY_REBOOT  ? " The driver itself asks for a reboot (Xid 154)."
        : recovery == RECOVERY_RESET ? " The driver itself asks for a reset (Xid 154)."
                                     : "";
    builder_rate(builder, fault->severity, confidence_of(config, fault),
                 action_graver(fault->action, recovery_action(recovery)));
    builder_texts(builder, headline_of(fault, arena),
                  arena_format(arena, "%s%s", advice_of(fault), asked), fields);
}

static void hand_over(const struct told_link *told, struct verdict_builder *builder) {
    const struct text_field fields[] = {
        {"node", node_spoken(told->node, builder->arena)}, {"id", told->told_by}, {NULL, NULL}};
    builder_rate(builder, SEVERITY_INFO, CONFIDENCE_OF_ENDED, "monitor");
    builder_texts(builder, "NVLink of {node}: what happened is told by another verdict",
                  "See the verdict {id}.", fields);
}

void fabric_verdict(const struct fabric_config *config, const struct told_link *told,
                    const struct fabric_fault *fault, struct verdict_builder *builder) {
    struct arena *arena = builder->arena;
    builder_begin(builder, arena, PATTERN, KINDS[fault->kind]);
    if (told->told_by[0] == '\0')
        accuse(config, fault, builder);
    else
        hand_over(told, builder);
    if (told->node == STRING_NONE)
        builder_partial(builder, "nothing says on which node it is");
    if (told->told_by[0] != '\0')
        builder_partial(builder, "the rest is told by another verdict");
    add_entities(builder, fault);
    add_evidence(builder, fault);
    const char *where =
        is_nvlink(fault) ? on_node(told->node, "nvlink", arena) : card_entity(fault, arena);
    const char *began = arena_format(arena, "%" PRIu64, told->anchor_ns);
    builder_finish(builder, (struct slice[]){slice_of(where), slice_of(began)}, 2);
    if (fault->first_ns < builder->verdict.start_ns)
        builder->verdict.start_ns = fault->first_ns;
    set_after(&builder->verdict, fault);
}
