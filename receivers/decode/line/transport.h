// SPDX-License-Identifier: Apache-2.0
// What a line of a log file says besides the kernel's own words: when, on which host, whether the
// kernel said it.
//
// Taken are, one line a record:
//   /dev/kmsg            "3,1201,5140900,-;text"; continuation lines (" KEY=value") hold no text
//   dmesg                "[ 1234.567890] text", also "[ 1234.567890][  T1] text", "<3>[…] text" and
//                        "kern  :err   : […] text" (--raw, --decode)
//   dmesg -T             "[Fri Jan 31 09:15:04 2026] text"
//   dmesg, ISO times     "2026-01-31T09:15:04,123456+00:00 text"
//   syslog, journalctl   "Jan 31 09:15:04 node kernel: text", with RFC 3339 times or "[ 12.3456]"
//   for
//                        the time, with a "<PRI>" before it; also RFC 5424
// A time without a zone is UTC. Where a syslog line is followed by the time since boot in brackets,
// that is passed over.
#pragma once

#include "base/slice.h"

#include <stdint.h>

struct kernel_record {
    struct slice text;      // what the kernel said; data NULL: nothing
    uint64_t unix_ns;       // 0: not said
    uint64_t since_boot_ns; // where `has_since_boot`
    bool has_since_boot;
    bool has_day_only; // month, day and clock were said, but the year cannot be told
    bool is_foreign;   // another program said it
    struct slice host; // data NULL: not said
};

// `observed_ns`: when the log was read or written, for times without a year; 0: not known. Slices
// point into `line`. Any bytes, no allocation, any thread.
void kernel_record_read(struct slice line, uint64_t observed_ns, struct kernel_record *record);
