// SPDX-License-Identifier: Apache-2.0
// What the files of the Kafka exporter share. Encoding happens under the sender's lock, sending on
// its thread; they share nothing but the bytes.
#pragma once

#include "base/log.h"
#include "base/metrics/metrics.h"
#include "config/kafka_options.h"
#include "exporters/forward/event.h"
#include "exporters/forward/ranks.h"
#include "exporters/kafka/nodes.h"
#include "pipeline/component/component.h"

enum kafka_payload { KAFKA_VERDICTS, KAFKA_EVENTS };
enum kafka_key { KAFKA_KEY_JOB, KAFKA_KEY_NONE };

enum {
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
    struct route_config route;
    struct sending_config sending;
};

// -- the exporter -------------------------------------------------------------------------------

enum kafka_fate { KAFKA_WAITING, KAFKA_UNDER_WAY, KAFKA_DELIVERED };

// What has become of a record. It is under way once all of its messages were handed over.
struct kafka_record {
    enum kafka_fate fate;
    uint32_t handed_over; // messages: one, or one for each partition
    uint32_t under_way;   // of them
};

// A request, or one that will be.
struct kafka_block {
    uint32_t number;         // in what order they came; answers name it
    uint64_t first_sequence; // of its records
    size_t size;             // bytes that were looked at
    struct kafka_record *records;
    uint32_t count;
    uint32_t capacity;
    uint32_t waiting;     // records
    uint32_t under_way;   // messages
    uint32_t undelivered; // records: waiting or under way
    bool alone;           // one record at a time, to find the one that is not taken
};

struct kafka_delivery {
    struct kafka_block blocks[KAFKA_BLOCKS_MAX]; // a ring: the request, and those behind it
    uint32_t first, block_count;
    uint32_t next_number;
    uint32_t under_way;          // messages of all
    rd_kafka_resp_err_t failure; // the first one since the attempt began
    bool fatal;
    bool damaged; // one of the frames
};

struct kafka_exporter {
    struct kafka_client client; // opaque of the producer; first
    const struct kafka_library *library;
    const struct kafka_exporter_config *config;
    const char *site;
    struct forward_sender sender;
    struct forward_ranks ranks;
    struct kafka_nodes nodes;
    struct buffer value;      // a verdict line
    rd_kafka_t *producer;     // NULL: to be made
    rd_kafka_topic_t *topic;  // of the producer
    uint32_t partition_count; // of the topic; 0: not known yet
    uint64_t counted_ns;      // when it was asked for, on the monotonic clock
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
