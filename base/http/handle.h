// SPDX-License-Identifier: Apache-2.0
// What all of culprit's libcurl handles share: their set-up, and how headers are written and read.
//
// Certificates are checked, redirects are not followed, nothing but http and https is spoken, and
// no signal is used.
#pragma once

#include "base/http/curl_library.h"
#include "base/http/tls.h"

#include <stdint.h>

// Loads libcurl, and makes a handle for several requests at once; multi_cleanup of the library is
// the caller's to call.
enum status http_multi_open(const struct curl_library **curl, CURLM **multi,
                            struct error *error) MUST_USE;
// Waits until there is something to do, `descriptor` can be read (-1: none), or the time, rounded
// up to milliseconds, is over.
void http_multi_wait(const struct curl_library *curl, CURLM *multi, int descriptor,
                     uint64_t timeout_ns);
// STATUS_CONFIG when a file of it cannot be read.
enum status http_tls_check(const struct http_client_tls *tls, struct error *error) MUST_USE;
// False when libcurl has no memory for a text or does not know an option. `proxy` NULL: that of the
// environment. What `tls` holds in memory must outlive the handle.
bool http_handle_set_up(const struct curl_library *curl, CURL *handle,
                        const struct http_client_tls *tls, const char *proxy);
// Appends "Name: value" lines; those that are no header are left out. False: out of memory.
bool http_headers_append(const struct curl_library *curl, struct curl_slist **list,
                         const char *const *lines, size_t count);
// The first value of a header in `headers`, which are as they came; empty when it is not there.
struct slice http_header_find(struct slice headers, const char *name);
// Retry-After, in seconds or as a date, at most an hour; 0: none.
uint64_t http_retry_after_ns(const struct curl_library *curl, struct slice headers);
// Adds the hint that a person needs beside libcurl's words for this code; "" for most.
const char *http_code_hint(CURLcode code);
