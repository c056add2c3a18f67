// SPDX-License-Identifier: Apache-2.0
#include "base/http/library.h"

#include "base/http/late.h"

static struct http_library http;
static struct tls_library tls;

static const struct late_symbol http_symbols[] = {
#define HTTP_PLACE(name) {"MHD_" #name, (void **)(void *)&http.name},
    HTTP_FUNCTIONS(HTTP_PLACE)
#undef HTTP_PLACE
};
static const struct late_symbol tls_symbols[] = {
    {"gnutls_certificate_server_set_request", (void **)(void *)&tls.certificate_server_set_request},
    {"gnutls_certificate_verify_peers2", (void **)(void *)&tls.certificate_verify_peers2},
};
struct late_library http_server_library = {
    "libmicrohttpd.so.12", "libmicrohttpd12", "listening for HTTP", http_symbols,
    .symbol_count = sizeof http_symbols / sizeof http_symbols[0]};
static struct late_library late_tls = {"libgnutls.so.30", "libgnutls30", "client certificates",
                                       tls_symbols,
                                       .symbol_count = sizeof tls_symbols / sizeof tls_symbols[0]};

enum status http_library_load(const struct http_library **library, struct error *error) {
    enum status status = late_library_load(&http_server_library, error);
    if (status == STATUS_OK)
        *library = &http;
    return status;
}

enum status tls_library_load(const struct tls_library **library, struct error *error) {
    enum status status = late_library_load(&late_tls, error);
    if (status == STATUS_OK)
        *library = &tls;
    return status;
}
