// SPDX-License-Identifier: Apache-2.0
// Whom a client trusts, and what it shows to servers.
#pragma once

#include "base/slice.h"

#include <stdbool.h>

// Texts and bytes belong to the caller; NULL or empty where nothing is given.
struct http_client_tls {
    const char *ca_file;   // PEM: authorities to trust instead of the system's
    const char *cert_file; // PEM: shown to the server
    const char *key_file;  // PEM: of cert_file
    bool insecure_skip_verify;
    // The same three as PEM in memory, in place of files; empty: none.
    struct slice ca, cert, key;
};
