// SPDX-License-Identifier: Apache-2.0
// slow_rank: what names of phases mean.
#include "base/memory.h"
#include "processors/slow_rank/parts.h"

#include <check.h>

static void teardown(void) {
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static string_id name_of(const char *label) {
    return phase_name(intern(slice_of(label)));
}

static void is_named(const char *label, const char *name) {
    struct slice got = intern_slice(name_of(label));
    ck_assert_msg(slice_equal(got, slice_of(name)), "%s: %.*s", label, (int)got.size, got.data);
}

START_TEST(names) {
    is_named("step", "step");
    is_named("epoch 0 / step 317", "step");
    is_named("epoch 0 / Step_3 / Forward", "forward");
    is_named("train / layer-12", "layer");
    is_named("train / 12", "12");
    is_named("train / layer2_attention", "layer2_attention");
    is_named("a / eval # 7", "eval");
    // 48 bytes at most, and no half of a letter.
    is_named("1234567890123456789012345678901234567890123456x\u00e9\u00e9",
             "1234567890123456789012345678901234567890123456x");
}
END_TEST

START_TEST(classes) {
    static const struct {
        const char *label;
        enum phase_class class;
    } cases[] = {
        {"data", PHASE_INPUT},
        {"data_loading", PHASE_INPUT},
        {"load batch", PHASE_INPUT},
        {"next-batch", PHASE_INPUT},
        {"database", PHASE_COMPUTE},
        {"forward", PHASE_COMPUTE},
        {"logits", PHASE_COMPUTE},
        {"log", PHASE_OTHER},
        {"validation", PHASE_OTHER},
        {"latest", PHASE_COMPUTE},
        {"backward", PHASE_BACKWARD},
        {"bwd", PHASE_BACKWARD},
        {"all_reduce", PHASE_WAIT},
        {"grad_sync", PHASE_WAIT},
        {"async_copy", PHASE_COMPUTE},
        {"wait_for_data", PHASE_WAIT},
        {"checkpoint", PHASE_CHECKPOINT},
        {"save_model", PHASE_CHECKPOINT},
        {"load_checkpoint", PHASE_CHECKPOINT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_msg(phase_class_of(name_of(cases[i].label)) == cases[i].class, "%s",
                      cases[i].label);
}
END_TEST

START_TEST(steps) {
    struct slow_config usual = {0}, own = {.step_phase = "turn"};
    ck_assert(phase_is_step(&usual, name_of("epoch 1 / step 4")));
    ck_assert(phase_is_step(&usual, name_of("Iteration")));
    ck_assert(!phase_is_step(&usual, name_of("stepping")));
    ck_assert(!phase_is_step(&own, name_of("step")));
    ck_assert(phase_is_step(&own, name_of("turn 4")));
}
END_TEST

int main(void) {
    Suite *suite = suite_create("slow_names");
    TCase *cases = tcase_create("slow_names");
    tcase_add_checked_fixture(cases, NULL, teardown);
    tcase_add_test(cases, names);
    tcase_add_test(cases, classes);
    tcase_add_test(cases, steps);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
