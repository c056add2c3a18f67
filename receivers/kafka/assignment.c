// SPDX-License-Identifier: Apache-2.0
// Which partitions are ours, from where they are read, and how far they are done.
//
// Where to begin: behind what the checkpoint holds; else, when the group has committed an offset,
// somebody else worked on the partition and culprit holds no state for it: then `rewind` before the
// record that was committed last (its time stands in the commit's metadata); else where
// initial_offset says. A checkpoint knows the record that was read last: that is fetched once more,
// and where it is another one the topic was made anew. Committed is only what every pipeline holds
// safely, and never less than the group has.
#include "base/clock.h"
#include "base/log.h"
#include "base/text/cut.h"
#include "receivers/kafka/receiver.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

enum { ASK_MS = 10000, QUERY_MS = 5000 };

static const char metadata_mark[] = "culprit1 ts=";

static rd_kafka_topic_partition_t *list_add(const struct kafka_library *library,
                                            rd_kafka_topic_partition_list_t *list,
                                            const struct kafka_partition *partition,
                                            int64_t offset) {
    rd_kafka_topic_partition_t *item =
        library->topic_partition_list_add(list, partition->topic, partition->number);
    item->offset = offset;
    return item;
}

static struct kafka_partition *partition_of(struct kafka_receiver *receiver,
                                            const rd_kafka_topic_partition_t *item) {
    return kafka_partition_of(receiver, item->topic, item->partition);
}

// -- where to begin -----------------------------------------------------------------------------

// The time of the record that was committed last; 0: not told.
static uint64_t committed_time_ms(const rd_kafka_topic_partition_t *item) {
    if (item->metadata == NULL)
        return 0;
    struct slice text = {item->metadata, item->metadata_size};
    uint64_t time_ms = 0;
    bool known =
        text_skip(&text, slice_of(metadata_mark)) && text_take_number(&text, 1, 20, &time_ms);
    return known ? time_ms : 0;
}

static uint64_t rewound_time_ms(const struct kafka_receiver *receiver,
                                const rd_kafka_topic_partition_t *item) {
    uint64_t rewind_ms = (uint64_t)receiver->config->rewind.ns / 1000000;
    uint64_t time_ms = committed_time_ms(item);
    if (time_ms == 0)
        time_ms = clock_unix_ns() / 1000000;
    return time_ms > rewind_ms ? time_ms - rewind_ms : 0;
}

// Moves the offsets of those that were committed back by `rewind`, as far as that can be found out.
static void rewind_committed(struct kafka_receiver *receiver,
                             rd_kafka_topic_partition_list_t *partitions,
                             const rd_kafka_topic_partition_list_t *committed) {
    assert(committed->cnt == partitions->cnt);
    const struct kafka_library *library = receiver->library;
    if (receiver->config->rewind.ns == 0)
        return;
    rd_kafka_topic_partition_list_t *times = library->topic_partition_list_new(partitions->cnt);
    for (int i = 0; i < partitions->cnt; i++) {
        const struct kafka_partition *partition = partition_of(receiver, &partitions->elems[i]);
        // With state of its own there is nothing to make up for.
        if (partition->next > 0 || committed->elems[i].offset <= 0)
            continue;
        rd_kafka_topic_partition_t *item = library->topic_partition_list_add(
            times, partitions->elems[i].topic, partitions->elems[i].partition);
        item->offset = (int64_t)rewound_time_ms(receiver, &committed->elems[i]);
    }
    rd_kafka_resp_err_t failure =
        times->cnt == 0 ? RD_KAFKA_RESP_ERR_NO_ERROR
                        : library->offsets_for_times(receiver->consumer, times, ASK_MS);
    if (failure != RD_KAFKA_RESP_ERR_NO_ERROR)
        log_write(LOG_WARN, kafka_site(receiver, "C7002"),
                  "the records before the committed offsets cannot be found (%s): what they would "
                  "have told is missing",
                  library->err2str(failure));
    for (int i = 0, j = 0; i < partitions->cnt && j < times->cnt; i++) {
        rd_kafka_topic_partition_t *item = &partitions->elems[i];
        const rd_kafka_topic_partition_t *found = &times->elems[j];
        if (item->partition != found->partition || strcmp(item->topic, found->topic) != 0)
            continue;
        j++;
        if (failure == RD_KAFKA_RESP_ERR_NO_ERROR && found->err == RD_KAFKA_RESP_ERR_NO_ERROR &&
            found->offset >= 0 && found->offset < item->offset)
            item->offset = found->offset;
    }
    library->topic_partition_list_destroy(times);
}

