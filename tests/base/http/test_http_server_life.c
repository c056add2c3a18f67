// SPDX-License-Identifier: Apache-2.0
// The listener against real sockets: time, answers that come later, endpoints, TLS, rest.
#include "tests/base/http/http_server_fixture.h"

// -- time ---------------------------------------------------------------------------------------

static void check_slow(const char *text, bool more) {
    int descriptor = client_connect(http_server_port(server));
    client_send_text(descriptor, text);
    // A byte now and then does not help.
    for (int i = 0; i < 6 && more; i++) {
        usleep(50000);
        client_send_text(descriptor, "a");
    }
    struct answer answer = client_answer(descriptor, false);
    ck_assert_int_eq(answer.status, 408);
    ck_assert_ptr_nonnull(strstr(answer.body, "\"too_slow\""));
    answer_free(&answer);
    char byte;
    ck_assert_int_le(recv(descriptor, &byte, 1, 0), 0);
    close(descriptor);
}

START_TEST(slow_requests_end) {
    options.header_timeout_ns = SECOND / 5;
    options.body_timeout_ns = SECOND / 5;
    options.idle_timeout_ns = SECOND / 5;
    start();
    check_slow("", false);
    check_slow("GET /ec", true);
    check_slow("GET /echo HTTP/1.1\r\nHost: t\r\nX-A: ", true);
    check_slow("POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 100\r\n\r\n", true);
    ck_assert_int_eq(atomic_load(&statuses[408]), 4);
    // One that rests after a request just ends.
    int descriptor = client_connect(http_server_port(server));
    client_request(descriptor, "GET", "/echo", "", NULL, 0);
    struct answer answer = client_answer(descriptor, false);
    ck_assert_int_eq(answer.status, 200);
    answer_free(&answer);
    answer = client_answer(descriptor, false);
    ck_assert_int_eq(answer.status, 0);
    answer_free(&answer);
    close(descriptor);
}
END_TEST

START_TEST(clients_that_do_not_read_end) {
    options.write_timeout_ns = SECOND / 5;
    start();
    int descriptor = client_connect(http_server_port(server));
    int small = 4096;
    setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    for (int i = 0; i < 500; i++)
        client_send_text(descriptor, "GET /large HTTP/1.1\r\nHost: t\r\n\r\n");
    usleep(10000);
    for (int i = 0; http_server_connections(server) > 0 && i < 3000; i++)
        usleep(10000);
    ck_assert_uint_eq(http_server_connections(server), 0);
    close(descriptor);
}
END_TEST

// -- answers that come later --------------------------------------------------------------------

static struct http_exchange *wait_resting(void) {
    struct http_exchange *exchange = NULL;
    for (int i = 0; i < 3000 && exchange == NULL; i++) {
        usleep(1000);
        exchange = atomic_exchange(&resting, NULL);
    }
    ck_assert_ptr_nonnull(exchange);
    return exchange;
}

START_TEST(a_resting_request_holds_up_nobody) {
    start();
    int descriptor = client_connect(http_server_port(server));
    client_request(descriptor, "POST", "/rest", "", "x", 1);
    struct http_exchange *exchange = wait_resting();
    // There is one thread.
    struct answer answer = ask("GET", "/echo", "", NULL);
    ck_assert_int_eq(answer.status, 200);
    answer_free(&answer);
    resting_response->status = 202;
    buffer_append_text(&resting_response->body, "at last");
    http_answer(exchange);
    answer = client_answer(descriptor, false);
    ck_assert_int_eq(answer.status, 202);
    ck_assert_str_eq(answer.body, "at last");
    answer_free(&answer);
    close(descriptor);
}
END_TEST

START_TEST(a_client_that_left_is_no_harm) {
    start();
    int descriptor = client_connect(http_server_port(server));
    client_request(descriptor, "POST", "/rest", "", "x", 1);
    struct http_exchange *exchange = wait_resting();
    close(descriptor);
    http_answer(exchange);
    struct answer answer = ask("GET", "/echo", "", NULL);
    ck_assert_int_eq(answer.status, 200);
    answer_free(&answer);
}
END_TEST

