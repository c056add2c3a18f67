// SPDX-License-Identifier: Apache-2.0
// What a service manager is told, and that nothing is sent where none is.
#include "base/supervisor.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int manager;
static char heard[256];

static void setup(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char name[64];
    snprintf(name, sizeof name, "@culprit-test-%d", (int)getpid());
    memcpy(address.sun_path + 1, name + 1, strlen(name) - 1);
    manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));
    ck_assert_int_eq(bind(manager, (struct sockaddr *)&address, size), 0);
    setenv("NOTIFY_SOCKET", name, 1);
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
}

static void teardown(void) {
    close(manager);
}

// The next datagram, or "" when there is none.
static const char *hear(void) {
    ssize_t size = recv(manager, heard, sizeof heard - 1, 0);
    heard[size < 0 ? 0 : size] = '\0';
    return heard;
}

START_TEST(each_word_is_a_datagram) {
    supervisor_ready();
    ck_assert_str_eq(hear(), "READY=1");
    supervisor_stopping();
    ck_assert_str_eq(hear(), "STOPPING=1");
    supervisor_reloading();
    ck_assert_msg(strncmp(hear(), "RELOADING=1\nMONOTONIC_USEC=", 27) == 0, "%s", heard);
    ck_assert_uint_gt(strtoull(heard + 27, NULL, 10), 0);
    ck_assert_str_eq(hear(), "");
}
END_TEST

START_TEST(a_socket_that_is_a_file_is_reached) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "/tmp/culprit-test-%d", (int)getpid());
    int file = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    ck_assert_int_eq(bind(file, (struct sockaddr *)&address, sizeof address), 0);
    setenv("NOTIFY_SOCKET", address.sun_path, 1);
    supervisor_ready();
    ssize_t size = recv(file, heard, sizeof heard, 0);
    unlink(address.sun_path);
    close(file);
    ck_assert_int_eq(size, 7);
}
END_TEST

START_TEST(signs_of_life_only_when_watched_and_not_too_many) {
    supervisor_alive();
    ck_assert_str_eq(hear(), "");
    ck_assert_uint_eq(supervisor_patience_ns(), 0);
    setenv("WATCHDOG_USEC", "60000000", 1);
    ck_assert_uint_eq(supervisor_patience_ns(), UINT64_C(60000000000));
    supervisor_alive();
    ck_assert_str_eq(hear(), "WATCHDOG=1");
    supervisor_alive();
    ck_assert_str_eq(hear(), "");
    // Each call is a quarter of it or more behind the last one.
    setenv("WATCHDOG_USEC", "1", 1);
    supervisor_alive();
    ck_assert_str_eq(hear(), "WATCHDOG=1");
}
END_TEST

START_TEST(a_watch_over_another_process_is_none) {
    char process[32];
    setenv("WATCHDOG_USEC", "1000000", 1);
    setenv("WATCHDOG_PID", "1", 1);
    ck_assert_uint_eq(supervisor_patience_ns(), 0);
    snprintf(process, sizeof process, "%d", (int)getpid());
    setenv("WATCHDOG_PID", process, 1);
    ck_assert_uint_eq(supervisor_patience_ns(), 1000000000);
}
END_TEST

START_TEST(odd_environments_are_none) {
    static const char *const sockets[] = {"", "/", "@", "relative", "vsock:2:1234"};
    for (size_t i = 0; i < sizeof sockets / sizeof sockets[0]; i++) {
        setenv("NOTIFY_SOCKET", sockets[i], 1);
        supervisor_ready();
    }
    char longer[200];
    memset(longer, 'x', sizeof longer);
    longer[0] = '/';
    longer[sizeof longer - 1] = '\0';
    setenv("NOTIFY_SOCKET", longer, 1);
    supervisor_ready();
    unsetenv("NOTIFY_SOCKET");
    supervisor_ready();
    ck_assert_str_eq(hear(), "");
    static const char *const times[] = {"", "soon", "-1", "1s", "123456789012345"};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        setenv("WATCHDOG_USEC", times[i], 1);
        ck_assert_uint_eq(supervisor_patience_ns(), 0);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("supervisor");
    TCase *cases = tcase_create("supervisor");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, each_word_is_a_datagram);
    tcase_add_test(cases, a_socket_that_is_a_file_is_reached);
    tcase_add_test(cases, signs_of_life_only_when_watched_and_not_too_many);
    tcase_add_test(cases, a_watch_over_another_process_is_none);
    tcase_add_test(cases, odd_environments_are_none);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
