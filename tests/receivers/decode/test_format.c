// SPDX-License-Identifier: Apache-2.0
#include "receivers/decode/format.h"
#include "receivers/decode/forms/forms.h"
#include "receivers/decode/json/keys.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct format_guess guess(const char *text) {
    return format_guess(slice_of(text), true, FORMAT_UNKNOWN);
}

static void check(const char *text, enum format_kind kind, enum format_layout layout) {
    struct format_guess found = guess(text);
    ck_assert_msg(found.decided, "%s: not decided", text);
    ck_assert_msg(found.kind == kind, "%s: %s", text, format_name(found.kind));
    if (kind == FORMAT_STORMLOG)
        ck_assert_msg(found.layout == layout, "%s: layout %d", text, (int)found.layout);
}

// Of a fixed seed, so that it is the same each time; `lines`: every tenth byte ends one.
static struct slice noise(char *room, size_t size, bool lines) {
    uint32_t state = 7;
    for (size_t i = 0; i < size; i++) {
        state = state * 1664525 + 1013904223;
        room[i] = lines && i % 10 == 9 ? '\n' : (char)(state >> 24);
        if (lines && i < 9)
            room[i] = 'a'; // no zero byte in the first line
    }
    return (struct slice){room, size};
}

// What a row of a site's own opens is a log, whatever its keys are.
START_TEST(envelopes_of_users) {
    static const char *const files[] = {"site.forms"};
    static const char lines[] =
        "{\"when\": \"2026-01-05T10:11:12Z\", \"said\": \"step 3\"}\n"
        "{\"when\": \"2026-01-05T10:11:13Z\", \"said\": \"step 4\"}\n";
    const struct slice texts[] = {
        SLICE("family site S\n\nenvelope site\n  needs when\n"
              "  message said\n  time when\n"
              "  sample {\"when\":\"2026-01-05T10:11:12Z\",\"said\":\"x\"}\n"
              "  gives message=x\n")};
    struct form_fault fault;
    struct forms *forms = forms_make(files, texts, 1, &fault);
    ck_assert_msg(forms != NULL, "%s", fault.words);
    ck_assert_int_eq(guess(lines).kind, FORMAT_UNKNOWN);
    struct format_guess found = format_guess_by(slice_of(lines), true, FORMAT_UNKNOWN, forms);
    ck_assert_int_eq(found.kind, FORMAT_LOG);
    ck_assert_int_eq(found.layout, LAYOUT_LINES);
    forms_free(forms);
}
END_TEST

// An object with words that no row knows: the decoder says with which keys.
START_TEST(objects_with_words) {
    static const char *const keys[] = {"message", "msg",  "text",   "line",
                                       "content", "body", "Message"};
    char line[80];
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        snprintf(line, sizeof line, "{\"zz\": 1, \"%s\": \"step 3\"}\n", keys[i]);
        ck_assert_msg(guess(line).kind == FORMAT_LOG, "%s", keys[i]);
    }
}
END_TEST

START_TEST(bytes_that_are_no_text) {
    static char bytes[40000];
    static const char png[] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\1\2\3\0\4\5\6\b\6\1\2\3\4\5\6";
    ck_assert_int_eq(format_guess(noise(bytes, sizeof bytes, true), true, FORMAT_UNKNOWN).kind,
                     FORMAT_BINARY);
    ck_assert_int_eq(format_guess(noise(bytes, 400, true), true, FORMAT_UNKNOWN).kind,
                     FORMAT_BINARY);
    ck_assert_int_eq(format_guess(noise(bytes, sizeof bytes, false), true, FORMAT_UNKNOWN).kind,
                     FORMAT_BINARY);
    ck_assert_int_eq(format_guess((struct slice){png, sizeof png - 1}, true, FORMAT_UNKNOWN).kind,
                     FORMAT_BINARY);
    memset(bytes, 0, sizeof bytes);
    ck_assert_int_eq(format_guess((struct slice){bytes, sizeof bytes}, true, FORMAT_UNKNOWN).kind,
                     FORMAT_BINARY);
    // Whoever names the format knows better.
    ck_assert_int_eq(format_guess(noise(bytes, sizeof bytes, true), true, FORMAT_LOG).kind,
                     FORMAT_LOG);
}
END_TEST

