// SPDX-License-Identifier: Apache-2.0
// What a pipeline tells of its jobs and open incidents, and what a request for a tap may ask.
#include "base/text/utf8.h"
#include "pipeline/runtime/control/overview.h"
#include "pipeline/runtime/control/request.h"

#include "base/memory.h"
#include "pipeline/component/component.h"
#include "pipeline/plan/plan.h"
#include "pipeline/runtime/service_state.h"

#include <check.h>
#include <stdio.h>

static struct overview overview;
static struct overview_state seen;
static struct verdict verdicts[2 * OVERVIEW_INCIDENTS_MAX];
static uint32_t verdict_count;

static void setup(void) {
    overview_init(&overview);
    verdict_count = 0;
}

static void teardown(void) {
    overview_release(&overview);
    intern_release();
}

static struct verdict *add(int number, enum severity severity, enum verdict_state state) {
    struct verdict *verdict = &verdicts[verdict_count++];
    *verdict = (struct verdict){.pattern = "nccl_hang",
                                .severity = severity,
                                .state = state,
                                .headline = SLICE("a headline"),
                                .start_ns = 1000};
    snprintf(verdict->id, sizeof verdict->id, "nccl_hang:%016d", number);
    return verdict;
}

static struct batch batch_of_verdicts(void) {
    return (struct batch){.evaluate = true,
                          .as_of_ns = 5000,
                          .verdicts = {.items = verdicts, .count = verdict_count}};
}

static void note(void) {
    struct batch batch = batch_of_verdicts();
    overview_note(&overview, &batch, NULL);
    overview_read(&overview, &seen);
    verdict_count = 0;
}

START_TEST(incidents_come_change_and_go) {
    static struct attribute consequence = {"culprit.root", {"false", 5}};
    add(1, SEVERITY_ERROR, VERDICT_OPEN);
    struct verdict *second = add(2, SEVERITY_WARNING, VERDICT_OPEN);
    second->attributes = &consequence;
    second->attribute_count = 1;
    note();
    ck_assert_uint_eq(seen.incident_count, 1); // a consequence is no incident
    ck_assert_uint_eq(seen.judged_ns, 5000);
    ck_assert_int_eq(seen.incidents[0].severity, SEVERITY_ERROR);
    ck_assert_uint_eq(seen.incidents[0].headline_size, 10);
    add(1, SEVERITY_CRITICAL, VERDICT_UPDATED);
    add(2, SEVERITY_WARNING, VERDICT_UPDATED); // it stands by itself now
    note();
    ck_assert_uint_eq(seen.incident_count, 2);
    add(1, SEVERITY_CRITICAL, VERDICT_RESOLVED);
    note();
    ck_assert_uint_eq(seen.incident_count, 1);
    ck_assert_str_eq(seen.incidents[0].id, "nccl_hang:0000000000000002");
    second = add(2, SEVERITY_WARNING, VERDICT_UPDATED);
    second->attributes = &consequence;
    second->attribute_count = 1;
    note();
    ck_assert_uint_eq(seen.incident_count, 0);
}
END_TEST

START_TEST(the_gravest_have_room) {
    for (int i = 0; i < OVERVIEW_INCIDENTS_MAX; i++)
        add(i, SEVERITY_WARNING, VERDICT_OPEN);
    note();
    ck_assert(!seen.incidents_left_out);
    add(1000, SEVERITY_INFO, VERDICT_OPEN);
    add(1001, SEVERITY_CRITICAL, VERDICT_OPEN);
    note();
    ck_assert(seen.incidents_left_out);
    ck_assert_uint_eq(seen.incident_count, OVERVIEW_INCIDENTS_MAX);
    uint32_t critical = 0;
    for (uint32_t i = 0; i < seen.incident_count; i++) {
        critical += seen.incidents[i].severity == SEVERITY_CRITICAL;
        ck_assert_int_ne(seen.incidents[i].severity, SEVERITY_INFO);
    }
    ck_assert_uint_eq(critical, 1);
}
END_TEST

START_TEST(what_was_open_before_a_restart_is_learnt_once) {
    add(1, SEVERITY_ERROR, VERDICT_OPEN)->unchanged = true;
    struct batch batch = batch_of_verdicts();
    overview_learn(&overview, &batch);
    verdict_count = 0;
    note();
    ck_assert_uint_eq(seen.incident_count, 1);
    add(2, SEVERITY_ERROR, VERDICT_OPEN)->unchanged = true;
    batch = batch_of_verdicts();
    overview_learn(&overview, &batch);
    verdict_count = 0;
    note();
    ck_assert_uint_eq(seen.incident_count, 1);
}
END_TEST

