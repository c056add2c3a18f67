// SPDX-License-Identifier: Apache-2.0
// Keeps what lines say of parts of machines that failed: rows of some 300 bytes, found by all that
// tells them apart; of two with one key the lesser text is kept.
#include "processors/node_fault/parts.h"

#include "base/hash/hash.h"
#include "base/text/cut.h"
#include "pipeline/model/node_event.h"
#include "pipeline/model/observation.h"
#include "processors/cluster/xid_text.h"

#include <inttypes.h>

struct said_key {
    string_id node;
    uint64_t time_ns;
    uint64_t address;
    string_id device;
    uint32_t cause;
} __attribute__((packed));
_Static_assert(offsetof(struct node_said, kind) ==
                   sizeof(struct row_head) + sizeof(struct said_key),
               "the key lies in the row as in struct said_key");

const struct row_type NODE_SAID_ROWS = {
    .size = sizeof(struct node_said),
    .key_size = sizeof(struct said_key),
    .rows_per_chunk = 16,
    .strings = {offsetof(struct node_said, node), offsetof(struct node_said, device)},
};

static uint32_t hash_cause(const struct node_cause *cause) {
    return (uint32_t)hash_slice(slice_of(cause->name));
}

static void put_text(struct node_said *said, struct slice text) {
    char room[SAID_TEXT_MAX];
    struct slice kept =
        text_shorten(text_trim(text_until(text_trim(text), '\n')), sizeof room, TEXT_BYTES, room);
    struct slice old = {said->text, said->text_size};
    if (kept.size == 0 || (said->text_size > 0 && slice_compare(kept, old) >= 0))
        return;
    memcpy(said->text, kept.data, kept.size);
    said->text_size = (uint32_t)kept.size;
}

static enum said_device find_device(const struct observation *seen, uint64_t *address) {
    static const struct {
        enum fact_key key;
        enum said_device kind;
    } keys[] = {{FACT_GPU, SAID_GPU}, {FACT_NIC, SAID_NIC}, {FACT_PCI, SAID_PCI}};
    *address = PCI_NONE;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const struct fact *fact = observation_fact(seen, keys[i].key);
        if (fact == NULL)
            continue;
        *address = pci_device(fact->address);
        return keys[i].kind;
    }
    return SAID_NO_DEVICE;
}

void node_log_take(struct node_log *log, const struct event *event, struct arena *scratch) {
    uint32_t cause = node_cause_of(event);
    if (cause == CAUSE_NONE)
        return;
    const struct observation *seen = event->observation;
    struct slice device = {NULL, 0};
    uint64_t address;
    enum said_device kind = find_device(seen, &address);
    // Of memory it is the module, which stands in the text.
    bool is_gpu = node_cause_get(cause)->part == PART_GPU;
    if (is_gpu && observation_text(seen, FACT_DEVICE, &device) && kind == SAID_NO_DEVICE)
        kind = SAID_GPU;
    string_id name = device.size == 0 ? STRING_NONE : intern(device);
    struct said_key key = {event->node, event->time_ns, address,
                           name == STRING_REFUSED ? STRING_NONE : name,
                           hash_cause(node_cause_get(cause))};
    struct node_said *said =
        row_bound_take(&log->rows, &log->bound, &key, offsetof(struct node_said, time_ns), scratch);
    said->kind = (uint32_t)kind;
    if (event->timeless)
        said->kind |= (uint32_t)event->time_of << SAID_UNDATED_SHIFT;
    // Of a report of many lines it is what its reader took from them.
    struct slice text = seen->text;
    observation_text(seen, FACT_MESSAGE, &text);
    put_text(said, text);
}

enum said_device node_said_device(const struct node_said *said) {
    return (enum said_device)(said->kind & ((1u << SAID_UNDATED_SHIFT) - 1));
}

enum time_of node_said_time_of(const struct node_said *said) {
    return (enum time_of)(said->kind >> SAID_UNDATED_SHIFT);
}

const struct node_cause *node_said_cause(const struct node_said *said) {
    for (uint32_t i = 0; i < NODE_CAUSES; i++)
        if (hash_cause(node_cause_get(i)) == said->cause)
            return node_cause_get(i);
    return NULL;
}

const char *node_said_uid(const struct node_said *said, struct arena *arena) {
    const struct node_cause *cause = node_said_cause(said);
    const char *device = said->address != PCI_NONE ? pci_text(said->address, false, arena)
                         : said->device != STRING_NONE
                             ? arena_text(arena, intern_slice(said->device))
                             : "";
    return arena_format(arena, "node_fault:%s:%s:%s:%" PRIu64, node_in_uid(said->node, arena),
                        cause->name, device, said->time_ns);
}

const char *node_said_entity(const struct node_said *said, struct arena *arena) {
    if (said->address != PCI_NONE)
        return on_node(said->node, pci_text(said->address, false, arena), arena);
    if (said->device != STRING_NONE)
        return on_node(said->node, arena_text(arena, intern_slice(said->device)), arena);
    return NULL;
}
