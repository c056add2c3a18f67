// SPDX-License-Identifier: Apache-2.0
// Of some two hundred lines a GPU those are gathered that can say that it is broken. Each is a key
// and a value, "Pending Page Blacklist : Yes" or "<pending_retirement>Yes</pending_retirement>";
// some keys count only below a heading. O(lines · rows).
#include "receivers/decode/nvidia_smi/nvidia_smi.h"

#include "base/text/cut.h"
#include "base/text/log_time.h"
#include "pipeline/model/node_event.h"
#include "receivers/decode/line/reading.h"

#include <stdio.h>

enum {
    LINES_OF_GPU = 400, // in a row that say nothing of interest
    MESSAGE_MAX = 400,
    DIGITS_MAX = 9,
    // NVIDIA's limits for older GPUs: pages retired for uncorrectable errors, and in all.
    RETIRED_UNCORRECTED_MAX = 15,
    RETIRED_MAX = 63,
};

// Of one GPU, from bad to worse.
enum finding {
    SEEN_NOTHING,
    SEEN_NARROW,
    SEEN_WAITS,
    SEEN_HOT,
    SEEN_BRAKE,
    SEEN_FABRIC,
    SEEN_WORN,
    SEEN_UNCORRECTED,
    SEEN_RESET,
    SEEN_LOST,
};
static const char *const CAUSES[] = {
    [SEEN_NARROW] = "pcie_narrow",
    [SEEN_WAITS] = "gpu_repair_waits",
    [SEEN_HOT] = "gpu_hot",
    [SEEN_BRAKE] = "power_brake",
    [SEEN_FABRIC] = "nvlink_setup",
    [SEEN_WORN] = "gpu_worn",
    [SEEN_UNCORRECTED] = "gpu_hardware",
    [SEEN_RESET] = "gpu_needs_reset",
    [SEEN_LOST] = "gpu_lost",
};

enum section { SECTION_ANY, SECTION_VOLATILE, SECTION_AGGREGATE, SECTION_SINGLE, SECTION_DOUBLE };
static const struct {
    struct slice heading, tag;
    enum section section;
} SECTIONS[] = {
    {{"Volatile", 8}, {"volatile", 8}, SECTION_VOLATILE},
    {{"Aggregate", 9}, {"aggregate", 9}, SECTION_AGGREGATE},
    {{"-", 1}, {"multiple_single_bit_retirement", 30}, SECTION_SINGLE},
    {{"-", 1}, {"double_bit_retirement", 21}, SECTION_DOUBLE},
};

// How a value is bad.
enum badness {
    BAD_YES,         // "Yes", "True", "Active"
    BAD_NUMBER,      // above zero
    BAD_ACTION,      // a recovery action other than "None"
    BAD_FABRIC,      // neither finished nor absent
    BAD_FABRIC_SUMS, // "Unhealthy", "Degraded"
    BAD_SINGLE,      // together with BAD_DOUBLE: pages that were retired
    BAD_DOUBLE,
    BAD_WIDEST, // "16x", together with BAD_WIDTH
    BAD_WIDTH,
};

#define KEY(text, tag, section, badness, finding)                                                  \
    { {(text), sizeof(text) - 1}, {(tag), sizeof(tag) - 1}, (section), (badness), (finding) }
