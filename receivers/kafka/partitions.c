// SPDX-License-Identifier: Apache-2.0
// Which source is this partition, and this sender within it?
//
// Two hash tables with open addressing: one lookup a record, no allocation but for what is new.
// Partitions are as many as Kafka assigns; senders are bounded by max_senders.
#include "receivers/kafka/receiver.h"

#include "base/clock.h"
#include "base/hash/hash.h"
#include "base/memory.h"
#include "receivers/decode/telemetry/telemetry.h"

#include <stdio.h>
#include <stdlib.h>

enum { FIRST_SLOTS = 64, PATH_MAX_BYTES = 1024 };

static uint64_t hash_end(uint64_t hash) {
    hash ^= hash >> 32;
    return hash * UINT64_C(0x9e3779b97f4a7c15);
}

static void place(struct kafka_index *index, uint64_t *entry) {
    uint32_t at = (uint32_t)(*entry >> 32) & (index->size - 1);
    while (index->slots[at] != NULL)
        at = (at + 1) & (index->size - 1);
    index->slots[at] = entry;
}

static void index_add(struct kafka_index *index, uint64_t *entry) {
    if ((uint64_t)(index->count + 1) * 2 > index->size) {
        struct kafka_index larger = {.size = index->size == 0 ? FIRST_SLOTS : index->size * 2};
        larger.slots = memory_zero(larger.size, sizeof *larger.slots);
        for (uint32_t i = 0; i < index->size; i++)
            if (index->slots[i] != NULL)
                place(&larger, index->slots[i]);
        larger.count = index->count;
        memory_give(index->slots);
        *index = larger;
    }
    place(index, entry);
    index->count++;
}

// -- partitions ---------------------------------------------------------------------------------

static uint64_t partition_hash(const char *topic, int32_t number) {
    uint64_t hash = hash_slice(slice_of(topic));
    return hash_end(hash_more(hash, &number, sizeof number));
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
    uint32_t mask = index->size - 1;
    for (uint32_t at = (uint32_t)(hash >> 32); index->size > 0; at++) {
        struct kafka_partition *partition = (struct kafka_partition *)index->slots[at & mask];
        if (partition == NULL)
            break;
        if (partition->hash == hash && is_partition(partition, topic, number)) {
            receiver->last = partition;
            return partition;
        }
    }
    return NULL;
}

static struct source *open_source(struct kafka_receiver *receiver, struct slice path) {
    struct source *source = feed_source(receiver->feed, path);
    if (feed_source_decoder(source) == NULL)
        feed_source_format(source, receiver->decoder,
                           &(struct decoder_input){.observed_ns = clock_unix_ns()});
    return source;
}

static struct source *partition_source(struct kafka_receiver *receiver,
                                       const struct kafka_partition *partition) {
    char path[PATH_MAX_BYTES];
    int size =
        snprintf(path, sizeof path, "kafka://%s/%d", partition->topic, (int)partition->number);
    return open_source(receiver, (struct slice){path, (size_t)size});
}

struct kafka_partition *kafka_partition_of(struct kafka_receiver *receiver, const char *topic,
                                           int32_t number) {
    struct kafka_partition *partition = kafka_partition_find(receiver, topic, number);
    if (partition != NULL)
        return partition;
    partition = memory_zero(1, sizeof *partition);
    partition->hash = partition_hash(topic, number);
    partition->topic = memory_copy_text(topic, strlen(topic));
    partition->number = number;
    partition->next = -1;
    partition->source = partition_source(receiver, partition);
    uint64_t restored = feed_source_restored(partition->source).number;
    if (restored > 0)
        partition->next = (int64_t)restored;
    index_add(&receiver->partitions, &partition->hash);
    return partition;
}

struct kafka_partition *kafka_partition_next(const struct kafka_receiver *receiver, uint32_t *at) {
    const struct kafka_index *index = &receiver->partitions;
    while (*at < index->size) {
        uint64_t *entry = index->slots[(*at)++];
        if (entry != NULL)
            return (struct kafka_partition *)entry;
    }
    return NULL;
}

