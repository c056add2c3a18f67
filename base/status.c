// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"
#include "base/text/redact.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum status error_set(struct error *error, enum status status, const char *format, ...) {
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
    switch (status) {
    case STATUS_OK:
    case STATUS_STOPPED:
        return 0;
    case STATUS_DIFFERS:
        return 1;
    case STATUS_USAGE:
        return 64;
    case STATUS_BAD_DATA:
    case STATUS_LIMIT:
        return 65;
    case STATUS_NOT_FOUND:
        return 66;
    case STATUS_BUG:
        return 70;
    case STATUS_OS:
        return 71;
    case STATUS_CANNOT_CREATE:
        return 73;
    case STATUS_IO:
        return 74;
    case STATUS_AGAIN:
        return 75;
    case STATUS_DENIED:
        return 77;
    case STATUS_CONFIG:
        return 78;
    }
    return 70;
}
