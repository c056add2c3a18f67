// SPDX-License-Identifier: Apache-2.0

#include "base/http/server.h"
#include "base/log.h"
#include "base/memory.h"
#include "cli/component_list.h"
#include "config/server_options.h"
#include "pipeline/component/service_status.h"
#include "tests/base/http/http_client.h"
#include "tests/support/temporary.h"

#include <jansson.h>

// As the option rows lay it out.
struct config {
    const char *endpoint;
    struct tls_server_config tls;
    struct auth_server_config auth;
};

static struct config config;
static struct service_health health;
static struct component_status components[3];
static void *instance;
static char folder[64];
static char socket_path[100];
static char endpoint[120];

static void tell_health(void *unused, struct service_health *out) {
    (void)unused;
    *out = health;
}

static uint32_t tell_components(void *unused, struct component_status *out, uint32_t max) {
    (void)unused;
    ck_assert_uint_ge(max, 3);
    memcpy(out, components, sizeof components);
    return 3;
}

static const struct service_status status = {.health = tell_health, .components = tell_components};
static const struct component_context context = {
    .id = "health_check", .site = "extension/health_check", .status = &status};

static enum status start(void) {
    struct error error = {0};
    instance = memory_zero(1, extension_health_check.instance_size);
    return component_start(&extension_health_check, instance, &config, &context, &error);
}

static void setup(void) {
    temporary_path(folder, sizeof folder, "test");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(socket_path, sizeof socket_path, "%s/socket", folder);
    snprintf(endpoint, sizeof endpoint, "unix:%s", socket_path);
    log_configure(LOG_ERROR, LOG_CONSOLE);
    config = (struct config){.endpoint = endpoint};
    ck_assert_uint_eq(sizeof config, extension_health_check.config_size);
    health = (struct service_health){.live = true,
                                     .started = true,
                                     .ready = true,
                                     .last_config_taken = true,
                                     .up_since_unix_ns = UINT64_C(1769850904123456789)};
    for (int i = 0; i < 3; i++) {
        components[i] = (struct component_status){
            .state = COMPONENT_OK, .since_unix_ns = UINT64_C(1769850905000000000) + (uint64_t)i};
        snprintf(components[i].id, sizeof components[i].id, "exporter/json/%d", i);
    }
    strcpy(components[1].pipeline, "memory");
    ck_assert_int_eq(start(), STATUS_OK);
}

