// SPDX-License-Identifier: Apache-2.0
// Banks of AMD's check architecture, whose bits say what became of an error. All else that is said
// of AMD's GPUs is rows. O(line), no memory.
#include "receivers/decode/kernel_log/parts.h"

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
    reading_begin(reading, OBSERVATION_GPU_HARDWARE_ERROR);
    reading->needs_time = true;
    reading_text(reading, FACT_VENDOR, SLICE("amd"));
    reading_address(reading, FACT_GPU, pci_device(gpu));
    return READ_EVENT;
}

// "0000:9e:00.0: {7}[Hardware Error]: …", "0000:9e:00.0: amdgpu: {9}[Hardware Error]: …".
enum read_result amdgpu_read_bank(struct slice before, struct slice behind,
                                  const struct frame *frame, struct reading *reading) {
    struct slice address;
    pci_address gpu;
    (void)before;
    (void)frame;
    if (!words_find(behind, SLICE(": "), &address, &behind) || !pci_parse(address, &gpu) ||
        !text_find(behind, SLICE("[Hardware Error]: "), &behind))
        return READ_NOT;
    bool is_bank = text_begins(behind, SLICE("ACA[")) || text_begins(behind, SLICE("aca entry["));
    if (is_bank && text_find(behind, SLICE("].STATUS=0x"), &behind))
        return read_bank(behind, gpu, reading);
    return READ_OTHER;
}
