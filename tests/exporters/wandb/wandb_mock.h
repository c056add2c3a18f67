// SPDX-License-Identifier: Apache-2.0
// A mock W&B server for one test, and how it is asked what it understood.
#pragma once

#include "base/buffer.h"
#include "base/memory.h"

#include <check.h>
#include <jansson.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static const char WANDB_MOCK_KEY[] = "0123456789abcdef0123456789abcdef01234567";

struct wandb_mock {
    pid_t process;
    FILE *said;
    int port;
    char url[64];
};

// A program that says READY and its address.
static inline void wandb_mock_run(struct wandb_mock *mock, const char *option,
                                  const char *program) {
    int ends[2];
    char line[128];
    ck_assert_int_eq(pipe(ends), 0);
    mock->process = fork();
    ck_assert_int_ge(mock->process, 0);
    if (mock->process == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        execlp("python3", "python3", option, program, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    mock->said = fdopen(ends[0], "r");
    ck_assert_ptr_nonnull(fgets(line, sizeof line, mock->said));
    ck_assert_int_eq(sscanf(line, "READY http://127.0.0.1:%d", &mock->port), 1);
    snprintf(mock->url, sizeof mock->url, "http://127.0.0.1:%d", mock->port);
}

static inline void wandb_mock_start(struct wandb_mock *mock) {
    wandb_mock_run(mock, "-B", TESTS_DIR "/wandb/mock_wandb.py");
}

static inline void wandb_mock_stop(struct wandb_mock *mock) {
    kill(mock->process, SIGKILL);
    waitpid(mock->process, NULL, 0);
    fclose(mock->said);
}

// The answer's JSON.
static inline json_t *wandb_mock_call(const struct wandb_mock *mock, const char *method,
                                      const char *path, const char *body) {
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)mock->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct buffer text;
    char block[65536];
    ssize_t got;
    int connection = socket(AF_INET, SOCK_STREAM, 0);
    buffer_init(&text, 256 << 20);
    ck_assert_int_eq(connect(connection, (struct sockaddr *)&at, sizeof at), 0);
    buffer_append_format(&text,
                         "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                         "Content-Length: %zu\r\n\r\n%s",
                         method, path, strlen(body), body);
    ck_assert_int_eq(write(connection, text.data, text.size), (ssize_t)text.size);
    buffer_reset(&text);
    while ((got = read(connection, block, sizeof block)) > 0)
        buffer_append(&text, (struct slice){block, (size_t)got});
    close(connection);
    const char *begin = memmem(text.data, text.size, "\r\n\r\n", 4);
    ck_assert_ptr_nonnull(begin);
    json_error_t error;
    json_t *answer =
        json_loadb(begin + 4, (size_t)(text.data + text.size - begin) - 4, JSON_DECODE_ANY, &error);
    ck_assert_msg(answer != NULL, "%s", error.text);
    buffer_release(&text);
    return answer;
}

static inline void wandb_mock_fault(const struct wandb_mock *mock, const char *spec) {
    json_decref(wandb_mock_call(mock, "POST", "/__fault", spec));
}

// What it understood; no rule was broken.
static inline json_t *wandb_mock_decoded(const struct wandb_mock *mock) {
    json_t *decoded = wandb_mock_call(mock, "GET", "/__decoded", "");
    const json_t *violations = json_object_get(decoded, "violations");
    if (json_array_size(violations) > 0) {
        char *text = json_dumps(violations, JSON_INDENT(1));
        ck_abort_msg("violations: %s", text);
    }
    return decoded;
}
