// SPDX-License-Identifier: Apache-2.0
// Which GPU field does a DCGM name or number mean, and is its value one at all?
//
// Names are found by binary search in one sorted table. Source: NVIDIA DCGM, dcgm_fields.h
// (numbers, names before and after they were changed) and dcgm_structs.h (blank values).
#include "receivers/decode/dcgm/dcgm.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

struct field_name {
    const char *name; // without "DCGM_FI_DEV_"
    enum gpu_field field;
};

// In order of bytes.
static const struct field_name NAMES[] = {
    {"100", GPU_SM_CLOCK_MHZ},
    {"112", GPU_CLOCK_REASONS},
    {"140", GPU_MEMORY_TEMPERATURE_C},
    {"1420", GPU_SW_POWER_CAP_NS},
    {"1421", GPU_SYNC_BOOST_NS},
    {"1422", GPU_SW_THERMAL_NS},
    {"1423", GPU_HW_THERMAL_NS},
    {"1424", GPU_HW_POWER_BRAKE_NS},
    {"150", GPU_TEMPERATURE_C},
    {"1501", GPU_PCIE_CORRECTABLE},
    {"151", GPU_MEMORY_MAX_TEMPERATURE_C},
    {"1523", GPU_RECOVERY_ACTION},
    {"153", GPU_TEMPERATURE_MARGIN_C},
    {"155", GPU_POWER_W},
    {"158", GPU_SLOWDOWN_TEMPERATURE_C},
    {"159", GPU_SHUTDOWN_TEMPERATURE_C},
    {"202", GPU_PCIE_REPLAYS},
    {"203", GPU_UTILIZATION_PERCENT},
    {"230", GPU_XID},
    {"235", GPU_PCIE_MAX_GENERATION},
    {"236", GPU_PCIE_MAX_WIDTH},
    {"237", GPU_PCIE_LINK_GENERATION},
    {"238", GPU_PCIE_LINK_WIDTH},
    {"240", GPU_POWER_VIOLATION_NS},
    {"241", GPU_THERMAL_VIOLATION_NS},
    {"310", GPU_ECC_CORRECTED_VOLATILE},
    {"311", GPU_ECC_UNCORRECTED_VOLATILE},
    {"312", GPU_ECC_CORRECTED_LIFETIME},
    {"313", GPU_ECC_UNCORRECTED_LIFETIME},
    {"346", GPU_SRAM_EXCEEDED},
    {"385", GPU_BANKS_MAX},
    {"386", GPU_BANKS_HIGH},
    {"387", GPU_BANKS_PARTIAL},
    {"388", GPU_BANKS_LOW},
    {"389", GPU_BANKS_NONE},
    {"390", GPU_RETIRED_CORRECTED},
    {"391", GPU_RETIRED_UNCORRECTED},
    {"392", GPU_RETIRED_PENDING},
    {"393", GPU_REMAP_UNCORRECTABLE},
    {"394", GPU_REMAP_CORRECTABLE},
    {"395", GPU_REMAP_FAILED},
    {"396", GPU_REMAP_PENDING},
    {"BANKS_REMAP_ROWS_AVAIL_HIGH", GPU_BANKS_HIGH},
    {"BANKS_REMAP_ROWS_AVAIL_LOW", GPU_BANKS_LOW},
    {"BANKS_REMAP_ROWS_AVAIL_MAX", GPU_BANKS_MAX},
    {"BANKS_REMAP_ROWS_AVAIL_NONE", GPU_BANKS_NONE},
    {"BANKS_REMAP_ROWS_AVAIL_PARTIAL", GPU_BANKS_PARTIAL},
    {"BANK_REMAP_AVAIL_HIGH", GPU_BANKS_HIGH},
    {"BANK_REMAP_AVAIL_LOW", GPU_BANKS_LOW},
    {"BANK_REMAP_AVAIL_MAX", GPU_BANKS_MAX},
    {"BANK_REMAP_AVAIL_NONE", GPU_BANKS_NONE},
    {"BANK_REMAP_AVAIL_PARTIAL", GPU_BANKS_PARTIAL},
    {"BOARD_POWER_WATTS", GPU_POWER_W},
    {"CLOCKS_EVENT_REASONS", GPU_CLOCK_REASONS},
    {"CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN_NS", GPU_HW_POWER_BRAKE_NS},
    {"CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS", GPU_HW_THERMAL_NS},
    {"CLOCKS_EVENT_REASON_SW_POWER_CAP_NS", GPU_SW_POWER_CAP_NS},
    {"CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN_NS", GPU_SW_THERMAL_NS},
    {"CLOCKS_EVENT_REASON_SYNC_BOOST_NS", GPU_SYNC_BOOST_NS},
    {"CLOCK_THROTTLE_REASONS", GPU_CLOCK_REASONS},
    {"CORRECTABLE_REMAPPED_ROWS", GPU_REMAP_CORRECTABLE},
    {"ECC_DBE_AGG_TOTAL", GPU_ECC_UNCORRECTED_LIFETIME},
    {"ECC_DBE_VOL_TOTAL", GPU_ECC_UNCORRECTED_VOLATILE},
    {"ECC_SBE_AGG_TOTAL", GPU_ECC_CORRECTED_LIFETIME},
    {"ECC_SBE_VOL_TOTAL", GPU_ECC_CORRECTED_VOLATILE},
    {"GET_GPU_RECOVERY_ACTION", GPU_RECOVERY_ACTION},
    {"GPU_RECOVERY_ACTION", GPU_RECOVERY_ACTION},
    {"GPU_TEMP", GPU_TEMPERATURE_C},
    {"GPU_TEMP_CELSIUS", GPU_TEMPERATURE_C},
    {"GPU_TEMP_LIMIT", GPU_TEMPERATURE_MARGIN_C},
    {"GPU_TEMP_MARGIN_CELSIUS", GPU_TEMPERATURE_MARGIN_C},
    {"GPU_TEMP_SHUTDOWN_CELSIUS", GPU_SHUTDOWN_TEMPERATURE_C},
    {"GPU_TEMP_SLOWDOWN_CELSIUS", GPU_SLOWDOWN_TEMPERATURE_C},
    {"GPU_UTIL", GPU_UTILIZATION_PERCENT},
    {"GPU_UTIL_RATIO", GPU_UTILIZATION_PERCENT},
    {"MEMORY_MAX_OP_TEMP_CELSIUS", GPU_MEMORY_MAX_TEMPERATURE_C},
    {"MEMORY_TEMP", GPU_MEMORY_TEMPERATURE_C},
    {"MEMORY_TEMP_CELSIUS", GPU_MEMORY_TEMPERATURE_C},
    {"MEM_MAX_OP_TEMP", GPU_MEMORY_MAX_TEMPERATURE_C},
    {"PAGE_RETIRED_DBE", GPU_RETIRED_UNCORRECTED},
    {"PAGE_RETIRED_DBE_TOTAL", GPU_RETIRED_UNCORRECTED},
    {"PAGE_RETIRED_PENDING", GPU_RETIRED_PENDING},
    {"PAGE_RETIRED_SBE", GPU_RETIRED_CORRECTED},
    {"PAGE_RETIRED_SBE_TOTAL", GPU_RETIRED_CORRECTED},
    {"PCIE_CORRECTABLE_ERROR_TOTAL", GPU_PCIE_CORRECTABLE},
    {"PCIE_COUNT_CORRECTABLE_ERRORS", GPU_PCIE_CORRECTABLE},
    {"PCIE_LINK_GEN", GPU_PCIE_LINK_GENERATION},
    {"PCIE_LINK_WIDTH", GPU_PCIE_LINK_WIDTH},
    {"PCIE_MAX_LINK_GEN", GPU_PCIE_MAX_GENERATION},
    {"PCIE_MAX_LINK_WIDTH", GPU_PCIE_MAX_WIDTH},
    {"PCIE_REPLAY_COUNTER", GPU_PCIE_REPLAYS},
    {"PCIE_REPLAY_TOTAL", GPU_PCIE_REPLAYS},
    {"POWER_USAGE", GPU_POWER_W},
    {"POWER_VIOLATION", GPU_POWER_VIOLATION_NS},
    {"RETIRED_DBE", GPU_RETIRED_UNCORRECTED},
    {"RETIRED_PENDING", GPU_RETIRED_PENDING},
    {"RETIRED_SBE", GPU_RETIRED_CORRECTED},
    {"ROW_REMAP_CORRECTABLE_TOTAL", GPU_REMAP_CORRECTABLE},
    {"ROW_REMAP_FAILED", GPU_REMAP_FAILED},
    {"ROW_REMAP_FAILURE", GPU_REMAP_FAILED},
    {"ROW_REMAP_PENDING", GPU_REMAP_PENDING},
    {"ROW_REMAP_UNCORRECTABLE_TOTAL", GPU_REMAP_UNCORRECTABLE},
    {"SHUTDOWN_TEMP", GPU_SHUTDOWN_TEMPERATURE_C},
    {"SLOWDOWN_TEMP", GPU_SLOWDOWN_TEMPERATURE_C},
    {"SM_CLOCK", GPU_SM_CLOCK_MHZ},
    {"SM_CLOCK_MHZ", GPU_SM_CLOCK_MHZ},
    {"SRAM_EXCEEDED", GPU_SRAM_EXCEEDED},
    {"THERMAL_VIOLATION", GPU_THERMAL_VIOLATION_NS},
    {"THRESHOLD_SRM", GPU_SRAM_EXCEEDED},
    {"UNCORRECTABLE_REMAPPED_ROWS", GPU_REMAP_UNCORRECTABLE},
    {"XID_ERROR", GPU_XID},
    {"XID_ERRORS", GPU_XID},
};

