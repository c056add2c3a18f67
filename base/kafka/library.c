// SPDX-License-Identifier: Apache-2.0
#include "base/kafka/library.h"

#include "base/late_library.h"

#include <pthread.h>
#include <stdbool.h>

static struct kafka_library kafka;
static bool loaded;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const struct late_symbol symbols[] = {
#define KAFKA_PLACE(name) {"rd_kafka_" #name, (void **)(void *)&kafka.name},
    KAFKA_FUNCTIONS(KAFKA_PLACE)
#undef KAFKA_PLACE
};

enum status kafka_library_load(const struct kafka_library **library, struct error *error) {
    pthread_mutex_lock(&lock);
    enum status status = STATUS_OK;
    if (!loaded)
        status = late_library_load("librdkafka.so.1", "librdkafka1", "Kafka", symbols,
                                   sizeof symbols / sizeof symbols[0], error);
    loaded = status == STATUS_OK;
    pthread_mutex_unlock(&lock);
    if (status == STATUS_OK)
        *library = &kafka;
    return status;
}
