// SPDX-License-Identifier: Apache-2.0
// gpu_fault: which GPUs failed, what names the fault, and what it leaves to other detectors.
#include "cli/component_list.h"
#include "pipeline/model/observation.h"
#include "tests/processors/cluster_fixture.h"

static void setup(void) {
    fixture_begin(&processor_gpu_fault);
}

START_TEST(one_lost_gpu) {
    node_xid(&cluster, 100, "n1", "0000:9b:00", 79, "GPU has fallen off the bus.");
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines,
         "\"pattern\":\"gpu_fault\",\"kind\":\"gpu_lost\",\"state\":\"open\","
         "\"severity\":\"critical\",\"completeness\":\"full\",\"confidence\":90");
    says(lines,
         "GPU 0000:9b:00 of n1 was lost: Xid 79 (the driver cannot reach the GPU over PCIe)");
    says(lines, "\"action\":\"drain_node\"");
    says(lines,
         "{\"kind\":\"gpu\",\"name\":\"n1/0000:9b:00\",\"role\":\"culprit\"},"
         "{\"kind\":\"node\",\"name\":\"n1\",\"role\":\"suspect\"}");
    says(lines, "\"uid\":\"xid:n1:0000:9b:00:79:1794992500000000000\"");
    says(lines, "\"nvidia.xid.code\":\"79\"");
}
END_TEST

// Three lines make one event without a code: it counts as 79.
START_TEST(lost_without_a_code) {
    node_line(&cluster, 100, "n1", "0000:9b:00", KERNEL_GPU_LOST);
    const char *lines = run();
    says(lines, "\"kind\":\"gpu_lost\"");
    says(lines, "xid:n1:0000:9b:00:79:1794992500000000000");
}
END_TEST

START_TEST(without_a_node) {
    node_xid(&cluster, 100, NULL, "0000:9b:00", 79, "");
    const char *lines = run();
    says(lines, "\"completeness\":\"partial\"");
    says_not(lines, "\"kind\":\"node\"");
}
END_TEST

// Each GPU has its own; a gap of no more than `burst` does not part them.
START_TEST(bursts) {
    node_xid(&cluster, 100, "n1", "0000:9b:00", 119, "");
    node_xid(&cluster, 280, "n1", "0000:9b:00", 119, "");
    node_xid(&cluster, 460.1, "n1", "0000:9b:00", 119, "");
    node_xid(&cluster, 100, "n1", "0000:1b:00", 119, "");
    node_xid(&cluster, 100, "n2", "0000:9b:00", 119, "");
    run();
    ck_assert_uint_eq(detector.verdict_count, 4);
}
END_TEST

static const struct {
    uint32_t codes[3];
    uint32_t named;
    const char *kind;
} WORST[] = {
    {{119, 79, 119}, 79, "gpu_lost"},
    {{62, 119, 0}, 62, "gpu_error"},   // equally grave: the first
    {{109, 119, 0}, 119, "gpu_error"}, // an error, something critical
    {{8, 122, 109}, 109, "gpu_error"},
};

START_TEST(the_worst_names_it) {
    char want[64];
    for (int i = 0; i < 3; i++)
        if (WORST[_i].codes[i] != 0)
            node_xid(&cluster, 100 + i, "n1", "0000:9b:00", WORST[_i].codes[i], "");
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    snprintf(want, sizeof want, "\"nvidia.xid.code\":\"%u\"", WORST[_i].named);
    says(lines, want);
    says(lines, WORST[_i].kind);
    // All of them are evidence, and it began with the first.
    says(lines, "\"start_time_unix_nano\":\"1794992500000000000\"");
}
END_TEST

static const uint32_t NONE[] = {13, 31,  43,  45,  63,  68,
                                92, 137, 154, 171, 172, 12345, // no fault
                                48, 64,  94,  95,  140,        // hbm_ecc's
                                74, 144, 149, 150};            // fabric_link's

START_TEST(what_is_none) {
    node_xid(&cluster, 100, "n1", "0000:9b:00", NONE[_i], "NETIR_LINK_EVT  Fatal   XC0 i0");
    run();
    ck_assert_uint_eq(detector.verdict_count, 0);
}
END_TEST

