// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "base/metrics/metrics.h"

#include <check.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct buffer out;

static const struct metric_family EVENTS = {
    .name = "test_events_total", .help = "Events.", .type = METRIC_COUNTER};
static const struct metric_family LAG = {
    .name = "test_lag_seconds", .help = "Lag.", .type = METRIC_GAUGE, .divisor = 1000000000};
static const struct metric_family DEPTH = {
    .name = "test_depth", .help = "Depth.", .type = METRIC_GAUGE};

static void setup(void) {
    buffer_init(&out, 64 << 20);
}

static void teardown(void) {
    buffer_release(&out);
    metrics_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static const char *exposed(enum exposition_format format) {
    struct exposition exposition;
    buffer_reset(&out);
    exposition_begin(&exposition, &out, format);
    metrics_expose(&exposition);
    exposition_end(&exposition);
    ck_assert(!out.failed);
    buffer_append_char(&out, '\0');
    return out.data;
}

static bool has_line(const char *page, const char *line) {
    size_t size = strlen(line);
    for (const char *at = page; (at = strstr(at, line)) != NULL; at++)
        if ((at == page || at[-1] == '\n') && (at[size] == '\n' || at[size] == '\0'))
            return true;
    return false;
}

static double value_of(const char *page, const char *name) {
    char start[128];
    snprintf(start, sizeof start, "\n%s ", name);
    const char *at = strstr(page, start);
    ck_assert_msg(at != NULL, "%s is missing", name);
    return strtod(at + strlen(start), NULL);
}

START_TEST(found_again_by_labels_in_any_order) {
    struct metric *first = METRIC(&EVENTS, "receiver", "file", "transport", "file");
    struct metric_family same = EVENTS;
    ck_assert_ptr_eq(METRIC(&EVENTS, "transport", "file", "receiver", "file"), first);
    ck_assert_ptr_eq(METRIC(&same, "receiver", "file", "transport", "file"), first);
    ck_assert_ptr_ne(METRIC(&EVENTS, "receiver", "file"), first);
    ck_assert_ptr_ne(METRIC(&EVENTS, "receiver", "file", "transport", "pipe"), first);
    metric_add(first, 3);
    metric_add(first, 4);
    ck_assert_uint_eq(metric_value(first), 7);
    const char *page = exposed(EXPOSITION_TEXT);
    ck_assert(has_line(page, "test_events_total{receiver=\"file\",transport=\"file\"} 7"));
    ck_assert(has_line(page, "test_events_total{receiver=\"file\",transport=\"pipe\"} 0"));
    ck_assert(has_line(page, "# TYPE test_events_total counter"));
    ck_assert(has_line(exposed(EXPOSITION_OPENMETRICS), "# TYPE test_events counter"));
}
END_TEST

START_TEST(gauges_have_signs_and_units) {
    metric_set(METRIC_PLAIN(&LAG), 1250000000);
    metric_set(METRIC(&DEPTH, "a", "b\"c"), (uint64_t)INT64_C(-5));
    const char *page = exposed(EXPOSITION_TEXT);
    ck_assert(has_line(page, "test_lag_seconds 1.25"));
    ck_assert(has_line(page, "test_depth{a=\"b\\\"c\"} -5"));
    metric_set(METRIC_PLAIN(&LAG), UINT64_C(1763706000250000000));
    ck_assert(has_line(exposed(EXPOSITION_TEXT), "test_lag_seconds 1763706000.25"));
    metric_set(METRIC_PLAIN(&LAG), (uint64_t)INT64_C(-2500000000));
    ck_assert(has_line(exposed(EXPOSITION_TEXT), "test_lag_seconds -2.5"));
}
END_TEST

// Values that are shown alike are one series, or a scraper would see it twice.
START_TEST(labels_that_look_alike_are_one) {
    char one[400];
    char two[400];
    memset(one, 'x', sizeof one);
    memset(two, 'x', sizeof two);
    one[399] = two[399] = '\0';
    two[390] = 'y';
    ck_assert_ptr_eq(METRIC(&DEPTH, "a", one), METRIC(&DEPTH, "a", two));
    ck_assert_ptr_eq(METRIC(&DEPTH, "a", "\xff"), METRIC(&DEPTH, "a", "\xfe"));
    ck_assert_ptr_ne(METRIC(&DEPTH, "a", "1", "b", "2"), METRIC(&DEPTH, "a", "2", "b", "1"));
}
END_TEST

static void at_line(const char *page, const char *start, const char **last) {
    const char *found = strstr(page, start);
    ck_assert_msg(found != NULL, "%s is missing", start);
    ck_assert_msg(found > *last, "%s comes too early", start);
    *last = found;
}

START_TEST(sorted_whatever_the_order_of_making) {
    for (int i = 99; i >= 0; i--) {
        char name[16];
        snprintf(name, sizeof name, "%02d", i * 37 % 100);
        metric_add(METRIC(&EVENTS, "n", name), 1);
    }
    metrics_set_build("0.1.0", "abc");
    METRIC_PLAIN(&DEPTH);
    const char *page = exposed(EXPOSITION_TEXT);
    const char *last = page;
    at_line(page, "\nculprit_build_info{compiler=\"", &last);
    at_line(page, "\n# HELP process_cpu_seconds_total", &last);
    at_line(page, "\n# HELP test_depth", &last);
    for (int i = 0; i < 100; i++) {
        char line[64];
        snprintf(line, sizeof line, "\ntest_events_total{n=\"%02d\"} 1\n", i);
        at_line(page, line, &last);
    }
}
END_TEST

START_TEST(removed_series_come_back) {
    struct metric *zero = METRIC(&DEPTH, "topic", "t", "partition", "0");
    struct metric *one = METRIC(&DEPTH, "topic", "t", "partition", "1");
    struct metric *counted = METRIC(&EVENTS, "partition", "1");
    metric_set(zero, 5);
    metric_set(one, 6);
    metric_add(counted, 2);
    metric_remove(&DEPTH, "partition", "1");
    metric_remove(&EVENTS, "partition", "1");
    const char *page = exposed(EXPOSITION_TEXT);
    ck_assert(has_line(page, "test_depth{partition=\"0\",topic=\"t\"} 5"));
    ck_assert_ptr_null(strstr(page, "partition=\"1\""));
    ck_assert_ptr_null(strstr(page, "# HELP test_events_total"));
    metric_set(one, 7); // who held it may still write
    ck_assert_ptr_eq(METRIC(&DEPTH, "topic", "t", "partition", "1"), one);
    ck_assert_uint_eq(metric_value(one), 0);
    ck_assert_ptr_eq(METRIC(&EVENTS, "partition", "1"), counted);
    ck_assert(has_line(exposed(EXPOSITION_TEXT), "test_events_total{partition=\"1\"} 2"));
}
END_TEST

static void count_calls(void *context) {
    ++*(uint64_t *)context;
    metric_set(METRIC_PLAIN(&DEPTH), *(uint64_t *)context);
}

START_TEST(collectors_are_asked_before_each_exposition) {
    uint64_t calls = 0;
    uint64_t others = 0;
    metrics_on_collect(count_calls, &calls);
    metrics_on_collect(count_calls, &others);
    exposed(EXPOSITION_TEXT);
    metrics_remove_collect(count_calls, &others);
    ck_assert(has_line(exposed(EXPOSITION_TEXT), "test_depth 2"));
    metrics_remove_collect(count_calls, &calls);
    metrics_remove_collect(count_calls, &calls);
    exposed(EXPOSITION_TEXT);
    ck_assert_uint_eq(calls, 2);
    ck_assert_uint_eq(others, 1);
}
END_TEST

static void *wait_at_gate(void *gate) {
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return NULL;
}

START_TEST(process_figures) {
    const char *page = exposed(EXPOSITION_TEXT);
    double fds = value_of(page, "process_open_fds");
    double started = value_of(page, "process_start_time_seconds");
    ck_assert_double_gt(value_of(page, "process_resident_memory_bytes"), 100 * 1024);
    ck_assert_double_gt(value_of(page, "process_virtual_memory_bytes"), 100 * 1024);
    ck_assert_double_gt(value_of(page, "process_max_fds"), 2);
    double threads = value_of(page, "process_threads");
    ck_assert_double_ge(value_of(page, "process_cpu_seconds_total"), 0);
    ck_assert_double_gt(started, 1.5e9);
    pthread_t thread;
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&gate);
    ck_assert_int_eq(pthread_create(&thread, NULL, wait_at_gate, &gate), 0);
    ck_assert_double_ge(value_of(exposed(EXPOSITION_TEXT), "process_threads"), threads + 1);
    pthread_mutex_unlock(&gate);
    pthread_join(thread, NULL);
    int more[5];
    for (int i = 0; i < 5; i++)
        more[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    page = exposed(EXPOSITION_TEXT);
    ck_assert_double_eq(value_of(page, "process_open_fds"), fds + 5);
    ck_assert_double_eq(value_of(page, "process_start_time_seconds"), started);
    for (int i = 0; i < 5; i++)
        close(more[i]);
}
END_TEST

START_TEST(series_beyond_the_bound_are_not_exposed) {
    struct metric *last = NULL;
    for (int i = 0; i < METRIC_SERIES_MAX + 10; i++) {
        char name[16];
        snprintf(name, sizeof name, "%05d", i);
        last = METRIC(&EVENTS, "n", name);
        metric_add(last, 1);
    }
    ck_assert_uint_gt(metric_value(last), 1); // shared by those that came too late
    const char *page = exposed(EXPOSITION_TEXT);
    ck_assert_double_ge(value_of(page, "culprit_metric_series_left_out_total"), 10);
    uint32_t shown = 0;
    for (const char *at = page; (at = strstr(at, "\ntest_events_total{")) != NULL; at++)
        shown++;
    ck_assert_uint_le(shown, METRIC_SERIES_MAX);
    ck_assert_uint_gt(shown, METRIC_SERIES_MAX - 10);
}
END_TEST

enum { THREADS = 4, ROUNDS = 2000 };

static void *add_from_thread(void *unused) {
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i % 50);
        metric_add(METRIC(&EVENTS, "n", name), 1);
    }
    return NULL;
}

START_TEST(threads_find_the_same_series) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, add_from_thread, NULL), 0);
    for (int i = 0; i < 20; i++)
        exposed(EXPOSITION_TEXT);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    uint64_t sum = 0;
    for (int i = 0; i < 50; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        sum += metric_value(METRIC(&EVENTS, "n", name));
    }
    ck_assert_uint_eq(sum, THREADS * ROUNDS);
}
END_TEST

int main(void) {
    TCase *all = tcase_create("all");
    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_test(all, found_again_by_labels_in_any_order);
    tcase_add_test(all, gauges_have_signs_and_units);
    tcase_add_test(all, labels_that_look_alike_are_one);
    tcase_add_test(all, sorted_whatever_the_order_of_making);
    tcase_add_test(all, removed_series_come_back);
    tcase_add_test(all, collectors_are_asked_before_each_exposition);
    tcase_add_test(all, process_figures);
    tcase_add_test(all, series_beyond_the_bound_are_not_exposed);
    tcase_add_test(all, threads_find_the_same_series);
    Suite *suite = suite_create("metrics");
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
