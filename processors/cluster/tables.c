// SPDX-License-Identifier: Apache-2.0
// Finds what a code or a bit means. Rows come from the build; finding one is a binary search or a
// walk over some sixty rows.
#include "processors/cluster/tables.h"

#include "base/text/cut.h"

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

// -- NVLink 5 -------------------------------------------------------------------------------------

// "0x0215e5c6"; moves `text` behind it.
static bool take_hex(struct slice *text, uint32_t *number) {
    enum { DIGITS_MAX = 8 };
    static const char known[] = "0123456789abcdef";
    size_t digits = 0;
    text_skip_blanks(text);
    if (!text_skip(text, SLICE("0x")))
        return false;
    for (*number = 0; digits < text->size && digits < DIGITS_MAX; digits++) {
        const char *digit = memchr(known, text->data[digits] | 0x20, sizeof known - 1);
        if (digit == NULL)
            break;
        *number = *number << 4 | (uint32_t)(digit - known);
    }
    *text = text_from(*text, digits);
    return digits > 0;
}

static bool is_unit(const char *units, struct slice unit) {
    struct slice rest = slice_of(units);
    while (rest.size > 0) {
        struct slice known = text_until(rest, '/');
        if (slice_equal(known, unit))
            return true;
        rest = text_from(rest, known.size + (known.size < rest.size));
    }
    return false;
}

static bool has_status(const struct nvlink5_row *row, uint32_t status) {
    enum { XID_OF_NUMBERS = 149 };
    for (uint32_t i = 0; i < row->status_count; i++) {
        uint32_t wanted = row->statuses[i];
        bool is_any = wanted == 0 && row->status_count == 1;
        if (is_any || (row->xid == XID_OF_NUMBERS ? wanted == status : (wanted & status) != 0))
            return true;
    }
    return false;
}

enum nvlink5 nvlink5_judge(uint32_t xid, struct slice detail) {
    struct slice unit = text_until_any(detail, " \t/"), words;
    enum nvlink5 worst = NVLINK5_UNKNOWN;
    uint32_t info, status;
    if (!text_find(detail, SLICE("("), &words))
        return NVLINK5_UNKNOWN;
    struct slice front = {detail.data, detail.size - words.size}, rest;
    if (text_find(front, SLICE(" i1 "), &rest))
        return NVLINK5_NOTHING;
    if (!take_hex(&words, &info) || !take_hex(&words, &status))
        return NVLINK5_UNKNOWN;
    for (size_t i = 0; i < NVLINK5_ROWS_COUNT; i++) {
        const struct nvlink5_row *row = &NVLINK5_ROWS[i];
        if (row->xid == xid && row->subcode == (info >> 20 & 0x3f) && is_unit(row->units, unit) &&
            has_status(row, status) && row->judged > worst)
            worst = row->judged;
    }
    // What goes on by the line's own word is not fatal by the table; what ends a process may be so.
    bool goes_on = text_find(front, SLICE(" Nonfatal "), &rest);
    return goes_on && worst > NVLINK5_NOTE && worst != NVLINK5_ENDS_PROCESS ? NVLINK5_NOTE : worst;
}

// -- SXid, PCIe, clocks ---------------------------------------------------------------------------

const struct sxid_row *sxid_find(uint32_t code) {
    size_t low = 0, high = SXID_ROWS_COUNT;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (SXID_ROWS[middle].code == code)
            return &SXID_ROWS[middle];
        if (SXID_ROWS[middle].code < code)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
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
