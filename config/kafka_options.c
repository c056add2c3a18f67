// SPDX-License-Identifier: Apache-2.0
// The options that everything which speaks to Kafka shares.
#include "config/kafka_options.h"

#include "base/log.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const mechanisms[] = {"none", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", NULL};

const struct option kafka_sasl_rows[3] = {
    {.name = "mechanism",
     .type = OPTION_CHOICE,
     .offset = offsetof(struct kafka_sasl, mechanism),
     .default_value = "none",
     .choices = mechanisms,
     .help = "how the name and password are shown; others are set under librdkafka"},
    {.name = "username",
     .type = OPTION_TEXT,
     .offset = offsetof(struct kafka_sasl, username),
     .help = "name"},
    {.name = "password",
     .type = OPTION_SECRET,
     .offset = offsetof(struct kafka_sasl, password),
     .help = "password"},
};

const struct option kafka_tls_rows[5] = {
    {.name = "enabled",
     .type = OPTION_BOOL,
     .offset = offsetof(struct kafka_tls, enabled),
     .default_value = "false",
     .help = "encrypt; naming one of the files does so, too"},
    {.name = "ca_file",
     .type = OPTION_TEXT,
     .offset = offsetof(struct kafka_tls, ca_file),
     .help = "certificates of those who may vouch for a broker, PEM; the system's without it"},
    {.name = "cert_file",
     .type = OPTION_TEXT,
     .offset = offsetof(struct kafka_tls, cert_file),
     .help = "culprit's own certificate, PEM"},
    {.name = "key_file",
     .type = OPTION_TEXT,
     .offset = offsetof(struct kafka_tls, key_file),
     .help = "its private key, PEM"},
    {.name = "unsafe_skip_verify",
     .type = OPTION_BOOL,
     .offset = offsetof(struct kafka_tls, unsafe_skip_verify),
     .default_value = "false",
     .help = "believe any certificate: whoever is in between can read and change everything"},
};

// -- what is refused ----------------------------------------------------------------------------

struct refused_setting {
    const char *key;
    const char *why;
};

#define HAS_OPTION(name) "the option " name " sets it"
#define ITS_OWN          "culprit sets it itself, so that nothing is lost or counted twice"

static const struct refused_setting refused[] = {
    {"acks", ITS_OWN},
    {"auto.commit.enable", ITS_OWN},
    {"auto.commit.interval.ms", ITS_OWN},
    {"auto.offset.reset", HAS_OPTION("initial_offset")},
    {"bootstrap.servers", HAS_OPTION("brokers")},
    {"client.id", HAS_OPTION("client_id")},
    {"compression.codec", HAS_OPTION("compression")},
    {"compression.type", HAS_OPTION("compression")},
    {"delivery.timeout.ms", ITS_OWN},
    {"enable.auto.commit", ITS_OWN},
    {"enable.auto.offset.store", ITS_OWN},
    {"enable.gapless.guarantee", ITS_OWN},
    {"enable.idempotence", ITS_OWN},
    {"enable.partition.eof", ITS_OWN},
    {"group.id", HAS_OPTION("group_id")},
    {"group.instance.id", HAS_OPTION("group_instance_id")},
    {"heartbeat.interval.ms", HAS_OPTION("heartbeat_interval")},
    {"isolation.level", HAS_OPTION("isolation_level")},
    {"linger.ms", HAS_OPTION("linger")},
    {"max.in.flight", ITS_OWN},
    {"max.in.flight.requests.per.connection", ITS_OWN},
    {"max.partition.fetch.bytes", HAS_OPTION("max_partition_fetch_size")},
    {"fetch.message.max.bytes", HAS_OPTION("max_partition_fetch_size")},
    {"fetch.min.bytes", HAS_OPTION("min_fetch_size")},
    {"fetch.wait.max.ms", HAS_OPTION("max_fetch_wait")},
    {"max.poll.interval.ms", HAS_OPTION("max_poll_interval")},
    {"message.max.bytes", HAS_OPTION("max_message_size")},
    {"message.send.max.retries", ITS_OWN},
    {"message.timeout.ms", ITS_OWN},
    {"metadata.broker.list", HAS_OPTION("brokers")},
    {"offset.store.method", ITS_OWN},
    {"partition.assignment.strategy", HAS_OPTION("group_rebalance_strategy")},
    {"partitioner", ITS_OWN},
    {"plugin.library.paths", "culprit loads no code that a configuration names"},
    {"queue.buffering.max.ms", HAS_OPTION("linger")},
    {"queued.max.messages.kbytes", HAS_OPTION("queue_size")},
    {"request.required.acks", ITS_OWN},
    {"retries", ITS_OWN},
    {"sasl.username", HAS_OPTION("sasl.username")},
    {"session.timeout.ms", HAS_OPTION("session_timeout")},
    {"ssl.ca.location", HAS_OPTION("tls.ca_file")},
    {"ssl.certificate.location", HAS_OPTION("tls.cert_file")},
    {"ssl.key.location", HAS_OPTION("tls.key_file")},
    {"enable.ssl.certificate.verification", HAS_OPTION("tls.unsafe_skip_verify")},
    {"transactional.id", ITS_OWN},
};

