// SPDX-License-Identifier: Apache-2.0
// A chain that is saved, thrown away and loaded again, in a process in which all strings have other
// ids, goes on as if nothing had been: random jobs, random cuts, live and once.
#include "base/metrics/metrics.h"
#include "tests/processors/evaluation_text.h"
#include "tests/processors/story.h"

#include <check.h>

enum { TEXT_MAX = 1 << 24 };

static struct story story;
static struct buffer want, got;

static void setup(void) {
    buffer_init(&want, TEXT_MAX);
    buffer_init(&got, TEXT_MAX);
}

static void teardown(void) {
    buffer_release(&want);
    buffer_release(&got);
    metrics_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static const uint32_t BATCH_SIZES[] = {1, 7, 1000};

// One or two cuts anywhere.
START_TEST(test_a_chain_goes_on_after_a_cut) {
    for (unsigned seed = (unsigned)_i * 10; seed < (unsigned)_i * 10 + 10; seed++) {
        make_up(&story, seed);
        static bool cuts[STEPS_MAX];
        memset(cuts, 0, sizeof cuts);
        cuts[dice(story.count)] = true;
        cuts[dice(story.count)] = true;
        tell(&story, BATCH_SIZES[dice(3)], NULL, text_of_batch, &want);
        tell(&story, BATCH_SIZES[dice(3)], cuts, text_of_batch, &got);
        check_same(seed, &want, &got);
    }
}
END_TEST

// Every so many steps, and around every evaluation.
START_TEST(test_a_chain_goes_on_after_many_cuts) {
    make_up(&story, 5000 + (unsigned)_i);
    static bool cuts[STEPS_MAX];
    uint32_t every = 20 + dice(60);
    for (uint32_t i = 0; i < story.count; i++)
        cuts[i] =
            i % every == 0 || story.steps[i].evaluate || (i > 0 && story.steps[i - 1].evaluate);
    tell(&story, 1000, NULL, text_of_batch, &want);
    tell(&story, BATCH_SIZES[_i % 3], cuts, text_of_batch, &got);
    check_same(5000 + (unsigned)_i, &want, &got);
}
END_TEST

// That the stories are worth telling: what they are about is in them.
START_TEST(test_stories_hold_what_they_promise) {
    static const char *const things[] = {"\"state\":\"open\"",
                                         "\"state\":\"updated\"",
                                         "\"state\":\"resolved\"",
                                         "\"kind\":\"leak\"",
                                         "phase 1",
                                         "phase 2",
                                         " creep ",
                                         " kept ",
                                         "generation 2",
                                         "Multiple job_id"};
    uint32_t found[10] = {0}, forgotten = 0;
    for (unsigned seed = 0; seed < 60; seed++) {
        make_up(&story, seed);
        tell(&story, 1000, NULL, text_of_batch, &want);
        buffer_append_char(&want, '\0');
        for (size_t i = 0; i < 10; i++)
            found[i] += strstr(want.data, things[i]) != NULL;
        int64_t idle_ns = story.idle_ns;
        if (idle_ns == DURATION_SPECIAL || story.once)
            continue;
        story.idle_ns = DURATION_SPECIAL;
        tell(&story, 1000, NULL, text_of_batch, &got);
        forgotten += got.size + 1 != want.size || memcmp(got.data, want.data, got.size) != 0;
    }
    for (size_t i = 0; i < 10; i++)
        ck_assert_msg(found[i] >= 3, "%s is in %u stories", things[i], found[i]);
    ck_assert_uint_ge(forgotten, 3);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("restored");
    TCase *tests = tcase_create("restored");
    tcase_set_timeout(tests, 300);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, test_stories_hold_what_they_promise);
    tcase_add_loop_test(tests, test_a_chain_goes_on_after_a_cut, 0, 20);
    tcase_add_loop_test(tests, test_a_chain_goes_on_after_many_cuts, 0, 15);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
