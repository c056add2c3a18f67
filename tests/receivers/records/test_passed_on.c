// SPDX-License-Identifier: Apache-2.0
// What another culprit passed on becomes the event that it was there, whatever its format.
#include "receivers/records/passed_on.h"

#include "base/memory.h"
#include "pipeline/component/record_frame.h"
#include "pipeline/model/node_event.h"
#include "receivers/decode/formats.h"

#include <check.h>
#include <stdio.h>

static void *state;
static struct arena arena;
static struct passed_on passed_on;
static struct event event; // the last one
static uint32_t events;

static void setup(void) {
    struct decoder_input input = {.path = SLICE("http"), .observed_ns = 1};
    state = memory_zero(1, decoder_any.state_size);
    decoder_any.begin(state, &input);
    arena_init(&arena, 4096);
}

static void teardown(void) {
    decoder_any.release(state);
    memory_give(state);
    arena_release(&arena);
    intern_release();
}

static void take(enum decode_category category, const struct event *given) {
    ck_assert_msg(!decode_refused(category), "%s", decode_category_name(category));
    if (category != DECODE_OK)
        return;
    event = *given;
    events++;
}

static void decode(struct slice value) {
    struct body body;
    struct body_record record;
    struct decode_fault fault;
    events = 0;
    decoder_any.pass_on(state, passed_on_said(&passed_on));
    passed_on_body(&passed_on, value, 1 << 20, FORMAT_UNKNOWN, &body);
    bool ended = false;
    while (!ended) {
        struct event given = {.kind = EVENT_TELEMETRY, .lines = 1};
        enum decode_category category = DECODE_HELD;
        if (body_next(&body, &record)) {
            ck_assert_int_eq(record.refusal, DECODE_OK);
            category = decoder_any.decode(state, record.bytes, &arena, &given, &fault);
        } else {
            decoder_any.finish(state);
            ended = true;
        }
        take(category, &given);
        for (struct event more = given;
             (category = decoder_any.next(state, &arena, &more, &fault)) != DECODE_END;)
            take(category, &more);
    }
    ck_assert(!decoder_any.holds(state));
    decoder_any.pass_on(state, NULL);
}

static void header(const char *name, const char *value) {
    passed_on_header(&passed_on, slice_of(name), slice_of(value));
}

static void begin(const char *format) {
    passed_on_begin(&passed_on);
    header(RECORD_SCHEMA, RECORD_EVENT_SCHEMA);
    header(RECORD_FORMAT, format);
    ck_assert_ptr_null(passed_on.fault);
}

static void origin(const char *format) {
    begin(format);
    header(RECORD_NODE, "gpu-node-07");
    header(RECORD_TIME, "1794988217500000000");
}

// Lines that say neither when nor where, and one in local time of a zone that only the sender knew.
START_TEST(lines_of_a_kernel_log) {
    static const char *const lines[] = {
        "[ 1234.567890] NVRM: Xid (PCI:0000:45:00): 79, pid=1, GPU has fallen off the bus.",
        "6,1234,5678901,-;NVRM: Xid (PCI:0000:45:00): 79, pid=1, GPU has fallen off the bus.",
        "NVRM: Xid (PCI:0000:45:00): 79, pid=1, GPU has fallen off the bus.",
        "[Tue Nov 17 23:50:17 2026] NVRM: Xid (PCI:0000:45:00): 79, pid=1",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        origin(i % 2 == 0 ? "kernel_log" : "log");
        decode(slice_of(lines[i]));
        ck_assert_uint_eq(events, 1);
        ck_assert_int_eq(event.kind, EVENT_KERNEL);
        ck_assert_uint_eq(event.kernel->code, 79);
        ck_assert_uint_eq(event.time_ns, UINT64_C(1794988217500000000));
        ck_assert(slice_equal(intern_slice(event.node), SLICE("gpu-node-07")));
        ck_assert(!event.timeless);
    }
}
END_TEST

// One record of several lines, whose prefixes the sender took off.
START_TEST(a_traceback) {
    origin("app_log");
    header(RECORD_RANK, "3");
    decode(
        SLICE("Traceback (most recent call last):\n"
              "  File \"train.py\", line 7, in step\n"
              "    loss.backward()\n"
              "RuntimeError: CUDA error: device-side assert triggered"));
    ck_assert_uint_eq(events, 1);
    ck_assert_int_eq(event.kind, EVENT_OBSERVATION);
    ck_assert_int_eq(event.rank, 3);
    ck_assert_uint_eq(event.time_ns, UINT64_C(1794988217500000000));
    // The next record knows nothing of it.
    origin("app_log");
    decode(SLICE("ValueError: this is the end of no traceback"));
    ck_assert(events == 0 || event.rank == RANK_NONE);
}
END_TEST

START_TEST(a_scrape) {
    begin("dcgm_text");
    header(RECORD_NODE, "gpu-node-07");
    header(RECORD_OBSERVED, "1794988217500000000");
    decode(
        SLICE("# TYPE DCGM_FI_DEV_GPU_TEMP gauge\n"
              "DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=\"GPU-1\"} 71\n"
              "DCGM_FI_DEV_GPU_TEMP{gpu=\"1\",UUID=\"GPU-2\"} 72\n"));
    ck_assert_uint_eq(events, 1);
    ck_assert_int_eq(event.kind, EVENT_GPU_SAMPLE);
    ck_assert_uint_eq(event.gpus->count, 2);
    ck_assert_uint_eq(event.gpus->samples[0].time_ns, UINT64_C(1794988217500000000));
}
END_TEST

// Its rank stands in the name of its file only.
START_TEST(a_pickled_dump) {
    FILE *file = fopen(TESTS_DIR
                       "/golden/real_hangs/stopped/node-b/flight_recorder/"
                       "comm_lib_trace_rank_2",
                       "rb");
    ck_assert_ptr_nonnull(file);
    static char bytes[1 << 20];
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    begin("pickle");
    header(RECORD_PATH, "/dumps/comm_lib_trace_rank_2");
    header(RECORD_OBSERVED, "1794988217500000000");
    header(RECORD_FILE, "1");
    decode((struct slice){bytes, size});
    ck_assert_uint_ge(events, 1);
    ck_assert_int_eq(event.kind, EVENT_FLIGHT);
    ck_assert_int_eq(event.flight->rank, 2);
    ck_assert(event.flight->is_file);
}
END_TEST

START_TEST(headers_that_cannot_be_used) {
    static const struct {
        const char *name, *value;
        bool is_fault;
    } cases[] = {
        {RECORD_FORMAT, "morse", true},    {RECORD_SCHEMA, "culprit.event.v2", true},
        {RECORD_RANK, "-1", false},        {RECORD_RANK, "99999999999", false},
        {RECORD_TIME, "soon", false},      {RECORD_TIME, "18446744073709551615", false},
        {RECORD_GENERATION, "1e3", false}, {RECORD_SENDER, "", false},
        {"content-type", "text", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        passed_on_begin(&passed_on);
        header(cases[i].name, cases[i].value);
        ck_assert_int_eq(passed_on.fault != NULL, cases[i].is_fault);
        ck_assert_ptr_null(passed_on_said(&passed_on));
        ck_assert_uint_eq(passed_on.sender.size, 0);
        ck_assert_int_eq(passed_on.forwarded.rank, RANK_NONE);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("passed_on");
    TCase *tests = tcase_create("all");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, lines_of_a_kernel_log);
    tcase_add_test(tests, a_traceback);
    tcase_add_test(tests, a_scrape);
    tcase_add_test(tests, a_pickled_dump);
    tcase_add_test(tests, headers_that_cannot_be_used);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
