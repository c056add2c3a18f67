// SPDX-License-Identifier: Apache-2.0
// The newest page, served: GET / with an ETag, and /events, which says when there is a newer one.
//
// Read only. A loopback address without a token answers only to names of this machine, so that no
// page of others can read it (DNS rebinding). Memory: the page and its gzip.
#pragma once

#include "config/server_options.h"
#include "pipeline/component/component.h"

enum { SERVED_PAGE_MAX = 60 << 20 }; // bytes, plain and as gzip

struct served; // opaque

struct served_options {
    const char *endpoint;
    const struct tls_server_config *tls;
    const struct auth_server_config *auth;
    uint64_t refresh_ns; // pages are at least so far apart
    const char *site;    // for logs
};

// Adds problems of endpoint, tls and auth: what others can reach needs a token or certificates.
void served_check(const struct served_options *options, struct problem_list *problems);
// Fails as http_server_start does. Answers 503 before the first served_put. The options' texts live
// as long as it.
enum status served_start(struct served **served, const struct served_options *options,
                         struct error *error) MUST_USE;
void served_stop(struct served *served); // NULL is fine

// From when on the next page is due, monotonic; any thread. Pages are `refresh` apart, and making
// them takes at most a tenth of the time while somebody looks, and a twentieth while nobody does.
uint64_t served_due(const struct served *served);
// The page is taken over: `page` is empty afterwards, with the memory of the page before. `cost_ns`
// is what it took to make. The same page as before is no news.
void served_put(struct served *served, struct buffer *page, uint64_t cost_ns);
