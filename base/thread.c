// SPDX-License-Identifier: Apache-2.0
#include "base/thread.h"

#include <pthread.h>
#include <stdio.h>

void thread_name(const char *what, const char *of) {
    char name[16];
    snprintf(name, sizeof name, "%.4s %.10s", what, of);
    // A name that cannot be set changes nothing.
    (void)pthread_setname_np(pthread_self(), name);
}
