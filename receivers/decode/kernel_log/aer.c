// SPDX-License-Identifier: Apache-2.0
// Reads what a kernel line says of a PCI Express error.
//
// Such lines begin with "<driver> <address>: ", mostly followed by "AER: " or "DPC: ". Each wording
// is told by how it goes on. One pass over the line, no memory.
#include "receivers/decode/kernel_log/aer.h"

#include "base/text/cut.h"

#include <strings.h>

static int hex_digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// One to eight hexadecimal digits, after "0x" or not.
static bool read_hex(struct slice *text, uint32_t *value) {
    struct slice at = *text;
    text_skip(&at, SLICE("0x"));
    unsigned digits = 0;
    *value = 0;
    for (; at.size > 0 && hex_digit(*at.data) >= 0 && digits < 8; digits++) {
        *value = *value << 4 | (unsigned)hex_digit(*at.data);
        at = text_from(at, 1);
    }
    if (digits == 0 || (at.size > 0 && hex_digit(*at.data) >= 0))
        return false;
    *text = at;
    return true;
}

// "Corrected", "Correctable", "Uncorrected (Non-Fatal)", "Uncorrectable (Fatal)".
static enum aer_severity read_severity(struct slice *text) {
    if (text_skip(text, SLICE("Corrected")) || text_skip(text, SLICE("Correctable")))
        return AER_CORRECTABLE;
    if (!text_skip(text, SLICE("Uncorrected")) && !text_skip(text, SLICE("Uncorrectable")))
        return AER_SEVERITY_UNKNOWN;
    text_skip(text, SLICE(" "));
    if (text_skip(text, SLICE("(Non-Fatal)")))
        return AER_NONFATAL;
    return text_skip(text, SLICE("(Fatal)")) ? AER_FATAL : AER_SEVERITY_UNKNOWN;
}

// An address up to a space or the end; of 16 bits (bus, slot, function) after "id=", in the domain
// of `port`.
static pci_address read_sender(struct slice text, pci_address port) {
    uint32_t id;
    pci_address address;
    if (text_skip(&text, SLICE("id="))) {
        if (!read_hex(&text, &id) || id > 0xffff)
            return PCI_NONE;
        return (port == PCI_NONE ? 0 : port & ~UINT64_C(0xffff)) | id;
    }
    struct slice word = text_until(text_until(text, ' '), ',');
    return pci_parse(word, &address) ? address : PCI_NONE;
}

// "[Multiple ]<severity> error received: <sender>", "… error message received from <sender>".
static bool parse_port(struct slice text, struct kernel_line *line) {
    line->multiple = text_skip(&text, SLICE("Multiple "));
    line->severity = read_severity(&text);
    if (line->severity == AER_SEVERITY_UNKNOWN)
        return false;
    if (!text_skip(&text, SLICE(" error message received from ")) &&
        !text_skip(&text, SLICE(" error received: ")) &&
        !text_skip(&text, SLICE(" error received from ")))
        return false;
    line->aer = AER_PORT;
    line->port = line->address;
    line->address = read_sender(text, line->port);
    return true;
}

// "PCIe Bus Error: severity=<severity>, type=<layer>, (<agent>)", with id= in it until 4.17.
static bool parse_error(struct slice text, struct kernel_line *line) {
    if (!text_skip(&text, SLICE("PCIe Bus Error: severity=")))
        return false;
    line->aer = AER_ERROR;
    line->severity = read_severity(&text);
    struct slice layer;
    if (text_find(text, SLICE("type="), &layer))
        line->layer = text_until(layer, ',');
    return true;
}

// What firmware handed on: "aer_status: 0x…, aer_mask: 0x…", "aer_layer=…, aer_agent=…".
static bool parse_firmware(struct slice text, struct kernel_line *line) {
    if (text_skip(&text, SLICE("aer_status: "))) {
        line->aer = AER_STATUS;
        if (!read_hex(&text, &line->status))
            return false;
        return !text_find(text, SLICE("aer_mask: "), &text) || read_hex(&text, &line->mask);
    }
    if (text_skip(&text, SLICE("aer_layer="))) {
        line->aer = AER_ERROR;
        line->layer = text_until(text, ',');
        return true;
    }
    line->aer = AER_FATAL_BITS;
    return text_skip(&text, SLICE("aer_uncor_severity: ")) && read_hex(&text, &line->status);
}

// "device [vvvv:dddd] error status/mask=xxxxxxxx/xxxxxxxx".
static bool parse_status(struct slice text, struct kernel_line *line) {
    uint32_t vendor, device;
    if (!text_skip(&text, SLICE("device [")) || !read_hex(&text, &vendor) ||
        !text_skip(&text, SLICE(":")) || !read_hex(&text, &device) || vendor > UINT16_MAX ||
        device > UINT16_MAX)
        return false;
    if (!text_find(text, SLICE("error status/mask="), &text) || !read_hex(&text, &line->status) ||
        !text_skip(&text, SLICE("/")) || !read_hex(&text, &line->mask))
        return false;
    line->aer = AER_STATUS;
    line->vendor = (uint16_t)vendor;
    line->device = (uint16_t)device;
    return true;
}

// "[ 0] RxErr                  (First)": the name ends where two spaces or "(First)" follow.
static bool parse_bit(struct slice text, struct kernel_line *line) {
    if (!text_skip(&text, SLICE("[")))
        return false;
    text_skip_blanks(&text);
    uint64_t bit;
    if (!text_take_number(&text, 1, 2, &bit) || bit > 31 || !text_skip(&text, SLICE("]")))
        return false;
    text_skip_blanks(&text);
    struct slice behind;
    if (text_find(text, SLICE("(First)"), &behind))
        text.size = (size_t)(behind.data - text.data) - strlen("(First)");
    if (text_find(text, SLICE("  "), &behind))
        text.size = (size_t)(behind.data - text.data) - 2;
    while (text.size > 0 && text.data[text.size - 1] == ' ')
        text.size--;
    if (text.size == 0)
        return false;
    line->aer = AER_BIT;
    line->bit = (int)bit;
    line->detail = text;
    return true;
}

