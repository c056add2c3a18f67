// SPDX-License-Identifier: Apache-2.0
// hbm_ecc: what is one incident, how bad it is, and what is none.
#include "cli/component_list.h"
#include "tests/processors/cluster_fixture.h"

static const char PCI[] = "0000:45:00", UUID[] = "GPU-aaaa";

static void setup(void) {
    fixture_begin(&processor_hbm_ecc);
}

static void xid(double seconds, uint32_t code) {
    node_xid(&cluster, seconds, "n1", PCI, code, "text");
}

static struct gpu_sample *sample(double seconds) {
    return node_sample(&cluster, seconds, "n1", PCI, UUID);
}

static void value(double seconds, enum gpu_field field, int64_t number) {
    node_value(sample(seconds), field, number);
}

START_TEST(contained_with_cleanup_is_one_verdict) {
    xid(100, 94);
    xid(100.1, 63);
    xid(100.2, 45);
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "\"kind\":\"uncorrectable_contained\"");
    says(lines, "\"severity\":\"error\",\"completeness\":\"full\",\"confidence\":85");
    says(lines, "\"action\":\"restart_app\"");
    says(lines, "a row waits for a reset to be remapped");
    says(lines, ":63:1794992500100000000");
    says(lines, ":45:1794992500200000000");
    says(lines,
         "{\"kind\":\"gpu\",\"name\":\"n1/0000:45:00\",\"role\":\"culprit\"},"
         "{\"kind\":\"node\",\"name\":\"n1\",\"role\":\"suspect\"}");
}
END_TEST

START_TEST(worst_of_a_burst_names_it) {
    xid(100, 95);
    xid(100.2, 64);
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "\"kind\":\"remap_failed\"");
    says(lines, "\"severity\":\"critical\"");
    says(lines, "\"action\":\"replace_hardware\"");
    says(lines, "drain n1");
    says(lines, "\"nvidia.xid.code\":\"64\"");
}
END_TEST

static const struct {
    uint32_t code;
    const char *kind, *severity, *action;
} KINDS[] = {
    {48, "uncorrectable", "critical", "reset_gpu"},
    {64, "remap_failed", "critical", "replace_hardware"},
    {92, "corrected_storm", "warning", "monitor"},
    {94, "uncorrectable_contained", "error", "restart_app"},
    {95, "uncorrectable_uncontained", "critical", "reset_gpu"},
    {140, "uncorrectable_uncontained", "critical", "reset_gpu"},
};

START_TEST(each_xid_by_itself) {
    char want[128];
    xid(100, KINDS[_i].code);
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    snprintf(want, sizeof want, "\"kind\":\"%s\",\"state\":\"open\",\"severity\":\"%s\"",
             KINDS[_i].kind, KINDS[_i].severity);
    says(lines, want);
    snprintf(want, sizeof want, "\"action\":\"%s\"", KINDS[_i].action);
    says(lines, want);
    says(lines, "\"completeness\":\"full\"");
}
END_TEST

static const uint32_t NO_ANCHOR[] = {45, 63, 154, 156, 160, 171, 172, 185, 13, 79};

START_TEST(xids_that_say_nothing_alone) {
    xid(100, NO_ANCHOR[_i]);
    run();
    ck_assert_uint_eq(detector.verdict_count, 0);
}
END_TEST

START_TEST(counters_only) {
    value(0, GPU_ECC_UNCORRECTED_VOLATILE, 0);
    value(30, GPU_ECC_UNCORRECTED_VOLATILE, 2);
    value(60, GPU_ECC_UNCORRECTED_VOLATILE, 2);
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines,
         "\"kind\":\"uncorrectable\",\"state\":\"open\",\"severity\":\"error\","
         "\"completeness\":\"partial\",\"confidence\":65");
    says(lines, "dcgm:n1:GPU-aaaa:DCGM_FI_DEV_ECC_DBE_VOL_TOTAL:1794992430000000000");
    says(lines, "rose from 0 to 2");
    says(lines, "\"hw.id\":\"GPU-aaaa\"");
    says_not(lines, "ontained");
}
END_TEST