// What stands behind "DCGM_FI_DEV_".
static struct slice plain_name(struct slice name) {
    static const char before[] = "DCGM_FI_DEV_";
    size_t skip = sizeof before - 1;
    if (name.size > skip && memcmp(name.data, before, skip) == 0)
        return (struct slice){name.data + skip, name.size - skip};
    return name;
}

enum gpu_field dcgm_field_find(struct slice name) {
    struct slice wanted = plain_name(name);
    bool is_number = name.size > 0 && name.data[0] >= '0' && name.data[0] <= '9';
    if (wanted.data == name.data && !is_number)
        return GPU_FIELD_COUNT;
    size_t low = 0, high = sizeof NAMES / sizeof NAMES[0];
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = slice_compare(wanted, slice_of(NAMES[middle].name));
        if (order == 0)
            return NAMES[middle].field;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return GPU_FIELD_COUNT;
}

static bool is_duration(enum gpu_field field) {
    return field >= GPU_POWER_VIOLATION_NS && field <= GPU_HW_POWER_BRAKE_NS;
}

// DCGM writes a value near the type's largest one for "blank", "not found", "not supported" and
// "not permitted". Times in nanoseconds pass through those of 32 bits.
static bool is_blank(enum gpu_field field, int64_t whole) {
    if (whole >= INT64_MAX - 15)
        return true;
    if (whole >= INT64_C(140737488355328) && whole <= INT64_C(140737488355331))
        return true;
    return !is_duration(field) && whole >= INT32_MAX - 15 && whole <= INT32_MAX;
}

