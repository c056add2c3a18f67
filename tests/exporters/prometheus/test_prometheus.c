// SPDX-License-Identifier: Apache-2.0
// The component as it runs: its options, its listener, batches and scrapes at the same time.

#include "base/http/server.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/metrics/metrics.h"
#include "cli/component_list.h"
#include "config/server_options.h"
#include "tests/base/http/http_client.h"
#include "tests/exporters/scratch.h"

#include <pthread.h>
#include <stdatomic.h>

// As the option rows lay it out.
struct config {
    const char *endpoint;
    int64_t max_series;
    struct duration metric_expiration;
    bool self_metrics;
    struct tls_server_config tls;
    struct auth_server_config auth;
};

static struct config config;
static struct component_context context = {.id = "prometheus", .site = "exporter/prometheus"};
static void *instance;
static struct arena arena;
static struct buffer nothing;
static char socket_path[100];
static char endpoint[120];
static struct error error;

static enum status start(void) {
    instance = memory_zero(1, exporter_prometheus.instance_size);
    return component_start(&exporter_prometheus, instance, &config, &context, &error);
}

static void stop(void) {
    component_stop(&exporter_prometheus, instance);
    memory_give(instance);
}

static void setup(void) {
    scratch_make();
    snprintf(socket_path, sizeof socket_path, "%s", scratch_path("socket"));
    snprintf(endpoint, sizeof endpoint, "unix:%s", socket_path);
    config = (struct config){
        .endpoint = endpoint, .max_series = 2000, .metric_expiration = {INT64_C(300000000000)}};
    ck_assert_uint_eq(sizeof config, exporter_prometheus.config_size);
    log_configure(LOG_ERROR, LOG_CONSOLE);
    arena_init(&arena, 1 << 16);
    buffer_init(&nothing, 1 << 16);
    ck_assert_msg(start() == STATUS_OK, "%s", error.message);
}