static const struct {
    struct slice text, tag;
    enum section section;
    enum badness badness;
    enum finding finding;
} KEYS[] = {
    KEY("Single Bit ECC", "retired_count", SECTION_SINGLE, BAD_SINGLE, SEEN_WORN),
    KEY("Double Bit ECC", "retired_count", SECTION_DOUBLE, BAD_DOUBLE, SEEN_WORN),
    KEY("Pending Page Blacklist", "pending_retirement", SECTION_ANY, BAD_YES, SEEN_WAITS),
    KEY("Pending Page Blacklist", "pending_blacklist", SECTION_ANY, BAD_YES, SEEN_WAITS),
    KEY("Pending", "remapped_row_pending", SECTION_ANY, BAD_YES, SEEN_WAITS),
    KEY("Remapping Failure Occurred", "remapped_row_failure", SECTION_ANY, BAD_YES, SEEN_WORN),
    KEY("SRAM Threshold Exceeded", "sram_threshold_exceeded", SECTION_ANY, BAD_YES, SEEN_WORN),
    KEY("DRAM Uncorrectable", "dram_uncorrectable", SECTION_VOLATILE, BAD_NUMBER, SEEN_UNCORRECTED),
    KEY("SRAM Uncorrectable", "sram_uncorrectable", SECTION_VOLATILE, BAD_NUMBER, SEEN_UNCORRECTED),
    KEY("SRAM Uncorrectable Parity", "sram_uncorrectable_parity", SECTION_VOLATILE, BAD_NUMBER,
        SEEN_UNCORRECTED),
    KEY("SRAM Uncorrectable SEC-DED", "sram_uncorrectable_secded", SECTION_VOLATILE, BAD_NUMBER,
        SEEN_UNCORRECTED),
    KEY("Reset Required", "reset_required", SECTION_ANY, BAD_YES, SEEN_RESET),
    KEY("GPU Recovery Action", "gpu_recovery_action", SECTION_ANY, BAD_ACTION, SEEN_RESET),
    KEY("HW Power Brake Slowdown", "clocks_event_reason_hw_power_brake_slowdown", SECTION_ANY,
        BAD_YES, SEEN_BRAKE),
    KEY("HW Power Brake Slowdown", "clocks_throttle_reason_hw_power_brake_slowdown", SECTION_ANY,
        BAD_YES, SEEN_BRAKE),
    KEY("HW Thermal Slowdown", "clocks_event_reason_hw_thermal_slowdown", SECTION_ANY, BAD_YES,
        SEEN_HOT),
    KEY("HW Thermal Slowdown", "clocks_throttle_reason_hw_thermal_slowdown", SECTION_ANY, BAD_YES,
        SEEN_HOT),
    KEY("State", "state", SECTION_ANY, BAD_FABRIC, SEEN_FABRIC),
    KEY("Status", "status", SECTION_ANY, BAD_FABRIC, SEEN_FABRIC),
    KEY("Summary", "summary", SECTION_ANY, BAD_FABRIC_SUMS, SEEN_FABRIC),
    KEY("Bandwidth", "bandwidth", SECTION_ANY, BAD_FABRIC_SUMS, SEEN_FABRIC),
    KEY("Route Unhealthy", "route_unhealthy", SECTION_ANY, BAD_YES, SEEN_FABRIC),
    KEY("Max", "max_link_width", SECTION_ANY, BAD_WIDEST, SEEN_NARROW),
    KEY("Current", "current_link_width", SECTION_ANY, BAD_WIDTH, SEEN_NARROW),
};
enum { KEY_COUNT = sizeof KEYS / sizeof *KEYS };

// -- one line -------------------------------------------------------------------------------------

// "Pending : Yes", "<remapped_row_pending>Yes</remapped_row_pending>"; a heading has no value.
static bool split_line(struct slice line, struct slice *key, struct slice *value, bool *is_tag) {
    line = text_trim(line);
    *is_tag = text_skip_char(&line, '<');
    *key = text_trim(text_until(line, *is_tag ? '>' : ':'));
    struct slice behind = text_from(line, text_until(line, *is_tag ? '>' : ':').size);
    *value = (struct slice){line.data, 0};
    if (behind.size > 0)
        *value = text_trim(*is_tag ? text_until(text_from(behind, 1), '<') : text_from(behind, 1));
    return key->size > 0;
}

static enum section section_of(struct slice key, bool is_tag) {
    for (size_t i = 0; i < sizeof SECTIONS / sizeof *SECTIONS; i++)
        if (slice_equal(key, is_tag ? SECTIONS[i].tag : SECTIONS[i].heading))
            return SECTIONS[i].section;
    return SECTION_ANY;
}

// The row of the key; KEY_COUNT: none. Of text the pages need no section.
static uint32_t key_of(struct slice key, bool is_tag, enum section section) {
    uint32_t i = 0;
    for (; i < KEY_COUNT; i++) {
        bool needs =
            KEYS[i].section == SECTION_VOLATILE || (is_tag && KEYS[i].section != SECTION_ANY);
        if (slice_equal(key, is_tag ? KEYS[i].tag : KEYS[i].text) &&
            (!needs || KEYS[i].section == section))
            break;
    }
    return i;
}

