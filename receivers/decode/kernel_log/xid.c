// SPDX-License-Identifier: Apache-2.0
// What does a line of NVIDIA's driver say? The code is taken by its place behind the bracket: names
// of processes may hold commas or be cut. O(line).
#include "receivers/decode/kernel_log/xid.h"

#include <string.h>

enum { CODE_DIGITS_MAX = 6, ADDRESS_TEXT_MIN = 10 };

static struct slice rest_from(struct slice text, size_t at) {
    return (struct slice){text.data + at, text.size - at};
}

static bool starts_with(struct slice text, struct slice start) {
    return text.size >= start.size && memcmp(text.data, start.data, start.size) == 0;
}

static struct slice skip_blanks(struct slice text) {
    while (text.size > 0 && (text.data[0] == ' ' || text.data[0] == '\t'))
        text = rest_from(text, 1);
    return text;
}

static struct slice cut_blanks(struct slice text) {
    while (text.size > 0 && strchr(" \t\r\n", text.data[text.size - 1]) != NULL)
        text.size--;
    return text;
}

bool kernel_find(struct slice text, struct slice part, size_t *at) {
    const char *found = memmem(text.data, text.size, part.data, part.size);
    if (found == NULL)
        return false;
    *at = (size_t)(found - text.data);
    return true;
}

// "(PCI:0000:9b:00)", "(0000:9b:00)", "(PCI:0000:9b:00 GPU-I:05)", and a colon: what follows it.
static bool read_place(struct slice *text, pci_address *address) {
    *text = skip_blanks(*text);
    const char *close = memchr(text->data, ')', text->size);
    if (text->size == 0 || text->data[0] != '(' || close == NULL)
        return false;
    struct slice place = {text->data + 1, (size_t)(close - text->data) - 1};
    const char *blank = memchr(place.data, ' ', place.size);
    if (blank != NULL)
        place.size = (size_t)(blank - place.data);
    if (!pci_parse(place, address))
        return false;
    *text = rest_from(*text, (size_t)(close - text->data) + 1);
    if (text->size == 0 || text->data[0] != ':')
        return false;
    *text = skip_blanks(rest_from(*text, 1));
    return true;
}

// Digits, and then the end or a comma.
static bool read_code(struct slice *text, uint32_t *code) {
    size_t digits = 0;
    uint32_t value = 0;
    for (; digits < text->size && text->data[digits] >= '0' && text->data[digits] <= '9';
         digits++) {
        if (digits == CODE_DIGITS_MAX)
            return false;
        value = value * 10 + (uint32_t)(text->data[digits] - '0');
    }
    struct slice after = cut_blanks(skip_blanks(rest_from(*text, digits)));
    if (value == 0 || (after.size > 0 && after.data[0] != ','))
        return false;
    *code = value;
    *text = after.size == 0 ? after : skip_blanks(rest_from(after, 1));
    return true;
}

// The value of "key=", up to the next comma with a blank behind it or the end; moves `text` behind.
static bool read_value(struct slice *text, struct slice key, struct slice *value) {
    if (!starts_with(*text, key))
        return false;
    struct slice rest = rest_from(*text, key.size);
    size_t end;
    bool more = kernel_find(rest, SLICE(", "), &end);
    if (!more)
        end = rest.size > 0 && rest.data[rest.size - 1] == ',' ? rest.size - 1 : rest.size;
    *value = (struct slice){rest.data, end};
    *text = more ? skip_blanks(rest_from(rest, end + 2)) : (struct slice){rest.data + rest.size, 0};
    return true;
}

static int64_t process_number(struct slice text) {
    int64_t number = 0;
    if (text.size == 0 || text.size > 10)
        return -1;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return -1;
        number = number * 10 + (text.data[i] - '0');
    }
    return number;
}

