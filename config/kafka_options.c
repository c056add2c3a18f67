// SPDX-License-Identifier: Apache-2.0
// The options that everything which speaks to Kafka shares.
#include "config/kafka_options.h"

#include "base/log.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

static const char *const mechanisms[] = {"none", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", NULL};

const struct option kafka_sasl_rows[3] = {
    OPTION(struct kafka_sasl, mechanism, OPTION_CHOICE, .default_value = "none",
           .choices = mechanisms,
           .help = "how the name and password are shown; others are set under librdkafka"),
    OPTION(struct kafka_sasl, username, OPTION_TEXT, .help = "name"),
    OPTION(struct kafka_sasl, password, OPTION_SECRET, .help = "password"),
};

const struct option kafka_tls_rows[5] = {
    OPTION(struct kafka_tls, enabled, OPTION_BOOL, .default_value = "false",
           .help = "encrypt; naming one of the files does so, too"),
    OPTION(struct kafka_tls, ca_file, OPTION_TEXT,
           .help =
               "certificates of those who may vouch for a broker, PEM; the system's without it"),
    OPTION(struct kafka_tls, cert_file, OPTION_TEXT, .help = "culprit's own certificate, PEM"),
    OPTION(struct kafka_tls, key_file, OPTION_TEXT, .help = "its private key, PEM"),
    OPTION(struct kafka_tls, unsafe_skip_verify, OPTION_BOOL, .default_value = "false",
           .help = "believe any certificate: whoever is in between can read and change everything"),
};

// -- what is refused ----------------------------------------------------------------------------

// Settings that culprit sets itself, so that nothing is lost or counted twice.
static const char *const own_settings[] = {"acks",
                                           "auto.commit.enable",
                                           "auto.commit.interval.ms",
                                           "delivery.timeout.ms",
                                           "enable.auto.commit",
                                           "enable.auto.offset.store",
                                           "enable.gapless.guarantee",
                                           "enable.idempotence",
                                           "enable.partition.eof",
                                           "max.in.flight",
                                           "max.in.flight.requests.per.connection",
                                           "message.send.max.retries",
                                           "message.timeout.ms",
                                           "offset.store.method",
                                           "partitioner",
                                           "request.required.acks",
                                           "retries",
                                           "transactional.id"};

// Settings that an option sets.
static const struct {
    const char *key;
    const char *option;
} option_settings[] = {{"auto.offset.reset", "initial_offset"},
                       {"bootstrap.servers", "brokers"},
                       {"client.id", "client_id"},
                       {"compression.codec", "compression"},
                       {"compression.type", "compression"},
                       {"group.id", "group_id"},
                       {"group.instance.id", "group_instance_id"},
                       {"heartbeat.interval.ms", "heartbeat_interval"},
                       {"isolation.level", "isolation_level"},
                       {"linger.ms", "linger"},
                       {"max.partition.fetch.bytes", "max_partition_fetch_size"},
                       {"fetch.message.max.bytes", "max_partition_fetch_size"},
                       {"fetch.min.bytes", "min_fetch_size"},
                       {"fetch.wait.max.ms", "max_fetch_wait"},
                       {"max.poll.interval.ms", "max_poll_interval"},
                       {"message.max.bytes", "max_message_size"},
                       {"metadata.broker.list", "brokers"},
                       {"partition.assignment.strategy", "group_rebalance_strategy"},
                       {"queue.buffering.max.ms", "linger"},
                       {"queued.max.messages.kbytes", "queue_size"},
                       {"sasl.username", "sasl.username"},
                       {"session.timeout.ms", "session_timeout"},
                       {"ssl.ca.location", "tls.ca_file"},
                       {"ssl.certificate.location", "tls.cert_file"},
                       {"ssl.key.location", "tls.key_file"},
                       {"enable.ssl.certificate.verification", "tls.unsafe_skip_verify"}};

static void check_key(struct slice key, struct problem_list *problems) {
    for (size_t i = 0; i < sizeof own_settings / sizeof own_settings[0]; i++)
        if (slice_equal(key, slice_of(own_settings[i])))
            problem_add(problems, "librdkafka",
                        "%s cannot be set here: culprit sets it itself, so that nothing is lost or "
                        "counted twice",
                        own_settings[i]);
    for (size_t i = 0; i < sizeof option_settings / sizeof option_settings[0]; i++)
        if (slice_equal(key, slice_of(option_settings[i].key)))
            problem_add(problems, "librdkafka", "%s cannot be set here: the option %s sets it",
                        option_settings[i].key, option_settings[i].option);
    if (slice_equal(key, SLICE("plugin.library.paths")))
        problem_add(problems, "librdkafka",
                    "plugin.library.paths cannot be set here: culprit loads no code that a "
                    "configuration names");
}

static void check_setting(const char *entry, struct problem_list *problems) {
    const char *equals = strchr(entry, '=');
    if (equals == NULL || equals == entry) {
        problem_add(problems, "librdkafka", "\"%s\" is not of the form key=value", entry);
        return;
    }
    struct slice key = {entry, (size_t)(equals - entry)};
    if (memmem(key.data, key.size, "password", 8) != NULL ||
        memmem(key.data, key.size, "secret", 6) != NULL ||
        memmem(key.data, key.size, "pem", 3) != NULL)
        problem_add(problems, "librdkafka",
                    "%.*s cannot be set here, where it would be shown: use sasl.password, and a "
                    "key file without a password",
                    (int)key.size, key.data);
    check_key(key, problems);
}

void kafka_connection_check(const struct kafka_connection *connection,
                            struct problem_list *problems) {
    if (connection->brokers.count == 0)
        problem_add(problems, "brokers", "the list is empty; name at least one broker");
    for (uint32_t i = 0; i < connection->brokers.count; i++) {
        const char *broker = connection->brokers.items[i];
        if (broker[0] == '\0' || strpbrk(broker, ", \t\n") != NULL)
            problem_add(problems, "brokers",
                        "\"%s\" is not a valid broker: write HOST:PORT, one in each entry", broker);
    }
    const struct kafka_sasl *sasl = &connection->sasl;
    bool named = sasl->username != NULL || secret_reveal(sasl->password) != NULL;
    if (sasl->mechanism == KAFKA_NO_SASL && named)
        problem_add(problems, "sasl.mechanism",
                    "a name or password is given but no mechanism; write PLAIN, SCRAM-SHA-256 or "
                    "SCRAM-SHA-512");
    if (sasl->mechanism != KAFKA_NO_SASL && sasl->username == NULL)
        problem_add(problems, "sasl.username", "is missing; sasl.mechanism needs it");
    if (sasl->mechanism != KAFKA_NO_SASL && secret_reveal(sasl->password) == NULL)
        problem_add(problems, "sasl.password", "is missing; sasl.mechanism needs it");
    const struct kafka_tls *tls = &connection->tls;
    if ((tls->cert_file == NULL) != (tls->key_file == NULL))
        problem_add(problems, tls->cert_file == NULL ? "tls.cert_file" : "tls.key_file",
                    "is missing; a certificate and its key go together");
    for (uint32_t i = 0; i < connection->librdkafka.count; i++)
        check_setting(connection->librdkafka.items[i], problems);
}

bool kafka_topic_is_valid(const char *topic) {
    size_t size = strlen(topic);
    if (size == 0 || size > 249 || strcmp(topic, ".") == 0 || strcmp(topic, "..") == 0)
        return false;
    return strspn(topic, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
           size;
}

// -- librdkafka's configuration -----------------------------------------------------------------

enum { REASON_MAX = 400 };

static enum status set(const struct kafka_library *library, rd_kafka_conf_t *conf, const char *key,
                       const char *value, struct error *error) {
    char reason[REASON_MAX] = "";
    if (library->conf_set(conf, key, value, reason, sizeof reason) == RD_KAFKA_CONF_OK)
        return STATUS_OK;
    return error_set(error, STATUS_CONFIG, "librdkafka does not take %s: %s", key, reason);
}

enum status kafka_conf_set_all(const struct kafka_library *library, rd_kafka_conf_t *conf,
                               const struct kafka_setting *settings, size_t count,
                               struct error *error) {
    enum status status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        if (settings[i].value != NULL)
            status = set(library, conf, settings[i].key, settings[i].value, error);
    return status;
}

enum status kafka_conf_set_number(const struct kafka_library *library, rd_kafka_conf_t *conf,
                                  const char *key, uint64_t value, struct error *error) {
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    return set(library, conf, key, text, error);
}

enum status kafka_conf_set_duration(const struct kafka_library *library, rd_kafka_conf_t *conf,
                                    const char *key, struct duration value, struct error *error) {
    return kafka_conf_set_number(library, conf, key, ((uint64_t)value.ns + 999999) / 1000000,
                                 error);
}

static void say(const rd_kafka_t *handle, int level, const char *facility, const char *text) {
    enum { SYSLOG_WARNING = 4, SYSLOG_NOTICE = 5 };
    // Which settings are experimental, and what old brokers lack, is nobody's concern in operation.
    bool idle = strcmp(facility, "CONFWARN") == 0 || strcmp(facility, "AUTOCREATE") == 0;
    const struct kafka_library *library;
    if (kafka_library_load(&library, NULL) != STATUS_OK)
        return; // it was loaded before there was a handle
    const struct kafka_client *client = library->opaque(handle);
    assert(client->magic == KAFKA_CLIENT_MAGIC);
    enum log_level as = idle                     ? LOG_DEBUG
                        : level < SYSLOG_WARNING ? LOG_WARN
                        : level < SYSLOG_NOTICE  ? LOG_INFO
                                                 : LOG_DEBUG;
    log_write(as, (struct log_site){"C7001", client->site}, "librdkafka: %s: %s", facility, text);
}

static enum status set_security(const struct kafka_library *library, rd_kafka_conf_t *conf,
                                const struct kafka_connection *connection, struct error *error) {
    const struct kafka_sasl *sasl = &connection->sasl;
    const struct kafka_tls *tls = &connection->tls;
    bool encrypted =
        tls->enabled || tls->ca_file != NULL || tls->cert_file != NULL || tls->unsafe_skip_verify;
    bool named = sasl->mechanism != KAFKA_NO_SASL;
    const char *protocol =
        encrypted ? (named ? "sasl_ssl" : "ssl") : (named ? "sasl_plaintext" : "plaintext");
    const struct kafka_setting settings[] = {
        {"security.protocol", protocol},
        {"sasl.mechanisms", named ? mechanisms[sasl->mechanism] : NULL},
        {"sasl.username", named ? sasl->username : NULL},
        {"sasl.password", named ? secret_reveal(sasl->password) : NULL},
        {"ssl.ca.location", tls->ca_file},
        {"ssl.certificate.location", tls->cert_file},
        {"ssl.key.location", tls->key_file},
        {"enable.ssl.certificate.verification", tls->unsafe_skip_verify ? "false" : NULL},
    };
    return kafka_conf_set_all(library, conf, settings, sizeof settings / sizeof settings[0], error);
}

static enum status set_brokers(const struct kafka_library *library, rd_kafka_conf_t *conf,
                               const struct kafka_connection *connection, struct error *error) {
    struct buffer list;
    buffer_init(&list, 1 << 20);
    for (uint32_t i = 0; i < connection->brokers.count; i++) {
        if (i > 0)
            buffer_append_char(&list, ',');
        buffer_append_text(&list, connection->brokers.items[i]);
    }
    buffer_append_char(&list, '\0');
    enum status status =
        buffer_finish(&list)
            ? set(library, conf, "bootstrap.servers", list.data, error)
            : error_set(error, STATUS_CONFIG, "the list of brokers is longer than 1 MiB");
    buffer_release(&list);
    return status;
}

static enum status set_common(const struct kafka_library *library, rd_kafka_conf_t *conf,
                              const struct kafka_connection *connection, struct error *error) {
    const struct kafka_setting settings[] = {
        {"client.id", connection->client_id},
        {"client.software.name", "culprit"},
        {"log.connection.close", "false"}, // brokers close idle connections
    };
    library->conf_set_log_cb(conf, say);
    enum status status = set_brokers(library, conf, connection, error);
    if (status == STATUS_OK)
        status = kafka_conf_set_all(library, conf, settings, 3, error);
    if (status == STATUS_OK)
        status = set_security(library, conf, connection, error);
    return status;
}

static enum status set_given(const struct kafka_library *library, rd_kafka_conf_t *conf,
                             const struct kafka_connection *connection, struct error *error) {
    enum { KEY_MAX = 128 };
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < connection->librdkafka.count && status == STATUS_OK; i++) {
        const char *entry = connection->librdkafka.items[i];
        size_t size = strcspn(entry, "=");
        if (size >= KEY_MAX)
            return error_set(error, STATUS_CONFIG, "librdkafka has no setting %s", entry);
        char key[KEY_MAX];
        memcpy(key, entry, size);
        key[size] = '\0';
        status = set(library, conf, key, entry + size + 1, error);
    }
    return status;
}

enum status kafka_client_open(struct kafka_client *client,
                              const struct kafka_connection *connection, rd_kafka_type_t type,
                              kafka_set_up *set_up, rd_kafka_t **handle, struct error *error) {
    const struct kafka_library *library = client->library;
    assert(library != NULL && *handle == NULL);
    client->magic = KAFKA_CLIENT_MAGIC;
    rd_kafka_conf_t *conf = library->conf_new();
    library->conf_set_opaque(conf, client);
    enum status status = set_common(library, conf, connection, error);
    if (status == STATUS_OK)
        status = set_up(client, conf, error);
    if (status == STATUS_OK)
        status = set_given(library, conf, connection, error);
    char reason[REASON_MAX] = "";
    if (status == STATUS_OK) {
        *handle = library->new (type, conf, reason, sizeof reason);
        if (*handle != NULL)
            return STATUS_OK; // it has taken `conf`
        status = error_set(error, STATUS_CONFIG, "librdkafka cannot be set up: %s", reason);
    }
    library->conf_destroy(conf);
    return status;
}