static bool is_broken_value(struct slice value) {
    return slice_equal(value, SLICE("GPU is lost")) || slice_equal(value, SLICE("Unknown Error")) ||
           slice_equal(value, SLICE("ERR!"));
}

static bool gpu_of(struct slice line, pci_address *gpu) {
    line = text_trim(line);
    if (text_skip(&line, SLICE("<gpu id=\"")))
        return pci_parse(text_until(line, '"'), gpu);
    return text_skip(&line, SLICE("GPU ")) && memchr(line.data, '.', line.size) != NULL &&
           pci_parse(line, gpu);
}

// -- one GPU --------------------------------------------------------------------------------------

struct look {
    enum finding worst;
    char *message;
    size_t size;
    uint64_t retired, retired_double, widest;
};

static void note(struct look *look, enum finding finding, struct slice key, struct slice value) {
    if (finding > look->worst)
        look->worst = finding;
    int size =
        snprintf(look->message + look->size, MESSAGE_MAX - look->size, "%s%.*s: %.*s",
                 look->size > 0 ? ", " : "", (int)key.size, key.data, (int)value.size, value.data);
    if (size > 0 && look->size + (size_t)size < MESSAGE_MAX)
        look->size += (size_t)size;
}

static uint64_t number_of(struct slice value) {
    uint64_t number = 0;
    text_take_number(&value, 1, DIGITS_MAX, &number);
    return number;
}

static bool is_one_of(struct slice value, const char *const *words) {
    for (; *words != NULL; words++)
        if (slice_equal(value, slice_of(*words)))
            return true;
    return false;
}

static bool is_bad(struct look *look, enum badness badness, struct slice value) {
    static const char *const yes[] = {"Yes", "True", "Active", NULL};
    static const char *const none[] = {"None", "N/A", "[N/A]", NULL};
    static const char *const fabric[] = {"N/A", "Completed", "Success", "Not Supported", NULL};
    static const char *const unhealthy[] = {"Unhealthy", "Degraded", NULL};
    bool is_width = value.size > 1 && value.data[value.size - 1] == 'x';
    switch (badness) {
    case BAD_YES:
        return is_one_of(value, yes);
    case BAD_NUMBER:
        return number_of(value) > 0;
    case BAD_ACTION:
        return !is_one_of(value, none);
    case BAD_FABRIC:
        return !is_one_of(value, fabric);
    case BAD_FABRIC_SUMS:
        return is_one_of(value, unhealthy);
    case BAD_SINGLE:
        look->retired += number_of(value);
        return false;
    case BAD_DOUBLE:
        look->retired_double = number_of(value);
        look->retired += look->retired_double;
        return false;
    case BAD_WIDEST:
        look->widest = is_width ? number_of(value) : look->widest;
        return false;
    case BAD_WIDTH:
        return is_width && number_of(value) < look->widest;
    }
    return false;
}

static void look_at(struct look *look, struct slice text) {
    enum section section = SECTION_ANY;
    while (text.size > 0) {
        struct slice key, value;
        bool is_tag;
        if (!split_line(text_take_line(&text), &key, &value, &is_tag))
            continue;
        if (value.size == 0)
            section = section_of(key, is_tag);
        uint32_t row = key_of(key, is_tag, section);
        if (is_broken_value(value))
            note(look, SEEN_LOST, key, value);
        else if (row < KEY_COUNT && value.size > 0 && is_bad(look, KEYS[row].badness, value))
            note(look, KEYS[row].finding, key, value);
    }
}

static void judge_pages(struct look *look) {
    char number[64];
    if (look->retired_double < RETIRED_UNCORRECTED_MAX && look->retired < RETIRED_MAX)
        return;
    int size =
        snprintf(number, sizeof number, "%llu, of which %llu for double bit errors",
                 (unsigned long long)look->retired, (unsigned long long)look->retired_double);
    note(look, SEEN_WORN, SLICE("Retired Pages"), (struct slice){number, (size_t)size});
}

