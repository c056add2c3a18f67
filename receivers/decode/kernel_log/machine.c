// SPDX-License-Identifier: Apache-2.0
// Machine checks. Of one that the processor reports the bits of its status say whether it was
// corrected. What firmware reports comes in lines that carry one number ("{1}[Hardware Error]: …"):
// they are gathered, and the severity is taken from them. O(line), no memory.
#include "receivers/decode/kernel_log/parts.h"

enum { NUMBER_DIGITS_MAX = 10, STATUS_DIGITS = 16 };

static enum read_result cut(struct reading *reading) {
    return reading_refuse(reading, DECODE_TRUNCATED, "the line ends before it says all");
}

static void begin(struct reading *reading, enum observation_kind kind) {
    reading_begin(reading, kind);
    reading->needs_time = true;
}

static void set_number(struct reading *reading, enum fact_key key, uint64_t number) {
    reading_number(reading, key, (int64_t)number);
}

// -- what the processor reports
// --------------------------------------------------------------------

// "[Hardware Error]: CPU 4: Machine Check: " "0 Bank 5: be00000000800400". Bit 61 of the status:
// the error was not corrected (Intel's manual, volume 3, "Machine-Check Architecture").
enum read_result machine_read_check(struct slice before, struct slice behind,
                                    const struct frame *frame, struct reading *reading) {
    struct slice rest, number, status;
    uint64_t cpu;
    (void)frame;
    if (!words_ends(before, SLICE(": ")))
        return READ_NOT;
    before.size -= 2;
    if (!words_find_last(before, SLICE("CPU "), &rest, &number) ||
        !text_number(number, NUMBER_DIGITS_MAX, &cpu))
        return READ_NOT;
    begin(reading, OBSERVATION_MACHINE_CHECK);
    set_number(reading, FACT_CPU, cpu);
    if (!text_find(behind, SLICE("Bank "), &rest) || !text_find(rest, SLICE(": "), &status) ||
        text_until_any(status, " ,\r\n").size != STATUS_DIGITS)
        return READ_EVENT;
    const char *digit = memchr("0123456789abcdef", *status.data, 16);
    if (digit != NULL)
        reading_yes_no(reading, FACT_CORRECTED, strchr("2367abef", *digit) == NULL);
    return READ_EVENT;
}

// -- what firmware reports
// -------------------------------------------------------------------------

static const struct slice HARDWARE = {"[Hardware Error]: ", 18};

// "{1}" of "{1}[Hardware Error]: …"; empty: none.
static struct slice number_of_report(struct slice message) {
    struct slice text = message;
    uint64_t number;
    if (!text_skip_char(&text, '{') || !text_take_number(&text, 1, NUMBER_DIGITS_MAX, &number) ||
        !text_skip_char(&text, '}') || !text_begins(text, HARDWARE))
        return (struct slice){NULL, 0};
    return (struct slice){message.data, message.size - text.size};
}

static bool has_severity(struct slice text, struct slice *severity) {
    struct slice behind;
    if (!text_find(text, SLICE("event severity: "), &behind))
        return false;
    *severity = text_until_any(behind, "\r\n ");
    // At the end of the text it may be cut.
    static const struct slice words[] = {
        {"fatal", 5}, {"recoverable", 11}, {"corrected", 9}, {"info", 4}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (slice_equal(*severity, words[i]))
            return true;
    return false;
}

static enum read_result read_hardware(const struct frame *frame, struct slice message,
                                      struct reading *reading) {
    struct slice number = number_of_report(message), severity, rest;
    (void)frame;
    if (number.size == 0)
        return READ_NOT;
    if (text_find(message, SLICE("Generic Hardware Error Source"), &rest))
        return READ_BEGIN;
    // The first line is missing where a log was cut at its front.
    if (!has_severity(message, &severity))
        return READ_OTHER;
    begin(reading, OBSERVATION_MACHINE_CHECK);
    reading_text(reading, FACT_SEVERITY, severity);
    return READ_EVENT;
}

static enum block_step more_of_hardware(struct slice so_far, uint32_t count,
                                        const struct frame *frame, struct slice message) {
    struct slice begun = number_of_report(so_far), number = number_of_report(message), rest;
    (void)count;
    (void)frame;
    if (number.size == 0)
        return BLOCK_PASS;
    bool again = text_find(message, SLICE("Generic Hardware Error Source"), &rest);
    return slice_equal(begun, number) && !again ? BLOCK_TAKE : BLOCK_OVER;
}

// Of a section about PCI Express: "device_id: 0000:3b:00.0", and some lines on "vendor_id: 0x10de,
// device_id: 0x20b5", which firmware says and the kernel's own lines about it do not.
static void read_pci_device(struct slice text, struct reading *reading) {
    static const struct slice SECTION = {"section_type: ", 14};
    struct slice rest, vendor;
    pci_address address;
    if (!text_find(text, SECTION, &text))
        return;
    if (text_find(text, SECTION, &rest))
        text.size = (size_t)(rest.data - text.data) - SECTION.size;
    if (!text_begins(text, SLICE("PCIe error")) || !text_find(text, SLICE("device_id: "), &text) ||
        !pci_parse(text_until_any(text, "\r\n "), &address))
        return;
    reading_address(reading, FACT_PCI, address);
    // With the comma behind it: at the end of the text it may be cut.
    if (text_find(text, SLICE("vendor_id: "), &rest) && text_begins(rest, SLICE("0x")) &&
        (vendor = text_until(rest, ',')).size < rest.size)
        reading_text(reading, FACT_VENDOR, vendor);
}

static enum read_result finish_hardware(struct slice text, bool is_cut, const struct frame *frame,
                                        struct reading *reading) {
    struct slice severity;
    (void)frame;
    bool said = has_severity(text, &severity);
    if (!said && is_cut)
        return cut(reading);
    begin(reading, OBSERVATION_MACHINE_CHECK);
    if (said)
        reading_text(reading, FACT_SEVERITY, severity);
    read_pci_device(text, reading);
    return READ_EVENT;
}

const struct line_reader READER_HARDWARE_ERROR = {.name = "hardware_error",
                                                  .read = read_hardware,
                                                  .more = more_of_hardware,
                                                  .finish = finish_hardware};
