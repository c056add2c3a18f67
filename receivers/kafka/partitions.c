// SPDX-License-Identifier: Apache-2.0
// The source of each partition, and of each sender within it: one look-up a record, no allocation
// but for what is new.
//
// Partitions are as many as Kafka assigns; senders are bounded by max_senders.
#include "receivers/kafka/receiver.h"

#include "base/hash/hash.h"
#include "base/memory.h"
#include "base/text/cut.h"
#include "pipeline/component/record_frame.h"
#include "receivers/decode/telemetry/telemetry.h"
#include "receivers/records/options.h"

#include <assert.h>
#include <stdio.h>

enum { PATH_MAX_BYTES = 1024 };

static void index_add(struct kafka_index *index, uint64_t hash, void *item) {
    index->items = memory_room(index->items, &index->capacity, index->count, sizeof(void *));
    hash_index_add(&index->by_hash, hash, index->count);
    assert(item != NULL && index->count < index->capacity);
    index->items[index->count++] = item;
}

static void index_release(struct kafka_index *index) {
    for (uint32_t i = 0; i < index->count; i++)
        memory_give(index->items[i]);
    memory_give(index->items);
    hash_index_release(&index->by_hash);
    *index = (struct kafka_index){.count = 0};
}

// -- partitions ---------------------------------------------------------------------------------

static uint64_t partition_hash(const char *topic, int32_t number) {
    return hash_more(hash_slice(slice_of(topic)), &number, sizeof number);
}

static bool is_partition(const struct kafka_partition *partition, const char *topic,
                         int32_t number) {
    return partition->number == number && strcmp(partition->topic, topic) == 0;
}

struct kafka_partition *kafka_partition_find(struct kafka_receiver *receiver, const char *topic,
                                             int32_t number) {
    if (receiver->last != NULL && is_partition(receiver->last, topic, number))
        return receiver->last;
    const struct kafka_index *index = &receiver->partitions;
    uint64_t hash = partition_hash(topic, number);
    uint32_t probe = 0, at;
    while ((at = hash_index_next(&index->by_hash, hash, &probe)) != HASH_INDEX_NONE)
        if (is_partition(index->items[at], topic, number))
            return receiver->last = index->items[at];
    return NULL;
}

// Of a partition, or with a `sender` of one sender in it.
static struct source *open_source(struct kafka_receiver *receiver,
                                  const struct kafka_partition *partition, struct slice sender) {
    char path[PATH_MAX_BYTES];
    int size =
        snprintf(path, sizeof path, "kafka://%s/%d%s%.*s", partition->topic, (int)partition->number,
                 sender.size == 0 ? "" : "/", (int)sender.size, sender.data);
    assert(size > 0 && size < PATH_MAX_BYTES);
    struct source *source = feed_source(receiver->feed, (struct slice){path, (size_t)size});
    record_options_format(source, receiver->decoder, &receiver->sink.known);
    return source;
}

struct kafka_partition *kafka_partition_of(struct kafka_receiver *receiver, const char *topic,
                                           int32_t number) {
    struct kafka_partition *partition = kafka_partition_find(receiver, topic, number);
    if (partition != NULL)
        return partition;
    assert(receiver->feed != NULL && topic[0] != '\0' && number >= 0);
    partition = memory_zero(1, sizeof *partition);
    partition->hash = partition_hash(topic, number);
    partition->topic = memory_copy_text(topic, strlen(topic));
    partition->number = number;
    partition->next = -1;
    partition->source = open_source(receiver, partition, SLICE(""));
    partition->passed = partition->last = -1;
    struct source_position restored = feed_source_restored(partition->source);
    if (restored.number > 0) {
        partition->next = (int64_t)restored.number;
        partition->last = (int64_t)restored.detail[KAFKA_DETAIL_LAST];
        partition->time_ms = (int64_t)restored.detail[KAFKA_DETAIL_TIME];
        partition->mark = restored.detail[KAFKA_DETAIL_MARK];
    }
    index_add(&receiver->partitions, partition->hash, partition);
    return partition;
}

struct kafka_partition *kafka_partition_next(const struct kafka_receiver *receiver, uint32_t *at) {
    return *at < receiver->partitions.count ? receiver->partitions.items[(*at)++] : NULL;
}