START_TEST(programs_when_asked_for) {
    detector_set(&detector, "application", "true");
    node_xid(&cluster, 100, "n1", "0000:9b:00", 31, "")->pid = 4711;
    node_xid(&cluster, 100, "n1", "0000:1b:00", 45, "");
    node_xid(&cluster, 200, "n1", "0000:1b:00", 63, "");
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 2);
    says(lines, "\"kind\":\"application_xid\",\"state\":\"open\",\"severity\":\"info\"");
    says(lines, "\"action\":\"fix_workload\"");
    says(lines, "\"process.pid\":\"4711\"");
}
END_TEST

START_TEST(less_sure_of_what_a_program_can_cause) {
    node_xid(&cluster, 100, "n1", "0000:9b:00", 39, "");
    const char *lines = run();
    says(lines, "\"confidence\":65");
    says(lines, "Check the program as well");
}
END_TEST

START_TEST(driver_asks_for_more) {
    node_xid(&cluster, 100, "n1", "0000:9b:00", 119, "");
    node_xid(&cluster, 101, "n1", "0000:9b:00", 154,
             "changed from 0x0 (None) to 0x2 (Node Reboot)");
    node_xid(&cluster, 102, "n1", "0000:1b:00", 154, "changed from 0x0 (None) to 0x1 (GPU Reset)");
    const char *lines = run();
    says(lines, "\"action\":\"drain_node\"");
    says(lines, "asks for a reboot");
}
END_TEST

// Context is what is said shortly before and after; it makes no burst longer.
START_TEST(context_does_not_join) {
    node_xid(&cluster, 100, "n1", "0000:9b:00", 31, "");
    node_xid(&cluster, 250, "n1", "0000:9b:00", 119, "");
    node_xid(&cluster, 400, "n1", "0000:9b:00", 31, "");
    node_xid(&cluster, 500, "n1", "0000:9b:00", 119, "");
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 2);
    says(lines, ":31:1794992500000000000");
}
END_TEST

START_TEST(metric_alone_and_beside_a_line) {
    node_value(node_sample(&cluster, 30, "n1", "0000:45:00", "GPU-a"), GPU_XID, 0);
    node_value(node_sample(&cluster, 60, "n1", "0000:45:00", "GPU-a"), GPU_XID, 62);
    if (_i == 1)
        node_xid(&cluster, 50, "n1", "0000:45:00", 62, "");
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, _i == 1 ? "\"completeness\":\"full\",\"confidence\":90"
                        : "\"completeness\":\"partial\",\"confidence\":60");
    says(lines, "\"hw.id\":\"GPU-a\"");
    says(lines, _i == 1 ? "\"start_time_unix_nano\":\"1794992450000000000\""
                        : "\"start_time_unix_nano\":\"1794992460000000000\"");
}
END_TEST

// A sample tells of what happened after the one before, a line when it was.
START_TEST(a_sample_says_after_when) {
    node_value(node_sample(&cluster, 30, "n1", "0000:45:00", "GPU-a"), GPU_XID, 0);
    node_value(node_sample(&cluster, 60, "n1", "0000:45:00", "GPU-a"), GPU_XID, 62);
    if (_i == 1)
        node_xid(&cluster, 50, "n1", "0000:45:00", 62, "");
    detector_start(&detector);
    detector_feed(&detector, cluster.events, cluster.count);
    struct batch batch = {.arena = &detector.arena,
                          .newest_ns = detector.newest_ns,
                          .evaluate = true,
                          .as_of_ns = UINT64_MAX};
    detector.type->processor.consume(detector.instance, &batch);
    ck_assert_uint_eq(batch.verdicts.count, 1);
    ck_assert_uint_eq(batch.verdicts.items[0].after_ns, _i == 1 ? 0 : cluster_time(30));
    arena_reset(&detector.arena);
}
END_TEST

// -- Several GPUs ---------------------------------------------------------------------------------

static const char *const GPUS[] = {"0000:1b:00", "0000:29:00", "0000:9b:00"};

static void lose(double seconds, const char *node, const char *gpu) {
    node_xid(&cluster, seconds, node, gpu, 79, "GPU has fallen off the bus.");
}

