// SPDX-License-Identifier: Apache-2.0
// The example exporter of docs/adding.md runs as any other: one packet a new verdict, and what
// could not be sent comes again.
#include "tests/adding/example_exporter.c"

#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

static int server;
static char port[8];
static int instance;
static struct buffer out;
static struct verdict items[4];
static struct batch batch = {.verdicts = {.items = items}};
static struct send_outcome outcome;
static struct error error;

static void listen_again(in_port_t where) {
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = where};
    socklen_t size = sizeof address;
    server = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(server, (struct sockaddr *)&address, size), 0);
    ck_assert_int_eq(getsockname(server, (struct sockaddr *)&address, &size), 0);
    snprintf(port, sizeof port, "%d", ntohs(address.sin_port));
    struct timeval patience = {.tv_sec = 10};
    setsockopt(server, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
}

static void setup(void) {
    listen_again(0);
    buffer_init(&out, 1 << 16);
    struct component_context context = {.id = "statsd", .site = "exporter/statsd"};
    struct statsd_config config = {"127.0.0.1", port};
    ck_assert_int_eq(component_start(&exporter_statsd, &instance, &config, &context, &error),
                     STATUS_OK);
}

static void teardown(void) {
    component_stop(&exporter_statsd, &instance);
    buffer_release(&out);
    close(server);
}

static void found(const char *pattern, enum verdict_state state) {
    items[batch.verdicts.count++] = (struct verdict){.pattern = pattern, .state = state};
}

static enum status deliver(struct slice bytes) {
    outcome = (struct send_outcome){0};
    struct request request = {.bytes = bytes, .complete = true};
    return exporter_statsd.exporter.send(&instance, &request, &outcome, &error);
}

static const char *packet(void) {
    static char text[256];
    ssize_t size = recv(server, text, sizeof text - 1, 0);
    ck_assert_int_ge(size, 0);
    text[size] = '\0';
    return text;
}

START_TEST(a_packet_a_new_verdict) {
    found("nccl_hang", VERDICT_OPEN);
    found("hbm_ecc", VERDICT_UPDATED);
    found("pcie_aer", VERDICT_OPEN);
    exporter_statsd.exporter.encode(&instance, &batch, &out);
    ck_assert_int_eq(deliver(buffer_slice(&out)), STATUS_OK);
    ck_assert_str_eq(packet(), "culprit.nccl_hang:1|c");
    ck_assert_str_eq(packet(), "culprit.pcie_aer:1|c");
}
END_TEST

// The kernel says at the second packet that nobody took the first.
START_TEST(what_is_not_taken_comes_again) {
    in_port_t where = htons((in_port_t)atoi(port));
    found("nccl_hang", VERDICT_OPEN);
    found("pcie_aer", VERDICT_OPEN);
    exporter_statsd.exporter.encode(&instance, &batch, &out);
    close(server);
    enum status status = deliver(buffer_slice(&out));
    listen_again(where);
    ck_assert_int_eq(status, STATUS_IO);
    ck_assert_uint_eq(outcome.taken, strlen("culprit.nccl_hang:1|c\n"));
    struct slice rest = {out.data + outcome.taken, out.size - outcome.taken};
    ck_assert_int_eq(deliver(rest), STATUS_OK);
    ck_assert_str_eq(packet(), "culprit.pcie_aer:1|c");
}
END_TEST

START_TEST(a_host_that_is_not_known) {
    int other = 0;
    struct component_context context = {.id = "statsd", .site = "exporter/statsd"};
    struct statsd_config config = {"no such host", "8125"};
    ck_assert_int_eq(component_start(&exporter_statsd, &other, &config, &context, &error),
                     STATUS_CONFIG);
    component_stop(&exporter_statsd, &other);
    ck_assert_str_eq(error.message, "host no such host is not known");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("adding an exporter");
    TCase *tests = tcase_create("adding an exporter");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, a_packet_a_new_verdict);
    tcase_add_test(tests, what_is_not_taken_comes_again);
    tcase_add_test(tests, a_host_that_is_not_known);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
