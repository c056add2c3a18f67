// SPDX-License-Identifier: Apache-2.0
// A record that one culprit passes on to another, as bytes: its number, and what travels beside it.
//
// The same frames wait in the blocks of an exporter's sender and are the body of a request of type
// RECORD_FRAMES_TYPE; in Kafka the headers are those of the message. A frame is the size of what
// follows (4 bytes), the number (8), the key (4 bytes of size and its bytes; size 2^32 - 1: none),
// how many headers there are (4), the name and value of each and the value, each with 4 bytes of
// size in front. Numbers are little endian.
#pragma once

#include "base/buffer.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

#define RECORD_FRAMES_TYPE "application/vnd.culprit.events"

// Headers, all of them texts. Numbers are decimal, times Unix nanoseconds.
#define RECORD_SCHEMA       "culprit-schema"
#define RECORD_SENDER       "culprit-sender"
#define RECORD_SEQUENCE     "culprit-sequence"
#define RECORD_FORMAT       "culprit-format"       // decoder of the value
#define RECORD_JOB          "culprit-job"          // of the event
#define RECORD_NODE         "culprit-node"         // of the event
#define RECORD_RANK         "culprit-rank"         // of the event
#define RECORD_TIME         "culprit-time"         // of the event
#define RECORD_OBSERVED     "culprit-observed"     // when it was read, of one without a time
#define RECORD_PATH         "culprit-path"         // of the input that it stood in
#define RECORD_FILE         "culprit-file"         // "1": it was a file of its own
#define RECORD_GENERATION   "culprit-generation"   // of the rank
#define RECORD_FIRST_SAMPLE "culprit-first-sample" // of that generation
// Kafka: how many partitions of the topic, from 0 on, hold this record. In a frame that waits the
// value is empty: it is known when the record is handed over.
#define RECORD_COPIES "culprit-copies"

#define RECORD_EVENT_SCHEMA "culprit.event.v1" // the value of RECORD_SCHEMA for events

enum {
    RECORD_HEADERS_MAX = 16,
    RECORD_FRAME_MAX = 64 << 20,
    RECORD_SENDER_MAX = 255, // bytes of a sender's name
};

struct record_header {
    struct slice name;
    struct slice value;
};

struct record_frame {
    uint64_t sequence; // of its sender, from 1; never 0
    struct slice key;  // data NULL: none
    struct slice value;
    struct record_header headers[RECORD_HEADERS_MAX];
    uint32_t header_count;
};

void record_frame_add(struct record_frame *frame, const char *name, struct slice value);
void record_frame_write(const struct record_frame *frame, struct buffer *out);
// Takes one frame off the front of `bytes`, which may be anything; false, and nothing is taken,
// when it is not whole. Slices point into them.
bool record_frame_read(struct slice *bytes, struct record_frame *frame);
// Likewise, without looking into it.
bool record_frame_skip(struct slice *bytes);
