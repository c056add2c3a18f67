// SPDX-License-Identifier: Apache-2.0
// Each record of a stream is decoded as what it is.
#include "receivers/decode/formats.h"

#include "base/memory.h"
#include "pipeline/model/node_event.h"

#include <check.h>
#include <stdio.h>

static void *state;
static struct arena arena;
static struct event event;
static struct decode_fault fault;

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

static enum decode_category decode(const char *text) {
    event = (struct event){.kind = EVENT_TELEMETRY};
    return decoder_any.decode(state, slice_of(text), &arena, &event, &fault);
}

START_TEST(records_of_all_kinds_in_one_stream) {
    static const struct {
        const char *text;
        enum event_kind kind;
    } cases[] = {
        {"{\"timestamp\": 7.5, \"memory_allocated\": 1}", EVENT_TELEMETRY},
        {"{\"source\":\"kmsg\",\"timestamp_ns\":5,\"k8s.node.name\":\"n\",\"message\":\"NVRM: Xid "
         "(PCI:0000:45:00): 79, pid=1\"}",
         EVENT_KERNEL},
        {"{\"source\":{\"component\":\"kubelet\",\"host\":\"n\"},\"apiVersion\":\"v1\",\"kind\":"
         "\"Event\",\"reason\":\"Evicted\",\"metadata\":{\"name\":\"e\",\"uid\":\"u\"},"
         "\"involvedObject\":{\"kind\":\"Pod\",\"name\":\"p\",\"namespace\":\"d\"},"
         "\"lastTimestamp\":\"2026-01-31T09:15:04Z\"}",
         EVENT_KUBERNETES},
        {"{\"timestamp_ns\":5,\"UUID\":\"GPU-1\",\"k8s.node.name\":\"n\","
         "\"fields\":{\"DCGM_FI_DEV_GPU_TEMP\":50}}",
         EVENT_GPU_SAMPLE},
        {"{\"rank\":1,\"pci_bus_id\":\"00000000:1B:00.0\",\"host.name\":\"n\"}", EVENT_RANK_MAP},
        {"{\"ev\":\"start\",\"ts\":7}", EVENT_SPAN},
        {"2026-01-31T09:15:04Z gpu-node-02 kernel: NVRM: Xid (PCI:0000:45:00): 79, pid=1, "
         "GPU has fallen off the bus.",
         EVENT_KERNEL},
        {"{\"timestamp\": 8.5, \"memory_allocated\": 2}", EVENT_TELEMETRY},
    };
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            enum decode_category category = decode(cases[i].text);
            // The same words of a log at the same time are a copy.
            if (round == 1 && cases[i].text[0] != '{') {
                ck_assert_int_eq(category, DECODE_NOTHING);
                continue;
            }
            ck_assert_msg(category == DECODE_OK, "%s: %s", cases[i].text, fault.detail);
            ck_assert_msg(event.kind == cases[i].kind, "%s", cases[i].text);
        }
}
END_TEST

// Telemetry of schema 3, as stormlog orders it and in another order.
#define TELEMETRY(first, last)                                                                     \
    "{" first                                                                                      \
    "\"session_id\":\"s\",\"timestamp_ns\":%d,\"event_type\":\"sample\","                          \
    "\"collector\":\"stormlog.cuda_tracker\",\"sampling_interval_ms\":100,\"pid\":1,"              \
    "\"host\":\"n\",\"job_id\":\"j\",\"rank\":0,\"local_rank\":0,\"world_size\":1,"                \
    "\"device_id\":0,\"allocator_allocated_bytes\":1,\"allocator_reserved_bytes\":2,"              \
    "\"allocator_active_bytes\":null,\"allocator_inactive_bytes\":null,"                           \
    "\"allocator_change_bytes\":0,\"device_used_bytes\":3,\"device_free_bytes\":4,"                \
    "\"device_total_bytes\":8,\"context\":null,\"metadata\":{}" last "}"
static const char ordered[] = TELEMETRY("\"schema_version\":3,", "");
static const char shuffled[] = TELEMETRY("", ",\"schema_version\":3");
static const char kernel[] =
    "{\"schema_version\":3,\"source\":\"kmsg\",\"timestamp_ns\":5,\"k8s.node.name\":\"n\","
    "\"message\":\"NVRM: Xid (PCI:0000:45:00): 79, pid=1\"}";

