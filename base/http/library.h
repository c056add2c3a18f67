// SPDX-License-Identifier: Apache-2.0
// libmicrohttpd and the two functions of GnuTLS that it does not offer itself, loaded when the
// first listener starts.
#pragma once

#include "base/status.h"

#include <microhttpd.h>
#include <stdbool.h>

// Every function of libmicrohttpd that culprit calls, without its prefix `MHD_`.
#define HTTP_FUNCTIONS(X)                                                                          \
    X(start_daemon)                                                                                \
    X(add_connection)                                                                              \
    X(stop_daemon)                                                                                 \
    X(is_feature_supported)                                                                        \
    X(get_connection_info)                                                                         \
    X(lookup_connection_value)                                                                     \
    X(get_connection_values)                                                                       \
    X(suspend_connection)                                                                          \
    X(resume_connection)                                                                           \
    X(create_response_from_buffer)                                                                 \
    X(create_response_from_callback)                                                               \
    X(add_response_header)                                                                         \
    X(queue_response)                                                                              \
    X(destroy_response)

struct http_library {
#define HTTP_MEMBER(name) __typeof__ (&MHD_##name)(name);
    HTTP_FUNCTIONS(HTTP_MEMBER)
#undef HTTP_MEMBER
};

// Sessions are opaque here, so that GnuTLS' headers are not needed.
struct tls_library {
    void (*certificate_server_set_request)(void *session, int request);
    int (*certificate_verify_peers2)(void *session, unsigned *status);
};

// Both live as long as the process. Any thread.
enum status http_library_load(const struct http_library **library, struct error *error) MUST_USE;
enum status tls_library_load(const struct tls_library **library, struct error *error) MUST_USE;
