// SPDX-License-Identifier: Apache-2.0
// Prefixes that say when and where: of the kernel's own buffer, of syslog and the journal's text
// forms, of runtimes of containers.
//
//   /dev/kmsg            "3,1201,5140900,-;text", also with more fields
//   dmesg                "[ 1234.567890] text", "<3>[…] text" (--raw), "kern  :err   : […] text"
//                        (--decode), "[ 1234.5 <    0.4>] text" (--show-delta)
//   dmesg -T             "[Fri Jan 31 09:15:04 2026] text", with a delta, too
//   dmesg -e             "[Jan31 09:15] text", then "[  +0.499999] text"
//   dmesg, delta         "[<    0.499999>] text": no time
//   dmesg, ISO times     "2026-01-31T09:15:04,123456+00:00 text"
//   thread or processor  "[  T123]", "[ C1]" behind any of these
//   syslog, journalctl   "Jan 31 09:15:04 node kernel: text", months in many languages; ISO times;
//                        "Fri 2026-01-31 09:15:04 UTC node …"; "1769850904.5 node …"; a "<PRI>"
//                        before any; RFC 5424
//   grep, comments       "/var/log/kern.log:12:" and "> " in front of any of these
//   containers           "2026-01-31T09:15:04.5Z stderr F text" (CRI), "2026-01-31T09:15:04.5Z
//                        text" (kubectl --timestamps)
#pragma once

#include "receivers/decode/line/peel.h"

// Takes one prefix off the text; false when there is none in front. O(size of the prefix), but for
// the end of a kmsg record's head and of RFC 5424's structured data, which are looked for in the
// text.
bool transport_peel(struct peel *peel);
// A line that came through another log: takes all in front of its last "node kernel: ", with the
// time before it. O(text).
bool transport_peel_nested(struct peel *peel);
// The date in front of a log library's line, which stays there: the message begins with it.
void transport_program_time(struct peel *peel);
// The same of a message: the time as `zone` has it (NULL: UTC), without a year the latest that is
// at most a day after `observed_ns`. False: it begins with no date that exists.
bool transport_read_program_time(struct slice message, const struct time_zone *zone,
                                 uint64_t observed_ns, uint64_t *time_ns);
// The time that a prefix or an envelope says: a date in any of the forms that log_date.h takes, or
// Unix time in seconds, milliseconds, microseconds or nanoseconds. False: it is neither.
bool transport_set_time(struct peel *peel, struct slice time);
// What is known of the time when all is peeled: Unix time, or why there is none.
void transport_settle_time(struct peel *peel);

struct kmsg_head {
    uint64_t priority, usec;
    bool continues; // '+': the text goes on where the last record's ended
};
// "prio,seq,usec,flags[,…];" of /dev/kmsg.
bool transport_take_kmsg(struct slice *text, struct kmsg_head *head);
// Its text with "\xNN" as the bytes that they stand for.
struct slice transport_unescape(struct slice text, struct arena *arena);
// How often the machine booted between two lines of this end of a log. O(tail).
uint32_t transport_boots_in(struct slice tail);
// When the machine booted, if the last line of `tail` that says how long it had run was written at
// `observed_ns`; 0: no line does.
uint64_t transport_boot_of(struct slice tail, uint64_t observed_ns);
