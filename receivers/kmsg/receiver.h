// SPDX-License-Identifier: Apache-2.0
// What the files of the kmsg receiver share. All of it is of the thread of `run` or `read`.
#pragma once

#include "base/buffer.h"
#include "base/metrics/metrics.h"
#include "pipeline/component/component.h"
#include "pipeline/component/feed.h"
#include "receivers/kmsg/device.h"
#include "receivers/kmsg/wall_clock.h"
#include "receivers/records/options.h"
#include "receivers/records/sink.h"

enum kmsg_start { KMSG_START_BOOT, KMSG_START_NOW };

struct kmsg_config {
    const char *path;
    int start_at; // enum kmsg_start
    struct record_config records;
};

enum {
    KMSG_BLOCK_SIZE = 256 << 10, // bytes of lines that wait for a flush
    // Of one: each byte of a record as \u0001, and what is around it.
    KMSG_LINE_MAX = 6 * KMSG_RECORD_MAX + 4096,
};
#define KMSG_RECEIVER_MAGIC UINT32_C(0x6b6d7367)

struct kmsg_counters {
    struct metric *lost, *user_records;
};

struct kmsg_receiver {
    uint32_t magic;
    const struct kmsg_config *config;
    const struct component_context *context;
    struct feed *feed; // NULL until run or read
    struct record_sink sink;
    struct source *source;
    struct kmsg_device device;
    struct boot_id boot;
    struct wall_clock wall;
    struct kmsg_counters counters;
    char node[RECORD_NODE_MAX + 1];

    uint64_t next;    // sequence number that is expected; what is below it was read
    bool next_known;  // false: no record was read yet, and none is kept of this boot
    bool skipping;    // what is there is passed over, up to the first time it is drained
    bool woken;       // the next record ended a wait: it is as old as this moment
    bool works;       // since it was opened there was a record, or a wait without a failure
    uint64_t read_ns; // when it was opened, or the last record was read; monotonic
    char *block;      // lines that the feed's batch points into
    size_t used;
    struct buffer line;
    char text[KMSG_RECORD_MAX];
};

// record by record (follow.c)
enum status kmsg_run(void *instance, struct feed *feed, struct error *error);
// Reads what is there, to its end.
enum status kmsg_read_once(void *instance, struct feed *feed, struct slice path,
                           struct error *error);
