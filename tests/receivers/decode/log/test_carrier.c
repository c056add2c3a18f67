// SPDX-License-Identifier: Apache-2.0
// What carriers and loggers say beside a line: what a service says of a link several times in one
// second of syslog is no copy, and what the kernel says is; levels and exceptions that stand under
// keys of their own.
#include "receivers/decode/log/log.h"
#include "tests/receivers/decode/observed.h"

static void teardown(void) {
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static uint32_t count(const char *text, const char *wanted) {
    uint32_t found = 0;
    for (const char *at = text; (at = strstr(at, wanted)) != NULL; at++)
        found++;
    return found;
}

#define LOST "Mar 17 06:18:06 vm-0 systemd-networkd[5398]: ib6: Lost carrier\n"
#define DOWN "Mar 17 06:18:06 vm-0 kernel: mlx5_core 0000:5c:00.0 ib6: Link down\n"

START_TEST(each_counts) {
    const struct observed *observed = observed_lines(&decoder_log, SLICE(LOST LOST LOST));
    ck_assert_uint_eq(count(observed->text, " nic_link "), 3);
    ck_assert_uint_eq(count(observed->text, " nic_link @1773728286000000000 "), 1);
    ck_assert_uint_eq(count(observed->text, " nic_link @1773728286000002000 "), 1);
}
END_TEST

START_TEST(copies_do_not) {
    const struct observed *observed = observed_lines(&decoder_log, SLICE(DOWN DOWN));
    ck_assert_uint_eq(count(observed->text, " nic_link "), 1);
}
END_TEST

#define PLACE  "  File \\\"/w/a.py\\\", line 5, in main\\n"
#define TRACE  "Traceback (most recent call last):\\n" PLACE "    f()\\nKeyError: 'x'"
#define HEAD   "\"time\":\"2026-11-20T10:10:18Z\",\"msg\":\"it is lost\",\"level\":\"error\""
#define LOGGED "exception=KeyError message='x' fatal=no victim=no"
#define PLACED LOGGED " frame=main (/w/a.py:5)"

static const struct beside {
    const char *line;
    const char *told; // NULL: nothing
} BESIDE[] = {
    {"{" HEAD ",\"exc_info\":\"" TRACE "\"}", PLACED},
    {"{" HEAD ",\"exception\":\"" TRACE "\"}", PLACED},
    {"{" HEAD ",\"exception\":[{\"exc_type\":\"KeyError\",\"exc_value\":\"'x'\"}]}", LOGGED},
    {"{" HEAD ",\"error\":{\"type\":\"KeyError\",\"message\":\"'x'\"}}", LOGGED},
    // ECS has the places alone.
    {"{" HEAD ",\"error\":{\"type\":\"KeyError\",\"message\":\"'x'\",\"stack_trace\":\"" PLACE
     "\"}}",
     PLACED},
    {"{\"event\":\"lost\",\"level\":\"error\",\"timestamp\":\"2026-11-20T10:10:18Z\","
     "\"exception\":\"" TRACE "\"}",
     PLACED},
    {"{\"text\":\"x | ERROR | lost\\n" TRACE "\\n\",\"record\":{\"level\":{\"name\":\"ERROR\"},"
     "\"message\":\"lost\",\"time\":{\"timestamp\":1795169418.5}}}",
     PLACED},
    {"{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":[{\"timeUnixNano\":"
     "\"1795169418000000000\","
     "\"severityNumber\":17,\"body\":{\"stringValue\":\"lost\"},\"attributes\":[{\"key\":"
     "\"exception.type\",\"value\":{\"stringValue\":\"KeyError\"}},{\"key\":\"exception.message\","
     "\"value\":{\"stringValue\":\"'x'\"}}]}]}]}]}",
     LOGGED},
    // A level beside the line counts as one in front of it.
    {"{\"level\":\"ERROR\",\"ts\":1795169418.5,\"msg\":\"no luck: KeyError: 'x'\"}", LOGGED},
    {"{\"level\":50,\"time\":1795169418000,\"msg\":\"no luck: KeyError: 'x'\"}", LOGGED},
    {"{\"severity\":\"CRITICAL\",\"time\":1795169418.5,\"message\":\"no luck: KeyError: 'x'\"}",
     LOGGED},
    {"{\"levelname\":\"ERROR\",\"asctime\":\"2026-11-20 10:10:18,123\",\"message\":\"no luck: "
     "KeyError: 'x'\"}",
     LOGGED},
    {"{\"@timestamp\":\"2026-11-20T10:10:18Z\",\"log.level\":\"error\",\"message\":\"no luck: "
     "KeyError: 'x'\"}",
     LOGGED},
    {"{\"MESSAGE\":\"no luck: KeyError: 'x'\",\"PRIORITY\":\"3\",\"__REALTIME_TIMESTAMP\":"
     "\"1795169418000000\",\"_HOSTNAME\":\"n1\",\"_TRANSPORT\":\"syslog\"}",
     LOGGED},
    {"{\"logName\":\"projects/p/logs/t\",\"severity\":\"ERROR\",\"jsonPayload\":{\"message\":\"no "
     "luck: KeyError: 'x'\"},\"timestamp\":\"2026-11-20T10:10:18Z\"}",
     LOGGED},
    {"time=\"2026-11-20T10:10:18Z\" level=error msg=\"no luck: KeyError: 'x'\"", LOGGED},
    {"{\"level\":40,\"time\":1795169418000,\"msg\":\"KeyError: 'x'\"}", NULL},
    {"{\"level\":\"warn\",\"ts\":1795169418.5,\"msg\":\"KeyError: 'x'\"}", NULL},
    {"{\"level\":\"ERROR\",\"ts\":1795169418.5,\"msg\":\"KeyError: 'x', retrying\"}", NULL},
    {"{\"level\":\"info\",\"ts\":1795169418.5,\"msg\":\"no luck: KeyError: 'x'\"}", NULL},
    // Of stdout and stderr it is the carrier's guess.
    {"{\"MESSAGE\":\"no luck: KeyError: 'x'\",\"PRIORITY\":\"3\",\"__REALTIME_TIMESTAMP\":"
     "\"1795169418000000\",\"_HOSTNAME\":\"n1\",\"CONTAINER_ID\":\"ab\"}",
     NULL},
    {"{\"logName\":\"projects/p/logs/stderr\",\"severity\":\"ERROR\",\"textPayload\":\"no luck: "
     "KeyError: 'x'\",\"timestamp\":\"2026-11-20T10:10:18Z\"}",
     NULL},
};

START_TEST(said_beside) {
    const struct beside *beside = &BESIDE[_i];
    const struct observed *observed = observed_lines(&decoder_log, slice_of(beside->line));
    if (beside->told == NULL)
        ck_assert_str_eq(observed->text, "");
    else
        ck_assert_msg(strstr(observed->text, beside->told) != NULL, "%s", observed->text);
    ck_assert_uint_eq(count(observed->text, "exception="), beside->told != NULL);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("carrier");
    TCase *tcase = tcase_create("carrier");
    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_add_test(tcase, each_counts);
    tcase_add_test(tcase, copies_do_not);
    tcase_add_loop_test(tcase, said_beside, 0, sizeof BESIDE / sizeof *BESIDE);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
