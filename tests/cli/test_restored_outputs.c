// SPDX-License-Identifier: Apache-2.0
// What is put out after a cut has the bytes that it would have had without: summary, timeline and
// verdict lines, as the JSON exporter writes them.
#include "exporters/json/json.h"
#include "pipeline/model/verdict.h"
#include "tests/processors/story.h"

enum { TEXT_MAX = 1 << 26 };

static struct story story;
static struct buffer want, got;

static void write_outputs(const struct batch *batch, bool last, struct buffer *out) {
    for (uint32_t i = 0; i < batch->verdicts.count; i++)
        verdict_encode(&batch->verdicts.items[i], out);
    for (uint32_t i = 0; i < batch->evaluation_count; i++) {
        summary_encode(&batch->evaluations[i], out);
        if (last)
            timeline_encode(&batch->evaluations[i], batch->arena, out);
    }
}

static void setup(void) {
    buffer_init(&want, TEXT_MAX);
    buffer_init(&got, TEXT_MAX);
}

static void teardown(void) {
    buffer_release(&want);
    buffer_release(&got);
}

START_TEST(test_outputs_are_the_same_after_cuts) {
    static const uint32_t batch_sizes[] = {1, 7, 1000};
    static bool cuts[STEPS_MAX];
    size_t total = 0;
    for (unsigned seed = 9000 + (unsigned)_i * 5; seed < 9005 + (unsigned)_i * 5; seed++) {
        make_up(&story, seed);
        for (uint32_t i = 0; i < story.count; i++)
            cuts[i] = dice(200) == 0;
        cuts[dice(story.count)] = true;
        tell(&story, batch_sizes[seed % 3], NULL, write_outputs, &want);
        tell(&story, batch_sizes[seed / 3 % 3], cuts, write_outputs, &got);
        check_same(seed, &want, &got);
        total += want.size;
    }
    ck_assert_uint_gt(total, 10000);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("restored_outputs");
    TCase *tests = tcase_create("restored_outputs");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, test_outputs_are_the_same_after_cuts, 0, 10);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