// What only waits for its answer takes no room from requests that are being read.
START_TEST(resting_requests_hold_no_bodies) {
    enum { RESTING = 5, SIZE = 200000 };
    options.max_pending_bytes = 2 * SIZE;
    start();
    char *body = calloc(1, SIZE);
    int clients[RESTING];
    struct http_exchange *exchanges[RESTING];
    for (int i = 0; i < RESTING; i++) {
        clients[i] = client_connect(http_server_port(server));
        client_request(clients[i], "POST", "/rest", "", body, SIZE);
        exchanges[i] = wait_resting();
    }
    for (int i = 0; i < RESTING; i++) {
        http_answer(exchanges[i]);
        struct answer answer = client_answer(clients[i], false);
        ck_assert_int_eq(answer.status, 200);
        answer_free(&answer);
        close(clients[i]);
    }
    free(body);
}
END_TEST

static void *answer_soon(void *exchange) {
    usleep(200000);
    http_answer(exchange);
    return NULL;
}

START_TEST(stop_waits_for_answers) {
    start();
    int descriptor = client_connect(http_server_port(server));
    client_request(descriptor, "POST", "/rest", "", "x", 1);
    pthread_t thread;
    pthread_create(&thread, NULL, answer_soon, wait_resting());
    http_server_stop(server, 10 * SECOND, false);
    server = NULL;
    struct answer answer = client_answer(descriptor, false);
    ck_assert_int_eq(answer.status, 200);
    ck_assert_str_eq(answer_header(&answer, "Connection"), "close");
    answer_free(&answer);
    close(descriptor);
    pthread_join(thread, NULL);
}
END_TEST

// -- endpoints ----------------------------------------------------------------------------------

START_TEST(endpoint_texts) {
    static const char *const right[] = {"127.0.0.1:4318", "[::1]:0", "localhost:65535",
                                        "unix:/run/x.sock", "0.0.0.0:1"};
    static const char *const wrong[] = {
        "",      "4318",    ":4318", "host:",  "host:65536",     "host:12x", "::1:80",
        "[::1]", "[::1:80", "unix:", "unix:x", "http://host:80", "ho st:80", "host:999999"};
    struct endpoint endpoint;
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++)
        ck_assert_msg(endpoint_parse(right[i], &endpoint) == NULL, "%s", right[i]);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_msg(endpoint_parse(wrong[i], &endpoint) != NULL, "%s", wrong[i]);
    ck_assert_ptr_null(endpoint_parse("[fe80::1]:80", &endpoint));
    ck_assert_str_eq(endpoint.host, "fe80::1");
    ck_assert_uint_eq(endpoint.port, 80);
    ck_assert(!endpoint_is_loopback(&endpoint));
    ck_assert_ptr_null(endpoint_parse("[::1]:80", &endpoint));
    ck_assert(endpoint_is_loopback(&endpoint));
}
END_TEST

static bool overlap(const char *one, const char *two) {
    struct endpoint a, b;
    ck_assert_ptr_null(endpoint_parse(one, &a));
    ck_assert_ptr_null(endpoint_parse(two, &b));
    ck_assert(endpoint_overlaps(&a, &b) == endpoint_overlaps(&b, &a));
    return endpoint_overlaps(&a, &b);
}

START_TEST(endpoints_that_overlap) {
    ck_assert(overlap("127.0.0.1:80", "127.0.0.1:80"));
    ck_assert(overlap("127.0.0.1:80", "0.0.0.0:80"));
    ck_assert(overlap("127.0.0.1:80", "[::]:80"));
    ck_assert(overlap("0.0.0.0:80", "[::]:80"));
    ck_assert(overlap("127.0.0.1:80", "127.1:80"));
    ck_assert(overlap("[::1]:80", "[0:0::1]:80"));
    ck_assert(overlap("localhost:80", "127.0.0.1:80"));
    ck_assert(overlap("localhost:80", "[::1]:80"));
    ck_assert(overlap("a.example:80", "0.0.0.0:80"));
    ck_assert(overlap("unix:/a", "unix:/a"));
    ck_assert(!overlap("127.0.0.1:80", "127.0.0.1:81"));
    ck_assert(!overlap("127.0.0.1:0", "127.0.0.1:0"));
    ck_assert(!overlap("127.0.0.1:80", "127.0.0.2:80"));
    ck_assert(!overlap("0.0.0.0:80", "[::1]:80"));
    ck_assert(!overlap("10.0.0.1:80", "localhost:80"));
    ck_assert(!overlap("a.example:80", "b.example:80"));
    ck_assert(!overlap("a.example:80", "10.0.0.1:80"));
    ck_assert(!overlap("unix:/a", "unix:/b"));
    ck_assert(!overlap("unix:/a", "127.0.0.1:80"));
}
END_TEST

