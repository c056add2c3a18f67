// SPDX-License-Identifier: Apache-2.0
#include "base/http/handle.h"

#include "base/clock.h"
#include "base/text/cut.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

static const double WAIT_MAX_S = 3600;

enum status http_multi_open(const struct curl_library **curl, CURLM **multi, struct error *error) {
    assert(curl != NULL && multi != NULL);
    enum status status = curl_library_load(curl, error);
    if (status != STATUS_OK)
        return status;
    *multi = (*curl)->multi_init();
    if (*multi == NULL)
        return error_set(error, STATUS_OS, "libcurl cannot be set up");
    return STATUS_OK;
}

void http_multi_wait(const struct curl_library *curl, CURLM *multi, int descriptor,
                     uint64_t timeout_ns) {
    assert(multi != NULL);
    struct curl_waitfd other = {.fd = descriptor, .events = CURL_WAIT_POLLIN};
    uint64_t wait_ms = timeout_ns / 1000000 + (timeout_ns % 1000000 > 0);
    (void)curl->multi_poll(multi, descriptor < 0 ? NULL : &other, descriptor < 0 ? 0 : 1,
                           wait_ms > INT_MAX ? INT_MAX : (int)wait_ms, NULL);
}

static const char *environment_ca(void) {
    static const char *const names[] = {"CURL_CA_BUNDLE", "SSL_CERT_FILE"};
    for (unsigned i = 0; i < 2; i++) {
        const char *path = getenv(names[i]);
        if (path != NULL && path[0] != '\0')
            return path;
    }
    return NULL;
}

enum status http_tls_check(const struct http_client_tls *tls, struct error *error) {
    const char *const files[] = {tls->ca_file, tls->cert_file, tls->key_file};
    static const char *const names[] = {"ca_file", "cert_file", "key_file"};
    for (unsigned i = 0; i < 3; i++)
        if (files[i] != NULL && access(files[i], R_OK) != 0)
            return error_set(error, STATUS_CONFIG, "%s %.300s cannot be read: %s", names[i],
                             files[i], strerror(errno));
    return STATUS_OK;
}

// PEM that is in memory, which libcurl reads where it is.
static bool set_blobs(const struct curl_library *curl, CURL *handle,
                      const struct http_client_tls *tls) {
    const struct {
        CURLoption option;
        struct slice pem;
    } blobs[] = {
        {CURLOPT_CAINFO_BLOB, tls->ca},
        {CURLOPT_SSLCERT_BLOB, tls->cert},
        {CURLOPT_SSLKEY_BLOB, tls->key},
    };
    bool fine = true;
    for (size_t i = 0; i < sizeof blobs / sizeof blobs[0]; i++) {
        struct curl_blob blob = {(void *)(uintptr_t)blobs[i].pem.data, blobs[i].pem.size,
                                 CURL_BLOB_NOCOPY};
        if (blob.len > 0)
            fine &= curl->easy_setopt(handle, blobs[i].option, &blob) == CURLE_OK;
    }
    return fine;
}

bool http_handle_set_up(const struct curl_library *curl, CURL *handle,
                        const struct http_client_tls *tls, const char *proxy) {
    assert(handle != NULL && tls != NULL);
    const char *ca = tls->ca_file != NULL ? tls->ca_file
                     : tls->ca.size > 0   ? NULL
                                          : environment_ca();
    const struct {
        CURLoption option;
        const char *text;
    } texts[] = {
        {CURLOPT_PROTOCOLS_STR, "http,https"},
        {CURLOPT_USERAGENT, "culprit"},
        {CURLOPT_CAINFO, ca},
        {CURLOPT_SSLCERT, tls->cert_file},
        {CURLOPT_SSLKEY, tls->key_file},
        {CURLOPT_PROXY, proxy},
    };
    bool verify = !tls->insecure_skip_verify;
    const struct {
        CURLoption option;
        long value;
    } numbers[] = {
        {CURLOPT_NOSIGNAL, 1},
        {CURLOPT_FOLLOWLOCATION, 0},
        {CURLOPT_SSL_VERIFYPEER, verify ? 1 : 0},
        {CURLOPT_SSL_VERIFYHOST, verify ? 2 : 0},
    };
    bool fine = set_blobs(curl, handle, tls);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (texts[i].text != NULL)
            fine &= curl->easy_setopt(handle, texts[i].option, texts[i].text) == CURLE_OK;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        fine &= curl->easy_setopt(handle, numbers[i].option, numbers[i].value) == CURLE_OK;
    return fine;
}

bool http_headers_append(const struct curl_library *curl, struct curl_slist **list,
                         const char *const *lines, size_t count) {
    for (size_t i = 0; i < count; i++) {
        // A line end in it would make two headers of one.
        if (strchr(lines[i], ':') == NULL || strpbrk(lines[i], "\r\n") != NULL)
            continue;
        struct curl_slist *longer = curl->slist_append(*list, lines[i]);
        if (longer == NULL)
            return false;
        *list = longer;
    }
    return true;
}

struct slice http_header_find(struct slice headers, const char *name) {
    assert(name[0] != '\0');
    size_t size = strlen(name);
    while (headers.size > 0) {
        struct slice line = text_take_line(&headers);
        if (line.size > size && line.data[size] == ':' && strncasecmp(line.data, name, size) == 0)
            return text_trim(text_from(line, size + 1));
    }
    return (struct slice){NULL, 0};
}

uint64_t http_retry_after_ns(const struct curl_library *curl, struct slice headers) {
    struct slice value = http_header_find(headers, "Retry-After");
    char text[128], *end;
    if (value.size == 0 || value.size >= sizeof text)
        return 0;
    memcpy(text, value.data, value.size);
    text[value.size] = '\0';
    double seconds = strtod(text, &end);
    if (*end != '\0') {
        time_t then = curl->getdate(text, NULL);
        seconds = then == -1 ? 0 : difftime(then, (time_t)(clock_unix_ns() / 1000000000));
    }
    if (!(seconds > 0) || isinf(seconds))
        return 0;
    return (uint64_t)((seconds < WAIT_MAX_S ? seconds : WAIT_MAX_S) * 1e9);
}

const char *http_code_hint(CURLcode code) {
    return code == CURLE_PEER_FAILED_VERIFICATION
               ? " (a server with a certificate of its own authority needs ca_file)"
               : "";
}