static bool decode_plain(const char *format, int number) {
    static char text[1024];
    snprintf(text, sizeof text, format, number);
    event = (struct event){.kind = EVENT_SPAN};
    return decoder_any.decode_plain(state, slice_of(text), &arena, &event);
}

START_TEST(telemetry_is_taken_unseen) {
    ck_assert(decode_plain(ordered, 1));
    ck_assert_int_eq(event.kind, EVENT_TELEMETRY);
    ck_assert_uint_eq(event.time_ns, 1);
    ck_assert(decode_plain(ordered, 2));
    // In another order only when one like it was seen.
    ck_assert(!decode_plain(shuffled, 3));
    char text[1024];
    for (int i = 0; i < 600; i++) {
        snprintf(text, sizeof text, shuffled, 4 + i);
        ck_assert_int_eq(decode(text), DECODE_OK);
    }
    ck_assert(decode_plain(shuffled, 5));
    ck_assert_uint_eq(event.time_ns, 5);
    // Old telemetry has no key that tells it from other records.
    ck_assert(!decode_plain("{\"timestamp\": %d.5, \"memory_allocated\": 1}", 7));
}
END_TEST

START_TEST(a_line_with_a_source_is_never_telemetry) {
    static const char hidden[] = TELEMETRY("\"schema_version\":3,", ",\"source\":\"kmsg\"");
    for (int i = 0; i < 3; i++) {
        ck_assert(decode_plain(ordered, 1));
        ck_assert(!decode_plain(kernel, 0));
        ck_assert(!decode_plain(hidden, 1));
        ck_assert_int_eq(decode(kernel), DECODE_OK);
        ck_assert_int_eq(event.kind, EVENT_KERNEL);
    }
}
END_TEST

START_TEST(what_is_nothing_is_refused_as_telemetry) {
    ck_assert_int_eq(decode("{\"schema_version\": 4}"), DECODE_MISSING_FIELD);
    ck_assert_int_eq(decode("{\"a\": 1}"), DECODE_MISSING_TIMESTAMP);
    ck_assert_int_eq(decode("{\"a\": 1"), DECODE_BAD_JSON);
    // Programs print braces, too.
    ck_assert_int_eq(decode("{'loss': 0.3}"), DECODE_NOTHING);
    ck_assert_int_eq(decode("nothing"), DECODE_NOTHING);
    ck_assert_int_eq(decode("{\"source\":\"elsewhere\"}"), DECODE_UNKNOWN_SOURCE);
}
END_TEST

// The stage that reads it is told of it all the same.
// A traceback shows lines of source; they are no broken objects.
START_TEST(an_indented_line_of_source_is_of_a_log) {
    ck_assert_int_eq(decode("    {\"input_ids\": x}[\"labels\"]"), DECODE_NOTHING);
    ck_assert_int_eq(decode("{\"input_ids\": x}[\"labels\"]"), DECODE_BAD_JSON);
}
END_TEST

START_TEST(what_is_wrong_in_a_span_stream_is_told) {
    ck_assert_int_eq(decode("{\"ev\":\"start\",\"ts\":0}"), DECODE_OUT_OF_RANGE);
    ck_assert(fault.told);
    ck_assert_int_eq(event.kind, EVENT_SPAN);
    fault.told = false;
    ck_assert_int_eq(decode("{\"a\": 1}"), DECODE_MISSING_TIMESTAMP);
    ck_assert(!fault.told);
}
END_TEST

