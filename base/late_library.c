// SPDX-License-Identifier: Apache-2.0
#include "base/late_library.h"

#include "base/thread.h"

#include <assert.h>
#include <dlfcn.h>

static enum status load(const struct late_library *library, struct error *error) {
    // Never closed: threads of the library may outlive the component that asked for it.
    void *handle = dlopen(library->soname, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        return error_set(error, STATUS_NOT_FOUND,
                         "%s is needed for %s and cannot be loaded; install the package %s: %s",
                         library->soname, library->purpose, library->package, dlerror());
    for (size_t i = 0; i < library->symbol_count; i++) {
        void *symbol = dlsym(handle, library->symbols[i].name);
        if (symbol == NULL)
            return error_set(error, STATUS_NOT_FOUND,
                             "%s has no function %s; a newer version of the package %s is needed",
                             library->soname, library->symbols[i].name, library->package);
        *library->symbols[i].place = symbol;
    }
    return library->set_up == NULL ? STATUS_OK : library->set_up(error);
}

enum status late_library_load(struct late_library *library, struct error *error) {
    static struct lock lock = LOCK_INITIALIZER;
    assert(library->symbols != NULL && library->symbol_count > 0);
    lock_take(&lock);
    enum status status = library->loaded ? STATUS_OK : load(library, error);
    library->loaded = status == STATUS_OK;
    lock_release(&lock);
    return status;
}
