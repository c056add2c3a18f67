// SPDX-License-Identifier: Apache-2.0
// How a function says that it failed, and what a person is told about it.
//
// A fallible function returns enum status and fills a struct error that lives on its caller's
// stack. The message is a complete sentence: what is wrong with which value, and what would be
// right. Our own mistakes are not statuses; they are assertions, which stay on in release.
#pragma once

#include <stdarg.h>
#include <stddef.h>

enum status {
    STATUS_OK = 0,
    STATUS_USAGE,         // the command line is wrong
    STATUS_CONFIG,        // the configuration is wrong
    STATUS_BAD_DATA,      // the input is not what it should be
    STATUS_NOT_FOUND,     // nothing there
    STATUS_DENIED,        // no permission
    STATUS_CANNOT_CREATE, // an output cannot be made
    STATUS_IO,            // reading or writing failed; trying again may help
    STATUS_AGAIN,         // not done yet, and kept: the next start goes on with it
    STATUS_OS,            // the system refused something else (threads, descriptors)
    STATUS_LIMIT,         // a bound was reached
    STATUS_STOPPED,       // asked to stop
    STATUS_DIFFERS,       // a comparison came out unequal
    STATUS_BUG,           // should not happen
};

enum { ERROR_MESSAGE_MAX = 1024 };

// What a person is told. Empty message when no error was set.
struct error {
    enum status status;
    char message[ERROR_MESSAGE_MAX];
};

#define MUST_USE                         __attribute__((warn_unused_result))
#define PRINTF_LIKE(format_at, first_at) __attribute__((format(printf, format_at, first_at)))

// Fills `error` (which may be NULL) and returns `status`, so that a function can end with it.
enum status error_set(struct error *error, enum status status, const char *format, ...)
    PRINTF_LIKE(3, 4);

// Like error_set; appends ": " and the text of the errno value `os_error`. The status is chosen
// from the errno: ENOENT gives NOT_FOUND, EACCES and EPERM give DENIED, the rest `status`.
enum status error_set_os(struct error *error, enum status status, int os_error, const char *format,
                         ...) PRINTF_LIKE(4, 5);

// The process exit code that stands for `status` (sysexits.h numbers, see `culprit help`).
int status_exit_code(enum status status);
