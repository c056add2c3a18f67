// SPDX-License-Identifier: Apache-2.0
// What the fabric manager writes of an NVSwitch is the SXid of the kernel's log once more, in a log
// of its own. O(line); the line is copied into the arena.
#include "receivers/decode/kernel_log/nvidia.h"
#include "receivers/decode/kernel_log/parts.h"

enum { CODE_DIGITS_MAX = 6, PORT_DIGITS_MAX = 4 };

// "[non-]fatal error 24007 on fid 0 on NVSwitch pci bus id 00000000:C1:00.0 physical id 2 port 41".
static bool parse(struct slice text, struct kernel_line *line) {
    struct slice place, address;
    uint64_t code, port;
    line->kind = KERNEL_SXID;
    line->fatal = text_skip(&text, SLICE("non-")) ? KERNEL_FATAL_NO : KERNEL_FATAL_YES;
    if (!text_skip(&text, SLICE("fatal error ")) ||
        !text_take_number(&text, 1, CODE_DIGITS_MAX, &code) || code == 0 ||
        !text_begins(text, SLICE(" ")))
        return false;
    line->code = (uint32_t)code;
    line->detail = text_from(text, 1);
    if (!text_find(text, SLICE("pci bus id "), &place))
        return false;
    address = text_until(place, ' ');
    if (address.size == place.size || !pci_parse(address, &line->address))
        return false;
    if (text_find(place, SLICE(" port "), &place) &&
        text_take_number(&place, 1, PORT_DIGITS_MAX, &port))
        line->link = (int32_t)port;
    return true;
}

enum read_result nvswitch_read_manager(struct slice before, struct slice behind,
                                       const struct frame *frame, struct reading *reading) {
    struct kernel_line line = KERNEL_LINE_EMPTY;
    size_t at = before.size + sizeof "detected NVSwitch " - 1;
    if (!text_begins(behind, SLICE("fatal error ")) &&
        !text_begins(behind, SLICE("non-fatal error ")))
        return READ_NOT;
    struct slice text =
        nvidia_own_text((struct slice){before.data, at + behind.size}, reading->arena);
    if (!parse(text_from(text, at), &line))
        return reading_refuse(reading, DECODE_TRUNCATED,
                              "the line ends before it says which switch it is about");
    return nvidia_give(&line, text, frame, reading);
}
