// SPDX-License-Identifier: Apache-2.0
// Parts of paths and names.
#pragma once

#include "base/text/cut.h"

// Up to its last slash, which stays; empty for a bare name.
static inline struct slice path_directory(struct slice path) {
    const char *slash = path.size == 0 ? NULL : memrchr(path.data, '/', path.size);
    return (struct slice){path.data, slash == NULL ? 0 : (size_t)(slash + 1 - path.data)};
}

// What comes behind it.
static inline struct slice path_name(struct slice path) {
    size_t start = path_directory(path).size;
    return (struct slice){path.data + start, path.size - start};
}

static inline bool name_ends(struct slice name, struct slice end) {
    return name.size >= end.size &&
           memcmp(name.data + name.size - end.size, end.data, end.size) == 0;
}

static inline struct slice name_without_gzip(struct slice name) {
    if (name.size > 3 && name_ends(name, SLICE(".gz")))
        name.size -= 3;
    return name;
}