START_TEST(a_headline_is_not_cut_within_a_character) {
    static char text[VERDICT_HEADLINE_MAX + 10];
    memset(text, 'a', sizeof text);
    memcpy(text + VERDICT_HEADLINE_MAX - 1, "\xe2\x82\xac", 3); // it begins within the bound
    add(1, SEVERITY_ERROR, VERDICT_OPEN)->headline = (struct slice){text, sizeof text};
    note();
    struct slice kept = {seen.incidents[0].headline, seen.incidents[0].headline_size};
    ck_assert_uint_le(kept.size, VERDICT_HEADLINE_MAX);
    for (size_t at = 0; at < kept.size;) {
        uint32_t code_point;
        size_t size = utf8_decode(kept, at, &code_point);
        ck_assert_uint_gt(size, 0);
        at += size;
    }
}
END_TEST

START_TEST(jobs_are_told_and_forgotten) {
    static const int32_t missing[] = {3, 5, 6, 7, 8, 9, 10, 11, 12, 13};
    struct evaluation evaluations[OVERVIEW_JOBS_MAX + 1] = {0};
    for (int i = 0; i <= OVERVIEW_JOBS_MAX; i++) {
        char name[16];
        snprintf(name, sizeof name, "job %d", i);
        evaluations[i] = (struct evaluation){.job = intern(slice_of(name)),
                                             .rank_count = 4,
                                             .world_size = 14,
                                             .missing_ranks = missing,
                                             .missing_count = 10,
                                             .as_of_ns = 77};
    }
    struct batch batch = {.evaluate = true, .evaluations = evaluations, .evaluation_count = 1};
    overview_note(&overview, &batch, NULL);
    overview_note(&overview, &batch, NULL); // the same job
    overview_read(&overview, &seen);
    ck_assert_uint_eq(seen.job_count, 1);
    ck_assert_uint_eq(seen.jobs[0].missing_count, 10);
    ck_assert_int_eq(seen.jobs[0].missing[OVERVIEW_MISSING_MAX - 1], 11);
    batch.evaluation_count = OVERVIEW_JOBS_MAX + 1;
    overview_note(&overview, &batch, NULL);
    overview_read(&overview, &seen);
    ck_assert_uint_eq(seen.job_count, OVERVIEW_JOBS_MAX);
    ck_assert(seen.jobs_left_out);
    struct forgotten_job gone = {.job = evaluations[0].job};
    struct forgotten forgotten = {.jobs = &gone, .job_count = 1};
    struct batch last = {.evaluate = true, .forgotten = &forgotten};
    overview_note(&overview, &last, NULL);
    overview_read(&overview, &seen);
    ck_assert_uint_eq(seen.job_count, OVERVIEW_JOBS_MAX - 1);
    for (uint32_t i = 0; i < seen.job_count; i++)
        ck_assert_uint_ne(seen.jobs[i].job, gone.job);
    forgotten = (struct forgotten){.everything = true};
    overview_note(&overview, &last, NULL);
    overview_read(&overview, &seen);
    ck_assert_uint_eq(seen.job_count, 0);
    ck_assert(!seen.jobs_left_out);
}
END_TEST

// -- requests -------------------------------------------------------------------------------------

static const struct component_type stage_type = {
    .name = "looks", .kind = COMPONENT_PROCESSOR, .takes = 1u << EVENT_KERNEL};
static const struct plan_component stage = {.type = &stage_type, .id = "looks/at xids"};
static const struct plan_pipeline planned = {.name = "a:b"};

static enum status read(struct tap_request *request, const char *query, struct error *error) {
    struct instance instance = {.component = &stage};
    struct run_pipeline pipeline = {.stages = &instance, .stage_count = 1};
    struct service service = {.magic = SERVICE_MAGIC, .pipelines = &pipeline, .pipeline_count = 1};
    char text[256];
    pipeline.runner.plan = &planned;
    snprintf(text, sizeof text, "%s", query);
    return tap_request_read(request, &service, text, error);
}