// What can be bad, and what other lines need to be judged: not each healthy one.
static bool is_kept(struct slice line) {
    struct slice key, value;
    bool is_tag;
    struct look look = {.widest = UINT64_MAX};
    if (!split_line(line, &key, &value, &is_tag))
        return false;
    if (value.size == 0)
        return section_of(key, is_tag) != SECTION_ANY;
    if (is_broken_value(value))
        return true;
    for (uint32_t i = 0; i < KEY_COUNT; i++)
        if (slice_equal(key, is_tag ? KEYS[i].tag : KEYS[i].text))
            return is_bad(&look, KEYS[i].badness, value) || look.retired > 0 ||
                   (KEYS[i].badness == BAD_WIDEST && look.widest != UINT64_MAX);
    return false;
}

// -- the reader -----------------------------------------------------------------------------------

// "Timestamp : Thu Mar 14 20:46:07 2024", "<timestamp>Thu Mar 14 20:46:07 2024</timestamp>".
static bool read_time(struct slice line, uint64_t *time_ns) {
    struct slice key, value;
    bool is_tag;
    return split_line(line, &key, &value, &is_tag) &&
           slice_equal(key, is_tag ? SLICE("timestamp") : SLICE("Timestamp")) &&
           log_time_ctime(&value, time_ns);
}

static enum read_result read_first(const struct frame *frame, struct slice message,
                                   struct reading *reading) {
    pci_address gpu;
    uint64_t time_ns;
    (void)frame;
    (void)reading;
    return gpu_of(message, &gpu) || read_time(message, &time_ns) ? READ_BEGIN : READ_NOT;
}

static enum block_step more_of_report(struct slice so_far, uint32_t count,
                                      const struct frame *frame, struct slice message) {
    pci_address gpu;
    uint64_t time_ns;
    (void)so_far;
    (void)count;
    (void)frame;
    if (read_time(message, &time_ns))
        return BLOCK_OVER;
    return gpu_of(message, &gpu) || is_kept(message) ? BLOCK_TAKE : BLOCK_PASS;
}

// The lines of one GPU, up to the next one.
static struct slice take_gpu(struct slice *text) {
    pci_address gpu;
    const char *from = text->data;
    text_take_line(text);
    for (struct slice ahead = *text; text->size > 0; *text = ahead)
        if (gpu_of(text_take_line(&ahead), &gpu))
            break;
    return (struct slice){from, (size_t)(text->data - from)};
}

static enum read_result tell(const struct look *look, pci_address gpu, struct reading *reading) {
    bool is_fault = look->worst != SEEN_NOTHING;
    reading_begin(reading, is_fault ? OBSERVATION_NODE_FAULT : OBSERVATION_HEALTH_EVENT);
    reading->no_rank = true;
    reading_address(reading, FACT_GPU, pci_device(gpu));
    reading_text(reading, FACT_VENDOR, SLICE("nvidia"));
    if (is_fault) {
        reading_text(reading, FACT_CAUSE, slice_of(CAUSES[look->worst]));
        reading_text(reading, FACT_MESSAGE, (struct slice){look->message, look->size});
    } else
        reading_yes_no(reading, FACT_HEALTHY, true);
    return READ_EVENT;
}

static enum read_result next_gpu(struct slice text, struct block_walk *walk, bool cut,
                                 const struct frame *frame, struct reading *reading) {
    pci_address gpu = PCI_NONE;
    struct look look = {.message = arena_take(reading->arena, MESSAGE_MAX)};
    struct slice rest = text_from(text, walk->at), lines = take_gpu(&rest);
    uint64_t time_ns = 0;
    (void)cut;
    (void)frame;
    walk->at = text.size - rest.size;
    if (!gpu_of(text_take_line(&lines), &gpu))
        return READ_OTHER;
    look_at(&look, lines);
    judge_pages(&look);
    enum read_result result = tell(&look, gpu, reading);
    if (read_time(text_until(text, '\n'), &time_ns)) {
        reading->time_ns = time_ns;
        reading->local_time = true;
        reading->slack_ns = 1000000000;
    }
    return result;
}

const struct line_reader READER_NVIDIA_SMI = {.name = "nvidia_smi",
                                              .passes = LINES_OF_GPU,
                                              .read = read_first,
                                              .more = more_of_report,
                                              .next = next_gpu};
