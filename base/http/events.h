// SPDX-License-Identifier: Apache-2.0
// Server-sent events (HTML Living Standard, 9.2): a channel whose newest message goes to all who
// listen to a path of an HTTP listener (http_path.events).
//
// A message replaces the one before: who reads slowly gets the newest and none of those between,
// so that nothing queues. Who comes gets the newest at once, unless its Last-Event-ID names it.
// Between messages a comment is sent at each heartbeat; who did not take what was sent at the last
// one is dropped. Cost: a thread that sleeps while nobody listens; 1 KiB a listener.
#pragma once

#include "base/slice.h"
#include "base/status.h"

#include <stdint.h>

enum { HTTP_EVENT_TEXT_MAX = 512 };

struct http_events; // opaque

struct http_events_options {
    uint32_t max_listeners;   // others get 503
    uint64_t heartbeat_ns;    // above 0
    uint64_t read_timeout_ns; // how long a listener may take to read a message; 0: for ever
    uint32_t retry_ms;        // what listeners are told to wait before they come again
};

enum status http_events_start(struct http_events **events,
                              const struct http_events_options *options,
                              struct error *error) MUST_USE;
// After the server has stopped. NULL is fine.
void http_events_stop(struct http_events *events);
// The newest message: its id, its name and its data, each without line ends and all together with
// at most HTTP_EVENT_TEXT_MAX bytes. Any thread.
void http_events_publish(struct http_events *events, const char *id, const char *name,
                         const char *data);
// Who listens now; any thread, no lock.
uint32_t http_events_listeners(const struct http_events *events);
