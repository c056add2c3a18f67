// SPDX-License-Identifier: Apache-2.0
// A library is loaded outside the lock, so that one can be loaded while another one is.
#include "base/late_library.h"

#include "base/memory.h"
#include "base/thread.h"

#include <assert.h>
#include <dlfcn.h>
#include <string.h>

static struct lock lock = LOCK_INITIALIZER; // of all libraries' `loading` and `loaded`
static pthread_cond_t settled = PTHREAD_COND_INITIALIZER;

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
    assert(library->symbols != NULL && library->symbol_count > 0);
    lock_take(&lock);
    while (library->loading)
        cond_wait(&settled, &lock);
    enum status status = STATUS_OK;
    if (!library->loaded) {
        library->loading = true;
        lock_release(&lock);
        status = load(library, error);
        lock_take(&lock);
        library->loading = false;
        library->loaded = status == STATUS_OK;
        pthread_cond_broadcast(&settled);
    }
    lock_release(&lock);
    return status;
}

// -- ahead ----------------------------------------------------------------------------------------

struct late_ahead {
    pthread_t thread;
    size_t count;
    struct late_library *libraries[];
};

static void *load_all(void *argument) {
    const struct late_ahead *ahead = argument;
    thread_name("load", "libraries");
    for (size_t i = 0; i < ahead->count; i++)
        if (late_library_load(ahead->libraries[i], NULL) != STATUS_OK)
            continue; // who needs it tells why
    return NULL;
}

struct late_ahead *late_ahead_begin(struct late_library *const *libraries, size_t count) {
    assert(count > 0);
    size_t size = count * sizeof(struct late_library *);
    struct late_ahead *ahead = memory_take(sizeof *ahead + size);
    ahead->count = count;
    memcpy(ahead->libraries, libraries, size);
    if (pthread_create(&ahead->thread, NULL, load_all, ahead) == 0)
        return ahead;
    memory_give(ahead);
    return NULL; // each is loaded when it is needed
}

void late_ahead_end(struct late_ahead *ahead) {
    if (ahead == NULL)
        return;
    pthread_join(ahead->thread, NULL);
    memory_give(ahead);
}
