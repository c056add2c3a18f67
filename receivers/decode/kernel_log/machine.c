// SPDX-License-Identifier: Apache-2.0
// Lockups, hung tasks, oopses, panics, machine checks, memory errors. What firmware reports comes
// in lines that carry one number ("{1}[Hardware Error]: …"): they are gathered, and the severity is
// taken from them. O(line), no memory.
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

// -- lockups --------------------------------------------------------------------------------------

// "44 stuck for 22s! [python3:4711]".
enum read_result machine_read_soft_lockup(struct slice before, struct slice behind,
                                          const struct frame *frame, struct reading *reading) {
    struct slice rest, name;
    uint64_t cpu, seconds;
    int64_t pid;
    (void)before;
    (void)frame;
    if (!text_take_number(&behind, 1, NUMBER_DIGITS_MAX, &cpu) ||
        !text_skip(&behind, SLICE(" stuck for ")) ||
        !text_take_number(&behind, 1, NUMBER_DIGITS_MAX, &seconds) ||
        !text_skip(&behind, SLICE("s! [")) || !words_find_last(behind, SLICE("]"), &behind, &rest))
        return cut(reading);
    begin(reading, OBSERVATION_SOFT_LOCKUP);
    set_number(reading, FACT_CPU, cpu);
    set_number(reading, FACT_SECONDS, seconds);
    if (words_split_pid(behind, ':', &name, &pid))
        words_set_process(name, pid, reading);
    return READ_EVENT;
}

// "_sched self-detected stall on CPU", "_preempt detected stalls on CPUs/tasks:".
enum read_result machine_read_stall(struct slice before, struct slice behind,
                                    const struct frame *frame, struct reading *reading) {
    struct slice rest;
    (void)before;
    (void)frame;
    if (!text_find(behind, SLICE(" self-detected stall on CPU"), &rest) &&
        !text_find(behind, SLICE(" detected stalls on CPU"), &rest) &&
        !text_find(behind, SLICE(" detected expedited stalls on CPU"), &rest))
        return READ_NOT;
    begin(reading, OBSERVATION_SOFT_LOCKUP);
    return READ_EVENT;
}

// " on cpu 3".
enum read_result machine_read_hard_lockup(struct slice before, struct slice behind,
                                          const struct frame *frame, struct reading *reading) {
    uint64_t cpu;
    (void)before;
    begin(reading, OBSERVATION_HARD_LOCKUP);
    if (text_skip(&behind, SLICE(" on cpu ")) &&
        text_take_number(&behind, 1, NUMBER_DIGITS_MAX, &cpu) &&
        (behind.size > 0 || !frame->truncated))
        set_number(reading, FACT_CPU, cpu);
    return READ_EVENT;
}

// "python3:4711 blocked for more than 120 seconds."; "blocked in I/O wait for more than".
enum read_result machine_read_hung_task(struct slice before, struct slice behind,
                                        const struct frame *frame, struct reading *reading) {
    struct slice who, rest, name;
    uint64_t seconds;
    int64_t pid;
    (void)before;
    (void)frame;
    if (!words_find(behind, SLICE(" blocked for more than "), &who, &rest) &&
        !words_find(behind, SLICE(" blocked in I/O wait for more than "), &who, &rest))
        return READ_NOT;
    if (!words_split_pid(who, ':', &name, &pid))
        return READ_NOT;
    if (!text_take_number(&rest, 1, NUMBER_DIGITS_MAX, &seconds) ||
        !text_begins(rest, SLICE(" second")))
        return cut(reading);
    begin(reading, OBSERVATION_HUNG_TASK);
    words_set_process(name, pid, reading);
    set_number(reading, FACT_SECONDS, seconds);
    return READ_EVENT;
}

// -- the end of the kernel ------------------------------------------------------------------------

enum read_result machine_read_panic(struct slice before, struct slice behind,
                                    const struct frame *frame, struct reading *reading) {
    struct slice cause = text_trim(text_until(behind, '\n'));
    (void)frame;
    if (words_ends(before, SLICE("end ")))
        return READ_OTHER;
    if (cause.size == 0)
        return cut(reading);
    begin(reading, OBSERVATION_KERNEL_PANIC);
    reading_text(reading, FACT_CAUSE, cause);
    return READ_EVENT;
}

