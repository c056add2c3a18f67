// SPDX-License-Identifier: Apache-2.0
// The listener with TLS: certificates of both sides, files that break, handshakes that stop midway.
#include "tests/base/http/http_server_fixture.h"

static void run(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void run(const char *format, ...) {
    char command[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    ck_assert_msg(system(command) == 0, "%s", command);
}

// A certificate `name` signed by the authority `by`; with `by` NULL by itself.
static void make_certificate(const char *name, const char *by) {
    static const char *make =
        "openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes "
        "-subj /CN=%s -keyout %s/%s.key ";
    char begin[512];
    snprintf(begin, sizeof begin, make, name, folder, name);
    if (by == NULL)
        run("%s -x509 -days 2 -out %s/%s.pem 2>/dev/null", begin, folder, name);
    else
        run("%s -out %s/%s.csr 2>/dev/null && printf 'subjectAltName=IP:127.0.0.1' > %s/ext && "
            "openssl x509 -req -in %s/%s.csr -CA %s/%s.pem -CAkey %s/%s.key -CAcreateserial "
            "-days 2 -extfile %s/ext -out %s/%s.pem 2>/dev/null",
            begin, folder, name, folder, folder, name, folder, by, folder, by, folder, folder,
            name);
}

// What curl says: the status, or 0 and its own exit code below.
static int curl_status(const char *more) {
    char command[1024];
    snprintf(command, sizeof command,
             "curl -s -o /dev/null -w '%%{http_code}' --cacert %s/ca.pem %s "
             "https://127.0.0.1:%u/echo",
             folder, more, http_server_port(server));
    FILE *pipe = popen(command, "r");
    ck_assert_ptr_nonnull(pipe);
    int status = -1;
    ck_assert_int_eq(fscanf(pipe, "%d", &status), 1);
    pclose(pipe);
    return status;
}

START_TEST(https) {
    make_certificate("ca", NULL);
    make_certificate("server", "ca");
    options.tls.cert_file = in_folder("server.pem");
    options.tls.key_file = in_folder("server.key");
    start();
    ck_assert_int_eq(curl_status(""), 200);
    ck_assert_int_eq(curl_status("-d hello"), 200);
    ck_assert_int_eq(curl_status("--tls-max 1.2"), 200);
    ck_assert_int_eq(curl_status("--tls-max 1.1 --ciphers DEFAULT@SECLEVEL=0"), 0);
    // Plain HTTP at this port gets nothing.
    int descriptor = client_connect(http_server_port(server));
    client_request(descriptor, "GET", "/echo", "", NULL, 0);
    struct answer answer = client_answer(descriptor, false);
    ck_assert_int_eq(answer.status, 0);
    answer_free(&answer);
    close(descriptor);
}
END_TEST

START_TEST(https_with_client_certificates) {
    make_certificate("ca", NULL);
    make_certificate("server", "ca");
    make_certificate("client", "ca");
    make_certificate("otherca", NULL);
    make_certificate("stranger", "otherca");
    options.tls.cert_file = in_folder("server.pem");
    options.tls.key_file = in_folder("server.key");
    options.tls.client_ca_file = in_folder("ca.pem");
    start();
    char more[512];
    snprintf(more, sizeof more, "--cert %s/client.pem --key %s/client.key", folder, folder);
    ck_assert_int_eq(curl_status(more), 200);
    ck_assert_int_eq(atomic_load(&handled), 1);
    log_to_file();
    ck_assert_int_eq(curl_status(""), 403);
    ck_assert_int_eq(curl_status("--tls-max 1.2"), 403);
    ck_assert_int_eq(curl_status("-d hello"), 403);
    run("curl -s --cacert %s/ca.pem https://127.0.0.1:%u/echo | grep -q 'none was shown'", folder,
        http_server_port(server));
    EVENTUALLY(log_says("it shows no certificate, and one that an authority of "));
    snprintf(more, sizeof more, "--cert %s/stranger.pem --key %s/stranger.key", folder, folder);
    ck_assert_int_eq(curl_status(more), 403);
    run("curl -s --cacert %s/ca.pem %s https://127.0.0.1:%u/echo | grep -q 'not signed by'", folder,
        more, http_server_port(server));
    log_flush(); // it is kept back, as it repeats
    EVENTUALLY(log_says("its certificate is not signed by an authority of "));
    ck_assert_int_eq(atomic_load(&handled), 1);
}
END_TEST

START_TEST(files_that_were_broken_meanwhile) {
    make_certificate("ca", NULL);
    make_certificate("server", "ca");
    options.tls.cert_file = in_folder("server.pem");
    options.tls.key_file = in_folder("server.key");
    options.bearer_token_file = in_folder("token");
    write_file(options.bearer_token_file, "one\n");
    start();
    char token[] = "-H 'Authorization: Bearer one'";
    ck_assert_int_eq(curl_status(token), 200);
    http_server_stop(server, 0, true);
    server = NULL;
    write_file(options.tls.cert_file, "broken");
    ck_assert_int_eq(unlink(options.bearer_token_file), 0);
    ck_assert_int_ne(http_server_start(&server, &options, &error), STATUS_OK);
    http_server_fall_back();
    start();
    http_server_drop_kept();
    ck_assert_int_eq(curl_status(token), 200);
    ck_assert_int_eq(curl_status(""), 401);
    // The next one reads them again.
    http_server_stop(server, 0, true);
    server = NULL;
    ck_assert_int_ne(http_server_start(&server, &options, &error), STATUS_OK);
    http_server_drop_kept();
}
END_TEST

START_TEST(what_cannot_be_read_is_said) {
    struct http_server *other = NULL;
    options.tls.cert_file = "/nowhere/cert.pem";
    options.tls.key_file = "/nowhere/key.pem";
    ck_assert_int_ne(http_server_start(&other, &options, &error), STATUS_OK);
    ck_assert_ptr_nonnull(strstr(error.message, "/nowhere/cert.pem"));
    write_file(in_folder("bad.pem"), "-----BEGIN NONSENSE-----\n");
    options.tls.cert_file = options.tls.key_file = in_folder("bad.pem");
    ck_assert_int_eq(http_server_start(&other, &options, &error), STATUS_CONFIG);
    ck_assert_ptr_nonnull(strstr(error.message, "bad.pem"));
    options.tls.cert_file = NULL;
    options.bearer_token_file = "/nowhere/token";
    ck_assert_int_ne(http_server_start(&other, &options, &error), STATUS_OK);
    ck_assert_ptr_nonnull(strstr(error.message, "/nowhere/token"));
    write_file(in_folder("empty"), "\n");
    options.bearer_token_file = in_folder("empty");
    ck_assert_int_eq(http_server_start(&other, &options, &error), STATUS_CONFIG);
    ck_assert_ptr_nonnull(strstr(error.message, "is empty"));
}
END_TEST

// Whether a thread that serves requests runs, or wants to.
static bool is_busy(void) {
    bool busy = false;
    DIR *tasks = opendir("/proc/self/task");
    ck_assert_ptr_nonnull(tasks);
    for (struct dirent *task; (task = readdir(tasks)) != NULL;) {
        char path[300], name[32], state;
        snprintf(path, sizeof path, "/proc/self/task/%s/stat", task->d_name);
        FILE *file = task->d_name[0] == '.' ? NULL : fopen(path, "r");
        if (file == NULL)
            continue;
        if (fscanf(file, "%*d (%31[^)]) %c", name, &state) == 2 && strncmp(name, "MHD", 3) == 0)
            busy = busy || state == 'R';
        fclose(file);
    }
    closedir(tasks);
    return busy;
}

// What a client says first.
static size_t client_hello(char *bytes, size_t size) {
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof address;
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, length), 0);
    ck_assert_int_eq(listen(listener, 1), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    char command[128];
    snprintf(command, sizeof command,
             "openssl s_client -connect 127.0.0.1:%u </dev/null >/dev/null 2>&1",
             ntohs(address.sin_port));
    FILE *client = popen(command, "r");
    ck_assert_ptr_nonnull(client);
    int descriptor = accept(listener, NULL, NULL);
    ssize_t got = recv(descriptor, bytes, size, 0);
    ck_assert_int_gt(got, 100);
    close(descriptor);
    close(listener);
    pclose(client);
    return (size_t)got;
}

// A client that begins a handshake and does not go on costs nothing, wherever it stays.
START_TEST(half_open_handshakes_cost_nothing) {
    make_certificate("ca", NULL);
    make_certificate("server", "ca");
    options.tls.cert_file = in_folder("server.pem");
    options.tls.key_file = in_folder("server.key");
    options.threads = 2;
    start();
    char hello[4096];
    size_t whole = client_hello(hello, sizeof hello);
    const size_t sizes[] = {0, 1, 5, whole / 2, whole};
    enum { CLIENTS = 20 };
    int clients[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = client_connect(http_server_port(server));
        client_send(clients[i], hello, sizes[i % 5]);
    }
    // All were let in, and those that said all have been answered.
    for (int i = 4; i < CLIENTS; i += 5)
        ck_assert_int_gt(recv(clients[i], hello, sizeof hello, 0), 0);
    usleep(200000);
    int threads, busy = 0;
    unsigned long before = wake_ups(&threads);
    for (int i = 0; i < 100; i++) {
        usleep(10000);
        busy += is_busy();
    }
    ck_assert_int_le(busy, 10);
    ck_assert_uint_le(wake_ups(&threads) - before, 20);
    ck_assert_int_eq(curl_status(""), 200);
    for (int i = 0; i < CLIENTS; i++)
        close(clients[i]);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("http_server_tls");
    TCase *cases = tcase_create("all");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, https);
    tcase_add_test(cases, https_with_client_certificates);
    tcase_add_test(cases, files_that_were_broken_meanwhile);
    tcase_add_test(cases, what_cannot_be_read_is_said);
    tcase_add_test(cases, half_open_handshakes_cost_nothing);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