void kafka_partition_restart(struct kafka_receiver *receiver, struct kafka_partition *partition) {
    assert(partition->assigned);
    kafka_flush(receiver);
    feed_source_forget(receiver->feed, partition->source);
    partition->source = open_source(receiver, partition, SLICE(""));
    partition->next = partition->last = partition->passed = -1;
    partition->mark = 0;
    partition->time_ms = 0;
    partition->proving = partition->made_anew = false;
    partition->asked = partition->accepted = 0;
    kafka_partition_has_gap(partition);
}

void kafka_partition_has_gap(struct kafka_partition *partition) {
    for (struct kafka_sender *sender = partition->first_sender; sender != NULL;
         sender = sender->next_of_partition)
        sender->begin = 0;
}

void kafka_partition_leave(struct kafka_receiver *receiver, struct kafka_partition *partition) {
    feed_source_leave(receiver->feed, partition->source);
    for (struct kafka_sender *sender = partition->first_sender; sender != NULL;
         sender = sender->next_of_partition)
        feed_source_leave(receiver->feed, sender->source);
}

// Behind the last record may stand what is none: the marks that end transactions, and records of
// those that were given up.
static void pass_end(struct kafka_partition *partition) {
    int64_t end = partition->passed;
    partition->passed = -1;
    partition->proving = partition->unresolved = partition->behind = false;
    if (!partition->assigned || end <= 0 || end <= partition->next)
        return;
    partition->next = end;
    struct source_position position = {
        .number = (uint64_t)end,
        .detail = {[KAFKA_DETAIL_LAST] = (uint64_t)partition->last,
                   [KAFKA_DETAIL_TIME] = (uint64_t)partition->time_ms,
                   [KAFKA_DETAIL_MARK] = partition->mark}};
    feed_source_reached(partition->source, &position);
}

void kafka_partitions_pass_ends(struct kafka_receiver *receiver) {
    assert(receiver->handled == receiver->held_count);
    uint32_t at = 0;
    for (struct kafka_partition *partition;
         (partition = kafka_partition_next(receiver, &at)) != NULL;) {
        if (partition->passed < 0 || partition->made_anew)
            continue;
        pass_end(partition);
        feed_source_caught_up(receiver->feed, partition->source);
        for (struct kafka_sender *sender = partition->first_sender; sender != NULL;
             sender = sender->next_of_partition)
            feed_source_caught_up(receiver->feed, sender->source);
    }
}

// -- senders ------------------------------------------------------------------------------------

static uint64_t sender_hash(const struct kafka_partition *partition, struct slice name) {
    return hash_more(partition->hash, name.data, name.size);
}

static struct kafka_sender *find_sender(const struct kafka_index *index,
                                        const struct kafka_partition *partition, struct slice name,
                                        uint64_t hash) {
    assert(partition != NULL);
    uint32_t probe = 0, at;
    while ((at = hash_index_next(&index->by_hash, hash, &probe)) != HASH_INDEX_NONE) {
        struct kafka_sender *sender = index->items[at];
        if (sender->partition == partition &&
            slice_equal((struct slice){sender->name, sender->size}, name))
            return sender;
    }
    return NULL;
}

// Into the ring of its name.
static void join_others(struct kafka_receiver *receiver, struct kafka_sender *sender) {
    struct slice name = {sender->name, sender->size};
    uint32_t at = 0;
    sender->next_of_name = sender;
    for (struct kafka_partition *partition;
         (partition = kafka_partition_next(receiver, &at)) != NULL;) {
        if (partition == sender->partition ||
            strcmp(partition->topic, sender->partition->topic) != 0)
            continue;
        struct kafka_sender *other =
            find_sender(&receiver->senders, partition, name, sender_hash(partition, name));
        if (other == NULL)
            continue;
        sender->next_of_name = other->next_of_name;
        other->next_of_name = sender;
        return;
    }
}

