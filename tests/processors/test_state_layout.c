// SPDX-License-Identifier: Apache-2.0
// The state of the memory pipeline and of spans as stores hold it since version 0.2: names, sizes
// and places of strings. A store is loaded only when they are the same.
#include "tests/support/detector.h"

extern const struct component_type processor_rank_group, processor_spike_detect,
    processor_first_cause, processor_phase_attribution, processor_spans;

static const struct component_type *const TYPES[] = {
    &processor_rank_group, &processor_spike_detect, &processor_first_cause,
    &processor_phase_attribution, &processor_spans};

static const struct {
    const char *name;
    size_t size;
    uint16_t strings[4]; // ended by 0
} EXPECTED[] = {
    {"rank_group.chunks", 1024, {0}},
    {"rank_group.origins", 40, {4, 8}},
    {"rank_group.carried", 16, {0}},
    {"rank_group.ranks", 152, {0}},
    {"rank_group.sessions", 24, {4}},
    {"rank_group.jobs", 2136, {4}},
    {"rank_group.kept", 56, {0}},
    {"spike_detect.scans", 608, {0}},
    {"spike_detect.lows", 32, {0}},
    {"first_cause.growths", 48, {0}},
    {"first_cause.names", 24, {4}},
    {"phase_attribution.tracks", 48, {8, 12}},
    {"phase_attribution.boundaries", 56, {24, 28}},
    {"phase_attribution.texts", 64, {0}},
    {"phase_attribution.phases", 1, {0}},
    {"phase_attribution.named", 176, {4}},
    {"phase_attribution.verdicts", 32, {28}},
    {"verdicts_left_out", 8, {0}},
    {"spans.trees", 168, {12, 16, 20}},
    {"spans.names", 64, {0}},
    {"spans.name_pieces", 64, {0}},
    {"spans.spans", 120, {0}},
    {"spans.paths", 28, {0}},
    {"spans.tasks", 48, {0}},
    {"spans.live_groups", 24, {0}},
    {"spans.workers", 32, {0}},
    {"spans.items", 48, {0}},
    {"spans.groups", 144, {0}},
    {"spans.actions", 32, {0}},
    {"spans.texts", 8, {0}},
    {"spans.points", 24, {0}},
    {"spans.refused", 24, {0}},
    {"spans.boundaries", 64, {8, 12, 16}},
    {"spans.jobs", 24, {12}},
    {"spans.labels", 56, {16}},
    {"spans.phase_ranks", 80, {28}},
    {"spans.openings", 40, {0}},
    {"spans.visits", 40, {0}},
    {"spans.phases", 8, {0}},
};

static void check_entry(const struct state_entry *entry, size_t at) {
    ck_assert_uint_lt(at, sizeof EXPECTED / sizeof EXPECTED[0]);
    ck_assert_str_eq(entry->name, EXPECTED[at].name);
    ck_assert_msg(entry->size == EXPECTED[at].size, "%s: %zu bytes", entry->name, entry->size);
    uint32_t count = 0;
    while (EXPECTED[at].strings[count] != 0)
        count++;
    ck_assert_msg(entry->string_count == count, "%s: %u strings", entry->name, entry->string_count);
    for (uint32_t i = 0; i < count; i++)
        ck_assert_msg(entry->strings[i] == EXPECTED[at].strings[i], "%s: string at %u", entry->name,
                      entry->strings[i]);
}

START_TEST(state_is_laid_out_as_before) {
    size_t at = 0;
    for (size_t i = 0; i < sizeof TYPES / sizeof TYPES[0]; i++) {
        struct detector detector = detector_open(TYPES[i]);
        struct state_list list = {0};
        detector_start(&detector);
        component_list_state(TYPES[i], detector.instance, &list);
        for (uint32_t j = 0; j < list.count; j++)
            check_entry(&list.entries[j], at++);
        detector_close(&detector);
    }
    ck_assert_uint_eq(at, sizeof EXPECTED / sizeof EXPECTED[0]);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("state_layout");
    TCase *cases = tcase_create("state_layout");
    tcase_add_test(cases, state_is_laid_out_as_before);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