static void teardown(void) {
    stop();
    http_server_drop_kept();
    ck_assert_uint_eq(nothing.size, 0); // it never encodes anything
    buffer_release(&nothing);
    arena_release(&arena);
    intern_release();
    metrics_release();
    scratch_remove();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static void encode(uint32_t number, enum verdict_state state) {
    struct verdict verdict = {.pattern = "nccl_hang",
                              .kind = "missing_rank",
                              .job = intern(SLICE("train-7")),
                              .state = state,
                              .severity = SEVERITY_ERROR,
                              .end_ns = 1};
    snprintf(verdict.id, sizeof verdict.id, "nccl_hang:%u", number);
    struct batch batch = {
        .arena = &arena, .evaluate = true, .verdicts = {.items = &verdict, .count = 1}};
    exporter_prometheus.exporter.encode(instance, &batch, &nothing);
}

static struct answer ask(const char *method, const char *path, const char *headers) {
    int descriptor = client_connect_unix(socket_path);
    client_request(descriptor, method, path, headers, NULL, 0);
    struct answer answer = client_answer(descriptor, strcmp(method, "HEAD") == 0);
    close(descriptor);
    return answer;
}

static bool body_has(const struct answer *answer, const char *text) {
    return answer->body != NULL && strstr(answer->body, text) != NULL;
}

START_TEST(formats) {
    encode(1, VERDICT_OPEN);
    struct answer text = ask("GET", "/metrics", "");
    ck_assert_int_eq(text.status, 200);
    ck_assert_str_eq(answer_header(&text, "Content-Type"),
                     "text/plain; version=0.0.4; charset=utf-8");
    ck_assert(body_has(&text, "# TYPE culprit_verdicts_total counter\n"));
    ck_assert(body_has(&text,
                       "culprit_verdict_open{training_job=\"train-7\","
                       "pattern=\"nccl_hang\",kind=\"missing_rank\",severity=\"error\"} 1"));
    ck_assert(!body_has(&text, "# EOF"));
    answer_free(&text);
    struct answer open =
        ask("GET", "/metrics?x=1",
            "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n");
    ck_assert_int_eq(open.status, 200);
    ck_assert_str_eq(answer_header(&open, "Content-Type"),
                     "application/openmetrics-text; version=1.0.0; charset=utf-8");
    ck_assert(body_has(&open, "# TYPE culprit_verdicts counter\n"));
    ck_assert(body_has(&open, "# {verdict_id=\"nccl_hang:1\"}"));
    ck_assert_str_eq(open.body + open.size - 6, "# EOF\n");
    answer_free(&open);
}
END_TEST

START_TEST(gzip_when_asked) {
    for (uint32_t i = 0; i < 100; i++)
        encode(i, VERDICT_OPEN);
    struct answer plain = ask("GET", "/metrics", "");
    struct answer packed = ask("GET", "/metrics", "Accept-Encoding: gzip\r\n");
    ck_assert_str_eq(answer_header(&packed, "Content-Encoding"), "gzip");
    ck_assert_uint_lt(packed.size, plain.size);
    char *unpacked = calloc(1, plain.size + 1);
    z_stream stream = {.next_in = (unsigned char *)packed.body,
                       .avail_in = (unsigned)packed.size,
                       .next_out = (unsigned char *)unpacked,
                       .avail_out = (unsigned)plain.size + 1};
    ck_assert_int_eq(inflateInit2(&stream, 31), Z_OK);
    ck_assert_int_eq(inflate(&stream, Z_FINISH), Z_STREAM_END);
    inflateEnd(&stream);
    ck_assert_str_eq(unpacked, plain.body);
    free(unpacked);
    answer_free(&plain);
    answer_free(&packed);
}
END_TEST

START_TEST(other_requests) {
    static const struct {
        const char *method, *path;
        int status;
    } cases[] = {{"HEAD", "/metrics", 200},
                 {"POST", "/metrics", 405},
                 {"GET", "/", 404},
                 {"GET", "/metricsx", 404},
                 {"DELETE", "/metrics", 405}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct answer answer = ask(cases[i].method, cases[i].path, "");
        ck_assert_msg(answer.status == cases[i].status, "%s %s: %d", cases[i].method, cases[i].path,
                      answer.status);
        answer_free(&answer);
    }
}
END_TEST

START_TEST(before_the_first_batch_the_page_is_empty) {
    struct answer answer = ask("GET", "/metrics", "");
    ck_assert_int_eq(answer.status, 200);
    ck_assert_uint_eq(answer.size, 0);
    answer_free(&answer);
    answer = ask("GET", "/metrics", "Accept: application/openmetrics-text\r\n");
    ck_assert_str_eq(answer.body, "# EOF\n");
    answer_free(&answer);
    // Events alone change nothing and take no lock.
    struct batch batch = {.arena = &arena};
    exporter_prometheus.exporter.encode(instance, &batch, &nothing);
    encode(1, VERDICT_OPEN);
    encode(1, VERDICT_RESOLVED);
    answer = ask("GET", "/metrics", "");
    ck_assert(body_has(&answer, "culprit_verdicts_total{"));
    ck_assert(!body_has(&answer, "culprit_verdict_open{"));
    answer_free(&answer);
}
END_TEST

START_TEST(a_token_is_asked_for) {
    stop();
    config.auth.bearer_token = (struct secret){"s3cret"};
    ck_assert_msg(start() == STATUS_OK, "%s", error.message);
    encode(1, VERDICT_OPEN); // so that no scrape waits
    struct answer answer = ask("GET", "/metrics", "");
    ck_assert_int_eq(answer.status, 401);
    answer_free(&answer);
    answer = ask("GET", "/metrics", "Authorization: Bearer s3cret\r\n");
    ck_assert_int_eq(answer.status, 200);
    answer_free(&answer);
}
END_TEST

START_TEST(a_taken_endpoint_is_refused_with_its_name) {
    stop();
    http_server_drop_kept();
    int other = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    ck_assert_int_eq(bind(other, (struct sockaddr *)&address, size), 0);
    ck_assert_int_eq(listen(other, 1), 0);
    ck_assert_int_eq(getsockname(other, (struct sockaddr *)&address, &size), 0);
    char taken[64];
    snprintf(taken, sizeof taken, "127.0.0.1:%u", ntohs(address.sin_port));
    config.endpoint = taken;
    ck_assert_int_eq(start(), STATUS_CANNOT_CREATE);
    ck_assert_ptr_nonnull(strstr(error.message, taken + 10));
    stop(); // safe after a failed start
    close(other);
    config.endpoint = endpoint;
    ck_assert_msg(start() == STATUS_OK, "%s", error.message);
}
END_TEST

START_TEST(overflow_is_counted_among_the_own_metrics) {
    stop();
    config.max_series = 50;
    ck_assert_msg(start() == STATUS_OK, "%s", error.message);
    for (uint32_t i = 0; i < 100; i++)
        encode(i, VERDICT_OPEN);
    struct buffer out;
    struct exposition exposition;
    buffer_init(&out, 1 << 20);
    exposition_begin(&exposition, &out, EXPOSITION_TEXT);
    metrics_expose(&exposition);
    buffer_append_char(&out, '\0');
    // 50 less a counter and a histogram is room for 11 verdicts of three series.
    ck_assert_ptr_nonnull(
        strstr(out.data, "culprit_series_overflow_total{exporter=\"prometheus\"} 267\n"));
    buffer_release(&out);
}
END_TEST

// One page for who scrapes one port: what was found, and how culprit itself does.
START_TEST(own_metrics_are_shown_when_asked_for) {
    encode(1, VERDICT_OPEN);
    struct answer answer = ask("GET", "/metrics", "");
    ck_assert(body_has(&answer, "culprit_verdict_open{"));
    ck_assert(!body_has(&answer, "process_start_time_seconds"));
    answer_free(&answer);
    stop();
    config.self_metrics = true;
    ck_assert_msg(start() == STATUS_OK, "%s", error.message);
    encode(1, VERDICT_OPEN);
    answer = ask("GET", "/metrics", "Accept: application/openmetrics-text\r\n");
    ck_assert(body_has(&answer, "culprit_verdict_open{"));
    ck_assert(body_has(&answer, "culprit_series_overflow_total{exporter=\"prometheus\"} "));
    ck_assert(body_has(&answer, "process_start_time_seconds "));
    const char *end = strstr(answer.body, "# EOF\n");
    ck_assert_str_eq(end, "# EOF\n");
    answer_free(&answer);
}
END_TEST

static atomic_bool done;

static void *scrape(void *unused) {
    (void)unused;
    while (!atomic_load(&done)) {
        struct answer answer = ask("GET", "/metrics", "");
        ck_assert_int_eq(answer.status, 200);
        // One moment: a verdict that is open has its confidence on the same page.
        uint32_t open = 0;
        uint32_t sure = 0;
        for (const char *at = answer.body; (at = strstr(at, "culprit_verdict_open{")) != NULL; at++)
            open++;
        for (const char *at = answer.body;
             (at = strstr(at, "culprit_verdict_confidence_ratio{")) != NULL; at++)
            sure++;
        ck_assert_uint_eq(open, sure);
        answer_free(&answer);
    }
    return NULL;
}

START_TEST(scrapes_while_batches_come) {
    pthread_t threads[3];
    atomic_store(&done, false);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, scrape, NULL), 0);
    for (uint32_t i = 0; i < 3000; i++)
        encode(i / 2 % 700, i % 2 == 0 ? VERDICT_OPEN : VERDICT_RESOLVED);
    atomic_store(&done, true);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
}
END_TEST