START_TEST(xid_and_counter_agree) {
    value(90, GPU_ECC_UNCORRECTED_VOLATILE, 0);
    xid(100, 48);
    value(120, GPU_ECC_UNCORRECTED_VOLATILE, 1);
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "\"severity\":\"critical\",\"completeness\":\"full\",\"confidence\":92");
    ck_assert(strstr(lines, "xid:n1") < strstr(lines, "dcgm:n1"));
}
END_TEST

// Xids come first in the evidence, also where the counter was read before the line was written.
START_TEST(xid_after_its_counter) {
    value(90, GPU_ECC_UNCORRECTED_VOLATILE, 0);
    value(100, GPU_ECC_UNCORRECTED_VOLATILE, 1);
    xid(110, 48);
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    const char *line = strstr(lines, "xid:n1"), *counter = strstr(lines, "dcgm:n1");
    ck_assert(line != NULL && counter > line);
}
END_TEST

START_TEST(baseline_and_driver_reload) {
    value(0, GPU_ECC_UNCORRECTED_VOLATILE, 7);
    value(30, GPU_ECC_UNCORRECTED_VOLATILE, 7);
    value(60, GPU_ECC_UNCORRECTED_VOLATILE, 0);
    value(90, GPU_ECC_UNCORRECTED_VOLATILE, 0);
    run();
    ck_assert_uint_eq(detector.verdict_count, 0);
}
END_TEST

START_TEST(error_after_a_reload) {
    value(0, GPU_ECC_UNCORRECTED_VOLATILE, 7);
    value(60, GPU_ECC_UNCORRECTED_VOLATILE, 0);
    value(90, GPU_ECC_UNCORRECTED_VOLATILE, 1);
    says(run(), "rose from 0 to 1");
}
END_TEST

START_TEST(lifetime_counter_only_without_the_other) {
    value(0, GPU_ECC_UNCORRECTED_LIFETIME, 3);
    value(30, GPU_ECC_UNCORRECTED_LIFETIME, 4);
    struct gpu_sample *other = node_sample(&cluster, 0, "n2", PCI, "GPU-bbbb");
    node_value(other, GPU_ECC_UNCORRECTED_LIFETIME, 3);
    node_value(other, GPU_ECC_UNCORRECTED_VOLATILE, 0);
    other = node_sample(&cluster, 30, "n2", PCI, "GPU-bbbb");
    node_value(other, GPU_ECC_UNCORRECTED_LIFETIME, 4);
    node_value(other, GPU_ECC_UNCORRECTED_VOLATILE, 0);
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "dcgm:n1:GPU-aaaa:DCGM_FI_DEV_ECC_DBE_AGG_TOTAL");
}
END_TEST

START_TEST(storm_by_xid_and_rate) {
    value(0, GPU_ECC_CORRECTED_VOLATILE, 0);
    for (int i = 1; i <= 20; i++)
        value(30 * i, GPU_ECC_CORRECTED_VOLATILE, 10 * i);
    xid(400, 92);
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines,
         "\"kind\":\"corrected_storm\",\"state\":\"open\",\"severity\":\"warning\","
         "\"completeness\":\"full\",\"confidence\":80");
    says(lines, "110 corrected memory errors within the window");
    says(lines, ":92:1794992800000000000");
}
END_TEST

START_TEST(few_corrected_errors) {
    value(0, GPU_ECC_CORRECTED_VOLATILE, 5000);
    for (int i = 1; i <= 100; i++)
        value(30 * i, GPU_ECC_CORRECTED_VOLATILE, 5000 + i);
    value(3100, GPU_REMAP_CORRECTABLE, 1);
    value(3130, GPU_REMAP_CORRECTABLE, 2);
    run();
    ck_assert_uint_eq(detector.verdict_count, 0);
}
END_TEST

// 60 errors in each of two hours are never more than 100 within one.
START_TEST(storm_window_slides) {
    value(0, GPU_ECC_CORRECTED_VOLATILE, 0);
    value(600, GPU_ECC_CORRECTED_VOLATILE, 60);
    value(4200, GPU_ECC_CORRECTED_VOLATILE, 120);
    run();
    ck_assert_uint_eq(detector.verdict_count, 0);
}
END_TEST