void kafka_begin_counting(struct kafka_receiver *receiver) {
    if (receiver->since_ms == 0)
        receiver->since_ms = clock_unix_ns() / 1000000;
}

// The first record of that time or later; `end`: there is none.
static int64_t offset_since(struct kafka_receiver *receiver,
                            const struct kafka_partition *partition, uint64_t time_ms,
                            int64_t end) {
    const struct kafka_library *library = receiver->library;
    rd_kafka_topic_partition_list_t *asked = library->topic_partition_list_new(1);
    rd_kafka_topic_partition_t *item = list_add(library, asked, partition, (int64_t)time_ms);
    rd_kafka_resp_err_t failure = library->offsets_for_times(receiver->consumer, asked, ASK_MS);
    if (failure == RD_KAFKA_RESP_ERR_NO_ERROR)
        failure = item->err;
    if (failure != RD_KAFKA_RESP_ERR_NO_ERROR)
        log_write(LOG_WARN, kafka_site(receiver, "C7002"),
                  "the records of %s/%d that came before it was noticed cannot be found (%s): what "
                  "they would have told is missing",
                  partition->topic, (int)partition->number, library->err2str(failure));
    else if (item->offset >= 0 && item->offset < end)
        end = item->offset;
    library->topic_partition_list_destroy(asked);
    return end;
}

// The end as a number, so that it can be kept; else the name of it. Since `since_ms`, if it is
// given, the partition may have been made: then what was written from `rewind` before that on is
// read, as clocks differ.
static int64_t latest_offset(struct kafka_receiver *receiver, struct kafka_partition *partition,
                             uint64_t since_ms) {
    int64_t low, begin;
    if (receiver->library->query_watermark_offsets(receiver->consumer, partition->topic,
                                                   partition->number, &low, &begin,
                                                   QUERY_MS) != RD_KAFKA_RESP_ERR_NO_ERROR ||
        begin < 0)
        return RD_KAFKA_OFFSET_END;
    uint64_t rewind_ms = (uint64_t)receiver->config->rewind.ns / 1000000;
    if (since_ms > rewind_ms)
        begin = offset_since(receiver, partition, since_ms - rewind_ms, begin);
    if (begin > 0) {
        struct source_position position = {
            .number = (uint64_t)begin,
            .detail = {[KAFKA_DETAIL_LAST] = (uint64_t)begin - 1,
                       [KAFKA_DETAIL_TIME] = clock_unix_ns() / 1000000}};
        feed_source_reached(partition->source, &position);
    }
    return begin;
}

static int64_t first_offset(struct kafka_receiver *receiver, struct kafka_partition *partition,
                            uint64_t since_ms) {
    return receiver->config->initial_offset == KAFKA_START_LATEST
               ? latest_offset(receiver, partition, since_ms)
               : RD_KAFKA_OFFSET_BEGINNING;
}

