// SPDX-License-Identifier: Apache-2.0
// What the files of the Kafka exporter share. Encoding happens under the sender's lock, sending on
// its thread; they share nothing but the bytes.
#pragma once

#include "base/log.h"
#include "base/metrics/metrics.h"
#include "base/table/row_index.h"
#include "config/kafka_options.h"
#include "pipeline/component/component.h"

enum kafka_payload { KAFKA_VERDICTS, KAFKA_EVENTS };
enum kafka_key { KAFKA_KEY_JOB, KAFKA_KEY_NONE };

enum {
    KAFKA_SENDER_MAX = 255, // bytes of a sender's name, incarnation included
    KAFKA_HEADERS_MAX = 8,
    KAFKA_FRAME_MAX = 64 << 20,
    KAFKA_RANKS_MAX = 65536,
    KAFKA_SESSIONS_MAX = 64,     // of one rank
    KAFKA_AHEAD_BYTES = 8 << 20, // handed over behind the request that is waited for
    KAFKA_BLOCKS_MAX = 64,
};

extern const char *const kafka_compressions[]; // ended by NULL

struct kafka_exporter_config {
    struct kafka_connection connection;
    const char *topic;
    int payload; // enum kafka_payload
    int key;     // enum kafka_key
    int compression;
    struct duration linger;
    struct byte_size max_message_size;
    const char *sender;
    struct sending_config sending;
};

// -- frames (frame.c): records as they wait in the sender's blocks ------------------------

struct kafka_header {
    struct slice name;
    struct slice value;
};

struct kafka_frame {
    uint64_t sequence; // of its sender, from 1; never 0
    struct slice key;  // data NULL: none
    struct slice value;
    struct kafka_header headers[KAFKA_HEADERS_MAX];
    uint32_t header_count;
};

void kafka_frame_write(const struct kafka_frame *frame, struct buffer *out);
// Takes one frame off the front of `bytes`; false when it is not whole. Slices point into them.
bool kafka_frame_read(struct slice *bytes, struct kafka_frame *frame);
// Likewise, without looking into it.
bool kafka_frame_skip(struct slice *bytes);

// -- first samples and generations (ranks.c) ----------------------------------------------

struct kafka_session {
    uint32_t next;     // row of the next older one, or TABLE_NO_ROW
    string_id session; // STRING_NONE: this row is free
    uint64_t first_ns;
    uint32_t generation; // from 1
};

struct kafka_rank {
    uint32_t reserved; // of free rows the next one
    string_id job;
    int32_t rank; // RANK_NONE: this row is free
    uint32_t newest_session;
    uint32_t session_count;
    uint64_t first_ns; // of all
    uint64_t last_ns;
};

struct kafka_ranks {
    struct table ranks;
    struct table sessions;
    struct row_index index; // of ranks
    uint64_t newest_ns;     // of all samples
    uint64_t looked_ns;     // when room was looked for, in event time
};

extern const struct row_type kafka_rank_rows, kafka_session_rows;

// After a load: sets up what is derived; begins anew when the rows make no sense.
void kafka_ranks_restored(struct kafka_ranks *ranks);
// What goes along with this event; zeros: nothing. `full` is set when there is no room for a rank.
struct carried kafka_ranks_note(struct kafka_ranks *ranks, const struct event *event, bool *full);

// -- the exporter -------------------------------------------------------------------------------

// Kept with the checkpoint.
struct kafka_counter {
    uint64_t sequence;    // of the record that was encoded last
    uint64_t incarnation; // which counting it is: the moment at which it began; 0: not yet
};

enum kafka_fate { KAFKA_WAITING, KAFKA_UNDER_WAY, KAFKA_DELIVERED };

// A request, or one that will be.
struct kafka_block {
    uint32_t number;         // in what order they came; answers name it
    uint64_t first_sequence; // of its records
    size_t size;             // bytes that were looked at
    unsigned char *fates;    // enum kafka_fate, one a record
    uint32_t count;
    uint32_t capacity;
    uint32_t waiting;
    uint32_t under_way;
    uint32_t undelivered; // waiting or under way
    bool alone;           // one record at a time, to find the one that is not taken
};

struct kafka_delivery {
    struct kafka_block blocks[KAFKA_BLOCKS_MAX]; // a ring: the request, and those behind it
    uint32_t first, block_count;
    uint32_t next_number;
    uint32_t under_way;          // records of all
    rd_kafka_resp_err_t failure; // the first one since the attempt began
    bool fatal;
    bool damaged; // one of the frames
};

struct kafka_exporter {
    struct kafka_client client; // opaque of the producer; first
    const struct kafka_library *library;
    const struct kafka_exporter_config *config;
    const char *site;
    struct kafka_counter counter;
    char *sender; // without the incarnation
    char sender_name[KAFKA_SENDER_MAX + 1];
    struct kafka_ranks ranks;
    struct buffer value;     // a verdict line
    rd_kafka_t *producer;    // NULL: to be made
    rd_kafka_topic_t *topic; // of the producer
    struct kafka_delivery delivery;
    char broker_error[256]; // what was said last
    struct metric *undeliverable;
};

void kafka_encode(void *instance, const struct batch *batch, struct buffer *out);

// send.c
enum status kafka_producer_open(struct kafka_exporter *self, struct error *error) MUST_USE;
void kafka_producer_close(struct kafka_exporter *self);
enum status kafka_send(void *instance, const struct request *request, struct send_outcome *outcome,
                       struct error *error);
