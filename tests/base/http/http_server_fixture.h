// SPDX-License-Identifier: Apache-2.0
// What the tests of the listener share: a server with four paths, a folder, and what was seen.
// Included once by each test program.
#pragma once

#include "tests/base/http/http_client.h"

#include "base/clock.h"
#include "base/http/endpoint.h"
#include "base/http/server.h"
#include "base/log.h"
#include "base/memory.h"
#include "tests/support/eventually.h"
#include "tests/support/temporary.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/stat.h>

#define SECOND 1000000000ull

static char folder[128];
static struct http_server *server;
static struct http_server_options options;
static struct error error;
static atomic_int handled;
static atomic_int admit_status;
static atomic_int statuses[600];
static _Atomic(struct http_exchange *) resting;
static struct http_response *resting_response;
static uint64_t live_before;

// Answers with method, query, size and, when it is short, the body itself.
static inline void echo(void *context, const struct http_request *request,
                        struct http_response *response) {
    (void)context;
    atomic_fetch_add(&handled, 1);
    const char *name = http_request_header(request, "x-name");
    buffer_append_format(&response->body, "%s %s ?%s %s %zu ", request->method, request->path,
                         request->query, name == NULL ? "-" : name, request->body.size);
    if (request->body.size < 1000)
        buffer_append(&response->body, request->body);
}

static inline void large(void *context, const struct http_request *request,
                         struct http_response *response) {
    (void)context;
    (void)request;
    response->content_type = "text/plain; version=0.0.4";
    response->compress = true;
    for (int i = 0; i < 2000; i++)
        buffer_append_text(&response->body, "the same line again\n");
}

static inline void rest(void *context, const struct http_request *request,
                        struct http_response *response) {
    (void)context;
    http_answer_later(request);
    resting_response = response;
    atomic_store(&resting, request->exchange);
}

static inline int admit(void *context, uint64_t bytes, uint32_t *retry_after_s) {
    (void)context;
    (void)bytes;
    *retry_after_s = 7;
    return atomic_load(&admit_status);
}

static inline void answered(void *context, int status) {
    (void)context;
    atomic_fetch_add(&statuses[status], 1);
}

static inline void write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static inline const char *in_folder(const char *name) {
    static char paths[8][256];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static inline void setup(void) {
    temporary_path(folder, sizeof folder, "http");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    live_before = memory_figures().live_bytes;
    atomic_store(&handled, 0);
    atomic_store(&admit_status, 0);
    atomic_store(&resting, NULL);
    memset(statuses, 0, sizeof statuses);
    options = (struct http_server_options){
        .endpoint = "127.0.0.1:0",
        .paths = {{.path = "/echo", .methods = "GET POST", .content_types = NULL, .handler = echo},
                  {.path = "/json",
                   .methods = "POST",
                   .content_types = "application/json application/x-ndjson",
                   .handler = echo},
                  {.path = "/large", .methods = "GET HEAD", .handler = large},
                  {.path = "/rest", .methods = "POST", .handler = rest}},
        .path_count = 4,
        .max_request_bytes = 1 << 20,
        .max_connections = 64,
        .header_timeout_ns = 10 * SECOND,
        .body_timeout_ns = 30 * SECOND,
        .write_timeout_ns = 30 * SECOND,
        .idle_timeout_ns = 60 * SECOND,
        .admit = admit,
        .answered = answered,
        .site = "receiver/test",
    };
}

static inline void start(void) {
    enum status status = http_server_start(&server, &options, &error);
    ck_assert_msg(status == STATUS_OK, "%s", error.message);
}

static inline void teardown(void) {
    http_server_stop(server, 0, false);
    server = NULL;
    http_server_drop_kept();
    char command[256];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
    ck_assert_uint_eq(memory_figures().live_bytes, live_before);
}

static inline struct answer ask(const char *method, const char *path, const char *headers,
                                const char *body) {
    return client_ask(http_server_port(server), method, path, headers, body,
                      body == NULL ? 0 : strlen(body));
}

static inline void check_refused(const char *method, const char *path, const char *headers,
                                 const char *body, int status, const char *code) {
    struct answer answer = ask(method, path, headers, body);
    ck_assert_msg(answer.status == status, "%s %s: %d instead of %d", method, path, answer.status,
                  status);
    char wanted[64];
    snprintf(wanted, sizeof wanted, "{\"error\":{\"code\":\"%s\",\"message\":\"", code);
    ck_assert_msg(strncmp(answer.body, wanted, strlen(wanted)) == 0, "%s", answer.body);
    ck_assert_str_eq(answer_header(&answer, "Content-Type"), "application/json");
    answer_free(&answer);
    ck_assert_int_eq(atomic_load(&handled), 0);
    ck_assert_int_ge(atomic_load(&statuses[status]), 1);
}

// From now on the log goes to a file of the folder.
static inline void log_to_file(void) {
    int descriptor = open(in_folder("log"), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ck_assert_int_ge(descriptor, 0);
    ck_assert_int_ge(dup2(descriptor, STDERR_FILENO), 0);
    close(descriptor);
    log_configure(LOG_WARN, LOG_CONSOLE);
}

static inline bool log_says(const char *wanted) {
    static char text[65536];
    FILE *file = fopen(in_folder("log"), "r");
    ck_assert_ptr_nonnull(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return strstr(text, wanted) != NULL;
}

// How often the threads that belong to the listener were woken; `*threads` of them were found.
static inline unsigned long wake_ups(int *threads) {
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