// A partition with copies has all of them, in order: what it gave without a gap holds each copy
// with a number in between.
bool kafka_sender_has_copy(const struct kafka_sender *sender, uint64_t sequence, uint32_t copies) {
    assert(sequence > 0);
    for (const struct kafka_sender *other = sender->next_of_name; other != sender;
         other = other->next_of_name)
        if ((uint32_t)other->partition->number < copies && other->begin != 0 &&
            other->begin <= sequence && sequence <= other->sequence)
            return true;
    return false;
}

static void say_full(struct kafka_receiver *receiver) {
    if (receiver->said_senders)
        return;
    receiver->said_senders = true;
    feed_note(receiver->feed, (struct slice){0},
              "more than %lld senders were seen (max_senders): records of further ones are taken, "
              "but repeats among them are not told",
              (long long)receiver->config->max_senders);
}

struct kafka_sender *kafka_sender_of(struct kafka_receiver *receiver,
                                     struct kafka_partition *partition, struct slice name) {
    assert(name.size > 0 && name.size <= RECORD_SENDER_MAX);
    uint64_t hash = sender_hash(partition, name);
    struct kafka_sender *sender = find_sender(&receiver->senders, partition, name, hash);
    if (sender != NULL)
        return sender;
    if (receiver->senders.count >= receiver->config->max_senders) {
        say_full(receiver);
        return NULL;
    }
    sender = memory_zero(1, sizeof *sender + name.size);
    sender->partition = partition;
    sender->source = open_source(receiver, partition, name);
    struct source_position restored = feed_source_restored(sender->source);
    sender->sequence = restored.number;
    sender->begin = restored.detail[KAFKA_DETAIL_BEGIN];
    sender->size = (uint32_t)name.size;
    memcpy(sender->name, name.data, name.size);
    sender->next_of_partition = partition->first_sender;
    partition->first_sender = sender;
    join_others(receiver, sender);
    index_add(&receiver->senders, hash, sender);
    return sender;
}

// -- what the checkpoint knew
// -------------------------------------------------------------------------

// "kafka://TOPIC/PARTITION", with or without "/SENDER": size 0.
static bool read_path(struct slice path, char topic[PATH_MAX_BYTES], int32_t *number,
                      struct slice *sender) {
    uint64_t read;
    if (!text_skip(&path, SLICE("kafka://")))
        return false;
    struct slice name = text_until(path, '/'); // no topic has one
    path = text_from(path, name.size);
    if (name.size == 0 || name.size >= PATH_MAX_BYTES || !text_skip_char(&path, '/') ||
        !text_take_number(&path, 1, 10, &read) || read > INT32_MAX)
        return false;
    snprintf(topic, PATH_MAX_BYTES, "%.*s", (int)name.size, name.data);
    *number = (int32_t)read;
    *sender = text_skip_char(&path, '/') ? path : (struct slice){NULL, 0};
    return true;
}

// Its sender is known from now on: a partition that comes first may bring what another one brought
// before. NULL: the path is none of Kafka's.
static struct kafka_partition *take_up(struct kafka_receiver *receiver, struct slice path) {
    char topic[PATH_MAX_BYTES];
    int32_t number;
    struct slice sender;
    if (!read_path(path, topic, &number, &sender))
        return NULL;
    struct kafka_partition *partition = kafka_partition_of(receiver, topic, number);
    if (sender.size > 0 && sender.size <= RECORD_SENDER_MAX)
        (void)kafka_sender_of(receiver, partition, sender);
    return partition;
}

void kafka_take_up_restored(struct kafka_receiver *receiver) {
    struct source *source;
    assert(receiver->feed != NULL);
    for (uint32_t i = 0; (source = feed_restored_source(receiver->feed, i)) != NULL; i++) {
        struct kafka_partition *partition = take_up(receiver, feed_source_path(source));
        if (partition != NULL && !partition->assigned)
            kafka_partition_leave(receiver, partition);
        else if (partition == NULL)
            feed_source_leave(receiver->feed, source);
    }
}

void kafka_partitions_release(struct kafka_receiver *receiver) {
    struct kafka_partition *partition;
    for (uint32_t at = 0; (partition = kafka_partition_next(receiver, &at)) != NULL;)
        memory_give(partition->topic);
    index_release(&receiver->partitions);
    index_release(&receiver->senders);
    receiver->last = NULL;
}
