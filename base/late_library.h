// SPDX-License-Identifier: Apache-2.0
// Shared libraries that are loaded only when a configuration uses them: a sidecar without Kafka
// carries no librdkafka, one without a listener no TLS library.
//
// A folder that uses such a library keeps a struct of function pointers, each of the type that the
// library's own header declares, and fills it here by name.
#pragma once

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

struct late_symbol {
    const char *name;
    void **place;
};

struct late_library {
    const char *soname;  // "librdkafka.so.1"
    const char *package; // of Debian
    const char *purpose; // "Kafka"
    const struct late_symbol *symbols;
    size_t symbol_count;
    // What the library's own state needs before its first use; NULL: nothing. Must not load others.
    enum status (*set_up)(struct error *error);
    bool loading; // by some thread
    bool loaded;
};

// Loads it for the life of the process, fills all places and sets it up. Repeating it is cheap.
// STATUS_NOT_FOUND names the library, what it is for and the Debian package. Any thread.
enum status late_library_load(struct late_library *library, struct error *error) MUST_USE;

// Begins to load libraries, in this order, on a thread of its own, while the caller does something
// else; late_library_load then waits for the one that it needs, or finds it loaded, and says what
// failed. NULL: there is no thread for it. `libraries` is copied.
struct late_ahead *late_ahead_begin(struct late_library *const *libraries, size_t count);
// Waits until all are loaded. NULL: does nothing.
void late_ahead_end(struct late_ahead *ahead);