static void check_setting(const char *entry, struct problem_list *problems) {
    const char *equals = strchr(entry, '=');
    if (equals == NULL || equals == entry) {
        problem_add(problems, "librdkafka", "\"%s\" is no key=value", entry);
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
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        if (slice_equal(key, slice_of(refused[i].key)))
            problem_add(problems, "librdkafka", "%s cannot be set here: %s", refused[i].key,
                        refused[i].why);
}

void kafka_connection_check(const struct kafka_connection *connection,
                            struct problem_list *problems) {
    if (connection->brokers.count == 0)
        problem_add(problems, "brokers", "the list is empty; name at least one broker");
    for (uint32_t i = 0; i < connection->brokers.count; i++) {
        const char *broker = connection->brokers.items[i];
        if (broker[0] == '\0' || strpbrk(broker, ", \t\n") != NULL)
            problem_add(problems, "brokers", "\"%s\" is no broker: write HOST:PORT, one an entry",
                        broker);
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

enum status kafka_conf_set(const struct kafka_library *library, rd_kafka_conf_t *conf,
                           const char *key, const char *value, struct error *error) {
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
        status = kafka_conf_set(library, conf, settings[i].key, settings[i].value, error);
    return status;
}

enum status kafka_conf_set_number(const struct kafka_library *library, rd_kafka_conf_t *conf,
                                  const char *key, uint64_t value, struct error *error) {
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    return kafka_conf_set(library, conf, key, text, error);
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
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sizeof settings / sizeof settings[0] && status == STATUS_OK; i++)
        if (settings[i].value != NULL)
            status = kafka_conf_set(library, conf, settings[i].key, settings[i].value, error);
    return status;
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
            ? kafka_conf_set(library, conf, "bootstrap.servers", list.data, error)
            : error_set(error, STATUS_CONFIG, "the list of brokers is longer than 1 MiB");
    buffer_release(&list);
    return status;
}

enum status kafka_conf_begin(struct kafka_client *client, const struct kafka_connection *connection,
                             rd_kafka_conf_t **out, struct error *error) {
    const struct kafka_library *library = client->library;
    rd_kafka_conf_t *conf = library->conf_new();
    library->conf_set_opaque(conf, client);
    library->conf_set_log_cb(conf, say);
    const struct kafka_setting settings[] = {
        {"client.id", connection->client_id},
        {"client.software.name", "culprit"},
        {"log.connection.close", "false"}, // brokers close idle connections
    };
    enum status status = set_brokers(library, conf, connection, error);
    if (status == STATUS_OK)
        status = kafka_conf_set_all(library, conf, settings, 3, error);
    if (status == STATUS_OK)
        status = set_security(library, conf, connection, error);
    if (status == STATUS_OK)
        *out = conf;
    else
        library->conf_destroy(conf);
    return status;
}

enum status kafka_conf_finish(const struct kafka_library *library, rd_kafka_conf_t *conf,
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
        status = kafka_conf_set(library, conf, key, entry + size + 1, error);
    }
    return status;
}

enum status kafka_client_new(const struct kafka_library *library, rd_kafka_type_t type,
                             rd_kafka_conf_t *conf, rd_kafka_t **handle, struct error *error) {
    char reason[REASON_MAX] = "";
    *handle = library->new (type, conf, reason, sizeof reason);
    if (*handle != NULL)
        return STATUS_OK;
    library->conf_destroy(conf);
    return error_set(error, STATUS_CONFIG, "librdkafka cannot be set up: %s", reason);
}
