// SPDX-License-Identifier: Apache-2.0
// The control socket: answers `culprit top` and `culprit tap` about the service that runs.
//
// HTTP/1.1 over a Unix socket, one request a connection, GET only:
//   /status  what control_status_write makes, as application/json
//   /tap     what request.h asks for, as application/x-ndjson, until the client goes. A line
//            {"left_out":N} says how many records were passed over since the last such line, and
//            {"end":"…"} is the last line of a stream that culprit itself ends.
// An error is {"error":"…"} with status 400, 404, 405 or 503.
//
// One thread, which sleeps unless somebody is connected; with a tap it looks ten times a second. At
// most 16 connections, 10 s for a request or a client that does not read its answer; a tap may rest
// for as long as it likes. Memory: what stands in an answer, and 1 MiB a tap.
#pragma once

#include "base/status.h"

struct control; // opaque
struct service;

// `path` NULL: at the usual place (place.h). The service outlives it.
enum status control_start(struct control **control, struct service *service, const char *path,
                          struct error *error) MUST_USE;
const char *control_path(const struct control *control);
// Streams get what waits for them, as far as their clients read it within half a second, and end
// with `why`. NULL is fine.
void control_stop(struct control *control, const char *why);
