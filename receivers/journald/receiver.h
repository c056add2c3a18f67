// SPDX-License-Identifier: Apache-2.0
// What the files of the journald receiver share. All of it is of the thread of `run` or `read`.
#pragma once

#include "base/buffer.h"
#include "base/metrics/metrics.h"
#include "pipeline/component/component.h"
#include "pipeline/component/feed.h"
#include "receivers/journald/cursor.h"
#include "receivers/journald/library.h"
#include "receivers/records/options.h"
#include "receivers/records/sink.h"

enum journald_start { JOURNALD_START_BEGINNING, JOURNALD_START_BOOT, JOURNALD_START_NOW };

struct journald_config {
    const char *directory; // NULL: the system's own journal
    const char *namespace; // NULL: the default one
    bool kernel;
    struct text_list units;
    struct text_list matches;
    int start_at; // enum journald_start
    struct byte_size max_message_size;
    struct record_config records;
};

enum {
    JOURNALD_BLOCK_SIZE = 256 << 10, // bytes of lines that wait for a flush, beside the longest
    JOURNALD_AROUND_MAX = 8 << 10,   // of a line, beside its message
    JOURNALD_NAME_MAX = 256,         // of a host or a program; what is longer is cut
    JOURNALD_PATH_MAX = 4200,
};
#define JOURNALD_RECEIVER_MAGIC UINT32_C(0x6a6f7572)

struct journald_counters {
    struct metric *gaps, *unreadable;
};

struct journald_receiver {
    uint32_t magic;
    const struct journald_config *config;
    const struct component_context *context;
    const struct journal_library *library;
    struct feed *feed; // NULL until run or read
    struct record_sink sink;
    struct source *source;
    char path[JOURNALD_PATH_MAX]; // of the source: "journald:", "journald:/var/log/journal"
    char host[RECORD_NODE_MAX + 1];
    struct journald_counters counters;

    sd_journal *journal; // NULL: closed
    bool known;          // `cursor` is that of the last entry that was read
    struct journal_cursor cursor;
    uint64_t count;    // entries that were read, over restarts: the number of the position
    uint64_t start_us; // where to begin, where nothing is known; 0: the beginning
    bool at_entry;     // the journal stands at an entry that is still to be read
    uint64_t read_ns;  // when the last entry was read; monotonic
    char *block;       // lines that the feed's batch points into
    size_t block_size, used;
    size_t line_max;
    struct buffer line;
};

// source.c: opening, and where to go on.
enum status journald_open(struct journald_receiver *receiver, struct error *error) MUST_USE;
void journald_close(struct journald_receiver *receiver);

// entry.c: the entry that the journal stands at becomes a line in the block; false: it says nothing
// that can be read, or cannot be read.
bool journald_line(struct journald_receiver *receiver, struct slice *line);

// follow.c
enum status journald_run(void *instance, struct feed *feed, struct error *error);
enum status journald_read_once(void *instance, struct feed *feed, struct slice path,
                               struct error *error);
