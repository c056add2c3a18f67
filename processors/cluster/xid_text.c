// SPDX-License-Identifier: Apache-2.0
// Words for nodes, GPUs and Xids. The meanings of Xids come from the table (tables.h), what the
// line adds is shortened so that a description keeps within the schema.
#include "processors/cluster/xid_text.h"

#include "base/text/cut.h"
#include "base/text/human.h"
#include "base/text/utf8.h"
#include "processors/cluster/tables.h"

#include <inttypes.h>

enum { DETAIL_MAX = 176, PROCESS_MAX = 64, NODE_SPOKEN_MAX = 64, NODE_IN_UID_MAX = 220 };

// At most `max` bytes, whole characters.
static struct slice cut_bytes(struct slice text, size_t max) {
    size_t at = 0, size;
    uint32_t code_point;
    if (text.size <= max)
        return text;
    while ((size = utf8_decode(text, at, &code_point), at + (size == 0 ? 1 : size)) <= max)
        at += size == 0 ? 1 : size;
    return (struct slice){text.data, at};
}

const char *node_spoken(string_id node, struct arena *arena) {
    if (node == STRING_NONE)
        return "an unnamed node";
    return text_shown(intern_slice(node), NODE_SPOKEN_MAX, arena);
}

const char *node_in_uid(string_id node, struct arena *arena) {
    return node == STRING_NONE ? ""
                               : arena_text(arena, cut_bytes(intern_slice(node), NODE_IN_UID_MAX));
}

const char *on_node(string_id node, const char *what, struct arena *arena) {
    return node == STRING_NONE ? what
                               : arena_format(arena, "%s/%s", node_in_uid(node, arena), what);
}

const char *string_or_null(string_id id) {
    return id == STRING_NONE ? NULL : intern_slice(id).data;
}

const char *pci_text(pci_address address, bool with_function, struct arena *arena) {
    char text[PCI_TEXT_MAX];
    if (with_function)
        pci_format_function(address, text);
    else
        pci_format_device(address, text);
    return arena_text(arena, slice_of(text));
}

const char *duration_text(__int128 duration_ns, struct arena *arena) {
    assert(duration_ns >= 0);
    char text[HUMAN_MAX];
    human_duration(duration_ns, text);
    return arena_text(arena, slice_of(text));
}

const char *text_shown(struct slice text, size_t max, struct arena *arena) {
    if (text.size <= max)
        return arena_text(arena, text);
    char *room = arena_take(arena, TEXT_ROOM(max) + 1);
    return arena_text(arena, text_shorten(text, max, TEXT_CHARACTERS, room));
}

const char *xid_uid(string_id node, pci_address address, uint32_t code, uint64_t time_ns,
                    struct arena *arena) {
    return arena_format(arena, "xid:%s:%s:%" PRIu32 ":%" PRIu64, node_in_uid(node, arena),
                        pci_text(address, false, arena), code, time_ns);
}

struct slice xid_meaning(uint32_t code) {
    const struct xid_row *row = xid_find(code);
    if (row == NULL)
        return SLICE("");
    struct slice meaning = slice_of(row->meaning);
    size_t size = 0;
    while (size < meaning.size && meaning.data[size] != ';' && meaning.data[size] != '(')
        size++;
    while (size > 0 && meaning.data[size - 1] == ' ')
        size--;
    return (struct slice){meaning.data, size};
}

// "python3 (pid 48211)", "pid 48211", "python3" or nothing.
static const char *process_text(struct slice process, int64_t pid, struct arena *arena) {
    const char *name = text_shown(process, PROCESS_MAX, arena);
    if (pid < 0)
        return name;
    if (name[0] == '\0')
        return arena_format(arena, "pid %" PRId64, pid);
    return arena_format(arena, "%s (pid %" PRId64 ")", name, pid);
}

const char *xid_description(pci_address address, uint32_t code, struct slice process, int64_t pid,
                            struct slice detail, struct arena *arena) {
    struct slice meaning = xid_meaning(code);
    const char *who = process_text(process, pid, arena);
    const char *said = text_shown(detail, DETAIL_MAX, arena);
    return arena_format(arena, "Xid %" PRIu32 " on %s%s%.*s%s%s%s%s", code,
                        pci_text(address, false, arena), meaning.size > 0 ? ": " : "",
                        (int)meaning.size, meaning.data, who[0] != '\0' ? "; " : "", who,
                        said[0] != '\0' ? ": " : "", said);
}

// The address, else the UUID.
static const char *gpu_text(string_id uuid, pci_address address, struct arena *arena) {
    if (address == PCI_NONE)
        return uuid == STRING_NONE ? "" : intern_slice(uuid).data;
    return pci_text(address, false, arena);
}

