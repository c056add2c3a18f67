// SPDX-License-Identifier: Apache-2.0
// One record as a read of /dev/kmsg gives it:
//
//     PRIORITY,SEQUENCE,USEC,FLAGS[,MORE];TEXT\n KEY=VALUE\n …
//
// The priority is facility * 8 + level; bytes of the text that are not printable ASCII, and the
// backslash, stand as \xNN. A flag `c` or `+` says that the record is a part of a line; since Linux
// 4.10 parts that the kernel could not join are records for good, with others between them, so each
// is read by itself. Source: Linux, Documentation/ABI/testing/dev-kmsg.
#pragma once

#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

struct kmsg_record {
    uint32_t facility; // 0: the kernel's own; who writes into the device never gets that one
    uint32_t level;    // 0 (emergency) to 7 (debug)
    uint64_t sequence; // rises by one with every record since boot
    uint64_t usec;     // of the kernel's local clock, which stands still in suspend
    struct slice text; // with its escapes; empty: there is none
};

// False: it is no such record. The text lies in `bytes`. Any bytes; O(size).
bool kmsg_record_parse(struct slice bytes, struct kmsg_record *record);
// The text without escapes, into `out`, which has room for text.size bytes; returns the size. What
// looks like an escape and is none stays as it is.
size_t kmsg_unescape(struct slice text, char *out);