// Since when a partition of this topic that nobody has worked on may have been made: since the
// first assignment, or before a restart since the newest record of the topic that is known. 0: it
// may be as old as any.
static uint64_t known_since_ms(struct kafka_receiver *receiver,
                               const rd_kafka_topic_partition_list_t *committed,
                               const char *topic) {
    uint64_t since_ms = receiver->since_ms;
    for (int i = 0; receiver->since_ms == 0 && i < committed->cnt; i++) {
        const rd_kafka_topic_partition_t *item = &committed->elems[i];
        if (strcmp(item->topic, topic) != 0)
            continue;
        uint64_t own_ms = (uint64_t)partition_of(receiver, item)->time_ms;
        if (own_ms == 0 && item->err == RD_KAFKA_RESP_ERR_NO_ERROR)
            own_ms = committed_time_ms(item);
        since_ms = own_ms > since_ms ? own_ms : since_ms;
    }
    return since_ms;
}

// Partitions that begin at their beginning get its number. librdkafka would ask for it, too, but
// waits half a second when it knows no leader yet, as it does right behind a join.
static void number_beginnings(struct kafka_receiver *receiver,
                              rd_kafka_topic_partition_list_t *partitions) {
    const struct kafka_library *library = receiver->library;
    rd_kafka_topic_partition_list_t *asked = library->topic_partition_list_new(partitions->cnt);
    for (int i = 0; i < partitions->cnt; i++)
        if (partitions->elems[i].offset == RD_KAFKA_OFFSET_BEGINNING)
            library
                ->topic_partition_list_add(asked, partitions->elems[i].topic,
                                           partitions->elems[i].partition)
                ->offset = RD_KAFKA_OFFSET_BEGINNING; // as the time that is asked for
    bool known = asked->cnt > 0 && library->offsets_for_times(receiver->consumer, asked, ASK_MS) ==
                                       RD_KAFKA_RESP_ERR_NO_ERROR;
    for (int i = 0, j = 0; known && i < partitions->cnt; i++) {
        rd_kafka_topic_partition_t *item = &partitions->elems[i];
        if (item->offset != RD_KAFKA_OFFSET_BEGINNING)
            continue;
        assert(j < asked->cnt && asked->elems[j].partition == item->partition);
        const rd_kafka_topic_partition_t *found = &asked->elems[j++];
        if (found->err == RD_KAFKA_RESP_ERR_NO_ERROR && found->offset >= 0)
            item->offset = found->offset;
    }
    library->topic_partition_list_destroy(asked);
}

static bool ask_committed(struct kafka_receiver *receiver,
                          rd_kafka_topic_partition_list_t *committed) {
    assert(receiver->consumer != NULL && committed->cnt > 0);
    rd_kafka_resp_err_t failure =
        receiver->library->committed(receiver->consumer, committed, ASK_MS);
    if (failure == RD_KAFKA_RESP_ERR_NO_ERROR)
        return true;
    log_write(LOG_WARN, kafka_site(receiver, "C7003"),
              "the committed offsets are not known (%s): partitions without state begin there, and "
              "nothing before them is read again",
              receiver->library->err2str(failure));
    return false;
}

// Sets the offset of each partition.
static void choose_offsets(struct kafka_receiver *receiver,
                           rd_kafka_topic_partition_list_t *partitions) {
    const struct kafka_library *library = receiver->library;
    rd_kafka_topic_partition_list_t *committed = library->topic_partition_list_copy(partitions);
    bool asked = ask_committed(receiver, committed);
    for (int i = 0; i < partitions->cnt; i++) {
        rd_kafka_topic_partition_t *item = &partitions->elems[i];
        struct kafka_partition *partition = partition_of(receiver, item);
        int64_t known = asked && committed->elems[i].err == RD_KAFKA_RESP_ERR_NO_ERROR
                            ? committed->elems[i].offset
                            : -1;
        partition->asked = partition->accepted = known > 0 ? (uint64_t)known : 0;
        partition->unresolved = false;
        if (partition->next > 0) {
            item->offset = partition->next;
        } else if (known >= 0) {
            item->offset = known;
        } else if (!asked) {
            item->offset = RD_KAFKA_OFFSET_STORED;
            partition->unresolved = true;
        } else {
            item->offset =
                first_offset(receiver, partition, known_since_ms(receiver, committed, item->topic));
        }
    }
    if (asked)
        rewind_committed(receiver, partitions, committed);
    number_beginnings(receiver, partitions);
    library->topic_partition_list_destroy(committed);
}