enum { NUMBER_MAX = 64 };

static bool read_number(struct slice text, double *value, int64_t *whole) {
    char copy[NUMBER_MAX];
    if (text.size == 0 || text.size >= sizeof copy || memchr(text.data, '\0', text.size) != NULL ||
        (unsigned char)text.data[0] <= ' ')
        return false;
    memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    char *end;
    *value = strtod(copy, &end);
    if (*end != '\0')
        return false;
    errno = 0;
    long long exact = strtoll(copy, &end, 10);
    if (*end == '\0' && errno == 0)
        *whole = exact;
    else if (*value >= 0x1p63)
        *whole = INT64_MAX;
    else
        *whole = isnan(*value) || *value < -0x1p63 ? INT64_MIN : (int64_t)*value;
    return true;
}

bool dcgm_field_set(struct gpu_sample *sample, enum gpu_field field, struct slice number) {
    assert(field < GPU_FIELD_COUNT);
    double value;
    int64_t whole;
    if (!read_number(number, &value, &whole))
        return false;
    sample->present &= ~(UINT64_C(1) << field);
    if (!isfinite(value) || is_blank(field, whole))
        return true;
    sample->present |= UINT64_C(1) << field;
    sample->value[field] = value;
    sample->whole[field] = whole;
    return true;
}

void dcgm_identity_set(struct gpu_sample *sample, struct slice uuid, struct slice pci_bus_id,
                       struct slice index) {
    if (uuid.size > 0)
        sample->uuid = uuid;
    pci_address address;
    if (pci_bus_id.size > 0 && pci_parse(pci_bus_id, &address))
        sample->address = address;
    int32_t number = 0;
    size_t at = 0;
    while (at < index.size && at < 6 && index.data[at] >= '0' && index.data[at] <= '9')
        number = number * 10 + (index.data[at++] - '0');
    if (at > 0 && at == index.size)
        sample->index = number;
}
