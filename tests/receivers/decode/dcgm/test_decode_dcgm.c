// SPDX-License-Identifier: Apache-2.0
// dcgm: samples of GPUs as JSON lines and as exposition text, old names and new, blank values,
// broken input.
#include "base/memory.h"
#include "receivers/decode/dcgm/dcgm.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static struct arena arena;
static struct event event;
static struct decode_fault fault;
static const uint64_t NOW = UINT64_C(1794992400000000000);

static void setup(void) {
    arena_init(&arena, 1 << 20);
}

static void teardown(void) {
    arena_release(&arena);
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static enum decode_category decode_json(const char *text) {
    memset(&event, 0, sizeof event);
    memset(&fault, 0, sizeof fault);
    return decoder_dcgm_json.decode(NULL, slice_of(text), &arena, &event, &fault);
}

static enum decode_category decode_bytes(struct slice text, uint64_t observed_ns) {
    void *state = memory_zero(1, decoder_dcgm_text.state_size);
    struct decoder_input input = {
        .path = SLICE("metrics"), .observed_ns = observed_ns, .is_file = true};
    decoder_dcgm_text.begin(state, &input);
    memset(&event, 0, sizeof event);
    memset(&fault, 0, sizeof fault);
    enum decode_category category = decoder_dcgm_text.decode(state, text, &arena, &event, &fault);
    memory_give(state);
    return category;
}

static enum decode_category decode_text(const char *text) {
    return decode_bytes(slice_of(text), NOW);
}

static const struct gpu_sample *sample_at(uint32_t i) {
    ck_assert_int_eq(event.kind, EVENT_GPU_SAMPLE);
    ck_assert_uint_lt(i, event.gpus->count);
    return &event.gpus->samples[i];
}

static bool has(const struct gpu_sample *sample, enum gpu_field field) {
    return (sample->present >> field & 1) != 0;
}

static void is_value(const struct gpu_sample *sample, enum gpu_field field, int64_t value) {
    ck_assert_msg(has(sample, field), "%s", gpu_field_name(field));
    ck_assert_int_eq(sample->whole[field], value);
    ck_assert(sample->value[field] == (double)value);
}

static void is_text(struct slice text, const char *expected) {
    ck_assert_uint_eq(text.size, strlen(expected));
    ck_assert_mem_eq(text.data, expected, text.size);
}

static void is_at(pci_address address, const char *expected) {
    char text[PCI_TEXT_MAX] = "none";
    if (address != PCI_NONE)
        pci_format_function(address, text);
    ck_assert_str_eq(text, expected);
}

// -- Names ----------------------------------------------------------------------------------------

START_TEST(every_field_by_its_names_and_number) {
    static const struct {
        enum gpu_field field;
        const char *names[4];
    } rows[] = {
        {GPU_XID, {"XID_ERRORS", "XID_ERROR", "230"}},
        {GPU_CLOCK_REASONS, {"CLOCK_THROTTLE_REASONS", "CLOCKS_EVENT_REASONS", "112"}},
        {GPU_TEMPERATURE_C, {"GPU_TEMP", "GPU_TEMP_CELSIUS", "150"}},
        {GPU_MEMORY_TEMPERATURE_C, {"MEMORY_TEMP", "MEMORY_TEMP_CELSIUS", "140"}},
        {GPU_TEMPERATURE_MARGIN_C, {"GPU_TEMP_LIMIT", "GPU_TEMP_MARGIN_CELSIUS", "153"}},
        {GPU_SLOWDOWN_TEMPERATURE_C, {"SLOWDOWN_TEMP", "GPU_TEMP_SLOWDOWN_CELSIUS", "158"}},
        {GPU_MEMORY_MAX_TEMPERATURE_C, {"MEM_MAX_OP_TEMP", "MEMORY_MAX_OP_TEMP_CELSIUS", "151"}},
        {GPU_THERMAL_VIOLATION_NS, {"THERMAL_VIOLATION", "241"}},
        {GPU_HW_THERMAL_NS, {"CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS", "1423"}},
        {GPU_REMAP_UNCORRECTABLE,
         {"UNCORRECTABLE_REMAPPED_ROWS", "ROW_REMAP_UNCORRECTABLE_TOTAL", "393"}},
        {GPU_REMAP_FAILED, {"ROW_REMAP_FAILURE", "ROW_REMAP_FAILED", "395"}},
        {GPU_RETIRED_UNCORRECTED, {"RETIRED_DBE", "PAGE_RETIRED_DBE_TOTAL", "391"}},
        {GPU_BANKS_NONE, {"BANKS_REMAP_ROWS_AVAIL_NONE", "BANK_REMAP_AVAIL_NONE", "389"}},
        {GPU_SRAM_EXCEEDED, {"THRESHOLD_SRM", "SRAM_EXCEEDED", "346"}},
        {GPU_PCIE_REPLAYS, {"PCIE_REPLAY_COUNTER", "PCIE_REPLAY_TOTAL", "202"}},
        {GPU_PCIE_CORRECTABLE,
         {"PCIE_COUNT_CORRECTABLE_ERRORS", "PCIE_CORRECTABLE_ERROR_TOTAL", "1501"}},
        {GPU_RECOVERY_ACTION, {"GET_GPU_RECOVERY_ACTION", "GPU_RECOVERY_ACTION", "1523"}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t j = 0; j < 4 && rows[i].names[j] != NULL; j++) {
            char name[128];
            bool number = rows[i].names[j][0] <= '9';
            snprintf(name, sizeof name, "%s%s", number ? "" : "DCGM_FI_DEV_", rows[i].names[j]);
            uint32_t spelling = GPU_SPELLINGS;
            ck_assert_msg(dcgm_field_find(slice_of(name), &spelling) == rows[i].field, "%s", name);
            char spelled[GPU_SPELLING_MAX];
            gpu_field_spelling(rows[i].field, spelling, spelled);
            ck_assert_str_eq(spelled, name);
        }
    // Each field by the name that evidence has.
    for (enum gpu_field field = 0; field < GPU_FIELD_COUNT; field++)
        ck_assert_int_eq(dcgm_field_find(slice_of(gpu_field_name(field)), NULL), field);
    static const char *const unknown[] = {
        "",  "GPU_TEMP", "DCGM_FI_DEV_",   "DCGM_FI_DEV_GPU_TEM", "DCGM_FI_DEV_GPU_TEMPS",
        "1", "99999",    "DCGM_FI_DEV_zzz"};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        ck_assert_int_eq(dcgm_field_find(slice_of(unknown[i]), NULL), GPU_FIELD_COUNT);
}
END_TEST

START_TEST(blank_values_are_missing_ones) {
    static const char *const blank[] = {"2147483632",
                                        "2147483633",
                                        "2147483634",
                                        "2147483635",
                                        "9223372036854775792",
                                        "9223372036854775795",
                                        "9.223372036854776e+18",
                                        "140737488355328",
                                        "140737488355331",
                                        "140737488355328.0",
                                        "NaN",
                                        "+Inf",
                                        "-Inf"};
    struct gpu_sample sample = {0};
    for (size_t i = 0; i < sizeof blank / sizeof *blank; i++) {
        ck_assert(dcgm_field_set(&sample, GPU_TEMPERATURE_C, SLICE("61")));
        ck_assert(has(&sample, GPU_TEMPERATURE_C));
        ck_assert(dcgm_field_set(&sample, GPU_TEMPERATURE_C, slice_of(blank[i])));
        ck_assert_msg(!has(&sample, GPU_TEMPERATURE_C), "%s", blank[i]);
    }
    // A counter of nanoseconds passes through those of 32 bits.
    ck_assert(dcgm_field_set(&sample, GPU_THERMAL_VIOLATION_NS, SLICE("2147483633")));
    ck_assert(has(&sample, GPU_THERMAL_VIOLATION_NS));
    ck_assert(dcgm_field_set(&sample, GPU_THERMAL_VIOLATION_NS, SLICE("9223372036854775794")));
    ck_assert(!has(&sample, GPU_THERMAL_VIOLATION_NS));
    ck_assert(dcgm_field_set(&sample, GPU_THERMAL_VIOLATION_NS, SLICE("9007199254740993")));
    ck_assert_int_eq(sample.whole[GPU_THERMAL_VIOLATION_NS], INT64_C(9007199254740993));
    ck_assert(dcgm_field_set(&sample, GPU_POWER_W, SLICE("312.5")));
    ck_assert(sample.value[GPU_POWER_W] == 312.5);
    ck_assert_int_eq(sample.whole[GPU_POWER_W], 312);
    ck_assert(dcgm_field_set(&sample, GPU_TEMPERATURE_MARGIN_C, SLICE("-2")));
    is_value(&sample, GPU_TEMPERATURE_MARGIN_C, -2);
    static const char *const wrong[] = {"", "x", "1 2", " 1", "--1", "0x", "1.2.3"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_msg(!dcgm_field_set(&sample, GPU_XID, slice_of(wrong[i])), "%s", wrong[i]);
}
END_TEST

// -- JSON -----------------------------------------------------------------------------------------

static const char LINE[] =
    "{\"source\":\"dcgm\",\"timestamp_ns\":1794992400000000000,\"k8s.node.name\":\"gpu-node-09\","
    "\"host.name\":\"h\",\"gpu\":\"1\",\"UUID\":\"GPU-2fcc\",\"pci_bus_id\":\"00000000:29:00.0\","
    "\"device\":\"nvidia1\",\"modelName\":\"NVIDIA H100\",\"namespace\":\"train\",\"pod\":\"p-0\","
    "\"fields\":{\"DCGM_FI_DEV_PCIE_LINK_GEN\":5,\"DCGM_FI_DEV_GPU_TEMP\":61.5,\"DCGM_FI_DEV_NEW\":"
    "[1,{\"a\":2}],\"140\":\"77\",\"DCGM_FI_DEV_SM_CLOCK\":null,\"DCGM_FI_DEV_POWER_USAGE\":\"N/"
    "A\"}}";

START_TEST(a_json_line) {
    ck_assert_int_eq(decode_json(LINE), DECODE_OK);
    ck_assert_uint_eq(event.time_ns, NOW);
    ck_assert_uint_eq(event.gpus->count, 1);
    const struct gpu_sample *sample = sample_at(0);
    ck_assert_uint_eq(sample->time_ns, NOW);
    is_text(intern_slice(sample->node), "gpu-node-09");
    ck_assert_uint_eq(event.node, sample->node);
    is_text(sample->uuid, "GPU-2fcc");
    is_at(sample->address, "0000:29:00.0");
    ck_assert_int_eq(sample->index, 1);
    is_text(sample->model, "NVIDIA H100");
    is_text(sample->namespace, "train");
    is_text(sample->pod, "p-0");
    is_value(sample, GPU_PCIE_LINK_GENERATION, 5);
    is_value(sample, GPU_MEMORY_TEMPERATURE_C, 77);
    ck_assert(sample->value[GPU_TEMPERATURE_C] == 61.5);
    ck_assert(!has(sample, GPU_SM_CLOCK_MHZ));
    ck_assert(!has(sample, GPU_POWER_W));
    ck_assert_int_eq(__builtin_popcountll(sample->present), 3);
}
END_TEST

START_TEST(other_json_shapes) {
    // Fields beside the other keys, numbers as numbers, the exporter's own label for the node.
    ck_assert_int_eq(decode_json("{\"DCGM_FI_DEV_XID_ERRORS\":79,\"Hostname\":\"n1\",\"gpu\":3,"
                                 "\"observed_time_ns\":5,\"k8s.pod.name\":\"q\"}"),
                     DECODE_OK);
    is_value(sample_at(0), GPU_XID, 79);
    ck_assert_int_eq(sample_at(0)->index, 3);
    ck_assert(sample_at(0)->address == PCI_NONE);
    is_text(intern_slice(event.node), "n1");
    is_text(sample_at(0)->pod, "q");
    ck_assert_uint_eq(event.time_ns, 5);
    // Nothing that anybody looks for.
    ck_assert_int_eq(decode_json("{\"timestamp_ns\":5,\"UUID\":\"u\",\"fields\":{\"X\":1}}"),
                     DECODE_NOTHING);
    ck_assert_uint_eq(event.time_ns, 5);
    // Escapes in keys and names.
    ck_assert_int_eq(decode_json("{\"timestamp_ns\":5,\"UU\\u0049D\":\"GPU-\\u00e9\",\"fields\":{"
                                 "\"DCGM_FI_DEV_GPU\\u005fTEMP\":5}}"),
                     DECODE_OK);
    is_text(sample_at(0)->uuid, "GPU-\u00e9");
    is_value(sample_at(0), GPU_TEMPERATURE_C, 5);
}
END_TEST

START_TEST(broken_json_lines) {
    static const struct {
        const char *text;
        enum decode_category category;
        const char *field;
    } rows[] = {
        {"{\"timestamp_ns\":5,\"UUID\":\"u\"}", DECODE_MISSING_FIELD, "fields"},
        {"{\"timestamp_ns\":5,\"fields\":{\"DCGM_FI_DEV_GPU_TEMP\":1}}", DECODE_MISSING_FIELD,
         "UUID, gpu, pci_bus_id"},
        {"{\"timestamp_ns\":5,\"UUID\":\"u\",\"fields\":[]}", DECODE_WRONG_TYPE, "fields"},
        {"{\"timestamp_ns\":5,\"UUID\":7,\"fields\":{\"150\":1}}", DECODE_WRONG_TYPE, "UUID"},
        {"{\"timestamp_ns\":5,\"UUID\":\"u\",\"fields\":{\"150\":{}}}", DECODE_WRONG_TYPE,
         "DCGM_FI_DEV_GPU_TEMP"},
        {"{\"timestamp_ns\":5,\"pci_bus_id\":\"29\",\"fields\":{\"150\":1}}", DECODE_OUT_OF_RANGE,
         "pci_bus_id"},
        {"{\"UUID\":\"u\",\"fields\":{\"150\":1}}", DECODE_MISSING_TIMESTAMP, "timestamp_ns"},
        {"{\"timestamp_ns\":5,\"UUID\":\"u\",\"fields\":{\"150\":1}", DECODE_BAD_JSON, ""},
        {"7", DECODE_NOT_OBJECT, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ck_assert_msg(decode_json(rows[i].text) == rows[i].category, "%s: %s", rows[i].text,
                      fault.detail);
        ck_assert_str_eq(fault.field, rows[i].field);
        ck_assert(fault.detail[0] != '\0');
    }
}
END_TEST

// -- Text -----------------------------------------------------------------------------------------

#define LABELS_0                                                                                   \
    "gpu=\"0\",UUID=\"GPU-a\",pci_bus_id=\"00000000:1B:00.0\",device=\"nvidia0\","                 \
    "modelName=\"NVIDIA H100\",Hostname=\"n1\""
#define LABELS_1                                                                                   \
    "gpu=\"1\",UUID=\"GPU-b\",pci_bus_id=\"00000000:29:00.0\",device=\"nvidia1\","                 \
    "modelName=\"NVIDIA H100\",Hostname=\"n1\",container=\"c\",namespace=\"train\",pod=\"p-1\""

static const char TEXT[] =
    "# HELP DCGM_FI_DEV_GPU_TEMP GPU temperature (in C).\n"
    "# TYPE DCGM_FI_DEV_GPU_TEMP gauge\n"
    "DCGM_FI_DEV_GPU_TEMP{" LABELS_0
    "} 61\n"
    "DCGM_FI_DEV_GPU_TEMP{" LABELS_1
    "} 91\n"
    "# HELP DCGM_FI_DEV_XID_ERRORS Value of the last XID error encountered.\n"
    "DCGM_FI_DEV_XID_ERRORS{" LABELS_0
    ",err_code=\"79\",err_msg=\"GPU has \\\"fallen\\\"\"} 79\n"
    "DCGM_FI_DEV_XID_ERRORS{" LABELS_1
    "} 0\n"
    "DCGM_FI_DEV_MEMORY_TEMP{" LABELS_0
    "} 9223372036854775794\n"
    "DCGM_FI_PROF_SM_ACTIVE{" LABELS_0
    "} not even looked at\n"
    "go_goroutines 12\n"
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER{" LABELS_1
    ", } 1.25e3\r\n"
    "\n";

START_TEST(an_exposition) {
    ck_assert_int_eq(decode_text(TEXT), DECODE_OK);
    ck_assert_uint_eq(event.time_ns, NOW);
    ck_assert_uint_eq(event.gpus->count, 2);
    const struct gpu_sample *first = sample_at(0), *second = sample_at(1);
    is_text(first->uuid, "GPU-a");
    is_text(intern_slice(first->node), "n1");
    ck_assert_uint_eq(event.node, first->node);
    is_at(first->address, "0000:1b:00.0");
    is_value(first, GPU_TEMPERATURE_C, 61);
    is_value(first, GPU_XID, 79);
    ck_assert(!has(first, GPU_MEMORY_TEMPERATURE_C));
    ck_assert(first->pod.data == NULL);
    is_text(second->pod, "p-1");
    is_text(second->namespace, "train");
    ck_assert_int_eq(second->index, 1);
    is_value(second, GPU_PCIE_REPLAYS, 1250);
    ck_assert_uint_eq(second->time_ns, NOW);
}
END_TEST

START_TEST(timestamps) {
    static const char text[] =
        "DCGM_FI_DEV_GPU_TEMP{UUID=\"GPU-a\"} 61 1794992400123\n"
        "DCGM_FI_DEV_SM_CLOCK{UUID=\"GPU-a\"} 1900 1794992400.123\n"
        "DCGM_FI_DEV_GPU_TEMP{UUID=\"GPU-a\"} 62 1794992430.123456789 # {id=\"x\"} 1\n"
        "# EOF\n";
    ck_assert_int_eq(decode_text(text), DECODE_OK);
    ck_assert_uint_eq(event.gpus->count, 2);
    ck_assert_uint_eq(sample_at(0)->time_ns, UINT64_C(1794992400123000000));
    is_value(sample_at(0), GPU_SM_CLOCK_MHZ, 1900);
    is_value(sample_at(0), GPU_TEMPERATURE_C, 61);
    ck_assert_uint_eq(sample_at(1)->time_ns, UINT64_C(1794992430123456789));
    is_value(sample_at(1), GPU_TEMPERATURE_C, 62);
    ck_assert_uint_eq(event.time_ns, UINT64_C(1794992430123456789));
    // None, and nobody knows when it was read.
    ck_assert_int_eq(decode_bytes(SLICE("DCGM_FI_DEV_GPU_TEMP{UUID=\"GPU-a\"} 61\n"), 0),
                     DECODE_MISSING_TIMESTAMP);
    ck_assert_int_eq(decode_bytes(slice_of(text), 0), DECODE_OK);
}
END_TEST

START_TEST(scrapes_one_after_another) {
    // Without timestamps the last one counts.
    ck_assert_int_eq(decode_text("DCGM_FI_DEV_GPU_TEMP{UUID=\"GPU-a\"} 61\n"
                                 "DCGM_FI_DEV_SM_CLOCK{UUID=\"GPU-a\"} 1000\n"
                                 "DCGM_FI_DEV_GPU_TEMP{UUID=\"GPU-a\"} 70\n"),
                     DECODE_OK);
    ck_assert_uint_eq(event.gpus->count, 1);
    is_value(sample_at(0), GPU_TEMPERATURE_C, 70);
    is_value(sample_at(0), GPU_SM_CLOCK_MHZ, 1000);
}
END_TEST

START_TEST(labels_in_other_forms) {
    ck_assert_int_eq(
        decode_text(
            "DCGM_FI_DEV_GPU_TEMP { gpu=\"9\", UUID = \"GPU-\\\\a\\n\\\"\" , node=\"n9\" } 1\n"
            "DCGM_FI_DEV_GPU_TEMP{pci_bus_id=\"00000000:29:00.0\",hostname=\"n8\"} 2\n"
            "DCGM_FI_DEV_GPU_TEMP{gpu=\"4\"} 3\n"
            "DCGM_FI_DEV_GPU_TEMP{gpu=\"4\",Hostname=\"n7\"} 4\n"
            "DCGM_FI_DEV_GPU_TEMP{nvswitch=\"4\"} 5\n"
            "DCGM_FI_DEV_GPU_TEMP 6\n"),
        DECODE_OK);
    ck_assert_uint_eq(event.gpus->count, 4);
    // A UUID with a line break is none.
    ck_assert(sample_at(0)->uuid.data == NULL);
    is_text(intern_slice(sample_at(0)->node), "n9");
    is_text(intern_slice(sample_at(1)->node), "n8");
    ck_assert_int_eq(sample_at(2)->index, 4);
    ck_assert_uint_eq(sample_at(2)->node, STRING_NONE);
    is_value(sample_at(3), GPU_TEMPERATURE_C, 4);
}
END_TEST

START_TEST(pods_as_prometheus_renames_them) {
    ck_assert_int_eq(decode_text("DCGM_FI_DEV_GPU_TEMP{UUID=\"GPU-a\",exported_namespace=\"train\","
                                 "exported_pod=\"p-0\",namespace=\"monitoring\","
                                 "pod=\"dcgm-exporter-x\"} 1\n"),
                     DECODE_OK);
    is_text(sample_at(0)->pod, "p-0");
    is_text(sample_at(0)->namespace, "train");
}
END_TEST

START_TEST(counts_of_xids) {
    ck_assert_int_eq(
        decode_text("DCGM_EXP_XID_ERRORS_COUNT{UUID=\"GPU-a\",window_size_in_ms=\"300000\",xid="
                    "\"31\"} 0\n"
                    "DCGM_EXP_XID_ERRORS_COUNT{UUID=\"GPU-a\",xid=\"79\"} 2\n"
                    "DCGM_EXP_XID_ERRORS_COUNT{UUID=\"GPU-b\",xid=\"63\"} 1\n"
                    "DCGM_FI_DEV_XID_ERRORS{UUID=\"GPU-b\"} 48\n"),
        DECODE_OK);
    is_value(sample_at(0), GPU_XID, 79);
    is_value(sample_at(1), GPU_XID, 48);
    char name[GPU_SPELLING_MAX];
    gpu_field_spelling(GPU_XID, gpu_sample_spelling(sample_at(0), GPU_XID), name);
    ck_assert_str_eq(name, "DCGM_EXP_XID_ERRORS_COUNT{xid}");
    gpu_field_spelling(GPU_XID, gpu_sample_spelling(sample_at(1), GPU_XID), name);
    ck_assert_str_eq(name, "DCGM_FI_DEV_XID_ERRORS");
}
END_TEST

START_TEST(texts_without_anything) {
    static const char *const rows[] = {"", "\n", "# HELP x y\n# EOF\n", "up 1\n",
                                       "DCGM_FI_PROF_SM_ACTIVE{UUID=\"a\"} 1\n"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ck_assert_int_eq(decode_text(rows[i]), DECODE_NOTHING);
        ck_assert_uint_eq(event.time_ns, NOW);
    }
}
END_TEST

START_TEST(broken_texts) {
    static const char *const rows[] = {
        "DCGM_FI_DEV_GPU_TEMP{UUID=\"GPU-a\"} hot\nx 1\n",
        "DCGM_FI_DEV_GPU_TEMP{UUID=\"GPU-a\"}\nx 1\n",
        "DCGM_FI_DEV_GPU_TEMP{UUID=\"GPU-a} 1\nx 1\n",
        "DCGM_FI_DEV_GPU_TEMP{UUID=GPU-a} 1\nx 1\n",
        "DCGM_FI_DEV_GPU_TEMP{UUID} 1\nx 1\n",
        "DCGM_FI_DEV_GPU_TEMP{UUID=\"GPU-a\" 1\nx 1\n",
        "DCGM_FI_DEV_GPU_TEMP{UUID=\"GPU-a\"} 1 yesterday\nx 1\n",
        "DCGM_FI_DEV_GPU_TEMP{UUID=\"GPU-a\"} 1 -5\nx 1\n",
        "DCGM_FI_DEV_GPU_TEMP{UUID=\"GPU-a\"} 1 99999999999999999\nx 1\n",
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ck_assert_msg(decode_text(rows[i]) == DECODE_WRONG_TYPE, "%s", rows[i]);
        ck_assert_str_eq(fault.field, "DCGM_FI_DEV_GPU_TEMP");
        ck_assert_ptr_nonnull(strstr(fault.detail, "line 1"));
    }
    // The last line was being written.
    ck_assert_int_eq(decode_text("DCGM_FI_DEV_GPU_TEMP{UUID=\"GPU-a\"} 1\n"
                                 "DCGM_FI_DEV_SM_CLOCK{UUID=\"GP"),
                     DECODE_OK);
    ck_assert_uint_eq(event.gpus->count, 1);
}
END_TEST

START_TEST(many_gpus) {
    enum { GPUS = 3000 };
    size_t size = 0, capacity = 1 << 20;
    char *text = memory_take(capacity);
    for (int field = 0; field < 2; field++)
        for (int i = 0; i < GPUS; i++)
            size += (size_t)snprintf(text + size, capacity - size, "%s{UUID=\"GPU-%d\"} %d\n",
                                     field == 0 ? "DCGM_FI_DEV_GPU_TEMP" : "DCGM_FI_DEV_SM_CLOCK",
                                     i, i);
    ck_assert_int_eq(decode_bytes((struct slice){text, size}, NOW), DECODE_OK);
    ck_assert_uint_eq(event.gpus->count, GPUS);
    for (uint32_t i = 0; i < GPUS; i++) {
        is_value(sample_at(i), GPU_TEMPERATURE_C, (int64_t)i);
        is_value(sample_at(i), GPU_SM_CLOCK_MHZ, (int64_t)i);
    }
    memory_give(text);
}
END_TEST

START_TEST(survives_anything) {
    static const char *const rows[] = {LINE, TEXT};
    unsigned seed = 3;
    for (size_t i = 0; i < 2; i++) {
        size_t size = strlen(rows[i]);
        for (size_t length = 0; length <= size; length++) {
            char *copy = malloc(length + (length == 0));
            ck_assert_ptr_nonnull(copy);
            memcpy(copy, rows[i], length);
            for (unsigned round = 0; round < 8; round++) {
                struct slice text = {copy, length};
                enum decode_category category =
                    decoder_dcgm_json.decode(NULL, text, &arena, &event, &fault);
                ck_assert(i != 0 || round != 0 || length == size || category != DECODE_OK);
                (void)decode_bytes(text, NOW);
                if (length == 0)
                    break;
                seed = seed * 1103515245 + 12345;
                copy[(seed >> 8) % length] = (char)(seed >> 20);
            }
            free(copy);
            arena_reset(&arena);
        }
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("decode_dcgm");
    TCase *cases = tcase_create("records");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, every_field_by_its_names_and_number);
    tcase_add_test(cases, blank_values_are_missing_ones);
    tcase_add_test(cases, a_json_line);
    tcase_add_test(cases, other_json_shapes);
    tcase_add_test(cases, broken_json_lines);
    tcase_add_test(cases, an_exposition);
    tcase_add_test(cases, timestamps);
    tcase_add_test(cases, scrapes_one_after_another);
    tcase_add_test(cases, labels_in_other_forms);
    tcase_add_test(cases, pods_as_prometheus_renames_them);
    tcase_add_test(cases, counts_of_xids);
    tcase_add_test(cases, texts_without_anything);
    tcase_add_test(cases, broken_texts);
    tcase_add_test(cases, many_gpus);
    tcase_add_test(cases, survives_anything);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