START_TEST(lost_at_once_is_one_fault_of_the_node) {
    for (int i = 0; i < 3; i++)
        lose(100 + 20 * i, "n1", GPUS[i]);
    lose(110, "n2", GPUS[0]); // of another node
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 2);
    says(lines,
         "\"kind\":\"gpus_lost\",\"state\":\"open\",\"severity\":\"critical\","
         "\"completeness\":\"full\",\"confidence\":90");
    says(lines, "3 GPUs of n1 were lost together: Xid 79");
    says(lines,
         "{\"kind\":\"node\",\"name\":\"n1\",\"role\":\"culprit\"},"
         "{\"kind\":\"gpu\",\"name\":\"n1/0000:1b:00\",\"role\":\"suspect\"},"
         "{\"kind\":\"gpu\",\"name\":\"n1/0000:29:00\",\"role\":\"suspect\"},"
         "{\"kind\":\"gpu\",\"name\":\"n1/0000:9b:00\",\"role\":\"suspect\"}");
    says(lines, "xid:n1:0000:9b:00:79:1794992540000000000");
    says(lines, "GPU 0000:1b:00 of n2 was lost");
}
END_TEST

START_TEST(lost_apart_are_two) {
    lose(100, "n1", GPUS[0]);
    lose(160.1, "n1", GPUS[1]);
    lose(9000, "n1", GPUS[2]);
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 3);
    says_not(lines, "gpus_lost");
}
END_TEST

// An error of another GPU at the time is no loss, and one GPU that is lost twice is one GPU.
START_TEST(not_lost_together) {
    detector_set(&detector, "burst", "1s");
    lose(100, "n1", GPUS[0]);
    lose(130, "n1", GPUS[0]);
    node_xid(&cluster, 100, "n1", GPUS[1], 119, "");
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 3);
    says_not(lines, "gpus_lost");
}
END_TEST

static void judge_now(void) {
    detector_lines_reset(&detector);
    detector_judge(&detector, UINT64_MAX, false);
}

// The second comes to the first, whose id stays; what was told of the second is taken back.
START_TEST(another_loss_joins_what_was_told) {
    lose(100, "n1", GPUS[1]);
    detector_start(&detector);
    detector_feed(&detector, cluster.events, 1);
    judge_now();
    char id[48];
    snprintf(id, sizeof id, "%.32s", strstr(detector_lines(&detector), "\"id\":"));
    lose(105, "n1", GPUS[0]);
    lose(300, "n1", GPUS[2]);
    detector_feed(&detector, &cluster.events[1], 2);
    judge_now();
    ck_assert_uint_eq(detector.verdict_count, 2);
    says(detector_lines(&detector), id);
    says(detector_lines(&detector), "\"kind\":\"gpus_lost\",\"state\":\"updated\"");
    says(detector_lines(&detector), "\"kind\":\"gpu_lost\",\"state\":\"open\"");
    // A line that comes late shows that the third went with them, too.
    lose(150, "n1", GPUS[2]);
    detector_feed(&detector, &cluster.events[3], 1);
    judge_now();
    ck_assert_uint_eq(detector.verdict_count, 2);
    says(detector_lines(&detector), id);
    says(detector_lines(&detector), "3 GPUs of n1");
    says(detector_lines(&detector), "\"state\":\"resolved\"");
    schema_check_lines(SCHEMA, detector_lines(&detector));
    judge_now();
    ck_assert_uint_eq(detector.verdict_count, 0);
}
END_TEST

START_TEST(together_over_a_restart) {
    lose(100, "n1", GPUS[0]);
    lose(101, "n1", GPUS[1]);
    detector_start(&detector);
    detector_feed(&detector, cluster.events, cluster.count);
    judge_now();
    struct detector old = detector;
    detector = detector_open(&processor_gpu_fault);
    detector_start(&detector);
    detector_move_state(&old, &detector);
    detector_close(&old);
    judge_now();
    ck_assert_uint_eq(detector.verdict_count, 0);
}
END_TEST

