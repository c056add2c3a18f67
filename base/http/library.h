// SPDX-License-Identifier: Apache-2.0
// libmicrohttpd and the three functions of GnuTLS that it does not offer itself, loaded when the
// first listener starts.
#pragma once

#include "base/status.h"

#include <microhttpd.h>
#include <stdbool.h>

struct http_library {
    __typeof__(&MHD_start_daemon) start_daemon;
    __typeof__(&MHD_quiesce_daemon) quiesce_daemon;
    __typeof__(&MHD_stop_daemon) stop_daemon;
    __typeof__(&MHD_is_feature_supported) is_feature_supported;
    __typeof__(&MHD_get_connection_info) get_connection_info;
    __typeof__(&MHD_lookup_connection_value) lookup_connection_value;
    __typeof__(&MHD_get_connection_values) get_connection_values;
    __typeof__(&MHD_suspend_connection) suspend_connection;
    __typeof__(&MHD_resume_connection) resume_connection;
    __typeof__(&MHD_create_response_from_buffer) create_response_from_buffer;
    __typeof__(&MHD_add_response_header) add_response_header;
    __typeof__(&MHD_queue_response) queue_response;
    __typeof__(&MHD_destroy_response) destroy_response;
};

// Sessions are opaque here, so that GnuTLS' headers are not needed.
struct tls_library {
    void (*certificate_server_set_request)(void *session, int request);
    void (*session_set_verify_cert)(void *session, const char *hostname, unsigned flags);
    int (*certificate_verify_peers2)(void *session, unsigned *status);
};

// Both live as long as the process. Any thread.
enum status http_library_load(const struct http_library **library, struct error *error) MUST_USE;
enum status tls_library_load(const struct tls_library **library, struct error *error) MUST_USE;
