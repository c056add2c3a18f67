// SPDX-License-Identifier: Apache-2.0
#include "base/http/library.h"

#include "base/late_library.h"

#include <pthread.h>

static struct http_library http;
static struct tls_library tls;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define FROM_HTTP(name)                                                                            \
    { "MHD_" #name, (void **)(void *)&http.name }
#define FROM_TLS(name)                                                                             \
    { "gnutls_" #name, (void **)(void *)&tls.name }
#define COUNT(symbols) (sizeof(symbols) / sizeof((symbols)[0]))

static const struct late_symbol http_symbols[] = {
    FROM_HTTP(start_daemon),          FROM_HTTP(quiesce_daemon),
    FROM_HTTP(stop_daemon),           FROM_HTTP(is_feature_supported),
    FROM_HTTP(get_connection_info),   FROM_HTTP(lookup_connection_value),
    FROM_HTTP(get_connection_values), FROM_HTTP(suspend_connection),
    FROM_HTTP(resume_connection),     FROM_HTTP(create_response_from_buffer),
    FROM_HTTP(add_response_header),   FROM_HTTP(queue_response),
    FROM_HTTP(destroy_response),
};

static const struct late_symbol tls_symbols[] = {
    FROM_TLS(certificate_server_set_request),
    FROM_TLS(session_set_verify_cert),
    FROM_TLS(certificate_verify_peers2),
};

enum status http_library_load(const struct http_library **library, struct error *error) {
    pthread_mutex_lock(&lock);
    enum status status =
        http.destroy_response != NULL
            ? STATUS_OK
            : late_library_load("libmicrohttpd.so.12", "libmicrohttpd12", "listening for HTTP",
                                http_symbols, COUNT(http_symbols), error);
    pthread_mutex_unlock(&lock);
    if (status == STATUS_OK)
        *library = &http;
    return status;
}

enum status tls_library_load(const struct tls_library **library, struct error *error) {
    pthread_mutex_lock(&lock);
    enum status status =
        tls.certificate_verify_peers2 != NULL
            ? STATUS_OK
            : late_library_load("libgnutls.so.30", "libgnutls30", "client certificates",
                                tls_symbols, COUNT(tls_symbols), error);
    pthread_mutex_unlock(&lock);
    if (status == STATUS_OK)
        *library = &tls;
    return status;
}
