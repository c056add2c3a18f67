// SPDX-License-Identifier: Apache-2.0
// GPUs of AMD: what the driver says, "amdgpu <address>: [amdgpu: ]…", and what ROCm's runtime
// writes before it ends a process. "node-5" is a node of ROCm's topology, neither a GPU's index nor
// a host. O(line), no memory.
#include "receivers/decode/kernel_log/parts.h"

enum { NUMBER_DIGITS_MAX = 10 };

static void begin(enum observation_kind kind, pci_address gpu, struct reading *reading) {
    reading_begin(reading, kind);
    reading->needs_time = true;
    reading_text(reading, FACT_VENDOR, SLICE("amd"));
    if (gpu != PCI_NONE)
        reading_address(reading, FACT_GPU, gpu);
}

// "ring sdma1 timeout, signaled seq=411, emitted seq=413"; one that recovered by itself is none.
// Since 6.13 "Ring gfx_0.0.0 reset succeeded" may follow: the GPU is well, and only the program
// that hung has lost its work.
static enum read_result read_ring(struct slice text, pci_address gpu, struct reading *reading) {
    struct slice rest;
    if (!text_find(text, SLICE(" timeout, signaled seq="), &rest))
        return READ_NOT;
    begin(OBSERVATION_GPU_HANG, gpu, reading);
    return READ_EVENT;
}

// "gfx_0.0.0 reset succeeded": what hung there is over.
static enum read_result read_ring_reset(struct slice text, pci_address gpu,
                                        struct reading *reading) {
    if (!words_ends(text_trim(text), SLICE(" reset succeeded")))
        return READ_OTHER;
    begin(OBSERVATION_GPU_HANG, gpu, reading);
    reading_text(reading, FACT_STATE, SLICE("end"));
    return READ_EVENT;
}

// " begin!", " begin!. Source:  1", " succeeded, trying to resume", "(2) succeeded!", "(2) failed",
// " end with ret = -62".
static enum read_result read_reset(struct slice text, pci_address gpu, struct reading *reading) {
    struct slice rest, state, code = {NULL, 0};
    if (text_begins(text, SLICE(" begin!")))
        state = SLICE("begin");
    else if (text_find(text, SLICE(" succeeded"), &rest))
        state = SLICE("end");
    else if (text_find(text, SLICE(" end with ret = "), &rest)) {
        state = SLICE("end");
        code = text_until_any(rest, " ,.!\r\n");
    } else if (text_begins(text, SLICE("(")) && text_find(text, SLICE(") failed"), &rest))
        state = SLICE("failed");
    else
        return READ_NOT;
    begin(OBSERVATION_GPU_RESET, gpu, reading);
    reading_text(reading, FACT_STATE, state);
    if (code.size > 0)
        reading_text(reading, FACT_CODE, code);
    return READ_EVENT;
}

// "uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) detected!".
static enum read_result read_event(struct slice text, pci_address gpu, struct reading *reading) {
    struct slice code, rest;
    if (!words_find(text, SLICE(")"), &code, &rest))
        return reading_refuse(reading, DECODE_TRUNCATED, "the line ends inside the error's name");
    begin(OBSERVATION_GPU_HARDWARE_ERROR, gpu, reading);
    reading_text(reading, FACT_CODE, code);
    return READ_EVENT;
}

// "socket: 0 4 uncorrectable hardware errors detected in gfx block", "4 new uncorrectable …". A
// sum, "… detected in total in gfx block", tells of no new error.
static enum read_result read_count(struct slice before, struct slice behind, pci_address gpu,
                                   struct reading *reading) {
    struct slice rest, number, unit;
    uint64_t count;
    unit = text_until(behind, ' ');
    if (unit.size == behind.size)
        return reading_refuse(reading, DECODE_TRUNCATED, "the line ends before the block's name");
    if (slice_equal(unit, SLICE("total")))
        return READ_OTHER;
    if (words_ends(before, SLICE(" new")))
        before.size -= 4;
    number = before;
    words_find_last(before, SLICE(" "), &rest, &number);
    if (!text_number(number, NUMBER_DIGITS_MAX, &count) || count == 0)
        return READ_OTHER;
    begin(OBSERVATION_GPU_HARDWARE_ERROR, gpu, reading);
    reading_number(reading, FACT_COUNT, (int64_t)count);
    reading_text(reading, FACT_UNIT, unit);
    return READ_EVENT;
}

// Bits of a bank's STATUS. Its banner, "Accelerator Check Architecture events logged", says only
// that banks were read. Source: Linux drivers/gpu/drm/amd/amdgpu/umc_v12_0.c, whose order this is.
#define ACA_VALID       (UINT64_C(1) << 63)
#define ACA_UNCORRECTED (UINT64_C(1) << 61 | UINT64_C(1) << 57 | UINT64_C(1) << 55)
#define ACA_DEFERRED    (UINT64_C(1) << 44)