// -- rebalances ---------------------------------------------------------------------------------

static bool is_cooperative(const struct kafka_receiver *receiver) {
    const char *protocol = receiver->library->rebalance_protocol(receiver->consumer);
    return protocol != NULL && strcmp(protocol, "COOPERATIVE") == 0;
}

static void say_failed(const struct kafka_receiver *receiver, const char *what,
                       const char *reason) {
    log_write(LOG_WARN, kafka_site(receiver, "C7004"), "%s: %s", what, reason);
}

// NULL: none any more.
static void tell_library(struct kafka_receiver *receiver, bool cooperative, bool add,
                         rd_kafka_topic_partition_list_t *partitions) {
    const struct kafka_library *library = receiver->library;
    if (!cooperative) {
        rd_kafka_resp_err_t failure = library->assign(receiver->consumer, add ? partitions : NULL);
        if (failure != RD_KAFKA_RESP_ERR_NO_ERROR)
            say_failed(receiver, "the assignment was not taken", library->err2str(failure));
        return;
    }
    rd_kafka_error_t *failure = add ? library->incremental_assign(receiver->consumer, partitions)
                                    : library->incremental_unassign(receiver->consumer, partitions);
    if (failure != NULL) {
        say_failed(receiver, "the assignment was not taken", library->error_string(failure));
        library->error_destroy(failure);
    }
}

// In one line, as far as it goes: messages that repeat are held back.
static void say_taken(const struct kafka_receiver *receiver,
                      const rd_kafka_topic_partition_list_t *partitions) {
    char text[800] = "";
    size_t used = 0;
    for (int i = 0; i < partitions->cnt && used < sizeof text; i++) {
        const rd_kafka_topic_partition_t *item = &partitions->elems[i];
        char offset[32];
        snprintf(offset, sizeof offset, "%" PRId64, item->offset);
        int size = snprintf(text + used, sizeof text - used, "%s%s/%d from %s", i == 0 ? "" : ", ",
                            item->topic, (int)item->partition,
                            item->offset == RD_KAFKA_OFFSET_BEGINNING ? "the beginning"
                            : item->offset == RD_KAFKA_OFFSET_END     ? "the end"
                            : item->offset == RD_KAFKA_OFFSET_STORED  ? "what is committed"
                                                                      : offset);
        used += size < 0 ? 0 : (size_t)size;
    }
    log_write(LOG_INFO, kafka_site(receiver, "C7005"), "reads %s%s", text,
              partitions->cnt == 0  ? "no partition: others have them all"
              : used >= sizeof text ? " …"
                                    : "");
}

// Those whose last record is known begin at it, to see whether it is still there.
static void prove_last(struct kafka_receiver *receiver,
                       rd_kafka_topic_partition_list_t *partitions) {
    for (int i = 0; i < partitions->cnt; i++) {
        struct kafka_partition *partition = partition_of(receiver, &partitions->elems[i]);
        partition->proving =
            partition->mark != 0 && partition->last >= 0 && partition->last < partition->next;
        if (partition->proving)
            partitions->elems[i].offset = partition->last;
    }
}

static void take_partitions(struct kafka_receiver *receiver, bool cooperative,
                            rd_kafka_topic_partition_list_t *partitions) {
    assert(!receiver->closing);
    if (partitions->cnt > 0)
        choose_offsets(receiver, partitions);
    kafka_begin_counting(receiver);
    for (int i = 0; i < partitions->cnt; i++) {
        const rd_kafka_topic_partition_t *item = &partitions->elems[i];
        struct kafka_partition *partition = partition_of(receiver, item);
        partition->assigned = partition->behind = true;
        partition->end = partition->passed = -1;
        partition->out_of_range = partition->made_anew = false;
        if (item->offset >= 0)
            partition->next = item->offset;
    }
    say_taken(receiver, partitions);
    prove_last(receiver, partitions);
    tell_library(receiver, cooperative, true, partitions);
    if (receiver->paused)
        receiver->library->pause_partitions(receiver->consumer, partitions);
    if (!receiver->others_left) {
        receiver->others_left = true;
        kafka_take_up_restored(receiver);
    }
    kafka_end_trouble(receiver, KAFKA_REFUSED);
}

