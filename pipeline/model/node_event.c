// SPDX-License-Identifier: Apache-2.0
// How is a PCI address written, and what is a GPU field called?
#include "pipeline/model/node_event.h"

#include <assert.h>
#include <stdio.h>

// Hexadecimal digits at *at, at most `max`; their number.
static unsigned read_hex(struct slice text, size_t *at, unsigned max, uint64_t *value) {
    unsigned digits = 0;
    *value = 0;
    for (; *at < text.size && digits < max; ++*at, digits++) {
        char c = text.data[*at];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            break;
        *value = *value << 4 | (unsigned)digit;
    }
    return digits;
}

static bool read_char(struct slice text, size_t *at, char wanted) {
    if (*at >= text.size || text.data[*at] != wanted)
        return false;
    ++*at;
    return true;
}

bool pci_parse(struct slice text, pci_address *address) {
    uint64_t part[3], function = 0;
    unsigned digits[3], count = 0;
    size_t at = text.size >= 4 && memcmp(text.data, "PCI:", 4) == 0 ? 4 : 0;
    do {
        digits[count] = read_hex(text, &at, count == 0 ? 8 : 2, &part[count]);
        count++;
    } while (count < 3 && read_char(text, &at, ':'));
    // Without a domain: bus and device.
    uint64_t domain = count == 3 ? part[0] : 0;
    if (count < 2 || digits[0] == 0 || digits[count - 2] != 2 || digits[count - 1] != 2)
        return false;
    if (read_char(text, &at, '.') && read_hex(text, &at, 1, &function) != 1)
        return false;
    if (at != text.size || part[count - 1] > 0x1f || function > 7)
        return false;
    *address = domain << 16 | part[count - 2] << 8 | part[count - 1] << 3 | function;
    return true;
}

void pci_format_device(pci_address address, char out[PCI_TEXT_MAX]) {
    snprintf(out, PCI_TEXT_MAX, "%04x:%02x:%02x", (unsigned)(address >> 16),
             (unsigned)(address >> 8 & 0xff), (unsigned)(address >> 3 & 0x1f));
}

void pci_format_function(pci_address address, char out[PCI_TEXT_MAX]) {
    snprintf(out, PCI_TEXT_MAX, "%04x:%02x:%02x.%u", (unsigned)(address >> 16),
             (unsigned)(address >> 8 & 0xff), (unsigned)(address >> 3 & 0x1f),
             (unsigned)(address & 7));
}

const char *gpu_field_name(enum gpu_field field) {
    // Source: NVIDIA DCGM, dcgm_fields.h.
    static const char *const NAMES[GPU_FIELD_COUNT] = {
        [GPU_XID] = "DCGM_FI_DEV_XID_ERRORS",
        [GPU_CLOCK_REASONS] = "DCGM_FI_DEV_CLOCKS_EVENT_REASONS",
        [GPU_TEMPERATURE_C] = "DCGM_FI_DEV_GPU_TEMP",
        [GPU_MEMORY_TEMPERATURE_C] = "DCGM_FI_DEV_MEMORY_TEMP",
        [GPU_TEMPERATURE_MARGIN_C] = "DCGM_FI_DEV_GPU_TEMP_LIMIT",
        [GPU_SLOWDOWN_TEMPERATURE_C] = "DCGM_FI_DEV_SLOWDOWN_TEMP",
        [GPU_SHUTDOWN_TEMPERATURE_C] = "DCGM_FI_DEV_SHUTDOWN_TEMP",
        [GPU_MEMORY_MAX_TEMPERATURE_C] = "DCGM_FI_DEV_MEM_MAX_OP_TEMP",
        [GPU_POWER_VIOLATION_NS] = "DCGM_FI_DEV_POWER_VIOLATION",
        [GPU_THERMAL_VIOLATION_NS] = "DCGM_FI_DEV_THERMAL_VIOLATION",
        [GPU_SW_POWER_CAP_NS] = "DCGM_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP_NS",
        [GPU_SYNC_BOOST_NS] = "DCGM_FI_DEV_CLOCKS_EVENT_REASON_SYNC_BOOST_NS",
        [GPU_SW_THERMAL_NS] = "DCGM_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN_NS",
        [GPU_HW_THERMAL_NS] = "DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS",
        [GPU_HW_POWER_BRAKE_NS] = "DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN_NS",
        [GPU_ECC_CORRECTED_VOLATILE] = "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL",
        [GPU_ECC_UNCORRECTED_VOLATILE] = "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
        [GPU_ECC_CORRECTED_LIFETIME] = "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL",
        [GPU_ECC_UNCORRECTED_LIFETIME] = "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL",
        [GPU_REMAP_UNCORRECTABLE] = "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
        [GPU_REMAP_CORRECTABLE] = "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS",
        [GPU_REMAP_FAILED] = "DCGM_FI_DEV_ROW_REMAP_FAILURE",
        [GPU_REMAP_PENDING] = "DCGM_FI_DEV_ROW_REMAP_PENDING",
        [GPU_RETIRED_CORRECTED] = "DCGM_FI_DEV_RETIRED_SBE",
        [GPU_RETIRED_UNCORRECTED] = "DCGM_FI_DEV_RETIRED_DBE",
        [GPU_RETIRED_PENDING] = "DCGM_FI_DEV_RETIRED_PENDING",
        [GPU_BANKS_MAX] = "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_MAX",
        [GPU_BANKS_HIGH] = "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_HIGH",
        [GPU_BANKS_PARTIAL] = "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_PARTIAL",
        [GPU_BANKS_LOW] = "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_LOW",
        [GPU_BANKS_NONE] = "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_NONE",
        [GPU_SRAM_EXCEEDED] = "DCGM_FI_DEV_THRESHOLD_SRM",
        [GPU_PCIE_REPLAYS] = "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
        [GPU_PCIE_CORRECTABLE] = "DCGM_FI_DEV_PCIE_COUNT_CORRECTABLE_ERRORS",
        [GPU_PCIE_LINK_GENERATION] = "DCGM_FI_DEV_PCIE_LINK_GEN",
        [GPU_PCIE_LINK_WIDTH] = "DCGM_FI_DEV_PCIE_LINK_WIDTH",
        [GPU_PCIE_MAX_GENERATION] = "DCGM_FI_DEV_PCIE_MAX_LINK_GEN",
        [GPU_PCIE_MAX_WIDTH] = "DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH",
        [GPU_RECOVERY_ACTION] = "DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION",
        [GPU_SM_CLOCK_MHZ] = "DCGM_FI_DEV_SM_CLOCK",
        [GPU_UTILIZATION_PERCENT] = "DCGM_FI_DEV_GPU_UTIL",
        [GPU_POWER_W] = "DCGM_FI_DEV_POWER_USAGE",
    };
    assert(field < GPU_FIELD_COUNT);
    return NAMES[field];
}
