// SPDX-License-Identifier: Apache-2.0
// What the files of the Kafka receiver share. Everything happens on the thread of `run`, but for
// start and stop, which come before and after it.
#pragma once

#include "base/hash/hash_index.h"
#include "base/log.h"
#include "base/metrics/metrics.h"
#include "config/kafka_options.h"
#include "pipeline/component/component.h"
#include "pipeline/component/feed.h"
#include "receivers/records/options.h"
#include "receivers/records/sink.h"

#include <assert.h>
#include <stdatomic.h>

enum {
    KAFKA_BATCH_MESSAGES = 1024, // taken from librdkafka's queue before they are handed over …
    KAFKA_BATCH_BYTES = 4 << 20, // … or this many bytes
    KAFKA_HELD_MAX = KAFKA_BATCH_MESSAGES + 256,
    KAFKA_POLL_MS = 100,
};

enum kafka_start { KAFKA_START_EARLIEST, KAFKA_START_LATEST };
extern const char *const kafka_strategy_choices[];
extern const char *const kafka_isolation_choices[];

struct dead_letter_config {
    const char *topic;
};

struct kafka_config {
    struct kafka_connection connection;
    struct text_list topics;
    const char *group_id;
    const char *group_instance_id;
    int initial_offset; // enum kafka_start
    struct duration session_timeout;
    struct duration heartbeat_interval;
    struct duration max_poll_interval;
    int group_rebalance_strategy;
    int isolation_level;
    struct byte_size min_fetch_size;
    struct duration max_fetch_wait;
    struct byte_size max_partition_fetch_size;
    struct byte_size queue_size;
    struct byte_size max_record_size;
    struct record_config records;
    struct duration rewind;
    int64_t max_senders;
    struct dead_letter_config dead_letter;
};

// -- partitions and senders (partitions.c) ------------------------------------------------------

// One partition of a topic, kept when it goes to somebody else: it may come back.
struct kafka_partition {
    uint64_t hash;
    char *topic;
    int32_t number;
    bool assigned;
    bool unresolved;   // librdkafka itself looks for the committed offset
    bool behind;       // has not reached what was there when it was assigned
    bool proving;      // the record that was read last is fetched again, to see whether it is there
    bool made_anew;    // it is another one, or is not there …
    bool out_of_range; // where it stands is not there; see kafka_mend_range
    struct source *source;
    int64_t next;      // offset of the next record; below it all is done; -1: not known yet
    int64_t end;       // of what was there when it was assigned; -1: not known yet
    int64_t passed;    // what was fetched ends here, with all that is no record; -1: told the feed
    int64_t last;      // offset of the record that was handed over last; -1: not known
    uint64_t mark;     // of that record: kafka_mark_of; 0: not known
    int64_t time_ms;   // of the newest record that was handed over; 0: none
    uint64_t even_ns;  // when it was seen last that nothing is behind; 0: not yet
    uint64_t asked;    // offset that was committed last, or is under way
    uint64_t accepted; // offset that the group holds
    struct kafka_sender *first_sender;
};

// What stands in positions: of a partition the last record, the newest time and the last record's
// mark; of a sender its `begin`, too.
enum { KAFKA_DETAIL_LAST, KAFKA_DETAIL_TIME, KAFKA_DETAIL_BEGIN, KAFKA_DETAIL_MARK };

// One sender within one partition.
struct kafka_sender {
    const struct kafka_partition *partition;
    struct source *source;
    uint64_t sequence; // the highest that was handed over
    uint64_t begin;    // all that the partition has of it from this number to `sequence` was read;
                       // 0: not known
    struct kafka_sender *next_of_partition;
    struct kafka_sender *next_of_name; // a ring: the same sender in other partitions
    uint32_t size;
    char name[];
};

// Items of one kind in the order in which they came, found by a hash.
struct kafka_index {
    void **items; // struct kafka_partition or struct kafka_sender
    uint32_t count;
    uint32_t capacity;
    struct hash_index by_hash;
};