START_TEST(storm_that_passed_is_resolved) {
    value(0, GPU_ECC_CORRECTED_VOLATILE, 0);
    value(30, GPU_ECC_CORRECTED_VOLATILE, 101);
    detector_start(&detector);
    detector_feed(&detector, cluster.events, cluster.count);
    detector_judge(&detector, UINT64_MAX, false);
    says(detector_lines(&detector), "\"state\":\"open\"");
    detector_lines_reset(&detector);
    value(4000, GPU_ECC_CORRECTED_VOLATILE, 101);
    detector_feed(&detector, &cluster.events[cluster.count - 1], 1);
    detector_judge(&detector, UINT64_MAX, false);
    says(detector_lines(&detector), "\"state\":\"resolved\"");
}
END_TEST

// That others go on is no sign that errors have become rare.
START_TEST(storm_of_a_silent_gpu_stands) {
    bool live = _i == 1;
    value(0, GPU_ECC_CORRECTED_VOLATILE, 0);
    value(30, GPU_ECC_CORRECTED_VOLATILE, 101);
    node_xid(&cluster, 9000, "n0", "0000:c9:00", 63, "");
    detector_start_as(&detector, !live);
    detector_feed(&detector, cluster.events, cluster.count);
    detector_finish(&detector);
    says(detector_lines(&detector), live ? "\"state\":\"resolved\"" : "\"state\":\"open\"");
}
END_TEST

START_TEST(two_gpus_two_incidents) {
    xid(100, 95);
    node_xid(&cluster, 100, "n1", "0000:1b:00", 95, "");
    node_xid(&cluster, 100, "n0", "0000:c9:00", 95, "");
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 3);
    // At one moment by node, then by address.
    const char *first = strstr(lines, "n0/0000:c9:00"), *second = strstr(lines, "n1/0000:1b:00");
    ck_assert(first != NULL && second > first && strstr(lines, "n1/0000:45:00") > second);
}
END_TEST

START_TEST(page_retirement_on_old_gpus) {
    struct gpu_sample *at = sample(90);
    node_value(at, GPU_RETIRED_UNCORRECTED, 2);
    node_value(at, GPU_RETIRED_CORRECTED, 1);
    node_value(at, GPU_RETIRED_PENDING, 0);
    xid(100, 48);
    xid(100.1, 63);
    at = sample(120);
    node_value(at, GPU_RETIRED_UNCORRECTED, 3);
    node_value(at, GPU_RETIRED_CORRECTED, 1);
    node_value(at, GPU_RETIRED_PENDING, 1);
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "\"kind\":\"uncorrectable\"");
    says(lines, "\"confidence\":92");
    says(lines, "DCGM_FI_DEV_RETIRED_DBE:1794992520000000000");
    says(lines, "DCGM_FI_DEV_RETIRED_PENDING:1794992520000000000");
}
END_TEST

// The codes are those of row remaps; the line tells.
START_TEST(page_retirement_is_called_so) {
    node_xid(&cluster, 100, "n1", PCI, 94, "Contained: SM (0x1,0x3)");
    node_xid(&cluster, 100.1, "n1", PCI, 63,
             _i == 0 ? "Dynamic Page Retirement: New page retired, reboot to activate"
                     : "Row Remapper: New row marked for remapping, reset gpu to activate");
    const char *lines = run();
    says(lines, _i == 0 ? "; a page waits for a reset to be retired"
                        : "; a row waits for a reset to be remapped");
    says(lines, _i == 0 ? "so that the retirement takes effect" : "so that the remap takes effect");
}
END_TEST

// The storm crosses its limit at 1200 s with errors since 600 s, and stands until 4200 s.
static void storm(void) {
    value(0, GPU_ECC_CORRECTED_VOLATILE, 0);
    value(600, GPU_ECC_CORRECTED_VOLATILE, 60);
    value(1200, GPU_ECC_CORRECTED_VOLATILE, 110);
}

static const struct {
    double seconds; // of an Xid 94
    uint32_t verdicts;
} BESIDE_A_STORM[] = {{100, 2}, {700, 1}, {1210, 1}, {3000, 1}, {4200, 1}, {4201, 2}};

