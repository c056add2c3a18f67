// SPDX-License-Identifier: Apache-2.0
// Several HTTP clients side by side on one thread: a server that does not answer holds up nobody
// else. Each has at most one call under way. What client.h says of a call holds for these, too.
//
// One thread at a time.
#pragma once

#include "base/http/client.h"

struct http_client_set; // opaque

// Loads libcurl. A connection is kept for each of `clients_max` clients. The bodies of all replies
// under way have `bytes_max` bytes together at most: a reply that goes beyond fails as one that is
// too long.
enum status http_client_set_open(struct http_client_set **set, uint32_t clients_max,
                                 size_t bytes_max, struct error *error) MUST_USE;
// Gives up the calls under way. Before the clients are closed. NULL is fine.
void http_client_set_close(struct http_client_set *set);

// Begins a call; `call` and the client stay until http_client_set_next has given it back. A call
// that cannot even begin is given back, too.
void http_client_set_begin(struct http_client_set *set, struct http_client *client,
                           const struct http_call *call);
// Waits until something may have happened, `descriptor` can be read (-1: none), or the time is
// over; does what there is to do.
void http_client_set_wait(struct http_client_set *set, int descriptor, uint64_t timeout_ns);
// A client whose call is over, with what http_client_send would have returned and said of it; NULL:
// none for now.
struct http_client *http_client_set_next(struct http_client_set *set, enum http_class *class,
                                         struct error *error);
