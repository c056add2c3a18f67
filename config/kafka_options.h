// SPDX-License-Identifier: Apache-2.0
// How Kafka is reached: the options that its receiver and its exporter share, and librdkafka's
// configuration made from them.
#pragma once

#include "base/kafka/library.h"
#include "config/option.h"

enum kafka_mechanism { KAFKA_NO_SASL, KAFKA_PLAIN, KAFKA_SCRAM_SHA_256, KAFKA_SCRAM_SHA_512 };

struct kafka_sasl {
    int mechanism; // enum kafka_mechanism
    const char *username;
    struct secret password;
};

struct kafka_tls {
    bool enabled; // also on when one of the other fields is set
    const char *ca_file;
    const char *cert_file;
    const char *key_file;
    bool unsafe_skip_verify;
};

struct kafka_connection {
    struct text_list brokers;
    const char *client_id;
    struct kafka_sasl sasl;
    struct kafka_tls tls;
    struct text_list librdkafka;
};

extern const struct option kafka_sasl_rows[3];
extern const struct option kafka_tls_rows[5];

// The rows for a `struct kafka_connection` that is the field `field` of `owner`.
// NOLINTBEGIN(bugprone-macro-parentheses): names of types and members take none
#define KAFKA_CONNECTION_OPTIONS(owner, field)                                                     \
    {.name = "brokers",                                                                            \
     .type = OPTION_TEXT_LIST,                                                                     \
     .offset = offsetof(owner, field.brokers),                                                     \
     .default_value = "localhost:9092",                                                            \
     .address = true,                                                                              \
     .help = "brokers to ask first, HOST:PORT each"},                                              \
        {.name = "client_id",                                                                      \
         .type = OPTION_TEXT,                                                                      \
         .offset = offsetof(owner, field.client_id),                                               \
         .default_value = "culprit",                                                               \
         .help = "what brokers call this client in their logs and quotas"},                        \
        {.name = "sasl",                                                                           \
         .type = OPTION_GROUP,                                                                     \
         .offset = offsetof(owner, field.sasl),                                                    \
         .rows = kafka_sasl_rows,                                                                  \
         .row_count = OPTION_COUNT(kafka_sasl_rows),                                               \
         .help = "who culprit is to the brokers"},                                                 \
        {.name = "tls",                                                                            \
         .type = OPTION_GROUP,                                                                     \
         .offset = offsetof(owner, field.tls),                                                     \
         .rows = kafka_tls_rows,                                                                   \
         .row_count = OPTION_COUNT(kafka_tls_rows),                                                \
         .help = "encryption; without it plain text"},                                             \
    {                                                                                              \
        .name = "librdkafka", .type = OPTION_TEXT_LIST,                                            \
        .offset = offsetof(owner, field.librdkafka),                                               \
        .help = "settings of librdkafka as key=value, for what has no option here"                 \
    }
// NOLINTEND(bugprone-macro-parentheses)

// Rules between them, and settings that would break what culprit promises.
void kafka_connection_check(const struct kafka_connection *connection,
                            struct problem_list *problems);

// What every callback of librdkafka is given: the first member of the opaque's struct.
struct kafka_client {
    const struct kafka_library *library;
    const char *site; // for logs
};

// A configuration with the connection, the log and `client` as opaque in it. It belongs to the
// caller until rd_kafka_new takes it. The settings under `librdkafka` are put in by
// kafka_conf_finish, which comes last.
enum status kafka_conf_begin(struct kafka_client *client, const struct kafka_connection *connection,
                             rd_kafka_conf_t **conf, struct error *error) MUST_USE;
enum status kafka_conf_set(const struct kafka_library *library, rd_kafka_conf_t *conf,
                           const char *key, const char *value, struct error *error) MUST_USE;
struct kafka_setting {
    const char *key;
    const char *value;
};
enum status kafka_conf_set_all(const struct kafka_library *library, rd_kafka_conf_t *conf,
                               const struct kafka_setting *settings, size_t count,
                               struct error *error) MUST_USE;
enum status kafka_conf_set_number(const struct kafka_library *library, rd_kafka_conf_t *conf,
                                  const char *key, uint64_t value, struct error *error) MUST_USE;
// Rounded up to whole milliseconds.
enum status kafka_conf_set_duration(const struct kafka_library *library, rd_kafka_conf_t *conf,
                                    const char *key, struct duration value,
                                    struct error *error) MUST_USE;
enum status kafka_conf_finish(const struct kafka_library *library, rd_kafka_conf_t *conf,
                              const struct kafka_connection *connection,
                              struct error *error) MUST_USE;
// Takes `conf` in any case.
enum status kafka_client_new(const struct kafka_library *library, rd_kafka_type_t type,
                             rd_kafka_conf_t *conf, rd_kafka_t **handle,
                             struct error *error) MUST_USE;
// A topic's name as Kafka allows it: 1 to 249 of [a-zA-Z0-9._-].
bool kafka_topic_is_valid(const char *topic);