START_TEST(a_request_chooses_a_point) {
    struct tap_request request;
    struct error error = {0};
    ck_assert_int_eq(read(&request, "pipeline=a%3Ab", &error), STATUS_OK);
    ck_assert_int_eq(request.choice.point, TAP_ENTRY);
    ck_assert_uint_eq(request.choice.rate, TAP_RATE_DEFAULT);
    ck_assert_uint_eq(request.choice.every, 1);
    ck_assert_uint_eq(request.limit, 0);
    ck_assert_int_eq(request.choice.rank, RANK_NONE);
    ck_assert(!request.choice.verdicts);
    ck_assert(request.choice.events[EVENT_CLASS_TELEMETRY]);
    ck_assert_int_eq(read(&request,
                          "pipeline=a:b&stage=looks/at+xids&rank=7&rate=5&every=2&limit=9&job=x",
                          &error),
                     STATUS_OK);
    ck_assert_int_eq(request.choice.point, 0);
    ck_assert(request.choice.verdicts);
    ck_assert(!request.choice.events[EVENT_CLASS_TELEMETRY]); // it does not look at them
    ck_assert_int_eq(request.choice.rank, 7);
    ck_assert_uint_eq(request.choice.rate, 5);
    ck_assert_uint_eq(request.choice.every, 2);
    ck_assert_uint_eq(request.limit, 9);
    ck_assert_uint_eq(request.choice.job, intern(SLICE("x")));
    ck_assert_int_eq(read(&request, "pipeline=a:b&stage=out", &error), STATUS_OK);
    ck_assert_int_eq(request.choice.point, TAP_OUT);
    ck_assert_int_eq(read(&request, "pipeline=a:b&kind=xid,verdict", &error), STATUS_OK);
    ck_assert(!request.choice.events[EVENT_CLASS_TELEMETRY]);
    ck_assert(!request.choice.verdicts); // none come in
}
END_TEST

static const struct {
    const char *query;
    enum status status;
    const char *says;
} wrong[] = {
    {"", STATUS_USAGE, "no pipeline is named; there are: a:b"},
    {"pipeline=", STATUS_USAGE, "no pipeline is named"},
    {"pipeline=b", STATUS_NOT_FOUND, "no pipeline \"b\"; there are: a:b"},
    {"pipeline=a:b&stage=no", STATUS_NOT_FOUND, "there are: looks/at xids, out"},
    {"pipeline=a:b&kind=xids", STATUS_USAGE, "no kind of event is called \"xids\""},
    {"pipeline=a:b&rate=0", STATUS_USAGE, "from 1 to 10000"},
    {"pipeline=a:b&rate=10001", STATUS_USAGE, "from 1 to 10000"},
    {"pipeline=a:b&rate=-1", STATUS_USAGE, "from 1 to 10000"},
    {"pipeline=a:b&rate=1x", STATUS_USAGE, "from 1 to 10000"},
    {"pipeline=a:b&every=99999999999999999999", STATUS_USAGE, "from 1 to"},
    {"pipeline=a:b&rank=2147483647", STATUS_USAGE, "from 0 to"},
    {"pipeline=a:b&limit=", STATUS_USAGE, "from 1 to"},
    {"pipeline=a:b&colour=red", STATUS_USAGE, "no parameter is called \"colour\""},
    {"pipeline", STATUS_USAGE, "not NAME=VALUE"},
    {"pipeline=a%3", STATUS_USAGE, "not NAME=VALUE"},
    {"pipeline=a%00b", STATUS_USAGE, "not NAME=VALUE"},
    {"pipeline=%zz", STATUS_USAGE, "not NAME=VALUE"},
};

START_TEST(a_wrong_request_says_what_is_right) {
    struct tap_request request;
    struct error error = {0};
    ck_assert_int_eq(read(&request, wrong[_i].query, &error), wrong[_i].status);
    ck_assert_msg(strstr(error.message, wrong[_i].says) != NULL, "%s", error.message);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("overview");
    TCase *tests = tcase_create("overview");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, incidents_come_change_and_go);
    tcase_add_test(tests, the_gravest_have_room);
    tcase_add_test(tests, what_was_open_before_a_restart_is_learnt_once);
    tcase_add_test(tests, a_headline_is_not_cut_within_a_character);
    tcase_add_test(tests, jobs_are_told_and_forgotten);
    tcase_add_test(tests, a_request_chooses_a_point);
    tcase_add_loop_test(tests, a_wrong_request_says_what_is_right, 0,
                        sizeof wrong / sizeof wrong[0]);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
