// SPDX-License-Identifier: Apache-2.0
#include "base/kafka/library.h"

static struct kafka_library kafka;

static const struct late_symbol symbols[] = {
#define KAFKA_PLACE(name) {"rd_kafka_" #name, (void **)(void *)&kafka.name},
    KAFKA_FUNCTIONS(KAFKA_PLACE)
#undef KAFKA_PLACE
};
struct late_library kafka_late_library = {"librdkafka.so.1", "librdkafka1", "Kafka", symbols,
                                          .symbol_count = sizeof symbols / sizeof symbols[0]};

enum status kafka_library_load(const struct kafka_library **library, struct error *error) {
    enum status status = late_library_load(&kafka_late_library, error);
    if (status == STATUS_OK)
        *library = &kafka;
    return status;
}