// What is graver while a storm stands names the incident, and the storm is what it was beside.
START_TEST(a_storm_beside_something_graver_is_one) {
    storm();
    xid(BESIDE_A_STORM[_i].seconds, 94);
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, BESIDE_A_STORM[_i].verdicts);
    says(lines, "\"kind\":\"uncorrectable_contained\"");
    if (BESIDE_A_STORM[_i].verdicts == 2)
        return;
    char want[64];
    snprintf(want, sizeof want, "\"start_time_unix_nano\":\"%llu\"",
             (unsigned long long)cluster_time(BESIDE_A_STORM[_i].seconds));
    says(lines, "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL:1794993600000000000");
    says(lines, "110 corrected memory errors within the window");
    says_not(lines, "repeat");
    // What the Xid led to began then, not with the first corrected error.
    if (_i != 2)
        says(lines, want);
    says(lines, "\"confidence\":85");
}
END_TEST

// Two graver ones under one storm are still two; the second is a repeat.
START_TEST(a_storm_goes_with_the_first_only) {
    storm();
    xid(1500, 94);
    xid(3000, 48);
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 2);
    says(lines, "(repeat: incident 2 of this GPU)");
    says_not(lines, "corrected_storm");
}
END_TEST

START_TEST(a_storm_that_was_told_becomes_what_is_graver) {
    storm();
    detector_start(&detector);
    detector_feed(&detector, cluster.events, cluster.count);
    detector_judge(&detector, UINT64_MAX, false);
    says(detector_lines(&detector), "\"kind\":\"corrected_storm\",\"state\":\"open\"");
    char id[48];
    snprintf(id, sizeof id, "%.32s", strstr(detector_lines(&detector), "\"id\":"));
    detector_lines_reset(&detector);
    xid(2400, 95);
    detector_feed(&detector, &cluster.events[cluster.count - 1], 1);
    detector_judge(&detector, UINT64_MAX, false);
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(detector_lines(&detector), id);
    says(detector_lines(&detector), "\"kind\":\"uncorrectable_uncontained\",\"state\":\"updated\"");
    // That the rate fell does not end it.
    detector_lines_reset(&detector);
    value(9000, GPU_ECC_CORRECTED_VOLATILE, 110);
    detector_feed(&detector, &cluster.events[cluster.count - 1], 1);
    detector_finish(&detector);
    ck_assert_uint_eq(detector.verdict_count, 0);
}
END_TEST

START_TEST(a_storm_begins_with_its_first_error) {
    value(0, GPU_ECC_CORRECTED_VOLATILE, 0);
    value(600, GPU_ECC_CORRECTED_VOLATILE, 60);
    value(4000, GPU_ECC_CORRECTED_VOLATILE, 100);
    value(4500, GPU_ECC_CORRECTED_VOLATILE, 170);
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    // The 60 of an hour before are outside the window.
    says(lines, "\"start_time_unix_nano\":\"1794996400000000000\"");
    says(lines,
         "since the driver was loaded (DCGM_FI_DEV_ECC_SBE_VOL_TOTAL) rose from 60 to 100 since "
         "the sample before");
}
END_TEST

// The id has one name for a field; the words have the name that was read, whichever came first.
START_TEST(a_field_as_it_was_spelled) {
    const struct {
        double seconds;
        int64_t errors;
        uint32_t spelling;
    } told[] = {{0, 0, 0}, {30, 2, 1}, {30, 2, 0}, {60, 5, 1}};
    for (unsigned i = 0; i < 4; i++) {
        unsigned at = _i == 0 ? i : 3 - i;
        struct gpu_sample *read = sample(told[at].seconds);
        node_value(read, GPU_ECC_UNCORRECTED_VOLATILE, told[at].errors);
        gpu_sample_spell(read, GPU_ECC_UNCORRECTED_VOLATILE, told[at].spelling);
    }
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL:1794992430000000000");
    says(lines, "(DCGM_FI_DEV_ECC_DBE_VOL_TOTAL) rose from 0 to 2 since");
    says(lines, "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL:1794992460000000000");
    says(lines, "(DCGM field 311) rose from 2 to 5 since");
}
END_TEST

