// SPDX-License-Identifier: Apache-2.0
// Asks a running culprit through its control socket (pipeline/runtime/control/control.h).
//
// What is read comes from a process of the same user, and is bounded all the same: an answer to
// 16 MiB, a line to 1 MiB.
#pragma once

#include "base/buffer.h"
#include "pipeline/runtime/control/place.h"

#include <stdint.h>

// Which socket: `given`, else $CULPRIT_SOCKET, else the only one there is at the usual places.
// STATUS_NOT_FOUND when none is there; STATUS_USAGE, with a list, when there are several.
enum status client_choose(const char *given, char path[CONTROL_PATH_MAX],
                          struct error *error) MUST_USE;

// The body of the answer to GET `target`. `interrupt` is a descriptor (-1: none): once it is
// readable, STATUS_STOPPED. STATUS_IO when there is no answer within the time, or not a whole one;
// a refusal has the status that it means, and its sentence.
enum status client_get(const char *path, const char *target, uint64_t timeout_ns, int interrupt,
                       struct buffer *body, struct error *error) MUST_USE;

// Hands over each line of an answer that has no end, without its newline; false: enough. A line
// {"end":"WHY"} is not handed over; it ends the stream with STATUS_OK and WHY in `why`. Without one
// culprit has gone away: STATUS_IO. While nothing comes `idle` is called (NULL: nobody).
enum { CLIENT_WHY_MAX = 32 };
struct client_stream {
    bool (*take)(void *context, struct slice line);
    void (*idle)(void *context);
    void *context;
    int interrupt;
    int output; // where the lines go (-1: nowhere): once nobody reads there, STATUS_STOPPED
    char why[CLIENT_WHY_MAX];
};
enum status client_stream(const char *path, const char *target, struct client_stream *stream,
                          struct error *error) MUST_USE;

// "&name=value", percent-encoded.
void client_append_query(struct buffer *out, const char *name, struct slice value);
