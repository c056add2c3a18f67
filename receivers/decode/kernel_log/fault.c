// SPDX-License-Identifier: Apache-2.0
// Who died stands in front of the word that tells the fault, "name[4711]"; the number is that of
// the thread. O(line), no memory.
#include "receivers/decode/kernel_log/parts.h"

#include <signal.h>

enum { NAME_MAX_SIZE = 15, NUMBER_DIGITS_MAX = 10, SIGNAL_MAX = 64 };

static const char CUT_DETAIL[] = "the line ends before it says where the program was";

// "traps: python3[4711]", with `end` behind it: name and number. A name has at most 15 bytes, so
// that in front of a longer one something else stands, with a colon.
static bool read_thread(struct slice before, struct slice end, struct slice *name, int64_t *pid) {
    struct slice front, rest;
    if (!words_ends(before, end))
        return false;
    before.size -= end.size;
    if (!words_split_pid(before, '[', name, pid))
        return false;
    text_skip(name, SLICE("traps: "));
    if (name->size > NAME_MAX_SIZE && words_find_last(*name, SLICE(": "), &front, &rest))
        *name = rest;
    return name->size > 0 && name->size <= NAME_MAX_SIZE;
}

// "… in libnccl.so.2[7f31a9e00000+c9a4000] …".
static void set_library(struct slice text, struct reading *reading) {
    struct slice library;
    if (!text_find(text, SLICE(" in "), &text))
        return;
    library = text_until(text, '[');
    if (library.size > 0 && library.size < text.size)
        reading_text(reading, FACT_LIBRARY, library);
    else
        reading_yes_no(reading, FACT_TRUNCATED, true);
}

static enum read_result give(enum observation_kind kind, int signal, struct slice name, int64_t pid,
                             struct slice behind, struct reading *reading) {
    reading_begin(reading, kind);
    reading->needs_time = true;
    words_set_process(name, pid, reading);
    if (signal != 0)
        reading_number(reading, FACT_SIGNAL, signal);
    set_library(behind, reading);
    return READ_EVENT;
}

// "7f0000000008 ip 00007f31aa0410c6 sp 00007f2e11ffd9f0 error 4 in …".
enum read_result fault_read_segfault(struct slice before, struct slice behind,
                                     const struct frame *frame, struct reading *reading) {
    struct slice name, error;
    int64_t pid;
    (void)frame;
    if (!read_thread(before, SLICE("]: "), &name, &pid))
        return READ_NOT;
    if (!text_find(behind, SLICE(" error "), &error) || error.size == 0)
        return reading_refuse(reading, DECODE_TRUNCATED, CUT_DETAIL);
    return give(OBSERVATION_SEGFAULT, SIGSEGV, name, pid, error, reading);
}

// "[traps: ]name[4711] … ip:… sp:… error:0 in …"; `behind` from the name of the trap.
static enum read_result read_trap(struct slice before, struct slice behind,
                                  enum observation_kind kind, int signal, struct reading *reading) {
    struct slice name, error;
    int64_t pid;
    if (!read_thread(before, SLICE("] "), &name, &pid))
        return READ_NOT;
    if (!text_find(behind, SLICE(" error:"), &error) || error.size == 0)
        return reading_refuse(reading, DECODE_TRUNCATED, CUT_DETAIL);
    return give(kind, signal, name, pid, error, reading);
}

// Of a process, or of the kernel: ", probably for non-canonical address …", ": 0000 [#1] SMP".
enum read_result fault_read_protection(struct slice before, struct slice behind,
                                       const struct frame *frame, struct reading *reading) {
    text_skip(&behind, SLICE(" fault"));
    if (text_begins(behind, SLICE(", ")) || text_begins(behind, SLICE(": 0")))
        return machine_read_oops(before, behind, frame, reading);
    if (!text_begins(behind, SLICE(" ip:")))
        return READ_NOT;
    return read_trap(before, behind, OBSERVATION_SEGFAULT, SIGSEGV, reading);
}

// "invalid opcode ip:…".
enum read_result fault_read_trap(struct slice before, struct slice behind,
                                 const struct frame *frame, struct reading *reading) {
    static const struct {
        struct slice name;
        int signal;
    } traps[] = {
        {{"divide error", 12}, SIGFPE},  {{"invalid opcode", 14}, SIGILL},
        {{"int3", 4}, SIGTRAP},          {{"alignment check", 15}, SIGBUS},
        {{"stack segment", 13}, SIGBUS}, {{"segment not present", 19}, SIGBUS},
        {{"bounds", 6}, SIGSEGV},        {{"overflow", 8}, SIGSEGV},
        {{"invalid TSS", 11}, SIGSEGV},
    };
    (void)frame;
    int signal = 0;
    if (!words_ends(before, SLICE("] ")))
        return READ_NOT;
    for (size_t i = 0; i < sizeof traps / sizeof *traps; i++)
        if (text_begins(behind, traps[i].name))
            signal = traps[i].signal;
    enum observation_kind kind = signal == SIGSEGV ? OBSERVATION_SEGFAULT : OBSERVATION_TRAP;
    return read_trap(before, behind, kind, signal, reading);
}

// What arm64 calls a fault, and the signal that it makes.
static int signal_of_fault(struct slice text) {
    static const struct {
        struct slice words;
        int signal;
    } faults[] = {{{"translation fault", 17}, SIGSEGV},   {{"permission fault", 16}, SIGSEGV},
                  {{"access flag fault", 17}, SIGSEGV},   {{"address size fault", 18}, SIGSEGV},
                  {{"alignment fault", 15}, SIGBUS},      {{"external abort", 14}, SIGBUS},
                  {{"undefined instruction", 21}, SIGILL}};
    struct slice rest;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        if (text_find(text, faults[i].words, &rest))
            return faults[i].signal;
    return 0;
}

// arm64: "level 2 translation fault (11) at 0x…, esr 0x…, in lib[…]", "exception: DABT (lower EL),
// ESR 0x…, level 3 translation fault in lib[…]".
enum read_result fault_read_unhandled(struct slice before, struct slice behind,
                                      const struct frame *frame, struct reading *reading) {
    struct slice name, fault, rest;
    int64_t pid;
    uint64_t number;
    (void)frame;
    if (!read_thread(before, SLICE("]: "), &name, &pid))
        return READ_NOT;
    int signal = signal_of_fault(behind);
    if (words_find(behind, SLICE(") at "), &fault, &rest) &&
        words_find_last(fault, SLICE("("), &fault, &rest)) {
        rest = text_until(rest, ')');
        if (text_number(rest, 2, &number) && number > 0 && number <= SIGNAL_MAX)
            signal = (int)number;
    }
    if (signal == 0)
        return READ_NOT;
    return give(signal == SIGSEGV ? OBSERVATION_SEGFAULT : OBSERVATION_TRAP, signal, name, pid,
                behind, reading);
}

// systemd-coredump: "4711 (python3) of user 0 dumped core.".
enum read_result fault_read_dumped(struct slice before, struct slice behind,
                                   const struct frame *frame, struct reading *reading) {
    struct slice name, rest;
    uint64_t pid;
    (void)frame;
    if (before.size > 0 || !text_take_number(&behind, 1, NUMBER_DIGITS_MAX, &pid) ||
        !text_skip(&behind, SLICE(" (")) ||
        !words_find_last(behind, SLICE(") of user "), &name, &rest) ||
        !text_find(rest, SLICE(" dumped core"), &rest))
        return READ_NOT;
    reading_begin(reading, OBSERVATION_CORE_DUMPED);
    reading->needs_time = true;
    words_set_process(name, (int64_t)pid, reading);
    return READ_EVENT;
}