// Its first errors are forgotten while it goes on: it is one verdict, and no repeat of itself.
START_TEST(a_storm_that_stands_is_no_repeat) {
    static const struct component_type *type = &processor_hbm_ecc;
    struct component_context context = {.id = "hbm_ecc", .site = "hbm_ecc", .once = false};
    struct error error;
    ck_assert_int_eq(component_start(type, detector.instance, detector.config, &context, &error),
                     STATUS_OK);
    for (int i = 0; i < 200; i++) {
        value(600 * i, GPU_ECC_CORRECTED_VOLATILE, 50 * i);
        detector_feed(&detector, &cluster.events[cluster.count - 1], 1);
        detector_judge(&detector, UINT64_MAX, false);
    }
    detector_finish(&detector);
    ck_assert_uint_eq(detector.verdict_count, 1);
    ck_assert_ptr_null(strstr(detector_lines(&detector), "repeat"));
}
END_TEST

START_TEST(same_burst_after_a_day_is_a_repeat) {
    xid(100, 94);
    xid(100.1, 63);
    xid(86500, 94);
    xid(86500.1, 63);
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 2);
    says(lines, "(repeat: incident 2 of this GPU)");
    const char *id = strstr(lines, "\"id\":"), *other = strstr(strchr(lines, '\n'), "\"id\":");
    ck_assert(strncmp(id, other, 32) != 0);
}
END_TEST

START_TEST(repeat_is_known_when_evidence_is_gone) {
    detector_start(&detector);
    for (int day = 0; day < 3; day++) {
        detector_lines_reset(&detector);
        cluster.count = 0;
        xid(100 + 86400 * day, 95);
        detector_feed(&detector, cluster.events, cluster.count);
        detector_judge(&detector, UINT64_MAX, false);
        ck_assert_uint_eq(detector.verdict_count, 1);
    }
    says(detector_lines(&detector), "(repeat: incident 3 of this GPU)");
}
END_TEST

START_TEST(instance_of_a_gpu_is_that_gpu) {
    struct kernel_line *line = node_xid(&cluster, 100, "n1", "0000:45:00.0", 94, "Contained");
    line->pid = 7;
    node_xid(&cluster, 101, "n1", PCI, 63, "");
    run();
    ck_assert_uint_eq(detector.verdict_count, 1);
}
END_TEST

// Samples ten minutes apart: the step lies somewhere between them, and so does the Xid.
START_TEST(sample_gap_longer_than_the_burst) {
    value(0, GPU_ECC_UNCORRECTED_VOLATILE, 0);
    xid(30, 95);
    value(600, GPU_ECC_UNCORRECTED_VOLATILE, 1);
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "\"kind\":\"uncorrectable_uncontained\"");
    says(lines, "\"confidence\":92");
}
END_TEST

START_TEST(gap_ends_a_burst) {
    xid(100, 94);
    xid(280, 94);
    xid(461, 94);
    run();
    ck_assert_uint_eq(detector.verdict_count, 2);
}
END_TEST

static const struct {
    enum gpu_field field;
    int64_t from, to;
    const char *kind, *action; // NULL: no verdict
} LIMITS[] = {
    {GPU_REMAP_UNCORRECTABLE, 511, 512, "limit_reached", "replace_hardware"},
    {GPU_REMAP_UNCORRECTABLE, 510, 511, NULL, NULL},
    {GPU_REMAP_UNCORRECTABLE, 512, 513, NULL, NULL},
    {GPU_RETIRED_UNCORRECTED, 14, 15, "limit_reached", "replace_hardware"},
    {GPU_RETIRED_UNCORRECTED, 13, 14, NULL, NULL},
    {GPU_RETIRED_CORRECTED, 62, 63, "limit_reached", "replace_hardware"},
    {GPU_RETIRED_CORRECTED, 61, 62, NULL, NULL},
    {GPU_BANKS_NONE, 0, 1, "limit_reached", "monitor"},
    {GPU_SRAM_EXCEEDED, 0, 1, "limit_reached", "replace_hardware"},
    {GPU_REMAP_FAILED, 0, 1, "remap_failed", "replace_hardware"},
    {GPU_REMAP_PENDING, 0, 1, "remap_pending", "reset_gpu"},
    {GPU_RETIRED_PENDING, 0, 1, "remap_pending", "reset_gpu"},
};