static void give_partitions(struct kafka_receiver *receiver, bool cooperative,
                            rd_kafka_topic_partition_list_t *partitions) {
    assert(!receiver->closing);
    bool lost = receiver->library->assignment_lost(receiver->consumer) != 0;
    kafka_flush(receiver);
    if (!lost)
        kafka_commit(receiver);
    for (int i = 0; i < partitions->cnt; i++) {
        const rd_kafka_topic_partition_t *item = &partitions->elems[i];
        struct kafka_partition *partition =
            kafka_partition_find(receiver, item->topic, item->partition);
        if (partition == NULL)
            continue;
        partition->assigned = partition->behind = false;
        partition->even_ns = 0;
        kafka_partition_leave(receiver, partition);
        kafka_hide_lag(receiver, partition);
        log_write(LOG_INFO, (struct log_site){"C7006", receiver->context->site},
                  "%s %s/%d at offset %" PRId64, lost ? "has lost" : "gives up", item->topic,
                  (int)item->partition, partition->next);
    }
    tell_library(receiver, cooperative, false, partitions);
}

void kafka_rebalance(rd_kafka_t *consumer, rd_kafka_resp_err_t event,
                     rd_kafka_topic_partition_list_t *partitions, void *opaque) {
    struct kafka_receiver *receiver = kafka_receiver_of(opaque);
    (void)consumer;
    bool cooperative = is_cooperative(receiver);
    if (receiver->closing) {
        tell_library(receiver, cooperative && partitions->cnt > 0, false, partitions);
    } else if (event == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
        take_partitions(receiver, cooperative, partitions);
        receiver->rebalanced = true;
    } else {
        give_partitions(receiver, cooperative, partitions);
        if (event != RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS)
            say_failed(receiver, "the group could not be balanced",
                       receiver->library->err2str(event));
    }
}

// -- commits ------------------------------------------------------------------------------------

void kafka_commit(struct kafka_receiver *receiver) {
    const struct kafka_library *library = receiver->library;
    rd_kafka_topic_partition_list_t *offsets = NULL;
    struct kafka_partition *partition;
    for (uint32_t at = 0; (partition = kafka_partition_next(receiver, &at)) != NULL;) {
        if (!partition->assigned)
            continue;
        struct source_position safe = feed_source_safe(receiver->feed, partition->source);
        if (safe.number <= partition->asked)
            continue;
        if (offsets == NULL)
            offsets = library->topic_partition_list_new(8);
        rd_kafka_topic_partition_t *item =
            list_add(library, offsets, partition, (int64_t)safe.number);
        enum { METADATA_MAX = sizeof metadata_mark + 24 };
        item->metadata = library->mem_malloc(NULL, METADATA_MAX);
        item->metadata_size = (size_t)snprintf(item->metadata, METADATA_MAX, "%s%" PRIu64,
                                               metadata_mark, safe.detail[1]);
        assert(safe.number <= INT64_MAX);
        partition->asked = safe.number;
    }
    if (offsets == NULL)
        return;
    assert(receiver->consumer != NULL);
    library->commit(receiver->consumer, offsets, 1);
    library->topic_partition_list_destroy(offsets);
}

