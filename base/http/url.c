// SPDX-License-Identifier: Apache-2.0
// Checks URLs, cuts them apart and joins them.
#include "base/http/url.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const char *authority_of(const char *url) {
    const char *scheme_end = strstr(url, "://");
    return scheme_end == NULL ? url : scheme_end + 3;
}

static size_t authority_size(const char *authority) {
    return strcspn(authority, "/?#");
}

const char *http_url_problem(const char *url) {
    assert(url != NULL);
    if (strncmp(url, "https://", 8) != 0 && strncmp(url, "http://", 7) != 0)
        return "it must begin with https:// or http://";
    for (const unsigned char *c = (const unsigned char *)url; *c != '\0'; c++)
        if (*c <= ' ' || *c == 0x7f)
            return "it holds white space or a control character";
    const char *authority = authority_of(url);
    size_t size = authority_size(authority);
    if (memchr(authority, '@', size) != NULL)
        return "it holds a user name or password before the @";
    if (size == 0 || authority[0] == ':')
        return "it has no host";
    return NULL;
}

struct slice http_url_origin(const char *url) {
    assert(url != NULL);
    const char *authority = authority_of(url);
    const char *end = authority + authority_size(authority);
    const char *user = memrchr(authority, '@', (size_t)(end - authority));
    if (user != NULL)
        url = user + 1;
    return (struct slice){url, (size_t)(end - url)};
}

bool http_url_of_api(char *out, size_t room, const char *address, const char *path) {
    assert(path[0] == '/');
    size_t size = strlen(address), path_size = strlen(path);
    while (size > 0 && address[size - 1] == '/')
        size--;
    bool whole = size > path_size && memcmp(address + size - path_size, path, path_size) == 0;
    int length = snprintf(out, room, "%.*s%s", (int)size, address, whole ? "" : path);
    return length > 0 && (size_t)length < room;
}

bool http_url_is_exposed(const char *url) {
    static const char *const own[] = {"127.", "localhost", "[::1]"};
    if (strncmp(url, "http://", 7) != 0)
        return false;
    for (unsigned i = 0; i < sizeof own / sizeof own[0]; i++)
        if (strncmp(url + 7, own[i], strlen(own[i])) == 0)
            return false;
    return true;
}
