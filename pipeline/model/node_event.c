// SPDX-License-Identifier: Apache-2.0
// Reads and writes PCI addresses; names of GPU fields.
#include "pipeline/model/node_event.h"

#include <assert.h>
#include <stdio.h>

enum { NODE_NAME_MAX = 253 };

// Hexadecimal digits at *at, at most `max`; their number.
static unsigned read_hex(struct slice text, size_t *at, unsigned max, uint64_t *value) {
    unsigned digits = 0;
    *value = 0;
    for (; *at < text.size && digits < max; ++*at, digits++) {
        char c = text.data[*at];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            break;
        *value = *value << 4 | (unsigned)digit;
    }
    return digits;
}

static bool read_char(struct slice text, size_t *at, char wanted) {
    if (*at >= text.size || text.data[*at] != wanted)
        return false;
    ++*at;
    return true;
}

bool pci_parse(struct slice text, pci_address *address) {
    uint64_t part[3], function = 0;
    unsigned digits[3], count = 0;
    size_t at = text.size >= 4 && memcmp(text.data, "PCI:", 4) == 0 ? 4 : 0;
    assert(address != NULL);
    do {
        digits[count] = read_hex(text, &at, count == 0 ? 8 : 2, &part[count]);
        count++;
    } while (count < 3 && read_char(text, &at, ':'));
    // Without a domain: bus and device.
    uint64_t domain = count == 3 ? part[0] : 0;
    if (count < 2 || digits[0] == 0 || digits[count - 2] != 2 || digits[count - 1] != 2)
        return false;
    if (read_char(text, &at, '.') && read_hex(text, &at, 1, &function) != 1)
        return false;
    if (at != text.size || part[count - 1] > 0x1f || function > 7)
        return false;
    *address = domain << 16 | part[count - 2] << 8 | part[count - 1] << 3 | function;
    return true;
}

void pci_format_device(pci_address address, char out[PCI_TEXT_MAX]) {
    snprintf(out, PCI_TEXT_MAX, "%04x:%02x:%02x", (unsigned)(address >> 16),
             (unsigned)(address >> 8 & 0xff), (unsigned)(address >> 3 & 0x1f));
}

void pci_format_function(pci_address address, char out[PCI_TEXT_MAX]) {
    snprintf(out, PCI_TEXT_MAX, "%04x:%02x:%02x.%u", (unsigned)(address >> 16),
             (unsigned)(address >> 8 & 0xff), (unsigned)(address >> 3 & 0x1f),
             (unsigned)(address & 7));
}

const char *gpu_field_name(enum gpu_field field) {
    static const char *const NAMES[] = {
#define GPU_FIELD(field, name, others) "DCGM_FI_DEV_" name,
#include "pipeline/model/gpu_fields.h"
#undef GPU_FIELD
    };
    assert(field < GPU_FIELD_COUNT);
    return NAMES[field];
}

void gpu_field_spelling(enum gpu_field field, uint32_t spelling, char out[GPU_SPELLING_MAX]) {
    static const char *const OTHERS[] = {
#define GPU_FIELD(field, name, others) others,
#include "pipeline/model/gpu_fields.h"
#undef GPU_FIELD
    };
    assert(field < GPU_FIELD_COUNT && spelling < GPU_SPELLINGS);
    const char *at = OTHERS[field];
    for (uint32_t i = 1; i < spelling; i++) {
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
    size_t size = strcspn(at, " ");
    bool is_whole = (*at >= '0' && *at <= '9') || strncmp(at, "DCGM_", 5) == 0;
    if (spelling == 0 || size == 0)
        snprintf(out, GPU_SPELLING_MAX, "%s", gpu_field_name(field));
    else
        snprintf(out, GPU_SPELLING_MAX, "%s%.*s", is_whole ? "" : "DCGM_FI_DEV_", (int)size, at);
}

// "Successfully assigned NAMESPACE/NAME to NODE", as schedulers write it.
static struct slice assigned_node(struct slice message) {
    struct slice start = SLICE("Successfully assigned "), phrase = SLICE(" to ");
    struct slice none = {NULL, 0};
    if (message.size < start.size || memcmp(message.data, start.data, start.size) != 0)
        return none;
    const char *at =
        memmem(message.data + start.size, message.size - start.size, phrase.data, phrase.size);
    if (at == NULL)
        return none;
    struct slice node = {at + phrase.size,
                         (size_t)(message.data + message.size - at) - phrase.size};
    while (node.size > 0 && (node.data[node.size - 1] == '.' || node.data[node.size - 1] == ' '))
        node.size--;
    bool is_name = memchr(node.data, ' ', node.size) == NULL && node.size <= NODE_NAME_MAX;
    return is_name ? node : none;
}

// "Preempted by pod UID on node NAME".
static struct slice node_of_note(struct slice note) {
    struct slice phrase = SLICE(" on node ");
    const char *at = note.size == 0 ? NULL : memmem(note.data, note.size, phrase.data, phrase.size);
    if (at == NULL)
        return (struct slice){NULL, 0};
    at += phrase.size;
    size_t size = 0, left = (size_t)(note.data + note.size - at);
    while (size < left && at[size] != ' ')
        size++;
    while (size > 0 && at[size - 1] == '.')
        size--;
    return (struct slice){at, size};
}

struct slice kubernetes_said_node(const struct kubernetes_object *object) {
    if (object->kind == KUBERNETES_EVENT && slice_equal(object->reason, SLICE("Scheduled")))
        return assigned_node(object->message);
    if (object->kind == KUBERNETES_EVENT && slice_equal(object->reason, SLICE("Preempted")))
        return node_of_note(object->message);
    return (struct slice){NULL, 0};
}