START_TEST(limits) {
    char want[64];
    value(0, LIMITS[_i].field, LIMITS[_i].from);
    value(30, LIMITS[_i].field, LIMITS[_i].to);
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, LIMITS[_i].kind != NULL);
    if (LIMITS[_i].kind == NULL)
        return;
    snprintf(want, sizeof want, "\"kind\":\"%s\"", LIMITS[_i].kind);
    says(lines, want);
    snprintf(want, sizeof want, "\"action\":\"%s\"", LIMITS[_i].action);
    says(lines, want);
    says(lines, "\"completeness\":\"partial\",\"confidence\":65");
}
END_TEST

START_TEST(pending_that_was_done_is_resolved) {
    value(0, GPU_REMAP_PENDING, 0);
    value(30, GPU_REMAP_PENDING, 1);
    value(30000, GPU_REMAP_PENDING, 1);
    detector_start(&detector);
    for (uint32_t i = 0; i < cluster.count; i++) {
        detector_feed(&detector, &cluster.events[i], 1);
        detector_judge(&detector, UINT64_MAX, false);
    }
    ck_assert_uint_eq(detector.verdict_count, 1);
    detector_lines_reset(&detector);
    value(30030, GPU_REMAP_PENDING, 0);
    detector_feed(&detector, &cluster.events[cluster.count - 1], 1);
    detector_judge(&detector, UINT64_MAX, false);
    says(detector_lines(&detector), "\"state\":\"resolved\"");
    schema_check_lines(SCHEMA, detector_lines(&detector));
    detector_lines_reset(&detector);
    detector_finish(&detector);
    ck_assert_uint_eq(detector.verdict_count, 0);
}
END_TEST

START_TEST(worse_evidence_updates_the_same_verdict) {
    value(90, GPU_ECC_UNCORRECTED_VOLATILE, 0);
    value(120, GPU_ECC_UNCORRECTED_VOLATILE, 1);
    detector_start(&detector);
    detector_feed(&detector, cluster.events, cluster.count);
    detector_judge(&detector, UINT64_MAX, false);
    char id[64];
    snprintf(id, sizeof id, "%.30s", strstr(detector_lines(&detector), "\"id\":"));
    detector_lines_reset(&detector);
    xid(100, 95); // told late
    xid(130, 64);
    detector_feed(&detector, &cluster.events[2], 2);
    detector_judge(&detector, UINT64_MAX, false);
    says(detector_lines(&detector), "\"kind\":\"remap_failed\",\"state\":\"updated\"");
    says(detector_lines(&detector), id);
    ck_assert_uint_eq(detector.verdict_count, 1);
}
END_TEST

START_TEST(two_incidents_that_turn_out_to_be_one) {
    xid(100, 95);
    xid(400, 95);
    detector_start(&detector);
    detector_feed(&detector, cluster.events, 2);
    detector_judge(&detector, UINT64_MAX, false);
    ck_assert_uint_eq(detector.verdict_count, 2);
    detector_lines_reset(&detector);
    xid(250, 95); // told late
    detector_feed(&detector, &cluster.events[2], 1);
    detector_judge(&detector, UINT64_MAX, false);
    says(detector_lines(&detector), "part of another incident");
    says(detector_lines(&detector), "\"state\":\"resolved\"");
    schema_check_lines(SCHEMA, detector_lines(&detector));
}
END_TEST

// An incident that goes on longer than its evidence is kept: nothing is said anew, not at the end
// either, but when it becomes worse.
START_TEST(long_incident_is_told_once) {
    static const struct component_type *type = &processor_hbm_ecc;
    struct component_context context = {.id = "hbm_ecc", .site = "hbm_ecc", .once = false};
    struct error error;
    ck_assert_int_eq(component_start(type, detector.instance, detector.config, &context, &error),
                     STATUS_OK);
    for (int i = 0; i < 200; i++) {
        xid(100 + 100 * i, 94);
        detector_feed(&detector, &cluster.events[cluster.count - 1], 1);
        detector_judge(&detector, UINT64_MAX, false);
    }
    ck_assert_uint_eq(detector.verdict_count, 1);
    detector_finish(&detector);
    ck_assert_uint_eq(detector.verdict_count, 1);
    xid(20101, 95);
    detector_feed(&detector, &cluster.events[cluster.count - 1], 1);
    detector_judge(&detector, UINT64_MAX, false);
    ck_assert_uint_eq(detector.verdict_count, 2);
    says(detector_lines(&detector), "\"kind\":\"uncorrectable_uncontained\",\"state\":\"updated\"");
}
END_TEST