static void teardown(void) {
    component_stop(&extension_health_check, instance);
    memory_give(instance);
    http_server_drop_kept();
    ck_assert_int_eq(rmdir(folder), 0); // the socket went with its last server
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static struct answer ask(const char *method, const char *path) {
    int descriptor = client_connect_unix(socket_path);
    client_request(descriptor, method, path, "", NULL, 0);
    struct answer answer = client_answer(descriptor, strcmp(method, "HEAD") == 0);
    close(descriptor);
    return answer;
}

static int code(const char *path) {
    struct answer answer = ask("GET", path);
    int found = answer.status;
    answer_free(&answer);
    return found;
}

// The body, which must be one object of JSON.
static json_t *body(const char *path) {
    struct answer answer = ask("GET", path);
    ck_assert_str_eq(answer_header(&answer, "Content-Type"), "application/json; charset=utf-8");
    json_t *found = json_loads(answer.body, JSON_REJECT_DUPLICATES, NULL);
    ck_assert_msg(json_is_object(found), "%s", answer.body);
    answer_free(&answer);
    return found;
}

static void check_text(const json_t *object, const char *key, const char *wanted) {
    const char *found = json_string_value(json_object_get(object, key));
    ck_assert_msg(found != NULL && strcmp(found, wanted) == 0, "%s: %s", key, found);
}

START_TEST(all_is_well) {
    static const char *const paths[] = {"/", "/livez", "/readyz", "/startupz", "/status"};
    for (size_t i = 0; i < 5; i++) {
        ck_assert_int_eq(code(paths[i]), 200);
        struct answer head = ask("HEAD", paths[i]);
        ck_assert_int_eq(head.status, 200);
        ck_assert_uint_gt(strtoul(answer_header(&head, "Content-Length"), NULL, 10), 10);
        answer_free(&head);
    }
    ck_assert_int_eq(code("/other"), 404);
    struct answer post = ask("POST", "/livez");
    ck_assert_int_eq(post.status, 405);
    answer_free(&post);
    struct answer answer = ask("GET", "/");
    ck_assert_str_eq(answer.body,
                     "{\"status\":\"ok\",\"up_since\":\"2026-01-31T09:15:04.123456789Z\"}\n");
    answer_free(&answer);
}
END_TEST

START_TEST(each_probe_asks_its_own_question) {
    health.live = false;
    ck_assert_int_eq(code("/livez"), 503);
    ck_assert_int_eq(code("/readyz"), 200);
    ck_assert_int_eq(code("/startupz"), 200);
    health.live = true;
    health.ready = false;
    strcpy(health.sentence, "the store cannot be written: \"no\nspace\" \x01");
    ck_assert_int_eq(code("/livez"), 200);
    ck_assert_int_eq(code("/readyz"), 503);
    ck_assert_int_eq(code("/"), 503);
    ck_assert_int_eq(code("/startupz"), 200);
    json_t *found = body("/readyz");
    check_text(found, "status", "unavailable");
    check_text(found, "reason", "the store cannot be written: \"no\nspace\" \x01");
    json_decref(found);
    health.ready = true;
    health.last_config_taken = false;
    ck_assert_int_eq(code("/readyz"), 503);
    health.last_config_taken = true;
    health.started = false;
    ck_assert_int_eq(code("/startupz"), 503);
    ck_assert_int_eq(code("/status"), 503);
}
END_TEST

START_TEST(codes_of_the_states) {
    static const struct {
        enum component_state state;
        int code;
        const char *name;
    } cases[] = {
        {COMPONENT_STARTING, 503, "StatusStarting"},
        {COMPONENT_OK, 200, "StatusOK"},
        {COMPONENT_RECOVERABLE, 200, "StatusRecoverableError"},
        {COMPONENT_PERMANENT, 200, "StatusPermanentError"},
        {COMPONENT_FATAL, 500, "StatusFatalError"},
        {COMPONENT_STOPPING, 503, "StatusStopping"},
        {COMPONENT_STOPPED, 503, "StatusStopped"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        components[1].state = cases[i].state;
        ck_assert_int_eq(code("/status"), cases[i].code);
        json_t *found = body("/status");
        check_text(found, "status", cases[i].name);
        ck_assert(json_is_true(json_object_get(found, "healthy")) == (cases[i].code == 200));
        ck_assert_ptr_null(json_object_get(found, "components"));
        json_decref(found);
        // A sink that is down is no reason to take the pod out.
        ck_assert_int_eq(code("/readyz"), 200);
    }
    components[0].state = COMPONENT_FATAL;
    components[2].state = COMPONENT_RECOVERABLE;
    ck_assert_int_eq(code("/status"), 500);
}
END_TEST

START_TEST(verbose_names_each_component) {
    static const char *const paths[] = {"/status?verbose", "/status?verbose=true",
                                        "/status?x=y&verbose=1"};
    components[1].state = COMPONENT_RECOVERABLE;
    strcpy(components[1].sentence, "the broker \"b\" does not answer\n");
    for (size_t i = 0; i < 3; i++) {
        json_t *found = body(paths[i]);
        check_text(found, "start_time", "2026-01-31T09:15:04.123456789Z");
        check_text(found, "status_time", "2026-01-31T09:15:05.000000001Z");
        const json_t *list = json_object_get(found, "components");
        ck_assert_uint_eq(json_array_size(list), 3);
        check_text(json_array_get(list, 0), "id", "exporter/json/0");
        check_text(json_array_get(list, 0), "status", "StatusOK");
        ck_assert_ptr_null(json_object_get(json_array_get(list, 0), "pipeline"));
        ck_assert_ptr_null(json_object_get(json_array_get(list, 0), "error"));
        check_text(json_array_get(list, 1), "pipeline", "memory");
        check_text(json_array_get(list, 1), "status", "StatusRecoverableError");
        check_text(json_array_get(list, 1), "error", "the broker \"b\" does not answer\n");
        json_decref(found);
    }
    json_t *quiet = body("/status?verbosely&verbose=0");
    ck_assert_ptr_null(json_object_get(quiet, "components"));
    json_decref(quiet);
}
END_TEST

START_TEST(options_that_do_not_fit) {
    struct arena arena;
    struct problem_list problems;
    arena_init(&arena, 4096);
    problem_list_init(&problems, &arena);
    extension_health_check.validate(&config, &problems);
    ck_assert_uint_eq(problems.count, 0);
    struct config wrong = {.endpoint = "127.0.0.1:99999", .tls.cert_file = "/cert.pem"};
    extension_health_check.validate(&wrong, &problems);
    ck_assert_uint_eq(problems.count, 2);
    ck_assert_str_eq(problems.items[0].key, "endpoint");
    arena_release(&arena);
}
END_TEST

int main(void) {
    TCase *all = tcase_create("all");
    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_test(all, all_is_well);
    tcase_add_test(all, each_probe_asks_its_own_question);
    tcase_add_test(all, codes_of_the_states);
    tcase_add_test(all, verbose_names_each_component);
    tcase_add_test(all, options_that_do_not_fit);
    Suite *suite = suite_create("health_check");
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
