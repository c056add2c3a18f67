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

// The rows for a `struct kafka_connection` that is the field `group` of `owner`.
// NOLINTBEGIN(bugprone-macro-parentheses): names of types and members take none
#define KAFKA_CONNECTION_OPTIONS(owner, group)                                                     \
    OPTION_IN(owner, group, brokers, OPTION_TEXT_LIST, .default_value = "localhost:9092",          \
              .address = true, .help = "brokers to ask first, HOST:PORT each"),                    \
        OPTION_IN(owner, group, client_id, OPTION_TEXT, .default_value = "culprit",                \
                  .help = "what brokers call this client in their logs and quotas"),               \
        OPTION_IN(owner, group, sasl, OPTION_GROUP, .rows = kafka_sasl_rows,                       \
                  .row_count = OPTION_COUNT(kafka_sasl_rows),                                      \
                  .help = "who culprit is to the brokers"),                                        \
        OPTION_IN(owner, group, tls, OPTION_GROUP, .rows = kafka_tls_rows,                         \
                  .row_count = OPTION_COUNT(kafka_tls_rows),                                       \
                  .help = "encryption; without it plain text"),                                    \
        OPTION_IN(owner, group, librdkafka, OPTION_TEXT_LIST,                                      \
                  .help = "settings of librdkafka as key=value, for what has no option here")
// NOLINTEND(bugprone-macro-parentheses)

// Rules between them, and settings that would break what culprit promises.
void kafka_connection_check(const struct kafka_connection *connection,
                            struct problem_list *problems);

enum { KAFKA_CLIENT_MAGIC = 0x6b636c69 };

// What every callback of librdkafka is given: the first member of the opaque's struct.
struct kafka_client {
    uint32_t magic; // KAFKA_CLIENT_MAGIC once kafka_client_open was called
    const struct kafka_library *library;
    const char *site; // for logs
};

// Puts the settings and callbacks of one kind of client into `conf`.
typedef enum status kafka_set_up(struct kafka_client *client, rd_kafka_conf_t *conf,
                                 struct error *error);
// Makes a client with the connection, the log, `client` as opaque, what `set_up` puts in, and last
// the settings under `librdkafka`. client->library is set.
enum status kafka_client_open(struct kafka_client *client,
                              const struct kafka_connection *connection, rd_kafka_type_t type,
                              kafka_set_up *set_up, rd_kafka_t **handle,
                              struct error *error) MUST_USE;
struct kafka_setting {
    const char *key;
    const char *value;
};
// Leaves out those whose value is NULL.
enum status kafka_conf_set_all(const struct kafka_library *library, rd_kafka_conf_t *conf,
                               const struct kafka_setting *settings, size_t count,
                               struct error *error) MUST_USE;
enum status kafka_conf_set_number(const struct kafka_library *library, rd_kafka_conf_t *conf,
                                  const char *key, uint64_t value, struct error *error) MUST_USE;
// Rounded up to whole milliseconds.
enum status kafka_conf_set_duration(const struct kafka_library *library, rd_kafka_conf_t *conf,
                                    const char *key, struct duration value,
                                    struct error *error) MUST_USE;
// A topic's name as Kafka allows it: 1 to 249 of [a-zA-Z0-9._-].
bool kafka_topic_is_valid(const char *topic);
