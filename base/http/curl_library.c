// SPDX-License-Identifier: Apache-2.0
#include "base/http/curl_library.h"

#include "base/http/late.h"

static struct curl_library curl;

static const struct late_symbol symbols[] = {
#define CURL_PLACE(name) {"curl_" #name, (void **)(void *)&curl.name},
    CURL_FUNCTIONS(CURL_PLACE)
#undef CURL_PLACE
};

static enum status set_up(struct error *error) {
    if (curl.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
        return STATUS_OK;
    return error_set(error, STATUS_OS, "libcurl cannot set itself up");
}

struct late_library http_client_library = {"libcurl.so.4",
                                           "libcurl4",
                                           "sending over HTTP",
                                           symbols,
                                           .symbol_count = sizeof symbols / sizeof symbols[0],
                                           .set_up = set_up};

enum status curl_library_load(const struct curl_library **library, struct error *error) {
    enum status status = late_library_load(&http_client_library, error);
    if (status == STATUS_OK)
        *library = &curl;
    return status;
}