START_TEST(gpu_without_an_address) {
    node_value(node_sample(&cluster, 0, "n1", NULL, UUID), GPU_ECC_UNCORRECTED_VOLATILE, 0);
    node_value(node_sample(&cluster, 30, "n1", NULL, UUID), GPU_ECC_UNCORRECTED_VOLATILE, 1);
    const char *lines = run();
    says(lines, "\"name\":\"n1/GPU-aaaa\"");
    says(lines, "GPU GPU-aaaa of n1");
}
END_TEST

START_TEST(flood_is_cut) {
    for (int i = 0; i < 1000; i++)
        xid(100 + i * 0.01, 48);
    value(90, GPU_ECC_UNCORRECTED_VOLATILE, 0);
    value(120, GPU_ECC_UNCORRECTED_VOLATILE, 1000);
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "\"evidence_dropped\":969");
    says(lines, "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL");
}
END_TEST

static void fill_cluster(void) {
    static char nodes[100][16];
    for (int n = 0; n < 100; n++) {
        snprintf(nodes[n], sizeof nodes[n], "n%d", n);
        for (int i = 0; i < 12; i++) {
            struct gpu_sample *at = node_sample(&cluster, 30 * i, nodes[n], PCI, UUID);
            node_value(at, GPU_ECC_UNCORRECTED_VOLATILE, i / 4);
            node_value(at, GPU_ECC_CORRECTED_VOLATILE, i * 20);
            node_value(at, GPU_REMAP_PENDING, i > 5);
        }
        node_xid(&cluster, 110, nodes[n], PCI, 94, "");
        node_xid(&cluster, 900 + n % 7, nodes[n], PCI, 48, "");
    }
}

START_TEST(any_order_gives_the_same_bytes) {
    fill_cluster();
    char *first = NULL;
    for (uint32_t round = 0; round < 5; round++) {
        if (round > 0)
            node_shuffle(&cluster, round);
        detector_start(&detector);
        for (uint32_t at = 0, size = round == 1 ? 1 : 7 + round; at < cluster.count; at += size)
            detector_feed(&detector, &cluster.events[at],
                          cluster.count - at < size ? cluster.count - at : size);
        detector_finish(&detector);
        ck_assert_uint_eq(detector.verdict_count, 200);
        if (first == NULL)
            first = memory_copy_text(detector_lines(&detector), detector.lines.size);
        ck_assert_str_eq(detector_lines(&detector), first);
        detector_close(&detector);
        detector = detector_open(&processor_hbm_ecc);
    }
    memory_give(first);
    detector_start(&detector);
}
END_TEST

START_TEST(nothing_is_allocated_when_warm) {
    fill_cluster();
    detector_start(&detector);
    uint64_t before = 0;
    for (int round = 0; round < 4; round++) {
        if (round == 2)
            before = memory_figures().allocations;
        detector_feed(&detector, cluster.events, cluster.count);
        detector_judge(&detector, UINT64_MAX, false);
        detector_lines_reset(&detector);
    }
    ck_assert_uint_eq(memory_figures().allocations, before);
}
END_TEST

START_TEST(state_goes_over_a_crash) {
    value(0, GPU_ECC_UNCORRECTED_VOLATILE, 0);
    xid(20, 95);
    detector_start(&detector);
    detector_feed(&detector, cluster.events, cluster.count);
    detector_judge(&detector, UINT64_MAX, false);
    char id[64];
    snprintf(id, sizeof id, "%.30s", strstr(detector_lines(&detector), "\"id\":"));
    struct detector other = detector_open(&processor_hbm_ecc);
    detector_start(&other);
    detector_move_state(&detector, &other);
    value(30, GPU_ECC_UNCORRECTED_VOLATILE, 1);
    detector_feed(&other, &cluster.events[2], 1);
    detector_judge(&other, UINT64_MAX, false);
    says(detector_lines(&other), "\"state\":\"updated\"");
    says(detector_lines(&other), "\"confidence\":92");
    says(detector_lines(&other), id);
    detector_close(&other);
}
END_TEST