START_TEST(a_load_is_shown_once_it_is_whole) {
    struct state_list list = {0};
    component_list_state(&exporter_prometheus, instance, &list);
    ck_assert_uint_eq(list.count, 6);
    component_restored(&exporter_prometheus, instance);
    encode(1, VERDICT_OPEN);
    struct answer answer = ask("GET", "/metrics", "");
    ck_assert(body_has(&answer, "culprit_verdict_open{"));
    answer_free(&answer);
}
END_TEST

static atomic_bool answered;

static void *scrape_once(void *out) {
    *(struct answer *)out = ask("GET", "/metrics", "");
    atomic_store(&answered, true);
    return NULL;
}

static void reload(pthread_t *thread, struct answer *answer) {
    encode(1, VERDICT_OPEN);
    stop();
    ck_assert_msg(start() == STATUS_OK, "%s", error.message);
    atomic_store(&answered, false);
    ck_assert_int_eq(pthread_create(thread, NULL, scrape_once, answer), 0);
    usleep(100000); // long enough for an answer that would not wait
    ck_assert(!atomic_load(&answered));
}

// An empty page would end every series.
START_TEST(after_a_reload_a_scrape_waits_for_the_board) {
    pthread_t thread;
    struct answer answer;
    reload(&thread, &answer);
    component_restored(&exporter_prometheus, instance);
    encode(2, VERDICT_OPEN);
    pthread_join(thread, NULL);
    ck_assert_int_eq(answer.status, 200);
    answer_free(&answer);
    reload(&thread, &answer); // nothing fits what was kept: then for the first batch
    encode(3, VERDICT_OPEN);
    pthread_join(thread, NULL);
    ck_assert(body_has(&answer, "culprit_verdict_open{"));
    answer_free(&answer);
}
END_TEST

// The new configuration fails, and the old one starts again.
START_TEST(a_scrape_does_not_hold_up_a_reload_that_failed) {
    pthread_t thread;
    struct answer answer;
    reload(&thread, &answer);
    stop();
    pthread_join(thread, NULL);
    ck_assert_int_eq(answer.status, 503);
    answer_free(&answer);
    ck_assert_msg(start() == STATUS_OK, "%s", error.message);
}
END_TEST

START_TEST(options_that_do_not_fit) {
    struct problem_list problems;
    problem_list_init(&problems, &arena);
    exporter_prometheus.validate(&config, &problems);
    ck_assert_uint_eq(problems.count, 0);
    config.endpoint = "localhost";
    config.tls.key_file = "/key.pem";
    exporter_prometheus.validate(&config, &problems);
    ck_assert_uint_eq(problems.count, 2);
    ck_assert_str_eq(problems.items[0].key, "endpoint");
    ck_assert_str_eq(problems.items[1].key, "tls.key_file");
    config.endpoint = endpoint;
}
END_TEST

int main(void) {
    TCase *all = tcase_create("all");
    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_test(all, formats);
    tcase_add_test(all, gzip_when_asked);
    tcase_add_test(all, other_requests);
    tcase_add_test(all, before_the_first_batch_the_page_is_empty);
    tcase_add_test(all, a_token_is_asked_for);
    tcase_add_test(all, a_taken_endpoint_is_refused_with_its_name);
    tcase_add_test(all, overflow_is_counted_among_the_own_metrics);
    tcase_add_test(all, own_metrics_are_shown_when_asked_for);
    tcase_add_test(all, scrapes_while_batches_come);
    tcase_add_test(all, a_load_is_shown_once_it_is_whole);
    tcase_add_test(all, after_a_reload_a_scrape_waits_for_the_board);
    tcase_add_test(all, a_scrape_does_not_hold_up_a_reload_that_failed);
    tcase_add_test(all, options_that_do_not_fit);
    Suite *suite = suite_create("prometheus");
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