START_TEST(a_port_that_is_taken_is_named) {
    // Another program's, as far as endpoint_listen knows.
    int foreign = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    ck_assert_int_eq(bind(foreign, (struct sockaddr *)&address, size), 0);
    ck_assert_int_eq(listen(foreign, 1), 0);
    ck_assert_int_eq(getsockname(foreign, (struct sockaddr *)&address, &size), 0);
    static char endpoint[64];
    snprintf(endpoint, sizeof endpoint, "127.0.0.1:%u", ntohs(address.sin_port));
    struct http_server_options second = options;
    second.endpoint = endpoint;
    struct http_server *other = NULL;
    ck_assert_int_eq(http_server_start(&other, &second, &error), STATUS_CANNOT_CREATE);
    char wanted[128];
    snprintf(wanted, sizeof wanted, "another program already listens on port %u of 127.0.0.1",
             ntohs(address.sin_port));
    ck_assert_msg(strstr(error.message, wanted) != NULL, "%s", error.message);
    close(foreign);
    second.endpoint = "no-such-host.invalid:0";
    ck_assert_int_eq(http_server_start(&other, &second, &error), STATUS_CANNOT_CREATE);
    ck_assert_ptr_nonnull(strstr(error.message, "no-such-host.invalid"));
}
END_TEST

// Nobody else is blamed for what this process holds; what it only keeps makes way.
START_TEST(a_port_of_our_own) {
    start();
    static char same[64], all[64];
    snprintf(same, sizeof same, "127.0.0.1:%u", http_server_port(server));
    snprintf(all, sizeof all, "0.0.0.0:%u", http_server_port(server));
    struct http_server_options second = options;
    struct http_server *other = NULL;
    const char *const endpoints[] = {same, all};
    for (int i = 0; i < 2; i++) {
        second.endpoint = endpoints[i];
        ck_assert_int_eq(http_server_start(&other, &second, &error), STATUS_CANNOT_CREATE);
        ck_assert_msg(strstr(error.message, "this culprit itself listens there already, at") !=
                          NULL,
                      "%s", error.message);
    }
    http_server_stop(server, 0, true);
    server = NULL;
    ck_assert_int_eq(http_server_start(&other, &second, &error), STATUS_OK);
    http_server_stop(other, 0, false);
    http_server_drop_kept();
}
END_TEST

START_TEST(unix_sockets) {
    const char *path = in_folder("x.sock");
    static char endpoint[256];
    snprintf(endpoint, sizeof endpoint, "unix:%s", path);
    options.endpoint = endpoint;
    // What a killed process leaves.
    int stale = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    ck_assert_int_eq(bind(stale, (struct sockaddr *)&address, sizeof address), 0);
    close(stale);
    start();
    struct stat about;
    ck_assert_int_eq(stat(path, &about), 0);
    ck_assert_uint_eq(about.st_mode & 0777, 0660);
    ck_assert_uint_eq(http_server_port(server), 0);
    int descriptor = client_connect_unix(path);
    client_request(descriptor, "POST", "/echo", "", "hello", 5);
    struct answer answer = client_answer(descriptor, false);
    ck_assert_int_eq(answer.status, 200);
    answer_free(&answer);
    close(descriptor);
    // One that is in use is not taken away.
    struct http_server *other = NULL;
    ck_assert_int_eq(http_server_start(&other, &options, &error), STATUS_CANNOT_CREATE);
    ck_assert_ptr_nonnull(strstr(error.message, path));
    http_server_stop(server, 0, false);
    server = NULL;
    ck_assert_int_ne(stat(path, &about), 0);
    // Nor is a file that is no socket.
    write_file(path, "precious");
    ck_assert_int_eq(http_server_start(&other, &options, &error), STATUS_CANNOT_CREATE);
    ck_assert_int_eq(stat(path, &about), 0);
}
END_TEST