enum read_result machine_read_oops(struct slice before, struct slice behind,
                                   const struct frame *frame, struct reading *reading) {
    (void)before;
    (void)behind;
    (void)frame;
    begin(reading, OBSERVATION_KERNEL_OOPS);
    return READ_EVENT;
}

// "mm/slub.c:4321!".
enum read_result machine_read_bug(struct slice before, struct slice behind,
                                  const struct frame *frame, struct reading *reading) {
    struct slice place = text_until(behind, '!');
    if (place.size == behind.size || memchr(place.data, ':', place.size) == NULL ||
        memchr(place.data, ' ', place.size) != NULL)
        return READ_NOT;
    return machine_read_oops(before, behind, frame, reading);
}

// Behind one of the lines above it is "Oops: 0002 [#1] SMP"; newer kernels begin with "Oops:
// general protection fault, …".
enum read_result machine_read_oops_line(struct slice before, struct slice behind,
                                        const struct frame *frame, struct reading *reading) {
    struct slice rest;
    if (!text_find(behind, SLICE("[#"), &rest) || text_is_digit(*behind.data) ||
        text_begins(behind, SLICE("invalid opcode")))
        return READ_OTHER;
    return machine_read_oops(before, behind, frame, reading);
}

// -- machine checks -------------------------------------------------------------------------------

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

enum read_result machine_read_checks(struct slice before, struct slice behind,
                                     const struct frame *frame, struct reading *reading) {
    struct slice rest;
    (void)behind;
    (void)frame;
    if (!text_find(before, SLICE("[Hardware Error]: "), &rest))
        return READ_NOT;
    begin(reading, OBSERVATION_MACHINE_CHECK);
    return READ_EVENT;
}

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

// -- memory ---------------------------------------------------------------------------------------

// "0: 1 CE memory read error on CPU_SrcID#0_MC#1_Chan#0_DIMM#0 (channel:0 …)".
enum read_result machine_read_edac(struct slice before, struct slice behind,
                                   const struct frame *frame, struct reading *reading) {
    struct slice device, rest;
    uint64_t controller, count;
    (void)before;
    (void)frame;
    if (!text_take_number(&behind, 1, 3, &controller) || !text_skip(&behind, SLICE(": ")) ||
        !text_take_number(&behind, 1, NUMBER_DIGITS_MAX, &count))
        return READ_NOT;
    bool corrected = text_skip(&behind, SLICE(" CE "));
    if (!corrected && !text_skip(&behind, SLICE(" UE ")))
        return READ_NOT;
    begin(reading, OBSERVATION_MEMORY_ERROR);
    reading_yes_no(reading, FACT_CORRECTED, corrected);
    set_number(reading, FACT_COUNT, count);
    if (words_find(behind, SLICE(" ("), &device, &rest) &&
        text_find(device, SLICE(" on "), &device))
        reading_text(reading, FACT_DEVICE, device);
    return READ_EVENT;
}

// "0x1234: recovery action for dirty LRU page: Recovered".
enum read_result machine_read_page(struct slice before, struct slice behind,
                                   const struct frame *frame, struct reading *reading) {
    static const struct slice states[] = {
        {"Recovered", 9}, {"Failed", 6}, {"Ignored", 7}, {"Delayed", 7}};
    struct slice action, state, rest;
    (void)before;
    (void)frame;
    if (!text_find(behind, SLICE(": recovery action for "), &action))
        return READ_NOT;
    begin(reading, OBSERVATION_MEMORY_ERROR);
    reading_yes_no(reading, FACT_CORRECTED, false);
    if (!words_find_last(action, SLICE(": "), &rest, &state))
        return READ_EVENT;
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if (text_begins(state, states[i]))
            reading_text(reading, FACT_STATE, states[i]);
    return READ_EVENT;
}