// -- the receiver -------------------------------------------------------------------------------

// A decoder's memory for looking at a record before it is offered.
struct kafka_trial {
    void *state;
    struct arena arena;
};

struct kafka_dead_letter {
    struct kafka_client client; // opaque of the producer
    rd_kafka_t *producer;       // NULL: not made yet
    bool answered;
    rd_kafka_resp_err_t answer;
};

// What keeps the receiver from working, so that it is said once and taken back.
enum kafka_trouble { KAFKA_WELL, KAFKA_NO_BROKER, KAFKA_REFUSED, KAFKA_UNDELIVERED };

struct kafka_counters {
    struct metric *repeated, *empty, *dead_letters, *dead_letters_failed;
};

struct kafka_receiver {
    struct kafka_client client; // the receiver is the consumer's opaque: this comes first
    const struct kafka_library *library;
    const struct kafka_config *config;
    const struct component_context *context;
    struct feed *feed;
    bool started;
    bool first; // not a further copy: counts, quarantines and notes
    const struct decoder_type *decoder;
    char *group;
    struct kafka_trial trial;
    struct kafka_dead_letter dead_letter;
    struct record_sink sink;
    bool held_refused; // records of the message at hand, after they had been held

    rd_kafka_t *consumer;
    rd_kafka_queue_t *queue; // the consumer's; NULL without one
    uint64_t renew_at_ns;    // when the consumer is made anew; 0: it is there
    uint64_t renew_wait_ns;
    bool fatal;   // the consumer cannot go on
    bool closing; // callbacks only let go
    atomic_bool paused;
    bool rebalanced; // since the last look at whether it has caught up
    bool others_left;
    uint64_t since_ms;                        // Unix time of its first assignment; 0: none yet
    rd_kafka_message_t *held[KAFKA_HELD_MAX]; // those before `handled` are in the feed's batch
    uint32_t held_count;
    uint32_t handled;
    size_t held_bytes;
    size_t largest;         // bytes of the largest message that was taken last
    bool stops_for_long;    // fetching, when the queue is full: see wake_fetching
    uint64_t unwoken;       // bytes that were taken since it was woken
    uint32_t unwoken_count; // messages

    struct kafka_index partitions;
    struct kafka_index senders;
    bool said_senders;
    struct kafka_partition *last; // that was looked up
    uint64_t tended_ns;
    uint64_t probed_ns;
    char doubt[256]; // the last error since a broker answered a probe; "" for none
    enum kafka_trouble trouble;
    struct kafka_counters counters;
};

// The receiver whose consumer calls back.
static inline struct kafka_receiver *kafka_receiver_of(void *opaque) {
    struct kafka_receiver *receiver = opaque;
    assert(receiver != NULL && receiver->client.magic == KAFKA_CLIENT_MAGIC);
    return receiver;
}

static inline struct log_site kafka_site(const struct kafka_receiver *receiver, const char *code) {
    return (struct log_site){code, receiver->context->site};
}

// consumer.c: the consumer itself.
enum status kafka_consumer_open(struct kafka_receiver *receiver, struct error *error) MUST_USE;
// From now on callbacks come, which need the feed.
enum status kafka_consumer_join(struct kafka_receiver *receiver, struct error *error) MUST_USE;
// After a fatal error: closes it, and opens another one when it is time.
void kafka_consumer_renew(struct kafka_receiver *receiver);
// Leaves the group, unless membership is static; waits up to `budget_ns` for that.
void kafka_consumer_close(struct kafka_receiver *receiver, uint64_t budget_ns);
void kafka_pause(struct kafka_receiver *receiver, bool paused);
// Takes messages of the queue into `held`; waits for one, and without a timeout takes some that are
// there. False when there is none, or an error among them (errors are seen to).
bool kafka_take(struct kafka_receiver *receiver, int timeout_ms);
// Hands the batch over and lets go of the messages that were handled.
void kafka_flush(struct kafka_receiver *receiver);
void kafka_say_trouble(struct kafka_receiver *receiver, enum kafka_trouble trouble,
                       const char *format, ...) PRINTF_LIKE(3, 4);