// Live: what is old is forgotten, each loss at its own time; what was said stays.
START_TEST(together_is_forgotten_together) {
    struct component_context context = {.id = "gpu_fault", .site = "gpu_fault"};
    struct error error = {0};
    ck_assert_int_eq(
        component_start(detector.type, detector.instance, detector.config, &context, &error),
        STATUS_OK);
    lose(100, "n1", GPUS[0]);
    lose(150, "n1", GPUS[1]);
    detector_feed(&detector, cluster.events, cluster.count);
    judge_now();
    ck_assert_uint_eq(detector.verdict_count, 1);
    detector_lines_reset(&detector);
    for (int n = 0; n < 12; n++) {
        detector.newest_ns = cluster_time(2060 + 10 * n);
        detector_judge(&detector, UINT64_MAX, false);
    }
    ck_assert_uint_eq(detector.verdict_count, 0);
}
END_TEST

// -- AMD ------------------------------------------------------------------------------------------

static struct fact facts[256][3];
static struct observation said[256];

static void amd(double seconds, enum observation_kind kind, const char *state, const char *code) {
    uint32_t at = cluster.count, count = 0;
    facts[at][count++] = (struct fact){.key = FACT_GPU, .address = node_pci("0000:68:00")};
    if (state != NULL)
        facts[at][count++] = (struct fact){.key = FACT_STATE, .text = slice_of(state)};
    if (code != NULL)
        facts[at][count++] = (struct fact){.key = FACT_CODE, .text = slice_of(code)};
    // A list stands in the order of its keys.
    if (count == 3 && facts[at][1].key > facts[at][2].key) {
        struct fact fact = facts[at][1];
        facts[at][1] = facts[at][2];
        facts[at][2] = fact;
    }
    said[at] = (struct observation){.kind = kind, .facts = facts[at], .fact_count = count};
    node_event_add(&cluster, seconds, "mi1", EVENT_OBSERVATION)->observation = &said[at];
}

START_TEST(amd_hang_and_reset) {
    amd(100, OBSERVATION_GPU_HANG, NULL, NULL);
    amd(101, OBSERVATION_GPU_RESET, "begin", NULL);
    amd(105, OBSERVATION_GPU_RESET, "end", "0");
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "\"kind\":\"gpu_error\",\"state\":\"open\",\"severity\":\"error\"");
    says(lines, "GPU 0000:68:00 of mi1 failed: a hang");
    says(lines, "\"uid\":\"amdgpu:mi1:0000:68:00:gpu_hang:1794992500000000000\"");
    says(lines, "which succeeded (0)");
}
END_TEST

START_TEST(amd_reset_that_failed) {
    amd(100, OBSERVATION_GPU_RESET, "end", "-62");
    const char *lines = run();
    says(lines, "\"kind\":\"gpu_lost\"");
    says(lines, "\"action\":\"drain_node\"");
}
END_TEST

START_TEST(amd_reset_alone_is_none) {
    amd(100, OBSERVATION_GPU_RESET, "begin", NULL);
    amd(104, OBSERVATION_GPU_RESET, "end", NULL);
    run();
    ck_assert_uint_eq(detector.verdict_count, 0);
}
END_TEST

// Somebody asked for it, or the GPU hung: nothing says that it is well again.
START_TEST(amd_reset_that_does_not_end) {
    amd(100, OBSERVATION_GPU_RESET, "begin", NULL);
    amd(104, OBSERVATION_GPU_RESET, "end", NULL);
    amd(900, OBSERVATION_GPU_RESET, "begin", NULL);
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "\"kind\":\"gpu_error\"");
    says(lines, "began a GPU reset, and nothing says that it ended");
    says(lines, "\"uid\":\"amdgpu:mi1:0000:68:00:gpu_reset:1794993300000000000\"");
}
END_TEST

// A ring that was reset alone: the GPU is well. A reset of the whole GPU between says otherwise,
// and so does an end that comes too late.
START_TEST(amd_hang_that_is_over) {
    amd(100, OBSERVATION_GPU_HANG, NULL, NULL);
    amd(101, OBSERVATION_GPU_HANG, NULL, NULL);
    amd(103, OBSERVATION_GPU_HANG, "end", NULL);
    run();
    ck_assert_uint_eq(detector.verdict_count, 0);
}
END_TEST

START_TEST(amd_hang_and_more_than_its_end) {
    amd(100, OBSERVATION_GPU_HANG, NULL, NULL);
    amd(101, OBSERVATION_GPU_RESET, "begin", NULL);
    amd(103, OBSERVATION_GPU_HANG, "end", NULL);
    amd(900, OBSERVATION_GPU_HANG, NULL, NULL);
    amd(961, OBSERVATION_GPU_HANG, "end", NULL);
    run();
    ck_assert_uint_eq(detector.verdict_count, 2);
}
END_TEST