START_TEST(bounds_hold) {
    detector_set(&detector, "max_xids", "16");
    detector_set(&detector, "max_samples", "16");
    detector_set(&detector, "max_gpus", "16");
    detector_set(&detector, "max_steps", "16");
    detector_set(&detector, "max_incidents", "16");
    detector_start(&detector);
    for (int i = 0; i < 400; i++) {
        static char nodes[40][16];
        snprintf(nodes[i % 40], sizeof nodes[0], "n%d", i % 40);
        node_xid(&cluster, 100 + i * 10, nodes[i % 40], PCI, 95, "");
        node_value(node_sample(&cluster, 100 + i * 10, nodes[i % 40], PCI, UUID),
                   GPU_ECC_UNCORRECTED_VOLATILE, i);
        detector_feed(&detector, &cluster.events[cluster.count - 2], 2);
        if (i % 10 == 9)
            detector_judge(&detector, UINT64_MAX, false);
    }
    detector_finish(&detector);
    ck_assert_uint_gt(detector.verdict_count, 0);
    const struct metric_family family = {
        .name = "culprit_detector_evicted_total",
        .help = "Entries that a detector forgot because a bound was reached.",
        .type = METRIC_COUNTER};
    ck_assert_uint_gt(metric_value(METRIC(&family, "detector", "hbm_ecc")), 100);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("hbm_ecc");
    TCase *cases = tcase_create("verdicts");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, contained_with_cleanup_is_one_verdict);
    tcase_add_test(cases, worst_of_a_burst_names_it);
    tcase_add_loop_test(cases, each_xid_by_itself, 0, sizeof KINDS / sizeof *KINDS);
    tcase_add_loop_test(cases, xids_that_say_nothing_alone, 0,
                        sizeof NO_ANCHOR / sizeof *NO_ANCHOR);
    tcase_add_test(cases, counters_only);
    tcase_add_test(cases, xid_and_counter_agree);
    tcase_add_test(cases, xid_after_its_counter);
    tcase_add_test(cases, baseline_and_driver_reload);
    tcase_add_test(cases, error_after_a_reload);
    tcase_add_test(cases, lifetime_counter_only_without_the_other);
    tcase_add_test(cases, storm_by_xid_and_rate);
    tcase_add_test(cases, few_corrected_errors);
    tcase_add_test(cases, storm_window_slides);
    tcase_add_test(cases, storm_that_passed_is_resolved);
    tcase_add_loop_test(cases, storm_of_a_silent_gpu_stands, 0, 2);
    tcase_add_loop_test(cases, page_retirement_is_called_so, 0, 2);
    tcase_add_test(cases, a_storm_begins_with_its_first_error);
    tcase_add_loop_test(cases, a_field_as_it_was_spelled, 0, 2);
    tcase_add_loop_test(cases, a_storm_beside_something_graver_is_one, 0,
                        sizeof BESIDE_A_STORM / sizeof *BESIDE_A_STORM);
    tcase_add_test(cases, a_storm_goes_with_the_first_only);
    tcase_add_test(cases, a_storm_that_was_told_becomes_what_is_graver);
    tcase_add_test(cases, a_storm_that_stands_is_no_repeat);
    tcase_add_test(cases, two_gpus_two_incidents);
    tcase_add_test(cases, page_retirement_on_old_gpus);
    tcase_add_test(cases, same_burst_after_a_day_is_a_repeat);
    tcase_add_test(cases, repeat_is_known_when_evidence_is_gone);
    tcase_add_test(cases, instance_of_a_gpu_is_that_gpu);
    tcase_add_test(cases, sample_gap_longer_than_the_burst);
    tcase_add_test(cases, gap_ends_a_burst);
    tcase_add_loop_test(cases, limits, 0, sizeof LIMITS / sizeof *LIMITS);
    tcase_add_test(cases, pending_that_was_done_is_resolved);
    tcase_add_test(cases, worse_evidence_updates_the_same_verdict);
    tcase_add_test(cases, two_incidents_that_turn_out_to_be_one);
    tcase_add_test(cases, long_incident_is_told_once);
    tcase_add_test(cases, gpu_without_an_address);
    tcase_add_test(cases, flood_is_cut);
    tcase_add_test(cases, any_order_gives_the_same_bytes);
    tcase_add_test(cases, nothing_is_allocated_when_warm);
    tcase_add_test(cases, state_goes_over_a_crash);
    tcase_add_test(cases, bounds_hold);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
