// SPDX-License-Identifier: Apache-2.0
// libcurl, loaded when the first component starts that speaks to an HTTP server.
#pragma once

#include "base/status.h"

#include <curl/curl.h>

// Every function of libcurl that culprit calls, without its prefix `curl_`.
#define CURL_FUNCTIONS(X)                                                                          \
    X(easy_cleanup)                                                                                \
    X(easy_escape)                                                                                 \
    X(easy_getinfo)                                                                                \
    X(easy_init)                                                                                   \
    X(easy_perform)                                                                                \
    X(easy_setopt)                                                                                 \
    X(easy_strerror)                                                                               \
    X(free)                                                                                        \
    X(getdate)                                                                                     \
    X(global_init)                                                                                 \
    X(multi_add_handle)                                                                            \
    X(multi_cleanup)                                                                               \
    X(multi_info_read)                                                                             \
    X(multi_init)                                                                                  \
    X(multi_perform)                                                                               \
    X(multi_poll)                                                                                  \
    X(multi_remove_handle)                                                                         \
    X(multi_setopt)                                                                                \
    X(slist_append)                                                                                \
    X(slist_free_all)

struct curl_library {
#define CURL_MEMBER(name) __typeof__ (&curl_##name)(name);
    CURL_FUNCTIONS(CURL_MEMBER)
#undef CURL_MEMBER
};

// Lives as long as the process. Any thread.
enum status curl_library_load(const struct curl_library **library, struct error *error) MUST_USE;
