// SPDX-License-Identifier: Apache-2.0
// Counts new verdicts at a StatsD server: one UDP packet `culprit.PATTERN:1|c` each.
#include "pipeline/component/component.h"

#include <errno.h>
#include <netdb.h>
#include <unistd.h>

// An instance is a socket.
struct statsd_config {
    const char *host, *port;
};

static const struct option OPTIONS[] = {
    OPTION(struct statsd_config, host, OPTION_TEXT, .default_value = "127.0.0.1",
           .help = "where the server runs"),
    OPTION(struct statsd_config, port, OPTION_TEXT, .default_value = "8125", .help = "its port"),
};

static enum status start(void *instance, const void *config,
                         const struct component_context *context, struct error *error) {
    int *descriptor = instance;
    const struct statsd_config *given = config;
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM}, *found;
    (void)context;
    *descriptor = -1;
    if (getaddrinfo(given->host, given->port, &hints, &found) != 0)
        return error_set(error, STATUS_CONFIG, "host %s is not known", given->host);
    *descriptor = socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool connected = connect(*descriptor, found->ai_addr, found->ai_addrlen) == 0;
    freeaddrinfo(found);
    return connected ? STATUS_OK : error_set_os(error, STATUS_IO, errno, "%s", given->host);
}

static void stop(void *instance) {
    close(*(int *)instance); // -1 when it was not opened
}

static void encode(void *instance, const struct batch *batch, struct buffer *out) {
    (void)instance;
    for (uint32_t i = 0; i < batch->verdicts.count; i++)
        if (batch->verdicts.items[i].state == VERDICT_OPEN)
            buffer_append_format(out, "culprit.%s:1|c\n", batch->verdicts.items[i].pattern);
}

static enum status send_lines(void *instance, const struct request *request,
                              struct send_outcome *outcome, struct error *error) {
    while (outcome->taken < request->bytes.size) {
        const char *line = request->bytes.data + outcome->taken;
        size_t size =
            (size_t)((const char *)memchr(line, '\n', request->bytes.size - outcome->taken) - line);
        if (send(*(int *)instance, line, size, MSG_NOSIGNAL) < 0)
            return error_set_os(error, STATUS_IO, errno, "sending to the StatsD server");
        outcome->taken += size + 1;
    }
    return STATUS_OK;
}

const struct component_type exporter_statsd = {
    .name = "statsd",
    .summary = "Counts new verdicts at a StatsD server.",
    .kind = COMPONENT_EXPORTER,
    .options = OPTIONS,
    .option_count = OPTION_COUNT(OPTIONS),
    .config_size = sizeof(struct statsd_config),
    .instance_size = sizeof(int),
    .needs = FACT_VERDICTS,
    .start = start,
    .stop = stop,
    .exporter = {.encode = encode, .send = send_lines, .lines = true},
};
