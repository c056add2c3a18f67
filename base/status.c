// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"
#include "base/text/redact.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum status error_set(struct error *error, enum status status, const char *format, ...) {
    assert(format != NULL);
    if (error == NULL)
        return status;
    error->status = status;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
    redact_urls(error->message, sizeof error->message);
    return status;
}

static enum status status_of_errno(int os_error, enum status otherwise) {
    switch (os_error) {
    case ENOENT:
    case ENOTDIR:
        return STATUS_NOT_FOUND;
    case EACCES:
    case EPERM:
        return STATUS_DENIED;
    default:
        return otherwise;
    }
}

enum status error_set_os(struct error *error, enum status status, int os_error, const char *format,
                         ...) {
    assert(status != STATUS_OK);
    status = status_of_errno(os_error, status);
    if (error == NULL)
        return status;
    error->status = status;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
    size_t used = length < 0 ? 0 : (size_t)length;
    if (used < sizeof error->message)
        snprintf(error->message + used, sizeof error->message - used, ": %s", strerror(os_error));
    redact_urls(error->message, sizeof error->message);
    return status;
}

int status_exit_code(enum status status) {
    static const unsigned char CODES[] = {
        [STATUS_OK] = 0,         [STATUS_STOPPED] = 0,
        [STATUS_DIFFERS] = 1,    [STATUS_USAGE] = 64,
        [STATUS_BAD_DATA] = 65,  [STATUS_LIMIT] = 65,
        [STATUS_NOT_FOUND] = 66, [STATUS_BUG] = 70,
        [STATUS_OS] = 71,        [STATUS_CANNOT_CREATE] = 73,
        [STATUS_IO] = 74,        [STATUS_AGAIN] = 75,
        [STATUS_DENIED] = 77,    [STATUS_CONFIG] = 78,
    };
    assert(status <= STATUS_BUG);
    return CODES[status];
}
