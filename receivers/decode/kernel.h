// SPDX-License-Identifier: Apache-2.0
// The decoder of kernel logs: lines of /dev/kmsg, dmesg, syslog and the journal
// (kernel_transport.h, kernel_journal.h), of which those are handed on that NVIDIA's driver
// (kernel_xid.h) or the PCIe error reporting (kernel_aer.h) wrote. All others are DECODE_NOTHING,
// broken forms among them.
//
// The time of a line. A line that says a date has that time. One that says only how long the
// machine had run ("[ 1234.567890]", /dev/kmsg) needs the moment of the boot:
//
// - for a file that is whole, its own time is taken as that of its last line (decoder_input.tail,
//   kernel_log_boot_of). The kernel goes on writing, so this is at worst too late by the silence
//   behind the last line; a copy with another time gives other times.
// - where somebody knows it, kernel_log_set_place says so.
// - else there is no time that could be compared with other inputs, and no guess is made: taking
//   the first line for now would put all others after what they caused. Such a line is refused
//   (DECODE_MISSING_TIMESTAMP, with what to do instead) when a detector would look for it.
//
// A line that says no time at all is refused likewise. A date without a year has the latest year
// that is at most a day after `observed_ns`; without that it is refused.
#pragma once

#include "pipeline/component/decoder.h"

extern const struct decoder_type decoder_kernel_log;

// To be called after `begin`. `boot_ns`: when the machine booted, Unix; 0: not known. `node`: whose
// log it is where the lines do not say; STRING_NONE: not known.
void kernel_log_set_place(void *state, uint64_t boot_ns, string_id node);
// When the machine booted, if the last line of `tail` (the last bytes of a log, of which the first
// line may be cut) that says how long it had run was written at `observed_ns`. False when no line
// says that.
bool kernel_log_boot_of(struct slice tail, uint64_t observed_ns, uint64_t *boot_ns);

// The tagged line {"source": "kmsg", "timestamp_ns": …, "k8s.node.name": …, "message": …}.
// `message` has no prefix of a transport. `state`: KERNEL_STATE_SIZE zeroed bytes.
enum { KERNEL_STATE_SIZE = 32 };
enum decode_category kernel_tagged(void *state, struct slice object, struct arena *arena,
                                   struct event *event, struct decode_fault *fault);
