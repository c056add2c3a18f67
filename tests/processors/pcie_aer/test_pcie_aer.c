// SPDX-License-Identifier: Apache-2.0
// pcie_aer: which lines are one report, which counters a storm, and what became of it.
#include "cli/component_list.h"
#include "pipeline/model/node_event.h"
#include "pipeline/model/observation.h"
#include "tests/support/detector.h"

static const uint64_t SECOND = 1000000000, MILLISECOND = 1000000;
static const uint64_t BASE = UINT64_C(1794992400) * 1000000000;
enum { VENDOR_NVIDIA = 0x10de, VENDOR_MELLANOX = 0x15b3 };

static struct detector detector;
static pci_address gpu, port, nic;

static pci_address address_of(const char *text) {
    pci_address address;
    ck_assert(pci_parse(slice_of(text), &address));
    return address;
}

static uint32_t spelling; // of every field that comes

static void setup(void) {
    spelling = 0;
    detector = detector_open(&processor_pcie_aer);
    gpu = address_of("0000:9b:00.0");
    port = address_of("0000:9a:01.0");
    nic = address_of("0000:c1:00.1");
}

static void teardown(void) {
    detector_close(&detector);
    metrics_release();
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static void expect(unsigned count) {
    ck_assert_msg(detector.verdict_count == count, "%u verdicts, not %u: %s",
                  detector.verdict_count, count, detector_lines(&detector));
}

static void says(const char *part) {
    const char *lines = detector_lines(&detector);
    ck_assert_msg(strstr(lines, part) != NULL, "\"%s\" is not in %s", part, lines);
}

static void says_not(const char *part) {
    const char *lines = detector_lines(&detector);
    ck_assert_msg(strstr(lines, part) == NULL, "\"%s\" is in %s", part, lines);
}

static void feed_kernel(uint64_t at_ns, const struct kernel_line *line) {
    struct event event = {.time_ns = BASE + at_ns,
                          .node = intern(SLICE("node-a")),
                          .rank = RANK_NONE,
                          .kind = EVENT_KERNEL,
                          .kernel = line};
    detector_feed(&detector, &event, 1);
}

static struct kernel_line line_of(enum aer_line aer, pci_address address) {
    return (struct kernel_line){
        .kind = KERNEL_AER, .aer = aer, .address = address, .port = PCI_NONE, .bit = -1, .pid = -1};
}

static void feed_port(uint64_t at_ns, pci_address sender, enum aer_severity severity,
                      bool multiple) {
    struct kernel_line line = line_of(AER_PORT, sender);
    line.port = port;
    line.severity = severity;
    line.multiple = multiple;
    line.driver = SLICE("pcieport");
    feed_kernel(at_ns, &line);
}

static void feed_error(uint64_t at_ns, pci_address device, enum aer_severity severity) {
    struct kernel_line line = line_of(AER_ERROR, device);
    line.severity = severity;
    line.layer = SLICE("Transaction Layer");
    feed_kernel(at_ns, &line);
}

static void feed_status(uint64_t at_ns, pci_address device, uint16_t vendor, uint32_t status,
                        uint32_t mask) {
    struct kernel_line line = line_of(AER_STATUS, device);
    line.vendor = vendor;
    line.status = status;
    line.mask = mask;
    feed_kernel(at_ns, &line);
}

// What firmware reported of a device.
static void feed_firmware(uint64_t at_ns, pci_address device, const char *vendor) {
    const struct fact facts[] = {{.key = FACT_PCI, .address = device},
                                 {.key = FACT_VENDOR, .text = slice_of(vendor)}};
    const struct observation seen = {
        .kind = OBSERVATION_MACHINE_CHECK, .facts = facts, .fact_count = 2};
    struct event event = {.time_ns = BASE + at_ns,
                          .node = intern(SLICE("node-a")),
                          .rank = RANK_NONE,
                          .kind = EVENT_OBSERVATION,
                          .observation = &seen};
    detector_feed(&detector, &event, 1);
}

static void feed_bit(uint64_t at_ns, pci_address device, int32_t bit, const char *name) {
    struct kernel_line line = line_of(AER_BIT, device);
    line.bit = bit;
    line.detail = slice_of(name);
    feed_kernel(at_ns, &line);
}

static void feed_outcome(uint64_t at_ns, enum aer_line outcome, pci_address address) {
    struct kernel_line line = line_of(outcome, address);
    feed_kernel(at_ns, &line);
}

static void feed_xid(uint64_t at_ns, uint32_t code) {
    struct kernel_line line = {.kind = KERNEL_XID, .code = code, .address = gpu, .pid = -1};
    feed_kernel(at_ns, &line);
}

// A whole report of one device.
static void feed_report(uint64_t at_ns, pci_address device, uint16_t vendor,
                        enum aer_severity severity, uint32_t status, uint32_t mask) {
    feed_port(at_ns, device, severity, false);
    feed_error(at_ns + MILLISECOND, device, severity);
    feed_status(at_ns + 2 * MILLISECOND, device, vendor, status, mask);
}

static void feed_counters(uint64_t seconds, pci_address device, uint64_t correctable,
                          uint64_t nonfatal, uint64_t fatal) {
    struct aer_counters counters = {.address = device,
                                    .has_correctable = true,
                                    .has_nonfatal = true,
                                    .has_fatal = true,
                                    .correctable = {{SLICE("RxErr"), correctable}},
                                    .correctable_count = 1,
                                    .nonfatal_total = nonfatal,
                                    .fatal_total = fatal};
    struct event event = {.time_ns = BASE + seconds * SECOND,
                          .node = intern(SLICE("node-a")),
                          .rank = RANK_NONE,
                          .kind = EVENT_AER_COUNTERS,
                          .aer = &counters};
    detector_feed(&detector, &event, 1);
}

static void put(struct gpu_sample *sample, enum gpu_field field, int64_t value) {
    if (value < 0)
        return;
    sample->present |= UINT64_C(1) << field;
    sample->whole[field] = value;
    sample->value[field] = (double)value;
}

struct link {
    int64_t generation, width, max_generation, max_width, utilization, replays, xid;
};
static const struct link GOOD = {5, 16, 5, 16, -1, -1, -1};

static void feed_gpu(uint64_t seconds, const struct link *link) {
    struct gpu_sample sample = {.time_ns = BASE + seconds * SECOND,
                                .node = intern(SLICE("node-a")),
                                .uuid = SLICE("GPU-1"),
                                .address = gpu,
                                .index = 1};
    put(&sample, GPU_PCIE_LINK_GENERATION, link->generation);
    put(&sample, GPU_PCIE_LINK_WIDTH, link->width);
    put(&sample, GPU_PCIE_MAX_GENERATION, link->max_generation);
    put(&sample, GPU_PCIE_MAX_WIDTH, link->max_width);
    put(&sample, GPU_UTILIZATION_PERCENT, link->utilization);
    put(&sample, GPU_PCIE_REPLAYS, link->replays);
    put(&sample, GPU_XID, link->xid);
    for (enum gpu_field field = 0; field < GPU_FIELD_COUNT; field++)
        gpu_sample_spell(&sample, field, spelling);
    struct gpu_scrape scrape = {&sample, 1};
    struct event event = {.time_ns = sample.time_ns,
                          .node = sample.node,
                          .rank = RANK_NONE,
                          .kind = EVENT_GPU_SAMPLE,
                          .gpus = &scrape};
    detector_feed(&detector, &event, 1);
}

START_TEST(fatal_then_79) {
    detector_start(&detector);
    feed_report(0, gpu, VENDOR_NVIDIA, AER_FATAL, 1u << 18, 0);
    feed_bit(3 * MILLISECOND, gpu, 18, "MalfTLP");
    feed_outcome(300 * MILLISECOND, AER_FAILED, gpu);
    feed_outcome(950 * MILLISECOND, AER_FAILED, port);
    feed_xid(1400 * MILLISECOND, 79);
    detector_finish(&detector);
    expect(1);
    says("\"kind\":\"uncorrectable_fatal\"");
    says("\"severity\":\"critical\"");
    says("\"confidence\":95");
    says("\"action\":\"drain_node\"");
    says("aer:node-a:0000:9b:00.0:fatal:1794992400000000000");
    says("fatal error: MalfTLP; recovery failed");
    says("xid:node-a:0000:9b:00:79:1794992401400000000");
    says("{\"kind\":\"pci_port\",\"name\":\"node-a/0000:9a:01.0\",\"role\":\"suspect\"}");
    says("(MalfTLP); recovery failed; the GPU was lost 1.40 s after it (Xid 79)");
}
END_TEST

START_TEST(xid_79_too_late_or_of_another_code) {
    detector_start(&detector);
    feed_report(0, gpu, VENDOR_NVIDIA, AER_NONFATAL, 1u << 14, 0);
    feed_xid(5 * SECOND, 31);
    feed_xid(61 * SECOND, 79);
    detector_finish(&detector);
    expect(1);
    says("\"severity\":\"error\"");
    says("\"action\":\"check_link\"");
    says_not("xid:");
}
END_TEST

START_TEST(nonfatal_with_xid_is_critical) {
    detector_start(&detector);
    feed_report(0, gpu, VENDOR_NVIDIA, AER_NONFATAL, 1u << 14, 0);
    feed_xid(59 * SECOND, 167);
    detector_finish(&detector);
    expect(1);
    says("\"kind\":\"uncorrectable_nonfatal\"");
    says("\"severity\":\"critical\"");
    says("\"confidence\":90");
    says("\"nvidia.xid.code\":\"167\"");
}
END_TEST

START_TEST(xid_by_the_gauge) {
    detector_start(&detector);
    struct link link = GOOD;
    link.xid = 31;
    feed_gpu(0, &link);
    feed_counters(0, gpu, 0, 0, 0);
    feed_counters(30, gpu, 0, 0, 1);
    link.xid = 79;
    spelling = 1;
    feed_gpu(40, &link);
    spelling = 0;
    feed_gpu(70, &link);
    detector_finish(&detector);
    expect(1);
    says("dcgm:node-a:GPU-1:DCGM_FI_DEV_XID_ERRORS:1794992440000000000");
    says("Xid 79 (DCGM field 230): the GPU is gone");
    says("\"action\":\"drain_node\"");
}
END_TEST

static void feed_storm(uint64_t minutes, uint64_t a_minute) {
    for (uint64_t minute = 0; minute <= minutes; minute++) {
        feed_gpu(minute * 60, &GOOD);
        feed_counters(minute * 60, gpu, 1000 + minute * a_minute, 0, 0);
    }
}

START_TEST(storm_with_suppressed_lines) {
    detector_start(&detector);
    feed_storm(6, 32);
    feed_report(70 * SECOND, gpu, VENDOR_NVIDIA, AER_CORRECTABLE, 0x41, 0xa000);
    struct kernel_line suppressed = line_of(AER_SUPPRESSED, port);
    feed_kernel(80 * SECOND, &suppressed);
    detector_finish(&detector);
    expect(1);
    says("\"kind\":\"correctable_storm\"");
    says("\"severity\":\"warning\"");
    says("\"completeness\":\"full\"");
    says("\"confidence\":80");
    says("32 corrected errors a minute (RxErr, BadTLP); a healthy one has at most 31");
    says("sysfs:node-a:0000:9b:00.0:aer_dev_correctable:1794992460000000000");
    says("sysfs:node-a:0000:9b:00.0:aer_dev_correctable:1794992760000000000");
}
END_TEST

START_TEST(limit_of_the_link) {
    static const struct {
        struct link link;
        uint64_t limit;
    } rows[] = {{{5, 16, 5, 16, -1, -1, -1}, 31}, {{1, 16, 4, 16, 0, -1, -1}, 16},
                {{3, 8, 3, 8, -1, -1, -1}, 4},    {{6, 16, 6, 16, -1, -1, -1}, 62},
                {{1, 1, 1, 1, -1, -1, -1}, 1},    {{-1, -1, -1, -1, -1, -1, -1}, 31}};
    detector_start(&detector);
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
        for (unsigned over = 0; over < 2; over++) {
            struct detector other = detector;
            detector = detector_open(&processor_pcie_aer);
            detector_start(&detector);
            feed_gpu(0, &rows[i].link);
            for (uint64_t minute = 0; minute <= 3; minute++)
                feed_counters(minute * 60, gpu, minute * (rows[i].limit + over), 0, 0);
            detector_finish(&detector);
            expect(over);
            detector_close(&detector);
            detector = other;
        }
}
END_TEST

START_TEST(one_minute_is_no_storm) {
    detector_start(&detector);
    for (uint64_t minute = 0; minute <= 10; minute++)
        feed_counters(minute * 60, gpu, minute / 2 * 1000, 0, 0);
    detector_finish(&detector);
    expect(0);
}
END_TEST

START_TEST(storm_ends) {
    detector_start(&detector);
    for (uint64_t minute = 0; minute <= 12; minute++) {
        feed_counters(minute * 60, gpu, (minute < 6 ? minute : 6) * 500, 0, 0);
        detector_judge(&detector, BASE + minute * 60 * SECOND, false);
    }
    expect(2);
    says("\"state\":\"resolved\"");
}
END_TEST

// The driver was loaded anew in the middle: what was counted before stays counted.
START_TEST(storm_goes_on_when_its_counter_falls) {
    detector_start(&detector);
    for (uint64_t minute = 0; minute < 3; minute++)
        feed_counters(60 * minute, gpu, 1000 + 500 * minute, 0, 0);
    feed_counters(180, gpu, 100, 0, 0);
    feed_counters(240, gpu, 600, 0, 0);
    detector_finish(&detector);
    expect(1);
    says("500 corrected errors a minute, 1500 in all");
}
END_TEST

START_TEST(storm_by_replays_and_dense_scrapes) {
    detector_start(&detector);
    for (uint64_t at = 0; at <= 300; at += 5) {
        struct link link = GOOD;
        link.replays = (int64_t)at * 2; // 120 a minute
        spelling = at < 100 ? 2 : 1;
        feed_gpu(at, &link);
    }
    detector_finish(&detector);
    expect(1);
    says("DCGM_FI_DEV_PCIE_REPLAY_COUNTER:1794992460000000000");
    says("replays (DCGM_FI_DEV_PCIE_REPLAY_TOTAL)");
    says("120 replays a minute, 600 in all (DCGM field 202)");
}
END_TEST

START_TEST(storm_in_the_log_alone) {
    detector_start(&detector);
    for (uint64_t i = 0; i < 300; i++)
        feed_report(i * SECOND, gpu, VENDOR_NVIDIA, AER_CORRECTABLE, 1, 0);
    detector_finish(&detector);
    expect(1);
    says("\"kind\":\"correctable_storm\"");
    says("\"completeness\":\"partial\"");
    says("at least 60 corrected errors a minute");
    // It begins with its first line.
    says("\"start_time_unix_nano\":\"1794992400000000000\"");
    says(", 286 in all");
}
END_TEST

START_TEST(baseline_and_reset) {
    detector_start(&detector);
    feed_counters(0, gpu, 1000000, 50, 3);
    feed_counters(60, gpu, 1000001, 50, 3);
    feed_counters(120, gpu, 0, 0, 0);
    feed_counters(180, gpu, 5, 0, 0);
    feed_counters(240, gpu, 9, 0, 0);
    detector_finish(&detector);
    expect(0);
}
END_TEST

START_TEST(port_only) {
    detector_start(&detector);
    feed_port(0, nic, AER_NONFATAL, false);
    detector_finish(&detector);
    expect(1);
    says("\"completeness\":\"partial\"");
    says("\"confidence\":50");
    says("{\"kind\":\"pci_device\",\"name\":\"node-a/0000:c1:00.1\",\"role\":\"suspect\"}");
    says("nonfatal error: no details");
    says_not("culprit\"}");
}
END_TEST

// An Xid of the same address speaks against the GPU, not against its port.
START_TEST(port_only_and_the_gpu_is_gone) {
    detector_start(&detector);
    feed_port(0, gpu, AER_FATAL, false);
    feed_xid(700 * MILLISECOND, 79);
    detector_finish(&detector);
    expect(1);
    says("{\"kind\":\"gpu\",\"name\":\"node-a/0000:9b:00\",\"role\":\"culprit\"}");
    says("\"completeness\":\"partial\"");
    says("\"confidence\":95");
}
END_TEST

static void feed_driver(uint64_t at_ns, pci_address device, const char *driver) {
    struct kernel_line line = line_of(AER_ERROR, device);
    line.severity = AER_FATAL;
    line.driver = slice_of(driver);
    feed_kernel(at_ns, &line);
    feed_status(at_ns + MILLISECOND, device, 0, 1u << 5, 0);
}

START_TEST(the_driver_says_what_it_is) {
    detector_start(&detector);
    feed_driver(0, nic, "mlx5_core");
    feed_driver(SECOND, gpu, "nvidia");
    detector_finish(&detector);
    expect(2);
    says("{\"kind\":\"nic\",\"name\":\"node-a/0000:c1:00.1\",\"role\":\"culprit\"}");
    says("{\"kind\":\"gpu\",\"name\":\"node-a/0000:9b:00\",\"role\":\"culprit\"}");
}
END_TEST

START_TEST(the_rank_map_says_what_is_a_gpu) {
    struct rank_place place = {.rank = 3, .node = intern(SLICE("node-a")), .address = gpu};
    struct event event = {.time_ns = BASE, .rank = 3, .kind = EVENT_RANK_MAP, .place = &place};
    detector_start(&detector);
    feed_driver(SECOND, gpu, "vfio-pci");
    detector_feed(&detector, &event, 1);
    detector_finish(&detector);
    expect(1);
    says("{\"kind\":\"gpu\",\"name\":\"node-a/0000:9b:00\",\"role\":\"culprit\"}");
}
END_TEST

// Two jobs' rank maps without times, of files of any age: it is a GPU, of nobody knows which job.
START_TEST(the_age_of_a_rank_map_names_no_job) {
    struct rank_place place = {.rank = 3, .node = intern(SLICE("node-a")), .address = gpu};
    detector_start(&detector);
    feed_driver(SECOND, gpu, "vfio-pci");
    for (int job = 0; job < 2; job++) {
        struct event event = {.time_ns = BASE + (job == _i ? 0 : 3600 * SECOND),
                              .timeless = true,
                              .rank = 3,
                              .job = intern(job == 0 ? SLICE("gpt") : SLICE("llama")),
                              .kind = EVENT_RANK_MAP,
                              .place = &place};
        detector_feed(&detector, &event, 1);
    }
    detector_judge(&detector, BASE + 60 * SECOND, false);
    expect(1);
    says("{\"kind\":\"gpu\",\"name\":\"node-a/0000:9b:00\",\"role\":\"culprit\"}");
    ck_assert_ptr_null(strstr(detector_lines(&detector), "job_id"));
}
END_TEST

// The gravest of what is wrong with a device; the rest is its evidence, and moves no time.
START_TEST(one_verdict_a_device) {
    detector_start(&detector);
    for (uint64_t i = 0; i < 10; i++)
        feed_counters(i * 60, gpu, i * 100, 0, 0);
    feed_report(9 * 60 * SECOND, gpu, VENDOR_NVIDIA, AER_FATAL, 1u << 18, 0);
    detector_finish(&detector);
    expect(1);
    says("\"kind\":\"uncorrectable_fatal\"");
    says("first minute with more than 31 corrected errors");
    says("\"start_time_unix_nano\":\"1794992940000000000\"");
}
END_TEST

START_TEST(errors_of_a_port_itself) {
    detector_start(&detector);
    struct kernel_line line = line_of(AER_ERROR, port);
    line.severity = AER_FATAL;
    line.driver = SLICE("pcieport");
    feed_kernel(0, &line);
    feed_status(MILLISECOND, port, 0x1022, 1u << 5, 0);
    detector_finish(&detector);
    expect(1);
    says("{\"kind\":\"pci_port\",\"name\":\"node-a/0000:9a:01.0\",\"role\":\"suspect\"}");
    says("\"confidence\":55");
    says_not("0000:9b:00");
}
END_TEST

START_TEST(rare_and_masked) {
    detector_start(&detector);
    for (uint64_t i = 0; i < 6; i++)
        feed_report(i * 600 * SECOND, gpu, VENDOR_NVIDIA, AER_CORRECTABLE, 1, 0xa000);
    feed_report(100 * SECOND, nic, VENDOR_MELLANOX, AER_CORRECTABLE, 0x2000, 0x2000);
    feed_report(200 * SECOND, nic, VENDOR_MELLANOX, AER_FATAL, 0x100000, 0x100000);
    detector_finish(&detector);
    expect(0);
}
END_TEST

START_TEST(inaccessible_registers_are_no_details) {
    detector_start(&detector);
    feed_report(0, gpu, VENDOR_NVIDIA, AER_FATAL, 0, 0);
    detector_finish(&detector);
    expect(1);
    says("no details");
    says("\"completeness\":\"partial\"");
}
END_TEST

START_TEST(degraded_link) {
    static const struct link narrow = {5, 8, 5, 16, -1, -1, -1};
    static const struct link slow_busy = {1, 16, 5, 16, 90, -1, -1};
    static const struct link slow_idle = {1, 16, 5, 16, 3, -1, -1};
    static const struct link slow_unknown = {1, 16, 5, 16, -1, -1, -1};
    detector_start(&detector);
    feed_gpu(0, &slow_idle);
    feed_gpu(30, &slow_unknown);
    feed_gpu(60, &slow_idle);
    feed_gpu(90, &slow_busy); // once is no state
    feed_gpu(120, &GOOD);
    feed_gpu(150, &GOOD);
    detector_finish(&detector);
    expect(0);
    feed_gpu(180, &narrow);
    spelling = 1;
    feed_gpu(210, &narrow);
    detector_finish(&detector);
    expect(1);
    says("\"kind\":\"link_degraded\"");
    says("8 of 16 lanes (DCGM_FI_DEV_PCIE_LINK_WIDTH)");
    says("still so (DCGM field 238)");
    says("dcgm:node-a:GPU-1:DCGM_FI_DEV_PCIE_LINK_WIDTH:1794992580000000000");
    says("\"confidence\":75");
    detector_lines_reset(&detector);
    feed_gpu(240, &GOOD);
    feed_gpu(270, &GOOD);
    detector_finish(&detector);
    expect(1);
    says("\"state\":\"resolved\"");
    detector_lines_reset(&detector);
    feed_gpu(300, &slow_busy);
    feed_gpu(330, &slow_idle); // says nothing
    feed_gpu(360, &slow_busy);
    detector_finish(&detector);
    expect(1);
    says("generation 1 of 5");
}
END_TEST

// A width of none is that of a GPU that does not answer, and one without the most it could be says
// nothing: neither that the link is bad, nor that it is well again.
START_TEST(link_that_is_not_known) {
    static const struct link gone = {5, 0, -1, 16, -1, -1, -1};
    static const struct link no_limit = {-1, 16, -1, -1, -1, -1, -1};
    static const struct link narrow = {5, 8, 5, 16, -1, -1, -1};
    detector_start(&detector);
    feed_gpu(0, &gone);
    feed_gpu(30, &gone);
    detector_finish(&detector);
    expect(0);
    feed_gpu(60, &narrow);
    feed_gpu(90, &narrow);
    detector_finish(&detector);
    expect(1);
    detector_lines_reset(&detector);
    feed_gpu(120, &no_limit);
    feed_gpu(150, &no_limit);
    detector_finish(&detector);
    expect(0);
}
END_TEST

START_TEST(nic_recovered) {
    detector_start(&detector);
    feed_report(0, nic, VENDOR_MELLANOX, AER_NONFATAL, 1u << 14, 0);
    feed_outcome(400 * MILLISECOND, AER_RECOVERED, port);
    detector_finish(&detector);
    expect(1);
    says("{\"kind\":\"nic\",\"name\":\"node-a/0000:c1:00.1\",\"role\":\"culprit\"}");
    says("\"action\":\"monitor\"");
    says("it was recovered");
    says("\"severity\":\"error\"");
}
END_TEST

START_TEST(recovered_then_again) {
    detector_start(&detector);
    feed_report(0, nic, VENDOR_MELLANOX, AER_NONFATAL, 1u << 14, 0);
    feed_outcome(400 * MILLISECOND, AER_RECOVERED, port);
    feed_report(100 * SECOND, nic, VENDOR_MELLANOX, AER_FATAL, 1u << 4, 0);
    detector_finish(&detector);
    expect(1);
    says("\"kind\":\"uncorrectable_fatal\"");
    says("\"action\":\"check_link\"");
    says("aer:node-a:0000:c1:00.1:nonfatal:1794992400000000000");
    says("aer:node-a:0000:c1:00.1:fatal:1794992500000000000");
}
END_TEST

START_TEST(recovery_of_another_port) {
    detector_start(&detector);
    feed_report(0, nic, VENDOR_MELLANOX, AER_NONFATAL, 1u << 14, 0);
    feed_outcome(400 * MILLISECOND, AER_FAILED, address_of("0000:00:01.0"));
    detector_finish(&detector);
    says("\"action\":\"check_link\"");
}
END_TEST

START_TEST(firmware_first_lines) {
    detector_start(&detector);
    feed_status(0, gpu, 0, 1u << 18, 0); // aer_status, aer_mask
    feed_bit(MILLISECOND, gpu, 18, "Malformed TLP");
    struct kernel_line fatal = line_of(AER_FATAL_BITS, gpu);
    fatal.status = 1u << 18;
    feed_kernel(2 * MILLISECOND, &fatal);
    // Corrected ones have no such line.
    feed_status(SECOND, nic, 0, 1, 0);
    feed_bit(SECOND + MILLISECOND, nic, 0, "RxErr");
    detector_finish(&detector);
    expect(1);
    says("\"kind\":\"uncorrectable_fatal\"");
    says("MalfTLP");
}
END_TEST

START_TEST(counters_without_log) {
    detector_start(&detector);
    feed_counters(0, gpu, 0, 7, 1);
    feed_counters(60, gpu, 0, 7, 1);
    feed_counters(120, gpu, 0, 7, 2);
    detector_finish(&detector);
    expect(1);
    says("\"kind\":\"uncorrectable_fatal\"");
    says("\"completeness\":\"partial\"");
    says("\"confidence\":70");
    says("sysfs:node-a:0000:9b:00.0:aer_dev_fatal:1794992520000000000");
    says("the counter of fatal errors rose by 1");
}
END_TEST

START_TEST(counters_confirm_the_log) {
    detector_start(&detector);
    feed_counters(0, gpu, 0, 0, 0);
    feed_report(30 * SECOND, gpu, VENDOR_NVIDIA, AER_FATAL, 1u << 4, 0);
    feed_counters(60, gpu, 0, 0, 1);
    detector_finish(&detector);
    expect(1);
    says("\"completeness\":\"full\"");
    says("\"confidence\":85");
    says("\"culprit.reports\":\"1\"");
    says("\"role\":\"context\"");
}
END_TEST

START_TEST(interleaved_reports_of_two_devices) {
    detector_start(&detector);
    feed_port(0, gpu, AER_FATAL, false);
    feed_port(MILLISECOND, nic, AER_NONFATAL, false);
    feed_error(2 * MILLISECOND, gpu, AER_FATAL);
    feed_error(3 * MILLISECOND, nic, AER_NONFATAL);
    feed_status(4 * MILLISECOND, nic, VENDOR_MELLANOX, 1u << 14, 0);
    feed_status(5 * MILLISECOND, gpu, VENDOR_NVIDIA, 1u << 18, 0);
    detector_finish(&detector);
    expect(2);
    const char *lines = detector_lines(&detector);
    const char *first = strstr(lines, "MalfTLP"), *second = strstr(lines, "CmpltTO");
    ck_assert(first != NULL && second != NULL && first < second);
    says("\"kind\":\"nic\"");
    says("\"kind\":\"gpu\"");
}
END_TEST

START_TEST(multiple_prefix) {
    detector_start(&detector);
    feed_port(0, gpu, AER_FATAL, true);
    feed_status(MILLISECOND, gpu, VENDOR_NVIDIA, 1u << 18 | 1u << 4, 0);
    detector_finish(&detector);
    expect(1);
    says("multiple fatal errors: DLP, MalfTLP");
}
END_TEST

START_TEST(tail_cut_in_the_middle_of_a_report) {
    detector_start(&detector);
    // The first lines are missing: the name tells the register.
    feed_status(0, gpu, VENDOR_NVIDIA, 1u << 18, 0);
    feed_bit(MILLISECOND, gpu, 18, "MalfTLP");
    // The last lines are missing.
    feed_port(SECOND, nic, AER_NONFATAL, false);
    feed_error(SECOND + MILLISECOND, nic, AER_NONFATAL);
    // A bit alone that is a corrected one.
    feed_bit(2 * SECOND, address_of("0000:01:00.0"), 6, "BadTLP");
    detector_finish(&detector);
    expect(2);
    says("\"kind\":\"uncorrectable_fatal\"");
    says("no details");
}
END_TEST

START_TEST(two_reports_a_second_apart) {
    detector_start(&detector);
    feed_report(0, gpu, VENDOR_NVIDIA, AER_NONFATAL, 1u << 14, 0);
    feed_report(51 * MILLISECOND, gpu, VENDOR_NVIDIA, AER_NONFATAL, 1u << 12, 0);
    detector_finish(&detector);
    expect(1);
    says("\"culprit.reports\":\"2\"");
    says("\"culprit.aer_bits\":\"TLP, CmpltTO\"");
}
END_TEST

START_TEST(an_open_report_waits_for_its_lines) {
    detector_start(&detector);
    feed_port(0, gpu, AER_FATAL, false);
    detector_judge(&detector, BASE + 10 * MILLISECOND, false);
    expect(0);
    feed_status(20 * MILLISECOND, gpu, VENDOR_NVIDIA, 1u << 18, 0);
    feed_port(100 * MILLISECOND, nic, AER_CORRECTABLE, false);
    detector_judge(&detector, BASE + 100 * MILLISECOND, false);
    expect(1);
    says("MalfTLP");
}
END_TEST

// Live, a storm of which nothing is read any more is given up; over inputs that end it stays.
START_TEST(silence_is_no_end) {
    bool live = _i == 1;
    detector_start_as(&detector, !live);
    for (uint64_t minute = 0; minute <= 6; minute++)
        feed_counters(minute * 60, gpu, minute * 500, 0, 0);
    feed_port(90000 * SECOND, nic, AER_CORRECTABLE, false);
    detector_finish(&detector);
    expect(1);
    says(live ? "\"state\":\"resolved\"" : "\"state\":\"open\"");
}
END_TEST

START_TEST(held_for_a_day) {
    detector_start_as(&detector, false);
    feed_report(0, gpu, VENDOR_NVIDIA, AER_FATAL, 1u << 18, 0);
    detector_judge(&detector, BASE + SECOND, false);
    feed_port(3600 * SECOND, nic, AER_CORRECTABLE, false);
    detector_judge(&detector, BASE + 3600 * SECOND, false);
    expect(1);
    feed_port(90000 * SECOND, nic, AER_CORRECTABLE, false);
    detector_judge(&detector, BASE + 90000 * SECOND, false);
    expect(2);
    says("\"state\":\"resolved\"");
}
END_TEST

START_TEST(two_functions_of_one_device_are_two) {
    detector_start(&detector);
    pci_address other = address_of("0000:c1:00.0");
    for (uint64_t minute = 0; minute <= 5; minute++) {
        feed_counters(minute * 60, nic, minute * 100, 0, 0);
        feed_counters(minute * 60, other, 7, 0, 0);
    }
    detector_finish(&detector);
    expect(1);
    says("0000:c1:00.1");
}
END_TEST

// What began at one moment is told by address, whichever was heard first.
START_TEST(two_devices_at_one_moment) {
    detector_start(&detector);
    pci_address devices[2] = {_i == 0 ? gpu : nic, _i == 0 ? nic : gpu};
    for (uint64_t minute = 0; minute <= 5; minute++)
        for (int i = 0; i < 2; i++)
            feed_counters(minute * 60, devices[i], minute * 100, 0, 0);
    detector_finish(&detector);
    expect(2);
    const char *lines = detector_lines(&detector);
    const char *first = strstr(lines, "0000:9b:00"), *second = strstr(lines, "0000:c1:00");
    ck_assert(first != NULL && second > first);
}
END_TEST

START_TEST(bounds) {
    detector_set(&detector, "max_devices", "16");
    detector_set(&detector, "max_waiting", "1024");
    detector_start(&detector);
    for (uint64_t i = 0; i < 20000; i++)
        feed_report(i * SECOND, (i % 3000) << 8, VENDOR_NVIDIA,
                    i % 7 == 0 ? AER_FATAL : AER_CORRECTABLE, 1u << 4, 0);
    detector_finish(&detector);
    ck_assert_uint_lt(memory_figures().live_bytes, 16u << 20);
    const struct metric_family family = {.name = "culprit_detector_evicted_total",
                                         .help =
                                             "Entries that a detector forgot because a bound "
                                             "was reached.",
                                         .type = METRIC_COUNTER};
    ck_assert_uint_gt(metric_value(METRIC(&family, "detector", "pcie_aer")), 0);
}
END_TEST

START_TEST(nothing_is_allocated_in_steady_state) {
    detector_start(&detector);
    uint64_t before = 0;
    for (uint64_t minute = 0; minute <= 2000; minute++) {
        feed_gpu(minute * 60, &GOOD);
        feed_counters(minute * 60, gpu, minute * 100, 0, 0);
        feed_report(minute * 60 * SECOND, gpu, VENDOR_NVIDIA, AER_CORRECTABLE, 1, 0);
        feed_report(minute * 60 * SECOND, nic, VENDOR_MELLANOX, AER_NONFATAL, 1u << 14, 0);
        detector_judge(&detector, BASE + minute * 60 * SECOND, false);
        detector_lines_reset(&detector);
        if (minute == 1000)
            before = memory_figures().allocations;
    }
    ck_assert_uint_eq(memory_figures().allocations, before);
}
END_TEST

// Where firmware looks after errors, the kernel's own lines name no vendor.
START_TEST(firmware_says_what_it_is) {
    detector_start(&detector);
    feed_report(0, gpu, 0, AER_FATAL, 1u << 18, 0);
    feed_report(SECOND, nic, 0, AER_FATAL, 1u << 18, 0);
    feed_firmware(SECOND + MILLISECOND, nic, "0x15b3");
    feed_firmware(MILLISECOND, gpu, "0x10de");
    detector_finish(&detector);
    expect(2);
    says("{\"kind\":\"gpu\",\"name\":\"node-a/0000:9b:00\",\"role\":\"culprit\"}");
    says("{\"kind\":\"nic\",\"name\":\"node-a/0000:c1:00.1\",\"role\":\"culprit\"}");
}
END_TEST

START_TEST(what_is_no_vendor_says_nothing) {
    static const char *const words[] = {"0xffff", "0x0000", "10de", "0x110de", "0x10g0", "0x", ""};
    detector_start(&detector);
    feed_report(0, gpu, 0, AER_FATAL, 1u << 18, 0);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        feed_firmware(MILLISECOND, gpu, words[i]);
    detector_finish(&detector);
    expect(1);
    says("{\"kind\":\"pci_device\",\"name\":\"node-a/0000:9b:00.0\",\"role\":\"culprit\"}");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("pcie_aer");
    TCase *cases = tcase_create("rules");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, fatal_then_79);
    tcase_add_test(cases, xid_79_too_late_or_of_another_code);
    tcase_add_test(cases, nonfatal_with_xid_is_critical);
    tcase_add_test(cases, xid_by_the_gauge);
    tcase_add_test(cases, storm_with_suppressed_lines);
    tcase_add_test(cases, limit_of_the_link);
    tcase_add_test(cases, one_minute_is_no_storm);
    tcase_add_test(cases, storm_ends);
    tcase_add_test(cases, storm_goes_on_when_its_counter_falls);
    tcase_add_test(cases, storm_by_replays_and_dense_scrapes);
    tcase_add_test(cases, storm_in_the_log_alone);
    tcase_add_test(cases, baseline_and_reset);
    tcase_add_test(cases, port_only);
    tcase_add_test(cases, port_only_and_the_gpu_is_gone);
    tcase_add_test(cases, the_driver_says_what_it_is);
    tcase_add_test(cases, the_rank_map_says_what_is_a_gpu);
    tcase_add_loop_test(cases, the_age_of_a_rank_map_names_no_job, 0, 2);
    tcase_add_test(cases, one_verdict_a_device);
    tcase_add_test(cases, errors_of_a_port_itself);
    tcase_add_test(cases, rare_and_masked);
    tcase_add_test(cases, inaccessible_registers_are_no_details);
    tcase_add_test(cases, degraded_link);
    tcase_add_test(cases, link_that_is_not_known);
    tcase_add_test(cases, nic_recovered);
    tcase_add_test(cases, recovered_then_again);
    tcase_add_test(cases, recovery_of_another_port);
    tcase_add_test(cases, firmware_first_lines);
    tcase_add_test(cases, counters_without_log);
    tcase_add_test(cases, counters_confirm_the_log);
    tcase_add_test(cases, interleaved_reports_of_two_devices);
    tcase_add_test(cases, multiple_prefix);
    tcase_add_test(cases, tail_cut_in_the_middle_of_a_report);
    tcase_add_test(cases, two_reports_a_second_apart);
    tcase_add_test(cases, an_open_report_waits_for_its_lines);
    tcase_add_test(cases, held_for_a_day);
    tcase_add_loop_test(cases, silence_is_no_end, 0, 2);
    tcase_add_test(cases, two_functions_of_one_device_are_two);
    tcase_add_loop_test(cases, two_devices_at_one_moment, 0, 2);
    tcase_add_test(cases, firmware_says_what_it_is);
    tcase_add_test(cases, what_is_no_vendor_says_nothing);
    tcase_add_test(cases, bounds);
    tcase_add_test(cases, nothing_is_allocated_in_steady_state);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
