// SPDX-License-Identifier: Apache-2.0
#include "base/http/curl_library.h"

#include "base/late_library.h"

#include <pthread.h>
#include <stdbool.h>

static struct curl_library curl;
static bool loaded;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const struct late_symbol symbols[] = {
#define CURL_PLACE(name) {"curl_" #name, (void **)(void *)&curl.name},
    CURL_FUNCTIONS(CURL_PLACE)
#undef CURL_PLACE
};

enum status curl_library_load(const struct curl_library **library, struct error *error) {
    pthread_mutex_lock(&lock);
    enum status status = STATUS_OK;
    if (!loaded)
        status = late_library_load("libcurl.so.4", "libcurl4", "Weights & Biases", symbols,
                                   sizeof symbols / sizeof symbols[0], error);
    // Its own state is made once, under the lock; it stays until the process ends.
    if (!loaded && status == STATUS_OK && curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        status = error_set(error, STATUS_OS, "libcurl cannot set itself up");
    loaded = loaded || status == STATUS_OK;
    pthread_mutex_unlock(&lock);
    if (status == STATUS_OK)
        *library = &curl;
    return status;
}