// What a container's runtime cut off, or a receiver did not take: what stands before the cut is
// known.
START_TEST(a_dump_that_breaks_off_is_told_of) {
#define CUT                                                                                        \
    "{\"source\":\"fr_dump\",\"timestamp_ns\":7,\"job_id\":\"j\",\"rank\":3,\"dump\":{"            \
    "\"version\":"                                                                                 \
    "\"2.10\",\"entries\":[{\"record_id\""
    const string_id job = intern(SLICE("j"));
    fault.told = false;
    ck_assert_int_eq(decode(CUT), DECODE_BAD_JSON);
    ck_assert(fault.told);
    ck_assert_int_eq(event.kind, EVENT_FLIGHT);
    ck_assert_int_eq(event.flight->rank, 3);
    ck_assert_uint_eq(event.time_ns, 7);
    ck_assert_uint_eq(event.job, job);
    ck_assert_uint_gt(event.flight->unreadable.size, 0);
    event = (struct event){0};
    ck_assert(decoder_any.tell_refused(state, slice_of(CUT), SLICE("too long"), &arena, &event));
    ck_assert_int_eq(event.flight->rank, 3);
    ck_assert(slice_equal(event.flight->unreadable, SLICE("too long")));
    // Who wrote it stands behind the cut, or it is something else.
    static const char *const OTHERS[] = {
        "{\"source\":\"fr_dump\",\"timestamp_ns\":7,\"dump\":{\"entries\":[",
        "{\"source\":\"fr_entry\",\"timestamp_ns\":7,\"rank\":3,\"entry\":{",
        "{\"source\":\"rank_map\",\"timestamp_ns\":7,\"rank\":3,",
        "{\"timestamp\": 7.5, \"rank\": 3",
        "nothing",
        "",
    };
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++) {
        fault.told = false;
        (void)decode(OTHERS[i]);
        ck_assert(!fault.told);
        ck_assert(
            !decoder_any.tell_refused(state, slice_of(OTHERS[i]), SLICE("x"), &arena, &event));
    }
}
END_TEST

// The time of what a line alone tells, which may be held.
static uint64_t time_told(const char *line) {
    enum decode_category category = decode(line);
    for (int i = 0; category != DECODE_OK && i < 4; i++) {
        decoder_any.finish(state);
        category = decoder_any.next(state, &arena, &event, &fault);
    }
    ck_assert_int_eq(category, DECODE_OK);
    return event.time_ns;
}

// Lines without a year are no newer than their input was when it was written last: not when it was
// first looked at.
START_TEST(an_input_grows_older_lines_do_not) {
    const uint64_t second = UINT64_C(1000000000);
    const uint64_t opened = UINT64_C(1795431600) * second; // 2026-11-23 11:00
#define SENT(minute)                                                                               \
    "W1123 12:" minute                                                                             \
    ":00.000000 7 torch/distributed/elastic/multiprocessing/api.py:1028] "                         \
    "Sending process 12652 closing signal SIGTERM"
    const struct decoder_input input = {.observed_ns = opened, .is_file = true};
    decoder_any.release(state);
    memset(state, 0, decoder_any.state_size);
    decoder_any.begin(state, &input);
    ck_assert_uint_eq(time_told(SENT("00")), opened);
    decoder_any.written(state, opened + 7200 * second);
    ck_assert_uint_eq(time_told(SENT("01")), opened + 3660 * second);
    decoder_any.written(state, opened); // a clock that went back
    ck_assert_uint_eq(time_told(SENT("02")), opened + 3720 * second);
}
END_TEST

START_TEST(choices_have_decoders) {
    ck_assert_int_eq(format_chosen(0), FORMAT_UNKNOWN);
    ck_assert_ptr_eq(format_stream_decoder(0), &decoder_any);
    for (int i = 1; format_choices[i] != NULL; i++) {
        ck_assert_ptr_nonnull(format_decoder(format_chosen(i)));
        ck_assert(format_is_decoder(slice_of(format_stream_decoder(i)->name)));
    }
    ck_assert(!format_is_decoder(SLICE("nothing")));
}
END_TEST

int main(void) {
    Suite *suite = suite_create("formats");
    TCase *cases = tcase_create("formats");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, records_of_all_kinds_in_one_stream);
    tcase_add_test(cases, telemetry_is_taken_unseen);
    tcase_add_test(cases, a_line_with_a_source_is_never_telemetry);
    tcase_add_test(cases, what_is_nothing_is_refused_as_telemetry);
    tcase_add_test(cases, an_indented_line_of_source_is_of_a_log);
    tcase_add_test(cases, what_is_wrong_in_a_span_stream_is_told);
    tcase_add_test(cases, a_dump_that_breaks_off_is_told_of);
    tcase_add_test(cases, an_input_grows_older_lines_do_not);
    tcase_add_test(cases, choices_have_decoders);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