const char *dcgm_uid(string_id node, const char *gpu, enum gpu_field field, uint64_t time_ns,
                     struct arena *arena) {
    assert(gpu != NULL && field < GPU_FIELD_COUNT);
    return arena_format(arena, "dcgm:%s:%s:%s:%" PRIu64, node_in_uid(node, arena), gpu,
                        gpu_field_name(field), time_ns);
}

const char *field_text(enum gpu_field field, uint32_t spelling, struct arena *arena) {
    char text[GPU_SPELLING_MAX];
    gpu_field_spelling(field, spelling, text);
    bool is_number = text[0] >= '0' && text[0] <= '9';
    return arena_format(arena, "%s%s", is_number ? "DCGM field " : "", text);
}

const char *gpu_field_uid(string_id node, string_id uuid, pci_address address, enum gpu_field field,
                          uint64_t time_ns, struct arena *arena) {
    const char *gpu =
        uuid == STRING_NONE ? gpu_text(uuid, address, arena) : intern_slice(uuid).data;
    return dcgm_uid(node, gpu, field, time_ns, arena);
}

const char *gpu_entity_name(string_id node, string_id uuid, pci_address address,
                            struct arena *arena) {
    return on_node(node, gpu_text(uuid, address, arena), arena);
}

const char *gpu_spoken_name(string_id node, string_id uuid, pci_address address,
                            struct arena *arena) {
    const char *gpu = gpu_text(uuid, address, arena);
    if (node == STRING_NONE)
        return arena_format(arena, "GPU %s", gpu);
    return arena_format(arena, "GPU %s of %s", gpu, node_spoken(node, arena));
}

void builder_gpu(struct verdict_builder *builder, string_id node, string_id uuid,
                 pci_address address, enum entity_role node_role) {
    struct arena *arena = builder->arena;
    builder_entity(builder, "gpu", ROLE_CULPRIT, gpu_entity_name(node, uuid, address, arena));
    builder_entity(builder, "node", node_role, string_or_null(node));
    builder_attribute(builder, "k8s.node.name", intern_slice(node));
    builder_attribute(builder, "hw.id", intern_slice(uuid));
    if (address != PCI_NONE)
        builder_attribute(builder, "pci.address", slice_of(pci_text(address, false, arena)));
}

static bool holds(struct slice text, const char *part) {
    return text.size > 0 && memmem(text.data, text.size, part, strlen(part)) != NULL;
}

enum recovery recovery_read(struct slice detail) {
    struct slice to = detail;
    const char *at = detail.size == 0 ? NULL : memmem(detail.data, detail.size, " to ", 4);
    if (at != NULL)
        to = (struct slice){at, (size_t)(detail.data + detail.size - at)};
    // Numbers as in NVML's list of recovery actions: none, reset, reboot, drain of peer traffic,
    // drain and reset.
    if (holds(to, "Reboot") || holds(to, "reboot") || holds(to, " 0x2"))
        return RECOVERY_REBOOT;
    if (holds(to, "Reset") || holds(to, "reset") || holds(to, "Drain") || holds(to, " 0x1") ||
        holds(to, " 0x3") || holds(to, " 0x4"))
        return RECOVERY_RESET;
    return holds(to, "None") || holds(to, " 0x0") ? RECOVERY_NONE : RECOVERY_UNKNOWN;
}

const char *recovery_action(enum recovery recovery) {
    if (recovery == RECOVERY_REBOOT)
        return "drain_node";
    return recovery == RECOVERY_RESET ? "reset_gpu" : NULL;
}

static size_t weight_of(const char *action) {
    static const char *const RISING[] = {"monitor",    "fix_workload",    "restart_app",
                                         "check_link", "contact_support", "reset_gpu",
                                         "drain_node", "replace_hardware"};
    size_t weight = sizeof RISING / sizeof *RISING - 1;
    while (weight > 0 && strcmp(RISING[weight], action) != 0)
        weight--;
    return weight;
}

const char *action_graver(const char *a, const char *b) {
    if (a == NULL || b == NULL)
        return a == NULL ? b : a;
    return weight_of(a) >= weight_of(b) ? a : b;
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool says_fatal(struct slice detail) {
    static const char word[] = "Fatal";
    size_t size = sizeof word - 1;
    for (size_t at = 0; at + size <= detail.size; at++) {
        if (memcmp(detail.data + at, word, size) != 0)
            continue;
        // "Nonfatal" has a small f, "Non-Fatal" a sign before it.
        bool starts = at == 0 || (!is_letter(detail.data[at - 1]) && detail.data[at - 1] != '-');
        bool ends = at + size == detail.size || !is_letter(detail.data[at + size]);
        if (starts && ends)
            return true;
    }
    return false;
}

bool xid_is_fatal(uint32_t code, struct slice detail) {
    enum nvlink5 judged = nvlink5_judge(code, detail);
    return judged == NVLINK5_UNKNOWN ? says_fatal(detail) : judged >= NVLINK5_SOFTWARE;
}
