// SPDX-License-Identifier: Apache-2.0
#include "pipeline/runtime/self_metrics.h"

#include "base/http/server.h"
#include "base/memory.h"
#include "base/metrics/metrics.h"
#include "tests/base/http/http_client.h"
#include "tests/support/temporary.h"

static struct http_server *self;
static char folder[64];
static char socket_path[100];
static char endpoint[120];

static void start(void) {
    struct error error = {0};
    enum status status = self_metrics_start(&self, endpoint, "service/telemetry/metrics", &error);
    ck_assert_msg(status == STATUS_OK, "%s", error.message);
}

static void setup(void) {
    temporary_path(folder, sizeof folder, "test");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(socket_path, sizeof socket_path, "%s/socket", folder);
    snprintf(endpoint, sizeof endpoint, "unix:%s", socket_path);
    start();
}

static void teardown(void) {
    http_server_stop(self, UINT64_C(1000000000), false);
    metrics_release();
    ck_assert_int_eq(rmdir(folder), 0);
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static struct answer ask(const char *headers) {
    int descriptor = client_connect_unix(socket_path);
    client_request(descriptor, "GET", "/metrics", headers, NULL, 0);
    struct answer answer = client_answer(descriptor, false);
    close(descriptor);
    ck_assert_int_eq(answer.status, 200);
    return answer;
}

START_TEST(both_formats) {
    metrics_set_build("0.1.0", "abc");
    struct answer answer = ask("");
    ck_assert_str_eq(answer_header(&answer, "Content-Type"),
                     "text/plain; version=0.0.4; charset=utf-8");
    ck_assert_ptr_nonnull(strstr(answer.body, "# TYPE culprit_build_info gauge\n"));
    ck_assert_ptr_nonnull(strstr(answer.body, "\nprocess_resident_memory_bytes "));
    ck_assert_ptr_null(strstr(answer.body, "# EOF"));
    answer_free(&answer);
    answer = ask("Accept: application/openmetrics-text;version=1.0.0\r\n");
    ck_assert_str_eq(answer_header(&answer, "Content-Type"),
                     "application/openmetrics-text; version=1.0.0; charset=utf-8");
    ck_assert_ptr_nonnull(strstr(answer.body, "# TYPE culprit_build info\n"));
    ck_assert_ptr_nonnull(strstr(answer.body, "# TYPE process_cpu_seconds counter\n"));
    ck_assert_str_eq(answer.body + answer.size - 6, "# EOF\n");
    answer_free(&answer);
    answer = ask("Accept-Encoding: gzip\r\n");
    ck_assert_str_eq(answer_header(&answer, "Content-Encoding"), "gzip");
    answer_free(&answer);
}
END_TEST

START_TEST(a_reload_keeps_the_socket) {
    static const struct metric_family events = {"test_events_total", "Events.", METRIC_COUNTER, 0};
    metric_add(METRIC_PLAIN(&events), 5);
    http_server_stop(self, UINT64_C(1000000000), true);
    int waiting = client_connect_unix(socket_path); // is let in by the next one
    client_request(waiting, "GET", "/metrics", "", NULL, 0);
    start();
    struct answer answer = client_answer(waiting, false);
    ck_assert_int_eq(answer.status, 200);
    ck_assert_ptr_nonnull(strstr(answer.body, "\ntest_events_total 5\n"));
    answer_free(&answer);
    close(waiting);
}
END_TEST

START_TEST(a_wrong_endpoint_is_said) {
    struct http_server *other = NULL;
    struct error error = {0};
    ck_assert_int_ne(self_metrics_start(&other, "unix:/nowhere/at/all", "x", &error), STATUS_OK);
    ck_assert_ptr_nonnull(strstr(error.message, "/nowhere/at/all"));
    ck_assert_ptr_null(other);
    http_server_stop(other, UINT64_C(1000000000), false);
}
END_TEST

int main(void) {
    TCase *all = tcase_create("all");
    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_test(all, both_formats);
    tcase_add_test(all, a_reload_keeps_the_socket);
    tcase_add_test(all, a_wrong_endpoint_is_said);
    Suite *suite = suite_create("self_metrics");
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
