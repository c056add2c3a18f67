// SPDX-License-Identifier: Apache-2.0
// Finds what a code or a bit means. Rows come from the build; finding one is a binary search or a
// walk over some thirty rows.
#include "processors/cluster/tables.h"

#include <strings.h>

const struct xid_row *xid_find(uint32_t code) {
    size_t low = 0, high = XID_ROWS_COUNT;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (XID_ROWS[middle].code == code)
            return &XID_ROWS[middle];
        if (XID_ROWS[middle].code < code)
            low = middle + 1;
        else
            high = middle;
    }
    for (size_t i = 0; i < XID_ALIASES_COUNT; i++)
        if (XID_ALIASES[i].code == code)
            return &XID_ROWS[XID_ALIASES[i].row];
    return NULL;
}

struct xid_judgement xid_judge(uint32_t code, bool fatal) {
    const struct xid_row *row = xid_find(code);
    if (row == NULL || (row->needs_fatal && !fatal))
        return (struct xid_judgement){SEVERITY_WARNING, XID_ANCHOR_NO, "monitor"};
    return (struct xid_judgement){row->severity, row->anchor, row->action};
}

static bool in_register(const struct aer_bit *bit, enum aer_severity severity) {
    return (bit->reg[0] == 'c') == (severity == AER_CORRECTABLE);
}

const struct aer_bit *aer_bit_find(enum aer_severity severity, uint32_t bit) {
    for (size_t i = 0; i < AER_BITS_COUNT; i++)
        if (AER_BITS[i].bit == bit && in_register(&AER_BITS[i], severity))
            return &AER_BITS[i];
    return NULL;
}

static bool is_name(const char *known, struct slice name) {
    return strlen(known) == name.size && strncasecmp(known, name.data, name.size) == 0;
}

const struct aer_bit *aer_bit_find_name(enum aer_severity severity, struct slice name) {
    for (size_t i = 0; i < AER_BITS_COUNT && name.size > 0; i++)
        if (in_register(&AER_BITS[i], severity) &&
            (is_name(AER_BITS[i].kernel_name, name) || is_name(AER_BITS[i].sysfs_doc_name, name)))
            return &AER_BITS[i];
    return NULL;
}

const struct throttle_bit *throttle_bit_find(uint64_t mask) {
    for (size_t i = 0; i < THROTTLE_BITS_COUNT && mask != 0; i++)
        if (THROTTLE_BITS[i].mask == mask)
            return &THROTTLE_BITS[i];
    return NULL;
}
