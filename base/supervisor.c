// SPDX-License-Identifier: Apache-2.0
// Notifies the service manager (sd_notify).
//
// The environment is asked each time: words are few, and a test can change it.
#include "base/supervisor.h"

#include "base/clock.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void say(const char *words) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = getenv("NOTIFY_SOCKET");
    size_t length = path == NULL ? 0 : strlen(path);
    if (length < 2 || length >= sizeof address.sun_path || (path[0] != '/' && path[0] != '@'))
        return;
    memcpy(address.sun_path, path, length);
    if (path[0] == '@') // a name without a file
        address.sun_path[0] = '\0';
    int descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0)
        return;
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    // A failure is the manager's to notice.
    (void)!sendto(descriptor, words, strlen(words), MSG_NOSIGNAL | MSG_DONTWAIT,
                  (const struct sockaddr *)&address, size);
    close(descriptor);
}

void supervisor_ready(void) {
    say("READY=1");
}

void supervisor_reloading(void) {
    char words[64];
    snprintf(words, sizeof words, "RELOADING=1\nMONOTONIC_USEC=%llu",
             (unsigned long long)(clock_monotonic_ns() / 1000));
    say(words);
}

void supervisor_stopping(void) {
    say("STOPPING=1");
}

uint64_t supervisor_patience_ns(void) {
    enum { DAY_US_DIGITS = 14 };
    const char *text = getenv("WATCHDOG_USEC");
    const char *process = getenv("WATCHDOG_PID");
    if (text == NULL || *text == '\0' || strlen(text) > DAY_US_DIGITS ||
        strspn(text, "0123456789") != strlen(text))
        return 0;
    if (process != NULL && strtoull(process, NULL, 10) != (unsigned long long)getpid())
        return 0;
    return strtoull(text, NULL, 10) * 1000;
}

void supervisor_alive(void) {
    static uint64_t said_ns;
    uint64_t patience = supervisor_patience_ns(), now = clock_monotonic_ns();
    if (patience == 0 || (said_ns != 0 && now - said_ns < patience / 4))
        return;
    said_ns = now;
    say("WATCHDOG=1");
}