START_TEST(amd_hardware_error) {
    amd(100, OBSERVATION_GPU_HARDWARE_ERROR, NULL, "ERREVENT_ATHUB_INTERRUPT");
    const char *lines = run();
    says(lines, "\"severity\":\"critical\"");
    says(lines, "ERREVENT_ATHUB_INTERRUPT");
}
END_TEST

// -- What others tell of --------------------------------------------------------------------------

// An evaluation behind a detector whose verdict has this evidence.
static void judge_behind(const char *pattern, const char *uid, enum verdict_state state) {
    struct evidence evidence = {.uid = slice_of(uid), .role = EVIDENCE_CAUSE};
    struct verdict verdict = {
        .pattern = pattern, .state = state, .evidence = &evidence, .evidence_count = 1};
    snprintf(verdict.id, sizeof verdict.id, "%s:0123456789abcdef", pattern);
    struct batch batch = {.arena = &detector.arena,
                          .newest_ns = detector.newest_ns,
                          .evaluate = true,
                          .as_of_ns = UINT64_MAX};
    batch_append_verdict(&batch, &verdict);
    detector.type->processor.consume(detector.instance, &batch);
    // Not ours.
    batch.verdicts.items++;
    batch.verdicts.count--;
    detector_lines_reset(&detector);
    detector_keep(&detector, &batch);
    arena_reset(&detector.arena);
}

static const char UID_79[] = "xid:n1:0000:9b:00:79:1794992501000000000";

static void begin_lost(void) {
    node_xid(&cluster, 100, "n1", "0000:9b:00", 119, "");
    node_xid(&cluster, 101, "n1", "0000:9b:00", 79, "");
    detector_start(&detector);
    detector_feed(&detector, cluster.events, cluster.count);
}

static const char *const TELLERS[] = {"hbm_ecc", "pcie_aer", "xid_correlation"};

START_TEST(told_by_another) {
    begin_lost();
    judge_behind(TELLERS[_i], UID_79, VERDICT_OPEN);
    ck_assert_uint_eq(detector.verdict_count, 0);
    // It says so at later evaluations, or it does not: it remains told.
    detector_finish(&detector);
    ck_assert_uint_eq(detector.verdict_count, 0);
}
END_TEST

START_TEST(not_told_by_these) {
    begin_lost();
    judge_behind("nccl_hang", UID_79, VERDICT_OPEN);
    ck_assert_uint_eq(detector.verdict_count, 1);
    judge_behind("xid_correlation", "xid:n2:0000:9b:00:79:1794992501000000000", VERDICT_OPEN);
    ck_assert_uint_eq(detector.verdict_count, 0);
    judge_behind("xid_correlation", UID_79, VERDICT_RESOLVED);
    ck_assert_uint_eq(detector.verdict_count, 0);
}
END_TEST

// The verdict of an eviction comes minutes later; when it is taken back, the fault stands again.
START_TEST(handed_over_and_back) {
    begin_lost();
    judge_behind("nccl_hang", "other", VERDICT_OPEN);
    says(detector_lines(&detector), "\"state\":\"open\"");
    char id[48];
    snprintf(id, sizeof id, "%.32s", strstr(detector_lines(&detector), "\"id\":"));
    judge_behind("xid_correlation", UID_79, VERDICT_OPEN);
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(detector_lines(&detector), "\"state\":\"resolved\",\"severity\":\"info\"");
    says(detector_lines(&detector), "See the verdict xid_correlation:0123456789abcdef.");
    says(detector_lines(&detector), id);
    schema_check_lines(SCHEMA, detector_lines(&detector));
    judge_behind("xid_correlation", UID_79, VERDICT_OPEN);
    ck_assert_uint_eq(detector.verdict_count, 0);
    judge_behind("xid_correlation", "other", VERDICT_RESOLVED);
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(detector_lines(&detector), "\"severity\":\"critical\"");
    says(detector_lines(&detector), id);
}
END_TEST