static bool read_hex(struct slice text, uint64_t *number) {
    enum { DIGITS_MAX = 16 };
    static const char known[] = "0123456789abcdef";
    size_t digits = 0;
    *number = 0;
    for (; digits < text.size && digits < DIGITS_MAX; digits++) {
        const char *digit = memchr(known, text.data[digits] | 0x20, sizeof known - 1);
        if (digit == NULL)
            break;
        *number = *number << 4 | (uint64_t)(digit - known);
    }
    return digits == DIGITS_MAX;
}

// "{1}[Hardware Error]: ACA[01/08].STATUS=0xb000000000000137", "aca entry[00].STATUS=0x…": what was
// corrected is no error, and what was deferred nobody has used yet.
static enum read_result read_bank(struct slice status, pci_address gpu, struct reading *reading) {
    uint64_t bits = 0;
    if (!read_hex(status, &bits))
        return reading_refuse(reading, DECODE_TRUNCATED, "the line ends inside the status");
    if ((bits & ACA_VALID) == 0 || (bits & ACA_DEFERRED) != 0 || (bits & ACA_UNCORRECTED) == 0)
        return READ_OTHER;
    begin(OBSERVATION_GPU_HARDWARE_ERROR, gpu, reading);
    return READ_EVENT;
}

static enum read_result read_hardware(struct slice text, pci_address gpu, struct reading *reading) {
    struct slice before, behind;
    if (text_find(text, SLICE("uncorrectable hardware error("), &behind))
        return read_event(behind, gpu, reading);
    if (words_find(text, SLICE(" uncorrectable hardware errors detected in "), &before, &behind))
        return read_count(before, behind, gpu, reading);
    if (!text_find(text, SLICE("[Hardware Error]: "), &behind))
        return READ_NOT;
    bool is_bank = text_begins(behind, SLICE("ACA[")) || text_begins(behind, SLICE("aca entry["));
    if (is_bank && text_find(behind, SLICE("].STATUS=0x"), &behind))
        return read_bank(behind, gpu, reading);
    return READ_OTHER;
}

enum read_result amdgpu_read_driver(struct slice before, struct slice behind,
                                    const struct frame *frame, struct reading *reading) {
    struct slice address;
    pci_address gpu;
    (void)before;
    (void)frame;
    if (!words_find(behind, SLICE(": "), &address, &behind) || !pci_parse(address, &gpu))
        return READ_NOT;
    gpu = pci_device(gpu);
    text_skip(&behind, SLICE("amdgpu: "));
    if (text_begins(behind, SLICE("ring ")))
        return read_ring(behind, gpu, reading);
    if (text_skip(&behind, SLICE("Ring ")))
        return read_ring_reset(behind, gpu, reading);
    if (text_skip(&behind, SLICE("GPU reset")))
        return read_reset(behind, gpu, reading);
    return read_hardware(behind, gpu, reading);
}

// Older kernels: "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx timeout, signaled seq=…".
enum read_result amdgpu_read_timeout(struct slice before, struct slice behind,
                                     const struct frame *frame, struct reading *reading) {
    (void)before;
    (void)frame;
    return read_ring(behind, PCI_NONE, reading);
}

// -- what the runtime writes ----------------------------------------------------------------------

// "5 (Agent handle: …".
static bool read_node(struct slice text, uint64_t *node) {
    return text_take_number(&text, 1, NUMBER_DIGITS_MAX, node) && text_begins(text, SLICE(" ("));
}

// "5 (Agent handle: 0x…) reason :GPU Hang".
enum read_result amdgpu_read_exception(struct slice before, struct slice behind,
                                       const struct frame *frame, struct reading *reading) {
    struct slice reason;
    uint64_t node;
    (void)before;
    (void)frame;
    if (!read_node(behind, &node))
        return READ_NOT;
    if (!text_find(behind, SLICE("reason :"), &reason) || text_trim(reason).size == 0)
        return reading_refuse(reading, DECODE_TRUNCATED, "the line ends before the reason");
    begin(OBSERVATION_GPU_HANG, PCI_NONE, reading);
    reading->needs_time = false;
    reading_number(reading, FACT_NODE_OF_TOPOLOGY, (int64_t)node);
    reading_text(reading, FACT_REASON, text_trim(reason));
    return READ_EVENT;
}

// "3 (Agent handle: 0x…) on address 0x…. Reason: Unknown.".
enum read_result amdgpu_read_access(struct slice before, struct slice behind,
                                    const struct frame *frame, struct reading *reading) {
    uint64_t node;
    (void)before;
    (void)frame;
    if (!read_node(behind, &node))
        return READ_NOT;
    begin(OBSERVATION_CUDA_ERROR, PCI_NONE, reading);
    reading->needs_time = false;
    reading_number(reading, FACT_NODE_OF_TOPOLOGY, (int64_t)node);
    reading_text(reading, FACT_ERROR, SLICE("Memory access fault"));
    return READ_EVENT;
}