void kafka_partition_restart(struct kafka_receiver *receiver, struct kafka_partition *partition) {
    kafka_flush(receiver);
    feed_source_forget(receiver->feed, partition->source);
    partition->source = partition_source(receiver, partition);
    partition->next = -1;
    partition->asked = partition->accepted = 0;
}

void kafka_partition_leave(struct kafka_receiver *receiver, struct kafka_partition *partition) {
    feed_source_leave(receiver->feed, partition->source);
    for (struct kafka_sender *sender = partition->first_sender; sender != NULL;
         sender = sender->next_of_partition)
        feed_source_leave(receiver->feed, sender->source);
}

// Of "kafka://TOPIC/PARTITION" with or without "/SENDER".
static bool path_is_assigned(struct kafka_receiver *receiver, struct slice path) {
    char text[PATH_MAX_BYTES];
    static const struct slice scheme = {"kafka://", 8};
    if (path.size < scheme.size || path.size >= sizeof text ||
        memcmp(path.data, scheme.data, scheme.size) != 0)
        return false;
    memcpy(text, path.data + scheme.size, path.size - scheme.size);
    text[path.size - scheme.size] = '\0';
    char *slash = strchr(text, '/'); // no topic has one
    if (slash == NULL)
        return false;
    *slash = '\0';
    long number = strtol(slash + 1, NULL, 10);
    const struct kafka_partition *partition = kafka_partition_find(receiver, text, (int32_t)number);
    return partition != NULL && partition->assigned;
}

void kafka_leave_others(struct kafka_receiver *receiver) {
    struct source *source;
    for (uint32_t i = 0; (source = feed_restored_source(receiver->feed, i)) != NULL; i++)
        if (!path_is_assigned(receiver, feed_source_path(source)))
            feed_source_leave(receiver->feed, source);
}

// -- senders ------------------------------------------------------------------------------------

static uint64_t sender_hash(const struct kafka_partition *partition, struct slice name) {
    return hash_end(hash_more(partition->hash, name.data, name.size));
}

static struct kafka_sender *find_sender(const struct kafka_receiver *receiver,
                                        const struct kafka_partition *partition, struct slice name,
                                        uint64_t hash) {
    const struct kafka_index *index = &receiver->senders;
    uint32_t mask = index->size - 1;
    for (uint32_t at = (uint32_t)(hash >> 32); index->size > 0; at++) {
        struct kafka_sender *sender = (struct kafka_sender *)index->slots[at & mask];
        if (sender == NULL)
            break;
        if (sender->hash == hash && sender->partition == partition &&
            slice_equal((struct slice){sender->name, sender->size}, name))
            return sender;
    }
    return NULL;
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
    uint64_t hash = sender_hash(partition, name);
    struct kafka_sender *sender = find_sender(receiver, partition, name, hash);
    if (sender != NULL)
        return sender;
    if (receiver->senders.count >= receiver->config->max_senders) {
        say_full(receiver);
        return NULL;
    }
    char path[PATH_MAX_BYTES];
    int size = snprintf(path, sizeof path, "kafka://%s/%d/%.*s", partition->topic,
                        (int)partition->number, (int)name.size, name.data);
    sender = memory_zero(1, sizeof *sender + name.size);
    sender->hash = hash;
    sender->partition = partition;
    sender->source = open_source(receiver, (struct slice){path, (size_t)size});
    sender->sequence = feed_source_restored(sender->source).number;
    sender->size = (uint32_t)name.size;
    memcpy(sender->name, name.data, name.size);
    sender->next_of_partition = partition->first_sender;
    partition->first_sender = sender;
    index_add(&receiver->senders, &sender->hash);
    return sender;
}

void kafka_partitions_release(struct kafka_receiver *receiver) {
    struct kafka_partition *partition;
    for (uint32_t at = 0; (partition = kafka_partition_next(receiver, &at)) != NULL;) {
        memory_give(partition->topic);
        memory_give(partition);
    }
    for (uint32_t i = 0; i < receiver->senders.size; i++)
        memory_give(receiver->senders.slots[i]);
    memory_give(receiver->partitions.slots);
    memory_give(receiver->senders.slots);
    receiver->partitions = receiver->senders = (struct kafka_index){0};
    receiver->last = NULL;
}