// A storm of memory errors that is over was still what happened.
START_TEST(not_handed_back_by_others) {
    begin_lost();
    judge_behind("hbm_ecc", UID_79, VERDICT_OPEN);
    judge_behind("hbm_ecc", UID_79, VERDICT_RESOLVED);
    detector_finish(&detector);
    ck_assert_uint_eq(detector.verdict_count, 0);
}
END_TEST

// What another tells of one of them stands beside it; where others tell of all, nothing is added.
START_TEST(together_told_by_others) {
    static const char FIRST[] = "xid:n1:0000:1b:00:79:1794992500000000000";
    static const char SECOND[] = "xid:n1:0000:29:00:79:1794992501000000000";
    lose(100, "n1", GPUS[0]);
    lose(101, "n1", GPUS[1]);
    detector_start(&detector);
    detector_feed(&detector, cluster.events, cluster.count);
    if (_i < 2) {
        judge_behind(_i == 0 ? "xid_correlation" : "pcie_aer", FIRST, VERDICT_OPEN);
        ck_assert_uint_eq(detector.verdict_count, 1);
        says(detector_lines(&detector), "\"kind\":\"gpus_lost\"");
        says(detector_lines(&detector),
             _i == 0 ? "\"relation\":\"causes\"" : "\"relation\":\"caused_by\"");
        judge_behind("pcie_aer", SECOND, VERDICT_OPEN);
        says(detector_lines(&detector), "\"state\":\"resolved\"");
        return;
    }
    judge_behind("pcie_aer", FIRST, VERDICT_OPEN);
    judge_behind("pcie_aer", SECOND, VERDICT_OPEN);
    judge_now();
    ck_assert_uint_eq(detector.verdict_count, 0);
}
END_TEST

START_TEST(nothing_is_allocated_once_warm) {
    detector_start(&detector);
    for (int n = 0; n < 40; n++) {
        lose(n * 500, n % 2 == 0 ? "n1" : "n2", GPUS[n % 3]);
        lose(n * 500 + 1, n % 2 == 0 ? "n1" : "n2", GPUS[(n + 1) % 3]);
        node_value(node_sample(&cluster, n * 500, "n1", "0000:45:00", "GPU-a"), GPU_XID, n % 2);
        amd(n * 500, OBSERVATION_GPU_HANG, NULL, NULL);
    }
    for (uint32_t i = 0; i < 3; i++) {
        detector_feed(&detector, cluster.events, cluster.count);
        detector_judge(&detector, UINT64_MAX, false);
    }
    uint64_t before = memory_figures().allocations;
    for (uint32_t i = 0; i < 10; i++) {
        detector_feed(&detector, cluster.events, cluster.count);
        detector_judge(&detector, UINT64_MAX, false);
    }
    ck_assert_uint_eq(memory_figures().allocations, before);
}
END_TEST

START_TEST(over_a_restart) {
    begin_lost();
    judge_behind("nccl_hang", "other", VERDICT_OPEN);
    struct detector old = detector;
    detector = detector_open(&processor_gpu_fault);
    detector_start(&detector);
    detector_move_state(&old, &detector);
    detector_close(&old);
    judge_behind("nccl_hang", "other", VERDICT_OPEN);
    ck_assert_uint_eq(detector.verdict_count, 0);
    judge_behind("pcie_aer", UID_79, VERDICT_OPEN);
    says(detector_lines(&detector), "\"state\":\"resolved\"");
}
END_TEST

// -- Order, later lines, bounds -------------------------------------------------------------------

START_TEST(a_later_line_keeps_the_id) {
    begin_lost();
    detector_judge(&detector, UINT64_MAX, false);
    char id[48];
    snprintf(id, sizeof id, "%.32s", strstr(detector_lines(&detector), "\"id\":"));
    detector_lines_reset(&detector);
    node_xid(&cluster, 90, "n1", "0000:9b:00", 62, "");
    detector_feed(&detector, &cluster.events[cluster.count - 1], 1);
    detector_finish(&detector);
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(detector_lines(&detector), "\"state\":\"updated\"");
    says(detector_lines(&detector), id);
}
END_TEST

START_TEST(judged_up_to_its_moment) {
    begin_lost();
    detector_judge(&detector, cluster_time(99), false);
    ck_assert_uint_eq(detector.verdict_count, 0);
    detector_judge(&detector, cluster_time(100), false);
    says(detector_lines(&detector), "\"nvidia.xid.code\":\"119\"");
}
END_TEST

