// SPDX-License-Identifier: Apache-2.0
// Shared libraries that are loaded only when a configuration uses them: a sidecar without Kafka
// carries no librdkafka, one without a listener no TLS library.
//
// A folder that uses such a library keeps a struct of function pointers, each of the type that the
// library's own header declares, and fills it here by name.
#pragma once

#include "base/status.h"

#include <stddef.h>

struct late_symbol {
    const char *name;
    void **place;
};

// Loads `soname` ("librdkafka.so.1") for the life of the process and fills all places. Repeating it
// is cheap. STATUS_NOT_FOUND names the library, what it is for and the Debian package. Any thread.
enum status late_library_load(const char *soname, const char *package, const char *purpose,
                              const struct late_symbol *symbols, size_t count,
                              struct error *error) MUST_USE;
