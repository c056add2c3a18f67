// SPDX-License-Identifier: Apache-2.0
// Reads the lines of NVIDIA's driver. The code is taken by its place behind the bracket: names of
// processes may hold commas or be cut. O(line).
#include "receivers/decode/kernel_log/xid.h"

#include "base/text/cut.h"
#include "receivers/decode/kernel_log/nvlink.h"

enum { CODE_DIGITS_MAX = 6, PROCESS_DIGITS_MAX = 10, ADDRESS_TEXT_MIN = 10, UUID_SIZE_MIN = 40 };

static struct slice skip_blanks(struct slice text) {
    text_skip_blanks(&text);
    return text;
}

// "(PCI:0000:9b:00)", "(0000:9b:00)", "(PCI:0000:9b:00 GPU-I:05)", and a colon: what follows it.
static bool take_place(struct slice *text, pci_address *address) {
    struct slice rest = skip_blanks(*text), place = rest;
    if (!text_skip_char(&place, '(') || !text_find(rest, SLICE(")"), &rest))
        return false;
    place = text_until(text_until(place, ')'), ' ');
    if (!pci_parse(place, address) || !text_skip_char(&rest, ':'))
        return false;
    *text = skip_blanks(rest);
    return true;
}

// Digits, and then the end, a comma or a blank.
static bool take_code(struct slice *text, uint64_t *code) {
    struct slice rest = *text;
    if (!text_take_number(&rest, 1, CODE_DIGITS_MAX, code) || *code == 0)
        return false;
    if (!text_skip_char(&rest, ',') && rest.size > 0 && *rest.data != ' ')
        return false;
    *text = skip_blanks(rest);
    return true;
}

// The value of "key=", up to the next comma with a blank behind it; moves `text` behind. Data NULL:
// the line ends inside the value.
static bool take_value(struct slice *text, struct slice key, struct slice *value) {
    if (!text_skip(text, key))
        return false;
    struct slice behind = text_from(*text, text->size);
    bool more = text_find(*text, SLICE(", "), &behind);
    *value = (struct slice){NULL, 0};
    if (more)
        *value = (struct slice){text->data, text->size - behind.size - 2};
    *text = skip_blanks(behind);
    return true;
}

// Whether the text ends inside the place or the number: all that is there of it is right.
static bool is_cut(struct slice text) {
    pci_address address;
    uint64_t code = 0;
    if (take_place(&text, &address))
        return text.size == 0 || (text_number(text, CODE_DIGITS_MAX, &code) && code != 0);
    text_skip_blanks(&text);
    if (text_skip_char(&text, '('))
        text_skip(&text, SLICE("PCI:"));
    while (text.size > 0 && memchr("PCI:.0123456789abcdefABCDEF)", *text.data, 28) != NULL)
        text = text_from(text, 1);
    return text.size == 0;
}

static bool read_report(struct slice text, enum kernel_kind kind, struct kernel_line *line) {
    pci_address address;
    uint64_t code, pid;
    struct slice value;
    if (!take_place(&text, &address) || !take_code(&text, &code))
        return false;
    line->kind = kind;
    line->address = kind == KERNEL_XID ? pci_device(address) : address;
    line->code = (uint32_t)code;
    line->pid = -1;
    line->process = (struct slice){0};
    if (take_value(&text, SLICE("pid="), &value) && text_number(value, PROCESS_DIGITS_MAX, &pid))
        line->pid = (int64_t)pid;
    if (take_value(&text, SLICE("name="), &value) && !slice_equal(value, SLICE("<unknown>")))
        line->process = value;
    line->detail = text;
    return true;
}

// "GPU-" and the 36 hexadecimal digits and dashes of a UUID.
static bool read_uuid(struct slice text, struct slice *uuid) {
    size_t size = 4;
    if (!text_begins(text, SLICE("GPU-")))
        return false;
    while (size < text.size && size < 64 && text.data[size] != '\0' &&
           strchr("0123456789abcdefABCDEF-", text.data[size]) != NULL)
        size++;
    *uuid = (struct slice){text.data, size};
    return size >= UUID_SIZE_MIN;
}

// The first PCI address with a domain among the words.
static bool find_address(struct slice text, pci_address *address) {
    while (text.size > 0) {
        struct slice word = text_until_any(text, " \t\r\n");
        text = text_from(text, word.size + (word.size < text.size));
        while (word.size > 0 && memchr(":,.()", word.data[word.size - 1], 5) != NULL)
            word.size--;
        while (text_skip_char(&word, '(')) {
        }
        if (word.size >= ADDRESS_TEXT_MIN && pci_parse(word, address)) {
            *address = pci_device(*address);
            return true;
        }
    }
    return false;
}

// "NVRM: GPU at PCI:0000:91:00: GPU-<uuid>": the address, a colon, the UUID.
static bool read_identity(struct slice text, struct kernel_line *line) {
    struct slice behind, uuid;
    pci_address address;
    if (!text_skip(&text, SLICE("GPU at ")) || !text_find(text, SLICE(" GPU-"), &behind) ||
        !read_uuid(text_from(text, text.size - behind.size - 4), &uuid) ||
        !find_address((struct slice){text.data, text.size - behind.size - 4}, &address))
        return false;
    line->kind = KERNEL_GPU_UUID;
    line->address = address;
    line->uuid = uuid;
    return true;
}

static enum kernel_xid_parse read_lost(struct slice text, struct kernel_line *line) {
    struct slice behind;
    if (!text_find(text, SLICE("fallen off the bus"), &behind)) {
        bool first =
            text_begins(text, SLICE("The NVIDIA GPU ")) && find_address(text, &line->address);
        return first ? KERNEL_XID_FIRST : KERNEL_XID_NONE;
    }
    line->kind = KERNEL_GPU_LOST;
    line->code = 0;
    line->pid = -1;
    line->detail = text;
    line->address = PCI_NONE;
    return find_address(text, &line->address) ? KERNEL_XID_LINE : KERNEL_XID_LAST;
}

static enum kernel_xid_parse read_xid(struct slice text, struct kernel_line *line) {
    if (!read_report(text, KERNEL_XID, line))
        return is_cut(text) ? KERNEL_XID_CUT : KERNEL_XID_NONE;
    nvlink_read_xid(line);
    return KERNEL_XID_LINE;
}

static enum kernel_xid_parse read_switch(struct slice name, struct slice text,
                                         struct kernel_line *line) {
    // An Xid may end with its number, an SXid does not.
    if (is_cut(text))
        return KERNEL_XID_CUT;
    if (!read_report(text, KERNEL_SXID, line))
        return KERNEL_XID_NONE;
    if (!nvlink_read_sxid(line))
        return KERNEL_XID_DETAIL;
    line->unit = name;
    return KERNEL_XID_LINE;
}

enum kernel_xid_parse kernel_xid_parse(struct slice text, struct kernel_line *line) {
    static const struct slice device = {"nvidia-nvswitch", 15};
    struct slice said, number;
    while (text.size > 0 && memchr(" \t\r\n", text.data[text.size - 1], 4) != NULL)
        text.size--;
    if (text_find(text, SLICE("NVRM: "), &said)) {
        text_skip_blanks(&said);
        if (text_skip(&said, SLICE("Xid")))
            return read_xid(said, line);
        return read_identity(said, line) ? KERNEL_XID_LINE : read_lost(said, line);
    }
    if (!text_find(text, device, &number) || !text_find(number, SLICE(" SXid"), &said))
        return KERNEL_XID_NONE;
    number = text_until_any(number, ": ");
    return read_switch((struct slice){number.data - device.size, device.size + number.size}, said,
                       line);
}