void kafka_end_trouble(struct kafka_receiver *receiver, enum kafka_trouble trouble);

// assignment.c: which partitions, from where, and how far they are done.
void kafka_rebalance(rd_kafka_t *consumer, rd_kafka_resp_err_t event,
                     rd_kafka_topic_partition_list_t *partitions, void *opaque);
void kafka_committed(rd_kafka_t *consumer, rd_kafka_resp_err_t failure,
                     rd_kafka_topic_partition_list_t *offsets, void *opaque);
void kafka_commit(struct kafka_receiver *receiver);
// Partitions whose offset, or the record before it, is not there go on where there are records.
void kafka_mend_range(struct kafka_receiver *receiver);
// Tells the feed when all partitions have reached what was there at their assignment.
void kafka_look_whether_caught_up(struct kafka_receiver *receiver);
// From now on partitions without an offset are new: `latest` does not skip what is in them.
void kafka_begin_counting(struct kafka_receiver *receiver);
void kafka_show_lag(struct kafka_receiver *receiver);
void kafka_hide_lag(struct kafka_receiver *receiver, const struct kafka_partition *partition);

// partitions.c
struct kafka_partition *kafka_partition_of(struct kafka_receiver *receiver, const char *topic,
                                           int32_t number);
// The one that is known, or NULL.
struct kafka_partition *kafka_partition_find(struct kafka_receiver *receiver, const char *topic,
                                             int32_t number);
// NULL beyond max_senders.
struct kafka_sender *kafka_sender_of(struct kafka_receiver *receiver,
                                     struct kafka_partition *partition, struct slice name);
// Whether a record that lies in `copies` partitions, from 0 on, came by another one of them.
bool kafka_sender_has_copy(const struct kafka_sender *sender, uint64_t sequence, uint32_t copies);
// Records of the partition are gone that were not read.
void kafka_partition_has_gap(struct kafka_partition *partition);
// The partition begins anew: its source forgets how far it was.
void kafka_partition_restart(struct kafka_receiver *receiver, struct kafka_partition *partition);
// Partitions of which nothing more is there are done up to their end, once all that was fetched has
// been offered, and the feed is told.
void kafka_partitions_pass_ends(struct kafka_receiver *receiver);
void kafka_partition_leave(struct kafka_receiver *receiver, struct kafka_partition *partition);
// Senders that the checkpoint knew are known; those of partitions that are not assigned hold
// nothing back.
void kafka_take_up_restored(struct kafka_receiver *receiver);
struct kafka_partition *kafka_partition_next(const struct kafka_receiver *receiver,
                                             uint32_t *at); // NULL at the end
void kafka_partitions_release(struct kafka_receiver *receiver);

// records.c: one message. False: it is not to be handled now (stopping, or no longer ours).
bool kafka_handle(struct kafka_receiver *receiver, const rd_kafka_message_t *message);
// Tells one record of a partition from another with the same offset; never 0.
uint64_t kafka_mark_of(const struct kafka_receiver *receiver, const rd_kafka_message_t *message);
// For feed_on_refusal: the message at hand is kept as a whole.
void kafka_held_refused(void *context, const struct source *source, struct slice record,
                        uint64_t position, const struct decode_fault *fault);

// dead_letter.c: waits until the brokers have it. False: not to be handled now.
bool kafka_dead_letter_send(struct kafka_receiver *receiver, const rd_kafka_message_t *message,
                            const struct kafka_partition *partition);
void kafka_dead_letter_close(struct kafka_receiver *receiver);

// run.c
enum status kafka_run(void *instance, struct feed *feed, struct error *error);
