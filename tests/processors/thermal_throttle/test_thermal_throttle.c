// SPDX-License-Identifier: Apache-2.0
// thermal_throttle: which samples make a GPU, or a node, a slowed one, and which do not.
#include "cli/component_list.h"
#include "pipeline/model/node_event.h"
#include "tests/support/detector.h"

#include <inttypes.h>

static const uint64_t SECOND = 1000000000;
static const uint64_t BASE = UINT64_C(1794992400) * 1000000000;
enum { STEP = 30, GPUS_MAX = 16 };

static struct detector detector;

static void setup(void) {
    detector = detector_open(&processor_thermal_throttle);
}

static void teardown(void) {
    detector_close(&detector);
    metrics_release();
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static char uuids[GPUS_MAX][16];

static struct gpu_sample sample_of(unsigned gpu, uint64_t seconds) {
    snprintf(uuids[gpu], sizeof uuids[gpu], "GPU-%u", gpu);
    return (struct gpu_sample){.time_ns = BASE + seconds * SECOND,
                               .node = intern(SLICE("node-a")),
                               .uuid = slice_of(uuids[gpu]),
                               .address = (uint64_t)(0x10 + gpu) << 8,
                               .index = (int32_t)gpu,
                               .model = SLICE("NVIDIA H100 80GB HBM3")};
}

static void put(struct gpu_sample *sample, enum gpu_field field, int64_t value) {
    sample->present |= UINT64_C(1) << field;
    sample->whole[field] = value;
    sample->value[field] = (double)value;
}

static void feed(const struct gpu_sample *sample) {
    struct gpu_scrape scrape = {sample, 1};
    struct event event = {.time_ns = sample->time_ns,
                          .node = sample->node,
                          .rank = RANK_NONE,
                          .kind = EVENT_GPU_SAMPLE,
                          .gpus = &scrape};
    detector_feed(&detector, &event, 1);
}

static void feed_mask(unsigned gpu, uint64_t seconds, int64_t mask, int64_t clock) {
    struct gpu_sample sample = sample_of(gpu, seconds);
    put(&sample, GPU_CLOCK_REASONS, mask);
    put(&sample, GPU_SM_CLOCK_MHZ, clock);
    feed(&sample);
}

static void feed_counter(unsigned gpu, uint64_t seconds, int64_t lost_ns) {
    struct gpu_sample sample = sample_of(gpu, seconds);
    put(&sample, GPU_THERMAL_VIOLATION_NS, lost_ns);
    feed(&sample);
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

START_TEST(one_of_four) {
    detector_start(&detector);
    for (uint64_t at = 0; at <= 300; at += STEP)
        for (unsigned gpu = 0; gpu < 4; gpu++)
            feed_mask(gpu, at, gpu == 2 ? 0x48 : 0x4, gpu == 2 ? 1155 : 1965);
    detector_finish(&detector);
    expect(1);
    says("\"kind\":\"hw_thermal\"");
    says("{\"kind\":\"gpu\",\"name\":\"node-a/0000:12:00\",\"role\":\"culprit\"}");
    says("DCGM_FI_DEV_CLOCKS_EVENT_REASONS:1794992400000000000");
    says(
        "SM clock (DCGM_FI_DEV_SM_CLOCK) 1155 MHz, the median of the node's other GPUs is 1965 "
        "MHz");
    says("0x48: HW_SLOWDOWN, HW_THERMAL");
    says("\"severity\":\"error\"");
    says("\"completeness\":\"full\"");
    says("\"confidence\":88");
    says_not("node-a/0000:10:00");
}
END_TEST

// The id has one name for a field; the words have the one that was read first, and last.
START_TEST(fields_as_they_were_spelled) {
    detector_start(&detector);
    for (uint64_t at = 0; at <= 300; at += STEP)
        for (unsigned gpu = 0; gpu < 4; gpu++) {
            struct gpu_sample sample = sample_of(gpu, at);
            put(&sample, GPU_CLOCK_REASONS, gpu == 2 ? 0x48 : 0x4);
            put(&sample, GPU_THERMAL_VIOLATION_NS, gpu == 2 ? (int64_t)at * 500000000 : 0);
            put(&sample, GPU_SM_CLOCK_MHZ, gpu == 2 ? 1155 : 1965);
            gpu_sample_spell(&sample, GPU_CLOCK_REASONS, 2);
            gpu_sample_spell(&sample, GPU_SM_CLOCK_MHZ, at < 300 ? 2 : 1);
            gpu_sample_spell(&sample, GPU_THERMAL_VIOLATION_NS, at < 300 ? 0 : 1);
            feed(&sample);
        }
    detector_finish(&detector);
    expect(1);
    says("DCGM_FI_DEV_CLOCKS_EVENT_REASONS:1794992400000000000");
    says("clock reasons (DCGM_FI_DEV_CLOCK_THROTTLE_REASONS) 0x48");
    says("SM clock (DCGM field 100) 1155 MHz");
    says("lost to heat (DCGM field 241) in");
}
END_TEST

START_TEST(power_and_idle) {
    static const int64_t masks[] = {0x0, 0x1, 0x2, 0x4, 0x10, 0x80, 0x88, 0x8, 0x100};
    detector_start(&detector);
    for (uint64_t at = 0; at <= 900; at += STEP)
        for (unsigned gpu = 0; gpu < sizeof masks / sizeof *masks; gpu++)
            feed_mask(gpu, at, masks[gpu], gpu == 5 ? 300 : 1900);
    detector_finish(&detector);
    expect(0);
}
END_TEST

START_TEST(counter_only) {
    detector_start(&detector);
    for (uint64_t at = 0; at <= 600; at += STEP) {
        feed_counter(0, at, at < 150 ? 0 : (int64_t)((at - 150) * 400000000));
        feed_counter(1, at, 5000000000);
        feed_counter(2, at, (int64_t)at * 50000000); // 5 %
    }
    detector_finish(&detector);
    expect(1);
    says("\"kind\":\"thermal\"");
    says("\"completeness\":\"partial\"");
    says("\"confidence\":60");
    says("dcgm:node-a:GPU-0:DCGM_FI_DEV_THERMAL_VIOLATION:1794993000000000000");
    says("3 min 0 s lost to heat (DCGM_FI_DEV_THERMAL_VIOLATION) in 7 min 30 s, 40 % of it");
    says_not("GPU-1");
    says_not("GPU-2");
}
END_TEST

START_TEST(counters_of_reasons_count_where_the_violation_is_absent) {
    detector_start(&detector);
    for (uint64_t at = 0; at <= 600; at += STEP) {
        struct gpu_sample sample = sample_of(0, at);
        put(&sample, GPU_SW_THERMAL_NS, (int64_t)at * 200000000);
        put(&sample, GPU_HW_THERMAL_NS, 0);
        feed(&sample);
    }
    detector_finish(&detector);
    expect(1);
    says("DCGM_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN_NS");
}
END_TEST

START_TEST(whole_node) {
    detector_start(&detector);
    for (uint64_t at = 0; at <= 600; at += STEP)
        for (unsigned gpu = 0; gpu < 8; gpu++)
            feed_mask(gpu, at, gpu < 4 && at >= 60 + gpu * 30 ? 0x20 : 0x4, 1700);
    detector_finish(&detector);
    expect(1);
    says("\"kind\":\"node_cooling\"");
    says("{\"kind\":\"node\",\"name\":\"node-a\",\"role\":\"culprit\"}");
    says("{\"kind\":\"gpu\",\"name\":\"node-a/0000:13:00\",\"role\":\"suspect\"}");
    says("4 of 8 GPUs of node-a are slowed by heat, all within 1 min 30 s");
    says("\"confidence\":85");
}
END_TEST

START_TEST(too_few_or_too_far_apart_for_the_node) {
    detector_start(&detector);
    // Three of eight are less than half; three of the other node's four begin too far apart.
    for (uint64_t at = 0; at <= 900; at += STEP)
        for (unsigned gpu = 0; gpu < 12; gpu++) {
            struct gpu_sample sample = sample_of(gpu, at);
            bool hot = gpu < 3 || (gpu >= 8 && gpu < 11 && at >= (gpu - 8) * 210);
            if (gpu >= 8)
                sample.node = intern(SLICE("node-b"));
            put(&sample, GPU_CLOCK_REASONS, hot ? 0x20 : 0);
            feed(&sample);
        }
    detector_finish(&detector);
    expect(6);
    says_not("node_cooling");
}
END_TEST

START_TEST(one_after_another_then_the_node) {
    detector_start(&detector);
    // Live: two GPUs are named, then two more make it the node.
    for (uint64_t at = 0; at <= 400; at += STEP) {
        for (unsigned gpu = 0; gpu < 4; gpu++)
            feed_mask(gpu, at, at >= (gpu < 2 ? 0u : 150u) ? 0x40 : 0, 1700);
        detector_judge(&detector, BASE + at * SECOND, false);
    }
    const char *lines = detector_lines(&detector);
    const char *node = strstr(lines, "node_cooling");
    ck_assert_ptr_nonnull(node);
    const char *resolved = strstr(lines, "\"state\":\"resolved\"");
    ck_assert_ptr_nonnull(resolved);
    detector_lines_reset(&detector);
    detector_finish(&detector);
    says_not("hw_thermal\",\"state\":\"open");
}
END_TEST

START_TEST(two_blips) {
    detector_start(&detector);
    for (uint64_t at = 0; at <= 900; at += STEP)
        feed_mask(0, at, at == 90 || at == 300 ? 0x60 : 0, 1900);
    detector_finish(&detector);
    expect(0);
}
END_TEST

START_TEST(short_and_dense_is_a_blip_too) {
    detector_start(&detector);
    // Forty samples, but forty seconds.
    for (uint64_t at = 0; at <= 300; at++)
        feed_mask(0, at, at >= 100 && at < 140 ? 0x40 : 0, 1900);
    detector_finish(&detector);
    expect(0);
}
END_TEST

START_TEST(memory_with_new_names) {
    detector_start(&detector);
    for (uint64_t at = 0; at <= 300; at += STEP) {
        struct gpu_sample sample = sample_of(0, at);
        put(&sample, GPU_CLOCK_REASONS, 0x20);
        put(&sample, GPU_TEMPERATURE_C, 70);
        put(&sample, GPU_TEMPERATURE_MARGIN_C, 17);
        put(&sample, GPU_MEMORY_TEMPERATURE_C, 97);
        put(&sample, GPU_MEMORY_MAX_TEMPERATURE_C, 95);
        feed(&sample);
    }
    detector_finish(&detector);
    expect(1);
    says("\"kind\":\"memory_thermal\"");
    says("\"severity\":\"error\"");
    says("\"confidence\":82");
    says("its memory reached 97 C");
}
END_TEST

START_TEST(hot_memory_and_core_is_not_the_memory_alone) {
    detector_start(&detector);
    for (uint64_t at = 0; at <= 300; at += STEP) {
        struct gpu_sample sample = sample_of(0, at);
        put(&sample, GPU_CLOCK_REASONS, 0x20);
        put(&sample, GPU_TEMPERATURE_C, 92);
        put(&sample, GPU_SLOWDOWN_TEMPERATURE_C, 90);
        put(&sample, GPU_MEMORY_TEMPERATURE_C, 97);
        put(&sample, GPU_MEMORY_MAX_TEMPERATURE_C, 95);
        feed(&sample);
    }
    detector_finish(&detector);
    expect(1);
    says("\"kind\":\"sw_thermal\"");
    says("\"severity\":\"warning\"");
    says("\"confidence\":80");
}
END_TEST

static void feed_margin(uint64_t seconds, int64_t margin) {
    struct gpu_sample sample = sample_of(0, seconds);
    put(&sample, GPU_TEMPERATURE_MARGIN_C, margin);
    feed(&sample);
}

START_TEST(margin_of_the_model) {
    detector_start(&detector);
    for (uint64_t at = 0; at <= 300; at += STEP)
        feed_margin(at, -1);
    detector_finish(&detector);
    expect(0);
    for (uint64_t at = 330; at <= 600; at += STEP)
        feed_margin(at, -2);
    detector_finish(&detector);
    expect(1);
    says("DCGM_FI_DEV_GPU_TEMP_LIMIT:1794992730000000000");
    says("\"completeness\":\"partial\"");
}
END_TEST

START_TEST(margin_of_another_model) {
    static const char *const models[] = {"a100=-8", "h100=3"};
    for (size_t i = 0; i < processor_thermal_throttle.option_count; i++)
        if (strcmp(processor_thermal_throttle.options[i].name, "slowdown_margins") == 0)
            *(struct text_list *)((char *)detector.config +
                                  processor_thermal_throttle.options[i].offset) =
                (struct text_list){models, 2};
    detector_start(&detector);
    for (uint64_t at = 0; at <= 300; at += STEP)
        feed_margin(at, 3);
    detector_finish(&detector);
    expect(1);
}
END_TEST

START_TEST(margins_that_are_none_are_refused) {
    static const char *const models[] = {"H100", "=3", "H100=", "H100=hot", "H100=300"};
    struct arena arena;
    arena_init(&arena, 4096);
    for (unsigned i = 0; i < 5; i++) {
        struct problem_list problems;
        problem_list_init(&problems, &arena);
        for (size_t row = 0; row < processor_thermal_throttle.option_count; row++)
            if (strcmp(processor_thermal_throttle.options[row].name, "slowdown_margins") == 0)
                *(struct text_list *)((char *)detector.config +
                                      processor_thermal_throttle.options[row].offset) =
                    (struct text_list){&models[i], 1};
        processor_thermal_throttle.validate(detector.config, &problems);
        ck_assert_uint_eq(problems.count, 1);
        ck_assert_ptr_nonnull(strstr(problems.items[0].text, models[i]));
    }
    arena_release(&arena);
    detector_start(&detector);
}
END_TEST

START_TEST(gap_in_samples) {
    detector_start(&detector);
    // A hot sample stands for one minute at most: two, an hour apart, are two minutes of two
    // windows.
    feed_mask(0, 0, 0x40, 1900);
    feed_mask(0, 3600, 0x40, 1900);
    feed_mask(0, 7200, 0x40, 1900);
    feed_mask(0, 7230, 0x40, 1900);
    detector_finish(&detector);
    expect(0);
}
END_TEST

START_TEST(counter_over_a_gap_says_nothing) {
    detector_start(&detector);
    feed_counter(0, 0, 0);
    feed_counter(0, 3600, 3000000000000);
    feed_counter(0, 3630, 3000000000000);
    detector_finish(&detector);
    expect(0);
}
END_TEST

START_TEST(counter_reset) {
    detector_start(&detector);
    for (uint64_t at = 0; at <= 600; at += STEP)
        feed_counter(0, at, at < 300 ? 900000000000000 : at == 300 ? 0 : 1000000000);
    detector_finish(&detector);
    expect(0);
}
END_TEST

START_TEST(unknown_high_bits) {
    detector_start(&detector);
    for (uint64_t at = 0; at <= 300; at += STEP) {
        feed_mask(0, at, INT64_C(0x4000000000000600), 1900);
        feed_mask(1, at, INT64_C(0x4000000000000640), 1900);
    }
    detector_finish(&detector);
    expect(1);
    says("\"culprit.clocks_event_reasons\":\"0x4000000000000640\"");
    says("unknown bits 0x4000000000000600");
    says("node-a/0000:11:00");
}
END_TEST

START_TEST(recovery_resolves_the_verdict) {
    detector_start(&detector);
    uint64_t at = 0;
    for (; at <= 300; at += STEP) {
        feed_mask(0, at, 0x40, 1200);
        detector_judge(&detector, BASE + at * SECOND, false);
    }
    expect(1);
    says("\"state\":\"open\"");
    char id[64];
    memcpy(id, strstr(detector_lines(&detector), "thermal_throttle:"), 33);
    id[33] = '\0';
    detector_lines_reset(&detector);
    for (; at <= 1200; at += STEP) {
        feed_mask(0, at, 0x0, 1900);
        detector_judge(&detector, BASE + at * SECOND, false);
    }
    expect(1);
    says("\"state\":\"resolved\"");
    says("was slowed by heat for 5 min");
    // The verdict's own times say the same.
    char times[128];
    snprintf(times, sizeof times,
             "\"start_time_unix_nano\":\"%" PRIu64 "\",\"end_time_unix_nano\":\"%" PRIu64 "\"",
             (uint64_t)BASE, (uint64_t)BASE + 300 * (uint64_t)SECOND);
    says(times);
    says(id);
    detector_lines_reset(&detector);
    detector_finish(&detector);
    expect(0);
}
END_TEST

START_TEST(over_and_over_in_one_file) {
    detector_start(&detector);
    for (uint64_t at = 0; at <= 7200; at += STEP)
        feed_mask(0, at, at < 600 || at >= 6600 ? 0x40 : 0, 1900);
    detector_finish(&detector);
    expect(2);
    const char *lines = detector_lines(&detector);
    const char *resolved = strstr(lines, "\"state\":\"resolved\"");
    const char *open = strstr(lines, "\"state\":\"open\"");
    ck_assert(resolved != NULL && open != NULL && resolved < open);
}
END_TEST

static uint64_t after_of_the_verdict(void) {
    struct batch batch = {.arena = &detector.arena,
                          .newest_ns = detector.newest_ns,
                          .evaluate = true,
                          .as_of_ns = UINT64_MAX};
    detector.type->processor.consume(detector.instance, &batch);
    ck_assert_uint_eq(batch.verdicts.count, 1);
    uint64_t after_ns = batch.verdicts.items[0].after_ns;
    ck_assert_uint_gt(batch.verdicts.items[0].start_ns, after_ns);
    arena_reset(&detector.arena);
    return after_ns;
}

// The heat began at some time after the sample before the first hot one.
START_TEST(a_sample_says_after_when) {
    detector_start(&detector);
    for (uint64_t at = 0; at <= 300; at += STEP)
        for (unsigned gpu = 0; gpu < 4; gpu++) {
            feed_mask(gpu, at, at >= 120 && (gpu == 2 || _i == 1) ? 0x40 : 0, 1900);
            // What says nothing of the clocks says nothing of when.
            struct gpu_sample other = sample_of(gpu, at + 10);
            put(&other, GPU_TEMPERATURE_C, 80);
            feed(&other);
        }
    ck_assert_uint_eq(after_of_the_verdict(), BASE + 90 * SECOND);
}
END_TEST

START_TEST(nothing_before_the_first_sample) {
    detector_start(&detector);
    for (uint64_t at = 0; at <= 300; at += STEP)
        feed_mask(0, at, 0x40, 1900);
    ck_assert_uint_eq(after_of_the_verdict(), 0);
}
END_TEST

// 10 % of the window are lost only when the sample before has left it.
START_TEST(the_sample_before_may_have_left_the_window) {
    detector_start(&detector);
    for (uint64_t at = 0; at <= 900; at += STEP)
        feed_counter(0, at, at <= 60 ? 0 : (int64_t)((at - 60) * 100000000));
    ck_assert_uint_eq(after_of_the_verdict(), BASE + 60 * SECOND);
}
END_TEST

// Live, what no sample tells of any more is given up: nobody says that it has recovered.
START_TEST(silence_gives_it_up) {
    detector_start_as(&detector, false);
    for (uint64_t at = 0; at <= 300; at += STEP)
        for (unsigned gpu = 0; gpu < (_i == 0 ? 1 : 4); gpu++)
            feed_mask(gpu, at, 0x40, 1200);
    for (uint64_t at = 330; at <= 1000; at += 10)
        feed_mask(7, at, 0, 1900);
    if (_i == 2) { // the others are cool, of one nothing is known
        for (uint64_t at = 330; at <= 1000; at += STEP)
            for (unsigned gpu = 0; gpu < 3; gpu++)
                feed_mask(gpu, at, 0, 1900);
    }
    detector_finish(&detector);
    expect(1);
    says("\"state\":\"resolved\"");
    says(_i == 0 ? "no later sample says whether it has recovered"
                 : "no later sample says whether all have recovered");
}
END_TEST

// Over inputs that end it stays as it was, however long others go on.
START_TEST(silence_is_no_recovery) {
    detector_start_as(&detector, true);
    for (uint64_t at = 0; at <= 300; at += STEP)
        for (unsigned gpu = 0; gpu < (_i == 0 ? 1 : 4); gpu++)
            feed_mask(gpu, at, 0x40, 1200);
    feed_mask(7, 7500, 0, 1900);
    detector_finish(&detector);
    expect(1);
    says("\"state\":\"open\"");
    says_not("recovered");
}
END_TEST

// After a gap one hot sample makes no slowed GPU, and is no recovery either; nor are samples
// without what made it a hot one.
START_TEST(a_gap_is_no_recovery) {
    detector_start_as(&detector, true);
    for (uint64_t at = 0; at <= 300; at += STEP)
        feed_mask(0, at, 0x40, 1200);
    if (_i == 0) {
        feed_mask(0, 7500, 0x40, 1200);
    } else {
        for (uint64_t at = 330; at <= 1200; at += STEP) {
            struct gpu_sample other = sample_of(0, at);
            put(&other, GPU_TEMPERATURE_C, 60);
            feed(&other);
        }
    }
    detector_finish(&detector);
    expect(1);
    says("\"state\":\"open\"");
    says_not("recovered");
}
END_TEST

START_TEST(a_counter_says_so_from_its_second_value_on) {
    detector_start_as(&detector, true);
    for (uint64_t at = 0; at <= 300; at += STEP)
        feed_counter(0, at, (int64_t)(at * 1000000000));
    feed_counter(0, 7500, 300000000000);
    if (_i == 1)
        feed_counter(0, 7530, 300000000000);
    detector_finish(&detector);
    expect(1);
    says(_i == 0 ? "\"state\":\"open\"" : "and has recovered");
}
END_TEST

START_TEST(order_and_size_make_no_difference) {
    enum { COUNT = 200 };
    char *first = NULL;
    detector_start(&detector);
    for (unsigned round = 0; round < 20; round++) {
        struct detector other = detector_open(&processor_thermal_throttle);
        detector_start(&other);
        unsigned order[COUNT];
        uint64_t seed = round;
        for (unsigned i = 0; i < COUNT; i++)
            order[i] = i;
        for (unsigned i = COUNT; i > 1 && round > 0; i--) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
            unsigned j = (unsigned)(seed >> 33) % i, swap = order[i - 1];
            order[i - 1] = order[j];
            order[j] = swap;
        }
        for (unsigned i = 0; i < COUNT; i++) {
            unsigned gpu = order[i] % 4, step = order[i] / 4;
            struct gpu_sample sample = sample_of(gpu, step * STEP);
            put(&sample, GPU_CLOCK_REASONS, gpu == 1 && step > 5 ? 0x40 : gpu == 3 ? 0x20 : 0);
            put(&sample, GPU_SM_CLOCK_MHZ, 1500 + (int64_t)(order[i] * 37 % 400));
            put(&sample, GPU_THERMAL_VIOLATION_NS, step * (int64_t)gpu * 1000000000);
            struct gpu_scrape scrape = {&sample, 1};
            struct event event = {.time_ns = sample.time_ns,
                                  .node = sample.node,
                                  .kind = EVENT_GPU_SAMPLE,
                                  .gpus = &scrape};
            detector_feed(&other, &event, 1);
        }
        detector_finish(&other);
        const char *lines = detector_lines(&other);
        if (first == NULL)
            first = memory_copy_text(lines, strlen(lines));
        ck_assert_str_eq(first, lines);
        detector_close(&other);
    }
    ck_assert_ptr_nonnull(strstr(first, "hw_thermal"));
    ck_assert_ptr_nonnull(strstr(first, "sw_thermal"));
    memory_give(first);
}
END_TEST

START_TEST(fields_of_one_moment_are_joined) {
    detector_start(&detector);
    for (uint64_t at = 0; at <= 300; at += STEP) {
        struct gpu_sample sample = sample_of(0, at);
        put(&sample, GPU_SM_CLOCK_MHZ, 1000);
        feed(&sample);
        sample = sample_of(0, at);
        put(&sample, GPU_CLOCK_REASONS, 0x40);
        feed(&sample);
        feed_mask(1, at, 0, 1900);
    }
    detector_finish(&detector);
    expect(1);
    says("SM clock 1000 MHz");
    says("thermal ones in 11 of 11 samples");
}
END_TEST

START_TEST(bounds) {
    detector_set(&detector, "max_gpus", "8");
    detector_set(&detector, "max_samples", "1024");
    detector_start(&detector);
    struct gpu_sample sample;
    for (unsigned i = 0; i < 20000; i++) {
        sample = sample_of(0, i);
        sample.address = (uint64_t)(i % 500) << 8;
        put(&sample, GPU_CLOCK_REASONS, 0x40);
        feed(&sample);
        if (i % 250 == 249)
            detector_judge(&detector, sample.time_ns, false);
    }
    ck_assert_uint_lt(memory_figures().live_bytes, 8u << 20);
    detector_finish(&detector);
    const struct metric_family family = {.name = "culprit_detector_evicted_total",
                                         .help =
                                             "Entries that a detector forgot because a bound "
                                             "was reached.",
                                         .type = METRIC_COUNTER};
    ck_assert_uint_gt(metric_value(METRIC(&family, "detector", "thermal_throttle")), 0);
}
END_TEST

// GPUs that are only looked at make room for others; those that are hot, and those heard of last,
// stay, and so does what a node has of them.
START_TEST(cool_gpus_make_room) {
    detector_set(&detector, "max_gpus", "64");
    detector_start(&detector);
    struct gpu_sample sample;
    for (uint64_t at = 0; at <= 300; at += STEP) {
        for (unsigned i = 0; i < 40; i++) { // others each time, on five nodes
            char node[16];
            snprintf(node, sizeof node, "node-%u", i % 5);
            sample = sample_of(3, at);
            sample.node = intern(slice_of(node));
            sample.address = (uint64_t)(0x100 + i + at * 40) << 8;
            put(&sample, GPU_CLOCK_REASONS, 0x4);
            put(&sample, GPU_SM_CLOCK_MHZ, 1965);
            feed(&sample);
        }
        for (unsigned gpu = 0; gpu < 4; gpu++)
            feed_mask(gpu, at, gpu == 2 ? 0x48 : 0x4, gpu == 2 ? 1155 : 1965);
        detector_judge(&detector, BASE + at * SECOND, false);
    }
    detector_finish(&detector);
    says("{\"kind\":\"gpu\",\"name\":\"node-a/0000:12:00\",\"role\":\"culprit\"}");
    says("the median of the node's other GPUs is 1965 MHz");
    says_not("node-0/");
    const struct metric_family family = {.name = "culprit_detector_evicted_total",
                                         .help =
                                             "Entries that a detector forgot because a bound "
                                             "was reached.",
                                         .type = METRIC_COUNTER};
    ck_assert_uint_gt(metric_value(METRIC(&family, "detector", "thermal_throttle")), 300);
}
END_TEST

// Files come one after another; a bound that is reached in the first must not lose the second.
START_TEST(one_long_file_after_another) {
    detector_set(&detector, "max_samples", "1024");
    detector_start(&detector);
    for (unsigned gpu = 0; gpu < 3; gpu++)
        for (uint64_t at = 0; at <= 60000; at += STEP)
            feed_mask(gpu, at, gpu > 0 && at >= 3000 && at < 4500 ? 0x40 : 0, 1900);
    detector_finish(&detector);
    expect(2);
    says("node-a/0000:11:00");
    says("node-a/0000:12:00");
    says("was slowed by heat for 24 min 30 s");
}
END_TEST

START_TEST(nothing_is_allocated_in_steady_state) {
    detector_start(&detector);
    uint64_t at = 0, before = 0;
    for (; at <= 40000; at += STEP) {
        for (unsigned gpu = 0; gpu < 8; gpu++)
            feed_mask(gpu, at, gpu == 2 ? 0x48 : 0x4, gpu == 2 ? 1155 : 1965);
        detector_judge(&detector, BASE + at * SECOND, false);
        detector_lines_reset(&detector);
        if (at == 20010)
            before = memory_figures().allocations;
    }
    ck_assert_uint_eq(memory_figures().allocations, before);
}
END_TEST

// Many nodes that are each sampled at moments of their own, judged at once.
START_TEST(moments_cost_what_is_in_them) {
    detector_start(&detector);
    for (uint64_t at = 0; at < 3000; at++)
        feed_mask((unsigned)(at % 8), at, 0x4, 1965);
    detector_judge(&detector, BASE + 3000 * SECOND, false);
    ck_assert_uint_lt(memory_figures().live_bytes, 8u << 20);
}
END_TEST

START_TEST(a_gpu_without_an_address_or_node) {
    detector_start(&detector);
    for (uint64_t at = 0; at <= 300; at += STEP)
        for (unsigned gpu = 0; gpu < 2; gpu++) {
            struct gpu_sample sample = sample_of(gpu, at);
            sample.node = STRING_NONE;
            sample.address = PCI_NONE;
            if (gpu == 1)
                sample.uuid = (struct slice){NULL, 0};
            put(&sample, GPU_CLOCK_REASONS, 0x40);
            feed(&sample);
        }
    detector_finish(&detector);
    expect(2);
    says("\"name\":\"GPU-0\"");
    says("\"name\":\"gpu1\"");
    says("an unnamed node");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("thermal_throttle");
    TCase *cases = tcase_create("rules");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, one_of_four);
    tcase_add_test(cases, fields_as_they_were_spelled);
    tcase_add_test(cases, power_and_idle);
    tcase_add_test(cases, counter_only);
    tcase_add_test(cases, counters_of_reasons_count_where_the_violation_is_absent);
    tcase_add_test(cases, whole_node);
    tcase_add_test(cases, too_few_or_too_far_apart_for_the_node);
    tcase_add_test(cases, one_after_another_then_the_node);
    tcase_add_test(cases, two_blips);
    tcase_add_test(cases, short_and_dense_is_a_blip_too);
    tcase_add_test(cases, memory_with_new_names);
    tcase_add_test(cases, hot_memory_and_core_is_not_the_memory_alone);
    tcase_add_test(cases, margin_of_the_model);
    tcase_add_test(cases, margin_of_another_model);
    tcase_add_test(cases, margins_that_are_none_are_refused);
    tcase_add_test(cases, gap_in_samples);
    tcase_add_test(cases, counter_over_a_gap_says_nothing);
    tcase_add_test(cases, counter_reset);
    tcase_add_test(cases, unknown_high_bits);
    tcase_add_test(cases, recovery_resolves_the_verdict);
    tcase_add_test(cases, over_and_over_in_one_file);
    tcase_add_loop_test(cases, a_sample_says_after_when, 0, 2);
    tcase_add_test(cases, nothing_before_the_first_sample);
    tcase_add_test(cases, the_sample_before_may_have_left_the_window);
    tcase_add_loop_test(cases, silence_gives_it_up, 0, 3);
    tcase_add_loop_test(cases, silence_is_no_recovery, 0, 2);
    tcase_add_loop_test(cases, a_gap_is_no_recovery, 0, 2);
    tcase_add_loop_test(cases, a_counter_says_so_from_its_second_value_on, 0, 2);
    tcase_add_test(cases, order_and_size_make_no_difference);
    tcase_add_test(cases, fields_of_one_moment_are_joined);
    tcase_add_test(cases, bounds);
    tcase_add_test(cases, cool_gpus_make_room);
    tcase_add_test(cases, one_long_file_after_another);
    tcase_add_test(cases, nothing_is_allocated_in_steady_state);
    tcase_add_test(cases, moments_cost_what_is_in_them);
    tcase_add_test(cases, a_gpu_without_an_address_or_node);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