START_TEST(any_order) {
    char *first = NULL;
    for (int n = 0; n < 300; n++)
        node_xid(&cluster, n * 7 % 1000, n % 3 == 0 ? "n1" : "n2",
                 n % 2 == 0 ? "0000:9b:00" : "0000:1b:00", n % 5 == 0 ? 79 : 31 + (uint32_t)n % 90,
                 "");
    for (uint32_t round = 0; round < 4; round++) {
        if (round > 0)
            node_shuffle(&cluster, round);
        detector_start(&detector);
        for (uint32_t at = 0, size = 1 + 6 * round; at < cluster.count; at += size)
            detector_feed(&detector, &cluster.events[at],
                          cluster.count - at < size ? cluster.count - at : size);
        detector_finish(&detector);
        ck_assert_uint_ge(detector.verdict_count, 3);
        if (first == NULL)
            first = memory_copy_text(detector_lines(&detector), detector.lines.size);
        else
            ck_assert_str_eq(detector_lines(&detector), first);
        detector_close(&detector);
        detector = detector_open(&processor_gpu_fault);
    }
    detector_start(&detector);
    memory_give(first);
}
END_TEST

START_TEST(bounded) {
    detector_set(&detector, "max_xids", "16");
    detector_set(&detector, "max_faults", "16");
    for (int n = 0; n < 400; n++)
        node_xid(&cluster, n * 200, "n1", "0000:9b:00", 79, "");
    detector_start(&detector);
    for (uint32_t at = 0; at < cluster.count; at++) {
        detector_feed(&detector, &cluster.events[at], 1);
        detector_judge(&detector, UINT64_MAX, false);
    }
    // Each is told once; what was forgotten is not told again.
    ck_assert_uint_eq(detector.verdict_count, 400);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("gpu_fault");
    TCase *cases = tcase_create("gpu_fault");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, one_lost_gpu);
    tcase_add_test(cases, lost_without_a_code);
    tcase_add_test(cases, without_a_node);
    tcase_add_test(cases, bursts);
    tcase_add_loop_test(cases, the_worst_names_it, 0, sizeof WORST / sizeof *WORST);
    tcase_add_loop_test(cases, what_is_none, 0, sizeof NONE / sizeof *NONE);
    tcase_add_test(cases, programs_when_asked_for);
    tcase_add_test(cases, less_sure_of_what_a_program_can_cause);
    tcase_add_test(cases, driver_asks_for_more);
    tcase_add_test(cases, context_does_not_join);
    tcase_add_loop_test(cases, metric_alone_and_beside_a_line, 0, 2);
    tcase_add_loop_test(cases, a_sample_says_after_when, 0, 2);
    tcase_add_test(cases, lost_at_once_is_one_fault_of_the_node);
    tcase_add_test(cases, lost_apart_are_two);
    tcase_add_test(cases, not_lost_together);
    tcase_add_test(cases, another_loss_joins_what_was_told);
    tcase_add_test(cases, together_over_a_restart);
    tcase_add_test(cases, together_is_forgotten_together);
    tcase_add_loop_test(cases, together_told_by_others, 0, 3);
    tcase_add_test(cases, nothing_is_allocated_once_warm);
    tcase_add_test(cases, amd_hang_and_reset);
    tcase_add_test(cases, amd_reset_that_failed);
    tcase_add_test(cases, amd_reset_alone_is_none);
    tcase_add_test(cases, amd_reset_that_does_not_end);
    tcase_add_test(cases, amd_hang_that_is_over);
    tcase_add_test(cases, amd_hang_and_more_than_its_end);
    tcase_add_test(cases, amd_hardware_error);
    tcase_add_loop_test(cases, told_by_another, 0, sizeof TELLERS / sizeof *TELLERS);
    tcase_add_test(cases, not_told_by_these);
    tcase_add_test(cases, handed_over_and_back);
    tcase_add_test(cases, not_handed_back_by_others);
    tcase_add_test(cases, over_a_restart);
    tcase_add_test(cases, a_later_line_keeps_the_id);
    tcase_add_test(cases, judged_up_to_its_moment);
    tcase_add_test(cases, any_order);
    tcase_add_test(cases, bounded);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
