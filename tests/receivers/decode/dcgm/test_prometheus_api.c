// SPDX-License-Identifier: Apache-2.0
// What Prometheus' API answers: ranges and moments, other series, what is no answer.
#include "base/memory.h"
#include "pipeline/model/node_event.h"
#include "receivers/decode/dcgm/prometheus_api.h"
#include "receivers/decode/formats.h"

#include <check.h>
#include <stdlib.h>

static struct arena arena;
static struct event event;
static struct decode_fault fault;

static void setup(void) {
    arena_init(&arena, 1 << 16);
}

static void teardown(void) {
    arena_release(&arena);
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static enum decode_category decode(const char *text) {
    memset(&event, 0, sizeof event);
    memset(&fault, 0, sizeof fault);
    return decoder_prometheus_api.decode(NULL, slice_of(text), &arena, &event, &fault);
}

#define LABELS                                                                                     \
    "\"Hostname\": \"gpu-2\", \"UUID\": \"GPU-1\", \"gpu\": \"3\", \"modelName\": \"NVIDIA "       \
    "\\\"H100\\\"\", \"pci_bus_id\": \"00000000:45:00.0\"}"
#define ANSWER(kind, result)                                                                       \
    "{\"status\": \"success\", \"data\": {\"resultType\": \"" kind "\", \"result\": [" result      \
    "]}"                                                                                           \
    "}"
#define XIDS "{\"metric\": {\"__name__\": \"DCGM_FI_DEV_XID_ERRORS\", " LABELS ", "
#define RANGE                                                                                      \
    ANSWER("matrix", XIDS                                                                          \
           "\"values\": [[1789034460, \"0\"], [1789034490.781, \"79\"]]}, "                        \
           "{\"metric\": {\"__name__\": \"DCGM_FI_DEV_GPU_TEMP\", " LABELS                         \
           ", \"values\": [[1789034460, \"61\"]]}, "                                               \
           "{\"metric\": {\"__name__\": \"up\"}, \"values\": [[1789034460, \"1\"]]}")

START_TEST(range) {
    ck_assert_int_eq(decode(RANGE), DECODE_OK);
    ck_assert_int_eq(event.kind, EVENT_GPU_SAMPLE);
    ck_assert_uint_eq(event.gpus->count, 2);
    const struct gpu_sample *first = &event.gpus->samples[0], *second = &event.gpus->samples[1];
    ck_assert_uint_eq(first->time_ns, UINT64_C(1789034460000000000));
    ck_assert_int_eq(first->whole[GPU_XID], 0);
    ck_assert_uint_eq(second->time_ns, UINT64_C(1789034490781000000));
    ck_assert_int_eq(second->whole[GPU_XID], 79);
    ck_assert_uint_eq(event.time_ns, second->time_ns);
    ck_assert(slice_equal(first->model, SLICE("NVIDIA \"H100\"")));
    ck_assert(slice_equal(intern_slice(second->node), SLICE("gpu-2")));
    ck_assert_int_eq(second->index, 3);
}
END_TEST

START_TEST(moment) {
    ck_assert_int_eq(decode(ANSWER("vector", XIDS "\"value\": [1789034460, \"79\"]}")), DECODE_OK);
    ck_assert_uint_eq(event.gpus->count, 1);
    ck_assert_int_eq(event.gpus->samples[0].whole[GPU_XID], 79);
}
END_TEST

static const struct {
    const char *text;
    enum decode_category category;
} OTHERS[] = {
    {ANSWER("matrix", ""), DECODE_NOTHING},
    {ANSWER("matrix", "{\"metric\": {\"__name__\": \"up\"}, \"values\": []}, 3, {}"),
     DECODE_NOTHING},
    {ANSWER("matrix", XIDS "\"values\": 3}"), DECODE_NOTHING},
    {ANSWER("matrix", XIDS "\"values\": [[1789034460, 79]]}"), DECODE_WRONG_TYPE},
    {ANSWER("matrix", XIDS "\"values\": [[]]}"), DECODE_WRONG_TYPE},
    {ANSWER("vector", XIDS "\"value\": {}}"), DECODE_WRONG_TYPE},
    {"{\"status\": \"success\", \"data\": {\"resultType\": \"scalar\"}}", DECODE_MISSING_FIELD},
};

START_TEST(others) {
    ck_assert_int_eq(decode(OTHERS[_i].text), OTHERS[_i].category);
}
END_TEST

START_TEST(is_recognised) {
    ck_assert_int_eq(format_guess(slice_of(RANGE), true, FORMAT_UNKNOWN).kind, FORMAT_PROMETHEUS);
    const char *other = "{\"status\": \"success\", \"data\": {\"rank\": 3}}";
    ck_assert_int_ne(format_guess(slice_of(other), true, FORMAT_UNKNOWN).kind, FORMAT_PROMETHEUS);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("prometheus_api");
    TCase *tcase = tcase_create("prometheus_api");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, range);
    tcase_add_test(tcase, moment);
    tcase_add_loop_test(tcase, others, 0, sizeof OTHERS / sizeof *OTHERS);
    tcase_add_test(tcase, is_recognised);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
