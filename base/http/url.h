// SPDX-License-Identifier: Apache-2.0
// What an http:// or https:// URL holds. Any thread.
#pragma once

#include "base/slice.h"

// NULL when it can be requested, else a clause that says why not: "it has no host". A user name or
// password in it is refused, since URLs appear in logs.
const char *http_url_problem(const char *url);
// Scheme, host and port, without user and password: what a message may show of any URL, since paths
// and queries can be keys themselves.
struct slice http_url_origin(const char *url);
// Writes the URL of an API at a configured address: `path` behind it, which begins with a slash,
// unless the address ends with it already; slashes at its end are left out. False when it has no
// room.
bool http_url_of_api(char *out, size_t room, const char *address, const char *path);
// Whether what is sent there can be read on the network: http://, and not to this machine.
bool http_url_is_exposed(const char *url);