START_TEST(ipv6) {
    options.endpoint = "[::1]:0";
    options.max_connections = 1; // and more threads than that
    options.threads = 4;
    start();
    int descriptor = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in6 address = {.sin6_family = AF_INET6,
                                   .sin6_port = htons(http_server_port(server)),
                                   .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    ck_assert_int_eq(connect(descriptor, (struct sockaddr *)&address, sizeof address), 0);
    client_patience(descriptor);
    client_request(descriptor, "GET", "/echo", "", NULL, 0);
    struct answer answer = client_answer(descriptor, false);
    ck_assert_int_eq(answer.status, 200);
    answer_free(&answer);
    close(descriptor);
}
END_TEST

START_TEST(kept_sockets_refuse_nobody) {
    for (int round = 0; round < 2; round++) {
        const char *path = in_folder("k.sock");
        static char endpoint[256];
        snprintf(endpoint, sizeof endpoint, round == 0 ? "127.0.0.1:0" : "unix:%s", path);
        options.endpoint = endpoint;
        start();
        uint16_t port = http_server_port(server);
        http_server_stop(server, 0, true);
        // Between two servers a client can connect and wait.
        int descriptor = round == 0 ? client_connect(port) : client_connect_unix(path);
        client_request(descriptor, "GET", "/echo", "", NULL, 0);
        start();
        ck_assert_uint_eq(http_server_port(server), port);
        struct answer answer = client_answer(descriptor, false);
        ck_assert_int_eq(answer.status, 200);
        answer_free(&answer);
        close(descriptor);
        http_server_stop(server, 0, true);
        server = NULL;
        http_server_drop_kept();
        if (round == 1) {
            struct stat about;
            ck_assert_int_ne(stat(path, &about), 0);
        }
    }
}
END_TEST

// -- TLS ----------------------------------------------------------------------------------------

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
    ck_assert_int_eq(curl_status(""), 0);
    snprintf(more, sizeof more, "--cert %s/stranger.pem --key %s/stranger.key", folder, folder);
    ck_assert_int_eq(curl_status(more), 0);
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

// -- rest ----------------------------------------------------------------------------------------

// How often the threads that belong to the listener were woken; `*threads` of them were found.
static unsigned long wake_ups(int *threads) {
    unsigned long sum = 0;
    *threads = 0;
    DIR *tasks = opendir("/proc/self/task");
    ck_assert_ptr_nonnull(tasks);
    for (struct dirent *task; (task = readdir(tasks)) != NULL;) {
        char path[300], line[256];
        snprintf(path, sizeof path, "/proc/self/task/%s/status", task->d_name);
        FILE *file = task->d_name[0] == '.' ? NULL : fopen(path, "r");
        bool ours = false;
        while (file != NULL && fgets(line, sizeof line, file) != NULL) {
            if (strncmp(line, "Name:\tMHD", 9) == 0 || strncmp(line, "Name:\thttp-", 11) == 0)
                ours = true;
            if (ours && strncmp(line, "voluntary_ctxt_switches:", 24) == 0)
                sum += strtoul(line + 24, NULL, 10);
        }
        *threads += ours;
        if (file != NULL)
            fclose(file);
    }
    closedir(tasks);
    return sum;
}

START_TEST(idle_listeners_sleep) {
    options.threads = 4;
    start();
    int descriptor = client_connect(http_server_port(server));
    client_request(descriptor, "GET", "/echo", "", NULL, 0);
    struct answer answer = client_answer(descriptor, false);
    answer_free(&answer);
    usleep(200000);
    int threads;
    unsigned long before = wake_ups(&threads);
    ck_assert_int_eq(threads, 5);
    usleep(3000000);
    ck_assert_uint_le(wake_ups(&threads) - before, 1);
    close(descriptor);
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
    Suite *suite = suite_create("http_server_life");
    TCase *cases = tcase_create("all");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, slow_requests_end);
    tcase_add_test(cases, clients_that_do_not_read_end);
    tcase_add_test(cases, a_resting_request_holds_up_nobody);
    tcase_add_test(cases, a_client_that_left_is_no_harm);
    tcase_add_test(cases, resting_requests_hold_no_bodies);
    tcase_add_test(cases, stop_waits_for_answers);
    tcase_add_test(cases, endpoint_texts);
    tcase_add_test(cases, endpoints_that_overlap);
    tcase_add_test(cases, a_port_that_is_taken_is_named);
    tcase_add_test(cases, a_port_of_our_own);
    tcase_add_test(cases, unix_sockets);
    tcase_add_test(cases, ipv6);
    tcase_add_test(cases, kept_sockets_refuse_nobody);
    tcase_add_test(cases, https);
    tcase_add_test(cases, https_with_client_certificates);
    tcase_add_test(cases, files_that_were_broken_meanwhile);
    tcase_add_test(cases, what_cannot_be_read_is_said);
    tcase_add_test(cases, idle_listeners_sleep);
    tcase_add_test(cases, half_open_handshakes_cost_nothing);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