// "containment event, status:0x1f05 source:0x9b00", "…, ERR_FATAL received from 0000:9b:00.0", and
// without a sender when the port itself saw it. Bits 1 and 2 of the status: who asked for it.
static bool parse_dpc(struct slice text, struct kernel_line *line) {
    uint32_t status, source;
    struct slice behind;
    if (!text_skip(&text, SLICE("containment event")))
        return false;
    line->aer = AER_DPC;
    line->port = line->address;
    line->address = PCI_NONE;
    if (text_find(text, SLICE("status:"), &behind) && read_hex(&behind, &status)) {
        static const enum aer_severity REASON[4] = {AER_FATAL, AER_NONFATAL, AER_FATAL,
                                                    AER_SEVERITY_UNKNOWN};
        line->severity = REASON[status >> 1 & 3];
    }
    if (text_find(text, SLICE("received from "), &behind))
        line->address = read_sender(behind, line->port);
    else if (text_find(text, SLICE("source:"), &behind) && read_hex(&behind, &source) &&
             source != 0 && source <= 0xffff && line->severity != AER_SEVERITY_UNKNOWN)
        line->address = (line->port & ~UINT64_C(0xffff)) | source;
    if (line->address == PCI_NONE && line->severity != AER_SEVERITY_UNKNOWN)
        line->address = line->port;
    return true;
}

static bool skip_folded(struct slice *text, struct slice start) {
    if (text->size < start.size || strncasecmp(text->data, start.data, start.size) != 0)
        return false;
    *text = text_from(*text, start.size);
    return true;
}

static bool parse_recovery(struct slice text, bool marked, struct kernel_line *line) {
    struct slice rest = text;
    if (skip_folded(&rest, SLICE("device recovery "))) {
        line->aer = AER_RECOVERED;
        if (text_skip(&rest, SLICE("successful")))
            return true;
        line->aer = AER_FAILED;
        return text_skip(&rest, SLICE("failed"));
    }
    line->aer = AER_FAILED;
    if (marked && (text_skip(&rest, SLICE("can't recover")) ||
                   text_skip(&rest, SLICE("subordinate device reset failed"))))
        return true;
    line->aer = AER_RECOVERED;
    if (text_skip(&rest, SLICE("AER driver successfully recovered")))
        return true;
    line->aer = AER_LINK_RESET;
    if (!text_skip(&rest, SLICE("Root Port link has been reset")) &&
        !text_skip(&rest, SLICE("Downstream Port link has been reset")))
        return false;
    // The number behind it is the result of the reset; other than 0 it failed.
    struct slice code;
    if (text_skip(&rest, SLICE(" (")) && (code = text_until(rest, ')')).size > 0 &&
        !slice_equal(code, SLICE("0")))
        line->aer = AER_FAILED;
    return true;
}

// "aer_isr_one_error: 184 callbacks suppressed".
static bool parse_suppressed(struct slice text, struct kernel_line *line) {
    struct slice function = text_until(text, ':'), behind;
    if (function.size == text.size || !text_find(function, SLICE("aer"), &behind) ||
        memchr(function.data, ' ', function.size) != NULL ||
        !text_find(text, SLICE(" callbacks suppressed"), &behind))
        return false;
    line->aer = AER_SUPPRESSED;
    return true;
}

// "<driver> <address>: ", of which neither is there in every line.
static void read_prefix(struct slice *text, struct kernel_line *line) {
    struct slice driver = text_until(*text, ' ');
    if (driver.size == text->size)
        return;
    struct slice rest = text_from(*text, driver.size + 1);
    struct slice word = text_until(rest, ' ');
    pci_address address;
    if (word.size == 0 || word.data[word.size - 1] != ':' ||
        !pci_parse((struct slice){word.data, word.size - 1}, &address))
        return;
    line->driver = driver;
    line->address = address;
    *text = text_from(rest, word.size);
}

static bool parse_line(struct slice text, struct kernel_line *line) {
    text_skip_blanks(&text);
    read_prefix(&text, line);
    text_skip_blanks(&text);
    if (parse_suppressed(text, line))
        return true;
    // All others speak of a device.
    if (line->address == PCI_NONE)
        return false;
    if (text_skip(&text, SLICE("DPC: ")))
        return parse_dpc(text, line);
    bool marked = text_skip(&text, SLICE("AER:"));
    text_skip_blanks(&text);
    if (parse_error(text, line) || parse_status(text, line) || parse_firmware(text, line) ||
        parse_bit(text, line))
        return true;
    line->aer = AER_HEADER;
    if (text_begins(text, SLICE("TLP Header")))
        return true;
    return (marked && parse_port(text, line)) || parse_recovery(text, marked, line);
}

bool kernel_aer_parse(struct slice text, struct kernel_line *line) {
    struct kernel_line found = *line;
    found.kind = KERNEL_AER;
    found.address = found.port = PCI_NONE;
    found.severity = AER_SEVERITY_UNKNOWN;
    found.multiple = false;
    found.status = found.mask = 0;
    found.vendor = found.device = 0;
    found.bit = -1;
    found.layer = found.driver = found.detail = (struct slice){NULL, 0};
    if (text.size == 0 || !parse_line(text, &found))
        return false;
    *line = found;
    return true;
}
