// SPDX-License-Identifier: Apache-2.0
// librdkafka, loaded when the first Kafka component starts.
#pragma once

#include "base/late_library.h"
#include "base/status.h"

#include <librdkafka/rdkafka.h>

// Every function of librdkafka that culprit calls, without its prefix `rd_kafka_`, and
// consumer_poll, which its tests call.
#define KAFKA_FUNCTIONS(X)                                                                         \
    X(assign)                                                                                      \
    X(assignment)                                                                                  \
    X(assignment_lost)                                                                             \
    X(commit)                                                                                      \
    X(committed)                                                                                   \
    X(conf_destroy)                                                                                \
    X(conf_new)                                                                                    \
    X(conf_set)                                                                                    \
    X(conf_set_dr_msg_cb)                                                                          \
    X(conf_set_error_cb)                                                                           \
    X(conf_set_log_cb)                                                                             \
    X(conf_set_offset_commit_cb)                                                                   \
    X(conf_set_opaque)                                                                             \
    X(conf_set_rebalance_cb)                                                                       \
    X(consume_batch_queue)                                                                         \
    X(consumer_close_queue)                                                                        \
    X(consumer_closed)                                                                             \
    X(consumer_poll)                                                                               \
    X(destroy_flags)                                                                               \
    X(err2name)                                                                                    \
    X(err2str)                                                                                     \
    X(error_code)                                                                                  \
    X(error_destroy)                                                                               \
    X(error_string)                                                                                \
    X(fatal_error)                                                                                 \
    X(get_watermark_offsets)                                                                       \
    X(header_add)                                                                                  \
    X(header_get_all)                                                                              \
    X(headers_copy)                                                                                \
    X(headers_destroy)                                                                             \
    X(headers_new)                                                                                 \
    X(incremental_assign)                                                                          \
    X(incremental_unassign)                                                                        \
    X(mem_free)                                                                                    \
    X(mem_malloc)                                                                                  \
    X(message_destroy)                                                                             \
    X(message_errstr)                                                                              \
    X(message_headers)                                                                             \
    X(message_timestamp)                                                                           \
    X(metadata)                                                                                    \
    X(metadata_destroy)                                                                            \
    X(new)                                                                                         \
    X(offsets_for_times)                                                                           \
    X(opaque)                                                                                      \
    X(outq_len)                                                                                    \
    X(pause_partitions)                                                                            \
    X(poll)                                                                                        \
    X(poll_set_consumer)                                                                           \
    X(producev)                                                                                    \
    X(purge)                                                                                       \
    X(query_watermark_offsets)                                                                     \
    X(queue_destroy)                                                                               \
    X(queue_get_consumer)                                                                          \
    X(queue_new)                                                                                   \
    X(queue_poll_callback)                                                                         \
    X(rebalance_protocol)                                                                          \
    X(resume_partitions)                                                                           \
    X(sasl_set_credentials)                                                                        \
    X(subscribe)                                                                                   \
    X(topic_destroy)                                                                               \
    X(topic_name)                                                                                  \
    X(topic_new)                                                                                   \
    X(topic_partition_list_add)                                                                    \
    X(topic_partition_list_copy)                                                                   \
    X(topic_partition_list_destroy)                                                                \
    X(topic_partition_list_new)

struct kafka_library {
#define KAFKA_MEMBER(name) __typeof__ (&rd_kafka_##name)(name);
    KAFKA_FUNCTIONS(KAFKA_MEMBER)
#undef KAFKA_MEMBER
};

extern struct late_library kafka_late_library; // for component_type

// Lives as long as the process. Any thread.
enum status kafka_library_load(const struct kafka_library **library, struct error *error) MUST_USE;
