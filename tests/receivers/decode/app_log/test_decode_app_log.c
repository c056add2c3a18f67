// SPDX-License-Identifier: Apache-2.0
// Lines of a training process: those of the watchdog are read, all others are nothing.
#include "receivers/decode/log/log.h"
#include "receivers/decode/tagged/tagged.h"
#include "tests/receivers/decode/decode_record.h"

static struct decoded decoded;
static const uint64_t START = UINT64_C(1794992400000000000); // 2026-11-18T09:00:00Z
static const uint64_t SECOND = 1000000000;

static void setup(void) {
    decoded = decoded_open(&decoder_app_log, START);
}

static void teardown(void) {
    decoded_close(&decoded);
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static const struct app_line *line(const char *record) {
    decoded_ok(&decoded, record);
    ck_assert_int_eq(decoded.event.kind, EVENT_APP_LINE);
    ck_assert_int_eq(decoded.event.rank, decoded.event.line->rank);
    return decoded.event.line;
}

#define TIMED_OUT                                                                                  \
    "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1201, OpType=ALLREDUCE, "       \
    "NumelIn=4096, NumelOut=8192, Timeout(ms)=600000) ran for 600029 milliseconds before timing "  \
    "out."

static const struct {
    const char *text;
    int32_t rank, group_rank;
    const char *group, *desc;
} PREFIXES[] = {
    {"[rank3]:[E810 03:04:11.06 ProcessGroupNCCL.cpp:683] [Rank 3] " TIMED_OUT, 3, 3, NULL, NULL},
    {"[Rank 5] " TIMED_OUT, 5, 5, NULL, NULL},
    {"[rank9]:[E ProcessGroupNCCL.cpp] [PG ID 2 PG GUID 3(tp) Rank 1] " TIMED_OUT, 9, 1, "3", "tp"},
    {"[PG ID 0 PG GUID 0(default_pg) Rank 7] " TIMED_OUT, 7, 7, "0", "default_pg"},
    {"[PG ID 2 PG GUID 3 Rank 1] " TIMED_OUT, RANK_NONE, 1, "3", NULL},
    {"[PG 0 (default_pg) Rank 4] " TIMED_OUT, 4, 4, "0", "default_pg"},
    {"[PG ID 0 PG GUID 0(undefined) Rank 4] " TIMED_OUT, RANK_NONE, 4, "0", "undefined"},
    {"(worker pid=1) [rank2]: [Rank 2] " TIMED_OUT " and more", 2, 2, NULL, NULL},
};

START_TEST(timeout_lines) {
    const struct app_line *read = line(PREFIXES[_i].text);
    ck_assert_int_eq(read->kind, APP_TIMEOUT);
    ck_assert_int_eq(read->rank, PREFIXES[_i].rank);
    ck_assert_int_eq(read->group_rank, PREFIXES[_i].group_rank);
    decoded_text(read->group, PREFIXES[_i].group);
    decoded_text(read->group_desc, PREFIXES[_i].desc);
    decoded_text(read->operation, "ALLREDUCE");
    ck_assert_int_eq(read->collective_seq_id, 1201);
    ck_assert_int_eq(read->input_elements, 4096);
    ck_assert_int_eq(read->output_elements, 8192);
    ck_assert_int_eq(read->timeout_ms, 600000);
    ck_assert_int_eq(read->ran_ms, 600029);
    ck_assert(!read->has_progress);
    // The message, with or without what stands in front of it.
    size_t whole = strlen(PREFIXES[_i].text);
    ck_assert_uint_ge(read->text.size, strlen(TIMED_OUT));
    ck_assert_uint_le(read->text.size, whole);
    decoded_text(read->text, PREFIXES[_i].text + whole - read->text.size);
}
END_TEST

START_TEST(older_lines_lack_fields) {
    const struct app_line *read = line(
        "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(OpType=ALLGATHER, "
        "Timeout(ms)=1800000) ran for 1800017 milliseconds before timing out.\r");
    decoded_text(read->operation, "ALLGATHER");
    ck_assert_int_eq(read->collective_seq_id, -1);
    ck_assert_int_eq(read->input_elements, -1);
    ck_assert_int_eq(read->output_elements, -1);
    ck_assert_int_eq(read->timeout_ms, 1800000);
    read = line("Watchdog caught collective operation timeout");
    decoded_text(read->operation, NULL);
    ck_assert_int_eq(read->rank, RANK_NONE);
    ck_assert_int_eq(read->ran_ms, -1);
}
END_TEST

START_TEST(progress_lines) {
    const struct app_line *read = line(
        "[rank1]:[E1003 18:37:01.83 ProcessGroupNCCL.cpp:1709] [PG 0 (default_pg) Rank 1] "
        "Timeout at NCCL work: 6463, last enqueued NCCL work: 6465, last completed NCCL work: "
        "6462.");
    ck_assert_int_eq(read->kind, APP_PROGRESS);
    ck_assert_int_eq(read->rank, 1);
    ck_assert_int_eq(read->collective_seq_id, 6463);
    ck_assert(read->has_progress);
    ck_assert_int_eq(read->last_enqueued, 6465);
    ck_assert_int_eq(read->last_completed, 6462);
    read = line(
        "[PG ID 2 PG GUID 3 Rank 3] Exception (either an error or timeout) detected by "
        "watchdog at work: 32, last enqueued NCCL work: 32, last completed NCCL work: -1.");
    ck_assert_int_eq(read->collective_seq_id, 32);
    ck_assert_int_eq(read->last_completed, -1);
    ck_assert(read->has_progress);
}
END_TEST

static const char *const NOTHING[] = {
    "",
    "step 12 loss 3.1",
    "last enqueued NCCL work: 5",
    "last enqueued NCCL work: x, last completed NCCL work: y",
    "[Rank 3] watchdog caught collective operation timeout",
    "{\"message\":1}",
};

START_TEST(nothing) {
    decoded_nothing(&decoded, NOTHING[_i]);
}
END_TEST

static const struct {
    const char *prefix;
    int64_t seconds; // after START
} TIMES[] = {
    {"2026-11-18T08:59:00.500000000Z ", -60},
    {"[2026-11-18T08:00:00Z] ", -3600},
    {"[rank3]:[E1118 08:59:59.06 ProcessGroupNCCL.cpp:683] ", -1},
    {"[E1118 08:59:58 x.cpp:1] ", -2},
    {"[W1109 09:00:00 x.cpp:1] ", -9 * 86400},
    {"[W119 09:00:00 x.cpp:1] ", -303 * 86400},
    {"[I0119 09:00:00 x.cpp:1] ", -303 * 86400},
    {"[E1118 23:00:00 x.cpp:1] ", 0}, // written before it was read: another zone
    {"[E1231 09:00:00 x.cpp:1] ", -(322 * 86400)},
    {"[E1340 09:00:00 x.cpp:1] ", 0},
    {"[E1118 soon x.cpp:1] ", 0},
    {"[ERROR] ", 0},
    {"", 0},
};

START_TEST(times) {
    char record[512];
    snprintf(record, sizeof record, "%s" TIMED_OUT, TIMES[_i].prefix);
    line(record);
    int64_t seconds = ((int64_t)decoded.event.time_ns - (int64_t)START) / (int64_t)SECOND;
    if (decoded.event.time_ns < START && decoded.event.time_ns % SECOND != 0)
        seconds--;
    ck_assert_int_eq(seconds, TIMES[_i].seconds);
}
END_TEST

START_TEST(without_any_time_it_is_refused) {
    struct decoder_input input = {.observed_ns = 0};
    decoder_app_log.release(decoded.state);
    decoder_app_log.begin(decoded.state, &input);
    decoded_refused(&decoded, "[E1118 08:59:59 x.cpp:1] " TIMED_OUT, DECODE_MISSING_TIMESTAMP, "",
                    "no time");
    decoded_nothing(&decoded, "step 12");
    line("2026-11-18T08:59:00Z " TIMED_OUT);
}
END_TEST

// A line of source app_log, with the other members of the object.
static enum decode_category tagged(const char *members) {
    char record[1024];
    snprintf(record, sizeof record, "{\"source\":\"app_log\",%s}", members);
    return decoded_run(&decoded, slice_of(record));
}

START_TEST(tagged_lines) {
    decoded_close(&decoded);
    decoded = decoded_open(&decoder_tagged, START);
    const struct event *event = &decoded.event;
    ck_assert_int_eq(tagged("\"message\":\"[Rank 0] " TIMED_OUT "\",\"timestamp_ns\":5,"
                            "\"rank\":12,\"k8s.pod.name\":\"w\","
                            "\"k8s.namespace.name\":\"train\",\"host.name\":\"h\""),
                     DECODE_OK);
    ck_assert_int_eq(event->kind, EVENT_APP_LINE);
    ck_assert_int_eq(event->rank, 12); // the tag knows better than the group
    ck_assert_int_eq(event->line->rank, 12);
    ck_assert_int_eq(event->line->group_rank, 0);
    ck_assert_uint_eq(event->time_ns, 5);
    ck_assert_str_eq(intern_slice(event->node).data, "h");
    decoded_text(event->line->pod, "w");
    decoded_text(event->line->namespace, "train");
    ck_assert_int_eq(tagged("\"timestamp_ns\":5,\"message\":\"[Rank 3] " TIMED_OUT "\""),
                     DECODE_OK);
    ck_assert_int_eq(event->rank, 3);
    ck_assert_int_eq(tagged("\"timestamp_ns\":5,\"message\":\"\""), DECODE_NOTHING);
    ck_assert_uint_eq(event->time_ns, 5);
    ck_assert_int_eq(tagged("\"timestamp_ns\":5"), DECODE_MISSING_FIELD);
    ck_assert_int_eq(tagged("\"timestamp_ns\":5,\"message\":7"), DECODE_WRONG_TYPE);
    ck_assert_int_eq(tagged("\"message\":\"x\""), DECODE_MISSING_TIMESTAMP);
    ck_assert_int_eq(decoded_run(&decoded, SLICE("[]")), DECODE_NOT_OBJECT);
    ck_assert_int_eq(decoded_run(&decoded, SLICE("{")), DECODE_BAD_JSON);
}
END_TEST

START_TEST(broken_lines_are_survived) {
    decoded_torture(&decoded, PREFIXES[2].text);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("decode_app_log");
    TCase *cases = tcase_create("decode_app_log");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_loop_test(cases, timeout_lines, 0, sizeof PREFIXES / sizeof *PREFIXES);
    tcase_add_test(cases, older_lines_lack_fields);
    tcase_add_test(cases, progress_lines);
    tcase_add_loop_test(cases, nothing, 0, sizeof NOTHING / sizeof *NOTHING);
    tcase_add_loop_test(cases, times, 0, sizeof TIMES / sizeof *TIMES);
    tcase_add_test(cases, without_any_time_it_is_refused);
    tcase_add_test(cases, tagged_lines);
    tcase_add_test(cases, broken_lines_are_survived);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
