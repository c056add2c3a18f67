// SPDX-License-Identifier: Apache-2.0
// job_filter: which events are looked at when one job is named, and when none is.
#include "cli/component_list.h"
#include "tests/support/detector.h"

// Beside the chosen job: another one, and none.
static const char *const JOBS[] = {"llama", "mistral", NULL};
enum { CHOSEN, OTHER, NONE, JOB_COUNT };
enum { KIND_COUNT = EVENT_SPAN + 1, EVENT_COUNT = 3 * KIND_COUNT * JOB_COUNT };

static string_id job_of(uint32_t event) {
    const char *job = JOBS[event % JOB_COUNT];
    return job == NULL ? STRING_NONE : intern(slice_of(job));
}

static enum event_kind kind_of(uint32_t event) {
    return (enum event_kind)(event / JOB_COUNT % KIND_COUNT);
}

// Every kind of event of each job and of none, three times over: more than a word of bits.
static struct batch filtered(struct detector *filter) {
    static struct event events[EVENT_COUNT];
    for (uint32_t i = 0; i < EVENT_COUNT; i++)
        events[i] = (struct event){.time_ns = i + 1, .kind = kind_of(i), .job = job_of(i)};
    struct batch batch = {.events = events, .event_count = EVENT_COUNT, .arena = &filter->arena};
    filter->type->processor.consume(filter->instance, &batch);
    return batch;
}

static struct detector filter_of(const char *job) {
    struct detector filter = detector_open(&processor_job_filter);
    detector_set(&filter, "job_id", job);
    detector_start(&filter);
    return filter;
}

static void filter_close(struct detector *filter) {
    memory_give(filter->instance);
    memory_give(filter->config);
    arena_release(&filter->arena);
    buffer_release(&filter->lines);
}

// Of no job: what happened to a node, a GPU or a pod may be what broke the chosen one and is looked
// at; a sample is not, since it may be any job's.
START_TEST(what_is_looked_at_beside_a_chosen_job) {
    struct detector filter = filter_of("llama");
    struct batch batch = filtered(&filter);
    ck_assert_int_eq(batch.job_choice->mode, JOB_NAMED);
    ck_assert_int_eq(batch.job_choice->name, intern(SLICE("llama")));
    for (uint32_t i = 0; i < EVENT_COUNT; i++) {
        bool wanted =
            i % JOB_COUNT == CHOSEN || (i % JOB_COUNT == NONE && kind_of(i) != EVENT_TELEMETRY);
        ck_assert_msg(batch_selects(&batch, i) == wanted, "event %u, kind %d, job %s: %s", i,
                      kind_of(i), JOBS[i % JOB_COUNT], wanted ? "left out" : "looked at");
    }
    filter_close(&filter);
}
END_TEST

START_TEST(everything_is_looked_at_when_no_job_is_chosen) {
    static const struct {
        const char *job_id;
        enum job_mode mode;
    } choices[] = {{"auto", JOB_AUTO}, {"each", JOB_EACH}};
    struct detector filter = filter_of(choices[_i].job_id);
    struct batch batch = filtered(&filter);
    ck_assert_int_eq(batch.job_choice->mode, choices[_i].mode);
    for (uint32_t i = 0; i < EVENT_COUNT; i++)
        ck_assert(batch_selects(&batch, i));
    filter_close(&filter);
}
END_TEST

START_TEST(a_batch_that_only_asks_for_a_judgement_is_handed_on) {
    struct detector filter = filter_of("llama");
    struct batch batch = {.arena = &filter.arena, .evaluate = true, .as_of_ns = 1};
    filter.type->processor.consume(filter.instance, &batch);
    ck_assert_int_eq(batch.job_choice->mode, JOB_NAMED);
    ck_assert_ptr_null(batch.selected);
    filter_close(&filter);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("job_filter");
    TCase *tests = tcase_create("job_filter");
    tcase_add_test(tests, what_is_looked_at_beside_a_chosen_job);
    tcase_add_loop_test(tests, everything_is_looked_at_when_no_job_is_chosen, 0, 2);
    tcase_add_test(tests, a_batch_that_only_asks_for_a_judgement_is_handed_on);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
