// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "base/metrics/exposition.h"

#include <check.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static struct buffer out;
static struct exposition exposition;

static void setup(void) {
    buffer_init(&out, 1 << 20);
}

static void teardown(void) {
    buffer_release(&out);
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static const char *text(void) {
    ck_assert(!out.failed);
    buffer_append_char(&out, '\0');
    return out.data;
}

static const char *number(double value) {
    buffer_reset(&out);
    exposition_append_number(&out, value);
    return text();
}

START_TEST(numbers_are_short_and_read_back) {
    ck_assert_str_eq(number(0), "0");
    ck_assert_str_eq(number(12), "12");
    ck_assert_str_eq(number(-3), "-3");
    ck_assert_str_eq(number(0.1), "0.1");
    ck_assert_str_eq(number(1.0 / 3), "0.3333333333333333");
    ck_assert_str_eq(number(1763706000.25), "1763706000.25");
    ck_assert_str_eq(number(1e21), "1e+21");
    ck_assert_str_eq(number(5e-324), "5e-324");
    ck_assert_str_eq(number(NAN), "NaN");
    ck_assert_str_eq(number(INFINITY), "+Inf");
    ck_assert_str_eq(number(-INFINITY), "-Inf");
    uint64_t state = 88172645463325252u;
    for (int i = 0; i < 20000; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        double value;
        memcpy(&value, &state, sizeof value);
        if (isnan(value) || isinf(value))
            continue;
        ck_assert_double_eq(strtod(number(value), NULL), value);
    }
}
END_TEST

static void one_of_each(enum exposition_format format) {
    static const double bounds[] = {0.1, 1, 2.5};
    static const uint64_t counts[] = {1, 0, 2, 1};
    static const struct exemplar exemplars[] = {
        {{"leak:01", 7}, 0.05, 1763706000.25}, {{"", 0}, 0, 0}, {{"", 0}, 0, 0}, {{"", 0}, 0, 0}};
    struct exposition_label job = {"training_job", SLICE("a")};
    struct exposition_label both[] = {{"pattern", SLICE("nccl_hang")}, {"rank", SLICE("")}};
    buffer_reset(&out);
    exposition_begin(&exposition, &out, format);
    exposition_family(&exposition, "culprit_verdicts_total", "Verdicts \"issued\".",
                      EXPOSITION_COUNTER);
    exposition_sample_uint(&exposition, &job, 1, UINT64_MAX);
    exposition_family(&exposition, "culprit_store_size_bytes", "Size.", EXPOSITION_GAUGE);
    exposition_sample(&exposition, NULL, 0, 1.5);
    exposition_family(&exposition, "culprit_build_info", "Build.", EXPOSITION_INFO);
    exposition_sample(&exposition, &job, 1, 1);
    exposition_family(&exposition, "culprit_verdict_latency_seconds", "Latency.",
                      EXPOSITION_HISTOGRAM);
    exposition_histogram(&exposition, both, 2, bounds, 3, counts, 8.25, exemplars);
    exposition_end(&exposition);
}

START_TEST(text_format) {
    one_of_each(EXPOSITION_TEXT);
    ck_assert_str_eq(text(),
                     "# HELP culprit_verdicts_total Verdicts \"issued\".\n"
                     "# TYPE culprit_verdicts_total counter\n"
                     "culprit_verdicts_total{training_job=\"a\"} 18446744073709551615\n"
                     "# HELP culprit_store_size_bytes Size.\n"
                     "# TYPE culprit_store_size_bytes gauge\n"
                     "culprit_store_size_bytes 1.5\n"
                     "# HELP culprit_build_info Build.\n"
                     "# TYPE culprit_build_info gauge\n"
                     "culprit_build_info{training_job=\"a\"} 1\n"
                     "# HELP culprit_verdict_latency_seconds Latency.\n"
                     "# TYPE culprit_verdict_latency_seconds histogram\n"
                     "culprit_verdict_latency_seconds_bucket{pattern=\"nccl_hang\","
                     "le=\"0.1\"} 1\n"
                     "culprit_verdict_latency_seconds_bucket{pattern=\"nccl_hang\","
                     "le=\"1\"} 1\n"
                     "culprit_verdict_latency_seconds_bucket{pattern=\"nccl_hang\","
                     "le=\"2.5\"} 3\n"
                     "culprit_verdict_latency_seconds_bucket{pattern=\"nccl_hang\","
                     "le=\"+Inf\"} 4\n"
                     "culprit_verdict_latency_seconds_sum{pattern=\"nccl_hang\"} 8.25\n"
                     "culprit_verdict_latency_seconds_count{pattern=\"nccl_hang\"} 4\n");
}
END_TEST

START_TEST(openmetrics_format) {
    one_of_each(EXPOSITION_OPENMETRICS);
    ck_assert_str_eq(text(),
                     "# HELP culprit_verdicts Verdicts \\\"issued\\\".\n"
                     "# TYPE culprit_verdicts counter\n"
                     "culprit_verdicts_total{training_job=\"a\"} 18446744073709551615\n"
                     "# HELP culprit_store_size_bytes Size.\n"
                     "# TYPE culprit_store_size_bytes gauge\n"
                     "culprit_store_size_bytes 1.5\n"
                     "# HELP culprit_build Build.\n"
                     "# TYPE culprit_build info\n"
                     "culprit_build_info{training_job=\"a\"} 1\n"
                     "# HELP culprit_verdict_latency_seconds Latency.\n"
                     "# TYPE culprit_verdict_latency_seconds histogram\n"
                     "culprit_verdict_latency_seconds_bucket{pattern=\"nccl_hang\","
                     "le=\"0.1\"} 1 # {verdict_id=\"leak:01\"} 0.05 1763706000.25\n"
                     "culprit_verdict_latency_seconds_bucket{pattern=\"nccl_hang\","
                     "le=\"1.0\"} 1\n"
                     "culprit_verdict_latency_seconds_bucket{pattern=\"nccl_hang\","
                     "le=\"2.5\"} 3\n"
                     "culprit_verdict_latency_seconds_bucket{pattern=\"nccl_hang\","
                     "le=\"+Inf\"} 4\n"
                     "culprit_verdict_latency_seconds_sum{pattern=\"nccl_hang\"} 8.25\n"
                     "culprit_verdict_latency_seconds_count{pattern=\"nccl_hang\"} 4\n"
                     "# EOF\n");
}
END_TEST

static const char *shown_label(struct slice value) {
    struct exposition_label label = {"job", value};
    buffer_reset(&out);
    exposition_begin(&exposition, &out, EXPOSITION_TEXT);
    exposition.family = "m";
    exposition_sample(&exposition, &label, 1, 1);
    return text();
}

START_TEST(labels_are_escaped_and_repaired) {
    ck_assert_str_eq(shown_label(SLICE("a\"b\\c\nd\te")), "m{job=\"a\\\"b\\\\c\\nd\te\"} 1\n");
    ck_assert_str_eq(shown_label(SLICE("zw\xc3\xb6lf")), "m{job=\"zw\xc3\xb6lf\"} 1\n");
    ck_assert_str_eq(shown_label(SLICE("a\xff\xc3")), "m{job=\"a\xef\xbf\xbd\xef\xbf\xbd\"} 1\n");
    // A lone surrogate in generalised UTF-8, and a zero byte.
    ck_assert_str_eq(shown_label(SLICE("\xed\xa0\x80|\0|")),
                     "m{job=\"\xef\xbf\xbd|\xef\xbf\xbd|\"} 1\n");
    ck_assert_str_eq(shown_label(SLICE("")), "m 1\n");
}
END_TEST

START_TEST(long_labels_are_cut_at_a_character) {
    char room[EXPOSITION_LABEL_MAX];
    char value[400];
    memset(value, 'x', sizeof value);
    struct slice shown = exposition_label_value((struct slice){value, EXPOSITION_LABEL_MAX}, room);
    ck_assert_ptr_eq(shown.data, value);
    shown = exposition_label_value((struct slice){value, EXPOSITION_LABEL_MAX + 1}, room);
    ck_assert_uint_eq(shown.size, EXPOSITION_LABEL_MAX);
    memcpy(value + EXPOSITION_LABEL_MAX - 1, "\xc3\xb6", 2);
    shown = exposition_label_value((struct slice){value, sizeof value}, room);
    ck_assert_uint_eq(shown.size, EXPOSITION_LABEL_MAX - 1);
    // What is shown is shown the same when it comes again.
    char again[EXPOSITION_LABEL_MAX];
    ck_assert_ptr_eq(exposition_label_value(shown, again).data, shown.data);
}
END_TEST

START_TEST(exemplars_beyond_the_limit_are_left_out) {
    static const double bounds[] = {1};
    static const uint64_t counts[] = {1, 1};
    char id[128];
    memset(id, 'i', sizeof id);
    // verdict_id has 10 characters of the 128.
    struct exemplar exemplars[] = {{{id, 118}, 0.5, 1}, {{id, 119}, 2, 1}};
    exposition_begin(&exposition, &out, EXPOSITION_OPENMETRICS);
    exposition_family(&exposition, "m", "M.", EXPOSITION_HISTOGRAM);
    exposition_histogram(&exposition, NULL, 0, bounds, 1, counts, 2.5, exemplars);
    const char *page = text();
    ck_assert_ptr_nonnull(strstr(page, "m_bucket{le=\"1.0\"} 1 # {verdict_id=\"iii"));
    ck_assert_ptr_nonnull(strstr(page, "m_bucket{le=\"+Inf\"} 2\n"));
}
END_TEST

START_TEST(accept_headers) {
    static const struct {
        const char *accept;
        enum exposition_format format;
    } cases[] = {
        {NULL, EXPOSITION_TEXT},
        {"", EXPOSITION_TEXT},
        {"*/*", EXPOSITION_TEXT},
        {"text/html, */*;q=0.8", EXPOSITION_TEXT},
        {"text/plain", EXPOSITION_TEXT},
        {"application/openmetrics-text", EXPOSITION_OPENMETRICS},
        {"Application/OpenMetrics-Text ; Version=1.0.0", EXPOSITION_OPENMETRICS},
        {"application/openmetrics-text;version=\"1.0.0\"", EXPOSITION_OPENMETRICS},
        {"application/openmetrics-text;version=0.0.1", EXPOSITION_TEXT},
        {"application/openmetrics-text;version=2.0.0,text/plain;q=0.1", EXPOSITION_TEXT},
        {"application/openmetrics-text;q=0", EXPOSITION_TEXT},
        {"application/openmetrics-text;q=0.000", EXPOSITION_TEXT},
        {"application/openmetrics-text;q=0.5,text/plain;q=0.5", EXPOSITION_OPENMETRICS},
        {"application/openmetrics-text;q=0.499,text/plain;q=0.5", EXPOSITION_TEXT},
        {"text/plain;version=0.0.4;q=0.9,application/openmetrics-text", EXPOSITION_OPENMETRICS},
        // The more specific range says how much text is liked.
        {"application/openmetrics-text;q=0.3,text/plain;q=0.2,*/*;q=0.9", EXPOSITION_OPENMETRICS},
        {"*/*;q=0.9,application/openmetrics-text;q=0.3", EXPOSITION_TEXT},
        // What Prometheus 2.42 and 3 send.
        {"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;"
         "q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
         EXPOSITION_OPENMETRICS},
        {"application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/"
         "openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;"
         "q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
         EXPOSITION_OPENMETRICS},
        {"text/plain;version=0.0.4;q=1,*/*;q=0.1", EXPOSITION_TEXT},
        // Odd ones.
        {",,;;=,q=", EXPOSITION_TEXT},
        {"application/openmetrics-text;q=", EXPOSITION_OPENMETRICS},
        {"text/plain;x=\"a,application/openmetrics-text\"", EXPOSITION_TEXT},
        {"application/openmetrics-text;x=\"\\\"", EXPOSITION_OPENMETRICS},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        ck_assert_msg(exposition_negotiate(cases[i].accept) == cases[i].format, "%s",
                      cases[i].accept);
    ck_assert_str_eq(exposition_content_type(EXPOSITION_TEXT),
                     "text/plain; version=0.0.4; charset=utf-8");
    ck_assert_str_eq(exposition_content_type(EXPOSITION_OPENMETRICS),
                     "application/openmetrics-text; version=1.0.0; charset=utf-8");
}
END_TEST

int main(void) {
    TCase *all = tcase_create("all");
    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_test(all, numbers_are_short_and_read_back);
    tcase_add_test(all, text_format);
    tcase_add_test(all, openmetrics_format);
    tcase_add_test(all, labels_are_escaped_and_repaired);
    tcase_add_test(all, long_labels_are_cut_at_a_character);
    tcase_add_test(all, exemplars_beyond_the_limit_are_left_out);
    tcase_add_test(all, accept_headers);
    Suite *suite = suite_create("exposition");
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
