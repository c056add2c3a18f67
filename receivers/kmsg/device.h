// SPDX-License-Identifier: Apache-2.0
// The device, or what stands in for it: a source of which each read gives one whole record, and
// that can be waited for.
//
// /dev/kmsg is a character device; each descriptor begins at the oldest record that the kernel
// still has. A Unix socket of the type SOCK_SEQPACKET is connected to: a program that gives each
// connection the records from the oldest on does the same (a hypervisor, a test).
#pragma once

#include "base/slice.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

// Linux gives at most 8 KiB (CONSOLE_EXT_LOG_MAX); what is longer is EINVAL.
enum { KMSG_RECORD_MAX = 16 << 10 };

enum kmsg_read {
    KMSG_RECORD,
    KMSG_DRAINED, // nothing more for now
    KMSG_LOST,    // records were overwritten, or one was too long: read on
    KMSG_FAILED,  // `error` says why: close it, and try again later
};

struct kmsg_device {
    int descriptor; // -1: closed
    bool is_socket;
    uint32_t lost_in_turn; // answers that were KMSG_LOST since the last record
    char record[KMSG_RECORD_MAX];
};

// Does not block. A missing right is told with what grants it.
enum status kmsg_device_open(struct kmsg_device *device, const char *path,
                             struct error *error) MUST_USE;
void kmsg_device_close(struct kmsg_device *device); // also when it is closed
// Never blocks. The record lies in the device until the next call.
enum kmsg_read kmsg_device_read(struct kmsg_device *device, struct slice *record,
                                struct error *error) MUST_USE;
// Waits until there is a record (true), `stop_descriptor` is readable or the time is over.
bool kmsg_device_wait(const struct kmsg_device *device, int stop_descriptor, int timeout_ms);
