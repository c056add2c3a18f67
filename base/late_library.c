// SPDX-License-Identifier: Apache-2.0
#include "base/late_library.h"

#include <dlfcn.h>

enum status late_library_load(const char *soname, const char *package, const char *purpose,
                              const struct late_symbol *symbols, size_t count,
                              struct error *error) {
    // Never closed: threads of the library may outlive the component that asked for it.
    void *library = dlopen(soname, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return error_set(error, STATUS_NOT_FOUND,
                         "%s is needed for %s and cannot be loaded; install the package %s: %s",
                         soname, purpose, package, dlerror());
    for (size_t i = 0; i < count; i++) {
        void *symbol = dlsym(library, symbols[i].name);
        if (symbol == NULL)
            return error_set(error, STATUS_NOT_FOUND,
                             "%s has no function %s; a newer version of the package %s is needed",
                             soname, symbols[i].name, package);
        *symbols[i].place = symbol;
    }
    return STATUS_OK;
}
