// SPDX-License-Identifier: Apache-2.0
// What a line of a log says besides its message: when, where, who wrote it.
//
// Prefixes are peeled from the left, in any order, until none is left: terminal colours, what a
// container runtime, kubectl, Ray, srun or torchrun put in front, syslog or the journal, the
// kernel's own. What remains is the message; the date that a program's own log library writes stays
// in it. A line may also be a part of a longer one (a container runtime cuts at 16 KiB) or of a
// record (an export of the journal): it is held until the rest came.
#pragma once

#include "base/arena.h"
#include "pipeline/component/decoder.h"

enum frame_origin {
    ORIGIN_UNKNOWN, // nothing in front tells
    ORIGIN_KERNEL,  // the framing is of a kernel log, or names the kernel
    ORIGIN_PROGRAM, // another program's line of syslog or the journal: never the kernel's words
};

// How grave the writer's logger says that a line is.
enum frame_level { LEVEL_NOT_SAID, LEVEL_BELOW_ERROR, LEVEL_ERROR };

struct forms;

struct frame {
    struct slice message; // data NULL: the line holds none (context of a transport)
    enum frame_origin origin;
    enum frame_level level; // beside the message, in an object that holds it
    struct slice program;   // of syslog or the journal; data NULL: not said
    struct slice raw;  // what was held and makes up the frame; data NULL: it is the line itself
    uint64_t position; // first of the lines that it was made of
    uint32_t lines;    // how many
    bool truncated;    // the input ended inside the line
    // When. Nothing usable is no fault of a line that says nothing of interest.
    uint64_t time_ns;                // Unix; 0: not said, or not usable
    uint64_t slack_ns;               // the true time lies in [time_ns, time_ns + slack_ns)
    enum decode_category time_fault; // DECODE_OK: the time is usable; else why not
    const char *time_detail;         // … in a clause for people, with what to do instead
    bool local_time;                 // … and was written without a zone: it is of the input's
    uint64_t after_ns; // where it has no time: that of the last line before it that has; 0: none
    // The time is that of what carries the line; the programs' own clock is so far ahead of it
    // (two_clocks.h), where that is known.
    bool carried, has_ahead;
    int64_t ahead_ns;
    uint64_t boot_us; // since boot, where the line says only that; else 0
    // For times inside the message: whose they are when they say no zone (NULL: UTC), and when the
    // log was read or written (0: not known).
    const struct time_zone *zone;
    uint64_t observed_ns;
    // Who; data NULL, RANK_NONE, -1: not said.
    struct slice host, pod, namespace, unit_uid, container, address;
    int32_t rank;        // in the job: "[rank3]:", a label of srun, the log's name
    int32_t local_rank;  // "[default3]:", the log's name
    int32_t task;        // Slurm's: a label of srun where the number of ranks is not known
    int32_t cuda_device; // NCCL's, as CUDA counts them in the process
    int64_t pid;         // Ray's
    // Lines with the same key have the same writer, as far as their prefixes tell.
    uint64_t key;
    // The key without "[rank3]:": of programs that put it in front of the first line only.
    uint64_t around;
    bool has_writer;           // some prefix named the writer
    string_id job;             // of a tagged line; STRING_NONE: not said
    const struct forms *forms; // rows that are asked; NULL: those that are built in
    // The beginning of the line that the same writer wrote before this one (before.h).
    struct slice before;
};

// Which forms are tried: all, or those of a log that was named.
enum frame_form { FORM_ANY, FORM_KERNEL, FORM_PROGRAM };

// A frame about which nothing is known, for a message that came without any transport.
void frame_clear(struct frame *frame, struct slice message, uint64_t position);