void kafka_committed(rd_kafka_t *consumer, rd_kafka_resp_err_t failure,
                     rd_kafka_topic_partition_list_t *offsets, void *opaque) {
    struct kafka_receiver *receiver = kafka_receiver_of(opaque);
    (void)consumer;
    for (int i = 0; offsets != NULL && i < offsets->cnt; i++) {
        const rd_kafka_topic_partition_t *item = &offsets->elems[i];
        struct kafka_partition *partition =
            kafka_partition_find(receiver, item->topic, item->partition);
        if (partition == NULL)
            continue;
        rd_kafka_resp_err_t own = item->err != RD_KAFKA_RESP_ERR_NO_ERROR ? item->err : failure;
        if (own == RD_KAFKA_RESP_ERR_NO_ERROR) {
            if (item->offset > 0 && (uint64_t)item->offset > partition->accepted)
                partition->accepted = (uint64_t)item->offset;
            continue;
        }
        partition->asked = partition->accepted; // once more
        log_write(LOG_WARN, kafka_site(receiver, "C7007"),
                  "the offset %" PRId64 " of %s/%d was not committed, will try again: %s",
                  item->offset, item->topic, (int)item->partition, receiver->library->err2str(own));
    }
}

// -- offsets that are not there -----------------------------------------------------------------

// A partition whose fetching has ended with an error is not moved by a seek: it is assigned anew.
static void assign_anew(struct kafka_receiver *receiver, const struct kafka_partition *moved,
                        int64_t offset) {
    const struct kafka_library *library = receiver->library;
    rd_kafka_topic_partition_list_t *list = library->topic_partition_list_new(1);
    bool cooperative = is_cooperative(receiver);
    list_add(library, list, moved, offset);
    struct kafka_partition *partition;
    for (uint32_t at = 0;
         !cooperative && (partition = kafka_partition_next(receiver, &at)) != NULL;)
        if (partition->assigned && partition != moved)
            list_add(library, list, partition,
                     partition->next >= 0 ? partition->next : RD_KAFKA_OFFSET_BEGINNING);
    if (cooperative)
        tell_library(receiver, true, false, list);
    tell_library(receiver, cooperative, true, list);
    if (receiver->paused)
        library->pause_partitions(receiver->consumer, list);
    library->topic_partition_list_destroy(list);
}

static void mend(struct kafka_receiver *receiver, struct kafka_partition *partition) {
    assert(partition->assigned && (partition->out_of_range || partition->made_anew));
    int64_t low, high;
    if (partition->unresolved) {
        partition->out_of_range = partition->unresolved = false;
        assign_anew(receiver, partition, first_offset(receiver, partition, receiver->since_ms));
        return;
    }
    if (receiver->library->query_watermark_offsets(receiver->consumer, partition->topic,
                                                   partition->number, &low, &high,
                                                   QUERY_MS) != RD_KAFKA_RESP_ERR_NO_ERROR)
        return; // again in a second
    int64_t next = partition->next;
    if (partition->made_anew && next <= high) {
        if (receiver->first)
            feed_note(receiver->feed, feed_source_path(partition->source),
                      "the record at offset %" PRId64
                      ", which was read last, is another one now: "
                      "the topic was created again or has lost records; it is read from its "
                      "beginning",
                      partition->last);
        kafka_partition_restart(receiver, partition);
    } else if (next > high) {
        if (receiver->first)
            feed_note(receiver->feed, feed_source_path(partition->source),
                      "it ends at offset %" PRId64 " but was read up to %" PRId64
                      ": the topic was created again or has lost records; it is read from its "
                      "beginning",
                      high, next);
        kafka_partition_restart(receiver, partition);
    } else if (receiver->first && next >= 0 && next < low) {
        feed_note(receiver->feed, feed_source_path(partition->source),
                  "%" PRId64 " records were deleted before they were read (offsets %" PRId64
                  " to %" PRId64 ")",
                  low - next, next, low - 1);
    }
    kafka_partition_has_gap(partition);
    partition->out_of_range = false;
    assign_anew(receiver, partition, low);
}

void kafka_mend_range(struct kafka_receiver *receiver) {
    struct kafka_partition *partition;
    for (uint32_t at = 0; (partition = kafka_partition_next(receiver, &at)) != NULL;)
        if (partition->assigned &&
            (partition->out_of_range || (partition->made_anew && receiver->held_count == 0)))
            mend(receiver, partition);
}

