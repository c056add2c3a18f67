// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"
#include "base/text/cut.h"
#include "base/text/redact.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { WHOLE_MAX = 2 * ERROR_MESSAGE_MAX };

// Shortened where it is too long; `behind` stays whole as long as the message itself has that room.
static void put_message(struct error *error, char *whole, const char *behind) {
    size_t left = ERROR_MESSAGE_MAX - 1, size = strlen(behind);
    size = size < left / 2 ? size : 0;
    redact_urls(whole, WHOLE_MAX);
    char room[ERROR_MESSAGE_MAX];
    struct slice kept = text_shorten(slice_of(whole), left - size, TEXT_BYTES, room);
    memcpy(error->message, kept.data, kept.size);
    memcpy(error->message + kept.size, behind, size);
    error->message[kept.size + size] = '\0';
}

enum status error_set(struct error *error, enum status status, const char *format, ...) {
    assert(format != NULL);
    if (error == NULL)
        return status;
    error->status = status;
    va_list arguments;
    va_start(arguments, format);
    char whole[WHOLE_MAX];
    vsnprintf(whole, sizeof whole, format, arguments);
    va_end(arguments);
    put_message(error, whole, "");
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
    char whole[WHOLE_MAX], reason[128];
    vsnprintf(whole, sizeof whole, format, arguments);
    va_end(arguments);
    snprintf(reason, sizeof reason, ": %s", strerror(os_error));
    put_message(error, whole, reason);
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