static bool read_report(struct slice text, enum kernel_kind kind, struct kernel_line *line) {
    pci_address address;
    uint32_t code;
    struct slice value;
    if (!read_place(&text, &address) || !read_code(&text, &code))
        return false;
    line->kind = kind;
    line->address = kind == KERNEL_XID ? pci_device(address) : address;
    line->code = code;
    line->pid = -1;
    line->process = (struct slice){0};
    if (read_value(&text, SLICE("pid="), &value))
        line->pid = process_number(value);
    if (read_value(&text, SLICE("name="), &value) && !slice_equal(value, SLICE("<unknown>")))
        line->process = value;
    line->detail = text;
    return true;
}

// "GPU-" and at least eight hexadecimal digits and dashes.
static bool read_uuid(struct slice text, struct slice *uuid) {
    size_t size = 4;
    if (!starts_with(text, SLICE("GPU-")))
        return false;
    while (size < text.size && size < 64 && text.data[size] != '\0' &&
           strchr("0123456789abcdefABCDEF-", text.data[size]) != NULL)
        size++;
    *uuid = (struct slice){text.data, size};
    return size >= 12;
}

// The first PCI address with a domain among the words.
static bool find_address(struct slice text, pci_address *address) {
    while (text.size > 0) {
        text = skip_blanks(text);
        size_t size = 0;
        while (size < text.size && strchr(" \t\r\n", text.data[size]) == NULL)
            size++;
        struct slice word = {text.data, size};
        while (word.size > 0 && strchr(":,.()", word.data[word.size - 1]) != NULL)
            word.size--;
        while (word.size > 0 && word.data[0] == '(')
            word = rest_from(word, 1);
        if (word.size >= ADDRESS_TEXT_MIN && pci_parse(word, address)) {
            *address = pci_device(*address);
            return true;
        }
        text = rest_from(text, size < text.size ? size + 1 : size);
    }
    return false;
}

// "NVRM: GPU at PCI:0000:91:00: GPU-<uuid>": the address, a colon, the UUID.
static bool read_identity(struct slice text, struct kernel_line *line) {
    size_t at;
    struct slice uuid;
    pci_address address;
    if (!starts_with(text, SLICE("GPU at ")) || !kernel_find(text, SLICE(" GPU-"), &at) ||
        !read_uuid(rest_from(text, at + 1), &uuid) ||
        !find_address((struct slice){text.data + 7, at - 7 + 1}, &address))
        return false;
    line->kind = KERNEL_GPU_UUID;
    line->address = address;
    line->uuid = uuid;
    return true;
}

static enum kernel_xid_parse read_lost(struct slice text, struct kernel_line *line) {
    size_t at;
    if (!kernel_find(text, SLICE("fallen off the bus"), &at)) {
        bool first =
            starts_with(text, SLICE("The NVIDIA GPU ")) && find_address(text, &line->address);
        return first ? KERNEL_XID_FIRST : KERNEL_XID_NONE;
    }
    line->kind = KERNEL_GPU_LOST;
    line->code = 0;
    line->pid = -1;
    line->detail = text;
    line->address = PCI_NONE;
    return find_address(text, &line->address) ? KERNEL_XID_LINE : KERNEL_XID_LAST;
}

enum kernel_xid_parse kernel_xid_parse(struct slice text, struct kernel_line *line) {
    size_t at;
    text = cut_blanks(text);
    if (kernel_find(text, SLICE("NVRM: "), &at)) {
        struct slice said = skip_blanks(rest_from(text, at + 6));
        if (starts_with(said, SLICE("Xid")))
            return read_report(rest_from(said, 3), KERNEL_XID, line) ? KERNEL_XID_LINE
                                                                     : KERNEL_XID_NONE;
        if (read_identity(said, line))
            return KERNEL_XID_LINE;
        return read_lost(said, line);
    }
    if (kernel_find(text, SLICE("nvidia-nvswitch"), &at) &&
        kernel_find(text, SLICE(" SXid"), &at) &&
        read_report(rest_from(text, at + 5), KERNEL_SXID, line))
        return KERNEL_XID_LINE;
    return KERNEL_XID_NONE;
}