// -- how far behind -----------------------------------------------------------------------------

static const struct metric_family offset_lag = {.name = "culprit_kafka_receiver_offset_lag",
                                                .help = "Records behind the end of the partition.",
                                                .type = METRIC_GAUGE};
static const struct metric_family lag_seconds = {.name = "culprit_kafka_receiver_lag_seconds",
                                                 .help = "Age of the next record to be processed.",
                                                 .type = METRIC_GAUGE,
                                                 .divisor = 1000};

// How many records are between the next one and the end of the partition, as far as fetches have
// told, and that end; -1: not known.
static int64_t records_behind(const struct kafka_receiver *receiver,
                              const struct kafka_partition *partition, int64_t *end) {
    assert(receiver->consumer != NULL);
    int64_t low;
    if (receiver->library->get_watermark_offsets(receiver->consumer, partition->topic,
                                                 partition->number, &low,
                                                 end) != RD_KAFKA_RESP_ERR_NO_ERROR ||
        *end < 0)
        return -1;
    int64_t next = partition->next >= 0 ? partition->next : low;
    return *end > next ? *end - next : 0;
}

// Whether it has not yet reached what was its end when that was first told.
static bool is_behind(const struct kafka_receiver *receiver, struct kafka_partition *partition) {
    if (partition->end >= 0)
        return partition->next < partition->end;
    int64_t end = -1;
    int64_t behind = records_behind(receiver, partition, &end);
    if (behind >= 0)
        partition->end = end;
    return behind != 0;
}

void kafka_look_whether_caught_up(struct kafka_receiver *receiver) {
    if (!receiver->rebalanced)
        return;
    struct kafka_partition *partition;
    bool behind = false;
    for (uint32_t at = 0; (partition = kafka_partition_next(receiver, &at)) != NULL;) {
        if (!partition->assigned || !partition->behind)
            continue;
        partition->behind = is_behind(receiver, partition);
        behind = behind || partition->behind;
    }
    if (behind)
        return;
    receiver->rebalanced = false;
    feed_caught_up(receiver->feed);
}

void kafka_show_lag(struct kafka_receiver *receiver) {
    struct kafka_partition *partition;
    if (!receiver->first)
        return;
    uint64_t now_ms = clock_unix_ns() / 1000000, now_ns = clock_monotonic_ns();
    for (uint32_t at = 0; (partition = kafka_partition_next(receiver, &at)) != NULL;) {
        int64_t end, behind = partition->assigned ? records_behind(receiver, partition, &end) : -1;
        if (behind < 0)
            continue;
        char number[16];
        snprintf(number, sizeof number, "%d", (int)partition->number);
        const char *const labels[] = {
            "receiver", receiver->context->id, "topic", partition->topic, "partition", number,
            NULL};
        uint64_t age_ms = 0, even_ms = (now_ns - partition->even_ns) / 1000000;
        if (behind > 0 && partition->time_ms > 0 && now_ms > (uint64_t)partition->time_ms)
            age_ms = now_ms - (uint64_t)partition->time_ms;
        if (behind == 0)
            partition->even_ns = now_ns;
        else if (partition->even_ns > 0 && even_ms < age_ms)
            age_ms = even_ms; // what came since is no older
        // Looked up each time: what metric_remove takes away for one partition is back with this.
        metric_set(metric_find(&offset_lag, labels), (uint64_t)behind);
        metric_set(metric_find(&lag_seconds, labels), age_ms);
    }
}

void kafka_hide_lag(struct kafka_receiver *receiver, const struct kafka_partition *partition) {
    if (!receiver->first)
        return;
    char number[16];
    snprintf(number, sizeof number, "%d", (int)partition->number);
    metric_remove(&offset_lag, "partition", number);
    metric_remove(&lag_seconds, "partition", number);
}