START_TEST(texts_that_look_odd) {
    static char hole[9000] = "step 1\n";
    memset(hole + 7, 'x', 4000);
    hole[4007] = '\n';
    hole[8998] = '\n';
    const struct slice texts[] = {
        SLICE("Schritt 1: Verlust gr\xf6\xdf"
              "er als \xfc"
              "blich\n\xc4rger\n"),                          // Latin-1
        SLICE("\xd8\xe0\xe3 1: \xdf\xde\xe2\xd5\xe0\xef\n"), // ISO 8859-5
        SLICE("\x1b[1;31mERROR\x1b[0m\x07 10%\r\x1b[K20%\b\b\b30%\f\v\n"),
        SLICE("a line\none \0 stray\nand \1 another\nlost \x7f byte\n"),
        {hole, 8999}, // what a crash of the node leaves: a block that was never written
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct format_guess found = format_guess(texts[i], true, FORMAT_UNKNOWN);
        ck_assert_msg(found.kind == FORMAT_LOG, "%zu: %s", i, format_name(found.kind));
    }
}
END_TEST

START_TEST(stormlog_records) {
    static const char *const lines[] = {
        "{\"schema_version\": 4, \"event_type\": \"sample\"}\n",
        "{\"schema_version\": 99}\n",
        "{\"allocator_active_bytes\": null, \"schema_version\": 3}\r\n",
        "{\"timestamp\": 1.5, \"memory_allocated\": 5}\n",
        "{\"memory_mb\": 1}",
        "{\"device_used_bytes\": 1}\n\n",
        "\n\n  {\"allocator_reserved_bytes\":1}\n",
        "{\"allocator_active_bytes\": null, \"allocator_al",
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        check(lines[i], FORMAT_STORMLOG, LAYOUT_LINES);
}
END_TEST

START_TEST(layouts) {
    check("[\n  {\n    \"schema_version\": 4\n  }\n]\n", FORMAT_STORMLOG, LAYOUT_ARRAY);
    check("[]", FORMAT_STORMLOG, LAYOUT_ARRAY);
    check(" [ ", FORMAT_STORMLOG, LAYOUT_ARRAY);
    check("[{\"note\": 1}, {bad}, {\"memory_mb\": 1}]", FORMAT_STORMLOG, LAYOUT_ARRAY);
    check("[{\"memory_mb\": 1}, {\"cut", FORMAT_STORMLOG, LAYOUT_ARRAY);
    check("[{\"memory_mb\": ", FORMAT_STORMLOG, LAYOUT_ARRAY);
    check("{\"events\": [{\"a\":1}]}", FORMAT_STORMLOG, LAYOUT_WRAPPER);
    check("{\"session_summary\": {\"schema_version\": 1}, \"telemetry_events\": [", FORMAT_STORMLOG,
          LAYOUT_WRAPPER);
    check("{\n \"events\": []\n}", FORMAT_STORMLOG, LAYOUT_WRAPPER);
    check("{\n  \"schema_version\": 4,\n  \"pid\": 1\n}\n", FORMAT_STORMLOG, LAYOUT_OBJECT);
    check("{\n  \"schema_version\": 4,\n  \"pid\"", FORMAT_STORMLOG, LAYOUT_OBJECT);
    check("{\"schema_version\": 4, \"events\": []}\n", FORMAT_STORMLOG, LAYOUT_LINES);
}
END_TEST

START_TEST(bad_lines_before_a_good_one) {
    check("garbage\n{\"cut\": \n{\"schema_version\": 4}\n", FORMAT_STORMLOG, LAYOUT_LINES);
    check("{\"cut\": \n{\"schema_version\": 4}\n", FORMAT_STORMLOG, LAYOUT_LINES);
    check("{\"cut\": \"\n{\"schema_version\": 4}\n", FORMAT_STORMLOG, LAYOUT_LINES);
    check("{\"a\":1,\n{\"schema_version\": 4}\n", FORMAT_STORMLOG, LAYOUT_LINES);
    check("[12:00] starting\n{\"schema_version\": 4}\n", FORMAT_STORMLOG, LAYOUT_LINES);
    check("{\"level\": \"info\"}\n{\"schema_version\": 4}\n", FORMAT_STORMLOG, LAYOUT_LINES);
    check("{\"a\": 1} junk\n{\"schema_version\": 4}\n", FORMAT_STORMLOG, LAYOUT_LINES);
    check("\xef\xbb\xbf{\"a\": 1}\n{\"schema_version\": 4}\n", FORMAT_STORMLOG, LAYOUT_LINES);
}
END_TEST

START_TEST(what_is_no_telemetry) {
    static const struct {
        const char *text;
        enum format_kind kind;
    } cases[] = {
        {"\x80\x04\x95", FORMAT_PICKLE},
        {"\x1f\x8b\x08", FORMAT_GZIP},
        {"{\"source\": \"kmsg\", \"schema_version\": 4}\n", FORMAT_TAGGED_LINES},
        {"{\"ts\": 1, \"ev\": \"start\"}\n", FORMAT_SPANS},
        {"{\"apiVersion\": \"v1\", \"kind\": \"Event\"}\n", FORMAT_KUBERNETES},
        {"{\"kind\": \"Event\"}\n", FORMAT_KUBERNETES},
        {"{\"source\": {\"component\": \"kubelet\"}, \"apiVersion\": \"v1\"}\n", FORMAT_KUBERNETES},
        {"{\"apiVersion\": \"v1\", \"items\": [], \"kind\": \"List\"}", FORMAT_KUBERNETES},
        {"{\"UUID\": \"GPU-1\", \"fields\": {}}\n", FORMAT_DCGM},
        {"{\"rank\": 1, \"pci_bus_id\": \"00000000:1B:00.0\"}\n", FORMAT_RANK_MAP},
        {"{\"rank\": 1}\n", FORMAT_RANK_MAP},
        {"{\"rank\": 1, \"timestamp_ns\": 5, \"local_rank\": 0}\n", FORMAT_RANK_MAP},
        {"{\"rank\": 1, \"host.name\": \"n\", \"restart\": 0}\n", FORMAT_RANK_MAP},
        {"{\"process.pid\": 7, \"more\": {}, \"rank\": 1}\n", FORMAT_RANK_MAP},
        {"{\"rank\": 1, \"score\": 0.5}\n", FORMAT_UNKNOWN},
        {"{\"rank\": 1, \"timestamp_ns\": 5, \"event_type\": \"x\"}\n", FORMAT_UNKNOWN},
        {"{\"rank\": 1, \"host.name\": \"n\", \"message\": \"step 1\"}\n", FORMAT_LOG},
        {"{\"local_rank\": 1, \"host.name\": \"n\"}\n", FORMAT_UNKNOWN},
        {"{\"MESSAGE\": \"x\", \"__REALTIME_TIMESTAMP\": \"1\"}\n", FORMAT_LOG},
        {"NVRM: Xid (PCI:0000:01:00): 79\n", FORMAT_KERNEL_LOG},
        {"RxErr 0\nBadTLP 3\nTOTAL_ERR_COR 3\n", FORMAT_AER_COUNTERS},
        {"TOTAL_ERR_FATAL 0\n", FORMAT_AER_COUNTERS},
        {"{\"type\": \"ADDED\", \"object\": {}}\n", FORMAT_KUBERNETES},
        {"{\n \"apiVersion\": \"v1\",\n \"items\": [\n {\n }\n ]\n}", FORMAT_KUBERNETES},
        {"{\"version\": \"2.4\", \"entries\": [{}]}", FORMAT_FLIGHT_RECORDER},
        {"{\"pg_config\": {}}", FORMAT_FLIGHT_RECORDER},
        {"{\n\"schema_version\": 2,\n\"format\": \"x\", \"sessions\": []}", FORMAT_SIDECAR},
        {"{\"schema_version\": 2, \"bundle_name\": \"x\"}", FORMAT_SIDECAR},
        {"# HELP DCGM_FI_DEV_GPU_TEMP x\n# TYPE x gauge\nx 1\n", FORMAT_METRICS_TEXT},
        {"[    2.345678] NVRM: Xid (PCI:0000:01:00): 79\n", FORMAT_KERNEL_LOG},
        {"<6>[    2.345678] usb 1-1\n", FORMAT_KERNEL_LOG},
        {"6,812,12345678,-;NVRM: loading\n", FORMAT_KERNEL_LOG},
        {"Jan 31 09:15:04 node-a kernel: NVRM: Xid\n", FORMAT_KERNEL_LOG},
        {"{\"schema\":\"culprit.verdict.v1\",\"kind\":\"leak\"}\n", FORMAT_VERDICTS},
        {"{\"path\":\"a\",\"position\":1,\"category\":\"bad_json\",\"field\":\"\",\"detail\":\"\","
         "\"record\":\"{\"}\n",
         FORMAT_QUARANTINE},
        {"{\"job_id\": null, \"first_cause_suspects\": []}\n", FORMAT_UNKNOWN},
        {"{\"columns\":[\"device_used_bytes\"],\"points\":[\n[1]]}\n", FORMAT_UNKNOWN},
        {"[{\"a\": 1}, {\"b\": 2}]", FORMAT_UNKNOWN},
        {"[1, 2]", FORMAT_LOG},
        {"{}", FORMAT_UNKNOWN},
        {"{\"type\": \"sample\"}\n", FORMAT_UNKNOWN},
        {"timestamp,rank\n1,2\n", FORMAT_LOG},
        {"", FORMAT_UNKNOWN},
        {" \n", FORMAT_UNKNOWN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check(cases[i].text, cases[i].kind, LAYOUT_LINES);
}
END_TEST

START_TEST(forced_to_be_telemetry) {
    static const struct {
        const char *text;
        enum format_layout layout;
    } cases[] = {{"{\"x\": 1}\n", LAYOUT_LINES},       {"junk\n", LAYOUT_LINES},
                 {"[{\"x\": 1}]", LAYOUT_ARRAY},       {"{\n\"x\": 1\n}", LAYOUT_OBJECT},
                 {"{\"events\": []}", LAYOUT_WRAPPER}, {"\x80\x04\x95", LAYOUT_LINES}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct format_guess found = format_guess(slice_of(cases[i].text), true, FORMAT_STORMLOG);
        ck_assert(found.decided);
        ck_assert_int_eq(found.kind, FORMAT_STORMLOG);
        ck_assert_int_eq(found.layout, cases[i].layout);
    }
    ck_assert_int_eq(format_guess(SLICE("\x1f\x8b\x08"), true, FORMAT_STORMLOG).kind, FORMAT_GZIP);
}
END_TEST

// With more to come, an answer is given only when more cannot change it.
START_TEST(more_input_never_changes_an_answer) {
    static const char *const texts[] = {
        "{\"schema_version\": 4, \"event_type\": \"sample\"}\n{\"schema_version\": 4}\n",
        "[\n  {\n    \"schema_version\": 4\n  }\n]\n",
        "{\n  \"schema_version\": 4,\n  \"pid\": 1\n}\n",
        "{\"session_summary\": {}, \"telemetry_events\": [{\"a\": 1}]}",
        "garbage\n{\"a\":1}\n{\"memory_mb\": 4}\n",
        "[    2.345678] NVRM: Xid\n{\"memory_mb\": 4}\n",
        "{\"ts\": 1, \"ev\": \"start\"}\n",
        "\x1f\x8b\x08\x01",
        "\x80\x04\x95\x01",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct format_guess last = guess(texts[i]);
        bool decided = false;
        for (size_t size = 0; size <= strlen(texts[i]); size++) {
            struct format_guess found =
                format_guess((struct slice){texts[i], size}, false, FORMAT_UNKNOWN);
            ck_assert_msg(found.decided || !decided, "%s: undecided again at %zu", texts[i], size);
            decided = found.decided;
            if (decided) {
                ck_assert_msg(found.kind == last.kind, "%s at %zu", texts[i], size);
                ck_assert_int_eq(found.layout, last.layout);
            }
        }
    }
}
END_TEST

START_TEST(a_bounded_look) {
    char *text = malloc(FORMAT_HEAD_MAX);
    memset(text, 'x', FORMAT_HEAD_MAX);
    ck_assert(
        !format_guess((struct slice){text, FORMAT_HEAD_MAX - 1}, false, FORMAT_UNKNOWN).decided);
    ck_assert(format_guess((struct slice){text, FORMAT_HEAD_MAX}, false, FORMAT_UNKNOWN).decided);
    struct format_guess found;
    size_t used = 0;
    for (unsigned line = 1; line <= FORMAT_LINES_MAX; line++) {
        used += (size_t)sprintf(text + used, "{\"line\": %u}\n", line);
        found = format_guess((struct slice){text, used}, false, FORMAT_UNKNOWN);
        ck_assert(found.decided == (line == FORMAT_LINES_MAX));
    }
    ck_assert_int_eq(found.kind, FORMAT_UNKNOWN);
    free(text);
}
END_TEST

START_TEST(a_long_first_line) {
    char *text = malloc(FORMAT_HEAD_MAX);
    size_t used = (size_t)sprintf(text, "{\"memory_mb\": 1, \"x\": \"");
    memset(text + used, 'x', FORMAT_HEAD_MAX - used);
    ck_assert(!format_guess((struct slice){text, 300000}, false, FORMAT_UNKNOWN).decided);
    struct format_guess found =
        format_guess((struct slice){text, FORMAT_HEAD_MAX}, false, FORMAT_UNKNOWN);
    ck_assert(found.decided);
    ck_assert_int_eq(found.kind, FORMAT_STORMLOG);
    ck_assert_int_eq(found.layout, LAYOUT_LINES);
    free(text);
}
END_TEST

// Whoever dumps an object need not end the line: it is whole when its bracket closes.
START_TEST(a_dump_in_one_line_without_an_end) {
    static const char dump[] =
        "{\"version\": \"2.10\", \"pg_config\": {}, \"pg_status\": {}, \"entries\": []}";
    for (size_t size = 1; size < sizeof dump - 1; size++)
        ck_assert_msg(!format_guess((struct slice){dump, size}, false, FORMAT_UNKNOWN).decided,
                      "decided after %zu bytes", size);
    struct format_guess found =
        format_guess((struct slice){dump, sizeof dump - 1}, false, FORMAT_UNKNOWN);
    ck_assert(found.decided);
    ck_assert_int_eq(found.kind, FORMAT_FLIGHT_RECORDER);
    ck_assert_int_eq(found.layout, LAYOUT_WHOLE);
}
END_TEST

// A long one is told by what comes before its entries: what they hold is not looked at, here it is
// wrong. Whoever looks twice, with more or at the end, gets the same.
START_TEST(a_long_dump_is_looked_at_up_to_its_entries) {
    enum { SIZE = 96 << 10, SHORT = 32 << 10 };
    static const struct {
        const char *begins;
        enum format_kind forced;
        bool is_dump;
    } cases[] = {
        {"{\"comm_lib_version\":\"2.28.9\",\"entries\":[", FORMAT_UNKNOWN, true},
        {"{\"version\": \"2.4\", \"rank\": 1,\n \"pg_config\": {", FORMAT_UNKNOWN, true},
        {"{\"comm_lib_version\":\"2.28.9\",\"entries\":[", FORMAT_FLIGHT_RECORDER, true},
        {"{\"source\":\"fr_dump\",\"entries\":[", FORMAT_UNKNOWN, false},
        {"{\"kind\":\"Pod\",\"entries\":[", FORMAT_UNKNOWN, false},
        {"{\"dump\":{\"entries\":[", FORMAT_UNKNOWN, false},
        {"{\"entries\":\"many\",\"more\":[", FORMAT_UNKNOWN, false},
    };
    static char text[SIZE];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        memset(text, '}', sizeof text);
        memcpy(text, cases[i].begins, strlen(cases[i].begins));
        for (int final = 0; final < 2; final++) {
            struct format_guess found =
                format_guess((struct slice){text, SIZE}, final == 1, cases[i].forced);
            bool is_dump = found.decided && found.kind == FORMAT_FLIGHT_RECORDER &&
                           found.layout == LAYOUT_WHOLE;
            ck_assert_msg(is_dump == cases[i].is_dump, "%s", cases[i].begins);
        }
        // A short one may still be written: it is looked at to its end, as all were.
        memset(text + strlen(cases[i].begins), '[', SHORT);
        ck_assert_msg(cases[i].forced != FORMAT_UNKNOWN ||
                          format_guess((struct slice){text, SHORT}, true, FORMAT_UNKNOWN).kind !=
                              FORMAT_FLIGHT_RECORDER,
                      "%s", cases[i].begins);
    }
}
END_TEST

START_TEST(whole_objects) {
    static const char *const whole[] = {"{}", " {\"a\":[1,-2.5e3,true,null,\"x\\\"\"]} \r",
                                        "{\"a\":{\"b\":NaN,\"c\":-Infinity}}"};
    static const char *const not_whole[] = {"",
                                            "[]",
                                            "1",
                                            "{",
                                            "{\"a\"",
                                            "{\"a\":",
                                            "{\"a\":1",
                                            "{\"a\":1,",
                                            "{\"a\":1,}",
                                            "{,}",
                                            "{\"a\" 1}",
                                            "{\"a\":1}}",
                                            "{\"a\":tru}",
                                            "{\"a\":01}",
                                            "{\"a\":[1}",
                                            "{\"a\":\"\n\"}",
                                            "{} x",
                                            "{\"a\":1 2}",
                                            "{a:1}",
                                            "{\"a\":[,]}"};
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++)
        ck_assert_msg(json_is_whole_object(slice_of(whole[i])), "%s", whole[i]);
    for (size_t i = 0; i < sizeof not_whole / sizeof not_whole[0]; i++)
        ck_assert_msg(!json_is_whole_object(slice_of(not_whole[i])), "%s", not_whole[i]);
    const char *text = whole[1];
    for (size_t size = 0; size + 2 < strlen(text); size++)
        ck_assert(!json_is_whole_object((struct slice){text, size}));
}
END_TEST

START_TEST(depth_of_keys_is_bounded) {
    char text[400] = "{\"a\":";
    for (int i = 0; i < 63; i++)
        strcat(text, "[");
    for (int i = 0; i < 63; i++)
        strcat(text, "]");
    strcat(text, "}");
    ck_assert(json_is_whole_object(slice_of(text)));
    char deeper[420];
    snprintf(deeper, sizeof deeper, "{\"b\":%s}", text);
    ck_assert(!json_is_whole_object(slice_of(deeper)));
}
END_TEST

START_TEST(random_bytes_do_no_harm) {
    static const char letters[] = "[]{},:\"\\ \n1aentrsv_";
    srand(11);
    for (int round = 0; round < 20000; round++) {
        size_t size = (size_t)rand() % 64;
        char *text = malloc(size + 1); // exactly as long as it is said to be
        for (size_t i = 0; i < size; i++)
            text[i] = letters[(size_t)rand() % (sizeof letters - 1)];
        text = realloc(text, size == 0 ? 1 : size);
        struct format_guess first = format_guess((struct slice){text, size}, true, FORMAT_UNKNOWN);
        ck_assert(first.decided);
        format_guess((struct slice){text, size}, false, rand() % 2 == 0);
        free(text);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("format");
    TCase *tcase = tcase_create("format");
    tcase_add_test(tcase, envelopes_of_users);
    tcase_add_test(tcase, objects_with_words);
    tcase_add_test(tcase, bytes_that_are_no_text);
    tcase_add_test(tcase, texts_that_look_odd);
    tcase_add_test(tcase, stormlog_records);
    tcase_add_test(tcase, layouts);
    tcase_add_test(tcase, bad_lines_before_a_good_one);
    tcase_add_test(tcase, what_is_no_telemetry);
    tcase_add_test(tcase, forced_to_be_telemetry);
    tcase_add_test(tcase, more_input_never_changes_an_answer);
    tcase_add_test(tcase, a_bounded_look);
    tcase_add_test(tcase, a_long_first_line);
    tcase_add_test(tcase, a_dump_in_one_line_without_an_end);
    tcase_add_test(tcase, whole_objects);
    tcase_add_test(tcase, a_long_dump_is_looked_at_up_to_its_entries);
    tcase_add_test(tcase, depth_of_keys_is_bounded);
    tcase_add_test(tcase, random_bytes_do_no_harm);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
